//! `kindred-site-agent`.

use clap::Parser;
use protocol::name::RunId;
use protocol::progress::Ending;
use protocol::study::StudyName;
use report::{SayError, remark, say, with_causes};
use service::log::{self, LogFormat};
use service::signals::{Heard, Signals};
use service::status::Status;
use service::supervisor;
use site_agent::books::journal;
use site_agent::books::ledger::{self, KEY_NAME};
use site_agent::cli::{
    Cli, Command, Data, Doctor, Journal, JournalVerify, Policy, PolicyExplain, Serve, Site, Study,
    StudyFile,
};
use site_agent::config::SiteConfig;
use site_agent::exit::{Ended, Exit, UsageError};
use site_agent::explain::{Explanation, NOTHING_LOWERED};
use site_agent::pages::Pages;
use site_agent::run::driver::Seen;
use site_agent::run::{answers, audit};
use site_agent::run::{driver, local};
use site_agent::source::{DataCheck, Dictionary};
use site_agent::studies::{Listing, Review};
use site_agent::{cases, cli, doctor, enrolment, init, source, studies, synthesise};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;
use wire::{CredentialFiles, Dial};

/// What `journal list` says before the first message.
const NOTHING_LEFT: &str = "nothing has left this site yet";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = match &cli.command {
        Command::Serve(serve) | Command::Pages(serve) => serve.log_format,
        Command::Doctor(_)
        | Command::Enrol(_)
        | Command::Renew(_)
        | Command::Site(_)
        | Command::Local(_)
        | Command::Similar(_)
        | Command::Match(_)
        | Command::Cluster(_)
        | Command::Predict(_)
        | Command::Personal(_)
        | Command::Data(_)
        | Command::Policy(_)
        | Command::Study(_)
        | Command::Journal(_)
        | Command::Synthesise(_) => LogFormat::Text,
    };
    log::begin(format, LevelFilter::INFO);
    match run(cli.command) {
        Ok(exit) => exit.into(),
        Err(Ended { exit, error }) => {
            if exit != Exit::Unread {
                remark(format_args!("error: {}", with_causes(error.as_ref())));
            }
            exit.into()
        }
    }
}

fn run(command: Command) -> Result<Exit, Ended> {
    match command {
        Command::Serve(arguments) => serve(&arguments),
        Command::Doctor(arguments) => doctor(&arguments),
        Command::Enrol(arguments) => {
            let enrolled = runtime()?.block_on(enrolment::enrol(&arguments))?;
            for path in [&enrolled.files.key, &enrolled.config] {
                say(path.display())?;
            }
            print_certificate(&enrolled.files)?;
            match arguments.table() {
                Some(table) => propose(&enrolled.config, &table),
                None => Ok(Exit::Done),
            }
        }
        Command::Site(Site::Init(arguments)) => propose(&arguments.config, &arguments.table),
        Command::Renew(arguments) => {
            let files = runtime()?.block_on(enrolment::renew(&arguments.config))?;
            print_certificate(&files)?;
            Ok(Exit::Done)
        }
        Command::Local(arguments) => {
            let ran = local::run(&arguments)?;
            match &ran.result.ending {
                Ending::Failed(failure) => {
                    remark(format_args!("error: {}: {}", failure.code, failure.text));
                    return Ok(Exit::Run);
                }
                ending => say(ending.sentence())?,
            }
            report::say_results(&ran.result, ran.folder.as_deref())?;
            Ok(Exit::Done)
        }
        Command::Similar(arguments) => said(cases::similar(&arguments)?),
        Command::Match(arguments) => said(cases::matches(&arguments)?),
        Command::Cluster(arguments) => said(cases::clusters(&arguments)?),
        Command::Predict(arguments) => said(cases::predict(&arguments)?),
        Command::Personal(arguments) => said(cases::personal(&arguments)?),
        Command::Data(Data::Check(arguments)) => check(&arguments),
        Command::Data(Data::Dictionary(arguments)) => {
            said(Dictionary::of_job(&job(&arguments.job)?))
        }
        Command::Policy(Policy::Explain(arguments)) => explain(&arguments),
        Command::Policy(Policy::Lowered(arguments)) => {
            print_lowered(&SiteConfig::open(&arguments.config)?.policy.lowered())?;
            Ok(Exit::Done)
        }
        Command::Study(command) => study(&command),
        Command::Journal(Journal::List(arguments)) => {
            let folder = SiteConfig::open(&arguments.config)?.folder;
            if journal::is_unwritten(&folder) {
                say(NOTHING_LEFT)?;
            } else {
                say(journal::list(&folder, arguments.run.as_deref())?)?;
            }
            Ok(Exit::Done)
        }
        Command::Journal(Journal::Verify(arguments)) => {
            verify_journal(arguments)?;
            Ok(Exit::Done)
        }
        Command::Pages(arguments) => pages(&arguments),
        Command::Synthesise(arguments) => {
            for path in synthesise::synthesise(&arguments)? {
                say(path.display())?;
            }
            Ok(Exit::Done)
        }
    }
}

/// Checks the journal, and of a run of sums that every question was the right one.
fn verify_journal(arguments: JournalVerify) -> Result<(), Ended> {
    let kept = arguments.head.map(|head| head.parse()).transpose()?;
    let config = SiteConfig::open(&arguments.config)?;
    let head = journal::verify(&config.folder, kept.as_ref())?;
    say(format_args!(
        "{} entries, all as they were written; the head is {head}",
        head.entries
    ))?;
    if let Some(run) = arguments.run {
        say(audit::audit(&config, &RunId::new(&run)?)?)?;
    }
    Ok(())
}

/// Prints what a job would make this site send, and whether the site would refuse it.
fn explain(arguments: &PolicyExplain) -> Result<Exit, Ended> {
    let config = SiteConfig::open(&arguments.config)?;
    let job = job(&arguments.job)?;
    let used = ledger::used(&config.folder)?;
    let used = job.study.as_ref().and_then(|one| used.get(&one.digest()));
    let used = used.copied().unwrap_or_default();
    let mut explanation = match &arguments.operator {
        Some(operator) => Explanation::new(&config.policy, &job, operator, &used),
        None => Explanation::for_any_operator(&config.policy, &job, &used),
    };
    let approved = studies::approved(&config, &job, driver::now())?;
    explanation.refusals.extend(approved.err());
    say(&explanation)?;
    Ok(if explanation.refusals.is_empty() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

/// Shows what a study asks of this site.
fn review(arguments: &StudyFile) -> Result<Exit, Ended> {
    let config = SiteConfig::open(&arguments.config)?;
    let study = wire::jobs::draft(&studies::proposed::file(&config, &arguments.study))?;
    let known = studies::all(&config.folder, &config.site)?;
    let digest = study.digest();
    let mut known = known.iter();
    said(Review {
        study: &study,
        config: &config,
        approved: known.find(|one| one.signed.approval.digest == digest),
    })
}

/// Reviews, approves, lists or leaves studies.
fn study(command: &Study) -> Result<Exit, Ended> {
    match command {
        Study::Review(arguments) => review(arguments),
        Study::Approve(arguments) => {
            let signed = studies::approve(arguments, driver::now())?;
            let approval = signed.approval;
            said(format_args!(
                "approved {}: at most {} patients, commitment sha256:{}",
                approval.study, approval.patients_at_most, approval.commitment
            ))
        }
        Study::List(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let approved = studies::all(&config.folder, &config.site)?;
            let waiting = studies::proposed::waiting(&config, &approved)?;
            said(Listing {
                now: driver::now(),
                approved,
                waiting,
            })
        }
        Study::Consent(arguments) => {
            let (config, now) = (SiteConfig::open(&arguments.config)?, driver::now());
            let path = studies::consent::give(&config, &arguments.study, &arguments.out, now)?;
            said(format_args!(
                "{}: whoever approves the study passes it as --consent",
                path.display()
            ))
        }
        Study::Budget(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let budgets = studies::budgets(&config, arguments.name.as_deref(), driver::now())?;
            if arguments.json {
                return said(serde_json::to_string_pretty(&budgets)?);
            }
            budgets.iter().try_for_each(say)?;
            Ok(Exit::Done)
        }
        Study::Audit(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let audit = answers::audit(&config, &arguments.name)?;
            let out = arguments.out.clone();
            let out = out.unwrap_or_else(|| format!("{}.audit.json", arguments.name).into());
            audit.write(&config, &out)?;
            say(&audit)?;
            Ok(match audit.is_verified() {
                true => Exit::Done,
                false => Exit::Books,
            })
        }
        Study::Leave(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            studies::leave(&config, &StudyName::new(&arguments.name)?)?;
            said(format_args!(
                "left {}: its patients are deleted",
                arguments.name
            ))
        }
    }
}

/// Prints what was asked for.
fn said(text: impl Display) -> Result<Exit, Ended> {
    say(text)?;
    Ok(Exit::Done)
}

/// Prints the rules that are lowered: on standard output these alone, for whoever counts them.
fn print_lowered(lowered: &[String]) -> Result<(), SayError> {
    if lowered.is_empty() {
        remark(NOTHING_LOWERED);
    }
    lowered.iter().try_for_each(say)
}

/// Prints what a job would find at this site.
fn check(arguments: &cli::DataCheck) -> Result<Exit, Ended> {
    let config = SiteConfig::open(&arguments.config)?;
    let cell_min = config.policy.rules().cell_min;
    let job = job(&arguments.job)?;
    let check = source::check(&config.source, &job, cell_min);
    say(&check)?;
    let undeclared = source::undeclared_units(&config.source, &job.cohort.features);
    if !undeclared.is_empty() {
        say(format_args!(
            "note: no unit in site.toml for {}: `study approve` needs it, or --confirm-units",
            undeclared.join(", ")
        ))?;
    }
    if let Some(named) = &arguments.write_dictionary
        && check.was_read()
    {
        write_dictionary(&check, named.as_deref(), &arguments.config)?;
    }
    Ok(if check.fits() { Exit::Done } else { Exit::Data })
}

/// Writes the dictionary of a check, and prints what to look at.
fn write_dictionary(check: &DataCheck, named: Option<&Path>, config: &Path) -> Result<(), Ended> {
    let path = named.map_or_else(|| config.with_extension("dictionary.toml"), Path::to_owned);
    let dictionary = check.dictionary();
    dictionary.write(&path).map_err(|error| {
        io::Error::other(format!("{} could not be written: {error}", path.display()))
    })?;
    say(format_args!(
        "\n{} holds a dictionary to review:",
        path.display()
    ))?;
    for sentence in dictionary.review() {
        say(format_args!("  {sentence}"))?;
    }
    Ok(())
}

/// Says where the certificate is, by what studies name its holder, and when it ends.
fn print_certificate(files: &CredentialFiles) -> Result<(), Ended> {
    say(files.certificate.display())?;
    remark(format_args!("fingerprint {}", wire::fingerprint(files)?));
    let until = wire::certificates::valid_until(&files.certificate);
    if let Ok(until) = until {
        let day = time::OffsetDateTime::from(until).date();
        remark(format_args!("valid until {day}"));
    }
    Ok(())
}

/// Proposes source and columns of a configuration, and prints them with their reasons.
fn propose(config: &Path, table: &cli::Table) -> Result<Exit, Ended> {
    let initialised = init::init(config, table)?;
    say(&initialised.proposal)?;
    let Some(problems) = initialised.problems else {
        remark(format_args!(
            "{} can be used; look at each line of it",
            config.display()
        ));
        return Ok(Exit::Done);
    };
    let open = initialised.proposal.open().count();
    remark(format_args!("{open} questions are open:\n{problems}"));
    Ok(Exit::Usage)
}

/// What carries out one command.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build()
}

/// Prints what was found, and whether something must be mended.
fn doctor(arguments: &Doctor) -> Result<Exit, Ended> {
    let checkup = runtime()?.block_on(doctor::examine(&arguments.config));
    say(service::shown(&checkup, arguments.json))?;
    Ok(match checkup.is_well() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn serve(arguments: &Serve) -> Result<Exit, Ended> {
    let config = SiteConfig::open(&arguments.config)?;
    let dial = config.dial()?;
    wire::private::folder(&config.folder)?;
    wire::private::check_key(&config.folder.join(KEY_NAME))?;
    hush_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(attend(arguments, config, dial));
    // A read of standard input cannot be called back; what is left is done in the background.
    runtime.shutdown_background();
    served?;
    Ok(Exit::Done)
}

/// What a panic says may hold a patient's value; its place does not.
fn hush_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a panic: a fault of Kindred");
    }));
}

/// Serves pages for people until a signal says stop.
fn pages(arguments: &Serve) -> Result<Exit, Ended> {
    hush_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let signals = Signals::listen(arguments.until_stdin_closes)?;
        let pages = Pages::open(&arguments.config).await?;
        say(pages.address())?;
        pages.serve(signals).await?;
        Ok(Exit::Done)
    });
    // A page that is being computed is not waited for.
    runtime.shutdown_background();
    served
}

/// Attends the coordinator until a signal says stop, and begins anew with the files as they are then when one says so.
async fn attend(arguments: &Serve, mut config: SiteConfig, mut dial: Dial) -> Result<(), Ended> {
    let mut signals = Signals::listen(arguments.until_stdin_closes)?;
    let (mut seen, mut status) = (Seen::default(), Status::new(driver::VERSION));
    seen.register(&mut status);
    let (certificate, named) = watch::channel(config.tls.certificate.clone());
    let standing = service::stand(status, config.status, named);
    let mut standing = std::pin::pin!(standing);
    loop {
        let next = next_files(&mut signals, &arguments.config);
        let serving = driver::serve(config, dial, &seen, next);
        let served = tokio::select! {
            served = serving => served?,
            stood = &mut standing => return Ok(stood?),
        };
        match served {
            None => return Ok(()),
            Some(files) => {
                (config, dial) = files;
                certificate.send_replace(config.tls.certificate.clone());
            }
        }
    }
}

/// The files as they are when a signal says that they are to be read; none where it says stop. Files that cannot be used change nothing.
async fn next_files(signals: &mut Signals, path: &Path) -> Option<(SiteConfig, Dial)> {
    while signals.next().await == Heard::Reload {
        supervisor::reloading();
        let read = SiteConfig::open(path).map_err(Ended::from);
        let read = read.and_then(|config| Ok((config.dial()?, config)));
        match read {
            Ok((dial, config)) => {
                tracing::info!("read policy, configuration and certificates again");
                return Some((config, dial));
            }
            Err(Ended { error, .. }) => {
                let error = with_causes(error.as_ref());
                tracing::error!(%error, "what is to be read again cannot be used; all stays as it was");
                supervisor::ready();
            }
        }
    }
    supervisor::stopping();
    tracing::info!("stopping, as asked");
    None
}

fn job(path: &Path) -> Result<protocol::job::Job, Ended> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| UsageError(format!("{} could not be read: {error}", path.display())))?;
    let text = wire::jobs::with_draft(path, text)?;
    let job = protocol::job::Job::parse(&text)
        .map_err(|problems| UsageError(format!("{}:\n{problems}", path.display())))?;
    Ok(job)
}
