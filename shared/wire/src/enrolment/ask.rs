//! The party's side: it makes its key, and asks for a certificate.

use super::{Token, pinned};
use crate::connection::dial::{Dial, Proxy, Way};
use crate::connection::failing::ConnectionError;
use crate::connection::status::with_version;
use crate::generated as pb;
use crate::identity::Identity;
use crate::identity::certificates::{self, CertificateError, CredentialFiles};
use crate::identity::credentials::{TlsError, client_verifier};
use crate::private::{self, OpenKey};
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a party has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The authority cannot be reached, or refuses.
    #[error("{}: {source}", source.code())]
    Connection {
        /// Why.
        #[from]
        source: ConnectionError,
    },
    /// A key or certificate cannot be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The certificate or its authority cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Others may read the key.
    #[error(transparent)]
    OpenKey(#[from] OpenKey),
    /// A file could not be read or written.
    #[error("{} could not be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The answer is no certificate of this authority for this party and key.
    #[error(
        "found an answer {found}, wanted this party's certificate, for its key, by the authority that it knows"
    )]
    Answer {
        /// What is wrong with it.
        found: &'static str,
    },
}

/// Makes a key in `folder`, has it certified by a token, and gives the three files. The key does not leave. An enrolment that
/// was interrupted goes on with its key.
///
/// # Errors
/// [`EnrolError`], also where there is a certificate already.
pub async fn enrol(
    token: &Token,
    folder: &Path,
    proxy: Option<&Proxy>,
) -> Result<CredentialFiles, EnrolError> {
    let files = CredentialFiles::in_folder(folder);
    if files.certificate.exists() {
        let path = files.certificate;
        return Err(CertificateError::Exists { path }.into());
    }
    private::folder(folder).map_err(failed(folder))?;
    let key = match files.key.exists() {
        true => read_key(&files.key)?,
        false => make_key(&files.key)?,
    };
    let tls = pinned::config(token.authority).map_err(|error| ConnectionError::Tls {
        reason: error.to_string(),
    })?;
    let way = Way {
        address: &token.enrolment,
        tls: Arc::new(tls),
        proxy,
    };
    let line = way.connect().await?;
    let request = with_version(pb::EnrolRequest {
        secret: token.secret.bytes().to_vec(),
        request: certificates::request(&token.identity, &key)?,
    });
    let answer = line.enrolment().enrol(request).await;
    let answer = answer
        .map_err(|status| ConnectionError::of_status(&status, &line.fault, "a certificate"))?;
    let pb::Certified {
        certificate,
        authority,
    } = answer.into_inner();
    let found = "of another authority";
    let der = CertificateDer::from_pem_slice(authority.as_bytes());
    let der = der.map_err(|_| EnrolError::Answer { found })?;
    if Sha256::digest(&der)[..] != token.authority {
        return Err(EnrolError::Answer { found });
    }
    let write =
        |path: &Path, text: &str| private::replace(path, text.as_bytes()).map_err(failed(path));
    write(&files.authority, &authority)?;
    judge(&certificate, &token.identity, &key, &files.authority)?;
    write(&files.certificate, &certificate)?;
    Ok(files)
}

/// Has the certificate of `files` renewed for its key where `dial` leads, and puts the new one in its place.
///
/// # Errors
/// [`EnrolError`]; then the old certificate stays.
pub async fn renew(dial: &Dial, files: &CredentialFiles) -> Result<(), EnrolError> {
    let key = read_key(&files.key)?;
    let identity = dial.tls.identity();
    let line = dial.connect().await?;
    let request = with_version(pb::RenewRequest {
        request: certificates::request(identity, &key)?,
    });
    let answer = line.enrolment().renew(request).await;
    let answer = answer
        .map_err(|status| ConnectionError::of_status(&status, &line.fault, "a certificate"))?;
    let renewed = answer.into_inner().certificate;
    judge(&renewed, identity, &key, &files.authority)?;
    let path = &files.certificate;
    private::replace(path, renewed.as_bytes()).map_err(failed(path))
}

/// Refuses an answer that is not what was asked for.
fn judge(
    certificate: &str,
    identity: &Identity,
    key: &KeyPair,
    authority: &Path,
) -> Result<(), EnrolError> {
    let wrong = |found| EnrolError::Answer { found };
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
    let certificate = certificate.map_err(|_| wrong("that is no certificate"))?;
    if Identity::of_certificate(&certificate).as_ref() != Ok(identity) {
        return Err(wrong("for another party"));
    }
    if Identity::fingerprint(&certificate) != certificates::fingerprint(key) {
        return Err(wrong("for another key"));
    }
    client_verifier(authority, Vec::new())?
        .verify_client_cert(&certificate, &[], UnixTime::now())
        .map_err(|_| wrong("by another authority, or not valid by this machine's clock"))?;
    Ok(())
}

fn make_key(path: &Path) -> Result<KeyPair, EnrolError> {
    let key = certificates::new_key()?;
    let mut options = OpenOptions::new();
    let file = private::open(path, options.write(true).create_new(true));
    let written = file.and_then(|mut file| {
        file.write_all(key.serialize_pem().as_bytes())?;
        file.sync_all()
    });
    written.map_err(failed(path))?;
    Ok(key)
}

fn read_key(path: &Path) -> Result<KeyPair, EnrolError> {
    private::check_key(path)?;
    let text = std::fs::read_to_string(path).map_err(failed(path))?;
    KeyPair::from_pem(&text).map_err(|_| {
        let path = path.to_owned();
        CertificateError::Unreadable { path }.into()
    })
}

fn failed(path: &Path) -> impl Fn(io::Error) -> EnrolError + '_ {
    |source| EnrolError::File {
        path: path.to_owned(),
        source,
    }
}
