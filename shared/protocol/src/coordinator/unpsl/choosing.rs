//! The part of a run of UnPSL in which cross-validation chooses its settings.

use super::{Answers, Step, UnpslWork};
use crate::coordinator::selection::Selection;
use crate::coordinator::{Turn, count};
use crate::job::SelectionSettings;
use crate::message::Failure;
use similarity::unpsl::Loss;
use similarity::unpsl::selection::Candidate;

impl UnpslWork {
    pub(super) fn next_fit_of_choice(&mut self, notes: &mut Vec<String>) -> Result<(), Failure> {
        let Some(wanted) = self.choosing.as_ref().and_then(Selection::wanted) else {
            return self.judge_or_choose(notes);
        };
        let mut settings = self.settings.clone();
        settings.objective.rank = wanted.rank;
        settings.objective.lambda_sparsity = match settings.objective.loss {
            Loss::Mean => wanted.lambda_sparsity,
            // The sum goes over fewer pairs: those among the patients of all folds but one.
            Loss::Sum => wanted.lambda_sparsity * wanted.share_of_pairs,
        };
        settings.round_limit = SelectionSettings::ROUNDS_MAX;
        settings.tolerance_relative = SelectionSettings::TOLERANCE.max(settings.tolerance_relative);
        let start = match wanted.start {
            Some(start) => start,
            None => self.common_start(&settings),
        };
        self.fit = Some(self.fit(&settings, start, Some(wanted.fold))?);
        Ok(())
    }

    /// All fits of the choice are over: the sites judge them, or the choice is made.
    fn judge_or_choose(&mut self, notes: &mut Vec<String>) -> Result<(), Failure> {
        let Some(selection) = &self.choosing else {
            return Ok(());
        };
        if selection.is_to_be_judged() {
            self.step = Step::Validate;
            return Ok(());
        }
        let chosen = selection.choose()?;
        let Candidate {
            lambda_sparsity,
            rank,
            neighbours,
        } = chosen.candidate;
        self.settings.objective.lambda_sparsity = lambda_sparsity;
        self.settings.objective.rank = rank;
        self.settings.neighbours = count(neighbours);
        notes.push(format!(
            "Chosen by cross-validation: lambda_sparsity {lambda_sparsity:.3e}, rank {rank}, \
             {neighbours} neighbours."
        ));
        if !chosen.left_out.is_empty() {
            let names: Vec<&str> = chosen
                .left_out
                .iter()
                .map(|site| self.names[*site].as_str())
                .collect();
            notes.push(format!(
                "Without a voice in that choice, for a count was withheld or not given: {}.",
                names.join(", ")
            ));
        }
        self.selection = chosen.rows;
        self.choosing = None;
        self.fit_all_patients()
    }

    pub(super) fn close_validation(
        &mut self,
        answers: Answers,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        self.rounds += 1;
        if let Some(selection) = &mut self.choosing {
            selection.count(answers)?;
        }
        self.judge_or_choose(notes)?;
        Ok(Turn::Ask)
    }
}
