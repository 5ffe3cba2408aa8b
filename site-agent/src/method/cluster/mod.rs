//! What a site tells where groups of patients are looked for that the sites have in common: sums over small groups that it has made
//! once for all, the same as where it is asked who is alike.

mod at_site;
pub(crate) mod explain;
mod results;

// By this name the list of methods knows it.
pub(super) use self::Divider as Own;
use super::neighbours::marks::marks;
use super::neighbours::outcomes::Outcomes;
use super::neighbours::{Parting, least, refused};
use super::{Secret, SiteRun};
use crate::books::ledger::Asks;
use crate::cases::elsewhere;
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use ndarray::{Array1, Array2, Axis};
use privacy::Rules;
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::Answer;
use protocol::message::cluster::{
    self as message, Agreement, Divided, Dividing, Mark, Marking, Marks, NearestSums, Request,
    Spread, nearest, sample,
};
use protocol::method::cluster::model::Alike;
use protocol::method::cluster::settings::ClusterSettings;
use results::ClusterResults;
use similarity::numeric::seed::Seed;
use std::path::Path;

/// What a site's number for its samples is asked by.
const SAMPLES: &[u8] = b"cluster samples";

/// The small groups of a site's patients.
pub(super) struct Divider {
    /// Where the run places every patient.
    vectors: Array2<f64>,
    smalls: Vec<Small>,
    /// The small groups of each sample.
    samples: Vec<Vec<usize>>,
    /// Nobody, of the shape of how patients fare.
    nobody: Alike,
}

/// What is released of a small group, whole or not at all.
struct Small {
    patients: u64,
    mean: Array1<f64>,
    /// How they fared, with noise.
    fared: Alike,
    features: Vec<Mark>,
}

/// What a job asks of the site's books: each centre is a place of which it is asked who is near.
fn asks(settings: &ClusterSettings, job: &Job, runs: &Path) -> Result<Asks, Stop> {
    let kept = elsewhere::kept(runs, (&settings.run, settings.by), job).map_err(refused)?;
    Ok(Asks {
        grouping: kept.digest,
        queries: settings.clusters() as u64,
    })
}

impl Divider {
    /// Parts the patients, and draws the samples from a number of the site's own.
    pub(super) fn new(
        settings: &ClusterSettings,
        job: &Job,
        cohort: &SiteCohort,
        runs: &Path,
        (rules, secret): (&Rules, &Secret),
    ) -> Result<Self, Stop> {
        let by = ((&settings.run, settings.by), settings.coordinates as usize);
        let Parting {
            vectors, groups, ..
        } = Parting::new(by, job, cohort, runs, rules)?;
        let outcomes = Outcomes::new(job, cohort, (rules, secret));
        let small = |members: Vec<usize>| {
            let mean = vectors.select(Axis(0), &members).mean_axis(Axis(0));
            Small {
                patients: members.len() as u64,
                mean: mean.unwrap_or_else(|| Array1::zeros(vectors.ncols())),
                fared: outcomes.of_group(&members),
                features: marks(cohort.cohort.columns(), &members, least(rules)),
            }
        };
        let smalls: Vec<Small> = groups.into_iter().map(small).collect();
        let seed = Seed(secret(SAMPLES));
        let drawn = |number: u32| {
            let mut stream = seed.stream("cluster/samples", u64::from(number));
            sample(smalls.len(), &mut stream)
        };
        Ok(Self {
            samples: (1..=settings.samples).map(drawn).collect(),
            nobody: Alike::nobody(&job.cohort.outcome.kind),
            vectors,
            smalls,
        })
    }

    /// Answers a question; what a patient belongs to stays here.
    pub(super) fn answer(&self, site: &SiteRun, request: &Request) -> Result<Answer, Stop> {
        Ok(Answer::Cluster(match request {
            Request::Measure => {
                let groups = self
                    .smalls
                    .iter()
                    .map(|one| (one.patients, one.mean.view()));
                message::Answer::Spread(Spread::of(groups, self.vectors.ncols()))
            }
            Request::Step(asked) => message::Answer::Sums(self.sums(asked)),
            Request::Compare(asked) => message::Answer::Agreement(self.agreement(asked)),
            Request::Mark(asked) => {
                let results = ClusterResults {
                    vectors: &self.vectors,
                    asked,
                    site,
                };
                let written = results::write(&results, &site.folder);
                written.map_err(|error| Stop::failed(Code::Results, error.to_string()))?;
                message::Answer::Marks(self.marks(asked))
            }
        }))
    }

    /// The small groups that a division is of.
    fn of(&self, divided: Divided) -> Vec<usize> {
        match divided.sample.checked_sub(1) {
            None => (0..self.smalls.len()).collect(),
            Some(sample) => self
                .samples
                .get(sample as usize)
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// The centre that each small group of a division is nearest to.
    fn assigned(
        &self,
        of: &[usize],
        centres: &Array2<f64>,
        rows: std::ops::Range<usize>,
    ) -> Vec<usize> {
        let own = centres.slice(ndarray::s![rows, ..]);
        let nearest = |small: &usize| nearest(self.smalls[*small].mean.view(), own).0;
        of.iter().map(nearest).collect()
    }

    fn sums(&self, asked: &Dividing) -> NearestSums {
        let mut told = NearestSums {
            patients: vec![0; asked.centres.nrows()],
            sums: Array2::zeros(asked.centres.dim()),
        };
        for (divided, rows) in asked.rows() {
            let of = self.of(divided);
            let assigned = self.assigned(&of, &asked.centres, rows.clone());
            for (small, cluster) in of.iter().zip(assigned) {
                let small = &self.smalls[*small];
                told.patients[rows.start + cluster] += small.patients;
                told.sums
                    .row_mut(rows.start + cluster)
                    .scaled_add(small.patients as f64, &small.mean);
            }
        }
        told
    }

    fn agreement(&self, asked: &Dividing) -> Agreement {
        let everybody: Vec<usize> = (0..self.smalls.len()).collect();
        let mut told = Agreement {
            fared: Vec::new(),
            tables: Vec::new(),
        };
        // By number of clusters, of all small groups.
        let mut among_all: Vec<(u32, Vec<usize>)> = Vec::new();
        for (divided, rows) in asked.rows() {
            let of = self.of(divided);
            let assigned = self.assigned(&of, &asked.centres, rows);
            let width = divided.clusters as usize;
            if divided.sample == 0 {
                told.fared.extend(self.fared(&everybody, &assigned, width));
                among_all.push((divided.clusters, assigned));
                continue;
            }
            let mut table = vec![0; width * width];
            let own = among_all
                .iter()
                .find(|(clusters, _)| *clusters == divided.clusters);
            if let Some((_, own)) = own {
                for (small, cluster) in of.iter().zip(assigned) {
                    table[own[*small] * width + cluster] += self.smalls[*small].patients;
                }
            }
            told.tables.extend(table);
        }
        told
    }

    fn fared(&self, of: &[usize], assigned: &[usize], clusters: usize) -> Vec<Alike> {
        let mut fared = vec![self.nobody.clone(); clusters];
        for (small, cluster) in of.iter().zip(assigned) {
            fared[*cluster].add(1.0, &self.smalls[*small].fared);
        }
        fared
    }

    fn marks(&self, asked: &Marking) -> Vec<Marks> {
        let everybody: Vec<usize> = (0..self.smalls.len()).collect();
        let clusters = asked.centres.nrows();
        let assigned = self.assigned(&everybody, &asked.centres, 0..clusters);
        let features = self.smalls.first().map_or(0, |one| one.features.len());
        let nobody = Marks {
            sites: 0,
            features: vec![Mark::default(); features],
        };
        let mut told = vec![nobody; clusters];
        for (small, cluster) in self.smalls.iter().zip(assigned) {
            let told = &mut told[cluster];
            told.sites = 1;
            for (sum, own) in told.features.iter_mut().zip(&small.features) {
                sum.patients += own.patients;
                sum.sum += own.sum;
                sum.squares += own.squares;
            }
        }
        told
    }
}
