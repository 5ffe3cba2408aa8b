use super::*;
use crate::assessment::{ErrorMeasure, EvaluationCounts};
use crate::method::compare::message::FamilyCounts;

const PATIENTS: u64 = 1_000;

fn compared(family: Family, discordant: Option<[u64; 2]>) -> Compared {
    Compared {
        counts: FamilyCounts {
            family,
            measure: ErrorMeasure::Misclassified,
            counts: EvaluationCounts {
                rule: family.name().to_owned(),
                neighbours: 5,
                confusion: Some(vec![vec![400, 100], vec![100, 400]]),
                scores: None,
                rounded_to: 1,
                area: None,
            },
            errors: None,
            discordant: discordant.map(|[first, second]| [first, second, PATIENTS]),
            differences: None,
        },
        sites: 3,
    }
}

fn sentences(families: &[(Family, Option<[u64; 2]>)]) -> Vec<String> {
    let plain = compared(Family::Euclidean, None);
    let others = families
        .iter()
        .map(|(family, counts)| compared(*family, *counts));
    let kind = OutcomeKind::Categorical {
        levels: vec!["a".to_owned(), "b".to_owned()],
    };
    let model = Model {
        patients: PATIENTS,
        neighbours: 5,
        folds: 5,
        families: std::iter::once(plain).chain(others).collect(),
        left_out: vec![(
            Family::Regression,
            "the regression has no maximum".to_owned(),
        )],
    };
    model.sentences(&kind)
}

#[test]
fn within_chance_nothing_is_said_of_learning() {
    let told = sentences(&[
        (Family::Cosine, None),
        (Family::Unpsl, Some([40, 52])),
        (Family::ForestModel, Some([30, 31])),
    ]);
    assert!(told[0].starts_with("No similarity predicts these patients better"));
    assert!(told[0].contains("whether learning one helps is uncertain with these patients"));
    assert!(
        told[0].contains("best of those tested is the UnPSL metric, 1.2 percentage points more")
    );
    assert!(told[1].starts_with("Not tested") && told[1].contains("the cosine distance"));
    assert!(told[2].contains("the forest itself, 0.1 percentage points more"));
    assert!(
        told[3].contains("Not compared: the regression-weighted distance, because the regression")
    );
}

#[test]
fn a_learned_metric_is_worth_it_where_it_alone_is_better_beyond_chance() {
    let told = sentences(&[
        (Family::Unpsl, Some([20, 90])),
        (Family::Gower, Some([40, 45])),
    ]);
    assert!(told[0].starts_with("The similarity that suits this cohort is the UnPSL metric"));
    assert!(
        told[0].ends_with("Learning one was worth it."),
        "{}",
        told[0]
    );
    let told = sentences(&[
        (Family::Unpsl, Some([20, 90])),
        (Family::Gower, Some([20, 80])),
    ]);
    assert!(
        told[0].contains("is open: the Gower distance"),
        "{}",
        told[0]
    );
    let told = sentences(&[
        (Family::Unpsl, Some([20, 80])),
        (Family::Gower, Some([20, 90])),
    ]);
    assert!(
        told[0].contains("is the Gower distance") && told[0].contains("This one learns nothing")
    );
}

#[test]
fn a_learned_metric_that_is_worse_beyond_chance_is_called_so() {
    let told = sentences(&[
        (Family::Unpsl, Some([90, 20])),
        (Family::Cosine, Some([40, 45])),
    ]);
    assert!(told[0].starts_with("No similarity"));
    assert_eq!(
        told[1],
        "Worse than the Euclidean distance beyond chance: the UnPSL metric (7.0 percentage points less accurate)."
    );
}

#[test]
fn what_one_test_believes_several_may_not() {
    // p is 0.037 of each: believed alone, and not among four.
    let counts = Some([40, 62]);
    assert!(sentences(&[(Family::Unpsl, counts)])[0].starts_with("The similarity"));
    let all = [Family::Unpsl, Family::Cosine, Family::Gower, Family::Forest];
    let all = all.map(|family| (family, counts));
    assert!(sentences(&all)[0].starts_with("No similarity"));
}

#[test]
fn where_nothing_is_tested_nothing_is_claimed() {
    let told = sentences(&[(Family::Unpsl, None)]);
    assert!(told[0].starts_with("No difference from the Euclidean distance"));
    let told = sentences(&[]);
    assert!(told[0].starts_with("No difference from the Euclidean distance"));
}
