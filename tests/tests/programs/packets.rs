//! Promise: packets that are lost on the way change no bit of a run: TCP sends them again, and a line that lets nothing pass is
//! noticed at both of its ends and made anew.

use crate::hindered::{METRIC, SEED, metric, opened};
use crate::networks::NOTICED;
use kindred_tests::deployment::{Deployment, SITES, issue};
use kindred_tests::programs::ran;
use std::fs;
use std::process::Command;
use std::time::Instant;

/// Set where a test runs in a network of its own.
const APART: &str = "KINDRED_TEST_APART";
/// The same job once more.
const AGAIN: [&str; 4] = [SEED[0], SEED[1], "--token", "again"];
/// How root gets one, and how others do.
const WAYS: [&[&str]; 2] = [&["--net"], &["--net", "--map-root-user"]];
/// Agents dial this, and lose packets. The operator dials 127.0.0.1, and loses none.
const LOSSY: &str = "127.0.0.2";

/// Which packets are lost: a fifth of them, at random.
const FIFTH: &str = "numgen random mod 100 < 20";
const ALL: &str = "";

/// Rules by which such packets are lost, both those of agents and those to them.
fn rules(which: &str) -> String {
    let lose = format!("{which} counter drop");
    format!(
        "table ip kindred {{ chain arriving {{\ntype filter hook input priority 0\n\
         ip daddr {LOSSY} {lose}\nip saddr {LOSSY} {lose}\n}}\n}}"
    )
}

/// Loses such packets from now on.
fn lose(which: &str) {
    ran(Command::new("nft").arg(rules(which))).must_succeed();
}

/// Loses none any more; gives how many of agents and to agents were lost.
fn lose_none() -> Vec<u64> {
    let table = ["table", "ip", "kindred"];
    let listed = ran(Command::new("nft").arg("list").args(table)).must_succeed();
    ran(Command::new("nft").arg("delete").args(table)).must_succeed();
    let counts = listed.stdout.split("counter packets ").skip(1);
    let counts = counts.map(|rest| rest.split(' ').next().unwrap().parse().unwrap());
    counts.collect()
}

/// A command in a network of its own, which also finds what Debian keeps from users.
fn unshare(way: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(way).env("PATH", path + ":/usr/sbin:/sbin");
    command
}

/// How one gets a network of its own that loses packets; says why where one may not.
fn way() -> Option<&'static [&'static str]> {
    let tried = "ip link set lo up && exec nft \"$0\"";
    let mut said = String::new();
    for way in WAYS {
        match unshare(way)
            .args(["sh", "-c", tried, &rules(FIFTH)])
            .output()
        {
            Ok(output) if output.status.success() => return Some(way),
            Ok(output) => said = String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => said = error.to_string(),
        }
    }
    println!("skipped: no network that loses packets: {said}");
    println!("Debian's packages are iproute2 and nftables");
    None
}

/// Has a test fulfil its promise in a process that has a network of its own. The system removes that with the process.
fn apart(test: &str, promise: fn()) {
    if std::env::var_os(APART).is_some() {
        ran(Command::new("ip").args(["link", "set", "lo", "up"])).must_succeed();
        return promise();
    }
    let Some(way) = way() else {
        return;
    };
    let mut command = unshare(way);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    let done = ran(command.env(APART, "yes"));
    println!("{}{}", done.stdout, done.stderr);
    assert_eq!(done.code, Some(0), "{test}");
    assert!(done.stdout.contains("1 passed"), "found no test {test}");
}

/// Four hospitals of an open study that reach their coordinator where packets can be lost.
fn far_away() -> Deployment {
    let mut deployment = Deployment::prepare();
    let hosts = format!("127.0.0.1,{LOSSY}");
    let far = ["issue", "--coordinator", "far", "--hosts", &hosts];
    issue(&deployment.home, &far);
    let change = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(deployment.home.join(file)).unwrap();
        assert!(text.contains(from), "{text}");
        deployment.home.write(file, &text.replace(from, to));
    };
    change("coordinator.toml", "coordinator-centre", "coordinator-far");
    change("coordinator.toml", "127.0.0.1:", "0.0.0.0:");
    for site in SITES {
        change(&format!("{site}.toml"), "127.0.0.1:", &format!("{LOSSY}:"));
    }
    deployment.start_coordinator();
    SITES.iter().for_each(|site| deployment.start_agent(site));
    opened(deployment)
}

#[test]
fn a_run_that_loses_a_fifth_of_its_packets_each_way_ends_with_the_same_bits() {
    apart(
        "packets::a_run_that_loses_a_fifth_of_its_packets_each_way_ends_with_the_same_bits",
        || {
            let deployment = far_away();
            let job = METRIC.replace("= 300", "= 30");
            let wanted = metric(&deployment, &deployment.submit(&job, &SEED));
            let began = Instant::now();
            lose(FIFTH);
            let run = deployment.submit(&job, &AGAIN);
            assert!(metric(&deployment, &run) == wanted, "other bits");
            let (lost, seconds) = (lose_none(), began.elapsed().as_secs_f64());
            println!("{seconds:.1} s; packets of agents and to agents lost: {lost:?}");
            assert!(lost.len() == 2 && lost.iter().all(|count| *count > 20));
        },
    );
}

#[test]
fn a_line_on_which_all_packets_are_lost_for_a_while_is_noticed_and_made_anew() {
    apart(
        "packets::a_line_on_which_all_packets_are_lost_for_a_while_is_noticed_and_made_anew",
        || {
            let mut deployment = far_away();
            let wanted = metric(&deployment, &deployment.submit(METRIC, &SEED));
            let run = deployment.submit(METRIC, &AGAIN);
            let mut watch = deployment.watch(&run);
            watch.until_round(3);
            lose(ALL);
            let silent = Instant::now();
            let stands = watch.within(NOTICED, "the silence is noticed", |run| {
                run.sites_connected == 0 && run.ending.is_none()
            });
            for site in SITES {
                deployment.agent(site).wait_for("lost the coordinator");
            }
            println!("noticed after {:.1} s", silent.elapsed().as_secs_f64());
            let lost = lose_none();
            assert!(lost.len() == 2 && lost.iter().all(|count| *count > 0));
            watch.until("the sites to be back", |run| {
                run.sites_connected == 4 && run.course.round > stands.course.round
            });
            assert!(metric(&deployment, &run) == wanted, "other bits");
        },
    );
}
