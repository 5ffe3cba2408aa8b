//! A forest's kernels of patients whom it was grown on, as it would see them if they were new: over the trees in which each is
//! out of bag.

use ndarray::Array2;

use crate::compare::proximity::ancestors::Topology;
use crate::compare::proximity::kernel::{Kernel, KernelError, OutOfBag, Training, by_rows, check};
use crate::learn::forest::trees::terminal::{Buckets, TerminalNodes};

/// The kernel of m patients against the n training patients, m x n, each row over the trees that have not seen its patient by
/// `bags`; NaN where all have. Of out-of-bag proximities and GAP there is none: NaN.
///
/// # Errors
/// [`KernelError`] as for [`Kernel::rectangular`].
pub(crate) fn by_unseen_trees(
    kernel: Kernel,
    training: Training<'_>,
    rows: &TerminalNodes,
    bags: &OutOfBag,
) -> Result<Array2<f64>, KernelError> {
    check(training, rows)?;
    let columns = training.nodes.patients();
    let buckets = Buckets::new(training.nodes);
    let topology = Topology::new(training.forest);
    let scratch = || (Vec::new(), vec![0.0; columns]);
    Ok(by_rows(
        rows.patients(),
        columns,
        scratch,
        |(common, passed), row, values| {
            let (mut trees_used, mut own_passed) = (0.0, 0.0);
            passed.fill(0.0);
            let unseen = (0..rows.trees()).filter(|tree| bags.is_out(row, *tree));
            for tree in unseen {
                trees_used += 1.0;
                let terminal = rows.of_tree(tree)[row];
                let bucket = buckets.of(tree, terminal);
                let depths = &topology.depths[tree];
                let depth = depths[terminal as usize];
                match kernel {
                    Kernel::Proximity => bucket.iter().for_each(|at| values[*at as usize] += 1.0),
                    Kernel::Kerf => {
                        let share = 1.0 / bucket.len() as f64;
                        bucket.iter().for_each(|at| values[*at as usize] += share);
                    }
                    Kernel::Depth { omega } => {
                        topology.common_depths(tree, terminal, common);
                        for (value, node) in values.iter_mut().zip(training.nodes.of_tree(tree)) {
                            let other = depths[*node as usize];
                            let edges = depth + other - 2 * common[*node as usize];
                            *value += (-omega * f64::from(edges)).exp();
                        }
                    }
                    Kernel::Path => {
                        topology.common_depths(tree, terminal, common);
                        own_passed += f64::from(depth) + 1.0;
                        let nodes = training.nodes.of_tree(tree);
                        for ((value, passed), node) in
                            values.iter_mut().zip(passed.iter_mut()).zip(nodes)
                        {
                            *value += f64::from(common[*node as usize]) + 1.0;
                            *passed += f64::from(depths[*node as usize]) + 1.0;
                        }
                    }
                    Kernel::OutOfBag | Kernel::Gap => values.fill(f64::NAN),
                }
            }
            match kernel {
                Kernel::Path => values
                    .iter_mut()
                    .zip(passed)
                    .for_each(|(value, passed)| *value /= (own_passed * *passed).sqrt()),
                _ => values.iter_mut().for_each(|value| *value /= trees_used),
            }
        },
    ))
}
