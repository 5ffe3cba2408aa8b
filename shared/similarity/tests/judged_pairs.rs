//! A metric that is learned from pairs that a physician has judged.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // a test panics, and counts are small

use ndarray::{Array1, Array2, s};
use rand::{Rng, RngExt};
use similarity::learn::unpsl::accelerated::{Knowledge, Search, SearchSettings, search_sites};
use similarity::learn::unpsl::{
    self, Form, JudgedPairs, Labels, PairCounts, Settings, SiteObjective, Threshold, Totals,
    summarise,
};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

const PATIENTS: usize = 60;
const FEATURES: usize = 6;

/// Patients whose outcome follows from the first two features.
fn patients(seed: u64) -> (Array2<f64>, Array1<u32>) {
    let mut stream = Seed(seed).stream("patients", 0);
    let mut normal = || (0..12).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0;
    let x = Array2::from_shape_simple_fn((PATIENTS, FEATURES), &mut normal);
    let codes = x.outer_iter().map(|row| u32::from(row[0] + row[1] > 0.0));
    let codes = codes.collect();
    (x, codes)
}

/// Pairs that a physician calls similar where the third and fourth feature say so.
fn judged(x: &Array2<f64>, wanted: usize, stream: &mut impl Rng) -> Vec<([usize; 2], bool)> {
    let mut pairs = std::collections::BTreeMap::new();
    while pairs.len() < wanted {
        let [one, other] = [0, 1].map(|_| stream.random_range(0..x.nrows()));
        if one != other {
            let kind = |patient: usize| (x[[patient, 2]] > 0.0, x[[patient, 3]] > 0.0);
            let pair = [one.min(other), one.max(other)];
            pairs.insert(pair, kind(one) == kind(other));
        }
    }
    pairs.into_iter().collect()
}

fn objective(x: &Array2<f64>, labels: &Labels, settings: &Settings) -> SiteObjective {
    let own = summarise(labels, settings.pairs, Seed(1));
    let totals = Totals::of(&[own]);
    SiteObjective::new(&x.view(), labels, settings, &totals, Seed(1), None).unwrap()
}

fn settings(threshold: Threshold, form: Form) -> Settings {
    Settings {
        rank: 3,
        lambda_correlation: 0.0,
        threshold,
        form,
        ..Settings::default()
    }
}

fn softplus(at: f64) -> f64 {
    at.max(0.0) + (-at.abs()).exp().ln_1p()
}

/// The mean loss of weighed pairs, pair by pair.
fn naive(x: &Array2<f64>, w: &Array2<f64>, pairs: &[([usize; 2], bool, f64)], form: Form) -> f64 {
    let e = x.dot(w);
    let (mut sum, mut weights) = (0.0, 0.0);
    for ([one, other], is_similar, weight) in pairs {
        let (one, other) = (e.row(*one), e.row(*other));
        let told = match form {
            Form::InnerProduct => one.dot(&other) - 1.0,
            Form::Distance => 1.0 - (&one - &other).mapv(|away| away * away).sum(),
        };
        let sign = if *is_similar { 1.0 } else { -1.0 };
        sum += weight * softplus(-sign * told);
        weights += weight;
    }
    sum / weights
}

#[test]
fn the_loss_over_judged_pairs_alone_or_beside_the_outcome_is_that_of_each_pair() {
    let (x, codes) = patients(3);
    let mut stream = Seed(5).stream("judgements", 0);
    let pairs = judged(&x, 90, &mut stream);
    let own = JudgedPairs::new(PATIENTS, pairs.clone()).unwrap();
    let alone: Vec<_> = pairs
        .iter()
        .map(|(pair, similar)| (*pair, *similar, 1.0))
        .collect();
    let mut both: Vec<_> = pairs
        .iter()
        .map(|(pair, similar)| (*pair, *similar, 7.0))
        .collect();
    for one in 0..PATIENTS {
        both.extend((0..one).map(|other| ([other, one], codes[one] == codes[other], 1.0)));
    }
    let of_both = Labels::Both {
        codes,
        judged: own.clone(),
        times: 7,
    };
    let w = Array2::from_shape_simple_fn((FEATURES, 3), || stream.random::<f64>() - 0.5);
    for form in [Form::InnerProduct, Form::Distance] {
        let settings = settings(Threshold::Fixed(1.0), form);
        for (labels, pairs) in [
            (Labels::Judged(own.clone()), &alone),
            (of_both.clone(), &both),
        ] {
            let objective = objective(&x, &labels, &settings);
            let mut gradient = Array2::zeros(w.raw_dim());
            let value = objective.value_and_gradient(&w, &mut gradient).unwrap();
            let wanted = naive(&x, &w, pairs, form);
            assert!((value - wanted).abs() < 1e-12, "{value}, {wanted}");
            let derivatives = objective.derivatives(&w, None).unwrap();
            let of_metric = 2.0 * derivatives.gradient.dot(&w);
            assert!(
                (&of_metric - &gradient)
                    .iter()
                    .all(|away| away.abs() < 1e-12)
            );
            for (at, slope) in gradient.indexed_iter() {
                let moved = |by: f64| {
                    let mut there = w.clone();
                    there[at] += by;
                    naive(&x, &there, pairs, form)
                };
                let wanted = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - wanted).abs() < 1e-8, "{slope}, {wanted}");
            }
        }
    }
}

#[test]
fn judged_pairs_are_those_of_a_matrix_with_the_same_labels() {
    let (x, _) = patients(4);
    let pairs = judged(&x, 70, &mut Seed(6).stream("judgements", 0));
    let mut matrix = Array2::zeros((PATIENTS, PATIENTS));
    for ([one, other], is_similar) in &pairs {
        let label = if *is_similar { 1 } else { -1 };
        matrix[[*one, *other]] = label;
        matrix[[*other, *one]] = label;
    }
    let listed = Labels::Judged(JudgedPairs::new(PATIENTS, pairs).unwrap());
    let dense = Labels::pairs(matrix).unwrap();
    assert_eq!(listed.count(), dense.count());
    let rows: Vec<usize> = (0..PATIENTS).filter(|row| row % 3 > 0).collect();
    assert_eq!(listed.among(&rows).count(), dense.among(&rows).count());
    let settings = settings(Threshold::Site, Form::InnerProduct);
    let w = Array2::from_shape_fn((FEATURES, 3), |(row, column)| 0.1 * (row + column) as f64);
    let [one, other] = [&listed, &dense].map(|labels| {
        let objective = objective(&x, labels, &settings);
        objective.derivatives(&w, None).unwrap()
    });
    assert!((one.objective - other.objective).abs() < 1e-12);
    assert!(
        (&one.gradient - &other.gradient)
            .iter()
            .all(|away| away.abs() < 1e-12)
    );
}

/// The area under the curve of similarities of pairs that were not learned from, and the norms of W's rows.
fn learned(labels: &[Labels], cohorts: &[Array2<f64>], new: &Array2<f64>) -> (f64, Array1<f64>) {
    let settings = Settings {
        lambda_sparsity: 0.01,
        precision: Precision::Rounded,
        ..settings(Threshold::Site, Form::InnerProduct)
    };
    let summaries: Vec<_> = labels
        .iter()
        .map(|own| summarise(own, settings.pairs, Seed(1)))
        .collect();
    let totals = Totals::of(&summaries);
    let sites: Vec<SiteObjective> = cohorts
        .iter()
        .zip(labels)
        .map(|(x, own)| {
            SiteObjective::new(&x.view(), own, &settings, &totals, Seed(1), None).unwrap()
        })
        .collect();
    let search = SearchSettings {
        lambda_sparsity: settings.lambda_sparsity,
        form: settings.form,
        tolerance: 1e-4,
        tolerance_residual: f64::INFINITY,
    };
    let start = unpsl::start(&settings, FEATURES, Seed(1), 0);
    let search = Search::new(search, start, FEATURES);
    let mut known = Knowledge::new().up_to(settings.error(&totals));
    let found = search_sites(&sites, search, &mut known, 40, &mut |_, _| {}).unwrap();
    let w = found.best().slice(s![..FEATURES, ..]).to_owned();
    let e = new.dot(&w);
    let pairs = judged(new, 400, &mut Seed(9).stream("judgements", 0));
    let scores = pairs
        .iter()
        .map(|([one, other], is_similar)| (e.row(*one).dot(&e.row(*other)), *is_similar));
    let scores: Vec<(f64, bool)> = scores.collect();
    let [similar, dissimilar] = [true, false].map(|kind| {
        let own = scores.iter().filter(|(_, similar)| *similar == kind);
        own.map(|(score, _)| *score).collect::<Vec<f64>>()
    });
    let better = similar.iter().flat_map(|a| {
        dissimilar.iter().map(move |b| {
            f64::from(u8::from(a > b)) + 0.5 * f64::from(u8::from((a - b).abs() < f64::EPSILON))
        })
    });
    let area = better.sum::<f64>() / (similar.len() * dissimilar.len()) as f64;
    let norms = w.outer_iter().map(|row| row.dot(&row).sqrt()).collect();
    (area, norms)
}

#[test]
fn three_hospitals_learn_from_their_physicians_what_the_outcome_does_not_say() {
    let cohorts: Vec<_> = (10..13).map(patients).collect();
    let (new, _) = patients(20);
    let x: Vec<_> = cohorts.iter().map(|(x, _)| x.clone()).collect();
    let of_outcome: Vec<_> = cohorts
        .iter()
        .map(|(_, codes)| Labels::Classes(codes.clone()))
        .collect();
    let judge = |x: &Array2<f64>, seed: u64| {
        let pairs = judged(x, 300, &mut Seed(seed).stream("judgements", 0));
        JudgedPairs::new(PATIENTS, pairs).unwrap()
    };
    let own: Vec<_> = x.iter().zip(30..).map(|(x, seed)| judge(x, seed)).collect();
    let of_pairs: Vec<_> = own.iter().cloned().map(Labels::Judged).collect();
    let of_both: Vec<_> = cohorts
        .iter()
        .zip(&own)
        .map(|((_, codes), judged)| Labels::Both {
            codes: codes.clone(),
            judged: judged.clone(),
            times: 10,
        })
        .collect();
    let (by_outcome, _) = learned(&of_outcome, &x, &new);
    let (by_pairs, norms) = learned(&of_pairs, &x, &new);
    let (by_both, of_all) = learned(&of_both, &x, &new);
    assert!(by_outcome < 0.6, "{by_outcome}");
    assert!(by_pairs > 0.85, "{by_pairs}");
    assert!(by_both > 0.75, "{by_both}");
    let judged_by = norms[2].min(norms[3]);
    let others = [0, 1, 4, 5]
        .map(|row| norms[row])
        .into_iter()
        .fold(0.0, f64::max);
    assert!(judged_by > 2.0 * others, "{norms}");
    assert!(
        (0..4).all(|row| of_all[row] > of_all[4].max(of_all[5])),
        "{of_all}"
    );
}

#[test]
fn a_pair_with_itself_or_with_two_judgements_is_refused() {
    assert!(JudgedPairs::new(3, [([1, 1], true)]).is_err());
    assert!(JudgedPairs::new(3, [([0, 3], true)]).is_err());
    assert!(JudgedPairs::new(3, [([0, 1], true), ([1, 0], false)]).is_err());
    let again = JudgedPairs::new(3, [([0, 1], true), ([1, 0], true), ([2, 0], false)]).unwrap();
    let one = PairCounts {
        similar: 1,
        dissimilar: 1,
    };
    assert_eq!(again.count(), one);
    assert_eq!(again.members(), [0, 1, 2]);
    assert_eq!(again.among(&[2, 0]).pairs(), [([0, 1], false)]);
}
