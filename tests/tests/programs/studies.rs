//! Promise: a study goes from a draft to its card and its runs, whoever is away or starts again on the way; and what is not the
//! study that its hospitals approved is refused with a reason.

use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::exit::{GOING, JOURNAL, REFUSED, USAGE};
use kindred_tests::programs::{PATIENCE, Ran, coordinator, site_agent, until};
use protocol::message::Warrant;
use std::fs;
use std::path::Path;

pub(super) const HEAD: &str = "name = \"demo\"\ntitle = \"Who has the class?\"\npurpose = \"A test\"\nuntil = \"2099-12-31\"\n\
    methods = [\"regression\", \"unpsl\", \"neighbours\"]\nlimits = { runs = 10, rounds = 200, queries = 100 }\n\
    operators = [\"researcher\"]\nhospitals = [\"north\", \"south\", \"east\", \"west\"]\n";
pub(super) const PATIENTS: &str = "[[outcomes]]\nname = \"class\"\nlabel = \"Class\"\ncolumn = \"class\"\nkind = \"binary\"\n\
    positive = [\"positive\"]\nnegative = [\"negative\"]\n\
    [[features]]\nname = \"first_1\"\nlabel = \"First\"\nkind = \"numeric\"\n\
    [[features]]\nname = \"first_3\"\nkind = \"numeric\"\n\
    [[features]]\nname = \"grade\"\nkind = \"categorical\"\nlevels = [\"low\", \"middle\", \"high\"]\n";
const REGRESSION: &str = "name = \"weights\"\nmethod = \"regression\"\nstudy = \"demo.study.toml\"\noutcome = \"class\"\n[regression]\n";
const UNPSL: &str = "name = \"metric\"\nmethod = \"unpsl\"\nstudy = \"demo.study.toml\"\noutcome = \"class\"\nfeatures = [\"first_1\", \"first_3\"]\n\
    [unpsl]\nrank = 1\nlambda_sparsity = 0.001\n";

pub(super) fn study(deployment: &Deployment, arguments: &[&str]) -> Ran {
    let all = [&["study"], arguments, &["--config", "operator.toml"]].concat();
    deployment.home.run(&coordinator(), &all)
}

pub(super) fn at_site(deployment: &Deployment, site: &str, arguments: &[&str]) -> Ran {
    let config = format!("{site}.toml");
    let all = [&["study"], arguments, &["--config", &config]].concat();
    deployment.home.run(&site_agent(), &all)
}

pub(super) fn draft(deployment: &Deployment, text: &str, out: &str) -> Ran {
    deployment.home.write("draft.toml", text);
    let arguments = [
        "study",
        "draft",
        "draft.toml",
        "--certificates",
        "certificates",
        "--out",
        out,
    ];
    deployment.home.run(&coordinator(), &arguments)
}

fn submit(deployment: &Deployment, job: &str, out: &str) -> Ran {
    deployment.home.write("job.toml", job);
    deployment.job(&["submit", "job.toml", "--wait", "--out", out])
}

pub(super) fn until_shown(deployment: &Deployment, wanted: &str) {
    until(wanted, PATIENCE, || {
        let shown = study(deployment, &["show", "demo"]).must_succeed();
        shown.stdout.contains(wanted).then_some(())
    });
}

#[test]
fn a_study_goes_from_a_draft_to_its_card_and_its_runs() {
    let mut deployment = Deployment::start();
    draft(&deployment, &format!("{HEAD}{PATIENTS}"), "demo.study.toml").must_succeed();
    submit(&deployment, REGRESSION, "early").must_fail(USAGE, &["`study propose` proposes it"]);
    study(&deployment, &["propose", "demo.study.toml"]).must_succeed();
    until_shown(
        &deployment,
        "demo: proposed, waiting for the approval of north, south, east, west",
    );
    // All are connected, and the card waits for nothing but their approvals.
    until("all are connected", PATIENCE, || {
        let shown = study(&deployment, &["show", "demo"]).must_succeed();
        (!shown.stdout.contains("not connected")).then_some(())
    });
    study(&deployment, &["card", "demo", "--out", "early"]).must_fail(GOING, &[]);

    for site in &SITES[..3] {
        until("the proposal at the site", PATIENCE, || {
            let listed = at_site(&deployment, site, &["list"]).must_succeed();
            listed
                .stdout
                .contains("demo  waits for approval")
                .then_some(())
        });
        let review = at_site(&deployment, site, &["review", "demo"]).must_succeed();
        assert!(review.stdout.contains("up to 10 runs"), "{}", review.stdout);
        at_site(&deployment, site, &["approve", "demo"]).must_succeed();
    }
    until_shown(
        &deployment,
        "demo: proposed, waiting for the approval of west",
    );
    let waits = ["it waits for the approval of west"];
    submit(&deployment, REGRESSION, "early").must_fail(USAGE, &waits);
    // Whoever is killed while the study waits has forgotten nothing.
    deployment.kill_coordinator();
    deployment.kill_agent("north");
    deployment.start_coordinator();
    deployment.start_agent("north");
    at_site(&deployment, "west", &["approve", "demo.study.toml"]).must_succeed();
    until_shown(&deployment, "demo: open\n");
    let listed = at_site(&deployment, "west", &["list"]).must_succeed();
    let wanted = "demo  open until 2099-12-31  at most";
    assert!(listed.stdout.contains(wanted), "{}", listed.stdout);
    study(&deployment, &["propose", "demo.study.toml"]).must_fail(USAGE, &["was proposed already"]);

    study(&deployment, &["card", "demo", "--out", "card"]).must_succeed();
    let card = fs::read_to_string(deployment.home.join("card/card.csv")).unwrap();
    assert!(card.contains("First") || card.contains("first_1"), "{card}");
    runs(&mut deployment);
    budget(&deployment);
    let runs = audited(&deployment);
    closed(&deployment);
    touched(&deployment, &runs);
}

/// All that a hospital has answered is worked out again, and the result is signed. Gives the runs, the card's first.
fn audited(deployment: &Deployment) -> Vec<String> {
    let said = at_site(deployment, "north", &["audit", "demo"])
        .must_succeed()
        .stdout;
    let wanted =
        "demo: 6 runs, every answer of this site is the one that follows from its frozen patients";
    assert!(said.contains(wanted), "{said}");
    assert_eq!(said.matches("  verified").count(), 6, "{said}");
    let read = |value: &serde_json::Value| from_base64(value.as_str().unwrap());
    let file = fs::read(deployment.home.join("demo.audit.json")).unwrap();
    let signed: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let word = Warrant {
        token: String::new(),
        chain: signed["chain"]
            .as_array()
            .unwrap()
            .iter()
            .map(read)
            .collect(),
        scheme: u16::try_from(signed["scheme"].as_u64().unwrap()).unwrap(),
        signature: read(&signed["signature"]),
    };
    let text = signed["audit"].as_str().unwrap();
    let certificate = |site: &str| wire::fingerprint(&deployment.credentials(site)).unwrap();
    let holds = |site, text: &str| wire::has_vouched(&certificate(site), text.as_bytes(), &word);
    assert!(holds("site-north", text) && !holds("site-south", text));
    assert!(!holds("site-north", &text.replacen("null", "{}", 1)));
    let audit: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (&audit["study"], &audit["site"]),
        (&"demo".into(), &"north".into())
    );
    let runs: Vec<&serde_json::Value> = audit["runs"].as_array().unwrap().iter().collect();
    // The last run was refused, which follows as well.
    assert!(
        runs.iter().all(|run| run["answers"].as_u64() > Some(0)),
        "{text}"
    );
    at_site(deployment, "north", &["audit", "dem"]).must_fail(USAGE, &["no such approval"]);
    assert!(!deployment.home.join("sites/north/audit").exists());
    runs.iter()
        .map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.trim_end_matches('=').chars();
    let bits: Vec<usize> = digits
        .map(|digit| DIGITS.find(digit).unwrap())
        .flat_map(|digit| (0..6).rev().map(move |bit| digit >> bit & 1))
        .collect();
    let byte = |bits: &[usize]| bits.iter().fold(0, |byte, bit| byte << 1 | bit);
    let bytes = bits.as_chunks::<8>().0.iter();
    bytes
        .map(|bits| u8::try_from(byte(bits)).unwrap())
        .collect()
}

/// What was touched is named, and where.
fn touched(deployment: &Deployment, runs: &[String]) {
    // A closed study is audited as an open one.
    at_site(deployment, "south", &["audit", "demo"]).must_succeed();
    let failed = |wanted: &[&str]| {
        let ran = at_site(deployment, "south", &["audit", "demo"]);
        assert_eq!(ran.code, Some(JOURNAL), "{}{}", ran.stdout, ran.stderr);
        for wanted in wanted {
            assert!(
                ran.stdout.contains(wanted),
                "wanted {wanted:?} in {}",
                ran.stdout
            );
        }
    };
    let folder = deployment.home.join("sites/south");
    let run = runs[1].as_str();
    let with = |path: &str, change: &dyn Fn(&Path, &[u8]), wanted: &[&str]| {
        let path = folder.join(path);
        let kept = fs::read(&path).unwrap();
        change(&path, &kept);
        failed(wanted);
        fs::write(&path, kept).unwrap();
    };
    let copy = format!("transcripts/{run}");
    let in_the_middle = |path: &Path, kept: &[u8]| {
        let mut changed = kept.to_vec();
        let middle = kept.len() * 3 / 4;
        changed[middle] ^= 1;
        fs::write(path, changed).unwrap();
    };
    with(
        &copy,
        &in_the_middle,
        &[run, "not every answer is verified"],
    );
    let shorter = |path: &Path, kept: &[u8]| fs::write(path, &kept[..kept.len() - 9]).unwrap();
    with(
        &copy,
        &shorter,
        &[run, "its copy cannot be read: it ends in the middle"],
    );
    let gone = |path: &Path, _: &[u8]| fs::remove_file(path).unwrap();
    with(&copy, &gone, &[run, "there is no copy of it any more"]);
    let other = |name: &'static str| {
        let other = deployment.home.join("sites/east").join(name);
        move |path: &Path, _: &[u8]| {
            fs::copy(&other, path).unwrap();
        }
    };
    let snapshot = "studies/demo/snapshot.parquet";
    let wanted = ["wanted those that the site committed to when it approved the study"];
    with(snapshot, &other(snapshot), &wanted);
    // A hospital that had covered its answers by another key than its own.
    let wanted = ["exchange 1: the answer that follows is not the one that this site has signed"];
    with("fingerprint.key", &other("fingerprint.key"), &wanted);
    // Another version has no more to say than that it is another, unless its answers have the same bits.
    let kept = fs::read(folder.join(&copy)).unwrap();
    fs::write(folder.join(&copy), by_version(&kept, "0.1.9")).unwrap();
    at_site(deployment, "south", &["audit", "demo"]).must_succeed();
    let wanted = "cannot be verified here: version 0.1.9 took part in the run";
    with("fingerprint.key", &other("fingerprint.key"), &[wanted]);
    fs::write(folder.join(&copy), kept).unwrap();
    at_site(deployment, "south", &["audit", "demo"]).must_succeed();
    at_site(deployment, "south", &["leave", "demo"]).must_succeed();
    at_site(deployment, "south", &["audit", "demo"]).must_fail(USAGE, &["no such approval"]);
}

/// The copy of a run as another version would have written it.
fn by_version(copy: &[u8], version: &str) -> Vec<u8> {
    let (length, rest) = copy.split_at(8);
    let length = u64::from_be_bytes(length.try_into().unwrap()) as usize;
    let (head, rest) = rest.split_at(length);
    let head = std::str::from_utf8(head).unwrap();
    let head = format!("{} {version}", head.split_once(' ').unwrap().0);
    [&(head.len() as u64).to_be_bytes(), head.as_bytes(), rest].concat()
}

/// What runs have used is counted for the study, and a job beyond it is refused by name.
fn budget(deployment: &Deployment) {
    let table = at_site(deployment, "east", &["budget"])
        .must_succeed()
        .stdout;
    for wanted in [
        "demo: open until 2099-12-31, last day 2099-12-31",
        "LIMIT",
        "metrics_for_groups",
    ] {
        assert!(table.contains(wanted), "{table}");
    }
    let json = |site: &str| -> serde_json::Value {
        let told = at_site(deployment, site, &["budget", "demo", "--json"]).must_succeed();
        serde_json::from_str(&told.stdout).unwrap()
    };
    let told = json("east");
    let of = |limit: usize, key: &str| told[0]["limits"][limit][key].as_u64().unwrap();
    // Two regressions, a metric, and a question by it; the card does not count.
    assert_eq!(
        (of(0, "allowed"), of(0, "used"), of(0, "left")),
        (10, 4, 6),
        "{told}"
    );
    assert_eq!(told[0]["limits"][1]["limit"], "rounds");
    assert!(
        of(1, "used") > 2 && of(1, "used") + of(1, "left") == 200,
        "{told}"
    );
    assert_eq!((of(2, "allowed"), of(2, "used")), (100, 1), "{told}");
    at_site(deployment, "east", &["budget", "dem"])
        .must_fail(USAGE, &["no such approval, but of [\"demo\"]"]);

    let rounds = of(1, "left") + 1;
    let job = UNPSL.replace("rank = 1", &format!("rank = 1\nround_limit = {rounds}"));
    let used = of(1, "used");
    let wanted =
        format!("refused by rounds: rounds is 200, of which {used} are used, and the job asks for");
    let wanted = SITES.map(|site| format!("{site}: {wanted}"));
    let wanted = wanted.each_ref().map(String::as_str);
    submit(deployment, &job, "beyond").must_fail(REFUSED, &wanted);
    let config = ["policy", "explain", "--config", "west.toml", "job.toml"];
    let explained = deployment.home.run(&site_agent(), &config);
    explained.must_fail(REFUSED, &[]);
    // What was refused has used nothing.
    assert_eq!(json("east"), told);
}

/// Runs of an open study exchange no keys, and give the same bits after everybody was started again.
fn runs(deployment: &mut Deployment) {
    submit(deployment, REGRESSION, "first").must_succeed();
    let listed = ["journal", "list", "--config", "north.toml"];
    let journal = deployment.home.run(&site_agent(), &listed).must_succeed();
    // Those of the card's run: an entry, and the line of totals.
    let introductions = journal.stdout.matches("introduction").count();
    assert_eq!(introductions, 2, "{}", journal.stdout);
    deployment.kill_coordinator();
    SITES.iter().for_each(|site| deployment.kill_agent(site));
    deployment.start_coordinator();
    SITES.iter().for_each(|site| deployment.start_agent(site));
    submit(deployment, REGRESSION, "second").must_succeed();
    let read = |out: &str| fs::read(deployment.home.join(out).join("coefficients.csv")).unwrap();
    assert_eq!(read("first"), read("second"));
    // Another method, other features, and a question by what it has learned.
    submit(deployment, UNPSL, "metric").must_succeed();
    let result = kindred_tests::results::result(&deployment.home.join("metric"));
    deployment
        .home
        .write("new.csv", "id,first_1,first_3\nnew,0.1,0.2\n");
    let run = result["run"].as_str().unwrap();
    let alike = [
        "ask",
        "neighbours",
        run,
        "--new",
        "new.csv",
        "--id",
        "id",
        "--out",
        "alike",
    ];
    deployment.job(&alike).must_succeed();
}

fn closed(deployment: &Deployment) {
    study(deployment, &["close", "demo"]).must_succeed();
    until_shown(deployment, "demo: closed");
    // A hospital refuses by itself what is asked of a closed study, whoever says that it is open.
    until("the word of it at the site", PATIENCE, || {
        let listed = at_site(deployment, "north", &["list"]).must_succeed();
        listed.stdout.contains("demo  closed").then_some(())
    });
    let explain = ["policy", "explain", "--config", "north.toml", "job.toml"];
    let explained = deployment.home.run(&site_agent(), &explain);
    explained.must_fail(REFUSED, &[]);
    submit(deployment, REGRESSION, "late").must_fail(USAGE, &["the study \"demo\" is closed"]);
    let unknown = ["found no study \"dem\" that names you; did you mean \"demo\"?"];
    study(deployment, &["show", "dem"]).must_fail(USAGE, &unknown);
}

/// A study that is closed before all have approved it: its run ends, nobody opens it later, and its hospitals hear of it, also one
/// that was away.
#[test]
fn a_proposed_study_that_is_closed_never_opens() {
    let mut deployment = Deployment::start();
    draft(&deployment, &format!("{HEAD}{PATIENTS}"), "demo.study.toml").must_succeed();
    let unknown = ["found no study \"dem\"", "`study list` shows yours"];
    study(&deployment, &["close", "dem"]).must_fail(USAGE, &unknown);
    let run = study(&deployment, &["propose", "demo.study.toml"]).must_succeed();
    let run = run.stdout.trim().to_owned();
    let until_listed = |deployment: &Deployment, site: &str, wanted: &str| {
        until(&format!("{wanted} at {site}"), PATIENCE, || {
            let listed = at_site(deployment, site, &["list"]).must_succeed();
            listed.stdout.contains(wanted).then_some(())
        });
    };
    for site in SITES {
        until_listed(&deployment, site, "demo  waits for approval");
    }
    for site in ["north", "west"] {
        at_site(&deployment, site, &["approve", "demo"]).must_succeed();
    }
    until_listed(
        &deployment,
        "north",
        "demo  approved until 2099-12-31, not open yet",
    );
    until_shown(
        &deployment,
        "demo: proposed, waiting for the approval of south, east",
    );
    deployment.kill_agent("west");
    study(&deployment, &["close", "demo"]).must_succeed();
    until_shown(&deployment, "demo: closed");
    until("the run to end", PATIENCE, || {
        let listed = deployment.job(&["list", "--json"]).must_succeed();
        let runs: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let own = runs.as_array()?.iter().find(|one| one["run"] == *run)?;
        (own["status"] == "cancelled").then_some(())
    });
    until_listed(&deployment, "north", "demo  closed");
    until_listed(&deployment, "south", "this site has approved no study");
    deployment.start_agent("west");
    until_listed(&deployment, "west", "demo  closed");
    // Whoever approves it from a file all the same hears that it is closed, and it stays so over a restart.
    for site in ["south", "east"] {
        at_site(&deployment, site, &["approve", "demo.study.toml"]).must_succeed();
        until_listed(&deployment, site, "demo  closed");
    }
    deployment.kill_coordinator();
    deployment.start_coordinator();
    until_shown(&deployment, "demo: closed");
    study(&deployment, &["propose", "demo.study.toml"]).must_fail(USAGE, &["is closed"]);
    study(&deployment, &["close", "demo"]).must_succeed();
    let journal = ["journal", "list", "--config", "north.toml"];
    let journal = deployment.home.run(&site_agent(), &journal).must_succeed();
    assert!(
        !journal.stdout.contains("introduction"),
        "{}",
        journal.stdout
    );
}

#[test]
fn what_is_not_the_study_that_was_approved_is_refused() {
    let deployment = Deployment::alone();
    // All problems of a text at once.
    let wrong = format!("{HEAD}{PATIENTS}").replace("kind = \"binary\"", "kind = \"binery\"");
    let wrong = wrong.replace("until = \"2099-12-31\"", "until = \"soon\"");
    draft(&deployment, &wrong, "wrong.toml").must_fail(USAGE, &["until", "binery"]);
    let nobody =
        format!("{HEAD}{PATIENTS}").replace("\"east\", \"west\"", "\"elsewhere\", \"nowhere\"");
    let wanted = ["found no certificate of elsewhere, nowhere"];
    draft(&deployment, &nobody, "wrong.toml").must_fail(USAGE, &wanted);
    let misspelt = format!("{HEAD}{PATIENTS}").replace("\"south\"", "\"sotuh\"");
    let wanted = ["found no certificate of sotuh; did you mean \"south\"?"];
    draft(&deployment, &misspelt, "wrong.toml").must_fail(USAGE, &wanted);
    assert!(!deployment.home.join("wrong.toml").exists());

    draft(&deployment, &format!("{HEAD}{PATIENTS}"), "demo.study.toml").must_succeed();
    study(&deployment, &["propose", "demo.study.toml"]).must_succeed();
    let other = format!("{HEAD}{PATIENTS}").replace("Who has the class?", "Who has it?");
    draft(&deployment, &other, "other.toml").must_succeed();
    let wanted = ["wanted the one that was proposed", "or another name"];
    study(&deployment, &["propose", "other.toml"]).must_fail(USAGE, &wanted);
    // An operator whom the study does not name.
    deployment.admit_rival();
    deployment.home.write("job.toml", REGRESSION);
    let rival = deployment.job_by_rival(&["submit", "job.toml"]);
    rival.must_fail(
        USAGE,
        &["wanted one of the operators of the study \"demo\""],
    );
    let propose = [
        "study",
        "propose",
        "demo.study.toml",
        "--config",
        "rival.toml",
    ];
    let rival = deployment.home.run(&coordinator(), &propose);
    rival.must_fail(
        USAGE,
        &["wanted one of the operators of the study \"demo\""],
    );
    // A job of what the study does not have.
    for (from, to, wanted) in [
        (
            "outcome = \"class\"",
            "outcome = \"clas\"",
            "did you mean \"class\"?",
        ),
        (
            "[regression]",
            "features = [\"first_2\"]\n[regression]",
            "\"first_2\"",
        ),
        (
            "method = \"regression\"",
            "method = \"forest\"\n",
            "\"forest\"",
        ),
    ] {
        let job = REGRESSION.replacen(from, to, 1);
        submit(&deployment, &job, "out").must_fail(USAGE, &[wanted]);
    }
    // A site that approves by another certificate than the text names.
    let stranger = fs::read_to_string(deployment.home.join("demo.study.toml")).unwrap();
    let digits = stranger
        .split("sha256:")
        .nth(2)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let stranger = stranger
        .replace(digits, &"0".repeat(64))
        .replace("\"demo\"", "\"strange\"");
    deployment.home.write("strange.toml", &stranger);
    at_site(&deployment, "north", &["approve", "strange.toml"])
        .must_fail(REFUSED, &["certificate"]);
}
