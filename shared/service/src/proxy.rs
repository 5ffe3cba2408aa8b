//! The way out of a network: `[proxy]` of a configuration, and `--proxy` of `enrol`.

use crate::secret::{self, Password, SecretError};
use clap::Args;
use protocol::document::Section;
use std::fmt;
use std::path::{Path, PathBuf};
use wire::{Address, AddressError, ClientTls, CredentialFiles, Dial, TlsError};

/// An HTTP CONNECT proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host and port of the proxy.
    pub address: Address,
    /// User and password of basic authentication, where the proxy wants it.
    pub credentials: Option<Credentials>,
}

/// A user and where their password is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// Where the password is.
    pub password: Password,
}

/// A proxy on the command line.
#[derive(Debug, Args)]
pub struct ProxyArguments {
    /// The HTTP proxy, where there is no direct way out
    #[arg(long, value_name = "HOST:PORT")]
    pub proxy: Option<String>,
    /// User of the proxy
    #[arg(long, value_name = "NAME", requires_all = ["proxy", "proxy_password_file"])]
    pub proxy_user: Option<String>,
    /// File with the password of the proxy
    #[arg(long, value_name = "FILE", requires = "proxy_user")]
    pub proxy_password_file: Option<PathBuf>,
}

/// What is needed to reach the coordinator could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// A certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The proxy's password.
    #[error(transparent)]
    Password(#[from] SecretError),
}

/// How a party reaches `address`: certificates are loaded and passwords fetched.
///
/// # Errors
/// [`DialError`] where a certificate, key or password cannot be had.
pub fn dial(
    address: &Address,
    tls: &CredentialFiles,
    proxy: Option<&Proxy>,
) -> Result<Dial, DialError> {
    Ok(Dial {
        address: address.clone(),
        proxy: proxy.map(Proxy::open).transpose()?,
        tls: ClientTls::load(tls)?,
    })
}

impl Proxy {
    /// Reads the table `[proxy]`; paths in it are relative to `folder`.
    pub fn read(section: &mut Section<'_, '_>, folder: &Path) -> Option<Self> {
        let address = required_address(section, "address");
        let user: Option<String> = section.optional("user");
        let password = secret::password(section, folder);
        let credentials = match (user, password) {
            (Some(user), Some(password)) => Some(Credentials { user, password }),
            (None, None) => None,
            (Some(_), None) => {
                let wanted = "password_env or password_file with it";
                section.problem("user", "a user without a password", wanted);
                None
            }
            (None, Some(_)) => {
                section.problem("user", "no key", "the user whose password is named");
                None
            }
        };
        Some(Self {
            address: address?,
            credentials,
        })
    }

    /// The proxy as it is dialled, with its password.
    ///
    /// # Errors
    /// [`DialError::Password`].
    pub fn open(&self) -> Result<wire::Proxy, DialError> {
        let address = self.address.clone();
        let Some(Credentials { user, password }) = &self.credentials else {
            return Ok(wire::Proxy::open(address));
        };
        let password = password.fetch()?;
        Ok(wire::Proxy::with_password(address, user, password.reveal()))
    }
}

/// As the table `[proxy]`.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[proxy]\naddress = \"{}\"", self.address)?;
        let Some(Credentials { user, password }) = &self.credentials else {
            return Ok(());
        };
        let (key, place) = match password {
            Password::Environment(name) => ("password_env", name.clone()),
            Password::File(path) => ("password_file", path.display().to_string()),
        };
        writeln!(f, "user = {user:?}\n{key} = {place:?}")
    }
}

impl ProxyArguments {
    /// The proxy, where one is named; the file of its password by its whole path.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn named(&self) -> Result<Option<Proxy>, AddressError> {
        let Some(address) = &self.proxy else {
            return Ok(None);
        };
        // clap lets neither pass without the other.
        let both = self
            .proxy_user
            .as_ref()
            .zip(self.proxy_password_file.as_ref());
        let credentials = both.map(|(user, file)| Credentials {
            user: user.clone(),
            password: Password::File(std::path::absolute(file).unwrap_or_else(|_| file.clone())),
        });
        Ok(Some(Proxy {
            address: Address::new(address)?,
            credentials,
        }))
    }
}

/// The address at `key`: `host:port`, with `[...]` around an IPv6 address.
pub fn required_address(section: &mut Section<'_, '_>, key: &'static str) -> Option<Address> {
    let text: String = section.required(key)?;
    address(section, key, &text)
}

/// The address at `key`, where it is present.
pub fn optional_address(section: &mut Section<'_, '_>, key: &'static str) -> Option<Address> {
    let text: String = section.optional(key)?;
    address(section, key, &text)
}

fn address(section: &Section<'_, '_>, key: &'static str, text: &str) -> Option<Address> {
    let address = Address::new(text).ok();
    if address.is_none() {
        let wanted = "host:port, such as \"coordinator.example:7443\"";
        section.problem(key, &format!("{text:?}"), wanted);
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::document;

    #[test]
    fn a_proxy_is_written_as_it_is_read() {
        let arguments = ProxyArguments {
            proxy: Some("[::1]:3128".to_owned()),
            proxy_user: Some("north \"1\"".to_owned()),
            proxy_password_file: Some(PathBuf::from("/run/password")),
        };
        let named = arguments.named().unwrap().unwrap();
        let read = |text: &str| {
            document::read(text, |root| {
                root.table("proxy", |section| Proxy::read(section, Path::new("/")))
            })
        };
        assert_eq!(read(&named.to_string()).unwrap(), named);
        let problems = read("[proxy]\naddress = \"nowhere\"\nuser = \"north\"\n").unwrap_err();
        let problems = problems.to_string();
        for wanted in [
            "proxy.address: found \"nowhere\"",
            "proxy.user: found a user without",
        ] {
            assert!(problems.contains(wanted), "{problems}");
        }
    }
}
