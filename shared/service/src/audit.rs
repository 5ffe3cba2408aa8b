//! An audit log: who did what, in a chain that shows where it was touched. Nothing in it is of patients.

use crate::chain::{self, Chain, ChainError, Head, Link};
use report::aligned;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The log's name in a program's folder.
pub const FILE_NAME: &str = "audit.jsonl";

/// One act, as a program notes it.
pub trait Record: Serialize + DeserializeOwned {
    /// What the columns of a listing are called.
    const HEADING: [&'static str; 5];

    /// What stands in them; none where there is nothing.
    fn cells(&self) -> [Option<String>; 5];

    /// The run that it was done to.
    fn run(&self) -> Option<&str>;
}

/// The log, open for writing; a simulation has none.
#[derive(Debug)]
pub struct Audit<R> {
    chain: Option<Arc<Mutex<Chain>>>,
    of: PhantomData<fn(&R)>,
}

impl<R> Clone for Audit<R> {
    fn clone(&self) -> Self {
        let (chain, of) = (self.chain.clone(), self.of);
        Self { chain, of }
    }
}

impl<R: Record> Audit<R> {
    /// Opens or creates the log in `folder`, and checks all of it.
    ///
    /// # Errors
    /// [`ChainError`] where it cannot be used, or an entry was touched.
    pub fn open(folder: &Path) -> Result<Self, ChainError> {
        let (chain, torn) = Chain::open(&folder.join(FILE_NAME), None, |_: Link<R>| {})?;
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
    pub fn note(&self, record: &R) -> Result<(), ChainError> {
        match &self.chain {
            Some(chain) => {
                let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
                chain.append(record).map(drop)
            }
            None => Ok(()),
        }
    }
}

/// The entries of a log that was checked.
#[derive(Debug, Serialize)]
pub struct Listed<R> {
    entries: Vec<Numbered<R>>,
}

#[derive(Debug, Serialize)]
struct Numbered<R> {
    number: u64,
    #[serde(flatten)]
    record: R,
}

/// Checks the log in `folder`, also while it is written; gives all entries, or those of one run.
///
/// # Errors
/// [`ChainError`] names the first entry that is not what was written.
pub fn list<R: Record>(folder: &Path, run: Option<&str>) -> Result<Listed<R>, ChainError> {
    let mut entries = Vec::new();
    chain::read(&folder.join(FILE_NAME), None, |link: Link<R>| {
        let (number, record) = (link.number, link.entry);
        if run.is_none() || run == record.run() {
            entries.push(Numbered { number, record });
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
pub fn verify<R: Record>(folder: &Path, kept: Option<&Head>) -> Result<Verified, ChainError> {
    let head = chain::read(&folder.join(FILE_NAME), kept, |_: Link<R>| {})?;
    Ok(Verified {
        entries: head.entries,
        head: head.to_string(),
    })
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

impl<R: Record> fmt::Display for Listed<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, who, did, run, study] = R::HEADING.map(str::to_owned);
        let mut rows = vec![["ENTRY".to_owned(), time, who, did, run, study]];
        rows.extend(self.entries.iter().map(|Numbered { number, record }| {
            let cells = record.cells().map(|cell| cell.unwrap_or("-".to_owned()));
            let [time, who, did, run, study] = cells;
            [number.to_string(), time, who, did, run, study]
        }));
        formatter.write_str(&aligned(&rows))
    }
}
