//! UnPSL against NumPy and SciPy: `tests/reference/unpsl/optimum.py` made the expected numbers.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis, concatenate, s};
use serde_json::Value;
use similarity::judge::votes::BinaryCounts;
use similarity::learn::unpsl::{
    Correlation, CorrelationScope, Labels, LocalLimits, LocalStatus, PooledLimits, Settings,
    SiteObjective, Totals, learn, learn_from_starts, minimise_pooled, objective, start, summarise,
};
use similarity::numeric::admm::{Consensus, ConsensusSettings};
use similarity::numeric::seed::Seed;

struct Reference {
    json: Value,
    settings: Settings,
    patients: Vec<Array2<f64>>,
    codes: Vec<Array1<u32>>,
}

fn matrix(value: &Value) -> Array2<f64> {
    let rows = value.as_array().unwrap();
    let columns = rows[0].as_array().unwrap().len();
    let numbers = rows.iter().flat_map(|row| row.as_array().unwrap());
    let flat = numbers.map(|number| number.as_f64().unwrap()).collect();
    Array2::from_shape_vec((rows.len(), columns), flat).unwrap()
}

fn reference() -> Reference {
    let text = include_str!("../../../tests/reference/unpsl/optimum.json");
    let json: Value = serde_json::from_str(text).unwrap();
    let settings = Settings {
        rank: json["rank"].as_u64().unwrap() as usize,
        lambda_sparsity: json["lambda_sparsity"].as_f64().unwrap(),
        lambda_correlation: json["lambda_correlation"].as_f64().unwrap(),
        ..Settings::paper()
    };
    let sites = json["sites"].as_array().unwrap();
    let codes = |site: &Value| {
        let codes = site["codes"].as_array().unwrap();
        codes
            .iter()
            .map(|code| code.as_u64().unwrap() as u32)
            .collect()
    };
    Reference {
        patients: sites.iter().map(|site| matrix(&site["patients"])).collect(),
        codes: sites.iter().map(codes).collect(),
        json,
        settings,
    }
}

impl Reference {
    fn sites(&self) -> Vec<SiteObjective> {
        let labels: Vec<_> = self
            .codes
            .iter()
            .map(|codes| Labels::Classes(codes.clone()))
            .collect();
        let summaries: Vec<_> = labels
            .iter()
            .map(|l| summarise(l, self.settings.pairs, Seed(1)))
            .collect();
        let totals = Totals::of(&summaries);
        let site = |(x, labels): (&Array2<f64>, &Labels)| {
            SiteObjective::new(&x.view(), labels, &self.settings, &totals, Seed(1), None).unwrap()
        };
        self.patients.iter().zip(&labels).map(site).collect()
    }

    fn number(&self, name: &str) -> f64 {
        self.json[name].as_f64().unwrap()
    }

    fn optimum(&self) -> Array2<f64> {
        matrix(&self.json["optimum"])
    }
}

fn norm(m: &Array2<f64>) -> f64 {
    m.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Relative error of M = W W'; W itself is unique only up to a rotation.
fn error(found: &Array2<f64>, wanted: &Array2<f64>) -> f64 {
    let m = |w: &Array2<f64>| w.dot(&w.t());
    norm(&(m(found) - m(wanted))) / norm(&m(wanted))
}

#[test]
fn objective_and_gradient_are_those_of_numpy() {
    let reference = reference();
    let (sites, w0) = (reference.sites(), matrix(&reference.json["start"]));
    let (mut value, mut sum, mut part) = (0.0, Array2::zeros(w0.raw_dim()), w0.clone());
    for site in &sites {
        value += site.value_and_gradient(&w0, &mut part).unwrap();
        sum += &part;
    }
    assert!((value / reference.number("smooth_at_start") - 1.0).abs() < 1e-13);
    let wanted = matrix(&reference.json["gradient_at_start"]);
    assert!(norm(&(sum - &wanted)) < 1e-13 * norm(&wanted));
    let whole = objective(&sites, &w0).unwrap();
    assert!((whole / reference.number("objective_at_start") - 1.0).abs() < 1e-13);
}

#[test]
fn the_pooled_reference_finds_scipys_optimum() {
    let reference = reference();
    let w0 = matrix(&reference.json["start"]);
    let limits = PooledLimits {
        tolerance: 1e-10,
        iterations: 50_000,
    };
    let found = minimise_pooled(&reference.sites(), w0, limits).unwrap();
    assert!(found.converged);
    let wanted = reference.number("objective_at_optimum");
    assert!((found.objective / wanted - 1.0).abs() < 1e-10);
    let optimum = reference.optimum();
    assert!(error(&found.matrix, &optimum) < 1e-6);
    for (row, best) in found.matrix.rows().into_iter().zip(optimum.rows()) {
        let zero = |row: ndarray::ArrayView1<f64>| row.iter().all(|value| *value == 0.0);
        assert_eq!(zero(row), zero(best), "the same features are selected");
    }
}

#[test]
fn consensus_admm_finds_scipys_optimum() {
    let reference = reference();
    let sites = reference.sites();
    // These sites are small and unlike: a penalty far below 0.3 lets them drift to other stationary points, and so do mixtures from 1.
    for (penalty, memory) in [(0.3, 0), (1.0, 0), (0.3, 5)] {
        let w0 = matrix(&reference.json["start"]);
        let usual = ConsensusSettings::new(reference.settings.lambda_sparsity, 6, penalty);
        let settings = ConsensusSettings { memory, ..usual };
        let mut consensus = Consensus::new(w0, 3, settings).unwrap();
        let mut converged = false;
        for _ in 0..300 {
            let w = consensus.consensus().clone();
            let (mut total, mut answers) = (consensus.sparsity_term(&w.view()), Vec::new());
            for (index, site) in sites.iter().enumerate() {
                let centre = consensus.centre(index).unwrap();
                let answer = site
                    .solve(&w, &centre, consensus.penalty(), 1e-6, 100)
                    .unwrap();
                total += answer.objective_at_consensus;
                answers.push(answer.matrix);
            }
            converged = consensus.absorb(&answers).unwrap().converged();
            consensus.observe_objective(total);
            if converged {
                break;
            }
        }
        assert!(converged, "from a penalty of {penalty}");
        let value = objective(&sites, consensus.consensus()).unwrap();
        let gap = value / reference.number("objective_at_optimum") - 1.0;
        assert!(gap.abs() < 1e-6, "gap {gap:e} from a penalty of {penalty}");
        let off = error(consensus.consensus(), &reference.optimum());
        assert!(off < 1e-3, "{off:e} from a penalty of {penalty}");
    }
}

/// All patients as one site: pairs across sites have no label, and R is pooled.
fn pooled_as_one(reference: &Reference) -> (SiteObjective, Vec<SiteObjective>) {
    let views: Vec<_> = reference.patients.iter().map(|x| x.view()).collect();
    let x = concatenate(Axis(0), &views).unwrap();
    let settings = Settings {
        correlation: CorrelationScope::Pooled,
        ..reference.settings
    };
    let correlation = Arc::new(Correlation::of_matrix(&x.view()));
    let mut labels = Array2::zeros((x.nrows(), x.nrows()));
    let mut begin = 0;
    for codes in &reference.codes {
        let end = begin + codes.len();
        let label = |(i, j): (usize, usize)| if codes[i] == codes[j] { 1_i8 } else { -1 };
        let block = Array2::from_shape_fn((codes.len(), codes.len()), label);
        labels.slice_mut(s![begin..end, begin..end]).assign(&block);
        begin = end;
    }
    let labels = Labels::pairs(labels).unwrap();
    let totals = Totals::of(&[summarise(&labels, settings.pairs, Seed(1))]);
    let site = |x: &Array2<f64>, labels: &Labels| {
        let shared = Arc::clone(&correlation);
        SiteObjective::with_pooled_correlation(
            &x.view(),
            labels,
            &settings,
            &totals,
            Seed(1),
            None,
            shared,
        )
        .unwrap()
    };
    let apart = reference.patients.iter().zip(&reference.codes);
    let apart = apart
        .map(|(x, codes)| site(x, &Labels::Classes(codes.clone())))
        .collect();
    (site(&x, &labels), apart)
}

#[test]
fn algorithm_1_on_pooled_patients_minimises_what_the_sites_minimise_together() {
    let reference = reference();
    let (pooled, apart) = pooled_as_one(&reference);
    let w0 = matrix(&reference.json["start"]);
    let one = objective(std::slice::from_ref(&pooled), &w0).unwrap();
    assert!((one / objective(&apart, &w0).unwrap() - 1.0).abs() < 1e-13);
    let limits = PooledLimits {
        tolerance: 1e-10,
        iterations: 50_000,
    };
    let wanted = minimise_pooled(&apart, w0.clone(), limits).unwrap();
    for penalty in [0.01, 0.1, 1.0] {
        let found = learn(&pooled, w0.clone(), &LocalLimits::new(penalty)).unwrap();
        assert_eq!(
            found.status,
            LocalStatus::Converged,
            "from a penalty of {penalty}"
        );
        let gap = found.objective / wanted.objective - 1.0;
        assert!(gap.abs() < 1e-5, "gap {gap:e} from a penalty of {penalty}");
        let off = error(&found.matrix, &wanted.matrix);
        assert!(off < 1e-3, "{off:e} from a penalty of {penalty}");
        let last = found.rounds.last().unwrap();
        assert!(last.primal_residual < 1e-2 * found.rounds[0].primal_residual);
    }
}

#[test]
fn of_several_starts_the_best_is_kept() {
    let reference = reference();
    let (pooled, _) = pooled_as_one(&reference);
    let starts = || (0..4).map(|index| start(pooled.settings(), 6, Seed(2), index));
    // few rounds, so that the starts end apart
    let limits = LocalLimits {
        rounds: 6,
        ..LocalLimits::new(0.1)
    };
    let best = learn_from_starts(&pooled, starts(), &limits).unwrap();
    assert_eq!(
        (best.status, best.rounds.len()),
        (LocalStatus::RoundLimit, 6)
    );
    let each: Vec<f64> = starts()
        .map(|start| learn(&pooled, start, &limits).unwrap().objective)
        .collect();
    assert_eq!(
        best.objective,
        each.iter().copied().fold(f64::INFINITY, f64::min)
    );
    assert!(each.iter().any(|value| *value > best.objective));
    assert!(learn_from_starts(&pooled, [], &limits).is_err());
    let wrong = learn(&pooled, Array2::zeros((5, 4)), &limits);
    assert!(wrong.is_err());
    let no_penalty = learn(&pooled, starts().next().unwrap(), &LocalLimits::new(0.0));
    assert!(no_penalty.is_err());
}

#[test]
fn scores_are_those_of_scikit_learn() {
    let reference = reference();
    let scores = &reference.json["scores"];
    let count = |name: &str| scores[name].as_u64().unwrap();
    let counts = BinaryCounts {
        true_positive: count("true_positive"),
        false_positive: count("false_positive"),
        true_negative: count("true_negative"),
        false_negative: count("false_negative"),
    };
    let found = [
        ("accuracy", counts.accuracy()),
        ("recall", counts.recall()),
        ("precision", counts.precision()),
        ("f1", counts.f1()),
        ("f2", counts.f2()),
    ];
    for (name, value) in found {
        assert!(
            (value.unwrap() - scores[name].as_f64().unwrap()).abs() < 1e-15,
            "{name}"
        );
    }
}
