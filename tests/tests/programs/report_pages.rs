//! Promise: every kind of report is read on a desktop, a tablet and a phone, in a light and a dark scheme: nothing has to be
//! scrolled sideways, no script fails, and the answer is its first words. Headless Chromium (Debian's package) opens the pages and
//! leaves pictures of them under `target/reports/`; where it is absent, the test says so and opens none.

use kindred_tests::programs::{Home, coordinator, site_agent};
use kindred_tests::samples::demo_of_forests;
use kindred_tests::workspace::root;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const WIDTHS: [u32; 3] = [1200, 768, 390];
/// Chromium's numbers of the two schemes.
const SCHEMES: [(&str, u32); 2] = [("dark", 0), ("light", 1)];
const OPEN: &str = "forests = true\n";

/// Loads a page in a frame of a width, and writes down how wide it is and in which scheme.
const FRAME: &str = r#"<!doctype html><body style="margin:0"><pre id="told"></pre><script>
const frame = document.createElement("iframe");
frame.style = "border:0;height:8000px;width:WIDTHpx";
frame.addEventListener("load", () => {
  const page = frame.contentDocument.documentElement;
  const dark = frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches;
  const faults = frame.contentWindow.faults || 0;
  document.getElementById("told").textContent =
    `told ${page.scrollWidth} ${page.clientWidth} ${dark} ${faults} told`;
});
frame.src = "report.html";
document.body.append(frame);
</script>"#;

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
        answer: "Which patients are similar depends mostly on",
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
        answer: "One forest of 60 trees of all sites predicts the class with",
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
        answer: "orders pairs of patients by risk with",
        words: &["What the predictions go by"],
        alone: &["Survival by predicted risk", "Patients"],
    },
];

pub(crate) fn chromium() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&paths)
        .flat_map(|folder| ["chromium", "chromium-browser"].map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: found no chromium to open the reports with");
    }
    found
}

fn browse(chromium: &Path, home: &Home, scheme: u32, arguments: &[String]) -> String {
    let profile = format!("--user-data-dir={}", home.join("profile").display());
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--hide-scrollbars",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--allow-file-access-from-files",
            "--virtual-time-budget=5000",
            &profile,
        ])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `report.html` of a folder fits each width, in the scheme that was asked for.
pub(crate) fn check(chromium: &Path, home: &Home, folder: &Path, name: &str, widths: &[u32]) {
    let pictures = root().join("target/reports");
    std::fs::create_dir_all(&pictures).unwrap();
    for (scheme, number) in SCHEMES {
        for width in widths {
            let frame = folder.join("frame.html");
            std::fs::write(&frame, FRAME.replace("WIDTH", &width.to_string())).unwrap();
            let url = format!("file://{}", frame.display());
            let page = browse(chromium, home, number, &["--dump-dom".to_owned(), url]);
            let told = page.split("told ").nth(1).unwrap_or_default();
            let told: Vec<&str> = told.split(' ').take(4).collect();
            let [scroll, client, dark, faults] = told.as_slice() else {
                panic!("{name} at {width}: the page did not load: {page}");
            };
            assert_eq!(
                scroll, client,
                "{name} at {width}, {scheme}: wider than its frame"
            );
            assert_eq!(*dark, (scheme == "dark").to_string(), "{name}");
            assert_eq!(*faults, "0", "{name}");
            let picture = pictures.join(format!("{name}-{width}-{scheme}.png"));
            let report = format!("file://{}", folder.join("report.html").display());
            let arguments = [
                format!("--screenshot={}", picture.display()),
                format!("--window-size={width},2400"),
                report,
            ];
            browse(chromium, home, number, &arguments);
            assert!(picture.is_file(), "{}", picture.display());
        }
    }
}

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
    let chromium = chromium();
    for kind in KINDS {
        let home = Home::with_outcome("north=260,south=180,east=120", kind.outcome);
        home.write("job.toml", &(kind.job)());
        home.write("policy.toml", OPEN);
        let arguments = [
            "simulate",
            "job.toml",
            "--data",
            "data",
            "--policy",
            "policy.toml",
            "--out",
            "out",
        ];
        home.run(&coordinator(), &arguments).must_succeed();
        let out = home.join("out");
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        check_words(&page, kind.answer);
        for words in kind.words {
            assert!(page.contains(words), "{}: {words}", kind.name);
        }
        if let Some(chromium) = &chromium {
            check(chromium, &home, &out, kind.name, &WIDTHS);
        }
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
            let heading = format!("<h2>{heading}</h2><figure>");
            assert!(
                own.contains(&heading) && !page.contains(&heading),
                "{heading}"
            );
        }
        if let Some(chromium) = chromium.as_ref().filter(|_| !kind.alone.is_empty()) {
            check(
                chromium,
                &home,
                &folder,
                &format!("{}-local", kind.name),
                &WIDTHS,
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
    let arguments = [
        "simulate",
        "job.toml",
        "--data",
        "data",
        "--policy",
        "policy.toml",
        "--out",
        "out",
    ];
    home.run(&coordinator(), &arguments).must_succeed();
    let run = home.join("out/sites/north");
    let arguments = [
        "personal",
        "--run",
        run.to_str().unwrap(),
        "--data",
        "data/north.csv",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    let own = home.join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::copy(run.join("personal.html"), own.join("report.html")).unwrap();
    let chromium = chromium();
    for (folder, name, words) in [
        (&run, "site", "for this site's patients"),
        (&own, "personal", "a metric of this site's own"),
    ] {
        let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
        assert!(page.contains(words), "{name}: {page}");
        assert!(!page.contains("<script"));
        if let Some(chromium) = &chromium {
            check(chromium, &home, folder, name, &WIDTHS[2..]);
        }
    }
}
