//! From TOML to [`Job`].

use super::{
    Deadlines, Feature, FeatureKind, Impute, Job, Method, OutcomeKind, OutcomeSpecification,
    Standardise, Transform, UnpslSettings, forest,
};
use crate::document::{self, DocumentErrors, Section};
use crate::limits::{EXCHANGE_MAX, FEATURES_MAX, JOB_LENGTH_MAX, JOIN_MAX, REJOIN_MAX, SITES_MAX};
use crate::name::SiteName;
use std::collections::HashSet;
use std::time::Duration;

impl Job {
    /// Parses a job file.
    ///
    /// # Errors
    /// All problems of the text at once, each with its line.
    pub fn parse(text: &str) -> Result<Self, DocumentErrors> {
        // A longer text is not even read.
        let is_short = text.len() <= JOB_LENGTH_MAX;
        document::read(if is_short { text } else { "" }, |root| {
            if !is_short {
                let wanted = format!("at most {JOB_LENGTH_MAX}");
                root.problem("the file", &format!("{} bytes", text.len()), &wanted);
                return None;
            }
            job(text, root)
        })
    }
}

fn job(text: &str, root: &mut Section<'_, '_>) -> Option<Job> {
    let name = root.required::<String>("name").unwrap_or_default();
    if SiteName::new(&name).is_err() {
        root.problem(
            "name",
            &format!("{name:?}"),
            "a-z, 0-9, '-' and '_', at most 64 characters",
        );
    }
    let sites = sites(root);
    let everyone = sites.len().max(1) as u64;
    let sites_min = root.count("sites_min", everyone, 1..=everyone);
    let seed = root.or("seed", 1);
    let outcome = root.required_table("outcome", outcome);
    let features = features(root, outcome.as_ref());
    let method = method(root, features.len(), sites.len());
    match (&method, &outcome) {
        (Some(Method::Unpsl(_)), Some(outcome)) if outcome.kind.classes().is_empty() => {
            let found = format!(
                "\"unpsl\" with the outcome {:?}, which has no classes",
                outcome.column
            );
            let wanted = "an outcome of kind \"binary\" or \"categorical\", or \"forest\"";
            root.problem("method", &found, wanted);
        }
        (Some(Method::Forest(settings)), Some(outcome)) => {
            forest::check(root, settings, outcome, &features);
        }
        _ => {}
    }
    let deadlines = root.table("deadlines", |section| Some(deadlines(section)));
    Some(Job {
        text: text.to_owned(),
        name,
        sites,
        sites_min: usize::try_from(sites_min).ok()?,
        seed,
        outcome: outcome?,
        features,
        method: method?,
        deadlines: deadlines.unwrap_or_default(),
    })
}

fn sites(root: &mut Section<'_, '_>) -> Vec<SiteName> {
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
    if names.is_empty() || names.len() > SITES_MAX {
        root.problem(
            "sites",
            &format!("{} sites", names.len()),
            &format!("1 to {SITES_MAX}"),
        );
    }
    sites
}

fn outcome(section: &mut Section<'_, '_>) -> Option<OutcomeSpecification> {
    #[derive(Clone)]
    enum Kind {
        Binary,
        Categorical,
        Numeric,
        Survival,
    }
    let column = section.required("column");
    let kinds = [
        ("binary", Kind::Binary),
        ("categorical", Kind::Categorical),
        ("numeric", Kind::Numeric),
        ("survival", Kind::Survival),
    ];
    if !section.has("kind") {
        section.required::<String>("kind");
    }
    let kind = match section.choice("kind", &kinds)? {
        Kind::Binary => {
            let positive: Vec<String> = section.required("positive").unwrap_or_default();
            let negative: Vec<String> = section.or("negative", Vec::new());
            if positive.is_empty() {
                section.problem("positive", "no value", "the values that mean disease");
            }
            let others: HashSet<&String> = negative.iter().collect();
            if let Some(both) = positive.iter().find(|value| others.contains(value)) {
                section.problem(
                    "negative",
                    &format!("{both:?} in both lists"),
                    "each value once",
                );
            }
            OutcomeKind::Binary { positive, negative }
        }
        Kind::Categorical => OutcomeKind::Categorical {
            levels: levels(section),
        },
        Kind::Numeric => OutcomeKind::Numeric,
        Kind::Survival => OutcomeKind::Survival {
            event: section.required("event").unwrap_or_default(),
            event_values: section.or("event_values", vec!["1".to_owned()]),
            horizon: section
                .has("horizon")
                .then(|| section.number("horizon", 1.0, "a time above 0", |time| time > 0.0)),
        },
    };
    Some(OutcomeSpecification {
        column: column?,
        kind,
    })
}

fn features(root: &mut Section<'_, '_>, outcome: Option<&OutcomeSpecification>) -> Vec<Feature> {
    let mut seen = HashSet::new();
    let features = root.tables("features", |section| {
        let feature = feature(section)?;
        if !seen.insert(feature.name.clone()) {
            section.problem(
                "name",
                &format!("{:?} twice", feature.name),
                "each feature once",
            );
        }
        if outcome.is_some_and(|outcome| is_outcome(outcome, &feature.name)) {
            let found = format!("{:?}, the outcome's column", feature.name);
            section.problem("name", &found, "a feature that is not the outcome");
        }
        Some(feature)
    });
    if !root.has("features") && features.is_empty() {
        root.problem("features", "none", "at least one table headed [[features]]");
    }
    if features.len() > FEATURES_MAX {
        root.problem(
            "features",
            &features.len().to_string(),
            &format!("at most {FEATURES_MAX}"),
        );
    }
    features
}

fn is_outcome(outcome: &OutcomeSpecification, name: &str) -> bool {
    let event = match &outcome.kind {
        OutcomeKind::Survival { event, .. } => Some(event.as_str()),
        _ => None,
    };
    outcome.column == name || event == Some(name)
}

fn feature(section: &mut Section<'_, '_>) -> Option<Feature> {
    #[derive(Clone)]
    enum Kind {
        Numeric,
        Categorical,
        Ordinal,
        Binary,
        Age,
    }
    let name = section.required("name");
    let missing = section.or("missing", Vec::new());
    let kinds = [
        ("numeric", Kind::Numeric),
        ("categorical", Kind::Categorical),
        ("ordinal", Kind::Ordinal),
        ("binary", Kind::Binary),
        ("age", Kind::Age),
    ];
    let imputes = [
        ("mean", Impute::Mean),
        ("median", Impute::Median),
        ("indicator", Impute::Indicator),
        ("refuse", Impute::Refuse),
    ];
    let impute = section.choice("impute", &imputes).unwrap_or(Impute::Mean);
    if !section.has("kind") {
        section.required::<String>("kind");
    }
    let kind = match section.choice("kind", &kinds)? {
        Kind::Numeric => numeric(section),
        Kind::Categorical => FeatureKind::Categorical {
            levels: levels(section),
        },
        Kind::Ordinal => FeatureKind::Ordinal {
            levels: levels(section),
        },
        Kind::Binary => FeatureKind::Binary {
            positive: section.or("positive", "1".to_owned()),
            negative: section.or("negative", "0".to_owned()),
        },
        Kind::Age => FeatureKind::Age {
            at: section.required("at").unwrap_or_default(),
        },
    };
    if impute == Impute::Median && matches!(kind, FeatureKind::Categorical { .. }) {
        section.problem(
            "impute",
            "\"median\" of a category",
            "\"mean\", which takes its mode",
        );
    }
    treatment(section, &kind, impute);
    Some(Feature {
        name: name?,
        kind,
        missing,
        impute,
    })
}

/// What a treatment needs that the feature does not declare.
fn treatment(section: &mut Section<'_, '_>, kind: &FeatureKind, impute: Impute) {
    if let (Impute::Indicator, FeatureKind::Categorical { levels }) = (impute, kind)
        && levels.iter().any(|level| level == "missing")
    {
        let found = "a level \"missing\" beside an indicator of the same name";
        section.problem("levels", found, "another name of this level");
    }
    let FeatureKind::Numeric {
        range,
        transform,
        standardise,
        ..
    } = kind
    else {
        return;
    };
    if let (Transform::Log, Some((low, high))) = (transform, range)
        && *low < 0.0
    {
        let found = format!("[{low}, {high}] with a logarithm");
        section.problem("range", &found, "0 or more");
    } else if (impute == Impute::Median || *standardise == Standardise::Robust)
        && kind.gridded(0).is_none()
    {
        let found = match range {
            Some((low, high)) => format!("[{low}, {high}]"),
            None => "none".to_owned(),
        };
        let wanted = "[lowest, highest], finite, on which the sites count values for its quantiles";
        section.problem("range", &found, wanted);
    }
}

fn numeric(section: &mut Section<'_, '_>) -> FeatureKind {
    let unit = section.or("unit", String::new());
    let range = section
        .optional::<Vec<f64>>("range")
        .and_then(|ends| match ends.as_slice() {
            [low, high] if low < high => Some((*low, *high)),
            _ => {
                section.problem("range", &format!("{ends:?}"), "[lowest, highest]");
                None
            }
        });
    let transforms = [("none", Transform::None), ("log", Transform::Log)];
    let standardises = [
        ("moments", Standardise::Moments),
        ("robust", Standardise::Robust),
    ];
    FeatureKind::Numeric {
        unit,
        range,
        transform: section
            .choice("transform", &transforms)
            .unwrap_or(Transform::None),
        standardise: section
            .choice("standardise", &standardises)
            .unwrap_or(Standardise::Moments),
    }
}

fn levels(section: &mut Section<'_, '_>) -> Vec<String> {
    let levels: Vec<String> = section.required("levels").unwrap_or_default();
    let distinct: HashSet<&String> = levels.iter().collect();
    if levels.len() < 2 || distinct.len() < levels.len() {
        section.problem(
            "levels",
            &format!("{levels:?}"),
            "at least two levels, each once",
        );
    }
    levels
}

fn method(root: &mut Section<'_, '_>, features: usize, sites: usize) -> Option<Method> {
    #[derive(Clone)]
    enum Name {
        Unpsl,
        Forest,
    }
    if !root.has("method") {
        root.required::<String>("method");
    }
    let names = [("unpsl", Name::Unpsl), ("forest", Name::Forest)];
    match root.choice("method", &names)? {
        Name::Unpsl => root
            .required_table("unpsl", |section| Some(UnpslSettings::read(section)))
            .map(Method::Unpsl),
        Name::Forest => root
            .required_table("forest", |section| {
                Some(forest::forest(section, features, sites))
            })
            .map(Method::Forest),
    }
}

fn deadlines(section: &mut Section<'_, '_>) -> Deadlines {
    let default = Deadlines::default();
    let mut seconds = |key, default: Duration, most: Duration| {
        Duration::from_secs(section.count(key, default.as_secs(), 1..=most.as_secs()))
    };
    Deadlines {
        join: seconds("join_seconds", default.join, JOIN_MAX),
        exchange: seconds("exchange_seconds", default.exchange, EXCHANGE_MAX),
        rejoin: seconds("rejoin_seconds", default.rejoin, REJOIN_MAX),
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            join: Duration::from_secs(60),
            exchange: Duration::from_secs(600),
            rejoin: Duration::from_secs(20),
        }
    }
}

/// A count whose range was checked to fit.
pub(super) fn narrow<T: TryFrom<u64> + Default>(count: u64) -> T {
    T::try_from(count).unwrap_or_default()
}
