//! What a comparison says: each family beside the Euclidean distance, and in a sentence which similarity suits the cohort.

use super::model::{Compared, Model};
use super::settings::Family;
use crate::cohort::OutcomeKind;
use crate::scores::{PooledTable, Scores};
pub use similarity::judge::paired::Difference;
use similarity::judge::paired::{PairedSums, holm, mcnemar};

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
    /// Of classes Brier's score, of numbers the mean squared error, of survival times the concordance; none where withheld.
    pub figure: Option<f64>,
    /// Of classes the patients classified correctly by the Euclidean distance alone, by this alone, and all; none where withheld.
    pub discordant: Option<[u64; 3]>,
    /// By how much it is better than the Euclidean distance; none of that itself, and where withheld.
    pub difference: Option<Tested>,
}

/// A difference from the Euclidean distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// By itself.
    pub difference: Difference,
    /// Its chance among those of all families (Holm).
    pub p_of_all: f64,
}

impl Tested {
    fn is_believed(&self) -> bool {
        self.p_of_all < BELIEVED
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
        let mean = self
            .counts
            .errors
            .filter(|errors| errors.total > 0)
            .map(|errors| errors.error / errors.total as f64);
        Row {
            family: self.counts.family,
            judged: self.counts.judged(),
            scores: self.table().scores(),
            figure: match kind {
                OutcomeKind::Survival { .. } => mean.map(|mean| 1.0 - mean),
                OutcomeKind::Binary { .. }
                | OutcomeKind::Categorical { .. }
                | OutcomeKind::Numeric => mean,
            },
            discordant: self.counts.discordant,
            difference: self.difference().map(|difference| Tested {
                difference,
                p_of_all: difference.p,
            }),
        }
    }

    fn difference(&self) -> Option<Difference> {
        match (self.counts.discordant, self.counts.differences) {
            (Some(counts), _) => mcnemar(counts),
            (None, Some(sums)) => PairedSums::from(sums).tested(),
            (None, None) => None,
        }
    }
}

impl Model {
    /// A row a family.
    #[must_use]
    pub fn rows(&self, kind: &OutcomeKind) -> Vec<Row> {
        let mut rows: Vec<Row> = self.families.iter().map(|one| one.row(kind)).collect();
        let tested = rows.iter_mut().filter_map(|row| row.difference.as_mut());
        let mut tested: Vec<&mut Tested> = tested.collect();
        let chances: Vec<f64> = tested.iter().map(|one| one.difference.p).collect();
        for (one, p) in tested.iter_mut().zip(holm(&chances)) {
            one.p_of_all = p;
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
        let similarities: Vec<(Family, Tested)> = rows
            .iter()
            .filter(|row| !row.family.is_model())
            .filter_map(|row| Some((row.family, row.difference?)))
            .collect();
        let mut sentences = vec![suits(&similarities, kind)];
        let is_worse = |row: &Row| {
            row.difference
                .filter(|one| one.is_believed() && one.difference.value < 0.0)
        };
        let worse: Vec<String> = rows
            .iter()
            .filter_map(|row| {
                let by = in_words(&is_worse(row)?.difference, kind);
                Some(format!("the {} ({by})", row.family.title()))
            })
            .collect();
        if !worse.is_empty() {
            sentences.push(format!(
                "Worse than the Euclidean distance beyond chance: {}.",
                worse.join(", ")
            ));
        }
        sentences.extend(untested(&rows));
        sentences.extend(models(&rows, kind));
        let out = self.left_out.iter();
        sentences.extend(
            out.map(|(family, why)| {
                format!("Not compared: the {}, because {why}.", family.title())
            }),
        );
        sentences
    }
}

fn suits(similarities: &[(Family, Tested)], kind: &OutcomeKind) -> String {
    let by_value = |one: &&(Family, Tested), other: &&(Family, Tested)| {
        one.1.difference.value.total_cmp(&other.1.difference.value)
    };
    let better = |one: &&(Family, Tested)| one.1.is_believed() && one.1.difference.value > 0.0;
    let says = |(family, tested): &(Family, Tested)| {
        format!("the {}, {}", family.title(), tested_in_words(tested, kind))
    };
    let Some(best) = similarities.iter().filter(better).max_by(by_value) else {
        return match similarities.iter().max_by(by_value) {
            None => "No difference from the Euclidean distance can be tested: fewer than 10 patients are predicted differently."
                .to_owned(),
            Some(nearest) => format!(
                "No similarity predicts these patients better than the Euclidean distance beyond chance, so \
                 whether learning one helps is uncertain with these patients. The best of those tested is {}.",
                says(nearest)
            ),
        };
    };
    let rest = similarities.iter().filter(better);
    let others: Vec<&(Family, Tested)> = rest.filter(|one| one.0 != best.0).collect();
    let plain: Vec<&str> = others
        .iter()
        .filter(|one| !one.0.is_learned())
        .map(|one| one.0.title())
        .collect();
    let worth = match (best.0.is_learned(), plain.as_slice()) {
        (true, []) => "Learning one was worth it.".to_owned(),
        (true, plain) => format!(
            "Whether learning one was worth it is open: the {}, which learns nothing, is also better than the Euclidean distance, \
             and the two are not compared with each other.",
            plain.join(" and the ")
        ),
        (false, _) => "This one learns nothing.".to_owned(),
    };
    let beside = match others.as_slice() {
        [] => String::new(),
        others => {
            let names: Vec<String> = others
                .iter()
                .map(|one| {
                    format!(
                        "the {} ({})",
                        one.0.title(),
                        in_words(&one.1.difference, kind)
                    )
                })
                .collect();
            format!(
                " Also better than the Euclidean distance: {}.",
                names.join(", ")
            )
        }
    };
    format!(
        "The similarity that suits this cohort is {}. {worth}{beside}",
        says(best)
    )
}

/// Families without a test, where others were tested.
fn untested(rows: &[Row]) -> Option<String> {
    let is_tested = |row: &&Row| row.difference.is_some();
    let others = rows.iter().filter(|row| row.family != Family::Euclidean);
    let (tested, open): (Vec<&Row>, Vec<&Row>) = others.partition(is_tested);
    let names: Vec<&str> = open.iter().map(|row| row.family.title()).collect();
    (!tested.is_empty() && !names.is_empty()).then(|| {
        format!(
            "Not tested, because fewer than 10 patients are classified correctly by one of the two alone: the {}.",
            names.join(", the ")
        )
    })
}

/// What the models themselves come to, beside neighbours.
fn models(rows: &[Row], kind: &OutcomeKind) -> Option<String> {
    let model = |row: &Row| {
        let tested = row.difference.filter(|_| row.family.is_model())?;
        let words = tested_in_words(&tested, kind);
        Some(format!("the {}, {words}", row.family.title()))
    };
    let told: Vec<String> = rows.iter().filter_map(model).collect();
    (!told.is_empty()).then(|| {
        format!(
            "Models without neighbours, compared with the Euclidean distance: {}.",
            told.join("; ")
        )
    })
}

fn tested_in_words(tested: &Tested, kind: &OutcomeKind) -> String {
    let Difference { low, high, .. } = tested.difference;
    let (by, p) = (in_words(&tested.difference, kind), chance(tested.p_of_all));
    let [low, high] = [low, high].map(|end| number(end, kind));
    format!("{by} (95 % {low} to {high}; {p}, corrected for the number of families)")
}

/// By how much it is better, or worse.
fn in_words(difference: &Difference, kind: &OutcomeKind) -> String {
    let by = number(difference.value.abs(), kind);
    let by = by.trim_start_matches('+');
    match (kind, difference.value < 0.0) {
        (OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. }, is_worse) => {
            let more = if is_worse { "less" } else { "more" };
            format!("{by} percentage points {more} accurate")
        }
        (OutcomeKind::Numeric, false) => format!("a mean squared error lower by {by}"),
        (OutcomeKind::Numeric, true) => format!("a mean squared error higher by {by}"),
        (OutcomeKind::Survival { .. }, false) => format!("a concordance higher by {by}"),
        (OutcomeKind::Survival { .. }, true) => format!("a concordance lower by {by}"),
    }
}

/// With its sign: percentage points to a tenth, else three digits.
fn number(value: f64, kind: &OutcomeKind) -> String {
    if let OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } = kind {
        return format!("{:+.1}", 100.0 * value);
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 2 - value.abs().log10().floor().clamp(-6.0, 2.0) as i32;
    format!("{value:+.*}", digits.clamp(0, 8) as usize)
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
