//! An operator's questions, whatever they are: wherever two jobs differ for fewer than ten patients, the site
//! answers them alike, from the first answer of a run to the last; or it is the dictionary that tells them apart.

use crate::operator::{Hospital, feature, job, levels, numeric};
use proptest::collection::vec;
use proptest::prelude::*;
use protocol::message::{Answer, ColumnMoments};
use std::fmt::Write as _;

/// Below this, a site's default policy tells of nobody.
const CELL_MIN: usize = 10;
const CLASS: &str = "column = 'class'\nkind = 'binary'\npositive = ['1']\nnegative = ['0']";

/// A table of the column `x`, beside a class that both have and a number that nobody asks about.
fn table<T: std::fmt::Display>(values: &[T]) -> String {
    let mut table = String::from("id,x,y,class\n");
    for (patient, value) in values.iter().enumerate() {
        let _ = writeln!(
            table,
            "p{patient},{value},{},{}",
            patient * patient % 17,
            patient % 2
        );
    }
    table
}

fn hospital<T: std::fmt::Display>(values: &[T], columns: &str) -> Hospital {
    Hospital::of(&table(values), columns, "patient = 'id'")
}

/// All that a site with this table adds to a run of `text`, or why it takes no part.
fn stream(hospital: &Hospital, text: &str) -> Vec<Vec<u8>> {
    let told = match hospital.describe(text) {
        Answer::Described(_) => hospital.adds(text),
        refusal => vec![refusal],
    };
    told.iter().map(wire::encode_answer).collect()
}

fn ranged(high: f64) -> String {
    let text = job(
        CLASS,
        &[
            numeric("x", &format!("range = [-1, {high}]")),
            numeric("y", ""),
        ],
    );
    text.replace("rank = 1", "rank = 1\nround_limit = 2")
}

fn coded(codes: &[u32]) -> String {
    let codes: Vec<String> = codes.iter().map(u32::to_string).collect();
    let text = job(
        CLASS,
        &[
            numeric("x", &format!("missing = {codes:?}")),
            numeric("y", ""),
        ],
    );
    text.replace("rank = 1", "rank = 1\nround_limit = 2")
}

/// Values of 60 to 90 patients; the high ones have few.
fn values() -> impl Strategy<Value = Vec<u32>> {
    vec(
        (0..20_u32).prop_map(|value| if value < 16 { value / 4 } else { value }),
        60..90,
    )
}

/// What a coding makes of the site: its classes, whatever their names, or its no.
fn classes(hospital: &Hospital, positive: &[u32], negative: &[u32]) -> (Option<Vec<u64>>, Vec<u8>) {
    let quoted = |codes: &[u32]| codes.iter().map(u32::to_string).collect::<Vec<_>>();
    let outcome = format!(
        "column = 'x'\nkind = 'binary'\npositive = {:?}\nnegative = {:?}",
        quoted(positive),
        quoted(negative)
    );
    match hospital.describe(&job(&outcome, &[numeric("y", "")])) {
        Answer::Described(description) => {
            let mut classes = description.classes;
            classes.sort_unstable();
            (Some(classes), Vec::new())
        }
        refused => (None, wire::encode_answer(&refused)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// A study has one range for its card and all of its runs. Before, runs knew by how much values lie beyond it.
    #[test]
    fn what_lies_beyond_a_range_changes_no_byte_where_the_site_declares_none(
        values in values(), end in 0..20_u32, further in 1..1_000_u32,
    ) {
        let moved = |value: &u32| if *value > end { value + further } else { *value };
        let moved: Vec<u32> = values.iter().map(moved).collect();
        let text = ranged(f64::from(end) + 0.5);
        prop_assert_eq!(stream(&hospital(&values, ""), &text), stream(&hospital(&moved, ""), &text));
    }

    #[test]
    fn the_dictionary_alone_decides_about_a_range(values in values(), high in 0..40_u32) {
        let declared = hospital(&values, "[columns.x]\nrange = [0, 19]");
        let free = stream(&declared, &ranged(1e6));
        let found = stream(&declared, &ranged(f64::from(high)));
        prop_assert_eq!(found == free, high >= 19);
        // Narrower, it is one answer for all data.
        let others = hospital(&vec![3; 70], "[columns.x]\nrange = [0, 19]");
        prop_assert_eq!(found == stream(&others, &ranged(f64::from(high))), high < 19);
    }

    #[test]
    fn codes_that_few_patients_hold_change_no_byte(
        values in values(), common in vec(0..4_u32, 0..2), rare in vec(16..25_u32, 1..4),
    ) {
        let hospital = hospital(&values, "");
        let holders = |code: u32| values.iter().filter(|value| **value == code).count();
        let rare: Vec<u32> = rare.into_iter().filter(|code| holders(*code) < CELL_MIN).collect();
        prop_assume!(common.iter().all(|code| holders(*code) >= CELL_MIN || holders(*code) == 0));
        let all = [common.clone(), rare].concat();
        prop_assert_eq!(stream(&hospital, &coded(&common)), stream(&hospital, &coded(&all)));
    }

    #[test]
    fn levels_that_few_patients_hold_may_be_listed_or_not(
        values in values(), dropped in 16..25_u32, swapped in 16..25_u32,
    ) {
        let hospital = hospital(&values, "");
        let holders = |level: u32| values.iter().filter(|value| **value == level).count();
        prop_assume!(holders(dropped) < CELL_MIN && holders(swapped) < CELL_MIN);
        // The whole run has one matrix row per level, so that lists of one length are compared.
        let list = |left_out: u32, instead: &str| {
            let all = (0..25_u32).filter(|level| *level != left_out).map(|level| level.to_string());
            let mut all: Vec<String> = all.collect();
            all.push(instead.to_owned());
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            job(CLASS, &[levels("x", &all), numeric("y", "")])
        };
        prop_assert_eq!(hospital.said(&list(dropped, "q")), hospital.said(&list(swapped, "q")));
        // A level that enough patients hold may be missed: then it is refused in one constant sentence.
        let missed = hospital.said(&list(0, "q"));
        let other = hospital.said(&list(1, "q"));
        if holders(0) >= CELL_MIN && holders(1) >= CELL_MIN {
            prop_assert_eq!(missed, other);
        }
    }

    #[test]
    fn codings_of_the_outcome_that_differ_by_few_patients_are_answered_alike(
        values in values(), joined in vec(any::<bool>(), 20), moved in 0..20_u32,
        declared in any::<bool>(),
    ) {
        let all: Vec<u32> = (0..20).filter(|level| values.contains(level)).collect();
        let names: Vec<String> = all.iter().map(u32::to_string).collect();
        let columns = if declared { format!("[columns.x]\nlevels = {names:?}") } else { String::new() };
        let hospital = hospital(&values, &columns);
        let holders = values.iter().filter(|value| **value == moved).count();
        prop_assume!(holders < CELL_MIN);
        let part = |side: bool, moves: bool| -> Vec<u32> {
            let of = |level: u32| joined[level as usize] ^ (moves && level == moved);
            all.iter().copied().filter(|level| of(*level) == side).collect()
        };
        prop_assume!(!part(true, false).is_empty() && !part(true, true).is_empty());
        prop_assume!(!part(false, false).is_empty() && !part(false, true).is_empty());
        let one = classes(&hospital, &part(true, false), &part(false, false));
        let other = classes(&hospital, &part(true, true), &part(false, true));
        prop_assert_eq!(one, other);
    }
}

#[test]
fn a_level_that_few_patients_hold_counts_as_missing_whether_it_is_listed_or_not() {
    let mut values = vec!["a"; 40];
    values.extend(vec!["b"; 40]);
    values.extend(vec!["rare"; 3]);
    let hospital = hospital(&values, "");
    let counts = |list: &[&str]| match hospital.moments(&job(CLASS, &[levels("x", list)])) {
        Some(ColumnMoments::Categorical { counts, missing }) => (counts, missing),
        other => panic!("{other:?}"),
    };
    let (with, without) = (counts(&["a", "b", "rare"]), counts(&["a", "b"]));
    assert_eq!((&with.0[..2], with.1), (&without.0[..], without.1));
    assert_eq!(with.0[2], 0);
}

#[test]
fn no_answer_to_a_cohort_that_does_not_fit_holds_a_number() {
    // Unreadable, out of the declared range, unlisted, missing where complete, repeated, ragged.
    let bad = [
        "a,1,1,0\nb,word,1,1\n",
        "a,1,1,0\nb,999,1,1\n",
        "a,1,1,0\nb,1,1,7\n",
        "a,1,1,0\nb,,1,1\n",
        "a,1,1,0\na,1,1,1\n",
        "a,1,1,0\nb,1\n",
    ];
    let columns =
        "[columns.x]\nrange = [0, 9]\ncomplete = true\n[columns.class]\nlevels = ['0', '1']";
    let asked = job(
        CLASS,
        &[numeric("x", "impute = 'refuse'"), numeric("y", "")],
    );
    let mut said = Vec::new();
    for rows in bad {
        let table = format!("id,x,y,class\n{rows}");
        let hospital = Hospital::of(&table, columns, "patient = 'id'");
        match hospital.describe(&asked) {
            Answer::Unfit(problems) => said.push(problems),
            other => panic!("{other:?}"),
        }
    }
    assert!(said.windows(2).all(|pair| pair[0] == pair[1]), "{said:?}");
    let text = format!("{} {}", said[0][0].found, said[0][0].wanted);
    assert!(
        !text.chars().any(|letter| letter.is_ascii_digit()),
        "{text}"
    );
}

/// A site with a level that few hold was refused, and one without such patients was not.
#[test]
fn a_level_that_few_hold_is_no_outcome_whatever_class_a_job_joins_it_to() {
    let of = |rare: usize, columns: &str| {
        let mut values = vec!["0"; 40];
        values.extend(vec!["1"; 40]);
        values.extend(vec!["2"; rare]);
        hospital(&values, columns)
    };
    let joined = [
        ("positive = ['1', '2']", "negative = ['0']"),
        ("positive = ['1']", "negative = ['0', '2']"),
    ];
    let jobs = joined.map(|(positive, negative)| {
        let outcome = format!("column = 'x'\nkind = 'binary'\n{positive}\n{negative}");
        job(&outcome, &[numeric("y", "")])
    });
    for columns in ["", "[columns.x]\nlevels = ['0', '1', '2']"] {
        let none = of(0, columns);
        let described = none.said(&jobs[0]);
        for text in &jobs {
            let undisturbed = stream(&none, text);
            assert!(undisturbed.len() > 4, "{} answers", undisturbed.len());
            for rare in [1, CELL_MIN - 1] {
                let few = of(rare, columns);
                assert_eq!(few.said(text), described, "{rare} patients, {columns}");
                assert_eq!(
                    stream(&few, text),
                    undisturbed,
                    "{rare} patients, {columns}"
                );
            }
            assert_ne!(of(CELL_MIN, columns).said(text), described, "{columns}");
        }
    }
}

#[test]
fn a_level_without_patients_is_answered_as_one_with_few() {
    let with = |patients: usize, columns: &str| {
        let mut values = vec!["1"; 40];
        values.extend(vec!["2"; 40]);
        values.extend(vec!["0"; patients]);
        let outcome = "column = 'x'\nkind = 'binary'\npositive = ['1', '2']\nnegative = ['0']";
        hospital(&values, columns).said(&job(outcome, &[numeric("y", "")]))
    };
    for columns in ["", "[columns.x]\nlevels = ['0', '1', '2']"] {
        assert_eq!(with(0, columns), with(1, columns), "{columns}");
        assert_eq!(with(0, columns), with(9, columns), "{columns}");
        assert_ne!(with(0, columns), with(10, columns), "{columns}");
    }
}

#[test]
fn levels_are_counted_on_a_grid_in_the_sites_order_alone() {
    // Joined to its neighbours in two orders, the level of three patients would be a difference of two counts.
    let mut values = vec!["a"; 40];
    values.extend(vec!["b"; 40]);
    values.extend(vec!["rare"; 3]);
    let said = |columns: &str, order: &str| {
        let keys = format!("kind = 'ordinal'\nimpute = 'median'\nlevels = [{order}]");
        let answer = hospital(&values, columns).describe(&job(CLASS, &[feature("x", &keys)]));
        matches!(answer, Answer::Described(_))
    };
    let declared = "[columns.x]\nlevels = ['a', 'rare', 'b']";
    assert!(said(declared, "'a', 'rare', 'b'"));
    assert!(said(declared, "'a', 'none', 'rare', 'b'"));
    for order in ["'rare', 'a', 'b'", "'b', 'rare', 'a'"] {
        assert!(!said(declared, order), "{order}");
    }
    let mapped = "[columns.x]\nlevels = { a = 'a', b = 'b', rare = 'rare' }";
    assert!(!said(mapped, "'a', 'rare', 'b'"));
    let ordered = format!("{mapped}\norder = ['a', 'rare', 'b']");
    assert!(said(&ordered, "'a', 'rare', 'b'"));
    // Undeclared, a level that few hold is none, and any order will do.
    assert!(said("", "'b', 'rare', 'a'"));
}
