//! Many patients, without a matrix.

use super::*;
use similarity::uses::clusters::MATRIX_PATIENTS_MAX;

#[test]
fn beyond_a_matrix_the_clusters_are_those_of_the_matrix() {
    let patients = MATRIX_PATIENTS_MAX + 600;
    let cohort = two_groups(patients, |patients, _| classes(patients));
    let settings = forest::Settings {
        trees: 20,
        ..forest::Settings::for_outcome(cohort.outcome())
    };
    let grown = forest::grow(&cohort, &settings, Seed(4)).unwrap();
    let comparison = Comparison::Proximity(Proximity::new(grown.forest, None).unwrap());
    let all = placed(&comparison, &cohort);
    let dissimilarity = Dissimilarity::of_comparison(&comparison, &all);
    assert!(dissimilarity.matrix().is_none());
    let settings = Settings {
        clusters: 2..=3,
        samples: 5,
        ..Settings::default()
    };
    let found = choose(&dissimilarity, None, cohort.outcome(), &settings, Seed(1)).unwrap();
    let two = &found.tried[0];
    assert!(adjusted_rand(&two.assigned, &planted(&cohort)) > 0.99);
    assert!(two.is_stable);
    let rows: Vec<usize> = (0..patients).collect();
    let whole = dissimilarity.among(&rows);
    let built = build(whole.view(), 2);
    let exact = Medoids::of_starts(whole.view(), &built, 2, (Seed(1), "starts"));
    assert!(
        (two.total / exact.total - 1.0).abs() < 1e-9,
        "{} {}",
        two.total,
        exact.total
    );
    // Gower has neither a matrix then nor terminal nodes.
    let comparison = Comparison::Gower(Gower::of_columns(cohort.columns()));
    let all = placed(&comparison, &cohort);
    let dissimilarity = Dissimilarity::of_comparison(&comparison, &all);
    let found = choose(&dissimilarity, None, cohort.outcome(), &settings, Seed(1)).unwrap();
    assert!(adjusted_rand(&found.tried[0].assigned, &planted(&cohort)) > 0.99);
}
