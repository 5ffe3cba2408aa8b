//! Cox regression from risk-set sums.
//!
//! Events happen in *cells*: of an exact fit every distinct event time is one, of a federated fit every step of a common
//! grid. In cell c with d events let, over the patients at risk, S0 = sum exp(x'b), S1 = sum x exp(x'b),
//! S2 = sum x x' exp(x'b), and E0, E1, E2 the same over those with the event. With f_k = k / d of Efron's approximation
//! (0 of Breslow's),
//!
//! ```text
//! log-likelihood  sum over events of x'b - sum_k log(S0 - f_k E0)        k = 0 ... d - 1
//! gradient        sum over events of x   - sum_k m_k,   m_k = (S1 - f_k E1) / (S0 - f_k E0)
//! information     sum_k (S2 - f_k E2) / (S0 - f_k E0) - m_k m_k'
//! ```
//!
//! The six sums are all that a site adds ([`RiskSets`]); those of all sites, added, give the fit of all patients.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::learn::regression::sums::Sums;

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
    /// The time of each cell, rising: its event time, or its upper end.
    times: Vec<f64>,
    /// The last cell in which each patient is at risk, or [`NEVER`].
    last: Vec<u32>,
    event: Vec<bool>,
    /// Patients by falling last cell; those of one cell by row.
    order: Vec<u32>,
}

/// Patients by cells. Those of several sites on one grid add up.
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

/// Sums of 1, x and x x' with weights exp(x'b).
#[derive(Debug, Clone, PartialEq)]
struct Weighted {
    zero: f64,
    one: Vec<f64>,
    /// The lower triangle, row by row.
    two: Vec<f64>,
}

/// The sums of one cell over a site's patients.
#[derive(Debug, Clone, PartialEq)]
pub struct RiskSet {
    events: f64,
    event_sum: Vec<f64>,
    at_risk: Weighted,
    with_event: Weighted,
}

/// The sums of every cell: a site's share at given coefficients.
#[derive(Debug, Clone, PartialEq)]
pub struct RiskSets {
    patients: u64,
    cells: Vec<RiskSet>,
}

/// What a cell adds to the log-likelihood and its derivatives.
pub(crate) struct CellTerms {
    pub(crate) log_likelihood: f64,
    pub(crate) gradient: Array1<f64>,
    pub(crate) information: Array2<f64>,
    /// What it adds to the cumulative baseline hazard.
    pub(crate) hazard: f64,
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
        Self::new(times, last, event.to_vec())
    }

    /// Cells that end at the rising times of `grid`: whoever is followed to within a cell counts as followed to its end.
    /// Beyond the last, all are censored.
    #[must_use]
    pub fn on_grid(time: &Array1<f64>, event: &Array1<bool>, grid: &[f64]) -> Self {
        let (mut last, mut seen) = (Vec::new(), Vec::new());
        for (time, event) in time.iter().zip(event) {
            let cell = grid.partition_point(|end| end < time);
            seen.push(*event && cell < grid.len());
            last.push(match grid.len().checked_sub(1) {
                Some(final_cell) => cell.min(final_cell) as u32,
                None => NEVER,
            });
        }
        Self::new(grid.to_vec(), last, seen)
    }

    fn new(times: Vec<f64>, last: Vec<u32>, event: Vec<bool>) -> Self {
        let mut order: Vec<u32> = (0..last.len() as u32)
            .filter(|patient| last[*patient as usize] != NEVER)
            .collect();
        order.sort_by_key(|patient| std::cmp::Reverse(last[*patient as usize]));
        Self {
            times,
            last,
            event,
            order,
        }
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

    /// Patients by cells; `time` is theirs, of which an exact fit's cells are only some.
    #[must_use]
    pub fn counts(&self, time: &Array1<f64>, exact: bool) -> CellCounts {
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
            counts.ending[cell] += u64::from(!exact || time[patient] == self.times[cell]);
        }
        for cell in (1..self.times.len()).rev() {
            counts.at_risk[cell - 1] += counts.at_risk[cell];
        }
        counts
    }

    /// Visits the cells from the last to the first with their sums at coefficients `at`, over the patients of `design`,
    /// n x p.
    pub(crate) fn each_cell(
        &self,
        design: &ArrayView2<f64>,
        at: &Array1<f64>,
        mut visit: impl FnMut(usize, &RiskSet),
    ) {
        let eta = design.dot(at);
        let mut set = RiskSet::empty(design.ncols());
        let mut coming = self.order.iter().copied().peekable();
        for cell in (0..self.times.len()).rev() {
            set.without_events();
            let here = |patient: &u32| self.last[*patient as usize] as usize == cell;
            while let Some(patient) = coming.next_if(here) {
                let row = patient as usize;
                set.add(design.row(row), eta[row].exp(), self.event[row]);
            }
            visit(cell, &set);
        }
    }
}

impl CellCounts {
    /// Adds the counts of another site on the same grid.
    pub fn merge(&mut self, other: &Self) {
        self.patients += other.patients;
        let add = |own: &mut Vec<u64>, other: &[u64]| {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own += other);
        };
        add(&mut self.at_risk, &other.at_risk);
        add(&mut self.events, &other.events);
        add(&mut self.ending, &other.ending);
    }
}

impl Weighted {
    fn zero(columns: usize) -> Self {
        Self {
            zero: 0.0,
            one: vec![0.0; columns],
            two: vec![0.0; columns * (columns + 1) / 2],
        }
    }

    fn add(&mut self, x: ArrayView1<'_, f64>, weight: f64) {
        self.zero += weight;
        let mut rest = self.two.as_mut_slice();
        for (k, one) in self.one.iter_mut().enumerate() {
            let part = weight * x[k];
            *one += part;
            let (row, below) = rest.split_at_mut(k + 1);
            row.iter_mut()
                .zip(x)
                .for_each(|(sum, other)| *sum += part * other);
            rest = below;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.zero += other.zero;
        let add = |own: &mut [f64], other: &[f64]| {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own += other);
        };
        add(&mut self.one, &other.one);
        add(&mut self.two, &other.two);
    }

    fn clear(&mut self) {
        self.zero = 0.0;
        self.one.fill(0.0);
        self.two.fill(0.0);
    }
}

impl RiskSet {
    fn empty(columns: usize) -> Self {
        Self {
            events: 0.0,
            event_sum: vec![0.0; columns],
            at_risk: Weighted::zero(columns),
            with_event: Weighted::zero(columns),
        }
    }

    fn without_events(&mut self) {
        self.events = 0.0;
        self.event_sum.fill(0.0);
        self.with_event.clear();
    }

    fn add(&mut self, x: ArrayView1<'_, f64>, weight: f64, event: bool) {
        self.at_risk.add(x, weight);
        if event {
            self.events += 1.0;
            self.event_sum
                .iter_mut()
                .zip(x)
                .for_each(|(sum, x)| *sum += x);
            self.with_event.add(x, weight);
        }
    }

    /// Adds the sums of another site at the same coefficients.
    pub fn merge(&mut self, other: &Self) {
        self.events += other.events;
        let sums = self.event_sum.iter_mut().zip(&other.event_sum);
        sums.for_each(|(sum, other)| *sum += other);
        self.at_risk.merge(&other.at_risk);
        self.with_event.merge(&other.with_event);
    }

    /// What the cell adds at coefficients `at`.
    pub(crate) fn terms(&self, at: &Array1<f64>, ties: Ties) -> CellTerms {
        let columns = self.event_sum.len();
        let mut gradient = Array1::from(self.event_sum.clone());
        let mut log_likelihood = gradient.dot(at);
        let mut information = Array2::zeros((columns, columns));
        let mut hazard = 0.0;
        let mut mean = vec![0.0; columns];
        // Whole numbers of events, far below 2^53.
        for event in 0..self.events as u64 {
            let share = match ties {
                Ties::Efron => event as f64 / self.events,
                Ties::Breslow => 0.0,
            };
            let (risk, dead) = (&self.at_risk, &self.with_event);
            let whole = risk.zero - share * dead.zero;
            log_likelihood -= whole.ln();
            hazard += 1.0 / whole;
            let mut entries = risk.two.iter().zip(&dead.two);
            for k in 0..columns {
                mean[k] = (risk.one[k] - share * dead.one[k]) / whole;
                gradient[k] -= mean[k];
                for (l, (risk, dead)) in entries.by_ref().take(k + 1).enumerate() {
                    information[(k, l)] += (risk - share * dead) / whole - mean[k] * mean[l];
                }
            }
        }
        for k in 0..columns {
            for l in 0..k {
                information[(l, k)] = information[(k, l)];
            }
        }
        CellTerms {
            log_likelihood,
            gradient,
            information,
            hazard,
        }
    }
}

impl RiskSets {
    /// The sums of every cell over the patients of `design`, n x p, at coefficients `at`.
    #[must_use]
    pub fn of(follow_up: &FollowUp, design: &ArrayView2<f64>, at: &Array1<f64>) -> Self {
        let mut cells = Vec::with_capacity(follow_up.times.len());
        follow_up.each_cell(design, at, |_, set| cells.push(set.clone()));
        cells.reverse();
        Self {
            patients: design.nrows() as u64,
            cells,
        }
    }

    /// Adds the sums of another site on the same grid at the same coefficients.
    pub fn merge(&mut self, other: &Self) {
        self.patients += other.patients;
        self.cells
            .iter_mut()
            .zip(&other.cells)
            .for_each(|(own, other)| own.merge(other));
    }

    /// The log-likelihood and its derivatives at the coefficients of the sums.
    #[must_use]
    pub fn sums(&self, at: &Array1<f64>, ties: Ties) -> Sums {
        let mut total = Sums::zero(at.len());
        total.patients = self.patients;
        // In the order of an exact fit, so that one site alone gives its bits.
        for cell in self.cells.iter().rev() {
            total.add_cell(cell, at, ties);
        }
        total
    }
}

impl Sums {
    fn add_cell(&mut self, cell: &RiskSet, at: &Array1<f64>, ties: Ties) {
        if cell.events > 0.0 {
            let terms = cell.terms(at, ties);
            self.log_likelihood += terms.log_likelihood;
            self.gradient += &terms.gradient;
            self.information += &terms.information;
        }
    }

    /// The log-likelihood and its derivatives of one site's patients alone, cell by cell, without keeping them.
    #[must_use]
    pub fn of_cox(
        follow_up: &FollowUp,
        design: &ArrayView2<f64>,
        at: &Array1<f64>,
        ties: Ties,
    ) -> Self {
        let mut total = Self::zero(at.len());
        total.patients = design.nrows() as u64;
        follow_up.each_cell(design, at, |_, cell| total.add_cell(cell, at, ties));
        total
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
