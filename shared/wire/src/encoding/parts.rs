//! What follows a message's header: its matrices and long lists, in parts.

use crate::encoding::blocks::Blocks;
use crate::encoding::list::{Incoming, Outgoing};
use crate::encoding::matrix::{IncomingMatrices, OutgoingMatrices};
use crate::error::WireError;
use crate::generated::MatrixShape;
use crate::generated::part::Part;
use crate::message::moments::Columns;
use crate::message::sites::{Notes, Sites};
use crate::method::forest::trees::{CutPoints, Nodes};
use crate::method::unpsl::rows::{Dropped, Features, Rounds};

/// A message that travels: its header, and what follows in parts. The three stand together, so that out and in can be
/// read as one.
pub(crate) trait Travels: Sized {
    /// The message without its matrices and long lists.
    type Header;

    /// Cuts it.
    fn cut(self) -> (Self::Header, OutgoingParts);
    /// What a header says that follows.
    fn declared(header: &Self::Header) -> Result<Declared, WireError>;
    /// Puts it together again, once all parts are there.
    fn join(header: Self::Header, parts: &mut IncomingParts) -> Result<Self, WireError>;

    /// Cuts it, its header as one of several kinds.
    fn cut_as<K>(self, kind: fn(Self::Header) -> K) -> (K, OutgoingParts) {
        let (header, parts) = self.cut();
        (kind(header), parts)
    }
}

/// Makes the parts of a message from the kinds of lists: their field, their kind, and how a part with them is called.
macro_rules! parts {
    ($($field:ident: $kind:ident in $part:ident.$rows:ident,)*) => {
        /// What a message declares to follow.
        #[derive(Debug, Default)]
        pub(crate) struct Declared {
            pub(crate) matrices: Vec<MatrixShape>,
            $(pub(crate) $field: u32,)*
        }

        /// The parts of one message, cut as they are asked for.
        #[derive(Debug, Default)]
        pub(crate) struct OutgoingParts {
            pub(crate) matrices: OutgoingMatrices,
            $(pub(crate) $field: Outgoing<$kind>,)*
        }

        /// The parts of one message, as they arrive.
        #[derive(Debug)]
        pub(crate) struct IncomingParts {
            pub(crate) matrices: IncomingMatrices,
            $(pub(crate) $field: Incoming<$kind>,)*
        }

        impl Iterator for OutgoingParts {
            type Item = Part;

            fn next(&mut self) -> Option<Part> {
                let chunk = self.matrices.next_chunk().map(Part::Matrix);
                chunk$(.or_else(|| self.$field.next_part()))*
            }
        }

        impl IncomingParts {
            /// Makes ready for what a message declared; allocates nothing yet.
            pub(crate) fn new(declared: Declared) -> Result<Self, WireError> {
                Ok(Self {
                    matrices: IncomingMatrices::new(declared.matrices)?,
                    $($field: Incoming::new(declared.$field as usize)?,)*
                })
            }

            /// Takes a part.
            pub(crate) fn push(&mut self, part: Part) -> Result<(), WireError> {
                match part {
                    Part::Matrix(chunk) => self.matrices.push(&chunk),
                    $(Part::$part(chunk) => self.$field.push(chunk.$rows),)*
                }
            }

            /// Whether all are there.
            pub(crate) fn is_complete(&self) -> bool {
                self.matrices.is_complete() $(&& self.$field.is_complete())*
            }
        }
    };
}

parts! {
    columns: Columns in Columns.columns,
    sites: Sites in Sites.sites,
    notes: Notes in Notes.notes,
    rounds: Rounds in Rounds.rounds,
    features: Features in Features.features,
    dropped: Dropped in Dropped.names,
    edges: CutPoints in Edges.edges,
    nodes: Nodes in Nodes.nodes,
    blocks: Blocks in Blocks.blocks,
}

impl Declared {
    /// Matrices and nothing else.
    pub(crate) fn matrices(shapes: impl IntoIterator<Item = MatrixShape>) -> Self {
        Self {
            matrices: shapes.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl OutgoingParts {
    /// Nothing follows.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Matrices and nothing else.
    pub(crate) fn matrices(matrices: OutgoingMatrices) -> Self {
        Self {
            matrices,
            ..Self::default()
        }
    }
}
