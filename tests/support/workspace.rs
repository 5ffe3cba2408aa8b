//! Where the workspace is, and its files.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's folder.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("tests/ is in a folder").to_owned()
}

/// A folder of the real data: `KINDRED_DATA`, or `../shared/data` beside the workspace. Where it is
/// absent, says so and gives none.
pub fn real_data(folder: &str) -> Option<PathBuf> {
    let data = std::env::var_os("KINDRED_DATA")
        .map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = data.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!(
        "skipped: found no {}; name it by KINDRED_DATA",
        data.display()
    );
    None
}

/// A file of the workspace as text; `path` is relative to it.
pub fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` of the workspace whose extension is listed, in order, without folders
/// of results. The paths are relative to the workspace.
pub fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|found| extensions.iter().any(|extension| found == *extension))
            {
                let path = path.strip_prefix(&root).expect("a path in the workspace");
                found.push(path.to_owned());
            }
        }
    }
    found.sort();
    found
}
