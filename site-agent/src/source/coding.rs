//! Which codings of an outcome a site allows.
//!
//! A job joins the levels of an outcome to two classes as it likes. Two jobs whose classes differ by a level
//! that few patients have would tell of those patients. So a level that fewer than `cell_min` patients hold is no
//! outcome, in any job, unless the site declares two only, which leave nothing to choose. A site with such a
//! level takes part as one without it does: a refusal would tell that it has some.

use super::field::{Field, Shape};
use super::found::FoundValues;
use super::level::Levels;
use super::terms::Terms;
use protocol::cohort::OutcomeKind;
use std::collections::{BTreeMap, BTreeSet};

/// How many patients have each level, as far as it matters.
pub(super) struct Coding {
    cell_min: u64,
    levels: Known,
}

enum Known {
    /// Nothing leaves, or the job has nothing to choose.
    Free,
    /// The site's own levels, and that of each patient with its row.
    Declared {
        levels: Levels,
        counts: Vec<u64>,
        of_patients: Vec<(u32, u64)>,
    },
    /// Whatever the source holds.
    Found(FoundValues),
}

/// What is decided once all patients are read.
#[derive(Default)]
pub(super) struct SettledCoding {
    /// Rows whose outcome the job does not list, though enough patients have it.
    pub(super) unlisted: Vec<(Shape, u64)>,
    /// Rows whose outcome few patients have, whether the job lists it or not.
    pub(super) rare_rows: Vec<u64>,
    /// Places of patients whose outcome few have.
    pub(super) left_out: Vec<usize>,
}

impl Coding {
    /// For an outcome of `kind` whose levels the site declares as `mapping`.
    pub(super) fn new(
        kind: &OutcomeKind,
        mapping: Option<&BTreeMap<String, String>>,
        terms: Terms,
    ) -> Self {
        let (cell_min, levels) = match (terms, kind, mapping) {
            (Terms::Job, ..) | (_, OutcomeKind::Numeric, _) => (1, Known::Free),
            // Each level is a class of its own.
            (_, OutcomeKind::Categorical { .. }, Some(_)) => (1, Known::Free),
            (Terms::Site { cell_min }, _, None) => (cell_min, Known::Found(FoundValues::default())),
            (Terms::Site { cell_min }, _, Some(mapping)) => {
                let names: BTreeSet<&String> = mapping.values().collect();
                let names: Vec<String> = names.into_iter().cloned().collect();
                // Every level of the mapping is in the list that was made of it.
                let known = match Levels::new(&names, Some(mapping)) {
                    Ok(levels) if names.len() > 2 => Known::Declared {
                        levels,
                        counts: vec![0; names.len()],
                        of_patients: Vec::new(),
                    },
                    Ok(_) | Err(_) => Known::Free,
                };
                (cell_min, known)
            }
        };
        Self { cell_min, levels }
    }

    /// Notes the level of a patient.
    pub(super) fn listed(&mut self, field: &Field<'_>, row: u64) {
        match &mut self.levels {
            Known::Free => {}
            Known::Declared {
                levels,
                counts,
                of_patients,
            } => {
                // What the job lists is one of the site's levels: its list has them all, and no other.
                let level = levels.code(*field).unwrap_or(u32::MAX);
                if let Some(count) = counts.get_mut(level as usize) {
                    *count += 1;
                }
                of_patients.push((level, row));
            }
            Known::Found(found) => found.listed(field, row),
        }
    }

    /// Whether a level that the job does not list is no fault before all patients are read.
    pub(super) fn knows_no_levels(&self) -> bool {
        matches!(self.levels, Known::Found(_))
    }

    /// Notes a row whose level the job does not list, where that is no fault at once.
    pub(super) fn unlisted(&mut self, field: &Field<'_>, row: u64) {
        if let Known::Found(found) = &mut self.levels {
            found.unlisted(field, row);
        }
    }

    /// Judges levels by how many patients hold them.
    pub(super) fn settle(&self) -> SettledCoding {
        match &self.levels {
            Known::Free => SettledCoding::default(),
            Known::Declared {
                counts,
                of_patients,
                ..
            } => {
                let is_rare = |level: u32| {
                    let count = counts.get(level as usize);
                    count.is_none_or(|count| *count < self.cell_min)
                };
                let patients = of_patients.iter().enumerate();
                let rare = patients.filter(|(_, (level, _))| is_rare(*level));
                let (left_out, rare_rows) = rare.map(|(patient, (_, row))| (patient, *row)).unzip();
                SettledCoding {
                    unlisted: Vec::new(),
                    rare_rows,
                    left_out,
                }
            }
            Known::Found(found) => {
                let rows = found.unlisted_rows(self.cell_min);
                let (left_out, mut rare_rows): (Vec<usize>, Vec<u64>) =
                    found.rare(self.cell_min).into_iter().unzip();
                rare_rows.extend(rows.rare);
                rare_rows.sort_unstable();
                SettledCoding {
                    unlisted: rows.frequent,
                    rare_rows,
                    left_out,
                }
            }
        }
    }
}
