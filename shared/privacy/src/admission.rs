//! The first two doors: what a job asks, and what the cohort is.

use crate::facts::{CohortFacts, JobFacts, ValidationFacts};
use crate::gate::{Gate, HeldOut, JUDGES_MIN};
use crate::rule::{Allowed, Permission, Refusal, Rules};
use std::collections::BTreeSet;

/// A job that a policy admits. Its cohort has still to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    rules: Rules,
    round_limit: u64,
    folds: u64,
    validation: Option<ValidationFacts>,
    permissions: BTreeSet<Permission>,
    queries: u64,
}

pub(crate) fn admit(rules: &Rules, job: &JobFacts) -> Result<Admission, Refusal> {
    match Refusal::all(&refusals(rules, job)) {
        Some(refusal) => Err(refusal),
        None => Ok(Admission {
            rules: rules.clone(),
            round_limit: job.round_limit,
            folds: job.folds.max(1),
            validation: job.validation,
            permissions: job.permissions.clone(),
            queries: job.queries,
        }),
    }
}

pub(crate) fn refusals(rules: &Rules, job: &JobFacts) -> Vec<Refusal> {
    let operator = std::slice::from_ref(&job.operator);
    let method = job.method.as_slice();
    let lists: [(&str, &str, &Allowed, &[String]); 4] = [
        ("operators", "the operator", &rules.operators, operator),
        ("methods", "the method", &rules.methods, method),
        ("outcomes", "the outcome", &rules.outcomes, &job.outcomes),
        ("features", "the features", &rules.features, &job.features),
    ];
    let mut refusals: Vec<Refusal> = lists
        .into_iter()
        .filter_map(|(rule, what, allowed, asked)| unlisted(rule, what, allowed, asked))
        .collect();
    if job.sites < rules.sites_min {
        let text = format!(
            "the job is of {} sites, the site wants at least {}",
            job.sites, rules.sites_min
        );
        refusals.push(Refusal::new("sites_min", text));
    }
    let missing = job.permissions.difference(&rules.permissions);
    refusals.extend(missing.map(|permission| permission.not_granted()));
    if rules.runs_per_cohort_max == 0 {
        let text = "the job asks for a run, the site allows none";
        refusals.push(Refusal::new("runs_per_cohort_max", text));
    }
    if job.round_limit > rules.rounds_per_cohort_max {
        let text = format!(
            "the job asks for up to {} rounds, the site allows {}",
            job.round_limit, rules.rounds_per_cohort_max
        );
        refusals.push(Refusal::new("rounds_per_cohort_max", text));
    }
    if job.queries > 0 {
        refusals.extend(too_many_queries(rules, job.queries, 0));
        if rules.groupings_per_cohort_max == 0 {
            let text = "the job asks for patients who are alike, or groups of them, the site parts no cohort into groups";
            refusals.push(Refusal::new("groupings_per_cohort_max", text));
        }
    }
    refusals
}

/// Why so many more patients of others are too many, after so many before; none where they are not.
fn too_many_queries(rules: &Rules, asked: u64, before: u64) -> Option<Refusal> {
    let most = rules.queries_per_cohort_max;
    let text = || {
        format!(
            "the job asks about {asked} patients or centres, more than are left to this cohort of the {most} that the site allows"
        )
    };
    (before.saturating_add(asked) > most).then(|| Refusal::new("queries_per_cohort_max", text()))
}

fn unlisted(rule: &str, what: &str, allowed: &Allowed, asked: &[String]) -> Option<Refusal> {
    let missing: Vec<String> = asked
        .iter()
        .filter(|name| !allowed.allows(name))
        .map(|name| format!("{name:?}"))
        .collect();
    let text = || {
        format!(
            "the job asks for {what} {}, the site allows {allowed}",
            missing.join(", ")
        )
    };
    (!missing.is_empty()).then(|| Refusal::new(rule, text()))
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
        refusals.extend(self.too_small_folds(cohort, self.folds));
        refusals.extend(self.too_often(cohort));
        refusals.extend(self.too_curious(cohort));
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

    /// What the cohort does in a validation in which it need not judge, and the rounds of it. It judges where its folds pass the minima;
    /// where the rounds are not of the first half of the cohort's, so that runs to come would be refused for it, it does nothing.
    fn held_out(&self, cohort: &CohortFacts) -> (HeldOut, u64) {
        let Some(asked) = &self.validation else {
            return (HeldOut::Nothing, 0);
        };
        let used = cohort.rounds_before.saturating_add(self.round_limit);
        let used = used.saturating_add(asked.rounds);
        if asked.rounds > 0 && used > self.rules.rounds_per_cohort_max / 2 {
            return (HeldOut::Nothing, 0);
        }
        let in_every_fold = |class: &u64| *class == 0 || *class >= asked.folds;
        let is_large = cohort.classes.iter().all(in_every_fold)
            && self.too_small_folds(cohort, asked.folds).is_empty();
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
            if cohort.patients < minimum {
                let text = format!("the cohort has fewer than the {minimum} patients required");
                refusals.push(Refusal::new(rule, text));
                break;
            }
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

    /// What leaves of a cross-validation is fitted to the cohort without one fold: that part is judged as
    /// a cohort of its own, which differs from the whole by the fold.
    fn too_small_folds(&self, cohort: &CohortFacts, folds: u64) -> Vec<Refusal> {
        if folds == 1 {
            return Vec::new();
        }
        let rules = &self.rules;
        let without_largest_fold = |patients: u64| patients - patients.div_ceil(folds);
        let mut refusals = Vec::new();
        let minimum = rules.cohort_difference_min;
        if cohort.patients / folds < minimum {
            let text =
                format!("one of {folds} folds of the cohort has fewer than {minimum} patients");
            refusals.push(Refusal::new("cohort_difference_min", text));
        }
        let minimum = rules.patients_min.max(rules.cell_min);
        if without_largest_fold(cohort.patients) < minimum {
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

    /// Groups of one learned run say nothing of fewer than they have patients, however often they are asked about; those of two
    /// overlap, and what they differ by may be of few.
    fn too_curious(&self, cohort: &CohortFacts) -> Vec<Refusal> {
        if self.queries == 0 {
            return Vec::new();
        }
        let rules = &self.rules;
        let mut refusals =
            Vec::from_iter(too_many_queries(rules, self.queries, cohort.queries_before));
        let (before, most) = (cohort.groupings_before, rules.groupings_per_cohort_max);
        if before >= most {
            let text = format!(
                "this cohort has been parted into groups by {before} other learned runs, and the site allows {most} in all"
            );
            refusals.push(Refusal::new("groupings_per_cohort_max", text));
        }
        refusals
    }

    fn too_often(&self, cohort: &CohortFacts) -> Vec<Refusal> {
        let rules = &self.rules;
        let mut refusals = Vec::new();
        if cohort.runs_before >= rules.runs_per_cohort_max {
            let text = format!(
                "this cohort has served the {} runs that the site allows",
                rules.runs_per_cohort_max
            );
            refusals.push(Refusal::new("runs_per_cohort_max", text));
        }
        if cohort.rounds_before.saturating_add(self.round_limit) > rules.rounds_per_cohort_max {
            let text = format!(
                "the job asks for up to {} rounds, more than are left to this cohort of the {} that the \
                 site allows",
                self.round_limit, rules.rounds_per_cohort_max
            );
            refusals.push(Refusal::new("rounds_per_cohort_max", text));
        }
        let minimum = rules.cohort_difference_min;
        if cohort
            .difference
            .is_some_and(|difference| (1..minimum).contains(&difference))
        {
            let text = format!(
                "the cohort differs from an earlier one by fewer than {minimum} patients, so that \
                 two results would tell of single patients"
            );
            refusals.push(Refusal::new("cohort_difference_min", text));
        }
        refusals
    }
}
