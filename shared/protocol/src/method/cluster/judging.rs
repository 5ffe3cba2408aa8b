//! What a site, or all together, may answer where groups of patients are looked for.

use super::message::{Agreement, Answer, Dividing, Mark, Marks, NearestSums};
use super::message::{Divided, Spread};
use super::settings::ClusterSettings;
use super::settings::measured;
use crate::checks::{ensure, length, numbers, unexpected, within};
use crate::cohort::{CohortSpecification, OutcomeKind};
use crate::failure::Failure;
use crate::limits::COUNT_MAX;
use crate::message;
use crate::message::neighbours::Alike;
use crate::method::neighbours::judging::fared;
use ndarray::Array2;

/// Where the groups of the patients are.
pub(super) fn spread(
    found: &message::Answer,
    coordinates: usize,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Cluster(Answer::Spread(told)) = found else {
        return Err(unexpected(found, "where groups are"));
    };
    within([&told.patients], patients)?;
    length("sums", told.sums.len(), coordinates)?;
    shape(&told.products, (coordinates, coordinates))?;
    numbers(told.sums.iter().chain(&told.products))
}

/// The groups of the patients by the nearest of the centres.
pub(super) fn sums(
    found: &message::Answer,
    asked: &Dividing,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Cluster(Answer::Sums(told)) = found else {
        return Err(unexpected(found, "sums by the nearest centre"));
    };
    length("counts", told.patients.len(), asked.centres.nrows())?;
    shape(&told.sums, asked.centres.dim())?;
    for (_, rows) in asked.rows() {
        within(&told.patients[rows], patients)?;
    }
    numbers(&told.sums)
}

/// How the divisions of the patients agree.
pub(super) fn agreement(
    found: &message::Answer,
    asked: &Dividing,
    kind: &OutcomeKind,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Cluster(Answer::Agreement(told)) = found else {
        return Err(unexpected(found, "how divisions agree"));
    };
    let of_all = asked.divisions.iter().filter(|one| one.sample == 0);
    let clusters: usize = of_all.clone().map(|one| one.clusters as usize).sum();
    length("clusters", told.fared.len(), clusters)?;
    for one in &told.fared {
        fared(one, kind, patients)?;
    }
    let mut begin = 0;
    for one in of_all {
        let end = begin + one.clusters as usize;
        let counts: Vec<u64> = told.fared[begin..end].iter().map(Alike::count).collect();
        within(&counts, patients)?;
        begin = end;
    }
    let cells = Agreement::cells(&asked.divisions);
    length("cells", told.tables.len(), cells)?;
    let mut begin = 0;
    for one in asked.divisions.iter().filter(|one| one.sample > 0) {
        let end = begin + (one.clusters * one.clusters) as usize;
        within(&told.tables[begin..end], patients)?;
        begin = end;
    }
    Ok(())
}

/// What the patients of each cluster are like, at so many sites.
pub(super) fn marks(
    found: &message::Answer,
    clusters: usize,
    cohort: &CohortSpecification,
    (sites, patients): (u64, u64),
) -> Result<(), Failure> {
    let message::Answer::Cluster(Answer::Marks(told)) = found else {
        return Err(unexpected(found, "what clusters are like"));
    };
    length("clusters", told.len(), clusters)?;
    for one in told {
        ensure(one.sites <= sites, "more sites", "sites of the run")?;
        length("features", one.features.len(), measured(cohort))?;
        for mark in &one.features {
            within([&mark.patients], patients.min(COUNT_MAX))?;
            numbers([&mark.sum, &mark.squares])?;
            let holds = mark.squares >= 0.0 && (mark.patients > 0 || mark.sum == 0.0);
            ensure(holds, "sums that no patients have", "sums over patients")?;
        }
    }
    Ok(())
}

fn shape(found: &Array2<f64>, wanted: (usize, usize)) -> Result<(), Failure> {
    length("rows", found.nrows(), wanted.0)?;
    length("columns", found.ncols(), wanted.1)
}

/// Nobody, of the shape of sums.
pub(super) fn no_sums((rows, coordinates): (usize, usize)) -> Answer {
    Answer::Sums(NearestSums {
        patients: vec![0; rows],
        sums: Array2::zeros((rows, coordinates)),
    })
}

/// Nobody, of the shape of an agreement.
pub(super) fn no_agreement(divisions: &[Divided], kind: &OutcomeKind) -> Answer {
    let of_all = divisions.iter().filter(|one| one.sample == 0);
    let clusters: usize = of_all.map(|one| one.clusters as usize).sum();
    Answer::Agreement(Agreement {
        fared: vec![Alike::nobody(kind); clusters],
        tables: vec![0; Agreement::cells(divisions)],
    })
}

/// Nobody, of the shape of marks.
pub(super) fn no_marks(clusters: usize, cohort: &CohortSpecification) -> Answer {
    let nobody = Marks {
        sites: 0,
        features: vec![Mark::default(); measured(cohort)],
    };
    Answer::Marks(vec![nobody; clusters])
}

/// Nothing, in the shape of the largest answers: of all divisions at once.
pub(super) fn largest(
    settings: &ClusterSettings,
    cohort: &CohortSpecification,
) -> Vec<message::Answer> {
    let coordinates = settings.coordinates as usize;
    let divided = |sample| {
        let tried = settings.clusters_min..=settings.clusters_max;
        tried.map(move |clusters| Divided { sample, clusters })
    };
    let divisions: Vec<Divided> = (0..=settings.samples).flat_map(divided).collect();
    let answers = [
        Answer::Spread(Spread::nothing(coordinates)),
        no_sums((settings.rows_max(), coordinates)),
        no_agreement(&divisions, &cohort.outcome.kind),
        no_marks(settings.clusters_max as usize, cohort),
    ];
    answers.map(message::Answer::Cluster).into()
}
