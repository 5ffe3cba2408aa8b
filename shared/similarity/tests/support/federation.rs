//! Sites in one process, and both kinds of consensus over them, counting rounds.

use ndarray::{Array2, s};
use similarity::learn::unpsl::accelerated::{
    Knowledge, LEAD, Search, SearchSettings, search_sites,
};
use similarity::learn::unpsl::{
    Form, Labels, PooledLimits, Settings, SiteObjective, Summary, Threshold, Totals, led,
    minimise_pooled, objective, start, summarise,
};
use similarity::numeric::admm::{Consensus, ConsensusSettings};
use similarity::numeric::seed::Seed;
use similarity::synthetic::labelled_pairs;

/// The default of a job.
pub const TOLERANCE: f64 = 2e-7;
pub const ROUNDS_MAX: usize = 60;

pub const FORMS: [(Form, Threshold); 5] = [
    (Form::InnerProduct, Threshold::Fixed(1.0)),
    (Form::InnerProduct, Threshold::Site),
    (Form::InnerProduct, Threshold::Common(1.0)),
    (Form::Distance, Threshold::Site),
    (Form::Distance, Threshold::Fixed(1.0)),
];

const LOCAL_TOLERANCE: f64 = 1e-6;
const LOCAL_STEPS: usize = 40;
/// Data of more features go by active sets.
const WIDE: usize = 400;

/// What one site holds: standardised patients and their labels.
pub struct Part {
    pub patients: Array2<f64>,
    pub labels: Labels,
}

pub struct Federation {
    pub settings: Settings,
    pub sites: Vec<SiteObjective>,
    pub features: usize,
    /// By how much sums of objectives are known too high or too low.
    pub error: f64,
    /// The pooled minimum of (4.19), the lowest from several starts.
    pub minimum: f64,
}

/// The relative gap of every round's new consensus.
pub struct Run {
    pub gaps: Vec<f64>,
    /// Rounds in which the safeguard acted.
    pub safeguarded: usize,
    pub converged: bool,
    /// Questions, those that only say which rows to ask about included.
    pub questions: usize,
    /// Rows that the last question asked about.
    pub active: usize,
    /// The least objective, and where.
    pub objective: f64,
    pub metric: Array2<f64>,
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
    /// Of the paper's threshold.
    pub fn new(parts: &[Part], rank: usize) -> Self {
        let settings = Settings {
            rank,
            ..Settings::paper()
        };
        let mut federation = Self::unsolved(parts, settings);
        federation.solve(2);
        federation
    }

    /// Without the pooled minimum.
    pub fn unsolved(parts: &[Part], settings: Settings) -> Self {
        let summaries: Vec<Summary> = parts
            .iter()
            .map(|part| summarise(&part.labels, settings.pairs, Seed(1)))
            .collect();
        let totals = Totals::of(&summaries);
        let features = parts[0].patients.ncols();
        let sites: Vec<SiteObjective> = parts
            .iter()
            .map(|part| {
                let x = part.patients.view();
                let secret = Some(Seed(x.nrows() as u64));
                SiteObjective::new(&x, &part.labels, &settings, &totals, Seed(1), secret).unwrap()
            })
            .collect();
        Self {
            settings,
            features,
            sites,
            error: settings.error(&totals),
            minimum: f64::INFINITY,
        }
    }

    /// Finds the pooled minimum from so many starts.
    pub fn solve(&mut self, starts: u64) {
        for index in 0..starts {
            let limits = PooledLimits {
                tolerance: 1e-8,
                iterations: 20_000,
            };
            let start = self.start(100 + index);
            let pooled = minimise_pooled(&self.sites, start, limits).unwrap();
            self.minimum = self.minimum.min(pooled.objective);
        }
    }

    /// The start of a run, as the coordinator makes it.
    pub fn start(&self, index: u64) -> Array2<f64> {
        start(&self.settings, self.features, Seed(9), index)
    }

    fn gap(&self, matrix: &Array2<f64>) -> f64 {
        objective(&self.sites, matrix).unwrap() / self.minimum - 1.0
    }

    /// At most `rounds` rounds of accelerated consensus, until it converges within `tolerance`.
    pub fn accelerated(&self, start: Array2<f64>, rounds: usize, tolerance: f64) -> Run {
        let settings = SearchSettings {
            lambda_sparsity: self.settings.lambda_sparsity,
            form: self.settings.form,
            tolerance,
            tolerance_residual: 1e-3,
        };
        let search = Search::new(settings, start, self.features);
        let mut run = Run {
            gaps: Vec::new(),
            safeguarded: 0,
            converged: false,
            questions: 0,
            active: self.features,
            objective: f64::INFINITY,
            metric: search.best().clone(),
        };
        let mut known = match self.features > WIDE {
            true => Knowledge::wide(),
            false => Knowledge::new(),
        }
        .up_to(self.error);
        run.questions = usize::from(search.rows(&known).is_some());
        let search = search_sites(
            &self.sites,
            search,
            &mut known,
            rounds,
            &mut |search, step| {
                run.questions += 1;
                run.objective = search.objective().unwrap();
                run.safeguarded += usize::from(step.rose);
                run.gaps.push(run.objective / self.minimum - 1.0);
                run.converged = step.converged;
            },
        )
        .unwrap();
        run.metric.assign(search.best());
        run.active = search.rows(&known).map_or(self.features, <[usize]>::len);
        run
    }

    /// Where a run begins plain ADMM: near what the search from `start` would ask after its first questions.
    pub fn led(&self, start: Array2<f64>) -> Array2<f64> {
        let settings = SearchSettings {
            lambda_sparsity: self.settings.lambda_sparsity,
            form: self.settings.form,
            tolerance: TOLERANCE,
            tolerance_residual: 1e-3,
        };
        let search = Search::new(settings, start.clone(), self.features);
        let mut known = Knowledge::new().up_to(self.error);
        let asked = LEAD as usize;
        let search = search_sites(&self.sites, search, &mut known, asked, &mut |_, _| {}).unwrap();
        led(search.question(), &start, self.features)
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
            questions: 0,
            active: self.features,
            objective: f64::INFINITY,
            metric: Array2::zeros((0, 0)),
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
                answers.push(local.matrix);
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
        run.metric.clone_from(consensus.consensus());
        run
    }
}
