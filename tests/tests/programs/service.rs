//! Promise: a supervisor runs both programs. They say when they are ready, obey its signals, end without false warnings, show a port how
//! they do, write logs for machines, and take new policies and certificates without a restart.

use crate::studies::{HEAD, PATIENTS};
use kindred_tests::deployment::{Deployment, SITES, free_port, issue};
use kindred_tests::programs::{Home, PATIENCE, Ran, Signal, coordinator, site_agent, until};
use kindred_tests::visitor::Browser;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;

/// What a status port answers.
pub(super) fn asked(port: u16, path: &str) -> String {
    let mut stream = until("the status port", PATIENCE, || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
    });
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn until_shown(port: u16, wanted: &str) {
    until(wanted, PATIENCE, || {
        asked(port, "/metrics").contains(wanted).then_some(())
    });
}

/// Puts a text in front of what a configuration has.
fn begin_with(home: &Home, file: &str, text: &str) {
    let known = fs::read_to_string(home.join(file)).unwrap();
    home.write(file, &format!("{text}\n{known}"));
}

fn end_with(home: &Home, file: &str, text: &str) {
    let known = fs::read_to_string(home.join(file)).unwrap();
    home.write(file, &format!("{known}\n{text}\n"));
}

#[test]
fn status_ports_count_and_a_stop_is_no_loss_of_sites() {
    let mut deployment = Deployment::prepare();
    let ports = [free_port(), free_port()];
    for (file, port) in ["coordinator.toml", "north.toml"].into_iter().zip(ports) {
        let status = format!("[status]\nlisten = \"127.0.0.1:{port}\"");
        end_with(&deployment.home, file, &status);
    }
    deployment.start_agent("north");
    let hindered = until("an agent without a coordinator", PATIENCE, || {
        let answer = asked(ports[1], "/health");
        answer.contains("503").then_some(answer)
    });
    assert!(hindered.contains("KDR-"), "{hindered}");
    deployment.kill_agent("north");
    deployment.start_coordinator();
    for site in SITES {
        deployment.start_agent(site);
    }
    for site in SITES {
        until_shown(
            ports[0],
            &format!("kindred_site_connected{{site=\"{site}\"}} 1"),
        );
    }
    until_shown(ports[1], "kindred_connected 1");
    assert!(asked(ports[1], "/health").contains("200 OK"));
    let text = format!("{HEAD}{PATIENTS}");
    deployment.open_study("demo", &text);
    until_shown(ports[0], "kindred_runs_ended_total{status=\"completed\"} 1");
    until_shown(ports[0], "kindred_runs_unfinished 0");
    let counted = asked(ports[1], "/metrics");
    assert!(!counted.contains("kindred_answers_total 0"), "{counted}");
    assert!(
        counted.contains("kindred_certificate_ends_seconds "),
        "{counted}"
    );

    deployment.kill_agent("west");
    until_shown(ports[0], "kindred_site_connected{site=\"west\"} 0");
    let before = deployment.coordinator_log().len();
    deployment.coordinator().signal(Signal::Terminate);
    assert_eq!(deployment.coordinator().wait(), Some(0));
    let log = deployment.coordinator_log();
    let last = &log[before..];
    assert!(last.contains("stopping, as asked"), "{last}");
    assert!(!last.contains("WARN") && !last.contains("ERROR"), "{last}");
    let agent = deployment.agent("north");
    agent.signal(Signal::Terminate);
    assert_eq!(agent.wait(), Some(0));
    assert!(agent.log().contains("stopping, as asked"));
}

#[test]
fn a_hangup_has_policy_and_certificates_read_again_in_the_middle_of_a_run() {
    let mut deployment = crate::hindered::open();
    let (wanted, run) = crate::hindered::in_rounds(&deployment);
    // Methods that are opened or closed concern the next study; the run goes on.
    let file = "north.toml";
    let known = fs::read_to_string(deployment.home.join(file)).unwrap();
    let narrower = known.replace(", \"compare\"", "");
    assert_ne!(known, narrower);
    deployment.home.write(file, &narrower);
    deployment.agent("north").signal(Signal::Hangup);
    deployment
        .agent("north")
        .wait_for("read policy, configuration and certificates again");
    assert!(
        crate::hindered::metric(&deployment, &run) == wanted,
        "other bits"
    );

    deployment
        .home
        .write(file, &known.replace("operators", "operaters"));
    deployment.agent("north").signal(Signal::Hangup);
    deployment
        .agent("north")
        .wait_for("did you mean \"operators\"");
    assert!(deployment.agent("north").ended().is_none());
    deployment.home.write(file, &known);

    // A renewed certificate of the coordinator is taken from its place, without a signal.
    let place = deployment.home.join("certificates/coordinator-centre");
    let old = fs::read(place.join("certificate.pem")).unwrap();
    fs::rename(&place, deployment.home.join("certificates/old")).unwrap();
    let renewed = ["issue", "--coordinator", "centre", "--hosts", "127.0.0.1"];
    issue(&deployment.home, &renewed);
    assert_ne!(old, fs::read(place.join("certificate.pem")).unwrap());
    deployment
        .coordinator()
        .wait_for("read the certificates and the list of revoked ones again");
    let coordinator = deployment.coordinator();
    coordinator.signal(Signal::Hangup);
    coordinator.wait_for("are read again when they change");
    begin_with(&deployment.home, "coordinator.toml", "unknown = 1");
    let coordinator = deployment.coordinator();
    coordinator.signal(Signal::Hangup);
    coordinator.wait_for("the configuration cannot be used any more");
    assert!(coordinator.ended().is_none());
}

#[test]
fn systemd_hears_of_both_programs_and_machines_read_their_logs() {
    let deployment = Deployment::prepare();
    let home = &deployment.home;
    for (program, file) in [
        (coordinator(), "coordinator.toml"),
        (site_agent(), "north.toml"),
    ] {
        let socket = UnixDatagram::bind(home.join(&format!("{file}.socket"))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let heard = || {
            let mut state = [0; 256];
            let length = socket.recv(&mut state).expect("systemd hears something");
            String::from_utf8_lossy(&state[..length]).into_owned()
        };
        let log = home.join(&format!("{file}.log"));
        let mut child = home
            .command(&program)
            .args(["serve", "--log-format", "json", "--config", file])
            .env("NOTIFY_SOCKET", home.join(&format!("{file}.socket")))
            .env("WATCHDOG_USEC", "200000")
            .stderr(Stdio::from(fs::File::create(&log).unwrap()))
            .spawn()
            .unwrap();
        let all = |wanted: &[&str]| {
            let mut left: Vec<&str> = wanted.to_vec();
            while !left.is_empty() {
                let state = heard();
                left.retain(|wanted| !state.contains(wanted));
            }
        };
        all(&["READY=1", "WATCHDOG=1"]);
        let kill = |signal: &str| {
            let command = format!("kill -{signal} {}", child.id());
            let status = std::process::Command::new("sh")
                .args(["-c", &command])
                .status();
            assert!(status.unwrap().success());
        };
        kill("HUP");
        all(&["RELOADING=1"]);
        all(&["READY=1"]);
        kill("TERM");
        all(&["STOPPING=1"]);
        assert!(child.wait().unwrap().success());
        let lines = fs::read_to_string(&log).unwrap();
        assert!(lines.lines().count() > 1, "{lines}");
        for line in lines.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect(line);
            for key in ["timestamp", "level", "message", "target"] {
                assert!(line.get(key).is_some(), "{line}");
            }
        }
    }
}

#[test]
fn a_kept_federation_goes_on_after_its_simulation_until_it_is_ended() {
    let home = Home::new();
    let program = coordinator();
    // The folder that it all lies in may be one of everybody's, as /tmp is.
    let open = Permissions::from_mode(0o755);
    fs::set_permissions(home.join("."), open.clone()).unwrap();
    let kept = home
        .run(&program, &["simulate", "--keep", "--out", "out"])
        .must_succeed();
    let after = fs::metadata(home.join(".")).unwrap().permissions();
    assert_eq!(after.mode() & 0o777, open.mode());
    let folder = home.join("out-federation");
    let said = kept.stdout.lines();
    let said = said.filter_map(|line| line.strip_prefix("  "));
    let (pages, commands): (Vec<_>, Vec<_>) = said.partition(|line| line.starts_with("http:"));
    assert_eq!((pages.len(), commands.len()), (2, 5), "{}", kept.stdout);
    let commands = commands.into_iter().map(|line| line.split(' '));
    let commands: Vec<Vec<&str>> = commands.map(Iterator::collect).collect();
    // A browser is let in by the operator's pages and by the site's, and sees the run.
    for pages in pages {
        let port = pages.split(['/', ':']).nth(4).unwrap().parse().unwrap();
        let mut browser = Browser::outside(port, pages);
        browser.enter();
        browser.get("/").must(200, &[commands[2][2]]);
    }
    // An impatient second try leaves the first one alone.
    let again = ["simulate", "--keep", "--out", "out", "--force"];
    home.run(&program, &again)
        .must_fail(2, &["a federation is kept there"]);
    // All is well at north; at south somebody has touched the journal.
    let looked = |site: &str| {
        let config = folder.join("sites").join(site).join("site.toml");
        let arguments = ["doctor", "--config", config.to_str().unwrap()];
        home.run(&site_agent(), &arguments)
    };
    let well = looked("north").must_succeed().stdout;
    for wanted in ["entries, all as they were written", "study demo", "99 runs"] {
        assert!(well.contains(wanted), "{well}");
    }
    let journal = folder.join("sites/south/journal.jsonl");
    let known = fs::read_to_string(&journal).unwrap();
    let touched = known.replacen("\"number\":2,", "\"number\":3,", 1);
    assert_ne!(known, touched);
    fs::write(&journal, touched).unwrap();
    let touched = looked("south").must_fail(1, &[]).stdout;
    assert!(touched.contains("PROBLEM  journal"), "{touched}");
    // Every command that was printed does what it says, the last one ends all.
    let said: Vec<String> = commands
        .iter()
        .map(|words| {
            let program = match words[0] {
                "kindred-coordinator" => coordinator(),
                _ => site_agent(),
            };
            home.run(&program, &words[1..]).must_succeed().stdout
        })
        .collect();
    for (said, wanted) in said.iter().zip([
        "converged",
        "metrics_for_groups",
        "north-",
        "Cluster 1",
        "is gone",
    ]) {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!folder.exists());
    assert_eq!(home.processes(), Vec::<String>::new());
    home.run(&program, &["simulate", "--stop", "--out", "out"])
        .must_fail(2, &["found no federation"]);
}

/// What `doctor` says of a configuration.
fn doctor(deployment: &Deployment, program: &Path, file: &str) -> Ran {
    let arguments = ["doctor", "--config", file];
    deployment.home.run(program, &arguments)
}

#[test]
fn doctor_names_what_must_be_mended_and_disturbs_nobody() {
    let mut deployment = Deployment::prepare();
    let (site, centre) = (site_agent(), coordinator());
    let status = doctor(&deployment, &centre, "coordinator.toml").must_succeed();
    assert!(status.stdout.contains("is free"), "{}", status.stdout);
    let unreachable = doctor(&deployment, &site, "north.toml").must_fail(1, &[]);
    assert!(unreachable.stdout.contains("PROBLEM  coordinator"));
    assert!(unreachable.stdout.contains("KDR-UNREACHABLE"));

    deployment.start_coordinator();
    deployment.start_agent("north");
    deployment.agent("north").wait_for("joined the coordinator");
    let well = doctor(&deployment, &site, "north.toml").must_succeed();
    for wanted in [
        "accepts the certificate",
        "the coordinator's",
        "MB free at",
        "can be written",
        "0 to mend",
    ] {
        assert!(well.stdout.contains(wanted), "{}", well.stdout);
    }
    let well = doctor(&deployment, &centre, "coordinator.toml").must_succeed();
    for wanted in ["where a coordinator runs", "is listened on"] {
        assert!(well.stdout.contains(wanted), "{}", well.stdout);
    }
    // The agent that runs has kept its stream.
    assert_eq!(
        deployment
            .coordinator_log()
            .matches("a site joined")
            .count(),
        1
    );

    // A study that is proposed names a column that this hospital has not.
    let text = format!("{HEAD}{PATIENTS}").replace("name = \"first_3\"", "name = \"blood\"");
    crate::studies::draft(&deployment, &text, "other.study.toml").must_succeed();
    crate::studies::study(&deployment, &["propose", "other.study.toml"]).must_succeed();
    until("the proposal", PATIENCE, || {
        let checked = doctor(&deployment, &site, "north.toml");
        let found = checked.stdout.contains("PROBLEM  data for demo");
        found.then(|| assert!(checked.stdout.contains("blood"), "{}", checked.stdout))
    });

    // Another site's certificate, and a file with a misspelt key.
    let known = fs::read_to_string(deployment.home.join("north.toml")).unwrap();
    let other = known.replace("site-north", "site-south");
    deployment.home.write("other.toml", &other);
    let other = doctor(&deployment, &site, "other.toml").must_fail(1, &[]);
    assert!(
        other.stdout.contains("PROBLEM  certificate"),
        "{}",
        other.stdout
    );
    let misspelt = known.replace("operators", "operaters");
    deployment.home.write("misspelt.toml", &misspelt);
    let arguments = ["doctor", "--json", "--config", "misspelt.toml"];
    let json = deployment.home.run(&site, &arguments).must_fail(1, &[]);
    let found: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(found["checks"][0]["status"], "problem");
    assert!(
        found["checks"][0]["found"]
            .as_str()
            .unwrap()
            .contains("operaters")
    );
}

#[test]
fn a_renewed_certificate_keeps_its_holder_in_open_studies_and_a_new_one_does_not() {
    let mut deployment = crate::hindered::open();
    let certificates = deployment.home.join("certificates");
    let read = |party: &str| fs::read(certificates.join(party).join("certificate.pem")).unwrap();
    let fingerprint = |deployment: &Deployment, party: &str| {
        wire::fingerprint(&deployment.credentials(party)).unwrap()
    };
    for (flag, name) in [
        ("--operator", "researcher"),
        ("--site", "north"),
        ("--coordinator", "centre"),
    ] {
        let party = format!("{}-{name}", &flag[2..]);
        let (before, known) = (read(&party), fingerprint(&deployment, &party));
        issue(&deployment.home, &["renew", flag, name, "--days", "20"]);
        assert_ne!(before, read(&party));
        assert_eq!(known, fingerprint(&deployment, &party));
    }
    let list = ["certificates", "list", "--folder", "certificates"];
    let listed = deployment.home.run(&coordinator(), &list).must_succeed();
    let line = |party: &str| {
        let mut lines = listed.stdout.lines();
        lines
            .find(|line| line.starts_with(party))
            .unwrap()
            .to_owned()
    };
    for party in ["operator-researcher", "site-north", "coordinator-centre"] {
        assert!(line(party).ends_with("19  ends soon"), "{}", listed.stdout);
    }
    assert!(
        line("site-south").ends_with("364  valid"),
        "{}",
        listed.stdout
    );
    deployment.agent("north").signal(Signal::Hangup);
    deployment
        .agent("north")
        .wait_for("read policy, configuration");
    let (_, run) = crate::hindered::in_rounds(&deployment);
    deployment.job(&["cancel", run.as_str()]).must_succeed();

    // Whoever has lost the key is somebody else to the study.
    let revoke = ["revoke", "--operator", "researcher"];
    issue(&deployment.home, &revoke);
    issue(&deployment.home, &["issue", "--operator", "researcher"]);
    let list = ["certificates", "list", "--json", "--folder", "certificates"];
    let listed = deployment.home.run(&coordinator(), &list).must_succeed();
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let of = |party: &str| -> Vec<&str> {
        let all = listed.as_array().unwrap().iter();
        let found = all.filter(|one| one["party"] == party);
        found.map(|one| one["status"].as_str().unwrap()).collect()
    };
    assert_eq!(of("operator-researcher"), ["revoked", "valid"]);
    assert_eq!(of("site-south"), ["valid"]);
    let refused = deployment.job(&["submit", "job.toml", "--token", "third"]);
    refused.must_fail(2, &["by another certificate"]);
}
