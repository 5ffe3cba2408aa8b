//! `site init`: `[source]`, `[columns]` and `[policy]` of a configuration, proposed from a table and a study.

use crate::cli;
use crate::config::SiteConfig;
use crate::source::{Proposal, TableError, propose};
use privacy::Rules;
use protocol::study::Study;
use serde::Serialize;
use std::fmt;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use wire::jobs::StudyFileError;
use wire::private;

/// A configuration that could not be proposed.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The table cannot be looked at.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The study cannot be used.
    #[error(transparent)]
    Study(#[from] StudyFileError),
    /// The configuration could not be read or written.
    #[error("{} could not be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The configuration has more than `enrol` writes.
    #[error("{}, line {line}: found {found}, wanted [source] and [policy] alone after the first [source]: what people wrote is never written over", path.display())]
    Written {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// Its heading.
        found: String,
    },
}

/// What was proposed.
#[derive(Debug, Serialize)]
pub struct Initialised {
    /// The configuration.
    config: String,
    /// Source and columns, with the reason of each.
    #[serde(flatten)]
    pub proposal: Proposal,
    /// Problems of the file as it is now: mostly its open questions.
    pub problems: Option<String>,
}

impl Initialised {
    /// What its people are to do with it.
    #[must_use]
    pub fn remark(&self) -> String {
        match &self.problems {
            None => format!("{} can be used; look at each line of it", self.config),
            Some(problems) => {
                let open = self.proposal.open().count();
                format!("{open} questions are open:\n{problems}")
            }
        }
    }
}

impl fmt::Display for Initialised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proposal.fmt(formatter)
    }
}

/// Writes what is proposed into the configuration, which has nothing of it yet.
///
/// # Errors
/// [`InitError`]; then the configuration is as it was.
pub fn init(path: &Path, asked: &cli::Table) -> Result<Initialised, InitError> {
    let failed = |source| InitError::File {
        path: path.to_owned(),
        source,
    };
    let study = wire::jobs::draft(&asked.study)?;
    let known = std::fs::read_to_string(path).map_err(failed)?;
    let Parts { head, policy } = parts(path, &known)?;
    let cell_min = Rules::default().cell_min;
    let is_attended = io::stdin().is_terminal() && io::stderr().is_terminal();
    let mut answer = |question: &str| is_attended.then(|| asked_of_person(question)).flatten();
    let confirmed = asked.confirm_units;
    let proposal = propose(&asked.data, &study, cell_min, confirmed, &mut answer)?;
    let policy = policy.unwrap_or_else(|| policy_of(&study));
    let text = format!("{head}{proposal}\n{policy}");
    private::replace(path, text.as_bytes()).map_err(failed)?;
    let problems = SiteConfig::open(path).err();
    Ok(Initialised {
        config: path.display().to_string(),
        proposal,
        problems: problems.map(|problems| problems.to_string()),
    })
}

/// What a person at the terminal answers; nothing where the question stays open.
fn asked_of_person(question: &str) -> Option<String> {
    report::remark(format_args!("{question} [Enter: leave it open]"));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    let answer = line.trim();
    (!answer.is_empty()).then(|| answer.to_owned())
}

/// A configuration without what is proposed.
struct Parts {
    /// All before `[source]`.
    head: String,
    /// The policy, where people have written one.
    policy: Option<String>,
}

fn parts(path: &Path, text: &str) -> Result<Parts, InitError> {
    let (mut head, mut policy) = (String::new(), None::<String>);
    let mut is_head = true;
    for (place, line) in text.lines().enumerate() {
        let heading = line.trim_start();
        match heading.starts_with('[') {
            true if heading.starts_with("[source]") => is_head = false,
            true if heading.starts_with("[policy]") && !is_head => policy = Some(String::new()),
            true if !is_head => {
                return Err(InitError::Written {
                    path: path.to_owned(),
                    line: place + 1,
                    found: heading.chars().take(40).collect(),
                });
            }
            true | false => {}
        }
        let part = match &mut policy {
            _ if is_head => &mut head,
            Some(policy) => policy,
            None => continue,
        };
        part.push_str(line);
        part.push('\n');
    }
    let is_open = |policy: &String| !policy.contains("operators = []");
    Ok(Parts {
        head,
        policy: policy.filter(is_open),
    })
}

fn policy_of(study: &Study) -> String {
    let operators: Vec<&str> = study
        .operators
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    format!(
        "# Who may propose studies and submit jobs, of which methods: the study's. Remove what is not allowed here.\n\
         # All other rules have their defaults.\n\
         [policy]\n\
         operators = {operators:?}\n\
         methods = {:?}\n",
        study.methods
    )
}
