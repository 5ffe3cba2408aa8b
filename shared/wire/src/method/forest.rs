//! Forests on their way: what is asked, what is answered, and what a run leaves.

pub(crate) mod trees;

use crate::encoding::list::Outgoing;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, in_range, length, present};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::forest_request::Request as Asked;
use crate::method::forest::trees::{
    class_weights, declared_nodes, event_times, nodes, trees, trees_to_proto,
};
use protocol::limits::{SITES_MAX, TREES_MAX};
use protocol::message::forest::{Answer, Growing, Judging, Request, Trees};
use protocol::method::forest::model::{CommonForest, Model};
use std::sync::Arc;

impl Travels for Request {
    type Header = pb::ForestRequest;

    fn cut(self) -> (pb::ForestRequest, OutgoingParts) {
        let (request, parts) = match self {
            Self::GrowOwn => (Asked::GrowOwn(pb::GrowOwn {}), OutgoingParts::none()),
            Self::Grow(growing) => growing.cut_as(Asked::Grow),
            Self::Judge(judging) => judging.cut_as(Asked::Judge),
        };
        let request = Some(request);
        (pb::ForestRequest { request }, parts)
    }

    fn declared(header: &pb::ForestRequest) -> Result<Declared, WireError> {
        match present("request", header.request.as_ref())? {
            Asked::GrowOwn(_) => Ok(Declared::default()),
            Asked::Grow(grow) => Arc::<Growing>::declared(grow),
            Asked::Judge(judge) => Judging::declared(judge),
        }
    }

    fn join(header: pb::ForestRequest, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::GrowOwn(_) => Self::GrowOwn,
            Asked::Grow(grow) => Self::Grow(Arc::join(grow, parts)?),
            Asked::Judge(judge) => Self::Judge(Judging::join(judge, parts)?),
        })
    }
}

impl Travels for Arc<Growing> {
    type Header = pb::Grow;

    fn cut(self) -> (pb::Grow, OutgoingParts) {
        let header = pb::Grow {
            trees: self.trees,
            edges: length(self.edges.len()),
            event_times: self.event_times.clone(),
            class_weights: self.class_weights.clone(),
        };
        let parts = OutgoingParts {
            edges: Outgoing::within(self, |growing| &growing.edges),
            ..OutgoingParts::none()
        };
        (header, parts)
    }

    fn declared(header: &pb::Grow) -> Result<Declared, WireError> {
        Ok(Declared {
            edges: header.edges,
            ..Declared::default()
        })
    }

    fn join(header: pb::Grow, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self::new(Growing {
            trees: in_range("trees to grow", header.trees, TREES_MAX)?,
            edges: parts.edges.take(),
            event_times: event_times(header.event_times)?,
            class_weights: class_weights(header.class_weights)?,
        }))
    }
}

impl Travels for Judging {
    type Header = pb::Judge;

    fn cut(self) -> (pb::Judge, OutgoingParts) {
        let header = pb::Judge {
            first_tree: self.first_tree,
            trees: Some(trees_to_proto(&self.trees)),
        };
        (header, trees_alone(self.trees))
    }

    fn declared(header: &pb::Judge) -> Result<Declared, WireError> {
        declared_alone(header.trees.as_ref())
    }

    fn join(header: pb::Judge, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            first_tree: header.first_tree,
            trees: Arc::new(trees(header.trees, parts.nodes.take())?),
        })
    }
}

/// What leaves by itself: the site's share of a common forest.
pub(super) fn answer(answer: Answer) -> (pb::answer::Answer, OutgoingParts) {
    answer.cut_as(pb::answer::Answer::Trees)
}

impl Travels for Answer {
    type Header = pb::Trees;

    fn cut(self) -> (pb::Trees, OutgoingParts) {
        let Self::Grown(grown) = self;
        (trees_to_proto(&grown), trees_alone(Arc::new(grown)))
    }

    fn declared(header: &pb::Trees) -> Result<Declared, WireError> {
        declared_alone(Some(header))
    }

    fn join(header: pb::Trees, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self::Grown(trees(Some(header), parts.nodes.take())?))
    }
}

impl Travels for Model {
    type Header = pb::ForestModel;

    fn cut(self) -> (pb::ForestModel, OutgoingParts) {
        let header = pb::ForestModel {
            forest: self.forest.as_ref().map(forest_to_proto),
            trees: self.trees,
        };
        let parts = match self.forest {
            Some(forest) => trees_alone(forest.trees),
            None => OutgoingParts::none(),
        };
        (header, parts)
    }

    fn declared(header: &pb::ForestModel) -> Result<Declared, WireError> {
        match &header.forest {
            Some(forest) => declared_alone(forest.trees.as_ref()),
            None => Ok(Declared::default()),
        }
    }

    fn join(header: pb::ForestModel, parts: &mut IncomingParts) -> Result<Self, WireError> {
        at_most("shares of a forest", header.trees.len(), SITES_MAX)?;
        Ok(Self {
            forest: match header.forest {
                Some(found) => Some(forest(found, parts)?),
                None => None,
            },
            trees: header.trees,
        })
    }
}

/// Trees and nothing else.
fn trees_alone(trees: Arc<Trees>) -> OutgoingParts {
    OutgoingParts {
        nodes: nodes(trees),
        ..OutgoingParts::none()
    }
}

fn declared_alone(trees: Option<&pb::Trees>) -> Result<Declared, WireError> {
    Ok(Declared {
        nodes: declared_nodes(trees)?,
        ..Declared::default()
    })
}

fn forest_to_proto(forest: &CommonForest) -> pb::CommonForest {
    pb::CommonForest {
        trees: Some(trees_to_proto(&forest.trees)),
        event_times: forest.event_times.clone(),
        class_weights: forest.class_weights.clone(),
    }
}

fn forest(found: pb::CommonForest, parts: &mut IncomingParts) -> Result<CommonForest, WireError> {
    Ok(CommonForest {
        trees: Arc::new(trees(found.trees, parts.nodes.take())?),
        event_times: event_times(found.event_times)?,
        class_weights: class_weights(found.class_weights)?,
    })
}

#[cfg(test)]
pub(crate) mod tests;
