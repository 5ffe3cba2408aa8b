//! Table 2: pairs of synthetic patients (section 5.2), similar or not.

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rayon::prelude::*;
use similarity::judge::votes::{BinaryCounts, count_pairs};
use similarity::learn::unpsl::selection::{Search, fit_path};
use similarity::learn::unpsl::{
    Form, Labels, PooledLimits, Settings, SiteObjective, Totals, minimise_pooled, summarise,
};
use similarity::numeric::linear_algebra::product;
use similarity::numeric::seed::Seed;
use similarity::synthetic::labelled_pairs;

use crate::baselines::{
    GmmlSettings, ItmlSettings, LowRank, LowRankLimits, LowRankSettings, R2ml,
    distance_percentiles, gmml, itml, lmnn, low_rank, r2ml, squared_distances,
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
/// Numbers of steps to choose from, where UnPSL stops early.
const STEPS: [usize; 6] = [3, 6, 12, 25, 50, 100];

/// What is run, and how often.
#[derive(Debug, Clone)]
pub struct Table2Settings {
    /// Of d = 20, 40, 60, which.
    pub base_features: Vec<usize>,
    /// Data sets of each d.
    pub repeats: u64,
    /// Rows of the tables.
    pub methods: Vec<Method>,
    /// Of the data, starts and drawn pairs.
    pub seed: Seed,
}

impl Default for Table2Settings {
    /// All three, 10 repeats as in the paper.
    fn default() -> Self {
        Self {
            base_features: paper::BASE_FEATURES.to_vec(),
            repeats: 10,
            methods: Method::ALL.to_vec(),
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
    let progress = Progress::begin(&title, settings.methods.len() * settings.repeats as usize);
    let mut rows = Vec::new();
    for method in settings.methods.iter().copied() {
        let of_repeat = |repeat: u64| {
            let seed = Seed(settings.seed.0.wrapping_mul(1000).wrapping_add(repeat));
            let made = labelled_pairs(PATIENTS, base, seed);
            let all = Pairs {
                patients: made.patients,
                labels: made.labels,
            };
            let (training, test) = (all.part(0..TRAINING), all.part(TRAINING..PATIENTS));
            let found = judged(method, &training, &test, seed)?;
            progress.step();
            Ok(found)
        };
        let all: Result<Vec<Vec<Judged>>, ExperimentError> = (0..settings.repeats)
            .into_par_iter()
            .map(of_repeat)
            .collect();
        let theirs = place.map(|place| paper::table_2(place, method.name()));
        rows.extend(lines(method, &all?, theirs));
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
                 patients; of the other methods the threshold, too. Stopped early: from W = I, after at most \
                 {} proximal gradient steps, chosen likewise.",
                STEPS[STEPS.len() - 1]
            ),
            "LMNN presumes classes: here its target neighbours are the nearest similar patients, who may be \
             dissimilar among themselves."
                .to_owned(),
        ],
        header: header.collect(),
        rows,
    })
}

/// One way of a method with one data set.
struct Judged {
    name: &'static str,
    counts: BinaryCounts,
    /// The relative duality gap, for methods that minimise a convex objective.
    gap: Option<f64>,
}

impl Judged {
    fn of(method: Method, counts: BinaryCounts) -> Self {
        Self {
            name: method.name(),
            counts,
            gap: None,
        }
    }
}

/// One line a way.
fn lines(method: Method, repeats: &[Vec<Judged>], paper: Option<Scores>) -> Vec<Vec<String>> {
    let ways = repeats.first().map_or(0, Vec::len);
    let line = |way: usize| {
        let all: Vec<Scores> = repeats.iter().map(|all| scores(&all[way].counts)).collect();
        let found = Repeated::of(&all);
        let gaps = repeats.iter().filter_map(|all| all[way].gap);
        let remark = match (method, paper, gaps.reduce(f64::max)) {
            (Method::UnPsl, Some(paper), _) => found.below(&paper),
            (_, _, Some(gap)) => format!("duality gap at most {gap:.0e}"),
            _ => String::new(),
        };
        let theirs = match paper {
            Some(scores) => scores.map(|score| format!("{score:.4}")),
            None => std::array::from_fn(|_| String::new()),
        };
        let head = std::iter::once(repeats[0][way].name.to_owned());
        let numbers = head.chain(found.texts()).chain(theirs);
        numbers.chain([remark]).collect()
    };
    (0..ways).map(line).collect()
}

fn judged(
    method: Method,
    training: &Pairs,
    test: &Pairs,
    seed: Seed,
) -> Result<Vec<Judged>, ExperimentError> {
    match method {
        Method::UnPsl => Ok(vec![
            Judged::of(method, unpsl(training, test, seed)?),
            Judged {
                name: "UnPSL, stopped early",
                counts: stopped_early(training, test, seed)?,
                gap: None,
            },
        ]),
        Method::LowRank => Ok(vec![low_rank_similarity(training, test)?]),
        other => Ok(vec![Judged::of(
            other,
            baseline(other, training, test, seed)?,
        )]),
    }
}

/// What has neither several ways nor a gap.
fn baseline(
    method: Method,
    training: &Pairs,
    test: &Pairs,
    seed: Seed,
) -> Result<BinaryCounts, ExperimentError> {
    let identity = |x: &ArrayView2<f64>, _: &Labels, (): &()| Ok(Array2::eye(x.ncols()));
    match method {
        Method::Cosine => {
            let (training, test) = (unit(training), unit(test));
            by_distance(&training, &test, &[()], identity)
        }
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
        Method::Euclidean | Method::UnPsl | Method::LowRank => {
            by_distance(training, test, &[()], identity)
        }
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
    right(test, metric)
}

/// UnPSL that stops before it is at the minimum: from W = I, after as many steps as are best for the pairs of patients who
/// were not learned from.
fn stopped_early(
    training: &Pairs,
    test: &Pairs,
    seed: Seed,
) -> Result<BinaryCounts, ExperimentError> {
    let fit = |pairs: &Pairs, lambda_sparsity: f64, iterations: usize| {
        let features = pairs.patients.ncols();
        let settings = Settings {
            rank: features,
            lambda_sparsity,
            lambda_correlation: LAMBDA_CORRELATION[0],
            ..Settings::paper()
        };
        let totals = Totals::of(&[summarise(&pairs.labels, settings.pairs, seed)]);
        let view = pairs.patients.view();
        let site = SiteObjective::new(&view, &pairs.labels, &settings, &totals, seed, None)?;
        let limits = PooledLimits {
            tolerance: 0.0,
            iterations,
        };
        let solution = minimise_pooled(&[site], Array2::eye(features), limits)?;
        Ok::<_, ExperimentError>(solution.matrix)
    };
    let fitting = training.part(0..TRAINING - CHOOSING);
    let choosing = training.part(TRAINING - CHOOSING..TRAINING);
    let mut top = (0.0, LAMBDA_SPARSITY[0], STEPS[0]);
    for lambda in LAMBDA_SPARSITY {
        for steps in STEPS {
            let counts = right(&choosing, &fit(&fitting, lambda, steps)?)?;
            let accuracy = counts.accuracy().unwrap_or(0.0);
            if accuracy > top.0 {
                top = (accuracy, lambda, steps);
            }
        }
    }
    right(test, &fit(training, top.1, top.2)?)
}

/// The pairs that s and b = 1 classify correctly.
fn right(pairs: &Pairs, metric: &Array2<f64>) -> Result<BinaryCounts, ExperimentError> {
    let projected = product(&pairs.patients.view(), &metric.view());
    let counts = count_pairs(&projected.view(), &pairs.labels, Form::InnerProduct, 1.0);
    Ok(counts?)
}

/// The low-rank similarity, with the threshold that is best for the pairs of patients who were not learned from.
fn low_rank_similarity(training: &Pairs, test: &Pairs) -> Result<Judged, ExperimentError> {
    let learn = |pairs: &Pairs, path: &[LowRankSettings]| {
        let limits = LowRankLimits::default();
        low_rank(&pairs.patients.view(), &pairs.labels, path, limits)
    };
    let apart = |learned: &LowRank, pairs: &Pairs| {
        let view = pairs.patients.view();
        labelled(pairs, &learned.scores(&view, &view).mapv(|score| -score))
    };
    let choosing = training.part(TRAINING - CHOOSING..TRAINING);
    let grid = LowRankSettings::grid();
    let mut top = (0.0, 0, 0.0);
    let fitted = learn(&training.part(0..TRAINING - CHOOSING), &grid)?;
    for (place, learned) in fitted.iter().enumerate() {
        let apart = apart(learned, &choosing);
        let limit = threshold(&apart);
        let accuracy = compare(&apart, limit).accuracy().unwrap_or(0.0);
        if accuracy > top.0 {
            top = (accuracy, place, limit);
        }
    }
    let learned = learn(training, &grid[top.1..=top.1])?;
    Ok(Judged {
        counts: compare(&apart(&learned[0], test), top.2),
        gap: Some(learned[0].gap),
        name: Method::LowRank.name(),
    })
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
