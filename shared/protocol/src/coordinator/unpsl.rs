//! What a run of distributed UnPSL asks, exchange by exchange.

use super::solver::Solver;
use super::standardising;
use super::{Turn, count, failure};
use crate::job::{GriddedColumn, Job, UnpslSettings};
use crate::message::{
    Answer, Contribution, EvaluationCounts, Failure, Quartiles, Request, Round, SecondMoments,
    Summary, Totals,
};
use crate::progress::{Ending, FeatureResult, MissingShare, Progress, RoundRow};
use ndarray::Array2;
use similarity::moments::ColumnMoments;
use similarity::standardise::{self, Standardisation};
use similarity::unpsl::CorrelationScope;

/// The exchange that asks for moments.
const MOMENTS: u32 = 2;

#[derive(Debug, Clone)]
pub(super) struct UnpslWork {
    settings: UnpslSettings,
    seed: u64,
    columns: Vec<standardise::Feature>,
    gridded: Vec<GriddedColumn>,
    step: Step,
    pooled: Option<(Vec<ColumnMoments>, Totals)>,
    missing: Vec<Vec<MissingShare>>,
    prepared: Option<Prepared>,
    second_moments: Option<SecondMoments>,
    summaries: Vec<Option<Summary>>,
    solver: Option<Solver>,
    rows: Vec<RoundRow>,
    objective: Option<f64>,
    evaluations: Vec<Vec<EvaluationCounts>>,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Moments,
    Quantiles,
    Prepare,
    Correlate,
    Rounds,
    Finish,
}

#[derive(Debug, Clone)]
struct Prepared {
    moments: Vec<ColumnMoments>,
    quartiles: Vec<Quartiles>,
    totals: Totals,
    standardisation: Standardisation,
}

pub(super) type Answers = Vec<Option<Answer>>;

impl UnpslWork {
    pub(super) fn new(job: &Job, settings: UnpslSettings, seed: u64) -> Self {
        Self {
            settings,
            seed,
            columns: job.standardised_columns(),
            gridded: job.gridded_columns(),
            step: Step::Moments,
            pooled: None,
            missing: vec![Vec::new(); job.sites.len()],
            prepared: None,
            second_moments: None,
            summaries: vec![None; job.sites.len()],
            solver: None,
            rows: Vec::new(),
            objective: None,
            evaluations: vec![Vec::new(); job.sites.len()],
            ending: Ending::RoundLimit,
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.step {
            Step::Moments | Step::Quantiles | Step::Prepare | Step::Correlate => "standardising",
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
        match (self.step, &self.solver) {
            (Step::Quantiles, _) => Request::Quantiles,
            (Step::Prepare, _) => self.prepare(),
            (Step::Correlate, _) => self.correlate(),
            (Step::Rounds, Some(solver)) => Request::Round(Round {
                number: count(self.rows.len()) + 1,
                consensus: solver.consensus().clone(),
                centre: solver.centre(site),
                penalty: solver.penalty(),
                tolerance: self.local_tolerance(),
                gradient: solver.wants_gradient(),
            }),
            (Step::Finish, Some(solver)) => Request::Finish {
                consensus: solver.metric().clone(),
            },
            _ => Request::Moments,
        }
    }

    /// What a site that came back must hear again, so that it needs to remember nothing.
    pub(super) fn context(&self) -> Vec<(u32, Request)> {
        let mut context = Vec::new();
        if matches!(self.step, Step::Correlate | Step::Rounds | Step::Finish) {
            context.push((self.prepare_exchange(), self.prepare()));
        }
        if matches!(self.step, Step::Rounds | Step::Finish) && self.second_moments.is_some() {
            context.push((self.prepare_exchange() + 1, self.correlate()));
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
            Step::Quantiles => self.close_quantiles(answers, notes),
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

    pub(super) fn missing(&self, site: usize) -> &[MissingShare] {
        &self.missing[site]
    }

    /// W of the last closed round.
    pub(super) fn metric(&self) -> Option<&Array2<f64>> {
        self.solver
            .as_ref()
            .filter(|_| !self.rows.is_empty())
            .map(Solver::metric)
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

    /// The exchange that prepares: after the moments, and the quantiles where the job needs any.
    fn prepare_exchange(&self) -> u32 {
        MOMENTS + 1 + u32::from(!self.gridded.is_empty())
    }

    fn prepare(&self) -> Request {
        match &self.prepared {
            Some(prepared) => Request::Prepare {
                moments: prepared.moments.clone(),
                quartiles: prepared.quartiles.clone(),
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
            self.missing[site] = standardising::missing_shares(&self.columns, &columns);
            match &mut pooled {
                None => pooled = Some(columns),
                Some(pooled) => standardising::merge(pooled, &columns)?,
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
        self.pooled = Some((moments, totals));
        if self.gridded.is_empty() {
            return self.standardise(Vec::new(), notes);
        }
        self.step = Step::Quantiles;
        Ok(Turn::Ask)
    }

    fn close_quantiles(
        &mut self,
        answers: Answers,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        let moments = self.pooled.as_ref().map_or(&[][..], |(moments, _)| moments);
        let quartiles = standardising::quartiles(&self.gridded, moments, answers)?;
        self.standardise(quartiles, notes)
    }

    fn standardise(
        &mut self,
        quartiles: Vec<Quartiles>,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        let Some((moments, totals)) = self.pooled.take() else {
            return Err(failure("KDR-PROTOCOL", "there are no moments".to_owned()));
        };
        let standardisation = Standardisation::from_moments(&self.columns, &moments, &quartiles)
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
            quartiles,
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
        let solver = Solver::start(
            &self.settings,
            rows,
            self.seed,
            &self.summaries,
            self.second_moments.as_ref(),
        )?;
        self.solver = Some(solver);
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
        let Some(solver) = &mut self.solver else {
            return Err(failure(
                "KDR-PROTOCOL",
                "a round closed before it began".to_owned(),
            ));
        };
        let penalty = solver.penalty();
        let mut contributions = Vec::with_capacity(answers.len());
        for (site, answer) in answers.into_iter().enumerate() {
            contributions.push(match answer {
                Some(Answer::Contribution(contribution)) => Some(contribution),
                Some(other) => return Err(unexpected(&other, "a contribution")),
                None => None,
            });
            // A site that is away leaves the consensus with what it left, and comes back with it.
            if contributions[site].is_none() && !members[site] {
                solver.suspend_site(site);
            }
        }
        let judged = |(site, own): (usize, &Option<Contribution>)| match own {
            Some(own) => Some(own.objective),
            None => (!solver.takes_part(site)).then_some(0.0),
        };
        let terms: Option<f64> = contributions.iter().enumerate().map(judged).sum();
        let objective = terms.map(|sum| sum + solver.sparsity_term(&solver.consensus().view()));
        let answered = count(contributions.iter().flatten().count());
        let shown = solver.absorb(contributions, objective)?;
        let residuals = shown.residuals;
        for site in (0..members.len()).filter(|site| members[*site]) {
            solver.resume_site(site);
        }
        if let (Some(row), Some(objective)) = (self.rows.last_mut(), objective) {
            row.objective = Some(objective);
        }
        if shown.safeguarded {
            notes.push(format!(
                "The objective rose in round {}; the safeguard acted, and the penalty is {:.3e}.",
                self.rows.len() + 1,
                solver.penalty()
            ));
        }
        self.rows.push(RoundRow {
            round: count(self.rows.len()) + 1,
            objective: None,
            primal_residual: residuals.primal,
            dual_residual: residuals.dual,
            penalty,
            seconds,
            sites_answered: answered,
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
        if let Some(solver) = &self.solver
            && judged > 0
        {
            let objective = sum + solver.sparsity_term(&solver.metric().view());
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
        const LOOSEST: f64 = 1e-4;
        const TIGHTEST: f64 = 1e-9;
        let Some((row, solver)) = self.rows.last().zip(self.solver.as_ref()) else {
            return LOOSEST;
        };
        let scale = solver
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

pub(super) fn unexpected(found: &Answer, wanted: &str) -> Failure {
    failure(
        "KDR-PROTOCOL",
        format!("a site answered {found:?}, wanted {wanted}"),
    )
}
