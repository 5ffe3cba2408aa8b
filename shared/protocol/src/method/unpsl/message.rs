//! What coordinator and site say to each other in a run of UnPSL.

use crate::assessment::ASSESSMENT;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::Disclosure;
use privacy::sums::{Number, Summand};
use privacy::{Content, HeldOutVotes};
pub use similarity::learn::unpsl::Form;
pub use similarity::learn::unpsl::selection::two_folds;
use similarity::learn::unpsl::{SiteDerivatives, ThresholdDerivatives};
pub use similarity::numeric::admm::{DualStep, MIXED_MAX, UpdateProducts};
use std::sync::Arc;

/// The kind of message that carries derivatives of a site's objective.
const DERIVATIVES: &str = "derivatives";
/// The kind of message that carries a local update.
const CONTRIBUTION: &str = "contribution";
/// The kind of message that carries counts of held-out patients.
const VALIDATION: &str = "validation";

/// Kinds of message that add up over the sites.
pub(crate) const SUMMED_KINDS: [&str; 3] = [DERIVATIVES, CONTRIBUTION, VALIDATION];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A site's objective and its derivatives at some metrics.
    Differentiate(Differentiating),
    /// One local update (4.21).
    Round(Round),
    /// Classify the patients of each fold by their nearest among the other folds' patients.
    Validate(Validating),
    /// The run's model: evaluate it, write local results.
    Finish(Finishing),
}

/// Which objective a metric is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What of two patients the pair loss looks at.
    pub form: Form,
    /// The fold of the cross-validation that is held out, from 0; none where all patients take part.
    pub fold: Option<u32>,
    /// Another fold that is held out as well.
    pub other: Option<u32>,
}

impl Part {
    /// Of all patients.
    #[must_use]
    pub fn whole(form: Form) -> Self {
        Self {
            form,
            fold: None,
            other: None,
        }
    }

    /// Of all but one fold.
    #[must_use]
    pub fn without(form: Form, fold: u32) -> Self {
        let fold = Some(fold);
        Self {
            fold,
            ..Self::whole(form)
        }
    }

    /// The folds that are held out.
    #[must_use]
    pub fn left_out(self) -> Vec<u32> {
        self.fold.into_iter().chain(self.other).collect()
    }
}

/// Metrics at which every site is to tell its objective f_p and the derivatives of f_p in M-space.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Differentiating {
    /// W, of the travelling shape, one a question.
    pub metrics: Arc<Vec<Array2<f64>>>,
    /// Of each metric the objective that it is asked about.
    pub parts: Vec<Part>,
    /// Of each metric the rows of the derivatives that are asked for, ascending; none where all are. An empty list asks for
    /// the diagonal of Gamma_p alone.
    pub rows: Arc<Vec<Option<Vec<usize>>>>,
}

/// One local update (4.21): argmin f_p(V) + penalty/2 ||V - centre||^2, started at `consensus`.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// The consensus W, d x m.
    pub consensus: Arc<Array2<f64>>,
    /// What the update is drawn to.
    pub centre: Centre,
    /// The ADMM penalty rho.
    pub penalty: f64,
    /// Relative gradient tolerance of the local solver.
    pub tolerance: f64,
    /// The objective that is meant.
    pub part: Part,
}

/// W - U_p, by who knows the dual U_p.
#[derive(Debug, Clone, PartialEq)]
pub enum Centre {
    /// The coordinator, which sends the centre, d x m.
    Sent(Array2<f64>),
    /// The site, from its own derivatives: U_p = -grad f_p(W) / penalty, at which (4.21) to (4.23) would leave an optimum
    /// where it is.
    Gradient,
    /// The site, which moves its dual by this step from what it answered before.
    Dual(DualStep),
}

/// Candidates of a cross-validation, to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Validating {
    /// W, d x m: of each candidate one a fold that was held out when it was fitted, and of a nested choice one for [`two_folds`] each,
    /// one candidate after the other.
    pub models: Arc<Vec<Array2<f64>>>,
    /// Folds.
    pub folds: u32,
    /// Whether settings are chosen for each fold without its patients.
    pub nested: bool,
    /// Numbers of neighbours.
    pub neighbours: Vec<u32>,
}

/// The run's model.
#[derive(Debug, Clone, PartialEq)]
pub struct Finishing {
    /// The consensus W, d x m.
    pub consensus: Arc<Array2<f64>>,
    /// What it was learned by.
    pub form: Form,
    /// Neighbours of the k-NN evaluation.
    pub neighbours: u32,
    /// W, d x m, of a validation: one a fold, learnt without its patients; empty where there is none.
    pub folds: Arc<Vec<Array2<f64>>>,
    /// Sites whose held-out patients judge.
    pub judges: u32,
    /// What was chosen for each fold without its patients; empty where all folds have the settings of the whole.
    pub chosen: Arc<Vec<FoldChoice>>,
}

/// Settings of one fold of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldChoice {
    /// What its metric was learned by.
    pub form: Form,
    /// Neighbours.
    pub neighbours: u32,
}

impl Finishing {
    /// The settings of a fold.
    #[must_use]
    pub fn of_fold(&self, fold: usize) -> FoldChoice {
        self.chosen.get(fold).copied().unwrap_or(FoldChoice {
            form: self.form,
            neighbours: self.neighbours,
        })
    }
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// Derivatives, one of each metric that was asked for.
    Derivatives(Vec<Derivatives>),
    /// A local update.
    Contribution(Contribution),
    /// Held-out patients over all folds: how each candidate serves them, one per number of neighbours; of a nested choice then the same over
    /// the other folds of each. None where withheld.
    Validated(Vec<Vec<Option<HeldOutVotes>>>),
}

/// f_p at one metric, and its derivatives. Only their sums over the sites are used.
#[derive(Clone, PartialEq)]
pub struct Derivatives {
    /// f_p: the site's term of (4.19) without the row sparsity.
    pub objective: f64,
    /// First and second derivative with respect to a threshold that all sites learn; 0 where there is none.
    pub threshold: [f64; 2],
    /// The lower triangles of Gamma_p (the first row) and T_p, row by row, of the rows that were asked for.
    pub triangles: Array2<f64>,
    /// Where rows were named: Gamma_p W, d x m; where none of them, the diagonal of Gamma_p, d x 1.
    pub slope: Option<Array2<f64>>,
}

impl Differentiating {
    /// Numbers of the matrices that answer one metric of so many features and such a rank.
    #[must_use]
    pub fn entries(rows: Option<&[usize]>, features: usize, rank: usize) -> usize {
        let count = rows.map_or(features, <[usize]>::len);
        let slope = match rows {
            None => 0,
            Some([]) => features,
            Some(_) => features.saturating_mul(rank),
        };
        count.saturating_mul(count + 1).saturating_add(slope)
    }

    /// The questions of one, then those of the other.
    pub(super) fn joined(one: &Self, other: &Self) -> Self {
        let metrics = one.metrics.iter().chain(other.metrics.iter());
        Self {
            metrics: Arc::new(metrics.cloned().collect()),
            parts: [&one.parts[..], &other.parts].concat(),
            rows: Arc::new(one.rows.iter().chain(other.rows.iter()).cloned().collect()),
        }
    }
}

impl Derivatives {
    /// Numbers of one triangle of so many rows.
    #[must_use]
    pub fn triangle(rows: usize) -> usize {
        rows * (rows + 1) / 2
    }

    /// Nothing, for each metric that is asked about, of so many features.
    #[must_use]
    pub fn blanks(asked: &Differentiating, features: usize) -> Vec<Self> {
        let metrics = asked.metrics.iter().zip(asked.rows.iter());
        let blank = |(metric, rows): (&Array2<f64>, &Option<Vec<usize>>)| {
            let count = rows.as_ref().map_or(features, Vec::len);
            let columns = rows.as_ref().map(|rows| match rows.is_empty() {
                true => 1,
                false => metric.ncols(),
            });
            Self {
                objective: 0.0,
                threshold: [0.0; 2],
                triangles: Array2::zeros((2, Self::triangle(count))),
                slope: columns.map(|columns| Array2::zeros((features, columns))),
            }
        };
        metrics.map(blank).collect()
    }

    /// As they travel.
    #[must_use]
    pub fn fold(own: &SiteDerivatives) -> Self {
        let rows = own.gradient.nrows();
        let mut triangles = Array2::zeros((2, Self::triangle(rows)));
        for (mut to, from) in triangles
            .rows_mut()
            .into_iter()
            .zip([&own.gradient, &own.curvature])
        {
            let lower = from
                .indexed_iter()
                .filter(|((row, column), _)| column <= row);
            to.iter_mut()
                .zip(lower)
                .for_each(|(to, (_, from))| *to = *from);
        }
        Self {
            objective: own.objective,
            threshold: [own.threshold.first, own.threshold.second],
            triangles,
            slope: own.slope.clone(),
        }
    }

    /// Back to matrices of `rows` rows.
    ///
    /// # Panics
    /// Where the triangles are shorter.
    #[must_use]
    pub fn unfold(&self, rows: usize) -> SiteDerivatives {
        let square = |which: usize| {
            let entry = |(row, column): (usize, usize)| {
                let (low, high) = (row.min(column), row.max(column));
                self.triangles[[which, high * (high + 1) / 2 + low]]
            };
            Array2::from_shape_fn((rows, rows), entry)
        };
        SiteDerivatives {
            objective: self.objective,
            gradient: square(0),
            curvature: square(1),
            slope: self.slope.clone(),
            threshold: ThresholdDerivatives {
                first: self.threshold[0],
                second: self.threshold[1],
            },
        }
    }
}

/// What a site contributes in a round.
#[derive(Clone, PartialEq)]
pub struct Contribution {
    /// W_p, d x m.
    pub matrix: Array2<f64>,
    /// f_p at the consensus that was broadcast: the site's term of (4.19) without the row sparsity.
    pub objective: f64,
    /// Iterations of the local solver.
    pub iterations: u32,
    /// Where the site holds its dual: what else the residuals want.
    pub products: Option<UpdateProducts>,
}

impl Contribution {
    /// Nothing, of this shape.
    #[must_use]
    pub fn blank(shape: (usize, usize), products: Option<UpdateProducts>) -> Self {
        Self {
            matrix: Array2::zeros(shape),
            objective: 0.0,
            iterations: 0,
            products,
        }
    }
}

impl Validating {
    /// Models of one candidate.
    #[must_use]
    pub fn models_each(&self) -> usize {
        let of_two = if self.nested {
            two_folds(self.folds).count()
        } else {
            0
        };
        (self.folds as usize + of_two).max(1)
    }

    /// Candidates to be judged.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.models.len() / self.models_each()
    }
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Differentiate(_) => DERIVATIVES,
            Self::Round(_) => CONTRIBUTION,
            Self::Validate(_) => VALIDATION,
            Self::Finish(_) => ASSESSMENT,
        }
    }

    /// The rounds that its answer costs: one a metric, or a metric of every fold.
    fn rounds(&self) -> u64 {
        match self {
            Self::Differentiate(asked) => asked.metrics.len() as u64,
            Self::Round(_) => 1,
            Self::Validate(validating) => validating
                .models
                .len()
                .div_ceil(validating.folds.max(1) as usize)
                as u64,
            Self::Finish(_) => 0,
        }
    }

    fn builds_on_preparation(&self) -> bool {
        true
    }

    /// Whether a site that answered it is ready for what comes after: it keeps what moves its dual.
    fn leaves_state(&self) -> bool {
        match self {
            Self::Round(round) => matches!(round.centre, Centre::Dual(_)),
            Self::Differentiate(_) | Self::Validate(_) | Self::Finish(_) => false,
        }
    }

    fn points(&self) -> Vec<&Evaluating> {
        Vec::new()
    }

    /// The metrics under which the question has the patients compared. A round's centre is none of them: it is where the
    /// local update is drawn to, and honest ones are far out; where the update comes to is judged before it leaves.
    fn metrics(&self) -> Vec<&Array2<f64>> {
        match self {
            Self::Differentiate(asked) => asked.metrics.iter().collect(),
            Self::Round(round) => vec![&round.consensus],
            Self::Validate(validating) => validating.models.iter().collect(),
            Self::Finish(Finishing {
                consensus, folds, ..
            }) => folds.iter().chain([&**consensus]).collect(),
        }
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Derivatives(_) => DERIVATIVES,
            Self::Contribution(_) => CONTRIBUTION,
            Self::Validated(_) => VALIDATION,
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Derivatives(all) => all.iter().map(|_| Content::PairSums).collect(),
            Self::Contribution(_) => vec![Content::PairSums],
            Self::Validated(candidates) => {
                let of_one = candidates
                    .iter_mut()
                    .map(|votes| votes.iter_mut().collect());
                of_one.map(Content::HeldOut).collect()
            }
        }
    }
}

impl MethodAnswer for Answer {
    /// The metric that the answer was found at; it tells the gradient there.
    fn metric(&self) -> Option<&Array2<f64>> {
        match self {
            Self::Contribution(contribution) => Some(&contribution.matrix),
            Self::Derivatives(_) | Self::Validated(_) => None,
        }
    }
}

impl Summand for Answer {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        match self {
            Self::Derivatives(all) => {
                for own in all {
                    visit(Number::Real(&mut own.objective));
                    own.threshold
                        .iter_mut()
                        .for_each(|one| visit(Number::Real(one)));
                    own.triangles
                        .iter_mut()
                        .for_each(|one| visit(Number::Real(one)));
                    for slope in own.slope.iter_mut().flatten() {
                        visit(Number::Real(slope));
                    }
                }
            }
            Self::Contribution(own) => {
                own.matrix
                    .iter_mut()
                    .for_each(|one| visit(Number::Real(one)));
                visit(Number::Real(&mut own.objective));
                // As small as the square of what is left.
                if let Some(products) = &mut own.products {
                    visit(Number::Measure(&mut products.update));
                    visit(Number::Measure(&mut products.cross));
                    visit(Number::Measure(&mut products.dual));
                }
            }
            Self::Validated(candidates) => {
                for votes in candidates.iter_mut().flatten().flatten() {
                    visit(Number::Count(&mut votes.right));
                    visit(Number::Count(&mut votes.wrong));
                    visit(Number::Real(&mut votes.log_loss));
                }
            }
        }
    }
}
