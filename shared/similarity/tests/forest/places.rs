//! Places by a forest beside the proximities that they stand for.

use ndarray::{Array2, ArrayView1, Axis};
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::compare::proximity::places::{Places, coordinates};
use similarity::compare::{Comparison, Proximity};
use similarity::learn::forest::trees::table::{
    NodeKind, NodeRule, NodeTable, TerminalTable, TreeTable, from_tables,
};
use similarity::learn::forest::{Forest, Schema, Settings, Side, Target, TerminalNodes};
use similarity::uses::microaggregation::Closeness;

use crate::sample::*;

fn square(one: ArrayView1<'_, f64>, other: ArrayView1<'_, f64>) -> f64 {
    (&one - &other).mapv(|gap| gap * gap).sum()
}

/// The squared distance of the places of each pair, and 2 (1 - P) of it.
fn pairs(places: &Array2<f64>, proximity: &Array2<f64>) -> Vec<(f64, f64)> {
    let all = (0..places.nrows()).flat_map(|i| (0..i).map(move |j| (i, j)));
    all.map(|(i, j)| {
        let found = square(places.row(i), places.row(j));
        (found, 2.0 - 2.0 * proximity[[i, j]])
    })
    .collect()
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (a, b) = (mean(&|one| one.0), mean(&|one| one.1));
    let covariance = mean(&|one| (one.0 - a) * (one.1 - b));
    covariance / (mean(&|one| (one.0 - a).powi(2)) * mean(&|one| (one.1 - b).powi(2))).sqrt()
}

struct Sample {
    forest: Forest,
    nodes: TerminalNodes,
    proximity: Array2<f64>,
}

fn sample(outcome: usize, trees: usize) -> Sample {
    let mixed = mixed(300, 3);
    let cohort = cohort(mixed.columns, mixed.outcomes[outcome].clone());
    let settings = Settings {
        trees,
        terminal_min: 10,
        ..Settings::for_outcome(cohort.outcome())
    };
    let grown = grown(&cohort, &settings);
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let training = Training {
        forest: &grown.forest,
        in_bag: &grown.in_bag,
        nodes: &nodes,
    };
    let proximity = Kernel::Proximity.square(training).unwrap();
    Sample {
        forest: grown.forest,
        nodes,
        proximity,
    }
}

#[test]
fn places_are_a_projection_of_what_a_proximity_compares_and_keep_most_of_it() {
    for outcome in 0..4 {
        let Sample {
            forest,
            nodes,
            proximity,
        } = sample(outcome, 200);
        let mut kept = 0.0;
        for (numbers, least) in [(coordinates(3), 0.5), (32, 0.84), (128, 0.95)] {
            let places = Places::with_coordinates(&forest, numbers).of(&nodes);
            assert_eq!(places.dim(), (300, numbers));
            let found = pairs(&places, &proximity);
            // A projection brings nobody further apart.
            assert!(found.iter().all(|(near, exact)| *near <= exact + 1e-9));
            for row in places.outer_iter() {
                assert!(row.dot(&row) <= 1.0 + 1e-9);
            }
            let agrees = correlation(&found);
            let all = found.iter().map(|one| one.1).sum::<f64>();
            let more = found.iter().map(|one| one.0).sum::<f64>() / all;
            println!(
                "outcome {outcome}, {numbers} numbers: correlation {agrees:.3}, {more:.3} kept"
            );
            assert!(agrees > least && more > kept);
            kept = more;
        }
    }
}

/// Two numbers for each feature, so that sums over ten patients do not tell them.
#[test]
fn a_place_has_few_numbers() {
    assert_eq!([1, 2, 13, 16, 400].map(coordinates), [2, 4, 8, 8, 8]);
    let Sample { forest, nodes, .. } = sample(1, 5);
    assert_eq!(Places::new(&forest).of(&nodes).ncols(), coordinates(3));
}

/// Two trees of ten patients a node at least have fewer directions than these places have numbers.
#[test]
fn places_by_a_small_forest_have_the_very_distances() {
    let Sample {
        forest,
        nodes,
        proximity,
    } = sample(1, 2);
    let places = Places::with_coordinates(&forest, 128).of(&nodes);
    assert!(places.iter().all(|number| number.is_finite()));
    for (found, exact) in pairs(&places, &proximity) {
        assert!((found - exact).abs() < 1e-9, "{found}, {exact}");
    }
}

#[test]
fn places_follow_from_the_forest_and_the_patient_alone() {
    let Sample { forest, nodes, .. } = sample(1, 60);
    let places = Places::new(&forest);
    let all = places.of(&nodes);
    let read = Forest::from_bytes(&forest.to_bytes()).unwrap();
    let chosen = [7, 3, 250, 3];
    let alone = on_threads(3, || Places::new(&read).of(&nodes.select(&chosen)));
    assert_eq!(alone, all.select(Axis(0), &chosen));
}

/// A tree that parts nobody puts all in one place.
#[test]
fn a_forest_that_tells_nobody_apart_has_one_place() {
    let cohort = cohort(vec![numeric("x", &[1.0; 20])], numbers(&[2.0; 20]));
    let grown = grown(&cohort, &Settings::for_outcome(cohort.outcome()));
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let places = Places::new(&grown.forest).of(&nodes);
    for row in places.outer_iter() {
        assert!((row.dot(&row) - 1.0).abs() < 1e-9);
        assert_eq!(row, places.row(0));
    }
}

#[test]
fn a_proximity_compares_by_places_whoever_needs_coordinates() {
    let mixed = mixed(120, 4);
    let cohort = cohort(mixed.columns, mixed.outcomes[1].clone());
    let grown = grown(&cohort, &Settings::for_outcome(cohort.outcome()));
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let wanted = Places::new(&grown.forest).of(&nodes);
    let proximity = Proximity::new(grown.forest, None).unwrap();
    let comparison = Comparison::Proximity(proximity);
    let placed = comparison.place(cohort.columns()).unwrap();
    let (found, closeness) = comparison.coordinates(&placed).unwrap();
    assert_eq!(closeness, Closeness::Euclidean);
    assert_eq!(found, wanted);
}

fn split(patients: u32, feature: u32, rule: NodeRule, left: u32) -> NodeTable {
    let kind = NodeKind::Split {
        feature,
        rule,
        missing: Side::Right,
        left,
    };
    NodeTable { patients, kind }
}

fn terminal(patients: u32) -> NodeTable {
    let told = TerminalTable::Classes(vec![u64::from(patients), 0]);
    let kind = NodeKind::Terminal(told);
    NodeTable { patients, kind }
}

/// Whoever joins with another version of this program must place patients alike: the made-up patients, and so the numbers, are fixed.
#[test]
fn places_by_a_forest_made_by_hand_stay_what_they_are() {
    let one = vec![
        split(30, 0, NodeRule::AtMost(1.5), 1),
        terminal(10),
        split(20, 1, NodeRule::Levels(vec![1]), 3),
        terminal(12),
        terminal(8),
    ];
    let other = vec![
        split(30, 0, NodeRule::Present, 1),
        split(28, 0, NodeRule::AtMost(3.0), 3),
        terminal(2),
        terminal(18),
        terminal(10),
    ];
    let columns = [
        numeric("x", &[1.0, 2.0, 4.0, 4.0, f64::NAN]),
        categorical("v", &[0, 0, 0, 1, 1], &["a", "b"]),
    ];
    let target = Target::Classes {
        levels: vec!["no".to_owned(), "yes".to_owned()],
    };
    let tables = [one, other].map(|nodes| TreeTable::new(nodes, 2).unwrap());
    let forest = from_tables(Schema::new(&columns, target), &tables, &[1.0, 1.0]).unwrap();
    let places = Places::new(&forest).of(&forest.apply(&columns).unwrap());
    let wanted = ndarray::array![
        [
            0.6599709431027801,
            0.6795769301395221,
            -0.20564188092230845,
            0.23827922166431473
        ],
        [
            0.7779245813744962,
            -0.008492362773153942,
            -0.4655344260168681,
            -0.40098828834171596
        ],
        [
            0.5878442431288311,
            -0.7248911803671984,
            -0.25898398042796017,
            0.23565996805245307
        ],
        [
            0.537352546993286,
            -0.4049537012689787,
            0.6860250871907849,
            0.27180015726375945
        ],
        [
            0.3218275720227709,
            -0.10694867481192309,
            0.5725881360854008,
            -0.26648877706953905
        ],
    ];
    assert_eq!(places, wanted);
}
