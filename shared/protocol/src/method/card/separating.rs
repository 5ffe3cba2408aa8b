//! Which sums may be told beside each other: none whose difference is that of few patients.

use super::judging::has_sums;
use super::message::{Counts, FeatureCounts};
use super::settings::CardSettings;
use crate::failure::{Code, Failure};
use crate::limits::CARD_PATIENTS_MIN;
use std::ops::Range;

/// Whether every group, and every part by who has which outcome, holds enough patients. The failure names outcomes and groups,
/// and no number.
pub(super) fn check(settings: &CardSettings, counts: &Counts) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for (place, outcome) in settings.outcomes.iter().enumerate() {
        let groups = &counts.groups[settings.groups_of(place)];
        for (name, group) in outcome.groups().iter().zip(groups) {
            if group.patients < CARD_PATIENTS_MIN {
                let (outcome, label) = (&outcome.name, outcome.group_label(name));
                lines.push(format!(
                    "the group {label:?} of the outcome {outcome:?} has fewer than {CARD_PATIENTS_MIN} patients over all hospitals: \
                     join its levels with others, or leave the outcome out"
                ));
            }
        }
    }
    lines.extend(small_parts(settings, counts));
    match lines.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::Outcome, lines.join("\n"))),
    }
}

/// Outcomes by which few patients can be told from the others: a sentence for each.
fn small_parts(settings: &CardSettings, counts: &Counts) -> Vec<String> {
    let outcomes = settings.outcomes.len();
    let mut parts = std::collections::BTreeMap::<Vec<bool>, u64>::new();
    for (part, patients) in counts.parts.iter().enumerate() {
        let states = settings.states_of(part);
        let has: Vec<bool> = states.iter().map(|state| *state > 0).collect();
        *parts.entry(has).or_default() += patients;
    }
    let small = parts.into_iter().filter(|(_, patients)| is_few(*patients));
    let name = |place: usize| format!("{:?}", settings.outcomes[place].name);
    let sentence = |has: Vec<bool>| {
        let those = |wanted: bool| -> Vec<String> {
            let those = (0..outcomes).filter(|place| has[*place] == wanted);
            those.map(name).collect()
        };
        let (with, without) = (those(true), those(false));
        let all: Vec<String> = with.iter().chain(&without).cloned().collect();
        let which = match (outcomes, without.is_empty()) {
            (0..=1, _) => String::new(),
            (2, false) => String::new(),
            (_, true) => " (those who have all)".to_owned(),
            (_, false) => format!(" (those with {} and without {})", and(&with), and(&without)),
        };
        let subject = match all.len() {
            1 => format!("the study's outcome {} is known of", all[0]),
            _ => format!("the study's outcomes {} differ in", and(&all)),
        };
        format!(
            "{subject} fewer than {CARD_PATIENTS_MIN} patients{which}: leave one out, or join their levels"
        )
    };
    small.map(|(has, _)| sentence(has)).collect()
}

fn and(names: &[String]) -> String {
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Somebody, and too few.
fn is_few(patients: u64) -> bool {
    (1..CARD_PATIENTS_MIN).contains(&patients)
}

/// The places of features by group of which sums are asked for, in order. It follows from the counts alone.
pub(super) fn places(settings: &CardSettings, counts: &Counts) -> Vec<u32> {
    let mut places = Vec::new();
    let features = settings.features.len();
    for (feature, own) in settings.features.iter().enumerate() {
        if has_sums(own) {
            let groups = groups_told(settings, counts, feature);
            let numbers = groups.into_iter().map(|group| group * features + feature);
            places.extend(numbers.filter_map(|place| u32::try_from(place).ok()));
        }
    }
    places.sort_unstable();
    places
}

/// The groups of which the sums of a feature are told: those with enough values. What is left of all patients, or of those
/// of another outcome, once these are taken away, is nobody, or enough again.
fn groups_told(settings: &CardSettings, counts: &Counts, feature: usize) -> Vec<usize> {
    let present = |group: usize| counts.groups[group].features[feature].present();
    let everyone = present(0);
    if everyone < CARD_PATIENTS_MIN {
        return Vec::new();
    }
    let mut told: Vec<Vec<usize>> = Vec::new();
    for outcome in 0..settings.outcomes.len() {
        let groups: Range<usize> = settings.groups_of(outcome);
        let mut own: Vec<usize> = groups
            .filter(|group| present(*group) >= CARD_PATIENTS_MIN)
            .collect();
        // The largest last, of equals the later.
        own.sort_by_key(|group| (present(*group), *group));
        let sum = |groups: &[usize]| groups.iter().map(|group| present(*group)).sum::<u64>();
        let tells_apart = |own: &[usize]| {
            let own = sum(own);
            let mut others = told.iter().filter(|other| !other.is_empty());
            is_few(everyone.saturating_sub(own)) || others.any(|other| is_few(sum(other).abs_diff(own)))
        };
        while !own.is_empty() && tells_apart(&own) {
            own.remove(0);
        }
        told.push(own);
    }
    std::iter::once(0).chain(told.into_iter().flatten()).collect()
}

/// Counts of those of everyone who are in none of these groups.
pub(super) fn rest(everyone: &FeatureCounts, groups: &[&FeatureCounts]) -> FeatureCounts {
    let less = |all: u64, part: &dyn Fn(&FeatureCounts) -> u64| {
        let own: u64 = groups.iter().map(|group| part(group)).sum();
        all.saturating_sub(own)
    };
    let levels = everyone.levels.iter().enumerate();
    FeatureCounts {
        levels: levels
            .map(|(level, all)| less(*all, &|group| group.levels[level]))
            .collect(),
        missing: less(everyone.missing, &|group| group.missing),
    }
}
