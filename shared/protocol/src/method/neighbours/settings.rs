//! `[neighbours]`: by which run patients are compared, and which patients are queried.

use super::coordinator::Neighbours;
use super::judging;
use crate::cohort::{CohortSpecification, Grids, OutcomeKind, OutcomeSpecification, Value};
use crate::document::Section;
use crate::failure::Failure;
use crate::limits::{QUERIES_MAX, QUERY_NUMBERS_MAX};
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::regression::placing::has_anchor;
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::method::{Model, Unplaced};
use crate::name::RunId;
use crate::study::Parts;
use privacy::Permission;
use similarity::compare::REASONS;
use similarity::numeric::precision::Precision;
use similarity::uses::curves::cells;
use std::collections::BTreeSet;

/// Who is alike: the nearest so many of a hundred pairs of patients of one site. Nobody chooses other radii.
pub const SHARES: [u32; 3] = [5, 10, 20];
/// The place among them of the radius that a sentence is about.
pub const DESCRIBED: usize = 1;
/// Of fewer patients who are alike nothing is said of how they fared.
pub const ALIKE_MIN: f64 = 20.0;
/// A number of a query at most, either side of 0.
const QUERY_MAX: f64 = 1e6;

/// How what an earlier run has learned compares patients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// As the run does.
    #[default]
    Run,
    /// By the predicted risk and its reasons: the run is a regression.
    Anchored,
    /// By the predicted risk alone: the run is a regression.
    Risk,
}

impl By {
    /// All, with the names that jobs have for them.
    pub const ALL: [(&'static str, Self); 3] = [
        ("run", Self::Run),
        ("anchored", Self::Anchored),
        ("risk", Self::Risk),
    ];

    /// The key `by`.
    pub(crate) fn read(section: &mut Section<'_, '_>) -> Self {
        section.choice("by", &Self::ALL).unwrap_or_default()
    }

    /// By how many numbers it places a patient of `cohort`, by what was learned.
    ///
    /// # Errors
    /// [`Unplaced`].
    pub fn coordinates(
        self,
        model: &Model,
        cohort: &CohortSpecification,
    ) -> Result<usize, Unplaced> {
        let coordinates = model.coordinates(cohort)?;
        match self {
            Self::Run => Ok(coordinates),
            Self::Anchored if has_anchor(model) => Ok(coordinates + 1),
            Self::Risk if has_anchor(model) => Ok(1),
            Self::Anchored | Self::Risk => Err(Unplaced::Anchor),
        }
    }

    /// Where it places patients of elsewhere, by what was learned.
    ///
    /// # Errors
    /// [`Unplaced`].
    pub fn place(
        self,
        model: &Model,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced> {
        let mut placed = model.place(cohort, patients)?;
        match self {
            Self::Run => {}
            Self::Anchored if has_anchor(model) => placed.iter_mut().for_each(anchor),
            Self::Risk if has_anchor(model) => placed.iter_mut().for_each(risk),
            Self::Anchored | Self::Risk => return Err(Unplaced::Anchor),
        }
        Ok(placed)
    }
}

/// What each feature adds to the risk, as a risk-anchored distance compares it, and the risk behind it.
fn anchor(parts: &mut Vec<f64>) {
    let risk = parts.iter().sum();
    parts.iter_mut().for_each(|part| *part *= REASONS);
    parts.push(risk);
}

/// The risk alone.
fn risk(parts: &mut Vec<f64>) {
    *parts = vec![parts.iter().sum()];
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct NeighboursSettings {
    /// The run that the sites compare by, each by what it has kept of it.
    pub run: RunId,
    /// How.
    pub by: By,
    /// Patients of others, each as the run's comparison places it.
    pub queries: Vec<Vec<f64>>,
}

/// The earlier run by which patients are compared.
pub(crate) fn earlier_run(section: &mut Section<'_, '_>) -> Option<RunId> {
    let run = section.required::<String>("run")?;
    match RunId::new(&run) {
        Ok(run) => Some(run),
        Err(error) => {
            section.problem("run", &format!("{run:?}"), &error.to_string());
            None
        }
    }
}

impl NeighboursSettings {
    /// Reads the table `neighbours`.
    fn table(section: &mut Section<'_, '_>) -> Option<Self> {
        let run = earlier_run(section);
        let queries = section.required::<Vec<Vec<f64>>>("queries");
        if let Some(queries) = &queries {
            let numbers = queries.first().map_or(0, Vec::len);
            let is_number = |number: &f64| number.abs() <= QUERY_MAX;
            let fit = (1..=QUERIES_MAX).contains(&queries.len())
                && (1..=QUERY_NUMBERS_MAX).contains(&numbers)
                && queries
                    .iter()
                    .all(|query| query.len() == numbers && query.iter().all(is_number));
            let wanted = format!(
                "1 to {QUERIES_MAX} lists of equally many numbers, 1 to {QUERY_NUMBERS_MAX}, each at most {QUERY_MAX:e}"
            );
            if !fit {
                section.problem("queries", &format!("{} lists", queries.len()), &wanted);
            }
        }
        let by = By::read(section);
        Some(Self {
            by,
            run: run?,
            queries: queries?,
        })
    }
}

impl MethodSettings for NeighboursSettings {
    type Stages = Neighbours;
    const IS_OF_ALL: bool = false;

    fn asking() -> Option<Asker> {
        Some(Asker::Queries)
    }

    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        check(root, at.outcome);
        root.required_table("neighbours", Self::table)
    }

    /// Counts are whole.
    fn precisely(self, _: Precision) -> Self {
        self
    }

    fn alone(self) -> Self {
        self
    }

    fn divides(&self) -> Parts {
        Parts::default()
    }

    fn grids_of_all(_: &CohortSpecification, _: bool) -> Grids {
        Grids::default()
    }

    fn grids(&self, _: &CohortSpecification) -> Grids {
        Grids::default()
    }

    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        let answers = [judging::no_distances(), judging::nobody(self, cohort)];
        answers.map(Answer::Neighbours).into()
    }

    fn needs(&self) -> Needs {
        Needs {
            permissions: BTreeSet::from([Permission::Neighbours]),
            queries: self.queries.len() as u64,
            ..Needs::nothing()
        }
    }

    fn begin(&self, beginning: &Beginning) -> Result<Neighbours, Failure> {
        Ok(Neighbours::new(self, beginning))
    }
}

/// What is counted of a group of patients: in how many classes, and how many sums beside.
///
/// Of a number all patients are one class, with the sum of the outcome and of its square; of a survival time the cells of the grid that the
/// outcome's horizons are. Without such, it is those without an event and those with one, with the time that they were followed. Times
/// end at the horizon, and numbers at the ends of the outcome's range.
#[must_use]
pub fn counted(kind: &OutcomeKind) -> (usize, usize) {
    match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => (kind.classes().len(), 0),
        OutcomeKind::Numeric => (1, 2),
        OutcomeKind::Survival { horizons, .. } if horizons.is_empty() => (2, 1),
        OutcomeKind::Survival { horizons, .. } => (cells(horizons.len()), 0),
    }
}

/// How often each number that is counted of a group is an event, and time that patients were followed: a patient of a cell of the grid is
/// followed up to its middle.
#[must_use]
pub(in crate::method) fn followed(horizons: &[f64]) -> Vec<Followed> {
    let one = |events, time| Followed { events, time };
    let Some(last) = horizons.last() else {
        return vec![one(0.0, 0.0), one(1.0, 0.0), one(0.0, 1.0)];
    };
    let begins = std::iter::once(&0.0).chain(horizons);
    let middles = begins
        .zip(horizons)
        .map(|(begin, end)| f64::midpoint(*begin, *end));
    let cells = middles.flat_map(|middle| [one(1.0, middle), one(0.0, middle)]);
    cells.chain([one(0.0, *last)]).collect()
}

/// What a number counts for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::method) struct Followed {
    pub(in crate::method) events: f64,
    pub(in crate::method) time: f64,
}

/// Reports an outcome that no noise can hide in groups.
pub(crate) fn check(root: &Section<'_, '_>, outcome: Option<&OutcomeSpecification>) {
    let Some(outcome) = outcome else { return };
    if let Some(wanted) = without_end(outcome) {
        let found = format!("{:?} without it", outcome.column);
        root.problem("outcome", &found, wanted);
    }
}

/// Why outcomes of groups of this kind can have no noise that hides a patient's; none where they can.
#[must_use]
pub fn without_end(outcome: &OutcomeSpecification) -> Option<&'static str> {
    match &outcome.kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => None,
        OutcomeKind::Numeric if outcome.range.is_some() => None,
        OutcomeKind::Numeric => {
            Some("range = [lowest, highest], for one patient may add so much to a group's sum")
        }
        OutcomeKind::Survival {
            horizon, horizons, ..
        } if horizon.is_some() || !horizons.is_empty() => None,
        OutcomeKind::Survival { .. } => {
            Some("a horizon, for one patient may add so much time to a group's sum")
        }
    }
}
