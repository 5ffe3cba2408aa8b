//! Promise: a hospital approves the text that its people have read, whatever a coordinator that lies sends meanwhile.

use super::studies::{HEAD, PATIENTS, at_site, draft, study};
use kindred_tests::deployment::Deployment;
use kindred_tests::exit::USAGE;
use kindred_tests::programs::{PATIENCE, until};
use site_agent::config::SiteConfig;
use site_agent::studies::proposed;
use std::fs;

#[test]
fn a_text_that_was_replaced_after_its_review_is_not_approved() {
    let deployment = Deployment::start();
    draft(&deployment, &format!("{HEAD}{PATIENTS}"), "demo.study.toml").must_succeed();
    study(&deployment, &["propose", "demo.study.toml"]).must_succeed();
    until("the proposal at the site", PATIENCE, || {
        let listed = at_site(&deployment, "north", &["list"]).must_succeed();
        listed
            .stdout
            .contains("demo  waits for approval")
            .then_some(())
    });
    at_site(&deployment, "north", &["review", "demo"]).must_succeed();
    let config = SiteConfig::open(&deployment.home.join("north.toml")).unwrap();
    let honest = fs::read_to_string(deployment.home.join("demo.study.toml")).unwrap();
    let worse = honest.replace("runs = 10", "runs = 12");
    assert_ne!(worse, honest);
    proposed::keep(&config, &worse).unwrap();
    at_site(&deployment, "north", &["approve", "demo"])
        .must_fail(USAGE, &["has changed since `study review` showed it"]);
    let listed = at_site(&deployment, "north", &["list"]).must_succeed();
    assert!(
        listed.stdout.contains("demo  waits for approval"),
        "{}",
        listed.stdout
    );
    // Whoever reads it as it is now may approve it, and a file is what it is.
    at_site(&deployment, "north", &["review", "demo"]).must_succeed();
    proposed::keep(&config, &honest).unwrap();
    at_site(&deployment, "north", &["approve", "demo.study.toml"]).must_succeed();
}
