//! What a run is worth to the people of this site, as a page: its model judged by the site's own patients.

use protocol::assessment::{
    Assessment, DISTANCE_RULE, EUCLIDEAN_RULE, ErrorMeasure, EvaluationCounts, PAIRS_RULE,
};
use protocol::cohort::OutcomeSpecification;
use protocol::job::Job;
use protocol::message::Description;
use protocol::method::forest::settings::Proximity;
use protocol::method::regression::settings::{REGRESSION_RULE, WEIGHTED_RULE};
use protocol::scores::{Judged, PooledErrors, Scores, of_counts};
use report::{LocalFigure, Part, Shares, outcome_sentence, root_error};

/// The page of a run of this job, with what its method has drawn.
pub(super) fn page(
    job: &Job,
    description: &Description,
    assessment: &Assessment,
    drawn: Vec<LocalFigure>,
) -> String {
    let outcome = &job.cohort.outcome;
    let tables: Vec<Scores> = tables(assessment).filter_map(of_counts).collect();
    let errors: Vec<PooledErrors> = assessment
        .errors
        .iter()
        .filter_map(PooledErrors::of_site)
        .collect();
    let largest = largest(description);
    let mut sentences = vec![
        first(outcome, (&tables, &errors), (description.patients, largest)),
        outcome_sentence(outcome, &description.classes, description.patients),
    ];
    sentences.push(format!(
        "Figures: {}. They left the site only masked, in a sum over the sites of the run.",
        judged(assessment)
    ));
    let mut shares = Vec::new();
    if !tables.is_empty() {
        shares.push(accuracies(&tables, largest));
        shares.extend(areas(&tables));
    }
    shares.extend(of_errors(&errors, !tables.is_empty(), outcome));
    let shares = shares.into_iter().map(Part::Shares);
    let parts: Vec<Part> = shares.chain(drawn.into_iter().map(Part::Figure)).collect();
    let title = format!("{}: for this site's patients", job.name);
    report::sheet(&title, &sentences, &parts)
}

/// The tables that are shown, of held-out patients where there are any: pairs of patients are another thing.
fn tables(assessment: &Assessment) -> impl Iterator<Item = &EvaluationCounts> {
    let judged = match assessment.validation.is_empty() {
        true => Judged::Learnt,
        false => Judged::HeldOut,
    };
    let tables = judged.tables(assessment).iter();
    tables.filter(|counts| counts.rule != PAIRS_RULE)
}

fn judged(assessment: &Assessment) -> &'static str {
    match (
        assessment.validation.is_empty(),
        assessment.errors.is_empty(),
    ) {
        (false, _) => "held-out patients, each by the others of this site",
        (true, true) => {
            "in sample, each patient by the others of this site: new ones are predicted slightly worse"
        }
        (true, false)
            if assessment
                .errors
                .iter()
                .any(|one| one.rule == REGRESSION_RULE) =>
        {
            "in sample: new patients are predicted slightly worse"
        }
        (true, false) => "this site's patients, each by trees that have not seen it",
    }
}

/// The share of the largest class; none where the outcome has no classes.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn largest(description: &Description) -> Option<f64> {
    let most = description.classes.iter().max()?;
    Some(*most as f64 / description.patients.max(1) as f64)
}

fn first(
    outcome: &OutcomeSpecification,
    (tables, errors): (&[Scores], &[PooledErrors]),
    (patients, largest): (u64, Option<f64>),
) -> String {
    let label = &outcome.label;
    let right = tables
        .iter()
        .find_map(|table| Some((table, table.accuracy?)));
    if let (Some((table, accuracy)), Some(largest)) = (right, largest) {
        let accuracies = format!(
            "accuracy is {}, and predicting the majority class for everybody has {}",
            hundred(accuracy),
            hundred(largest)
        );
        let by = named(&table.rule, table.neighbours);
        return match (table.auc, table.auc_interval) {
            (Some(area), Some([low, high])) => format!(
                "{label}: AUC {area:.2} (95 % CI {low:.2} to {high:.2}) on this site's {patients} patients, by the {by}.{} The {accuracies}.",
                match low > 0.5 {
                    true => "",
                    false => " With these patients this may be chance.",
                }
            ),
            _ => format!("{label} of this site's {patients} patients, by the {by}: {accuracies}."),
        };
    }
    match errors.iter().find_map(|one| Some((one, one.value()?))) {
        Some((one, value)) => format!(
            "{label} of this site's {patients} patients, by the {}: {} {}.",
            named(&one.rule, one.neighbours),
            measured(one.measure),
            said(one.measure, value, outcome)
        ),
        None => {
            format!(
                "It is unknown how well the run predicts {label} of this site's {patients} patients."
            )
        }
    }
}

fn accuracies(tables: &[Scores], largest: Option<f64>) -> Shares {
    let bar = |table: &Scores| {
        let accuracy = table.accuracy?;
        Some((
            named(&table.rule, table.neighbours),
            accuracy,
            hundred(accuracy),
        ))
    };
    let mut bars: Vec<(String, f64, String)> = tables.iter().filter_map(bar).collect();
    bars.extend(largest.map(|share| ("majority class".to_owned(), share, hundred(share))));
    Shares {
        title: "How often each is right",
        bars,
        caption: "Accuracy on this site's patients.".to_owned(),
    }
}

/// How well each tells two classes apart.
fn areas(tables: &[Scores]) -> Option<Shares> {
    let bar = |table: &Scores| {
        let area = table.auc?;
        Some((
            named(&table.rule, table.neighbours),
            area,
            format!("{area:.3}"),
        ))
    };
    let bars: Vec<(String, f64, String)> = tables.iter().filter_map(bar).collect();
    (!bars.is_empty()).then(|| Shares {
        title: "How well each separates the classes",
        bars,
        caption:
            "Area under the receiver operating characteristic: 0.5 is chance, 1 parts them wholly."
                .to_owned(),
    })
}

/// Errors; of classes the tables have said it.
fn of_errors(
    errors: &[PooledErrors],
    has_tables: bool,
    outcome: &OutcomeSpecification,
) -> Option<Shares> {
    let told = errors
        .iter()
        .filter(|one| !(has_tables && one.measure == ErrorMeasure::Misclassified));
    let values: Vec<(&PooledErrors, f64)> =
        told.filter_map(|one| Some((one, one.value()?))).collect();
    let measure = values.first()?.0.measure;
    let length = |value: f64| match measure {
        ErrorMeasure::Misclassified | ErrorMeasure::Discordant => 1.0 - value,
        ErrorMeasure::Squared => value.sqrt(),
    };
    let longest = values
        .iter()
        .map(|(_, value)| length(*value))
        .fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(one, value): &(&PooledErrors, f64)| {
        let name = named(&one.rule, one.neighbours);
        (
            name,
            length(*value) / longest,
            said(measure, *value, outcome),
        )
    };
    let (title, better) = match measure {
        ErrorMeasure::Misclassified | ErrorMeasure::Discordant => {
            ("How well each predicts", "longer")
        }
        ErrorMeasure::Squared => ("How far each is off", "shorter"),
    };
    let measured = match measure {
        ErrorMeasure::Misclassified => "Accuracy",
        ErrorMeasure::Squared => "Root mean squared error",
        ErrorMeasure::Discordant => "Concordance, 50 % by chance",
    };
    Some(Shares {
        title,
        bars: values.iter().map(bar).collect(),
        caption: format!("{measured}: the {better}, the better."),
    })
}

fn measured(measure: ErrorMeasure) -> &'static str {
    match measure {
        ErrorMeasure::Misclassified => "accuracy",
        ErrorMeasure::Squared => "root mean squared error",
        ErrorMeasure::Discordant => "concordance",
    }
}

/// An error as people read it.
fn said(measure: ErrorMeasure, value: f64, outcome: &OutcomeSpecification) -> String {
    match measure {
        ErrorMeasure::Misclassified | ErrorMeasure::Discordant => hundred(1.0 - value),
        ErrorMeasure::Squared => root_error(value, outcome),
    }
}

fn named(rule: &str, neighbours: u32) -> String {
    match (rule, neighbours) {
        (rule, 0) => format!("{} itself", rule.replace('_', " ")),
        (DISTANCE_RULE, count) => format!("{count} nearest by the metric"),
        (EUCLIDEAN_RULE, count) => format!("{count} nearest by Euclidean distance"),
        (WEIGHTED_RULE, count) => format!("{count} nearest by the distance that it weighs"),
        (rule, count) if rule == Proximity::JUDGED.name() => {
            format!("{count} nearest by {rule} proximity")
        }
        (rule, count) => format!("{count} nearest by {}", rule.replace('_', " ")),
    }
}

/// A share in percent.
fn hundred(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
