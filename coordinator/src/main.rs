//! `kindred-coordinator`.

use clap::Parser;
use coordinator::certificates::IssuedCertificates;
use coordinator::cli::{Certificates, Cli, Command, Issue, Job, Party, RunAndOut, Study};
use coordinator::exit::{Ended, Exit, UsageError};
use coordinator::operator::{self, Asked, Watched};
use coordinator::{doctor, enrolment, init, serve, simulate};
use protocol::name::RunId;
use protocol::progress::Ending;
use protocol::result::RunResult;
use report::{PendingFolder, SayError, remark, runs_json, runs_table, say, with_causes};
use report::{studies_json, studies_table, study_json, study_text};
use service::log::{self, LogFormat};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;
use time::{Date, OffsetDateTime};
use tracing::level_filters::LevelFilter;
use wire::CredentialFiles;
use wire::certificates::{self, Role, Validity};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A simulation speaks by its progress; a server by its log.
    let (format, level) = match &cli.command {
        Command::Serve(serve) => (serve.log_format, LevelFilter::INFO),
        Command::Certificates(Certificates::Serve(_)) => (LogFormat::Text, LevelFilter::INFO),
        Command::Simulate(_)
        | Command::Doctor(_)
        | Command::Study(_)
        | Command::Job(_)
        | Command::Init(_)
        | Command::Enrol(_)
        | Command::Renew(_)
        | Command::Certificates(_) => (LogFormat::Text, LevelFilter::ERROR),
    };
    log::begin(format, level);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            remark(format_args!("error: {error}"));
            return Exit::Failed.into();
        }
    };
    let ran = runtime.block_on(run(cli.command));
    // A read of standard input cannot be called back.
    runtime.shutdown_background();
    match ran {
        Ok(exit) => exit.into(),
        Err(Ended { exit, error }) => {
            if exit != Exit::Unread {
                remark(format_args!("error: {}", with_causes(error.as_ref())));
            }
            exit.into()
        }
    }
}

async fn run(command: Command) -> Result<Exit, Ended> {
    match command {
        Command::Simulate(arguments) if arguments.stop => {
            let folder = simulate::stop(&arguments).await?;
            say(format_args!("ended; {} is gone", folder.display()))?;
            Ok(Exit::Done)
        }
        Command::Simulate(arguments) => {
            let simulated = simulate::simulate(&arguments).await?;
            let exit = print_result(&simulated.result, simulated.folder.as_deref())?;
            simulated.to_try.iter().try_for_each(say)?;
            Ok(exit)
        }
        Command::Serve(arguments) => {
            serve::serve(&arguments).await?;
            Ok(Exit::Done)
        }
        Command::Doctor(arguments) => {
            let checkup = doctor::examine(&arguments.config);
            say(service::shown(&checkup, arguments.json))?;
            Ok(match checkup.is_well() {
                true => Exit::Done,
                false => Exit::Failed,
            })
        }
        Command::Study(study) => run_study(study).await,
        Command::Job(job) => run_job(job).await,
        Command::Init(arguments) => {
            let founded = init::init(&arguments)?;
            founded
                .configs
                .iter()
                .try_for_each(|path| say(path.display()))?;
            founded.tokens.iter().try_for_each(say)?;
            remark(
                "each token is for one hospital, once, for 72 hours: send it by a way that nobody else reads",
            );
            Ok(Exit::Done)
        }
        Command::Enrol(arguments) => {
            let enrolled = enrolment::enrol(&arguments).await?;
            print_files(&enrolled.files)?;
            say(enrolled.config.display())?;
            print_expiry(&enrolled.files.certificate)?;
            Ok(Exit::Done)
        }
        Command::Renew(arguments) => {
            let files = enrolment::renew(&arguments).await?;
            say(files.certificate.display())?;
            print_expiry(&files.certificate)?;
            Ok(Exit::Done)
        }
        Command::Certificates(certificates) => run_certificates(certificates).await,
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
            let authority = arguments.folder.join("authority");
            say(authority.display())?;
            print_expiry(&authority.join("certificate.pem"))?;
            Ok(Exit::Done)
        }
        Certificates::Invite(arguments) => {
            let token = enrolment::invite(&arguments)?;
            say(&token)?;
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
            print_files(&files)?;
            if print_expiry(&files.certificate)? < day(validity.until) {
                remark("note: it would outlive its authority, and ends with it");
            }
            Ok(Exit::Done)
        }
        Certificates::Renew(arguments) => {
            let (role, name) = party(&arguments);
            let validity = Validity::days(arguments.days);
            let files = certificates::renew(&arguments.folder, &role, name, validity)?;
            say(files.certificate.display())?;
            print_expiry(&files.certificate)?;
            Ok(Exit::Done)
        }
        Certificates::List(arguments) => {
            let issued = certificates::list(&arguments.folder)?;
            let issued = IssuedCertificates::new(&issued, SystemTime::now());
            say(service::shown(&issued, arguments.json))?;
            Ok(Exit::Done)
        }
        Certificates::Revoke(arguments) => {
            let (role, name) = arguments.party.role()?;
            let list = certificates::revoke(&arguments.folder, &role, name)?;
            say(list.display())?;
            Ok(Exit::Done)
        }
    }
}

async fn run_job(job: Job) -> Result<Exit, Ended> {
    match job {
        Job::Submit(arguments) => {
            let operator::Submitted { run, folder } = operator::submit(&arguments).await?;
            say(&run)?;
            if !arguments.wait {
                return Ok(Exit::Done);
            }
            let folder = match folder {
                Some(folder) => folder,
                None => operator::folder(None, &run, arguments.force)?,
            };
            let ended = operator::watch(&arguments.config, &run, folder).await?;
            finish(&ended, &run, &arguments.config)
        }
        Job::Watch(arguments) => {
            let (run, folder) = run_and_folder(&arguments)?;
            let ended = operator::watch(&arguments.config, &run, folder).await?;
            finish(&ended, &run, &arguments.config)
        }
        Job::Result(arguments) => {
            let (run, folder) = run_and_folder(&arguments)?;
            let ended = operator::result(&arguments.config, &run, folder).await?;
            finish(&ended, &run, &arguments.config)
        }
        Job::Ask(arguments) => answered(&operator::ask(&arguments).await?, &arguments.config),
        Job::Cancel(arguments) => {
            operator::cancel(&arguments.config, &RunId::new(&arguments.run)?).await?;
            Ok(Exit::Done)
        }
        Job::List(arguments) => {
            let runs = operator::list(&arguments.config).await?;
            say(match arguments.json {
                true => runs_json(&runs)?,
                false => runs_table(&runs),
            })?;
            Ok(Exit::Done)
        }
    }
}

async fn run_study(study: Study) -> Result<Exit, Ended> {
    match study {
        Study::Draft(arguments) => {
            operator::draft(&arguments)?.iter().try_for_each(say)?;
            Ok(Exit::Done)
        }
        Study::Propose(arguments) => {
            let (run, watched) = operator::propose(&arguments).await?;
            say(&run)?;
            match watched {
                Some(watched) => finish(&watched, &run, &arguments.config),
                None => Ok(Exit::Done),
            }
        }
        Study::List(arguments) => {
            let studies = operator::studies(&arguments.config).await?;
            say(match arguments.json {
                true => studies_json(&studies)?,
                false => studies_table(&studies),
            })?;
            Ok(Exit::Done)
        }
        Study::Show(arguments) => {
            let study = operator::study(&arguments.of).await?;
            say(match arguments.json {
                true => study_json(&study)?,
                false => study_text(&study),
            })?;
            Ok(Exit::Done)
        }
        Study::Card(arguments) => {
            let (run, watched) = operator::card(&arguments).await?;
            finish(&watched, &run, &arguments.of.config)
        }
        Study::Close(arguments) => {
            operator::close(&arguments).await?;
            Ok(Exit::Done)
        }
    }
}

/// Prints the answer to a question, where there is one, and else how its run ended.
fn answered(asked: &Asked, config: &Path) -> Result<Exit, Ended> {
    let (Some(Ending::Completed), Some(answer)) = (asked.watched.ending(), &asked.answer) else {
        return finish(&asked.watched, &asked.run, config);
    };
    say(answer)?;
    if let Some(folder) = &asked.watched.folder {
        let page = folder.join("report.html");
        remark(format_args!("report: {}", page.display()));
    }
    Ok(Exit::Done)
}

fn run_and_folder(arguments: &RunAndOut) -> Result<(RunId, PendingFolder), Ended> {
    let run = RunId::new(&arguments.run)?;
    let folder = operator::folder(arguments.out.as_deref(), &run, arguments.force)?;
    Ok((run, folder))
}

/// Tells where certificate, key and authority are, and by what studies name their holder.
fn print_files(files: &CredentialFiles) -> Result<(), Ended> {
    for path in [&files.certificate, &files.key, &files.authority] {
        say(path.display())?;
    }
    remark(format_args!("fingerprint {}", wire::fingerprint(files)?));
    Ok(())
}

/// Tells the last day of a certificate, and gives it.
fn print_expiry(certificate: &Path) -> Result<Date, Ended> {
    let end = day(certificates::valid_until(certificate)?);
    remark(format_args!("valid until {end}"));
    Ok(end)
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

/// Tells how a run that was watched ended, or how to go on where it has not.
fn finish(watched: &Watched, run: &RunId, config: &Path) -> Result<Exit, Ended> {
    let Some(result) = &watched.result else {
        let config = config.display();
        remark(format_args!(
            "no longer watching; the run goes on. `job watch {run} --config {config}` watches it again and fetches its \
             results, `job cancel {run} --config {config}` ends it"
        ));
        return Ok(Exit::Going);
    };
    Ok(print_result(result, watched.folder.as_deref())?)
}

/// Says how a run ended, where its report is, what the run could not use, and last its answer.
fn print_result(result: &RunResult, folder: Option<&Path>) -> Result<Exit, SayError> {
    match &result.ending {
        Ending::Failed(failure) => {
            remark(format_args!(
                "error: {}: {}\n{}",
                failure.code,
                failure.code.meaning(),
                failure.text
            ));
        }
        ending => say(ending.sentence())?,
    }
    report::say_results(result, folder)?;
    Ok(Exit::of_ending(&result.ending))
}
