//! The outcome: from TOML, and in the words that people read.

use super::read::{ends, levels};
use super::{OutcomeKind, OutcomeSpecification, with_unit};
use crate::document::{Section, list, nearest_hint};
use std::collections::HashSet;

/// Times by which the risk is given, at most.
const HORIZONS_MAX: usize = 5;

impl OutcomeSpecification {
    /// What people read for its classes, in the order of their codes; empty where there are none.
    #[must_use]
    pub fn classes(&self) -> Vec<String> {
        let classes = self.kind.classes();
        let labelled = classes.iter().map(|class| self.group_label(class));
        labelled.map(str::to_owned).collect()
    }

    /// What people read for one of its groups: its label, else a plain default, else its value.
    #[must_use]
    pub fn group_label<'o>(&'o self, group: &'o str) -> &'o str {
        if let Some(label) = self.level_labels.get(group) {
            return label;
        }
        match (&self.kind, group) {
            (OutcomeKind::Binary { .. }, "positive") => "with the outcome",
            (OutcomeKind::Binary { .. }, _) => "without the outcome",
            (OutcomeKind::Survival { .. }, "event") => "with the event",
            (OutcomeKind::Numeric, _) => "with a value",
            (OutcomeKind::Survival { .. } | OutcomeKind::Categorical { .. }, value) => value,
        }
    }

    /// What people read for patients with an event.
    #[must_use]
    pub fn event_label(&self) -> &str {
        self.group_label("event")
    }

    /// What people read for its unit: of a time always one, of a number without a unit none.
    #[must_use]
    pub fn unit_in_words(&self) -> &str {
        match (self.unit.as_str(), &self.kind) {
            ("", OutcomeKind::Survival { .. }) => "units of time",
            (unit, _) => unit,
        }
    }

    /// Its label, with its unit where it has one.
    #[must_use]
    pub fn label_with_unit(&self) -> String {
        with_unit(&self.label, self.unit_in_words())
    }

    /// The unit of the square of a number; empty where that has none.
    #[must_use]
    pub fn squared_unit(&self) -> String {
        match self.unit_in_words() {
            "" => String::new(),
            unit => format!("{unit} squared"),
        }
    }
}

impl OutcomeKind {
    /// The job's words for the groups that it parts patients into, in order: its classes; of a survival time who has an event and who
    /// was censored; of a number whoever has one.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        match self {
            Self::Survival { .. } => vec!["event".to_owned(), "censored".to_owned()],
            Self::Numeric => vec!["all".to_owned()],
            Self::Binary { .. } | Self::Categorical { .. } => self.classes(),
        }
    }
}

pub(crate) fn outcome(section: &mut Section<'_, '_>) -> Option<OutcomeSpecification> {
    #[derive(Clone)]
    enum Kind {
        Binary,
        Categorical,
        Numeric,
        Survival,
    }
    let column: Option<String> = section.required("column");
    let label = match section.has("label") {
        true => line(section, "label"),
        false => column.clone(),
    };
    let unit = section.or("unit", String::new());
    let level_labels = section
        .table("level_labels", |section| Some(section.entries()))
        .unwrap_or_default();
    let kinds = [
        ("binary", Kind::Binary),
        ("categorical", Kind::Categorical),
        ("numeric", Kind::Numeric),
        ("survival", Kind::Survival),
    ];
    if !section.has("kind") {
        section.required::<String>("kind");
    }
    let Some(kind) = section.choice("kind", &kinds) else {
        section.pass_over_all();
        return None;
    };
    let kind = match kind {
        Kind::Binary => {
            let positive: Vec<String> = section.required("positive").unwrap_or_default();
            let negative: Vec<String> = section.or("negative", Vec::new());
            if positive.is_empty() {
                section.problem("positive", "no value", "the values that mean disease");
            }
            let others: HashSet<&String> = negative.iter().collect();
            if let Some(both) = positive.iter().find(|value| others.contains(value)) {
                section.problem(
                    "negative",
                    &format!("{both:?} in both lists"),
                    "each value once",
                );
            }
            OutcomeKind::Binary { positive, negative }
        }
        Kind::Categorical => OutcomeKind::Categorical {
            levels: levels(section),
        },
        Kind::Numeric => OutcomeKind::Numeric,
        Kind::Survival => survival(section),
    };
    let missing = missing(section, &kind);
    let is_number = matches!(kind, OutcomeKind::Numeric);
    let range = is_number.then(|| ends(section)).flatten();
    let outcome = OutcomeSpecification {
        label: label?,
        unit,
        level_labels: level_labels.into_iter().collect(),
        column: column?,
        kind,
        range,
        missing,
    };
    labels_of_groups(section, &outcome);
    Some(outcome)
}

fn survival(section: &mut Section<'_, '_>) -> OutcomeKind {
    let horizon = section
        .has("horizon")
        .then(|| section.number("horizon", 1.0, "a time above 0", |time| time > 0.0));
    let horizons: Vec<f64> = section.or("horizons", Vec::new());
    let rise = horizons.windows(2).all(|pair| pair[0] < pair[1]);
    let fit = |time: &f64| time.is_finite() && *time > 0.0 && *time <= horizon.unwrap_or(*time);
    if !rise || horizons.len() > HORIZONS_MAX || !horizons.iter().all(fit) {
        let wanted = format!("up to {HORIZONS_MAX} rising times above 0, none beyond the horizon");
        section.problem("horizons", &format!("{horizons:?}"), &wanted);
    }
    OutcomeKind::Survival {
        event: section.required("event").unwrap_or_default(),
        event_values: section.or("event_values", vec!["1".to_owned()]),
        horizon,
        horizons,
    }
}

/// Values that mean missing, of which no list of the outcome has one.
fn missing(section: &mut Section<'_, '_>, kind: &OutcomeKind) -> Vec<String> {
    let missing: Vec<String> = section.or("missing", Vec::new());
    let both = missing.iter().find(|code| values(kind).contains(code));
    if let Some(both) = both {
        let found = format!("{both:?}, which is a value of the outcome");
        section.problem("missing", &found, "codes that no list of the outcome has");
    }
    missing
}

/// Reports labels and units that no group and no number has.
fn labels_of_groups(section: &Section<'_, '_>, outcome: &OutcomeSpecification) {
    let groups = outcome.kind.groups();
    let known: Vec<&str> = groups.iter().map(String::as_str).collect();
    for name in outcome.level_labels.keys() {
        if !known.contains(&name.as_str()) {
            let near = nearest_hint(name, &known);
            let wanted = format!("labels of {}{near}", list(&known));
            section.problem("level_labels", &format!("{name:?}"), &wanted);
        }
    }
    let labels = groups.iter().map(|group| outcome.group_label(group));
    if labels.collect::<HashSet<&str>>().len() < groups.len() {
        let found = "two groups with one label";
        section.problem("level_labels", found, "a label of its own for each");
    }
    let has_classes = !outcome.kind.classes().is_empty();
    if has_classes && !outcome.unit.is_empty() {
        let found = format!("{:?}", outcome.unit);
        section.problem("unit", &found, "none: classes have no unit");
    }
}

/// A required text of one line, which is not empty.
pub(crate) fn line(section: &mut Section<'_, '_>, key: &'static str) -> Option<String> {
    let text: String = section.required(key)?;
    if text.trim().is_empty() || text.contains(['\n', '\r', '\t']) {
        section.problem(key, &format!("{text:?}"), "one line of text");
    }
    Some(text)
}

/// The values that a kind of outcome lists.
fn values(kind: &OutcomeKind) -> Vec<&String> {
    match kind {
        OutcomeKind::Binary { positive, negative } => positive.iter().chain(negative).collect(),
        OutcomeKind::Categorical { levels } => levels.iter().collect(),
        OutcomeKind::Numeric => Vec::new(),
        OutcomeKind::Survival { event_values, .. } => event_values.iter().collect(),
    }
}
