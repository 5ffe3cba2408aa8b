//! What a site tells of who is alike to patients of others: sums over groups that it has made once for all.

mod at_site;
pub(crate) mod explain;
pub(super) mod marks;
pub(super) mod outcomes;

// By this name the list of methods knows it.
pub(super) use self::Counter as Own;
use super::Secret;
use crate::books::ledger::Asks;
use crate::cases::elsewhere::{self, Kept};
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use marks::marks;
use ndarray::{Array2, s};
use outcomes::Outcomes;
use privacy::Rules;
use protocol::failure::{Code, Refusal};
use protocol::job::Job;
use protocol::message::Answer;
use protocol::message::cluster::Mark;
use protocol::message::neighbours::{
    self as message, Alike, Closeness, Distances, Found, Group, Groups, Mean, OctaveGrid, Request,
    parted,
};
use protocol::method::neighbours::settings::{By, DESCRIBED, NeighboursSettings};
use protocol::name::RunId;
use std::path::Path;

/// The groups of a site's patients, and the queries.
pub(super) struct Counter {
    queries: Vec<Vec<f64>>,
    closeness: Closeness,
    groups: Vec<GroupRelease>,
    /// Nobody, of the shape of what is released of a group.
    nobody: Alike,
    /// Features that are summed.
    features: usize,
}

/// What is released of a group, by the share of it that lies within a radius.
struct GroupRelease {
    group: Group,
    fared: Alike,
    features: Vec<Mark>,
}

/// What a job asks of the site's books.
fn asks(settings: &NeighboursSettings, job: &Job, runs: &Path) -> Result<Asks, Stop> {
    let kept = elsewhere::kept(runs, (&settings.run, settings.by), job).map_err(refused)?;
    Ok(Asks {
        grouping: kept.digest,
        queries: settings.queries.len() as u64,
    })
}

pub(super) fn refused(why: String) -> Stop {
    Stop::Refused(Refusal {
        rule: "run".to_owned(),
        text: why,
    })
}

impl Counter {
    /// Parts the patients into groups of as many as the rules want behind a count and a sum.
    pub(super) fn new(
        settings: &NeighboursSettings,
        job: &Job,
        cohort: &SiteCohort,
        runs: &Path,
        (rules, secret): (&Rules, &Secret),
    ) -> Result<Self, Stop> {
        let placed_by = settings.queries.first().map_or(0, Vec::len);
        let by = ((&settings.run, settings.by), placed_by);
        let parting = Parting::new(by, job, cohort, runs, rules)?;
        let outcomes = Outcomes::new(job, cohort, (rules, secret));
        let columns = cohort.cohort.columns();
        let told = |members: &Vec<usize>| GroupRelease {
            group: Group::of(parting.vectors.view(), members),
            fared: outcomes.of_group(members),
            features: marks(columns, members, least(rules)),
        };
        Ok(Self {
            queries: settings.queries.clone(),
            closeness: parting.closeness,
            groups: parting.groups.iter().map(told).collect(),
            nobody: Alike::nobody(&job.cohort.outcome.kind),
            features: marks(columns, &[], least(rules)).len(),
        })
    }

    pub(super) fn answer(&self, request: &Request) -> Answer {
        Answer::Neighbours(match request {
            Request::Measure => message::Answer::Distances(Distances {
                groups: self.made(),
                pairs: self.pairs(),
            }),
            Request::Count(radii) => message::Answer::Found(self.found(radii)),
        })
    }

    fn made(&self) -> Groups {
        Groups {
            groups: self.groups.len() as u64,
            patients: self.groups.iter().map(|told| told.group.patients).sum(),
        }
    }

    /// Pairs of patients by how far they are from each other.
    fn pairs(&self) -> Vec<u64> {
        let mut counts = vec![0; OctaveGrid::cells()];
        for (place, one) in self.groups.iter().enumerate() {
            let own = one.group.patients;
            let within = one.group.apart_within(self.closeness);
            Group::spread(own * (own - 1) / 2, &within, &mut counts);
            for other in &self.groups[..place] {
                let apart = one.group.apart(&other.group, self.closeness);
                Group::spread(own * other.group.patients, &apart, &mut counts);
            }
        }
        counts
    }

    fn found(&self, radii: &[f64]) -> Found {
        let mut found = Found {
            groups: self.made(),
            everybody: self.nobody.clone(),
            alike: Vec::new(),
            features: Vec::new(),
        };
        for told in &self.groups {
            found.everybody.add(1.0, &told.fared);
        }
        for query in &self.queries {
            for (place, radius) in radii.iter().enumerate() {
                let mut alike = self.nobody.clone();
                let mut features = vec![Mean::default(); self.features];
                for told in &self.groups {
                    let share = told.group.within(query, *radius, self.closeness);
                    alike.add(share, &told.fared);
                    for (sum, own) in features.iter_mut().zip(&told.features) {
                        sum.patients += share * own.patients as f64;
                        sum.sum += share * own.sum;
                    }
                }
                found.alike.push(alike);
                if place == DESCRIBED {
                    found.features.extend(features);
                }
            }
        }
        found
    }
}

/// A cohort that was parted once for all.
pub(super) struct Parting {
    /// Where a run places the patients, one row each.
    pub(super) vectors: Array2<f64>,
    pub(super) closeness: Closeness,
    /// The rows of the patients of each group.
    pub(super) groups: Vec<Vec<usize>>,
}

impl Parting {
    /// By a run that places patients by so many numbers, into groups of as many as the rules want behind a count and a sum.
    pub(super) fn new(
        ((run, by), wanted): ((&RunId, By), usize),
        job: &Job,
        cohort: &SiteCohort,
        runs: &Path,
        rules: &Rules,
    ) -> Result<Self, Stop> {
        let Kept { comparison, .. } = elsewhere::kept(runs, (run, by), job).map_err(refused)?;
        let placed = comparison.place(cohort.cohort.columns());
        let placed = placed.map_err(|error| Stop::numeric(Code::Numbers, error))?;
        let Some((vectors, closeness)) = comparison.coordinates(&placed) else {
            return Err(refused(format!(
                "run {run} compares patients by no vectors, and groups are made of vectors"
            )));
        };
        // Anchored, the linear predictor is behind the reasons.
        let behind = if by == By::Risk {
            vectors.ncols() - 1
        } else {
            0
        };
        let vectors = vectors.slice(s![.., behind..]);
        let found = vectors.ncols();
        if found != wanted {
            return Err(refused(format!(
                "the job places patients by {wanted} numbers, run {run} by {found}"
            )));
        }
        if vectors.iter().any(|number| !number.is_finite()) {
            return Err(refused(format!(
                "run {run} places not every patient of this site: some have no value where it takes none in its stead"
            )));
        }
        let least = usize::try_from(least(rules)).unwrap_or(usize::MAX);
        Ok(Self {
            groups: parted(vectors, least),
            vectors: vectors.to_owned(),
            closeness,
        })
    }
}

/// Patients of a group at least: as many as the rules want behind a count and a sum.
pub(super) fn least(rules: &Rules) -> u64 {
    rules.cell_min.max(rules.patients_min)
}
