//! What a job asks of a site, and nothing beside it: every question is judged against the job before
//! anything is computed. A coordinator that lies can ask only what the job's author agreed to.

use crate::job::{
    CUTS, ClassWeighting, ConsensusMethod, EVENT_TIMES, FeatureKind, ForestScope, ForestSettings,
    Job, Method, UnpslSettings,
};
use crate::limits::{LOCAL_TOLERANCES, PENALTIES, TOTALS_MAX};
use crate::message::{Growing, Judging, Quartiles, Refusal, Request, Round, SecondMoments, Totals};
use ndarray::Array2;
use similarity::forest::edges::rounded;
use similarity::quantile::Grid;
use similarity::unpsl::CorrelationScope;
use std::collections::BTreeSet;

/// The rule that refuses what the job does not ask.
const QUESTION: &str = "question";
/// The rule that refuses another question of a kind that is asked once.
const ONCE: &str = "once_a_run";
/// Relative error of a number that travelled and was rounded.
const ROUNDING: f64 = 1e-12;
/// The weight of a class at most.
const CLASS_WEIGHT_MAX: f64 = 1e9;

/// What a site knows of its run when it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// Kinds of message that have answered in this run.
    pub kinds: &'k BTreeSet<String>,
    /// Columns of the standardised matrix, once it is prepared.
    pub rows: Option<usize>,
}

impl Job {
    /// Judges a question that was not asked before in this run.
    ///
    /// # Errors
    /// A [`Refusal`] by `question` where the job does not ask it, or not yet; by `once_a_run` where the job asks one of its kind
    /// only.
    pub fn judge(&self, request: &Request, known: Known<'_>) -> Result<(), Refusal> {
        let kind = request.answer_kind();
        let often = match request {
            Request::Describe | Request::Round(_) | Request::Validate { .. } => true,
            Request::Moments
            | Request::Quantiles
            | Request::Prepare { .. }
            | Request::Correlate { .. }
            | Request::Finish { .. }
            | Request::GrowOwn
            | Request::Grow(_)
            | Request::Judge(_) => false,
        };
        if !often && known.kinds.contains(kind) {
            let text = format!(
                "another question was answered by {kind} in this run, and the job asks one; submit \
                 the job again with another seed"
            );
            let rule = ONCE.to_owned();
            return Err(Refusal { rule, text });
        }
        match &self.method {
            Method::Unpsl(settings) => self.judge_unpsl(settings, request, known),
            Method::Forest(settings) => self.judge_forest(settings, request, known),
        }
    }

    fn judge_unpsl(
        &self,
        settings: &UnpslSettings,
        request: &Request,
        known: Known<'_>,
    ) -> Result<(), Refusal> {
        let gridded = self.gridded_columns().len();
        match request {
            Request::Describe => Ok(()),
            Request::Moments => Ok(()),
            Request::Quantiles if gridded == 0 => unasked("a job with medians"),
            Request::Quantiles => after("moments", known),
            Request::Prepare {
                moments,
                quartiles,
                totals,
            } => {
                after("moments", known)?;
                if gridded > 0 {
                    after("quantiles", known)?;
                }
                let every = moments.len() == self.features.len();
                wanted(every, "moments of each feature")?;
                let usable = quartiles.len() == gridded && quartiles.iter().all(rising);
                wanted(usable, "quartiles of each gridded column")?;
                wanted(self.fits(totals), "sums over the job's sites")
            }
            Request::Correlate { second_moments } => {
                let rows = ready(settings, false, known)?;
                judge_correlation(settings, second_moments, rows)
            }
            Request::Round(round) => {
                let rows = ready(settings, true, known)?;
                judge_round(settings, round, rows)
            }
            Request::Validate {
                models, neighbours, ..
            } => {
                let rows = ready(settings, true, known)?;
                judge_validation(settings, models, neighbours, rows)
            }
            Request::Finish {
                consensus,
                neighbours,
            } => {
                let rows = ready(settings, true, known)?;
                fits(settings, consensus, rows, settings.selection.is_some())?;
                let listed = match &settings.selection {
                    Some(selection) => selection.neighbours.contains(neighbours),
                    None => *neighbours == settings.neighbours,
                };
                wanted(listed, "the job's neighbours")
            }
            Request::GrowOwn | Request::Grow(_) | Request::Judge(_) => {
                unasked("what the job's method does")
            }
        }
    }

    /// No more sites than the job has, and counts that can be added up.
    fn fits(&self, totals: &Totals) -> bool {
        let counts = [
            totals.patients,
            totals.pairs.similar,
            totals.pairs.dissimilar,
        ];
        (1..=self.sites.len() as u64).contains(&totals.sites)
            && counts.iter().all(|count| *count <= TOTALS_MAX)
    }

    fn judge_forest(
        &self,
        settings: &ForestSettings,
        request: &Request,
        known: Known<'_>,
    ) -> Result<(), Refusal> {
        let federated = settings.scope == ForestScope::Federated;
        let common = || wanted(federated, "a job of a common forest");
        match request {
            Request::Describe => Ok(()),
            Request::GrowOwn => wanted(!federated, "a job of forests that stay at their sites"),
            Request::Quantiles => common(),
            Request::Grow(growing) => {
                common()?;
                after("quantiles", known)?;
                self.judge_growing(settings, growing)
            }
            Request::Judge(judging) => {
                common()?;
                after("trees", known)?;
                wanted(judged_fit(settings, judging), "at most the job's trees")
            }
            Request::Moments
            | Request::Prepare { .. }
            | Request::Correlate { .. }
            | Request::Round(_)
            | Request::Validate { .. }
            | Request::Finish { .. } => unasked("what the job's method does"),
        }
    }

    fn judge_growing(&self, settings: &ForestSettings, growing: &Growing) -> Result<(), Refusal> {
        let Growing {
            trees,
            edges,
            event_times,
            class_weights,
        } = growing;
        wanted(
            (1..=settings.trees).contains(trees),
            "at most the job's trees",
        )?;
        let mut grids: Vec<Option<Grid>> = vec![None; self.features.len()];
        for gridded in self.gridded_columns() {
            grids[gridded.column] = Some(gridded.grid);
        }
        let fit = edges.len() == grids.len()
            && edges
                .iter()
                .zip(&grids)
                .zip(&self.features)
                .all(|((edges, grid), feature)| match (grid, &feature.kind) {
                    (Some(grid), _) => are_cuts(edges, *grid, CUTS),
                    (None, FeatureKind::Categorical { .. }) => edges.is_empty(),
                    (None, _) => false,
                });
        wanted(
            fit,
            "cut points of three digits within the range of each feature",
        )?;
        let fit = match (self.event_grid(), event_times.split_last()) {
            (None, None) => true,
            (Some(grid), Some((last, others))) => {
                *last == grid.border(grid.cells())
                    && others.iter().all(|time| *time > 0.0 && time < last)
                    && are_cuts(others, grid, EVENT_TIMES - 1)
            }
            _ => false,
        };
        wanted(fit, "event times of three digits up to the horizon")?;
        let weighs = |weight: &f64| match settings.class_weights {
            ClassWeighting::Equal => *weight == 1.0,
            ClassWeighting::Balanced => *weight > 0.0 && *weight <= CLASS_WEIGHT_MAX,
        };
        let classes = self.outcome.kind.classes().len();
        let fit = class_weights.len() == classes && class_weights.iter().all(weighs);
        wanted(fit, "a weight a class")
    }
}

fn judge_round(settings: &UnpslSettings, round: &Round, rows: usize) -> Result<(), Refusal> {
    let Round {
        number: _,
        consensus,
        centre,
        penalty,
        tolerance,
        gradient,
        fold,
    } = round;
    fits(settings, consensus, rows, settings.selection.is_some())?;
    wanted(
        centre.dim() == consensus.dim(),
        "a centre of the consensus's shape",
    )?;
    wanted(centre.iter().all(|x| x.is_finite()), "finite numbers")?;
    wanted(PENALTIES.contains(penalty), "a penalty within its limits")?;
    wanted(
        LOCAL_TOLERANCES.contains(tolerance),
        "a tolerance within its limits",
    )?;
    let told = !gradient || settings.consensus == ConsensusMethod::Accelerated;
    wanted(told, "a gradient only where the job's consensus uses it")?;
    match (fold, &settings.selection) {
        (None, _) => Ok(()),
        (Some(fold), Some(selection)) => wanted(*fold < selection.folds, "one of the job's folds"),
        (Some(_), None) => unasked("a job with a choice"),
    }
}

fn judge_correlation(
    settings: &UnpslSettings,
    second_moments: &SecondMoments,
    rows: usize,
) -> Result<(), Refusal> {
    let pooled = settings.objective.correlation == CorrelationScope::Pooled;
    wanted(pooled, "a job with a pooled correlation")?;
    let SecondMoments { products, sums, .. } = second_moments;
    let finite = products.iter().chain(sums).all(|x| x.is_finite());
    let fit = products.dim() == (rows, rows) && sums.len() == rows && finite;
    wanted(fit, "finite second moments of every row")
}

fn judge_validation(
    settings: &UnpslSettings,
    models: &[Array2<f64>],
    neighbours: &[u32],
    rows: usize,
) -> Result<(), Refusal> {
    let Some(selection) = &settings.selection else {
        return unasked("a job with a choice");
    };
    wanted(models.len() == selection.folds as usize, "a model a fold")?;
    for model in models {
        fits(settings, model, rows, true)?;
    }
    let same = models.windows(2).all(|two| two[0].dim() == two[1].dim());
    wanted(same, "models of one rank")?;
    wanted(neighbours == selection.neighbours, "the job's neighbours")
}

/// Rows of the prepared matrix; `correlated` where the pooled correlation must have come too.
fn ready(settings: &UnpslSettings, correlated: bool, known: Known<'_>) -> Result<usize, Refusal> {
    let Some(rows) = known.rows else {
        return unasked("the preparation first");
    };
    after("prepared", known)?;
    if correlated && settings.objective.correlation == CorrelationScope::Pooled {
        after("correlated", known)?;
    }
    Ok(rows)
}

/// A finite matrix of the travelling shape and the job's rank, or of one of the ranks to choose from.
fn fits(
    settings: &UnpslSettings,
    metric: &Array2<f64>,
    rows: usize,
    choice: bool,
) -> Result<(), Refusal> {
    let ranks: &[usize] = match (&settings.selection, choice) {
        (Some(selection), true) => &selection.rank,
        _ => std::slice::from_ref(&settings.objective.rank),
    };
    let fit =
        metric.nrows() == settings.objective.matrix_rows(rows) && ranks.contains(&metric.ncols());
    wanted(fit, "a metric of the job's rows and rank")?;
    wanted(metric.iter().all(|x| x.is_finite()), "finite numbers")
}

fn rising(quartiles: &Quartiles) -> bool {
    let Quartiles {
        lower,
        median,
        upper,
    } = quartiles;
    let finite = [lower, median, upper].iter().all(|x| x.is_finite());
    finite && lower <= upper
}

/// At most `most` rising numbers of three significant digits, within the grid.
fn are_cuts(cuts: &[f64], grid: Grid, most: usize) -> bool {
    let (low, high) = (rounded(grid.border(0)), rounded(grid.border(grid.cells())));
    let is_cut = |cut: &f64| {
        let near = (rounded(*cut) - cut).abs() <= ROUNDING * cut.abs();
        cut.is_finite() && near && (low..=high).contains(cut)
    };
    cuts.len() <= most && cuts.iter().all(is_cut) && cuts.is_sorted_by(|a, b| a < b)
}

fn judged_fit(settings: &ForestSettings, judging: &Judging) -> bool {
    judging.trees.trees.len() <= settings.trees as usize
}

/// What comes before it must have been answered.
fn after(kind: &str, known: Known<'_>) -> Result<(), Refusal> {
    match known.kinds.contains(kind) {
        true => Ok(()),
        false => unasked(&format!("{kind} first")),
    }
}

fn wanted(fit: bool, wanted: &str) -> Result<(), Refusal> {
    match fit {
        true => Ok(()),
        false => unasked(wanted),
    }
}

fn unasked<T>(wanted: &str) -> Result<T, Refusal> {
    Err(Refusal {
        rule: QUESTION.to_owned(),
        text: format!("the coordinator asked what the job does not, or not yet; wanted {wanted}"),
    })
}
