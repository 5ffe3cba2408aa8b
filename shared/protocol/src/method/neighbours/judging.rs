//! What a site, or all together, may answer where it is asked who is alike.

use super::message::{Alike, Answer, OctaveGrid};
use super::settings::{NeighboursSettings, SHARES, counted};
use crate::checks::{ensure, length, numbers, pairs_of, unexpected, within};
use crate::cohort::OutcomeKind;
use crate::failure::Failure;
use crate::message;

/// Pairs of the patients, by distance.
pub(super) fn distances(found: &message::Answer, patients: u64) -> Result<(), Failure> {
    let message::Answer::Neighbours(Answer::Distances(counts)) = found else {
        return Err(unexpected(found, "distances"));
    };
    length("cells", counts.len(), OctaveGrid::cells())?;
    within(counts, pairs_of(patients))
}

/// Who of the patients is alike to each query.
pub(super) fn alike(
    settings: &NeighboursSettings,
    kind: &OutcomeKind,
    found: &message::Answer,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Neighbours(Answer::Alike(all)) = found else {
        return Err(unexpected(found, "who is alike"));
    };
    length("groups", all.len(), settings.queries.len() * SHARES.len())?;
    let (classes, sums) = counted(kind);
    for of_query in all.chunks(SHARES.len()) {
        for one in of_query {
            length("classes", one.classes.len(), classes)?;
            length("sums", one.sums.len(), sums)?;
            within(&one.classes, patients)?;
            numbers(&one.sums)?;
        }
        let holds = |pair: &[Alike]| {
            let mut classes = pair[0].classes.iter().zip(&pair[1].classes);
            classes.all(|(inner, outer)| inner <= outer)
        };
        let wanted = "no fewer patients within a larger radius";
        ensure(of_query.windows(2).all(holds), "fewer patients", wanted)?;
    }
    Ok(())
}

/// Nobody, of the shape of an answer.
pub(super) fn nobody(settings: &NeighboursSettings, kind: &OutcomeKind) -> Answer {
    let (classes, sums) = counted(kind);
    let one = Alike {
        classes: vec![0; classes],
        sums: vec![0.0; sums],
    };
    Answer::Alike(vec![one; settings.queries.len() * SHARES.len()])
}
