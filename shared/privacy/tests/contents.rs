//! Promise: a message is judged by its parts. It costs the most that any of them costs, it needs every permission that
//! any of them needs, and each of them is withheld by its own rule.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "support/covering.rs"]
mod support;

use privacy::sums::{Number, Summand};
use privacy::{
    Allowed, CohortFacts, Content, Cost, Covered, Disclosure, ErrorSums, Errors, Gate,
    HeldOutVotes, JobFacts, Limits, Permission, Policy, Refusal, Rules, SoFar, Table, TerminalNode,
    publish,
};
use std::collections::BTreeSet;
use support::{cover, cover_again};

/// One part of a message, with numbers of its own.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Cohort,
    Columns,
    Histograms,
    SecondMoments,
    Tables(Told),
    HeldOut(Option<HeldOutVotes>),
    Errors(Option<ErrorSums>),
    Nodes,
    LocalUpdate,
    PairSums,
    Groups(u64, u64),
    Clusters(&'static [u64]),
    Tabulated,
}

/// What a rule of prediction told.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    confusion: Option<Vec<Vec<u64>>>,
    scores: Option<Vec<Vec<u64>>>,
    rounded_to: u64,
    judged: u64,
    gains: [Option<[f64; 5]>; 2],
}

const NOTHING: Told = Told {
    confusion: None,
    scores: None,
    rounded_to: 10,
    judged: 9,
    gains: [None; 2],
};

#[derive(Clone, Debug, PartialEq)]
struct Message(Vec<Part>);

impl Part {
    fn content(&mut self) -> Content<'_> {
        match self {
            Self::Cohort => Content::Cohort {
                patients: PATIENTS,
                classes: &[],
            },
            Self::Columns => Content::Columns {
                patients: PATIENTS,
                columns: Vec::new(),
            },
            Self::Histograms => Content::Histograms(Vec::new()),
            Self::SecondMoments => Content::SecondMoments,
            Self::Tables(told) => Content::Tables(vec![Table {
                confusion: &mut told.confusion,
                scores: &mut told.scores,
                rounded_to: &mut told.rounded_to,
                judged: told.judged,
                gains: told.gains.each_mut(),
            }]),
            Self::HeldOut(counts) => Content::HeldOut(vec![counts]),
            Self::Errors(sums) => Content::Errors(vec![Errors::Counted(sums)]),
            Self::Nodes => Content::Nodes(vec![TerminalNode::Mean { patients: PATIENTS }]),
            Self::LocalUpdate => Content::LocalUpdate,
            Self::PairSums => Content::PairSums,
            Self::Tabulated => Content::Tabulated,
            Self::Groups(groups, patients) => Content::Groups {
                groups: *groups,
                patients: *patients,
            },
            Self::Clusters(counts) => Content::Clusters(counts.to_vec()),
        }
    }
}

impl Disclosure for Message {
    fn kind(&self) -> &'static str {
        "message"
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        self.0.iter_mut().map(Part::content).collect()
    }
}

impl Summand for Message {
    fn numbers(&mut self, _: &mut dyn FnMut(Number<'_>)) {}
}

impl From<Covered> for Message {
    fn from(_: Covered) -> Self {
        Self(Vec::new())
    }
}

const PATIENTS: u64 = 100;

/// Every kind of part, with what it costs and needs by itself.
const PARTS: [(Part, Cost, Option<Permission>); 13] = [
    (Part::Cohort, Cost::Nothing, None),
    (Part::Columns, Cost::Message, None),
    (Part::Histograms, Cost::Message, None),
    (Part::Tabulated, Cost::Message, None),
    (
        Part::SecondMoments,
        Cost::Message,
        Some(Permission::SecondMoments),
    ),
    (Part::Tables(NOTHING), Cost::Message, None),
    (Part::Errors(None), Cost::Message, None),
    (Part::HeldOut(None), Cost::Rounds(1), None),
    (Part::Nodes, Cost::Rounds(1), Some(Permission::Forests)),
    (
        Part::LocalUpdate,
        Cost::Rounds(1),
        Some(Permission::SecondMoments),
    ),
    (Part::PairSums, Cost::Rounds(1), Some(Permission::PairSums)),
    (
        Part::Groups(2, 24),
        Cost::Nothing,
        Some(Permission::Neighbours),
    ),
    (
        Part::Clusters(&[24, 0]),
        Cost::Nothing,
        Some(Permission::Clusters),
    ),
];

fn job(permissions: &BTreeSet<Permission>, rounds: u64) -> JobFacts {
    JobFacts {
        operator: "researcher".to_owned(),
        method: Some("method".to_owned()),
        limits: None,
        sites: 3,
        permissions: permissions.clone(),
        round_limit: rounds,
        folds: 1,
        validation: None,
        queries: 0,
    }
}

/// The gate of a job that asks for some permissions at a site that grants some.
fn gate(granted: &BTreeSet<Permission>, asked: &BTreeSet<Permission>) -> Result<Gate, Refusal> {
    let rules = Rules {
        operators: Allowed::Everything,
        methods: Allowed::Everything,
        permissions: granted.clone(),
        ..Rules::default()
    };
    Policy::new(rules)
        .unwrap()
        .admit(&job(asked, 2), &Limits::default())?
        .cohort(&cohort())
}

/// A cohort of which nothing has been told.
fn cohort() -> CohortFacts {
    CohortFacts {
        judged: None,
        patients: PATIENTS,
        classes: Vec::new(),
        so_far: SoFar::default(),
    }
}

fn all() -> BTreeSet<Permission> {
    Permission::ALL.into()
}

fn all_but(permission: Permission) -> BTreeSet<Permission> {
    let mut others = all();
    others.remove(&permission);
    others
}

#[test]
fn a_message_costs_all_its_rounds_or_the_most_of_its_parts_in_any_order() {
    assert!(Cost::Nothing < Cost::Message && Cost::Message < Cost::Rounds(1));
    assert_eq!(Cost::of(&[]), Cost::Nothing);
    for (first, first_cost, _) in PARTS {
        assert_eq!(
            Cost::of(&[first.clone().content()]),
            first_cost,
            "{first:?}"
        );
        for (second, second_cost, _) in PARTS {
            let mut message = Message(vec![first.clone(), second]);
            let dearer = match first_cost.rounds() + second_cost.rounds() {
                0 => first_cost.max(second_cost),
                rounds => Cost::Rounds(rounds),
            };
            assert_eq!(Cost::of(&message.content()), dearer, "{message:?}");
        }
    }
}

#[test]
fn the_gate_books_what_the_dearest_part_costs() {
    for (first, ..) in PARTS {
        for (second, ..) in PARTS {
            let mut message = Message(vec![first.clone(), second]);
            let mut gate = gate(&all(), &all()).unwrap();
            // Three times, where two rounds were admitted.
            let released = [0; 3].map(|_| cover(&mut gate, message.clone()).is_ok());
            let (wanted, rounds_left) = match Cost::of(&message.content()) {
                Cost::Nothing | Cost::Message => ([true, true, true], 2),
                Cost::Rounds(1) => ([true, true, false], 0),
                Cost::Rounds(_) => ([true, false, false], 0),
            };
            assert_eq!(
                (released, gate.rounds_left()),
                (wanted, rounds_left),
                "{message:?}"
            );
        }
    }
}

/// Trees alone are told as they are, and what says nothing.
#[test]
fn nothing_that_adds_up_leaves_in_the_clear() {
    for (part, ..) in PARTS {
        let is_clear = part == Part::Nodes;
        let mut gate = gate(&all(), &all()).unwrap();
        let found = gate.release(Message(vec![part.clone()]));
        let rule = found.err().map(|refusal| refusal.rule);
        let wanted = (!is_clear).then(|| "sums".to_owned());
        assert_eq!(rule, wanted, "{part:?}");
        assert_eq!(gate.repeat(Message(vec![part]), |_| true).is_ok(), is_clear);
    }
    let mut gate = gate(&all(), &all()).unwrap();
    assert!(gate.release(Message(Vec::new())).is_ok());
}

#[test]
fn each_permission_that_a_site_does_not_grant_refuses_the_job_by_its_name() {
    for permission in Permission::ALL {
        let refusal = gate(&all_but(permission), &all()).err().unwrap();
        assert_eq!(refusal.rule, permission.name());
        assert!(
            refusal.text.ends_with(", which the site does not allow"),
            "{refusal}"
        );
    }
    let refusal = gate(&BTreeSet::new(), &all()).err().unwrap();
    let named: BTreeSet<&str> = refusal.rule.split(", ").collect();
    assert_eq!(named, Permission::ALL.map(Permission::name).into());
}

#[test]
fn what_a_permission_says_when_it_refuses_stays_as_it_was() {
    for (permission, not_granted, not_asked, part) in [
        (
            Permission::SecondMoments,
            "second_moments: the job's messages tell the second moments of the patients (rounds of UnPSL do), \
             which the site does not allow",
            "second_moments: second moments were not asked for when the job was admitted",
            Part::SecondMoments,
        ),
        (
            Permission::Forests,
            "forests: the job asks for the trees of a forest grown on the patients (scope = \"federated\"), \
             which the site does not allow",
            "forests: trees were not asked for when the job was admitted",
            Part::Nodes,
        ),
    ] {
        let refusal = gate(&all_but(permission), &all()).err().unwrap();
        assert_eq!(refusal.to_string(), not_granted);
        let mut unasked = gate(&all(), &BTreeSet::new()).unwrap();
        let refusal = cover(&mut unasked, Message(vec![part])).unwrap_err();
        assert_eq!(refusal.to_string(), not_asked);
    }
}

#[test]
fn each_permission_that_the_job_did_not_ask_for_refuses_a_message_of_which_one_part_needs_it() {
    let mut refused = BTreeSet::new();
    for (part, _, needed) in PARTS {
        for message in [
            Message(vec![part.clone()]),
            Message(vec![part.clone(), Part::Columns]),
            Message(vec![Part::Columns, part.clone()]),
        ] {
            let Some(needed) = needed else {
                let mut gate = gate(&all(), &BTreeSet::new()).unwrap();
                assert!(cover(&mut gate, message).is_ok());
                continue;
            };
            let mut unasked = gate(&all(), &all_but(needed)).unwrap();
            let refusal = cover(&mut unasked, message.clone()).unwrap_err();
            assert_eq!(refusal.rule, needed.name());
            assert!(
                refusal
                    .text
                    .ends_with("were not asked for when the job was admitted"),
                "{refusal}"
            );
            // Nor does it leave as one that left before.
            assert!(cover_again(&unasked, message.clone(), true).is_err());
            let mut asked = gate(&[needed].into(), &[needed].into()).unwrap();
            assert!(cover(&mut asked, message).is_ok());
            refused.insert(needed);
        }
    }
    // How finely sums are known is no part of a message.
    assert_eq!(refused, all_but(Permission::ExactSums));
}

#[test]
fn what_is_published_of_a_sum_is_withheld_part_by_part() {
    let counts = |right, wrong| {
        Part::HeldOut(Some(HeldOutVotes {
            right,
            wrong,
            log_loss: 20.0,
        }))
    };
    let errors = |error| {
        Part::Errors(Some(ErrorSums {
            total: PATIENTS,
            error,
        }))
    };
    let tables = |confusion: [[u64; 2]; 2], scores: [[u64; 3]; 2]| {
        Part::Tables(Told {
            confusion: Some(confusion.map(|row| row.to_vec()).to_vec()),
            scores: Some(scores.map(|row| row.to_vec()).to_vec()),
            rounded_to: 10,
            judged: confusion.iter().flatten().sum(),
            gains: [None; 2],
        })
    };
    let mut message = Message(vec![
        tables([[41, 9], [2, 48]], [[35, 6, 9], [2, 8, 40]]),
        // Of as few patients as no rule judges.
        tables([[4, 1], [0, 4]], [[3, 1, 1], [0, 0, 4]]),
        counts(40, 10),
        counts(41, 9),
        counts(9, 41),
        counts(45, 5),
        counts(4, 4),
        errors(20.0),
        errors(9.0),
        errors(3.0),
    ]);
    publish(message.content());
    let wanted = [
        // Of 9 wrong ones, then 11, 10 are published; of 9 and 15 above the lowest bin 10 and 20, then of 11 and 19 the same.
        tables([[40, 10], [0, 50]], [[30, 10, 10], [0, 10, 40]]),
        Part::Tables(NOTHING),
        counts(40, 10),
        counts(40, 10),
        counts(10, 40),
        counts(40, 10),
        // Eight patients are judged: too few to tell.
        Part::HeldOut(None),
        errors(20.0),
        errors(10.0),
        errors(0.0),
    ];
    assert_eq!(message.0, wanted);
}

#[test]
fn what_few_patients_differ_by_is_not_published() {
    let sums = Some([1.0; 5]);
    for (judged, wanted) in [(PATIENTS, sums), (9, None)] {
        let mut part = Part::Tables(Told {
            judged,
            gains: [sums; 2],
            ..NOTHING
        });
        publish(vec![part.content()]);
        let wanted = Part::Tables(Told {
            judged,
            gains: [wanted; 2],
            ..NOTHING
        });
        assert_eq!(part, wanted);
    }
}

#[test]
fn no_count_of_a_part_of_a_group_leaves() {
    for (counts, leaves) in [
        (&[0, 10, 1_000][..], true),
        (&[], true),
        (&[10, 9], false),
        (&[1], false),
    ] {
        let mut gate = gate(&all(), &all()).unwrap();
        let found = cover(&mut gate, Message(vec![Part::Clusters(counts)]));
        let rule = found.err().map(|refusal| refusal.rule);
        let wanted = (!leaves).then(|| "cell_min".to_owned());
        assert_eq!(rule, wanted, "{counts:?}");
    }
    for (groups, patients, leaves) in [(0, 0, true), (3, 30, true), (3, 29, false)] {
        let mut gate = gate(&all(), &all()).unwrap();
        let found = cover(&mut gate, Message(vec![Part::Groups(groups, patients)]));
        let rule = found.err().map(|refusal| refusal.rule);
        assert_eq!(rule, (!leaves).then(|| "cell_min".to_owned()), "{groups}");
    }
}
