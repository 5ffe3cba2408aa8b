//! L-BFGS with a strong-Wolfe line search, over a matrix taken as one long vector.
//!
//! Nocedal and Wright, Numerical Optimization (2nd ed.): two-loop recursion, algorithm 7.4; line
//! search, algorithms 3.5 and 3.6. Nothing is allocated inside the loop.

use ndarray::{Array2, Zip};

use crate::numeric::portable::{inner, norm};

/// Sufficient decrease, c_1 of the Wolfe conditions.
const DECREASE: f64 = 1e-4;
/// Curvature, c_2 of the Wolfe conditions.
const CURVATURE: f64 = 0.9;
/// Correction pairs kept.
const MEMORY: usize = 12;
/// Evaluations that one line search may use.
const LINE_SEARCH_EVALUATIONS_MAX: usize = 30;
/// A step that grows is multiplied by this much at most.
const GROWTH: f64 = 4.0;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Stop once the Frobenius norm of the gradient is at most this.
    pub gradient_tolerance: f64,
    /// Stop after this many accepted steps.
    pub iterations: usize,
}

/// Why the search ended. Every one of them leaves the best point found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The gradient is within the tolerance.
    Converged,
    /// The iterations are used up.
    IterationLimit,
    /// No step decreases the objective: it is flat to rounding, or its gradient is wrong.
    NoDecrease,
}

/// Where the search ended.
#[derive(Debug, Clone)]
pub struct Minimum {
    /// The point.
    pub point: Array2<f64>,
    /// Objective there.
    pub value: f64,
    /// Frobenius norm of the gradient there.
    pub gradient_norm: f64,
    /// Objective at the start.
    pub value_at_start: f64,
    /// Accepted steps.
    pub iterations: usize,
    /// Evaluations of objective and gradient.
    pub evaluations: usize,
    /// Why it ended.
    pub status: Status,
}

/// Minimises `objective` from `start`. The objective writes its gradient and returns its value; it
/// may return infinity (and any gradient) where it cannot be computed, and the step is then shortened.
pub fn minimise(
    mut objective: impl FnMut(&Array2<f64>, &mut Array2<f64>) -> f64,
    start: Array2<f64>,
    limits: Limits,
) -> Minimum {
    let mut search = Search::new(start);
    search.value = objective(&search.point, &mut search.gradient);
    search.evaluations = 1;
    let value_at_start = search.value;
    let mut iterations = 0;
    let status = loop {
        if norm(&search.gradient.view()) <= limits.gradient_tolerance {
            break Status::Converged;
        }
        if iterations == limits.iterations {
            break Status::IterationLimit;
        }
        if !search.step(&mut objective) {
            break Status::NoDecrease;
        }
        iterations += 1;
    };
    Minimum {
        gradient_norm: norm(&search.gradient.view()),
        point: search.point,
        value: search.value,
        value_at_start,
        iterations,
        evaluations: search.evaluations,
        status,
    }
}

/// A correction pair: the step taken, and the change of the gradient over it.
struct Correction {
    step: Array2<f64>,
    change: Array2<f64>,
    /// 1 / (step . change).
    scale: f64,
}

/// A point on the line: step length, value and slope there.
#[derive(Clone, Copy)]
struct Sample {
    length: f64,
    value: f64,
    slope: f64,
}

struct Search {
    point: Array2<f64>,
    gradient: Array2<f64>,
    value: f64,
    direction: Array2<f64>,
    trial: Array2<f64>,
    trial_gradient: Array2<f64>,
    /// Ring of correction pairs; `newest` is the next to be overwritten.
    corrections: Vec<Correction>,
    used: usize,
    newest: usize,
    coefficients: [f64; MEMORY],
    evaluations: usize,
}

impl Search {
    fn new(point: Array2<f64>) -> Self {
        let point = point.as_standard_layout().into_owned();
        let zeros = || Array2::zeros(point.raw_dim());
        let correction = || Correction {
            step: zeros(),
            change: zeros(),
            scale: 0.0,
        };
        Self {
            gradient: zeros(),
            value: f64::INFINITY,
            direction: zeros(),
            trial: zeros(),
            trial_gradient: zeros(),
            corrections: std::iter::repeat_with(correction).take(MEMORY).collect(),
            used: 0,
            newest: 0,
            coefficients: [0.0; MEMORY],
            evaluations: 0,
            point,
        }
    }

    /// One accepted step; false where none decreases the objective.
    fn step(&mut self, objective: &mut impl FnMut(&Array2<f64>, &mut Array2<f64>) -> f64) -> bool {
        loop {
            self.aim();
            let slope = dot(&self.direction, &self.gradient);
            if slope < 0.0 {
                // the first step has no curvature to go by: move by about the size of the point
                let first = if self.used > 0 {
                    1.0
                } else {
                    let reach = norm(&self.point.view()).max(1e-3) / norm(&self.gradient.view());
                    reach.min(1.0)
                };
                if let Some(length) = self.search_line(objective, slope, first) {
                    self.accept(length);
                    return true;
                }
            }
            // a stale model may have misled the search: once more along the gradient itself
            if self.used == 0 {
                return false;
            }
            self.used = 0;
        }
    }

    /// direction <- -H gradient by the two-loop recursion.
    fn aim(&mut self) {
        let Self {
            direction,
            gradient,
            corrections,
            coefficients,
            used,
            newest,
            ..
        } = self;
        Zip::from(&mut *direction)
            .and(&*gradient)
            .for_each(|d, g| *d = -g);
        let at = |age: usize| (*newest + MEMORY - 1 - age) % MEMORY;
        for age in 0..*used {
            let pair = &corrections[at(age)];
            coefficients[age] = pair.scale * dot(&pair.step, direction);
            direction.scaled_add(-coefficients[age], &pair.change);
        }
        if *used > 0 {
            let last = &corrections[at(0)];
            let factor = 1.0 / (last.scale * dot(&last.change, &last.change));
            direction.mapv_inplace(|value| value * factor);
        }
        for age in (0..*used).rev() {
            let pair = &corrections[at(age)];
            let back = pair.scale * dot(&pair.change, direction);
            direction.scaled_add(coefficients[age] - back, &pair.step);
        }
    }

    /// Evaluates at `length` along the direction into `trial` and `trial_gradient`.
    fn sample(
        &mut self,
        objective: &mut impl FnMut(&Array2<f64>, &mut Array2<f64>) -> f64,
        length: f64,
    ) -> Sample {
        self.trial.assign(&self.point);
        self.trial.scaled_add(length, &self.direction);
        self.evaluations += 1;
        let value = objective(&self.trial, &mut self.trial_gradient);
        let slope = dot(&self.trial_gradient, &self.direction);
        if value.is_finite() && slope.is_finite() {
            Sample {
                length,
                value,
                slope,
            }
        } else {
            Sample {
                length,
                value: f64::INFINITY,
                slope: f64::INFINITY,
            }
        }
    }

    /// Brackets and zooms in one loop. On success `trial` holds the accepted point.
    fn search_line(
        &mut self,
        objective: &mut impl FnMut(&Array2<f64>, &mut Array2<f64>) -> f64,
        slope: f64,
        first: f64,
    ) -> Option<f64> {
        let origin = Sample {
            length: 0.0,
            value: self.value,
            slope,
        };
        // rounding of the objective: differences below it say nothing about decrease
        let rounding = 4.0 * f64::EPSILON * self.value.abs();
        let (mut low, mut high) = (origin, None::<Sample>);
        let mut length = first;
        let mut last = origin;
        for _ in 0..LINE_SEARCH_EVALUATIONS_MAX {
            last = self.sample(objective, length);
            let allowed = origin.value + DECREASE * last.length * slope + rounding;
            if last.value > allowed || (low.length > 0.0 && last.value > low.value + rounding) {
                high = Some(last);
            } else if last.slope.abs() <= -CURVATURE * slope {
                self.value = last.value;
                return Some(last.length);
            } else {
                let away = high.map_or(1.0, |high| high.length - low.length);
                if last.slope * away >= 0.0 {
                    high = Some(low);
                }
                low = last;
            }
            length = match high {
                None => {
                    let ahead = cubic_minimum(origin, last);
                    ahead.clamp(1.1 * last.length, GROWTH * last.length)
                }
                Some(high) => between(low, high),
            };
            if high.is_some_and(|high| (high.length - low.length).abs() < 1e-16 * length.abs()) {
                break;
            }
        }
        // no Wolfe point, but a decrease is still progress
        if low.length > 0.0 && low.value < origin.value {
            if low.length != last.length {
                self.sample(objective, low.length);
            }
            self.value = low.value;
            return Some(low.length);
        }
        None
    }

    /// Moves to `trial` and remembers the correction, where its curvature is positive.
    fn accept(&mut self, length: f64) {
        let pair = &mut self.corrections[self.newest];
        pair.step.assign(&self.direction);
        pair.step.mapv_inplace(|value| value * length);
        pair.change.assign(&self.trial_gradient);
        pair.change -= &self.gradient;
        let curvature = dot(&pair.step, &pair.change);
        if curvature > f64::EPSILON * dot(&pair.change, &pair.change) {
            pair.scale = 1.0 / curvature;
            self.newest = (self.newest + 1) % MEMORY;
            self.used = (self.used + 1).min(MEMORY);
        } else {
            // the slot, which may have held the oldest pair, now holds nothing of use
            self.used = self.used.min(MEMORY - 1);
        }
        std::mem::swap(&mut self.point, &mut self.trial);
        std::mem::swap(&mut self.gradient, &mut self.trial_gradient);
    }
}

/// Minimiser of the cubic through two samples (Nocedal and Wright, equation 3.59).
fn cubic_minimum(a: Sample, b: Sample) -> f64 {
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.length - b.length);
    let square = d1 * d1 - a.slope * b.slope;
    if square.is_nan() || square < 0.0 {
        return f64::INFINITY;
    }
    let d2 = (b.length - a.length).signum() * square.sqrt();
    let share = (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    let minimum = b.length - (b.length - a.length) * share;
    if minimum.is_finite() {
        minimum
    } else {
        f64::INFINITY
    }
}

/// A trial inside the bracket: the cubic's minimum, kept a tenth away from both ends.
fn between(low: Sample, high: Sample) -> f64 {
    let middle = 0.5 * (low.length + high.length);
    if !high.value.is_finite() {
        return low.length + 0.1 * (high.length - low.length);
    }
    let (left, right) = (low.length.min(high.length), low.length.max(high.length));
    let margin = 0.1 * (right - left);
    let minimum = cubic_minimum(low, high);
    if minimum.is_finite() {
        minimum.clamp(left + margin, right - margin)
    } else {
        middle
    }
}

fn dot(left: &Array2<f64>, right: &Array2<f64>) -> f64 {
    match (left.as_slice(), right.as_slice()) {
        (Some(left), Some(right)) => inner(left, right),
        _ => (left * right).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    const TIGHT: Limits = Limits {
        gradient_tolerance: 1e-9,
        iterations: 500,
    };

    fn rosenbrock(x: &Array2<f64>, gradient: &mut Array2<f64>) -> f64 {
        let (x, y) = (x[[0, 0]], x[[0, 1]]);
        gradient[[0, 0]] = -400.0 * x * (y - x * x) - 2.0 * (1.0 - x);
        gradient[[0, 1]] = 200.0 * (y - x * x);
        100.0 * (y - x * x).powi(2) + (1.0 - x).powi(2)
    }

    #[test]
    fn it_finds_the_minimum_of_rosenbrock() {
        let found = minimise(rosenbrock, array![[-1.2, 1.0]], TIGHT);
        assert_eq!(found.status, Status::Converged);
        assert!(
            (found.point - array![[1.0, 1.0]])
                .iter()
                .all(|x| x.abs() < 1e-8)
        );
        assert!(found.iterations < 60, "{} iterations", found.iterations);
    }

    #[test]
    fn a_quadratic_in_ten_numbers_ends_where_its_gradient_is_zero() {
        let wanted = Array2::from_shape_fn((2, 5), |(i, j)| (i * 5 + j) as f64 - 4.0);
        let weights = Array2::from_shape_fn((2, 5), |(i, j)| 10_f64.powi((i * 5 + j) as i32 - 4));
        let quadratic = |x: &Array2<f64>, gradient: &mut Array2<f64>| {
            gradient.assign(&(&weights * &(x - &wanted)));
            0.5 * (&weights * &(x - &wanted).mapv(|v| v * v)).sum()
        };
        let found = minimise(quadratic, Array2::zeros((2, 5)), TIGHT);
        assert_eq!(found.status, Status::Converged);
        assert!(
            (&weights * &(found.point - &wanted))
                .iter()
                .all(|x| x.abs() < 1e-8)
        );
    }

    #[test]
    fn infinite_values_shorten_the_step() {
        // -log(x) + x is not defined left of zero; the first step jumps there
        let barrier = |x: &Array2<f64>, gradient: &mut Array2<f64>| {
            let x = x[[0, 0]];
            gradient[[0, 0]] = 1.0 - 1.0 / x;
            if x > 0.0 { x - x.ln() } else { f64::INFINITY }
        };
        let found = minimise(barrier, array![[40.0]], TIGHT);
        assert_eq!(found.status, Status::Converged);
        assert!((found.point[[0, 0]] - 1.0).abs() < 1e-8);
    }

    #[test]
    fn limits_are_kept_and_reported() {
        let limits = Limits {
            iterations: 3,
            ..TIGHT
        };
        let found = minimise(rosenbrock, array![[-1.2, 1.0]], limits);
        assert_eq!(
            (found.status, found.iterations),
            (Status::IterationLimit, 3)
        );
        assert!(found.value < found.value_at_start);
    }

    #[test]
    fn a_wrong_gradient_ends_the_search() {
        let wrong = |x: &Array2<f64>, gradient: &mut Array2<f64>| {
            gradient.assign(&(x * -1.0));
            x.iter().map(|v| v * v).sum()
        };
        let found = minimise(wrong, array![[1.0, 2.0]], TIGHT);
        assert_eq!(found.status, Status::NoDecrease);
        assert_eq!(found.point, array![[1.0, 2.0]]);
    }
}
