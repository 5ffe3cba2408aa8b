//! Which sums may be released together: none whose difference is that of few patients.

use super::judging::has_sums;
use super::message::{Counts, FeatureCounts};
use super::settings::CardSettings;
use crate::failure::{Code, Failure};
use crate::limits::CARD_PATIENTS_MIN;
use std::ops::Range;
use std::sync::Arc;

/// Patterns of patients who are excluded from the study: somebody has exactly these outcomes, and too few over all hospitals. Two outcomes
/// differ by such patients, and so would their sums. Each patient has one pattern, so that leaving out one makes no other small: once is
/// enough. The groups and lots of those who stay are judged afterwards.
pub(super) fn left_out(parts: &[u64]) -> Vec<u32> {
    let few = (1..).zip(parts).filter(|(_, patients)| is_few(**patients));
    few.map(|(pattern, _)| pattern).collect()
}

/// Whether every group holds enough patients. The failure names outcomes and groups, and no number.
pub(super) fn check(settings: &CardSettings, counts: &Counts) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for (place, outcome) in settings.outcomes.iter().enumerate() {
        let groups = &counts.groups[settings.groups_of(place)];
        for (name, group) in outcome.specification.kind.groups().iter().zip(groups) {
            if group.patients < CARD_PATIENTS_MIN {
                let (outcome, label) = (&outcome.name, outcome.specification.group_label(name));
                lines.push(format!(
                    "the group {label:?} of the outcome {outcome:?} has fewer than {CARD_PATIENTS_MIN} patients over all hospitals: \
                     join its levels with others, or leave the outcome out"
                ));
            }
        }
    }
    unless(&lines)
}

/// Whether every lot of patients, by who is in which of the study and those that it renews, is large enough.
pub(super) fn check_lots(settings: &CardSettings, lots: &[u64]) -> Result<(), Failure> {
    unless(&small_lots(settings, lots))
}

fn unless(lines: &[String]) -> Result<(), Failure> {
    match lines.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::Outcome, lines.join("\n"))),
    }
}

/// Patients by which the study differs from those that it renews, where they are few: a sentence for each lot of them.
fn small_lots(settings: &CardSettings, counts: &[u64]) -> Vec<String> {
    let mut lines = Vec::new();
    let lots = settings.lots();
    let few = counts.iter().enumerate().filter(|(_, lot)| is_few(**lot));
    for (index, _) in few {
        let (place, member) = (index / lots, index % lots + 1);
        let outcome = place.checked_sub(1);
        let who = outcome.map_or_else(String::new, |outcome| {
            format!(" with the outcome {:?}", settings.outcomes[outcome].name)
        });
        let renewed = settings
            .renews
            .iter()
            .map(|name| format!("{:?}", name.as_str()));
        let studies = std::iter::once("this study".to_owned()).chain(renewed);
        let (with, without): (Vec<_>, Vec<_>) =
            (studies.enumerate()).partition(|(bit, _)| member >> bit & 1 == 1);
        let [with, without] = [with, without].map(|side| {
            let names: Vec<String> = side.into_iter().map(|(_, name)| name).collect();
            and(&names)
        });
        lines.push(format!(
            "fewer than {CARD_PATIENTS_MIN} patients{who} over all hospitals are in {with} and not in {without}: sums of the studies would \
             tell theirs; close this study, and renew with the same patients or with more new ones"
        ));
    }
    lines
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
            let groups = released_groups(settings, counts, feature);
            let numbers = groups.into_iter().map(|group| group * features + feature);
            places.extend(numbers.filter_map(|place| u32::try_from(place).ok()));
        }
    }
    places.sort_unstable();
    places
}

/// For each outcome the numbers that are counted on grids, by their places among its grids: of each enough patients with the outcome have
/// one, or nobody, and who has it by another outcome are as many, or others by enough.
pub(super) fn columns(settings: &CardSettings, counts: &Counts) -> Vec<Arc<Vec<u32>>> {
    let present = |outcome: usize, feature: usize| -> u64 {
        let groups = &counts.groups[settings.groups_of(outcome)];
        groups
            .iter()
            .map(|one| one.features[feature].present())
            .sum()
    };
    let mut released: Vec<Arc<Vec<u32>>> = Vec::new();
    for (outcome, grids) in settings.grids.iter().enumerate() {
        let is_released = |(place, feature): &(u32, usize)| {
            let own = present(outcome, *feature);
            let separates = |(other, columns): (usize, &Arc<Vec<u32>>)| {
                columns.contains(place)
                    && is_nested(settings, counts, (outcome, other))
                    && is_few(present(other, *feature).abs_diff(own))
            };
            !is_few(own) && !released.iter().enumerate().any(separates)
        };
        let features = grids.columns.iter().map(|one| one.column);
        let columns = (0..).zip(features).filter(is_released);
        released.push(Arc::new(columns.map(|(place, _)| place).collect()));
    }
    released
}

/// The groups of which the sums of a feature are released: those with enough values. What is left of all patients, or of those
/// of another outcome that contains them, once these are taken away, is nobody, or enough again.
fn released_groups(settings: &CardSettings, counts: &Counts, feature: usize) -> Vec<usize> {
    let present = |group: usize| counts.groups[group].features[feature].present();
    let everyone = present(0);
    if everyone < CARD_PATIENTS_MIN {
        return Vec::new();
    }
    let mut released: Vec<Vec<usize>> = Vec::new();
    for outcome in 0..settings.outcomes.len() {
        let nested = |other: &usize| is_nested(settings, counts, (outcome, *other));
        let nested: Vec<usize> = (0..outcome).filter(nested).collect();
        let groups: Range<usize> = settings.groups_of(outcome);
        let mut own: Vec<usize> = groups
            .filter(|group| present(*group) >= CARD_PATIENTS_MIN)
            .collect();
        // The largest last, of equals the later.
        own.sort_by_key(|group| (present(*group), *group));
        let sum = |groups: &[usize]| groups.iter().map(|group| present(*group)).sum::<u64>();
        let separates = |own: &[usize]| {
            let own = sum(own);
            let others = nested.iter().map(|other| &released[*other]);
            let mut others = others.filter(|other| !other.is_empty());
            is_few(everyone.saturating_sub(own))
                || others.any(|other| is_few(sum(other).abs_diff(own)))
        };
        while !own.is_empty() && separates(&own) {
            own.remove(0);
        }
        released.push(own);
    }
    std::iter::once(0)
        .chain(released.into_iter().flatten())
        .collect()
}

/// Whether all patients of one outcome have the other: the difference of their sums is a sum over those who have one alone.
pub(super) fn is_nested(
    settings: &CardSettings,
    counts: &Counts,
    (one, other): (usize, usize),
) -> bool {
    let (mut one_alone, mut other_alone) = (0, 0);
    for (part, patients) in counts.parts.iter().enumerate() {
        let states = settings.states_of(part);
        match (states[one] > 0, states[other] > 0) {
            (true, false) => one_alone += patients,
            (false, true) => other_alone += patients,
            (true, true) | (false, false) => {}
        }
    }
    one_alone == 0 || other_alone == 0
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::{FeatureKind, Grids};
    use crate::method::card::message::GroupCounts;
    use crate::study::{Study, StudyName};

    /// Two outcomes of two classes, and a number.
    fn settings() -> CardSettings {
        let certificate = |digit: char| format!("sha256:{}", digit.to_string().repeat(64));
        let hospitals: String = "123"
            .chars()
            .map(|digit| {
                format!(
                    "[[hospitals]]\nname = \"site-{digit}\"\ncertificate = \"{}\"\n",
                    certificate(digit)
                )
            })
            .collect();
        let outcome = |name: &str| {
            format!(
                "[[outcomes]]\nname = \"{name}\"\nlabel = \"{name}\"\ncolumn = \"{name}\"\nkind = \"binary\"\npositive = [\"1\"]\n"
            )
        };
        let text = format!(
            "name = \"s\"\ntitle = \"s\"\npurpose = \"s\"\nuntil = \"2099-12-31\"\nmethods = [\"unpsl\"]\n\
             limits = {{ runs = 1, rounds = 1, queries = 0 }}\noperators = [{{ name = \"lab\", certificate = \"{}\" }}]\n\
             {hospitals}{}{}[[features]]\nname = \"age\"\nkind = \"numeric\"\n",
            certificate('a'),
            outcome("disease"),
            outcome("death"),
        );
        let Study {
            outcomes, features, ..
        } = Study::parse(&text).unwrap_or_else(|errors| panic!("{errors}"));
        CardSettings {
            outcomes,
            features,
            renews: Vec::new(),
            grids: Vec::new(),
        }
    }

    /// Patients by the states of both outcomes, so many of them without an age.
    fn counts(parts: [[u64; 3]; 3], missing: [u64; 5]) -> Counts {
        let settings = settings();
        let flat: Vec<u64> = parts.iter().flatten().copied().collect();
        let row = |row: usize| parts[row].iter().sum::<u64>();
        let column = |column: usize| parts.iter().map(|row| row[column]).sum::<u64>();
        let patients = [flat.iter().sum(), row(1), row(2), column(1), column(2)];
        let groups = patients
            .iter()
            .zip(missing)
            .map(|(patients, missing)| GroupCounts {
                patients: *patients,
                features: vec![FeatureCounts {
                    levels: vec![patients - missing],
                    missing,
                }],
            });
        assert_eq!(flat.len(), settings.parts());
        Counts {
            groups: groups.collect(),
            parts: flat,
        }
    }

    /// What is said of a study that renews two, by lots of all patients: in it alone, in the first alone, in both, in the second alone, and so on.
    fn said_of_lots(lots: [u64; 7]) -> String {
        let mut settings = settings();
        settings.renews = ["heart", "lung"]
            .map(|name| StudyName::new(name).unwrap())
            .to_vec();
        let mut all = lots.to_vec();
        all.resize(settings.counts_of_lots(), 0);
        let failure = check_lots(&settings, &all).err();
        failure.map_or_else(String::new, |failure| failure.text)
    }

    #[test]
    fn a_study_that_differs_by_few_patients_from_one_that_it_renews_has_no_card() {
        assert_eq!(said_of_lots([20, 0, 140, 0, 0, 0, 0]), "");
        assert_eq!(said_of_lots([0, 20, 160, 300, 0, 0, 0]), "");
        assert_eq!(
            said_of_lots([19, 0, 141, 0, 0, 0, 0]),
            "fewer than 20 patients over all hospitals are in this study and not in \"heart\" and \"lung\": sums of the studies \
             would tell theirs; close this study, and renew with the same patients or with more new ones"
        );
        let left = said_of_lots([0, 1, 160, 0, 0, 0, 0]);
        assert!(
            left.contains("are in \"heart\" and not in this study and \"lung\":"),
            "{left}"
        );
        // It is all of both and one more: whoever subtracts both reads one patient.
        let both = said_of_lots([1, 0, 80, 0, 79, 0, 0]);
        assert!(
            both.contains("are in this study and not in \"heart\" and \"lung\""),
            "{both}"
        );
        let between = said_of_lots([0, 0, 0, 0, 0, 3, 160]);
        assert!(
            between.contains("are in \"heart\" and \"lung\" and not in this study:"),
            "{between}"
        );
    }

    #[test]
    fn a_class_of_few_patients_has_no_card() {
        let parts = [[0, 0, 0], [0, 40, 9], [0, 40, 10]];
        let said = check(&settings(), &counts(parts, [0; 5])).err();
        let wanted = "the group \"with the outcome\" of the outcome \"death\" has fewer than 20 patients over all hospitals: join its \
                      levels with others, or leave the outcome out";
        assert_eq!(said.map(|failure| failure.text).as_deref(), Some(wanted));
        let parts = [[0, 10, 9], [0, 40, 40], [0, 40, 40]];
        assert!(check(&settings(), &counts(parts, [0; 5])).is_ok());
    }

    #[test]
    fn few_patients_by_whom_outcomes_differ_are_left_out() {
        // Of two outcomes: the first alone, the second alone, both.
        assert_eq!(left_out(&[0, 20, 160]), [0_u32; 0]);
        assert_eq!(left_out(&[19, 0, 160]), [1]);
        assert_eq!(left_out(&[1, 19, 160]), [1, 2]);
        assert_eq!(left_out(&[40, 80, 2]), [3]);
        let settings = settings();
        let patterns = (0..settings.parts()).map(|part| settings.pattern(part));
        assert_eq!(patterns.collect::<Vec<_>>(), [0, 2, 2, 1, 3, 3, 1, 3, 3]);
        assert_eq!(settings.patterns(), 3);
    }

    #[test]
    fn sums_are_asked_of_groups_with_enough_values_whose_rest_is_nobody_or_enough() {
        let places = |parts, missing| places(&settings(), &counts(parts, missing));
        let alike = [[0, 0, 0], [0, 40, 40], [0, 40, 40]];
        assert_eq!(places(alike, [0; 5]), [0, 1, 2, 3, 4]);
        // Of the second group 19 have an age: neither it is released, nor, since all less the others are it, the other one.
        assert_eq!(places(alike, [61, 0, 61, 30, 31]), [0, 3, 4]);
        // Nobody of it has: then the other one is all.
        assert_eq!(places(alike, [80, 0, 80, 40, 40]), [0, 1, 3, 4]);
        // Those without the outcome death are 25; five have an age.
        let apart = [[0, 0, 0], [10, 40, 40], [15, 40, 40]];
        assert_eq!(places(apart, [20, 10, 10, 0, 0]), [0, 1, 2, 4]);
        assert_eq!(places(apart, [180, 90, 90, 80, 80]), [0_u32; 0]);
    }

    #[test]
    fn a_number_that_few_have_or_by_which_few_separate_outcomes_is_not_counted() {
        let mut settings = settings();
        let age = FeatureKind::Age { at: String::new() };
        let grids = Grids {
            columns: age.gridded(0).into_iter().collect(),
            events: None,
        };
        settings.grids = vec![grids; 2];
        let released = |parts, missing| {
            let released = columns(&settings, &counts(parts, missing));
            released.iter().map(|one| one.len()).collect::<Vec<_>>()
        };
        let alike = [[0, 0, 0], [0, 40, 40], [0, 40, 40]];
        assert_eq!(released(alike, [0; 5]), [1, 1]);
        assert_eq!(released(alike, [141, 70, 71, 70, 71]), [0, 0]);
        assert_eq!(released(alike, [160, 80, 80, 80, 80]), [1, 1]);
        // Those without the outcome death are 25; 20 have an age, or 19.
        let apart = [[0, 0, 0], [10, 40, 40], [15, 40, 40]];
        assert_eq!(released(apart, [5, 5, 0, 0, 0]), [1, 1]);
        assert_eq!(released(apart, [6, 6, 0, 0, 0]), [1, 0]);
        // Some have one alone, and some the other: no difference is a sum over few.
        let both = [[0, 20, 20], [10, 40, 40], [15, 40, 40]];
        assert_eq!(released(both, [6, 6, 0, 0, 0]), [1, 1]);
    }
}
