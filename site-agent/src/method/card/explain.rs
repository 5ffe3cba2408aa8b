//! What a job for the card of a study would make this site send.

use crate::explain::kinds::{Explained, MessageKind, description, of_a_sum, refusal};
use privacy::Rules;
use protocol::limits::{CARD_PATIENTS_MIN, PUBLISHED_PATIENTS};
use protocol::method::card::settings::CardSettings;

pub(crate) fn explained(settings: &CardSettings, rules: &Rules) -> Explained {
    let mut messages = vec![description()];
    messages.extend((settings.patterns() > 0).then(parts));
    messages.extend((!settings.renews.is_empty()).then(lots));
    messages.push(counts());
    messages.extend(histograms(settings, rules));
    messages.extend([sums(), refusal()]);
    Explained {
        messages,
        brake: "Nothing needs one: all questions are the same whatever the answers of a single site are.".to_owned(),
        open: format!(
            "The hospitals and the coordinator hear the sums as they are, counts below {PUBLISHED_PATIENTS} among them; what is \
             published has none of those. Where fewer than {CARD_PATIENTS_MIN} patients over all hospitals have the same outcomes and no others, \
             they are excluded from the study, before anything else of them is summed. The run ends before any sum of numbers is asked \
             for, where a group has fewer patients than that, or so few are in this study and not in one that it renews, or the other \
             way round."
        ),
    }
}

fn parts() -> MessageKind {
    MessageKind {
        purpose: "patients by who has which outcome: where they are few, they are excluded from the study",
        worst: "How many patients have one outcome and not another, over all hospitals, a few among them.".to_owned(),
        ..of_counts("card_parts")
    }
}

fn lots() -> MessageKind {
    MessageKind {
        purpose: "patients, all and those with each outcome, by who is in which of the study and those that it renews",
        worst: "How many patients came or left between two studies, over all hospitals, a few among them.".to_owned(),
        ..of_counts("card_lots")
    }
}

fn counts() -> MessageKind {
    MessageKind {
        purpose: "patients of each group of each outcome, by level of each feature, and by who has which outcome: the study's \
                  Table 1",
        worst: format!(
            "How many patients of each group have each level or no value. A count of fewer than {PUBLISHED_PATIENTS} is not \
             published."
        ),
        ..of_counts("card_counts")
    }
}

/// None where nothing is counted on grids.
fn histograms(settings: &CardSettings, rules: &Rules) -> Option<MessageKind> {
    let outcomes = settings.grids.iter().filter(|one| !one.is_empty()).count();
    let minimum = rules.cell_min.max(1);
    (outcomes > 0).then(|| MessageKind {
        purpose: "histograms of each outcome's patients, from which every run of the study takes its medians, interquartile ranges, \
                  knots of splines, cut points and event times",
        times: outcomes as u64,
        worst: format!(
            "How many patients lie in each stretch of a number's range, in stretches of {minimum} patients or more, and \
             so every quantile to the width of a stretch."
        ),
        ..of_counts("quantiles")
    })
}

fn sums() -> MessageKind {
    MessageKind {
        purpose: "sums and sums of squares of each number by group, of which the table shows means and standard deviations, \
                  and the time at risk",
        worst: format!(
            "The mean and spread of each number in each group of which {CARD_PATIENTS_MIN} patients or more have it, over all \
             hospitals. Who knows all patients of a group but one can work out that one."
        ),
        ..of_counts("card_sums")
    }
}

/// A message of a card.
fn of_counts(kind: &'static str) -> MessageKind {
    MessageKind { kind, ..of_a_sum() }
}
