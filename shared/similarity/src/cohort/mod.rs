//! A typed cohort: the patients of one site as columns, with their outcome.

pub mod moments;
pub mod quantile;
pub mod spline;
pub mod standardise;

use ndarray::{Array1, Axis};

/// Code of a missing categorical value in [`Values::Categorical`].
pub const MISSING_LEVEL: u32 = u32::MAX;

/// One site's patients, column by column. All columns and the outcome have equal length.
#[derive(Clone)]
pub struct Cohort {
    columns: Vec<Column>,
    outcome: Outcome,
}

/// One feature of every patient.
#[derive(Clone)]
pub struct Column {
    /// The feature's name, unique in the cohort.
    pub name: String,
    /// One value per patient.
    pub values: Values,
}

/// The values of one feature, one per patient.
#[derive(Clone)]
pub enum Values {
    /// Numbers in the feature's declared unit; NaN is missing.
    Numeric(Array1<f64>),
    /// Codes into `levels`; [`MISSING_LEVEL`] is missing.
    Categorical {
        /// One code per patient.
        codes: Array1<u32>,
        /// The agreed levels, in the agreed order.
        levels: Vec<String>,
    },
}

/// What happened to every patient.
#[derive(Clone)]
pub enum Outcome {
    /// Binary or categorical: codes into `levels`, never missing. Binary has levels
    /// `["negative", "positive"]`, so that code 1 is disease.
    Classes {
        /// One code per patient.
        codes: Array1<u32>,
        /// The class names.
        levels: Vec<String>,
    },
    /// A finite number per patient.
    Numeric(Array1<f64>),
    /// Right-censored times.
    Survival {
        /// Follow-up, positive and finite.
        time: Array1<f64>,
        /// True where the event was seen at `time`, false where the patient was censored.
        event: Array1<bool>,
    },
}

impl Values {
    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        match self {
            Self::Numeric(values) => values.len(),
            Self::Categorical { codes, .. } => codes.len(),
        }
    }

    /// Whether the patient at `row` has no value.
    ///
    /// # Panics
    /// Where there is no such row.
    #[must_use]
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Numeric(values) => values[row].is_nan(),
            Self::Categorical { codes, .. } => codes[row] == MISSING_LEVEL,
        }
    }

    /// The values of the patients at `rows`, in that order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numeric(values) => Self::Numeric(values.select(Axis(0), rows)),
            Self::Categorical { codes, levels } => Self::Categorical {
                codes: codes.select(Axis(0), rows),
                levels: levels.clone(),
            },
        }
    }

    /// Number of missing values.
    #[must_use]
    pub fn missing(&self) -> usize {
        match self {
            Self::Numeric(values) => values.iter().filter(|value| value.is_nan()).count(),
            Self::Categorical { codes, .. } => {
                codes.iter().filter(|code| **code == MISSING_LEVEL).count()
            }
        }
    }
}

impl Outcome {
    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        match self {
            Self::Classes { codes, .. } => codes.len(),
            Self::Numeric(values) => values.len(),
            Self::Survival { time, .. } => time.len(),
        }
    }

    /// What happened to the patients at `rows`, in that order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Classes { codes, levels } => Self::Classes {
                codes: codes.select(Axis(0), rows),
                levels: levels.clone(),
            },
            Self::Numeric(values) => Self::Numeric(values.select(Axis(0), rows)),
            Self::Survival { time, event } => Self::Survival {
                time: time.select(Axis(0), rows),
                event: event.select(Axis(0), rows),
            },
        }
    }
}

impl Cohort {
    /// Joins columns and an outcome.
    ///
    /// # Errors
    /// [`LengthMismatch`] where a column has another number of patients than the outcome.
    pub fn new(columns: Vec<Column>, outcome: Outcome) -> Result<Self, LengthMismatch> {
        let wanted = outcome.patients();
        for column in &columns {
            let found = column.values.patients();
            if found != wanted {
                return Err(LengthMismatch {
                    column: column.name.clone(),
                    found,
                    wanted,
                });
            }
        }
        Ok(Self { columns, outcome })
    }

    /// [`take_logarithms`] of its columns.
    ///
    /// # Errors
    /// [`BelowZero`].
    pub fn take_logarithms(&mut self, marked: &[bool]) -> Result<(), BelowZero> {
        take_logarithms(&mut self.columns, marked)
    }

    /// Lets go of the columns: the patients and their outcome stay.
    pub fn forget_columns(&mut self) {
        self.columns = Vec::new();
    }

    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        self.outcome.patients()
    }

    /// The patients at `rows`, in that order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let column = |column: &Column| Column {
            name: column.name.clone(),
            values: column.values.select(rows),
        };
        Self {
            columns: self.columns.iter().map(column).collect(),
            outcome: self.outcome.select(rows),
        }
    }

    /// The same patients with only the columns at `places`.
    #[must_use]
    pub fn with_columns(&self, places: &[usize]) -> Self {
        let columns = places.iter().map(|place| self.columns[*place].clone());
        Self {
            columns: columns.collect(),
            outcome: self.outcome.clone(),
        }
    }

    /// Rows of the patients without a missing value.
    #[must_use]
    pub fn complete(&self) -> Vec<usize> {
        let present = |row: &usize| {
            let mut columns = self.columns.iter();
            columns.all(|column| !column.values.is_missing(*row))
        };
        (0..self.patients()).filter(present).collect()
    }

    /// The features, in the job's order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The outcome.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// ln(1 + x), of the same bits on every machine: ends of grids follow from it.
#[must_use]
pub fn logarithm(value: f64) -> f64 {
    libm::log1p(value)
}

/// Replaces every value x of the marked numeric columns by ln(1 + x); missing values stay so.
/// One mark per column.
///
/// # Errors
/// [`BelowZero`] where one of them holds a number below 0; nothing is replaced then.
pub fn take_logarithms(columns: &mut [Column], marked: &[bool]) -> Result<(), BelowZero> {
    for (column, _) in columns.iter().zip(marked).filter(|(_, marked)| **marked) {
        if let Values::Numeric(values) = &column.values {
            let patients = values.iter().filter(|value| **value < 0.0).count();
            if patients > 0 {
                return Err(BelowZero {
                    column: column.name.clone(),
                    patients,
                });
            }
        }
    }
    for (column, _) in columns
        .iter_mut()
        .zip(marked)
        .filter(|(_, marked)| **marked)
    {
        if let Values::Numeric(values) = &mut column.values {
            values.mapv_inplace(logarithm);
        }
    }
    Ok(())
}

/// Columns of one cohort must be of one length.
#[derive(Debug, thiserror::Error)]
#[error("column {column} has {found} values, wanted {wanted} as the outcome has")]
pub struct LengthMismatch {
    /// The column's name.
    pub column: String,
    /// Its length.
    pub found: usize,
    /// The outcome's length.
    pub wanted: usize,
}

/// A number below 0 has no logarithm. How many there are is for the people at the site only.
#[derive(Debug, thiserror::Error)]
#[error("column {column} holds numbers below 0; wanted 0 or more, for its logarithm is taken")]
pub struct BelowZero {
    /// The column's name.
    pub column: String,
    /// Patients with such a number.
    pub patients: usize,
}

impl std::fmt::Debug for Cohort {
    /// Shape only: patient values never reach a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Cohort")
            .field("patients", &self.patients())
            .field("columns", &self.columns.len())
            .finish_non_exhaustive()
    }
}
