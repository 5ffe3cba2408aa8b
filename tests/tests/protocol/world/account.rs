//! What must hold of every conversation, whatever its method: each record follows the one before, and holds what the sites
//! have computed.

use protocol::message::Answer;
use protocol::run::Record;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Account {
    /// What each site computed for each exchange.
    computed: BTreeMap<(usize, u32), Vec<Answer>>,
    /// The same before it was covered.
    said: BTreeMap<(usize, u32), Answer>,
    pub(super) records: Vec<Record>,
    /// The records as if nothing had been covered.
    pub(super) uncovered: Vec<Record>,
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

    /// What a site computed for an exchange, before it is covered.
    pub(super) fn said(&mut self, site: usize, exchange: u32, answer: &Answer) {
        self.said.insert((site, exchange), answer.clone());
    }

    /// What a site computed for an exchange before it was covered; nothing where it has not.
    pub(super) fn told(&self, site: usize, exchange: u32) -> Option<&Answer> {
        self.said.get(&(site, exchange))
    }

    /// The record with what the sites computed in the place of covered words.
    fn uncovered(&self, record: &Record) -> Record {
        let answers = record.answers.iter().enumerate();
        let told = answers.map(|(site, answer)| match answer {
            Some(Answer::Covered(_)) => self.told(site, record.exchange).cloned(),
            answer => answer.clone(),
        });
        Record {
            answers: told.collect(),
            ..record.clone()
        }
    }

    /// Every recorded answer is what that site computed for that exchange, none is missing, and what adds up is covered.
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
        let in_the_clear = |answer: &Answer| {
            !matches!(
                answer,
                Answer::Covered(_)
                    | Answer::Introduced(_)
                    | Answer::Encapsulated(_)
                    | Answer::Prepared(None)
                    | Answer::Correlated
                    | Answer::Forest(_)
            )
        };
        if record.answers.iter().flatten().any(in_the_clear) {
            self.complain(format!("exchange {exchange} closed in the clear"));
        }
        self.records.push(record.clone());
        self.uncovered.push(self.uncovered(record));
    }
}
