//! What every part of a run is made of: exchanges that ask each site, and close with the answers.

use crate::failure::{Code, Failure};
use crate::message::{Answer, ColumnHistogram, Request};
use crate::name::SiteName;
use std::fmt::Debug;

/// The answers of an exchange, one place per site; none where a site gave none.
pub(crate) type Answers = Vec<Option<Answer>>;

/// What a part of a run asks at present, and how its answers are judged.
pub(crate) trait Asking: Debug {
    /// What goes on, in the operator's words.
    fn phase(&self) -> &'static str;

    /// What the open exchange asks of one site; none where it asks nothing of it.
    fn ask(&self, site: usize) -> Option<Request>;

    /// Judges the answer of one site, which has `patients`, to the open exchange: whether it is one to the question, and one
    /// that patients can give. The failure names no number of the site.
    fn judge(&self, site: usize, patients: u64, answer: &Answer) -> Result<(), Failure>;

    /// What the sum over the sites is read into: an answer to the open exchange with nothing in it. None where nothing is
    /// summed: sites say that they are ready, or tell trees.
    fn blank(&self) -> Option<Answer>;

    /// How far it has come.
    fn course(&self) -> Course;

    /// Who is in no sum of the study, where the run finds it out: patterns of who has which outcome.
    fn left_out(&self) -> &[u32] {
        &[]
    }

    /// What those who have each outcome of the study come to on its grids, where the run finds it out.
    fn counts(&self) -> &[Vec<ColumnHistogram>] {
        &[]
    }
}

/// A part of a run: asks every site, exchange after exchange, until it has what it is for.
pub(crate) trait Stage: Asking {
    /// What it is for: a standardisation, a metric, trees, assessments.
    type Output;

    /// Takes the answers of a closed exchange.
    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure>;
}

/// What comes after a closed exchange.
#[derive(Debug)]
pub(crate) enum Turn<T> {
    /// Another exchange is open.
    Ask,
    /// The stage has what it is for.
    Done(T),
}

/// A closed exchange, and what surrounds it.
#[derive(Debug)]
pub(crate) struct Closed<'r> {
    /// The answer of each site; of use where nothing is summed, and taken by the stage.
    pub(crate) answers: Answers,
    /// The sum of the answers; none where nothing is summed.
    pub(crate) sum: Option<Answer>,
    /// One per site.
    pub(crate) sites: &'r [SiteName],
    /// Since the run began.
    pub(crate) seconds: f64,
    /// Sentences that the result must say.
    pub(crate) notes: &'r mut Vec<String>,
}

/// How far a run has come, where its method goes by rounds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Course {
    /// The last closed round, 0 before the first.
    pub round: u32,
    /// Rounds at most; 0 for a method without rounds.
    pub round_limit: u32,
    /// Objective of the last consensus that all sites have judged.
    pub objective: Option<f64>,
    /// The share of the objective that is left, as the last round's consensus says.
    pub left: Option<f64>,
    /// Primal residual of the last round.
    pub primal_residual: Option<f64>,
    /// Dual residual of the last round.
    pub dual_residual: Option<f64>,
}

impl Closed<'_> {
    /// The sum over the sites.
    ///
    /// # Errors
    /// A failure where there is none.
    pub(crate) fn take_sum(&mut self) -> Result<Answer, Failure> {
        let none = || Failure::new(Code::Protocol, "nothing was summed");
        self.sum.take().ok_or_else(none)
    }

    /// How many sites there are.
    pub(crate) fn count(&self) -> u32 {
        count(self.sites.len())
    }

    /// The answers, by move.
    pub(crate) fn take(&mut self) -> Answers {
        std::mem::take(&mut self.answers)
    }
}

/// A length as messages and results count it.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
