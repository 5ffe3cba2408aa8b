//! A PostgreSQL of the test's own: a new cluster in a temporary folder, on loopback.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // functions that tests share
#![allow(dead_code, unreachable_pub)] // tests of the crates below have this file as their own, and use a part of it

use std::io::{Read, Seek};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Who owns the cluster.
pub const OWNER: &str = "reader";
/// The owner's password; the file `password` has it as well.
const PASSWORD: &str = "secret";
const ABSENT: &str =
    "found no PostgreSQL server, wanted Debian's package postgresql, which `make test` installs";
static STARTING: Mutex<()> = Mutex::new(());

/// A running cluster; it is stopped and removed when it is dropped.
pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    options: String,
    /// Its port on loopback.
    pub port: u16,
}

impl Cluster {
    /// Whether PostgreSQL is installed; says so where it is not.
    pub fn is_there() -> bool {
        let is_there = programs().is_some();
        if !is_there {
            println!("skipped: {ABSENT}");
        }
        is_there
    }

    /// Starts a cluster without TLS.
    pub fn start() -> Self {
        Self::made(None)
    }

    /// Starts a cluster with TLS, whose certificate is `certificate` with `key`.
    pub fn with_tls(certificate: &str, key: &str) -> Self {
        Self::made(Some((certificate, key)))
    }

    fn made(tls: Option<(&str, &str)>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("kindred-postgres")
            .tempdir()
            .unwrap();
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        own(folder.path());
        let mut cluster = Self {
            folder,
            programs: programs().expect(ABSENT),
            options: String::new(),
            port: 0,
        };
        let (data, password) = (cluster.data(), cluster.path("password"));
        let arguments = ["-D", &data, "-U", OWNER, "-A", "scram-sha-256", "--no-sync"];
        let more = ["-E", "UTF8", "--pwfile", &password];
        cluster.run("initdb", &[&arguments[..], &more].concat());
        let files =
            tls.map(|(certificate, key)| [("server.crt", certificate), ("server.key", key)]);
        for (name, text) in files.into_iter().flatten() {
            let path = Path::new(&data).join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        own(Path::new(&data));
        // Between a port that is found free and the server on it no other server may find it.
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        cluster.port = port;
        cluster.options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        );
        if tls.is_some() {
            cluster.options += " -c ssl=on";
        }
        cluster.go_on();
        cluster
    }

    /// Stops the server as a lost machine does.
    pub fn stop(&self) {
        let data = self.data();
        self.run("pg_ctl", &["-D", &data, "-m", "immediate", "-w", "stop"]);
    }

    /// Starts the server where it was.
    pub fn go_on(&self) {
        let (data, log) = (self.data(), self.path("log"));
        let arguments = ["-D", &data, "-w", "-l", &log, "-o", &self.options, "start"];
        self.run("pg_ctl", &arguments);
    }

    /// Runs statements as the owner.
    pub fn execute(&self, statements: &str) {
        self.execute_in("postgres", statements);
    }

    /// Runs statements as the owner in a database; gives what they print, a row a line.
    pub fn execute_in(&self, database: &str, statements: &str) -> String {
        // Two at a time must not share a file.
        let file = tempfile::Builder::new().tempfile_in(self.folder.path());
        let file = file.unwrap();
        std::fs::write(file.path(), statements).unwrap();
        own(file.path());
        let (port, path) = (self.port.to_string(), file.path().display().to_string());
        let to = ["-h", "127.0.0.1", "-p", &port, "-U", OWNER, "-d", database];
        let how = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", &path];
        self.run("psql", &[&to[..], &how].concat())
    }

    /// A database, as pg_dump writes it.
    pub fn dump(&self, database: &str) -> String {
        let port = self.port.to_string();
        let to = ["-h", "127.0.0.1", "-p", &port, "-U", OWNER, "-d", database];
        self.run("pg_dump", &to)
    }

    /// Puts a dump in the place of a database of this owner.
    pub fn restore(&self, database: &str, owner: &str, dump: &str) {
        self.execute(&format!("DROP DATABASE {database} WITH (FORCE)"));
        self.execute(&format!("CREATE DATABASE {database} OWNER {owner}"));
        self.execute_in(database, dump);
    }

    /// A path in the folder of the cluster.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn data(&self) -> String {
        self.path("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = match is_root() {
            // initdb and postgres refuse to run as root.
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
                command.arg(self.programs.join(program));
                command
            }
            false => Command::new(self.programs.join(program)),
        };
        command
            .args(arguments)
            .env("PGPASSWORD", PASSWORD)
            .current_dir(self.folder.path());
        // A server that inherits pipes would keep them open; so to a file.
        let output = tempfile::tempfile_in(self.folder.path()).unwrap();
        command
            .stdout(output.try_clone().unwrap())
            .stderr(output.try_clone().unwrap())
            .stdin(Stdio::null());
        let status = command.status().unwrap();
        let (mut output, mut said) = (output, String::new());
        output.rewind().unwrap();
        output.read_to_string(&mut said).unwrap();
        assert!(status.success(), "{program} failed: {said}");
        said
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The folder of PostgreSQL's programs, where they are installed.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = debian.flatten().map(|version| version.path().join("bin"));
    let path = std::env::var("PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&path).collect();
    debian
        .chain(named)
        .find(|folder| folder.join("initdb").exists())
}

fn is_root() -> bool {
    let own = std::fs::metadata("/proc/self").unwrap();
    std::os::unix::fs::MetadataExt::uid(&own) == 0
}

/// Gives `path` and what is in it to the user whom the server runs as.
fn own(path: &Path) {
    if is_root() {
        let status = Command::new("chown")
            .arg("-R")
            .arg("postgres:postgres")
            .arg(path)
            .status();
        assert!(status.unwrap().success(), "chown of {}", path.display());
    }
}
