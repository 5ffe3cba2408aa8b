//! Whether the clusters of one cohort are found again in samples of it.

use ndarray::{Array2, ArrayView2};
use rand::seq::index;
use rand::{Rng, RngExt};
use rayon::prelude::*;

use crate::numeric::seed::Seed;
use crate::uses::clusters::agreement::counts;
use crate::uses::clusters::medoids::{Medoids, build};

/// How stability is measured. Jaccard's index of two groups is the share of their union that is in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StabilityRule {
    /// Bootstraps, whose patients count once however often they are drawn; every cluster is compared with the cluster of the
    /// sample that is most like it; stable where the mean of every cluster is at least the threshold (Hennig 2007).
    #[default]
    EveryCluster,
    /// Samples without replacement of a share min(0.8, max(0.1, 1000 / n)); clusters are paired with each other, the most alike
    /// first; stable where the mean over clusters is above the threshold (fgclustering 3).
    MeanOverClusters,
}

impl StabilityRule {
    /// Whether clusters of these stabilities are stable.
    #[must_use]
    pub fn holds(self, stabilities: &[f64], threshold: f64) -> bool {
        match self {
            Self::EveryCluster => stabilities.iter().all(|one| *one >= threshold),
            Self::MeanOverClusters => {
                stabilities.iter().sum::<f64>() / stabilities.len() as f64 > threshold
            }
        }
    }

    fn sample(self, patients: usize, stream: &mut impl Rng) -> Vec<usize> {
        let mut rows: Vec<usize> = match self {
            Self::EveryCluster => (0..patients)
                .map(|_| stream.random_range(0..patients))
                .collect(),
            Self::MeanOverClusters => {
                let share = (1_000.0 / patients as f64).clamp(0.1, 0.8);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most n
                let wanted = (patients as f64 * share) as usize;
                index::sample(stream, patients, wanted).into_vec()
            }
        };
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// How well each cluster of `own` is found again in `other`, two partitions of the same patients.
    fn alike(self, own: &[u32], other: &[u32], clusters: usize) -> Vec<Option<f64>> {
        let mut table = counts(own, other);
        let width = table.first().map_or(0, Vec::len);
        table.resize(clusters, vec![0.0; width]);
        self.found_again(&table)
    }

    /// How well each cluster, a row of a table of patients, is found again among the columns; none of one without patients.
    #[must_use]
    pub fn found_again(self, table: &[Vec<f64>]) -> Vec<Option<f64>> {
        let (clusters, width) = (table.len(), table.first().map_or(0, Vec::len));
        let rows: Vec<f64> = table.iter().map(|row| row.iter().sum()).collect();
        let column = |place: usize| table.iter().map(|row| row[place]).sum::<f64>();
        let columns: Vec<f64> = (0..width).map(column).collect();
        let jaccard = |row: usize, column: usize| {
            let both = table[row][column];
            match rows[row] + columns[column] - both {
                0.0 => 0.0,
                either => both / either,
            }
        };
        // Of a cluster with nobody in the sample nothing is known.
        let mut found: Vec<Option<f64>> = rows
            .iter()
            .map(|size| (*size > 0.0).then_some(0.0))
            .collect();
        match self {
            Self::EveryCluster => {
                for (row, value) in found.iter_mut().enumerate() {
                    let best = (0..width).map(|column| jaccard(row, column));
                    *value = value.map(|_| best.fold(0.0, f64::max));
                }
            }
            Self::MeanOverClusters => {
                let mut pairs: Vec<(usize, usize)> = (0..clusters)
                    .filter(|row| rows[*row] > 0.0)
                    .flat_map(|row| (0..width).map(move |column| (row, column)))
                    .collect();
                pairs.sort_by(|a, b| {
                    let further = jaccard(b.0, b.1).total_cmp(&jaccard(a.0, a.1));
                    further.then(a.cmp(b))
                });
                let (mut rows_taken, mut taken) = (vec![false; clusters], vec![false; width]);
                for (row, column) in pairs {
                    if !rows_taken[row] && !taken[column] {
                        found[row] = Some(jaccard(row, column));
                        (rows_taken[row], taken[column]) = (true, true);
                    }
                }
            }
        }
        found
    }
}

/// The mean Jaccard index of every cluster over so many samples, of partitions with so many clusters each.
pub(super) fn stabilities(
    apart: ArrayView2<'_, f64>,
    partitions: &[(usize, Vec<u32>)],
    rule: StabilityRule,
    (samples, starts): (usize, usize),
    seed: Seed,
) -> Vec<Vec<f64>> {
    let patients = apart.nrows();
    let of_sample = |sample: usize| -> Vec<Vec<Option<f64>>> {
        let rows = rule.sample(
            patients,
            &mut seed.stream("clusters/samples", sample as u64),
        );
        let among =
            Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| apart[(rows[i], rows[j])]);
        let most = partitions.iter().map(|(clusters, _)| *clusters).max();
        let built = build(among.view(), most.unwrap_or(0).min(rows.len()));
        let again = |(clusters, assigned): &(usize, Vec<u32>)| {
            if *clusters >= rows.len() {
                return vec![None; *clusters];
            }
            let own: Vec<u32> = rows.iter().map(|row| assigned[*row]).collect();
            let name = format!("clusters/sample {sample} of {clusters}");
            let found =
                Medoids::of_starts(among.view(), &built[..*clusters], starts, (seed, &name));
            rule.alike(&own, &found.assigned, *clusters)
        };
        partitions.iter().map(again).collect()
    };
    let all: Vec<Vec<Vec<Option<f64>>>> = (0..samples).into_par_iter().map(of_sample).collect();
    let mean = |place: usize, cluster: usize| {
        let known: Vec<f64> = all
            .iter()
            .filter_map(|sample| sample[place][cluster])
            .collect();
        match known.is_empty() {
            true => 0.0,
            false => known.iter().sum::<f64>() / known.len() as f64,
        }
    };
    let places = partitions.iter().enumerate();
    places
        .map(|(place, (clusters, _))| (0..*clusters).map(|one| mean(place, one)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_found_in_two_halves_is_worth_its_larger_half() {
        let own = [0, 0, 0, 0, 0, 1, 1, 1];
        let other = [0, 0, 0, 1, 1, 2, 2, 2];
        let found = StabilityRule::EveryCluster.alike(&own, &other, 3);
        assert_eq!(found, [Some(0.6), Some(1.0), None]);
        // Two own clusters are most like one of the sample: only one of them is paired with it.
        let merged = [0, 0, 0, 0, 0, 0, 0, 0];
        let found = StabilityRule::EveryCluster.alike(&own, &merged, 2);
        assert_eq!(found, [Some(0.625), Some(0.375)]);
        let found = StabilityRule::MeanOverClusters.alike(&own, &merged, 2);
        assert_eq!(found, [Some(0.625), Some(0.0)]);
        assert!(!StabilityRule::EveryCluster.holds(&[0.9, 0.5], 0.6));
        assert!(StabilityRule::MeanOverClusters.holds(&[0.9, 0.5], 0.6));
        assert!(!StabilityRule::MeanOverClusters.holds(&[0.6, 0.6], 0.6));
    }
}
