//! Features as ranks: every value becomes its place among the distinct values (or pooled edges), so
//! that growing a tree compares small integers.

use rayon::prelude::*;

use crate::cohort::{Column, MISSING_LEVEL, Values};
use crate::learn::forest::settings::{Cuts, GrowError};

/// One feature of the training patients.
pub(crate) struct CodedFeature {
    /// One code per patient, below `scale.codes()`, or equal to it where the value is missing.
    pub(crate) codes: Vec<u32>,
    pub(crate) scale: Scale,
}

/// What codes stand for.
pub(crate) enum Scale {
    /// Code k is the k-th smallest distinct value.
    Values(Vec<f64>),
    /// Code k is the interval (edge k-1, edge k].
    Edges(Vec<f64>),
    /// Code k is level k.
    Levels(usize),
}

impl Scale {
    /// Number of codes of present values; also the code of a missing one.
    pub(crate) fn codes(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Edges(edges) => edges.len() + 1,
            Self::Levels(levels) => *levels,
        }
    }

    /// The threshold between two neighbouring present codes. Where no code follows it is infinite:
    /// present values go left and missing ones right.
    pub(crate) fn threshold(&self, below: u32, above: Option<u32>) -> f64 {
        let Some(above) = above else {
            return f64::INFINITY;
        };
        match self {
            Self::Values(values) => midpoint(values[below as usize], values[above as usize]),
            // Every edge from `below` to `above` - 1 parts this node alike; the middle one is nearest a midpoint.
            Self::Edges(edges) => edges[(below + above - 1) as usize / 2],
            Self::Levels(_) => f64::from(below),
        }
    }
}

/// A number in [below, above), halfway where rounding allows.
fn midpoint(below: f64, above: f64) -> f64 {
    let middle = below / 2.0 + above / 2.0;
    if middle >= below && middle < above {
        middle
    } else {
        below
    }
}

/// Codes every column, in parallel over columns.
pub(crate) fn coded(columns: &[Column], cuts: &Cuts) -> Result<Vec<CodedFeature>, GrowError> {
    if let Cuts::Edges(edges) = cuts
        && edges.features() != columns.len()
    {
        return Err(GrowError::Edges {
            found: edges.features(),
            wanted: columns.len(),
        });
    }
    columns
        .par_iter()
        .enumerate()
        .map(|(feature, column)| match (&column.values, cuts) {
            (Values::Numeric(values), Cuts::Midpoints) => Ok(ranked(&values.to_vec())),
            (Values::Numeric(values), Cuts::Edges(edges)) => {
                Ok(binned(&values.to_vec(), edges.of(feature)))
            }
            (Values::Categorical { codes, levels }, _) => {
                if crate::learn::forest::trees::schema::has_stray_code(
                    codes.iter().copied(),
                    levels.len(),
                ) {
                    return Err(GrowError::Codes {
                        column: column.name.clone(),
                        levels: levels.len(),
                    });
                }
                let missing = levels.len() as u32;
                let codes = codes
                    .iter()
                    .map(|&code| if code == MISSING_LEVEL { missing } else { code })
                    .collect();
                Ok(CodedFeature {
                    codes,
                    scale: Scale::Levels(levels.len()),
                })
            }
        })
        .collect()
}

fn ranked(values: &[f64]) -> CodedFeature {
    let mut order: Vec<u32> = (0..values.len() as u32)
        .filter(|&patient| !values[patient as usize].is_nan())
        .collect();
    order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
    let mut distinct: Vec<f64> = Vec::new();
    let mut codes = vec![u32::MAX; values.len()];
    for &patient in &order {
        let value = values[patient as usize];
        // == and not total_cmp: -0 and 0 are one value.
        if distinct.last().is_none_or(|&last| last != value) {
            distinct.push(value);
        }
        codes[patient as usize] = distinct.len() as u32 - 1;
    }
    let missing = distinct.len() as u32;
    for code in &mut codes {
        *code = (*code).min(missing);
    }
    CodedFeature {
        codes,
        scale: Scale::Values(distinct),
    }
}

fn binned(values: &[f64], edges: &[f64]) -> CodedFeature {
    let missing = edges.len() as u32 + 1;
    let codes = values
        .iter()
        .map(|value| {
            if value.is_nan() {
                missing
            } else {
                edges.partition_point(|edge| edge < value) as u32
            }
        })
        .collect();
    CodedFeature {
        codes,
        scale: Scale::Edges(edges.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_distinct_values_and_put_missing_last() {
        let feature = ranked(&[2.0, f64::NAN, -0.0, 0.0, 7.0, 2.0]);
        assert_eq!(feature.codes, [1, 3, 0, 0, 2, 1]);
        assert_eq!(feature.scale.codes(), 3);
        assert_eq!(feature.scale.threshold(1, Some(2)), 4.5);
        assert_eq!(feature.scale.threshold(2, None), f64::INFINITY);
    }

    #[test]
    fn a_threshold_never_reaches_the_upper_value() {
        let below = 1.0_f64;
        let above = below.next_up();
        assert_eq!(midpoint(below, above), below);
        assert_eq!(
            midpoint(f64::NEG_INFINITY, f64::INFINITY),
            f64::NEG_INFINITY
        );
        assert!(midpoint(f64::MAX * 0.9, f64::MAX).is_finite());
    }

    #[test]
    fn a_value_on_an_edge_lies_below_it() {
        let feature = binned(&[0.5, 1.0, 1.5, 2.0, 9.0, f64::NAN], &[1.0, 2.0]);
        assert_eq!(feature.codes, [0, 0, 1, 1, 2, 3]);
        assert_eq!(feature.scale.threshold(0, Some(1)), 1.0);
        assert_eq!(feature.scale.threshold(0, Some(2)), 1.0);
    }
}
