//! What a site does in a run of regression: sums over its patients, and its last word on the fit.

mod at_site;
pub(crate) mod explain;
mod results;
mod risks;
mod rounded;

// By this name the list of methods knows it.
pub(super) use self::Regressor as Own;
use super::SiteRun;
use super::preparation::Prepared;
use super::scores::{assessed, of_log_odds};
use crate::cases::record::{Learned, LearnedRegression, Record};
use crate::run::stop::Stop;
use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, Axis, s};
use privacy::Steepness;
use protocol::failure::Code;
use protocol::message::regression::{Design, Evaluating, Finishing, Request};
use protocol::message::{Answer, PairCounts, Summary, regression as message};
use protocol::method::regression::settings::{
    Baseline, REGRESSION_RULE, RegressionSettings, WEIGHTED_RULE,
};
use results::RegressionResults;
use rounded::Rounded;
use similarity::cohort::Outcome;
use similarity::compare::{Comparison, Weighted};
use similarity::judge::predicted::Predicted;
use similarity::learn::regression::Ties;
use similarity::learn::regression::cox::FollowUp;
use similarity::learn::regression::exponential::Exposure;
use similarity::learn::regression::glm::Family;
use similarity::learn::regression::rows;
use similarity::learn::regression::sums::Sums;
use similarity::learn::regression::terms::Terms;
use similarity::numeric::portable::image;
use similarity::uses::cases::nearest_others;
use similarity::uses::nearest::{Nearest, Neighbour};
use std::sync::Arc;

/// Pairs of patients that the search for neighbours compares at most.
const PAIRS_MAX: usize = 100_000_000;

/// A regression at one site.
pub(super) struct Regressor {
    settings: RegressionSettings,
    /// Into how many folds the patients are parted, where some are held out.
    folds: u32,
    /// Made once a preparation and again for another design.
    made: Option<(Arc<Design>, Made)>,
}

/// The patients as a design has them.
struct Made {
    /// n x p, ones first where there is a constant.
    matrix: Array2<f64>,
    target: Target,
    /// How what these patients add to a sum is rounded; none where it is exact.
    rounding: Option<Rounded>,
}

/// What is regressed.
enum Target {
    Glm(Family, Array1<f64>),
    Cox {
        follow_up: FollowUp,
        ties: Ties,
        horizon: f64,
    },
    Exponential(Exposure),
}

/// Patients, who make no pairs here.
pub(super) fn summary(site: &SiteRun) -> Summary {
    Summary {
        patients: site.cohort.cohort.patients() as u64,
        pairs: PairCounts {
            similar: 0,
            dissimilar: 0,
        },
    }
}

impl Regressor {
    pub(super) fn new(settings: RegressionSettings) -> Self {
        Self {
            folds: settings.parts,
            settings,
            made: None,
        }
    }

    /// Lets go of what was made of another preparation.
    pub(super) fn forget(&mut self) {
        self.made = None;
    }

    pub(super) fn answer(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        request: &Request,
    ) -> Result<Answer, Stop> {
        match request {
            Request::Evaluate(point) => self.evaluate(site, prepared, point),
            Request::Test(point) => self.test(site, prepared, point),
            Request::Finish(finishing) => self.finish(site, prepared, finishing),
        }
    }

    fn evaluate(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        point: &Evaluating,
    ) -> Result<Answer, Stop> {
        let at_most = self.settings.cell_patients_max();
        let (made, at) = self.at(site, prepared, point)?;
        let design = made.matrix.view();
        let sums = match &made.target {
            Target::Exponential(exposure) if point.design.counts_cells() => {
                return Ok(Answer::Regression(message::Answer::Cells {
                    sums: made.rounded(exposure.sums(&design, &at), &at),
                    counted: exposure.counted(at_most),
                }));
            }
            Target::Glm(family, y) => family.sums(&design, y, &at),
            Target::Cox {
                follow_up, ties, ..
            } => follow_up.sums(&design, &at, *ties),
            Target::Exponential(exposure) => exposure.sums(&design, &at),
        };
        Ok(Answer::Regression(message::Answer::Likelihood(
            made.rounded(sums, &at),
        )))
    }

    fn test(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        point: &Evaluating,
    ) -> Result<Answer, Stop> {
        let (made, at) = self.at(site, prepared, point)?;
        let design = made.matrix.view();
        let sums = match &made.target {
            Target::Glm(..) => {
                let text = "the coordinator asked for a test of proportional hazards, which this regression does not have";
                return Err(Stop::failed(Code::Protocol, text));
            }
            Target::Cox {
                follow_up,
                ties,
                horizon,
            } => {
                let times = follow_up.times().iter();
                let scale: Vec<f64> = times.map(|time| time / horizon).collect();
                follow_up.sums_with_time(&design, &at, *ties, &scale)
            }
            Target::Exponential(exposure) => exposure.sums_with_time(&design, &at),
        };
        Ok(Answer::Regression(message::Answer::Proportionality(
            made.rounded(sums, &at),
        )))
    }

    /// The patients as the point's design has them, and its coefficients.
    fn at(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        point: &Evaluating,
    ) -> Result<(&Made, Array1<f64>), Stop> {
        let design = &point.design;
        let is_known = self.made.as_ref().is_some_and(|(known, _)| known == design);
        if !is_known {
            self.made = None;
            self.made = Some((
                Arc::clone(design),
                Made::new(site, prepared, design, (&self.settings, self.folds))?,
            ));
        }
        let made = self.made.as_ref().map(|(_, made)| made);
        let made = made.ok_or_else(Stop::early)?;
        let (found, wanted) = (point.at.len(), design.cells.len() + made.matrix.ncols());
        if found != wanted {
            let text = format!("found {found} coefficients, wanted {wanted}");
            return Err(Stop::failed(Code::Protocol, text));
        }
        Ok((made, point.at.iter().copied().collect()))
    }

    fn finish(
        &mut self,
        site: &SiteRun,
        prepared: &Prepared,
        finishing: &Finishing,
    ) -> Result<Answer, Stop> {
        let point = &finishing.point;
        let neighbours = self.settings.neighbours;
        let (made, at) = self.at(site, prepared, point)?;
        let outcome = site.cohort.cohort.outcome();
        let predictors = image(&made.matrix, &at.slice(s![point.design.cells.len()..]));
        let predicted = Predicted::of_linear(&predictors, outcome);
        let shares = of_log_odds(&predictors, outcome);
        let weighing = match &finishing.weights {
            Some(weights) if weights.len() != point.at.len() => {
                let (found, wanted) = (weights.len(), point.at.len());
                let text = format!("found {found} weights, wanted {wanted}");
                return Err(Stop::failed(Code::Protocol, text));
            }
            Some(weights) => weights,
            None => &point.at,
        };
        let weighing = Evaluating {
            design: Arc::clone(&point.design),
            at: Arc::clone(weighing),
        };
        let (terms, own) = terms_and_own(site, prepared, &weighing, made.has_constant());
        let record = Record::new(
            &site.job,
            &site.cohort,
            Learned::Regression(LearnedRegression::new(
                &terms,
                own.clone(),
                finishing.common.as_deref(),
            )),
        );
        let near = near(terms, own, site, neighbours)?;
        let by_neighbours =
            Predicted::of_neighbours(&near, outcome, site.job.cohort.outcome.kind.horizon());
        let results = RegressionResults {
            record,
            predicted: &predicted,
            predictors: &predictors,
            nearest: &near,
            outcome,
            specification: &site.job.cohort.outcome,
            patients: &site.cohort.patients,
            risks: risks::risks(
                (outcome, &site.job.cohort.outcome),
                &predictors,
                (self.settings.baseline, point),
            ),
        };
        results::write(&results, &site.folder)
            .map_err(|error| Stop::failed(Code::Results, error.to_string()))?;
        let rules = [
            (REGRESSION_RULE, 0, &predicted),
            (WEIGHTED_RULE, neighbours, &by_neighbours),
        ];
        let assessed = assessed(&rules, outcome, &shares);
        Ok(Answer::Assessed(assessed))
    }
}

impl Made {
    fn new(
        site: &SiteRun,
        prepared: &Prepared,
        design: &Design,
        (settings, folds): (&RegressionSettings, u32),
    ) -> Result<Self, Stop> {
        let whole = site.cohort.cohort.outcome();
        let (outcome, training) = match design.fold {
            None => (whole.clone(), None),
            Some(fold) => {
                let training = site.parted(folds)?.split(fold as usize).training;
                (whole.select(&training), Some(training))
            }
        };
        let target = Target::of(site, &outcome, (settings, design))?;
        let matrix = columns(
            prepared,
            design,
            (target.has_constant(), training.as_deref()),
        )?;
        let rounding = Rounded::of((site, settings, design), &outcome, (&matrix, &target))?;
        Ok(Self {
            matrix,
            target,
            rounding,
        })
    }

    /// Sums over these patients, as finely as they may be known.
    fn rounded(&self, sums: Sums, at: &Array1<f64>) -> Sums {
        match &self.rounding {
            Some(rounding) => rounding.rounded(sums, &self.matrix, at),
            None => sums,
        }
    }

    fn has_constant(&self) -> bool {
        self.target.has_constant()
    }
}

/// The patients, or some of them, by the rows of a design, with ones first where there is a constant.
pub(super) fn columns(
    prepared: &Prepared,
    design: &Design,
    (has_constant, some): (bool, Option<&[usize]>),
) -> Result<Array2<f64>, Stop> {
    let all = prepared.matrix();
    let rows: Vec<usize> = design.rows.iter().map(|row| *row as usize).collect();
    if rows.iter().any(|row| *row >= all.ncols()) {
        let text = "the coordinator asked for rows that the prepared patients do not have";
        return Err(Stop::failed(Code::Protocol, text));
    }
    let ones = usize::from(has_constant);
    let patients = some.map_or(all.nrows(), <[usize]>::len);
    let mut matrix = Array2::ones((patients, rows.len() + ones));
    let targets = matrix.axis_iter_mut(Axis(0)).into_par_iter().enumerate();
    targets.for_each(|(place, mut target)| {
        let patient = all.row(some.map_or(place, |some| some[place]));
        for (entry, row) in target.iter_mut().skip(ones).zip(&rows) {
            *entry = patient[*row];
        }
    });
    Ok(matrix)
}

impl Target {
    fn of(
        site: &SiteRun,
        outcome: &Outcome,
        (settings, design): (&RegressionSettings, &Design),
    ) -> Result<Self, Stop> {
        match outcome {
            Outcome::Numeric(values) => Ok(Self::Glm(Family::Linear, values.clone())),
            Outcome::Classes { codes, .. } => {
                Ok(Self::Glm(Family::Logistic, codes.mapv(f64::from)))
            }
            Outcome::Survival { time, event } => {
                let horizon = site.job.cohort.outcome.kind.horizon();
                match settings.baseline {
                    Baseline::Hospital { ties } => Ok(Self::Cox {
                        follow_up: FollowUp::until(time, event, horizon),
                        ties,
                        horizon,
                    }),
                    Baseline::Common { cells } if design.cells.iter().all(|one| *one < cells) => {
                        let exposure = Exposure::new((time, event), horizon, cells, &design.cells);
                        Ok(Self::Exponential(exposure))
                    }
                    Baseline::Common { cells } => {
                        let text = format!(
                            "the coordinator asked for a cell beyond the {cells} of the job"
                        );
                        Err(Stop::failed(Code::Protocol, text))
                    }
                }
            }
        }
    }

    fn has_constant(&self) -> bool {
        matches!(self, Self::Glm(..))
    }
}

/// How steep a point is for the site's patients, held out or not: how far the log odds, or the log hazards, of all of them are from
/// what a constant would predict. None of a linear regression, whose sums say the same wherever they are asked for, nor of rows that
/// are not there, which are never evaluated.
pub(super) fn steepness(
    site: &SiteRun,
    prepared: &Prepared,
    point: &Evaluating,
) -> Option<Steepness> {
    let constant = match site.cohort.cohort.outcome() {
        Outcome::Numeric(_) => return None,
        Outcome::Classes { codes, .. } => Some(log_odds(codes)),
        Outcome::Survival { .. } => None,
    };
    // Hazards of cells are the same for all who are followed there.
    let leading = usize::from(constant.is_some()) + point.design.cells.len();
    let (constants, slopes) = point.at.split_at_checked(leading)?;
    let added = constant.and(constants.first()).copied().unwrap_or(0.0);
    let mut predictors = Array1::from_elem(prepared.matrix().nrows(), added);
    for (row, slope) in point.design.rows.iter().zip(slopes) {
        let row = *row as usize;
        let column = (row < prepared.matrix().ncols()).then(|| prepared.matrix().column(row))?;
        predictors.scaled_add(*slope, &column);
    }
    // A Cox regression says the same whatever is added to all predictors.
    let centre = constant.unwrap_or(predictors.mean().unwrap_or(0.0));
    let squares = predictors.mapv_into(|one| (one - centre).powi(2));
    Some(Steepness::Predictor {
        squares: squares.mean().unwrap_or(f64::NAN),
        centre: constant.unwrap_or(0.0),
    })
}

/// The log odds of the second class, which have an end also where nobody is of one.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn log_odds(codes: &Array1<u32>) -> f64 {
    let second = codes.iter().filter(|code| **code == 1).count();
    let first = codes.len() - second;
    libm::log((second as f64 + 0.5) / (first as f64 + 0.5))
}

/// The regression of a point as a comparison, and what it predicts of every patient before any link.
pub(super) struct Pointed {
    /// None where every coefficient is 0.
    pub(super) weighted: Option<Weighted>,
    pub(super) predictors: Array1<f64>,
}

/// What a point says of the site's patients, held out or not.
pub(super) fn pointed(
    site: &SiteRun,
    prepared: &Prepared,
    point: &Evaluating,
) -> Result<Pointed, Stop> {
    let has_constant = !matches!(site.cohort.cohort.outcome(), Outcome::Survival { .. });
    let matrix = columns(prepared, &point.design, (has_constant, None))?;
    let cells = point.design.cells.len();
    if cells + matrix.ncols() != point.at.len() {
        let (found, wanted) = (point.at.len(), cells + matrix.ncols());
        let text = format!("found {found} coefficients, wanted {wanted}");
        return Err(Stop::failed(Code::Protocol, text));
    }
    let (terms, own) = terms_and_own(site, prepared, point, has_constant);
    Ok(Pointed {
        weighted: Weighted::of(terms, own).ok(),
        predictors: image(&matrix, &Array1::from(point.at[cells..].to_vec())),
    })
}

/// The terms, and the coefficients of their columns in their own units.
fn terms_and_own(
    site: &SiteRun,
    prepared: &Prepared,
    point: &Evaluating,
    has_constant: bool,
) -> (Terms, Vec<f64>) {
    let before = point.design.cells.len() + usize::from(has_constant);
    let fitted: Vec<usize> = point.design.rows.iter().map(|row| *row as usize).collect();
    let features = site.job.cohort.standardised_columns();
    let terms = rows::terms(&features, &prepared.standardisation);
    let own = rows::own_units(
        &terms,
        &prepared.standardisation,
        &fitted,
        &point.at[before.min(point.at.len())..],
    );
    (terms, own)
}

/// The nearest others of each patient by the weighted distance; of a large cohort, of patients at equal steps. Where every coefficient
/// is 0, all patients are equally near, and nobody is a neighbour.
fn near(
    terms: Terms,
    coefficients: Vec<f64>,
    site: &SiteRun,
    k: u32,
) -> Result<Vec<Nearest>, Stop> {
    let cohort = &site.cohort.cohort;
    let Ok(weighted) = Weighted::of(terms, coefficients) else {
        return Ok(vec![Nearest::default(); cohort.patients()]);
    };
    let comparison = Comparison::Weighted(weighted);
    let placed = comparison.place_cohort(cohort.columns());
    let placed = placed.map_err(|error| Stop::numeric(Code::Numbers, error))?;
    let patients = cohort.patients();
    let step = patients.saturating_mul(patients).div_ceil(PAIRS_MAX).max(1);
    let looked: Vec<usize> = (0..patients).step_by(step).collect();
    let found = nearest_others(&comparison, &placed, &looked, k as usize);
    let mut near = vec![Nearest::default(); patients];
    for (row, cases) in looked.into_iter().zip(found) {
        let neighbours = cases.cases.iter().map(|case| Neighbour {
            patient: u32::try_from(case.patient).unwrap_or(u32::MAX),
            proximity: case.distance,
        });
        near[row] = Nearest {
            neighbours: neighbours.collect(),
            tied: cases.tied,
        };
    }
    Ok(near)
}
