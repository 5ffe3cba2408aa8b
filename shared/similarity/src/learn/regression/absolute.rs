//! The risk of an event by a time, where all have one baseline that is constant in cells of time, and how sure it is.
//!
//! With h_c the hazard of cell c, l_c its length and x a patient's columns, the cumulative hazard is H = sum of l_c h_c exp(x'b). V being the
//! covariance of log hazards and coefficients, by the delta method
//!
//! ```text
//! var(log H) = g'Vg,   g = (l_c h_c exp(x'b) / H of every cell, x)
//! ```
//!
//! A cell's hazard is a mean over those at risk, who become fewer: from y_0 to y_1, and y on average. Whatever the hazard does within the cell,
//! its integral is between y / y_0 and y / y_1 times what that mean says. An interval goes from the lower of these to the upper, so it holds
//! for other hazards than constant ones too. Within a step it goes from the lower end at its beginning to the upper end at its end.

use ndarray::{Array1, Array2, s};

use crate::learn::regression::exponential::{Cells, HazardStep};
use crate::numeric::portable::{dot, image};

/// The normal number that 97.5 % are below.
const NORMAL: f64 = 1.959_963_984_540_054;
/// Events up to a time for which an interval is given, at least.
const EVENTS_MIN: u64 = 20;

/// The baseline of a fit, and how sure it is.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonHazard {
    cells: Vec<Cell>,
    /// Of the log hazards of cells with an event, then the coefficients.
    covariance: Array2<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Cell {
    events: u64,
    /// The cumulative hazard that it adds for a patient of zeros.
    added: f64,
    /// The factors between which that is, whatever the hazard does within the cell.
    bounds: [f64; 2],
}

/// The patient with which others are compared: its numbers are means and its levels the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// One a coefficient.
    pub columns: Vec<f64>,
    /// x'b.
    pub predictor: f64,
}

/// How sure the cumulative hazard of the reference is at the end of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Sureness {
    /// Between what it is, whatever the hazard does within cells.
    pub bounds: [f64; 2],
    /// The variance of its logarithm.
    pub variance: f64,
    /// The covariance of its logarithm with each coefficient.
    pub with: Vec<f64>,
}

/// What all hospitals know of a fit with one baseline: enough for the risk of any patient.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonBaseline {
    /// The hazard of a patient of zeros, with intervals of the reference.
    pub steps: Vec<HazardStep>,
    /// One a column, in its own unit.
    pub coefficients: Vec<f64>,
    /// The columns of the reference.
    pub references: Vec<f64>,
    /// Of the coefficients; empty where nobody knows how often intervals hold.
    pub covariance: Array2<f64>,
    /// One a step; empty likewise.
    pub sureness: Vec<Sureness>,
}

/// The risk of an event by a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Risk {
    /// The risk.
    pub value: f64,
    /// Its interval of 95 %; none where the steps have none.
    pub interval: Option<[f64; 2]>,
}

impl CommonHazard {
    /// Of so many patients, all followed from 0, and of cells with these ends. `hazards` are those of the cells with an event, of a
    /// patient of zeros.
    #[must_use]
    pub fn new(
        (cells, patients): (&Cells, u64),
        ends: &[f64],
        hazards: &[f64],
        covariance: Array2<f64>,
    ) -> Self {
        let mut known = hazards.iter();
        let mut before = 0.0;
        let mut at_risk = Vec::new();
        let mut added = Vec::new();
        for ((end, events), followed) in ends.iter().zip(&cells.events).zip(&cells.followed) {
            let length = end - before;
            before = *end;
            at_risk.push(followed / length);
            let hazard = match events {
                0 => 0.0,
                _ => known.next().copied().unwrap_or(0.0),
            };
            added.push(hazard * length);
        }
        let between = between(patients as f64, &at_risk);
        let cell = |cell: usize| Cell {
            events: cells.events[cell],
            added: added[cell],
            bounds: [
                at_risk[cell] / between[cell],
                at_risk[cell] / between[cell + 1],
            ],
        };
        Self {
            cells: (0..at_risk.len()).map(cell).collect(),
            covariance,
        }
    }

    /// How sure the cumulative hazard of the reference is at the end of the first so many cells; none of few events.
    #[must_use]
    pub fn sureness(&self, cells: usize, of: &Reference) -> Option<Sureness> {
        let cells = &self.cells[..cells];
        let events: u64 = cells.iter().map(|cell| cell.events).sum();
        let all: f64 = cells.iter().map(|cell| cell.added).sum();
        if events < EVENTS_MIN {
            return None;
        }
        let own = cells.iter().filter(|cell| cell.events > 0);
        let leading = self.covariance.nrows() - of.columns.len();
        let mut gradient: Vec<f64> = own.map(|cell| cell.added / all).collect();
        gradient.resize(leading, 0.0);
        gradient.extend(&of.columns);
        let gradient = Array1::from(gradient);
        let with = image(&self.covariance, &gradient);
        let bound = |end: usize| -> f64 {
            let parts = cells.iter().map(|cell| cell.added * cell.bounds[end]);
            parts.sum::<f64>() * libm::exp(of.predictor)
        };
        let found = Sureness {
            bounds: [bound(0), bound(1)],
            variance: dot(&gradient, &with),
            with: with.slice(s![leading..]).to_vec(),
        };
        let numbers = found
            .bounds
            .iter()
            .chain([&found.variance])
            .chain(&found.with);
        let is_finite = numbers.copied().all(f64::is_finite);
        is_finite.then_some(found)
    }

    /// The covariance of the coefficients.
    #[must_use]
    pub fn of_coefficients(&self, columns: usize) -> Array2<f64> {
        let leading = self.covariance.nrows() - columns;
        self.covariance.slice(s![leading.., leading..]).to_owned()
    }
}

impl Sureness {
    /// The interval of 95 % of the cumulative hazard of the reference.
    #[must_use]
    pub fn interval(&self) -> [f64; 2] {
        self.of_another(0.0, self.variance)
    }

    /// Of a patient whose predictor is so much more, and the logarithm of whose hazard has this variance.
    fn of_another(&self, shift: f64, variance: f64) -> [f64; 2] {
        let half = NORMAL * variance.max(0.0).sqrt();
        let [low, high] = self.bounds;
        [
            low * libm::exp(shift - half),
            high * libm::exp(shift + half),
        ]
    }
}

/// Those at risk at the beginning of every cell, and at the end of the last: half-way between the means of neighbours, and beyond the last as
/// far from its mean as before it. Never more than before, and never fewer than after.
fn between(patients: f64, at_risk: &[f64]) -> Vec<f64> {
    let mut all = vec![patients];
    all.extend(at_risk.windows(2).map(|two| (two[0] + two[1]) / 2.0));
    let (last, begin) = (
        at_risk.last().copied().unwrap_or(patients),
        all.last().copied().unwrap_or(patients),
    );
    all.push((2.0 * last - begin).max(0.0));
    all
}

impl CommonBaseline {
    /// The risk by `time` of a patient with these columns; none beyond the steps.
    #[must_use]
    pub fn risk(&self, columns: &[f64], time: f64) -> Option<Risk> {
        let pairs = columns.iter().zip(&self.coefficients);
        let predictor: f64 = pairs
            .map(|(column, coefficient)| column * coefficient)
            .sum();
        if self.sureness.is_empty() {
            return risk(&self.steps, predictor, time, &|_| None);
        }
        let own = columns.iter().zip(&self.references);
        let away: Array1<f64> = own.map(|(own, reference)| own - reference).collect();
        let shift = dot(&away, &Array1::from(self.coefficients.clone()));
        let apart = dot(&away, &image(&self.covariance, &away));
        let of_step = |step: usize| {
            let known = &self.sureness[step];
            let with: f64 = away
                .iter()
                .zip(&known.with)
                .map(|(one, with)| one * with)
                .sum();
            Some(known.of_another(shift, known.variance + 2.0 * with + apart))
        };
        risk(&self.steps, predictor, time, &of_step)
    }
}

/// The risk by `time` of the reference, with this predictor; none beyond the steps.
#[must_use]
pub fn risk_of_reference(steps: &[HazardStep], predictor: f64, time: f64) -> Option<Risk> {
    risk(steps, predictor, time, &|step| steps[step].cumulative)
}

/// By the interval of the cumulative hazard at the end of each step.
fn risk(
    steps: &[HazardStep],
    predictor: f64,
    time: f64,
    ends: &dyn Fn(usize) -> Option<[f64; 2]>,
) -> Option<Risk> {
    let reached = steps.iter().position(|step| time <= step.until)?;
    let of_step = |step: &HazardStep| step.hazard * (step.until.min(time) - step.from).max(0.0);
    let cumulative: f64 = steps.iter().map(of_step).sum();
    let by = |hazard: f64| -libm::expm1(-hazard);
    let high = ends(reached);
    let low = match (time < steps[reached].until, reached.checked_sub(1)) {
        (false, _) => high,
        (true, Some(before)) => ends(before),
        (true, None) => Some([0.0, 0.0]),
    };
    Some(Risk {
        value: by(cumulative * libm::exp(predictor)),
        interval: low.zip(high).map(|(low, high)| [by(low[0]), by(high[1])]),
    })
}
