//! Table 2: pairs of synthetic patients (section 5.2), similar or not.

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rayon::prelude::*;
use similarity::judge::votes::{BinaryCounts, count_pairs};
use similarity::learn::unpsl::selection::{Search, fit_path};
use similarity::learn::unpsl::{Form, Labels, PooledLimits, Settings};
use similarity::numeric::linear_algebra::product;
use similarity::numeric::seed::Seed;
use similarity::synthetic::labelled_pairs;

use crate::baselines::{
    GmmlSettings, ItmlSettings, R2ml, distance_percentiles, gmml, itml, lmnn, r2ml,
    squared_distances,
};
use crate::methods::Method;
use crate::output::Sheet;
use crate::progress::Progress;
use crate::scores::{COLUMNS, Repeated, Scores, scores};
use crate::{ExperimentError, paper};

/// n and the patients to learn from.
const PATIENTS: usize = 400;
const TRAINING: usize = 200;
/// Of the training patients, those whose pairs choose the hyperparameters.
const CHOOSING: usize = 50;
/// lambda_1 and lambda_2 to choose from.
const LAMBDA_SPARSITY: [f64; 4] = [3e-5, 1e-4, 3e-4, 1e-3];
const LAMBDA_CORRELATION: [f64; 2] = [1e-5, 1e-4];

/// What is run, and how often.
#[derive(Debug, Clone)]
pub struct Table2Settings {
    /// Of d = 20, 40, 60, which.
    pub base_features: Vec<usize>,
    /// Data sets of each d.
    pub repeats: u64,
    /// Of the data, starts and drawn pairs.
    pub seed: Seed,
}

impl Default for Table2Settings {
    /// All three, 10 repeats as in the paper.
    fn default() -> Self {
        Self {
            base_features: paper::BASE_FEATURES.to_vec(),
            repeats: 10,
            seed: Seed(1),
        }
    }
}

/// Table 2.
///
/// # Errors
/// [`ExperimentError`].
pub fn table_2(settings: &Table2Settings) -> Result<Vec<Sheet>, ExperimentError> {
    settings
        .base_features
        .iter()
        .map(|base| sheet(*base, settings))
        .collect()
}

/// Patients and the labels of their pairs.
struct Pairs {
    patients: Array2<f64>,
    labels: Labels,
}

impl Pairs {
    fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let rows: Vec<usize> = rows.collect();
        let label = |(i, j): (usize, usize)| self.labels.of_pair(rows[i], rows[j]);
        let labels = Array2::from_shape_fn((rows.len(), rows.len()), label);
        Self {
            patients: self.patients.select(Axis(0), &rows),
            labels: Labels::pairs(labels).expect("a part of pair labels is pair labels"),
        }
    }
}

fn sheet(base: usize, settings: &Table2Settings) -> Result<Sheet, ExperimentError> {
    let title = format!("Synthetic, d = {base}");
    let place = paper::BASE_FEATURES.iter().position(|known| *known == base);
    let progress = Progress::begin(&title, Method::ALL.len() * settings.repeats as usize);
    let mut rows = Vec::new();
    for method in Method::ALL {
        let of_repeat = |repeat: u64| {
            let seed = Seed(settings.seed.0.wrapping_mul(1000).wrapping_add(repeat));
            let made = labelled_pairs(PATIENTS, base, seed);
            let all = Pairs {
                patients: made.patients,
                labels: made.labels,
            };
            let (training, test) = (all.part(0..TRAINING), all.part(TRAINING..PATIENTS));
            let counts = count(method, &training, &test, seed)?;
            progress.step();
            Ok(scores(&counts))
        };
        let all: Result<Vec<Scores>, ExperimentError> = (0..settings.repeats)
            .into_par_iter()
            .map(of_repeat)
            .collect();
        let found = Repeated::of(&all?);
        let theirs = place.map(|place| paper::table_2(place, method.name()));
        rows.push(line(method, &found, theirs));
    }
    for (name, why) in paper::NOT_BUILT {
        let theirs = place.map(|place| paper::table_2(place, name));
        let empty = [why.to_owned(), String::new(), String::new(), String::new()];
        rows.push(cells(name, empty, theirs, String::new()));
    }
    let head = ["method".to_owned()].into_iter();
    let header = head
        .chain(COLUMNS.map(str::to_owned))
        .chain(COLUMNS.map(|column| format!("paper's {column}")))
        .chain(["remark".to_owned()]);
    Ok(Sheet {
        title,
        notes: vec![
            format!(
                "n = {PATIENTS}, {} features, {TRAINING} training patients, {} data sets; pairs of \
                 test patients, positive is similar; mean (standard deviation).",
                3 * base,
                settings.repeats
            ),
            format!(
                "UnPSL: square W, b = 1. Hyperparameters by the pairs of {CHOOSING} of the training \
                 patients; of the other methods the threshold, too."
            ),
            "LMNN presumes classes: here its target neighbours are the nearest similar patients, who may be \
             dissimilar among themselves."
                .to_owned(),
        ],
        header: header.collect(),
        rows,
    })
}

fn line(method: Method, found: &Repeated, paper: Option<Scores>) -> Vec<String> {
    let remark = match (method, paper) {
        (Method::UnPsl, Some(paper)) => found.below(&paper),
        _ => String::new(),
    };
    cells(method.name(), found.texts(), paper, remark)
}

fn cells(name: &str, ours: [String; 4], paper: Option<Scores>, remark: String) -> Vec<String> {
    let theirs = match paper {
        Some(scores) => scores.map(|score| format!("{score:.4}")),
        None => std::array::from_fn(|_| String::new()),
    };
    let head = std::iter::once(name.to_owned());
    head.chain(ours).chain(theirs).chain([remark]).collect()
}

fn count(
    method: Method,
    training: &Pairs,
    test: &Pairs,
    seed: Seed,
) -> Result<BinaryCounts, ExperimentError> {
    let identity = |x: &ArrayView2<f64>, _: &Labels, (): &()| Ok(Array2::eye(x.ncols()));
    match method {
        Method::UnPsl => unpsl(training, test, seed),
        Method::Cosine => {
            let (training, test) = (unit(training), unit(test));
            by_distance(&training, &test, &[()], identity)
        }
        Method::Euclidean => by_distance(training, test, &[()], identity),
        Method::Gmml => by_distance(
            training,
            test,
            &GmmlSettings::grid(),
            |x, labels, settings| Ok(gmml(x, labels, *settings)?),
        ),
        Method::Itml => by_distance(training, test, &ItmlSettings::SLACKS, |x, labels, slack| {
            let (slack, bounds) = (*slack, distance_percentiles(x));
            Ok(itml(x, labels, ItmlSettings { slack, bounds }, seed)?)
        }),
        Method::Lmnn => by_distance(training, test, &[()], |x, labels, ()| Ok(lmnn(x, labels))),
        Method::R2ml => local_metrics(training, test, seed),
    }
}

/// R2ML, with the threshold that is best for the pairs of patients who were not learned from.
fn local_metrics(
    training: &Pairs,
    test: &Pairs,
    seed: Seed,
) -> Result<BinaryCounts, ExperimentError> {
    let learn = |pairs: &Pairs| r2ml(&pairs.patients.view(), &pairs.labels, seed);
    let apart = |learned: &R2ml, pairs: &Pairs| {
        labelled(pairs, &learned.distances_within(&pairs.patients.view()))
    };
    let choosing = training.part(TRAINING - CHOOSING..TRAINING);
    let fitted = learn(&training.part(0..TRAINING - CHOOSING))?;
    let limit = threshold(&apart(&fitted, &choosing));
    Ok(compare(&apart(&learn(training)?, test), limit))
}

/// Patients of length 1: their distances are in the order of their cosines.
fn unit(pairs: &Pairs) -> Pairs {
    let mut patients = pairs.patients.clone();
    for mut row in patients.rows_mut() {
        let length = row.dot(&row).sqrt().max(f64::MIN_POSITIVE);
        row /= length;
    }
    let labels = pairs.labels.clone();
    Pairs { patients, labels }
}

fn unpsl(training: &Pairs, test: &Pairs, seed: Seed) -> Result<BinaryCounts, ExperimentError> {
    let fitting = training.part(0..TRAINING - CHOOSING);
    let choosing = training.part(TRAINING - CHOOSING..TRAINING);
    let search = |lambda_correlation| {
        let settings = Settings {
            rank: training.patients.ncols(),
            lambda_correlation,
            ..Settings::paper()
        };
        Search {
            limits: PooledLimits {
                tolerance: 1e-4,
                iterations: 300,
            },
            ..Search::new(settings, seed)
        }
    };
    let right = |pairs: &Pairs, metric: &Array2<f64>| {
        let projected = product(&pairs.patients.view(), &metric.view());
        count_pairs(&projected.view(), &pairs.labels, Form::InnerProduct, 1.0)
    };
    let fit = |pairs: &Pairs, lambdas: &[f64], correlation| {
        let search = search(correlation);
        fit_path(&pairs.patients.view(), &pairs.labels, lambdas, &search)
    };
    let mut top = (0.0, LAMBDA_SPARSITY.len(), LAMBDA_CORRELATION[0]);
    for correlation in LAMBDA_CORRELATION {
        let path = fit(&fitting, &LAMBDA_SPARSITY, correlation)?;
        for (place, metric) in path.iter().enumerate() {
            let accuracy = right(&choosing, metric)?.accuracy().unwrap_or(0.0);
            if accuracy >= top.0 {
                top = (accuracy, place + 1, correlation);
            }
        }
    }
    let path = fit(training, &LAMBDA_SPARSITY[..top.1], top.2)?;
    let metric = path.last().expect("a path of at least one value");
    Ok(right(test, metric)?)
}

/// Learns a distance with the best of `grid`, and calls a pair similar up to the threshold that is best
/// for the pairs of patients who were not learned from.
fn by_distance<S>(
    training: &Pairs,
    test: &Pairs,
    grid: &[S],
    fit: impl Fn(&ArrayView2<f64>, &Labels, &S) -> Result<Array2<f64>, ExperimentError>,
) -> Result<BinaryCounts, ExperimentError> {
    let fitting = training.part(0..TRAINING - CHOOSING);
    let choosing = training.part(TRAINING - CHOOSING..TRAINING);
    let learn = |pairs: &Pairs, settings: &S| fit(&pairs.patients.view(), &pairs.labels, settings);
    let mut top = (0.0, 0, 0.0);
    for (place, settings) in grid.iter().enumerate() {
        let apart = distances(&choosing, &learn(&fitting, settings)?);
        let limit = threshold(&apart);
        let accuracy = compare(&apart, limit).accuracy().unwrap_or(0.0);
        if accuracy > top.0 {
            top = (accuracy, place, limit);
        }
    }
    let metric = learn(training, &grid[top.1])?;
    Ok(compare(&distances(test, &metric), top.2))
}

/// The squared distance of a pair, and whether it is similar.
type Distance = (f64, bool);

fn distances(pairs: &Pairs, metric: &Array2<f64>) -> Vec<Distance> {
    let projected = product(&pairs.patients.view(), &metric.view());
    labelled(pairs, &squared_distances(&projected.view()))
}

/// Each pair once.
fn labelled(pairs: &Pairs, all: &Array2<f64>) -> Vec<Distance> {
    let upper = all.indexed_iter().filter(|((i, j), _)| i < j);
    upper
        .map(|((i, j), distance)| (*distance, pairs.labels.of_pair(i, j) > 0))
        .collect()
}

/// The distance up to which calling pairs similar is right most often.
fn threshold(pairs: &[Distance]) -> f64 {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gains: Array1<i64> = sorted
        .iter()
        .map(|pair| if pair.1 { 1 } else { -1 })
        .collect();
    let (mut sum, mut best) = (0, (0, f64::NEG_INFINITY));
    for (pair, gain) in sorted.iter().zip(&gains) {
        sum += gain;
        if sum > best.0 {
            best = (sum, pair.0);
        }
    }
    best.1
}

fn compare(pairs: &[Distance], threshold: f64) -> BinaryCounts {
    let mut counts = BinaryCounts::default();
    for (distance, similar) in pairs {
        *match (*distance <= threshold, *similar) {
            (true, true) => &mut counts.true_positive,
            (true, false) => &mut counts.false_positive,
            (false, false) => &mut counts.true_negative,
            (false, true) => &mut counts.false_negative,
        } += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_right_most_often() {
        let pairs = [
            (4.0, false),
            (1.0, true),
            (2.0, false),
            (3.0, true),
            (2.5, true),
        ];
        let limit = threshold(&pairs);
        assert_eq!(limit, 3.0);
        let counts = compare(&pairs, limit);
        assert_eq!((counts.true_positive, counts.false_positive), (3, 1));
        assert_eq!((counts.true_negative, counts.false_negative), (1, 0));
        // where no pair is similar, none is called so
        assert_eq!(
            compare(&pairs[..1], threshold(&pairs[..1])).false_positive,
            0
        );
    }
}
