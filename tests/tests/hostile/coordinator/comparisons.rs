//! A coordinator that lies in a run that compares similarities: it asks about metrics of its own, about all patients, twice, or too early;
//! and of a common forest cuts, trees and judgements that no run of forests would have got.

use super::site::{FEATURES, PATIENTS, Site, look, said, table, unpsl};
use super::trees::{grow, judge as judge_forest, trees};
use super::{OPEN, assert_refused};
use kindred_tests::federation::RUN;
use ndarray::Array2;
use protocol::message::compare::{self, Judging};
use protocol::message::forest::{self, NodeKind, TerminalTable, Trees};
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
        forest: None,
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
        assert!(is_on_the_grid(table), "{table:?}");
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

/// A job that compares by a common forest of one feature.
fn in_common() -> String {
    "name = \"lie\"\nmethod = \"compare\"\nsites = [\"north\", \"south\", \"east\"]\n\
     [aggregation]\ncontributions = \"own\"\n[outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\n\
     [[features]]\nname = \"f2\"\nkind = \"numeric\"\nrange = [-8, 8]\n\
     [compare]\nfamilies = [\"common_forest\", \"common_forest_model\"]\n[forest]\ntrees = 60\n"
        .to_owned()
}

/// The last question, with these trees as the forest; none is none at all.
fn judge_trees(trees: Option<Trees>) -> Request {
    let forest = trees.map(|trees| forest::Judging {
        first_tree: 0,
        trees: Arc::new(trees),
    });
    Request::Compare(compare::Request::Judge(Judging {
        metrics: Vec::new().into(),
        regressions: Vec::new().into(),
        forest,
    }))
}

/// Whether those of a class who are called wrongly are told on the grid; of the whole class its number is told, which is known.
fn is_on_the_grid(table: &[Vec<u64>]) -> bool {
    (0..2).all(|class| table[class][1 - class].is_multiple_of(10) || table[class][class] == 0)
}

/// Cuts at these places, and classes that weigh alike.
fn grow_at(cuts: &[f64]) -> Request {
    let Request::Forest(forest::Request::Grow(growing)) = grow(cuts) else {
        panic!("a question about trees");
    };
    let mut growing = Arc::unwrap_or_clone(growing);
    growing.class_weights = vec![1.0, 1.0];
    Request::Forest(forest::Request::Grow(Arc::new(growing)))
}

#[test]
fn a_common_forest_is_grown_by_the_questions_of_a_run_of_forests_and_by_no_other() {
    let mut site = Site::open(&table(PATIENTS, 1), OPEN);
    site.begin(RUN, &in_common(), 5);
    let told = site.tell();
    assert_refused(&site.ask(grow_at(&[0.0])), "question");
    let counted = site.ask(Request::Quantiles);
    assert!(
        matches!(counted, Answer::Quantiles(_)),
        "{}",
        said(&counted)
    );
    site.prepare(&told);
    assert_refused(&site.ask(judge_trees(None)), "question");
    // Cuts that tell a value from its neighbour, or lie outside; a forest that stays; a last word on a forest alone.
    for cuts in [&[0.1234][..], &[9.0], &[1.0, 1.0], &[f64::NAN]] {
        assert_refused(&site.ask(grow_at(cuts)), "question");
    }
    let own = Request::Forest(forest::Request::GrowOwn);
    assert_refused(&site.ask(own), "question");
    let before = site.rounds();
    let grown = trees(site.ask(grow_at(&[-2.0, 0.0, 2.0])));
    assert_eq!(
        site.rounds(),
        before + 1,
        "trees that leave are a round of the budget"
    );
    assert_refused(&site.ask(grow_at(&[0.5])), "rounds_per_cohort_max");
    assert_refused(&site.ask(judge_forest(grown.clone())), "question");
    // What leaves of a tree is what a run of forests lets leave.
    for tree in &grown.trees {
        for node in tree.nodes() {
            assert!(node.patients >= 10, "a node of {}", node.patients);
            if let NodeKind::Terminal(TerminalTable::Classes(counts)) = &node.kind {
                let is_small = |count: &u64| (1..10).contains(count);
                assert!(!counts.iter().any(is_small), "{counts:?}");
            }
        }
    }
    // Without the site's trees, without any, and with more than the job has.
    let mut fewer = grown.clone();
    fewer.trees.remove(0);
    let foreign = site.ask(judge_trees(Some(fewer)));
    assert!(matches!(foreign, Answer::Failed(_)), "{}", said(&foreign));
    assert_refused(&site.ask(judge_trees(None)), "question");
    let mut many = grown.clone();
    many.trees
        .extend(grown.trees.iter().cloned().cycle().take(41));
    assert_refused(&site.ask(judge_trees(Some(many))), "question");
    // Others' trees of the coordinator's making: counts on the grid, once, as a run of forests tells.
    let mut forged = grown.clone();
    forged.trees.extend(grown.trees.iter().take(9).cloned());
    let first = site.ask(judge_trees(Some(forged)));
    let Answer::Compare(compare::Answer::Judged(families)) = &first else {
        panic!("{}", said(&first));
    };
    assert_eq!(families.len(), 3);
    for family in families {
        assert_eq!(family.discordant, None);
        let table = family.counts.confusion.as_ref().unwrap();
        assert!(is_on_the_grid(table), "{table:?}");
        let error = family.errors.map_or(0.0, |errors| errors.error);
        assert_eq!(error % 10.0, 0.0, "an error beside the grid");
    }
    assert_refused(&site.ask(judge_trees(Some(grown))), "once_a_run");
}

#[test]
fn no_tree_is_grown_of_a_job_that_compares_by_none_in_common_or_at_a_site_that_lets_none_leave() {
    let mut site = prepared();
    assert_refused(&site.ask(grow_at(&[0.0])), "question");
    let none = Trees {
        features: 1,
        trees: Vec::new(),
    };
    assert_refused(&site.ask(judge_trees(Some(none))), "question");
    let mut site = Site::open(&table(PATIENTS, 1), "forests = false\n");
    site.begin(RUN, &in_common(), 5);
    assert_refused(&site.ask(Request::Describe), "forests");
}
