//! What may come back on a site's stream: to each question one answer, no larger than the question can need. An answer
//! to anything else is read and dropped, so that no site decides how much memory the coordinator spends on it.

use protocol::job::{Job, Largest};
use protocol::limits::MATRIX_ENTRIES_MAX;
use protocol::message::forest::TREES;
use protocol::message::{Ask, ToSite};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Questions of one stream that are remembered. A site lets at most 9 wait.
const ASKED_MAX: usize = 16;
/// Bytes that every answer may have besides, for what cuts it into parts.
const OVERHEAD_BYTES: u64 = 64 << 10;
/// Bytes of the trees that a site grows, at most.
const TREES_BYTES_MAX: u64 = 8 * MATRIX_ENTRIES_MAX as u64;

/// The questions of one stream.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the run's job.
    largest_summed: BTreeMap<&'static str, Largest>,
    questions: VecDeque<Question>,
}

#[derive(Debug)]
struct Question {
    run: String,
    exchange: u32,
    answer_bytes_max: u64,
}

impl State {
    /// Bytes of the parts of an answer at most: what adds up is as long as its words, and of all else trees alone are long.
    fn answer_bytes_max(&self, ask: &Ask) -> u64 {
        let kind = ask.request.answer_kind();
        let parts = match self.largest_summed.get(kind) {
            Some(largest) => largest.bytes(),
            None if kind == TREES => TREES_BYTES_MAX,
            None => 0,
        };
        parts + OVERHEAD_BYTES
    }
}

impl Asked {
    /// Remembers what is about to be sent.
    pub(crate) fn note(&self, message: &ToSite) {
        let mut state = self.lock();
        match message {
            ToSite::Begin(begin) => {
                let job = Job::parse(&begin.job).ok();
                state.largest_summed = job.map_or_else(BTreeMap::new, |job| job.largest_summed());
            }
            ToSite::Ask(ask) => {
                if state.questions.len() >= ASKED_MAX {
                    state.questions.pop_front();
                }
                let question = Question {
                    run: ask.run.to_string(),
                    exchange: ask.exchange,
                    answer_bytes_max: state.answer_bytes_max(ask),
                };
                state.questions.push_back(question);
            }
            // What was asked may still be answered: the answer was on its way.
            ToSite::End { .. }
            | ToSite::Closed(_)
            | ToSite::Proposed(_)
            | ToSite::ClosedStudies(_)
            | ToSite::Waiting(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::forest::{self, Growing};
    use protocol::message::{Begin, Request, Warrant};
    use protocol::name::RunId;
    use std::sync::Arc;

    fn run() -> RunId {
        RunId::new("run").unwrap()
    }

    fn ask(exchange: u32, request: Request) -> ToSite {
        ToSite::Ask(Ask {
            run: run(),
            exchange,
            request,
        })
    }

    #[test]
    fn each_question_is_answered_once_and_nothing_else_is() {
        let asked = Asked::default();
        assert_eq!(asked.answered("run", 1), None);
        asked.note(&ask(1, Request::Describe));
        assert_eq!(asked.answered("other", 1), None);
        assert_eq!(asked.answered("run", 2), None);
        assert!(asked.answered("run", 1).is_some());
        assert_eq!(asked.answered("run", 1), None);
        for exchange in 0..100 {
            asked.note(&ask(exchange, Request::Describe));
        }
        assert_eq!(asked.answered("run", 83), None);
        assert!(asked.answered("run", 84).is_some());
    }

    /// The answer's words and no more, beside what cuts them into parts; trees alone are not summed and long.
    #[test]
    fn an_answer_may_be_as_long_as_the_words_that_the_job_can_have_summed() {
        let asked = Asked::default();
        let job = "name = 'job'\nmethod = 'unpsl'\nsites = ['north', 'south', 'east']\n\
                   [outcome]\ncolumn = 'y'\nkind = 'binary'\npositive = ['1']\n\
                   [[features]]\nname = 'x'\nkind = 'numeric'\n[unpsl]\nrank = 1\n";
        let begin = Begin {
            run: run(),
            job: job.to_owned(),
            seed: 1,
            warrant: Warrant::default(),
            opening: None,
        };
        asked.note(&ToSite::Begin(begin));
        // Five counts, two in a word; and two sums in the unit of the feature.
        let moments = 16 * (3 + 2 * 4);
        let trees = Request::Forest(forest::Request::Grow(Arc::new(Growing {
            trees: 1,
            edges: Vec::new(),
            event_times: Vec::new(),
            class_weights: Vec::new(),
        })));
        for (request, wanted) in [
            (Request::Moments, moments),
            (Request::Introduce, 0),
            (trees, TREES_BYTES_MAX),
        ] {
            asked.note(&ask(2, request));
            assert_eq!(asked.answered("run", 2), Some(wanted + OVERHEAD_BYTES));
        }
    }
}
