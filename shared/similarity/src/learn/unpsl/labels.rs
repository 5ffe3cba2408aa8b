//! Pair labels of one site: similar, dissimilar, or none.

use std::ops::Range;

use ndarray::{Array1, Array2, Axis};

/// By how much sums over judged pairs are rounded more coarsely than others: few patients are behind them, in pairs of their own, so that
/// a thousand sums tell these patients apart.
pub const JUDGED_STEPS: f64 = 8.0;

/// y_ij of every pair of patients at one site.
#[derive(Clone)]
pub enum Labels {
    /// Two patients are similar where their class codes are equal, else dissimilar.
    Classes(Array1<u32>),
    /// +1 similar, -1 dissimilar, 0 no label; made by [`Labels::pairs`].
    Pairs(PairMatrix),
    /// The pairs that a physician has judged, and no others.
    Judged(JudgedPairs),
    /// All pairs by their classes and, in addition, judged pairs, each of which counts as so many.
    Both {
        /// The class of each patient.
        codes: Array1<u32>,
        /// The judged pairs.
        judged: JudgedPairs,
        /// As how many pairs each of them counts.
        times: u32,
    },
}

/// Few pairs of many patients: memory grows with the pairs alone.
#[derive(Clone, PartialEq, Eq)]
pub struct JudgedPairs {
    patients: usize,
    /// Each pair once, smaller place first, ascending; true where they are similar.
    pairs: Vec<([u32; 2], bool)>,
}

/// A symmetric n x n matrix of +1, -1 and 0 with a diagonal of 0.
#[derive(Clone)]
pub struct PairMatrix(Array2<i8>);

/// Numbers of similar and dissimilar pairs, each pair counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairCounts {
    /// y_ij = +1.
    pub similar: u64,
    /// y_ij = -1.
    pub dissimilar: u64,
}

/// A matrix that is no matrix of pair labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// One row and one column per patient.
    #[error("pair labels are {rows} x {columns}, wanted a square")]
    NotSquare {
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
    },
    /// y_ij and y_ji are the same pair.
    #[error("pair labels are not symmetric")]
    NotSymmetric,
    /// A label that has no meaning.
    #[error("found a pair label of {found}, wanted 1, -1 or 0")]
    Unknown {
        /// The label.
        found: i8,
    },
    /// A judged pair is of two patients, and is judged once.
    #[error("judged pairs are not of two different patients each, or one pair has two judgements")]
    Judged,
}

/// Pairs of classes are counted in steps of so many.
pub const PAIRS_STEP: u64 = 20;

impl PairCounts {
    /// Rounded up to twenties. From exact sums over three hospitals, and about how many patients each has, their classes could be
    /// worked out.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        Self {
            similar: self.similar.next_multiple_of(PAIRS_STEP),
            dissimilar: self.dissimilar.next_multiple_of(PAIRS_STEP),
        }
    }

    /// All labelled pairs.
    #[must_use]
    pub fn total(self) -> u64 {
        self.similar + self.dissimilar
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            similar: self.similar + other.similar,
            dissimilar: self.dissimilar + other.dissimilar,
        }
    }
}

impl Labels {
    /// Labels given pair by pair: symmetric, +1, -1 or 0; the diagonal is not read.
    ///
    /// # Errors
    /// [`LabelsError`].
    pub fn pairs(mut matrix: Array2<i8>) -> Result<Self, LabelsError> {
        let (rows, columns) = matrix.dim();
        if rows != columns {
            return Err(LabelsError::NotSquare { rows, columns });
        }
        matrix.diag_mut().fill(0);
        if let Some(&found) = matrix.iter().find(|label| !matches!(label, -1..=1)) {
            return Err(LabelsError::Unknown { found });
        }
        if matrix != matrix.t() {
            return Err(LabelsError::NotSymmetric);
        }
        Ok(Self::Pairs(PairMatrix(
            matrix.as_standard_layout().into_owned(),
        )))
    }

    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        match self {
            Self::Classes(codes) | Self::Both { codes, .. } => codes.len(),
            Self::Pairs(matrix) => matrix.0.nrows(),
            Self::Judged(judged) => judged.patients,
        }
    }

    /// The labels among the patients at these places, in this order.
    #[must_use]
    pub fn among(&self, rows: &[usize]) -> Self {
        match self {
            Self::Classes(codes) => Self::Classes(codes.select(Axis(0), rows)),
            Self::Pairs(PairMatrix(matrix)) => {
                let label = |(i, j)| matrix[[rows[i], rows[j]]];
                Self::Pairs(PairMatrix(Array2::from_shape_fn(
                    (rows.len(), rows.len()),
                    label,
                )))
            }
            Self::Judged(judged) => Self::Judged(judged.among(rows)),
            Self::Both {
                codes,
                judged,
                times,
            } => Self::Both {
                codes: codes.select(Axis(0), rows),
                judged: judged.among(rows),
                times: *times,
            },
        }
    }

    /// y_ij of two patients; 0 of one patient with itself. Of both kinds of labels together it is that of the classes.
    #[must_use]
    pub fn of_pair(&self, one: usize, other: usize) -> i8 {
        match self {
            _ if one == other => 0,
            Self::Classes(codes) | Self::Both { codes, .. } => match codes[one] == codes[other] {
                true => 1,
                false => -1,
            },
            Self::Pairs(matrix) => matrix.0[[one, other]],
            Self::Judged(judged) => judged.of_pair(one, other),
        }
    }

    /// Adds y_ij of all pairs of the patients at some places, each once: those of the first of them, of the next with those behind it, and
    /// so on.
    pub(super) fn of_pairs_within(&self, places: Range<usize>, labels: &mut Vec<i8>) {
        for one in places.clone() {
            let others = one + 1..places.end;
            match self {
                Self::Classes(codes) | Self::Both { codes, .. } => {
                    let codes = codes.as_slice().expect("codes lie side by side");
                    let label = |code: &u32| if *code == codes[one] { 1 } else { -1 };
                    labels.extend(codes[others].iter().map(label));
                }
                Self::Pairs(_) | Self::Judged(_) => {
                    labels.extend(others.map(|other| self.of_pair(one, other)));
                }
            }
        }
    }

    /// y_ij of one patient with each of the patients from `first` on, as numbers; 0 of the patient with itself.
    pub(crate) fn of_row(&self, one: usize, first: usize, labels: &mut [f64]) {
        match self {
            Self::Classes(codes) | Self::Both { codes, .. } => {
                let own = codes[one];
                let others = codes.iter().skip(first);
                for (label, code) in labels.iter_mut().zip(others) {
                    *label = if *code == own { 1.0 } else { -1.0 };
                }
                if let Some(itself) = one.checked_sub(first).and_then(|at| labels.get_mut(at)) {
                    *itself = 0.0;
                }
            }
            Self::Pairs(matrix) => {
                let row = matrix.0.row(one);
                let others = row.iter().skip(first);
                for (label, other) in labels.iter_mut().zip(others) {
                    *label = f64::from(*other);
                }
            }
            Self::Judged(judged) => {
                for (place, label) in labels.iter_mut().enumerate() {
                    *label = f64::from(judged.of_pair(one, first + place));
                }
            }
        }
    }

    /// What judged pairs count in addition to all others.
    pub(super) fn in_addition(&self) -> PairCounts {
        match self {
            Self::Both { judged, times, .. } => {
                let (own, times) = (judged.count(), u64::from(*times));
                PairCounts {
                    similar: times * own.similar,
                    dissimilar: times * own.dissimilar,
                }
            }
            Self::Classes(_) | Self::Pairs(_) | Self::Judged(_) => PairCounts::default(),
        }
    }

    /// What the patient with most pairs counts at most, relative to the mean over all, where no pairs are drawn.
    pub(super) fn crowding(&self) -> f64 {
        match self {
            Self::Classes(_) | Self::Pairs(_) => 1.0,
            Self::Judged(judged) => JUDGED_STEPS * judged.crowding(),
            Self::Both {
                codes,
                judged,
                times,
            } => JUDGED_STEPS * judged.crowding_among(codes.len(), f64::from(*times)),
        }
    }

    /// Counts of all labelled pairs.
    #[must_use]
    pub fn count(&self) -> PairCounts {
        match self {
            Self::Classes(codes) => of_classes(codes),
            Self::Judged(judged) => judged.count(),
            Self::Both { codes, .. } => of_classes(codes).plus(self.in_addition()),
            Self::Pairs(matrix) => {
                let count = |wanted: i8| {
                    matrix.0.iter().filter(|label| **label == wanted).count() as u64 / 2
                };
                PairCounts {
                    similar: count(1),
                    dissimilar: count(-1),
                }
            }
        }
    }
}

/// Counts of the pairs of patients of these classes.
fn of_classes(codes: &Array1<u32>) -> PairCounts {
    let pairs = |patients: u64| patients * patients.saturating_sub(1) / 2;
    let mut sorted = codes.to_vec();
    sorted.sort_unstable();
    let similar = sorted
        .chunk_by(|a, b| a == b)
        .map(|class| pairs(class.len() as u64))
        .sum();
    PairCounts {
        similar,
        dissimilar: pairs(codes.len() as u64) - similar,
    }
}

impl JudgedPairs {
    /// Judged pairs of so many patients, each by two places; true where a pair is similar. A pair may come again with the same
    /// judgement.
    ///
    /// # Errors
    /// [`LabelsError::Judged`].
    pub fn new(
        patients: usize,
        pairs: impl IntoIterator<Item = ([usize; 2], bool)>,
    ) -> Result<Self, LabelsError> {
        let mut kept = Vec::new();
        for ([one, other], is_similar) in pairs {
            if one == other || one.max(other) >= patients {
                return Err(LabelsError::Judged);
            }
            let place = |place: usize| u32::try_from(place).map_err(|_| LabelsError::Judged);
            kept.push(([place(one.min(other))?, place(one.max(other))?], is_similar));
        }
        kept.sort_unstable();
        kept.dedup();
        match kept.windows(2).any(|two| two[0].0 == two[1].0) {
            true => Err(LabelsError::Judged),
            false => Ok(Self {
                patients,
                pairs: kept,
            }),
        }
    }

    /// The pairs, smaller place first, ascending; true where they are similar.
    #[must_use]
    pub fn pairs(&self) -> &[([u32; 2], bool)] {
        &self.pairs
    }

    /// The places of the patients who are in a pair, ascending.
    #[must_use]
    pub fn members(&self) -> Vec<usize> {
        let places = self.pairs.iter().flat_map(|(pair, _)| *pair);
        let mut members: Vec<usize> = places.map(|place| place as usize).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Pairs of the patient who has most, relative to the mean over all patients.
    fn crowding(&self) -> f64 {
        self.crowding_among(1, 1.0)
    }

    /// The same, where each patient is paired with all of `others` as well, and a judged pair counts as `times` of these.
    #[allow(clippy::cast_precision_loss)] // counts of pairs
    fn crowding_among(&self, others: usize, times: f64) -> f64 {
        let mut of_each = vec![0_u64; self.patients];
        for (pair, _) in &self.pairs {
            pair.iter().for_each(|place| of_each[*place as usize] += 1);
        }
        let everybody = others.saturating_sub(1) as f64;
        let most = of_each.iter().max().copied().unwrap_or(0) as f64;
        let mean = 2.0 * self.pairs.len() as f64 / self.patients.max(1) as f64;
        match everybody + times * mean {
            mean if mean > 0.0 => (everybody + times * most) / mean,
            _ => 1.0,
        }
    }

    /// The pairs among the patients at these places, which are their rows then.
    #[must_use]
    pub fn among(&self, rows: &[usize]) -> Self {
        let mut places = vec![None; self.patients];
        for (at, row) in (0_u32..).zip(rows) {
            places[*row] = Some(at);
        }
        let moved = |(pair, is_similar): &([u32; 2], bool)| {
            let [one, other] = pair.map(|place| places[place as usize]);
            let (one, other) = (one?, other?);
            Some(([one.min(other), one.max(other)], *is_similar))
        };
        let mut pairs: Vec<_> = self.pairs.iter().filter_map(moved).collect();
        pairs.sort_unstable();
        Self {
            patients: rows.len(),
            pairs,
        }
    }

    /// Counts of them.
    #[must_use]
    pub fn count(&self) -> PairCounts {
        let similar = self.pairs.iter().filter(|(_, is_similar)| *is_similar);
        let similar = similar.count() as u64;
        PairCounts {
            similar,
            dissimilar: self.pairs.len() as u64 - similar,
        }
    }

    fn of_pair(&self, one: usize, other: usize) -> i8 {
        let (Ok(low), Ok(high)) = (u32::try_from(one.min(other)), u32::try_from(one.max(other)))
        else {
            return 0;
        };
        let found = self
            .pairs
            .binary_search_by_key(&[low, high], |(pair, _)| *pair);
        found.map_or(0, |at| if self.pairs[at].1 { 1 } else { -1 })
    }
}

impl PairMatrix {
    /// The labels, n x n, row-major.
    #[must_use]
    pub fn matrix(&self) -> &Array2<i8> {
        &self.0
    }
}

impl std::fmt::Debug for Labels {
    /// Shape only: labels are patient values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Labels")
            .field("patients", &self.patients())
            .finish_non_exhaustive()
    }
}
