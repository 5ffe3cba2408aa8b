//! Promise: ARCHITECTURE.md is true. The dependencies between our crates, what each may name, the
//! licences of what we build with, and the invariants that are absences.

use kindred_tests::workspace::{files, root, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Our crates and what of ours each of them depends on.
const EDGES: [(&str, &[&str]); 9] = [
    ("coordinator", &["protocol", "report", "wire"]),
    ("kindred-experiments", &["similarity"]),
    ("kindred-tests", &["protocol", "site-agent", "wire"]),
    ("privacy", &[]),
    ("protocol", &["privacy", "similarity"]),
    ("report", &["protocol"]),
    ("similarity", &[]),
    (
        "site-agent",
        &["privacy", "protocol", "report", "similarity", "wire"],
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
/// Licences outside of deny.toml's list, of crates that run while Kindred is built and are in neither
/// program. `option-ext` comes with the build script of `openblas-src`, which finds OpenBLAS.
const BUILD_ONLY: [(&str, &str); 1] = [("option-ext", "MPL-2.0")];

/// One kind of dependency, as cargo names it; none is the usual kind.
type Kind = Option<&'static str>;
const NORMAL: Kind = None;
const BUILD: Kind = Some("build");

/// What cargo knows of the workspace and of all that it needs.
struct Metadata(Value);

impl Metadata {
    fn get() -> &'static Self {
        static METADATA: OnceLock<Metadata> = OnceLock::new();
        METADATA.get_or_init(|| {
            let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
            // Without the platform, cargo wants crates of others, which no build here has downloaded.
            let output = Command::new(cargo)
                .args(["metadata", "--format-version", "1", "--locked", "--offline"])
                .args(["--filter-platform", &host_platform()])
                .current_dir(root())
                .output()
                .expect("cargo starts");
            let problems = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "cargo metadata: {problems}");
            Self(serde_json::from_slice(&output.stdout).expect("cargo writes JSON"))
        })
    }

    /// Packages by their identifier.
    fn packages(&self) -> BTreeMap<&str, &Value> {
        let packages = list(&self.0["packages"]);
        packages.map(|one| (string(&one["id"]), one)).collect()
    }

    /// Our own crates, by name.
    fn members(&self) -> BTreeMap<&str, &Value> {
        let packages = self.packages();
        list(&self.0["workspace_members"])
            .map(|id| packages[string(id)])
            .map(|one| (string(&one["name"]), one))
            .collect()
    }

    /// What a crate names in its manifest.
    fn direct<'a>(package: &'a Value, kinds: &[Kind]) -> BTreeSet<&'a str> {
        list(&package["dependencies"])
            .filter(|one| kinds.contains(&kind(&one["kind"])))
            .map(|one| string(&one["name"]))
            .collect()
    }

    /// Identifiers of all that our crates need by `kinds`, themselves included.
    fn needed(&self, kinds: &[Kind]) -> BTreeSet<&str> {
        let nodes: BTreeMap<_, _> = list(&self.0["resolve"]["nodes"])
            .map(|node| (string(&node["id"]), node))
            .collect();
        let mut open: Vec<_> = list(&self.0["workspace_members"]).map(string).collect();
        let mut needed = BTreeSet::new();
        while let Some(id) = open.pop() {
            if needed.insert(id) {
                let edges = list(&nodes[id]["deps"]);
                let edges = edges.filter(|edge| {
                    list(&edge["dep_kinds"]).any(|k| kinds.contains(&kind(&k["kind"])))
                });
                open.extend(edges.map(|edge| string(&edge["pkg"])));
            }
        }
        needed
    }
}

/// The platform that the compiler runs on, as it names it.
fn host_platform() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc).arg("-vV").output();
    let text = output.expect("rustc starts").stdout;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc names its host").to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn kind(value: &Value) -> Kind {
    match value.as_str() {
        None => NORMAL,
        Some("build") => BUILD,
        Some("dev") => Some("dev"),
        Some(other) => panic!("an unknown kind of dependency: {other}"),
    }
}

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
            banned.extend(["log", "reqwest", "time", "tokio", "tracing", "tempfile"]);
        }
        let found: Vec<_> = banned.iter().filter(|one| direct.contains(**one)).collect();
        assert!(found.is_empty(), "{name} depends on {found:?}");
    }
}

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
fn every_crate_that_builds_them_has_a_permitted_licence_but_those_named_here() {
    let found = not_permitted(&[NORMAL, BUILD], &allowed());
    assert_eq!(found, BTreeSet::from(BUILD_ONLY));
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
