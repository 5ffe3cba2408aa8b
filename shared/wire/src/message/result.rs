//! What a run leaves, on its way to the operator who asked for it.

use crate::encoding::frame::frame;
use crate::encoding::list::Outgoing;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{
    at_most, each, finite, label, length, paragraph, present, run_id, shortened, summed, text,
};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::progress::{ending, ending_to_proto, times, times_to_proto};
use protocol::assessment::Assessment;
use protocol::cohort::MissingShare;
use protocol::limits::{CLASSES_MAX, JOB_LENGTH_MAX, MISSING_SHARES_MAX};
use protocol::method::Model;
use protocol::name::OperatorName;
use protocol::result::{PooledFigures, RunResult};

frame!(ResultFrame, result_frame, RunResult, "a frame of a result");

impl Travels for RunResult {
    type Header = pb::RunResult;

    fn cut(self) -> (pb::RunResult, OutgoingParts) {
        let (model, parts) = match self.model.map(Travels::cut) {
            Some((model, parts)) => (Some(model), parts),
            None => (None, OutgoingParts::none()),
        };
        let (pooled, cut) = self.pooled.cut();
        let header = pb::RunResult {
            run: self.run.as_str().to_owned(),
            job: self.job,
            seed: self.seed,
            version: self.version,
            operator: self.operator.map(|name| name.as_str().to_owned()),
            ending: Some(ending_to_proto(self.ending)),
            times: Some(times_to_proto(self.times)),
            seconds: self.seconds,
            sites: length(self.sites.len()),
            notes: length(self.notes.len()),
            pooled: Some(pooled),
            model,
        };
        let parts = OutgoingParts {
            matrices: cut.matrices.chain(parts.matrices),
            sites: Outgoing::of(self.sites),
            notes: Outgoing::of(self.notes),
            ..parts
        };
        (header, parts)
    }

    fn declared(header: &pb::RunResult) -> Result<Declared, WireError> {
        let mut matrices = match &header.pooled {
            Some(pooled) => PooledFigures::declared(pooled)?.matrices,
            None => Vec::new(),
        };
        let model = match &header.model {
            Some(model) => Model::declared(model)?,
            None => Declared::default(),
        };
        matrices.extend(model.matrices);
        Ok(Declared {
            matrices,
            sites: header.sites,
            notes: header.notes,
            ..model
        })
    }

    fn join(header: pb::RunResult, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            run: run_id(&header.run)?,
            job: text("a job's text", header.job, JOB_LENGTH_MAX)?,
            seed: header.seed,
            version: label("a version", header.version)?,
            operator: header.operator.map(|name| operator(&name)).transpose()?,
            ending: ending(present("ending", header.ending)?)?,
            times: header.times.map(times).unwrap_or_default(),
            seconds: finite("the duration", header.seconds)?,
            sites: parts.sites.take(),
            // Its importance comes before the matrices of the model.
            pooled: PooledFigures::join(present("pooled figures", header.pooled)?, parts)?,
            model: match header.model {
                Some(model) => Some(Model::join(model, parts)?),
                None => None,
            },
            notes: parts.notes.take(),
        })
    }
}

impl Travels for PooledFigures {
    type Header = pb::PooledFigures;

    fn cut(self) -> (pb::PooledFigures, OutgoingParts) {
        let (assessment, parts) = match self.assessment.map(Travels::cut) {
            Some((assessment, parts)) => (Some(assessment), parts),
            None => (None, OutgoingParts::none()),
        };
        let header = pb::PooledFigures {
            patients: self.patients,
            classes: self.classes,
            assessment,
            heard: self.heard,
            totals: self.totals,
            missing: self.missing.into_iter().map(missing_to_proto).collect(),
        };
        (header, parts)
    }

    fn declared(header: &pb::PooledFigures) -> Result<Declared, WireError> {
        match &header.assessment {
            Some(assessment) => Assessment::declared(assessment),
            None => Ok(Declared::default()),
        }
    }

    fn join(header: pb::PooledFigures, parts: &mut IncomingParts) -> Result<Self, WireError> {
        at_most("classes", header.classes.len(), CLASSES_MAX)?;
        at_most("missing shares", header.missing.len(), MISSING_SHARES_MAX)?;
        Ok(Self {
            patients: summed("patients of all sites", header.patients)?,
            classes: each(header.classes, |count| summed("patients of a class", count))?,
            heard: label("a digest", header.heard)?,
            totals: header.totals,
            missing: each(header.missing, missing)?,
            assessment: match header.assessment {
                Some(assessment) => Some(Assessment::join(assessment, parts)?),
                None => None,
            },
        })
    }
}

pub(crate) fn operator(name: &str) -> Result<OperatorName, WireError> {
    OperatorName::new(name).map_err(|source| WireError::Name {
        field: "the operator",
        source,
    })
}

fn missing_to_proto(missing: MissingShare) -> pb::MissingShare {
    pb::MissingShare {
        feature: shortened(missing.feature),
        share: missing.share,
    }
}

fn missing(missing: pb::MissingShare) -> Result<MissingShare, WireError> {
    Ok(MissingShare {
        feature: paragraph("a feature's name", missing.feature)?,
        share: finite("the missing share of a feature", missing.share)?,
    })
}
