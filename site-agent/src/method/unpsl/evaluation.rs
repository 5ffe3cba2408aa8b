//! How a metric judges the patients that it was learned from, each by the others of its site; and how those of the folds of a
//! validation judge patients that they have not seen.

use super::results::LocalResults;
use crate::method::scores::{Score, binned, brier, by_share, by_votes, gains_of_classes};
use ndarray::{Array1, Array2, Axis, s};
use protocol::assessment::{
    DISTANCE_RULE, EUCLIDEAN_RULE, EvaluationCounts, Gains, INNER_PRODUCT_RULE, PAIRS_RULE,
    SHARE_BINS, score_bins,
};
use protocol::message::unpsl::Finishing;
use similarity::cohort::Outcome;
use similarity::judge::votes::{count_pairs, vote};
use similarity::learn::unpsl::Labels;
use similarity::learn::unpsl::selection::Folds;
use similarity::numeric::linear_algebra::product;
use similarity::uses::neighbours::{
    Candidates, EvaluateError, Neighbour, NeighbourRule, neighbours_apart,
};

/// Leave-one-out k-NN within the site: patients of class i that were predicted as class j, by both rules of the learned
/// metric and, beside them, by the Euclidean distance of the same standardised patients. With them the site's pairs: dissimilar
/// and similar ones by whether s >= b says that they are alike. A metric that is 0 judges nobody: all are equally near.
/// Of the patients who are `judged`; `plain` has their nearest by that distance, where a validation has found them. Empty where the outcome has no classes or there are too few patients.
#[must_use]
pub fn evaluate(
    results: &LocalResults<'_>,
    classes: usize,
    judged: &[bool],
    plain: Option<&Plain>,
) -> Vec<EvaluationCounts> {
    let Outcome::Classes { codes, .. } = results.outcome else {
        return Vec::new();
    };
    let judging = Judging {
        codes,
        classes,
        neighbours: results.neighbours,
        judged,
    };
    let mut counts = Vec::new();
    if !results.is_empty() {
        let rules = [
            (DISTANCE_RULE, NeighbourRule::Distance),
            (INNER_PRODUCT_RULE, NeighbourRule::InnerProduct),
        ];
        for (name, rule) in rules {
            counts.extend(match rule == results.rule {
                true => judging.by(name, results.nearest()),
                false => judging.nearest(name, rule, results.placed()),
            });
        }
    }
    counts.extend(match plain {
        Some(plain) => judging.by(EUCLIDEAN_RULE, &plain.of_all),
        None => {
            let patients = Candidates::new(results.matrix.view());
            judging.nearest(EUCLIDEAN_RULE, NeighbourRule::Distance, &patients)
        }
    });
    if !results.is_empty() {
        counts.extend(pairs(results, &judging));
    }
    counts
}

/// Neighbours that held-out patients have; 0 where they were chosen for each fold.
#[must_use]
pub fn neighbours_of(finishing: &Finishing) -> u32 {
    match finishing.chosen.is_empty() {
        true => finishing.neighbours,
        false => 0,
    }
}

/// k-NN of the patients of each fold among those of the others of the site, by the metric that was learnt without the fold,
/// with as many neighbours as the fold has; by both rules of the metric and by the Euclidean distance. Every patient who is `judged` is so once. Empty where there is
/// no fold.
///
/// # Errors
/// [`EvaluateError`].
pub fn validate(
    results: &LocalResults<'_>,
    finishing: &Finishing,
    classes: usize,
    (judged, plain): (&[bool], &Plain),
    is_alone: bool,
) -> Result<Vec<EvaluationCounts>, EvaluateError> {
    let (Outcome::Classes { codes, .. }, Some(folds)) = (results.outcome, results.folds) else {
        return Ok(Vec::new());
    };
    let judging = Judging {
        codes,
        classes,
        neighbours: neighbours_of(finishing),
        judged,
    };
    let (features, models) = (results.matrix.ncols(), &finishing.folds);
    let projected = |fold: usize| {
        let model = models[fold].slice(s![..features, ..]);
        product(&results.matrix.view(), &model)
    };
    let count = |fold: usize| finishing.of_fold(fold).neighbours as usize;
    let rules = [NeighbourRule::Distance, NeighbourRule::InnerProduct];
    let [distance, inner_product] =
        held_out_neighbours((folds, judged), rules, &count, &projected)?;
    let rules = [
        (DISTANCE_RULE, &distance),
        (INNER_PRODUCT_RULE, &inner_product),
        (EUCLIDEAN_RULE, &plain.of_others),
    ];
    let shares: Vec<Vec<Vec<f64>>> = rules.iter().map(|(_, near)| judging.shares(near)).collect();
    let counts = rules
        .iter()
        .zip(&shares)
        .filter_map(|((name, found), own)| {
            let gains = match (*name, shares.last()) {
                (EUCLIDEAN_RULE, _) | (_, None) => Gains::default(),
                (_, Some(euclidean)) => {
                    gains_of_classes(euclidean, own, (codes, classes), is_alone)
                }
            };
            Some(EvaluationCounts {
                loss: Some(brier(own, codes)),
                gains,
                ..judging.by(name, found)?
            })
        });
    Ok(counts.collect())
}

/// The nearest of each patient who is judged by the Euclidean distance of the standardised patients; nobody of the others.
#[derive(Debug, Clone)]
pub struct Plain {
    of_all: Vec<Vec<Neighbour>>,
    of_others: Vec<Vec<Neighbour>>,
}

/// Of the patients who are `judged`, among all and among those of the other folds, by one walk.
///
/// # Errors
/// [`EvaluateError`].
pub fn plain(
    results: &LocalResults<'_>,
    finishing: &Finishing,
    judged: &[bool],
) -> Result<Plain, EvaluateError> {
    let rows: Vec<usize> = (0..judged.len()).filter(|row| judged[*row]).collect();
    let parts = results.folds.map_or(&[][..], Folds::of_each);
    let of_others = |fold: usize| finishing.of_fold(fold).neighbours as usize;
    let counts = (results.neighbours as usize, &of_others as _);
    let patients = results.matrix.view();
    let found = neighbours_apart(&patients, &rows, parts, NeighbourRule::Distance, counts)?;
    let of_each = |near: Vec<Vec<Neighbour>>| {
        let mut each = vec![Vec::new(); judged.len()];
        rows.iter()
            .zip(near)
            .for_each(|(row, near)| each[*row] = near);
        each
    };
    Ok(Plain {
        of_all: of_each(found.of_all),
        of_others: of_each(found.of_others),
    })
}

/// Judged pairs by bins of what the metric of their fold says of them, each with whether it is similar: of pairs whose two patients
/// are held out together.
#[must_use]
pub fn held_out_pairs(shares: &[(bool, f64)]) -> EvaluationCounts {
    let kinds = shares.iter().map(|(is_similar, _)| u32::from(*is_similar));
    let shares = shares.iter().map(|(_, share)| Score::Share(*share));
    let scores = binned(&kinds.collect(), SHARE_BINS, shares);
    let halves = |row: &Vec<u64>| {
        let (below, above) = row.split_at(row.len() / 2);
        vec![below.iter().sum(), above.iter().sum()]
    };
    let confusion = scores.iter().map(halves).collect();
    EvaluationCounts::new(PAIRS_RULE, 0, Some(confusion), Some(scores))
}

/// The same of nobody.
#[must_use]
pub fn nobody(neighbours: u32, classes: usize) -> Vec<EvaluationCounts> {
    let rules = [DISTANCE_RULE, INNER_PRODUCT_RULE, EUCLIDEAN_RULE];
    let counts = |rule: &str| {
        let confusion = vec![vec![0; classes]; classes];
        let scores = (classes == 2).then(|| vec![vec![0; score_bins(neighbours)]; classes]);
        EvaluationCounts {
            loss: Some(0.0),
            gains: Gains::blank(rule != EUCLIDEAN_RULE, classes),
            ..EvaluationCounts::new(rule, neighbours, Some(confusion), scores)
        }
    };
    rules.map(counts).into()
}

/// By each rule the nearest of the other folds of every patient who is `judged`, where fold f is compared by `place(f)`, a row a patient.
fn held_out_neighbours(
    (folds, judged): (&Folds, &[bool]),
    rules: [NeighbourRule; 2],
    count: &dyn Fn(usize) -> usize,
    place: &dyn Fn(usize) -> Array2<f64>,
) -> Result<[Vec<Vec<Neighbour>>; 2], EvaluateError> {
    let mut found = rules.map(|_| vec![Vec::new(); folds.of_each().len()]);
    for fold in 0..folds.count() {
        let split = folds.split(fold);
        let patients = place(fold);
        let candidates = Candidates::new(patients.select(Axis(0), &split.training));
        let held_out = split.held_out_of(judged);
        let queries = patients.select(Axis(0), &held_out);
        for (rule, found) in rules.into_iter().zip(&mut found) {
            let near = candidates.nearest(&queries.view(), rule, count(fold))?;
            for (patient, near) in held_out.iter().zip(near) {
                let of_cohort = |one: Neighbour| Neighbour {
                    row: split.training[one.row],
                    ..one
                };
                found[*patient] = near.into_iter().map(of_cohort).collect();
            }
        }
    }
    Ok(found)
}

/// Which patients nearest neighbours judge.
struct Judging<'c> {
    codes: &'c Array1<u32>,
    classes: usize,
    /// 0 where they are not as many for all.
    neighbours: u32,
    /// Who is counted.
    judged: &'c [bool],
}

impl Judging<'_> {
    /// Who is counted.
    fn rows(&self) -> Vec<usize> {
        (0..self.judged.len())
            .filter(|row| self.judged[*row])
            .collect()
    }

    fn nearest(
        &self,
        name: &str,
        rule: NeighbourRule,
        patients: &Candidates<'_>,
    ) -> Option<EvaluationCounts> {
        let (rows, count) = (self.rows(), self.neighbours as usize);
        let near = patients.nearest_of_rows(&rows, rule, count).ok()?;
        let mut found = vec![Vec::new(); self.judged.len()];
        rows.iter()
            .zip(near)
            .for_each(|(row, near)| found[*row] = near);
        self.by(name, &found)
    }

    /// None where nobody has neighbours.
    fn by(&self, name: &str, found: &[Vec<Neighbour>]) -> Option<EvaluationCounts> {
        if found.is_empty() {
            return None;
        }
        let predicted = vote(found, self.codes).ok()?;
        Some(EvaluationCounts::new(
            name,
            self.neighbours,
            Some(self.confusion(&predicted)),
            self.scores(found),
        ))
    }

    /// The share of each class among the neighbours, a row a patient; empty where one is not judged.
    #[allow(clippy::cast_precision_loss)] // neighbours are few
    fn shares(&self, found: &[Vec<Neighbour>]) -> Vec<Vec<f64>> {
        let of_one = |(near, is_judged): (&Vec<Neighbour>, &bool)| {
            if near.is_empty() || !is_judged {
                return Vec::new();
            }
            let mut shares = vec![0.0; self.classes];
            for one in near {
                shares[self.codes[one.row] as usize] += 1.0 / near.len() as f64;
            }
            shares
        };
        found.iter().zip(self.judged).map(of_one).collect()
    }

    fn confusion(&self, predicted: &Array1<u32>) -> Vec<Vec<u64>> {
        let mut table = vec![vec![0; self.classes]; self.classes];
        let counted = self.codes.iter().zip(predicted).zip(self.judged);
        for ((actual, predicted), _) in counted.filter(|(_, is_judged)| **is_judged) {
            table[*actual as usize][*predicted as usize] += 1;
        }
        table
    }

    /// By the share of neighbours of the second class; none of more classes, or where there are fewer neighbours.
    #[allow(clippy::cast_precision_loss)] // neighbours are few
    fn scores(&self, found: &[Vec<Neighbour>]) -> Option<Vec<Vec<u64>>> {
        let (wanted, rows) = (self.neighbours as usize, self.rows());
        let whole = wanted == 0 || rows.iter().all(|row| found[*row].len() == wanted);
        let votes = |near: &Vec<Neighbour>| {
            let second = near.iter().filter(|other| self.codes[other.row] == 1);
            second.count()
        };
        let codes = self.codes.select(Axis(0), &rows);
        let own = rows.iter().map(|row| &found[*row]);
        (self.classes == 2 && whole).then(|| match wanted {
            0 => by_share(
                &codes,
                own.map(|near| Score::Share(votes(near) as f64 / near.len() as f64)),
            ),
            _ => by_votes(&codes, self.neighbours, own.map(votes)),
        })
    }
}

/// Pairs of patients who are counted.
fn pairs(results: &LocalResults<'_>, judging: &Judging<'_>) -> Option<EvaluationCounts> {
    let projected = results.placed().rows();
    // Of judged pairs those who are in one: few, where the cohort is large.
    let (labels, projected) = match results.judged {
        None => {
            let rows = judging.rows();
            let labels = Labels::Classes(judging.codes.select(Axis(0), &rows));
            (labels, projected.select(Axis(0), &rows))
        }
        Some(judged) => {
            let members = judged.members();
            let labels = Labels::Judged(judged.among(&members));
            (labels, projected.select(Axis(0), &members))
        }
    };
    let counts = count_pairs(&projected.view(), &labels, results.form, results.threshold?).ok()?;
    let confusion = vec![
        vec![counts.true_negative, counts.false_positive],
        vec![counts.false_negative, counts.true_positive],
    ];
    Some(EvaluationCounts::new(PAIRS_RULE, 0, Some(confusion), None))
}
