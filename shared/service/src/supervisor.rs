//! What systemd learns of a program that it started with `Type=notify`. Nobody else is listening, and nothing is said then.

use sd_notify::{NotifyState, notify, watchdog_enabled};

/// The program does its work now.
pub fn ready() {
    say(&[NotifyState::Ready]);
}

/// What the program does at present, in a few words.
pub fn status(text: &str) {
    let line = text.lines().next().unwrap_or_default();
    say(&[NotifyState::Status(line)]);
}

/// The program reads its files again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => say(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the clock of this machine cannot be read"),
    }
}

/// The program is about to end.
pub fn stopping() {
    say(&[NotifyState::Stopping]);
}

/// Feeds the watchdog, where there is one, twice in the time after which it would start the program again.
pub async fn feed_watchdog() {
    let Some(patience) = watchdog_enabled() else {
        return;
    };
    let mut next = tokio::time::interval(patience / 2);
    loop {
        next.tick().await;
        say(&[NotifyState::Watchdog]);
    }
}

fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        tracing::warn!(%error, "systemd cannot be notified");
    }
}
