//! What is said before a method begins: moments of a site and of all, and second moments.

use crate::encoding::list::Outgoing;
use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, length, present};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::moments::{
    quartiles, quartiles_to_matrix, summed_moments, totals, totals_to_proto,
};
use ndarray::{Array1, Axis};
use protocol::limits::{REGRESSION_COLUMNS_MAX, SPLINE_MAX};
use protocol::message::{Curve, CurveScale, Preparing, SecondMoments};
use std::sync::Arc;

impl Travels for Arc<Preparing> {
    type Header = pb::Prepare;

    fn cut(self) -> (pb::Prepare, OutgoingParts) {
        let quartiles = quartiles_to_matrix(&self.quartiles);
        let within = self
            .within
            .clone()
            .map(|shares| Array1::from(shares).insert_axis(Axis(0)));
        let header = pb::Prepare {
            columns: length(self.moments.len()),
            totals: Some(totals_to_proto(self.totals)),
            quartiles: quartiles.as_ref().map(shape),
            within: within.as_ref().map(shape),
            curves: self.curves.iter().map(curve_to_proto).collect(),
        };
        let parts = OutgoingParts {
            matrices: OutgoingMatrices::default()
                .and_any(quartiles)
                .and_any(within),
            columns: Outgoing::within(self, |preparing| &preparing.moments),
            ..OutgoingParts::none()
        };
        (header, parts)
    }

    fn declared(header: &pb::Prepare) -> Result<Declared, WireError> {
        Ok(Declared {
            columns: header.columns,
            ..Declared::matrices(header.quartiles.into_iter().chain(header.within))
        })
    }

    fn join(header: pb::Prepare, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let moments = parts.columns.take();
        moments.iter().try_for_each(summed_moments)?;
        Ok(Self::new(Preparing {
            moments,
            quartiles: match parts.matrices.take_any(header.quartiles)? {
                Some(matrix) => quartiles(&matrix)?,
                None => Vec::new(),
            },
            within: parts
                .matrices
                .take_any(header.within)?
                .map(|shares| shares.into_iter().collect()),
            curves: curves(header.curves)?,
            totals: totals(header.totals)?,
        }))
    }
}

fn curve_to_proto(curve: &Curve) -> pb::SplineCurve {
    pb::SplineCurve {
        knots: curve.knots.clone(),
        means: curve.scales.iter().map(|scale| scale.mean).collect(),
        deviations: curve.scales.iter().map(|scale| scale.deviation).collect(),
    }
}

fn curves(found: Vec<pb::SplineCurve>) -> Result<Vec<Curve>, WireError> {
    at_most("splines", found.len(), REGRESSION_COLUMNS_MAX)?;
    each(found, curve)
}

fn curve(found: pb::SplineCurve) -> Result<Curve, WireError> {
    let pb::SplineCurve {
        knots,
        means,
        deviations,
    } = found;
    let numbers = |field, found: Vec<f64>| {
        at_most(field, found.len(), SPLINE_MAX + 1)?;
        each(found, |number| finite(field, number))
    };
    let (means, deviations) = (
        numbers("a spline's means", means)?,
        numbers("a spline's deviations", deviations)?,
    );
    if means.len() != deviations.len() {
        return Err(WireError::Unexpected {
            found: format!("{} means and {} deviations", means.len(), deviations.len()),
            wanted: "one of each a curved column".to_owned(),
        });
    }
    let scales = means.into_iter().zip(deviations);
    Ok(Curve {
        knots: numbers("knots", knots)?,
        scales: scales
            .map(|(mean, deviation)| CurveScale { mean, deviation })
            .collect(),
    })
}

/// The sums as a matrix of one row, then the products.
impl Travels for Arc<SecondMoments> {
    type Header = pb::SecondMoments;

    fn cut(self) -> (pb::SecondMoments, OutgoingParts) {
        let sums = self.sums.clone().insert_axis(Axis(0));
        let header = pb::SecondMoments {
            patients: self.patients,
            sums: Some(shape(&sums)),
            products: Some(shape(&self.products)),
        };
        let matrices = OutgoingMatrices::default()
            .and(sums)
            .and_within(self, |moments| &moments.products);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::SecondMoments) -> Result<Declared, WireError> {
        let sums = present("sums of second moments", header.sums)?;
        let products = present("products of second moments", header.products)?;
        if sums.rows != 1 || sums.columns != products.columns || products.rows != products.columns {
            return Err(WireError::Unexpected {
                found: format!(
                    "second moments of {} x {} with sums of {} x {}",
                    products.rows, products.columns, sums.rows, sums.columns
                ),
                wanted: "d x d with 1 x d".to_owned(),
            });
        }
        Ok(Declared::matrices([sums, products]))
    }

    fn join(header: pb::SecondMoments, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self::new(SecondMoments {
            patients: header.patients,
            sums: parts.matrices.take()?.remove_axis(Axis(0)),
            products: parts.matrices.take()?,
        }))
    }
}
