//! How often each cohort of this site has served, which patients it has, and every answer that told of it: what
//! the limits of runs and rounds and the guard against differencing need. Nothing of it leaves the site.

use crate::books::chain::{self, Chain, ChainError, Head, Link, file_error};
pub use crate::books::entries::Used;
use crate::books::entries::{Books, Event, Run};
use crate::books::identity::{Question, RunDigest};
use crate::books::key::{key, other_key, replace};
use crate::method::Secret;
use privacy::{CohortFacts, Cost, Fingerprint, FingerprintKey, SoFar};
use protocol::name::RunId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wire::private;

pub(super) const FILE_NAME: &str = "ledger.jsonl";
/// The name of the site's own key in its folder.
pub const KEY_NAME: &str = "fingerprint.key";
const COHORTS: &str = "cohorts";

/// The ledger of one site, open for writing.
#[derive(Debug)]
pub struct Ledger {
    chain: Chain,
    folder: PathBuf,
    key: FingerprintKey,
    books: Books,
    cohorts: BTreeMap<String, Fingerprint>,
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
pub fn used(folder: &Path) -> Result<BTreeMap<String, Used>, ChainError> {
    let mut books = Books::default();
    let path = folder.join(FILE_NAME);
    if path.exists() {
        chain::read(&path, None, |link: Link<Event>| books.note(link.entry))?;
    }
    Ok(books.used(None))
}

/// The names of the runs that count for the study with this digest, as the ledger in `folder` has it.
///
/// # Errors
/// As [`used`].
pub fn runs(folder: &Path, study: &str) -> Result<BTreeSet<String>, ChainError> {
    let mut runs = BTreeSet::new();
    let path = folder.join(FILE_NAME);
    if path.exists() {
        chain::read(&path, None, |link: Link<Event>| {
            if let Event::Run {
                name,
                study: Some(of),
                ..
            } = link.entry
                && of == study
            {
                runs.insert(name);
            }
        })?;
    }
    Ok(runs)
}

fn of_key(key: FingerprintKey, purpose: &'static str) -> Secret {
    Box::new(move |bytes| key.secret(purpose, bytes))
}

/// The patients and outcome classes of a cohort that was read.
#[derive(Clone)]
pub struct CohortCounts {
    /// Patients.
    pub patients: u64,
    /// Patients of each outcome class (for survival: with an event up to the horizon); empty for a number.
    pub classes: Vec<u64>,
    /// Names of cohorts from which the study's card has told it apart, over all hospitals: no rule of this site alone does.
    pub judged: BTreeSet<String>,
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
    /// Opens or creates the ledger in `folder`, checks all of it, and reads the fingerprints of
    /// earlier cohorts. `kept` is where it ended as the journal has it.
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
        // With another key every cohort would be a new one.
        let is_new = chain.head().entries == 0;
        if !is_new && books.key.as_ref() != Some(&digest) {
            return Err(other_key(&folder.join(FILE_NAME), &key_path));
        }
        let mut ledger = Self {
            chain,
            folder: folder.to_owned(),
            key,
            books,
            cohorts: BTreeMap::new(),
        };
        if is_new {
            ledger.record(Event::Key { digest })?;
        }
        let runs = ledger.books.runs.iter();
        let identities: BTreeSet<String> = runs.map(|run| run.cohort.clone()).collect();
        for identity in identities {
            let fingerprint = ledger.stored(&identity)?;
            ledger.cohorts.insert(identity, fingerprint);
        }
        Ok(ledger)
    }

    /// Where the ledger ends.
    #[must_use]
    pub fn head(&self) -> &Head {
        self.chain.head()
    }

    /// The fingerprint of a cohort under this site's key: of patient ids, or of whole rows of the
    /// source where the site has no ids.
    pub fn fingerprint<I: AsRef<[u8]>>(
        &self,
        identifiers: impl IntoIterator<Item = I>,
    ) -> Fingerprint {
        Fingerprint::new(&self.key, identifiers)
    }

    /// Numbers that only this site can tell, from its key.
    #[must_use]
    pub fn secret(&self, purpose: &'static str) -> Secret {
        of_key(self.key.clone(), purpose)
    }

    /// How many other runs of `operator` had a cohort read on `day`; none where `run`, one of that operator's, is free to
    /// read it: it did so on that day, or has told something already.
    #[must_use]
    pub fn descriptions(&self, run: &RunDigest, operator: &str, day: u64) -> Option<u64> {
        let own = self.books.runs.iter().filter(|known| known.digest == *run);
        if own.into_iter().any(|own| own.told) {
            return None;
        }
        let Some(today) = self.books.descriptions.get(&(day, operator.to_owned())) else {
            return Some(0);
        };
        (!today.contains(run)).then_some(today.len() as u64)
    }

    /// Notes that a cohort is read for `operator`'s run, before it is.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be read then.
    pub fn describe(
        &mut self,
        run: &RunDigest,
        operator: &str,
        day: u64,
    ) -> Result<(), ChainError> {
        self.record(Event::Description {
            run: run.clone(),
            operator: operator.to_owned(),
            day,
        })
    }

    /// What the policy judges of a cohort on which `run` is to go, which `asks` about patients of others where it does.
    #[must_use]
    pub fn facts(
        &self,
        run: &RunDigest,
        cohort: &Fingerprint,
        counts: CohortCounts,
        asks: Option<&Asks>,
    ) -> CohortFacts {
        let identity = cohort.identity();
        let (mut runs_before, mut rounds_before) = (0, 0);
        let mut so_far = SoFar::default();
        let (mut queries_before, mut groupings) = (0_u64, BTreeSet::new());
        for known in self
            .books
            .runs
            .iter()
            .filter(|known| known.cohort == identity)
        {
            if known.digest == *run {
                so_far = known.so_far.clone();
                continue;
            }
            if known.told {
                runs_before += u64::from(!known.void);
                rounds_before += known.so_far.rounds;
            }
            if let Some(asked) = &known.asks {
                queries_before = queries_before.saturating_add(asked.queries);
                groupings.insert(asked.grouping.as_str());
            }
        }
        match asks {
            Some(asks) => drop(groupings.remove(asks.grouping.as_str())),
            // What it would part the cohort by is not known, and it will not.
            None => groupings.clear(),
        }
        let is_other = |name: &String| *name != identity && !counts.judged.contains(name);
        let others = self.cohorts.iter().filter(|(name, _)| is_other(name));
        CohortFacts {
            difference: others.map(|(_, other)| cohort.difference(other)).min(),
            patients: counts.patients,
            classes: counts.classes,
            runs_before,
            rounds_before,
            so_far,
            queries_before,
            groupings_before: groupings.len() as u64,
        }
    }

    /// What runs have used of the study with this digest, but for `run`.
    #[must_use]
    pub fn used(&self, study: &str, run: &RunDigest) -> Used {
        let used = self.books.used(Some(run));
        used.get(study).copied().unwrap_or_default()
    }

    /// Notes that `run` goes on `cohort` and counts for the study with this digest, before anything of it is released. Saying it
    /// twice changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be released then.
    pub fn begin(
        &mut self,
        run: &RunDigest,
        name: &RunId,
        cohort: &Fingerprint,
        study: Option<String>,
    ) -> Result<(), ChainError> {
        let identity = cohort.identity();
        if self
            .latest(run)
            .is_some_and(|known| known.cohort == identity)
        {
            return Ok(());
        }
        if !self.cohorts.contains_key(&identity) {
            self.store(&identity, cohort)?;
            self.cohorts.insert(identity.clone(), cohort.clone());
        }
        self.record(Event::Run {
            run: run.clone(),
            name: name.to_string(),
            cohort: identity,
            study,
        })
    }

    /// Notes what `run` asks about patients of others, before anything is told. Saying it twice changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be told then.
    pub fn ask(&mut self, run: &RunDigest, asks: Asks) -> Result<(), ChainError> {
        if self
            .latest(run)
            .is_some_and(|known| known.asks.as_ref() == Some(&asks))
        {
            return Ok(());
        }
        self.record(Event::Asks {
            run: run.clone(),
            asks,
        })
    }

    /// What `run` has released of its latest cohort.
    #[must_use]
    pub fn so_far(&self, run: &RunDigest) -> SoFar {
        let latest = self.latest(run);
        latest.map(|known| known.so_far.clone()).unwrap_or_default()
    }

    /// The answer that a question of `run` got before.
    #[must_use]
    pub fn answered(&self, run: &RunDigest, question: &Question) -> Option<&Answered> {
        self.latest(run)?.answers.get(question)
    }

    /// Whether another question of the same exchange was answered by what was covered for it: masks are used once.
    #[must_use]
    pub fn is_covered(&self, run: &RunDigest, exchange: u32) -> bool {
        let answers = self
            .latest(run)
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

    /// Notes that a brake has shut the gate of `run`, before anybody hears of it.
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
        match self.latest(run).is_some_and(|known| !known.void) {
            true => self.record(Event::Void { run: run.clone() }),
            false => Ok(()),
        }
    }

    fn latest(&self, run: &RunDigest) -> Option<&Run> {
        self.books.latest(run)
    }

    fn record(&mut self, event: Event) -> Result<(), ChainError> {
        self.chain.append(&event)?;
        self.books.note(event);
        Ok(())
    }

    fn cohort_path(&self, identity: &str) -> PathBuf {
        self.folder.join(COHORTS).join(identity)
    }

    fn store(&self, identity: &str, cohort: &Fingerprint) -> Result<(), ChainError> {
        let path = self.cohort_path(identity);
        let written = private::folder(&self.folder.join(COHORTS))
            .and_then(|()| replace(&path, &cohort.to_bytes()));
        written.map_err(|source| file_error(&path, "written", source))
    }

    /// The stored fingerprint, whose name is the digest of its bytes.
    fn stored(&self, identity: &str) -> Result<Fingerprint, ChainError> {
        let path = self.cohort_path(identity);
        let changed = || io::Error::other("it is not what was written");
        fs::read(&path)
            .and_then(|bytes| Fingerprint::from_bytes(&bytes).map_err(io::Error::other))
            .and_then(|cohort| match cohort.identity() == identity {
                true => Ok(cohort),
                false => Err(changed()),
            })
            .map_err(|source| file_error(&path, "read", source))
    }
}

impl std::fmt::Debug for CohortCounts {
    /// Nothing of the cohort.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CohortCounts")
            .finish_non_exhaustive()
    }
}
