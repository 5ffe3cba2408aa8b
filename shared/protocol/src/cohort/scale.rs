//! Features as people read them: levels by their labels, and means on the scale of the levels.

use super::{Feature, FeatureKind};

impl Feature {
    /// What people read for a level: its label, of `0` and `1` of a binary feature no and yes, else the level.
    #[must_use]
    pub fn level_label<'f>(&'f self, level: &'f str) -> &'f str {
        if let Some(label) = self.level_labels.get(level) {
            return label;
        }
        match (&self.kind, level) {
            (FeatureKind::Binary { .. }, "1") => "yes",
            (FeatureKind::Binary { .. }, "0") => "no",
            (
                FeatureKind::Binary { .. }
                | FeatureKind::Numeric { .. }
                | FeatureKind::Age { .. }
                | FeatureKind::Categorical { .. }
                | FeatureKind::Ordinal { .. },
                level,
            ) => level,
        }
    }

    /// The number of an ordinal level's place, which counts from 0, as people read it: the level where all are evenly spaced numbers, else
    /// the place counted from 1. Of another feature the number as it is.
    #[must_use]
    pub fn on_its_scale(&self, number: f64) -> f64 {
        match self.scale() {
            Some((first, step)) => first + step * number,
            None => number,
        }
    }

    /// By how much such a number grows from one level to the next; 1 of another feature.
    #[must_use]
    pub fn step_of_scale(&self) -> f64 {
        self.scale().map_or(1.0, |(_, step)| step)
    }

    /// Its label with its unit, or of an ordinal without numbers what its ends are.
    #[must_use]
    pub fn label_with_scale(&self) -> String {
        if let FeatureKind::Ordinal { levels } = &self.kind
            && numbers(levels).is_none()
            && let [first, .., last] = levels.as_slice()
        {
            let [first, last] = [first, last].map(|level| self.level_label(level));
            return format!("{} (1 = {first}, {} = {last})", self.label, levels.len());
        }
        self.label_with_unit()
    }

    /// The first number of an ordinal's scale, and its step.
    fn scale(&self) -> Option<(f64, f64)> {
        match &self.kind {
            FeatureKind::Ordinal { levels } => Some(numbers(levels).unwrap_or((1.0, 1.0))),
            FeatureKind::Binary { .. }
            | FeatureKind::Numeric { .. }
            | FeatureKind::Age { .. }
            | FeatureKind::Categorical { .. } => None,
        }
    }
}

/// The first of evenly spaced numbers, and their step; none of other levels.
fn numbers(levels: &[String]) -> Option<(f64, f64)> {
    let numbers = levels.iter().map(|level| level.parse::<f64>().ok());
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    let (first, second) = (numbers.first()?, numbers.get(1)?);
    let step = second - first;
    let is_even = |pair: &[f64]| (pair[1] - pair[0] - step).abs() < 1e-9 * step.abs().max(1.0);
    (step.is_finite() && step > 0.0 && numbers.windows(2).all(is_even)).then_some((*first, step))
}

#[cfg(test)]
mod tests {
    use crate::cohort::features;
    use crate::document;

    /// Three patients of grade 2, 2 and 3 have a mean of 7/3, whatever the codes are.
    #[test]
    fn a_mean_of_codes_is_read_on_the_scale_of_the_levels() {
        for (levels, first, step, label) in [
            ("'1', '2', '3'", 1.0, 1.0, "Grade"),
            ("'0', '5', '10'", 0.0, 5.0, "Grade"),
            ("'1', '2', '4'", 1.0, 1.0, "Grade (1 = 1, 3 = 4)"),
            (
                "'low', 'middle', 'high'",
                1.0,
                1.0,
                "Grade (1 = little, 3 = high)",
            ),
        ] {
            let text = format!(
                "[[features]]\nname = 'g'\nlabel = 'Grade'\nkind = 'ordinal'\nlevels = [{levels}]\nlevel_labels = {{ low = 'little' }}"
            );
            let read = document::read(&text, |root| Some(features(root, &[])));
            let feature = read.unwrap_or_else(|errors| panic!("{errors}")).remove(0);
            let codes = (1.0 + 1.0 + 2.0) / 3.0;
            assert!((feature.on_its_scale(codes) - (first + step * codes)).abs() < 1e-12);
            assert_eq!(feature.label_with_scale(), label);
        }
    }

    #[test]
    fn a_difference_is_of_a_number_that_is_no_logarithm() {
        for (kind, wanted) in [
            ("kind = 'numeric'", None),
            ("kind = 'age'\nat = '2020-12-31'", None),
            (
                "kind = 'numeric'\ntransform = 'log'",
                Some("of a logarithm a difference says nothing"),
            ),
            (
                "kind = 'ordinal'\nlevels = ['1', '2']",
                Some("levels are compared one by one"),
            ),
        ] {
            let text = format!("[[features]]\nname = 'x'\nper = 10\n{kind}");
            let read = document::read(&text, |root| Some(features(root, &[])));
            match (read, wanted) {
                (Ok(read), None) => assert_eq!(read[0].per, Some(10.0)),
                (Err(errors), Some(wanted)) => {
                    assert!(errors.to_string().contains(wanted), "{errors}");
                }
                (read, _) => panic!("{kind}: {read:?}"),
            }
        }
    }
}
