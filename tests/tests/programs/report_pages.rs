//! Promise: every kind of report is read on a desktop and a phone, and the answer is its first words.

use crate::browser;
use kindred_tests::programs::{Home, site_agent};
use kindred_tests::samples::demo_of_forests;

const OPEN: &str = "forests = true\n";

struct Kind {
    name: &'static str,
    outcome: &'static str,
    job: fn() -> String,
    answer: &'static str,
    /// Headings and words of the page.
    words: &'static [&'static str],
    /// Figures of single patients, on the page of one cohort alone.
    alone: &'static [&'static str],
}

fn forest(outcome: &str, keys: &str) -> String {
    let demo = demo_of_forests(10_000);
    let features = &demo[demo.find("[[features]]").unwrap()..];
    format!(
        "name = \"forests\"\nmethod = \"forest\"\nsites = [\"north\", \"south\"]\n\
         [outcome]\n{outcome}\n{features}[forest]\ntrees = 60\n{keys}\n"
    )
}

fn classes() -> String {
    let outcome = "column = \"class\"\nkind = \"binary\"\npositive = [\"positive\"]\nnegative = [\"negative\"]";
    forest(outcome, "scope = \"federated\"")
}

fn numbers() -> String {
    let outcome = "column = \"score\"\nkind = \"numeric\"";
    forest(outcome, "scope = \"federated\"")
}

fn survival() -> String {
    let outcome = "column = \"days\"\nkind = \"survival\"\nevent = \"event\"\nhorizon = 1000";
    forest(outcome, "")
}

fn metric() -> String {
    let demo = include_str!("../../../deploy/jobs/demo.toml");
    demo.replace(
        "sites = [\"north\", \"south\", \"east\", \"west\"]",
        "sites = [\"north\", \"south\", \"east\"]",
    )
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "unpsl",
        outcome: "class",
        job: metric,
        answer: "Which patients are similar with regard to class depends mostly on",
        words: &[
            "How often it is right",
            "nearest by Euclidean distance (held out)",
            "majority class",
            "Without weight:",
            "Receiver operating characteristic",
            "Calibration",
            "<caption>Messages about patients",
        ],
        alone: &[],
    },
    Kind {
        name: "forest-classes",
        outcome: "class",
        job: classes,
        answer: "One forest of 60 trees of all sites predicts class.",
        words: &[
            "How often it is right",
            "majority class",
            "Receiver operating characteristic",
            "Calibration",
        ],
        alone: &["Patients"],
    },
    Kind {
        name: "forest-numbers",
        outcome: "number",
        job: numbers,
        answer: "root mean squared error",
        words: &["What the predictions go by"],
        alone: &["Observed against predicted", "Patients"],
    },
    Kind {
        name: "forest-survival",
        outcome: "survival",
        job: survival,
        answer: "orders pairs of patients by days with",
        words: &["What the predictions go by"],
        alone: &["Survival by predicted risk", "Patients"],
    },
];

/// The first words of the page are the answer.
fn check_words(page: &str, answer: &str) {
    let body = page.split("<body>").nth(1).unwrap();
    let (answers, bars) = (
        body.find("class=\"answer\"").unwrap(),
        body.find("class=\"bars\"").unwrap(),
    );
    assert!(answers < bars, "the answer comes before the figure");
    let words: String = body[answers..bars].replace("<b>", "").replace("</b>", "");
    assert!(words.contains(answer), "{words}");
    for needed in [
        "lang=\"en\"",
        "prefers-color-scheme: dark",
        "@media print",
        "scope=\"row\"",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
    assert!(!page.contains("<script"));
}

#[test]
fn every_kind_of_report_is_read_on_every_screen() {
    for kind in KINDS {
        let home = Home::with_outcome("north=260,south=180,east=120", kind.outcome);
        home.write("job.toml", &(kind.job)());
        home.write("policy.toml", OPEN);
        home.simulate(&[]).must_succeed();
        let out = home.join("out");
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        check_words(&page, kind.answer);
        for words in kind.words {
            assert!(page.contains(words), "{}: {words}", kind.name);
        }
        browser::check(&home, &out.join("report.html"), kind.name);
        // On one cohort alone the page shows figures of the patients too.
        let alone = [
            "local",
            "job.toml",
            "--data",
            "data/north.csv",
            "--out",
            "alone",
        ];
        home.run(&site_agent(), &alone).must_succeed();
        let folder = home.join("alone");
        let own = std::fs::read_to_string(folder.join("report.html")).unwrap();
        for heading in kind.alone {
            let heading = format!(">{heading}</h2><figure>");
            assert!(
                own.contains(&heading) && !page.contains(&heading),
                "{heading}"
            );
        }
        if !kind.alone.is_empty() {
            browser::check(
                &home,
                &folder.join("report.html"),
                &format!("{}-local", kind.name),
            );
        }
    }
}

/// What a site writes for itself: of its own figures in a run of sums, and of a metric of its own.
#[test]
fn the_pages_of_one_site_are_read_on_a_phone() {
    let home = Home::with_outcome("north=200,south=120,east=120", "class");
    home.write("job.toml", &metric());
    home.write("policy.toml", OPEN);
    home.simulate(&[]).must_succeed();
    let run = home.join("out/sites/north");
    let arguments = [
        "personal",
        run.to_str().unwrap(),
        "--data",
        "data/north.csv",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    for (file, name, words) in [
        ("report.html", "site", "for this site's patients"),
        ("personal.html", "personal", "a metric of this site's own"),
    ] {
        let page = std::fs::read_to_string(run.join(file)).unwrap();
        assert!(page.contains(words), "{name}: {page}");
        browser::check(&home, &run.join(file), name);
    }
}

/// What a site asks about its own patients.
#[test]
fn the_pages_of_commands_at_a_site_are_read_on_a_phone() {
    let of_patients = ["--data", "data/north.csv", "--out"];
    for (outcome, job) in [("class", metric()), ("survival", survival())] {
        let home = Home::with_outcome("north=200", outcome);
        home.write("job.toml", &job);
        home.write("some.txt", "1\n2\n");
        let run = |start: &[&str], out: &str, more: &[&str]| {
            let arguments = [start, &of_patients[..], &[out], more].concat();
            home.run(&site_agent(), &arguments).must_succeed();
        };
        run(&["local", "job.toml"], "alone", &[]);
        for (command, page, more) in [
            ("similar", "similar", &["--patient", "3"][..]),
            ("match", "match", &["--patients", "some.txt", "-k", "3"]),
            ("predict", "predict", &["--folds", "3"]),
            ("cluster", "clusters", &["-k", "2", "--samples", "5"]),
        ] {
            run(&[command, "alone"], command, more);
            let file = home.join(command).join(format!("{page}.html"));
            browser::check(&home, &file, &format!("{page}-{outcome}"));
        }
    }
}
