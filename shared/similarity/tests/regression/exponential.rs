//! A hazard that is constant in equal cells of time: what sums of several sites are, and that no patient moves a cell.
//! `tests/tests/programs/regression.rs` holds fits of three hospitals to R.

use crate::sample::*;
use ndarray::{Array1, Array2, array, s};
use similarity::cohort::{Cohort, Outcome};
use similarity::learn::regression::exponential::{Cells, Exposure, HazardStep, ends};
use similarity::learn::regression::sums::Sums;
use similarity::learn::regression::terms::Terms;

const HORIZON: f64 = 400.0;
const CELLS: u32 = 8;
const ALL: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

fn followed(cohort: &Cohort) -> (Array1<f64>, Array1<bool>) {
    match cohort.outcome() {
        Outcome::Survival { time, event } => (time.clone(), event.clone()),
        Outcome::Numeric(_) | Outcome::Classes { .. } => unreachable!(),
    }
}

/// Patients of R's, their columns about as wide as each other.
fn exposed(rows: std::ops::Range<usize>) -> (Exposure, Array2<f64>) {
    let cohort = cohort(days);
    let terms = Terms::of_columns(cohort.columns(), &[1; 5]).unwrap();
    let scales = array![10.0, 200.0, 1.0, 1.0, 1.0, 1.0];
    let whole = terms.matrix(cohort.columns()).unwrap() / scales;
    let (time, event) = followed(&cohort.select(&rows.clone().collect::<Vec<_>>()));
    let exposure = Exposure::new((&time, &event), HORIZON, CELLS, &ALL);
    (exposure, whole.slice(s![rows, ..]).to_owned())
}

/// Log hazards, then coefficients.
fn somewhere(columns: usize) -> Array1<f64> {
    let hazards = (0..CELLS).map(|cell| -7.5 - 0.1 * f64::from(cell));
    let effects = (0..columns).map(|column| 0.2 - 0.1 * column as f64);
    hazards.chain(effects).collect()
}

#[test]
fn the_sums_are_the_log_likelihood_and_its_derivatives() {
    let (exposure, design) = exposed(0..240);
    let at = somewhere(design.ncols());
    let sums = |at: &Array1<f64>| exposure.sums(&design.view(), at);
    let here = sums(&at);
    assert_eq!((here.patients, here.events), (240, 181));
    for place in 0..at.len() {
        let moved = |by: f64| {
            let mut at = at.clone();
            at[place] += by;
            sums(&at)
        };
        let (up, down) = (moved(1e-5), moved(-1e-5));
        let slope = (up.log_likelihood - down.log_likelihood) / 2e-5;
        let size = here.gradient[place].abs().max(1.0);
        assert!((slope - here.gradient[place]).abs() < 1e-5 * size);
        let bend = (&up.gradient - &down.gradient) / -2e-5;
        for (bend, own) in bend.iter().zip(here.information.column(place)) {
            assert!(
                (bend - own).abs() < 1e-5 * own.abs().max(1.0),
                "{bend} {own}"
            );
        }
    }
}

#[test]
fn the_sums_of_three_sites_are_those_of_all_patients() {
    let (exposure, design) = exposed(0..240);
    let at = somewhere(design.ncols());
    let whole = exposure.sums(&design.view(), &at);
    let mut added = Sums::zero(at.len());
    for rows in [0..120, 120..200, 200..240] {
        let (exposure, design) = exposed(rows);
        added.merge(&exposure.sums(&design.view(), &at));
    }
    assert_eq!(
        (added.patients, added.events),
        (whole.patients, whole.events)
    );
    let away = (&added.information - &whole.information).mapv(f64::abs);
    assert!(away.iter().all(|one| *one < 1e-9));
    assert!((added.log_likelihood - whole.log_likelihood).abs() < 1e-9);
}

#[test]
fn columns_times_time_are_the_columns_of_a_model_that_has_them() {
    let (exposure, design) = exposed(0..240);
    let (cells, columns) = (CELLS as usize, design.ncols());
    let at = somewhere(columns);
    let sums = exposure.sums_with_time(&design.view(), &at);
    // Of the columns alone it is what it is without them.
    let plain = exposure.sums(&design.view(), &at);
    let size = cells + columns;
    assert_eq!(
        sums.information.slice(s![..size, ..size]),
        plain.information
    );
    // A cell at a time: there a column times time is the column times a number.
    let mut added = Sums::zero(size + columns);
    let (time, event) = followed(&cohort(days));
    for cell in ALL {
        let alone = Exposure::new((&time, &event), HORIZON, CELLS, &[cell]);
        let own = alone.sums(
            &design.view(),
            &at.iter()
                .skip(cell as usize)
                .take(1)
                .chain(at.iter().skip(cells))
                .copied()
                .collect(),
        );
        let middle = (f64::from(cell) + 0.5) / f64::from(CELLS);
        let mut slope = added.gradient.slice_mut(s![size..]);
        slope.scaled_add(middle, &own.gradient.slice(s![1..]));
        let square = own.information.slice(s![1.., 1..]);
        let mut mixed = added.information.slice_mut(s![size.., cells..size]);
        mixed.scaled_add(middle, &square);
        let mut squares = added.information.slice_mut(s![size.., size..]);
        squares.scaled_add(middle * middle, &square);
    }
    let close = |one: f64, other: f64| (one - other).abs() < 1e-8 * other.abs().max(1.0);
    for row in size..size + columns {
        assert!(close(sums.gradient[row], added.gradient[row]));
        for column in cells..=row {
            let (found, wanted) = (
                sums.information[(row, column)],
                added.information[(row, column)],
            );
            assert!(close(found, wanted), "{row} {column}: {found} {wanted}");
            assert!(close(sums.information[(column, row)], wanted));
        }
    }
}

#[test]
fn a_cell_has_its_end_and_time_counts_up_to_the_horizon() {
    let time = array![0.0, 50.0, 50.1, 400.0, 1_000.0, 400.0];
    let event = array![true, true, true, true, true, false];
    let exposure = Exposure::new((&time, &event), HORIZON, CELLS, &ALL);
    let nothing = Array2::zeros((6, 0));
    let sums = exposure.sums(&nothing.view(), &Array1::zeros(8));
    let cells = Cells::of(&sums);
    assert_eq!(cells.events, [2, 1, 0, 0, 0, 0, 0, 1]);
    let wanted = [250.0, 150.1, 150.0, 150.0, 150.0, 150.0, 150.0, 150.0];
    assert!(
        cells
            .followed
            .iter()
            .zip(wanted)
            .all(|(one, other)| (one - other).abs() < 1e-9)
    );
    assert_eq!(sums.events, 4);
    // Cells without an event have no part in it: their hazard is 0.
    assert_eq!(cells.with_event(), [0, 1, 7]);
    let (hazards, log_likelihood) = cells.without_columns();
    let chosen = Exposure::new((&time, &event), HORIZON, CELLS, &[0, 1, 7]);
    let at_best = chosen.sums(&nothing.view(), &hazards.into());
    assert!((at_best.log_likelihood - log_likelihood).abs() < 1e-12);
    assert!(at_best.gradient.iter().all(|slope| slope.abs() < 1e-12));
    assert_eq!(at_best.events, 4);
}

#[test]
fn a_hazard_is_told_by_steps_of_enough_events() {
    let of = |events: &[u64]| Cells {
        events: events.to_vec(),
        followed: vec![100.0; events.len()],
    };
    let told = |events: &[u64], hazards: &[f64]| of(events).joined(&ends(4.0, 4), hazards, 20);
    let step = |from, until, hazard| HazardStep {
        from,
        until,
        hazard,
        cumulative: None,
    };
    let alone = told(&[20, 25, 30, 40], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(alone.len(), 4);
    assert_eq!(alone[2], step(2.0, 3.0, 3.0));
    let joined = told(&[12, 0, 10, 19], &[1.0, 2.0, 5.0]);
    // The first three together have 22 events; the last has too few, and is joined to them.
    assert_eq!(joined, [step(0.0, 4.0, 2.0)]);
    let last = told(&[20, 19, 0, 0], &[1.0, 3.0]);
    assert_eq!(last, [step(0.0, 4.0, 1.0)]);
    assert!(told(&[10, 0, 0, 9], &[1.0, 2.0]).is_empty());
}
