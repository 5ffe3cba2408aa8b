//! The log of a program, on standard error.

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use wire::LogLine;

/// The variable that chooses what is logged: a level, or levels by module.
const LEVELS: &str = "KINDRED_LOG";
/// Kindred's own crates: libraries of others say more than anybody reads, and some of it what travels.
const OWN: [&str; 5] = ["coordinator", "site_agent", "service", "wire", "protocol"];

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line, for machines
    Json,
}

/// Begins the log: of the level that the command line asks for, else as `KINDRED_LOG` says, else of the usual level.
pub fn begin(format: LogFormat, asked: Option<LevelFilter>, usual: LevelFilter) {
    let levels = match asked {
        Some(level) => {
            let others = level.min(LevelFilter::INFO);
            let own = OWN.map(|name| (name, level));
            Targets::new().with_default(others).with_targets(own)
        }
        None => {
            let set = std::env::var(LEVELS).ok();
            let set = set.and_then(|words| words.parse::<Targets>().ok());
            set.unwrap_or_else(|| Targets::new().with_default(usual))
        }
    };
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
