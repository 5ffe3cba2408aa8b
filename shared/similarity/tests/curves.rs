//! Curves from counts on a grid with noise: how often their intervals hold the truth, and, without noise, life tables and curves of R.
//!
//! `KINDRED_DRAWS=1000 cargo test --workspace --test curves -- --nocapture` prints what is stored in `tests/reference/survival/curves.txt`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/alike.rs"]
#[allow(dead_code, unreachable_pub)]
mod alike;

use ndarray::{Array2, ArrayView1};
use rand::RngExt;
use rayon::prelude::*;
use serde_json::Value;
use similarity::numeric::seed::Seed;
use similarity::uses::curves::{GridCurve, cell, cells};
use similarity::uses::estimates::{Counted, Noised};
use similarity::uses::hidden::Hidden;
use similarity::uses::microaggregation::{Closeness, Group, parted};

/// Draws of each world, unless `KINDRED_DRAWS` says another number.
const DRAWS: u64 = 10;
/// Patients of a small group at least, and epsilon of an outcome in it: the defaults of the rules.
const LEAST: usize = 10;

/// How patients fare: Weibull times to an event, and when they are lost from sight.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Survival at the end of the grid.
    survive: f64,
    shape: f64,
    lost: Lost,
}

/// When patients are lost from sight, as a share of the end of the grid.
#[derive(Clone, Copy, Debug)]
enum Lost {
    Never,
    /// At all times alike, up to this one.
    Evenly(f64),
    /// Rather early, of this mean.
    Early(f64),
    /// All between these times.
    Between(f64, f64),
}

impl Fate {
    fn survival(self, time: f64) -> f64 {
        (self.survive.ln() * time.powf(self.shape)).exp()
    }

    /// When a patient is last seen, and whether by an event.
    fn draw(self, stream: &mut impl rand::Rng) -> (f64, bool) {
        let hazard = -(1.0 - stream.random::<f64>()).ln();
        let event = (hazard / -self.survive.ln()).powf(1.0 / self.shape);
        let lost = match self.lost {
            Lost::Never => f64::INFINITY,
            Lost::Evenly(last) => last * stream.random::<f64>(),
            Lost::Early(mean) => -mean * (1.0 - stream.random::<f64>()).ln(),
            Lost::Between(first, last) => first + (last - first) * stream.random::<f64>(),
        };
        (event.min(lost), event <= lost)
    }
}

/// A group of patients of some hospitals, and draws of it.
#[derive(Clone, Copy)]
struct World<'w> {
    /// Patients at each hospital.
    sizes: &'w [usize],
    fate: Fate,
    /// Of the noise; none without.
    epsilon: Option<f64>,
    number: u64,
}

/// What hospitals tell of a group on a grid.
struct Told {
    patients: f64,
    cells: Vec<Noised>,
    /// Lost from sight before the grid ends.
    lost: u64,
}

impl World<'_> {
    fn told(self, grids: &[Vec<f64>], draw: u64) -> Vec<Told> {
        let mut stream = Seed(self.number).stream("fates", draw);
        let none = |times: &Vec<f64>| Told {
            patients: 0.0,
            cells: vec![Noised::default(); cells(times.len())],
            lost: 0,
        };
        let mut all: Vec<Told> = grids.iter().map(none).collect();
        for (site, size) in self.sizes.iter().enumerate() {
            // Small groups do not depend on outcomes: where patients are does not matter here, but how many are in each group does.
            let places = Array2::from_shape_fn((*size, 1), |(row, _)| row as f64);
            for (number, members) in parted(places.view(), LEAST).into_iter().enumerate() {
                let fates: Vec<(f64, bool)> = members
                    .iter()
                    .map(|_| self.fate.draw(&mut stream))
                    .collect();
                let mut key = [0; 32];
                let words = [self.number, draw, site as u64, number as u64];
                for (part, word) in key.chunks_exact_mut(8).zip(words) {
                    part.copy_from_slice(&word.to_le_bytes());
                }
                for (told, times) in all.iter_mut().zip(grids) {
                    told.add(times, &fates, self.epsilon.map(|epsilon| (epsilon, key)));
                }
            }
        }
        all
    }
}

impl Told {
    fn add(&mut self, times: &[f64], fates: &[(f64, bool)], noise: Option<(f64, [u8; 32])>) {
        let mut counts = vec![0.0; self.cells.len()];
        for (time, event) in fates {
            counts[cell(times, *time, *event)] += 1.0;
            self.lost += u64::from(!event && *time < times[times.len() - 1]);
        }
        self.patients += fates.len() as f64;
        let own = match noise {
            Some((epsilon, key)) => Hidden::by(key).classes(&counts, epsilon),
            None => counts
                .into_iter()
                .map(|sum| Noised { sum, variance: 0.0 })
                .collect(),
        };
        self.cells
            .iter_mut()
            .zip(own)
            .for_each(|(sum, one)| sum.add(1.0, one));
    }
}

/// How often intervals hold the truth.
#[derive(Clone, Copy, Default)]
struct Held {
    asked: u64,
    told: u64,
    held: u64,
    width: f64,
    medians: u64,
    patients: u64,
    lost: u64,
}

impl Held {
    fn and(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            told: self.told + other.told,
            held: self.held + other.held,
            width: self.width + other.width,
            medians: self.medians + other.medians,
            patients: self.patients + other.patients,
            lost: self.lost + other.lost,
        }
    }

    fn percent(part: u64, whole: u64) -> f64 {
        100.0 * part as f64 / whole as f64
    }

    /// Of one draw: at each time whether the curve is told there, and holds the truth.
    fn of(told: &Told, times: &[f64], fate: Fate) -> Vec<Self> {
        let counted = Counted {
            patients: told.patients,
            border: 0.0,
        };
        let curve = counted.curve(times, &told.cells);
        sound(&curve);
        let mut held = vec![
            Self {
                asked: 1,
                patients: told.patients as u64,
                lost: told.lost,
                ..Self::default()
            };
            times.len()
        ];
        let median = curve.median();
        let half = (0.5_f64.ln() / fate.survive.ln()).powf(1.0 / fate.shape);
        let last = curve.points.last().map_or(0.0, |point| point.time);
        let holds = median.low.map_or(last <= half, |low| low <= half)
            && median.high.is_none_or(|high| half <= high);
        for (held, point) in held.iter_mut().zip(&curve.points) {
            let truth = fate.survival(point.time);
            held.told = 1;
            held.held = u64::from(point.share.low <= truth && truth <= point.share.high);
            held.width = point.share.high - point.share.low;
            held.medians = u64::from(holds);
        }
        held
    }
}

/// Of each grid and each of its times.
fn trial(world: World<'_>, grids: &[Vec<f64>], draws: u64) -> Vec<Vec<Held>> {
    let none = || {
        grids
            .iter()
            .map(|times| vec![Held::default(); times.len()])
            .collect::<Vec<_>>()
    };
    let one = |draw: u64| {
        let told = world.told(grids, draw);
        let both = told.iter().zip(grids);
        both.map(|(told, times)| Held::of(told, times, world.fate))
            .collect::<Vec<_>>()
    };
    let and = |one: Vec<Vec<Held>>, other: Vec<Vec<Held>>| {
        let grids = one.into_iter().zip(other);
        let times =
            grids.map(|(one, other)| one.into_iter().zip(other).map(|(a, b)| a.and(b)).collect());
        times.collect()
    };
    (0..draws).into_par_iter().map(one).reduce(none, and)
}

/// A curve falls from 1 to 0, with its values within their intervals.
fn sound(curve: &GridCurve) {
    let mut before = (1.0, 1.0, 1.0, f64::INFINITY);
    for point in &curve.points {
        let share = point.share;
        assert!(
            0.0 <= share.low
                && share.low <= share.value
                && share.value <= share.high
                && share.high <= 1.0,
            "{share:?}"
        );
        let now = (share.value, share.low, share.high, point.at_risk.value);
        assert!(
            now.0 <= before.0 && now.1 <= before.1 && now.2 <= before.2 && now.3 <= before.3,
            "{curve:?}"
        );
        before = now;
    }
}

const HOSPITALS: [(&str, &[usize]); 9] = [
    ("3 of 20", &[20; 3]),
    ("3 of 70", &[70; 3]),
    ("3 of 700", &[700; 3]),
    ("12 of 11", &[11; 12]),
    ("12 of 60", &[60; 12]),
    ("12 of 300", &[300; 12]),
    ("400, 150, 40, 12, 5", &[400, 150, 40, 12, 5]),
    ("90, 10, 10", &[90, 10, 10]),
    ("4 of 190", &[190; 4]),
];

const LOSSES: [Lost; 8] = [
    Lost::Never,
    Lost::Evenly(3.0),
    Lost::Evenly(1.2),
    Lost::Evenly(0.6),
    Lost::Early(0.25),
    Lost::Between(0.8, 1.0),
    Lost::Between(0.0, 0.3),
    Lost::Between(0.3, 0.4),
];

#[test]
fn intervals_hold_the_truth_whatever_the_size_the_hospitals_and_the_censoring() {
    let asked = std::env::var("KINDRED_DRAWS")
        .ok()
        .and_then(|draws| draws.parse().ok());
    let draws = asked.unwrap_or(DRAWS);
    let grids = [
        vec![1.0],
        vec![0.2, 0.6, 1.0],
        vec![0.2, 0.4, 0.6, 0.8, 1.0],
    ];
    println!(
        "95 % intervals of curves on a grid; {draws} draws of each world; epsilon 1, small groups of {LEAST}."
    );
    println!(
        "Worlds: survival at the last time of 0.9, 0.5 and 0.15, Weibull of shape 0.5 and 2. Least: of a world and a time that is told in half of the draws."
    );
    println!(
        "hospitals | lost from sight | % lost | times | told % | held % | least % | width | medians held %"
    );
    let (mut worst, mut number): (f64, u64) = (100.0, 0);
    for (name, sizes) in HOSPITALS {
        for lost in LOSSES {
            let mut all: Vec<Vec<Held>> = vec![Vec::new(); grids.len()];
            for survive in [0.9, 0.5, 0.15] {
                for shape in [0.5, 2.0] {
                    number += 1;
                    let fate = Fate {
                        survive,
                        shape,
                        lost,
                    };
                    let world = World {
                        sizes,
                        fate,
                        epsilon: Some(1.0),
                        number,
                    };
                    let held = trial(world, &grids, draws);
                    all.iter_mut()
                        .zip(held)
                        .for_each(|(all, held)| all.extend(held));
                }
            }
            for (times, all) in grids.iter().zip(all) {
                let sum = all.iter().copied().fold(Held::default(), Held::and);
                let many = all.iter().filter(|one| one.told * 2 >= one.asked);
                let least = many
                    .map(|one| Held::percent(one.held, one.told))
                    .fold(100.0, f64::min);
                let held = Held::percent(sum.held, sum.told);
                println!(
                    "{name} | {lost:?} | {:.0} | {} | {:.0} | {held:.1} | {least:.1} | {:.2} | {:.1}",
                    Held::percent(sum.lost, sum.patients),
                    times.len(),
                    Held::percent(sum.told, sum.asked),
                    sum.width / sum.told as f64,
                    Held::percent(sum.medians, sum.told),
                );
                // Three standard errors of as many draws as one of the times has.
                let draws = sum.told as f64 / times.len() as f64;
                worst = worst.min(held + 100.0 * 3.0 * (0.93 * 0.07 / draws.max(1.0)).sqrt());
            }
        }
    }
    assert!(worst > 93.0, "{worst}");
}

fn reference() -> Value {
    let text = include_str!("../../../tests/reference/survival/curves.json");
    serde_json::from_str(text).unwrap()
}

fn numbers(of: &Value) -> Vec<f64> {
    let numbers = of.as_array().unwrap().iter();
    numbers.map(|one| one.as_f64().unwrap()).collect()
}

/// The curve of R's patients, and what R has of them.
fn of_r(name: &str) -> (GridCurve, Value) {
    let reference = reference();
    let (grid, of) = (numbers(&reference["grid"]), &reference[name]);
    let patients = numbers(&of["time"]).into_iter().zip(numbers(&of["event"]));
    let mut counts = vec![Noised::default(); cells(grid.len())];
    for (time, event) in patients {
        counts[cell(&grid, time, event > 0.5)].sum += 1.0;
    }
    let told: Vec<f64> = counts.iter().map(|cell| cell.sum).collect();
    assert_eq!(told, numbers(&of["cells"]));
    let counted = Counted {
        patients: told.iter().sum(),
        border: 0.0,
    };
    (counted.curve(&grid, &counts), of.clone())
}

/// Without noise, with all censored at the beginning of an interval, the lower end is that of Kaplan and Meier's curve. Its error is Greenwood's,
/// in the score test.
#[test]
fn the_lower_end_without_noise_has_the_share_and_the_error_of_r() {
    let (curve, wanted) = of_r("rounded");
    let (shares, errors) = (numbers(&wanted["share"]), numbers(&wanted["error"]));
    assert_eq!(curve.points.len(), shares.len());
    for ((point, share), error) in curve.points.iter().zip(shares).zip(errors) {
        // As many patients without censoring have the same error.
        let patients = share * (1.0 - share) / (error * error);
        let low = point.share.low;
        let away = (share - low) / (low * (1.0 - low) / patients).sqrt();
        assert!((away - 1.959_963_984_540_054).abs() < 1e-6, "{point:?}");
        assert!(share <= point.share.value && point.share.value < point.share.high);
    }
}

/// It is the life table's, and its interval holds Kaplan and Meier's.
#[test]
fn without_noise_it_is_the_life_table_and_near_the_curve_of_r() {
    let (curve, wanted) = of_r("lung");
    let (shares, table) = (numbers(&wanted["share"]), numbers(&wanted["table"]));
    for ((point, share), table) in curve.points.iter().zip(shares).zip(table) {
        assert!((point.share.value - table).abs() < 1e-9, "{point:?}");
        assert!(
            (point.share.value - share).abs() < 0.02,
            "{point:?}, R {share}"
        );
        assert!(point.share.low < share && share < point.share.high);
    }
    let censored = curve.points.last().unwrap();
    assert!(censored.share.high - censored.share.low < 0.25);
}

/// The product-limit estimate.
fn product_limit(mut seen: Vec<(f64, bool)>, until: f64) -> f64 {
    seen.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let all = seen.len();
    let events = seen
        .iter()
        .enumerate()
        .filter(|(_, one)| one.1 && one.0 <= until);
    events
        .map(|(place, _)| 1.0 - 1.0 / (all - place) as f64)
        .product()
}

/// A hospital's patients and their fates.
struct Cared {
    patients: Array2<f64>,
    fates: Vec<(f64, bool)>,
}

/// Of a query the share of the answers that hold what is counted one by one, over so many draws of noise.
fn by_shares(
    hospitals: &[Cared],
    times: &[f64],
    (query, radius): (usize, f64),
    draws: u64,
) -> [u64; 2] {
    let query = hospitals[0].patients.row(query).to_vec();
    let near = |row: ArrayView1<'_, f64>| {
        alike::distance(Closeness::Euclidean, row, ArrayView1::from(&query)) <= radius
    };
    let of = |one: &Cared| -> Vec<(f64, bool)> {
        let both = one.patients.outer_iter().zip(&one.fates);
        both.filter(|(row, _)| near(*row))
            .map(|(_, fate)| *fate)
            .collect()
    };
    let exact: Vec<(f64, bool)> = hospitals.iter().flat_map(of).collect();
    let mut told = vec![vec![Noised::default(); cells(times.len())]; draws as usize];
    let mut counted = Counted {
        patients: 0.0,
        border: 0.0,
    };
    for (site, one) in hospitals.iter().enumerate() {
        for (number, members) in parted(one.patients.view(), LEAST).into_iter().enumerate() {
            let group = Group::of(one.patients.view(), &members);
            let share = group.within(&query, radius, Closeness::Euclidean);
            counted.patients += share * members.len() as f64;
            counted.border += share * (1.0 - share) * members.len() as f64;
            let mut counts = vec![0.0; cells(times.len())];
            for row in members {
                let (time, event) = one.fates[row];
                counts[cell(times, time, event)] += 1.0;
            }
            for (draw, sums) in told.iter_mut().enumerate() {
                let mut key = [0; 32];
                key[..3].copy_from_slice(&[draw as u8, site as u8, number as u8]);
                let own = Hidden::by(key).classes(&counts, 1.0);
                sums.iter_mut()
                    .zip(own)
                    .for_each(|(sum, one)| sum.add(share, one));
            }
        }
    }
    let mut held = [0, 0];
    if exact.is_empty() || counted.patients < 20.0 {
        return held;
    }
    for sums in told {
        for point in counted.curve(times, &sums).points {
            let truth = product_limit(exact.clone(), point.time);
            let holds = point.share.low - 1e-9 <= truth && truth <= point.share.high + 1e-9;
            held = [held[0] + u64::from(holds), held[1] + 1];
        }
    }
    held
}

/// Of similar patients, of whom groups count by their share within a radius, intervals hold the curve of those counted one by one.
#[test]
fn curves_of_similar_patients_hold_those_that_are_counted_one_by_one() {
    let times = [0.2, 0.6, 1.0];
    for (name, hospitals) in alike::made_up() {
        let places: Vec<_> = hospitals
            .iter()
            .map(|one| (one.patients.clone(), Vec::new()))
            .collect();
        let radii = alike::radii(&places, Closeness::Euclidean);
        let mut stream = Seed(5).stream(name, 0);
        let mut cared = |one: alike::Hospital| {
            let fate = |row: ArrayView1<'_, f64>| {
                let survive = (-(0.8 * row[0].clamp(-3.0, 3.0)).exp()).exp();
                let lost = Lost::Evenly(2.0);
                Fate {
                    survive,
                    shape: 1.0,
                    lost,
                }
                .draw(&mut stream)
            };
            Cared {
                fates: one.patients.outer_iter().map(fate).collect(),
                patients: one.patients,
            }
        };
        let hospitals: Vec<Cared> = hospitals.into_iter().map(&mut cared).collect();
        for (percent, radius) in alike::PERCENTS.into_iter().zip(radii) {
            let queries = 0..hospitals[0].fates.len().min(60);
            let all = queries
                .into_par_iter()
                .map(|query| by_shares(&hospitals, &times, (query, radius), 10));
            let [held, told] = all.reduce(|| [0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
            println!("{name}, {percent} % of pairs: {held} of {told} hold");
            assert!(
                100 * held >= 93 * told && told > 0,
                "{name}, {percent} %: {held} of {told}"
            );
        }
    }
}
