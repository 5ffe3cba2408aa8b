//! Baselines against metric-learn and their formulas in NumPy: `tests/reference/baselines/metrics.py`.

use ndarray::{Array1, Array2};
use serde_json::Value;
use similarity::learn::unpsl::Labels;
use similarity::numeric::seed::Seed;

use super::itml::{Pair, project};
use super::low_rank::Problem;
use super::r2ml::{Objective, learned, onto_simplex, shrunk};
use super::*;

fn reference() -> Value {
    let text = include_str!("../../../../tests/reference/baselines/metrics.json");
    serde_json::from_str(text).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap().iter();
    list.map(|number| number.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap()
}

fn labels(reference: &Value) -> Labels {
    let codes = numbers(&reference["codes"]).into_iter();
    Labels::Classes(codes.map(|code| code as u32).collect::<Array1<u32>>())
}

/// The largest difference of two matrices, relative to the largest entry.
fn apart(found: &Array2<f64>, wanted: &Array2<f64>) -> f64 {
    let largest = |m: &Array2<f64>| m.iter().fold(0.0, |top: f64, v| top.max(v.abs()));
    largest(&(found - wanted)) / largest(wanted)
}

#[test]
fn gmml_is_the_geodesic_of_its_formula() {
    let reference = reference();
    let patients = matrix(&reference["patients"]);
    for case in reference["gmml"].as_array().unwrap() {
        let settings = GmmlSettings {
            step: case["step"].as_f64().unwrap(),
            ridge: reference["ridge"].as_f64().unwrap(),
        };
        let w = gmml(&patients.view(), &labels(&reference), settings).unwrap();
        let off = apart(&w.dot(&w.t()), &matrix(&case["metric"]));
        assert!(off < 1e-10, "{off:e}");
    }
}

#[test]
fn itml_is_that_of_metric_learn() {
    let reference = reference();
    let patients = matrix(&reference["patients"]);
    let signs = numbers(&reference["pair_labels"]);
    let rows = reference["pairs"].as_array().unwrap().iter().map(numbers);
    let pairs: Vec<Pair> = rows
        .zip(signs)
        .map(|(rows, sign)| Pair {
            rows: [rows[0] as usize, rows[1] as usize],
            sign,
        })
        .collect();
    let bounds = numbers(&reference["bounds"]);
    for case in reference["itml"].as_array().unwrap() {
        let settings = ItmlSettings {
            slack: case["gamma"].as_f64().unwrap(),
            bounds: PairBounds {
                similar: bounds[0],
                dissimilar: bounds[1],
            },
        };
        let found = project(&patients.view(), &pairs, settings);
        let wanted = matrix(&case["metric"]);
        assert!(apart(&found, &Array2::eye(4)) > 0.05, "it has moved");
        let off = apart(&found, &wanted);
        assert!(off < 1e-10, "{off:e}");
    }
    // drawn pairs: the same from one seed
    let settings = ItmlSettings {
        slack: 1.0,
        bounds: distance_percentiles(&patients.view()),
    };
    let drawn = |seed| itml(&patients.view(), &labels(&reference), settings, Seed(seed)).unwrap();
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn the_lmnn_loss_and_its_gradient_are_those_of_the_formula_and_it_falls() {
    let reference = reference();
    let (patients, labels) = (matrix(&reference["patients"]), labels(&reference));
    let view = patients.view();
    let loss = LmnnLoss::new(&view, &labels);
    let case = &reference["lmnn"];
    let (value, gradient) = loss.value_and_gradient(&matrix(&case["w"]));
    let wanted = case["loss"].as_f64().unwrap();
    assert!((value / wanted - 1.0).abs() < 1e-12);
    let off = apart(&gradient, &matrix(&case["gradient"]));
    assert!(off < 1e-6, "{off:e}");
    let learned = loss.value_and_gradient(&lmnn(&view, &labels)).0;
    let euclidean = loss.value_and_gradient(&Array2::eye(4)).0;
    assert!(learned < 0.95 * euclidean, "{learned} from {euclidean}");
}

/// Features that no patient has add nothing: the metric of what the patients span is that of all features.
#[test]
fn r2ml_of_more_features_than_patients_is_learned_in_their_span() {
    let reference = reference();
    let patients = matrix(&reference["patients"]);
    let few = patients.slice(ndarray::s![..24, ..]).to_owned();
    let codes = numbers(&reference["codes"]).into_iter().take(24);
    let labels = Labels::Classes(codes.map(|code| code as u32).collect::<Array1<u32>>());
    let narrow = r2ml(&few.view(), &labels, Seed(1)).unwrap();
    // The same patients, turned into 40 dimensions: distances are as they were.
    let mut wide = Array2::zeros((patients.nrows(), 40));
    for (at, column) in patients.columns().into_iter().enumerate() {
        wide.column_mut(3 * at).scaled_add(0.6, &column);
        wide.column_mut(3 * at + 1).scaled_add(0.8, &column);
    }
    let learned = wide.slice(ndarray::s![..24, ..]).to_owned();
    let found = r2ml(&learned.view(), &labels, Seed(1)).unwrap();
    let all = |of: &R2ml, patients: &Array2<f64>| of.distances_within(&patients.view());
    let off = apart(&all(&found, &wide), &all(&narrow, &patients));
    assert!(off < 1e-6, "{off:e}");
}

#[test]
fn r2ml_follows_its_formula_step_by_step_and_its_objective_falls() {
    let text = include_str!("../../../../tests/reference/baselines/r2ml.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let (patients, labels) = (matrix(&reference["patients"]), labels(&reference));
    let view = patients.view();
    let objective = Objective::new(&view, &labels);
    let metrics: Vec<Array2<f64>> = reference["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(matrix)
        .collect();
    let weights = matrix(&reference["weights"]);
    let (value, slope) =
        objective.value_and_subgradient(&metrics[0], &weights.column(0).to_owned());
    assert!((value / reference["smooth"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let off = apart(&slope, &matrix(&reference["subgradient"]));
    assert!(off < 1e-6, "{off:e}");
    let value = objective.value(&metrics, &weights).unwrap();
    assert!((value / reference["objective"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let threshold = reference["threshold"].as_f64().unwrap();
    let off = apart(
        &shrunk(&metrics[0], threshold).unwrap().metric,
        &matrix(&reference["shrunk"]),
    );
    assert!(off < 1e-7, "{off:e}");
    let points = reference["points"].as_array().unwrap();
    for (point, nearest) in points.iter().zip(reference["nearest"].as_array().unwrap()) {
        let found = onto_simplex(&numbers(point));
        let away = found
            .iter()
            .zip(numbers(nearest))
            .map(|(a, b)| (a - b).abs());
        assert!(away.fold(0.0, f64::max) < 1e-6);
    }
    let (_, values) = learned(&view, &labels, Seed(1)).unwrap();
    assert!(
        values
            .windows(2)
            .all(|pair| pair[1] <= pair[0] * (1.0 + 1e-9)),
        "{values:?}"
    );
    assert!(values[values.len() - 1] < 0.9 * values[0], "{values:?}");
}

#[test]
fn the_low_rank_similarity_is_the_minimum_that_cvxpy_finds() {
    let text = include_str!("../../../../tests/reference/baselines/low_rank.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let mut left_out = 0;
    for case in reference["cases"].as_array().unwrap() {
        let (patients, labels) = (matrix(&case["patients"]), labels(case));
        let view = patients.view();
        let largest = Problem::new(&view, &labels).largest_nuclear().unwrap();
        let share = |name: &str| case[name].as_f64().unwrap() / largest;
        let settings = LowRankSettings {
            nuclear: share("nuclear"),
            rows: share("rows"),
        };
        let limits = LowRankLimits {
            gap: 1e-6,
            steps: 50_000,
        };
        let found = &low_rank(&view, &labels, &[settings], limits).unwrap()[0];
        assert!((-1e-12..=1e-6).contains(&found.gap), "{:e}", found.gap);
        let wanted = case["objective"].as_f64().unwrap();
        let off = (found.objective / wanted - 1.0).abs();
        assert!(off < 1e-7, "{off:e}");
        let off = apart(&found.similarity, &matrix(&case["similarity"]));
        assert!(off < 2e-4, "{off:e}");
        let off = apart(&found.distance, &matrix(&case["distance"]));
        assert!(off < 2e-4, "{off:e}");
        left_out += patients.ncols() - found.selected();
    }
    assert!(left_out > 0, "some feature is left out");
}

#[test]
fn a_path_of_the_low_rank_similarity_has_the_gap_that_it_says() {
    let reference = reference();
    let (patients, labels) = (matrix(&reference["patients"]), labels(&reference));
    let view = patients.view();
    let fit = |path: &[LowRankSettings], gap| {
        let limits = LowRankLimits { gap, steps: 20_000 };
        low_rank(&view, &labels, path, limits).unwrap()
    };
    let settings = |nuclear, rows| LowRankSettings { nuclear, rows };
    // nothing is learned from the largest lambda_n on
    assert_eq!(fit(&[settings(1.05, 0.0)], 1e-6)[0].selected(), 0);
    let path = [
        settings(0.3, 0.3),
        settings(0.1, 0.02),
        settings(0.03, 0.03),
    ];
    let (coarse, fine) = (fit(&path, 1e-2), fit(&path[2..], 1e-6));
    for solved in &coarse {
        assert!(solved.gap <= 1e-2, "{}", solved.gap);
    }
    let above = 1.0 - fine[0].objective / coarse[2].objective;
    assert!(above <= coarse[2].gap && above > -1e-6, "{above:e}");
    // s of two patients as its definition prints it
    let scores = fine[0].scores(&view, &view);
    let (one, other) = (patients.row(0), patients.row(7));
    let away = &one - &other;
    let wanted = one.dot(&fine[0].similarity.dot(&other)) - away.dot(&fine[0].distance.dot(&away));
    assert!((scores[[0, 7]] - wanted).abs() < 1e-12 * wanted.abs().max(1.0));
}
