//! One model of some of the features, by Newton's method on sums over the sites.

use super::message::{Design, Evaluating, Sums};
use super::possible::{Possible, products, steep_columns, steepness};
use super::settings::RegressionSettings;
use crate::exchange::count;
use crate::failure::Failure;
use ndarray::{Array1, Array2};
use privacy::Steepness;
use similarity::learn::regression::exponential::Cells;
use similarity::learn::regression::newton::{Newton, Wanted};
use similarity::learn::regression::ridge::{Choice, chosen};
use similarity::learn::regression::rows::Rows;
use similarity::learn::regression::selection::Weighed;
use similarity::learn::regression::{
    Fit, FitParts, Model as Family, Ridge, fit::normal_log_likelihood,
};
use similarity::learn::unpsl::SecondMoments;
use std::sync::Arc;

/// A model under way, or fitted.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    family: Family,
    ridge: Ridge,
    /// The ridge of what weighs a distance.
    weighing: Ridge,
    /// What weighs it, where that is not the fit: of the evaluation that is nearest to it.
    weights: Option<Choice>,
    rows: Rows,
    design: Arc<Design>,
    newton: Newton,
    /// What sums at coefficients of 0 tell; none before the first evaluation.
    first: Option<First>,
}

/// What the sums at coefficients of 0 tell, whatever comes after.
#[derive(Debug, Clone, Copy)]
struct First {
    patients: u64,
    events: u64,
    null_log_likelihood: f64,
}

impl Attempt {
    /// From coefficients of 0. `cells` are those of a common baseline, `fold` is held out, where one is.
    pub(super) fn new(
        settings: &RegressionSettings,
        family: Family,
        rows: Rows,
        (cells, fold): (Vec<u32>, Option<u32>),
    ) -> Self {
        let penalty = rows.scaling.penalty(settings.ridge.first(), family);
        let newton = Newton::new(penalty, settings.precision_of(family));
        Self {
            family,
            ridge: settings.ridge,
            weighing: settings.weights,
            weights: None,
            design: Arc::new(Design {
                cells,
                rows: rows.fitted.iter().map(|row| count(*row)).collect(),
                fold,
            }),
            newton: chosen_by(newton, settings.ridge, family),
            rows,
            first: None,
        }
    }

    /// The same of a common baseline, of which it is known how many events each cell has, and for how long patients were followed in it:
    /// from the hazards that are best without any column.
    pub(super) fn of_cells(
        self,
        settings: &RegressionSettings,
        cells: &Cells,
        patients: u64,
    ) -> Self {
        let numbers = cells.with_event();
        let family = Family::Exponential {
            cells: count(numbers.len()),
        };
        let (hazards, null_log_likelihood) = cells.without_columns();
        let fold = self.design.fold;
        let mut begun = Self::new(settings, family, self.rows, (numbers, fold));
        let zeros = std::iter::repeat_n(0.0, begun.rows.fitted.len());
        let begin = hazards.into_iter().chain(zeros).collect();
        let precision = settings.precision_of(family);
        let newton = Newton::from(begun.penalty(), precision, begin);
        begun.newton = chosen_by(newton, settings.ridge, family);
        begun.first = Some(First {
            patients,
            events: cells.events.iter().sum(),
            null_log_likelihood,
        });
        begun
    }

    /// The cells of a common baseline, no column and all log hazards 0: there the sums are the events and the time of each cell.
    pub(super) fn cells_alone(&self) -> Evaluating {
        let cells = self.family.leading();
        Evaluating {
            design: Arc::new(Design {
                cells: (0..count(cells)).collect(),
                rows: Vec::new(),
                fold: self.design.fold,
            }),
            at: Arc::new(vec![0.0; cells]),
        }
    }

    /// The same model of fewer features, from where this one says that its maximum is; of a linear regression, whose log-likelihood is
    /// a quadratic, it is fitted at once. Where a column takes the place of one that said the same, it begins at 0.
    pub(super) fn reduced(&self, settings: &RegressionSettings, rows: Rows) -> Self {
        let design = (self.design.cells.clone(), self.design.fold);
        // A chosen ridge stays: models are compared under one.
        let settings = RegressionSettings {
            ridge: Ridge::Stated(self.ridge()),
            ..settings.clone()
        };
        let mut reduced = Self::new(&settings, self.family, rows, design);
        let ones = self.family.leading();
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
        reduced.newton = Newton::from(reduced.penalty(), settings.precision_of(self.family), begin);
        if self.family == Family::Linear {
            while reduced.newton.wanted() != Wanted::Nothing {
                let (value, gradient, information) =
                    maximum.quadratic(&own, &places, reduced.newton.asked());
                reduced.learn(value, gradient, information);
            }
        }
        reduced.first = Some(*first);
        reduced
    }

    fn penalty(&self) -> Array1<f64> {
        self.rows.scaling.penalty(self.ridge(), self.family)
    }

    /// The ridge, as it is stated or was chosen last.
    fn ridge(&self) -> f64 {
        self.newton.ridge().unwrap_or(self.ridge.first())
    }

    /// Takes an evaluation where it was asked for, and what it says of the coefficients that weigh a distance.
    fn learn(&mut self, value: f64, gradient: Array1<f64>, information: Array2<f64>) {
        self.newton.learn_value(value, gradient);
        if self.newton.wanted() != Wanted::Information {
            return;
        }
        self.newton.learn_information(information);
        if self.weighing == self.ridge {
            return;
        }
        let unit = self.rows.scaling.penalty(1.0, self.family);
        let choice = self.newton.known();
        let Some(choice) = choice.and_then(|known| chosen(self.family, &known, &unit)) else {
            return;
        };
        let is_nearer = |before: &Choice| choice.away <= before.away;
        if self.weights.as_ref().is_none_or(is_nearer) {
            self.weights = Some(choice);
        }
    }

    /// The coefficients that weigh a distance, where they are others than those of the fit.
    pub(super) fn weights(&self) -> Option<&Array1<f64>> {
        self.weights.as_ref().map(|choice| &choice.at)
    }

    pub(super) fn newton(&self) -> &Newton {
        &self.newton
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

    pub(super) fn family(&self) -> Family {
        self.family
    }

    /// Whether it is of a survival time.
    pub(super) fn is_survival(&self) -> bool {
        matches!(self.family, Family::Cox(_) | Family::Exponential { .. })
    }

    /// Events, once they are known.
    pub(super) fn events(&self) -> Option<u64> {
        self.first.map(|first| first.events)
    }

    /// Judges the sums of an evaluation.
    ///
    /// # Errors
    /// A failure where no patients of these moments have such sums.
    pub(super) fn judge(
        &self,
        moments: &SecondMoments,
        error: f64,
        sums: &Sums,
    ) -> Result<(), Failure> {
        let possible = Possible {
            model: self.family,
            error,
            products: products(moments, &self.rows.fitted, self.family),
            patients: moments.patients,
            known: self.newton.known(),
        };
        possible.judge(self.newton.asked(), sums)
    }

    /// Takes the sums of an evaluation. What no hospital would answer, because it parts patients by a step, is not asked: a shorter step is, or
    /// the fit ends, for some columns part the outcomes nearly by themselves. A chosen ridge rises before that. One cohort alone, whose `moments` are not given, answers all.
    pub(super) fn take(&mut self, sums: Sums, moments: Option<&SecondMoments>) {
        let first = *self
            .first
            .get_or_insert_with(|| First::of(&sums, self.family));
        self.learn(sums.log_likelihood, sums.gradient, sums.information);
        let Some(moments) = moments else { return };
        let products = products(moments, &self.rows.fitted, self.family);
        let counts = (first.events, first.patients);
        let mut is_too_steep: fn(Steepness) -> bool = Steepness::is_too_much;
        while self.newton.wanted() != Wanted::Nothing {
            let at = self.newton.asked();
            let Some(steepness) = steepness(self.family, &products, at, counts) else {
                break;
            };
            if steepness.is_close() && self.newton.stiffen() {
                continue;
            }
            if !is_too_steep(steepness) {
                break;
            }
            // Shorter steps would come ever closer to the brake, which those of some hospital pass before.
            is_too_steep = Steepness::is_close;
            let columns = steep_columns(self.family, &products, self.newton.asked());
            self.newton.shorten(columns);
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
            ridge: self.ridge(),
            maximum: self.newton.maximum(self.patients()),
            null_log_likelihood: first.map_or(0.0, |first| first.null_log_likelihood),
            events: first.map_or(0, |first| first.events),
            left_out: 0,
        })
    }
}

/// The same search, by a ridge that is chosen on its way where none is stated.
fn chosen_by(newton: Newton, ridge: Ridge, family: Family) -> Newton {
    match ridge {
        Ridge::Stated(_) => newton,
        Ridge::Chosen => newton.choosing(family),
    }
}

impl First {
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    fn of(sums: &Sums, family: Family) -> Self {
        let patients = sums.patients as f64;
        let null_log_likelihood = match family {
            Family::Logistic => {
                let positive = sums.events as f64;
                let of_class = |count: f64| match count > 0.0 {
                    true => count * libm::log(count / patients),
                    false => 0.0,
                };
                of_class(positive) + of_class(patients - positive)
            }
            Family::Linear => {
                // The constant is the first column, of ones.
                let slope = sums.gradient.first().copied().unwrap_or(0.0);
                let squares = -2.0 * sums.log_likelihood - slope * slope / patients;
                normal_log_likelihood(squares, patients)
            }
            Family::Cox(_) | Family::Exponential { .. } => sums.log_likelihood,
        };
        Self {
            patients: sums.patients,
            events: sums.events,
            null_log_likelihood,
        }
    }
}
