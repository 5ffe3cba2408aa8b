//! A query to a PostgreSQL database, read as a stream within a read-only transaction.
//!
//! The database's own messages may quote a patient's value. Only those about the query, the login
//! or the server are reported; of the others, their SQLSTATE.

use super::field::{Field, number_of_text};
use super::intake::Intake;
use super::misfit::Cause;
use super::problem::CohortProblem;
use crate::config::{DecimalMark, PostgresSource, Query};
use service::postgres::{ConnectError, in_words};
use std::collections::BTreeMap;
use std::error::Error as StdError;
use time::Date;
use tokio::runtime;
use tokio_postgres::types::{FromSql, Kind, Type};
use tokio_postgres::{Client, Error};
use tokio_stream::StreamExt;

/// Julian day of 2000-01-01, from which PostgreSQL counts.
const JULIAN_2000: i32 = 2_451_545;
const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;

/// Reads all of `source` into `intake`.
pub(super) fn read(source: &PostgresSource, intake: &mut Intake) {
    let stopped = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(read_query(source, intake)),
        Err(error) => Err(Stop::new(
            "no thread for the database",
            "one",
            error.to_string(),
        )),
    };
    if let Err(Stop {
        found,
        wanted,
        detail,
    }) = stopped
    {
        let problem = CohortProblem::of_source(intake.source(), Cause::Source, found, wanted);
        intake.problem(problem.with_detail(&detail));
    }
}

/// Why reading ended before the query did.
struct Stop {
    found: &'static str,
    wanted: &'static str,
    /// For the people at the site only.
    detail: String,
}

impl Stop {
    fn new(found: &'static str, wanted: &'static str, detail: String) -> Self {
        Self {
            found,
            wanted,
            detail,
        }
    }

    fn of_query(error: &Error) -> Self {
        let found = match error.code().map(|code| code.code()) {
            Some("57014") => "a query that took longer than statement_timeout_seconds",
            Some("25006") => "a query that writes",
            _ => "a query that the database refuses",
        };
        Self::new(
            found,
            "a query that reads one row per patient",
            in_words(error),
        )
    }
}

impl From<ConnectError> for Stop {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Password(error) => Self::new(
                "no password for the database",
                "one, as site.toml names it",
                error.to_string(),
            ),
            ConnectError::Authority(error) => Self::new(
                "no authority to check the database's certificate against",
                "the PEM file that site.toml names",
                error.to_string(),
            ),
            ConnectError::Away(words) | ConnectError::Refused(words) => Self::new(
                "a database that cannot be reached or refuses the login",
                "a connection to it",
                words,
            ),
        }
    }
}

async fn read_query(source: &PostgresSource, intake: &mut Intake) -> Result<(), Stop> {
    let query = text(&source.query)?;
    let mut client = connect(source).await?;
    let transaction = client.build_transaction().read_only(true);
    let transaction = transaction
        .start()
        .await
        .map_err(|error| Stop::of_query(&error))?;
    let prepared = transaction.prepare(&query).await;
    let statement = prepared.map_err(|error| Stop::of_query(&error))?;
    let needed = intake.needed();
    let mut names = Vec::with_capacity(statement.columns().len());
    let mut kept = Vec::new();
    for (index, column) in statement.columns().iter().enumerate() {
        names.push(column.name().to_owned());
        if !needed.has(column.name()) {
            continue;
        }
        if is_readable(column.type_()) {
            kept.push(index);
        } else if needed.must_have(column.name(), intake) {
            let found = format!("a column of the type {}", column.type_());
            let wanted = "numbers, text, true or false, or dates";
            intake.refuse(column.name(), &found, wanted);
        }
    }
    let layout = intake.layout(&names);
    let none: [&str; 0] = [];
    let rows = transaction.query_raw(&statement, none).await;
    let mut rows = std::pin::pin!(rows.map_err(|error| Stop::of_query(&error))?);
    let mut number = 0_u64;
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| ended(&error, number))?;
        number += 1;
        let mut cells: Vec<Cell<'_>> = vec![Cell::Plain(Field::Null); names.len()];
        for index in &kept {
            cells[*index] = row.try_get(*index).map_err(|error| ended(&error, number))?;
        }
        intake.row(number, &layout, |position| cells[position].field());
        if intake.is_over() {
            break;
        }
    }
    Ok(())
}

/// The stream broke after `rows` rows.
fn ended(error: &Error, rows: u64) -> Stop {
    let stop = Stop::of_query(error);
    let found = match error.as_db_error() {
        Some(database) if !database.code().code().starts_with("57P") => stop.found,
        _ => "a database that went away before the last row",
    };
    let detail = format!("after {rows} rows: {}", stop.detail);
    Stop {
        found,
        wanted: "all rows of the query",
        detail,
    }
}

async fn connect(source: &PostgresSource) -> Result<Client, Stop> {
    let mut config = source.server.config("kindred-site-agent")?;
    config.options(format!(
        "-c default_transaction_read_only=on -c statement_timeout={}",
        source.statement_timeout.as_millis()
    ));
    let (client, _line) = source.server.connect(config).await?;
    Ok(client)
}

/// The text of the query, with the parameters of its file in their places.
fn text(query: &Query) -> Result<String, Stop> {
    match query {
        Query::Text(text) => Ok(text.clone()),
        Query::File { path, parameters } => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let detail = format!("{}: {error}", path.display());
                Stop::new("no query file", "the file that site.toml names", detail)
            })?;
            fill(&text, parameters)
        }
    }
}

/// Replaces every `{{name}}`. Values are restricted to what cannot leave a quoted literal.
fn fill(text: &str, parameters: &BTreeMap<String, String>) -> Result<String, Stop> {
    let stop = |found, detail: &str| {
        Err(Stop::new(
            found,
            "the parameters of the query file",
            detail.to_owned(),
        ))
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:, ".contains(c);
    let mut filled = text.to_owned();
    for (name, value) in parameters {
        let place = format!("{{{{{name}}}}}");
        if !filled.contains(&place) {
            return stop("a parameter that the query file does not have", name);
        }
        if !value.chars().all(allowed) || value.contains("--") {
            return stop("a parameter with a character that is not allowed", name);
        }
        filled = filled.replace(&place, value);
    }
    if let Some((_, rest)) = filled.split_once("{{") {
        let name = rest.split("}}").next().unwrap_or_default();
        return stop("no value of a parameter of the query file", name);
    }
    Ok(filled)
}

fn is_readable(kind: &Type) -> bool {
    match kind.kind() {
        Kind::Domain(inner) => is_readable(inner),
        Kind::Enum(_) => true,
        Kind::Simple => matches!(
            *kind,
            Type::BOOL
                | Type::INT2
                | Type::INT4
                | Type::INT8
                | Type::FLOAT4
                | Type::FLOAT8
                | Type::NUMERIC
                | Type::TEXT
                | Type::VARCHAR
                | Type::BPCHAR
                | Type::NAME
                | Type::UNKNOWN
                | Type::DATE
                | Type::TIMESTAMP
                | Type::TIMESTAMPTZ
                | Type::UUID
        ),
        _ => false,
    }
}

/// One value of a row.
#[derive(Clone, Copy)]
enum Cell<'a> {
    Plain(Field<'a>),
    Uuid([u8; 32]),
}

impl Cell<'_> {
    fn field(&self) -> Field<'_> {
        match self {
            Self::Plain(field) => *field,
            Self::Uuid(text) => Field::Text(text),
        }
    }
}

type Decoded<'a> = Result<Cell<'a>, Box<dyn StdError + Sync + Send>>;

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Decoded<'a> {
        if let Kind::Domain(inner) = kind.kind() {
            return Self::from_sql(inner, raw);
        }
        let field = match *kind {
            Type::BOOL => Field::Boolean(bool::from_sql(kind, raw)?),
            Type::INT2 => Field::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Field::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Field::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT8 => Field::Number(f64::from_sql(kind, raw)?),
            // Through its shortest text: 0.1 of 32 bits is meant as 0.1.
            Type::FLOAT4 => Field::Number(f32::from_sql(kind, raw)?.to_string().parse()?),
            Type::NUMERIC => Field::Number(numeric(raw).ok_or("an invalid numeric")?),
            Type::DATE => day(i64::from(i32::from_be_bytes(raw.try_into()?))),
            Type::TIMESTAMP | Type::TIMESTAMPTZ => {
                day(i64::from_be_bytes(raw.try_into()?).div_euclid(MICROSECONDS_OF_DAY))
            }
            Type::UUID => return uuid(raw),
            _ => Field::Text(raw),
        };
        Ok(Cell::Plain(field))
    }

    fn from_sql_null(_: &Type) -> Decoded<'a> {
        Ok(Cell::Plain(Field::Null))
    }

    fn accepts(kind: &Type) -> bool {
        is_readable(kind)
    }
}

/// A day counted from 2000-01-01; infinity and what the calendar does not hold are missing.
fn day(days: i64) -> Field<'static> {
    i32::try_from(days)
        .ok()
        .and_then(|days| days.checked_add(JULIAN_2000))
        .and_then(|day| Date::from_julian_day(day).ok())
        .map_or(Field::Null, Field::Date)
}

fn uuid(raw: &[u8]) -> Decoded<'static> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let raw: [u8; 16] = raw.try_into()?;
    let mut text = [0; 32];
    for (pair, byte) in text.chunks_exact_mut(2).zip(raw) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    Ok(Cell::Uuid(text))
}

/// The nearest double to a `numeric`: four 16-bit words (digits, weight, sign, scale), then digits
/// of base 10,000, as the PostgreSQL source `numeric_send` writes them. NaN and infinities are NaN.
fn numeric(raw: &[u8]) -> Option<f64> {
    const NEGATIVE: u16 = 0x4000;
    const SPECIAL: u16 = 0xc000;
    let words: Vec<u16> = raw
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let [count, weight, sign, _, digits @ ..] = words.as_slice() else {
        return None;
    };
    if sign & SPECIAL == SPECIAL {
        return Some(f64::NAN);
    }
    if digits.len() != usize::from(*count) {
        return None;
    }
    let mut text = String::from(if *sign == NEGATIVE { "-0" } else { "0" });
    for digit in digits {
        text += &format!("{digit:04}");
    }
    #[allow(clippy::cast_possible_wrap)] // the weight is signed
    let weight = i32::from(*weight as i16);
    let exponent = 4 * (weight + 1 - i32::from(*count));
    text += &format!("e{exponent}");
    number_of_text(text.as_bytes(), DecimalMark::Point).ok()
}
