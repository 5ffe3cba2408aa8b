//! An operator who has many runs learnt with folds, each at other metrics, and reads the sums of all patients, the sums of all but
//! a fold, and of a nested choice those of all but two: their differences are of a fold and of its pairs with the others. This attacker
//! knows more than any of them does: which patient is in which fold, each part's thresholds, and metrics drawn as they like.

use super::patients::{Patients, Told, misfit_of_sums, of_moments, sums};
use super::search::minimised;
use super::{RECOVERED, distances, first, guess, median, undisturbed};
use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::learn::unpsl::selection::two_folds;

const FOLDS: usize = 5;
const METRICS: usize = 8;

/// What is told of some of the patients of each site.
struct Part {
    /// Of each site the patients who are left.
    kept: Vec<Vec<usize>>,
    heard: Vec<Told>,
}

fn of_part(sites: &[Patients], kept: &[Vec<usize>]) -> Vec<Patients> {
    let of_site = |(site, kept): (&Patients, &Vec<usize>)| Patients {
        rows: site.rows.select(Axis(0), kept),
        classes: kept.iter().map(|patient| site.classes[*patient]).collect(),
    };
    sites.iter().zip(kept).map(of_site).collect()
}

/// The sums of all, of all but each fold, and, where `nested`, of all but each two folds, at metrics of the size of `like`.
fn parts(truth: &[Patients], like: &Array2<f64>, nested: bool) -> Vec<Part> {
    let mut draw = ChaCha8Rng::seed_from_u64(3);
    let size = (like * like).sum().sqrt();
    let drawn: Vec<Array2<f64>> = (0..METRICS)
        .map(|_| {
            let metric =
                Array2::from_shape_simple_fn(like.raw_dim(), || draw.random::<f64>() - 0.5);
            &metric * (size / (&metric * &metric).sum().sqrt())
        })
        .collect();
    let part = |left_out: Vec<u32>| {
        let keeps = |patient: &usize| {
            left_out
                .iter()
                .all(|fold| patient % FOLDS != *fold as usize)
        };
        let kept: Vec<Vec<usize>> = truth
            .iter()
            .map(|site| (0..site.classes.len()).filter(keeps).collect())
            .collect();
        let patients = of_part(truth, &kept);
        Part {
            heard: drawn.iter().map(|metric| sums(&patients, metric)).collect(),
            kept,
        }
    };
    let folds = FOLDS as u32;
    let two = two_folds(folds).filter(|_| nested).map(Vec::from);
    let one = (0..folds).map(|fold| vec![fold]);
    [vec![]]
        .into_iter()
        .chain(one)
        .chain(two)
        .map(part)
        .collect()
}

fn evaluate(sites: &mut [Patients], parts: &[Part], at: &Array1<f64>) -> (f64, Array1<f64>) {
    let mut entries = at.iter();
    for site in sites.iter_mut() {
        let rows = site.rows.iter_mut().zip(&mut entries);
        rows.for_each(|(to, from)| *to = *from);
    }
    let (mut misfit, mut slopes) = of_moments(sites);
    for part in parts {
        let (own, of_part) = misfit_of_sums(&of_part(sites, &part.kept), &part.heard);
        misfit += own;
        for ((slope, of_site), kept) in slopes.iter_mut().zip(&of_part).zip(&part.kept) {
            for (row, patient) in of_site.rows().into_iter().zip(kept) {
                slope.row_mut(*patient).scaled_add(1.0, &row);
            }
        }
    }
    (
        misfit,
        slopes
            .iter()
            .flat_map(|slope| slope.iter().copied())
            .collect(),
    )
}

/// Looks for the rows from a guess; gives how near each patient was found, and of the guess the median.
fn looked_for(truth: &[Patients], parts: &[Part], steps: usize) -> (Vec<f64>, f64) {
    let mut found = guess(truth, 0);
    let guessed = median(&distances(&found, truth));
    let at = found.iter().flat_map(|site| site.rows.iter().copied());
    let at = minimised(at.collect(), steps, |at| evaluate(&mut found, parts, at));
    let (left, _) = evaluate(&mut found, parts, &at);
    let near = distances(&found, truth);
    println!(
        "{} patients, misfit {left:.1e}: nearest {:.2}, median {:.3}; of the guess {guessed:.3}",
        near.len(),
        near[0],
        median(&near)
    );
    (near, guessed)
}

/// Of 40 patients in four hospitals, whose folds are of two each, it finds some: the rules ask for folds of at least ten. Without two such
/// folds some hospital has no dissimilar pair, so that no choice nests there.
#[test]
fn the_sums_of_folds_of_few_patients_tell_some_rows_and_those_of_usual_ones_none() {
    let (heard, truth) = undisturbed();
    let like = &heard[heard.len() - 1].metric;
    for (truth, steps, finds) in [(first(&truth, 10), 3_000, true), (truth, 150, false)] {
        let parts = parts(&truth, like, !finds);
        // The sums are those of the patients.
        let mut own = truth.clone();
        let rows = own.iter().flat_map(|site| site.rows.iter().copied());
        let rows: Array1<f64> = rows.collect();
        let (left, _) = evaluate(&mut own, &parts, &rows);
        assert!(left < 1e-20, "{left:e} at the truth");
        let (near, guessed) = looked_for(&truth, &parts, steps);
        let recovered = near.iter().filter(|far| **far < RECOVERED).count();
        assert_eq!(recovered > 0, finds, "{recovered} of {} rows", near.len());
        assert!(
            finds || median(&near) > 0.85 * guessed,
            "nearer than a guess"
        );
    }
}
