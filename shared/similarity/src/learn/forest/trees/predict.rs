//! Predictions of a forest, of all trees or of those where a patient is out of bag.

use ndarray::{Array1, Array2, Axis};
use rayon::prelude::*;

use crate::cohort::Column;
use crate::learn::forest::trees::schema::{SchemaMismatch, Table, Target};
use crate::learn::forest::trees::tree::TerminalValues;
use crate::learn::forest::{Forest, Grown, Tree};

/// Patients predicted together by one thread.
const BLOCK: usize = 256;

/// What a forest predicts for n patients: the mean over trees. A patient without any usable tree (never
/// out of bag) has NaN.
#[derive(Clone, PartialEq)]
pub enum Prediction {
    /// Mean outcome, n.
    Numeric(Array1<f64>),
    /// Mean shares of the classes, n x K.
    Classes(Array2<f64>),
    /// Mean cumulative hazard at the schema's event times, n x G.
    CumulativeHazard(Array2<f64>),
}

impl Forest {
    /// Predicts patients from all trees.
    ///
    /// # Errors
    /// [`SchemaMismatch`] where the columns are not the forest's.
    pub fn predict(&self, columns: &[Column]) -> Result<Prediction, SchemaMismatch> {
        let table = self.schema.table(columns)?;
        Ok(self.mean_over_trees(&table, |_, _| true))
    }

    fn mean_over_trees(
        &self,
        table: &Table<'_>,
        usable: impl Fn(usize, usize) -> bool + Sync,
    ) -> Prediction {
        let width = match &self.schema.target {
            Target::Numeric => 1,
            Target::Classes { levels } => levels.len(),
            Target::Survival { event_times } => event_times.len(),
        };
        let mut means = Array2::zeros((table.patients, width));
        means
            .axis_chunks_iter_mut(Axis(0), BLOCK)
            .into_par_iter()
            .enumerate()
            .for_each(|(block, mut rows)| {
                let mut trees_used = vec![0_u32; rows.nrows()];
                for (number, tree) in self.trees.iter().enumerate() {
                    for (place, mut row) in rows.outer_iter_mut().enumerate() {
                        let patient = block * BLOCK + place;
                        if usable(number, patient) {
                            trees_used[place] += 1;
                            let terminal = tree.terminal(table, patient);
                            add_values(tree, terminal, row.as_slice_mut().unwrap_or_default());
                        }
                    }
                }
                for (mut row, used) in rows.outer_iter_mut().zip(trees_used) {
                    row /= f64::from(used);
                }
            });
        match &self.schema.target {
            Target::Numeric => Prediction::Numeric(means.index_axis_move(Axis(1), 0)),
            Target::Classes { .. } => Prediction::Classes(means),
            Target::Survival { .. } => {
                means.accumulate_axis_inplace(Axis(1), |&before, sum| *sum += before);
                Prediction::CumulativeHazard(means)
            }
        }
    }
}

impl Grown {
    /// Predicts every training patient from the trees where it is out of bag.
    ///
    /// # Errors
    /// [`SchemaMismatch`] where the columns are not those of the training patients.
    pub fn predict_out_of_bag(&self, columns: &[Column]) -> Result<Prediction, SchemaMismatch> {
        let table = self.forest.schema.table(columns)?;
        if table.patients != self.in_bag.patients {
            return Err(SchemaMismatch::Patients {
                found: table.patients,
                wanted: self.in_bag.patients,
            });
        }
        Ok(self.forest.mean_over_trees(&table, |tree, patient| {
            self.in_bag.counts[tree * self.in_bag.patients + patient] == 0
        }))
    }
}

/// Adds the values of one terminal node; hazards as steps, not yet cumulated.
fn add_values(tree: &Tree, terminal: u32, sums: &mut [f64]) {
    let ordinal = tree.ordinal(terminal);
    match &tree.values {
        TerminalValues::Numeric(means) => sums[0] += means[ordinal],
        TerminalValues::Classes { classes, shares } => {
            let shares = &shares[ordinal * classes..(ordinal + 1) * classes];
            sums.iter_mut()
                .zip(shares)
                .for_each(|(sum, share)| *sum += share);
        }
        TerminalValues::Survival {
            starts,
            times,
            steps,
        } => {
            for step in starts[ordinal] as usize..starts[ordinal + 1] as usize {
                sums[usize::from(times[step])] += steps[step];
            }
        }
    }
}

impl std::fmt::Debug for Prediction {
    /// Shape only: predictions describe patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, shape) = match self {
            Self::Numeric(means) => ("Numeric", (means.len(), 1)),
            Self::Classes(shares) => ("Classes", shares.dim()),
            Self::CumulativeHazard(hazard) => ("CumulativeHazard", hazard.dim()),
        };
        formatter.debug_tuple(kind).field(&shape).finish()
    }
}
