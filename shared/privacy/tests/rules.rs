//! What may leave a site: closed by default, every rule by its name, nothing below a minimum.

#![allow(clippy::unwrap_used)] // functions that tests share

use privacy::{
    Admission, Allowed, CohortFacts, Column, Content, Contributions, Disclosure, Fingerprint,
    FingerprintKey, Gate, Histogram, JobFacts, Notice, Permission, Policy, Refusal, Released,
    Rules, SoFar, Table,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What a rule of prediction told.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    confusion: Option<Vec<Vec<u64>>>,
    scores: Option<Vec<Vec<u64>>>,
    rounded_to: u64,
}

/// A message with every kind of content, as a test needs it.
#[derive(Clone, Debug, PartialEq)]
enum Message {
    Ready,
    Cohort(u64, Vec<u64>),
    Numeric {
        patients: u64,
        count: u64,
        sum: f64,
        sum_squares: f64,
        missing: u64,
    },
    Levels {
        patients: u64,
        counts: Vec<u64>,
        missing: u64,
    },
    Histogram {
        ends: Vec<u32>,
        counts: Vec<u64>,
    },
    SecondMoments,
    Update,
    Tables(Vec<Told>),
}

impl Disclosure for Message {
    fn kind(&self) -> &'static str {
        "message"
    }

    fn shape(&self) -> String {
        String::new()
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        let content = match self {
            Self::Ready => return Vec::new(),
            Self::Cohort(patients, classes) => Content::Cohort {
                patients: *patients,
                classes,
            },
            Self::Numeric {
                patients,
                count,
                sum,
                sum_squares,
                missing,
            } => Content::Columns {
                patients: *patients,
                columns: vec![Column::Numeric {
                    count,
                    sum,
                    sum_squares,
                    missing,
                }],
            },
            Self::Levels {
                patients,
                counts,
                missing,
            } => Content::Columns {
                patients: *patients,
                columns: vec![Column::Categorical { counts, missing }],
            },
            Self::Histogram { ends, counts } => {
                Content::Histograms(vec![Histogram { ends, counts }])
            }
            Self::SecondMoments => Content::SecondMoments,
            Self::Update => Content::LocalUpdate,
            Self::Tables(told) => Content::Tables(
                told.iter_mut()
                    .map(|told| Table {
                        confusion: &mut told.confusion,
                        scores: &mut told.scores,
                        rounded_to: &mut told.rounded_to,
                    })
                    .collect(),
            ),
        };
        vec![content]
    }
}

fn told(confusion: &[[u64; 2]]) -> Message {
    Message::Tables(vec![Told {
        confusion: Some(confusion.iter().map(|row| row.to_vec()).collect()),
        scores: None,
        rounded_to: 10,
    }])
}

fn open_lists() -> Rules {
    Rules {
        operators: Allowed::listed(["researcher"]),
        methods: Allowed::listed(["unpsl"]),
        outcomes: Allowed::listed(["disease"]),
        features: Allowed::listed(["age", "chol"]),
        contributions: Contributions::Own,
        ..Rules::default()
    }
}

fn job() -> JobFacts {
    JobFacts {
        contributions: Contributions::Own,
        operator: "researcher".to_owned(),
        method: Some("unpsl".to_owned()),
        outcomes: vec!["disease".to_owned()],
        features: vec!["age".to_owned(), "chol".to_owned()],
        sites: 3,
        permissions: BTreeSet::new(),
        round_limit: 100,
        folds: 1,
        validation: None,
        queries: 0,
    }
}

fn cohort(patients: u64) -> CohortFacts {
    CohortFacts {
        patients,
        classes: vec![patients / 2, patients - patients / 2],
        runs_before: 0,
        rounds_before: 0,
        so_far: SoFar::default(),
        difference: None,
        border: 4,
        queries_before: 0,
        groupings_before: 0,
    }
}

fn policy(rules: Rules) -> Policy {
    Policy::new(rules).unwrap()
}

/// A job that asks for everything, where everything is permitted.
fn everything() -> Admission {
    let permissions: BTreeSet<Permission> = Permission::ALL.into();
    let rules = Rules {
        permissions: permissions.clone(),
        ..open_lists()
    };
    let job = JobFacts {
        permissions,
        ..job()
    };
    policy(rules).admit(&job).unwrap()
}

fn gate(patients: u64) -> Gate {
    everything().cohort(&cohort(patients)).unwrap()
}

fn released(patients: u64, message: Message) -> Message {
    gate(patients).release(message).unwrap().into_value()
}

#[test]
fn a_policy_without_a_word_refuses_by_each_of_its_four_lists() {
    let refusals = Policy::default().refusals(&job());
    let rules: Vec<&str> = refusals
        .iter()
        .map(|refusal| refusal.rule.as_str())
        .collect();
    assert_eq!(
        rules,
        [
            "operators",
            "methods",
            "outcomes",
            "features",
            "contributions"
        ]
    );
    let refusal = Policy::default().admit(&job()).unwrap_err();
    assert_eq!(
        refusal.rule,
        "operators, methods, outcomes, features, contributions"
    );
    assert!(
        refusal
            .text
            .contains("the operator \"researcher\", the site allows none"),
        "{refusal}"
    );
}

#[test]
fn each_list_that_is_unset_refuses_alone_and_by_its_name() {
    type Unset = fn(&mut Rules);
    let table: [(&str, &str, Unset); 4] = [
        ("operators", "\"researcher\"", |rules| {
            rules.operators = Allowed::nothing()
        }),
        ("methods", "\"unpsl\"", |rules| {
            rules.methods = Allowed::nothing()
        }),
        ("outcomes", "\"disease\"", |rules| {
            rules.outcomes = Allowed::nothing()
        }),
        ("features", "\"age\", \"chol\"", |rules| {
            rules.features = Allowed::nothing()
        }),
    ];
    for (rule, asked, unset) in table {
        let mut rules = open_lists();
        unset(&mut rules);
        let refusal = policy(rules).admit(&job()).unwrap_err();
        assert_eq!(refusal.rule, rule);
        assert!(refusal.text.contains(asked), "{refusal}");
    }
}

#[test]
fn only_what_is_not_listed_is_named() {
    let mut asked = job();
    asked.features.push("ssn".to_owned());
    let refusal = policy(open_lists()).admit(&asked).unwrap_err();
    let text = "the job asks for the features \"ssn\", the site allows \"age\", \"chol\"";
    assert_eq!(
        refusal,
        Refusal {
            rule: "features".to_owned(),
            text: text.to_owned()
        }
    );
    let star = Rules {
        features: Allowed::listed(["*"]),
        ..open_lists()
    };
    assert!(policy(star).admit(&asked).is_ok());
}

#[test]
fn what_is_asked_beyond_a_limit_is_refused_before_the_cohort_is_read() {
    let asked = JobFacts {
        sites: 3,
        permissions: Permission::ALL.into(),
        round_limit: 2_001,
        ..job()
    };
    let refusal = policy(open_lists()).admit(&asked).unwrap_err();
    assert_eq!(
        refusal.rule,
        "second_moments, forests, neighbours, clusters, rounds_per_cohort_max"
    );
    let none = Rules {
        runs_per_cohort_max: 0,
        ..open_lists()
    };
    assert_eq!(
        policy(none).admit(&job()).unwrap_err().rule,
        "runs_per_cohort_max"
    );
}

#[test]
fn each_rule_of_a_cohort_refuses_by_its_name_and_at_its_border() {
    let admission = policy(open_lists()).admit(&job()).unwrap();
    let fine = cohort(20);
    assert!(admission.cohort(&fine).is_ok());
    let table = [
        (
            "patients_min",
            CohortFacts {
                patients: 9,
                classes: vec![],
                ..fine.clone()
            },
        ),
        (
            "class_patients_min",
            CohortFacts {
                classes: vec![9, 11],
                ..fine.clone()
            },
        ),
        (
            "class_patients_min",
            CohortFacts {
                classes: vec![0, 20],
                ..fine.clone()
            },
        ),
        (
            "runs_per_cohort_max",
            CohortFacts {
                runs_before: 20,
                ..fine.clone()
            },
        ),
        (
            "rounds_per_cohort_max",
            CohortFacts {
                rounds_before: 1_901,
                ..fine.clone()
            },
        ),
        (
            "cohort_difference_min",
            CohortFacts {
                difference: Some(1),
                ..fine.clone()
            },
        ),
        (
            "cohort_difference_min",
            CohortFacts {
                difference: Some(9),
                ..fine.clone()
            },
        ),
    ];
    for (rule, facts) in table {
        assert_eq!(admission.cohort(&facts).unwrap_err().rule, rule);
    }
    let at_border = [
        CohortFacts {
            patients: 10,
            classes: vec![],
            ..fine.clone()
        },
        CohortFacts {
            runs_before: 19,
            rounds_before: 1_900,
            ..fine.clone()
        },
        CohortFacts {
            difference: Some(10),
            ..fine.clone()
        },
        CohortFacts {
            difference: Some(0),
            ..fine
        },
    ];
    for facts in at_border {
        assert!(admission.cohort(&facts).is_ok());
    }
}

#[test]
fn a_refused_cohort_does_not_tell_its_counts() {
    let facts = CohortFacts {
        classes: vec![7, 13],
        ..cohort(20)
    };
    let refusal = policy(open_lists())
        .admit(&job())
        .unwrap()
        .cohort(&facts)
        .unwrap_err();
    assert!(
        !refusal.text.contains('7') && !refusal.text.contains("13"),
        "{refusal}"
    );
    assert!(!format!("{facts:?}").contains('7'));
}

#[test]
fn a_cohort_below_the_cell_minimum_is_refused_where_the_cohort_minimum_was_lowered() {
    let rules = Rules {
        patients_min: 3,
        class_patients_min: 0,
        ..open_lists()
    };
    let admission = policy(rules).admit(&job()).unwrap();
    assert_eq!(admission.cohort(&cohort(9)).unwrap_err().rule, "cell_min");
}

#[test]
fn a_round_beyond_those_admitted_does_not_leave() {
    let asked = JobFacts {
        round_limit: 3,
        permissions: [Permission::SecondMoments].into(),
        ..job()
    };
    let rules = Rules {
        permissions: asked.permissions.clone(),
        ..open_lists()
    };
    let admission = policy(rules).admit(&asked).unwrap();
    let mut gate = admission
        .cohort(&CohortFacts {
            so_far: SoFar {
                rounds: 1,
                ..SoFar::default()
            },
            ..cohort(20)
        })
        .unwrap();
    assert_eq!(gate.rounds_left(), 2);
    assert!(gate.release(Message::Update).is_ok());
    assert!(gate.release(Message::Update).is_ok());
    assert_eq!(
        gate.release(Message::Update).unwrap_err().rule,
        "rounds_per_cohort_max"
    );
    assert!(gate.release(Message::Ready).is_ok());
}

#[test]
fn what_is_no_round_leaves_once_a_run_and_again_only_as_it_was() {
    let once = [Message::SecondMoments, Message::Tables(Vec::new())];
    for message in once {
        let admission = everything();
        let mut gate = admission.cohort(&cohort(100)).unwrap();
        assert!(gate.release(message.clone()).is_ok());
        let twice = gate.release(message.clone()).unwrap_err();
        assert_eq!(twice.rule, "once_a_run");
        assert!(gate.repeat(message.clone(), |_| true).is_ok());
        let other = gate.repeat(message.clone(), |_| false).unwrap_err();
        assert_eq!(other.rule, "same_answer");
        // Started again, the gate knows it from the books.
        let told = CohortFacts {
            so_far: SoFar {
                kinds: ["message".to_owned()].into(),
                ..SoFar::default()
            },
            ..cohort(100)
        };
        let mut gate = admission.cohort(&told).unwrap();
        assert_eq!(gate.release(message).unwrap_err().rule, "once_a_run");
    }
}

#[test]
fn a_round_that_is_told_again_costs_none_and_is_withheld_as_before() {
    let mut gate = gate(100);
    let left = gate.rounds_left();
    assert!(gate.release(Message::Update).is_ok());
    assert!(gate.repeat(Message::Update, |_| true).is_ok());
    assert_eq!(gate.rounds_left(), left - 1);
    let exact = told(&[[41, 9], [20, 30]]);
    let same = |message: &Message| *message == told(&[[40, 10], [20, 30]]);
    assert!(gate.repeat(exact, same).is_ok());
}

#[test]
fn a_metric_that_is_too_steep_shuts_the_gate_for_good() {
    // 100, or 4 per column: so the common start of a metric of many columns passes.
    for (similarity, columns, wanted) in [
        (100.0, 8, true),
        (100.1, 8, false),
        (100.1, 26, true),
        (104.1, 26, false),
        (f64::NAN, 8, false),
        (f64::INFINITY, 8, false),
    ] {
        let mut gate = gate(100);
        assert_eq!(gate.brake(similarity, columns).is_ok(), wanted);
        let after = gate.release(Message::Update);
        assert_eq!(after.is_ok(), wanted);
        if !wanted {
            assert_eq!(after.unwrap_err().rule, "similarity_max");
            assert!(gate.brake(1.0, 8).is_err());
            assert!(gate.repeat(Message::Ready, |_| true).is_err());
        }
    }
    let shut = CohortFacts {
        so_far: SoFar {
            shut: true,
            ..SoFar::default()
        },
        ..cohort(100)
    };
    let admission = policy(open_lists()).admit(&job()).unwrap();
    assert_eq!(admission.cohort(&shut).unwrap_err().rule, "similarity_max");
}

#[test]
fn a_job_of_fewer_sites_and_one_description_too_many_are_refused() {
    let asked = JobFacts { sites: 2, ..job() };
    let refusal = policy(open_lists()).admit(&asked).unwrap_err();
    assert_eq!(refusal.rule, "sites_min");
    let policy = policy(open_lists());
    assert!(policy.describe(49).is_ok());
    assert_eq!(
        policy.describe(50).unwrap_err().rule,
        "descriptions_per_day_max"
    );
}

#[test]
fn what_was_not_admitted_does_not_leave() {
    let table = [
        ("patients_min", Message::Cohort(99, vec![50, 49])),
        ("patients_min", Message::Cohort(100, vec![40, 60])),
        (
            "cell_min",
            Message::Levels {
                patients: 100,
                counts: vec![50, 49],
                missing: 0,
            },
        ),
        (
            "cell_min",
            Message::Levels {
                patients: 100,
                counts: vec![u64::MAX, 101],
                missing: 0,
            },
        ),
    ];
    for (rule, message) in table {
        assert_eq!(gate(100).release(message).unwrap_err().rule, rule);
    }
    let message = Message::Cohort(100, vec![50, 50]);
    assert_eq!(released(100, message.clone()), message);
}

#[test]
fn small_levels_become_none_or_the_minimum_and_the_largest_takes_up_the_difference() {
    // By hand: 4 is nearer to 0, 5 to 10; the totals stay.
    let table = [
        ((vec![4, 4, 17, 98], 0), (vec![0, 0, 17, 106], 0)),
        ((vec![166, 18, 117], 2), (vec![168, 18, 117], 0)),
        ((vec![5, 100, 200], 9), (vec![10, 100, 194], 10)),
        ((vec![0, 0, 50], 0), (vec![0, 0, 50], 0)),
        ((vec![1, 2, 0], 100), (vec![0, 0, 0], 103)),
        ((vec![7, 7, 7], 0), (vec![11, 10, 0], 0)),
        ((vec![9, 9, 9, 9], 0), (vec![16, 10, 10, 0], 0)),
        ((vec![5, 5], 0), (vec![10, 0], 0)),
    ];
    for ((counts, missing), (wanted, wanted_missing)) in table {
        let patients = counts.iter().sum::<u64>() + missing;
        let rules = Rules {
            class_patients_min: 0,
            ..open_lists()
        };
        let admission = policy(rules).admit(&job()).unwrap();
        let mut gate = admission.cohort(&cohort(patients)).unwrap();
        let message = Message::Levels {
            patients,
            counts,
            missing,
        };
        let wanted = Message::Levels {
            patients,
            counts: wanted,
            missing: wanted_missing,
        };
        assert_eq!(gate.release(message).unwrap().into_value(), wanted);
    }
}

#[test]
fn sums_over_few_values_are_left_out_and_whole_columns_are_kept() {
    let few = Message::Numeric {
        patients: 294,
        count: 3,
        sum: 2.0,
        sum_squares: 4.0,
        missing: 291,
    };
    let none = Message::Numeric {
        patients: 294,
        count: 0,
        sum: 0.0,
        sum_squares: 0.0,
        missing: 294,
    };
    assert_eq!(released(294, few), none);
    assert_eq!(released(294, none.clone()), none);
    let whole = Message::Numeric {
        patients: 30,
        count: 30,
        sum: 61.5,
        sum_squares: 300.0,
        missing: 0,
    };
    assert_eq!(released(30, whole.clone()), whole);
    let half = Message::Numeric {
        patients: 30,
        count: 15,
        sum: 61.5,
        sum_squares: 300.0,
        missing: 15,
    };
    assert_eq!(released(30, half.clone()), half);
}

#[test]
fn a_few_missing_numbers_stand_at_the_mean_rounded_as_the_values_are() {
    // 28 whole numbers with the mean 131.25: two more of 131, not of 131.25.
    let sums = Message::Numeric {
        patients: 30,
        count: 28,
        sum: 3_675.0,
        sum_squares: 490_000.0,
        missing: 2,
    };
    let wanted = Message::Numeric {
        patients: 30,
        count: 30,
        sum: 3_675.0 + 2.0 * 131.0,
        sum_squares: 490_000.0 + 2.0 * 131.0 * 131.0,
        missing: 0,
    };
    assert_eq!(released(30, sums), wanted);
}

#[test]
fn the_sum_of_a_yes_or_no_is_a_count_and_is_withheld_like_one() {
    // Coded 0 and 1, then 1 and 2: four of 100 say yes.
    let coded_0_1 = Message::Numeric {
        patients: 100,
        count: 100,
        sum: 4.0,
        sum_squares: 4.0,
        missing: 0,
    };
    let nobody = Message::Numeric {
        patients: 100,
        count: 100,
        sum: 0.0,
        sum_squares: 0.0,
        missing: 0,
    };
    assert_eq!(released(100, coded_0_1), nobody);
    let coded_1_2 = Message::Numeric {
        patients: 100,
        count: 100,
        sum: 96.0 + 8.0,
        sum_squares: 96.0 + 16.0,
        missing: 0,
    };
    let all_one = Message::Numeric {
        patients: 100,
        count: 100,
        sum: 100.0,
        sum_squares: 100.0,
        missing: 0,
    };
    assert_eq!(released(100, coded_1_2), all_one);
}

#[test]
fn whether_a_table_leaves_depends_on_who_is_judged_and_never_on_how_many_are_wrong() {
    for wrong in 0..=50 {
        let Message::Tables(tables) =
            released(100, told(&[[50 - wrong, wrong], [wrong, 50 - wrong]]))
        else {
            panic!("a table stays one");
        };
        let table = tables[0].confusion.as_ref().unwrap();
        for (class, row) in table.iter().enumerate() {
            assert_eq!(row.iter().sum::<u64>(), 50);
            let told = row[1 - class];
            assert!(
                told % 10 == 0 && told.abs_diff(wrong) < 10,
                "{wrong}: {told}"
            );
        }
    }
    let Message::Tables(few) = released(100, told(&[[5, 0], [0, 4]])) else {
        panic!("a table stays one");
    };
    assert_eq!(few[0].confusion, None);
}

#[test]
fn a_notice_leaves_without_a_gate_and_nothing_shows_what_it_holds() {
    struct Sorry;
    impl Notice<Message> for Sorry {
        fn into_message(self) -> Message {
            Message::Ready
        }
    }
    let notice: Released<Message> = Released::notice(Sorry);
    assert_eq!(notice.value(), &Message::Ready);
    let update = gate(1_234)
        .release(Message::Cohort(1_234, vec![617, 617]))
        .unwrap();
    for shown in [format!("{update:?}"), format!("{:?}", gate(1_234))] {
        assert!(!shown.contains("617") && !shown.contains("1234"), "{shown}");
    }
}

#[test]
fn lowered_rules_are_said_openly_and_the_defaults_are_none() {
    let own = policy(open_lists()).lowered();
    assert!(
        own.len() == 1 && own[0].starts_with("contributions is \"own\""),
        "{own:?}"
    );
    let open_lists = || Rules {
        contributions: Contributions::Sums,
        ..open_lists()
    };
    assert!(policy(open_lists()).lowered().is_empty());
    let rules = Rules {
        class_patients_min: 8,
        runs_per_cohort_max: 21,
        ..open_lists()
    };
    let wanted = [
        "class_patients_min is 8, lowered from 10.",
        "runs_per_cohort_max is 21, raised from 20.",
    ];
    assert_eq!(policy(rules).lowered(), wanted);
    let stricter = Rules {
        patients_min: 50,
        rounds_per_cohort_max: 10,
        ..open_lists()
    };
    assert!(policy(stricter).lowered().is_empty());
}

#[test]
fn rules_that_nobody_can_mean_are_no_policy() {
    let rules = Rules {
        cell_min: 0,
        similarity_max: f64::NAN,
        contributions: Contributions::Own,
        ..Rules::default()
    };
    let invalid = Policy::new(rules).unwrap_err();
    let names: Vec<&str> = invalid.iter().map(|invalid| invalid.rule).collect();
    assert_eq!(names, ["cell_min", "similarity_max"]);
}

#[test]
fn fingerprints_count_the_patients_that_differ_whatever_their_order() {
    let key = FingerprintKey::new([7; 32]);
    let first = Fingerprint::new(&key, ["a", "b", "c", "d"]);
    let same = Fingerprint::new(&key, ["d", "c", "b", "a"]);
    let other = Fingerprint::new(&key, ["a", "b", "x", "y", "z"]);
    assert_eq!(
        (first.identity(), first.difference(&same)),
        (same.identity(), 0)
    );
    assert_eq!((first.difference(&other), other.difference(&first)), (5, 5));
    let twice = Fingerprint::new(&key, ["a", "a", "b", "c", "d"]);
    assert_eq!(first.difference(&twice), 1);
    let elsewhere = Fingerprint::new(&FingerprintKey::new([8; 32]), ["a", "b", "c", "d"]);
    assert_eq!(first.difference(&elsewhere), 8);
    assert_eq!(
        Fingerprint::from_bytes(&first.to_bytes()),
        Ok(first.clone())
    );
    assert!(Fingerprint::from_bytes(&first.to_bytes()[1..]).is_err());
    assert_eq!(
        format!("{first:?}{key:?}"),
        "Fingerprint(..)FingerprintKey(..)"
    );
}

proptest! {
    #[test]
    fn no_released_count_lies_below_the_minimum_and_none_is_lost(
        counts in prop::collection::vec(0_u64..40, 1..7),
        missing in 0_u64..40,
        cell_min in 1_u64..25,
    ) {
        let patients = counts.iter().sum::<u64>() + missing;
        let rules = Rules { patients_min: 1, class_patients_min: 0, cell_min, ..open_lists() };
        let admission = policy(rules).admit(&job()).unwrap();
        prop_assume!(patients >= cell_min);
        let mut gate = admission.cohort(&cohort(patients)).unwrap();
        let message = Message::Levels { patients, counts: counts.clone(), missing };
        let Message::Levels { counts: told, missing: told_missing, .. } =
            gate.release(message).unwrap().into_value() else { panic!("another message") };
        prop_assert_eq!(told.iter().sum::<u64>() + told_missing, patients);
        let all_true: Vec<u64> = counts.iter().copied().chain([missing]).collect();
        let all_told: Vec<u64> = told.iter().copied().chain([told_missing]).collect();
        prop_assert!(all_told.iter().all(|cell| *cell == 0 || *cell >= cell_min), "{:?}", all_told);
        if all_true.iter().all(|cell| *cell == 0 || *cell >= cell_min) {
            prop_assert_eq!(all_told, all_true);
        }
    }

    #[test]
    fn sums_stay_those_of_a_whole_column_with_the_same_mean(
        values in prop::collection::vec(-50_i32..50, 0..60),
        missing in 0_u64..60,
    ) {
        let count = values.len() as u64;
        let patients = count + missing;
        prop_assume!(patients >= 10);
        let rules = Rules { class_patients_min: 0, ..open_lists() };
        let admission = policy(rules).admit(&job()).unwrap();
        let mut gate = admission.cohort(&cohort(patients)).unwrap();
        let sum: f64 = values.iter().copied().map(f64::from).sum();
        let sum_squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
        let message = Message::Numeric { patients, count, sum, sum_squares, missing };
        let Message::Numeric { count: told, sum: told_sum, missing: told_missing, .. } =
            gate.release(message).unwrap().into_value() else { panic!("another message") };
        prop_assert_eq!(told + told_missing, patients);
        prop_assert!(told == 0 || told >= 10);
        prop_assert!(told_missing == 0 || told_missing >= 10);
        // The sum of whole numbers stays whole: it does not tell how many were filled in.
        prop_assert_eq!(told_sum.fract(), 0.0);
        if count >= 10 && told > 0 {
            let moved = (told_sum / told as f64 - sum / count as f64).abs();
            let filled = told.abs_diff(count) as f64;
            prop_assert!(moved <= 0.5 * filled / told as f64 + 1e-9, "moved by {}", moved);
        }
    }
}

/// A histogram with one cell a count.
fn histogram(counts: &[u64]) -> Message {
    Message::Histogram {
        ends: (1..).take(counts.len()).collect(),
        counts: counts.to_vec(),
    }
}

#[test]
fn small_groups_of_a_histogram_are_joined_and_few_values_are_left_out() {
    let told = |ends: &[u32], counts: &[u64]| Message::Histogram {
        ends: ends.to_vec(),
        counts: counts.to_vec(),
    };
    // The last three are too few for a group of their own.
    let whole = released(40, histogram(&[4, 7, 12, 0, 14, 3]));
    assert_eq!(whole, told(&[2, 3, 6], &[11, 12, 17]));
    // 3 of 40 are missing: they count as present, as in the moments.
    let few_missing = released(40, histogram(&[10, 10, 17]));
    assert_eq!(few_missing, told(&[1, 2, 3], &[10, 10, 20]));
    // 7 of 27 are missing: they count as 10, and the groups of 10 cannot give 3 and stay apart.
    let more_missing = released(27, histogram(&[10, 10]));
    assert_eq!(more_missing, told(&[2], &[17]));
    assert_eq!(released(40, histogram(&[9])), told(&[], &[]));
}

#[test]
fn a_histogram_that_is_not_of_the_cohort_is_refused() {
    for message in [
        histogram(&[30, 11]),
        Message::Histogram {
            ends: vec![2, 2],
            counts: vec![20, 20],
        },
        Message::Histogram {
            ends: vec![2],
            counts: vec![20, 20],
        },
    ] {
        assert!(gate(40).release(message).is_err());
    }
}

proptest! {
    #[test]
    fn a_released_histogram_tells_of_no_few_patients_and_agrees_with_the_moments(
        counts in proptest::collection::vec(0..25_u64, 1..40), missing in 0..40_u64,
    ) {
        let present: u64 = counts.iter().sum();
        let patients = present + missing;
        // Both classes must be large enough for the cohort to be admitted.
        prop_assume!(patients >= 30);
        let cells = u32::try_from(counts.len()).unwrap();
        let message = released(patients, histogram(&counts));
        let Message::Histogram { ends, counts } = message else { panic!() };
        // Not whole, so that the sums are of no two values.
        let moments = Message::Numeric {
            patients,
            count: present,
            sum: 0.3 * present as f64,
            sum_squares: present as f64,
            missing,
        };
        let Message::Numeric { count, .. } = released(patients, moments) else { panic!() };
        prop_assert_eq!(counts.iter().sum::<u64>(), count);
        prop_assert!(counts.iter().all(|count| *count >= 10));
        prop_assert!(ends.is_sorted_by(|before, end| before < end));
        prop_assert!(ends.last().is_none_or(|last| *last == cells));
    }
}
