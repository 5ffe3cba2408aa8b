//! What a job chooses about UnPSL, and the common start of all sites.

use ndarray::{Array2, s};
use rand::{Rng, RngExt};

use super::labels::PairCounts;
use super::site::FINE;
use super::totals::Totals;
use crate::numeric::precision::Precision;
use crate::numeric::prox::row_norms;
use crate::numeric::seed::Seed;

/// The sum of the sites' first penalties under the mean loss.
const PENALTY_OF_ALL_SITES: f64 = 0.045;
/// By how much larger they are where questions of the few-rounds search lead: the metric is then far longer than a start.
const PENALTY_WHERE_LED: f64 = 4.0;

/// Partners of a patient at most, where pairs are drawn: a group of so many has a matrix of 8 MB.
pub const PARTNERS_MAX: usize = 500;

/// What of a drawn start joins the metric that questions lead to, row by row.
const DRAWN_WHERE_LED: f64 = 0.05;

/// Settings of the objective; equal at all sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// m, the columns of W: from 1 to the number of features.
    pub rank: usize,
    /// lambda_1, the weight of ||W||_{2,1}; at least 0.
    pub lambda_sparsity: f64,
    /// lambda_2, the weight of the correlation term; at least 0.
    pub lambda_correlation: f64,
    /// What is subtracted from the features before anything is learned.
    pub centring: Centring,
    /// What of two patients the pair loss looks at.
    pub form: Form,
    /// b of (3.2).
    pub threshold: Threshold,
    /// Whether one lambda serves cohorts of any size.
    pub loss: Loss,
    /// How much a site counts under [`Loss::Mean`].
    pub site_weights: SiteWeights,
    /// Whose correlations the correlation term uses.
    pub correlation: CorrelationScope,
    /// Which pairs of patients are compared.
    pub pairs: Pairs,
    /// How much a pair counts.
    pub pair_weights: PairWeights,
    /// How finely a site says its derivatives.
    pub precision: Precision,
}

/// What of two patients the pair loss looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The paper's: softplus(-y_ij (s_ij - b)) with s_ij = x_i' M x_j.
    InnerProduct,
    /// softplus(-y_ij (b - D_ij)) with D_ij = (x_i - x_j)' M (x_i - x_j), by which neighbours are found.
    Distance,
}

/// What is subtracted from the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Centring {
    /// The mean of each site, so that no feature can tell the sites apart.
    Site,
    /// The mean over all sites.
    Pooled,
}

/// The threshold b: patients are similar where s_ij >= b, or D_ij <= b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// A constant; the paper's is 1.
    Fixed(f64),
    /// One for all sites, learned with W from this start.
    Common(f64),
    /// A b_p of each site's own, at which its loss is least for the W at hand; it leaves no site.
    Site,
}

/// How the loss is scaled. N_p is the total pair weight of site p and N that of all sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The paper's: a_p = c_p = 1. With a pooled correlation c_p = N_p / N, which gives (3.8).
    Sum,
    /// a_p = v_p / N_p and c_p = v_p, with v_p the share of the site ([`SiteWeights`]).
    Mean,
}

impl Loss {
    /// What the losses of so many pairs weigh together.
    #[must_use]
    pub fn weight_of(self, pairs: u64) -> f64 {
        match self {
            Self::Sum => pairs as f64,
            Self::Mean => 1.0,
        }
    }
}

/// The share v_p of a site; the shares sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteWeights {
    /// N_p / N: every pair counts alike.
    Pairs,
    /// n_p / n: every patient counts alike.
    Patients,
    /// 1 / P: every site counts alike.
    Equal,
}

/// Whose correlations R the term lambda_2 Tr(W W' (R o R)') uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorrelationScope {
    /// R_p of each site, as (4.19) prints it.
    Site,
    /// One R from the pooled second moments.
    Pooled,
}

/// Which pairs of patients of one site are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// All labelled pairs.
    All,
    /// All labelled pairs within groups that are drawn at random from a seed, so large that every patient has at least this many others,
    /// and at most twice as many.
    PerPatient(usize),
}

/// The weight w_ij of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairWeights {
    /// 1.
    Equal,
    /// N / (2 N_similar) or N / (2 N_dissimilar), counted over all sites: similar and dissimilar pairs
    /// count alike, and the weights still sum to N.
    Balanced,
}

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The rank does not fit the number of features.
    #[error("rank is {found}, wanted 1 to {features}, the number of features")]
    Rank {
        /// The rank asked for.
        found: usize,
        /// Features of the standardised matrix.
        features: usize,
    },
    /// A number is out of its range.
    #[error("{setting} is {found}, wanted {wanted}")]
    Number {
        /// Name of the setting.
        setting: &'static str,
        /// What was given.
        found: f64,
        /// The range.
        wanted: &'static str,
    },
    /// A patient needs a partner, and a group has its matrix in memory.
    #[error("pairs per patient is {found}, wanted 1 to {PARTNERS_MAX}")]
    PairsPerPatient {
        /// The number asked for.
        found: usize,
    },
}

impl Default for Settings {
    /// Rank 8, lambda_1 = 0.003, lambda_2 = 0.0003, a threshold of each site, mean loss over all pairs, exact derivatives.
    fn default() -> Self {
        Self {
            rank: 8,
            lambda_sparsity: 3e-3,
            lambda_correlation: 3e-4,
            centring: Centring::Site,
            form: Form::InnerProduct,
            threshold: Threshold::Site,
            loss: Loss::Mean,
            site_weights: SiteWeights::Pairs,
            correlation: CorrelationScope::Site,
            pairs: Pairs::All,
            pair_weights: PairWeights::Equal,
            precision: Precision::Exact,
        }
    }
}

impl Settings {
    /// The defaults with the paper's threshold, b = 1, and pooled centring.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            centring: Centring::Pooled,
            threshold: Threshold::Fixed(1.0),
            ..Self::default()
        }
    }

    /// Refuses what no objective can be made of, for a matrix with `features` columns.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn check(&self, features: usize) -> Result<(), SettingsError> {
        if self.rank == 0 || self.rank > features {
            return Err(SettingsError::Rank {
                found: self.rank,
                features,
            });
        }
        let lambdas = [
            ("lambda_sparsity", self.lambda_sparsity),
            ("lambda_correlation", self.lambda_correlation),
        ];
        for (setting, found) in lambdas {
            if !found.is_finite() || found < 0.0 {
                return Err(SettingsError::Number {
                    setting,
                    found,
                    wanted: "a number from 0",
                });
            }
        }
        if let Threshold::Fixed(found) | Threshold::Common(found) = self.threshold
            && !found.is_finite()
        {
            let setting = "threshold";
            return Err(SettingsError::Number {
                setting,
                found,
                wanted: "a finite number",
            });
        }
        if let Pairs::PerPatient(found) = self.pairs
            && !(1..=PARTNERS_MAX).contains(&found)
        {
            return Err(SettingsError::PairsPerPatient { found });
        }
        Ok(())
    }

    /// Rows of the travelling matrix: one per feature, and one more where all sites learn one threshold.
    #[must_use]
    pub fn matrix_rows(&self, features: usize) -> usize {
        match self.threshold {
            Threshold::Fixed(_) | Threshold::Site => features,
            Threshold::Common(_) => features + 1,
        }
    }

    /// Features of a matrix of the travelling shape.
    #[must_use]
    pub fn features(&self, matrix: &Array2<f64>) -> usize {
        match self.threshold {
            Threshold::Fixed(_) | Threshold::Site => matrix.nrows(),
            Threshold::Common(_) => matrix.nrows().saturating_sub(1),
        }
    }

    /// A first penalty rho for `sites` sites with `pairs` pairs in all: 0.045 over the sites under the
    /// mean loss, times the pairs under the sum. It fits standardised patients and [`start`], and is
    /// meant to be adapted.
    #[must_use]
    pub fn penalty_start(&self, sites: u64, pairs: u64) -> f64 {
        let share = PENALTY_OF_ALL_SITES / sites.max(1) as f64;
        share * self.loss.weight_of(pairs.max(1))
    }

    /// The same where [`LEAD`](super::accelerated::LEAD) questions have led.
    #[must_use]
    pub fn penalty_led(&self, sites: u64, pairs: u64) -> f64 {
        PENALTY_WHERE_LED * self.penalty_start(sites, pairs)
    }

    /// By how much the objective over all sites, but for a constant, is known too high or too low at most, where each says it rounded by
    /// what one of its patients adds: 0 of exact ones. Half a step of k_p / n_p at site p, whose pairs weigh k_p of all.
    #[must_use]
    pub fn error(&self, totals: &Totals) -> f64 {
        let [sites, patients] = [totals.sites, totals.patients].map(|count| count.max(1) as f64);
        self.half_step(totals)
            * match (self.loss, self.site_weights) {
                (Loss::Mean, SiteWeights::Patients) => sites / patients,
                (Loss::Mean, SiteWeights::Equal) => totals.sizes(self.pairs).inverse_sum / sites,
                (Loss::Mean, SiteWeights::Pairs) | (Loss::Sum, _) => self.of_pairs(totals),
            }
    }

    /// Half a step of a site where one patient weighs as much as all.
    #[must_use]
    pub fn half_step(&self, totals: &Totals) -> f64 {
        match self.precision {
            Precision::Exact => 0.0,
            Precision::Rounded => FINE / 2.0 * self.loss.weight_of(totals.pairs.total()),
        }
    }

    /// The sum of N_p / n_p, relative to N, at most.
    fn of_pairs(&self, totals: &Totals) -> f64 {
        let PairCounts {
            similar,
            dissimilar,
        } = totals.pairs;
        let of_all = totals.patients.saturating_sub(totals.sites) as f64 / 2.0;
        let most = match self.pairs {
            Pairs::All => of_all,
            Pairs::PerPatient(partners) => of_all.min(totals.sites as f64 * partners as f64),
        };
        match self.pair_weights {
            PairWeights::Equal => most / totals.pairs.total().max(1) as f64,
            // All pairs may be of the kind that weighs more, but no site weighs more than all.
            PairWeights::Balanced => {
                let rarer = similar.min(dissimilar).max(1) as f64;
                (most / (2.0 * rarer)).min(1.0 / totals.sizes(self.pairs).smallest)
            }
        }
    }

    /// b at a travelling matrix over `features` features; none where each site has its own.
    #[must_use]
    pub fn threshold_at(&self, matrix: &Array2<f64>, features: usize) -> Option<f64> {
        match self.threshold {
            Threshold::Fixed(value) => Some(value),
            Threshold::Common(_) => Some(matrix[[features, 0]]),
            Threshold::Site => None,
        }
    }
}

/// The common start W^0 of all sites: independent N(0, 1 / d) entries. Smaller ones let the first rounds
/// collapse towards the stationary point W = 0. Starts of different `index` are independent. Equal seeds give equal bits on every
/// machine.
#[must_use]
pub fn start(settings: &Settings, features: usize, seed: Seed, index: u64) -> Array2<f64> {
    let mut stream = seed.stream("start", index);
    let scale = 1.0 / (features as f64).sqrt();
    let mut matrix = Array2::zeros((settings.matrix_rows(features), settings.rank));
    matrix
        .slice_mut(s![..features, ..])
        .mapv_inplace(|_| scale * normal(&mut stream));
    if let Threshold::Common(value) = settings.threshold {
        matrix[[features, 0]] = value;
    }
    matrix
}

/// Where plain ADMM begins after questions: at `question`, with a share of the drawn `start` in every row that is not 0. W of too low a rank is
/// a stationary point of (4.21) at every site, as W = 0 is; only another direction leads out. Of a question at W = 0 it is the start.
#[must_use]
pub fn led(question: &Array2<f64>, start: &Array2<f64>, features: usize) -> Array2<f64> {
    let [lengths, drawn] =
        [question, start].map(|matrix| row_norms(&matrix.slice(s![..features, ..])));
    if lengths.iter().all(|length| *length == 0.0) {
        return start.clone();
    }
    let mut metric = question.clone();
    for (row, (length, drawn)) in lengths.iter().zip(&drawn).enumerate() {
        if *length > 0.0 {
            let share = DRAWN_WHERE_LED * length / drawn.max(f64::MIN_POSITIVE);
            metric.row_mut(row).scaled_add(share, &start.row(row));
        }
    }
    metric
}

/// One standard normal number, by Marsaglia's polar method: its logarithm is `libm`'s, for the system's may differ in the last bit.
fn normal(stream: &mut impl Rng) -> f64 {
    loop {
        let [one, other] = [(); 2].map(|()| 2.0 * stream.random::<f64>() - 1.0);
        let square = one * one + other * other;
        if square > 0.0 && square < 1.0 {
            return one * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits as they were drawn on x86-64 with glibc; nothing in them depends on either.
    #[test]
    fn draws_are_normal_and_have_the_same_bits_everywhere() {
        let mut stream = Seed(7).stream("start", 0);
        let draws: Vec<f64> = (0..20_000).map(|_| normal(&mut stream)).collect();
        let first: Vec<u64> = draws.iter().take(3).map(|draw| draw.to_bits()).collect();
        let wanted = [
            0xbfe1_c236_3250_8fc5,
            0x3ff9_966c_12e1_30d0,
            0x3fec_fb1a_a641_2cfb,
        ];
        assert_eq!(first, wanted);
        let moment = |power| draws.iter().map(|draw| draw.powi(power)).sum::<f64>() / 20_000.0;
        // Five standard errors of each.
        assert!(moment(1).abs() < 0.036 && (moment(2) - 1.0).abs() < 0.05);
        assert!(moment(3).abs() < 0.14 && (moment(4) - 3.0).abs() < 0.35);
    }
}
