//! Groups that stand for their patients: what is told of groups alone tells of nobody more than of a group, however often it is
//! asked and however cleverly.
//!
//! Patients are parted by MDAV (Domingo-Ferrer and Mateo-Sanz, *Practical data-oriented microaggregation*, TKDE 2002; MDAV-generic:
//! Domingo-Ferrer and Torra, 2005) into groups of `size` to `2 size - 1`, those near each other together, each class by itself. The
//! parting follows from the patients and `size`, and never from a question. A group keeps its size, the mean of its vectors and
//! their variance in each coordinate; a vector's distance from it is the root mean square of the distances from its members,
//!
//! | closeness | distance of q from a group with mean c and variances v |
//! | --- | --- |
//! | Euclidean | sqrt(sum (q - c)^2 + v) |
//! | Manhattan | sum sqrt((q - c)^2 + v), the root mean square in each coordinate |
//! | inner product | -q'c, the mean of the members' |
//!
//! so that it is of the size of distances between patients, and follows from sums over the group.

use ndarray::{ArrayView1, ArrayView2};

/// What is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closeness {
    /// A small Euclidean distance.
    Euclidean,
    /// A small sum of absolute differences.
    Manhattan,
    /// A large inner product; its sign is turned, so that smaller is nearer.
    InnerProduct,
}

/// A group of patients, as sums over them tell it.
#[derive(Clone, PartialEq)]
pub struct Group {
    /// Patients.
    pub patients: u64,
    mean: Vec<f64>,
    /// In each coordinate, of the group (divisor n).
    variance: Vec<f64>,
}

impl Group {
    /// The group of these rows.
    #[must_use]
    pub fn of(vectors: ArrayView2<'_, f64>, members: &[usize]) -> Self {
        let n = members.len().max(1) as f64;
        let over = |column: usize, term: &dyn Fn(f64) -> f64| -> f64 {
            let terms = members.iter().map(|row| term(vectors[[*row, column]]));
            terms.sum::<f64>() / n
        };
        let columns = 0..vectors.ncols();
        let mean: Vec<f64> = columns.map(|column| over(column, &|x| x)).collect();
        let spread = |(column, mean): (usize, &f64)| over(column, &|x| (x - mean).powi(2));
        Self {
            patients: members.len() as u64,
            variance: mean.iter().enumerate().map(spread).collect(),
            mean,
        }
    }

    /// Coordinates of its vectors.
    #[must_use]
    pub fn coordinates(&self) -> usize {
        self.mean.len()
    }

    /// How far a vector of as many coordinates is from its patients.
    #[must_use]
    pub fn distance(&self, query: &[f64], closeness: Closeness) -> f64 {
        let own = self.mean.iter().zip(&self.variance);
        let gaps = own.zip(query).map(|((c, v), q)| ((q - c).powi(2), *v));
        match closeness {
            Closeness::InnerProduct => -inner(&self.mean, query),
            _ => closeness.of_squares(gaps),
        }
    }

    /// How far its patients are from those of another group.
    #[must_use]
    pub fn between(&self, other: &Self, closeness: Closeness) -> f64 {
        let own = self.mean.iter().zip(&self.variance);
        let gaps = own
            .zip(other.mean.iter().zip(&other.variance))
            .map(|((c, v), (d, w))| ((c - d).powi(2), v + w));
        match closeness {
            Closeness::InnerProduct => -inner(&self.mean, &other.mean),
            _ => closeness.of_squares(gaps),
        }
    }
}

impl Closeness {
    /// Of the squared difference and the variance in each coordinate.
    fn of_squares(self, gaps: impl Iterator<Item = (f64, f64)>) -> f64 {
        let squares = gaps.map(|(square, variance)| square + variance);
        match self {
            Self::Manhattan => squares.map(f64::sqrt).sum(),
            Self::Euclidean | Self::InnerProduct => squares.sum::<f64>().sqrt(),
        }
    }
}

fn inner(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// Parts the rows of `vectors` into groups of `size` to `2 size - 1` of one class each. A class of fewer than `size` is in no group.
#[must_use]
pub fn parted(vectors: ArrayView2<'_, f64>, classes: &[u32], size: usize) -> Vec<Vec<usize>> {
    let size = size.max(1);
    let count = classes.iter().max().map_or(0, |last| last + 1);
    let of_class = |class: u32| {
        let rows = 0..vectors.nrows().min(classes.len());
        let left = rows.filter(|row| classes[*row] == class).collect();
        mdav(vectors, left, size)
    };
    (0..count).flat_map(of_class).collect()
}

/// MDAV of these rows; equal distances by rising row.
fn mdav(vectors: ArrayView2<'_, f64>, mut left: Vec<usize>, size: usize) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    while left.len() >= 2 * size {
        let centre = centre(vectors, &left);
        let first = farthest(vectors, &left, &centre);
        let first = vectors.row(first).to_vec();
        groups.push(take_nearest(vectors, &mut left, &first, size));
        // Of fewer than 3 size at the beginning, what is left is the last group.
        if left.len() >= 2 * size {
            let second = farthest(vectors, &left, &first);
            let second = vectors.row(second).to_vec();
            groups.push(take_nearest(vectors, &mut left, &second, size));
        }
    }
    if left.len() >= size {
        groups.push(left);
    }
    groups
}

fn centre(vectors: ArrayView2<'_, f64>, rows: &[usize]) -> Vec<f64> {
    let mut sum = vec![0.0; vectors.ncols()];
    for row in rows {
        let own = vectors.row(*row);
        sum.iter_mut().zip(own).for_each(|(sum, x)| *sum += x);
    }
    let n = rows.len() as f64;
    sum.into_iter().map(|sum| sum / n).collect()
}

fn square(row: ArrayView1<'_, f64>, point: &[f64]) -> f64 {
    row.iter().zip(point).map(|(x, c)| (x - c).powi(2)).sum()
}

/// The first of the rows that are farthest from a point.
fn farthest(vectors: ArrayView2<'_, f64>, rows: &[usize], point: &[f64]) -> usize {
    let mut found = (rows[0], f64::NEG_INFINITY);
    for row in rows {
        let distance = square(vectors.row(*row), point);
        if distance > found.1 {
            found = (*row, distance);
        }
    }
    found.0
}

/// Takes the `size` rows that are nearest to a point out of `left`, which stays in order.
fn take_nearest(
    vectors: ArrayView2<'_, f64>,
    left: &mut Vec<usize>,
    point: &[f64],
    size: usize,
) -> Vec<usize> {
    let distance = |row: &usize| (square(vectors.row(*row), point), *row);
    let mut order: Vec<(f64, usize)> = left.iter().map(distance).collect();
    let by_distance = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if size < order.len() {
        order.select_nth_unstable_by(size - 1, by_distance);
    }
    let mut taken: Vec<usize> = order.iter().take(size).map(|(_, row)| *row).collect();
    taken.sort_unstable();
    left.retain(|row| taken.binary_search(row).is_err());
    taken
}

/// Bits of a double behind those by which its cell is told: 32 cells an octave.
const FINE_BITS: u32 = 47;
/// The smallest number with a cell of its own, and the first beyond the largest.
const ENDS: [f64; 2] = [9.765_625e-4, 1_024.0];

/// A grid of numbers of any sign, 32 cells an octave: the same for everybody, and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OctaveGrid;

impl OctaveGrid {
    /// Cells of one sign.
    fn half() -> usize {
        let [low, high] = ENDS.map(|end| end.to_bits() >> FINE_BITS);
        usize::try_from(high - low).unwrap_or(usize::MAX)
    }

    /// Cells: of numbers below 0, of those near 0, and of those above.
    #[must_use]
    pub fn cells() -> usize {
        2 * Self::half() + 1
    }

    /// The cell of a number; cells rise with numbers, and numbers beyond the ends are in the last ones.
    #[must_use]
    pub fn cell(number: f64) -> usize {
        let size = number.abs();
        if size.is_nan() || size < ENDS[0] {
            return Self::half();
        }
        let steps = (size.to_bits() >> FINE_BITS) - (ENDS[0].to_bits() >> FINE_BITS);
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let steps = steps.min(Self::half() - 1) + 1;
        match number > 0.0 {
            true => Self::half() + steps,
            false => Self::half() - steps,
        }
    }

    /// Where a cell ends.
    #[must_use]
    pub fn end(cell: usize) -> f64 {
        let (low, half) = (ENDS[0].to_bits() >> FINE_BITS, Self::half());
        let border = |steps: usize| f64::from_bits((low + steps as u64) << FINE_BITS);
        match cell >= half {
            true => border(cell - half),
            false => -border(half - cell - 1),
        }
    }
}

impl std::fmt::Debug for Group {
    /// Its size alone: a mean belongs to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a group of {}", self.patients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use ndarray::{Array2, Axis};
    use rand::RngExt;

    fn drawn(patients: usize, seed: u64) -> (Array2<f64>, Vec<u32>) {
        let mut stream = Seed(seed).stream("groups", 0);
        let vectors = Array2::from_shape_fn((patients, 3), |_| stream.random::<f64>());
        let classes = (0..patients).map(|_| stream.random_range(0..2_u32));
        (vectors, classes.collect())
    }

    #[test]
    fn every_patient_of_a_class_that_is_large_enough_is_in_one_group_of_its_class() {
        for (patients, size) in [
            (9, 10),
            (19, 10),
            (20, 10),
            (29, 10),
            (30, 10),
            (97, 10),
            (64, 3),
        ] {
            let (vectors, classes) = drawn(patients, patients as u64);
            for one in [vec![0; patients], classes] {
                let groups = parted(vectors.view(), &one, size);
                let mut seen: Vec<usize> = groups.concat();
                seen.sort_unstable();
                let large = |class: u32| one.iter().filter(|c| **c == class).count() >= size;
                let wanted: Vec<usize> = (0..patients).filter(|row| large(one[*row])).collect();
                assert_eq!(seen, wanted);
                for group in groups {
                    assert!((size..2 * size).contains(&group.len()), "{}", group.len());
                    assert!(group.iter().all(|row| one[*row] == one[group[0]]));
                }
            }
        }
    }

    #[test]
    fn a_distance_from_a_group_is_the_root_mean_square_of_those_from_its_members() {
        let (vectors, _) = drawn(40, 3);
        let members = [3, 5, 8, 13, 21, 34];
        let group = Group::of(vectors.view(), &members);
        let query = [0.3, -1.5, 2.0];
        let mean = |term: &dyn Fn(ArrayView1<'_, f64>) -> f64| -> f64 {
            let rows = vectors.select(Axis(0), &members);
            rows.outer_iter().map(term).sum::<f64>() / members.len() as f64
        };
        let euclidean = mean(&|row| square(row, &query)).sqrt();
        assert!((group.distance(&query, Closeness::Euclidean) - euclidean).abs() < 1e-12);
        let manhattan: f64 = (0..3)
            .map(|column| mean(&|row| (row[column] - query[column]).powi(2)).sqrt())
            .sum();
        assert!((group.distance(&query, Closeness::Manhattan) - manhattan).abs() < 1e-12);
        let product = -mean(&|row| inner(&row.to_vec(), &query));
        assert!((group.distance(&query, Closeness::InnerProduct) - product).abs() < 1e-12);
        let alone = Group::of(vectors.view(), &[7]);
        let own = vectors.row(7).to_vec();
        for closeness in [
            Closeness::Euclidean,
            Closeness::Manhattan,
            Closeness::InnerProduct,
        ] {
            let pair = group.between(&alone, closeness);
            assert!((pair - group.distance(&own, closeness)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_grid_holds_every_number_in_a_cell_of_a_32nd_of_an_octave() {
        assert_eq!(OctaveGrid::cells(), 1_281);
        let mut stream = Seed(9).stream("grid", 0);
        let mut numbers: Vec<f64> = (0..4_000)
            .map(|_| stream.random_range(-1_000.0..1_000.0_f64))
            .collect();
        numbers.extend([0.0, -0.0, 1.0, -1.0, 1e-5, -1e-5, ENDS[0], -ENDS[0]]);
        numbers.sort_by(f64::total_cmp);
        let mut last = 0;
        for number in numbers {
            let cell = OctaveGrid::cell(number);
            assert!(cell >= last, "{number}");
            last = cell;
            let end = OctaveGrid::end(cell);
            assert!(number <= end, "{number} is beyond {end}");
            assert!(
                end - number <= number.abs() / 32.0 + 2.0 * ENDS[0],
                "{number}"
            );
        }
        assert_eq!(OctaveGrid::cell(f64::INFINITY), 1_280);
        assert_eq!(OctaveGrid::cell(-1e9), 0);
    }
}
