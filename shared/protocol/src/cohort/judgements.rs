//! `[pairs]`: what physicians have judged of pairs of patients. The pairs themselves stay at each hospital.

use crate::document::Section;

/// Pairs of patients that physicians have judged, as a study declares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgements {
    /// What people read of them.
    pub label: String,
}

/// Reads the table `pairs`, where it is present.
pub(crate) fn read(root: &mut Section<'_, '_>) -> Option<Judgements> {
    root.table("pairs", |section| {
        let label: String = section.required("label")?;
        let is_line = !label.trim().is_empty() && !label.contains(['\n', '\r', '\t']);
        if !is_line {
            section.problem("label", &format!("{label:?}"), "one line of text");
        }
        is_line.then_some(Judgements { label })
    })
}
