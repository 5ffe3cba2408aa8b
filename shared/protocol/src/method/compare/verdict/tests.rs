use super::*;
use crate::assessment::{ErrorMeasure, EvaluationCounts, Gains};
use crate::method::compare::message::FamilyCounts;

const PATIENTS: u64 = 1_000;

/// Sums of a gain of so many thousandths, with an error of five.
fn sums(thousandths: f64) -> [f64; 5] {
    let value = thousandths / 1_000.0;
    [1.0, value, 0.005 * 0.005, 0.0, 0.0]
}

/// With a gain in the area, and in Brier's score.
fn compared(family: Family, gains: Option<[f64; 2]>) -> Compared {
    let [areas, errors] = gains.map_or([None; 2], |gains| gains.map(|one| Some(sums(one))));
    let confusion = vec![vec![400, 100], vec![100, 400]];
    Compared {
        counts: FamilyCounts {
            family,
            measure: ErrorMeasure::Misclassified,
            counts: EvaluationCounts {
                gains: Gains { areas, errors },
                ..EvaluationCounts::new(family.name(), 5, Some(confusion), None)
            },
            errors: None,
        },
        sites: 3,
    }
}

fn model(families: &[(Family, Option<[f64; 2]>)]) -> Model {
    let plain = compared(Family::Euclidean, None);
    let others = families
        .iter()
        .map(|(family, gains)| compared(*family, *gains));
    Model {
        patients: PATIENTS,
        neighbours: 5,
        folds: 5,
        families: std::iter::once(plain).chain(others).collect(),
        left_out: vec![(
            Family::Regression,
            "the regression has no maximum".to_owned(),
        )],
    }
}

fn kind() -> OutcomeKind {
    OutcomeKind::Categorical {
        levels: vec!["a".to_owned(), "b".to_owned()],
    }
}

fn sentences(families: &[(Family, Option<[f64; 2]>)]) -> Vec<String> {
    model(families).sentences(&kind())
}

#[test]
fn within_chance_nothing_is_said_of_learning() {
    let told = sentences(&[
        (Family::Cosine, None),
        (Family::Unpsl, Some([6.0, 1.0])),
        (Family::ForestModel, Some([1.0, 0.5])),
    ]);
    assert!(told[0].starts_with("No similarity predicts these patients better"));
    assert!(told[0].contains("whether learning one helps is uncertain with these patients"));
    assert!(
        told[0].contains("best of those tested is the UnPSL metric: AUC gain +0.006"),
        "{}",
        told[0]
    );
    assert!(told[1].starts_with("Not tested") && told[1].contains("the cosine distance"));
    assert!(
        told[2].contains("the forest itself: AUC gain +0.001"),
        "{}",
        told[2]
    );
    assert!(
        told[3].contains("Not compared: the regression-weighted distance, because the regression")
    );
}

#[test]
fn a_learned_metric_is_worth_it_where_it_alone_is_better_beyond_chance() {
    let told = sentences(&[
        (Family::Unpsl, Some([30.0, 0.0])),
        (Family::Gower, Some([2.0, 2.0])),
    ]);
    assert!(told[0].starts_with("The similarity that suits this cohort is the UnPSL metric"));
    assert!(
        told[0].ends_with("Learning one was worth it."),
        "{}",
        told[0]
    );
    let told = sentences(&[
        (Family::Unpsl, Some([30.0, 20.0])),
        (Family::Gower, Some([28.0, 0.0])),
    ]);
    assert!(
        told[0].contains("is open: the Gower distance"),
        "{}",
        told[0]
    );
    let told = sentences(&[
        (Family::Unpsl, Some([28.0, 20.0])),
        (Family::Gower, Some([30.0, 0.0])),
    ]);
    assert!(
        told[0].contains("is the Gower distance") && told[0].contains("This one learns nothing")
    );
}

#[test]
fn a_learned_metric_that_is_worse_beyond_chance_is_called_so() {
    let told = sentences(&[
        (Family::Unpsl, Some([-30.0, -5.0])),
        (Family::Cosine, Some([2.0, 1.0])),
    ]);
    assert!(told[0].starts_with("No similarity"));
    assert_eq!(
        told[1],
        "Worse than the Euclidean distance beyond chance: the UnPSL metric: AUC gain -0.030, Brier gain -0.005."
    );
}

#[test]
fn better_in_one_figure_and_worse_in_the_other_is_no_recommendation() {
    let told = sentences(&[(Family::Unpsl, Some([30.0, -20.0]))]);
    assert!(told[0].starts_with("No similarity"), "{}", told[0]);
    assert!(
        told[1].starts_with("Better than the Euclidean distance in one figure and worse in the other: the UnPSL metric"),
        "{}",
        told[1]
    );
}

#[test]
fn learned_families_are_corrected_by_themselves() {
    // Twice its error: p is 0.046 of each by itself.
    let gains = Some([10.0, 0.0]);
    let chance = |families: &[(Family, Option<[f64; 2]>)]| {
        let rows = model(families).rows(&kind());
        let row = rows.iter().find(|row| row.family == Family::Unpsl);
        row.unwrap().gains[0].p_of_all
    };
    let alone = chance(&[(Family::Unpsl, gains)]);
    assert!(
        (alone - 2.0 * 0.045_500).abs() < 1e-5,
        "both figures: {alone}"
    );
    let plain = [Family::Unpsl, Family::Cosine, Family::Gower].map(|family| (family, gains));
    assert!((chance(&plain) - alone).abs() < 1e-12);
    let learned = [Family::Unpsl, Family::Forest, Family::Anchored].map(|family| (family, gains));
    assert!(chance(&learned) > 2.0 * alone);
    let models = [Family::Unpsl, Family::ForestModel].map(|family| (family, gains));
    assert!((chance(&models) - alone).abs() < 1e-12);
}

#[test]
fn where_nothing_is_tested_nothing_is_claimed() {
    let told = sentences(&[(Family::Unpsl, None)]);
    assert!(told[0].starts_with("No difference from the Euclidean distance"));
    let told = sentences(&[]);
    assert!(told[0].starts_with("No difference from the Euclidean distance"));
}
