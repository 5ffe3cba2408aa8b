//! From typed columns to the columns of a regression: lines, natural cubic splines, and contrasts with the first level.
//!
//! A spline's columns are those of [`crate::cohort::spline`].

use std::ops::Range;

use ndarray::{Array2, ArrayViewMut1};

use crate::cohort::spline::{SPLINE_MAX, curve, places};
use crate::cohort::{Column, MISSING_LEVEL, Values};

/// One feature of a regression.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The column's name.
    pub name: String,
    /// What becomes of its values.
    pub kind: TermKind,
    /// Whether one more column is 1 where the value is missing, else 0.
    pub indicator: bool,
}

/// What becomes of the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum TermKind {
    /// Numbers: a line, or a spline.
    Numeric {
        /// What stands for a missing value, in the column's unit.
        imputed: f64,
        /// Knots of a natural cubic spline, rising, at least 3; none of a line.
        knots: Vec<f64>,
    },
    /// A column that is 1 where the patient has the level, for each level but the first.
    Categorical {
        /// The levels, the reference first.
        levels: Vec<String>,
        /// The level that stands for a missing one.
        imputed: u32,
    },
}

/// The features of a regression, fixed at the fit: what a value means never depends on who else is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    terms: Vec<Term>,
}

/// Columns that do not fit the terms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// Another number of columns.
    #[error("found {found} columns, wanted {wanted}")]
    Columns {
        /// Number of columns.
        found: usize,
        /// Number of terms.
        wanted: usize,
    },
    /// Another column at a place.
    #[error("found column {found}, wanted {wanted}")]
    Column {
        /// Its name, with its kind where that differs.
        found: String,
        /// The term's name, likewise.
        wanted: String,
    },
    /// A level that the fit did not know.
    #[error("column {column} holds a level that is none of {}", known.join(", "))]
    UnknownLevel {
        /// The column's name.
        column: String,
        /// The levels of the fit.
        known: Vec<String>,
    },
    /// Nobody has a value.
    #[error("column {column} has no value at all")]
    Empty {
        /// The column's name.
        column: String,
    },
    /// Too few different values to place knots.
    #[error(
        "column {column} has too few different values for a spline of {degrees} degrees of freedom"
    )]
    Knots {
        /// The column's name.
        column: String,
        /// Degrees of freedom asked for.
        degrees: usize,
    },
    /// A spline of a column that cannot have it.
    #[error(
        "column {column} has a spline of {degrees} degrees of freedom, wanted 1 to {SPLINE_MAX}, and of a numeric column"
    )]
    Spline {
        /// The column's name.
        column: String,
        /// Degrees of freedom asked for.
        degrees: usize,
    },
}

impl Terms {
    /// Joins terms that came from elsewhere.
    #[must_use]
    pub fn new(terms: Vec<Term>) -> Self {
        Self { terms }
    }

    /// The terms of a cohort's columns. `splines` has the degrees of freedom of each column, 1 being a line. A missing
    /// number is taken as the mean of those present, a missing level as the most frequent.
    ///
    /// # Errors
    /// [`TermsError`].
    pub fn of_columns(columns: &[Column], splines: &[usize]) -> Result<Self, TermsError> {
        if splines.len() != columns.len() {
            return Err(TermsError::Columns {
                found: splines.len(),
                wanted: columns.len(),
            });
        }
        let terms = columns.iter().zip(splines);
        let terms = terms.map(|(column, &degrees)| Term::of(column, degrees));
        Ok(Self {
            terms: terms.collect::<Result<_, _>>()?,
        })
    }

    /// The terms, in the order of the columns.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Names of the regression's columns: the feature's, with `'` for each curved part, or `feature=level`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.terms.iter().flat_map(Term::names).collect()
    }

    /// The regression's columns of each term, in order.
    #[must_use]
    pub fn blocks(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let block = |term: &Term| {
            let begin = end;
            end += term.columns();
            begin..end
        };
        self.terms.iter().map(block).collect()
    }

    /// Only the terms at `places`.
    #[must_use]
    pub fn select(&self, places: &[usize]) -> Self {
        Self {
            terms: places
                .iter()
                .map(|place| self.terms[*place].clone())
                .collect(),
        }
    }

    /// The columns of these patients, n x p, with missing values filled in. Levels are known by their names, whatever
    /// their order.
    ///
    /// # Errors
    /// [`TermsError`].
    pub fn matrix(&self, columns: &[Column]) -> Result<Array2<f64>, TermsError> {
        if columns.len() != self.terms.len() {
            return Err(TermsError::Columns {
                found: columns.len(),
                wanted: self.terms.len(),
            });
        }
        let patients = columns.first().map_or(0, |column| column.values.patients());
        let width = self.terms.iter().map(Term::columns).sum();
        // Columns are filled one by one: each is contiguous while it is filled.
        let mut turned = Array2::zeros((width, patients));
        for ((term, column), block) in self.terms.iter().zip(columns).zip(self.blocks()) {
            for (part, place) in block.enumerate() {
                term.fill(column, part, turned.row_mut(place))?;
            }
        }
        Ok(turned.t().as_standard_layout().into_owned())
    }
}

impl Term {
    fn of(column: &Column, degrees: usize) -> Result<Self, TermsError> {
        let name = column.name.clone();
        let empty = || TermsError::Empty {
            column: column.name.clone(),
        };
        let kind = match &column.values {
            Values::Numeric(_) if !(1..=SPLINE_MAX).contains(&degrees) => {
                return Err(TermsError::Spline {
                    column: name,
                    degrees,
                });
            }
            Values::Numeric(values) => {
                let mut present: Vec<f64> = values
                    .iter()
                    .copied()
                    .filter(|value| !value.is_nan())
                    .collect();
                if present.is_empty() {
                    return Err(empty());
                }
                let imputed = present.iter().sum::<f64>() / present.len() as f64;
                present.sort_unstable_by(f64::total_cmp);
                let knots = match degrees {
                    1 => Vec::new(),
                    degrees => knots(&present, degrees).ok_or_else(|| TermsError::Knots {
                        column: name.clone(),
                        degrees,
                    })?,
                };
                TermKind::Numeric { imputed, knots }
            }
            Values::Categorical { .. } if degrees != 1 => {
                return Err(TermsError::Spline {
                    column: name,
                    degrees,
                });
            }
            Values::Categorical { codes, levels } => {
                let mut counts = vec![0_u64; levels.len()];
                for &code in codes.iter().filter(|code| **code != MISSING_LEVEL) {
                    counts[code as usize] += 1;
                }
                let most = counts.iter().copied().max().filter(|most| *most > 0);
                let most = most.ok_or_else(empty)?;
                let imputed = counts.iter().position(|count| *count == most);
                TermKind::Categorical {
                    levels: levels.clone(),
                    imputed: imputed.unwrap_or(0) as u32,
                }
            }
        };
        Ok(Self {
            name,
            kind,
            indicator: false,
        })
    }

    /// Columns in the regression.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.parts() + usize::from(self.indicator)
    }

    /// Columns of its values.
    fn parts(&self) -> usize {
        match &self.kind {
            TermKind::Numeric { knots, .. } => knots.len().saturating_sub(1).max(1),
            TermKind::Categorical { levels, .. } => levels.len().saturating_sub(1),
        }
    }

    fn names(&self) -> Vec<String> {
        let name = &self.name;
        let mut names: Vec<String> = match &self.kind {
            TermKind::Numeric { .. } => (0..self.parts())
                .map(|part| format!("{name}{}", "'".repeat(part)))
                .collect(),
            TermKind::Categorical { levels, .. } => {
                let others = levels.iter().skip(1);
                others.map(|level| format!("{name}={level}")).collect()
            }
        };
        if self.indicator {
            names.push(format!("{name}=missing"));
        }
        names
    }

    /// Writes the `part`th column of this term.
    fn fill(
        &self,
        column: &Column,
        part: usize,
        mut target: ArrayViewMut1<'_, f64>,
    ) -> Result<(), TermsError> {
        let mismatch = |found: &str, wanted: &str| TermsError::Column {
            found: format!("{}{found}", column.name),
            wanted: format!("{}{wanted}", self.name),
        };
        if column.name != self.name {
            return Err(mismatch("", ""));
        }
        match (&self.kind, &column.values) {
            (_, values) if part == self.parts() => {
                for (row, target) in target.iter_mut().enumerate() {
                    *target = f64::from(u8::from(values.is_missing(row)));
                }
            }
            (TermKind::Numeric { imputed, knots }, Values::Numeric(values)) => {
                for (target, &value) in target.iter_mut().zip(values) {
                    let present = if value.is_nan() { *imputed } else { value };
                    *target = curve(present, knots, part);
                }
            }
            (
                TermKind::Categorical { .. },
                Values::Categorical {
                    codes,
                    levels: found,
                },
            ) => {
                let own = self.codes(found);
                for (target, &code) in target.iter_mut().zip(codes) {
                    *target = f64::from(u8::from(self.code(&own, code)? as usize == part + 1));
                }
            }
            (TermKind::Numeric { .. }, Values::Categorical { .. }) => {
                return Err(mismatch(" (categorical)", " (numeric)"));
            }
            (TermKind::Categorical { .. }, Values::Numeric(_)) => {
                return Err(mismatch(" (numeric)", " (categorical)"));
            }
        }
        Ok(())
    }

    /// The term's code of each of a column's levels; none of a level that the fit did not know.
    pub(crate) fn codes(&self, found: &[String]) -> Vec<Option<u32>> {
        let known: &[String] = match &self.kind {
            TermKind::Numeric { .. } => &[],
            TermKind::Categorical { levels, .. } => levels,
        };
        let code = |level: &String| known.iter().position(|name| name == level);
        found
            .iter()
            .map(|level| code(level).map(|code| code as u32))
            .collect()
    }

    /// The term's code of a patient's level, by what [`Term::codes`] found.
    pub(crate) fn code(&self, own: &[Option<u32>], code: u32) -> Result<u32, TermsError> {
        let TermKind::Categorical { levels, imputed } = &self.kind else {
            return Ok(0);
        };
        if code == MISSING_LEVEL {
            return Ok(*imputed);
        }
        let known = own.get(code as usize).copied().flatten();
        known.ok_or_else(|| TermsError::UnknownLevel {
            column: self.name.clone(),
            known: levels.clone(),
        })
    }
}

/// The knots of a spline of `degrees` degrees of freedom, of sorted values; none where they would coincide.
fn knots(sorted: &[f64], degrees: usize) -> Option<Vec<f64>> {
    let knots: Vec<f64> = places(degrees)?
        .iter()
        .map(|place| quantile(sorted, *place))
        .collect();
    let rise = knots.windows(2).all(|pair| pair[0] < pair[1]);
    rise.then_some(knots)
}

/// The quantile of sorted values, linear between them (R's type 7).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}
