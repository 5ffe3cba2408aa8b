//! From TOML to a cohort's features.

use super::{
    Feature, FeatureKind, Impute, OutcomeKind, OutcomeSpecification, Standardise, Transform,
};
use crate::document::{Section, list, narrow, nearest_hint};
use crate::limits::FEATURES_MAX;
use similarity::cohort::spline::SPLINE_MAX;
use std::collections::HashSet;

pub(crate) fn features(
    root: &mut Section<'_, '_>,
    outcomes: &[OutcomeSpecification],
) -> Vec<Feature> {
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
        if outcomes
            .iter()
            .any(|outcome| is_outcome(outcome, &feature.name))
        {
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
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } | OutcomeKind::Numeric => None,
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
    let name: Option<String> = section.required("name");
    let label = section.optional("label").or_else(|| name.clone());
    let level_labels = section
        .table("level_labels", |section| Some(section.entries()))
        .unwrap_or_default();
    let missing = section.or("missing", Vec::new());
    let kinds = [
        ("numeric", Kind::Numeric),
        ("categorical", Kind::Categorical),
        ("ordinal", Kind::Ordinal),
        ("binary", Kind::Binary),
        ("age", Kind::Age),
    ];
    let impute = impute(section);
    if !section.has("kind") {
        section.required::<String>("kind");
    }
    let Some(kind) = section.choice("kind", &kinds) else {
        section.pass_over_all();
        return None;
    };
    let kind = match kind {
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
    let spline = spline(section, &kind);
    let per = per(section, &kind);
    Some(Feature {
        name: name?,
        label: label.unwrap_or_default(),
        level_labels: level_labels.into_iter().collect(),
        kind,
        missing,
        impute,
        per,
        spline,
    })
}

/// The degrees of freedom of a number's spline, whose knots are counted on the grid of its range.
fn spline(section: &mut Section<'_, '_>, kind: &FeatureKind) -> u32 {
    let degrees = narrow(section.count("spline", 1, 1..=SPLINE_MAX as u64));
    let is_number = matches!(kind, FeatureKind::Numeric { .. } | FeatureKind::Age { .. });
    let found = format!("a spline of {degrees} degrees of freedom");
    if degrees > 1 && !is_number {
        section.problem("spline", &found, "a number or an age");
    } else if degrees > 1 && kind.gridded(0).is_none() {
        let wanted =
            "range = [lowest, highest], finite, on which the sites count values for its knots";
        section.problem("spline", &found, wanted);
    }
    degrees
}

/// By how much patients differ where coefficients are read.
fn per(section: &mut Section<'_, '_>, kind: &FeatureKind) -> Option<f64> {
    if !section.has("per") {
        return None;
    }
    let is_above = |per: f64| per > 0.0;
    let per = section.number("per", 1.0, "a difference above 0", is_above);
    let refused = match kind {
        FeatureKind::Age { .. } => None,
        FeatureKind::Numeric { transform, .. } => match transform {
            Transform::None => None,
            Transform::Log => Some("none: of a logarithm a difference says nothing"),
        },
        FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Binary { .. } => Some("none: levels are compared one by one"),
    };
    if let Some(wanted) = refused {
        section.problem("per", &per.to_string(), wanted);
    }
    Some(per)
}

/// Reports splines, of which a method other than a regression knows nothing.
pub(crate) fn lines_alone(root: &mut Section<'_, '_>, features: &[Feature]) {
    let curved = features.iter().filter(|feature| feature.spline > 1);
    for feature in curved {
        let found = format!("a spline of {:?}", feature.name);
        root.problem("method", &found, "\"regression\", or no spline");
    }
}

/// What a treatment needs that the feature does not declare.
fn treatment(section: &mut Section<'_, '_>, kind: &FeatureKind, impute: Impute) {
    if let (Impute::Indicator, FeatureKind::Categorical { levels }) = (impute, kind)
        && levels.iter().any(|level| level == "missing")
    {
        let found = "a level \"missing\" and an indicator of the same name";
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

/// What becomes of a missing value. Two jobs that leave out other patients would tell by their difference of those few.
fn impute(section: &mut Section<'_, '_>) -> Impute {
    let imputes = [
        ("mean", Impute::Mean),
        ("median", Impute::Median),
        ("indicator", Impute::Indicator),
        ("refuse", Impute::Refuse),
    ];
    let Some(word) = section.optional::<String>("impute") else {
        return Impute::Mean;
    };
    let found = imputes.iter().find(|(name, _)| *name == word);
    if let Some((_, impute)) = found {
        return *impute;
    }
    let names = imputes.map(|(name, _)| name);
    let wanted = match word.as_str() {
        "leave out" => {
            "\"mean\", \"median\" or \"indicator\": every patient with an outcome is in the cohort"
                .to_owned()
        }
        other => format!("one of {}{}", list(&names), nearest_hint(other, &names)),
    };
    section.problem("impute", &format!("{word:?}"), &wanted);
    Impute::Mean
}

/// The key `range`.
pub(super) fn ends(section: &mut Section<'_, '_>) -> Option<(f64, f64)> {
    let ends = section.optional::<Vec<f64>>("range")?;
    match ends.as_slice() {
        [low, high] if low < high && low.is_finite() && high.is_finite() => Some((*low, *high)),
        _ => {
            section.problem("range", &format!("{ends:?}"), "[lowest, highest]");
            None
        }
    }
}

fn numeric(section: &mut Section<'_, '_>) -> FeatureKind {
    let unit = section.or("unit", String::new());
    let range = ends(section);
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

pub(super) fn levels(section: &mut Section<'_, '_>) -> Vec<String> {
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
