//! The rows that a column may have, from its pooled moments and quartiles.

use super::{Feature, FeatureKind, Impute, Scale, Scaling, StandardiseError, Transform};
use crate::cohort::moments::ColumnMoments;
use crate::cohort::quantile::Quartiles;

/// A row is constant where its variance is this small beside its mean square: rounding alone.
const CONSTANT_VARIANCE_RATIO: f64 = 1e-13;

/// A row before it is known to vary.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) transform: Transform,
    pub(super) scaling: Scaling,
    pub(super) varies: bool,
}

/// The rows of one column, by what the job wants done with it.
pub(super) fn candidates(
    feature: &Feature,
    moments: &ColumnMoments,
    quartiles: Option<&Quartiles>,
) -> Result<Vec<Candidate>, StandardiseError> {
    let mut candidates = match (&feature.kind, moments) {
        (
            FeatureKind::Numeric,
            &ColumnMoments::Numeric {
                count,
                sum,
                sum_squares,
                missing,
            },
        ) => {
            if !(sum.is_finite() && sum_squares.is_finite()) {
                return Err(StandardiseError::Unusable {
                    row: feature.name.clone(),
                    field: "sum",
                });
            }
            let observed = Observed::new(count, sum, sum_squares, missing);
            vec![numeric_candidate(feature, &observed, quartiles)]
        }
        (FeatureKind::Categorical { levels }, ColumnMoments::Categorical { counts, missing })
            if levels.len() == counts.len() =>
        {
            level_candidates(&feature.name, levels, counts, *missing)
        }
        _ => {
            return Err(StandardiseError::KindMismatch {
                column: feature.name.clone(),
            });
        }
    };
    if feature.treatment.impute == Impute::Indicator {
        candidates.push(missing_candidate(&feature.name, moments.share_missing()));
    }
    Ok(candidates)
}

/// The values of a numeric column that are present.
struct Observed {
    mean: f64,
    variance: f64,
    /// Share of the patients who have one.
    share: f64,
    varies: bool,
}

impl Observed {
    fn new(count: u64, sum: f64, sum_squares: f64, missing: u64) -> Self {
        let observed = count.max(1) as f64;
        let mean = sum / observed;
        let mean_square = sum_squares / observed;
        let variance = mean_square - mean * mean;
        Self {
            mean,
            variance,
            share: count as f64 / (count + missing).max(1) as f64,
            varies: variance > CONSTANT_VARIANCE_RATIO * mean_square,
        }
    }

    /// Mean and standard deviation of all patients, those without a value at `imputed`: the
    /// variance within the two groups and the variance between them.
    fn with_imputed(&self, imputed: f64) -> (f64, f64) {
        let away = imputed - self.mean;
        let mean = self.mean + (1.0 - self.share) * away;
        let between = self.share * (1.0 - self.share) * away * away;
        (mean, (self.variance * self.share + between).sqrt())
    }
}

fn numeric_candidate(
    feature: &Feature,
    observed: &Observed,
    quartiles: Option<&Quartiles>,
) -> Candidate {
    let imputed = match (feature.treatment.impute, quartiles) {
        (Impute::Median, Some(quartiles)) => quartiles.median,
        _ => observed.mean,
    };
    let (mut mean, mut scale) = observed.with_imputed(imputed);
    if let (Scale::Robust, Some(quartiles)) = (feature.treatment.scale, quartiles) {
        mean = quartiles.median;
        if quartiles.lower < quartiles.upper {
            scale = quartiles.scale();
        }
    }
    Candidate {
        name: feature.name.clone(),
        transform: Transform::Identity,
        scaling: Scaling {
            mean,
            scale,
            imputed,
        },
        varies: observed.varies,
    }
}

fn missing_candidate(name: &str, share: f64) -> Candidate {
    let variance = share * (1.0 - share);
    Candidate {
        name: format!("{name}=missing"),
        transform: Transform::Missing,
        scaling: Scaling {
            mean: share,
            scale: variance.sqrt(),
            imputed: 1.0,
        },
        varies: variance > 0.0,
    }
}

fn level_candidates(name: &str, levels: &[String], counts: &[u64], missing: u64) -> Vec<Candidate> {
    let patients = (counts.iter().sum::<u64>() + missing).max(1) as f64;
    // the first of equally frequent levels, so that every reader picks the same one
    let mode = (0..counts.len()).rev().max_by_key(|&level| counts[level]);
    let row = |(level, label): (usize, &String)| {
        let imputed = if Some(level) == mode { 1.0 } else { 0.0 };
        let mean = (counts[level] as f64 + imputed * missing as f64) / patients;
        let variance = mean * (1.0 - mean);
        Candidate {
            name: format!("{name}={label}"),
            transform: Transform::Level(level as u32),
            scaling: Scaling {
                mean,
                scale: variance.sqrt(),
                imputed,
            },
            varies: variance > 0.0,
        }
    };
    levels.iter().enumerate().map(row).collect()
}
