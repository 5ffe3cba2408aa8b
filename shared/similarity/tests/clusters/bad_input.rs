//! What cannot be divided into clusters is refused with its reason.

use super::*;
use ndarray::array;
use similarity::uses::clusters::ClusterError;

fn refused(
    dissimilarity: &Dissimilarity<'_>,
    outcome: &Outcome,
    clusters: (usize, usize),
) -> ClusterError {
    let settings = Settings {
        clusters: clusters.0..=clusters.1,
        ..Settings::default()
    };
    choose(dissimilarity, None, outcome, &settings, Seed(1)).unwrap_err()
}

fn line(patients: usize) -> Dissimilarity<'static> {
    let apart = Array2::from_shape_fn((patients, patients), |(i, j)| i.abs_diff(j) as f64);
    Dissimilarity::of_matrix(apart).unwrap()
}

#[test]
fn too_many_clusters_and_one_cluster_are_refused() {
    let error = refused(&line(6), &classes(6), (2, 6));
    assert_eq!(
        error,
        ClusterError::Patients {
            clusters: 6,
            patients: 6
        }
    );
    assert_eq!(
        error.to_string(),
        "found 6 clusters of 6 patients, wanted fewer clusters than patients"
    );
    for (from, to) in [(1, 1), (1, 4), (0, 3), (4, 3)] {
        assert_eq!(
            refused(&line(9), &classes(9), (from, to)),
            ClusterError::Clusters { from, to }
        );
    }
    let error = refused(&line(9), &classes(8), (2, 3));
    assert_eq!(
        error,
        ClusterError::Outcome {
            found: 8,
            wanted: 9
        }
    );
    let settings = Settings {
        clusters: 2..=5,
        samples: 5,
        ..Settings::default()
    };
    assert!(choose(&line(6), None, &classes(6), &settings, Seed(1)).is_ok());
}

#[test]
fn identical_patients_and_outcomes_that_tell_nobody_apart_are_refused() {
    let alike = Dissimilarity::of_matrix(Array2::zeros((20, 20))).unwrap();
    assert_eq!(refused(&alike, &classes(20), (2, 3)), ClusterError::Alike);
    let censored = Outcome::Survival {
        time: (1..=20).map(f64::from).collect(),
        event: Array1::from_elem(20, false),
    };
    assert_eq!(refused(&line(20), &censored, (2, 3)), ClusterError::NoEvent);
    let constant = Outcome::Numeric(Array1::from_elem(20, 3.5));
    assert_eq!(
        refused(&line(20), &constant, (2, 3)),
        ClusterError::OneOutcome
    );
    let one_class = Outcome::Classes {
        codes: Array1::zeros(20),
        levels: vec!["no".to_owned(), "yes".to_owned()],
    };
    assert_eq!(
        refused(&line(20), &one_class, (2, 3)),
        ClusterError::OneOutcome
    );
}

#[test]
fn of_few_different_patients_the_clusters_of_copies_are_not_stable() {
    // Two kinds of patients, ten of each: a third cluster can only be one of them alone.
    let apart = Array2::from_shape_fn((20, 20), |(i, j)| f64::from(u8::from(i % 2 != j % 2)));
    let dissimilarity = Dissimilarity::of_matrix(apart).unwrap();
    let outcome = Outcome::Numeric(
        (0..20)
            .map(|row| f64::from(row % 2) + f64::from(row) * 1e-3)
            .collect(),
    );
    let choice = found(&dissimilarity, &outcome);
    assert_eq!(choice.best, Some(0));
    assert!(choice.tried[0].stability.iter().all(|one| *one == 1.0));
    assert!(!choice.tried[1].is_stable);
}

#[test]
fn a_matrix_that_is_no_dissimilarity_is_refused_by_its_place() {
    let refused = |matrix: Array2<f64>| Dissimilarity::of_matrix(matrix).unwrap_err();
    assert_eq!(
        refused(Array2::zeros((2, 3))),
        ClusterError::NotSquare {
            rows: 2,
            columns: 3
        }
    );
    for (matrix, row, column) in [
        (array![[0.0, 1.0], [2.0, 0.0]], 0, 1),
        (array![[0.0, 1.0], [1.0, 0.5]], 1, 1),
        (array![[0.0, -1.0], [-1.0, 0.0]], 0, 1),
        (array![[0.0, f64::INFINITY], [f64::INFINITY, 0.0]], 0, 1),
        (array![[0.0, f64::NAN], [1.0, 0.0]], 0, 1),
    ] {
        assert_eq!(refused(matrix), ClusterError::NotDissimilar { row, column });
    }
}

#[test]
fn who_cannot_be_compared_is_as_far_away_as_the_farthest_and_counted() {
    let apart = array![[0.0, 1.0, f64::NAN], [1.0, 0.0, 4.0], [f64::NAN, 4.0, 0.0]];
    let dissimilarity = Dissimilarity::of_matrix(apart).unwrap();
    assert_eq!(dissimilarity.incomparable(), 1);
    assert_eq!(dissimilarity.matrix().unwrap()[(0, 2)], 4.0);
    assert_eq!(dissimilarity.from_each(&[2])[(0, 0)], 4.0);
}
