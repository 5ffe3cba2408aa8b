//! Small counts.
//!
//! Withholding a small count is not enough: the node's size is known, so that a single count
//! withheld is what the others leave over. Hence small cell adjustment: a count of 1 to `minimum - 1` becomes 0 or
//! `minimum`, whichever is nearer, and the largest count of the same node takes up the
//! difference. Totals stay exact, no count is off by more than a few patients, and neither the
//! rounded counts nor the largest one tell what they were.

/// True where a count tells of too few patients. None at all tells of nobody.
pub(crate) fn is_small(count: u64, minimum: u64) -> bool {
    (1..minimum).contains(&count)
}

/// Joins neighbouring groups of a histogram until each holds `cell_min` values; none is left of fewer
/// than `present_min` values. A small count of missing values is rounded as in the sums, and the
/// largest group takes up the difference.
pub(crate) fn withhold_groups(
    ends: &mut Vec<u32>,
    counts: &mut Vec<u64>,
    missing: u64,
    present_min: u64,
    cell_min: u64,
) {
    let present: u64 = counts.iter().sum();
    if present < present_min.max(1) {
        ends.clear();
        counts.clear();
        return;
    }
    let mut groups: Vec<(u32, u64)> = Vec::new();
    let mut open = 0;
    for (end, count) in ends.iter().zip(counts.iter()) {
        open += count;
        if open >= cell_min.max(1) {
            groups.push((*end, open));
            open = 0;
        }
    }
    // What is left is too few for a group of its own.
    if let (Some((end, count)), Some(reach)) = (groups.last_mut(), ends.last()) {
        (*end, *count) = (*reach, *count + open);
    }
    if is_small(missing, cell_min) {
        let mut cells = [present, missing];
        adjust(&mut cells, cell_min);
        move_largest(&mut groups, cells[0], present, cell_min);
    }
    (*ends, *counts) = groups.into_iter().unzip();
}

/// Brings the groups' total from `present` to `wanted` by the first of the largest groups, which is
/// joined with a neighbour where it would become small.
fn move_largest(groups: &mut Vec<(u32, u64)>, wanted: u64, present: u64, cell_min: u64) {
    while let Some(largest) = (0..groups.len()).rev().max_by_key(|&index| groups[index].1) {
        let count = groups[largest].1 + wanted;
        if count >= present + cell_min || groups.len() == 1 {
            groups[largest].1 = count.saturating_sub(present);
            return;
        }
        // The group before ends where the next begins: without it, the next reaches down to it.
        let lower = largest.min(groups.len() - 2);
        let (_, joined) = groups.remove(lower);
        groups[lower].1 += joined;
    }
}

/// Joins neighbouring cells of a grid until each group holds `minimum` values, and counts each group in the cell where its mean
/// is. There are as many cells as before; fewer values in all count nowhere.
pub(crate) fn gather(counts: &mut [u64], minimum: u64) {
    let mut groups: Vec<(u64, u128)> = Vec::new();
    let (mut count, mut places) = (0_u64, 0_u128);
    for (place, cell) in (0_u128..).zip(counts.iter_mut()) {
        let cell = std::mem::take(cell);
        count = count.saturating_add(cell);
        places += u128::from(cell) * place;
        if count > 0 && count >= minimum {
            groups.push((count, places));
            (count, places) = (0, 0);
        }
    }
    if let Some(last) = groups.last_mut() {
        last.0 = last.0.saturating_add(count);
        last.1 += places;
    }
    for (count, places) in groups {
        // The mean's cell, half a cell rounded up.
        let mean = (2 * places + u128::from(count)) / (2 * u128::from(count));
        let cell = usize::try_from(mean)
            .ok()
            .and_then(|place| counts.get_mut(place));
        if let Some(cell) = cell {
            *cell = cell.saturating_add(count);
        }
    }
}

/// Rounds small cells to 0 or `minimum`. The sum of the cells stays, and is at least `minimum`.
pub(crate) fn adjust(cells: &mut [u64], minimum: u64) {
    // The first of the largest cells.
    let Some(largest) = (0..cells.len()).rev().max_by_key(|&index| cells[index]) else {
        return;
    };
    let mut small: Vec<usize> = (0..cells.len())
        .filter(|&index| index != largest && is_small(cells[index], minimum))
        .collect();
    small.sort_by_key(|&index| std::cmp::Reverse(cells[index]));
    let total: u64 = cells[largest] + small.iter().map(|&index| cells[index]).sum::<u64>();
    let nearer_up = small
        .iter()
        .filter(|&&index| cells[index] >= minimum.div_ceil(2))
        .count() as u64;
    // What is left to the largest cell must not become small itself.
    let up = nearer_up.min((total / minimum).saturating_sub(1));
    for (rank, &index) in (0..).zip(&small) {
        cells[index] = if rank < up { minimum } else { 0 };
    }
    cells[largest] = total - up * minimum;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_few_values_are_counted_where_their_mean_is() {
        let gathered = |mut counts: Vec<u64>, minimum| {
            gather(&mut counts, minimum);
            counts
        };
        assert_eq!(
            gathered(vec![1, 0, 0, 0, 2, 0, 0, 7], 3),
            [0, 0, 0, 3, 0, 0, 0, 7]
        );
        assert_eq!(
            gathered(vec![3, 0, 0, 4, 0, 1, 0, 1], 3),
            [3, 0, 0, 0, 6, 0, 0, 0]
        );
        // A site without a minimum releases each cell; of too few values nothing is released.
        assert_eq!(gathered(vec![1, 0, 2], 1), [1, 0, 2]);
        assert_eq!(gathered(vec![1, 0, 2], 4), [0, 0, 0]);
        // Borders beyond counts that any cohort has.
        assert_eq!(gathered(vec![u64::MAX, u64::MAX], 10), [u64::MAX, u64::MAX]);
    }
}
