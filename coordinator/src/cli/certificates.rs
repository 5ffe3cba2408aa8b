//! The command line of `certificates`, `enrol` and `renew`.

use super::{CoordinatorConfig, OperatorConfig};
use crate::exit::UsageError;
use clap::{Args, Subcommand, value_parser};
use service::proxy::ProxyArguments;
use std::path::PathBuf;
use wire::certificates::Role;

/// The longest life of a certificate, a hundred years.
const DAYS_MAX: i64 = 36_500;

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Names and addresses by which the coordinator is reached, separated by commas; tokens have the first
    #[arg(long, value_name = "HOST", value_delimiter = ',', required = true)]
    pub hosts: Vec<String>,
    /// Hospitals that are to enrol, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub sites: Vec<String>,
    /// Operators who work on this machine, separated by commas; others enrol by a token
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub operators: Vec<String>,
    /// Port for sites and operators
    #[arg(long, default_value_t = 7443)]
    pub port: u16,
    /// Port for enrolment
    #[arg(long, default_value_t = 7444)]
    pub enrolment_port: u16,
    /// Folder of the authority, the certificates and the configuration
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `enrol`.
#[derive(Debug, Args)]
pub struct Enrol {
    /// The token, as `certificates invite --operator` printed it
    pub token: String,
    /// Folder of the key, the certificate and operator.toml [default: operator-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The way out.
    #[command(flatten)]
    pub proxy: ProxyArguments,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `renew`.
#[derive(Debug, Args)]
pub struct Renew {
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `certificates`.
#[derive(Debug, Subcommand)]
pub enum Certificates {
    /// Make a certificate authority
    #[command(after_help = "Example:\n  kindred-coordinator certificates init --folder pki")]
    Init(CertificatesInit),
    /// Make a token by which a site or an operator gets one certificate for a key of its own
    #[command(
        after_help = "Examples:\n  kindred-coordinator certificates invite --site north\n  kindred-coordinator certificates invite --operator researcher --hours 24"
    )]
    Invite(Invite),
    /// Sign requests of whoever has a token, until a signal says stop
    #[command(
        after_help = "Example:\n  kindred-coordinator certificates serve --config enrolment.toml"
    )]
    Serve(CertificatesServe),
    /// Issue one certificate with its key; earlier ones stay valid
    #[command(
        after_help = "Examples:\n  kindred-coordinator certificates issue --folder pki --coordinator main --hosts coordinator.example\n  kindred-coordinator certificates issue --folder pki --site north"
    )]
    Issue(Issue),
    /// Issue a certificate anew for the same key, so that open studies still know its holder
    #[command(
        after_help = "Example:\n  kindred-coordinator certificates renew --folder pki --site north"
    )]
    Renew(Issue),
    /// Revoke a certificate: writes the list of revoked certificates for the coordinator
    #[command(
        after_help = "Example:\n  kindred-coordinator certificates revoke --folder pki --site north"
    )]
    Revoke(Revoke),
    /// List all certificates, with the days that each is still valid
    #[command(after_help = "Example:\n  kindred-coordinator certificates list --folder pki")]
    List(CertificatesList),
}

/// `certificates init`.
#[derive(Debug, Args)]
pub struct CertificatesInit {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Days until the authority expires
    #[arg(long, default_value_t = 3650, value_parser = value_parser!(u32).range(1..=DAYS_MAX))]
    pub days: u32,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `certificates invite`.
#[derive(Debug, Args)]
pub struct Invite {
    /// The coordinator's configuration, with `[enrolment]`.
    #[command(flatten)]
    pub config: CoordinatorConfig,
    /// The holder of the certificate
    #[command(flatten)]
    pub party: Caller,
    /// Hours until the token expires
    #[arg(long, default_value_t = 72, value_parser = value_parser!(u32).range(1..=8_760))]
    pub hours: u32,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `certificates serve`.
#[derive(Debug, Args)]
pub struct CertificatesServe {
    /// The coordinator's configuration, with `[enrolment]`.
    #[command(flatten)]
    pub config: CoordinatorConfig,
    /// Stop when standard input closes
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// `certificates list`.
#[derive(Debug, Args)]
pub struct CertificatesList {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `certificates issue`.
#[derive(Debug, Args)]
pub struct Issue {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// The holder of the certificate
    #[command(flatten)]
    pub party: Party,
    /// Names and addresses of the coordinator, separated by commas; a renewed certificate has the old one's unless others are named
    #[arg(
        long,
        value_name = "HOST",
        value_delimiter = ',',
        requires = "coordinator"
    )]
    pub hosts: Vec<String>,
    /// Days until the certificate expires
    #[arg(long, default_value_t = 365, value_parser = value_parser!(u32).range(1..=DAYS_MAX))]
    pub days: u32,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `certificates revoke`.
#[derive(Debug, Args)]
pub struct Revoke {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// The holder of the certificate
    #[command(flatten)]
    pub party: Caller,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// Who dials the coordinator.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Caller {
    /// A site
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// An operator
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
}

impl Caller {
    /// The role and the name.
    ///
    /// # Errors
    /// [`UsageError`] where the command line names neither, which clap does not let pass.
    pub fn role(&self) -> Result<(Role, &str), UsageError> {
        match (&self.site, &self.operator) {
            (Some(name), _) => Ok((Role::Site, name)),
            (None, Some(name)) => Ok((Role::Operator, name)),
            (None, None) => {
                let text = "found no party, wanted --site or --operator";
                Err(UsageError(text.to_owned()))
            }
        }
    }
}

/// One of three kinds of party, by name.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Party {
    /// A site
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// An operator
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
    /// The coordinator; needs --hosts
    #[arg(long, value_name = "NAME")]
    pub coordinator: Option<String>,
}
