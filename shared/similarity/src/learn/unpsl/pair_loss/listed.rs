//! A list of pairs, drawn from the seed or judged: memory grows with the pairs alone.

mod derived;
mod slopes;

pub(super) use derived::Derived;
pub(super) use slopes::Slopes;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::seq::index;
use rayon::slice::ParallelSlice;

use super::{Pass, Passed, RowSums, Sums, curvature};
use crate::learn::unpsl::labels::{JudgedPairs, Labels, PairCounts};
use crate::learn::unpsl::shared::blocks;
use crate::learn::unpsl::sweep::{
    Tallies, add_rows, curvature_sum, inner_products, sweep_labelled,
};
use crate::numeric::seed::Seed;

/// Patients that one thread handles at a time.
const BLOCK_PATIENTS: usize = 512;
/// Strips of rows that are written side by side: a fixed number, so that no bit depends on threads.
const STRIPS: usize = 16;
/// Pairs whose kinds lie in one word.
const WORD: usize = u64::BITS as usize;
/// Draws per wanted partner before a patient's labelled partners are listed one by one.
const DRAWS_PER_PARTNER: usize = 8;

/// Pairs of a list, each at the first of its patients.
pub(super) struct ListedPairs {
    /// The partners behind patient i are `others[offsets[i]..offsets[i + 1]]`, ascending.
    offsets: Vec<usize>,
    others: Vec<u32>,
    alike: Alike,
}

/// Which pairs of a list are similar, a bit each.
struct Alike(Vec<u64>);

impl Alike {
    /// Those of at most 64 pairs.
    fn word(pairs: impl Iterator<Item = bool>) -> u64 {
        let bits = pairs.enumerate();
        bits.fold(0, |word, (place, is_similar)| {
            word | u64::from(is_similar) << place
        })
    }

    /// How many are.
    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// +1 of each of some pairs that is similar, -1 of each that is not.
    fn labels(&self, pairs: std::ops::Range<usize>) -> Vec<i8> {
        let words = &self.0[pairs.start / WORD..pairs.end.div_ceil(WORD)];
        let mut labels = Vec::with_capacity(words.len() * WORD);
        for word in words {
            labels.extend((0..WORD).map(|bit| if word >> bit & 1 == 1 { 1 } else { -1 }));
        }
        labels.drain(..pairs.start % WORD);
        labels.truncate(pairs.len());
        labels
    }
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
        let patients = labels.patients();
        let (offsets, others) = sorted(patients, &draw(labels, partners, seed));
        let words = others.par_chunks(WORD).enumerate().map(|(word, others)| {
            let begin = word * WORD;
            // The last who begins there has the pair.
            let mut one = offsets.partition_point(|offset| *offset <= begin) - 1;
            let is_similar = |(place, other): (usize, &u32)| {
                while offsets[one + 1] <= place {
                    one += 1;
                }
                labels.of_pair(one, *other as usize) > 0
            };
            Alike::word((begin..).zip(others).map(is_similar))
        });
        let alike = Alike(words.collect());
        Self {
            offsets,
            others,
            alike,
        }
    }

    /// The pairs of `judged`, whose patient at place p is row `row(p)` of so many.
    pub(super) fn judged(judged: &JudgedPairs, patients: usize, row: impl Fn(u32) -> u32) -> Self {
        let pairs = judged.pairs().iter();
        let labelled = pairs.map(|(pair, is_similar)| {
            let [one, other] = pair.map(&row);
            ([one.min(other), one.max(other)], *is_similar)
        });
        let mut labelled: Vec<_> = labelled.collect();
        labelled.sort_unstable();
        let of_word = |pairs: &[([u32; 2], bool)]| {
            let pairs = pairs.iter().map(|(_, is_similar)| *is_similar);
            Alike::word(pairs)
        };
        Self {
            offsets: offsets(patients, labelled.iter().map(|([one, _], _)| *one)),
            others: labelled.iter().map(|([_, other], _)| *other).collect(),
            alike: Alike(labelled.chunks(WORD).map(of_word).collect()),
        }
    }

    /// How many of each kind there are.
    pub(super) fn count(&self) -> PairCounts {
        let similar = self.alike.count();
        PairCounts {
            similar,
            dissimilar: self.others.len() as u64 - similar,
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
                .map(|factor| self.weighted(&factor, &swept.derivatives)),
            sums: pass.sums.of_rows(|| self.sums(pass, &swept.derivatives)),
        }
    }

    /// The pairs of patients from one on, up to another.
    fn pairs_of(&self, patients: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.offsets[patients.start]..self.offsets[patients.end]
    }

    /// Blocks of patients.
    fn blocks(&self) -> Vec<std::ops::Range<usize>> {
        blocks(self.offsets.len() - 1, BLOCK_PATIENTS)
    }

    /// What `fill` makes of every block of patients, whose pairs' numbers are its slice.
    fn filled<T: Send>(
        &self,
        numbers: &mut [f64],
        fill: impl Fn(&std::ops::Range<usize>, &mut [f64]) -> T + Sync,
    ) -> Vec<T> {
        let (mut rest, mut parts) = (numbers, Vec::new());
        for block in self.blocks() {
            let (own, behind) = rest.split_at_mut(self.pairs_of(&block).len());
            parts.push((block, own));
            rest = behind;
        }
        let made = parts.into_par_iter().map(|(block, own)| fill(&block, own));
        made.collect()
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
        self.swept(pass, self.compared(pass))
    }

    /// The same of what was compared.
    fn swept(&self, pass: &Pass<'_>, mut compared: Vec<f64>) -> Swept {
        let tallies = self.filled(&mut compared, |block, values| {
            let mut tallies = Tallies::new();
            let labels = self.alike.labels(self.pairs_of(block));
            sweep_labelled(values, &labels, pass.kinds, &mut tallies);
            tallies
        });
        Swept {
            derivatives: compared,
            tallies,
        }
    }

    /// s_ij of all pairs, or t_ij.
    pub(super) fn compared(&self, pass: &Pass<'_>) -> Vec<f64> {
        let mut values = vec![0.0; self.others.len()];
        self.filled(&mut values, |block, values| {
            self.compare(pass, block, values);
        });
        values
    }

    /// Over the pairs of each patient, both side by side.
    fn sums(&self, pass: &Pass<'_>, derivatives: &[f64]) -> RowSums {
        let (derivatives, curvatures) = rayon::join(
            || self.sum_rows(derivatives, |value| value),
            || self.sum_rows(derivatives, |value| curvature(value, pass.kinds)),
        );
        RowSums {
            derivatives,
            curvatures,
        }
    }

    /// Over the pairs of each patient, of what each pair's number makes.
    fn sum_rows(&self, numbers: &[f64], of: impl Fn(f64) -> f64) -> Array1<f64> {
        let patients = self.offsets.len() - 1;
        let mut sums = vec![0.0; patients];
        for patient in 0..patients {
            let pairs = self.pairs_of(&(patient..patient + 1));
            // Its pairs with those before it are in the sum by now.
            let mut own: f64 = sums[patient];
            for (other, number) in self.others[pairs.clone()].iter().zip(&numbers[pairs]) {
                let number = of(*number);
                own += number;
                sums[*other as usize] += number;
            }
            sums[patient] = own;
        }
        sums.into()
    }

    /// G F.
    fn weighted(&self, factor: &ArrayView2<f64>, derivatives: &[f64]) -> Array2<f64> {
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

/// The labelled partners of each patient, up to `wanted`, one patient's after the other's.
struct Drawn {
    /// Of patient i they are `partners[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<usize>,
    partners: Vec<u32>,
}

impl Drawn {
    /// Both patients of each pair, the first before the other.
    fn pairs(&self) -> impl Iterator<Item = [u32; 2]> {
        let ranges = self.offsets.windows(2).zip(0..);
        ranges.flat_map(|(range, patient): (_, u32)| {
            let partners = &self.partners[range[0]..range[1]];
            let pair = move |other: &u32| [patient.min(*other), patient.max(*other)];
            partners.iter().map(pair)
        })
    }
}

/// Every patient draws up to `wanted` labelled partners.
fn draw(labels: &Labels, wanted: usize, seed: Seed) -> Drawn {
    let patients = labels.patients();
    let mut stream = seed.stream("pairs", 0);
    let mut all = Vec::with_capacity(patients * wanted.min(patients));
    let mut offsets = vec![0];
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
        all.extend(partners.iter().map(|other| *other as u32));
        offsets.push(all.len());
    }
    Drawn {
        offsets,
        partners: all,
    }
}

/// Pairs sorted, each once, at the first of their patients: where those of each begin, and the others. By the first in one walk, then
/// those of each, who are few.
fn sorted(patients: usize, drawn: &Drawn) -> (Vec<usize>, Vec<u32>) {
    let mut offsets = offsets(patients, drawn.pairs().map(|[one, _]| one));
    let mut next = offsets.clone();
    let mut others = vec![0; drawn.partners.len()];
    for [one, other] in drawn.pairs() {
        let place = &mut next[one as usize];
        others[*place] = other;
        *place += 1;
    }
    let (mut rest, mut parts) = (others.as_mut_slice(), Vec::new());
    for block in blocks(patients, BLOCK_PATIENTS) {
        let (own, behind) = rest.split_at_mut(offsets[block.end] - offsets[block.start]);
        parts.push((block, own));
        rest = behind;
    }
    parts.into_par_iter().for_each(|(block, mut own)| {
        for one in block {
            let of_one = own.split_off_mut(..offsets[one + 1] - offsets[one]);
            of_one.unwrap_or_default().sort_unstable();
        }
    });
    let mut kept = 0;
    for one in 0..patients {
        let range = offsets[one]..next[one];
        offsets[one] = kept;
        for place in range {
            if kept == offsets[one] || others[kept - 1] != others[place] {
                others[kept] = others[place];
                kept += 1;
            }
        }
    }
    offsets[patients] = kept;
    others.truncate(kept);
    others.shrink_to_fit();
    (offsets, others)
}

/// Where what each patient has begins, among what all have one after another.
fn offsets(patients: usize, each: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut offsets = vec![0; patients + 1];
    each.for_each(|patient| offsets[patient as usize + 1] += 1);
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
        let mut pairs: Vec<_> = draw(&labels, 7, Seed(5)).pairs().collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert!(pairs.is_sorted_by(|one, next| one < next));
        assert!(pairs.iter().all(|[one, other]| one < other));
        let listed = ListedPairs::new(&labels, 7, Seed(5));
        assert_eq!(listed.others.len(), pairs.len());
        for patient in 0..90_u32 {
            let range = listed.offsets[patient as usize]..listed.offsets[patient as usize + 1];
            let behind = pairs.iter().filter(|[one, _]| *one == patient);
            let wanted: Vec<u32> = behind.map(|[_, other]| *other).collect();
            assert_eq!(listed.others[range.clone()], wanted);
            for (partner, label) in wanted.iter().zip(listed.alike.labels(range)) {
                let is_similar = partner % 3 == patient % 3;
                assert_eq!(label, if is_similar { 1 } else { -1 });
            }
            let of_patient = pairs.iter().filter(|pair| pair.contains(&patient));
            assert!(
                of_patient.count() >= 7,
                "patient {patient} draws 7 partners"
            );
        }
    }
}
