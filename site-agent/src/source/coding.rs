//! Which codings of an outcome a site allows.
//!
//! A job joins the levels of an outcome to two classes as it likes. Two jobs whose classes differ by a level
//! that few patients have would tell of those patients. So a level that fewer than `cell_min` patients hold is no
//! outcome, in any job, unless the site declares two only, which leave nothing to choose. A site with such a
//! level takes part as one without it does: a refusal would tell that it has some.

use super::asked::Holder;
use super::field::Field;
use super::found::{FoundValues, LevelCounts, SettledLevels};
use super::level::Levels;
use super::terms::Terms;
use protocol::cohort::OutcomeKind;
use std::collections::{BTreeMap, BTreeSet};

/// How many patients have each level, as far as it matters.
#[derive(Clone)]
pub(super) enum Coding {
    /// Nothing leaves, or the job has nothing to choose.
    Free,
    /// The site's own levels.
    Declared(Levels, LevelCounts),
    /// Whatever the source holds.
    Found(FoundValues),
}

impl Coding {
    /// For an outcome of `kind` whose levels the site declares as `mapping`.
    pub(super) fn new(
        kind: &OutcomeKind,
        mapping: Option<&BTreeMap<String, String>>,
        terms: Terms,
    ) -> Self {
        let cell_min = match terms {
            Terms::Job => return Self::Free,
            Terms::Site { cell_min } => cell_min,
        };
        let mapping = match (kind, mapping) {
            (OutcomeKind::Numeric, _) => return Self::Free,
            (_, None) => return Self::Found(FoundValues::new(cell_min)),
            // Each level is a class of its own.
            (OutcomeKind::Categorical { .. }, Some(_)) => return Self::Free,
            (OutcomeKind::Binary { .. } | OutcomeKind::Survival { .. }, Some(mapping)) => mapping,
        };
        let names: BTreeSet<&String> = mapping.values().collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        // Every level of the mapping is in the list that was made of it.
        match Levels::new(&names, Some(mapping)) {
            Ok(levels) if names.len() > 2 => {
                Self::Declared(levels, LevelCounts::new(names.len(), cell_min))
            }
            Ok(_) | Err(_) => Self::Free,
        }
    }

    /// Notes the level of a patient.
    pub(super) fn listed(&mut self, field: &Field<'_>, holder: Holder) {
        match self {
            Self::Free => {}
            // What the job lists is one of the site's levels: its list has them all, and no other.
            Self::Declared(levels, counts) => {
                counts.note(place(levels, field), holder, None);
            }
            Self::Found(found) => found.listed(field, holder),
        }
    }

    /// Whether a level that the job does not list is no fault before all patients are read.
    pub(super) fn knows_no_levels(&self) -> bool {
        matches!(self, Self::Found(_))
    }

    /// Notes a row whose level the job does not list, where that is no fault at once.
    pub(super) fn unlisted(&mut self, field: &Field<'_>, row: u64) {
        if let Self::Found(found) = self {
            found.unlisted(field, row);
        }
    }

    /// Judges levels by how many patients hold them.
    pub(super) fn settle(&mut self) -> SettledLevels {
        match self {
            Self::Free => SettledLevels::default(),
            Self::Declared(_, counts) => counts.settle(),
            Self::Found(found) => found.settle(),
        }
    }

    /// Whether few patients have a level, once all are noted.
    pub(super) fn is_rare(&self, field: &Field<'_>) -> bool {
        match self {
            Self::Free => false,
            Self::Declared(levels, counts) => counts.is_rare(place(levels, field)),
            Self::Found(found) => found.is_rare(field),
        }
    }
}

/// The place of a field's level.
fn place(levels: &Levels, field: &Field<'_>) -> Option<usize> {
    levels.code(*field).map(|code| code as usize)
}
