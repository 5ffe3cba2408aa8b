//! Values, numbers and tables as people read them.

use super::survival::Presentation;
use crate::patients::event_column;
use protocol::cohort::{
    CohortSpecification, Feature, FeatureKind, OutcomeKind, OutcomeSpecification,
};
use report::Column;
use serde::Serialize;
use similarity::cohort::{MISSING_LEVEL, Outcome, Values};
use similarity::judge::survival::Median;
use similarity::uses::cases::{Fared, Interval};

/// What stands for a missing value.
pub(super) const MISSING: &str = "missing";

/// A patient's value of a feature, in the job's words.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places of levels
pub(super) fn value(feature: &Feature, values: &Values, row: usize) -> String {
    let labelled = |level: &String| feature.level_label(level).to_owned();
    match values {
        Values::Numeric(values) if values[row].is_nan() => MISSING.to_owned(),
        Values::Numeric(values) => match &feature.kind {
            FeatureKind::Ordinal { levels } => {
                let level = levels.get(values[row] as usize);
                level.map_or_else(|| values[row].to_string(), labelled)
            }
            FeatureKind::Binary { positive, negative } => labelled(match values[row] == 1.0 {
                true => positive,
                false => negative,
            }),
            FeatureKind::Age { .. } => format!("{:.1}", values[row]),
            FeatureKind::Numeric { .. } | FeatureKind::Categorical { .. } => short(values[row]),
        },
        Values::Categorical { codes, .. } if codes[row] == MISSING_LEVEL => MISSING.to_owned(),
        Values::Categorical { codes, levels } => labelled(&levels[codes[row] as usize]),
    }
}

/// What happened to a patient.
pub(super) fn outcome(
    outcome: &Outcome,
    specification: &OutcomeSpecification,
    row: usize,
) -> String {
    let in_unit = |number: f64| in_unit(number, specification);
    match outcome {
        Outcome::Classes { codes, levels } => levels[codes[row] as usize].clone(),
        Outcome::Numeric(values) => in_unit(values[row]),
        Outcome::Survival { time, event } => {
            let group = if event[row] { "event" } else { "censored" };
            let label = specification.group_label(group);
            format!("{label} at {}", in_unit(time[row]))
        }
    }
}

/// A number of the outcome, or a time, to four digits with its unit.
pub(super) fn in_unit(number: f64, specification: &OutcomeSpecification) -> String {
    match specification.unit_in_words() {
        "" => to_digits(number, 4),
        unit => format!("{} {unit}", to_digits(number, 4)),
    }
}

/// The columns of a table of patients that were found for others.
pub(super) fn found_columns() -> Vec<Column> {
    vec![
        Column::text("query", "the patient that was asked about"),
        Column::whole("rank", "1 is the nearest"),
        Column::patient(),
        Column::number("distance", "distance between the two"),
    ]
}

/// The column of a feature's values, in the words of [`value`].
pub(super) fn feature_column(cohort: &CohortSpecification, name: &str) -> Column {
    let label = cohort.label_of_row(name);
    let own = cohort.features.iter().find(|feature| feature.name == name);
    match own.map(|feature| (&feature.kind, feature.unit())) {
        Some((FeatureKind::Numeric { .. } | FeatureKind::Age { .. }, unit)) => {
            Column::number(name, label).unit(unit)
        }
        Some((
            FeatureKind::Categorical { .. }
            | FeatureKind::Ordinal { .. }
            | FeatureKind::Binary { .. },
            _,
        ))
        | None => Column::text(name, label),
    }
}

/// The columns of a table that say what happened.
pub(super) fn outcome_columns(specification: &OutcomeSpecification) -> Vec<Column> {
    let (unit, happened) = (
        specification.unit_in_words(),
        "what happened to the patient",
    );
    match &specification.kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            vec![Column::text(specification.label_with_unit(), happened)]
        }
        OutcomeKind::Numeric => {
            vec![Column::number(specification.label_with_unit(), happened).unit(unit)]
        }
        OutcomeKind::Survival { .. } => {
            let time = Column::number(format!("time ({unit})"), specification.label.clone());
            let event = event_column(specification.event_label(), specification);
            vec![time.unit(unit), event]
        }
    }
}

/// What happened to a patient, in those columns.
pub(super) fn outcome_cells(outcome: &Outcome, row: usize) -> Vec<String> {
    match outcome {
        Outcome::Classes { codes, levels } => vec![levels[codes[row] as usize].clone()],
        Outcome::Numeric(values) => vec![values[row].to_string()],
        Outcome::Survival { time, event } => {
            vec![time[row].to_string(), u8::from(event[row]).to_string()]
        }
    }
}

/// A number to six digits, without zeros at its end.
pub(super) fn short(number: f64) -> String {
    to_digits(number, 6)
}

/// Three figures of a number.
pub(super) fn figures(number: f64) -> String {
    to_digits(number, 3)
}

fn to_digits(number: f64, most: u8) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    let size = libm::log10(number.abs().max(1e-300)).floor();
    if !(-4.0..9.0).contains(&size) && number != 0.0 {
        return format!("{number:.3e}");
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 9
    let digits = (f64::from(most) - 1.0 - size).clamp(0.0, 9.0) as usize;
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number to four digits, for a table.
pub(super) fn four(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    format!("{number:.4}")
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Text columns, two spaces apart, the first `left` of them flush left and the others flush right.
pub(super) fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |text: &String| text.chars().count();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(wide)
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            match left.contains(&column) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A share or a mean, for machines.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct IntervalEntry {
    value: f64,
    low: f64,
    high: f64,
}

impl IntervalEntry {
    /// The value and its ends.
    pub(super) fn parts(&self) -> (f64, f64, f64) {
        (self.value, self.low, self.high)
    }
}

impl From<Interval> for IntervalEntry {
    fn from(interval: Interval) -> Self {
        let Interval { value, low, high } = interval;
        Self { value, low, high }
    }
}

/// How a group fared, for machines.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GroupFared {
    /// Patients and share of each class.
    Classes(Vec<ClassEntry>),
    /// The mean outcome.
    Mean(IntervalEntry),
    /// Events.
    Survival {
        events: usize,
        /// What it is called.
        event: String,
        /// Of the times.
        unit: String,
        median: MedianEntry,
        /// The share with an event by the times that are shown.
        by_time: Vec<RiskByTime>,
        /// Time, share without event, and the ends of its interval.
        curve: Vec<(f64, f64, f64, f64)>,
    },
}

/// The share with an event by a time.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RiskByTime {
    time: f64,
    share_with_event: IntervalEntry,
    at_risk: usize,
}

/// A median time with its interval, of which nothing is known that a curve does not reach.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct MedianEntry {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Median> for MedianEntry {
    fn from(Median { time, low, high }: Median) -> Self {
        Self {
            value: time,
            low,
            high,
        }
    }
}

impl GroupFared {
    /// The share of each class, of two the second alone; of another outcome nothing.
    pub(super) fn shares(&self) -> Vec<(String, IntervalEntry)> {
        match self {
            Self::Classes(classes) => {
                let skipped = usize::from(classes.len() == 2);
                let classes = classes.iter().skip(skipped);
                classes.map(|one| (one.class.clone(), one.share)).collect()
            }
            Self::Mean(_) | Self::Survival { .. } => Vec::new(),
        }
    }
}

/// One class.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ClassEntry {
    class: String,
    patients: usize,
    share: IntervalEntry,
}

impl GroupFared {
    pub(super) fn of(fared: &Fared, presentation: &Presentation) -> Self {
        match fared {
            Fared::Classes(shares) => Self::Classes(
                shares
                    .iter()
                    .map(|one| ClassEntry {
                        class: one.level.clone(),
                        patients: one.patients,
                        share: one.share.into(),
                    })
                    .collect(),
            ),
            Fared::Mean(interval) => Self::Mean((*interval).into()),
            Fared::Survival(curve) => Self::Survival {
                events: curve.events(),
                event: presentation.specification.event_label().to_owned(),
                unit: presentation.specification.unit_in_words().to_owned(),
                median: curve.median().into(),
                by_time: presentation
                    .known(curve)
                    .map(|at| RiskByTime {
                        time: at.time,
                        share_with_event: IntervalEntry {
                            value: 1.0 - at.share,
                            low: 1.0 - at.high,
                            high: 1.0 - at.low,
                        },
                        at_risk: curve.at_risk(at.time),
                    })
                    .collect(),
                curve: curve
                    .points()
                    .iter()
                    .map(|point| (point.time, point.share, point.low, point.high))
                    .collect(),
            },
        }
    }
}

/// How `patients` fared, in a sentence.
pub(super) fn fared(fared: &Fared, patients: usize, presentation: &Presentation) -> String {
    let specification = &presentation.specification;
    let ends = |interval: &Interval| {
        format!(
            "95 %: {:.0} to {:.0}",
            100.0 * interval.low,
            100.0 * interval.high
        )
    };
    match fared {
        Fared::Classes(shares) => {
            let told = shares.iter().map(|one| {
                let (share, ends) = (percent(one.share.value), ends(&one.share));
                format!(
                    "{} of {patients} {}, {share} ({ends})",
                    one.patients, one.level
                )
            });
            // Of two classes the second says all.
            let skipped = usize::from(shares.len() == 2);
            told.skip(skipped).collect::<Vec<_>>().join("; ")
        }
        Fared::Mean(interval) => {
            let Interval { value, low, high } = interval;
            format!(
                "mean {} {} (95 %: {} to {})",
                specification.label,
                in_unit(*value, specification),
                short(*low),
                short(*high)
            )
        }
        Fared::Survival(curve) => presentation.sentence(curve),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_tables_straight() {
        for (number, text) in [
            (54.0, "54"),
            (0.1 + 0.2, "0.3"),
            (1234.5678, "1234.57"),
            (-0.000_123_456, "-0.000123456"),
            (1e12, "1.000e12"),
            (0.0, "0"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(number), text);
        }
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "23".to_owned()],
        ];
        assert_eq!(table(&rows, &[0]), "a     1\nbcd  23\n");
    }
}
