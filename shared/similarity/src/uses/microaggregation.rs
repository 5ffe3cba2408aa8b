//! Groups that stand for their patients: sums over groups alone reveal of nobody more than of a group, however often it is
//! asked and however cleverly.
//!
//! Patients are parted by MDAV (Domingo-Ferrer and Mateo-Sanz, *Practical data-oriented microaggregation*, TKDE 2002; MDAV-generic:
//! Domingo-Ferrer and Torra, 2005) into groups of `size` to `2 size - 1`, those near each other together, whatever their outcomes. The
//! parting follows from the patients' places and `size`, and never from an outcome or a question. A group keeps its size, the mean of its
//! vectors and their variance in each coordinate.
//!
//! Where its patients are is then known as a normal distribution with that mean and these variances knows it. With a = q - c, of a query q
//! and a mean c, and variances v, the distance of q from a patient of the group has about
//!
//! | closeness | distribution |
//! | --- | --- |
//! | Euclidean | its square a gamma, mean sum a^2 + v, variance sum 2 v^2 + 4 v a^2 |
//! | Manhattan | a gamma, with the sums of the means and variances of folded normal numbers |
//! | inner product | -(q'x) a normal, mean -q'c, variance sum q^2 v |
//!
//! and the share of the group within a radius follows. The sum over groups is how many patients are within it, nearly.

use crate::numeric::incomplete_gamma::{below, normal_below};
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

    /// The share of its patients within `radius` of a vector of as many coordinates, from 0 to 1.
    #[must_use]
    pub fn within(&self, query: &[f64], radius: f64, closeness: Closeness) -> f64 {
        let own = self.mean.iter().zip(&self.variance).zip(query);
        match closeness {
            Closeness::InnerProduct => {
                let spread: f64 = own.map(|((_, v), q)| q * q * v).sum();
                let middle = -inner(&self.mean, query);
                match spread > 0.0 {
                    true => normal_below((radius - middle) / spread.sqrt()),
                    false => f64::from(u8::from(middle <= radius)),
                }
            }
            _ => {
                let gaps = own.map(|((c, v), q)| (q - c, *v));
                Moments::of(closeness, gaps).below(closeness.turned(radius))
            }
        }
    }

    /// How far its patients are from those of another group: numbers between which equal shares of the pairs lie.
    #[must_use]
    pub fn apart(&self, other: &Self, closeness: Closeness) -> [f64; POINTS] {
        let own = self.mean.iter().zip(&self.variance);
        let both = own.zip(other.mean.iter().zip(&other.variance));
        match closeness {
            Closeness::InnerProduct => {
                let terms = both.map(|((c, v), (d, w))| v * w + v * d * d + w * c * c);
                let (middle, spread) = (-inner(&self.mean, &other.mean), terms.sum::<f64>().sqrt());
                DEVIATES.map(|deviate| middle + deviate * spread)
            }
            _ => {
                let gaps = both.map(|((c, v), (d, w))| (c - d, v + w));
                closeness.points(Moments::of(closeness, gaps))
            }
        }
    }

    /// As [`Group::apart`], of the pairs of its own patients.
    #[must_use]
    pub fn apart_within(&self, closeness: Closeness) -> [f64; POINTS] {
        let n = self.patients as f64;
        let twice = 2.0 * n / (n - 1.0).max(1.0);
        match closeness {
            Closeness::InnerProduct => self.apart(self, closeness),
            _ => {
                let gaps = self.variance.iter().map(|v| (0.0, twice * v));
                closeness.points(Moments::of(closeness, gaps))
            }
        }
    }

    /// Adds `pairs` pairs of patients to the cells of [`OctaveGrid`] in which these points lie.
    pub fn spread(pairs: u64, points: &[f64; POINTS], counts: &mut [u64]) {
        let (each, rest) = (pairs / POINTS as u64, pairs % POINTS as u64);
        for (place, point) in (0..).zip(points) {
            counts[OctaveGrid::cell(*point)] += each + u64::from(place < rest);
        }
    }
}

/// Numbers that stand for all distances of two groups.
pub const POINTS: usize = 8;
/// A standard normal number is below them with the chances 1/16, 3/16 .. 15/16.
const DEVIATES: [f64; POINTS] = [
    -1.534_120_544_352_546,
    -0.887_146_559_018_876,
    -0.488_776_411_114_669,
    -0.157_310_684_610_171,
    0.157_310_684_610_171,
    0.488_776_411_114_669,
    0.887_146_559_018_876,
    1.534_120_544_352_546,
];

/// Mean and variance of a distance, or of its square.
#[derive(Clone, Copy)]
struct Moments {
    mean: f64,
    variance: f64,
}

impl Moments {
    /// Of the differences in each coordinate: normal numbers of this mean and variance.
    fn of(closeness: Closeness, gaps: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut sum = Self {
            mean: 0.0,
            variance: 0.0,
        };
        for (gap, variance) in gaps {
            let square = gap * gap;
            let (mean, own) = match closeness {
                Closeness::Manhattan => folded(gap, variance),
                Closeness::Euclidean | Closeness::InnerProduct => (
                    square + variance,
                    variance * (2.0 * variance + 4.0 * square),
                ),
            };
            sum.mean += mean;
            sum.variance += own;
        }
        sum
    }

    /// The chance that a gamma number of these moments is at most `value`.
    fn below(self, value: f64) -> f64 {
        match self.variance > 0.0 && self.mean > 0.0 {
            true => {
                let rate = self.mean / self.variance;
                below(self.mean * rate, value * rate)
            }
            false => f64::from(u8::from(self.mean <= value)),
        }
    }
}

/// Mean and variance of the size of a normal number.
fn folded(gap: f64, variance: f64) -> (f64, f64) {
    if variance <= 0.0 {
        return (gap.abs(), 0.0);
    }
    let deviation = variance.sqrt();
    let ratio = gap / deviation;
    let bell = libm::exp(-0.5 * ratio * ratio) * std::f64::consts::FRAC_2_SQRT_PI;
    let mean = deviation * bell * std::f64::consts::FRAC_1_SQRT_2
        + gap * libm::erf(ratio * std::f64::consts::FRAC_1_SQRT_2);
    (mean, (gap * gap + variance - mean * mean).max(0.0))
}

impl Closeness {
    /// A radius in the terms of [`Moments`].
    fn turned(self, radius: f64) -> f64 {
        match self {
            Self::Euclidean => radius * radius.max(0.0),
            Self::Manhattan | Self::InnerProduct => radius,
        }
    }

    /// Points of a gamma number of these moments, by its cube root (Wilson and Hilferty 1931).
    fn points(self, of: Moments) -> [f64; POINTS] {
        let point = |deviate: f64| {
            let ninth = match of.mean > 0.0 {
                true => of.variance / (9.0 * of.mean * of.mean),
                false => 0.0,
            };
            let root = (1.0 - ninth + deviate * ninth.sqrt()).max(0.0);
            let value = of.mean * root * root * root;
            match self {
                Self::Euclidean => value.sqrt(),
                Self::Manhattan | Self::InnerProduct => value,
            }
        };
        DEVIATES.map(point)
    }
}

fn inner(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// Parts the rows of `vectors` into groups of `size` to `2 size - 1`. Fewer rows than `size` are in no group.
#[must_use]
pub fn parted(vectors: ArrayView2<'_, f64>, size: usize) -> Vec<Vec<usize>> {
    mdav(vectors, (0..vectors.nrows()).collect(), size.max(1))
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

/// Bits of a double behind those that give its cell: 32 cells an octave.
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
    use ndarray::Array2;
    use rand::RngExt;

    fn drawn(patients: usize, seed: u64) -> Array2<f64> {
        let mut stream = Seed(seed).stream("groups", 0);
        Array2::from_shape_fn((patients, 3), |_| stream.random::<f64>())
    }

    #[test]
    fn every_patient_is_in_one_group_unless_there_are_fewer_than_a_group_has() {
        for (patients, size) in [(9, 10), (19, 10), (20, 10), (29, 10), (97, 10), (64, 3)] {
            let vectors = drawn(patients, patients as u64);
            let groups = parted(vectors.view(), size);
            let mut seen: Vec<usize> = groups.concat();
            seen.sort_unstable();
            let wanted: Vec<usize> = (0..patients).filter(|_| patients >= size).collect();
            assert_eq!(seen, wanted);
            for group in groups {
                assert!((size..2 * size).contains(&group.len()), "{}", group.len());
            }
        }
    }

    /// Normal numbers, of which shares and quantiles are counted one by one.
    #[test]
    fn shares_and_distances_are_those_of_patients_drawn_from_the_group() {
        let mut stream = Seed(3).stream("normal", 0);
        let mut normal = || (0..12).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0;
        let mut cloud = |mean: [f64; 3], deviation: [f64; 3]| {
            let drawn: Vec<[f64; 3]> = (0..4_000)
                .map(|_| std::array::from_fn(|k| mean[k] + deviation[k] * normal()))
                .collect();
            Array2::from(drawn)
        };
        let near = cloud([0.5, -0.2, 1.0], [0.3, 0.5, 0.2]);
        let far = cloud([1.5, 0.8, 0.4], [0.4, 0.2, 0.6]);
        let members: Vec<usize> = (0..4_000).collect();
        let (one, other) = (
            Group::of(near.view(), &members),
            Group::of(far.view(), &members),
        );
        let query = [0.2, 0.4, 0.7];
        for (closeness, radii) in [
            (Closeness::Euclidean, [0.6, 0.8, 1.2]),
            (Closeness::Manhattan, [0.9, 1.3, 1.9]),
            (Closeness::InnerProduct, [-1.0, -0.7, -0.4]),
        ] {
            let distance = |a: ArrayView1<'_, f64>, b: &[f64]| match closeness {
                Closeness::Euclidean => square(a, b).sqrt(),
                Closeness::Manhattan => a.iter().zip(b).map(|(x, y)| (x - y).abs()).sum(),
                Closeness::InnerProduct => -inner(&a.to_vec(), b),
            };
            for radius in radii {
                let counted = near.outer_iter().filter(|x| distance(*x, &query) <= radius);
                let wanted = counted.count() as f64 / 4_000.0;
                let found = one.within(&query, radius, closeness);
                assert!(
                    (found - wanted).abs() < 0.03,
                    "{closeness:?} {found} {wanted}"
                );
            }
            for (points, rows) in [
                (one.apart(&other, closeness), &far),
                (one.apart_within(closeness), &near),
            ] {
                let shifted = rows.outer_iter().cycle().skip(1);
                let pairs = near.outer_iter().zip(shifted);
                let found = pairs.map(|(a, b)| distance(a, &b.to_vec()));
                let found: Vec<f64> = found.collect();
                for (place, point) in points.iter().enumerate() {
                    let wanted = (2 * place + 1) as f64 / 16.0;
                    let share = found.iter().filter(|one| *one <= point).count() as f64;
                    assert!(
                        (share / 4_000.0 - wanted).abs() < 0.06,
                        "{closeness:?} {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_group_of_one_place_is_within_or_not_and_pairs_are_all_counted() {
        let vectors = Array2::from_shape_fn((10, 2), |_| 1.0);
        let group = Group::of(vectors.view(), &(0..10).collect::<Vec<_>>());
        for closeness in [Closeness::Euclidean, Closeness::Manhattan] {
            assert_eq!(group.within(&[1.0, 3.0], 2.0, closeness), 1.0);
            assert_eq!(group.within(&[1.0, 3.0], 1.9, closeness), 0.0);
        }
        assert_eq!(
            group.within(&[1.0, 1.0], -2.0, Closeness::InnerProduct),
            1.0
        );
        let mut counts = vec![0; OctaveGrid::cells()];
        Group::spread(45, &[1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &mut counts);
        assert_eq!(counts.iter().sum::<u64>(), 45);
        assert_eq!(counts[OctaveGrid::cell(1.0)], 12);
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
