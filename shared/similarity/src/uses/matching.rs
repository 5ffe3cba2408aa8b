//! Matching: for each query so many candidates who are near it, and how alike the two groups are then.
//!
//! Without replacement a candidate is taken once. *Greedy*: in the order of the queries, first one match for each, then a
//! second, and so on, always the nearest who is left. *Optimal*: as many matches as can be, and of all such choices the
//! one with the least sum of distances (an assignment, by shortest augmenting paths: Jonker and Volgenant 1987, Crouse
//! 2016).
//!
//! Three treated patients, older than the five who may be compared with them. Matching makes the groups alike:
//!
//! ```
//! use ndarray::{Array1, Array2, array};
//! use similarity::cohort::{Column, Values};
//! use similarity::uses::matching::{Choice, balance, matched};
//!
//! let (treated, others) = (array![60.0, 64.0, 70.0], array![41.0, 50.0, 61.0, 65.0, 69.0]);
//! let apart = Array2::from_shape_fn((3, 5), |(i, j)| f64::abs(treated[i] - others[j]));
//! let matches = matched(&apart, 1, Some(5.0), Choice::Optimal);
//! assert_eq!(matches.0, [[2], [3], [4]]);
//!
//! let age = |ages: Array1<f64>| [Column { name: "age".to_owned(), values: Values::Numeric(ages) }];
//! let age = &balance(&age(treated), &age(others), &matches)[0];
//! // The difference of the mean ages, in standard deviations of the treated.
//! assert!(age.before.standardised > 1.0 && age.after.standardised.abs() < 0.1);
//! ```

use ndarray::{Array2, ArrayView1};

use crate::cohort::{Column, MISSING_LEVEL, Values};

/// Most entries of a matrix of distances.
pub const DISTANCES_MAX: usize = 200_000_000;

/// How matches are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The nearest candidates of every query, whoever else has them.
    WithReplacement,
    /// The nearest who is left, query by query.
    Greedy,
    /// The least sum of distances.
    Optimal,
}

/// The candidates of each query, nearest first: rows of the columns of the matrix of distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Matches(pub Vec<Vec<usize>>);

/// Matches `ratio` candidates (columns) to each query (rows); none that is farther than `caliper`. Distances that are NaN
/// cannot be matched.
#[must_use]
pub fn matched(
    distances: &Array2<f64>,
    ratio: usize,
    caliper: Option<f64>,
    choice: Choice,
) -> Matches {
    let admitted =
        |distance: f64| !distance.is_nan() && caliper.is_none_or(|most| distance <= most);
    let mut matches = match choice {
        Choice::WithReplacement => distances
            .outer_iter()
            .map(|row| nearest(row, ratio, admitted))
            .collect(),
        Choice::Greedy => greedy(distances, ratio, admitted),
        Choice::Optimal => optimal(distances, ratio, admitted),
    };
    for (query, own) in matches.iter_mut().enumerate() {
        own.sort_by(|a, b| {
            let (one, other) = (distances[(query, *a)], distances[(query, *b)]);
            one.total_cmp(&other).then(a.cmp(b))
        });
    }
    Matches(matches)
}

fn nearest(row: ArrayView1<'_, f64>, ratio: usize, admitted: impl Fn(f64) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = (0..row.len())
        .filter(|column| admitted(row[*column]))
        .collect();
    found.sort_by(|a, b| row[*a].total_cmp(&row[*b]).then(a.cmp(b)));
    found.truncate(ratio);
    found
}

fn greedy(
    distances: &Array2<f64>,
    ratio: usize,
    admitted: impl Fn(f64) -> bool,
) -> Vec<Vec<usize>> {
    let mut free = vec![true; distances.ncols()];
    let mut matches = vec![Vec::new(); distances.nrows()];
    for _ in 0..ratio {
        for (query, row) in distances.outer_iter().enumerate() {
            let mut best: Option<(f64, usize)> = None;
            for (column, &distance) in row.iter().enumerate() {
                let nearer = best.is_none_or(|(known, _)| distance < known);
                if free[column] && nearer && admitted(distance) {
                    best = Some((distance, column));
                }
            }
            if let Some((_, column)) = best {
                free[column] = false;
                matches[query].push(column);
            }
        }
    }
    matches
}

/// A query stands for `ratio` rows of the assignment. Each row also has a column of its own, which costs more than all
/// distances together: it takes that one only where there is no other.
fn optimal(
    distances: &Array2<f64>,
    ratio: usize,
    admitted: impl Fn(f64) -> bool,
) -> Vec<Vec<usize>> {
    let (queries, candidates) = distances.dim();
    let known = distances.iter().copied().filter(|one| admitted(*one));
    let (least, most) = known.fold((0.0_f64, 0.0_f64), |(least, most), one| {
        (least.min(one), most.max(one))
    });
    let alone = (most - least + 1.0) * (queries * ratio + 1) as f64;
    let cost = |row: usize, column: usize| {
        if column >= candidates {
            return match column - candidates == row {
                true => alone,
                false => f64::INFINITY,
            };
        }
        let distance = distances[(row / ratio, column)];
        match admitted(distance) {
            true => distance - least,
            false => f64::INFINITY,
        }
    };
    let columns = assigned(queries * ratio, candidates, cost);
    let mut matches = vec![Vec::new(); queries];
    for (row, column) in columns.into_iter().enumerate() {
        if column < candidates {
            matches[row / ratio].push(column);
        }
    }
    matches
}

/// The column of each row of an assignment of least cost; row r may always take the column `candidates` + r.
fn assigned(rows: usize, candidates: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    const NOBODY: usize = usize::MAX;
    let width = candidates + rows;
    let mut row_of = vec![NOBODY; width];
    let mut column_of = vec![NOBODY; rows];
    let (mut of_row, mut of_column) = (vec![0.0; rows], vec![0.0; width]);
    let mut distance = vec![0.0_f64; width];
    let mut before = vec![0_usize; width];
    let mut done = vec![false; width];
    for first in 0..rows {
        distance.fill(f64::INFINITY);
        done.fill(false);
        let (mut row, mut so_far) = (first, 0.0_f64);
        let end = loop {
            let mut next = (f64::INFINITY, NOBODY);
            // Candidates, and the one column of its own that a row has.
            for column in (0..candidates).chain([candidates + row]) {
                if !done[column] {
                    let reduced = so_far + cost(row, column) - of_row[row] - of_column[column];
                    if reduced < distance[column] {
                        distance[column] = reduced;
                        before[column] = row;
                    }
                }
            }
            for column in 0..width {
                let open = !done[column] && distance[column] < next.0;
                // Of equal ends one that is free ends the search.
                let ends = !done[column]
                    && distance[column] == next.0
                    && distance[column].is_finite()
                    && row_of[column] == NOBODY
                    && row_of[next.1] != NOBODY;
                if open || ends {
                    next = (distance[column], column);
                }
            }
            let (shortest, column) = next;
            so_far = shortest;
            done[column] = true;
            match row_of[column] {
                NOBODY => break column,
                taken => row = taken,
            }
        };
        of_row[first] += so_far;
        for column in (0..width).filter(|column| done[*column] && *column != end) {
            let slack = so_far - distance[column];
            of_row[row_of[column]] += slack;
            of_column[column] -= slack;
        }
        let mut column = end;
        loop {
            let row = before[column];
            row_of[column] = row;
            std::mem::swap(&mut column_of[row], &mut column);
            if row == first {
                break;
            }
        }
    }
    column_of
}

/// One feature, or one level of it, in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Balance {
    /// The feature, or `feature=level`.
    pub name: String,
    /// Before matching: all queries and all candidates.
    pub before: Contrast,
    /// After matching: the queries with a match and their matches.
    pub after: Contrast,
}

/// A feature in two groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Mean, or share of a level, among the queries.
    pub queries: f64,
    /// The same among the candidates; of matches each weighs one over the number of its query's matches.
    pub candidates: f64,
    /// The difference over the standard deviation of all queries; NaN where they do not vary.
    pub standardised: f64,
    /// The variance of the queries over that of the candidates; NaN of a level.
    pub variance_ratio: f64,
}

/// Compares the groups feature by feature, by the values that are present.
#[must_use]
pub fn balance(queries: &[Column], candidates: &[Column], matches: &Matches) -> Vec<Balance> {
    let mut weights = vec![0.0; candidates.first().map_or(0, |one| one.values.patients())];
    for own in &matches.0 {
        own.iter()
            .for_each(|row| weights[*row] += 1.0 / own.len() as f64);
    }
    let kept: Vec<f64> = matches
        .0
        .iter()
        .map(|own| f64::from(u8::from(!own.is_empty())))
        .collect();
    let mut balances = Vec::new();
    for (query, candidate) in queries.iter().zip(candidates) {
        for part in parts(&query.values, &query.name) {
            let (own, other) = (part.of(&query.values), part.of(&candidate.values));
            let whole = moments(&own, None);
            let contrast = |own: Moments, other: Moments| Contrast {
                queries: own.mean,
                candidates: other.mean,
                standardised: match whole.deviation(part.is_level()) {
                    deviation if deviation > 0.0 => (own.mean - other.mean) / deviation,
                    _ => f64::NAN,
                },
                variance_ratio: match part.is_level() {
                    true => f64::NAN,
                    false => own.variance / other.variance,
                },
            };
            balances.push(Balance {
                before: contrast(moments(&own, None), moments(&other, None)),
                after: contrast(moments(&own, Some(&kept)), moments(&other, Some(&weights))),
                name: part.name,
            });
        }
    }
    balances
}

/// A number of a feature: itself, or whether a patient has a level.
struct Part {
    name: String,
    level: Option<String>,
}

fn parts(values: &Values, name: &str) -> Vec<Part> {
    match values {
        Values::Numeric(_) => vec![Part {
            name: name.to_owned(),
            level: None,
        }],
        Values::Categorical { levels, .. } => levels
            .iter()
            .map(|level| Part {
                name: format!("{name}={level}"),
                level: Some(level.clone()),
            })
            .collect(),
    }
}

impl Part {
    fn is_level(&self) -> bool {
        self.level.is_some()
    }

    /// One number a patient; NaN is missing.
    fn of(&self, values: &Values) -> Vec<f64> {
        match values {
            Values::Numeric(values) => values.to_vec(),
            Values::Categorical { codes, levels } => {
                let own = levels
                    .iter()
                    .position(|level| Some(level) == self.level.as_ref());
                let number = |code: &u32| match *code {
                    MISSING_LEVEL => f64::NAN,
                    code => f64::from(u8::from(Some(code as usize) == own)),
                };
                codes.iter().map(number).collect()
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Moments {
    mean: f64,
    /// Unbiased.
    variance: f64,
}

impl Moments {
    /// Of a level by its share alone.
    fn deviation(self, is_level: bool) -> f64 {
        match is_level {
            true => (self.mean * (1.0 - self.mean)).sqrt(),
            false => self.variance.sqrt(),
        }
    }
}

fn moments(values: &[f64], weights: Option<&[f64]>) -> Moments {
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let present = |&(row, value): &(usize, &f64)| !value.is_nan() && weight(row) > 0.0;
    let rows = || values.iter().enumerate().filter(present);
    let sum: f64 = rows().map(|(row, _)| weight(row)).sum();
    let mean = rows().map(|(row, value)| weight(row) * value).sum::<f64>() / sum;
    let squares: f64 = rows()
        .map(|(row, value)| weight(row) * (value - mean).powi(2))
        .sum();
    let shares: f64 = rows().map(|(row, _)| (weight(row) / sum).powi(2)).sum();
    Moments {
        mean,
        variance: squares / sum / (1.0 - shares),
    }
}
