//! What `data check` shows, and the sample configuration.

mod sources;

use site_agent::config::SiteConfig;
use site_agent::source::{Dictionary, check, read_for_release};
use sources::{JOB, config, job};

const ROWS: &str = "id,age,chol,sex,born,grade,smoker,num\n\
                    a1,63,233,M,1960-02-29,low,1,0\n\
                    a2,,0,F,1950-07-01,high,0,2\n\
                    a3,41.5,204.25,,,mid,,1\n\
                    a4,50,180,M,1970-01-01,mid,1,\n";
/// What the site declares, which is what the job takes for granted.
const DICTIONARY: &str = "[columns.chol]\nrange = [0, 1000]\nmissing = ['0']\n\
    [columns.sex]\nlevels = ['F', 'M']\n[columns.grade]\nlevels = ['low', 'mid', 'high']\n\
    [columns.smoker]\nlevels = ['0', '1']\n[columns.num]\nlevels = { 1 = '1', 2 = '1', '*' = '0' }\n";
const SOURCE: &str = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";

#[test]
fn a_table_tells_kind_missing_range_and_levels_of_every_column() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), ROWS).unwrap();
    let check = check(&config(folder.path(), SOURCE, DICTIONARY), &job(JOB), 2);
    assert!(check.fits());
    let wanted = "\
4 rows: 3 patients, 1 excluded for want of an outcome or a value

column  kind                    missing  range or levels
age     numeric              1 (33.3 %)  41.5 to 63 years
chol    numeric              1 (33.3 %)  204.2 to 233 mg/dl
sex     categorical          1 (33.3 %)  \"F\" 1, \"M\" 1
born    age                  1 (33.3 %)  60 to 69.67 years
grade   ordinal               0 (0.0 %)  \"low\" to \"high\"
smoker  binary               1 (33.3 %)  \"0\" to \"1\"
num     outcome, binary       0 (0.0 %)  \"without the outcome\" 1, \"with the outcome\" 2

The data fits the job.
";
    assert_eq!(check.to_string(), wanted);
}

#[test]
fn of_a_source_that_cannot_be_read_only_the_reason_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let check = check(&config(folder.path(), SOURCE, DICTIONARY), &job(JOB), 2);
    assert!(!check.fits() && !check.was_read());
    let text = check.to_string();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("patients.csv"), "{text}");
    assert!(!text.contains("missing values"), "{text}");
}

#[test]
fn a_level_that_the_mapping_lacks_is_wanted_as_the_source_spells_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), ROWS).unwrap();
    let mapped = DICTIONARY.replace("levels = ['F', 'M']", "levels = { w = 'F', m = 'M' }");
    assert_ne!(mapped, DICTIONARY);
    let check = check(&config(folder.path(), SOURCE, &mapped), &job(JOB), 2);
    let text = check.to_string();
    assert!(
        text.contains("not in the list, wanted one of \"w\", \"m\""),
        "{text}"
    );
}

#[test]
fn a_column_that_does_not_fit_is_told_below_the_table_as_a_run_would_tell_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows = ROWS.replace("233", "high");
    std::fs::write(folder.path().join("patients.csv"), rows).unwrap();
    let source = config(folder.path(), SOURCE, DICTIONARY);
    let check = check(&source, &job(JOB), 2);
    assert!(!check.fits());
    let run = read_for_release(&source, &job(JOB), 2).unwrap_err();
    assert_eq!(check.problems(), &run);
    let text = check.to_string();
    assert!(text.contains("age     numeric"), "{text}");
    assert!(
        text.contains("does not fit the job, 1 problem:\n"),
        "{text}"
    );
    assert!(
        text.contains("line 2: found text of 4 characters, wanted a number in mg/dl"),
        "{text}"
    );
}

#[test]
fn what_counts_otherwise_than_the_job_says_is_told_in_full_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::from("id,age,chol,sex,born,grade,smoker,num\n");
    for patient in 0..24 {
        let sex = ["F", "M"][patient % 2];
        let grade =
            ["low", "high", "worst"][usize::from(patient == 7) * 2 + usize::from(patient == 4)];
        let chol = if patient < 3 { 5_000 } else { 200 };
        rows += &format!(
            "p{patient},50,{chol},{sex},1960-01-01,{grade},1,{}\n",
            patient % 2
        );
    }
    std::fs::write(folder.path().join("patients.csv"), rows).unwrap();
    let check = check(&config(folder.path(), SOURCE, ""), &job(JOB), 10);
    assert!(check.fits(), "{check}");
    let text = check.to_string();
    for wanted in [
        "To review; a run goes on with the site's own rule:",
        "column \"chol\", lines 2, 3, 4: found a number outside of the job's range, wanted 0 to 1000 mg/dl; \
         site.toml has no range, so the nearer end counts",
        "column \"grade\", lines 6, 9: found a level that few patients hold, wanted levels in site.toml, or at least 10 patients; \
         it counts as missing",
    ] {
        assert!(text.contains(wanted), "{wanted}\n---\n{text}");
    }
}

#[test]
fn a_dictionary_made_of_the_data_is_one_that_the_data_fits() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), ROWS).unwrap();
    let found = check(&config(folder.path(), SOURCE, ""), &job(JOB), 2);
    let path = folder.path().join("site.dictionary.toml");
    found.dictionary().write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for wanted in [
        "[columns.\"chol\"]",
        "range = [180.0, 240.0]",
        "missing = [\"0\"]",
        "levels = [\"F\", \"M\"]",
        "range = [\"1950-01-01\", \"1970-12-31\"]",
        "# review: \"high\" is held by fewer than 2 patients",
    ] {
        assert!(text.contains(wanted), "{wanted}\n---\n{text}");
    }
    let again = check(&config(folder.path(), SOURCE, &text), &job(JOB), 1);
    assert!(again.fits(), "{again}");
    assert!(again.remarks().is_empty(), "{again}");
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "a dictionary holds a range of patients");
}

#[test]
fn the_dictionary_of_a_job_is_read_as_it_is_written_and_agrees_with_the_job() {
    let text = JOB
        .replace("unit = 'years'", "unit = 'years'\nimpute = 'refuse'")
        .replace(
            "missing = ['0']",
            "missing = ['0', 'a \"word\"']\ntransform = 'log'",
        );
    let folder = tempfile::tempdir().unwrap();
    let rows = ROWS.replace("a2,,0", "a2,40,0");
    std::fs::write(folder.path().join("patients.csv"), rows).unwrap();
    let dictionary = Dictionary::of_job(&job(&text)).to_string();
    let config = config(folder.path(), SOURCE, &dictionary);
    let missing = &config.columns["chol"].missing;
    assert_eq!(missing, &["0", "a \"word\""]);
    let check = check(&config, &job(&text), 10);
    assert!(
        check.fits() && check.remarks().is_empty(),
        "{dictionary}\n{check}"
    );
}

#[test]
fn a_missing_code_of_the_outcome_belongs_into_the_dictionary() {
    let text = JOB.replace("column = 'num'", "column = 'num'\nmissing = ['9']");
    assert_ne!(text, JOB);
    let folder = tempfile::tempdir().unwrap();
    let rows = ROWS.replace("mid,1,\n", "mid,1,9\n");
    std::fs::write(folder.path().join("patients.csv"), rows).unwrap();
    let declared = Dictionary::of_job(&job(&text)).to_string();
    let found = check(&config(folder.path(), SOURCE, ""), &job(&text), 1);
    for dictionary in [declared, found.dictionary().to_string()] {
        let (_, of_outcome) = dictionary.split_once("[columns.\"num\"]").unwrap();
        let table = of_outcome.split("\n\n").next().unwrap();
        assert!(table.contains("missing = [\"9\"]"), "{dictionary}");
        let levels = table
            .lines()
            .find(|line| line.starts_with("levels"))
            .unwrap();
        assert!(!levels.contains('9'), "{dictionary}");
    }
}

#[test]
fn every_problem_of_a_dictionary_is_told_at_once() {
    let text = "site = 'north'\ncoordinator = 'localhost:7443'\nfolder = 'results'\n\
        [tls]\nca = 'ca.pem'\ncertificate = 'c.pem'\nkey = 'k.pem'\n\
        [source]\nkind = 'csv'\npath = 'patients.csv'\n\
        [columns.a]\nrange = [3, 1]\n[columns.b]\nlevels = 'x'\n[columns.c]\ncomplete = 'yes'\n\
        [columns.d]\nrange = ['2000-01-01', 'later']\n[columns.e]\nrange = [0, inf]\n";
    let errors = SiteConfig::parse(text, std::path::Path::new("")).unwrap_err();
    let text = errors.to_string();
    for wanted in [
        "columns.a.range: found array, wanted [lowest, highest]",
        "columns.b.levels: found \"x\", wanted a list of levels",
        "columns.c.complete: found \"yes\", wanted true or false",
        "columns.d.range",
    ] {
        assert!(text.contains(wanted), "{wanted}\n---\n{text}");
    }
    assert_eq!(errors.errors().len(), 4, "{text}");
}
