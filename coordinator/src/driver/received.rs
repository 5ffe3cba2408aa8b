//! What came of the sites in one run, by kind of message, as each site's own journal counts it.

use protocol::message::Answer;
use protocol::name::SiteName;
use protocol::result::MessageTotal;
use protocol::run::Record;
use std::collections::BTreeMap;

/// Messages and bytes of every site and kind.
#[derive(Debug, Default)]
pub(super) struct Received {
    sites: BTreeMap<SiteName, BTreeMap<&'static str, (u64, u64)>>,
}

impl Received {
    /// What the answers of these records come to.
    pub(super) fn of_records(sites: &[SiteName], records: &[Record]) -> Self {
        let mut received = Self::default();
        for record in records {
            for (site, answer) in sites.iter().zip(&record.answers) {
                answer.iter().for_each(|answer| received.note(site, answer));
            }
        }
        received
    }

    /// Counts an answer.
    pub(super) fn note(&mut self, site: &SiteName, answer: &Answer) {
        let kinds = self.sites.entry(site.clone()).or_default();
        let (count, bytes) = kinds.entry(answer.kind_name()).or_default();
        *count += 1;
        *bytes += wire::bytes_of(answer);
    }

    /// What came of one site, by kind in alphabetical order.
    pub(super) fn of(&self, site: &str) -> Vec<MessageTotal> {
        let site = SiteName::new(site).ok();
        let kinds = site.and_then(|site| self.sites.get(&site));
        let total = |(kind, (count, bytes)): (&&'static str, &(u64, u64))| MessageTotal {
            kind: (*kind).to_owned(),
            count: *count,
            bytes: *bytes,
        };
        kinds.into_iter().flatten().map(total).collect()
    }
}
