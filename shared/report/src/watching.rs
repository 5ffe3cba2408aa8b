//! Shows a run while it goes: one moving line on a terminal, plain lines elsewhere.

use crate::saying::{is_watched, remark};
use crate::words::duration;
use crate::words::moment;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use protocol::progress::Progress;
use protocol::time::Timestamp;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Between two plain lines of one phase.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Before this, rounds say little about their pace.
const PACE_AFTER: Duration = Duration::from_secs(2);

/// The eye on one run.
pub struct Watching {
    bar: Option<ProgressBar>,
    phase: String,
    shown: Instant,
    /// The first round that was seen of the present phase, and when.
    seen: Option<(u32, Instant)>,
    /// Since when the run waits, by the coordinator's clock, and when that was first seen.
    waits: Option<(Timestamp, Instant)>,
}

impl Watching {
    /// Shows nothing, because nobody waits at a terminal.
    #[must_use]
    pub fn hidden() -> Self {
        Self::by(Some(ProgressBar::hidden()))
    }

    /// Begins to show, on standard error.
    #[must_use]
    pub fn new() -> Self {
        let bar = (is_watched() && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self::by(bar)
    }

    fn by(bar: Option<ProgressBar>) -> Self {
        Self {
            bar,
            phase: String::new(),
            shown: Instant::now(),
            seen: None,
            waits: None,
        }
    }

    /// Shows where the run stands.
    pub fn show(&mut self, progress: &Progress) {
        let round = progress.course.round;
        let goes_on = progress.phase == self.phase;
        if round > 0 && !(goes_on && self.seen.is_some_and(|(first, _)| first <= round)) {
            self.seen = Some((round, Instant::now()));
        }
        let since = progress.waiting_since;
        if self.waits.map(|(since, _)| since) != since {
            self.waits = since.map(|since| (since, Instant::now()));
        }
        let is_late = self
            .waits
            .is_some_and(|(_, seen)| seen.elapsed() >= LINE_EVERY);
        let line = line(progress, self.time_left(progress), is_late);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => {
                let due = progress.phase != self.phase
                    || self.shown.elapsed() >= LINE_EVERY
                    || progress.ending.is_some();
                if due {
                    remark(&line);
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

    /// At the pace that was seen, until the round limit; convergence comes earlier. None before there is a pace.
    fn time_left(&self, progress: &Progress) -> Option<Duration> {
        let (first, began) = self.seen?;
        pace(first, began.elapsed(), progress)
    }
}

/// The time until the round limit, where the rounds since `first` took so long.
fn pace(first: u32, took: Duration, progress: &Progress) -> Option<Duration> {
    let (round, limit) = (progress.course.round, progress.course.round_limit);
    let done = round.checked_sub(first).filter(|done| *done > 0)?;
    let left = limit.checked_sub(round).filter(|left| *left > 0)?;
    (progress.ending.is_none() && took >= PACE_AFTER)
        .then(|| took.mul_f64(f64::from(left) / f64::from(done)))
}

/// Where a run is, on one line. It names sites that are not connected, and others only where they are late.
fn line(progress: &Progress, left: Option<Duration>, is_late: bool) -> String {
    let course = progress.course;
    let mut line = match (&progress.ending, progress.ahead) {
        (Some(ending), _) => format!("ended: {}", ending.status().replace('_', " ")),
        (None, Some(0)) => return "queued: next to begin".to_owned(),
        (None, Some(1)) => return "queued: 1 run comes before it".to_owned(),
        (None, Some(ahead)) => return format!("queued: {ahead} runs come before it"),
        (None, None) => format!(
            "{}: {} of {} sites connected",
            progress.phase, progress.sites_connected, progress.sites
        ),
    };
    if course.round > 0 {
        line.push_str(&format!(", round {}", course.round));
        if course.round_limit > 0 && progress.ending.is_none() {
            line.push_str(&format!(" of at most {}", course.round_limit));
        }
    }
    let mut figure = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            line.push_str(&format!(", {name} {value:.3e}"));
        }
    };
    figure("objective", course.objective);
    figure("left", course.left);
    figure("primal", course.primal_residual);
    figure("dual", course.dual_residual);
    if let Some(left) = left {
        line.push_str(&format!(", up to {} left at this pace", duration(left)));
    }
    let named = progress
        .waiting_for
        .iter()
        .filter_map(|site| match progress.away.contains(site) {
            true => Some(format!("{site} (not connected)")),
            false => is_late.then(|| site.clone()),
        });
    let named: Vec<String> = named.collect();
    if !named.is_empty() && progress.ending.is_none() {
        line.push_str(&format!(", waiting for {}", named.join(", ")));
        let since = progress.waiting_since.and_then(moment);
        line.push_str(&since.map_or(String::new(), |since| format!(" since {since}")));
    }
    line
}

impl Default for Watching {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::name::RunId;
    use protocol::progress::{Course, Ending, Times};

    fn progress(round: u32, round_limit: u32) -> Progress {
        Progress {
            run: RunId::new("a1").unwrap(),
            job: "heart".to_owned(),
            method: "unpsl".to_owned(),
            operator: None,
            times: Times::default(),
            ahead: None,
            phase: "rounds".to_owned(),
            course: Course {
                round,
                round_limit,
                ..Course::default()
            },
            sites_connected: 4,
            sites: 4,
            waiting_for: Vec::new(),
            away: Vec::new(),
            waiting_since: None,
            notes: 0,
            ending: None,
        }
    }

    #[test]
    fn who_comes_late_is_told_the_time_by_the_rounds_that_were_seen() {
        let mut watching = Watching::new();
        watching.show(&progress(163, 2_000));
        assert_eq!(watching.seen.unwrap().0, 163);
        assert_eq!(watching.time_left(&progress(164, 2_000)), None);
        let four = Duration::from_secs(4);
        assert_eq!(pace(163, four, &progress(163, 2_000)), None);
        let left = pace(163, four, &progress(173, 2_000)).unwrap();
        assert!(
            (left.as_secs_f64() - 0.4 * 1_827.0).abs() < 1e-6,
            "{left:?}"
        );
        // Another phase begins to count again.
        watching.show(&Progress {
            phase: "folds".to_owned(),
            ..progress(2, 100)
        });
        assert_eq!(watching.seen.unwrap().0, 2);
    }

    #[test]
    fn a_line_says_what_is_true_of_queued_running_and_ended_runs() {
        let mut run = progress(3, 200);
        assert_eq!(
            line(&run, Some(Duration::from_secs(9)), false),
            "rounds: 4 of 4 sites connected, round 3 of at most 200, up to 9.0 s left at this pace"
        );
        run.course.round_limit = 0;
        run.sites_connected = 0;
        run.ending = Some(Ending::RoundLimit);
        assert_eq!(line(&run, None, false), "ended: round limit, round 3");
        run.course.round = 0;
        run.ending = Some(Ending::Completed);
        assert_eq!(line(&run, None, false), "ended: completed");
        run.ending = None;
        run.waiting_for = vec!["north".to_owned(), "south".to_owned()];
        assert_eq!(line(&run, None, false), "rounds: 0 of 4 sites connected");
        let late = line(&run, None, true);
        assert!(late.ends_with(", waiting for north, south"), "{late}");
        run.away = vec!["south".to_owned()];
        let away = line(&run, None, false);
        assert!(
            away.ends_with(", waiting for south (not connected)"),
            "{away}"
        );
        run.ahead = Some(2);
        assert_eq!(line(&run, None, false), "queued: 2 runs come before it");
    }
}
