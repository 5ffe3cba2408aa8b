//! What may come back on a site's stream: to each question one answer, no larger than the question can need. An answer
//! to anything else is read and dropped, so that no site decides how much memory the coordinator spends on it.

use protocol::limits::MATRIX_ENTRIES_MAX;
use protocol::message::{ColumnMoments, Request, ToSite};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Questions of one stream that are remembered. A site lets at most 9 wait.
const ASKED_MAX: usize = 16;
/// Bytes of a float64.
const NUMBER_BYTES: u64 = 8;
/// Bytes of moments for each byte of the job: a feature takes at least 26 there and at most 48 here, a level 4 and 10.
const MOMENTS_PER_JOB_BYTE: u64 = 4;
/// Bytes of histograms for each byte of the job: a feature takes at least 32 there and here at most 12 for each of 4,096
/// cells.
const HISTOGRAMS_PER_JOB_BYTE: u64 = 1_536;
/// Bytes of importances for each byte of the job: two numbers a feature.
const IMPORTANCES_PER_JOB_BYTE: u64 = 1;
/// Bytes of the trees that a site grows.
const TREES_BYTES_MAX: u64 = NUMBER_BYTES * MATRIX_ENTRIES_MAX as u64;
/// Bytes that every answer may have beside, for what cuts it into parts.
const OVERHEAD_BYTES: u64 = 64 << 10;

/// The questions of one stream.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Length of the run's job.
    job_bytes: u64,
    questions: VecDeque<Question>,
}

#[derive(Debug)]
struct Question {
    run: String,
    exchange: u32,
    answer_bytes_max: u64,
}

impl Asked {
    /// Remembers what is about to be sent.
    pub(crate) fn note(&self, message: &ToSite) {
        let mut state = self.lock();
        match message {
            ToSite::Begin(begin) => state.job_bytes = begin.job.len() as u64,
            ToSite::Ask {
                run,
                exchange,
                request,
            } => {
                if state.questions.len() >= ASKED_MAX {
                    state.questions.pop_front();
                }
                let question = Question {
                    run: run.to_string(),
                    exchange: *exchange,
                    answer_bytes_max: answer_bytes_max(request, state.job_bytes),
                };
                state.questions.push_back(question);
            }
            // What was asked may still be answered: the answer was on its way.
            ToSite::End { .. } => {}
        }
    }

    /// Bytes that the answer to a question may have in parts; none where it was not asked, or was answered.
    pub(crate) fn answered(&self, run: &str, exchange: u32) -> Option<u64> {
        let mut state = self.lock();
        let is_this = |question: &Question| question.exchange == exchange && question.run == run;
        let place = state.questions.iter().position(is_this)?;
        let question = state.questions.remove(place)?;
        Some(question.answer_bytes_max)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer_bytes_max(request: &Request, job_bytes: u64) -> u64 {
    let bytes = match request {
        Request::Describe | Request::Correlate { .. } => return 0,
        Request::Moments => MOMENTS_PER_JOB_BYTE * job_bytes,
        Request::Quantiles => HISTOGRAMS_PER_JOB_BYTE * job_bytes,
        Request::Prepare { moments, .. } => second_moments_bytes(moments),
        // A matrix and a gradient of the question's shape.
        Request::Round(round) => 2 * NUMBER_BYTES * round.consensus.len() as u64,
        Request::Finish { consensus, .. } => 2 * NUMBER_BYTES * consensus.len() as u64,
        Request::Validate { .. } => return 0,
        Request::GrowOwn | Request::Judge(_) => IMPORTANCES_PER_JOB_BYTE * job_bytes,
        Request::Grow(_) => TREES_BYTES_MAX,
    };
    bytes + bytes / 64 + OVERHEAD_BYTES
}

/// d x d and d numbers, for the d rows that the features can have: a value and whether it is missing, or each level and
/// whether none is known.
fn second_moments_bytes(moments: &[ColumnMoments]) -> u64 {
    let rows = |moments: &ColumnMoments| match moments {
        ColumnMoments::Numeric { .. } => 2,
        ColumnMoments::Categorical { counts, .. } => counts.len() as u64 + 1,
    };
    let rows: u64 = moments.iter().map(rows).sum();
    let entries = rows.saturating_mul(rows).min(MATRIX_ENTRIES_MAX as u64);
    NUMBER_BYTES * (entries + rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use protocol::message::{Begin, Round, Warrant};
    use protocol::name::RunId;

    fn run() -> RunId {
        RunId::new("run").unwrap()
    }

    fn ask(exchange: u32, request: Request) -> ToSite {
        let run = run();
        ToSite::Ask {
            run,
            exchange,
            request,
        }
    }

    #[test]
    fn each_question_is_answered_once_and_nothing_else_is() {
        let asked = Asked::default();
        assert_eq!(asked.answered("run", 1), None);
        asked.note(&ask(1, Request::Describe));
        assert_eq!(asked.answered("other", 1), None);
        assert_eq!(asked.answered("run", 2), None);
        assert_eq!(asked.answered("run", 1), Some(0));
        assert_eq!(asked.answered("run", 1), None);
        for exchange in 0..100 {
            asked.note(&ask(exchange, Request::Describe));
        }
        assert_eq!(asked.answered("run", 83), None);
        assert_eq!(asked.answered("run", 84), Some(0));
    }

    #[test]
    fn a_round_may_have_two_matrices_of_its_own_shape() {
        let round = Round {
            number: 1,
            consensus: Array2::zeros((1_000, 10)),
            centre: Array2::zeros((1_000, 10)),
            penalty: 1.0,
            tolerance: 0.1,
            gradient: true,
            fold: None,
        };
        let bytes = answer_bytes_max(&Request::Round(round), 1);
        assert!((160_000..260_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn what_follows_from_the_job_grows_with_its_text() {
        let asked = Asked::default();
        let job = "x".repeat(10_000);
        let begin = Begin {
            run: run(),
            job,
            seed: 1,
            warrant: Warrant::default(),
        };
        asked.note(&ToSite::Begin(begin));
        asked.note(&ask(2, Request::Moments));
        let bytes = asked.answered("run", 2).unwrap();
        assert!((40_000..110_000).contains(&bytes), "{bytes}");
    }
}
