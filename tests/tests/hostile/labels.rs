//! An operator who hides something in a label, or turns a line around, so that the page shows another text than the job has; and
//! one whose runs fill the disk of a hospital with copies.

use kindred_tests::samples::{DEMO_JOB, SITE};
use protocol::job::Job;
use protocol::message::{Begin, Warrant};
use protocol::name::RunId;
use site_agent::books::transcript;
use site_agent::config::SiteConfig;
use std::thread;
use std::time::Duration;

#[test]
fn a_character_that_nobody_sees_is_refused_in_a_job_and_in_a_site_file() {
    let labelled = |label: &str| {
        let line = format!("kind = \"numeric\"\nlabel = \"{label}\"");
        DEMO_JOB.replacen("kind = \"numeric\"", &line, 1)
    };
    assert!(Job::parse(&labelled("größer \u{5D0}\u{5D1} α\\n")).is_ok());
    let hidden = [
        "\\u001B[31m",
        "\\u202E",
        "\u{202E}",
        "\u{2066}x",
        "\\u0000",
        "\\u0085",
        "\u{200F}",
    ];
    for label in hidden {
        let errors = Job::parse(&labelled(label)).unwrap_err().to_string();
        assert!(
            errors.contains("line ") && errors.contains("found the character U+"),
            "{errors}"
        );
        let site = format!("{SITE}[columns.age]\nunit = \"{label}\"\n");
        let errors = SiteConfig::parse(&site, "".as_ref())
            .unwrap_err()
            .to_string();
        assert!(errors.contains("found the character U+"), "{errors}");
    }
}

#[test]
fn answers_that_every_site_would_keep_are_256_megabytes_at_most() {
    let limited = |megabytes: u32| {
        let table = format!("[aggregation]\nanswers_megabytes_max = {megabytes}\n\n[outcome]");
        Job::parse(&DEMO_JOB.replacen("[outcome]", &table, 1))
    };
    assert!(limited(256).is_ok());
    assert!(limited(257).unwrap_err().to_string().contains("256"));
}

#[test]
fn copies_of_runs_have_a_quota_and_the_oldest_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["1", "2", "3"].map(|name| RunId::new(&name.repeat(12)).unwrap());
    for run in &names {
        let begin = Begin {
            run: run.clone(),
            job: "x".repeat(10_000),
            seed: 1,
            warrant: Warrant::default(),
            opening: None,
        };
        transcript::begin(folder.path(), "digest", &begin).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let there = || {
        names
            .each_ref()
            .map(|run| transcript::path(folder.path(), run).exists())
    };
    transcript::make_room(folder.path(), &names[2], 100_000).unwrap();
    assert_eq!(there(), [true; 3]);
    transcript::make_room(folder.path(), &names[2], 25_000).unwrap();
    assert_eq!(there(), [false, true, true]);
    // The run at hand keeps its own, however old.
    transcript::make_room(folder.path(), &names[1], 1).unwrap();
    assert_eq!(there(), [false, true, false]);
}
