//! Backward selection of features.
//!
//! A [`Search`] says which features to fit next and receives what the fits are worth; who fits them, one cohort or a coordinator
//! of many, does not matter to it. Everything that it goes by follows from a fit's maximum by IEEE operations and `libm`, so that all
//! who follow a search by the same sums follow the same one.

use ndarray::Array1;

use crate::cohort::Cohort;
use crate::learn::regression::fit::{Fit, Model, normal_log_likelihood};
use crate::learn::regression::newton::{Ending, Maximum};
use crate::learn::regression::prepare::{RegressionError, Settings, fit_and_weigh};
use crate::numeric::chi_squared::above;

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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Removed {
    /// Its place among the features.
    pub feature: usize,
    /// Coefficients that left with it.
    pub degrees: usize,
    /// Akaike's criterion without it, or its Wald p.
    pub value: f64,
}

/// What a fit is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighed {
    /// Whether it has a maximum.
    converged: bool,
    aic: f64,
    /// Wald's p of each feature that was fitted, in order; of one that others already say 1.
    p: Vec<f64>,
    /// Fitted columns of each.
    degrees: Vec<usize>,
}

impl Weighed {
    /// Of a maximum under a penalty of each column; `places` has each feature's.
    #[must_use]
    pub fn of(
        model: Model,
        maximum: &Maximum,
        penalty: &Array1<f64>,
        places: &[Vec<usize>],
    ) -> Self {
        let (patients, fitted) = (maximum.patients as f64, maximum.at.len());
        let squares = -2.0 * maximum.log_likelihood;
        let (log_likelihood, parameters, variance) = match model {
            Model::Linear => {
                let free = (patients - fitted as f64).max(0.0);
                let value = normal_log_likelihood(squares, patients);
                (value, fitted + 1, squares / free)
            }
            Model::Logistic | Model::Cox(_) | Model::Exponential { .. } => {
                (maximum.log_likelihood, fitted, 1.0)
            }
        };
        let tests = maximum.wald(penalty, places).into_iter().zip(places);
        let p = tests.map(|(chi_squared, places)| {
            chi_squared.map_or(1.0, |value| above(value / variance, places.len()))
        });
        Self {
            converged: maximum.ending == Ending::Converged,
            aic: 2.0 * parameters as f64 - 2.0 * log_likelihood,
            p: p.collect(),
            degrees: places.iter().map(Vec::len).collect(),
        }
    }
}

/// A search under way; `T` is whatever belongs to a fit.
#[derive(Debug, Clone)]
pub struct Search<T> {
    criterion: Criterion,
    /// The best so far.
    best: Held<T>,
    /// The best of those that lack one feature of it, and whose place that is.
    leading: Option<(usize, Held<T>)>,
    /// Whose place is removed next.
    next: Option<usize>,
    removed: Vec<Removed>,
}

/// A fit.
#[derive(Debug, Clone)]
struct Held<T> {
    features: Vec<usize>,
    weighed: Weighed,
    fit: T,
}

impl<T> Search<T> {
    /// From the fit of all of so many features.
    #[must_use]
    pub fn new(criterion: Criterion, features: usize, weighed: Weighed, fit: T) -> Self {
        let best = Held {
            features: (0..features).collect(),
            weighed,
            fit,
        };
        Self {
            next: best.first_to_leave(criterion),
            criterion,
            best,
            leading: None,
            removed: Vec::new(),
        }
    }

    /// The features to fit next, by their places, rising; none once the search is over.
    #[must_use]
    pub fn wanted(&self) -> Option<Vec<usize>> {
        let mut features = self.best.features.clone();
        features.remove(self.next?);
        Some(features)
    }

    /// Takes the fit of what was wanted; none where it cannot be made.
    pub fn learn(&mut self, found: Option<(Weighed, T)>) {
        let (Some(features), Some(place)) = (self.wanted(), self.next.take()) else {
            return;
        };
        let held = found.map(|(weighed, fit)| Held {
            features,
            weighed,
            fit,
        });
        let held = held.filter(|held| held.weighed.converged);
        match (self.criterion, held) {
            (Criterion::Wald { .. }, None) => {}
            (Criterion::Wald { .. }, Some(held)) => {
                self.goes_on(place, self.best.weighed.p[place], held);
            }
            (Criterion::Aic, held) => self.compare(place, held),
        }
    }

    /// The best so far.
    #[must_use]
    pub fn best(&self) -> &T {
        &self.best.fit
    }

    /// What left, in order.
    #[must_use]
    pub fn removed(&self) -> &[Removed] {
        &self.removed
    }

    /// The best and the places of its features.
    #[must_use]
    pub fn into_best(self) -> (Vec<usize>, T) {
        (self.best.features, self.best.fit)
    }

    /// The criterion of all that lack one feature says who leaves.
    fn compare(&mut self, place: usize, held: Option<Held<T>>) {
        if let Some(held) = held {
            let known = self.leading.as_ref();
            if known.is_none_or(|(_, known)| held.weighed.aic < known.weighed.aic) {
                self.leading = Some((place, held));
            }
        }
        if place + 1 < self.best.features.len() {
            self.next = Some(place + 1);
        } else if let Some((place, held)) = self.leading.take()
            && held.weighed.aic < self.best.weighed.aic
        {
            self.goes_on(place, held.weighed.aic, held);
        }
    }

    /// The feature at a place leaves.
    fn goes_on(&mut self, place: usize, value: f64, held: Held<T>) {
        self.removed.push(Removed {
            feature: self.best.features[place],
            degrees: self.best.weighed.degrees[place],
            value,
        });
        self.best = held;
        self.next = self.best.first_to_leave(self.criterion);
    }
}

impl<T> Held<T> {
    /// Whose place is removed first. Without a maximum there is nothing to go by, and one feature at least stays.
    fn first_to_leave(&self, criterion: Criterion) -> Option<usize> {
        if !self.weighed.converged || self.features.len() < 2 {
            return None;
        }
        match criterion {
            Criterion::Aic => Some(0),
            Criterion::Wald { p } => {
                // What others already say leaves first, and of equals the first.
                let mut largest: Option<(usize, f64)> = None;
                for (place, own) in self.weighed.p.iter().enumerate() {
                    if *own > p && largest.is_none_or(|(_, known)| *own > known) {
                        largest = Some((place, *own));
                    }
                }
                largest.map(|(place, _)| place)
            }
        }
    }
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
/// patients: those without a missing value in any column. Where the first fit has no end, nothing is removed.
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
    let of = |kept: &[usize]| {
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
        let (fit, weighed) = fit_and_weigh(&whole.with_columns(kept), &settings)?;
        Ok::<_, RegressionError>((weighed, fit))
    };
    let all: Vec<usize> = (0..cohort.columns().len()).collect();
    let (weighed, first) = of(&all)?;
    let mut search = Search::new(criterion, all.len(), weighed, first);
    while let Some(wanted) = search.wanted() {
        search.learn(of(&wanted).ok());
    }
    let removed = search.removed().to_vec();
    let (kept, mut fit) = search.into_best();
    fit.left_out = left_out;
    Ok(Selected { fit, kept, removed })
}
