//! Promise: in a run of sums the sites check what they are asked, on whatever processor each runs, and anybody at a site can
//! work the run out again once it is over.

use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::exit::{JOURNAL, USAGE};
use kindred_tests::programs::site_agent;
use kindred_tests::results::result;
use kindred_tests::samples::demo_job;
use protocol::name::RunId;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What a run leaves.
fn fetched(deployment: &Deployment, run: &RunId) -> Value {
    let out = format!("results-{run}");
    let ran = deployment.job(&["watch", run.as_str(), "--out", &out]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    result(&deployment.home.join(&out))
}

/// What a run that was fetched has learned.
fn metric(deployment: &Deployment, run: &RunId) -> Vec<u8> {
    fs::read(deployment.home.join(&format!("results-{run}/metric.npy"))).unwrap()
}

/// Kernels of OpenBLAS that this processor has.
fn kernels() -> Vec<&'static str> {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let known = [
        ("pni", "Prescott"),
        ("avx2", "Haswell"),
        ("avx512f", "SkylakeX"),
    ];
    let has = |flag: &str| flags.split_whitespace().any(|own| own == flag);
    known
        .into_iter()
        .filter(|(flag, _)| has(flag))
        .map(|(_, kernel)| kernel)
        .collect()
}

/// A job that is learnt by consensus ADMM.
fn plain_admm(tables: &str) -> String {
    demo_job(&["consensus = \"admm\"", "round_limit = 30"], tables)
}

/// A site that starts again finds its dual by answering the same questions again: the run has the bits of one that nobody
/// disturbed. That its mean dual is that of the sites' duals, to rounding, is judged where all of them are known.
#[test]
fn plain_admm_from_sums_loses_nothing_where_a_site_is_killed_in_a_round() {
    let job = plain_admm("");
    // Offsets follow from the keys of the sites: the same sites are asked twice.
    let mut deployment = Deployment::start();
    let run = deployment.submit(&job, &["--seed", "3"]);
    let undisturbed = fetched(&deployment, &run);
    let wanted = metric(&deployment, &run);
    let rounds = undisturbed["rounds"].as_u64().unwrap();
    assert!(rounds > 10, "{rounds}");

    let run = deployment.submit(&job, &["--seed", "3", "--token", "again"]);
    for (site, round) in [("south", 3), ("west", 8)] {
        deployment.watch(&run).until_round(round);
        deployment.kill_agent(site);
        deployment.start_agent(site);
    }
    let disturbed = fetched(&deployment, &run);
    assert_eq!(disturbed["rounds"], undisturbed["rounds"]);
    let found = metric(&deployment, &run);
    assert!(found == wanted, "other bytes after restarts");
}

/// Each site works out every question by itself, and refuses any other: a bit that differed would end the run.
#[test]
fn sites_with_other_processors_work_out_the_same_questions() {
    let kernels = kernels();
    if kernels.len() < 2 {
        println!("skipped: found {kernels:?}, wanted two kinds of kernel that this processor has");
        return;
    }
    let deployment = Deployment::alone();
    let agent = site_agent();
    let agent = agent.to_str().unwrap();
    let agents: Vec<_> = SITES
        .into_iter()
        .enumerate()
        .map(|(place, site)| {
            let kernel = format!("OPENBLAS_CORETYPE={}", kernels[place % kernels.len()]);
            let threads = format!("RAYON_NUM_THREADS={}", 1 + place % 2);
            let config = format!("{site}.toml");
            let arguments = [&kernel, &threads, agent, "serve", "--config", &config];
            deployment.home.start(site, Path::new("env"), &arguments)
        })
        .collect();
    let keys = [
        "lambda_sparsity = [0.003, 0.01]",
        "neighbours = [1, 5]",
        "folds = 3",
    ];
    // In the second the sites hold their duals, and the question is moved by their sum.
    for job in [demo_job(&keys, ""), plain_admm("")] {
        let run = deployment.submit(&job, &[]);
        let result = fetched(&deployment, &run);
        let status = result["status"].as_str().unwrap();
        let ended = ["converged", "round_limit"].contains(&status);
        assert!(ended, "{status}: {}", result["notes"]);
        let notes = result["notes"].to_string();
        assert!(!notes.contains("refused"), "{notes}");
        assert_eq!(result["evaluation"][0]["sites"], 4);
    }
    drop(agents);
}

#[test]
fn a_finished_run_is_worked_out_again_from_a_sites_own_copy_and_a_changed_copy_is_noticed() {
    let mut deployment = Deployment::start();
    let run = deployment.submit(&demo_job(&[], ""), &[]);
    let result = fetched(&deployment, &run);
    let heard = result["heard"].as_str().unwrap();
    assert_eq!(heard.len(), 64);
    let audit = |deployment: &Deployment, site: &str, run: &RunId| {
        let config = format!("{site}.toml");
        let arguments = ["journal", "verify", "--config", &config, run.as_str()];
        deployment.home.run(&site_agent(), &arguments)
    };
    let verify = |deployment: &Deployment, site: &str| audit(deployment, site, &run);
    // The same of sites that hear sums alone.
    let limited = "\n[aggregation]\nanswers_megabytes_max = 0\n";
    let of_totals = deployment.submit(&demo_job(&[], limited), &[]);
    let other = fetched(&deployment, &of_totals);
    assert_eq!(result["heard_as_totals"], 0);
    assert!(other["heard_as_totals"].as_u64().unwrap() > 5);
    let [whole, sums] = [&run, &of_totals].map(|run| metric(&deployment, run));
    assert!(whole == sums, "another metric where sums alone are heard");
    for site in ["north", "west"] {
        deployment.kill_agent(site);
        let said = audit(&deployment, site, &of_totals).must_succeed().stdout;
        assert!(said.contains("the sum alone was heard"), "{said}");
        assert!(said.contains(other["heard"].as_str().unwrap()), "{said}");
        let said = verify(&deployment, site).must_succeed().stdout;
        assert!(said.contains("each the one that follows"), "{said}");
        assert!(said.contains(heard), "{said}, wanted {heard}");
    }
    let path = deployment
        .home
        .join("sites/north/transcripts")
        .join(run.as_str());
    let copy = fs::read(&path).unwrap();
    // A word that a site said, somewhere in the middle.
    let mut changed = copy.clone();
    let middle = copy.len() / 2;
    changed[middle] ^= 1;
    fs::write(&path, &changed).unwrap();
    verify(&deployment, "north").must_fail(JOURNAL, &[run.as_str()]);
    // Without its end it is still a run, and another one than the coordinator's.
    fs::write(&path, &copy[..middle]).unwrap();
    verify(&deployment, "north").must_fail(JOURNAL, &["middle"]);
    let other = [
        "journal",
        "verify",
        "--config",
        "north.toml",
        "0123456789ab",
    ];
    deployment
        .home
        .run(&site_agent(), &other)
        .must_fail(USAGE, &["0123456789ab", "copy"]);
    // Who takes the copy away has not made the run one that never was.
    fs::remove_file(&path).unwrap();
    verify(&deployment, "north").must_fail(JOURNAL, &[run.as_str(), "copy"]);
}
