//! Promise: what we build with may be used by everybody. deny.toml lists the permitted licences.

use crate::metadata::{BUILD, Kind, Metadata, NORMAL, string};
use kindred_tests::workspace::text;
use std::collections::BTreeSet;

/// Licences of all that is needed by `kinds` and not permitted: the crate's name and its expression.
fn not_permitted<'a>(kinds: &[Kind], allowed: &BTreeSet<String>) -> BTreeSet<(&'a str, &'a str)> {
    let metadata = Metadata::get();
    let packages = metadata.packages();
    let needed = metadata.needed(kinds);
    assert!(needed.len() > 100, "found only {} packages", needed.len());
    needed
        .iter()
        .map(|id| packages[id])
        .map(|one| {
            (
                string(&one["name"]),
                one["license"].as_str().unwrap_or_default(),
            )
        })
        .filter(|(_, licence)| !permits(licence, allowed))
        .collect()
}

fn allowed() -> BTreeSet<String> {
    let text = text("deny.toml");
    let mut document = toml_span::parse(&text).expect("deny.toml is TOML");
    let allowed = document
        .pointer_mut("/licenses/allow")
        .expect("a list of licences");
    let allowed = allowed.as_array().expect("a list of licences").iter();
    allowed
        .map(|one| one.as_str().expect("a licence").to_owned())
        .collect()
}

#[test]
fn every_crate_in_the_programs_has_a_permitted_licence() {
    assert_eq!(not_permitted(&[NORMAL], &allowed()), BTreeSet::new());
}

#[test]
fn every_crate_that_builds_them_has_a_permitted_licence() {
    let found = not_permitted(&[NORMAL, BUILD], &allowed());
    assert_eq!(found, BTreeSet::new());
}

/// Whether an SPDX expression can be met by permitted licences alone. `/` is an older `OR`.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    words.peek().is_some() && any(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// `all OR all ...`
fn any(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

/// `one AND one ...`, which binds more closely than `OR`.
fn all(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

/// A licence, a licence `WITH` an exception, or an expression in parentheses.
fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let met = any(words, allowed);
        return words.next() == Some(")") && met;
    }
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(word)
}

#[test]
fn licence_expressions_are_read_as_spdx_reads_them() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
    let allowed: BTreeSet<String> = allowed.map(str::to_owned).into();
    for (expression, wanted) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("MIT AND ISC", true),
        ("MIT OR ISC AND GPL-3.0", true),
        ("(MIT OR ISC) AND GPL-3.0", false),
        ("(GPL-3.0 OR ISC) AND MIT", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("MIT ISC", false),
        ("(MIT", false),
    ] {
        assert_eq!(permits(expression, &allowed), wanted, "{expression:?}");
    }
}
