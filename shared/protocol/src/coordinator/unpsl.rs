//! What a run of distributed UnPSL asks, exchange by exchange.

use super::{Turn, count, failure};
use crate::job::{FeatureKind, Job, UnpslSettings};
use crate::message::{
    Answer, EvaluationCounts, Failure, Request, Round, SecondMoments, Summary, Totals,
};
use crate::progress::{Ending, FeatureResult, Progress, RoundRow};
use ndarray::Array2;
use similarity::admm::{Consensus, ConsensusSettings, PenaltySettings};
use similarity::moments::ColumnMoments;
use similarity::seed::Seed;
use similarity::standardise::{self, Standardisation};
use similarity::unpsl::CorrelationScope;

/// The exchanges that come before the rounds, and so hold what a returning site must hear again.
const PREPARE: u32 = 3;
const CORRELATE: u32 = 4;
/// Rounds in which the penalty follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;

#[derive(Debug, Clone)]
pub(super) struct UnpslWork {
    settings: UnpslSettings,
    seed: u64,
    columns: Vec<standardise::Feature>,
    step: Step,
    prepared: Option<Prepared>,
    second_moments: Option<SecondMoments>,
    summaries: Vec<Option<Summary>>,
    consensus: Option<Consensus>,
    rows: Vec<RoundRow>,
    objective: Option<f64>,
    evaluations: Vec<Vec<EvaluationCounts>>,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Moments,
    Prepare,
    Correlate,
    Rounds,
    Finish,
}

#[derive(Debug, Clone)]
struct Prepared {
    moments: Vec<ColumnMoments>,
    totals: Totals,
    standardisation: Standardisation,
}

type Answers = Vec<Option<Answer>>;

impl UnpslWork {
    pub(super) fn new(job: &Job, settings: UnpslSettings, seed: u64) -> Self {
        Self {
            settings,
            seed,
            columns: job.standardised_columns(),
            step: Step::Moments,
            prepared: None,
            second_moments: None,
            summaries: vec![None; job.sites.len()],
            consensus: None,
            rows: Vec::new(),
            objective: None,
            evaluations: vec![Vec::new(); job.sites.len()],
            ending: Ending::RoundLimit,
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.step {
            Step::Moments | Step::Prepare | Step::Correlate => "standardising",
            Step::Rounds => "rounds",
            Step::Finish => "finishing",
        }
    }

    pub(super) fn in_rounds(&self) -> bool {
        self.step == Step::Rounds
    }

    pub(super) fn finishing(&self) -> bool {
        self.step == Step::Finish
    }

    /// What the open exchange asks of one site.
    pub(super) fn request(&self, site: usize) -> Request {
        match (self.step, &self.consensus) {
            (Step::Prepare, _) => self.prepare(),
            (Step::Correlate, _) => self.correlate(),
            (Step::Rounds, Some(consensus)) => Request::Round(Round {
                number: count(self.rows.len()) + 1,
                consensus: consensus.consensus().clone(),
                centre: consensus
                    .centre(site)
                    .unwrap_or_else(|| consensus.consensus().clone()),
                penalty: consensus.penalty(),
                tolerance: self.local_tolerance(),
            }),
            (Step::Finish, Some(consensus)) => Request::Finish {
                consensus: consensus.consensus().clone(),
            },
            _ => Request::Moments,
        }
    }

    /// What a site that came back must hear again, so that it needs to remember nothing.
    pub(super) fn context(&self) -> Vec<(u32, Request)> {
        let mut context = Vec::new();
        if matches!(self.step, Step::Correlate | Step::Rounds | Step::Finish) {
            context.push((PREPARE, self.prepare()));
        }
        if matches!(self.step, Step::Rounds | Step::Finish) && self.second_moments.is_some() {
            context.push((CORRELATE, self.correlate()));
        }
        context
    }

    /// Takes the answers of a closed exchange, one place a site; `members` are asked next.
    pub(super) fn close(
        &mut self,
        answers: Answers,
        members: &[bool],
        seconds: f64,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        match self.step {
            Step::Moments => self.close_moments(answers, notes),
            Step::Prepare => self.close_prepare(answers),
            Step::Correlate => self.start_rounds(),
            Step::Rounds => self.close_round(answers, members, seconds, notes),
            Step::Finish => Ok(self.close_finish(answers, notes)),
        }
    }

    /// The run's progress as far as rounds tell it.
    pub(super) fn describe(&self, progress: &mut Progress) {
        progress.round = count(self.rows.len());
        progress.round_limit = self.settings.round_limit;
        progress.objective = self.rows.iter().rev().find_map(|row| row.objective);
        progress.primal_residual = self.rows.last().map(|row| row.primal_residual);
        progress.dual_residual = self.rows.last().map(|row| row.dual_residual);
    }

    pub(super) fn rows(&self) -> &[RoundRow] {
        &self.rows
    }

    pub(super) fn objective(&self) -> Option<f64> {
        self.objective
    }

    pub(super) fn pairs(&self, site: usize) -> u64 {
        self.summaries[site].map_or(0, |summary| summary.pairs.total())
    }

    pub(super) fn evaluation(&self, site: usize) -> &[EvaluationCounts] {
        &self.evaluations[site]
    }

    /// W of the last closed round.
    pub(super) fn metric(&self) -> Option<&Array2<f64>> {
        self.consensus
            .as_ref()
            .filter(|_| !self.rows.is_empty())
            .map(Consensus::consensus)
    }

    pub(super) fn features(&self) -> Vec<FeatureResult> {
        let Some(prepared) = &self.prepared else {
            return Vec::new();
        };
        let shares = prepared.standardisation.shares_missing();
        let row = |row: &standardise::MatrixRow| FeatureResult {
            name: row.name().to_owned(),
            mean: row.scaling().mean,
            scale: row.scaling().scale,
            missing_share: shares.get(row.column()).copied().unwrap_or(0.0),
        };
        prepared.standardisation.rows().iter().map(row).collect()
    }

    pub(super) fn dropped(&self) -> Vec<String> {
        self.prepared
            .as_ref()
            .map(|prepared| prepared.standardisation.dropped().to_vec())
            .unwrap_or_default()
    }

    fn prepare(&self) -> Request {
        match &self.prepared {
            Some(prepared) => Request::Prepare {
                moments: prepared.moments.clone(),
                totals: prepared.totals,
            },
            None => Request::Moments,
        }
    }

    fn correlate(&self) -> Request {
        match &self.second_moments {
            Some(sum) => Request::Correlate {
                second_moments: sum.clone(),
            },
            None => Request::Moments,
        }
    }

    fn close_moments(
        &mut self,
        answers: Answers,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        let mut pooled: Option<Vec<ColumnMoments>> = None;
        for (site, answer) in answers.into_iter().enumerate() {
            let Some(answer) = answer else { continue };
            let Answer::Moments { columns, summary } = answer else {
                return Err(unexpected(&answer, "moments"));
            };
            self.summaries[site] = Some(summary);
            match &mut pooled {
                None => pooled = Some(columns),
                Some(pooled) => merge(pooled, &columns)?,
            }
        }
        let moments = pooled.unwrap_or_default();
        let summaries: Vec<Summary> = self.summaries.iter().flatten().copied().collect();
        let totals = Totals::of(&summaries);
        if totals.pairs.similar == 0 || totals.pairs.dissimilar == 0 {
            let text = format!(
                "found {} similar and {} dissimilar pairs over all sites, wanted some of both; \
                 the outcome must have two classes somewhere",
                totals.pairs.similar, totals.pairs.dissimilar
            );
            return Err(failure("KDR-PAIRS", text));
        }
        let standardisation = Standardisation::from_moments(&self.columns, &moments)
            .map_err(|error| failure("KDR-STANDARDISE", error.to_string()))?;
        self.settings
            .objective
            .check(standardisation.rows().len())
            .map_err(|error| {
                failure(
                    "KDR-SETTINGS",
                    format!("[unpsl] {error} after standardisation"),
                )
            })?;
        if !standardisation.dropped().is_empty() {
            let names = standardisation.dropped().join(", ");
            notes.push(format!("Constant over all sites, so left out: {names}."));
        }
        self.prepared = Some(Prepared {
            moments,
            totals,
            standardisation,
        });
        self.step = Step::Prepare;
        Ok(Turn::Ask)
    }

    fn close_prepare(&mut self, answers: Answers) -> Result<Turn, Failure> {
        if self.settings.objective.correlation == CorrelationScope::Site {
            return self.start_rounds();
        }
        let mut sum: Option<SecondMoments> = None;
        for answer in answers.into_iter().flatten() {
            let Answer::Prepared {
                second_moments: Some(own),
            } = answer
            else {
                return Err(unexpected(&answer, "second moments"));
            };
            match &mut sum {
                None => sum = Some(own),
                Some(sum) => {
                    sum.merge(&own)
                        .map_err(|error| failure("KDR-PROTOCOL", error.to_string()))?;
                }
            }
        }
        self.second_moments = sum;
        self.step = Step::Correlate;
        Ok(Turn::Ask)
    }

    fn start_rounds(&mut self) -> Result<Turn, Failure> {
        let rows = self
            .prepared
            .as_ref()
            .map_or(0, |known| known.standardisation.rows().len());
        let settings = ConsensusSettings {
            lambda_sparsity: self.settings.objective.lambda_sparsity,
            feature_rows: rows,
            relaxation: self.settings.relaxation,
            penalty: PenaltySettings {
                start: self.settings.penalty,
                adaptive_rounds: ADAPTIVE_ROUNDS,
            },
            tolerance_absolute: self.settings.tolerance_absolute,
            tolerance_relative: self.settings.tolerance_relative,
        };
        let start = similarity::unpsl::start(&self.settings.objective, rows, Seed(self.seed), 0);
        let consensus = Consensus::new(start, self.summaries.len(), settings)
            .map_err(|error| failure("KDR-UNPSL", error.to_string()))?;
        self.consensus = Some(consensus);
        self.step = Step::Rounds;
        Ok(Turn::Ask)
    }

    fn close_round(
        &mut self,
        answers: Answers,
        members: &[bool],
        seconds: f64,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        let Some(consensus) = &mut self.consensus else {
            return Err(failure(
                "KDR-PROTOCOL",
                "a round closed before it began".to_owned(),
            ));
        };
        let penalty = consensus.penalty();
        let mut terms = Some(0.0);
        let mut matrices = Vec::with_capacity(answers.len());
        for (site, answer) in answers.into_iter().enumerate() {
            match answer {
                Some(Answer::Contribution(contribution)) => {
                    terms = terms.map(|sum| sum + contribution.objective);
                    matrices.push(Some(contribution.matrix));
                }
                Some(other) => return Err(unexpected(&other, "a contribution")),
                None => {
                    if consensus.takes_part(site) && members[site] {
                        terms = None;
                    }
                    matrices.push(None);
                }
            }
        }
        // A site that is away leaves the mean with its dual kept, and comes back with both.
        for (site, member) in members.iter().enumerate() {
            if !member && matrices[site].is_none() {
                consensus.suspend_site(site);
            }
        }
        let objective =
            terms.map(|sum| sum + consensus.sparsity_term(&consensus.consensus().view()));
        if let (Some(row), Some(objective)) = (self.rows.last_mut(), objective) {
            row.objective = Some(objective);
            if consensus.observe_objective(objective) {
                notes.push(format!(
                    "The objective rose over several rounds before round {}; the safeguard raised \
                     the penalty to {:.3e}.",
                    row.round,
                    consensus.penalty()
                ));
            }
        }
        let residuals = consensus
            .absorb(&matrices)
            .map_err(|error| failure("KDR-CONTRIBUTION", error.to_string()))?;
        for (site, member) in members.iter().enumerate() {
            if *member {
                consensus.resume_site(site);
            }
        }
        self.rows.push(RoundRow {
            round: count(self.rows.len()) + 1,
            objective: None,
            primal_residual: residuals.primal,
            dual_residual: residuals.dual,
            penalty,
            seconds,
            sites_answered: count(matrices.iter().flatten().count()),
        });
        if residuals.converged() {
            self.ending = Ending::Converged;
            self.step = Step::Finish;
        } else if count(self.rows.len()) >= self.settings.round_limit {
            self.step = Step::Finish;
        }
        Ok(Turn::Ask)
    }

    fn close_finish(&mut self, answers: Answers, notes: &mut Vec<String>) -> Turn {
        let mut sum = 0.0;
        let mut judged = 0;
        for (site, answer) in answers.into_iter().enumerate() {
            if let Some(Answer::Finished(finished)) = answer {
                sum += finished.objective;
                judged += 1;
                self.evaluations[site] = finished.evaluation;
            }
        }
        if let Some(consensus) = &self.consensus
            && judged > 0
        {
            let objective = sum + consensus.sparsity_term(&consensus.consensus().view());
            self.objective = Some(objective);
            if let Some(row) = self.rows.last_mut() {
                row.objective = Some(objective);
            }
        }
        if judged < self.summaries.len() {
            notes.push(format!(
                "The objective is the sum over the {judged} of {} sites that took part at the end.",
                self.summaries.len()
            ));
        }
        Turn::End(self.ending.clone())
    }

    /// Inexact early, tighter later: a tenth of the smaller relative residual of the last round.
    fn local_tolerance(&self) -> f64 {
        const LOOSEST: f64 = 1e-3;
        const TIGHTEST: f64 = 1e-9;
        let Some((row, consensus)) = self.rows.last().zip(self.consensus.as_ref()) else {
            return LOOSEST;
        };
        let scale = consensus
            .consensus()
            .iter()
            .map(|x| x * x)
            .sum::<f64>()
            .sqrt()
            .max(1e-12);
        let relative = row.primal_residual.min(row.dual_residual / row.penalty) / scale;
        (0.1 * relative).clamp(TIGHTEST, LOOSEST)
    }
}

fn merge(pooled: &mut [ColumnMoments], own: &[ColumnMoments]) -> Result<(), Failure> {
    let mismatch = |text: String| failure("KDR-PROTOCOL", format!("moments: {text}"));
    if pooled.len() != own.len() {
        return Err(mismatch(format!(
            "found {} columns, wanted {}",
            own.len(),
            pooled.len()
        )));
    }
    for (pooled, own) in pooled.iter_mut().zip(own) {
        pooled
            .merge(own)
            .map_err(|error| mismatch(error.to_string()))?;
    }
    Ok(())
}

fn unexpected(found: &Answer, wanted: &str) -> Failure {
    failure(
        "KDR-PROTOCOL",
        format!("a site answered {found:?}, wanted {wanted}"),
    )
}

impl Job {
    /// The columns that the sites' cohorts have, as standardisation wants them.
    #[must_use]
    pub fn standardised_columns(&self) -> Vec<standardise::Feature> {
        let column = |feature: &crate::job::Feature| standardise::Feature {
            name: feature.name.clone(),
            kind: match &feature.kind {
                FeatureKind::Categorical { levels } => standardise::FeatureKind::Categorical {
                    levels: levels.clone(),
                },
                _ => standardise::FeatureKind::Numeric,
            },
        };
        self.features.iter().map(column).collect()
    }
}
