//! The first two doors: what a job asks, and what the cohort is.

use crate::facts::{CohortFacts, JobFacts, ValidationFacts};
use crate::gate::{Gate, HeldOut, JUDGES_MIN};
use crate::rule::{Limits, Permission, Refusal, Rules};
use std::collections::BTreeSet;

/// Patients in judged pairs at least, whatever a policy allows: sums over the pairs of fewer read them in a thousand runs, however
/// coarsely they are rounded.
pub const JUDGED_PATIENTS_MIN: u64 = 30;

/// A job that a policy admits. Its cohort has still to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    rules: Rules,
    round_limit: u64,
    folds: u64,
    validation: Option<ValidationFacts>,
    permissions: BTreeSet<Permission>,
}

pub(crate) fn admit(rules: &Rules, job: &JobFacts, used: &Limits) -> Result<Admission, Refusal> {
    match Refusal::all(&refusals(rules, job, used)) {
        Some(refusal) => Err(refusal),
        None => Ok(Admission {
            rules: rules.clone(),
            round_limit: job.round_limit,
            folds: job.folds.max(1),
            validation: job
                .validation
                .filter(|asked| leaves_half(rules, job, used, asked)),
            permissions: job.permissions.clone(),
        }),
    }
}

pub(crate) fn refusals(rules: &Rules, job: &JobFacts, used: &Limits) -> Vec<Refusal> {
    let (operator, method) = (Some(&job.operator), job.method.as_ref());
    let lists = [
        ("operators", "the operator", &rules.operators, operator),
        ("methods", "the method", &rules.methods, method),
    ];
    let unlisted = lists
        .into_iter()
        .filter_map(|(rule, what, allowed, asked)| {
            let asked = asked.filter(|name| !allowed.allows(name))?;
            let text = format!("the job asks for {what} {asked:?}, the site allows {allowed}");
            Some(Refusal::new(rule, text))
        });
    let mut refusals: Vec<Refusal> = unlisted.collect();
    if job.sites < rules.sites_min {
        let text = format!(
            "the job is of {} sites, the site wants at least {}",
            job.sites, rules.sites_min
        );
        refusals.push(Refusal::new("sites_min", text));
    }
    let missing = job.permissions.difference(&rules.permissions);
    refusals.extend(missing.map(|permission| permission.not_granted()));
    let grouping = u64::from(job.queries > 0);
    // A card counts for nothing, and asks for no more than its rounds.
    let runs = u64::from(job.method.is_some());
    let asked = [runs, job.round_limit, job.queries, grouping];
    let limits = allowed(rules, job).with(used).into_iter().zip(asked);
    refusals.extend(limits.filter_map(|(limit, asked)| limit.judge(asked)));
    refusals
}

/// What a job's study and the site allow, both.
fn allowed(rules: &Rules, job: &JobFacts) -> Limits {
    match &job.limits {
        Some(limits) => limits.both(&rules.ceilings),
        None => rules.ceilings,
    }
}

/// Whether a validation that the job can do without takes no more than is left of the first half of the rounds: runs to come would be
/// refused for it.
fn leaves_half(rules: &Rules, job: &JobFacts, used: &Limits, asked: &ValidationFacts) -> bool {
    let all = used.rounds.saturating_add(job.round_limit);
    asked.rounds == 0 || all.saturating_add(asked.rounds) <= allowed(rules, job).rounds / 2
}

impl Admission {
    /// The second door: judges the cohort, before anything is computed.
    ///
    /// # Errors
    /// One [`Refusal`] that names every rule against the cohort. It tells the coordinator less
    /// than the cohort's numbers: minima, never the counts that fell below them.
    pub fn cohort(&self, cohort: &CohortFacts) -> Result<Gate, Refusal> {
        let mut refusals = Vec::new();
        if cohort.so_far.shut {
            refusals.push(Refusal::shut());
        }
        refusals.extend(self.too_few(cohort));
        refusals.extend(self.too_small_folds(cohort, self.folds, 1));
        match Refusal::all(&refusals) {
            Some(refusal) => Err(refusal),
            None => {
                let (held_out, rounds) = self.held_out(cohort);
                let rounds = self.round_limit.saturating_add(rounds);
                Ok(Gate::open(
                    self.rules.clone(),
                    cohort,
                    rounds.saturating_sub(cohort.so_far.rounds),
                    self.permissions.clone(),
                    held_out,
                ))
            }
        }
    }

    /// What the cohort does in a validation in which it need not judge, and the rounds of it. It judges where its folds pass the minima.
    fn held_out(&self, cohort: &CohortFacts) -> (HeldOut, u64) {
        let Some(asked) = &self.validation else {
            return (HeldOut::Nothing, 0);
        };
        let in_every_fold = |class: &u64| *class == 0 || *class >= asked.folds;
        let is_large = cohort.classes.iter().all(in_every_fold)
            && self
                .too_small_folds(cohort, asked.folds, asked.left_out)
                .is_empty();
        let held_out = match is_large {
            false => HeldOut::Learns,
            true if self.rules.sites_min > JUDGES_MIN => HeldOut::JudgesWithAll,
            true => HeldOut::Judges,
        };
        (held_out, asked.rounds)
    }

    fn too_few(&self, cohort: &CohortFacts) -> Vec<Refusal> {
        let rules = &self.rules;
        let mut refusals = Vec::new();
        // Below the cell minimum the cohort itself would be a cell that is withheld.
        for (rule, minimum) in [
            ("patients_min", rules.patients_min),
            ("cell_min", rules.cell_min),
        ] {
            if cohort.summed() < minimum {
                let text = format!("the cohort has fewer than the {minimum} patients required");
                refusals.push(Refusal::new(rule, text));
                break;
            }
        }
        let minimum = rules.patients_min.max(JUDGED_PATIENTS_MIN);
        if cohort.judged.is_some_and(|judged| judged < minimum) {
            let text = format!(
                "the cohort has fewer than the {minimum} patients in judged pairs required, or fewer such pairs"
            );
            refusals.push(Refusal::new("patients_min", text));
        }
        let minimum = rules.class_patients_min;
        if cohort.classes.iter().any(|class| *class < minimum) {
            let text = format!(
                "an outcome class or the event has fewer than the {minimum} patients required"
            );
            refusals.push(Refusal::new("class_patients_min", text));
        }
        refusals
    }

    /// What leaves of a cross-validation is fitted to the cohort without one fold, or without two: that part is judged as
    /// a cohort of its own, which differs from the whole by the folds.
    fn too_small_folds(&self, cohort: &CohortFacts, folds: u64, left_out: u64) -> Vec<Refusal> {
        if folds == 1 {
            return Vec::new();
        }
        let rules = &self.rules;
        let without_largest_fold =
            |patients: u64| patients.saturating_sub(left_out * patients.div_ceil(folds));
        let mut refusals = Vec::new();
        let minimum = rules.cell_min;
        if cohort.summed() / folds < minimum {
            let text =
                format!("one of {folds} folds of the cohort has fewer than {minimum} patients");
            refusals.push(Refusal::new("cell_min", text));
        }
        let minimum = rules.patients_min.max(rules.cell_min);
        if without_largest_fold(cohort.summed()) < minimum {
            let text =
                format!("the cohort without a fold has fewer than the {minimum} patients required");
            refusals.push(Refusal::new("patients_min", text));
        }
        let minimum = rules.class_patients_min;
        if cohort
            .classes
            .iter()
            .any(|class| without_largest_fold(*class) < minimum)
        {
            let text = format!(
                "an outcome class without a fold has fewer than the {minimum} patients required"
            );
            refusals.push(Refusal::new("class_patients_min", text));
        }
        refusals
    }
}
