//! The study of Feng and Baumgartner (2020), "Random Forest (RF) Kernel for Regression, Classification and Survival": a forest, its
//! proximity as a kernel, and Laplace's kernel, as they have them, beside a kernel of ours.
//!
//! Every split that was judged is a line of `study.csv` at once: a study that was cut off goes on where it was.

mod figures;
mod paper;
mod predicting;
mod real;
mod record;
mod setting;
mod tables;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use similarity::numeric::seed::Seed;

pub use setting::{Function, Kind};

use crate::output::{Sheet, write_files};
use crate::progress::Progress;
use crate::{ExperimentError, study::record::Record};
use predicting::{METHODS, scores};
use real::Real;

/// What is run, and how often.
#[derive(Debug, Clone)]
pub struct StudySettings {
    /// Functions of made-up patients.
    pub functions: Vec<Function>,
    /// Outcomes.
    pub kinds: Vec<Kind>,
    /// Patients and features of made-up data sets.
    pub sizes: Vec<[usize; 2]>,
    /// Folder with california_housing.csv.gz, gbsg2.csv and iris.csv, where the real data are asked for.
    pub data: Option<PathBuf>,
    /// Data sets, or splits of real data, of each setting.
    pub repeats: u64,
    /// Of all that is drawn.
    pub seed: Seed,
}

impl Default for StudySettings {
    /// The paper's five functions, three outcomes and four sizes, 20 data sets each; no real data.
    fn default() -> Self {
        Self {
            functions: Function::USUAL.to_vec(),
            kinds: Kind::ALL.to_vec(),
            sizes: paper::SIZES.to_vec(),
            data: None,
            repeats: 20,
            seed: Seed(1),
        }
    }
}

/// One line of a table: what is drawn `repeats` times.
pub(crate) struct Setting {
    /// The name of the function or of the real data.
    name: &'static str,
    source: Source,
    kind: Kind,
    /// Patients and features.
    size: [usize; 2],
}

/// Where a setting's patients come from.
enum Source {
    Made(Function),
    Real(Real),
}

/// What a split gave, in the order of [`METHODS`].
pub(crate) type Scores = [f64; METHODS.len()];

/// Runs what `folder` does not have yet, and writes `study.csv`, `study.md` and the figures there. Gives the tables.
///
/// # Errors
/// [`ExperimentError`].
pub fn study(settings: &StudySettings, folder: &Path) -> Result<Vec<Sheet>, ExperimentError> {
    let mut work: Vec<Setting> = made(settings).collect();
    let mut files = Vec::new();
    if let Some(data) = &settings.data {
        work.extend(read(data, &settings.kinds)?);
        files.push(("iris.svg".to_owned(), figures::irises(data, settings.seed)?));
    }
    let mut record = Record::open(folder, settings.seed)?;
    for setting in &work {
        run(setting, settings, &mut record)?;
    }
    let sheets = tables::sheets(&work, settings.repeats, &record);
    files.extend(figures::boxes(&work, settings.repeats, &record)?);
    let page: Vec<String> = sheets.iter().map(Sheet::markdown).collect();
    files.push(("study.md".to_owned(), page.join("\n")));
    let named: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    write_files(folder, &named)?;
    Ok(sheets)
}

fn made(settings: &StudySettings) -> impl Iterator<Item = Setting> {
    settings.kinds.iter().flat_map(move |kind| {
        settings.functions.iter().flat_map(move |function| {
            settings.sizes.iter().map(move |size| Setting {
                name: function.name(),
                source: Source::Made(*function),
                kind: *kind,
                size: *size,
            })
        })
    })
}

/// The real data of the kinds that are asked for.
fn read(folder: &Path, kinds: &[Kind]) -> Result<Vec<Setting>, ExperimentError> {
    let of_kind = |kind: &Kind| {
        let (name, real) = match kind {
            Kind::Number | Kind::Class => ("California", Real::houses(folder, *kind)?),
            Kind::Survival => ("GBSG2", Real::gbsg2(folder)?),
        };
        Ok(Setting {
            name,
            kind: *kind,
            size: real.size(),
            source: Source::Real(real),
        })
    };
    kinds.iter().map(of_kind).collect()
}

/// Judges the splits that the record does not have.
fn run(
    setting: &Setting,
    settings: &StudySettings,
    record: &mut Record,
) -> Result<(), ExperimentError> {
    let open: Vec<u64> = (0..settings.repeats)
        .filter(|repeat| record.of(setting, *repeat).is_none())
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let [patients, features] = setting.size;
    let kind = setting.kind.name();
    let what = format!("{}, {kind}, {patients} x {features}", setting.name);
    let progress = Progress::begin(&what, open.len());
    let judged = |repeat: u64| {
        let split = match &setting.source {
            Source::Real(real) => real.split(settings.seed, repeat),
            Source::Made(function) => {
                setting::drawn(*function, setting.kind, setting.size, settings.seed, repeat)
            }
        };
        let of_repeat = Seed(settings.seed.0.wrapping_mul(1000).wrapping_add(repeat));
        let found = scores(&split, of_repeat)?;
        progress.step();
        Ok::<_, ExperimentError>((repeat, found))
    };
    // A few at a time, so that what is cut off loses little.
    for some in open.chunks(rayon::current_num_threads()) {
        let found: Result<Vec<_>, ExperimentError> =
            some.par_iter().map(|repeat| judged(*repeat)).collect();
        for (repeat, scores) in found? {
            record.add(setting, repeat, scores);
        }
        record.write()?;
    }
    Ok(())
}
