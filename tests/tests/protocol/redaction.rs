//! Promise: what holds patients, or a site's numbers, shows none of them in its `Debug`.

use kindred_tests::samples::SITE;
use ndarray::{Array2, array};
use privacy::{CohortFacts, Fingerprint, FingerprintKey, Released, SoFar};
use protocol::job::Job;
use protocol::message::{
    Answer, ColumnHistogram, ColumnMoments, Contribution, Description, ErrorMeasure, ErrorSums,
    EvaluationCounts, FeatureImportance, Finished, Judged, NodeKind, NodeTable, PairCounts,
    RightCounts, RuleErrors, SecondMoments, Summary, TerminalTable, ToCoordinator, TreeTable,
    Trees,
};
use protocol::name::RunId;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::unpsl::{Correlation, Labels};
use site_agent::config::SiteConfig;
use site_agent::source::{DataCheck, SiteCohort, check, read_cohort};
use std::fmt::Debug;

const JOB: &str = "name = 'test'\nmethod = 'unpsl'\nsites = ['north']\n\
    [outcome]\ncolumn = 'num'\nkind = 'binary'\npositive = ['1']\n\
    [[features]]\nname = 'chol'\nkind = 'numeric'\n\
    [[features]]\nname = 'sex'\nkind = 'categorical'\nlevels = ['F', 'M']\n\
    [unpsl]\nrank = 1\n";
/// Every number of a patient or of a site below has these digits, and every identifier the word.
const NUMBER: f64 = 7_313.25;
const DIGITS: &str = "7313";
const WORD: &str = "secret";

/// Both forms of `Debug`; neither has a value.
#[track_caller]
fn redacted(value: &impl Debug) -> String {
    let texts = [format!("{value:?}"), format!("{value:#?}")];
    for text in &texts {
        assert!(!text.contains(DIGITS) && !text.contains(WORD), "{text}");
    }
    let [short, _] = texts;
    short
}

fn read() -> (SiteCohort, DataCheck) {
    let folder = tempfile::tempdir().unwrap();
    let rows = "id,chol,sex,num\nsecret-1,7313.25,M,1\nsecret-2,7313.5,F,0\nsecret-3,73130,F,0\n";
    std::fs::write(folder.path().join("patients.csv"), rows).unwrap();
    let site = SiteConfig::parse(SITE, folder.path()).unwrap();
    let job = Job::parse(JOB).unwrap();
    let cohort = read_cohort(&site.source, &job, &mut |_| {}).unwrap();
    (cohort, check(&site.source, &job, 1))
}

#[test]
fn a_cohort_that_was_read_shows_counts_alone() {
    let (site, check) = read();
    let cohort = "Cohort { patients: 3, columns: 2, .. }";
    assert_eq!(redacted(&site.cohort), cohort);
    assert_eq!(redacted(&site.patients), "3 patients");
    let wanted = format!("SiteCohort {{ cohort: {cohort}, patients: 3 patients, left_out: 0 }}");
    assert_eq!(redacted(&site), wanted);
    // Its text is for the people of the site; its Debug would be for a log.
    assert!(check.to_string().contains("7313 to 73130"), "{check}");
    let wanted = "DataCheck { patients: 3, columns: 3, problems: 0, .. }";
    assert_eq!(redacted(&check), wanted);
}

#[test]
fn what_a_solver_holds_shows_shapes_alone() {
    let patients = Array2::from_shape_fn((4, 2), |(i, j)| NUMBER + (i * 3 + j * j) as f64);
    let correlation = Correlation::of_matrix(&patients.view());
    assert_eq!(redacted(&correlation), "Correlation { features: 2, .. }");
    let labels = Labels::pairs(array![[0, 1, -1], [1, 0, 1], [-1, 1, 0]]).unwrap();
    assert_eq!(redacted(&labels), "Labels { patients: 3, .. }");
    let column = Column {
        name: "chol".to_owned(),
        values: Values::Numeric(array![NUMBER, NUMBER + 1.0]),
    };
    let outcome = Outcome::Survival {
        time: array![NUMBER, NUMBER],
        event: array![true, false],
    };
    let cohort = Cohort::new(vec![column], outcome).unwrap();
    assert_eq!(redacted(&cohort), "Cohort { patients: 2, columns: 1, .. }");
}

/// A tree of one node.
fn trees(patients: u64) -> Trees {
    let node = NodeTable {
        patients: u32::try_from(patients).unwrap(),
        kind: NodeKind::Terminal(TerminalTable::Classes(vec![patients, 0])),
    };
    let trees = Trees {
        features: 1,
        trees: vec![TreeTable::new(vec![node], 1).unwrap()],
    };
    redacted(&trees);
    trees
}

fn answers() -> Vec<(&'static str, Answer)> {
    let matrix = array![[NUMBER, -NUMBER]];
    let count = 7_313;
    let pairs = PairCounts {
        similar: count,
        dissimilar: count,
    };
    let moments = ColumnMoments::Numeric {
        count,
        sum: NUMBER,
        sum_squares: NUMBER,
        missing: count,
    };
    let table = EvaluationCounts {
        rule: "distance".to_owned(),
        neighbours: 5,
        confusion: Some(vec![vec![count, count]; 2]),
    };
    let held_out = RightCounts {
        right: count,
        wrong: count,
    };
    assert_eq!(redacted(&held_out), "RightCounts { .. }");
    vec![
        (
            "description",
            Answer::Described(Description {
                patients: count,
                classes: vec![count],
            }),
        ),
        (
            "moments",
            Answer::Moments {
                columns: vec![moments],
                summary: Summary {
                    patients: count,
                    pairs,
                },
            },
        ),
        (
            "quantiles",
            Answer::Quantiles(vec![ColumnHistogram {
                ends: vec![4_096],
                counts: vec![count],
            }]),
        ),
        (
            "prepared",
            Answer::Prepared {
                second_moments: Some(SecondMoments {
                    patients: count,
                    sums: array![NUMBER],
                    products: array![[NUMBER]],
                }),
            },
        ),
        (
            "contribution",
            Answer::Contribution(Contribution {
                matrix: matrix.clone(),
                objective: NUMBER,
                iterations: 7_313,
                gradient: Some(matrix),
            }),
        ),
        ("validation", Answer::Validated(vec![Some(held_out)])),
        (
            "finished",
            Answer::Finished(Finished {
                objective: NUMBER,
                evaluation: vec![table.clone()],
            }),
        ),
        ("trees", Answer::Grown(trees(count))),
        (
            "judgement",
            Answer::Judged(Judged {
                errors: vec![RuleErrors {
                    rule: "forest".to_owned(),
                    neighbours: 0,
                    measure: ErrorMeasure::Squared,
                    sums: Some(ErrorSums {
                        total: count,
                        error: NUMBER,
                    }),
                }],
                evaluation: vec![table],
                importance: vec![FeatureImportance {
                    mean: NUMBER,
                    standard_error: NUMBER,
                }],
            }),
        ),
    ]
}

#[test]
fn an_answer_shows_its_kind_alone_in_every_wrapping() {
    for (kind, answer) in answers() {
        assert_eq!(redacted(&answer), kind);
        let reply = ToCoordinator::Reply {
            run: RunId::new("run").unwrap(),
            exchange: 3,
            journal: None,
            answer,
        };
        let text = redacted(&reply);
        assert!(text.ends_with(&format!("answer: {kind} }}")), "{text}");
    }
    let failure = protocol::message::Failure {
        code: WORD.to_owned(),
        text: WORD.to_owned(),
    };
    let released: Released<Answer> = Released::notice(failure);
    assert_eq!(redacted(&released), "Released(\"failure\")");
}

#[test]
fn what_the_ledger_keeps_of_patients_shows_nothing_of_them() {
    let key = FingerprintKey::new([73; 32]);
    assert!(!redacted(&key).contains("73"));
    let fingerprint = Fingerprint::new(&key, ["secret-1", "secret-2"]);
    let text = redacted(&fingerprint);
    assert!(!text.contains(&fingerprint.identity()), "{text}");
    let facts = CohortFacts {
        patients: 7_313,
        classes: vec![7_313],
        runs_before: 7_313,
        rounds_before: 7_313,
        so_far: SoFar {
            rounds: 7_313,
            ..SoFar::default()
        },
        difference: Some(7_313),
    };
    assert_eq!(redacted(&facts), "CohortFacts { .. }");
}
