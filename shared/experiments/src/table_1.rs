//! Table 1: k-nearest-neighbour classification on three public data sets.

use std::path::Path;

use rand::RngExt;
use rayon::prelude::*;
use similarity::judge::votes::BinaryCounts;
use similarity::numeric::seed::Seed;

use crate::methods::{Answer, Method};
use crate::output::Sheet;
use crate::progress::Progress;
use crate::scores::{COLUMNS, Repeated, Scores, scores};
use crate::task::{Task, by_row, by_subject, colon_arrays, leaving_out, leukaemia_task};
use crate::{ExperimentError, paper, sources};

/// One of the paper's data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSet {
    /// Parkinson's voice recordings.
    Parkinsons,
    /// Colon tissue.
    Colon,
    /// Leukaemia.
    Leukaemia,
}

/// What is run, and how often.
#[derive(Debug, Clone)]
pub struct Table1Settings {
    /// In this order.
    pub data_sets: Vec<DataSet>,
    /// Random splits of Parkinson's, of each kind.
    pub repeats: u64,
    /// Colon samples that are held out in turn; all where there are fewer.
    pub left_out: usize,
    /// Rows of the tables.
    pub methods: Vec<Method>,
    /// Of splits, folds, starts and drawn pairs.
    pub seed: Seed,
}

impl Default for Table1Settings {
    /// All three data sets, 10 splits of each kind, every colon sample.
    fn default() -> Self {
        Self {
            data_sets: vec![DataSet::Parkinsons, DataSet::Colon, DataSet::Leukaemia],
            repeats: 10,
            left_out: usize::MAX,
            methods: Method::ALL.to_vec(),
            seed: Seed(1),
        }
    }
}

/// Table 1 from the data in `folder`.
///
/// # Errors
/// [`ExperimentError`].
pub fn table_1(folder: &Path, settings: &Table1Settings) -> Result<Vec<Sheet>, ExperimentError> {
    let mut sheets = Vec::new();
    for set in &settings.data_sets {
        match set {
            DataSet::Parkinsons => sheets.extend(parkinsons(folder, settings)?),
            DataSet::Colon => sheets.push(colon(folder, settings)?),
            DataSet::Leukaemia => sheets.push(leukaemia(folder, settings)?),
        }
    }
    Ok(sheets)
}

fn parkinsons(folder: &Path, settings: &Table1Settings) -> Result<[Sheet; 2], ExperimentError> {
    let patients = sources::parkinsons(folder)?;
    let seeds: Vec<Seed> = (0..settings.repeats)
        .map(|repeat| repeat_seed(settings.seed, repeat))
        .collect();
    let tasks = seeds.iter().map(|seed| by_row(&patients, *seed)).collect();
    let rows = Experiment {
        title: "Parkinson's, random rows",
        notes: vec![
            format!(
                "{} random splits of 98 training and 97 test recordings; mean (standard deviation).",
                settings.repeats
            ),
            "Recordings of one person lie on both sides, as in the paper: this flatters every method."
                .to_owned(),
        ],
        set: DataSet::Parkinsons,
        tasks,
        together: false,
    };
    let tasks: Result<Vec<Task>, ExperimentError> = seeds
        .iter()
        .map(|seed| Ok(by_subject(&patients, *seed)?))
        .collect();
    let subjects = Experiment {
        title: "Parkinson's, by subject",
        notes: vec![format!(
            "{} random halves of the subjects of each class, folds by subject, too; mean (standard \
             deviation). The paper has no such split; its numbers are those of random rows.",
            settings.repeats
        )],
        set: DataSet::Parkinsons,
        tasks: tasks?,
        together: false,
    };
    Ok([rows.run(settings)?, subjects.run(settings)?])
}

fn colon(folder: &Path, settings: &Table1Settings) -> Result<Sheet, ExperimentError> {
    let patients = colon_arrays(sources::colon(folder)?);
    let rows = 0..patients.classes.len().min(settings.left_out);
    Experiment {
        title: "Colon, leave one out",
        notes: vec![
            format!(
                "{} samples held out in turn, hyperparameters chosen anew for each from the others.",
                rows.len()
            ),
            "log10, each array to mean 0 and deviation 1, then each gene by the training samples."
                .to_owned(),
            GENES.to_owned(),
            "The paper's own recall and F1 for UnPSL imply an accuracy of 0.87, not its 0.8226."
                .to_owned(),
        ],
        set: DataSet::Colon,
        tasks: rows.map(|row| leaving_out(&patients, row)).collect(),
        together: true,
    }
    .run(settings)
}

fn leukaemia(folder: &Path, settings: &Table1Settings) -> Result<Sheet, ExperimentError> {
    let task = leukaemia_task(&sources::leukaemia(folder)?);
    Experiment {
        title: "Leukaemia, given split",
        notes: vec![
            format!(
                "38 training and 34 test patients, {} genes kept by the training ones; positive is ALL, \
                 as the paper's counts imply.",
                task.training.ncols()
            ),
            "Floor 100, ceiling 16,000, log10, each array to mean 0 and deviation 1, then each gene."
                .to_owned(),
            GENES.to_owned(),
        ],
        set: DataSet::Leukaemia,
        tasks: vec![task],
        together: true,
    }
    .run(settings)
}

const GENES: &str = "UnPSL learns over all genes, starting from the 256 that are strongest alone. The baselines learn \
                     in the row space of the training samples, which keeps Euclidean neighbours.";

/// One sheet in the making.
struct Experiment {
    title: &'static str,
    notes: Vec<String>,
    set: DataSet,
    tasks: Vec<Task>,
    /// Whether the counts of all tasks make one score, or each task its own.
    together: bool,
}

impl Experiment {
    fn run(self, settings: &Table1Settings) -> Result<Sheet, ExperimentError> {
        let progress = Progress::begin(self.title, self.tasks.len() * settings.methods.len());
        let mut rows = Vec::new();
        for method in settings.methods.iter().copied() {
            let answers: Result<Vec<Vec<Answer>>, ExperimentError> = self
                .tasks
                .par_iter()
                .map(|task| {
                    let answers = method.answer(task, settings.seed);
                    progress.step();
                    answers
                })
                .collect();
            rows.extend(self.lines(method, &answers?));
        }
        let ours = COLUMNS.map(str::to_owned);
        let theirs = COLUMNS.map(|column| format!("paper's {column}"));
        let head = ["method", "neighbours by"].map(str::to_owned).into_iter();
        let header = head.chain(ours).chain(theirs).chain(["remark".to_owned()]);
        Ok(Sheet {
            title: self.title.to_owned(),
            notes: self.notes,
            header: header.collect(),
            rows,
        })
    }

    /// One line a rule of nearness.
    fn lines(&self, method: Method, answers: &[Vec<Answer>]) -> Vec<Vec<String>> {
        let paper = paper::table_1(self.set, method.name());
        let rules = answers.first().map_or(0, Vec::len);
        let line = |rule: usize| {
            let mut counts: Vec<BinaryCounts> = Vec::new();
            for (task, answers) in self.tasks.iter().zip(answers) {
                let more = BinaryCounts::of(&answers[rule].predicted, &task.truth, 1);
                match counts.last_mut().filter(|_| self.together) {
                    Some(sum) => sum.merge(&more),
                    None => counts.push(more),
                }
            }
            let all: Vec<Scores> = counts.iter().map(scores).collect();
            let found = Repeated::of(&all);
            let mut remarks = vec![];
            if method == Method::UnPsl {
                remarks.push(found.below(&paper));
            }
            let selected: Option<usize> = answers.iter().map(|all| all[rule].selected).sum();
            if let Some(sum) = selected {
                let mean = sum as f64 / answers.len() as f64;
                remarks.push(format!("{mean:.0} features selected"));
            }
            let gaps = answers.iter().filter_map(|all| all[rule].gap);
            if let Some(largest) = gaps.reduce(f64::max) {
                remarks.push(format!("duality gap at most {largest:.0e}"));
            }
            remarks.retain(|remark| !remark.is_empty());
            let head = [method.name(), answers[0][rule].rule].map(str::to_owned);
            head.into_iter()
                .chain(found.texts())
                .chain(paper.map(|score| format!("{score:.4}")))
                .chain([remarks.join("; ")])
                .collect()
        };
        (0..rules).map(line).collect()
    }
}

fn repeat_seed(seed: Seed, repeat: u64) -> Seed {
    let mut stream = seed.stream("repeat", repeat);
    Seed(stream.random())
}
