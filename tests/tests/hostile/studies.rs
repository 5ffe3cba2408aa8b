//! An operator who submits one job with four and with three hospitals, all of them honest: the difference of two sums would be
//! the fourth one's. A study takes the choice of hospitals and of patients away.

use kindred_tests::deployment::{Deployment, SITES, tls_of};
use kindred_tests::exit::{REFUSED, USAGE};
use kindred_tests::programs::{PATIENCE, Ran, coordinator, site_agent, until};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;

pub(super) const OUTCOME: &str = "column = \"score\"\nkind = \"numeric\"\n";
pub(super) const FEATURE: &str = "[[features]]\nname = \"first_1\"\nkind = \"numeric\"\n";
pub(super) const METHOD: &str = "name = \"count\"\nmethod = \"regression\"\n";

/// Four hospitals with the default rules, each with 90 patients or fewer who have a score.
pub(super) fn hospitals() -> Deployment {
    let mut deployment = Deployment::prepare();
    let arguments = [
        "synthesise",
        "--out",
        "data",
        "--force",
        "--outcome",
        "number",
        "--sites",
        "north=90,south=80,east=70,west=60",
    ];
    deployment
        .home
        .run(&site_agent(), &arguments)
        .must_succeed();
    let port = deployment.port();
    for site in SITES {
        configure(&deployment, port, site, "");
    }
    deployment.start_coordinator();
    for site in SITES {
        deployment.start_agent(site);
    }
    deployment
}

pub(super) fn configure(deployment: &Deployment, port: u16, site: &str, more: &str) {
    let tls = tls_of(&format!("site-{site}"));
    let config = format!(
        "site = \"{site}\"\ncoordinator = \"127.0.0.1:{port}\"\nfolder = \"sites/{site}\"\n{tls}\
         [source]\nkind = \"csv\"\npath = \"data/{site}.csv\"\npatient = \"patient\"\n\
         [policy]\noperators = [\"*\"]\nmethods = [\"*\"]\nsecond_moments = true\npair_sums = true\n{more}"
    );
    deployment.home.write(&format!("{site}.toml"), &config);
}

pub(super) fn job(sites: &[&str]) -> String {
    format!("{METHOD}sites = {sites:?}\n[outcome]\n{OUTCOME}{FEATURE}[regression]\n")
}

pub(super) fn submit(deployment: &Deployment, job: &str, out: &str) -> Ran {
    deployment.home.write("count.toml", job);
    deployment.job(&["submit", "count.toml", "--wait", "--out", out])
}

/// Patients, and the sum of their scores, from what a regression publishes: the two standard errors tell the mean of the
/// feature, and the line tells the mean score there.
pub(super) fn told(deployment: &Deployment, out: &str) -> (f64, f64) {
    let folder = deployment.home.join(out);
    let model: Value =
        serde_json::from_slice(&fs::read(folder.join("regression.json")).unwrap()).unwrap();
    let number = |key: &str| model[key].as_f64().unwrap();
    let (patients, deviation) = (number("patients"), number("residual_deviation"));
    let table = fs::read_to_string(folder.join("coefficients.csv")).unwrap();
    let row = |index: usize| -> [f64; 2] {
        let mut fields = table.lines().nth(index).unwrap().split(',').skip(1);
        [(); 2].map(|()| fields.next().unwrap().parse().unwrap())
    };
    let [[constant, error], [slope, error_of_slope]] = [row(1), row(2)];
    let squares = (deviation / error_of_slope).powi(2);
    let mean = (((error / deviation).powi(2) - 1.0 / patients) * squares).sqrt();
    (patients, patients * (constant + slope * mean))
}

/// The scores of a hospital.
fn scores(deployment: &Deployment, site: &str) -> Vec<f64> {
    let table = fs::read_to_string(deployment.home.join(&format!("data/{site}.csv"))).unwrap();
    let mut lines = table.lines();
    let mut names = lines.next().unwrap().split(',');
    let place = names.position(|name| name == "score").unwrap();
    lines
        .filter_map(|line| line.split(',').nth(place)?.parse().ok())
        .collect()
}

pub(super) fn study(deployment: &Deployment, name: &str, sites: &[&str]) -> String {
    let certificate = |party: &str| wire::fingerprint(&deployment.credentials(party)).unwrap();
    let mut text = format!(
        "name = \"{name}\"\ntitle = \"Who scores?\"\npurpose = \"A test\"\nuntil = \"2099-12-31\"\n\
         methods = [\"regression\"]\nlimits = {{ runs = 10, rounds = 100, queries = 0 }}\n\
         operators = [{{ name = \"researcher\", certificate = \"{}\" }}]\n",
        certificate("operator-researcher")
    );
    for site in sites {
        let own = certificate(&format!("site-{site}"));
        let _ = write!(
            text,
            "[[hospitals]]\nname = \"{site}\"\ncertificate = \"{own}\"\n"
        );
    }
    text + "[[outcomes]]\nname = \"score\"\nlabel = \"Score\"\n" + OUTCOME + FEATURE
}

pub(super) fn approve(deployment: &Deployment, site: &str, study: &str) -> Ran {
    let config = format!("{site}.toml");
    let arguments = ["study", "approve", "--config", &config, study];
    deployment.home.run(&site_agent(), &arguments)
}

pub(super) fn propose(deployment: &Deployment, study: &str) -> Ran {
    let arguments = ["study", "propose", study, "--config", "operator.toml"];
    deployment.home.run(&coordinator(), &arguments)
}

pub(super) const OF_STUDY: &str = "outcome = \"score\"\n[regression]\n";

#[test]
fn a_study_has_one_roster_and_one_set_of_patients() {
    let mut deployment = hospitals();
    // A job that chooses its hospitals reaches none of them.
    submit(&deployment, &job(&SITES), "refused").must_fail(USAGE, &["a job of no study"]);
    let text = study(&deployment, "score", &SITES);
    deployment.home.write("score.study.toml", &text);
    let of_study = format!("{METHOD}study = \"score.study.toml\"\n{OF_STUDY}");
    propose(&deployment, "score.study.toml").must_succeed();
    // Nobody has approved it.
    let wanted = ["waits for the approval of north, south, east, west"];
    submit(&deployment, &of_study, "early").must_fail(USAGE, &wanted);
    for site in SITES {
        approve(&deployment, site, "score.study.toml").must_succeed();
    }
    let show = ["study", "show", "score", "--config", "operator.toml"];
    until("the study to open", PATIENCE, || {
        let shown = deployment.home.run(&coordinator(), &show).must_succeed();
        shown.stdout.starts_with("score: open\n").then_some(())
    });
    one_roster(&deployment);
    one_set_of_patients(&mut deployment, &of_study, &text);
}

/// No job over the same patients chooses its hospitals, and no second study does.
fn one_roster(deployment: &Deployment) {
    for sites in [&SITES[..], &SITES[..3]] {
        submit(deployment, &job(sites), "refused").must_fail(USAGE, &["a job of no study"]);
    }
    let explain = ["policy", "explain", "--config", "north.toml", "count.toml"];
    let explained = deployment.home.run(&site_agent(), &explain);
    assert_eq!(explained.code, Some(REFUSED), "{}", explained.stderr);
    let wanted = "which chooses its hospitals and its patients by itself";
    assert!(explained.stdout.contains(wanted), "{}", explained.stdout);
    // Another operator, whom the policy allows and the study does not name.
    deployment.admit_rival();
    let of_study = format!("{METHOD}study = \"score.study.toml\"\n{OF_STUDY}");
    deployment.home.write("count.toml", &of_study);
    let rival = deployment.job_by_rival(&["submit", "count.toml", "--wait", "--out", "rival"]);
    rival.must_fail(USAGE, &["wanted one of the operators of the study"]);
    let three = study(deployment, "three", &SITES[..3]);
    deployment.home.write("three.study.toml", &three);
    let wanted = [
        "sums of this study and of \"score\", over some of the same patients, that tell the sums of west alone",
        "the consent of west",
    ];
    approve(deployment, "north", "three.study.toml").must_fail(REFUSED, &wanted);
    let other = study(deployment, "score", &SITES[..3]);
    deployment.home.write("other.study.toml", &other);
    let wanted = ["an approval of another text under this name"];
    approve(deployment, "north", "other.study.toml").must_fail(USAGE, &wanted);
    let again = approve(deployment, "north", "score.study.toml");
    again.must_fail(USAGE, &["found an approval of it"]);
    let job = format!("{METHOD}study = \"other.study.toml\"\n{OF_STUDY}");
    submit(deployment, &job, "other").must_fail(USAGE, &["wanted the one that was proposed"]);
    let over = study(deployment, "over", &SITES).replace("2099-12-31", "2020-12-31");
    deployment.home.write("over.study.toml", &over);
    let over = approve(deployment, "north", "over.study.toml");
    over.must_fail(
        REFUSED,
        &["until: found 2020-12-31, wanted a day that is not over"],
    );
    let stranger = study(deployment, "stranger", &SITES);
    let own = wire::fingerprint(&deployment.credentials("site-north"))
        .unwrap()
        .to_string();
    let stranger = stranger.replace(&own, &format!("sha256:{}", "0".repeat(64)));
    deployment.home.write("stranger.study.toml", &stranger);
    let wanted = ["which is this site's certificate"];
    approve(deployment, "north", "stranger.study.toml").must_fail(REFUSED, &wanted);
    beyond_the_policy(deployment);
}

/// What a hospital's policy refuses beforehand, no study can ask.
fn beyond_the_policy(deployment: &Deployment) {
    let own = fs::read_to_string(deployment.home.join("north.toml")).unwrap();
    let beyond = study(deployment, "beyond", &SITES);
    deployment.home.write("beyond.study.toml", &beyond);
    for (from, to, wanted) in [
        (
            "operators = [\"*\"]",
            "operators = [\"rival\"]",
            "operators: found [\"researcher\"], wanted \"rival\", as operators in the policy",
        ),
        (
            "methods = [\"*\"]",
            "methods = [\"unpsl\"]",
            "methods: found [\"regression\"], wanted \"unpsl\", as methods in the policy",
        ),
        (
            "[policy]\n",
            "[policy]\nrounds_max = 99\n",
            "limits: found rounds = 100, wanted at most 99, as rounds_max in the policy",
        ),
        (
            "[policy]\n",
            "[policy]\nsites_min = 5\n",
            "hospitals: found 4 hospitals, wanted 5 or more, as sites_min",
        ),
    ] {
        deployment.home.write("north.toml", &own.replace(from, to));
        approve(deployment, "north", "beyond.study.toml").must_fail(REFUSED, &[wanted]);
    }
    deployment.home.write("north.toml", &own);
}

/// Runs answer from the frozen patients, whatever the source holds by then, and from no others.
fn one_set_of_patients(deployment: &mut Deployment, of_study: &str, text: &str) {
    let scored = SITES.map(|site| scores(deployment, site).len());
    #[allow(clippy::cast_precision_loss)]
    let patients = scored.iter().sum::<usize>() as f64;
    submit(deployment, of_study, "first").must_succeed();
    let source = deployment.home.join("data/west.csv");
    let table = fs::read_to_string(&source).unwrap();
    let last = table.lines().last().unwrap();
    let mut file = OpenOptions::new().append(true).open(&source).unwrap();
    for patient in 0..10 {
        let rest = last.split_once(',').unwrap().1;
        writeln!(file, "new-{patient},{rest}").unwrap();
    }
    submit(deployment, of_study, "second").must_succeed();
    assert_eq!(told(deployment, "first"), told(deployment, "second"));
    assert!((told(deployment, "first").0 - patients).abs() < 0.5);

    let folder = deployment.home.join("sites/west/studies/score");
    let mode = |name: &str| {
        fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode(""), mode("snapshot.parquet"), mode("approval.json")),
        (0o700, 0o600, 0o600)
    );
    assert_eq!(fs::read_to_string(folder.join("study.toml")).unwrap(), text);

    // Another hospital's patients in the place of the own.
    let other = deployment
        .home
        .join("sites/east/studies/score/snapshot.parquet");
    fs::copy(other, folder.join("snapshot.parquet")).unwrap();
    deployment.home.write("count.toml", of_study);
    deployment.job(&["submit", "count.toml"]).must_succeed();
    let west = deployment.agent("west");
    west.wait_for("wanted those that the site committed to");
    assert!(west.ended().is_none(), "{}", west.log());
    // Whoever leaves a study has no copy of its patients any more, and answers no run of it.
    let arguments = ["study", "leave", "--config", "north.toml", "score"];
    deployment
        .home
        .run(&site_agent(), &arguments)
        .must_succeed();
    assert!(
        !deployment
            .home
            .join("sites/north/studies/score/snapshot.parquet")
            .exists()
    );
    let listed = ["study", "list", "--config", "north.toml"];
    let listed = deployment.home.run(&site_agent(), &listed).must_succeed();
    assert!(
        listed.stdout.contains("score  left  at most 90 patients"),
        "{}",
        listed.stdout
    );
    approve(deployment, "north", "score.study.toml").must_fail(USAGE, &["that this site has left"]);
}
