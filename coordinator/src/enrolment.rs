//! How parties get certificates for keys of their own: tokens, the port that signs, and the operator's side.

use crate::cli;
use crate::config::{ConfigError, CoordinatorConfig, Enrolling, OperatorConfig};
use crate::exit::UsageError;
use crate::serve::ServeError;
use service::proxy::{DialError, Proxy};
use service::signals::{Heard, Signals};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use wire::certificates::{self, CertificateError, Role};
use wire::enrolment::{self, EnrolError, Signing, Token, TokenError};
use wire::{Address, CredentialFiles, Identity, ServerTls, private};

/// A party that could not be invited, or an operator who has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EnrolmentError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration does not say where or by which authority certificates are signed.
    #[error("{}: found no {wanted}, wanted it", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        wanted: &'static str,
    },
    /// The authority cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A host that cannot be dialled.
    #[error(transparent)]
    Address(#[from] wire::AddressError),
    /// The word is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is another party's, or the command line lacks one.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The own certificate, or the proxy's password, cannot be used.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The authority cannot be reached, or refuses.
    #[error(transparent)]
    Enrol(#[from] EnrolError),
    /// A file could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A token for a site or an operator, of the authority and the ports that the configuration names.
///
/// # Errors
/// [`EnrolmentError`].
pub fn invite(arguments: &cli::Invite) -> Result<Token, EnrolmentError> {
    let party = arguments.party.role()?;
    let config = CoordinatorConfig::open(&arguments.config)?;
    let party = (&party.0, party.1);
    token(&arguments.config, &config, party, arguments.hours)
}

/// A token for a party, by the configuration of this path.
pub(crate) fn token(
    path: &Path,
    config: &CoordinatorConfig,
    (role, name): (&Role, &str),
    hours: u32,
) -> Result<Token, EnrolmentError> {
    let absent = |wanted| EnrolmentError::Absent {
        path: path.to_owned(),
        wanted,
    };
    let enrolling = config.enrolment.as_ref();
    let enrolling = enrolling.ok_or_else(|| absent("[enrolment]"))?;
    let hosts = certificates::hosts(&config.tls.certificate)?;
    let host = hosts.first();
    let host = host.ok_or_else(|| absent("host in the coordinator's certificate"))?;
    let place = |port| Address::of_host(host, port);
    let places = (
        place(config.listen.port())?,
        place(enrolling.listen.port())?,
    );
    let until = SystemTime::now() + Duration::from_secs(3600 * u64::from(hours));
    Ok(certificates::invite(
        &enrolling.folder,
        role,
        name,
        places,
        until,
    )?)
}

/// Binds the port that signs; serving it ends once `stop` is ready.
///
/// # Errors
/// [`ServeError`] where the files or the port cannot be used.
pub fn open<Stop: Future<Output = ()>>(
    tls: &CredentialFiles,
    enrolling: &Enrolling,
    stop: Stop,
) -> Result<impl Future<Output = Result<(), wire::ServeError>> + use<Stop>, ServeError> {
    certificates::check_authority(&enrolling.folder)?;
    let tls = ServerTls::load_enrolling(tls, &enrolling.folder)?;
    let listener: TcpListener = wire::listen(enrolling.listen)?;
    let signing = Signing {
        folder: enrolling.folder.clone(),
        days: enrolling.days,
    };
    tracing::info!(listen = %enrolling.listen, "certificates are signed for whoever has a token");
    Ok(enrolment::serve(listener, tls, signing, stop))
}

/// Signs until a signal says stop.
///
/// # Errors
/// [`ServeError`], also where the configuration has no `[enrolment]`.
pub async fn serve(arguments: &cli::CertificatesServe) -> Result<(), ServeError> {
    let mut signals = Signals::listen(arguments.until_stdin_closes).map_err(ServeError::Signals)?;
    let config = CoordinatorConfig::open(&arguments.config)?;
    let Some(enrolling) = &config.enrolment else {
        let path = arguments.config.to_path_buf();
        return Err(ServeError::NoEnrolment { path });
    };
    let stop = async { while signals.next().await == Heard::Reload {} };
    Ok(open(&config.tls, enrolling, stop)?.await?)
}

/// What an operator has after enrolling.
#[derive(Debug)]
pub struct Enrolled {
    /// Certificate, key and authority.
    pub files: CredentialFiles,
    /// The configuration; one that was there already stays as it is.
    pub config: PathBuf,
}

/// Makes an operator's key, has it certified by a token, and writes the configuration.
///
/// # Errors
/// [`EnrolmentError`].
pub async fn enrol(arguments: &cli::Enrol) -> Result<Enrolled, EnrolmentError> {
    let token = Token::parse(&arguments.token)?;
    let Identity::Operator(name) = &token.identity else {
        let found = &token.identity;
        let text = format!(
            "found a token for {found}, wanted one for an operator; a hospital enrols by `kindred-site-agent enrol`"
        );
        return Err(UsageError(text).into());
    };
    let folder = arguments.out.clone();
    let folder = folder.unwrap_or_else(|| PathBuf::from(format!("operator-{name}")));
    let proxy = arguments.proxy.named()?;
    let way = proxy.as_ref().map(Proxy::open).transpose()?;
    let files = enrolment::enrol(&token, &folder, way.as_ref()).await?;
    let path = folder.join("operator.toml");
    if !path.exists() {
        let mut text = operator_config(&(token.coordinator, token.enrolment));
        if let Some(proxy) = proxy {
            text += &format!("\n{proxy}");
        }
        write(&path, &text)?;
    }
    OperatorConfig::open(&path)?;
    Ok(Enrolled {
        files,
        config: path,
    })
}

/// Has the operator's certificate renewed for its key, and puts it in its place.
///
/// # Errors
/// [`EnrolmentError`].
pub async fn renew(arguments: &cli::Renew) -> Result<CredentialFiles, EnrolmentError> {
    let config = OperatorConfig::open(&arguments.config)?;
    let absent = || EnrolmentError::Absent {
        path: arguments.config.to_path_buf(),
        wanted: "enrolment",
    };
    let address = config.enrolment.as_ref().ok_or_else(absent)?;
    enrolment::renew(&config.dial(address)?, &config.tls).await?;
    Ok(config.tls)
}

/// An operator's configuration, in the folder of its certificate.
pub(crate) fn operator_config((coordinator, enrolment): &(Address, Address)) -> String {
    format!(
        "# A researcher: kindred-coordinator study and job. Relative paths are relative to this file.\n\n\
         coordinator = \"{coordinator}\"\n\
         enrolment = \"{enrolment}\"    # where `kindred-coordinator renew` asks\n\n\
         [tls]\n\
         ca = \"ca.pem\"\n\
         certificate = \"certificate.pem\"\n\
         key = \"key.pem\"\n"
    )
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), EnrolmentError> {
    private::replace(path, text.as_bytes()).map_err(|source| EnrolmentError::Write {
        path: path.to_owned(),
        source,
    })
}
