//! Where a metric helps, and where not: a line for each promise, on public patients where they are present.
//!
//! `cargo bench -p similarity --bench helps [-- PROMISE..]`, on the data that `rounds.rs` takes. Held-out figures are means over
//! [`SPLITS`] random splits, with the standard error of a difference.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/held_out.rs"]
#[allow(dead_code, unreachable_pub)]
mod held_out;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use std::time::Instant;

use federation::{Federation, Part, TOLERANCE};
use held_out::{Split, among, area, classes, learned, mean};
use hospitals::{breast_cancer, data_folder, gbsg2, heart, parkinsons};
use ndarray::{Array1, Array2, Axis, concatenate};
use rand::{Rng, RngExt};
use rayon::prelude::*;
use similarity::learn::unpsl::accelerated::{
    Knowledge, RelativeSparsity, Search, SearchSettings, search_sites,
};
use similarity::learn::unpsl::{self, Form, JudgedPairs, Labels, LocalLimits, Settings};
use similarity::numeric::seed::Seed;

const SPLITS: u64 = 8;
const NEIGHBOURS: usize = 15;
const FORMS: [Form; 2] = [Form::InnerProduct, Form::Distance];

type Sets = Vec<(&'static str, Vec<Part>)>;
/// Its name, and what prints its lines.
type Promise = (&'static str, fn(&Sets));

fn main() {
    let mut sets = Sets::new();
    match data_folder() {
        Some(folder) => {
            sets.push(("four heart hospitals", heart(&folder)));
            sets.push(("Parkinson's", parkinsons(&folder)));
            sets.push(("GBSG2, recurrence", gbsg2(&folder)));
        }
        None => println!("no data folder"),
    }
    sets.extend(breast_cancer().map(|parts| ("breast cancer", parts)));
    let promises: [Promise; 5] = [
        ("constant", constant_columns),
        ("few-events", few_events),
        ("chosen", chosen),
        ("local", alone),
        ("judged", judged_pairs),
    ];
    let named: Vec<String> = std::env::args().skip(1).collect();
    for (name, promise) in promises {
        if named.iter().all(|one| one.starts_with("--")) || named.iter().any(|one| one == name) {
            promise(&sets);
        }
    }
}

/// Runs by distances over columns that hardly vary: how many end at a metric, and how often the textbook's variance of their columns is below 0.
fn constant_columns(_: &Sets) {
    const RUNS: u64 = 500;
    let found: Vec<(bool, bool, bool)> = (0..RUNS)
        .into_par_iter()
        .map(|number| {
            let parts = odd_parts(number);
            let settings = Settings {
                form: Form::Distance,
                rank: 4,
                ..Settings::default()
            };
            let federation = Federation::unsolved(&parts, settings);
            let run = federation.accelerated(federation.start(0), 60, TOLERANCE);
            let at = federation.start(1);
            let mut curvatures = federation.sites.iter().flat_map(|site| {
                site.derivatives(&at, None)
                    .unwrap()
                    .curvature
                    .diag()
                    .to_owned()
            });
            let textbook = |column: ndarray::ArrayView1<'_, f64>| {
                let mean = column.mean().unwrap();
                column.dot(&column) / column.len() as f64 - mean * mean
            };
            let mut columns = parts.iter().flat_map(|part| part.patients.columns());
            (
                run.converged && run.metric.iter().all(|entry| entry.is_finite()),
                curvatures.any(|entry| entry < 0.0),
                columns.any(|column| textbook(column) < 0.0),
            )
        })
        .collect();
    let count = |of: fn(&(bool, bool, bool)) -> bool| found.iter().filter(|one| of(one)).count();
    println!(
        "constant columns, form = \"distance\": {} of {RUNS} runs converge; a curvature is below 0 in {}, a variance by the textbook in {}",
        count(|one| one.0),
        count(|one| one.1),
        count(|one| one.2)
    );
}

/// 3 sites with a constant column, one that nearly is, a finding of one patient, and a multiple.
fn odd_parts(number: u64) -> Vec<Part> {
    let mut stream = Seed(number).stream("odd", 0);
    let constant: f64 = stream.random_range(-30.0..30.0);
    (0..3)
        .map(|site| {
            let count = stream.random_range(40..160);
            let has = stream.random_range(0..count);
            let mut normal = || (0..12).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0;
            let mut patients = Array2::zeros((count, 6));
            for (patient, mut row) in patients.rows_mut().into_iter().enumerate() {
                let (one, other) = (normal(), normal());
                let rare = if site == 0 && patient == has {
                    17.29
                } else {
                    -0.0578
                };
                let nearly = constant + 1e-9 * normal();
                let all = [one, other, constant, nearly, rare, 0.7 * other];
                row.assign(&Array1::from(all.to_vec()));
            }
            let class = |row: ndarray::ArrayView1<'_, f64>| u32::from(row[0] + normal() > 0.0);
            let classes = patients.outer_iter().map(class).collect();
            Part {
                labels: Labels::Classes(classes),
                patients,
            }
        })
        .collect()
}

/// Every `thin`th patient of the second class stays, of every site.
fn thinned(parts: &[Part], thin: usize) -> Vec<Part> {
    let mut seen = 0;
    let mut stays = |class: u32| {
        seen += usize::from(class == 1);
        class == 0 || seen % thin == 0
    };
    let kept = |part: &Part| {
        let rows = 0..part.patients.nrows();
        let rows: Vec<usize> = rows.filter(|row| stays(classes(part)[*row])).collect();
        among(part, &rows)
    };
    parts.iter().map(kept).collect()
}

/// Features that stay of patients with few events, at a lambda_1 of 0.003 and at the one that follows from the data.
fn few_events(sets: &Sets) {
    for (name, parts) in sets {
        for thin in [1, 8] {
            let parts = thinned(parts, thin);
            let patients: usize = parts.iter().map(|part| part.patients.nrows()).sum();
            let events: u32 = parts.iter().map(|part| classes(part).sum()).sum();
            for form in FORMS {
                let [fixed, by_default] = stay(&parts, form);
                println!(
                    "few events, {name}, {events} of {patients}, {form:?}: {fixed} of {} features at lambda_1 0.003, {by_default} by default",
                    parts[0].patients.ncols()
                );
            }
        }
    }
    const DRAWS: u64 = 20;
    for constant in [-2.2, -3.1, -4.0] {
        for form in FORMS {
            let of_draw = |number| {
                let parts = weak_parts(number, constant);
                let events: u32 = parts.iter().map(|part| classes(part).sum()).sum();
                (events, stay(&parts, form))
            };
            let found: Vec<_> = (0..DRAWS).into_par_iter().map(of_draw).collect();
            let events = found.iter().map(|one| one.0).sum::<u32>() / DRAWS as u32;
            let empty = |place: usize| found.iter().filter(|one| one.1[place] == 0).count();
            println!(
                "few events, {DRAWS} synthetic sets, {events} of 900, {form:?}: {} metrics are empty at lambda_1 0.003, {} by default",
                empty(0),
                empty(1)
            );
        }
    }
}

/// How many features stay at 0.003, and by default.
fn stay(parts: &[Part], form: Form) -> [usize; 2] {
    let features = parts[0].patients.ncols();
    let settings = Settings {
        form,
        rank: features.min(8),
        ..Settings::default()
    };
    let federation = Federation::unsolved(parts, settings);
    let fixed = federation.accelerated(federation.start(0), 60, TOLERANCE);
    [fixed.metric, by_default(&federation)].map(|metric| {
        let rows = metric.outer_iter();
        rows.filter(|row| row.iter().any(|one| *one != 0.0)).count()
    })
}

/// Three sites of 300 patients of a logistic model with this constant, three weak features of six.
fn weak_parts(number: u64, constant: f64) -> Vec<Part> {
    let mut stream = Seed(number).stream("weak", 0);
    let mut site = |_| {
        let mut number = || stream.random::<f64>();
        let mut normal = || (0..12).map(|_| number()).sum::<f64>() - 6.0;
        let patients = Array2::from_shape_simple_fn((300, 6), &mut normal);
        let is_ill = |row: ndarray::ArrayView1<'_, f64>| {
            let eta = constant + 0.6 * row[0] + 0.4 * row[1] - 0.4 * row[2];
            u32::from(number() < 1.0 / (1.0 + (-eta).exp()))
        };
        Part {
            labels: Labels::Classes(patients.outer_iter().map(is_ill).collect()),
            patients,
        }
    };
    (0..3).map(&mut site).collect()
}

fn by_default(federation: &Federation) -> Array2<f64> {
    let settings = SearchSettings {
        lambda_sparsity: federation.settings.lambda_sparsity,
        form: federation.settings.form,
        tolerance: TOLERANCE,
        tolerance_residual: 1e-3,
    };
    let search = Search::new(settings, federation.start(0), federation.features)
        .relative(RelativeSparsity::USUAL)
        .bounded();
    let mut known = Knowledge::new().up_to(federation.error);
    let found = search_sites(&federation.sites, search, &mut known, 60, &mut |_, _| {});
    found.unwrap().best().clone()
}

const LAMBDAS: [f64; 3] = [0.001, 0.005, 0.02];
const COUNTS: [usize; 3] = [5, 15, 51];
const FOLDS: usize = 3;

/// Form, lambda_1 and neighbours chosen by log loss, and form and lambda_1 by the accuracy of 5 neighbours.
fn chosen(sets: &Sets) {
    let mut sets: Vec<(String, Vec<Part>)> = sets
        .iter()
        .flat_map(|(name, parts)| {
            let few = (
                format!("{name}, an eighth of the events"),
                thinned(parts, 8),
            );
            let whole = parts.iter().map(|part| among(part, &every(part))).collect();
            [((*name).to_owned(), whole), few]
        })
        .collect();
    // Its eighth has fewer healthy people than events, and 18 of these.
    sets.retain(|(name, _)| name != "Parkinson's, an eighth of the events");
    for (name, parts) in &sets {
        let found: Vec<[[f64; 2]; 2]> = (0..SPLITS)
            .into_par_iter()
            .map(|split| choices(parts, split))
            .collect();
        let of = |own: &dyn Fn(&[[f64; 2]; 2]) -> f64| {
            mean(&found.iter().map(own).collect::<Vec<f64>>())
        };
        let (gain, error) = of(&|one| one[1][0] - one[0][0]);
        let (less, of_loss) = of(&|one| one[1][1] - one[0][1]);
        println!(
            "chosen by log loss, {name}: AUC {:.3}, by accuracy {:.3}; {gain:+.4} ({error:.4}); log loss {less:+.4} ({of_loss:.4})",
            of(&|one| one[1][0]).0,
            of(&|one| one[0][0]).0
        );
    }
}

fn every(part: &Part) -> Vec<usize> {
    (0..part.patients.nrows()).collect()
}

/// AUC and log loss of the patients held out, chosen by accuracy and by log loss.
fn choices(parts: &[Part], number: u64) -> [[f64; 2]; 2] {
    let split = Split::drawn(parts, number);
    let settings = |form, lambda_sparsity| Settings {
        form,
        lambda_sparsity,
        ..Settings::default()
    };
    let (mut accurate, mut likely) = (Vec::new(), Vec::new());
    for form in FORMS {
        for lambda in LAMBDAS {
            let mut all: [Vec<(f64, u32)>; 3] = Default::default();
            for fold in 0..FOLDS {
                let fold = Split::fold(&split.training, fold, FOLDS);
                let metric = fold.learned(settings(form, lambda), number);
                for (all, count) in all.iter_mut().zip(COUNTS) {
                    all.extend(fold.judged(&metric, count));
                }
            }
            accurate.push((misclassified(&all[0]), form, lambda, COUNTS[0]));
            let losses = all.iter().zip(COUNTS);
            likely.extend(losses.map(|(own, count)| (log_loss(own, count), form, lambda, count)));
        }
    }
    [accurate, likely].map(|tried| {
        let best = tried.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let (_, form, lambda, count) = best.unwrap();
        let judged = split.judged(&split.learned(settings(form, lambda), number), count);
        [area(&judged), log_loss(&judged, count)]
    })
}

fn misclassified(judged: &[(f64, u32)]) -> f64 {
    let wrong = judged
        .iter()
        .filter(|(share, class)| (*share > 0.5) != (*class == 1));
    wrong.count() as f64 / judged.len() as f64
}

/// Of shares with one vote more, spread as the classes are.
fn log_loss(judged: &[(f64, u32)], count: usize) -> f64 {
    let prior = judged
        .iter()
        .map(|(_, class)| f64::from(*class))
        .sum::<f64>()
        / judged.len() as f64;
    let loss = |(share, class): &(f64, u32)| {
        let smooth = (share * count as f64 + prior) / (count as f64 + 1.0);
        -(if *class == 1 { smooth } else { 1.0 - smooth }).ln()
    };
    judged.iter().map(loss).sum::<f64>() / judged.len() as f64
}

/// One table by the few-rounds search, as `local` learns, and by Algorithm 1 of the paper, timed in turn.
fn alone(sets: &Sets) {
    for (name, parts) in sets {
        let rows: Vec<_> = parts.iter().map(|part| part.patients.view()).collect();
        let codes: Vec<_> = parts.iter().map(|part| classes(part).view()).collect();
        let patients = concatenate(Axis(0), &rows).unwrap();
        let labels = Labels::Classes(concatenate(Axis(0), &codes).unwrap());
        let (count, features) = patients.dim();
        let pairs = (count * (count - 1) / 2) as u64;
        let federation = Federation::unsolved(&[Part { patients, labels }], Settings::default());
        let begin = Instant::now();
        let few = federation.accelerated(federation.start(0), 100, TOLERANCE);
        let ours = begin.elapsed().as_secs_f64();
        let limits = LocalLimits {
            tolerance_absolute: 1e-6,
            tolerance_relative: 1e-5,
            ..LocalLimits::new(federation.settings.penalty_start(1, pairs))
        };
        let begin = Instant::now();
        let paper = unpsl::learn(&federation.sites[0], federation.start(0), &limits).unwrap();
        let theirs = begin.elapsed().as_secs_f64();
        println!(
            "local, {name}, {count} x {features}: {ours:.2} s, Algorithm 1 {theirs:.2} s, {:.0} x; objective {:+.1e} of itself",
            theirs / ours,
            few.objective / paper.objective - 1.0
        );
    }
}

/// Real patients, and judgements of the two features that say least of the outcome, one of ten wrong.
fn judged_pairs(sets: &Sets) {
    const PAIRS: usize = 300;
    for (name, parts) in sets {
        let features = least_related(parts);
        let found: Vec<[[f64; 2]; 3]> = (0..SPLITS)
            .into_par_iter()
            .map(|number| {
                let split = Split::drawn(parts, number);
                let mut stream = Seed(number).stream("judgements", 0);
                let mut judge =
                    |part: &Part, wrong| judgements(part, features, (PAIRS, wrong), &mut stream);
                let own: Vec<_> = split.training.iter().map(|part| judge(part, 0.1)).collect();
                let of = |labels: &dyn Fn(&Part, &JudgedPairs) -> Labels| {
                    let sites = split.training.iter().zip(&own);
                    let parts: Vec<Part> = sites
                        .map(|(part, own)| Part {
                            patients: part.patients.clone(),
                            labels: labels(part, own),
                        })
                        .collect();
                    learned(&parts, Settings::default(), number)
                };
                let metrics = [
                    of(&|part, _| Labels::Classes(classes(part).clone())),
                    of(&|_, own| Labels::Judged(own.clone())),
                    of(&|part, own| Labels::Both {
                        codes: classes(part).clone(),
                        judged: own.clone(),
                        times: 20,
                    }),
                ];
                let asked: Vec<_> = split.held.iter().map(|part| judge(part, 0.0)).collect();
                metrics.map(|metric| {
                    [
                        of_pairs(&split.held, &asked, &metric),
                        area(&split.judged(&metric, NEIGHBOURS)),
                    ]
                })
            })
            .collect();
        for (place, supervision) in ["outcome", "physician", "both"].iter().enumerate() {
            let of = |measure: usize| {
                mean(
                    &found
                        .iter()
                        .map(|one| one[place][measure])
                        .collect::<Vec<f64>>(),
                )
            };
            let ((pairs, a), (outcome, b)) = (of(0), of(1));
            println!(
                "judged pairs, {name}, supervision = \"{supervision}\": AUC {pairs:.3} ({a:.3}) of held-out pairs, {outcome:.3} ({b:.3}) of the outcome"
            );
        }
    }
}

fn least_related(parts: &[Part]) -> [usize; 2] {
    let related = |feature: usize| {
        let sum = |part: &Part| {
            part.patients
                .column(feature)
                .dot(&classes(part).mapv(f64::from))
        };
        parts.iter().map(sum).sum::<f64>().abs()
    };
    let mut features: Vec<usize> = (0..parts[0].patients.ncols()).collect();
    features.sort_by(|a, b| related(*a).total_cmp(&related(*b)));
    [features[0], features[1]]
}

/// Similar is who is on the same side of the mean in both features.
fn judgements(
    part: &Part,
    features: [usize; 2],
    (wanted, wrong): (usize, f64),
    stream: &mut impl Rng,
) -> JudgedPairs {
    let count = part.patients.nrows();
    let mut pairs = std::collections::BTreeMap::new();
    while pairs.len() < wanted.min(count * (count - 1) / 4) {
        let [one, other] = [0, 1].map(|_| stream.random_range(0..count));
        if one < other {
            let side = |patient: usize| features.map(|of| part.patients[[patient, of]] > 0.0);
            let is_wrong = stream.random::<f64>() < wrong;
            pairs.insert([one, other], (side(one) == side(other)) != is_wrong);
        }
    }
    JudgedPairs::new(count, pairs).unwrap()
}

fn of_pairs(held: &[Part], asked: &[JudgedPairs], metric: &Array2<f64>) -> f64 {
    let mut scores = Vec::new();
    for (part, asked) in held.iter().zip(asked) {
        let places = part.patients.dot(metric);
        let score = |(pair, similar): &([u32; 2], bool)| {
            let [one, other] = pair.map(|patient| places.row(patient as usize));
            let away = &one - &other;
            (-away.dot(&away), u32::from(*similar))
        };
        scores.extend(asked.pairs().iter().map(score));
    }
    area(&scores)
}
