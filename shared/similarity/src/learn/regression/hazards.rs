//! What belongs to a Cox regression beside its coefficients: the baseline hazard, and whether hazards are proportional.

use ndarray::{Array1, Axis, s};

use crate::cohort::Cohort;
use crate::judge::error::{RiskCase, concordance};
use crate::learn::regression::cox::CellCounts;
use crate::learn::regression::fit::Fit;
use crate::learn::regression::prepare::{Prepared, RegressionError, Settings, Target};
use crate::learn::regression::sums::Sums;
use crate::learn::regression::terms::Terms;
use crate::numeric::chi_squared::above;
use crate::numeric::portable::{Factor, dot, image, product};

/// The hazard of a patient whose linear predictor is 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BaselineHazard {
    /// When events happened, rising.
    pub times: Vec<f64>,
    /// The cumulative hazard at each of these times.
    pub cumulative: Vec<f64>,
}

/// The time against which the effect of a covariate may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeScale {
    /// The rank of the time among all patients' times, equal ones sharing their mean rank.
    Rank,
    /// The time itself.
    Identity,
    /// 1 - S(t-), S by Kaplan and Meier.
    KaplanMeier,
}

/// A score test of proportional hazards (Grambsch and Therneau 1994, as R's `cox.zph` since survival 3.0 computes it).
#[derive(Debug, Clone, PartialEq)]
pub struct ProportionalityTest {
    /// The feature; none of all together.
    pub term: Option<String>,
    /// The statistic.
    pub chi_squared: f64,
    /// Its degrees of freedom.
    pub degrees: usize,
    /// The chance of a larger one where hazards are proportional.
    pub p: f64,
}

impl TimeScale {
    /// The scale at each cell.
    #[must_use]
    pub fn at(self, times: &[f64], counts: &CellCounts) -> Vec<f64> {
        let mut alive = 1.0;
        (0..times.len())
            .map(|cell| match self {
                Self::Rank => {
                    let before = counts.patients - counts.at_risk[cell];
                    before as f64 + (counts.ending[cell] as f64 + 1.0) / 2.0
                }
                Self::Identity => times[cell],
                Self::KaplanMeier => {
                    let gone = 1.0 - alive;
                    let at_risk = counts.at_risk[cell].max(1) as f64;
                    alive *= 1.0 - counts.events[cell] as f64 / at_risk;
                    gone
                }
            })
            .collect()
    }
}

impl BaselineHazard {
    /// From the cells' shares; `shift` is the linear predictor that the cells take for 0.
    fn of_cells(times: &[f64], hazards: &[f64], shift: f64) -> Self {
        let mut sum = 0.0;
        let factor = libm::exp(-shift);
        let cumulative = hazards.iter().map(|hazard| {
            sum += hazard;
            sum * factor
        });
        Self {
            cumulative: cumulative.collect(),
            times: times.to_vec(),
        }
    }

    /// The share of patients with this linear predictor who have no event until `time`.
    #[must_use]
    pub fn survival(&self, time: f64, linear_predictor: f64) -> f64 {
        let known = self.times.partition_point(|other| *other <= time);
        let hazard = known
            .checked_sub(1)
            .map_or(0.0, |last| self.cumulative[last]);
        libm::exp(-hazard * libm::exp(linear_predictor))
    }
}

/// The tests of every feature, and of all together: the score of b_k g(t) x_k, once b_k x_k is known. `sums` are those of
/// [`FollowUp::sums_with_time`] or [`Exposure::sums_with_time`]; `places` has each fitted column of each feature, after the `leading`
/// parameters.
///
/// [`FollowUp::sums_with_time`]: crate::learn::regression::cox::FollowUp::sums_with_time
/// [`Exposure::sums_with_time`]: crate::learn::regression::exponential::Exposure::sums_with_time
#[must_use]
pub fn proportionality(
    sums: &Sums,
    leading: usize,
    terms: &Terms,
    places: &[Vec<usize>],
) -> Vec<ProportionalityTest> {
    // What is fitted, and what may change.
    let size = (sums.gradient.len() + leading) / 2;
    let ranges = [0..size, size..sums.gradient.len()];
    let block = |row: usize, column: usize| {
        let place = s![ranges[row].clone(), ranges[column].clone()];
        sums.information.slice(place)
    };
    let Some(factor) = Factor::of(&block(0, 0)) else {
        return Vec::new();
    };
    // What is left of score and information on the changing effects once the constant ones are known.
    let known = factor.solve(&sums.gradient.slice(s![..size]));
    let gradient = &sums.gradient.slice(s![size..]) - &image(&block(1, 0), &known);
    let left = &block(1, 1) - &product(&block(1, 0), &factor.solve_all(&block(0, 1)));
    let test = |columns: &[usize]| {
        let columns: Vec<usize> = columns.iter().map(|column| column - leading).collect();
        let score = gradient.select(Axis(0), &columns);
        let matrix = left.select(Axis(0), &columns).select(Axis(1), &columns);
        let chi_squared = dot(&score, &Factor::of(&matrix)?.solve(&score));
        Some((chi_squared, columns.len()))
    };
    let told = |term: Option<String>, columns: &[usize]| {
        let (chi_squared, degrees) = test(columns)?;
        Some(ProportionalityTest {
            term,
            chi_squared,
            degrees,
            p: above(chi_squared, degrees),
        })
    };
    let all: Vec<usize> = places.iter().flatten().copied().collect();
    let named = terms.terms().iter().zip(places);
    named
        .filter(|(_, columns)| !columns.is_empty())
        .map(|(term, columns)| told(Some(term.name.clone()), columns))
        .chain([told(None, &all)])
        .flatten()
        .collect()
}

/// What belongs to a Cox regression beside its coefficients.
#[derive(Debug, Clone, PartialEq)]
pub struct CoxDetails {
    /// The hazard of a patient whose linear predictor is 0.
    pub baseline: BaselineHazard,
    /// Whether effects change with time: a test for every feature, and one of all.
    pub proportionality: Vec<ProportionalityTest>,
    /// Harrell's C on the patients of the fit.
    pub concordance: f64,
}

impl Fit {
    /// A Cox regression's baseline hazard, tests of proportional hazards and concordance on the patients it was fitted
    /// to; none of another model.
    ///
    /// # Errors
    /// [`RegressionError`] where `cohort` and `settings` are not those of the fit.
    pub fn cox(
        &self,
        cohort: &Cohort,
        settings: &Settings,
        scale: TimeScale,
    ) -> Result<Option<CoxDetails>, RegressionError> {
        let prepared = Prepared::new(cohort, settings)?;
        let Target::Cox {
            follow_up,
            time,
            event,
            ties,
        } = &prepared.target
        else {
            return Ok(None);
        };
        let kept = &self.scaling.kept;
        let at: Array1<f64> = kept
            .iter()
            .map(|column| self.coefficients[*column] * self.scaling.scales[*column])
            .collect();
        let design = prepared.design.view();
        let counts = follow_up.counts(time);
        let mut scale = scale.at(follow_up.times(), &counts);
        // The scale's own middle is taken off: it changes no test, and keeps digits.
        let seen = scale.iter().zip(&counts.events);
        let sum: f64 = seen.map(|(g, events)| g * *events as f64).sum();
        let middle = sum / follow_up.events() as f64;
        scale.iter_mut().for_each(|g| *g -= middle);
        let sums = follow_up.sums_with_time(&design, &at, *ties, &scale);
        let proportionality = proportionality(&sums, 0, &self.terms, &self.places());
        let shift = dot(&self.coefficients, &self.scaling.means);
        let hazards = follow_up.terms(&design, &at, *ties);
        let baseline = BaselineHazard::of_cells(follow_up.times(), hazards.hazards(), shift);
        let risks = image(&prepared.design, &at);
        let cases: Vec<RiskCase> = (0..time.len())
            .map(|row| RiskCase {
                time: time[row],
                event: event[row],
                risk: risks[row],
            })
            .collect();
        Ok(Some(CoxDetails {
            baseline,
            proportionality,
            concordance: concordance(&cases),
        }))
    }
}

impl Fit {
    /// Each feature's fitted columns, by their places among the fitted, of which a constant, or log hazards, are the first.
    #[must_use]
    pub fn places(&self) -> Vec<Vec<usize>> {
        self.scaling.places(&self.terms, self.model)
    }
}
