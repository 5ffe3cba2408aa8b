//! As many groups as there are are found, none in one cloud, and groups that fare alike are said to.

use super::*;
use rand::RngExt;

/// 60 patients a group, groups 8 apart on a line, with a spread of 1 in two coordinates.
fn distances(groups: usize, seed: u64) -> Array2<f64> {
    let mut stream = Seed(seed).stream("groups", 0);
    let points: Vec<[f64; 2]> = (0..60 * groups)
        .map(|row| [8.0 * (row / 60) as f64, 0.0].map(|at| at + stream.random_range(-1.0..1.0)))
        .collect();
    Array2::from_shape_fn((points.len(), points.len()), |(i, j)| {
        let ([a, b], [c, d]) = (points[i], points[j]);
        (a - c).hypot(b - d)
    })
}

/// Classes that each group has with a probability of its own.
fn drawn(chances: &[f64], seed: u64) -> Outcome {
    let mut stream = Seed(seed).stream("outcome", 0);
    let codes: Array1<u32> = (0..60 * chances.len())
        .map(|row| u32::from(stream.random_range(0.0..1.0) < chances[row / 60]))
        .collect();
    let levels = vec!["no".to_owned(), "yes".to_owned()];
    Outcome::Classes { codes, levels }
}

fn choice(apart: Array2<f64>, outcome: &Outcome) -> (Option<usize>, bool) {
    let dissimilarity = Dissimilarity::of_matrix(apart).unwrap();
    let settings = Settings {
        samples: 20,
        ..Settings::default()
    };
    let found = choose(&dissimilarity, None, outcome, &settings, Seed(1)).unwrap();
    let best = found.best.map(|place| found.tried[place].clusters());
    (best, found.differ)
}

#[test]
fn as_many_groups_as_fare_differently_are_found() {
    let five = [0.02, 0.4, 0.98, 0.1, 0.7];
    for seed in 1..=5 {
        for chances in [&[0.1, 0.6][..], &[0.1, 0.9, 0.4], &five] {
            let found = choice(distances(chances.len(), seed), &drawn(chances, seed));
            assert_eq!(found, (Some(chances.len()), true), "seed {seed}");
        }
    }
}

#[test]
fn groups_that_fare_alike_are_said_to() {
    let mut said = 0;
    for seed in 1..=20 {
        let (best, differ) = choice(distances(3, seed), &drawn(&[0.3; 3], seed));
        assert!(best.is_some());
        said += u32::from(!differ);
    }
    // By chance one of twenty may differ.
    assert!(said >= 18, "{said} of 20");
}

#[test]
fn one_cloud_has_no_groups_that_differ() {
    let mut differ = 0;
    for seed in 1..=20 {
        differ += u32::from(choice(distances(1, seed), &drawn(&[0.4], seed)).1);
    }
    assert!(differ <= 2, "{differ} of 20");
}
