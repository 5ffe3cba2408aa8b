//! Low-rank sparse similarity, after the abstract of Zhan, Cao, Qian, Chang and Wei ("Low-Rank Sparse Feature Selection for
//! Patient Similarity Learning", ICDM 2016): a generalised Mahalanobis similarity from pairs, whose low rank selects features.
//! The similarity is that of Cao, Ying and Li ("Similarity Metric Learning for Face Recognition", ICCV 2013),
//! s(x, t) = x'G t - (x - t)'M (x - t), here with G symmetric and M positive semidefinite. Over the N labelled pairs it minimises
//!
//! ```text
//! 1/N sum log(1 + exp(-y s)) + lambda_n (||G||_* + ||M||_*) + lambda_r ||[G M]||_{2,1}
//! ```
//!
//! which is convex. A row of [G M] at 0 takes its feature out of both. Adaptive three-operator splitting (Pedregosa and
//! Gidel, ICML 2018) takes the two norms in turns; it holds u in the subdifferential of the row norms, so that the
//! probabilities of the pairs, made smaller until the rest fits the nuclear norms, are a point of the dual problem.

use ndarray::{Array1, Array2, ArrayView2, Axis, Zip, concatenate, s};
use similarity::learn::unpsl::Labels;
use similarity::numeric::linear_algebra::{
    LinearAlgebraError, product, symmetric_eigen, transposed_product,
};
use similarity::numeric::portable::inner_product;
use similarity::numeric::prox::{row_norm_sum, row_norms, shrink_rows};

use super::of_eigenvalues;

/// Steps from one look at the gap to the next.
const STEPS_BETWEEN_GAPS: usize = 20;
const FIRST_STEP: f64 = 1e-2;
/// Of a step that was too long, and of every other.
const SHORTER: f64 = 0.7;
const LONGER: f64 = 1.05;

/// What the norms weigh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRankSettings {
    /// lambda_n.
    pub nuclear: f64,
    /// lambda_r.
    pub rows: f64,
}

impl LowRankSettings {
    /// The settings to choose from, as a path.
    pub(crate) fn grid() -> Vec<Self> {
        let of_rows = |share: f64| {
            [0.3, 0.1, 0.03, 0.01].map(|nuclear| Self {
                nuclear,
                rows: nuclear * share,
            })
        };
        [0.1, 1.0].into_iter().flat_map(of_rows).collect()
    }
}

/// When the search stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRankLimits {
    /// Stop once the duality gap is at most this, relative to the objective.
    pub gap: f64,
    /// Stop after this many steps.
    pub steps: usize,
}

impl Default for LowRankLimits {
    /// 1e-2 and 2,000 steps.
    fn default() -> Self {
        Self {
            gap: 1e-2,
            steps: 2000,
        }
    }
}

/// A similarity.
#[derive(Debug, Clone)]
pub struct LowRank {
    /// G, d x d.
    pub similarity: Array2<f64>,
    /// M, d x d.
    pub distance: Array2<f64>,
    /// The objective here.
    pub objective: f64,
    /// By how much the objective is above its minimum at most, relative to itself.
    pub gap: f64,
}

impl LowRank {
    /// s of every row with every other, m x n.
    #[must_use]
    pub fn scores(&self, rows: &ArrayView2<f64>, others: &ArrayView2<f64>) -> Array2<f64> {
        let own =
            |all: &ArrayView2<f64>| (product(all, &self.distance.view()) * all).sum_axis(Axis(1));
        let joint = &self.similarity + &(&self.distance * 2.0);
        let mapped = product(rows, &joint.view());
        let mut scores = product(&mapped.view(), &others.t());
        scores -= &own(others);
        scores -= &own(rows).insert_axis(Axis(1));
        scores
    }

    /// Features with a row that is not 0.
    #[must_use]
    pub fn selected(&self) -> usize {
        let norms = row_norms(&self.similarity.view()) + row_norms(&self.distance.view());
        norms.iter().filter(|norm| **norm > 0.0).count()
    }
}

/// A solution for each of `path`, which is [`LowRankSettings`] relative to the smallest lambda_n at which G = M = 0 is the
/// minimum; each starts where the last ended.
///
/// # Errors
/// [`LinearAlgebraError`].
pub fn low_rank(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    path: &[LowRankSettings],
    limits: LowRankLimits,
) -> Result<Vec<LowRank>, LinearAlgebraError> {
    let problem = Problem::new(patients, labels);
    let largest = problem.largest_nuclear()?;
    let mut search = Search::new(patients.ncols());
    let solved = path.iter().map(|shares| {
        let settings = LowRankSettings {
            nuclear: shares.nuclear * largest,
            rows: shares.rows * largest,
        };
        search.run(&problem, settings, limits)
    });
    solved.collect()
}

/// Patients and the labels of their pairs.
pub(super) struct Problem<'a> {
    patients: &'a ArrayView2<'a, f64>,
    /// y, n x n; 0 without a label.
    signs: Array2<f64>,
    /// N.
    pairs: f64,
}

/// The loss of [G M], and sigma(-y s) of every pair, n x n; 0 without a label.
struct Fitted {
    loss: f64,
    probabilities: Array2<f64>,
}

/// After a proximal operator of the nuclear norms.
struct Shrunk {
    point: Array2<f64>,
    norms: f64,
}

impl<'a> Problem<'a> {
    pub(super) fn new(patients: &'a ArrayView2<'a, f64>, labels: &Labels) -> Self {
        let count = patients.nrows();
        let signs = Array2::from_shape_fn((count, count), |(one, other)| match one == other {
            true => 0.0,
            false => f64::from(labels.of_pair(one, other)),
        });
        let labelled = signs.iter().filter(|sign| **sign != 0.0).count();
        Self {
            patients,
            signs,
            pairs: (labelled as f64 / 2.0).max(1.0),
        }
    }

    /// The smallest lambda_n at which 0 is the minimum without row norms.
    pub(super) fn largest_nuclear(&self) -> Result<f64, LinearAlgebraError> {
        let features = self.patients.ncols();
        let none = Array2::zeros((features, 2 * features));
        dual_norm(&-self.gradient(&self.fitted(&none)))
    }

    fn fitted(&self, point: &Array2<f64>) -> Fitted {
        let (similarity, distance) = halves(point);
        let at = LowRank {
            similarity: similarity.to_owned(),
            distance: distance.to_owned(),
            objective: 0.0,
            gap: 0.0,
        };
        let mut probabilities = at.scores(self.patients, self.patients);
        let mut loss = 0.0;
        Zip::from(&mut probabilities)
            .and(&self.signs)
            .for_each(|score, sign| {
                let margin = sign * *score;
                let small = (-margin.abs()).exp();
                let one = match margin > 0.0 {
                    true => small / (1.0 + small),
                    false => 1.0 / (1.0 + small),
                };
                if *sign != 0.0 {
                    loss += small.ln_1p() + (-margin).max(0.0);
                }
                *score = one * sign.abs();
            });
        Fitted {
            loss: loss / (2.0 * self.pairs),
            probabilities,
        }
    }

    /// Of the loss, [by G, by M], d x 2d: with c = -y sigma(-y s) the sums of c x_i x_j' and -c (x_i - x_j)(x_i - x_j)' over N.
    fn gradient(&self, fitted: &Fitted) -> Array2<f64> {
        let weights = -(&self.signs * &fitted.probabilities);
        let joint = transposed_product(
            self.patients,
            &product(&weights.view(), self.patients).view(),
        ) / self.pairs;
        let degrees: Array1<f64> = weights.sum_axis(Axis(1)) / self.pairs;
        let own = transposed_product(
            self.patients,
            &(self.patients * &degrees.insert_axis(Axis(1))).view(),
        );
        let by_similarity = &joint * 0.5;
        let by_distance = joint - own;
        concatenate(Axis(1), &[by_similarity.view(), by_distance.view()])
            .expect("two squares of one size")
    }

    /// The dual objective at the probabilities of `fitted`, with `rows` in the subdifferential of the row norms times lambda_r.
    fn dual(
        &self,
        fitted: &Fitted,
        rows: &Array2<f64>,
        settings: LowRankSettings,
    ) -> Result<f64, LinearAlgebraError> {
        let left = -(self.gradient(fitted) + rows);
        let share = (settings.nuclear / dual_norm(&left)?.max(f64::MIN_POSITIVE)).min(1.0);
        let mut entropy = 0.0;
        let term = |p: f64| match p > 0.0 {
            true => -p * p.ln(),
            false => 0.0,
        };
        for probability in &fitted.probabilities {
            let p = share * probability;
            entropy += term(p) + term(1.0 - p);
        }
        Ok(entropy / (2.0 * self.pairs))
    }
}

/// Where the search is; it goes on from one setting to the next.
struct Search {
    /// [G M] after the row norms.
    point: Array2<f64>,
    /// u.
    rows: Array2<f64>,
    step: f64,
}

impl Search {
    fn new(features: usize) -> Self {
        let none = Array2::zeros((features, 2 * features));
        Self {
            point: none.clone(),
            rows: none,
            step: FIRST_STEP,
        }
    }

    fn run(
        &mut self,
        problem: &Problem<'_>,
        settings: LowRankSettings,
        limits: LowRankLimits,
    ) -> Result<LowRank, LinearAlgebraError> {
        // u of another lambda_r may be outside the dual ball of this one
        clip_rows(&mut self.rows, settings.rows);
        let mut best: Option<LowRank> = None;
        for step in 1..=limits.steps.max(1) {
            let shrunk = self.advance(problem, settings)?;
            if step % STEPS_BETWEEN_GAPS != 0 && step < limits.steps {
                continue;
            }
            let found = self.certified(problem, settings, shrunk)?;
            let gap = found.gap;
            if best.as_ref().is_none_or(|best| gap < best.gap) {
                best = Some(found);
            }
            if gap <= limits.gap {
                break;
            }
        }
        Ok(best.expect("the last step is looked at"))
    }

    /// One step, and the point of the nuclear norms.
    fn advance(
        &mut self,
        problem: &Problem<'_>,
        settings: LowRankSettings,
    ) -> Result<Array2<f64>, LinearAlgebraError> {
        let fitted = problem.fitted(&self.point);
        let slope = problem.gradient(&fitted);
        let down = &slope + &self.rows;
        let next = loop {
            let next = shrunk(
                &(&self.point - &(&down * self.step)),
                self.step * settings.nuclear,
            )?
            .point;
            let moved = &next - &self.point;
            let bound = fitted.loss
                + inner_product(&slope.view(), &moved.view())
                + inner_product(&moved.view(), &moved.view()) / (2.0 * self.step);
            if problem.fitted(&next).loss <= bound + 1e-14 || self.step < 1e-12 {
                break next;
            }
            self.step *= SHORTER;
        };
        let raised = &next + &(&self.rows * self.step);
        self.point.assign(&raised);
        shrink_rows(&mut self.point.view_mut(), self.step * settings.rows);
        self.rows = (raised - &self.point) / self.step;
        self.step *= LONGER;
        Ok(next)
    }

    /// The point without the features whose rows are 0, and its gap.
    fn certified(
        &self,
        problem: &Problem<'_>,
        settings: LowRankSettings,
        mut point: Array2<f64>,
    ) -> Result<LowRank, LinearAlgebraError> {
        let features = point.nrows();
        for (feature, norm) in row_norms(&self.point.view()).iter().enumerate() {
            if *norm == 0.0 {
                point.row_mut(feature).fill(0.0);
                point.column_mut(feature).fill(0.0);
                point.column_mut(features + feature).fill(0.0);
            }
        }
        let norms = shrunk(&point, 0.0)?.norms;
        let fitted = problem.fitted(&point);
        let objective =
            fitted.loss + settings.nuclear * norms + settings.rows * row_norm_sum(&point.view());
        let dual = problem.dual(&fitted, &self.rows, settings)?;
        let (similarity, distance) = halves(&point);
        Ok(LowRank {
            similarity: similarity.to_owned(),
            distance: distance.to_owned(),
            objective,
            gap: (objective - dual) / objective.abs().max(f64::MIN_POSITIVE),
        })
    }
}

/// G and M of [G M].
fn halves(point: &Array2<f64>) -> (ArrayView2<'_, f64>, ArrayView2<'_, f64>) {
    let features = point.nrows();
    (
        point.slice(s![.., ..features]),
        point.slice(s![.., features..]),
    )
}

fn symmetric_part(matrix: &ArrayView2<f64>) -> Array2<f64> {
    (matrix + &matrix.t()) * 0.5
}

/// The proximal operator of `threshold` times the nuclear norms over symmetric G and positive semidefinite M.
fn shrunk(point: &Array2<f64>, threshold: f64) -> Result<Shrunk, LinearAlgebraError> {
    let (similarity, distance) = halves(point);
    let eigen = symmetric_eigen(&symmetric_part(&similarity))?;
    let soft = |value: f64| value.signum() * (value.abs() - threshold).max(0.0);
    let similarity = of_eigenvalues(&eigen, soft);
    let mut norms: f64 = eigen.values.iter().map(|value| soft(*value).abs()).sum();
    let eigen = symmetric_eigen(&symmetric_part(&distance))?;
    let soft = |value: f64| (value - threshold).max(0.0);
    let distance = of_eigenvalues(&eigen, soft);
    norms += eigen.values.iter().map(|value| soft(*value)).sum::<f64>();
    let point = concatenate(Axis(1), &[similarity.view(), distance.view()]);
    Ok(Shrunk {
        point: point.expect("two squares of one size"),
        norms,
    })
}

/// The smallest lambda_n at which a slope is one of lambda_n times the nuclear norms at 0.
fn dual_norm(slope: &Array2<f64>) -> Result<f64, LinearAlgebraError> {
    let (similarity, distance) = halves(slope);
    let of_similarity = symmetric_eigen(&symmetric_part(&similarity))?.values;
    let of_distance = symmetric_eigen(&symmetric_part(&distance))?.values;
    let largest = of_similarity
        .iter()
        .map(|value| value.abs())
        .fold(0.0, f64::max);
    Ok(of_distance.iter().copied().fold(largest, f64::max))
}

/// Rows of a length of `limit` at most.
fn clip_rows(matrix: &mut Array2<f64>, limit: f64) {
    let norms = row_norms(&matrix.view());
    for (mut row, norm) in matrix.rows_mut().into_iter().zip(&norms) {
        if *norm > limit {
            row *= limit / norm;
        }
    }
}
