//! All searches of a cross-validation side by side: every exchange asks at the metrics of all that are still open, and
//! within a fold every answer teaches every lambda_1 and every rank.

use super::accelerated::derivatives;
use super::message::{Answer, Derivatives, Differentiating, Request};
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
    asked: Arc<Vec<Array2<f64>>>,
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
            known: Knowledge::new(),
            cells: searches.iter().map(cell).collect(),
        };
        let mut all = Self {
            folds: vec![fold; folds as usize],
            features,
            round_limit,
            batch: Vec::new(),
            asked: Arc::default(),
            told: None,
        };
        let first = |fold| Place { fold, cell: 0 };
        all.open((0..folds as usize).map(first).collect());
        all
    }

    pub(super) fn ask(&self) -> message::Request {
        #[allow(clippy::cast_possible_truncation)] // folds are at most FOLDS_MAX
        let folds = self.batch.iter().map(|place| Some(place.fold as u32));
        message::Request::Unpsl(Request::Differentiate(Differentiating {
            metrics: Arc::clone(&self.asked),
            folds: folds.collect(),
        }))
    }

    pub(super) fn blank(&self) -> message::Answer {
        let blank = Derivatives::blank(self.features);
        message::Answer::Unpsl(Answer::Derivatives(vec![blank; self.batch.len()]))
    }

    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        derivatives(answer, self.batch.len(), self.features)
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
        let is_first = self.told.is_none();
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
            let answered = match is_first {
                true => cells.iter_mut(),
                false => cells[place.cell..=place.cell].iter_mut(),
            };
            for cell in answered {
                let sparsity = cell
                    .search
                    .sparsity_term(cell.search.question(), self.features);
                cell.rounds += 1;
                let step = cell.search.absorb(known, smooth + sparsity);
                let is_over = step.is_none_or(|step| step.converged);
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
        let mut open = Vec::new();
        for (fold, searches) in self.folds.iter().enumerate() {
            let cells = searches.cells.iter().enumerate();
            let of_fold = cells.filter(|(_, cell)| cell.is_open);
            open.extend(of_fold.map(|(cell, _)| Place { fold, cell }));
        }
        let is_over = open.is_empty();
        self.open(open);
        Ok(is_over)
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

    /// Opens the next exchange, with as many questions as one answer may hold.
    fn open(&mut self, mut wanted: Vec<Place>) {
        let entries = self.features * (self.features + 1);
        wanted.truncate((BATCH_ENTRIES_MAX / entries.max(1)).max(1));
        let question = |place: &Place| {
            let cells = &self.folds[place.fold].cells;
            cells[place.cell].search.question().clone()
        };
        self.asked = Arc::new(wanted.iter().map(question).collect());
        self.batch = wanted;
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
            let sum = sum.unfold(self.features);
            self.folds[place.fold].known.learn(&self.asked[index], sum);
        }
        Ok(objectives)
    }
}
