//! What a site does in a run of UnPSL: its local updates, its part of a cross-validation, its last word on the metric.

mod alone;
mod at_site;
pub mod evaluation;
pub(crate) mod explain;
mod objectives;
pub mod results;

pub use alone::BestStart;
pub(super) use alone::learn;
// By this name the list of methods knows it.
pub(super) use self::Learner as Own;
use super::SiteRun;
use super::preparation::Prepared;
use crate::cases::record::{Chosen, Learned, LearnedMetric, Record};
use crate::run::stop::Stop;
use ndarray::{Axis, s};
use objectives::labels;
use privacy::{HeldOutVotes, JUDGED_PATIENTS_MIN, Rules};
use protocol::assessment::{Assessment, EvaluationCounts};
use protocol::failure::Code;
use protocol::message::unpsl::{
    Centre, Contribution, Derivatives, Differentiating, Finishing, Part, Request, Round, Validating,
};
use protocol::message::{Answer, Summary, unpsl as message};
use protocol::method::unpsl::settings::UnpslSettings;
use similarity::judge::votes::{VoteScore, pair_shares};
use similarity::learn::unpsl::selection::{
    Classified, Folds, cross_validated_scores, nested_scores,
};
use similarity::learn::unpsl::{CorrelationScope, Labels, SiteObjective, summarise};
use similarity::numeric::admm::SiteDual;
use similarity::numeric::linear_algebra::product;
use similarity::numeric::precision::Precision;
use std::cell::OnceCell;
use std::sync::OnceLock;

/// Steps of the local solver in one round at most.
const ITERATIONS_MAX: usize = 200;

/// UnPSL at one site.
pub(super) struct Learner {
    settings: UnpslSettings,
    /// Those of the parts that were asked about since the last preparation, as many as are kept: every round asks
    /// about all folds.
    objectives: Vec<(Part, SiteObjective)>,
    /// Where the sites hold their duals. It follows from the rounds that this process has answered, or has answered again.
    dual: SiteDual,
    /// What the site has of patients and pairs, once it was asked for.
    drawn: OnceLock<Summary>,
    /// Patients in judged pairs at least, and pairs, of which anything is counted.
    judged_min: u64,
}

impl Learner {
    pub(super) fn new(settings: UnpslSettings, rules: &Rules) -> Self {
        Self {
            judged_min: rules.patients_min.max(JUDGED_PATIENTS_MIN),
            dual: SiteDual::new(settings.relaxation),
            settings,
            objectives: Vec::new(),
            drawn: OnceLock::new(),
        }
    }

    /// Whether the site tells its second moments when it is prepared.
    pub(super) fn correlates(&self) -> bool {
        self.settings.objective.correlation == CorrelationScope::Pooled
    }

    /// How finely its sums are known.
    pub(super) fn precision(&self) -> Precision {
        self.settings.objective.precision
    }

    /// The site was prepared anew.
    pub(super) fn forget(&mut self) {
        self.objectives.clear();
    }

    /// Patients and pairs.
    pub(super) fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        let labels = labels(site, self.settings.supervision)?;
        Ok(self
            .drawn(site, &labels)
            .released(&labels, self.precision()))
    }

    /// The same, exactly. Pairs are drawn once for it.
    fn drawn(&self, site: &SiteRun, labels: &Labels) -> Summary {
        let pairs = self.settings.objective.pairs;
        let drawn = || summarise(labels, pairs, site.folds);
        *self.drawn.get_or_init(drawn)
    }

    pub(super) fn answer(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        request: &Request,
    ) -> Result<Answer, Stop> {
        match request {
            Request::Differentiate(asked) => self.differentiate(site, prepared, asked),
            Request::Round(round) => self.round(site, prepared, round),
            Request::Validate(validating) => self.validate(site, prepared, validating),
            Request::Finish(finishing) => self.finish(site, prepared, finishing),
        }
    }

    fn differentiate(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        asked: &Differentiating,
    ) -> Result<Answer, Stop> {
        self.make_ready(site, prepared, &asked.parts)?;
        let mut told = Vec::with_capacity(asked.metrics.len());
        let questions = asked
            .metrics
            .iter()
            .zip(&asked.parts)
            .zip(asked.rows.iter());
        for ((metric, part), rows) in questions {
            let objective = self.objective(site, prepared, *part)?;
            let own = objective.derivatives(metric, rows.as_deref());
            told.push(Derivatives::fold(&own.map_err(fault)?));
        }
        Ok(Answer::Unpsl(message::Answer::Derivatives(told)))
    }

    fn round(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        round: &Round,
    ) -> Result<Answer, Stop> {
        let moved = match &round.centre {
            Centre::Dual(step) => Some(self.dual.centre(&round.consensus, step)),
            Centre::Sent(_) | Centre::Gradient => None,
        };
        let objective = self.objective(site, prepared, round.part)?;
        let own;
        let centre = match (&round.centre, &moved) {
            (_, Some(moved)) => moved,
            (Centre::Sent(centre), None) => centre,
            (Centre::Gradient | Centre::Dual(_), None) => {
                own = objective
                    .own_centre(&round.consensus, round.penalty)
                    .map_err(fault)?;
                &own
            }
        };
        let solution = objective
            .solve(
                &round.consensus,
                centre,
                round.penalty,
                round.tolerance,
                ITERATIONS_MAX,
            )
            .map_err(fault)?;
        let answered = |_| self.dual.answered(&round.consensus, &solution.matrix);
        let products = moved.as_ref().map(answered);
        Ok(Answer::Unpsl(message::Answer::Contribution(Contribution {
            matrix: solution.matrix,
            objective: solution.objective_at_consensus,
            iterations: u32::try_from(solution.iterations).unwrap_or(u32::MAX),
            products,
        })))
    }

    /// Leave one fold out: how its patients' neighbours vote, summed over the folds.
    fn validate(
        &self,
        site: &SiteRun,
        prepared: &Prepared,
        validating: &Validating,
    ) -> Result<Answer, Stop> {
        let (models, neighbours) = (&validating.models, &validating.neighbours);
        let folds = self.folds(site)?;
        let features = prepared.matrix().ncols();
        let rows = self.settings.objective.matrix_rows(features);
        let each = validating.models_each();
        let fit = validating.folds as usize == folds.count() && models.len() % each == 0;
        if !fit || models.iter().any(|model| model.nrows() != rows) {
            let text = format!("wanted {each} models of {rows} rows to validate");
            return Err(Stop::failed(Code::Protocol, text));
        }
        let patients = Classified {
            patients: prepared.matrix().view(),
            classes: site.classes_of()?,
        };
        let wanted: Vec<usize> = neighbours.iter().map(|count| *count as usize).collect();
        let drawn = site.drawn(&prepared.totals);
        let held_out = (&folds, drawn.as_slice());
        let rule = self.settings.neighbour_rule;
        let told = |sum: VoteScore| {
            Some(HeldOutVotes {
                right: sum.counts.right,
                wrong: sum.counts.wrong,
                log_loss: sum.log_loss,
            })
        };
        let mut candidates = Vec::with_capacity(models.len() / each);
        for models in models.chunks(each) {
            let metrics: Vec<_> = models
                .iter()
                .map(|model| model.slice(s![..features, ..]))
                .collect();
            let (of_one, of_two) = metrics.split_at(folds.count());
            let sums = cross_validated_scores(&patients, held_out, of_one, rule, &wanted);
            let mut sums = sums.map_err(fault)?;
            if validating.nested {
                let nested = nested_scores(&patients, held_out, of_two, rule, &wanted);
                sums.extend(nested.map_err(fault)?);
            }
            candidates.push(sums.into_iter().map(told).collect());
        }
        Ok(Answer::Unpsl(message::Answer::Validated(candidates)))
    }

    fn finish(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        finishing: &Finishing,
    ) -> Result<Answer, Stop> {
        let Finishing {
            consensus,
            form,
            folds: models,
            judges,
            ..
        } = finishing;
        let objective = self.objective(site, prepared, Part::whole(*form))?;
        let (value, threshold) = objective.released_value(consensus).map_err(fault)?;
        if !self.settings.supervision.wants_judgements() {
            // Their memory is for what follows.
            self.objectives.clear();
        }
        let learned = self.learned(prepared, finishing);
        let judged = site.judged(*judges, &prepared.totals);
        let folds = match models.is_empty() || judged.is_none() {
            true => None,
            false => Some(self.folds_of(site, models.len())?),
        };
        let classes = site.classes.len();
        let local = results::LocalResults {
            folds: folds.as_ref(),
            record: Record::new(&site.job, &site.cohort, Learned::Metric(learned)),
            matrix: prepared.matrix(),
            standardisation: &prepared.standardisation,
            outcome: site.cohort.cohort.outcome(),
            specification: &site.job.cohort.outcome,
            judged: site.cohort.judged(),
            patients: &site.cohort.patients,
            metric: consensus,
            form: *form,
            threshold,
            neighbours: finishing.neighbours,
            rule: self.settings.neighbour_rule,
            placed: OnceCell::new(),
            nearest: OnceCell::new(),
        };
        results::write(&local, &site.folder)
            .map_err(|error| Stop::failed(Code::Results, error.to_string()))?;
        let drawn = site.drawn(&prepared.totals);
        let by_folds = judged.as_deref().filter(|_| folds.is_some());
        let plain = by_folds.map(|own| evaluation::plain(&local, finishing, own));
        let plain = plain.transpose().map_err(fault)?;
        let mut validation = match (models.is_empty(), judged.as_deref().zip(plain.as_ref())) {
            (true, _) => Vec::new(),
            (false, None) => evaluation::nobody(evaluation::neighbours_of(finishing), classes),
            (false, Some(held_out)) => {
                evaluation::validate(&local, finishing, classes, held_out, site.job.is_alone())
                    .map_err(fault)?
            }
        };
        let plain = plain.filter(|_| judged.as_ref() == Some(&drawn));
        let evaluation = evaluation::evaluate(&local, classes, &drawn, plain.as_ref());
        let held_out = folds.as_ref().zip(judged.as_deref());
        if !models.is_empty() && self.settings.supervision.wants_judgements() {
            validation.push(self.held_out_pairs(site, prepared, finishing, held_out)?);
        }
        Ok(Answer::Assessed(Assessment {
            objective: Some(value),
            evaluation,
            validation,
            ..Assessment::default()
        }))
    }

    /// The metric, with what it is used by.
    fn learned(&self, prepared: &Prepared, finishing: &Finishing) -> LearnedMetric {
        let chosen = Chosen {
            rule: self.settings.neighbour_rule,
            form: finishing.form,
            neighbours: finishing.neighbours,
        };
        LearnedMetric::new(&prepared.standardisation, &finishing.consensus, chosen)
    }

    /// Of every judged pair whose two patients are held out in one fold, and are counted, what the metric that was learnt without both says
    /// of it, with whether it is similar. None where they are so few that their sum would be of fewer patients than the rule for judged
    /// pairs wants.
    fn held_out_pairs(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        finishing: &Finishing,
        held_out: Option<(&Folds, &[bool])>,
    ) -> Result<EvaluationCounts, Stop> {
        let Some((pairs, (folds, judged))) = site.cohort.judged().zip(held_out) else {
            return Ok(evaluation::held_out_pairs(&[]));
        };
        let features = prepared.matrix().ncols();
        let (mut shares, mut members) = (Vec::new(), 0);
        for (fold, model) in (0..).zip(finishing.folds.iter()) {
            let mut held_out = folds.split(fold as usize).held_out;
            held_out.retain(|patient| judged[*patient]);
            let own = pairs.among(&held_out);
            if own.pairs().is_empty() {
                continue;
            }
            let form = finishing.of_fold(fold as usize).form;
            let part = Part::without(form, fold);
            // None where the training pairs are all alike.
            if let Some(threshold) = self.objective(site, prepared, part)?.threshold(model) {
                let patients = prepared.matrix().select(Axis(0), &held_out);
                let projected = product(&patients.view(), &model.slice(s![..features, ..]));
                shares.extend(pair_shares(&projected.view(), &own, form, threshold));
                members += own.members().len();
            }
        }
        if (members.min(shares.len()) as u64) < self.judged_min {
            shares.clear();
        }
        Ok(evaluation::held_out_pairs(&shares))
    }

    /// The folds of the job's cross-validation.
    pub(super) fn folds(&self, site: &SiteRun) -> Result<Folds, Stop> {
        self.settings
            .folds()
            .map_or_else(|| Err(no_folds()), |folds| site.parted(folds))
    }

    /// The same, where they are so many.
    fn folds_of(&self, site: &SiteRun, count: usize) -> Result<Folds, Stop> {
        let folds = self.folds(site)?;
        match folds.count() == count {
            true => Ok(folds),
            false => Err(no_folds()),
        }
    }
}

fn no_folds() -> Stop {
    let text = "the coordinator asked for folds that the job does not have";
    Stop::failed(Code::Protocol, text)
}

fn fault(error: impl std::error::Error) -> Stop {
    Stop::numeric(Code::Unpsl, error)
}
