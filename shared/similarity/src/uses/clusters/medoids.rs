//! Partitioning around medoids by eager swaps: FasterPAM (Schubert and Rousseeuw 2021), written from the paper.
//!
//! A swap of a medoid for another patient changes the total deviation by three parts: what all who are nearer to the newcomer
//! gain, what those lose whose medoid goes, and what these gain again where the newcomer is nearer than their second. One
//! pass over the patients gives the changes of all k swaps of one newcomer, and the first swap that helps is made.
//!
//! Six patients around two ages. Each cluster is named by one of them, its medoid:
//!
//! ```
//! use ndarray::{Array2, array};
//! use similarity::numeric::seed::Seed;
//! use similarity::uses::clusters::medoids::{Medoids, build};
//!
//! let ages = array![30.0, 33.0, 35.0, 70.0, 71.0, 75.0];
//! let apart = Array2::from_shape_fn((6, 6), |(i, j)| f64::abs(ages[i] - ages[j]));
//! let built = build(apart.view(), 2);
//! let found = Medoids::of_starts(apart.view(), &built, 10, (Seed(1), "example"));
//!
//! let mut named: Vec<f64> = found.medoids.iter().map(|row| ages[*row]).collect();
//! named.sort_by(f64::total_cmp);
//! assert_eq!(named, [33.0, 71.0]);
//! assert_eq!(found.assigned[0], found.assigned[2]);
//! assert_eq!(found.total, 3.0 + 2.0 + 1.0 + 4.0);
//! ```

use ndarray::{Array2, ArrayView2};
use rand::seq::index;
use rayon::prelude::*;

use crate::numeric::seed::Seed;

/// A swap must lower the total deviation by this share of it: what is less is rounding.
const GAIN_MIN: f64 = 1e-12;

/// Medoids and who belongs to which.
#[derive(Debug, Clone, PartialEq)]
pub struct Medoids {
    /// Rows of the k medoids.
    pub medoids: Vec<usize>,
    /// One place in `medoids` a patient: the nearest, of equals the first; a medoid is its own.
    pub assigned: Vec<u32>,
    /// Sum over patients of the dissimilarity from their medoid.
    pub total: f64,
}

impl Medoids {
    /// Of the dissimilarities of n patients from k medoids, n x k.
    #[must_use]
    pub fn nearest(medoids: Vec<usize>, apart: ArrayView2<'_, f64>) -> Self {
        let mut total = 0.0;
        let mut assigned = Vec::with_capacity(apart.nrows());
        for row in apart.outer_iter() {
            let mut best = 0;
            for (place, value) in row.iter().enumerate() {
                if *value < row[best] {
                    best = place;
                }
            }
            assigned.push(best as u32);
            total += row[best];
        }
        for (place, medoid) in medoids.iter().enumerate() {
            let own = &mut assigned[*medoid];
            total -= apart[(*medoid, *own as usize)];
            *own = place as u32;
        }
        Self {
            medoids,
            assigned,
            total,
        }
    }

    /// The medoids of least total deviation of several starts: the first is `built` ([`build`]), the others are drawn from the
    /// stream `name` of `seed`. `apart` is n x n, and n is larger than the length of `built`.
    #[must_use]
    pub fn of_starts(
        apart: ArrayView2<'_, f64>,
        built: &[usize],
        starts: usize,
        (seed, name): (Seed, &str),
    ) -> Self {
        let patients = apart.nrows();
        let found: Vec<Self> = (0..starts.max(1))
            .into_par_iter()
            .map(|start| {
                let first = match start {
                    0 => built.to_vec(),
                    start => {
                        let mut stream = seed.stream(name, start as u64);
                        index::sample(&mut stream, patients, built.len()).into_vec()
                    }
                };
                Self::faster_pam(apart, first)
            })
            .collect();
        let least = |a: Self, b: Self| if b.total < a.total { b } else { a };
        found
            .into_iter()
            .reduce(least)
            .expect("there is at least one start")
    }

    /// FasterPAM from these medoids, at least two, all different.
    #[must_use]
    pub fn faster_pam(apart: ArrayView2<'_, f64>, medoids: Vec<usize>) -> Self {
        let mut search = Search::new(apart, medoids);
        search.settle();
        let columns =
            Array2::from_shape_fn((apart.nrows(), search.medoids.len()), |(row, place)| {
                apart[(row, search.medoids[place])]
            });
        Self::nearest(search.medoids, columns.view())
    }
}

/// First medoids (BUILD of Kaufman and Rousseeuw 1990): the patient of least sum, then again and again whoever lowers the total
/// deviation most. The first of more are those of fewer.
#[must_use]
pub fn build(apart: ArrayView2<'_, f64>, clusters: usize) -> Vec<usize> {
    let patients = apart.nrows();
    let mut medoids: Vec<usize> = Vec::with_capacity(clusters);
    let mut nearest = vec![f64::INFINITY; patients];
    for _ in 0..clusters {
        let cost = |candidate: &usize| -> f64 {
            let row = apart.row(*candidate);
            row.iter().zip(&nearest).map(|(a, b)| a.min(*b)).sum()
        };
        let others = (0..patients).filter(|row| !medoids.contains(row));
        let costs = others.map(|row| (cost(&row), row));
        let best = costs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (_, best) = best.expect("there are more patients than medoids");
        let row = apart.row(best);
        nearest
            .iter_mut()
            .zip(row)
            .for_each(|(known, new)| *known = known.min(*new));
        medoids.push(best);
    }
    medoids
}

struct Search<'d> {
    apart: ArrayView2<'d, f64>,
    medoids: Vec<usize>,
    is_medoid: Vec<bool>,
    /// Place of every patient's nearest medoid, and of the second.
    first: Vec<u32>,
    second: Vec<u32>,
    to_first: Vec<f64>,
    to_second: Vec<f64>,
    /// What the total deviation gains by taking each medoid away.
    removal: Vec<f64>,
    total: f64,
}

impl<'d> Search<'d> {
    fn new(apart: ArrayView2<'d, f64>, medoids: Vec<usize>) -> Self {
        let patients = apart.nrows();
        let mut is_medoid = vec![false; patients];
        medoids.iter().for_each(|row| is_medoid[*row] = true);
        let mut search = Self {
            apart,
            removal: vec![0.0; medoids.len()],
            medoids,
            is_medoid,
            first: vec![0; patients],
            second: vec![0; patients],
            to_first: vec![0.0; patients],
            to_second: vec![0.0; patients],
            total: 0.0,
        };
        (0..patients).for_each(|patient| search.look(patient));
        search.add_up();
        search
    }

    /// Finds a patient's two nearest medoids anew.
    fn look(&mut self, patient: usize) {
        let (mut first, mut second) = ((f64::INFINITY, 0), (f64::INFINITY, 0));
        for (place, medoid) in self.medoids.iter().enumerate() {
            let apart = self.apart[(*medoid, patient)];
            if apart < first.0 {
                second = first;
                first = (apart, place);
            } else if apart < second.0 {
                second = (apart, place);
            }
        }
        (self.to_first[patient], self.to_second[patient]) = (first.0, second.0);
        (self.first[patient], self.second[patient]) = (first.1 as u32, second.1 as u32);
    }

    fn add_up(&mut self) {
        self.removal.fill(0.0);
        self.total = 0.0;
        for patient in 0..self.first.len() {
            self.removal[self.first[patient] as usize] +=
                self.to_second[patient] - self.to_first[patient];
            self.total += self.to_first[patient];
        }
    }

    /// Makes swaps until no newcomer helps.
    fn settle(&mut self) {
        let patients = self.first.len();
        let mut changes = vec![0.0; self.medoids.len()];
        let (mut newcomer, mut unhelpful) = (0, 0);
        while unhelpful < patients {
            unhelpful += 1;
            if !self.is_medoid[newcomer] {
                let (place, change) = self.best_swap(newcomer, &mut changes);
                if change < -GAIN_MIN * self.total {
                    self.swap(place, newcomer);
                    unhelpful = 0;
                }
            }
            newcomer = (newcomer + 1) % patients;
        }
    }

    /// The medoid that a newcomer best replaces, and by how much the total deviation changes then.
    fn best_swap(&self, newcomer: usize, changes: &mut [f64]) -> (usize, f64) {
        changes.copy_from_slice(&self.removal);
        let row = self.apart.row(newcomer);
        let mut gained = 0.0;
        let known = self.to_first.iter().zip(&self.to_second).zip(&self.first);
        for (&apart, ((&to_first, &to_second), &first)) in row.iter().zip(known) {
            if apart < to_second {
                let change = &mut changes[first as usize];
                if apart < to_first {
                    gained += apart - to_first;
                    *change += to_first - to_second;
                } else {
                    *change += apart - to_second;
                }
            }
        }
        let mut best = 0;
        for place in 1..changes.len() {
            if changes[place] < changes[best] {
                best = place;
            }
        }
        (best, changes[best] + gained)
    }

    fn swap(&mut self, place: usize, newcomer: usize) {
        self.is_medoid[self.medoids[place]] = false;
        self.is_medoid[newcomer] = true;
        self.medoids[place] = newcomer;
        let changed = place as u32;
        for patient in 0..self.first.len() {
            let apart = self.apart[(newcomer, patient)];
            if self.first[patient] == changed || self.second[patient] == changed {
                self.look(patient);
            } else if apart < self.to_first[patient] {
                self.to_second[patient] = self.to_first[patient];
                self.second[patient] = self.first[patient];
                (self.to_first[patient], self.first[patient]) = (apart, changed);
            } else if apart < self.to_second[patient] {
                (self.to_second[patient], self.second[patient]) = (apart, changed);
            }
        }
        self.add_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn total(apart: &Array2<f64>, medoids: &[usize]) -> f64 {
        let nearest = |row: usize| {
            let all = medoids.iter().map(|medoid| apart[(row, *medoid)]);
            all.fold(f64::INFINITY, f64::min)
        };
        (0..apart.nrows()).map(nearest).sum()
    }

    fn drawn(patients: usize, index: u64) -> Array2<f64> {
        let mut stream = Seed(3).stream("points", index);
        let points: Vec<[f64; 2]> = (0..patients)
            .map(|_| [stream.random_range(0.0..1.0), stream.random_range(0.0..1.0)])
            .collect();
        Array2::from_shape_fn((patients, patients), |(i, j)| {
            (points[i][0] - points[j][0]).hypot(points[i][1] - points[j][1])
        })
    }

    #[test]
    fn no_swap_improves_what_is_found_and_starts_come_near_the_best_of_all() {
        let mut best_found = 0;
        for index in 0..20 {
            let apart = drawn(18, index);
            let built = build(apart.view(), 3);
            let found = Medoids::of_starts(apart.view(), &built, 6, (Seed(1), "starts"));
            assert!((found.total - total(&apart, &found.medoids)).abs() < 1e-12);
            for place in 0..3 {
                for newcomer in 0..18 {
                    let mut other = found.medoids.clone();
                    other[place] = newcomer;
                    assert!(total(&apart, &other) > found.total - 1e-12);
                }
            }
            let mut least = f64::INFINITY;
            for a in 0..18 {
                for b in 0..a {
                    for c in 0..b {
                        least = least.min(total(&apart, &[a, b, c]));
                    }
                }
            }
            best_found += usize::from(found.total < least + 1e-12);
        }
        assert!(best_found >= 18, "{best_found} of 20");
    }

    #[test]
    fn identical_patients_still_have_medoids_of_their_own() {
        let alike = Array2::zeros((6, 6));
        let built = build(alike.view(), 3);
        let found = Medoids::of_starts(alike.view(), &built, 3, (Seed(1), "starts"));
        let mut assigned = found.assigned.clone();
        assigned.sort_unstable();
        assigned.dedup();
        assert_eq!((assigned.len(), found.total), (3, 0.0));
    }
}
