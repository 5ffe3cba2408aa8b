//! What an answer may hold at all: shapes, counts and sums that patients can have. The failures name no number of
//! a site.

use crate::assessment::{Assessment, ErrorMeasure, EvaluationCounts, PAIRS_RULE, RuleErrors};
use crate::cohort::OutcomeKind;
use crate::failure::{Code, Failure};
use crate::limits::{COUNT_MAX, MAGNITUDE_MAX, SCORE_BINS_MAX};
use crate::message::{Answer, ColumnHistogram};
use privacy::Disclosure;
use similarity::cohort::quantile::Grid;

/// Rounding that a sum may be off by, relative.
pub(crate) const ROUNDING: f64 = 1e-6;

/// An answer to another question.
pub(crate) fn unexpected(found: &Answer, wanted: &str) -> Failure {
    fault(found.kind(), wanted)
}

pub(crate) fn fault(found: &str, wanted: &str) -> Failure {
    Failure::new(Code::Protocol, format!("found {found}, wanted {wanted}"))
}

/// A list of `found` items where there should be `wanted`.
pub(crate) fn length(what: &str, found: usize, wanted: usize) -> Result<(), Failure> {
    ensure(
        found == wanted,
        &format!("{found} {what}"),
        &format!("{wanted} {what}"),
    )
}

pub(crate) fn ensure(holds: bool, found: &str, wanted: &str) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(fault(found, wanted))
    }
}

/// Counts of parts of the patients: together they are no more than all.
pub(crate) fn within<'c>(
    counts: impl IntoIterator<Item = &'c u64>,
    patients: u64,
) -> Result<(), Failure> {
    let sum = counts
        .into_iter()
        .try_fold(0_u64, |sum, count| sum.checked_add(*count));
    ensure(
        sum.is_some_and(|sum| sum <= patients),
        "counts of more patients than the site has",
        "counts of its patients",
    )
}

/// The sum and the sum of squares of so many numbers within a range.
#[allow(clippy::cast_precision_loss)] // counts of patients
pub(crate) fn sums(
    patients: u64,
    [sum, squares]: [f64; 2],
    range: Option<(f64, f64)>,
) -> Result<(), Failure> {
    numbers([&sum, &squares])?;
    let patients = patients as f64;
    // Cauchy and Schwarz.
    let is_spread = squares >= 0.0 && sum * sum <= patients * squares * (1.0 + ROUNDING);
    let is_within = range.is_none_or(|(low, high)| {
        let slack = ROUNDING * (low.abs() + high.abs());
        let room = patients * slack;
        // (x - low)(high - x) is not below 0.
        let most = (low + high) * sum - patients * low * high;
        (low * patients - room..=high * patients + room).contains(&sum)
            && squares <= most + room * (low.abs() + high.abs())
    });
    ensure(
        is_spread && is_within,
        "sums that no patients have",
        "sums over its patients",
    )
}

/// A count of patients or of pairs.
pub(crate) fn count(found: u64) -> Result<(), Failure> {
    let wanted = format!("at most {COUNT_MAX} patients or pairs");
    ensure(found <= COUNT_MAX, "a count of too many patients", &wanted)
}

/// Pairs of patients at most.
pub(crate) fn pairs_of(patients: u64) -> u64 {
    patients.saturating_mul(patients)
}

/// A table of `rows` x `columns` counts, together at most `most`.
pub(crate) fn table(
    table: &[Vec<u64>],
    (rows, columns): (usize, usize),
    most: u64,
) -> Result<(), Failure> {
    let fits = table.len() == rows && table.iter().all(|row| row.len() == columns);
    let wanted = format!("{rows} x {columns}");
    ensure(fits, "a table of another shape", &wanted)?;
    within(table.iter().flatten(), most)
}

/// Errors and tables of a site's patients, by these `rules` alone, and nothing of a validation.
pub(crate) fn predictions(
    outcome: &OutcomeKind,
    found: &Assessment,
    patients: u64,
    rules: [&str; 2],
    wanted: &str,
) -> Result<(), Failure> {
    ensure(found.objective.is_none(), "an objective", "none")?;
    let is_unvalidated = found.validation.is_empty();
    ensure(is_unvalidated, "tables of a validation", "none")?;
    let known = |rule: &str| ensure(rules.contains(&rule), "an error by an unknown rule", wanted);
    let measure = ErrorMeasure::of(outcome);
    for error in &found.errors {
        known(&error.rule)?;
        errors(error, measure, patients)?;
    }
    let classes = outcome.classes().len();
    found.evaluation.iter().try_for_each(|counts| {
        known(&counts.rule)?;
        evaluation(counts, classes, patients)
    })
}

/// What a rule says of the `patients` of so many classes, or of their pairs.
pub(crate) fn evaluation(
    counts: &EvaluationCounts,
    classes: usize,
    patients: u64,
) -> Result<(), Failure> {
    let (classes, most) = match counts.rule.as_str() {
        PAIRS_RULE => (2, pairs_of(patients)),
        _ => (classes, patients),
    };
    if let Some(found) = &counts.confusion {
        table(found, (classes, classes), most)?;
        found.iter().flatten().try_for_each(|cell| count(*cell))?;
    }
    if let Some(found) = &counts.scores {
        let bins = found.first().map_or(0, Vec::len);
        let wanted = format!("2 to {SCORE_BINS_MAX} bins of a score");
        ensure(
            (2..=SCORE_BINS_MAX).contains(&bins) && classes == 2,
            "bins of a score",
            &wanted,
        )?;
        table(found, (2, bins), most)?;
    }
    let gains = [counts.gains.areas, counts.gains.errors];
    gains.iter().flatten().try_for_each(paired)?;
    let loss = counts.loss.unwrap_or(0.0);
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    let is_possible = (0.0..=patients as f64).contains(&loss);
    ensure(
        is_possible,
        "an impossible Brier score",
        "0 to 1 per patient",
    )?;
    let wanted = "the step of a grid of counts";
    ensure(
        (1..=COUNT_MAX).contains(&counts.rounded_to),
        "a step",
        wanted,
    )
}

/// Sums of what two rules differ by.
fn paired(sums: &[f64; 5]) -> Result<(), Failure> {
    numbers(sums)?;
    let [total, _, squares, _, parts] = sums;
    let are_squares = [total, squares, parts].iter().all(|sum| **sum >= 0.0);
    ensure(are_squares, "squares below 0", "sums of squares")
}

/// What a rule says of how far predictions of the `patients` are off, by this measure.
pub(crate) fn errors(
    found: &RuleErrors,
    measure: ErrorMeasure,
    patients: u64,
) -> Result<(), Failure> {
    ensure(
        found.measure == measure,
        "another measure of errors",
        measure.name(),
    )?;
    let Some(sums) = &found.sums else {
        return Ok(());
    };
    let most = match measure {
        ErrorMeasure::Misclassified | ErrorMeasure::Squared => patients,
        ErrorMeasure::Discordant => pairs_of(patients),
    };
    count(sums.total)?;
    numbers([&sums.error])?;
    #[allow(clippy::cast_precision_loss)] // at most 2^40
    let is_share = measure == ErrorMeasure::Squared || sums.error <= sums.total as f64;
    let is_possible = sums.total <= most && sums.error >= 0.0 && is_share;
    ensure(
        is_possible,
        "errors that no patients have",
        "errors over its patients",
    )
}

/// Numbers with which the coordinator can compute.
pub(crate) fn numbers<'n>(numbers: impl IntoIterator<Item = &'n f64>) -> Result<(), Failure> {
    // Without a branch for each number. NaN is within no bounds.
    let usable = numbers
        .into_iter()
        .fold(true, |all, number| all & (number.abs() <= MAGNITUDE_MAX));
    let wanted = format!("numbers of at most {MAGNITUDE_MAX:e}");
    ensure(usable, "a number beyond all bounds", &wanted)
}

/// A histogram of those who have a value, for each grid with their number.
pub(crate) fn histograms(found: &[ColumnHistogram], grids: &[(Grid, u64)]) -> Result<(), Failure> {
    length("histograms", found.len(), grids.len())?;
    let mut found = found.iter().zip(grids);
    found.try_for_each(|(found, (grid, patients))| histogram(found, *grid, *patients))
}

/// A histogram on `grid` of some of the patients: groups that tile it, or none at all.
fn histogram(histogram: &ColumnHistogram, grid: Grid, patients: u64) -> Result<(), Failure> {
    let ColumnHistogram { ends, counts } = histogram;
    if ends.is_empty() && counts.is_empty() {
        return Ok(());
    }
    let tiles = ends.len() == counts.len()
        && ends[0] > 0
        && ends.is_sorted_by(|one, next| one < next)
        && ends.last() == Some(&grid.cells());
    ensure(tiles, "groups of a histogram", "groups that tile the grid")?;
    let filled = counts.iter().all(|count| *count > 0);
    ensure(
        filled,
        "an empty group of a histogram",
        "groups of patients",
    )?;
    within(counts, patients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_a_range_have_sums_that_others_cannot_have() {
        let range = Some((-2.0, 6.0));
        for seed in 0..200_u32 {
            let value = |row: u32| 2.0 + 4.0 * (f64::from(row * (seed + 1)) * 12.9898).sin();
            let values: Vec<f64> = (0..1 + seed % 40).map(value).collect();
            let sum: f64 = values.iter().sum();
            let squares: f64 = values.iter().map(|value| value * value).sum();
            let patients = values.len() as u64;
            assert!(sums(patients, [sum, squares], range).is_ok(), "{seed}");
            let count = f64::from(1 + seed % 40);
            for (sum, squares) in [
                (-2.01 * count, squares.max(5.0 * count)),
                (sum, sum * sum / count - 0.01),
                // As far apart as two ends of the range, and further.
                (sum, 4.0 * sum + 12.01 * count),
            ] {
                assert!(sums(patients, [sum, squares], range).is_err(), "{seed}");
            }
        }
    }

    #[test]
    fn a_histogram_has_no_more_values_than_patients_who_have_one() {
        let grid = Grid::new(0.0, 1.0, 2).unwrap();
        let found = ColumnHistogram {
            ends: vec![1, 2],
            counts: vec![3, 4],
        };
        for (present, fits) in [(7, true), (6, false)] {
            let judged = histograms(std::slice::from_ref(&found), &[(grid, present)]);
            assert_eq!(judged.is_ok(), fits);
        }
    }
}
