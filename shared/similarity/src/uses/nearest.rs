//! Nearest patients and sums of proximities, read off terminal nodes without an n x n matrix: memory is
//! linear in n (T and k fixed), time in the pairs that share a terminal node.

use ndarray::Array2;
use rayon::prelude::*;

use crate::compare::proximity::kernel::{Kernel, KernelError, OutOfBag, TREES_MAX, Training};
use crate::learn::forest::InBag;
use crate::learn::forest::trees::terminal::{Buckets, SharedCounts, TerminalNodes};

/// Entries of a matrix that are held at once, 64 MB, where neighbours are read off one that need not be whole.
const STRETCH_ENTRIES: usize = 1 << 23;

/// A near training patient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Row of the training patient.
    pub patient: u32,
    /// Share of the trees in which they share a terminal node, or another kernel's value; above 0.
    pub proximity: f64,
}

/// The nearest training patients of one patient, nearest first, equal proximities by rising row. There are
/// fewer than asked for where fewer share any terminal node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearest {
    /// The neighbours.
    pub neighbours: Vec<Neighbour>,
    /// Further patients exactly as near as the last neighbour, excluded by their row alone.
    pub tied: usize,
}

/// The k nearest of every training patient, itself excluded.
///
/// # Errors
/// [`KernelError::TooManyTrees`] beyond [`TREES_MAX`] trees.
pub fn nearest(training: &TerminalNodes, k: usize) -> Result<Vec<Nearest>, KernelError> {
    each_row(training, training, |row, shared| {
        closest(shared, Some(row), training.trees(), k)
    })
}

/// The k nearest of every training patient, itself excluded, by the share of the trees in which both are out of
/// bag where they share a terminal node: no tree that has seen the outcome of either makes them near.
///
/// # Errors
/// [`KernelError`] beyond [`TREES_MAX`] trees, or where the in-bag counts are of other patients or trees.
pub fn nearest_out_of_bag(
    training: &TerminalNodes,
    in_bag: &InBag,
    k: usize,
) -> Result<Vec<Nearest>, KernelError> {
    check_trees(training, training)?;
    let (found, wanted) = (in_bag.trees(), training.trees());
    if found != wanted {
        return Err(KernelError::Trees { found, wanted });
    }
    let (found, wanted) = (in_bag.patients(), training.patients());
    if found != wanted {
        return Err(KernelError::Patients { found, wanted });
    }
    let (buckets, bits) = (Buckets::new(training), OutOfBag::new(in_bag));
    let rows = (0..training.patients()).into_par_iter();
    let nearest = rows.map_init(
        || SharedCounts::new(training.patients()),
        |shared, row| {
            shared.count_out_of_bag(training, row, &buckets, in_bag);
            let others = shared.touched.iter().copied();
            let others = others.filter(|&patient| patient as usize != row);
            let neighbour = |patient: u32| {
                let count = f64::from(shared.counts[patient as usize]);
                Neighbour {
                    patient,
                    proximity: count / f64::from(bits.of_both(row, patient as usize)),
                }
            };
            best(others.map(neighbour).collect(), k)
        },
    );
    Ok(nearest.collect())
}

/// The k nearest training patients of every new patient.
///
/// # Errors
/// [`KernelError`] beyond [`TREES_MAX`] trees, or where the numbers of trees differ.
pub fn nearest_of_new(
    training: &TerminalNodes,
    new: &TerminalNodes,
    k: usize,
) -> Result<Vec<Nearest>, KernelError> {
    each_row(new, training, |_, shared| {
        closest(shared, None, training.trees(), k)
    })
}

/// The k nearest of every patient by a square matrix of a kernel, n x n; a value that is missing or not
/// above 0 is no neighbour.
#[must_use]
pub fn nearest_of_matrix(kernel: &Array2<f64>, k: usize) -> Vec<Nearest> {
    nearest_of_rows(kernel, 0, k)
}

/// The k nearest of every training patient by any kernel, as [`nearest_of_matrix`] finds them: by stretches of the matrix,
/// which is never whole.
///
/// # Errors
/// [`KernelError`] as for [`Kernel::square`], but for its size.
pub fn nearest_by(
    kernel: Kernel,
    training: Training<'_>,
    k: usize,
) -> Result<Vec<Nearest>, KernelError> {
    let patients = training.nodes.patients();
    let rows = (STRETCH_ENTRIES / patients.max(1)).max(1);
    let mut nearest = Vec::with_capacity(patients);
    for first in (0..patients).step_by(rows) {
        let stretch = kernel.stretch(training, first..patients.min(first + rows))?;
        nearest.extend(nearest_of_rows(&stretch, first, k));
    }
    Ok(nearest)
}

/// Of patients from `first` on, a row each.
fn nearest_of_rows(kernel: &Array2<f64>, first: usize, k: usize) -> Vec<Nearest> {
    let rows = kernel.outer_iter().enumerate();
    rows.map(|(row, values)| {
        let found = (0..)
            .zip(values)
            .filter(|&(patient, &value)| patient as usize != first + row && value > 0.0)
            .map(|(patient, &proximity)| Neighbour { patient, proximity });
        best(found.collect(), k)
    })
    .collect()
}

/// The k nearest of those found, nearest first, equal ones by rising row.
fn best(mut found: Vec<Neighbour>, k: usize) -> Nearest {
    let by_nearness = |a: &Neighbour, b: &Neighbour| {
        let nearer = b.proximity.total_cmp(&a.proximity);
        nearer.then(a.patient.cmp(&b.patient))
    };
    if k == 0 {
        return Nearest::default();
    }
    let mut tied = 0;
    if found.len() > k {
        let (_, last, rest) = found.select_nth_unstable_by(k - 1, by_nearness);
        let is_tied = |other: &&Neighbour| other.proximity == last.proximity;
        tied = rest.iter().filter(is_tied).count();
        found.truncate(k);
    }
    found.sort_unstable_by(by_nearness);
    Nearest {
        neighbours: found,
        tied,
    }
}

/// For every row patient the sum of proximities to the training patients of each group, m x groups.
/// `groups` gives one group a training patient, below `count`; a patient counts in its own group.
///
/// # Errors
/// [`KernelError`] where the numbers of trees differ or `groups` does not cover the training patients.
pub fn proximity_sums(
    training: &TerminalNodes,
    rows: &TerminalNodes,
    groups: &[u32],
    count: usize,
) -> Result<Array2<f64>, KernelError> {
    check_trees(rows, training)?;
    let usable = groups
        .iter()
        .filter(|&&group| (group as usize) < count)
        .count();
    if usable != training.patients() || groups.len() != training.patients() {
        return Err(KernelError::Patients {
            found: usable,
            wanted: training.patients(),
        });
    }
    let width = rows.patients() * count;
    // Whole numbers: the order of the additions does not matter.
    let sums = (0..rows.trees())
        .into_par_iter()
        .fold(
            || vec![0_u64; width],
            |mut sums, tree| {
                add_tree(
                    &mut sums,
                    training.of_tree(tree),
                    rows.of_tree(tree),
                    groups,
                    count,
                );
                sums
            },
        )
        .reduce(
            || vec![0_u64; width],
            |mut a, b| {
                a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
                a
            },
        );
    let trees = rows.trees() as f64;
    let means = sums.into_iter().map(|sum| sum as f64 / trees).collect();
    Ok(Array2::from_shape_vec((rows.patients(), count), means)
        .expect("one sum per patient and group by construction"))
}

fn add_tree(sums: &mut [u64], training: &[u32], rows: &[u32], groups: &[u32], count: usize) {
    let last = training.iter().copied().max().unwrap_or(0) as usize;
    let mut tally = vec![0_u32; (last + 1) * count];
    for (&node, &group) in training.iter().zip(groups) {
        tally[node as usize * count + group as usize] += 1;
    }
    for (sums, &node) in sums.chunks_exact_mut(count.max(1)).zip(rows) {
        if node as usize <= last {
            let of_node = &tally[node as usize * count..(node as usize + 1) * count];
            sums.iter_mut()
                .zip(of_node)
                .for_each(|(sum, &patients)| *sum += u64::from(patients));
        }
    }
}

fn check_trees(rows: &TerminalNodes, training: &TerminalNodes) -> Result<(), KernelError> {
    if rows.trees() != training.trees() {
        return Err(KernelError::Trees {
            found: rows.trees(),
            wanted: training.trees(),
        });
    }
    if rows.trees() > TREES_MAX {
        return Err(KernelError::TooManyTrees {
            found: rows.trees(),
        });
    }
    Ok(())
}

/// Calls `answer` with the shared counts of every row, in parallel, answers in order of rows.
pub(crate) fn each_row<A: Send>(
    rows: &TerminalNodes,
    training: &TerminalNodes,
    answer: impl Fn(usize, &SharedCounts) -> A + Sync + Send,
) -> Result<Vec<A>, KernelError> {
    check_trees(rows, training)?;
    let buckets = Buckets::new(training);
    Ok((0..rows.patients())
        .into_par_iter()
        .map_init(
            || SharedCounts::new(training.patients()),
            |shared, row| {
                shared.count(rows, row, &buckets);
                answer(row, shared)
            },
        )
        .collect())
}

/// Selects the k largest counts; keys put large counts first and small rows first among equals.
fn closest(shared: &SharedCounts, own: Option<usize>, trees: usize, k: usize) -> Nearest {
    let mut keys: Vec<u64> = shared
        .touched
        .iter()
        .filter(|&&patient| Some(patient as usize) != own)
        .map(|&patient| {
            let fewer = u64::from(u16::MAX - shared.counts[patient as usize]);
            fewer << 32 | u64::from(patient)
        })
        .collect();
    if k == 0 {
        return Nearest::default();
    }
    let mut tied = 0;
    if keys.len() > k {
        let (_, last, rest) = keys.select_nth_unstable(k - 1);
        tied = rest.iter().filter(|&&key| key >> 32 == *last >> 32).count();
        keys.truncate(k);
    }
    keys.sort_unstable();
    let neighbours = keys
        .into_iter()
        .map(|key| Neighbour {
            patient: key as u32,
            proximity: f64::from(u16::MAX - (key >> 32) as u16) / trees as f64,
        })
        .collect();
    Nearest { neighbours, tied }
}
