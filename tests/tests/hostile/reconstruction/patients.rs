//! What sums patients have, and how far these are from sums that were heard.
//!
//! With s_ij = x_i' M x_j, M = W W', and pairs i, j of one site p with its threshold b_p,
//!
//! ```text
//!     f = 1 / N sum_p sum_{i<j} log(1 + exp(-y_ij (s_ij - b_p))),    Gamma = 1 / (2 N) sum_p X_p' A X_p,
//!     T = 1 / N sum_p sqrt(N_p / 2) sum_i r_i x_i x_i' / sqrt(sum_i r_i),
//! ```
//!
//! a_ij = -y_ij / (1 + exp(y_ij (s_ij - b_p))), h_ij = |a_ij| (1 - |a_ij|), r_i = sum_j h_ij.

use ndarray::{Array1, Array2, Axis};

/// The patients of a site, in rows, with their classes.
#[derive(Clone)]
pub(super) struct Patients {
    pub(super) rows: Array2<f64>,
    pub(super) classes: Vec<bool>,
}

/// What the sums of all sites were at one metric, and what each site's threshold was.
pub(super) struct Told {
    pub(super) metric: Array2<f64>,
    pub(super) thresholds: Vec<f64>,
    pub(super) objective: f64,
    pub(super) gradient: Array2<f64>,
    pub(super) curvature: Array2<f64>,
}

/// What the sums of one site are made of.
struct Part {
    /// a_ij, h_ij, and the derivative of h_ij by s_ij.
    slopes: Array2<f64>,
    weights: Array2<f64>,
    bends: Array2<f64>,
    /// r_i, and their sum.
    row_weights: Array1<f64>,
    sum: f64,
    /// sqrt(N_p / 2) / N.
    share: f64,
    loss: f64,
}

impl Patients {
    fn pairs(&self) -> f64 {
        (self.classes.len() * (self.classes.len() - 1) / 2) as f64
    }

    fn part(&self, metric: &Array2<f64>, threshold: f64, all: f64) -> Part {
        let count = self.classes.len();
        let projected = self.rows.dot(metric);
        let similar = projected.dot(&projected.t());
        let [mut slopes, mut weights, mut bends] = [(); 3].map(|()| Array2::zeros((count, count)));
        let mut loss = 0.0;
        for one in 0..count {
            for other in (0..count).filter(|other| *other != one) {
                let is_similar = self.classes[one] == self.classes[other];
                let y = if is_similar { 1.0 } else { -1.0 };
                let margin = y * (similar[[one, other]] - threshold);
                let w = 1.0 / (1.0 + margin.exp());
                loss += 0.5 * (-margin).exp().ln_1p();
                slopes[[one, other]] = -y * w;
                weights[[one, other]] = w * (1.0 - w);
                bends[[one, other]] = -y * w * (1.0 - w) * (1.0 - 2.0 * w);
            }
        }
        let row_weights = weights.sum_axis(Axis(1));
        Part {
            sum: row_weights.sum(),
            share: (0.5 * self.pairs()).sqrt() / all,
            slopes,
            weights,
            bends,
            row_weights,
            loss,
        }
    }

    /// The threshold at which the site's loss is least.
    fn threshold(&self, metric: &Array2<f64>) -> f64 {
        let (mut low, mut high) = (-1e3, 1e3);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            // d loss / d b = - sum of a_ij.
            match self.part(metric, middle, 1.0).slopes.sum() < 0.0 {
                true => high = middle,
                false => low = middle,
            }
        }
        0.5 * (low + high)
    }
}

pub(super) fn pairs(sites: &[Patients]) -> f64 {
    sites.iter().map(Patients::pairs).sum()
}

/// The sums that these patients have at a metric, each site with its best threshold.
pub(super) fn sums(sites: &[Patients], metric: &Array2<f64>) -> Told {
    let best = |site: &Patients| site.threshold(metric);
    sums_at(sites, metric, sites.iter().map(best).collect())
}

/// The sums that these patients have at a metric with these thresholds.
pub(super) fn sums_at(sites: &[Patients], metric: &Array2<f64>, thresholds: Vec<f64>) -> Told {
    let square = || Array2::zeros((metric.nrows(), metric.nrows()));
    let mut told = Told {
        metric: metric.clone(),
        thresholds,
        objective: 0.0,
        gradient: square(),
        curvature: square(),
    };
    add_sums(sites, &mut told);
    told
}

fn add_sums(sites: &[Patients], told: &mut Told) -> Vec<Part> {
    let all = pairs(sites);
    let mut parts = Vec::new();
    for (site, threshold) in sites.iter().zip(&told.thresholds) {
        let part = site.part(&told.metric, *threshold, all);
        told.objective += part.loss / all;
        told.gradient += &(site.rows.t().dot(&part.slopes).dot(&site.rows) / (2.0 * all));
        let scaled = &site.rows * &part.row_weights.view().insert_axis(Axis(1));
        told.curvature += &(site.rows.t().dot(&scaled) * (part.share / part.sum.sqrt()));
        parts.push(part);
    }
    parts
}

/// How far the sums of these patients are from those that were told, each as a share of its size, with what the moments say:
/// columns have the mean 0 at each site, and the mean square 1. Gives the derivative by each row, too.
pub(super) fn misfit(sites: &[Patients], heard: &[Told]) -> (f64, Vec<Array2<f64>>) {
    let (mut misfit, mut slopes) = of_moments(sites);
    let (of_sums, own) = misfit_of_sums(sites, heard);
    misfit += of_sums;
    slopes
        .iter_mut()
        .zip(own)
        .for_each(|(slope, own)| *slope += &own);
    (misfit, slopes)
}

/// [`misfit`], without what the moments say.
pub(super) fn misfit_of_sums(sites: &[Patients], heard: &[Told]) -> (f64, Vec<Array2<f64>>) {
    let all = pairs(sites);
    let mut misfit = 0.0;
    let mut slopes: Vec<Array2<f64>> = sites
        .iter()
        .map(|site| Array2::zeros(site.rows.raw_dim()))
        .collect();
    for told in heard {
        let mut found = Told {
            metric: told.metric.clone(),
            thresholds: told.thresholds.clone(),
            objective: -told.objective,
            gradient: -&told.gradient,
            curvature: -&told.curvature,
        };
        let parts = add_sums(sites, &mut found);
        let product = told.metric.dot(&told.metric.t());
        let sizes = [squares(&told.gradient), squares(&told.curvature)];
        misfit += (found.objective / told.objective).powi(2);
        misfit += squares(&found.gradient) / sizes[0] + squares(&found.curvature) / sizes[1];
        let lost = 2.0 * found.objective / told.objective.powi(2);
        let apart = found.gradient * (2.0 / sizes[0]);
        let bent = found.curvature * (2.0 / sizes[1]);
        for ((site, part), slope) in sites.iter().zip(&parts).zip(&mut slopes) {
            let rows = &site.rows;
            *slope += &(part.slopes.dot(rows).dot(&apart) / all);
            let mut by_similarity = rows.dot(&apart).dot(&rows.t()) * &part.weights / all;
            by_similarity.scaled_add(lost / all, &part.slopes);
            let root = part.sum.sqrt();
            let turned = rows.dot(&bent);
            let scaled = &turned * &part.row_weights.view().insert_axis(Axis(1));
            *slope += &(scaled * (2.0 * part.share / root));
            let sizes = (&turned * rows).sum_axis(Axis(1));
            let whole = sizes.dot(&part.row_weights) / (2.0 * part.sum * root);
            let by_weight = sizes.mapv(|size| part.share * (size / root - whole));
            for ((one, other), entry) in by_similarity.indexed_iter_mut() {
                *entry += (by_weight[one] + by_weight[other]) * part.bends[[one, other]];
            }
            *slope += &by_similarity.dot(rows).dot(&product);
        }
    }
    (misfit, slopes)
}

/// How far columns are from the mean 0 at each site and the mean square 1, with the derivative by each row.
pub(super) fn of_moments(sites: &[Patients]) -> (f64, Vec<Array2<f64>>) {
    let all: usize = sites.iter().map(|site| site.classes.len()).sum();
    let features = sites[0].rows.ncols() as f64;
    let squared: Array1<f64> = sites
        .iter()
        .map(|site| (&site.rows * &site.rows).sum_axis(Axis(0)))
        .fold(Array1::zeros(sites[0].rows.ncols()), |sum, own| sum + own);
    let apart = squared / all as f64 - 1.0;
    let mut misfit = apart.dot(&apart) / features;
    let slope = |site: &Patients| {
        let count = site.classes.len() as f64;
        let means = site.rows.sum_axis(Axis(0)) / count;
        misfit += means.dot(&means) / features;
        let of_means = means.mapv(|mean| 2.0 * mean / (count * features));
        let of_squares = &site.rows * &(&apart * (4.0 / (all as f64 * features)));
        of_squares + of_means
    };
    let slopes = sites.iter().map(slope).collect();
    (misfit, slopes)
}

fn squares(matrix: &Array2<f64>) -> f64 {
    matrix.iter().map(|x| x * x).sum()
}
