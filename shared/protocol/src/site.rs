//! The site's side of a run: a pure state machine.
//!
//! An exchange is computed once. Asked again, the site repeats its stored answer; asked for an
//! older one, it stays silent, because the coordinator has closed it.

use crate::message::{Answer, Begin, JournalHead, Request, ToCoordinator, ToSite};
use crate::name::RunId;
use privacy::Released;

/// What happened outside.
#[derive(Debug, Clone)]
pub enum Event {
    /// The stream to the coordinator is open.
    Connected {
        /// Version of the agent.
        version: String,
    },
    /// The coordinator spoke.
    Received(ToSite),
    /// The worker has an answer that the release rules cleared.
    Computed {
        /// The run.
        run: RunId,
        /// The exchange.
        exchange: u32,
        /// The answer.
        answer: Released<Answer>,
        /// Where the journal ends with it.
        journal: Option<JournalHead>,
    },
}

/// What is to be done outside, in this order.
#[derive(Debug, Clone)]
pub enum Action {
    /// Send to the coordinator; dropped where the stream is down.
    Send(ToCoordinator<Released<Answer>>),
    /// Make ready for a run: forget any other.
    Begin(Begin),
    /// Compute one answer; requests of a run come in the order of their exchanges.
    Compute {
        /// The run.
        run: RunId,
        /// The exchange.
        exchange: u32,
        /// What is asked.
        request: Request,
    },
    /// The run is over.
    LetGo {
        /// The run.
        run: RunId,
        /// How it ended, in one sentence.
        ending: String,
    },
}

/// A site between and during runs.
#[derive(Debug, Clone, Default)]
pub struct Site {
    current: Option<Current>,
}

#[derive(Debug, Clone)]
struct Current {
    run: RunId,
    asked: u32,
    answered: Option<Answered>,
}

#[derive(Debug, Clone)]
struct Answered {
    exchange: u32,
    answer: Released<Answer>,
    journal: Option<JournalHead>,
}

impl Site {
    /// One step: what happened in, what to do out.
    #[must_use]
    pub fn step(mut self, event: Event) -> (Self, Vec<Action>) {
        let actions = match event {
            Event::Connected { version } => {
                vec![Action::Send(ToCoordinator::Hello { version })]
            }
            Event::Received(message) => self.received(message),
            Event::Computed {
                run,
                exchange,
                answer,
                journal,
            } => self.computed(
                run,
                Answered {
                    exchange,
                    answer,
                    journal,
                },
            ),
        };
        (self, actions)
    }

    /// The run that the site takes part in.
    #[must_use]
    pub fn run(&self) -> Option<&RunId> {
        self.current.as_ref().map(|current| &current.run)
    }

    fn received(&mut self, message: ToSite) -> Vec<Action> {
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
            ToSite::Ask {
                run,
                exchange,
                request,
            } => self.asked(run, exchange, request),
            ToSite::End { run, ending } => {
                if self.run() != Some(&run) {
                    return Vec::new();
                }
                self.current = None;
                vec![Action::LetGo { run, ending }]
            }
        }
    }

    fn asked(&mut self, run: RunId, exchange: u32, request: Request) -> Vec<Action> {
        let Some(current) = self.current.as_mut().filter(|current| current.run == run) else {
            return Vec::new();
        };
        if exchange > current.asked {
            current.asked = exchange;
            return vec![Action::Compute {
                run,
                exchange,
                request,
            }];
        }
        match &current.answered {
            Some(answered) if answered.exchange == exchange => vec![reply(run, answered.clone())],
            _ => Vec::new(),
        }
    }

    fn computed(&mut self, run: RunId, answered: Answered) -> Vec<Action> {
        let Some(current) = self.current.as_mut().filter(|current| current.run == run) else {
            return Vec::new();
        };
        current.answered = Some(answered.clone());
        vec![reply(run, answered)]
    }
}

fn reply(run: RunId, answered: Answered) -> Action {
    let Answered {
        exchange,
        answer,
        journal,
    } = answered;
    Action::Send(ToCoordinator::Reply {
        run,
        exchange,
        answer,
        journal,
    })
}
