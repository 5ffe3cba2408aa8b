//! A list of pairs, drawn from the seed or judged: memory grows with the pairs alone.

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, Axis, concatenate};
use rand::seq::index;

use super::{Pass, Passed, RowSums, curvature};
use crate::learn::unpsl::labels::{JudgedPairs, Labels, PairCounts};
use crate::learn::unpsl::sweep::{Tallies, sweep_labelled};
use crate::numeric::linear_algebra::inner;
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
        Self::listed(labels.patients(), labelled.collect())
    }

    /// The pairs of `judged`, whose patient at place p is row `rows[p]`.
    pub(super) fn judged(judged: &JudgedPairs, rows: &[usize]) -> Self {
        let row = |place: u32| rows[place as usize] as u32;
        let label = |is_similar: bool| if is_similar { 1 } else { -1 };
        let pairs = judged.pairs().iter();
        let labelled = pairs.map(|(pair, is_similar)| (pair.map(row), label(*is_similar)));
        Self::listed(rows.len(), labelled.collect())
    }

    /// Pairs with their labels, each once.
    fn listed(patients: usize, mut pairs: Vec<([u32; 2], i8)>) -> Self {
        let reversed = |&([one, other], label): &([u32; 2], i8)| ([other, one], label);
        let other_way: Vec<_> = pairs.iter().map(reversed).collect();
        pairs.extend(other_way);
        pairs.sort_unstable();
        let mut offsets = vec![0; patients + 1];
        for ([one, _], _) in &pairs {
            offsets[*one as usize + 1] += 1;
        }
        for patient in 0..patients {
            offsets[patient + 1] += offsets[patient];
        }
        Self {
            offsets,
            partners: pairs.iter().map(|(pair, _)| pair[1]).collect(),
            labels: pairs.iter().map(|(_, label)| *label).collect(),
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
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
