//! How far patients are from each other, as clusters see it.

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayView2, Axis};

use crate::compare::proximity::kernel::{Definiteness, by_rows, proximity};
use crate::compare::{Comparison, Placed};
use crate::learn::forest::TerminalNodes;
use crate::uses::clusters::ClusterError;

/// Patients whose dissimilarities are held as a matrix, at most; it has 200 MB.
pub const MATRIX_PATIENTS_MAX: usize = 5_000;
/// Of more, so many at equal steps tell how far apart the farthest are.
const LOOKED_AT: usize = 1_000;
/// A matrix is symmetric up to this share of its largest entry.
const ASYMMETRY_MAX: f64 = 1e-9;

/// Dissimilarities of n patients, at least 0, symmetric, 0 of a patient from itself.
///
/// | comparison | dissimilarity |
/// | --- | --- |
/// | a forest's proximity P, over all trees | 1 - P, the squared distance |
/// | an inner product s | sqrt(s_ii + s_jj - 2 s_ij), the distance that it makes |
/// | any other | the distance as it is reported |
///
/// Two patients who cannot be compared are as far apart as the two farthest.
pub struct Dissimilarity<'p> {
    source: Source<'p>,
    patients: usize,
    farthest: f64,
    incomparable: usize,
}

enum Source<'p> {
    Matrix(Array2<f64>),
    Nodes(&'p TerminalNodes),
    Compared(&'p Comparison, &'p Placed),
}

impl<'p> Dissimilarity<'p> {
    /// Of patients as a comparison places them; of a forest all trees count, also those that have seen a patient.
    #[must_use]
    pub fn of_comparison(comparison: &'p Comparison, placed: &'p Placed) -> Self {
        let patients = placed.patients();
        let source = match placed {
            Placed::Nodes { nodes, .. } => Source::Nodes(nodes),
            Placed::Vectors { .. } | Placed::Mixed { .. } => Source::Compared(comparison, placed),
        };
        let mut made = Self {
            source,
            patients,
            farthest: f64::NAN,
            incomparable: 0,
        };
        let step = match patients <= MATRIX_PATIENTS_MAX {
            true => 1,
            false => patients.div_ceil(LOOKED_AT),
        };
        let rows: Vec<usize> = (0..patients).step_by(step).collect();
        let mut matrix = made.unfilled(&rows);
        (made.farthest, made.incomparable) = extent(&matrix);
        if step == 1 {
            fill(&mut matrix, made.farthest);
            made.source = Source::Matrix(matrix);
        }
        made
    }

    /// Of a kernel's square matrix k: half the squared distance (k_ii + k_jj) / 2 - k_ij that a positive semidefinite one
    /// makes (1 - k where k_ii = 1); of another, symmetrised, how much less it is than the largest.
    ///
    /// # Errors
    /// [`ClusterError::NotSquare`].
    pub fn of_kernel(
        kernel: &Array2<f64>,
        definiteness: Definiteness,
    ) -> Result<Dissimilarity<'static>, ClusterError> {
        check_square(kernel)?;
        let mean = |i: usize, j: usize| f64::midpoint(kernel[(i, j)], kernel[(j, i)]);
        let (_, size) = kernel.dim();
        let pairs = (0..size).flat_map(|i| (0..size).map(move |j| (i, j)));
        let largest = pairs.map(|(i, j)| mean(i, j)).fold(0.0, f64::max);
        let matrix = Array2::from_shape_fn(kernel.dim(), |(i, j)| match definiteness {
            _ if i == j => 0.0,
            Definiteness::PositiveSemidefinite => {
                let apart = f64::midpoint(kernel[(i, i)], kernel[(j, j)]) - mean(i, j);
                // Rounding only; NaN stays.
                if apart < 0.0 { 0.0 } else { apart }
            }
            Definiteness::Indefinite => largest - mean(i, j),
        });
        Ok(Self::filled(matrix))
    }

    /// Of a matrix of dissimilarities; NaN cannot be compared.
    ///
    /// # Errors
    /// [`ClusterError::NotSquare`], [`ClusterError::NotDissimilar`] where one is negative, infinite, not 0 of a patient from itself
    /// or not the same both ways.
    pub fn of_matrix(matrix: Array2<f64>) -> Result<Dissimilarity<'static>, ClusterError> {
        check_square(&matrix)?;
        let largest = matrix.iter().copied().fold(0.0, f64::max);
        let unfit = |((i, j), value): ((usize, usize), &f64)| {
            let other = matrix[(j, i)];
            *value < 0.0
                || value.is_infinite()
                || (i == j && *value != 0.0)
                || value.is_nan() != other.is_nan()
                || (value - other).abs() > ASYMMETRY_MAX * largest
        };
        if let Some(((row, column), _)) = matrix.indexed_iter().find(|one| unfit(*one)) {
            return Err(ClusterError::NotDissimilar { row, column });
        }
        Ok(Self::filled(matrix))
    }

    fn filled(mut matrix: Array2<f64>) -> Dissimilarity<'static> {
        let (farthest, incomparable) = extent(&matrix);
        fill(&mut matrix, farthest);
        Dissimilarity {
            patients: matrix.nrows(),
            source: Source::Matrix(matrix.as_standard_layout().into_owned()),
            farthest,
            incomparable,
        }
    }

    /// Number of patients n.
    #[must_use]
    pub fn patients(&self) -> usize {
        self.patients
    }

    /// The largest dissimilarity, of many patients that of a sample.
    #[must_use]
    pub fn farthest(&self) -> f64 {
        self.farthest
    }

    /// Pairs of patients (of many those of a sample) that could not be compared.
    #[must_use]
    pub fn incomparable(&self) -> usize {
        self.incomparable
    }

    /// The whole matrix, where it is held.
    #[must_use]
    pub fn matrix(&self) -> Option<ArrayView2<'_, f64>> {
        match &self.source {
            Source::Matrix(matrix) => Some(matrix.view()),
            Source::Nodes(_) | Source::Compared(..) => None,
        }
    }

    /// The terminal nodes that it follows from, where there is no matrix.
    pub(super) fn nodes(&self) -> Option<&TerminalNodes> {
        match &self.source {
            Source::Nodes(nodes) => Some(nodes),
            Source::Matrix(_) | Source::Compared(..) => None,
        }
    }

    /// Among the patients `rows`.
    #[must_use]
    pub fn among(&self, rows: &[usize]) -> Array2<f64> {
        if let Source::Matrix(matrix) = &self.source {
            let matrix = matrix.view();
            return by_rows(
                rows.len(),
                rows.len(),
                || (),
                |(), row, values| {
                    let of = matrix.row(rows[row]);
                    let of = of.as_slice().expect("the matrix lies row by row");
                    values
                        .iter_mut()
                        .zip(rows)
                        .for_each(|(value, other)| *value = of[*other]);
                },
            );
        }
        let mut matrix = self.unfilled(rows);
        fill(&mut matrix, self.farthest);
        matrix
    }

    /// Among the patients `rows`, NaN where they cannot be compared.
    fn unfilled(&self, rows: &[usize]) -> Array2<f64> {
        match &self.source {
            Source::Matrix(matrix) => matrix.select(Axis(0), rows).select(Axis(1), rows),
            Source::Nodes(nodes) => {
                let all = rows.len() == self.patients;
                let mut shared = match all {
                    true => proximity(nodes, nodes),
                    false => {
                        let nodes = nodes.select(rows);
                        proximity(&nodes, &nodes)
                    }
                };
                shared.par_mapv_inplace(|shared| 1.0 - shared);
                shared
            }
            Source::Compared(comparison, placed) => by_rows(
                rows.len(),
                rows.len(),
                || (),
                |(), row, values| {
                    let pair = |other: &usize| match *other == rows[row] {
                        true => 0.0,
                        false => apart(comparison, placed, rows[row], placed, *other),
                    };
                    values
                        .iter_mut()
                        .zip(rows)
                        .for_each(|(value, other)| *value = pair(other));
                },
            ),
        }
    }

    /// Of all n patients from those of `rows`, n x k.
    #[must_use]
    pub fn from_each(&self, rows: &[usize]) -> Array2<f64> {
        let mut matrix = match &self.source {
            Source::Matrix(matrix) => {
                let select = |(patient, place): (usize, usize)| matrix[(rows[place], patient)];
                Array2::from_shape_fn((self.patients, rows.len()), select)
            }
            Source::Nodes(nodes) => from_nodes(nodes, rows),
            Source::Compared(comparison, placed) => by_rows(
                self.patients,
                rows.len(),
                || (),
                |(), patient, values| {
                    let pair = |row: &usize| match *row == patient {
                        true => 0.0,
                        false => apart(comparison, placed, *row, placed, patient),
                    };
                    values
                        .iter_mut()
                        .zip(rows)
                        .for_each(|(value, row)| *value = pair(row));
                },
            ),
        };
        fill(&mut matrix, self.farthest);
        matrix
    }
}

/// 1 - P of all patients from those of `rows`, tree by tree.
fn from_nodes(nodes: &TerminalNodes, rows: &[usize]) -> Array2<f64> {
    let trees = nodes.trees();
    let columns: Vec<Vec<f64>> = rows
        .par_iter()
        .map(|row| {
            let mut shared = vec![0_u32; nodes.patients()];
            for tree in 0..trees {
                let of_tree = nodes.of_tree(tree);
                let own = of_tree[*row];
                let others = shared.iter_mut().zip(of_tree);
                others.for_each(|(count, node)| *count += u32::from(*node == own));
            }
            let share = |count: u32| 1.0 - f64::from(count) / trees as f64;
            shared.into_iter().map(share).collect()
        })
        .collect();
    Array2::from_shape_fn((nodes.patients(), rows.len()), |(patient, place)| {
        columns[place][patient]
    })
}

/// The dissimilarity of patient `j` of `other` from patient `i` of `one`; NaN where they cannot be compared.
pub(super) fn apart(
    comparison: &Comparison,
    one: &Placed,
    i: usize,
    other: &Placed,
    j: usize,
) -> f64 {
    let told = comparison.distance(one, i, other, j);
    if comparison.is_similarity() {
        // Reported with the sign turned.
        let own = comparison.distance(one, i, one, i) + comparison.distance(other, j, other, j);
        return (2.0 * told - own).max(0.0).sqrt();
    }
    match one {
        Placed::Nodes { .. } => comparison.whole(told),
        Placed::Vectors { .. } | Placed::Mixed { .. } => told,
    }
}

/// The largest entry, and pairs that are NaN.
fn extent(matrix: &Array2<f64>) -> (f64, usize) {
    let largest = matrix.iter().copied().fold(0.0, f64::max);
    let missing = matrix.iter().filter(|value| value.is_nan()).count();
    (largest, missing / 2)
}

fn fill(matrix: &mut Array2<f64>, farthest: f64) {
    matrix.par_mapv_inplace(|value| if value.is_nan() { farthest } else { value });
}

fn check_square(matrix: &Array2<f64>) -> Result<(), ClusterError> {
    let (rows, columns) = matrix.dim();
    match rows == columns {
        true => Ok(()),
        false => Err(ClusterError::NotSquare { rows, columns }),
    }
}

impl std::fmt::Debug for Dissimilarity<'_> {
    /// Shape only: distances belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "dissimilarities of {} patients", self.patients)
    }
}
