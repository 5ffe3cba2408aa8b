//! What waits for the worker: a short queue whose length the coordinator cannot choose.

use protocol::site::Action;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wire::Sealed;

/// What the site's machine wants done.
pub type Order = Action<Sealed>;

/// Orders of a run that wait for the worker, as many exchanges that closed, and as many words on studies. A coordinator asks one exchange
/// at a time, and a site that comes back into a run at most five.
pub const ORDERS_MAX: usize = 8;

/// Orders that share places. None takes the place of another kind: whoever proposes studies keeps no question of a run out.
#[derive(PartialEq, Eq)]
enum Kind {
    /// A run begins, asks or is over.
    OfRun,
    /// What closed comes before the question that builds on it.
    Closed,
    /// What is proposed, and what is over.
    OfStudies,
}

/// The sending end. Dropped, it lets the worker finish what waits and stop.
#[derive(Debug)]
pub struct Orders(Arc<Queue>);

/// The worker's end.
#[derive(Debug)]
pub struct Inbox(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Order>,
    is_closed: bool,
}

/// An empty queue.
#[must_use]
pub fn orders() -> (Orders, Inbox) {
    let queue = Arc::new(Queue::default());
    (Orders(Arc::clone(&queue)), Inbox(queue))
}

impl Orders {
    /// Queues an order; false where [`ORDERS_MAX`] of its kind wait already and it was ignored. A run that begins takes the
    /// place of all that waits of runs, because nobody waits for those answers any more.
    #[must_use]
    pub fn push(&self, order: Order) -> bool {
        let mut state = self.0.lock();
        match &order {
            Action::Begin(_) => state
                .waiting
                .retain(|waiting| kind(waiting) == Kind::OfStudies),
            Action::LetGo { run: over, .. } => state
                .waiting
                .retain(|waiting| !matches!(waiting, Action::Compute(ask) if ask.run == *over)),
            Action::Send(_)
            | Action::Compute(_)
            | Action::Follow(_)
            | Action::Propose(_)
            | Action::Close(_)
            | Action::Wait(_) => {}
        }
        let own = kind(&order);
        let same = state.waiting.iter().filter(|one| kind(one) == own);
        if same.count() >= ORDERS_MAX {
            return false;
        }
        state.waiting.push_back(order);
        drop(state);
        self.0.news.notify_one();
        true
    }
}

fn kind(order: &Order) -> Kind {
    match order {
        Action::Begin(_) | Action::Compute(_) | Action::LetGo { .. } => Kind::OfRun,
        Action::Follow(_) => Kind::Closed,
        // The conversation itself sends and waits; neither is queued.
        Action::Propose(_) | Action::Close(_) | Action::Send(_) | Action::Wait(_) => {
            Kind::OfStudies
        }
    }
}

impl Inbox {
    /// Waits for the next order; none once nobody can send any more.
    #[must_use]
    pub fn next(&self) -> Option<Order> {
        let mut state = self.0.lock();
        loop {
            if let Some(order) = state.waiting.pop_front() {
                return Some(order);
            }
            if state.is_closed {
                return None;
            }
            state = self
                .0
                .news
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.news.notify_one();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::{Ask, Begin, Closed, Request, Warrant};
    use protocol::name::RunId;
    use protocol::run::Record;
    use protocol::time::Timestamp;

    fn begin(run: &str) -> Order {
        Action::Begin(Begin {
            run: RunId::new(run).unwrap(),
            job: String::new(),
            seed: 1,
            warrant: Warrant::default(),
            opening: None,
        })
    }

    fn ask(run: &str, exchange: u32) -> Order {
        Action::Compute(Ask {
            run: RunId::new(run).unwrap(),
            exchange,
            request: Request::Describe,
        })
    }

    fn exchanges(inbox: &Inbox) -> Vec<Option<u32>> {
        let mut found = Vec::new();
        while let Some(order) = inbox.next() {
            found.push(match order {
                Action::Compute(ask) => Some(ask.exchange),
                _ => None,
            });
        }
        found
    }

    #[test]
    fn a_ninth_question_is_ignored_and_the_others_are_answered_in_order() {
        let (orders, inbox) = orders();
        let taken: Vec<bool> = (1..=20)
            .map(|number| orders.push(ask("a", number)))
            .collect();
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 8);
        drop(orders);
        assert_eq!(exchanges(&inbox), (1..=8).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn what_closed_keeps_no_question_out() {
        let (orders, inbox) = orders();
        let closed = |exchange| {
            Action::Follow(Arc::new(Closed {
                run: RunId::new("a").unwrap(),
                record: Record {
                    at: Timestamp(0),
                    exchange,
                    answers: Vec::new(),
                    signatures: Vec::new(),
                },
                total: None,
            }))
        };
        assert!((0..8).all(|exchange| orders.push(closed(exchange))));
        assert!(!orders.push(closed(8)));
        assert!(orders.push(ask("a", 8)));
        drop(orders);
        assert_eq!(exchanges(&inbox)[8], Some(8));
    }

    #[test]
    fn proposals_keep_no_question_out_and_a_new_run_loses_none() {
        let (orders, inbox) = orders();
        for _ in 0..8 {
            assert!(orders.push(Action::Propose(String::new())));
        }
        assert!(!orders.push(Action::Propose(String::new())));
        assert!(orders.push(ask("a", 1)));
        assert!(orders.push(begin("b")));
        assert!(orders.push(ask("b", 2)));
        drop(orders);
        let mut proposals = 0;
        let mut asked = Vec::new();
        while let Some(order) = inbox.next() {
            match order {
                Action::Propose(_) => proposals += 1,
                Action::Compute(ask) => asked.push(ask.exchange),
                _ => {}
            }
        }
        assert_eq!((proposals, asked), (8, vec![2]));
    }

    #[test]
    fn a_new_run_takes_the_place_of_all_that_waits() {
        let (orders, inbox) = orders();
        for number in 1..=8 {
            assert!(orders.push(ask("a", number)));
        }
        assert!(orders.push(begin("b")));
        assert!(orders.push(ask("b", 1)));
        drop(orders);
        assert_eq!(exchanges(&inbox), [None, Some(1)]);
    }

    #[test]
    fn a_run_that_is_over_leaves_no_question_of_its_own() {
        let (orders, inbox) = orders();
        for number in 1..=8 {
            assert!(orders.push(ask("a", number)));
        }
        let run = RunId::new("a").unwrap();
        let ending = String::new();
        assert!(orders.push(Action::LetGo { run, ending }));
        drop(orders);
        assert_eq!(exchanges(&inbox), [None]);
    }
}
