//! Shows a run while it goes: one moving line on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use protocol::progress::Progress;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Between two plain lines of one phase.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The eye on one run.
pub struct Watching {
    bar: Option<ProgressBar>,
    phase: String,
    shown: Instant,
    rounds_began: Option<Instant>,
}

impl Watching {
    /// Begins to show, on standard error.
    #[must_use]
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            bar,
            phase: String::new(),
            shown: Instant::now(),
            rounds_began: None,
        }
    }

    /// Shows where the run stands.
    pub fn show(&mut self, progress: &Progress) {
        if progress.course.round > 0 && self.rounds_began.is_none() {
            self.rounds_began = Some(Instant::now());
        }
        let line = self.line(progress);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => {
                let due = progress.phase != self.phase
                    || self.shown.elapsed() >= LINE_EVERY
                    || progress.ending.is_some();
                if due {
                    eprintln!("{line}");
                    self.shown = Instant::now();
                }
            }
        }
        self.phase.clone_from(&progress.phase);
    }

    /// Ends the moving line.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, progress: &Progress) -> String {
        let mut line = format!(
            "{}: {} of {} sites connected",
            progress.phase, progress.sites_connected, progress.sites
        );
        if progress.course.round > 0 {
            line.push_str(&format!(
                ", round {} of at most {}",
                progress.course.round, progress.course.round_limit
            ));
        }
        let mut figure = |name: &str, value: Option<f64>| {
            if let Some(value) = value {
                line.push_str(&format!(", {name} {value:.3e}"));
            }
        };
        figure("objective", progress.course.objective);
        figure("primal", progress.course.primal_residual);
        figure("dual", progress.course.dual_residual);
        if let Some(left) = self.time_left(progress) {
            line.push_str(&format!(", at most {} s of rounds left", left.as_secs()));
        }
        if !progress.waiting_for.is_empty() && progress.ending.is_none() {
            line.push_str(&format!(
                ", waiting for {} (until the deadline: {:.0} s)",
                progress.waiting_for.join(", "),
                progress.deadline_seconds
            ));
        }
        line
    }

    /// At the pace so far, until the round limit; convergence comes earlier.
    fn time_left(&self, progress: &Progress) -> Option<Duration> {
        let began = self.rounds_began?;
        let done = progress
            .course
            .round
            .checked_sub(1)
            .filter(|done| *done > 0)?;
        let left = progress
            .course
            .round_limit
            .saturating_sub(progress.course.round);
        (progress.ending.is_none()).then(|| began.elapsed() / done * left)
    }
}

impl Default for Watching {
    fn default() -> Self {
        Self::new()
    }
}
