//! The outcome of a run, in the study's words: what it is, and how many have it.

use crate::words::{figure, of_hundred};
use protocol::cohort::{OutcomeKind, OutcomeSpecification};
use protocol::method::neighbours::model::Interval;
use serde::Serialize;

/// Patients of a class, or with an event.
#[derive(Serialize)]
pub(crate) struct GroupEntry {
    label: String,
    patients: u64,
    share: f64,
}

/// What the outcome is, and of so many patients the share of each group, of which there are so many; none are known where they are few.
#[must_use]
pub fn sentence(outcome: &OutcomeSpecification, counts: &[u64], patients: u64) -> String {
    let groups = groups(outcome, counts, patients);
    // The second of two classes is enough.
    let first = usize::from(groups.len() == 2);
    let shares = groups.iter().skip(first).map(|group| {
        let (label, share) = (&group.label, of_hundred(group.share));
        let own = group.patients;
        format!("{label} {share} ({own} of {patients} patients)")
    });
    let shares: Vec<String> = shares.collect();
    let until = match &outcome.kind {
        OutcomeKind::Survival {
            horizon: Some(horizon),
            ..
        } => format!(" until {} {}", figure(*horizon), outcome.unit_in_words()),
        OutcomeKind::Survival { .. }
        | OutcomeKind::Binary { .. }
        | OutcomeKind::Categorical { .. }
        | OutcomeKind::Numeric => String::new(),
    };
    match shares.is_empty() {
        true => format!("Outcome: {}.", outcome.label_with_unit()),
        false => format!(
            "Outcome: {}; {}{until}.",
            outcome.label_with_unit(),
            shares.join(", ")
        ),
    }
}

/// How many patients each group has, and their share; none where few have one.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
pub(crate) fn groups(
    outcome: &OutcomeSpecification,
    counts: &[u64],
    patients: u64,
) -> Vec<GroupEntry> {
    let labels = match &outcome.kind {
        OutcomeKind::Survival { .. } => vec![outcome.event_label().to_owned()],
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } | OutcomeKind::Numeric => {
            outcome.classes()
        }
    };
    let all = patients.max(1) as f64;
    let group = |(label, patients): (String, &u64)| GroupEntry {
        label,
        patients: *patients,
        share: *patients as f64 / all,
    };
    labels.into_iter().zip(counts).map(group).collect()
}

/// Who has an event by a time.
pub(crate) fn event_by(outcome: &OutcomeSpecification, time: f64) -> String {
    let (event, unit) = (outcome.event_label(), outcome.unit_in_words());
    format!("{event} by {} {unit}", figure(time))
}

/// The share with an event, of the share without one.
pub(crate) fn with_event(without: Interval) -> Interval {
    Interval {
        value: 1.0 - without.value,
        low: 1.0 - without.high,
        high: 1.0 - without.low,
    }
}

/// So many units of time that a rate in them is a figure that people read.
pub(crate) fn units_of(rate: f64) -> f64 {
    let mut units = 100.0;
    while rate > 0.0 && rate * units < 1.0 && units < 1e6 {
        units *= 10.0;
    }
    units
}

/// What a rate in so many units of time is.
pub(crate) fn rate_in_words(outcome: &OutcomeSpecification, units: f64) -> String {
    let (event, unit) = (outcome.event_label(), outcome.unit_in_words());
    format!("{event} per {units} {unit} at risk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_as_many_units_as_make_it_a_figure() {
        for (rate, wanted) in [(0.000_82, 10_000.0), (2.5, 100.0), (0.0, 100.0)] {
            assert!((units_of(rate) - wanted).abs() < 1e-9, "{rate}");
        }
    }
}
