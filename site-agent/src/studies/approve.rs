//! How a site approves a study.

use super::consent::Given;
use super::partial::Partial;
use super::sharing::Sharing;
use super::{
    APPROVAL, Approved, CONFIGURATION, PAIRS, PATIENTS, STUDY, Signed, all, commitment, own,
    proposed, with_outcome,
};
use crate::books::chain::{ChainError, hexadecimal};
use crate::books::key;
use crate::cli::StudyApprove;
use crate::config::{ConfigError, SiteConfig};
use crate::source::{self, CohortProblems, Damaged, Freezing, FrozenPatients, FrozenRows, Judged};
use privacy::{Fingerprint, Permission, Rules};
use protocol::study::{Approval, CertificateFingerprint, SignedApproval, Study};
use protocol::time::Timestamp;
use rayon::prelude::*;
use similarity::numeric::precision::Precision;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use wire::jobs::StudyFileError;
use wire::{SignatureError, Signer, TlsError};

const RANDOM_BYTES: usize = 32;
/// What people do where their declarations and a study differ.
pub(super) const ADVICE: &str = "Correct site.toml where the study is right. Where it is not, send its operator what \
    `kindred-site-agent study draft --from site.toml` prints: no value of a patient is in it.";

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
    /// What the site declares does not fit the study, and perhaps its source neither.
    #[error("the study does not fit this site:\n{0}\n{ADVICE}")]
    Differs(CohortProblems),
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
    /// Rows that waited on the disk cannot be read again.
    #[error(transparent)]
    Rows(#[from] Damaged),
    /// The snapshot could not be made.
    #[error("the snapshot could not be made: {0}")]
    Snapshot(String),
}

/// Approves a study, which is a file or the name of one that was proposed: freezes its patients and signs what they are.
///
/// # Errors
/// [`StudyError`]; then nothing is approved.
pub fn approve(asked: &StudyApprove, now: Timestamp) -> Result<SignedApproval, StudyError> {
    let config: &Path = &asked.of.config;
    let text = fs::read(config).map_err(|source| ConfigError::Read {
        path: config.display().to_string(),
        source,
    })?;
    let config = SiteConfig::open(config)?;
    let study = as_reviewed(&config, &asked.of.study)?;
    let consents = asked.consent.iter().map(|path| Given::read(path, &study));
    let consents = consents.collect::<Result<Vec<_>, _>>()?;
    let known = all(&config.folder, &config.site)?;
    judge(&config, &study, &known, now, asked.confirm_units)?;
    let cell_min = config.policy.rules().cell_min;
    let freezing = Freezing::of_study(&config.source, &study, cell_min);
    let folder = Partial::begin(&config, &study)?;
    let (aside, room) = folder.aside()?;
    let FrozenPatients { rows, outcomes } =
        freezing
            .read(room)
            .map_err(|problems| match freezing.declared().is_empty() {
                true => StudyError::Data(problems),
                false => StudyError::Differs(problems),
            })?;
    let (snapshot, known_patients) = rayon::join(
        || folder.freeze(&rows),
        || {
            let pairs = judged(&config, &study, &rows)?;
            let patients = Patients::new(&config, &study, &rows, &outcomes)?;
            Ok::<_, StudyError>((pairs, patients))
        },
    );
    let (pairs, patients) = known_patients?;
    let sharing = Sharing {
        study: &study,
        patients: &patients.all,
        known: known.iter().filter(|one| one.may_reveal(now)).collect(),
        least: usize::try_from(config.policy.rules().sites_min).unwrap_or(usize::MAX),
        consents: &consents,
        columns: &config.source.columns,
    };
    sharing.judge()?;
    let random = random().map_err(|source| unwritten(Path::new("/dev/urandom"), source))?;
    let patients_at_most = (outcomes.len() as u64).next_multiple_of(10);
    drop(outcomes);
    let snapshot = snapshot.and_then(|written| folder.keep(written, (rows, aside)))?;
    let parts = (text.as_slice(), pairs.as_deref());
    let commitment = commitment(&random, parts, cell_min, |write| write(&snapshot));
    let approval = Approval {
        study: study.name.to_string(),
        digest: study.digest(),
        commitment,
        patients_at_most,
        approved: now,
    };
    let signed = Signer::load(&config.tls)?.approve(approval)?;
    let kept = Signed::of(&signed, random, cell_min);
    let approval = serde_json::to_vec_pretty(&kept).map_err(json)?;
    let consents = consents.into_iter().map(|one| (one.file_name(), one.bytes));
    patients.keep(&folder)?;
    let mut files: Vec<(String, Vec<u8>)> = consents.collect();
    files.extend(pairs.map(|bytes| (PAIRS.to_owned(), bytes)));
    files.extend([
        (STUDY.to_owned(), study.text.clone().into_bytes()),
        (CONFIGURATION.to_owned(), text),
        (APPROVAL.to_owned(), approval),
    ]);
    folder.complete(&files)?;
    Ok(signed)
}

/// The study that a file holds, or that was proposed by a name: then with the text that was reviewed, where one was.
fn as_reviewed(config: &SiteConfig, word: &Path) -> Result<Study, StudyError> {
    let study = wire::jobs::study(&proposed::file(config, word))?;
    match proposed::is_another(config, word, &study)? {
        false => Ok(study),
        true => Err(StudyError::Known {
            name: study.name.to_string(),
            found: "a text that has changed since `study review` showed it".to_owned(),
            wanted: "the text that was reviewed: review it again, as it is now",
        }),
    }
}

/// The file of pairs that physicians have judged, where the study has such: all its patients are those of the study.
fn judged(
    config: &SiteConfig,
    study: &Study,
    rows: &FrozenRows,
) -> Result<Option<Vec<u8>>, StudyError> {
    if study.judgements.is_none() {
        return Ok(None);
    }
    let (bytes, name) = Judged::bytes_of_site(&config.source).map_err(StudyError::Data)?;
    let judged = Judged::read(&bytes, &name).map_err(StudyError::Data)?;
    judged
        .check(rows, &config.source)
        .map_err(StudyError::Data)?;
    Ok(Some(bytes))
}

/// Who the patients of a study are.
struct Patients {
    all: Fingerprint,
    /// Those with each outcome.
    with_outcome: Vec<Fingerprint>,
}

impl Patients {
    fn new(
        config: &SiteConfig,
        study: &Study,
        rows: &FrozenRows,
        outcomes: &[u32],
    ) -> Result<Self, StudyError> {
        // The first makes the site's key, where there is none.
        let key = key::of_fingerprints(&config.folder)?;
        let mut digests: Vec<u64> = Vec::with_capacity(outcomes.len());
        rows.identifiers(&config.source, &mut |_, identifiers| {
            let identifiers = identifiers.par_iter();
            digests.par_extend(identifiers.map(|one| key.digest(one)));
        })?;
        let of_outcome = |place: usize| {
            let own = digests.par_iter().zip(outcomes);
            let own = own.filter(|(_, outcomes)| *outcomes >> place & 1 == 1);
            Fingerprint::of_digests(own.map(|(digest, _)| *digest).collect())
        };
        Ok(Self {
            with_outcome: (0..study.outcomes.len()).map(of_outcome).collect(),
            all: Fingerprint::of_digests(digests),
        })
    }

    /// Writes the files that keep them, one by one: each has as many bytes again while it is written.
    fn keep(self, folder: &Partial) -> Result<(), StudyError> {
        for (place, one) in self.with_outcome.into_iter().enumerate() {
            folder.write(&with_outcome(place), &one.to_bytes())?;
        }
        folder.write(PATIENTS, &self.all.to_bytes())
    }
}

/// Whether this site can be part of the study.
fn judge(
    config: &SiteConfig,
    study: &Study,
    known: &[Approved],
    now: Timestamp,
    units_are_confirmed: bool,
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
    beyond_the_policy(study, rules)?;
    judge_units(config, study, units_are_confirmed)
}

/// Whether the numbers of this site are in known units: a site declares them, or whoever approves confirms them.
fn judge_units(config: &SiteConfig, study: &Study, confirmed: bool) -> Result<(), StudyError> {
    let undeclared = source::undeclared_units(&config.source, &study.features);
    if undeclared.is_empty() || confirmed {
        return Ok(());
    }
    Err(StudyError::Refused {
        what: "units",
        found: format!("no unit in site.toml for {}", undeclared.join(", ")),
        wanted:
            "unit = \"...\" of each column, or --confirm-units if the numbers are in these units"
                .to_owned(),
    })
}

/// Whether this site's policy allows the study's operators, methods and limits: what it refuses beforehand, no run could ask.
fn beyond_the_policy(study: &Study, rules: &Rules) -> Result<(), StudyError> {
    let refused = |what, found, wanted| {
        Err(StudyError::Refused {
            what,
            found,
            wanted,
        })
    };
    let operators = study.operators.iter().map(|one| one.name.as_str());
    let methods = study.methods.iter().map(String::as_str);
    let lists: [(_, Vec<&str>, _); 2] = [
        ("operators", operators.collect(), &rules.operators),
        ("methods", methods.collect(), &rules.methods),
    ];
    for (what, names, allowed) in lists {
        let missing: Vec<&&str> = names.iter().filter(|name| !allowed.allows(name)).collect();
        if !missing.is_empty() {
            let wanted = format!("{allowed}, as {what} in the policy of this site says");
            return refused(what, format!("{missing:?}"), wanted);
        }
    }
    if study.outcome_epsilon > rules.outcome_epsilon_max {
        let wanted = format!(
            "at most {}, as outcome_epsilon_max in the policy of this site says",
            rules.outcome_epsilon_max
        );
        let found = format!("outcome_epsilon = {}", study.outcome_epsilon);
        return refused("limits", found, wanted);
    }
    match study.limits.beyond(&rules.ceilings).next() {
        None => Ok(()),
        Some(one) => {
            let wanted = format!(
                "at most {}, as {} in the policy of this site says",
                one.most, one.ceiling
            );
            refused("limits", format!("{} = {}", one.key, one.asked), wanted)
        }
    }
}

fn certificate_meant(certificate: &CertificateFingerprint) -> String {
    format!("{certificate}, which is this site's certificate")
}

fn random() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hexadecimal(&bytes))
}

pub(super) fn unwritten(folder: &Path, source: io::Error) -> StudyError {
    StudyError::Write {
        path: folder.display().to_string(),
        source,
    }
}

fn json(error: serde_json::Error) -> StudyError {
    StudyError::Snapshot(error.to_string())
}
