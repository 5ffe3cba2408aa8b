//! An audit log: who did what, in a chain that shows where it was touched. Nothing in it is of patients.

use crate::chain::{self, Chain, ChainError, Head, Link};
use protocol::time::Timestamp;
use report::{aligned, moment};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The log's name in a program's folder.
pub const FILE_NAME: &str = "audit.jsonl";

/// Who acts, as a program's log names them.
pub trait Who: Serialize + DeserializeOwned {
    /// What they are called in a listing.
    const HEADING: &'static str;
    /// The command whose first start begins the log.
    const BEGUN_BY: &'static str;

    /// Their name.
    fn name(&self) -> &str;
}

/// What is done; in a listing it is a few words.
pub trait Act: Serialize + DeserializeOwned + fmt::Display {}

/// One act, as a program notes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<W, A> {
    /// When, RFC 3339 by the program's clock.
    time: String,
    #[serde(flatten)]
    who: W,
    did: A,
    run: Option<String>,
    study: Option<String>,
}

impl<W, A> Entry<W, A> {
    /// An act of somebody.
    #[must_use]
    pub fn new(at: Timestamp, who: W, did: A) -> Self {
        Self {
            time: moment(at).unwrap_or_default(),
            who,
            did,
            run: None,
            study: None,
        }
    }

    /// The same, on a run.
    #[must_use]
    pub fn on_run(self, run: &str) -> Self {
        let run = Some(run.to_owned());
        Self { run, ..self }
    }

    /// The same, on a study.
    #[must_use]
    pub fn on_study(self, study: &str) -> Self {
        let study = Some(study.to_owned());
        Self { study, ..self }
    }
}

/// The log, open for writing; a simulation has none.
#[derive(Debug)]
pub struct Audit<W, A> {
    chain: Option<Arc<Mutex<Chain>>>,
    of: PhantomData<fn(&Entry<W, A>)>,
}

impl<W, A> Clone for Audit<W, A> {
    fn clone(&self) -> Self {
        let (chain, of) = (self.chain.clone(), self.of);
        Self { chain, of }
    }
}

impl<W: Who, A: Act> Audit<W, A> {
    /// Opens or creates the log in `folder`, and checks all of it.
    ///
    /// # Errors
    /// [`ChainError`] where it cannot be used, or an entry was touched.
    pub fn open(folder: &Path) -> Result<Self, ChainError> {
        let (chain, torn) = Chain::open(&folder.join(FILE_NAME), None, |_: Link<Entry<W, A>>| {})?;
        if let Some(torn) = torn {
            let bytes = torn.bytes;
            tracing::warn!(
                bytes,
                "the audit log ended in an incomplete line, which was taken off"
            );
        }
        Ok(Self {
            chain: Some(Arc::new(Mutex::new(chain))),
            of: PhantomData,
        })
    }

    /// None: of a federation on one machine, whose operator is whoever started it.
    #[must_use]
    pub fn none() -> Self {
        let (chain, of) = (None, PhantomData);
        Self { chain, of }
    }

    /// Notes an act; when this returns, it is on the disk.
    ///
    /// # Errors
    /// [`ChainError::File`]: whoever acted must not hear that it is done.
    pub fn note(&self, entry: &Entry<W, A>) -> Result<(), ChainError> {
        match &self.chain {
            Some(chain) => {
                let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
                chain.append(entry).map(drop)
            }
            None => Ok(()),
        }
    }
}

/// The entries of a log that was checked.
#[derive(Debug, Serialize)]
pub struct Listed<W, A> {
    entries: Vec<Numbered<W, A>>,
}

#[derive(Debug, Serialize)]
struct Numbered<W, A> {
    number: u64,
    #[serde(flatten)]
    entry: Entry<W, A>,
}

/// Checks the log in `folder`, also while it is written; gives all entries, or those of one run.
///
/// # Errors
/// [`ChainError`] names the first entry that is not what was written.
pub fn list<W: Who, A: Act>(folder: &Path, run: Option<&str>) -> Result<Listed<W, A>, ChainError> {
    let mut entries = Vec::new();
    read(folder, None, |link: Link<Entry<W, A>>| {
        let Link { number, entry, .. } = link;
        if run.is_none() || run == entry.run.as_deref() {
            entries.push(Numbered { number, entry });
        }
    })?;
    Ok(Listed { entries })
}

/// A log that was checked.
#[derive(Debug, Serialize)]
pub struct Verified {
    entries: u64,
    head: String,
}

/// Checks the log in `folder`, against a head that was kept elsewhere where there is one.
///
/// # Errors
/// As [`list`].
pub fn verify<W: Who, A: Act>(folder: &Path, kept: Option<&Head>) -> Result<Verified, ChainError> {
    let head = read(folder, kept, |_: Link<Entry<W, A>>| {})?;
    Ok(Verified {
        entries: head.entries,
        head: head.to_string(),
    })
}

fn read<W: Who, A: Act>(
    folder: &Path,
    kept: Option<&Head>,
    entry: impl FnMut(Link<Entry<W, A>>),
) -> Result<Head, ChainError> {
    let path = folder.join(FILE_NAME);
    match path.exists() {
        true => chain::read(&path, kept, entry),
        false => {
            let begun = W::BEGUN_BY;
            let text =
                format!("{begun} begins this log, so it was never started, or the file is gone");
            let source = io::Error::new(io::ErrorKind::NotFound, text);
            Err(chain::file_error(&path, "opened", source))
        }
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, head } = self;
        write!(
            formatter,
            "{entries} entries, all as they were written; the head is {head}"
        )
    }
}

impl<W: Who, A: Act> fmt::Display for Listed<W, A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["ENTRY", "TIME", W::HEADING, "DID", "RUN", "STUDY"];
        let mut rows = vec![heading.map(str::to_owned)];
        let or_none = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
        rows.extend(self.entries.iter().map(|Numbered { number, entry }| {
            [
                number.to_string(),
                entry.time.clone(),
                entry.who.name().to_owned(),
                entry.did.to_string(),
                or_none(&entry.run),
                or_none(&entry.study),
            ]
        }));
        formatter.write_str(&aligned(&rows))
    }
}
