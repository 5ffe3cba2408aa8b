//! Forests of several sites.

use ndarray::Array1;
use rand::RngExt;
use similarity::cohort::{Cohort, Outcome, Values};
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::judge::error::{Measure, prediction_error};
use similarity::learn::forest::edges::{EdgesError, PooledEdges, SiteHistogram};
use similarity::learn::forest::federated::{DisclosureError, MergeError, SiteForest, merged};
use similarity::learn::forest::trees::tree::{Node, SplitRule};
use similarity::learn::forest::{EventTimes, Forest, GrowError, Grown, InBag, Settings, grow};
use similarity::numeric::seed::Seed;
use std::ops::Range;

use crate::sample::*;

const MINIMUM: u32 = 10;

fn site(seed: u64, outcome: usize) -> Cohort {
    let mixed = mixed(260, seed);
    cohort(mixed.columns, mixed.outcomes[outcome].clone())
}

/// What each site releases of its features, pooled.
fn pooled_edges(sites: &[Cohort]) -> PooledEdges {
    let features = 0..sites[0].columns().len();
    let histograms: Vec<Vec<SiteHistogram>> = features
        .map(|feature| {
            let of_site = |site: &Cohort| match &site.columns()[feature].values {
                Values::Numeric(values) => {
                    Some(SiteHistogram::new(values.view(), 20, u64::from(MINIMUM)).unwrap())
                }
                Values::Categorical { .. } => None,
            };
            sites.iter().filter_map(of_site).collect()
        })
        .collect();
    PooledEdges::pooled(&histograms, 31).unwrap()
}

fn settings(cohort: &Cohort, edges: &PooledEdges) -> Settings {
    Settings {
        trees: 25,
        event_times: EventTimes::Given((1..=12).map(|step| f64::from(step) * 8.0).collect()),
        ..Settings::for_outcome(cohort.outcome())
    }
    .federated(edges.clone(), MINIMUM)
}

#[test]
fn site_forests_disclose_edges_and_large_nodes_only() {
    for outcome in 0..4 {
        let sites = [site(40, outcome), site(41, outcome)];
        let edges = pooled_edges(&sites);
        let forest = grow(&sites[0], &settings(&sites[0], &edges), Seed(3))
            .unwrap()
            .forest;
        let levels = levels(&forest);
        for tree in forest.trees() {
            for number in 0..tree.nodes() {
                if let Node::Split {
                    feature,
                    rule: SplitRule::AtMost(threshold),
                    ..
                } = tree.node(number as u32, &levels)
                {
                    assert!(threshold.is_infinite() || edges.of(feature).contains(&threshold));
                }
            }
        }
        let released = SiteForest::new(forest.clone(), &edges, MINIMUM).unwrap();
        assert!(
            released
                .node_counts()
                .all(|count| count.patients >= MINIMUM)
        );
        assert!(released.node_counts().count() > 25 * 3);
        assert_eq!(released.into_forest(), forest);
    }
}

#[test]
fn forests_that_disclose_too_much_are_withheld() {
    let cohort = site(40, 0);
    let edges = pooled_edges(std::slice::from_ref(&cohort));
    let plain = Settings {
        trees: 3,
        ..Settings::for_outcome(cohort.outcome())
    };
    let exact = grown(
        &cohort,
        &Settings {
            terminal_min: MINIMUM,
            ..plain.clone()
        },
    )
    .forest;
    assert!(matches!(
        SiteForest::new(exact, &edges, MINIMUM),
        Err(DisclosureError::BesideEdges { .. })
    ));
    let small = grown(&cohort, &plain.federated(edges.clone(), 3)).forest;
    let refused = SiteForest::new(small.clone(), &edges, MINIMUM).unwrap_err();
    assert!(matches!(
        refused,
        DisclosureError::BelowMinimum {
            wanted: MINIMUM,
            ..
        }
    ));
    let short = PooledEdges::new(vec![vec![1.0]]).unwrap();
    assert_eq!(
        SiteForest::new(small, &short, 1),
        Err(DisclosureError::Features {
            found: 1,
            wanted: 3
        })
    );
    assert_eq!(
        grow(&cohort, &settings(&cohort, &short), Seed(1)).unwrap_err(),
        GrowError::Edges {
            found: 1,
            wanted: 3
        }
    );
}

#[test]
fn a_merged_forest_is_its_parts_and_predicts_better_than_the_worst() {
    for outcome in 0..4 {
        let sites = [site(50, outcome), site(51, outcome), site(52, outcome)];
        let edges = pooled_edges(&sites);
        let parts: Vec<Grown> = sites
            .iter()
            .zip(0..)
            .map(|(site, seed)| grow(site, &settings(site, &edges), Seed(seed)).unwrap())
            .collect();
        let forest = merged(parts.iter().map(|part| part.forest.clone()).collect()).unwrap();
        assert_eq!(forest.trees().len(), 75);
        let test = site(60, outcome);
        let error = |forest: &Forest| {
            let prediction = forest.predict(test.columns()).unwrap();
            match prediction_error(&prediction, test.outcome())
                .unwrap()
                .measure
            {
                Measure::Numeric { mean_squared } => mean_squared,
                Measure::Classes { brier, .. } => brier,
                Measure::Survival { discordance } => discordance,
            }
        };
        let worst = parts
            .iter()
            .map(|part| error(&part.forest))
            .fold(0.0, f64::max);
        assert!(error(&forest) < worst);
        let whole = forest.apply(sites[1].columns()).unwrap();
        let part = parts[1].forest.apply(sites[1].columns()).unwrap();
        assert!((0..25).all(|tree| whole.of_tree(25 + tree) == part.of_tree(tree)));
        let in_bag = parts[1].in_bag.within_evenly(25, 75).unwrap();
        assert!((0..25).all(|tree| in_bag.of_tree(25 + tree) == parts[1].in_bag.of_tree(tree)));
        assert!(parts[1].in_bag.within_evenly(60, 75).is_none());
        // Of every site's trees as many count for a patient.
        for patient in 0..sites[1].patients() {
            let counted = |trees: Range<usize>| {
                let out = trees.filter(|tree| in_bag.of_tree(*tree)[patient] == 0);
                out.count()
            };
            assert_eq!(counted(0..25), counted(25..50));
            assert_eq!(counted(50..75), counted(25..50));
        }
        let training = Training {
            forest: &forest,
            in_bag: &in_bag,
            nodes: &whole,
        };
        let matrix = Kernel::OutOfBag.square(training).unwrap();
        let missing = matrix.iter().filter(|value| value.is_nan()).count();
        assert!(200 * missing < matrix.len(), "{missing}");
        let mut known = matrix.iter().filter(|value| !value.is_nan());
        assert!(known.all(|value| (0.0..=1.0).contains(value)));
    }
}

#[test]
fn hardly_any_two_patients_are_without_a_tree_that_has_seen_neither_where_their_site_has_few() {
    let site = site(50, 0);
    let few = Settings {
        trees: 8,
        ..Settings::for_outcome(site.outcome())
    };
    let own = grown(&site, &few).in_bag;
    let all = own.within_evenly(16, 160).unwrap();
    let out = |bags: &InBag, tree: usize, patient: usize| bags.of_tree(tree)[patient] == 0;
    let strangers = |bags: &InBag| {
        let pairs = (0..site.patients()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let have_one = |(one, other): &(usize, usize)| {
            (0..bags.trees()).any(|tree| out(bags, tree, *one) && out(bags, tree, *other))
        };
        pairs.filter(|pair| !have_one(pair)).count()
    };
    let pairs = site.patients() * (site.patients() - 1) / 2;
    let found = [&own, &all].map(strangers);
    assert!(10 * found[0] > 2 * pairs, "{found:?} of {pairs}");
    assert!(100 * found[1] < pairs, "{found:?} of {pairs}");
}

#[test]
fn only_forests_of_one_schema_merge() {
    let one = grown(
        &site(1, 0),
        &Settings {
            trees: 1,
            ..Settings::for_outcome(site(1, 0).outcome())
        },
    );
    // Who is in every bag has all other trees.
    let evenly = one.in_bag.within_evenly(1, 3).unwrap();
    assert!(
        [0, 2]
            .iter()
            .all(|tree| evenly.of_tree(*tree).iter().all(|count| *count == 0))
    );
    let two = grown(
        &site(1, 1),
        &Settings {
            trees: 1,
            ..Settings::for_outcome(site(1, 1).outcome())
        },
    );
    assert_eq!(merged(vec![]), Err(MergeError::NoForests));
    assert_eq!(
        merged(vec![one.forest.clone(), two.forest]),
        Err(MergeError::Schema { forest: 1 })
    );
    assert_eq!(merged(vec![one.forest.clone()]).unwrap(), one.forest);
}

#[test]
fn histograms_from_outside_are_checked() {
    let received = SiteHistogram::received;
    assert_eq!(
        received(vec![1.0, 1.0], vec![9, 9, 9], 5),
        Err(EdgesError::Edge { position: 1 })
    );
    assert_eq!(
        received(vec![f64::NAN], vec![9, 9], 5),
        Err(EdgesError::Edge { position: 0 })
    );
    assert_eq!(
        received(vec![1.0], vec![9], 5),
        Err(EdgesError::Counts {
            found: 1,
            wanted: 2
        })
    );
    assert_eq!(
        received(vec![1.0], vec![9, 4], 5),
        Err(EdgesError::Cell {
            position: 1,
            wanted: 5
        })
    );
    let values = Array1::from(vec![1.0; 8]);
    assert!(matches!(
        SiteHistogram::new(values.view(), 0, 5),
        Err(EdgesError::Zero { .. })
    ));
    assert!(matches!(
        SiteHistogram::new(values.view(), 4, 0),
        Err(EdgesError::Zero { .. })
    ));
    assert!(matches!(
        PooledEdges::pooled(&[], 0),
        Err(EdgesError::Zero { .. })
    ));
    // One value for all: a single open cell, and no edge to cut at.
    assert_eq!(
        SiteHistogram::new(values.view(), 4, 5).unwrap().edges(),
        [0.0; 0]
    );
}

#[test]
fn pooled_cuts_cost_little_accuracy() {
    let mut stream = Seed(8).stream("accuracy", 0);
    let mut friedman = |patients: usize| {
        let x: Vec<Vec<f64>> = (0..6)
            .map(|_| (0..patients).map(|_| stream.random::<f64>()).collect())
            .collect();
        let y: Vec<f64> = (0..patients)
            .map(|row| {
                10.0 * (std::f64::consts::PI * x[0][row] * x[1][row]).sin()
                    + 20.0 * (x[2][row] - 0.5).powi(2)
                    + 10.0 * x[3][row]
                    + 5.0 * x[4][row]
            })
            .collect();
        let columns = x
            .iter()
            .enumerate()
            .map(|(place, x)| numeric(&format!("x{place}"), x))
            .collect();
        cohort(columns, numbers(&y))
    };
    let (training, test) = (friedman(600), friedman(400));
    let edges = pooled_edges(std::slice::from_ref(&training));
    let error = |settings: &Settings| {
        let prediction = grown(&training, settings)
            .forest
            .predict(test.columns())
            .unwrap();
        match prediction_error(&prediction, test.outcome())
            .unwrap()
            .measure
        {
            Measure::Numeric { mean_squared } => mean_squared,
            _ => unreachable!(),
        }
    };
    let exact = Settings {
        trees: 150,
        terminal_min: 10,
        ..Settings::for_outcome(training.outcome())
    };
    assert!(matches!(training.outcome(), Outcome::Numeric(_)));
    let ratio = error(&exact.clone().federated(edges, 10)) / error(&exact);
    assert!(ratio < 1.1, "{ratio}");
}
