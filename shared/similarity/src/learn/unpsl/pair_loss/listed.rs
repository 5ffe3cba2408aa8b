//! A list of pairs, drawn from the seed or judged: memory grows with the pairs alone.

mod derived;
mod slopes;

pub(super) use derived::Derived;
pub(super) use slopes::Slopes;

use ndarray::parallel::prelude::*;
use ndarray::{Array2, Axis};
use rand::seq::index;

use super::{Pass, Passed, RowSums, Sums, curvature};
use crate::learn::unpsl::labels::{JudgedPairs, Labels, PairCounts};
use crate::learn::unpsl::sweep::{
    Tallies, add_rows, curvature_sum, inner_products, sweep_labelled,
};
use crate::numeric::seed::Seed;

/// Patients that one thread handles at a time.
const BLOCK_PATIENTS: usize = 512;
/// Strips of rows that are written side by side: a fixed number, so that no bit depends on threads.
const STRIPS: usize = 16;
/// Draws per wanted partner before a patient's labelled partners are listed one by one.
const DRAWS_PER_PARTNER: usize = 8;

/// Pairs of a list, each at the first of its patients.
pub(super) struct ListedPairs {
    /// The partners behind patient i are `others[offsets[i]..offsets[i + 1]]`, ascending.
    offsets: Vec<usize>,
    others: Vec<u32>,
    labels: Vec<i8>,
}

/// What a sweep makes of the pairs, in their order.
struct Swept {
    /// G_ij.
    derivatives: Vec<f64>,
    /// Of each block of patients.
    tallies: Vec<Tallies>,
}

impl ListedPairs {
    pub(super) fn new(labels: &Labels, partners: usize, seed: Seed) -> Self {
        let label = |[one, other]: [u32; 2]| labels.of_pair(one as usize, other as usize);
        let pairs = draw(labels, partners, seed);
        Self::listed(labels.patients(), &pairs, |_, pair| label(pair))
    }

    /// The pairs of `judged`, whose patient at place p is row `rows[p]`.
    pub(super) fn judged(judged: &JudgedPairs, rows: &[usize]) -> Self {
        let row = |place: u32| rows[place as usize] as u32;
        let pairs = judged.pairs().iter();
        let labelled = pairs.map(|(pair, is_similar)| {
            let [one, other] = pair.map(row);
            ([one.min(other), one.max(other)], *is_similar)
        });
        let mut labelled: Vec<_> = labelled.collect();
        labelled.sort_unstable();
        let pairs: Vec<_> = labelled.iter().map(|(pair, _)| *pair).collect();
        Self::listed(rows.len(), &pairs, |place, _| match labelled[place].1 {
            true => 1,
            false => -1,
        })
    }

    /// Pairs [i, j] with i < j, sorted, each once, and the label of each.
    fn listed(patients: usize, pairs: &[[u32; 2]], label: impl Fn(usize, [u32; 2]) -> i8) -> Self {
        let labels = pairs.iter().enumerate();
        Self {
            offsets: offsets(patients, pairs.iter().map(|[one, _]| one)),
            others: pairs.iter().map(|[_, other]| *other).collect(),
            labels: labels.map(|(place, pair)| label(place, *pair)).collect(),
        }
    }

    /// How many of each kind there are.
    pub(super) fn count(&self) -> PairCounts {
        let similar = self.labels.iter().filter(|label| **label > 0).count();
        PairCounts {
            similar: similar as u64,
            dissimilar: (self.labels.len() - similar) as u64,
        }
    }

    /// One pass. Every pair is compared once; every row of G F is written by one thread, which adds what each pair is to it in their order.
    pub(super) fn pass(&self, pass: &Pass<'_>) -> Passed {
        let swept = self.sweep(pass);
        let (loss, derivative) = swept.totals(pass);
        Passed {
            loss,
            derivative: -derivative,
            curvature: match pass.sums {
                Sums::Loss | Sums::Rows => 0.0,
                Sums::Curvature => curvature_sum(&swept.derivatives, pass.kinds),
            },
            weighted: pass
                .factor
                .map(|factor| self.weighted(factor, &swept.derivatives)),
            sums: pass.sums.of_rows(|| self.sums(pass, &swept.derivatives)),
        }
    }

    /// The pairs of patients from one on, up to another.
    fn pairs_of(&self, patients: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.offsets[patients.start]..self.offsets[patients.end]
    }

    /// Blocks of patients.
    fn blocks(&self) -> Vec<std::ops::Range<usize>> {
        let patients = self.offsets.len() - 1;
        let blocks = (0..patients).step_by(BLOCK_PATIENTS);
        blocks
            .map(|begin| begin..(begin + BLOCK_PATIENTS).min(patients))
            .collect()
    }

    /// What `fill` makes of every block of patients, whose pairs' numbers are its slice.
    fn filled<T: Send>(
        &self,
        fill: impl Fn(&std::ops::Range<usize>, &mut [f64]) -> T + Sync,
    ) -> (Vec<f64>, Vec<T>) {
        let mut numbers = vec![0.0; self.others.len()];
        let (mut rest, mut parts) = (numbers.as_mut_slice(), Vec::new());
        for block in self.blocks() {
            let (own, behind) = rest.split_at_mut(self.pairs_of(&block).len());
            parts.push((block, own));
            rest = behind;
        }
        let made = parts.into_par_iter().map(|(block, own)| fill(&block, own));
        let made = made.collect();
        (numbers, made)
    }

    /// s_ij of the pairs of a block, or t_ij.
    fn compare(&self, pass: &Pass<'_>, block: &std::ops::Range<usize>, values: &mut [f64]) {
        let flat = pass.projected.as_slice().expect("a product is row-major");
        let rank = pass.projected.ncols();
        let mut rest = values;
        for patient in block.clone() {
            let others = &self.others[self.pairs_of(&(patient..patient + 1))];
            let (own, behind) = rest.split_at_mut(others.len());
            rest = behind;
            inner_products(&flat[patient * rank..][..rank], flat, others, own);
            if let Some(squares) = &pass.squares {
                for (value, other) in own.iter_mut().zip(others) {
                    *value = 2.0 * *value - squares[patient] - squares[*other as usize];
                }
            }
        }
    }

    fn sweep(&self, pass: &Pass<'_>) -> Swept {
        let (derivatives, tallies) = self.filled(|block, values| {
            self.compare(pass, block, values);
            let mut tallies = Tallies::new();
            let labels = &self.labels[self.pairs_of(block)];
            sweep_labelled(values, labels, pass.kinds, &mut tallies);
            tallies
        });
        Swept {
            derivatives,
            tallies,
        }
    }

    /// Over the pairs of each patient.
    fn sums(&self, pass: &Pass<'_>, derivatives: &[f64]) -> RowSums {
        let patients = self.offsets.len() - 1;
        let mut sums = RowSums::zeros(patients);
        for patient in 0..patients {
            let pairs = self.pairs_of(&(patient..patient + 1));
            for (other, value) in self.others[pairs.clone()].iter().zip(&derivatives[pairs]) {
                let curved = curvature(*value, pass.kinds);
                for row in [patient, *other as usize] {
                    sums.derivatives[row] += value;
                    sums.curvatures[row] += curved;
                }
            }
        }
        sums
    }

    /// G F.
    fn weighted(&self, factor: &Array2<f64>, derivatives: &[f64]) -> Array2<f64> {
        let (patients, columns) = factor.dim();
        let flat = factor.as_slice().expect("standard layout");
        let mut weighted = Array2::zeros((patients, columns));
        let length = patients.div_ceil(STRIPS).max(1);
        let strips = weighted.axis_chunks_iter_mut(Axis(0), length);
        let strips: Vec<_> = strips.enumerate().collect();
        strips.into_par_iter().for_each(|(strip, mut target)| {
            let rows = strip * length..(strip * length + target.nrows());
            let target = target.as_slice_mut().expect("rows are contiguous");
            self.add_before(&rows, (flat, columns), derivatives, target);
            for (patient, target) in rows.zip(target.chunks_mut(columns.max(1))) {
                let pairs = self.pairs_of(&(patient..patient + 1));
                let others = &self.others[pairs.clone()];
                add_rows(target, flat, others, &derivatives[pairs]);
            }
        });
        weighted
    }

    /// Adds to these rows what each has of patients before it.
    fn add_before(
        &self,
        rows: &std::ops::Range<usize>,
        (flat, columns): (&[f64], usize),
        derivatives: &[f64],
        target: &mut [f64],
    ) {
        for patient in 0..rows.end {
            let pairs = self.pairs_of(&(patient..patient + 1));
            let others = &self.others[pairs.clone()];
            let first = others.partition_point(|other| (*other as usize) < rows.start);
            let own = &flat[patient * columns..][..columns];
            let pairs = others[first..].iter().zip(&derivatives[pairs][first..]);
            for (other, value) in pairs.take_while(|(other, _)| (**other as usize) < rows.end) {
                let at = (*other as usize - rows.start) * columns;
                let sums = target[at..at + columns].iter_mut().zip(own);
                sums.for_each(|(sum, own)| *sum += value * own);
            }
        }
    }
}

impl Swept {
    /// The loss, and the sum of G_ij over the pairs.
    fn totals(&self, pass: &Pass<'_>) -> (f64, f64) {
        let (mut loss, mut derivative) = (0.0, 0.0);
        for Tallies {
            similar,
            dissimilar,
        } in &self.tallies
        {
            loss += pass.kinds.similar * similar.loss();
            loss += pass.kinds.dissimilar * dissimilar.loss();
            derivative += similar.derivative() + dissimilar.derivative();
        }
        (loss, derivative)
    }
}

/// Counts of the pairs that [`ListedPairs::new`] would hold.
pub(in crate::learn::unpsl) fn count_drawn(
    labels: &Labels,
    partners: usize,
    seed: Seed,
) -> PairCounts {
    ListedPairs::new(labels, partners, seed).count()
}

/// Pairs [i, j] with i < j, sorted, each once: every patient draws up to `wanted` labelled partners.
fn draw(labels: &Labels, wanted: usize, seed: Seed) -> Vec<[u32; 2]> {
    let patients = labels.patients();
    let mut stream = seed.stream("pairs", 0);
    let mut pairs = Vec::with_capacity(patients * wanted.min(patients));
    let draws_per_partner = match labels {
        Labels::Classes(_) | Labels::Both { .. } => 1, // every pair has a label
        Labels::Pairs(_) | Labels::Judged(_) => DRAWS_PER_PARTNER,
    };
    for patient in 0..patients {
        let others = patients - 1;
        let draws = wanted.saturating_mul(draws_per_partner).min(others);
        let drawn = index::sample(&mut stream, others, draws);
        // indices skip the patient, so every draw is another patient
        let other = |at: usize| at + usize::from(at >= patient);
        let labelled = |&candidate: &usize| labels.of_pair(patient, candidate) != 0;
        let mut partners: Vec<usize> = drawn
            .iter()
            .map(other)
            .filter(labelled)
            .take(wanted)
            .collect();
        if partners.len() < wanted && draws < others {
            partners = (0..patients).filter(labelled).collect();
            let kept = index::sample(&mut stream, partners.len(), wanted.min(partners.len()));
            partners = kept.iter().map(|at| partners[at]).collect();
        }
        pairs.extend(
            partners
                .iter()
                .map(|&other| [patient.min(other) as u32, patient.max(other) as u32]),
        );
    }
    sorted(patients, &pairs)
}

/// Pairs [i, j] with i < j sorted, each once: by i in one walk, then those of each i, who are few.
fn sorted(patients: usize, pairs: &[[u32; 2]]) -> Vec<[u32; 2]> {
    let offsets = offsets(patients, pairs.iter().map(|[one, _]| one));
    let mut next = offsets.clone();
    let mut others = vec![0; pairs.len()];
    for [one, other] in pairs {
        let place = &mut next[*one as usize];
        others[*place] = *other;
        *place += 1;
    }
    let mut sorted: Vec<[u32; 2]> = Vec::with_capacity(pairs.len());
    for (one, range) in offsets.windows(2).enumerate() {
        let own = &mut others[range[0]..range[1]];
        own.sort_unstable();
        sorted.extend(own.iter().map(|other| [one as u32, *other]));
    }
    sorted.dedup();
    sorted
}

/// Where what each patient has begins, among what all have one after another.
fn offsets<'p>(patients: usize, each: impl Iterator<Item = &'p u32>) -> Vec<usize> {
    let mut offsets = vec![0; patients + 1];
    each.for_each(|patient| offsets[*patient as usize + 1] += 1);
    for patient in 0..patients {
        offsets[patient + 1] += offsets[patient];
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_pairs_are_each_once_and_every_patient_has_its_partners() {
        let codes = (0..90).map(|patient| patient % 3).collect();
        let labels = Labels::Classes(codes);
        let pairs = draw(&labels, 7, Seed(5));
        assert!(pairs.is_sorted_by(|one, next| one < next));
        assert!(pairs.iter().all(|[one, other]| one < other));
        let listed = ListedPairs::new(&labels, 7, Seed(5));
        assert_eq!(listed.others.len(), pairs.len());
        for patient in 0..90_u32 {
            let range = listed.offsets[patient as usize]..listed.offsets[patient as usize + 1];
            let behind = pairs.iter().filter(|[one, _]| *one == patient);
            let wanted: Vec<u32> = behind.map(|[_, other]| *other).collect();
            assert_eq!(listed.others[range.clone()], wanted);
            for (partner, label) in wanted.iter().zip(&listed.labels[range]) {
                let is_similar = partner % 3 == patient % 3;
                assert_eq!(*label, if is_similar { 1 } else { -1 });
            }
            let of_patient = pairs.iter().filter(|pair| pair.contains(&patient));
            assert!(
                of_patient.count() >= 7,
                "patient {patient} draws 7 partners"
            );
        }
    }
}
