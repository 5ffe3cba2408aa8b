//! Distributed UnPSL on its way: what is asked, what is answered, and what a run leaves.

pub(crate) mod rows;

use crate::encoding::list::Outgoing;
use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, count, each, finite, finite_if_any, length, present};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::unpsl_answer::Answer as Answered;
use crate::generated::unpsl_request::Request as Asked;
use crate::method::NUMBER_BYTES;
use privacy::RightCounts;
use protocol::limits::{CANDIDATES_MAX, FOLDS_MAX, SITES_MAX};
use protocol::message::unpsl::{Answer, Contribution, Finishing, Request, Round, Validating};
use protocol::method::unpsl::model::Model;
use std::sync::Arc;

impl Travels for Request {
    type Header = pb::UnpslRequest;

    fn cut(self) -> (pb::UnpslRequest, OutgoingParts) {
        let (request, parts) = match self {
            Self::Round(round) => round.cut_as(Asked::Round),
            Self::Validate(validating) => validating.cut_as(Asked::Validate),
            Self::Finish(finishing) => finishing.cut_as(Asked::Finish),
        };
        let request = Some(request);
        (pb::UnpslRequest { request }, parts)
    }

    fn declared(header: &pb::UnpslRequest) -> Result<Declared, WireError> {
        match present("request", header.request.as_ref())? {
            Asked::Round(round) => Round::declared(round),
            Asked::Validate(validate) => Validating::declared(validate),
            Asked::Finish(finish) => Finishing::declared(finish),
        }
    }

    fn join(header: pb::UnpslRequest, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::Round(round) => Self::Round(Round::join(round, parts)?),
            Asked::Validate(validate) => Self::Validate(Validating::join(validate, parts)?),
            Asked::Finish(finish) => Self::Finish(Finishing::join(finish, parts)?),
        })
    }
}

impl Travels for Round {
    type Header = pb::Round;

    fn cut(self) -> (pb::Round, OutgoingParts) {
        let header = pb::Round {
            consensus: Some(shape(&self.consensus)),
            centre: Some(shape(&self.centre)),
            penalty: self.penalty,
            tolerance: self.tolerance,
            gradient: self.gradient,
            fold: self.fold,
        };
        let matrices = OutgoingMatrices::default()
            .and_shared(self.consensus)
            .and(self.centre);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Round) -> Result<Declared, WireError> {
        Ok(Declared::matrices([
            present("consensus", header.consensus)?,
            present("centre", header.centre)?,
        ]))
    }

    fn join(header: pb::Round, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            consensus: Arc::new(parts.matrices.take()?),
            centre: parts.matrices.take()?,
            penalty: finite("the penalty", header.penalty)?,
            tolerance: finite("the tolerance", header.tolerance)?,
            gradient: header.gradient,
            fold: header.fold,
        })
    }
}

impl Travels for Validating {
    type Header = pb::Validate;

    fn cut(self) -> (pb::Validate, OutgoingParts) {
        let header = pb::Validate {
            models: self.models.iter().map(shape).collect(),
            neighbours: self.neighbours,
        };
        let matrices = OutgoingMatrices::default().and_list(&self.models);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Validate) -> Result<Declared, WireError> {
        at_most("folds", header.models.len(), FOLDS_MAX)?;
        Ok(Declared::matrices(header.models.iter().copied()))
    }

    fn join(header: pb::Validate, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let pb::Validate { models, neighbours } = header;
        at_most("numbers of neighbours", neighbours.len(), CANDIDATES_MAX)?;
        Ok(Self {
            models: Arc::new(
                models
                    .iter()
                    .map(|_| parts.matrices.take())
                    .collect::<Result<_, _>>()?,
            ),
            neighbours,
        })
    }
}

impl Travels for Finishing {
    type Header = pb::Finish;

    fn cut(self) -> (pb::Finish, OutgoingParts) {
        let header = pb::Finish {
            consensus: Some(shape(&self.consensus)),
            neighbours: self.neighbours,
        };
        let matrices = OutgoingMatrices::default().and_shared(self.consensus);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Finish) -> Result<Declared, WireError> {
        Ok(Declared::matrices([present(
            "consensus",
            header.consensus,
        )?]))
    }

    fn join(header: pb::Finish, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            consensus: Arc::new(parts.matrices.take()?),
            neighbours: header.neighbours,
        })
    }
}

impl Travels for Answer {
    type Header = pb::UnpslAnswer;

    fn cut(self) -> (pb::UnpslAnswer, OutgoingParts) {
        let (answer, parts) = match self {
            Self::Contribution(contribution) => contribution.cut_as(Answered::Contribution),
            Self::Validated(counts) => (
                Answered::Validated(validation_to_proto(counts)),
                OutgoingParts::none(),
            ),
        };
        let answer = Some(answer);
        (pb::UnpslAnswer { answer }, parts)
    }

    fn declared(header: &pb::UnpslAnswer) -> Result<Declared, WireError> {
        match present("answer", header.answer.as_ref())? {
            Answered::Contribution(contribution) => Contribution::declared(contribution),
            Answered::Validated(_) => Ok(Declared::default()),
        }
    }

    fn join(header: pb::UnpslAnswer, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("answer", header.answer)? {
            Answered::Contribution(contribution) => {
                Self::Contribution(Contribution::join(contribution, parts)?)
            }
            Answered::Validated(validated) => Self::Validated(validation(&validated)?),
        })
    }
}

impl Travels for Contribution {
    type Header = pb::Contribution;

    fn cut(self) -> (pb::Contribution, OutgoingParts) {
        let header = pb::Contribution {
            matrix: Some(shape(&self.matrix)),
            objective: self.objective,
            iterations: self.iterations,
            gradient: self.gradient.as_ref().map(shape),
        };
        let matrices = OutgoingMatrices::default()
            .and(self.matrix)
            .and_any(self.gradient);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Contribution) -> Result<Declared, WireError> {
        let matrix = present("contribution", header.matrix)?;
        Ok(Declared::matrices(
            [matrix].into_iter().chain(header.gradient),
        ))
    }

    fn join(header: pb::Contribution, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            matrix: parts.matrices.take()?,
            objective: finite("an objective", header.objective)?,
            iterations: header.iterations,
            gradient: parts.matrices.take_any(header.gradient)?,
        })
    }
}

fn validation_to_proto(counts: Vec<Option<RightCounts>>) -> pb::Validated {
    let one = |counts: Option<RightCounts>| pb::ValidationCounts {
        counts: counts.map(|RightCounts { right, wrong }| pb::RightCounts { right, wrong }),
    };
    pb::Validated {
        counts: counts.into_iter().map(one).collect(),
    }
}

fn validation(validated: &pb::Validated) -> Result<Vec<Option<RightCounts>>, WireError> {
    at_most("validation counts", validated.counts.len(), CANDIDATES_MAX)?;
    let one = |one: &pb::ValidationCounts| {
        one.counts
            .map(|pb::RightCounts { right, wrong }| RightCounts { right, wrong })
    };
    Ok(validated.counts.iter().map(one).collect())
}

impl Travels for Model {
    type Header = pb::UnpslModel;

    fn cut(self) -> (pb::UnpslModel, OutgoingParts) {
        let header = pb::UnpslModel {
            objective: self.objective,
            metric: self.metric.as_ref().map(shape),
            rounds: length(self.rounds.len()),
            features: length(self.features.len()),
            dropped: length(self.dropped.len()),
            selection: self
                .selection
                .iter()
                .map(rows::selection_to_proto)
                .collect(),
            pairs: self.pairs,
        };
        let parts = OutgoingParts {
            matrices: OutgoingMatrices::default().and_any(self.metric),
            rounds: Outgoing::of(self.rounds),
            features: Outgoing::of(self.features),
            dropped: Outgoing::of(self.dropped),
            ..OutgoingParts::none()
        };
        (header, parts)
    }

    fn declared(header: &pb::UnpslModel) -> Result<Declared, WireError> {
        Ok(Declared {
            rounds: header.rounds,
            features: header.features,
            dropped: header.dropped,
            ..Declared::matrices(header.metric)
        })
    }

    fn join(header: pb::UnpslModel, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let candidates_max = CANDIDATES_MAX.pow(3);
        at_most("candidates", header.selection.len(), candidates_max)?;
        at_most("pairs of sites", header.pairs.len(), SITES_MAX)?;
        Ok(Self {
            rounds: parts.rounds.take(),
            objective: finite_if_any("the objective", header.objective)?,
            selection: each(header.selection, rows::selection)?,
            features: parts.features.take(),
            dropped: parts.dropped.take(),
            metric: parts.matrices.take_any(header.metric)?,
            pairs: each(header.pairs, |pairs| count("pairs of a site", pairs))?,
        })
    }
}

/// Bytes of the parts of an answer at most; none where the answer has no parts.
pub(super) fn answer_bytes_max(request: &Request) -> Option<u64> {
    match request {
        // A matrix and a gradient of the question's shape.
        Request::Round(round) => Some(2 * NUMBER_BYTES * round.consensus.len() as u64),
        Request::Validate(_) | Request::Finish(_) => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
