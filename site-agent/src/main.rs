//! `kindred-site-agent`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line speaks by them

use clap::Parser;
use protocol::progress::Ending;
use site_agent::books::journal;
use site_agent::books::ledger::KEY_NAME;
use site_agent::cli::{Cli, Command, Data, Journal, Policy, Serve};
use site_agent::config::SiteConfig;
use site_agent::exit::Exit;
use site_agent::explain::Explanation;
use site_agent::run::{driver, local};
use site_agent::source::{DataCheck, Dictionary};
use site_agent::{cli, source, synthesise};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use tokio::io::AsyncReadExt;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("KINDRED_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(wire::LogLine::default)
        .init();
    match run(cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(next) = cause {
                text.push_str(&format!(": {next}"));
                cause = next.source();
            }
            eprintln!("error: {text}");
            Exit::of(error.as_ref()).into()
        }
    }
}

fn run(command: Command) -> Result<Exit, Box<dyn Error>> {
    match command {
        Command::Serve(arguments) => serve(&arguments),
        Command::Local(arguments) => {
            let ran = local::run(&arguments)?;
            if let Ending::Failed(failure) = &ran.ending {
                eprintln!("error: {}: {}", failure.code, failure.text);
                return Ok(Exit::Run);
            }
            if let Some(folder) = ran.folder {
                println!("{}", folder.join("report.html").display());
            }
            Ok(Exit::Done)
        }
        Command::Data(Data::Check(arguments)) => check(&arguments),
        Command::Data(Data::Dictionary(arguments)) => {
            print!("{}", Dictionary::of_job(&job(&arguments.job)?));
            Ok(Exit::Done)
        }
        Command::Policy(Policy::Explain(arguments)) => {
            let config = SiteConfig::open(&arguments.config)?;
            let job = job(&arguments.job)?;
            let explanation = match &arguments.operator {
                Some(operator) => Explanation::new(&config.policy, &job, operator),
                None => Explanation::for_any_operator(&config.policy, &job),
            };
            print!("{explanation}");
            Ok(if explanation.refusals.is_empty() {
                Exit::Done
            } else {
                Exit::Refused
            })
        }
        Command::Policy(Policy::Lowered(arguments)) => {
            for sentence in SiteConfig::open(&arguments.config)?.policy.lowered() {
                println!("{sentence}");
            }
            Ok(Exit::Done)
        }
        Command::Journal(Journal::List(arguments)) => {
            print!(
                "{}",
                journal::list(&SiteConfig::open(&arguments.config)?.folder)?
            );
            Ok(Exit::Done)
        }
        Command::Journal(Journal::Verify(arguments)) => {
            let kept = arguments.head.map(|head| head.parse()).transpose()?;
            let folder = SiteConfig::open(&arguments.config)?.folder;
            let head = journal::verify(&folder, kept.as_ref())?;
            println!(
                "{} entries, all as they were written; the head is {head}",
                head.entries
            );
            Ok(Exit::Done)
        }
        Command::Synthesise(arguments) => {
            for path in synthesise::synthesise(&arguments)? {
                println!("{}", path.display());
            }
            Ok(Exit::Done)
        }
    }
}

/// Prints what a job would find at this site.
fn check(arguments: &cli::DataCheck) -> Result<Exit, Box<dyn Error>> {
    let config = SiteConfig::open(&arguments.config)?;
    let cell_min = config.policy.rules().cell_min;
    let check = source::check(&config.source, &job(&arguments.job)?, cell_min);
    print!("{check}");
    if let Some(named) = &arguments.write_dictionary {
        write_dictionary(&check, named.as_deref(), &arguments.config)?;
    }
    Ok(if check.fits() { Exit::Done } else { Exit::Data })
}

/// Writes the dictionary of a check, and prints what to look at.
fn write_dictionary(
    check: &DataCheck,
    named: Option<&Path>,
    config: &Path,
) -> Result<(), Box<dyn Error>> {
    let path = named.map_or_else(|| config.with_extension("dictionary.toml"), Path::to_owned);
    let dictionary = check.dictionary();
    dictionary
        .write(&path)
        .map_err(|error| format!("{} could not be written: {error}", path.display()))?;
    println!("\n{} holds a dictionary to review:", path.display());
    for sentence in dictionary.review() {
        println!("  {sentence}");
    }
    Ok(())
}

fn serve(arguments: &Serve) -> Result<Exit, Box<dyn Error>> {
    let config = SiteConfig::open(&arguments.config)?;
    let dial = config.dial()?;
    wire::private::folder(&config.folder)?;
    wire::private::check_key(&config.folder.join(KEY_NAME))?;
    // What a panic says may hold a patient's value; its place does not.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a panic: a fault of Kindred");
    }));
    let until_stdin_closes = arguments.until_stdin_closes;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(driver::serve(config, dial, stop(until_stdin_closes)));
    // A read of standard input cannot be called back; what is left is done in the background.
    runtime.shutdown_background();
    served?;
    Ok(Exit::Done)
}

async fn stop(until_stdin_closes: bool) {
    let closed = async {
        if !until_stdin_closes {
            std::future::pending::<()>().await;
        }
        let mut rest = [0_u8; 64];
        let mut input = tokio::io::stdin();
        while input.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    };
    let terminated = async {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            match signal(SignalKind::terminate()) {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = closed => {},
        () = terminated => {},
        _ = tokio::signal::ctrl_c() => {},
    }
}

fn job(path: &Path) -> Result<protocol::job::Job, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} could not be read: {error}", path.display()))?;
    let job = protocol::job::Job::parse(&text)
        .map_err(|problems| format!("{}:\n{problems}", path.display()))?;
    Ok(job)
}
