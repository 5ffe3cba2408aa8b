//! Groups of patients that the sites have in common on their way: what is asked, what is answered, and what a run leaves.

pub(super) use super::as_words as answer;
use super::neighbours::{alike, alike_to_proto};
use super::same;
use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, finite_if_any, present, run_id, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::cluster_request::Request as Asked;
use ndarray::Array2;
use protocol::limits::{CLUSTER_SAMPLES_MAX, CLUSTERS_MAX, LEVELS_MAX, SITES_MAX};
use protocol::message::cluster::{Divided, Dividing, Mark, Marking, Marks, Request};
use protocol::method::cluster::model::{Alike, Bias, Model, Tried};
use protocol::method::cluster::settings::{SAMPLE_STARTS, STARTS};
use std::sync::Arc;

/// Divisions of one question at most.
const DIVISIONS_MAX: usize = (CLUSTERS_MAX - 1) * (STARTS + SAMPLE_STARTS * CLUSTER_SAMPLES_MAX);
/// Clusters of all numbers that are tried, at most.
const CLUSTERS_IN_ALL_MAX: usize = CLUSTERS_MAX * (CLUSTERS_MAX + 1) / 2 - 1;

impl Travels for Request {
    type Header = pb::ClusterRequest;

    fn cut(self) -> (pb::ClusterRequest, OutgoingParts) {
        let mut matrices = OutgoingMatrices::default();
        let mut dividing = |asked: Arc<Dividing>| {
            let header = pb::Dividing {
                samples: asked.divisions.iter().map(|one| one.sample).collect(),
                clusters: asked.divisions.iter().map(|one| one.clusters).collect(),
                centres: Some(shape(&asked.centres)),
            };
            let own = std::mem::take(&mut matrices);
            matrices = own.and_within(asked, |asked| &asked.centres);
            header
        };
        let request = Some(match self {
            Self::Measure => Asked::Measure(pb::MeasureSpread {}),
            Self::Step(asked) => Asked::Step(dividing(asked)),
            Self::Compare(asked) => Asked::Compare(dividing(asked)),
            Self::Mark(asked) => {
                let header = pb::Marking {
                    centres: Some(shape(&asked.centres)),
                    fared: asked.fared.iter().cloned().map(alike_to_proto).collect(),
                };
                matrices = matrices.and_within(asked, |asked| &asked.centres);
                Asked::Mark(header)
            }
        });
        (
            pb::ClusterRequest { request },
            OutgoingParts::matrices(matrices),
        )
    }

    fn declared(header: &pb::ClusterRequest) -> Result<Declared, WireError> {
        Ok(match present("request", header.request.as_ref())? {
            Asked::Measure(_) => Declared::default(),
            Asked::Step(asked) | Asked::Compare(asked) => {
                Declared::matrices([present("centres", asked.centres)?])
            }
            Asked::Mark(asked) => Declared::matrices([present("centres", asked.centres)?]),
        })
    }

    fn join(header: pb::ClusterRequest, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::Measure(_) => Self::Measure,
            Asked::Step(asked) => Self::Step(Arc::new(dividing(&asked, parts)?)),
            Asked::Compare(asked) => Self::Compare(Arc::new(dividing(&asked, parts)?)),
            Asked::Mark(asked) => {
                let marking = Marking {
                    fared: fared(asked.fared)?,
                    centres: parts.matrices.take()?,
                };
                same("outcomes", marking.fared.len(), marking.centres.nrows())?;
                Self::Mark(Arc::new(marking))
            }
        })
    }
}

fn dividing(asked: &pb::Dividing, parts: &mut IncomingParts) -> Result<Dividing, WireError> {
    at_most("divisions", asked.clusters.len(), DIVISIONS_MAX)?;
    same(
        "samples of divisions",
        asked.samples.len(),
        asked.clusters.len(),
    )?;
    let both = asked.samples.iter().zip(&asked.clusters);
    let divided = |(sample, clusters): (&u32, &u32)| {
        at_most("a sample", *sample as usize, CLUSTER_SAMPLES_MAX)?;
        at_most("clusters", *clusters as usize, CLUSTERS_MAX)?;
        Ok(Divided {
            sample: *sample,
            clusters: *clusters,
        })
    };
    let dividing = Dividing {
        divisions: both.map(divided).collect::<Result<_, WireError>>()?,
        centres: parts.matrices.take()?,
    };
    let clusters = dividing.divisions.iter().map(|one| one.clusters as usize);
    same("centres", dividing.centres.nrows(), clusters.sum())?;
    Ok(dividing)
}

fn fared(found: Vec<pb::Alike>) -> Result<Vec<Alike>, WireError> {
    at_most("clusters", found.len(), CLUSTERS_IN_ALL_MAX)?;
    each(found, alike)
}

fn marks_to_proto(found: Marks) -> pb::ClusterMark {
    let features = &found.features;
    pb::ClusterMark {
        sites: found.sites,
        patients: features.iter().map(|one| one.patients).collect(),
        sums: features.iter().map(|one| one.sum).collect(),
        squares: features.iter().map(|one| one.squares).collect(),
    }
}

fn marks(found: Vec<pb::ClusterMark>) -> Result<Vec<Marks>, WireError> {
    at_most("clusters", found.len(), CLUSTERS_MAX)?;
    each(found, |one| {
        at_most(
            "sites",
            usize::try_from(one.sites).unwrap_or(usize::MAX),
            SITES_MAX,
        )?;
        at_most("features", one.patients.len(), LEVELS_MAX)?;
        same("sums", one.sums.len(), one.patients.len())?;
        same("squares", one.squares.len(), one.patients.len())?;
        let numbers = one.sums.into_iter().zip(one.squares);
        let mark = |(patients, (sum, squares))| {
            Ok(Mark {
                patients: summed("patients", patients)?,
                sum: finite("a sum of a feature", sum)?,
                squares: finite("a sum of squares of a feature", squares)?,
            })
        };
        let features = one.patients.into_iter().zip(numbers).map(mark);
        Ok(Marks {
            sites: one.sites,
            features: features.collect::<Result<_, WireError>>()?,
        })
    })
}

impl Travels for Model {
    type Header = pb::ClusterModel;

    fn cut(self) -> (pb::ClusterModel, OutgoingParts) {
        let has_centres = !self.centres.is_empty();
        let header = pb::ClusterModel {
            run: self.run,
            patients: self.patients,
            grouped: self.grouped,
            steps: self.steps,
            unsettled: self.unsettled,
            tried: self.tried.into_iter().map(tried_to_proto).collect(),
            shown: self.shown,
            centres: has_centres.then(|| shape(&self.centres)),
            marks: self.marks.into_iter().map(marks_to_proto).collect(),
        };
        let centres = has_centres.then_some(self.centres);
        let matrices = OutgoingMatrices::default().and_any(centres);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::ClusterModel) -> Result<Declared, WireError> {
        Ok(Declared::matrices(header.centres))
    }

    fn join(header: pb::ClusterModel, parts: &mut IncomingParts) -> Result<Self, WireError> {
        at_most("numbers of clusters", header.tried.len(), CLUSTERS_MAX)?;
        Ok(Self {
            run: run_id(&header.run)?.to_string(),
            patients: summed("patients", header.patients)?,
            grouped: summed("patients", header.grouped)?,
            steps: header.steps,
            unsettled: header.unsettled,
            tried: each(header.tried, tried)?,
            shown: header.shown,
            centres: match header.centres {
                Some(_) => parts.matrices.take()?,
                None => Array2::zeros((0, 0)),
            },
            marks: marks(header.marks)?,
        })
    }
}

fn tried_to_proto(found: Tried) -> pb::TriedClusters {
    pb::TriedClusters {
        bias: found.bias.map(|bias| bias.value),
        bias_share: found.bias.and_then(|bias| bias.share),
        stability: found.stability,
        fared: found.fared.into_iter().map(alike_to_proto).collect(),
        stable: found.is_stable,
    }
}

fn tried(found: pb::TriedClusters) -> Result<Tried, WireError> {
    at_most("clusters", found.stability.len(), CLUSTERS_MAX)?;
    same("outcomes", found.fared.len(), found.stability.len())?;
    let share = finite_if_any("a share of the bias", found.bias_share)?;
    let value = finite_if_any("a bias", found.bias)?;
    Ok(Tried {
        bias: value.map(|value| Bias { value, share }),
        stability: each(found.stability, |one| finite("a stability", one))?,
        fared: fared(found.fared)?,
        is_stable: found.stable,
    })
}

#[cfg(test)]
mod tests;
