//! What a job of regression would make this site send.

use crate::explain::kinds::{
    MessageKind, NUMBER_BYTES, Sizes, TOGETHER, Told, counts, description, moments, on_the_grid,
    prepared, quantiles, refusal,
};
use privacy::Rules;
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::message::regression::POWERS;
use protocol::method::regression::settings::RegressionSettings;

/// Error rules: the regression's own prediction and that of neighbours.
const RULES: u64 = 2;
/// Bins of the predicted share of the second class.
const SHARE_BINS: u64 = 10;

pub(crate) fn told(rules: &Rules, job: &Job, settings: &RegressionSettings) -> Told {
    Told {
        messages: messages(rules, job, settings),
        brake: format!(
            "Records read from steps of a likelihood, where the site tells its own numbers: coefficients under which the mean \
             of (x'b)^2 is more than {} shut the run.",
            rules.similarity_max
        ),
        open: format!(
            "The second moments: {TOGETHER}. No noise is added to any number: who knows all patients but one, or all other \
             sites, can work out the rest."
        ),
    }
}

fn messages(rules: &Rules, job: &Job, settings: &RegressionSettings) -> Vec<MessageKind> {
    let sizes = Sizes::of_features(job);
    let is_cox = matches!(job.cohort.outcome.kind, OutcomeKind::Survival { .. });
    let mut messages = vec![description(&sizes), moments(rules, job, &sizes)];
    let purpose = "histograms, from which all sites take pooled medians and interquartile ranges, the knots of splines, and of a \
                   survival time the cells of follow-up";
    messages.extend(quantiles(rules, job, purpose));
    messages.push(prepared(true, &sizes));
    if is_cox {
        messages.push(risk_sets(settings, &sizes));
        messages.push(products(settings, &sizes));
    } else {
        messages.push(likelihood(settings, &sizes));
    }
    messages.push(assessment(rules, job, &sizes));
    messages.push(refusal());
    messages
}

/// What the regressions of folds make it send.
pub(crate) fn of_folds(job: &Job, settings: &RegressionSettings) -> Vec<MessageKind> {
    let sizes = Sizes::of_features(job);
    let is_cox = matches!(job.cohort.outcome.kind, OutcomeKind::Survival { .. });
    let all = match is_cox {
        true => vec![risk_sets(settings, &sizes), products(settings, &sizes)],
        false => vec![likelihood(settings, &sizes)],
    };
    let of_each = |one: MessageKind| MessageKind {
        times: u64::from(settings.parts) * u64::from(settings.round_limit),
        ..one
    };
    all.into_iter().map(of_each).collect()
}

fn likelihood(settings: &RegressionSettings, sizes: &Sizes) -> MessageKind {
    let columns = sizes.rows + 1;
    let numbers = columns * (columns + 1) + 2;
    MessageKind {
        kind: "likelihood",
        purpose: "at some coefficients: the log-likelihood of the site's patients, its gradient and its information, of which \
                  sums over the sites are used",
        shape: format!("2 + {columns} + {columns} x {columns}"),
        bytes_formula: format!("{NUMBER_BYTES} x {numbers}"),
        bytes: NUMBER_BYTES * numbers,
        times: u64::from(settings.round_limit),
        rule: "second_moments, parameters_max, similarity_max, rounds_per_cohort_max, patients_min",
        withheld: "no: it holds no count but that of the patients".to_owned(),
        worst: searched(settings)
            + &format!(
                "How the outcome goes with every feature, and the second moments weighted by how uncertain each patient's outcome \
             is, that is {TOGETHER}. To a coordinator that lies and chooses steep coefficients: parts of single patients' \
             records, blurred by the brake similarity_max, which does not rule them out."
            ),
    }
}

/// What the fits of a selection tell together.
fn searched(settings: &RegressionSettings) -> String {
    match settings.selection {
        None => String::new(),
        Some(_) => "At the maximum of every model that the selection fits, of all sites together; the coefficients of all \
                    these models are at most a third of the patients. "
            .to_owned(),
    }
}

fn risk_sets(settings: &RegressionSettings, sizes: &Sizes) -> MessageKind {
    let (cells, columns) = (u64::from(settings.time_cells), sizes.rows);
    let numbers = 2 * cells * (columns + 1) + 1;
    let columns = usize::try_from(columns).unwrap_or(usize::MAX);
    MessageKind {
        kind: "risk_sets",
        purpose: "at some coefficients, for each cell of follow-up: over the patients at risk and over those with the event the \
                  sums of exp(x'b), and of each feature with that weight",
        shape: format!("1 + 2 x up to {cells} x {}", columns + 1),
        bytes_formula: format!("{NUMBER_BYTES} x {numbers}"),
        bytes: NUMBER_BYTES * numbers,
        times: u64::from(settings.round_limit),
        rule: "second_moments, contributions, rounds_per_cohort_max, patients_min",
        withheld: format!(
            "leaves masked alone; a cell has at least {} events over all sites, so that all evaluations together tell fewer \
             numbers of its patients than these have values",
            settings.events_min(columns)
        ),
        worst: searched(settings)
            + "Of each cell of follow-up the events, how many are still followed, and their mean features: over all sites.",
    }
}

fn products(settings: &RegressionSettings, sizes: &Sizes) -> MessageKind {
    let (powers, columns) = (POWERS as u64, sizes.rows);
    let numbers = powers * columns * columns;
    MessageKind {
        kind: "products",
        purpose: "at some coefficients: the second moments of the site's patients with the weights that follow from all sites' \
                  sums",
        shape: format!("1 or {powers} x {columns} x {columns}"),
        bytes_formula: format!("{NUMBER_BYTES} x {numbers}"),
        bytes: NUMBER_BYTES * numbers,
        times: u64::from(settings.round_limit) + 1,
        rule: "second_moments, contributions, rounds_per_cohort_max, patients_min",
        withheld: "no: it holds no count".to_owned(),
        worst: format!("Weighted second moments of all patients together: {TOGETHER}."),
    }
}

fn assessment(rules: &Rules, job: &Job, sizes: &Sizes) -> MessageKind {
    let cells = sizes.classes * sizes.classes;
    let (tables, bins) = match sizes.classes {
        0 => (String::new(), 0),
        classes => (
            format!(", {RULES} tables of {classes} x {classes}, 1 of {classes} x {SHARE_BINS}"),
            classes * SHARE_BINS,
        ),
    };
    let numbers = RULES * (2 + cells) + bins;
    MessageKind {
        kind: "assessment",
        purpose: "errors of the regression and of nearest neighbours by its distance on the site's patients",
        shape: format!("{RULES} x 2 sums{tables}"),
        bytes_formula: format!("{NUMBER_BYTES} x {numbers}"),
        bytes: NUMBER_BYTES * numbers,
        times: 1,
        rule: "patients_min, cell_min",
        withheld: match job.cohort.outcome.kind {
            OutcomeKind::Numeric => counts(rules, "sums over too few patients are left out"),
            _ => on_the_grid(rules),
        },
        worst: format!(
            "How often the regression errs on this site's patients, each count of errors within {} of the truth.",
            rules.cell_min.max(1)
        ),
    }
}
