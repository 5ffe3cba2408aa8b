//! What a site, or all together, may answer where the card of a study is asked for.

use super::coordinator::Parts;
use super::message::{Answer, Counts, FeatureCounts, GroupCounts, Sums};
use super::settings::{CardSettings, counted, levels};
use crate::checks::{self, count, ensure, length, numbers, unexpected};
use crate::cohort::{Feature, Grids, OutcomeKind};
use crate::failure::Failure;
use crate::message;
use crate::message::ColumnHistogram;

/// Patients by pattern.
pub(super) fn parts(settings: &CardSettings, found: &message::Answer) -> Result<(), Failure> {
    let message::Answer::Card(Answer::Parts(found)) = found else {
        return Err(unexpected(found, "parts"));
    };
    length("parts", found.len(), settings.patterns())?;
    found.iter().try_for_each(|part| count(*part))
}

/// Patients by group, level and part: those of the patterns that are not excluded.
pub(super) fn counts(
    settings: &CardSettings,
    parts: &Parts,
    found: &message::Answer,
) -> Result<(), Failure> {
    let message::Answer::Card(Answer::Counts(found)) = found else {
        return Err(unexpected(found, "counts"));
    };
    length("groups", found.groups.len(), settings.places().len())?;
    length("parts", found.parts.len(), settings.parts())?;
    for group in &found.groups {
        of_group(settings, group)?;
    }
    let all = found.groups.first().map_or(0, |everyone| everyone.patients);
    let wanted = "parts that add up to the groups";
    ensure(
        sum(&found.parts) == Some(all),
        "parts of other patients",
        wanted,
    )?;
    let kept = is_of_kept(settings, parts, &found.parts);
    ensure(kept, "patients who are excluded, or others", wanted)?;
    let mut in_groups = vec![0_u64; found.groups.len()];
    for (part, patients) in found.parts.iter().enumerate() {
        for (outcome, state) in settings.states_of(part).into_iter().enumerate() {
            if let Some(group) = state.checked_sub(1) {
                in_groups[settings.groups_of(outcome).start + group] += patients;
            }
        }
    }
    let groups = found.groups.iter().zip(in_groups).skip(1);
    let mut alike = groups.map(|(group, in_parts)| group.patients == in_parts);
    ensure(alike.all(|same| same), "parts of other groups", wanted)
}

/// Whether the patients of each pattern are those who were counted before, and nobody where it is excluded.
fn is_of_kept(settings: &CardSettings, known: &Parts, parts: &[u64]) -> bool {
    let mut patterns = vec![0_u64; known.patients.len() + 1];
    for (part, patients) in parts.iter().enumerate() {
        if let Some(pattern) = patterns.get_mut(settings.pattern(part) as usize) {
            *pattern = pattern.saturating_add(*patients);
        }
    }
    let is_kept = |(pattern, patients): (u32, &u64)| match known.left_out.contains(&pattern) {
        true => 0,
        false => *patients,
    };
    let wanted = (1..).zip(&known.patients).map(is_kept);
    patterns.into_iter().skip(1).eq(wanted)
}

/// Patients by who is in which study.
pub(super) fn lots(settings: &CardSettings, found: &message::Answer) -> Result<(), Failure> {
    let message::Answer::Card(Answer::Lots(found)) = found else {
        return Err(unexpected(found, "lots"));
    };
    length("lots", found.len(), settings.counts_of_lots())?;
    found.iter().try_for_each(|lot| count(*lot))?;
    let own = |lots: &[u64]| lots.iter().step_by(2).sum::<u64>();
    let mut lots = found.chunks(settings.lots().max(1)).map(own);
    let all = lots.next().unwrap_or_default();
    ensure(
        lots.all(|with_outcome| with_outcome <= all),
        "more patients with an outcome than there are",
        "patients of the study",
    )
}

fn of_group(settings: &CardSettings, group: &GroupCounts) -> Result<(), Failure> {
    count(group.patients)?;
    length("features", group.features.len(), settings.features.len())?;
    for (feature, found) in settings.features.iter().zip(&group.features) {
        length("levels", found.levels.len(), counted(&feature.kind))?;
        let all = sum(&found.levels).and_then(|present| present.checked_add(found.missing));
        ensure(
            all == Some(group.patients),
            "counts of other patients than the group has",
            "counts of its patients",
        )?;
    }
    Ok(())
}

fn sum(counts: &[u64]) -> Option<u64> {
    let mut counts = counts.iter();
    counts.try_fold(0_u64, |sum, count| sum.checked_add(*count))
}

/// Sums of numbers, of patients who were counted before.
pub(super) fn sums(
    settings: &CardSettings,
    (counts, places): (&Counts, &[u32]),
    found: &message::Answer,
) -> Result<(), Failure> {
    let message::Answer::Card(Answer::Sums(found)) = found else {
        return Err(unexpected(found, "sums"));
    };
    length("sums", found.features.len(), places.len())?;
    length("outcomes", found.outcomes.len(), settings.outcomes.len())?;
    for (place, [sum, squares]) in places.iter().zip(&found.features) {
        let (group, feature) = at(settings, *place);
        let present = counts.groups[group].features[feature].present();
        let range = settings.features[feature].kind.range();
        checks::sums(present, [*sum, *squares], range)?;
    }
    for (place, outcome) in settings.outcomes.iter().enumerate() {
        let own = &found.outcomes[place];
        let kind = &outcome.specification.kind;
        length("sums of an outcome", own.len(), CardSettings::sums_of(kind))?;
        let groups = &counts.groups[settings.groups_of(place)];
        let patients = groups.iter().map(|group| group.patients).sum();
        match (kind, own.as_slice()) {
            (OutcomeKind::Survival { .. }, [time]) => {
                numbers([time])?;
                ensure(*time >= 0.0, "a time below 0", "a time at risk")?;
            }
            (OutcomeKind::Numeric, [sum, squares]) => {
                checks::sums(patients, [*sum, *squares], None)?
            }
            // Classes have no sums, and the others' length is judged above.
            (
                OutcomeKind::Binary { .. }
                | OutcomeKind::Categorical { .. }
                | OutcomeKind::Numeric
                | OutcomeKind::Survival { .. },
                _,
            ) => {}
        }
    }
    Ok(())
}

/// The group and the feature of a place.
pub(super) fn at(settings: &CardSettings, place: u32) -> (usize, usize) {
    let features = settings.features.len().max(1);
    (place as usize / features, place as usize % features)
}

/// Nobody, in the shape of the counts.
pub(super) fn nobody(settings: &CardSettings) -> Answer {
    let feature = |feature: &Feature| FeatureCounts {
        levels: vec![0; counted(&feature.kind)],
        missing: 0,
    };
    let group = GroupCounts {
        patients: 0,
        features: settings.features.iter().map(feature).collect(),
    };
    Answer::Counts(Counts {
        groups: vec![group; settings.places().len()],
        parts: vec![0; settings.parts()],
    })
}

/// Nobody, in the shape of the parts.
pub(super) fn no_parts(settings: &CardSettings) -> Answer {
    Answer::Parts(vec![0; settings.patterns()])
}

/// Nobody, in the shape of the lots.
pub(super) fn no_lots(settings: &CardSettings) -> Answer {
    Answer::Lots(vec![0; settings.counts_of_lots()])
}

/// Nothing, in the shape of the sums.
pub(super) fn nothing(settings: &CardSettings, places: &[u32]) -> Answer {
    let outcomes = settings.specifications();
    Answer::Sums(Sums {
        features: vec![[0.0; 2]; places.len()],
        outcomes: outcomes
            .map(|one| vec![0.0; CardSettings::sums_of(&one.kind)])
            .collect(),
    })
}

/// Whether sums of a feature are released: it is a number.
pub(super) fn has_sums(feature: &Feature) -> bool {
    levels(&feature.kind).is_none()
}

/// Nothing, in the shape of the largest answers.
pub(super) fn largest(settings: &CardSettings) -> Vec<message::Answer> {
    let numeric = settings.features.iter().filter(|one| has_sums(one)).count();
    let places = vec![0; settings.places().len() * numeric];
    let own = [
        no_parts(settings),
        no_lots(settings),
        nobody(settings),
        nothing(settings, &places),
    ];
    let histograms = settings.grids.iter().map(no_counts);
    let own = own.into_iter().map(message::Answer::Card);
    own.chain(histograms).collect()
}

/// Nobody, in the shape of histograms.
pub(super) fn no_counts(grids: &Grids) -> message::Answer {
    let histograms = grids.all().map(|grid| ColumnHistogram::blank(grid.cells()));
    message::Answer::Quantiles(histograms.collect())
}
