//! A coordinator that reads: it follows the protocol, keeps the sums of an undisturbed run, and looks for patients whose sums
//! they would be, by L-BFGS over all their rows. It is told more than a coordinator is: how many patients of which class each site
//! has, each site's threshold, that columns have the mean 0 at each site, and what the correlation adds; and in a second attack
//! all rows of one site that works for it.
//!
//! What it finds is judged by the distance of each patient from the nearest row that was found for the same site and class, beside
//! the patient's own size, and compared with rows that are drawn by class from a Gaussian of the pooled moments, which every
//! pooled result tells. The sums do not know the sign of a site's rows: whoever looks may choose it.

mod folds;
mod patients;
mod search;
mod strata;

use super::masks::Court;
use kindred_tests::deployment::SITES;
use kindred_tests::federation::RUN;
use kindred_tests::results::npy;
use kindred_tests::samples::demo_job;
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use patients::{Patients, Told, misfit, pairs, sums, sums_at};
use privacy::Disclosure;
use privacy::sums::Words;
use protocol::message::unpsl::{self, Derivatives, Differentiating};
use protocol::message::{Answer, Request, ToSite};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use search::search;
use std::collections::BTreeMap;

/// Draws that a search is compared with.
const GUESSES: u64 = 19;
/// A row is recovered where one was found so near, as a share of its size.
const RECOVERED: f64 = 0.1;
/// As the demonstration's job has it.
const LAMBDA_CORRELATION: f64 = 0.0003;

/// Plays an undisturbed run to its end; gives all that its coordinator can read of rounds.
fn heard(court: &mut Court, truth: impl Fn(&Court) -> Vec<Patients>) -> (Vec<Told>, Vec<Patients>) {
    let mut asked: BTreeMap<u32, Differentiating> = BTreeMap::new();
    let mut heard = BTreeMap::new();
    court.play(|_, message| {
        match &message {
            ToSite::Ask(ask) => {
                if let Request::Unpsl(unpsl::Request::Differentiate(question)) = &ask.request {
                    asked.insert(ask.exchange, question.clone());
                }
            }
            ToSite::Closed(closed) => {
                let exchange = closed.record.exchange;
                if let Some(question) = asked.get(&exchange) {
                    let told = closed.record.answers.iter().flatten();
                    let words = told.map(|answer| match answer {
                        Answer::Covered(covered) => covered.words.clone(),
                        other => panic!("told in the clear: {}", other.kind()),
                    });
                    heard.insert(exchange, summed(words, question));
                }
            }
            ToSite::Begin(_)
            | ToSite::End { .. }
            | ToSite::Proposed(_)
            | ToSite::ClosedStudies(_)
            | ToSite::Waiting(_) => {}
        }
        vec![message]
    });
    let truth = truth(court);
    let mut told: Vec<Told> = heard.into_values().collect();
    for told in &mut told {
        told.thresholds = sums(&truth, &told.metric).thresholds;
    }
    (told, truth)
}

fn summed(words: impl Iterator<Item = Words>, question: &Differentiating) -> Told {
    let sum = words.reduce(|mut sum, own| {
        sum.add(&own).unwrap();
        sum
    });
    let metric = question.metrics[0].clone();
    let blanks = Derivatives::blanks(question, metric.nrows());
    let mut told = Answer::Unpsl(unpsl::Answer::Derivatives(blanks));
    sum.unwrap().read_into(&mut told).unwrap();
    let Answer::Unpsl(unpsl::Answer::Derivatives(told)) = told else {
        panic!("derivatives");
    };
    let own = told[0].unfold(metric.nrows());
    Told {
        objective: own.objective,
        gradient: own.gradient,
        curvature: own.curvature,
        thresholds: Vec::new(),
        metric,
    }
}

/// The patients as their sites have standardised them.
fn truth(court: &Court) -> Vec<Patients> {
    let of_site = |site: &&str| {
        let text = std::fs::read_to_string(court.home.join(&format!("data/{site}.csv"))).unwrap();
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap().split(',').collect();
        let class = head.iter().position(|name| *name == "class").unwrap();
        let classes = lines
            .map(|line| line.split(',').nth(class) == Some("positive"))
            .collect();
        let folder = court.home.join(&format!("sites/{site}/runs/{RUN}"));
        Patients {
            rows: npy(&folder.join("matrix.npy")),
            classes,
        }
    };
    SITES.iter().map(of_site).collect()
}

/// Rows of as many patients, drawn by class from the pooled moments.
fn guess(like: &[Patients], seed: u64) -> Vec<Patients> {
    let features = like[0].rows.ncols();
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || normal(&mut draw);
    let means = [false, true].map(|class| {
        let mut sum = Array1::<f64>::zeros(features);
        let mut count = 0.0;
        for site in like {
            for (row, _) in site
                .rows
                .rows()
                .into_iter()
                .zip(&site.classes)
                .filter(|(_, c)| **c == class)
            {
                sum += &row;
                count += 1.0;
            }
        }
        sum / count
    });
    let mut spread = Array2::<f64>::zeros((features, features));
    let mut count = 0.0;
    for site in like {
        for (row, class) in site.rows.rows().into_iter().zip(&site.classes) {
            let apart = (&row - &means[usize::from(*class)]).insert_axis(Axis(1));
            spread += &apart.dot(&apart.t());
            count += 1.0;
        }
    }
    let root = cholesky(&(spread / count));
    let mut of_site = |site: &Patients| {
        let mut rows =
            Array2::from_shape_simple_fn(site.rows.raw_dim(), &mut normal).dot(&root.t());
        for (mut row, class) in rows.rows_mut().into_iter().zip(&site.classes) {
            row += &means[usize::from(*class)];
        }
        Patients {
            rows,
            classes: site.classes.clone(),
        }
    };
    like.iter().map(&mut of_site).collect()
}

/// Twelve draws make a number that is nearly normal.
fn normal(draw: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| draw.random::<f64>()).sum::<f64>() - 6.0
}

fn cholesky(matrix: &Array2<f64>) -> Array2<f64> {
    let mut root = Array2::<f64>::zeros(matrix.raw_dim());
    for row in 0..matrix.nrows() {
        for column in 0..=row {
            let known = root.row(row).dot(&root.row(column));
            let rest = matrix[[row, column]] - known;
            root[[row, column]] = match row == column {
                true => rest.max(1e-9).sqrt(),
                false => rest / root[[column, column]],
            };
        }
    }
    root
}

/// Of each patient how far the nearest row that was found for one of the same site and class is, beside the patient's own size;
/// ascending.
fn distances(found: &[Patients], truth: &[Patients]) -> Vec<f64> {
    let size = |row: ArrayView1<'_, f64>| row.dot(&row).sqrt();
    let mut all = Vec::new();
    for (found, truth) in found.iter().zip(truth) {
        let of_sign = |sign: f64| -> Vec<f64> {
            let near = |(patient, class): (ArrayView1<'_, f64>, &bool)| {
                let alike = found.rows.rows().into_iter().zip(&found.classes);
                alike
                    .filter(|(_, other)| *other == class)
                    .map(|(row, _)| size((&row * sign - patient).view()) / size(patient))
                    .fold(f64::INFINITY, f64::min)
            };
            truth
                .rows
                .rows()
                .into_iter()
                .zip(&truth.classes)
                .map(near)
                .collect()
        };
        let [one, other] = [1.0, -1.0].map(of_sign);
        let is_better = one.iter().sum::<f64>() <= other.iter().sum::<f64>();
        all.extend(if is_better { one } else { other });
    }
    all.sort_by(f64::total_cmp);
    all
}

/// Subtracts what the correlation adds.
fn without_correlation(told: &mut [Told], truth: &[Patients], lambda: f64) {
    let all = pairs(truth);
    for told in told {
        for site in truth {
            let rows = &site.rows;
            let means = rows.mean_axis(Axis(0)).unwrap();
            let centred = rows - &means;
            let norms = (&centred * &centred).sum_axis(Axis(0)).mapv(f64::sqrt);
            let unit = &centred / &norms.mapv(|n| if n > 1e-7 { n } else { f64::INFINITY });
            let n = site.classes.len() as f64;
            let share = n * (n - 1.0) / 2.0 / all;
            let square = unit.t().dot(&unit).mapv(|r| r * r) * (lambda * share);
            told.objective -= (&square.dot(&told.metric) * &told.metric).sum();
            told.gradient -= &square;
        }
    }
}

/// The demonstration's job on six of its features, by exact sums, which tell most; all else is as it is by default.
fn job() -> String {
    const KEPT: [&str; 6] = [
        "first_1", "first_2", "first_3", "second_1", "second_2", "mixed_1",
    ];
    let job = demo_job(&["rank = 6"], "");
    let (head, rest) = job.split_once("[[features]]").unwrap();
    let (features, tail) = rest.split_once("[unpsl]").unwrap();
    let is_kept = |block: &&str| {
        KEPT.iter()
            .any(|name| block.contains(&format!("\"{name}\"")))
    };
    let kept = features.split("[[features]]").filter(is_kept);
    let kept: String = kept.map(|block| format!("[[features]]{block}")).collect();
    format!("precision = \"exact\"\n{head}{kept}[unpsl]{tail}")
}

/// The sums of the rounds of a default run with 40, 36, 34 and 30 patients, without what the correlation adds, and the patients.
fn undisturbed() -> (Vec<Told>, Vec<Patients>) {
    let mut court = Court::of("north=40,south=36,east=34,west=30", &job());
    let (mut heard, truth) = heard(&mut court, truth);
    without_correlation(&mut heard, &truth, LAMBDA_CORRELATION);
    // The formulas are those of the sites.
    let (left, _) = misfit(&truth, &heard);
    assert!(left < 1e-20, "{left:e} at the truth");
    (heard, truth)
}

fn median(ascending: &[f64]) -> f64 {
    ascending[ascending.len() / 2]
}

/// Looks from three guesses for the rows of all sites but the first `known` ones. The sums fit in the end, and what fits them is no
/// nearer to the patients than guesses are.
fn nothing_is_found(heard: &[Told], truth: &[Patients], known: usize) {
    let medians: Vec<f64> = (0..GUESSES)
        .map(|seed| median(&distances(&guess(truth, seed)[known..], &truth[known..])))
        .collect();
    let typical = medians.iter().sum::<f64>() / medians.len() as f64;
    for seed in 0..3 {
        let mut found = guess(truth, seed);
        found[..known].clone_from_slice(&truth[..known]);
        let (before, _) = misfit(&found, heard);
        let after = search(&mut found, known, heard, 600);
        let distances = distances(&found[known..], &truth[known..]);
        let recovered = distances.iter().filter(|far| **far < RECOVERED).count();
        println!(
            "{known} sites known: misfit {before:.1e} to {after:.1e}; nearest {:.2}, median {:.3}; of guesses {typical:.3}",
            distances[0],
            median(&distances)
        );
        assert!(
            after < 1e-3 && after < before * 1e-3,
            "the search did not fit the sums: {after:e}"
        );
        assert_eq!(recovered, 0, "rows were recovered");
        assert!(median(&distances) > 0.85 * typical, "nearer than guesses");
    }
}

#[test]
fn the_sums_of_an_undisturbed_run_tell_no_row() {
    let (heard, truth) = undisturbed();
    let told = heard.len() * (6 * 7 + 1);
    println!(
        "{} questions, {told} numbers of {} values",
        heard.len(),
        140 * 6
    );
    nothing_is_found(&heard, &truth, 0);
    nothing_is_found(&heard, &truth, 1);
}

/// So many patients of each site, standardised anew.
fn first(truth: &[Patients], patients: usize) -> Vec<Patients> {
    let of_site = |site: &Patients| {
        let rows = site.rows.slice(s![..patients, ..]);
        let means = rows.mean_axis(Axis(0)).unwrap();
        Patients {
            rows: &rows - &means,
            classes: site.classes[..patients].to_vec(),
        }
    };
    let mut few: Vec<Patients> = truth.iter().map(of_site).collect();
    let squares = few
        .iter()
        .map(|site| (&site.rows * &site.rows).sum_axis(Axis(0)));
    let squares = squares.reduce(|sum, own| sum + own).unwrap();
    let scale = (squares / (patients * few.len()) as f64).mapv(f64::sqrt);
    few.iter_mut().for_each(|site| site.rows /= &scale);
    few
}

/// The same search at the same metrics, where there are three patients at each site: fewer values than numbers.
#[test]
fn the_sums_of_very_few_patients_tell_their_rows() {
    const FEW: usize = 3;
    let (heard, truth) = undisturbed();
    let few = first(&truth, FEW);
    let sums = |told: &Told| sums_at(&few, &told.metric, vec![1.0; few.len()]);
    let heard: Vec<Told> = heard.iter().map(sums).collect();
    // A second solution fits as well, and has half of the rows: which one a search ends at goes by the last bits of its arithmetic.
    let mut solutions = (0..20).filter_map(|seed| {
        let mut found = guess(&few, seed);
        let left = search(&mut found, 0, &heard, 4_000);
        let distances = distances(&found, &few);
        let recovered = distances.iter().filter(|far| **far < RECOVERED).count();
        println!("misfit {left:.1e}: {recovered} of {} rows", distances.len());
        (left < 1e-8).then_some((recovered, distances.len()))
    });
    assert!(solutions.any(|(recovered, rows)| recovered * 2 > rows));
}
