//! The first two doors: what a job asks, and what the cohort is.

use crate::gate::{Asked, Gate};
use crate::policy::{Allowed, Policy};
use std::collections::BTreeSet;

/// What a job asks of a site, as far as a policy judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// The operator who submitted it, from their certificate.
    pub operator: String,
    /// The method.
    pub method: String,
    /// The columns of the outcome; two for survival.
    pub outcomes: Vec<String>,
    /// The features.
    pub features: Vec<String>,
    /// Sites without which it fails.
    pub sites_min: u64,
    /// Whether its messages tell the second moments of the patients.
    pub second_moments: bool,
    /// Whether it asks for trees of a forest.
    pub forests: bool,
    /// Rounds of the run at most.
    pub round_limit: u64,
    /// Folds of a cross-validation, whose rounds each leave one out; 1 where there is none.
    pub folds: u64,
}

/// What a site knows of a cohort that it has read, and of earlier runs on it.
#[derive(Clone, PartialEq, Eq)]
pub struct CohortFacts {
    /// Patients.
    pub patients: u64,
    /// Patients of each outcome class (for survival: censored, events); empty for a number.
    pub classes: Vec<u64>,
    /// Other runs so far that released anything of the same cohort but its size.
    pub runs_before: u64,
    /// Rounds of those other runs.
    pub rounds_before: u64,
    /// What this run has released of the cohort already.
    pub so_far: SoFar,
    /// The smallest number of patients by which the cohort differs from another one that was
    /// released earlier; none where there is no other.
    pub difference: Option<u64>,
}

/// What a run has released of a cohort, by the site's own books.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Rounds.
    pub rounds: u64,
    /// Kinds of message.
    pub kinds: BTreeSet<String>,
    /// A brake has shut the run's gate.
    pub shut: bool,
}

/// A policy's no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {text}")]
pub struct Refusal {
    /// The rule, as site.toml names it; several, separated by `, `, where several say no.
    pub rule: String,
    /// What was asked and what the rule allows.
    pub text: String,
}

/// A job that a policy admits. Its cohort has still to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    policy: Policy,
    round_limit: u64,
    folds: u64,
    asked: Asked,
}

impl Refusal {
    pub(crate) fn new(rule: &str, text: String) -> Self {
        Self {
            rule: rule.to_owned(),
            text,
        }
    }

    /// A brake has ended the run.
    pub(crate) fn shut() -> Self {
        let text = "a metric was asked about under which the patients are more alike than the site allows; \
                    nothing more of this run leaves";
        Self::new("similarity_max", text.to_owned())
    }

    /// All as one, or none.
    fn all(refusals: &[Self]) -> Option<Self> {
        let join = |part: fn(&Self) -> &str, separator| {
            let parts: Vec<&str> = refusals.iter().map(part).collect();
            parts.join(separator)
        };
        (!refusals.is_empty()).then(|| Self {
            rule: join(|refusal| &refusal.rule, ", "),
            text: join(|refusal| &refusal.text, "; "),
        })
    }
}

pub(crate) fn admit(policy: &Policy, job: &JobFacts) -> Result<Admission, Refusal> {
    match Refusal::all(&refusals(policy, job)) {
        Some(refusal) => Err(refusal),
        None => Ok(Admission {
            policy: policy.clone(),
            round_limit: job.round_limit,
            folds: job.folds.max(1),
            asked: Asked {
                second_moments: job.second_moments,
                forests: job.forests,
            },
        }),
    }
}

pub(crate) fn refusals(policy: &Policy, job: &JobFacts) -> Vec<Refusal> {
    let rules = policy.rules();
    let operator = std::slice::from_ref(&job.operator);
    let method = std::slice::from_ref(&job.method);
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
    if job.sites_min < rules.sites_min {
        let text = format!(
            "the job goes on with {} sites (sites_min), the site wants at least {}",
            job.sites_min, rules.sites_min
        );
        refusals.push(Refusal::new("sites_min", text));
    }
    if job.second_moments && !rules.second_moments {
        let text = "the job's messages tell the second moments of the patients (rounds of UnPSL do), \
                    which the site does not allow";
        refusals.push(Refusal::new("second_moments", text.to_owned()));
    }
    if job.forests && !rules.forests {
        let text = "the job asks for the trees of a forest grown on the patients (scope = \"federated\"), \
                    which the site does not allow";
        refusals.push(Refusal::new("forests", text.to_owned()));
    }
    if rules.runs_per_cohort_max == 0 {
        let text = "the job asks for a run, the site allows none";
        refusals.push(Refusal::new("runs_per_cohort_max", text.to_owned()));
    }
    if job.round_limit > rules.rounds_per_cohort_max {
        let text = format!(
            "the job asks for up to {} rounds, the site allows {}",
            job.round_limit, rules.rounds_per_cohort_max
        );
        refusals.push(Refusal::new("rounds_per_cohort_max", text));
    }
    refusals
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
        refusals.extend(self.too_small_folds(cohort));
        refusals.extend(self.too_often(cohort));
        match Refusal::all(&refusals) {
            Some(refusal) => Err(refusal),
            None => Ok(Gate::open(
                self.policy.clone(),
                cohort,
                self.round_limit.saturating_sub(cohort.so_far.rounds),
                self.asked,
            )),
        }
    }

    fn too_few(&self, cohort: &CohortFacts) -> Vec<Refusal> {
        let rules = self.policy.rules();
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
            let text = format!("an outcome class has fewer than the {minimum} patients required");
            refusals.push(Refusal::new("class_patients_min", text));
        }
        refusals
    }

    /// What leaves of a cross-validation is fitted to the cohort without one fold: that part is judged as
    /// a cohort of its own, which differs from the whole by the fold.
    fn too_small_folds(&self, cohort: &CohortFacts) -> Vec<Refusal> {
        if self.folds == 1 {
            return Vec::new();
        }
        let (rules, folds) = (self.policy.rules(), self.folds);
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

    fn too_often(&self, cohort: &CohortFacts) -> Vec<Refusal> {
        let rules = self.policy.rules();
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

impl std::fmt::Debug for CohortFacts {
    /// Nothing of the cohort: a count below a minimum must not reach a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CohortFacts")
            .finish_non_exhaustive()
    }
}
