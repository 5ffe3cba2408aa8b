//! `predict`: what happens to a patient by those who are alike, how well that goes with patients who were held out, and which patients it
//! rests on.

mod bedside;
mod chances;
mod judged;
mod model;
mod page;
mod saved;
mod text;

use super::setting::{Asked, Setting};
use super::shown;
use super::{CasesError, keep, printed};
use crate::cli::{By, Patients, Predict, Where};
pub(super) use bedside::Prediction;
use chances::{HeldChances, OneThird, thirds};
use judged::Judged;
use model::{Model, OneNew, Prototype};
use report::Part;
use serde::Serialize;
use similarity::compare::{Comparison, Placed};
use similarity::numeric::seed::Seed;
use similarity::uses::prediction::{
    Basis, Cohort, EXACT_PATIENTS_MAX, Fitted, HeldOut, KernelOf, held_out,
};
use std::path::Path;
use std::sync::OnceLock;

/// What is shown.
#[derive(Debug, Serialize)]
struct Answer {
    /// What is predicted.
    outcome: String,
    /// What the distance is.
    comparison: &'static str,
    kernel: String,
    learner: &'static str,
    /// Patients that were learned from.
    patients: usize,
    remarks: Vec<String>,
    /// The answer in a sentence.
    sentence: String,
    /// How well it goes; none of a model that was saved.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    judged: Option<Judged>,
    machine: OneMachine,
    /// Of a survival outcome what was predicted of held-out patients, and what happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calibration: Vec<OneThird>,
    /// Who weighs most; nobody where many weigh the same.
    prototypes: Vec<Prototype>,
    /// New patients, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    new: Vec<OneNew>,
    #[serde(skip)]
    title: String,
}

#[derive(Debug, Serialize)]
struct OneMachine {
    /// lambda, the noise, or C.
    penalty: f64,
    /// Of exp(-d / sigma).
    #[serde(skip_serializing_if = "Option::is_none")]
    sigma: Option<f64>,
    /// Patients that new ones are compared with.
    supports: usize,
    /// How far a survival machine is from the best at most, as a share of what it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    duality_gap: Option<f64>,
    /// What the diagonal of the kernel was lifted by.
    #[serde(skip_serializing_if = "is_nothing")]
    lifted: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_nothing(number: &f64) -> bool {
    *number == 0.0
}

/// Predicts, writes the files that are asked for, and gives what is to be printed.
///
/// # Errors
/// [`CasesError`].
pub fn predict(arguments: &Predict) -> Result<String, CasesError> {
    match &arguments.model {
        Some(file) => by_model(arguments, file),
        None => by_run(arguments),
    }
}

/// By what was saved.
fn by_model(arguments: &Predict, file: &Path) -> Result<String, CasesError> {
    let mut model = saved::open(file)?;
    let said = model.at(&arguments.at)?;
    model.said.extend(said);
    let asked = model.read(arguments)?;
    let new = model.predict(&asked, arguments.k)?;
    let answer = answer(&model, None, new);
    let csv = || text::new_csv(&answer, &model.job.cohort.outcome);
    printed(&arguments.output, &answer, csv, || {
        text::whole(&answer, model.presentation())
    })
}

/// What predicts, and how well that goes with patients who were held out.
pub(super) struct Learned {
    model: Model,
    judged: Judged,
    held: HeldOut,
    /// Names of the patients who were held out.
    names: Vec<String>,
    /// Their chances, of a survival outcome.
    by_time: Vec<HeldChances>,
    /// How well it goes as parts of a page, once they were drawn.
    drawn: OnceLock<Vec<Part>>,
}

impl Learned {
    /// From all patients of the setting, each held out once before.
    pub(super) fn new(setting: Setting, arguments: &Predict) -> Result<Self, CasesError> {
        let learner = model::learner_of(arguments, &setting)?;
        let (kernel, replaced) = model::kernel_of(&setting, arguments.kernel)?;
        check_count(arguments, setting.patients.len())?;
        let of = KernelOf::new(&setting.comparison, kernel.kernel())?;
        let cohort = Cohort {
            placed: &setting.placed,
            outcome: setting.cohort.outcome(),
        };
        let (folds, k) = (arguments.folds as usize, arguments.k);
        let held = held_out(&of, &cohort, learner, (folds, k), Seed(arguments.seed))?;
        let seen = seen(arguments.by, &setting);
        let specification = &setting.job.cohort.outcome;
        let judged = Judged::of(&held, (folds, k), (specification, seen.is_some()))?;
        let names = held.rows.iter().map(|row| setting.patients.name(*row));
        let names = names.collect();
        let mut remarks = vec![judged.said(held.rows.len(), setting.patients.len())];
        remarks.extend(setting.remarks.iter().cloned());
        remarks.extend(replaced);
        remarks.extend(seen);
        let (mut model, crossed) = Model::learn(setting, arguments, (kernel, learner))?;
        remarks.extend(model.at(&arguments.at)?);
        let by_time = match (&model.chances, &crossed) {
            (Some(chances), Some(crossed)) => {
                remarks.push(chances.meaning().to_owned());
                chances.held_out(crossed)
            }
            _ => Vec::new(),
        };
        remarks.extend(of_machine(&model));
        let sentence = std::iter::once(judged.sentence.clone());
        model.said = sentence.chain(remarks).collect();
        Ok(Self {
            model,
            judged,
            held,
            names,
            by_time,
            drawn: OnceLock::new(),
        })
    }

    /// What it says of these patients, and how well it goes.
    fn answer(&self, asked: Option<&Asked>, k: usize) -> Result<Answer, CasesError> {
        let known = asked.iter().flat_map(|asked| &asked.own).flatten().count();
        let new = asked.map(|asked| self.model.predict(asked, k));
        let new = new.transpose()?.unwrap_or_default();
        let mut answer = answer(&self.model, Some(self.judged.clone()), new);
        answer.calibration = thirds(&self.held.outcome, &self.by_time);
        if known > 0 {
            answer.remarks.push(match known {
                1 => "a new patient is of the cohort: its prediction has seen its outcome".to_owned(),
                many => format!(
                    "{many} of the new patients are of the cohort: what is predicted of them has seen their outcomes"
                ),
            });
        }
        Ok(answer)
    }
}

fn by_run(arguments: &Predict) -> Result<String, CasesError> {
    let setting = Setting::open(&place(arguments))?;
    let asked = arguments.new.as_deref().map(|file| setting.read(file));
    let asked: Option<Asked> = asked.transpose()?;
    let learned = Learned::new(setting, arguments)?;
    let (model, held) = (&learned.model, &learned.held);
    if let Some(file) = &arguments.save {
        saved::write(model, file)?;
    }
    let answer = learned.answer(asked.as_ref(), arguments.k)?;
    if let Some(folder) = &arguments.out {
        keep(folder, page::all(held, &answer, model)?)?;
    }
    let csv = || match &arguments.new {
        Some(_) => text::new_csv(&answer, &model.job.cohort.outcome),
        None => {
            let outcome = (&model.job.cohort.outcome, learned.by_time.as_slice());
            text::held_out_csv(held, &learned.names, outcome)
        }
    };
    printed(&arguments.output, &answer, csv, || {
        text::whole(&answer, model.presentation())
    })
}

fn place(arguments: &Predict) -> Where {
    Where {
        of: Patients {
            run: arguments.run.clone().unwrap_or_default(),
            cohort: arguments.cohort.clone(),
        },
        by: arguments.by,
        ridge: arguments.ridge,
    }
}

fn check_count(arguments: &Predict, patients: usize) -> Result<(), CasesError> {
    let folds = arguments.folds as usize;
    if patients < 2 * folds {
        return Err(CasesError::FewPatients {
            found: patients,
            wanted: 2 * folds,
        });
    }
    let most = patients - patients.div_ceil(folds);
    if arguments.k == 0 || arguments.k > most {
        return Err(CasesError::TooMany {
            found: arguments.k,
            most,
        });
    }
    Ok(())
}

fn answer(model: &Model, judged: Option<Judged>, new: Vec<OneNew>) -> Answer {
    let machine = &model.machine;
    let mut said = model.said.iter().cloned();
    let sentence = said.next().unwrap_or_default();
    Answer {
        outcome: model.job.cohort.outcome.label_with_unit(),
        comparison: model.comparison.name(),
        kernel: model.kernel_name(),
        learner: model::name_of(model.learner),
        patients: model.patients,
        remarks: said.collect(),
        sentence: match judged {
            Some(_) => sentence,
            None => format!("When this was saved: {sentence}"),
        },
        judged,
        machine: OneMachine {
            penalty: machine.penalty,
            sigma: match model.comparison {
                Comparison::Proximity(_) => None,
                _ => Some(machine.width.sigma),
            },
            supports: model.names.len(),
            duality_gap: match &machine.fitted {
                Fitted::Time(machine, _) => Some(machine.gap()),
                _ => None,
            },
            lifted: machine.lifted,
        },
        calibration: Vec::new(),
        prototypes: model.prototypes(),
        new,
        title: format!("{}: prediction from similar patients", model.job.name),
    }
}

/// Whether what compares has seen the outcomes of those who are held out.
fn seen(by: By, setting: &Setting) -> Option<String> {
    match (&setting.comparison, &setting.placed) {
        // A held-out patient is compared by trees that have not seen it, and all others by all trees, as for a new patient.
        (Comparison::Proximity(_), Placed::Nodes { bags: Some(_), .. }) => None,
        (Comparison::Proximity(_), _) => Some(
            "the forest may have seen these patients: all figures may be optimistic".to_owned(),
        ),
        _ => match by {
            By::Run | By::Personal | By::Regression | By::Anchored => Some(
                "the distance was learned from these patients' outcomes, so the figures say nothing about new patients; \
                 Euclidean distance (`--by euclidean`) has not seen them"
                    .to_owned(),
            ),
            By::Euclidean | By::Manhattan | By::Cosine | By::Mahalanobis | By::Gower => None,
        },
    }
}

/// What is to be known of how it was learned.
fn of_machine(model: &Model) -> Vec<String> {
    let mut said = Vec::new();
    let (machine, patients) = (&model.machine, model.patients);
    match machine.basis {
        Basis::Everybody => {}
        Basis::Landmarks => said.push(format!(
            "of more than {EXACT_PATIENTS_MAX} patients the kernel with {} landmarks, drawn by the seed, stands for that of all pairs; \
             who weighs most and who is near are among them",
            machine.supports.len()
        )),
        Basis::Drawn => said.push(format!(
            "a survival machine learns from {} of the {patients} patients, drawn by the seed",
            machine.supports.len()
        )),
    }
    let ends = [
        (machine.at_end.width, "width of the kernel"),
        (machine.at_end.penalty, "penalty"),
    ];
    for (_, setting) in ends.iter().filter(|(is_at_end, _)| *is_at_end) {
        said.push(format!(
            "the {setting} is the best and the last of those that were tried: one beyond it might serve a little better"
        ));
    }
    if machine.lifted > 0.0 {
        said.push(format!(
            "where values are missing this distance makes no kernel: its diagonal was lifted by {} of 1 until it was one",
            shown::short(machine.lifted)
        ));
    }
    said
}
