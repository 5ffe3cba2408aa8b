//! What a job for the card of a study would make this site send.

use crate::explain::kinds::{MessageKind, Sizes, Told, description, of_a_sum, refusal};
use privacy::Rules;
use protocol::cohort::Grids;
use protocol::job::Job;
use protocol::limits::{CARD_PATIENTS_MIN, PUBLISHED_PATIENTS};
use protocol::method::card::settings::{CardSettings, levels};

const WITHHELD: &str = "nothing of this site by itself, for it leaves covered";

pub(crate) fn explained(job: &Job, settings: &CardSettings, rules: &Rules) -> Told {
    let mut messages = vec![description(&Sizes::of_outcome(job))];
    messages.extend((settings.patterns() > 0).then(|| parts(settings)));
    messages.extend((!settings.renews.is_empty()).then(|| lots(settings)));
    messages.push(counts(settings));
    messages.extend(histograms(settings, rules));
    messages.extend([sums(settings), refusal()]);
    Told {
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

fn parts(settings: &CardSettings) -> MessageKind {
    let numbers = settings.patterns();
    MessageKind {
        purpose: "patients by who has which outcome: where they are few, they are excluded from the study",
        shape: format!("{numbers} parts"),
        worst: "How many patients have one outcome and not another, over all hospitals, a few among them.".to_owned(),
        ..of_counts("card_parts")
    }
}

fn lots(settings: &CardSettings) -> MessageKind {
    let numbers = settings.counts_of_lots();
    MessageKind {
        purpose: "patients, all and those with each outcome, by who is in which of the study and those that it renews",
        shape: format!("{numbers} lots"),
        worst: "How many patients came or left between two studies, over all hospitals, a few among them.".to_owned(),
        ..of_counts("card_lots")
    }
}

fn counts(settings: &CardSettings) -> MessageKind {
    let (groups, parts) = (settings.places().len(), settings.parts());
    MessageKind {
        purpose: "patients of each group of each outcome, by level of each feature, and by who has which outcome: the study's \
                  Table 1",
        shape: format!("{groups} groups, {parts} parts"),
        worst: format!(
            "How many patients of each group have each level or no value. A count of fewer than {PUBLISHED_PATIENTS} is not \
             published."
        ),
        ..of_counts("card_counts")
    }
}

/// None where nothing is counted on grids.
fn histograms(settings: &CardSettings, rules: &Rules) -> Option<MessageKind> {
    let all: Vec<&Grids> = settings
        .grids
        .iter()
        .filter(|one| !one.is_empty())
        .collect();
    let columns = all.iter().map(|grids| grids.all().count()).max()?;
    // A count for each cell; that of the outcome with most.
    let numbers = all.iter().map(|grids| grids.cells()).max()?;
    let minimum = rules.cell_min.max(1);
    Some(MessageKind {
        purpose: "histograms of each outcome's patients, from which every run of the study takes its medians, interquartile ranges, \
                  knots of splines, cut points and event times",
        shape: format!("{columns} columns, {numbers} cells"),
        times: all.len() as u64,
        rule: "cell_min",
        withheld: match minimum {
            1 => format!("{WITHHELD}; cell_min is 1"),
            _ => format!(
                "{WITHHELD}; neighbouring cells are joined until each holds {minimum}, and fewer values in all are omitted"
            ),
        },
        worst: format!(
            "How many patients lie in each stretch of a number's range, in stretches of {minimum} patients or more, and \
             so every quantile to the width of a stretch."
        ),
        ..of_counts("quantiles")
    })
}

fn sums(settings: &CardSettings) -> MessageKind {
    let features = settings.features.iter();
    let numeric = features.filter(|one| levels(&one.kind).is_none()).count();
    let groups = settings.places().len();
    let of_outcomes: usize = settings
        .outcomes
        .iter()
        .map(|one| CardSettings::sums_of(&one.specification.kind))
        .sum();
    MessageKind {
        purpose: "sums and sums of squares of each number by group, of which the table shows means and standard deviations, \
                  and the time at risk",
        shape: format!("up to {groups} x {numeric} x 2 + {of_outcomes}"),
        worst: format!(
            "The mean and spread of each number in each group of which {CARD_PATIENTS_MIN} patients or more have it, over all \
             hospitals. Who knows all patients of a group but one can work out that one."
        ),
        ..of_counts("card_sums")
    }
}

/// A message of a card.
fn of_counts(kind: &'static str) -> MessageKind {
    MessageKind {
        kind,
        rule: "sites_min",
        withheld: WITHHELD.to_owned(),
        ..of_a_sum()
    }
}
