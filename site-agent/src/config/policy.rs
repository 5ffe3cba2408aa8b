//! The release rules of a site: `[policy]` of site.toml, or a file of its own.

use privacy::{
    Allowed, Limits, OUTCOME_EPSILON_WANTED, Permission, Policy, Rules, is_outcome_epsilon,
};
use protocol::document::{self, DocumentErrors, Section, list, nearest_hint};
use protocol::method::Method;

/// Reads a policy from a file of its own: the keys of `[policy]`, without its heading.
///
/// # Errors
/// All problems of the text at once, each with its line.
pub fn parse(text: &str) -> Result<Policy, DocumentErrors> {
    document::read(text, read)
}

/// Reads `[policy]`. A rule that is not set keeps its default, and the defaults are closed: without
/// the two lists every job is refused.
pub fn read(section: &mut Section<'_, '_>) -> Option<Policy> {
    let default = Rules::default();
    let rules = Rules {
        operators: allowed(section, "operators"),
        methods: methods(section),
        permissions: Permission::ALL
            .into_iter()
            .filter(|one| section.or(one.name(), default.permissions.contains(one)))
            .collect(),
        ceilings: ceilings(section, &default.ceilings),
        outcome_epsilon_max: section.number(
            "outcome_epsilon_max",
            default.outcome_epsilon_max,
            OUTCOME_EPSILON_WANTED,
            is_outcome_epsilon,
        ),
        ..default
    };
    let rules = rules.with_minima(|minimum| {
        section.count(minimum.rule, minimum.default, minimum.least..=u64::MAX)
    });
    // The ranges above leave nothing to be invalid that has not been reported already.
    Policy::new(rules).ok()
}

fn ceilings(section: &mut Section<'_, '_>, default: &Limits) -> Limits {
    let default = default.numbers();
    Limits::of(std::array::from_fn(|place| {
        section.or(Limits::CEILINGS[place], default[place])
    }))
}

/// One that no release has is a mistake, and would close what it should open.
fn methods(section: &mut Section<'_, '_>) -> Allowed {
    let known = |method: &&str| *method == "*" || Method::NAMES.contains(method);
    let methods: Vec<String> = section.or("methods", Vec::new());
    for method in methods.iter().filter(|method| !known(&method.as_str())) {
        let near = nearest_hint(method, Method::NAMES);
        let wanted = format!("one of {}, or \"*\"{near}", list(Method::NAMES));
        section.problem("methods", &format!("{method:?}"), &wanted);
    }
    Allowed::listed(methods)
}

fn allowed(section: &mut Section<'_, '_>, key: &'static str) -> Allowed {
    Allowed::listed(section.or::<Vec<String>>(key, Vec::new()))
}
