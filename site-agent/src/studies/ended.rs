//! How a study ends at a site: its operators close it, or the site leaves it.

use super::{CLOSED, LEFT, SNAPSHOT, StudyError, all, present, proposed};
use crate::books::chain::{ChainError, file_error};
use crate::config::SiteConfig;
use protocol::study::StudyName;
use std::fs;
use std::path::Path;
use wire::private;

/// Notes that the studies with these digests are closed: no run of them is answered any more, whoever asks. Nobody opens them again.
///
/// # Errors
/// [`ChainError`] where the studies of this site cannot be read, or the note cannot be written.
pub fn close(config: &SiteConfig, digests: &[String]) -> Result<(), ChainError> {
    let is_meant = |digest: &String| digests.contains(digest);
    for one in all(&config.folder, &config.site)? {
        if one.closed || !is_meant(&one.signed.approval.digest) {
            continue;
        }
        let path = one.folder.join(CLOSED);
        private::write(&path, b"").map_err(|source| file_error(&path, "written", source))?;
        let study = one.study.name.as_str();
        tracing::info!(
            study,
            "its operators have closed a study: no run of it is answered any more"
        );
    }
    proposed::withdraw(config, |study| is_meant(&study.digest()))
}

/// Leaves a study: deletes its patients. That it was approved stays known, so that no other study takes its place.
///
/// # Errors
/// [`StudyError`].
pub fn leave(config: &SiteConfig, name: &StudyName) -> Result<(), StudyError> {
    let known = all(&config.folder, &config.site)?;
    let own = present(&known, name.as_str())?;
    let failed = |path: &Path| {
        let path = path.display().to_string();
        |source| StudyError::Write { path, source }
    };
    let (left, snapshot) = (own.folder.join(LEFT), own.folder.join(SNAPSHOT));
    private::write(&left, b"").map_err(failed(&left))?;
    fs::remove_file(&snapshot).map_err(failed(&snapshot))
}
