//! What `data check` shows, and the sample configuration.

mod sources;

use site_agent::source::{check, read_cohort};
use sources::{JOB, config, job};

const ROWS: &str = "id,age,chol,sex,born,grade,smoker,num\n\
                    a1,63,233,M,1960-02-29,low,1,0\n\
                    a2,,0,F,1950-07-01,high,0,2\n\
                    a3,41.5,204.25,,,mid,,1\n\
                    a4,50,180,M,1970-01-01,mid,1,\n";
const SOURCE: &str = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";

#[test]
fn a_table_tells_kind_missing_range_and_levels_of_every_column() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), ROWS).unwrap();
    let check = check(&config(folder.path(), SOURCE, ""), &job(JOB));
    assert!(check.fits());
    let wanted = "\
4 rows: 3 patients, 1 left out for want of an outcome

column  kind                    missing  range or levels
age     numeric              1 (33.3 %)  41.5 to 63 years
chol    numeric              1 (33.3 %)  204.2 to 233 mg/dl
sex     categorical          1 (33.3 %)  \"F\" 1, \"M\" 1
born    age                  1 (33.3 %)  60 to 69.67 years
grade   ordinal               0 (0.0 %)  \"low\" to \"high\"
smoker  binary               1 (33.3 %)  \"0\" to \"1\"
num     outcome, binary       0 (0.0 %)  \"negative\" 1, \"positive\" 2

The data fits the job.
";
    assert_eq!(check.to_string(), wanted);
}

#[test]
fn a_column_that_does_not_fit_is_told_below_the_table_as_a_run_would_tell_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows = ROWS.replace("233", "high");
    std::fs::write(folder.path().join("patients.csv"), rows).unwrap();
    let source = config(folder.path(), SOURCE, "");
    let check = check(&source, &job(JOB));
    assert!(!check.fits());
    let run = read_cohort(&source, &job(JOB), &mut |_| {}).unwrap_err();
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
