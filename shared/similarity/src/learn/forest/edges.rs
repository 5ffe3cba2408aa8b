//! Pooled quantile edges: where a federated forest may cut numeric features.
//!
//! Every site describes each numeric feature by a histogram of about equally filled cells. Its edges are
//! rounded to three significant digits, its outer cells are open, and no cell holds fewer patients than
//! the site's minimum, so that it shows no patient's value and no small count. The pooled distribution is
//! the sum of the sites' histograms, and the edges are its quantiles, rounded again.

use ndarray::ArrayView1;

/// Significant digits of every edge that leaves a site or is pooled.
const DIGITS: i32 = 3;

/// The distribution of one numeric feature at one site, fit to be released.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteHistogram {
    edges: Vec<f64>,
    counts: Vec<u64>,
}

/// For every feature the thresholds a federated forest may use, rising; none for a categorical one.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledEdges {
    edges: Vec<Vec<f64>>,
}

/// Why a histogram or edges are not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EdgesError {
    /// Fewer present patients than one cell must hold.
    #[error("too few patients with a value, wanted at least {wanted}")]
    TooFew {
        /// The least a cell may hold.
        wanted: u64,
    },
    /// No cells asked for, or a minimum of 0.
    #[error("0 {what} asked for, wanted at least 1")]
    Zero {
        /// Of what.
        what: &'static str,
    },
    /// Another number of counts than edges plus one.
    #[error("{found} counts, wanted {wanted}")]
    Counts {
        /// Counts found.
        found: usize,
        /// Counts wanted.
        wanted: usize,
    },
    /// Edges that do not rise or are not finite.
    #[error("edge {position} is not finite or not above the one before")]
    Edge {
        /// Position, from 0.
        position: usize,
    },
    /// A cell below the minimum.
    #[error("cell {position} holds fewer patients than the minimum of {wanted}")]
    Cell {
        /// Position, from 0.
        position: usize,
        /// The minimum.
        wanted: u64,
    },
}

impl SiteHistogram {
    /// A histogram of at most `cells` cells, each of at least `patients_min` patients; missing values (NaN)
    /// are omitted. Cell k holds the patients in (edge k-1, edge k], the outer cells being open.
    ///
    /// # Errors
    /// [`EdgesError::TooFew`] with fewer than `patients_min` present patients, [`EdgesError::Zero`] where 0 is asked for.
    pub fn new(
        values: ArrayView1<'_, f64>,
        cells: usize,
        patients_min: u64,
    ) -> Result<Self, EdgesError> {
        if cells == 0 {
            return Err(EdgesError::Zero { what: "cells" });
        }
        if patients_min == 0 {
            return Err(EdgesError::Zero {
                what: "patients per cell",
            });
        }
        let mut sorted: Vec<f64> = values
            .iter()
            .copied()
            .filter(|value| !value.is_nan())
            .collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let patients = sorted.len();
        if (patients as u64) < patients_min {
            return Err(EdgesError::TooFew {
                wanted: patients_min,
            });
        }
        let (mut edges, mut counts, mut taken) = (Vec::new(), Vec::new(), 0);
        for cell in 1..cells {
            let edge = rounded(sorted[(cell * patients / cells).min(patients - 1)]);
            let below = sorted.partition_point(|&value| value <= edge);
            let rises = edges.last().is_none_or(|&last| edge > last);
            let holds = |count: usize| count as u64 >= patients_min;
            if edge.is_finite()
                && rises
                && holds(below.saturating_sub(taken))
                && holds(patients - below)
            {
                edges.push(edge);
                counts.push((below - taken) as u64);
                taken = below;
            }
        }
        counts.push((patients - taken) as u64);
        Ok(Self { edges, counts })
    }

    /// A histogram as another site described it.
    ///
    /// # Errors
    /// [`EdgesError`] where edges do not rise, counts do not fit them, or a cell is below `patients_min`.
    pub fn received(
        edges: Vec<f64>,
        counts: Vec<u64>,
        patients_min: u64,
    ) -> Result<Self, EdgesError> {
        check_rising(&edges)?;
        if counts.len() != edges.len() + 1 {
            return Err(EdgesError::Counts {
                found: counts.len(),
                wanted: edges.len() + 1,
            });
        }
        if let Some(position) = counts.iter().position(|&count| count < patients_min) {
            return Err(EdgesError::Cell {
                position,
                wanted: patients_min,
            });
        }
        Ok(Self { edges, counts })
    }

    /// The finite edges, rising.
    #[must_use]
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Patients of every cell, one more than edges.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Estimated number of patients with a value of at most `value`: linear within a cell; the open
    /// cells lie at their edge, beyond which nothing is known.
    fn at_most(&self, value: f64) -> f64 {
        let cell = self.edges.partition_point(|&edge| edge <= value);
        let whole: u64 = self.counts[..cell].iter().sum();
        let inside = match (
            cell.checked_sub(1).map(|below| self.edges[below]),
            self.edges.get(cell),
        ) {
            (Some(low), Some(&high)) => (value - low) / (high - low) * self.counts[cell] as f64,
            _ => 0.0,
        };
        whole as f64 + inside
    }
}

impl PooledEdges {
    /// Edges agreed on, one list a feature of the cohort, empty for a categorical one.
    ///
    /// # Errors
    /// [`EdgesError::Edge`] where a list does not rise or is not finite.
    pub fn new(edges: Vec<Vec<f64>>) -> Result<Self, EdgesError> {
        edges.iter().try_for_each(|edges| check_rising(edges))?;
        Ok(Self { edges })
    }

    /// Pools the sites' histograms: `histograms` has one list of sites a feature, empty for a categorical
    /// one (or one that no site could release). Each feature gets at most `cuts` edges, the quantiles
    /// 1/(cuts+1), 2/(cuts+1), ... of the sum of the histograms, rounded to three significant digits.
    ///
    /// # Errors
    /// [`EdgesError::Zero`] with 0 cuts.
    pub fn pooled(histograms: &[Vec<SiteHistogram>], cuts: usize) -> Result<Self, EdgesError> {
        if cuts == 0 {
            return Err(EdgesError::Zero { what: "cuts" });
        }
        Ok(Self {
            edges: histograms
                .iter()
                .map(|sites| quantiles(sites, cuts))
                .collect(),
        })
    }

    /// Number of features.
    #[must_use]
    pub fn features(&self) -> usize {
        self.edges.len()
    }

    /// The edges of one feature, rising.
    #[must_use]
    pub fn of(&self, feature: usize) -> &[f64] {
        &self.edges[feature]
    }
}

fn quantiles(sites: &[SiteHistogram], cuts: usize) -> Vec<f64> {
    let mut knots: Vec<f64> = sites
        .iter()
        .flat_map(|site| site.edges.iter().copied())
        .collect();
    knots.sort_unstable_by(f64::total_cmp);
    knots.dedup();
    let at_most = |value: f64| sites.iter().map(|site| site.at_most(value)).sum::<f64>();
    let heights: Vec<f64> = knots.iter().map(|&knot| at_most(knot)).collect();
    let total: u64 = sites.iter().flat_map(|site| &site.counts).sum();
    let mut edges: Vec<f64> = Vec::new();
    for cut in 1..=cuts {
        let wanted = total as f64 * cut as f64 / (cuts + 1) as f64;
        let above = heights.partition_point(|&height| height < wanted);
        let (Some(&high), Some(&knot)) = (heights.get(above), knots.get(above)) else {
            break;
        };
        let edge = match above.checked_sub(1) {
            Some(below) => {
                let (low, from) = (heights[below], knots[below]);
                // The sum jumps at a knot where a site's open cell lies: never beyond the knot.
                (from + (knot - from) * (wanted - low) / (high - low)).min(knot)
            }
            None => knot,
        };
        let edge = rounded(edge);
        if edges.last().is_none_or(|&last| edge > last) {
            edges.push(edge);
        }
    }
    edges
}

fn check_rising(edges: &[f64]) -> Result<(), EdgesError> {
    let bad = |position: usize| {
        !edges[position].is_finite() || (position > 0 && edges[position - 1] >= edges[position])
    };
    match (0..edges.len()).find(|&position| bad(position)) {
        Some(position) => Err(EdgesError::Edge { position }),
        None => Ok(()),
    }
}

/// To the three significant digits that pooled edges have.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // The same on every machine: sites follow the coordinator's rounding.
    let exponent = libm::log10(value.abs()).floor() as i32;
    let shift = DIGITS - 1 - exponent;
    let scaled = if shift >= 0 {
        (value * 10_f64.powi(shift)).round() / 10_f64.powi(shift)
    } else {
        (value / 10_f64.powi(-shift)).round() * 10_f64.powi(-shift)
    };
    // Beyond the range of powers of ten the value itself is as round as it gets: 0.
    if scaled.is_finite() { scaled } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use ndarray::Array1;
    use proptest::prelude::*;
    use rand::RngExt;

    #[test]
    fn edges_keep_three_significant_digits() {
        for (value, wanted) in [
            (1234.5, 1230.0),
            (-0.012_345, -0.0123),
            (0.0, 0.0),
            (9.999, 10.0),
        ] {
            assert_eq!(rounded(value), wanted);
        }
        assert_eq!(rounded(5e-324), 0.0);
        assert!(rounded(1.7e308).is_finite());
    }

    #[test]
    fn pooled_edges_are_the_quantiles_of_all_patients() {
        let mut stream = Seed(2).stream("edges", 0);
        let sites: Vec<Array1<f64>> = [(500, 0.0), (2000, 10.0), (800, -3.0)]
            .iter()
            .map(|&(patients, shift)| {
                Array1::from_shape_fn(patients, |_| shift + 20.0 * stream.random::<f64>())
            })
            .collect();
        let histograms = sites
            .iter()
            .map(|site| SiteHistogram::new(site.view(), 64, 5).unwrap())
            .collect();
        let pooled = PooledEdges::pooled(&[histograms], 31).unwrap();
        let everyone: Vec<f64> = sites.iter().flatten().copied().collect();
        assert_eq!(pooled.of(0).len(), 31);
        for (cut, &edge) in pooled.of(0).iter().enumerate() {
            let below = everyone.iter().filter(|&&value| value <= edge).count();
            let wanted = (cut + 1) as f64 / 32.0;
            assert!((below as f64 / everyone.len() as f64 - wanted).abs() < 0.01);
        }
    }

    proptest! {
        #[test]
        fn no_cell_is_small_and_all_present_patients_are_counted(
            values in prop::collection::vec(prop_oneof![Just(f64::NAN), Just(1.0), -50.0..50.0], 0..200),
            cells in 1_usize..40, patients_min in 1_u64..15,
        ) {
            let values = Array1::from(values);
            let present = values.iter().filter(|value| !value.is_nan()).count() as u64;
            match SiteHistogram::new(values.view(), cells, patients_min) {
                Ok(found) => {
                    prop_assert!(found.counts.iter().all(|&count| count >= patients_min));
                    prop_assert_eq!(found.counts.iter().sum::<u64>(), present);
                    prop_assert!(found.counts.len() <= cells);
                    let again = SiteHistogram::received(found.edges.clone(), found.counts.clone(), patients_min);
                    prop_assert_eq!(again, Ok(found));
                }
                Err(error) => {
                    prop_assert_eq!(error, EdgesError::TooFew { wanted: patients_min });
                    prop_assert!(present < patients_min);
                }
            }
        }
    }
}
