//! Who is alike to patients of elsewhere, and how they fared: in plain words, for machines, and as a table.

use crate::words::{figure, sites_in_words};
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::method::neighbours::model::{self, Interval, Model, Outlook};
use protocol::method::neighbours::settings::SHARES;
use serde::Serialize;
use std::io;

/// The place among the shares of that which a sentence tells.
const TOLD: usize = 1;
/// How the counts come about.
pub(crate) const HOW: &str = "A patient is similar within the distance that holds so many percent of the pairs of patients within sites. Each \
    site divides its patients into groups of one outcome, and counts a group whole or not at all. So counts are coarse: \
    few patients of one outcome among many of another are easily missed, and the intervals ignore that. A queried patient \
    of one of the sites is counted as well.";

/// Who is alike to each patient who was asked about.
#[derive(Debug, Clone, Serialize)]
pub struct AlikeElsewhere {
    /// The run that asked.
    run: String,
    /// The run that patients were compared by.
    compared_by: String,
    sites: usize,
    /// Patients of all sites.
    patients: u64,
    outcome: String,
    queries: Vec<Query>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Query {
    patient: String,
    within: Vec<Within>,
}

#[derive(Debug, Clone, Serialize)]
struct Within {
    /// So many of a hundred pairs are as near.
    percent: u32,
    radius: f64,
    alike: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Class>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Ends>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events_a_unit_of_time: Option<Ends>,
}

#[derive(Debug, Clone, Serialize)]
struct Class {
    class: String,
    patients: u64,
    /// None of nobody.
    share: Option<Ends>,
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

impl AlikeElsewhere {
    /// What `result` says of the patients of these names; numbered from 1 where there are none. `sites` have taken part.
    pub(crate) fn new(
        run: &str,
        model: &Model,
        job: &Job,
        sites: usize,
        (names, notes): (&[String], &[String]),
    ) -> Self {
        let kind = &job.cohort.outcome.kind;
        let query = |(place, groups): (usize, &[model::Alike])| Query {
            patient: names
                .get(place)
                .cloned()
                .unwrap_or_else(|| (place + 1).to_string()),
            within: SHARES
                .iter()
                .zip(&model.radii)
                .zip(groups)
                .map(|((percent, radius), alike)| within(*percent, *radius, alike, kind))
                .collect(),
        };
        Self {
            run: run.to_owned(),
            compared_by: model.run.clone(),
            sites,
            patients: model.patients,
            outcome: job.cohort.outcome.column.clone(),
            queries: model.queries().enumerate().map(query).collect(),
            notes: notes.to_vec(),
        }
    }

    /// A sentence for each patient.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let sentence = |query: &Query| {
            let fared = query
                .within
                .get(TOLD)
                .map(Within::fared)
                .unwrap_or_default();
            let alike = query.within.get(TOLD).map_or(0, |one| one.alike);
            format!(
                "Patient {}: of {} patients at {}, {alike} are similar{fared}.",
                query.patient,
                self.patients,
                sites_in_words(self.sites)
            )
        };
        self.queries.iter().map(sentence).collect()
    }

    /// The head of the table, and a row for each radius of each patient.
    pub(crate) fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let head = vec!["patient", "% of pairs", "distance", "similar", "outcomes"];
        let row = |query: &Query, one: &Within| {
            vec![
                query.patient.clone(),
                one.percent.to_string(),
                figure(one.radius),
                one.alike.to_string(),
                one.fared().trim_start_matches([':', ' ']).to_owned(),
            ]
        };
        let rows = self.queries.iter();
        let rows = rows.flat_map(|query| query.within.iter().map(move |one| row(query, one)));
        (head, rows.collect())
    }

    /// What people read: the sentences, the table, and how it came about.
    #[must_use]
    pub fn text(&self) -> String {
        let (head, rows) = self.table();
        let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..5).map(width).collect();
        let mut text = self.sentences().join("\n") + "\n\n";
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| match column {
                0 | 4 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
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
    pub fn json(&self) -> io::Result<String> {
        serde_json::to_string_pretty(self).map_err(io::Error::other)
    }

    /// A row for each class of each radius of each patient; of a number or a survival time one a radius.
    ///
    /// # Errors
    /// [`io::Error`] where it cannot be written.
    pub fn csv(&self) -> io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record([
            "patient", "percent", "radius", "alike", "what", "patients", "value", "low", "high",
        ])?;
        for query in &self.queries {
            for one in &query.within {
                for (what, patients, ends) in one.told() {
                    let end = |end: fn(&Ends) -> Option<f64>| {
                        let end = ends.as_ref().and_then(end);
                        end.map(|end| end.to_string()).unwrap_or_default()
                    };
                    table.write_record([
                        query.patient.clone(),
                        one.percent.to_string(),
                        one.radius.to_string(),
                        one.alike.to_string(),
                        what,
                        patients.to_string(),
                        end(|ends| Some(ends.value)),
                        end(|ends| ends.low),
                        end(|ends| ends.high),
                    ])?;
                }
            }
        }
        table.into_inner().map_err(io::Error::other)
    }
}

impl Within {
    /// What is told of them: its name, of how many, and its interval.
    fn told(&self) -> Vec<(String, u64, Option<Ends>)> {
        let classes = self.classes.iter();
        let mut told: Vec<_> = classes
            .map(|one| (one.class.clone(), one.patients, one.share))
            .collect();
        if let Some(mean) = self.mean {
            told.push(("mean".to_owned(), self.alike, Some(mean)));
        }
        if let Some(rate) = self.events_a_unit_of_time {
            let name = "events a unit of time".to_owned();
            told.push((name, self.alike, Some(rate)));
        }
        told
    }

    /// How they fared, after a colon; nothing of nobody.
    fn fared(&self) -> String {
        let percent = |share: f64| format!("{:.0}", 100.0 * share);
        let ends = |ends: &Ends, told: &dyn Fn(f64) -> String| match (ends.low, ends.high) {
            (Some(low), Some(high)) => format!(" ({} to {})", told(low), told(high)),
            _ => String::new(),
        };
        // Of two classes the second says all.
        let first = usize::from(self.classes.len() == 2);
        let classes = self.classes.iter().skip(first).filter_map(|one| {
            let share = one.share?;
            let share_told = percent(share.value);
            let ends = ends(&share, &percent);
            Some(format!("{share_told} % {}{ends}", one.class))
        });
        let mut parts: Vec<String> = classes.collect();
        let number = |value: f64| figure(value);
        if let Some(mean) = &self.mean {
            parts.push(format!(
                "mean {}{}",
                figure(mean.value),
                ends(mean, &number)
            ));
        }
        if let Some(rate) = &self.events_a_unit_of_time {
            let told = figure(rate.value);
            parts.push(format!(
                "{told} events per unit of time{}",
                ends(rate, &number)
            ));
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!(": {}", parts.join(", ")),
        }
    }
}

fn within(percent: u32, radius: f64, alike: &model::Alike, kind: &OutcomeKind) -> Within {
    let outlook = alike.outlook(kind);
    let shares = match &outlook {
        Some(Outlook::Classes(shares)) => shares.clone(),
        _ => Vec::new(),
    };
    let class = |(place, class): (usize, String)| Class {
        class,
        patients: alike.classes.get(place).copied().unwrap_or(0),
        share: shares.get(place).copied().map(Ends::from),
    };
    let names = match kind {
        OutcomeKind::Survival { .. } => vec!["without an event".to_owned(), "events".to_owned()],
        kind => kind.classes(),
    };
    Within {
        percent,
        radius,
        alike: alike.patients(),
        classes: names.into_iter().enumerate().map(class).collect(),
        mean: match &outlook {
            Some(Outlook::Mean(mean)) => Some((*mean).into()),
            _ => None,
        },
        events_a_unit_of_time: match &outlook {
            Some(Outlook::Rate(rate)) => Some((*rate).into()),
            _ => None,
        },
    }
}
