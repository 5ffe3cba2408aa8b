//! Questions about who is alike on their way: what is asked, what is answered, and what a run leaves.

pub(super) use super::as_words as answer;
use super::same;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, present, run_id, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::neighbours_request::Request as Asked;
use protocol::limits::{CLASSES_MAX, LEVELS_MAX, QUERIES_MAX};
use protocol::message::neighbours::{Alike, Mean, Noised, Request};
use protocol::method::neighbours::model::Model;
use protocol::method::neighbours::settings::SHARES;
use std::sync::Arc;

/// Counts of one message at most.
const GROUPS_MAX: usize = QUERIES_MAX * SHARES.len();
/// Sums of outcomes at most.
const SUMS_MAX: usize = 2;

impl Travels for Request {
    type Header = pb::NeighboursRequest;

    fn cut(self) -> (pb::NeighboursRequest, OutgoingParts) {
        let request = Some(match self {
            Self::Measure => Asked::Measure(pb::MeasureDistances {}),
            Self::Count(radii) => Asked::Count(pb::CountAlike {
                radii: radii.to_vec(),
            }),
        });
        (pb::NeighboursRequest { request }, OutgoingParts::none())
    }

    fn declared(_: &pb::NeighboursRequest) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::NeighboursRequest, _: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::Measure(_) => Self::Measure,
            Asked::Count(asked) => Self::Count(Arc::new(radii(asked.radii)?)),
        })
    }
}

impl Travels for Model {
    type Header = pb::NeighboursModel;

    fn cut(self) -> (pb::NeighboursModel, OutgoingParts) {
        let header = pb::NeighboursModel {
            run: self.run,
            patients: self.patients,
            radii: self.radii,
            grouped: self.grouped,
            everybody: Some(alike_to_proto(self.everybody)),
            feature_patients: self.features.iter().map(|one| one.patients).collect(),
            feature_sums: self.features.iter().map(|one| one.sum).collect(),
            alike: self.alike.into_iter().map(alike_to_proto).collect(),
        };
        (header, OutgoingParts::none())
    }

    fn declared(_: &pb::NeighboursModel) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::NeighboursModel, _: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            run: run_id(&header.run)?.to_string(),
            patients: summed("patients", header.patients)?,
            radii: radii(header.radii)?,
            grouped: summed("patients in groups", header.grouped)?,
            everybody: alike(present("everybody", header.everybody)?)?,
            alike: all(header.alike)?,
            features: means(header.feature_patients, header.feature_sums)?,
        })
    }
}

fn radii(found: Vec<f64>) -> Result<Vec<f64>, WireError> {
    at_most("radii", found.len(), SHARES.len())?;
    each(found, |radius| finite("a radius", radius))
}

/// How patients fared.
pub(super) fn alike_to_proto(found: Alike) -> pb::Alike {
    let sums = |of: &[Noised]| of.iter().map(|one| one.sum).collect();
    let variances = |of: &[Noised]| of.iter().map(|one| one.variance).collect();
    pb::Alike {
        patients: found.patients,
        border: found.border,
        classes: sums(&found.classes),
        class_variances: variances(&found.classes),
        sums: sums(&found.sums),
        sum_variances: variances(&found.sums),
    }
}

/// The same, come from elsewhere.
pub(super) fn alike(found: pb::Alike) -> Result<Alike, WireError> {
    at_most("classes", found.classes.len(), CLASSES_MAX)?;
    at_most("sums", found.sums.len(), SUMS_MAX)?;
    Ok(Alike {
        patients: finite("patients", found.patients)?,
        border: finite("patients at the border", found.border)?,
        classes: noised(found.classes, found.class_variances)?,
        sums: noised(found.sums, found.sum_variances)?,
    })
}

fn all(found: Vec<pb::Alike>) -> Result<Vec<Alike>, WireError> {
    at_most("counts of similar patients", found.len(), GROUPS_MAX)?;
    each(found, alike)
}

fn noised(sums: Vec<f64>, variances: Vec<f64>) -> Result<Vec<Noised>, WireError> {
    same("variances", variances.len(), sums.len())?;
    each(
        sums.into_iter().zip(variances).collect(),
        |(sum, variance)| {
            Ok(Noised {
                sum: finite("a sum of outcomes", sum)?,
                variance: finite("a variance of noise", variance)?,
            })
        },
    )
}

fn means(patients: Vec<f64>, sums: Vec<f64>) -> Result<Vec<Mean>, WireError> {
    at_most("features", patients.len(), QUERIES_MAX * LEVELS_MAX)?;
    same("sums of features", sums.len(), patients.len())?;
    each(
        patients.into_iter().zip(sums).collect(),
        |(patients, sum)| {
            Ok(Mean {
                patients: finite("patients with a value", patients)?,
                sum: finite("a sum of a feature", sum)?,
            })
        },
    )
}

#[cfg(test)]
pub(in crate::method) mod tests;
