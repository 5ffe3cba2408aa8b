//! Promise: a file is read at one sitting and a function on one screen. What is longer today is listed with its
//! length, which may only fall.

use kindred_tests::workspace::{files, text};
use std::path::PathBuf;

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Files that are longer today.
const LONG_FILES: &[(&str, usize)] = &[];
/// Functions that are longer today, by file and name.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Source files of the programs and of what they share, by their path in the workspace, without tests.
pub(super) fn sources() -> Vec<(String, String)> {
    let is_source = |path: &PathBuf| {
        let mut folders = path.iter();
        !folders.any(|folder| folder == "tests" || folder == "benches")
            && !path.to_string_lossy().ends_with("tests.rs")
    };
    ["coordinator/src", "shared", "site-agent/src"]
        .iter()
        .flat_map(|folder| files(folder, &["rs"]))
        .filter(is_source)
        .map(|path| (path.display().to_string(), text(&path)))
        .collect()
}

/// The functions of a formatted file: name and lines, from `fn` to the brace at the same indentation.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let words = line.trim_start();
        let indentation = &line[..line.len() - words.len()];
        let head = words.split('(').next().unwrap_or_default();
        let Some(at) = head.find("fn ").filter(|at| {
            let before = &head[..*at];
            before.is_empty()
                || before.starts_with("pub")
                || before.starts_with("async ")
                || before.starts_with("const ")
        }) else {
            // `pub(crate) fn` has a bracket before its name.
            continue;
        };
        let name = head[at + 3..].split(['<', ' ']).next().unwrap_or_default();
        let end = format!("{indentation}}}");
        let declared = lines[first..]
            .iter()
            .find(|line| line.ends_with([';', '{', '}']));
        if declared.is_some_and(|line| line.ends_with(';')) {
            continue;
        }
        if let Some(length) = lines[first..].iter().position(|line| *line == end) {
            found.push((name, length + 1));
        }
    }
    found
}

#[test]
fn functions_of_a_file_are_found_with_their_lengths() {
    let text = "pub(crate) fn one() {\n    a();\n}\n\nimpl A {\n    async fn two<T>(\n        t: T,\n    ) {\n    }\n}\n\
                trait B {\n    fn without(&self);\n}\n";
    assert_eq!(functions(&unbracketed(text)), [("one", 3), ("two", 4)]);
}

/// `pub(crate)` and its like as `pub`.
fn unbracketed(text: &str) -> String {
    text.replace("pub(crate) ", "pub ")
        .replace("pub(super) ", "pub ")
}

#[test]
fn no_source_file_is_longer_than_a_sitting_but_those_listed_which_may_only_shrink() {
    let mut problems = Vec::new();
    for (place, text) in sources() {
        let lines = text.lines().count();
        let listed = LONG_FILES.iter().find(|(file, _)| *file == place);
        let ceiling = listed.map_or(FILE_LINES_MAX, |(_, lines)| *lines);
        if lines > ceiling {
            problems.push(format!(
                "{place}: found {lines} lines, wanted at most {ceiling}"
            ));
        } else if listed.is_some() && lines < ceiling {
            problems.push(format!("{place}: has {lines} lines now; lower its ceiling"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_function_is_longer_than_a_screen_but_those_listed_which_may_only_shrink() {
    let mut problems = Vec::new();
    let mut seen = 0;
    for (place, text) in sources() {
        let text = unbracketed(&text);
        for (name, lines) in functions(&text) {
            seen += 1;
            let same =
                |(file, function, _): &&(&str, &str, usize)| *file == place && *function == name;
            let listed = LONG_FUNCTIONS.iter().find(same);
            let ceiling = listed.map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
            if lines > ceiling {
                problems.push(format!(
                    "{place}, {name}: found {lines} lines, wanted at most {ceiling}"
                ));
            } else if listed.is_some() && lines < ceiling {
                problems.push(format!(
                    "{place}, {name}: has {lines} lines now; lower its ceiling"
                ));
            }
        }
    }
    assert!(seen > 500, "found only {seen} functions");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
