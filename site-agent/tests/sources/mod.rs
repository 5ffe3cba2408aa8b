//! What the tests of all sources share.

#![allow(clippy::unwrap_used)] // functions that tests share
#![allow(dead_code)] // every test file takes what it needs

use protocol::job::Job;
use similarity::cohort::{Cohort, Values};
use site_agent::config::{SiteConfig, SourceConfig};
use site_agent::source::{CohortProblems, Freezing, Room, SiteCohort, read_cohort};
use std::path::Path;

/// A job with every kind of feature.
pub(crate) const JOB: &str = "name = 'test'\nmethod = 'unpsl'\nsites = ['north', 'other']\n\
[outcome]\ncolumn = 'num'\nkind = 'binary'\npositive = ['1', '2']\n\
[[features]]\nname = 'age'\nkind = 'numeric'\nunit = 'years'\n\
[[features]]\nname = 'chol'\nkind = 'numeric'\nunit = 'mg/dl'\nmissing = ['0']\nrange = [0, 1000]\n\
[[features]]\nname = 'sex'\nkind = 'categorical'\nlevels = ['F', 'M']\n\
[[features]]\nname = 'born'\nkind = 'age'\nat = '2020-02-29'\n\
[[features]]\nname = 'grade'\nkind = 'ordinal'\nlevels = ['low', 'mid', 'high']\n\
[[features]]\nname = 'smoker'\nkind = 'binary'\n\
[unpsl]\nrank = 1\n";

/// The parsed job.
pub(crate) fn job(text: &str) -> Job {
    Job::parse(text).unwrap()
}

/// A site's source: `source` is the table of that name, `columns` whole tables after it.
pub(crate) fn config(folder: &Path, source: &str, columns: &str) -> SourceConfig {
    let text = format!(
        "site = 'north'\ncoordinator = 'localhost:7443'\nfolder = 'results'\n\
         [tls]\nca = 'ca.pem'\ncertificate = 'north.pem'\nkey = 'north.key'\n\
         [source]\n{source}\n{columns}"
    );
    SiteConfig::parse(&text, folder).unwrap().source
}

/// Reads without showing progress.
pub(crate) fn read(source: &SourceConfig, job: &Job) -> Result<SiteCohort, CohortProblems> {
    read_cohort(source, job)
}

/// What tells the frozen patients of a job's cohort from others.
pub(crate) fn identifiers(source: &SourceConfig, job: &Job) -> Vec<Vec<u8>> {
    let freezing = Freezing {
        source,
        cohorts: vec![(*job.cohort).clone()],
        gridded: std::collections::HashSet::new(),
        cell_min: 1,
    };
    let frozen = freezing.read(Room::Memory).unwrap();
    frozen.rows.table().unwrap().identifiers(source)
}

/// The bits of a numeric column, so that missing values compare too.
pub(crate) fn numbers(cohort: &Cohort, name: &str) -> Vec<u64> {
    let column = cohort.columns().iter().find(|column| column.name == name);
    match &column.unwrap().values {
        Values::Numeric(numbers) => bits(&numbers.to_vec()),
        Values::Categorical { .. } => panic!("{name} has levels"),
    }
}

/// The codes of a categorical column.
pub(crate) fn categorical(cohort: &Cohort, name: &str) -> Vec<u32> {
    let column = cohort.columns().iter().find(|column| column.name == name);
    match &column.unwrap().values {
        Values::Categorical { codes, .. } => codes.to_vec(),
        Values::Numeric(_) => panic!("{name} has numbers"),
    }
}

/// The bits of some numbers.
pub(crate) fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}
