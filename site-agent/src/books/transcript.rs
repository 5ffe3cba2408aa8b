//! What the sites of a run said, as this site heard it: its own copy, from which the run can be worked out again by anybody.

use protocol::message::{Begin, Closed, ToSite};
use protocol::name::RunId;
use similarity::numeric::linear_algebra::{self, KERNELS};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::private;

/// Of whoever keeps a copy.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const FOLDER: &str = "transcripts";
/// Bytes of one frame at most; a longer one was never written.
const FRAME_BYTES_MAX: u64 = 8 << 20;

/// Whoever works an answer out: the last bits depend on all of it.
fn this_one() -> String {
    format!("{VERSION} with {}", linear_algebra::arithmetic())
}

/// Where the copy of a run is.
#[must_use]
pub fn path(folder: &Path, run: &RunId) -> PathBuf {
    folder.join(FOLDER).join(run.as_str())
}

/// Begins the copy of a run, in the place of any before: all that closed is heard again.
///
/// # Errors
/// What the file system says.
pub fn begin(folder: &Path, digest: &str, begin: &Begin) -> io::Result<()> {
    private::folder(&folder.join(FOLDER))?;
    let mut bytes = Vec::new();
    put(&mut bytes, format!("{digest} {}", this_one()).as_bytes());
    put_message(&mut bytes, ToSite::Begin(begin.clone()));
    let (path, beside) = (path(folder, &begin.run), folder.join(FOLDER).join("new"));
    private::write(&beside, &bytes)?;
    fs::rename(beside, path)
}

/// Takes away the oldest copies of other runs until all together are `bytes_max` at most, and says so in the log. A run that goes
/// on has its copy written again when it is heard of again.
///
/// # Errors
/// What the file system says.
pub fn make_room(folder: &Path, current: &RunId, bytes_max: u64) -> io::Result<()> {
    let mut copies = Vec::new();
    for entry in fs::read_dir(folder.join(FOLDER))? {
        let entry = entry?;
        let found = entry.metadata()?;
        copies.push((found.modified()?, entry.path(), found.len()));
    }
    copies.sort();
    let mut bytes: u64 = copies.iter().map(|(.., bytes)| bytes).sum();
    let own = path(folder, current);
    for (_, path, freed) in copies.into_iter().filter(|(_, path, _)| *path != own) {
        if bytes <= bytes_max {
            break;
        }
        fs::remove_file(&path)?;
        bytes -= freed;
        let run = path.file_name().unwrap_or_default().to_string_lossy();
        tracing::warn!(%run, freed, "the copy of an old run was taken away: all copies were more than transcripts_megabytes_max");
    }
    Ok(())
}

/// The runs of which there is a copy.
///
/// # Errors
/// What the file system says.
pub fn runs(folder: &Path) -> io::Result<Vec<RunId>> {
    let entries = match fs::read_dir(folder.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        // A copy that is being begun lies beside under a name that may be a run's.
        runs.extend(
            RunId::new(&name.to_string_lossy())
                .ok()
                .filter(|_| name != "new"),
        );
    }
    Ok(runs)
}

/// Adds an exchange that closed.
///
/// # Errors
/// What the file system says.
pub fn add(folder: &Path, closed: &Closed) -> io::Result<()> {
    let mut bytes = Vec::new();
    put_message(&mut bytes, ToSite::Closed(Arc::new(closed.clone())));
    let mut options = OpenOptions::new();
    private::open(&path(folder, &closed.run), options.append(true))?.write_all(&bytes)
}

/// A copy, read back: the run's digest, how it began, and what closed.
pub struct Transcript {
    /// The digest of the run.
    pub digest: String,
    /// What took part in the run, as `0.2.0 with OpenBLAS 0.3.21 Haswell`; none where it did not say.
    pub recorded_by: Option<String>,
    /// How it began.
    pub begin: Begin,
    /// What closed, in order.
    pub closed: Vec<Closed>,
}

impl Transcript {
    /// What is to be said of anything that differs, where another version or processor took part in the run than works it out again.
    #[must_use]
    pub fn of_another_version(&self) -> Option<String> {
        let (by, this) = (self.recorded_by.as_deref(), this_one());
        (by != Some(&this)).then(|| {
            let kernels = by.and_then(|by| by.split_once(" with ")?.1.rsplit(' ').next());
            let kernels = kernels.map_or(String::new(), |name| format!(", with {KERNELS}={name}"));
            let by = by.map_or("an earlier version".to_owned(), |by| format!("version {by}"));
            format!(
                "cannot be verified here: {by} took part in the run, this is version {this}, and their answers can differ in the last \
                 digits; audit it by the version that took part{kernels}"
            )
        })
    }
}

/// Reads the copy of a run.
///
/// # Errors
/// What the file system says, or that the file is none.
pub fn read(folder: &Path, run: &RunId) -> io::Result<Transcript> {
    let mut file = File::open(path(folder, run))?;
    let head = String::from_utf8(take(&mut file)?.unwrap_or_default()).map_err(io::Error::other)?;
    let (digest, recorded_by) = match head.split_once(' ') {
        Some((digest, version)) => (digest.to_owned(), Some(version.to_owned())),
        None => (head, None),
    };
    let Some(ToSite::Begin(begin)) = take_message(&mut file)? else {
        return Err(io::Error::other("it does not say how the run began"));
    };
    let mut closed = Vec::new();
    while let Some(message) = take_message(&mut file)? {
        match message {
            ToSite::Closed(one) => closed.push(Arc::unwrap_or_clone(one)),
            ToSite::Begin(_)
            | ToSite::Ask(_)
            | ToSite::End { .. }
            | ToSite::Proposed(_)
            | ToSite::ClosedStudies(_)
            | ToSite::Waiting(_) => {
                return Err(io::Error::other("it holds what no site keeps"));
            }
        }
    }
    Ok(Transcript {
        digest,
        recorded_by,
        begin,
        closed,
    })
}

/// Bytes behind their length.
fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u64).to_be_bytes());
    to.extend(bytes);
}

fn put_message(to: &mut Vec<u8>, message: ToSite) {
    let frames = wire::encode_to_site(message);
    to.extend((frames.len() as u64).to_be_bytes());
    frames.iter().for_each(|frame| put(to, frame));
}

/// A length; none at the end of the file.
fn length(file: &mut File) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u64::from_be_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn take(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let Some(length) = length(file)? else {
        return Ok(None);
    };
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other(
            "a part of it is longer than any that is written",
        ));
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(Some(bytes)),
        false => Err(io::Error::other("it ends in the middle")),
    }
}

fn take_message(file: &mut File) -> io::Result<Option<ToSite>> {
    let Some(count) = length(file)? else {
        return Ok(None);
    };
    let mut frames = Vec::new();
    for _ in 0..count {
        let frame = take(file)?.ok_or_else(|| io::Error::other("it ends in the middle"))?;
        frames.push(frame.into());
    }
    wire::decode_to_site(&frames)
        .map(Some)
        .map_err(io::Error::other)
}
