//! What a site tells of who is alike to patients of others: sums over groups that it has made once for all.

mod at_site;
pub(crate) mod explain;

// By this name the list of methods knows it.
pub(super) use self::Counter as Own;
use crate::books::ledger::Asks;
use crate::cases::elsewhere::{self, Kept};
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use ndarray::Array2;
use privacy::Rules;
use protocol::cohort::OutcomeKind;
use protocol::failure::{Code, Refusal};
use protocol::job::Job;
use protocol::message::Answer;
use protocol::message::neighbours::{
    self as message, Alike, Closeness, OctaveGrid, Request, parted,
};
use protocol::method::neighbours::settings::{By, NeighboursSettings, counted};
use protocol::name::RunId;
use similarity::cohort::Outcome;
use similarity::uses::microaggregation::Group;
use std::path::Path;

/// The groups of a site's patients, and about whom they are asked.
pub(super) struct Counter {
    queries: Vec<Vec<f64>>,
    closeness: Closeness,
    groups: Vec<Told>,
    /// How many sums are told of a group.
    shape: (usize, usize),
}

/// What is told of a group, whole or not at all.
struct Told {
    group: Group,
    class: usize,
    sums: Vec<f64>,
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
        rules: &Rules,
    ) -> Result<Self, Stop> {
        let placed_by = settings.queries.first().map_or(0, Vec::len);
        let by = ((&settings.run, settings.by), placed_by);
        let Parting {
            vectors,
            closeness,
            groups,
            outlook,
        } = Parting::new(by, job, cohort, runs, rules)?;
        let told = |members: Vec<usize>| Told {
            group: Group::of(vectors.view(), &members),
            class: outlook.class(&members),
            sums: outlook.sums(&members),
        };
        Ok(Self {
            queries: settings.queries.clone(),
            closeness,
            groups: groups.into_iter().map(told).collect(),
            shape: counted(&job.cohort.outcome.kind),
        })
    }

    pub(super) fn answer(&self, request: &Request) -> Answer {
        Answer::Neighbours(match request {
            Request::Measure => message::Answer::Distances(self.distances()),
            Request::Count(radii) => {
                let of_query = |query: &Vec<f64>| self.alike(query, radii);
                message::Answer::Alike(self.queries.iter().flat_map(of_query).collect())
            }
        })
    }

    /// Pairs of patients of different groups, by how far these are from each other.
    fn distances(&self) -> Vec<u64> {
        let mut counts = vec![0; OctaveGrid::cells()];
        for (place, one) in self.groups.iter().enumerate() {
            for other in &self.groups[..place] {
                let distance = one.group.between(&other.group, self.closeness);
                counts[OctaveGrid::cell(distance)] += one.group.patients * other.group.patients;
            }
        }
        counts
    }

    fn alike(&self, query: &[f64], radii: &[f64]) -> Vec<Alike> {
        let far = |told: &Told| told.group.distance(query, self.closeness);
        let distances: Vec<f64> = self.groups.iter().map(far).collect();
        let within = |radius: &f64| {
            let mut alike = Alike {
                classes: vec![0; self.shape.0],
                sums: vec![0.0; self.shape.1],
            };
            for (told, distance) in self.groups.iter().zip(&distances) {
                if distance <= radius {
                    alike.classes[told.class] += told.group.patients;
                    let sums = alike.sums.iter_mut().zip(&told.sums);
                    sums.for_each(|(sum, own)| *sum += own);
                }
            }
            alike
        };
        radii.iter().map(within).collect()
    }
}

/// A cohort that was parted once for all.
pub(super) struct Parting {
    /// Where a run places the patients, one row each.
    pub(super) vectors: Array2<f64>,
    pub(super) closeness: Closeness,
    /// The rows of the patients of each group, who are of one class.
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) outlook: Outlook,
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
        let cohort = &cohort.cohort;
        let placed = comparison.place(cohort.columns());
        let placed = placed.map_err(|error| Stop::numeric(Code::Numbers, error))?;
        let Some((vectors, closeness)) = comparison.coordinates(&placed) else {
            return Err(refused(format!(
                "run {run} compares patients by no vectors, and groups are made of vectors"
            )));
        };
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
        let outlook = Outlook::of(cohort.outcome(), &job.cohort.outcome.kind);
        let least = usize::try_from(least(rules)).unwrap_or(usize::MAX);
        Ok(Self {
            groups: parted(vectors.view(), &outlook.classes, least),
            vectors: vectors.into_owned(),
            closeness,
            outlook,
        })
    }
}

/// Patients of a group at least: as many as the rules want behind a count and a sum.
pub(super) fn least(rules: &Rules) -> u64 {
    rules.cell_min.max(rules.patients_min)
}

/// What is summed of each patient.
pub(super) struct Outlook {
    classes: Vec<u32>,
    /// One list a patient.
    sums: Vec<Vec<f64>>,
}

impl Outlook {
    fn of(outcome: &Outcome, kind: &OutcomeKind) -> Self {
        match outcome {
            Outcome::Classes { codes, .. } => Self {
                classes: codes.to_vec(),
                sums: vec![Vec::new(); codes.len()],
            },
            Outcome::Numeric(values) => Self {
                classes: vec![0; values.len()],
                sums: values.iter().map(|y| vec![*y, y * y]).collect(),
            },
            Outcome::Survival { time, event } => {
                let horizon = kind.horizon();
                let seen = time.iter().zip(event);
                Self {
                    classes: seen
                        .map(|(time, event)| u32::from(*event && *time <= horizon))
                        .collect(),
                    sums: time.iter().map(|time| vec![time.min(horizon)]).collect(),
                }
            }
        }
    }

    /// The class of a group.
    pub(super) fn class(&self, members: &[usize]) -> usize {
        let first = members.first();
        first.map_or(0, |row| self.classes[*row] as usize)
    }

    /// The sums over a group.
    pub(super) fn sums(&self, members: &[usize]) -> Vec<f64> {
        let count = members.first().map_or(0, |row| self.sums[*row].len());
        let over = |place: usize| members.iter().map(|row| self.sums[*row][place]).sum();
        (0..count).map(over).collect()
    }
}
