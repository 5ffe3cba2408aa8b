//! The last question of a run of UnPSL on its way.

use super::{form, form_to_proto};
use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, present};
use crate::error::WireError;
use crate::generated as pb;
use protocol::limits::FOLDS_MAX;
use protocol::message::unpsl::{Finishing, FoldChoice};
use std::sync::Arc;

impl Travels for Finishing {
    type Header = pb::Finish;

    fn cut(self) -> (pb::Finish, OutgoingParts) {
        let header = pb::Finish {
            consensus: Some(shape(&self.consensus)),
            neighbours: self.neighbours,
            form: form_to_proto(self.form),
            folds: self.folds.iter().map(shape).collect(),
            judges: self.judges,
            chosen: self
                .chosen
                .iter()
                .map(|chosen| pb::FoldChoice {
                    form: form_to_proto(chosen.form),
                    neighbours: chosen.neighbours,
                })
                .collect(),
        };
        let matrices = OutgoingMatrices::default()
            .and_shared(self.consensus)
            .and_list(&self.folds);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Finish) -> Result<Declared, WireError> {
        at_most("folds", header.folds.len(), FOLDS_MAX)?;
        at_most("chosen settings", header.chosen.len(), FOLDS_MAX)?;
        let consensus = present("consensus", header.consensus)?;
        let folds = header.folds.iter().copied();
        Ok(Declared::matrices([consensus].into_iter().chain(folds)))
    }

    fn join(header: pb::Finish, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let chosen = |chosen: pb::FoldChoice| {
            Ok(FoldChoice {
                form: form(chosen.form)?,
                neighbours: chosen.neighbours,
            })
        };
        Ok(Self {
            chosen: Arc::new(each(header.chosen, chosen)?),
            consensus: Arc::new(parts.matrices.take()?),
            form: form(header.form)?,
            neighbours: header.neighbours,
            judges: header.judges,
            folds: Arc::new(
                header
                    .folds
                    .iter()
                    .map(|_| parts.matrices.take())
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}
