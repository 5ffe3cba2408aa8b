//! Pair labels of one site: similar, dissimilar, or none.

use ndarray::{Array1, Array2};

/// y_ij of every pair of patients at one site.
#[derive(Clone)]
pub enum Labels {
    /// Two patients are similar where their class codes are equal, else dissimilar.
    Classes(Array1<u32>),
    /// +1 similar, -1 dissimilar, 0 no label; made by [`Labels::pairs`].
    Pairs(PairMatrix),
}

/// A symmetric n x n matrix of +1, -1 and 0 with a diagonal of 0.
#[derive(Clone)]
pub struct PairMatrix(Array2<i8>);

/// Numbers of similar and dissimilar pairs, each pair counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairCounts {
    /// y_ij = +1.
    pub similar: u64,
    /// y_ij = -1.
    pub dissimilar: u64,
}

/// A matrix that is no matrix of pair labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// One row and one column per patient.
    #[error("pair labels are {rows} x {columns}, wanted a square")]
    NotSquare {
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
    },
    /// y_ij and y_ji are the same pair.
    #[error("pair labels are not symmetric")]
    NotSymmetric,
    /// A label that has no meaning.
    #[error("found a pair label of {found}, wanted 1, -1 or 0")]
    Unknown {
        /// The label.
        found: i8,
    },
}

impl PairCounts {
    /// All labelled pairs.
    #[must_use]
    pub fn total(self) -> u64 {
        self.similar + self.dissimilar
    }
}

impl Labels {
    /// Labels given pair by pair: symmetric, +1, -1 or 0; the diagonal is not read.
    ///
    /// # Errors
    /// [`LabelsError`].
    pub fn pairs(mut matrix: Array2<i8>) -> Result<Self, LabelsError> {
        let (rows, columns) = matrix.dim();
        if rows != columns {
            return Err(LabelsError::NotSquare { rows, columns });
        }
        matrix.diag_mut().fill(0);
        if let Some(&found) = matrix.iter().find(|label| !matches!(label, -1..=1)) {
            return Err(LabelsError::Unknown { found });
        }
        if matrix != matrix.t() {
            return Err(LabelsError::NotSymmetric);
        }
        Ok(Self::Pairs(PairMatrix(
            matrix.as_standard_layout().into_owned(),
        )))
    }

    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        match self {
            Self::Classes(codes) => codes.len(),
            Self::Pairs(matrix) => matrix.0.nrows(),
        }
    }

    /// y_ij of two patients; 0 of one patient with itself.
    #[must_use]
    pub fn of_pair(&self, one: usize, other: usize) -> i8 {
        match self {
            _ if one == other => 0,
            Self::Classes(codes) if codes[one] == codes[other] => 1,
            Self::Classes(_) => -1,
            Self::Pairs(matrix) => matrix.0[[one, other]],
        }
    }

    /// y_ij of one patient with each of the patients from `first` on, as numbers; 0 of the patient with itself.
    pub(crate) fn of_row(&self, one: usize, first: usize, labels: &mut [f64]) {
        match self {
            Self::Classes(codes) => {
                let own = codes[one];
                let others = codes.iter().skip(first);
                for (label, code) in labels.iter_mut().zip(others) {
                    *label = if *code == own { 1.0 } else { -1.0 };
                }
                if let Some(itself) = one.checked_sub(first).and_then(|at| labels.get_mut(at)) {
                    *itself = 0.0;
                }
            }
            Self::Pairs(matrix) => {
                let row = matrix.0.row(one);
                let others = row.iter().skip(first);
                for (label, other) in labels.iter_mut().zip(others) {
                    *label = f64::from(*other);
                }
            }
        }
    }

    /// Counts of all labelled pairs.
    #[must_use]
    pub fn count(&self) -> PairCounts {
        match self {
            Self::Classes(codes) => {
                let pairs = |patients: u64| patients * patients.saturating_sub(1) / 2;
                let mut sorted = codes.to_vec();
                sorted.sort_unstable();
                let similar = sorted
                    .chunk_by(|a, b| a == b)
                    .map(|class| pairs(class.len() as u64))
                    .sum();
                PairCounts {
                    similar,
                    dissimilar: pairs(codes.len() as u64) - similar,
                }
            }
            Self::Pairs(matrix) => {
                let count = |wanted: i8| {
                    matrix.0.iter().filter(|label| **label == wanted).count() as u64 / 2
                };
                PairCounts {
                    similar: count(1),
                    dissimilar: count(-1),
                }
            }
        }
    }
}

impl PairMatrix {
    /// The labels, n x n, row-major.
    #[must_use]
    pub fn matrix(&self) -> &Array2<i8> {
        &self.0
    }
}

impl std::fmt::Debug for Labels {
    /// Shape only: labels are patient values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Labels")
            .field("patients", &self.patients())
            .finish_non_exhaustive()
    }
}
