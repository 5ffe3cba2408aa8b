//! The search for divisions: all numbers of clusters, all starts, and the same in all samples, side by side in every question.

use super::message::{Divided, Dividing, NearestSums, Spread};
use super::settings::{ClusterSettings, SAMPLE_STARTS, STARTS, STEPS_MAX};
use ndarray::{Array2, Axis, concatenate, s};
use similarity::numeric::seed::Seed;
use similarity::uses::clusters::common::Division;
use std::sync::Arc;

/// Divisions under way.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// By sample, number of clusters, and start.
    all: Vec<(Divided, Division)>,
    /// What is asked at present: the divisions that are not settled.
    pub(super) asked: Arc<Dividing>,
    /// Questions that were answered.
    pub(super) steps: u32,
    coordinates: usize,
}

/// The best division of each sample into each number of clusters.
#[derive(Debug, Clone)]
pub(super) struct Best {
    /// Those of all groups first, by rising number of clusters; the clusters of each by falling size.
    pub(super) asked: Arc<Dividing>,
    /// Searches of all groups that were not over.
    pub(super) unsettled: u32,
}

impl Search {
    /// Begins where the groups are.
    pub(super) fn new(settings: &ClusterSettings, spread: &Spread, seed: Seed) -> Self {
        let mut all = Vec::new();
        for sample in 0..=settings.samples {
            for clusters in settings.tried() {
                let starts = if sample == 0 { STARTS } else { SAMPLE_STARTS };
                let name = format!("cluster/{sample}/{clusters}");
                for start in 0..starts {
                    let mut stream = seed.stream(&name, start as u64);
                    let centres = spread.start(clusters, &mut stream);
                    all.push((divided(sample, clusters), Division::new(centres)));
                }
            }
        }
        let mut search = Self {
            all,
            asked: Arc::new(Dividing {
                divisions: Vec::new(),
                centres: Array2::zeros((0, 0)),
            }),
            steps: 0,
            coordinates: settings.coordinates as usize,
        };
        search.ask();
        search
    }

    /// Takes a step; whether no more is to be asked.
    pub(super) fn step(&mut self, told: &NearestSums) -> bool {
        let mut rows = self.asked.rows().map(|(_, rows)| rows);
        for (_, division) in self.all.iter_mut().filter(|(_, one)| !one.is_settled) {
            if let Some(rows) = rows.next() {
                let sums = told.sums.slice(s![rows.clone(), ..]);
                division.step(&told.patients[rows], sums);
            }
        }
        drop(rows);
        self.steps += 1;
        self.ask();
        self.asked.divisions.is_empty() || self.steps >= STEPS_MAX
    }

    fn ask(&mut self) {
        let open = self.all.iter().filter(|(_, one)| !one.is_settled);
        self.asked = dividing(
            open.map(|(of, one)| (*of, one.centres.view())),
            self.coordinates,
        );
    }

    /// What was found.
    pub(super) fn best(&self) -> Best {
        let mut best: Vec<&(Divided, Division)> = Vec::new();
        for one in &self.all {
            match best.last_mut() {
                Some(last) if last.0 == one.0 => {
                    if one.1.left < last.1.left {
                        *last = one;
                    }
                }
                _ => best.push(one),
            }
        }
        let is_open = |one: &&&(Divided, Division)| one.0.sample == 0 && !one.1.is_settled;
        let unsettled = best.iter().filter(is_open).count();
        let by_size: Vec<(Divided, Array2<f64>)> = best
            .iter()
            .map(|(of, one)| (*of, one.centres.select(Axis(0), &one.by_size())))
            .collect();
        let sorted = by_size.iter().map(|(of, centres)| (*of, centres.view()));
        Best {
            asked: dividing(sorted, self.coordinates),
            unsettled: crate::exchange::count(unsettled),
        }
    }
}

impl Best {
    /// The centres of the division of all groups at this place.
    pub(super) fn centres(&self, place: usize) -> Array2<f64> {
        let rows = self.asked.rows().nth(place).map_or(0..0, |(_, rows)| rows);
        self.asked.centres.slice(s![rows, ..]).to_owned()
    }
}

fn divided(sample: u32, clusters: usize) -> Divided {
    Divided {
        sample,
        clusters: crate::exchange::count(clusters),
    }
}

fn dividing<'c>(
    divisions: impl Iterator<Item = (Divided, ndarray::ArrayView2<'c, f64>)>,
    coordinates: usize,
) -> Arc<Dividing> {
    let (divisions, centres): (Vec<_>, Vec<_>) = divisions.unzip();
    let centres = concatenate(Axis(0), &centres);
    Arc::new(Dividing {
        divisions,
        centres: centres.unwrap_or_else(|_| Array2::zeros((0, coordinates))),
    })
}
