//! From typed cohorts to a metric: moments, standardisation, rounds, neighbours.

#![allow(clippy::unwrap_used)]

use ndarray::{Array1, Array2, Axis, concatenate, s};
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
use similarity::cohort::{Cohort, Outcome, Values};
use similarity::judge::votes::{RightCounts, vote};
use similarity::learn::unpsl::{
    Labels, PooledLimits, Settings, SiteObjective, Threshold, Totals, minimise_pooled, objective,
    start, summarise,
};
use similarity::numeric::admm::{Consensus, ConsensusSettings};
use similarity::numeric::prox::row_norms;
use similarity::numeric::seed::Seed;
use similarity::synthetic::{CohortSettings, cohorts};
use similarity::uses::neighbours::{Candidates, NeighbourRule};

fn features(cohort: &Cohort) -> Vec<Feature> {
    let kind = |values: &Values| match values {
        Values::Numeric(_) => FeatureKind::Numeric,
        Values::Categorical { levels, .. } => FeatureKind::Categorical {
            levels: levels.clone(),
        },
    };
    let columns = cohort.columns().iter();
    columns
        .map(|c| Feature {
            name: c.name.clone(),
            kind: kind(&c.values),
            treatment: Treatment::default(),
        })
        .collect()
}

fn standardise(sites: &[Cohort]) -> (Standardisation, Vec<Array2<f64>>) {
    let mut moments = ColumnMoments::of_cohort(&sites[0]).unwrap();
    for site in &sites[1..] {
        for (mine, other) in moments
            .iter_mut()
            .zip(ColumnMoments::of_cohort(site).unwrap())
        {
            mine.merge(&other).unwrap();
        }
    }
    let standardisation =
        Standardisation::from_moments(&features(&sites[0]), &moments, &[]).unwrap();
    let matrices = sites
        .iter()
        .map(|site| standardisation.apply(site).unwrap())
        .collect();
    (standardisation, matrices)
}

fn codes(site: &Cohort) -> Array1<u32> {
    match site.outcome() {
        Outcome::Classes { codes, .. } => codes.clone(),
        _ => panic!("synthetic cohorts have classes"),
    }
}

fn objectives(
    sites: &[Cohort],
    matrices: &[Array2<f64>],
    settings: &Settings,
) -> Vec<SiteObjective> {
    let labels: Vec<Labels> = sites
        .iter()
        .map(|site| Labels::Classes(codes(site)))
        .collect();
    let summaries: Vec<_> = labels
        .iter()
        .map(|l| summarise(l, settings.pairs, Seed(1)))
        .collect();
    let totals = Totals::of(&summaries);
    let site = |(x, labels): (&Array2<f64>, &Labels)| {
        SiteObjective::new(&x.view(), labels, settings, &totals, Seed(1), None).unwrap()
    };
    matrices.iter().zip(&labels).map(site).collect()
}

/// The consensus after some rounds, or at convergence.
fn federate(sites: &[SiteObjective], settings: &Settings, rounds: usize) -> Array2<f64> {
    let features = sites[0].features();
    let penalty = settings.penalty_start(sites.len() as u64, 1);
    let options = ConsensusSettings::new(settings.lambda_sparsity, features, penalty);
    let first = start(settings, features, Seed(2), 0);
    let mut consensus = Consensus::new(first, sites.len(), options).unwrap();
    for _ in 0..rounds {
        let w = consensus.consensus().clone();
        let (mut total, mut answers) = (consensus.sparsity_term(&w.view()), Vec::new());
        for (index, site) in sites.iter().enumerate() {
            let centre = consensus.centre(index).unwrap();
            let answer = site
                .solve(&w, &centre, consensus.penalty(), 1e-5, 30)
                .unwrap();
            total += answer.objective_at_consensus;
            answers.push(answer.matrix);
        }
        let residuals = consensus.absorb(&answers).unwrap();
        consensus.observe_objective(total);
        if residuals.converged() {
            break;
        }
    }
    consensus.consensus().clone()
}

#[test]
fn four_unequal_sites_learn_what_tells_their_patients_apart() {
    let sites = cohorts(&CohortSettings::default(), Seed(1)).unwrap();
    let (standardisation, matrices) = standardise(&sites);
    assert_eq!(standardisation.rows().len(), 3 * 8 + 6 + 3);
    let settings = Settings::paper();
    let objectives = objectives(&sites, &matrices, &settings);
    let w = federate(&objectives, &settings, 60);
    let limits = PooledLimits {
        tolerance: 1e-6,
        iterations: 3000,
    };
    let first = start(&settings, objectives[0].features(), Seed(2), 0);
    let pooled = minimise_pooled(&objectives, first, limits).unwrap();
    let gap = objective(&objectives, &w).unwrap() / pooled.objective - 1.0;
    assert!(gap < 0.02, "{gap} above the pooled objective");
    // features without a say in the class weigh less than those with one
    let norms = row_norms(&w.view());
    let mean = |wanted: &str| {
        let rows = standardisation.rows().iter().zip(&norms);
        let mine: Vec<f64> = rows
            .filter(|(row, _)| row.name().starts_with(wanted))
            .map(|(_, norm)| *norm)
            .collect();
        mine.iter().sum::<f64>() / mine.len() as f64
    };
    assert!(
        mean("irrelevant") < 0.2 * mean("first"),
        "{} {}",
        mean("irrelevant"),
        mean("first")
    );
    // and neighbours by the learned distance beat those by the Euclidean one
    let (mut learned, mut euclidean) = (RightCounts::default(), RightCounts::default());
    for (site, x) in sites.iter().zip(&matrices) {
        let right = |projected: Array2<f64>| {
            let all = Candidates::new(projected.view());
            let near = all.nearest_others(NeighbourRule::Distance, 7).unwrap();
            RightCounts::of(&vote(&near, &codes(site)).unwrap(), &codes(site))
        };
        learned.merge(&right(x.dot(&w)));
        euclidean.merge(&right(x.clone()));
    }
    let (learned, euclidean) = (learned.accuracy().unwrap(), euclidean.accuracy().unwrap());
    assert!(learned > euclidean + 0.05, "{learned} against {euclidean}");
}

#[test]
fn a_learned_threshold_lowers_the_objective_and_leaves_no_derivative() {
    let sites = cohorts(&CohortSettings::default(), Seed(1)).unwrap();
    let (_, matrices) = standardise(&sites);
    let fixed = Settings::paper();
    let minimum = |settings: &Settings| {
        let sites = objectives(&sites, &matrices, settings);
        let first = start(settings, sites[0].features(), Seed(2), 0);
        let limits = PooledLimits {
            tolerance: 1e-7,
            iterations: 5000,
        };
        (minimise_pooled(&sites, first, limits).unwrap(), sites)
    };
    let learned = Settings {
        threshold: Threshold::Common(1.0),
        ..fixed
    };
    let (found, sites_learned) = minimum(&learned);
    assert!(found.converged);
    let features = sites_learned[0].features();
    let row = found.matrix.row(features);
    assert!(row[0] != 1.0 && row.slice(s![1..]).iter().all(|value| *value == 0.0));
    let (mut derivative, mut part) = (0.0, found.matrix.clone());
    for site in &sites_learned {
        site.value_and_gradient(&found.matrix, &mut part).unwrap();
        derivative += part[[features, 0]];
    }
    assert!(derivative.abs() < 1e-5, "{derivative}");
    assert!(found.objective < minimum(&fixed).0.objective);
}

#[test]
fn stacked_matrices_of_the_sites_have_mean_zero_and_variance_one() {
    let sites = cohorts(&CohortSettings::default(), Seed(6)).unwrap();
    let (_, matrices) = standardise(&sites);
    let views: Vec<_> = matrices.iter().map(|x| x.view()).collect();
    let stacked = concatenate(Axis(0), &views).unwrap();
    for column in stacked.columns() {
        assert!(column.mean().unwrap().abs() < 1e-12);
        assert!((column.std(0.0) - 1.0).abs() < 1e-10);
    }
}
