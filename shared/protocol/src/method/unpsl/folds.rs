//! All searches of a cross-validation side by side: every exchange asks at the metrics of all that are still open, and
//! within a fold every answer teaches every lambda_1 and every rank.

use super::accelerated::{asked_rows, derivatives};
use super::message::{Answer, Derivatives, Differentiating, Request};
use super::settings::UnpslSettings;
use crate::checks::unexpected;
use crate::exchange::Closed;
use crate::failure::{Code, Failure};
use crate::limits::BATCH_ENTRIES_MAX;
use crate::message;
use ndarray::Array2;
use similarity::learn::unpsl::accelerated::{Knowledge, Search};
use std::sync::Arc;

/// The searches under way, or over.
#[derive(Debug, Clone)]
pub(super) struct FoldSearches {
    folds: Vec<Fold>,
    features: usize,
    round_limit: u32,
    /// The searches whose questions are open, in the order in which they are asked.
    batch: Vec<Place>,
    asked: Differentiating,
    /// Which sites told of the last questions; none before the first.
    told: Option<Vec<bool>>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    fold: usize,
    cell: usize,
}

#[derive(Debug, Clone)]
struct Fold {
    known: Knowledge,
    cells: Vec<Cell>,
}

/// One search of one fold.
#[derive(Debug, Clone)]
struct Cell {
    search: Search,
    rounds: u32,
    is_open: bool,
}

impl FoldSearches {
    /// The same searches in each of so many folds. They all begin at W = 0, so that one of each fold asks for all.
    pub(super) fn start(
        searches: &[Search],
        folds: u32,
        features: usize,
        round_limit: u32,
    ) -> Self {
        let cell = |search: &Search| Cell {
            search: search.clone(),
            rounds: 0,
            is_open: true,
        };
        let fold = Fold {
            known: UnpslSettings::knowledge(features),
            cells: searches.iter().map(cell).collect(),
        };
        let mut all = Self {
            folds: vec![fold; folds as usize],
            features,
            round_limit,
            batch: Vec::new(),
            asked: Differentiating::default(),
            told: None,
        };
        all.open();
        all
    }

    pub(super) fn ask(&self) -> message::Request {
        message::Request::Unpsl(Request::Differentiate(self.asked.clone()))
    }

    pub(super) fn blank(&self) -> message::Answer {
        let blanks = Derivatives::blanks(&self.asked, self.features);
        message::Answer::Unpsl(Answer::Derivatives(blanks))
    }

    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        derivatives(answer, &self.asked, self.features)
    }

    /// Searches that are over, and all.
    pub(super) fn done(&self) -> (usize, usize) {
        let cells = self.folds.iter().flat_map(|fold| &fold.cells);
        let over = cells.clone().filter(|cell| !cell.is_open).count();
        (over, cells.count())
    }

    /// Takes the answers of a closed exchange; true once all searches are over.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<bool, Failure> {
        let told = closed.told.to_vec();
        // As long as a fold has answered of no W, its searches all ask at W = 0, and one of them for all.
        let is_first: Vec<bool> = self
            .folds
            .iter()
            .map(|fold| fold.known.is_empty())
            .collect();
        if self.told.as_ref().is_some_and(|before| *before != told) {
            // The objectives are sums over other sites than before.
            for fold in &mut self.folds {
                fold.known.forget();
                fold.cells.iter_mut().for_each(|cell| cell.search.restart());
            }
        }
        self.told = Some(told);
        let objectives = self.learn(closed)?;
        let batch = std::mem::take(&mut self.batch);
        for (place, smooth) in batch.iter().zip(objectives) {
            let Fold { known, cells } = &mut self.folds[place.fold];
            let answered = match is_first[place.fold] {
                true => cells.iter_mut(),
                false => cells[place.cell..=place.cell].iter_mut(),
            };
            for cell in answered {
                let sparsity = cell.search.sparsity_term(cell.search.question());
                cell.rounds += 1;
                let step = cell.search.absorb(known, smooth + sparsity);
                let is_over = step.is_some_and(|step| step.converged);
                cell.is_open = !is_over && cell.rounds < self.round_limit;
            }
        }
        let is_finite = |cell: &Cell| cell.search.question().iter().all(|entry| entry.is_finite());
        if !self
            .folds
            .iter()
            .flat_map(|fold| &fold.cells)
            .all(is_finite)
        {
            let text = "the rounds of the cross-validation led beyond the finite numbers";
            return Err(Failure::new(Code::Numbers, text));
        }
        self.open();
        Ok(self.batch.is_empty())
    }

    /// The best metrics of the search number `cell`, one a fold; none where one of them is W = 0.
    pub(super) fn metrics(&self, cell: usize) -> Option<Vec<Array2<f64>>> {
        let metric = |fold: &Fold| {
            let best = fold.cells[cell].search.best();
            let selected = best.iter().any(|entry| *entry != 0.0);
            selected.then(|| best.clone())
        };
        self.folds.iter().map(metric).collect()
    }

    /// Opens the next exchange, with as many questions as one answer may hold; none once all searches are over.
    fn open(&mut self) {
        let (mut batch, mut metrics, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut entries = 0;
        'all: for (fold, Fold { known, cells }) in self.folds.iter().enumerate() {
            let of_fold = cells.iter().enumerate().filter(|(_, cell)| cell.is_open);
            let most = if known.is_empty() { 1 } else { cells.len() };
            for (cell, Cell { search, .. }) in of_fold.take(most) {
                let asked = search.rows(known);
                let rank = search.question().ncols();
                entries += Differentiating::entries(asked, self.features, rank);
                if entries > BATCH_ENTRIES_MAX && !batch.is_empty() {
                    break 'all;
                }
                batch.push(Place { fold, cell });
                metrics.push(search.question().clone());
                rows.push(asked.map(<[usize]>::to_vec));
            }
        }
        #[allow(clippy::cast_possible_truncation)] // folds are at most FOLDS_MAX
        let folds = batch.iter().map(|place| Some(place.fold as u32)).collect();
        self.asked = Differentiating {
            metrics: Arc::new(metrics),
            folds,
            rows: Arc::new(rows),
        };
        self.batch = batch;
    }

    /// Learns the sums over the sites; what is left are the sums of their objectives, one a question.
    fn learn(&mut self, closed: &mut Closed<'_>) -> Result<Vec<f64>, Failure> {
        let sums = match closed.take_sum()? {
            message::Answer::Unpsl(Answer::Derivatives(sums)) if sums.len() == self.batch.len() => {
                sums
            }
            other => return Err(unexpected(&other, "derivatives")),
        };
        let mut objectives = Vec::with_capacity(sums.len());
        for (index, (place, sum)) in self.batch.iter().zip(sums).enumerate() {
            objectives.push(sum.objective);
            let sum = sum.unfold(asked_rows(&self.asked, index, self.features));
            let Differentiating { metrics, rows, .. } = &self.asked;
            let known = &mut self.folds[place.fold].known;
            known.learn(&metrics[index], rows[index].as_deref(), sum);
        }
        Ok(objectives)
    }
}
