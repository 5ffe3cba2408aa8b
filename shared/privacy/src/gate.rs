//! The third door: every message, one by one.

use crate::border::Border;
use crate::content::{Column, Content, Cost, Histogram};
use crate::covered::{Covered, Covering};
use crate::facts::CohortFacts;
use crate::released::{Disclosure, Released};
use crate::rule::{Contributions, Permission, Refusal, Rules};
use crate::sums::{Summand, Words};
use crate::{cells, nodes, predictions};
use std::collections::BTreeSet;

/// What `similarity_max` is raised to, a column of W: the common start of all sites has about 1 per column, and a metric of many
/// columns is not steeper for it.
const SIMILARITY_A_COLUMN: f64 = 4.0;

/// An admitted job on an admitted cohort: the only maker of [`Released`] messages that carry
/// anything of it.
pub struct Gate {
    rules: Rules,
    patients: u64,
    classes: Vec<u64>,
    /// Where the grid of wrong predictions starts.
    border: u64,
    rounds_left: u64,
    /// In which form the job has told what adds up.
    contributions: Contributions,
    /// What was admitted with the job beyond the usual messages.
    permissions: BTreeSet<Permission>,
    /// Whether the cohort takes part in a validation that the job does without where it must.
    validates: bool,
    /// Kinds of message that have left in this run.
    kinds: BTreeSet<String>,
    shut: bool,
}

impl Gate {
    pub(crate) fn open(
        rules: Rules,
        cohort: &CohortFacts,
        rounds_left: u64,
        contributions: Contributions,
        permissions: BTreeSet<Permission>,
        validates: bool,
    ) -> Self {
        Self {
            rules,
            patients: cohort.patients,
            classes: cohort.classes.clone(),
            border: cohort.border,
            rounds_left,
            contributions,
            permissions,
            validates,
            kinds: cohort.so_far.kinds.clone(),
            shut: cohort.so_far.shut,
        }
    }

    /// Clears one message: counts under `cell_min` are withheld, and what no rule allows is refused.
    ///
    /// Withheld in moments means rounded to 0 or `cell_min`, whichever is nearer, with the largest
    /// count of the same feature taking up the difference, so that counts still add up to the
    /// cohort; sums over fewer than `patients_min` values are left out, as if all were missing.
    /// Wrong predictions are told in multiples of `cell_min`, on a grid whose start only the site knows; tables and sums of
    /// errors over fewer than `patients_min` patients or pairs are left out.
    /// How many patients one of two rules alone classes rightly is told of a sum over sites alone, unless `cell_min` is 1.
    /// Withheld in a terminal node of a tree means rounded, as in moments; hazards go by groups of at least
    /// `cell_min` events.
    /// Withheld in a histogram means that a group of fewer is joined with the next; its total follows
    /// the moments, so that it does not tell how many values are missing.
    ///
    /// Every round is counted, and anything else leaves once per run.
    ///
    /// # Errors
    /// A [`Refusal`] that names the rule.
    pub fn release<T: Disclosure>(&mut self, mut message: T) -> Result<Released<T>, Refusal> {
        self.charge(&mut message)?;
        self.clear(message)
    }

    /// Clears one message whose numbers add up over sites, covered, so that they can be read in the sum alone. Small counts
    /// stay as they are, for nobody can tell whose they are. Only in a histogram, whose cells are as fine as values, neighbours
    /// are joined to groups of `cell_min` values, each of which counts in the cell of its mean.
    /// It costs what it costs in the clear.
    ///
    /// # Errors
    /// A [`Refusal`] that names the rule: `sites_min` judges whom it is summed with, `numbers` what no sum can hold.
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
        if let Cost::Rounds(rounds) = Cost::of(&message.content()) {
            self.rounds(rounds)?;
        }
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

    fn charge<T: Disclosure>(&mut self, message: &mut T) -> Result<(), Refusal> {
        let kind = message.kind();
        match Cost::of(&message.content()) {
            Cost::Nothing => Ok(()),
            Cost::Message => self.once(kind),
            Cost::Rounds(rounds) => self.rounds(rounds),
        }
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
                Content::Groups(counts) | Content::Clusters(counts) => {
                    self.whole_groups(&counts)?
                }
                Content::Histograms(histograms) => {
                    for Histogram { counts, .. } in histograms {
                        cells::gather(counts, self.rules.cell_min);
                    }
                }
                _ => {}
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

    /// The brake: refuses a metric of `columns` columns under which a patient's similarity with itself is
    /// `similarity` in the mean, where that is too much, and shuts the gate: the refusal itself tells.
    ///
    /// # Errors
    /// A [`Refusal`] by `similarity_max`.
    #[allow(clippy::cast_precision_loss)] // columns are few
    pub fn brake(&mut self, similarity: f64, columns: usize) -> Result<(), Refusal> {
        let most = self.rules.similarity_max;
        let most = most.max(SIMILARITY_A_COLUMN * columns as f64);
        self.shut |= similarity.is_nan() || similarity > most;
        self.still_open()
    }

    /// Whether the brake has not shut the gate.
    ///
    /// # Errors
    /// A [`Refusal`] by `similarity_max`.
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
            self.in_the_clear(&content)?;
            self.withhold(content)?;
        }
        Ok(Released::cleared(message))
    }

    /// Where a run tells sums, nothing that adds up leaves in the clear. Trees do not add up.
    fn in_the_clear(&self, content: &Content<'_>) -> Result<(), Refusal> {
        match (self.contributions, content) {
            (_, Content::Covered) => {
                let text = "a message was covered elsewhere than at this gate";
                Err(Refusal::new("contributions", text))
            }
            (Contributions::Own, _) | (Contributions::Sums, Content::Nodes(_)) => Ok(()),
            (Contributions::Sums, _) => {
                let text = "the site's own numbers were about to leave in the clear, where the job has sums only";
                Err(Refusal::new("contributions", text))
            }
        }
    }

    /// Whether what the part needs was asked for with the job, and so granted.
    fn permits(&self, content: &Content<'_>) -> Result<(), Refusal> {
        match content.permission() {
            Some(needed) if !self.permissions.contains(&needed) => Err(needed.not_asked()),
            _ => Ok(()),
        }
    }

    /// Withholds of one part what the rules demand, or refuses it.
    fn withhold(&self, content: Content<'_>) -> Result<(), Refusal> {
        let rules = &self.rules;
        match content {
            Content::SecondMoments | Content::LocalUpdate | Content::Covered => Ok(()),
            Content::Tabulated => {
                let text = "tables of patients leave in a sum over sites alone";
                Err(Refusal::new("contributions", text))
            }
            Content::Coefficients(number) => self.few_enough(number),
            Content::Groups(counts) | Content::Clusters(counts) => self.whole_groups(&counts),
            Content::Cohort { patients, classes } => self.same_cohort(patients, classes),
            Content::Columns { patients, columns } => {
                self.same_cohort(patients, &[])?;
                columns
                    .into_iter()
                    .try_for_each(|column| self.withhold_column(column))
            }
            Content::Histograms(histograms) => histograms
                .into_iter()
                .try_for_each(|histogram| self.withhold_histogram(histogram)),
            Content::Nodes(nodes) => nodes
                .into_iter()
                .try_for_each(|node| nodes::withhold_node(rules, node)),
            Content::Tables(tables) => {
                predictions::withhold_tables(rules, self.border(), tables);
                Ok(())
            }
            Content::Paired(paired) => {
                predictions::withhold_paired(rules, paired);
                Ok(())
            }
            Content::HeldOut(counts) => {
                predictions::withhold_held_out(rules, self.border(), counts);
                Ok(())
            }
            Content::Errors(errors) => {
                predictions::withhold_errors(rules, self.border(), errors);
                Ok(())
            }
        }
    }

    /// The grid on which wrong predictions are told.
    fn border(&self) -> Border {
        Border::new(self.border, self.rules.cell_min)
    }

    /// Whether the cohort takes part in a validation that the job does without where a site's rules do not let it be.
    #[must_use]
    pub fn validates(&self) -> bool {
        self.validates
    }

    /// Rounds that may still be released.
    #[must_use]
    pub fn rounds_left(&self) -> u64 {
        self.rounds_left
    }

    /// Whether so many rounds may still be released.
    ///
    /// # Errors
    /// A [`Refusal`] by `rounds_per_cohort_max`.
    pub fn has_rounds(&self, rounds: u64) -> Result<(), Refusal> {
        if self.rounds_left >= rounds {
            return Ok(());
        }
        let text = "the rounds that were admitted with the job are used up";
        Err(Refusal::new("rounds_per_cohort_max", text))
    }

    /// What was judged at the second door must be what leaves at the third.
    fn same_cohort(&self, patients: u64, classes: &[u64]) -> Result<(), Refusal> {
        if patients == self.patients && (classes.is_empty() || classes == self.classes) {
            return Ok(());
        }
        let text = "the message is about another cohort than the one that was admitted";
        Err(Refusal::new("patients_min", text))
    }

    /// Covered or not: what a sum over sites tells cannot be withheld once it is a sum.
    fn whole_groups(&self, counts: &[u64]) -> Result<(), Refusal> {
        let minimum = self.rules.cell_min;
        if counts.iter().any(|count| cells::is_small(*count, minimum)) {
            let text = format!("a group of fewer than {minimum} patients was about to be told");
            return Err(Refusal::new("cell_min", text));
        }
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // both are far below 2^52
    fn few_enough(&self, coefficients: u64) -> Result<(), Refusal> {
        let most = self.rules.parameters_max;
        if coefficients as f64 <= most * self.patients as f64 {
            return Ok(());
        }
        let text = format!(
            "the derivatives of {coefficients} coefficients are more than {most} of the site's patients"
        );
        Err(Refusal::new("parameters_max", text))
    }

    fn withhold_column(&self, column: Column<'_>) -> Result<(), Refusal> {
        let rules = &self.rules;
        let told = match &column {
            Column::Numeric { count, missing, .. } => count.checked_add(**missing),
            Column::Categorical { counts, missing } => counts
                .iter()
                .try_fold(**missing, |sum, count| sum.checked_add(*count)),
        };
        if told != Some(self.patients) {
            let text = "the counts of a feature do not add up to the admitted cohort";
            return Err(Refusal::new("cell_min", text));
        }
        match column {
            Column::Categorical { counts, missing } => {
                cells::withhold_levels(counts, missing, rules.cell_min);
            }
            Column::Numeric {
                count,
                sum,
                sum_squares,
                missing,
            } => {
                let mut sums = cells::Sums {
                    count: *count,
                    sum: *sum,
                    sum_squares: *sum_squares,
                    missing: *missing,
                };
                cells::withhold_sums(&mut sums, rules.patients_min, rules.cell_min);
                (*count, *sum) = (sums.count, sums.sum);
                (*sum_squares, *missing) = (sums.sum_squares, sums.missing);
            }
        }
        Ok(())
    }

    fn withhold_histogram(&self, histogram: Histogram<'_>) -> Result<(), Refusal> {
        let rules = &self.rules;
        let Histogram { ends, counts } = histogram;
        let present = counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let missing = present.and_then(|present| self.patients.checked_sub(present));
        let ascend = ends.is_sorted_by(|before, end| before < end);
        let (Some(missing), true) = (missing, ascend && ends.len() == counts.len()) else {
            let text = "a histogram does not fit the admitted cohort";
            return Err(Refusal::new("cell_min", text));
        };
        let present_min = rules.patients_min.max(rules.cell_min);
        cells::withhold_groups(ends, counts, missing, present_min, rules.cell_min);
        Ok(())
    }

    fn rounds(&mut self, rounds: u64) -> Result<(), Refusal> {
        self.has_rounds(rounds)?;
        self.rounds_left -= rounds;
        Ok(())
    }

    /// Two of a kind, of questions that differ little, would tell of single patients.
    fn once(&mut self, kind: &str) -> Result<(), Refusal> {
        if self.kinds.insert(kind.to_owned()) {
            return Ok(());
        }
        let text =
            format!("a message of the kind {kind} left before in this run, and one was admitted");
        Err(Refusal::new("once_a_run", text))
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
