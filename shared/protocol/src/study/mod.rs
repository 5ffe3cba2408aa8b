//! The study: hospitals, outcomes and features, as one TOML text that every hospital approves once.
//!
//! A job of a study names one of its outcomes and some of its features. It names no hospitals: every run
//! asks all hospitals of the study.

mod draft;
pub(crate) mod parts;
mod read;
mod state;

use crate::cohort::{CohortSpecification, Feature, Grids, Judgements, OutcomeSpecification};
use crate::document::{Section, list, nearest_hint};
use crate::method::Method;
use crate::name::{NameError, OperatorName, SiteName};
use crate::time::Timestamp;
use privacy::Limits;
use sha2::{Digest, Sha256};
use similarity::numeric::precision::Precision;
use std::fmt;
use time::Date;

pub use draft::{DraftError, Party, by_nobody, nobody, of_job, pinned};
pub use parts::Parts;
pub(crate) use read::precision;
pub use state::{Approval, Consent, HospitalState, SignedApproval, Standing, StudyState};

/// Between the job and the study that travels with it.
const SEPARATOR: &str = "\n# The study, as its hospitals approved it:\n";
/// The method of the job that opens a study.
pub(crate) const CARD: &str = "card";
const DAY_MILLISECONDS: u64 = 24 * 60 * 60 * 1_000;

/// A study, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// The text that it was parsed from.
    pub text: String,
    /// Its name.
    pub name: StudyName,
    /// What it asks, in one line.
    pub title: String,
    /// Why, for whoever approves it.
    pub purpose: String,
    /// The last day of its runs.
    pub until: Date,
    /// Who may submit jobs of it.
    pub operators: Vec<Pinned<OperatorName>>,
    /// The hospitals, in the order of every list of its runs.
    pub hospitals: Vec<Pinned<SiteName>>,
    /// Earlier studies of the same hospitals that have patients in common with it.
    pub renews: Vec<StudyName>,
    /// Methods that its jobs may use, as job files spell them.
    pub methods: Vec<String>,
    /// Whether its jobs may grow forests that all hospitals have in common: then every number is counted on a grid.
    pub common_forests: bool,
    /// Folds of each hospital's patients.
    pub folds: u32,
    /// Partners of each patient where pairs are drawn, if its jobs may draw them.
    pub partners: Option<usize>,
    /// How finely the hospitals say what they add to a sum.
    pub precision: Precision,
    /// How much its runs may ask, all together. Its card does not count.
    pub limits: Limits,
    /// How much noise hides each patient's outcome in what is released of groups: the epsilon of differential privacy, of each outcome and each
    /// grouping. Less is more noise.
    pub outcome_epsilon: f64,
    /// The outcomes, of which a job names one.
    pub outcomes: Vec<StudyOutcome>,
    /// The features, in order.
    pub features: Vec<Feature>,
    /// Pairs of patients that physicians have judged, where the study has such.
    pub judgements: Option<Judgements>,
}

/// The name of a study, which is also the name of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StudyName(SiteName);

/// A party, and the certificate by which it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned<N> {
    /// The party.
    pub name: N,
    /// The fingerprint of its certificate.
    pub certificate: CertificateFingerprint,
}

/// SHA-256 of what a certificate is known by, its public key, which a renewed one keeps; written `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateFingerprint(String);

/// One outcome of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyOutcome {
    /// The name by which jobs choose it.
    pub name: String,
    /// What people read, its columns and coding.
    pub specification: OutcomeSpecification,
}

/// A part of a job that its study does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    /// The job's key.
    pub(crate) key: &'static str,
    /// What the job says.
    pub(crate) found: String,
    /// What the study has, with the nearest name.
    pub(crate) wanted: String,
}

impl StudyName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`NameError`] names what was found and what was wanted.
    pub fn new(text: &str) -> Result<Self, NameError> {
        SiteName::new(text).map(Self)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for StudyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl CertificateFingerprint {
    /// The fingerprint of a certificate.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        Self(format!("sha256:{}", hexadecimal(certificate)))
    }

    fn new(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?;
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 64 && digits.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for CertificateFingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Study {
    /// SHA-256 of the text, hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        hexadecimal(self.text.as_bytes())
    }

    /// Whether the study has ended: its last day is over, by universal time.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        let epoch = i64::from(time::OffsetDateTime::UNIX_EPOCH.date().to_julian_day());
        let last = i64::from(self.until.to_julian_day()) - epoch;
        i64::try_from(now.0 / DAY_MILLISECONDS).is_ok_and(|today| today > last)
    }

    /// The job's own text with this study's, as they travel and are signed.
    #[must_use]
    pub fn join(&self, job: &str) -> String {
        format!("{job}{SEPARATOR}{}", self.text)
    }

    /// The job that opens the study, as it travels.
    #[must_use]
    pub fn card(&self) -> String {
        let name = self.name.as_str();
        self.join(&format!(
            "name = \"{name}\"\nstudy = \"{name}\"\nmethod = \"{CARD}\"\n"
        ))
    }

    /// The names of the hospitals, in order.
    #[must_use]
    pub fn roster(&self) -> Vec<SiteName> {
        let hospitals = self.hospitals.iter();
        hospitals.map(|hospital| hospital.name.clone()).collect()
    }

    /// The outcome of this name.
    pub(crate) fn outcome(&self, name: &str) -> Result<&StudyOutcome, Outside> {
        let found = self.outcomes.iter().find(|outcome| outcome.name == name);
        found.ok_or_else(|| {
            let names = self.outcomes.iter().map(|outcome| outcome.name.as_str());
            self.lacks("outcome", name, names.collect())
        })
    }

    /// The features of these names, in the study's order; all where no names are given.
    pub(crate) fn chosen(&self, names: Option<&[String]>) -> Result<Vec<Feature>, Vec<Outside>> {
        let Some(names) = names else {
            return Ok(self.features.clone());
        };
        let known: Vec<&str> = self.features.iter().map(|one| one.name.as_str()).collect();
        let mut outside = Vec::new();
        for (index, name) in names.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                outside.push(self.lacks("features", name, known.clone()));
            } else if names[..index].contains(name) {
                outside.push(Outside {
                    key: "features",
                    found: format!("{name:?} twice"),
                    wanted: "each feature once".to_owned(),
                });
            }
        }
        if names.is_empty() {
            outside.push(Outside {
                key: "features",
                found: "none".to_owned(),
                wanted: "at least one feature of the study".to_owned(),
            });
        }
        if !outside.is_empty() {
            return Err(outside);
        }
        let chosen = self.features.iter();
        let chosen = chosen.filter(|feature| names.contains(&feature.name));
        Ok(chosen.cloned().collect())
    }

    /// Whether jobs may use this method.
    fn allows(&self, method: &str) -> Result<(), Outside> {
        if self.methods.iter().any(|allowed| allowed == method) {
            return Ok(());
        }
        let known = self.methods.iter().map(String::as_str).collect();
        Err(self.lacks("method", method, known))
    }

    /// Everything that a job could use of one outcome: the largest cohort of it.
    #[must_use]
    pub fn cohort(&self, outcome: &StudyOutcome) -> CohortSpecification {
        CohortSpecification {
            outcome: outcome.specification.clone(),
            features: self.features.clone(),
        }
    }

    /// What the hospitals count on grids of the patients who have this outcome, when the study opens.
    #[must_use]
    pub fn grids(&self, outcome: &StudyOutcome) -> Grids {
        Method::grids_of_all(&self.methods, &self.cohort(outcome), self.common_forests)
    }

    fn lacks(&self, key: &'static str, found: &str, known: Vec<&str>) -> Outside {
        let (names, near) = (list(&known), nearest_hint(found, &known));
        Outside {
            key,
            found: format!("{found:?}"),
            wanted: format!("one of {names} of the study {:?}{near}", self.name.as_str()),
        }
    }
}

impl Outside {
    /// Reports it as a problem of the job.
    pub(crate) fn report(&self, root: &Section<'_, '_>) {
        root.problem(self.key, &self.found, &self.wanted);
    }
}

/// The job's own text, and the text of its study where one travels with it.
#[must_use]
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(SEPARATOR) {
        Some((job, study)) => (job, Some(study)),
        None => (text, None),
    }
}

/// Whether a job's word for its study is the path of a file.
#[must_use]
pub fn is_file(word: &str) -> bool {
    word.len() > 5 && word.ends_with(".toml")
}

/// What a job says of its study: its name, or the path of a file; none where the job is of no study, or cannot be read.
#[must_use]
pub fn named(job: &str) -> Option<String> {
    let root = toml_span::parse(job).ok()?;
    let word = root.as_table()?.get("study")?.as_str()?;
    Some(word.to_owned())
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
