//! Promise: a metric is learned from pairs of patients that physicians have judged, alone or with the outcome, at one hospital and over
//! several; the pairs never leave, and what is wrong with them is named by line.

use kindred_tests::draws::Draws;
use kindred_tests::programs::{Home, Ran, coordinator, site_agent};
use kindred_tests::results::result;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;

const SITES: [&str; 3] = ["north", "south", "east"];
const PATIENTS: usize = 90;
const COLUMNS: [&str; 6] = ["age", "pressure", "marker", "weight", "noise_1", "noise_2"];
/// By which the outcome is told, and by which physicians go.
const OF_OUTCOME: [&str; 2] = ["age", "pressure"];
const OF_PHYSICIANS: [&str; 2] = ["marker", "weight"];

fn patient(draws: &mut Draws) -> usize {
    (draws.number() * PATIENTS as f64) as usize
}

/// Patients of each site, and pairs of them that a physician calls similar where marker and weight say so.
fn write(home: &Home) {
    let mut draws = Draws(7);
    for site in SITES {
        let mut table = format!("patient,{},class\n", COLUMNS.join(","));
        let mut kinds = Vec::new();
        for patient in 0..PATIENTS {
            let values = COLUMNS.map(|_| draws.normal());
            let is_ill = values[0] + values[1] + 0.3 * draws.normal() > 0.0;
            kinds.push((values[2] > 0.0, values[3] > 0.0));
            let values = values.map(|one| format!("{one:.3}")).join(",");
            writeln!(table, "{site}-{patient},{values},{}", u8::from(is_ill)).unwrap();
        }
        home.write(&format!("data/{site}.csv"), &table);
        let mut pairs = "patient,other,similar,who\n".to_owned();
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 400 {
            let (one, other) = (patient(&mut draws), patient(&mut draws));
            if one < other && seen.insert((one, other)) {
                let similar = if kinds[one] == kinds[other] {
                    "yes"
                } else {
                    "no"
                };
                writeln!(pairs, "{site}-{one},{site}-{other},{similar},ward").unwrap();
            }
        }
        home.write(&format!("data/{site}.pairs.csv"), &pairs);
    }
}

fn job(unpsl: &str) -> String {
    let mut text = format!(
        "name = \"judged\"\nmethod = \"unpsl\"\nsites = {SITES:?}\n\
         [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n"
    );
    for name in COLUMNS {
        writeln!(text, "[[features]]\nname = \"{name}\"\nkind = \"numeric\"").unwrap();
    }
    text + "[pairs]\nlabel = \"Judged similar on the ward\"\n[unpsl]\n" + unpsl
}

/// The least norm of the named rows, and the largest of all others.
fn norms(found: &Value, named: &[&str]) -> (f64, f64) {
    let (mut least, mut others) = (f64::INFINITY, 0.0_f64);
    for row in found["features"].as_array().unwrap() {
        let norm = row["norm"].as_f64().unwrap();
        match named.contains(&row["name"].as_str().unwrap()) {
            true => least = least.min(norm),
            false => others = others.max(norm),
        }
    }
    (least, others)
}

/// What a command that fails says.
fn failure(ran: Ran) -> String {
    assert_ne!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran.stdout + &ran.stderr
}

fn notes(found: &Value) -> String {
    let notes = found["notes"].as_array().unwrap().iter();
    notes
        .map(|one| one.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn three_hospitals_learn_from_the_pairs_of_their_physicians() {
    let home = Home::new();
    write(&home);
    let learned = |unpsl: &str, out: &str| {
        home.write("job.toml", &job(unpsl));
        let arguments = ["simulate", "job.toml", "--data", "data", "--out", out];
        home.run(&coordinator(), &arguments).must_succeed();
        result(&home.join(out))
    };
    let by_outcome = learned("", "outcome");
    let (own, others) = norms(&by_outcome, &OF_OUTCOME);
    assert!(own > 2.0 * others, "{own}, {others}");
    assert!(!notes(&by_outcome).contains("physicians"));
    let by_pairs = learned("supervision = \"physician\"\n", "pairs");
    assert_eq!(by_pairs["status"], "converged");
    let (own, others) = norms(&by_pairs, &OF_PHYSICIANS);
    assert!(own > 2.0 * others, "{own}, {others}");
    let said = notes(&by_pairs);
    assert!(
        said.contains("pairs of patients that physicians judged similar"),
        "{said}"
    );
    // Of pairs of a kind nobody reads how many there are.
    let tables = by_pairs["evaluation"].as_array();
    let pairs = tables.unwrap().iter().find(|one| one["rule"] == "pairs");
    let told = pairs.unwrap()["patients"].as_u64().unwrap();
    assert!(told >= 1_200 && told.is_multiple_of(10), "{told}");
    assert!(
        by_outcome["validation"]["scores"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["rule"] != "pairs")
    );
    held_out_pairs(&home, &by_pairs);
    let by_both = learned("supervision = \"both\"\njudged_counts = 20\n", "both");
    assert_eq!(by_both["status"], "converged");
    let named = [OF_OUTCOME, OF_PHYSICIANS].concat();
    let (own, others) = norms(&by_both, &named);
    assert!(own > others, "{own}, {others}");
    // What left a hospital names no pair and no patient.
    for site in SITES {
        let journal = home
            .join("pairs")
            .join("sites")
            .join(site)
            .join("journal.jsonl");
        let journal = fs::read_to_string(journal).unwrap();
        assert!(!journal.contains("ward") && !journal.contains(&format!("{site}-1")));
    }
}

/// Pairs of a kind, in the table of a result or of a site's figures.
fn of_pairs(tables: &Value) -> Option<&Value> {
    tables
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["rule"] == "pairs")
}

/// The area under the curve of judged pairs is of those alone whose two patients were held out in one fold.
fn held_out_pairs(home: &Home, found: &Value) {
    let mut all = [0, 0];
    for site in SITES {
        let folder = home.join("pairs").join("sites").join(site);
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        let folds = read("folds.csv");
        let fold_of: HashMap<&str, &str> = folds
            .lines()
            .filter_map(|line| line.split_once(','))
            .collect();
        let pairs = fs::read_to_string(home.join(&format!("data/{site}.pairs.csv"))).unwrap();
        let mut wanted = [0, 0];
        for line in pairs.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            if fold_of[cells[0]] == fold_of[cells[1]] {
                wanted[usize::from(cells[2] == "yes")] += 1;
            }
        }
        let figures: Value = serde_json::from_str(&read("figures.json")).unwrap();
        let table = &of_pairs(&figures["validation"]).unwrap()["confusion"];
        let counted: Vec<Vec<u64>> = serde_json::from_value(table.clone()).unwrap();
        for (kind, (row, wanted)) in counted.iter().zip(wanted).enumerate() {
            assert_eq!(row.iter().sum::<u64>(), wanted, "{site}");
            all[kind] += wanted;
        }
    }
    let told = of_pairs(&found["validation"]["scores"]).unwrap();
    let published = all.map(|pairs| (pairs + 5) / 10 * 10);
    assert_eq!(told["patients"], published[0] + published[1]);
    let area = told["auc"].as_f64().unwrap();
    assert!(area > 0.7, "{area}");
    let page = fs::read_to_string(home.join("pairs/report.html")).unwrap();
    assert!(page.contains("judged pairs of two patients held out in one fold, <b>AUC is"));
}

/// Where physicians judge by lot, a metric of many features finds a reason in the pairs that it has seen, and in no others.
#[test]
fn a_metric_of_judgements_by_lot_does_well_in_sample_alone() {
    let home = Home::new();
    write(&home);
    let mut draws = Draws(11);
    let mut columns = String::new();
    for column in 0..24 {
        writeln!(
            columns,
            "[[features]]\nname = \"by_lot_{column}\"\nkind = \"numeric\""
        )
        .unwrap();
    }
    for site in SITES {
        let mut table = "patient,class".to_owned();
        (0..24).for_each(|column| write!(table, ",by_lot_{column}").unwrap());
        for patient in 0..PATIENTS {
            write!(table, "\n{site}-{patient},{}", patient % 2).unwrap();
            (0..24).for_each(|_| write!(table, ",{:.3}", draws.normal()).unwrap());
        }
        home.write(&format!("data/{site}.csv"), &(table + "\n"));
        let file = format!("data/{site}.pairs.csv");
        let pairs = fs::read_to_string(home.join(&file)).unwrap();
        let by_lot = |line: &str| {
            let pair = line.rsplitn(3, ',').last().unwrap();
            let similar = if draws.number() < 0.5 { "yes" } else { "no" };
            format!("{pair},{similar},ward\n")
        };
        let pairs: String = pairs.lines().skip(1).map(by_lot).collect();
        home.write(&file, &format!("patient,other,similar,who\n{pairs}"));
    }
    let text = job("");
    let (before, _) = text.split_once("[[features]]").unwrap();
    let after = "[pairs]\nlabel = \"Judged similar on the ward\"\n[unpsl]\nsupervision = \"physician\"\n\
                 lambda_sparsity = 0.001\nrank = 8\n";
    home.write("job.toml", &format!("{before}{columns}{after}"));
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.run(&coordinator(), &arguments).must_succeed();
    let found = result(&home.join("out"));
    let in_sample = of_pairs(&found["evaluation"]).unwrap();
    let in_sample = in_sample["balanced_accuracy"].as_f64().unwrap();
    let held_out = of_pairs(&found["validation"]["scores"]).unwrap();
    let [area, balanced] = ["auc", "balanced_accuracy"].map(|key| held_out[key].as_f64().unwrap());
    assert!(in_sample > 0.65, "{in_sample}");
    assert!(area < 0.62 && balanced < 0.62, "{area} {balanced}");
}

/// All dissimilar pairs of one hospital have one patient in common, so that the fold of this patient has them all.
#[test]
fn a_fold_may_take_a_hospitals_last_pair_of_a_kind() {
    let home = Home::new();
    write(&home);
    let file = "data/east.pairs.csv";
    let before = fs::read_to_string(home.join(file)).unwrap();
    let is_kept = |line: &&str| line.contains(",yes,") && !line.starts_with("east-0,");
    let mut pairs = "patient,other,similar,who\n".to_owned();
    before
        .lines()
        .filter(is_kept)
        .for_each(|line| writeln!(pairs, "{line}").unwrap());
    for other in 1..6 {
        writeln!(pairs, "east-0,east-{other},no,ward").unwrap();
    }
    home.write(file, &pairs);
    home.write(
        "job.toml",
        &job("supervision = \"physician\"\npair_weights = \"balanced\"\n"),
    );
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.run(&coordinator(), &arguments).must_succeed();
    let found = result(&home.join("out"));
    assert_eq!(found["status"], "converged");
    let (own, others) = norms(&found, &OF_PHYSICIANS);
    assert!(own > 2.0 * others, "{own}, {others}");
    let area = of_pairs(&found["validation"]["scores"]).unwrap()["auc"].as_f64();
    assert!(area.unwrap() > 0.7, "{area:?}");
}

#[test]
fn of_few_judged_pairs_in_one_fold_nothing_is_said() {
    let home = Home::new();
    write(&home);
    for site in SITES {
        let file = format!("data/{site}.pairs.csv");
        let pairs = fs::read_to_string(home.join(&file)).unwrap();
        let few: Vec<&str> = pairs.lines().take(61).collect();
        home.write(&file, &few.join("\n"));
    }
    home.write("job.toml", &job("supervision = \"physician\"\n"));
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.run(&coordinator(), &arguments).must_succeed();
    let found = result(&home.join("out"));
    let told = of_pairs(&found["validation"]["scores"]);
    assert!(told.is_none(), "{told:?}");
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("Too few judged pairs fall in one fold to say"));
    // Twelve pairs or so of fewer than thirty patients are not even in the sum.
    for site in SITES {
        let figures = fs::read_to_string(home.join(&format!("out/sites/{site}/figures.json")));
        let figures: Value = serde_json::from_str(&figures.unwrap()).unwrap();
        let told = of_pairs(&figures["validation"]).unwrap();
        assert_eq!(told["confusion"], serde_json::json!([[0, 0], [0, 0]]));
    }
}

/// A site's file, and the job of its pairs.
const SITE_TOML: &str = "site = \"north\"\ncoordinator = \"localhost:1\"\nfolder = \"north\"\n\
     [tls]\nca = \"ca.pem\"\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n\
     [source]\nkind = \"csv\"\npath = \"data/north.csv\"\npatient = \"patient\"\n\
     [pairs]\nfile = \"data/north.pairs.csv\"\n";

#[test]
fn a_check_of_a_sites_data_reads_its_pairs_and_names_every_line() {
    let home = Home::new();
    write(&home);
    home.write("job.toml", &job("supervision = \"physician\"\n"));
    home.write("site.toml", SITE_TOML);
    let checked = || {
        let arguments = ["data", "check", "--config", "site.toml", "job.toml"];
        home.run(&site_agent(), &arguments)
    };
    checked().must_succeed();
    let pairs = "patient,other,similar\nnorth-1,north-1,yes\nnorth-2,north-3,perhaps\n";
    home.write("data/north.pairs.csv", pairs);
    let said = failure(checked());
    for wanted in [
        "column \"other\", line 2: found a patient paired with itself",
        "column \"similar\", line 3: found another word",
        "2 problems",
    ] {
        assert!(said.contains(wanted), "{said}");
    }
    let unknown = "patient,other,similar\nnorth-1,nobody,yes\nnobody,north-2,no\n";
    home.write("data/north.pairs.csv", unknown);
    let said = failure(checked());
    assert!(said.contains("line 2: found an unknown patient"), "{said}");
    assert!(said.contains("line 3: found an unknown patient"), "{said}");
    assert!(
        !said.contains("nobody") && !said.contains("north-1"),
        "{said}"
    );
    // A job that learns from the outcome alone has no need of them.
    home.write("job.toml", &job(""));
    checked().must_succeed();
}

#[test]
fn one_hospital_learns_from_its_own_pairs() {
    let home = Home::new();
    write(&home);
    home.write("job.toml", &job("supervision = \"physician\"\n"));
    home.write("site.toml", SITE_TOML);
    let arguments = ["local", "job.toml", "--config", "site.toml", "--out", "out"];
    home.run(&site_agent(), &arguments).must_succeed();
    let (own, others) = norms(&result(&home.join("out")), &OF_PHYSICIANS);
    assert!(own > others, "{own}, {others}");
}

#[test]
fn what_is_wrong_with_judged_pairs_is_named_by_line_and_no_patient_is() {
    let home = Home::new();
    write(&home);
    home.write("job.toml", &job("supervision = \"physician\"\n"));
    let pairs =
        "patient,other,similar\nsouth-1,south-2,yes\nsouth-2,south-1,no\nsouth-3,nobody,yes\n";
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.write("data/south.pairs.csv", pairs);
    let failed = failure(home.run(&coordinator(), &arguments));
    assert!(
        failed.contains("lines 2, 3: found the opposite of an earlier line"),
        "{failed}"
    );
    home.write(
        "data/south.pairs.csv",
        "patient,other,similar\nsouth-3,nobody,yes\n",
    );
    let failed = failure(home.run(&coordinator(), &arguments));
    assert!(
        failed.contains("column \"other\", line 2: found an unknown patient"),
        "{failed}"
    );
    assert!(
        !failed.contains("nobody") && !failed.contains("south-3"),
        "{failed}"
    );
    // A hospital whose physicians have judged pairs of fewer than thirty patients.
    let mut few = "patient,other,similar\n".to_owned();
    for other in 0..28 {
        writeln!(few, "south-{other},south-{},yes", other + 1).unwrap();
        writeln!(few, "south-{other},south-28,no").unwrap();
    }
    let few = few.replace("south-27,south-28,no\n", "");
    home.write("data/south.pairs.csv", &few);
    let failed = failure(home.run(&coordinator(), &arguments));
    assert!(failed.contains("patients_min"), "{failed}");
}

#[test]
fn a_supervision_that_the_study_or_the_settings_do_not_allow_is_refused_at_submission() {
    let home = Home::new();
    write(&home);
    for (unpsl, declared, wanted) in [
        (
            "supervision = \"physician\"\n",
            false,
            "a study with the table [pairs]",
        ),
        (
            "supervision = \"physician\"\npairs = 3\n",
            true,
            "pairs = \"all\"",
        ),
        (
            "supervision = \"physician\"\nsite_weights = \"patients\"\n",
            true,
            "\"equal\"",
        ),
        ("judged_counts = 3\n", true, "supervision = \"both\""),
    ] {
        let mut text = job(unpsl);
        if !declared {
            text = text.replace("[pairs]\nlabel = \"Judged similar on the ward\"\n", "");
        }
        home.write("job.toml", &text);
        let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
        let failed = failure(home.run(&coordinator(), &arguments));
        assert!(failed.contains(wanted), "{failed}");
    }
}
