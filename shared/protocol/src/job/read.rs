//! From TOML to [`Job`].

use super::Job;
use crate::cohort::{self, CohortSpecification, Feature, Judgements, OutcomeSpecification};
use crate::document::{self, DocumentErrors, Section};
use crate::limits::{
    ANSWERS_MEGABYTES, ANSWERS_MEGABYTES_MAX, CARD_ANSWERS_BYTES, JOB_LENGTH_MAX, SITES_MAX,
    SUMMED_SITES_MIN,
};
use crate::method::room::Reading;
use crate::method::{Method, Named};
use crate::name::SiteName;
use crate::study::{self, Study};
use similarity::numeric::precision::Precision;
use std::collections::HashSet;
use std::sync::Arc;

impl Job {
    /// Parses a job file.
    ///
    /// # Errors
    /// All problems of the text at once, each with its line.
    pub fn parse(text: &str) -> Result<Self, DocumentErrors> {
        Self::read(text, SUMMED_SITES_MIN)
    }

    /// Parses a job file for one cohort alone, whichever sites it names.
    ///
    /// # Errors
    /// As [`Job::parse`].
    pub fn parse_for_one(text: &str) -> Result<Self, DocumentErrors> {
        Self::read(text, 1)
    }

    fn read(text: &str, sites_min: usize) -> Result<Self, DocumentErrors> {
        // A longer text is not even read.
        let is_short = text.len() <= JOB_LENGTH_MAX;
        let (own, study) = study::split(if is_short { text } else { "" });
        let study = study.map(Study::parse).transpose();
        let study = study.map_err(|errors| errors.within("the study"))?;
        document::read(own, |root| {
            if !is_short {
                let wanted = format!("at most {JOB_LENGTH_MAX}");
                root.problem("the file", &format!("{} bytes", text.len()), &wanted);
                return None;
            }
            job(text, root, study, sites_min)
        })
    }
}

fn job(
    text: &str,
    root: &mut Section<'_, '_>,
    study: Option<Study>,
    sites_min: usize,
) -> Option<Job> {
    let name = root.required::<String>("name").unwrap_or_default();
    if SiteName::new(&name).is_err() {
        root.problem(
            "name",
            &format!("{name:?}"),
            "a-z, 0-9, '-' and '_', at most 64 characters",
        );
    }
    let named = of_study(root, study.as_ref());
    let sites = match &study {
        Some(study) => study.roster(),
        None => sites(root, sites_min),
    };
    let megabytes = root.table("aggregation", |section| {
        let most = 0..=ANSWERS_MEGABYTES_MAX;
        Some(section.count("answers_megabytes_max", ANSWERS_MEGABYTES, most))
    });
    let seed = root.or("seed", 1);
    let precision = precision(root, study.as_ref());
    let named_method = Named::read(root);
    let is_of_all = named_method.is_some_and(Named::is_of_all);
    let (outcome, features) = match &study {
        Some(study) if is_of_all => all(root, study),
        Some(study) => chosen(root, study),
        None => {
            let outcome = root.required_table("outcome", cohort::outcome);
            let features = cohort::features(root, outcome.as_slice());
            (outcome, features)
        }
    };
    let judgements = judgements(root, study.as_ref());
    let at = Reading {
        outcome: outcome.as_ref(),
        features: &features,
        sites: sites.len(),
        study: study.as_ref(),
        judgements: judgements.as_ref(),
    };
    let method = named_method.and_then(|named| Method::read(named, root, &at));
    if let (Some(study), Some(method)) = (&study, &method) {
        let outside = study.outside(method, is_of_all);
        outside.iter().for_each(|one| one.report(root));
    }
    named?;
    Some(Job {
        text: text.to_owned(),
        name,
        sites,
        answers_bytes_max: answers_bytes(is_of_all, megabytes),
        seed,
        cohort: Arc::new(CohortSpecification {
            outcome: outcome?,
            features,
        }),
        judgements,
        method: method?.precisely(precision),
        precision,
        study: study.map(Arc::new),
    })
}

/// Histograms are most of what a card asks for, and their sum is all that anybody wants of them.
fn answers_bytes(is_of_all: bool, megabytes: Option<u64>) -> u64 {
    match (megabytes, is_of_all) {
        (Some(megabytes), _) => megabytes << 20,
        (None, true) => CARD_ANSWERS_BYTES,
        (None, false) => ANSWERS_MEGABYTES << 20,
    }
}

/// Whether the key `study` and the study that travels with the job belong together. A job may name the study's file
/// instead, from which whoever submits it has read the study.
fn of_study(root: &mut Section<'_, '_>, study: Option<&Study>) -> Option<()> {
    let Some(study) = study else {
        if let Some(name) = root.optional::<String>("study") {
            let wanted = "the study's text after the job; name its file, \"NAME.study.toml\"";
            root.problem("study", &format!("{name:?} without its text"), wanted);
        }
        return Some(());
    };
    let name: String = root.required("study")?;
    if name != study.name.as_str() && !study::is_file(&name) {
        root.problem(
            "study",
            &format!("{name:?}"),
            &format!("{:?}", study.name.as_str()),
        );
    }
    if root.has("sites") {
        root.pass_over(&["sites"]);
        root.problem("sites", "the job's own", "none: the study decides it");
    }
    Some(())
}

/// The precision of a study, which no job of it changes, or the job's own.
fn precision(root: &mut Section<'_, '_>, study: Option<&Study>) -> Precision {
    let Some(study) = study else {
        return study::precision(root);
    };
    if root.has("precision") {
        root.pass_over(&["precision"]);
        root.problem("precision", "the job's own", "none: the study decides it");
    }
    study.precision
}

/// The judged pairs that a study declares, which no job of it changes, or the job's own.
fn judgements(root: &mut Section<'_, '_>, study: Option<&Study>) -> Option<Judgements> {
    let Some(study) = study else {
        return cohort::judgements(root);
    };
    if root.has("pairs") {
        root.pass_over(&["pairs"]);
        root.problem("pairs", "the job's own", "none: the study decides it");
    }
    study.judgements.clone()
}

/// The first outcome and all features of a study, where the method is of all of it.
fn all(root: &mut Section<'_, '_>, study: &Study) -> (Option<OutcomeSpecification>, Vec<Feature>) {
    for key in ["outcome", "features"] {
        if root.has(key) {
            root.pass_over(&[key]);
            root.problem(
                key,
                "the job's own",
                "none: the method is of all that the study has",
            );
        }
    }
    let first = study.outcomes.first();
    let outcome = first.map(|outcome| outcome.specification.clone());
    (outcome, study.features.clone())
}

/// The outcome and the features that a job of a study names.
fn chosen(
    root: &mut Section<'_, '_>,
    study: &Study,
) -> (Option<OutcomeSpecification>, Vec<Feature>) {
    let outcome = root.required::<String>("outcome");
    let outcome = outcome.and_then(|name| {
        let found = study.outcome(&name);
        let found = found.map_err(|outside| outside.report(root)).ok()?;
        Some(found.specification.clone())
    });
    let names = root.optional::<Vec<String>>("features");
    let features = study.chosen(names.as_deref()).unwrap_or_else(|outside| {
        outside.iter().for_each(|one| one.report(root));
        study.features.clone()
    });
    (outcome, features)
}

fn sites(root: &mut Section<'_, '_>, sites_min: usize) -> Vec<SiteName> {
    let names: Vec<String> = root.required("sites").unwrap_or_default();
    let mut sites = Vec::with_capacity(names.len());
    let mut seen = HashSet::new();
    for name in &names {
        match SiteName::new(name) {
            Ok(site) if seen.insert(site.clone()) => sites.push(site),
            Ok(_) => root.problem("sites", &format!("{name:?} twice"), "each site once"),
            Err(error) => root.problem("sites", &format!("{name:?}"), &error.to_string()),
        }
    }
    if !(sites_min..=SITES_MAX).contains(&names.len()) {
        root.problem(
            "sites",
            &format!("{} sites", names.len()),
            &format!("{sites_min} to {SITES_MAX}"),
        );
    }
    sites
}
