//! What means missing in the column of an outcome.

use crate::config::SourceConfig;
use crate::source::asked::{AskedCodes, Holder};
use crate::source::missing::Missing;
use crate::source::problem::{Fault, Faults};
use crate::source::terms::Terms;
use protocol::cohort::OutcomeSpecification;

/// What means missing in a column.
#[derive(Clone)]
pub(super) struct Codes {
    /// Always.
    pub(super) own: Missing,
    /// Where enough patients hold it.
    pub(super) asked: AskedCodes,
}

impl Codes {
    /// For the column that the job calls `column`: the site's codes count always, the job's as `terms` have it.
    pub(super) fn new(
        specification: &OutcomeSpecification,
        source: &SourceConfig,
        column: &str,
        terms: Terms,
    ) -> Self {
        let decimal = source.decimal;
        let of_column = source.columns.get(column).map(|mapping| &mapping.missing);
        let own = source.missing.iter().chain(of_column.into_iter().flatten());
        let asked = specification.missing.iter();
        match terms {
            Terms::Job => Self {
                own: Missing::new(own.chain(asked), decimal),
                asked: AskedCodes::new(std::iter::empty(), decimal, 1),
            },
            Terms::Site { cell_min } => Self {
                own: Missing::new(own, decimal),
                asked: AskedCodes::new(asked, decimal, cell_min),
            },
        }
    }

    /// Notes a row by the code that it holds, or the fault that it has without one.
    pub(super) fn note(
        &mut self,
        faults: &mut Faults,
        code: Option<usize>,
        holder: Holder,
        fault: Option<Fault>,
    ) {
        match (code, fault) {
            (Some(code), fault) => self.asked.note(code, holder, fault),
            (None, Some(fault)) => faults.add(fault, holder.row),
            (None, None) => {}
        }
    }
}
