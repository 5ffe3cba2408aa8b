//! `doctor`: all that a coordinator needs, looked at from its configuration to its port. It changes nothing.

use crate::config::{CoordinatorConfig, Enrolling, StoreConfig};
use crate::driver::VERSION;
use crate::folder::Folder;
use crate::store::{DatabaseError, SCHEMA_VERSION, Session};
use report::with_causes;
use service::doctor::Checkup;
use service::postgres::{DatabaseTls, Server};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use wire::{ServerTls, certificates};

/// Looks at all that the configuration in `path` names.
#[must_use]
pub fn examine(path: &Path) -> Checkup {
    let opened = CoordinatorConfig::open(path).map_err(|error| with_causes(&error));
    let (mut checkup, config) = match Checkup::of_configuration(VERSION, path, opened) {
        Ok(opened) => opened,
        Err(checkup) => return checkup,
    };
    certificate(&config, &mut checkup);
    let is_running = Folder::is_in_use(&config.folder);
    folder(&config, is_running, &mut checkup);
    checkup.disk(&config.folder);
    let is_led = match &config.store {
        StoreConfig::Sqlite => false,
        StoreConfig::Postgres(server) => database(server, &mut checkup),
    };
    let stands_by = is_led && is_running && nobody_listens(config.listen);
    let state = match (is_running, stands_by) {
        (true, true) => Ports::StandBy,
        (true, false) => Ports::Used,
        (false, _) => Ports::Free,
    };
    port("port", config.listen, state, &mut checkup);
    if let Some(enrolling) = &config.enrolment {
        enrolment(&config, enrolling, &mut checkup);
        port("enrolment port", enrolling.listen, state, &mut checkup);
    }
    checkup
}

/// Looks at the database, and whether a coordinator leads on it.
fn database(server: &Server, checkup: &mut Checkup) -> bool {
    const NAME: &str = "database";
    const REACH: &str = "correct [store], or what the database's own log says";
    const LATER: &str = "install the Kindred that has written it, or a later one";
    let look = || {
        let session = Session::connect(server)?;
        Ok::<_, DatabaseError>((session.version()?, session.leader()?))
    };
    let (version, leader) = match look() {
        Ok(found) => found,
        Err(error) => {
            checkup.problem(NAME, format!("{server}: {}", with_causes(&error)), REACH);
            return false;
        }
    };
    let tls = match server.tls {
        DatabaseTls::Verified { .. } => "TLS",
        DatabaseTls::Disabled => "no TLS",
    };
    let tables = match version {
        0 => "tables are made at the first start".to_owned(),
        version => format!("tables of version {version}"),
    };
    let leads = match &leader {
        Some(address) => format!("the coordinator at {address} leads"),
        None => "no coordinator leads".to_owned(),
    };
    let found = format!("{server}, {tls}, {tables}; {leads}");
    match version > SCHEMA_VERSION {
        true => checkup.problem(NAME, found, LATER),
        false => checkup.passed(NAME, found),
    }
    leader.is_some()
}

fn nobody_listens(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok()
}

/// Whether certificates can be signed here.
fn enrolment(config: &CoordinatorConfig, enrolling: &Enrolling, checkup: &mut Checkup) {
    const MEND: &str = "name the folder of `certificates init` as authority, readable by the coordinator's user alone; or remove [enrolment]";
    let folder = &enrolling.folder;
    let signs = certificates::check_authority(folder).map_err(|error| with_causes(&error));
    let serves = ServerTls::load_enrolling(&config.tls, folder);
    match signs.and_then(|()| serves.map_err(|error| with_causes(&error))) {
        Ok(_) => checkup.passed("enrolment", format!("{} signs", folder.display())),
        Err(error) => checkup.problem("enrolment", error, MEND),
    }
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
    checkup.certificate(&config.tls.certificate, NEW);
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

/// What the ports of a coordinator should be.
#[derive(Clone, Copy)]
enum Ports {
    /// None runs on the folder.
    Free,
    /// One runs.
    Used,
    /// One runs, and another leads.
    StandBy,
}

fn port(name: &str, address: SocketAddr, state: Ports, checkup: &mut Checkup) {
    match (TcpListener::bind(address), state) {
        (Ok(_), Ports::Free) => checkup.passed(name, format!("{address} is free")),
        (Ok(_), Ports::StandBy) => {
            let text = format!("{address} is closed while another coordinator leads");
            checkup.passed(name, text);
        }
        (Ok(_), Ports::Used) => checkup.problem(
            name,
            format!("nobody listens on {address}, though a coordinator runs on the folder"),
            "start the coordinator again, if the file has changed since",
        ),
        (Err(_), Ports::Used) => checkup.passed(name, format!("{address} is listened on")),
        (Err(error), Ports::Free | Ports::StandBy) => checkup.problem(
            name,
            format!("{address}: {error}"),
            "stop the other program, or choose another port with `listen`",
        ),
    }
}
