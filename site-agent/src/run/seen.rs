//! What is counted for whoever watches the agent from outside: nothing of patients.

use protocol::failure::Code;
use service::status::{Counter, Gauge, Health, Status};

/// Numbers of an agent as it runs.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    connected: Gauge,
    answers: Counter,
    health: Health,
}

impl Seen {
    /// Shows them in a status, whose health follows the connection.
    pub fn register(&mut self, status: &mut Status) {
        self.health = status.health();
        let registry = status.registry();
        registry.register(
            "connected",
            "1 while the coordinator is joined",
            self.connected.clone(),
        );
        registry.register(
            "answers",
            "Answers that are in the journal and leave",
            self.answers.clone(),
        );
    }

    pub(super) fn joined(&self) {
        self.connected.set(1);
        self.health.is_well();
    }

    pub(super) fn lost(&self, code: Code) {
        self.connected.set(0);
        let code = code.name();
        self.health
            .is_hindered(format!("{code}: the coordinator is not joined"));
    }

    pub(super) fn answered(&self) {
        self.answers.inc();
    }
}
