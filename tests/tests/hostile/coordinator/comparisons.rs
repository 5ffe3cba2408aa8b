//! A coordinator that lies in a run that compares similarities: it asks about metrics of its own, about all patients, twice, or too early.

use super::site::{FEATURES, PATIENTS, Site, look, said, table, unpsl};
use super::{OPEN, assert_refused};
use kindred_tests::federation::RUN;
use ndarray::Array2;
use protocol::message::compare::{self, Judging};
use protocol::message::regression::{self, Design, Evaluating};
use protocol::message::unpsl::{Differentiating, Form, Part};
use protocol::message::{Answer, Request, unpsl as metrics};
use std::sync::Arc;

const FOLDS: u32 = 4;

fn job() -> String {
    let text = unpsl("rank = 1");
    let (head, _) = text.split_once("[unpsl]").unwrap();
    let head = head.replace("method = \"unpsl\"", "method = \"compare\"");
    format!(
        "{head}[compare]\nfamilies = [\"cosine\", \"unpsl\"]\nfolds = {FOLDS}\n[unpsl]\nrank = 1\nthreshold = 1.0\n"
    )
}

fn metric(steep: f64) -> Array2<f64> {
    let mut metric = Array2::zeros((FEATURES, 1));
    metric[[0, 0]] = steep;
    metric
}

fn judge(metrics: Vec<Array2<f64>>) -> Request {
    Request::Compare(compare::Request::Judge(Judging {
        metrics: metrics.into(),
        regressions: Vec::new().into(),
    }))
}

fn differentiate(fold: Option<u32>) -> Request {
    let form = Form::InnerProduct;
    Request::Unpsl(metrics::Request::Differentiate(Differentiating {
        metrics: vec![metric(0.5)].into(),
        parts: vec![Part { form, fold }],
        rows: vec![None].into(),
    }))
}

fn prepared() -> Site {
    let mut site = Site::open(&table(PATIENTS, 1), OPEN);
    site.begin(RUN, &job(), 5);
    let told = site.tell();
    let early = site.ask(judge(vec![metric(0.5); FOLDS as usize]));
    assert_refused(&early, "question");
    site.prepare(&told);
    site
}

#[test]
fn nothing_is_asked_but_what_folds_ask_and_the_families_are_judged_once() {
    let mut site = prepared();
    // All patients, a fold that is none, another method's last word.
    assert_refused(&site.ask(differentiate(None)), "question");
    assert_refused(&site.ask(differentiate(Some(FOLDS))), "question");
    assert_refused(&site.ask(look(&metric(0.5))), "question");
    let regression = Request::Regression(regression::Request::Evaluate(Evaluating {
        design: Arc::new(Design {
            rows: vec![0],
            ends: Vec::new(),
            fold: Some(0),
        }),
        at: vec![0.0; 2].into(),
    }));
    assert_refused(&site.ask(regression), "question");
    let answer = site.ask(differentiate(Some(0)));
    assert!(
        matches!(answer, Answer::Unpsl(metrics::Answer::Derivatives(_))),
        "{}",
        said(&answer)
    );
    // Fewer metrics than folds.
    assert_refused(&site.ask(judge(vec![metric(0.5); 2])), "question");
    let told = site.ask(judge(vec![metric(0.5); FOLDS as usize]));
    let Answer::Compare(compare::Answer::Judged(families)) = &told else {
        panic!("{}", said(&told));
    };
    for family in families {
        // On the grid of wrong predictions, and nobody by whom one rule alone is right.
        assert_eq!(family.discordant, None);
        let table = family.counts.confusion.as_ref().unwrap();
        assert_eq!(table[0][1] % 10 + table[1][0] % 10, 0);
    }
    let again = site.ask(judge(vec![metric(0.25); FOLDS as usize]));
    assert_refused(&again, "once_a_run");
}

#[test]
fn a_metric_of_steps_shuts_the_run() {
    let mut site = prepared();
    let steep = site.ask(judge(vec![metric(1e6); FOLDS as usize]));
    assert_refused(&steep, "similarity_max");
    assert_refused(&site.ask(differentiate(Some(0))), "similarity_max");
}
