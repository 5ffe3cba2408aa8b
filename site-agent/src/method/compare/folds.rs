//! The patients of each fold, predicted by those of the others.

use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::regression::pointed;
use crate::run::stop::Stop;
use ndarray::{Array2, ArrayView1, s};
use protocol::failure::Code;
use protocol::message::compare::Judging;
use protocol::method::compare::settings::{CompareSettings, Family};
use similarity::cohort::{Cohort, Outcome};
use similarity::compare::proximity::kernel::OutOfBag;
use similarity::compare::{
    CompareError, Comparison, Gower, Measure, Metric, Placed, Proximity, Weighted,
};
use similarity::judge::predicted::Predicted;
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::tuning::tune;
use similarity::learn::forest::{Grown, grow};
use similarity::learn::unpsl::selection::Split;
use similarity::uses::nearest::{Nearest, Neighbour};
use similarity::uses::search::{Queries, Search};

/// What one family says of every patient, who was held out.
pub(super) struct Held {
    pub(super) predicted: Predicted,
    /// Of classes the share of each; empty of a patient without a prediction, and of other outcomes.
    pub(super) shares: Vec<Vec<f64>>,
}

impl Held {
    /// The same of those alone who are judged.
    pub(super) fn of(self, judged: &[bool]) -> Self {
        let values = self.predicted.values().iter().zip(judged);
        let values = values.map(|(value, is_judged)| if *is_judged { *value } else { f64::NAN });
        let shares = self.shares.into_iter().zip(judged);
        let shares = shares.map(|(shares, is_judged)| if *is_judged { shares } else { Vec::new() });
        Self {
            predicted: Predicted::of_values(values.collect()),
            shares: shares.collect(),
        }
    }
}

/// A fold, and those with which its patients are compared.
struct Fold {
    split: Split,
    training: Cohort,
    held_out: Cohort,
    /// Grown on the training patients, where forests are compared.
    forest: Option<Grown>,
}

/// A forest of the trees of all sites, and where it places this site's patients: one forest for all folds, for of each patient only the
/// site's own trees count that have not seen it, and as large a part of the other sites'.
pub(super) struct Common {
    grown: Grown,
    comparison: Comparison,
    placed: Placed,
}

impl Common {
    /// Of a forest of which every site has the trees that it has for a new patient (`InBag::within_evenly`).
    pub(super) fn new(site: &SiteRun, grown: Grown) -> Result<Self, Stop> {
        let bags = Some(OutOfBag::new(&grown.in_bag));
        let made = Proximity::new(grown.forest.clone(), bags).map_err(fault)?;
        let comparison = Comparison::Proximity(made);
        let placed = comparison.place_cohort(site.cohort.cohort.columns());
        Ok(Self {
            placed: placed.map_err(fault)?,
            comparison,
            grown,
        })
    }
}

/// The folds of a site, with what was learnt without each.
pub(super) struct Folded<'s> {
    site: &'s SiteRun,
    prepared: &'s Prepared,
    settings: &'s CompareSettings,
    judging: &'s Judging,
    /// Who is counted.
    judged: &'s [bool],
    folds: Vec<Fold>,
    common: Option<Common>,
    /// Of the features.
    names: Vec<String>,
}

impl<'s> Folded<'s> {
    /// Grows the forests, where some are compared.
    pub(super) fn new(
        site: &'s SiteRun,
        prepared: &'s Prepared,
        settings: &'s CompareSettings,
        (judging, common, judged): (&'s Judging, Option<Common>, &'s [bool]),
    ) -> Result<Self, Stop> {
        let cohort = &site.cohort.cohort;
        let parted = site.parted(settings.folds)?;
        let fold = |fold: usize| {
            let split = parted.split(fold);
            let training = cohort.select(&split.training);
            let forest = match settings.grows_forests() {
                true => Some(grown(site, settings, &training)?),
                false => None,
            };
            Ok(Fold {
                held_out: cohort.select(&split.held_out),
                split,
                training,
                forest,
            })
        };
        let names = cohort.columns().iter().map(|column| column.name.clone());
        Ok(Self {
            folds: (0..parted.count()).map(fold).collect::<Result<_, Stop>>()?,
            names: names.collect(),
            site,
            prepared,
            settings,
            judging,
            judged,
            common,
        })
    }

    /// What a family says of every patient.
    pub(super) fn held_out(&self, family: Family) -> Result<Held, Stop> {
        match family {
            Family::RegressionModel => self.by_regressions(),
            Family::ForestModel => self.by_forests(),
            Family::CommonForestModel => self.by_common_forest(),
            Family::CommonForest => self.near_in_common(),
            Family::Euclidean
            | Family::Cosine
            | Family::Gower
            | Family::Mahalanobis
            | Family::Regression
            | Family::Anchored
            | Family::Unpsl
            | Family::Forest => self.by_neighbours(family),
        }
    }

    fn outcome(&self) -> &Outcome {
        self.site.cohort.cohort.outcome()
    }

    fn by_neighbours(&self, family: Family) -> Result<Held, Stop> {
        let mut near = vec![Nearest::default(); self.outcome_len()];
        for (place, fold) in self.folds.iter().enumerate() {
            let Some(comparison) = self.comparison(family, place, fold)? else {
                continue;
            };
            let candidates = comparison.place_cohort(fold.training.columns());
            let candidates = candidates.map_err(fault)?;
            let placed = comparison.place(fold.held_out.columns()).map_err(fault)?;
            self.search(&comparison, fold, (&candidates, &placed), &mut near);
        }
        Ok(self.by_nearest(&near))
    }

    /// The same by the common forest, which placed all patients of the site at once.
    fn near_in_common(&self) -> Result<Held, Stop> {
        let common = self.common.as_ref().ok_or_else(Stop::early)?;
        let mut near = vec![Nearest::default(); self.outcome_len()];
        for fold in &self.folds {
            let candidates = common.placed.select(&fold.split.training);
            let placed = common.placed.select(&fold.split.held_out);
            self.search(&common.comparison, fold, (&candidates, &placed), &mut near);
        }
        Ok(self.by_nearest(&near))
    }

    /// The nearest of the judged patients of a fold among the others of the site, both placed.
    fn search(
        &self,
        comparison: &Comparison,
        fold: &Fold,
        (candidates, placed): (&Placed, &Placed),
        near: &mut [Nearest],
    ) {
        let held_out = &fold.split.held_out;
        let is_judged = |row: &usize| self.judged[held_out[*row]];
        let rows: Vec<usize> = (0..placed.patients()).filter(is_judged).collect();
        let queries = Queries {
            placed,
            rows: &rows,
            own: &vec![None; rows.len()],
        };
        let search = Search::new(comparison, candidates);
        let found = search.nearest(&queries, self.settings.neighbours as usize);
        for (row, cases) in rows.iter().zip(found) {
            let of_cohort = |case: &similarity::uses::cases::Case| Neighbour {
                patient: u32::try_from(fold.split.training[case.patient]).unwrap_or(u32::MAX),
                proximity: case.distance,
            };
            near[held_out[*row]].neighbours = cases.cases.iter().map(of_cohort).collect();
        }
    }

    fn by_nearest(&self, near: &[Nearest]) -> Held {
        let outcome = self.outcome();
        let horizon = self.site.job.cohort.outcome.kind.horizon();
        Held {
            predicted: Predicted::of_neighbours(near, outcome, horizon),
            shares: near.iter().map(|near| shares(near, outcome)).collect(),
        }
    }

    fn outcome_len(&self) -> usize {
        self.site.cohort.cohort.patients()
    }

    /// What compares the patients of a fold with the others; none where by it all patients are alike.
    fn comparison(
        &self,
        family: Family,
        place: usize,
        fold: &Fold,
    ) -> Result<Option<Comparison>, Stop> {
        let standardisation = || self.prepared.standardisation.clone();
        let plain =
            |measure| Comparison::Metric(Metric::plain(&self.names, standardisation(), measure));
        let training = fold.training.columns();
        Ok(match family {
            Family::Euclidean => Some(plain(Measure::Euclidean)),
            Family::Cosine => Some(plain(Measure::Cosine)),
            Family::Gower => Some(Comparison::Gower(Gower::of_columns(training))),
            Family::Mahalanobis => {
                let made = Metric::mahalanobis(&self.names, standardisation(), training);
                Some(Comparison::Metric(made.map_err(fault)?))
            }
            Family::Unpsl => {
                let metric = self.judging.metrics.get(place).ok_or_else(Stop::early)?;
                let rows = self.prepared.matrix().ncols().min(metric.nrows());
                let metric: Array2<f64> = metric.slice(s![..rows, ..]).to_owned();
                let measure = Measure::Euclidean;
                match Metric::learned(&self.names, standardisation(), metric, measure) {
                    Err(CompareError::Empty) => None,
                    made => Some(Comparison::Metric(made.map_err(fault)?)),
                }
            }
            Family::Regression => self.weighted(place)?.map(Comparison::Weighted),
            Family::Anchored => {
                let weighted = self.weighted(place)?;
                weighted.map(|one| Comparison::Weighted(one.anchored()))
            }
            Family::Forest => {
                let grown = fold.forest.as_ref().ok_or_else(Stop::early)?;
                let bags = Some(OutOfBag::new(&grown.in_bag));
                let made = Proximity::new(grown.forest.clone(), bags);
                Some(Comparison::Proximity(made.map_err(fault)?))
            }
            Family::CommonForest
            | Family::RegressionModel
            | Family::ForestModel
            | Family::CommonForestModel => None,
        })
    }

    /// The distance that the regression without a fold weighs; none where every coefficient is 0.
    fn weighted(&self, place: usize) -> Result<Option<Weighted>, Stop> {
        let point = self.judging.regressions.get(place);
        let point = point.ok_or_else(Stop::early)?;
        Ok(pointed(self.site, self.prepared, point)?.weighted)
    }

    fn by_regressions(&self) -> Result<Held, Stop> {
        let outcome = self.outcome();
        let mut predicted = vec![f64::NAN; self.outcome_len()];
        let mut shares = vec![Vec::new(); predicted.len()];
        for (fold, point) in self.folds.iter().zip(self.judging.regressions.iter()) {
            let predictors = pointed(self.site, self.prepared, point)?.predictors;
            let all = Predicted::of_linear(&predictors, outcome);
            for patient in &fold.split.held_out {
                predicted[*patient] = all.values()[*patient];
                if matches!(outcome, Outcome::Classes { .. }) {
                    let second = 1.0 / (1.0 + libm::exp(-predictors[*patient]));
                    shares[*patient] = vec![1.0 - second, second];
                }
            }
        }
        Ok(Held {
            predicted: Predicted::of_values(predicted),
            shares,
        })
    }

    fn by_common_forest(&self) -> Result<Held, Stop> {
        let common = self.common.as_ref().ok_or_else(Stop::early)?;
        let columns = self.site.cohort.cohort.columns();
        let found = common.grown.predict_out_of_bag(columns);
        let found = found.map_err(forest_fault)?;
        let of_patient = |shares: ArrayView1<'_, f64>| match shares.sum().is_nan() {
            true => Vec::new(),
            false => shares.to_vec(),
        };
        Ok(Held {
            predicted: Predicted::of_forest(&found),
            shares: match &found {
                Prediction::Classes(of_classes) => {
                    of_classes.outer_iter().map(of_patient).collect()
                }
                Prediction::Numeric(_) | Prediction::CumulativeHazard(_) => {
                    vec![Vec::new(); self.outcome_len()]
                }
            },
        })
    }

    fn by_forests(&self) -> Result<Held, Stop> {
        let mut predicted = vec![f64::NAN; self.outcome_len()];
        let mut shares = vec![Vec::new(); predicted.len()];
        for fold in &self.folds {
            let grown = fold.forest.as_ref().ok_or_else(Stop::early)?;
            let found = grown.forest.predict(fold.held_out.columns());
            let found = found.map_err(forest_fault)?;
            let all = Predicted::of_forest(&found);
            for (place, patient) in fold.split.held_out.iter().enumerate() {
                predicted[*patient] = all.values()[place];
                if let Prediction::Classes(of_classes) = &found {
                    shares[*patient] = of_classes.row(place).to_vec();
                }
            }
        }
        Ok(Held {
            predicted: Predicted::of_values(predicted),
            shares,
        })
    }
}

/// A forest of the training patients, as coarse as its out-of-bag error asks where the job does not say.
fn grown(site: &SiteRun, settings: &CompareSettings, training: &Cohort) -> Result<Grown, Stop> {
    let forest = &settings.forest;
    let mut growing = forest.growing(training.outcome(), forest.trees);
    if forest.node_size.is_none() {
        let tuned = tune(training, &growing, site.seed).map_err(forest_fault)?;
        growing = tuned.applied_to(growing);
    }
    grow(training, &growing, site.seed).map_err(forest_fault)
}

/// The share of each class among neighbours; nothing without neighbours, or classes.
#[allow(clippy::cast_precision_loss)] // neighbours are few
fn shares(near: &Nearest, outcome: &Outcome) -> Vec<f64> {
    let Outcome::Classes { codes, levels } = outcome else {
        return Vec::new();
    };
    if near.neighbours.is_empty() {
        return Vec::new();
    }
    let mut shares = vec![0.0; levels.len()];
    for other in &near.neighbours {
        shares[codes[other.patient as usize] as usize] += 1.0 / near.neighbours.len() as f64;
    }
    shares
}

fn fault(error: CompareError) -> Stop {
    Stop::numeric(Code::Numbers, error)
}

fn forest_fault(error: impl std::error::Error) -> Stop {
    Stop::failed(Code::Forest, error.to_string())
}
