//! A list of pairs, drawn from the seed or judged: memory grows with the pairs alone.

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, Axis, concatenate};
use rand::seq::index;

use super::{Pass, Passed, RowSums, curvature};
use crate::learn::unpsl::labels::{JudgedPairs, Labels, PairCounts};
use crate::learn::unpsl::sweep::{Tallies, sweep_labelled};
use crate::numeric::portable::inner;
use crate::numeric::seed::Seed;

/// Patients that one thread handles at a time.
const BLOCK_PATIENTS: usize = 512;
/// Draws per wanted partner before a patient's labelled partners are listed one by one.
const DRAWS_PER_PARTNER: usize = 8;

/// Pairs of a list, each at both of its patients.
pub(super) struct ListedPairs {
    /// The partners of patient i are `partners[offsets[i]..offsets[i + 1]]`, ascending.
    offsets: Vec<usize>,
    partners: Vec<u32>,
    labels: Vec<i8>,
}

impl ListedPairs {
    pub(super) fn new(labels: &Labels, partners: usize, seed: Seed) -> Self {
        let label = |[one, other]: [u32; 2]| labels.of_pair(one as usize, other as usize);
        let pairs = draw(labels, partners, seed).into_iter();
        let labelled = pairs.map(|pair| (pair, label(pair)));
        Self::listed(labels.patients(), &labelled.collect::<Vec<_>>())
    }

    /// The pairs of `judged`, whose patient at place p is row `rows[p]`.
    pub(super) fn judged(judged: &JudgedPairs, rows: &[usize]) -> Self {
        let row = |place: u32| rows[place as usize] as u32;
        let label = |is_similar: bool| if is_similar { 1 } else { -1 };
        let pairs = judged.pairs().iter();
        let labelled = pairs.map(|(pair, is_similar)| {
            let [one, other] = pair.map(row);
            ([one.min(other), one.max(other)], label(*is_similar))
        });
        let mut labelled: Vec<_> = labelled.collect();
        labelled.sort_unstable();
        Self::listed(rows.len(), &labelled)
    }

    /// Pairs [i, j] with i < j and their labels, sorted, each once. So the partners of a patient come in order: first those before it, each
    /// from a pair that begins with that partner, then those behind it.
    fn listed(patients: usize, pairs: &[([u32; 2], i8)]) -> Self {
        let offsets = offsets(patients, pairs.iter().flat_map(|(pair, _)| pair));
        let mut next = offsets.clone();
        let mut partners = vec![0; 2 * pairs.len()];
        let mut labels = vec![0; partners.len()];
        for ([one, other], label) in pairs {
            for (patient, partner) in [(one, other), (other, one)] {
                let place = &mut next[*patient as usize];
                partners[*place] = *partner;
                labels[*place] = *label;
                *place += 1;
            }
        }
        Self {
            offsets,
            partners,
            labels,
        }
    }

    /// One pass. Every pair is met from both ends, so that every row of G F is written by one thread.
    pub(super) fn pass(&self, pass: &Pass<'_>) -> Passed {
        let projected = pass.projected.as_standard_layout();
        let patients = projected.nrows();
        let rank = projected.ncols();
        let flat = projected.as_slice().expect("standard layout");
        let row = |patient: usize| &flat[patient * rank..(patient + 1) * rank];
        let sweep = |patient: usize, values: &mut Vec<f64>, tallies: &mut Tallies| {
            let range = self.offsets[patient]..self.offsets[patient + 1];
            let (partners, mine) = (&self.partners[range.clone()], row(patient));
            values.clear();
            values.extend(partners.iter().map(|&other| {
                let product = inner(mine, row(other as usize));
                match &pass.squares {
                    None => product,
                    Some(squares) => 2.0 * product - squares[patient] - squares[other as usize],
                }
            }));
            sweep_labelled(values, &self.labels[range.clone()], pass.kinds, tallies);
            range
        };
        let parts: Vec<Part> = (0..patients.div_ceil(BLOCK_PATIENTS))
            .into_par_iter()
            .map(|block| {
                let begin = block * BLOCK_PATIENTS;
                let end = (begin + BLOCK_PATIENTS).min(patients);
                let mut part = Part::new(pass, end - begin);
                let mut values = Vec::new();
                for patient in begin..end {
                    let range = sweep(patient, &mut values, &mut part.tallies);
                    part.gather(pass, patient - begin, &self.partners[range], &values);
                }
                part
            })
            .collect();
        joined(&parts, pass)
    }
}

/// What a block of patients adds.
struct Part {
    tallies: Tallies,
    weighted: Option<Array2<f64>>,
    sums: Option<RowSums>,
}

impl Part {
    fn new(pass: &Pass<'_>, patients: usize) -> Self {
        let rows = |factor: &Array2<f64>| Array2::zeros((patients, factor.ncols()));
        Self {
            tallies: Tallies::new(),
            weighted: pass.factor.map(rows),
            sums: pass.sums.then(|| RowSums::zeros(patients)),
        }
    }

    /// Adds the pairs of patient `at` of the block.
    fn gather(&mut self, pass: &Pass<'_>, at: usize, partners: &[u32], values: &[f64]) {
        if let (Some(weighted), Some(factor)) = (&mut self.weighted, pass.factor) {
            let columns = factor.ncols();
            let flat = factor.as_slice().expect("standard layout");
            let mut target = weighted.row_mut(at);
            let target = target.as_slice_mut().expect("rows are contiguous");
            for (&other, &value) in partners.iter().zip(values) {
                let theirs = &flat[other as usize * columns..][..columns];
                let sums = target.iter_mut().zip(theirs);
                sums.for_each(|(sum, theirs)| *sum += value * theirs);
            }
        }
        if let Some(sums) = &mut self.sums {
            sums.derivatives[at] = values.iter().sum();
            let curvatures = values.iter().map(|value| curvature(*value, pass.kinds));
            sums.curvatures[at] = curvatures.sum();
        }
    }
}

/// The sum over all blocks; every pair was seen from both its ends.
fn joined(parts: &[Part], pass: &Pass<'_>) -> Passed {
    let (mut loss, mut derivative) = (0.0, 0.0);
    for Tallies {
        similar,
        dissimilar,
    } in parts.iter().map(|part| &part.tallies)
    {
        loss += pass.kinds.similar * similar.loss() + pass.kinds.dissimilar * dissimilar.loss();
        derivative += similar.derivative() + dissimilar.derivative();
    }
    let sums = parts.iter().filter_map(|part| part.sums.as_ref());
    let column = |of: fn(&RowSums) -> &Array1<f64>| {
        Array1::from_iter(sums.clone().flat_map(|sums| of(sums).iter().copied()))
    };
    Passed {
        loss: 0.5 * loss,
        derivative: -0.5 * derivative,
        weighted: pass.factor.map(|factor| {
            let rows: Vec<_> = parts
                .iter()
                .filter_map(|part| part.weighted.as_ref().map(|rows| rows.view()))
                .collect();
            concatenate(Axis(0), &rows).unwrap_or_else(|_| Array2::zeros(factor.raw_dim()))
        }),
        sums: pass.sums.then(|| RowSums {
            derivatives: column(|sums| &sums.derivatives),
            curvatures: column(|sums| &sums.curvatures),
        }),
    }
}

/// Counts of the pairs that [`ListedPairs::new`] would hold.
pub(in crate::learn::unpsl) fn count_drawn(
    labels: &Labels,
    partners: usize,
    seed: Seed,
) -> PairCounts {
    let pairs = draw(labels, partners, seed);
    let similar = pairs
        .iter()
        .filter(|&&[i, j]| labels.of_pair(i as usize, j as usize) > 0)
        .count();
    PairCounts {
        similar: similar as u64,
        dissimilar: (pairs.len() - similar) as u64,
    }
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
    fn drawn_pairs_are_each_once_and_every_patient_has_its_partners_in_order() {
        let codes = (0..90).map(|patient| patient % 3).collect();
        let labels = Labels::Classes(codes);
        let pairs = draw(&labels, 7, Seed(5));
        assert!(pairs.is_sorted_by(|one, next| one < next));
        assert!(pairs.iter().all(|[one, other]| one < other));
        let listed = ListedPairs::new(&labels, 7, Seed(5));
        assert_eq!(listed.partners.len(), 2 * pairs.len());
        for patient in 0..90_u32 {
            let range = listed.offsets[patient as usize]..listed.offsets[patient as usize + 1];
            let mut wanted: Vec<u32> = Vec::new();
            for [one, other] in &pairs {
                wanted.extend((*one == patient).then_some(*other));
                wanted.extend((*other == patient).then_some(*one));
            }
            wanted.sort_unstable();
            assert!(wanted.len() >= 7, "patient {patient} draws 7 partners");
            assert_eq!(listed.partners[range.clone()], wanted);
            for (partner, label) in wanted.iter().zip(&listed.labels[range]) {
                let is_similar = partner % 3 == patient % 3;
                assert_eq!(*label, if is_similar { 1 } else { -1 });
            }
        }
    }
}
