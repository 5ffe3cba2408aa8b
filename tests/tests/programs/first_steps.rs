//! Promise: from installed programs to the card of a study of three hospitals in 12 commands at most, at most three at a hospital,
//! and no file written by hand but the study's text, which begins as a draft from a hospital's table. What the commands need to know of a table they propose with its reason.

use kindred_tests::deployment::{WAITS, free_port};
use kindred_tests::exit::{DATA, USAGE};
use kindred_tests::programs::{Home, Process, coordinator, site_agent};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// The one file that people write, as it is for a study that nobody has drafted.
const STUDY: &str = r#"name = "heart"
title = "Who has coronary artery disease?"
purpose = "A test"
until = "2099-12-31"
operators = ["researcher"]
hospitals = ["north", "south", "east"]
methods = ["regression"]
limits = { runs = 10, rounds = 200, queries = 0 }

[[outcomes]]
name = "disease"
label = "Coronary artery disease"
column = "disease"
kind = "binary"
positive = ["1"]
negative = ["0"]

[[features]]
name = "age"
label = "Age"
kind = "numeric"
unit = "years"
range = [0, 120]

[[features]]
name = "chol"
label = "Serum cholesterol"
kind = "numeric"
unit = "mg/dl"
range = [50, 700]

[[features]]
name = "cp"
label = "Chest pain"
kind = "categorical"
levels = ["typical", "atypical", "none"]

[[features]]
name = "angina"
label = "Angina by exercise"
kind = "binary"
"#;
const SITES: [&str; 3] = ["north", "south", "east"];
/// Commands from the first to the card, at most.
const COMMANDS_MAX: usize = 12;
/// Of these at one hospital.
const COMMANDS_OF_HOSPITAL_MAX: usize = 3;

/// How a hospital writes its table.
struct Form {
    header: &'static str,
    delimiter: char,
    decimal: char,
    truth: [&'static str; 2],
    pain: [&'static str; 3],
    missing: &'static str,
}

/// No two hospitals write alike.
fn form(site: &str) -> Form {
    match site {
        "north" => Form {
            header: "patient_id,age (years),chol_mg_dl,cp,angina,disease",
            delimiter: ',',
            decimal: '.',
            truth: ["0", "1"],
            pain: ["typical", "atypical", "none"],
            missing: "",
        },
        "south" => Form {
            header: "ID;AGE;Serum cholesterol [mg/dl];CP;Angina by exercise;DISEASE",
            delimiter: ';',
            decimal: ',',
            truth: ["no", "yes"],
            pain: ["Typical", "Atypical", "None"],
            missing: "unknown",
        },
        _ => Form {
            header: "subject\tage\tcholesterol\tcp\tangina\tdisease",
            delimiter: '\t',
            decimal: '.',
            truth: ["neg", "pos"],
            pain: ["typical", "atypical", "none"],
            missing: "NA",
        },
    }
}

/// A hospital's table.
fn table(site: &str, patients: usize) -> String {
    let Form {
        header,
        delimiter,
        decimal,
        truth,
        pain,
        missing,
    } = form(site);
    let mut text = format!("{header}\n");
    for place in 0..patients {
        let age = 40 + place * 7 % 45;
        let chol = match place % 25 {
            3 => missing.to_owned(),
            _ => format!("{}.5", 150 + place * 13 % 200).replace('.', &decimal.to_string()),
        };
        let fields = [
            format!("{site}-{place}"),
            age.to_string(),
            chol,
            pain[place % 3].to_owned(),
            truth[place / 3 % 2].to_owned(),
            truth[usize::from((place * 5 + age) % 7 > 3)].to_owned(),
        ];
        let _ = writeln!(text, "{}", fields.join(&delimiter.to_string()));
    }
    text
}

/// A home that counts the commands that are given in it, by who gives them.
struct Walk {
    home: Home,
    commands: BTreeMap<String, usize>,
}

impl Walk {
    fn count(&mut self, who: &str) {
        *self.commands.entry(who.to_owned()).or_default() += 1;
    }

    fn coordinator(&mut self, arguments: &[&str]) -> String {
        self.count("coordinator");
        self.home
            .run(&coordinator(), arguments)
            .must_succeed()
            .stdout
    }

    fn agent(&mut self, site: &str, arguments: &[&str]) -> String {
        self.count(site);
        self.home
            .run(&site_agent(), arguments)
            .must_succeed()
            .stdout
    }

    fn start(&mut self, name: &str, arguments: &[&str]) -> Process {
        self.count(name);
        let program = match SITES.contains(&name) {
            true => site_agent(),
            false => coordinator(),
        };
        self.home.start(name, &program, arguments)
    }
}

/// A draft, as people complete it: labels by which the other hospitals know the columns, and plausible values.
fn completed(draft: &str) -> String {
    let range = "# range = [lowest, highest] of plausible values";
    let mut text = draft
        .replace("purpose = \"Its purpose\"", "purpose = \"A test\"")
        .replacen(range, "range = [0, 120]", 1)
        .replacen(range, "range = [50, 700]", 1);
    for (column, label) in [
        ("disease", "Coronary artery disease"),
        ("age", "Age"),
        ("chol", "Serum cholesterol"),
        ("cp", "Chest pain"),
        ("angina", "Angina by exercise"),
    ] {
        let name = format!("\nname = \"{column}\"\n");
        assert!(text.contains(&name), "{column}\n---\n{text}");
        text = text.replace(&format!("label = \"{column}\"\n"), "");
        text = text.replace(&name, &format!("{name}label = \"{label}\"\n"));
    }
    text
}

#[test]
fn few_commands_lead_to_the_card_of_a_study_of_three_hospitals() {
    let home = Home::new();
    for (site, patients) in SITES.into_iter().zip([130, 90, 70]) {
        home.write(&format!("{site}-export.csv"), &table(site, patients));
    }
    let commands = BTreeMap::new();
    let mut walk = Walk { home, commands };
    let (port, enrolment) = (free_port().to_string(), free_port().to_string());

    let init = [
        "init",
        "--hosts",
        "127.0.0.1",
        "--sites",
        "north,south,east",
        "--operators",
        "researcher",
        "--port",
        &port,
        "--enrolment-port",
        &enrolment,
        "--out",
        "kindred",
    ];
    let said = walk.coordinator(&init);
    let tokens: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("kindred1/"))
        .collect();
    assert_eq!(tokens.len(), 3, "{said}");
    let mut serving = walk.start(
        "coordinator",
        &["serve", "--config", "kindred/coordinator.toml"],
    );
    serving.wait_for(WAITS);

    let draft = "study draft --from north-export.csv --outcome disease --out heart.toml";
    walk.agent("north", &draft.split(' ').collect::<Vec<_>>());
    let text = fs::read_to_string(walk.home.join("heart.toml")).unwrap();
    walk.home.write("heart.toml", &completed(&text));

    let mut agents = Vec::new();
    for (site, token) in SITES.into_iter().zip(tokens) {
        let export = format!("{site}-export.csv");
        let enrol = [
            "enrol",
            token,
            "--out",
            site,
            "--data",
            &export,
            "heart.toml",
            "--confirm-units",
            "--serve",
        ];
        let mut agent = walk.start(site, &enrol);
        agent.wait_for("joined the coordinator");
        agents.push(agent);
    }
    let operator = "kindred/pki/operator-researcher/operator.toml";
    let propose = [
        "study",
        "propose",
        "heart.toml",
        "--certificates",
        "kindred/pki",
        "--config",
        operator,
        "--wait",
        "--out",
        "card",
    ];
    let mut proposing = walk.start("proposing", &propose);
    for (site, agent) in SITES.into_iter().zip(&mut agents) {
        agent.wait_for("waits for this site's approval");
        let config = format!("{site}/site.toml");
        let text = fs::read_to_string(walk.home.join(&config)).unwrap();
        assert!(text.contains("# review: column"), "{text}");
        walk.agent(site, &["study", "approve", "--config", &config, "heart"]);
    }
    assert_eq!(proposing.wait(), Some(0), "{}", proposing.log());
    let commands = walk.commands.values();
    assert!(commands.sum::<usize>() <= COMMANDS_MAX);
    let of_site = SITES.map(|site| walk.commands[site]);
    assert!(of_site.iter().all(|one| *one <= COMMANDS_OF_HOSPITAL_MAX));

    // The card knows of all patients, and of a column that each hospital writes in its own way.
    let result = fs::read_to_string(walk.home.join("card/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    let card = &result["model"];
    let label = &card["outcomes"][0]["label"];
    assert_eq!(label, "Coronary artery disease", "{result}");
    assert_eq!(card["patients"], 290);
    // No code of a hospital is lost: "None" is a level here, and "NA" none.
    let all = |place: usize| &card["features"][place]["groups"][0];
    let missing = [0, 1, 2, 3].map(|place| all(place)["missing"].as_u64().unwrap());
    assert!(
        missing[1] > 0 && [missing[0], missing[2], missing[3]] == [0; 3],
        "{result}"
    );
    let yes = |patients: usize| (0..patients).filter(|place| place / 3 % 2 == 1).count();
    let wanted = [130, 90, 70].map(yes).iter().sum::<usize>() as f64;
    let found = all(3)["levels"][1]["count"].as_f64().unwrap();
    assert!(
        (found - wanted).abs() <= 10.0,
        "found {found}, wanted {wanted}"
    );
    let sites = result["sites"].as_array().unwrap();
    assert_eq!(sites.len(), 3);
    assert!(walk.home.join("card/report.html").exists());
    for site in SITES {
        assert!(
            !walk
                .home
                .join(&format!("kindred/pki/site-{site}/key.pem"))
                .exists()
        );
    }
}

#[test]
fn what_nobody_can_know_is_a_question_that_keeps_the_file_from_use() {
    let home = Home::new();
    home.write("heart.toml", STUDY);
    let head = "site = \"east\"\ncoordinator = \"localhost:1\"\nfolder = \"agent\"\n\n\
        [tls]\nca = \"ca.pem\"\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n\n";
    home.write(
        "site.toml",
        &format!("{head}[source]\nkind = \"csv\"\npath = \"none.csv\"\n"),
    );
    let secret = "peculiar-code";
    let odd = table("east", 70).replacen("typical", secret, 1);
    home.write("export.csv", &odd.replace("angina", "effort"));
    let init = [
        "site",
        "init",
        "--config",
        "site.toml",
        "--data",
        "export.csv",
        "heart.toml",
    ];
    let ran = home.run(&site_agent(), &init);
    let ran = ran.must_fail(
        USAGE,
        &[
            "4 questions are open",
            "In which unit are the numbers of \"age\"? The study has years",
            "In which unit are the numbers of \"cholesterol\"? The study has mg/dl",
            "Which column of the table is angina (Angina by exercise)?",
            "Which levels are the 1 codes of \"cp\" that are listed above?",
        ],
    );
    // On the terminal of the hospital a code may be seen; in an error, which may come into a log, never.
    assert!(
        ran.stdout.contains(secret) && !ran.stderr.contains(secret),
        "{}",
        ran.stderr
    );
    let lowered = ["policy", "lowered", "--config", "site.toml"];
    let refused = home
        .run(&site_agent(), &lowered)
        .must_fail(USAGE, &["an open question", "open"]);
    assert!(!refused.stderr.contains(secret), "{}", refused.stderr);

    // Answered by a person, it is a configuration; what they wrote is not written over.
    let text = fs::read_to_string(home.join("site.toml")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("open = "));
    home.write("site.toml", &lines.collect::<Vec<_>>().join("\n"));
    home.run(&site_agent(), &lowered).must_succeed();
    let again = home.run(&site_agent(), &init);
    again.must_fail(
        USAGE,
        &["site.toml, line", "[columns.", "never written over"],
    );

    // A file that is no table says which line is wrong, and leaves the configuration as it is.
    home.write("site.toml", head);
    for (bytes, wanted) in [
        (
            &b"id,age\n1,\xe4\n"[..],
            "line 2: found text that is not UTF-8",
        ),
        (b"id\n1\n", "no table of two columns"),
        (b"PAR1", "a Parquet file"),
    ] {
        fs::write(home.join("export.csv"), bytes).unwrap();
        home.run(&site_agent(), &init)
            .must_fail(DATA, &["export.csv", wanted]);
        assert_eq!(fs::read_to_string(home.join("site.toml")).unwrap(), head);
    }
}

#[test]
fn the_proposal_is_a_configuration_that_fits_the_study() {
    let home = Home::new();
    home.write("heart.toml", STUDY);
    let head = "site = \"south\"\ncoordinator = \"localhost:1\"\nfolder = \"agent\"\n\n\
        [tls]\nca = \"ca.pem\"\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n\n";
    home.write("site.toml", head);
    home.write("export.csv", &table("south", 90));
    let init = [
        "site",
        "init",
        "--config",
        "site.toml",
        "--data",
        "export.csv",
        "heart.toml",
        "--confirm-units",
    ];
    home.run(&site_agent(), &init).must_succeed();
    let config = site_agent::config::SiteConfig::open(&home.join("site.toml")).unwrap();
    let source = &config.source;
    assert_eq!(source.patient.as_deref(), Some("ID"));
    assert_eq!(source.missing, ["unknown"]);
    let named = |name: &str| source.columns[name].column.as_deref();
    assert_eq!(named("chol"), Some("Serum cholesterol [mg/dl]"));
    assert_eq!(named("angina"), Some("Angina by exercise"));
    assert_eq!(source.columns["chol"].unit.as_deref(), Some("mg/dl"));
    let levels = source.columns["angina"].levels.as_ref().unwrap();
    assert_eq!((&*levels["yes"], &*levels["no"]), ("1", "0"));
    assert_eq!(
        source.columns["cp"].levels.as_ref().unwrap()["Typical"],
        "typical"
    );
    // The agent's own check finds nothing to mend.
    home.write("heart.study.toml", STUDY);
    home.write(
        "job.toml",
        "name = \"a\"\nmethod = \"regression\"\nstudy = \"heart.study.toml\"\noutcome = \"disease\"\n[regression]\n",
    );
    let check = ["data", "check", "--config", "site.toml", "job.toml"];
    home.run(&site_agent(), &check).must_succeed();
}
