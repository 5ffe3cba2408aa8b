//! Promise: a hospital and an operator get certificates by a word, and no key leaves the machine on which it was made.

use kindred_tests::deployment::{WAITS, free_port, issue, tls_of};
use kindred_tests::programs::{Home, PATIENCE, Process, Signal, coordinator, site_agent, until};
use std::fs;

/// An authority and a coordinator that signs, which runs.
fn open() -> (Home, Process) {
    let home = Home::with_patients("north=60");
    issue(&home, &["init"]);
    let hosts = ["issue", "--coordinator", "centre", "--hosts", "127.0.0.1"];
    issue(&home, &hosts);
    let (port, signing) = (free_port(), free_port());
    let tls = tls_of("coordinator-centre");
    let config = format!(
        "listen = \"127.0.0.1:{port}\"\nfolder = \"coordinator\"\n\n{tls}\
         revoked = \"certificates/authority/revoked.pem\"\n\n\
         [enrolment]\nlisten = \"127.0.0.1:{signing}\"\nauthority = \"certificates\"\ndays = 20\n"
    );
    home.write("coordinator.toml", &config);
    let arguments = ["serve", "--config", "coordinator.toml"];
    let mut running = home.start("coordinator", &coordinator(), &arguments);
    running.wait_for(WAITS);
    (home, running)
}

/// The token of a party.
fn invite(home: &Home, party: [&str; 2]) -> String {
    let arguments = [
        &["certificates", "invite", "--config", "coordinator.toml"],
        &party[..],
    ];
    let ran = home.run(&coordinator(), &arguments.concat()).must_succeed();
    assert!(ran.stderr.contains("once, until"), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

#[test]
fn a_hospital_and_an_operator_enrol_by_a_word_work_and_renew() {
    let (home, mut running) = open();
    let north = invite(&home, ["--site", "north"]);
    let lab = invite(&home, ["--operator", "lab"]);

    let enrol = ["enrol", &north, "--out", "north"];
    let ran = home.run(&site_agent(), &enrol).must_succeed();
    assert!(ran.stdout.contains("site.toml"), "{}", ran.stdout);
    assert!(ran.stderr.contains("fingerprint sha256:"), "{}", ran.stderr);
    assert!(!home.join("certificates/site-north/key.pem").exists());
    let enrol = ["enrol", &lab, "--out", "lab"];
    home.run(&coordinator(), &enrol).must_succeed();
    assert!(!home.join("certificates/operator-lab/key.pem").exists());

    // Both configurations fit: the operator is heard, and the agent is let in.
    let list = ["job", "list", "--config", "lab/operator.toml"];
    home.run(&coordinator(), &list).must_succeed();
    let known = fs::read_to_string(home.join("north/site.toml")).unwrap();
    let named = known.replace("patients.csv", "../data/north.csv");
    home.write("north/site.toml", &named);
    let doctor = ["doctor", "--config", "north/site.toml"];
    let ran = home.run(&site_agent(), &doctor);
    assert!(
        ran.stdout.contains("accepts the certificate"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("ends in 19 days"), "{}", ran.stdout);

    // Renewed for the same key; studies know a holder by it.
    for (program, config, file) in [
        (site_agent(), "north/site.toml", "north/certificate.pem"),
        (coordinator(), "lab/operator.toml", "lab/certificate.pem"),
    ] {
        let path = home.join(file);
        let before = (
            fs::read(&path).unwrap(),
            wire::fingerprint_of(&path).unwrap(),
        );
        home.run(&program, &["renew", "--config", config])
            .must_succeed();
        assert_ne!(before.0, fs::read(&path).unwrap());
        assert_eq!(before.1, wire::fingerprint_of(&path).unwrap());
    }

    // A word that was used, one that nobody gave, and one of another role.
    let again = ["enrol", &north, "--out", "thief"];
    home.run(&site_agent(), &again)
        .must_fail(5, &["KDR-ENROLMENT", "used already"]);
    let (known, _) = north.rsplit_once('/').unwrap();
    let guessed = format!("{known}/{}", "0".repeat(32));
    let guess = ["enrol", &guessed, "--out", "thief"];
    home.run(&site_agent(), &guess)
        .must_fail(5, &["KDR-ENROLMENT", "has not given"]);
    let wrong = ["enrol", &lab, "--out", "thief"];
    home.run(&site_agent(), &wrong)
        .must_fail(2, &["operator/lab", "wanted one for a site"]);
    let torn = ["enrol", &north[..40], "--out", "thief"];
    home.run(&site_agent(), &torn)
        .must_fail(2, &["the whole word"]);
    let taken = [
        "certificates",
        "invite",
        "--config",
        "coordinator.toml",
        "--site",
        "north",
    ];
    home.run(&coordinator(), &taken)
        .must_fail(2, &["never written over"]);

    // Revoked by the authority: neither a job nor a renewal is heard.
    issue(&home, &["revoke", "--operator", "lab"]);
    until("the operator to be refused", PATIENCE, || {
        let ran = home.run(
            &coordinator(),
            &["job", "list", "--config", "lab/operator.toml"],
        );
        ran.stderr.contains("KDR-REVOKED").then_some(())
    });
    let renew = ["renew", "--config", "lab/operator.toml"];
    home.run(&coordinator(), &renew)
        .must_fail(5, &["KDR-REVOKED"]);
    let secret = north.rsplit('/').next().unwrap();
    let log = running.log();
    assert!(
        log.contains("signed a certificate") && !log.contains(secret),
        "{log}"
    );
    running.signal(Signal::Terminate);
    assert_eq!(running.wait(), Some(0));
}

#[test]
fn certificates_are_signed_for_a_short_while_by_a_command_of_its_own() {
    let (home, running) = open();
    running.kill();
    let token = invite(&home, ["--site", "north"]);
    let serve = ["certificates", "serve", "--config", "coordinator.toml"];
    let mut signing = home.start("signing", &coordinator(), &serve);
    signing.wait_for("certificates are signed");
    let enrol = ["enrol", &token, "--out", "north"];
    home.run(&site_agent(), &enrol).must_succeed();
    signing.signal(Signal::Terminate);
    assert_eq!(signing.wait(), Some(0));
    let enrol = ["enrol", &token, "--out", "other"];
    home.run(&site_agent(), &enrol)
        .must_fail(5, &["KDR-UNREACHABLE"]);
    let config = fs::read_to_string(home.join("coordinator.toml")).unwrap();
    let (without, _) = config.split_once("[enrolment]").unwrap();
    home.write("coordinator.toml", without);
    home.run(&coordinator(), &serve)
        .must_fail(2, &["found no [enrolment]"]);
    let invite = [
        "certificates",
        "invite",
        "--config",
        "coordinator.toml",
        "--site",
        "south",
    ];
    home.run(&coordinator(), &invite)
        .must_fail(2, &["found no [enrolment]"]);
}
