//! The four hospitals of the UCI heart disease data, where they are on this machine.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and why a test is skipped

mod sources;

use similarity::cohort::{MISSING_LEVEL, Values};
use site_agent::source::check;
use sources::{config, job, numbers, read};
use std::path::{Path, PathBuf};

fn data() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let named = std::env::var_os("KINDRED_DATA").map(PathBuf::from);
    let folder = named
        .unwrap_or_else(|| workspace.join("../shared/data"))
        .join("heart_disease");
    if folder.exists() {
        return Some(folder);
    }
    println!(
        "skipped: found no {}; set KINDRED_DATA to the folder of the data",
        folder.display()
    );
    None
}

fn numeric(name: &str, missing: &str) -> String {
    format!("[[features]]\nname = '{name}'\nkind = 'numeric'\nmissing = [{missing}]\n")
}

fn categorical(name: &str, levels: &str) -> String {
    format!("[[features]]\nname = '{name}'\nkind = 'categorical'\nlevels = [{levels}]\n")
}

#[test]
fn the_four_hospitals_have_the_patients_and_missing_values_that_their_description_counts() {
    let Some(folder) = data() else { return };
    let features = [
        numeric("age", ""),
        numeric("trestbps", "'0'"),
        numeric("chol", "'0'"),
        numeric("thalach", ""),
        numeric("oldpeak", ""),
        numeric("ca", ""),
        categorical("sex", "'0', '1'"),
        categorical("cp", "'1', '2', '3', '4'"),
        categorical("slope", "'1', '2', '3'"),
        categorical("thal", "'3', '6', '7'"),
    ];
    let text = format!(
        "name = 'heart'\nmethod = 'unpsl'\nsites = ['va', 'other']\n[outcome]\ncolumn = 'num'\n\
         kind = 'binary'\npositive = ['1', '2', '3', '4']\n{}[unpsl]\nrank = 1\n",
        features.concat()
    );
    // Patients, patients with disease, then missing: trestbps, chol, thalach, oldpeak, ca, slope,
    // thal, from the data's description; a 0 of trestbps or chol is "not recorded".
    let wanted = [
        ("cleveland", [303, 139, 0, 0, 0, 0, 4, 0, 2]),
        ("hungarian", [294, 106, 1, 23, 1, 0, 291, 190, 266]),
        ("switzerland", [123, 115, 2, 123, 1, 6, 118, 17, 52]),
        ("va", [200, 149, 57, 56, 53, 56, 198, 102, 166]),
    ];
    for (site, counts) in wanted {
        let source = config(&folder, &format!("kind = 'csv'\npath = '{site}.csv'\n"), "");
        let cohort = read(&source, &job(&text)).unwrap().cohort;
        let missing = |name: &str| {
            let column = cohort
                .columns()
                .iter()
                .find(|column| column.name == name)
                .unwrap();
            match &column.values {
                Values::Numeric(_) => {
                    let missing = |bits: &&u64| f64::from_bits(**bits).is_nan();
                    numbers(&cohort, name).iter().filter(missing).count()
                }
                Values::Categorical { codes, .. } => {
                    codes.iter().filter(|code| **code == MISSING_LEVEL).count()
                }
            }
        };
        let similarity::cohort::Outcome::Classes { codes, .. } = cohort.outcome() else {
            panic!("a binary outcome has classes")
        };
        let columns = [
            "trestbps", "chol", "thalach", "oldpeak", "ca", "slope", "thal",
        ];
        let mut found = vec![
            cohort.patients(),
            codes.iter().filter(|code| **code == 1).count(),
        ];
        found.extend(columns.map(missing));
        assert_eq!(found, counts, "{site}");
        let table = check(&source, &job(&text), 1).to_string();
        assert!(table.contains("The data fits the job."), "{table}");
    }
}
