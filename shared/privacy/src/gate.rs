//! The third door: every message, one by one.

use crate::content::{Content, Cost, Histogram};
use crate::covered::{Covered, Covering};
use crate::facts::CohortFacts;
use crate::released::{Disclosure, Released};
use crate::rule::{Permission, Refusal, Rules};
use crate::steepness::Steepness;
use crate::sums::{Summand, Words};
use crate::{cells, nodes};
use std::collections::BTreeSet;

/// Sites that judge held-out patients at least, where not all do.
pub const JUDGES_MIN: u64 = 3;

/// What a cohort does in a validation by folds in which it need not judge: each does more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldOut {
    /// It takes no part: the job has no such validation, or the site too few rounds left.
    Nothing,
    /// What is learnt without a fold is learnt from its patients too, and they judge nothing: they are too few.
    Learns,
    /// Its patients judge where those of all sites do.
    JudgesWithAll,
    /// They judge where those of [`JUDGES_MIN`] sites do.
    Judges,
}

/// An admitted job on an admitted cohort: the only maker of [`Released`] messages that carry
/// anything of it.
pub struct Gate {
    rules: Rules,
    patients: u64,
    classes: Vec<u64>,
    rounds_left: u64,
    /// What was admitted with the job beyond the usual messages.
    permissions: BTreeSet<Permission>,
    held_out: HeldOut,
    shut: bool,
}

impl Gate {
    pub(crate) fn open(
        rules: Rules,
        cohort: &CohortFacts,
        rounds_left: u64,
        permissions: BTreeSet<Permission>,
        held_out: HeldOut,
    ) -> Self {
        Self {
            rules,
            patients: cohort.patients,
            classes: cohort.classes.clone(),
            rounds_left,
            permissions,
            held_out,
            shut: cohort.so_far.shut,
        }
    }

    /// Clears one message that does not add up over sites: trees, and what carries nothing of the cohort. Small counts of a
    /// terminal node are rounded; hazards go by groups of at least `cell_min` events. Whatever adds up is refused: it leaves
    /// by [`Gate::release_covered`].
    ///
    /// Every round is counted.
    ///
    /// # Errors
    /// A [`Refusal`] that names the rule.
    pub fn release<T: Disclosure>(&mut self, mut message: T) -> Result<Released<T>, Refusal> {
        self.rounds(Cost::of(&message.content()).rounds())?;
        self.clear(message)
    }

    /// Clears one message whose numbers add up over sites, covered, so that they can be read in the sum alone. Small counts
    /// stay as they are, for nobody can tell whose they are. Only in a histogram, whose cells are as fine as values, neighbours
    /// are joined to groups of `cell_min` values, each of which counts in the cell of its mean.
    /// It costs what it costs in the clear.
    ///
    /// # Errors
    /// A [`Refusal`] that names the rule: `sites_min` judges with which sites it is summed, `numbers` what no sum can hold.
    pub fn release_covered<T>(
        &mut self,
        mut message: T,
        covering: &Covering<'_>,
    ) -> Result<Released<T>, Refusal>
    where
        T: Disclosure + Summand + From<Covered>,
    {
        self.still_open()?;
        self.admits(covering)?;
        self.rounds(Cost::of(&message.content()).rounds())?;
        self.cover(message, covering)
    }

    /// As [`Gate::repeat`], covered.
    ///
    /// # Errors
    /// As [`Gate::release_covered`]; `same_answer` where it is not the same.
    pub fn repeat_covered<T>(
        &self,
        message: T,
        covering: &Covering<'_>,
        same: impl FnOnce(&T) -> bool,
    ) -> Result<Released<T>, Refusal>
    where
        T: Disclosure + Summand + From<Covered>,
    {
        self.admits(covering)?;
        let released = self.cover(message, covering)?;
        known_again(released, same)
    }

    /// Whether it may be summed over these sites.
    fn admits(&self, covering: &Covering<'_>) -> Result<(), Refusal> {
        let (sites, rules) = (covering.masks.sites() as u64, &self.rules);
        if sites < rules.sites_min {
            let text = format!(
                "the sum is over {sites} sites, the site takes part in sums over at least {}",
                rules.sites_min
            );
            return Err(Refusal::new("sites_min", text));
        }
        Ok(())
    }

    fn cover<T>(&self, mut message: T, covering: &Covering<'_>) -> Result<Released<T>, Refusal>
    where
        T: Disclosure + Summand + From<Covered>,
    {
        self.still_open()?;
        for content in message.content() {
            self.permits(&content)?;
            match content {
                Content::Cohort { patients, classes } => self.same_cohort(patients, classes)?,
                Content::Groups { groups, patients } => self.large_groups(groups, patients)?,
                Content::Clusters(counts) => self.whole_groups(&counts)?,
                Content::Histograms(histograms) => {
                    for Histogram { counts, .. } in histograms {
                        cells::gather(counts, self.rules.cell_min);
                    }
                }
                // Masks hide these. Trees do not add up, and what was covered elsewhere has no place here.
                Content::Columns { .. }
                | Content::SecondMoments
                | Content::Tables(_)
                | Content::HeldOut(_)
                | Content::Errors(_)
                | Content::Nodes(_)
                | Content::LocalUpdate
                | Content::PairSums
                | Content::Tabulated
                | Content::Covered => {}
            }
        }
        let kind = message.kind();
        let words =
            Words::of(&mut message).map_err(|error| Refusal::new("numbers", error.to_string()))?;
        let covered = covering.cover(kind, words).ok_or_else(|| {
            let text = "the site shares no masks with all of the sites that are to be summed";
            Refusal::new("keys", text)
        })?;
        Ok(Released::cleared(T::from(covered)))
    }

    /// Clears a message that left before, as the site's books have it: it costs nothing again. `same` says whether this is it,
    /// byte for byte; it is asked once what is withheld has been withheld.
    ///
    /// # Errors
    /// A [`Refusal`] that names the rule; `same_answer` where it is not the same.
    pub fn repeat<T: Disclosure>(
        &self,
        message: T,
        same: impl FnOnce(&T) -> bool,
    ) -> Result<Released<T>, Refusal> {
        known_again(self.clear(message)?, same)
    }

    /// The brake: refuses a question that is too steep, and shuts the gate: the refusal itself tells.
    ///
    /// # Errors
    /// A [`Refusal`] by `steepness`.
    pub fn brake(&mut self, steepness: Steepness) -> Result<(), Refusal> {
        self.shut |= steepness.is_too_much();
        self.still_open()
    }

    /// Whether the brake has not shut the gate.
    ///
    /// # Errors
    /// A [`Refusal`] by `steepness`.
    pub fn still_open(&self) -> Result<(), Refusal> {
        match self.shut {
            true => Err(Refusal::shut()),
            false => Ok(()),
        }
    }

    fn clear<T: Disclosure>(&self, mut message: T) -> Result<Released<T>, Refusal> {
        self.still_open()?;
        for content in message.content() {
            self.permits(&content)?;
            self.in_the_clear(content)?;
        }
        Ok(Released::cleared(message))
    }

    /// Nothing that adds up leaves in the clear. Trees do not add up.
    fn in_the_clear(&self, content: Content<'_>) -> Result<(), Refusal> {
        match content {
            Content::Nodes(nodes) => nodes
                .into_iter()
                .try_for_each(|node| nodes::withhold_node(&self.rules, node)),
            Content::Covered => {
                let text = "a message was covered elsewhere than at this gate";
                Err(Refusal::new("sums", text))
            }
            Content::Cohort { .. }
            | Content::Columns { .. }
            | Content::Histograms(_)
            | Content::SecondMoments
            | Content::Tables(_)
            | Content::HeldOut(_)
            | Content::Errors(_)
            | Content::Tabulated
            | Content::LocalUpdate
            | Content::PairSums
            | Content::Groups { .. }
            | Content::Clusters(_) => {
                let text = "the site's own numbers were about to leave in the clear";
                Err(Refusal::new("sums", text))
            }
        }
    }

    /// Whether what the part needs was asked for with the job, and so granted.
    fn permits(&self, content: &Content<'_>) -> Result<(), Refusal> {
        match content.permission() {
            Some(needed) if !self.permissions.contains(&needed) => Err(needed.not_asked()),
            Some(_) | None => Ok(()),
        }
    }

    /// What the cohort does in a validation in which it need not judge.
    #[must_use]
    pub fn held_out(&self) -> HeldOut {
        self.held_out
    }

    /// Rounds that may still be released.
    #[must_use]
    pub fn rounds_left(&self) -> u64 {
        self.rounds_left
    }

    /// Whether so many rounds may still be released.
    ///
    /// # Errors
    /// A [`Refusal`] by `rounds`.
    pub fn has_rounds(&self, rounds: u64) -> Result<(), Refusal> {
        if self.rounds_left >= rounds {
            return Ok(());
        }
        let text = "the rounds that were admitted with the job are used up";
        Err(Refusal::new("rounds", text))
    }

    /// What was judged at the second door must be what leaves at the third. Zeros say nothing of the classes.
    fn same_cohort(&self, patients: u64, classes: &[u64]) -> Result<(), Refusal> {
        let tells_none = classes.iter().all(|count| *count == 0);
        if patients == self.patients && (tells_none || classes == self.classes) {
            return Ok(());
        }
        let text = "the message is about another cohort than the one that was admitted";
        Err(Refusal::new("patients_min", text))
    }

    /// Covered or not: what a sum over sites tells cannot be withheld once it is a sum.
    /// Groups are of about equal size, so that all are large where they are on the whole.
    fn large_groups(&self, groups: u64, patients: u64) -> Result<(), Refusal> {
        let least = self.rules.cell_min.max(self.rules.patients_min);
        if patients < groups.saturating_mul(least) {
            let text = format!("groups of fewer than {least} patients were about to be summed");
            return Err(Refusal::new("cell_min", text));
        }
        Ok(())
    }

    fn whole_groups(&self, counts: &[u64]) -> Result<(), Refusal> {
        let minimum = self.rules.cell_min;
        if counts.iter().any(|count| cells::is_small(*count, minimum)) {
            let text = format!("a group of fewer than {minimum} patients was about to be released");
            return Err(Refusal::new("cell_min", text));
        }
        Ok(())
    }

    fn rounds(&mut self, rounds: u64) -> Result<(), Refusal> {
        self.has_rounds(rounds)?;
        self.rounds_left -= rounds;
        Ok(())
    }
}

/// A message that left before, where it is the same.
fn known_again<T>(
    released: Released<T>,
    same: impl FnOnce(&T) -> bool,
) -> Result<Released<T>, Refusal> {
    if same(released.value()) {
        return Ok(released);
    }
    let text = "the site gave another answer to this question before, and gives one only";
    Err(Refusal::new("same_answer", text))
}

impl std::fmt::Debug for Gate {
    /// Nothing of the cohort.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gate").finish_non_exhaustive()
    }
}
