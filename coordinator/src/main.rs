//! `kindred-coordinator`.

use clap::{CommandFactory, Parser};
use coordinator::audit::{Act, By};
use coordinator::certificates::{Invited, IssuedCertificates};
use coordinator::cli::{
    Audit, BackUp, Certificates, Cli, Command, Issue, Job, JobResult, Party, Sites, Study,
};
use coordinator::config::{CoordinatorConfig, StoreConfig};
use coordinator::exit::{Ended, Exit, UsageError};
use coordinator::operator::{self, Asked, Hospitals, Watched};
use coordinator::{backup, doctor, enrolment, init, serve, simulate};
use protocol::name::RunId;
use protocol::progress::Ending;
use report::{Did, PendingFolder, RunSaid, complain, remark, say, with_causes};
use report::{run_json, run_text, runs_json, runs_table};
use report::{studies_json, studies_table, study_json, study_text};
use serde::Serialize;
use service::audit;
use service::certificate::Certified;
use service::log::LogFormat;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;
use time::{Date, OffsetDateTime};
use tracing::level_filters::LevelFilter;
use wire::CredentialFiles;
use wire::certificates::{self, Role, Validity};

fn main() -> ExitCode {
    let Cli { command, speech } = Cli::parse();
    // A simulation speaks by its progress; a server by its log.
    let level = match &command {
        Command::Serve(_) | Command::Certificates(Certificates::Serve(_)) => LevelFilter::INFO,
        Command::Simulate(_)
        | Command::Doctor(_)
        | Command::Study(_)
        | Command::Job(_)
        | Command::Sites(_)
        | Command::Audit(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Init(_)
        | Command::Enrol(_)
        | Command::Renew(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Certificates(_) => LevelFilter::ERROR,
    };
    speech.begin(level);
    report::speak(speech.quiet, speech.log_format == LogFormat::Json);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(error);
            return Exit::Failed.into();
        }
    };
    let ran = runtime.block_on(run(command));
    // A read of standard input cannot be called back.
    runtime.shutdown_background();
    match ran {
        Ok(exit) => exit.into(),
        Err(Ended { exit, error }) => {
            if exit != Exit::Unread {
                complain(with_causes(error.as_ref()));
            }
            exit.into()
        }
    }
}

async fn run(command: Command) -> Result<Exit, Ended> {
    match command {
        Command::Simulate(arguments) if arguments.stop => {
            let folder = simulate::stop(&arguments).await?;
            let ended = format!("ended; {} is gone", folder.display());
            match arguments.json {
                true => show(&Did::to_files("ended", [folder.as_path()]), true),
                false => said(ended),
            }
        }
        Command::Simulate(arguments) => {
            let simulated = simulate::simulate(&arguments).await?;
            let (result, folder) = (&simulated.result, simulated.folder.as_deref());
            RunSaid::ended(result, folder).say(arguments.json)?;
            if !arguments.json {
                simulated.to_try.iter().try_for_each(say)?;
            }
            Ok(Exit::of_ending(&result.ending))
        }
        Command::Serve(arguments) => {
            serve::serve(&arguments).await?;
            Ok(Exit::Done)
        }
        Command::Doctor(arguments) => {
            let checkup = doctor::examine(&arguments.config);
            show(&checkup, arguments.json)?;
            Ok(match checkup.is_well() {
                true => Exit::Done,
                false => Exit::Failed,
            })
        }
        Command::Study(study) => run_study(study).await,
        Command::Job(job) => run_job(job).await,
        Command::Sites(Sites::List(arguments)) => {
            let studies = operator::studies(&arguments.config).await?;
            show(&Hospitals::of(&studies), arguments.json)
        }
        Command::Audit(audit) => run_audit(&audit),
        Command::Backup(arguments) => run_backup(&arguments),
        Command::Restore(arguments) => show(&backup::restore(&arguments)?, arguments.json),
        Command::Init(arguments) => {
            let founded = init::init(&arguments)?;
            show(&founded, arguments.json)?;
            remark(
                "each token is for one hospital, once, for 72 hours: send it by a way that nobody else reads",
            );
            Ok(Exit::Done)
        }
        Command::Enrol(arguments) => {
            let enrolled = enrolment::enrol(&arguments).await?;
            certified(&enrolled.files, Some(&enrolled.config), arguments.json)
        }
        Command::Renew(arguments) => {
            let files = enrolment::renew(&arguments).await?;
            certified(&files, None, arguments.json)
        }
        Command::Certificates(certificates) => run_certificates(certificates).await,
        Command::Completions(arguments) => said(arguments.script(Cli::command())),
        Command::Man(arguments) => {
            let written = arguments.write(Cli::command())?;
            let pages = written.iter().map(PathBuf::as_path);
            show(&Did::to_files("written", pages), arguments.json)
        }
    }
}

/// Copies the folder. Scripts learn by the code that the runs are not in the copy.
fn run_backup(arguments: &BackUp) -> Result<Exit, Ended> {
    let config = CoordinatorConfig::open(&arguments.config)?;
    show(&backup::backup(&config, &arguments.out)?, arguments.json)?;
    Ok(match config.store {
        StoreConfig::Sqlite => Exit::Done,
        StoreConfig::Postgres(_) => Exit::Elsewhere,
    })
}

fn run_audit(command: &Audit) -> Result<Exit, Ended> {
    match command {
        Audit::List(arguments) => {
            let folder = CoordinatorConfig::open(&arguments.config)?.folder;
            let listed = audit::list::<By, Act>(&folder, arguments.run.as_deref())?;
            show(&listed, arguments.json)
        }
        Audit::Verify(arguments) => {
            let kept = arguments.kept()?;
            let folder = CoordinatorConfig::open(&arguments.config)?.folder;
            let verified = audit::verify::<By, Act>(&folder, kept.as_ref())?;
            show(&verified, arguments.json)
        }
    }
}

async fn run_certificates(command: Certificates) -> Result<Exit, Ended> {
    match command {
        Certificates::Serve(arguments) => {
            enrolment::serve(&arguments).await?;
            Ok(Exit::Done)
        }
        Certificates::Init(arguments) => {
            certificates::init(&arguments.folder, Validity::days(arguments.days))?;
            let folder = arguments.folder.join("authority");
            let certificate = folder.join("certificate.pem");
            let files = CredentialFiles {
                key: folder.join("key.pem"),
                authority: certificate.clone(),
                certificate,
            };
            certified(&files, None, arguments.json)
        }
        Certificates::Invite(arguments) => {
            let token = enrolment::invite(&arguments)?;
            show(&Invited::of(&token), arguments.json)?;
            remark(format_args!(
                "for {}, once, until {}: send it by a way that nobody else reads",
                token.identity,
                minute(token.until)
            ));
            Ok(Exit::Done)
        }
        Certificates::Issue(arguments) => {
            let (role, name) = party(&arguments);
            if let Role::Coordinator { hosts } = &role
                && hosts.is_empty()
            {
                return Err(UsageError(format!(
                    "found no --hosts for {name}, wanted the names by which it is reached"
                ))
                .into());
            }
            let validity = Validity::days(arguments.days);
            let files = certificates::issue(&arguments.folder, &role, name, validity)?;
            certified(&files, None, arguments.json)?;
            if day(certificates::valid_until(&files.certificate)?) < day(validity.until) {
                remark("note: it would outlive its authority, and ends with it");
            }
            Ok(Exit::Done)
        }
        Certificates::Renew(arguments) => {
            let (role, name) = party(&arguments);
            let validity = Validity::days(arguments.days);
            let files = certificates::renew(&arguments.folder, &role, name, validity)?;
            certified(&files, None, arguments.json)
        }
        Certificates::List(arguments) => {
            let issued = certificates::list(&arguments.folder)?;
            let issued = IssuedCertificates::new(&issued, SystemTime::now());
            show(&issued, arguments.json)
        }
        Certificates::Revoke(arguments) => {
            let (role, name) = arguments.party.role()?;
            let list = certificates::revoke(&arguments.folder, &role, name)?;
            show(&Did::to_files("revoked", [list.as_path()]), arguments.json)
        }
    }
}

async fn run_job(job: Job) -> Result<Exit, Ended> {
    match job {
        Job::Check(arguments) => show(&operator::check(&arguments.job)?, arguments.json),
        Job::Submit(arguments) => {
            let operator::Submitted { run, folder } = operator::submit(&arguments).await?;
            if !arguments.wait {
                return begun(&run, arguments.json);
            }
            if !arguments.json {
                say(&run)?;
            }
            let folder = match folder {
                Some(folder) => folder,
                None => operator::folder(None, &run, arguments.force)?,
            };
            let ended = operator::watch(&arguments.config, &run, folder).await?;
            finish(&ended, &run, &arguments.config, arguments.json)
        }
        Job::Watch(arguments) => {
            let (run, folder) = run_and_folder(&arguments)?;
            let ended = operator::watch(&arguments.config, &run, folder).await?;
            finish(&ended, &run, &arguments.config, arguments.json)
        }
        Job::Show(arguments) => {
            let progress = operator::show(&arguments.config, &RunId::new(&arguments.run)?).await?;
            said(match arguments.json {
                true => run_json(&progress)?,
                false => run_text(&progress),
            })
        }
        Job::Result(arguments) => {
            let (run, folder) = run_and_folder(&arguments)?;
            let ended = operator::result(&arguments.config, &run, folder).await?;
            finish(&ended, &run, &arguments.config, arguments.json)
        }
        Job::Ask(arguments) => {
            let asked = operator::ask(&arguments).await?;
            answered(&asked, &arguments.config, arguments.json)
        }
        Job::Cancel(arguments) => {
            let run = RunId::new(&arguments.run)?;
            operator::cancel(&arguments.config, &run).await?;
            show(&Did::to_run("cancelled", &run), arguments.json)
        }
        Job::Remove(arguments) => {
            let run = RunId::new(&arguments.run)?;
            operator::remove(&arguments.config, &run).await?;
            show(&Did::to_run("removed", &run), arguments.json)
        }
        Job::List(arguments) => {
            let runs = operator::list(&arguments.config).await?;
            said(match arguments.json {
                true => runs_json(&runs)?,
                false => runs_table(&runs),
            })
        }
    }
}

async fn run_study(study: Study) -> Result<Exit, Ended> {
    match study {
        Study::Draft(arguments) => show(&operator::draft(&arguments)?, arguments.json),
        Study::Propose(arguments) => {
            let (run, watched) = operator::propose(&arguments).await?;
            let Some(watched) = watched else {
                return begun(&run, arguments.json);
            };
            if !arguments.json {
                say(&run)?;
            }
            finish(&watched, &run, &arguments.config, arguments.json)
        }
        Study::List(arguments) => {
            let studies = operator::studies(&arguments.config).await?;
            said(match arguments.json {
                true => studies_json(&studies)?,
                false => studies_table(&studies),
            })
        }
        Study::Show(arguments) => {
            let study = operator::study(&arguments).await?;
            said(match arguments.json {
                true => study_json(&study)?,
                false => study_text(&study),
            })
        }
        Study::Card(arguments) => {
            let (run, watched) = operator::card(&arguments).await?;
            finish(&watched, &run, &arguments.of.config, arguments.of.json)
        }
        Study::Close(arguments) => {
            operator::close(&arguments).await?;
            let (study, text) = (&arguments.study, format!("closed {}", arguments.study));
            show(&Did::to_study("closed", study, text), arguments.json)
        }
    }
}

/// Prints what was asked for.
fn said(text: impl Display) -> Result<Exit, Ended> {
    say(text)?;
    Ok(Exit::Done)
}

/// Prints what was found, for people or for machines.
fn show(found: &(impl Serialize + Display), as_json: bool) -> Result<Exit, Ended> {
    said(service::shown(found, as_json))
}

/// Says that a run was submitted.
fn begun(run: &RunId, as_json: bool) -> Result<Exit, Ended> {
    match as_json {
        true => RunSaid::going(run, "submitted").say(true)?,
        false => say(run)?,
    }
    Ok(Exit::Done)
}

/// Prints the answer to a question, where there is one, and else how its run ended.
fn answered(asked: &Asked, config: &Path, as_json: bool) -> Result<Exit, Ended> {
    let (Some(Ending::Completed), Some(answer)) = (asked.watched.ending(), &asked.answer) else {
        return finish(&asked.watched, &asked.run, config, as_json);
    };
    say(answer)?;
    if let Some(folder) = &asked.watched.folder {
        let page = folder.join("report.html");
        remark(format_args!("report: {}", page.display()));
    }
    Ok(Exit::Done)
}

fn run_and_folder(arguments: &JobResult) -> Result<(RunId, PendingFolder), Ended> {
    let run = RunId::new(&arguments.run)?;
    let folder = operator::folder(arguments.out.as_deref(), &run, arguments.force)?;
    Ok((run, folder))
}

/// Says where a certificate's files are, by what studies name its holder, and when it ends.
fn certified(files: &CredentialFiles, config: Option<&Path>, as_json: bool) -> Result<Exit, Ended> {
    let certified = Certified::read(files, config)?;
    show(&certified, as_json)?;
    certified.remarks().iter().for_each(remark);
    Ok(Exit::Done)
}

/// The day of a moment, in UTC.
fn day(moment: SystemTime) -> Date {
    OffsetDateTime::from(moment).date()
}

/// A moment to the minute, in UTC.
fn minute(moment: SystemTime) -> String {
    let moment = OffsetDateTime::from(moment);
    let (hour, minute) = (moment.hour(), moment.minute());
    format!("{} {hour:02}:{minute:02} UTC", moment.date())
}

fn party(arguments: &Issue) -> (Role, &str) {
    let Party {
        site,
        operator,
        coordinator,
    } = &arguments.party;
    match (site, operator) {
        (Some(name), _) => (Role::Site, name),
        (None, Some(name)) => (Role::Operator, name),
        (None, None) => {
            let hosts = arguments.hosts.clone();
            // One of the three is named, or the command line is none.
            let name = coordinator.as_deref().unwrap_or_default();
            (Role::Coordinator { hosts }, name)
        }
    }
}

/// Says how a run that was watched ended, or how to go on where it has not.
fn finish(watched: &Watched, run: &RunId, config: &Path, as_json: bool) -> Result<Exit, Ended> {
    let Some(result) = &watched.result else {
        if as_json {
            RunSaid::going(run, "going").say(true)?;
        }
        let config = config.display();
        remark(format_args!(
            "no longer watching; the run goes on. `job watch {run} --config {config}` watches it again and fetches its \
             results, `job cancel {run} --config {config}` ends it"
        ));
        return Ok(Exit::Going);
    };
    RunSaid::ended(result, watched.folder.as_deref()).say(as_json)?;
    Ok(Exit::of_ending(&result.ending))
}
