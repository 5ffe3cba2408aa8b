//! All searches of a cross-validation side by side ([`Several`]): one problem of each part of the patients and form. They are
//! those of a choice, or those of a validation, which ask beside the rounds of the metric itself.

use super::message::{Answer, Derivatives, Differentiating, Part, Request};
use super::possible::{Possible, asked_rows};
use super::rounds::common_start;
use super::settings::UnpslSettings;
use crate::checks::unexpected;
use crate::exchange::Closed;
use crate::failure::{Code, Failure};
use crate::limits::BATCH_ENTRIES_MAX;
use crate::message;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::learn::unpsl::Loss;
use similarity::learn::unpsl::accelerated::{Place, Search, SearchSettings, Several};
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// lambda_1 among the patients of all `folds` but so many: the sum goes over so many fewer pairs.
pub(super) fn of_folds(lambda: f64, loss: Loss, (folds, left_out): (u32, u32)) -> f64 {
    match loss {
        Loss::Mean => lambda,
        Loss::Sum => lambda * (1.0 - f64::from(left_out) / f64::from(folds)).powi(2),
    }
}

/// The same among those of all but one.
pub(super) fn of_fold(lambda: f64, loss: Loss, folds: u32) -> f64 {
    of_folds(lambda, loss, (folds, 1))
}

/// The searches under way, or over.
#[derive(Debug, Clone)]
pub(crate) struct FoldSearches {
    several: Several,
    /// Which objective each problem is.
    parts: Vec<Part>,
    features: usize,
    possible: Possible,
    /// The searches whose questions are open, in the order in which they are asked.
    batch: Vec<Place>,
    asked: Differentiating,
    /// Which sites answered the last questions; none before the first.
    /// Numbers of an answer that are not theirs.
    reserved: usize,
}

impl FoldSearches {
    /// The searches of each part.
    pub(super) fn start(
        problems: Vec<(Part, Vec<Search>)>,
        (settings, prepared): (&UnpslSettings, &Prepared),
        round_limit: u32,
    ) -> Self {
        let bounded = |searches: Vec<Search>| searches.into_iter().map(Search::bounded).collect();
        let (parts, searches) = problems
            .into_iter()
            .map(|(part, searches)| (part, bounded(searches)))
            .unzip();
        let known = settings.knowledge(prepared);
        let mut all = Self {
            several: Several::new(searches, &known, round_limit),
            parts,
            features: prepared.standardisation.rows().len(),
            possible: Possible::of(settings, prepared),
            batch: Vec::new(),
            asked: Differentiating::default(),
            reserved: 0,
        };
        all.open();
        all
    }

    /// The search of one metric, with the settings of the whole, in every fold.
    pub(crate) fn of_validation(
        settings: &UnpslSettings,
        folds: u32,
        prepared: &Prepared,
        seed: Seed,
    ) -> Self {
        let objective = &settings.objective;
        let own = SearchSettings {
            lambda_sparsity: settings.objective_without_a_fold(folds).lambda_sparsity,
            form: objective.form,
            tolerance: UnpslSettings::VALIDATION_LEFT,
            tolerance_residual: f64::INFINITY,
        };
        let features = prepared.standardisation.rows().len();
        let start = common_start(settings, prepared, seed, 0);
        let search = Search::new(own, start, features);
        let search = match settings.relative_lambda() {
            Some(relative) => search.relative(relative),
            None => search,
        };
        let part = |fold| Part::without(objective.form, fold);
        let problems = (0..folds).map(|fold| (part(fold), vec![search.clone()]));
        let problems = problems.collect();
        let rounds = UnpslSettings::VALIDATION_ROUNDS_MAX;
        Self::start(problems, (settings, prepared), rounds)
    }

    /// What they ask; nothing where all is reserved.
    pub(super) fn asked(&self) -> &Differentiating {
        &self.asked
    }

    pub(crate) fn ask(&self) -> message::Request {
        message::Request::Unpsl(Request::Differentiate(self.asked.clone()))
    }

    pub(crate) fn blank(&self) -> message::Answer {
        let blanks = Derivatives::blanks(&self.asked, self.features);
        message::Answer::Unpsl(Answer::Derivatives(blanks))
    }

    pub(crate) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        self.possible.judge(answer, &self.asked)
    }

    /// Searches that are over, and all.
    pub(crate) fn done(&self) -> (usize, usize) {
        self.several.done()
    }

    /// Leaves so many numbers of the next answer to others.
    pub(super) fn reserve(&mut self, entries: usize) {
        self.reserved = entries;
        self.open();
    }

    /// Takes the answers of a closed exchange; true once all searches are over.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<bool, Failure> {
        let sums = match closed.take_sum()? {
            message::Answer::Unpsl(Answer::Derivatives(sums)) if sums.len() == self.batch.len() => {
                sums
            }
            other => return Err(unexpected(&other, "derivatives")),
        };
        let unfold = |(index, (place, sum)): (usize, (Place, Derivatives))| {
            let rows = asked_rows(&self.asked, index, self.features);
            (place, sum.unfold(rows))
        };
        let batch = std::mem::take(&mut self.batch);
        let answers = batch.into_iter().zip(sums).enumerate().map(unfold);
        self.several.learn(answers.collect());
        if !self.several.is_finite() {
            let text = "the optimisation of the cross-validation diverged";
            return Err(Failure::new(Code::Numbers, text));
        }
        self.open();
        Ok(self.is_over())
    }

    /// Whether all searches are over.
    pub(super) fn is_over(&self) -> bool {
        self.several.open().next().is_none()
    }

    /// The best metrics of search number `cell` of so many `problems`; none where one of them is W = 0.
    pub(crate) fn metrics(
        &self,
        problems: std::ops::Range<usize>,
        cell: usize,
    ) -> Option<Vec<Array2<f64>>> {
        let selected = |metric: &Array2<f64>| metric.iter().any(|entry| *entry != 0.0);
        let metrics = problems.map(|problem| Some(self.metric(problem, cell)).filter(selected));
        metrics.collect()
    }

    /// The best metric of search number `cell` of a problem.
    pub(super) fn metric(&self, problem: usize, cell: usize) -> Array2<f64> {
        self.several.search(Place { problem, cell }).best().clone()
    }

    /// The mean over so many `problems` of lambda_1 of search number `cell`.
    pub(super) fn mean_lambda(&self, problems: std::ops::Range<usize>, cell: usize) -> f64 {
        let count = problems.len().max(1) as f64;
        let of_problem = |problem| {
            self.several
                .search(Place { problem, cell })
                .lambda_sparsity()
        };
        problems.map(of_problem).sum::<f64>() / count
    }

    /// Opens the next exchange, with as many questions as one answer may hold; none once all searches are over.
    fn open(&mut self) {
        let (mut batch, mut metrics, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut entries = self.reserved;
        for place in self.several.open() {
            let (metric, asked) = self.several.question(place);
            entries += Differentiating::entries(asked, self.features, metric.ncols());
            if entries > BATCH_ENTRIES_MAX && !(batch.is_empty() && self.reserved == 0) {
                break;
            }
            batch.push(place);
            metrics.push(metric.clone());
            rows.push(asked.map(<[usize]>::to_vec));
        }
        let parts = batch.iter().map(|place| self.parts[place.problem]);
        self.asked = Differentiating {
            metrics: Arc::new(metrics),
            parts: parts.collect(),
            rows: Arc::new(rows),
        };
        self.batch = batch;
    }
}
