//! Searches of several problems side by side: every exchange asks at the metrics of all that are still open, and within a
//! problem every answer teaches every lambda_1 and every rank.

use ndarray::Array2;
use ndarray::parallel::prelude::*;

use super::{Knowledge, Search};
use crate::learn::unpsl::site::SiteDerivatives;

/// The searches under way, or over: the same in every problem.
#[derive(Debug, Clone)]
pub struct Several {
    problems: Vec<Problem>,
    round_limit: u32,
}

/// One F, of some of the patients or of another form, and the searches of its optima.
#[derive(Debug, Clone)]
struct Problem {
    known: Knowledge,
    cells: Vec<Cell>,
}

/// One search of one problem.
#[derive(Debug, Clone)]
struct Cell {
    search: Search,
    rounds: u32,
    is_open: bool,
}

/// Which search of which problem asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The problem, from 0.
    pub problem: usize,
    /// Its search, from 0.
    pub cell: usize,
}

impl Cell {
    /// Goes on from what is known, in which the answer to its question is one.
    fn absorb(&mut self, known: &Knowledge, smooth: f64, round_limit: u32) {
        let sparsity = self.search.sparsity_term(self.search.question());
        self.rounds += 1;
        let step = self.search.absorb(known, smooth + sparsity);
        let is_over = step.is_some_and(|step| step.converged);
        self.is_open = !is_over && self.rounds < round_limit;
    }
}

impl Several {
    /// Problems of which `known` is known, with their searches, of at most so many rounds each. All searches begin at
    /// W = 0, so that one of each problem asks for all.
    #[must_use]
    pub fn new(problems: Vec<Vec<Search>>, known: &Knowledge, round_limit: u32) -> Self {
        let cell = |search: Search| Cell {
            search,
            rounds: 0,
            is_open: true,
        };
        let problem = |searches: Vec<Search>| Problem {
            known: known.clone(),
            cells: searches.into_iter().map(cell).collect(),
        };
        Self {
            problems: problems.into_iter().map(problem).collect(),
            round_limit,
        }
    }

    /// The searches that ask next, problem by problem; none once all are over.
    pub fn open(&self) -> impl Iterator<Item = Place> + '_ {
        self.problems
            .iter()
            .enumerate()
            .flat_map(|(problem, Problem { known, cells })| {
                let open = cells.iter().enumerate().filter(|(_, cell)| cell.is_open);
                let most = if known.is_empty() { 1 } else { cells.len() };
                open.take(most)
                    .map(move |(cell, _)| Place { problem, cell })
            })
    }

    /// What a search asks: at which W, and about which rows of the derivatives.
    ///
    /// # Panics
    /// Where there is no such search.
    #[must_use]
    pub fn question(&self, place: Place) -> (&Array2<f64>, Option<&[usize]>) {
        let Problem { known, cells } = &self.problems[place.problem];
        let search = &cells[place.cell].search;
        (search.question(), search.rows(known))
    }

    /// Takes the sums of the sites' answers to the questions of some searches, each asked in one round.
    ///
    /// # Panics
    /// Where there is no such search.
    pub fn learn(&mut self, answers: Vec<(Place, SiteDerivatives)>) {
        // As long as a problem has answered of no W, its searches all ask at W = 0, and one of them for all.
        let is_first: Vec<bool> = self
            .problems
            .iter()
            .map(|problem| problem.known.is_empty())
            .collect();
        let mut smooth = vec![Vec::new(); self.problems.len()];
        for (place, answer) in answers {
            let Problem { known, cells } = &mut self.problems[place.problem];
            let search = &cells[place.cell].search;
            let rows = search.rows(known).map(<[usize]>::to_vec);
            let objective = answer.objective;
            let known = known.learn(search.question(), rows.as_deref(), answer);
            smooth[place.problem].push((place.cell, known.unwrap_or(objective)));
        }
        let round_limit = self.round_limit;
        let problems = self.problems.par_iter_mut().zip(smooth).zip(is_first);
        problems.for_each(|((Problem { known, cells }, smooth), is_first)| {
            let mut answered: Vec<Option<f64>> = vec![None; cells.len()];
            for (cell, smooth) in smooth {
                match is_first {
                    true => answered.fill(Some(smooth)),
                    false => answered[cell] = Some(smooth),
                }
            }
            let cells = cells.par_iter_mut().zip(answered);
            cells.for_each(|(cell, smooth)| {
                if let Some(smooth) = smooth {
                    cell.absorb(known, smooth, round_limit);
                }
            });
        });
    }

    /// Whether all that is asked next is finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        let questions = self.searches().map(Search::question);
        questions.flatten().all(|entry| entry.is_finite())
    }

    /// Searches that are over, and all.
    #[must_use]
    pub fn done(&self) -> (usize, usize) {
        let cells = self.problems.iter().flat_map(|problem| &problem.cells);
        let over = cells.clone().filter(|cell| !cell.is_open).count();
        (over, cells.count())
    }

    /// One search of one problem.
    ///
    /// # Panics
    /// Where there is no such search.
    #[must_use]
    pub fn search(&self, place: Place) -> &Search {
        &self.problems[place.problem].cells[place.cell].search
    }

    fn searches(&self) -> impl Iterator<Item = &Search> {
        let cells = self.problems.iter().flat_map(|problem| &problem.cells);
        cells.map(|cell| &cell.search)
    }
}
