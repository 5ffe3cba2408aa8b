//! The text of a study before its parties are known by their certificates, and the study of a job that has everything in itself.

use super::{CertificateFingerprint, Study};
use crate::job::Job;
use privacy::{Limits, Permission, Rules};
use std::fmt::Write as _;
use toml_span::value::{Value, ValueInner};

/// A party of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party<'n> {
    /// Who submits jobs.
    Operator(&'n str),
    /// Who holds patients.
    Hospital(&'n str),
}

/// A study whose parties cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// The text is no TOML.
    #[error("found no valid TOML: {0}")]
    Toml(String),
    /// A list of parties is absent, or is written in another way.
    #[error("found {found} as {key}, wanted {key} = [\"NAME\", \"NAME\"]")]
    List {
        /// The key.
        key: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// Certificates of parties are absent.
    #[error("found no certificate of {}", .0.join(", "))]
    Certificates(Vec<String>),
    /// A job is written in a way from which no study can be made.
    #[error(
        "the job cannot be parted into a study and a job of it; wanted the outcome and the features under headings of their own, \
         [outcome] and [[features]]"
    )]
    Form,
}

/// The text with the fingerprint of each party's certificate. What else it says is not judged.
///
/// # Errors
/// [`DraftError`].
pub fn pinned(
    text: &str,
    certificate: impl Fn(Party<'_>) -> Option<CertificateFingerprint>,
) -> Result<String, DraftError> {
    let root = toml_span::parse(text).map_err(|error| DraftError::Toml(error.to_string()))?;
    let operators = parties(text, &root, "operators")?;
    let hospitals = parties(text, &root, "hospitals")?;
    let mut absent = Vec::new();
    let mut list = |key, found: &Parties, party: fn(&str) -> Party<'_>| {
        let mut list = format!("{key} = [\n");
        for name in &found.names {
            match certificate(party(name)) {
                Some(own) => {
                    let _ = writeln!(list, "  {{ name = {name:?}, certificate = \"{own}\" }},");
                }
                None => absent.push(name.clone()),
            }
        }
        list + "]"
    };
    let operator_list = list("operators", &operators, |name| Party::Operator(name));
    let hospital_list = list("hospitals", &hospitals, |name| Party::Hospital(name));
    if !absent.is_empty() {
        return Err(DraftError::Certificates(absent));
    }
    let mut parts = [(operators, operator_list), (hospitals, hospital_list)];
    // The later first, so that the place of the earlier stays what it was.
    parts.sort_by_key(|(found, _)| std::cmp::Reverse(found.from));
    let mut drafted = text.to_owned();
    for (found, list) in parts {
        drafted.replace_range(found.from..found.to, &list);
    }
    Ok(drafted)
}

/// The certificate of nobody, which stands for a party's where a study is only looked at.
#[must_use]
pub fn nobody(party: Party<'_>) -> CertificateFingerprint {
    CertificateFingerprint::of(format!("{party:?}").as_bytes())
}

/// The text, where its parties have certificates, and else with those of nobody: for whoever only looks at a study.
#[must_use]
pub fn by_nobody(text: &str) -> String {
    let has_names = |key| {
        let root = toml_span::parse(text).ok()?;
        let list = root.as_table()?.get(key)?.as_array()?;
        Some(list.iter().any(|one| one.as_str().is_some()))
    };
    let is_draft = ["operators", "hospitals"]
        .into_iter()
        .any(|key| has_names(key).unwrap_or(false));
    let filled = is_draft.then(|| pinned(text, |party| Some(nobody(party))).ok());
    filled.flatten().unwrap_or_else(|| text.to_owned())
}

/// A list of parties: the place of its key and value, and the names.
struct Parties {
    from: usize,
    to: usize,
    names: Vec<String>,
}

fn parties(text: &str, root: &Value<'_>, key: &'static str) -> Result<Parties, DraftError> {
    let wrong = |found| DraftError::List { key, found };
    let value = root.as_table().and_then(|table| table.get(key));
    let value = value.ok_or_else(|| wrong("nothing"))?;
    let Some(list) = value.as_array() else {
        return Err(wrong("no list"));
    };
    let names = list.iter().map(|one| match one.as_ref() {
        ValueInner::String(name) => Some(name.to_string()),
        ValueInner::Table(table) => Some(table.get("name")?.as_str()?.to_owned()),
        _ => None,
    });
    let names: Option<Vec<String>> = names.collect();
    let names = names.ok_or_else(|| wrong("a list of something else"))?;
    let (from, to) = (value.span.start, value.span.end);
    let before = text.get(..from).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let head = before.get(line..).unwrap_or_default();
    let is_plain = head.trim_end().strip_suffix('=').map(str::trim) == Some(key);
    match is_plain && text.get(from..to).is_some_and(|list| list.starts_with('[')) {
        true => Ok(Parties {
            from: line,
            to,
            names,
        }),
        false => Err(wrong("tables with headings")),
    }
}

/// A job that has its hospitals, its outcome and its features in itself, as a study without certificates and a job of it. The study allows its
/// method, and `more`.
///
/// # Errors
/// [`DraftError::Form`] where its text cannot be parted.
pub fn of_job(job: &Job, operator: &str, more: &[&str]) -> Result<(String, String), DraftError> {
    let root = toml_span::parse(&job.text).map_err(|_| DraftError::Form)?;
    let sites = parties(&job.text, &root, "sites").map_err(|_| DraftError::Form)?;
    let mut rest = job.text.clone();
    rest.replace_range(sites.from..sites.to, "");
    let (mut own, mut study, mut settings) = (String::new(), String::new(), String::new());
    let mut head = String::new();
    let mut part = Part::Root;
    for line in rest.lines() {
        if let Some(heading) = heading(line) {
            part = match heading {
                "outcome" => Part::Outcome,
                "pairs" => Part::Study,
                heading if heading.split('.').next() == Some("features") => Part::Study,
                _ => Part::Settings,
            };
            if matches!(part, Part::Outcome) {
                study.push_str("[[outcomes]]\nname = \"outcome\"\n");
                if root.pointer("/outcome/label").is_none() {
                    let _ = writeln!(study, "label = {:?}", job.cohort.outcome.column);
                }
                continue;
            }
        }
        let to = match part {
            Part::Root if key(line) == "precision" => &mut head,
            Part::Root => &mut own,
            Part::Outcome | Part::Study => &mut study,
            Part::Settings => &mut settings,
        };
        to.push_str(line);
        to.push('\n');
    }
    let name = &job.name;
    let mut methods = vec![job.method.name()];
    methods.extend(more.iter().filter(|more| **more != job.method.name()));
    let own = format!("{own}study = {name:?}\noutcome = \"outcome\"\n{settings}");
    let hospitals: Vec<&str> = job.sites.iter().map(|site| site.as_str()).collect();
    let limits = limits(job);
    if job
        .method
        .needs()
        .permissions
        .contains(&Permission::Forests)
    {
        head.push_str("common_forests = true\n");
    }
    head.push_str(&job.method.divides().text());
    let study = format!(
        "name = {name:?}\ntitle = \"The patients of the job {name}\"\npurpose = \"A trial on one machine\"\nuntil = \"9999-12-31\"\n\
         methods = {methods:?}\nlimits = {{ {limits} }}\noperators = [{operator:?}]\nhospitals = {hospitals:?}\n{head}\n{study}"
    );
    match is_same(job, &own, &study) {
        true => Ok((own, study)),
        false => Err(DraftError::Form),
    }
}

/// Limits of the study that a job becomes: what a site allows unless it says otherwise, or as much as the job needs.
fn limits(job: &Job) -> String {
    let needs = job.facts("");
    let needs = [1, needs.round_limit, needs.queries, 0];
    let usual = Rules::default().ceilings.numbers();
    let numbers = usual.into_iter().zip(needs);
    let lines = Limits::KEYS
        .into_iter()
        .zip(numbers)
        .map(|(key, (usual, needed))| format!("{key} = {}", usual.max(needed)));
    lines.collect::<Vec<_>>().join(", ")
}

enum Part {
    Root,
    Outcome,
    Study,
    Settings,
}

/// The key that a line sets; else something that is none.
fn key(line: &str) -> &str {
    line.split('=').next().unwrap_or_default().trim()
}

/// The name of a table, or of a list of tables, whose heading a line is.
fn heading(line: &str) -> Option<&str> {
    let inner = line.trim_start().strip_prefix('[')?;
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    let (name, _) = inner.split_once(']')?;
    Some(name.trim())
}

/// Whether what came out asks the same of the same patients.
fn is_same(job: &Job, own: &str, study: &str) -> bool {
    let study = pinned(study, |party| Some(nobody(party))).ok();
    let study = study.and_then(|text| Study::parse(&text).ok());
    let again = study.and_then(|study| Job::parse(&study.join(own)).ok());
    again.is_some_and(|again| {
        again.cohort == job.cohort
            && again.sites == job.sites
            && again.method == job.method
            && again.precision == job.precision
            && again.judgements == job.judgements
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "name = \"demo\" # a job\nmethod = \"unpsl\"\nsites = [\n  \"north\",\n  \"south\", \"east\",\n]\nseed = 3\n\
        [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"yes\"]\n\
        [[features]]\nname = \"age\"\nkind = \"numeric\"\n[unpsl]\nrank = 1\n\
        [[features]]\nname = \"sex\"\nkind = \"categorical\"\nlevels = [\"f\", \"m\"]\nlevel_labels = { f = \"women\" }\n";

    #[test]
    fn a_job_is_parted_into_a_study_and_a_job_of_it() {
        let job = Job::parse(JOB).unwrap();
        let (own, study) = of_job(&job, "simulation", &[]).unwrap();
        assert!(!own.contains("sites") && own.contains("seed = 3") && own.contains("rank = 1"));
        assert!(
            study.contains("women")
                && study.contains("hospitals = [\"north\", \"south\", \"east\"]")
        );
    }

    #[test]
    fn a_draft_names_every_party_without_a_certificate() {
        let text = "until = \"2027-01-01\"\noperators = [\"who\"] # one\nhospitals = [\"north\", \"south\"]\n";
        let own = CertificateFingerprint::of(b"own");
        let of_north = |party: Party<'_>| (party == Party::Hospital("north")).then(|| own.clone());
        let absent = DraftError::Certificates(vec!["who".to_owned(), "south".to_owned()]);
        assert_eq!(pinned(text, of_north), Err(absent));
        let filled = pinned(text, |_| Some(own.clone())).unwrap();
        assert!(filled.contains(&format!("{{ name = \"south\", certificate = \"{own}\" }}")));
        assert!(filled.contains("] # one\n"));
        // Filled in again, as after a certificate was renewed.
        assert_eq!(pinned(&filled, |_| Some(own.clone())).unwrap(), filled);
    }

    #[test]
    fn a_list_of_parties_with_headings_is_refused_by_its_key() {
        let text = "operators = []\n[[hospitals]]\nname = \"north\"\n";
        let error = pinned(text, |_| None).unwrap_err();
        assert!(
            error.to_string().contains("wanted hospitals = ["),
            "{error}"
        );
        let error = pinned("hospitals = []", |_| None).unwrap_err();
        assert!(
            error.to_string().contains("found nothing as operators"),
            "{error}"
        );
    }
}
