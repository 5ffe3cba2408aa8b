//! What the sites' moments and histograms come to, as sums over the sites.

use crate::cohort::{GriddedColumn, MissingShare};
use crate::failure::{Code, Failure};
use crate::limits::{MISSING_SHARES_MAX, PUBLISHED_PATIENTS};
use crate::message::{ColumnHistogram, ColumnMoments, Quartiles};
use similarity::cohort::quantile::{Group, Histogram, Pooled};
use similarity::cohort::spline::Curve;
use similarity::cohort::standardise;

/// The share of patients without a value as a result tells it: their number is rounded up to tens, so that nobody reads how many
/// fewer they are.
#[allow(clippy::cast_precision_loss)] // counts of patients
pub(crate) fn published(share: f64, patients: u64) -> f64 {
    let (patients, step) = (patients.max(1) as f64, PUBLISHED_PATIENTS as f64);
    let missing = (share * patients).round();
    ((missing / step).ceil() * step / patients).min(1.0)
}

/// What all patients miss of each feature.
pub(super) fn missing_shares(
    features: &[standardise::Feature],
    moments: &[ColumnMoments],
) -> Vec<MissingShare> {
    let features = features.iter().zip(moments);
    let mut shares: Vec<MissingShare> = features
        .filter(|(_, moments)| moments.missing() > 0)
        .map(|(feature, moments)| MissingShare {
            feature: feature.name.clone(),
            share: published(moments.share_missing(), moments.patients()),
        })
        .collect();
    if shares.len() > MISSING_SHARES_MAX {
        shares.sort_by(|one, other| other.share.total_cmp(&one.share));
        shares.truncate(MISSING_SHARES_MAX);
    }
    shares
}

/// The values of every gridded column over all sites; none of one without any.
pub(super) fn pooled(
    columns: &[GriddedColumn],
    moments: &[ColumnMoments],
    histograms: &[ColumnHistogram],
) -> Result<Vec<Option<Pooled>>, Failure> {
    if histograms.is_empty() && !columns.is_empty() {
        let text = "found no counts of numbers in the study's opening, as an earlier version leaves it; propose the study again under \
                    another name";
        return Err(Failure::new(Code::Study, text));
    }
    if histograms.len() < columns.len() {
        let text = format!(
            "quantiles: found {} columns, wanted {}",
            histograms.len(),
            columns.len()
        );
        return Err(Failure::new(Code::Protocol, text));
    }
    let mut pooled = Vec::with_capacity(columns.len());
    for (column, histogram) in columns.iter().zip(histograms) {
        let groups = match histogram.counts.is_empty() {
            true => Vec::new(),
            false => vec![in_groups(column, histogram)?],
        };
        let values =
            Pooled::of(&groups).map_err(|error| Failure::new(Code::Protocol, error.to_string()))?;
        let values = values.filter(|values| values.quartiles().is_some());
        if values.is_none() && !moments.get(column.column).is_some_and(is_empty) {
            let text = "no site has enough values of a feature to count them";
            return Err(Failure::new(Code::Sites, text));
        }
        pooled.push(values);
    }
    Ok(pooled)
}

/// The quartiles of a column's values; zeros without any, for standardisation drops it.
pub(super) fn quartiles(column: &GriddedColumn, values: Option<&Pooled>) -> Quartiles {
    match values.and_then(Pooled::quartiles) {
        Some(quartiles) => column.resolved(quartiles),
        None => Quartiles {
            lower: 0.0,
            median: 0.0,
            upper: 0.0,
        },
    }
}

/// The splines of the columns that have one, from the values of all gridded columns.
pub(super) fn curves(
    features: &[standardise::Feature],
    columns: &[GriddedColumn],
    values: &[Option<Pooled>],
) -> Result<Vec<Curve>, Failure> {
    let (mut curves, mut few) = (Vec::new(), Vec::new());
    for (column, values) in columns.iter().zip(values) {
        let feature = &features[column.column];
        let Some(degrees) = feature.curved() else {
            continue;
        };
        let curve = values.as_ref();
        match curve.and_then(|values| Curve::of(values, degrees as usize)) {
            Some(curve) => curves.push(curve),
            None => few.push(format!("{} (spline = {degrees})", feature.name)),
        }
    }
    if few.is_empty() {
        return Ok(curves);
    }
    let text = format!(
        "found too few different values over all sites for the knots of {}, wanted knots a step of the grid apart, fewer \
         degrees of freedom, or a line",
        few.join(", ")
    );
    Err(Failure::new(Code::Standardise, text))
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

#[cfg(test)]
mod tests {
    use super::published;

    /// One patient of 594 without a value was published as 0.00168.
    #[test]
    fn a_share_of_missing_values_tells_of_no_fewer_than_ten() {
        let told = |missing: f64| published(missing / 594.0, 594) * 594.0;
        let found = [0.0, 1.0, 9.0, 10.0, 11.0, 99.0, 594.0].map(told);
        let wanted = [0.0, 10.0, 10.0, 10.0, 20.0, 100.0, 594.0];
        for (found, wanted) in found.into_iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-9, "{found}, {wanted}");
        }
    }
}
