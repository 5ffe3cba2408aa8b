//! Sites in one process, and both kinds of consensus over them, counting rounds.

use ndarray::{Array2, s};
use similarity::learn::unpsl::{
    Labels, PooledLimits, Settings, SiteObjective, Summary, Totals, minimise_pooled, objective,
    start, summarise,
};
use similarity::numeric::admm::{
    AcceleratedConsensus, AcceleratedSettings, Consensus, ConsensusSettings, Contribution,
    Residuals, SecondMoments,
};
use similarity::numeric::linear_algebra::norm;
use similarity::numeric::seed::Seed;
use similarity::synthetic::labelled_pairs;

const LOCAL_TOLERANCE: f64 = 1e-6;
const LOCAL_STEPS: usize = 40;
/// What a site agent allows a local update.
const SITE_STEPS: usize = 200;

/// What one site holds: standardised patients and their labels.
pub struct Part {
    pub patients: Array2<f64>,
    pub labels: Labels,
}

pub struct Federation {
    pub settings: Settings,
    pub sites: Vec<SiteObjective>,
    pub pair_weights: Vec<f64>,
    pub features: usize,
    pub second_moments: SecondMoments,
    /// The pooled minimum of (4.19), the lowest from several starts.
    pub minimum: f64,
}

/// The relative gap of every round's new consensus.
pub struct Run {
    pub gaps: Vec<f64>,
    /// Rounds in which the safeguard acted.
    pub safeguarded: usize,
    pub converged: bool,
}

impl Run {
    /// The first round with a gap below `limit`.
    pub fn first_below(&self, limit: f64) -> Option<usize> {
        self.gaps
            .iter()
            .position(|gap| *gap < limit)
            .map(|round| round + 1)
    }
}

/// Every column to mean 0 and variance 1; constant columns to 0.
pub fn standardise(mut matrix: Array2<f64>) -> Array2<f64> {
    for mut column in matrix.columns_mut() {
        let mean = column.mean().unwrap();
        column -= mean;
        let scale = column.iter().map(|v| v * v).sum::<f64>() / column.len() as f64;
        if scale > 0.0 {
            column /= scale.sqrt();
        }
    }
    matrix
}

/// Section 5.3: n = 600, d = 10 (30 features), in 3 equal parts.
pub fn synthetic_parts(seed: u64) -> Vec<Part> {
    let made = labelled_pairs(600, 10, Seed(seed));
    let patients = standardise(made.patients);
    (0..3)
        .map(|site| {
            let first = site * 200;
            let label = |(i, j): (usize, usize)| made.labels.of_pair(first + i, first + j);
            Part {
                patients: patients.slice(s![first..first + 200, ..]).to_owned(),
                labels: Labels::pairs(Array2::from_shape_fn((200, 200), label)).unwrap(),
            }
        })
        .collect()
}

impl Federation {
    pub fn new(parts: &[Part], rank: usize) -> Self {
        let settings = Settings {
            rank,
            ..Settings::default()
        };
        let summaries: Vec<Summary> = parts
            .iter()
            .map(|part| summarise(&part.labels, settings.pairs, Seed(1)))
            .collect();
        let totals = Totals::of(&summaries);
        let share = |summary: &Summary| summary.pairs.total() as f64 / totals.pairs.total() as f64;
        let features = parts[0].patients.ncols();
        let sites: Vec<SiteObjective> = parts
            .iter()
            .map(|part| {
                let x = part.patients.view();
                SiteObjective::new(&x, &part.labels, &settings, &totals, Seed(1)).unwrap()
            })
            .collect();
        let mut federation = Self {
            settings,
            pair_weights: summaries.iter().map(share).collect(),
            features,
            second_moments: SecondMoments::Estimated { features },
            sites,
            minimum: f64::INFINITY,
        };
        for index in 0..2 {
            let limits = PooledLimits {
                tolerance: 1e-8,
                iterations: 20_000,
            };
            let pooled =
                minimise_pooled(&federation.sites, federation.start(100 + index), limits).unwrap();
            federation.minimum = federation.minimum.min(pooled.objective);
        }
        federation
    }

    /// The start of a run, as the coordinator makes it.
    pub fn start(&self, index: u64) -> Array2<f64> {
        start(&self.settings, self.features, Seed(9), index)
    }

    fn gap(&self, matrix: &Array2<f64>) -> f64 {
        objective(&self.sites, matrix).unwrap() / self.minimum - 1.0
    }

    /// At most `rounds` rounds of accelerated consensus, until it converges or the gap is below `enough`.
    pub fn accelerated(&self, start: Array2<f64>, penalty: f64, rounds: usize, enough: f64) -> Run {
        let settings = AcceleratedSettings {
            lambda_sparsity: self.settings.lambda_sparsity,
            penalty_start: penalty,
            second_moments: self.second_moments.clone(),
            pair_weights: self.pair_weights.clone(),
            tolerance_absolute: 1e-9,
            tolerance_relative: 1e-6,
        };
        let mut consensus = AcceleratedConsensus::new(start, settings).unwrap();
        let mut run = Run {
            gaps: Vec::new(),
            safeguarded: 0,
            converged: false,
        };
        let mut tolerance: f64 = 1e-4;
        for _ in 0..rounds {
            let answer = |(index, site): (usize, &SiteObjective)| {
                let centre = consensus.centre(index).unwrap();
                let (w, rho) = (consensus.consensus(), consensus.penalty());
                let local = site.solve(w, centre, rho, tolerance, SITE_STEPS).unwrap();
                Some(Contribution {
                    matrix: local.matrix,
                    gradient_at_consensus: local.gradient_at_consensus,
                    objective_at_consensus: local.objective_at_consensus,
                })
            };
            let contributions: Vec<_> = self.sites.iter().enumerate().map(answer).collect();
            let penalty = consensus.penalty();
            let round = consensus.absorb(&contributions).unwrap();
            // as the coordinator has it: inexact early, tighter later
            let Residuals { primal, dual, .. } = round.residuals;
            let size = norm(&consensus.consensus().view());
            tolerance = (0.1 * primal.min(dual / penalty) / size).clamp(1e-9, 1e-4);
            run.safeguarded += usize::from(round.safeguarded);
            run.gaps.push(self.gap(consensus.consensus()));
            run.converged = round.residuals.converged();
            if run.converged || run.gaps.last().is_some_and(|gap| *gap < enough) {
                break;
            }
        }
        run
    }

    /// At most `rounds` rounds of plain ADMM, until the gap is below `enough`.
    pub fn plain(
        &self,
        start: Array2<f64>,
        settings: ConsensusSettings,
        rounds: usize,
        enough: f64,
    ) -> Run {
        let mut consensus = Consensus::new(start, self.sites.len(), settings).unwrap();
        let mut run = Run {
            gaps: Vec::new(),
            safeguarded: 0,
            converged: false,
        };
        for _ in 0..rounds {
            let w = consensus.consensus().clone();
            let mut total = consensus.sparsity_term(&w.view());
            let mut answers = Vec::new();
            for (index, site) in self.sites.iter().enumerate() {
                let centre = consensus.centre(index).unwrap();
                let rho = consensus.penalty();
                let local = site
                    .solve(&w, &centre, rho, LOCAL_TOLERANCE, LOCAL_STEPS)
                    .unwrap();
                total += local.objective_at_consensus;
                answers.push(Some(local.matrix));
            }
            consensus.absorb(&answers).unwrap();
            if settings.penalty.adaptive_rounds > 0 {
                run.safeguarded += usize::from(consensus.observe_objective(total));
            }
            run.gaps.push(self.gap(consensus.consensus()));
            if run.gaps.last().is_some_and(|gap| *gap < enough) {
                break;
            }
        }
        run
    }
}
