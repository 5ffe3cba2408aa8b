//! How messages look to the release rules, and which of them carry nothing of a cohort.

use super::{Answer, ColumnHistogram, ColumnMoments};
use crate::failure::{Failure, Problem, Refusal};
use privacy::{Column, Notice};

impl Notice<Answer> for Vec<Problem> {
    fn into_message(self) -> Answer {
        Answer::Unfit(self)
    }
}

impl Notice<Answer> for Refusal {
    fn into_message(self) -> Answer {
        Answer::Refused(self)
    }
}

impl Notice<Answer> for Failure {
    fn into_message(self) -> Answer {
        Answer::Failed(self)
    }
}

/// A feature's moments as the release rules see them.
pub(super) fn column(moments: &mut ColumnMoments) -> Column<'_> {
    match moments {
        ColumnMoments::Numeric {
            count,
            sum,
            sum_squares,
            missing,
        } => Column::Numeric {
            count,
            sum,
            sum_squares,
            missing,
        },
        ColumnMoments::Categorical { counts, missing } => Column::Categorical { counts, missing },
    }
}

/// A histogram as the release rules see it.
pub(super) fn histogram(histogram: &mut ColumnHistogram) -> privacy::Histogram<'_> {
    privacy::Histogram {
        ends: &mut histogram.ends,
        counts: &mut histogram.counts,
    }
}
