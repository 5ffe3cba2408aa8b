use super::*;
use ndarray::Array1;

/// SciPy 1.17, `scipy.stats.binomtest`.
#[test]
fn mcnemars_chances_are_those_of_scipy() {
    let wanted = [
        (0, 0, 1.0),
        (3, 11, 0.057_373_046_875),
        (40, 22, 0.030_015_864_349_067_285),
        (9, 15, 0.307_456_254_959_106_45),
        (500, 431, 0.025_787_128_461_388_437),
        (0, 6, 0.031_25),
        (30_100, 30_900, 0.001_216_008_690_127_121_8),
    ];
    for (first, second, p) in wanted {
        let found = mcnemar([first, second, 100_000]).unwrap();
        assert!(
            (found.p / p - 1.0).abs() < 1e-8,
            "{first}, {second}: {}",
            found.p
        );
        assert!(found.low <= found.value && found.value <= found.high);
    }
    // Agresti and Min: one half more in each cell.
    let found = mcnemar([10, 30, 198]).unwrap();
    let error = ((41.0 / 200.0 - 0.1_f64 * 0.1) / 200.0).sqrt();
    assert!((found.low - (0.1 - NORMAL * error)).abs() < 1e-12);
    assert!((found.value - 20.0 / 198.0).abs() < 1e-12);
    assert_eq!(mcnemar([0, 0, 0]), None);
}

/// NumPy 2.4 and SciPy 1.17: the mean of the differences of squared errors, with its normal interval and test.
#[test]
fn squared_errors_beside_each_other_are_those_of_numpy() {
    let outcome = Outcome::Numeric(Array1::from(vec![1.0, 2.0, 0.5, 4.0, 3.0, 9.0]));
    let first = Predicted::of_values(vec![0.5, 1.0, 0.5, 2.0, 2.5, f64::NAN]);
    let second = Predicted::of_values(vec![1.25, 1.5, 0.0, 3.5, 1.0, 8.0]);
    let sums = PairedSums::of(&first, &second, &outcome).unwrap();
    let found = sums.tested().unwrap();
    assert!((found.value - 0.1375).abs() < 1e-12);
    assert!((found.low + 1.962_155_728_708_66).abs() < 1e-9);
    assert!((found.high - 2.237_155_728_708_66).abs() < 1e-9);
    assert!((found.p - 0.897_870_401_839_742_1).abs() < 1e-9);
    let again = PairedSums::from(<[f64; 5]>::from(sums));
    assert_eq!(again, sums);
    assert_eq!(discordant(&first, &second, &outcome), None);
    assert_eq!(PairedSums::default().tested(), None);
}

/// R's `survival::concordance` (tests/reference/compare).
#[test]
fn concordances_beside_each_other_are_those_of_r() {
    let text = include_str!("../../../../../tests/reference/compare/concordance.json");
    let list = |name: &str| -> Vec<f64> {
        let after = text.split(&format!("\"{name}\": [")).nth(1).unwrap();
        let inner = after.split(']').next().unwrap();
        inner
            .split(", ")
            .map(|number| number.parse().unwrap())
            .collect()
    };
    let outcome = Outcome::Survival {
        time: Array1::from(list("time")),
        event: list("event").iter().map(|event| *event > 0.0).collect(),
    };
    let [one, other] = ["one", "other"].map(|name| Predicted::of_values(list(name)));
    let concordance = list("concordance");
    let error = text.split("\"error\": ").nth(1).unwrap();
    let error: f64 = error.trim_end_matches(['}', '\n']).parse().unwrap();
    let found = PairedSums::of(&one, &other, &outcome)
        .unwrap()
        .tested()
        .unwrap();
    assert!((found.value - (concordance[1] - concordance[0])).abs() < 1e-9);
    assert!(((found.high - found.low) / (2.0 * NORMAL) / error - 1.0).abs() < 1e-6);
}

/// R's `pROC::roc.test` (tests/reference/paired), which DeLong's test is of.
#[test]
fn areas_beside_each_other_are_those_of_r() {
    let text = include_str!("../../../../../tests/reference/paired/areas.json");
    let list = |name: &str| -> Vec<f64> {
        let after = text.split(&format!("\"{name}\": [")).nth(1).unwrap();
        let inner = after.split(']').next().unwrap();
        inner
            .split(", ")
            .map(|number| number.parse().unwrap())
            .collect()
    };
    let number = |name: &str| -> f64 {
        let after = text.split(&format!("\"{name}\": ")).nth(1).unwrap();
        let end = after.find([',', '\n']).unwrap();
        after[..end].parse().unwrap()
    };
    let codes: Array1<u32> = list("own")
        .iter()
        .map(|own| u32::from(*own > 0.0))
        .collect();
    let shares = |name: &str| list(name).into_iter().map(|score| vec![0.0, score]);
    let [mut one, mut other] = ["one", "other"].map(|name| shares(name).collect::<Vec<_>>());
    let sums = PairedSums::of_areas(&one, &other, &codes);
    let found = sums.tested().unwrap();
    assert!((found.value - number("difference")).abs() < 1e-12);
    assert!(((found.high - found.low) / (2.0 * NORMAL) / number("error") - 1.0).abs() < 1e-9);
    // As C of patients of the second class, who have the event before all others.
    let outcome = Outcome::Survival {
        time: codes.mapv(|code| f64::from(2 - code)),
        event: codes.mapv(|code| code == 1),
    };
    let risks =
        |shares: &[Vec<f64>]| Predicted::of_values(shares.iter().map(|shares| shares[1]).collect());
    let by_pairs = PairedSums::of(&risks(&one), &risks(&other), &outcome).unwrap();
    for (one, other) in <[f64; 5]>::from(sums)
        .iter()
        .zip(<[f64; 5]>::from(by_pairs))
    {
        assert!((one - other).abs() < 1e-9, "{one}, {other}");
    }
    // A patient that one of the two does not score is not compared.
    let before = PairedSums::of_areas(
        &one[1..],
        &other[1..],
        &codes.slice(ndarray::s![1..]).to_owned(),
    );
    one[0].clear();
    assert_eq!(PairedSums::of_areas(&one, &other, &codes), before);
    one[1].clear();
    other[1].clear();
    assert!(PairedSums::of_areas(&one, &other, &codes).total < before.total);
}

/// Worked by hand: losses of 0.25, 1 and of 0, 0.0625; a patient without shares is not compared.
#[test]
fn shares_are_judged_by_their_squared_distance_from_the_class() {
    let codes = Array1::from(vec![1, 0, 1]);
    let first = [vec![0.5, 0.5], vec![0.0, 1.0], Vec::new()];
    let second = [vec![0.0, 1.0], vec![0.75, 0.25], vec![1.0, 0.0]];
    let sums = PairedSums::of_shares(&first, &second, &codes);
    let [total, difference, squares, products, parts] = sums.into();
    assert!((total - 2.0).abs() < 1e-12 && (parts - 2.0).abs() < 1e-12);
    assert!((difference - (0.25 + 0.9375)).abs() < 1e-12);
    assert!((squares - (0.0625 + 0.9375_f64.powi(2))).abs() < 1e-12);
    assert!((products - difference).abs() < 1e-12);
    assert!((brier(&[0.2, 0.3, 0.5], 1) - (0.04 + 0.49 + 0.25) / 2.0).abs() < 1e-12);
}

#[test]
fn a_rounded_gain_is_on_its_grid_and_its_interval_holds_the_exact_one() {
    for place in 0..200 {
        let value = f64::from(place) / 777.0 - 0.1;
        let sums = PairedSums::from([100.0, 100.0 * value, 20.0, 100.0 * value, 100.0]);
        let exact = sums.tested().unwrap();
        let found = sums.rounded(0.02).unwrap().tested().unwrap();
        assert!(((found.value / 0.02).round() * 0.02 - found.value).abs() < 1e-12);
        assert!((found.value - exact.value).abs() <= 0.01 + 1e-12);
        assert!(found.low <= exact.low + 1e-12 && found.high >= exact.high - 1e-12);
        assert!(found.high - found.low < exact.high - exact.low + 0.02 + 2.0 * NORMAL * 0.005);
    }
    assert_eq!(PairedSums::default().rounded(0.02), None);
}

#[test]
fn who_is_right_alone_is_counted_among_those_whom_both_predict() {
    let outcome = Outcome::Classes {
        codes: Array1::from(vec![0, 1, 1, 0, 1]),
        levels: vec!["a".to_owned(), "b".to_owned()],
    };
    let first = Predicted::of_values(vec![0.0, 1.0, 0.0, 1.0, f64::NAN]);
    let second = Predicted::of_values(vec![0.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(discordant(&first, &second, &outcome), Some([1, 2, 4]));
    assert_eq!(PairedSums::of(&first, &second, &outcome), None);
}

/// Holm (1979): p times how many are not yet believed, never below the one before.
#[test]
fn chances_of_several_tests_rise_with_their_number() {
    let found = holm(&[0.01, 0.04, 0.03, 0.005]);
    let wanted = [0.03, 0.06, 0.06, 0.02];
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-12);
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}
