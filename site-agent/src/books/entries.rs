//! The entries of the ledger, and what they come to.

use super::identity::{Question, RunDigest};
use super::ledger::{Answered, Asks};
use privacy::SoFar;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What runs have used of a study's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Runs that have told something of their patients, or have asked about others.
    pub runs: u64,
    /// Rounds of all runs together.
    pub rounds: u64,
    /// Patients of others whom runs have asked about.
    pub queries: u64,
}

/// What the entries come to.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// The digest of the site's key.
    pub(super) key: Option<String>,
    pub(super) runs: Vec<Run>,
    /// Runs for which a cohort was read, by day and operator.
    pub(super) descriptions: BTreeMap<(u64, String), BTreeSet<RunDigest>>,
}

/// A run on one cohort. A run that comes back with another cohort stands here twice, the latest last.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) digest: RunDigest,
    pub(super) cohort: String,
    /// The digest of the study that it counts for.
    study: Option<String>,
    pub(super) answers: BTreeMap<Question, Answered>,
    pub(super) so_far: SoFar,
    /// Whether it has told anything of its cohort but the size.
    pub(super) told: bool,
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
    /// A cohort is read for an operator's run, on a day since 1970.
    Description {
        run: RunDigest,
        operator: String,
        day: u64,
    },
    /// A run, under this name of the coordinator's, goes on a cohort, and counts for the study with this digest.
    Run {
        run: RunDigest,
        name: String,
        cohort: String,
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
    pub(super) fn latest(&self, run: &RunDigest) -> Option<&Run> {
        self.runs.iter().rev().find(|known| known.digest == *run)
    }

    pub(super) fn latest_mut(&mut self, run: &RunDigest) -> Option<&mut Run> {
        self.runs
            .iter_mut()
            .rev()
            .find(|known| known.digest == *run)
    }

    /// What runs have used of each study, by its digest; but for one run.
    pub(super) fn used(&self, but: Option<&RunDigest>) -> BTreeMap<String, Used> {
        let mut told: BTreeMap<&String, BTreeSet<&RunDigest>> = BTreeMap::new();
        let mut used: BTreeMap<String, Used> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| Some(&run.digest) != but) {
            let Some(study) = &run.study else { continue };
            let own = used.entry(study.clone()).or_default();
            // A run that came back with other patients stands here twice.
            let counts = !run.void && (run.told || run.asks.is_some());
            let is_new = counts && told.entry(study).or_default().insert(&run.digest);
            own.runs += u64::from(is_new);
            own.rounds = own.rounds.saturating_add(run.so_far.rounds);
            let queries = run.asks.as_ref().map_or(0, |asks| asks.queries);
            own.queries = own.queries.saturating_add(queries);
        }
        used
    }

    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Key { digest } => {
                self.key.get_or_insert(digest);
            }
            Event::Description { run, operator, day } => {
                let today = self.descriptions.entry((day, operator)).or_default();
                today.insert(run);
            }
            Event::Run {
                run, cohort, study, ..
            } => {
                let same = |known: &Run| known.digest == run && known.cohort == cohort;
                let known = self.runs.iter().position(same);
                let latest = match known {
                    Some(index) => self.runs.remove(index),
                    None => Run {
                        digest: run,
                        cohort,
                        study,
                        answers: BTreeMap::new(),
                        so_far: SoFar::default(),
                        told: false,
                        void: false,
                        asks: None,
                    },
                };
                self.runs.push(latest);
            }
            Event::Asks { run, asks } => {
                if let Some(known) = self.latest_mut(&run) {
                    known.asks = Some(asks);
                }
            }
            Event::Answer {
                run,
                question,
                answered,
            } => {
                if let Some(known) = self.latest_mut(&run)
                    && !known.answers.contains_key(&question)
                {
                    known.told |= answered.tells;
                    known.so_far.rounds += answered.rounds;
                    known.so_far.kinds.insert(answered.kind.clone());
                    known.answers.insert(question, answered);
                }
            }
            Event::Void { run } => {
                if let Some(known) = self.latest_mut(&run) {
                    known.void = true;
                }
            }
            Event::Shut { run } => {
                if let Some(known) = self.latest_mut(&run) {
                    known.so_far.shut = true;
                    known.told = true;
                }
            }
        }
    }
}
