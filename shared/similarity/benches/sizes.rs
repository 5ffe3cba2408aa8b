//! What a wide and a tall site take: peak memory, and seconds of a gradient, of a local update (4.21)
//! and of a round of Algorithm 1 with its Z-update. Each site has a process of its own.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/sizes.rs"]
#[allow(dead_code, unreachable_pub)]
mod sizes;

use std::process::Command;
use std::time::Instant;

use ndarray::Array2;
use similarity::learn::unpsl::{LocalLimits, learn};
use sizes::{Size, TALL, WIDE, peak_bytes};

/// L-BFGS steps of the local update.
const STEPS: usize = 10;
/// rho of both updates: the first round's of one site.
const PENALTY: f64 = 0.045;

fn main() {
    let sizes = [WIDE, TALL];
    let asked = std::env::args().nth(1).unwrap_or_default();
    if let Some(size) = sizes.iter().find(|size| size.name == asked) {
        measure(size);
        return;
    }
    for size in &sizes {
        let status = Command::new(std::env::current_exe().unwrap())
            .arg(size.name)
            .status()
            .unwrap();
        assert!(status.success(), "the {} site failed", size.name);
    }
}

fn measure(size: &Size) {
    let Size {
        name,
        patients,
        features,
        rank,
        pairs,
    } = size;
    println!("{name}: n = {patients}, d = {features}, m = {rank}, pairs {pairs:?}");
    let site = timed("site made", || size.objective());
    let start = size.start();
    let mut gradient = Array2::zeros((*features, *rank));
    timed("gradient", || {
        site.value_and_gradient(&start, &mut gradient).unwrap()
    });
    let update = timed("local update", || {
        site.solve(&start, &start, PENALTY, 1e-6, STEPS).unwrap()
    });
    println!(
        "  {} steps, {} gradients",
        update.iterations, update.evaluations
    );
    drop(update);
    let limits = LocalLimits {
        rounds: 1,
        iterations: STEPS,
        ..LocalLimits::new(PENALTY)
    };
    timed("round of Algorithm 1", || {
        learn(&site, start, &limits).unwrap()
    });
}

/// Does some work, and prints its seconds and the peak of memory so far.
fn timed<T>(work: &str, act: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let answer = act();
    let seconds = begin.elapsed().as_secs_f64();
    let peak = peak_bytes().map_or("unknown".to_owned(), |peak| {
        format!("{:.0} MB", peak as f64 / 1e6)
    });
    println!("  {work:<22} {seconds:>8.3} s   peak so far {peak}");
    answer
}
