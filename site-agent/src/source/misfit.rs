//! What the coordinator may hear of a cohort that does not fit.
//!
//! The whole of it, as `policy explain` may say it: *which column of the job differs from the site's own
//! declarations, in one of a fixed list of ways; that the source cannot be read; or that values do not fit,
//! in one constant sentence without column, row, count and value.* A [`Misfit`] has no place for more.
//! Structure goes first: where a declaration differs, the answer is the same whatever the values are.

use protocol::cohort::OutcomeKind;
use protocol::failure::Problem;
use protocol::job::Job;

/// Why a cohort does not fit, for the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// A column of the job differs from what the site declares or has.
    Column(JobColumn, Structure),
    /// The file, database or query cannot be read.
    Source,
    /// Values do not fit the site's own declarations. Nothing is said of which.
    Values,
}

/// A column that the job names, by its place in the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobColumn(Place);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The site's identifier, which the job does not name.
    Patient,
    Outcome,
    Event,
    Feature(usize),
}

/// How a column differs from what the job takes for granted. None of it follows from a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structure {
    /// The source has no such column.
    Absent,
    /// The source has several columns of this name.
    Repeated,
    /// The source's column is of a type that is not read, or the site declares another kind of values.
    Type,
    /// The site declares a unit that it cannot convert to the job's.
    Unit,
    /// The site declares a level that the job does not list.
    Levels,
    /// The job counts levels in another order than the site declares, or the site declares none.
    Order,
    /// The job's range does not contain the site's.
    Range,
    /// The job counts values on a grid or takes their logarithm, and the site declares no range for it.
    Undeclared,
    /// The job refuses missing values, and the site does not declare the column complete.
    Complete,
}

/// What is wrong, without where: a [`Misfit`] but for its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Structure(Structure),
    Source,
    Values,
}

impl Misfit {
    pub(super) fn new(cause: Cause, job: &Job, column: &str) -> Self {
        match cause {
            Cause::Structure(structure) => Self::Column(JobColumn::named(job, column), structure),
            Cause::Source => Self::Source,
            Cause::Values => Self::Values,
        }
    }

    /// Only those that the coordinator may hear together, each once: of the first kind that there is.
    pub(super) fn for_coordinator(mut all: Vec<Self>) -> Vec<Self> {
        all.sort_unstable();
        all.dedup();
        let rank = |misfit: &Self| match misfit {
            Self::Column(..) => 0,
            Self::Source => 1,
            Self::Values => 2,
        };
        let first = all.first().map(rank);
        all.retain(|misfit| Some(rank(misfit)) == first);
        all
    }

    /// In words: the name of the column is the job's own, and the rest is constant.
    #[must_use]
    pub fn problem(&self, job: &Job) -> Problem {
        let (column, (found, wanted)) = match self {
            Self::Column(column, structure) => (column.name(job), structure.words()),
            Self::Source => (
                String::new(),
                (
                    "a source that cannot be read",
                    "the site's table; the log at the site says more",
                ),
            ),
            Self::Values => (
                String::new(),
                (
                    "values that do not fit what the site declares of its table",
                    "a table that does; `kindred-site-agent data check` at the site says where",
                ),
            ),
        };
        Problem {
            column,
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        }
    }
}

impl JobColumn {
    fn named(job: &Job, name: &str) -> Self {
        let event = match &job.cohort.outcome.kind {
            OutcomeKind::Survival { event, .. } => Some(event.as_str()),
            _ => None,
        };
        let feature = || job.cohort.features.iter().position(|one| one.name == name);
        Self(if job.cohort.outcome.column == name {
            Place::Outcome
        } else if event == Some(name) {
            Place::Event
        } else {
            feature().map_or(Place::Patient, Place::Feature)
        })
    }

    /// The job's name of it; empty of the identifier, which only the site names.
    fn name(self, job: &Job) -> String {
        match (self.0, &job.cohort.outcome.kind) {
            (Place::Outcome, _) => job.cohort.outcome.column.clone(),
            (Place::Event, OutcomeKind::Survival { event, .. }) => event.clone(),
            (Place::Feature(index), _) => job
                .cohort
                .features
                .get(index)
                .map(|feature| feature.name.clone())
                .unwrap_or_default(),
            (Place::Patient | Place::Event, _) => String::new(),
        }
    }
}

impl Structure {
    /// What was found and what was wanted.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Absent => ("no such column", "a column of this name"),
            Self::Repeated => ("two such columns", "one"),
            Self::Type => (
                "a column of another type",
                "one that can be read as the job asks",
            ),
            Self::Unit => (
                "another unit at the site",
                "the job's unit, or a conversion to it in site.toml",
            ),
            Self::Levels => (
                "a level in the site's dictionary that the job does not list",
                "a job that lists all of them, as `kindred-site-agent study draft --from site.toml` does at the site",
            ),
            Self::Order => (
                "levels in another order than the site's dictionary has, or none there",
                "the site's order, because the job counts them on a grid",
            ),
            Self::Range => (
                "a range that does not contain the site's own",
                "a job whose range does; the site's people see both, and can send what \
                 `kindred-site-agent study draft --from site.toml` prints",
            ),
            Self::Undeclared => (
                "no range in the site's dictionary",
                "one, because values are counted on a grid or their logarithm is taken",
            ),
            Self::Complete => (
                "missing values refused, and a column that the site does not declare complete",
                "complete = true in site.toml, or another treatment of missing values",
            ),
        }
    }
}
