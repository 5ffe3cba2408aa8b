//! The part of a run of UnPSL in which the sites judge the metric: by the patients of its training, and where there is a
//! validation by those of each fold.

use super::judging;
use super::learning::Learned;
use super::message::{Finishing, FoldChoice, Request};
use super::rounds::Fit;
use super::settings::UnpslSettings;
use crate::assessment::{
    Assessment, DISTANCE_RULE, EUCLIDEAN_RULE, EvaluationCounts, Gains, INNER_PRODUCT_RULE,
    PAIRS_RULE, SHARE_BINS, score_bins,
};
use crate::exchange::Course;
use crate::failure::{Code, Failure};
use crate::message;
use crate::progress::Ending;
use crate::stage::assessing::Assessed;
use ndarray::Array2;
use similarity::learn::unpsl::Form;
use std::sync::Arc;

/// The best of the starts.
#[derive(Debug, Clone)]
pub(super) struct Best {
    pub(super) fit: Fit,
    pub(super) ending: Ending,
    pub(super) metric: Arc<Array2<f64>>,
    /// The metrics of a validation, one a fold.
    pub(super) folds: Arc<Vec<Array2<f64>>>,
    /// What was chosen for each; empty where all have the settings of the whole.
    chosen: Arc<Vec<FoldChoice>>,
    /// Sites whose held-out patients judge.
    pub(super) judges: u32,
    form: Form,
    neighbours: u32,
    classes: usize,
    round_limit: u32,
    /// Whether physicians have judged pairs, and so pairs of held-out patients.
    is_of_pairs: bool,
}

impl Best {
    /// To be judged by patients of so many classes.
    pub(super) fn new(
        learned: Learned,
        chosen: Arc<Vec<FoldChoice>>,
        settings: &UnpslSettings,
        (classes, judges): (usize, u32),
    ) -> Self {
        Self {
            metric: Arc::new(learned.fit.metric().clone()),
            folds: learned.folds.unwrap_or_default(),
            chosen,
            judges,
            form: settings.objective.form,
            fit: learned.fit,
            ending: learned.ending,
            neighbours: settings.neighbours,
            classes,
            round_limit: settings.round_limit,
            is_of_pairs: settings.supervision.wants_judgements(),
        }
    }

    /// (4.19) at the metric, from the sum over the sites; none where it has no such term.
    pub(super) fn objective(&mut self, found: &Assessment) -> Result<Option<f64>, Failure> {
        let Some(losses) = found.objective else {
            return Ok(None);
        };
        let objective = losses + self.fit.sparsity_term();
        if !objective.is_finite() {
            let text = "the objective at the end is not a finite number";
            return Err(Failure::new(Code::Numbers, text));
        }
        self.fit.judge_last(objective);
        Ok(Some(objective))
    }
}

impl Assessed for Best {
    fn phase(&self) -> &'static str {
        "finishing"
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Unpsl(Request::Finish(Finishing {
            consensus: Arc::clone(&self.metric),
            form: self.form,
            neighbours: self.neighbours,
            folds: Arc::clone(&self.folds),
            judges: self.judges,
            chosen: Arc::clone(&self.chosen),
        })))
    }

    fn blank(&self) -> Assessment {
        Tables {
            neighbours: self.neighbours,
            // Shares of different numbers of neighbours have the bins of a share.
            of_folds: match self.chosen.is_empty() {
                true => self.neighbours,
                false => 0,
            },
            classes: self.classes,
            has_weights: self.metric.iter().any(|entry| *entry != 0.0),
            is_validated: !self.folds.is_empty(),
            is_of_pairs: self.is_of_pairs,
        }
        .blank()
    }

    fn judge(&self, found: &Assessment, patients: u64) -> Result<(), Failure> {
        judging::assessment(found, self.classes, !self.folds.is_empty(), patients)
    }

    fn course(&self) -> Course {
        self.fit.course(self.round_limit)
    }
}

/// What decides which tables the sites count of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables {
    pub(super) neighbours: u32,
    /// Neighbours in the folds; 0 where each fold has its own number.
    pub(super) of_folds: u32,
    pub(super) classes: usize,
    /// Whether patients are similar by the metric at all.
    pub(super) has_weights: bool,
    /// Whether others were held out.
    pub(super) is_validated: bool,
    /// Whether physicians have judged pairs, and so pairs of held-out patients.
    pub(super) is_of_pairs: bool,
}

impl Tables {
    /// The tables, over nobody.
    pub(super) fn blank(self) -> Assessment {
        let rules = [DISTANCE_RULE, INNER_PRODUCT_RULE, EUCLIDEAN_RULE];
        let nearest = |rule| self.nearest(rule, self.neighbours);
        let held_out = || pairs(Some(vec![vec![0; SHARE_BINS]; 2]));
        Assessment {
            objective: Some(0.0),
            evaluation: match self.has_weights {
                false => vec![self.nearest(EUCLIDEAN_RULE, self.neighbours)],
                true => rules
                    .map(nearest)
                    .into_iter()
                    .chain([pairs(None)])
                    .collect(),
            },
            validation: match self.is_validated {
                false => Vec::new(),
                true => {
                    let pairs = self.is_of_pairs.then(held_out);
                    let tables = rules.map(|rule| self.held_out(rule));
                    tables.into_iter().chain(pairs).collect()
                }
            },
            ..Assessment::default()
        }
    }

    fn nearest(self, rule: &str, neighbours: u32) -> EvaluationCounts {
        let bins = score_bins(neighbours);
        let scores = (self.classes == 2).then(|| vec![vec![0; bins]; self.classes]);
        EvaluationCounts::new(rule, neighbours, square(self.classes), scores)
    }

    /// The same of held-out patients, compared with the Euclidean distance.
    fn held_out(self, rule: &str) -> EvaluationCounts {
        let is_compared = rule != EUCLIDEAN_RULE;
        EvaluationCounts {
            loss: Some(0.0),
            gains: Gains::blank(is_compared, self.classes),
            ..self.nearest(rule, self.of_folds)
        }
    }
}

fn pairs(scores: Option<Vec<Vec<u64>>>) -> EvaluationCounts {
    EvaluationCounts::new(PAIRS_RULE, 0, square(2), scores)
}

fn square(classes: usize) -> Option<Vec<Vec<u64>>> {
    Some(vec![vec![0; classes]; classes])
}
