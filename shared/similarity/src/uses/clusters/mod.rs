//! Clusters of patients by any comparison: medoids, how much of the outcome they leave open, whether they are found again, and
//! what marks each (Forest-Guided Clustering, for every comparison and every kind of outcome).
//!
//! For every number of clusters k the patients are divided around k medoids. Of the divisions that are *stable* the one is chosen that leaves
//! less of the outcome open than those of fewer clusters, by more than chance (`clusters/gain.rs`); or that of the smallest *bias*. That none is stable
//! is an answer, and so is that the outcomes of the clusters do not differ.

mod agreement;
mod bias;
pub mod common;
mod dissimilarity;
mod gain;
mod importance;
mod large;
pub mod medoids;
mod stability;

pub use agreement::adjusted_rand;
pub use bias::{Bias, ClassBias, impurity, squares_left};
pub use dissimilarity::{Dissimilarity, MATRIX_PATIENTS_MAX};
pub use gain::{Divided, Gains, Left};
pub use importance::{Contrast, Importance, Mark, Spread, importance, jensen_shannon, wasserstein};
pub use stability::StabilityRule;

use ndarray::{Array2, Axis};
use rand::seq::{SliceRandom, index};
use std::ops::RangeInclusive;

use crate::cohort::{Column, Outcome};
use crate::compare::{Comparison, Placed};
use crate::numeric::seed::Seed;
use crate::uses::clusters::bias::Judged;
use crate::uses::clusters::dissimilarity::apart;
use crate::uses::clusters::medoids::{Medoids, build};
use crate::uses::clusters::stability::stabilities;

/// Of more patients, the stability of the clusters is that among so many of them, drawn once.
pub const STABILITY_PATIENTS_MAX: usize = 2_000;

/// How clusters are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Numbers of clusters that are tried, from 2.
    pub clusters: RangeInclusive<usize>,
    /// Starts of the search for medoids; the best counts.
    pub starts: usize,
    /// Samples that stability is measured by.
    pub samples: usize,
    /// Starts in each of them.
    pub sample_starts: usize,
    /// How stability is measured.
    pub stability: StabilityRule,
    /// What a stable cluster has: 0.6 shows a pattern, 0.75 a valid cluster (Hennig 2008).
    pub threshold: f64,
    /// How impurities of clusters make one bias, of classes.
    pub class_bias: ClassBias,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            clusters: 2..=8,
            starts: 10,
            samples: 100,
            sample_starts: 1,
            stability: StabilityRule::default(),
            threshold: 0.6,
            class_bias: ClassBias::default(),
        }
    }
}

/// A division of the patients into clusters, the largest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// Rows of the medoids, one a cluster.
    pub medoids: Vec<usize>,
    /// One cluster a patient.
    pub assigned: Vec<u32>,
    /// Sum over patients of the dissimilarity from their medoid.
    pub total: f64,
    /// How much of the outcome it leaves open.
    pub bias: Bias,
    /// The chance that outcomes without anything to do with the clusters gain as much over the best of fewer clusters, all patients as one
    /// among them; none where it is not stable.
    pub chance: Option<f64>,
    /// Of every cluster, how well it is found again.
    pub stability: Vec<f64>,
    /// Whether it is stable.
    pub is_stable: bool,
    /// The stability of the least stable of as many clusters of patients without any, where such patients are given.
    pub by_chance: Option<f64>,
}

/// What was tried, and what is best.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// By rising number of clusters.
    pub tried: Vec<Clustering>,
    /// Place in `tried` of the best among the stable; none where none is stable.
    pub best: Option<usize>,
    /// Whether the outcomes of its clusters differ beyond chance.
    pub differ: bool,
}

/// Clusters that cannot be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// One cluster is no division, and an empty range asks for nothing.
    #[error("found {from} to {to} clusters, wanted at least 2")]
    Clusters {
        /// Fewest.
        from: usize,
        /// Most.
        to: usize,
    },
    /// Every cluster must leave somebody who is no medoid.
    #[error(
        "found {clusters} clusters of {patients} patients, wanted fewer clusters than patients"
    )]
    Patients {
        /// Most clusters.
        clusters: usize,
        /// Patients.
        patients: usize,
    },
    /// An outcome of other patients.
    #[error("found the outcome of {found} patients, wanted that of {wanted}")]
    Outcome {
        /// Patients of the outcome.
        found: usize,
        /// Patients of the dissimilarity.
        wanted: usize,
    },
    /// All distances are 0.
    #[error("all patients are equal by this distance, so there are no clusters")]
    Alike,
    /// No event.
    #[error("nobody has the event, so survival cannot distinguish clusters")]
    NoEvent,
    /// One class, or one number.
    #[error("all patients have the same outcome, so it cannot distinguish clusters")]
    OneOutcome,
    /// A matrix of other patients upwards than across.
    #[error("found a matrix of {rows} x {columns}, wanted a square one")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// No dissimilarity.
    #[error(
        "row {row}, column {column} is no dissimilarity: wanted numbers from 0, the same both ways, 0 on the diagonal"
    )]
    NotDissimilar {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
    },
}

/// Divides patients into every number of clusters that is asked for, and chooses. Equal seeds give equal clusters on any number
/// of threads. `shuffled` are patients whose features were each shuffled for itself ([`shuffled`]): as many clusters of these
/// tell how stable clusters are that mean nothing; of two it may be more than the threshold.
///
/// # Errors
/// [`ClusterError`].
pub fn choose(
    dissimilarity: &Dissimilarity<'_>,
    shuffled: Option<&Dissimilarity<'_>>,
    outcome: &Outcome,
    settings: &Settings,
    seed: Seed,
) -> Result<Choice, ClusterError> {
    check(dissimilarity, outcome, settings)?;
    let (patients, to) = (dissimilarity.patients(), *settings.clusters.end());
    let judged = Judged::new(outcome, settings.class_bias)?;
    let found = divisions(dissimilarity, settings, seed);
    let stability = stability(dissimilarity, &found, settings, seed);
    let by_chance: Vec<Option<f64>> = match shuffled.filter(|other| other.patients() > to) {
        None => vec![None; found.len()],
        Some(other) => {
            let found = divisions(other, settings, seed);
            let stability = self::stability(other, &found, settings, seed);
            let least = |all: Vec<f64>| all.into_iter().reduce(f64::min);
            stability.into_iter().map(least).collect()
        }
    };
    let mut tried: Vec<Clustering> = found
        .into_iter()
        .zip(stability.into_iter().zip(by_chance))
        .map(|(found, (stability, by_chance))| Clustering {
            bias: judged.bias(&found.assigned, found.medoids.len()),
            chance: None,
            is_stable: settings.stability.holds(&stability, settings.threshold),
            medoids: found.medoids,
            assigned: found.assigned,
            total: found.total,
            stability,
            by_chance,
        })
        .collect();
    let divided = Divided {
        patients,
        freedom: judged.freedom(),
        tried: tried.len(),
        noise: 0.0,
    };
    let stable = |one: &Clustering| one.is_stable.then(|| Left::of(one, &judged));
    let left: Vec<Option<Left>> = tried.iter().map(stable).collect();
    let gains = Gains::of(&left, divided);
    for (one, chance) in tried.iter_mut().zip(gains.chances) {
        one.chance = chance;
    }
    let stable = (0..tried.len()).filter(|place| tried[*place].is_stable);
    let best = match settings.class_bias {
        ClassBias::Weighted => gains.best,
        ClassBias::Sum | ClassBias::Mean => {
            stable.min_by(|a, b| tried[*a].bias.value.total_cmp(&tried[*b].bias.value))
        }
    };
    let differ = best.is_some_and(|place| Left::of(&tried[place], &judged).differs(divided));
    Ok(Choice {
        tried,
        best,
        differ,
    })
}

/// Whether so many groups of these patients can be made and judged.
fn check(
    dissimilarity: &Dissimilarity<'_>,
    outcome: &Outcome,
    settings: &Settings,
) -> Result<(), ClusterError> {
    let patients = dissimilarity.patients();
    let (from, to) = (*settings.clusters.start(), *settings.clusters.end());
    if from < 2 || to < from {
        return Err(ClusterError::Clusters { from, to });
    }
    if to >= patients {
        return Err(ClusterError::Patients {
            clusters: to,
            patients,
        });
    }
    if outcome.patients() != patients {
        return Err(ClusterError::Outcome {
            found: outcome.patients(),
            wanted: patients,
        });
    }
    match dissimilarity.farthest() <= 0.0 {
        true => Err(ClusterError::Alike),
        false => Ok(()),
    }
}

impl Left {
    fn of(found: &Clustering, judged: &Judged<'_>) -> Self {
        let clusters = found.clusters();
        Self {
            clusters,
            share: judged.left(&found.assigned, clusters),
        }
    }
}

/// One for every number of clusters, the largest cluster first.
fn divisions(dissimilarity: &Dissimilarity<'_>, settings: &Settings, seed: Seed) -> Vec<Medoids> {
    let numbers = settings.clusters.clone();
    let found: Vec<Medoids> = match dissimilarity.matrix() {
        Some(matrix) => {
            let built = build(matrix, *numbers.end());
            let of = |clusters: usize| {
                let name = format!("clusters/starts {clusters}");
                Medoids::of_starts(matrix, &built[..clusters], settings.starts, (seed, &name))
            };
            numbers.map(of).collect()
        }
        None => numbers
            .map(|clusters| large::by_samples(dissimilarity, clusters, (settings.starts, seed)))
            .collect(),
    };
    found.into_iter().map(largest_first).collect()
}

/// Of every division, the stability of its clusters.
fn stability(
    dissimilarity: &Dissimilarity<'_>,
    found: &[Medoids],
    settings: &Settings,
    seed: Seed,
) -> Vec<Vec<f64>> {
    let partitions = |rows: &[usize]| -> Vec<(usize, Vec<u32>)> {
        let among = |found: &Medoids| rows.iter().map(|row| found.assigned[*row]).collect();
        let all = found.iter();
        all.map(|found| (found.medoids.len(), among(found)))
            .collect()
    };
    let counts = (settings.samples, settings.sample_starts);
    let patients = dissimilarity.patients();
    let rule = settings.stability;
    let mut stability = match dissimilarity.matrix() {
        Some(matrix) if patients <= STABILITY_PATIENTS_MAX => {
            let rows: Vec<usize> = (0..patients).collect();
            stabilities(matrix, &partitions(&rows), rule, counts, seed)
        }
        _ => {
            let mut stream = seed.stream("clusters/stability", 0);
            let mut rows = index::sample(&mut stream, patients, STABILITY_PATIENTS_MAX).into_vec();
            rows.sort_unstable();
            let among = dissimilarity.among(&rows);
            stabilities(among.view(), &partitions(&rows), rule, counts, seed)
        }
    };
    for (found, stability) in found.iter().zip(&mut stability) {
        copies(dissimilarity, &found.medoids, stability);
    }
    stability
}

/// Clusters whose medoids are equal are separated by the order of the patients alone: they have no stability.
fn copies(dissimilarity: &Dissimilarity<'_>, medoids: &[usize], stability: &mut [f64]) {
    let among = dissimilarity.among(medoids);
    for ((one, other), apart) in among.indexed_iter() {
        if one != other && *apart == 0.0 {
            stability[one] = 0.0;
        }
    }
}

/// Clusters by falling size, of equals by the medoid's row.
fn largest_first(found: Medoids) -> Medoids {
    let clusters = found.medoids.len();
    let mut sizes = vec![0_usize; clusters];
    let count = |own: &u32| sizes[*own as usize] += 1;
    found.assigned.iter().for_each(count);
    let mut order: Vec<usize> = (0..clusters).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(sizes[*place]), found.medoids[*place]));
    let mut place_of = vec![0_u32; clusters];
    (0..)
        .zip(&order)
        .for_each(|(place, known)| place_of[*known] = place);
    let assigned = found.assigned.iter().map(|own| place_of[*own as usize]);
    Medoids {
        medoids: order.iter().map(|place| found.medoids[*place]).collect(),
        assigned: assigned.collect(),
        total: found.total,
    }
}

/// The same columns, each with its values in another order: patients like these without anything that holds between features.
#[must_use]
pub fn shuffled(columns: &[Column], seed: Seed) -> Vec<Column> {
    let shuffle = |(place, column): (u64, &Column)| {
        let mut rows: Vec<usize> = (0..column.values.patients()).collect();
        rows.shuffle(&mut seed.stream("clusters/shuffled columns", place));
        Column {
            name: column.name.clone(),
            values: column.values.select(&rows),
        }
    };
    (0..).zip(columns).map(shuffle).collect()
}

impl Clustering {
    /// Number of clusters.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.medoids.len()
    }

    /// Rows of the patients of a cluster.
    #[must_use]
    pub fn members(&self, cluster: usize) -> Vec<usize> {
        let own = |row: &usize| self.assigned[*row] as usize == cluster;
        (0..self.assigned.len()).filter(own).collect()
    }
}

/// The cluster of a patient who was not there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assigned {
    /// The cluster.
    pub cluster: usize,
    /// The dissimilarity from its medoid.
    pub distance: f64,
    /// That from the medoid of the next cluster; NaN of one cluster.
    pub next: f64,
}

/// The nearest medoid of every new patient, without any fit; `placed` are those of the cohort. None of whoever can be compared
/// with no medoid.
#[must_use]
pub fn assign(
    comparison: &Comparison,
    placed: &Placed,
    medoids: &[usize],
    new: &Placed,
) -> Vec<Option<Assigned>> {
    let of = |patient: usize| {
        let distances = medoids
            .iter()
            .map(|medoid| apart(comparison, placed, *medoid, new, patient));
        let mut known: Vec<(f64, usize)> = distances
            .enumerate()
            .filter(|(_, distance)| !distance.is_nan())
            .map(|(cluster, distance)| (distance, cluster))
            .collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (distance, cluster) = *known.first()?;
        Some(Assigned {
            cluster,
            distance,
            next: known.get(1).map_or(f64::NAN, |next| next.0),
        })
    };
    (0..new.patients()).map(of).collect()
}

/// Mean dissimilarities among patients in the order of their clusters, within a cluster from the medoid outwards, in at most
/// `cells` groups of neighbours; and how many groups each cluster has. Of many patients some at equal steps are looked at.
#[must_use]
pub fn ordered(
    dissimilarity: &Dissimilarity<'_>,
    clustering: &Clustering,
    cells: usize,
) -> (Array2<f64>, Vec<usize>) {
    let from_each = dissimilarity.from_each(&clustering.medoids);
    let mut order: Vec<usize> = (0..clustering.assigned.len()).collect();
    let own = |row: usize| {
        let cluster = clustering.assigned[row] as usize;
        (cluster, from_each[(row, cluster)])
    };
    order.sort_by(|a, b| {
        let (one, other) = (own(*a), own(*b));
        one.0
            .cmp(&other.0)
            .then(one.1.total_cmp(&other.1))
            .then(a.cmp(b))
    });
    let step = order.len().div_ceil(STABILITY_PATIENTS_MAX).max(1);
    let rows: Vec<usize> = order.into_iter().step_by(step).collect();
    let among = dissimilarity.among(&rows);
    // A group lies within one cluster.
    let width = rows.len().div_ceil(cells.max(1)).max(1);
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let mut of_cluster = vec![0; clustering.clusters()];
    let mut first = 0;
    for same in rows.chunk_by(|a, b| clustering.assigned[*a] == clustering.assigned[*b]) {
        let end = first + same.len();
        for start in (first..end).step_by(width) {
            groups.push(start..(start + width).min(end));
            of_cluster[clustering.assigned[same[0]] as usize] += 1;
        }
        first = end;
    }
    let mean = |(i, j): (usize, usize)| {
        let block = among.slice(ndarray::s![groups[i].clone(), groups[j].clone()]);
        block.sum() / (block.len_of(Axis(0)) * block.len_of(Axis(1))) as f64
    };
    (
        Array2::from_shape_fn((groups.len(), groups.len()), mean),
        of_cluster,
    )
}
