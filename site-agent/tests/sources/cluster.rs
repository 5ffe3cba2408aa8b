//! A PostgreSQL of the test's own: a new cluster in a temporary folder, on loopback.

#![allow(clippy::unwrap_used)] // functions that tests share

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

static STARTING: Mutex<()> = Mutex::new(());

/// A running cluster; it is stopped and removed when it is dropped.
pub(crate) struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    pub(crate) port: u16,
}

impl Cluster {
    /// Starts a cluster with TLS, whose certificate is `certificate` with `key`.
    pub(crate) fn start(certificate: &str, key: &str) -> Self {
        let programs = programs();
        let folder = tempfile::Builder::new()
            .prefix("kindred-postgres")
            .tempdir()
            .unwrap();
        std::fs::write(folder.path().join("password"), "secret").unwrap();
        own(folder.path());
        let mut cluster = Self {
            folder,
            programs,
            port: 0,
        };
        let data = cluster.data();
        cluster.run(
            "initdb",
            &[
                "-D",
                &data,
                "-U",
                "reader",
                "-A",
                "scram-sha-256",
                "--no-sync",
                "-E",
                "UTF8",
                "--pwfile",
                &cluster.path("password"),
            ],
        );
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = Path::new(&data).join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        own(Path::new(&data));
        // Between a port that is found free and the server on it no other server may find it.
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        cluster.port = port;
        drop(free);
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off \
             -c ssl=on"
        );
        cluster.run(
            "pg_ctl",
            &[
                "-D",
                &data,
                "-w",
                "-l",
                &cluster.path("log"),
                "-o",
                &options,
                "start",
            ],
        );
        cluster
    }

    /// Runs statements as the owner.
    pub(crate) fn execute(&self, statements: &str) {
        let file = self.folder.path().join("statements.sql");
        std::fs::write(&file, statements).unwrap();
        own(&file);
        let port = self.port.to_string();
        self.run(
            "psql",
            &[
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "reader",
                "-d",
                "postgres",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-f",
                &self.path("statements.sql"),
            ],
        );
    }

    /// A path in the folder of the cluster.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn data(&self) -> String {
        self.path("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
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
            .env("PGPASSWORD", "secret")
            .current_dir(self.folder.path());
        // A server that inherits pipes would keep them open; so to a file.
        let output =
            std::fs::File::create(self.folder.path().join(format!("{program}.out"))).unwrap();
        command
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .stdin(std::process::Stdio::null());
        let status = command.status().unwrap();
        let told = std::fs::read_to_string(self.path(&format!("{program}.out"))).unwrap();
        assert!(status.success(), "{program} failed: {told}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        self.run("pg_ctl", &["-D", &data, "-m", "immediate", "-w", "stop"]);
    }
}

/// The folder of PostgreSQL's programs.
fn programs() -> PathBuf {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = debian.flatten().map(|version| version.path().join("bin"));
    let path = std::env::var("PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = debian
        .chain(named)
        .find(|folder| folder.join("initdb").exists());
    found.expect("found no PostgreSQL server, wanted Debian's package postgresql, which `make test` installs")
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
