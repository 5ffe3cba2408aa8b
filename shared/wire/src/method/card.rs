//! The card of a study on its way: what is asked, what is answered, and what a run leaves.

pub(super) use super::as_words as answer;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, present, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::card_outcome::Summary;
use crate::generated::card_request::Request as Asked;
use protocol::limits::{CARD_COUNTS_MAX, LEVELS_MAX, OUTCOMES_MAX, PARTS_MAX};
use protocol::message::card::{LeftOut, Request};
use protocol::method::card::model::{Entry, Group, Model, Moments, OutcomeSummary, Table};
use std::sync::Arc;

/// All patients, and the groups of the outcomes: with every group there is a part.
const GROUPS_MAX: usize = 1 + PARTS_MAX;

impl Travels for Request {
    type Header = pb::CardRequest;

    fn cut(self) -> (pb::CardRequest, OutgoingParts) {
        let request = Some(match self {
            Self::Part => Asked::Part(pb::PartCard {}),
            Self::Compare(left_out) => Asked::Compare(pb::CompareCard {
                left_out: left_out.to_vec(),
            }),
            Self::Count(left_out) => Asked::Count(pb::CountCard {
                left_out: left_out.to_vec(),
            }),
            Self::Histograms {
                outcome,
                columns,
                left_out,
            } => Asked::Histograms(pb::HistogramsCard {
                outcome,
                columns: columns.to_vec(),
                left_out: left_out.to_vec(),
            }),
            Self::Sum { places, left_out } => Asked::Sum(pb::SumCard {
                places: places.to_vec(),
                left_out: left_out.to_vec(),
            }),
        });
        (pb::CardRequest { request }, OutgoingParts::none())
    }

    fn declared(_: &pb::CardRequest) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::CardRequest, _: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::Part(_) => Self::Part,
            Asked::Compare(asked) => Self::Compare(left_out(asked.left_out)?),
            Asked::Count(asked) => Self::Count(left_out(asked.left_out)?),
            Asked::Histograms(asked) => {
                at_most("columns", asked.columns.len(), CARD_COUNTS_MAX)?;
                Self::Histograms {
                    outcome: asked.outcome,
                    columns: Arc::new(asked.columns),
                    left_out: left_out(asked.left_out)?,
                }
            }
            Asked::Sum(asked) => {
                at_most("places", asked.places.len(), CARD_COUNTS_MAX)?;
                Self::Sum {
                    places: Arc::new(asked.places),
                    left_out: left_out(asked.left_out)?,
                }
            }
        })
    }
}

fn left_out(patterns: Vec<u32>) -> Result<LeftOut, WireError> {
    at_most("patterns of patients", patterns.len(), PARTS_MAX)?;
    Ok(Arc::new(patterns))
}

fn patients(count: u64) -> Result<u64, WireError> {
    summed("patients", count)
}

impl Travels for Model {
    type Header = pb::CardModel;

    fn cut(self) -> (pb::CardModel, OutgoingParts) {
        let header = self.table.map_or_else(pb::CardModel::default, |table| {
            let Table {
                groups,
                steps,
                outcomes,
                left_out,
            } = table;
            let group = |Group { patients, features }| pb::CardGroup {
                patients,
                features: features.into_iter().map(entry_to_proto).collect(),
            };
            pb::CardModel {
                groups: groups.into_iter().map(group).collect(),
                steps,
                outcomes: outcomes.into_iter().map(outcome_to_proto).collect(),
                left_out,
            }
        });
        (header, OutgoingParts::none())
    }

    fn declared(_: &pb::CardModel) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::CardModel, _: &mut IncomingParts) -> Result<Self, WireError> {
        let pb::CardModel {
            groups,
            steps,
            outcomes,
            left_out,
        } = header;
        if groups.is_empty() {
            return Ok(Self { table: None });
        }
        at_most("groups", groups.len(), GROUPS_MAX)?;
        at_most("steps", steps.len(), CARD_COUNTS_MAX)?;
        at_most("outcomes", outcomes.len(), OUTCOMES_MAX)?;
        let group = |found: pb::CardGroup| {
            at_most("features", found.features.len(), CARD_COUNTS_MAX)?;
            Ok(Group {
                patients: patients(found.patients)?,
                features: each(found.features, entry)?,
            })
        };
        let table = Table {
            groups: each(groups, group)?,
            steps: each(steps, |step| summed("a step", step))?,
            outcomes: each(outcomes, outcome)?,
            left_out: patients(left_out)?,
        };
        Ok(Self { table: Some(table) })
    }
}

fn entry_to_proto(entry: Entry) -> pb::CardEntry {
    let levels = entry.levels.into_iter();
    pb::CardEntry {
        levels: levels.map(Option::unwrap_or_default).collect(),
        missing: entry.missing,
        moments: entry.moments.map(moments_to_proto),
    }
}

fn entry(found: pb::CardEntry) -> Result<Entry, WireError> {
    at_most("levels", found.levels.len(), LEVELS_MAX)?;
    let told = |count| Ok(Some(patients(count)?).filter(|count| *count > 0));
    Ok(Entry {
        levels: each(found.levels, told)?,
        missing: patients(found.missing)?,
        moments: found.moments.map(moments).transpose()?,
    })
}

fn moments_to_proto(Moments { mean, deviation }: Moments) -> pb::CardMoments {
    pb::CardMoments { mean, deviation }
}

fn moments(found: pb::CardMoments) -> Result<Moments, WireError> {
    Ok(Moments {
        mean: finite("a mean", found.mean)?,
        deviation: finite("a standard deviation", found.deviation)?,
    })
}

fn outcome_to_proto(outcome: OutcomeSummary) -> pb::CardOutcome {
    let summary = Some(match outcome {
        OutcomeSummary::Classes => Summary::Classes(pb::CardClasses {}),
        OutcomeSummary::Number(own) => Summary::Number(moments_to_proto(own)),
        OutcomeSummary::Time(time) => Summary::Time(time),
    });
    pb::CardOutcome { summary }
}

fn outcome(found: pb::CardOutcome) -> Result<OutcomeSummary, WireError> {
    Ok(match present("summary", found.summary)? {
        Summary::Classes(_) => OutcomeSummary::Classes,
        Summary::Number(own) => OutcomeSummary::Number(moments(own)?),
        Summary::Time(time) => OutcomeSummary::Time(finite("a time at risk", time)?),
    })
}

#[cfg(test)]
mod tests;
