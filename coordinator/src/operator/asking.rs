//! Jobs that ask by what an earlier run has learned: its result is fetched, the job written from it, and the operator waits for the answer.

use super::{OperatorError, Watched, calling, dial, folder, fresh_token, watch};
use protocol::name::RunId;
use protocol::result::RunResult;
use report::remark;
use std::path::Path;

/// By which run is asked, and where the results go.
pub(super) struct By<'a> {
    /// The operator's configuration.
    pub(super) config: &'a Path,
    /// The run that has learned.
    pub(super) run: RunId,
    pub(super) out: Option<&'a Path>,
    pub(super) force: bool,
}

/// What came of a question.
#[derive(Debug)]
pub struct Asked {
    /// The run that asked.
    pub run: RunId,
    /// How it ended, and where its results lie.
    pub watched: Watched,
    /// What is printed; none where there is no answer.
    pub answer: Option<String>,
}

impl By<'_> {
    /// Submits what `question` makes of the run's result, a job and its seed, and watches it to its end.
    pub(super) async fn ask(
        &self,
        question: impl FnOnce(&RunResult) -> Result<(String, u64), OperatorError>,
    ) -> Result<(RunId, Watched), OperatorError> {
        let dial = dial(self.config)?;
        let learned = calling(&dial, async |client| client.result(&self.run).await).await?;
        let (text, seed) = question(&learned)?;
        let token = fresh_token(&text);
        let submit = calling(&dial, async |client| {
            client.submit(&text, seed, &token).await
        });
        let run = submit.await?;
        remark(format_args!("run {run}"));
        let pending = folder(self.out, &run, self.force)?;
        let watched = watch(self.config, &run, pending).await?;
        Ok((run, watched))
    }
}
