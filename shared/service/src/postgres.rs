//! A PostgreSQL server that a program uses: the keys of a configuration that name it, the connection, and its errors in words.

use crate::secret::{self, Password, SecretError};
use protocol::document::Section;
use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use wire::TlsError;

/// The keys that [`Server::read`] reads.
pub const KEYS: [&str; 8] = [
    "host",
    "port",
    "database",
    "user",
    "password_file",
    "password_env",
    "ca",
    "tls",
];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A database of a server, and an account there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name or address; a path means a Unix socket's folder.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Database.
    pub database: String,
    /// User.
    pub user: String,
    /// Where the password is; none where the database wants none.
    pub password: Option<Password>,
    /// How the connection is protected.
    pub tls: DatabaseTls,
}

/// How the connection to a database is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseTls {
    /// TLS; the server's certificate is checked against this authority and the host's name.
    Verified {
        /// PEM file of the authority's certificates.
        ca: PathBuf,
    },
    /// None, for a database on this machine.
    Disabled,
}

/// What carries a connection: it ends when the connection does.
pub type Line = JoinHandle<Result<(), Error>>;

/// There is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The password cannot be had.
    #[error("found no password for the database, wanted one, as the configuration names it")]
    Password(#[source] SecretError),
    /// The authority cannot be read.
    #[error(
        "found no authority to check the database's certificate against, wanted the PEM file that the configuration names"
    )]
    Authority(#[source] TlsError),
    /// The server cannot be reached, is starting or has no room: later it may be there.
    #[error("found a database that cannot be reached, wanted a connection to it: {0}")]
    Away(String),
    /// The server refuses the login.
    #[error("found a database that refuses the login, wanted a connection to it: {0}")]
    Refused(String),
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, host, port) = (&self.database, &self.host, self.port);
        write!(formatter, "database {database} at {host}:{port}")
    }
}

impl Server {
    /// Reads the [`KEYS`] of a table; relative paths are relative to `folder`.
    pub fn read(section: &mut Section<'_, '_>, folder: &Path) -> Option<Self> {
        let host = section.required("host");
        let port = section.count("port", 5_432, 1..=u64::from(u16::MAX));
        let database = section.required("database");
        let user = section.required("user");
        let password = secret::password(section, folder);
        let tls = DatabaseTls::read(section, folder);
        Some(Self {
            host: host?,
            port: u16::try_from(port).ok()?,
            database: database?,
            user: user?,
            password,
            tls: tls?,
        })
    }

    /// What a connection is asked for with, for the program of this name.
    ///
    /// # Errors
    /// [`ConnectError::Password`].
    pub fn config(&self, program: &str) -> Result<Config, ConnectError> {
        let mut config = Config::new();
        config
            .host(&self.host)
            .port(self.port)
            .dbname(&self.database)
            .user(&self.user)
            .application_name(program)
            .connect_timeout(CONNECT_TIMEOUT);
        if let Some(password) = &self.password {
            let secret = password.fetch().map_err(ConnectError::Password)?;
            config.password(secret.reveal());
        }
        Ok(config)
    }

    /// Connects. The line runs on the runtime of whoever calls.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, mut config: Config) -> Result<(Client, Line), ConnectError> {
        match &self.tls {
            DatabaseTls::Disabled => {
                config.ssl_mode(SslMode::Disable);
                let connected = config.connect(NoTls).await;
                let (client, connection) = connected.map_err(ConnectError::of)?;
                Ok((client, tokio::spawn(connection)))
            }
            DatabaseTls::Verified { ca } => {
                config.ssl_mode(SslMode::Require);
                let tls = wire::database_tls(Some(ca)).map_err(ConnectError::Authority)?;
                let connected = config.connect(MakeRustlsConnect::new(tls)).await;
                let (client, connection) = connected.map_err(ConnectError::of)?;
                Ok((client, tokio::spawn(connection)))
            }
        }
    }
}

impl DatabaseTls {
    /// TLS unless the file says otherwise in so many words.
    fn read(section: &mut Section<'_, '_>, folder: &Path) -> Option<Self> {
        let modes = [("verified", true), ("disabled", false)];
        let verified = section.choice("tls", &modes).unwrap_or(true);
        let ca: Option<String> = section.optional("ca");
        match (verified, ca) {
            (true, Some(ca)) => Some(Self::Verified {
                ca: folder.join(ca),
            }),
            (true, None) => {
                let wanted = "the PEM file of the database's authority, or tls = \"disabled\"";
                section.problem("ca", "no key", wanted);
                None
            }
            (false, None) => Some(Self::Disabled),
            (false, Some(_)) => {
                section.problem("ca", "tls = \"disabled\" as well", "one of the two");
                None
            }
        }
    }
}

impl ConnectError {
    fn of(error: Error) -> Self {
        let words = in_words(&error);
        // The server starts or stops, or has no more room.
        let may_come = |code: &str| code.starts_with("57P") || code.starts_with("53");
        match error.code().map(|code| may_come(code.code())) {
            Some(false) => Self::Refused(words),
            Some(true) | None => Self::Away(words),
        }
    }
}

/// What may be reported of an error: no message that could quote a value.
#[must_use]
pub fn in_words(error: &Error) -> String {
    let Some(database) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            text += &format!(": {next}");
            cause = next.source();
        }
        return text;
    };
    let code = database.code().code();
    // Connection, login, catalogue, syntax, resources, operator: about the query and the server.
    let is_safe = ["08", "25", "28", "3D", "3F", "42", "53", "57"]
        .iter()
        .any(|class| code.starts_with(class));
    if is_safe {
        format!("SQLSTATE {code}: {}", database.message())
    } else {
        format!("SQLSTATE {code}")
    }
}
