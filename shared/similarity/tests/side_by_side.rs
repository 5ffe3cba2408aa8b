//! A whole selection takes few exchanges: all its searches side by side.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test panics, and says what it found

#[path = "support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;

#[path = "support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{Federation, Part, standardise};
use hospitals::{data_folder, heart};
use ndarray::{Array1, Array2, Axis, s};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use similarity::learn::unpsl::accelerated::{
    Knowledge, Place, Search, SearchSettings, Several, sum,
};
use similarity::learn::unpsl::selection::{Folds, lambda_path};
use similarity::learn::unpsl::{Form, Labels, Settings, start};
use similarity::numeric::seed::Seed;

const FOLDS: usize = 5;
/// What a selection leaves of the objective, and its rounds at most.
const LEFT: f64 = 1e-4;
const ROUNDS_MAX: u32 = 9;

/// The patients of all folds but one at every site.
fn without(parts: &[Part], fold: usize) -> Vec<Part> {
    let of_site = |part: &Part| {
        let classes: Array1<u32> = match &part.labels {
            Labels::Classes(classes) => classes.clone(),
            Labels::Pairs(_) | Labels::Judged(_) | Labels::Both { .. } => {
                panic!("patients of known classes")
            }
        };
        let folds = Folds::stratified(&classes, FOLDS, Seed(1)).unwrap();
        let rows = folds.split(fold).training;
        Part {
            patients: part.patients.select(Axis(0), &rows),
            labels: Labels::Classes(classes.select(Axis(0), &rows)),
        }
    };
    parts.iter().map(of_site).collect()
}

/// Sites of `sizes` patients: `features` columns of few factors and noise, and unequal classes.
fn made(seed: u64, sizes: &[usize], features: usize) -> Vec<Part> {
    let mut random = Seed(seed).stream("made", 0);
    let all: usize = sizes.iter().sum();
    let mut draw = |shape: (usize, usize)| -> Array2<f64> {
        Array2::from_shape_simple_fn(shape, || StandardNormal.sample(&mut random))
    };
    let factors = draw((all, 4));
    let loadings = draw((4, features));
    let own = draw((all, features));
    let noise = draw((all, 1));
    let matrix = standardise(factors.dot(&loadings) + 0.5 * own);
    let class = |row: usize| u32::from(factors[[row, 0]] + 0.4 * noise[[row, 0]] > 0.5);
    let classes: Vec<u32> = (0..all).map(class).collect();
    let mut first = 0;
    sizes
        .iter()
        .map(|size| {
            let rows = first..first + size;
            first += size;
            Part {
                patients: matrix.slice(s![rows.clone(), ..]).to_owned(),
                labels: Labels::Classes(classes[rows].iter().copied().collect()),
            }
        })
        .collect()
}

/// Each fold's F, and searches of all ranks and lambdas in each, as a selection makes them.
struct Study {
    federations: Vec<Federation>,
    searches: Vec<(SearchSettings, Array2<f64>)>,
    features: usize,
}

impl Study {
    fn new(parts: &[Part], form: Form) -> Self {
        let features = parts[0].patients.ncols();
        let settings = Settings {
            form,
            ..Settings::default()
        };
        let federation = |fold| Federation::unsolved(&without(parts, fold), settings);
        let search = |rank: usize, lambda_sparsity: f64| {
            let of_rank = Settings { rank, ..settings };
            let own = SearchSettings {
                lambda_sparsity,
                form,
                tolerance: LEFT,
                tolerance_residual: f64::INFINITY,
            };
            (own, start(&of_rank, features, Seed(9), 0))
        };
        let searches = [2, features.min(8)].into_iter().flat_map(|rank| {
            lambda_path(0.2)
                .into_iter()
                .map(move |lambda| search(rank, lambda))
        });
        Self {
            federations: (0..FOLDS).map(federation).collect(),
            searches: searches.collect(),
            features,
        }
    }

    /// Exchanges, and the objective of every search after the last.
    fn run(&self, tolerance: f64, rounds: u32) -> (usize, Vec<f64>) {
        let fresh = self.searches.iter().map(|(own, start)| {
            let own = SearchSettings { tolerance, ..*own };
            Search::new(own, start.clone(), self.features)
        });
        let fresh: Vec<Search> = fresh.collect();
        let mut all = Several::new(vec![fresh; FOLDS], &Knowledge::new(), rounds);
        let mut exchanges = 0;
        loop {
            let open: Vec<Place> = all.open().collect();
            if open.is_empty() {
                break;
            }
            exchanges += 1;
            let answer = |place: &Place| {
                let (metric, rows) = all.question(*place);
                let sites = self.federations[place.problem].sites.iter();
                let told = sites.map(|site| site.derivatives(metric, rows).unwrap());
                (*place, sum(told).unwrap())
            };
            let answers = open.par_iter().map(answer).collect();
            all.learn(answers);
        }
        let cells = self.searches.len();
        let objective = |problem| {
            let all = &all;
            (0..cells).map(move |cell| all.search(Place { problem, cell }).objective().unwrap())
        };
        (exchanges, (0..FOLDS).flat_map(objective).collect())
    }
}

/// By how much the searches of a selection are off, the worst and in the mean, after at most nine exchanges.
fn assert_few_exchanges(name: &str, parts: &[Part]) {
    for form in [Form::InnerProduct, Form::Distance] {
        let study = Study::new(parts, form);
        let (exchanges, found) = study.run(LEFT, ROUNDS_MAX);
        let (_, least) = study.run(1e-6, 16);
        let gaps = found
            .iter()
            .zip(&least)
            .map(|(found, least)| found / least - 1.0);
        let gaps: Vec<f64> = gaps.collect();
        let worst = gaps.iter().copied().fold(0.0, f64::max);
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        println!(
            "{name}, {form:?}: {exchanges} exchanges, gap {worst:.1e} at most, {mean:.1e} in the mean"
        );
        assert!(exchanges <= ROUNDS_MAX as usize);
        assert!(mean <= 5.0 * LEFT, "{name}, {form:?}: {mean:e}");
        assert!(worst <= 1e-2, "{name}, {form:?}: {worst:e}");
    }
}

#[test]
fn a_selection_of_80_fits_takes_nine_exchanges_on_other_shapes() {
    assert_few_exchanges("3 sites, 12 rows", &made(1, &[120, 120, 120], 12));
    assert_few_exchanges("4 unequal sites, 20 rows", &made(2, &[40, 90, 60, 110], 20));
}

#[test]
fn a_selection_of_80_fits_takes_nine_exchanges_on_hospitals() {
    let Some(folder) = data_folder() else {
        println!("skipped: no folder of data in KINDRED_DATA or ../shared/data");
        return;
    };
    assert_few_exchanges("four heart hospitals", &heart(&folder));
}
