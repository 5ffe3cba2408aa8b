//! Patients that a study has in common with those that it renews.

use super::Approved;
use privacy::Fingerprint;

/// Counts of lots of patients of this site, as the card tells them: who is in which of a study and those that it renews, in its own
/// order, for all patients and then for each outcome.
pub(super) fn lots(own: &Approved, earlier: &[Approved]) -> Vec<u64> {
    let mut lots = Vec::new();
    let everyone = std::iter::once((&own.patients, None));
    let by_outcome = own
        .with_outcome
        .iter()
        .zip(own.study.outcomes.iter().map(Some));
    for (cohort, outcome) in everyone.chain(by_outcome) {
        let of_earlier = |one: &Approved| {
            let Some(outcome) = outcome else {
                return one.patients.clone();
            };
            let known = one.study.outcomes.iter().zip(&one.with_outcome);
            let mut same = known.filter(|(known, _)| known.specification == outcome.specification);
            // Nobody has an outcome there that the earlier study does not have.
            same.next()
                .map(|(_, cohort)| cohort.clone())
                .unwrap_or_default()
        };
        let others: Vec<Fingerprint> = earlier.iter().map(of_earlier).collect();
        if !others.is_empty() {
            let all: Vec<&Fingerprint> = std::iter::once(cohort).chain(&others).collect();
            lots.extend(Fingerprint::lots(&all));
        }
    }
    lots
}
