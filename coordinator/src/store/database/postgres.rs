//! PostgreSQL, which several coordinators share: one of them leads, by a lock that its connection holds.
//!
//! Every statement goes through that connection. Where it ends, so does the lock, and nothing that was led by it is written any
//! more. So a connection is never made again: whoever has lost it ends, and begins anew with what is stored.

use super::row::{Cell, Row, Value};
use super::{Database, DatabaseError, Sql};
use service::postgres::{Line, Server, in_words};
use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Error, Statement};

/// What the server calls the program.
const PROGRAM: &str = "kindred-coordinator";
/// The lock of whoever leads.
const LEASE: i64 = i64::from_be_bytes(*b"kindred\0");
/// An idle connection whose other side is gone is noticed within `IDLE` + `INTERVAL` * `COUNT`, a busy one within `UNHEARD`.
const IDLE: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_secs(2);
const COUNT: u32 = 3;
const UNHEARD: Duration = Duration::from_secs(10);
/// The schema of the tables.
const SCHEMA: &str = "kindred";
/// What SQLite calls its types, and PostgreSQL.
const WORDS: [(&str, &str); 3] = [("INTEGER", "BIGINT"), ("BLOB", "BYTEA"), (" STRICT;", ";")];

type Answer = Result<Vec<Row>, DatabaseError>;

/// A connection on a thread of its own.
pub struct Session {
    requests: mpsc::UnboundedSender<Request>,
    /// Why the connection has ended, once it has.
    ended: watch::Receiver<Option<String>>,
}

/// A session that leads: nobody else does before it ends.
pub struct Lease(Session);

/// What came of asking for the lease.
pub enum Taken {
    /// It was free.
    Leads(Lease),
    /// Another coordinator has it.
    Waits(Session),
}

enum Request {
    Rows {
        sql: Sql,
        values: Vec<Kept>,
        answer: SyncSender<Answer>,
    },
    Batch {
        sql: String,
        answer: SyncSender<Answer>,
    },
}

/// A [`Value`] on its way to another thread.
enum Kept {
    Text(Option<String>),
    Integer(Option<i64>),
    Bytes(Option<Vec<u8>>),
}

impl Session {
    /// Connects; blocks for as long as that takes.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn connect(server: &Server) -> Result<Self, DatabaseError> {
        let (requests, asked) = mpsc::unbounded_channel();
        let (end, ended) = watch::channel(None);
        let (connected, is_connected) = sync_channel(1);
        let server = server.clone();
        let work = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(connected.send(Err(DatabaseError::Thread(error)))),
            };
            runtime.block_on(async {
                match connect(&server).await {
                    Ok((client, line)) => {
                        // Whoever asked may have gone; then nobody asks for more.
                        let _ = connected.send(Ok(()));
                        if let Some(why) = serve(client, line, asked).await {
                            end.send_replace(Some(why));
                        }
                    }
                    Err(error) => drop(connected.send(Err(error))),
                }
            });
        };
        let thread = thread::Builder::new().name("database".to_owned());
        thread.spawn(work).map_err(DatabaseError::Thread)?;
        let session = Self { requests, ended };
        let is_connected = is_connected.recv().map_err(|_| session.lost())?;
        is_connected.map(|()| session)
    }

    /// Takes the lease, where nobody has it.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn try_lead(self) -> Result<Taken, DatabaseError> {
        let sql = "SELECT pg_try_advisory_lock(?1)";
        Ok(match self.first(sql, &[LEASE.into()])? {
            Some(true) => Taken::Leads(Lease(self)),
            Some(false) | None => Taken::Waits(self),
        })
    }

    /// The address of the coordinator that leads, where one does.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn leader(&self) -> Result<Option<String>, DatabaseError> {
        let sql = "SELECT coalesce(host(client_addr), 'this machine')
             FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE locktype = 'advisory' AND granted AND objsubid = 1
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (CAST(classid AS BIGINT) << 32 | CAST(objid AS BIGINT)) = ?1";
        self.first(sql, &[LEASE.into()])
    }

    /// The version of the tables; 0 where there are none.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn version(&self) -> Result<i64, DatabaseError> {
        let sql = "SELECT to_regclass('kindred.version') IS NOT NULL";
        match self.first(sql, &[])? {
            Some(true) => Ok(self
                .first("SELECT version FROM version", &[])?
                .unwrap_or_default()),
            Some(false) | None => Ok(0),
        }
    }

    fn first<T: super::FromCell>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> Result<Option<T>, DatabaseError> {
        let first = self.rows(sql, values)?.into_iter().next();
        first.map(|mut row| row.take(0)).transpose()
    }

    fn rows(&self, sql: Sql, values: &[Value<'_>]) -> Answer {
        let values = values.iter().map(Kept::of).collect();
        self.ask(|answer| Request::Rows {
            sql,
            values,
            answer,
        })
    }

    fn batch(&self, sql: String) -> Result<(), DatabaseError> {
        self.ask(|answer| Request::Batch { sql, answer }).map(drop)
    }

    fn ask(&self, request: impl FnOnce(SyncSender<Answer>) -> Request) -> Answer {
        let (answer, answered) = sync_channel(1);
        let request = request(answer);
        self.requests.send(request).map_err(|_| self.lost())?;
        answered.recv().map_err(|_| self.lost())?
    }

    fn lost(&self) -> DatabaseError {
        let why = self.ended.borrow().clone();
        DatabaseError::Lost(why.unwrap_or_else(|| "the connection has ended".to_owned()))
    }
}

impl Lease {
    /// Says why the connection has ended, once it has.
    #[must_use]
    pub fn ended(&self) -> watch::Receiver<Option<String>> {
        self.0.ended.clone()
    }

    /// Makes the schema where there is none.
    pub(in crate::store) fn prepare(&self) -> Result<(), DatabaseError> {
        let sql = "SELECT pg_encoding_to_char(encoding) FROM pg_database
             WHERE datname = current_database()";
        let encoding: Option<String> = self.0.first(sql, &[])?;
        if let Some(other) = encoding.filter(|encoding| encoding != "UTF8") {
            return Err(DatabaseError::Encoding(other));
        }
        let sql = "SELECT count(*) FROM pg_namespace WHERE nspname = ?1";
        match self.0.first::<i64>(sql, &[SCHEMA.into()])? {
            Some(1) => Ok(()),
            Some(_) | None => self.0.batch(format!("CREATE SCHEMA {SCHEMA}")),
        }
    }
}

impl Database for Lease {
    fn rows(&self, sql: Sql, values: &[Value<'_>]) -> Answer {
        self.0.rows(sql, values)
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        let words = WORDS.iter();
        let own = words.fold(sql.to_owned(), |sql, (theirs, own)| {
            sql.replace(theirs, own)
        });
        self.0.batch(own)
    }

    fn version(&self) -> Result<i64, DatabaseError> {
        self.0.version()
    }

    fn set_version(&self, version: i64) -> Result<(), DatabaseError> {
        self.batch(&format!(
            "CREATE TABLE IF NOT EXISTS version (version BIGINT NOT NULL);
             DELETE FROM version;
             INSERT INTO version VALUES ({version});"
        ))
    }

    fn number_runs(&self) -> Result<(), DatabaseError> {
        self.batch("ALTER TABLE runs ADD COLUMN rowid BIGINT GENERATED ALWAYS AS IDENTITY")
    }

    /// The server's log and its backups are not this program's.
    fn write_back(&self) -> Result<(), DatabaseError> {
        Ok(())
    }
}

async fn connect(server: &Server) -> Result<(Client, Line), DatabaseError> {
    let mut config = server.config(PROGRAM)?;
    let (idle, interval) = (IDLE.as_secs(), INTERVAL.as_secs());
    config
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .keepalives_idle(IDLE)
        .keepalives_interval(INTERVAL)
        .keepalives_retries(COUNT)
        .tcp_user_timeout(UNHEARD)
        // What is committed is on the disk, and no limit of the server's ends a connection that does what it should.
        .options(format!(
            "-c search_path={SCHEMA} -c synchronous_commit=on -c default_transaction_read_only=off \
             -c tcp_keepalives_idle={idle} -c tcp_keepalives_interval={interval} \
             -c tcp_keepalives_count={COUNT} -c tcp_user_timeout={} -c statement_timeout=0 \
             -c lock_timeout=0 -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0",
            UNHEARD.as_millis()
        ));
    Ok(server.connect(config).await?)
}

/// Answers until the connection ends, and says why it did; nothing where nobody asks any more. The first failure of PostgreSQL
/// ends it.
async fn serve(
    client: Client,
    mut line: Line,
    mut requests: mpsc::UnboundedReceiver<Request>,
) -> Option<String> {
    let mut prepared = HashMap::new();
    loop {
        let request = tokio::select! {
            ended = &mut line => return Some(match ended {
                Ok(Ok(())) => "the server has closed it".to_owned(),
                Ok(Err(error)) => in_words(&error),
                Err(error) => error.to_string(),
            }),
            request = requests.recv() => request?,
        };
        let (done, answer) = match request {
            Request::Batch { sql, answer } => {
                let done = client.batch_execute(&sql).await;
                (done.map(|()| Vec::new()), answer)
            }
            Request::Rows {
                sql,
                values,
                answer,
            } => (rows(&client, &mut prepared, sql, &values).await, answer),
        };
        let failed = done.as_ref().err().map(in_words);
        // Whoever asked waits for the answer.
        let _ = answer.send(done.map_err(|error| failure(&error)));
        if failed.is_some() {
            return failed;
        }
    }
}

fn failure(error: &Error) -> DatabaseError {
    let words = in_words(error);
    match error.code().map(|code| code.code()) {
        Some("42501") => DatabaseError::NoRight(words),
        Some(code) if !code.starts_with("57P") => DatabaseError::Failed(words),
        Some(_) | None => DatabaseError::Lost(words),
    }
}

async fn rows(
    client: &Client,
    prepared: &mut HashMap<Sql, Statement>,
    sql: Sql,
    values: &[Kept],
) -> Result<Vec<Row>, Error> {
    let statement = match prepared.get(sql) {
        Some(statement) => statement.clone(),
        None => {
            let statement = client.prepare(&sql.replace('?', "$")).await?;
            prepared.insert(sql, statement.clone());
            statement
        }
    };
    let values: Vec<_> = values.iter().map(Kept::as_sql).collect();
    let rows = client.query(&statement, &values).await?;
    let cells = |row: tokio_postgres::Row| {
        let cells = (0..row.len()).map(|column| row.try_get(column));
        Ok(Row::new(cells.collect::<Result<_, Error>>()?))
    };
    rows.into_iter().map(cells).collect()
}

impl Kept {
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.map(str::to_owned)),
            Value::Integer(number) => Self::Integer(*number),
            Value::Bytes(bytes) => Self::Bytes(bytes.map(<[u8]>::to_vec)),
        }
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(text) => text,
            Self::Integer(number) => number,
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *kind {
            Type::BOOL => Self::Integer(bool::from_sql(kind, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(kind, raw)?),
            Type::TEXT | Type::NAME => Self::Text(String::from_sql(kind, raw)?),
            Type::BYTEA => Self::Bytes(raw.to_vec()),
            _ => Self::Other,
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
