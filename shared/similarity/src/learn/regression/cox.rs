//! Cox regression from risk-set sums.
//!
//! Events happen in *cells*: every distinct event time is one. In cell c with d events let, over the patients at risk, S0 = sum exp(x'b), S1 = sum x exp(x'b),
//! S2 = sum x x' exp(x'b), and E0, E1, E2 the same over those with the event. With f_k = k / d of Efron's approximation
//! (0 of Breslow's), sums over k = 0 ... d - 1, and D_k = S0 - f_k E0,
//!
//! ```text
//! log-likelihood  sum over events of x'b - sum_k log D_k
//! gradient        sum over events of x   - sum_k m_k,   m_k = (S1 - f_k E1) / D_k
//! information     A S2 - B E2            - sum_k m_k m_k',   A = sum_k 1 / D_k,   B = sum_k f_k / D_k
//! ```
//!
//! A fit of several hospitals is stratified: each has risk sets of its own, and adds one log-likelihood, gradient and information
//! ([`FollowUp::sums`]). No number of a single cell leaves, and no hospital moves the risk sets of another.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use ndarray::{Array1, Array2, ArrayView2, s};

use crate::learn::regression::sums::{Sums, add_blocks};
use crate::numeric::linear_algebra::{add_to_upper, mirror};

/// How events at one time are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Efron's approximation.
    #[default]
    Efron,
    /// Breslow's.
    Breslow,
}

/// A patient is in no risk set.
const NEVER: u32 = u32::MAX;

/// The cells of a cohort's follow-up, and where its patients are in them.
#[derive(Clone, PartialEq)]
pub struct FollowUp {
    /// The event time of each cell, rising.
    times: Vec<f64>,
    /// The last cell in which each patient is at risk, or [`NEVER`].
    last: Vec<u32>,
    event: Vec<bool>,
}

/// Patients by cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellCounts {
    /// Patients.
    pub patients: u64,
    /// Patients at risk in each cell.
    pub at_risk: Vec<u64>,
    /// Events in each cell.
    pub events: Vec<u64>,
    /// Patients whose follow-up ends in each cell.
    pub ending: Vec<u64>,
}

/// S0, S1 and E0, E1 of every cell at given coefficients.
#[derive(Clone, PartialEq)]
pub(super) struct RiskSets {
    /// Cells x (1 + p): over the patients at risk.
    pub at_risk: Array2<f64>,
    /// Cells x (1 + p): over those with the event.
    pub with_event: Array2<f64>,
}

/// Of every cell a factor for whoever is at risk there, and one for whoever has the event there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    /// A number a cell.
    pub at_risk: Vec<f64>,
    /// A number a cell.
    pub with_event: Vec<f64>,
}

/// What the sums of all cells say at their coefficients.
#[derive(Clone)]
pub(super) struct RiskTerms {
    /// Log-likelihood.
    pub log_likelihood: f64,
    /// A and B of every cell.
    pub weights: Weights,
    /// Cells x p: sum over events of x - sum_k m_k.
    slopes: Array2<f64>,
    /// Of every cell the factors of S1 S1', -(S1 E1' + E1 S1') and E1 E1' in sum_k m_k m_k'.
    squares: Vec<[f64; 3]>,
    sets: RiskSets,
}

impl FollowUp {
    /// A cell for every distinct time of an event; ties count as observed.
    #[must_use]
    pub fn exact(time: &Array1<f64>, event: &Array1<bool>) -> Self {
        let seen = time.iter().zip(event).filter(|(_, event)| **event);
        let mut times: Vec<f64> = seen.map(|(time, _)| *time).collect();
        times.sort_unstable_by(f64::total_cmp);
        times.dedup();
        // The last event time that is not later: at risk there, and not after.
        let last = |time: f64| times.partition_point(|other| *other <= time).checked_sub(1);
        let last = time
            .iter()
            .map(|time| last(*time).map_or(NEVER, |cell| cell as u32));
        let last = last.collect();
        Self {
            times,
            last,
            event: event.to_vec(),
        }
    }

    /// The same up to a horizon, at which whoever is followed beyond it is censored.
    #[must_use]
    pub fn until(time: &Array1<f64>, event: &Array1<bool>, horizon: f64) -> Self {
        let seen = time.iter().zip(event);
        let seen = seen.map(|(time, event)| *event && *time <= horizon);
        Self::exact(&time.mapv(|time| time.min(horizon)), &seen.collect())
    }

    /// The time of each cell, rising.
    #[must_use]
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Events within the cells.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.event.iter().filter(|event| **event).count() as u64
    }

    /// Patients by cells; `time` is theirs, of which the cells are only some.
    #[must_use]
    pub fn counts(&self, time: &Array1<f64>) -> CellCounts {
        let mut counts = CellCounts {
            patients: self.last.len() as u64,
            at_risk: vec![0; self.times.len()],
            events: vec![0; self.times.len()],
            ending: vec![0; self.times.len()],
        };
        for (patient, &cell) in self.last.iter().enumerate() {
            if cell == NEVER {
                continue;
            }
            let cell = cell as usize;
            counts.at_risk[cell] += 1;
            counts.events[cell] += u64::from(self.event[patient]);
            counts.ending[cell] += u64::from(time[patient] == self.times[cell]);
        }
        for cell in (1..self.times.len()).rev() {
            counts.at_risk[cell - 1] += counts.at_risk[cell];
        }
        counts
    }

    /// What these patients, as a stratum of their own, add to a fit: at coefficients `at` their log-likelihood and its derivatives.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    #[must_use]
    pub fn sums(&self, design: &ArrayView2<f64>, at: &Array1<f64>, ties: Ties) -> Sums {
        let terms = self.terms(design, at, ties);
        let products = self.products(design, at, &terms.weights);
        Sums {
            patients: design.nrows() as u64,
            events: self.events(),
            log_likelihood: terms.log_likelihood,
            gradient: terms.gradient(|_| 1.0),
            information: terms.information(&products, |_| 1.0),
        }
    }

    /// The same with every column x twice: as it is, and as g(t) x with a coefficient of 0, g having a value a cell. What a score
    /// test of proportional hazards looks at.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    #[must_use]
    pub fn sums_with_time(
        &self,
        design: &ArrayView2<f64>,
        at: &Array1<f64>,
        ties: Ties,
        scale: &[f64],
    ) -> Sums {
        let (terms, size) = (self.terms(design, at, ties), design.ncols());
        let mut sums = Sums::zero(2 * size);
        sums.patients = design.nrows() as u64;
        sums.events = self.events();
        sums.log_likelihood = terms.log_likelihood;
        let powers: [&dyn Fn(usize) -> f64; 3] = [&|_| 1.0, &|cell| scale[cell], &|cell| {
            scale[cell] * scale[cell]
        }];
        for (power, factor) in powers.into_iter().enumerate() {
            let products = self.products(design, at, &terms.weighted(factor));
            let information = terms.information(&products, factor);
            for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                if row + column == power {
                    let (row, column) = (row * size, column * size);
                    let place = s![row..row + size, column..column + size];
                    sums.information.slice_mut(place).assign(&information);
                }
            }
            if power < 2 {
                let place = s![power * size..(power + 1) * size];
                sums.gradient
                    .slice_mut(place)
                    .assign(&terms.gradient(factor));
            }
        }
        sums
    }

    /// What the risk sets say at coefficients `at`.
    pub(super) fn terms(
        &self,
        design: &ArrayView2<f64>,
        at: &Array1<f64>,
        ties: Ties,
    ) -> RiskTerms {
        let first = RiskSets::of(self, design, &Array1::zeros(at.len()));
        RiskSets::of(self, design, at).terms(&first, at, ties)
    }

    /// X' diag(w) X over the patients of `design`, n x p, at coefficients `at`: see the module's text.
    ///
    /// # Panics
    /// Where there are not as many weights as cells.
    #[must_use]
    fn products(
        &self,
        design: &ArrayView2<f64>,
        at: &Array1<f64>,
        weights: &Weights,
    ) -> Array2<f64> {
        let mut sum = 0.0;
        let so_far = weights.at_risk.iter().map(|weight| {
            sum += weight;
            sum
        });
        let so_far: Vec<f64> = so_far.collect();
        let eta = design.dot(at);
        let weight = |patient: usize| match self.last[patient] {
            NEVER => 0.0,
            cell => {
                let cell = cell as usize;
                let own = if self.event[patient] {
                    weights.with_event[cell]
                } else {
                    0.0
                };
                libm::exp(eta[patient]) * (so_far[cell] - own)
            }
        };
        let width = design.ncols();
        let of_block = |first: usize, rows: ArrayView2<'_, f64>| {
            let mut weighted = rows.to_owned();
            for (row, mut x) in weighted.outer_iter_mut().enumerate() {
                x *= weight(first + row);
            }
            let mut products = Array2::zeros((width, width));
            add_to_upper(&rows, &weighted.view(), &mut products.view_mut());
            products
        };
        let mut sum = Array2::zeros((width, width));
        add_blocks(design, &mut sum, of_block, |sum, part| *sum += part);
        mirror(&mut sum);
        sum
    }
}

impl RiskSets {
    /// Of nobody.
    #[must_use]
    pub(super) fn zero(cells: usize, columns: usize) -> Self {
        let sums = || Array2::zeros((cells, 1 + columns));
        Self {
            at_risk: sums(),
            with_event: sums(),
        }
    }

    /// The sums of every cell over the patients of `design`, n x p, at coefficients `at`.
    #[must_use]
    pub(super) fn of(follow_up: &FollowUp, design: &ArrayView2<f64>, at: &Array1<f64>) -> Self {
        let mut sets = Self::zero(follow_up.times.len(), design.ncols());
        let eta = design.dot(at);
        for (patient, x) in design.outer_iter().enumerate() {
            let cell = follow_up.last[patient];
            if cell == NEVER {
                continue;
            }
            let (cell, weight) = (cell as usize, libm::exp(eta[patient]));
            let add = |sums: &mut Array2<f64>| {
                let mut sums = sums.row_mut(cell);
                sums[0] += weight;
                sums.slice_mut(s![1..]).scaled_add(weight, &x);
            };
            add(&mut sets.at_risk);
            if follow_up.event[patient] {
                add(&mut sets.with_event);
            }
        }
        // Whoever is at risk in a cell was so in all before it.
        for cell in (1..follow_up.times.len()).rev() {
            let (mut before, after) = sets
                .at_risk
                .multi_slice_mut((s![cell - 1, ..], s![cell, ..]));
            before += &after;
        }
        sets
    }

    /// Of sums at coefficients 0: the events of each cell.
    #[must_use]
    pub(super) fn events(&self) -> Vec<u64> {
        let events = self.with_event.column(0);
        events.iter().map(|events| events.round() as u64).collect()
    }

    /// What the sums at coefficients `at` say, where those at 0 were `first`. By IEEE operations in a fixed order, so that the bits
    /// are the same on every processor.
    #[must_use]
    pub(super) fn terms(&self, first: &Self, at: &Array1<f64>, ties: Ties) -> RiskTerms {
        let (cells, width) = self.at_risk.dim();
        let events = first.events();
        let mut terms = RiskTerms {
            log_likelihood: 0.0,
            weights: Weights {
                at_risk: vec![0.0; cells],
                with_event: vec![0.0; cells],
            },
            slopes: first.with_event.slice(s![.., 1..]).to_owned(),
            squares: vec![[0.0; 3]; cells],
            sets: self.clone(),
        };
        for (cell, &deaths) in events.iter().enumerate() {
            let (risk, dead) = (self.at_risk.row(cell), self.with_event.row(cell));
            for column in 0..width - 1 {
                terms.log_likelihood += terms.slopes[(cell, column)] * at[column];
            }
            for event in 0..deaths {
                let share = match ties {
                    Ties::Efron => event as f64 / deaths as f64,
                    Ties::Breslow => 0.0,
                };
                let part = 1.0 / (risk[0] - share * dead[0]);
                terms.log_likelihood += libm::log(part);
                terms.weights.at_risk[cell] += part;
                terms.weights.with_event[cell] += share * part;
                for (power, square) in terms.squares[cell].iter_mut().enumerate() {
                    *square += [1.0, share, share * share][power] * part * part;
                }
            }
            let (a, b) = (terms.weights.at_risk[cell], terms.weights.with_event[cell]);
            for (column, slope) in terms.slopes.row_mut(cell).iter_mut().enumerate() {
                *slope -= a * risk[1 + column] - b * dead[1 + column];
            }
        }
        terms
    }
}

impl RiskTerms {
    /// The gradient, each cell's part by a factor of its own.
    #[must_use]
    pub(super) fn gradient(&self, factor: impl Fn(usize) -> f64) -> Array1<f64> {
        let mut gradient = Array1::zeros(self.slopes.ncols());
        for (cell, slope) in self.slopes.outer_iter().enumerate() {
            gradient.scaled_add(factor(cell), &slope);
        }
        gradient
    }

    /// The weights, each cell's by a factor of its own.
    #[must_use]
    pub(super) fn weighted(&self, factor: impl Fn(usize) -> f64) -> Weights {
        let by = |weights: &[f64]| {
            let weights = weights.iter().enumerate();
            weights
                .map(|(cell, weight)| factor(cell) * weight)
                .collect()
        };
        Weights {
            at_risk: by(&self.weights.at_risk),
            with_event: by(&self.weights.with_event),
        }
    }

    /// The information, each cell's part by a factor of its own: `products` are those of [`RiskTerms::weighted`] by the same
    /// factors.
    #[must_use]
    pub(super) fn information(
        &self,
        products: &Array2<f64>,
        factor: impl Fn(usize) -> f64,
    ) -> Array2<f64> {
        let mut information = products.clone();
        for (cell, squares) in self.squares.iter().enumerate() {
            let [a, b, c] = squares.map(|square| factor(cell) * square);
            let (risk, dead) = (self.sets.at_risk.row(cell), self.sets.with_event.row(cell));
            for k in 0..information.nrows() {
                let (risk_k, dead_k) = (risk[1 + k], dead[1 + k]);
                let (by_risk, by_dead) = (a * risk_k - b * dead_k, c * dead_k - b * risk_k);
                for l in 0..=k {
                    information[(k, l)] -= by_risk * risk[1 + l] + by_dead * dead[1 + l];
                }
            }
        }
        for k in 0..information.nrows() {
            for l in 0..k {
                information[(l, k)] = information[(k, l)];
            }
        }
        information
    }

    /// What each cell adds to the cumulative hazard of a patient whose linear predictor is 0.
    #[must_use]
    pub(super) fn hazards(&self) -> &[f64] {
        &self.weights.at_risk
    }
}

impl std::fmt::Debug for FollowUp {
    /// Shape only: times belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FollowUp")
            .field("patients", &self.last.len())
            .field("cells", &self.times.len())
            .finish_non_exhaustive()
    }
}
