//! Classical multidimensional scaling of proximities: coordinates whose distances come nearest
//! sqrt(1 - P).
//!
//! Torgerson's matrix is B = -J D2 J / 2 with D2 = 1 - P and J = I - 11'/n, so B = J P J / 2. P v needs
//! only sums over terminal nodes, (1/T) sum over trees of the sum of v in each patient's node; the leading
//! eigenpairs come from Lanczos' method with full reorthogonalisation. Memory is linear in n.

use ndarray::{Array1, Array2};
use rand::RngExt;
use rayon::prelude::*;

use crate::learn::forest::trees::terminal::TerminalNodes;
use crate::numeric::linear_algebra::{LinearAlgebraError, symmetric_eigen};
use crate::numeric::seed::Seed;

/// Most Lanczos vectors.
const STEPS_MAX: usize = 160;
/// Ritz pairs are examined every so many steps.
const STEPS_BETWEEN: usize = 16;
/// A residual below this share of the largest eigenvalue counts as settled.
const TOLERANCE: f64 = 1e-8;
/// Trees are summed in so many groups, in order: fixed, so that threads change no bit.
const GROUPS: usize = 8;

/// Coordinates of patients.
#[derive(Clone, PartialEq)]
pub struct Scaling {
    /// Coordinates, n x dimensions, of norm sqrt(eigenvalue) a column; the largest entry by size is positive.
    pub coordinates: Array2<f64>,
    /// Eigenvalues of B, falling; 0 where there are fewer.
    pub eigenvalues: Array1<f64>,
    /// How it ended.
    pub status: ScalingStatus,
}

/// How the search for eigenpairs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalingStatus {
    /// All residuals are below 1e-8 of the largest eigenvalue.
    Settled,
    /// The vectors ran out first; the eigenvalues are lower bounds.
    StepsExhausted,
}

/// Scales the proximities (all trees) of patients to `dimensions` coordinates; `seed` starts the search.
///
/// # Errors
/// [`LinearAlgebraError`] where LAPACK fails on the small matrix within.
pub fn classical_scaling(
    nodes: &TerminalNodes,
    dimensions: usize,
    seed: Seed,
) -> Result<Scaling, LinearAlgebraError> {
    let patients = nodes.patients();
    let mut stream = seed.stream("scaling", 0);
    let mut start: Vec<f64> = (0..patients)
        .map(|_| stream.random::<f64>() - 0.5)
        .collect();
    centre(&mut start);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut status = ScalingStatus::StepsExhausted;
    let mut pairs = EigenPairs {
        values: Vec::new(),
        vectors: Vec::new(),
    };
    let mut next = start;
    let mut length = normalise(&mut next);
    while basis.len() < STEPS_MAX {
        // A vanishing remainder means that the basis spans everything B can reach.
        let spent = length < 1e-12 || basis.len() + 1 >= patients.max(1);
        if spent || (basis.len() >= dimensions && basis.len().is_multiple_of(STEPS_BETWEEN)) {
            pairs = tridiagonal_eigenpairs(&diagonal, &beside)?;
            let largest = pairs.values.first().copied().unwrap_or(0.0);
            let settled = pairs.vectors.iter().take(dimensions).all(|vector| {
                vector
                    .last()
                    .is_none_or(|end| (end * length).abs() <= TOLERANCE * largest)
            });
            if spent || (settled && !pairs.values.is_empty()) {
                status = ScalingStatus::Settled;
                break;
            }
        }
        if !basis.is_empty() {
            beside.push(length);
        }
        basis.push(next);
        let current = &basis[basis.len() - 1];
        next = doubly_centred_product(nodes, current);
        diagonal.push(dot(current, &next));
        // Twice is enough (Parlett 1998, section 6.9).
        for _ in 0..2 {
            for vector in &basis {
                let share = dot(vector, &next);
                next.iter_mut()
                    .zip(vector)
                    .for_each(|(a, b)| *a -= share * b);
            }
        }
        length = normalise(&mut next);
    }
    if status == ScalingStatus::StepsExhausted {
        pairs = tridiagonal_eigenpairs(&diagonal, &beside)?;
    }
    Ok(coordinates(&basis, &pairs, dimensions, patients, status))
}

fn coordinates(
    basis: &[Vec<f64>],
    pairs: &EigenPairs,
    dimensions: usize,
    patients: usize,
    status: ScalingStatus,
) -> Scaling {
    let mut coordinates = Array2::zeros((patients, dimensions));
    let mut eigenvalues = Array1::zeros(dimensions);
    for dimension in 0..dimensions.min(pairs.values.len()) {
        let value = pairs.values[dimension].max(0.0);
        eigenvalues[dimension] = value;
        let mut column = vec![0.0; patients];
        for (vector, &share) in basis.iter().zip(&pairs.vectors[dimension]) {
            column
                .iter_mut()
                .zip(vector)
                .for_each(|(sum, entry)| *sum += share * entry);
        }
        let extreme = column
            .iter()
            .copied()
            .fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        let factor = value.sqrt() * if extreme < 0.0 { -1.0 } else { 1.0 };
        for (row, entry) in column.into_iter().enumerate() {
            coordinates[(row, dimension)] = factor * entry;
        }
    }
    Scaling {
        coordinates,
        eigenvalues,
        status,
    }
}

/// J P J v / 2 for a centred v.
fn doubly_centred_product(nodes: &TerminalNodes, vector: &[f64]) -> Vec<f64> {
    let trees = nodes.trees();
    let partial: Vec<Vec<f64>> = (0..GROUPS)
        .into_par_iter()
        .map(|group| {
            let mut sums = vec![0.0; vector.len()];
            let mut of_node: Vec<f64> = Vec::new();
            for tree in group * trees / GROUPS..(group + 1) * trees / GROUPS {
                let terminal = nodes.of_tree(tree);
                let last = terminal.iter().copied().max().unwrap_or(0) as usize;
                of_node.clear();
                of_node.resize(last + 1, 0.0);
                terminal
                    .iter()
                    .zip(vector)
                    .for_each(|(&node, v)| of_node[node as usize] += v);
                sums.iter_mut()
                    .zip(terminal)
                    .for_each(|(sum, &node)| *sum += of_node[node as usize]);
            }
            sums
        })
        .collect();
    let mut product = vec![0.0; vector.len()];
    for sums in partial {
        product
            .iter_mut()
            .zip(sums)
            .for_each(|(total, sum)| *total += sum);
    }
    product
        .iter_mut()
        .for_each(|value| *value /= 2.0 * trees as f64);
    centre(&mut product);
    product
}

fn centre(vector: &mut [f64]) {
    let mean = vector.iter().sum::<f64>() / vector.len().max(1) as f64;
    vector.iter_mut().for_each(|value| *value -= mean);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Scales a vector to length 1, if it has one; returns the length before.
fn normalise(vector: &mut [f64]) -> f64 {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    length
}

/// Eigenvalues, falling, and their vectors.
#[derive(Default)]
struct EigenPairs {
    values: Vec<f64>,
    vectors: Vec<Vec<f64>>,
}

fn tridiagonal_eigenpairs(
    diagonal: &[f64],
    beside: &[f64],
) -> Result<EigenPairs, LinearAlgebraError> {
    if diagonal.is_empty() {
        return Ok(EigenPairs::default());
    }
    let mut matrix = Array2::from_diag(&Array1::from(diagonal.to_vec()));
    for (place, &entry) in beside.iter().enumerate() {
        matrix[(place + 1, place)] = entry;
        matrix[(place, place + 1)] = entry;
    }
    let found = symmetric_eigen(&matrix)?;
    Ok(EigenPairs {
        values: found.values.iter().rev().copied().collect(),
        vectors: found
            .vectors
            .columns()
            .into_iter()
            .rev()
            .map(|column| column.to_vec())
            .collect(),
    })
}

impl std::fmt::Debug for Scaling {
    /// Coordinates belong to patients and stay unprinted.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Scaling")
            .field("coordinates", &self.coordinates.dim())
            .field("eigenvalues", &self.eigenvalues)
            .field("status", &self.status)
            .finish()
    }
}
