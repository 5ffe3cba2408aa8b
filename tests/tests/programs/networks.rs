//! Promise: lines that are cut, fall silent or are slow, a coordinator that has moved, and a proxy on the way change no bit of a run.

use crate::hindered::{in_rounds, metric, opened};
use kindred_tests::deployment::{Deployment, SITES, free_port};
use kindred_tests::exit::CONNECTION;
use kindred_tests::programs::{PATIENCE, until};
use kindred_tests::relay::Relay;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A line that is silent is noticed by then.
pub(crate) const NOTICED: Duration = Duration::from_secs(12);

/// Four hospitals of an open study, whose lines and the operator's go through a relay.
fn behind_a_relay() -> (Deployment, Relay) {
    let mut deployment = Deployment::alone();
    let port = deployment.port();
    let relay = Relay::to(free_port(), &[port]);
    for party in SITES.into_iter().chain(["operator"]) {
        let file = format!("{party}.toml");
        let text = fs::read_to_string(deployment.home.join(&file)).unwrap();
        let (direct, around) = (format!(":{port}\""), format!(":{}\"", relay.port));
        assert!(text.contains(&direct), "{text}");
        deployment
            .home
            .write(&file, &text.replace(&direct, &around));
    }
    SITES.iter().for_each(|site| deployment.start_agent(site));
    (opened(deployment), relay)
}

#[test]
fn lines_that_are_cut_fall_silent_or_are_slow_change_no_bit_of_a_run() {
    let (deployment, relay) = behind_a_relay();
    let (wanted, run) = in_rounds(&deployment);
    let mut watch = deployment.watch(&run);
    relay.cut();
    watch.until("the sites to be back", |run| {
        run.sites_connected == 4 && run.course.round > 20
    });
    let silent = Instant::now();
    relay.be_silent(true);
    watch.within(NOTICED, "the silence is noticed", |run| {
        run.sites_connected == 0
    });
    println!("noticed after {:.1} s", silent.elapsed().as_secs_f64());
    relay.be_silent(false);
    relay.delay(15);
    let slow = watch.until("the sites to be back", |run| run.sites_connected == 4);
    watch.until_round(slow.course.round + 3);
    relay.delay(0);
    assert!(metric(&deployment, &run) == wanted, "other bits");
}

#[test]
fn a_coordinator_that_has_moved_is_found_again_behind_the_same_name() {
    let (mut deployment, relay) = behind_a_relay();
    let (wanted, run) = in_rounds(&deployment);
    deployment.kill_coordinator();
    let (before, now) = (deployment.port(), free_port());
    let text = fs::read_to_string(deployment.home.join("coordinator.toml")).unwrap();
    let moved = text.replace(&format!(":{before}\""), &format!(":{now}\""));
    assert_ne!(moved, text);
    deployment.home.write("coordinator.toml", &moved);
    fs::rename(
        deployment.home.join("coordinator"),
        deployment.home.join("moved"),
    )
    .unwrap();
    let moved = moved.replace("folder = \"coordinator\"", "folder = \"moved\"");
    deployment.home.write("coordinator.toml", &moved);
    deployment.start_coordinator();
    relay.turn_to(&[now]);
    assert!(metric(&deployment, &run) == wanted, "other bits");
}

#[test]
fn a_hospital_and_an_operator_reach_their_coordinator_through_tinyproxy() {
    let is_there = Command::new("tinyproxy")
        .arg("-v")
        .stdout(Stdio::null())
        .status();
    if is_there.is_err() {
        println!("skipped: found no tinyproxy; Debian's package is tinyproxy");
        return;
    }
    let mut deployment = Deployment::alone();
    let (port, log) = (free_port(), deployment.home.join("tinyproxy.log"));
    let log = log.display();
    let settings = format!(
        "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nLogFile \"{log}\"\nLogLevel Connect\nTimeout 600\n"
    );
    deployment.home.write("tinyproxy.conf", &settings);
    let mut proxy = Command::new("tinyproxy")
        .args(["-d", "-c"])
        .arg(deployment.home.join("tinyproxy.conf"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("tinyproxy to listen", PATIENCE, || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
    });
    let text = fs::read_to_string(deployment.home.join("north.toml")).unwrap();
    let around = format!("[proxy]\naddress = \"127.0.0.1:{port}\"\n\n[source]");
    deployment
        .home
        .write("north.toml", &text.replace("[source]", &around));
    SITES.iter().for_each(|site| deployment.start_agent(site));
    let deployment = opened(deployment);
    let (wanted, run) = in_rounds(&deployment);
    assert!(metric(&deployment, &run) == wanted, "other bits");
    let said = fs::read_to_string(deployment.home.join("tinyproxy.log")).unwrap();
    let wanted = format!("CONNECT 127.0.0.1:{}", deployment.port());
    assert!(said.contains(&wanted), "{said}");
    // An operator goes the same way, and has no other.
    let calls = |said: &str| said.matches(&wanted).count();
    let text = fs::read_to_string(deployment.home.join("operator.toml")).unwrap();
    let around = format!("{text}\n[proxy]\naddress = \"127.0.0.1:{port}\"\n");
    deployment.home.write("operator.toml", &around);
    deployment.job(&["list"]).must_succeed();
    let after = fs::read_to_string(deployment.home.join("tinyproxy.log")).unwrap();
    assert_eq!(calls(&after), calls(&said) + 1, "{after}");
    let nobody = around.replace(&port.to_string(), &free_port().to_string());
    deployment.home.write("operator.toml", &nobody);
    deployment.job(&["list"]).must_fail(CONNECTION, &["proxy"]);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}
