//! A regression on the rows of a standardisation: what several sites fit that have released moments alone.

use ndarray::{Array1, Array2};

use crate::cohort::standardise::{Feature, FeatureKind, Impute, Standardisation, Transform};
use crate::learn::regression::sums::{Scaling, swept};
use crate::learn::regression::terms::{Term, TermKind, Terms};
use crate::learn::unpsl::SecondMoments;

/// The columns of a regression, of which those that are fitted are rows of a standardisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The features.
    pub terms: Terms,
    /// How the rows are moved and scaled beside the terms' columns, and which of them are fitted.
    pub scaling: Scaling,
    /// The row of each fitted column.
    pub fitted: Vec<usize>,
}

impl Rows {
    /// The terms of those of `features` that are `chosen` (their places, rising) by the rows of `standardisation`, which is their
    /// pooled one, and the second moments of its rows over all patients. A level that is the first of its feature is the reference,
    /// a row that does not vary is excluded, and so is one that others already say.
    #[must_use]
    pub fn new(
        features: &[Feature],
        standardisation: &Standardisation,
        moments: &SecondMoments,
        chosen: &[usize],
    ) -> Self {
        let terms = terms(features, standardisation).select(chosen);
        let rows = rows(&terms, chosen.iter().copied(), standardisation);
        let patients = moments.patients.max(1) as f64;
        let there: Vec<(usize, usize)> = rows
            .iter()
            .enumerate()
            .filter_map(|(column, row)| Some((column, (*row)?)))
            .collect();
        let product = |(one, other): (usize, usize)| {
            let (one, other) = (there[one].1, there[other].1);
            let of_means = moments.sums[one] * moments.sums[other] / patients;
            moments.products[(one, other)] - of_means
        };
        let products = Array2::from_shape_fn((there.len(), there.len()), product);
        let (kept, aliased) = swept(&products, &Array1::zeros(there.len()), patients);
        let column = |place: &usize| there[*place].0;
        let mut scaling = Scaling::of_nothing(rows.len());
        for (place, (column, row)) in there.iter().enumerate() {
            let scale = standardisation.rows()[*row].scaling();
            scaling.means[*column] = scale.mean;
            scaling.scales[*column] = scale.scale;
            let variance: f64 = products[(place, place)] / patients;
            scaling.deviations[*column] = scale.scale * variance.max(0.0).sqrt();
        }
        let fitted = kept.iter().map(|place| there[*place].1).collect();
        scaling.kept = kept.iter().map(column).collect();
        for mut one in aliased {
            one.column = column(&one.column);
            one.by = one.by.iter().map(column).collect();
            scaling.aliased.push(one);
        }
        let absent = (0..rows.len()).filter(|column| rows[*column].is_none());
        scaling.leave_out(absent);
        Self {
            terms,
            scaling,
            fitted,
        }
    }
}

/// The terms of `features` as their pooled standardisation fixes them.
#[must_use]
pub fn terms(features: &[Feature], standardisation: &Standardisation) -> Terms {
    let columns = 0..features.len();
    Terms::new(
        columns
            .map(|column| term(features, standardisation, column))
            .collect(),
    )
}

/// The coefficients of the columns of `terms` in their own units, from those of the `fitted` rows of a standardisation.
#[must_use]
pub fn own_units(
    terms: &Terms,
    standardisation: &Standardisation,
    fitted: &[usize],
    at: &[f64],
) -> Vec<f64> {
    let coefficient = |row: Option<usize>| {
        let row = row?;
        let place = fitted.iter().position(|one| *one == row)?;
        Some(at.get(place)? / standardisation.rows()[row].scaling().scale)
    };
    let rows = rows(terms, 0.., standardisation).into_iter();
    rows.map(|row| coefficient(row).unwrap_or(0.0)).collect()
}

/// The row of each column of the terms, which are of the cohort's `columns`; none of a column that does not vary.
fn rows(
    terms: &Terms,
    columns: impl IntoIterator<Item = usize>,
    standardisation: &Standardisation,
) -> Vec<Option<usize>> {
    let terms = columns.into_iter().zip(terms.terms());
    terms
        .flat_map(|(column, term)| transforms(term).map(move |one| (column, one)))
        .map(|wanted| {
            let mut rows = standardisation.rows().iter();
            rows.position(|row| (row.column(), row.transform()) == wanted)
        })
        .collect()
}

fn term(features: &[Feature], standardisation: &Standardisation, column: usize) -> Term {
    let feature = &features[column];
    let imputed = |wanted: Transform| {
        let mut rows = standardisation.rows().iter();
        rows.find(|row| row.column() == column && row.transform() == wanted)
            .map(|row| row.scaling().imputed)
    };
    let kind = match &feature.kind {
        FeatureKind::Numeric => TermKind::Numeric {
            imputed: imputed(Transform::Identity).unwrap_or(0.0),
            knots: standardisation
                .rows()
                .iter()
                .find(|row| row.column() == column && row.transform() == Transform::Curve(1))
                .map_or_else(Vec::new, |row| row.knots().to_vec()),
        },
        FeatureKind::Categorical { levels } => TermKind::Categorical {
            levels: levels.clone(),
            imputed: (0..levels.len() as u32)
                .find(|level| imputed(Transform::Level(*level)) == Some(1.0))
                .unwrap_or(0),
        },
    };
    Term {
        name: feature.name.clone(),
        kind,
        indicator: feature.treatment.impute == Impute::Indicator,
    }
}

/// The transform of each column of a term.
fn transforms(term: &Term) -> impl Iterator<Item = Transform> {
    let values: Vec<Transform> = match &term.kind {
        TermKind::Numeric { knots, .. } => std::iter::once(Transform::Identity)
            .chain((1..knots.len().saturating_sub(1) as u32).map(Transform::Curve))
            .collect(),
        TermKind::Categorical { levels, .. } => {
            (1..levels.len() as u32).map(Transform::Level).collect()
        }
    };
    values
        .into_iter()
        .chain(term.indicator.then_some(Transform::Missing))
}
