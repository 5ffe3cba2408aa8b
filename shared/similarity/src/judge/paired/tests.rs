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
