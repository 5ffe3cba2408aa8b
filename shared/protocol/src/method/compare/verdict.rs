//! What a comparison says: each family beside the Euclidean distance, and in a sentence which similarity suits the cohort.

use super::model::{Compared, Model};
use super::settings::Family;
use crate::cohort::OutcomeKind;
use crate::scores::{self, PooledTable, Scores};
pub use similarity::judge::paired::Difference;
use similarity::judge::paired::holm;
use std::collections::BTreeSet;

/// A difference as rare as this without one, over all families together, is believed.
pub const BELIEVED: f64 = 0.05;

/// One family.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Which.
    pub family: Family,
    /// Patients who were judged; of survival times comparable pairs of them.
    pub judged: u64,
    /// Of classes what the table says.
    pub scores: Option<Scores>,
    /// Of numbers the mean squared error, of survival times the concordance; none where withheld.
    pub figure: Option<f64>,
    /// By how much it is better than the Euclidean distance; empty of that itself, and where withheld.
    pub gains: Vec<Gain>,
}

/// A difference from the Euclidean distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// In what.
    pub of: Figure,
    /// By itself.
    pub difference: Difference,
    /// Its chance among those of all families of its sort (Holm).
    pub p_of_all: f64,
}

/// What a gain is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The area under the curve, within sites; two classes.
    Area,
    /// Brier's score of classes.
    Brier,
    /// The mean squared error.
    SquaredError,
    /// The concordance within sites.
    Concordance,
}

impl Figure {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Area => "AUC",
            Self::Brier => "Brier",
            Self::SquaredError => "squared error",
            Self::Concordance => "concordance",
        }
    }

    /// A gain with its sign: thousandths, or three digits of what has a unit.
    #[must_use]
    pub fn number(self, value: f64) -> String {
        let digits = match self {
            Self::Area | Self::Brier | Self::Concordance => 3,
            Self::SquaredError if value == 0.0 => 0,
            Self::SquaredError => 2 - libm::log10(value.abs()).floor().clamp(-6.0, 2.0) as i32,
        };
        format!("{value:+.*}", digits.max(0) as usize)
    }
}

/// What the gains of a family come to, after the correction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conclusion {
    Better,
    Worse,
    /// Better in one figure and worse in another.
    Both,
    Open,
}

impl Gain {
    /// Above 0 where it is believed to be better, below where worse.
    fn sign(&self) -> f64 {
        match self.p_of_all < BELIEVED {
            true => self.difference.value,
            false => 0.0,
        }
    }
}

impl Row {
    fn concludes(&self) -> Conclusion {
        let has = |is: fn(f64) -> bool| self.gains.iter().any(|gain| is(gain.sign()));
        match (has(|sign| sign > 0.0), has(|sign| sign < 0.0)) {
            (true, false) => Conclusion::Better,
            (false, true) => Conclusion::Worse,
            (true, true) => Conclusion::Both,
            (false, false) => Conclusion::Open,
        }
    }

    /// The figure by which families are ordered.
    fn first(&self) -> f64 {
        self.gains
            .first()
            .map_or(f64::NEG_INFINITY, |gain| gain.difference.value)
    }

    /// Families that are corrected together: one question is whether learning helps.
    fn sort(&self) -> (bool, bool) {
        (self.family.is_model(), self.family.is_learned())
    }

    fn in_words(&self, gain: fn(&Gain) -> String) -> String {
        let gains: Vec<String> = self.gains.iter().map(gain).collect();
        format!("the {}: {}", self.family.title(), gains.join(", "))
    }
}

impl Compared {
    /// Its table over all sites.
    #[must_use]
    pub fn table(&self) -> PooledTable {
        PooledTable {
            counts: self.counts.counts.clone(),
            sites: self.sites,
        }
    }

    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    fn row(&self, kind: &OutcomeKind) -> Row {
        let errors = self.counts.errors.filter(|errors| errors.total > 0);
        let mean = errors.map(|errors| errors.error / errors.total as f64);
        Row {
            family: self.counts.family,
            judged: self.counts.judged(),
            scores: self.table().scores(),
            figure: match kind {
                OutcomeKind::Survival { .. } => mean.map(|mean| 1.0 - mean),
                OutcomeKind::Numeric => mean,
                OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => None,
            },
            gains: self.gains(kind),
        }
    }

    fn gains(&self, kind: &OutcomeKind) -> Vec<Gain> {
        let gains = self.counts.counts.gains;
        let errors = match kind {
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => Figure::Brier,
            OutcomeKind::Numeric => Figure::SquaredError,
            OutcomeKind::Survival { .. } => Figure::Concordance,
        };
        let gains = [(Figure::Area, gains.areas), (errors, gains.errors)];
        let gains = gains.into_iter().filter_map(|(of, sums)| {
            let difference = scores::gain(sums)?;
            Some(Gain {
                of,
                difference,
                p_of_all: difference.p,
            })
        });
        gains.collect()
    }
}

impl Model {
    /// A row a family.
    #[must_use]
    pub fn rows(&self, kind: &OutcomeKind) -> Vec<Row> {
        let mut rows: Vec<Row> = self.families.iter().map(|one| one.row(kind)).collect();
        let sorts: BTreeSet<(bool, bool)> = rows.iter().map(Row::sort).collect();
        for sort in sorts {
            let of_sort = rows.iter_mut().filter(|row| row.sort() == sort);
            let mut tested: Vec<&mut Gain> = of_sort.flat_map(|row| &mut row.gains).collect();
            let chances: Vec<f64> = tested.iter().map(|one| one.difference.p).collect();
            for (one, p) in tested.iter_mut().zip(holm(&chances)) {
                one.p_of_all = p;
            }
        }
        rows
    }

    /// Which similarity suits the cohort, and whether learning one was worth it; none before any site has answered.
    #[must_use]
    pub fn sentences(&self, kind: &OutcomeKind) -> Vec<String> {
        let rows = self.rows(kind);
        if rows.iter().all(|row| row.judged == 0) {
            return Vec::new();
        }
        let similarities = rows.iter().filter(|row| !row.family.is_model());
        let similarities: Vec<&Row> = similarities.filter(|row| !row.gains.is_empty()).collect();
        let mut sentences = vec![suits(&similarities)];
        let worse = named(&rows, |row| row.concludes() == Conclusion::Worse, in_words);
        sentences.extend(
            worse.map(|all| format!("Worse than the Euclidean distance beyond chance: {all}.")),
        );
        let both = named(&rows, |row| row.concludes() == Conclusion::Both, in_words);
        sentences.extend(both.map(|all| {
            format!(
                "Better than the Euclidean distance in one figure and worse in the other: {all}."
            )
        }));
        sentences.extend(untested(&rows));
        let models = named(
            &rows,
            |row| row.family.is_model() && !row.gains.is_empty(),
            tested_in_words,
        );
        sentences.extend(models.map(|all| {
            format!("Models without neighbours, compared with the Euclidean distance: {all}.")
        }));
        let out = self.left_out.iter();
        sentences.extend(
            out.map(|(family, why)| {
                format!("Not compared: the {}, because {why}.", family.title())
            }),
        );
        sentences
    }
}

/// The gains of the families that `are` so; none where none is.
fn named(rows: &[Row], are: fn(&Row) -> bool, gain: fn(&Gain) -> String) -> Option<String> {
    let named: Vec<String> = rows
        .iter()
        .filter(|row| are(row))
        .map(|row| row.in_words(gain))
        .collect();
    (!named.is_empty()).then(|| named.join("; "))
}

fn suits(similarities: &[&Row]) -> String {
    let by_value = |one: &&&Row, other: &&&Row| one.first().total_cmp(&other.first());
    let is_better = |row: &&&Row| row.concludes() == Conclusion::Better;
    let Some(best) = similarities.iter().filter(is_better).max_by(by_value) else {
        return match similarities.iter().max_by(by_value) {
            None => "No difference from the Euclidean distance can be tested: too few patients are judged.".to_owned(),
            Some(nearest) => format!(
                "No similarity predicts these patients better than the Euclidean distance beyond chance, so \
                 whether learning one helps is uncertain with these patients. The best of those tested is {}.",
                nearest.in_words(tested_in_words)
            ),
        };
    };
    let others = similarities.iter().filter(is_better);
    let others: Vec<&&Row> = others.filter(|row| row.family != best.family).collect();
    let plain = others.iter().filter(|row| !row.family.is_learned());
    let plain: Vec<&str> = plain.map(|row| row.family.title()).collect();
    let worth = match (best.family.is_learned(), plain.as_slice()) {
        (true, []) => "Learning one was worth it.".to_owned(),
        (true, plain) => format!(
            "Whether learning one was worth it is open: the {}, which learns nothing, is also better than the Euclidean distance, \
             and the two are not compared with each other.",
            plain.join(" and the ")
        ),
        (false, _) => "This one learns nothing.".to_owned(),
    };
    let also = others.iter().map(|row| row.in_words(in_words));
    let also: Vec<String> = also.collect();
    let also = match also.as_slice() {
        [] => String::new(),
        also => format!(
            " Also better than the Euclidean distance: {}.",
            also.join("; ")
        ),
    };
    format!(
        "The similarity that suits this cohort is {}. {worth}{also}",
        best.in_words(tested_in_words)
    )
}

/// Families without a test, where others were tested.
fn untested(rows: &[Row]) -> Option<String> {
    let others = rows.iter().filter(|row| row.family != Family::Euclidean);
    let (tested, open): (Vec<&Row>, Vec<&Row>) = others.partition(|row| !row.gains.is_empty());
    let names: Vec<&str> = open.iter().map(|row| row.family.title()).collect();
    (!tested.is_empty() && !names.is_empty()).then(|| {
        format!(
            "Not tested, because too few patients are judged: the {}.",
            names.join(", the ")
        )
    })
}

fn tested_in_words(gain: &Gain) -> String {
    let Difference { low, high, .. } = gain.difference;
    let [low, high] = [low, high].map(|end| gain.of.number(end));
    let (by, p) = (in_words(gain), chance(gain.p_of_all));
    format!("{by} (95 % CI {low} to {high}, corrected {p})")
}

/// By how much it is better; below 0, worse.
fn in_words(gain: &Gain) -> String {
    let value = gain.of.number(gain.difference.value);
    format!("{} gain {value}", gain.of.name())
}

/// A chance as it is published.
#[must_use]
pub fn chance(p: f64) -> String {
    match p {
        p if p < 0.001 => "p below 0.001".to_owned(),
        p => format!("p {p:.3}"),
    }
}

#[cfg(test)]
mod tests;
