//! Comparisons of similarities on their way: what is asked, what is answered, and what a run leaves.

pub(super) use super::as_words as answer;
use super::regression::{point, point_to_proto};
use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, present, sentence, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::compare_request::Request as Asked;
use crate::message::assessment;
use protocol::limits::FOLDS_MAX;
use protocol::message::compare::{FamilyCounts, Judging, Request};
use protocol::message::forest;
use protocol::method::compare::model::{Compared, Model};
use protocol::method::compare::settings::Family;
use std::sync::Arc;

/// Families of one message at most.
const FAMILIES_MAX: usize = Family::ALL.len();

impl Travels for Request {
    type Header = pb::CompareRequest;

    fn cut(self) -> (pb::CompareRequest, OutgoingParts) {
        let Self::Judge(judging) = self;
        let (forest, parts) = match judging.forest.map(Travels::cut) {
            Some((forest, parts)) => (Some(forest), parts),
            None => (None, OutgoingParts::none()),
        };
        let header = pb::JudgeFolds {
            metrics: judging.metrics.iter().map(shape).collect(),
            regressions: judging.regressions.iter().map(point_to_proto).collect(),
            forest,
            judges: judging.judges,
        };
        let parts = OutgoingParts {
            matrices: OutgoingMatrices::default().and_list(&judging.metrics),
            ..parts
        };
        let request = Some(Asked::Judge(header));
        (pb::CompareRequest { request }, parts)
    }

    fn declared(header: &pb::CompareRequest) -> Result<Declared, WireError> {
        let Asked::Judge(asked) = present("request", header.request.as_ref())?;
        at_most("folds", asked.metrics.len(), FOLDS_MAX)?;
        let trees = match &asked.forest {
            Some(forest) => forest::Judging::declared(forest)?,
            None => Declared::default(),
        };
        Ok(Declared {
            matrices: asked.metrics.clone(),
            ..trees
        })
    }

    fn join(header: pb::CompareRequest, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let Asked::Judge(asked) = present("request", header.request)?;
        at_most("folds", asked.regressions.len(), FOLDS_MAX)?;
        let metrics = asked.metrics.iter().map(|_| parts.matrices.take());
        let metrics = metrics.collect::<Result<_, _>>()?;
        let forest = asked.forest.map(|forest| Travels::join(forest, parts));
        Ok(Self::Judge(Judging {
            metrics: Arc::new(metrics),
            regressions: Arc::new(each(asked.regressions, point)?),
            forest: forest.transpose()?,
            judges: asked.judges,
        }))
    }
}

impl Travels for Model {
    type Header = pb::CompareModel;

    fn cut(self) -> (pb::CompareModel, OutgoingParts) {
        let compared = |one: Compared| pb::ComparedFamily {
            counts: Some(family_to_proto(one.counts)),
            sites: one.sites,
        };
        let left_out = |(family, reason): (Family, String)| pb::LeftOutFamily {
            family: family.name().to_owned(),
            reason,
        };
        let header = pb::CompareModel {
            patients: self.patients,
            neighbours: self.neighbours,
            folds: self.folds,
            families: self.families.into_iter().map(compared).collect(),
            left_out: self.left_out.into_iter().map(left_out).collect(),
        };
        (header, OutgoingParts::none())
    }

    fn declared(_: &pb::CompareModel) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::CompareModel, _: &mut IncomingParts) -> Result<Self, WireError> {
        at_most("families", header.families.len(), FAMILIES_MAX)?;
        at_most("families", header.left_out.len(), FAMILIES_MAX)?;
        let compared = |one: pb::ComparedFamily| {
            Ok(Compared {
                counts: family(present("counts of a family", one.counts)?)?,
                sites: one.sites,
            })
        };
        let left_out =
            |one: pb::LeftOutFamily| Ok((named(&one.family)?, sentence("a reason", one.reason)?));
        Ok(Self {
            patients: summed("patients", header.patients)?,
            neighbours: header.neighbours,
            folds: header.folds,
            families: each(header.families, compared)?,
            left_out: each(header.left_out, left_out)?,
        })
    }
}

fn family_to_proto(family: FamilyCounts) -> pb::JudgedFamily {
    let errors = protocol::assessment::RuleErrors {
        rule: family.counts.rule.clone(),
        neighbours: family.counts.neighbours,
        measure: family.measure,
        sums: family.errors,
    };
    pb::JudgedFamily {
        errors: assessment::errors_to_proto(vec![errors]).pop(),
        counts: assessment::evaluations_to_proto(vec![family.counts]).pop(),
    }
}

fn family(found: pb::JudgedFamily) -> Result<FamilyCounts, WireError> {
    let counts = present("counts of a family", found.counts)?;
    let errors = present("errors of a family", found.errors)?;
    let counts = present("counts", assessment::evaluations(vec![counts])?.pop())?;
    let errors = present("errors", assessment::errors(vec![errors])?.pop())?;
    Ok(FamilyCounts {
        family: named(&counts.rule)?,
        measure: errors.measure,
        errors: errors.sums,
        counts,
    })
}

fn named(found: &str) -> Result<Family, WireError> {
    Family::named(found).ok_or_else(|| WireError::Unexpected {
        found: "an unknown family".to_owned(),
        wanted: "one of those that are compared".to_owned(),
    })
}

#[cfg(test)]
mod tests;
