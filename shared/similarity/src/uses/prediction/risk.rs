//! The chance of an event by a time, from a score that orders patients: a Cox regression on that one score, with Breslow's baseline hazard.
//!
//! Of scores of held-out patients its coefficient says how far they can be believed. With m the mean score, a patient's cumulative hazard
//! is exp(b (s - m)) times the sum over event times u <= t of d / S0, and the variance of its logarithm (Tsiatis 1981; Therneau and
//! Grambsch 2000, equation 10.6)
//!
//! ```text
//! (sum of d / S0^2 + var(b) (sum of (S1 / S0 - s) d / S0)^2) / (sum of d / S0)^2
//! ```
//!
//! So an interval is of log(-log S), as that of a curve of everybody. It is wider than that by `WIDER`, because this variance knows
//! nothing of how the score was learned and takes log hazards for a straight line of it.

use ndarray::Array1;

use crate::judge::survival::{KaplanMeier, groups_by_risk};
use crate::uses::cases::Interval;

/// The normal number that 97.5 % are below.
const NORMAL: f64 = 1.959_963_984_540_054;
/// By how much intervals are wider than this variance makes them. Measured: see `tests/kernel/chances.rs`.
pub const WIDER: f64 = 1.6;
/// Newton steps at most.
const STEPS_MAX: u32 = 50;
/// A step that ends them, in standard deviations of the score.
const TOLERANCE: f64 = 1e-10;
/// Events up to a time for which a chance is given, and patients who are followed so long, at least.
pub const EVENTS_MIN: usize = 10;
/// Parts of the patients, by their chances.
const PARTS: usize = 3;

/// Chances from a score.
#[derive(Clone, PartialEq)]
pub struct Risk {
    /// The mean of the scores, and their standard deviation.
    pub scale: [f64; 2],
    /// The scores that were seen: others count as the nearest of these.
    pub ends: [f64; 2],
    /// Of a standardised score.
    pub slope: f64,
    /// Of the slope.
    pub variance: f64,
    /// By rising time.
    pub steps: Vec<Step>,
    /// The last time for which a chance is given.
    pub last: f64,
}

/// A time at which events happened.
#[derive(Clone, Copy, PartialEq)]
pub struct Step {
    /// When.
    pub time: f64,
    /// Events.
    pub events: usize,
    /// d / S0, at the mean score.
    pub hazard: f64,
    /// S1 / S0, the mean of the standardised scores of those at risk.
    pub mean: f64,
    /// d / S0^2.
    pub square: f64,
}

/// What of the patients is known at a slope.
struct At {
    gradient: f64,
    information: f64,
    steps: Vec<Step>,
}

/// Patients whose chances are alike, what was predicted of them, and what happened.
pub struct Part {
    /// Patients.
    pub patients: usize,
    /// Their mean chance.
    pub predicted: f64,
    /// How they fared.
    pub curve: KaplanMeier,
}

impl Risk {
    /// From the scores of patients, which rise with the hazard; none where nobody has an event, or nothing can be fitted.
    #[must_use]
    pub fn of(scores: &[f64], time: &Array1<f64>, event: &Array1<bool>) -> Option<Self> {
        let n = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / n;
        let variance = scores
            .iter()
            .map(|score| (score - mean).powi(2))
            .sum::<f64>()
            / n;
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let mut patients: Vec<(f64, bool, f64)> = (0..scores.len())
            .map(|row| (time[row], event[row], (scores[row] - mean) / deviation))
            .collect();
        patients.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut slope = 0.0;
        let mut at = At::slope(slope, &patients);
        for _ in 0..STEPS_MAX {
            if at.information <= 0.0 {
                break;
            }
            let step = at.gradient / at.information;
            // A step of one standard deviation of the score at most.
            slope += step.clamp(-1.0, 1.0);
            at = At::slope(slope, &patients);
            if step.abs() < TOLERANCE {
                break;
            }
        }
        // Equal scores tell nothing: everybody has the same chance.
        let variance = match at.information > 0.0 {
            true => 1.0 / at.information,
            false => 0.0,
        };
        let is_fitted = variance.is_finite() && at.gradient.abs() < 1e-6 * n;
        let followed = patients.get(EVENTS_MIN - 1)?.0;
        let extreme = |of: fn(f64, f64) -> f64, none: f64| scores.iter().copied().fold(none, of);
        (is_fitted && !at.steps.is_empty()).then_some(Self {
            scale: [mean, deviation],
            ends: [
                extreme(f64::min, f64::INFINITY),
                extreme(f64::max, f64::NEG_INFINITY),
            ],
            slope,
            variance,
            steps: at.steps,
            last: followed,
        })
    }

    /// The first time for which a chance is given.
    #[must_use]
    pub fn first(&self) -> f64 {
        let mut events = 0;
        let reached = self.steps.iter().find(|step| {
            events += step.events;
            events >= EVENTS_MIN
        });
        reached.map_or(f64::INFINITY, |step| step.time)
    }

    /// The chance of an event by `time`, with its interval of 95 %; none by a time with too few events, or to which too few are followed.
    #[must_use]
    pub fn by(&self, score: f64, time: f64) -> Option<Interval> {
        let steps = self.steps.iter().take_while(|step| step.time <= time);
        let events: usize = steps.clone().map(|step| step.events).sum();
        if events < EVENTS_MIN || time > self.last || score.is_nan() {
            return None;
        }
        let [mean, deviation] = self.scale;
        let own = (score.clamp(self.ends[0], self.ends[1]) - mean) / deviation;
        let hazard: f64 = steps.clone().map(|step| step.hazard).sum();
        let squares: f64 = steps.clone().map(|step| step.square).sum();
        let drift: f64 = steps.map(|step| (step.mean - own) * step.hazard).sum();
        let error = (squares + self.variance * drift * drift).sqrt() / hazard;
        let cumulative = hazard * libm::exp(self.slope * own);
        let chance = |factor: f64| -libm::expm1(-cumulative * factor);
        Some(Interval {
            value: chance(1.0),
            low: chance(libm::exp(-WIDER * NORMAL * error)),
            high: chance(libm::exp(WIDER * NORMAL * error)),
        })
    }
}

impl At {
    /// Patients by falling time.
    fn slope(slope: f64, patients: &[(f64, bool, f64)]) -> Self {
        let (mut s0, mut s1, mut s2) = (0.0, 0.0, 0.0);
        let mut at = Self {
            gradient: 0.0,
            information: 0.0,
            steps: Vec::new(),
        };
        for same in patients.chunk_by(|one, other| one.0 == other.0) {
            for (_, _, own) in same {
                let weight = libm::exp(slope * own);
                s0 += weight;
                s1 += weight * own;
                s2 += weight * own * own;
            }
            let seen = same.iter().filter(|(_, event, _)| *event);
            let events = seen.clone().count();
            if events == 0 {
                continue;
            }
            let (d, mean) = (events as f64, s1 / s0);
            at.gradient += seen.map(|(_, _, own)| own - mean).sum::<f64>();
            at.information += d * (s2 / s0 - mean * mean);
            at.steps.push(Step {
                time: same[0].0,
                events,
                hazard: d / s0,
                mean,
                square: d / (s0 * s0),
            });
        }
        at.steps.reverse();
        at
    }
}

/// The chances of patients who were held out: each by the other folds' scores and outcomes. NaN where none is known.
#[must_use]
pub fn held_out_chances(
    scores: &[f64],
    folds: &[usize],
    (time, event): (&Array1<f64>, &Array1<bool>),
    by: f64,
) -> Vec<f64> {
    let of_fold = |fold: usize| {
        let others: Vec<usize> = (0..folds.len()).filter(|row| folds[*row] != fold).collect();
        let own: Vec<f64> = others.iter().map(|row| scores[*row]).collect();
        let select = ndarray::Axis(0);
        Risk::of(
            &own,
            &time.select(select, &others),
            &event.select(select, &others),
        )
    };
    let most = folds.iter().copied().max().map_or(0, |last| last + 1);
    let risks: Vec<Option<Risk>> = (0..most).map(of_fold).collect();
    let chance = |(score, fold): (&f64, &usize)| {
        let known = risks[*fold].as_ref().and_then(|risk| risk.by(*score, by));
        known.map_or(f64::NAN, |chance| chance.value)
    };
    scores.iter().zip(folds).map(chance).collect()
}

/// Patients in thirds of their chances, the lowest first: whether as many have events as were predicted.
#[must_use]
pub fn calibration(chances: &[f64], (time, event): (&Array1<f64>, &Array1<bool>)) -> Vec<Part> {
    let part = |rows: Vec<usize>| Part {
        patients: rows.len(),
        predicted: rows.iter().map(|row| chances[*row]).sum::<f64>() / rows.len() as f64,
        curve: KaplanMeier::of(time, event, rows.iter().copied()),
    };
    let groups = groups_by_risk(chances, PARTS).into_iter();
    groups.filter(|rows| !rows.is_empty()).map(part).collect()
}

impl std::fmt::Debug for Risk {
    /// Nothing: steps are of patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Risk").finish_non_exhaustive()
    }
}
