//! Runs that wait: by turns, one operator after the other, so that nobody's queue keeps out another's run.

use crate::store::Submission;
use protocol::failure::{Code, Failure};
use protocol::limits::{QUEUE_MAX, QUEUE_PER_OPERATOR_MAX};
use protocol::name::{OperatorName, RunId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Submission>,
    /// Of each operator who waits, when a run was last begun for them; in turns.
    served: BTreeMap<OperatorName, u64>,
    turn: u64,
    /// Submissions by operator that are being read.
    reading: BTreeMap<OperatorName, usize>,
}

impl Queue {
    pub(super) fn push(&mut self, submission: Submission) {
        self.waiting.push_back(submission);
    }

    /// Whether such a run waits.
    pub(super) fn has(&self, is_ready: impl Fn(&Submission) -> bool) -> bool {
        self.waiting.iter().any(is_ready)
    }

    /// Of such runs one that had begun before, or the first of the operator who has waited longest for a turn.
    pub(super) fn next(&mut self, is_ready: impl Fn(&Submission) -> bool) -> Option<Submission> {
        let ready = self.waiting.iter().enumerate();
        let next = next_of(ready.filter(|(_, one)| is_ready(one)), &self.served)?;
        let next = self.waiting.remove(next)?;
        self.turn += 1;
        self.served.insert(next.operator.clone(), self.turn);
        let waiting = &self.waiting;
        let turn = self.turn;
        self.served.retain(|operator, last| {
            *last == turn || waiting.iter().any(|one| one.operator == *operator)
        });
        Some(next)
    }

    /// The runs in the order in which they will begin, as things stand.
    pub(super) fn order(&self) -> Vec<&RunId> {
        let mut served = self.served.clone();
        let mut left: BTreeSet<usize> = (0..self.waiting.len()).collect();
        let mut order = Vec::with_capacity(left.len());
        for turn in self.turn + 1.. {
            let waiting = left.iter().map(|place| (*place, &self.waiting[*place]));
            let Some(next) = next_of(waiting, &served) else {
                break;
            };
            left.remove(&next);
            served.insert(self.waiting[next].operator.clone(), turn);
            order.push(&self.waiting[next].run);
        }
        order
    }

    /// Such runs, taken out of the queue.
    pub(super) fn take(&mut self, is_meant: impl Fn(&Submission) -> bool) -> Vec<Submission> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (taken, left): (VecDeque<_>, _) = waiting.partition(is_meant);
        self.waiting = left;
        taken.into()
    }

    pub(super) fn remove(&mut self, run: &RunId) -> Option<Submission> {
        let place = self.waiting.iter().position(|one| one.run == *run)?;
        self.waiting.remove(place)
    }

    /// Makes room for a submission of `operator` that is about to be read.
    pub(super) fn reserve(&mut self, operator: &OperatorName) -> Result<(), Failure> {
        let reading: usize = self.reading.values().sum();
        let own = self.reading.get(operator).copied().unwrap_or(0);
        let waiting = self.waiting.iter().filter(|one| one.operator == *operator);
        let own = own + waiting.count();
        *self.reading.entry(operator.clone()).or_default() += 1;
        let text = if own >= QUEUE_PER_OPERATOR_MAX {
            format!("{own} of your runs are waiting already; try again later")
        } else if self.waiting.len() + reading >= QUEUE_MAX {
            format!("{QUEUE_MAX} runs are waiting already; try again later")
        } else {
            return Ok(());
        };
        Err(Failure::new(Code::Busy, text))
    }

    /// A submission has been read.
    pub(super) fn release(&mut self, operator: &OperatorName) {
        if let Some(reading) = self.reading.get_mut(operator) {
            *reading = reading.saturating_sub(1);
            if *reading == 0 {
                self.reading.remove(operator);
            }
        }
    }
}

/// The place of the run that is next, of those that wait; `served` says when each operator had the last turn.
fn next_of<'q>(
    waiting: impl Iterator<Item = (usize, &'q Submission)>,
    served: &BTreeMap<OperatorName, u64>,
) -> Option<usize> {
    let last = |one: &Submission| served.get(&one.operator).copied().unwrap_or(0);
    let turn = |(place, one): &(usize, &Submission)| (one.began.is_none(), last(one), *place);
    waiting.min_by_key(turn).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::job::Job;
    use protocol::message::Warrant;
    use protocol::time::Timestamp;

    fn named(operator: &str) -> OperatorName {
        OperatorName::new(operator).unwrap()
    }

    fn submission(run: &str, operator: &str) -> Submission {
        let job = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n[outcome]\ncolumn = \"y\"\n\
            kind = \"binary\"\npositive = [\"1\"]\n[[features]]\nname = \"x\"\nkind = \"numeric\"\n[unpsl]\n";
        Submission {
            run: RunId::new(run).unwrap(),
            operator: named(operator),
            job: Job::parse(job).unwrap(),
            seed: 1,
            warrant: Warrant::default(),
            submitted: Timestamp(0),
            began: None,
        }
    }

    #[test]
    fn operators_take_turns_and_each_ones_runs_keep_their_order() {
        let mut queue = Queue::default();
        for (run, operator) in [
            ("a1", "a"),
            ("a2", "a"),
            ("a3", "a"),
            ("b1", "b"),
            ("b2", "b"),
        ] {
            queue.push(submission(run, operator));
        }
        let foreseen: Vec<String> = queue.order().into_iter().map(RunId::to_string).collect();
        let mut order = Vec::new();
        while let Some(next) = queue.next(|_| true) {
            order.push(next.run.to_string());
        }
        assert_eq!(order, ["a1", "b1", "a2", "b2", "a3"]);
        assert_eq!(foreseen, order);
    }

    #[test]
    fn the_queue_of_one_operator_is_shorter_than_that_of_all() {
        let mut queue = Queue::default();
        for run in 0..QUEUE_PER_OPERATOR_MAX {
            queue.reserve(&named("a")).unwrap();
            queue.push(submission(&format!("a{run}"), "a"));
            queue.release(&named("a"));
        }
        assert_eq!(queue.reserve(&named("a")).unwrap_err().code, Code::Busy);
        queue.release(&named("a"));
        queue.reserve(&named("b")).unwrap();
    }
}
