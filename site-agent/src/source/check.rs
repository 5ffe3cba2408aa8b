//! `data check`: what a job would find at this site, for the people there.

use super::dictionary::Dictionary;
use super::frozen::Rows as _;
use super::intake::Intake;
use super::problem::{CohortProblem, CohortProblems};
use super::summary::{ColumnSummary, Content};
use super::survey::Survey;
use super::terms::Terms;
use super::{Freezing, FrozenRows, Judged, Room, gridded};
use crate::config::SourceConfig;
use crate::method::{self, Wants};
use protocol::cohort::{FeatureKind, OutcomeKind};
use protocol::job::Job;
use serde::{Serialize, Serializer};
use std::collections::HashSet;
use std::fmt;
use std::slice::from_mut;

/// What a job would find. Its text is a table of columns, then every problem.
#[derive(Clone)]
pub struct DataCheck {
    rows: u64,
    left_out: u64,
    patients: u64,
    lines: Vec<Line>,
    remarks: Vec<CohortProblem>,
    problems: CohortProblems,
    dictionary: Dictionary,
}

/// Reads the source as a run of `job` would at a site whose policy has this `cell_min`.
#[must_use]
pub fn check(source: &SourceConfig, job: &Job, cell_min: u64) -> DataCheck {
    let terms = Terms::Site { cell_min };
    let survey = Survey::new(source, job);
    let freezing = wants_pairs(job).then(|| freezing(source, job, cell_min));
    // Where rows do not come to a table, what is wrong is said of the source.
    let recorded = freezing.and_then(|freezing| {
        let wanted = freezing.wanted().map(|mut names| {
            names.extend(survey.source_columns().map(str::to_owned));
            names
        });
        let table = freezing.record(wanted, HashSet::new(), Room::Memory).ok()?;
        Some((freezing, table))
    });
    let reading = match &recorded {
        Some((_, table)) => {
            let cohort = (&*job.cohort, &gridded(job));
            let intake = Intake::new(source, cohort, terms, super::called(source));
            let mut intake = intake.with_survey(Some(survey));
            table.feed(from_mut(&mut intake), None);
            intake.finish()
        }
        None => super::read(source, job, terms, Some(survey)),
    };
    // Of a source that gave no row, a table would only say that all is missing.
    let read = reading.summaries.iter().filter(|_| reading.rows > 0);
    let lines = read.map(|summary| Line::new(summary, job)).collect();
    let mut problems: Vec<CohortProblem> = match reading.degenerate {
        Some(problem) => vec![problem],
        None => reading.problems.problems().to_vec(),
    };
    if wants_pairs(job) {
        problems.extend(of_pairs(source, recorded));
    }
    DataCheck {
        rows: reading.rows,
        left_out: reading.left_out,
        patients: reading
            .cohort
            .map_or(0, |site| site.cohort.patients() as u64),
        lines,
        remarks: reading.remarks,
        problems: CohortProblems::new(problems),
        dictionary: reading
            .survey
            .map(|survey| survey.dictionary(cell_min))
            .unwrap_or_default(),
    }
}

/// Whether the job learns from pairs that physicians have judged.
fn wants_pairs(job: &Job) -> bool {
    match method::wants(job) {
        Wants::Cohort | Wants::Enrolled => false,
        Wants::Judged => true,
    }
}

/// What the job's study would freeze.
fn freezing<'s>(source: &'s SourceConfig, job: &Job, cell_min: u64) -> Freezing<'s> {
    match &job.study {
        Some(study) => Freezing::of_study(source, study, cell_min),
        None => Freezing {
            source,
            cohorts: vec![(*job.cohort).clone()],
            gridded: gridded(job),
            cell_min,
        },
    }
}

/// What is wrong with the judged pairs of these rows, as approval would say it.
fn of_pairs(
    source: &SourceConfig,
    recorded: Option<(Freezing<'_>, FrozenRows)>,
) -> Vec<CohortProblem> {
    let judged = match Judged::of_site(source) {
        Ok(judged) => judged,
        Err(problems) => return problems.problems().to_vec(),
    };
    // What does not fit of the table is said of the table.
    let frozen = recorded.and_then(|(freezing, table)| freezing.freeze(table).ok());
    let Some(frozen) = frozen else {
        return Vec::new();
    };
    let found = judged.check(&frozen.rows, source);
    found.map_or_else(|problems| problems.problems().to_vec(), |()| Vec::new())
}

impl DataCheck {
    /// True where the job would take the site's patients.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.problems.problems().is_empty()
    }

    /// Rows, patients and who is excluded, in a sentence.
    #[must_use]
    pub fn counts(&self) -> String {
        format!(
            "{} rows: {} patients, {} excluded for want of an outcome or a value",
            self.rows, self.patients, self.left_out
        )
    }

    /// Column, kind, missing values, and range or levels, of each column.
    #[must_use]
    pub fn table(&self) -> Vec<[String; 4]> {
        let row = |line: &Line| {
            #[allow(clippy::cast_precision_loss)] // for a percentage
            let share = 100.0 * line.missing as f64 / (self.patients.max(1) as f64);
            let missing = format!("{} ({share:.1} %)", line.missing);
            [
                line.column.clone(),
                line.kind.to_owned(),
                missing,
                line.content.clone(),
            ]
        };
        self.lines.iter().map(row).collect()
    }

    /// True where any row could be read.
    #[must_use]
    pub fn was_read(&self) -> bool {
        self.rows > 0
    }

    /// What differs from the job's word and changes nothing, because the site's word counts.
    #[must_use]
    pub fn remarks(&self) -> &[CohortProblem] {
        &self.remarks
    }

    /// What the site could declare of these columns, to be reviewed.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Everything that does not fit.
    #[must_use]
    pub fn problems(&self) -> &CohortProblems {
        &self.problems
    }
}

impl fmt::Debug for DataCheck {
    /// Counts only: the table shows ranges and levels, which are for the site's people and no log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DataCheck")
            .field("patients", &self.patients)
            .field("columns", &self.lines.len())
            .field("problems", &self.problems.problems().len())
            .finish_non_exhaustive()
    }
}

impl Serialize for DataCheck {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let listed = |problems: &[CohortProblem]| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        let said = serde_json::json!({
            "fits": self.fits(),
            "rows": self.rows,
            "patients": self.patients,
            "excluded": self.left_out,
            "columns": self.lines,
            "remarks": listed(&self.remarks),
            "problems": listed(self.problems.problems()),
        });
        said.serialize(serializer)
    }
}

/// One line of the table.
#[derive(Clone, Serialize)]
struct Line {
    column: String,
    kind: &'static str,
    missing: usize,
    content: String,
}

impl Line {
    fn new(summary: &ColumnSummary, job: &Job) -> Self {
        let feature = job
            .cohort
            .features
            .iter()
            .find(|feature| feature.name == summary.name);
        let (column, kind, unit) = match feature.map(|feature| &feature.kind) {
            None => (
                job.cohort.outcome.column.clone(),
                outcome_kind(&job.cohort.outcome.kind),
                "",
            ),
            Some(kind) => (summary.name.clone(), kind.name(), kind.unit()),
        };
        let levels = match feature.map(|feature| &feature.kind) {
            Some(FeatureKind::Ordinal { levels }) => Some(levels.clone()),
            Some(FeatureKind::Binary { positive, negative }) => {
                Some(vec![negative.clone(), positive.clone()])
            }
            _ => None,
        };
        Self {
            column,
            kind,
            missing: summary.missing,
            content: content(&summary.content, unit, levels.as_deref()),
        }
    }
}

/// Levels that are coded as numbers are named again.
fn content(content: &Content, unit: &str, levels: Option<&[String]>) -> String {
    match (content, levels) {
        (Content::Numbers { range: None } | Content::Survival { range: None, .. }, _) => {
            "nothing but missing values".to_owned()
        }
        (
            Content::Numbers {
                range: Some((low, high)),
            },
            Some(levels),
        ) => {
            let name = |code: f64| {
                levels
                    .iter()
                    .zip(0_u32..)
                    .find(|(_, n)| f64::from(*n) == code)
            };
            let name = |code| name(code).map_or("", |(level, _)| level.as_str());
            format!("{:?} to {:?}", name(*low), name(*high))
        }
        (
            Content::Numbers {
                range: Some((low, high)),
            },
            None,
        ) => format!("{} to {} {unit}", rounded(*low), rounded(*high))
            .trim_end()
            .to_owned(),
        (
            Content::Survival {
                range: Some((low, high)),
                events,
            },
            _,
        ) => {
            format!("{} to {}, {events} events", rounded(*low), rounded(*high))
        }
        (Content::Levels(counts), _) => {
            let counts = counts
                .iter()
                .map(|(level, count)| format!("{level:?} {count}"));
            counts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Four significant digits, as many as a look at a range needs.
fn rounded(number: f64) -> String {
    format!("{number:.3e}")
        .parse::<f64>()
        .unwrap_or(number)
        .to_string()
}

fn outcome_kind(kind: &OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Binary { .. } => "outcome, binary",
        OutcomeKind::Categorical { .. } => "outcome, categorical",
        OutcomeKind::Numeric => "outcome, numeric",
        OutcomeKind::Survival { .. } => "outcome, survival",
    }
}

impl fmt::Display for DataCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows == 0 && !self.fits() {
            return writeln!(formatter, "No row was read:\n{}", self.problems);
        }
        writeln!(formatter, "{}", self.counts())?;
        let table = self.table();
        let width = |place: usize, head: &str| {
            let cells = table.iter().map(|row| row[place].chars().count());
            cells.max().unwrap_or(0).max(head.len())
        };
        let (names, kinds) = (width(0, "column"), width(1, "kind"));
        if !table.is_empty() {
            writeln!(
                formatter,
                "\n{:names$}  {:kinds$}  {:>14}  range or levels",
                "column", "kind", "missing"
            )?;
        }
        for [column, kind, missing, content] in &table {
            writeln!(
                formatter,
                "{column:names$}  {kind:kinds$}  {missing:>14}  {content}"
            )?;
        }
        if !self.remarks.is_empty() {
            writeln!(
                formatter,
                "\nTo review; a run goes on with the site's own rule:"
            )?;
        }
        for remark in &self.remarks {
            writeln!(formatter, "{remark}")?;
        }
        match self.problems.problems().len() {
            0 => writeln!(formatter, "\nThe data fits the job."),
            count => {
                let plural = if count == 1 { "" } else { "s" };
                writeln!(
                    formatter,
                    "\nThe data does not fit the job, {count} problem{plural}:\n{}",
                    self.problems
                )
            }
        }
    }
}
