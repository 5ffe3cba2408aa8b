//! What left this site: every released message, in the site's folder, in a chain that shows where
//! it was touched.

use crate::books::chain::{self, Chain, ChainError, Head, Link};
use crate::books::ledger;
use protocol::name::RunId;
use protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use wire::Sealed;

/// The journal's name in the site's folder.
pub const FILE_NAME: &str = "journal.jsonl";
/// What is listed of a journal before its first message.
const NOTHING_LEFT: &str = "nothing has left this site yet";

/// The journal of one site, open for writing.
#[derive(Debug)]
pub struct Journal {
    chain: Chain,
    ledger: String,
}

/// One released message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was about to be sent, RFC 3339 in UTC.
    pub time: String,
    /// The run.
    pub run: String,
    /// The exchange that it answers.
    pub exchange: u32,
    /// The kind of message; `recovery` where a crash had left an incomplete line.
    pub kind: String,
    /// Its shape in words.
    pub shape: String,
    /// SHA-256 of the message as it left, hexadecimal.
    pub digest: String,
    /// Bytes of it.
    pub bytes: u64,
    /// Where the ledger ended, `ENTRIES:HASH`: a ledger that was cut, written anew or deleted shows by it.
    #[serde(default)]
    pub ledger: String,
}

impl Entry {
    /// The entry of a message that is about to be sent: of the very bytes that leave.
    #[must_use]
    pub fn new(time: Timestamp, run: &RunId, exchange: u32, message: &Sealed) -> Self {
        Self {
            time: time_text(time),
            run: run.to_string(),
            exchange,
            kind: message.kind().to_owned(),
            shape: message.shape().to_owned(),
            digest: message.digest(),
            bytes: message.bytes(),
            ledger: String::new(),
        }
    }

    /// The entry, with where the ledger ends.
    #[must_use]
    pub fn with_ledger(self, head: &Head) -> Self {
        Self {
            ledger: head.to_string(),
            ..self
        }
    }
}

impl Journal {
    /// Opens or creates the journal in `folder` and checks all of it. Where a crash had left an
    /// incomplete last line, that is taken off and an entry of kind `recovery` says so; its message
    /// had not been sent.
    ///
    /// # Errors
    /// [`ChainError`] where the file cannot be used, is in use, or an entry was touched: an agent
    /// must not go on from a journal that cannot be trusted.
    pub fn open(folder: &Path, now: Timestamp) -> Result<Self, ChainError> {
        let mut ledger = String::new();
        let note = |link: Link<Entry>| ledger = link.entry.ledger;
        let (mut chain, torn) = Chain::open(&folder.join(FILE_NAME), None, note)?;
        if let Some(torn) = torn {
            chain.append(&Entry {
                time: time_text(now),
                run: String::new(),
                exchange: 0,
                kind: "recovery".to_owned(),
                shape: "1 incomplete line taken off".to_owned(),
                digest: torn.digest,
                bytes: torn.bytes,
                ledger: ledger.clone(),
            })?;
        }
        Ok(Self { chain, ledger })
    }

    /// Appends one entry; when this returns, it is on the disk, and the message may be sent.
    ///
    /// # Errors
    /// [`ChainError::File`]: the message must not be sent.
    pub fn append(&mut self, entry: &Entry) -> Result<(), ChainError> {
        self.chain.append(entry)?;
        self.ledger.clone_from(&entry.ledger);
        Ok(())
    }

    /// Where the ledger ended when the last entry was written; none where no entry tells.
    #[must_use]
    pub fn ledger(&self) -> Option<Head> {
        self.ledger.parse().ok()
    }

    /// Where the journal ends.
    #[must_use]
    pub fn head(&self) -> &Head {
        self.chain.head()
    }
}

/// Whether no agent has served from `folder` yet: there is neither a journal nor a ledger. Where there is a ledger alone, the
/// journal was taken away.
#[must_use]
pub fn is_unwritten(folder: &Path) -> bool {
    !folder.join(FILE_NAME).exists() && !folder.join(ledger::FILE_NAME).exists()
}

/// Where there is a ledger there is a journal: an agent makes the journal first.
///
/// # Errors
/// [`ChainError::Broken`] where the journal was taken away.
pub fn is_beside_its_ledger(folder: &Path) -> Result<(), ChainError> {
    let path = folder.join(FILE_NAME);
    if path.exists() || !folder.join(ledger::FILE_NAME).exists() {
        return Ok(());
    }
    Err(ChainError::Broken {
        path: path.display().to_string(),
        number: 1,
        found: "no file".to_owned(),
        wanted: "the journal that belongs to the ledger of this folder: the file is missing"
            .to_owned(),
    })
}

/// Checks the journal in `folder`, against a head that was kept elsewhere where there is one.
///
/// # Errors
/// [`ChainError`] names the first entry that is not what was written.
pub fn verify(folder: &Path, kept: Option<&Head>) -> Result<Head, ChainError> {
    chain::read(&folder.join(FILE_NAME), kept, |_: Link<Entry>| {})
}

/// Entries of a journal, and what they come to by kind.
#[derive(Debug, Default, Serialize)]
pub struct Listed {
    entries: Vec<Numbered>,
    /// Entries and bytes of each kind.
    totals: BTreeMap<String, Total>,
    /// Whether there is no journal yet.
    #[serde(skip)]
    is_unwritten: bool,
}

#[derive(Debug, Serialize)]
struct Numbered {
    number: u64,
    #[serde(flatten)]
    entry: Entry,
}

/// How much left.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Total {
    entries: u64,
    bytes: u64,
}

/// The entries of the journal in `folder`, checked: all, or those of one run. There is none where nothing has left yet.
///
/// # Errors
/// As [`verify`].
pub fn list(folder: &Path, run: Option<&str>) -> Result<Listed, ChainError> {
    let mut listed = Listed::default();
    if is_unwritten(folder) {
        listed.is_unwritten = true;
        return Ok(listed);
    }
    each(folder, |number, entry| {
        if run.is_some_and(|run| run != entry.run) {
            return;
        }
        let total = listed.totals.entry(entry.kind.clone()).or_default();
        total.entries += 1;
        total.bytes = total.bytes.saturating_add(entry.bytes);
        listed.entries.push(Numbered { number, entry });
    })?;
    Ok(listed)
}

/// Hands on every entry of the journal in `folder`, checked, in order.
///
/// # Errors
/// As [`verify`].
pub fn each(folder: &Path, mut with: impl FnMut(u64, Entry)) -> Result<Head, ChainError> {
    chain::read(&folder.join(FILE_NAME), None, |link: Link<Entry>| {
        with(link.number, link.entry);
    })
}

impl fmt::Display for Listed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unwritten {
            return out.write_str(NOTHING_LEFT);
        }
        writeln!(
            out,
            "{:>8}  {:<24}  {:<20}  {:>8}  {:<12}  {:>12}  {:<16}  shape",
            "entry", "time", "run", "exchange", "kind", "bytes", "digest"
        )?;
        for Numbered { number, entry } in &self.entries {
            let Entry {
                time,
                run,
                exchange,
                kind,
                bytes,
                shape,
                ..
            } = entry;
            let digest: String = entry.digest.chars().take(16).collect();
            writeln!(
                out,
                "{number:>8}  {time:<24}  {run:<20}  {exchange:>8}  {kind:<12}  {bytes:>12}  {digest:<16}  {shape}"
            )?;
        }
        let add = |all: Total, one: &Total| Total {
            entries: all.entries + one.entries,
            bytes: all.bytes.saturating_add(one.bytes),
        };
        let all = self.totals.values().fold(Total::default(), add);
        writeln!(out, "\n{:<12}  {:>8}  {:>12}", "kind", "entries", "bytes")?;
        let rows = self
            .totals
            .iter()
            .map(|(kind, total)| (kind.as_str(), total));
        for (kind, Total { entries, bytes }) in rows.chain([("all", &all)]) {
            writeln!(out, "{kind:<12}  {entries:>8}  {bytes:>12}")?;
        }
        Ok(())
    }
}

/// What left in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfRun {
    /// The run; empty of what belongs to none.
    pub run: String,
    /// When the last message was about to be sent.
    pub last: String,
    /// Messages and bytes of each kind.
    pub kinds: BTreeMap<String, (u64, u64)>,
}

/// What left in each run, the newest first, and where the journal ends; all entries are checked.
///
/// # Errors
/// As [`verify`].
pub fn by_run(folder: &Path) -> Result<(Vec<OfRun>, Head), ChainError> {
    let mut runs: Vec<OfRun> = Vec::new();
    let head = chain::read(&folder.join(FILE_NAME), None, |link: Link<Entry>| {
        let entry = link.entry;
        let known = runs.iter().rposition(|one| one.run == entry.run);
        let place = known.unwrap_or_else(|| {
            runs.push(OfRun {
                run: entry.run,
                last: String::new(),
                kinds: BTreeMap::new(),
            });
            runs.len() - 1
        });
        let one = &mut runs[place];
        one.last = entry.time;
        let total = one.kinds.entry(entry.kind).or_default();
        *total = (total.0 + 1, total.1.saturating_add(entry.bytes));
    })?;
    runs.reverse();
    Ok((runs, head))
}

impl OfRun {
    /// Messages and bytes of all kinds.
    #[must_use]
    pub fn all(&self) -> (u64, u64) {
        let totals = self.kinds.values();
        totals.fold((0, 0), |all, one| {
            (all.0 + one.0, all.1.saturating_add(one.1))
        })
    }
}

/// The exchanges and digests of what left in a run, by a journal that is checked.
///
/// # Errors
/// As [`verify`].
pub fn digests(folder: &Path, run: &str) -> Result<BTreeSet<(u32, String)>, ChainError> {
    let mut digests = BTreeSet::new();
    chain::read(&folder.join(FILE_NAME), None, |link: Link<Entry>| {
        if link.entry.run == run {
            digests.insert((link.entry.exchange, link.entry.digest));
        }
    })?;
    Ok(digests)
}

fn time_text(time: Timestamp) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time.0) * 1_000_000)
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{} ms", time.0))
}
