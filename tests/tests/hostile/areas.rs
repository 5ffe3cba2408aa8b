//! An operator who reads published areas under curves: of a thousand runs of one cohort, and of two cohorts that differ in one patient.
//!
//! It knows every patient but one, how the rule scores each, and wants the class of that one. An exact area gives it away in every run.
//! Hospitals and coordinator gain nothing from an area: they receive the exact sum that it is made of. The same of gains in areas, whose
//! pairs are within hospitals: in two hospitals of opposite classes one patient is in far more of them than in a pooled area.

use ndarray::Array1;
use privacy::{Content, Table, publish};
use protocol::assessment::{EvaluationCounts, Gains};
use protocol::rounded::{Figures, Rounded};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::judge::paired::PairedSums;
use similarity::learn::unpsl::PAIRS_STEP;

const RUNS: u64 = 1_000;
/// Votes of so many neighbours.
const NEIGHBOURS: u32 = 5;

type Scores = [Vec<u64>; 2];

fn counts(scores: &Scores) -> EvaluationCounts {
    let below = |row: &Vec<u64>| row[..3].iter().sum();
    let halves = |row: &Vec<u64>| vec![below(row), row[3..].iter().sum()];
    let confusion = scores.iter().map(halves).collect();
    EvaluationCounts::new(
        "distance",
        NEIGHBOURS,
        Some(confusion),
        Some(scores.to_vec()),
    )
}

/// What a rule of some run makes of so many patients of each class.
fn drawn(draw: &mut ChaCha8Rng, patients: [u64; 2]) -> Scores {
    let skill: f64 = draw.random_range(0.5..0.9);
    let row = |class: usize| {
        let mut bins = vec![0; NEIGHBOURS as usize + 1];
        let share = if class == 1 { skill } else { 1.0 - skill };
        for _ in 0..patients[class] {
            let votes = (0..NEIGHBOURS).filter(|_| draw.random::<f64>() < share);
            bins[votes.count()] += 1;
        }
        bins
    };
    [0, 1].map(row)
}

/// The table as it is published.
fn published(scores: &Scores) -> EvaluationCounts {
    let mut counts = counts(scores);
    counts.figures = Some(Figures::published(&counts));
    let table = Table {
        confusion: &mut counts.confusion,
        scores: &mut counts.scores,
        rounded_to: &mut counts.rounded_to,
        judged: scores.iter().flatten().sum(),
        gains: [&mut None, &mut None],
    };
    publish(vec![Content::Tables(vec![table])]);
    counts
}

/// By pairs of patients: how often the one of the second class has more votes.
fn by_pairs([others, own]: &Scores) -> f64 {
    let mut ordered = 0.0;
    for (low, others) in others.iter().enumerate() {
        for (high, own) in own.iter().enumerate() {
            let wins = f64::from(u8::from(high > low)) + f64::from(u8::from(high == low)) / 2.0;
            ordered += wins * (others * own) as f64;
        }
    }
    ordered / (others.iter().sum::<u64>() * own.iter().sum::<u64>()) as f64
}

/// Where the grid of tens starts by a run's seed, the mean over ten seeds is the exact count.
fn by_seed(count: u64, seed: u64) -> u64 {
    (count + seed % 10) / 10 * 10
}

#[test]
fn a_count_is_published_on_one_grid_because_ten_grids_would_give_it_away() {
    let mut draw = ChaCha8Rng::seed_from_u64(5);
    for patients in [[20, 300], [130, 170], [400, 340]] {
        let scores = drawn(&mut draw, patients);
        let once = published(&scores);
        let area = once.figures.unwrap().area.unwrap();
        assert!((area.value - by_pairs(&scores)).abs() <= area.within + 1e-12);
        for count in scores.iter().flatten() {
            let all: u64 = (0..10).map(|seed| by_seed(*count, seed)).sum();
            assert_eq!(all, 10 * count);
        }
        // The worst bin is a running total by itself: nothing but the nearest ten is known of it.
        let found = once.scores.unwrap()[0].pop().unwrap();
        let worst = scores[0][NEIGHBOURS as usize];
        assert!(found.is_multiple_of(10) && found.abs_diff(worst) <= 5);
    }
}

#[test]
fn an_area_seldom_says_the_class_of_one_patient_and_never_moves_by_more_than_a_step() {
    let mut draw = ChaCha8Rng::seed_from_u64(7);
    for patients in [[20, 20], [20, 300], [130, 170], [400, 340]] {
        let (mut exact, mut seen) = (0, 0);
        for _ in 0..RUNS {
            let others = drawn(&mut draw, patients);
            let bin = draw.random_range(0..others[0].len());
            let with = |class: usize| {
                let mut scores = others.clone();
                scores[class][bin] += 1;
                scores
            };
            let both = [with(0), with(1)];
            exact += u64::from((by_pairs(&both[0]) - by_pairs(&both[1])).abs() > 1e-12);
            let [first, second] =
                both.map(|scores| Figures::published(&counts(&scores)).area.unwrap());
            let step = |area: Rounded| 2.0 * area.within;
            let most = step(first).max(step(second));
            assert!((first.value - second.value).abs() <= most + 1e-12);
            seen += u64::from((first.value - second.value).abs() > 1e-12);
        }
        println!(
            "{patients:?}: of {RUNS} runs {exact} exact areas and {seen} published ones differ by the class"
        );
        assert!(exact > RUNS * 9 / 10);
        assert!(seen < RUNS * 3 / 10);
    }
}

#[test]
fn of_fewer_than_twenty_patients_of_a_class_no_area_is_published() {
    let mut draw = ChaCha8Rng::seed_from_u64(9);
    for patients in [[19, 400], [400, 19], [0, 400]] {
        let scores = drawn(&mut draw, patients);
        assert_eq!(Figures::published(&counts(&scores)), Figures::default());
    }
}

/// Classes of a hospital's patients, and the share of the second class that two rules predict of each.
struct Hospital {
    codes: Vec<u32>,
    shares: [Vec<Vec<f64>>; 2],
}

impl Hospital {
    /// What two rules of some run make of so many patients of each class.
    fn drawn(draw: &mut ChaCha8Rng, patients: [usize; 2]) -> Self {
        let codes: Vec<u32> = [0, 1]
            .into_iter()
            .zip(patients)
            .flat_map(|(class, patients)| std::iter::repeat_n(class, patients))
            .collect();
        let shares = [0, 1].map(|_| {
            let skill = draw.random_range(0.2..1.0);
            let share = |code: &u32| {
                let high = skill * f64::from(*code) + draw.random::<f64>();
                let share = (high / 2.0 * 20.0).round() / 20.0;
                vec![1.0 - share, share]
            };
            codes.iter().map(share).collect()
        });
        Self { codes, shares }
    }

    fn sums(&self) -> [f64; 5] {
        let [first, second] = &self.shares;
        PairedSums::of_areas(first, second, &Array1::from(self.codes.clone())).into()
    }
}

/// Sums of all hospitals, and their patients of each class.
fn summed(hospitals: &[Hospital]) -> ([f64; 5], [u64; 2]) {
    let mut all = [0.0; 5];
    let mut classes = [0; 2];
    for hospital in hospitals {
        for (all, own) in all.iter_mut().zip(hospital.sums()) {
            *all += own;
        }
        for code in &hospital.codes {
            classes[*code as usize] += 1;
        }
    }
    (all, classes)
}

/// The gain and its error as a run publishes them.
fn published_gain(hospitals: &[Hospital]) -> [f64; 2] {
    let (sums, [others, own]) = summed(hospitals);
    let confusion = vec![vec![others, 0], vec![0, own]];
    let mut counts = EvaluationCounts::new("distance", NEIGHBOURS, Some(confusion), None);
    counts.gains = Gains {
        areas: Some(sums),
        errors: None,
    };
    let largest = hospitals.iter().map(|one| one.codes.len()).max();
    counts.round_figures(largest.unwrap().next_multiple_of(10) as u64);
    let found = counts.gains.areas.unwrap();
    [found[1], found[2]]
}

/// The gain where its step follows from the pooled classes, as it once did.
fn by_pooled_classes(hospitals: &[Hospital]) -> (f64, f64) {
    let (sums, classes) = summed(hospitals);
    let fewest = classes[0].min(classes[1]) as f64;
    let step = (2_000.0 / fewest).ceil() / 1_000.0;
    let found: [f64; 5] = PairedSums::from(sums).rounded(step).unwrap().into();
    (found[1], step)
}

#[test]
fn a_gain_of_opposite_hospitals_seldom_says_the_class_of_one_patient() {
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    for patients in [
        &[[20, 480], [480, 20]][..],
        &[[25, 25]],
        &[[160, 140], [190, 110], [8, 115], [50, 150]],
        &[[17, 17]; 12],
    ] {
        let (mut seen, mut errors, mut far) = (0, 0, 0);
        for _ in 0..RUNS {
            let mut hospitals: Vec<Hospital> = patients
                .iter()
                .map(|patients| Hospital::drawn(&mut draw, *patients))
                .collect();
            let at = draw.random_range(0..hospitals.len());
            let mut with = |class: u32| {
                hospitals[at].codes[0] = class;
                let (pooled, step) = by_pooled_classes(&hospitals);
                (published_gain(&hospitals), pooled, step)
            };
            let [(first, pooled, step), (second, other, _)] = [with(0), with(1)];
            seen += u64::from(first[0] != second[0]);
            errors += u64::from(first[1] != second[1]);
            far += u64::from((pooled - other).abs() > 1.5 * step);
        }
        println!(
            "{patients:?}: of {RUNS} runs {seen} published gains and {errors} of their errors differ by the class; by pooled classes {far} moved by two steps or more"
        );
        assert!(seen < RUNS * 2 / 5, "{patients:?}: {seen}");
        assert!(errors < RUNS * 2 / 5, "{patients:?}: {errors}");
        if patients.len() == 2 {
            assert!(far > RUNS / 4, "{far}");
        }
    }
}

/// What a site sends of its pairs.
#[derive(Clone, Copy, PartialEq)]
enum Sent {
    Squares,
    Pairs,
    PairsInTwenties,
}

/// Patients of both classes at hospitals whose numbers of patients are known to ten, from sums over all of them: of the classes, of pairs
/// within hospitals, and of the squares of each patient's pairs. A coordinator receives them exactly.
fn classes_that_fit(hospitals: [[u64; 2]; 3], sent: Sent) -> usize {
    let sums = |hospitals: &[[u64; 2]]| {
        let mut all = [0; 4];
        for [n, m] in hospitals {
            let squares = if sent == Sent::Squares {
                n * m * (n + m)
            } else {
                0
            };
            let own = [*n, *m, n * m, squares];
            for (all, own) in all.iter_mut().zip(own) {
                *all += own;
            }
        }
        all
    };
    let wanted = sums(&hospitals);
    let possible = |[n, m]: [u64; 2]| {
        let most = (n + m).next_multiple_of(10);
        let of = move |all: u64| (5..all - 4).map(move |n| [n, all - n]);
        (most - 9..=most).flat_map(of).collect::<Vec<_>>()
    };
    let [first, second, third] = hospitals.map(possible);
    let mut fits = 0;
    for one in &first {
        for other in &second {
            let [n, m] = [0, 1].map(|class| wanted[class].checked_sub(one[class] + other[class]));
            let (Some(n), Some(m)) = (n, m) else { continue };
            let rest = [n, m];
            if !third.contains(&rest) {
                continue;
            }
            let found = sums(&[*one, *other, rest]);
            let error = match sent {
                Sent::Squares | Sent::Pairs => 0,
                Sent::PairsInTwenties => 3 * PAIRS_STEP / 2,
            };
            let off = found[2].abs_diff(wanted[2]);
            if found[..2] == wanted[..2] && off <= error && found[3] == wanted[3] {
                fits += 1;
            }
        }
    }
    fits
}

/// Of hospitals as three of heart disease are, one of them with 8 patients of a class: the truth, and the same with classes exchanged at one.
#[test]
fn squares_of_pairs_would_read_the_classes_of_each_hospital_so_none_sends_them() {
    let hospitals = [[164, 139], [188, 106], [8, 115]];
    let found = [Sent::Squares, Sent::Pairs, Sent::PairsInTwenties]
        .map(|sent| classes_that_fit(hospitals, sent));
    println!("{found:?} ways in which the classes may be at the hospitals");
    assert!(
        found[0] <= 2 && found[1] < 200 && found[2] > 2_000,
        "{found:?}"
    );
    let own = PairedSums::from([1_234.0, 5.0, 2.0, 3.0, 4.0]).among_sites();
    assert_eq!(<[f64; 5]>::from(own), [1_240.0, 5.0, 2.0, 3.0, 0.0]);
}
