//! The form of a patient, made from the study: a field for each feature, and what was written into it.

use maud::{Markup, html};
use protocol::cohort::{Feature, FeatureKind, Impute, Value, is_plausible};
use service::pages::Form;

/// What stands for a value that is not known.
const UNKNOWN: &str = "";

/// The name of the field of a feature: nothing of the study is in it.
fn field(place: usize) -> String {
    format!("f{place}")
}

/// What a field holds for a value.
pub(super) fn text_of(feature: &Feature, value: Value) -> String {
    let level = |levels: &[String], place: f64| {
        let mut all = levels.iter().zip(0_u32..);
        let found = all.find(|(_, number)| f64::from(*number) == place);
        found.map_or_else(String::new, |(level, _)| level.clone())
    };
    match (value, &feature.kind) {
        (Value::Missing, _) => UNKNOWN.to_owned(),
        (Value::Level(place), FeatureKind::Categorical { levels }) => {
            levels.get(place).cloned().unwrap_or_default()
        }
        (Value::Number(place), FeatureKind::Ordinal { levels }) => level(levels, place),
        (Value::Number(place), FeatureKind::Binary { positive, negative }) => {
            level(&[negative.clone(), positive.clone()], place)
        }
        (Value::Number(years), FeatureKind::Age { .. }) => format!("{years:.1}"),
        (Value::Number(number), FeatureKind::Numeric { .. } | FeatureKind::Categorical { .. }) => {
            number.to_string()
        }
        (
            Value::Level(place),
            FeatureKind::Numeric { .. }
            | FeatureKind::Age { .. }
            | FeatureKind::Ordinal { .. }
            | FeatureKind::Binary { .. },
        ) => place.to_string(),
    }
}

/// What was written, and what it means; else what is wrong with each field, with nothing of what was written.
pub(super) struct Filled {
    /// As it was written.
    pub(super) texts: Vec<String>,
    /// What is wrong, field by field.
    pub(super) problems: Vec<Option<String>>,
    /// What it means, where nothing is wrong.
    pub(super) values: Option<Vec<Value>>,
}

/// Reads a form. A field that holds what `known` shows keeps its value to the last digit.
pub(super) fn read(features: &[Feature], form: &Form, known: Option<&[Value]>) -> Filled {
    let texts: Vec<String> = (0..features.len())
        .map(|place| form.get(&field(place)).to_owned())
        .collect();
    let read = |(place, (feature, text)): (usize, (&Feature, &String))| {
        let known = known.and_then(|values| values.get(place)).copied();
        match known.filter(|known| text_of(feature, *known) == *text) {
            Some(known) => Ok(known),
            None => value(feature, text),
        }
    };
    let found: Vec<Result<Value, String>> =
        features.iter().zip(&texts).enumerate().map(read).collect();
    Filled {
        values: found.iter().cloned().collect::<Result<_, _>>().ok(),
        problems: found.into_iter().map(Result::err).collect(),
        texts,
    }
}

fn value(feature: &Feature, text: &str) -> Result<Value, String> {
    let value = match &feature.kind {
        FeatureKind::Age { .. } => years(text),
        FeatureKind::Numeric { .. }
        | FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Binary { .. } => feature
            .value(text)
            .map_err(|wanted| format!("wanted {wanted}")),
    }?;
    match (value, feature.impute) {
        (Value::Missing, Impute::Refuse) => {
            Err("wanted a value: the run compares nobody without one".to_owned())
        }
        (value, _) => Ok(value),
    }
}

/// An age is written in years, because nobody at the bedside counts from the study's day.
fn years(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::Missing);
    }
    let age = text.parse::<f64>().ok().filter(|age| is_plausible(*age));
    age.map(Value::Number)
        .ok_or_else(|| "wanted an age in years".to_owned())
}

/// What is wrong with them, each with the way to its field; nothing where nothing is.
pub(super) fn wrong(features: &[Feature], problems: &[Option<String>]) -> Markup {
    let wrong = features.iter().zip(problems).enumerate();
    let wrong: Vec<(usize, &Feature, &str)> = wrong
        .filter_map(|(place, (feature, problem))| Some((place, feature, problem.as_deref()?)))
        .collect();
    html! {
        @if !wrong.is_empty() {
            div.problem role="alert" {
                p { (wrong.len()) " of the fields below cannot be used:" }
                ul { @for (place, feature, problem) in wrong { li { a href=(format!("#{}", field(place))) { (feature.label) } ": " (problem) "." } } }
            }
        }
    }
}

/// The fields, with what was written into them and what is wrong with it.
pub(super) fn fields(
    features: &[Feature],
    texts: &[String],
    problems: &[Option<String>],
) -> Markup {
    html! {
        div.fields {
            @for (place, feature) in features.iter().enumerate() {
                @let text = texts.get(place).map_or("", String::as_str);
                @let problem = problems.get(place).and_then(Option::as_deref);
                (one(feature, &field(place), text, problem))
            }
        }
    }
}

fn one(feature: &Feature, name: &str, text: &str, problem: Option<&str>) -> Markup {
    let hint = hint(feature);
    let described = [
        (!hint.is_empty()).then(|| format!("{name}-hint")),
        problem.map(|_| format!("{name}-problem")),
    ];
    let described: Vec<String> = described.into_iter().flatten().collect();
    let described = (!described.is_empty()).then(|| described.join(" "));
    let levels = levels(feature);
    html! {
        div.field {
            label for=(name) { (feature.label_with_unit()) }
            @if levels.is_empty() {
                input id=(name) name=(name) type="text" inputmode="decimal" autocomplete="off" value=(text)
                    aria-describedby=[described] aria-invalid=[problem.map(|_| "true")];
            } @else {
                select id=(name) name=(name) autocomplete="off" aria-describedby=[described] aria-invalid=[problem.map(|_| "true")] {
                    option value=(UNKNOWN) selected[text == UNKNOWN] { "unknown" }
                    @for level in levels {
                        option value=(level) selected[text == level] { (feature.level_label(level)) }
                    }
                }
            }
            @if !hint.is_empty() { p.note id=(format!("{name}-hint")) { (hint) } }
            @if let Some(problem) = problem { p.wrong id=(format!("{name}-problem")) { (problem) } }
        }
    }
}

fn levels(feature: &Feature) -> Vec<&str> {
    match &feature.kind {
        FeatureKind::Categorical { levels } | FeatureKind::Ordinal { levels } => {
            levels.iter().map(String::as_str).collect()
        }
        FeatureKind::Binary { positive, negative } => vec![negative, positive],
        FeatureKind::Numeric { .. } | FeatureKind::Age { .. } => Vec::new(),
    }
}

/// What can be written.
fn hint(feature: &Feature) -> String {
    let range = match &feature.kind {
        FeatureKind::Numeric { range, .. } => range.map(|(low, high)| format!("{low} to {high}")),
        FeatureKind::Age { .. } => Some("in years".to_owned()),
        FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Binary { .. } => None,
    };
    let needed = match feature.impute {
        Impute::Refuse => Some("needed".to_owned()),
        Impute::Mean | Impute::Median | Impute::Indicator => None,
    };
    [range, needed]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::cohort::{Standardise, Transform};

    fn feature(kind: FeatureKind, impute: Impute) -> Feature {
        Feature {
            name: "x".to_owned(),
            label: "x".to_owned(),
            level_labels: [("b".to_owned(), "<i>b</i>".to_owned())].into(),
            kind,
            missing: Vec::new(),
            impute,
            per: None,
            spline: 1,
        }
    }

    fn levels() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    fn features() -> Vec<Feature> {
        let number = FeatureKind::Numeric {
            unit: "mg/dl".to_owned(),
            range: Some((0.0, 10.0)),
            transform: Transform::None,
            standardise: Standardise::Moments,
        };
        let pair = FeatureKind::Binary {
            positive: "b".to_owned(),
            negative: "a".to_owned(),
        };
        let age = FeatureKind::Age {
            at: "2026-01-01".to_owned(),
        };
        [
            number,
            FeatureKind::Categorical { levels: levels() },
            FeatureKind::Ordinal { levels: levels() },
            pair,
            age,
        ]
        .map(|kind| feature(kind, Impute::Mean))
        .to_vec()
    }

    fn form(texts: &[&str]) -> Form {
        let fields = texts.iter().enumerate();
        Form::of(fields.map(|(place, text)| (field(place), (*text).to_owned())))
    }

    #[test]
    fn a_form_that_shows_values_reads_them_back_to_the_last_digit() {
        let known = [
            Value::Number(1.0 / 3.0),
            Value::Level(1),
            Value::Number(2.0),
            Value::Number(1.0),
            Value::Number(63.456),
        ];
        let features = features();
        let shown = features.iter().zip(known);
        let texts: Vec<String> = shown.map(|(one, value)| text_of(one, value)).collect();
        assert_eq!(texts[1..], ["b", "c", "b", "63.5"]);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let read_back = read(&features, &form(&texts), Some(&known));
        assert_eq!(read_back.values.unwrap(), known);
        // Without what is known an age is what was written.
        let values = read(&features, &form(&texts), None).values.unwrap();
        assert_eq!(values[4], Value::Number(63.5));
        let unknown = read(&features, &form(&["", "", "", "", ""]), None);
        assert_eq!(unknown.values.unwrap(), [Value::Missing; 5]);
    }

    #[test]
    fn every_field_that_cannot_be_read_is_named_and_nothing_of_it() {
        let wrong = ["11", "d", "2", "c", "-1"];
        let filled = read(&features(), &form(&wrong), None);
        assert_eq!(filled.values, None);
        assert_eq!(filled.texts, wrong);
        let problems: Vec<String> = filled.problems.into_iter().flatten().collect();
        let pair = "wanted one of a, b";
        let level = "wanted one of a, b, c";
        let number = "wanted a number from 0 to 10";
        assert_eq!(
            problems,
            [number, level, level, pair, "wanted an age in years"]
        );
        let needed = feature(FeatureKind::Ordinal { levels: levels() }, Impute::Refuse);
        let filled = read(&[needed], &form(&[""]), None);
        assert!(
            filled.problems[0]
                .as_ref()
                .unwrap()
                .contains("wanted a value")
        );
    }

    #[test]
    fn a_label_is_text_whatever_it_holds() {
        let features = features();
        let page = fields(&features, &["\"><script>".to_owned()], &[]).into_string();
        assert!(page.contains("&lt;i&gt;b&lt;/i&gt;") && !page.contains("<i>"));
        assert!(
            page.contains("value=\"&quot;&gt;&lt;script&gt;\""),
            "{page}"
        );
        assert_eq!(
            page.matches("<option value=\"\" selected>unknown").count(),
            3
        );
    }
}
