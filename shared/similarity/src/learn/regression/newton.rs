//! Newton's method on a concave log-likelihood of which only sums are known.

use ndarray::{Array1, Array2, Axis};

use crate::learn::regression::fit::Model;
use crate::learn::regression::ridge::{chosen, penalised};
use crate::numeric::portable::{Factor, dot};
use crate::numeric::precision::Precision;

/// Steps at most.
const STEPS_MAX: u32 = 100;
/// So often a ridge is made stronger.
const STIFFENED_MAX: u32 = 64;
/// Evaluations at which a ridge is chosen; the last one stays.
const CHOICES_MAX: u32 = 6;
/// Halvings of a step that must not be as long.
const SHORTENED_MAX: u32 = 4;
/// Halvings of one step at most.
const HALVINGS_MAX: u32 = 40;

/// What is no change, by how finely the sums are known. A gain is g' H^-1 g: twice what the log-likelihood may still gain, and the
/// squared length of the step in standard errors.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tolerances {
    /// A gain after which one step more changes nothing, as a share of the log-likelihood.
    settled: f64,
    /// The same, whatever the log-likelihood is.
    settled_at: f64,
    /// Coefficients that still move so far while the log-likelihood gains less than `flat` move without end.
    moving: f64,
    flat: f64,
    /// A log-likelihood that is lower by no more has not fallen: as a share of it, and whatever it is.
    falls: f64,
    falls_at: f64,
}

impl Tolerances {
    fn of(precision: Precision) -> Self {
        match precision {
            Precision::Exact => Self {
                settled: 1e-12,
                settled_at: 1e-12,
                moving: 0.05,
                flat: 1e-5,
                falls: 1e-12,
                falls_at: 0.0,
            },
            // A tenth of a standard error: the step after it leaves about a hundredth of that.
            Precision::Rounded => Self {
                settled: 1e-12,
                settled_at: 0.01,
                moving: 0.5,
                flat: 0.01,
                falls: 1e-12,
                falls_at: 0.125,
            },
        }
    }
}

/// How a fit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// At the maximum.
    Converged,
    /// There is no maximum: the coefficients of these columns grow without end, because they part the outcomes
    /// perfectly (separation, or a monotone likelihood). A ridge has a maximum.
    Separated(Vec<usize>),
    /// The steps ran out.
    StepLimit,
}

/// The coefficients that were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Maximum {
    /// One a column.
    pub at: Array1<f64>,
    /// Patients that it was fitted to.
    pub patients: u64,
    /// The log-likelihood there, without the penalty.
    pub log_likelihood: f64,
    /// The negative of its second derivatives, without the penalty.
    pub information: Array2<f64>,
    /// Steps made.
    pub steps: u32,
    /// How it ended.
    pub ending: Ending,
}

/// Newton's method with halved steps, question by question, so that whoever adds up the sums of several sites can wait for
/// them. It maximises the log-likelihood less 1/2 sum penalty_k b_k^2, from 0; by IEEE operations in a fixed order, so that the bits
/// are the same on every processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Newton {
    penalty: Array1<f64>,
    precision: Precision,
    /// Where the next numbers are wanted.
    asked: Array1<f64>,
    /// The best so far; none before the first answer.
    best: Option<Best>,
    step: Array1<f64>,
    share: f64,
    halvings: u32,
    steps: u32,
    /// What is known at `asked`, until its information is.
    value: Option<(f64, Array1<f64>)>,
    ending: Option<Ending>,
    /// The step under way is the last.
    settles: bool,
    /// The ridge, where the data choose it.
    choosing: Option<Choosing>,
}

#[derive(Debug, Clone, PartialEq)]
struct Choosing {
    model: Model,
    /// The penalty of a ridge of 1.
    unit: Array1<f64>,
    ridge: f64,
    /// It is no weaker, so that nobody is asked about what is too steep.
    least: f64,
    stiffened: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Best {
    at: Array1<f64>,
    /// The log-likelihood less the penalty.
    value: f64,
    log_likelihood: f64,
    gradient: Array1<f64>,
    information: Array2<f64>,
}

/// The sums of an evaluation, without the penalty.
#[derive(Debug, Clone, PartialEq)]
pub struct Known<'n> {
    /// Where.
    pub at: &'n Array1<f64>,
    /// The log-likelihood there.
    pub log_likelihood: f64,
    /// Its first derivatives.
    pub gradient: Array1<f64>,
    /// The negative of its second derivatives.
    pub information: &'n Array2<f64>,
}

/// What Newton's method wants to know of [`Newton::asked`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The log-likelihood and its gradient.
    Value,
    /// The information.
    Information,
    /// Nothing more.
    Nothing,
}

impl Newton {
    /// With a penalty for each column, on sums that are known so finely.
    #[must_use]
    pub fn new(penalty: Array1<f64>, precision: Precision) -> Self {
        let zeros = Array1::zeros(penalty.len());
        Self::from(penalty, precision, zeros)
    }

    /// The same from other coefficients than 0.
    #[must_use]
    pub fn from(penalty: Array1<f64>, precision: Precision, begin: Array1<f64>) -> Self {
        Self {
            precision,
            step: Array1::zeros(begin.len()),
            asked: begin,
            penalty,
            best: None,
            share: 1.0,
            halvings: 0,
            steps: 0,
            value: None,
            ending: None,
            settles: false,
            choosing: None,
        }
    }

    /// The same with the ridge that the data ask for, chosen anew at each of the first evaluations; the penalty that it has is that of
    /// a ridge of 1.
    #[must_use]
    pub fn choosing(self, model: Model) -> Self {
        Self {
            choosing: Some(Choosing {
                model,
                unit: self.penalty.clone(),
                ridge: 1.0,
                least: 0.0,
                stiffened: 0,
            }),
            ..self
        }
    }

    /// The ridge that was chosen last; none where none is chosen.
    #[must_use]
    pub fn ridge(&self) -> Option<f64> {
        self.choosing.as_ref().map(|choosing| choosing.ridge)
    }

    /// Makes a chosen ridge half as strong again, from now on at least, and the step that is wanted next anew; false where none is chosen,
    /// or it has been often enough.
    pub fn stiffen(&mut self) -> bool {
        let Some(choosing) = &mut self.choosing else {
            return false;
        };
        if choosing.stiffened == STIFFENED_MAX {
            return false;
        }
        choosing.stiffened += 1;
        choosing.least = 1.5 * choosing.ridge;
        let ridge = choosing.least;
        self.take_ridge(ridge);
        self.settles = false;
        self.ending = self.make_step();
        true
    }

    /// Chooses the ridge by the best evaluation so far.
    fn choose(&mut self) {
        let (Some(choosing), Some(known)) = (&self.choosing, self.known()) else {
            return;
        };
        let Some(choice) = chosen(choosing.model, &known, &choosing.unit) else {
            return;
        };
        let ridge = choice.ridge.max(choosing.least);
        self.take_ridge(ridge);
    }

    /// Goes on under another ridge.
    fn take_ridge(&mut self, ridge: f64) {
        let (Some(choosing), Some(known)) = (&self.choosing, self.known()) else {
            return;
        };
        let penalty = ridge * &choosing.unit;
        let at = known.at.clone();
        let gradient = &known.gradient - &(&penalty * known.at);
        let log_likelihood = known.log_likelihood;
        (self.penalty, self.asked) = (penalty, at);
        let value = self.penalised(log_likelihood);
        if let Some(best) = &mut self.best {
            (best.gradient, best.value) = (gradient, value);
        }
        if let Some(choosing) = &mut self.choosing {
            choosing.ridge = ridge;
        }
    }

    /// Makes the step that is wanted next half as long, or ends the search where it is once it hardly moves: these columns have no end.
    pub fn shorten(&mut self, columns: Vec<usize>) {
        match &self.best {
            Some(best) if self.halvings < SHORTENED_MAX => {
                self.halvings += 1;
                self.share /= 2.0;
                self.asked = &best.at + &(self.share * &self.step);
                self.settles = false;
            }
            _ => self.ending = Some(Ending::Separated(columns)),
        }
    }

    /// The coefficients at which the next numbers are wanted.
    #[must_use]
    pub fn asked(&self) -> &Array1<f64> {
        &self.asked
    }

    /// What is wanted there.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        match (&self.ending, &self.value) {
            (Some(_), _) => Wanted::Nothing,
            (None, Some(_)) => Wanted::Information,
            (None, None) => Wanted::Value,
        }
    }

    /// The best evaluation so far.
    #[must_use]
    pub fn known(&self) -> Option<Known<'_>> {
        self.best.as_ref().map(|best| Known {
            at: &best.at,
            log_likelihood: best.log_likelihood,
            gradient: &best.gradient + &(&self.penalty * &best.at),
            information: &best.information,
        })
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The log-likelihood of the best coefficients so far.
    #[must_use]
    pub fn log_likelihood(&self) -> Option<f64> {
        self.best.as_ref().map(|best| best.log_likelihood)
    }

    /// Takes the log-likelihood and its gradient where they were asked for.
    pub fn learn_value(&mut self, log_likelihood: f64, gradient: Array1<f64>) {
        let value = self.penalised(log_likelihood);
        if let Some(best) = &self.best {
            // What a rounding takes away is no fall.
            let no_fall = Tolerances::of(self.precision);
            let no_fall = no_fall.falls * best.value.abs() + no_fall.falls_at;
            let falls = value.is_nan() || value < best.value - no_fall;
            if falls && !self.settles {
                if self.halvings == HALVINGS_MAX {
                    self.ending = Some(Ending::StepLimit);
                    return;
                }
                self.halvings += 1;
                self.share /= 2.0;
                self.asked = &best.at + &(self.share * &self.step);
                return;
            }
        }
        self.value = Some((log_likelihood, gradient));
    }

    /// Takes the information where it was asked for, and makes a step.
    pub fn learn_information(&mut self, information: Array2<f64>) {
        let Some((log_likelihood, gradient)) = self.value.take() else {
            return;
        };
        let value = self.penalised(log_likelihood);
        let gradient = &gradient - &(&self.penalty * &self.asked);
        let had_any = self.best.is_some();
        self.steps += u32::from(had_any);
        self.best = Some(Best {
            at: self.asked.clone(),
            value,
            log_likelihood,
            gradient,
            information,
        });
        if self.steps < CHOICES_MAX && !self.settles {
            self.choose();
        }
        self.ending = self.make_step();
    }

    fn make_step(&mut self) -> Option<Ending> {
        let best = self.best.as_ref()?;
        if self.settles {
            return Some(Ending::Converged);
        }
        let information = penalised(&best.information, &self.penalty);
        let step = Factor::of(&information).map(|factor| factor.solve(&best.gradient));
        let Some(step) = step.filter(|step| step.iter().all(|part| part.is_finite())) else {
            return Some(Ending::Separated(flat(&information)));
        };
        let tolerances = Tolerances::of(self.precision);
        let gain = dot(&best.gradient, &step);
        let farthest = step.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        if gain < tolerances.flat && farthest > tolerances.moving {
            let moving = (0..step.len()).filter(|column| step[*column].abs() > 0.1 * farthest);
            return Some(Ending::Separated(moving.collect()));
        }
        if self.steps == STEPS_MAX {
            return Some(Ending::StepLimit);
        }
        let share = tolerances.settled * best.log_likelihood.abs();
        self.settles = gain <= share.max(tolerances.settled_at);
        self.asked = &best.at + &step;
        self.step = step;
        (self.share, self.halvings) = (1.0, 0);
        None
    }

    fn penalised(&self, log_likelihood: f64) -> f64 {
        let terms = self.penalty.iter().zip(&self.asked);
        let penalty: f64 = terms.map(|(penalty, at)| penalty * at * at).sum();
        log_likelihood - 0.5 * penalty
    }

    /// What was found among so many patients.
    #[must_use]
    pub fn maximum(&self, patients: u64) -> Maximum {
        let size = self.penalty.len();
        let ending = self.ending.clone().unwrap_or(Ending::StepLimit);
        match &self.best {
            Some(best) => Maximum {
                at: best.at.clone(),
                patients,
                log_likelihood: best.log_likelihood,
                information: best.information.clone(),
                steps: self.steps,
                ending,
            },
            None => Maximum {
                at: Array1::zeros(size),
                patients,
                log_likelihood: f64::NAN,
                information: Array2::from_elem((size, size), f64::NAN),
                steps: 0,
                ending,
            },
        }
    }
}

impl Maximum {
    /// Where its quadratic has its maximum if all but the columns at `places` are held at 0: the coefficients of these, from which
    /// to search for the maximum of the log-likelihood without the others. None where there is no such place.
    #[must_use]
    pub fn restricted(&self, penalty: &Array1<f64>, places: &[usize]) -> Option<Array1<f64>> {
        let curvature = penalised(&self.information, penalty);
        let own = curvature.select(Axis(0), places).select(Axis(1), places);
        let others: Vec<usize> = (0..self.at.len())
            .filter(|place| !places.contains(place))
            .collect();
        let pulled = |row: &usize| -> f64 {
            let others = others.iter();
            others
                .map(|other| curvature[(*row, *other)] * self.at[*other])
                .sum()
        };
        let pulled: Array1<f64> = places.iter().map(pulled).collect();
        let moved = Factor::of(&own)?.solve(&pulled);
        Some(self.at.select(Axis(0), places) + moved)
    }

    /// Log-likelihood, gradient and information of the columns at `places` with coefficients `at`, all others being 0: exactly, where
    /// the log-likelihood is a quadratic.
    #[must_use]
    pub fn quadratic(
        &self,
        penalty: &Array1<f64>,
        places: &[usize],
        at: &Array1<f64>,
    ) -> (f64, Array1<f64>, Array2<f64>) {
        let mut away = -&self.at;
        for (place, coefficient) in places.iter().zip(at) {
            away[*place] += coefficient;
        }
        let curved = |row: usize| -> f64 {
            let products =
                (0..away.len()).map(|other| self.information[(row, other)] * away[other]);
            products.sum()
        };
        // At the maximum of what is penalised the log-likelihood itself still rises, as steeply as the penalty falls.
        let slopes: Array1<f64> = (0..away.len())
            .map(|row| penalty[row] * self.at[row] - 0.5 * curved(row))
            .collect();
        let gradient = |place: &usize| penalty[*place] * self.at[*place] - curved(*place);
        (
            self.log_likelihood + dot(&slopes, &away),
            places.iter().map(gradient).collect(),
            self.information
                .select(Axis(0), places)
                .select(Axis(1), places),
        )
    }

    /// b' V^-1 b of the columns of each of some groups, V being their part of the inverse of the penalised information: Wald's
    /// chi-squared, but for the variance of a linear regression. None of no column, or where there is no inverse.
    #[must_use]
    pub fn wald(&self, penalty: &Array1<f64>, groups: &[Vec<usize>]) -> Vec<Option<f64>> {
        let size = self.at.len();
        let Some(factor) = Factor::of(&penalised(&self.information, penalty)) else {
            return vec![None; groups.len()];
        };
        let inverse = factor.solve_all(&Array2::eye(size));
        let of_group = |group: &Vec<usize>| {
            let own = inverse.select(Axis(0), group).select(Axis(1), group);
            let values = self.at.select(Axis(0), group);
            let solved = Factor::of(&own)?.solve(&values);
            (!group.is_empty()).then(|| dot(&values, &solved))
        };
        groups.iter().map(of_group).collect()
    }
}

/// Columns of which nearly no information is left.
fn flat(information: &Array2<f64>) -> Vec<usize> {
    let diagonal = information.diag();
    let most = diagonal.iter().copied().fold(0.0, f64::max);
    let least = diagonal.iter().copied().fold(f64::INFINITY, f64::min);
    let border = (least * 10.0).max(most * 1e-8);
    (0..diagonal.len())
        .filter(|column| diagonal[*column] <= border)
        .collect()
}
