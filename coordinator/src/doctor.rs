//! `doctor`: all that a coordinator needs, looked at from its configuration to its port. It changes nothing.

use crate::config::CoordinatorConfig;
use crate::driver::VERSION;
use crate::folder::Folder;
use report::with_causes;
use service::doctor::Checkup;
use service::expiry::Left;
use std::net::TcpListener;
use std::path::Path;
use std::time::SystemTime;
use wire::{ServerTls, certificates};

/// Looks at all that the configuration in `path` names.
#[must_use]
pub fn examine(path: &Path) -> Checkup {
    let mut checkup = Checkup::new(VERSION);
    let config = match CoordinatorConfig::open(path) {
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
    certificate(&config, &mut checkup);
    let is_running = Folder::is_in_use(&config.folder);
    folder(&config, is_running, &mut checkup);
    port(&config, is_running, &mut checkup);
    checkup
}

fn certificate(config: &CoordinatorConfig, checkup: &mut Checkup) {
    const NAME: &str = "certificate";
    const NEW: &str =
        "issue a certificate of the coordinator, and put its files where [tls] names them";
    let loaded = match &config.revoked {
        Some(revoked) => ServerTls::load_revoking(&config.tls, revoked),
        None => ServerTls::load(&config.tls),
    };
    if let Err(error) = loaded {
        return checkup.problem(NAME, with_causes(&error), NEW);
    }
    match certificates::valid_until(&config.tls.certificate) {
        Err(error) => checkup.problem(NAME, with_causes(&error), NEW),
        Ok(until) => match Left::of(until, SystemTime::now()) {
            Left::Enough(days) => checkup.passed(NAME, format!("valid for {days} days")),
            Left::Few(days) => checkup.problem(NAME, format!("ends in {days} days"), NEW),
            Left::Nothing => checkup.problem(NAME, "has ended, by this machine's clock", NEW),
        },
    }
    match &config.revoked {
        Some(revoked) => checkup.passed("revoked", revoked.display().to_string()),
        None => checkup.skipped(
            "revoked",
            "[tls] names no list: a lost certificate would still be accepted",
        ),
    }
}

fn folder(config: &CoordinatorConfig, is_running: bool, checkup: &mut Checkup) {
    let place = config.folder.display();
    if is_running {
        return checkup.passed("folder", format!("{place}, where a coordinator runs"));
    }
    if !config.folder.is_dir() {
        return checkup.skipped("folder", format!("{place} is made at the first start"));
    }
    match tempfile::NamedTempFile::new_in(&config.folder) {
        Ok(_) => checkup.passed("folder", format!("{place} can be written")),
        Err(error) => checkup.problem(
            "folder",
            format!("{place}: {error}"),
            "give the folder and its files to the coordinator's user alone, or make room on its disk",
        ),
    }
}

fn port(config: &CoordinatorConfig, is_running: bool, checkup: &mut Checkup) {
    let address = config.listen;
    match TcpListener::bind(address) {
        Ok(_) if is_running => checkup.problem(
            "port",
            format!("nobody listens on {address}, though a coordinator runs on the folder"),
            "start the coordinator again, if the file has changed since",
        ),
        Ok(_) => checkup.passed("port", format!("{address} is free")),
        Err(_) if is_running => checkup.passed("port", format!("{address} is listened on")),
        Err(error) => checkup.problem(
            "port",
            format!("{address}: {error}"),
            "stop the other program, or choose another port with `listen`",
        ),
    }
}
