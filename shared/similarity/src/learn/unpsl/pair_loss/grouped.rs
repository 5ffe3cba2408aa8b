//! Patients in groups that are drawn at random, and all pairs within each group: every patient has as many partners as any other, give or
//! take one, and a group is a small matrix that stays in the cache.
//!
//! With K partners wanted, groups have K + 1 to 2K + 1 patients, so that n patients make at most n K pairs. Of a loss over all pairs, the
//! mean over so many pairs in groups varies no more than that over as many drawn one by one (Blom, Biometrika 1976).

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use rand::seq::SliceRandom;

use super::{Pass, Passed, RowSums, Sums, curvature};
use crate::learn::unpsl::labels::{Labels, PairCounts};
use crate::learn::unpsl::shared::{SharedPatients, blocks};
use crate::learn::unpsl::sweep::{Tallies, curvature_sum, products, sweep_labelled};
use crate::numeric::linear_algebra::{add_product, add_to_upper};
use crate::numeric::seed::Seed;

/// Strips of groups that are handled side by side: a fixed number, so that no bit depends on threads.
const STRIPS: usize = 16;
/// Patients whose rows are gathered at once, at least.
const GATHERED: usize = 512;
/// Pairs of a sample, at least.
const SAMPLE_PAIRS: usize = 1 << 18;
/// How many times fewer they must be.
const FEWER: usize = 4;

/// The groups of some patients, in their order.
pub(super) struct Groups {
    /// Where each ends.
    ends: Vec<usize>,
    /// Of the patients in this order.
    labels: Labels,
}

/// What the pairs of one group are swept in.
#[derive(Default)]
struct Scratch {
    /// E of a group, the patients side by side.
    columns: Vec<f64>,
    /// What a matrix of the group has above its diagonal, row after row.
    above: Vec<f64>,
    /// All of it.
    square: Vec<f64>,
    labels: Vec<i8>,
}

/// What a strip of groups adds up.
struct Part {
    tallies: Tallies,
    curvature: f64,
    /// Rows of G F.
    weighted: Option<Array2<f64>>,
    sums: Option<RowSums>,
    /// Its part of X'GX, of distances of X'(G - diag(r))X, not below the diagonal.
    gradient: Option<Array2<f64>>,
}

/// The order in which so many patients make up their groups.
pub(super) fn order(patients: usize, partners: usize, seed: Seed) -> Vec<usize> {
    let mut order: Vec<usize> = (0..patients).collect();
    let ends = ends(patients, partners);
    if ends.len() > 1 {
        order.shuffle(&mut seed.stream("pairs", 0));
    }
    let mut rest = order.as_mut_slice();
    let mut begin = 0;
    for end in ends {
        let group = rest.split_off_mut(..end - begin).unwrap_or_default();
        group.sort_unstable();
        begin = end;
    }
    order
}

/// Where each group of so many patients ends.
fn ends(patients: usize, partners: usize) -> Vec<usize> {
    let largest = partners.saturating_mul(2).saturating_add(1);
    let groups = patients.div_ceil(largest);
    (1..=groups)
        .map(|group| group * patients / groups)
        .collect()
}

impl Groups {
    /// Those of patients who have these labels, in the order of their groups.
    pub(super) fn of(labels: Labels, partners: usize) -> Self {
        Self {
            ends: ends(labels.patients(), partners),
            labels,
        }
    }

    /// How many pairs of each kind there are.
    pub(super) fn count(&self) -> PairCounts {
        let (mut counts, mut labels) = (PairCounts::default(), Vec::new());
        for group in self.ranges(0..self.ends.len()) {
            labels.clear();
            self.labels.of_pairs_within(group, &mut labels);
            let of_kind = |kind: i8| labels.iter().filter(|label| **label == kind).count() as u64;
            counts = counts.plus(PairCounts {
                similar: of_kind(1),
                dissimilar: of_kind(-1),
            });
        }
        counts
    }

    /// Partners of a patient of the largest group, relative to the mean over all.
    pub(super) fn crowding(&self) -> f64 {
        let sizes = self.ranges(0..self.ends.len()).map(|group| group.len());
        let partners: usize = sizes.map(|size| size * (size - 1)).sum();
        match partners {
            0 => 1.0,
            all => ((self.largest() - 1) * self.labels.patients()) as f64 / all as f64,
        }
    }

    /// Every so many-th group, and its patients' places; none where they would not be far fewer, or had pairs of one kind.
    pub(super) fn sample(&self) -> Option<(Vec<usize>, Self)> {
        let largest = self.largest();
        let wanted = SAMPLE_PAIRS.div_ceil((largest * largest / 2).max(1));
        let every = self.ends.len() / wanted;
        if every < FEWER {
            return None;
        }
        let (mut places, mut ends) = (Vec::new(), Vec::new());
        for group in self.ranges(0..self.ends.len()).step_by(every) {
            places.extend(group);
            ends.push(places.len());
        }
        let labels = self.labels.among(&places);
        let sample = Self { ends, labels };
        let counts = sample.count();
        (counts.similar > 0 && counts.dissimilar > 0).then_some((places, sample))
    }

    /// Whether the strips' matrices of so many columns are smaller than G X.
    pub(super) fn are_many(&self, columns: usize) -> bool {
        self.labels.patients() > STRIPS * columns
    }

    /// One pass over the pairs.
    pub(super) fn pass(&self, pass: &Pass<'_>) -> Passed {
        self.walk(pass, None).0
    }

    /// One pass, and X'GX of these columns X of the patients, not below the diagonal; of distances X'(G - diag(r))X. G X is never held.
    pub(super) fn derived(
        &self,
        pass: &Pass<'_>,
        patients: &SharedPatients,
    ) -> (Passed, Array2<f64>) {
        let (passed, gradient) = self.walk(pass, Some(patients));
        (passed, gradient.unwrap_or_default())
    }

    fn walk(
        &self,
        pass: &Pass<'_>,
        patients: Option<&SharedPatients>,
    ) -> (Passed, Option<Array2<f64>>) {
        let strips = blocks(self.ends.len(), self.ends.len().div_ceil(STRIPS));
        let parts = strips.into_par_iter().with_max_len(1);
        let parts = parts.map(|groups| self.strip(pass, patients, groups));
        joined(parts.collect(), pass)
    }

    /// The places of the patients of some groups, group by group.
    fn ranges(&self, groups: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        groups.map(|group| self.begin(group)..self.ends[group])
    }

    fn begin(&self, group: usize) -> usize {
        group.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn largest(&self) -> usize {
        let sizes = self.ranges(0..self.ends.len()).map(|group| group.len());
        sizes.max().unwrap_or(0)
    }

    fn strip(
        &self,
        pass: &Pass<'_>,
        patients: Option<&SharedPatients>,
        groups: Range<usize>,
    ) -> Part {
        let places = self.begin(groups.start)..self.begin(groups.end);
        let columns = patients.map_or(0, SharedPatients::ncols);
        let mut part = Part {
            tallies: Tallies::new(),
            curvature: 0.0,
            weighted: pass
                .factor
                .map(|factor| Array2::zeros((places.len(), factor.ncols()))),
            sums: pass.sums.of_rows(|| RowSums::zeros(places.len())),
            gradient: patients.map(|_| Array2::zeros((columns, columns))),
        };
        let mut scratch = Scratch::default();
        let length = GATHERED.div_ceil(self.largest().max(1));
        let mut product = Array2::zeros((length * self.largest(), columns));
        let mut rows_of_some = Vec::new();
        for some in blocks(groups.len(), length) {
            let some = groups.start + some.start..groups.start + some.end;
            let gathered = self.begin(some.start)..self.begin(some.end);
            let own =
                patients.map(|patients| patients.stretch(gathered.clone(), &mut rows_of_some));
            for group in self.ranges(some) {
                let size = group.len();
                self.sweep(pass, &group, &mut scratch, &mut part.tallies);
                if pass.sums == Sums::Curvature {
                    part.curvature += curvature_sum(&scratch.above, pass.kinds);
                }
                if pass.factor.is_none() && pass.sums != Sums::Rows {
                    continue;
                }
                scratch.mirror(size);
                let derivatives = ArrayView2::from_shape((size, size), &scratch.square);
                let derivatives = derivatives.expect("the scratch is of one group");
                let rows = group.start - places.start..group.end - places.start;
                part.add(pass, &derivatives, (&group, rows.clone()));
                if let Some(own) = &own {
                    let within = group.start - gathered.start..group.end - gathered.start;
                    let own = own.slice(s![within.clone(), ..]);
                    let mut made = product.slice_mut(s![within, ..]);
                    add_product(1.0, &derivatives, &own, 0.0, &mut made);
                    part.take_diagonal(pass, rows, (&own, &mut made));
                }
            }
            if let (Some(own), Some(gradient)) = (&own, &mut part.gradient) {
                let made = product.slice(s![..own.nrows(), ..]);
                add_to_upper(own, &made, &mut gradient.view_mut());
            }
        }
        part
    }

    /// Has G_ij of the pairs of a group above the diagonal.
    fn sweep(
        &self,
        pass: &Pass<'_>,
        group: &Range<usize>,
        scratch: &mut Scratch,
        tallies: &mut Tallies,
    ) {
        let Scratch {
            columns,
            above,
            labels,
            ..
        } = scratch;
        let (size, rank) = (group.len(), pass.projected.ncols());
        let flat = pass.projected.as_slice().expect("a product is row-major");
        let own = &flat[group.start * rank..group.end * rank];
        columns.resize(rank * size, 0.0);
        for (place, row) in own.chunks(rank).enumerate() {
            for (entry, column) in row.iter().zip(columns.chunks_mut(size)) {
                column[place] = *entry;
            }
        }
        above.resize(size * (size - 1) / 2, 0.0);
        let mut rest = above.as_mut_slice();
        for (place, row) in own.chunks(rank).enumerate() {
            let (values, behind) = rest.split_at_mut(size - place - 1);
            rest = behind;
            if values.is_empty() {
                break;
            }
            products(row, &columns[place + 1..], size, values);
            if let Some(squares) = &pass.squares {
                let squares = squares.slice(s![group.clone()]);
                let (mine, theirs) = (squares[place], squares.slice(s![place + 1..]));
                let values = values.iter_mut().zip(theirs);
                values.for_each(|(value, theirs)| *value = 2.0 * *value - mine - theirs);
            }
        }
        labels.clear();
        self.labels.of_pairs_within(group.clone(), labels);
        sweep_labelled(above, labels, pass.kinds, tallies);
    }
}

impl Scratch {
    /// Has the whole matrix of a group of so many: what is above the diagonal on both sides, and 0 on it.
    fn mirror(&mut self, size: usize) {
        self.square.resize(size * size, 0.0);
        let mut rest = self.above.as_slice();
        for row in 0..size {
            let (own, behind) = rest.split_at(size - row - 1);
            rest = behind;
            self.square[row * size + row] = 0.0;
            self.square[row * size + row + 1..(row + 1) * size].copy_from_slice(own);
            for (column, value) in (row + 1..size).zip(own) {
                self.square[column * size + row] = *value;
            }
        }
    }
}

impl Part {
    /// Adds a group's rows of G F, and the sums of its rows.
    fn add(
        &mut self,
        pass: &Pass<'_>,
        derivatives: &ArrayView2<f64>,
        (group, rows): (&Range<usize>, Range<usize>),
    ) {
        if let (Some(weighted), Some(factor)) = (&mut self.weighted, pass.factor) {
            let own = factor.slice(s![group.clone(), ..]);
            let mut target = weighted.slice_mut(s![rows.clone(), ..]);
            add_product(1.0, derivatives, &own, 0.0, &mut target);
        }
        let Some(sums) = &mut self.sums else { return };
        for (row, derivatives) in rows.zip(derivatives.rows()) {
            sums.derivatives[row] = derivatives.sum();
            let curved = derivatives.iter().map(|one| curvature(*one, pass.kinds));
            sums.curvatures[row] = curved.sum();
        }
    }

    /// Of distances: G X becomes (G - diag(r)) X.
    fn take_diagonal(
        &self,
        pass: &Pass<'_>,
        rows: Range<usize>,
        (own, made): (&ArrayView2<f64>, &mut ArrayViewMut2<f64>),
    ) {
        if let (Some(_), Some(sums)) = (&pass.squares, &self.sums) {
            super::take_from_diagonal(made, &sums.derivatives.slice(s![rows]), own);
        }
    }
}

/// The strips' parts, in their order.
fn joined(parts: Vec<Part>, pass: &Pass<'_>) -> (Passed, Option<Array2<f64>>) {
    let patients = pass.projected.nrows();
    let mut passed = Passed {
        loss: 0.0,
        derivative: 0.0,
        curvature: 0.0,
        weighted: pass.factor.map(|factor| Array2::zeros(factor.raw_dim())),
        sums: pass.sums.of_rows(|| RowSums::zeros(patients)),
    };
    let (mut gradient, mut begin): (Option<Array2<f64>>, usize) = (None, 0);
    for part in parts {
        passed.loss += part.tallies.loss(pass.kinds);
        passed.derivative -= part.tallies.derivative();
        passed.curvature += part.curvature;
        let mut end = begin;
        if let (Some(weighted), Some(own)) = (&mut passed.weighted, part.weighted) {
            end = begin + own.nrows();
            weighted.slice_mut(s![begin..end, ..]).assign(&own);
        }
        if let (Some(sums), Some(own)) = (&mut passed.sums, part.sums) {
            end = begin + own.derivatives.len();
            let place = s![begin..end];
            sums.derivatives.slice_mut(place).assign(&own.derivatives);
            sums.curvatures.slice_mut(place).assign(&own.curvatures);
        }
        begin = end;
        match (&mut gradient, part.gradient) {
            (Some(gradient), Some(own)) => *gradient += &own,
            (empty, own) => *empty = own,
        }
    }
    (passed, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::unpsl::pair_loss::{Form, PairLoss, PairWeightValues, Pairs};
    use ndarray::{Array1, Axis};

    const WEIGHTS: PairWeightValues = PairWeightValues {
        similar: 0.8,
        dissimilar: 1.3,
    };

    fn numbers(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            libm::sin((1 + row * 37 + column * 101) as f64) + 0.2 * (column as f64)
        })
    }

    #[test]
    fn every_patient_is_in_one_group_of_as_many_as_all_others() {
        for (patients, partners) in [(0, 3), (1, 3), (7, 3), (8, 3), (90, 7), (1000, 1), (50, 49)] {
            let order = order(patients, partners, Seed(5));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..patients));
            let codes = order.iter().map(|patient| *patient as u32 % 3).collect();
            let groups = Groups::of(Labels::Classes(codes), partners);
            let sizes = groups.ranges(0..groups.ends.len()).map(|group| {
                assert!(order[group.clone()].is_sorted());
                group.len()
            });
            let sizes: Vec<usize> = sizes.collect();
            assert_eq!(sizes.iter().sum::<usize>(), patients);
            let least = (partners + 1).min(patients);
            let fits = |size: &usize| (least..=2 * partners + 1).contains(size);
            assert!(sizes.iter().all(fits), "{patients} {partners}: {sizes:?}");
            let pairs: usize = sizes.iter().map(|size| size * (size - 1) / 2).sum();
            assert_eq!(groups.count().total(), pairs as u64);
            if let Some(largest) = sizes.iter().max().filter(|_| pairs > 0) {
                let crowding = ((largest - 1) * patients) as f64 / (2 * pairs) as f64;
                assert!((groups.crowding() - crowding).abs() < 1e-12);
            }
        }
        assert_ne!(order(90, 7, Seed(5)), order(90, 7, Seed(6)));
    }

    /// Of all features, pair by pair: the gradient, and the sum of the second derivatives of each patient, who come as they do.
    fn by_pairs(
        patients: &Array2<f64>,
        metric: &Array2<f64>,
        form: Form,
    ) -> (Array2<f64>, Array1<f64>) {
        let order = order(700, 6, Seed(4));
        let placed = patients.dot(metric);
        let (mut gradient, mut curvatures) = (Array2::zeros((5, 5)), Array1::zeros(700));
        let groups = Groups::of(Labels::Classes(Array1::zeros(700)), 6);
        for group in groups.ranges(0..groups.ends.len()) {
            let members = &order[group];
            for (at, one) in members.iter().enumerate() {
                for other in &members[at + 1..] {
                    let (one, other) = (*one, *other);
                    let apart = &patients.row(one) - &patients.row(other);
                    let far = &placed.row(one) - &placed.row(other);
                    let (sign, weight) = match one % 3 == other % 3 {
                        true => (1.0, WEIGHTS.similar),
                        false => (-1.0, WEIGHTS.dissimilar),
                    };
                    let z = sign
                        * match form {
                            Form::InnerProduct => placed.row(one).dot(&placed.row(other)) - 0.4,
                            Form::Distance => 0.4 - far.dot(&far),
                        };
                    let sigma = 1.0 / (1.0 + libm::exp(z));
                    let outer = |a: &Array1<f64>, b: &Array1<f64>| {
                        let (a, b) = (a.view().insert_axis(Axis(1)), b.view());
                        a.dot(&b.insert_axis(Axis(0)))
                    };
                    let (x, y) = (patients.row(one).to_owned(), patients.row(other).to_owned());
                    let slope = -sign * weight * sigma;
                    gradient += &match form {
                        Form::InnerProduct => (outer(&x, &y) + outer(&y, &x)) * (0.5 * slope),
                        Form::Distance => outer(&apart, &apart) * -slope,
                    };
                    for row in [one, other] {
                        curvatures[row] += weight * sigma * (1.0 - sigma);
                    }
                }
            }
        }
        (gradient, curvatures)
    }

    #[test]
    fn derivatives_are_those_of_each_pair() {
        let (patients, metric) = (numbers(700, 5), numbers(5, 2) * 0.5);
        let labels = Labels::Classes((0..700).map(|patient| patient % 3).collect());
        for form in [Form::InnerProduct, Form::Distance] {
            let pairs = Pairs::PerPatient(6);
            let loss = PairLoss::new(&patients.view(), &labels, pairs, WEIGHTS, form, Seed(4));
            let (gradient, curvatures) = by_pairs(&patients, &metric, form);
            for rows in [None, Some(&[0, 2, 3][..])] {
                let projected = loss.project(&metric.view());
                let found = loss.derivatives(&projected, 0.4, rows);
                let asked = rows.map_or_else(|| (0..5).collect(), <[usize]>::to_vec);
                let own = patients.select(Axis(1), &asked);
                let means = curvatures.dot(&own) / curvatures.sum();
                let centred = match form {
                    Form::InnerProduct => own,
                    Form::Distance => own - means,
                };
                let weighted = &centred * &curvatures.view().insert_axis(Axis(1));
                let near = |found: &Array2<f64>, wanted: &Array2<f64>| {
                    let largest = wanted.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
                    let off = (found - wanted).mapv(f64::abs);
                    assert!(
                        off.iter().all(|off| *off < 1e-12 * largest),
                        "{form:?} {rows:?}"
                    );
                };
                let of_rows = gradient.select(Axis(0), &asked).select(Axis(1), &asked);
                near(&found.gradient, &of_rows);
                near(&found.curvature, &centred.t().dot(&weighted));
                assert!((found.curvature_sum / curvatures.sum() - 1.0).abs() < 1e-13);
                assert_eq!(found.slope.is_some(), rows.is_some());
                if let Some(slope) = &found.slope {
                    near(slope, &gradient.dot(&metric));
                }
            }
        }
    }
}
