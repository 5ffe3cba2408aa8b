//! The third door: every message, one by one.

use crate::admission::{CohortFacts, Refusal};
use crate::cells;
use crate::forest::{self, Errors, TerminalNode};
use crate::policy::Policy;
use crate::released::{Disclosure, Released};

/// What a message carries of a cohort, as far as a rule judges it.
pub enum Content<'message> {
    /// Nothing: a refusal, a problem, a mere "ready".
    Notice,
    /// The cohort's size and the sizes of its classes.
    Cohort {
        /// Patients.
        patients: u64,
        /// Patients of each class; empty where the message tells none.
        classes: &'message [u64],
    },
    /// Moments of features, each over the whole cohort.
    Columns {
        /// Patients of the cohort.
        patients: u64,
        /// One a feature.
        columns: Vec<Column<'message>>,
    },
    /// Histograms of features, each over the values present in the whole cohort.
    Histograms(Vec<Histogram<'message>>),
    /// Second moments X'X (d x d) of the patients.
    SecondMoments,
    /// One round's local update of a model, fitted to the whole cohort.
    LocalUpdate,
    /// Tables of patients by right and predicted class; a rule sets to none what it withholds.
    Tables(Vec<&'message mut Option<Vec<Vec<u64>>>>),
    /// Tables of held-out patients by right and wrong, which count as a round: without a limit a model
    /// made for the purpose could be asked about again and again.
    Validation(Vec<&'message mut Option<Vec<Vec<u64>>>>),
    /// A regression with so many free parameters.
    Regression {
        /// Its free parameters.
        parameters: u64,
    },
    /// The trees of a forest, by their terminal nodes.
    Trees(Vec<TerminalNode<'message>>),
    /// How well a forest predicts the whole cohort, as [`Content::Tables`] and as sums of errors.
    Judgement {
        /// Patients by right and predicted class.
        tables: Vec<&'message mut Option<Vec<Vec<u64>>>>,
        /// Sums of errors.
        errors: Vec<Errors<'message>>,
    },
}

/// The moments of one feature.
pub enum Column<'message> {
    /// Sums over the values present.
    Numeric {
        /// Values present.
        count: &'message mut u64,
        /// Their sum.
        sum: &'message mut f64,
        /// The sum of their squares.
        sum_squares: &'message mut f64,
        /// Values missing.
        missing: &'message mut u64,
    },
    /// A table of patients by level.
    Categorical {
        /// Patients at each level.
        counts: &'message mut [u64],
        /// Values missing.
        missing: &'message mut u64,
    },
}

/// A histogram of one feature: group i reaches from where the one before ends up to `ends[i]`.
pub struct Histogram<'message> {
    /// Where each group ends, ascending.
    pub ends: &'message mut Vec<u32>,
    /// Values in each.
    pub counts: &'message mut Vec<u64>,
}

/// An admitted job on an admitted cohort: the only maker of [`Released`] messages that carry
/// anything of it.
pub struct Gate {
    policy: Policy,
    patients: u64,
    classes: Vec<u64>,
    rounds_left: u64,
    asked: Asked,
    judged: bool,
}

/// What was admitted with the job beside the usual messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) second_moments: bool,
    pub(crate) forests: bool,
}

impl Gate {
    pub(crate) fn open(
        policy: Policy,
        cohort: &CohortFacts,
        rounds_left: u64,
        asked: Asked,
    ) -> Self {
        Self {
            policy,
            patients: cohort.patients,
            classes: cohort.classes.clone(),
            rounds_left,
            asked,
            judged: false,
        }
    }

    /// Clears one message: counts under `cell_min` are withheld, and what no rule allows is refused.
    ///
    /// Withheld in moments means rounded to 0 or `cell_min`, whichever is nearer, with the largest
    /// count of the same feature taking up the difference, so that counts still add up to the
    /// cohort; sums over fewer than `patients_min` values are left out, as if all were missing.
    /// Withheld in an evaluation means that the whole table is left out.
    /// Withheld in a terminal node of a tree means rounded, as in moments; hazards go by groups of at least
    /// `cell_min` events. Withheld in sums of errors means that both are left out.
    /// Withheld in a histogram means that a group of fewer is joined with the next; its total follows
    /// the moments, so that it does not tell how many values are missing.
    ///
    /// # Errors
    /// A [`Refusal`] that names the rule.
    pub fn release<T: Disclosure>(&mut self, mut message: T) -> Result<Released<T>, Refusal> {
        match message.content() {
            Content::Notice => {}
            Content::Cohort { patients, classes } => self.same_cohort(patients, classes)?,
            Content::Columns { patients, columns } => {
                self.same_cohort(patients, &[])?;
                for column in columns {
                    self.withhold(column)?;
                }
            }
            Content::Histograms(histograms) => {
                for histogram in histograms {
                    self.withhold_histogram(histogram)?;
                }
            }
            Content::SecondMoments => self.second_moments()?,
            Content::LocalUpdate => self.round()?,
            Content::Tables(tables) => self.withhold_tables(tables),
            Content::Validation(tables) => {
                self.round()?;
                self.withhold_tables(tables);
            }
            Content::Regression { parameters } => self.regression(parameters)?,
            Content::Trees(nodes) => {
                self.trees()?;
                for node in nodes {
                    forest::withhold_node(self.policy.rules(), node)?;
                }
            }
            Content::Judgement { tables, errors } => {
                self.judgement()?;
                self.withhold_tables(tables);
                for error in errors {
                    forest::withhold_errors(self.policy.rules(), error);
                }
            }
        }
        Ok(Released::cleared(message))
    }

    /// Rounds that may still be released.
    #[must_use]
    pub fn rounds_left(&self) -> u64 {
        self.rounds_left
    }

    /// What was judged at the second door must be what leaves at the third.
    fn same_cohort(&self, patients: u64, classes: &[u64]) -> Result<(), Refusal> {
        if patients == self.patients && (classes.is_empty() || classes == self.classes) {
            return Ok(());
        }
        let text = "the message tells of another cohort than the one that was admitted";
        Err(Refusal::new("patients_min", text.to_owned()))
    }

    fn withhold(&self, column: Column<'_>) -> Result<(), Refusal> {
        let rules = self.policy.rules();
        let told = match &column {
            Column::Numeric { count, missing, .. } => count.checked_add(**missing),
            Column::Categorical { counts, missing } => counts
                .iter()
                .try_fold(**missing, |sum, count| sum.checked_add(*count)),
        };
        if told != Some(self.patients) {
            let text = "the counts of a feature do not add up to the admitted cohort";
            return Err(Refusal::new("cell_min", text.to_owned()));
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
        let rules = self.policy.rules();
        let Histogram { ends, counts } = histogram;
        let present = counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let missing = present.and_then(|present| self.patients.checked_sub(present));
        let ascend = ends.is_sorted_by(|before, end| before < end);
        let (Some(missing), true) = (missing, ascend && ends.len() == counts.len()) else {
            let text = "a histogram does not fit the admitted cohort";
            return Err(Refusal::new("cell_min", text.to_owned()));
        };
        let present_min = rules.patients_min.max(rules.cell_min);
        cells::withhold_groups(ends, counts, missing, present_min, rules.cell_min);
        Ok(())
    }

    fn second_moments(&self) -> Result<(), Refusal> {
        if self.asked.second_moments {
            return Ok(());
        }
        let text = "second moments were not asked for when the job was admitted";
        Err(Refusal::new("second_moments", text.to_owned()))
    }

    fn round(&mut self) -> Result<(), Refusal> {
        let Some(left) = self.rounds_left.checked_sub(1) else {
            let text = "the rounds that were admitted with the job are used up";
            return Err(Refusal::new("rounds_per_cohort_max", text.to_owned()));
        };
        self.rounds_left = left;
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // exact below 2^53
    fn regression(&self, parameters: u64) -> Result<(), Refusal> {
        let maximum = self.policy.rules().parameters_per_patient_max;
        if parameters as f64 <= maximum * self.patients as f64 {
            return Ok(());
        }
        let text = format!(
            "the regression has {parameters} free parameters on {} patients, the site allows \
             {maximum} a patient",
            self.patients
        );
        Err(Refusal::new("parameters_per_patient_max", text))
    }

    fn withhold_tables(&self, tables: Vec<&mut Option<Vec<Vec<u64>>>>) {
        let minimum = self.policy.rules().cell_min;
        for table in tables {
            if forest::has_small_cell(table, minimum) {
                *table = None;
            }
        }
    }

    /// Trees are a round of the run.
    fn trees(&mut self) -> Result<(), Refusal> {
        if !self.asked.forests {
            let text = "trees were not asked for when the job was admitted";
            return Err(Refusal::new("forests", text.to_owned()));
        }
        self.round()
    }

    /// One judgement a run: two, of forests that differ little, would tell of single patients.
    fn judgement(&mut self) -> Result<(), Refusal> {
        if self.judged {
            let text = "a forest was judged before in this run, and one judgement was admitted";
            return Err(Refusal::new("runs_per_cohort_max", text.to_owned()));
        }
        self.judged = true;
        Ok(())
    }
}

impl std::fmt::Debug for Gate {
    /// Nothing of the cohort.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gate").finish_non_exhaustive()
    }
}
