//! What is predicted of one patient, and what became of those who were held out with such a prediction.

use super::super::CasesError;
use super::super::setting::Asked;
use super::super::shown::percent;
use super::chances::ByTime;
use super::model::OneNew;
use super::page::how_well;
use super::{Answer, Learned};
use report::{Part, Shares, Table};
use similarity::cohort::Outcome;
use similarity::uses::cases::{Interval, wilson};
use similarity::uses::prediction::Forecast;

/// Held-out patients with the nearest predictions, whose share with the outcome is given.
const NEAREST: usize = 50;
/// Of fewer nothing is said.
const NEAREST_MIN: usize = 20;

/// A prediction as a page shows it.
pub(in crate::cases) struct Prediction {
    /// What is predicted, in a sentence.
    pub(in crate::cases) predicted: String,
    /// How sure that is.
    pub(in crate::cases) sure: Vec<String>,
    /// The chances.
    pub(in crate::cases) chances: Option<Part>,
    /// How well such predictions go.
    pub(in crate::cases) calibration: Vec<Part>,
    /// What is to be known before it is believed.
    pub(in crate::cases) remarks: Vec<String>,
}

impl Learned {
    /// Predicts a patient.
    pub(in crate::cases) fn of_patient(
        &self,
        asked: &Asked,
        k: usize,
    ) -> Result<Prediction, CasesError> {
        let answer = self.answer(Some(asked), k)?;
        let one = answer.new.first();
        let predicted = one.map(|one| self.in_words(one)).unwrap_or_default();
        let mut sure: Vec<String> = one
            .and_then(|one| self.those_like(one))
            .into_iter()
            .collect();
        sure.push(answer.sentence.clone());
        Ok(Prediction {
            predicted,
            chances: one.and_then(|one| self.chances(one)).map(Part::Shares),
            sure,
            calibration: self.drawn(&answer)?.to_vec(),
            remarks: answer.remarks,
        })
    }

    /// How well predictions go, which is the same for every patient.
    fn drawn(&self, answer: &Answer) -> Result<&[Part], CasesError> {
        if let Some(drawn) = self.drawn.get() {
            return Ok(drawn);
        }
        let table = self.calibration().map(Part::Table);
        let drawn = how_well(&self.held, answer, &self.model)?;
        let drawn = drawn.into_iter().flat_map(|(_, parts)| parts);
        Ok(self
            .drawn
            .get_or_init(|| table.into_iter().chain(drawn).collect()))
    }

    /// What is predicted; of two classes the chance of the second, as everywhere on the page.
    fn in_words(&self, one: &OneNew) -> String {
        match one.chances.as_slice() {
            [_, second] => format!(
                "{}: chance of {:?} {}",
                self.model.job.cohort.outcome.label,
                second.class,
                percent(second.chance)
            ),
            _ => one.predicted.clone(),
        }
    }

    /// A bar for each chance; of a number none, for the sentence has it.
    fn chances(&self, one: &OneNew) -> Option<Shares> {
        let bars: Vec<(String, f64, String)> = match &self.model.presentation() {
            Some(presentation) => {
                let bar = |by: &ByTime| {
                    let (value, low, high) = by.chance.parts();
                    (
                        presentation.event_by(by.time),
                        value,
                        with_ends(Interval { value, low, high }),
                    )
                };
                one.by_time.iter().map(bar).collect()
            }
            None => {
                let bar =
                    |of: &super::model::Chance| (of.class.clone(), of.chance, percent(of.chance));
                // Of two the second says all.
                let skipped = usize::from(one.chances.len() == 2);
                one.chances.iter().skip(skipped).map(bar).collect()
            }
        };
        (!bars.is_empty()).then(|| Shares {
            title: "Predicted chances",
            bars,
            caption: format!(
                "By the similar patients of this hospital, each weighed by how similar it is: {}.",
                self.model.kernel_name()
            ),
        })
    }

    /// What happened to the held-out patients whose predictions were nearest to this one.
    fn those_like(&self, one: &OneNew) -> Option<String> {
        let (Forecast::Classes(chances), Outcome::Classes { codes, levels }) =
            (&self.held.forecast, &self.held.outcome)
        else {
            return None;
        };
        let class = match one.chances.len() {
            2 => 1,
            _ => largest(one)?,
        };
        let own = one.chances.get(class)?.chance;
        let column = chances.column(class);
        let mut rows: Vec<usize> = (0..column.len())
            .filter(|row| !column[*row].is_nan())
            .collect();
        if rows.len() < NEAREST_MIN {
            return None;
        }
        let away = |row: usize| (column[row] - own).abs();
        if rows.len() > NEAREST {
            rows.select_nth_unstable_by(NEAREST, |a, b| {
                away(*a).total_cmp(&away(*b)).then(a.cmp(b))
            });
            rows.truncate(NEAREST);
        }
        let of_rows = || rows.iter().map(|row| column[*row]);
        let (low, high) = (of_rows().fold(1.0, f64::min), of_rows().fold(0.0, f64::max));
        let seen = rows
            .iter()
            .filter(|row| codes[**row] as usize == class)
            .count();
        let share = wilson(seen, rows.len());
        Some(format!(
            "Of the {} {} with the most similar chance ({:.0} to {:.0} %), {} were {}.",
            rows.len(),
            patients(self.judged.seen),
            100.0 * low,
            100.0 * high,
            with_ends(share),
            levels[class]
        ))
    }

    /// Of two classes the thirds of the held-out by their chance: what was predicted and what happened. Survival has its own table.
    fn calibration(&self) -> Option<Table> {
        let (Forecast::Classes(chances), Outcome::Classes { codes, levels }) =
            (&self.held.forecast, &self.held.outcome)
        else {
            return None;
        };
        if levels.len() != 2 {
            return None;
        }
        let column = chances.column(1);
        let mut rows: Vec<usize> = (0..column.len())
            .filter(|row| !column[*row].is_nan())
            .collect();
        rows.sort_by(|a, b| column[*a].total_cmp(&column[*b]));
        let third = rows.len().div_ceil(THIRDS.len()).max(1);
        let row = |(name, rows): (&&str, &[usize])| {
            let mean = rows.iter().map(|row| column[*row]).sum::<f64>() / rows.len() as f64;
            let seen = rows.iter().filter(|row| codes[**row] == 1).count();
            vec![
                (*name).to_owned(),
                rows.len().to_string(),
                percent(mean),
                with_ends(wilson(seen, rows.len())),
            ]
        };
        Some(Table {
            title: "Predicted and observed".to_owned(),
            caption: format!(
                "The {} in thirds of their chance to be {}: the mean chance, and the share observed (95 %).",
                patients(self.judged.seen),
                levels[1]
            ),
            header: ["third by chance", "patients", "predicted", "observed"]
                .map(str::to_owned)
                .to_vec(),
            rows: THIRDS.iter().zip(rows.chunks(third)).map(row).collect(),
        })
    }
}

/// Those whose predictions are compared with what happened.
fn patients(seen: bool) -> &'static str {
    match seen {
        true => "patients in sample",
        false => "held-out patients",
    }
}

const THIRDS: [&str; 3] = ["lowest", "middle", "highest"];

fn largest(one: &OneNew) -> Option<usize> {
    let chances = one.chances.iter().enumerate();
    let most = chances.max_by(|(_, a), (_, b)| a.chance.total_cmp(&b.chance));
    most.map(|(class, _)| class)
}

fn with_ends(share: Interval) -> String {
    let Interval { value, low, high } = share;
    format!(
        "{} ({:.0} to {:.0})",
        percent(value),
        100.0 * low,
        100.0 * high
    )
}
