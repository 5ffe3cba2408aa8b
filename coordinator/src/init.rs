//! `init`: all that the coordinator of a new federation needs, in one folder, and the tokens of its hospitals.

use crate::certificates::Invited;
use crate::cli;
use crate::config::{CoordinatorConfig, OperatorConfig};
use crate::enrolment::{self, EnrolmentError};
use serde::Serialize;
use std::fmt;
use wire::Address;
use wire::certificates::{self, Role, Validity};

/// Days until the authority ends.
const AUTHORITY_DAYS: u32 = 3_650;
/// Days until a certificate that is issued here ends.
const CERTIFICATE_DAYS: u32 = 365;
/// Hours until a token expires.
const TOKEN_HOURS: u32 = 72;

/// What was made.
#[derive(Debug, Serialize)]
pub struct Founded {
    /// The coordinator's configuration, and that of each operator.
    configs: Vec<String>,
    /// A token for each hospital.
    tokens: Vec<Invited>,
}

impl fmt::Display for Founded {
    /// One a line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.tokens.iter().map(ToString::to_string);
        let lines: Vec<String> = self.configs.iter().cloned().chain(tokens).collect();
        formatter.write_str(&lines.join("\n"))
    }
}

/// Makes an authority, the coordinator's and the operators' certificates and configurations, and a token for each hospital.
///
/// # Errors
/// [`EnrolmentError`], also where the folder has an authority already.
pub fn init(arguments: &cli::Init) -> Result<Founded, EnrolmentError> {
    let pki = arguments.out.join("pki");
    let hosts = arguments.hosts.clone();
    certificates::init(&pki, Validity::days(AUTHORITY_DAYS))?;
    let valid = Validity::days(CERTIFICATE_DAYS);
    certificates::issue(&pki, &Role::Coordinator { hosts }, "main", valid)?;
    let path = arguments.out.join("coordinator.toml");
    enrolment::write(&path, &config(arguments))?;
    let config = CoordinatorConfig::open(&path)?;
    let mut configs = vec![path.display().to_string()];
    // clap wants one host at least.
    let host = arguments.hosts.first().map_or("", String::as_str);
    for name in &arguments.operators {
        certificates::issue(&pki, &Role::Operator, name, valid)?;
        let place = |port| Address::of_host(host, port);
        let places = (place(arguments.port)?, place(arguments.enrolment_port)?);
        let path = pki.join(format!("operator-{name}/operator.toml"));
        enrolment::write(&path, &enrolment::operator_config(&places))?;
        OperatorConfig::open(&path)?;
        configs.push(path.display().to_string());
    }
    let token = |name: &String| {
        let token = enrolment::token(&path, &config, (&Role::Site, name), TOKEN_HOURS);
        token.map(|token| Invited::of(&token))
    };
    Ok(Founded {
        configs,
        tokens: arguments
            .sites
            .iter()
            .map(token)
            .collect::<Result<_, _>>()?,
    })
}

fn config(arguments: &cli::Init) -> String {
    let (port, enrolment_port) = (arguments.port, arguments.enrolment_port);
    format!(
        "# The coordinator: kindred-coordinator serve --config coordinator.toml\n\
         # Relative paths are relative to this file. Unknown keys are errors.\n\n\
         listen = \"0.0.0.0:{port}\"    # sites and operators dial in here\n\
         folder = \"runs\"              # the runs and their results\n\n\
         [tls]\n\
         ca = \"pki/coordinator-main/ca.pem\"\n\
         certificate = \"pki/coordinator-main/certificate.pem\"\n\
         key = \"pki/coordinator-main/key.pem\"\n\
         revoked = \"pki/authority/revoked.pem\"\n\n\
         # Signs certificates of whoever has a token. Remove it once all have enrolled, and keep pki elsewhere.\n\
         [enrolment]\n\
         listen = \"0.0.0.0:{enrolment_port}\"\n\
         authority = \"pki\"\n"
    )
}
