//! What cargo knows of the workspace.

use kindred_tests::workspace::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

/// One kind of dependency, as cargo names it; none is the usual kind.
pub(crate) type Kind = Option<&'static str>;
pub(crate) const NORMAL: Kind = None;
pub(crate) const BUILD: Kind = Some("build");

/// What cargo knows of the workspace and of all that it needs.
pub(crate) struct Metadata(Value);

impl Metadata {
    pub(crate) fn get() -> &'static Self {
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
    pub(crate) fn packages(&self) -> BTreeMap<&str, &Value> {
        let packages = list(&self.0["packages"]);
        packages.map(|one| (string(&one["id"]), one)).collect()
    }

    /// Our own crates, by name.
    pub(crate) fn members(&self) -> BTreeMap<&str, &Value> {
        let packages = self.packages();
        list(&self.0["workspace_members"])
            .map(|id| packages[string(id)])
            .map(|one| (string(&one["name"]), one))
            .collect()
    }

    /// What a crate names in its manifest.
    pub(crate) fn direct<'a>(package: &'a Value, kinds: &[Kind]) -> BTreeSet<&'a str> {
        list(&package["dependencies"])
            .filter(|one| kinds.contains(&kind(&one["kind"])))
            .map(|one| string(&one["name"]))
            .collect()
    }

    /// Identifiers of all that our crates need by `kinds`, themselves included.
    pub(crate) fn needed(&self, kinds: &[Kind]) -> BTreeSet<&str> {
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

pub(crate) fn string(value: &Value) -> &str {
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
