//! What comes before the rounds: pooled moments and quartiles, from which every site standardises alike, and the pooled
//! correlation where the job wants one.

mod judging;

use super::pooling;
use crate::checks::{self, length, unexpected};
use crate::cohort::{CohortSpecification, GriddedColumn, Grids, MissingShare};
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::message::{
    Answer, ColumnHistogram, ColumnMoments, Preparing, Quartiles, Request, SecondMoments,
    SiteMoments, Totals,
};
use crate::method::Beginning;
use ndarray::{Array1, Array2};
use similarity::cohort::spline::Curve;
use similarity::cohort::standardise::{Feature, Standardisation, StandardiseError};
use similarity::numeric::precision::Precision;
use std::fmt::Debug;
use std::sync::Arc;

/// What a method wants of its preparation.
pub(crate) trait Preparable: Debug {
    /// On which grids what was counted is of use, the columns of the quartiles among them.
    fn grids(&self, cohort: &CohortSpecification) -> Grids;
    /// Whether the sites' second moments are pooled.
    fn multiplies(&self) -> bool;
    /// Whether the sites hear their sum.
    fn correlates(&self) -> bool;
    /// Where each site subtracts its own means, how finely sums say how far these are apart.
    fn centres_sites(&self) -> Option<Precision>;
    /// Pairs that so many patients make at most.
    fn pairs_max(&self, patients: u64) -> u64;
    /// Whether the sums over all sites are enough to learn from.
    fn accepts_totals(&self, totals: &Totals) -> Result<(), Failure>;
    /// Whether so many rows are.
    fn accepts_rows(&self, rows: usize) -> Result<(), Failure>;
    /// Rounds that come after it, at most.
    fn round_limit(&self) -> u32;
}

/// A preparation under way, for the method of settings `P`.
#[derive(Debug, Clone)]
pub(crate) struct Preparation<P> {
    wanted: P,
    cohort: Arc<CohortSpecification>,
    columns: Vec<Feature>,
    grids: Grids,
    /// What the patients come to on them, as it was counted when the study opened.
    counts: Arc<Vec<ColumnHistogram>>,
    step: Step,
}

#[derive(Debug, Clone)]
enum Step {
    Moments,
    Spread {
        preparing: Arc<Preparing>,
        standardisation: Standardisation,
        precision: Precision,
    },
    Prepare {
        preparing: Arc<Preparing>,
        standardisation: Standardisation,
    },
    Correlate {
        preparing: Arc<Preparing>,
        standardisation: Standardisation,
        second_moments: Arc<SecondMoments>,
    },
}

/// What counts come to: the quartiles and splines of the columns that have them.
#[derive(Debug, Default)]
struct Quantiles {
    quartiles: Vec<Quartiles>,
    curves: Vec<Curve>,
}

/// What a preparation leaves.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) standardisation: Standardisation,
    /// Of all sites, where they are pooled and the sites do not hear them.
    pub(crate) second_moments: Option<SecondMoments>,
    pub(crate) totals: Totals,
    /// Of each row the sum of its squares over all patients, at most.
    pub(crate) squares: Vec<f64>,
    /// Patients of all sites together.
    pub(crate) patients: u64,
    /// What all patients together miss.
    pub(crate) missing: Vec<MissingShare>,
}

impl<P: Preparable> Preparation<P> {
    /// A preparation that begins.
    pub(crate) fn new(wanted: P, beginning: &Beginning) -> Self {
        let cohort = Arc::clone(&beginning.cohort);
        Self {
            columns: cohort.standardised_columns(),
            grids: wanted.grids(&cohort),
            wanted,
            counts: Arc::clone(&beginning.counts),
            cohort,
            step: Step::Moments,
        }
    }

    fn close_moments(&mut self, closed: &mut Closed<'_>) -> Closing {
        let SiteMoments {
            columns: moments,
            summary,
        } = match closed.take_sum()? {
            Answer::Moments(sum) => sum,
            other => return Err(unexpected(&other, "moments")),
        };
        let totals = Totals {
            patients: summary.patients,
            pairs: summary.pairs,
            sites: closed.sites.len() as u64,
        };
        self.wanted.accepts_totals(&totals)?;
        self.standardise(moments, totals, closed.notes)
    }

    fn standardise(
        &mut self,
        moments: Vec<ColumnMoments>,
        totals: Totals,
        notes: &mut Vec<String>,
    ) -> Closing {
        let Quantiles { quartiles, curves } = self.quantiles(&moments)?;
        let standardisation = Standardisation::from_moments(&self.columns, &moments, &quartiles)
            .and_then(|made| made.with_curves(&self.columns, &curves))
            .map_err(fault)?;
        notes.extend(constant("over all sites", standardisation.dropped()));
        let preparing = Arc::new(Preparing {
            moments,
            quartiles,
            curves,
            within: None,
            totals,
        });
        let Some(precision) = self.wanted.centres_sites() else {
            return self.prepare(preparing, standardisation);
        };
        self.step = Step::Spread {
            preparing,
            standardisation,
            precision,
        };
        Ok(Turn::Ask)
    }

    fn close_spread(
        &mut self,
        closed: &mut Closed<'_>,
        (preparing, standardisation): (&Preparing, Standardisation),
        precision: Precision,
    ) -> Closing {
        let between = match closed.take_sum()? {
            Answer::Spread(sum) => sum,
            other => return Err(unexpected(&other, "the spread between sites")),
        };
        let Totals {
            patients, sites, ..
        } = preparing.totals;
        let shares = standardisation.shares_within(&between, [patients, sites], precision);
        closed.notes.extend(apart(&standardisation, &shares));
        let before = standardisation.dropped().len();
        let standardisation = standardisation.scaled_within(&shares).map_err(fault)?;
        let dropped = &standardisation.dropped()[before..];
        closed.notes.extend(constant("within every site", dropped));
        let within = Some(shares);
        let preparing = Preparing {
            within,
            ..preparing.clone()
        };
        self.prepare(Arc::new(preparing), standardisation)
    }

    fn prepare(&mut self, preparing: Arc<Preparing>, standardisation: Standardisation) -> Closing {
        self.wanted.accepts_rows(standardisation.rows().len())?;
        self.step = Step::Prepare {
            preparing,
            standardisation,
        };
        Ok(Turn::Ask)
    }

    /// What was counted comes to.
    fn quantiles(&self, moments: &[ColumnMoments]) -> Result<Quantiles, Failure> {
        let columns = &self.grids.columns;
        let values = pooling::pooled(columns, moments, &self.counts)?;
        let wanted = |column: &GriddedColumn| self.columns[column.column].needs_quartiles();
        let all = columns.iter().zip(&values);
        let quartiles = all
            .filter(|(column, _)| wanted(column))
            .map(|(column, values)| pooling::quartiles(column, values.as_ref()));
        Ok(Quantiles {
            quartiles: quartiles.collect(),
            curves: pooling::curves(&self.columns, columns, &values)?,
        })
    }

    fn prepared(
        &self,
        preparing: &Preparing,
        standardisation: Standardisation,
        second_moments: Option<SecondMoments>,
    ) -> Turn<Prepared> {
        let shares = preparing.within.iter().flatten();
        let kept = shares.filter(|share| **share > 0.0);
        let squares = standardisation.squares(&preparing.moments);
        Turn::Done(Prepared {
            squares: match preparing.within {
                Some(_) => squares
                    .iter()
                    .zip(kept)
                    .map(|(all, share)| all * share)
                    .collect(),
                None => squares,
            },
            standardisation,
            second_moments,
            totals: preparing.totals,
            patients: preparing.moments.first().map_or(0, ColumnMoments::patients),
            missing: pooling::missing_shares(&self.columns, &preparing.moments),
        })
    }
}

fn fault(error: StandardiseError) -> Failure {
    Failure::new(Code::Standardise, error.to_string())
}

/// Rows that are the same for all, for the notes.
fn constant(where_: &str, names: &[String]) -> Option<String> {
    let text = format!("Constant {where_}, so excluded: {}.", names.join(", "));
    (!names.is_empty()).then_some(text)
}

/// Features whose means differ between the sites by more than their patients do within them.
fn apart(standardisation: &Standardisation, shares: &[f64]) -> Option<String> {
    let rows = standardisation.rows().iter().zip(shares);
    let names: Vec<&str> = rows
        .filter(|(_, share)| **share < 0.5)
        .map(|(row, _)| row.name())
        .collect();
    let text = format!(
        "The sites differ by more than their patients in: {}. Each site subtracts its own mean, so that the metric \
         does not learn to tell the sites apart.",
        names.join(", ")
    );
    (!names.is_empty()).then_some(text)
}

/// Nothing, in the shape of a site's moments.
fn no_moments(cohort: &CohortSpecification) -> Answer {
    let features = cohort.features.iter();
    let columns = features.map(|feature| feature.kind.blank()).collect();
    Answer::Moments(SiteMoments::blank(columns))
}

/// Nothing, in the shape of second moments.
fn no_second_moments(rows: usize) -> Answer {
    Answer::Prepared(Some(SecondMoments {
        patients: 0,
        sums: Array1::zeros(rows),
        products: Array2::zeros((rows, rows)),
    }))
}

/// Nothing, in the shape of the largest answers to a preparation.
pub(crate) fn largest(wanted: &impl Preparable, cohort: &CohortSpecification) -> Vec<Answer> {
    let multiplied = wanted
        .multiplies()
        .then(|| no_second_moments(cohort.rows_at_most()));
    let spread = wanted
        .centres_sites()
        .map(|_| Answer::Spread(vec![0.0; cohort.rows_at_most()]));
    let described = [no_moments(cohort)].into_iter();
    described.chain(spread).chain(multiplied).collect()
}

type Closing = Result<Turn<Prepared>, Failure>;

impl<P: Preparable> Asking for Preparation<P> {
    fn phase(&self) -> &'static str {
        "standardising"
    }

    fn ask(&self, _: usize) -> Option<Request> {
        Some(match &self.step {
            Step::Moments => Request::Moments,
            Step::Spread { preparing, .. } => Request::Spread(Arc::clone(preparing)),
            Step::Prepare { preparing, .. } => Request::Prepare(Arc::clone(preparing)),
            Step::Correlate { second_moments, .. } => {
                Request::Correlate(Arc::clone(second_moments))
            }
        })
    }

    fn judge(&self, _: usize, patients: u64, answer: &Answer) -> Result<(), Failure> {
        match (&self.step, answer) {
            (Step::Moments, Answer::Moments(SiteMoments { columns, summary })) => {
                judging::summary(summary, patients, self.wanted.pairs_max(patients))?;
                length("features", columns.len(), self.cohort.features.len())?;
                let mut columns = self.cohort.features.iter().zip(columns);
                columns.try_for_each(|(feature, found)| judging::moments(feature, found, patients))
            }
            (
                Step::Prepare {
                    standardisation, ..
                },
                Answer::Prepared(found),
            ) => match (self.wanted.multiplies(), found) {
                (false, None) => Ok(()),
                (true, Some(found)) => {
                    judging::second_moments(found, standardisation.rows().len(), patients)
                }
                (false, Some(_)) => Err(checks::fault("second moments", "no second moments")),
                (true, None) => Err(checks::fault("no second moments", "second moments")),
            },
            (
                Step::Spread {
                    preparing,
                    standardisation,
                    ..
                },
                Answer::Spread(between),
            ) => judging::spread(between, standardisation.rows().len(), preparing.totals),
            (Step::Correlate { .. }, Answer::Correlated) => Ok(()),
            (Step::Moments, other) => Err(unexpected(other, "moments")),
            (Step::Spread { .. }, other) => Err(unexpected(other, "the spread between sites")),
            (Step::Prepare { .. }, other) => {
                Err(unexpected(other, "to hear that the site is prepared"))
            }
            (Step::Correlate { .. }, other) => {
                Err(unexpected(other, "to hear that it has correlated"))
            }
        }
    }

    fn blank(&self) -> Option<Answer> {
        Some(match &self.step {
            Step::Moments => no_moments(&self.cohort),
            Step::Spread {
                standardisation, ..
            } => Answer::Spread(vec![0.0; standardisation.rows().len()]),
            Step::Prepare {
                standardisation, ..
            } if self.wanted.multiplies() => no_second_moments(standardisation.rows().len()),
            Step::Prepare { .. } | Step::Correlate { .. } => return None,
        })
    }

    fn course(&self) -> Course {
        Course {
            round_limit: self.wanted.round_limit(),
            ..Course::default()
        }
    }
}

impl<P: Preparable> Stage for Preparation<P> {
    type Output = Prepared;

    fn close(&mut self, closed: &mut Closed<'_>) -> Closing {
        match &self.step {
            Step::Moments => self.close_moments(closed),
            Step::Spread {
                preparing,
                standardisation,
                precision,
            } => {
                let (preparing, precision) = (Arc::clone(preparing), *precision);
                let standardisation = standardisation.clone();
                self.close_spread(closed, (&preparing, standardisation), precision)
            }
            Step::Prepare {
                preparing,
                standardisation,
            } => {
                let (preparing, standardisation) = (Arc::clone(preparing), standardisation.clone());
                if !self.wanted.multiplies() {
                    return Ok(self.prepared(&preparing, standardisation, None));
                }
                let second_moments = match closed.take_sum()? {
                    Answer::Prepared(Some(sum)) => sum,
                    other => return Err(unexpected(&other, "second moments")),
                };
                if !self.wanted.correlates() {
                    return Ok(self.prepared(&preparing, standardisation, Some(second_moments)));
                }
                self.step = Step::Correlate {
                    preparing,
                    standardisation,
                    second_moments: Arc::new(second_moments),
                };
                Ok(Turn::Ask)
            }
            Step::Correlate {
                preparing,
                standardisation,
                ..
            } => Ok(self.prepared(preparing, standardisation.clone(), None)),
        }
    }
}
