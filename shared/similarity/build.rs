//! Finds the system's OpenBLAS, which has BLAS and LAPACK in one library, and links it.
//!
//! The crates that call it leave the choice of a library to whoever uses them. The crate that usually makes this choice can
//! also download and compile OpenBLAS, and brings an HTTP client and a second TLS for it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder of the library, where nothing else finds it.
const FOLDER: &str = "OPENBLAS_LIB_DIR";
/// Where Homebrew keeps it, out of the linker's sight.
const HOMEBREW: [&str; 2] = [
    "/opt/homebrew/opt/openblas/lib",
    "/usr/local/opt/openblas/lib",
];
const FILES: [&str; 3] = ["libopenblas.so", "libopenblas.dylib", "libopenblas.a"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for variable in [FOLDER, "PKG_CONFIG_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    let described = answer("pkg-config", &["--variable=libdir", "openblas"]).map(PathBuf::from);
    let homebrew = HOMEBREW.iter().map(PathBuf::from);
    let mut folders = named.into_iter().chain(described).chain(homebrew);
    if let Some(folder) = folders.find(|folder| holds_library(folder)) {
        println!("cargo::rustc-link-search=native={}", folder.display());
    } else if !FILES.iter().any(|file| linker_finds(file)) {
        println!(
            "cargo::error=found no OpenBLAS, wanted its development files: deploy/setup/packages.sh installs them \
             (libopenblas-dev, openblas-devel or openblas), or {FOLDER} names the folder of {}",
            FILES[0]
        );
        return;
    }
    println!("cargo::rustc-link-lib=openblas");
}

fn holds_library(folder: &Path) -> bool {
    FILES.iter().any(|file| folder.join(file).is_file())
}

/// The compiler answers with a path where it knows the file, and else with the bare name.
fn linker_finds(file: &str) -> bool {
    answer("cc", &[&format!("-print-file-name={file}")]).is_some_and(|path| path != file)
}

/// What a program prints, without the space around it; none where it is absent, fails or is silent.
fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
