//! Scores of the paper's tables, and the paper's own numbers.

use similarity::judge::votes::BinaryCounts;

/// Accuracy, recall, F1 and F2, in the order of the paper's columns.
pub(crate) type Scores = [f64; 4];

/// Names of the columns.
pub(crate) const COLUMNS: [&str; 4] = ["accuracy", "recall", "F1", "F2"];

/// Scores of counts; 0 where nobody is positive or predicted so.
pub(crate) fn scores(counts: &BinaryCounts) -> Scores {
    let all = [counts.accuracy(), counts.recall(), counts.f1(), counts.f2()];
    all.map(|score| score.unwrap_or(0.0))
}

/// Mean and standard deviation (over n - 1) of repeated scores; no deviation of a single one.
pub(crate) struct Repeated {
    pub(crate) mean: Scores,
    pub(crate) deviation: Option<Scores>,
}

impl Repeated {
    /// # Panics
    /// Without scores.
    pub(crate) fn of(all: &[Scores]) -> Self {
        assert!(!all.is_empty(), "scores of at least one repeat");
        let count = all.len() as f64;
        let over = |column: usize, f: &dyn Fn(f64) -> f64| -> f64 {
            all.iter().map(|scores| f(scores[column])).sum()
        };
        let mean = std::array::from_fn(|column| over(column, &|value| value) / count);
        let deviation = std::array::from_fn(|column| {
            let square = |value: f64| (value - mean[column]).powi(2);
            (over(column, &square) / (count - 1.0)).sqrt()
        });
        Self {
            mean,
            deviation: (all.len() > 1).then_some(deviation),
        }
    }

    /// `0.8222`, or `0.8222 (0.0310)` with the deviation.
    pub(crate) fn texts(&self) -> [String; 4] {
        std::array::from_fn(|column| match &self.deviation {
            Some(deviation) => format!("{:.4} ({:.4})", self.mean[column], deviation[column]),
            None => format!("{:.4}", self.mean[column]),
        })
    }

    /// The columns in which this is below `paper`, to its four places.
    pub(crate) fn below(&self, paper: &Scores) -> String {
        let found: Vec<&str> = COLUMNS
            .into_iter()
            .enumerate()
            .filter(|(column, _)| {
                (self.mean[*column] * 1e4).round() < (paper[*column] * 1e4).round()
            })
            .map(|(_, name)| name)
            .collect();
        match found.is_empty() {
            true => String::new(),
            false => format!("below in {}", found.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_have_a_mean_and_a_deviation_and_say_where_they_are_below() {
        let two = Repeated::of(&[[0.5, 1.0, 0.25, 0.0], [0.7, 1.0, 0.25, 0.0]]);
        assert_eq!(two.texts()[0], "0.6000 (0.1414)");
        assert_eq!(two.below(&[0.6, 1.0, 0.3, 0.00001]), "below in F1");
        assert_eq!(Repeated::of(&[[0.5; 4]]).texts()[3], "0.5000");
    }
}
