//! Who is alike to patients of elsewhere, and how they fared: in plain words, for machines, as a table, and as a picture.

use crate::csvw::{About, Column, CsvTable};
use crate::estimates::{Drawn, estimates};
use crate::figures::FigureError;
use crate::method::{Row, rows};
use crate::outcome::{event_by, rate_in_words, units_of, with_event};
use crate::words::{figure, sites_in_words};
use protocol::cohort::{FeatureKind, OutcomeSpecification, Value, with_unit};
use protocol::job::Job;
use protocol::method::neighbours::model::{self, Interval, Mean, Model, Outlook};
use protocol::method::neighbours::settings::{ALIKE_MIN, DESCRIBED, SHARES};
use serde::Serialize;
use std::io;

/// How the numbers come about.
pub(crate) const HOW: &str = "A patient is similar within a distance that holds about so many percent of the pairs of patients within sites. Each \
    site divides its patients into groups of similar ones, and counts each group by the share within the distance. Fixed noise hides single \
    outcomes. The 95 % intervals allow for chance, for noise and for this way of counting. A queried patient of one of the sites is \
    counted as well.";

/// Patients who were asked about: nothing of them but their places has left whoever asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskedAbout<'a> {
    /// Their names; without, they are numbered from 1.
    pub names: &'a [String],
    /// Their values, one list a patient.
    pub values: &'a [Vec<Value>],
}

/// Who is alike to each patient who was asked about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AlikeElsewhere {
    /// The run that asked.
    run: String,
    /// The run that patients were compared by.
    compared_by: String,
    sites: usize,
    /// Patients of all sites.
    patients: u64,
    /// Of them those in groups, who were looked through.
    grouped: u64,
    outcome: String,
    /// How all of them fared.
    everybody: Fared,
    queries: Vec<Query>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Query {
    patient: String,
    within: Vec<Within>,
    /// What the similar patients at the middle radius are like.
    features: Vec<Feature>,
}

#[derive(Debug, Clone, Serialize)]
struct Within {
    /// So many of a hundred pairs are as near.
    percent: u32,
    radius: f64,
    alike: u64,
    #[serde(flatten)]
    fared: Fared,
}

/// How patients fared; nothing of too few.
#[derive(Debug, Clone, Default, Serialize)]
struct Fared {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Class>,
    /// Of a survival time who has an event by each horizon that enough are followed to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by: Vec<Class>,
    /// Of another outcome its mean, or its rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<Number>,
}

#[derive(Debug, Clone, Serialize)]
struct Class {
    class: String,
    share: Ends,
}

/// A mean or a rate, and what it is.
#[derive(Debug, Clone, Serialize)]
struct Number {
    what: String,
    #[serde(flatten)]
    ends: Ends,
}

/// A feature of a patient, and its mean, or share, among the similar.
#[derive(Debug, Clone, Serialize)]
struct Feature {
    feature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<String>,
    similar: String,
}

/// A number and its interval of 95 %.
#[derive(Debug, Clone, Copy, Serialize)]
struct Ends {
    value: f64,
    /// None where it has no end.
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Interval> for Ends {
    fn from(found: Interval) -> Self {
        let end = |end: f64| end.is_finite().then_some(end);
        Self {
            value: found.value,
            low: end(found.low),
            high: end(found.high),
        }
    }
}

impl Ends {
    fn times(self, units: f64) -> Self {
        let end = |end: Option<f64>| end.map(|end| units * end);
        Self {
            value: units * self.value,
            low: end(self.low),
            high: end(self.high),
        }
    }
}

impl AlikeElsewhere {
    /// What `result` says of these patients. `sites` have taken part.
    pub(crate) fn new(
        run: &str,
        model: &Model,
        job: &Job,
        sites: usize,
        (of, notes): (AskedAbout<'_>, &[String]),
    ) -> Self {
        let outcome = &job.cohort.outcome;
        let query = |(place, (groups, means)): (usize, (&[model::Alike], &[Mean]))| {
            let both = SHARES.iter().zip(&model.radii).zip(groups);
            let within = |((percent, radius), alike): ((&u32, &f64), &model::Alike)| Within {
                percent: *percent,
                radius: *radius,
                alike: alike.count(),
                fared: Fared::of(alike, &model.everybody, outcome),
            };
            let name = of.names.get(place).cloned();
            let own = of.values.get(place).map(Vec::as_slice);
            Query {
                patient: name.unwrap_or_else(|| (place + 1).to_string()),
                within: both.map(within).collect(),
                features: features(job, means, own),
            }
        };
        Self {
            run: run.to_owned(),
            compared_by: model.run.clone(),
            sites,
            patients: model.patients,
            grouped: model.grouped,
            outcome: outcome.label.clone(),
            everybody: Fared::of(&model.everybody, &model.everybody, outcome),
            queries: model.queries().enumerate().map(query).collect(),
            notes: notes.to_vec(),
        }
    }

    /// A sentence for each patient.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let sentence = |query: &Query| {
            let told = query.within.get(DESCRIBED);
            let alike = told.map_or(0, |one| one.alike);
            let fared = told.map(|one| one.fared.in_words()).unwrap_or_default();
            let who = format!("Patient {}", query.patient);
            let (all, sites) = (self.grouped, sites_in_words(self.sites));
            match fared.is_empty() {
                true => format!(
                    "{who}: fewer than {ALIKE_MIN} of {all} patients at {sites} are similar, too few to say how they fared."
                ),
                false => format!(
                    "{who}: about {alike} of {all} patients at {sites} are similar. {}: {fared}; of all patients {}.",
                    self.outcome,
                    self.everybody.values()
                ),
            }
        };
        self.queries.iter().map(sentence).collect()
    }

    /// A picture for each number of the outcome: of all patients and radii, with a line at what everybody has.
    ///
    /// # Errors
    /// [`FigureError`].
    pub(crate) fn pictures(&self) -> Result<Vec<String>, FigureError> {
        let picture = |whole: (String, bool, Ends)| {
            let (what, is_share, everybody) = whole;
            let scale = if is_share { 100.0 } else { 1.0 };
            let line = |query: &Query, one: &Within| {
                let parts = one.fared.parts();
                let (_, _, ends) = parts.into_iter().find(|(name, _, _)| *name == what)?;
                Some(Drawn {
                    name: format!(
                        "{}, nearest {} %: {}",
                        query.patient, one.percent, one.alike
                    ),
                    value: scale * ends.value,
                    low: scale * ends.low?,
                    high: scale * ends.high?,
                })
            };
            let all = self.queries.iter();
            let lines = all.flat_map(|query| query.within.iter().map(move |one| (query, one)));
            let drawn: Vec<Drawn> = lines.filter_map(|(query, one)| line(query, one)).collect();
            let axis = match is_share {
                true => format!("{}: {what}, %", self.outcome),
                false => format!("{}: {what}", self.outcome),
            };
            estimates(&drawn, &axis, scale * everybody.value, false)
        };
        self.everybody.parts().into_iter().map(picture).collect()
    }

    /// The features of a patient and of those who are similar: the head, and for each patient a name and rows.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&str, Vec<[&str; 3]>)> {
        self.queries.iter().map(|query| {
            let rows = query.features.iter().map(|one| {
                let own = one.own.as_deref().unwrap_or("-");
                [one.feature.as_str(), own, one.similar.as_str()]
            });
            (query.patient.as_str(), rows.collect())
        })
    }

    /// What people read: the sentences, each radius, and how it came about.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (sentence, query) in self.sentences().iter().zip(&self.queries) {
            text.push_str(&format!("{sentence}\n"));
            for one in &query.within {
                let fared = one.fared.in_words();
                let fared = if fared.is_empty() {
                    "too few to say"
                } else {
                    &fared
                };
                let (percent, alike) = (one.percent, one.alike);
                text.push_str(&format!(
                    "  nearest {percent:>2} % of pairs: {alike:>5} similar, {fared}\n"
                ));
            }
            for one in query.features.iter().filter(|one| one.own.is_some()) {
                let own = one.own.as_deref().unwrap_or_default();
                text.push_str(&format!(
                    "  {}: {own}; similar patients {}\n",
                    one.feature, one.similar
                ));
            }
        }
        text.push_str(&format!("\n{HOW}\n"));
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text.trim_end().to_owned()
    }

    /// The same for machines.
    ///
    /// # Errors
    /// [`io::Error`] where it cannot be written as JSON.
    pub(crate) fn json(&self) -> io::Result<String> {
        serde_json::to_string_pretty(self).map_err(io::Error::other)
    }

    /// A row for each class of each radius of each patient; of a number or a survival time one a radius. Without numbers where there are too
    /// few.
    ///
    /// # Errors
    /// [`io::Error`] where it cannot be written.
    pub(crate) fn csv(&self, outcome: &OutcomeSpecification) -> io::Result<CsvTable> {
        let mut table = CsvTable::new(
            "Outcomes of similar patients elsewhere: a row per query, radius and figure",
            About::Outcome(outcome),
            &[
                Column::patient(),
                Column::whole(
                    "percent",
                    "share of all patients that the radius was chosen for",
                ),
                Column::number("radius", "largest distance of a similar patient"),
                Column::number("alike", "similar patients"),
                Column::text(
                    "what",
                    "what the numbers are: of a class or event its share; else with its unit",
                ),
                Column::number("value", "of similar patients"),
                Column::number("low", "lower end of its interval of 95 %"),
                Column::number("high", "upper end of its interval of 95 %"),
                Column::number("everybody", "of all patients"),
            ],
        )?;
        for query in &self.queries {
            for one in &query.within {
                let known = one.fared.parts();
                for (what, _, everybody) in self.everybody.parts() {
                    let own = known.iter().find(|(name, _, _)| *name == what);
                    let end = |end: fn(&Ends) -> Option<f64>| {
                        let end = own.and_then(|(_, _, ends)| end(ends));
                        end.map(|end| end.to_string()).unwrap_or_default()
                    };
                    table.row([
                        query.patient.clone(),
                        one.percent.to_string(),
                        one.radius.to_string(),
                        one.alike.to_string(),
                        what,
                        end(|ends| Some(ends.value)),
                        end(|ends| ends.low),
                        end(|ends| ends.high),
                        everybody.value.to_string(),
                    ])?;
                }
            }
        }
        Ok(table)
    }
}

impl Fared {
    fn of(alike: &model::Alike, everybody: &model::Alike, outcome: &OutcomeSpecification) -> Self {
        let kind = &outcome.kind;
        let mut fared = Self::default();
        match alike.outlook(everybody, kind) {
            None => {}
            Some(Outlook::Classes(shares)) => {
                let both = outcome.classes().into_iter().zip(shares);
                let class = |(class, share): (String, Interval)| Class {
                    class,
                    share: share.into(),
                };
                fared.classes = both.map(class).collect();
            }
            Some(Outlook::Mean(mean)) => {
                let what = with_unit("mean", outcome.unit_in_words());
                let ends = mean.into();
                fared.number = Some(Number { what, ends });
            }
            Some(Outlook::Survival(curve)) => {
                let by = curve.points.iter().map(|point| Class {
                    class: event_by(outcome, point.time),
                    share: with_event(point.share).into(),
                });
                fared.by = by.collect();
            }
            Some(Outlook::Rate(rate)) => {
                let whole = match everybody.outlook(everybody, kind) {
                    Some(Outlook::Rate(rate)) => rate.value,
                    Some(Outlook::Classes(_) | Outlook::Mean(_) | Outlook::Survival(_)) | None => {
                        rate.value
                    }
                };
                let units = units_of(whole);
                fared.number = Some(Number {
                    what: rate_in_words(outcome, units),
                    ends: Ends::from(rate).times(units),
                });
            }
        }
        fared
    }

    /// Each number: what it is, whether it is a share, and its interval. Of two classes the second says all.
    fn parts(&self) -> Vec<(String, bool, Ends)> {
        let first = usize::from(self.classes.len() == 2);
        let classes = self.classes.iter().skip(first);
        let mut parts: Vec<_> = classes
            .chain(&self.by)
            .map(|one| (one.class.clone(), true, one.share))
            .collect();
        let number = self.number.iter();
        parts.extend(number.map(|one| (one.what.clone(), false, one.ends)));
        parts
    }

    /// In words, with intervals; nothing of too few.
    fn in_words(&self) -> String {
        self.words(true)
    }

    /// In words, without intervals.
    fn values(&self) -> String {
        self.words(false)
    }

    fn words(&self, with_ends: bool) -> String {
        let part = |(what, is_share, ends): (String, bool, Ends)| {
            let number = |value: f64| match is_share {
                true => format!("{:.0}", 100.0 * value),
                false => figure(value),
            };
            let unit = if is_share { " %" } else { "" };
            let value = number(ends.value);
            let range = match (with_ends, ends.low, ends.high) {
                (true, Some(low), Some(high)) => {
                    format!(" ({} to {}{unit})", number(low), number(high))
                }
                (true, Some(low), None) => format!(" ({} or more)", number(low)),
                _ => String::new(),
            };
            format!("{value}{unit} {what}{range}")
        };
        let parts: Vec<String> = self.parts().into_iter().map(part).collect();
        parts.join(", ")
    }
}

/// The features of the similar, next to the patient's own.
fn features(job: &Job, means: &[Mean], own: Option<&[Value]>) -> Vec<Feature> {
    let row = |(row, mean): (Row<'_>, &Mean)| {
        let mean = mean.value()?;
        let all = &job.cohort.features;
        let place = all.iter().position(|one| one.name == row.feature.name)?;
        let value = own.and_then(|own| own.get(place));
        Some(Feature {
            own: value.map(|value| own_value(&row, value)),
            similar: similar(&row, mean),
            feature: row.name(),
        })
    };
    rows(job).into_iter().zip(means).filter_map(row).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places of levels
fn similar(row: &Row<'_>, mean: f64) -> String {
    match (&row.feature.kind, row.is_share) {
        (FeatureKind::Ordinal { levels }, _) => {
            let place = mean.round().max(0.0) as usize;
            let level = levels.get(place.min(levels.len() - 1));
            level.map_or_else(
                || figure(mean),
                |level| row.feature.level_label(level).to_owned(),
            )
        }
        (_, true) => format!("{:.0} %", 100.0 * mean),
        (_, false) => figure(row.meant(mean)),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places of levels
fn own_value(row: &Row<'_>, value: &Value) -> String {
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    match (value, &row.feature.kind) {
        (Value::Missing, _) => "missing".to_owned(),
        (Value::Level(place), FeatureKind::Categorical { levels }) => {
            yes(levels.get(*place).map(String::as_str) == row.level)
        }
        (Value::Number(number), FeatureKind::Ordinal { levels }) => {
            let level = levels.get(*number as usize);
            level.map_or_else(
                || figure(*number),
                |level| row.feature.level_label(level).to_owned(),
            )
        }
        (Value::Number(number), FeatureKind::Binary { positive, negative }) => {
            let level = if *number == 1.0 { positive } else { negative };
            row.feature.level_label(level).to_owned()
        }
        (Value::Number(number), _) => figure(*number),
        (Value::Level(place), _) => place.to_string(),
    }
}
