//! Any bytes as a site's CSV file: a cohort or problems, never a panic.

#![no_main]

use kindred_tests::readers::folder;
use kindred_tests::samples::SITE;
use libfuzzer_sys::fuzz_target;
use protocol::job::Job;
use site_agent::config::SiteConfig;
use site_agent::source::read_cohort;

const JOB: &str = "name = 'fuzz'\nmethod = 'unpsl'\nsites = ['north', 'south']\n\
[outcome]\ncolumn = 'num'\nkind = 'binary'\npositive = ['1']\n\
[[features]]\nname = 'age'\nkind = 'numeric'\n\
[[features]]\nname = 'sex'\nkind = 'categorical'\nlevels = ['F', 'M']\n\
[[features]]\nname = 'born'\nkind = 'age'\nat = '2020-01-01'\n\
[unpsl]\nrank = 1\n";

fuzz_target!(|bytes: &[u8]| {
    let folder = folder();
    std::fs::write(folder.join("patients.csv"), bytes).expect("a temporary file");
    let site = SiteConfig::parse(SITE, &folder).expect("a whole configuration");
    let job = Job::parse(JOB).expect("a whole job");
    if let Err(problems) = read_cohort(&site.source, &job) {
        assert!(!problems.problems().is_empty());
    }
});
