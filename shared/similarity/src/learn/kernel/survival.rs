//! A support vector machine of survival times: too late a prediction of an event costs, too early a prediction of anybody.
//!
//! minimise 1/2 |w|^2 + C (sum over events |Y_i - f_i| + sum over the others max(0, Y_i - f_i)), f = <w, phi(x)> + c.
//!
//! Its reduced dual, of one number a patient: minimise 1/2 b' K b - Y' b subject to sum b = 0, -C <= b_i <= C of an event and
//! 0 <= b_i <= C of the others. Solved by sequential minimal optimisation: two at a time, the first by the largest violation, the second by the
//! largest fall of the objective (Fan, Chen and Lin 2005). Scale the times (or their logarithms) before: C is in their unit.

use ndarray::{Array1, Array2};

use super::{KernelFitError, check, check_positive, linear};

/// Least curvature along a pair.
const CURVATURE_MIN: f64 = 1e-12;
/// Steps for each patient, at most.
const STEPS_A_PATIENT: usize = 10_000;

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct SurvivalMachine {
    /// b.
    pub weights: Array1<f64>,
    /// c.
    pub constant: f64,
    /// What the primal costs.
    pub primal: f64,
    /// What the dual bounds it by from below.
    pub dual: f64,
    /// Steps made.
    pub steps: usize,
}

impl SurvivalMachine {
    /// Of times and whether the event was seen then. `tolerance` is the largest violation at the end, in the unit of the times.
    ///
    /// # Errors
    /// [`KernelFitError`] where the kernel does not fit, C or the tolerance is not above 0, or nobody has the event.
    pub fn fit(
        kernel: &Array2<f64>,
        time: &Array1<f64>,
        event: &Array1<bool>,
        bound: f64,
        tolerance: f64,
    ) -> Result<Self, KernelFitError> {
        check(kernel, time.len())?;
        check_positive("C", bound)?;
        check_positive("the tolerance", tolerance)?;
        if !event.iter().any(|event| *event) {
            return Err(KernelFitError::NoEvent);
        }
        let mut search = Search {
            kernel,
            low: event.mapv(|event| if event { -bound } else { 0.0 }),
            bound,
            weights: Array1::zeros(time.len()),
            gradient: -time,
        };
        let most = STEPS_A_PATIENT * time.len();
        let mut steps = 0;
        while let Some((up, down)) = search.pair(tolerance) {
            if steps == most {
                return Err(KernelFitError::Unsettled { steps });
            }
            steps += 1;
            search.step(up, down);
        }
        let constant = search.constant();
        let product = kernel.dot(&search.weights);
        let square = search.weights.dot(&product);
        let late = &product + constant - time;
        let cost = late.iter().zip(event).map(|(late, event)| match event {
            true => late.abs(),
            false => (-late).max(0.0),
        });
        Ok(Self {
            primal: 0.5 * square + bound * cost.sum::<f64>(),
            dual: time.dot(&search.weights) - 0.5 * square,
            weights: search.weights,
            constant,
            steps,
        })
    }

    /// How far the fit is from the best at most, as a share of what it costs.
    #[must_use]
    pub fn gap(&self) -> f64 {
        (self.primal - self.dual) / self.primal.abs().max(f64::MIN_POSITIVE)
    }

    /// Times of new patients, m, by their kernel with the training patients, m x n.
    #[must_use]
    pub fn predict(&self, cross: &Array2<f64>) -> Array1<f64> {
        linear(cross, &self.weights, self.constant)
    }
}

struct Search<'k> {
    kernel: &'k Array2<f64>,
    low: Array1<f64>,
    bound: f64,
    weights: Array1<f64>,
    /// K b - Y.
    gradient: Array1<f64>,
}

impl Search<'_> {
    fn can_rise(&self, patient: usize) -> bool {
        self.weights[patient] < self.bound
    }

    fn can_fall(&self, patient: usize) -> bool {
        self.weights[patient] > self.low[patient]
    }

    /// Which patients to raise and which to lower; none where nothing is violated by more than the tolerance.
    fn pair(&self, tolerance: f64) -> Option<(usize, usize)> {
        let patients = 0..self.weights.len();
        let rising = patients.clone().filter(|patient| self.can_rise(*patient));
        let by_gradient = |a: &usize, b: &usize| self.gradient[*a].total_cmp(&self.gradient[*b]);
        let up = rising.min_by(by_gradient)?;
        let falling = || patients.clone().filter(|patient| self.can_fall(*patient));
        let worst = falling().max_by(by_gradient)?;
        if self.gradient[worst] - self.gradient[up] <= tolerance {
            return None;
        }
        let fall = |down: &usize| {
            let slope = self.gradient[*down] - self.gradient[up];
            slope * slope / self.curvature(up, *down)
        };
        let helpful = falling().filter(|down| self.gradient[*down] > self.gradient[up]);
        let down = helpful.max_by(|a, b| fall(a).total_cmp(&fall(b)))?;
        Some((up, down))
    }

    fn curvature(&self, up: usize, down: usize) -> f64 {
        let kernel = self.kernel;
        let curvature = kernel[(up, up)] + kernel[(down, down)] - 2.0 * kernel[(up, down)];
        curvature.max(CURVATURE_MIN)
    }

    fn step(&mut self, up: usize, down: usize) {
        let slope = self.gradient[down] - self.gradient[up];
        let (rise, fall) = (
            self.bound - self.weights[up],
            self.weights[down] - self.low[down],
        );
        let length = (slope / self.curvature(up, down)).min(rise).min(fall);
        // At the bound exactly, so that it is seen to be there.
        self.weights[up] = if length == rise {
            self.bound
        } else {
            self.weights[up] + length
        };
        self.weights[down] = if length == fall {
            self.low[down]
        } else {
            self.weights[down] - length
        };
        let rows = self.kernel.row(up).into_iter().zip(self.kernel.row(down));
        for (gradient, (one, other)) in self.gradient.iter_mut().zip(rows) {
            *gradient += length * (one - other);
        }
    }

    /// c of those who are at no bound, of none the middle of what all allow.
    fn constant(&self) -> f64 {
        let patients = 0..self.weights.len();
        let is_free = |patient: &usize| self.can_rise(*patient) && self.can_fall(*patient);
        let free: Vec<f64> = patients
            .clone()
            .filter(is_free)
            .map(|one| -self.gradient[one])
            .collect();
        if !free.is_empty() {
            return free.iter().sum::<f64>() / free.len() as f64;
        }
        let rising = patients.clone().filter(|patient| self.can_rise(*patient));
        let falling = patients.filter(|patient| self.can_fall(*patient));
        let most = rising
            .map(|one| -self.gradient[one])
            .fold(f64::NEG_INFINITY, f64::max);
        let least = falling
            .map(|one| -self.gradient[one])
            .fold(f64::INFINITY, f64::min);
        match (most.is_finite(), least.is_finite()) {
            (true, true) => f64::midpoint(most, least),
            (true, false) => most,
            (false, _) => least,
        }
    }
}
