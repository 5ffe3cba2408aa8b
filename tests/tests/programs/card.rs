//! The card of a study: four hospitals approve it, their agents count and sum, and the table is that of the pooled rows, as pandas and
//! the package tableone have it (tests/reference/card).

use crate::browser;
use kindred_tests::deployment::{Deployment, SITES, tls_of};
use kindred_tests::programs::{Ran, site_agent};
use kindred_tests::workspace::{real_data, root, text};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const JOB: &str = "name = \"card\"\nmethod = \"card\"\nstudy = \"table.study.toml\"\n";

/// What hospitals declare of the made-up patients' columns.
const COLUMNS: &str = "\
[columns.sex]\nlevels = { \"0\" = \"0\", \"1\" = \"1\" }\n\
[columns.smoking]\nlevels = { never = \"never\", former = \"former\", current = \"current\" }\n\
[columns.stage]\nlevels = { I = \"I\", II = \"II\", III = \"III\", IV = \"IV\" }\norder = [\"I\", \"II\", \"III\", \"IV\"]\n";

const MADE_UP: &str = "\
[[outcomes]]\nname = \"disease\"\nlabel = \"Disease\"\ncolumn = \"disease\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n\
level_labels = { positive = \"with disease\", negative = \"without disease\" }\n\
[[outcomes]]\nname = \"death\"\nlabel = \"Death\"\ncolumn = \"days\"\nkind = \"survival\"\nevent = \"died\"\nhorizon = 1000\nunit = \"days\"\n\
level_labels = { event = \"died\", censored = \"alive when last seen\" }\n\
[[outcomes]]\nname = \"score\"\nlabel = \"Score\"\ncolumn = \"score\"\nkind = \"numeric\"\nunit = \"points\"\n\
[[features]]\nname = \"age\"\nlabel = \"Age\"\nkind = \"numeric\"\nunit = \"years\"\nrange = [0, 120]\n\
[[features]]\nname = \"cholesterol\"\nlabel = \"Serum cholesterol\"\nkind = \"numeric\"\nunit = \"mg/dl\"\n\
[[features]]\nname = \"sex\"\nlabel = \"Sex: male\"\nkind = \"binary\"\n\
[[features]]\nname = \"smoking\"\nlabel = \"Smoking\"\nkind = \"categorical\"\nlevels = [\"never\", \"former\", \"current\"]\n\
[[features]]\nname = \"stage\"\nlabel = \"Stage\"\nkind = \"ordinal\"\nlevels = [\"I\", \"II\", \"III\", \"IV\"]\n";

/// Four hospitals with the default rules, each with a table of patients.
fn hospitals(tables: [String; 4], columns: &str, source: &str) -> Deployment {
    let mut deployment = Deployment::prepare();
    let port = deployment.port();
    for (site, table) in SITES.into_iter().zip(tables) {
        deployment.home.write(&format!("data/{site}.csv"), &table);
        let tls = tls_of(&format!("site-{site}"));
        let config = format!(
            "site = \"{site}\"\ncoordinator = \"127.0.0.1:{port}\"\nfolder = \"sites/{site}\"\n{tls}\
             [source]\nkind = \"csv\"\npath = \"data/{site}.csv\"\n{source}\
             [policy]\noperators = [\"*\"]\nmethods = [\"*\"]\nclass_patients_min = 6\n{columns}"
        );
        deployment.home.write(&format!("{site}.toml"), &config);
    }
    deployment.start_coordinator();
    deployment
}

/// Writes a study that all four approve before their agents start, which say so before and after it is proposed.
fn approve(deployment: &mut Deployment, outcomes_and_features: &str) {
    write_study(deployment, outcomes_and_features);
    for site in SITES {
        approved(deployment, site, &["--confirm-units"]).must_succeed();
        deployment.start_agent(site);
    }
}

fn approved(deployment: &Deployment, site: &str, options: &[&str]) -> Ran {
    let config = format!("{site}.toml");
    let arguments = ["study", "approve", "--config", &config, "table.study.toml"];
    let arguments = [&arguments, options].concat();
    deployment.home.run(&site_agent(), &arguments)
}

fn write_study(deployment: &Deployment, outcomes_and_features: &str) {
    let certificate = |party: &str| wire::fingerprint(&deployment.credentials(party)).unwrap();
    let mut study = format!(
        "name = \"table\"\ntitle = \"Who are the patients?\"\npurpose = \"A test\"\nuntil = \"2099-12-31\"\n\
         methods = [\"regression\"]\nlimits = {{ runs = 10, rounds = 100, queries = 0 }}\n\
         operators = [{{ name = \"researcher\", certificate = \"{}\" }}]\n",
        certificate("operator-researcher")
    );
    for site in SITES {
        let own = certificate(&format!("site-{site}"));
        let _ = write!(
            study,
            "[[hospitals]]\nname = \"{site}\"\ncertificate = \"{own}\"\n"
        );
    }
    deployment
        .home
        .write("table.study.toml", &(study + outcomes_and_features));
}

fn submit(deployment: &Deployment) -> Ran {
    deployment.home.write("card.toml", JOB);
    deployment.job(&["submit", "card.toml", "--wait", "--out", "card"])
}

/// The made-up patients by hospital, each record as `change` has it.
fn made_up(change: impl Fn(usize, &mut Vec<String>)) -> [String; 4] {
    let mut reader =
        csv::Reader::from_path(root().join("tests/reference/card/patients.csv")).unwrap();
    let names = reader.headers().unwrap().clone();
    let head: Vec<&str> = names.iter().skip(1).collect();
    let mut tables = [(); 4].map(|()| head.join(",") + "\n");
    for (row, record) in reader.records().enumerate() {
        let mut fields: Vec<String> = record.unwrap().iter().map(str::to_owned).collect();
        change(row, &mut fields);
        let place = SITES.iter().position(|site| *site == fields[0]).unwrap();
        tables[place] += &(fields[1..].join(",") + "\n");
    }
    tables
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_card_of_a_study_is_the_table_of_the_pooled_rows() {
    let mut deployment = hospitals(made_up(|_, _| ()), COLUMNS, "patient = \"patient\"\n");
    approve(&mut deployment, MADE_UP);
    submit(&deployment).must_succeed();
    let folder = deployment.home.join("card");
    let (card, wanted) = (json(&folder.join("card.json")), expected("made_up"));
    check(&card, &wanted);
    let outcome = |place: usize, key: &str| number(&card["outcomes"][place][key]);
    let of = |outcome: &str, key: &str| number(&wanted["outcomes"][outcome][key]);
    close(
        outcome(1, "time_at_risk"),
        of("death", "time_at_risk"),
        "time at risk",
    );
    close(outcome(2, "mean"), of("score", "mean"), "mean score");
    let deviation = of("score", "standard_deviation");
    close(outcome(2, "standard_deviation"), deviation, "its deviation");
    // Stage IV has few patients in every group; its counts are withheld, and the others in tens.
    let stage = &card["features"][4];
    assert_eq!(stage["counts_in"], 10, "{stage}");
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    for words in [
        "<h1>Who are the patients?</h1>",
        "of 4 hospitals",
        "2099-12-31",
        "Patients by Death",
        "alive when last seen (n = ",
        "Serum cholesterol (mg/dl)",
        "fewer than 10",
        "time at risk",
    ] {
        assert!(page.contains(words), "no {words:?} on the page");
    }
    browser::check(&deployment.home, &folder.join("report.html"), "card");
    let table = fs::read_to_string(folder.join("card.csv")).unwrap();
    assert!(table.starts_with("outcome,group,patients,feature,level,unit,count,"));
    assert!(table.contains("fewer than 10"), "{table}");
    let result = json(&folder.join("result.json"));
    assert_eq!(result["model"], json(&folder.join("card.json")));
    assert_eq!(result["method"], "card");
    assert_eq!(result["status"], "completed");
}

#[test]
fn numbers_without_a_unit_need_the_word_of_their_hospital() {
    let deployment = hospitals(made_up(|_, _| ()), COLUMNS, "patient = \"patient\"\n");
    write_study(&deployment, MADE_UP);
    let wanted = [
        "units: found no unit in site.toml for age (years), cholesterol (mg/dl)",
        "--confirm-units",
    ];
    approved(&deployment, "north", &[]).must_fail(4, &wanted);
    assert!(!deployment.home.join("sites/north/studies/table").exists());
    let config = ["--config", "north.toml", "table.study.toml"];
    let reviewed = [&["study", "review"][..], &config].concat();
    let review = deployment.home.run(&site_agent(), &reviewed).must_succeed();
    let said = "No unit in site.toml for age (years), cholesterol (mg/dl)";
    assert!(review.stdout.contains(said), "{}", review.stdout);
    // In a unit of which no conversion is known, and then with one.
    let own = fs::read_to_string(deployment.home.join("north.toml")).unwrap();
    let units = "[columns.age]\nunit = \"years\"\n[columns.cholesterol]\nunit = \"mmol/l\"\n";
    deployment
        .home
        .write("north.toml", &format!("{own}{units}"));
    approved(&deployment, "north", &[]).must_fail(3, &["the unit \"mmol/l\""]);
    let convert = "convert = [{ to = \"mg/dl\", factor = 38.67 }]\n";
    deployment
        .home
        .write("north.toml", &format!("{own}{units}{convert}"));
    approved(&deployment, "north", &[]).must_succeed();
}

/// The table is that of the others.
#[test]
fn few_patients_by_whom_outcomes_differ_are_left_out_of_the_card() {
    // Five have a disease, and neither a score nor follow-up.
    let few = |row: usize, fields: &mut Vec<String>| {
        if (60..65).contains(&row) {
            fields[7] = "0".to_owned();
            fields[9] = String::new();
            fields[10] = String::new();
        }
    };
    let mut deployment = hospitals(made_up(few), COLUMNS, "patient = \"patient\"\n");
    approve(&mut deployment, MADE_UP);
    submit(&deployment).must_succeed();
    let folder = deployment.home.join("card");
    let card = json(&folder.join("card.json"));
    let all = expected("made_up")["groups"][0]["patients"].clone();
    assert_eq!(card["left_out"], 10);
    assert_eq!(
        card["patients"].as_u64().unwrap() + 5,
        all.as_u64().unwrap()
    );
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Up to 10 more patients are in no run of the study"));
}

#[test]
fn four_real_hospitals_have_the_table_of_their_pooled_rows() {
    let Some(data) = real_data("heart_disease") else {
        return;
    };
    let names = ["cleveland", "hungarian", "switzerland", "va"];
    let tables = names.map(|name| fs::read_to_string(data.join(format!("{name}.csv"))).unwrap());
    let coded = [
        ("sex", &["0", "1"][..]),
        ("cp", &["1", "2", "3", "4"]),
        ("fbs", &["0", "1"]),
        ("restecg", &["0", "1", "2"]),
        ("exang", &["0", "1"]),
        ("slope", &["1", "2", "3"]),
        ("thal", &["3", "6", "7"]),
    ];
    let mut columns = "[columns.num]\nlevels = { \"0\" = \"0\", \"*\" = \"1\" }\n".to_owned();
    let mut study = "[[outcomes]]\nname = \"disease\"\nlabel = \"Coronary artery disease\"\ncolumn = \"num\"\nkind = \"binary\"\n\
                     positive = [\"1\", \"2\", \"3\", \"4\"]\nnegative = [\"0\"]\n"
        .to_owned();
    for name in ["age", "trestbps", "chol", "thalach", "oldpeak"] {
        let missing = match name {
            "trestbps" | "chol" => "missing = [\"0\"]\n",
            _ => "",
        };
        let _ = write!(
            study,
            "[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n{missing}"
        );
        let _ = write!(columns, "[columns.{name}]\n{missing}");
    }
    for (name, levels) in coded {
        let kind = match levels.len() {
            2 => "kind = \"binary\"\n".to_owned(),
            _ => format!("kind = \"categorical\"\nlevels = {levels:?}\n"),
        };
        let _ = write!(study, "[[features]]\nname = \"{name}\"\n{kind}");
        let same: Vec<String> = levels
            .iter()
            .map(|one| format!("\"{one}\" = \"{one}\""))
            .collect();
        let _ = write!(
            columns,
            "[columns.{name}]\nlevels = {{ {} }}\n",
            same.join(", ")
        );
    }
    let mut deployment = hospitals(tables, &columns, "");
    approve(&mut deployment, &study);
    submit(&deployment).must_succeed();
    let card = json(&deployment.home.join("card").join("card.json"));
    assert_eq!(card["patients"], 920);
    check(&card, &expected("heart_disease"));
}

fn expected(data: &str) -> Value {
    let all: Value = serde_json::from_str(&text("tests/reference/card/expected.json")).unwrap();
    all[data].clone()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn close(found: f64, wanted: f64, what: &str) {
    let error = (found - wanted).abs() / wanted.abs().max(1.0);
    assert!(error <= 1e-9, "{what}: {found}, wanted {wanted}");
}

/// Every figure of the card is that of the pooled rows, or what may be published of it.
fn check(card: &Value, wanted: &Value) {
    let groups = wanted["groups"].as_array().unwrap();
    assert_eq!(card["patients"], groups[0]["patients"]);
    let told = card["outcomes"].as_array().unwrap().iter();
    let told = told.flat_map(|outcome| outcome["groups"].as_array().unwrap());
    for (found, wanted) in told.zip(&groups[1..]) {
        assert_eq!(found["patients"], wanted["patients"], "{found}");
    }
    let (mut means, mut exact, mut differences) = (0, 0, 0);
    for feature in card["features"].as_array().unwrap() {
        let name = feature["name"].as_str().unwrap();
        for (found, wanted) in feature["groups"].as_array().unwrap().iter().zip(groups) {
            assert_eq!(
                (&found["outcome"], &found["group"]),
                (&wanted["outcome"], &wanted["group"])
            );
            let what = format!("{name} of {found}");
            let number_wanted = &wanted["numbers"][name];
            let known = match number_wanted {
                Value::Null => &wanted["levels"][name],
                number => number,
            };
            let missing = known["missing"].as_u64().unwrap();
            assert_eq!(found["missing"], missing.next_multiple_of(10), "{what}");
            if let Value::Object(_) = number_wanted {
                for key in ["mean", "standard_deviation"] {
                    close(number(&found[key]), number(&number_wanted[key]), &what);
                }
                means += 1;
                continue;
            }
            let step = feature["counts_in"].as_u64().unwrap();
            let counts = known["counts"].as_array().unwrap();
            for (level, count) in found["levels"].as_array().unwrap().iter().zip(counts) {
                let count = count.as_u64().unwrap();
                match level["count"].as_u64() {
                    None => assert!(count < 10, "{what}: {count}"),
                    Some(told) if step == 1 => {
                        assert_eq!(told, count, "{what}");
                        let present: u64 = counts.iter().map(|one| one.as_u64().unwrap()).sum();
                        close(
                            number(&level["share"]),
                            count as f64 / present as f64,
                            &what,
                        );
                        exact += 1;
                    }
                    Some(told) => {
                        assert!(count >= 10 && told % step == 0, "{what}: {told}");
                        assert!(told.abs_diff(count) <= step / 2, "{what}: {told}, {count}");
                    }
                }
            }
        }
        let step = feature["counts_in"].as_u64().unwrap_or(1);
        for (found, outcome) in feature["differences"]
            .as_array()
            .unwrap()
            .iter()
            .zip(card["outcomes"].as_array().unwrap())
        {
            let wanted = &wanted["differences"][outcome["name"].as_str().unwrap()][name];
            if step == 1 && wanted.is_number() {
                close(
                    number(found),
                    number(wanted),
                    &format!("{name}, difference"),
                );
                differences += 1;
            }
        }
    }
    println!(
        "{means} means, {exact} exact counts and {differences} differences are those of the pooled rows"
    );
    assert!(means > 10 && exact > 10 && differences > 3);
}
