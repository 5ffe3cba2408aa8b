//! What a site, or all together, may answer where it is asked who is alike.

use super::message::{Alike, Answer, Distances, Found, Groups, Mean, OctaveGrid};
use super::settings::{NeighboursSettings, SHARES, counted};
use crate::checks::{ROUNDING, ensure, length, numbers, pairs_of, unexpected, within};
use crate::cohort::{CohortSpecification, OutcomeKind};
use crate::failure::Failure;
use crate::message;
use crate::method::cluster::settings::measured;

/// Pairs of the patients, by distance.
pub(super) fn distances(found: &message::Answer, patients: u64) -> Result<(), Failure> {
    let message::Answer::Neighbours(Answer::Distances(told)) = found else {
        return Err(unexpected(found, "distances"));
    };
    groups(told.groups, patients)?;
    length("cells", told.pairs.len(), OctaveGrid::cells())?;
    within(&told.pairs, pairs_of(patients))
}

/// Who of the patients is alike to each query.
pub(super) fn alike(
    settings: &NeighboursSettings,
    cohort: &CohortSpecification,
    found: &message::Answer,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Neighbours(Answer::Found(told)) = found else {
        return Err(unexpected(found, "who is alike"));
    };
    groups(told.groups, patients)?;
    let queries = settings.queries.len();
    length("sums", told.alike.len(), queries * SHARES.len())?;
    let kind = &cohort.outcome.kind;
    let of_everybody = std::iter::once(&told.everybody);
    for one in of_everybody.chain(&told.alike) {
        fared(one, kind, told.groups.patients)?;
    }
    for of_query in told.alike.chunks(SHARES.len()) {
        let holds =
            |pair: &[Alike]| pair[0].patients <= pair[1].patients * (1.0 + ROUNDING) + ROUNDING;
        let wanted = "no fewer patients within a larger radius";
        ensure(of_query.windows(2).all(holds), "fewer patients", wanted)?;
    }
    length("features", told.features.len(), queries * measured(cohort))?;
    for mean in &told.features {
        numbers([&mean.patients, &mean.sum])?;
        part(mean.patients, told.groups.patients)?;
    }
    Ok(())
}

fn groups(told: Groups, patients: u64) -> Result<(), Failure> {
    within([&told.patients], patients)?;
    within([&told.groups], told.patients)
}

/// How some of so many patients fared.
pub(in crate::method) fn fared(
    one: &Alike,
    kind: &OutcomeKind,
    patients: u64,
) -> Result<(), Failure> {
    let (classes, sums) = counted(kind);
    length("classes", one.classes.len(), classes)?;
    length("sums", one.sums.len(), sums)?;
    let all = || one.classes.iter().chain(&one.sums);
    numbers(all().map(|sum| &sum.sum))?;
    numbers(all().map(|sum| &sum.variance))?;
    let holds = all().all(|sum| sum.variance >= 0.0);
    ensure(holds, "a variance below 0", "variances")?;
    part(one.patients, patients)?;
    part(one.border, patients)
}

/// A number of some of so many patients.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn part(some: f64, patients: u64) -> Result<(), Failure> {
    let most = patients as f64 * (1.0 + ROUNDING) + ROUNDING;
    let wanted = "a part of the patients in groups";
    ensure(
        (0.0..=most).contains(&some),
        "another number of patients",
        wanted,
    )
}

/// No distances, of the shape of them.
pub(super) fn no_distances() -> Answer {
    Answer::Distances(Distances {
        groups: Groups::default(),
        pairs: vec![0; OctaveGrid::cells()],
    })
}

/// Nobody, of the shape of an answer.
pub(super) fn nobody(settings: &NeighboursSettings, cohort: &CohortSpecification) -> Answer {
    let nobody = Alike::nobody(&cohort.outcome.kind);
    let queries = settings.queries.len();
    Answer::Found(Found {
        groups: Groups::default(),
        alike: vec![nobody.clone(); queries * SHARES.len()],
        everybody: nobody,
        features: vec![Mean::default(); queries * measured(cohort)],
    })
}
