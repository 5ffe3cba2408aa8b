//! Patients whom a study has in common with those that it renews.

use super::Approved;
use privacy::Fingerprint;
use std::collections::{BTreeMap, BTreeSet};

/// Who of this site is in which of a study and those that it renews.
pub(super) struct Renewed {
    /// Counts of lots, as the card tells them.
    pub(super) lots: Vec<u64>,
    /// By the name of each cohort of the study, the cohorts from which the card tells it apart.
    pub(super) judged: BTreeMap<String, BTreeSet<String>>,
}

impl Renewed {
    /// Of a study, with those that it renews in its own order. Of the `untold` no sums left, and none will.
    pub(super) fn new(own: &Approved, earlier: &[&Approved], untold: &[&Approved]) -> Self {
        let mut lots = Vec::new();
        let mut judged: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let everyone = std::iter::once((&own.patients, None));
        let by_outcome = own
            .with_outcome
            .iter()
            .zip(own.study.outcomes.iter().map(Some));
        // Parts of one study are told apart by its card too.
        let of_study: BTreeSet<String> = (everyone.clone().chain(by_outcome.clone()))
            .map(|(cohort, _)| cohort.identity())
            .collect();
        for (cohort, outcome) in everyone.chain(by_outcome) {
            let of_earlier = |one: &&Approved| {
                let Some(outcome) = outcome else {
                    return one.patients.clone();
                };
                let known = one.study.outcomes.iter().zip(&one.with_outcome);
                let mut same =
                    known.filter(|(known, _)| known.specification == outcome.specification);
                // Nobody has an outcome there that the earlier study does not have.
                same.next()
                    .map(|(_, cohort)| cohort.clone())
                    .unwrap_or_default()
            };
            let others: Vec<Fingerprint> = earlier.iter().map(of_earlier).collect();
            let names = judged.entry(cohort.identity()).or_default();
            names.extend(of_study.iter().cloned());
            for one in untold {
                let all = std::iter::once(&one.patients).chain(&one.with_outcome);
                names.extend(all.map(Fingerprint::identity));
            }
            names.extend(others.iter().map(Fingerprint::identity));
            if !others.is_empty() {
                let all: Vec<&Fingerprint> = std::iter::once(cohort).chain(&others).collect();
                lots.extend(Fingerprint::lots(&all));
            }
        }
        Self { lots, judged }
    }
}
