//! Survival curves with their intervals, and chances from a score, against R's survival (tests/reference/survival/survival.R).

#![allow(clippy::unwrap_used)] // functions that tests share

use ndarray::Array1;
use serde_json::Value;
use similarity::judge::survival::{KaplanMeier, round_times};
use similarity::uses::prediction::risk::{Risk, WIDER};

fn reference() -> Value {
    let text = include_str!("../../../tests/reference/survival/survival.json");
    serde_json::from_str(text).unwrap()
}

/// NaN where R has none.
fn numbers(of: &Value) -> Vec<f64> {
    let numbers = of.as_array().unwrap().iter();
    numbers
        .map(|one| one.as_f64().unwrap_or(f64::NAN))
        .collect()
}

fn patients(of: &Value) -> (Array1<f64>, Array1<bool>) {
    let event = numbers(&of["event"]).into_iter().map(|event| event > 0.5);
    (Array1::from(numbers(&of["time"])), event.collect())
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-9
}

#[test]
fn curves_intervals_and_medians_are_those_of_r() {
    for name in ["trial", "many"] {
        let wanted = &reference()[name];
        let (time, event) = patients(wanted);
        let curve = KaplanMeier::of(&time, &event, 0..time.len());
        let [at, share, low, high, at_risk] =
            ["at", "share", "low", "high", "at_risk"].map(|key| numbers(&wanted[key]));
        for (place, time) in at.iter().enumerate() {
            let found = curve.at(*time).unwrap();
            assert!(near(found.share, share[place]), "{name} {time}: {found:?}");
            assert!(near(curve.at_risk(*time) as f64, at_risk[place]));
            // R has no interval of a curve at 0.
            if share[place] > 0.0 {
                assert!(
                    near(found.low, low[place]) && near(found.high, high[place]),
                    "{found:?}"
                );
            }
        }
        let median = curve.median();
        let wanted = numbers(&wanted["median"]);
        for (found, wanted) in [median.time, median.low, median.high].iter().zip(wanted) {
            assert!(
                found.map_or(wanted.is_nan(), |found| near(found, wanted)),
                "{name}: {median:?}"
            );
        }
    }
}

#[test]
fn an_end_of_a_curve_has_an_interval_that_is_no_point_or_none() {
    let (time, event) = patients(&reference()["many"]);
    let curve = KaplanMeier::of(&time, &event, 0..time.len());
    // Nobody is left: the upper end is that of the point before.
    let last = curve.at(400.0).unwrap();
    assert!(
        near(last.share, 0.0) && last.high > 0.1 && near(curve.at(900.0).unwrap().high, last.high)
    );
    let (time, event) = patients(&reference()["trial"]);
    let curve = KaplanMeier::of(&time, &event, 0..time.len());
    assert_eq!(curve.at(35.5), None);
    // Of 21 without an event: 0.025^(1/21).
    let before = curve.at(5.0).unwrap();
    assert!(
        near(before.share, 1.0) && (before.low - 0.838_9).abs() < 1e-4,
        "{before:?}"
    );
    assert_eq!(curve.censored().len(), 12);
}

#[test]
fn chances_from_a_score_and_their_intervals_are_those_of_r() {
    let reference = &reference()["chances"];
    let (time, event) = patients(reference);
    let risk = Risk::of(&numbers(&reference["score"]), &time, &event).unwrap();
    let coefficient = risk.slope / risk.scale[1];
    assert!(near(
        coefficient,
        reference["coefficient"].as_f64().unwrap()
    ));
    let [asked, by, chance, low, high] =
        ["asked", "by", "chance", "low", "high"].map(|key| numbers(&reference[key]));
    let all = asked
        .iter()
        .flat_map(|score| by.iter().map(move |time| (*score, *time)));
    for (place, (score, time)) in all.enumerate() {
        let found = risk.by(score, time).unwrap();
        assert!((found.value - chance[place]).abs() < 1e-8, "{found:?}");
        // Ends are of the cumulative hazard's logarithm, and wider than R's by what was measured.
        let log = |chance: f64| (-(1.0 - chance).ln()).ln();
        for (found, wanted) in [(found.low, low[place]), (found.high, high[place])] {
            let far = (log(found) - log(chance[place])) / WIDER;
            assert!((far - (log(wanted) - log(chance[place]))).abs() < 1e-7);
        }
    }
    // Too early, too late, and beyond the scores that were seen.
    assert!(risk.by(0.0, 0.1).is_none() && risk.by(0.0, 1e4).is_none());
    assert_eq!(risk.by(50.0, 25.0), risk.by(risk.ends[1], 25.0));
}

#[test]
fn times_at_which_curves_are_told_are_round_and_within_what_is_followed() {
    let time: Array1<f64> = (1..=1000).map(|day| f64::from(day) * 2.0).collect();
    assert_eq!(round_times(&time, f64::INFINITY), [500.0, 1000.0, 1500.0]);
    assert_eq!(round_times(&time, 365.0), [100.0, 200.0, 300.0]);
    assert_eq!(round_times(&Array1::zeros(20), f64::INFINITY), [0.0_f64; 0]);
    assert_eq!(round_times(&Array1::from_elem(20, 0.7), 9.0).len(), 3);
}
