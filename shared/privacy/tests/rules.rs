//! What may leave a site: closed by default, every rule by its name.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "support/covering.rs"]
mod support;

use privacy::sums::{Number, Summand};
use privacy::{
    Admission, Allowed, CohortFacts, Content, Covered, Disclosure, Fingerprint, FingerprintKey,
    Gate, JobFacts, Limits, Notice, Permission, Policy, Refusal, Released, Rules, SoFar, Steepness,
    Table, publish,
};
use std::collections::BTreeSet;
use support::{cover, cover_again};

/// What a rule of prediction told.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    confusion: Option<Vec<Vec<u64>>>,
    scores: Option<Vec<Vec<u64>>>,
    rounded_to: u64,
    gains: [Option<[f64; 5]>; 2],
}

/// A message with every kind of content, as a test needs it.
#[derive(Clone, Debug, PartialEq)]
enum Message {
    Ready,
    Cohort(u64, Vec<u64>),
    Update,
    Tables(Vec<Told>),
}

impl Disclosure for Message {
    fn kind(&self) -> &'static str {
        "message"
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        let content = match self {
            Self::Ready => return Vec::new(),
            Self::Cohort(patients, classes) => Content::Cohort {
                patients: *patients,
                classes,
            },
            Self::Update => Content::LocalUpdate,
            Self::Tables(told) => Content::Tables(
                told.iter_mut()
                    .map(|told| Table {
                        confusion: &mut told.confusion,
                        scores: &mut told.scores,
                        rounded_to: &mut told.rounded_to,
                        judged: 20,
                        gains: told.gains.each_mut(),
                    })
                    .collect(),
            ),
        };
        vec![content]
    }
}

impl Summand for Message {
    fn numbers(&mut self, _: &mut dyn FnMut(Number<'_>)) {}
}

impl From<Covered> for Message {
    fn from(_: Covered) -> Self {
        Self::Ready
    }
}

fn told(confusion: &[[u64; 2]]) -> Message {
    Message::Tables(vec![Told {
        confusion: Some(confusion.iter().map(|row| row.to_vec()).collect()),
        scores: None,
        rounded_to: 10,
        gains: [None; 2],
    }])
}

fn open_lists() -> Rules {
    Rules {
        operators: Allowed::listed(["researcher"]),
        methods: Allowed::listed(["unpsl"]),
        ..Rules::default()
    }
}

fn job() -> JobFacts {
    JobFacts {
        operator: "researcher".to_owned(),
        method: Some("unpsl".to_owned()),
        limits: None,
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
        judged: None,
        patients,
        classes: vec![patients / 2, patients - patients / 2],
        so_far: SoFar::default(),
    }
}

fn policy(rules: Rules) -> Policy {
    Policy::new(rules).unwrap()
}

/// What a policy says to a job that is the first of its study.
fn admit(rules: Rules, job: &JobFacts) -> Result<Admission, Refusal> {
    policy(rules).admit(job, &Limits::default())
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
    admit(rules, &job).unwrap()
}

fn gate(patients: u64) -> Gate {
    everything().cohort(&cohort(patients)).unwrap()
}

#[test]
fn a_policy_without_a_word_refuses_by_each_of_its_two_lists() {
    let refusals = Policy::default().refusals(&job(), &Limits::default());
    let rules: Vec<&str> = refusals
        .iter()
        .map(|refusal| refusal.rule.as_str())
        .collect();
    assert_eq!(rules, ["operators", "methods"]);
    let refusal = admit(Rules::default(), &job()).unwrap_err();
    assert_eq!(refusal.rule, "operators, methods");
    assert!(
        refusal
            .text
            .contains("the operator \"researcher\", the site allows none"),
        "{refusal}"
    );
}

#[test]
fn only_what_is_not_listed_is_named() {
    let asked = JobFacts {
        method: Some("forest".to_owned()),
        ..job()
    };
    let refusal = admit(open_lists(), &asked).unwrap_err();
    let text = "the job asks for the method \"forest\", the site allows \"unpsl\"";
    assert_eq!(
        refusal,
        Refusal {
            rule: "methods".to_owned(),
            text: text.to_owned()
        }
    );
    let star = Rules {
        methods: Allowed::listed(["*"]),
        ..open_lists()
    };
    assert!(admit(star, &asked).is_ok());
    // Every study has a card.
    let card = JobFacts {
        method: None,
        ..job()
    };
    assert!(admit(open_lists(), &card).is_ok());
}

#[test]
fn what_is_asked_beyond_a_limit_is_refused_before_the_cohort_is_read() {
    let asked = JobFacts {
        permissions: Permission::ALL.into(),
        round_limit: 5_001,
        ..job()
    };
    let refusal = admit(open_lists(), &asked).unwrap_err();
    assert_eq!(
        refusal.rule,
        "second_moments, pair_sums, forests, neighbours, exact_sums, clusters, rounds"
    );
}

/// Every limit at its border, by the key that is beyond it.
#[test]
fn a_job_takes_what_is_left_of_its_study_and_no_more() {
    let limits = Limits {
        runs: 3,
        rounds: 150,
        queries: 40,
        metrics_for_groups: 1,
    };
    let asked = JobFacts {
        limits: Some(limits),
        queries: 10,
        ..job()
    };
    let said = |used: [u64; 4]| {
        let judged = policy(open_lists()).admit(&asked, &Limits::of(used));
        judged
            .err()
            .map_or_else(String::new, |refusal| refusal.rule)
    };
    assert_eq!(said([2, 50, 30, 0]), "");
    assert_eq!(said([3, 50, 30, 0]), "runs");
    assert_eq!(said([2, 51, 30, 0]), "rounds");
    assert_eq!(said([2, 50, 31, 0]), "queries");
    assert_eq!(said([2, 50, u64::MAX, 0]), "queries");
    assert_eq!(said([2, 50, 30, 1]), "metrics_for_groups");
    assert_eq!(
        said([3, 51, 31, 1]),
        "runs, rounds, queries, metrics_for_groups"
    );
    let refusal = policy(open_lists())
        .admit(&asked, &Limits::of([3, 51, 0, 0]))
        .unwrap_err();
    assert_eq!(
        refusal.text,
        "runs is 3, of which 3 are used, and the job asks for 1; rounds is 150, of which 51 are used, and the job asks for 100"
    );
    // Who asks about nobody needs no grouping.
    let plain = JobFacts {
        queries: 0,
        ..asked.clone()
    };
    let used = Limits::of([2, 50, 40, 1]);
    assert!(policy(open_lists()).admit(&plain, &used).is_ok());
    // A site's own ceilings hold where they are lower.
    let low = Rules {
        ceilings: Limits { runs: 2, ..limits },
        ..open_lists()
    };
    let refusal = policy(low).admit(&asked, &Limits::of([2, 0, 0, 0]));
    assert_eq!(refusal.unwrap_err().rule, "runs");
}

#[test]
fn each_rule_of_a_cohort_refuses_by_its_name_and_at_its_border() {
    let admission = admit(open_lists(), &job()).unwrap();
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
    ];
    for (rule, facts) in table {
        assert_eq!(admission.cohort(&facts).unwrap_err().rule, rule);
    }
    let at_border = [CohortFacts {
        patients: 10,
        classes: vec![],
        ..fine.clone()
    }];
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
    let admission = admit(open_lists(), &job()).unwrap();
    let refusal = admission.cohort(&facts).unwrap_err();
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
    let admission = admit(rules, &job()).unwrap();
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
    let admission = admit(rules, &asked).unwrap();
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
    assert!(cover(&mut gate, Message::Update).is_ok());
    assert!(cover(&mut gate, Message::Update).is_ok());
    assert_eq!(
        cover(&mut gate, Message::Update).unwrap_err().rule,
        "rounds"
    );
    assert!(gate.release(Message::Ready).is_ok());
}

#[test]
fn a_round_that_is_told_again_costs_none_and_leaves_only_as_it_was() {
    let mut gate = gate(100);
    let left = gate.rounds_left();
    assert!(cover(&mut gate, Message::Update).is_ok());
    assert!(cover_again(&gate, Message::Update, true).is_ok());
    assert_eq!(gate.rounds_left(), left - 1);
    let other = cover_again(&gate, Message::Update, false).unwrap_err();
    assert_eq!(other.rule, "same_answer");
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
        let metric = Steepness::Metric {
            similarity,
            columns,
        };
        assert_eq!(gate.brake(metric).is_ok(), wanted);
        let after = cover(&mut gate, Message::Update);
        assert_eq!(after.is_ok(), wanted);
        if !wanted {
            assert_eq!(after.unwrap_err().rule, "steepness");
            let gentle = Steepness::Metric {
                similarity: 1.0,
                columns: 8,
            };
            assert!(gate.brake(gentle).is_err());
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
    let admission = admit(open_lists(), &job()).unwrap();
    assert_eq!(admission.cohort(&shut).unwrap_err().rule, "steepness");
}

#[test]
fn a_regression_is_too_steep_by_how_far_it_is_from_a_constant() {
    for (squares, centre, wanted) in [
        (9.0, 0.0, true),
        (9.1, 0.0, false),
        (9.1, 3.0, true),
        (18.1, -3.0, false),
        (f64::NAN, 0.0, false),
        (1.0, f64::NAN, false),
    ] {
        let found = Steepness::Predictor { squares, centre };
        assert_eq!(gate(100).brake(found).is_ok(), wanted);
    }
}

#[test]
fn a_job_of_fewer_sites_is_refused() {
    let asked = JobFacts { sites: 2, ..job() };
    let refusal = admit(open_lists(), &asked).unwrap_err();
    assert_eq!(refusal.rule, "sites_min");
}

#[test]
fn what_was_not_admitted_does_not_leave() {
    for (patients, classes) in [(99, vec![50, 49]), (100, vec![40, 60])] {
        let message = Message::Cohort(patients, classes);
        let refused = cover(&mut gate(100), message).unwrap_err();
        assert_eq!(refused.rule, "patients_min");
    }
    let message = Message::Cohort(100, vec![50, 50]);
    assert!(cover(&mut gate(100), message).is_ok());
}

/// What is published of a sum.
fn published(mut message: Message) -> Vec<Told> {
    publish(message.content());
    match message {
        Message::Tables(told) => told,
        _ => panic!("a table stays one"),
    }
}

#[test]
fn whether_a_table_is_published_depends_on_who_is_judged_and_never_on_how_many_are_wrong() {
    for wrong in 0..=50 {
        let tables = published(told(&[[50 - wrong, wrong], [wrong, 50 - wrong]]));
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
    let few = published(told(&[[5, 0], [0, 4]]));
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
    let cohort = Message::Cohort(1_234, vec![617, 617]);
    let update = cover(&mut gate(1_234), cohort).unwrap();
    for shown in [format!("{update:?}"), format!("{:?}", gate(1_234))] {
        assert!(!shown.contains("617") && !shown.contains("1234"), "{shown}");
    }
}

#[test]
fn lowered_rules_are_said_openly_and_the_defaults_are_none() {
    assert!(policy(open_lists()).lowered().is_empty());
    let usual = Rules::default().ceilings;
    let rules = Rules {
        class_patients_min: 8,
        ceilings: Limits {
            runs: 101,
            metrics_for_groups: 2,
            ..usual
        },
        ..open_lists()
    };
    let wanted = [
        "class_patients_min is 8, lowered from 10.",
        "runs_max is 101, raised from 100.",
        "metrics_for_groups_max is 2, raised from 1.",
    ];
    assert_eq!(policy(rules).lowered(), wanted);
    let stricter = Rules {
        patients_min: 50,
        ceilings: Limits {
            rounds: 10,
            ..usual
        },
        ..open_lists()
    };
    assert!(policy(stricter).lowered().is_empty());
}

#[test]
fn rules_that_nobody_can_mean_are_no_policy() {
    let rules = Rules {
        cell_min: 0,
        sites_min: 0,
        ..Rules::default()
    };
    let invalid = Policy::new(rules).unwrap_err();
    let names: Vec<&str> = invalid.iter().map(|invalid| invalid.rule).collect();
    assert_eq!(names, ["cell_min", "sites_min"]);
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
    // In the first alone c and d, in the second alone x, y and z, in both a and b; then the same with a third, whom a is in.
    assert_eq!(Fingerprint::lots(&[&first, &other]), [2, 3, 2]);
    let third = Fingerprint::new(&key, ["a", "z"]);
    let wanted = [2, 2, 1, 0, 0, 1, 1];
    assert_eq!(Fingerprint::lots(&[&first, &other, &third]), wanted);
    let nobody = Fingerprint::default();
    assert_eq!(Fingerprint::lots(&[&nobody, &third, &nobody])[1], 2);
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

#[test]
fn patients_leave_a_cohort_by_which_others_have_them() {
    let key = FingerprintKey::new([7; 32]);
    let of = |ids: &[&str]| Fingerprint::new(&key, ids);
    let all = of(&["a", "b", "c", "d", "d", "e"]);
    let outcomes = [of(&["a", "b", "d", "d", "x"]), of(&["a", "c", "x"])];
    // Exactly the first: b, and d twice; exactly both: a; exactly the second: c; neither: e.
    assert_eq!(all.without(&outcomes, &[1]), of(&["a", "c", "e"]));
    assert_eq!(all.without(&outcomes, &[2, 3]), of(&["b", "d", "d", "e"]));
    assert_eq!(all.without(&outcomes, &[0]), of(&["a", "b", "c", "d", "d"]));
    assert_eq!(all.without(&outcomes, &[]), all);
}
