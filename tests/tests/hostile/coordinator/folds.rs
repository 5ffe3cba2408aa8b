//! A coordinator that asks about folds of a validation.

use super::rows;
use super::site::{PATIENTS, Site, refused_by, said, table, unpsl};
use kindred_tests::federation::RUN;
use ndarray::Array2;
use protocol::message::unpsl::{self as message, Differentiating, Finishing, Form, Part};
use protocol::message::{Answer, Request};
use std::sync::Arc;

/// A job that does not say whether anybody is held out.
const USUAL: &str = "rank = 8\n# validation";

fn without(fold: u32, metric: &Array2<f64>) -> Request {
    Request::Unpsl(message::Request::Differentiate(Differentiating {
        metrics: Arc::new(vec![metric.clone()]),
        parts: vec![Part {
            form: Form::InnerProduct,
            fold: Some(fold),
        }],
        rows: Arc::new(vec![None]),
    }))
}

fn finish(metric: &Array2<f64>, folds: usize) -> Request {
    Request::Unpsl(message::Request::Finish(Finishing {
        consensus: Arc::new(metric.clone()),
        form: Form::InnerProduct,
        neighbours: 5,
        folds: Arc::new(vec![metric.clone(); folds]),
    }))
}

fn prepared(patients: usize, keys: &str, seed: u64) -> Site {
    let mut site = Site::open(&table(patients, 7), "");
    site.begin(RUN, &unpsl(keys), seed);
    let told = site.tell();
    site.prepare(&told);
    site
}

/// A site that said that it cannot be parted is asked about a part all the same.
#[test]
fn a_site_answers_about_no_fold_that_its_rules_do_not_let_be() {
    let metric = rows::view(0.5, 1.0);
    // Of 48 patients a fold has 9.
    for (patients, keys) in [(48, USUAL), (PATIENTS, "rank = 8\nvalidation = \"none\"")] {
        let mut site = prepared(patients, keys, 5);
        match site.ask(Request::Describe) {
            Answer::Described(told) => assert_eq!(told.validates, 0),
            other => panic!("{}", said(&other)),
        }
        for request in [without(0, &metric), finish(&metric, 5)] {
            assert_eq!(refused_by(&site.ask(request)), Some("question"));
        }
        assert_eq!(site.rounds(), 0);
    }
    let mut site = prepared(PATIENTS, USUAL, 5);
    for request in [without(5, &metric), finish(&metric, 4), finish(&metric, 6)] {
        assert_eq!(refused_by(&site.ask(request)), Some("question"));
    }
    assert!(matches!(site.ask(without(4, &metric)), Answer::Unpsl(_)));
    assert_eq!(site.rounds(), 1);
    match site.ask(finish(&metric, 5)) {
        Answer::Assessed(told) => {
            // On the site's grid, as all tables are.
            let counted = told.validation.iter().all(|table| table.rounded_to == 10);
            assert!(counted && told.validation.len() == 3);
        }
        other => panic!("{}", said(&other)),
    }
}

/// An operator submits the job again and again with other seeds. Were the folds drawn from the seed (as they were), every run would
/// tell sums over other patients: 20 runs of 5 folds tell a site of 80 patients as many independent sums as it has patients, for
/// every entry of x x'.
#[test]
fn the_folds_of_a_site_do_not_follow_from_the_seed() {
    let metric = rows::view(0.5, 1.0);
    let mut site = Site::open(&table(PATIENTS, 7), "");
    let mut told = Vec::new();
    for seed in 5..9 {
        site.begin(&format!("run{seed}"), &unpsl(USUAL), seed);
        let own = site.tell();
        site.prepare(&own);
        let all = (0..5).map(|fold| site.ask(without(fold, &metric)));
        told.push(all.collect::<Vec<Answer>>());
    }
    assert!(told.windows(2).all(|runs| runs[0] == runs[1]));
    // Another site parts the same patients otherwise.
    let mut other = prepared(PATIENTS, USUAL, 5);
    assert_ne!(other.ask(without(0, &metric)), told[0][0]);
}
