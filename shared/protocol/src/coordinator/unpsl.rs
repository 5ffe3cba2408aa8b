//! What a run of distributed UnPSL asks, exchange by exchange.

mod choosing;
mod judging;
mod telling;

use super::fit::{Course, Fit, Surroundings};
use super::judging::unexpected;
use super::selection::Selection;
use super::standardising;
use super::{Turn, failure};
use crate::job::{GriddedColumn, Job, UnpslSettings};
use crate::message::{
    Answer, EvaluationCounts, Failure, Quartiles, Request, SecondMoments, Summary, Totals,
};
use crate::progress::{Ending, MissingShare, SelectionRow};
use ndarray::Array2;
use similarity::moments::ColumnMoments;
use similarity::seed::Seed;
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
    names: Vec<String>,
    /// Rounds that have closed, those of the choice and of every start included.
    rounds: u32,
    /// The choice under way.
    choosing: Option<Selection>,
    selection: Vec<SelectionRow>,
    /// The start under way, from 0.
    start: u32,
    fit: Option<Fit>,
    best: Option<Best>,
    objective: Option<f64>,
    evaluations: Vec<Vec<EvaluationCounts>>,
}

/// The best of the starts that are over.
#[derive(Debug, Clone)]
struct Best {
    fit: Fit,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Moments,
    Quantiles,
    Prepare,
    Correlate,
    Rounds,
    Validate,
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
            names: job.sites.iter().map(ToString::to_string).collect(),
            rounds: 0,
            choosing: None,
            selection: Vec::new(),
            start: 0,
            fit: None,
            best: None,
            objective: None,
            evaluations: vec![Vec::new(); job.sites.len()],
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.step {
            Step::Moments | Step::Quantiles | Step::Prepare | Step::Correlate => "standardising",
            Step::Rounds | Step::Validate if self.choosing.is_some() => "choosing",
            Step::Rounds | Step::Validate => "rounds",
            Step::Finish => "finishing",
        }
    }

    /// The settings, with what was chosen.
    pub(super) fn settings(&self) -> &UnpslSettings {
        &self.settings
    }

    pub(super) fn in_rounds(&self) -> bool {
        matches!(self.step, Step::Rounds | Step::Validate)
    }

    pub(super) fn finishing(&self) -> bool {
        self.step == Step::Finish
    }

    /// What the open exchange asks of one site.
    pub(super) fn request(&self, site: usize) -> Request {
        match self.step {
            Step::Moments => Some(Request::Moments),
            Step::Quantiles => Some(Request::Quantiles),
            Step::Prepare => Some(self.prepare()),
            Step::Correlate => Some(self.correlate()),
            Step::Rounds => self
                .fit
                .as_ref()
                .map(|fit| Request::Round(fit.round(site, self.rounds + 1))),
            Step::Validate => self
                .choosing
                .as_ref()
                .and_then(|selection| selection.validation(self.rounds + 1)),
            Step::Finish => self.metric().map(|metric| Request::Finish {
                consensus: metric.clone(),
                neighbours: self.settings.neighbours,
            }),
        }
        .unwrap_or(Request::Moments)
    }

    /// What a site that came back must hear again, so that it needs to remember nothing.
    pub(super) fn context(&self) -> Vec<(u32, Request)> {
        let mut context = Vec::new();
        let in_rounds = matches!(self.step, Step::Rounds | Step::Validate | Step::Finish);
        if in_rounds || self.step == Step::Correlate {
            context.push((self.prepare_exchange(), self.prepare()));
        }
        if in_rounds && self.second_moments.is_some() {
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
            Step::Prepare => self.close_prepare(answers, notes),
            Step::Correlate => self.start_rounds(notes),
            Step::Rounds => {
                let names = std::mem::take(&mut self.names);
                let around = Surroundings {
                    members,
                    names: &names,
                    seconds,
                    notes,
                };
                let closed = self.close_round(answers, around);
                self.names = names;
                closed
            }
            Step::Validate => self.close_validation(answers, notes),
            Step::Finish => self.close_finish(answers, notes),
        }
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
        self.check_ranks(standardisation.rows().len())?;
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

    fn check_ranks(&self, rows: usize) -> Result<(), Failure> {
        let ranks = match &self.settings.selection {
            Some(selection) => selection.rank.clone(),
            None => vec![self.settings.objective.rank],
        };
        for rank in ranks {
            let mut objective = self.settings.objective;
            objective.rank = rank;
            objective.check(rows).map_err(|error| {
                let text = format!("[unpsl] {error} after standardisation");
                failure("KDR-SETTINGS", text)
            })?;
        }
        Ok(())
    }

    fn close_prepare(
        &mut self,
        answers: Answers,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        if self.settings.objective.correlation == CorrelationScope::Site {
            return self.start_rounds(notes);
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

    fn start_rounds(&mut self, notes: &mut Vec<String>) -> Result<Turn, Failure> {
        let pairs = self
            .prepared
            .as_ref()
            .map_or(0, |known| known.totals.pairs.total());
        self.choosing = Selection::new(&self.settings, pairs);
        if self.choosing.is_some() {
            self.step = Step::Rounds;
            self.next_fit_of_choice(notes)?;
        } else {
            self.fit_all_patients()?;
        }
        Ok(Turn::Ask)
    }

    fn close_round(
        &mut self,
        answers: Answers,
        mut around: Surroundings<'_>,
    ) -> Result<Turn, Failure> {
        let Some(fit) = &mut self.fit else {
            let text = "a round closed before it began";
            return Err(failure("KDR-PROTOCOL", text.to_owned()));
        };
        self.rounds += 1;
        if let Course::Over(ending) = fit.close(answers, &mut around)? {
            self.end_fit(ending, around.notes)?;
        }
        Ok(Turn::Ask)
    }

    /// Keeps what a fit gave, and starts the next where there is one.
    fn end_fit(&mut self, ending: Ending, notes: &mut Vec<String>) -> Result<(), Failure> {
        let Some(fit) = self.fit.take() else {
            return Ok(());
        };
        if let Some(selection) = &mut self.choosing {
            selection.keep(fit.solver().metric().clone());
            return self.next_fit_of_choice(notes);
        }
        let better = match &self.best {
            Some(best) => fit.objective() < best.fit.objective(),
            None => true,
        };
        if better {
            self.best = Some(Best { fit, ending });
        }
        self.start += 1;
        if self.start < self.settings.starts {
            return self.fit_all_patients();
        }
        self.step = Step::Finish;
        Ok(())
    }

    fn common_start(&self, settings: &UnpslSettings) -> Array2<f64> {
        let rows = self
            .prepared
            .as_ref()
            .map_or(0, |known| known.standardisation.rows().len());
        let (seed, start) = (Seed(self.seed), u64::from(self.start));
        similarity::unpsl::start(&settings.objective, rows, seed, start)
    }

    fn fit(
        &self,
        settings: &UnpslSettings,
        start: Array2<f64>,
        fold: Option<u32>,
    ) -> Result<Fit, Failure> {
        let second_moments = self.second_moments.as_ref();
        Fit::start(settings, start, fold, &self.summaries, second_moments)
    }

    fn fit_all_patients(&mut self) -> Result<(), Failure> {
        let start = self.common_start(&self.settings);
        self.fit = Some(self.fit(&self.settings, start, None)?);
        self.step = Step::Rounds;
        Ok(())
    }

    fn close_finish(&mut self, answers: Answers, notes: &mut Vec<String>) -> Result<Turn, Failure> {
        let mut sum = 0.0;
        let mut judged = 0;
        for (site, answer) in answers.into_iter().enumerate() {
            if let Some(Answer::Finished(finished)) = answer {
                sum += finished.objective;
                judged += 1;
                self.evaluations[site] = finished.evaluation;
            }
        }
        let Some(best) = &mut self.best else {
            return Ok(Turn::End(Ending::RoundLimit));
        };
        if judged > 0 {
            let solver = best.fit.solver();
            let objective = sum + solver.sparsity_term(&solver.metric().view());
            if !objective.is_finite() {
                let text = "the objective at the end is no finite number";
                return Err(failure("KDR-NUMBERS", text.to_owned()));
            }
            self.objective = Some(objective);
            best.fit.judge_last(objective);
        }
        if judged < self.summaries.len() {
            notes.push(format!(
                "The objective is the sum over the {judged} of {} sites that took part at the end.",
                self.summaries.len()
            ));
        }
        if self.settings.starts > 1 {
            notes.push(format!(
                "The lowest objective of {} starts was kept.",
                self.settings.starts
            ));
        }
        Ok(Turn::End(best.ending.clone()))
    }
}
