//! Rows of natural cubic splines, beside that of the value itself.

use super::{
    Feature, FeatureKind, MatrixRow, Scaling, Standardisation, StandardiseError, Transform,
};
use crate::cohort::spline::{Curve, CurveScale, curve};

impl Feature {
    /// The degrees of freedom of its spline; none of a line.
    #[must_use]
    pub fn curved(&self) -> Option<u32> {
        let degrees = self.treatment.spline;
        (self.kind == FeatureKind::Numeric && degrees > 1).then_some(degrees)
    }
}

impl MatrixRow {
    /// The knots, of a row of a spline's curved part.
    #[must_use]
    pub fn knots(&self) -> &[f64] {
        &self.knots
    }

    /// The same of a spline with these knots.
    #[must_use]
    pub fn with_knots(self, knots: Vec<f64>) -> Self {
        Self { knots, ..self }
    }
}

impl Standardisation {
    /// The same with the curved parts of splines behind the values themselves: `curves` has one for each curved feature
    /// ([`Feature::curved`]) in the features' order. A column that does not vary has none.
    ///
    /// # Errors
    /// [`StandardiseError::Curve`] where a spline is not the feature's.
    pub fn with_curves(
        self,
        features: &[Feature],
        curves: &[Curve],
    ) -> Result<Self, StandardiseError> {
        let mut of_column: Vec<Option<&Curve>> = vec![None; features.len()];
        let mut curves = curves.iter();
        for (column, feature) in features.iter().enumerate() {
            let Some(degrees) = feature.curved() else {
                continue;
            };
            let own = curves.next();
            let own = own.filter(|curve| curve.is_usable(degrees as usize));
            of_column[column] = Some(own.ok_or_else(|| StandardiseError::Curve {
                column: feature.name.clone(),
                degrees,
            })?);
        }
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let own = of_column.get(row.column).copied().flatten();
            let own = own.filter(|_| row.transform == Transform::Identity);
            let parts: Vec<MatrixRow> = own
                .map(|own| parts(&row, own))
                .transpose()?
                .unwrap_or_default();
            rows.push(row);
            rows.extend(parts);
        }
        Self::from_rows(rows, self.dropped, self.shares_missing)
    }
}

/// The curved parts of a value's row.
fn parts(row: &MatrixRow, own: &Curve) -> Result<Vec<MatrixRow>, StandardiseError> {
    let part = |(part, scale): (usize, &CurveScale)| {
        let name = format!("{}{}", row.name, "'".repeat(part));
        let scaling = Scaling {
            mean: scale.mean,
            scale: scale.deviation,
            imputed: curve(row.imputed, &own.knots, part),
        };
        let made = MatrixRow::new(name, row.column, Transform::Curve(part as u32), scaling)?;
        Ok(made.with_knots(own.knots.clone()))
    };
    (1..).zip(&own.scales).map(part).collect()
}
