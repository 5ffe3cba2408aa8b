//! Survival of groups as people read it: by a few times in words, and as a figure with its table.

use super::CasesError;
use super::shown::{in_unit, percent, short};
use crate::method::survival_curve;
use protocol::cohort::OutcomeSpecification;
use report::{LocalFigure, Part, SurvivalCurve, Table};
use similarity::cohort::Outcome;
use similarity::judge::survival::{KaplanMeier, Median, Survival, round_times};

/// What every such figure shows.
pub(super) const CAPTION: &str = "Share without the event by time (Kaplan-Meier), with bands of 95 % (log-log). Strokes are patients \
    who were censored.";

/// An outcome, and when its survival is given.
#[derive(Clone)]
pub(super) struct Presentation {
    pub(super) specification: OutcomeSpecification,
    /// Rising; empty of another outcome.
    pub(super) times: Vec<f64>,
}

impl Presentation {
    /// By the study's horizons, where it names some; else by round times.
    pub(super) fn new(specification: &OutcomeSpecification, outcome: &Outcome) -> Self {
        let kind = &specification.kind;
        let times = match (outcome, kind.horizons()) {
            (Outcome::Survival { time, .. }, []) => round_times(time, kind.horizon()),
            (Outcome::Survival { .. }, named) => named.to_vec(),
            (Outcome::Classes { .. } | Outcome::Numeric(_), _) => Vec::new(),
        };
        Self {
            specification: specification.clone(),
            times,
        }
    }

    /// What is known of a curve at these times.
    pub(super) fn known(&self, curve: &KaplanMeier) -> impl Iterator<Item = Survival> {
        self.times.iter().filter_map(|time| curve.at(*time))
    }

    /// What people read for an event by a time.
    pub(super) fn event_by(&self, time: f64) -> String {
        let event = self.specification.event_label();
        format!("{event} by {}", in_unit(time, &self.specification))
    }

    /// A curve in a sentence.
    pub(super) fn sentence(&self, curve: &KaplanMeier) -> String {
        let (events, patients) = (curve.events(), curve.patients());
        let event = self.specification.event_label();
        let by_time = self.known(curve).enumerate().map(|(place, at)| {
            let share = with_ends(&at, if place == 0 { "95 %: " } else { "" });
            format!("{share} by {}", in_unit(at.time, &self.specification))
        });
        let by_time: Vec<String> = by_time.collect();
        let by_time = match by_time.is_empty() {
            true => String::new(),
            false => format!("; by Kaplan-Meier {}", by_time.join(", ")),
        };
        let median = self.median(curve.median(), "95 %: ");
        format!("{events} of {patients} {event} while followed{by_time}; median {median}")
    }

    /// A curve in few words: the share with an event by the last time that is known.
    pub(super) fn short(&self, curve: &KaplanMeier) -> String {
        match self.known(curve).last() {
            Some(at) => format!("{} {}", percent(1.0 - at.share), self.event_by(at.time)),
            None => {
                let event = self.specification.event_label();
                format!("{} of {} {event}", curve.events(), curve.patients())
            }
        }
    }

    /// A median and its interval, which is `named`.
    fn median(&self, median: Median, named: &str) -> String {
        let in_unit = |time: f64| in_unit(time, &self.specification);
        let ends = match (median.low, median.high) {
            (Some(low), Some(high)) => format!(" ({named}{} to {})", short(low), short(high)),
            (Some(low), None) => format!(" ({named}from {})", short(low)),
            (None, _) => String::new(),
        };
        let time = median.time.map_or("not reached".to_owned(), in_unit);
        format!("{time}{ends}")
    }

    /// Curves of groups, each of these rows, as a figure and its table; the axis says what is to be `known` of them. Nothing of another
    /// outcome.
    pub(super) fn drawn(
        &self,
        title: &'static str,
        outcome: &Outcome,
        groups: &[(String, Vec<usize>)],
        known: &str,
    ) -> Result<Option<Drawn>, CasesError> {
        let Outcome::Survival { time, event } = outcome else {
            return Ok(None);
        };
        let of = |(name, rows): &(String, Vec<usize>)| {
            let curve = KaplanMeier::of(time, event, rows.iter().copied());
            (name.clone(), curve)
        };
        let curves: Vec<(String, KaplanMeier)> = groups.iter().map(of).collect();
        let drawn: Vec<SurvivalCurve> = curves
            .iter()
            .map(|(name, curve)| survival_curve(name.clone(), curve))
            .collect();
        Ok(Some(Drawn {
            figure: LocalFigure {
                title,
                svg: report::survival(&drawn, &self.specification, known)?,
                caption: CAPTION,
            },
            table: self.table(&curves),
        }))
    }

    fn table(&self, curves: &[(String, KaplanMeier)]) -> Table {
        let event = self.specification.event_label();
        let mut header = vec!["group".to_owned(), "patients".to_owned(), event.to_owned()];
        header.extend(self.times.iter().map(|time| self.event_by(*time)));
        header.push("median".to_owned());
        let row = |(name, curve): &(String, KaplanMeier)| {
            let mut row = vec![
                name.clone(),
                curve.patients().to_string(),
                curve.events().to_string(),
            ];
            row.extend(self.times.iter().map(|time| match curve.at(*time) {
                Some(at) => with_ends(&at, ""),
                None => "nobody is followed so long".to_owned(),
            }));
            row.push(self.median(curve.median(), ""));
            row
        };
        Table {
            title: format!("{} by time", self.specification.label),
            caption: "By Kaplan-Meier, with intervals of 95 % (log-log).".to_owned(),
            header,
            rows: curves.iter().map(row).collect(),
        }
    }
}

/// A figure, and its numbers.
pub(super) struct Drawn {
    pub(super) figure: LocalFigure,
    table: Table,
}

impl Drawn {
    pub(super) fn parts(self) -> [Part; 2] {
        [Part::Figure(self.figure), Part::Table(self.table)]
    }
}

/// The share with an event and its interval, which is `named`.
fn with_ends(at: &Survival, named: &str) -> String {
    let [low, high] = [1.0 - at.high, 1.0 - at.low].map(|end| format!("{:.0}", 100.0 * end));
    format!("{} ({named}{low} to {high})", percent(1.0 - at.share))
}
