//! What a site may tell of its cohort before the rounds.

use crate::checks::{self, ROUNDING, count, ensure, fault, length, numbers, within};
use crate::cohort::{Feature, FeatureKind};
use crate::failure::Failure;
use crate::message::{ColumnMoments, PairCounts, SecondMoments, Summary, Totals};
use similarity::cohort::logarithm;
use similarity::learn::unpsl::PAIRS_STEP;

/// The patients that the site described, and pairs of them.
pub(super) fn summary(summary: &Summary, patients: u64, pairs_max: u64) -> Result<(), Failure> {
    let Summary {
        patients: told,
        pairs: PairCounts {
            similar,
            dissimilar,
        },
    } = *summary;
    ensure(
        told == patients,
        "another number of patients than before",
        "the patients that the site described",
    )?;
    count(similar)?;
    count(dissimilar)?;
    // Either kind may be rounded up.
    ensure(
        similar + dissimilar < pairs_max + 2 * PAIRS_STEP,
        "more pairs than its patients make",
        "pairs of its patients",
    )
}

/// Second moments of `rows` rows that so many patients can have.
pub(super) fn second_moments(
    found: &SecondMoments,
    rows: usize,
    patients: u64,
) -> Result<(), Failure> {
    length("sums of features", found.sums.len(), rows)?;
    length("rows of second moments", found.products.nrows(), rows)?;
    length("columns of second moments", found.products.ncols(), rows)?;
    ensure(
        found.patients == patients,
        "second moments of another number of patients",
        "those of the patients that the site described",
    )?;
    numbers(&found.sums)?;
    numbers(&found.products)?;
    // Cauchy and Schwarz: sums of squares bound all else.
    #[allow(clippy::cast_precision_loss)] // at most 2^40
    let count = patients as f64;
    let squares = found.products.diag();
    let within =
        |product: f64, bound: f64| product * product <= bound * (1.0 + ROUNDING) + ROUNDING;
    let sums = found.sums.iter().zip(&squares);
    let products = found.products.indexed_iter();
    let holds = squares.iter().all(|square| *square >= 0.0)
        && sums
            .clone()
            .all(|(sum, square)| within(*sum, count * square))
        && products
            .map(|((row, column), product)| within(*product, squares[row] * squares[column]))
            .fold(true, |all, one| all & one);
    ensure(
        holds,
        "second moments that no patients have",
        "sums over its patients",
    )
}

/// What the means of sites add to the variance of so many `rows` that have a variance of 1.
#[allow(clippy::cast_precision_loss)] // counts of patients and of sites
pub(super) fn spread(between: &[f64], rows: usize, totals: Totals) -> Result<(), Failure> {
    length("rows", between.len(), rows)?;
    // All squares come to one a patient, and half a patient of the rarest level to half of all patients, rounded at each site.
    let most = totals.patients as f64 * (1.0 + totals.sites as f64);
    ensure(
        between.iter().all(|one| (0.0..=most).contains(one)),
        "means too far apart for so many patients",
        "what the means of standardised patients add to their variance",
    )
}

/// Moments of one feature: counts of all patients, and sums that such values can have.
pub(super) fn moments(
    feature: &Feature,
    found: &ColumnMoments,
    patients: u64,
) -> Result<(), Failure> {
    let kind = &feature.kind;
    match (kind, found) {
        (FeatureKind::Categorical { levels }, ColumnMoments::Categorical { counts, missing }) => {
            length("levels", counts.len(), levels.len())?;
            whole(counts.iter().chain([missing]), patients)
        }
        (
            FeatureKind::Numeric { .. }
            | FeatureKind::Ordinal { .. }
            | FeatureKind::Binary { .. }
            | FeatureKind::Age { .. },
            ColumnMoments::Numeric {
                count,
                sum,
                sum_squares,
                missing,
            },
        ) => {
            whole([count, missing], patients)?;
            let range = kind
                .range()
                .map(|(low, high)| match feature.is_logarithm() {
                    true => (logarithm(low), logarithm(high)),
                    false => (low, high),
                });
            checks::sums(*count, [*sum, *sum_squares], range)
        }
        (_, ColumnMoments::Numeric { .. } | ColumnMoments::Categorical { .. }) => Err(fault(
            "moments of another kind of feature",
            "those of the job's",
        )),
    }
}

/// Counts that add up to the patients.
fn whole<'c>(
    counts: impl IntoIterator<Item = &'c u64> + Clone,
    patients: u64,
) -> Result<(), Failure> {
    within(counts.clone(), patients)?;
    ensure(
        counts.into_iter().sum::<u64>() == patients,
        "counts of fewer patients than the site has",
        "counts that add up to them",
    )
}
