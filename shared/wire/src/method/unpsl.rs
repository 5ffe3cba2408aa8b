//! Distributed UnPSL on its way: what is asked, what is answered, and what a run leaves.

mod finishing;
pub(crate) mod rows;

pub(super) use super::as_words as answer;
use crate::encoding::list::Outgoing;
use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, finite_if_any, length, present};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::unpsl_request::Request as Asked;
use protocol::limits::{ACTIVE_ROWS_MAX, CANDIDATES_MAX, FOLDS_MAX};
use protocol::message::unpsl::{
    Centre, Differentiating, DualStep, Finishing, Form, MIXED_MAX, Part, Request, Round, Validating,
};
use protocol::method::unpsl::model::Model;
use std::sync::Arc;

/// Metrics that are asked about at once, and models that are validated at once.
const METRICS_MAX: usize = CANDIDATES_MAX * CANDIDATES_MAX * FOLDS_MAX * FOLDS_MAX;

impl Travels for Request {
    type Header = pb::UnpslRequest;

    fn cut(self) -> (pb::UnpslRequest, OutgoingParts) {
        let (request, parts) = match self {
            Self::Differentiate(asked) => asked.cut_as(Asked::Differentiate),
            Self::Round(round) => round.cut_as(Asked::Round),
            Self::Validate(validating) => validating.cut_as(Asked::Validate),
            Self::Finish(finishing) => finishing.cut_as(Asked::Finish),
        };
        let request = Some(request);
        (pb::UnpslRequest { request }, parts)
    }

    fn declared(header: &pb::UnpslRequest) -> Result<Declared, WireError> {
        match present("request", header.request.as_ref())? {
            Asked::Differentiate(asked) => Differentiating::declared(asked),
            Asked::Round(round) => Round::declared(round),
            Asked::Validate(validate) => Validating::declared(validate),
            Asked::Finish(finish) => Finishing::declared(finish),
        }
    }

    fn join(header: pb::UnpslRequest, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::Differentiate(asked) => {
                Self::Differentiate(Differentiating::join(asked, parts)?)
            }
            Asked::Round(round) => Self::Round(Round::join(round, parts)?),
            Asked::Validate(validate) => Self::Validate(Validating::join(validate, parts)?),
            Asked::Finish(finish) => Self::Finish(Finishing::join(finish, parts)?),
        })
    }
}

impl Travels for Differentiating {
    type Header = pb::Differentiate;

    fn cut(self) -> (pb::Differentiate, OutgoingParts) {
        let question =
            |((metric, part), rows): ((_, Part), &Option<Vec<usize>>)| pb::MetricQuestion {
                metric: Some(shape(metric)),
                fold: part.fold,
                other_fold: part.other,
                rows: rows.as_ref().map(|rows| pb::ActiveRows {
                    rows: rows.iter().map(|row| length(*row)).collect(),
                }),
                form: form_to_proto(part.form),
            };
        let questions = self.metrics.iter().zip(self.parts).zip(self.rows.iter());
        let header = pb::Differentiate {
            questions: questions.map(question).collect(),
        };
        let matrices = OutgoingMatrices::default().and_list(&self.metrics);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Differentiate) -> Result<Declared, WireError> {
        at_most("metrics", header.questions.len(), METRICS_MAX)?;
        let metrics = header.questions.iter();
        for rows in metrics
            .clone()
            .filter_map(|question| question.rows.as_ref())
        {
            at_most("rows", rows.rows.len(), ACTIVE_ROWS_MAX)?;
        }
        let shapes: Result<Vec<_>, _> = metrics
            .map(|question| present("metric", question.metric))
            .collect();
        Ok(Declared::matrices(shapes?))
    }

    fn join(header: pb::Differentiate, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let part = |asked: &pb::MetricQuestion| part(asked.form, asked.fold, asked.other_fold);
        let of_each: Result<Vec<Part>, _> = header.questions.iter().map(part).collect();
        let of_each = of_each?;
        let metrics: Result<_, _> = of_each.iter().map(|_| parts.matrices.take()).collect();
        let rows = |asked: &pb::MetricQuestion| {
            let rows = asked.rows.as_ref()?.rows.iter();
            Some(rows.map(|row| *row as usize).collect())
        };
        Ok(Self {
            metrics: Arc::new(metrics?),
            parts: of_each,
            rows: Arc::new(header.questions.iter().map(rows).collect()),
        })
    }
}

impl Travels for Round {
    type Header = pb::Round;

    fn cut(self) -> (pb::Round, OutgoingParts) {
        let (centre, dual) = match self.centre {
            Centre::Sent(centre) => (Some(centre), None),
            Centre::Gradient => (None, None),
            Centre::Dual(step) => (None, Some(step)),
        };
        let header = pb::Round {
            consensus: Some(shape(&self.consensus)),
            centre: centre.as_ref().map(shape),
            penalty: self.penalty,
            tolerance: self.tolerance,
            fold: self.part.fold,
            form: form_to_proto(self.part.form),
            dual: dual.map(|step| pb::DualStep {
                moves: step.moves,
                before: step.before,
                after: step.after,
                weights: step.weights,
            }),
        };
        let matrices = OutgoingMatrices::default()
            .and_shared(self.consensus)
            .and_any(centre);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Round) -> Result<Declared, WireError> {
        let consensus = present("consensus", header.consensus)?;
        Ok(Declared::matrices(
            [consensus].into_iter().chain(header.centre),
        ))
    }

    fn join(header: pb::Round, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            consensus: Arc::new(parts.matrices.take()?),
            centre: match (parts.matrices.take_any(header.centre)?, header.dual) {
                (Some(centre), None) => Centre::Sent(centre),
                (None, None) => Centre::Gradient,
                (None, Some(step)) => Centre::Dual(dual_step(step)?),
                (Some(_), Some(_)) => {
                    return Err(WireError::Unexpected {
                        found: "a centre, and a step of the site's own dual".to_owned(),
                        wanted: "one of them".to_owned(),
                    });
                }
            },
            penalty: finite("the penalty", header.penalty)?,
            tolerance: finite("the tolerance", header.tolerance)?,
            part: part(header.form, header.fold, None)?,
        })
    }
}

impl Travels for Validating {
    type Header = pb::Validate;

    fn cut(self) -> (pb::Validate, OutgoingParts) {
        let header = pb::Validate {
            models: self.models.iter().map(shape).collect(),
            folds: self.folds,
            nested: self.nested,
            neighbours: self.neighbours,
        };
        let matrices = OutgoingMatrices::default().and_list(&self.models);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Validate) -> Result<Declared, WireError> {
        at_most("models", header.models.len(), METRICS_MAX)?;
        Ok(Declared::matrices(header.models.iter().copied()))
    }

    fn join(header: pb::Validate, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let pb::Validate {
            models,
            folds,
            nested,
            neighbours,
        } = header;
        at_most("folds", folds as usize, FOLDS_MAX)?;
        at_most("numbers of neighbours", neighbours.len(), CANDIDATES_MAX)?;
        Ok(Self {
            models: Arc::new(
                models
                    .iter()
                    .map(|_| parts.matrices.take())
                    .collect::<Result<_, _>>()?,
            ),
            folds,
            nested,
            neighbours,
        })
    }
}

fn part(by: i32, fold: Option<u32>, other: Option<u32>) -> Result<Part, WireError> {
    let form = form(by)?;
    Ok(Part { form, fold, other })
}

fn form_to_proto(form: Form) -> i32 {
    let form = match form {
        Form::InnerProduct => pb::Form::InnerProduct,
        Form::Distance => pb::Form::Distance,
    };
    form.into()
}

fn form(found: i32) -> Result<Form, WireError> {
    let form = match pb::Form::try_from(found) {
        Ok(pb::Form::InnerProduct) => Some(Form::InnerProduct),
        Ok(pb::Form::Distance) => Some(Form::Distance),
        Ok(pb::Form::Unspecified) | Err(_) => None,
    };
    present("form", form)
}

fn dual_step(step: pb::DualStep) -> Result<DualStep, WireError> {
    at_most("weights of a mixture", step.weights.len(), MIXED_MAX)?;
    let weight = |weight| finite("a weight of a mixture", weight);
    let weights: Result<_, _> = step.weights.into_iter().map(weight).collect();
    Ok(DualStep {
        moves: step.moves,
        before: finite("a penalty's factor", step.before)?,
        after: finite("a penalty's factor", step.after)?,
        weights: weights?,
    })
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
            certificate: self.certificate,
            folds: self.folds,
            judges: self.judges,
            nested: self.nested,
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
        Ok(Self {
            rounds: parts.rounds.take(),
            objective: finite_if_any("the objective", header.objective)?,
            selection: each(header.selection, rows::selection)?,
            features: parts.features.take(),
            dropped: parts.dropped.take(),
            metric: parts.matrices.take_any(header.metric)?,
            certificate: finite_if_any("the certificate", header.certificate)?,
            folds: folds(header.folds)?,
            judges: header.judges,
            nested: header.nested,
        })
    }
}

/// Folds of a validation.
fn folds(found: u32) -> Result<u32, WireError> {
    at_most("folds", found as usize, FOLDS_MAX)?;
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests;
