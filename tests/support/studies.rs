//! The sample study and its jobs, as jobs that have everything in themselves: for tests that change parts of them.

use crate::workspace::text;

/// The job of the four hospitals with this file name.
pub fn whole_job(name: &str) -> String {
    let study = text("deploy/jobs/heart-disease.study.toml");
    let sites = study.lines().find(|line| line.starts_with("hospitals = "));
    let sites = sites.expect("the hospitals").replace("hospitals", "sites");
    let (_, patients) = study.split_once("[[outcomes]]\n").expect("an outcome");
    let named = |line: &&str| {
        !line.starts_with("name = \"disease\"") && !line.starts_with("label = \"Coronary")
    };
    let patients: Vec<&str> = patients.lines().filter(named).collect();
    let job = text(format!("deploy/jobs/{name}"));
    let of_study = "study = \"heart-disease.study.toml\"\noutcome = \"disease\"\n";
    assert!(job.contains(of_study), "{name}");
    let whole = format!("{sites}\n\n[outcome]\n{}\n", patients.join("\n"));
    job.replace(of_study, &whole)
}
