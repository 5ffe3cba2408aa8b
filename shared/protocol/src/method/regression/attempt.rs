//! One model of some of the features, by Newton's method on sums over the sites.

use super::message::{Design, Evaluating, Sums};
use super::possible::{Possible, products, too_steep};
use super::settings::RegressionSettings;
use crate::exchange::count;
use crate::failure::Failure;
use ndarray::Array1;
use similarity::learn::regression::exponential::Cells;
use similarity::learn::regression::newton::{Newton, Wanted};
use similarity::learn::regression::rows::Rows;
use similarity::learn::regression::selection::Weighed;
use similarity::learn::regression::{Fit, FitParts, Model as Family, fit::normal_log_likelihood};
use similarity::learn::unpsl::SecondMoments;
use similarity::numeric::precision::Precision;
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
}

/// What the sums at coefficients of 0 tell, whatever comes after.
#[derive(Debug, Clone, Copy)]
struct First {
    patients: u64,
    events: u64,
    null_log_likelihood: f64,
}

impl Attempt {
    /// From coefficients of 0. `cells` are those of a common baseline, `fold` is left out, where one is.
    pub(super) fn new(
        settings: &RegressionSettings,
        family: Family,
        rows: Rows,
        (cells, fold): (Vec<u32>, Option<u32>),
    ) -> Self {
        let penalty = rows.scaling.penalty(settings.ridge, family);
        Self {
            family,
            ridge: settings.ridge,
            design: Arc::new(Design {
                cells,
                rows: rows.fitted.iter().map(|row| count(*row)).collect(),
                fold,
            }),
            newton: Newton::new(penalty, settings.precision_of(family)),
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
        begun.newton = Newton::from(begun.penalty(), precision, begin);
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
        let mut reduced = Self::new(settings, self.family, rows, design);
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
                reduced.newton.learn_value(value, gradient);
                if reduced.newton.wanted() == Wanted::Information {
                    reduced.newton.learn_information(information);
                }
            }
        }
        reduced.first = Some(*first);
        reduced
    }

    fn penalty(&self) -> Array1<f64> {
        self.rows.scaling.penalty(self.ridge, self.family)
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

    /// Judges what an evaluation told.
    ///
    /// # Errors
    /// A failure where no patients of these moments have such sums.
    pub(super) fn judge(
        &self,
        moments: &SecondMoments,
        precision: Precision,
        sums: &Sums,
    ) -> Result<(), Failure> {
        let possible = Possible {
            model: self.family,
            precision,
            products: products(moments, &self.rows.fitted, self.family),
            patients: moments.patients,
            known: self.newton.known(),
        };
        possible.judge(self.newton.asked(), sums)
    }

    /// Takes what an evaluation told. What no hospital would answer, because it parts patients by a step, is not asked: a shorter step is, or
    /// the fit ends, for some columns part the outcomes nearly by themselves. One cohort alone, whose `moments` are not given, answers all.
    pub(super) fn take(&mut self, sums: Sums, moments: Option<&SecondMoments>) {
        let first = *self
            .first
            .get_or_insert_with(|| First::of(&sums, self.family));
        self.newton.learn_value(sums.log_likelihood, sums.gradient);
        if self.newton.wanted() == Wanted::Information {
            self.newton.learn_information(sums.information);
        }
        let Some(moments) = moments else { return };
        let products = products(moments, &self.rows.fitted, self.family);
        let counts = (first.events, first.patients);
        while self.newton.wanted() != Wanted::Nothing {
            match too_steep(self.family, &products, self.newton.asked(), counts) {
                Some(columns) => self.newton.shorten(columns),
                None => break,
            }
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
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    fn of(sums: &Sums, family: Family) -> Self {
        let patients = sums.patients as f64;
        let null_log_likelihood = match family {
            Family::Logistic => {
                let positive = sums.events as f64;
                let of_class = |count: f64| match count > 0.0 {
                    true => count * (count / patients).ln(),
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
