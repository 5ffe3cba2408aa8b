//! `kindred-site-agent`.

use clap::{CommandFactory, Parser};
use protocol::name::RunId;
use protocol::progress::Ending;
use protocol::study::StudyName;
use report::{Did, RunSaid, complain, remark, say, with_causes};
use serde::Serialize;
use service::certificate::Certified;
use service::log::LogFormat;
use service::signals::{Heard, Signals};
use service::status::Status;
use service::supervisor;
use site_agent::books::journal;
use site_agent::books::ledger::{self, KEY_NAME};
use site_agent::cli::{
    Cli, Command, Data, Journal, JournalVerify, Policy, PolicyExplain, Runs, Serve, Site, Study,
    StudyFile,
};
use site_agent::config::SiteConfig;
use site_agent::enrolment::{Enrolled, EnrolledSite};
use site_agent::exit::{Ended, Exit, UsageError};
use site_agent::explain::{Explanation, Lowered};
use site_agent::init::Initialised;
use site_agent::pages::Pages;
use site_agent::run::audit::Audit;
use site_agent::run::driver::Seen;
use site_agent::run::{answers, audit};
use site_agent::run::{driver, listed, local, retention};
use site_agent::source::{Checked, DataCheck, Dictionary};
use site_agent::studies::{Listing, Review};
use site_agent::{
    backup, cases, cli, doctor, draft, enrolment, init, kernels, pages, source, studies, synthesise,
};
use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;
use wire::{CredentialFiles, Dial};

fn main() -> ExitCode {
    kernels::suit_the_machine();
    let Cli { command, speech } = Cli::parse();
    speech.begin(LevelFilter::INFO);
    report::speak(speech.quiet, speech.log_format == LogFormat::Json);
    match run(command) {
        Ok(exit) => exit.into(),
        Err(Ended { exit, error }) => {
            if exit != Exit::Unread {
                complain(with_causes(error.as_ref()));
            }
            exit.into()
        }
    }
}

fn run(command: Command) -> Result<Exit, Ended> {
    match command {
        Command::Serve(arguments) => serve(&arguments),
        Command::Doctor(arguments) => doctor(&arguments),
        Command::Enrol(arguments) => enrol(&arguments),
        Command::Site(Site::Init(arguments)) => {
            let initialised = init::init(&arguments.config, &arguments.table)?;
            show(&initialised, arguments.json)?;
            Ok(proposed(&initialised))
        }
        Command::Renew(arguments) => renew(&arguments),
        Command::Local(arguments) => {
            let ran = local::run(&arguments)?;
            RunSaid::ended(&ran.result, ran.folder.as_deref()).say(arguments.json)?;
            Ok(match &ran.result.ending {
                Ending::Failed(_) => Exit::Run,
                Ending::Converged | Ending::Completed | Ending::RoundLimit | Ending::Cancelled => {
                    Exit::Done
                }
            })
        }
        Command::Similar(arguments) => said(cases::similar(&arguments)?),
        Command::Match(arguments) => said(cases::matches(&arguments)?),
        Command::Cluster(arguments) => said(cases::clusters(&arguments)?),
        Command::Predict(arguments) => said(cases::predict(&arguments)?),
        Command::Personal(arguments) => said(cases::personal(&arguments)?),
        Command::Data(Data::Check(arguments)) => check(&arguments),
        Command::Data(Data::Dictionary(arguments)) => {
            show(&Dictionary::of_job(&job(&arguments.job)?), arguments.json)
        }
        Command::Policy(Policy::Explain(arguments)) => explain(&arguments),
        Command::Policy(Policy::Lowered(arguments)) => {
            let lowered = Lowered::of(&SiteConfig::open(&arguments.config)?.policy);
            // On standard output the rules alone, for whoever counts them.
            lowered.remark().iter().for_each(remark);
            show(&lowered, arguments.json)
        }
        Command::Study(command) => study(&command),
        Command::Journal(Journal::List(arguments)) => {
            let folder = SiteConfig::open(&arguments.config)?.folder;
            let listed = journal::list(&folder, arguments.run.as_deref())?;
            show(&listed, arguments.json)
        }
        Command::Journal(Journal::Verify(arguments)) => verify_journal(&arguments),
        Command::Runs(Runs::List(arguments)) => {
            let runs = listed::list(&SiteConfig::open(&arguments.config)?)?;
            show(&runs, arguments.json)
        }
        Command::Pages(arguments) => pages(&arguments),
        Command::Audit(audit) => match audit {
            cli::Audit::List(asked) => show(&pages::list(&asked)?, asked.json),
            cli::Audit::Verify(asked) => show(&pages::verify(&asked)?, asked.json),
        },
        Command::Backup(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            show(&backup::backup(&config, &arguments.out)?, arguments.json)
        }
        Command::Restore(arguments) => show(&backup::restore(&arguments)?, arguments.json),
        Command::Synthesise(arguments) => {
            let written = synthesise::synthesise(&arguments)?;
            show(&files("written", &written), arguments.json)
        }
        Command::Completions(arguments) => said(arguments.script(Cli::command())),
        Command::Man(arguments) => {
            let written = arguments.write(Cli::command())?;
            show(&files("written", &written), arguments.json)
        }
    }
}

fn doctor(arguments: &cli::Doctor) -> Result<Exit, Ended> {
    let checkup = runtime()?.block_on(doctor::examine(&arguments.config));
    show(&checkup, arguments.json)?;
    Ok(match checkup.is_well() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// Files that were written.
fn files(did: &'static str, paths: &[PathBuf]) -> Did {
    Did::to_files(did, paths.iter().map(PathBuf::as_path))
}

fn enrol(arguments: &cli::Enrol) -> Result<Exit, Ended> {
    let Enrolled { files, config } = runtime()?.block_on(enrolment::enrol(arguments))?;
    let certified = certified(&files, Some(&config))?;
    certified.remarks().iter().for_each(remark);
    let table = arguments.table();
    let proposal = table.map(|table| init::init(&config, &table));
    let enrolled = match proposal.transpose() {
        Ok(proposal) => EnrolledSite {
            certified,
            proposal,
        },
        Err(error) => {
            // The certificate is there, whatever the table is.
            show(&certified, arguments.json)?;
            return Err(error.into());
        }
    };
    show(&enrolled, arguments.json)?;
    let exit = enrolled.proposal.as_ref().map_or(Exit::Done, proposed);
    if exit != Exit::Done || !arguments.serve {
        return Ok(exit);
    }
    serve(&Serve {
        config: config.into(),
        until_stdin_closes: false,
    })
}

fn renew(arguments: &cli::SiteOnly) -> Result<Exit, Ended> {
    let files = runtime()?.block_on(enrolment::renew(&arguments.config))?;
    let certified = certified(&files, None)?;
    certified.remarks().iter().for_each(remark);
    show(&certified, arguments.json)
}

fn certified(files: &CredentialFiles, config: Option<&Path>) -> Result<Certified, Ended> {
    Ok(Certified::read(files, config)?)
}

/// Says what is to be done with a configuration that was proposed.
fn proposed(initialised: &Initialised) -> Exit {
    remark(initialised.remark());
    match initialised.problems {
        None => Exit::Done,
        Some(_) => Exit::Usage,
    }
}

/// A journal that was checked.
#[derive(Serialize)]
struct Verified {
    entries: u64,
    head: String,
    /// The run that was worked out again.
    run: Option<Audit>,
}

impl Display for Verified {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, head, run } = self;
        write!(
            formatter,
            "{entries} entries, all as they were written; the head is {head}"
        )?;
        run.iter().try_for_each(|run| write!(formatter, "\n{run}"))
    }
}

/// Checks the journal, and of a run of sums that every question was the right one.
fn verify_journal(arguments: &JournalVerify) -> Result<Exit, Ended> {
    let kept = arguments.head.as_ref();
    let kept = kept.map(|head| head.parse()).transpose()?;
    let config = SiteConfig::open(&arguments.config)?;
    let head = journal::verify(&config.folder, kept.as_ref())?;
    let mut verified = Verified {
        entries: head.entries,
        head: head.to_string(),
        run: None,
    };
    if let Some(run) = &arguments.run {
        let audited = audit::audit(&config, &RunId::new(run)?);
        verified.run = match audited {
            Ok(audited) => Some(audited),
            Err(error) => {
                // The journal holds, whatever the run is.
                show(&verified, arguments.json)?;
                return Err(error.into());
            }
        };
    }
    show(&verified, arguments.json)
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
    show(&explanation, arguments.json)?;
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
    let review = Review {
        study: &study,
        config: &config,
        approved: known.find(|one| one.signed.approval.digest == digest),
    };
    let exit = show(&review, arguments.json)?;
    studies::proposed::reviewed(&config, &arguments.study, &study)?;
    Ok(exit)
}

/// Reviews, approves, lists or leaves studies.
fn study(command: &Study) -> Result<Exit, Ended> {
    match command {
        Study::Review(arguments) => review(arguments),
        Study::Draft(arguments) => {
            let drafted = draft::draft(arguments, driver::now())?;
            remark(drafted.remark());
            show(&drafted, arguments.json)
        }
        Study::Approve(arguments) => {
            let signed = studies::approve(arguments, driver::now())?;
            show(
                &studies::GivenApproval::of(&signed.approval),
                arguments.of.json,
            )
        }
        Study::List(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let approved = studies::all(&config.folder, &config.site)?;
            let waiting = studies::proposed::waiting(&config, &approved)?;
            let listing = Listing {
                now: driver::now(),
                approved,
                waiting,
            };
            show(&listing, arguments.json)
        }
        Study::Consent(arguments) => {
            let (config, now) = (SiteConfig::open(&arguments.config)?, driver::now());
            let path = studies::consent::give(&config, &arguments.study, &arguments.out, now)?;
            let text = format!(
                "{}: whoever approves the study passes it as --consent",
                path.display()
            );
            let study = arguments.study.display();
            let did = Did::to_study("consented", &study, text).with_file(&path);
            show(&did, arguments.json)
        }
        Study::Budget(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let budgets = studies::budgets(&config, arguments.study.as_deref(), driver::now())?;
            if arguments.json {
                return said(serde_json::to_string_pretty(&budgets)?);
            }
            budgets.iter().try_for_each(say)?;
            Ok(Exit::Done)
        }
        Study::Audit(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let audit = answers::audit(&config, &arguments.study)?;
            let out = arguments.out.clone();
            let out = out.unwrap_or_else(|| format!("{}.audit.json", arguments.study).into());
            audit.write(&config, &out)?;
            show(&audit, arguments.json)?;
            Ok(match audit.is_verified() {
                true => Exit::Done,
                false => Exit::Books,
            })
        }
        Study::Leave(arguments) => {
            let config = SiteConfig::open(&arguments.config)?;
            let study = StudyName::new(&arguments.study)?;
            studies::leave(&config, &study)?;
            let text = format!("left {study}: its patients are deleted");
            show(&Did::to_study("left", &study, text), arguments.json)
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

/// Prints what a job would find at this site.
fn check(arguments: &cli::DataCheck) -> Result<Exit, Ended> {
    let config = SiteConfig::open(&arguments.config)?;
    let cell_min = config.policy.rules().cell_min;
    let job = job(&arguments.job)?;
    let check = source::check(&config.source, &job, cell_min);
    let undeclared = source::undeclared_units(&config.source, &job.cohort.features);
    let fits = check.fits();
    let asked = arguments.write_dictionary.as_ref();
    let asked = asked.filter(|_| check.was_read());
    let written = asked.map(|named| write_dictionary(&check, named.as_deref(), &arguments.config));
    let written = written.transpose()?;
    show(
        &Checked::new(check, undeclared, written.as_deref()),
        arguments.json,
    )?;
    Ok(if fits { Exit::Done } else { Exit::Data })
}

/// Writes the dictionary of a check; gives its file.
fn write_dictionary(
    check: &DataCheck,
    named: Option<&Path>,
    config: &Path,
) -> Result<PathBuf, io::Error> {
    let path = named.map_or_else(|| config.with_extension("dictionary.toml"), Path::to_owned);
    let written = check.dictionary().write(&path);
    written.map_err(|error| {
        io::Error::other(format!("{} could not be written: {error}", path.display()))
    })?;
    Ok(path)
}

/// What carries out one command.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build()
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
    let (present, configs) = watch::channel(config.clone());
    let mut keeping = std::pin::pin!(retention::keep(configs));
    loop {
        let next = next_files(&mut signals, &arguments.config);
        let serving = driver::serve(config, dial, &seen, next);
        let served = tokio::select! {
            served = serving => served?,
            stood = &mut standing => return Ok(stood?),
            () = &mut keeping => return Ok(()),
        };
        match served {
            None => return Ok(()),
            Some(files) => {
                (config, dial) = files;
                certificate.send_replace(config.tls.certificate.clone());
                present.send_replace(config.clone());
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
