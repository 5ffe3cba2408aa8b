//! What may come back on a site's stream: to each question one answer, no larger than the question can need. An answer
//! to anything else is read and dropped, so that no site decides how much memory the coordinator spends on it.

use crate::method::answer_bytes_max;
use protocol::message::ToSite;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Questions of one stream that are remembered. A site lets at most 9 wait.
const ASKED_MAX: usize = 16;

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
            ToSite::Ask(ask) => {
                if state.questions.len() >= ASKED_MAX {
                    state.questions.pop_front();
                }
                let question = Question {
                    run: ask.run.to_string(),
                    exchange: ask.exchange,
                    answer_bytes_max: answer_bytes_max(&ask.request, state.job_bytes),
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
    use ndarray::Array2;
    use protocol::message::unpsl::{Centre, Differentiating, Form, Part, Round};
    use protocol::message::{Ask, Begin, Request, Warrant, unpsl};
    use protocol::name::RunId;

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

    #[test]
    fn a_round_may_have_a_matrix_of_its_own_shape_and_derivatives_two_triangles() {
        let round = Round {
            consensus: Array2::zeros((1_000, 10)).into(),
            centre: Centre::Gradient,
            penalty: 1.0,
            tolerance: 0.1,
            part: Part::whole(Form::InnerProduct),
        };
        let bytes = answer_bytes_max(&Request::Unpsl(unpsl::Request::Round(round)), 1);
        assert!((640_000..740_000).contains(&bytes), "{bytes}");
        let asked = Differentiating {
            metrics: vec![Array2::zeros((100, 10)); 2].into(),
            parts: vec![Part::whole(Form::InnerProduct); 2],
            rows: vec![None; 2].into(),
        };
        let bytes = answer_bytes_max(&Request::Unpsl(unpsl::Request::Differentiate(asked)), 1);
        assert!((1_292_800..1_392_800).contains(&bytes), "{bytes}");
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
            opening: None,
        };
        asked.note(&ToSite::Begin(begin));
        asked.note(&ask(2, Request::Moments));
        let bytes = asked.answered("run", 2).unwrap();
        assert!((320_000..390_000).contains(&bytes), "{bytes}");
    }
}
