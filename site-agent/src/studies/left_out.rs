//! Patients of this site who are in no sum of a study: too few over all hospitals have their outcomes and no others.

use super::{Approved, FOLDER, open, opened};
use crate::config::SiteConfig;
use privacy::Fingerprint;
use protocol::study::StudyName;
use std::io;

impl Approved {
    /// The patterns of the patients who are excluded; none before the study has opened.
    pub(super) fn left_out(&self) -> io::Result<Vec<u32>> {
        Ok(opened::left_out(&self.folder)?.unwrap_or_default())
    }

    /// How many of this site's patients are excluded, a sentence for each pattern that some of them have, or why that is not known.
    #[must_use]
    pub fn left_out_here(&self) -> Vec<String> {
        let left_out = match self.left_out() {
            Ok(left_out) if left_out.is_empty() => return Vec::new(),
            Ok(left_out) => left_out,
            Err(error) => return vec![format!("how it opened cannot be read: {error}")],
        };
        let cohorts: Vec<&Fingerprint> = self.with_outcome.iter().collect();
        let patterns = Fingerprint::lots(&cohorts);
        let own = left_out.iter().filter_map(|pattern| {
            let patients = patterns.get((*pattern as usize).checked_sub(1)?);
            patients
                .filter(|patients| **patients > 0)
                .map(|patients| self.sentence(*pattern, *patients))
        });
        own.collect()
    }

    fn sentence(&self, pattern: u32, patients: u64) -> String {
        let names = |has_one: bool| -> Vec<String> {
            let outcomes = self.study.outcomes.iter().enumerate();
            let those = outcomes.filter(|(place, _)| (pattern >> place & 1 == 1) == has_one);
            those.map(|(_, one)| format!("{:?}", one.name)).collect()
        };
        let (with, without) = (names(true).join(" and "), names(false));
        let has = match without.is_empty() {
            true => format!("have {with}"),
            false => format!("have {with}, but no {}", without.join(" and no ")),
        };
        format!(
            "{patients} of {} patients {has}, too few over all hospitals to tell apart: not in the study",
            self.patients.patients()
        )
    }
}

/// Logs how many of this site's patients are excluded from a study that has opened.
pub fn log(config: &SiteConfig, study: &StudyName) {
    let folder = config.folder.join(FOLDER).join(study.as_str());
    match open(&folder, &config.site) {
        Ok(known) => {
            for sentence in known.left_out_here() {
                tracing::warn!(study = study.as_str(), "{sentence}");
            }
        }
        Err(error) => tracing::error!(%error, "who is excluded from a study cannot be read"),
    }
}
