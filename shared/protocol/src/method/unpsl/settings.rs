//! `[unpsl]`: the settings of distributed UnPSL.

mod candidates;

use super::accelerated::Accelerated;
use super::coordinator::Unpsl;
use super::largest;
use super::supervision::{self, Supervision};
use super::validation;
pub use super::validation::Validation;
use crate::cohort::{self, CohortSpecification, Feature, Grids, OutcomeSpecification};
use crate::document::{Section, narrow};
use crate::failure::Failure;
use crate::limits::{PENALTY_MAX, PENALTY_MIN, ROUNDS_MAX, TOLERANCE_MAX};
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::stage::preparing::Prepared;
use crate::study::Parts;
pub(crate) use candidates::pairs;
use candidates::{candidates, objective};
use privacy::Permission;
use similarity::learn::unpsl::Totals;
use similarity::learn::unpsl::accelerated::{Knowledge, LEAD, RelativeSparsity};
use similarity::learn::unpsl::{Form, Loss, Settings, selection};
use similarity::numeric::precision::Precision;
use similarity::uses::neighbours::NeighbourRule;
use std::collections::BTreeSet;

/// What the accelerated consensus may leave of the objective.
const TOLERANCE: f64 = 2e-7;
/// Neighbours of the k-NN evaluation, where the job names none.
const NEIGHBOURS: u32 = 5;
/// The same, where the job has something to choose: one search finds the neighbours of all of them.
const NEIGHBOURS_TO_CHOOSE: [u32; 3] = [5, 15, 51];
/// End of the usual path of lambda_1 under the mean loss: with standardised patients, W is all zero there
/// or before.
const LAMBDA_LARGEST: f64 = 0.2;

/// Rows of a metric at most for which whole triangles travel; of wider data those of active rows.
const WHOLE_ROWS_MAX: usize = 400;

/// Settings of distributed UnPSL.
#[derive(Debug, Clone, PartialEq)]
pub struct UnpslSettings {
    /// The objective (4.19).
    pub objective: Settings,
    /// Which pairs of patients are similar.
    pub supervision: Supervision,
    /// Whether the job names no rank: it is then at most the rows of the prepared matrix.
    pub is_rank_usual: bool,
    /// Whether the job states no lambda_1: under the accelerated consensus it then follows from what the sites answer at W = 0.
    pub is_lambda_usual: bool,
    /// Starts, of which the run with the lowest objective is kept.
    pub starts: u32,
    /// Neighbours of the k-NN evaluation.
    pub neighbours: u32,
    /// What cross-validation is to choose first; until then the first of its candidates is set.
    pub selection: Option<SelectionSettings>,
    /// Whether held-out patients judge the metric.
    pub validation: Validation,
    /// What makes a patient's local list of neighbours; both rules are evaluated.
    pub neighbour_rule: NeighbourRule,
    /// Rounds at most.
    pub round_limit: u32,
    /// How the coordinator finds the consensus.
    pub consensus: ConsensusMethod,
    /// The accelerated consensus ends where its model says that at most this share of the objective is left.
    pub tolerance: f64,
    /// The penalty rho of the first round, which adapts; by default chosen from the objective.
    pub penalty: Option<f64>,
    /// Over-relaxation of plain ADMM, 1 to 1.9.
    pub relaxation: f64,
    /// Rounds of plain ADMM before the last that the last is mixed with at most, from 0 to 5; 0 is the paper's letter, without [`Self::leading`].
    pub mixed_rounds: usize,
    /// Absolute tolerance of both residuals, per root of entries.
    pub tolerance_absolute: f64,
    /// Tolerance of both residuals relative to the variables' norms.
    pub tolerance_relative: f64,
}

/// How the coordinator finds the consensus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsensusMethod {
    /// A model of the sum of the sites' objectives in M-space: few rounds, and two d x d triangles from each site in
    /// each, or of wide data two of its active rows.
    Accelerated,
    /// (4.22) and (4.23) with a penalty that adapts, then mixtures of rounds.
    Admm,
}

/// What cross-validation chooses, and from what.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionSettings {
    /// Values of lambda_1, ascending; empty means the usual path, which under the accelerated consensus is relative to the data.
    lambda_sparsity: Vec<f64>,
    /// What of two patients the pair loss looks at.
    pub form: Vec<Form>,
    /// Ranks m.
    pub rank: Vec<usize>,
    /// Numbers of neighbours.
    pub neighbours: Vec<u32>,
    /// Folds of each site's patients.
    pub folds: u32,
}

impl SelectionSettings {
    /// Rounds of one fit of ADMM's path at most: each starts at its neighbour's solution, and a choice
    /// needs no last digit.
    pub const ROUNDS_MAX: u32 = 12;
    /// Rounds of the searches side by side at most: with the exchange that judges them, ten.
    pub const SEARCH_ROUNDS_MAX: u32 = 9;
    /// Relative tolerance of those fits by ADMM.
    pub const TOLERANCE: f64 = 1e-3;
    /// What may be left of the objective in those of the accelerated consensus.
    pub const LEFT: f64 = 1e-6;

    /// Whether the values of lambda_1 are the usual path.
    #[must_use]
    pub fn is_path_usual(&self) -> bool {
        self.lambda_sparsity.is_empty()
    }

    /// The values of lambda_1, ascending. The usual path of ADMM is one of the mean loss; under the sum of
    /// `pairs` pairs it is so many times as large.
    #[must_use]
    pub fn lambda_sparsity(&self, loss: Loss, pairs: u64) -> Vec<f64> {
        if !self.lambda_sparsity.is_empty() {
            return self.lambda_sparsity.clone();
        }
        selection::lambda_path(LAMBDA_LARGEST * loss.weight_of(pairs))
    }

    /// Rounds of all fits at most, and one for each metric that is judged.
    #[must_use]
    pub fn rounds(&self, consensus: ConsensusMethod) -> u64 {
        let most = match consensus {
            ConsensusMethod::Accelerated => Self::SEARCH_ROUNDS_MAX,
            ConsensusMethod::Admm => Self::ROUNDS_MAX,
        };
        let lambdas = self.lambda_sparsity(Loss::Mean, 0).len() as u64;
        let paths = self.form.len() as u64 * self.rank.len() as u64;
        let fits = paths * u64::from(self.folds) * lambdas;
        fits * u64::from(most) + self.metrics()
    }

    /// Combinations of form, lambda_1 and rank.
    #[must_use]
    pub fn metrics(&self) -> u64 {
        let paths = self.form.len() as u64 * self.rank.len() as u64;
        paths * self.lambda_sparsity(Loss::Mean, 0).len() as u64
    }
}

/// Sums of votes on each metric, by every number of neighbours: over all folds, and of a nested choice over the others of each fold.
#[must_use]
pub fn sums_each(neighbours: &[u32], folds: u32, nested: bool) -> usize {
    let of_folds = if nested { folds } else { 0 };
    neighbours.len() * (1 + of_folds as usize)
}

impl UnpslSettings {
    /// Rounds of a run at most, those of the choice, of every start and of a validation that the job names included.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        let choosing = self.selection.as_ref();
        let validating = match self.validation {
            Validation::Folds(_) => self.validation_rounds(),
            Validation::Usual(_) | Validation::None => 0,
        };
        choosing.map_or(0, |selection| selection.rounds(self.consensus))
            + u64::from(self.starts) * u64::from(self.round_limit)
            + u64::from(self.certificates())
            + validating
    }

    /// Rounds of consensus ADMM at the end of the accelerated consensus, at most.
    #[must_use]
    pub fn certificates(&self) -> u32 {
        match self.consensus {
            ConsensusMethod::Accelerated => self.starts * Accelerated::CERTIFICATES_MAX,
            ConsensusMethod::Admm => 0,
        }
    }

    /// Questions of the few-rounds search that lead the rounds of ADMM on data of so many rows; none by the paper's letter. Of wide data the
    /// first asks which rows to begin with.
    #[must_use]
    pub fn leading(&self, rows: usize) -> u32 {
        match self.consensus {
            ConsensusMethod::Admm if self.mixed_rounds > 0 => LEAD + u32::from(Self::is_wide(rows)),
            ConsensusMethod::Accelerated | ConsensusMethod::Admm => 0,
        }
    }

    /// What it asks of a site's policy. Rounds are sums over pairs. They reveal the second moments, also where the job pools no correlation:
    /// where all similarities are near 0, a gradient is linear in them. Local updates are not rounded.
    #[must_use]
    pub fn permissions(&self) -> BTreeSet<Permission> {
        let exact = (!self.is_accelerated()).then_some(Permission::ExactSums);
        exact
            .into_iter()
            .chain([Permission::SecondMoments, Permission::PairSums])
            .collect()
    }

    /// Whether the metric is learnt by the accelerated consensus.
    #[must_use]
    pub fn is_accelerated(&self) -> bool {
        self.consensus == ConsensusMethod::Accelerated
    }

    /// lambda_1 as it follows from the data, where the job states none.
    #[must_use]
    pub fn relative_lambda(&self) -> Option<RelativeSparsity> {
        (self.is_lambda_usual && self.is_accelerated()).then_some(RelativeSparsity::USUAL)
    }

    /// Whether the sites are asked about some rows of so many at a time.
    #[must_use]
    pub fn is_wide(rows: usize) -> bool {
        rows > WHOLE_ROWS_MAX
    }

    /// By how much rounding moves the objective over all sites at most.
    pub(super) fn error(&self, totals: &Totals) -> f64 {
        self.supervision.error(&self.objective, totals)
    }

    /// What is known of an objective over prepared patients at the beginning.
    pub(super) fn knowledge(&self, prepared: &Prepared) -> Knowledge {
        let known = match Self::is_wide(prepared.standardisation.rows().len()) {
            true => Knowledge::wide(),
            false => Knowledge::new(),
        };
        known.up_to(self.error(&prepared.totals))
    }

    /// For the matrix that the sites have prepared, of so many rows; coordinator and sites follow it alike.
    #[must_use]
    pub fn of_rows(mut self, rows: usize) -> Self {
        if self.is_rank_usual {
            let rank = self.objective.rank.min(rows.max(1));
            self.objective.rank = rank;
            if let Some(selection) = &mut self.selection {
                selection.rank = vec![rank];
            }
        }
        self
    }

    /// Reads the table `unpsl`, of so many folds unless it says otherwise.
    pub(crate) fn table(section: &mut Section<'_, '_>, folds: u32) -> Self {
        let tolerance = format!("a number above 0, at most {TOLERANCE_MAX}");
        let is_tolerance = |x: f64| x > 0.0 && x <= TOLERANCE_MAX;
        let penalty = format!("a number from {PENALTY_MIN:e} to {PENALTY_MAX:e}");
        let is_penalty = |x: f64| (PENALTY_MIN..=PENALTY_MAX).contains(&x);
        let methods = [
            ("accelerated", ConsensusMethod::Accelerated),
            ("admm", ConsensusMethod::Admm),
        ];
        let rules = [
            ("distance", NeighbourRule::Distance),
            ("inner_product", NeighbourRule::InnerProduct),
        ];
        let is_rank_usual = !section.has("rank");
        let is_lambda_usual = !section.has("lambda_sparsity");
        let candidates = candidates(section, folds);
        Self {
            is_rank_usual,
            is_lambda_usual,
            objective: objective(section, &candidates),
            supervision: Supervision::read(section),
            starts: narrow(section.count("starts", 1, 1..=100)),
            neighbours: candidates.neighbours.first().copied().unwrap_or(NEIGHBOURS),
            validation: validation::read(section, candidates.choosing_folds(), folds),
            selection: candidates.are_several().then_some(candidates),
            neighbour_rule: section
                .choice("neighbour_rule", &rules)
                .unwrap_or(NeighbourRule::Distance),
            round_limit: narrow(section.count("round_limit", 100, 1..=u64::from(ROUNDS_MAX))),
            consensus: section
                .choice("consensus", &methods)
                .unwrap_or(ConsensusMethod::Accelerated),
            tolerance: section.number("tolerance", TOLERANCE, &tolerance, is_tolerance),
            penalty: section
                .has("penalty")
                .then(|| section.number("penalty", 1.0, &penalty, is_penalty)),
            relaxation: section.number("relaxation", 1.0, "1 to 1.9", |x| (1.0..=1.9).contains(&x)),
            mixed_rounds: narrow(section.count("mixed_rounds", 5, 0..=5)),
            tolerance_absolute: section.number(
                "tolerance_absolute",
                1e-6,
                &tolerance,
                is_tolerance,
            ),
            tolerance_relative: section.number(
                "tolerance_relative",
                1e-5,
                &tolerance,
                is_tolerance,
            ),
        }
    }
}

impl MethodSettings for UnpslSettings {
    type Stages = Unpsl;
    const IS_OF_ALL: bool = false;

    fn asking() -> Option<Asker> {
        None
    }

    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        let settings =
            root.required_table("unpsl", |section| Some(Self::table(section, at.folds())))?;
        if let Some(outcome) = at.outcome {
            cohort::lines_alone(root, at.features);
            check(root, outcome);
            check_rank(root, &settings, at.features);
            supervision::check(root, &settings, at.judgements.is_some());
        }
        Some(settings)
    }

    fn precisely(mut self, precision: Precision) -> Self {
        self.objective.precision = precision;
        self
    }

    /// Nobody receives a sum there.
    fn alone(self) -> Self {
        self.precisely(Precision::Exact)
    }

    fn divides(&self) -> Parts {
        Parts::new(self.folds(), self.objective.pairs)
    }

    fn grids_of_all(cohort: &CohortSpecification, _: bool) -> Grids {
        Grids {
            columns: cohort.grids_of_quartiles(),
            events: None,
        }
    }

    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        Self::grids_of_all(cohort, false)
    }

    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        largest::largest(self, cohort)
    }

    fn needs(&self) -> Needs {
        let (folds, validation) = self.parts();
        Needs {
            permissions: self.permissions(),
            rounds: self.rounds(),
            folds,
            validation,
            queries: 0,
        }
    }

    fn begin(&self, beginning: &Beginning) -> Result<Unpsl, Failure> {
        Ok(Unpsl::new(self, beginning))
    }
}

impl SelectionSettings {
    /// The folds of the choice; none where nothing is chosen.
    fn choosing_folds(&self) -> Option<u32> {
        self.are_several().then_some(self.folds)
    }

    fn are_several(&self) -> bool {
        let lists = [self.form.len(), self.rank.len(), self.neighbours.len()];
        self.lambda_sparsity.len() != 1 || lists.iter().any(|length| *length > 1)
    }
}

/// Reports what UnPSL needs that the outcome does not declare.
fn check(root: &mut Section<'_, '_>, outcome: &OutcomeSpecification) {
    if outcome.kind.classes().is_empty() {
        let found = format!(
            "\"unpsl\" with the outcome {:?}, which has no classes",
            outcome.column
        );
        let wanted = "an outcome of kind \"binary\" or \"categorical\", or \"forest\"";
        root.problem("method", &found, wanted);
    }
}

/// Reports a rank that no matrix of the features has.
pub(crate) fn check_rank(
    root: &mut Section<'_, '_>,
    settings: &UnpslSettings,
    features: &[Feature],
) {
    let rows: u64 = features.iter().map(Feature::rows_at_most).sum();
    let chosen = settings.selection.iter().flat_map(|one| &one.rank);
    let rank = chosen.copied().fold(settings.objective.rank, usize::max);
    if !settings.is_rank_usual && !features.is_empty() && rank as u64 > rows {
        let wanted = format!("at most {rows}, the rows that the features have in a matrix");
        root.problem("unpsl", &format!("rank = {rank}"), &wanted);
    }
}

/// The words of the job for the forms.
const FORMS: [(&str, Form); 2] = [
    ("inner_product", Form::InnerProduct),
    ("distance", Form::Distance),
];

/// The word of a form in jobs and results.
#[must_use]
pub fn form_name(form: Form) -> &'static str {
    match form {
        Form::InnerProduct => FORMS[0].0,
        Form::Distance => FORMS[1].0,
    }
}
