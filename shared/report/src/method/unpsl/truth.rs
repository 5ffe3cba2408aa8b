//! What a metric says of synthetic patients, beside the truth, which for them is known.

use super::norms;
use crate::words::listed;
use protocol::method::unpsl::model::Model;

/// Features that say nothing of the class.
const SILENT: &str = "irrelevant_";
/// Features that repeat what two others say.
const REPEATED: &str = "mixed_";
/// Features that make the classes.
const INFORMATIVE: [&str; 2] = ["first_", "second_"];

/// Which rows are at 0, and whether they ought to be; none where there is no metric, or no features of such names.
pub(in crate::method) fn truth(model: &Model) -> Option<String> {
    let rows: Vec<(&str, f64)> = model
        .features
        .iter()
        .map(|feature| feature.name.as_str())
        .zip(norms(model))
        .collect();
    let of = |prefix: &'static str| {
        rows.iter()
            .filter(move |(name, _)| name.starts_with(prefix))
    };
    of(SILENT).next()?;
    let at_zero = |prefix: &'static str| of(prefix).filter(|(_, norm)| *norm == 0.0).count();
    let zero: Vec<String> = rows
        .iter()
        .filter(|(_, norm)| *norm == 0.0)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let lost: usize = INFORMATIVE.map(at_zero).iter().sum();
    let telling: usize = INFORMATIVE.map(|prefix| of(prefix).count()).iter().sum();
    let (silent, all) = (at_zero(SILENT), of(SILENT).count());
    Some(format!(
        "These patients are synthetic, so the truth is known. Without weight are {silent} of {all} irrelevant features, {} \
         of {} that repeat others, and {lost} of {telling} that make the classes, some weakly.{}",
        at_zero(REPEATED),
        of(REPEATED).count(),
        match zero.is_empty() {
            true => String::new(),
            false => format!(" In all these are {}.", listed(&zero)),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use protocol::method::unpsl::model::FeatureResult;

    fn model(rows: &[(&str, f64)]) -> Model {
        let feature = |(name, _): &(&str, f64)| FeatureResult {
            name: (*name).to_owned(),
            mean: 0.0,
            scale: 1.0,
            missing_share: 0.0,
        };
        Model {
            certificate: None,
            rounds: Vec::new(),
            objective: None,
            selection: Vec::new(),
            folds: 0,
            judges: 0,
            nested: false,
            features: rows.iter().map(feature).collect(),
            dropped: Vec::new(),
            metric: Some(Array2::from_shape_fn((rows.len(), 1), |(row, _)| {
                rows[row].1
            })),
        }
    }

    #[test]
    fn what_is_at_0_is_named_and_whether_it_ought_to_be_is_said() {
        let mut rows = vec![("first_1", 1.0), ("second_1", 0.0), ("mixed_1", 0.0)];
        rows.extend([("irrelevant_1", 0.0), ("irrelevant_2", 0.0)]);
        let text = truth(&model(&rows)).unwrap();
        assert!(
            text.contains(" In all these are second_1, mixed_1, irrelevant_1 and irrelevant_2."),
            "{text}"
        );
        assert!(
            text.contains("2 of 2 irrelevant features, 1 of 1 that repeat others"),
            "{text}"
        );
        assert!(text.contains("1 of 2 that make the classes"), "{text}");
        rows[4].1 = 0.01;
        let text = truth(&model(&rows)).unwrap();
        assert!(text.contains("1 of 2 irrelevant features"), "{text}");
        assert_eq!(truth(&model(&[("chol", 0.0)])), None);
    }
}
