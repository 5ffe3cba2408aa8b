//! What a forest expects of its patients: features by name and kind, and what it predicts.

use std::borrow::Cow;

use crate::cohort::{Column, MISSING_LEVEL, Values};

/// What a forest was grown on and what it predicts. It names features and levels, no patient.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// The features, in the order of the training columns.
    pub features: Vec<FeatureSchema>,
    /// The outcome.
    pub target: Target,
}

/// One feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureSchema {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: FeatureKind,
}

/// Numeric, or categorical with the levels fixed at the fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureKind {
    /// A number.
    Numeric,
    /// One of these levels.
    Categorical {
        /// The levels, in the order of their codes.
        levels: Vec<String>,
    },
}

/// What a forest predicts.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Shares of these classes.
    Classes {
        /// The class names, in the order of their codes.
        levels: Vec<String>,
    },
    /// A number.
    Numeric,
    /// Cumulative hazard at these times.
    Survival {
        /// The shared grid, rising, in the unit of follow-up.
        event_times: Vec<f64>,
    },
}

/// Columns that do not fit the forest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// Another number of columns.
    #[error("{found} columns, wanted the forest's {wanted}")]
    Columns {
        /// Number of columns.
        found: usize,
        /// Number of the forest's features.
        wanted: usize,
    },
    /// Another feature at a position.
    #[error("column {position} is {found}, wanted {wanted}")]
    Feature {
        /// Position, from 0.
        position: usize,
        /// Its name (and kind, where that differs).
        found: String,
        /// The forest's feature.
        wanted: String,
    },
    /// Columns of unequal length.
    #[error("column {column} has {found} values, wanted {wanted}")]
    Length {
        /// The column's name.
        column: String,
        /// Its length.
        found: usize,
        /// The first column's length.
        wanted: usize,
    },
    /// A code without a level.
    #[error("column {column} has codes outside its {levels} levels")]
    Codes {
        /// The column's name.
        column: String,
        /// Number of its levels.
        levels: usize,
    },
    /// In-bag counts or an outcome of other patients than the columns.
    #[error("{found} patients, wanted {wanted}")]
    Patients {
        /// Number found.
        found: usize,
        /// Number wanted.
        wanted: usize,
    },
}

/// Columns that fit the schema, ready for reading: categorical codes are the forest's own.
pub(crate) struct Table<'a> {
    pub(crate) columns: Vec<TableColumn<'a>>,
    pub(crate) patients: usize,
}

pub(crate) enum TableColumn<'a> {
    Numeric(Cow<'a, [f64]>),
    /// A level unknown to the forest reads as missing.
    Categorical(Cow<'a, [u32]>),
}

impl Schema {
    /// Describes training columns.
    #[must_use]
    pub fn new(columns: &[Column], target: Target) -> Self {
        let features = columns
            .iter()
            .map(|column| FeatureSchema {
                name: column.name.clone(),
                kind: match &column.values {
                    Values::Numeric(_) => FeatureKind::Numeric,
                    Values::Categorical { levels, .. } => FeatureKind::Categorical {
                        levels: levels.clone(),
                    },
                },
            })
            .collect();
        Self { features, target }
    }

    /// Checks that columns are those of the fit, by position, name and kind. Levels are matched by
    /// name: their order in the query does not matter, and an unknown one reads as missing.
    pub(crate) fn table<'a>(&self, columns: &'a [Column]) -> Result<Table<'a>, SchemaMismatch> {
        if columns.len() != self.features.len() {
            return Err(SchemaMismatch::Columns {
                found: columns.len(),
                wanted: self.features.len(),
            });
        }
        let patients = columns.first().map_or(0, |column| column.values.patients());
        let mut bound = Vec::with_capacity(columns.len());
        for (position, (column, feature)) in columns.iter().zip(&self.features).enumerate() {
            if column.values.patients() != patients {
                return Err(SchemaMismatch::Length {
                    column: column.name.clone(),
                    found: column.values.patients(),
                    wanted: patients,
                });
            }
            bound.push(bind(position, column, feature)?);
        }
        Ok(Table {
            columns: bound,
            patients,
        })
    }
}

fn bind<'a>(
    position: usize,
    column: &'a Column,
    feature: &FeatureSchema,
) -> Result<TableColumn<'a>, SchemaMismatch> {
    let mismatch = |found: &str, wanted: &str| SchemaMismatch::Feature {
        position,
        found: format!("{}{found}", column.name),
        wanted: format!("{}{wanted}", feature.name),
    };
    if column.name != feature.name {
        return Err(mismatch("", ""));
    }
    match (&column.values, &feature.kind) {
        (Values::Numeric(values), FeatureKind::Numeric) => Ok(TableColumn::Numeric(
            values
                .as_slice()
                .map_or_else(|| Cow::Owned(values.to_vec()), Cow::Borrowed),
        )),
        (Values::Categorical { codes, levels }, FeatureKind::Categorical { levels: known }) => {
            if has_stray_code(codes.iter().copied(), levels.len()) {
                return Err(SchemaMismatch::Codes {
                    column: column.name.clone(),
                    levels: levels.len(),
                });
            }
            Ok(TableColumn::Categorical(recoded(codes, levels, known)))
        }
        (Values::Numeric(_), FeatureKind::Categorical { .. }) => {
            Err(mismatch(" (numeric)", " (categorical)"))
        }
        (Values::Categorical { .. }, FeatureKind::Numeric) => {
            Err(mismatch(" (categorical)", " (numeric)"))
        }
    }
}

pub(crate) fn has_stray_code(mut codes: impl Iterator<Item = u32>, levels: usize) -> bool {
    codes.any(|code| code != MISSING_LEVEL && code as usize >= levels)
}

fn recoded<'a>(
    codes: &'a ndarray::Array1<u32>,
    levels: &[String],
    known: &[String],
) -> Cow<'a, [u32]> {
    if levels == known {
        return codes
            .as_slice()
            .map_or_else(|| Cow::Owned(codes.to_vec()), Cow::Borrowed);
    }
    let own: Vec<u32> = levels
        .iter()
        .map(|level| {
            known
                .iter()
                .position(|name| name == level)
                .map_or(MISSING_LEVEL, |code| code as u32)
        })
        .collect();
    Cow::Owned(
        codes
            .iter()
            .map(|&code| {
                if code == MISSING_LEVEL {
                    MISSING_LEVEL
                } else {
                    own[code as usize]
                }
            })
            .collect(),
    )
}
