//! Backward selection: features leave one by one while the rest does without them.

use crate::cohort::Cohort;
use crate::learn::regression::fit::Fit;
use crate::learn::regression::prepare::{RegressionError, Settings, fit};

/// What a feature must be worth to stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// Akaike's criterion falls when the feature leaves; the one whose leaving lowers it most leaves first.
    Aic,
    /// Wald's p of the feature is above this; the one with the largest leaves first.
    Wald {
        /// Above 0 and at most 1; 0.05 is customary.
        p: f64,
    },
}

/// A feature that left.
#[derive(Debug, Clone, PartialEq)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// Akaike's criterion without it, or its Wald p.
    pub value: f64,
}

/// What selection left.
#[derive(Debug, Clone)]
pub struct Selected {
    /// The regression on the features that stayed.
    pub fit: Fit,
    /// Those features, by their place among the cohort's columns.
    pub kept: Vec<usize>,
    /// Those that left, in order.
    pub removed: Vec<Removed>,
}

/// Fits all columns, and leaves features out while the criterion says so; at least one stays. Every fit is of the same
/// patients: those without a missing value in any column.
///
/// # Errors
/// [`RegressionError`] of the first fit.
pub fn backward(
    cohort: &Cohort,
    settings: &Settings,
    criterion: Criterion,
) -> Result<Selected, RegressionError> {
    let whole = cohort.select(&cohort.complete());
    let left_out = (cohort.patients() - whole.patients()) as u64;
    let without = |kept: &[usize]| {
        let splines = match settings.splines.is_empty() {
            true => Vec::new(),
            false => kept
                .iter()
                .map(|column| settings.splines[*column])
                .collect(),
        };
        let settings = Settings {
            splines,
            ..settings.clone()
        };
        fit(&whole.with_columns(kept), &settings)
    };
    let mut kept: Vec<usize> = (0..cohort.columns().len()).collect();
    let mut found = without(&kept)?;
    let mut removed = Vec::new();
    while kept.len() > 1 {
        let Some((place, value, next)) = leaver(&found, &kept, criterion, &without) else {
            break;
        };
        let column = kept.remove(place);
        removed.push(Removed {
            name: cohort.columns()[column].name.clone(),
            value,
        });
        found = match next {
            Some(next) => next,
            None => without(&kept)?,
        };
    }
    found.left_out = left_out;
    Ok(Selected {
        fit: found,
        kept,
        removed,
    })
}

/// Who leaves next, what it is worth, and the fit without it where that was made.
fn leaver(
    found: &Fit,
    kept: &[usize],
    criterion: Criterion,
    without: &impl Fn(&[usize]) -> Result<Fit, RegressionError>,
) -> Option<(usize, f64, Option<Fit>)> {
    let mut best: Option<(usize, f64, Option<Fit>)> = None;
    for place in 0..kept.len() {
        let (value, next) = match criterion {
            Criterion::Aic => {
                let mut rest = kept.to_vec();
                rest.remove(place);
                let Ok(next) = without(&rest) else { continue };
                (next.aic(), Some(next))
            }
            // What others already say leaves first.
            Criterion::Wald { .. } => (found.wald(place).map_or(1.0, |(_, _, p)| p), None),
        };
        let better = |known: f64| match criterion {
            Criterion::Aic => value < known,
            Criterion::Wald { .. } => value > known,
        };
        if best.as_ref().is_none_or(|(_, known, _)| better(*known)) {
            best = Some((place, value, next));
        }
    }
    best.filter(|(_, value, _)| match criterion {
        Criterion::Aic => *value < found.aic(),
        Criterion::Wald { p } => *value > p,
    })
}
