//! Who asked for a job: the operator's signature over it, by the key of their certificate.
//!
//! The coordinator passes a warrant on and cannot make one, so a site need not believe what it says about
//! operators: the site judges the certificate by its own authority, and takes the name from there.

use crate::identity::certificates::CredentialFiles;
use crate::identity::credentials::{
    Credentials, TlsError, client_verifier, provider, revocation_list, unusable,
};
use crate::identity::{Identity, IdentityError};
use protocol::message::Warrant;
use protocol::name::{NameError, OperatorName, RunId};
use rustls::SignatureScheme;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SigningKey;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use webpki::EndEntityCert;

/// What a signature is of begins with this, so that no other signature of the same key can stand for it.
const PURPOSE: &[u8] = b"kindred: an operator asks for a job, version 1\0";
/// Bytes of a run's identity, of which two hexadecimal digits each are written.
const RUN_BYTES: usize = 6;

/// Signs jobs with an operator's key.
#[derive(Clone)]
pub struct Signer {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
}

/// A signature by a certificate's key.
pub(crate) struct Signed {
    /// The certificate, and those between it and the authority, DER.
    pub(crate) chain: Vec<Vec<u8>>,
    /// How the signature was made, as TLS numbers it.
    pub(crate) scheme: u16,
    /// The signature.
    pub(crate) signature: Vec<u8>,
}

/// Judges warrants by an authority.
#[derive(Clone)]
pub struct Warrants {
    verifier: Arc<RwLock<Arc<dyn ClientCertVerifier>>>,
}

/// A key that cannot sign a job.
#[derive(Debug, thiserror::Error)]
#[error("the operator's key cannot sign: {0}")]
pub struct SignatureError(#[source] rustls::Error);

/// A warrant that proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum WarrantError {
    /// There is no certificate or no signature.
    #[error("the job is not signed by an operator")]
    Absent,
    /// The certificate does not hold under the authority, now.
    #[error("the operator's certificate is not accepted: {0}")]
    Certificate(#[source] rustls::Error),
    /// The certificate names nobody, or somebody else than an operator.
    #[error("the job is signed by a certificate that names no operator")]
    Identity(#[source] IdentityError),
    /// The certificate is another party's.
    #[error("the job is signed by {found}, wanted an operator")]
    Role {
        /// The party that the certificate names.
        found: String,
    },
    /// The signature is not of this job.
    #[error("the operator's signature is not of this job")]
    Signature,
    /// The run is not the one that the warrant stands for.
    #[error("the run is not the one that the operator signed")]
    Run,
}

impl Signer {
    /// Reads an operator's certificate and key.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load(files: &CredentialFiles) -> Result<Self, TlsError> {
        Self::new(&Credentials::read(files)?, &files.key)
    }

    pub(crate) fn new(credentials: &Credentials, path: &Path) -> Result<Self, TlsError> {
        let key = credentials.key.clone_key();
        let key = provider().key_provider.load_private_key(key);
        Ok(Self {
            chain: credentials.chain.clone(),
            key: key.map_err(|error| unusable(path, error.to_string()))?,
        })
    }

    /// The operator's word for a job.
    ///
    /// # Errors
    /// [`SignatureError`] where the key cannot sign.
    pub fn sign(&self, job: &str, seed: u64, token: &str) -> Result<Warrant, SignatureError> {
        let Signed {
            chain,
            scheme,
            signature,
        } = self.sign_bytes(&signed(job, seed, token))?;
        Ok(Warrant {
            token: token.to_owned(),
            chain,
            scheme,
            signature,
        })
    }

    /// The certificate's word for some bytes, which begin with what they are for.
    pub(crate) fn sign_bytes(&self, message: &[u8]) -> Result<Signed, SignatureError> {
        let schemes: Vec<SignatureScheme> = schemes().map(|(scheme, _)| scheme).collect();
        let signer = self
            .key
            .choose_scheme(&schemes)
            .ok_or_else(|| rustls::Error::General("its kind is unknown".to_owned()))
            .map_err(SignatureError)?;
        let signature = signer.sign(message);
        Ok(Signed {
            chain: self.chain.iter().map(|one| one.to_vec()).collect(),
            scheme: signer.scheme().into(),
            signature: signature.map_err(SignatureError)?,
        })
    }
}

impl Warrants {
    /// Reads the authority whose operators count.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load(authority: &Path) -> Result<Self, TlsError> {
        Ok(Self::new(client_verifier(authority, Vec::new())?))
    }

    /// As [`Warrants::load`], with a list of revoked certificates, whose holders ask for nothing any more.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load_revoking(authority: &Path, revoked: &Path) -> Result<Self, TlsError> {
        let list = revocation_list(revoked)?;
        Ok(Self::new(client_verifier(authority, list.signed)?))
    }

    pub(crate) fn new(verifier: Arc<dyn ClientCertVerifier>) -> Self {
        Self {
            verifier: Arc::new(RwLock::new(verifier)),
        }
    }

    /// Judges from now on as `other` does; so do all copies.
    pub(crate) fn renew(&self, other: &Self) {
        let verifier = other.verifier();
        *self
            .verifier
            .write()
            .unwrap_or_else(PoisonError::into_inner) = verifier;
    }

    fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        let verifier = self.verifier.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&verifier)
    }

    /// The operator who signed this job for this run.
    ///
    /// # Errors
    /// [`WarrantError`]: nobody may be believed to have asked for it.
    pub fn operator(
        &self,
        run: &RunId,
        job: &str,
        seed: u64,
        warrant: &Warrant,
    ) -> Result<OperatorName, WarrantError> {
        let operator = self.signer(job, seed, warrant)?;
        match run_id(&operator, &warrant.token) {
            Ok(own) if own == *run => Ok(operator),
            _ => Err(WarrantError::Run),
        }
    }

    /// The operator who signed this job, whatever its run.
    ///
    /// # Errors
    /// As [`Warrants::operator`].
    pub fn signer(
        &self,
        job: &str,
        seed: u64,
        warrant: &Warrant,
    ) -> Result<OperatorName, WarrantError> {
        let signed = Signed {
            chain: warrant.chain.clone(),
            scheme: warrant.scheme,
            signature: warrant.signature.clone(),
        };
        match self.holder(&signed, &self::signed(job, seed, &warrant.token))? {
            Identity::Operator(name) => Ok(name),
            other => Err(WarrantError::Role {
                found: other.to_string(),
            }),
        }
    }

    /// Who signed these bytes, by a certificate that holds now.
    pub(crate) fn holder(&self, signed: &Signed, message: &[u8]) -> Result<Identity, WarrantError> {
        let mut chain = signed.chain.iter().map(|one| one.as_slice().into());
        let certificate: CertificateDer<'_> = chain.next().ok_or(WarrantError::Absent)?;
        let between: Vec<CertificateDer<'_>> = chain.collect();
        self.verifier()
            .verify_client_cert(&certificate, &between, UnixTime::now())
            .map_err(WarrantError::Certificate)?;
        if !verifies(&certificate, signed, message) {
            return Err(WarrantError::Signature);
        }
        Identity::of_certificate(&certificate).map_err(WarrantError::Identity)
    }
}

/// A run's identity follows from who asks for it and their token.
///
/// # Errors
/// [`NameError`]; a digest always makes a name.
pub fn run_id(operator: &OperatorName, token: &str) -> Result<RunId, NameError> {
    let mut digest = Sha256::new();
    digest.update(operator.as_str());
    digest.update([0]);
    digest.update(token);
    let digest = digest.finalize();
    let digits: String = digest
        .iter()
        .take(RUN_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    RunId::new(&digits)
}

/// The bytes that are signed; the lengths make every field's end plain.
fn signed(job: &str, seed: u64, token: &str) -> Vec<u8> {
    let mut bytes = PURPOSE.to_vec();
    bytes.extend(seed.to_le_bytes());
    for text in [token, job] {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

pub(crate) fn verifies(certificate: &CertificateDer<'_>, signed: &Signed, message: &[u8]) -> bool {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else {
        return false;
    };
    schemes()
        .filter(|(scheme, _)| u16::from(*scheme) == signed.scheme)
        .flat_map(|(_, algorithms)| algorithms.iter())
        .any(|algorithm| {
            certificate
                .verify_signature(*algorithm, message, &signed.signature)
                .is_ok()
        })
}

type Algorithms = &'static [&'static dyn rustls_pki_types::SignatureVerificationAlgorithm];

/// What a signature may be made by.
fn schemes() -> impl Iterator<Item = (SignatureScheme, Algorithms)> {
    let algorithms = provider().signature_verification_algorithms;
    algorithms.mapping.iter().copied()
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Signer")
    }
}

impl std::fmt::Debug for Warrants {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Warrants")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::certificates::{Role, Validity, init, issue, revoke};
    use crate::identity::tls::ServerTls;
    use std::time::{Duration, SystemTime};

    const JOB: &str = "name = \"heart-disease\"\n";

    fn authority() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        init(folder.path(), Validity::days(1)).unwrap();
        folder
    }

    fn party(folder: &Path, role: &Role, name: &str) -> CredentialFiles {
        issue(folder, role, name, Validity::days(1)).unwrap()
    }

    fn lab(folder: &Path) -> (Signer, Warrants, RunId) {
        let files = party(folder, &Role::Operator, "lab");
        let run = run_id(&OperatorName::new("lab").unwrap(), "monday").unwrap();
        let warrants = Warrants::load(&files.authority).unwrap();
        (Signer::load(&files).unwrap(), warrants, run)
    }

    #[test]
    fn who_signed_a_job_is_known_from_its_warrant() {
        let folder = authority();
        let (signer, warrants, run) = lab(folder.path());
        let warrant = signer.sign(JOB, 7, "monday").unwrap();
        let operator = warrants.operator(&run, JOB, 7, &warrant).unwrap();
        assert_eq!(operator.as_str(), "lab");
    }

    #[test]
    fn a_warrant_is_of_one_job_one_seed_one_token_and_one_run() {
        let folder = authority();
        let (signer, warrants, run) = lab(folder.path());
        let warrant = signer.sign(JOB, 7, "monday").unwrap();
        let refused = |run: &RunId, job: &str, seed, warrant: &Warrant| {
            warrants.operator(run, job, seed, warrant).unwrap_err()
        };
        let wrong = |error| matches!(error, WarrantError::Signature);
        assert!(wrong(refused(&run, "name = \"other\"\n", 7, &warrant)));
        assert!(wrong(refused(&run, JOB, 8, &warrant)));
        let token = Warrant {
            token: "tuesday".to_owned(),
            ..warrant.clone()
        };
        assert!(wrong(refused(&run, JOB, 7, &token)));
        let mut scheme = warrant.clone();
        scheme.scheme = 0x0806;
        assert!(wrong(refused(&run, JOB, 7, &scheme)));
        for place in 0..warrant.signature.len() {
            let mut changed = warrant.clone();
            changed.signature[place] ^= 1;
            assert!(wrong(refused(&run, JOB, 7, &changed)), "byte {place}");
        }
        let other = RunId::new("0123456789ab").unwrap();
        assert!(matches!(
            refused(&other, JOB, 7, &warrant),
            WarrantError::Run
        ));
        let none = Warrant::default();
        assert!(matches!(refused(&run, JOB, 7, &none), WarrantError::Absent));
    }

    #[test]
    fn only_operators_of_the_own_authority_and_of_today_can_sign() {
        let (folder, foreign) = (authority(), authority());
        let (_, warrants, run) = lab(folder.path());
        let refused = |files: &CredentialFiles| {
            let warrant = Signer::load(files).unwrap().sign(JOB, 7, "monday");
            warrants
                .operator(&run, JOB, 7, &warrant.unwrap())
                .unwrap_err()
        };
        let site = refused(&party(folder.path(), &Role::Site, "north"));
        assert!(matches!(site, WarrantError::Role { .. }), "{site}");
        let stranger = refused(&party(foreign.path(), &Role::Operator, "lab"));
        assert!(
            matches!(stranger, WarrantError::Certificate(_)),
            "{stranger}"
        );
        let now = SystemTime::now();
        let past = Validity {
            from: now - Duration::from_secs(7_200),
            until: now - Duration::from_secs(60),
        };
        let late = refused(&issue(folder.path(), &Role::Operator, "late", past).unwrap());
        assert!(matches!(late, WarrantError::Certificate(_)), "{late}");
        // Another operator's signature beside this one's certificate.
        let lab = Signer::load(&CredentialFiles::in_folder(
            &folder.path().join("operator-lab"),
        ));
        let mallory = Signer::load(&party(folder.path(), &Role::Operator, "mallory")).unwrap();
        let mut mixed = mallory.sign(JOB, 7, "monday").unwrap();
        mixed.chain = lab.unwrap().sign(JOB, 7, "monday").unwrap().chain;
        let mixed = warrants.operator(&run, JOB, 7, &mixed).unwrap_err();
        assert!(matches!(mixed, WarrantError::Signature), "{mixed}");
    }
    /// The coordinator judges signatures by its list of revoked certificates as it is now, also in a run that goes on.
    #[test]
    fn whoever_is_revoked_is_not_believed_once_the_list_was_read_again() {
        let folder = authority();
        let (signer, _, run) = lab(folder.path());
        party(folder.path(), &Role::Operator, "other");
        let list = revoke(folder.path(), &Role::Operator, "other").unwrap();
        let hosts = vec!["localhost".to_owned()];
        let main = party(folder.path(), &Role::Coordinator { hosts }, "main");
        let mut tls = ServerTls::load_revoking(&main, &list).unwrap();
        let warrants = tls.warrants();
        let warrant = signer.sign(JOB, 7, "monday").unwrap();
        warrants.operator(&run, JOB, 7, &warrant).unwrap();
        revoke(folder.path(), &Role::Operator, "lab").unwrap();
        assert!(tls.reread());
        let refused = warrants.operator(&run, JOB, 7, &warrant).unwrap_err();
        assert!(matches!(refused, WarrantError::Certificate(_)), "{refused}");
    }
}
