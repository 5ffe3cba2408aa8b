//! Questions about who is alike on their way: what is asked, what is answered, and what a run leaves.

pub(super) use super::as_words as answer;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, present, run_id, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::neighbours_request::Request as Asked;
use crate::method::NUMBER_BYTES;
use protocol::limits::{CLASSES_MAX, QUERIES_MAX};
use protocol::message::neighbours::{Alike, OctaveGrid, Request};
use protocol::method::neighbours::model::Model;
use protocol::method::neighbours::settings::SHARES;
use std::sync::Arc;

/// Groups of one message at most.
const GROUPS_MAX: usize = QUERIES_MAX * SHARES.len();
/// Sums of one group at most.
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
            groups: self.alike.into_iter().map(group_to_proto).collect(),
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
            alike: groups(header.groups)?,
        })
    }
}

fn radii(found: Vec<f64>) -> Result<Vec<f64>, WireError> {
    at_most("radii", found.len(), SHARES.len())?;
    each(found, |radius| finite("a radius", radius))
}

pub(super) fn group_to_proto(group: Alike) -> pb::AlikeGroup {
    pb::AlikeGroup {
        classes: group.classes,
        sums: group.sums,
    }
}

fn groups(found: Vec<pb::AlikeGroup>) -> Result<Vec<Alike>, WireError> {
    at_most("groups", found.len(), GROUPS_MAX)?;
    each(found, |group| outcome_sums(group, SUMS_MAX))
}

/// How patients fared, with so many sums at most.
pub(super) fn outcome_sums(group: pb::AlikeGroup, sums_max: usize) -> Result<Alike, WireError> {
    at_most("classes", group.classes.len(), CLASSES_MAX)?;
    at_most("sums", group.sums.len(), sums_max)?;
    Ok(Alike {
        classes: each(group.classes, |count| summed("patients", count))?,
        sums: each(group.sums, |sum| finite("a sum of outcomes", sum))?,
    })
}

/// Bytes of an answer at most.
pub(super) fn answer_bytes_max(request: &Request, _: u64) -> Option<u64> {
    let numbers = match request {
        Request::Measure => OctaveGrid::cells(),
        Request::Count(_) => GROUPS_MAX * (CLASSES_MAX + SUMS_MAX),
    };
    Some(NUMBER_BYTES * numbers as u64)
}

#[cfg(test)]
mod tests;
