//! Messages from coordinator to site.

use crate::assembly::{Frames, Header};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::ask::Request as Asked;
use crate::generated::to_site::Message;
use crate::parts::{
    Declared, IncomingParts, OutgoingParts, declared_second_moments, second_moments_to_proto, shape,
};
use crate::trees::{class_weights, declared_nodes, event_times, trees, trees_to_proto};
use crate::values::{
    at_most, finite, in_range, present, quartiles, quartiles_to_matrix, run_id, sentence,
    shortened, summed, summed_moments, text, totals, totals_to_proto, warrant, warrant_to_proto,
};
use protocol::limits::{CANDIDATES_MAX, FOLDS_MAX, JOB_LENGTH_MAX, TREES_MAX};
use protocol::message::{Begin, Growing, Judging, Request, Round, ToSite};
use std::sync::Arc;

/// Cuts a message into frames.
pub(crate) fn frames(message: ToSite) -> Frames<pb::ToSiteFrame> {
    let (message, parts) = match message {
        ToSite::Begin(begin) => {
            let begin = pb::Begin {
                run: begin.run.as_str().to_owned(),
                job: begin.job,
                seed: begin.seed,
                warrant: Some(warrant_to_proto(begin.warrant)),
            };
            (Message::Begin(begin), OutgoingParts::none())
        }
        ToSite::Ask {
            run,
            exchange,
            request,
        } => {
            let (request, parts) = request_to_proto(request);
            let run = run.as_str().to_owned();
            let ask = pb::Ask {
                run,
                exchange,
                request: Some(request),
            };
            (Message::Ask(ask), parts)
        }
        ToSite::End { run, ending } => {
            let run = run.as_str().to_owned();
            let end = pb::End {
                run,
                ending: shortened(ending),
            };
            (Message::End(end), OutgoingParts::none())
        }
    };
    Frames::new(
        pb::ToSite {
            message: Some(message),
        },
        parts,
    )
}

impl Header for pb::ToSite {
    type Message = ToSite;

    fn declared(&self) -> Result<Declared, WireError> {
        let Some(Message::Ask(ask)) = &self.message else {
            return Ok(Declared::default());
        };
        Ok(match present("request", ask.request.as_ref())? {
            Asked::Describe(_) | Asked::Moments(_) | Asked::Quantiles(_) | Asked::GrowOwn(_) => {
                Declared::default()
            }
            Asked::Grow(grow) => Declared {
                edges: grow.edges,
                ..Declared::default()
            },
            Asked::Judge(judge) => Declared {
                nodes: declared_nodes(present("trees", judge.trees.as_ref())?)?,
                ..Declared::default()
            },
            Asked::Prepare(prepare) => Declared {
                columns: prepare.columns,
                ..Declared::matrices(prepare.quartiles)
            },
            Asked::Correlate(correlate) => {
                let moments = present("second moments", correlate.second_moments.as_ref())?;
                declared_second_moments(moments)?
            }
            Asked::Round(round) => Declared::matrices([
                present("consensus", round.consensus)?,
                present("centre", round.centre)?,
            ]),
            Asked::Validate(validate) => {
                at_most("folds", validate.models.len(), FOLDS_MAX)?;
                Declared::matrices(validate.models.iter().copied())
            }
            Asked::Finish(finish) => Declared::matrices([present("consensus", finish.consensus)?]),
        })
    }

    fn complete(self, parts: IncomingParts) -> Result<ToSite, WireError> {
        Ok(match present("message to a site", self.message)? {
            Message::Begin(begin) => ToSite::Begin(Begin {
                run: run_id(&begin.run)?,
                job: text("a job's text", begin.job, JOB_LENGTH_MAX)?,
                seed: begin.seed,
                warrant: warrant(present("a warrant", begin.warrant)?)?,
            }),
            Message::Ask(ask) => ToSite::Ask {
                run: run_id(&ask.run)?,
                exchange: ask.exchange,
                request: request(present("request", ask.request)?, parts)?,
            },
            Message::End(end) => ToSite::End {
                run: run_id(&end.run)?,
                ending: sentence("an ending", end.ending)?,
            },
        })
    }
}

fn request_to_proto(request: Request) -> (Asked, OutgoingParts) {
    match request {
        Request::Describe => (Asked::Describe(pb::Describe {}), OutgoingParts::none()),
        Request::Moments => (Asked::Moments(pb::AskMoments {}), OutgoingParts::none()),
        Request::Quantiles => (Asked::Quantiles(pb::AskQuantiles {}), OutgoingParts::none()),
        Request::Prepare {
            moments,
            quartiles,
            totals,
        } => {
            let columns = u32::try_from(moments.len()).unwrap_or(u32::MAX);
            let totals = Some(totals_to_proto(totals));
            let quartiles = quartiles_to_matrix(&quartiles);
            let prepare = pb::Prepare {
                columns,
                totals,
                quartiles: quartiles.as_ref().map(shape),
            };
            let parts = OutgoingParts::columns(moments).with_matrix(quartiles);
            (Asked::Prepare(prepare), parts)
        }
        Request::Correlate { second_moments } => {
            let (header, parts) = second_moments_to_proto(second_moments);
            let second_moments = Some(header);
            (Asked::Correlate(pb::Correlate { second_moments }), parts)
        }
        Request::Round(round) => {
            let asked = pb::Round {
                number: round.number,
                consensus: Some(shape(&round.consensus)),
                centre: Some(shape(&round.centre)),
                penalty: round.penalty,
                tolerance: round.tolerance,
                gradient: round.gradient,
                fold: round.fold,
            };
            let parts = OutgoingParts::matrices(vec![round.consensus, round.centre]);
            (Asked::Round(asked), parts)
        }
        Request::Validate {
            number,
            models,
            neighbours,
        } => {
            let validate = pb::Validate {
                number,
                models: models.iter().map(shape).collect(),
                neighbours,
            };
            (Asked::Validate(validate), OutgoingParts::matrices(models))
        }
        Request::Finish {
            consensus,
            neighbours,
        } => {
            let finish = pb::Finish {
                consensus: Some(shape(&consensus)),
                neighbours,
            };
            (
                Asked::Finish(finish),
                OutgoingParts::matrices(vec![consensus]),
            )
        }
        Request::GrowOwn => (Asked::GrowOwn(pb::GrowOwn {}), OutgoingParts::none()),
        Request::Grow(growing) => {
            let grow = pb::Grow {
                trees: growing.trees,
                edges: u32::try_from(growing.edges.len()).unwrap_or(u32::MAX),
                event_times: growing.event_times,
                class_weights: growing.class_weights,
            };
            (Asked::Grow(grow), OutgoingParts::edges(growing.edges))
        }
        Request::Judge(judging) => {
            let judge = pb::Judge {
                first_tree: judging.first_tree,
                trees: Some(trees_to_proto(&judging.trees)),
            };
            (Asked::Judge(judge), OutgoingParts::trees(judging.trees))
        }
    }
}

fn request(asked: Asked, mut parts: IncomingParts) -> Result<Request, WireError> {
    Ok(match asked {
        Asked::Describe(_) => Request::Describe,
        Asked::Moments(_) => Request::Moments,
        Asked::Quantiles(_) => Request::Quantiles,
        Asked::Prepare(prepare) => Request::Prepare {
            moments: {
                let moments = parts.take_columns();
                moments.iter().try_for_each(summed_moments)?;
                moments
            },
            quartiles: match prepare.quartiles {
                Some(_) => quartiles(&parts.take_matrix()?)?,
                None => Vec::new(),
            },
            totals: totals(prepare.totals)?,
        },
        Asked::Correlate(correlate) => {
            let header = present("second moments", correlate.second_moments)?;
            let second_moments = parts.take_second_moments(&header)?;
            summed("patients of second moments", second_moments.patients)?;
            Request::Correlate { second_moments }
        }
        Asked::Round(round) => Request::Round(Round {
            number: round.number,
            consensus: parts.take_matrix()?,
            centre: parts.take_matrix()?,
            penalty: finite("the penalty", round.penalty)?,
            tolerance: finite("the tolerance", round.tolerance)?,
            gradient: round.gradient,
            fold: round.fold,
        }),
        Asked::Validate(validate) => {
            at_most(
                "numbers of neighbours",
                validate.neighbours.len(),
                CANDIDATES_MAX,
            )?;
            let models = validate.models.iter().map(|_| parts.take_matrix());
            Request::Validate {
                number: validate.number,
                models: models.collect::<Result<_, _>>()?,
                neighbours: validate.neighbours,
            }
        }
        Asked::Finish(finish) => Request::Finish {
            consensus: parts.take_matrix()?,
            neighbours: finish.neighbours,
        },
        Asked::GrowOwn(_) => Request::GrowOwn,
        Asked::Grow(grow) => Request::Grow(Growing {
            trees: in_range("trees to grow", grow.trees, TREES_MAX)?,
            edges: parts.take_edges(),
            event_times: event_times(grow.event_times)?,
            class_weights: class_weights(grow.class_weights)?,
        }),
        Asked::Judge(judge) => {
            let declared = present("trees", judge.trees)?;
            Request::Judge(Judging {
                first_tree: judge.first_tree,
                trees: Arc::new(trees(&declared, parts.take_nodes())?),
            })
        }
    })
}
