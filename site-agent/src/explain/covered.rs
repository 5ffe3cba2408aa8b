//! What is said of messages that leave covered.

use super::kinds::{Explained, MessageKind};
use privacy::Rules;
use privacy::sums::WORD_BYTES;
use protocol::job::{Job, Largest};
use protocol::limits::{CERTIFICATE_BYTES_MAX, CHAIN_MAX, SITES_MAX};

/// Bytes of the keys and their signature.
const KEY_BYTES: u64 = 1_536;
/// Bytes of a secret that another site alone can read.
const CIPHERTEXT_BYTES: u64 = 1_088;

/// The messages of a job, as they leave. The card of a study has exchanged its keys before.
pub(super) fn explained(told: Explained, rules: &Rules, job: &Job) -> Explained {
    let keys = job
        .opens_study()
        .then(|| [introduction(), encapsulations()]);
    let Explained {
        messages,
        brake,
        open,
    } = told;
    let summed = job.largest_summed();
    let own = messages
        .into_iter()
        .map(|message| match summed.get(message.kind) {
            Some(largest) => covered(message, largest, rules),
            None => message,
        });
    Explained {
        messages: keys.into_iter().flatten().chain(own).collect(),
        brake,
        open: format!(
            "What the sums over the sites tell by themselves, and what all other sites together with the coordinator can \
             work out by taking their own terms away: keep sites_min at the number of sites that would have to conspire. Of the \
             sums: {}",
            open
        ),
    }
}

fn introduction() -> MessageKind {
    let bytes = (CHAIN_MAX * CERTIFICATE_BYTES_MAX) as u64 + KEY_BYTES;
    MessageKind {
        kind: "introduction",
        purpose: "says that the cohort fits, and by which keys the site is known to the other sites of the study",
        shape: "3 keys, a certificate, and the number of patients, rounded up to ten".to_owned(),
        bytes_formula: format!("{KEY_BYTES} and the certificate"),
        bytes,
        times: 1,
        rule: "patients_min, class_patients_min".to_owned(),
        withheld: "the number of patients is rounded up to ten".to_owned(),
        worst: "Nothing of any patient, but that the cohort keeps the minima; below them the site refuses, which tells that \
                they are below. All hospitals of the study hear about how many patients this one has."
            .to_owned(),
    }
}

fn encapsulations() -> MessageKind {
    MessageKind {
        kind: "encapsulations",
        purpose: "gives each later site of the study a secret that it alone can read, by which both cover what they say",
        shape: "1 ciphertext for each later site".to_owned(),
        bytes_formula: format!("{CIPHERTEXT_BYTES} x sites"),
        bytes: CIPHERTEXT_BYTES * SITES_MAX as u64,
        times: 1,
        rule: "none: it says nothing of patients".to_owned(),
        withheld: "no: it holds no count".to_owned(),
        worst: "Nothing of any patient.".to_owned(),
    }
}

fn covered(message: MessageKind, largest: &Largest, rules: &Rules) -> MessageKind {
    let (sites, bytes) = (rules.sites_min, largest.bytes());
    let permissions = largest.permissions.iter();
    let rule = permissions
        .map(|permission| permission.name())
        .chain(["sites_min, and those of the cohort"])
        .collect::<Vec<_>>()
        .join(", ");
    MessageKind {
        shape: format!("{}, masked", largest.shape),
        bytes_formula: format!("{WORD_BYTES} x {}", largest.words),
        bytes,
        rule,
        withheld: format!(
            "leaves masked: readable only as a sum over at least {sites} sites, so no count of this site is revealed"
        ),
        worst: format!(
            "Of this site alone nothing: its words are evenly distributed over all words, whatever its patients are. \
             Of the sum over the sites: {}",
            message.worst
        ),
        ..message
    }
}
