//! What predicts: a comparison, what was learned by it, and the patients of its training.

use super::super::CasesError;
use super::super::setting::{Asked, Setting};
use super::super::shown;
use super::super::survival::Presentation;
use super::chances::{ByTime, Chances};
use crate::cli::{By, KernelOption, LearnerOption, Predict};
use protocol::job::Job;
use protocol::method::Method;
use protocol::method::forest::settings::Proximity;
use serde::Serialize;
use similarity::cohort::Outcome;
use similarity::compare::Comparison;
use similarity::compare::proximity::kernel::{Definiteness, Kernel};
use similarity::numeric::seed::Seed;
use similarity::uses::prediction::{Cohort, CrossFitted, Forecast, KernelOf, Learner, Machine};

/// Patients that are named as those who weigh most.
const NAMED_MAX: usize = 10;

/// What predicts.
pub(super) struct Model {
    pub(super) job: Job,
    pub(super) by: By,
    pub(super) comparison: Comparison,
    /// Of a forest.
    pub(super) kernel: Proximity,
    pub(super) learner: Learner,
    pub(super) machine: Machine,
    /// Patients that it was learned from.
    pub(super) patients: usize,
    /// Of those with which new patients are compared.
    pub(super) names: Vec<String>,
    /// Of the same.
    pub(super) outcome: Outcome,
    /// Of a survival outcome what makes chances; none where all are alike.
    pub(super) chances: Option<Chances>,
    /// What is to be known before a prediction is believed: how well it went, first.
    pub(super) said: Vec<String>,
}

/// A patient who weighs much in all predictions.
#[derive(Debug, Serialize)]
pub(super) struct Prototype {
    pub(super) patient: String,
    pub(super) outcome: String,
    /// Of the sum of all weights.
    pub(super) share: f64,
}

/// What is predicted of a new patient.
#[derive(Debug, Serialize)]
pub(super) struct OneNew {
    pub(super) patient: String,
    /// In words.
    pub(super) predicted: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) chances: Vec<Chance>,
    /// Of an event by a time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) by_time: Vec<ByTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) high: Option<f64>,
    /// The nearest by the kernel.
    pub(super) nearest: Vec<Near>,
}

#[derive(Debug, Serialize)]
pub(super) struct Chance {
    pub(super) class: String,
    pub(super) chance: f64,
}

/// A patient near to a new one.
#[derive(Debug, Serialize)]
pub(super) struct Near {
    pub(super) patient: String,
    pub(super) outcome: String,
    pub(super) kernel: f64,
    /// Of all that moves the prediction; above 0 towards what is predicted (of a number and a time: upwards).
    pub(super) share: f64,
}

/// What of a forest compares: what is asked for, or the job's; and a remark where that is no kernel.
pub(super) fn kernel_of(
    setting: &Setting,
    asked: Option<KernelOption>,
) -> Result<(Proximity, Option<String>), CasesError> {
    if !matches!(setting.comparison, Comparison::Proximity(_)) {
        return match asked {
            Some(_) => Err(CasesError::NoForest(setting.comparison.name())),
            None => Ok((Proximity::Proximity, None)),
        };
    }
    if let Some(asked) = asked {
        return Ok((asked.into(), None));
    }
    let Method::Forest(settings) = &setting.job.method else {
        return Ok((Proximity::Proximity, None));
    };
    let own = settings.proximity;
    match own.kernel().definiteness() {
        Definiteness::PositiveSemidefinite => Ok((own, None)),
        Definiteness::Indefinite => Ok((
            Proximity::Proximity,
            Some(format!(
                "the job's proximity, {}, is no kernel: proximity over all trees stands for it",
                own.name()
            )),
        )),
    }
}

/// The learner that is asked for, or the outcome's.
pub(super) fn learner_of(arguments: &Predict, setting: &Setting) -> Result<Learner, CasesError> {
    let outcome = setting.cohort.outcome();
    let Some(asked) = arguments.learner else {
        return Ok(Learner::of(outcome));
    };
    let learner = Learner::from(asked);
    if learner.suits(outcome) {
        return Ok(learner);
    }
    let wanted = match learner {
        Learner::Ridge | Learner::Gaussian => "numbers",
        Learner::Logistic => "classes",
        Learner::Survival => "survival times",
    };
    Err(CasesError::Learner {
        learner: name_of(learner),
        wanted,
        outcome: setting.job.cohort.outcome.column.clone(),
    })
}

/// As it is asked for.
pub(super) fn name_of(learner: Learner) -> &'static str {
    match learner {
        Learner::Ridge => "ridge",
        Learner::Gaussian => "gaussian",
        Learner::Logistic => "logistic",
        Learner::Survival => "survival",
    }
}

impl Model {
    /// Learns from all patients; of a survival outcome what machines like it say of those that they have not seen makes chances.
    pub(super) fn learn(
        setting: Setting,
        arguments: &Predict,
        (kernel, learner): (Proximity, Learner),
    ) -> Result<(Self, Option<CrossFitted>), CasesError> {
        let of = KernelOf::new(&setting.comparison, kernel.kernel())?;
        let outcome = setting.cohort.outcome();
        let cohort = Cohort {
            placed: &setting.placed,
            outcome,
        };
        let everybody: Vec<usize> = (0..setting.patients.len()).collect();
        let seed = Seed(arguments.seed);
        let machine = Machine::learn(&of, &cohort, &everybody, learner, seed)?;
        let crossed = match learner {
            Learner::Survival => Some(machine.cross_fitted(&of, &cohort, learner, seed)?),
            Learner::Ridge | Learner::Gaussian | Learner::Logistic => None,
        };
        let names = machine
            .supports
            .iter()
            .map(|row| setting.patients.name(*row));
        let model = Self {
            names: names.collect(),
            outcome: outcome.select(&machine.supports),
            patients: everybody.len(),
            by: arguments.by,
            chances: match (setting.common, &crossed) {
                (Some(common), Some(_)) => Chances::common(common, setting.presentation),
                (None, Some(crossed)) => Chances::of(crossed, setting.presentation),
                (_, None) => None,
            },
            said: Vec::new(),
            job: setting.job,
            comparison: setting.comparison,
            kernel,
            learner,
            machine,
        };
        Ok((model, crossed))
    }

    pub(super) fn kernel(&self) -> Result<KernelOf<'_>, CasesError> {
        Ok(KernelOf::new(&self.comparison, self.kernel.kernel())?)
    }

    /// What the kernel is, in words.
    pub(super) fn kernel_name(&self) -> String {
        match &self.comparison {
            Comparison::Proximity(_) => match self.kernel.kernel() {
                Kernel::Proximity => "forest proximity".to_owned(),
                _ => format!("forest {}", self.kernel.name()),
            },
            other => format!(
                "exp(-d / {}), d the {}",
                shown::short(self.machine.width.sigma),
                match other.is_similarity() {
                    true => "distance that the learned similarity makes",
                    false => other.name(),
                }
            ),
        }
    }

    /// Those with the largest weights.
    pub(super) fn prototypes(&self) -> Vec<Prototype> {
        let weights = self.machine.fitted.weights();
        let sizes: Vec<f64> = weights
            .outer_iter()
            .map(|row| row.iter().map(|one| one.abs()).sum())
            .collect();
        let all: f64 = sizes.iter().sum();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by(|one, other| sizes[*other].total_cmp(&sizes[*one]).then(one.cmp(other)));
        let one = |row: usize| Prototype {
            patient: self.names[row].clone(),
            outcome: shown::outcome(&self.outcome, &self.job.cohort.outcome, row),
            share: sizes[row] / all,
        };
        // Where more weigh the same than are named, none stands out.
        let is_flat = order.len() > NAMED_MAX && sizes[order[0]] == sizes[order[NAMED_MAX]];
        let heavy = order
            .into_iter()
            .filter(|row| sizes[*row] > 0.0 && !is_flat);
        heavy.take(NAMED_MAX).map(one).collect()
    }

    /// Predicts new patients, and tells the `k` nearest of each.
    pub(super) fn predict(&self, asked: &Asked, k: usize) -> Result<Vec<OneNew>, CasesError> {
        let kernel = self.kernel()?;
        let forecast = self.machine.forecast(&kernel, &asked.placed)?;
        let columns = match &self.chances {
            Some(chances) => chances.columns(&asked.columns, &self.job)?,
            None => None,
        };
        let each = asked.names.iter().enumerate();
        each.map(|(query, name)| {
            let columns = columns.as_ref().map(|all| all.row(query).to_vec());
            let mut one = self.row((&forecast, &columns.unwrap_or_default()), query, name);
            let shares = self.machine.shares(&kernel, &asked.placed, query)?;
            let (output, sign) = match &forecast {
                Forecast::Classes(chances) if chances.ncols() == 2 => {
                    (0, if chances[(query, 1)] > 0.5 { 1.0 } else { -1.0 })
                }
                Forecast::Classes(_) => (class_of(&forecast, query), 1.0),
                Forecast::Numbers(_) | Forecast::Times(_) => (0, 1.0),
            };
            let parts = shares.parts.column(output);
            let all: f64 = parts.iter().map(|part| part.abs()).sum();
            let mut order: Vec<usize> = (0..parts.len()).collect();
            let values = &shares.kernel;
            order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
            let near = |row: usize| Near {
                patient: self.names[row].clone(),
                outcome: shown::outcome(&self.outcome, &self.job.cohort.outcome, row),
                kernel: values[row],
                share: if all > 0.0 {
                    sign * parts[row] / all
                } else {
                    0.0
                },
            };
            one.nearest = order.into_iter().take(k).map(near).collect();
            Ok(one)
        })
        .collect()
    }

    fn row(&self, (forecast, columns): (&Forecast, &[f64]), query: usize, name: &str) -> OneNew {
        let mut one = OneNew {
            patient: name.to_owned(),
            predicted: String::new(),
            chances: Vec::new(),
            by_time: Vec::new(),
            value: None,
            low: None,
            high: None,
            nearest: Vec::new(),
        };
        match forecast {
            Forecast::Classes(chances) => {
                let levels = self.levels();
                let row = chances.row(query);
                let class = class_of(forecast, query);
                let label = &self.job.cohort.outcome.label;
                let percent = 100.0 * row[class];
                one.predicted = format!("{label}: {}, chance {percent:.0} %", levels[class]);
                let chance = |(class, chance): (&String, &f64)| Chance {
                    class: class.clone(),
                    chance: *chance,
                };
                one.chances = levels.iter().zip(&row).map(chance).collect();
            }
            Forecast::Numbers(numbers) => {
                let found = numbers[query];
                let outcome = &self.job.cohort.outcome;
                let [low, high] = [found.low, found.high].map(shown::short);
                let mean = shown::in_unit(found.mean, outcome);
                one.predicted = format!("{}: {mean} (95 %: {low} to {high})", outcome.label);
                one.value = Some(found.mean);
                one.low = Some(found.low);
                one.high = Some(found.high);
            }
            Forecast::Times(times) => {
                if let Some(chances) = &self.chances {
                    one.by_time = chances.of_patient(times[query], columns);
                    one.predicted = chances.sentence(&one.by_time);
                } else {
                    let event = self.job.cohort.outcome.event_label();
                    one.predicted = format!("{event}: no chance can be given");
                }
            }
        }
        one
    }

    /// The outcome, and the times by which chances are given; none of another outcome.
    pub(super) fn presentation(&self) -> Option<&Presentation> {
        self.chances.as_ref().map(|chances| &chances.presentation)
    }

    /// Gives chances by these times; what cannot be given is said.
    pub(super) fn at(&mut self, times: &[f64]) -> Result<Option<String>, CasesError> {
        match &mut self.chances {
            Some(chances) => chances.at(times),
            None if times.is_empty() => Ok(None),
            None => Err(CasesError::NoTime(self.job.cohort.outcome.label.clone())),
        }
    }

    /// Of the outcome; none where it has no classes.
    pub(super) fn levels(&self) -> &[String] {
        match &self.outcome {
            Outcome::Classes { levels, .. } => levels,
            Outcome::Numeric(_) | Outcome::Survival { .. } => &[],
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a code of a class
fn class_of(forecast: &Forecast, query: usize) -> usize {
    let code = forecast.select(&[query]).values()[0];
    if code.is_nan() { 0 } else { code as usize }
}

impl From<KernelOption> for Proximity {
    fn from(option: KernelOption) -> Self {
        match option {
            KernelOption::Proximity => Self::Proximity,
            KernelOption::OutOfBag => Self::OutOfBag,
            KernelOption::Gap => Self::Gap,
            KernelOption::Kerf => Self::Kerf,
            KernelOption::Depth => Self::Depth,
            KernelOption::Path => Self::Path,
        }
    }
}

impl From<LearnerOption> for Learner {
    fn from(option: LearnerOption) -> Self {
        match option {
            LearnerOption::Ridge => Self::Ridge,
            LearnerOption::Logistic => Self::Logistic,
            LearnerOption::Gaussian => Self::Gaussian,
            LearnerOption::Survival => Self::Survival,
        }
    }
}
