//! `[pages]`: where pages for people are served, and who may see them.

use protocol::document::Section;
use service::pages;
use std::path::{Path, PathBuf};

/// The port where the file says nothing.
const PORT: u16 = 9445;

/// `[pages]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesConfig {
    /// Where they are served.
    pub served: pages::PagesConfig,
    /// Certificate and key of an operator of the studies, who asks the other hospitals.
    pub operator: Option<PagesOperator>,
}

/// `[pages.operator]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesOperator {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Default for PagesConfig {
    fn default() -> Self {
        Self {
            served: pages::PagesConfig::loopback(PORT),
            operator: None,
        }
    }
}

/// Reads the table; paths in it are relative to `folder`.
pub(super) fn read(root: &mut Section<'_, '_>, folder: &Path) -> Option<PagesConfig> {
    root.table("pages", |section| {
        let served = pages::PagesConfig::read(section, folder, PORT);
        let has_operator = section.has("operator");
        let operator = section.table("operator", |section| {
            let certificate = super::path(section, "certificate", folder);
            let key = super::path(section, "key", folder);
            Some(PagesOperator {
                certificate: certificate?,
                key: key?,
            })
        });
        Some(PagesConfig {
            served: served?,
            operator: pages::given(has_operator, operator)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<PagesConfig>, String> {
        let read = |root: &mut Section<'_, '_>| Some(read(root, Path::new("/srv")));
        protocol::document::read(text, read).map_err(|problems| problems.to_string())
    }

    #[test]
    fn an_operator_has_both_files_and_the_absence_of_the_table_is_loopback() {
        assert_eq!(parsed("").unwrap(), None);
        assert_eq!(parsed("[pages]").unwrap(), Some(PagesConfig::default()));
        let text = "[pages.operator]\ncertificate = \"o.pem\"\nkey = \"/k.pem\"\n";
        let operator = parsed(text).unwrap().unwrap().operator.unwrap();
        assert_eq!(operator.certificate, Path::new("/srv/o.pem"));
        assert_eq!(operator.key, Path::new("/k.pem"));
        for (text, wanted) in [
            (
                "[pages.operator]\nkey = \"k\"",
                "found no key \"certificate\"",
            ),
            ("[pages]\nport = 1", "pages.port: found an unknown key"),
        ] {
            let problems = parsed(text).unwrap_err();
            assert!(problems.contains(wanted), "{wanted}\n---\n{problems}");
        }
    }
}
