//! How far an experiment is: one moving line on a terminal, a plain line a table elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one table or figure, on standard error.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(crate) fn begin(what: &str, steps: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            eprintln!("{what}: {steps} steps");
            return Self(None);
        }
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        let template = "{spinner} {elapsed_precise} {msg} {pos}/{len}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self(Some(bar))
    }

    pub(crate) fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
