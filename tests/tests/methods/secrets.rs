//! Texts and numbers of patients that must not leave, and how many numbers an answer may carry.

use crate::play::Played;
use crate::samples::{NUMBERS, SITES, Sample, WORDS};
use kindred_tests::federation::RUN;
use kindred_tests::results::npy;
use privacy::sums::{Number, Summand, Words};
use protocol::message::{Answer, forest};
use protocol::method::Method;
use std::collections::HashMap;

/// How many real numbers an answer carries that somebody can read: none has a place for a row.
pub(crate) fn numbers(answer: &Answer) -> usize {
    if let Answer::Forest(forest::Answer::Grown(trees)) = answer {
        return trees.nodes();
    }
    let mut found = 0;
    answer.clone().numbers(&mut |number| match number {
        Number::Count(_) => {}
        Number::Real(_) | Number::Measure(_) => found += 1,
    });
    found
}

/// A number as it adds up over sites.
struct Term(f64);

impl Summand for Term {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        visit(Number::Real(&mut self.0));
    }
}

/// Values, by their length, with where they lie.
#[derive(Default)]
pub(crate) struct Secrets(HashMap<usize, HashMap<Vec<u8>, String>>);

impl Secrets {
    pub(crate) fn add(&mut self, bytes: Vec<u8>, place: &str) {
        let known = self.0.entry(bytes.len()).or_default();
        known.entry(bytes).or_insert_with(|| place.to_owned());
    }

    /// A number in the forms in which a program may write it.
    pub(crate) fn add_number(&mut self, value: f64, place: &str) {
        self.add(value.to_le_bytes().to_vec(), place);
        self.add(value.to_be_bytes().to_vec(), place);
        // As the word of a sum that nobody has masked.
        if let Ok(words) = Words::of(&mut Term(value)) {
            for word in words.as_slice().iter().filter(|word| **word != 0) {
                self.add(word.to_le_bytes().to_vec(), place);
            }
        }
        let text = value.to_string();
        if text.len() >= 5 {
            self.add(text.into_bytes(), place);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().map(HashMap::len).sum()
    }

    /// The places of those that `bytes` contain.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Vec<&str> {
        let mut found = Vec::new();
        for (length, known) in &self.0 {
            let windows = bytes.windows(*length);
            found.extend(windows.filter_map(|window| known.get(window).map(String::as_str)));
        }
        found
    }

    /// Every cell of the sites' tables but the words of the job itself, and every standardised value that a solver saw.
    pub(crate) fn of(sample: &Sample, played: &Played) -> Self {
        // Cut points have three digits; a value of no more may be one by chance.
        let cuts = match &sample.job.method {
            Method::Forest(_) => true,
            Method::Compare(settings) => settings.grows_in_common(),
            _ => false,
        };
        let is_cut = |value: f64| cuts && format!("{value:.2e}").parse() == Ok(value);
        let mut secrets = Self::default();
        for site in SITES {
            let path = played.home.join("data").join(format!("{site}.csv"));
            let mut table = csv::Reader::from_path(path).unwrap();
            for (row, record) in table.records().enumerate() {
                for (column, cell) in record.unwrap().iter().enumerate() {
                    let place = format!("{site}, row {row}, column {column}");
                    if WORDS.contains(&cell) {
                        continue;
                    }
                    secrets.add(cell.as_bytes().to_vec(), &place);
                    if let Some(value) = cell.parse().ok().filter(|value| !is_cut(*value)) {
                        secrets.add_number(value, &place);
                    }
                }
            }
            secrets.add_standardised(site, played);
        }
        secrets
    }

    /// The numbers of the matrix that a site keeps of a run; of a method without one, none.
    fn add_standardised(&mut self, site: &str, played: &Played) {
        let path = played
            .folder(site)
            .join("runs")
            .join(RUN)
            .join("matrix.npy");
        if !path.exists() {
            return;
        }
        // The rows of a category hold two values each, which follow from the pooled shares.
        for ((row, column), value) in npy(&path).indexed_iter() {
            if column < NUMBERS && *value != 0.0 {
                let place = format!("{site}, standardised row {row}, column {column}");
                self.add(value.to_le_bytes().to_vec(), &place);
            }
        }
    }
}
