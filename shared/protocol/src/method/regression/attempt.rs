//! One model of some of the features, by Newton's method on sums over the sites.

use super::message::{Answer, Design, Evaluating, Request, RiskSets, Sums, Weighing};
use super::settings::RegressionSettings;
use crate::exchange::count;
use ndarray::{Array1, Array2, Axis};
use similarity::learn::regression::cox::{CellCounts, RiskTerms};
use similarity::learn::regression::newton::{Newton, Wanted};
use similarity::learn::regression::rows::Rows;
use similarity::learn::regression::selection::Weighed;
use similarity::learn::regression::{Fit, FitParts, Model as Family, fit::normal_log_likelihood};
use std::sync::Arc;

/// A model under way, or fitted.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    family: Family,
    ridge: f64,
    rows: Rows,
    design: Arc<Design>,
    newton: Newton,
    /// What sums at coefficients of 0 tell; none before the first evaluation.
    first: Option<First>,
    /// What the risk sets said where their products are wanted, or were last.
    terms: Option<RiskTerms>,
}

/// What the sums at coefficients of 0 tell, whatever comes after.
#[derive(Debug, Clone)]
struct First {
    patients: u64,
    events: u64,
    null_log_likelihood: f64,
    /// Of a Cox regression.
    sets: RiskSets,
}

impl Attempt {
    /// From coefficients of 0. `ends` are the cells of follow-up, none but of a Cox regression; `fold` is left out, where one is.
    pub(super) fn new(
        settings: &RegressionSettings,
        family: Family,
        rows: Rows,
        ends: Vec<u32>,
        fold: Option<u32>,
    ) -> Self {
        let penalty = rows.scaling.penalty(settings.ridge, family);
        Self {
            family,
            ridge: settings.ridge,
            design: Arc::new(Design {
                rows: rows.fitted.iter().map(|row| count(*row)).collect(),
                ends,
                fold,
            }),
            newton: Newton::new(penalty),
            rows,
            first: None,
            terms: None,
        }
    }

    /// The same model of fewer features, from where this one says that its maximum is; of a linear regression, whose log-likelihood is
    /// a quadratic, it is fitted at once. Where a column takes the place of one that said the same, it begins at 0.
    pub(super) fn reduced(&self, settings: &RegressionSettings, rows: Rows) -> Self {
        let ends = self.design.ends.clone();
        let mut reduced = Self::new(settings, self.family, rows, ends, self.design.fold);
        let ones = usize::from(self.family.has_intercept());
        let fitted = &self.rows.fitted;
        let place = |row: &usize| fitted.iter().position(|one| one == row);
        let places: Option<Vec<usize>> = reduced.rows.fitted.iter().map(place).collect();
        let (Some(places), Some(first)) = (places, &self.first) else {
            return reduced;
        };
        let places: Vec<usize> = (0..ones)
            .chain(places.into_iter().map(|place| place + ones))
            .collect();
        let (maximum, own) = (self.newton.maximum(first.patients), self.penalty());
        let Some(begin) = maximum.restricted(&own, &places) else {
            return reduced;
        };
        reduced.newton = Newton::from(reduced.penalty(), begin);
        if self.family == Family::Linear {
            while reduced.newton.wanted() != Wanted::Nothing {
                let (value, gradient, information) =
                    maximum.quadratic(&own, &places, reduced.newton.asked());
                reduced.newton.learn_value(value, gradient);
                if reduced.newton.wanted() == Wanted::Information {
                    reduced.newton.learn_information(information);
                }
            }
        }
        let columns: Vec<usize> = std::iter::once(0)
            .chain(places.iter().map(|place| 1 + place))
            .collect();
        let chosen = |sums: &Array2<f64>| match sums.is_empty() {
            true => sums.clone(),
            false => sums.select(Axis(1), &columns),
        };
        reduced.first = Some(First {
            sets: RiskSets {
                at_risk: chosen(&first.sets.at_risk),
                with_event: chosen(&first.sets.with_event),
            },
            ..*first
        });
        reduced
    }

    fn penalty(&self) -> Array1<f64> {
        self.rows.scaling.penalty(self.ridge, self.family)
    }

    pub(super) fn newton(&self) -> &Newton {
        &self.newton
    }

    /// What the risk sets said of the last point whose products were wanted.
    pub(super) fn terms(&self) -> Option<&RiskTerms> {
        self.terms.as_ref()
    }

    /// Coefficients, the constant among them.
    pub(super) fn coefficients(&self) -> u64 {
        self.newton.asked().len() as u64
    }

    /// Where the next numbers are wanted.
    pub(super) fn point(&self) -> Evaluating {
        self.at(self.newton.asked())
    }

    /// The best point, which may not be the last.
    pub(super) fn best(&self) -> Evaluating {
        self.at(&self.newton.maximum(0).at)
    }

    fn at(&self, coefficients: &Array1<f64>) -> Evaluating {
        Evaluating {
            design: Arc::clone(&self.design),
            at: Arc::new(coefficients.to_vec()),
        }
    }

    pub(super) fn is_cox(&self) -> bool {
        !self.design.ends.is_empty()
    }

    /// Steps of the grid of events before which the cells end.
    pub(super) fn ends(&self) -> &[u32] {
        &self.design.ends
    }

    /// What the next step wants.
    pub(super) fn request(&self) -> Request {
        match &self.terms {
            Some(terms) if self.newton.wanted() == Wanted::Information => {
                Request::Weigh(Weighing {
                    point: self.point(),
                    weights: Arc::new(vec![terms.weights.clone()]),
                })
            }
            _ => Request::Evaluate(self.point()),
        }
    }

    /// Nothing, of the shape that answers `request`.
    pub(super) fn empty(&self, request: &Request) -> Answer {
        let size = self.newton.asked().len();
        let square = || Array2::zeros((size, size));
        match (request, self.is_cox()) {
            (Request::Weigh(weighing), _) => {
                Answer::Products(weighing.weights.iter().map(|_| square()).collect())
            }
            (_, true) => Answer::RiskSets {
                patients: 0,
                sets: RiskSets::zero(self.design.ends.len(), size),
            },
            (_, false) => Answer::Likelihood(Sums::zero(size)),
        }
    }

    /// Patients of all sites by cells.
    pub(super) fn counts(&self) -> CellCounts {
        match &self.first {
            Some(first) => CellCounts::of_sets(first.patients, &first.sets),
            None => CellCounts::of_sets(0, &RiskSets::zero(self.design.ends.len(), 0)),
        }
    }

    /// Takes what an evaluation told.
    pub(super) fn take_values(&mut self, answer: Answer) {
        let at = self.newton.asked().clone();
        match (answer, self.family) {
            (Answer::Likelihood(sums), family) => {
                self.first.get_or_insert_with(|| First::of(&sums, family));
                self.newton.learn_value(sums.log_likelihood, sums.gradient);
                if self.newton.wanted() == Wanted::Information {
                    self.newton.learn_information(sums.information);
                }
            }
            (Answer::RiskSets { patients, sets }, Family::Cox(ties)) => {
                let first = self.first.get_or_insert_with(|| First {
                    patients,
                    events: sets.events().iter().sum(),
                    null_log_likelihood: sets.terms(&sets, &at, ties).log_likelihood,
                    sets: sets.clone(),
                });
                let terms = sets.terms(&first.sets, &at, ties);
                self.newton
                    .learn_value(terms.log_likelihood, terms.gradient(|_| 1.0));
                if self.newton.wanted() == Wanted::Information {
                    self.terms = Some(terms);
                }
            }
            (Answer::RiskSets { .. } | Answer::Products(_), _) => {}
        }
    }

    /// Takes the products that a step wanted.
    pub(super) fn take_products(&mut self, products: &[Array2<f64>]) {
        if let (Some(terms), Some(product)) = (&self.terms, products.first()) {
            let information = terms.information(product, |_| 1.0);
            self.newton.learn_information(information);
        }
    }

    /// What a search for the features that matter looks at.
    pub(super) fn weighed(&self) -> Weighed {
        let maximum = self.newton.maximum(self.patients());
        let places = self.rows.scaling.places(&self.rows.terms, self.family);
        Weighed::of(self.family, &maximum, &self.penalty(), &places)
    }

    fn patients(&self) -> u64 {
        self.first.as_ref().map_or(0, |first| first.patients)
    }

    /// The fit, once nothing more is wanted.
    pub(super) fn fit(&self) -> Fit {
        let first = self.first.as_ref();
        Fit::assemble(FitParts {
            model: self.family,
            terms: self.rows.terms.clone(),
            scaling: self.rows.scaling.clone(),
            ridge: self.ridge,
            maximum: self.newton.maximum(self.patients()),
            null_log_likelihood: first.map_or(0.0, |first| first.null_log_likelihood),
            events: first.map_or(0, |first| first.events),
            left_out: 0,
        })
    }
}

impl First {
    /// Of a linear or logistic regression's sums at 0.
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of patients
    fn of(sums: &Sums, family: Family) -> Self {
        let patients = sums.patients as f64;
        // The constant is the first column, of ones.
        let slope = sums.gradient.first().copied().unwrap_or(0.0);
        let (null_log_likelihood, events) = match family {
            Family::Logistic => {
                let positive = (slope + patients / 2.0).round();
                let of_class = |count: f64| match count > 0.0 {
                    true => count * (count / patients).ln(),
                    false => 0.0,
                };
                let value = of_class(positive) + of_class(patients - positive);
                (value, positive as u64)
            }
            Family::Linear | Family::Cox(_) => {
                let squares = -2.0 * sums.log_likelihood - slope * slope / patients;
                (normal_log_likelihood(squares, patients), 0)
            }
        };
        Self {
            patients: sums.patients,
            events,
            null_log_likelihood,
            sets: RiskSets::zero(0, 0),
        }
    }
}
