//! `cluster`: how many groups of patients there are by a comparison, how sure that is, what marks each and how it fared.

mod figures;
mod marks;
mod text;

use super::setting::{Asked, Setting};
use super::shown::{self, GroupFared};
use super::{CasesError, keep, printed};
use crate::cli::{BiasOption, By, Cluster, ContrastOption, StabilityOption};
use marks::{GroupMarks, OneMark, spreads};
use report::{About, Column, CsvTable};
use serde::Serialize;
use similarity::cohort::Outcome;
use similarity::judge::log_rank::{LogRank, log_rank};
use similarity::numeric::seed::Seed;
use similarity::uses::cases::Fared;
use similarity::uses::clusters::{
    Assigned, Choice, ClassBias, Clustering, Contrast, Dissimilarity, Importance, Settings,
    StabilityRule, assign, choose, importance, shuffled,
};
use std::io;
pub(super) use text::p;

/// Shuffles that tell what chance does.
const SHUFFLES: usize = 199;
/// Most groups that are looked for where nothing is said.
const GROUPS_MAX: usize = 8;

/// What is shown.
#[derive(Debug, Serialize)]
struct Answer {
    /// What the distance is.
    comparison: &'static str,
    patients: usize,
    /// How stability is measured.
    stability: &'static str,
    /// What a stable group has.
    threshold: f64,
    /// Samples that stability is measured by.
    samples: usize,
    remarks: Vec<String>,
    /// The answer in a sentence.
    sentence: String,
    tried: Vec<OneTried>,
    /// Whether the outcomes of the groups differ beyond chance; none where there are no groups.
    outcomes_differ: Option<bool>,
    /// None where no number of groups is stable.
    groups: Vec<OneGroup>,
    /// Whether the groups survive alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_rank: Option<LogRankEntry>,
    /// New patients, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    new: Vec<OneNew>,
    /// A row a patient, for the file.
    #[serde(skip)]
    rows: Vec<OnePatient>,
}

#[derive(Debug, Serialize)]
struct OneTried {
    groups: usize,
    bias: f64,
    /// Its share of that of all patients as one group; none of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bias_share: Option<f64>,
    /// The chance that permuted outcomes gain as much over the best of fewer groups; none where it is not stable.
    chance: Option<f64>,
    stability: Vec<f64>,
    /// The least of as many groups of shuffled patients.
    by_chance: Option<f64>,
    stable: bool,
    chosen: bool,
}

#[derive(Debug, Serialize)]
struct OneGroup {
    group: usize,
    patients: usize,
    /// The patient in its middle.
    medoid: String,
    stability: f64,
    fared: GroupFared,
    marks: Vec<OneMark>,
    #[serde(skip)]
    sentence: String,
    #[serde(skip)]
    outcome: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct LogRankEntry {
    chi_squared: f64,
    degrees: usize,
    p: f64,
}

#[derive(Debug, Serialize)]
struct OneNew {
    patient: String,
    /// None of a patient that cannot be compared.
    group: Option<usize>,
    distance: f64,
    /// From the middle of the next group.
    next: f64,
}

#[derive(Debug)]
struct OnePatient {
    group: usize,
    distance: f64,
    is_medoid: bool,
}

/// The groups that were found, with what is shown of each.
struct Found<'s> {
    setting: &'s Setting,
    dissimilarity: Dissimilarity<'s>,
    choice: Choice,
    /// Place of the division that is shown.
    shown: Option<usize>,
    threshold: f64,
    marks: Option<GroupMarks>,
    log_rank: Option<LogRank>,
}

impl Found<'_> {
    fn groups(&self) -> Option<&Clustering> {
        self.shown.map(|place| &self.choice.tried[place])
    }
}

/// Finds the groups, writes the files that are asked for, and gives what is to be printed.
///
/// # Errors
/// [`CasesError`].
pub fn clusters(arguments: &Cluster) -> Result<String, CasesError> {
    let setting = Setting::open(&arguments.place)?;
    let asked = arguments.new.as_deref().map(|file| setting.read(file));
    let asked = asked.transpose()?;
    let found = found(&setting, arguments)?;
    let answer = answer(&found, arguments, asked.as_ref());
    if let Some(folder) = &arguments.out {
        keep(folder, figures::all(&found, &answer)?)?;
    }
    let csv = || csv(&setting, &answer);
    printed(&arguments.output, &answer, csv, || text::whole(&answer))
}

fn found<'s>(setting: &'s Setting, arguments: &Cluster) -> Result<Found<'s>, CasesError> {
    let seed = Seed(arguments.seed);
    let outcome = setting.cohort.outcome();
    let most = GROUPS_MAX
        .min(setting.patients.len().saturating_sub(1))
        .max(2);
    let clusters = arguments
        .k
        .as_ref()
        .map_or(2..=most, |asked| asked.0.clone());
    let settings = Settings {
        samples: arguments.samples,
        stability: arguments.stability.into(),
        threshold: arguments.threshold,
        class_bias: arguments.bias.into(),
        clusters,
        ..Settings::default()
    };
    let dissimilarity = Dissimilarity::of_comparison(&setting.comparison, &setting.placed);
    let others = setting
        .comparison
        .place(&shuffled(setting.cohort.columns(), seed))?;
    let others = Dissimilarity::of_comparison(&setting.comparison, &others);
    let choice = choose(&dissimilarity, Some(&others), outcome, &settings, seed)?;
    // Of one number that was asked for the groups are shown in any case.
    let shown = choice.best.or((choice.tried.len() == 1).then_some(0));
    let groups = shown.map(|place| &choice.tried[place]);
    let marks = groups.map(|groups| {
        let columns = setting.cohort.columns();
        let of = (groups.assigned.as_slice(), groups.clusters());
        let found: Importance =
            importance(columns, of, arguments.contrast.into(), (SHUFFLES, seed));
        GroupMarks::new(found, spreads(setting, groups))
    });
    let log_rank = groups.and_then(|groups| match outcome {
        Outcome::Survival { time, event } => {
            log_rank(time, event, &groups.assigned, groups.clusters())
        }
        Outcome::Classes { .. } | Outcome::Numeric(_) => None,
    });
    Ok(Found {
        setting,
        dissimilarity,
        shown,
        threshold: arguments.threshold,
        marks,
        log_rank,
        choice,
    })
}

fn answer(found: &Found<'_>, arguments: &Cluster, asked: Option<&Asked>) -> Answer {
    let setting = found.setting;
    let groups = groups(found);
    Answer {
        comparison: setting.comparison.name(),
        patients: setting.patients.len(),
        stability: arguments.stability.name(),
        threshold: arguments.threshold,
        samples: arguments.samples,
        remarks: remarks(found, arguments),
        sentence: text::sentence(found, arguments.stability, &groups),
        outcomes_differ: found.groups().is_some().then_some(found.choice.differ),
        tried: tried(found),
        log_rank: found.log_rank.map(|test| LogRankEntry {
            chi_squared: test.chi_squared,
            degrees: test.degrees,
            p: test.p,
        }),
        new: asked.map(|asked| new(found, asked)).unwrap_or_default(),
        rows: rows(found),
        groups,
    }
}

fn tried(found: &Found<'_>) -> Vec<OneTried> {
    let one = |(place, tried): (usize, &Clustering)| OneTried {
        groups: tried.clusters(),
        bias: tried.bias.value,
        bias_share: tried.bias.share,
        chance: tried.chance,
        stability: tried.stability.clone(),
        by_chance: tried.by_chance,
        stable: tried.is_stable,
        chosen: found.choice.best == Some(place),
    };
    found.choice.tried.iter().enumerate().map(one).collect()
}

fn groups(found: &Found<'_>) -> Vec<OneGroup> {
    let setting = found.setting;
    let (Some(groups), Some(marks)) = (found.groups(), &found.marks) else {
        return Vec::new();
    };
    let one = |group: usize| {
        let rows = groups.members(group);
        let fared = Fared::of(setting.cohort.outcome(), &rows);
        OneGroup {
            group: group + 1,
            patients: rows.len(),
            medoid: setting.patients.name(groups.medoids[group]),
            stability: groups.stability[group],
            marks: marks.of(&setting.job.cohort.features, group),
            sentence: shown::fared(&fared, rows.len(), &setting.presentation),
            outcome: text::outcome(&fared, &setting.presentation),
            fared: GroupFared::of(&fared, &setting.presentation),
        }
    };
    (0..groups.clusters()).map(one).collect()
}

fn remarks(found: &Found<'_>, arguments: &Cluster) -> Vec<String> {
    let mut remarks = found.setting.remarks.clone();
    let incomparable = found.dissimilarity.incomparable();
    if incomparable > 0 {
        remarks.push(format!(
            "{incomparable} pairs of patients share no value: they count as far apart as the two farthest"
        ));
    }
    if found.shown.is_some() {
        remarks.push(match arguments.place.by {
            By::Run | By::Personal | By::Regression | By::Anchored => {
                "the distance was learned from these patients' outcomes, so clusters differ in them by construction: \
                 that they do is no discovery, and a p of it is too small"
            }
            By::Euclidean | By::Manhattan | By::Cosine | By::Mahalanobis | By::Gower => {
                "how many groups there are was chosen by the outcome: a p of how outcomes differ is a little too small"
            }
        }
        .to_owned());
    }
    remarks
}

fn new(found: &Found<'_>, asked: &Asked) -> Vec<OneNew> {
    let Some(groups) = found.groups() else {
        return Vec::new();
    };
    let setting = found.setting;
    let comparison = &setting.comparison;
    let assigned = assign(comparison, &setting.placed, &groups.medoids, &asked.placed);
    let one = |(name, assigned): (&String, Option<Assigned>)| OneNew {
        patient: name.clone(),
        group: assigned.map(|one| one.cluster + 1),
        distance: assigned.map_or(f64::NAN, |one| one.distance),
        next: assigned.map_or(f64::NAN, |one| one.next),
    };
    asked.names.iter().zip(assigned).map(one).collect()
}

fn rows(found: &Found<'_>) -> Vec<OnePatient> {
    let Some(groups) = found.groups() else {
        return Vec::new();
    };
    let distances = found.dissimilarity.from_each(&groups.medoids);
    let one = |(row, group): (usize, &u32)| OnePatient {
        group: *group as usize + 1,
        distance: distances[(row, *group as usize)],
        is_medoid: groups.medoids[*group as usize] == row,
    };
    groups.assigned.iter().enumerate().map(one).collect()
}

/// A row a patient; of no stable groups the heading alone.
fn csv(setting: &Setting, answer: &Answer) -> io::Result<CsvTable> {
    let outcome = setting.cohort.outcome();
    let own = &setting.job.cohort.outcome;
    let mut columns = vec![
        Column::patient(),
        Column::whole("group", "cluster, from 1"),
        Column::number("distance from medoid", "distance from the cluster's medoid"),
        Column::truth("medoid", "whether the patient is the medoid"),
    ];
    columns.extend(shown::outcome_columns(own));
    let title = "Clusters: a row per patient";
    let mut table = CsvTable::new(title, About::Outcome(own), &columns)?;
    for (row, one) in answer.rows.iter().enumerate() {
        let mut record = vec![
            setting.patients.name(row),
            one.group.to_string(),
            one.distance.to_string(),
            u8::from(one.is_medoid).to_string(),
        ];
        record.extend(shown::outcome_cells(outcome, row));
        table.row(&record)?;
    }
    Ok(table)
}

impl StabilityOption {
    fn name(self) -> &'static str {
        match self {
            Self::EveryGroup => "of every group, against bootstraps",
            Self::Mean => "mean over groups, against samples without replacement",
        }
    }
}

impl From<StabilityOption> for StabilityRule {
    fn from(option: StabilityOption) -> Self {
        match option {
            StabilityOption::EveryGroup => Self::EveryCluster,
            StabilityOption::Mean => Self::MeanOverClusters,
        }
    }
}

impl From<BiasOption> for ClassBias {
    fn from(option: BiasOption) -> Self {
        match option {
            BiasOption::Weighted => Self::Weighted,
            BiasOption::Sum => Self::Sum,
            BiasOption::Mean => Self::Mean,
        }
    }
}

impl From<ContrastOption> for Contrast {
    fn from(option: ContrastOption) -> Self {
        match option {
            ContrastOption::Wasserstein => Self::Wasserstein,
            ContrastOption::JensenShannon => Self::JensenShannon,
        }
    }
}
