//! What a job would make this site send, before anyone agrees to it.

mod forest;
mod table;
mod worst;

use privacy::{Policy, Refusal, Rules};
use protocol::job::{
    ConsensusMethod, FeatureKind, Impute, Job, Method, OutcomeKind, SelectionSettings,
    UnpslSettings,
};
use protocol::limits::{PROBLEMS_MAX, TEXT_LENGTH_MAX};
use similarity::unpsl::CorrelationScope;
use std::fmt;
use table::{grouped, paragraph, table};

/// Every kind of message that a job would make this site send, and what the policy says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    job: String,
    asked_by: String,
    /// Every rule that refuses the job before its cohort is read; empty where none does.
    pub refusals: Vec<Refusal>,
    /// The kinds of message, in the order of a run.
    pub messages: Vec<MessageKind>,
    rules: Rules,
    lowered: Vec<String>,
    /// What each kind of message can tell in the worst case, in their order.
    pub worst: Vec<String>,
    closing: [(&'static str, String); 3],
}

/// One kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageKind {
    /// Its name, as the journal has it.
    pub kind: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Its shape in words.
    pub shape: String,
    /// How its bytes come about.
    pub bytes_formula: String,
    /// Bytes of one such message at most, without framing.
    pub bytes: u64,
    /// How often it is sent at most.
    pub times: u64,
    /// The rules that clear it, as site.toml names them.
    pub rule: &'static str,
    /// Whether a count in it could be withheld, and how.
    pub withheld: String,
}

/// The sizes that a job fixes.
struct Sizes {
    /// Outcome classes; 0 where the outcome has none.
    classes: u64,
    /// Counts of classes that the description tells.
    class_counts: u64,
    /// Rows d of the metric, before constant ones are dropped.
    rows: u64,
    /// Columns m of the metric.
    rank: u64,
    /// Numbers in the moments of all features.
    moments: u64,
}

const NUMBER_BYTES: u64 = 8;
/// The neighbour rules that are evaluated: by distance and by inner product.
const NEIGHBOUR_RULES: u64 = 2;

impl Explanation {
    /// Explains `job`, submitted by `operator`.
    #[must_use]
    pub fn new(policy: &Policy, job: &Job, operator: &str) -> Self {
        let messages = match &job.method {
            Method::Unpsl(settings) => unpsl(policy.rules(), job, settings),
            Method::Forest(settings) => forest::messages(policy.rules(), job, settings),
        };
        let kinds = messages.iter().map(|message| message.kind);
        Self {
            worst: kinds
                .map(|kind| worst::tells(kind, policy.rules(), job))
                .collect(),
            closing: worst::closing(policy.rules(), job),
            job: job.name.clone(),
            asked_by: format!("the operator {operator:?}"),
            refusals: policy.refusals(&job.facts(operator)),
            messages,
            rules: policy.rules().clone(),
            lowered: policy.lowered(),
        }
    }

    /// Explains `job`, whoever of the listed operators submits it.
    #[must_use]
    pub fn for_any_operator(policy: &Policy, job: &Job) -> Self {
        let mut explanation = Self::new(policy, job, "");
        let operators = &policy.rules().operators;
        if *operators != privacy::Allowed::nothing() {
            explanation
                .refusals
                .retain(|refusal| refusal.rule != "operators");
        }
        explanation.asked_by = format!("any operator allowed here ({operators})");
        explanation
    }

    /// Bytes over a whole run at most, without framing.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sent = self
            .messages
            .iter()
            .filter(|message| message.kind != "refusal");
        sent.map(|message| message.bytes * message.times).sum()
    }
}

fn unpsl(rules: &Rules, job: &Job, settings: &UnpslSettings) -> Vec<MessageKind> {
    let sizes = sizes(job, settings);
    let mut messages = vec![description(&sizes), moments(rules, job, &sizes)];
    messages.extend(quantiles(rules, job));
    messages.push(prepared(settings, &sizes));
    if settings.objective.correlation == CorrelationScope::Pooled {
        messages.push(MessageKind {
            kind: "correlated",
            purpose: "says that the pooled correlation has arrived",
            shape: "empty".to_owned(),
            bytes_formula: "0".to_owned(),
            bytes: 0,
            times: 1,
            rule: "none: nothing of the cohort",
            withheld: "no".to_owned(),
        });
    }
    messages.push(contribution(settings, &sizes));
    messages.extend(
        settings
            .selection
            .as_ref()
            .map(|selection| validation(rules, selection)),
    );
    messages.push(finished(rules, &sizes));
    messages.push(refusal());
    messages
}

fn refusal() -> MessageKind {
    MessageKind {
        kind: "refusal",
        purpose: "instead of any other: a refusal, a failure, or problems of the columns",
        shape: format!("up to {PROBLEMS_MAX} texts"),
        bytes_formula: format!("up to {TEXT_LENGTH_MAX} a text"),
        bytes: (PROBLEMS_MAX * TEXT_LENGTH_MAX) as u64,
        times: 1,
        rule: "none: no patient's value, no count of patients or rows",
        withheld: "no".to_owned(),
    }
}

/// Whether a count is withheld, and how.
fn counts(rules: &Rules, how: &str) -> String {
    match rules.cell_min {
        1 => "no: cell_min is 1".to_owned(),
        _ => format!("yes: {how}"),
    }
}

fn description(sizes: &Sizes) -> MessageKind {
    let numbers = 1 + sizes.class_counts;
    MessageKind {
        kind: "description",
        purpose: "says that the cohort fits, and how many patients it has",
        shape: match sizes.class_counts {
            0 => "1 count".to_owned(),
            classes => format!("1 count and {classes} class counts"),
        },
        bytes_formula: format!("{NUMBER_BYTES} x {numbers}"),
        bytes: NUMBER_BYTES * numbers,
        times: 1,
        rule: "patients_min, class_patients_min",
        withheld: "no: below a minimum the whole job is refused".to_owned(),
    }
}

fn moments(rules: &Rules, job: &Job, sizes: &Sizes) -> MessageKind {
    // Beside the features: patients, similar pairs, dissimilar pairs.
    let numbers = sizes.moments + 3;
    MessageKind {
        kind: "moments",
        purpose: "sums and level counts, from which all sites take one standardisation",
        shape: format!("{} features, {numbers} numbers", job.features.len()),
        bytes_formula: format!("{NUMBER_BYTES} x {numbers}"),
        bytes: NUMBER_BYTES * numbers,
        times: 1,
        rule: "patients_min, cell_min",
        withheld: match rules.cell_min {
            1 => "no: cell_min is 1".to_owned(),
            minimum => format!(
                "yes: a count of 1 to {} is rounded to 0 or {minimum}; sums over fewer than {} \
                 values are left out",
                minimum - 1,
                rules.patients_min.max(minimum)
            ),
        },
    }
}

/// None where the job needs no quantile.
fn quantiles(rules: &Rules, job: &Job) -> Option<MessageKind> {
    let columns = job.gridded_columns();
    let grids = columns.iter().map(|one| one.grid).chain(job.event_grid());
    let features = grids.clone().count();
    if features == 0 {
        return None;
    }
    // An end and a count a group, and no more groups than cells.
    let cells: u64 = grids.map(|grid| u64::from(grid.cells())).sum();
    let minimum = rules.cell_min.max(1);
    Some(MessageKind {
        kind: "quantiles",
        purpose: match &job.method {
            Method::Unpsl(_) => {
                "histograms, from which all sites take pooled medians and interquartile ranges"
            }
            Method::Forest(_) => {
                "histograms of numbers and of the times of events, from which all sites take cut \
                 points and event times"
            }
        },
        shape: format!("{features} columns, up to {cells} groups"),
        bytes_formula: format!("2 x {NUMBER_BYTES} x {cells}"),
        bytes: 2 * NUMBER_BYTES * cells,
        times: 1,
        rule: "patients_min, cell_min",
        withheld: match minimum {
            1 => "no: cell_min is 1".to_owned(),
            _ => format!(
                "yes: neighbouring groups are joined until each holds {minimum}; a histogram of \
                 fewer than {} values is left out",
                rules.patients_min.max(minimum)
            ),
        },
    })
}

fn prepared(settings: &UnpslSettings, sizes: &Sizes) -> MessageKind {
    let pooled = settings.objective.correlation == CorrelationScope::Pooled;
    let rows = sizes.rows;
    MessageKind {
        kind: "prepared",
        purpose: if pooled {
            "second moments of the standardised patients, for the pooled correlation"
        } else {
            "says that the site is ready for rounds"
        },
        shape: if pooled {
            format!("{rows} x {rows}")
        } else {
            "empty".to_owned()
        },
        bytes_formula: if pooled {
            format!("{NUMBER_BYTES} x {rows} x {rows}")
        } else {
            "0".to_owned()
        },
        bytes: if pooled {
            NUMBER_BYTES * rows * rows
        } else {
            0
        },
        times: 1,
        rule: if pooled {
            "second_moments"
        } else {
            "none: nothing of the cohort"
        },
        withheld: "no".to_owned(),
    }
}

fn contribution(settings: &UnpslSettings, sizes: &Sizes) -> MessageKind {
    let (rows, rank) = (sizes.rows, sizes.rank);
    let selection = settings.selection.as_ref();
    let validations = selection.map_or(0, SelectionSettings::metrics);
    let (matrices, purpose) = match settings.consensus {
        ConsensusMethod::Accelerated => (
            2,
            "the site's own metric W_p of a round, fitted to all its patients, the gradient of \
             its objective at the common metric, and its objective",
        ),
        ConsensusMethod::Admm => (
            1,
            "the site's own metric W_p of a round, fitted to all its patients, and its objective",
        ),
    };
    MessageKind {
        kind: "contribution",
        purpose,
        shape: format!("{matrices} of {rows} x {rank}, and 2 numbers"),
        bytes_formula: format!("{NUMBER_BYTES} x ({matrices} x {rows} x {rank} + 2)"),
        bytes: NUMBER_BYTES * (matrices * rows * rank + 2),
        times: settings.rounds() - validations,
        rule: "second_moments, similarity_max, rounds_per_cohort_max, patients_min",
        withheld: "no: it holds no count".to_owned(),
    }
}

fn validation(rules: &Rules, selection: &SelectionSettings) -> MessageKind {
    let tables = selection.neighbours.len() as u64;
    MessageKind {
        kind: "validation",
        purpose: "how many held-out patients of all folds were classified right and wrong",
        shape: format!("{tables} tables of 1 x 2"),
        bytes_formula: format!("2 x {NUMBER_BYTES} x {tables}"),
        bytes: 2 * NUMBER_BYTES * tables,
        times: selection.metrics(),
        rule: "cell_min, rounds_per_cohort_max",
        withheld: match rules.cell_min {
            1 => "no: cell_min is 1".to_owned(),
            minimum => format!(
                "yes: a table with a cell of 1 to {} is left out",
                minimum - 1
            ),
        },
    }
}

fn finished(rules: &Rules, sizes: &Sizes) -> MessageKind {
    let cells = sizes.classes * sizes.classes;
    let (tables, pair_cells) = if cells == 0 {
        (0, 0)
    } else {
        (NEIGHBOUR_RULES, 4)
    };
    MessageKind {
        kind: "finished",
        purpose: "the objective at the end, and right and wrong predictions of the site's \
                  patients",
        shape: match tables {
            0 => "1 number".to_owned(),
            _ => format!(
                "1 number, {tables} tables of {0} x {0} and 1 of pairs, 2 x 2",
                sizes.classes
            ),
        },
        bytes_formula: format!("{NUMBER_BYTES} x (1 + {tables} x {cells} + {pair_cells})"),
        bytes: NUMBER_BYTES * (1 + tables * cells + pair_cells),
        times: 1,
        rule: "cell_min",
        withheld: match (tables, rules.cell_min) {
            (0, _) => "no: it holds no count".to_owned(),
            (_, 1) => "no: cell_min is 1".to_owned(),
            (_, minimum) => {
                let largest = minimum - 1;
                format!("yes: a table with a cell of 1 to {largest} is left out whole")
            }
        },
    }
}

fn sizes(job: &Job, settings: &UnpslSettings) -> Sizes {
    let mut rows = 0;
    let mut moments = 0;
    for feature in &job.features {
        // Count, sum, sum of squares and missing of a number; the levels and missing of a category.
        let (feature_rows, feature_moments) = match &feature.kind {
            FeatureKind::Categorical { levels } => (levels.len(), levels.len() + 1),
            FeatureKind::Numeric { .. }
            | FeatureKind::Ordinal { .. }
            | FeatureKind::Binary { .. }
            | FeatureKind::Age { .. } => (1, 4),
        };
        rows += feature_rows + usize::from(feature.impute == Impute::Indicator);
        moments += feature_moments;
    }
    Sizes {
        rows: rows as u64,
        rank: settings.objective.rank.min(rows) as u64,
        moments: moments as u64,
        ..Sizes::of_outcome(job)
    }
}

impl Sizes {
    /// Those of the outcome alone.
    fn of_outcome(job: &Job) -> Self {
        let classes = job.outcome.kind.classes().len() as u64;
        Self {
            classes,
            // Of a survival time: censored and events.
            class_counts: match job.outcome.kind {
                OutcomeKind::Survival { .. } => 2,
                _ => classes,
            },
            rows: 0,
            rank: 0,
            moments: 0,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "Job {:?}, submitted by {}.\n",
            self.job, self.asked_by
        )?;
        if self.refusals.is_empty() {
            writeln!(
                formatter,
                "The policy admits it. Once the cohort has been read, it must still pass:"
            )?;
        } else {
            writeln!(formatter, "The policy refuses it, before anything is read:")?;
            for refusal in &self.refusals {
                writeln!(formatter, "  {refusal}")?;
            }
            writeln!(
                formatter,
                "\nWere these rules changed, the cohort would still have to pass:"
            )?;
        }
        for condition in conditions(&self.rules) {
            writeln!(formatter, "  {condition}")?;
        }
        if !self.lowered.is_empty() {
            writeln!(formatter, "\nRules that protect less than the defaults do:")?;
            for sentence in &self.lowered {
                writeln!(formatter, "  {sentence}")?;
            }
        }
        writeln!(formatter, "\nMessages that this site would send:\n")?;
        formatter.write_str(&table(&self.messages))?;
        writeln!(formatter, "\nWhat each can tell in the worst case:\n")?;
        for (message, worst) in self.messages.iter().zip(&self.worst) {
            formatter.write_str(&paragraph(message.kind, worst))?;
        }
        writeln!(
            formatter,
            "\nIn all at most {} bytes over the run, and a few hundred bytes of framing a message. \
             Constant features\nmake matrices smaller. No patient, no row and no identifier is \
             among them.\n",
            grouped(self.bytes())
        )?;
        for (heading, text) in &self.closing {
            formatter.write_str(&paragraph(heading, text))?;
        }
        Ok(())
    }
}

fn conditions(rules: &Rules) -> [String; 6] {
    [
        format!(
            "patients_min: at least {} patients",
            rules.patients_min.max(rules.cell_min)
        ),
        format!(
            "class_patients_min: at least {} patients in each outcome class",
            rules.class_patients_min
        ),
        format!(
            "runs_per_cohort_max: at most {} runs on the cohort",
            rules.runs_per_cohort_max
        ),
        format!(
            "rounds_per_cohort_max: at most {} rounds on the cohort, over all runs",
            rules.rounds_per_cohort_max
        ),
        format!(
            "cohort_difference_min: the same patients as an earlier cohort, or at least {} others",
            rules.cohort_difference_min
        ),
        format!(
            "descriptions_per_day_max: at most {} jobs of one operator a day that have a cohort read",
            rules.descriptions_per_day_max
        ),
    ]
}
