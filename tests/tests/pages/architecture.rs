//! Promise: ARCHITECTURE.md is true. The dependencies between our crates, what each may name, and the invariants that are
//! absences.

use crate::metadata::{BUILD, Metadata, NORMAL};
use kindred_tests::workspace::{files, text};
use protocol::method::Method;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Our crates and what of ours each of them depends on.
const EDGES: [(&str, &[&str]); 10] = [
    ("coordinator", &["protocol", "report", "service", "wire"]),
    ("kindred-experiments", &["similarity"]),
    (
        "kindred-tests",
        &[
            "privacy",
            "protocol",
            "service",
            "similarity",
            "site-agent",
            "wire",
        ],
    ),
    ("privacy", &[]),
    ("protocol", &["privacy", "similarity"]),
    ("report", &["protocol"]),
    ("service", &["protocol", "report", "wire"]),
    ("similarity", &[]),
    (
        "site-agent",
        &[
            "privacy",
            "protocol",
            "report",
            "service",
            "similarity",
            "wire",
        ],
    ),
    ("wire", &["privacy", "protocol"]),
];
/// What only `wire` depends on.
const TRANSPORT: [&str; 9] = [
    "prost",
    "rcgen",
    "rustls",
    "rustls-pki-types",
    "tokio-rustls",
    "tonic",
    "tonic-prost",
    "tonic-prost-build",
    "x509-parser",
];
/// Crates without I/O, clock, environment, logging and global randomness.
const PURE: [&str; 3] = ["similarity", "privacy", "protocol"];
#[test]
fn our_crates_depend_on_each_other_as_drawn_and_on_nothing_more() {
    let members = Metadata::get().members();
    let found: BTreeMap<&str, Vec<&str>> = members
        .iter()
        .map(|(name, package)| {
            let direct = Metadata::direct(package, &[NORMAL, BUILD]);
            let ours = direct.into_iter().filter(|one| members.contains_key(one));
            (*name, ours.collect())
        })
        .collect();
    let wanted: BTreeMap<&str, Vec<&str>> = EDGES
        .into_iter()
        .map(|(name, edges)| (name, edges.to_vec()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn the_page_draws_the_same_dependencies() {
    let page = text("ARCHITECTURE.md");
    let (_, after) = page
        .split_once("Dependencies (a test keeps them):\n")
        .expect("the page lists dependencies");
    let block = after.trim_start().split("\n\n").next().unwrap_or_default();
    let mut drawn: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edges in block.lines().flat_map(|line| line.split("   ")) {
        let Some((from, to)) = edges.split_once(" -> ") else {
            assert!(edges.trim().is_empty(), "{edges}");
            continue;
        };
        let mut to: Vec<&str> = if to.starts_with("nothing of ours") {
            Vec::new()
        } else {
            to.split(',').map(str::trim).collect()
        };
        to.sort_unstable();
        for from in from.split(',') {
            drawn.insert(from.trim(), to.clone());
        }
    }
    let mut wanted: BTreeMap<_, _> = EDGES.map(|(name, to)| (name, to.to_vec())).into();
    wanted.remove("kindred-tests"); // the page draws what runs
    assert_eq!(drawn, wanted);
}

#[test]
fn only_wire_depends_on_grpc_protobuf_and_tls() {
    for (name, package) in Metadata::get().members() {
        let direct = Metadata::direct(package, &[NORMAL, BUILD]);
        let found: Vec<_> = TRANSPORT
            .iter()
            .filter(|one| direct.contains(**one))
            .collect();
        if name == "wire" {
            assert_eq!(found.len(), TRANSPORT.len(), "{found:?}");
        } else {
            assert!(found.is_empty(), "{name} depends on {found:?}");
        }
    }
}

#[test]
fn no_crate_below_the_programs_depends_on_serde_and_no_pure_one_on_a_runtime_or_a_log() {
    for (name, package) in Metadata::get().members() {
        let direct = Metadata::direct(package, &[NORMAL, BUILD]);
        let mut banned = Vec::new();
        if PURE.contains(&name) || name == "wire" {
            banned.extend(["serde", "serde_core", "serde_derive", "serde_json"]);
        }
        if PURE.contains(&name) {
            banned.extend(["log", "reqwest", "tokio", "tracing", "tempfile"]);
        }
        let found: Vec<_> = banned.iter().filter(|one| direct.contains(**one)).collect();
        assert!(found.is_empty(), "{name} depends on {found:?}");
    }
}

/// Source without comments and without modules of tests, its lines still in their places.
fn code(path: &Path) -> String {
    let mut in_tests = false;
    let mut lines = Vec::new();
    for line in text(path).lines() {
        in_tests |= line == "#[cfg(test)]";
        let comment = line.trim_start().starts_with("//") || in_tests;
        lines.push(if comment { "" } else { line }.to_owned());
        // rustfmt closes a module, or ends its declaration, at the margin.
        in_tests &= !(line == "}" || line.starts_with("mod ") && line.ends_with(';'));
    }
    lines.join("\n")
}

/// Every place of `words` in the code below `folders`.
fn places(folders: &[&str], words: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for path in folders.iter().flat_map(|folder| files(folder, &["rs"])) {
        if path.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        for (number, line) in code(&path).lines().enumerate() {
            for word in words.iter().filter(|word| names(line, word)) {
                places.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    places
}

/// Whether `line` has `word` and not as the end of a longer name.
fn names(line: &str, word: &str) -> bool {
    let in_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !(word.starts_with(in_name) && before.is_some_and(in_name))
    })
}

#[test]
fn the_pure_crates_name_no_file_socket_clock_environment_log_or_global_randomness() {
    let folders = [
        "shared/similarity/src",
        "shared/privacy/src",
        "shared/protocol/src",
    ];
    let words = [
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::io",
        "std::os",
        "env!(",
        "option_env!(",
        "SystemTime",
        "Instant",
        "now_utc",
        "now_local",
        "println!",
        "print!(",
        "eprintln!",
        "eprint!(",
        "dbg!(",
        "tracing::",
        "log::",
        "tokio::",
        "thread_rng",
        "rand::rng(",
        "rand::random",
        "OsRng",
        "SysRng",
        "from_os_rng",
        "from_entropy",
        "RandomState",
    ];
    let places = places(&folders, &words);
    assert!(places.is_empty(), "{places:#?}");
}

#[test]
fn only_wire_names_grpc_protobuf_and_tls() {
    let folders = [
        "shared/similarity",
        "shared/privacy",
        "shared/protocol",
        "coordinator/src",
        "site-agent/src",
    ];
    let words = [
        "tonic::",
        "prost::",
        "tonic_prost::",
        "rustls::",
        "tokio_rustls::",
        "rcgen::",
        "x509_parser::",
    ];
    let places = places(&folders, &words);
    assert!(places.is_empty(), "{places:#?}");
    assert!(!self::places(&["shared/wire/src"], &words).is_empty());
}

/// Who adds a method edits these files, and no other.
#[test]
fn only_the_files_of_the_page_name_all_methods() {
    let page = text("ARCHITECTURE.md");
    let section = page
        .split("## To add a method")
        .nth(1)
        .expect("a section on adding a method");
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed: BTreeSet<String> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let sources = ["coordinator/src", "shared", "site-agent/src"];
    let rust = sources.iter().flat_map(|folder| files(folder, &["rs"]));
    let is_own = |path: &PathBuf| {
        let path = path.display().to_string();
        [
            "/tests/",
            "/benches/",
            "shared/similarity",
            "shared/experiments",
        ]
        .iter()
        .any(|part| path.contains(part))
            || path.ends_with("tests.rs")
    };
    let names_all = |path: &PathBuf| {
        let text = text(path).to_lowercase();
        let code = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        let is_part = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let words: BTreeSet<&str> = code.flat_map(|line| line.split(is_part)).collect();
        Method::NAMES.iter().all(|name| words.contains(name))
    };
    let found: BTreeSet<String> = rust
        .filter(|path| !is_own(path))
        .chain(files("proto", &["proto"]))
        .filter(names_all)
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(found, listed);
}

#[test]
fn nothing_of_ours_unwraps_outside_of_tests() {
    let folders = [
        "coordinator/src",
        "site-agent/src",
        "shared/similarity/src",
        "shared/privacy/src",
        "shared/protocol/src",
        "shared/wire/src",
        "shared/experiments/src",
    ];
    let places = places(&folders, &[".unwrap()", ".unwrap_err()"]);
    assert!(places.is_empty(), "{places:#?}");
}

#[test]
fn nothing_is_left_to_be_done() {
    let extensions = [
        "css", "html", "md", "proto", "py", "rs", "service", "sh", "sql", "toml", "yaml", "yml",
    ];
    let folders = [
        "proto",
        "shared",
        "coordinator",
        "site-agent",
        "tests",
        "deploy",
    ];
    let mut paths: Vec<_> = folders
        .iter()
        .flat_map(|folder| files(folder, &extensions))
        .collect();
    let top = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.toml",
        "Makefile",
        "deny.toml",
    ];
    paths.extend(top.map(Into::into));
    assert!(paths.len() > 150, "found only {} files", paths.len());
    // Put together here, so that this file is searched too.
    let marks = [
        ["TO", "DO"],
        ["FIX", "ME"],
        ["to", "do!"],
        ["unimplemen", "ted!"],
    ]
    .map(|two| two.concat());
    for path in paths {
        for (number, line) in text(&path).lines().enumerate() {
            for mark in &marks {
                assert!(
                    !names(line, mark),
                    "{}:{}: {mark}",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn the_searches_find_what_they_search_for() {
    for (line, word, wanted) in [
        ("use std::fs;", "std::fs", true),
        ("let x = y.unwrap();", ".unwrap()", true),
        ("rustls::ClientConfig", "rustls::", true),
        (
            "use tokio_postgres_rustls::MakeRustlsConnect;",
            "rustls::",
            false,
        ),
        ("eprintln!();", "println!", false),
    ] {
        assert_eq!(names(line, word), wanted, "{line}");
    }
    let kept = code(Path::new("site-agent/src/config/mod.rs"));
    assert!(kept.contains("pub fn parse") && !kept.contains("mod tests"));
    // The programs do what the pure crates may not, and so show that the words are found.
    assert!(places(&["site-agent/src"], &["std::fs", "tracing::", "println!"]).len() > 5);
}
