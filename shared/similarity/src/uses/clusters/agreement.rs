//! How far two partitions of the same patients agree.

/// Rand's index corrected for chance (Hubert and Arabie 1985): 1 where two partitions are the same, 0 on the average of
/// random ones. Both have one group a patient; NaN where their lengths differ.
#[must_use]
pub fn adjusted_rand(one: &[u32], other: &[u32]) -> f64 {
    if one.len() != other.len() {
        return f64::NAN;
    }
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    let table = counts(one, other);
    let together: f64 = table.iter().flatten().map(|count| pairs(*count)).sum();
    let rows: f64 = table.iter().map(|row| pairs(row.iter().sum())).sum();
    let width = table.first().map_or(0, Vec::len);
    let column = |column: usize| table.iter().map(|row| row[column]).sum::<f64>();
    let columns: f64 = (0..width).map(|place| pairs(column(place))).sum();
    let all = pairs(one.len() as f64);
    let expected = rows * columns / all;
    let most = f64::midpoint(rows, columns);
    if all == 0.0 || most == expected {
        // One group, or everybody alone, in both.
        return 1.0;
    }
    (together - expected) / (most - expected)
}

/// Patients by group of either partition.
pub(super) fn counts(one: &[u32], other: &[u32]) -> Vec<Vec<f64>> {
    let most = |groups: &[u32]| groups.iter().max().map_or(0, |most| *most as usize + 1);
    let mut table = vec![vec![0.0; most(other)]; most(one)];
    one.iter()
        .zip(other)
        .for_each(|(a, b)| table[*a as usize][*b as usize] += 1.0);
    table
}
