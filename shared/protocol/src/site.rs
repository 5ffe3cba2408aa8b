//! The site's side of a run: a pure state machine.
//!
//! An exchange is computed once. Asked again, the site repeats its stored answer; asked for an
//! older one, it stays silent, because the coordinator has closed it.

use crate::message::{Ask, Begin, Closed, Reply, ToCoordinator, ToSite, Waiting};
use crate::name::RunId;
use std::sync::Arc;

/// What happened outside. `A` is an answer that the release rules cleared.
#[derive(Debug, Clone)]
pub enum Event<A> {
    /// The stream to the coordinator is open.
    Connected {
        /// Version of the agent.
        version: String,
    },
    /// The coordinator spoke.
    Received(ToSite),
    /// The worker has an answer.
    Computed(Reply<A>),
}

/// What is to be done outside, in this order.
#[derive(Debug, Clone)]
pub enum Action<A> {
    /// Send to the coordinator; dropped where the stream is down.
    Send(ToCoordinator<A>),
    /// Make ready for a run: forget any other.
    Begin(Begin),
    /// Take notice of an exchange that closed.
    Follow(Arc<Closed>),
    /// Compute one answer; requests of a run come in the order of their exchanges.
    Compute(Ask),
    /// Keep the text of a study for whoever may approve it.
    Propose(String),
    /// Answer no run of the studies with these digests any more.
    Close(Vec<String>),
    /// Tell whoever reads the log that a run waits for others.
    Wait(Waiting),
    /// The run is over.
    LetGo {
        /// The run.
        run: RunId,
        /// How it ended, in one sentence.
        ending: String,
    },
}

/// A site between and during runs.
#[derive(Debug, Clone)]
pub struct Site<A> {
    current: Option<Current<A>>,
}

#[derive(Debug, Clone)]
struct Current<A> {
    run: RunId,
    asked: u32,
    answered: Option<Reply<A>>,
}

impl<A> Default for Site<A> {
    fn default() -> Self {
        Self { current: None }
    }
}

impl<A: Clone> Site<A> {
    /// One step: what happened in, what to do out.
    #[must_use]
    pub fn step(mut self, event: Event<A>) -> (Self, Vec<Action<A>>) {
        let actions = match event {
            Event::Connected { version } => {
                vec![Action::Send(ToCoordinator::Hello { version })]
            }
            Event::Received(message) => self.received(message),
            Event::Computed(reply) => self.computed(reply),
        };
        (self, actions)
    }

    /// The run that the site takes part in.
    #[must_use]
    pub fn run(&self) -> Option<&RunId> {
        self.current.as_ref().map(|current| &current.run)
    }

    fn received(&mut self, message: ToSite) -> Vec<Action<A>> {
        match message {
            ToSite::Begin(begin) => {
                if self.run() == Some(&begin.run) {
                    return Vec::new();
                }
                self.current = Some(Current {
                    run: begin.run.clone(),
                    asked: 0,
                    answered: None,
                });
                vec![Action::Begin(begin)]
            }
            ToSite::Closed(closed) => match self.run() == Some(&closed.run) {
                true => vec![Action::Follow(closed)],
                false => Vec::new(),
            },
            ToSite::Ask(ask) => self.asked(ask),
            ToSite::Proposed(study) => vec![Action::Propose(study)],
            ToSite::ClosedStudies(digests) => vec![Action::Close(digests)],
            ToSite::Waiting(waiting) => vec![Action::Wait(waiting)],
            ToSite::End { run, ending } => {
                if self.run() != Some(&run) {
                    return Vec::new();
                }
                self.current = None;
                vec![Action::LetGo { run, ending }]
            }
        }
    }

    fn asked(&mut self, ask: Ask) -> Vec<Action<A>> {
        let own = self.current.as_mut();
        let Some(current) = own.filter(|current| current.run == ask.run) else {
            return Vec::new();
        };
        if ask.exchange > current.asked {
            current.asked = ask.exchange;
            return vec![Action::Compute(ask)];
        }
        match &current.answered {
            Some(answered) if answered.exchange == ask.exchange => vec![reply(answered.clone())],
            _ => Vec::new(),
        }
    }

    fn computed(&mut self, answered: Reply<A>) -> Vec<Action<A>> {
        let own = self.current.as_mut();
        let Some(current) = own.filter(|current| current.run == answered.run) else {
            return Vec::new();
        };
        current.answered = Some(answered.clone());
        vec![reply(answered)]
    }
}

fn reply<A>(answered: Reply<A>) -> Action<A> {
    Action::Send(ToCoordinator::Reply(answered))
}
