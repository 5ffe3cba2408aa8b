//! Promise: a run that asks who is alike holds under loss, delay, repetition, reordering and restart.
//!
//! The oracle judges every exchange from the stored records alone: the radii are those in which shares of the sites' pairs are
//! reached, they stay what they are, and what the run leaves is the sum of what the sites told.

use crate::world::{self, Played};
use protocol::job::Job;
use protocol::message::neighbours::{
    self, Alike, Distances, Found, Groups, Mean, Noised, OctaveGrid,
};
use protocol::message::{Answer, Request};
use protocol::method::neighbours::settings::SHARES;
use protocol::progress::Ending;
use protocol::run::Record;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const QUERIES: usize = 2;

/// Sites whose patients lie farther from each other, the later the site stands in the job.
struct Neighbours {
    records: Vec<Record>,
    radii: Option<Vec<f64>>,
}

#[test]
fn a_run_of_neighbours_survives_loss_delay_repetition_and_restart() {
    let endings = world::survives::<Neighbours>(0..150, |random| {
        let sites = random.random_range(2..=5);
        job(sites)
    });
    let completed = endings.iter().filter(|one| **one == Ending::Completed);
    let completed = completed.count();
    assert!(completed > 75, "only {completed} of 150 runs completed");
}

#[test]
fn a_disturbed_run_leaves_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Neighbours>(1000..1040, |_| job(3));
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Neighbours>(&job(3));
}

#[test]
fn a_refusal_ends_the_run_and_names_the_site() {
    world::a_refusal_ends_the_run_by_name::<Neighbours>(&job(3));
}

impl Played for Neighbours {
    fn new(_: &Job) -> Self {
        Self {
            records: Vec::new(),
            radii: None,
        }
    }

    fn patients(site: usize) -> u64 {
        40 + 60 * site as u64
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        let Request::Neighbours(request) = request else {
            panic!("a run of neighbours asks {request:?}");
        };
        Answer::Neighbours(match request {
            neighbours::Request::Measure => neighbours::Answer::Distances(Distances {
                groups: groups(site),
                pairs: distances(site),
            }),
            neighbours::Request::Count(radii) => {
                let alike = |radius: &f64| fared(if *radius > 1.0 { 10.0 } else { 0.5 }, site);
                let of_query = |_| radii.iter().map(alike);
                neighbours::Answer::Found(Found {
                    groups: groups(site),
                    everybody: fared(20.0, site),
                    alike: (0..QUERIES).flat_map(of_query).collect(),
                    features: vec![
                        Mean {
                            patients: 10.0,
                            sum: 25.5,
                        };
                        QUERIES
                    ],
                })
            }
        })
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(answer, Answer::Neighbours(_))
    }

    fn recomputed(answer: &mut Answer, _: &mut ChaCha8Rng) {
        match answer {
            Answer::Neighbours(neighbours::Answer::Distances(told)) => told.pairs.rotate_left(32),
            Answer::Neighbours(neighbours::Answer::Found(told)) => {
                told.alike[2].classes[1].sum += 10.0;
            }
            _ => {}
        }
    }

    fn sent(&mut self, site: usize, _: u32, request: &Request) -> Option<String> {
        let Request::Neighbours(neighbours::Request::Count(radii)) = request else {
            return None;
        };
        let known = self.radii.get_or_insert_with(|| radii.to_vec());
        if known != radii.as_ref() {
            return Some(format!("site {site} is asked about other radii"));
        }
        let told = self.records.iter().rev().find_map(distances_told);
        let Some(told) = told else {
            return Some("patients are counted before the radii are known".to_owned());
        };
        let all: u64 = told.iter().sum();
        for (share, radius) in SHARES.iter().zip(radii.iter()) {
            let within = |radius: f64| -> u64 {
                let cells = told.iter().enumerate();
                cells
                    .filter(|(cell, _)| OctaveGrid::end(*cell) <= radius)
                    .map(|(_, count)| count)
                    .sum()
            };
            let wanted = all * u64::from(*share);
            // It lies within a cell, of a 32nd of an octave.
            if 100 * within(1.03 * radius) < wanted || 100 * within(0.97 * radius) > wanted {
                return Some(format!("{radius} is not where {share} of 100 pairs are"));
            }
        }
        None
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        self.records.push(record.clone());
        None
    }
}

/// The sum of the distances of an exchange, where it is one of them.
fn distances_told(record: &Record) -> Option<Vec<u64>> {
    let mut sum: Option<Vec<u64>> = None;
    for answer in record.answers.iter().flatten() {
        if let Answer::Neighbours(neighbours::Answer::Distances(own)) = answer {
            let own = &own.pairs;
            let sum = sum.get_or_insert_with(|| vec![0; own.len()]);
            sum.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
        }
    }
    sum
}

fn groups(site: usize) -> Groups {
    Groups {
        groups: 2,
        patients: 20 + site as u64,
    }
}

fn fared(others: f64, site: usize) -> Alike {
    let noised = |sum| Noised { sum, variance: 1.5 };
    Alike {
        patients: others + 0.25 * site as f64,
        border: 0.5,
        classes: vec![noised(others - 1.25), noised(0.25 * site as f64)],
        sums: Vec::new(),
    }
}

fn distances(site: usize) -> Vec<u64> {
    let mut counts = vec![0; OctaveGrid::cells()];
    for pair in 1..=10 {
        counts[OctaveGrid::cell(0.3 * f64::from(pair) * (1.0 + site as f64))] += 100;
    }
    counts
}

fn job(sites: usize) -> String {
    let names: Vec<String> = (0..sites).map(|site| format!("\"site-{site}\"")).collect();
    format!(
        "name = \"world\"\nmethod = \"neighbours\"\nsites = [{}]\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
         [[features]]\nname = \"x\"\nkind = \"numeric\"\n\
         [neighbours]\nrun = \"learned\"\nqueries = [[0.5, 1], [2, -1]]\n",
        names.join(", "),
    )
}
