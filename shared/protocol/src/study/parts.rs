//! The parts into which every hospital divides its patients. Of other parts, a run would be another equation in the patients' values; so one
//! study has one number of folds, and one of partners.

use super::{Outside, Study};
use crate::document::{Section, narrow};
use crate::limits::{FOLDS_MAX, VALIDATION_FOLDS};
use crate::method::Method;
use crate::method::unpsl::settings::pairs;
use similarity::learn::unpsl::Pairs;

/// What divides the patients of each hospital in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Folds, of which each is held out once; none where nobody is.
    pub folds: Option<u32>,
    /// Partners of each patient, where pairs are within groups.
    pub partners: Option<usize>,
}

impl Parts {
    /// Of so many folds, where there are some, and of these pairs.
    pub(crate) fn new(folds: Option<u32>, pairs: Pairs) -> Self {
        Self {
            folds,
            partners: partners(pairs),
        }
    }

    /// The table `parts` of a study whose jobs may have these; nothing where it would say what is so without it.
    pub(super) fn text(self) -> String {
        let folds = self.folds.unwrap_or(VALIDATION_FOLDS);
        match self.partners {
            Some(partners) => format!("parts = {{ folds = {folds}, pairs = {partners} }}\n"),
            None if folds != VALIDATION_FOLDS => format!("parts = {{ folds = {folds} }}\n"),
            None => String::new(),
        }
    }
}

/// Partners of each patient; none where all pairs are taken.
fn partners(pairs: Pairs) -> Option<usize> {
    match pairs {
        Pairs::All => None,
        Pairs::PerPatient(partners) => Some(partners),
    }
}

/// Reads a number of folds.
pub(crate) fn folds(section: &mut Section<'_, '_>, key: &'static str, usual: u32) -> u32 {
    narrow(section.count(key, u64::from(usual), 2..=FOLDS_MAX as u64))
}

/// Reads the table `parts`: folds, and partners of each patient.
pub(super) fn read(root: &mut Section<'_, '_>) -> (u32, Option<usize>) {
    let parts = root.table("parts", |section| {
        let folds = folds(section, "folds", VALIDATION_FOLDS);
        Some((folds, partners(pairs(section))))
    });
    parts.unwrap_or((VALIDATION_FOLDS, None))
}

impl Study {
    /// What a job by this method has that the study does not; one of all of the study needs no leave.
    pub(crate) fn outside(&self, method: &Method, is_of_all: bool) -> Vec<Outside> {
        let (name, parts) = (self.name.as_str(), method.divides());
        let mut outside = Vec::new();
        if !is_of_all {
            outside.extend(self.allows(method.name()).err());
        }
        if let Some(folds) = parts.folds.filter(|folds| *folds != self.folds) {
            outside.push(Outside {
                key: "folds",
                found: folds.to_string(),
                wanted: format!("{}, the folds of the study {name:?}", self.folds),
            });
        }
        if let Some(found) = parts.partners
            && self.partners != Some(found)
        {
            let own = self.partners.map(|own| format!("{own} or "));
            let own = own.unwrap_or_default();
            outside.push(Outside {
                key: "pairs",
                found: found.to_string(),
                wanted: format!("{own}\"all\", the pairs of the study {name:?}"),
            });
        }
        outside
    }
}
