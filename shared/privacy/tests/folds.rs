//! Promise: what leaves of a cross-validation is fitted to a cohort without a fold, and that part passes
//! every minimum that a cohort of its own would have to pass.

#![allow(clippy::unwrap_used)]

#[path = "support/covering.rs"]
mod support;

use privacy::sums::{Number, Summand};
use privacy::{
    Allowed, CohortFacts, Content, Covered, Disclosure, Gate, HeldOut, HeldOutVotes, JobFacts,
    Limits, Policy, Refusal, Rules, SoFar, ValidationFacts,
};
use std::collections::BTreeSet;
use support::{cover, cover_again};

/// The counts of one candidate.
struct Counts(Vec<Option<HeldOutVotes>>);

impl Disclosure for Counts {
    fn kind(&self) -> &'static str {
        "validation"
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        vec![Content::HeldOut(self.0.iter_mut().collect())]
    }
}

impl Summand for Counts {
    fn numbers(&mut self, _: &mut dyn FnMut(Number<'_>)) {}
}

impl From<Covered> for Counts {
    fn from(_: Covered) -> Self {
        Self(Vec::new())
    }
}

/// The rules that refuse so many patients of two classes under so many folds; empty where none does.
fn refused_by(classes: [u64; 2], folds: u64) -> String {
    let refusal = gate(classes, folds, 100).err();
    refusal.map(|refusal| refusal.rule).unwrap_or_default()
}

fn gate(classes: [u64; 2], folds: u64, round_limit: u64) -> Result<Gate, Refusal> {
    gate_after(0, classes, folds, round_limit, None)
}

fn gate_after(
    rounds_before: u64,
    classes: [u64; 2],
    folds: u64,
    round_limit: u64,
    validation: Option<ValidationFacts>,
) -> Result<Gate, Refusal> {
    let rules = Rules {
        operators: Allowed::Everything,
        methods: Allowed::Everything,
        ..Rules::default()
    };
    let job = JobFacts {
        operator: "researcher".to_owned(),
        method: Some("unpsl".to_owned()),
        limits: None,
        sites: 3,
        permissions: BTreeSet::new(),
        round_limit,
        folds,
        validation,
        queries: 0,
    };
    let cohort = CohortFacts {
        judged: None,
        patients: classes.iter().sum(),
        classes: classes.to_vec(),
        so_far: SoFar::default(),
    };
    let used = Limits {
        rounds: rounds_before,
        ..Limits::default()
    };
    let admission = Policy::new(rules).unwrap().admit(&job, &used).unwrap();
    admission.cohort(&cohort)
}

/// Under the defaults, all 10: a fold, a cohort and a class.
#[test]
fn a_fold_and_the_cohort_without_it_pass_the_minima_or_the_job_is_refused() {
    assert_eq!(refused_by([25, 25], 5), "");
    // Of 49 patients in 5 folds one fold has 9: two results would differ by so few.
    assert_eq!(refused_by([25, 24], 5), "cell_min");
    // Of 12 patients of a class the largest fold takes 3, which leaves 9.
    assert_eq!(refused_by([12, 100], 5), "class_patients_min");
    assert_eq!(refused_by([13, 100], 5), "");
    // Without a cross-validation neither matters.
    assert_eq!(refused_by([12, 12], 1), "");
    assert_eq!(refused_by([12, 12], 5), "cell_min, class_patients_min");
}

/// Who is too few to judge learns all the same, and has the rounds for it; who has too few rounds takes no part.
#[test]
fn a_cohort_with_too_small_folds_learns_and_does_not_judge() {
    let asked = Some(ValidationFacts {
        left_out: 1,
        folds: 5,
        rounds: 105,
    });
    let said = |before, classes, asked| {
        let gate = gate_after(before, classes, 1, 103, asked).unwrap();
        (gate.held_out(), gate.rounds_left())
    };
    assert_eq!(said(0, [25, 25], asked), (HeldOut::Judges, 208));
    assert_eq!(said(0, [25, 25], None), (HeldOut::Nothing, 103));
    // A fold of 9, a class without a fold of 9.
    assert_eq!(said(0, [25, 24], asked), (HeldOut::Learns, 208));
    assert_eq!(said(0, [12, 100], asked), (HeldOut::Learns, 208));
    // Half of 5,000 rounds are for runs that validate.
    assert_eq!(said(2_292, [25, 25], asked), (HeldOut::Judges, 208));
    assert_eq!(said(2_293, [25, 25], asked), (HeldOut::Nothing, 103));
    // Folds whose rounds are those of the run itself take none of that half.
    let asked = Some(ValidationFacts {
        left_out: 1,
        folds: 5,
        rounds: 0,
    });
    assert_eq!(said(2_293, [25, 25], asked), (HeldOut::Judges, 103));
}

#[test]
fn counts_of_held_out_patients_use_up_a_round() {
    let mut gate = gate([25, 25], 5, 2).unwrap();
    let counts = || {
        Counts(vec![Some(HeldOutVotes {
            right: 41,
            wrong: 9,
            log_loss: 20.0,
        })])
    };
    for _ in 0..2 {
        assert!(cover(&mut gate, counts()).is_ok());
    }
    // Told again, they cost none.
    assert!(cover_again(&gate, counts(), true).is_ok());
    let refusal = cover(&mut gate, counts()).err().unwrap();
    assert_eq!(refusal.rule, "rounds");
}
