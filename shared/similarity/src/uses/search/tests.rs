use super::*;
use crate::cohort::standardise::{MatrixRow, Scaling, Standardisation, Transform};
use crate::cohort::{Column, MISSING_LEVEL, Values};
use crate::compare::{Gower, Measure, Metric, Weighted};
use crate::learn::regression::terms::{Term, TermKind, Terms};
use ndarray::{Array1, Array2};

const WIDTH: usize = 5;

/// Whole numbers of a few values, so that many patients are equally far, some of them zeros altogether.
fn columns(patients: usize, step: usize) -> Vec<Column> {
    let number = |row: usize, column: usize| match (row * step).is_multiple_of(97) {
        true => 0.0,
        false => ((row * step * (column + 1) + 7 * column) % 11) as f64 - 4.0,
    };
    let numbers = (0..WIDTH).map(|column| Column {
        name: format!("x{column}"),
        values: Values::Numeric((0..patients).map(|row| number(row, column)).collect()),
    });
    numbers.collect()
}

fn standardisation() -> Standardisation {
    let row = |column: usize| {
        let scaling = Scaling {
            mean: 0.0,
            scale: 1.0 + column as f64,
            imputed: 0.0,
        };
        MatrixRow::new(format!("x{column}"), column, Transform::Identity, scaling).unwrap()
    };
    Standardisation::from_rows((0..WIDTH).map(row).collect(), Vec::new(), Vec::new()).unwrap()
}

fn names() -> Vec<String> {
    (0..WIDTH).map(|column| format!("x{column}")).collect()
}

fn comparisons(patients: &[Column]) -> Vec<Comparison> {
    let plain = |measure| Comparison::Metric(Metric::plain(&names(), standardisation(), measure));
    let learned = |measure| {
        let metric = Array2::from_shape_fn((WIDTH, 2), |(row, column)| {
            f64::from(u8::from(row % 2 == column)) * 0.5 - 0.125 * row as f64
        });
        Comparison::Metric(Metric::learned(&names(), standardisation(), metric, measure).unwrap())
    };
    let terms = names().into_iter().map(|name| Term {
        name,
        kind: TermKind::Numeric {
            imputed: 0.0,
            knots: Vec::new(),
        },
        indicator: false,
    });
    let weights = vec![0.5, -1.0, 0.0, 2.0, 0.25];
    let weighted = Weighted::of(Terms::new(terms.collect()), weights).unwrap();
    let mahalanobis = Metric::mahalanobis(&names(), standardisation(), patients).unwrap();
    vec![
        plain(Measure::Euclidean),
        plain(Measure::Manhattan),
        plain(Measure::Cosine),
        plain(Measure::InnerProduct),
        learned(Measure::Euclidean),
        learned(Measure::InnerProduct),
        Comparison::Metric(mahalanobis),
        Comparison::Weighted(weighted.clone()),
        Comparison::Weighted(weighted.anchored()),
    ]
}

fn check(comparison: &Comparison, patients: &[Column], new: &[Column]) {
    let known = comparison.place(patients).unwrap();
    let others = comparison.place(new).unwrap();
    let count = known.patients();
    for (placed, is_own, k) in [
        (&others, false, 1),
        (&others, false, 9),
        (&known, true, 6),
        (&known, true, count - 1),
        (&others, false, count + 3),
    ] {
        let rows: Vec<usize> = match k > 9 {
            true => vec![0, 3, 41],
            false => (0..placed.patients()).step_by(13).collect(),
        };
        for asked in [1, 2, rows.len()] {
            let rows = &rows[..asked.min(rows.len())];
            check_rows((comparison, placed, &known), rows, is_own, k);
        }
    }
}

/// Of few queries and of many.
fn check_rows(
    (comparison, placed, known): (&Comparison, &Placed, &Placed),
    rows: &[usize],
    is_own: bool,
    k: usize,
) {
    let own: Vec<Option<usize>> = rows.iter().map(|row| is_own.then_some(*row)).collect();
    let queries = Queries {
        placed,
        rows,
        own: &own,
    };
    let found = Search::new(comparison, known).nearest(&queries, k);
    for ((row, own), found) in rows.iter().zip(&own).zip(found) {
        let distances = comparison.distances(known, placed, *row);
        let wanted = Cases::nearest(&distances, k, |other| Some(other) == *own);
        assert_eq!(found, wanted, "{}, {k} of {row}", comparison.name());
    }
}

#[test]
fn every_comparison_finds_whom_comparing_everybody_finds_ties_and_all() {
    let (patients, new) = (columns(2_900, 5), columns(700, 3));
    for comparison in comparisons(&patients) {
        check(&comparison, &patients, &new);
    }
}

#[test]
fn levels_and_missing_values_are_searched_as_they_are_compared() {
    let holed = |patients: usize, step: usize| {
        let mut columns = columns(patients, step);
        for (place, column) in columns.iter_mut().enumerate() {
            if let Values::Numeric(values) = &mut column.values {
                for row in (place..patients).step_by(6) {
                    values[row] = f64::NAN;
                }
            }
        }
        let code = |row: usize| match row % 9 {
            8 => MISSING_LEVEL,
            other => (other * step % 3) as u32,
        };
        columns.insert(
            2,
            Column {
                name: "level".to_owned(),
                values: Values::Categorical {
                    codes: (0..patients).map(code).collect::<Array1<u32>>(),
                    levels: ["a", "b", "c"].map(str::to_owned).to_vec(),
                },
            },
        );
        columns
    };
    let (patients, mut new) = (holed(1_500, 5), holed(400, 7));
    // Nobody has anything in common with the first.
    for column in &mut new {
        match &mut column.values {
            Values::Numeric(values) => values[0] = f64::NAN,
            Values::Categorical { codes, .. } => codes[0] = MISSING_LEVEL,
        }
    }
    check(
        &Comparison::Gower(Gower::of_columns(&patients)),
        &patients,
        &new,
    );
}

/// Vectors far from 0 that differ by little: their products alone cannot tell who is nearer.
#[test]
fn what_rounding_leaves_open_is_compared_with_everybody() {
    let mut patients = columns(1_200, 5);
    for column in &mut patients {
        if let Values::Numeric(values) = &mut column.values {
            values.mapv_inplace(|value| 1e8 + value * 1e-3);
        }
    }
    let new: Vec<Column> = patients
        .iter()
        .map(|column| Column {
            name: column.name.clone(),
            values: column.values.select(&(0..300).collect::<Vec<_>>()),
        })
        .collect();
    for measure in [Measure::Euclidean, Measure::Cosine] {
        let comparison = Metric::plain(&names(), standardisation(), measure);
        check(&Comparison::Metric(comparison), &patients, &new);
    }
}
