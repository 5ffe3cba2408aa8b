//! Clusters of many patients, without their matrix: medoids of samples (CLARA: Kaufman and Rousseeuw 1990; with FasterPAM:
//! Schubert and Rousseeuw 2021), and of a forest the exact medoid of every cluster, read off its terminal nodes.

use rand::seq::index;

use crate::numeric::seed::Seed;
use crate::uses::clusters::dissimilarity::Dissimilarity;
use crate::uses::clusters::medoids::{Medoids, build};
use crate::uses::nearest::proximity_sums;

/// Samples.
const SAMPLES: usize = 5;
/// Patients of each, beside the best medoids so far.
const SAMPLE_PATIENTS: usize = 1_000;
/// Times that the medoids of a forest's clusters are looked for anew.
const ROUNDS_MAX: usize = 20;

/// Clusters of more patients than a sample has.
pub(super) fn by_samples(
    dissimilarity: &Dissimilarity<'_>,
    clusters: usize,
    (starts, seed): (usize, Seed),
) -> Medoids {
    let name = format!("clusters/large {clusters}");
    let mut best: Option<Medoids> = None;
    for sample in 0..SAMPLES {
        let mut stream = seed.stream(&name, sample as u64);
        let mut rows =
            index::sample(&mut stream, dissimilarity.patients(), SAMPLE_PATIENTS).into_vec();
        rows.extend(best.iter().flat_map(|best| &best.medoids));
        rows.sort_unstable();
        rows.dedup();
        let among = dissimilarity.among(&rows);
        let built = build(among.view(), clusters);
        let starts_of = format!("{name}, sample {sample}");
        let found = Medoids::of_starts(among.view(), &built, starts, (seed, &starts_of));
        let medoids: Vec<usize> = found.medoids.iter().map(|place| rows[*place]).collect();
        let from_each = dissimilarity.from_each(&medoids);
        let found = Medoids::nearest(medoids, from_each.view());
        best = match best {
            Some(best) if best.total <= found.total => Some(best),
            _ => Some(found),
        };
    }
    let best = best.expect("there is at least one sample");
    exact(dissimilarity, best)
}

/// Takes of every cluster the patient who is nearest to all others in it, and of every patient the nearest of them, as long
/// as the total deviation falls; only where terminal nodes tell the sums.
fn exact(dissimilarity: &Dissimilarity<'_>, mut best: Medoids) -> Medoids {
    let Some(nodes) = dissimilarity.nodes() else {
        return best;
    };
    let clusters = best.medoids.len();
    for _ in 0..ROUNDS_MAX {
        let Ok(sums) = proximity_sums(nodes, nodes, &best.assigned, clusters) else {
            return best;
        };
        let mut medoids = best.medoids.clone();
        for (patient, cluster) in best.assigned.iter().enumerate() {
            let place = *cluster as usize;
            if sums[(patient, place)] > sums[(medoids[place], place)] {
                medoids[place] = patient;
            }
        }
        let from_each = dissimilarity.from_each(&medoids);
        let found = Medoids::nearest(medoids, from_each.view());
        if found.total >= best.total {
            return best;
        }
        best = found;
    }
    best
}
