//! Promise: clusters are those of kmedoids and fgclustering where definitions agree, by any comparison, on any number of threads;
//! and that nothing is stable is an answer.

#![allow(clippy::unwrap_used)] // functions that tests share

mod bad_input;
mod gain;
mod importance;
mod large;

use flate2::read::GzDecoder;
use ndarray::{Array1, Array2};
use serde_json::Value;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::compare::laplace::{Norm, laplace};
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::compare::{Comparison, Gower, Measure, Metric, Placed, Proximity};
use similarity::judge::log_rank::{log_rank, log_rank_scores};
use similarity::learn::forest::{self, Grown, TerminalNodes};
use similarity::numeric::seed::Seed;
use similarity::uses::clusters::medoids::{Medoids, build};
use similarity::uses::clusters::{
    Choice, ClassBias, Dissimilarity, Settings, StabilityRule, adjusted_rand, assign, choose,
    jensen_shannon, ordered, wasserstein,
};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference/clusters")
}

fn expected() -> Value {
    let text = std::fs::read_to_string(folder().join("clusters.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| one.as_f64().unwrap()).collect()
}

fn codes(value: &Value) -> Vec<u32> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| u32::try_from(one.as_i64().unwrap()).unwrap())
        .collect()
}

#[test]
fn total_deviations_are_the_least_that_kmedoids_finds() {
    for set in expected()["deviations"].as_array().unwrap() {
        let points: Vec<Vec<f64>> = set["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let size = points.len();
        let apart = Array2::from_shape_fn((size, size), |(i, j)| {
            let differences = points[i].iter().zip(&points[j]).map(|(a, b)| a - b);
            match set["metric"].as_str().unwrap() {
                "cityblock" => differences.map(f64::abs).sum(),
                "sqeuclidean" => differences.map(|one| one * one).sum(),
                _ => differences.map(|one| one * one).sum::<f64>().sqrt(),
            }
        });
        let built = build(apart.view(), 8);
        for (clusters, least) in set["least"].as_object().unwrap() {
            let clusters: usize = clusters.parse().unwrap();
            let least = least.as_f64().unwrap();
            let starts = (Seed(1), "starts");
            let found = Medoids::of_starts(apart.view(), &built[..clusters], 60, starts).total;
            assert!(
                (found / least - 1.0).abs() < 1e-9,
                "{clusters}: {found} {least}"
            );
            // The usual number of starts is hardly worse.
            let found = Medoids::of_starts(apart.view(), &built[..clusters], 10, starts).total;
            assert!(found / least - 1.0 < 0.02, "{clusters}: {found} {least}");
        }
    }
}

#[test]
fn distances_and_indices_are_those_of_scipy_and_scikit_learn() {
    let expected = expected();
    let cases = |name: &str| expected[name].as_array().unwrap().clone();
    for case in cases("wasserstein") {
        let found = wasserstein(&numbers(&case["one"]), &numbers(&case["other"]));
        assert!((found - case["distance"].as_f64().unwrap()).abs() < 1e-12);
    }
    for case in cases("jensen_shannon") {
        let found = jensen_shannon(&numbers(&case["one"]), &numbers(&case["other"]));
        assert!((found - case["distance"].as_f64().unwrap()).abs() < 1e-9);
    }
    for case in cases("adjusted_rand") {
        let found = adjusted_rand(&codes(&case["one"]), &codes(&case["other"]));
        assert!((found - case["index"].as_f64().unwrap()).abs() < 1e-12);
    }
}

#[test]
fn the_log_rank_test_of_several_groups_is_that_of_lifelines_and_its_scores_add_up() {
    for case in expected()["log_rank"].as_array().unwrap() {
        let time = Array1::from(numbers(&case["time"]));
        let event: Array1<bool> = case["event"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_bool().unwrap())
            .collect();
        let group = codes(&case["group"]);
        let count = usize::try_from(case["count"].as_i64().unwrap()).unwrap();
        let found = log_rank(&time, &event, &group, count).unwrap();
        let wanted = case["chi_squared"].as_f64().unwrap();
        assert!(
            (found.chi_squared / wanted - 1.0).abs() < 1e-9,
            "{found:?} {wanted}"
        );
        assert!((found.p - case["p"].as_f64().unwrap()).abs() < 1e-9);
        assert_eq!(found.degrees, count - 1);
        let scores = log_rank_scores(&time, &event);
        assert!(scores.iter().sum::<f64>().abs() < 1e-9);
    }
}

struct Example {
    name: String,
    outcome: Outcome,
    nodes: TerminalNodes,
    best: Option<usize>,
    stability: Vec<f64>,
    bias: Vec<f64>,
    labels: Vec<Vec<u32>>,
}

fn examples() -> Vec<Example> {
    let bytes = std::fs::File::open(folder().join("terminal_nodes.json.gz")).unwrap();
    let all: Value = serde_json::from_reader(GzDecoder::new(bytes)).unwrap();
    let example = |one: &Value| {
        let nodes: Vec<Vec<u32>> = one["nodes"].as_array().unwrap().iter().map(codes).collect();
        let nodes = Array2::from_shape_fn((nodes.len(), nodes[0].len()), |(i, j)| nodes[i][j]);
        let outcome = Array1::from(numbers(&one["outcome"]));
        Example {
            name: one["name"].as_str().unwrap().to_owned(),
            outcome: match one["is_class"].as_bool().unwrap() {
                true => Outcome::Classes {
                    codes: outcome.mapv(|code| {
                        if code == 2.0 {
                            2
                        } else {
                            u32::from(code == 1.0)
                        }
                    }),
                    levels: ["a", "b", "c"].map(str::to_owned).to_vec(),
                },
                false => Outcome::Numeric(outcome),
            },
            nodes: TerminalNodes::new(nodes.view()),
            best: one["best"]
                .as_u64()
                .map(|best| usize::try_from(best).unwrap()),
            stability: numbers(&one["stability"]),
            bias: numbers(&one["bias"]),
            labels: one["labels"]
                .as_array()
                .unwrap()
                .iter()
                .map(codes)
                .collect(),
        }
    };
    all.as_array().unwrap().iter().map(example).collect()
}

/// Of terminal nodes of another's forest.
fn of_nodes(nodes: &TerminalNodes) -> Dissimilarity<'static> {
    let patients = nodes.patients();
    let shared = |(i, j): (usize, usize)| {
        let trees = (0..nodes.trees()).map(|tree| nodes.of_tree(tree));
        trees.filter(|of_tree| of_tree[i] != of_tree[j]).count() as f64 / nodes.trees() as f64
    };
    Dissimilarity::of_matrix(Array2::from_shape_fn((patients, patients), shared)).unwrap()
}

/// The least total deviation of clusters, numbered from 1.
fn deviation(dissimilarity: &Dissimilarity<'_>, labels: &[u32]) -> f64 {
    let matrix = dissimilarity.matrix().unwrap();
    let of = |cluster: u32| {
        let members: Vec<usize> = (0..labels.len())
            .filter(|row| labels[*row] == cluster)
            .collect();
        let sums = members
            .iter()
            .map(|one| members.iter().map(|other| matrix[(*one, *other)]).sum());
        sums.fold(f64::INFINITY, f64::min)
    };
    (1..=labels.iter().copied().max().unwrap()).map(of).sum()
}

#[test]
fn by_its_definitions_everything_is_as_fgclustering_finds_it_on_its_own_examples() {
    let mut all_same = 0;
    for example in examples() {
        let settings = Settings {
            clusters: 2..=6,
            stability: StabilityRule::MeanOverClusters,
            class_bias: ClassBias::Mean,
            ..Settings::default()
        };
        let dissimilarity = of_nodes(&example.nodes);
        let found = choose(&dissimilarity, None, &example.outcome, &settings, Seed(1)).unwrap();
        let mut same = 0;
        for (place, one) in found.tried.iter().enumerate() {
            // Nearer to their medoids than fgclustering's one random start brings them.
            let theirs = deviation(&dissimilarity, &example.labels[place]);
            assert!(
                one.total <= theirs * 1.001,
                "{}: {} {theirs}",
                example.name,
                one.total
            );
            let is_same = adjusted_rand(&one.assigned, &example.labels[place]) > 1.0 - 1e-12;
            if !is_same {
                continue;
            }
            same += 1;
            let bias = one.bias.share.unwrap_or(one.bias.value);
            assert!(
                (bias - example.bias[place]).abs() < 1e-6,
                "{}: {bias}",
                example.name
            );
            let mean = one.stability.iter().sum::<f64>() / one.stability.len() as f64;
            let wanted = example.stability[place];
            assert!(
                (mean - wanted).abs() < 0.1,
                "{}: {mean} {wanted}",
                example.name
            );
        }
        let best = found.best.map(|best| found.tried[best].clusters());
        println!(
            "{}: {best:?}, fgclustering {:?}, {same} of 5 alike",
            example.name, example.best
        );
        all_same += same;
        assert_eq!(best, example.best, "{}", example.name);
    }
    assert!(all_same >= 5, "only {all_same} of 15 are the same");
}

/// Patients of two groups in `first` (and nothing else), whose outcome it tells.
fn two_groups(patients: usize, outcome: impl Fn(usize, f64) -> Outcome) -> Cohort {
    use rand::RngExt;
    let mut stream = Seed(11).stream("two groups", 0);
    let mut draw = |spread: f64| stream.random_range(-spread..spread);
    let first: Vec<f64> = (0..patients)
        .map(|row| if row % 3 == 0 { 5.0 } else { 0.0 } + draw(1.0))
        .collect();
    let second: Vec<f64> = (0..patients).map(|_| draw(1.0)).collect();
    let column = |name: &str, values: &[f64]| Column {
        name: name.to_owned(),
        values: Values::Numeric(Array1::from(values.to_vec())),
    };
    let columns = vec![column("first", &first), column("second", &second)];
    Cohort::new(columns, outcome(patients, draw(1.0))).unwrap()
}

fn classes(patients: usize) -> Outcome {
    Outcome::Classes {
        codes: (0..patients).map(|row| u32::from(row % 3 == 0)).collect(),
        levels: vec!["no".to_owned(), "yes".to_owned()],
    }
}

fn survival(patients: usize) -> Outcome {
    Outcome::Survival {
        time: (0..patients)
            .map(|row| if row % 3 == 0 { 30.0 } else { 5.0 } + (row % 17) as f64)
            .collect(),
        event: (0..patients).map(|row| row % 5 != 0).collect(),
    }
}

fn grown(cohort: &Cohort) -> Grown {
    let settings = forest::Settings {
        trees: 60,
        features_per_split: forest::FeaturesPerSplit::All,
        node_size: 40,
        ..forest::Settings::for_outcome(cohort.outcome())
    };
    forest::grow(cohort, &settings, Seed(4)).unwrap()
}

fn planted(cohort: &Cohort) -> Vec<u32> {
    (0..cohort.patients())
        .map(|row| u32::from(row % 3 == 0))
        .collect()
}

fn found(dissimilarity: &Dissimilarity<'_>, outcome: &Outcome) -> Choice {
    let settings = Settings {
        clusters: 2..=4,
        samples: 20,
        ..Settings::default()
    };
    choose(dissimilarity, None, outcome, &settings, Seed(2)).unwrap()
}

#[test]
fn two_groups_are_found_by_every_comparison_for_every_outcome() {
    let outcomes: [fn(usize) -> Outcome; 3] = [classes, survival, |patients| {
        Outcome::Numeric(
            (0..patients)
                .map(|row| f64::from(u8::from(row % 3 == 0)) + (row % 7) as f64 * 1e-3)
                .collect(),
        )
    }];
    for outcome in outcomes {
        let cohort = two_groups(90, |patients, _| outcome(patients));
        let names = ["first".to_owned(), "second".to_owned()];
        let moments = similarity::cohort::moments::ColumnMoments::of_cohort(&cohort).unwrap();
        let features: Vec<_> = names
            .iter()
            .map(|name| similarity::cohort::standardise::Feature {
                name: name.clone(),
                kind: similarity::cohort::standardise::FeatureKind::Numeric,
                treatment: similarity::cohort::standardise::Treatment::default(),
            })
            .collect();
        let rows = similarity::cohort::standardise::Standardisation::from_moments(
            &features,
            &moments,
            &[],
        )
        .unwrap();
        let learned = Array2::from_shape_vec((2, 1), vec![1.0, 0.1]).unwrap();
        let comparisons = [
            Comparison::Proximity(Proximity::new(grown(&cohort).forest, None).unwrap()),
            Comparison::Metric(Metric::plain(&names, rows.clone(), Measure::Manhattan)),
            Comparison::Metric(
                Metric::learned(&names, rows.clone(), learned.clone(), Measure::Euclidean).unwrap(),
            ),
            Comparison::Metric(
                Metric::learned(&names, rows, learned, Measure::InnerProduct).unwrap(),
            ),
            Comparison::Gower(Gower::of_columns(cohort.columns())),
        ];
        for comparison in comparisons {
            let placed = comparison.place(cohort.columns()).unwrap();
            let dissimilarity = Dissimilarity::of_comparison(&comparison, &placed);
            let choice = found(&dissimilarity, cohort.outcome());
            let two = &choice.tried[0];
            let name = comparison.name();
            assert!(
                adjusted_rand(&two.assigned, &planted(&cohort)) > 0.99,
                "{name}"
            );
            assert!(two.is_stable, "{name}: {:?}", two.stability);
            assert!(choice.best.is_some(), "{name}");
            // The patients themselves, as new ones, are of the clusters that they are of.
            let again = assign(&comparison, &placed, &two.medoids, &placed);
            for (row, assigned) in again.iter().enumerate() {
                let assigned = assigned.unwrap();
                assert_eq!(assigned.cluster, two.assigned[row] as usize, "{name}");
                assert!(assigned.distance <= assigned.next);
            }
        }
    }
}

#[test]
fn every_kernel_of_a_forest_and_the_laplace_kernel_find_two_groups() {
    let cohort = two_groups(90, |patients, _| classes(patients));
    let Grown { forest, in_bag } = grown(&cohort);
    let nodes = forest.apply(cohort.columns()).unwrap();
    let training = Training {
        forest: &forest,
        in_bag: &in_bag,
        nodes: &nodes,
    };
    let kernels = [
        Kernel::Proximity,
        Kernel::OutOfBag,
        Kernel::Gap,
        Kernel::Kerf,
        Kernel::Depth { omega: 0.5 },
        Kernel::Path,
    ];
    for kernel in kernels {
        let matrix = kernel.square(training).unwrap();
        let dissimilarity = Dissimilarity::of_kernel(&matrix, kernel.definiteness()).unwrap();
        let two = found(&dissimilarity, cohort.outcome()).tried.swap_remove(0);
        assert!(
            adjusted_rand(&two.assigned, &planted(&cohort)) > 0.99,
            "{kernel:?}"
        );
    }
    let points = Array2::from_shape_fn((90, 2), |(row, place)| {
        match &cohort.columns()[place].values {
            Values::Numeric(values) => values[row],
            Values::Categorical { .. } => panic!("not numbers"),
        }
    });
    let matrix = laplace(points.view(), points.view(), Norm::L1, 3.0).unwrap();
    let definite = Kernel::Proximity.definiteness();
    let dissimilarity = Dissimilarity::of_kernel(&matrix, definite).unwrap();
    let two = found(&dissimilarity, cohort.outcome()).tried.swap_remove(0);
    assert!(adjusted_rand(&two.assigned, &planted(&cohort)) > 0.99);
    // By the proximity's matrix as by the comparison itself.
    let matrix = Kernel::Proximity.square(training).unwrap();
    let by_matrix = Dissimilarity::of_kernel(&matrix, Kernel::Proximity.definiteness()).unwrap();
    let comparison = Comparison::Proximity(Proximity::new(forest.clone(), None).unwrap());
    let placed = comparison.place(cohort.columns()).unwrap();
    let by_nodes = Dissimilarity::of_comparison(&comparison, &placed);
    let (one, other) = (by_matrix.matrix().unwrap(), by_nodes.matrix().unwrap());
    assert!(one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-15));
}

#[test]
fn clusters_are_bit_equal_on_any_number_of_threads_and_differ_by_seed() {
    let example = &examples()[2];
    let dissimilarity = of_nodes(&example.nodes);
    let settings = Settings {
        samples: 10,
        ..Settings::default()
    };
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            choose(
                &dissimilarity,
                None,
                &example.outcome,
                &settings,
                Seed(seed),
            )
            .unwrap()
        })
    };
    let one = run(1, 5);
    assert_eq!(one, run(4, 5));
    let stability = |choice: &Choice| -> Vec<Vec<f64>> {
        choice
            .tried
            .iter()
            .map(|one| one.stability.clone())
            .collect()
    };
    assert_ne!(stability(&one), stability(&run(4, 6)));
}

#[test]
fn without_groups_nothing_is_stable_and_that_is_the_answer() {
    use rand::RngExt;
    let noise = |index: u64| {
        let mut stream = Seed(8).stream("nothing", index);
        let points: Vec<[f64; 12]> = (0..150)
            .map(|_| std::array::from_fn(|_| stream.random_range(0.0..1.0)))
            .collect();
        let apart = Array2::from_shape_fn((150, 150), |(i, j)| {
            let both = points[i].iter().zip(&points[j]);
            both.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        });
        Dissimilarity::of_matrix(apart).unwrap()
    };
    let (cohort, other) = (noise(0), noise(1));
    let settings = Settings {
        threshold: 0.75,
        ..Settings::default()
    };
    let choice = choose(&cohort, Some(&other), &classes(150), &settings, Seed(1)).unwrap();
    assert_eq!(choice.best, None);
    assert_eq!(choice.tried.len(), 7);
    for one in &choice.tried {
        assert!(!one.is_stable && one.bias.value.is_finite());
        // What other noise gives is as stable, and says so.
        let worst = one.stability.iter().copied().fold(1.0, f64::min);
        assert!((worst - one.by_chance.unwrap()).abs() < 0.15, "{one:?}");
    }
    // At 0.6, as Forest-Guided Clustering has it, two halves of noise may pass: only chance tells.
    let by_chance = choice.tried[0].by_chance.unwrap();
    assert!(by_chance > 0.5, "{by_chance}");
}

#[test]
fn the_heat_map_has_the_clusters_in_order_each_near_to_itself() {
    let example = &examples()[0];
    let dissimilarity = of_nodes(&example.nodes);
    let choice = found(&dissimilarity, &example.outcome);
    let three = &choice.tried[1];
    let (cells, groups) = ordered(&dissimilarity, three, 30);
    assert!(cells.nrows() <= 33 && groups.iter().sum::<usize>() == cells.nrows());
    let sizes: Vec<usize> = (0..3).map(|one| three.members(one).len()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    let cluster_of: Vec<usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(one, count)| vec![one; *count])
        .collect();
    let mean = |same: bool| {
        let all = cells.indexed_iter();
        let of: Vec<f64> = all
            .filter(|((i, j), _)| (cluster_of[*i] == cluster_of[*j]) == same)
            .map(|(_, value)| *value)
            .collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    assert!(
        mean(true) < 0.5 * mean(false),
        "{} {}",
        mean(true),
        mean(false)
    );
}

fn placed(comparison: &Comparison, cohort: &Cohort) -> Placed {
    comparison.place(cohort.columns()).unwrap()
}
