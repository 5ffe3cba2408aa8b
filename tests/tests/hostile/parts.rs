//! An operator of a study whose two outcomes differ in few patients: the difference of two runs' sums is that of those few. They are left
//! out of the study at every hospital, before anything else of them is summed.

use crate::studies::{FEATURE, METHOD, OUTCOME, approve, hospitals, propose, study, submit, told};
use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::programs::{PATIENCE, coordinator, site_agent, until};
use serde_json::Value;
use std::fs;

/// Patients of each hospital who have a score and no second one: seven in all, and the sum of their scores.
const APART: [usize; 4] = [1, 2, 2, 2];

/// Adds a second score, which is the first but for those few who have none; gives the sum of their scores. All tables as one.
fn part(deployment: &Deployment) -> (f64, String) {
    let (mut apart, mut pooled) = (0.0, String::new());
    for (site, few) in SITES.into_iter().zip(APART) {
        let source = deployment.home.join(&format!("data/{site}.csv"));
        let table = fs::read_to_string(&source).unwrap();
        let mut lines = table.lines();
        let names = lines.next().unwrap();
        let place = names.split(',').position(|name| name == "score").unwrap();
        let mut left = few;
        let mut changed = format!("{names},second\n");
        if pooled.is_empty() {
            pooled.clone_from(&changed);
        }
        for line in lines {
            let score = line.split(',').nth(place).unwrap();
            let is_apart = left > 0 && score.parse::<f64>().is_ok();
            left -= usize::from(is_apart);
            if is_apart {
                apart += score.parse::<f64>().unwrap();
            }
            let second = if is_apart { "" } else { score };
            let row = format!("{line},{second}\n");
            changed += &row;
            pooled += &row;
        }
        deployment.home.write(&format!("data/{site}.csv"), &changed);
    }
    (apart, pooled)
}

/// The same two regressions of all rows in one place, where no rule holds.
fn without_the_rule(deployment: &Deployment, pooled: &str) -> (f64, f64) {
    deployment.home.write("data/pooled.csv", pooled);
    for name in ["score", "second"] {
        let outcome = OUTCOME.replace("score", name);
        let job = format!("{METHOD}sites = {SITES:?}\n[outcome]\n{outcome}{FEATURE}[regression]\n");
        deployment.home.write("local.toml", &job);
        let out = format!("pooled-{name}");
        let arguments = [
            "local",
            "local.toml",
            "--data",
            "data/pooled.csv",
            "--out",
            &out,
        ];
        deployment
            .home
            .run(&site_agent(), &arguments)
            .must_succeed();
    }
    let (all, some) = (
        told(deployment, "pooled-score"),
        told(deployment, "pooled-second"),
    );
    (all.0 - some.0, all.1 - some.1)
}

#[test]
fn seven_patients_by_whom_two_outcomes_differ_are_in_neither_sum() {
    let mut deployment = hospitals();
    let (wanted, pooled) = part(&deployment);
    let (patients, sum) = without_the_rule(&deployment, &pooled);
    println!("without the rule: {patients} patients, sum {sum}; really 7, {wanted}");
    assert!((patients - 7.0).abs() < 0.5);
    assert!((sum - wanted).abs() < 1e-6 * wanted.abs());

    let second = "[[outcomes]]\nname = \"second\"\nlabel = \"Second score\"\ncolumn = \"second\"\nkind = \"numeric\"\n[[features]]";
    let text = study(&deployment, "scores", &SITES).replacen("[[features]]", second, 1);
    deployment.home.write("scores.study.toml", &text);
    for site in SITES {
        approve(&deployment, site, "scores.study.toml").must_succeed();
    }
    propose(&deployment, "scores.study.toml").must_succeed();
    let show = ["study", "show", "scores", "--config", "operator.toml"];
    until("the study to open", PATIENCE, || {
        let shown = deployment.home.run(&coordinator(), &show).must_succeed();
        shown.stdout.starts_with("scores: open\n").then_some(())
    });
    for name in ["score", "second"] {
        let job =
            format!("{METHOD}study = \"scores.study.toml\"\noutcome = \"{name}\"\n[regression]\n");
        submit(&deployment, &job, name).must_succeed();
    }
    let (all, some) = (told(&deployment, "score"), told(&deployment, "second"));
    println!(
        "with it: {} and {} patients, sums {} and {}",
        all.0, some.0, all.1, some.1
    );
    assert_eq!(all, some);
    said(&mut deployment);
}

/// Each hospital is shown its own, and the card says how many they are in tens.
fn said(deployment: &mut Deployment) {
    let card = [
        "study",
        "card",
        "scores",
        "--config",
        "operator.toml",
        "--out",
        "card",
    ];
    deployment.home.run(&coordinator(), &card).must_succeed();
    let read = |name: &str| fs::read_to_string(deployment.home.join("card").join(name)).unwrap();
    let card: Value = serde_json::from_str(&read("card.json")).unwrap();
    assert_eq!(card["left_out"], 10);
    let page = read("report.html");
    assert!(page.contains("Up to 10 more patients are in no run of the study"));
    for (site, few) in SITES.into_iter().zip(APART) {
        let config = format!("{site}.toml");
        let list = ["study", "list", "--config", &config];
        let listed = deployment.home.run(&site_agent(), &list).must_succeed();
        let wanted = "patients have \"score\", but no \"second\", too few over all hospitals to tell apart: not in the study";
        let own = listed.stdout.lines().find(|line| line.contains(wanted));
        assert!(
            own.is_some_and(|own| own.trim().starts_with(&format!("{few} of "))),
            "{}",
            listed.stdout
        );
        deployment
            .agent(site)
            .wait_for("too few over all hospitals to tell apart");
        let review = ["study", "review", "--config", &config, "scores.study.toml"];
        let reviewed = deployment.home.run(&site_agent(), &review).must_succeed();
        assert!(reviewed.stdout.contains(wanted), "{}", reviewed.stdout);
    }
    let audit = [
        "study",
        "audit",
        "--config",
        "west.toml",
        "scores",
        "--out",
        "audit.json",
    ];
    let audited = deployment.home.run(&site_agent(), &audit).must_succeed();
    assert!(
        audited.stdout.contains("every answer of this site"),
        "{}",
        audited.stdout
    );
}
