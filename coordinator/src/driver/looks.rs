//! What the pages show besides what operators ask for: rounds as they closed, a study's text, and when hospitals were here.

use super::calls::busy;
use super::{Driver, Shown, locked};
use crate::store::Reach;
use protocol::failure::{Code, Failure};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::{Course, Progress};
use protocol::study::{Study, StudyName};
use protocol::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use wire::Reply;

/// Closed rounds of a run that are kept; of more the oldest go.
const ROUNDS_MAX: usize = 500;

/// A look of an operator at what is theirs.
pub struct Look {
    /// Who looks.
    pub operator: OperatorName,
    /// At what.
    pub at: Sight,
}

/// What can be looked at. Of what is not the operator's own there is nothing to see.
pub enum Sight {
    /// The rounds of a run that has not ended, as they closed.
    Rounds(RunId, Reply<Rounds>),
    /// A study that names the operator.
    Study(StudyName, Reply<OwnStudy>),
    /// The hospitals of the operator's studies.
    Hospitals(Reply<BTreeMap<SiteName, Presence>>),
}

/// A study, and the operator's runs of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnStudy {
    /// The study.
    pub study: Study,
    /// The runs.
    pub runs: BTreeSet<RunId>,
}

/// Rounds of a run as they closed since the coordinator started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rounds {
    /// The oldest first.
    pub closed: VecDeque<ClosedRound>,
}

/// A round that has closed.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedRound {
    /// What was going on.
    pub phase: String,
    /// How far it had come.
    pub course: Course,
}

/// Whether a hospital is here, since this coordinator started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// Version of its agent.
    pub version: String,
    /// When it came, or was last here.
    pub since: Timestamp,
    /// Whether it is connected.
    pub connected: bool,
}

impl Rounds {
    /// Takes note of a round that has closed, where this progress is the first to know of it.
    pub(super) fn note(&mut self, progress: &Progress) {
        let round = progress.course.round;
        // What follows rounds says their last number as well. A phase that has rounds of its own begins at 1.
        let is_known = |last: &ClosedRound| {
            last.course.round == round && (last.phase == progress.phase || round > 1)
        };
        if round == 0 || self.closed.back().is_some_and(is_known) {
            return;
        }
        if self.closed.len() >= ROUNDS_MAX {
            self.closed.pop_front();
        }
        self.closed.push_back(ClosedRound {
            phase: progress.phase.clone(),
            course: progress.course,
        });
    }
}

impl Driver {
    pub(super) fn look(&self, Look { operator, at }: Look) {
        let whose = self.reach(&operator);
        // Whoever looked may have gone.
        match at {
            Sight::Rounds(run, reply) => {
                let rounds = |shown: &Shown| shown.rounds.clone();
                let own = self.own(&run, &whose);
                let _ = reply.send(Ok(own.map(rounds).unwrap_or_default()));
            }
            Sight::Study(name, reply) => self.look_at_study(whose, &name, reply),
            Sight::Hospitals(reply) => {
                let own = self.studies.hospitals_of(&whose);
                let known = own.into_iter().filter_map(|site| {
                    let presence = self.presence.get(&site)?.clone();
                    Some((site, presence))
                });
                let _ = reply.send(Ok(known.collect()));
            }
        }
    }

    fn look_at_study(&self, whose: Reach, name: &StudyName, reply: Reply<OwnStudy>) {
        let Some(study) = self.studies.own(&whose, name).cloned() else {
            let text = "no study of this name names you";
            let _ = reply.send(Err(Failure::new(Code::Study, text)));
            return;
        };
        let Some(permit) = self.permit() else {
            let _ = reply.send(Err(busy()));
            return;
        };
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            let runs = locked(&store).runs_of(&study, &whose);
            let found = runs.map(|runs| OwnStudy { study, runs });
            let _ = reply.send(found.map_err(|error| {
                tracing::error!(%error, "the runs of a study cannot be listed");
                Failure::new(Code::Store, error.to_string())
            }));
            drop(permit);
        });
    }

    /// Takes note of a hospital that came, by its agent's version, or went.
    pub(super) fn note_presence(&mut self, site: &SiteName, came: Option<&str>) {
        self.seen.connected(site, came.is_some());
        let since = self.clock.now();
        match (came, self.presence.get_mut(site)) {
            (Some(version), _) => {
                let presence = Presence {
                    version: version.to_owned(),
                    since,
                    connected: true,
                };
                self.presence.insert(site.clone(), presence);
            }
            (None, Some(known)) => {
                known.since = since;
                known.connected = false;
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::unreadable;

    #[test]
    fn each_round_is_kept_once_and_of_many_the_newest() {
        let mut rounds = Rounds::default();
        let mut note = |phase: &str, round: u32| {
            let mut progress = unreadable(RunId::new("a1").unwrap());
            phase.clone_into(&mut progress.phase);
            progress.course.round = round;
            rounds.note(&progress);
        };
        note("moments", 0);
        for round in [1, 1, 2] {
            note("folds", round);
        }
        for round in 1..=ROUNDS_MAX {
            note("rounds", u32::try_from(round).unwrap());
        }
        let kept: Vec<(&str, u32)> = rounds
            .closed
            .iter()
            .map(|one| (one.phase.as_str(), one.course.round))
            .collect();
        assert_eq!((kept.len(), kept[0]), (ROUNDS_MAX, ("rounds", 1)));
        assert_eq!(kept[ROUNDS_MAX - 1], ("rounds", 500));
        let mut few = Rounds::default();
        let mut progress = unreadable(RunId::new("a1").unwrap());
        for (phase, round) in [
            ("folds", 1),
            ("folds", 1),
            ("rounds", 1),
            ("rounds", 2),
            ("finishing", 2),
        ] {
            phase.clone_into(&mut progress.phase);
            progress.course.round = round;
            few.note(&progress);
        }
        assert_eq!(few.closed.len(), 3);
    }
}
