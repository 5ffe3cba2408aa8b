//! Consensus ADMM over sites ends where the pooled objective has its minimum.

#![allow(clippy::unwrap_used)]

use ndarray::{Array2, s};
use similarity::learn::unpsl::{
    Labels, PooledLimits, Settings, SiteObjective, Totals, minimise_pooled, objective, start,
    summarise,
};
use similarity::numeric::admm::{Consensus, ConsensusSettings, Residuals};
use similarity::numeric::seed::Seed;
use similarity::synthetic::labelled_pairs;

/// The paper's distributed data: n = 600, d = 10 (30 features), in 3 equal parts.
fn three_sites(settings: &Settings) -> Vec<SiteObjective> {
    let made = labelled_pairs(600, 10, Seed(5));
    let parts: Vec<(Array2<f64>, Labels)> = (0..3)
        .map(|site| {
            let range = site * 200..(site + 1) * 200;
            let patients = made.patients.slice(s![range.clone(), ..]).to_owned();
            let label =
                |(i, j): (usize, usize)| made.labels.of_pair(range.start + i, range.start + j);
            let labels = Labels::pairs(Array2::from_shape_fn((200, 200), label)).unwrap();
            (patients, labels)
        })
        .collect();
    let summaries: Vec<_> = parts
        .iter()
        .map(|(_, labels)| summarise(labels, settings.pairs, Seed(1)))
        .collect();
    let totals = Totals::of(&summaries);
    parts
        .iter()
        .map(|(x, labels)| {
            SiteObjective::new(&x.view(), labels, settings, &totals, Seed(1), None).unwrap()
        })
        .collect()
}

struct Run {
    matrix: Array2<f64>,
    residuals: Vec<Residuals>,
    objectives: Vec<f64>,
}

fn federate(sites: &[SiteObjective], settings: &Settings, penalty: f64, rounds: usize) -> Run {
    let features = sites[0].features();
    let options = ConsensusSettings::new(settings.lambda_sparsity, features, penalty);
    let w0 = start(settings, features, Seed(9), 0);
    let mut consensus = Consensus::new(w0, sites.len(), options).unwrap();
    let (mut residuals, mut objectives) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let w = consensus.consensus().clone();
        let mut total = consensus.sparsity_term(&w.view());
        let mut contributions = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            let centre = consensus.centre(index).unwrap();
            let answer = site
                .solve(&w, &centre, consensus.penalty(), 1e-5, 50)
                .unwrap();
            total += answer.objective_at_consensus;
            contributions.push(answer.matrix);
        }
        let round = consensus.absorb(&contributions).unwrap();
        consensus.observe_objective(total);
        residuals.push(round);
        objectives.push(total);
        if round.converged() {
            break;
        }
    }
    Run {
        matrix: consensus.consensus().clone(),
        residuals,
        objectives,
    }
}

fn relative_error(found: &Array2<f64>, wanted: &Array2<f64>) -> f64 {
    let similarity = |w: &Array2<f64>| w.dot(&w.t());
    let norm = |m: Array2<f64>| m.iter().map(|v| v * v).sum::<f64>().sqrt();
    norm(similarity(found) - similarity(wanted)) / norm(similarity(wanted))
}

#[test]
fn the_federation_finds_the_pooled_minimum() {
    let settings = Settings {
        rank: 30,
        ..Settings::paper()
    };
    let sites = three_sites(&settings);
    let w0 = start(&settings, 30, Seed(9), 0);
    let limits = PooledLimits {
        tolerance: 1e-8,
        iterations: 20_000,
    };
    let pooled = minimise_pooled(&sites, w0, limits).unwrap();
    println!(
        "pooled {} {} {}",
        pooled.objective, pooled.iterations, pooled.converged
    );
    assert!(pooled.converged);
    let run = federate(&sites, &settings, 0.015, 200);
    assert!(run.residuals.last().unwrap().converged());
    let reported = run.objectives.last().unwrap() / pooled.objective - 1.0;
    assert!(
        reported.abs() < 1e-4,
        "the last objective lies {reported:e} off"
    );
    let gap = objective(&sites, &run.matrix).unwrap() / pooled.objective - 1.0;
    let error = relative_error(&run.matrix, &pooled.matrix);
    assert!(gap.abs() < 1e-4, "gap {gap:e}");
    assert!(error < 1e-3, "relative error of M {error:e}");
}
