//! Few rounds from sums alone: the accelerated consensus.
//!
//! In W the problem is not convex, has an orbit of equal solutions and no good curvature. In M = W W' the smooth part
//!
//! ```text
//! F(M) = sum_p f_p
//! ```
//!
//! is convex, knows neither lambda_1 nor the rank, and its second derivative is nearly a Kronecker product of moments of
//! the pooled patients. Each round the sites are asked at one W (or several) and answer f_p, Gamma_p and T_p
//! ([`SiteDerivatives`]); only their sums over the sites are used. A [`Search`] then minimises a model of F under the group
//! lasso without any message, and asks at the model's minimum. Where the objective rose it goes back to the best point,
//! doubles the model's curvature, and the failed point still teaches. The first question is W = 0, where nothing depends
//! on a start.
//!
//! Of wide data the sites answer Gamma_p and T_p of some active rows alone, and Gamma_p W of all: row k of W stays 0 as long as
//! ||2 (Gamma W)_k|| <= lambda_1, and the worst violators join the next question. The diagonal of Gamma at W = 0 names the
//! first. A model works with the foremost of the rows that it knows.
//!
//! It solves the problem of (4.20) to (4.23): the model's group lasso is (4.22) in the pooled metric T, and (4.21) and (4.23)
//! hold at the end with W_p = W and U_p = -grad f_p(W) / rho. The relatives are K-FAC (Martens, Grosse 2015) and federated
//! Newton methods; the model's curvature in M-space is this project's.

mod arithmetic;
mod knowledge;
mod model;
mod several;
mod sparsity;

use std::borrow::Cow;

use ndarray::{Array2, s};

use super::settings::Form;
use super::site::{ObjectiveError, SiteDerivatives, SiteObjective};
use knowledge::Point;
pub use knowledge::{Knowledge, ROWS_MAX};
use model::{Minimum, Model, Variables};
pub use several::{Place, Several};
pub use sparsity::{LOWERED, RelativeSparsity, strongest};

/// W = 0 is a local minimum under every lambda_1 above 0. Where the model near it says that nothing is left, so many questions
/// under a weaker lambda_1 look farther away before it is believed.
const PROBES_MAX: i32 = 2;
/// By how much weaker, each time.
const PROBE_SHARE: f64 = 0.25;
/// How much steeper a model is after a first step from W = 0 that led upwards: T sees variances alone, and what few patients have
/// has far longer tails.
const STEEPER_AT_ZERO: f64 = 8.0;
/// The longest row of a bounded metric. A feature that hardly varies among the training patients has next to no curvature there, so that
/// a model takes its row far away, where a held-out patient with the feature is like nobody. Of standardised patients
/// a row this long makes a patient's similarity with itself 16 in the mean; metrics of real cohorts come to 4 in all.
pub const LONGEST_ROW: f64 = 4.0;
/// Rounded derivatives show a fall of the objective down to this share of the objective's own rounding error.
const SHOWN: f64 = 1.0 / 16.0;
/// Known points from which a way out of W = 0 is looked for.
const CANDIDATES: usize = 3;

/// After so many questions plain ADMM begins near where the search would ask next ([`led`](super::led)). After fewer the questions have too low
/// a rank, or are too far away on collinear features, where ADMM is slow.
pub const LEAD: u32 = 9;

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchSettings {
    /// lambda_1.
    pub lambda_sparsity: f64,
    /// What the pair loss looks at.
    pub form: Form,
    /// It ends where the model says that at most this share of the objective is left.
    pub tolerance: f64,
    /// And where a proximal gradient step of the pooled objective moves W by at most this share of its norm.
    pub tolerance_residual: f64,
}

/// The search for the best W of one rank under one lambda_1.
#[derive(Debug, Clone)]
pub struct Search {
    settings: SearchSettings,
    /// Where lambda_1 follows from the data: as what share of it, and how often it may still be lowered.
    relative: Option<RelativeSparsity>,
    /// Whether it is still to be found.
    is_open: bool,
    /// No row of a question is longer.
    longest_row: f64,
    /// d.
    features: usize,
    /// Where a model is minimised from as long as the best point is W = 0.
    start: Array2<f64>,
    question: Array2<f64>,
    /// Of wide data the rows of the derivatives that the question asks about, once the best W is not 0.
    active: Vec<usize>,
    best: Array2<f64>,
    objective: Option<f64>,
    scale: f64,
    lipschitz: f64,
    /// Questions under a weaker lambda_1 so far, and whether the open one is such.
    probes: i32,
    is_probe: bool,
}

/// What an answer came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The objective (4.19) at the question that was answered.
    pub objective: f64,
    /// What the model says is left, beside the best objective.
    pub left: f64,
    /// How far a proximal gradient step of the pooled objective moves the best W, beside its norm.
    pub residual: f64,
    /// The objective rose: the search went back.
    pub rose: bool,
    /// Nothing is left within the tolerances.
    pub converged: bool,
}

/// The sum of the sites' answers, in their order; none of no site.
#[must_use]
pub fn sum(answers: impl IntoIterator<Item = SiteDerivatives>) -> Option<SiteDerivatives> {
    answers.into_iter().reduce(|mut sum, other| {
        sum.objective += other.objective;
        sum.gradient += &other.gradient;
        sum.curvature += &other.curvature;
        if let (Some(slope), Some(other)) = (&mut sum.slope, &other.slope) {
            *slope += other;
        }
        sum.threshold.first += other.threshold.first;
        sum.threshold.second += other.threshold.second;
        sum
    })
}

/// The search over sites in one place, for at most so many rounds; `observe` sees it after each that teaches it.
///
/// # Errors
/// [`ObjectiveError::Shape`].
pub fn search_sites(
    sites: &[SiteObjective],
    mut search: Search,
    known: &mut Knowledge,
    rounds: usize,
    observe: &mut dyn FnMut(&Search, &Step),
) -> Result<Search, ObjectiveError> {
    for _ in 0..rounds {
        let question = search.question().clone();
        let answers: Result<Vec<_>, _> = sites
            .iter()
            .map(|site| site.derivatives(&question, search.rows(known)))
            .collect();
        let Some(answer) = sum(answers?) else { break };
        let Some(step) = search.learn(known, answer) else {
            continue;
        };
        observe(&search, &step);
        if step.converged {
            break;
        }
    }
    Ok(search)
}

impl Search {
    /// A search whose first question is W = 0. `start` (of the travelling shape, not 0) only breaks the tie between the
    /// directions in which to leave it.
    #[must_use]
    pub fn new(settings: SearchSettings, start: Array2<f64>, features: usize) -> Self {
        let mut question = start.clone();
        question.slice_mut(s![..features, ..]).fill(0.0);
        Self {
            settings,
            relative: None,
            is_open: false,
            longest_row: f64::INFINITY,
            features,
            best: question.clone(),
            question,
            active: Vec::new(),
            start,
            objective: None,
            scale: 1.0,
            lipschitz: 1.0,
            probes: 0,
            is_probe: false,
        }
    }

    /// The same, with a lambda_1 that follows from the answer at W = 0, whatever the settings say.
    #[must_use]
    pub fn relative(self, relative: RelativeSparsity) -> Self {
        Self {
            relative: Some(relative),
            is_open: true,
            ..self
        }
    }

    /// The same among metrics of which no row is longer than [`LONGEST_ROW`].
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            longest_row: LONGEST_ROW,
            ..self
        }
    }

    /// lambda_1; of a relative one the settings' before the answer at W = 0, and the last one that was tried after it.
    #[must_use]
    pub fn lambda_sparsity(&self) -> f64 {
        self.settings.lambda_sparsity
    }

    /// W that the sites are to be asked at.
    #[must_use]
    pub fn question(&self) -> &Array2<f64> {
        &self.question
    }

    /// The rows of the derivatives that they are to be asked for there, ascending; none where all are. An empty list asks
    /// which rows to begin with.
    #[must_use]
    pub fn rows<'a>(&'a self, known: &'a Knowledge) -> Option<&'a [usize]> {
        let first = known.first()?;
        Some(if self.active.is_empty() {
            first
        } else {
            &self.active
        })
    }

    /// The best W that the sites have answered.
    #[must_use]
    pub fn best(&self) -> &Array2<f64> {
        &self.best
    }

    /// The objective (4.19) there; none before the first answer.
    #[must_use]
    pub fn objective(&self) -> Option<f64> {
        self.objective
    }

    /// The largest curvature of F in W that the last search met: a penalty for the sum of the sites.
    #[must_use]
    pub fn curvature(&self) -> f64 {
        self.lipschitz
    }

    /// The gradient of the smooth part in W at the best point: 2 Gamma W, and dF/db in a last row where all sites learn
    /// a threshold. None before the first answer.
    #[must_use]
    pub fn gradient(&self, known: &Knowledge) -> Option<Array2<f64>> {
        let (point, _) = known.best(self.question.ncols(), self.settings.lambda_sparsity)?;
        let mut gradient = Array2::zeros(self.best.raw_dim());
        if point.rank == gradient.ncols() {
            let entries = gradient.iter_mut().zip(&point.slope);
            entries.for_each(|(to, from)| *to = 2.0 * from);
        }
        if let Some(last) = point.gradient.get(point.count() * point.count()) {
            gradient[[self.features, 0]] = *last;
        }
        Some(gradient)
    }

    /// The search ends only where `share` of what was allowed before is left.
    pub fn demand(&mut self, share: f64) {
        self.settings.tolerance *= share;
    }

    /// Takes the sum of the sites' answers at [`Self::question`], asked with [`Self::rows`], into what is
    /// known, and goes on from there. None where the answer says no more than which rows to ask about.
    pub fn learn(&mut self, known: &mut Knowledge, answer: SiteDerivatives) -> Option<Step> {
        let rows = self.rows(known).map(<[usize]>::to_vec);
        let smooth = known.learn(&self.question, rows.as_deref(), answer)?;
        self.absorb(known, smooth + self.sparsity_term(&self.question))
    }

    /// Goes on from what is known, in which the answer at [`Self::question`] is the last. None where nothing is known.
    pub fn absorb(&mut self, known: &Knowledge, answered: f64) -> Option<Step> {
        if let Some(relative) = self.relative.filter(|_| self.is_open) {
            self.settings.lambda_sparsity = relative.share * known.strongest(self.settings.form)?;
            self.is_open = false;
        }
        let rose = !self.is_probe && self.objective.is_some_and(|best| answered > best);
        if rose {
            let steeper = match self.relative {
                Some(_) if self.is_empty() => STEEPER_AT_ZERO,
                _ => 2.0,
            };
            self.scale *= steeper;
        } else {
            self.scale = (self.scale / 2.0).max(1.0);
        }
        let mut step = self.go_on(known)?;
        while step.converged && self.lower() {
            step = self.go_on(known)?;
        }
        Some(Step {
            objective: answered,
            rose,
            ..step
        })
    }

    /// Whether the best W is 0.
    fn is_empty(&self) -> bool {
        let metric = self.best.slice(s![..self.features, ..]);
        metric.iter().all(|entry| *entry == 0.0)
    }

    /// A smaller lambda_1 where W = 0 is the best, as long as there is one.
    fn lower(&mut self) -> bool {
        let is_empty = self.is_empty();
        match &mut self.relative {
            Some(relative) if is_empty && relative.lowerings > 0 => {
                relative.lowerings -= 1;
                self.settings.lambda_sparsity *= LOWERED;
                self.probes = 0;
                true
            }
            _ => false,
        }
    }

    /// What to ask next by what is known; the step is of the best point.
    fn go_on(&mut self, known: &Knowledge) -> Option<Step> {
        let (lambda, rank) = (self.settings.lambda_sparsity, self.question.ncols());
        let (point, objective) = known.best(rank, lambda)?;
        let centre = &*point.working();
        self.objective = Some(objective);
        let is_empty = centre.is_empty();
        if !is_empty {
            self.best = self.travelling(&centre.variables(), centre);
        } else {
            self.best.slice_mut(s![..self.features, ..]).fill(0.0);
        }
        let model = Model::new(centre, known, self.settings.form, rank, self.scale);
        let mut found = match is_empty {
            false => model.minimise(centre.variables(), lambda, self.lipschitz),
            true => self.leave_zero(&model, centre, lambda),
        };
        let mut from = Cow::Borrowed(centre);
        let enough = self.enough(known, objective);
        let nothing = found.fall <= enough;
        self.is_probe = false;
        if is_empty && nothing {
            if let Some((other, minimum)) = self.elsewhere(known, objective) {
                (from, found) = (other, minimum);
            } else if self.probes < PROBES_MAX {
                self.probes += 1;
                let weaker = lambda * PROBE_SHARE.powi(self.probes);
                found = self.leave_zero(&model, centre, weaker);
                self.is_probe = found.fall > 0.0;
            }
        }
        self.lipschitz = found.lipschitz;
        let left = found.fall / objective.abs().max(f64::MIN_POSITIVE);
        let residual = match is_empty {
            true => 0.0,
            false => model.residual(lambda, found.lipschitz),
        };
        let is_least = found.fall <= enough && residual <= self.settings.tolerance_residual;
        self.question = self.travelling(&found.at, &from);
        // What is best among the bounded metrics is asked about again and again, if nothing ends it.
        let is_at_bound = self.bound_rows() && self.question == self.best;
        let is_least = is_least && centre.violators(lambda).is_empty();
        let converged = !self.is_probe && (is_least || is_at_bound);
        if !is_empty && let Some(before) = self.rows(known) {
            self.active = point.active(before, &self.question, lambda);
        }
        Some(Step {
            objective,
            left,
            residual,
            rose: false,
            converged,
        })
    }

    /// Where a model near another known point says that the objective is lower than `objective`, which is that of W = 0.
    fn elsewhere<'k>(
        &self,
        known: &'k Knowledge,
        objective: f64,
    ) -> Option<(Cow<'k, Point>, Minimum)> {
        let lambda = self.settings.lambda_sparsity;
        let rank = self.question.ncols();
        let enough = self.enough(known, objective);
        let near = |(point, own): (&'k Point, f64)| {
            let point = point.working();
            let model = Model::new(&point, known, self.settings.form, rank, self.scale);
            let mut found = model.minimise(point.variables(), lambda, self.lipschitz);
            found.fall += objective - own;
            let selected = found.at.metric.iter().any(|entry| *entry != 0.0);
            (selected && found.fall > enough).then_some((point, found))
        };
        let candidates = known.others(rank, lambda, CANDIDATES);
        let found = candidates.into_iter().filter_map(near);
        found.reduce(|best, other| {
            if other.1.fall > best.1.fall {
                other
            } else {
                best
            }
        })
    }

    /// A fall of the objective that is not worth a question, or that sums which are known so finely do not show.
    fn enough(&self, known: &Knowledge, objective: f64) -> f64 {
        (self.settings.tolerance * objective.abs()).max(SHOWN * known.error())
    }

    /// Shortens the rows of the question that are too long; whether there is one.
    fn bound_rows(&mut self) -> bool {
        let mut is_bounded = false;
        let mut metric = self.question.slice_mut(s![..self.features, ..]);
        for mut row in metric.rows_mut() {
            let length = row.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
            if length > self.longest_row {
                is_bounded = true;
                let factor = self.longest_row / length;
                row.mapv_inplace(|entry| factor * entry);
            }
        }
        is_bounded
    }

    /// lambda_1 ||W||_{2,1} of a matrix of the travelling shape.
    #[must_use]
    pub fn sparsity_term(&self, matrix: &Array2<f64>) -> f64 {
        let metric = matrix.slice(s![..self.features, ..]);
        self.settings.lambda_sparsity * crate::numeric::prox::row_norm_sum(&metric)
    }

    /// The model's minimum from starts of several lengths: W = 0 is a local minimum under every lambda_1 above 0, so the
    /// way out must begin far enough away.
    fn leave_zero(&self, model: &Model<'_>, centre: &Point, lambda: f64) -> Minimum {
        let from = |length: f64| {
            let rows = centre.rows.iter().flat_map(|row| self.start.row(*row));
            let start = Variables {
                metric: rows.map(|entry| length * entry).collect(),
                threshold: centre.variables().threshold,
            };
            model.minimise(start, lambda, 1.0)
        };
        let (short, long) = (from(0.5), from(2.0));
        if long.fall > short.fall { long } else { short }
    }

    /// Variables near a point, as a matrix of the travelling shape.
    fn travelling(&self, variables: &Variables, near: &Point) -> Array2<f64> {
        let mut matrix = Array2::zeros(self.question.raw_dim());
        let rank = matrix.ncols();
        for (row, values) in near.rows.iter().zip(variables.metric.chunks(rank)) {
            let entries = matrix.row_mut(*row).into_iter().zip(values);
            entries.for_each(|(to, from)| *to = *from);
        }
        if matrix.nrows() > self.features {
            matrix[[self.features, 0]] = variables.threshold;
        }
        matrix
    }
}
