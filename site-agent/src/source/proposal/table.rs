//! A table as text, before anybody has said how it is written.

use crate::config::{CsvSource, DateFormat, DecimalMark, ParquetSource, SourceConfig, SourceKind};
use crate::source::field::{date_of_text, number_of_text};
use crate::source::parquet::{TextColumn, texts};
use csv::ReaderBuilder;
use flate2::read::MultiGzDecoder;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes that are looked at.
const BYTES_MAX: u64 = 64 << 20;
/// Rows that are looked at.
const ROWS_MAX: usize = 20_000;
/// Rows by which delimiters are compared.
const ROWS_COMPARED: usize = 200;
const DELIMITERS: [u8; 4] = *b",;\t|";
/// What hospitals write where there is no value.
const MISSING: [&str; 14] = [
    "NA", "N/A", "n/a", "na", "NULL", "null", "NaN", "nan", "?", ".", "missing", "unknown", "UNK",
    "None",
];
const DATE_FORMATS: [&str; 5] = [
    "YYYY-MM-DD",
    "DD.MM.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "YYYY/MM/DD",
];

/// A table that cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no table of text.
    #[error("{}, {place}: found {found}, wanted {wanted}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The line.
        place: String,
        /// What is there.
        found: &'static str,
        /// What would do.
        wanted: &'static str,
    },
    /// Its header or its rows cannot be meant.
    #[error("{}:\n{}", path.display(), problems.join("\n"))]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: Vec<String>,
    },
}

/// The first rows of a table.
pub(super) struct Table {
    /// What stands between two fields; nothing in a Parquet file.
    pub(super) delimiter: Option<u8>,
    pub(super) names: Vec<String>,
    /// Columns of a type that is not read, with its name.
    pub(super) unread: Vec<(String, &'static str)>,
    /// By column, in the order of names.
    columns: Vec<Vec<String>>,
    pub(super) rows: usize,
    /// Rows that do not have a field for each name.
    pub(super) ragged: usize,
    /// The line of the first of them.
    pub(super) ragged_line: Option<u64>,
}

impl Table {
    pub(super) fn read(path: &Path) -> Result<Self, TableError> {
        let failed = |source| TableError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        if let SourceKind::Parquet(_) = SourceConfig::of_file(path, None).kind {
            return texts(file, ROWS_MAX)
                .map(Self::of_columns)
                .ok_or_else(|| TableError::Form {
                    path: path.to_owned(),
                    place: "its end".to_owned(),
                    found: "no Parquet file, or a damaged one",
                    wanted: "a whole Parquet file",
                });
        }
        let is_packed = path.extension().is_some_and(|end| end == "gz");
        let plain: Box<dyn Read> = match is_packed {
            true => Box::new(MultiGzDecoder::new(file)),
            false => Box::new(file),
        };
        let mut bytes = Vec::new();
        plain
            .take(BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        let form = |place: String, found, wanted| TableError::Form {
            path: path.to_owned(),
            place,
            found,
            wanted,
        };
        if bytes.starts_with(b"PAR1") {
            let wanted = "CSV, or a name that ends in .parquet";
            return Err(form("line 1".to_owned(), "a Parquet file", wanted));
        }
        let mut end = bytes.len();
        if bytes.len() as u64 == BYTES_MAX {
            end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(end);
        }
        let text = std::str::from_utf8(&bytes[..end]).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let wanted = "UTF-8: iconv -f latin1 -t utf-8, or whatever the file is in";
            form(format!("line {line}"), "text that is not UTF-8", wanted)
        })?;
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            let wanted = "a header and a row for each patient";
            return Err(form("line 1".to_owned(), "an empty file", wanted));
        }
        let best = DELIMITERS.map(|one| (one, regular(text, one)));
        let (delimiter, columns) =
            best.into_iter().fold(
                (b',', 0),
                |best, one| {
                    if one.1 > best.1 { one } else { best }
                },
            );
        if columns < 2 {
            let wanted = "a header and rows, between commas, semicolons, tabs or bars";
            return Err(form("line 1".to_owned(), "no table of two columns", wanted));
        }
        Ok(Self::parse(text, delimiter))
    }

    fn parse(text: &str, delimiter: u8) -> Self {
        let mut reader = reader(text, delimiter);
        let mut records = reader.records().map_while(Result::ok);
        let names: Vec<String> = records.next().map_or_else(Vec::new, |names| {
            names.iter().map(|name| name.trim().to_owned()).collect()
        });
        let mut table = Self {
            delimiter: Some(delimiter),
            columns: vec![Vec::new(); names.len()],
            names,
            unread: Vec::new(),
            rows: 0,
            ragged: 0,
            ragged_line: None,
        };
        for record in records.take(ROWS_MAX) {
            if record.len() != table.names.len() {
                table.ragged += 1;
                let line = record.position().map(csv::Position::line);
                table.ragged_line = table.ragged_line.or(line);
                continue;
            }
            table.rows += 1;
            for (column, value) in table.columns.iter_mut().zip(record.iter()) {
                column.push(value.trim().to_owned());
            }
        }
        table
    }

    fn of_columns(all: Vec<TextColumn>) -> Self {
        let (mut names, mut columns, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        for TextColumn { name, values } in all {
            match values {
                Ok(values) => {
                    names.push(name);
                    columns.push(values);
                }
                Err(kind) => unread.push((name, kind)),
            }
        }
        Self {
            delimiter: None,
            names,
            unread,
            rows: columns.first().map_or(0, Vec::len),
            columns,
            ragged: 0,
            ragged_line: None,
        }
    }

    /// Where its rows are from now on.
    pub(super) fn kind(&self, path: &Path) -> SourceKind {
        let path = path.to_owned();
        match self.delimiter {
            Some(delimiter) => SourceKind::Csv(CsvSource { path, delimiter }),
            None => SourceKind::Parquet(ParquetSource { path }),
        }
    }

    /// The columns with their names, in the order of the file.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&str, &[String])> {
        let names = self.names.iter().map(String::as_str);
        names.zip(self.columns.iter().map(Vec::as_slice))
    }

    /// The values of a column.
    pub(super) fn column(&self, name: &str) -> &[String] {
        let place = self.names.iter().position(|one| one == name);
        place.map_or(&[], |place| &self.columns[place])
    }

    /// What stands before decimals, and how many values say so.
    pub(super) fn decimal(&self) -> (DecimalMark, usize) {
        let count = |mark: char| {
            let all = self.columns.iter().flatten();
            let is_decimal = |value: &&String| {
                let digits =
                    |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
                let value = value.trim_start_matches(['-', '+']);
                value
                    .split_once(mark)
                    .is_some_and(|(whole, rest)| digits(whole) && digits(rest))
            };
            all.filter(is_decimal).count()
        };
        let (commas, points) = (count(','), count('.'));
        match commas > points && self.delimiter != Some(b',') {
            true => (DecimalMark::Comma, commas),
            false => (DecimalMark::Point, points),
        }
    }

    /// Codes that mean missing, with how many values have each.
    pub(super) fn missing(&self) -> BTreeMap<&'static str, usize> {
        let mut found = BTreeMap::new();
        for value in self.columns.iter().flatten() {
            if let Some(code) = MISSING.iter().find(|code| *code == value) {
                *found.entry(*code).or_default() += 1;
            }
        }
        found
    }

    /// The column that names patients: its values are all there and all different.
    pub(super) fn patient(&self) -> Option<&str> {
        let mut names = self.names.iter().zip(&self.columns);
        let found = names.find(|(name, values)| {
            let different: HashSet<&String> = values.iter().collect();
            names_patients(name)
                && different.len() == values.len()
                && !values.iter().any(String::is_empty)
        });
        found.map(|(name, _)| name.as_str())
    }
}

/// Whether a column of this name could say who a patient is.
pub(super) fn names_patients(name: &str) -> bool {
    const WORDS: [&str; 6] = ["patient", "subject", "person", "pseudonym", "record", "mrn"];
    let lower = name.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word)) || is_identifier(name)
}

/// Whether a column of this name is an identifier, whatever its values are.
pub(super) fn is_identifier(name: &str) -> bool {
    let name = name.to_lowercase();
    name == "id" || name.ends_with("_id")
}

/// The share of values, of those that are there, for which `fits` holds; none where there is none.
pub(super) fn share(
    values: &[String],
    is_missing: impl Fn(&str) -> bool,
    fits: impl Fn(&str) -> bool,
) -> Option<f64> {
    let there: Vec<&String> = values.iter().filter(|one| !is_missing(one)).collect();
    let fitting = there.iter().filter(|one| fits(one)).count();
    #[allow(clippy::cast_precision_loss)] // of 20,000 rows
    (!there.is_empty()).then(|| fitting as f64 / there.len() as f64)
}

/// A value as a number.
pub(super) fn number(value: &str, decimal: DecimalMark) -> Option<f64> {
    number_of_text(value.as_bytes(), decimal).ok()
}

/// The formats by which most values are dates, with that share: several where they fit equally well.
pub(super) fn date_formats(
    values: &[String],
    is_missing: impl Fn(&str) -> bool,
) -> (Vec<DateFormat>, f64) {
    let mut best = (Vec::new(), 0.0);
    for format in DATE_FORMATS {
        let is_date = |value: &str| date_of_text(value.as_bytes(), format).is_some();
        let fit = share(values, &is_missing, is_date).unwrap_or_default();
        if fit > best.1 {
            best = (Vec::new(), fit);
        }
        if fit > 0.0 && fit >= best.1 {
            best.0.extend(DateFormat::new(format));
        }
    }
    best
}

fn reader(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(false)
        .from_reader(text.as_bytes())
}

/// The columns of a header, where nearly all rows have as many; 0 where they do not.
fn regular(text: &str, delimiter: u8) -> usize {
    let mut reader = reader(text, delimiter);
    let lengths: Vec<usize> = reader
        .records()
        .map_while(Result::ok)
        .take(ROWS_COMPARED)
        .map(|record| record.len())
        .collect();
    let [header, rows @ ..] = lengths.as_slice() else {
        return 0;
    };
    let same = rows.iter().filter(|length| *length == header).count();
    match same * 10 >= rows.len() * 9 {
        true => *header,
        false => 0,
    }
}
