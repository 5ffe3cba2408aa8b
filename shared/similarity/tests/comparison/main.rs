//! Promise: distances are those of SciPy and R, by features they add up, and they do not have the faults of others.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and why a test is skipped

#[path = "../regression/sample.rs"]
#[allow(dead_code)]
mod sample;

use ndarray::{Array2, Axis};
use sample::*;
use serde_json::Value;
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
use similarity::cohort::{Cohort, Column, MISSING_LEVEL, Values};
use similarity::compare::proximity::kernel::OutOfBag;
use similarity::compare::{
    CompareError, Comparison, Gower, Measure, Metric, Placed, Proximity, Weighted,
};
use similarity::learn::forest::{Settings as ForestSettings, grow};
use similarity::learn::regression::{Settings, fit};
use similarity::numeric::seed::Seed;
use similarity::uses::cases::{Cases, share_below, usual_distances};
use similarity::uses::microaggregation::Closeness;
use similarity::uses::search::{Queries, Search};

const QUERIES: [usize; 3] = [0, 3, 6];

fn distances() -> Value {
    let path = folder().join("../comparison/comparison.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn names(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|column| column.name.clone()).collect()
}

fn standardisation(cohort: &Cohort) -> Standardisation {
    let features: Vec<Feature> = cohort
        .columns()
        .iter()
        .map(|column| Feature {
            name: column.name.clone(),
            kind: match &column.values {
                Values::Numeric(_) => FeatureKind::Numeric,
                Values::Categorical { levels, .. } => FeatureKind::Categorical {
                    levels: levels.clone(),
                },
            },
            treatment: Treatment::default(),
        })
        .collect();
    let moments = ColumnMoments::of_cohort(cohort).unwrap();
    Standardisation::from_moments(&features, &moments, &[]).unwrap()
}

fn plain(cohort: &Cohort, measure: Measure) -> Comparison {
    let names = names(cohort.columns());
    Comparison::Metric(Metric::plain(&names, standardisation(cohort), measure))
}

fn mahalanobis(cohort: &Cohort) -> Comparison {
    let (names, columns) = (names(cohort.columns()), cohort.columns());
    Comparison::Metric(Metric::mahalanobis(&names, standardisation(cohort), columns).unwrap())
}

fn weighted(cohort: &Cohort, settings: &Settings) -> Comparison {
    Comparison::Weighted(Weighted::new(&fit(cohort, settings).unwrap()).unwrap())
}

fn anchored(cohort: &Cohort) -> Comparison {
    let found = fit(cohort, &Settings::default()).unwrap();
    Comparison::Weighted(Weighted::new(&found).unwrap().anchored())
}

fn learned(cohort: &Cohort, measure: Measure) -> Comparison {
    let rows = standardisation(cohort);
    let w = Array2::from_shape_fn((rows.rows().len(), 2), |(row, column)| {
        (row as f64 - 2.0) * 0.3 + column as f64 * if row % 2 == 0 { 1.0 } else { -0.7 }
    });
    Comparison::Metric(Metric::learned(&names(cohort.columns()), rows, w, measure).unwrap())
}

fn proximity(cohort: &Cohort) -> Comparison {
    let settings = ForestSettings {
        trees: 60,
        ..ForestSettings::for_outcome(cohort.outcome())
    };
    let grown = grow(cohort, &settings, Seed(4)).unwrap();
    Comparison::Proximity(Proximity::new(grown.forest, None).unwrap())
}

fn all(cohort: &Cohort) -> Vec<Comparison> {
    vec![
        plain(cohort, Measure::Euclidean),
        plain(cohort, Measure::Manhattan),
        plain(cohort, Measure::Cosine),
        mahalanobis(cohort),
        learned(cohort, Measure::Euclidean),
        learned(cohort, Measure::InnerProduct),
        weighted(cohort, &Settings::default()),
        anchored(cohort),
        Comparison::Gower(Gower::of_columns(cohort.columns())),
        proximity(cohort),
    ]
}

#[test]
fn distances_are_those_of_scipy_and_r() {
    let cohort = cohort(score);
    let mut holed = cohort.columns().to_vec();
    if let Values::Numeric(values) = &mut holed[0].values {
        values[3] = f64::NAN;
    }
    if let Values::Categorical { codes, .. } = &mut holed[3].values {
        codes[6] = MISSING_LEVEL;
    }
    let gower = Comparison::Gower(Gower::of_columns(&holed));
    let cases = [
        (
            "euclidean",
            plain(&cohort, Measure::Euclidean),
            cohort.columns(),
        ),
        (
            "cityblock",
            plain(&cohort, Measure::Manhattan),
            cohort.columns(),
        ),
        ("cosine", plain(&cohort, Measure::Cosine), cohort.columns()),
        ("mahalanobis", mahalanobis(&cohort), cohort.columns()),
        ("gower", gower, &holed),
    ];
    for (name, comparison, columns) in cases {
        let placed = comparison.place(columns).unwrap();
        for (query, wanted) in QUERIES.iter().zip(distances()[name].as_array().unwrap()) {
            let found = comparison.distances(&placed, &placed, *query);
            for (found, wanted) in found.iter().zip(floats(wanted)) {
                assert!((found - wanted).abs() < 1e-9, "{name}: {found} {wanted}");
            }
            searched(&comparison, &placed, *query, &floats(wanted));
        }
    }
}

/// A search by blocks, among the patients whose distances others computed, finds the nearest of these.
fn searched(comparison: &Comparison, placed: &Placed, query: usize, wanted: &[f64]) {
    let candidates = placed.select(&(0..wanted.len()).collect::<Vec<_>>());
    let own = (query < wanted.len()).then_some(query);
    let queries = Queries {
        placed,
        rows: &[query],
        own: &[own],
    };
    let k = wanted.len() / 2;
    let found = Search::new(comparison, &candidates).nearest(&queries, k);
    let others = (0..wanted.len()).filter(|row| Some(*row) != own);
    let mut rising: Vec<f64> = others.map(|row| wanted[row]).collect();
    rising.sort_by(f64::total_cmp);
    for (case, nearest) in found[0].cases.iter().zip(&rising) {
        assert!((wanted[case.patient] - nearest).abs() < 1e-9);
        assert!((case.distance - nearest).abs() < 1e-9);
    }
    assert_eq!(found[0].cases.len(), k);
}

#[test]
fn parts_add_up_to_the_distance_of_every_comparison() {
    let cohort = cohort(ill);
    for comparison in all(&cohort) {
        let placed = comparison.place(cohort.columns()).unwrap();
        for (i, j) in [(0, 1), (5, 200), (17, 17), (101, 54)] {
            let distance = comparison.distance(&placed, i, &placed, j);
            let parts = comparison.parts(&placed, i, &placed, j);
            assert_eq!(parts.len(), 5);
            let sum: f64 = parts.iter().sum();
            let whole = comparison.whole(distance);
            let name = comparison.name();
            assert!(
                (sum - whole).abs() < 1e-9 * whole.abs().max(1.0),
                "{name}: {sum} {whole}"
            );
        }
    }
}

/// The oracle is the formula of the page, written out with the fit's own coefficients.
#[test]
fn the_weighted_distance_is_the_one_of_the_page_for_all_three_models() {
    for outcome in [score as fn(&Table) -> _, ill, days] {
        let cohort = cohort(outcome);
        let found = fit(&cohort, &Settings::default()).unwrap();
        let b = &found.coefficients;
        let comparison = Comparison::Weighted(Weighted::new(&found).unwrap());
        let placed = comparison.place(cohort.columns()).unwrap();
        let number = |column: usize, row: usize| match &cohort.columns()[column].values {
            Values::Numeric(values) => values[row],
            Values::Categorical { codes, .. } => f64::from(codes[row]),
        };
        let group = [0.0, b[3], b[4]];
        let treated = [0.0, b[5]];
        for (i, j) in [(0, 1), (5, 200), (101, 54)] {
            let lines: f64 = (0..3)
                .map(|column| (b[column] * (number(column, i) - number(column, j))).abs())
                .sum();
            let levels = (group[number(3, i) as usize] - group[number(3, j) as usize]).abs()
                + (treated[number(4, i) as usize] - treated[number(4, j) as usize]).abs();
            let distance = comparison.distance(&placed, i, &placed, j);
            assert!((distance - lines - levels).abs() < 1e-10);
        }
    }
}

/// The oracle is the formula of the page, from the fit's own linear predictor and the distance without an anchor.
#[test]
fn the_anchored_distance_is_that_of_the_risks_and_a_share_of_their_reasons() {
    for outcome in [score as fn(&Table) -> _, ill, days] {
        let cohort = cohort(outcome);
        let columns = cohort.columns();
        let found = fit(&cohort, &Settings::default()).unwrap();
        let eta = found.linear_predictor(columns).unwrap();
        let (plain, anchored) = (weighted(&cohort, &Settings::default()), anchored(&cohort));
        let [near, far] = [&plain, &anchored].map(|one| one.place(columns).unwrap());
        let (coordinates, closeness) = anchored.coordinates(&far).unwrap();
        assert_eq!((coordinates.ncols(), closeness), (6, Closeness::Manhattan));
        for (i, j) in [(0, 1), (5, 200), (101, 54)] {
            let wanted = (eta[i] - eta[j]).abs() + 0.3 * plain.distance(&near, i, &near, j);
            let distance = anchored.distance(&far, i, &far, j);
            assert!((distance - wanted).abs() < 1e-10);
            let [one, other] = [i, j].map(|row| anchored.predictor(&far, row).unwrap());
            assert!((one - other - (eta[i] - eta[j])).abs() < 1e-10);
            let apart = &coordinates.row(i) - &coordinates.row(j);
            assert!((apart.mapv(f64::abs).sum() - wanted).abs() < 1e-10);
        }
        assert_eq!(plain.predictor(&near, 0), None);
    }
}

#[test]
fn a_curve_is_compared_as_a_whole() {
    let table = patients();
    let cohort = Cohort::new(vec![table.numeric("age")], days(&table)).unwrap();
    let settings = Settings {
        splines: vec![3],
        ..Settings::default()
    };
    let found = fit(&cohort, &settings).unwrap();
    let predictor = found.linear_predictor(cohort.columns()).unwrap();
    let comparison = Comparison::Weighted(Weighted::new(&found).unwrap());
    let placed = comparison.place(cohort.columns()).unwrap();
    for (i, j) in [(0, 1), (5, 200), (101, 54)] {
        let distance = comparison.distance(&placed, i, &placed, j);
        assert!((distance - (predictor[i] - predictor[j]).abs()).abs() < 1e-10);
    }
}

/// CaseBasedReasoning 0.4.1 takes the largest proximity of the query for 1: a pair with P = 0.49 was told to be at
/// distance 0, and distances depended on who else was asked about.
#[test]
fn a_distance_does_not_depend_on_who_else_is_asked_about() {
    let cohort = cohort(days);
    for comparison in all(&cohort) {
        let all = comparison.place(cohort.columns()).unwrap();
        let alone = cohort.select(&[11]);
        let one = comparison.place(alone.columns()).unwrap();
        let wanted = comparison.distances(&all, &all, 11);
        let found = comparison.distances(&all, &one, 0);
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-12, "{}", comparison.name());
        }
    }
    let forest = proximity(&cohort);
    let placed = forest.place(cohort.columns()).unwrap();
    let far = forest.distances(&placed, &placed, 0);
    assert!(
        far.iter()
            .any(|distance| (distance * distance - 0.51).abs() < 0.1)
    );
    assert_eq!(far[0], 0.0);
}

/// CaseBasedReasoning codes the levels of a query by their own order (a patient was 0.91 away from itself), and stops at
/// missing values.
#[test]
fn a_patient_is_0_from_itself_whatever_the_order_of_levels_and_what_is_missing() {
    let cohort = cohort(ill);
    let mut turned = cohort.columns().to_vec();
    if let Values::Categorical { codes, levels } = &mut turned[3].values {
        levels.reverse();
        codes.mapv_inplace(|code| 2 - code);
    }
    let by_name = [
        weighted(&cohort, &Settings::default()),
        Comparison::Gower(Gower::of_columns(cohort.columns())),
        proximity(&cohort),
    ];
    for comparison in by_name {
        let placed = comparison.place(cohort.columns()).unwrap();
        let other = comparison.place(&turned).unwrap();
        for row in 0..cohort.patients() {
            assert_eq!(comparison.distance(&placed, row, &other, row), 0.0);
        }
    }
    let mut holed = cohort.columns().to_vec();
    if let Values::Numeric(values) = &mut holed[0].values {
        values[3] = f64::NAN;
    }
    if let Values::Categorical { codes, .. } = &mut holed[4].values {
        codes[3] = MISSING_LEVEL;
    }
    for comparison in all(&cohort) {
        if comparison.name().contains("inner product") {
            continue;
        }
        let placed = comparison.place(&holed).unwrap();
        assert!(comparison.distance(&placed, 3, &placed, 3).abs() < 1e-7);
        let far = comparison.distances(&placed, &placed, 3);
        assert!(
            far.iter().all(|distance| distance.is_finite()),
            "{}",
            comparison.name()
        );
    }
}

#[test]
fn what_a_fit_does_not_know_is_refused_by_name() {
    let cohort = cohort(ill);
    let mut strange = cohort.columns().to_vec();
    if let Values::Categorical { levels, .. } = &mut strange[3].values {
        levels[1] = "new".to_owned();
    }
    for comparison in [
        weighted(&cohort, &Settings::default()),
        Comparison::Gower(Gower::of_columns(cohort.columns())),
    ] {
        let error = comparison.place(&strange).unwrap_err();
        assert_eq!(
            error.to_string(),
            "column group holds a level that is none of mild, severe, odd"
        );
        assert!(comparison.place(&cohort.columns()[1..]).is_err());
    }
    let table = patients();
    let parting = Column {
        name: "parting".to_owned(),
        values: Values::Numeric(table.numbers("ill")),
    };
    let parted = Cohort::new(vec![parting, table.numeric("age")], sample::ill(&table)).unwrap();
    let fit = fit(&parted, &Settings::default()).unwrap();
    assert!(
        matches!(Weighted::new(&fit), Err(CompareError::Unsettled(text)) if text.contains("parting"))
    );
    let zero = Array2::zeros((8, 3));
    let rows = standardisation(&cohort);
    let made = Metric::learned(&names(cohort.columns()), rows, zero, Measure::Euclidean);
    assert!(matches!(made, Err(CompareError::Empty)));
}

/// A column that others already say changes no Mahalanobis distance.
#[test]
fn mahalanobis_does_without_directions_that_nobody_varies_in() {
    let cohort = cohort(score);
    let mut columns = cohort.columns().to_vec();
    let Values::Numeric(age) = &columns[0].values else {
        panic!("not numeric")
    };
    columns.push(Column {
        name: "months".to_owned(),
        values: Values::Numeric(age * 12.0),
    });
    let wider = Cohort::new(columns, cohort.outcome().clone()).unwrap();
    let (one, other) = (mahalanobis(&cohort), mahalanobis(&wider));
    let placed = one.place(cohort.columns()).unwrap();
    let wide = other.place(wider.columns()).unwrap();
    for j in 0..20 {
        let (a, b) = (
            one.distance(&placed, 0, &placed, j),
            other.distance(&wide, 0, &wide, j),
        );
        assert!((a - b).abs() < 1e-8);
    }
}

#[test]
fn typical_parts_are_the_mean_size_over_the_others() {
    let cohort = cohort(days);
    for comparison in all(&cohort) {
        let placed = comparison.place(cohort.columns()).unwrap();
        let found = comparison.typical_parts(&placed, &placed, 9, Some(9));
        let mut sums = ndarray::Array1::<f64>::zeros(5);
        for row in (0..240).filter(|row| *row != 9) {
            let parts = ndarray::Array1::from(comparison.parts(&placed, row, &placed, 9));
            sums += &parts.abs();
        }
        sums /= 239.0;
        for (found, wanted) in found.iter().zip(&sums) {
            assert!((found - wanted).abs() < 1e-10);
        }
    }
    // The vectors themselves are n x d.
    assert_eq!(
        standardisation(&cohort)
            .apply(&cohort)
            .unwrap()
            .len_of(Axis(1)),
        8
    );
}

/// Trees that have seen a patient place it otherwise than a new one.
#[test]
fn patients_of_a_forests_own_cohort_are_compared_by_trees_that_have_not_seen_them() {
    let cohort = cohort(days);
    let settings = ForestSettings {
        trees: 130,
        ..ForestSettings::for_outcome(cohort.outcome())
    };
    let grown = grow(&cohort, &settings, Seed(4)).unwrap();
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let bags = OutOfBag::new(&grown.in_bag);
    let copied = OutOfBag::from_words(bags.words().to_vec(), 240, 130).unwrap();
    assert!(OutOfBag::from_words(bags.words().to_vec(), 240, 10).is_none());
    let in_bag = grown.in_bag;
    let comparison = Comparison::Proximity(Proximity::new(grown.forest, Some(copied)).unwrap());
    let known = comparison.place_cohort(cohort.columns()).unwrap();
    let new = comparison.place(cohort.columns()).unwrap();
    for query in [0, 17, 101] {
        let unseen: Vec<usize> = (0..130)
            .filter(|tree| in_bag.of_tree(*tree)[query] == 0)
            .collect();
        assert!(unseen.len() > 30 && unseen.len() < 65);
        for (placed, trees) in [(&known, unseen), (&new, (0..130).collect())] {
            let found = comparison.distances(&known, placed, query);
            for (row, found) in found.iter().enumerate() {
                let parted = trees.iter().filter(|tree| {
                    let nodes = nodes.of_tree(**tree);
                    nodes[row] != nodes[query]
                });
                let wanted = (parted.count() as f64 / trees.len() as f64).sqrt();
                assert!((found - wanted).abs() < 1e-15);
            }
            let sum: f64 = comparison.parts(&known, 20, placed, query).iter().sum();
            assert!((sum - found[20].powi(2)).abs() < 1e-12);
        }
    }
    // A chosen patient keeps its bags.
    let some = known.select(&[7, 3]);
    for (query, row) in [(0, 7), (1, 3)] {
        let wanted = comparison.distances(&known, &known, row);
        assert_eq!(comparison.distances(&known, &some, query), wanted);
    }
}

#[test]
fn a_patient_of_the_cohort_is_not_unusual_and_a_far_one_is() {
    let cohort = cohort(score);
    let comparison = plain(&cohort, Measure::Euclidean);
    let placed = comparison.place(cohort.columns()).unwrap();
    let usual = usual_distances(&comparison, &placed, 5);
    assert_eq!(usual.len(), 240);
    assert!(usual.is_sorted());
    let mut far = cohort.select(&[0]).columns().to_vec();
    if let Values::Numeric(values) = &mut far[0].values {
        values[0] += 100.0;
    }
    let far = comparison.place(&far).unwrap();
    let distances = comparison.distances(&placed, &far, 0);
    let mean = Cases::nearest(&distances, 5, |_| false).mean_distance();
    assert_eq!(share_below(&usual, mean), 1.0);
    let ranks: f64 = (0..240)
        .map(|row| {
            let distances = comparison.distances(&placed, &placed, row);
            let mean = Cases::nearest(&distances, 5, |other| other == row).mean_distance();
            share_below(&usual, mean)
        })
        .sum();
    assert!((ranks / 240.0 - 0.5).abs() < 0.01);
}

#[test]
fn usual_distances_are_those_of_comparing_everybody() {
    let cohort = cohort(ill);
    for comparison in all(&cohort) {
        let placed = comparison.place(cohort.columns()).unwrap();
        for k in [1, 7, 239] {
            let mut wanted: Vec<f64> = (0..240)
                .map(|row| {
                    let distances = comparison.distances(&placed, &placed, row);
                    Cases::nearest(&distances, k, |other| other == row).mean_distance()
                })
                .collect();
            wanted.sort_by(f64::total_cmp);
            let found = usual_distances(&comparison, &placed, k);
            assert_eq!(found.len(), 240);
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((found - wanted).abs() < 1e-12, "{}", comparison.name());
            }
        }
    }
}
