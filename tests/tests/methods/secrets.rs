//! Texts and numbers of patients that must not leave, and how many numbers an answer may carry.

use crate::play::Played;
use crate::samples::{NUMBERS, SITES, Sample, WORDS};
use kindred_tests::federation::RUN;
use kindred_tests::results::npy;
use protocol::message::{Answer, card, cluster, compare, forest, neighbours, regression, unpsl};
use protocol::method::Method;
use std::collections::HashMap;

/// Every answer there is, and how many real numbers it carries: none has a place for a row. A new one does not compile
/// until it is judged here.
pub(crate) fn numbers(answer: &Answer) -> usize {
    match answer {
        // Words that nobody can read by themselves.
        Answer::Covered(_) => 0,
        Answer::Introduced(_)
        | Answer::Encapsulated(_)
        | Answer::Digest(_)
        | Answer::Described(_)
        | Answer::Unfit(_)
        | Answer::Refused(_)
        | Answer::Failed(_)
        | Answer::Prepared(None)
        | Answer::Correlated
        | Answer::Unpsl(unpsl::Answer::Validated(_)) => 0,
        Answer::Moments(moments) => 2 * moments.columns.len(),
        Answer::Quantiles(_) => 0,
        Answer::Prepared(Some(own)) => own.products.len() + own.sums.len(),
        Answer::Unpsl(unpsl::Answer::Contribution(own)) => own.matrix.len() + 1,
        Answer::Unpsl(unpsl::Answer::Derivatives(told)) => {
            let slope =
                |own: &unpsl::Derivatives| own.slope.as_ref().map_or(0, |slope| slope.len());
            told.iter()
                .map(|own| own.triangles.len() + slope(own) + 3)
                .sum()
        }
        Answer::Forest(forest::Answer::Grown(trees)) => trees.nodes(),
        Answer::Regression(
            regression::Answer::Likelihood(own) | regression::Answer::Proportionality(own),
        ) => 1 + own.gradient.len() + own.information.len(),
        Answer::Neighbours(neighbours::Answer::Distances(_)) => 0,
        Answer::Neighbours(neighbours::Answer::Found(own)) => {
            let all = own.alike.iter().chain([&own.everybody]);
            all.map(reals).sum::<usize>() + 2 * own.features.len()
        }
        Answer::Cluster(cluster::Answer::Spread(own)) => own.sums.len() + own.products.len(),
        Answer::Cluster(cluster::Answer::Sums(own)) => own.sums.len(),
        Answer::Cluster(cluster::Answer::Agreement(own)) => own.fared.iter().map(reals).sum(),
        Answer::Cluster(cluster::Answer::Marks(own)) => {
            own.iter().map(|one| 2 * one.features.len()).sum()
        }
        Answer::Compare(compare::Answer::Judged(own)) => {
            let differences =
                |one: &compare::FamilyCounts| one.differences.map_or(0, |all| all.len());
            own.iter().map(|one| 1 + differences(one)).sum()
        }
        Answer::Card(card::Answer::Parts(_) | card::Answer::Lots(_) | card::Answer::Counts(_)) => 0,
        Answer::Card(card::Answer::Sums(own)) => {
            2 * own.features.len() + own.outcomes.iter().map(Vec::len).sum::<usize>()
        }
        Answer::Assessed(own) => {
            usize::from(own.objective.is_some()) + own.errors.len() + 2 * own.importance.len()
        }
    }
}

/// Numbers that are no counts, of how some fared.
fn reals(fared: &neighbours::Alike) -> usize {
    2 + 2 * (fared.classes.len() + fared.sums.len())
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
            Method::Unpsl(_)
            | Method::Regression(_)
            | Method::Neighbours(_)
            | Method::Cluster(_)
            | Method::Card(_) => false,
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
