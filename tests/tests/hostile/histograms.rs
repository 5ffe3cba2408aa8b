//! A member or a coordinator that reads single values in what sites count on the grid of a range: the counts are covered, but
//! their sum has a cell for each 4,096th of the range. It fails: neighbours are counted together before they are covered.

use crate::masks::{Sites, honest};
use kindred_tests::deployment::{PATIENTS, SITES, site_config};
use kindred_tests::samples::demo_job;
use privacy::Covered;
use protocol::message::Answer;

/// Values that stand together in one cell at least.
const CELL_MIN: u128 = 10;

/// A numeric feature with a range, whose middle is a median.
const ROBUST: &str = "kind = \"numeric\"\nrange = [-8, 8]\nstandardise = \"robust\"";

/// What the coordinator reads where each site has `policy` besides: how many cells have values, and how many of them few.
fn read(policy: &str) -> (usize, usize) {
    let job = demo_job(&[], "").replace("kind = \"numeric\"", ROBUST);
    let mut sites = Sites::of(PATIENTS);
    for site in SITES {
        let config = site_config(site, 1, &format!("site-{site}"));
        let config = config
            .replace("[policy]\n", &format!("[policy]\n{policy}"))
            .replace("[-1000, 1000]", "[-8, 8]");
        sites.configure(site, &config);
    }
    let mut court = sites.opening(&job);
    let said = court.play(honest);
    let told = said.iter().filter_map(|said| match &said.answer {
        Answer::Covered(Covered { kind, words, .. }) if *kind == "quantiles" => Some(words),
        _ => None,
    });
    let sum = told.cloned().reduce(|mut sum, words| {
        sum.add(&words).unwrap();
        sum
    });
    let sum = sum.expect("sites that count on a grid");
    let halves = |word: &u128| [*word & u128::from(u64::MAX), *word >> 64];
    let counts = sum.as_slice().iter().flat_map(halves);
    let counts: Vec<u128> = counts.filter(|count| *count > 0).collect();
    let few = counts.iter().filter(|count| **count < CELL_MIN).count();
    println!(
        "cells with values: {}, of fewer than {CELL_MIN}: {few}",
        counts.len()
    );
    (counts.len(), few)
}

#[test]
fn the_sum_of_histograms_has_no_cell_of_few_values() {
    // Where every site allows counts of one, there is much to read.
    let (cells, few) = read("cell_min = 1\n");
    assert!(few > 1_000 && cells > few, "{few} of {cells}");
    let (cells, few) = read("");
    assert!(cells > 100, "{cells}");
    assert_eq!(few, 0);
}
