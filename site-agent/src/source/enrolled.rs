//! All patients of a study with all its outcomes, as its card describes them.

use super::frozen::{Recorder, Room, Rows};
use super::intake::{Intake, Pass, Taken};
use super::terms::Terms;
use super::{CohortProblem, CohortProblems, SiteCohort, Snapshot, called, read_source};
use crate::config::SourceConfig;
use crate::method::{self, Wants};
use crate::studies::Lots;
use protocol::cohort::{CohortSpecification, Feature};
use protocol::job::Job;
use protocol::study::{Study, StudyOutcome};
use similarity::cohort::{Column, Outcome};
use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::slice::from_mut;
use std::sync::Arc;

/// The patients of a study, which are read block by block: few of them are in memory at once.
#[derive(Clone)]
pub struct Enrolled {
    rows: Arc<dyn Rows>,
    /// Who has an outcome, where not all have one.
    kept: Option<Vec<bool>>,
    /// What reads each outcome, and the features.
    outcomes: Vec<Intake>,
    features: Intake,
    /// Where the site's word differs from the study's and counts, for the people at the site.
    pub(crate) remarks: Vec<CohortProblem>,
    /// Who is in which of the study and those that it renews; none where nobody knows.
    pub(crate) lots: Option<Lots>,
}

/// Some patients of a study.
pub(crate) struct Block {
    /// The features of the study, in its order, each in its own unit; none of those that were not wanted.
    pub(crate) columns: Vec<Option<Column>>,
    /// The outcomes of the study, in its order.
    pub(crate) outcomes: Vec<KnownOutcome>,
    pub(crate) patients: usize,
}

/// An outcome of a study, and who has it.
pub(crate) struct KnownOutcome {
    /// The places of those who have it among the patients of the block.
    pub(crate) rows: Vec<usize>,
    /// What it is, one value each.
    pub(crate) outcome: Outcome,
}

impl Enrolled {
    /// All `rows` with at least one outcome of `study`, once a pass has found nothing wrong with them.
    fn new(
        rows: Arc<dyn Rows>,
        by: (&SourceConfig, Terms),
        study: &Study,
    ) -> Result<Self, CohortProblems> {
        let Some(first) = study.outcomes.first() else {
            return Err(CohortProblems::new(Vec::new()));
        };
        let mut outcomes = outcomes(&*rows, by, study)?;
        let kept = kept(&*rows, &mut outcomes)?;
        // Whoever has no value stays in: the card says how many they are.
        let mut features = intake(by, first, &study.features).of_queries();
        first_pass(&*rows, from_mut(&mut features), kept.as_deref());
        let remarks = features.judge()?;
        Ok(Self {
            rows,
            kept,
            outcomes,
            features,
            remarks,
            lots: None,
        })
    }

    /// Reads all patients with the wanted features, block by block, until a block is refused.
    ///
    /// # Errors
    /// [`CohortProblems`] where they cannot be read.
    pub(crate) fn in_blocks<E>(
        &self,
        is_wanted: &dyn Fn(usize) -> bool,
        take: &mut dyn FnMut(Block) -> Result<(), E>,
    ) -> Result<Result<(), E>, CohortProblems> {
        let wanted: Vec<bool> = (0..self.features.features()).map(is_wanted).collect();
        let mut intakes = vec![self.features.choosing(&wanted)];
        intakes.extend(self.outcomes.iter().cloned());
        intakes.iter_mut().for_each(|one| one.begin(Pass::Second));
        let mut taken = Ok(());
        (self.rows).in_blocks(&mut intakes, self.kept.as_deref(), &mut |intakes| {
            let mut all = intakes.iter_mut().map(Intake::take);
            let Some(Taken { rows, columns, .. }) = all.next() else {
                return ControlFlow::Break(());
            };
            let mut columns = columns.into_iter();
            let columns = wanted.iter().map(|is_wanted| match is_wanted {
                true => columns.next(),
                false => None,
            });
            let columns = columns.collect();
            let known = all.filter_map(|one| {
                let rows = one.rows;
                one.outcome.map(|outcome| KnownOutcome { rows, outcome })
            });
            taken = take(Block {
                columns,
                outcomes: known.collect(),
                patients: rows.len(),
            });
            match taken {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        intakes.iter_mut().try_for_each(Intake::unbroken)?;
        Ok(taken)
    }
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
        let (called, terms) = (super::called(source), Terms::Site { cell_min });
        let (cohort, gridded) = match method::wants(job) {
            Wants::Cohort | Wants::Judged => ((*job.cohort).clone(), super::gridded(job)),
            // Those of the study are read block by block.
            Wants::Enrolled => {
                let outcome = job.cohort.outcome.clone();
                let features = Vec::new();
                (CohortSpecification { outcome, features }, HashSet::new())
            }
        };
        let mut intake = Intake::new(source, (&cohort, &gridded), terms, called);
        self.feed(from_mut(&mut intake), None);
        intake.leaving_out(left_out).finish().unless_degenerate()
    }

    /// All patients with at least one outcome of `study`, by the site's declarations.
    ///
    /// # Errors
    /// [`CohortProblems`], of which the coordinator may hear the misfits.
    pub fn enrolled(
        self: &Arc<Self>,
        source: &SourceConfig,
        study: &Study,
        cell_min: u64,
    ) -> Result<Enrolled, CohortProblems> {
        let rows = Arc::clone(self) as Arc<dyn Rows>;
        Enrolled::new(rows, (source, Terms::Site { cell_min }), study)
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
        let mut outcomes = outcomes(self, (source, Terms::Site { cell_min }), study)?;
        let mut marked = Vec::with_capacity(self.patients());
        of_patients(self, &mut outcomes, &mut |own| {
            marked.push(patterns.contains(&own));
        })?;
        Ok(marked)
    }
}

/// What reads the outcomes of a study, once a pass has found nothing wrong with them.
fn outcomes(
    rows: &dyn Rows,
    by: (&SourceConfig, Terms),
    study: &Study,
) -> Result<Vec<Intake>, CohortProblems> {
    let outcomes = study.outcomes.iter();
    let mut intakes: Vec<Intake> = outcomes.map(|one| intake(by, one, &[])).collect();
    first_pass(rows, &mut intakes, None);
    for intake in &mut intakes {
        intake.judge()?;
    }
    Ok(intakes)
}

/// Has the `kept` patients read to find out what few of them hold; all where nothing says which.
pub(super) fn first_pass(rows: &dyn Rows, intakes: &mut [Intake], kept: Option<&[bool]>) {
    intakes.iter_mut().for_each(|one| one.begin(Pass::First));
    rows.in_blocks(intakes, kept, &mut |intakes| {
        intakes.iter_mut().for_each(|one| drop(one.take()));
        ControlFlow::Continue(())
    });
}

/// Visits every patient, in order, with the bits of the outcomes that it has: the lowest stands for the first.
pub(super) fn of_patients(
    rows: &dyn Rows,
    outcomes: &mut [Intake],
    visit: &mut dyn FnMut(u32),
) -> Result<(), CohortProblems> {
    outcomes.iter_mut().for_each(|one| one.begin(Pass::Second));
    rows.in_blocks(outcomes, None, &mut |intakes| {
        let mut own = Vec::new();
        for (outcome, intake) in intakes.iter_mut().enumerate() {
            own.resize(intake.rows_of_block(), 0_u32);
            let taken = intake.take();
            taken.rows.iter().for_each(|row| own[*row] |= 1 << outcome);
        }
        own.into_iter().for_each(&mut *visit);
        ControlFlow::Continue(())
    });
    outcomes.iter_mut().try_for_each(Intake::unbroken)
}

/// Who has an outcome; none where all have one.
fn kept(rows: &dyn Rows, outcomes: &mut [Intake]) -> Result<Option<Vec<bool>>, CohortProblems> {
    let mut kept = Vec::with_capacity(rows.patients());
    of_patients(rows, outcomes, &mut |own| kept.push(own != 0))?;
    Ok((!kept.iter().all(|is_kept| *is_kept)).then_some(kept))
}

/// Reads all patients of `study` from a source, by the study's own declarations: for results that stay.
///
/// # Errors
/// [`CohortProblems`]: everything that does not fit, none of it with a patient's value.
pub fn read_enrolled(source: &SourceConfig, study: &Study) -> Result<Enrolled, CohortProblems> {
    let Some(outcome) = study.outcomes.first() else {
        return Err(CohortProblems::new(Vec::new()));
    };
    let mut intake = intake((source, Terms::Job), outcome, &[]);
    let numbers = (HashSet::new(), source.decimal);
    intake.record(Recorder::new(None, numbers, Room::Memory));
    read_source(source, &mut intake);
    Enrolled::new(Arc::new(intake.into_rows()?), (source, Terms::Job), study)
}

/// The places of the features that the hospitals of a study count on grids: of each the site declares where its values lie.
pub(crate) fn gridded(study: &Study) -> HashSet<usize> {
    let grids = study.outcomes.iter().map(|outcome| study.grids(outcome));
    grids
        .flat_map(|grids| grids.columns.into_iter().map(|one| one.column))
        .collect()
}

fn intake(
    (source, terms): (&SourceConfig, Terms),
    outcome: &StudyOutcome,
    features: &[Feature],
) -> Intake {
    let cohort = CohortSpecification {
        outcome: outcome.specification.clone(),
        features: features.to_vec(),
    };
    let gridded = HashSet::new();
    Intake::new(source, (&cohort, &gridded), terms, called(source))
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
