//! All patients of a study with all its outcomes, as its card describes them.

use super::frozen::{Recorder, Rows};
use super::intake::Intake;
use super::terms::Terms;
use super::{CohortProblems, ReadProgress, SiteCohort, Snapshot, called, read_source};
use crate::config::SourceConfig;
use crate::studies::Lots;
use protocol::cohort::{CohortSpecification, Feature};
use protocol::job::Job;
use protocol::study::{Study, StudyOutcome};
use similarity::cohort::{Column, Outcome};
use std::collections::HashSet;
use std::fmt;
use std::slice::from_mut;

/// The patients of a study.
#[derive(Clone)]
pub struct Enrolled {
    /// The features of each patient who has an outcome, each in its own unit.
    pub columns: Vec<Column>,
    /// The outcomes of the study, in its order.
    pub outcomes: Vec<KnownOutcome>,
    /// Who is in which of the study and those that it renews; none where nobody knows.
    pub lots: Option<Lots>,
}

/// An outcome of a study, and who has it.
#[derive(Clone)]
pub struct KnownOutcome {
    /// The places of those who have it among all patients.
    pub rows: Vec<usize>,
    /// What it is, one value each.
    pub outcome: Outcome,
}

impl Snapshot {
    /// As [`super::read_for_release`], of these patients but for the marked ones: what the others have is read as if they were there.
    ///
    /// # Errors
    /// [`CohortProblems`], of which the coordinator may hear the misfits.
    pub fn cohort(
        &self,
        source: &SourceConfig,
        job: &Job,
        cell_min: u64,
        left_out: &[bool],
    ) -> Result<SiteCohort, CohortProblems> {
        let mut unheard = |_| ();
        let (called, terms) = (super::called(source), Terms::Site { cell_min });
        let cohort = (&*job.cohort, &super::gridded(job));
        let mut intake = Intake::new(source, cohort, terms, called, &mut unheard);
        self.feed(from_mut(&mut intake), None);
        intake.leaving_out(left_out).finish().unless_degenerate()
    }

    /// All patients with at least one outcome of `study`, by the site's declarations.
    ///
    /// # Errors
    /// [`CohortProblems`], of which the coordinator may hear the misfits.
    pub fn enrolled(
        &self,
        source: &SourceConfig,
        study: &Study,
        cell_min: u64,
    ) -> Result<Enrolled, CohortProblems> {
        enrolled(self, (source, Terms::Site { cell_min }), study)
    }

    /// Which of them have these patterns of who has which outcome of `study`: one mark a patient, none where there is no
    /// pattern.
    ///
    /// # Errors
    /// [`CohortProblems`], of which the coordinator may hear the misfits.
    pub fn of_patterns(
        &self,
        source: &SourceConfig,
        study: &Study,
        cell_min: u64,
        patterns: &[u32],
    ) -> Result<Vec<bool>, CohortProblems> {
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let known = known(self, (source, Terms::Site { cell_min }), study)?;
        let mut own = vec![0_u32; self.patients()];
        for (outcome, (rows, _)) in known.iter().enumerate() {
            rows.iter().for_each(|row| own[*row] |= 1 << outcome);
        }
        Ok(own.iter().map(|own| patterns.contains(own)).collect())
    }
}

/// The places of the patients who have each outcome, and the outcome.
fn known(
    all: &impl Rows,
    (source, terms): (&SourceConfig, Terms),
    study: &Study,
) -> Result<Vec<(Vec<usize>, Outcome)>, CohortProblems> {
    let mut unheard = vec![|_| (); study.outcomes.len()];
    let outcomes = study.outcomes.iter().zip(&mut unheard);
    let intakes = outcomes.map(|(one, unheard)| intake((source, terms), one, &[], unheard));
    let mut intakes: Vec<_> = intakes.collect();
    all.feed(&mut intakes, None);
    intakes.into_iter().map(Intake::into_outcome).collect()
}

fn enrolled(
    all: &impl Rows,
    by: (&SourceConfig, Terms),
    study: &Study,
) -> Result<Enrolled, CohortProblems> {
    let known = known(all, by, study)?;
    let mut has_outcome = vec![false; all.patients()];
    for place in known.iter().flat_map(|(places, _)| places) {
        has_outcome[*place] = true;
    }
    let everyone = has_outcome.iter().all(|has_one| *has_one);
    let kept = (!everyone).then_some(&*has_outcome);
    // The place of each patient among those kept.
    let places: Vec<usize> = (has_outcome.iter())
        .scan(0, |next, has_one| {
            let place = *next;
            *next += usize::from(*has_one);
            Some(place)
        })
        .collect();
    let of_known = |(rows, outcome): (Vec<usize>, Outcome)| KnownOutcome {
        rows: rows.iter().map(|row| places[*row]).collect(),
        outcome,
    };
    Ok(Enrolled {
        columns: features(all, by, study, kept)?,
        outcomes: known.into_iter().map(of_known).collect(),
        lots: None,
    })
}

/// The features of the `kept` patients; of all where nothing says which.
fn features(
    all: &impl Rows,
    by: (&SourceConfig, Terms),
    study: &Study,
    kept: Option<&[bool]>,
) -> Result<Vec<Column>, CohortProblems> {
    let Some(outcome) = study.outcomes.first() else {
        return Ok(Vec::new());
    };
    let mut unheard = |_| ();
    let intake = intake(by, outcome, &study.features, &mut unheard);
    // Whoever has no value stays in: the card says how many they are.
    let mut intake = intake.of_queries();
    all.feed(from_mut(&mut intake), kept);
    let queries = intake.finish().into_queries()?;
    Ok(queries.columns)
}

/// Reads all patients of `study` from a source, by the study's own declarations: for results that stay.
///
/// # Errors
/// [`CohortProblems`]: everything that does not fit, none of it with a patient's value.
pub fn read_enrolled(
    source: &SourceConfig,
    study: &Study,
    progress: &mut (dyn FnMut(ReadProgress) + Send),
) -> Result<Enrolled, CohortProblems> {
    let Some(outcome) = study.outcomes.first() else {
        return Err(CohortProblems::new(Vec::new()));
    };
    let mut intake = intake((source, Terms::Job), outcome, &[], progress);
    intake.record(Recorder::new(None, (HashSet::new(), source.decimal)));
    read_source(source, &mut intake);
    enrolled(&intake.into_table()?, (source, Terms::Job), study)
}

/// The places of the features that the hospitals of a study count on grids: of each the site declares where its values lie.
pub(crate) fn gridded(study: &Study) -> HashSet<usize> {
    let grids = study.outcomes.iter().map(|outcome| study.grids(outcome));
    grids
        .flat_map(|grids| grids.columns.into_iter().map(|one| one.column))
        .collect()
}

fn intake<'p>(
    (source, terms): (&SourceConfig, Terms),
    outcome: &StudyOutcome,
    features: &[Feature],
    progress: &'p mut (dyn FnMut(ReadProgress) + Send),
) -> Intake<'p> {
    let cohort = CohortSpecification {
        outcome: outcome.specification.clone(),
        features: features.to_vec(),
    };
    let gridded = HashSet::new();
    Intake::new(source, (&cohort, &gridded), terms, called(source), progress)
}

impl fmt::Debug for Enrolled {
    /// The count of outcomes only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Enrolled")
            .field("outcomes", &self.outcomes.len())
            .finish_non_exhaustive()
    }
}
