//! `validation`: the procedure of the job judged by patients that it has not seen. Folds lie inside each site; of each a metric is
//! learnt without its patients, and these are classified by their nearest among the others of their site.

use super::folds::of_fold;
use super::message::two_folds;
use super::settings::UnpslSettings;
use crate::document::Section;
use crate::study::parts;
use privacy::ValidationFacts;
use similarity::learn::unpsl::Settings;

/// Whether patients judge what was learnt without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validation {
    /// By so many folds, where the rules of every site and the limits of a usual validation let it be.
    Usual(u32),
    /// By so many folds.
    Folds(u32),
    /// No.
    None,
}

impl UnpslSettings {
    /// Rounds of one fold's fit in a validation at most.
    pub const VALIDATION_ROUNDS_MAX: u32 = 20;
    /// What may be left of the objective in it.
    pub const VALIDATION_LEFT: f64 = 1e-6;

    /// Rounds of the folds of a validation at most; 0 where they are learnt for a choice.
    #[must_use]
    pub fn validation_rounds(&self) -> u64 {
        match (&self.selection, self.folds()) {
            (None, Some(folds)) => u64::from(folds) * u64::from(Self::VALIDATION_ROUNDS_MAX),
            (Some(_), _) | (None, None) => 0,
        }
    }

    /// Whether the settings are chosen for each fold of the validation without its patients, where every site's folds are large enough.
    #[must_use]
    pub fn nests(&self) -> bool {
        // Without two folds of two nobody is left.
        let is_of_three = self.selection.as_ref().is_some_and(|own| own.folds > 2);
        is_of_three && self.is_accelerated() && self.validation != Validation::None
    }

    /// Each two folds of a nested choice: metrics are learned without their patients as well.
    pub(super) fn twos(&self) -> u64 {
        match &self.selection {
            Some(selection) if self.nests() => two_folds(selection.folds).count() as u64,
            Some(_) | None => 0,
        }
    }

    /// Rounds of a nested choice at most, beside those of the choice itself: of two folds at a time.
    #[must_use]
    pub fn nested_rounds(&self) -> u64 {
        match &self.selection {
            Some(selection) if self.nests() => {
                let rounds = selection.rounds(self.consensus);
                (rounds * u64::from(selection.folds - 1)).div_ceil(2)
            }
            Some(_) | None => 0,
        }
    }

    /// Into how many folds each site's patients are parted; none where nobody is held out.
    #[must_use]
    pub fn folds(&self) -> Option<u32> {
        match (&self.selection, self.validation) {
            (Some(selection), _) => Some(selection.folds),
            (None, Validation::Folds(folds) | Validation::Usual(folds)) => Some(folds),
            (None, Validation::None) => None,
        }
    }

    /// Folds of the validation; 0 where there is none.
    #[must_use]
    pub fn validated_folds(&self) -> u32 {
        match self.validation {
            Validation::None => 0,
            Validation::Usual(_) | Validation::Folds(_) => self.folds().unwrap_or(0),
        }
    }

    /// The objective among the patients of all `folds` but one: a sum of losses goes over so many fewer pairs.
    #[must_use]
    pub fn objective_without_a_fold(&self, folds: u32) -> Settings {
        Settings {
            lambda_sparsity: of_fold(self.objective.lambda_sparsity, self.objective.loss, folds),
            ..self.objective
        }
    }

    /// The folds that every site must be able to form, 1 where there are none; and those of a validation without which the run
    /// goes on where a site cannot.
    #[must_use]
    pub fn parts(&self) -> (u64, Option<ValidationFacts>) {
        let folds = u64::from(self.folds().unwrap_or(1));
        let facts = |left_out, rounds| ValidationFacts {
            folds,
            left_out,
            rounds,
        };
        match (&self.selection, self.validation) {
            (None, Validation::Usual(_)) => (1, Some(facts(1, self.validation_rounds()))),
            (Some(_), _) if self.nests() => (folds, Some(facts(2, self.nested_rounds()))),
            _ => (folds, None),
        }
    }

    /// What becomes of a usual validation: of the folds of the job, or none.
    pub(super) fn settle_validation(&mut self, is_validated: bool) {
        self.validation = match (is_validated, self.folds()) {
            (true, Some(folds)) => Validation::Folds(folds),
            _ => Validation::None,
        };
    }
}

/// `validation` is a number of folds, or the word "none". What is chosen is validated by the folds `choosing`.
pub(super) fn read(section: &mut Section<'_, '_>, choosing: Option<u32>, usual: u32) -> Validation {
    if !section.has("validation") {
        return Validation::Usual(choosing.unwrap_or(usual));
    }
    if section.has_word("validation") {
        section.choice("validation", &[("none", ())]);
        return Validation::None;
    }
    let folds = parts::folds(section, "validation", usual);
    if let Some(choosing) = choosing.filter(|choosing| *choosing != folds) {
        let wanted = format!("{choosing}, the `folds` of the choice, or \"none\"");
        section.problem("validation", &folds.to_string(), &wanted);
    }
    Validation::Folds(folds)
}
