//! What the sites' moments and histograms come to, as sums over the sites.

use crate::checks::unexpected;
use crate::cohort::{GriddedColumn, MissingShare};
use crate::exchange::Answers;
use crate::failure::{Code, Failure};
use crate::limits::MISSING_SHARES_MAX;
use crate::message::{Answer, ColumnHistogram, ColumnMoments, Quartiles, SecondMoments};
use similarity::cohort::quantile::{Group, Histogram, pooled_quartiles};
use similarity::cohort::standardise;

/// Adds a site's moments to those of all.
pub(super) fn merge(pooled: &mut [ColumnMoments], own: &[ColumnMoments]) -> Result<(), Failure> {
    let mismatch = |text: String| Failure::new(Code::Protocol, format!("moments: {text}"));
    if pooled.len() != own.len() {
        return Err(mismatch(format!(
            "found {} columns, wanted {}",
            own.len(),
            pooled.len()
        )));
    }
    for (pooled, own) in pooled.iter_mut().zip(own) {
        pooled
            .merge(own)
            .map_err(|error| mismatch(error.to_string()))?;
    }
    Ok(())
}

/// The second moments of all sites; none where no site gave any.
pub(super) fn second_moments(answers: Answers) -> Result<Option<SecondMoments>, Failure> {
    let mut sum: Option<SecondMoments> = None;
    for answer in answers.into_iter().flatten() {
        let Answer::Prepared(Some(own)) = answer else {
            return Err(unexpected(&answer, "second moments"));
        };
        match &mut sum {
            None => sum = Some(own),
            Some(sum) => sum
                .merge(&own)
                .map_err(|error| Failure::new(Code::Protocol, error.to_string()))?,
        }
    }
    Ok(sum)
}

/// What a site misses of each feature, by its released moments.
pub(super) fn missing_shares(
    features: &[standardise::Feature],
    moments: &[ColumnMoments],
) -> Vec<MissingShare> {
    let features = features.iter().zip(moments);
    let mut shares: Vec<MissingShare> = features
        .filter(|(_, moments)| moments.missing() > 0)
        .map(|(feature, moments)| MissingShare {
            feature: feature.name.clone(),
            share: moments.share_missing(),
        })
        .collect();
    if shares.len() > MISSING_SHARES_MAX {
        shares.sort_by(|one, other| other.share.total_cmp(&one.share));
        shares.truncate(MISSING_SHARES_MAX);
    }
    shares
}

/// Quartiles of every gridded column over all sites; zeros for one without any value, which
/// standardisation drops.
pub(super) fn quartiles(
    columns: &[GriddedColumn],
    moments: &[ColumnMoments],
    answers: Answers,
) -> Result<Vec<Quartiles>, Failure> {
    let mut sites: Vec<Vec<ColumnHistogram>> = Vec::new();
    for answer in answers.into_iter().flatten() {
        let Answer::Quantiles(histograms) = answer else {
            return Err(unexpected(&answer, "quantiles"));
        };
        if histograms.len() != columns.len() {
            let text = format!(
                "quantiles: found {} columns, wanted {}",
                histograms.len(),
                columns.len()
            );
            return Err(Failure::new(Code::Protocol, text));
        }
        sites.push(histograms);
    }
    let mut pooled = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        let own = sites.iter().map(|histograms| &histograms[place]);
        let histograms = own
            .filter(|histogram| !histogram.counts.is_empty())
            .map(|histogram| in_groups(column, histogram))
            .collect::<Result<Vec<Histogram>, Failure>>()?;
        let quartiles = pooled_quartiles(&histograms)
            .map_err(|error| Failure::new(Code::Protocol, error.to_string()))?;
        pooled.push(match quartiles {
            Some(quartiles) => column.resolved(quartiles),
            None if moments.get(column.column).is_some_and(is_empty) => Quartiles {
                lower: 0.0,
                median: 0.0,
                upper: 0.0,
            },
            None => {
                let text = "no site with values of a feature was left to count them; submit the job \
                            again once all sites are connected";
                return Err(Failure::new(Code::Sites, text));
            }
        });
    }
    Ok(pooled)
}

fn is_empty(moments: &ColumnMoments) -> bool {
    moments.missing() == moments.patients()
}

fn in_groups(column: &GriddedColumn, histogram: &ColumnHistogram) -> Result<Histogram, Failure> {
    let groups = histogram.ends.iter().zip(&histogram.counts);
    let groups = groups
        .map(|(end, count)| Group {
            end: *end,
            count: *count,
        })
        .collect();
    Histogram::from_groups(column.grid, groups)
        .map_err(|error| Failure::new(Code::Protocol, error.to_string()))
}
