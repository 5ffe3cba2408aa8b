//! `doctor`: all that an agent needs, looked at from its configuration to its data. It changes nothing and asks the coordinator for nothing.

use crate::books::journal;
use crate::books::ledger::{self, KEY_NAME};
use crate::config::SiteConfig;
use crate::run::driver::{VERSION, now};
use crate::source;
use crate::studies::{self, Approved, Budget};
use protocol::failure::Code;
use protocol::job::Job;
use protocol::study::Study;
use report::with_causes;
use service::doctor::Checkup;
use similarity::numeric::linear_algebra;
use std::path::Path;
use std::time::SystemTime;
use wire::{Dial, Remedy, certificates, private};

/// Looks at all that the configuration in `path` names.
pub async fn examine(path: &Path) -> Checkup {
    let opened = SiteConfig::open(path).map_err(|error| with_causes(&error));
    let (mut checkup, config) = match Checkup::of_configuration(VERSION, path, opened) {
        Ok(opened) => opened,
        Err(checkup) => return checkup,
    };
    checkup.passed("arithmetic", linear_algebra::arithmetic());
    policy(&config, &mut checkup);
    let dial = certificate(&config, &mut checkup);
    match dial {
        Some(dial) => coordinator(&dial, &mut checkup).await,
        None => checkup.skipped("coordinator", "without a certificate nobody can be reached"),
    }
    folder(&config, &mut checkup);
    checkup.disk(&config.folder);
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
    checkup.certificate(&config.tls.certificate, NEW);
    Some(dial)
}

async fn coordinator(dial: &Dial, checkup: &mut Checkup) {
    const NAME: &str = "coordinator";
    let address = dial.address.to_string();
    let error = match wire::probe(dial).await {
        Ok(clock) => {
            checkup.passed(NAME, format!("{address} accepts the certificate"));
            match clock {
                Some(clock) => checkup.clock(clock, SystemTime::now()),
                None => {
                    checkup.skipped("clock", "the coordinator does not say what its clock shows")
                }
            }
            return;
        }
        Err(error) => error,
    };
    let code = error.code();
    let mut found = format!("{address}: {}: {}", code.name(), with_causes(&error));
    let mut mend = match error.remedy() {
        Remedy::Soon => {
            "check the address, its name, the proxy and the firewall, and whether the coordinator runs"
        }
        Remedy::Later => "ask whoever runs the coordinator",
        Remedy::Replaced => "run one agent only with this certificate",
        Remedy::Person => {
            "correct the address, or ask for another certificate, as the message says"
        }
    };
    if code == Code::Authority
        && let Some(authority) = wire::shown_authority(dial).await
    {
        found += &format!("\nThe certificate there is by {authority:?}.");
        if !authority.contains(certificates::AUTHORITY_NAME) {
            found += " Somebody on the way opens TLS.";
            mend = "have the proxy or firewall pass connections to the coordinator unopened";
        }
    }
    checkup.problem(NAME, found, mend);
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
