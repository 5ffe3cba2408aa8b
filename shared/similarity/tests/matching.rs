//! Promise: matches and their balance are those of SciPy's assignment and R's MatchIt.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and why a test is skipped

#[path = "regression/sample.rs"]
#[allow(dead_code)]
mod sample;

use ndarray::Array2;
use sample::*;
use serde_json::Value;
use similarity::cohort::{Column, Values};
use similarity::uses::matching::{Choice, Contrast, Matches, balance, matched};
use std::collections::BTreeSet;

fn reference_of_matching() -> Value {
    let path = folder().join("../matching/matching.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The formula of `reference/matching/matching.py`.
fn distances(queries: usize, candidates: usize) -> Array2<f64> {
    Array2::from_shape_fn((queries, candidates), |(i, j)| {
        let number = (i + 3) * (i + 3) * (j + 5) * 7919 + 104_729 * j;
        (number % 1_000_003) as f64 / 10_000.0
    })
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn sum(distances: &Array2<f64>, matches: &Matches) -> (usize, f64) {
    let pairs = matches.0.iter().enumerate();
    let each = pairs.flat_map(|(query, own)| own.iter().map(move |row| (query, *row)));
    let all: Vec<f64> = each.map(|pair| distances[pair]).collect();
    (all.len(), all.iter().sum())
}

#[test]
fn optimal_matches_are_those_of_scipy() {
    for case in reference_of_matching()["assignments"].as_array().unwrap() {
        let distances = distances(number(&case["queries"]), number(&case["candidates"]));
        let (ratio, caliper) = (number(&case["ratio"]), case["caliper"].as_f64());
        let found = matched(&distances, ratio, caliper, Choice::Optimal);
        let (matches, total) = sum(&distances, &found);
        assert_eq!(matches, number(&case["matches"]), "{case}");
        assert!(
            (total - case["sum"].as_f64().unwrap()).abs() < 1e-7,
            "{case} {total}"
        );
        let taken: BTreeSet<usize> = found.0.iter().flatten().copied().collect();
        assert_eq!(taken.len(), matches);
        assert!(found.0.iter().all(|own| own.len() <= ratio));
        let greedy = sum(
            &distances,
            &matched(&distances, ratio, caliper, Choice::Greedy),
        );
        assert!(greedy.0 < matches || greedy.1 >= total - 1e-9);
    }
}

fn parts(odd: bool) -> Vec<Column> {
    let table = patients();
    let group = table.text("group");
    let rows: Vec<usize> = (0..240)
        .filter(|row| (group[*row] == "odd") == odd)
        .collect();
    [0, 1, 2, 4]
        .map(|column| {
            let column = columns(&table).remove(column);
            Column {
                values: column.values.select(&rows),
                name: column.name,
            }
        })
        .into()
}

#[test]
fn greedy_matches_and_the_balance_are_those_of_matchit() {
    let reference = &reference_of_matching()["matchit"];
    let (queries, candidates) = (parts(true), parts(false));
    let patients = |columns: &[Column]| columns[0].values.patients();
    let distances = distances(patients(&queries), patients(&candidates));
    let found = matched(&distances, 2, None, Choice::Greedy);
    for (own, wanted) in found.0.iter().zip(reference["greedy"].as_array().unwrap()) {
        let own: BTreeSet<usize> = own.iter().copied().collect();
        let wanted = wanted.as_array().unwrap().iter().map(number).collect();
        assert_eq!(own, wanted);
    }
    let replaced = matched(&distances, 2, None, Choice::WithReplacement);
    let names: Vec<&str> = reference["names"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    for (matches, after) in [(&found, "after"), (&replaced, "replaced")] {
        for row in balance(&queries, &candidates, matches) {
            let name = row.name.replace('=', "");
            let place = names.iter().position(|one| *one == name).unwrap();
            equals(&row.before, &reference["before"][place], &row.name);
            equals(&row.after, &reference[after][place], &row.name);
        }
    }
}

fn equals(found: &Contrast, wanted: &Value, name: &str) {
    let found = [
        found.queries,
        found.candidates,
        found.standardised,
        found.variance_ratio,
    ];
    for (place, (found, wanted)) in found.iter().zip(wanted.as_array().unwrap()).enumerate() {
        match wanted.as_f64() {
            Some(wanted) => assert!(close(*found, wanted), "{name} {place}: {found} {wanted}"),
            None => assert!(found.is_nan(), "{name} {place}: {found}"),
        }
    }
}

#[test]
fn nobody_beyond_the_caliper_and_nobody_incomparable_is_matched() {
    let mut distances = distances(12, 30);
    distances[(4, 3)] = f64::NAN;
    distances.row_mut(5).fill(f64::NAN);
    for choice in [Choice::WithReplacement, Choice::Greedy, Choice::Optimal] {
        let found = matched(&distances, 2, Some(12.0), choice);
        assert!(found.0[5].is_empty());
        for (query, own) in found.0.iter().enumerate() {
            assert!(own.iter().all(|row| distances[(query, *row)] <= 12.0));
            let far: Vec<f64> = own.iter().map(|row| distances[(query, *row)]).collect();
            assert!(far.is_sorted());
        }
        assert!(found.0.iter().flatten().count() > 5);
        assert_eq!(
            matched(&distances, 2, Some(-1.0), choice).0,
            vec![Vec::<usize>::new(); 12]
        );
    }
}

#[test]
fn matching_alike_patients_makes_the_groups_alike() {
    let table = patients();
    let queries = parts(true);
    let candidates = parts(false);
    let (Values::Numeric(one), Values::Numeric(other)) =
        (&queries[0].values, &candidates[0].values)
    else {
        panic!("not numeric")
    };
    let apart = Array2::from_shape_fn((one.len(), other.len()), |(i, j)| (one[i] - other[j]).abs());
    let found = matched(&apart, 1, None, Choice::Optimal);
    let age = &balance(&queries, &candidates, &found)[0];
    assert!(age.after.standardised.abs() < age.before.standardised.abs() + 1e-12);
    assert!(age.after.standardised.abs() < 0.05, "{age:?}");
    assert_eq!(table.text("group").len(), 240);
}
