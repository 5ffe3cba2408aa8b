//! `kindred-coordinator`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line speaks by them

use clap::Parser;
use coordinator::cli::{Certificates, Cli, Command, Issue, Job, Revoked};
use coordinator::exit::{Exit, UsageError};
use coordinator::{operator, serve, simulate, store};
use protocol::name::RunId;
use protocol::progress::{Ending, Progress};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;
use wire::certificates::{self, Role, Validity};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A simulation speaks by its progress; a server by its log.
    let level = if matches!(cli.command, Command::Serve(_)) {
        "info"
    } else {
        "error"
    };
    let filter = EnvFilter::try_from_env("KINDRED_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(wire::LogLine::default)
        .init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Failed.into();
        }
    };
    let ran = runtime.block_on(run(cli.command));
    // A read of standard input cannot be called back.
    runtime.shutdown_background();
    match ran {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {}", with_causes(error.as_ref()));
            Exit::of(error.as_ref()).into()
        }
    }
}

async fn run(command: Command) -> Result<Exit, Box<dyn Error>> {
    match command {
        Command::Simulate(arguments) => {
            let simulated = simulate::simulate(&arguments).await?;
            Ok(say(Some(&simulated.ending), simulated.folder.as_deref()))
        }
        Command::Serve(arguments) => {
            serve::serve(&arguments).await?;
            Ok(Exit::Done)
        }
        Command::Job(job) => run_job(job).await,
        Command::Certificates(Certificates::Init(arguments)) => {
            certificates::init(&arguments.folder, Validity::days(arguments.days))?;
            println!("{}", arguments.folder.join("authority").display());
            Ok(Exit::Done)
        }
        Command::Certificates(Certificates::Issue(arguments)) => {
            let (role, name) = party(&arguments)?;
            let validity = Validity::days(arguments.days);
            let files = certificates::issue(&arguments.folder, &role, name, validity)?;
            for path in [&files.certificate, &files.key, &files.authority] {
                println!("{}", path.display());
            }
            Ok(Exit::Done)
        }
        Command::Certificates(Certificates::Revoke(arguments)) => {
            let Revoked { site, operator } = &arguments.party;
            let (role, name) = match (site, operator) {
                (Some(name), _) => (Role::Site, name),
                (None, Some(name)) => (Role::Operator, name),
                (None, None) => {
                    return Err(Box::new(UsageError(
                        "found no party, wanted --site or --operator".to_owned(),
                    )));
                }
            };
            let list = certificates::revoke(&arguments.folder, &role, name)?;
            println!("{}", list.display());
            Ok(Exit::Done)
        }
    }
}

async fn run_job(job: Job) -> Result<Exit, Box<dyn Error>> {
    match job {
        Job::Submit(arguments) => {
            let run = operator::submit(&arguments).await?;
            println!("{run}");
            if !arguments.wait {
                return Ok(Exit::Done);
            }
            let ended = operator::watch(&arguments.config, &run, arguments.out.as_deref()).await?;
            Ok(say(ended.ending.as_ref(), ended.folder.as_deref()))
        }
        Job::Watch(arguments) => {
            let run = RunId::new(&arguments.run)?;
            let ended = operator::watch(&arguments.config, &run, arguments.out.as_deref()).await?;
            Ok(say(ended.ending.as_ref(), ended.folder.as_deref()))
        }
        Job::Result(arguments) => {
            let run = RunId::new(&arguments.run)?;
            let ended = operator::result(&arguments.config, &run, arguments.out.as_deref()).await?;
            Ok(say(ended.ending.as_ref(), ended.folder.as_deref()))
        }
        Job::Cancel(arguments) => {
            operator::cancel(&arguments.config, &RunId::new(&arguments.run)?).await?;
            Ok(Exit::Done)
        }
        Job::List(arguments) => {
            for progress in operator::list(&arguments.config).await? {
                println!("{}", row(&progress));
            }
            Ok(Exit::Done)
        }
    }
}

fn party(arguments: &Issue) -> Result<(Role, &str), UsageError> {
    let party = &arguments.party;
    match (&party.site, &party.operator, &party.coordinator) {
        (Some(name), _, _) => Ok((Role::Site, name)),
        (_, Some(name), _) => Ok((Role::Operator, name)),
        (_, _, Some(name)) if arguments.hosts.is_empty() => Err(UsageError(format!(
            "found no --hosts for {name}, wanted the names by which it is reached"
        ))),
        (_, _, Some(name)) => Ok((
            Role::Coordinator {
                hosts: arguments.hosts.clone(),
            },
            name,
        )),
        _ => Err(UsageError(
            "found no party, wanted --site, --operator or --coordinator".to_owned(),
        )),
    }
}

/// Tells how a run ended, and where its report lies.
fn say(ending: Option<&Ending>, folder: Option<&Path>) -> Exit {
    let Some(ending) = ending else {
        println!("no longer watching; the run goes on");
        return Exit::Done;
    };
    match ending {
        Ending::Converged => println!("converged"),
        Ending::Completed => println!("completed"),
        Ending::RoundLimit => println!("stopped at the round limit"),
        Ending::Cancelled => println!("cancelled"),
        Ending::Failed(failure) => eprintln!("error: {}\n{}", failure.code, failure.text),
    }
    if let Some(folder) = folder {
        println!("report: {}", folder.join("report.html").display());
    }
    Exit::of_ending(ending)
}

fn row(progress: &Progress) -> String {
    let state = match &progress.ending {
        Some(ending) if progress.phase != store::UNREADABLE => ending.status(),
        _ => progress.phase.as_str(),
    };
    format!(
        "{}  {state:<24}  round {}",
        progress.run, progress.course.round
    )
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.ends_with(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    text
}
