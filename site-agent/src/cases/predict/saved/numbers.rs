//! Numbers of patients in base 64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use similarity::compare::Placed;
use similarity::learn::forest::TerminalNodes;

/// A matrix, row by row.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Matrix {
    rows: usize,
    columns: usize,
    numbers: String,
}

/// Where patients are placed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Places {
    Vectors {
        rows: Matrix,
        projected: Option<Matrix>,
    },
    Mixed {
        numbers: Matrix,
        codes: Matrix,
    },
    Nodes(Matrix),
}

impl Matrix {
    pub(super) fn of(matrix: &Array2<f64>) -> Self {
        let bytes = matrix.iter().map(|number| number.to_le_bytes());
        Self {
            rows: matrix.nrows(),
            columns: matrix.ncols(),
            numbers: STANDARD.encode(bytes.collect::<Vec<_>>().into_flattened()),
        }
    }

    pub(super) fn of_column(values: &Array1<f64>) -> Self {
        Self::of(&values.clone().insert_axis(ndarray::Axis(1)))
    }

    /// None of another shape than it says.
    pub(super) fn matrix(&self) -> Option<Array2<f64>> {
        let bytes = STANDARD.decode(&self.numbers).ok()?;
        let (numbers, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return None;
        }
        let numbers = numbers.iter().map(|one| f64::from_le_bytes(*one)).collect();
        Array2::from_shape_vec((self.rows, self.columns), numbers).ok()
    }

    /// Of one column.
    pub(super) fn column(&self) -> Option<Array1<f64>> {
        let matrix = self.matrix().filter(|matrix| matrix.ncols() == 1)?;
        Some(matrix.column(0).to_owned())
    }

    /// Codes and places are whole numbers, which 64 bits hold.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn codes(&self) -> Option<Array2<u32>> {
        let matrix = self.matrix()?;
        let is_code = |one: &f64| one.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(one);
        matrix
            .iter()
            .all(is_code)
            .then(|| matrix.mapv(|one| one as u32))
    }
}

impl Places {
    pub(super) fn of(placed: &Placed) -> Self {
        match placed {
            Placed::Vectors { rows, projected } => Self::Vectors {
                rows: Matrix::of(rows),
                projected: projected.as_ref().map(Matrix::of),
            },
            Placed::Mixed { numbers, codes } => Self::Mixed {
                numbers: Matrix::of(numbers),
                codes: Matrix::of(&codes.mapv(f64::from)),
            },
            Placed::Nodes { nodes, .. } => Self::Nodes(Matrix::of(&nodes.view().mapv(f64::from))),
        }
    }

    /// None where shapes do not fit.
    pub(super) fn made(&self) -> Option<Placed> {
        Some(match self {
            Self::Vectors { rows, projected } => Placed::Vectors {
                rows: rows.matrix()?,
                projected: match projected {
                    Some(projected) => Some(projected.matrix()?),
                    None => None,
                },
            },
            Self::Mixed { numbers, codes } => Placed::Mixed {
                numbers: numbers.matrix()?,
                codes: codes.codes()?,
            },
            Self::Nodes(nodes) => Placed::Nodes {
                nodes: TerminalNodes::new(nodes.codes()?.view()),
                bags: None,
            },
        })
    }
}
