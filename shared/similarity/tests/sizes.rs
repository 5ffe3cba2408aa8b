//! A wide and a tall site fit into little memory: nothing d x d, nothing n x n.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/sizes.rs"]
#[allow(dead_code, unreachable_pub)]
mod sizes;

use std::process::Command;

use ndarray::Array2;
use similarity::learn::unpsl::{LocalLimits, SiteObjective, learn};
use similarity::numeric::portable::norm;
use sizes::{Size, TALL, WIDE, peak_bytes};

/// Set in the process that does the work, so that its peak is of that work alone.
const ALONE: &str = "KINDRED_SIZE_ALONE";

/// Runs a test of this file again in a process of its own; true in that process.
fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("1 passed"), "{said}");
    false
}

fn assert_peak_below(bytes: u64) {
    let Some(peak) = peak_bytes() else {
        println!("skipped: this system does not tell the peak of a process's memory");
        return;
    };
    assert!(peak < bytes, "peak of {peak} bytes, wanted below {bytes}");
}

fn assert_gradient(site: &SiteObjective, size: &Size) {
    let mut gradient = Array2::zeros((size.features, size.rank));
    let value = site
        .value_and_gradient(&size.start(), &mut gradient)
        .unwrap();
    assert!(value.is_finite() && norm(&gradient.view()) > 0.0);
}

#[test]
fn twenty_thousand_features_need_no_matrix_of_features_by_features() {
    if !alone("twenty_thousand_features_need_no_matrix_of_features_by_features") {
        return;
    }
    let site = WIDE.objective();
    assert_gradient(&site, &WIDE);
    assert_peak_below(400_000_000);
    drop(site);
    // one round of Algorithm 1: a short W-update, the V-update and the Z-update
    let narrow = Size { rank: 2, ..WIDE };
    let limits = LocalLimits {
        rounds: 1,
        iterations: 2,
        ..LocalLimits::new(1.0)
    };
    let run = learn(&narrow.objective(), narrow.start(), &limits).unwrap();
    assert!(run.objective.is_finite());
    assert_peak_below(400_000_000);
}

#[test]
fn a_hundred_thousand_patients_need_no_matrix_of_patients_by_patients() {
    if !alone("a_hundred_thousand_patients_need_no_matrix_of_patients_by_patients") {
        return;
    }
    let site = TALL.objective();
    assert_gradient(&site, &TALL);
    let start = TALL.start();
    let update = site.solve(&start, &start, 0.045, 1e-6, 3).unwrap();
    assert!(update.subproblem < update.objective_at_consensus);
    assert_peak_below(500_000_000);
}
