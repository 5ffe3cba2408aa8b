//! Studies that this site has approved: each a folder with the study's text, the site's configuration as it was, the
//! frozen patients, and a signed approval that commits to all of them.
//!
//! ```text
//! FOLDER/proposed/       NAME.study.toml  NAME.reviewed
//! FOLDER/studies/NAME/   study.toml  site.toml  snapshot.parquet  pairs.csv  patients  patients.N  approval.json  openings/RUN
//! ```

mod approve;
pub mod budget;
pub mod consent;
mod ended;
pub mod left_out;
pub mod opened;
mod partial;
pub mod proposed;
mod renewed;
mod review;
mod run;
mod sharing;
mod span;

pub use approve::{StudyError, approve};
pub use budget::Budget;
pub use ended::{close, leave};
pub use renewed::Lots;
pub use review::{GivenApproval, Listing, Review};
pub(crate) use run::OF_NO_STUDY;
pub use run::{Frozen, approved, for_run, whole};

use crate::books::chain::{ChainError, file_error, hexadecimal};
use crate::books::ledger;
use crate::config::SiteConfig;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use privacy::Fingerprint;
use protocol::message::Warrant;
use protocol::name::SiteName;
use protocol::study::{Approval, Pinned, SignedApproval, Study, StudyName};
use protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rule by which a site refuses what is not of a study that it has approved.
const RULE: &str = "study";
const FOLDER: &str = "studies";
const STUDY: &str = "study.toml";
const CONFIGURATION: &str = "site.toml";
const SNAPSHOT: &str = "snapshot.parquet";
const PATIENTS: &str = "patients";
const PAIRS: &str = "pairs.csv";
const APPROVAL: &str = "approval.json";
const LEFT: &str = "left";
const CLOSED: &str = "closed";
const APPROVAL_MEANT: &str = "an approval that this site signed";

/// `approval.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    study: String,
    digest: String,
    commitment: String,
    patients_at_most: u64,
    /// Milliseconds since the Unix epoch.
    approved: u64,
    /// Certificates from the site's to the authority's, base64.
    chain: Vec<String>,
    scheme: u16,
    signature: String,
    /// What the commitment hides behind, hexadecimal. It stays at the site.
    random: String,
    /// A count below this is withheld: the site's rule when it approved.
    cell_min: u64,
    /// What the commitment says of the patients.
    #[serde(default)]
    patients: Committed,
}

/// What a commitment says of the frozen patients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Committed {
    /// Every field, row by row, as up to version 0.2.0.
    #[default]
    Rows,
    /// The digest of the snapshot.
    Snapshot,
}

/// A study that this site has approved.
#[derive(Debug)]
pub struct Approved {
    /// The study.
    pub study: Study,
    /// What the site signed.
    pub signed: SignedApproval,
    /// Whether the site has left it: its patients are deleted.
    pub left: bool,
    /// Whether its operators have closed it.
    pub closed: bool,
    patients: Fingerprint,
    /// Those with each outcome.
    with_outcome: Vec<Fingerprint>,
    random: String,
    cell_min: u64,
    committed: Committed,
    folder: PathBuf,
}

/// All studies that the site in `folder` has approved, by name, also those that it has left.
///
/// # Errors
/// [`ChainError`] where an approval is not what the site signed.
pub fn all(folder: &Path, site: &SiteName) -> Result<Vec<Approved>, ChainError> {
    let folders = folders(folder)?;
    folders.iter().map(|folder| open(folder, site)).collect()
}

/// The folders of studies, by name.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, ChainError> {
    let studies = folder.join(FOLDER);
    let failed = |source| file_error(&studies, "read", source);
    let mut folders = match std::fs::read_dir(&studies) {
        Ok(entries) => entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    // An approval that was interrupted has never been one.
    folders.retain(|path| StudyName::new(&name_of(path)).is_ok());
    folders.sort();
    Ok(folders)
}

/// What is left of the studies that the site has approved, or of one of them.
///
/// # Errors
/// [`StudyError::Known`] where it has approved no study of this name; [`ChainError`] where approvals or the ledger are not what was
/// written.
pub fn budgets(
    config: &SiteConfig,
    name: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Budget>, StudyError> {
    let known = all(&config.folder, &config.site)?;
    let used = ledger::used(&config.folder)?;
    let budget = |one: &Approved| {
        let used = used.get(&one.signed.approval.digest);
        let used = used.copied().unwrap_or_default();
        Budget::new(one, &used, config.policy.rules(), now)
    };
    match name {
        Some(name) => Ok(vec![budget(present(&known, name)?)]),
        None => Ok(known.iter().map(budget).collect()),
    }
}

/// The approvals that the coordinator has yet to hear on this stream, by the name of their studies: those that are not among
/// `said`. None of a study that the site has left.
///
/// # Errors
/// [`ChainError`] where the studies cannot be listed; that of a study where its approval is not what the site signed.
pub fn unsaid(
    folder: &Path,
    site: &SiteName,
    said: &BTreeSet<String>,
) -> Result<Vec<Unsaid>, ChainError> {
    let folders = folders(folder)?.into_iter();
    let named = folders.map(|folder| (name_of(&folder), folder));
    let news = named.filter(|(name, _)| !said.contains(name));
    let read = |(name, folder): (String, PathBuf)| {
        let approval = open(&folder, site).map(|one| (!one.left).then_some(one.signed));
        (name, approval)
    };
    Ok(news.map(read).collect())
}

/// The name of a study, and its approval where there is one to say.
pub type Unsaid = (String, Result<Option<SignedApproval>, ChainError>);

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn open(folder: &Path, site: &SiteName) -> Result<Approved, ChainError> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| file_error(&path, "read", error))
    };
    let broken = |name: &str, wanted: &'static str| ChainError::Study {
        path: folder.join(name).display().to_string(),
        found: "something else",
        wanted,
    };
    let text = String::from_utf8(read(STUDY)?).ok();
    let study = text.and_then(|text| Study::parse(&text).ok());
    let study = study.ok_or_else(|| broken(STUDY, "the study that this site approved"))?;
    let signed: Option<Signed> = serde_json::from_slice(&read(APPROVAL)?).ok();
    let signed = signed.ok_or_else(|| broken(APPROVAL, APPROVAL_MEANT))?;
    let (random, cell_min) = (signed.random.clone(), signed.cell_min);
    let committed = signed.patients;
    let (Some(signed), Some(own)) = (signed.approval(), own(&study, site)) else {
        return Err(broken(APPROVAL, APPROVAL_MEANT));
    };
    let is_signed = wire::has_approved(&own.certificate, &signed);
    let (name, digest) = (&signed.approval.study, &signed.approval.digest);
    if !is_signed || *name != name_of(folder) || *digest != study.digest() {
        return Err(broken(APPROVAL, APPROVAL_MEANT));
    }
    let patients = |name: &str| {
        let found = Fingerprint::from_bytes(&read(name)?);
        found.map_err(|_| broken(PATIENTS, "digests of patients"))
    };
    let with_outcome = (0..study.outcomes.len()).map(|place| patients(&with_outcome(place)));
    let with_outcome = with_outcome.collect::<Result<_, _>>()?;
    Ok(Approved {
        patients: patients(PATIENTS)?,
        with_outcome,
        study,
        signed,
        left: folder.join(LEFT).exists(),
        closed: folder.join(CLOSED).exists(),
        random,
        cell_min,
        committed,
        folder: folder.to_owned(),
    })
}

/// The file of the patients with an outcome, by its place.
fn with_outcome(place: usize) -> String {
    format!("{PATIENTS}.{}", place + 1)
}

/// The study of this name that the site has approved and not left.
pub(crate) fn present<'k>(known: &'k [Approved], name: &str) -> Result<&'k Approved, StudyError> {
    let mut present = known.iter().filter(|one| !one.left);
    let found = present.find(|one| one.study.name.as_str() == name);
    found.ok_or_else(|| {
        let names = known.iter().filter(|one| !one.left);
        let names: Vec<&str> = names.map(|one| one.study.name.as_str()).collect();
        StudyError::Known {
            name: name.to_string(),
            found: format!("no such approval, but of {names:?}"),
            wanted: "a study that this site has approved and not left",
        }
    })
}

impl Approved {
    /// Where it stands at this site, in a word, and until when.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> String {
        let until = self.study.until;
        if self.left {
            "left".to_owned()
        } else if self.closed {
            "closed".to_owned()
        } else if self.study.is_over(now) {
            format!("over since {until}")
        } else if opened::is_known(&self.folder) {
            format!("open until {until}")
        } else {
            format!("approved until {until}, not open yet")
        }
    }

    /// The runs by which it has opened.
    pub(crate) fn openings(&self) -> std::io::Result<Vec<String>> {
        opened::runs(&self.folder)
    }

    /// The file that says that it is closed.
    pub(crate) fn closed_mark(&self) -> PathBuf {
        self.folder.join(CLOSED)
    }

    /// Whether runs of it may still be answered here.
    pub(crate) fn has_runs(&self, now: Timestamp) -> bool {
        !(self.left || self.closed || self.study.is_over(now))
    }

    /// Whether sums over its patients have left, or may yet.
    fn may_reveal(&self, now: Timestamp) -> bool {
        self.has_runs(now) || opened::is_known(&self.folder)
    }
}

/// The entry of this site among the study's hospitals.
fn own<'s>(study: &'s Study, site: &SiteName) -> Option<&'s Pinned<SiteName>> {
    study.hospitals.iter().find(|one| one.name == *site)
}

impl Signed {
    fn of(signed: &SignedApproval, random: String, cell_min: u64) -> Self {
        let SignedApproval { approval, word } = signed;
        let chain = word.chain.iter().map(|one| STANDARD.encode(one));
        Self {
            study: approval.study.clone(),
            digest: approval.digest.clone(),
            commitment: approval.commitment.clone(),
            patients_at_most: approval.patients_at_most,
            approved: approval.approved.0,
            chain: chain.collect(),
            scheme: word.scheme,
            signature: STANDARD.encode(&word.signature),
            random,
            cell_min,
            patients: Committed::Snapshot,
        }
    }

    fn approval(self) -> Option<SignedApproval> {
        let chain = self.chain.iter().map(|one| STANDARD.decode(one).ok());
        Some(SignedApproval {
            word: Warrant {
                token: String::new(),
                chain: chain.collect::<Option<_>>()?,
                scheme: self.scheme,
                signature: STANDARD.decode(&self.signature).ok()?,
            },
            approval: Approval {
                study: self.study,
                digest: self.digest,
                commitment: self.commitment,
                patients_at_most: self.patients_at_most,
                approved: Timestamp(self.approved),
            },
        })
    }
}

/// Bytes as files of this site have them.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// SHA-256 of what hides, the configuration, judged pairs where there are any, and what `patients` writes, hexadecimal. Every part
/// tells its length.
fn commitment(
    random: &str,
    (configuration, pairs): (&[u8], Option<&[u8]>),
    cell_min: u64,
    patients: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> String {
    let mut digest = Sha256::new();
    digest.update(random.as_bytes());
    digest.update(cell_min.to_be_bytes());
    digest.update((configuration.len() as u64).to_be_bytes());
    digest.update(configuration);
    if let Some(pairs) = pairs {
        digest.update((pairs.len() as u64).to_be_bytes());
        digest.update(pairs);
    }
    patients(&mut |bytes| digest.update(bytes));
    hexadecimal(&digest.finalize())
}
