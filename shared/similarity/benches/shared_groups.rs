//! How well patients of all hospitals predict a held-out one, by its cluster or by the similar, beside the nearest of its own hospital.
//!
//! `cargo bench -p similarity --bench shared_groups`, on the data that `rounds.rs` takes: means over [`SPLITS`] random splits. Groups of ten and
//! their noise are those of a run.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/alike.rs"]
#[allow(dead_code, unreachable_pub)]
mod alike;
#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/held_out.rs"]
#[allow(dead_code, unreachable_pub)]
mod held_out;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::Part;
use held_out::{Split, area, classes, mean};
use hospitals::{breast_cancer, data_folder, gbsg2, heart, parkinsons};
use ndarray::{Array1, Array2, Axis};
use rayon::prelude::*;
use similarity::learn::unpsl::Settings;
use similarity::numeric::seed::Seed;
use similarity::uses::clusters::common::{Division, Spread, nearest};
use similarity::uses::hidden::Hidden;
use similarity::uses::microaggregation::{Closeness, Group, parted};

const SPLITS: u64 = 8;
const NEIGHBOURS: usize = 15;

type Sets = Vec<(&'static str, Vec<Part>)>;

fn main() {
    let mut sets = Sets::new();
    match data_folder() {
        Some(folder) => {
            sets.push(("four heart hospitals", heart(&folder)));
            sets.push(("Parkinson's", parkinsons(&folder)));
            sets.push(("GBSG2, recurrence", gbsg2(&folder)));
        }
        None => println!("no data folder"),
    }
    sets.extend(breast_cancer().map(|parts| ("breast cancer", parts)));
    clusters(&sets);
    elsewhere(&sets);
}

/// Patients held out, predicted by the cluster of all hospitals that they belong to, and by the nearest of their own hospital.
fn clusters(sets: &Sets) {
    for (name, parts) in sets {
        let found: Vec<[f64; 6]> = (0..SPLITS)
            .into_par_iter()
            .map(|number| {
                let split = Split::drawn(parts, number);
                let metric = split.learned(Settings::default(), number);
                let own = area(&split.judged(&metric, NEIGHBOURS));
                let groups = groups(&split.training, &metric, number);
                let mut all = [own; 6];
                for (clusters, found) in (2..=6).zip(&mut all[1..]) {
                    *found = by_cluster(&split, &groups, &metric, clusters);
                }
                all
            })
            .collect();
        let of = |place: usize| mean(&found.iter().map(|one| one[place]).collect::<Vec<f64>>()).0;
        let all: Vec<String> = (1..6).map(|place| format!("{:.3}", of(place))).collect();
        println!(
            "clusters, {name}: AUC {} with 2 to 6, {:.3} by {NEIGHBOURS} neighbours",
            all.join(", "),
            of(0)
        );
    }
}

/// A group of ten or more patients: where, its mean, and its patients with the outcome, with noise.
struct Known {
    group: Group,
    mean: Array1<f64>,
    events: f64,
}

fn groups(parts: &[Part], metric: &Array2<f64>, number: u64) -> Vec<Known> {
    let mut groups = Vec::new();
    for part in parts {
        let places = part.patients.dot(metric);
        for members in parted(places.view(), 10) {
            let events: u32 = members.iter().map(|row| classes(part)[*row]).sum();
            let others = members.len() as f64 - f64::from(events);
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key[8..16].copy_from_slice(&(groups.len() as u64).to_le_bytes());
            let noised = Hidden::by(key).classes(&[others, f64::from(events)], 1.0);
            groups.push(Known {
                group: Group::of(places.view(), &members),
                mean: places.select(Axis(0), &members).mean_axis(Axis(0)).unwrap(),
                events: noised[1].sum,
            });
        }
    }
    groups
}

/// The area under the curve of the clusters' shares, of the best of five starts.
fn by_cluster(split: &Split, groups: &[Known], metric: &Array2<f64>, clusters: usize) -> f64 {
    let coordinates = metric.ncols();
    let placed = groups
        .iter()
        .map(|one| (one.group.patients, one.mean.view()));
    let spread = Spread::of(placed, coordinates);
    let mut stream = Seed(7).stream("clusters", clusters as u64);
    let divide = |_| {
        let mut division = Division::new(spread.start(clusters, &mut stream));
        for _ in 0..40 {
            let (mut patients, mut sums) =
                (vec![0; clusters], Array2::zeros((clusters, coordinates)));
            for one in groups {
                let (place, _) = nearest(one.mean.view(), division.centres.view());
                patients[place] += one.group.patients;
                sums.row_mut(place)
                    .scaled_add(one.group.patients as f64, &one.mean);
            }
            division.step(&patients, sums.view());
        }
        division
    };
    let best = (0..5)
        .map(divide)
        .min_by(|a, b| a.left.total_cmp(&b.left))
        .unwrap();
    let (mut events, mut patients) = (vec![0.0; clusters], vec![0.0; clusters]);
    for one in groups {
        let (place, _) = nearest(one.mean.view(), best.centres.view());
        events[place] += one.events;
        patients[place] += one.group.patients as f64;
    }
    let mut judged = Vec::new();
    for part in &split.held {
        for (place, class) in part.patients.dot(metric).outer_iter().zip(classes(part)) {
            let (cluster, _) = nearest(place, best.centres.view());
            judged.push((events[cluster] / patients[cluster].max(1.0), *class));
        }
    }
    area(&judged)
}

/// Patients held out, predicted by the similar ones of all hospitals, in groups and with noise, and by the nearest of their own.
fn elsewhere(sets: &Sets) {
    for (name, parts) in sets {
        let found: Vec<[f64; 2]> = (0..SPLITS)
            .into_par_iter()
            .map(|number| {
                let split = Split::drawn(parts, number);
                let metric = split.learned(Settings::default(), number);
                let own = area(&split.judged(&metric, NEIGHBOURS));
                let kept = split.training.iter();
                let kept: Vec<(Array2<f64>, Vec<u32>)> = kept
                    .map(|part| (part.patients.dot(&metric), classes(part).to_vec()))
                    .collect();
                let radius = alike::radii(&kept, Closeness::Euclidean)[1];
                let groups = groups(&split.training, &metric, number);
                let mut judged = Vec::new();
                for part in &split.held {
                    for (place, class) in part.patients.dot(&metric).outer_iter().zip(classes(part))
                    {
                        let (mut events, mut patients) = (0.0, 0.0);
                        for one in &groups {
                            let query = place.to_vec();
                            let share = one.group.within(&query, radius, Closeness::Euclidean);
                            events += share * one.events;
                            patients += share * one.group.patients as f64;
                        }
                        let is_known = patients >= 20.0;
                        judged.push((if is_known { events / patients } else { 0.5 }, *class));
                    }
                }
                [area(&judged), own]
            })
            .collect();
        let of =
            |own: &dyn Fn(&[f64; 2]) -> f64| mean(&found.iter().map(own).collect::<Vec<f64>>());
        let (gain, error) = of(&|one| one[0] - one[1]);
        println!(
            "neighbours, {name}: AUC {:.3} by similar patients of all hospitals, {:.3} by {NEIGHBOURS} of their own; {gain:+.3} ({error:.3})",
            of(&|one| one[0]).0,
            of(&|one| one[1]).0
        );
    }
}
