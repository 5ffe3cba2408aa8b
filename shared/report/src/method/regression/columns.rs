//! The columns of a regression as people read them: their names, their units, and which patients their coefficients compare.

use crate::words;
use protocol::cohort::{Feature, FeatureKind};
use protocol::job::Job;
use protocol::method::regression::model::{Coefficient, Model};

/// How people read a column; a curved part of a feature after it.
pub(super) fn label(job: &Job, column: &str) -> String {
    let feature = column.trim_end_matches('\'');
    match named(job, feature).is_some() && named(job, column).is_none() {
        true => job.cohort.label_of_row(feature) + &column[feature.len()..],
        false => job.cohort.label_of_row(column),
    }
}

/// The unit of a number's column; empty of a level.
pub(super) fn unit<'j>(job: &'j Job, column: &str) -> &'j str {
    named(job, column).map_or("", Feature::unit)
}

/// Whether a column is 1 for one of two levels.
pub(super) fn is_binary(job: &Job, column: &str) -> bool {
    let known = named(job, column).map(|feature| &feature.kind);
    matches!(known, Some(FeatureKind::Binary { .. }))
}

/// By how much patients differ in a column: what the study says, else a standard deviation of a number, one level, or no and yes.
pub(super) fn step(job: &Job, one: &Coefficient) -> f64 {
    let known = named(job, &one.name);
    match known.map(|feature| (&feature.kind, feature.per)) {
        Some((FeatureKind::Binary { .. } | FeatureKind::Ordinal { .. }, _)) => 1.0,
        Some((FeatureKind::Numeric { .. } | FeatureKind::Age { .. }, Some(per))) => per,
        Some(_) | None => one.step,
    }
}

/// The name of a column beside its effect, with what patients differ by where the study says it.
pub(super) fn drawn_label(job: &Job, column: &str) -> String {
    let label = label(job, column);
    match named(job, column).and_then(|feature| feature.per) {
        Some(per) => format!("{label}, per {} {}", words::figure(per), unit(job, column)),
        None => label,
    }
}

/// Which patients a coefficient compares: so much of a number, or a level with the reference level.
pub(super) fn compared(job: &Job, model: &Model, one: &Coefficient) -> String {
    let column = &one.name;
    let Some(feature) = named(job, column) else {
        return level_compared(job, model, column).unwrap_or_default();
    };
    let step = words::figure(step(job, one));
    match (&feature.kind, feature.per) {
        (FeatureKind::Binary { positive, negative }, _) => {
            let [own, other] = [positive, negative].map(|level| feature.level_label(level));
            format!("{own}, not {other}")
        }
        (FeatureKind::Ordinal { .. }, _) => "one level more".to_owned(),
        (_, Some(_)) => format!("{step} {} more", feature.unit()),
        (_, None) if feature.is_logarithm() => "a standard deviation of ln(1 + x) more".to_owned(),
        (_, None) => format!("{step} {} more (a standard deviation)", feature.unit()),
    }
}

/// Of a level's column: the level, and the one that has no column.
fn level_compared(job: &Job, model: &Model, column: &str) -> Option<String> {
    let of = |feature: &Feature, level: &str| format!("{}={level}", feature.name);
    let has = |column: &str| model.coefficients.iter().any(|one| one.name == *column);
    job.cohort.features.iter().find_map(|feature| {
        let FeatureKind::Categorical { levels } = &feature.kind else {
            return None;
        };
        let own = levels.iter().find(|level| of(feature, level) == *column)?;
        let mut others = levels.iter().filter(|level| !has(&of(feature, level)));
        let own = feature.level_label(own);
        Some(match (others.next(), others.next()) {
            (Some(reference), None) => format!("{own}, not {}", feature.level_label(reference)),
            _ => own.to_owned(),
        })
    })
}

/// The feature of this name.
fn named<'j>(job: &'j Job, name: &str) -> Option<&'j Feature> {
    let mut features = job.cohort.features.iter();
    features.find(|feature| feature.name == name)
}
