//! What a site does in a run of UnPSL: its local updates, its part of a cross-validation, its last word on the metric.

mod alone;
mod at_site;
pub mod evaluation;
pub(crate) mod explain;
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
use privacy::{HeldOutVotes, JUDGED_PATIENTS_MIN, Rules};
use protocol::assessment::{Assessment, EvaluationCounts};
use protocol::failure::Code;
use protocol::message::unpsl::{
    Centre, Contribution, Derivatives, Differentiating, Finishing, Part, Request, Round, Validating,
};
use protocol::message::{Answer, Summary, unpsl as message};
use protocol::method::unpsl::settings::UnpslSettings;
use protocol::method::unpsl::supervision::Supervision;
use rayon::prelude::*;
use similarity::judge::votes::{VoteScore, pair_shares};
use similarity::learn::unpsl::selection::{
    Classified, Folds, cross_validated_scores, nested_scores,
};
use similarity::learn::unpsl::{
    CorrelationScope, Labels, Pairs, Settings, SharedPatients, SiteObjective, summarise,
};
use similarity::numeric::admm::SiteDual;
use similarity::numeric::linear_algebra::product;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

/// Steps of the local solver in one round at most.
const ITERATIONS_MAX: usize = 200;

/// Bytes of the objectives that are kept at most, but for one: those of all and of five folds of a million patients with 20 partners.
const OBJECTIVES_BYTES_MAX: usize = 5 << 27;
/// Bytes of a drawn pair: the other patient, and a bit.
const PAIR_BYTES: f64 = 4.125;
/// Bytes of a patient who draws pairs: where they begin, and the row of the matrix.
const PATIENT_BYTES: usize = 12;

/// UnPSL at one site.
pub(super) struct Learner {
    settings: UnpslSettings,
    /// Those of the parts that were asked about since the last preparation, as many as [`OBJECTIVES_BYTES_MAX`] holds: every round asks
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
        let drawn = || summarise(labels, pairs, site.seed);
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
        let features = prepared.matrix.ncols();
        let rows = self.settings.objective.matrix_rows(features);
        let each = validating.models_each();
        let fit = validating.folds as usize == folds.count() && models.len() % each == 0;
        if !fit || models.iter().any(|model| model.nrows() != rows) {
            let text = format!("wanted {each} models of {rows} rows to validate");
            return Err(Stop::failed(Code::Protocol, text));
        }
        let patients = Classified {
            patients: prepared.matrix.view(),
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
            matrix: &prepared.matrix,
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
        let features = prepared.matrix.ncols();
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
                let patients = prepared.matrix.select(Axis(0), &held_out);
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

    /// The site's part of the objective.
    fn objective(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        part: Part,
    ) -> Result<&SiteObjective, Stop> {
        let place = self.objectives.iter().position(|(made, _)| *made == part);
        let place = match place {
            Some(place) => place,
            None => {
                // The latest goes first, where not all fit: those before it are asked about again first.
                let most = self.objectives_max(prepared);
                self.objectives.truncate(most - 1);
                let objective = self.make_objective(site, prepared, part)?;
                self.objectives.push((part, objective));
                self.objectives.len() - 1
            }
        };
        Ok(&self.objectives[place].1)
    }

    /// Makes what is not made yet of these objectives side by side, where all of them are kept: much of making one waits for one core.
    fn make_ready(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        parts: &[Part],
    ) -> Result<(), Stop> {
        let mut missing: Vec<Part> = Vec::new();
        for part in parts {
            let is_made = self.objectives.iter().any(|(made, _)| made == part);
            if !is_made && !missing.contains(part) {
                missing.push(*part);
            }
        }
        if self.objectives.len() + missing.len() > self.objectives_max(prepared) {
            return Ok(());
        }
        let make = |part: &Part| Ok((*part, self.make_objective(site, prepared, *part)?));
        let made: Vec<Result<_, Stop>> = missing.par_iter().map(make).collect();
        let made: Result<Vec<_>, Stop> = made.into_iter().collect();
        self.objectives.extend(made?);
        Ok(())
    }

    /// How many objectives are kept.
    fn objectives_max(&self, prepared: &Prepared) -> usize {
        objectives_max(prepared.matrix.dim(), self.settings.objective.pairs)
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
        let seeds = (site.seed, Some(site.folds));
        match part.left_out().as_slice() {
            [] => objective(prepared, &labels, &settings, seeds),
            left_out => {
                let folds = self.folds(site)?;
                let whole = (&labels, &self.drawn(site, &labels));
                without(seeds, prepared, &settings, whole, (&folds, left_out))
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

/// How many objectives of so many patients with so many columns are kept. Those of drawn pairs have no matrix of their own.
fn objectives_max((patients, columns): (usize, usize), pairs: Pairs) -> usize {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    let of_patient = match pairs {
        Pairs::All => columns * size_of::<f64>(),
        Pairs::PerPatient(partners) => (partners as f64 * PAIR_BYTES) as usize + PATIENT_BYTES,
    };
    let bytes = patients.saturating_mul(of_patient);
    (OBJECTIVES_BYTES_MAX / bytes.max(1)).max(1)
}

fn no_folds() -> Stop {
    let text = "the coordinator asked for folds that the job does not have";
    Stop::failed(Code::Protocol, text)
}

/// Of pairs, and of what hides the site's own numbers in a sum: none where no other site adds to it.
type Seeds = (Seed, Option<Seed>);

/// The objective among the patients of all folds but one, or two.
fn without(
    seeds: Seeds,
    prepared: &Prepared,
    settings: &Settings,
    (labels, whole): (&Labels, &Summary),
    (folds, left_out): (&Folds, &[u32]),
) -> Result<SiteObjective, Stop> {
    let is_fold = |fold: &u32| (*fold as usize) < folds.count();
    if !left_out.iter().all(is_fold) {
        let text = format!("found folds {left_out:?}, wanted some of {}", folds.count());
        return Err(Stop::failed(Code::Protocol, text));
    }
    let rows = folds.without(left_out);
    let training = labels.among(&rows);
    let patients = SharedPatients::all(Arc::clone(&prepared.matrix)).some(&rows);
    let totals = (&prepared.totals, whole);
    let pooled = prepared.pooled.clone();
    SiteObjective::of_part(patients, &training, settings, totals, seeds, pooled).map_err(fault)
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
    seeds: Seeds,
) -> Result<SiteObjective, Stop> {
    let patients = SharedPatients::all(Arc::clone(&prepared.matrix));
    let (totals, pooled) = (&prepared.totals, prepared.pooled.clone());
    SiteObjective::of(patients, labels, settings, totals, seeds, pooled).map_err(fault)
}

fn fault(error: impl std::error::Error) -> Stop {
    Stop::numeric(Code::Unpsl, error)
}
