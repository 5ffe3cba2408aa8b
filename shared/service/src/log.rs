//! The log of a program, on standard error.

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use wire::LogLine;

/// The variable that chooses what is logged: a level, or levels by module.
const LEVELS: &str = "KINDRED_LOG";

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line, for machines
    Json,
}

/// Begins the log, of lines of this level and above where `KINDRED_LOG` does not choose others.
pub fn begin(format: LogFormat, level: LevelFilter) {
    let asked = std::env::var(LEVELS).ok();
    let asked = asked.and_then(|words| words.parse::<Targets>().ok());
    let levels = asked.unwrap_or_else(|| Targets::new().with_default(level));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false);
    let log = tracing_subscriber::registry();
    match format {
        LogFormat::Text => log
            .with(lines.with_writer(|| LogLine::Text))
            .with(levels)
            .init(),
        LogFormat::Json => log
            .with(
                lines
                    .json()
                    .flatten_event(true)
                    .with_writer(|| LogLine::Json),
            )
            .with(levels)
            .init(),
    }
}
