//! The word of a hospital that its numbers may be worked out from several studies, as a file that it gives to the others.

use super::StudyError;
use super::proposed;
use crate::config::SiteConfig;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::message::Warrant;
use protocol::name::SiteName;
use protocol::study::{Consent, Study};
use protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use wire::Signer;

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    study: String,
    /// SHA-256 of the study's text, 64 digits.
    digest: String,
    hospital: String,
    /// Milliseconds since the Unix epoch.
    agreed: u64,
    /// Certificates from the hospital's to the authority's, base64.
    chain: Vec<String>,
    scheme: u16,
    signature: String,
}

/// A consent of another hospital, or of this one, whose signature has yet to be held to a certificate.
pub(super) struct Given {
    path: PathBuf,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
    consent: Consent,
    word: Warrant,
}

/// Writes this site's consent to a study, which is a file or the name of one that was proposed; gives the file.
///
/// # Errors
/// [`StudyError`] where the study cannot be read, or the file is there already or cannot be written.
pub fn give(
    config: &SiteConfig,
    study: &Path,
    out: &Path,
    now: Timestamp,
) -> Result<PathBuf, StudyError> {
    let study = wire::jobs::study(&proposed::file(config, study))?;
    let consent = Consent {
        study: study.name.to_string(),
        digest: study.digest(),
        hospital: config.site.to_string(),
        agreed: now,
    };
    let word = Signer::load(&config.tls)?.agree(&consent)?;
    let written = Written {
        study: consent.study,
        digest: consent.digest,
        hospital: consent.hospital,
        agreed: consent.agreed.0,
        chain: word.chain.iter().map(|one| STANDARD.encode(one)).collect(),
        scheme: word.scheme,
        signature: STANDARD.encode(&word.signature),
    };
    let failed = |source| StudyError::Write {
        path: out.display().to_string(),
        source,
    };
    let text = serde_json::to_vec_pretty(&written).map_err(|error| failed(error.into()))?;
    let mut file = File::create_new(out).map_err(failed)?;
    file.write_all(&text).map_err(failed)?;
    Ok(out.to_owned())
}

impl Given {
    /// Reads a file, and judges that it is of this study.
    pub(super) fn read(path: &Path, study: &Study) -> Result<Self, StudyError> {
        let bytes = fs::read(path)
            .map_err(|error| problem(path, &error.to_string(), "a file of `study consent`"))?;
        let written: Option<Written> = serde_json::from_slice(&bytes).ok();
        let parsed = written.and_then(Written::into_consent);
        let (consent, word) =
            parsed.ok_or_else(|| problem(path, "something else", "a file of `study consent`"))?;
        let digest = study.digest();
        if consent.digest != digest {
            return Err(problem(
                path,
                &format!(
                    "the study {:?} with the digest {}",
                    consent.study, consent.digest
                ),
                &format!(
                    "the study {:?} with the digest {digest}",
                    study.name.as_str()
                ),
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            bytes,
            consent,
            word,
        })
    }

    /// The hospital, where one of its certificates in these studies has signed.
    pub(super) fn hospital<'s>(
        &self,
        mut studies: impl Iterator<Item = &'s Study>,
    ) -> Result<SiteName, StudyError> {
        let mut named = Vec::new();
        let is_signed = studies.any(|study| {
            let own = study
                .hospitals
                .iter()
                .filter(|one| one.name.as_str() == self.consent.hospital);
            own.into_iter().any(|one| {
                named.push(one.certificate.clone());
                wire::has_agreed(&one.certificate, &self.consent, &self.word)
            })
        });
        let name = SiteName::new(&self.consent.hospital).ok();
        if let Some(name) = name.filter(|_| is_signed) {
            return Ok(name);
        }
        let signer = self
            .word
            .chain
            .first()
            .map(|one| wire::fingerprint_of_der(one));
        let found = signer.map_or_else(
            || "no certificate".to_owned(),
            |one| format!("a word by {one}"),
        );
        named.dedup();
        let wanted: Vec<String> = named.iter().map(ToString::to_string).collect();
        let wanted = match wanted.is_empty() {
            true => "of a hospital of these studies".to_owned(),
            false => format!(
                "by {}, as the studies name the certificate of {}",
                wanted.join(" or "),
                self.consent.hospital
            ),
        };
        Err(problem(&self.path, &found, &wanted))
    }

    /// It is of a hospital that nobody reads.
    pub(super) fn is_needless(&self) -> StudyError {
        let found = format!(
            "the consent of {}, a hospital that these studies do not expose",
            self.consent.hospital
        );
        problem(
            &self.path,
            &found,
            "consents of hospitals that would be exposed",
        )
    }

    /// The name of the file by which it is kept.
    pub(super) fn file_name(&self) -> String {
        format!("consent.{}.json", self.consent.hospital)
    }
}

impl Written {
    fn into_consent(self) -> Option<(Consent, Warrant)> {
        let chain = self.chain.iter().map(|one| STANDARD.decode(one).ok());
        let word = Warrant {
            token: String::new(),
            chain: chain.collect::<Option<_>>()?,
            scheme: self.scheme,
            signature: STANDARD.decode(&self.signature).ok()?,
        };
        let consent = Consent {
            study: self.study,
            digest: self.digest,
            hospital: SiteName::new(&self.hospital).ok()?.to_string(),
            agreed: Timestamp(self.agreed),
        };
        Some((consent, word))
    }
}

fn problem(path: &Path, found: &str, wanted: &str) -> StudyError {
    StudyError::Consent {
        path: path.display().to_string(),
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    }
}
