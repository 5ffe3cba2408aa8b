//! How much the runs of each study have used of its limits, and every answer that was given. Nothing of it leaves the site.

use crate::books::chain::{self, Chain, ChainError, Head, Link};
use crate::books::entries::{Books, Event, Used};
use crate::books::identity::{Question, RunDigest};
use crate::books::key::{Secret, key, other_key};
use privacy::{Cost, FingerprintKey, Limits, SoFar};
use protocol::name::RunId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The ledger's name in the site's folder.
pub const FILE_NAME: &str = "ledger.jsonl";
/// The name of the site's own key in its folder.
pub const KEY_NAME: &str = "fingerprint.key";

/// The ledger of one site, open for writing.
#[derive(Debug)]
pub struct Ledger {
    chain: Chain,
    key: FingerprintKey,
    books: Books,
}

/// As [`Ledger::secret`], whoever has the ledger in `folder` open.
///
/// # Errors
/// [`ChainError`] where the site's key cannot be read.
pub fn secret(folder: &Path, purpose: &'static str) -> Result<Secret, ChainError> {
    Ok(of_key(key(&folder.join(KEY_NAME), false)?, purpose))
}

/// What runs have used of each study, by its digest, as the ledger in `folder` has it; also while an agent writes it.
///
/// # Errors
/// [`ChainError`] where it cannot be read, or is not what was written.
pub fn used(folder: &Path) -> Result<BTreeMap<String, Limits>, ChainError> {
    let used = read(folder)?.used(None).into_iter();
    Ok(used
        .map(|(study, used)| (study, Used::limits(&used)))
        .collect())
}

/// The names of the runs that count for the study with this digest, as the ledger in `folder` has it.
///
/// # Errors
/// As [`used`].
pub fn runs(folder: &Path, study: &str) -> Result<BTreeSet<String>, ChainError> {
    Ok(read(folder)?.names(study))
}

fn read(folder: &Path) -> Result<Books, ChainError> {
    let mut books = Books::default();
    let path = folder.join(FILE_NAME);
    if path.exists() {
        chain::read(&path, None, |link: Link<Event>| books.note(link.entry))?;
    }
    Ok(books)
}

fn of_key(key: FingerprintKey, purpose: &'static str) -> Secret {
    Box::new(move |bytes| key.secret(purpose, bytes))
}

/// An answer that was given, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Its kind.
    pub kind: String,
    /// Whether it tells more of the cohort than its size.
    pub(super) tells: bool,
    /// Whether it is a round.
    pub(super) rounds: u64,
    /// SHA-256 of the answer as it left, hexadecimal.
    pub digest: String,
    /// The exchange that it answered, covered; 0 where it was not.
    #[serde(default)]
    exchange: u32,
}

/// What a run asks about patients of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    /// A digest of the learned run by which the cohort is parted into groups.
    pub grouping: String,
    /// Patients of others.
    pub queries: u64,
}

impl Answered {
    /// An answer of a kind that costs `cost`, encoded with this digest.
    #[must_use]
    pub fn new(kind: &str, cost: Cost, digest: String) -> Self {
        Self {
            kind: kind.to_owned(),
            tells: cost != Cost::Nothing,
            rounds: cost.rounds(),
            digest,
            exchange: 0,
        }
    }

    /// The same, covered for an exchange.
    #[must_use]
    pub fn covered(self, exchange: u32) -> Self {
        Self { exchange, ..self }
    }
}

impl Ledger {
    /// Opens or creates the ledger in `folder`, and checks all of it. `kept` is where it ended as the journal has it.
    ///
    /// # Errors
    /// [`ChainError`] where a file cannot be used, is in use, is missing, or was touched.
    pub fn open(folder: &Path, kept: Option<&Head>) -> Result<Self, ChainError> {
        let mut books = Books::default();
        let (chain, _) = Chain::open(&folder.join(FILE_NAME), kept, |link: Link<Event>| {
            books.note(link.entry);
        })?;
        let key_path = folder.join(KEY_NAME);
        let key = key(&key_path, chain.head().entries == 0)?;
        let digest = format!("{:016x}", key.secret("ledger", &[]));
        // With another key every patient would be a new one.
        let is_new = chain.head().entries == 0;
        if !is_new && books.key.as_ref() != Some(&digest) {
            return Err(other_key(&folder.join(FILE_NAME), &key_path));
        }
        let mut ledger = Self { chain, key, books };
        if is_new {
            ledger.record(Event::Key { digest })?;
        }
        Ok(ledger)
    }

    /// Where the ledger ends.
    #[must_use]
    pub fn head(&self) -> &Head {
        self.chain.head()
    }

    /// Numbers that only this site can tell, from its key.
    #[must_use]
    pub fn secret(&self, purpose: &'static str) -> Secret {
        of_key(self.key.clone(), purpose)
    }

    /// What runs have used of the study with this digest, but for `run`; of groupings those other than the one that `run` asks by.
    #[must_use]
    pub fn used(&self, study: &str, run: &RunDigest, asks: Option<&Asks>) -> Limits {
        let used = self.books.used(Some(run)).remove(study);
        let mut used = used.unwrap_or_default();
        match asks {
            Some(asks) => drop(used.groupings.remove(&asks.grouping)),
            // What it would part the patients by is not known, and it will not.
            None => used.groupings.clear(),
        }
        used.limits()
    }

    /// Notes that `run` begins and counts for the study with this digest, before anything of it is released. Saying it twice
    /// changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be released then.
    pub fn begin(
        &mut self,
        run: &RunDigest,
        name: &RunId,
        study: Option<String>,
    ) -> Result<(), ChainError> {
        if self.books.run(run).is_some() {
            return Ok(());
        }
        self.record(Event::Run {
            run: run.clone(),
            name: name.to_string(),
            study,
        })
    }

    /// Notes what `run` asks about patients of others, before anything is released. Noting it twice changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be released then.
    pub fn ask(&mut self, run: &RunDigest, asks: Asks) -> Result<(), ChainError> {
        if self
            .books
            .run(run)
            .is_some_and(|known| known.asks.as_ref() == Some(&asks))
        {
            return Ok(());
        }
        self.record(Event::Asks {
            run: run.clone(),
            asks,
        })
    }

    /// What `run` has released.
    #[must_use]
    pub fn so_far(&self, run: &RunDigest) -> SoFar {
        let known = self.books.run(run);
        known.map(|known| known.so_far.clone()).unwrap_or_default()
    }

    /// The answer that a question of `run` got before.
    #[must_use]
    pub fn answered(&self, run: &RunDigest, question: &Question) -> Option<&Answered> {
        self.books.run(run)?.answers.get(question)
    }

    /// Whether another question of the same exchange was answered by what was covered for it: masks are used once.
    #[must_use]
    pub fn is_covered(&self, run: &RunDigest, exchange: u32) -> bool {
        let answers = self
            .books
            .run(run)
            .into_iter()
            .flat_map(|known| known.answers.values());
        exchange > 0 && answers.into_iter().any(|known| known.exchange == exchange)
    }

    /// Notes an answer, before it is released.
    ///
    /// # Errors
    /// [`ChainError::File`]: it may not be released then.
    pub fn answer(
        &mut self,
        run: &RunDigest,
        question: Question,
        answered: Answered,
    ) -> Result<(), ChainError> {
        self.record(Event::Answer {
            run: run.clone(),
            question,
            answered,
        })
    }

    /// Notes that a brake has shut the gate of `run`, before anybody learns of it.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be said of it then.
    pub fn shut(&mut self, run: &RunDigest) -> Result<(), ChainError> {
        self.record(Event::Shut { run: run.clone() })
    }

    /// Notes that nothing came of `run`, because a sum of it was not one of patients. Saying it twice changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`].
    pub fn void(&mut self, run: &RunDigest) -> Result<(), ChainError> {
        match self.books.run(run).is_some_and(|known| !known.void) {
            true => self.record(Event::Void { run: run.clone() }),
            false => Ok(()),
        }
    }

    fn record(&mut self, event: Event) -> Result<(), ChainError> {
        self.chain.append(&event)?;
        self.books.note(event);
        Ok(())
    }
}
