//! Trees worked by hand, and rules that hold for every tree.

use similarity::cohort::{MISSING_LEVEL, Outcome};
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::trees::tree::{Node, Side, SplitRule, TerminalValues};
use similarity::learn::forest::{
    ClassWeights, FeaturesPerSplit, Sampling, Settings, SplitSearch, grow, importance,
};
use similarity::numeric::seed::Seed;

use crate::sample::*;

#[test]
fn a_regression_tree_worked_by_hand() {
    // Cuts of (1,1,5,9 at 1,2,3,4): variance gains 12, 36, 100/3; then {1,1} is pure and {5,9} parts at 3.5.
    let x = [4.0, 1.0, 3.0, 2.0];
    let cohort = cohort(vec![numeric("x", &x)], numbers(&[9.0, 1.0, 5.0, 1.0]));
    let forest = grown(&cohort, &one_full_tree(cohort.outcome())).forest;
    let tree = &forest.trees()[0];
    assert_eq!(tree.nodes(), 5);
    assert_eq!(tree.terminal_nodes(), 3);
    assert_eq!(tree.patients(), [4, 2, 2, 1, 1]);
    assert_eq!(tree.depths(), [0, 1, 1, 2, 2]);
    assert_eq!(tree.parents(), [u32::MAX, 0, 0, 2, 2]);
    let root = Node::Split {
        feature: 0,
        rule: SplitRule::AtMost(2.5),
        missing: Side::Left,
        left: 1,
        right: 2,
    };
    assert_eq!(tree.node(0, &[0]), root);
    assert!(matches!(
        tree.node(2, &[0]),
        Node::Split {
            rule: SplitRule::AtMost(3.5),
            ..
        }
    ));
    assert_eq!(tree.node(1, &[0]), Node::Terminal { ordinal: 0 });
    assert_eq!(*tree.values(), TerminalValues::Numeric(vec![1.0, 5.0, 9.0]));
    // 36 at the root, 8 at the second split.
    assert!((forest.impurity_importance()[0] - 44.0).abs() < 1e-12);
    assert_eq!(
        forest.apply(cohort.columns()).unwrap().of_tree(0),
        [4, 1, 3, 1]
    );
    let new = [numeric("x", &[2.5, 2.6, 3.6, f64::NAN])];
    let Prediction::Numeric(found) = forest.predict(&new).unwrap() else {
        panic!("not numeric")
    };
    assert_eq!(found.to_vec(), [1.0, 5.0, 9.0, 1.0]);
}

#[test]
fn a_classification_tree_worked_by_hand() {
    // Three classes in three intervals of x; z is noise that parts nothing better.
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let z = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
    let cohort = cohort(
        vec![numeric("z", &z), numeric("x", &x)],
        classes(&[0, 0, 1, 1, 2, 2], 3),
    );
    let forest = grown(&cohort, &one_full_tree(cohort.outcome())).forest;
    let Prediction::Classes(shares) = forest.predict(cohort.columns()).unwrap() else {
        panic!("not classes")
    };
    assert_eq!(shares.row(2).to_vec(), [0.0, 1.0, 0.0]);
    // Gini: the root 6 - 2 = 4 over weights, gains 2 and 2: impurity 4 falls to 0.
    assert!((forest.impurity_importance()[1] - 4.0).abs() < 1e-12);
    assert_eq!(forest.impurity_importance()[0], 0.0);
}

#[test]
fn class_weights_change_the_terminal_shares() {
    let cohort = cohort(vec![numeric("x", &[1.0; 4])], classes(&[0, 0, 0, 1], 2));
    for (weights, wanted) in [
        (ClassWeights::Equal, 0.25),
        (ClassWeights::Balanced, 0.5),
        (ClassWeights::Given(vec![1.0, 6.0]), 2.0 / 3.0),
    ] {
        let settings = Settings {
            class_weights: weights,
            ..one_full_tree(cohort.outcome())
        };
        let Prediction::Classes(shares) = grown(&cohort, &settings)
            .forest
            .predict(cohort.columns())
            .unwrap()
        else {
            panic!("not classes")
        };
        assert!((shares[(0, 1)] - wanted).abs() < 1e-12);
    }
}

#[test]
fn missing_values_go_where_they_gain_most() {
    for (missing_outcome, side) in [(0.0, Side::Left), (10.0, Side::Right)] {
        let x = [1.0, 2.0, f64::NAN, f64::NAN, 3.0, 4.0];
        let y = [0.0, 0.0, missing_outcome, missing_outcome, 10.0, 10.0];
        let cohort = cohort(vec![numeric("x", &x)], numbers(&y));
        let forest = grown(&cohort, &one_full_tree(cohort.outcome())).forest;
        let Node::Split { rule, missing, .. } = forest.trees()[0].node(0, &[0]) else {
            panic!("no split")
        };
        assert_eq!((rule, missing), (SplitRule::AtMost(2.5), side));
        assert_eq!(forest.trees()[0].nodes(), 3);
    }
}

#[test]
fn being_missing_may_itself_be_the_split() {
    let x = [1.0, 2.0, 3.0, f64::NAN, f64::NAN];
    let cohort = cohort(vec![numeric("x", &x)], numbers(&[0.0, 0.0, 0.0, 7.0, 7.0]));
    let forest = grown(&cohort, &one_full_tree(cohort.outcome())).forest;
    let Node::Split { rule, missing, .. } = forest.trees()[0].node(0, &[0]) else {
        panic!("no split")
    };
    assert_eq!(
        (rule, missing),
        (SplitRule::AtMost(f64::INFINITY), Side::Right)
    );
}

#[test]
fn the_best_level_set_is_found_among_all() {
    let codes: Vec<u32> = (0..60).map(|patient| patient % 6).collect();
    let effect = [3.0, -1.0, 4.0, -1.5, 0.2, 2.6];
    let y: Vec<f64> = codes
        .iter()
        .enumerate()
        .map(|(patient, &code)| effect[code as usize] + (patient as f64 * 0.7).sin())
        .collect();
    let cohort = cohort(
        vec![categorical(
            "group",
            &codes,
            &["a", "b", "c", "d", "e", "f"],
        )],
        numbers(&y),
    );
    let settings = Settings {
        depth_max: 1,
        ..one_full_tree(cohort.outcome())
    };
    let forest = grown(&cohort, &settings).forest;
    let within = |members: &dyn Fn(u32) -> bool| -> f64 {
        let chosen: Vec<f64> = codes
            .iter()
            .zip(&y)
            .filter(|(code, _)| members(**code))
            .map(|(_, y)| *y)
            .collect();
        let mean = chosen.iter().sum::<f64>() / chosen.len() as f64;
        chosen.iter().map(|y| (y - mean).powi(2)).sum()
    };
    let gain = |set: u32| {
        within(&|_| true)
            - within(&|code| set >> code & 1 == 1)
            - within(&|code| set >> code & 1 == 0)
    };
    let best = (1..63_u32).map(gain).fold(0.0, f64::max);
    assert!((forest.impurity_importance()[0] - best).abs() < 1e-9);
    let Node::Split {
        rule: SplitRule::Levels(set),
        ..
    } = forest.trees()[0].node(0, &[6])
    else {
        panic!("no level set")
    };
    assert!((gain(set[0] as u32) - best).abs() < 1e-9);
}

#[test]
fn unseen_levels_follow_missing_values_and_levels_are_matched_by_name() {
    let training = cohort(
        vec![categorical("group", &[0, 0, 1, 1, 1], &["a", "b", "never"])],
        numbers(&[0.0, 0.0, 5.0, 5.0, 5.0]),
    );
    let forest = grown(&training, &one_full_tree(training.outcome())).forest;
    let ask = |codes: &[u32], levels: &[&str]| {
        let Prediction::Numeric(found) = forest
            .predict(&[categorical("group", codes, levels)])
            .unwrap()
        else {
            panic!("not numeric")
        };
        found.to_vec()
    };
    // Three of five patients are right, so missing values go right.
    assert_eq!(
        ask(&[0, 1, 2, MISSING_LEVEL], &["a", "b", "never"]),
        [0.0, 5.0, 5.0, 5.0]
    );
    assert_eq!(ask(&[0, 1, 2], &["b", "elsewhere", "a"]), [5.0, 5.0, 0.0]);
}

#[test]
fn more_than_64_levels_split_as_well_as_few() {
    let names: Vec<String> = (0..150).map(|level| format!("level {level}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let codes: Vec<u32> = (0..300).map(|patient| patient % 150).collect();
    let y: Vec<f64> = codes.iter().map(|code| f64::from(code % 3)).collect();
    let cohort = cohort(vec![categorical("group", &codes, &names)], numbers(&y));
    let forest = grown(&cohort, &one_full_tree(cohort.outcome())).forest;
    assert_eq!(forest.trees()[0].terminal_nodes(), 3);
    let Prediction::Numeric(found) = forest.predict(cohort.columns()).unwrap() else {
        panic!("not numeric")
    };
    assert_eq!(found.to_vec(), y);
}

#[test]
fn stopping_rules_hold_in_every_tree() {
    let mixed = mixed(300, 4);
    for outcome in mixed.outcomes {
        let cohort = cohort(mixed.columns.clone(), outcome);
        for search in [SplitSearch::Best, SplitSearch::Random] {
            let settings = Settings {
                trees: 20,
                search,
                terminal_min: 12,
                depth_max: 4,
                ..Settings::for_outcome(cohort.outcome())
            };
            let forest = grown(&cohort, &settings).forest;
            for tree in forest.trees() {
                assert!(tree.patients().iter().all(|&patients| patients >= 12));
                assert!(tree.depths().iter().all(|&depth| depth <= 4));
                assert!(tree.terminal_nodes() > 1);
                assert_eq!(tree.values().terminal_nodes(), tree.terminal_nodes());
            }
        }
    }
}

#[test]
fn node_size_counts_copies_as_ranger_does() {
    let mixed = mixed(200, 9);
    let cohort = cohort(mixed.columns, mixed.outcomes[0].clone());
    let settings = Settings {
        trees: 10,
        node_size: 30,
        ..Settings::for_outcome(cohort.outcome())
    };
    let grown = grown(&cohort, &settings);
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let levels = levels(&grown.forest);
    for (number, tree) in grown.forest.trees().iter().enumerate() {
        let mut copies = vec![0_u32; tree.nodes()];
        let parents = tree.parents();
        for (patient, &node) in nodes.of_tree(number).iter().enumerate() {
            let mut node = node;
            while node != u32::MAX {
                copies[node as usize] += u32::from(grown.in_bag.of_tree(number)[patient]);
                node = parents[node as usize];
            }
        }
        assert_eq!(copies[0], 200);
        for (node, &count) in copies.iter().enumerate() {
            let is_split = matches!(tree.node(node as u32, &levels), Node::Split { .. });
            assert!(!is_split || count > 30);
        }
    }
}

#[test]
fn forests_do_not_depend_on_the_number_of_threads() {
    let mixed = mixed(250, 6);
    for outcome in mixed.outcomes {
        let cohort = cohort(mixed.columns.clone(), outcome);
        for search in [SplitSearch::Best, SplitSearch::Random] {
            let settings = Settings {
                trees: 12,
                search,
                ..Settings::for_outcome(cohort.outcome())
            };
            let one = on_threads(1, || grow(&cohort, &settings, Seed(5)).unwrap());
            let two = on_threads(2, || grow(&cohort, &settings, Seed(5)).unwrap());
            let three = on_threads(3, || grow(&cohort, &settings, Seed(5)).unwrap());
            assert!(one == two && two == three);
            assert!(grow(&cohort, &settings, Seed(6)).unwrap() != one);
            let shuffled = |threads| {
                on_threads(threads, || {
                    importance::permutation(&one, &cohort, Seed(1)).unwrap()
                })
            };
            assert_eq!(shuffled(1), shuffled(2));
        }
    }
}

#[test]
fn a_tree_depends_on_its_number_and_not_on_how_many_there_are() {
    let mixed = mixed(120, 2);
    let cohort = cohort(mixed.columns, mixed.outcomes[3].clone());
    let few = Settings {
        trees: 3,
        ..Settings::for_outcome(cohort.outcome())
    };
    let many = Settings {
        trees: 9,
        ..few.clone()
    };
    assert_eq!(
        grown(&cohort, &few).forest.trees(),
        &grown(&cohort, &many).forest.trees()[..3]
    );
}

#[test]
fn the_order_of_patients_does_not_change_a_tree_of_everybody() {
    let mixed = mixed(90, 8);
    for outcome in [&mixed.outcomes[0], &mixed.outcomes[1]] {
        let there = cohort(mixed.columns.clone(), outcome.clone());
        let back: Vec<usize> = (0..90).rev().collect();
        let again = select(&there, &back);
        let settings = Settings {
            depth_max: 3,
            ..one_full_tree(there.outcome())
        };
        let first = grown(&there, &settings)
            .forest
            .apply(there.columns())
            .unwrap();
        let second = grown(&again, &settings)
            .forest
            .apply(again.columns())
            .unwrap();
        let unreversed: Vec<u32> = second.of_tree(0).iter().rev().copied().collect();
        // Two features may part a node alike with left and right exchanged: the partition is what counts.
        assert_eq!(canonical(first.of_tree(0)), canonical(&unreversed));
    }
}

#[test]
fn sampling_keeps_the_counts_it_drew() {
    let mixed = mixed(150, 3);
    let cohort = cohort(mixed.columns, mixed.outcomes[0].clone());
    let totals = |sampling| {
        let settings = Settings {
            trees: 8,
            sampling,
            ..Settings::for_outcome(cohort.outcome())
        };
        let grown = grown(&cohort, &settings);
        (0..8)
            .map(|tree| {
                let counts = grown.in_bag.of_tree(tree);
                let distinct = counts.iter().filter(|&&count| count > 0).count() as u32;
                assert_eq!(grown.forest.trees()[tree].patients()[0], distinct);
                (
                    counts.iter().map(|&count| u32::from(count)).sum::<u32>(),
                    distinct,
                )
            })
            .collect::<Vec<_>>()
    };
    assert!(
        totals(Sampling::Bootstrap)
            .iter()
            .all(|&(sum, distinct)| sum == 150 && distinct < 120)
    );
    assert_eq!(totals(Sampling::Subsample { share: 0.6 }), [(90, 90); 8]);
    assert_eq!(totals(Sampling::Whole), [(150, 150); 8]);
}

#[test]
fn permutation_importance_finds_the_features_that_matter() {
    let mixed = mixed(300, 12);
    for outcome in mixed.outcomes {
        let cohort = cohort(mixed.columns.clone(), outcome.clone());
        let settings = Settings {
            trees: 60,
            features_per_split: FeaturesPerSplit::All,
            ..Settings::for_outcome(&outcome)
        };
        let grown = grown(&cohort, &settings);
        let found = importance::permutation(&grown, &cohort, Seed(2)).unwrap();
        assert!(found.mean[1] > 3.0 * found.standard_error[1]);
        // `noise` sets survival times as well; elsewhere it is what it is called.
        if !matches!(outcome, Outcome::Survival { .. }) {
            assert!(found.mean[1] > 5.0 * found.mean[2].abs());
        }
    }
}
