//! `local`: a job on one cohort, without a coordinator. Nothing leaves, so no policy is asked.
//!
//! The coordinator's own state machine asks the questions, in this process, so that a job means the
//! same here as in a federation. By Algorithm 1 of the paper UnPSL learns only where somebody asks for it.

use super::driver::{VERSION, now};
use super::figures;
use super::stop::Stop;
use crate::cli::{Algorithm, Cohort, Local};
use crate::config::{ConfigError, SourceConfig};
use crate::method::unpsl::BestStart;
use crate::method::{self, Computation, Wants};
use crate::source::{self, CohortProblems, Judged};
use privacy::Rules;
use protocol::document::DocumentErrors;
use protocol::failure::{Code, Failure, Problem};
use protocol::job::Job;
use protocol::message::unpsl::Finishing;
use protocol::message::{Answer, Ask, Request, ToSite, Warrant, unpsl};
use protocol::method::unpsl::model::{RoundRow, sparsity_in_words};
use protocol::method::{Method, Model};
use protocol::name::{NameError, OperatorName, RunId, SiteName};
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;
use protocol::run::{Action, Event, Run};
use protocol::study::Study;
use report::{FolderError, PendingFolder, Replace, ReportError, Watching};
use similarity::learn::unpsl::{LocalRound, LocalStatus};
use similarity::numeric::seed::Seed;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The one site of a local run.
const SITE: &str = "local";
/// Folder of patient-level results within the output.
const PATIENTS: &str = "patients";

/// A job could not be run on one cohort.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The job file could not be read.
    #[error("{} could not be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The job has problems.
    #[error("{}:\n{problems}", path.display())]
    Job {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: DocumentErrors,
    },
    /// The study beside the job cannot be used.
    #[error(transparent)]
    Study(#[from] wire::jobs::StudyFileError),
    /// The site's configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The cohort does not fit the job.
    #[error("the data does not fit the job:\n{0}")]
    Data(CohortProblems),
    /// Values have no place in what the job makes of them.
    #[error("the data does not fit the job:\n{}", listed(.0))]
    Unfit(Vec<Problem>),
    /// Not a valid name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The output folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file of the results could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// How a local run ended.
#[derive(Debug)]
pub struct LocalRun {
    /// What it found, and how it ended.
    pub result: RunResult,
    /// Where the results are; none where the run failed.
    pub folder: Option<PathBuf>,
}

/// Runs a job on one cohort and leaves the files of a run, with patient-level results in `patients/`.
///
/// # Errors
/// [`LocalError`]; a run that fails is an ending.
pub fn run(arguments: &Local) -> Result<LocalRun, LocalError> {
    let path = &arguments.job;
    let text = std::fs::read_to_string(path).map_err(|source| LocalError::Unreadable {
        path: path.clone(),
        source,
    })?;
    let text = wire::jobs::with_draft(path, text)?;
    let job = Job::parse_for_one(&text).map_err(|problems| LocalError::Job {
        path: path.clone(),
        problems,
    })?;
    let source = source_of(arguments)?;
    let out = PendingFolder::begin(&arguments.out, Replace::forced(arguments.force))?;
    let result = Learning {
        source: &source,
        job,
        seed: arguments.seed,
        folder: out.path().join(PATIENTS),
        algorithm: arguments.algorithm,
        watching: Watching::new(),
    }
    .learn()?;
    if matches!(result.ending, Ending::Failed(_)) {
        return Ok(LocalRun {
            result,
            folder: None,
        });
    }
    report::write_with(
        &result,
        &figures::drawn(&out.path().join(PATIENTS)),
        out.path(),
    )?;
    Ok(LocalRun {
        result,
        folder: Some(out.finish()?),
    })
}

/// The card of a study, of this hospital's patients alone.
///
/// # Errors
/// [`LocalError`]; a run that fails is an ending.
pub fn card(source: &SourceConfig, study: &Study) -> Result<RunResult, LocalError> {
    let job = Job::parse_for_one(&study.card()).map_err(|problems| LocalError::Job {
        path: study.name.as_str().into(),
        problems,
    })?;
    let unwritten = |source| LocalError::Unreadable {
        path: std::env::temp_dir(),
        source,
    };
    let folder = tempfile::tempdir().map_err(unwritten)?;
    Learning {
        source,
        job,
        seed: None,
        folder: folder.path().join(PATIENTS),
        algorithm: Algorithm::Rounds,
        watching: Watching::hidden(),
    }
    .learn()
}

/// A job that is about to be run on one cohort.
struct Learning<'l> {
    source: &'l SourceConfig,
    job: Job,
    seed: Option<u64>,
    /// Of patient-level results.
    folder: PathBuf,
    algorithm: Algorithm,
    watching: Watching,
}

impl Learning<'_> {
    fn learn(self) -> Result<RunResult, LocalError> {
        let Self {
            source,
            job,
            seed,
            folder,
            algorithm,
            watching,
        } = self;
        let cohort = source::read_cohort(source, &job).map_err(LocalError::Data)?;
        let cohort = match (method::wants(&job), &job.study) {
            (Wants::Judged, _) => {
                let judged = Judged::of_site(source).map_err(LocalError::Data)?;
                cohort.with_judged(&judged).map_err(LocalError::Data)?
            }
            (Wants::Enrolled, Some(study)) => {
                let enrolled = source::read_enrolled(source, study);
                cohort.with_enrolled(enrolled.map_err(LocalError::Data)?)
            }
            (Wants::Cohort | Wants::Enrolled, _) => cohort,
        };
        for remark in &cohort.remarks {
            report::remark(format_args!("note: {remark}"));
        }
        let seed = seed.unwrap_or(job.seed);
        // Nothing leaves, so that nothing needs to be kept small, or from anybody.
        let (rules, secret) = (Rules::default(), Box::new(move |_: &[u8]| seed));
        let job = job.alone(SiteName::new(SITE)?);
        let computation = Computation::new(job.clone(), Seed(seed), cohort, folder, &rules, secret);
        let computation = computation.map_err(unfit)?;
        let counts = computation.counts().map_err(unfit)?;
        let run = Run::new(fresh_id()?, job, seed, Warrant::default(), now());
        Conversation {
            run: run.counted(counts),
            computation,
            watching,
            algorithm,
        }
        .hold()
    }
}

/// An identity that no other run has.
fn fresh_id() -> Result<RunId, NameError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let moment = since.unwrap_or_default().as_nanos();
    wire::run_id(
        &OperatorName::new(SITE)?,
        &format!("{moment} {}", std::process::id()),
    )
}

fn source_of(arguments: &Local) -> Result<SourceConfig, LocalError> {
    let Cohort { data, id, .. } = &arguments.cohort;
    Ok(match arguments.cohort.site()? {
        Some(config) => config.source,
        // Without a configuration there is a file.
        None => SourceConfig::of_file(data.as_deref().unwrap_or(Path::new("")), id.clone()),
    })
}

fn unfit(stop: Stop) -> LocalError {
    LocalError::Unfit(match stop {
        Stop::Unfit(problems) => problems,
        Stop::Refused(_) | Stop::Failed(_) => Vec::new(),
    })
}

fn listed(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// The coordinator's state machine and the computation of its only site.
struct Conversation {
    run: Run,
    computation: Computation,
    watching: Watching,
    algorithm: Algorithm,
}

impl Conversation {
    /// Answers what is asked until the run ends, or would learn in rounds what Algorithm 1 is to learn.
    fn hold(mut self) -> Result<RunResult, LocalError> {
        let site = SiteName::new(SITE)?;
        let mut next = Some(Event::Connected(site.clone()));
        let mut learned = None;
        while let Some(event) = next.take() {
            let (run, actions) = self.run.step(now(), event);
            self.run = run;
            for action in actions {
                match action {
                    Action::Report(progress) => self.watching.show(&alone(progress)),
                    Action::Send {
                        message:
                            ToSite::Ask(Ask {
                                exchange, request, ..
                            }),
                        ..
                    } => match request {
                        Request::Unpsl(request) if self.is_by_paper(&request) => {
                            learned = Some(self.learn());
                        }
                        request => {
                            let answer = self.computation.answer(&request);
                            let answer = answer.unwrap_or_else(into_answer);
                            next = Some(Event::Answered {
                                site: site.clone(),
                                exchange,
                                answer,
                                signature: Vec::new(),
                            });
                        }
                    },
                    Action::Send { .. }
                    | Action::Retell { .. }
                    | Action::Store(_)
                    | Action::End(_) => {}
                }
            }
        }
        self.watching.finish();
        Ok(learned.unwrap_or_else(|| self.run.result(VERSION)))
    }

    /// Whether Algorithm 1 takes over from here.
    fn is_by_paper(&self, request: &unpsl::Request) -> bool {
        match self.algorithm {
            Algorithm::Rounds => false,
            Algorithm::Paper => learns(request),
        }
    }

    /// Algorithm 1 in place of the rounds, then what the finishing exchange would ask.
    fn learn(&mut self) -> RunResult {
        let mut result = self.run.result(VERSION);
        let before = result.seconds;
        let began = Instant::now();
        let (computation, watching) = (&mut self.computation, &mut self.watching);
        let mut progress = alone(self.run.progress(now()));
        let mut closed: Vec<(u32, f64)> = Vec::new();
        let Some(Method::Unpsl(settings)) = self.run.method() else {
            return result;
        };
        // Rounds of Algorithm 1 are not those that the job limits.
        progress.course.round_limit = 0;
        let learned = computation.learn(&settings, None, &mut |start, round| {
            progress.course.round += 1;
            progress.course.objective = Some(round.objective);
            progress.course.primal_residual = Some(round.primal_residual);
            progress.course.dual_residual = Some(round.dual_residual);
            watching.show(&progress);
            closed.push((start, before + began.elapsed().as_secs_f64()));
        });
        let learned = match learned {
            Ok(learned) => learned,
            Err(stop) => return failed(result, stop),
        };
        let BestStart {
            start,
            run,
            relative,
        } = learned;
        let folds = match computation.validated(&settings) {
            Ok(folds) => folds,
            Err(stop) => return failed(result, stop),
        };
        let finish = Request::Unpsl(unpsl::Request::Finish(Finishing {
            consensus: Arc::new(run.matrix.clone()),
            form: settings.objective.form,
            neighbours: settings.neighbours,
            folds: Arc::new(folds.clone()),
            judges: 1,
            chosen: Arc::default(),
        }));
        match computation.answer(&finish) {
            Ok(Answer::Assessed(assessment)) => {
                result.pooled.assessment = Some(assessment);
            }
            Ok(_) => {}
            Err(stop) => return failed(result, stop),
        }
        result.ending = match run.status {
            LocalStatus::Converged => Ending::Converged,
            LocalStatus::RoundLimit => Ending::RoundLimit,
        };
        if let Some(Model::Unpsl(model)) = &mut result.model {
            model.rounds = rows(&run.rounds, start, &closed);
            model.objective = Some(run.objective);
            model.metric = Some(run.matrix);
            model.judges = u32::from(!folds.is_empty());
            model.folds = u32::try_from(folds.len()).unwrap_or(u32::MAX);
            result
                .notes
                .extend(sparsity_in_words(model.is_empty(), relative));
        }
        result.seconds = before + began.elapsed().as_secs_f64();
        result.times.ended = Some(now());
        result
            .notes
            .push("Learned by Algorithm 1 on one cohort, without a federation.".to_owned());
        result
    }
}

/// The rounds of the best start, of all that closed at so many seconds: the last of that start are those of the last lambda_1 that was
/// tried.
fn rows(rounds: &[LocalRound], start: u32, closed: &[(u32, f64)]) -> Vec<RoundRow> {
    let own: Vec<f64> = closed
        .iter()
        .filter(|(of, _)| *of == start)
        .map(|(_, seconds)| *seconds)
        .collect();
    let own = &own[own.len().saturating_sub(rounds.len())..];
    let rounds = rounds.iter().zip(own).zip(1..);
    rounds
        .map(|((round, seconds), number)| row(number, round, *seconds))
        .collect()
}

/// A round of Algorithm 1 as a result tells it.
fn row(number: u32, round: &LocalRound, seconds: f64) -> RoundRow {
    RoundRow {
        objective: Some(round.objective),
        primal_residual: Some(round.primal_residual),
        dual_residual: Some(round.dual_residual),
        penalty: Some(round.penalty),
        ..RoundRow::new(number, seconds)
    }
}

/// Whether the rounds of the run begin with it; those of a choice among settings leave a fold out, all of them.
fn learns(request: &unpsl::Request) -> bool {
    match request {
        unpsl::Request::Differentiate(asked) => asked.parts.iter().any(|part| part.fold.is_none()),
        unpsl::Request::Round(round) => round.part.fold.is_none(),
        unpsl::Request::Validate(_) | unpsl::Request::Finish(_) => false,
    }
}

/// Nobody is waited for.
fn alone(progress: Progress) -> Progress {
    Progress {
        waiting_for: Vec::new(),
        ..progress
    }
}

fn into_answer(stop: Stop) -> Answer {
    match stop {
        Stop::Unfit(problems) => Answer::Unfit(problems),
        Stop::Refused(refusal) => Answer::Refused(refusal),
        Stop::Failed(failure) => Answer::Failed(failure),
    }
}

fn failed(result: RunResult, stop: Stop) -> RunResult {
    let failure = match stop {
        Stop::Failed(failure) => failure,
        Stop::Unfit(problems) => Failure::new(Code::Cohort, listed(&problems)),
        Stop::Refused(refusal) => Failure::new(Code::Local, refusal.to_string()),
    };
    RunResult {
        ending: Ending::Failed(failure),
        ..result
    }
}
