//! Pooled quartiles against NumPy's of the stacked values (reference/quantile.json).

#![allow(clippy::unwrap_used)] // functions that tests share

use ndarray::Array1;
use serde_json::Value;
use similarity::cohort::quantile::{
    Grid, Group, Histogram, QuantileError, Quartiles, pooled_quartiles,
};

struct Reference {
    sites: Vec<Array1<f64>>,
    wanted: Quartiles,
}

fn reference() -> Reference {
    let text = include_str!("reference/quantile.json");
    let json: Value = serde_json::from_str(text).unwrap();
    let numbers = |value: &Value| -> Vec<f64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|number| number.as_f64().unwrap())
            .collect()
    };
    let sites = json["sites"].as_array().unwrap().iter();
    let sites = sites.map(|site| Array1::from_vec(numbers(site))).collect();
    let wanted = numbers(&json["quartiles"]);
    let wanted = Quartiles {
        lower: wanted[0],
        median: wanted[1],
        upper: wanted[2],
    };
    Reference { sites, wanted }
}

fn pool(sites: &[Array1<f64>], grid: Grid, minimum: u64) -> (Vec<Histogram>, Quartiles) {
    let histograms: Vec<Histogram> = sites
        .iter()
        .map(|site| Histogram::of(site.view(), grid, minimum).unwrap())
        .collect();
    let quartiles = pooled_quartiles(&histograms).unwrap().unwrap();
    (histograms, quartiles)
}

#[test]
fn a_fine_grid_without_minimum_gives_numpys_quartiles_within_a_cell() {
    let Reference { sites, wanted } = reference();
    let (_, found) = pool(&sites, Grid::new(0.0, 50.0, 5_000).unwrap(), 1);
    let mut all: Vec<f64> = sites.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    for (share, found, wanted) in [
        (0.25, found.lower, wanted.lower),
        (0.5, found.median, wanted.median),
        (0.75, found.upper, wanted.upper),
    ] {
        // NumPy's quantile lies between two patients; this one in the group of one of them, which
        // begins after the patient before, for empty cells belong to the group after them.
        let before = (share * (all.len() - 1) as f64) as usize;
        let apart = all[before + 1] - all[before - 1] + 0.01;
        assert!((found - wanted).abs() <= apart, "{found} {wanted}");
    }
}

#[test]
fn with_a_minimum_every_group_holds_it_and_the_rank_is_off_by_the_groups_at_most() {
    let Reference { sites, .. } = reference();
    let all: Vec<f64> = sites.iter().flatten().copied().collect();
    for minimum in [3, 10, 25] {
        let (histograms, found) = pool(&sites, Grid::new(0.0, 50.0, 400).unwrap(), minimum);
        for (site, histogram) in sites.iter().zip(&histograms) {
            assert!(
                histogram
                    .groups()
                    .iter()
                    .all(|group| group.count >= minimum)
            );
            let counted: u64 = histogram.groups().iter().map(|group| group.count).sum();
            assert_eq!(counted, site.len() as u64);
        }
        for (share, value) in [
            (0.25, found.lower),
            (0.5, found.median),
            (0.75, found.upper),
        ] {
            let rank = all.iter().filter(|other| **other < value).count() as f64;
            let cell = (value / 50.0 * 400.0) as u32;
            let around = |histogram: &Histogram| {
                histogram
                    .groups()
                    .iter()
                    .find(|group| cell < group.end)
                    .unwrap()
                    .count
            };
            let allowed: u64 = histograms.iter().map(around).sum();
            let off = (rank - share * all.len() as f64).abs();
            assert!(
                off <= allowed as f64,
                "{minimum} {share}: {off} > {allowed}"
            );
        }
    }
}

#[test]
fn the_scale_of_normal_values_is_their_standard_deviation() {
    // Quartiles of the normal distribution with mean 3 and deviation 2 (SciPy: norm.ppf).
    let quarter = 0.674_489_750_196_081_7;
    let quartiles = Quartiles {
        lower: 3.0 - 2.0 * quarter,
        median: 3.0,
        upper: 3.0 + 2.0 * quarter,
    };
    assert!((quartiles.scale() - 2.0).abs() < 1e-12);
}

#[test]
fn what_is_no_histogram_is_refused() {
    let grid = Grid::new(0.0, 1.0, 4).unwrap();
    assert_eq!(Grid::new(1.0, 1.0, 4), Err(QuantileError::Grid));
    assert_eq!(Grid::new(0.0, f64::INFINITY, 4), Err(QuantileError::Grid));
    assert_eq!(Grid::new(0.0, 1.0, 0), Err(QuantileError::Grid));
    let few = Histogram::of(Array1::from_vec(vec![0.5, f64::NAN]).view(), grid, 2);
    assert_eq!(few, Err(QuantileError::TooFew { wanted: 2 }));
    let group = |end| Group { end, count: 5 };
    for groups in [
        vec![],
        vec![group(3)],
        vec![group(2), group(2), group(4)],
        vec![group(5)],
    ] {
        let refused = Histogram::from_groups(grid, groups);
        assert_eq!(refused, Err(QuantileError::Groups { cells: 4 }));
    }
    let whole = |grid| Histogram::from_groups(grid, vec![group(4)]).unwrap();
    let other = Grid::new(0.0, 2.0, 4).unwrap();
    assert_eq!(
        pooled_quartiles(&[whole(grid), whole(other)]),
        Err(QuantileError::Grids)
    );
    assert_eq!(pooled_quartiles(&[]), Ok(None));
}
