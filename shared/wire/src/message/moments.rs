//! What is known of the columns of cohorts: moments, histograms, quartiles, and the counts beside them.

use crate::encoding::list::Listed;
use crate::encoding::values::{at_most, finite, present, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::part::Part;
use ndarray::Array2;
use protocol::limits::{FEATURES_MAX, GROUPS_MAX, LEVELS_MAX};
use protocol::message::{ColumnHistogram, ColumnMoments, PairCounts, Quartiles, Totals};

/// Moments, one per feature.
pub(crate) enum Columns {}

impl Listed for Columns {
    type Item = ColumnMoments;
    type Row = pb::ColumnMoments;
    const DECLARED: &'static str = "moments";
    const PART: &'static str = "a list of moments";
    const ITEMS_MAX: usize = FEATURES_MAX;

    fn part(columns: Vec<pb::ColumnMoments>) -> Part {
        Part::Columns(pb::ColumnsChunk { columns })
    }

    fn write(item: &ColumnMoments) -> pb::ColumnMoments {
        column_to_proto(item)
    }

    fn read(row: pb::ColumnMoments, _numbers: &mut usize) -> Result<ColumnMoments, WireError> {
        column(row)
    }
}

fn column_to_proto(column: &ColumnMoments) -> pb::ColumnMoments {
    use pb::column_moments::Kind;
    let kind = match *column {
        ColumnMoments::Numeric {
            count,
            sum,
            sum_squares,
            missing,
        } => Kind::Numeric(pb::NumericMoments {
            count,
            sum,
            sum_squares,
            missing,
        }),
        ColumnMoments::Categorical {
            ref counts,
            missing,
        } => Kind::Categorical(pb::CategoricalMoments {
            counts: counts.clone(),
            missing,
        }),
    };
    pb::ColumnMoments { kind: Some(kind) }
}

fn column(column: pb::ColumnMoments) -> Result<ColumnMoments, WireError> {
    use pb::column_moments::Kind;
    Ok(match present("kind of moments", column.kind)? {
        Kind::Numeric(numeric) => ColumnMoments::Numeric {
            count: numeric.count,
            sum: finite("a sum of moments", numeric.sum)?,
            sum_squares: finite("a sum of squares of moments", numeric.sum_squares)?,
            missing: numeric.missing,
        },
        Kind::Categorical(categorical) => {
            at_most("levels", categorical.counts.len(), LEVELS_MAX)?;
            ColumnMoments::Categorical {
                counts: categorical.counts,
                missing: categorical.missing,
            }
        }
    })
}

/// A histogram, as an opening keeps it.
pub(crate) fn histogram_to_proto(histogram: &ColumnHistogram) -> pb::Histogram {
    let ColumnHistogram { ends, counts } = histogram.clone();
    pb::Histogram { ends, counts }
}

/// The same, come from elsewhere.
pub(crate) fn histogram(histogram: pb::Histogram) -> Result<ColumnHistogram, WireError> {
    let pb::Histogram { ends, counts } = histogram;
    at_most("groups of a histogram", ends.len(), GROUPS_MAX)?;
    if ends.len() != counts.len() {
        return Err(WireError::Unexpected {
            found: format!("{} counts of {} groups", counts.len(), ends.len()),
            wanted: "one count per group".to_owned(),
        });
    }
    Ok(ColumnHistogram { ends, counts })
}

/// Moments over all sites of a run.
pub(crate) fn summed_moments(moments: &ColumnMoments) -> Result<(), WireError> {
    let field = "a count of moments";
    match moments {
        ColumnMoments::Numeric { count, missing, .. } => {
            summed(field, *count)?;
            summed(field, *missing)?;
        }
        ColumnMoments::Categorical { counts, missing } => {
            for found in counts.iter().chain([missing]) {
                summed(field, *found)?;
            }
        }
    }
    Ok(())
}

/// Quartiles as a matrix of three columns; none where there are none.
pub(crate) fn quartiles_to_matrix(quartiles: &[Quartiles]) -> Option<Array2<f64>> {
    let entry = |(row, column): (usize, usize)| match column {
        0 => quartiles[row].lower,
        1 => quartiles[row].median,
        _ => quartiles[row].upper,
    };
    (!quartiles.is_empty()).then(|| Array2::from_shape_fn((quartiles.len(), 3), entry))
}

pub(crate) fn quartiles(matrix: &Array2<f64>) -> Result<Vec<Quartiles>, WireError> {
    at_most("quartiles", matrix.nrows(), FEATURES_MAX)?;
    if matrix.ncols() != 3 {
        return Err(WireError::Unexpected {
            found: format!("quartiles of {} x {}", matrix.nrows(), matrix.ncols()),
            wanted: "three numbers per column".to_owned(),
        });
    }
    let one = |row: ndarray::ArrayView1<'_, f64>| Quartiles {
        lower: row[0],
        median: row[1],
        upper: row[2],
    };
    Ok(matrix.rows().into_iter().map(one).collect())
}

pub(crate) fn totals_to_proto(totals: Totals) -> pb::Totals {
    pb::Totals {
        patients: totals.patients,
        pairs: Some(pairs_to_proto(totals.pairs)),
        sites: totals.sites,
    }
}

pub(crate) fn totals(totals: Option<pb::Totals>) -> Result<Totals, WireError> {
    let totals = present("totals", totals)?;
    let pairs = pairs(totals.pairs)?;
    Ok(Totals {
        patients: summed("patients of all sites", totals.patients)?,
        pairs: PairCounts {
            similar: summed("similar pairs of all sites", pairs.similar)?,
            dissimilar: summed("dissimilar pairs of all sites", pairs.dissimilar)?,
        },
        sites: summed("sites", totals.sites)?,
    })
}

fn pairs_to_proto(pairs: PairCounts) -> pb::PairCounts {
    pb::PairCounts {
        similar: pairs.similar,
        dissimilar: pairs.dissimilar,
    }
}

fn pairs(pairs: Option<pb::PairCounts>) -> Result<PairCounts, WireError> {
    let pairs = present("pairs", pairs)?;
    Ok(PairCounts {
        similar: pairs.similar,
        dissimilar: pairs.dissimilar,
    })
}
