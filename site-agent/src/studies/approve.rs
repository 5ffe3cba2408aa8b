//! How a site approves a study.

use super::consent::Given;
use super::sharing::Sharing;
use super::{
    APPROVAL, Approved, CONFIGURATION, FOLDER, PATIENTS, SNAPSHOT, STUDY, Signed, all, commitment,
    own, proposed, with_outcome,
};
use crate::books::chain::{ChainError, hexadecimal};
use crate::books::key;
use crate::cli::StudyApprove;
use crate::config::{ConfigError, SiteConfig};
use crate::source::snapshot;
use crate::source::{CohortProblems, Freezing, FrozenTable};
use privacy::{Fingerprint, Permission};
use protocol::study::{Approval, CertificateFingerprint, SignedApproval, Study};
use protocol::time::Timestamp;
use similarity::numeric::precision::Precision;
use std::fs::{self, File};
use std::io::{self, Read};
use wire::jobs::StudyFileError;
use wire::{SignatureError, Signer, TlsError, private};

const RANDOM_BYTES: usize = 32;

/// A study that cannot be approved, or left.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The study's file cannot be used.
    #[error(transparent)]
    File(#[from] StudyFileError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The key cannot sign.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// An earlier approval is not what the site signed.
    #[error(transparent)]
    Books(#[from] ChainError),
    /// The source does not fit the study.
    #[error("the data does not fit the study:\n{0}")]
    Data(CohortProblems),
    /// The site cannot be part of the study.
    #[error("{what}: found {found}, wanted {wanted}")]
    Refused {
        /// The part of the study.
        what: &'static str,
        /// What it says.
        found: String,
        /// What this site can approve.
        wanted: String,
    },
    /// The name is taken.
    #[error("the study {name:?}: found {found}, wanted {wanted}")]
    Known {
        /// Its name.
        name: String,
        /// What this site has under that name.
        found: String,
        /// What would do.
        wanted: &'static str,
    },
    /// A consent cannot be used.
    #[error("{path}: found {found}, wanted {wanted}")]
    Consent {
        /// The file.
        path: String,
        /// What it holds.
        found: String,
        /// What would do.
        wanted: String,
    },
    /// The approval could not be written.
    #[error("{path} could not be written")]
    Write {
        /// The folder or file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The snapshot could not be made.
    #[error("the snapshot could not be made: {0}")]
    Snapshot(String),
}

/// Approves a study, which is a file or the name of one that was proposed: freezes its patients and signs what they are.
///
/// # Errors
/// [`StudyError`]; then nothing is approved.
pub fn approve(asked: &StudyApprove, now: Timestamp) -> Result<SignedApproval, StudyError> {
    let config = &asked.of.config;
    let text = fs::read(config).map_err(|source| ConfigError::Read {
        path: config.display().to_string(),
        source,
    })?;
    let config = SiteConfig::open(config)?;
    let study = wire::jobs::study(&proposed::file(&config, &asked.of.study))?;
    let consents = asked.consent.iter().map(|path| Given::read(path, &study));
    let consents = consents.collect::<Result<Vec<_>, _>>()?;
    let known = all(&config.folder, &config.site)?;
    judge(&config, &study, &known, now)?;
    let cell_min = config.policy.rules().cell_min;
    let freezing = Freezing {
        source: &config.source,
        cohorts: study
            .outcomes
            .iter()
            .map(|outcome| study.cohort(outcome))
            .collect(),
        cell_min,
    };
    let table = freezing.read(&mut |_| ()).map_err(StudyError::Data)?;
    let frozen = Frozen::new(&config, &study, &table, &consents)?;
    let sharing = Sharing {
        study: &study,
        patients: &frozen.patients,
        known: known.iter().filter(|one| one.tells(now)).collect(),
        least: usize::try_from(config.policy.rules().sites_min).unwrap_or(usize::MAX),
        consents: &consents,
    };
    sharing.judge()?;
    let random = random().map_err(|source| StudyError::Write {
        path: "/dev/urandom".to_owned(),
        source,
    })?;
    let approval = Approval {
        study: study.name.to_string(),
        digest: study.digest(),
        commitment: commitment(&random, &text, cell_min, &table),
        patients_at_most: table.patients().next_multiple_of(10),
        approved: now,
    };
    let signed = Signer::load(&config.tls)?.approve(approval)?;
    let kept = Signed::of(&signed, random, cell_min);
    let approval = serde_json::to_vec_pretty(&kept).map_err(json)?;
    write(&config, &study, &text, approval, frozen)?;
    Ok(signed)
}

/// What an approval keeps beside the study's text and the site's configuration.
struct Frozen {
    snapshot: Vec<u8>,
    patients: Fingerprint,
    /// Names and bytes of the other files.
    files: Vec<(String, Vec<u8>)>,
}

impl Frozen {
    fn new(
        config: &SiteConfig,
        study: &Study,
        table: &FrozenTable,
        consents: &[Given],
    ) -> Result<Self, StudyError> {
        let cell_min = config.policy.rules().cell_min;
        let identifiers = table.identifiers(&config.source);
        let places = table.with_outcome(&config.source, study, cell_min);
        let mut files = Vec::new();
        for (outcome, places) in places.map_err(StudyError::Data)?.iter().enumerate() {
            let own = places.iter().map(|place| &identifiers[*place]);
            let patients = key::fingerprint(&config.folder, own)?;
            files.push((with_outcome(outcome), patients.to_bytes()));
        }
        files.extend(
            consents
                .iter()
                .map(|one| (one.file_name(), one.bytes.clone())),
        );
        let snapshot =
            snapshot::to_bytes(table).map_err(|error| StudyError::Snapshot(error.to_string()))?;
        Ok(Self {
            snapshot,
            patients: key::fingerprint(&config.folder, identifiers)?,
            files,
        })
    }
}

/// Whether this site can be part of the study.
fn judge(
    config: &SiteConfig,
    study: &Study,
    known: &[Approved],
    now: Timestamp,
) -> Result<(), StudyError> {
    let same = known.iter().find(|one| one.study.name == study.name);
    if let Some(same) = same {
        let found = match (same.left, same.signed.approval.digest == study.digest()) {
            (true, _) => "a study of this name that this site has left",
            (false, true) => "an approval of it",
            (false, false) => "an approval of another text under this name",
        };
        return Err(StudyError::Known {
            name: study.name.to_string(),
            found: found.to_owned(),
            wanted: "a study of a new name",
        });
    }
    let refused = |what, found, wanted| {
        Err(StudyError::Refused {
            what,
            found,
            wanted,
        })
    };
    if study.is_over(now) {
        let wanted = "a day that is not over".to_owned();
        return refused("until", study.until.to_string(), wanted);
    }
    let certificate = wire::fingerprint(&config.tls)?;
    match own(study, &config.site) {
        None => {
            let names: Vec<&str> = study
                .hospitals
                .iter()
                .map(|one| one.name.as_str())
                .collect();
            let near = protocol::document::nearest(config.site.as_str(), &names);
            let near = near.map(|near| format!("; the nearest is {near:?}"));
            let wanted = format!("{:?}{}", config.site.as_str(), near.unwrap_or_default());
            return refused("hospitals", format!("{names:?}"), wanted);
        }
        Some(own) if own.certificate != certificate => {
            return refused(
                "hospitals",
                format!("{} for this site", own.certificate),
                certificate_meant(&certificate),
            );
        }
        Some(_) => {}
    }
    let rules = config.policy.rules();
    if study.precision == Precision::Exact && !rules.permissions.contains(&Permission::ExactSums) {
        let wanted = "\"rounded\", or exact_sums = true in the policy of this site".to_owned();
        return refused("precision", "\"exact\"".to_owned(), wanted);
    }
    let least = rules.sites_min;
    if (study.hospitals.len() as u64) < least {
        let found = format!("{} hospitals", study.hospitals.len());
        return refused(
            "hospitals",
            found,
            format!("{least} or more, as sites_min of this site says"),
        );
    }
    Ok(())
}

fn certificate_meant(certificate: &CertificateFingerprint) -> String {
    format!("{certificate}, which is this site's certificate")
}

fn random() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hexadecimal(&bytes))
}

/// Writes the folder of an approval: beside, then renamed, so that it is there whole or not at all.
fn write(
    config: &SiteConfig,
    study: &Study,
    configuration: &[u8],
    approval: Vec<u8>,
    frozen: Frozen,
) -> Result<(), StudyError> {
    let Frozen {
        snapshot,
        patients,
        mut files,
    } = frozen;
    files.extend([
        (STUDY.to_owned(), study.text.clone().into_bytes()),
        (CONFIGURATION.to_owned(), configuration.to_vec()),
        (SNAPSHOT.to_owned(), snapshot),
        (PATIENTS.to_owned(), patients.to_bytes()),
        (APPROVAL.to_owned(), approval),
    ]);
    let studies = config.folder.join(FOLDER);
    let folder = studies.join(study.name.as_str());
    let partial = studies.join(format!(".{}.partial", study.name));
    let written = (|| {
        private::folder(&config.folder)?;
        private::folder(&studies)?;
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        private::folder(&partial)?;
        for (name, bytes) in &files {
            let path = partial.join(name);
            private::write(&path, bytes)?;
            File::open(&path)?.sync_all()?;
        }
        fs::rename(&partial, &folder)?;
        File::open(&studies)?.sync_all()
    })();
    written.map_err(|source| {
        let _ = fs::remove_dir_all(&partial);
        StudyError::Write {
            path: folder.display().to_string(),
            source,
        }
    })
}

fn json(error: serde_json::Error) -> StudyError {
    StudyError::Snapshot(error.to_string())
}
