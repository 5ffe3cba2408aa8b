//! Promise: what holds patients, or a site's numbers, shows none of them in its `Debug`.

use kindred_tests::samples::SITE;
use ndarray::{Array2, array};
use privacy::Covered;
use privacy::sums::{Tag, Words};
use privacy::{CohortFacts, ErrorSums, Fingerprint, FingerprintKey, HeldOutVotes, Released, SoFar};
use protocol::assessment::{
    Assessment, ErrorMeasure, EvaluationCounts, FeatureImportance, Gains, RuleErrors,
};
use protocol::failure::{Code, Failure, Problem, Refusal};
use protocol::job::Job;
use protocol::message::card;
use protocol::message::cluster::{self, Agreement, Mark, Marks, NearestSums, Spread};
use protocol::message::compare;
use protocol::message::forest::{self, NodeKind, NodeTable, TerminalTable, TreeTable, Trees};
use protocol::message::neighbours::{self, Alike, Distances, Found, Groups, Mean, Noised};
use protocol::message::regression::{self, Sums};
use protocol::message::unpsl::{self, Contribution, Derivatives};
use protocol::message::{
    Answer, ColumnHistogram, ColumnMoments, Description, Encapsulations, Introduction, PairCounts,
    Reply, SecondMoments, SiteMoments, Summary, ToCoordinator, summed_kinds,
};
use protocol::method::compare::settings::Family;
use protocol::name::RunId;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::learn::unpsl::{Correlation, Labels};
use site_agent::config::SiteConfig;
use site_agent::source::{DataCheck, SiteCohort, check, read_cohort};
use std::fmt::Debug;

const JOB: &str = "name = 'test'\nmethod = 'unpsl'\nsites = ['north', 'south']\n\
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
    let cohort = read_cohort(&site.source, &job).unwrap();
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

const COUNT: u64 = 7_313;

fn alike() -> Alike {
    let noised = Noised {
        sum: NUMBER,
        variance: NUMBER,
    };
    Alike {
        patients: NUMBER,
        border: NUMBER,
        classes: vec![noised],
        sums: vec![noised],
    }
}

/// A sample of every kind of answer, each with the one after it: a new answer does not compile until it stands here.
fn after(answer: Option<&Answer>) -> Option<Answer> {
    let Some(answer) = answer else {
        return Some(Answer::Described(Description {
            patients: COUNT,
            classes: vec![COUNT],
            learns: COUNT,
            validates: COUNT,
            judges: COUNT,
        }));
    };
    Some(match answer {
        Answer::Described(_) => Answer::Unfit(vec![Problem {
            column: WORD.to_owned(),
            found: WORD.to_owned(),
            wanted: WORD.to_owned(),
        }]),
        Answer::Unfit(_) => Answer::Refused(Refusal {
            rule: WORD.to_owned(),
            text: WORD.to_owned(),
        }),
        Answer::Refused(_) => Answer::Failed(failure()),
        Answer::Failed(_) => Answer::Moments(moments()),
        Answer::Moments(_) => Answer::Quantiles(vec![ColumnHistogram {
            ends: vec![4_096],
            counts: vec![COUNT],
        }]),
        Answer::Quantiles(_) => Answer::Spread(vec![NUMBER]),
        Answer::Spread(_) => Answer::Prepared(Some(SecondMoments {
            patients: COUNT,
            sums: array![NUMBER],
            products: array![[NUMBER]],
        })),
        Answer::Prepared(_) => Answer::Correlated,
        Answer::Correlated => Answer::Unpsl(unpsl::Answer::Contribution(contribution())),
        Answer::Unpsl(unpsl::Answer::Contribution(_)) => {
            Answer::Unpsl(unpsl::Answer::Derivatives(vec![derivatives()]))
        }
        Answer::Unpsl(unpsl::Answer::Derivatives(_)) => {
            Answer::Unpsl(unpsl::Answer::Validated(vec![vec![Some(held_out())]]))
        }
        Answer::Unpsl(unpsl::Answer::Validated(_)) => {
            Answer::Forest(forest::Answer::Grown(trees()))
        }
        Answer::Forest(forest::Answer::Grown(_)) => {
            Answer::Regression(regression::Answer::Likelihood(sums()))
        }
        Answer::Regression(regression::Answer::Likelihood(_)) => {
            Answer::Regression(regression::Answer::Cells {
                sums: sums(),
                counted: vec![COUNT],
            })
        }
        Answer::Regression(regression::Answer::Cells { .. }) => {
            Answer::Regression(regression::Answer::Proportionality(sums()))
        }
        Answer::Regression(regression::Answer::Proportionality(_)) => {
            Answer::Neighbours(neighbours::Answer::Distances(Distances {
                groups: Groups::default(),
                pairs: vec![COUNT],
            }))
        }
        Answer::Neighbours(neighbours::Answer::Distances(_)) => {
            Answer::Neighbours(neighbours::Answer::Found(Found {
                groups: Groups::default(),
                everybody: alike(),
                alike: vec![alike()],
                features: vec![Mean {
                    patients: NUMBER,
                    sum: NUMBER,
                }],
            }))
        }
        Answer::Neighbours(neighbours::Answer::Found(_)) => {
            Answer::Cluster(cluster::Answer::Spread(Spread {
                patients: COUNT,
                sums: vec![NUMBER],
                products: array![[NUMBER]],
            }))
        }
        Answer::Cluster(cluster::Answer::Spread(_)) => {
            Answer::Cluster(cluster::Answer::Sums(NearestSums {
                patients: vec![COUNT],
                sums: array![[NUMBER]],
            }))
        }
        Answer::Cluster(cluster::Answer::Sums(_)) => {
            Answer::Cluster(cluster::Answer::Agreement(Agreement {
                fared: vec![alike()],
                tables: vec![COUNT],
            }))
        }
        Answer::Cluster(cluster::Answer::Agreement(_)) => {
            Answer::Cluster(cluster::Answer::Marks(vec![Marks {
                sites: COUNT,
                features: vec![Mark {
                    patients: COUNT,
                    sum: NUMBER,
                    squares: NUMBER,
                }],
            }]))
        }
        Answer::Cluster(cluster::Answer::Marks(_)) => {
            Answer::Compare(compare::Answer::Judged(vec![compare::FamilyCounts {
                family: Family::Cosine,
                measure: ErrorMeasure::Misclassified,
                counts: assessment().evaluation.remove(0),
                errors: Some(ErrorSums {
                    total: COUNT,
                    error: NUMBER,
                }),
            }]))
        }
        Answer::Compare(_) => Answer::Card(card::Answer::Parts(vec![COUNT])),
        Answer::Card(card::Answer::Parts(_)) => Answer::Card(card::Answer::Lots(vec![COUNT])),
        Answer::Card(card::Answer::Lots(_)) => {
            let feature = card::FeatureCounts {
                levels: vec![COUNT],
                missing: COUNT,
            };
            Answer::Card(card::Answer::Counts(card::Counts {
                groups: vec![card::GroupCounts {
                    patients: COUNT,
                    features: vec![feature],
                }],
                parts: vec![COUNT],
            }))
        }
        Answer::Card(card::Answer::Counts(_)) => Answer::Card(card::Answer::Sums(card::Sums {
            features: vec![[NUMBER; 2]],
            outcomes: vec![vec![NUMBER]],
        })),
        Answer::Card(card::Answer::Sums(_)) => Answer::Assessed(assessment()),
        Answer::Assessed(_) => Answer::Covered(Covered {
            kind: "covered",
            words: Words::received(vec![u128::from(COUNT)]),
            tag: Some(Tag::received(u128::from(COUNT))),
        }),
        Answer::Covered(_) => Answer::Introduced(Introduction {
            agreement: Vec::new(),
            encapsulation: Vec::new(),
            signing: Vec::new(),
            patients_at_most: 20,
            chain: Vec::new(),
            scheme: 0,
            signature: Vec::new(),
        }),
        Answer::Introduced(_) => Answer::Encapsulated(Encapsulations {
            ciphertexts: vec![Vec::new()],
            common: vec![Vec::new()],
        }),
        Answer::Encapsulated(_) => Answer::Digest([7; 32]),
        Answer::Digest(_) => return None,
    })
}

fn failure() -> Failure {
    Failure::new(Code::Forest, WORD)
}

fn moments() -> SiteMoments {
    let column = ColumnMoments::Numeric {
        count: COUNT,
        sum: NUMBER,
        sum_squares: NUMBER,
        missing: COUNT,
    };
    let pairs = PairCounts {
        similar: COUNT,
        dissimilar: COUNT,
    };
    SiteMoments {
        columns: vec![column],
        summary: Summary {
            patients: COUNT,
            pairs,
        },
    }
}

fn contribution() -> Contribution {
    let matrix = array![[NUMBER, -NUMBER]];
    Contribution {
        matrix,
        objective: NUMBER,
        iterations: 7_313,
        products: None,
    }
}

fn derivatives() -> Derivatives {
    Derivatives {
        objective: NUMBER,
        threshold: [NUMBER, NUMBER],
        triangles: array![[NUMBER], [NUMBER]],
        slope: Some(array![[NUMBER]]),
    }
}

fn held_out() -> HeldOutVotes {
    HeldOutVotes {
        right: COUNT,
        wrong: COUNT,
        log_loss: NUMBER,
    }
}

fn sums() -> Sums {
    Sums {
        patients: COUNT,
        events: COUNT,
        log_likelihood: NUMBER,
        gradient: array![NUMBER],
        information: array![[NUMBER]],
    }
}

/// A tree of one node.
fn trees() -> Trees {
    let node = NodeTable {
        patients: 7_313,
        kind: NodeKind::Terminal(TerminalTable::Classes(vec![COUNT, 0])),
    };
    Trees {
        features: 1,
        trees: vec![TreeTable::new(vec![node], 1).unwrap()],
    }
}

fn assessment() -> Assessment {
    let sums = ErrorSums {
        total: COUNT,
        error: NUMBER,
    };
    let table = || Some(vec![vec![COUNT, COUNT]; 2]);
    let counts = EvaluationCounts {
        loss: Some(NUMBER),
        gains: Gains {
            areas: Some([NUMBER; 5]),
            errors: Some([NUMBER; 5]),
        },
        ..EvaluationCounts::new("distance", 5, table(), table())
    };
    Assessment {
        objective: Some(NUMBER),
        evaluation: vec![counts.clone()],
        validation: vec![counts],
        errors: vec![RuleErrors {
            rule: "forest".to_owned(),
            neighbours: 0,
            measure: ErrorMeasure::Squared,
            sums: Some(sums),
        }],
        importance: vec![FeatureImportance {
            mean: NUMBER,
            standard_error: NUMBER,
        }],
    }
}

#[test]
fn an_answer_shows_its_kind_alone_in_every_wrapping() {
    let mut shown = Vec::new();
    let mut sample = after(None);
    while let Some(answer) = sample {
        sample = after(Some(&answer));
        let kind = redacted(&answer);
        let reply = Reply {
            signature: Vec::new(),
            run: RunId::new("run").unwrap(),
            exchange: 3,
            journal: None,
            answer,
        };
        let text = redacted(&ToCoordinator::Reply(reply));
        assert!(text.ends_with(&format!("answer: {kind} }})")), "{text}");
        shown.push(kind);
    }
    for kind in summed_kinds() {
        assert!(shown.iter().any(|one| one == kind), "no {kind}");
    }
    let released: Released<Answer> = Released::notice(failure());
    assert_eq!(redacted(&released), "Released(\"failure\")");
    assert_eq!(redacted(&wire::seal(released)), "Sealed(\"failure\")");
}

#[test]
fn parts_of_answers_that_show_themselves_show_no_number() {
    redacted(&trees());
    assert_eq!(redacted(&held_out()), "HeldOutVotes { .. }");
}

#[test]
fn what_the_ledger_keeps_of_patients_shows_nothing_of_them() {
    let key = FingerprintKey::new([73; 32]);
    assert!(!redacted(&key).contains("73"));
    let fingerprint = Fingerprint::new(&key, ["secret-1", "secret-2"]);
    let text = redacted(&fingerprint);
    assert!(!text.contains(&fingerprint.identity()), "{text}");
    let facts = CohortFacts {
        judged: None,
        patients: 7_313,
        classes: vec![7_313],
        so_far: SoFar {
            rounds: 7_313,
            ..SoFar::default()
        },
    };
    assert_eq!(redacted(&facts), "CohortFacts { .. }");
}
