//! Choosing by cross-validation: folds, counts against scikit-learn, the choice, and stationary paths.

#![allow(clippy::unwrap_used)]

use ndarray::{Array1, Array2, Axis, array};
use proptest::prelude::*;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;
use similarity::judge::votes::{RightCounts, VoteScore};
use similarity::learn::unpsl::selection::{
    Candidate, CandidateScore, Candidates, Classified, Folds, Merit, Search, SelectionError, best,
    cross_validate, cross_validate_rules, feature_strengths, fit_path, held_out_scores, in_steps,
    lambda_max, lambda_path, nested_scores, one_in,
};
use similarity::learn::unpsl::{Labels, PooledLimits, Settings, SiteObjective, Totals, summarise};
use similarity::numeric::prox::row_norms;
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::NeighbourRule;

/// Two classes that the first feature tells apart, the second less so, and others not at all.
fn patients(count: usize, features: usize, seed: u64) -> (Array2<f64>, Array1<u32>) {
    let mut stream = Seed(seed).stream("test", 0);
    let mut x =
        Array2::from_shape_simple_fn((count, features), || StandardNormal.sample(&mut stream));
    let classes: Array1<u32> = (0..count as u32).map(|patient| patient % 2).collect();
    for (mut row, class) in x.rows_mut().into_iter().zip(&classes) {
        let side = 2.0 * f64::from(*class) - 1.0;
        row[0] += 1.5 * side;
        row[1] -= 0.8 * side;
    }
    for mut column in x.columns_mut() {
        let (mean, deviation) = (column.mean().unwrap(), column.std(0.0));
        column.mapv_inplace(|value| (value - mean) / deviation);
    }
    (x, classes)
}

fn search() -> Search {
    Search::new(Settings::paper(), Seed(5))
}

fn counts_of(lambda: f64, rank: usize, k: usize, right: u64, wrong: u64) -> CandidateScore {
    let candidate = Candidate {
        lambda_sparsity: lambda,
        rank,
        neighbours: k,
    };
    let score = VoteScore {
        counts: RightCounts { right, wrong },
        log_loss: wrong as f64,
    };
    CandidateScore { candidate, score }
}

/// Who is too few for a patient in each fold learns by the folds that there would be; and who counts does so in steps.
#[test]
fn a_small_class_is_spread_and_counts_are_multiples_of_a_step() {
    let classes: Array1<u32> = (0..47).map(|patient| u32::from(patient < 3)).collect();
    let refused = Folds::stratified(&classes, 5, Seed(7));
    assert!(matches!(
        refused,
        Err(SelectionError::FewPatients { found: 3, .. })
    ));
    let folds = Folds::spread(&classes, 5, Seed(7)).unwrap();
    let of_each = |fold: usize| folds.split(fold).held_out;
    assert!((0..5).all(|fold| (9..=10).contains(&of_each(fold).len())));
    let small = |fold: usize| of_each(fold).iter().filter(|one| **one < 3).count();
    assert!((0..5).all(|fold| small(fold) <= 1));
    let enough = classes.mapv(|class| 1 - class.min(1));
    assert_eq!(
        Folds::spread(&enough, 2, Seed(7)).unwrap(),
        Folds::stratified(&enough, 2, Seed(7)).unwrap()
    );
    let everybody = vec![true; classes.len()];
    let counted = in_steps(&classes, 10, Seed(7), everybody.clone());
    let of_class = |class: u32| {
        let both = counted.iter().zip(&classes);
        both.filter(|(counts, own)| **counts && **own == class)
            .count()
    };
    assert_eq!((of_class(0), of_class(1)), (40, 0));
    assert_eq!(counted, in_steps(&classes, 10, Seed(7), everybody.clone()));
    assert_ne!(counted, in_steps(&classes, 10, Seed(8), everybody));
    let third = one_in(classes.len(), 3, Seed(7));
    let of_third = in_steps(&classes, 10, Seed(7), third.clone());
    assert!(
        third
            .iter()
            .zip(&of_third)
            .all(|(drawn, counted)| *drawn || !counted)
    );
    assert_eq!(of_third.iter().filter(|counts| **counts).count() % 10, 0);
}

#[test]
fn one_patient_in_so_many_is_drawn_whatever_their_classes() {
    let drawn = |patients, count, seed| one_in(patients, count, Seed(seed));
    let all = |patients, count| drawn(patients, count, 1).iter().filter(|one| **one).count();
    assert_eq!(
        [all(10, 1), all(10, 3), all(10, 40), all(0, 3)],
        [10, 4, 1, 0]
    );
    assert_eq!(drawn(1_000, 7, 1), drawn(1_000, 7, 1));
    assert_ne!(drawn(1_000, 7, 1), drawn(1_000, 7, 2));
    let often = (0..2_000).filter(|seed| drawn(20, 4, *seed)[3]).count();
    assert!(
        (440..560).contains(&often),
        "{often} of 2,000 drew a patient, wanted a quarter"
    );
}

proptest! {
    #[test]
    fn every_patient_is_held_out_once_and_classes_are_spread_evenly(
        sizes in proptest::collection::vec(5..30_usize, 1..4),
        count in 2..=5_usize,
        seed in any::<u64>(),
    ) {
        let of_class = |(class, size): (usize, &usize)| vec![class as u32; *size];
        let classes: Array1<u32> = sizes.iter().enumerate().flat_map(of_class).collect();
        let folds = Folds::stratified(&classes, count, Seed(seed)).unwrap();
        prop_assert_eq!(&folds, &Folds::stratified(&classes, count, Seed(seed)).unwrap());
        let mut held_out = vec![0; classes.len()];
        let mut spread = vec![Vec::new(); sizes.len() + 1];
        for fold in 0..folds.count() {
            let split = folds.split(fold);
            let mut all = [split.training.clone(), split.held_out.clone()].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..classes.len()).collect::<Vec<_>>());
            split.held_out.iter().for_each(|patient| held_out[*patient] += 1);
            for (class, spread) in spread.iter_mut().enumerate() {
                let all = class == sizes.len();
                let mine = |p: &&usize| all || classes[**p] == class as u32;
                spread.push(split.held_out.iter().filter(mine).count());
            }
        }
        prop_assert!(held_out.iter().all(|times| *times == 1));
        for counts in spread {
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn the_choice_is_most_often_right_and_does_not_depend_on_the_order(
        rights in proptest::collection::vec(0..=10_u64, 12),
        turn in 0..12_usize,
    ) {
        let lambdas = vec![0.1, 0.2, 0.4];
        let candidates = Candidates::new(lambdas, vec![2, 4], vec![1, 3]).unwrap();
        let of = |(candidate, right): (Candidate, &u64)| {
            counts_of(candidate.lambda_sparsity, candidate.rank, candidate.neighbours, *right, 10 - right)
        };
        let mut counts: Vec<CandidateScore> = candidates.all().zip(&rights).map(of).collect();
        let chosen = best(&counts, Merit::Accuracy).unwrap().candidate;
        prop_assert_eq!(best(&counts, Merit::LogLoss).map(|best| best.candidate), Some(chosen));
        let most = *rights.iter().max().unwrap();
        let mut tied: Vec<_> = counts.iter().filter(|one| one.score.counts.right == most).collect();
        prop_assert!(tied.iter().any(|one| one.candidate == chosen));
        tied.retain(|one| one.candidate.lambda_sparsity >= chosen.lambda_sparsity);
        prop_assert!(tied.iter().all(|one| one.candidate.lambda_sparsity == chosen.lambda_sparsity));
        tied.retain(|one| one.candidate.rank <= chosen.rank);
        prop_assert!(tied.iter().all(|one| one.candidate.rank == chosen.rank));
        prop_assert!(tied.iter().all(|one| one.candidate.neighbours <= chosen.neighbours));
        counts.rotate_left(turn);
        prop_assert_eq!(best(&counts, Merit::Accuracy).map(|best| best.candidate), Some(chosen));
    }
}

#[test]
fn rows_of_one_group_are_held_out_together() {
    let groups = Folds::stratified(&array![0, 1, 0, 1, 0, 1], 3, Seed(4)).unwrap();
    let group_of = [0, 0, 1, 2, 2, 3, 4, 5, 5, 5];
    let rows = groups.of_members(&group_of);
    assert_eq!(rows.count(), 3);
    for fold in 0..3 {
        let held_out = groups.split(fold).held_out;
        let wanted = (0..10).filter(|row| held_out.contains(&group_of[*row]));
        assert_eq!(rows.split(fold).held_out, wanted.collect::<Vec<_>>());
    }
}

#[test]
fn of_equally_good_candidates_the_simpler_is_chosen() {
    let chosen = |counts: &[CandidateScore]| best(counts, Merit::Accuracy).unwrap().candidate;
    // 3 of 4 is 6 of 8
    let larger = [counts_of(0.1, 2, 5, 6, 2), counts_of(0.2, 8, 1, 3, 1)];
    assert_eq!(chosen(&larger), larger[1].candidate);
    let smaller = [counts_of(0.1, 4, 5, 3, 1), counts_of(0.1, 2, 1, 3, 1)];
    assert_eq!(chosen(&smaller), smaller[1].candidate);
    let more = [counts_of(0.1, 2, 5, 3, 1), counts_of(0.1, 2, 1, 3, 1)];
    assert_eq!(chosen(&more), more[0].candidate);
    let right = [counts_of(0.1, 8, 1, 4, 1), counts_of(0.9, 1, 9, 3, 1)];
    assert_eq!(chosen(&right), right[0].candidate);
    for merit in [Merit::Accuracy, Merit::LogLoss] {
        assert_eq!(best(&[], merit), None);
        assert_eq!(best(&[counts_of(0.1, 2, 5, 0, 0)], merit), None);
    }
    // As often right, and surer of it; less often right, and surer.
    let mut surer = [counts_of(0.9, 2, 5, 8, 2), counts_of(0.1, 2, 5, 7, 3)];
    surer[1].score.log_loss = 1.5;
    assert_eq!(chosen(&surer), surer[0].candidate);
    let by_loss = best(&surer, Merit::LogLoss).unwrap().candidate;
    assert_eq!(by_loss, surer[1].candidate);
}

#[test]
fn counts_are_those_of_scikit_learn() {
    let text = include_str!("../../../tests/reference/selection/neighbours.json");
    let json: Value = serde_json::from_str(text).unwrap();
    let numbers = |value: &Value| -> Vec<u64> {
        let list = value.as_array().unwrap().iter();
        list.map(|number| number.as_u64().unwrap()).collect()
    };
    let matrix = |value: &Value| {
        let rows = value.as_array().unwrap();
        let entries = rows.iter().flat_map(|row| row.as_array().unwrap());
        let entries: Vec<f64> = entries.map(|entry| entry.as_f64().unwrap()).collect();
        Array2::from_shape_vec((rows.len(), entries.len() / rows.len()), entries).unwrap()
    };
    let (x, w) = (matrix(&json["patients"]), matrix(&json["metric"]));
    let classes: Array1<u32> = numbers(&json["codes"]).iter().map(|c| *c as u32).collect();
    let rows =
        |value: &Value| -> Vec<usize> { numbers(value).iter().map(|row| *row as usize).collect() };
    let wanted_neighbours = rows(&json["neighbours"]);
    for fold in json["folds"].as_array().unwrap() {
        let part = |name: &str| {
            let rows = rows(&fold[name]);
            (x.select(Axis(0), &rows), classes.select(Axis(0), &rows))
        };
        let (training, held_out) = (part("training"), part("held_out"));
        for (name, rule) in [
            ("distance", NeighbourRule::Distance),
            ("inner_product", NeighbourRule::InnerProduct),
        ] {
            let found = held_out_scores(
                &w.view(),
                &Classified {
                    patients: training.0.view(),
                    classes: &training.1,
                },
                &Classified {
                    patients: held_out.0.view(),
                    classes: &held_out.1,
                },
                rule,
                &wanted_neighbours,
            )
            .unwrap();
            let right: Vec<u64> = found.iter().map(|score| score.counts.right).collect();
            assert_eq!(right, numbers(&fold[name]), "{name}");
            let all = |score: &VoteScore| score.counts.right + score.counts.wrong;
            assert!(found.iter().all(|c| all(c) == held_out.1.len() as u64));
            let wanted = fold["log_loss"][name].as_array().unwrap();
            for (score, wanted) in found.iter().zip(wanted) {
                let apart = (score.log_loss - wanted.as_f64().unwrap()).abs();
                assert!(apart < 1e-12 * score.log_loss, "{name}: {apart}");
            }
        }
    }
}

#[test]
fn a_nested_choice_is_that_of_scikit_learn() {
    let text = include_str!("../../../tests/reference/selection/nested.json");
    let json: Value = serde_json::from_str(text).unwrap();
    let numbers = |value: &Value| -> Vec<f64> {
        let list = value.as_array().unwrap().iter();
        list.map(|number| number.as_f64().unwrap()).collect()
    };
    let places = |value: &Value| -> Vec<usize> {
        let list = value.as_array().unwrap().iter();
        list.map(|number| number.as_u64().unwrap() as usize)
            .collect()
    };
    let rows: Vec<Vec<f64>> = json["patients"]
        .as_array()
        .unwrap()
        .iter()
        .map(numbers)
        .collect();
    let x = Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| {
        rows[row][column]
    });
    let classes: Array1<u32> = places(&json["codes"]).iter().map(|c| *c as u32).collect();
    let wanted = json["folds"].as_array().unwrap();
    // Each fold is one member of folds that are dealt by lot.
    let dealt = Folds::spread(&Array1::zeros(wanted.len()), wanted.len(), Seed(3)).unwrap();
    let member = |fold: &usize| dealt.of_each().iter().position(|one| one == fold).unwrap();
    let members: Vec<usize> = places(&json["fold"]).iter().map(member).collect();
    let folds = dealt.of_members(&members);
    let neighbours = places(&json["neighbours"]);
    let mut of_folds = vec![Vec::new(); wanted.len()];
    for (strength, weights) in json["weights"].as_array().unwrap().iter().enumerate() {
        let metric = |weights: &Value| Array2::from_diag(&Array1::from(numbers(weights)));
        let metrics: Vec<Array2<f64>> = weights.as_array().unwrap().iter().map(metric).collect();
        let metrics: Vec<_> = metrics.iter().map(|metric| metric.view()).collect();
        let patients = Classified {
            patients: x.view(),
            classes: &classes,
        };
        let rule = NeighbourRule::Distance;
        let everybody = vec![true; classes.len()];
        let held_out = (&folds, everybody.as_slice());
        let found = nested_scores(&patients, held_out, &metrics, rule, &neighbours).unwrap();
        for (fold, found) in found.chunks(neighbours.len()).enumerate() {
            for (place, score) in found.iter().enumerate() {
                let wanted = numbers(&wanted[fold]["sums"][strength][place]);
                assert_eq!(score.counts.right as f64, wanted[0]);
                assert!((score.log_loss - wanted[1]).abs() < 1e-11 * wanted[1]);
                of_folds[fold].push(CandidateScore {
                    candidate: Candidate {
                        lambda_sparsity: strength as f64,
                        rank: 1,
                        neighbours: neighbours[place],
                    },
                    score: *score,
                });
            }
        }
    }
    for (scores, wanted) in of_folds.iter().zip(wanted) {
        let chosen = best(scores, Merit::LogLoss).unwrap().candidate;
        let wanted = places(&wanted["chosen"]);
        assert_eq!(chosen.lambda_sparsity, wanted[0] as f64);
        assert_eq!(chosen.neighbours, neighbours[wanted[1]]);
    }
}

/// The longest deviation from stationarity: of a zero row, its gradient beyond lambda; of any other, the
/// gradient of the whole objective.
fn off_stationary(x: &Array2<f64>, labels: &Labels, settings: &Settings, w: &Array2<f64>) -> f64 {
    let totals = Totals::of(&[summarise(labels, settings.pairs, Seed(1))]);
    let site = SiteObjective::new(&x.view(), labels, settings, &totals, Seed(1), None).unwrap();
    let mut gradient = Array2::zeros(w.raw_dim());
    site.value_and_gradient(w, &mut gradient).unwrap();
    let norms = row_norms(&w.view());
    let lambda = settings.lambda_sparsity;
    let of_row = |row: usize| {
        if norms[row] == 0.0 {
            let length = gradient.row(row).dot(&gradient.row(row)).sqrt();
            return length - lambda;
        }
        let whole = &gradient.row(row) + &(&w.row(row) * (lambda / norms[row]));
        whole.dot(&whole).sqrt()
    };
    (0..w.nrows()).map(of_row).fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn every_solution_of_a_path_is_stationary_for_all_rows() {
    // 300 features: the start keeps the strongest 256, so some rows would have to enter
    for (count, features) in [(60, 8), (40, 300)] {
        let (x, classes) = patients(count, features, 3);
        let labels = Labels::Classes(classes);
        let mut search = search();
        search.limits = PooledLimits {
            tolerance: 1e-8,
            iterations: 5000,
        };
        search.settings.rank = 3;
        let largest = lambda_max(&x.view(), &labels, &search).unwrap();
        let lambdas = lambda_path(largest);
        assert_eq!(lambdas.len(), 8);
        assert!((lambdas[0] / largest - 0.02).abs() < 1e-12 && lambdas[7] == largest);
        let path = fit_path(&x.view(), &labels, &lambdas, &search).unwrap();
        let mut selected = Vec::new();
        for (lambda, w) in lambdas.iter().zip(&path) {
            let settings = Settings {
                lambda_sparsity: *lambda,
                ..search.settings
            };
            let off = off_stationary(&x, &labels, &settings, w);
            assert!(off < 2e-3 * lambda, "{off:e} off at lambda {lambda}");
            selected.push(row_norms(&w.view()).iter().filter(|n| **n > 0.0).count());
        }
        assert!(selected[0] > selected[6] && selected[5] > 0, "{selected:?}");
    }
}

#[test]
fn beyond_the_largest_lambda_a_path_is_zero_and_classifies_nobody() {
    let (x, classes) = patients(40, 4, 1);
    let labels = Labels::Classes(classes.clone());
    let strengths = feature_strengths(&x.view(), &labels, &search()).unwrap();
    assert!(strengths[0] > strengths[1] && strengths[1] > strengths[2].max(strengths[3]));
    let lambdas = [0.01, 3.0 * strengths[0], 6.0 * strengths[0]];
    let mut search = search();
    search.settings.rank = 2;
    let path = fit_path(&x.view(), &labels, &lambdas, &search).unwrap();
    let zero = |w: &Array2<f64>| w.iter().all(|entry| *entry == 0.0);
    assert!(!zero(&path[0]) && zero(&path[1]) && zero(&path[2]));
    let all = Classified {
        patients: x.view(),
        classes: &classes,
    };
    let rule = NeighbourRule::Distance;
    let none = held_out_scores(&path[2].view(), &all, &all, rule, &[1, 3]).unwrap();
    // Nobody votes: the shares are those of all.
    assert_eq!(none, [VoteScore::of_nobody(&classes, &classes); 2]);
    assert_eq!((none[0].counts.right, none[0].counts.wrong), (0, 40));
    let share = |class: u32| {
        let own = classes.iter().filter(|one| **one == class).count();
        (own as f64 + 1.0) / 42.0
    };
    let wanted: f64 = classes.iter().map(|class| -share(*class).ln()).sum();
    assert!((none[0].log_loss - wanted).abs() < 1e-12 * wanted);
}

#[test]
fn cross_validation_adds_the_folds_up_and_is_the_same_on_any_number_of_threads() {
    let (x, classes) = patients(60, 8, 2);
    let all = Classified {
        patients: x.view(),
        classes: &classes,
    };
    let folds = Folds::stratified(&classes, 4, Seed(9)).unwrap();
    let candidates = Candidates::new(vec![0.005, 0.05], vec![1, 3], vec![1, 5]).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.unwrap();
        pool.install(|| cross_validate(&all, &folds, &candidates, &search()).unwrap())
    };
    let counts = run(1);
    assert_eq!(counts, run(2));
    let rules = [NeighbourRule::InnerProduct, NeighbourRule::Distance];
    let both = cross_validate_rules(&all, &folds, &candidates, &search(), &rules).unwrap();
    assert!(both[1] == counts && both[0] != counts);
    let tried: Vec<Candidate> = counts.iter().map(|one| one.candidate).collect();
    assert_eq!(tried, candidates.all().collect::<Vec<_>>());
    // by hand: rank 3 is the second half of the candidates
    let mut by_hand = vec![VoteScore::default(); 4];
    for fold in 0..4 {
        let split = folds.split(fold);
        let rows = |rows: &[usize]| (x.select(Axis(0), rows), classes.select(Axis(0), rows));
        let (training, held_out) = (rows(&split.training), rows(&split.held_out));
        let mut search = search();
        search.settings.rank = 3;
        let labels = Labels::Classes(training.1.clone());
        let path = fit_path(&training.0.view(), &labels, &[0.005, 0.05], &search).unwrap();
        for (step, w) in path.iter().enumerate() {
            let counts = held_out_scores(
                &w.view(),
                &Classified {
                    patients: training.0.view(),
                    classes: &training.1,
                },
                &Classified {
                    patients: held_out.0.view(),
                    classes: &held_out.1,
                },
                NeighbourRule::Distance,
                &[1, 5],
            );
            for (k, counts) in counts.unwrap().iter().enumerate() {
                by_hand[2 * step + k].merge(counts);
            }
        }
    }
    let found: Vec<VoteScore> = counts[4..].iter().map(|one| one.score).collect();
    assert_eq!(found, by_hand);
    let accuracy = |one: &CandidateScore| one.score.counts.accuracy().unwrap();
    assert!(counts.iter().map(accuracy).fold(0.0, f64::max) > 0.85);
}

#[test]
fn what_cannot_be_chosen_from_is_refused() {
    let classes = array![0, 0, 0, 1, 1];
    let refused = |count| Folds::stratified(&classes, count, Seed(1)).unwrap_err();
    assert_eq!(
        refused(3),
        SelectionError::FewPatients {
            found: 2,
            wanted: 3
        }
    );
    assert_eq!(
        refused(3).to_string(),
        "a class has 2 patients, wanted at least 3, one per fold"
    );
    assert_eq!(refused(1), SelectionError::FoldCount { found: 1 });
    assert!(Folds::stratified(&array![], 2, Seed(1)).is_err());
    for (lambdas, ranks, neighbours, what) in [
        (vec![], vec![1], vec![1], "lambda_sparsity"),
        (vec![0.2, 0.1], vec![1], vec![1], "lambda_sparsity"),
        (vec![0.1, 0.1], vec![1], vec![1], "lambda_sparsity"),
        (vec![f64::NAN], vec![1], vec![1], "lambda_sparsity"),
        (vec![-0.1], vec![1], vec![1], "lambda_sparsity"),
        (vec![0.1], vec![0], vec![1], "rank"),
        (vec![0.1], vec![1], vec![], "neighbours"),
    ] {
        let refused = Candidates::new(lambdas, ranks, neighbours).unwrap_err();
        assert!(refused.to_string().starts_with(what), "{refused}");
    }
    let (x, classes) = patients(20, 3, 1);
    let folds = Folds::stratified(&classes, 2, Seed(1)).unwrap();
    let all = Classified {
        patients: x.view(),
        classes: &classes,
    };
    let candidates = |rank| Candidates::new(vec![0.1], vec![rank], vec![1]).unwrap();
    let fewer = Folds::stratified(&classes.slice(ndarray::s![..10]).to_owned(), 2, Seed(1));
    let other = cross_validate(&all, &fewer.unwrap(), &candidates(1), &search());
    let (found, wanted) = (10, 20);
    assert_eq!(other, Err(SelectionError::Classes { found, wanted }));
    let rank = cross_validate(&all, &folds, &candidates(4), &search());
    assert!(matches!(rank, Err(SelectionError::Objective(_))));
}
