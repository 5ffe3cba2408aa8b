//! A number of pairs per patient, drawn from the seed: memory grows with the pairs alone.

use ndarray::parallel::prelude::*;
use ndarray::{Array2, Axis};
use rand::seq::index;

use super::LossValue;
use crate::learn::unpsl::labels::{Labels, PairCounts};
use crate::learn::unpsl::sweep::{Kinds, Tallies, sweep_labelled};
use crate::numeric::linear_algebra::inner;
use crate::numeric::seed::Seed;

/// Patients that one thread handles at a time.
const BLOCK_PATIENTS: usize = 512;
/// Draws per wanted partner before a patient's labelled partners are listed one by one.
const DRAWS_PER_PARTNER: usize = 8;

/// Drawn pairs, each listed at both of its patients.
pub(super) struct DrawnPairs {
    /// The partners of patient i are `partners[offsets[i]..offsets[i + 1]]`, ascending.
    offsets: Vec<usize>,
    partners: Vec<u32>,
    labels: Vec<i8>,
}

impl DrawnPairs {
    pub(super) fn new(labels: &Labels, partners: usize, seed: Seed) -> Self {
        let mut pairs = draw(labels, partners, seed);
        let reversed: Vec<_> = pairs.iter().map(|&[one, other]| [other, one]).collect();
        pairs.extend(reversed);
        pairs.sort_unstable();
        let mut offsets = vec![0; labels.patients() + 1];
        for &[one, _] in &pairs {
            offsets[one as usize + 1] += 1;
        }
        for patient in 0..labels.patients() {
            offsets[patient + 1] += offsets[patient];
        }
        Self {
            offsets,
            partners: pairs.iter().map(|pair| pair[1]).collect(),
            labels: pairs
                .iter()
                .map(|&[one, other]| labels.of_pair(one as usize, other as usize))
                .collect(),
        }
    }

    /// The loss at E, and G E into `weighted` where asked for. Every pair is met from both ends, so
    /// that every row of G E is written by one thread.
    pub(super) fn loss(
        &self,
        projected: &Array2<f64>,
        kinds: Kinds,
        weighted: Option<&mut Array2<f64>>,
    ) -> LossValue {
        let projected = projected.as_standard_layout();
        let rank = projected.ncols();
        let flat = projected.as_slice().expect("standard layout");
        let row = |patient: usize| &flat[patient * rank..(patient + 1) * rank];
        let sweep = |patient: usize, values: &mut Vec<f64>, tallies: &mut Tallies| {
            let range = self.offsets[patient]..self.offsets[patient + 1];
            let partners = &self.partners[range.clone()];
            let mine = row(patient);
            values.clear();
            values.extend(
                partners
                    .iter()
                    .map(|&other| inner(mine, row(other as usize))),
            );
            sweep_labelled(values, &self.labels[range.clone()], kinds, tallies);
            range
        };
        let parts: Vec<Tallies> = if let Some(weighted) = weighted {
            let blocks = weighted
                .axis_chunks_iter_mut(Axis(0), BLOCK_PATIENTS)
                .into_par_iter();
            let part = |(block, mut rows): (usize, ndarray::ArrayViewMut2<f64>)| {
                let (mut values, mut tallies) = (Vec::new(), Tallies::new());
                for (at, mut target) in rows.rows_mut().into_iter().enumerate() {
                    let range = sweep(block * BLOCK_PATIENTS + at, &mut values, &mut tallies);
                    let target = target.as_slice_mut().expect("rows are contiguous");
                    target.fill(0.0);
                    for (&other, &factor) in self.partners[range].iter().zip(&values) {
                        let theirs = row(other as usize);
                        target
                            .iter_mut()
                            .zip(theirs)
                            .for_each(|(sum, e)| *sum += factor * e);
                    }
                }
                tallies
            };
            blocks.enumerate().map(part).collect()
        } else {
            let patients = projected.nrows();
            let blocks = (0..patients.div_ceil(BLOCK_PATIENTS)).into_par_iter();
            let part = |block: usize| {
                let (mut values, mut tallies) = (Vec::new(), Tallies::new());
                let begin = block * BLOCK_PATIENTS;
                for patient in begin..(begin + BLOCK_PATIENTS).min(patients) {
                    sweep(patient, &mut values, &mut tallies);
                }
                tallies
            };
            blocks.map(part).collect()
        };
        total(&parts, kinds)
    }
}

/// The sum over all blocks; every pair was seen from both its ends.
fn total(parts: &[Tallies], kinds: Kinds) -> LossValue {
    let (mut loss, mut derivative) = (0.0, 0.0);
    for Tallies {
        similar,
        dissimilar,
    } in parts
    {
        loss += kinds.similar * similar.loss() + kinds.dissimilar * dissimilar.loss();
        derivative += similar.derivative() + dissimilar.derivative();
    }
    LossValue {
        loss: 0.5 * loss,
        threshold_derivative: -0.5 * derivative,
    }
}

/// Counts of the pairs that [`DrawnPairs`] would hold.
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
        Labels::Classes(_) => 1, // every pair has a label
        Labels::Pairs(_) => DRAWS_PER_PARTNER,
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
