//! Patients of elsewhere: a table of theirs, as the job of a run reads it.

use protocol::cohort::{Feature, Value};
use std::fmt;
use std::path::Path;

/// Rows that a problem names.
const ROWS_NAMED_MAX: usize = 5;
/// What is wanted of a file.
const TABLE: &str = "comma-separated values below a header";

/// Patients who are asked about.
pub(super) struct Patients {
    /// By the column of identifiers, else numbered from 1.
    pub(super) names: Vec<String>,
    /// One list a patient, in the order of the job's features.
    pub(super) values: Vec<Vec<Value>>,
    /// Where each stands, counted with the header from 1.
    pub(super) lines: Vec<u64>,
}

/// Everything that does not fit in a table, none of it with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PatientsProblems(Vec<PatientsProblem>);

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatientsProblem {
    file: String,
    column: String,
    /// Lines of the file, counted with its header from 1.
    lines: Vec<u64>,
    found: String,
    wanted: String,
}

impl fmt::Display for PatientsProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        let named = self.lines.iter().take(ROWS_NAMED_MAX).map(u64::to_string);
        let named = named.collect::<Vec<_>>().join(", ");
        match self.lines.len() {
            0 => {}
            1 => write!(formatter, ", line {named}")?,
            count if count > ROWS_NAMED_MAX => {
                let more = count - ROWS_NAMED_MAX;
                write!(formatter, ", lines {named} and {more} more")?;
            }
            _ => write!(formatter, ", lines {named}")?,
        }
        if !self.column.is_empty() {
            write!(formatter, ", column {}", self.column)?;
        }
        write!(formatter, ": found {}, wanted {}", self.found, self.wanted)
    }
}

/// The problems of one file, those of one kind as one.
pub(super) struct Problems {
    file: String,
    all: Vec<PatientsProblem>,
}

impl Problems {
    pub(super) fn of(path: &Path) -> Self {
        Self {
            file: path.display().to_string(),
            all: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, column: &str, line: Option<u64>, found: &str, wanted: &str) {
        let is_same = |one: &&mut PatientsProblem| {
            one.column == column && one.found == found && one.wanted == wanted
        };
        match self.all.iter_mut().find(is_same) {
            Some(known) => known.lines.extend(line),
            None => self.all.push(PatientsProblem {
                file: self.file.clone(),
                column: column.to_owned(),
                lines: line.into_iter().collect(),
                found: found.to_owned(),
                wanted: wanted.to_owned(),
            }),
        }
    }

    pub(super) fn all(self) -> PatientsProblems {
        PatientsProblems(self.all)
    }
}

/// Reads a CSV file with a column for each of the features, and of the identifier where one is named.
///
/// # Errors
/// [`PatientsProblems`], all of them at once.
pub(super) fn read(
    path: &Path,
    features: &[Feature],
    id: Option<&str>,
    most: usize,
) -> Result<Patients, PatientsProblems> {
    let mut problems = Problems::of(path);
    let found = read_into(path, features, id, &mut problems);
    let patients = found.names.len();
    if problems.all.is_empty() && !(1..=most).contains(&patients) {
        let wanted = format!("1 to {most} patients, as many as one job can ask about");
        problems.add("", None, &format!("{patients} patients"), &wanted);
    }
    match problems.all.is_empty() {
        true => Ok(found),
        false => Err(problems.all()),
    }
}

fn read_into(
    path: &Path,
    features: &[Feature],
    id: Option<&str>,
    problems: &mut Problems,
) -> Patients {
    let mut found = Patients {
        names: Vec::new(),
        values: Vec::new(),
        lines: Vec::new(),
    };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            problems.add("", None, &error.to_string(), TABLE);
            return found;
        }
    };
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(&bytes[..]);
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => {
            problems.add("", None, &in_words(&error), TABLE);
            return found;
        }
    };
    let mut lines = Lines::of(&bytes);
    let header: Vec<&str> = header.iter().map(name_of).collect();
    if let Some(what) = no_table(&header) {
        problems.add("", None, what, TABLE);
        return found;
    }
    let mut place = |name: &str| {
        let found = place_of(&header, name);
        found
            .map_err(|found| problems.add(name, None, found, "one of this name"))
            .ok()
    };
    let places: Vec<Option<usize>> = features.iter().map(|one| place(&one.name)).collect();
    let id = id.and_then(&mut place);
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let at = error.position().map(|position| lines.line(position));
                problems.add("", at, &in_words(&error), "a row of the table");
                continue;
            }
        };
        let line = record.position().map_or(0, |position| lines.line(position));
        let at = Some(line);
        if record.len() != header.len() {
            let wanted = format!("{} fields, as in the header", header.len());
            problems.add("", at, &format!("{} fields", record.len()), &wanted);
            continue;
        }
        let fields = places.iter().map(|place| place.map(|place| &record[place]));
        found.values.push(values(features, fields, at, problems));
        let name = id.map(|place| record[place].trim().to_owned());
        let number = found.names.len() + 1;
        found.names.push(name.unwrap_or_else(|| number.to_string()));
        found.lines.push(line);
    }
    found
}

/// What the fields of a line say of each feature; a place is none where its column is not there.
fn values<'r>(
    features: &[Feature],
    fields: impl Iterator<Item = Option<&'r str>>,
    at: Option<u64>,
    problems: &mut Problems,
) -> Vec<Value> {
    let value = |(feature, field): (&Feature, Option<&str>)| {
        let field = field?;
        let read = feature.value(field);
        read.map_err(|wanted| problems.add(&feature.name, at, kind_of(field), &wanted))
            .ok()
    };
    features.iter().zip(fields).filter_map(value).collect()
}

/// Lines of a file, by rising places in it: a reader's own count skips empty ones.
struct Lines<'b> {
    bytes: &'b [u8],
    at: usize,
    line: u64,
}

impl<'b> Lines<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        let (at, line) = (0, 1);
        Self { bytes, at, line }
    }

    /// Of the record that begins here, or after the empty lines that do.
    fn line(&mut self, position: &csv::Position) -> u64 {
        let begin = usize::try_from(position.byte()).unwrap_or(usize::MAX);
        let is_left = |place: usize, byte: u8| place < begin || matches!(byte, b'\r' | b'\n');
        while let Some(byte) = self
            .bytes
            .get(self.at)
            .copied()
            .filter(|byte| is_left(self.at, *byte))
        {
            self.line += u64::from(byte == b'\n');
            self.at += 1;
        }
        self.line
    }
}

/// A column's name as it stands in a header, which may begin with the mark of its byte order.
fn name_of(field: &str) -> &str {
    field.trim_start_matches('\u{feff}').trim()
}

/// Where a column stands, or what is found in its stead.
fn place_of(header: &[&str], name: &str) -> Result<usize, &'static str> {
    let mut places = (0..header.len()).filter(|place| header[*place] == name);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(_), Some(_)) => Err("several such columns"),
        (None, _) => {
            let is_like = |column: &&str| column.to_lowercase() == name.to_lowercase();
            match header.iter().any(is_like) {
                true => Err("no such column, but one in other letters"),
                false => Err("no such column"),
            }
        }
    }
}

/// What a file holds that is no table.
fn no_table(header: &[&str]) -> Option<&'static str> {
    match header {
        [] => Some("an empty file"),
        [one] if one.contains([';', '\t']) => {
            Some("a header of one column, with \";\" or tabs in it")
        }
        _ => None,
    }
}

/// What a field is, without its text.
fn kind_of(field: &str) -> &'static str {
    match field.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => "another number",
        Ok(_) => "not a finite number",
        Err(_) => "text",
    }
}

/// What is wrong with a file, without anything that it holds.
fn in_words(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Io(error) => error.to_string(),
        csv::ErrorKind::Utf8 { .. } => "bytes that are not UTF-8".to_owned(),
        _ => "something else".to_owned(),
    }
}
