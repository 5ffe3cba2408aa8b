//! Jobs of every method, and the tables and policies of the sites that they are for.

use kindred_tests::deployment::tls_of;
use kindred_tests::studies::looked_at;
use protocol::job::Job;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

/// The sites of every job here.
pub(crate) const SITES: [&str; 3] = ["north", "south", "east"];
/// Numbers among the features; the one category follows them.
pub(crate) const NUMBERS: usize = 5;
/// Fields of a table that are words of a job, and tell of nobody.
pub(crate) const WORDS: [&str; 6] = ["0", "1", "low", "middle", "high", ""];

/// The run that patients are compared by, where it is asked who is alike: of the first sample.
pub(crate) const LEARNED: &str = "learned";

/// A job of one method.
pub(crate) struct Sample {
    /// What is special about it.
    name: &'static str,
    /// The job as text, which has everything in itself.
    pub(crate) text: String,
    /// The job as one of a study whose parties have no certificates.
    pub(crate) job: Job,
}

impl fmt::Display for Sample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}", self.job.method.name(), self.name)
    }
}

/// One or more for each method.
pub(crate) fn samples() -> Vec<Sample> {
    let classes = "column = 'class'\nkind = 'binary'\npositive = ['1']\nlabel = 'Relapse'\n\
                   level_labels = { positive = 'relapsed', negative = 'well' }";
    let number = "column = 'value'\nkind = 'numeric'\nlabel = 'Score'\nunit = 'points'";
    let times = "column = 'days'\nkind = 'survival'\nevent = 'seen'\nevent_values = ['1']\nhorizon = 40\n\
                 label = 'Time to relapse'\nunit = 'fortnights'\nlevel_labels = { event = 'relapsed', censored = 'well when last seen' }";
    let unpsl = |name, numbers, keys: &str| {
        let method = format!("[unpsl]\n{keys}");
        sample(name, "unpsl", classes, numbers, &method)
    };
    let forest = |name, outcome, keys: &str| {
        let method = format!("[forest]\ntrees = 12\n{keys}");
        sample(name, "forest", outcome, "range = [-8, 8]", &method)
    };
    let regression = |name, outcome, keys: &str| {
        let method = format!("[regression]\n{keys}");
        sample(name, "regression", outcome, "", &method)
    };
    let compare = |name, outcome, keys: &str| {
        let method = format!("[forest]\ntrees = 12\n[compare]\n{keys}");
        sample(name, "compare", outcome, "", &method)
    };
    let in_common = |name, outcome, families: &str| {
        let method = format!(
            "[forest]\ntrees = 12\n[compare]\nfamilies = [{families}]\nfolds = 3\n[unpsl]\nrank = 2"
        );
        sample(name, "compare", outcome, "range = [-8, 8]", &method)
    };
    let federated = "scope = 'federated'\nimportance = true";
    vec![
        unpsl("by derivatives", "", "rank = 2\nround_limit = 40"),
        unpsl(
            "with medians and a pooled correlation",
            "range = [-8, 8]\nstandardise = 'robust'",
            "rank = 2\nround_limit = 10\nconsensus = 'admm'\ncorrelation = 'pooled'",
        ),
        unpsl(
            "chosen by cross-validation",
            "",
            "rank = 2\nlambda_sparsity = [0.001, 0.01]\nform = ['inner_product', 'distance']\nneighbours = [11, 15]\nfolds = 2\nround_limit = 40",
        ),
        forest(
            "at each site",
            classes,
            "scope = 'local'\nimportance = true",
        ),
        forest("in common, of classes", classes, federated),
        forest("in common, of a number", number, federated),
        forest("in common, of survival times", times, federated),
        regression("of classes", classes, ""),
        regression("of a number, with a ridge", number, "ridge = 2"),
        regression("of classes, with a chosen ridge", classes, "ridge = 'auto'"),
        regression("of survival times", times, ""),
        regression(
            "of survival times, with one baseline",
            times,
            "baseline = 'common'\ncells = 2",
        ),
        exactly(regression("of classes, by exact sums", classes, "")),
        sample(
            "of splines",
            "regression",
            classes,
            "range = [-8, 8]\nspline = 3",
            "[regression]\nridge = 1",
        ),
        compare(
            "of classes",
            classes,
            "families = ['cosine', 'gower', 'mahalanobis', 'unpsl', 'forest', 'forest_model']\nfolds = 3\n[unpsl]\nrank = 2",
        ),
        compare(
            "of a number",
            number,
            "families = ['gower', 'forest']\nfolds = 3",
        ),
        in_common(
            "of classes, by a common forest too",
            classes,
            "'unpsl', 'common_forest', 'common_forest_model'",
        ),
        in_common(
            "of survival times, by a common forest",
            times,
            "'forest', 'common_forest', 'common_forest_model'",
        ),
        sample(
            "by the metric of a run",
            "neighbours",
            classes,
            "",
            &format!("[neighbours]\nrun = '{LEARNED}'\nqueries = [[0.5, -0.25], [4, 3], [0, 0]]"),
        ),
        sample(
            "by the metric of a run",
            "cluster",
            classes,
            "",
            &format!(
                "[cluster]\nrun = '{LEARNED}'\ncoordinates = 2\nclusters_max = 2\nsamples = 10\nstability_min = 0.01"
            ),
        ),
    ]
}

/// The same with exact sums.
fn exactly(sample: Sample) -> Sample {
    of(sample.name, format!("precision = 'exact'\n{}", sample.text))
}

fn sample(
    name: &'static str,
    method: &str,
    outcome: &str,
    numbers: &str,
    settings: &str,
) -> Sample {
    let mut text = format!("name = 'sample'\nmethod = '{method}'\nsites = {SITES:?}\n");
    let _ = writeln!(text, "[outcome]\n{outcome}");
    for number in 1..=NUMBERS {
        let _ = writeln!(
            text,
            "[[features]]\nname = 'x{number}'\nkind = 'numeric'\n{numbers}"
        );
    }
    let levels = "levels = ['low', 'middle', 'high']";
    let _ = writeln!(
        text,
        "[[features]]\nname = 'grade'\nkind = 'categorical'\n{levels}\n{settings}"
    );
    of(name, text)
}

fn of(name: &'static str, text: String) -> Sample {
    let job = looked_at(&text);
    Sample { name, text, job }
}

/// A table of patients, each with a name, outcomes of three kinds, and the features.
pub(crate) fn table(site: &str, patients: usize) -> String {
    let mut draw = ChaCha8Rng::seed_from_u64(site.len() as u64);
    let mut text = "patient,class,value,days,seen,x1,x2,x3,x4,x5,grade".to_owned();
    for patient in 0..patients {
        let numbers: Vec<f64> = (0..NUMBERS)
            .map(|_| 8.0 * (draw.random::<f64>() + draw.random::<f64>() - 1.0))
            .collect();
        let odd = draw.random::<f64>();
        let class = u8::from(numbers[0] + numbers[2] + 16.0 * odd > 8.0);
        let value = 100.0 + 10.0 * numbers[1] + odd;
        let days = 0.01 - 15.0 * odd.ln() * (numbers[0] / 8.0).exp();
        let seen = u8::from(draw.random_range(0..10) < 7);
        let _ = write!(
            text,
            "\n{site}-{patient:04},{class},{value:.4},{days:.5},{seen}"
        );
        for (place, number) in numbers.iter().enumerate() {
            // One value of twenty of the first feature is missing.
            match place == 0 && draw.random_range(0..20) == 0 {
                true => text.push(','),
                false => drop(write!(text, ",{number:.5}")),
            }
        }
        let grade = ["low", "middle", "high"][draw.random_range(0..3)];
        let _ = write!(text, ",{grade}");
    }
    text + "\n"
}

/// The configuration of a site whose policy lists everything and permits this.
pub(crate) fn config(site: &str, permissions: &BTreeSet<privacy::Permission>) -> String {
    let mut text = format!(
        "site = '{site}'\ncoordinator = 'localhost:7443'\nfolder = 'sites/{site}'\n\
         {}\
         [source]\nkind = 'csv'\npath = 'data/{site}.csv'\npatient = 'patient'\n\
         [policy]\noperators = ['*']\nmethods = ['*']\n",
        tls_of(&format!("site-{site}"))
    );
    for permission in permissions {
        let _ = writeln!(text, "{} = true", permission.name());
    }
    for number in 1..=NUMBERS {
        let _ = writeln!(text, "[columns.x{number}]\nrange = [-8, 8]");
    }
    text
}
