//! What a site tells where groups of patients are looked for that the sites have in common: sums over small groups that it has made
//! once for all, the same as where it is asked who is alike.

mod at_site;
pub(crate) mod explain;
mod results;

// By this name the list of methods knows it.
pub(super) use self::Divider as Own;
use super::neighbours::{Parting, least, refused};
use super::{Secret, SiteRun};
use crate::books::ledger::Asks;
use crate::cases::elsewhere;
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use ndarray::{Array1, Array2, Axis};
use privacy::Rules;
use protocol::cohort::OutcomeKind;
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::Answer;
use protocol::message::cluster::{
    self as message, Agreement, Divided, Dividing, Mark, Marking, Marks, NearestSums, Request,
    Spread, nearest, sample,
};
use protocol::method::cluster::model::Alike;
use protocol::method::cluster::settings::{ClusterSettings, counted};
use results::ClusterResults;
use similarity::cohort::{Column, MISSING_LEVEL, Values};
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
    /// How many classes and sums are told of the outcome.
    shape: (usize, usize),
}

/// What is told of a small group, whole or not at all.
struct Small {
    patients: u64,
    class: usize,
    mean: Array1<f64>,
    outcome: Vec<f64>,
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
            vectors,
            groups,
            outlook,
            ..
        } = Parting::new(by, job, cohort, runs, rules)?;
        let columns = cohort.cohort.columns();
        let is_survival = matches!(job.cohort.outcome.kind, OutcomeKind::Survival { .. });
        let small = |members: Vec<usize>| {
            let class = outlook.class(&members);
            let mut outcome = outlook.sums(&members);
            if is_survival {
                let one = |row: &usize| {
                    outlook
                        .sums(&[*row])
                        .first()
                        .map_or(0.0, |time| time * time)
                };
                outcome.push(if class == 1 { outcome[0] } else { 0.0 });
                outcome.push(members.iter().map(one).sum());
            }
            let mean = vectors.select(Axis(0), &members).mean_axis(Axis(0));
            Small {
                patients: members.len() as u64,
                class,
                mean: mean.unwrap_or_else(|| Array1::zeros(vectors.ncols())),
                outcome,
                features: columns
                    .iter()
                    .flat_map(|column| marks(column, &members, least(rules)))
                    .collect(),
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
            shape: counted(&job.cohort.outcome.kind),
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
        let nobody = Alike {
            classes: vec![0; self.shape.0],
            sums: vec![0.0; self.shape.1],
        };
        let mut fared = vec![nobody; clusters];
        for (small, cluster) in of.iter().zip(assigned) {
            let (small, fared) = (&self.smalls[*small], &mut fared[*cluster]);
            fared.classes[small.class] += small.patients;
            let sums = fared.sums.iter_mut().zip(&small.outcome);
            sums.for_each(|(sum, own)| *sum += own);
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

/// What the patients of a small group have of a feature, one of a number and one of each level of a category. Who has no value counts as
/// the mean of the others, and where fewer than `least` have one, nothing is told: neither a value of few nor how many have none.
fn marks(column: &Column, members: &[usize], least: u64) -> Vec<Mark> {
    let patients = members.len() as u64;
    let told = |present: usize, sum: f64, squares: f64| match present as u64 >= least {
        true => {
            let share = patients as f64 / present as f64;
            Mark {
                patients,
                sum: share * sum,
                squares: share * squares,
            }
        }
        false => Mark::default(),
    };
    match &column.values {
        Values::Numeric(values) => {
            let present = members.iter().map(|row| values[*row]);
            let present: Vec<f64> = present.filter(|value| !value.is_nan()).collect();
            let squares = present.iter().map(|value| value * value).sum();
            vec![told(present.len(), present.iter().sum(), squares)]
        }
        Values::Categorical { codes, levels } => {
            let present = members.iter().map(|row| codes[*row]);
            let present: Vec<u32> = present.filter(|code| *code != MISSING_LEVEL).collect();
            let of_level = |level: usize| {
                let count = present
                    .iter()
                    .filter(|code| **code as usize == level)
                    .count();
                told(present.len(), count as f64, count as f64)
            };
            (0..levels.len()).map(of_level).collect()
        }
    }
}
