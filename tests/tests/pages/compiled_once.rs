//! Promise: what `make build` compiled, `make test` and `make lint` do not compile a second time. Cargo compiles a crate again
//! where it has other features than before, and everything above it with it.

use kindred_tests::workspace::{root, text};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The sets of features that each crate is compiled with, where cargo builds what `arguments` name.
fn features(arguments: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "--prefix", "none"])
        .args(["--no-dedupe", "--format", "{p}\t{f}"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {problems}");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some((package, features)) = line.split_once('\t') {
            let sets = found.entry(package.to_owned()).or_default();
            sets.insert(features.to_owned());
        }
    }
    found
}

#[test]
fn the_tests_compile_no_crate_of_the_programs_again() {
    let makefile = text("Makefile");
    let line = makefile
        .lines()
        .find_map(|line| line.strip_prefix("PROGRAMS = "))
        .expect("what `make build` builds");
    let mut programs: Vec<&str> = line.split_whitespace().collect();
    programs.extend(["--edges", "normal,build"]);
    let (programs, all) = (features(&programs), features(&["--workspace"]));
    assert!(programs.len() > 200, "found {} crates", programs.len());
    let again: Vec<_> = programs
        .iter()
        .filter(|(name, before)| !all[*name].is_subset(before))
        .map(|(name, before)| format!("{name}: first {before:?}, then {:?}", all[name]))
        .collect();
    assert!(again.is_empty(), "{}", again.join("\n"));
}
