//! A CSV file, plain or compressed, read as a stream.

use super::field::Field;
use super::intake::{Intake, Single};
use super::layout::Layout;
use super::misfit::Cause;
use super::problem::CohortProblem;
use crate::config::CsvSource;
use csv::{ByteRecord, Reader, ReaderBuilder};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one record: 100,000 columns of 160 characters. A file that is no CSV, or a quote that
/// is never closed, ends here and not when the memory does.
const RECORD_LENGTH_MAX: u64 = 16 << 20;
/// Bytes read from the file at once.
const BUFFER_LENGTH: usize = 256 << 10;
/// Bytes of a file, or of what a compressed one holds: 100 million rows of 2,000 characters.
const CONTENT_LENGTH_MAX: u64 = 200 << 30;
/// Bytes that a compressed file may hold for each of its own: tables come to 3 to 50.
const EXPANSION_MAX: u64 = 200;
/// Bytes that any compressed file may hold, however few its own.
const EXPANDED_LENGTH_FREE: u64 = 64 << 20;
/// Records that are read while the columns of those before are worked on.
const RECORDS_AT_ONCE: usize = 4_096;
/// Bytes of them, but for the last: with their places they fit into a core's own memory, for columns are taken from them one by one.
const BYTES_AT_ONCE: usize = 1 << 18;
/// Columns of a file.
const COLUMNS_MAX: usize = 1 << 20;

/// Reads all of `source` into `intake`.
pub(super) fn read(source: &CsvSource, intake: &mut Intake) {
    if let Err(problem) = read_file(source, intake) {
        let problem = problem.into_problem(intake.source());
        intake.problem(problem);
    }
}

/// Why reading ended before the file did.
enum Stop {
    Io(io::Error),
    Unreadable {
        line: u64,
        found: &'static str,
        wanted: String,
    },
    Header {
        found: &'static str,
        wanted: String,
    },
}

fn read_file(source: &CsvSource, intake: &mut Intake) -> Result<(), Stop> {
    let file = File::open(&source.path).map_err(Stop::Io)?;
    let length = file.metadata().map_err(Stop::Io)?.len();
    let counted = Counted {
        inner: file,
        count: Arc::default(),
        limit: Limit::Content(CONTENT_LENGTH_MAX),
    };
    let compressed = source.path.extension().is_some_and(|end| end == "gz");
    let plain: Box<dyn Read + Send> = if compressed {
        let packed = io::BufReader::with_capacity(BUFFER_LENGTH, counted);
        Box::new(Counted {
            inner: MultiGzDecoder::new(packed),
            count: Arc::default(),
            limit: Limit::Content(expanded_length_max(length)),
        })
    } else {
        Box::new(counted)
    };
    let since_record = Arc::new(AtomicU64::new(0));
    let bounded = Counted {
        inner: plain,
        count: Arc::clone(&since_record),
        limit: Limit::Record,
    };
    let mut reader = ReaderBuilder::new()
        .delimiter(source.delimiter)
        .flexible(true)
        .has_headers(false)
        .buffer_capacity(BUFFER_LENGTH)
        .from_reader(bounded);
    let names = header(&mut reader, source.delimiter)?;
    let layout = intake.layout(&names);
    let mut records = Records {
        reader,
        since_record,
        fields: names.len(),
    };
    let (mut block, mut next) = (Block::default(), Block::default());
    records.fill(&mut block);
    loop {
        if block.end.is_some() {
            block.feed(intake, &layout);
        } else {
            rayon::join(|| records.fill(&mut next), || block.feed(intake, &layout));
        }
        match block.end.take() {
            Some(end) => return end,
            None if intake.is_over() => return Ok(()),
            None => std::mem::swap(&mut block, &mut next),
        }
    }
}

/// The records of a file.
struct Records<R> {
    reader: Reader<R>,
    /// Bytes since the last one.
    since_record: Arc<AtomicU64>,
    /// Fields that each has.
    fields: usize,
}

/// Some records of a file.
#[derive(Default)]
struct Block {
    /// Those at the front have as many fields as the header; what is behind them is left from another block.
    records: Vec<ByteRecord>,
    /// Their lines.
    lines: Vec<u64>,
    /// Lines and fields of the other records.
    ragged: Vec<(u64, usize)>,
    /// How the file ended, where it has.
    end: Option<Result<(), Stop>>,
}

impl<R: Read> Records<R> {
    fn fill(&mut self, block: &mut Block) {
        block.clear();
        let mut bytes = 0;
        while bytes < BYTES_AT_ONCE && block.lines.len() < RECORDS_AT_ONCE {
            if block.records.len() == block.lines.len() {
                block.records.push(ByteRecord::new());
            }
            let record = &mut block.records[block.lines.len()];
            self.since_record.store(0, Ordering::Relaxed);
            let line = self.reader.position().line();
            match self.reader.read_byte_record(record) {
                Ok(true) => {}
                Ok(false) => {
                    block.end = Some(Ok(()));
                    return;
                }
                Err(error) => {
                    block.end = Some(Err(unreadable(error, line)));
                    return;
                }
            }
            let line = record.position().map_or(line, csv::Position::line);
            bytes += record.as_slice().len();
            match record.len() == self.fields {
                true => block.lines.push(line),
                false => block.ragged.push((line, record.len())),
            }
            if block.ragged.len() > RECORDS_AT_ONCE {
                return;
            }
        }
    }
}

impl Block {
    /// Forgets all of it, and keeps the memory of its records, but for that of long ones.
    fn clear(&mut self) {
        self.lines.clear();
        self.ragged.clear();
        let long = |record: &&mut ByteRecord| record.as_slice().len() > BYTES_AT_ONCE;
        let long = self.records.iter_mut().filter(long);
        long.for_each(|record| *record = ByteRecord::new());
    }

    fn feed(&self, intake: &mut Intake, layout: &Layout) {
        let field = |position: usize, row: usize| Field::Text(&self.records[row][position]);
        intake.batch(&self.lines, layout, &Single(field));
        for (line, fields) in &self.ragged {
            if !intake.is_over() {
                intake.ragged(*line, *fields);
            }
        }
    }
}

/// How much a compressed file of `length` bytes may hold.
fn expanded_length_max(length: u64) -> u64 {
    length
        .saturating_mul(EXPANSION_MAX)
        .clamp(EXPANDED_LENGTH_FREE, CONTENT_LENGTH_MAX)
}

/// The names of the columns.
fn header<R: Read>(reader: &mut Reader<R>, delimiter: u8) -> Result<Vec<String>, Stop> {
    let record = &mut ByteRecord::new();
    let stop = |found, wanted: &str| Stop::Header {
        found,
        wanted: wanted.to_owned(),
    };
    let wanted = "a header row and a row for each patient";
    match reader.read_byte_record(record) {
        Ok(true) => {}
        Ok(false) => return Err(stop("an empty file", wanted)),
        Err(error) => return Err(unreadable(error, 1)),
    }
    if record.len() > COLUMNS_MAX {
        let wanted = format!("at most {COLUMNS_MAX}");
        return Err(stop("more columns than are read", &wanted));
    }
    let start = record.get(0).unwrap_or_default();
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(stop("text in UTF-16", "text in UTF-8"));
    }
    let office: [&[u8]; 2] = [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"];
    if office.iter().any(|mark| start.starts_with(mark)) {
        let wanted = "text: save the sheet as CSV in UTF-8";
        return Err(stop("an Excel or ZIP file", wanted));
    }
    if start.starts_with(b"PAR1") {
        return Err(stop("a Parquet file", "kind = \"parquet\" for it, or text"));
    }
    if start.starts_with(b"\x1f\x8b") {
        return Err(stop("a compressed file", "a name that ends in .gz for it"));
    }
    let names: Result<Vec<String>, _> = record
        .iter()
        .map(|name| std::str::from_utf8(name.trim_ascii()).map(str::to_owned))
        .collect();
    let Ok(names) = names else {
        return Err(stop("a header that is not UTF-8", "text in UTF-8"));
    };
    if let [only] = names.as_slice() {
        let others = [
            (',', "\",\""),
            (';', "\";\""),
            ('\t', "a tab"),
            ('|', "\"|\""),
        ];
        let other = others.iter().find(|(other, _)| only.contains(*other));
        if let Some((other, shown)) = other {
            return Err(Stop::Header {
                found: "a header of one column",
                wanted: format!(
                    "columns between {:?}; it holds {shown}, so set delimiter = {other:?} in \
                     site.toml",
                    char::from(delimiter)
                )
                .replace('\'', "\""),
            });
        }
    }
    Ok(names)
}

fn unreadable(error: csv::Error, line: u64) -> Stop {
    match error.into_kind() {
        csv::ErrorKind::Io(error) if let Some(limit) = limit_of(&error) => {
            let (found, wanted) = match limit {
                Limit::Record => (
                    "a record without end, or a quote that is never closed",
                    format!("at most {} MiB a record", RECORD_LENGTH_MAX >> 20),
                ),
                Limit::Content(most) => (
                    "a file that holds more than is read",
                    format!(
                        "at most {} MiB, and {EXPANSION_MAX} bytes for each of a compressed file",
                        most >> 20
                    ),
                ),
            };
            Stop::Unreadable {
                line,
                found,
                wanted,
            }
        }
        csv::ErrorKind::Io(error) if is_corrupt(&error) => Stop::Unreadable {
            line,
            found: "compressed data that is damaged or cut off",
            wanted: "a whole file".to_owned(),
        },
        csv::ErrorKind::Io(error) => Stop::Io(error),
        _ => Stop::Unreadable {
            line,
            found: "a record that cannot be read",
            wanted: "a CSV record".to_owned(),
        },
    }
}

fn is_corrupt(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

impl Stop {
    fn into_problem(self, source: &str) -> CohortProblem {
        match self {
            Self::Io(error) => unopened(source, &error),
            Self::Unreadable {
                line,
                found,
                wanted,
            } => CohortProblem::of_source(source, Cause::Source, found, &wanted)
                .with_detail(&format!("at line {line}")),
            Self::Header { found, wanted } => {
                CohortProblem::of_source(source, Cause::Source, found, &wanted)
            }
        }
    }
}

/// A file that cannot be read.
pub(super) fn unopened(source: &str, error: &io::Error) -> CohortProblem {
    let found = match error.kind() {
        io::ErrorKind::NotFound => "no such file",
        io::ErrorKind::PermissionDenied => "a file that this program may not read",
        _ => "a file that cannot be read",
    };
    CohortProblem::of_source(source, Cause::Source, found, "the site's patients")
        .with_detail(&error.to_string())
}

/// Counts what is read through it, and ends where that becomes too much.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
    limit: Limit,
}

/// What there may not be more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Bytes of one record.
    Record,
    /// Bytes of all.
    Content(u64),
}

/// More was read than there may be.
#[derive(Debug, thiserror::Error)]
#[error("more bytes than {0:?} may have")]
struct TooLong(Limit);

fn limit_of(error: &io::Error) -> Option<Limit> {
    let inner = error.get_ref()?.downcast_ref::<TooLong>()?;
    Some(inner.0)
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = match self.limit {
            Limit::Record => RECORD_LENGTH_MAX,
            Limit::Content(most) => most,
        };
        if self.count.load(Ordering::Relaxed) > most {
            return Err(io::Error::other(TooLong(self.limit)));
        }
        let length = self.inner.read(buffer)?;
        self.count.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
