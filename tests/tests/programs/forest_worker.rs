//! Promise: a site's trees are its own. A site with another key draws other bags, so that the coordinator, which knows the run's
//! seed, cannot tell who was in which. No error that it states is of trees that have seen the outcome.

use kindred_tests::deployment::{certify, site_config};
use kindred_tests::federation::{self, NOW, converse};
use kindred_tests::programs::Home;
use kindred_tests::samples::demo_of_forests;
use kindred_tests::studies::Opened;
use protocol::assessment::Assessment;
use protocol::message::Answer;
use protocol::message::forest::{self, Trees};
use protocol::name::SiteName;
use site_agent::books::ledger::KEY_NAME;
use std::collections::BTreeMap;

const SITES: [&str; 3] = ["north", "south", "east"];

/// The trees of each site, in the order of the job; `key` is that of every site.
fn grown(home: &Home, key: &str) -> BTreeMap<SiteName, Trees> {
    let demo = demo_of_forests(10_000);
    let middle = &demo[demo.find("[outcome]").unwrap()..];
    let job = format!(
        "name = \"trees\"\nmethod = \"forest\"\nsites = {SITES:?}\n{middle}[forest]\n\
         trees = 21\nscope = \"federated\"\n"
    );
    let mut workers = BTreeMap::new();
    for site in SITES {
        let folder = format!("{key}/{site}");
        let config = site_config(site, 1, &format!("site-{site}"));
        let config = config.replace(&format!("sites/{site}"), &folder);
        home.write(&format!("{folder}/{KEY_NAME}"), &key.repeat(32));
        let worker = federation::worker(&config, home, NOW);
        workers.insert(SiteName::new(site).unwrap(), worker);
    }
    let study = Opened::of(&job, home, &mut workers);
    let mut trees = BTreeMap::new();
    converse(&study, study.job(&job), &mut workers, |exchange| {
        if let Answer::Forest(forest::Answer::Grown(own)) = exchange.answer {
            trees.insert(exchange.site.clone(), own.clone());
        }
    });
    trees
}

#[test]
fn a_site_with_the_same_key_grows_the_same_trees_and_one_with_another_key_others() {
    let home = Home::with_patients("north=150,south=150,east=150");
    certify(&home);
    let trees = grown(&home, "k");
    assert_eq!(trees.len(), 3);
    assert!(trees.values().all(|own| own.trees.len() == 7));
    std::fs::remove_dir_all(home.join("k")).unwrap();
    assert!(grown(&home, "k") == trees, "other trees after a restart");
    let others = grown(&home, "l");
    for (site, own) in &trees {
        assert!(others[site] != *own, "{site}: another key, the same bags");
    }
}

/// Patients whose outcome is the toss of a coin, and what a forest of their own makes of it.
fn tossed(job_of_forest: &str) -> Assessment {
    let home = Home::new();
    let mut table = "patient,outcome,a,b,c\n".to_owned();
    // A linear congruence of full period, whose upper bits are tossed.
    let mut state = 1_u64;
    let mut toss = |sides: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % sides
    };
    for patient in 0..200 {
        let row = [toss(2), toss(1_000), toss(1_000), toss(1_000)].map(|value| value.to_string());
        table += &format!("{patient},{}\n", row.join(","));
    }
    home.write("data/tossed.csv", &table);
    let features = ["a", "b", "c"].map(|name| {
        format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\nrange = [0, 1000]\n")
    });
    let job = format!(
        "name = \"coin\"\nmethod = \"forest\"\nsites = [\"north\"]\n[outcome]\ncolumn = \"outcome\"\nkind = \"binary\"\n\
         positive = [\"1\"]\n{}[forest]\ntrees = 100\nimportance = false\n{job_of_forest}\n",
        features.join("")
    );
    let folder = home.join("own");
    let alone = federation::alone(&job, &home.join("data/tossed.csv"), &folder);
    alone.result.pooled.assessment.expect("an assessment")
}

#[test]
fn neighbours_by_whatever_proximity_state_no_error_that_has_seen_the_outcome() {
    for proximity in ["proximity", "kerf", "depth", "path", "gap", "out-of-bag"] {
        let found = tossed(&format!("proximity = \"{proximity}\"\nnode_size = 1"));
        assert_eq!(found.errors.len(), 2);
        for error in &found.errors {
            let sums = error.sums.as_ref().expect("sums");
            let share = sums.error / sums.total as f64;
            // Of 200 tosses, four standard deviations from one half.
            assert!(
                (share - 0.5).abs() < 0.15,
                "{proximity}, {}: {share}",
                error.rule
            );
        }
        assert_eq!(found.errors[1].rule, "out-of-bag");
    }
}
