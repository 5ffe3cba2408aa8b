//! What of a forest may leave a site: no small node, no small count in one.

#![allow(clippy::unwrap_used)] // functions that tests share

use privacy::{
    Allowed, CohortFacts, Content, Disclosure, Gate, JobFacts, Limits, Permission, Policy, Refusal,
    Rules, SoFar, TerminalNode,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The parts of a forest's messages, as a test needs them.
#[derive(Clone, Debug, PartialEq)]
enum Message {
    Classes(u64, Vec<u64>),
    Mean(u64),
    Survival {
        patients: u64,
        ends: Vec<u32>,
        events: Vec<u64>,
        exposures: Vec<f64>,
    },
}

impl Disclosure for Message {
    fn kind(&self) -> &'static str {
        "message"
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        let node = match self {
            Self::Classes(patients, counts) => TerminalNode::Classes {
                patients: *patients,
                counts,
            },
            Self::Mean(patients) => TerminalNode::Mean {
                patients: *patients,
            },
            Self::Survival {
                patients,
                ends,
                events,
                exposures,
            } => TerminalNode::Survival {
                patients: *patients,
                ends,
                events,
                exposures,
            },
        };
        vec![Content::Nodes(vec![node])]
    }
}

fn job() -> JobFacts {
    JobFacts {
        operator: "researcher".to_owned(),
        method: Some("forest".to_owned()),
        limits: None,
        sites: 3,
        permissions: [Permission::Forests].into(),
        round_limit: 1,
        folds: 1,
        validation: None,
        queries: 0,
    }
}

fn rules(permissions: &[Permission]) -> Rules {
    let every = || Allowed::listed(["*"]);
    Rules {
        operators: every(),
        methods: every(),
        permissions: permissions.iter().copied().collect(),
        ..Rules::default()
    }
}

fn gate_of(rules: Rules, job: &JobFacts) -> Result<Gate, Refusal> {
    let cohort = CohortFacts {
        judged: None,
        patients: 100,
        classes: vec![50, 50],
        so_far: SoFar::default(),
    };
    Policy::new(rules)
        .unwrap()
        .admit(job, &Limits::default())?
        .cohort(&cohort)
}

fn gate() -> Gate {
    gate_of(rules(&[Permission::Forests]), &job()).unwrap()
}

fn released(message: Message) -> Message {
    gate().release(message).unwrap().into_value()
}

#[test]
fn trees_leave_only_where_the_site_says_so_and_the_job_asked_for_them() {
    let refused = gate_of(rules(&[]), &job()).err().unwrap();
    assert_eq!(refused.rule, "forests");
    let local = JobFacts {
        permissions: BTreeSet::new(),
        ..job()
    };
    let mut unasked = gate_of(rules(&[Permission::Forests]), &local).unwrap();
    let refused = unasked.release(Message::Mean(50)).unwrap_err();
    assert_eq!(refused.rule, "forests");
    let lowered = Policy::new(rules(&[Permission::Forests]))
        .unwrap()
        .lowered();
    assert!(
        lowered
            .iter()
            .any(|sentence| sentence.starts_with("forests is true"))
    );
}

#[test]
fn trees_are_a_round() {
    let mut once = gate();
    once.release(Message::Mean(10)).unwrap();
    let refused = once.release(Message::Mean(10)).unwrap_err();
    assert_eq!(refused.rule, "rounds");
}

#[test]
fn a_terminal_node_below_either_minimum_is_refused() {
    for (terminal_node_min, cell_min, patients) in [(10, 10, 9), (5, 10, 9), (12, 10, 11)] {
        let rules = Rules {
            terminal_node_min,
            cell_min,
            ..rules(&[Permission::Forests])
        };
        let message = Message::Classes(patients, vec![patients, 0]);
        let refused = gate_of(rules, &job())
            .unwrap()
            .release(message)
            .unwrap_err();
        assert_eq!(refused.rule, "terminal_node_min");
    }
    assert!(gate().release(Message::Classes(20, vec![10, 9])).is_err());
}

#[test]
fn small_class_counts_of_a_terminal_node_are_rounded() {
    let told = |counts: &[u64]| {
        let patients = counts.iter().sum();
        match released(Message::Classes(patients, counts.to_vec())) {
            Message::Classes(_, counts) => counts,
            _ => Vec::new(),
        }
    };
    assert_eq!(told(&[12, 3]), [15, 0]);
    assert_eq!(told(&[11, 8]), [19, 0]);
    assert_eq!(told(&[25, 8]), [23, 10]);
    assert_eq!(told(&[14, 13]), [14, 13]);
}

#[test]
fn hazards_go_by_groups_of_events_and_keep_the_time_at_risk() {
    let told = |patients, events: &[u64]| {
        let message = Message::Survival {
            patients,
            ends: (1..).take(events.len()).collect(),
            events: events.to_vec(),
            exposures: (1..).map(f64::from).take(events.len()).collect(),
        };
        match released(message) {
            Message::Survival {
                ends,
                events,
                exposures,
                ..
            } => (ends, events, exposures),
            _ => (Vec::new(), Vec::new(), Vec::new()),
        }
    };
    // 25 events of 60: a group of 12, and one of 13 with what is left.
    let whole = told(60, &[4, 8, 0, 10, 3]);
    assert_eq!(whole, (vec![2, 5], vec![12, 13], vec![3.0, 12.0]));
    // 3 events of 20 count as none; 6 of 20 as 10.
    assert_eq!(told(20, &[1, 2]), (vec![2], vec![0], vec![3.0]));
    assert_eq!(told(20, &[4, 2]), (vec![2], vec![10], vec![3.0]));
    // 4 censored of 24 count as none.
    assert_eq!(
        told(24, &[10, 10]),
        (vec![1, 2], vec![14, 10], vec![1.0, 2.0])
    );
}

proptest! {
    #[test]
    fn no_small_count_leaves_in_a_terminal_node(
        counts in prop::collection::vec(0_u64..40, 2..5),
        events in prop::collection::vec(0_u64..15, 1..8),
        censored in 0_u64..30,
    ) {
        let patients: u64 = counts.iter().sum();
        if patients >= 10
            && let Message::Classes(_, told) = released(Message::Classes(patients, counts)) {
            prop_assert_eq!(told.iter().sum::<u64>(), patients);
            prop_assert!(told.iter().all(|count| *count == 0 || *count >= 10));
        }
        let patients = events.iter().sum::<u64>() + censored;
        let exposures = vec![1.0; events.len()];
        let ends: Vec<u32> = (1..).take(events.len()).collect();
        if patients >= 10
            && let Message::Survival { events, exposures, ends, .. } = released(
                Message::Survival { patients, ends: ends.clone(), events, exposures: exposures.clone() },
            ) {
            prop_assert!(events.iter().all(|count| *count == 0 || *count >= 10));
            let left = patients - events.iter().sum::<u64>();
            prop_assert!(left == 0 || left >= 10);
            prop_assert_eq!(exposures.iter().sum::<f64>(), ends.last().copied().map_or(0.0, f64::from));
        }
    }
}
