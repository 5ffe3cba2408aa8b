//! Why there is no answer, as the coordinator receives it.

use super::super::stop::{EARLY, Stop};
use privacy::Released;
use protocol::failure::{Code, Failure};
use protocol::message::Answer;

/// What the coordinator receives. Of a failure it is a fixed sentence: paths and numbers are for the site's log.
pub(super) fn notice(stop: Stop) -> Released<Answer> {
    match stop {
        Stop::Unfit(problems) => Released::notice(problems),
        Stop::Refused(refusal) => Released::notice(refusal),
        Stop::Failed(Failure { code, text }) => {
            tracing::error!("{code}: {text}");
            Released::notice(Failure::new(code, sentence(code)))
        }
    }
}

fn sentence(code: Code) -> &'static str {
    match code {
        Code::Job => "the site cannot read the job; its agent may be of another version",
        Code::State => EARLY,
        Code::Results => "the site could not write its local results; its log says why",
        Code::Forest => "the site could not grow or judge the forest; its log says why",
        _ => "the site could not compute its answer; its log says why",
    }
}
