//! How often each cohort of this site has served, and which patients it has: what the limits of
//! runs and rounds and the guard against differencing need. Nothing of it leaves the site.

use crate::chain::{Chain, ChainError, Link, file_error, sync_folder};
use privacy::{CohortFacts, Fingerprint, FingerprintKey};
use protocol::name::RunId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use wire::private;

const FILE_NAME: &str = "ledger.jsonl";
/// The name of the site's own key in its folder.
pub const KEY_NAME: &str = "fingerprint.key";
const COHORTS: &str = "cohorts";
const KEY_LENGTH: usize = 32;

/// The ledger of one site, open for writing.
#[derive(Debug)]
pub struct Ledger {
    chain: Chain,
    folder: PathBuf,
    key: FingerprintKey,
    runs: Vec<Run>,
    cohorts: BTreeMap<String, Fingerprint>,
}

/// The patients and outcome classes of a cohort that was read.
#[derive(Clone)]
pub struct CohortCounts {
    /// Patients.
    pub patients: u64,
    /// Patients of each outcome class (for survival: censored, events); empty for a number.
    pub classes: Vec<u64>,
}

/// A run on one cohort. A run that comes back with another cohort stands here twice.
#[derive(Debug)]
struct Run {
    name: String,
    cohort: String,
    rounds: BTreeSet<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    /// A run began on a cohort.
    Run { run: String, cohort: String },
    /// A round of it was released.
    Round { run: String, round: u32 },
}

impl Ledger {
    /// Opens or creates the ledger in `folder`, checks all of it, and reads the fingerprints of
    /// earlier cohorts.
    ///
    /// # Errors
    /// [`ChainError`] where a file cannot be used, is in use, or was touched.
    pub fn open(folder: &Path) -> Result<Self, ChainError> {
        let key = key(&folder.join(KEY_NAME))?;
        let mut runs = Vec::new();
        let (chain, _) = Chain::open(&folder.join(FILE_NAME), |link: Link<Event>| {
            note(&mut runs, link.entry);
        })?;
        let mut ledger = Self {
            chain,
            folder: folder.to_owned(),
            key,
            runs,
            cohorts: BTreeMap::new(),
        };
        let identities: BTreeSet<String> =
            ledger.runs.iter().map(|run| run.cohort.clone()).collect();
        for identity in identities {
            let fingerprint = ledger.stored(&identity)?;
            ledger.cohorts.insert(identity, fingerprint);
        }
        Ok(ledger)
    }

    /// The fingerprint of a cohort under this site's key: of patient ids, or of whole rows of the
    /// source where the site has no ids.
    pub fn fingerprint<I: AsRef<[u8]>>(
        &self,
        identifiers: impl IntoIterator<Item = I>,
    ) -> Fingerprint {
        Fingerprint::new(&self.key, identifiers)
    }

    /// A number that only this site can tell, from its key.
    #[must_use]
    pub fn secret(&self, purpose: &str, number: u64) -> u64 {
        self.key.secret(purpose, number)
    }

    /// What the policy judges of a cohort on which `run` is to go.
    #[must_use]
    pub fn facts(&self, run: &RunId, cohort: &Fingerprint, counts: CohortCounts) -> CohortFacts {
        let identity = cohort.identity();
        let (mut runs_before, mut rounds_before, mut own_rounds) = (0, 0, 0);
        for known in self.runs.iter().filter(|known| known.cohort == identity) {
            let rounds = known.rounds.len() as u64;
            if known.name == run.as_str() {
                own_rounds = rounds;
            } else {
                runs_before += 1;
                rounds_before += rounds;
            }
        }
        let difference = self
            .cohorts
            .iter()
            .filter(|(name, _)| **name != identity)
            .map(|(_, other)| cohort.difference(other))
            .min();
        CohortFacts {
            patients: counts.patients,
            classes: counts.classes,
            runs_before,
            rounds_before,
            // The last round may be asked again: its answer need not have arrived.
            rounds_of_run: own_rounds.saturating_sub(1),
            difference,
        }
    }

    /// Notes that `run` goes on `cohort`, before anything of it is released. Saying it twice
    /// changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`]: nothing may be released then.
    pub fn begin(&mut self, run: &RunId, cohort: &Fingerprint) -> Result<(), ChainError> {
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
            run: run.to_string(),
            cohort: identity,
        })
    }

    /// Notes a round of `run`, before it is released. Saying it twice changes nothing.
    ///
    /// # Errors
    /// [`ChainError::File`]: the round may not be released then.
    pub fn round(&mut self, run: &RunId, round: u32) -> Result<(), ChainError> {
        let known = self.latest(run);
        if known.is_some_and(|known| known.rounds.contains(&round)) {
            return Ok(());
        }
        self.record(Event::Round {
            run: run.to_string(),
            round,
        })
    }

    fn latest(&self, run: &RunId) -> Option<&Run> {
        self.runs
            .iter()
            .rev()
            .find(|known| known.name == run.as_str())
    }

    fn record(&mut self, event: Event) -> Result<(), ChainError> {
        self.chain.append(&event)?;
        note(&mut self.runs, event);
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

fn note(runs: &mut Vec<Run>, event: Event) {
    match event {
        Event::Run { run: name, cohort } => {
            let same = |known: &Run| known.name == name && known.cohort == cohort;
            let rounds = match runs.iter().position(same) {
                Some(index) => runs.remove(index).rounds,
                None => BTreeSet::new(),
            };
            runs.push(Run {
                name,
                cohort,
                rounds,
            });
        }
        Event::Round { run, round } => {
            if let Some(known) = runs.iter_mut().rev().find(|known| known.name == run) {
                known.rounds.insert(round);
            }
        }
    }
}

/// The site's key, made on first use from the system's random numbers.
fn key(path: &Path) -> Result<FingerprintKey, ChainError> {
    let fail = |what| move |source| file_error(path, what, source);
    let mut bytes = [0; KEY_LENGTH];
    if path.exists() {
        let stored = fs::read(path).map_err(fail("read"))?;
        let wanted = || io::Error::other(format!("found {} bytes, wanted 32", stored.len()));
        bytes = stored
            .as_slice()
            .try_into()
            .map_err(|_| fail("read")(wanted()))?;
    } else {
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut bytes))
            .and_then(|()| replace(path, &bytes))
            .map_err(fail("made"))?;
    }
    Ok(FingerprintKey::new(bytes))
}

/// Writes a file that only its owner may read: beside, then renamed.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = private::open(&beside, options.write(true).create(true).truncate(true))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)
}

impl std::fmt::Debug for CohortCounts {
    /// Nothing of the cohort.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CohortCounts")
            .finish_non_exhaustive()
    }
}
