//! `[pages]`: where pages for people are served, and who may see them.

use crate::secret::{self, Password};
use axum::http::HeaderName;
use protocol::document::Section;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// The header with the proxy's secret.
const SECRET_HEADER: &str = "x-kindred-proxy";

/// `[pages]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesConfig {
    /// Where to listen: on loopback, or behind the hospital's proxy.
    pub listen: SocketAddr,
    /// Names by which browsers may ask, besides those of loopback.
    pub hosts: Vec<String>,
    /// A proxy that knows who asks.
    pub proxy: Option<PagesProxy>,
}

/// `[pages.proxy]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesProxy {
    /// The header that names the user.
    pub user_header: HeaderName,
    /// The header by which the proxy proves who it is.
    pub secret_header: HeaderName,
    /// What stands in it.
    pub secret: Password,
}

impl PagesConfig {
    /// Pages on loopback, at this port.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            hosts: Vec::new(),
            proxy: None,
        }
    }

    /// Reads the keys that every program's table has; paths in it are relative to `folder`. Without an address it is on loopback, at `port`.
    pub fn read(section: &mut Section<'_, '_>, folder: &Path, port: u16) -> Option<Self> {
        let usual = Self::loopback(port).listen;
        let text = section.or("listen", usual.to_string());
        let listen = text.parse::<SocketAddr>().ok();
        if listen.is_none() {
            let wanted = format!("IP:PORT, as in {usual}");
            section.problem("listen", &format!("{text:?}"), &wanted);
        }
        let hosts = section.or("hosts", Vec::<String>::new());
        let is_name = |host: &&String| {
            let letter = |letter: char| letter.is_ascii_alphanumeric() || "-.:[]".contains(letter);
            host.is_empty() || !host.chars().all(letter)
        };
        for host in hosts.iter().filter(is_name) {
            let wanted = "names as browsers show them, such as \"kindred.hospital.example\"";
            section.problem("hosts", &format!("{host:?}"), wanted);
        }
        let has_proxy = section.has("proxy");
        let proxy = section.table("proxy", |section| proxy(section, folder));
        let is_open = listen.is_some_and(|listen| !listen.ip().is_loopback());
        if is_open && !has_proxy {
            let wanted =
                "an address on loopback, or [pages.proxy]: without it nobody says who asks";
            section.problem("listen", &format!("{text:?}"), wanted);
        }
        if has_proxy && hosts.is_empty() {
            let wanted = "the name by which browsers reach the proxy";
            section.problem("hosts", "no name", wanted);
        }
        Some(Self {
            listen: listen?,
            hosts: hosts.into_iter().map(|host| host.to_lowercase()).collect(),
            proxy: given(has_proxy, proxy)?,
        })
    }
}

/// What is there must have been read.
pub fn given<T>(is_there: bool, read: Option<T>) -> Option<Option<T>> {
    match is_there {
        true => read.map(Some),
        false => Some(None),
    }
}

fn proxy(section: &mut Section<'_, '_>, folder: &Path) -> Option<PagesProxy> {
    let user: Option<String> = section.required("user_header");
    let secret_header: String = section.or("secret_header", SECRET_HEADER.to_owned());
    let secret = secret::password(section, folder);
    if secret.is_none() {
        let wanted = "password_file or password_env: what the proxy sends to prove who it is";
        section.problem("password_file", "no key", wanted);
    }
    let user_header = header_name(section, "user_header", &user?);
    let secret_header = header_name(section, "secret_header", &secret_header);
    Some(PagesProxy {
        user_header: user_header?,
        secret_header: secret_header?,
        secret: secret?,
    })
}

fn header_name(section: &Section<'_, '_>, key: &str, text: &str) -> Option<HeaderName> {
    let name = HeaderName::try_from(text.to_lowercase()).ok();
    if name.is_none() {
        section.problem(
            key,
            &format!("{text:?}"),
            "the name of a header, such as \"x-remote-user\"",
        );
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<PagesConfig>, String> {
        let table =
            |section: &mut Section<'_, '_>| PagesConfig::read(section, Path::new("/srv"), 9445);
        let read = |root: &mut Section<'_, '_>| Some(root.table("pages", table));
        protocol::document::read(text, read).map_err(|problems| problems.to_string())
    }

    #[test]
    fn the_table_is_read_and_its_absence_is_loopback() {
        assert_eq!(parsed("").unwrap(), None);
        assert_eq!(
            parsed("[pages]").unwrap(),
            Some(PagesConfig::loopback(9445))
        );
        assert!(PagesConfig::loopback(9445).listen.ip().is_loopback());
        let text = "[pages]\nlisten = \"10.0.0.5:9445\"\nhosts = [\"Kindred.Hospital.Example\"]\n\
                    [pages.proxy]\nuser_header = \"X-Remote-User\"\npassword_file = \"proxy\"\n";
        let found = parsed(text).unwrap().unwrap();
        assert_eq!(found.hosts, ["kindred.hospital.example"]);
        let proxy = found.proxy.unwrap();
        assert_eq!(proxy.user_header.as_str(), "x-remote-user");
        assert_eq!(proxy.secret_header.as_str(), SECRET_HEADER);
        assert_eq!(proxy.secret, Password::File("/srv/proxy".into()));
    }

    #[test]
    fn every_problem_is_told_and_nobody_listens_to_the_network_without_a_proxy() {
        for (text, wanted) in [
            (
                "listen = \"0.0.0.0:9445\"",
                "pages.listen: found \"0.0.0.0:9445\", wanted an address on loopback",
            ),
            (
                "listen = \"9445\"",
                "pages.listen: found \"9445\", wanted IP:PORT",
            ),
            ("hosts = [\"a b\"]", "pages.hosts: found \"a b\""),
            ("port = 1", "pages.port: found an unknown key"),
            ("[pages.proxy]", "found no key \"user_header\""),
            (
                "[pages.proxy]\nuser_header = \"x\"",
                "pages.proxy.password_file: found no key",
            ),
            (
                "[pages.proxy]\nuser_header = \"x\"",
                "pages.hosts: found no name",
            ),
            (
                "[pages.proxy]\nuser_header = \"a b\"\npassword_env = \"P\"",
                "pages.proxy.user_header: found \"a b\"",
            ),
        ] {
            let problems = parsed(&format!("[pages]\n{text}")).unwrap_err();
            assert!(problems.contains(wanted), "{wanted}\n---\n{problems}");
        }
    }
}
