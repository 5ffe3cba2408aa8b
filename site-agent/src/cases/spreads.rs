//! What groups of patients have of a feature, in the job's words.

use super::shown::short;
use protocol::cohort::{Feature, FeatureKind};
use similarity::cohort::{MISSING_LEVEL, Values};
use similarity::uses::clusters::Spread;

/// Levels that a cell names.
const LEVELS_MAX: usize = 3;

/// Ordered levels and pairs, which are numbers where they are compared, as levels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places of levels
pub(super) fn as_levels(feature: &Feature, values: &Values) -> Values {
    let levels = match &feature.kind {
        FeatureKind::Ordinal { levels } => levels.clone(),
        FeatureKind::Binary { positive, negative } => vec![negative.clone(), positive.clone()],
        FeatureKind::Numeric { .. } | FeatureKind::Age { .. } | FeatureKind::Categorical { .. } => {
            return values.clone();
        }
    };
    match values {
        Values::Numeric(values) => Values::Categorical {
            codes: values.mapv(|value| {
                if value.is_nan() {
                    MISSING_LEVEL
                } else {
                    value as u32
                }
            }),
            levels,
        },
        Values::Categorical { .. } => values.clone(),
    }
}

/// The names of the levels of [`as_levels`], in the job's words; empty of a number.
pub(super) fn labels(feature: &Feature, values: &Values) -> Vec<String> {
    match values {
        Values::Numeric(_) => Vec::new(),
        Values::Categorical { levels, .. } => levels
            .iter()
            .map(|level| feature.level_label(level).to_owned())
            .collect(),
    }
}

/// A quantile between two values has more digits than either: to four, or to a whole number.
fn four_digits(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let places = (3.0 - libm::log10(number.abs()).floor()).max(0.0);
    let scale = libm::exp10(places);
    (number * scale).round() / scale
}

/// What the patients `rows` have of a feature: the median and quartiles, or the most frequent levels.
pub(super) fn in_words(feature: &Feature, values: &Values, rows: &[usize]) -> String {
    let values = as_levels(feature, values);
    match Spread::of(&values, rows) {
        Spread::Numbers([_, low, middle, high, _]) if middle.is_finite() => {
            let [middle, low, high] = [middle, low, high].map(|one| short(four_digits(one)));
            format!("{middle} ({low} to {high})")
        }
        Spread::Numbers(_) => "-".to_owned(),
        Spread::Levels(shares) => {
            let labels = labels(feature, &values);
            let mut known: Vec<(f64, &String)> = shares.into_iter().zip(&labels).collect();
            known.retain(|(share, _)| *share > 0.0);
            known.sort_by(|a, b| b.0.total_cmp(&a.0));
            let named = known.iter().take(LEVELS_MAX);
            let named = named.map(|(share, label)| format!("{label} {:.0} %", 100.0 * share));
            match known.is_empty() {
                true => "-".to_owned(),
                false => named.collect::<Vec<_>>().join(", "),
            }
        }
    }
}
