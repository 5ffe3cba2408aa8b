//! The log-rank test of several groups (Mantel 1966, Peto and Peto 1972), and what each patient adds to it.

use ndarray::{Array1, Array2};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::numeric::portable::{Factor, dot};

/// Whether groups survive alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRank {
    /// The statistic.
    pub chi_squared: f64,
    /// Groups that are compared, less one.
    pub degrees: usize,
    /// The chance of such a statistic where all groups survive alike.
    pub p: f64,
}

/// Patients who leave at one time, earliest first: their rows.
fn by_time(time: &Array1<f64>) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..time.len()).collect();
    order.sort_by(|a, b| time[*a].total_cmp(&time[*b]).then(a.cmp(b)));
    let same = order.chunk_by(|a, b| time[*a] == time[*b]);
    same.map(<[usize]>::to_vec).collect()
}

/// Each patient's event less what the patient was due by the hazard of all (Nelson and Aalen): over a group they add up to
/// observed less expected events. They sum to 0.
#[must_use]
pub fn log_rank_scores(time: &Array1<f64>, event: &Array1<bool>) -> Vec<f64> {
    let mut scores = vec![0.0; time.len()];
    let (mut at_risk, mut hazard) = (time.len(), 0.0);
    for same in by_time(time) {
        let events = same.iter().filter(|row| event[**row]).count();
        hazard += events as f64 / at_risk as f64;
        at_risk -= same.len();
        for row in same {
            scores[row] = f64::from(u8::from(event[row])) - hazard;
        }
    }
    scores
}

/// The test of `count` groups; `group` has one below `count` a patient. None where no event tells two groups apart.
#[must_use]
pub fn log_rank(
    time: &Array1<f64>,
    event: &Array1<bool>,
    group: &[u32],
    count: usize,
) -> Option<LogRank> {
    let mut at_risk = vec![0.0; count];
    group.iter().for_each(|own| at_risk[*own as usize] += 1.0);
    let mut apart = vec![0.0; count];
    let mut variance = Array2::<f64>::zeros((count, count));
    for same in by_time(time) {
        let whole: f64 = at_risk.iter().sum();
        let mut events = vec![0.0; count];
        let seen = same.iter().filter(|row| event[**row]);
        seen.for_each(|row| events[group[*row] as usize] += 1.0);
        let all: f64 = events.iter().sum();
        let spread = match whole > 1.0 {
            true => all * (whole - all) / (whole - 1.0),
            false => 0.0,
        };
        for (one, share) in at_risk.iter().map(|number| number / whole).enumerate() {
            apart[one] += events[one] - all * share;
            variance[(one, one)] += spread * share;
            for (other, number) in at_risk.iter().enumerate() {
                variance[(one, other)] -= spread * share * number / whole;
            }
        }
        same.iter()
            .for_each(|row| at_risk[group[*row] as usize] -= 1.0);
    }
    // The parts sum to 0: all groups but the last that varies.
    let varying: Vec<usize> = (0..count)
        .filter(|one| variance[(*one, *one)] > 1e-12)
        .collect();
    let free = varying.split_last()?.1;
    if free.is_empty() {
        return None;
    }
    let block = Array2::from_shape_fn((free.len(), free.len()), |(i, j)| {
        variance[(free[i], free[j])]
    });
    let right = Array1::from_shape_fn(free.len(), |i| apart[free[i]]);
    let chi_squared = dot(&right, &Factor::of(&block)?.solve(&right));
    let degrees = free.len();
    let law = ChiSquared::new(degrees as f64).ok()?;
    Some(LogRank {
        chi_squared,
        degrees,
        p: law.sf(chi_squared),
    })
}
