//! What is counted for whoever watches the coordinator from outside: nothing of patients.

use protocol::name::SiteName;
use protocol::progress::Ending;
use service::status::{Counter, Family, Gauge, Status};

type Label<T> = [(&'static str, T); 1];

/// Numbers of a coordinator as it runs.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    connected: Family<Label<String>, Gauge>,
    unfinished: Gauge,
    pub(super) exchanges: Counter,
    ended: Family<Label<&'static str>, Counter>,
}

impl Seen {
    /// Shows them in a status.
    pub fn register(&self, status: &mut Status) {
        let registry = status.registry();
        registry.register(
            "site_connected",
            "1 while the site is connected",
            self.connected.clone(),
        );
        registry.register(
            "runs_unfinished",
            "Runs that are under way or queued",
            self.unfinished.clone(),
        );
        registry.register(
            "exchanges_closed",
            "Exchanges of all runs that have closed",
            self.exchanges.clone(),
        );
        registry.register("runs_ended", "Runs that have ended", self.ended.clone());
    }

    pub(super) fn connected(&self, site: &SiteName, is_connected: bool) {
        let site = self.connected.get_or_create(&[("site", site.to_string())]);
        site.set(i64::from(is_connected));
    }

    pub(super) fn unfinished(&self, runs: usize) {
        self.unfinished.set(i64::try_from(runs).unwrap_or(i64::MAX));
    }

    pub(super) fn ended(&self, ending: &Ending) {
        let label = [("status", ending.status())];
        self.ended.get_or_create(&label).inc();
    }
}
