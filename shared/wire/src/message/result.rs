//! What a run leaves, on its way to the operator who asked for it.

use crate::encoding::frame::frame;
use crate::encoding::list::Outgoing;
use crate::encoding::matrix::OutgoingMatrices;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{
    at_most, count, each, finite, label, length, paragraph, present, run_id, shortened, summed,
    text,
};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::assessment::declared_importance;
use crate::message::progress::{ending, ending_to_proto, times, times_to_proto};
use protocol::assessment::Assessment;
use protocol::cohort::MissingShare;
use protocol::limits::{JOB_LENGTH_MAX, MESSAGE_KINDS_MAX, MISSING_SHARES_MAX, SITES_MAX};
use protocol::method::Model;
use protocol::name::OperatorName;
use protocol::result::{MessageTotal, PooledFigures, RunResult, SiteResult};

frame!(ResultFrame, result_frame, RunResult, "a frame of a result");

impl Travels for RunResult {
    type Header = pb::RunResult;

    fn cut(self) -> (pb::RunResult, OutgoingParts) {
        let (model, parts) = match self.model.map(Travels::cut) {
            Some((model, parts)) => (Some(model), parts),
            None => (None, OutgoingParts::none()),
        };
        let mut importances = Vec::new();
        let mut matrices = OutgoingMatrices::default();
        let mut sites = Vec::with_capacity(self.sites.len());
        for site in self.sites {
            let (site, cut) = site.cut();
            importances.extend(site.assessment.as_ref().and_then(|one| one.importance));
            matrices = matrices.chain(cut.matrices);
            sites.push(site);
        }
        let pooled = self.pooled.map(|pooled| {
            let (assessment, cut) = match pooled.assessment.map(Travels::cut) {
                Some((assessment, cut)) => (Some(assessment), cut),
                None => (None, OutgoingParts::none()),
            };
            importances.extend(assessment.as_ref().and_then(|one| one.importance));
            matrices = std::mem::take(&mut matrices).chain(cut.matrices);
            pb::PooledFigures {
                patients: pooled.patients,
                assessment,
                sites: pooled.sites,
                heard: pooled.heard,
                totals: pooled.totals,
                missing: pooled.missing.into_iter().map(missing_to_proto).collect(),
            }
        });
        let header = pb::RunResult {
            run: self.run.as_str().to_owned(),
            job: self.job,
            seed: self.seed,
            version: self.version,
            operator: self.operator.map(|name| name.as_str().to_owned()),
            ending: Some(ending_to_proto(self.ending)),
            times: Some(times_to_proto(self.times)),
            seconds: self.seconds,
            sites: length(sites.len()),
            notes: length(self.notes.len()),
            importances,
            pooled,
            model,
        };
        let parts = OutgoingParts {
            matrices: matrices.chain(parts.matrices),
            sites: Outgoing::rows(sites.into_iter()),
            notes: Outgoing::of(self.notes),
            ..parts
        };
        (header, parts)
    }

    fn declared(header: &pb::RunResult) -> Result<Declared, WireError> {
        at_most("importances", header.importances.len(), SITES_MAX + 1)?;
        let importances = header.importances.iter().copied();
        let mut matrices = importances
            .map(declared_importance)
            .collect::<Result<Vec<_>, _>>()?;
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
        let sites = parts.sites.take();
        Ok(Self {
            run: run_id(&header.run)?,
            job: text("a job's text", header.job, JOB_LENGTH_MAX)?,
            seed: header.seed,
            version: label("a version", header.version)?,
            operator: header.operator.map(|name| operator(&name)).transpose()?,
            ending: ending(present("ending", header.ending)?)?,
            times: header.times.map(times).unwrap_or_default(),
            seconds: finite("the duration", header.seconds)?,
            // Their importances come before the matrices of the model.
            sites: sites
                .into_iter()
                .map(|site| SiteResult::join(site, parts))
                .collect::<Result<_, _>>()?,
            pooled: header
                .pooled
                .map(|found| pooled(found, parts))
                .transpose()?,
            model: match header.model {
                Some(model) => Some(Model::join(model, parts)?),
                None => None,
            },
            notes: parts.notes.take(),
        })
    }
}

impl Travels for SiteResult {
    type Header = pb::SiteResult;

    fn cut(self) -> (pb::SiteResult, OutgoingParts) {
        let (assessment, parts) = match self.assessment.map(Travels::cut) {
            Some((assessment, parts)) => (Some(assessment), parts),
            None => (None, OutgoingParts::none()),
        };
        let header = pb::SiteResult {
            name: self.name,
            patients: self.patients,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            missing: self.missing.into_iter().map(missing_to_proto).collect(),
            assessment,
            messages: self.messages.into_iter().map(total_to_proto).collect(),
        };
        (header, parts)
    }

    fn declared(header: &pb::SiteResult) -> Result<Declared, WireError> {
        match &header.assessment {
            Some(assessment) => Assessment::declared(assessment),
            None => Ok(Declared::default()),
        }
    }

    fn join(header: pb::SiteResult, parts: &mut IncomingParts) -> Result<Self, WireError> {
        at_most("missing shares", header.missing.len(), MISSING_SHARES_MAX)?;
        Ok(Self {
            name: label("a site's name", header.name)?,
            patients: count("patients of a site", header.patients)?,
            bytes_sent: summed("bytes that a site sent", header.bytes_sent)?,
            bytes_received: summed("bytes that a site received", header.bytes_received)?,
            messages: totals(header.messages)?,
            missing: each(header.missing, missing)?,
            assessment: match header.assessment {
                Some(assessment) => Some(assessed(Assessment::join(assessment, parts)?)?),
                None => None,
            },
        })
    }
}

fn pooled(found: pb::PooledFigures, parts: &mut IncomingParts) -> Result<PooledFigures, WireError> {
    let assessment = found.assessment;
    at_most("missing shares", found.missing.len(), MISSING_SHARES_MAX)?;
    Ok(PooledFigures {
        patients: summed("patients of all sites", found.patients)?,
        sites: found.sites,
        heard: label("a digest", found.heard)?,
        totals: found.totals,
        missing: each(found.missing, missing)?,
        assessment: assessment
            .map(|found| Assessment::join(found, parts))
            .transpose()?,
    })
}

fn operator(name: &str) -> Result<OperatorName, WireError> {
    OperatorName::new(name).map_err(|source| WireError::Name {
        field: "the operator",
        source,
    })
}

/// An assessment whose counts are those of one site.
fn assessed(assessment: Assessment) -> Result<Assessment, WireError> {
    let tables = assessment.evaluation.iter();
    for cell in tables
        .flat_map(|one| [&one.confusion, &one.scores])
        .flatten()
        .flatten()
        .flatten()
    {
        count("patients of a table", *cell)?;
    }
    for sums in assessment.errors.iter().filter_map(|one| one.sums.as_ref()) {
        count("patients behind an error", sums.total)?;
    }
    Ok(assessment)
}

fn total_to_proto(total: MessageTotal) -> pb::MessageTotal {
    pb::MessageTotal {
        kind: total.kind,
        count: total.count,
        bytes: total.bytes,
    }
}

fn totals(totals: Vec<pb::MessageTotal>) -> Result<Vec<MessageTotal>, WireError> {
    at_most("kinds of message", totals.len(), MESSAGE_KINDS_MAX)?;
    each(totals, |total| {
        Ok(MessageTotal {
            kind: label("a kind of message", total.kind)?,
            count: summed("messages of a site", total.count)?,
            bytes: summed("bytes of a site's messages", total.bytes)?,
        })
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
        share: finite("the missing share of a site", missing.share)?,
    })
}
