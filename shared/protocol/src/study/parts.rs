//! The parts into which every hospital divides its patients. Of other parts, a run would be another equation in the patients' values; so one
//! study has one number of folds, and one of partners.

use super::{Outside, Study};
use crate::document::{Section, narrow};
use crate::limits::{FOLDS_MAX, VALIDATION_FOLDS};
use crate::method::Method;
use crate::method::unpsl::settings::pairs;
use similarity::learn::unpsl::Pairs;
use std::fmt::Write as _;

/// What divides the patients of each hospital.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Folds, of which each is held out once.
    pub folds: Option<u32>,
    /// Partners of each patient, where pairs are within groups.
    pub partners: Option<usize>,
}

impl Parts {
    /// Of so many folds, where there are some, and of these pairs.
    pub(crate) fn new(folds: Option<u32>, pairs: Pairs) -> Self {
        let partners = match pairs {
            Pairs::All => None,
            Pairs::PerPatient(partners) => Some(partners),
        };
        Self { folds, partners }
    }

    /// Those of a study whose text has none.
    fn usual() -> Self {
        Self::new(Some(VALIDATION_FOLDS), Pairs::All)
    }

    /// Reads the table `parts`.
    pub(super) fn read(root: &mut Section<'_, '_>) -> Self {
        let parts = root.table("parts", |section| {
            let usual = u64::from(VALIDATION_FOLDS);
            let folds = narrow(section.count("folds", usual, 2..=FOLDS_MAX as u64));
            Some(Self::new(Some(folds), pairs(section)))
        });
        parts.unwrap_or_else(Self::usual)
    }

    /// The table `parts` of a study whose jobs may have these; nothing where it would say what is so without it.
    pub(super) fn text(self) -> String {
        let usual = Self::usual();
        let parts = Self {
            folds: self.folds.or(usual.folds),
            ..self
        };
        let mut keys = String::new();
        if let Some(folds) = parts.folds {
            let _ = write!(keys, "folds = {folds}");
        }
        if let Some(partners) = parts.partners {
            let _ = write!(keys, ", pairs = {partners}");
        }
        match parts == usual {
            true => String::new(),
            false => format!("parts = {{ {keys} }}\n"),
        }
    }
}

impl Study {
    /// What a job by this method has that the study does not; one of all of the study needs no leave.
    pub(crate) fn outside(&self, method: &Method, is_of_all: bool) -> Vec<Outside> {
        let (name, of_job) = (self.name.as_str(), method.divides());
        let mut outside = Vec::new();
        if !is_of_all {
            outside.extend(self.allows(method.name()).err());
        }
        if let Some(folds) = of_job.folds
            && self.parts.folds != Some(folds)
        {
            let own = self.parts.folds.unwrap_or_default();
            outside.push(Outside {
                key: "folds",
                found: folds.to_string(),
                wanted: format!("{own}, the folds of the study {name:?}"),
            });
        }
        if let Some(partners) = of_job.partners
            && self.parts.partners != Some(partners)
        {
            let own = self.parts.partners.map(|own| format!("{own} or "));
            let own = own.unwrap_or_default();
            outside.push(Outside {
                key: "pairs",
                found: partners.to_string(),
                wanted: format!("{own}\"all\", the pairs of the study {name:?}"),
            });
        }
        outside
    }
}
