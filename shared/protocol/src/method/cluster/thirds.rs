//! Thirds of the predicted risk. Where they are cut follows from how many patients of all sites are below each place of a grid. Nothing that a job
//! says moves it.

use super::message::{Divided, Dividing, NearestSums, Spread};
use super::searching::Best;
use ndarray::Array2;
use std::sync::Arc;

/// Places at which thirds may be cut.
pub(super) const CUTS: usize = 64;
/// Standard deviations from the mean at which the first and the last of them are.
const REACH: f64 = 2.5;

/// Places at which thirds may be cut, in question.
#[derive(Debug, Clone)]
pub(super) struct Thirds {
    cuts: Vec<f64>,
    pub(super) asked: Arc<Dividing>,
}

impl Thirds {
    /// At even steps around the mean of all small groups.
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub(super) fn new(spread: &Spread) -> Self {
        let patients = spread.patients as f64;
        let mean = spread.sums[0] / patients;
        let variance = spread.products[[0, 0]] / patients - mean * mean;
        let deviation = variance.max(0.0).sqrt();
        let step = 2.0 * REACH / (CUTS - 1) as f64;
        let cuts = (0..CUTS).map(|place| mean + deviation * (place as f64 * step - REACH));
        let cuts: Vec<f64> = cuts.collect();
        let either = cuts
            .iter()
            .flat_map(|cut| [cut - deviation, cut + deviation]);
        let centres = Array2::from_shape_fn((2 * CUTS, 1), {
            let either: Vec<f64> = either.collect();
            move |(row, _)| either[row]
        });
        let two = Divided {
            sample: 0,
            clusters: 2,
        };
        Self {
            cuts,
            asked: Arc::new(Dividing {
                divisions: vec![two; CUTS],
                centres,
            }),
        }
    }

    /// The division at the cuts that are nearest to a third and two thirds of all patients, by rising risk.
    pub(super) fn best(&self, told: &NearestSums) -> Best {
        let below: Vec<u64> = told.patients.iter().copied().step_by(2).collect();
        let all = told.patients.iter().take(2).sum::<u64>();
        let nearest = |part: u64, from: usize, to: usize| {
            let off = |place: &usize| (3 * below[*place]).abs_diff(part * all);
            (from..to).min_by_key(off).unwrap_or(from)
        };
        let low = nearest(1, 0, CUTS - 1);
        let high = nearest(2, low + 1, CUTS);
        let (low, high) = (self.cuts[low], self.cuts[high]);
        let half = 0.5 * (high - low);
        let centres = [low - half, low + half, high + half];
        Best {
            asked: Arc::new(Dividing {
                divisions: vec![Divided {
                    sample: 0,
                    clusters: 3,
                }],
                centres: Array2::from_shape_fn((3, 1), |(row, _)| centres[row]),
            }),
            unsettled: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::cluster::nearest;
    use ndarray::{ArrayView1, s};

    /// Small groups of ten at skewed places: each third has a third of the patients, as far as steps and small groups let it.
    #[test]
    fn each_third_has_a_third_of_the_patients() {
        let places: Vec<[f64; 1]> = (0..90).map(|k| [(f64::from(k) / 30.0).exp()]).collect();
        let views = || {
            places
                .iter()
                .map(|place| (10, ArrayView1::from(&place[..])))
        };
        let thirds = Thirds::new(&Spread::of(views(), 1));
        let told = |asked: &Dividing| {
            let mut patients = vec![0; asked.centres.nrows()];
            for (_, rows) in asked.rows() {
                let own = asked.centres.slice(s![rows.clone(), ..]);
                for (size, place) in views() {
                    patients[rows.start + nearest(place, own).0] += size;
                }
            }
            patients
        };
        let sums = NearestSums {
            patients: told(&thirds.asked),
            sums: Array2::zeros((2 * CUTS, 1)),
        };
        let found = told(&thirds.best(&sums).asked);
        assert_eq!(found.iter().sum::<u64>(), 900);
        assert!(found.iter().all(|one| one.abs_diff(300) <= 30), "{found:?}");
    }

    /// Where all have one risk, nothing is divided by nothing.
    #[test]
    fn one_risk_of_all_is_one_third_and_two_of_nobody() {
        let place = [1.5];
        let thirds = Thirds::new(&Spread::of([(30, ArrayView1::from(&place[..]))], 1));
        let sums = NearestSums {
            patients: [30, 0].repeat(CUTS),
            sums: Array2::zeros((2 * CUTS, 1)),
        };
        let best = thirds.best(&sums);
        assert!(best.asked.centres.iter().all(|centre| centre.is_finite()));
    }
}
