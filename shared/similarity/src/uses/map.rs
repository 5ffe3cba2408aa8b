//! A map of patients: two coordinates for each, whose distances come near to those of any comparison. New patients are placed on it
//! without moving the others.
//!
//! Landmark scaling (de Silva and Tenenbaum 2004). With the squared distances D of l landmarks, B = -J D J / 2, its leading eigenpairs
//! (lambda_k, v_k) and the mean m of the columns of D, a patient at squared distances d from the landmarks lies at
//! x_k = v_k' (m - d) / (2 sqrt(lambda_k)). For a landmark that is its coordinate by classical scaling. Of an inner product s the squared
//! distance is s_ii + s_jj - 2 s_ij. Patients who cannot be compared count as the farthest.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, Axis};

use crate::compare::{Comparison, Placed};
use crate::numeric::linear_algebra::{LinearAlgebraError, symmetric_eigen};

/// Landmarks, at most; they are taken at equal steps.
const LANDMARKS_MAX: usize = 200;
/// An eigenvalue below this share of the largest spans nothing.
const RANK: f64 = 1e-9;

/// A map.
#[derive(Clone)]
pub struct Map {
    /// Two coordinates per patient, in the order of the cohort.
    pub places: Vec<[f64; 2]>,
    /// The share of the squared distances between landmarks that the two dimensions hold, from 0 to 1.
    pub share: f64,
    landmarks: Placed,
    /// Each landmark's product with itself, of an inner product.
    products: Option<Vec<f64>>,
    /// v_k / (2 sqrt(lambda_k)).
    axes: [Array1<f64>; 2],
    means: Array1<f64>,
    farthest: f64,
}

impl Map {
    /// A map of all patients who are placed.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where LAPACK fails.
    pub fn new(comparison: &Comparison, placed: &Placed) -> Result<Self, LinearAlgebraError> {
        let step = placed.patients().div_ceil(LANDMARKS_MAX).max(1);
        let rows: Vec<usize> = (0..placed.patients()).step_by(step).collect();
        let landmarks = placed.select(&rows);
        let products = comparison
            .is_similarity()
            .then(|| own_products(comparison, &landmarks));
        let mut map = Self {
            places: Vec::new(),
            share: 0.0,
            products,
            landmarks,
            axes: [Array1::zeros(rows.len()), Array1::zeros(rows.len())],
            means: Array1::zeros(rows.len()),
            farthest: 0.0,
        };
        map.span(comparison)?;
        map.places = (0..placed.patients())
            .into_par_iter()
            .map(|row| map.place(comparison, placed, row))
            .collect();
        Ok(map)
    }

    /// Finds the two dimensions in which the landmarks differ most.
    fn span(&mut self, comparison: &Comparison) -> Result<(), LinearAlgebraError> {
        let landmarks = self.landmarks.patients();
        let mut squares = Array2::zeros((landmarks, landmarks));
        for (row, mut target) in squares.outer_iter_mut().enumerate() {
            target.assign(&self.squares(comparison, &self.landmarks, row));
        }
        let known = squares.iter().filter(|square: &&f64| square.is_finite());
        self.farthest = known.copied().fold(0.0, f64::max);
        squares.mapv_inplace(|square| {
            if square.is_finite() {
                square
            } else {
                self.farthest
            }
        });
        // A patient of a forest's bags is compared by other trees than whoever is compared with it.
        squares = (&squares + &squares.t()) / 2.0;
        squares.diag_mut().fill(0.0);
        self.means = squares.mean_axis(Axis(0)).unwrap_or_default();
        let all = self.means.mean().unwrap_or_default();
        let centred = Array2::from_shape_fn(squares.dim(), |(row, column)| {
            -0.5 * (squares[(row, column)] - self.means[row] - self.means[column] + all)
        });
        let eigen = symmetric_eigen(&centred)?;
        let positive: f64 = eigen.values.iter().filter(|value| **value > 0.0).sum();
        let largest = eigen.values.last().copied().unwrap_or_default();
        let leading = eigen.values.iter().zip(eigen.vectors.columns()).rev();
        for (axis, (value, vector)) in self.axes.iter_mut().zip(leading) {
            if *value <= RANK * largest {
                break;
            }
            self.share += value / positive;
            // LAPACK chooses the sign: the largest entry is positive.
            let extreme = vector.fold(
                0.0_f64,
                |most, one| if one.abs() > most.abs() { *one } else { most },
            );
            *axis = &vector * (extreme.signum() / (2.0 * value.sqrt()));
        }
        Ok(())
    }

    /// Where a patient lies, who was placed by the comparison of the map.
    #[must_use]
    pub fn place(&self, comparison: &Comparison, placed: &Placed, row: usize) -> [f64; 2] {
        let squares = self.squares(comparison, placed, row);
        let away = &self.means
            - &squares.mapv(|square| {
                if square.is_finite() {
                    square
                } else {
                    self.farthest
                }
            });
        [&self.axes[0], &self.axes[1]].map(|axis| axis.dot(&away))
    }

    /// The squared distances of a patient from the landmarks.
    fn squares(&self, comparison: &Comparison, placed: &Placed, row: usize) -> Array1<f64> {
        let distance = |landmark| comparison.distance(&self.landmarks, landmark, placed, row);
        let landmarks = 0..self.landmarks.patients();
        match &self.products {
            None => landmarks.map(|one| distance(one).powi(2)).collect(),
            Some(products) => {
                let own = -comparison.distance(placed, row, placed, row);
                // An inner product comes with its sign turned.
                landmarks
                    .map(|one| (products[one] + own + 2.0 * distance(one)).max(0.0))
                    .collect()
            }
        }
    }
}

fn own_products(comparison: &Comparison, placed: &Placed) -> Vec<f64> {
    let own = |row| -comparison.distance(placed, row, placed, row);
    (0..placed.patients()).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::moments::ColumnMoments;
    use crate::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
    use crate::cohort::{Column, Values};
    use crate::compare::{Gower, Measure, Metric};

    fn columns(points: &[[f64; 2]]) -> Vec<Column> {
        ["x", "y"]
            .iter()
            .enumerate()
            .map(|(axis, name)| Column {
                name: (*name).to_owned(),
                values: Values::Numeric(points.iter().map(|point| point[axis]).collect()),
            })
            .collect()
    }

    /// Points of a plane, without a pattern.
    fn points(count: usize) -> Vec<[f64; 2]> {
        let number = |seed: usize| ((seed * 7919 % 1009) as f64) / 100.0;
        (0..count)
            .map(|one| [number(one + 1), number(3 * one + 2)])
            .collect()
    }

    fn plain(columns: &[Column], measure: Measure) -> Comparison {
        let feature = |column: &Column| Feature {
            name: column.name.clone(),
            kind: FeatureKind::Numeric,
            treatment: Treatment::default(),
        };
        let features: Vec<Feature> = columns.iter().map(feature).collect();
        let moments: Vec<ColumnMoments> = columns
            .iter()
            .map(|column| ColumnMoments::of_column(column).unwrap())
            .collect();
        let made = Standardisation::from_moments(&features, &moments, &[]).unwrap();
        let names: Vec<String> = columns.iter().map(|one| one.name.clone()).collect();
        Comparison::Metric(Metric::plain(&names, made, measure))
    }

    fn apart(one: [f64; 2], other: [f64; 2]) -> f64 {
        (one[0] - other[0]).hypot(one[1] - other[1])
    }

    #[test]
    fn the_map_of_a_plane_is_the_plane_also_for_those_who_are_no_landmarks_and_for_new_patients() {
        let known = columns(&points(450));
        let new = columns(&[[1.5, 2.5], [30.0, -4.0]]);
        for measure in [Measure::Euclidean, Measure::InnerProduct] {
            let comparison = plain(&known, measure);
            let by_length = plain(&known, Measure::Euclidean);
            let (placed, asked) = (
                comparison.place(&known).unwrap(),
                comparison.place(&new).unwrap(),
            );
            let map = Map::new(&comparison, &placed).unwrap();
            assert_eq!(map.places.len(), 450);
            assert!((map.share - 1.0).abs() < 1e-9);
            for (one, other) in [(0, 1), (7, 301), (44, 449)] {
                let wanted = by_length.distance(&placed, one, &placed, other);
                assert!((apart(map.places[one], map.places[other]) - wanted).abs() < 1e-6);
            }
            for query in 0..2 {
                let place = map.place(&comparison, &asked, query);
                for one in [3, 222] {
                    let wanted = by_length.distance(&placed, one, &asked, query);
                    assert!((apart(place, map.places[one]) - wanted).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn patients_who_cannot_be_compared_or_are_all_alike_have_a_place() {
        let mut known = columns(&points(30));
        for column in &mut known {
            if let Values::Numeric(values) = &mut column.values {
                values[4] = f64::NAN;
            }
        }
        let gower = Comparison::Gower(Gower::of_columns(&known));
        let map = Map::new(&gower, &gower.place(&known).unwrap()).unwrap();
        assert!(map.places.iter().flatten().all(|number| number.is_finite()));
        let alike = columns(&[[1.0, 1.0]; 5]);
        let gower = Comparison::Gower(Gower::of_columns(&alike));
        let map = Map::new(&gower, &gower.place(&alike).unwrap()).unwrap();
        assert!(map.places.iter().flatten().all(|number| *number == 0.0));
    }
}
