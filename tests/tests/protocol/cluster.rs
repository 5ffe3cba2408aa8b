//! Promise: a run that looks for groups of patients holds under loss, delay, repetition, reordering and restart.
//!
//! The oracle judges every exchange from the stored records alone: after the first step every centre is the mean of whom the sites told to be
//! nearest to it, or stands where nobody was nearest, and no division is asked about for ever.

use crate::world::{self, Played};
use ndarray::{Array2, ArrayView1, array};
use protocol::job::Job;
use protocol::message::cluster::{
    self, Agreement, Dividing, Mark, Marks, NearestSums, Spread, nearest,
};
use protocol::message::neighbours::{Alike, Noised};
use protocol::message::{Answer, Request};
use protocol::method::cluster::settings::STEPS_MAX;
use protocol::progress::Ending;
use protocol::run::Record;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, HashSet};

/// Patients of each small group of a site: no site has as many as another.
fn size(site: usize) -> u64 {
    10 + site as u64
}

/// Sites whose small groups lie about three places, each in its own way.
struct Cluster {
    /// What was asked, by exchange.
    asked: HashMap<u32, Dividing>,
    /// Where centres may be, in millionths, once a step has closed.
    means: HashSet<Vec<i64>>,
    /// Steps that have closed.
    steps: usize,
}

/// Where the groups of a site are, and their class.
fn groups(site: usize) -> Vec<(Vec<f64>, usize)> {
    let off = 0.05 * site as f64;
    let places = [(0.0, 0.0, 0), (8.0, 0.5, 1), (0.5, 9.0, 1)];
    let near = |(x, y, class): (f64, f64, usize)| {
        let all = [0.0, 0.5, -0.4, 0.3].into_iter();
        all.map(move |step| (vec![x + step + off, y - 0.7 * step], class))
    };
    places.into_iter().flat_map(near).collect()
}

#[test]
fn a_run_that_looks_for_groups_survives_loss_delay_repetition_and_restart() {
    let endings = world::survives::<Cluster>(0..80, |random| {
        let sites = random.random_range(2..=4);
        job(sites)
    });
    let completed = endings.iter().filter(|one| **one == Ending::Completed);
    let completed = completed.count();
    assert!(completed > 30, "only {completed} of 80 runs completed");
}

#[test]
fn a_disturbed_run_leaves_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Cluster>(1000..1040, |_| job(3));
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Cluster>(&job(3));
}

#[test]
fn a_refusal_ends_the_run_and_names_the_site() {
    world::a_refusal_ends_the_run_by_name::<Cluster>(&job(3));
}

/// The small groups that a sample has of a site: not the same of any two.
fn sampled(site: usize, sample: u32) -> Vec<(Vec<f64>, usize)> {
    let left_out = (site + sample as usize) % 5;
    let all = groups(site).into_iter().enumerate();
    all.filter(|(place, _)| sample == 0 || place % 5 != left_out)
        .map(|(_, group)| group)
        .collect()
}

fn sums(site: usize, asked: &Dividing) -> NearestSums {
    let mut told = NearestSums {
        patients: vec![0; asked.centres.nrows()],
        sums: Array2::zeros(asked.centres.dim()),
    };
    for (divided, rows) in asked.rows() {
        let own = asked.centres.slice(ndarray::s![rows.clone(), ..]);
        for (mean, _) in sampled(site, divided.sample) {
            let row = rows.start + nearest(array![mean[0], mean[1]].view(), own).0;
            told.patients[row] += size(site);
            told.sums[[row, 0]] += size(site) as f64 * mean[0];
            told.sums[[row, 1]] += size(site) as f64 * mean[1];
        }
    }
    told
}

fn agreement(site: usize, asked: &Dividing) -> Agreement {
    let mut told = Agreement {
        fared: Vec::new(),
        tables: Vec::new(),
    };
    for (divided, rows) in asked.rows() {
        let own = asked.centres.slice(ndarray::s![rows, ..]);
        let width = divided.clusters as usize;
        let cluster = |mean: &[f64]| nearest(array![mean[0], mean[1]].view(), own).0;
        if divided.sample == 0 {
            let mut fared = vec![[0; 2]; width];
            for (mean, class) in groups(site) {
                fared[cluster(&mean)][class] += size(site);
            }
            told.fared.extend(fared.map_alike());
        } else {
            // As if every cluster were found again.
            let mut table = vec![0; width * width];
            for (mean, _) in sampled(site, divided.sample) {
                let place = cluster(&mean);
                table[place * width + place] += size(site);
            }
            told.tables.extend(table);
        }
    }
    told
}

trait MapAlike {
    fn map_alike(self) -> Vec<Alike>;
}

impl MapAlike for Vec<[u64; 2]> {
    fn map_alike(self) -> Vec<Alike> {
        let noised = |count: u64| Noised {
            sum: count as f64,
            variance: 2.0,
        };
        let alike = |classes: [u64; 2]| Alike {
            patients: classes.iter().sum::<u64>() as f64,
            border: 0.0,
            classes: classes.map(noised).to_vec(),
            sums: Vec::new(),
        };
        self.into_iter().map(alike).collect()
    }
}

impl Played for Cluster {
    fn new(_: &Job) -> Self {
        Self {
            asked: HashMap::new(),
            means: HashSet::new(),
            steps: 0,
        }
    }

    fn patients(site: usize) -> u64 {
        size(site) * groups(site).len() as u64
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        let Request::Cluster(request) = request else {
            panic!("a run that looks for groups asks {request:?}");
        };
        Answer::Cluster(match request {
            cluster::Request::Measure => {
                let means: Vec<_> = groups(site)
                    .iter()
                    .map(|(mean, _)| array![mean[0], mean[1]])
                    .collect();
                let all = means.iter().map(|mean| (size(site), mean.view()));
                cluster::Answer::Spread(Spread::of(all, 2))
            }
            cluster::Request::Step(asked) => cluster::Answer::Sums(sums(site, asked)),
            cluster::Request::Compare(asked) => cluster::Answer::Agreement(agreement(site, asked)),
            cluster::Request::Mark(asked) => {
                let mark = Mark {
                    patients: size(site),
                    sum: 3.0 + site as f64,
                    squares: 9.0,
                };
                let one = Marks {
                    sites: 1,
                    features: vec![mark],
                };
                cluster::Answer::Marks(vec![one; asked.centres.nrows()])
            }
        })
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(answer, Answer::Cluster(_))
    }

    fn recomputed(answer: &mut Answer, _: &mut ChaCha8Rng) {
        match answer {
            Answer::Cluster(cluster::Answer::Spread(told)) => told.sums[0] += 1.0,
            Answer::Cluster(cluster::Answer::Sums(told)) => told.sums[[0, 0]] += 0.5,
            Answer::Cluster(cluster::Answer::Agreement(told)) => {
                told.fared[0].classes[0].sum += 10.0;
                told.fared[1].classes[0].sum = 0.0;
            }
            Answer::Cluster(cluster::Answer::Marks(told)) => told[0].features[0].sum += 1.0,
            _ => {}
        }
    }

    fn sent(&mut self, site: usize, exchange: u32, request: &Request) -> Option<String> {
        let Request::Cluster(cluster::Request::Step(asked)) = request else {
            return None;
        };
        let known = |centre: ArrayView1<'_, f64>| self.means.contains(&place(centre));
        if self.steps > 0 && !asked.centres.outer_iter().all(known) {
            return Some(format!(
                "site {site} is asked about a centre that is no mean"
            ));
        }
        let known = self.asked.insert(exchange, asked.as_ref().clone());
        let is_same = known.is_none_or(|known| known == *asked.as_ref());
        (!is_same).then(|| format!("exchange {exchange} asks something else than before"))
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        let told = told_sums(record)?;
        self.steps += 1;
        let Some(asked) = self.asked.get(&record.exchange) else {
            return Some("sums of what was not asked".to_owned());
        };
        for (site, answer) in record.answers.iter().enumerate() {
            if let Some(Answer::Cluster(cluster::Answer::Sums(own))) = answer
                && *own != sums(site, asked)
            {
                return Some(format!(
                    "the sums of site {site} are not those of its groups"
                ));
            }
        }
        for (row, patients) in told.patients.iter().enumerate() {
            let mean = match patients {
                0 => asked.centres.row(row).to_owned(),
                _ => told.sums.row(row).mapv(|sum| sum / *patients as f64),
            };
            self.means.insert(place(mean.view()));
        }
        let most = 2 * STEPS_MAX as usize;
        (self.steps > most).then(|| "centres are moved without end".to_owned())
    }
}

fn place(centre: ArrayView1<'_, f64>) -> Vec<i64> {
    centre
        .iter()
        .map(|one| (one * 1e6).round() as i64)
        .collect()
}

/// The sums of an exchange, where it was a step.
fn told_sums(record: &Record) -> Option<NearestSums> {
    let mut sum: Option<NearestSums> = None;
    for answer in record.answers.iter().flatten() {
        if let Answer::Cluster(cluster::Answer::Sums(own)) = answer {
            match &mut sum {
                None => sum = Some(own.clone()),
                Some(sum) => {
                    sum.sums += &own.sums;
                    let both = sum.patients.iter_mut().zip(&own.patients);
                    both.for_each(|(sum, own)| *sum += own);
                }
            }
        }
    }
    sum
}

fn job(sites: usize) -> String {
    let names: Vec<String> = (0..sites).map(|site| format!("\"site-{site}\"")).collect();
    format!(
        "name = \"world\"\nmethod = \"cluster\"\nsites = [{}]\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
         [[features]]\nname = \"x\"\nkind = \"numeric\"\n\
         [cluster]\nrun = \"learned\"\ncoordinates = 2\nclusters_max = 2\nsamples = 10\n",
        names.join(", "),
    )
}
