//! Clusters that several cohorts have in common, found from sums over groups of patients alone.
//!
//! Every group (`uses::microaggregation`) stands where the mean of its patients is and counts as many as it has. From centres c_1 .. c_k
//! that all cohorts know, each adds up its groups by the nearest centre, and the sums over the cohorts give the next centres, the means:
//! Lloyd's steps (*Least squares quantization in PCM*, 1982) on the groups of all cohorts at once. It is what k-means does of rows that
//! lie in one place. Unlike k-medoids it wants squared Euclidean distances, its centres are nobody, and far patients weigh more.
//!
//! Starts are drawn by k-means++ (Arthur and Vassilvitskii 2007) from points of the normal distribution that has the mean and the second
//! moments of all groups, so that they follow from sums and a seed, and from nobody's row. All that several cohorts must find with equal
//! bits is IEEE additions, products, quotients and square roots in a fixed order.

use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::{Rng, RngExt};

/// Points that starts are chosen from.
const POINTS: usize = 256;
/// Uniform numbers whose sum is nearly normal, with variance 1.
const UNIFORMS: usize = 12;
/// A variance below this share of all variance is none.
const VARIANCE_MIN: f64 = 1e-12;

/// Where groups of patients are, as sums that add up over cohorts.
#[derive(Clone, PartialEq)]
pub struct Spread {
    /// Patients of all groups.
    pub patients: u64,
    /// Sum over them of their group's mean.
    pub sums: Vec<f64>,
    /// Sum over them of the products of the coordinates of their group's mean.
    pub products: Array2<f64>,
}

impl Spread {
    /// Of groups of so many patients, with these means.
    #[must_use]
    pub fn of<'g>(
        groups: impl IntoIterator<Item = (u64, ArrayView1<'g, f64>)>,
        coordinates: usize,
    ) -> Self {
        let mut spread = Self::nothing(coordinates);
        for (patients, mean) in groups {
            let weight = patients as f64;
            spread.patients += patients;
            for (row, one) in mean.iter().enumerate() {
                spread.sums[row] += weight * one;
                for (column, other) in mean.iter().enumerate() {
                    spread.products[[row, column]] += weight * one * other;
                }
            }
        }
        spread
    }

    /// Of nobody.
    #[must_use]
    pub fn nothing(coordinates: usize) -> Self {
        Self {
            patients: 0,
            sums: vec![0.0; coordinates],
            products: Array2::zeros((coordinates, coordinates)),
        }
    }

    /// Centres to begin from, far from each other where the patients are.
    #[must_use]
    pub fn start(&self, clusters: usize, stream: &mut impl Rng) -> Array2<f64> {
        let points = self.points(stream);
        let mut chosen = vec![0];
        let mut apart: Vec<f64> = points.outer_iter().map(|_| f64::INFINITY).collect();
        while chosen.len() < clusters {
            let last = points.row(chosen[chosen.len() - 1]);
            for (apart, point) in apart.iter_mut().zip(points.outer_iter()) {
                let square = square(point, last);
                if square < *apart {
                    *apart = square;
                }
            }
            let mut left = stream.random::<f64>() * apart.iter().sum::<f64>();
            let reaches = |square: &f64| {
                left -= square;
                left < 0.0
            };
            chosen.push(apart.iter().position(reaches).unwrap_or(POINTS - 1));
        }
        points.select(ndarray::Axis(0), &chosen)
    }

    /// Points as likely where the groups are.
    fn points(&self, stream: &mut impl Rng) -> Array2<f64> {
        let patients = self.patients.max(1) as f64;
        let mean: Vec<f64> = self.sums.iter().map(|sum| sum / patients).collect();
        let coordinates = mean.len();
        let covariance = Array2::from_shape_fn((coordinates, coordinates), |(i, j)| {
            self.products[[i, j]] / patients - mean[i] * mean[j]
        });
        let factor = factor(covariance.view());
        let mut points = Array2::zeros((POINTS, coordinates));
        for mut point in points.outer_iter_mut() {
            let normal = |_| (0..UNIFORMS).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0;
            let normals: Vec<f64> = (0..coordinates).map(normal).collect();
            for (row, target) in point.iter_mut().enumerate() {
                let below = factor.row(row);
                let terms = below.iter().zip(&normals).take(row + 1);
                *target = mean[row] + terms.map(|(weight, normal)| weight * normal).sum::<f64>();
            }
        }
        points
    }
}

/// The lower factor L of L L', by Cholesky; a coordinate without a variance of its own has none of its own here.
fn factor(matrix: ArrayView2<'_, f64>) -> Array2<f64> {
    let size = matrix.nrows();
    let least = VARIANCE_MIN * (0..size).map(|place| matrix[[place, place]]).sum::<f64>();
    let mut factor = Array2::zeros((size, size));
    for column in 0..size {
        let known = |row: usize, factor: &Array2<f64>| -> f64 {
            let before = 0..column;
            matrix[[row, column]]
                - before
                    .map(|place| factor[[row, place]] * factor[[column, place]])
                    .sum::<f64>()
        };
        let pivot = known(column, &factor);
        if pivot <= least {
            continue;
        }
        let root = pivot.sqrt();
        factor[[column, column]] = root;
        for row in column + 1..size {
            factor[[row, column]] = known(row, &factor) / root;
        }
    }
    factor
}

/// The places, of so many groups, that a bootstrap draws, each once however often it is drawn.
#[must_use]
pub fn sample(groups: usize, stream: &mut impl Rng) -> Vec<usize> {
    let draw = |_| stream.random_range(0..groups);
    let mut places: Vec<usize> = (0..groups).map(draw).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn square(one: ArrayView1<'_, f64>, other: ArrayView1<'_, f64>) -> f64 {
    let gaps = one.iter().zip(other).map(|(a, b)| a - b);
    gaps.map(|gap| gap * gap).sum()
}

/// The first of the centres that are nearest to a point, and the square of its distance.
#[must_use]
pub fn nearest(point: ArrayView1<'_, f64>, centres: ArrayView2<'_, f64>) -> (usize, f64) {
    let mut found = (0, f64::INFINITY);
    for (place, centre) in centres.outer_iter().enumerate() {
        let square = square(point, centre);
        if square < found.1 {
            found = (place, square);
        }
    }
    found
}

/// A division of all groups under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    /// One row a cluster.
    pub centres: Array2<f64>,
    /// Patients of each, once they are known.
    pub patients: Vec<u64>,
    /// What is left of the sum of squares, less what is the same for all divisions of the same groups.
    pub left: f64,
    /// Whether another step moves no centre.
    pub is_settled: bool,
}

impl Division {
    /// One that begins at these centres.
    #[must_use]
    pub fn new(centres: Array2<f64>) -> Self {
        Self {
            patients: vec![0; centres.nrows()],
            left: f64::INFINITY,
            is_settled: false,
            centres,
        }
    }

    /// Clusters.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.centres.nrows()
    }

    /// A step: the centres become the means of those who were nearest to them. A centre that nobody was nearest to stays.
    pub fn step(&mut self, patients: &[u64], sums: ArrayView2<'_, f64>) {
        let mut explained = 0.0;
        let mut moved = false;
        let rows = self.centres.outer_iter_mut().zip(sums.outer_iter());
        for ((mut centre, sum), count) in rows.zip(patients) {
            if *count == 0 {
                continue;
            }
            let weight = *count as f64;
            for (target, sum) in centre.iter_mut().zip(sum) {
                let mean = sum / weight;
                moved |= *target != mean;
                *target = mean;
                explained += mean * sum;
            }
        }
        self.patients = patients.to_vec();
        self.left = -explained;
        self.is_settled = !moved;
    }

    /// The places of the clusters, the largest first.
    #[must_use]
    pub fn by_size(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.clusters()).collect();
        order.sort_by_key(|place| (std::cmp::Reverse(self.patients[*place]), *place));
        order
    }
}

impl std::fmt::Debug for Spread {
    /// Nothing: sums belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Spread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use ndarray::array;

    #[test]
    fn a_factor_of_a_semidefinite_matrix_gives_it_back() {
        let matrix = array![[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 9.0]];
        let factor = factor(matrix.view());
        assert_eq!(factor.dot(&factor.t()), matrix);
    }

    #[test]
    fn starts_lie_as_the_groups_do() {
        let groups = array![[10.0, 0.0], [12.0, 0.0], [8.0, 3.0], [10.0, -3.0]];
        let spread = Spread::of(groups.outer_iter().map(|mean| (10, mean)), 2);
        let mut stream = Seed(3).stream("starts", 0);
        let points = spread.points(&mut stream);
        let mean = points.mean_axis(ndarray::Axis(0)).unwrap();
        let deviation = points.std_axis(ndarray::Axis(0), 0.0);
        assert!(
            (mean[0] - 10.0).abs() < 0.3 && mean[1].abs() < 0.5,
            "{mean}"
        );
        assert!((deviation[0] - 2.0_f64.sqrt()).abs() < 0.3, "{deviation}");
        assert!((deviation[1] - 4.5_f64.sqrt()).abs() < 0.4, "{deviation}");
        let start = spread.start(4, &mut stream);
        for (place, one) in start.outer_iter().enumerate() {
            for other in start.outer_iter().take(place) {
                assert!(square(one, other) > 0.0);
            }
        }
    }

    #[test]
    fn steps_end_where_every_centre_is_the_mean_of_its_own() {
        let points = array![[0.0], [1.0], [2.0], [10.0], [11.0], [15.0]];
        let mut division = Division::new(array![[0.0], [1.0], [90.0]]);
        let mut last = f64::INFINITY;
        while !division.is_settled {
            let (mut patients, mut sums) = (vec![0; 3], Array2::zeros((3, 1)));
            for point in points.outer_iter() {
                let (place, _) = nearest(point, division.centres.view());
                patients[place] += 1;
                sums[[place, 0]] += point[0];
            }
            division.step(&patients, sums.view());
            assert!(division.left <= last);
            last = division.left;
        }
        assert_eq!(division.centres, array![[1.0], [12.0], [90.0]]);
        assert_eq!(division.patients, [3, 3, 0]);
        assert_eq!(division.by_size(), [0, 1, 2]);
    }
}
