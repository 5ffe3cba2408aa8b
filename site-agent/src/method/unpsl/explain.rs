//! What a job of UnPSL would make this site send.

use crate::explain::kinds::{
    Explained, MessageKind, TOGETHER, correlated, description, moments, of_a_sum, prepared,
    refusal, second_moments, spread,
};
use privacy::{JUDGED_PATIENTS_MIN, Steepness};
use protocol::job::Job;
use protocol::method::unpsl::settings::{ConsensusMethod, SelectionSettings, UnpslSettings};
use similarity::learn::unpsl::{Centring, CorrelationScope, JUDGED_STEPS};
use similarity::numeric::precision::Precision;

pub(crate) fn explained(job: &Job, settings: &UnpslSettings) -> Explained {
    Explained {
        messages: messages(job, settings),
        brake: format!("{} {}", Steepness::of_metrics(), precision(settings)),
        open: format!(
            "The second moments: the rounds of this job tell a coordinator that lies {TOGETHER}. No noise is \
             added to any number: who knows all patients but one, or all other sites, can work out the rest.{}",
            match settings.supervision.wants_judgements() {
                false => String::new(),
                true => format!(
                    " The pairs that physicians have judged stay at this site. Sums over them are of the patients in a pair alone, who \
                     are at least {JUDGED_PATIENTS_MIN}, and are rounded {JUDGED_STEPS} times as coarsely, by what the patient with most \
                     pairs adds."
                ),
            }
        ),
    }
}

/// How finely the sums are known.
fn precision(settings: &UnpslSettings) -> &'static str {
    match (settings.consensus, settings.objective.precision) {
        (ConsensusMethod::Admm, _) => {
            "What this site adds to a sum of metrics is not rounded (consensus = \"admm\")."
        }
        (ConsensusMethod::Accelerated, Precision::Rounded) => {
            "What this site adds to an objective or a gradient is rounded to 1/128 of what one standardised patient adds, \
             and to second moments to 1/2; where a metric does not suit its patients, to up to 2 and 4 patients. Pairs of its classes are counted in twenties."
        }
        (ConsensusMethod::Accelerated, Precision::Exact) => {
            "What this site adds to a sum is not rounded (precision = \"exact\")."
        }
    }
}

fn messages(job: &Job, settings: &UnpslSettings) -> Vec<MessageKind> {
    let mut messages = vec![description(), moments()];
    messages.extend(match settings.objective.centring {
        Centring::Site => Some(spread(settings.objective.precision)),
        Centring::Pooled => None,
    });
    messages.extend(match settings.objective.correlation {
        CorrelationScope::Pooled => vec![second_moments(), correlated()],
        CorrelationScope::Site => vec![prepared()],
    });
    let selection = settings.selection.as_ref();
    let validations = selection.map_or(0, SelectionSettings::metrics);
    let folds = settings.validation_rounds();
    let certificates = u64::from(settings.certificates());
    let (_, usual) = settings.parts();
    let all = settings.rounds() + usual.map_or(0, |usual| usual.rounds);
    let fits = all - validations - certificates;
    let together = settings.metrics_together();
    if settings.is_accelerated() {
        messages.push(derivatives(job, settings, (together, fits)));
        messages.push(contribution(settings, certificates));
    } else {
        let leading = settings.leading(job.cohort.rows_at_most());
        let leading = leading.min(settings.round_limit);
        let leading = u64::from(settings.starts) * u64::from(leading);
        // A search that is over sooner leaves its rounds to ADMM; it asks at least once.
        let led = u64::from(settings.starts).min(leading);
        messages.push(contribution(settings, fits - folds - led));
        if folds + leading > 0 {
            let asked = (together, folds + leading);
            messages.push(derivatives(job, settings, asked));
        }
    }
    messages.extend(selection.map(held_out));
    messages.extend([assessment(), refusal()]);
    messages
}

/// What the metrics of folds, learnt by themselves, make it send.
pub(crate) fn of_folds(job: &Job, settings: &UnpslSettings) -> MessageKind {
    let folds = u64::from(settings.folds().unwrap_or(1));
    derivatives(job, settings, (folds, settings.validation_rounds()))
}

/// Where so many metrics are learned side by side, and it is sent so often at most.
fn derivatives(job: &Job, settings: &UnpslSettings, (together, times): (u64, u64)) -> MessageKind {
    let rows = job.cohort.rows_at_most();
    let is_wide = settings.rows_asked(rows).is_some();
    let at_once = settings.metrics_at_once(rows, together);
    let has_folds = settings.folds().is_some();
    // Without a choice the folds of a validation ask together with the metric.
    let times = match (&settings.selection, settings.is_accelerated()) {
        (None, true) if has_folds && at_once == together => {
            times - settings.validation_rounds() + u64::from(UnpslSettings::VALIDATION_ROUNDS_MAX)
        }
        _ => times,
    };
    MessageKind {
        kind: "derivatives",
        purpose: "at a metric: the site's objective, its gradient in M = W W', and second moments of its patients \
                  weighted by how undecided their pairs are; the coordinator uses sums over the sites",
        times,
        worst: format!(
            "Tables: from 32 jobs over two features with two levels, sums of pairs within sites gave how many patients of each \
             of three sites had which levels. The second moments X'X{}, that is {TOGETHER}: a coordinator need not even lie. To one that lies and \
             chooses the metric: by steep metrics parts of single patients' records, blurred by the brake steepness and by \
             rounding, which do not rule them out.",
            if is_wide {
                " of the rows that it names, and over the rounds of all"
            } else {
                ""
            }
        ),
        ..of_a_sum()
    }
}

fn contribution(settings: &UnpslSettings, times: u64) -> MessageKind {
    let purpose = match settings.consensus {
        ConsensusMethod::Accelerated => {
            "the site's own metric W_p of one round of consensus ADMM at the end, by which the metric is certified"
        }
        ConsensusMethod::Admm => {
            "the site's own metric W_p of a round, fitted to all its patients, and its objective"
        }
    };
    MessageKind {
        kind: "contribution",
        purpose,
        times,
        worst: format!(
            "To an honest coordinator: how the common metric would fit this site's patients better, as a whole. To one \
             that lies and chooses the metric: the second moments X'X, that is {TOGETHER}; and by steep metrics parts \
             of single patients' records, blurred by the brake steepness, which does not rule them out."
        ),
        ..of_a_sum()
    }
}

fn held_out(selection: &SelectionSettings) -> MessageKind {
    MessageKind {
        kind: "validation",
        purpose: "how many held-out patients of all folds were classified right and wrong, and the log loss of the shares",
        times: selection.metrics(),
        worst: "How many patients a metric of the coordinator's choice classifies wrong. Many metrics narrow down where \
                patients lie."
            .to_owned(),
        ..of_a_sum()
    }
}

fn assessment() -> MessageKind {
    MessageKind {
        kind: "assessment",
        purpose: "the objective at the end, and right and wrong predictions of the site's \
                  patients",
        worst: "How well one metric of the coordinator's choice fits, and how many patients of each class are taken for \
                which, and have how many like neighbours: exact numbers, of which counts are published in tens."
            .to_owned(),
        ..of_a_sum()
    }
}
