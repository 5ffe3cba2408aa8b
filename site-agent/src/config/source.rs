//! `[source]`: where the patients are.

use super::columns::{self, ColumnMapping};
use super::path;
use protocol::document::Section;
use service::postgres::{self, Server};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the patients are and how their columns read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceConfig {
    /// The file or database.
    pub kind: SourceKind,
    /// Column of the patient's identifier, which stays at the site; none means the row's number.
    pub patient: Option<String>,
    /// How numbers are written, where they are text.
    pub decimal: DecimalMark,
    /// How dates are written, where they are text.
    pub date_format: DateFormat,
    /// Values that mean missing in every column, beside the empty field.
    pub missing: Vec<String>,
    /// By the job's name of the column.
    pub columns: BTreeMap<String, ColumnMapping>,
    /// A file of pairs of patients that physicians have judged.
    pub pairs: Option<PathBuf>,
}

/// The file or database.
#[derive(Debug, Clone)]
pub enum SourceKind {
    /// A CSV file with a header row.
    Csv(CsvSource),
    /// A Parquet file.
    Parquet(ParquetSource),
    /// A query to a PostgreSQL database.
    Postgres(PostgresSource),
}

/// A CSV file; compressed where its name ends in `.gz`.
#[derive(Debug, Clone)]
pub struct CsvSource {
    /// The file.
    pub path: PathBuf,
    /// What stands between two fields: one ASCII character.
    pub delimiter: u8,
}

/// A Parquet file.
#[derive(Debug, Clone)]
pub struct ParquetSource {
    /// The file.
    pub path: PathBuf,
}

/// A query to a PostgreSQL database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresSource {
    /// The database.
    pub server: Server,
    /// The query.
    pub query: Query,
    /// The database ends a statement that takes longer.
    pub statement_timeout: Duration,
}

/// The text of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// In `site.toml` itself.
    Text(String),
    /// In a file whose `{{name}}` are replaced by the named parameters.
    File {
        /// The file.
        path: PathBuf,
        /// Values of the file's parameters.
        parameters: BTreeMap<String, String>,
    },
}

/// What stands before the decimals of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalMark {
    /// `3.5`
    Point,
    /// `3,5`
    Comma,
}

/// How a date is written: `YYYY`, `MM` and `DD` once each, with any characters between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat(String);

impl DateFormat {
    /// Parses a format such as `YYYY-MM-DD` or `DD.MM.YYYY`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let once = |part| text.matches(part).count() == 1;
        let letters = text.chars().filter(char::is_ascii_alphanumeric).count();
        let fits = once("YYYY") && once("MM") && once("DD") && letters == 8 && text.is_ascii();
        fits.then(|| Self(text.to_owned()))
    }

    /// The format as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for DateFormat {
    fn default() -> Self {
        Self("YYYY-MM-DD".to_owned())
    }
}

impl SourceConfig {
    /// A file whose columns are named and coded as the job has them: Parquet by its ending, else CSV.
    #[must_use]
    pub fn of_file(path: &Path, patient: Option<String>) -> Self {
        let path = path.to_owned();
        let kind = if path.extension().is_some_and(|ending| ending == "parquet") {
            SourceKind::Parquet(ParquetSource { path })
        } else {
            SourceKind::Csv(CsvSource {
                path,
                delimiter: b',',
            })
        };
        Self {
            kind,
            patient,
            decimal: DecimalMark::Point,
            date_format: DateFormat::default(),
            missing: Vec::new(),
            columns: BTreeMap::new(),
            pairs: None,
        }
    }
}

impl SourceConfig {
    /// The same column names and codes of another file, CSV or Parquet by its name.
    pub(crate) fn with_file(&self, path: &Path) -> Self {
        let mut kind = Self::of_file(path, None).kind;
        if let (SourceKind::Csv(new), SourceKind::Csv(own)) = (&mut kind, &self.kind) {
            new.delimiter = own.delimiter;
        }
        Self {
            kind,
            ..self.clone()
        }
    }
}

/// Reads the tables `source` and `columns`.
pub(super) fn read(root: &mut Section<'_, '_>, folder: &Path) -> Option<SourceConfig> {
    let columns = columns::read(root);
    let pairs = root.table("pairs", |section| path(section, "file", folder));
    let source = root.required_table("source", |section| {
        let kind = kind(section, folder);
        let marks = [(".", DecimalMark::Point), (",", DecimalMark::Comma)];
        let patient = section.optional("patient");
        let decimal = section.choice("decimal", &marks);
        let date_format = date_format(section);
        let missing = section.or("missing", Vec::new());
        Some(SourceConfig {
            kind: kind?,
            patient,
            decimal: decimal.unwrap_or(DecimalMark::Point),
            date_format: date_format.unwrap_or_default(),
            missing,
            columns,
            pairs,
        })
    })?;
    if let SourceKind::Csv(csv) = &source.kind
        && csv.delimiter == b','
        && source.decimal == DecimalMark::Comma
    {
        // Quoted fields would make it readable, but nobody writes such files on purpose.
        root.problem(
            "source",
            "a comma both between fields and before decimals",
            "delimiter = \";\" or decimal = \".\"",
        );
    }
    Some(source)
}

/// Keys that some kinds of source have, beside those of a database.
const KEYS_OF_KINDS: [&str; 6] = [
    "path",
    "delimiter",
    "statement_timeout_seconds",
    "query",
    "query_file",
    "parameters",
];

fn kind(section: &mut Section<'_, '_>, folder: &Path) -> Option<SourceKind> {
    #[derive(Clone)]
    enum Kind {
        Csv,
        Parquet,
        Postgres,
    }
    let kinds = [
        ("csv", Kind::Csv),
        ("parquet", Kind::Parquet),
        ("postgres", Kind::Postgres),
    ];
    if !section.has("kind") {
        section.required::<String>("kind");
    }
    let Some(kind) = section.choice("kind", &kinds) else {
        section.pass_over(&KEYS_OF_KINDS);
        section.pass_over(&postgres::KEYS);
        return None;
    };
    match kind {
        Kind::Csv => {
            let path = path(section, "path", folder);
            let delimiter = delimiter(section);
            Some(SourceKind::Csv(CsvSource {
                path: path?,
                delimiter,
            }))
        }
        Kind::Parquet => {
            let path = path(section, "path", folder)?;
            Some(SourceKind::Parquet(ParquetSource { path }))
        }
        Kind::Postgres => postgres(section, folder).map(SourceKind::Postgres),
    }
}

fn delimiter(section: &mut Section<'_, '_>) -> u8 {
    let text: String = section.or("delimiter", ",".to_owned());
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte) => {
            *byte
        }
        _ => {
            let wanted = "one character such as \",\", \";\", \"|\" or \"\\t\"";
            section.problem("delimiter", &format!("{text:?}"), wanted);
            b','
        }
    }
}

fn postgres(section: &mut Section<'_, '_>, folder: &Path) -> Option<PostgresSource> {
    const HOUR: u64 = 3_600;
    let server = Server::read(section, folder);
    let query = query(section, folder);
    let timeout = section.count("statement_timeout_seconds", HOUR, 1..=24 * HOUR);
    Some(PostgresSource {
        server: server?,
        query: query?,
        statement_timeout: Duration::from_secs(timeout),
    })
}

fn query(section: &mut Section<'_, '_>, folder: &Path) -> Option<Query> {
    let text: Option<String> = section.optional("query");
    let file: Option<String> = section.optional("query_file");
    let parameters = section.table("parameters", |table| {
        Some(table.entries::<String>().into_iter().collect())
    });
    match (text, file) {
        (Some(text), None) => {
            if parameters.is_some() {
                section.problem("parameters", "query as well", "query_file");
            }
            Some(Query::Text(text))
        }
        (None, Some(file)) => Some(Query::File {
            path: folder.join(file),
            parameters: parameters.unwrap_or_default(),
        }),
        (Some(_), Some(_)) => {
            section.problem("query_file", "query as well", "one of the two");
            None
        }
        (None, None) => {
            section.problem("query", "no key", "query or query_file");
            None
        }
    }
}

pub(super) fn date_format(section: &mut Section<'_, '_>) -> Option<DateFormat> {
    let text: String = section.optional("date_format")?;
    let format = DateFormat::new(&text);
    if format.is_none() {
        let wanted = "YYYY, MM and DD once each, such as \"DD.MM.YYYY\"";
        section.problem("date_format", &format!("{text:?}"), wanted);
    }
    format
}
