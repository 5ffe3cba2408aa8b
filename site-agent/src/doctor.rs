//! `doctor`: all that an agent needs, looked at from its configuration to its data. It changes nothing and asks the coordinator for nothing.

use crate::books::journal;
use crate::books::ledger::{self, KEY_NAME};
use crate::config::SiteConfig;
use crate::run::driver::{VERSION, now};
use crate::source;
use crate::studies::{self, Approved, Budget};
use protocol::job::Job;
use protocol::study::Study;
use report::with_causes;
use service::doctor::Checkup;
use service::expiry::Left;
use std::path::Path;
use std::time::SystemTime;
use wire::{Dial, Remedy, certificates, private};

/// Looks at all that the configuration in `path` names.
pub async fn examine(path: &Path) -> Checkup {
    let mut checkup = Checkup::new(VERSION);
    let config = match SiteConfig::open(path) {
        Ok(config) => config,
        Err(error) => {
            checkup.problem(
                "configuration",
                with_causes(&error),
                "correct the lines of the file that are named",
            );
            return checkup;
        }
    };
    checkup.passed("configuration", path.display().to_string());
    policy(&config, &mut checkup);
    let dial = certificate(&config, &mut checkup);
    match dial {
        Some(dial) => coordinator(&dial, &mut checkup).await,
        None => checkup.skipped("coordinator", "without a certificate nobody can be reached"),
    }
    folder(&config, &mut checkup);
    books(&config, &mut checkup);
    data(&config, &mut checkup);
    checkup
}

fn policy(config: &SiteConfig, checkup: &mut Checkup) {
    let lowered = config.policy.lowered();
    match lowered.is_empty() {
        true => checkup.passed("policy", "no rule is below its default"),
        false => checkup.passed("policy", lowered.join("\n")),
    }
}

fn certificate(config: &SiteConfig, checkup: &mut Checkup) -> Option<Dial> {
    const NAME: &str = "certificate";
    const NEW: &str = "ask whoever keeps the authority for a certificate of this site, and put its files where [tls] names them";
    let dial = match config.dial() {
        Ok(dial) => dial,
        Err(error) => {
            checkup.problem(NAME, with_causes(&error), NEW);
            return None;
        }
    };
    if let Err(error) = dial.tls.check_site(&config.site) {
        checkup.problem(NAME, with_causes(&error), NEW);
        return None;
    }
    match certificates::valid_until(&config.tls.certificate) {
        Err(error) => checkup.problem(NAME, with_causes(&error), NEW),
        Ok(until) => match Left::of(until, SystemTime::now()) {
            Left::Enough(days) => checkup.passed(NAME, format!("valid for {days} days")),
            Left::Few(days) => checkup.problem(NAME, format!("ends in {days} days"), NEW),
            Left::Nothing => checkup.problem(NAME, "has ended, by this machine's clock", NEW),
        },
    }
    Some(dial)
}

async fn coordinator(dial: &Dial, checkup: &mut Checkup) {
    let address = dial.address.to_string();
    match wire::probe(dial).await {
        Ok(()) => checkup.passed("coordinator", format!("{address} accepts the certificate")),
        Err(error) => checkup.problem(
            "coordinator",
            format!(
                "{address}: {}: {}",
                error.code().name(),
                with_causes(&error)
            ),
            match error.remedy() {
                Remedy::Soon => "check the address, its name, the proxy and the firewall, and whether the coordinator runs",
                Remedy::Later => "ask whoever runs the coordinator",
                Remedy::Replaced => "run one agent only with this certificate",
                Remedy::Person => "correct the address, or ask for another certificate, as the message says",
            },
        ),
    }
}

fn folder(config: &SiteConfig, checkup: &mut Checkup) {
    const OWN: &str =
        "give the folder and its files to the agent's user alone: chown -R, then chmod -R go-rwx";
    let place = config.folder.display();
    if !config.folder.is_dir() {
        return checkup.skipped("folder", format!("{place} is made at the first start"));
    }
    let written = tempfile::NamedTempFile::new_in(&config.folder);
    if let Err(error) = written {
        return checkup.problem("folder", format!("{place}: {error}"), OWN);
    }
    match private::check_key(&config.folder.join(KEY_NAME)) {
        Ok(()) => checkup.passed("folder", format!("{place} can be written")),
        Err(error) => checkup.problem("folder", with_causes(&error), OWN),
    }
}

fn books(config: &SiteConfig, checkup: &mut Checkup) {
    const LOOK: &str = "stop the agent; find out who changed the file, or put back the last copy of the whole folder";
    if !config.folder.is_dir() || journal::is_unwritten(&config.folder) {
        return checkup.passed("journal", "nothing has left this site yet");
    }
    match journal::verify(&config.folder, None) {
        Ok(head) => checkup.passed(
            "journal",
            format!("{} entries, all as they were written", head.entries),
        ),
        Err(error) => checkup.problem("journal", with_causes(&error), LOOK),
    }
}

/// Every study that may yet ask for something, and those that wait for approval.
fn data(config: &SiteConfig, checkup: &mut Checkup) {
    const CHANGED: &str =
        "put back the study's files as they were; without them its runs wait for this hospital";
    let known = match studies::all(&config.folder, &config.site) {
        Ok(known) => known,
        Err(error) => return checkup.problem("studies", with_causes(&error), CHANGED),
    };
    let waiting = match studies::proposed::waiting(config, &known) {
        Ok(waiting) => waiting,
        Err(error) => return checkup.problem("studies", with_causes(&error), CHANGED),
    };
    let is_on = |one: &&Approved| !one.left && !one.closed && !one.study.is_over(now());
    let known: Vec<&Approved> = known.iter().filter(is_on).collect();
    if known.is_empty() && waiting.is_empty() {
        checkup.skipped("studies", "none is approved or proposed");
    }
    let used = ledger::used(&config.folder);
    for one in known {
        let name = format!("study {}", one.study.name);
        match (studies::whole(config, one), &used) {
            (Err(error), _) => checkup.problem(name, with_causes(&error), CHANGED),
            (_, Err(error)) => checkup.problem(name, with_causes(error), CHANGED),
            (Ok(()), Ok(used)) => {
                let used = used.get(&one.study.digest()).copied().unwrap_or_default();
                let budget = Budget::new(one, &used, config.policy.rules(), now());
                checkup.passed(name, budget.line());
            }
        }
    }
    for study in waiting {
        fits(config, &study, checkup);
    }
}

/// Whether the data fits a study that waits for approval.
fn fits(config: &SiteConfig, study: &Study, checkup: &mut Checkup) {
    let name = format!("data for {}", study.name);
    let job = match Job::parse(&study.card()) {
        Ok(job) => job,
        Err(error) => {
            return checkup.problem(
                name,
                error.to_string(),
                "ask its operators for a correct text",
            );
        }
    };
    let check = source::check(&config.source, &job, config.policy.rules().cell_min);
    match check.fits() {
        true => checkup.passed(
            name,
            "fits; `study review` shows what it asks, `study approve` agrees",
        ),
        false => checkup.problem(
            name,
            check.problems().to_string(),
            "correct the data, or [columns] of site.toml; `study approve` names every line",
        ),
    }
}
