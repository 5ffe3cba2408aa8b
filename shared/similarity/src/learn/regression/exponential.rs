//! Regression of survival times with one baseline for all: a hazard that is constant in each of some cells of time.
//!
//! The cells are equal steps up to a horizon, so that no patient moves them. In cell c let t_ic be the time that patient i is followed there.
//! With the cell's log hazard a_c and the hazard exp(a_c + x'b)
//!
//! ```text
//! log-likelihood  sum over events of (a_c + x'b) - sum over i, c of u_ic,   u_ic = t_ic exp(a_c + x_i'b)
//! gradient        d_c - sum_i u_ic                    sum over events of x - sum_ic u_ic x_i
//! information     sum_i u_ic on the diagonal,         sum_i u_ic x_i,   sum_ic u_ic x_i x_i'
//! ```
//!
//! d_c being the cell's events. The log hazards come first among the parameters. Sums of several hospitals, added, are those of all patients.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use crate::learn::regression::sums::{Sums, add_blocks};
use crate::numeric::linear_algebra::{add_product, add_to_upper, mirror};

/// Beyond this log hazard nothing more is added: what is steeper is no maximum, and stays a number.
const STEEPEST: f64 = 60.0;

/// The follow-up of patients in cells of time.
#[derive(Clone, PartialEq)]
pub struct Exposure {
    /// Patients x cells: the time that each was followed in each.
    followed: Array2<f64>,
    /// The cell of each patient's event; none of whoever has no event in any of the cells.
    event: Vec<Option<u32>>,
    /// The middle of each cell as a share of the horizon.
    middles: Vec<f64>,
    /// How long each cell is.
    length: f64,
}

/// The ends of so many equal cells up to a horizon.
#[must_use]
pub fn ends(horizon: f64, cells: u32) -> Vec<f64> {
    let ends = 1..=cells;
    ends.map(|cell| horizon * f64::from(cell) / f64::from(cells))
        .collect()
}

impl Exposure {
    /// In those of `cells` equal steps up to a horizon that are `chosen`, by their numbers from 0. A cell has its end and not its beginning; an
    /// event at 0 is in the first. Whoever is followed beyond the horizon is censored there.
    #[must_use]
    pub fn new(
        (time, event): (&Array1<f64>, &Array1<bool>),
        horizon: f64,
        cells: u32,
        chosen: &[u32],
    ) -> Self {
        let ends = ends(horizon, cells);
        let begin = |cell: u32| match cell {
            0 => 0.0,
            cell => ends[cell as usize - 1],
        };
        let followed = Array2::from_shape_fn((time.len(), chosen.len()), |(patient, place)| {
            let cell = chosen[place];
            (time[patient].min(ends[cell as usize]) - begin(cell)).max(0.0)
        });
        let of_patient = |(time, event): (&f64, &bool)| {
            let cell = ends.partition_point(|end| end < time);
            let place = chosen.iter().position(|one| *one as usize == cell);
            place.filter(|_| *event).map(|place| place as u32)
        };
        let middle = |cell: &u32| (f64::from(*cell) + 0.5) / f64::from(cells);
        Self {
            event: time.iter().zip(event).map(of_patient).collect(),
            followed,
            middles: chosen.iter().map(middle).collect(),
            length: horizon / f64::from(cells),
        }
    }

    /// Patients who are followed in each cell on average, at most so many: of one hospital's patients no more count, whatever it says of them.
    #[must_use]
    pub fn counted(&self, at_most: u64) -> Vec<u64> {
        let cells = self.followed.columns().into_iter();
        // Of whoever is followed all through, rounding takes a hair.
        let on_average = |times: ArrayView1<'_, f64>| times.sum() / self.length + 1e-9;
        cells
            .map(|times| (on_average(times) as u64).min(at_most))
            .collect()
    }

    /// Log hazards, which come before the coefficients.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.middles.len()
    }

    /// What these patients add to a fit at parameters `at`: the log hazards, then a coefficient a column of `design`.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    #[must_use]
    pub fn sums(&self, design: &ArrayView2<f64>, at: &Array1<f64>) -> Sums {
        self.summed(design, at, false)
    }

    /// The same with every column x twice: as it is, and as x times the middle of the cell, with a coefficient of 0. What a score test
    /// of proportional hazards looks at.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    #[must_use]
    pub fn sums_with_time(&self, design: &ArrayView2<f64>, at: &Array1<f64>) -> Sums {
        self.summed(design, at, true)
    }

    fn summed(&self, design: &ArrayView2<f64>, at: &Array1<f64>, with_time: bool) -> Sums {
        let width = self.cells() + design.ncols() * if with_time { 2 } else { 1 };
        let of_block =
            |first, rows: ArrayView2<'_, f64>| self.of_block(first, &rows, at, (width, with_time));
        let mut total = Sums::zero(width);
        add_blocks(design, &mut total, of_block, Sums::merge);
        mirror(&mut total.information);
        total
    }

    /// The sums of some patients, without what is below the diagonal of the information.
    fn of_block(
        &self,
        first: usize,
        rows: &ArrayView2<f64>,
        at: &Array1<f64>,
        (width, with_time): (usize, bool),
    ) -> Sums {
        let (cells, columns) = (self.cells(), rows.ncols());
        let patients = first..first + rows.nrows();
        let (hazards, eta) = (at.slice(s![..cells]), rows.dot(&at.slice(s![cells..])));
        let expected = self.expected(patients.clone(), &eta, &hazards);
        let mut sums = Sums::zero(width);
        sums.patients = rows.nrows() as u64;
        sums.log_likelihood = -expected.sum();
        // Of every patient and cell the events that were not expected; those of a cell are its slope.
        let mut left = -&expected;
        for (row, event) in self.event[patients].iter().enumerate() {
            if let Some(cell) = event.map(|cell| cell as usize) {
                sums.events += 1;
                sums.log_likelihood += hazards[cell] + eta[row];
                left[(row, cell)] += 1.0;
            }
        }
        for cell in 0..cells {
            sums.gradient[cell] = left.column(cell).sum();
            sums.information[(cell, cell)] = expected.column(cell).sum();
        }
        let times = if with_time { 2 } else { 1 };
        let power = |power: i32| self.middles.iter().map(move |middle| middle.powi(power));
        let mut mixed = Array2::zeros((columns, cells));
        let target = &mut mixed.view_mut();
        add_product(1.0, &rows.t(), &expected.view(), 0.0, target);
        for time in 0..times {
            let place = cells + time * columns..cells + (time + 1) * columns;
            let factors: Array1<f64> = power(time as i32).collect();
            let slope = rows.t().dot(&left.dot(&factors));
            sums.gradient.slice_mut(s![place.clone()]).assign(&slope);
            let place = s![..cells, place];
            sums.information
                .slice_mut(place)
                .assign(&(&mixed * &factors).t());
            for other in time..times {
                let factors: Array1<f64> = power((time + other) as i32).collect();
                let weighted = rows * &expected.dot(&factors).insert_axis(Axis(1));
                let [row, column] = [time, other].map(|place| cells + place * columns);
                let place = s![row..row + columns, column..column + columns];
                let mut products = Array2::zeros((columns, columns));
                add_to_upper(rows, &weighted.view(), &mut products.view_mut());
                mirror(&mut products);
                sums.information.slice_mut(place).assign(&products);
            }
        }
        sums
    }

    /// The events that are expected of patients in each cell.
    fn expected(
        &self,
        patients: Range<usize>,
        eta: &Array1<f64>,
        hazards: &ArrayView1<f64>,
    ) -> Array2<f64> {
        let mut expected = self.followed.slice(s![patients, ..]).to_owned();
        for ((row, cell), time) in expected.indexed_iter_mut() {
            *time *= libm::exp((hazards[cell] + eta[row]).min(STEEPEST));
        }
        expected
    }
}

/// Events and time at risk of each cell, of all patients.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// Events.
    pub events: Vec<u64>,
    /// The time that patients were followed in it.
    pub followed: Vec<f64>,
}

impl Cells {
    /// From the sums of no column at log hazards of 0.
    #[must_use]
    pub fn of(sums: &Sums) -> Self {
        let followed = sums.information.diag().to_vec();
        let events = sums.gradient.iter().zip(&followed);
        Self {
            events: events
                .map(|(slope, time)| (slope + time).round().max(0.0) as u64)
                .collect(),
            followed,
        }
    }

    /// The cells with an event, by their numbers. In the others the hazard is 0, whatever the coefficients are.
    #[must_use]
    pub fn with_event(&self) -> Vec<u32> {
        let all = 0..self.events.len() as u32;
        all.filter(|cell| self.events[*cell as usize] > 0).collect()
    }

    /// The log hazard of each cell with an event, without any column, and the log-likelihood there.
    #[must_use]
    pub fn without_columns(&self) -> (Vec<f64>, f64) {
        let mut log_likelihood = 0.0;
        let mut hazards = Vec::new();
        for (events, followed) in self.events.iter().zip(&self.followed) {
            if *events > 0 {
                let hazard = libm::log(*events as f64 / followed);
                log_likelihood += *events as f64 * (hazard - 1.0);
                hazards.push(hazard);
            }
        }
        (hazards, log_likelihood)
    }

    /// The hazard up to some of the ends, rising: neighbours are joined until each step has at least so many events, and the
    /// last is as long as it must be. `hazards` are those of the cells with an event, at a reference patient: a step's hazard is the mean over
    /// its time. Nothing where there are too few events.
    #[must_use]
    pub fn joined(&self, ends: &[f64], hazards: &[f64], at_least: u64) -> Vec<HazardStep> {
        let mut known = hazards.iter();
        let mut steps: Vec<HazardStep> = Vec::new();
        let (mut events, mut cumulative, mut begin, mut before) = (0, 0.0, 0.0, 0.0);
        for (cell, end) in ends.iter().enumerate() {
            let own = match self.events[cell] {
                0 => 0.0,
                _ => known.next().copied().unwrap_or(0.0),
            };
            cumulative += own * (end - before);
            before = *end;
            events += self.events[cell];
            if events >= at_least {
                steps.push(HazardStep {
                    from: begin,
                    until: *end,
                    hazard: cumulative / (end - begin),
                    cumulative: None,
                });
                (events, cumulative, begin) = (0, 0.0, *end);
            }
        }
        if let Some(last) = steps.last_mut()
            && last.until < before
        {
            let all = last.hazard * (last.until - last.from) + cumulative;
            (last.until, last.hazard) = (before, all / (before - last.from));
        }
        steps
    }
}

/// A hazard that is constant for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HazardStep {
    /// After this time.
    pub from: f64,
    /// Up to this.
    pub until: f64,
    /// Events a unit of time.
    pub hazard: f64,
    /// The interval of 95 % of the cumulative hazard at its end, of a patient whose numbers are means and whose levels are the first; none
    /// where nobody knows how often it holds.
    pub cumulative: Option<[f64; 2]>,
}

impl std::fmt::Debug for Exposure {
    /// Shape only: times belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Exposure")
            .field("patients", &self.event.len())
            .field("cells", &self.cells())
            .finish_non_exhaustive()
    }
}
