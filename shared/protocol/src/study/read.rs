//! From TOML to [`Study`].

use super::{CertificateFingerprint, Pinned, Study, StudyName, StudyOutcome, parts};
use crate::cohort::{self, OutcomeSpecification, line};
use crate::document::{self, DocumentErrors, Section, list, nearest_hint};
use crate::limits::{OUTCOMES_MAX, RENEWALS_MAX, SITES_MAX, STUDY_LENGTH_MAX, SUMMED_SITES_MIN};
use crate::method::{Method, card};
use crate::name::{NameError, OperatorName, SiteName};
use privacy::{Limits, OUTCOME_EPSILON, OUTCOME_EPSILON_WANTED, is_outcome_epsilon};
use similarity::numeric::precision::Precision;
use std::collections::HashSet;
use time::Date;
use time::macros::format_description;

const NAME_WANTED: &str = "a-z, 0-9, '-' and '_', at most 64 characters";

impl Study {
    /// Parses a study.
    ///
    /// # Errors
    /// All problems of the text at once, each with its line.
    pub fn parse(text: &str) -> Result<Self, DocumentErrors> {
        // A longer text is not even read.
        let is_short = text.len() <= STUDY_LENGTH_MAX;
        document::read(if is_short { text } else { "" }, |root| {
            if !is_short {
                let wanted = format!("at most {STUDY_LENGTH_MAX}");
                root.problem("the file", &format!("{} bytes", text.len()), &wanted);
                return None;
            }
            study(text, root)
        })
    }
}

fn study(text: &str, root: &mut Section<'_, '_>) -> Option<Study> {
    let name: Option<String> = root.required("name");
    let name = name.and_then(|name| {
        let parsed = StudyName::new(&name).ok();
        if parsed.is_none() {
            root.problem("name", &format!("{name:?}"), NAME_WANTED);
        }
        parsed
    });
    let title = line(root, "title");
    let purpose: Option<String> = root.required("purpose");
    let until = until(root);
    let operators = parties(root, "operators", OperatorName::new);
    let hospitals = parties(root, "hospitals", SiteName::new);
    if !(SUMMED_SITES_MIN..=SITES_MAX).contains(&hospitals.len()) {
        let found = format!("{} hospitals", hospitals.len());
        let wanted = format!("{SUMMED_SITES_MIN} to {SITES_MAX}");
        root.problem("hospitals", &found, &wanted);
    }
    let renews = renews(root, name.as_ref());
    let methods = methods(root);
    let common_forests = root.or("common_forests", false);
    let (folds, partners) = parts::read(root);
    let precision = precision(root);
    let limits = root.required_table("limits", |section| {
        let epsilon = section.number(
            "outcome_epsilon",
            OUTCOME_EPSILON,
            OUTCOME_EPSILON_WANTED,
            is_outcome_epsilon,
        );
        Some((limits(section), epsilon))
    });
    let outcomes = outcomes(root);
    let specifications: Vec<OutcomeSpecification> = outcomes
        .iter()
        .map(|outcome| outcome.specification.clone())
        .collect();
    let features = cohort::features(root, &specifications);
    card::settings::check(root, &outcomes, &features);
    let judgements = cohort::judgements(root);
    Some(Study {
        text: text.to_owned(),
        name: name?,
        title: title?,
        purpose: purpose?,
        until: until?,
        operators,
        hospitals,
        renews,
        methods,
        common_forests,
        folds,
        partners,
        precision,
        limits: limits?.0,
        outcome_epsilon: limits?.1,
        outcomes,
        features,
        judgements,
    })
}

/// How finely the hospitals say what they add to a sum.
pub(crate) fn precision(root: &mut Section<'_, '_>) -> Precision {
    let choices = [("rounded", Precision::Rounded), ("exact", Precision::Exact)];
    root.choice("precision", &choices).unwrap_or_default()
}

fn until(root: &mut Section<'_, '_>) -> Option<Date> {
    let text: String = root.required("until")?;
    let date = Date::parse(&text, format_description!("[year]-[month]-[day]")).ok();
    if date.is_none() {
        let wanted = "the last day of the study, YYYY-MM-DD";
        root.problem("until", &format!("{text:?}"), wanted);
    }
    date
}

/// Parties with the fingerprints of their certificates, each once.
fn parties<N: Clone + Eq + std::hash::Hash>(
    root: &mut Section<'_, '_>,
    key: &'static str,
    parse: impl Fn(&str) -> Result<N, NameError>,
) -> Vec<Pinned<N>> {
    let mut names = HashSet::new();
    let mut certificates = HashSet::new();
    let is_absent = !root.has(key);
    let parties = root.tables(key, |section| {
        let name: Option<String> = section.required("name");
        let certificate: Option<String> = section.required("certificate");
        let (name, certificate) = (name?, certificate?);
        let parsed = parse(&name);
        if parsed.is_err() {
            section.problem("name", &format!("{name:?}"), NAME_WANTED);
        } else if !parsed.as_ref().is_ok_and(|name| names.insert(name.clone())) {
            section.problem("name", &format!("{name:?} twice"), "each name once");
        }
        let fingerprint = CertificateFingerprint::new(&certificate);
        if fingerprint.is_none() {
            let wanted = "\"sha256:\" and 64 digits of 0-9 and a-f";
            section.problem("certificate", &format!("{certificate:?}"), wanted);
        } else if !certificates.insert(fingerprint.clone()) {
            section.problem("certificate", "a certificate twice", "one of each party");
        }
        Some(Pinned {
            name: parsed.ok()?,
            certificate: fingerprint?,
        })
    });
    if is_absent || parties.is_empty() && names.is_empty() {
        root.problem(key, "none", "a list of { name, certificate }");
    }
    parties
}

/// The names of earlier studies, each once.
fn renews(root: &mut Section<'_, '_>, own: Option<&StudyName>) -> Vec<StudyName> {
    let names: Vec<String> = root.optional("renews").unwrap_or_default();
    let mut renews = Vec::new();
    for name in &names {
        match StudyName::new(name) {
            Err(_) => root.problem("renews", &format!("{name:?}"), NAME_WANTED),
            Ok(found) if own == Some(&found) || renews.contains(&found) => {
                let wanted = "earlier studies, each once";
                root.problem("renews", &format!("{name:?} again"), wanted);
            }
            Ok(found) => renews.push(found),
        }
    }
    if names.len() > RENEWALS_MAX {
        let found = format!("{} studies", names.len());
        root.problem("renews", &found, &format!("at most {RENEWALS_MAX}"));
    }
    renews
}

fn methods(root: &mut Section<'_, '_>) -> Vec<String> {
    let methods: Vec<String> = root.required("methods").unwrap_or_default();
    for method in &methods {
        if !Method::NAMES.contains(&method.as_str()) {
            let near = nearest_hint(method, Method::NAMES);
            let wanted = format!("one of {}{near}", list(Method::NAMES));
            root.problem("methods", &format!("{method:?}"), &wanted);
        }
    }
    let distinct: HashSet<&String> = methods.iter().collect();
    if methods.is_empty() || distinct.len() < methods.len() {
        let found = format!("{methods:?}");
        root.problem("methods", &found, "at least one method, each once");
    }
    methods
}

fn limits(section: &mut Section<'_, '_>) -> Limits {
    let mut limit = |key, least| {
        if !section.has(key) {
            section.required::<u64>(key);
        }
        section.count(key, least, least..=u64::MAX >> 1)
    };
    Limits {
        runs: limit("runs", 1),
        rounds: limit("rounds", 1),
        queries: limit("queries", 0),
        metrics_for_groups: section.count("metrics_for_groups", 1, 0..=u64::MAX >> 1),
    }
}

fn outcomes(root: &mut Section<'_, '_>) -> Vec<StudyOutcome> {
    let mut seen = HashSet::new();
    let mut followed: Vec<OutcomeSpecification> = Vec::new();
    let is_absent = !root.has("outcomes");
    let outcomes = root.tables("outcomes", |section| {
        let name = line(section, "name");
        if !section.has("label") {
            section.required::<String>("label");
        }
        if let Some(name) = &name
            && !seen.insert(name.clone())
        {
            section.problem("name", &format!("{name:?} twice"), "each outcome once");
        }
        let specification = cohort::outcome(section)?;
        if let Some((own, known)) = followed.iter().find_map(|one| specification.apart(one)) {
            let wanted =
                format!("{known}, as of another outcome by this time; several go to \"horizons\"");
            section.problem("horizon", &own, &wanted);
        }
        followed.push(specification.clone());
        Some(StudyOutcome {
            specification,
            name: name?,
        })
    });
    if is_absent {
        root.problem("outcomes", "none", "a table headed [[outcomes]] for each");
    } else if outcomes.len() > OUTCOMES_MAX {
        let found = outcomes.len().to_string();
        root.problem("outcomes", &found, &format!("at most {OUTCOMES_MAX}"));
    }
    outcomes
}
