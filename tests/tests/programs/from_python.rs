//! Promise: from Python and R, runs and studies are what the programs say. The package's own tests hold it, with the wheel that
//! is built here, a deployment of four hospitals, and pinned packages from PyPI.
//!
//! Where Python 3.11 or the registry is absent, the test prints so. Tests that need R print so themselves.

use kindred_tests::deployment::Deployment;
use kindred_tests::processors::kernels_of;
use kindred_tests::programs::{Home, coordinator};
use kindred_tests::samples::demo_job;
use kindred_tests::workspace::{files, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PACKAGE: &str = "deploy/python";

/// What a command printed, whether it succeeded or not; none where there is no such program.
fn output(command: &mut Command) -> Option<Output> {
    command.env("PYTHONDONTWRITEBYTECODE", "1").output().ok()
}

fn succeeds(command: &mut Command) -> bool {
    output(command).is_some_and(|output| output.status.success())
}

fn pip(python: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "--quiet", "--no-input"])
        .args(arguments);
    command
}

/// The Python of an environment under the target folder with the pinned packages, made once; none where it cannot be made.
fn environment() -> Option<PathBuf> {
    let requirements = root().join(PACKAGE).join("tests/requirements.txt");
    let wanted = fs::read_to_string(&requirements).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let (python, whole) = (folder.join("bin/python"), folder.join("whole.txt"));
    if fs::read_to_string(&whole).is_ok_and(|installed| installed == wanted) {
        return Some(python);
    }
    let version = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !succeeds(Command::new("python3").args(["-c", version])) {
        println!("skipped: found no python3 of version 3.11 to test its package with");
        return None;
    }
    let making = ["-m", "venv", "--clear"];
    if !succeeds(Command::new("python3").args(making).arg(&folder)) {
        println!("skipped: python3 makes no virtual environment; Debian's package is python3-venv");
        return None;
    }
    let mut install = pip(
        &python,
        &["install", "--only-binary", ":all:", "--requirement"],
    );
    if !succeeds(install.arg(&requirements)) {
        println!(
            "skipped: pip cannot install {} from PyPI",
            requirements.display()
        );
        return None;
    }
    fs::write(whole, wanted).unwrap();
    Some(python)
}

/// Builds the wheel of a copy of the package, so that nothing is written among the sources, and installs it.
fn install_wheel(home: &Home, python: &Path) {
    for file in files(PACKAGE, &["py", "typed", "json", "toml", "md"]) {
        let to = home
            .join("source")
            .join(file.strip_prefix(PACKAGE).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join(&file), to).unwrap();
    }
    let building = [
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        "wheel",
        "./source",
    ];
    let mut command = pip(python, &building);
    let built = output(command.current_dir(home.path())).unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let wheels: Vec<_> = fs::read_dir(home.join("wheel")).unwrap().collect();
    assert_eq!(wheels.len(), 1);
    let wheel = wheels[0].as_ref().unwrap().path();
    let name = wheel.file_name().unwrap().to_string_lossy();
    let wanted = concat!("kindred-", env!("CARGO_PKG_VERSION"), "-");
    assert!(name.starts_with(wanted), "{name}");
    let mut command = pip(
        python,
        &["install", "--no-deps", "--no-index", "--force-reinstall"],
    );
    assert!(succeeds(command.arg(wheel)));
}

#[test]
fn the_packages_own_tests_hold_for_its_wheel_and_these_programs() {
    let Some(python) = environment() else {
        return;
    };
    let deployment = Deployment::start();
    let home = &deployment.home;
    home.write(
        "job.toml",
        &deployment.of_study(&demo_job(&["round_limit = 30"], "")),
    );
    install_wheel(home, &python);
    let mut command = home.command(&python);
    command
        .args(["-m", "pytest", "-rs", "--color=no"])
        .arg(root().join(PACKAGE).join("tests"))
        .env("KINDRED_PROGRAMS", coordinator().parent().unwrap())
        .envs(kernels_of("north"))
        .env("KINDRED_DEPLOYMENT", home.path());
    let tested = output(&mut command).unwrap();
    let said = String::from_utf8_lossy(&tested.stdout);
    assert!(
        tested.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&tested.stderr)
    );
    println!("{said}");
    assert!(said.contains(" passed"), "{said}");
}
