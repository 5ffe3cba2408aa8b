//! The entries of the ledger, and what they come to.

use super::identity::{Question, RunDigest};
use super::ledger::{Answered, Asks};
use privacy::{Limits, SoFar};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What runs have used of a study's limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Runs that have released something of their patients, or have asked about others.
    runs: u64,
    /// Rounds of all runs together.
    rounds: u64,
    /// Patients of others, and centres, about which runs have asked.
    queries: u64,
    /// Digests of the learned runs by which they have parted the patients.
    pub(super) groupings: BTreeSet<String>,
}

impl Used {
    /// As numbers.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            runs: self.runs,
            rounds: self.rounds,
            queries: self.queries,
            metrics_for_groups: self.groupings.len() as u64,
        }
    }
}

/// What the entries come to.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// The digest of the site's key.
    pub(super) key: Option<String>,
    runs: BTreeMap<RunDigest, Run>,
}

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    /// Its name, as it was first heard.
    name: String,
    /// The digest of the study that it counts for.
    study: Option<String>,
    pub(super) answers: BTreeMap<Question, Answered>,
    pub(super) so_far: SoFar,
    /// Whether it has released anything of its cohort but the size.
    told: bool,
    /// Whether nothing came of it, by the fault of a hospital. Its rounds count, for they were answered; the run does not, or whoever
    /// spoils runs would use up everybody's.
    pub(super) void: bool,
    /// What it asks about patients of others, where it does.
    pub(super) asks: Option<Asks>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// A digest of the site's key: always the first entry, and no other.
    Key { digest: String },
    /// A run, under this name of the coordinator's, begins, and counts for the study with this digest.
    Run {
        run: RunDigest,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        study: Option<String>,
    },
    /// It asks who in the cohort is alike to patients of others.
    Asks { run: RunDigest, asks: Asks },
    /// A question of it is answered.
    Answer {
        run: RunDigest,
        question: Question,
        answered: Answered,
    },
    /// A brake has shut its gate.
    Shut { run: RunDigest },
    /// A sum of it was not one of patients: nothing came of it.
    Void { run: RunDigest },
}

impl Books {
    pub(super) fn run(&self, run: &RunDigest) -> Option<&Run> {
        self.runs.get(run)
    }

    /// The names of the runs that count for the study with this digest.
    pub(super) fn names(&self, study: &str) -> BTreeSet<String> {
        let runs = self.runs.values();
        let own = runs.filter(|run| run.study.as_deref() == Some(study));
        own.map(|run| run.name.clone()).collect()
    }

    /// What runs have used of each study, by its digest; but for one run.
    pub(super) fn used(&self, but: Option<&RunDigest>) -> BTreeMap<String, Used> {
        let mut used: BTreeMap<String, Used> = BTreeMap::new();
        for (digest, run) in &self.runs {
            let Some(study) = run.study.as_ref().filter(|_| Some(digest) != but) else {
                continue;
            };
            let own = used.entry(study.clone()).or_default();
            own.runs += u64::from(!run.void && (run.told || run.asks.is_some()));
            own.rounds = own.rounds.saturating_add(run.so_far.rounds);
            if let Some(asks) = &run.asks {
                own.queries = own.queries.saturating_add(asks.queries);
                own.groupings.insert(asks.grouping.clone());
            }
        }
        used
    }

    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Key { digest } => {
                self.key.get_or_insert(digest);
            }
            Event::Run { run, name, study } => {
                self.runs.entry(run).or_insert_with(|| Run {
                    name,
                    study,
                    answers: BTreeMap::new(),
                    so_far: SoFar::default(),
                    told: false,
                    void: false,
                    asks: None,
                });
            }
            Event::Asks { run, asks } => {
                if let Some(known) = self.runs.get_mut(&run) {
                    known.asks = Some(asks);
                }
            }
            Event::Answer {
                run,
                question,
                answered,
            } => {
                if let Some(known) = self.runs.get_mut(&run)
                    && !known.answers.contains_key(&question)
                {
                    known.told |= answered.tells;
                    known.so_far.rounds = known.so_far.rounds.saturating_add(answered.rounds);
                    known.so_far.kinds.insert(answered.kind.clone());
                    known.answers.insert(question, answered);
                }
            }
            Event::Void { run } => {
                if let Some(known) = self.runs.get_mut(&run) {
                    known.void = true;
                }
            }
            Event::Shut { run } => {
                if let Some(known) = self.runs.get_mut(&run) {
                    known.so_far.shut = true;
                    known.told = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Event;

    /// Every kind of entry, as it stands in the ledgers of hospitals.
    const WRITTEN: [&str; 7] = [
        r#"{"key":{"digest":"a78bac0d400e0ae4"}}"#,
        r#"{"run":{"run":"d5","name":"6e3e90b16212"}}"#,
        r#"{"run":{"run":"d7","name":"1ca2dc336ee1","study":"fd0c"}}"#,
        r#"{"asks":{"run":"d7","asks":{"grouping":"cd","queries":3}}}"#,
        r#"{"answer":{"run":"d7","question":"46","answered":{"kind":"sums","tells":true,"rounds":1,"digest":"69","exchange":35}}}"#,
        r#"{"shut":{"run":"d7"}}"#,
        r#"{"void":{"run":"d7"}}"#,
    ];

    #[test]
    fn entries_are_written_as_they_were() {
        for line in WRITTEN {
            let event: Event = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
        }
    }
}
