//! Hospitals whose processors differ.
//!
//! OpenBLAS and the C library choose their code by the processor, and the last bits of a product or an exponential with it. Agents
//! of several sites run here as on several processors, so that a run which needs the same bits everywhere fails in its own test.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What has the C library use no fused products.
const PLAIN: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX512F";

/// A program that starts `agent` as on the processor of the site that its arguments name; the agent itself where there is one kind.
#[must_use]
pub fn of_sites(agent: &Path) -> PathBuf {
    static SCRIPT: OnceLock<PathBuf> = OnceLock::new();
    SCRIPT.get_or_init(|| written(agent)).clone()
}

/// The variable by which OpenBLAS has the kernels that the agent of a site has; none where there is one kind.
#[must_use]
pub fn kernels_of(site: &str) -> Option<(&'static str, &'static str)> {
    let known = kernels();
    let place = match site {
        "north" => known.len() / 2,
        "south" => known.len().checked_sub(1)?,
        "east" => 0,
        _ => return None,
    };
    known
        .get(place)
        .map(|kernels| ("OPENBLAS_CORETYPE", *kernels))
}

fn written(agent: &Path) -> PathBuf {
    let of = |site| kernels_of(site).map(|(variable, kernels)| format!("{variable}={kernels}"));
    let (Some(north), Some(south), Some(east)) = (of("north"), of("south"), of("east")) else {
        return agent.to_owned();
    };
    let path = agent.display();
    let text = format!(
        r#"#!/bin/sh
case "$*" in
    *north/* | *north.toml*) exec env {north} {PLAIN} "{path}" "$@" ;;
    *south/* | *south.toml*) exec env {south} "{path}" "$@" ;;
    *east/* | *east.toml*) exec env {east} {PLAIN} "{path}" "$@" ;;
    *) exec "{path}" "$@" ;;
esac
"#
    );
    let folder = agent.parent().expect("a program lies in a folder");
    let script = folder.join("kindred-site-agent.sh");
    if fs::read_to_string(&script).is_ok_and(|known| known == text) {
        return script;
    }
    // Other tests may start it at this moment.
    let mut file = tempfile::NamedTempFile::new_in(folder).expect("a file beside the programs");
    file.write_all(text.as_bytes()).expect("a script");
    let may_run = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file.path(), may_run).expect("a script that may run");
    // A file that is open for writing cannot be started.
    let path = file.into_temp_path();
    path.persist(&script).expect("a script beside the programs");
    script
}

/// Kernels of OpenBLAS that this processor can run, the oldest first.
fn kernels() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut known = vec!["Prescott"];
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            known.push("Haswell");
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                known.push("SkylakeX");
            }
        }
        known
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}
