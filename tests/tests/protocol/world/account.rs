//! What must hold of every conversation, whatever its method: each record follows the one before, and holds what the sites
//! have computed.

use protocol::message::Answer;
use protocol::run::Record;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Account {
    /// What each site computed for each exchange.
    computed: BTreeMap<(usize, u32), Vec<Answer>>,
    pub(super) records: Vec<Record>,
    complaint: Option<String>,
}

impl Account {
    /// Keeps the first complaint.
    pub(super) fn complain(&mut self, text: impl Into<Option<String>>) {
        self.complaint = self.complaint.take().or(text.into());
    }

    pub(super) fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }

    /// Every exchange has one answer of a site, however often it is computed.
    pub(super) fn computed(&mut self, site: usize, exchange: u32, answer: &Answer) {
        let known = self.computed.entry((site, exchange)).or_default();
        let is_another = known.iter().any(|other| other != answer);
        known.push(answer.clone());
        if is_another {
            self.complain(format!(
                "site {site} computed exchange {exchange} twice, differently"
            ));
        }
    }

    /// Every recorded answer is what that site computed for that exchange, and none is missing.
    pub(super) fn stored(&mut self, record: &Record) {
        let exchange = record.exchange;
        if exchange as usize != self.records.len() {
            let before = self.records.len();
            self.complain(format!("exchange {exchange} was stored as record {before}"));
        }
        for (site, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else {
                if exchange > 0 {
                    self.complain(format!("exchange {exchange} closed without site {site}"));
                }
                continue;
            };
            let known = self.computed.get(&(site, exchange));
            if !known.is_some_and(|all| all.contains(answer)) {
                self.complain(format!("exchange {exchange}: site {site} never said this"));
            }
        }
        self.records.push(record.clone());
    }
}
