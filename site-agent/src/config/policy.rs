//! The release rules of a site: `[policy]` of site.toml, or a file of its own.

use privacy::{Allowed, Permission, Policy, Rules};
use protocol::document::{self, DocumentErrors, Section};

/// Reads a policy from a file of its own: the keys of `[policy]`, without its heading.
///
/// # Errors
/// All problems of the text at once, each with its line.
pub fn parse(text: &str) -> Result<Policy, DocumentErrors> {
    document::read(text, read)
}

/// Reads `[policy]`. A rule that is not set keeps its default, and the defaults are closed: without
/// the four lists every job is refused.
pub fn read(section: &mut Section<'_, '_>) -> Option<Policy> {
    let default = Rules::default();
    let minimum =
        |section: &mut Section<'_, '_>, key, default| section.count(key, default, 1..=u64::MAX);
    let rules = Rules {
        operators: allowed(section, "operators"),
        methods: allowed(section, "methods"),
        outcomes: allowed(section, "outcomes"),
        features: allowed(section, "features"),
        patients_min: minimum(section, "patients_min", default.patients_min),
        class_patients_min: section.or("class_patients_min", default.class_patients_min),
        cell_min: minimum(section, "cell_min", default.cell_min),
        terminal_node_min: minimum(section, "terminal_node_min", default.terminal_node_min),
        sites_min: minimum(section, "sites_min", default.sites_min),
        permissions: Permission::ALL
            .into_iter()
            .filter(|one| section.or(one.name(), default.permissions.contains(one)))
            .collect(),
        runs_per_cohort_max: section.or("runs_per_cohort_max", default.runs_per_cohort_max),
        rounds_per_cohort_max: section.or("rounds_per_cohort_max", default.rounds_per_cohort_max),
        cohort_difference_min: minimum(
            section,
            "cohort_difference_min",
            default.cohort_difference_min,
        ),
        queries_per_cohort_max: section
            .or("queries_per_cohort_max", default.queries_per_cohort_max),
        groupings_per_cohort_max: section
            .or("groupings_per_cohort_max", default.groupings_per_cohort_max),
        descriptions_per_day_max: section
            .or("descriptions_per_day_max", default.descriptions_per_day_max),
    };
    // The ranges above leave nothing to be invalid that has not been reported already.
    Policy::new(rules).ok()
}

fn allowed(section: &mut Section<'_, '_>, key: &'static str) -> Allowed {
    Allowed::listed(section.or::<Vec<String>>(key, Vec::new()))
}
