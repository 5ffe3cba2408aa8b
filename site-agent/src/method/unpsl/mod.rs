//! What a site does in a run of UnPSL: its local updates, its part of a cross-validation, its last word on the metric.

mod at_site;
pub mod evaluation;
pub(crate) mod explain;
pub mod results;

// By this name the list of methods knows it.
pub(super) use self::Learner as Own;
use super::SiteRun;
use super::preparation::Prepared;
use crate::cases::record::{Chosen, Learned, LearnedMetric, Record};
use crate::run::stop::Stop;
use ndarray::{Axis, s};
use privacy::HeldOutVotes;
use protocol::assessment::Assessment;
use protocol::failure::Code;
use protocol::message::unpsl::{
    Centre, Contribution, Derivatives, Differentiating, Finishing, Part, Request, Round, Validating,
};
use protocol::message::{Answer, Summary, unpsl as message};
use protocol::method::unpsl::settings::UnpslSettings;
use protocol::method::unpsl::supervision::Supervision;
use similarity::judge::votes::VoteScore;
use similarity::learn::unpsl::accelerated::{
    Knowledge, LOWERED, RelativeSparsity, Search, SearchSettings, search_sites,
};
use similarity::learn::unpsl::selection::{Classified, Folds, cross_validated_scores};
use similarity::learn::unpsl::{
    self, CorrelationScope, Labels, LocalLimits, LocalRound, LocalRun, Settings, SiteObjective,
    summarise,
};
use similarity::numeric::admm::SiteDual;
use similarity::numeric::seed::Seed;
use std::cell::OnceCell;
use std::sync::Arc;

/// Steps of the local solver in one round at most.
const ITERATIONS_MAX: usize = 200;

/// Rounds of Algorithm 1 for every round that the job allows: these cross no network.
const ROUNDS_A_ROUND: u32 = 10;

/// UnPSL at one site.
pub(super) struct Learner {
    settings: UnpslSettings,
    /// Made once a preparation and again for another part.
    objective: Option<(Part, SiteObjective)>,
    /// Where the sites hold their duals. It follows from the rounds that this process has answered, or has answered again.
    dual: SiteDual,
}

/// What Algorithm 1 found from the best of several starts.
pub struct BestStart {
    /// The start, from 0.
    pub start: u32,
    /// What came of it.
    pub run: LocalRun,
    /// lambda_1 where it followed from the data.
    pub relative: Option<f64>,
}

impl Learner {
    pub(super) fn new(settings: UnpslSettings) -> Self {
        Self {
            dual: SiteDual::new(settings.relaxation),
            settings,
            objective: None,
        }
    }

    /// Whether the site tells its second moments when it is prepared.
    pub(super) fn correlates(&self) -> bool {
        self.settings.objective.correlation == CorrelationScope::Pooled
    }

    /// The site was prepared anew.
    pub(super) fn forget(&mut self) {
        self.objective = None;
    }

    /// Patients and pairs.
    pub(super) fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        let pairs = self.settings.objective.pairs;
        let labels = labels(site, self.settings.supervision)?;
        Ok(summarise(&labels, pairs, site.seed))
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
            Centre::Told(_) | Centre::Gradient => None,
        };
        let objective = self.objective(site, prepared, round.part)?;
        let own;
        let centre = match (&round.centre, &moved) {
            (_, Some(moved)) => moved,
            (Centre::Told(centre), None) => centre,
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
        let Validating {
            models, neighbours, ..
        } = validating;
        let folds = self.folds(site)?;
        let features = prepared.matrix.ncols();
        let rows = self.settings.objective.matrix_rows(features);
        let fit = models.len() % folds.count() == 0;
        if !fit || models.iter().any(|model| model.nrows() != rows) {
            let text = format!("wanted {} models of {rows} rows to validate", folds.count());
            return Err(Stop::failed(Code::Protocol, text));
        }
        let patients = Classified {
            patients: prepared.matrix.view(),
            classes: site.classes_of()?,
        };
        let wanted: Vec<usize> = neighbours.iter().map(|count| *count as usize).collect();
        let rule = self.settings.neighbour_rule;
        let told = |sum: VoteScore| {
            Some(HeldOutVotes {
                right: sum.counts.right,
                wrong: sum.counts.wrong,
                log_loss: sum.log_loss,
            })
        };
        let mut candidates = Vec::with_capacity(models.len() / folds.count());
        for models in models.chunks(folds.count()) {
            let metrics: Vec<_> = models
                .iter()
                .map(|model| model.slice(s![..features, ..]))
                .collect();
            let sums = cross_validated_scores(&patients, &folds, &metrics, rule, &wanted);
            candidates.push(sums.map_err(fault)?.into_iter().map(told).collect());
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
            neighbours,
            folds: models,
            judges,
        } = finishing;
        let objective = self.objective(site, prepared, Part::whole(*form))?;
        let value = objective.value(consensus).map_err(fault)?;
        let threshold = objective.threshold(consensus);
        let chosen = Chosen {
            rule: self.settings.neighbour_rule,
            form: *form,
            neighbours: *neighbours,
        };
        let learned = LearnedMetric::new(&prepared.standardisation, consensus, chosen);
        let judged = site.judged(*judges);
        let folds = match models.is_empty() || judged.is_none() {
            true => None,
            false => Some(self.folds_of(site, models.len())?),
        };
        let classes = site.classes.len();
        let local = results::LocalResults {
            folds: folds.as_ref(),
            record: Record::new(site, Learned::Metric(learned)),
            matrix: &prepared.matrix,
            standardisation: &prepared.standardisation,
            outcome: site.cohort.cohort.outcome(),
            judged: site.cohort.judged(),
            patients: &site.cohort.patients,
            metric: consensus,
            form: *form,
            threshold,
            neighbours: *neighbours,
            rule: self.settings.neighbour_rule,
            nearest: OnceCell::new(),
        };
        results::write(&local, &site.folder)
            .map_err(|error| Stop::failed(Code::Results, error.to_string()))?;
        Ok(Answer::Assessed(Assessment {
            objective: Some(value),
            evaluation: evaluation::evaluate(&local, classes),
            validation: match judged {
                _ if models.is_empty() => Vec::new(),
                Some(judged) => {
                    evaluation::validate(&local, models, classes, &judged).map_err(fault)?
                }
                None => evaluation::nobody(*neighbours, classes),
            },
            ..Assessment::default()
        }))
    }

    /// The site's part of the objective.
    fn objective(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        part: Part,
    ) -> Result<&SiteObjective, Stop> {
        if self
            .objective
            .as_ref()
            .is_none_or(|(made, _)| *made != part)
        {
            // The old one goes first: two would not always fit.
            self.objective = None;
            self.objective = Some((part, self.make_objective(site, prepared, part)?));
        }
        let made = self.objective.as_ref().map(|(_, objective)| objective);
        made.ok_or_else(Stop::early)
    }

    fn make_objective(
        &self,
        site: &SiteRun,
        prepared: &Prepared,
        part: Part,
    ) -> Result<SiteObjective, Stop> {
        let mut settings = self.settings.objective;
        // A rank to choose from may be larger; what is asked has the rank that it has.
        settings.rank = settings.rank.min(prepared.matrix.ncols());
        settings.form = part.form;
        let labels = labels(site, self.settings.supervision)?;
        match part.fold {
            None => objective(prepared, &labels, &settings, site.seed),
            Some(fold) => {
                let folds = self.folds(site)?;
                without(site.seed, prepared, &settings, &labels, (&folds, fold))
            }
        }
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

/// The objective among the patients of all folds but one.
fn without(
    seed: Seed,
    prepared: &Prepared,
    settings: &Settings,
    labels: &Labels,
    (folds, fold): (&Folds, u32),
) -> Result<SiteObjective, Stop> {
    if fold as usize >= folds.count() {
        let text = format!("found fold {fold}, wanted one of {}", folds.count());
        return Err(Stop::failed(Code::Protocol, text));
    }
    let rows = folds.split(fold as usize).training;
    let training = labels.among(&rows);
    let summary = |labels: &Labels| summarise(labels, settings.pairs, seed);
    let totals = prepared
        .totals
        .for_part(&summary(labels), &summary(&training));
    let part = Prepared {
        matrix: prepared.matrix.select(Axis(0), &rows),
        standardisation: prepared.standardisation.clone(),
        totals,
        pooled: prepared.pooled.clone(),
    };
    objective(&part, &training, settings, seed)
}

/// UnPSL by Algorithm 1 on one cohort alone, or on it without one fold. `settings` are the job's, with what was chosen;
/// `observe` sees every round as it closes, with the number of its start. Where the job states no lambda_1, it follows from the
/// data as in a federation.
pub(super) fn learn(
    site: &SiteRun,
    prepared: &Prepared,
    settings: &UnpslSettings,
    fold: Option<u32>,
    observe: &mut dyn FnMut(u32, &LocalRound),
) -> Result<BestStart, Stop> {
    let mut of_part = match (fold, settings.folds()) {
        (Some(_), Some(folds)) => settings.objective_without_a_fold(folds),
        _ => settings.objective,
    };
    let labels = labels(site, settings.supervision)?;
    let made = |of_part: &Settings| match fold {
        None => objective(prepared, &labels, of_part, site.seed),
        Some(fold) => {
            let folds = site.parted(settings.folds().ok_or_else(no_folds)?)?;
            without(site.seed, prepared, of_part, &labels, (&folds, fold))
        }
    };
    let mut lowerings = 0;
    if let Some(relative) = settings.relative_lambda() {
        of_part.lambda_sparsity = usual_lambda(site, &made(&of_part)?, relative)?;
        lowerings = relative.lowerings;
    }
    loop {
        let found = best_start(site, &made(&of_part)?, settings, observe)?;
        let is_empty = found.run.matrix.iter().all(|entry| *entry == 0.0);
        if lowerings == 0 || !is_empty {
            let relative = settings.relative_lambda().map(|_| of_part.lambda_sparsity);
            return Ok(BestStart { relative, ..found });
        }
        lowerings -= 1;
        of_part.lambda_sparsity *= LOWERED;
    }
}

/// What lambda_1 follows from the cohort alone.
fn usual_lambda(
    site: &SiteRun,
    objective: &SiteObjective,
    relative: RelativeSparsity,
) -> Result<f64, Stop> {
    let (own, features) = (objective.settings(), objective.features());
    let search = SearchSettings {
        lambda_sparsity: own.lambda_sparsity,
        form: own.form,
        tolerance: 1.0,
        tolerance_residual: f64::INFINITY,
    };
    let start = unpsl::start(own, features, site.seed, 0);
    let search = Search::new(search, start, features);
    let search = search.relative(RelativeSparsity::of_share(relative.share));
    let mut known = match UnpslSettings::is_wide(features) {
        true => Knowledge::wide(),
        false => Knowledge::new(),
    };
    // Of wide data the first answer says which rows to look at.
    let rounds = 1 + usize::from(UnpslSettings::is_wide(features));
    let sites = std::slice::from_ref(objective);
    let search = search_sites(sites, search, &mut known, rounds, &mut |_, _| {});
    Ok(search.map_err(fault)?.lambda_sparsity())
}

/// The best of the starts under one lambda_1.
fn best_start(
    site: &SiteRun,
    objective: &SiteObjective,
    settings: &UnpslSettings,
    observe: &mut dyn FnMut(u32, &LocalRound),
) -> Result<BestStart, Stop> {
    let pairs = objective.summary().pairs.total();
    let penalty = settings
        .penalty
        .unwrap_or_else(|| settings.objective.penalty_start(1, pairs));
    let limits = LocalLimits {
        tolerance_absolute: settings.tolerance_absolute,
        tolerance_relative: settings.tolerance_relative,
        rounds: (ROUNDS_A_ROUND * settings.round_limit) as usize,
        ..LocalLimits::new(penalty)
    };
    let mut best: Option<BestStart> = None;
    for start in 0..settings.starts {
        let index = u64::from(start);
        let from = unpsl::start(&settings.objective, objective.features(), site.seed, index);
        let run = unpsl::learn_observed(objective, from, &limits, &mut |round| {
            observe(start, round);
        })
        .map_err(fault)?;
        if best
            .as_ref()
            .is_none_or(|best| run.objective < best.run.objective)
        {
            let relative = None;
            best = Some(BestStart {
                start,
                run,
                relative,
            });
        }
    }
    best.ok_or_else(|| Stop::failed(Code::Settings, "there is no start to learn from"))
}

fn labels(site: &SiteRun, supervision: Supervision) -> Result<Labels, Stop> {
    let codes = site.classes_of()?.clone();
    let judged = || {
        let judged = site.cohort.judged().cloned();
        judged.ok_or_else(|| Stop::failed(Code::Cohort, "the judged pairs were not read"))
    };
    Ok(match supervision {
        Supervision::Outcome => Labels::Classes(codes),
        Supervision::Physician => Labels::Judged(judged()?),
        Supervision::Both { times } => Labels::Both {
            codes,
            judged: judged()?,
            times,
        },
    })
}

fn objective(
    prepared: &Prepared,
    labels: &Labels,
    settings: &Settings,
    seed: Seed,
) -> Result<SiteObjective, Stop> {
    let (patients, totals) = (prepared.matrix.view(), &prepared.totals);
    let made = match &prepared.pooled {
        Some(pooled) => {
            let pooled = Arc::clone(pooled);
            SiteObjective::with_pooled_correlation(
                &patients, labels, settings, totals, seed, pooled,
            )
        }
        None => SiteObjective::new(&patients, labels, settings, totals, seed),
    };
    made.map_err(fault)
}

fn fault(error: impl std::error::Error) -> Stop {
    Stop::numeric(Code::Unpsl, error)
}
