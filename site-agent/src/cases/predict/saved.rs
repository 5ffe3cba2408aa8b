//! What `--save` keeps: all that a prediction needs, without run and source.
//!
//! | line | holds |
//! | --- | --- |
//! | 1 | JSON: `format`, `version`, `digest`, SHA-256 of all that follows |
//! | 2 | JSON: the job, what compares, the kernel, what was learned, and the patients who are compared with: identifier, outcome, coordinates |
//!
//! Numbers of patients are 64 bits, least byte first, in base 64. It holds patients' values and is its owner's alone.

mod compared;
mod numbers;
mod risk;

use super::super::CasesError;
use super::super::setting::Asked;
use super::model::{Model, name_of};
use crate::books::chain;
use crate::cli::Predict;
use crate::config::{SiteConfig, SourceConfig};
use crate::source::{self, Queries};
use compared::Compared;
use ndarray::Array1;
use numbers::{Matrix, Places};
use protocol::job::Job;
use protocol::method::forest::settings::Proximity;
use risk::SavedChances;
use serde::{Deserialize, Serialize};
use similarity::cohort::{Outcome, take_logarithms};
use similarity::compare::{Comparison, Placed};
use similarity::learn::kernel::gaussian::Gaussian;
use similarity::learn::kernel::landmarks::LandmarkGaussian;
use similarity::learn::kernel::logistic::Logistic;
use similarity::learn::kernel::survival::SurvivalMachine;
use similarity::uses::prediction::{
    AtEnd, Basis, Fitted, KernelOf, Learner, Machine, TimeScale, Width,
};
use std::fs;
use std::path::Path;

/// What the first line says.
const FORMAT: &str = "kindred prediction";
/// The version that is written and read.
const VERSION: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    job: String,
    /// Features, in the order of the job.
    columns: Vec<String>,
    compared: Compared,
    /// Of a forest.
    kernel: String,
    learner: String,
    patients: usize,
    names: Vec<String>,
    outcome: SavedOutcome,
    places: Places,
    sigma: f64,
    /// None of a forest.
    farthest: Option<f64>,
    penalty: f64,
    lifted: f64,
    basis: SavedBasis,
    fitted: SavedFit,
    /// Of a survival outcome.
    chances: Option<SavedChances>,
    said: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SavedBasis {
    Everybody,
    Landmarks,
    Drawn,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SavedOutcome {
    Classes {
        codes: Vec<u32>,
        levels: Vec<String>,
    },
    Numbers(Matrix),
    Times {
        time: Matrix,
        event: Vec<bool>,
    },
}

/// Of a number on all patients the fit is made again, bit for bit; its factor would be the largest part of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SavedFit {
    Number,
    Landmarks {
        weights: Matrix,
        known: Matrix,
        constant: f64,
        scale: f64,
    },
    Classes {
        weights: Matrix,
        constants: Vec<f64>,
    },
    Time {
        weights: Matrix,
        constant: f64,
        primal: f64,
        dual: f64,
        steps: usize,
        is_logarithm: bool,
        mean: f64,
        deviation: f64,
    },
}

/// Writes what predicts: beside, then renamed.
pub(super) fn write(model: &Model, file: &Path) -> Result<(), CasesError> {
    let fault = |source: std::io::Error| CasesError::Write {
        path: file.to_owned(),
        source,
    };
    let machine = &model.machine;
    let saved = Saved {
        job: model.job.text.clone(),
        columns: model.comparison.features().to_vec(),
        compared: Compared::of(model),
        kernel: model.kernel.name().to_owned(),
        learner: name_of(model.learner).to_owned(),
        patients: model.patients,
        names: model.names.clone(),
        outcome: SavedOutcome::of(&model.outcome),
        places: Places::of(&machine.placed),
        sigma: machine.width.sigma,
        farthest: Some(machine.width.farthest).filter(|farthest| farthest.is_finite()),
        penalty: machine.penalty,
        lifted: machine.lifted,
        basis: match machine.basis {
            Basis::Everybody => SavedBasis::Everybody,
            Basis::Landmarks => SavedBasis::Landmarks,
            Basis::Drawn => SavedBasis::Drawn,
        },
        fitted: SavedFit::of(&machine.fitted),
        chances: model.chances.as_ref().map(SavedChances::of),
        said: model.said.clone(),
    };
    let text = |error: serde_json::Error| fault(std::io::Error::other(error));
    let body = serde_json::to_vec(&saved).map_err(text)?;
    let head = Head {
        format: FORMAT.to_owned(),
        version: VERSION,
        digest: chain::digest_of(std::iter::once(body.as_slice())),
    };
    let mut bytes = serde_json::to_vec(&head).map_err(text)?;
    bytes.push(b'\n');
    bytes.extend(body);
    wire::private::replace(file, &bytes).map_err(fault)
}

/// Reads what [`write`] wrote.
pub(super) fn open(file: &Path) -> Result<Model, CasesError> {
    let fault = |why: String| CasesError::Record {
        path: file.to_owned(),
        why,
    };
    let bytes = fs::read(file).map_err(|error| fault(error.to_string()))?;
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let (head, body) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let head: Head = serde_json::from_slice(head)
        .ok()
        .filter(|head: &Head| head.format == FORMAT)
        .ok_or_else(|| fault(format!("its first line is not that of a {FORMAT}")))?;
    if head.version != VERSION {
        let found = head.version;
        return Err(fault(format!("found version {found}, wanted {VERSION}")));
    }
    if head.digest != chain::digest_of(std::iter::once(body)) {
        return Err(fault(
            "its digest is not that of what it holds: it was changed or cut off".to_owned(),
        ));
    }
    let saved: Saved = serde_json::from_slice(body).map_err(|error| fault(error.to_string()))?;
    saved.model().map_err(fault)
}

impl Saved {
    /// Its columns, where they are those of its job.
    fn features(&self, job: &Job) -> Result<Vec<String>, String> {
        let features = job.cohort.features.iter();
        let wanted: Vec<String> = features.map(|one| one.name.clone()).collect();
        if self.columns == wanted {
            return Ok(wanted);
        }
        let (found, wanted) = (self.columns.join(", "), wanted.join(", "));
        Err(format!(
            "found columns {found}, wanted those of its job, {wanted}"
        ))
    }

    fn model(self) -> Result<Model, String> {
        let job = Job::parse_for_one(&self.job).map_err(|problems| problems.to_string())?;
        let names = self.features(&job)?;
        let (comparison, by) = self.compared.made(&names)?;
        let kernel = Proximity::named(&self.kernel).ok_or("it names no kernel")?;
        let learner = [
            Learner::Ridge,
            Learner::Gaussian,
            Learner::Logistic,
            Learner::Survival,
        ];
        let learner = learner
            .into_iter()
            .find(|one| name_of(*one) == self.learner);
        let learner = learner.ok_or("it names no learner")?;
        let placed = self.places.made().ok_or("coordinates of another shape")?;
        let outcome = self.outcome.made().ok_or("outcomes of another shape")?;
        let count = self.names.len();
        if placed.patients() != count || outcome.patients() != count {
            return Err(format!("found {count} names, wanted one for each patient"));
        }
        if !compared::fits(&comparison, &placed) {
            return Err("its patients are placed by another comparison".to_owned());
        }
        let width = Width {
            sigma: self.sigma,
            farthest: self.farthest.unwrap_or(f64::NAN),
        };
        let fitted = match self.fitted {
            SavedFit::Number => {
                let of = (&comparison, kernel);
                refitted(of, &placed, &outcome, width, self.penalty + self.lifted)?
            }
            other => other.made(self.penalty).ok_or("weights of another shape")?,
        };
        if fitted.weights().nrows() != count {
            return Err("weights of other patients".to_owned());
        }
        let chances = self.chances.map(|chances| chances.made(&job));
        let chances = match chances {
            Some(made) => Some(made.ok_or("chances of another shape")?),
            None => None,
        };
        Ok(Model {
            chances,
            job,
            by,
            comparison,
            kernel,
            learner,
            machine: Machine {
                width,
                penalty: self.penalty,
                // What is to be known of it was said, and is in `said`.
                at_end: AtEnd::default(),
                supports: (0..count).collect(),
                placed,
                basis: self.basis.into(),
                lifted: self.lifted,
                fitted,
            },
            patients: self.patients,
            names: self.names,
            outcome,
            said: self.said,
        })
    }
}

/// A number on all patients, learned again.
fn refitted(
    (comparison, kernel): (&Comparison, Proximity),
    placed: &Placed,
    outcome: &Outcome,
    width: Width,
    noise: f64,
) -> Result<Fitted, String> {
    let Outcome::Numeric(values) = outcome else {
        return Err("its outcome is not a number".to_owned());
    };
    let matrix = KernelOf::new(comparison, kernel.kernel())
        .and_then(|of| of.cross(placed, placed, width))
        .map_err(|error| error.to_string())?;
    let fit = Gaussian::fit(&matrix, values, noise);
    Ok(Fitted::Number(fit.map_err(|error| error.to_string())?))
}

impl From<SavedBasis> for Basis {
    fn from(basis: SavedBasis) -> Self {
        match basis {
            SavedBasis::Everybody => Self::Everybody,
            SavedBasis::Landmarks => Self::Landmarks,
            SavedBasis::Drawn => Self::Drawn,
        }
    }
}

impl SavedOutcome {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Classes { codes, levels } => Self::Classes {
                codes: codes.to_vec(),
                levels: levels.clone(),
            },
            Outcome::Numeric(values) => Self::Numbers(Matrix::of_column(values)),
            Outcome::Survival { time, event } => Self::Times {
                time: Matrix::of_column(time),
                event: event.to_vec(),
            },
        }
    }

    fn made(self) -> Option<Outcome> {
        Some(match self {
            Self::Classes { codes, levels } => {
                let most = u32::try_from(levels.len()).ok()?;
                if codes.iter().any(|code| *code >= most) {
                    return None;
                }
                Outcome::Classes {
                    codes: Array1::from(codes),
                    levels,
                }
            }
            Self::Numbers(values) => Outcome::Numeric(values.column()?),
            Self::Times { time, event } => Outcome::Survival {
                time: time.column().filter(|time| time.len() == event.len())?,
                event: Array1::from(event),
            },
        })
    }
}

impl SavedFit {
    fn of(fitted: &Fitted) -> Self {
        let weights = Matrix::of(&fitted.weights());
        match fitted {
            Fitted::Number(_) => Self::Number,
            Fitted::NumberByLandmarks(fit) => Self::Landmarks {
                weights,
                known: Matrix::of(&fit.known),
                constant: fit.constant,
                scale: fit.scale,
            },
            Fitted::Classes(fits) => Self::Classes {
                weights,
                constants: fits.iter().map(|fit| fit.constant).collect(),
            },
            Fitted::Time(machine, scale) => Self::Time {
                weights,
                constant: machine.constant,
                primal: machine.primal,
                dual: machine.dual,
                steps: machine.steps,
                is_logarithm: scale.is_logarithm,
                mean: scale.mean,
                deviation: scale.deviation,
            },
        }
    }

    /// None of a number on all patients, and where shapes do not fit.
    fn made(self, penalty: f64) -> Option<Fitted> {
        Some(match self {
            Self::Number => return None,
            Self::Landmarks {
                weights,
                known,
                constant,
                scale,
            } => {
                let (weights, known) = (weights.column()?, known.matrix()?);
                (known.dim() == (weights.len(), weights.len())).then_some(())?;
                Fitted::NumberByLandmarks(LandmarkGaussian {
                    weights,
                    constant,
                    scale,
                    noise: penalty,
                    known,
                })
            }
            Self::Classes { weights, constants } => {
                let weights = weights.matrix()?;
                (weights.ncols() == constants.len()).then_some(())?;
                let columns = weights.columns().into_iter().zip(constants);
                let one = |(weights, constant): (ndarray::ArrayView1<'_, f64>, f64)| Logistic {
                    weights: weights.to_owned(),
                    constant,
                };
                Fitted::Classes(columns.map(one).collect())
            }
            Self::Time {
                weights,
                constant,
                primal,
                dual,
                steps,
                is_logarithm,
                mean,
                deviation,
            } => {
                let machine = SurvivalMachine {
                    weights: weights.column()?,
                    constant,
                    primal,
                    dual,
                    steps,
                };
                let scale = TimeScale {
                    is_logarithm,
                    mean,
                    deviation,
                };
                Fitted::Time(machine, scale)
            }
        })
    }
}

impl Model {
    /// Patients of a file with the columns of the job, or of the site's source.
    pub(super) fn read(&self, arguments: &Predict) -> Result<Asked, CasesError> {
        let file = arguments.new.clone().unwrap_or_default();
        let asked = &arguments.cohort;
        // A saved model needs no source: the configuration counts where it is named.
        let config = asked.config.as_deref().map(SiteConfig::open).transpose()?;
        let source = match config {
            Some(config) => config.source.with_file(&file),
            None => SourceConfig::of_file(&file, asked.id.clone()),
        };
        let read = source::read_queries(&source, &self.job).map_err(CasesError::Data)?;
        let Queries { columns, patients } = read;
        let mut compared = columns.clone();
        take_logarithms(&mut compared, &self.job.cohort.logarithms())?;
        Ok(Asked {
            names: (0..patients.len()).map(|row| patients.name(row)).collect(),
            own: vec![None; patients.len()],
            placed: self.comparison.place(&compared)?,
            columns,
        })
    }
}
