//! What a job of UnPSL would make this site send.

use crate::explain::kinds::{
    MessageKind, Sizes, TOGETHER, Told, correlated, description, moments, of_a_sum, on_the_grid,
    prepared, refusal,
};
use privacy::{JUDGED_PATIENTS_MIN, Rules, Steepness};
use protocol::assessment::score_bins;
use protocol::job::Job;
use protocol::method::unpsl::settings::{
    ConsensusMethod, SelectionSettings, UnpslSettings, sums_each,
};
use similarity::learn::unpsl::{CorrelationScope, JUDGED_STEPS};
use similarity::numeric::precision::Precision;

/// The neighbour rules that are evaluated: by distance, by inner product, and by the Euclidean distance.
const NEIGHBOUR_RULES: u64 = 3;

pub(crate) fn explained(rules: &Rules, job: &Job, settings: &UnpslSettings) -> Told {
    Told {
        messages: messages(rules, job, settings),
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
             and to second moments to 1/2."
        }
        (ConsensusMethod::Accelerated, Precision::Exact) => {
            "What this site adds to a sum is not rounded (precision = \"exact\")."
        }
    }
}

fn messages(rules: &Rules, job: &Job, settings: &UnpslSettings) -> Vec<MessageKind> {
    let sizes = sizes(job, settings);
    let pooled = settings.objective.correlation == CorrelationScope::Pooled;
    let mut messages = vec![description(&sizes), moments(rules, job, &sizes)];
    messages.push(prepared(pooled, &sizes));
    if pooled {
        messages.push(correlated());
    }
    let selection = settings.selection.as_ref();
    let validations = selection.map_or(0, SelectionSettings::metrics);
    let folds = settings.validation_rounds();
    let certificates = u64::from(settings.certificates());
    let (_, usual) = settings.parts();
    let all = settings.rounds() + usual.map_or(0, |usual| usual.rounds);
    let fits = all - validations - certificates;
    let together = settings.metrics_together();
    if settings.is_accelerated() {
        messages.push(derivatives(settings, &sizes, (together, fits)));
        messages.push(contribution(settings, &sizes, certificates));
    } else {
        let rows = usize::try_from(sizes.rows).unwrap_or(usize::MAX);
        let leading = settings.leading(rows).min(settings.round_limit);
        let leading = u64::from(settings.starts) * u64::from(leading);
        messages.push(contribution(settings, &sizes, fits - folds - leading));
        if folds + leading > 0 {
            let asked = (together, folds + leading);
            messages.push(derivatives(settings, &sizes, asked));
        }
    }
    messages.extend(selection.map(|selection| held_out(rules, settings, selection)));
    messages.push(assessment(rules, settings, &sizes));
    messages.push(refusal());
    messages
}

/// What the metrics of folds, learnt by themselves, make it send.
pub(crate) fn of_folds(job: &Job, settings: &UnpslSettings) -> MessageKind {
    let sizes = sizes(job, settings);
    let folds = u64::from(settings.folds().unwrap_or(1));
    derivatives(settings, &sizes, (folds, settings.validation_rounds()))
}

/// Where so many metrics are learned side by side, and it is sent so often at most.
fn derivatives(
    settings: &UnpslSettings,
    sizes: &Sizes,
    (together, times): (u64, u64),
) -> MessageKind {
    let (rows, rank) = (sizes.rows, sizes.rank);
    let count = usize::try_from(rows).unwrap_or(usize::MAX);
    let named = settings.rows_asked(count);
    let is_wide = named.is_some();
    let asked = named.map_or(count, |named| named.len());
    let at_once = settings.metrics_at_once(count, together);
    let has_folds = settings.folds().is_some();
    // Without a choice the folds of a validation ask together with the metric.
    let times = match (&settings.selection, settings.is_accelerated()) {
        (None, true) if has_folds && at_once == together => {
            times - settings.validation_rounds() + u64::from(UnpslSettings::VALIDATION_ROUNDS_MAX)
        }
        _ => times,
    };
    let shape = match is_wide {
        false => format!("2 triangles of {rows} rows, and 3 numbers"),
        true => format!(
            "2 triangles of those of the {rows} rows that the question names, at most {asked}, {rows} x {rank}, and 3 \
             numbers; where it names none, the diagonal of the gradient in M, {rows} numbers, and 3 numbers"
        ),
    };
    MessageKind {
        kind: "derivatives",
        purpose: "at a metric: the site's objective, its gradient in M = W W', and second moments of its patients \
                  weighted by how undecided their pairs are; the coordinator uses sums over the sites",
        shape: match at_once {
            1 => shape,
            _ => format!("{shape}, for each of up to {at_once} metrics at once"),
        },
        times,
        rule: "second_moments, steepness, rounds, patients_min",
        withheld: "no: it holds no count".to_owned(),
        worst: format!(
            "The second moments X'X{}, that is {TOGETHER}: a coordinator need not even lie. To one that lies and \
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

fn contribution(settings: &UnpslSettings, sizes: &Sizes, times: u64) -> MessageKind {
    let (rows, rank) = (sizes.rows, sizes.rank);
    // The objective; of a dual that stays here, three inner products as well.
    let numbers = match settings.consensus {
        ConsensusMethod::Accelerated => "1 number",
        ConsensusMethod::Admm => "4 numbers",
    };
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
        shape: format!("{rows} x {rank}, and {numbers}"),
        times,
        rule: "second_moments, steepness, rounds, patients_min",
        withheld: "no: it holds no count".to_owned(),
        worst: format!(
            "To an honest coordinator: how the common metric would fit this site's patients better, as a whole. To one \
             that lies and chooses the metric: the second moments X'X, that is {TOGETHER}; and by steep metrics parts \
             of single patients' records, blurred by the brake steepness, which does not rule them out."
        ),
        ..of_a_sum()
    }
}

fn held_out(rules: &Rules, settings: &UnpslSettings, selection: &SelectionSettings) -> MessageKind {
    let sums = sums_each(&selection.neighbours, selection.folds, settings.nests());
    let tables = sums as u64 * selection.metrics();
    MessageKind {
        kind: "validation",
        purpose: "how many held-out patients of all folds were classified right and wrong, and the log loss of the shares",
        shape: format!("{tables} tables of 1 x 3"),
        times: selection.metrics(),
        rule: "patients_min, cell_min, rounds",
        withheld: on_the_grid(rules),
        worst: format!(
            "How many patients a metric of the coordinator's choice classifies wrong, within {} of the truth. Many metrics \
             narrow down where patients lie.",
            rules.cell_min.max(1)
        ),
        ..of_a_sum()
    }
}

fn assessment(rules: &Rules, settings: &UnpslSettings, sizes: &Sizes) -> MessageKind {
    // The same of held-out patients.
    let tables = match (sizes.classes, settings.validated_folds()) {
        (0, _) => 0,
        (_, 0) => NEIGHBOUR_RULES,
        (_, _) => 2 * NEIGHBOUR_RULES,
    };
    let bins_of = |neighbours: &u32| match sizes.classes {
        2 => score_bins(*neighbours),
        _ => 0,
    };
    // Whichever number of neighbours is chosen.
    let bins = match &settings.selection {
        Some(selection) => selection.neighbours.iter().map(bins_of).max().unwrap_or(0),
        None => bins_of(&settings.neighbours),
    };
    let scores = match bins {
        0 => String::new(),
        bins => format!(", {tables} of 2 x {bins}"),
    };
    let pairs = match settings.supervision.wants_judgements() && settings.validated_folds() > 0 {
        true => " and 2 of pairs, 2 x 2, and 1 of 2 x 10",
        false => " and 1 of pairs, 2 x 2",
    };
    MessageKind {
        kind: "assessment",
        purpose: "the objective at the end, and right and wrong predictions of the site's \
                  patients",
        shape: match tables {
            0 => "1 number".to_owned(),
            _ => format!(
                "1 number, {tables} tables of {0} x {0}{scores}{pairs}",
                sizes.classes
            ),
        },
        rule: "patients_min, cell_min",
        withheld: match tables {
            0 => "no: it holds no count".to_owned(),
            _ => on_the_grid(rules),
        },
        worst: format!(
            "How well one metric of the coordinator's choice fits: one exact number; and how many patients of each class \
             are taken for which, and have how many like neighbours, each running total within {} of the truth.",
            rules.cell_min.max(1)
        ),
        ..of_a_sum()
    }
}

fn sizes(job: &Job, settings: &UnpslSettings) -> Sizes {
    let sizes = Sizes::of_features(job);
    Sizes {
        rank: (settings.objective.rank as u64).min(sizes.rows),
        ..sizes
    }
}
