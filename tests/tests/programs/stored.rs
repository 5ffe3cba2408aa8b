//! Promise: what an earlier release has stored is read by this one, and goes on: a coordinator's database, hospitals' folders, and
//! backups of both. `tests/reference/stored` has an archive of each release. Before the next one, store its own:
//! `cargo test --package kindred-tests --test programs -- --ignored this_release_stores_a_federation`.

use crate::backups::{of_coordinator, of_north};
use crate::hindered::{METRIC, SEED, metric, open};
use crate::studies::at_site;
use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::programs::Signal;
use kindred_tests::results::matrix;
use kindred_tests::workspace::root;
use protocol::name::RunId;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Those whose folders are read.
const RELEASES: [&str; 1] = ["0.2.0"];
/// The file with the run of the stored federation.
const RUN: &str = "run";
/// Numbers that the same data gives again, whichever release works them out, and on whichever processor: at the default precision a sum
/// that is rounded may fall the other way.
const TOLERANCE: f64 = 1e-4;

pub(crate) fn archive(release: &str) -> PathBuf {
    root().join(format!("tests/reference/stored/{release}.tar.gz"))
}

fn tar(arguments: &[&str], deployment: &Deployment) {
    let mut command = Command::new("tar");
    let status = command
        .args(arguments)
        .current_dir(deployment.home.path())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn what_an_earlier_release_stored_goes_on() {
    for release in RELEASES {
        let mut deployment = Deployment::prepare();
        for folder in ["data", "certificates", "sites"] {
            fs::remove_dir_all(deployment.home.join(folder)).unwrap();
        }
        tar(&["-xpzf", archive(release).to_str().unwrap()], &deployment);
        deployment.renew();
        let run = fs::read_to_string(deployment.home.join(RUN)).unwrap();
        let run = RunId::new(run.trim()).unwrap();
        let stored = deployment.home.join(&format!("results-{run}"));
        let wanted = fs::read(stored.join("metric.npy")).unwrap();
        fs::remove_dir_all(&stored).unwrap();

        // Every book is what was written, and a lost folder comes back from its backup.
        of_north(&deployment, &["journal", "verify"]).must_succeed();
        of_coordinator(&deployment, &["audit", "verify"]).must_succeed();
        fs::remove_dir_all(deployment.home.join("sites/north")).unwrap();
        of_north(&deployment, &["restore", "of-north", "--latest"]).must_succeed();
        fs::remove_dir_all(deployment.home.join("coordinator")).unwrap();
        of_coordinator(&deployment, &["restore", "of-coordinator", "--latest"]).must_succeed();

        deployment.start_coordinator();
        for site in SITES {
            deployment.start_agent(site);
        }
        assert!(
            metric(&deployment, &run) == wanted,
            "{release}: other results"
        );
        let again = [&SEED[..], &["--token", "later"]].concat();
        let again = deployment.submit(METRIC, &again);
        let found = matrix(&metric(&deployment, &again)).unwrap();
        let wanted = matrix(&wanted).unwrap();
        assert_eq!(found.dim(), wanted.dim(), "{release}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(
                (found - wanted).abs() < TOLERANCE,
                "{release}: {found}, wanted {wanted}"
            );
        }
        for site in SITES {
            // Of an earlier release, and of another processor, the last digits may be others; never without its name.
            let audit = at_site(&deployment, site, &["audit", "demo"]);
            let runs = audit
                .stdout
                .lines()
                .filter(|line| line.contains(run.as_str()) || line.contains(again.as_str()));
            assert_eq!(runs.clone().count(), 2, "{}", audit.stdout);
            for line in runs {
                let is_known = line.ends_with("verified")
                    || line.contains(&format!(
                        "cannot be verified here: version {release} took part"
                    ));
                assert!(is_known, "{line}");
                let is_own = line.contains(again.as_str());
                assert!(!is_own || line.ends_with("verified"), "{line}");
            }
        }
    }
}

#[test]
#[ignore = "stores a federation of this release for those to come"]
fn this_release_stores_a_federation() {
    let mut deployment = open();
    let run = deployment.submit(METRIC, &SEED);
    metric(&deployment, &run);
    deployment.home.write(RUN, run.as_str());
    for site in SITES {
        let agent = deployment.agent(site);
        agent.signal(Signal::Terminate);
        assert_eq!(agent.wait(), Some(0));
    }
    deployment.coordinator().signal(Signal::Terminate);
    assert_eq!(deployment.coordinator().wait(), Some(0));
    of_north(&deployment, &["backup", "--out", "of-north"]).must_succeed();
    of_coordinator(&deployment, &["backup", "--out", "of-coordinator"]).must_succeed();
    let file = archive(env!("CARGO_PKG_VERSION"));
    let results = format!("results-{run}");
    let stored = [
        "certificates",
        "coordinator",
        "data",
        "demo.study.toml",
        "of-coordinator",
        "of-north",
        RUN,
        "sites",
        &results,
    ];
    let all = [&["-czf", file.to_str().unwrap()], &stored[..]].concat();
    tar(&all, &deployment);
}
