//! Small values that several messages share, each checked once on its way in.

use crate::error::WireError;
use crate::generated as pb;
use crate::visible;
use ndarray::Array2;
use protocol::limits::{
    CERTIFICATE_BYTES_MAX, CHAIN_MAX, CLASSES_MAX, COUNT_MAX, EVALUATIONS_MAX, FEATURES_MAX,
    GROUPS_MAX, LEVELS_MAX, NAME_LENGTH_MAX, SIGNATURE_BYTES_MAX, SITES_MAX, TEXT_LENGTH_MAX,
};
use protocol::message::{
    ColumnHistogram, ColumnMoments, EvaluationCounts, PairCounts, Quartiles, Summary, Totals,
    Warrant,
};
use protocol::name::RunId;

pub(crate) fn finite(field: &'static str, value: f64) -> Result<f64, WireError> {
    if value.is_finite() {
        return Ok(value);
    }
    let found = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "infinity"
    } else {
        "-infinity"
    };
    Err(WireError::NotFinite { field, found })
}

pub(crate) fn finite_if_any(
    field: &'static str,
    value: Option<f64>,
) -> Result<Option<f64>, WireError> {
    value.map(|value| finite(field, value)).transpose()
}

pub(crate) fn present<T>(field: &'static str, value: Option<T>) -> Result<T, WireError> {
    value.ok_or(WireError::Missing { field })
}

pub(crate) fn at_most(field: &'static str, found: usize, limit: usize) -> Result<usize, WireError> {
    if found <= limit {
        return Ok(found);
    }
    let (found, limit) = (found as u64, limit as u64);
    Err(WireError::TooLarge {
        field,
        found,
        limit,
    })
}

/// A count of 1 to `limit`.
pub(crate) fn in_range(field: &'static str, found: u32, limit: usize) -> Result<u32, WireError> {
    at_most(field, found as usize, limit)?;
    if found == 0 {
        return Err(WireError::Unexpected {
            found: format!("0 {field}"),
            wanted: "at least 1".to_owned(),
        });
    }
    Ok(found)
}

/// A count of one site.
pub(crate) fn count(field: &'static str, found: u64) -> Result<u64, WireError> {
    count_within(field, found, COUNT_MAX)
}

/// A count over all sites of a run.
pub(crate) fn summed(field: &'static str, found: u64) -> Result<u64, WireError> {
    count_within(field, found, COUNT_MAX * SITES_MAX as u64)
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

fn count_within(field: &'static str, found: u64, limit: u64) -> Result<u64, WireError> {
    if found <= limit {
        return Ok(found);
    }
    Err(WireError::TooLarge {
        field,
        found,
        limit,
    })
}

/// A text of at most `length_max` characters.
pub(crate) fn text(
    field: &'static str,
    text: String,
    length_max: usize,
) -> Result<String, WireError> {
    if text.len() > length_max {
        at_most(field, text.chars().count(), length_max)?;
    }
    Ok(text)
}

/// An operator's word for a job.
pub(crate) fn warrant(found: pb::Warrant) -> Result<Warrant, WireError> {
    at_most("certificates", found.chain.len(), CHAIN_MAX)?;
    for certificate in &found.chain {
        at_most("a certificate", certificate.len(), CERTIFICATE_BYTES_MAX)?;
    }
    at_most("a signature", found.signature.len(), SIGNATURE_BYTES_MAX)?;
    let scheme = u16::try_from(found.scheme).map_err(|_| WireError::TooLarge {
        field: "a signature's scheme",
        found: found.scheme.into(),
        limit: u16::MAX.into(),
    })?;
    Ok(Warrant {
        token: text("a token", found.token, NAME_LENGTH_MAX)?,
        chain: found.chain,
        scheme,
        signature: found.signature,
    })
}

pub(crate) fn warrant_to_proto(warrant: Warrant) -> pb::Warrant {
    pb::Warrant {
        token: warrant.token,
        chain: warrant.chain,
        scheme: warrant.scheme.into(),
        signature: warrant.signature,
    }
}

/// A text for people, of at most [`TEXT_LENGTH_MAX`] characters, on one line.
pub(crate) fn sentence(field: &'static str, found: String) -> Result<String, WireError> {
    text(field, found, TEXT_LENGTH_MAX).map(visible::line)
}

/// As [`sentence`], and its lines stay lines: what a coordinator reports to an operator.
pub(crate) fn paragraph(field: &'static str, found: String) -> Result<String, WireError> {
    text(field, found, TEXT_LENGTH_MAX).map(visible::lines)
}

/// A name, code or version of at most [`NAME_LENGTH_MAX`] characters, on one line.
pub(crate) fn label(field: &'static str, found: String) -> Result<String, WireError> {
    text(field, found, NAME_LENGTH_MAX).map(visible::line)
}

/// Cuts a text for people to what the other side accepts.
pub(crate) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_LENGTH_MAX) {
        text.truncate(end);
    }
    text
}

pub(crate) fn run_id(text: &str) -> Result<RunId, WireError> {
    RunId::new(text).map_err(|source| WireError::Name {
        field: "the run",
        source,
    })
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

pub(crate) fn summary_to_proto(summary: Summary) -> pb::Summary {
    pb::Summary {
        patients: summary.patients,
        pairs: Some(pairs_to_proto(summary.pairs)),
    }
}

pub(crate) fn summary(summary: Option<pb::Summary>) -> Result<Summary, WireError> {
    let summary = present("summary", summary)?;
    Ok(Summary {
        patients: summary.patients,
        pairs: pairs(summary.pairs)?,
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

pub(crate) fn column_to_proto(column: ColumnMoments) -> pb::ColumnMoments {
    use pb::column_moments::Kind;
    let kind = match column {
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
        ColumnMoments::Categorical { counts, missing } => {
            Kind::Categorical(pb::CategoricalMoments { counts, missing })
        }
    };
    pb::ColumnMoments { kind: Some(kind) }
}

pub(crate) fn column(column: pb::ColumnMoments) -> Result<ColumnMoments, WireError> {
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

pub(crate) fn histogram_to_proto(histogram: ColumnHistogram) -> pb::Histogram {
    let ColumnHistogram { ends, counts } = histogram;
    pb::Histogram { ends, counts }
}

pub(crate) fn histogram(histogram: pb::Histogram) -> Result<ColumnHistogram, WireError> {
    let pb::Histogram { ends, counts } = histogram;
    at_most("groups of a histogram", ends.len(), GROUPS_MAX)?;
    if ends.len() != counts.len() {
        return Err(WireError::Unexpected {
            found: format!("{} counts of {} groups", counts.len(), ends.len()),
            wanted: "one count a group".to_owned(),
        });
    }
    Ok(ColumnHistogram { ends, counts })
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
            wanted: "three numbers a column".to_owned(),
        });
    }
    let one = |row: ndarray::ArrayView1<'_, f64>| Quartiles {
        lower: row[0],
        median: row[1],
        upper: row[2],
    };
    Ok(matrix.rows().into_iter().map(one).collect())
}

pub(crate) fn evaluations_to_proto(
    evaluations: Vec<EvaluationCounts>,
) -> Vec<pb::EvaluationCounts> {
    let row = |counts| pb::ConfusionRow { counts };
    let one = |evaluation: EvaluationCounts| pb::EvaluationCounts {
        rule: evaluation.rule,
        neighbours: evaluation.neighbours,
        confusion: evaluation.confusion.map(|rows| pb::Confusion {
            rows: rows.into_iter().map(row).collect(),
        }),
    };
    evaluations.into_iter().map(one).collect()
}

pub(crate) fn evaluations(
    evaluations: Vec<pb::EvaluationCounts>,
) -> Result<Vec<EvaluationCounts>, WireError> {
    at_most("evaluations", evaluations.len(), EVALUATIONS_MAX)?;
    evaluations.into_iter().map(evaluation).collect()
}

fn evaluation(evaluation: pb::EvaluationCounts) -> Result<EvaluationCounts, WireError> {
    Ok(EvaluationCounts {
        rule: sentence("the rule of an evaluation", evaluation.rule)?,
        neighbours: evaluation.neighbours,
        confusion: evaluation.confusion.map(confusion).transpose()?,
    })
}

fn confusion(table: pb::Confusion) -> Result<Vec<Vec<u64>>, WireError> {
    let classes = at_most(
        "classes of a confusion table",
        table.rows.len(),
        CLASSES_MAX,
    )?;
    if let Some(row) = table.rows.iter().find(|row| row.counts.len() != classes) {
        return Err(WireError::Unexpected {
            found: format!("{} counts in a row of a confusion table", row.counts.len()),
            wanted: format!("{classes}, as many as rows"),
        });
    }
    Ok(table.rows.into_iter().map(|row| row.counts).collect())
}
