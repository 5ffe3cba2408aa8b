//! Comparisons of standardised vectors: a learned metric, and those that need no learning.

use ndarray::{Array1, Array2, CowArray, Ix2};

use crate::cohort::Column;
use crate::cohort::standardise::Standardisation;
use crate::compare::{CompareError, Placed};
use crate::numeric::linear_algebra::{gram, product, symmetric_eigen};
use crate::numeric::portable::{dot, inner, sum_of_pairs};

/// Directions with less than this share of the largest variance have none of their own.
const FLAT: f64 = 1e-10;

/// What is taken of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The length of the difference of their projections.
    Euclidean,
    /// The sum of the absolute differences.
    Manhattan,
    /// 1 - the cosine of the angle between them; 1 where one is 0.
    Cosine,
    /// The inner product of their projections: large is near.
    InnerProduct,
}

/// A comparison of standardised vectors x, n x d.
#[derive(Debug, Clone)]
pub struct Metric {
    name: &'static str,
    standardisation: Standardisation,
    measure: Measure,
    /// W, d x m: M = W W'. None is the identity.
    projection: Option<Array2<f64>>,
    features: Vec<String>,
    /// The feature of each of the d rows.
    feature_of: Vec<usize>,
}

impl Metric {
    /// A learned metric W, d x m: the distance ||W'(x_i - x_j)||, or the inner product of W'x_i and W'x_j. `columns` are the
    /// names of the cohort's columns.
    ///
    /// # Errors
    /// [`CompareError::Rows`], and [`CompareError::Empty`] where W is 0.
    pub fn learned(
        columns: &[String],
        standardisation: Standardisation,
        metric: Array2<f64>,
        measure: Measure,
    ) -> Result<Self, CompareError> {
        let (found, wanted) = (metric.nrows(), standardisation.rows().len());
        if found != wanted {
            return Err(CompareError::Rows { found, wanted });
        }
        if metric.iter().all(|entry| *entry == 0.0) {
            return Err(CompareError::Empty);
        }
        let name = match measure {
            Measure::InnerProduct => "learned similarity (inner product)",
            Measure::Euclidean | Measure::Manhattan | Measure::Cosine => "learned distance",
        };
        let projection = Some(metric);
        Ok(Self::new(
            name,
            columns,
            standardisation,
            measure,
            projection,
        ))
    }

    /// A measure of the standardised vectors themselves.
    #[must_use]
    pub fn plain(columns: &[String], standardisation: Standardisation, measure: Measure) -> Self {
        let name = match measure {
            Measure::Euclidean => "Euclidean distance",
            Measure::Manhattan => "Manhattan distance",
            Measure::Cosine => "cosine distance",
            Measure::InnerProduct => "inner product",
        };
        Self::new(name, columns, standardisation, measure, None)
    }

    /// Mahalanobis' distance by the covariance (divisor n - 1) of `cohort`'s standardised vectors. Directions without
    /// variance, as of columns that others already say, count nothing.
    ///
    /// # Errors
    /// [`CompareError`] where the columns do not fit, there are fewer than two patients, or the covariance has no eigenvalues.
    pub fn mahalanobis(
        columns: &[String],
        standardisation: Standardisation,
        cohort: &[Column],
    ) -> Result<Self, CompareError> {
        let x = standardisation.apply_to(cohort)?;
        let patients = x.nrows();
        if patients < 2 {
            return Err(CompareError::Patients {
                found: patients,
                wanted: 2,
            });
        }
        let means: Array1<f64> = x
            .columns()
            .into_iter()
            .map(|one| one.sum() / patients as f64)
            .collect();
        let centred = x - &means;
        let covariance = gram(&centred.view()) / (patients - 1) as f64;
        let eigen = symmetric_eigen(&covariance)?;
        let largest = eigen.values.iter().copied().fold(0.0, f64::max);
        let kept: Vec<usize> = (0..eigen.values.len())
            .filter(|place| eigen.values[*place] > FLAT * largest)
            .collect();
        let mut whitening = eigen.vectors.select(ndarray::Axis(1), &kept);
        for (mut column, place) in whitening.columns_mut().into_iter().zip(&kept) {
            column /= eigen.values[*place].sqrt();
        }
        Ok(Self::whitened(columns, standardisation, whitening))
    }

    /// Mahalanobis' distance by a whitening that is known, d x m.
    #[must_use]
    pub fn whitened(
        columns: &[String],
        standardisation: Standardisation,
        whitening: Array2<f64>,
    ) -> Self {
        let (name, measure) = ("Mahalanobis distance", Measure::Euclidean);
        Self::new(name, columns, standardisation, measure, Some(whitening))
    }

    /// How its vectors are made.
    #[must_use]
    pub fn standardisation(&self) -> &Standardisation {
        &self.standardisation
    }

    /// W, d x m, where it has one.
    #[must_use]
    pub fn projection(&self) -> Option<&Array2<f64>> {
        self.projection.as_ref()
    }

    fn new(
        name: &'static str,
        columns: &[String],
        standardisation: Standardisation,
        measure: Measure,
        projection: Option<Array2<f64>>,
    ) -> Self {
        let feature_of = standardisation
            .rows()
            .iter()
            .map(|row| row.column())
            .collect();
        Self {
            name,
            standardisation,
            measure,
            projection,
            features: columns.to_vec(),
            feature_of,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What is taken of two vectors.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// The vectors whose squared distances or inner products are compared: of a cosine each over its length. None where something
    /// else is.
    pub(super) fn vectors<'p>(&self, placed: &'p Placed) -> Option<CowArray<'p, f64, Ix2>> {
        let Placed::Vectors { rows, projected } = placed else {
            return None;
        };
        match self.measure {
            Measure::Manhattan => None,
            Measure::Euclidean | Measure::InnerProduct => {
                Some(projected.as_ref().unwrap_or(rows).view().into())
            }
            Measure::Cosine => {
                let mut units = rows.clone();
                for mut row in units.outer_iter_mut() {
                    let length = dot(&row, &row).sqrt();
                    // No direction: at a right angle to all.
                    row /= if length > 0.0 { length } else { 1.0 };
                }
                Some(units.into())
            }
        }
    }

    pub(super) fn features(&self) -> &[String] {
        &self.features
    }

    pub(super) fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        let rows = self.standardisation.apply_to(columns)?;
        let projection = self.projection.as_ref();
        let projected = projection.map(|metric| product(&rows.view(), &metric.view()));
        Ok(Placed::Vectors { rows, projected })
    }

    pub(super) fn sum(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        match self.measure {
            Measure::Euclidean => sum_of_pairs(one.projected(i), other.projected(j), |a, b| {
                (a - b) * (a - b)
            }),
            Measure::InnerProduct => -inner(one.projected(i), other.projected(j)),
            Measure::Manhattan => sum_of_pairs(one.row(i), other.row(j), |a, b| (a - b).abs()),
            Measure::Cosine => Units::of(one.row(i), other.row(j)).parts().sum(),
        }
    }

    pub(super) fn parts(
        &self,
        one: &Placed,
        i: usize,
        other: &Placed,
        j: usize,
        parts: &mut [f64],
    ) {
        let (a, b) = (one.row(i), other.row(j));
        let mut add = |row: usize, part: f64| parts[self.feature_of[row]] += part;
        match self.measure {
            Measure::Euclidean => {
                let pairs = one.projected(i).iter().zip(other.projected(j));
                let back = self.back(&pairs.map(|(a, b)| a - b).collect::<Vec<f64>>());
                (0..a.len()).for_each(|row| add(row, (a[row] - b[row]) * back[row]));
            }
            Measure::InnerProduct => {
                let back = self.back(other.projected(j));
                (0..a.len()).for_each(|row| add(row, -a[row] * back[row]));
            }
            Measure::Manhattan => {
                (0..a.len()).for_each(|row| add(row, (a[row] - b[row]).abs()));
            }
            Measure::Cosine => {
                let units = Units::of(a, b);
                units
                    .parts()
                    .enumerate()
                    .for_each(|(row, part)| add(row, part));
            }
        }
    }

    /// W p, of a projected p.
    fn back(&self, projected: &[f64]) -> Vec<f64> {
        match &self.projection {
            Some(metric) => {
                let rows = metric.outer_iter();
                rows.map(|row| row.iter().zip(projected).map(|(w, p)| w * p).sum())
                    .collect()
            }
            None => projected.to_vec(),
        }
    }
}

/// Two vectors, each over its length: half the squared difference is 1 - cos.
struct Units<'a> {
    one: &'a [f64],
    other: &'a [f64],
    lengths: [f64; 2],
}

impl<'a> Units<'a> {
    fn of(one: &'a [f64], other: &'a [f64]) -> Self {
        let length = |vector: &[f64]| inner(vector, vector).sqrt();
        Self {
            lengths: [length(one), length(other)],
            one,
            other,
        }
    }

    fn parts(&self) -> impl Iterator<Item = f64> + '_ {
        let [one, other] = self.lengths;
        let known = one > 0.0 && other > 0.0;
        let even = 1.0 / self.one.len() as f64;
        self.one
            .iter()
            .zip(self.other)
            .map(move |(a, b)| match known {
                true => 0.5 * (a / one - b / other).powi(2),
                // No direction: as far as from a right angle, by all rows alike.
                false => even,
            })
    }
}
