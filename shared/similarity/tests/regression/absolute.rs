//! The risk of an event by a time under a common baseline: how often its interval of 95 % holds the truth, whatever the hazard does.
//!
//!     KINDRED_DRAWS=1000 cargo test --workspace --test regression -- absolute --nocapture > tests/reference/survival/risks.txt

use ndarray::{Array1, Array2, s};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use similarity::learn::regression::absolute::{CommonBaseline, CommonHazard, Reference, Sureness};
use similarity::learn::regression::exponential::{Cells, Exposure, HazardStep, ends};
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::seed::Seed;

/// Draws of each world, unless `KINDRED_DRAWS` says another number.
const DRAWS: u64 = 20;
const EFFECTS: [f64; 2] = [0.05, -0.7];
const EVENTS_MIN: u64 = 20;
/// Newton steps of a fit at most.
const STEPS: u32 = 15;
/// Times at which intervals are looked at, as shares of the horizon: ends of cells, and within them.
const TIMES: [f64; 5] = [0.2, 0.5, 0.7, 0.75, 1.0];

/// The patient of means and of the first level, and two others: standard deviations of the number from its mean, and the level.
const WHO: [[f64; 2]; 3] = [[0.0, 0.0], [1.5, 0.0], [-1.0, 1.0]];

/// Weibull times to an event, and when patients are lost from sight.
#[derive(Debug, Clone, Copy)]
struct World {
    patients: usize,
    cells: u32,
    /// Survival of a patient of means at the horizon.
    survive: f64,
    shape: f64,
    /// The last time at which patients are lost, all times alike.
    lost: f64,
}

#[derive(Default, Clone, Copy)]
struct Held {
    told: usize,
    held: usize,
    width: f64,
}

impl World {
    fn draw(self, number: u64) -> (Array2<f64>, Array1<f64>, Array1<bool>) {
        let mut stream = Seed(41).stream("risks", number);
        let columns = Array2::from_shape_fn((self.patients, 2), |(_, column)| match column {
            0 => {
                let normal: f64 = StandardNormal.sample(&mut stream);
                60.0 + 10.0 * normal
            }
            _ => f64::from(u8::from(stream.random::<f64>() < 0.4)),
        });
        let (mut time, mut event) = (Vec::new(), Vec::new());
        for row in columns.outer_iter() {
            let predictor = EFFECTS[0] * (row[0] - 60.0) + EFFECTS[1] * row[1];
            let exponential = -(1.0 - stream.random::<f64>()).ln();
            let rate = -self.survive.ln() * predictor.exp();
            let own = (exponential / rate).powf(1.0 / self.shape);
            let lost = self.lost * stream.random::<f64>();
            time.push(own.min(lost));
            event.push(own <= lost);
        }
        (columns, Array1::from(time), Array1::from(event))
    }

    /// Of a patient with these columns.
    fn truth(self, [first, second]: [f64; 2], time: f64) -> f64 {
        let predictor = EFFECTS[0] * (first - 60.0) + EFFECTS[1] * second;
        let rate = -self.survive.ln() * predictor.exp();
        -(-rate * time.powf(self.shape)).exp_m1()
    }

    fn held(self, number: u64) -> [[Held; TIMES.len()]; WHO.len()] {
        let (columns, time, event) = self.draw(number);
        let mean = columns.column(0).mean().unwrap();
        let common = self.fitted(&columns, &time, &event);
        WHO.map(|[from, second]| {
            TIMES.map(|time| {
                let own = [(mean - 60.0) / 10.0 + from, second];
                let found = common
                    .as_ref()
                    .and_then(|common| common.risk(&own, time)?.interval);
                let truth = self.truth([mean + 10.0 * from, second], time);
                found.map_or_else(Held::default, |[low, high]| Held {
                    told: 1,
                    held: usize::from((low..=high).contains(&truth)),
                    width: high - low,
                })
            })
        })
    }

    /// As it is published; none where the fit has no end, as where nobody of a level has an event.
    fn fitted(
        self,
        columns: &Array2<f64>,
        time: &Array1<f64>,
        event: &Array1<bool>,
    ) -> Option<CommonBaseline> {
        let all: Vec<u32> = (0..self.cells).collect();
        let exposed = |cells: &[u32]| Exposure::new((time, event), 1.0, self.cells, cells);
        let none = Array2::zeros((self.patients, 0));
        let zeros = Array1::zeros(all.len());
        let cells = Cells::of(&exposed(&all).sums(&none.view(), &zeros));
        let exposure = exposed(&cells.with_event());
        let (hazards, _) = cells.without_columns();
        let leading = hazards.len();
        let mut at: Array1<f64> = hazards.into_iter().chain([0.0, 0.0]).collect();
        // About as wide as each other, and from 0.
        let moved = Array2::from_shape_fn(columns.dim(), |(row, column)| match column {
            0 => (columns[(row, 0)] - 60.0) / 10.0,
            _ => columns[(row, 1)],
        });
        let mut covariance = Array2::zeros((0, 0));
        let mut is_found = false;
        for _ in 0..STEPS {
            let sums = exposure.sums(&moved.view(), &at);
            let factor = Cholesky::factor(&sums.information).ok()?;
            let gradient = sums.gradient.insert_axis(ndarray::Axis(1));
            let step = factor.solve(&gradient).column(0).to_owned();
            at += &step;
            covariance = factor.solve(&Array2::eye(at.len()));
            is_found = step.iter().all(|step| step.abs() < 1e-9);
            if is_found {
                break;
            }
        }
        if !is_found {
            return None;
        }
        let hazards = at.slice(s![..leading]).mapv(f64::exp).to_vec();
        let (ends, mean) = (ends(1.0, self.cells), moved.column(0).mean().unwrap());
        let reference = Reference {
            columns: vec![mean, 0.0],
            predictor: at[leading] * mean,
        };
        let patients = self.patients as u64;
        let known = CommonHazard::new((&cells, patients), &ends, &hazards, covariance);
        let steps = cells.joined(&ends, &hazards, EVENTS_MIN);
        let of_step = |step: &HazardStep| {
            let before = ends.partition_point(|end| *end <= step.until);
            known.sureness(before, &reference)
        };
        let sureness: Option<Vec<Sureness>> = steps.iter().map(of_step).collect();
        Some(CommonBaseline {
            sureness: sureness?,
            steps,
            coefficients: at.slice(s![leading..]).to_vec(),
            covariance: known.of_coefficients(2),
            references: reference.columns,
        })
    }
}

fn worlds() -> Vec<World> {
    let mut all = Vec::new();
    for patients in [150, 600, 5_000] {
        for cells in [1, 2, 4, 8, 16] {
            for survive in [0.9, 0.5, 0.15] {
                for shape in [0.5, 1.0, 2.0] {
                    for lost in [f64::INFINITY, 3.0, 1.2] {
                        all.push(World {
                            patients,
                            cells,
                            survive,
                            shape,
                            lost,
                        });
                    }
                }
            }
        }
    }
    all
}

/// Held of every world, patient and time.
fn counted(worlds: &[World], draws: u64) -> Vec<[[Held; TIMES.len()]; WHO.len()]> {
    let of_world = |world: &World| {
        let mut sums = [[Held::default(); TIMES.len()]; WHO.len()];
        for draw in 0..draws {
            let found = world.held(draw);
            for (sum, own) in sums.iter_mut().flatten().zip(found.iter().flatten()) {
                sum.told += own.told;
                sum.held += own.held;
                sum.width += own.width;
            }
        }
        sums
    };
    worlds.par_iter().map(of_world).collect()
}

fn share(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

#[test]
fn intervals_of_risks_hold_the_truth_of_constant_rising_and_falling_hazards() {
    let draws = std::env::var("KINDRED_DRAWS").map_or(DRAWS, |draws| draws.parse().unwrap());
    println!(
        "95 % intervals of the risk by a time under a common baseline; {draws} draws of each world."
    );
    println!(
        "Worlds: survival of a patient of means at the horizon of 0.9, 0.5 and 0.15; Weibull of shape 0.5, 1 and 2."
    );
    println!(
        "Patients: of means; 1.5 standard deviations above; 1 below and of the other level. Times: {TIMES:?} of the horizon."
    );
    println!("Least: of a world and a time that is released in half of the draws.");
    println!(
        "patients | cells | lost until | of them | released % | held % | least % | width at the horizon"
    );
    let worlds = worlds();
    let found = counted(&worlds, draws);
    let of_group = |one: &World| (one.patients, one.cells, one.lost.to_bits());
    let mut groups: Vec<(usize, u32, u64)> = worlds.iter().map(of_group).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut least_of_all: f64 = 100.0;
    for group in groups {
        for who in 0..WHO.len() {
            let own = worlds.iter().zip(&found);
            let own = own.filter(|(one, _)| of_group(one) == group);
            let times: Vec<[Held; TIMES.len()]> = own.map(|(_, held)| held[who]).collect();
            let told: usize = times.iter().flatten().map(|one| one.told).sum();
            let held: usize = times.iter().flatten().map(|one| one.held).sum();
            let often = times
                .iter()
                .flatten()
                .filter(|one| one.told as u64 * 2 >= draws);
            let least = often
                .map(|one| share(one.held, one.told))
                .fold(100.0, f64::min);
            let last = times.iter().map(|one| one[TIMES.len() - 1]);
            let (wide, of) = last.fold((0.0, 0), |(wide, of), one| {
                (wide + one.width, of + one.told)
            });
            println!(
                "{} | {} | {} | {who} | {:.0} | {:.1} | {least:.1} | {:.2}",
                group.0,
                group.1,
                f64::from_bits(group.2),
                share(told, times.len() * TIMES.len() * draws as usize),
                share(held, told),
                wide / of.max(1) as f64,
            );
            least_of_all = least_of_all.min(least);
        }
    }
    // Of few draws one world may be unlucky.
    let slack = 100.0 * 4.0 * (0.05 * 0.95 / draws as f64).sqrt();
    let wanted = if draws >= 1_000 { 93.0 } else { 95.0 - slack };
    assert!(least_of_all >= wanted, "{least_of_all}");
}

/// Two cells of 30 and 10 events, of 100 patients of whom 60 are followed to the end: worked by hand.
#[test]
fn an_interval_is_that_of_the_delta_method_between_what_hazards_within_cells_may_do() {
    let cells = Cells {
        events: vec![30, 10],
        followed: vec![90.0, 70.0],
    };
    let hazards = [30.0 / 90.0, 10.0 / 70.0];
    let covariance = Array2::from_diag(&Array1::from(vec![1.0 / 30.0, 1.0 / 10.0]));
    let known = CommonHazard::new((&cells, 100), &[1.0, 2.0], &hazards, covariance);
    let nobody = Reference {
        columns: Vec::new(),
        predictor: 0.0,
    };
    let all: f64 = hazards.iter().sum();
    let variance = (hazards[0] / all).powi(2) / 30.0 + (hazards[1] / all).powi(2) / 10.0;
    let half = 1.959_963_984_540_054 * variance.sqrt();
    // 100, 80 and 60 are at risk at the ends of the cells.
    let low = hazards[0] * 0.9 + hazards[1] * 70.0 / 80.0;
    let high = hazards[0] * 90.0 / 80.0 + hazards[1] * 70.0 / 60.0;
    let found = known.sureness(2, &nobody).unwrap().interval();
    for (found, wanted) in found.iter().zip([low * (-half).exp(), high * half.exp()]) {
        assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    }
    let few = Cells {
        events: vec![19, 0],
        followed: vec![90.0, 70.0],
    };
    let known = CommonHazard::new((&few, 100), &[1.0, 2.0], &hazards[..1], Array2::eye(1));
    assert_eq!(known.sureness(2, &nobody), None);
}
