//! Patients of every site held out by lot, and how well neighbours predict them.

use ndarray::{Array1, Array2, Axis};
use rand::seq::SliceRandom as _;
use similarity::learn::unpsl::{Labels, Settings};
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::{NeighbourRule, neighbours};

use super::federation::{Federation, Part};

const TOLERANCE: f64 = 1e-5;

/// Of every site who is learned from, and who is held out.
pub struct Split {
    pub training: Vec<Part>,
    pub held: Vec<Part>,
}

impl Split {
    /// Of every site seven patients of ten are learned from.
    pub fn drawn(parts: &[Part], number: u64) -> Self {
        let mut random = Seed(number).stream("held out", 0);
        Self::by(parts, |patients| {
            let mut rows: Vec<usize> = (0..patients).collect();
            rows.shuffle(&mut random);
            let held = rows.split_off(rows.len() * 7 / 10);
            [rows, held]
        })
    }

    /// Every so many patients of a site are held out, from the one at `first`.
    pub fn fold(parts: &[Part], first: usize, folds: usize) -> Self {
        Self::by(parts, |patients| {
            let (held, rows) = (0..patients).partition(|row| row % folds == first);
            [rows, held]
        })
    }

    /// `rows` gives of so many patients who is learned from, and who is held out.
    fn by(parts: &[Part], mut rows: impl FnMut(usize) -> [Vec<usize>; 2]) -> Self {
        let (mut training, mut held) = (Vec::new(), Vec::new());
        for part in parts {
            let [own, other] = rows(part.patients.nrows());
            training.push(among(part, &own));
            held.push(among(part, &other));
        }
        Self { training, held }
    }

    /// The metric that all sites learn from their training patients.
    pub fn learned(&self, settings: Settings, start: u64) -> Array2<f64> {
        learned(&self.training, settings, start)
    }

    /// Of every held-out patient the share of the second class among the nearest of its site, and its class.
    pub fn judged(&self, metric: &Array2<f64>, count: usize) -> Vec<(f64, u32)> {
        let mut judged = Vec::new();
        for (training, held) in self.training.iter().zip(&self.held) {
            let (known, asked) = (training.patients.dot(metric), held.patients.dot(metric));
            let (known, asked) = (known.view(), asked.view());
            let near = neighbours(&known, &asked, NeighbourRule::Distance, count).unwrap();
            let classes = classes(training);
            for (near, class) in near.iter().zip(classes_of(held)) {
                let second = near.iter().filter(|one| classes[one.row] == 1).count();
                judged.push((second as f64 / near.len() as f64, class));
            }
        }
        judged
    }
}

/// The metric that the few-rounds search finds for these sites.
pub fn learned(parts: &[Part], settings: Settings, start: u64) -> Array2<f64> {
    let federation = Federation::unsolved(parts, settings);
    let start = federation.start(start);
    federation.accelerated(start, 60, TOLERANCE).metric
}

/// Some patients of a site.
pub fn among(part: &Part, rows: &[usize]) -> Part {
    let labels = Labels::Classes(classes(part).select(Axis(0), rows));
    let patients = part.patients.select(Axis(0), rows);
    Part { patients, labels }
}

pub fn classes(part: &Part) -> &Array1<u32> {
    match &part.labels {
        Labels::Classes(classes) => classes,
        Labels::Pairs(_) | Labels::Judged(_) | Labels::Both { .. } => panic!("a set of classes"),
    }
}

fn classes_of(part: &Part) -> impl Iterator<Item = u32> {
    classes(part).iter().copied()
}

/// The share of pairs of a patient of each class that the scores order correctly; of equal scores a half.
pub fn area(judged: &[(f64, u32)]) -> f64 {
    let of = |class: u32| judged.iter().filter(move |(_, own)| *own == class);
    let (mut ordered, mut all) = (0.0, 0.0);
    for (high, _) in of(1) {
        for (low, _) in of(0) {
            all += 1.0;
            ordered += f64::from(u8::from(high > low)) + 0.5 * f64::from(u8::from(high == low));
        }
    }
    ordered / all
}

/// The mean, and its standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
    (mean, (squares / (count * (count - 1.0))).sqrt())
}
