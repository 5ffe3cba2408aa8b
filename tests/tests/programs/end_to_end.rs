//! Promise: one command runs a whole federation, and what it leaves can be checked by anyone.
//!
//! The objective of `result.json` is computed again here, pair by pair, from the files that stay at
//! the sites and the metric; the optimum is found again by another algorithm on the pooled patients.

use kindred_tests::deployment::PATIENTS;
use kindred_tests::exit::REFUSED;
use kindred_tests::programs::{Home, Ran, coordinator, ran};
use kindred_tests::results::{names, npy, result};
use kindred_tests::samples::{DEMO_JOB, demo_job};
use kindred_tests::studies::whole_job;
use kindred_tests::workspace::{real_data, root};
use ndarray::{Array1, Array2, ArrayView1};
use protocol::job::Job;
use protocol::method::Method;
use serde_json::Value;
use similarity::learn::unpsl::{
    self, Labels, PooledLimits, Settings, SiteObjective, Threshold, Totals, minimise_pooled,
    summarise,
};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::fs;
use std::path::Path;

/// What a simulation leaves.
const RESULT_FILES: [&str; 8] = [
    "card",
    "features.csv",
    "metric.csv",
    "metric.npy",
    "report.html",
    "result.json",
    "rounds.csv",
    "sites",
];
/// What stays at a site.
const SITE_FILES: [&str; 9] = [
    "columns.csv",
    "comparison.json",
    "figures.json",
    "folds.csv",
    "journal.jsonl",
    "matrix.npy",
    "neighbours.csv",
    "outcome.csv",
    "report.html",
];
/// The keys of `result.json` that others build on.
const RESULT_KEYS: [&str; 12] = [
    "run",
    "job",
    "method",
    "status",
    "rounds",
    "objective",
    "primal_residual",
    "dual_residual",
    "seconds",
    "seed",
    "version",
    "sites",
];

/// A site as it sees itself: n x d standardised patients, and the class of each.
struct Site {
    matrix: Array2<f64>,
    classes: Vec<u32>,
}

fn simulate(home: &Home, arguments: &[&str]) -> Ran {
    let mut all = vec!["simulate", "--out", "out"];
    all.extend(arguments);
    home.run(&coordinator(), &all)
}

/// The sites of a folder of results, in the job's order.
fn sites(out: &Path, job: &Job) -> Vec<Site> {
    let read = |name: &protocol::name::SiteName| {
        let folder = out.join("sites").join(name.as_str());
        let table = fs::read_to_string(folder.join("outcome.csv")).unwrap();
        let code = |line: &str| line.split(',').nth(1).unwrap().parse().unwrap();
        Site {
            matrix: npy(&folder.join("matrix.npy")),
            classes: table.lines().skip(1).map(code).collect(),
        }
    };
    job.sites.iter().map(read).collect()
}

/// (4.19) under the mean loss and the sites' own correlations, by its definition: every pair of
/// patients of a site, every pair of features, every row of W.
fn naive_objective(sites: &[Site], metric: &Array2<f64>, settings: &Settings) -> f64 {
    let pairs_of = |site: &Site| (site.classes.len() * (site.classes.len() - 1) / 2) as f64;
    let pairs: f64 = sites.iter().map(pairs_of).sum();
    let mut objective = 0.0;
    for site in sites {
        let projected = site.matrix.dot(metric);
        let mut told = Vec::new();
        for i in 0..site.classes.len() {
            for j in 0..i {
                let label = if site.classes[i] == site.classes[j] {
                    1.0
                } else {
                    -1.0
                };
                told.push((label, projected.row(i).dot(&projected.row(j))));
            }
        }
        let threshold = match settings.threshold {
            Threshold::Fixed(threshold) => threshold,
            Threshold::Site => best_threshold(&told),
            Threshold::Common(_) => panic!("no job of these tests has a common threshold"),
        };
        let of_pair = |(label, similarity): &(f64, f64)| {
            f64::ln_1p(f64::exp(-label * (similarity - threshold)))
        };
        let loss: f64 = told.iter().map(of_pair).sum();
        let mut correlated = 0.0;
        for k in 0..metric.nrows() {
            for l in 0..metric.nrows() {
                let r = pearson(&site.matrix.column(k), &site.matrix.column(l));
                correlated += r * r * metric.row(k).dot(&metric.row(l));
            }
        }
        objective += loss / pairs;
        objective += pairs_of(site) / pairs * settings.lambda_correlation * correlated;
    }
    let norm = |row: ArrayView1<f64>| row.dot(&row).sqrt();
    objective + settings.lambda_sparsity * metric.rows().into_iter().map(norm).sum::<f64>()
}

/// By how much the objective of rounded sums is above the exact one: it counts W = 0 as if all pairs, each kind rounded up to
/// twenties at each site, were one site's.
fn above(sites: &[Site], settings: &Settings) -> f64 {
    if settings.precision == Precision::Exact {
        return 0.0;
    }
    let kinds = |site: &Site| {
        let mut kinds = [0_u64; 2];
        for i in 0..site.classes.len() {
            for j in 0..i {
                kinds[usize::from(site.classes[i] == site.classes[j])] += 1;
            }
        }
        kinds
    };
    let loss = |[dissimilar, similar]: [f64; 2]| {
        let threshold = match settings.threshold {
            Threshold::Fixed(threshold) => threshold,
            Threshold::Site => (dissimilar / similar).ln(),
            Threshold::Common(_) => panic!("no job of these tests has a common threshold"),
        };
        similar * f64::ln_1p(threshold.exp()) + dissimilar * f64::ln_1p((-threshold).exp())
    };
    let (mut all, mut rounded) = (0.0, [0.0; 2]);
    let mut own = 0.0;
    for site in sites {
        let kinds = kinds(site);
        own += loss(kinds.map(|count| count as f64));
        for (place, count) in kinds.into_iter().enumerate() {
            all += count as f64;
            rounded[place] += count.next_multiple_of(20) as f64;
        }
    }
    loss(rounded) / (rounded[0] + rounded[1]) - own / all
}

/// Where the derivative of the loss is 0, by bisection.
fn best_threshold(told: &[(f64, f64)]) -> f64 {
    let (mut low, mut high) = (-100.0, 100.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let slope = |(label, similarity): &(f64, f64)| {
            label / (1.0 + f64::exp(label * (similarity - middle)))
        };
        if told.iter().map(slope).sum::<f64>() > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

/// Pearson's correlation; 0 where a feature is constant at the site.
fn pearson(one: &ArrayView1<f64>, other: &ArrayView1<f64>) -> f64 {
    let centred = |x: &ArrayView1<f64>| x - x.mean().unwrap();
    let (one, other) = (centred(one), centred(other));
    let scale = one.dot(&one).sqrt() * other.dot(&other).sqrt();
    if scale > 1e-9 {
        one.dot(&other) / scale
    } else {
        0.0
    }
}

/// The best of several descents on the pooled patients, from other starts than the federation's.
fn pooled_optimum(sites: &[Site], settings: &Settings) -> unpsl::PooledSolution {
    let labels: Vec<Labels> = sites
        .iter()
        .map(|site| Labels::Classes(Array1::from_vec(site.classes.clone())))
        .collect();
    let seed = Seed(20);
    let summaries: Vec<_> = labels
        .iter()
        .map(|labels| summarise(labels, settings.pairs, seed))
        .collect();
    let totals = Totals::of(&summaries);
    let objectives: Vec<SiteObjective> = sites
        .iter()
        .zip(&labels)
        .map(|(site, labels)| {
            SiteObjective::new(&site.matrix.view(), labels, settings, &totals, seed, None).unwrap()
        })
        .collect();
    let limits = PooledLimits {
        tolerance: 1e-8,
        iterations: 4_000,
    };
    let descend = |index| {
        let start = unpsl::start(settings, sites[0].matrix.ncols(), seed, index);
        minimise_pooled(&objectives, start, limits).unwrap()
    };
    (0..3)
        .map(descend)
        .min_by(|one, other| one.objective.total_cmp(&other.objective))
        .unwrap()
}

fn relative(found: f64, wanted: f64) -> f64 {
    (found - wanted).abs() / wanted.abs()
}

fn norm(matrix: &Array2<f64>) -> f64 {
    matrix.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn settings(job: &Job) -> Settings {
    let Method::Unpsl(settings) = &job.method else {
        panic!("a job of UnPSL")
    };
    settings.objective
}

/// The objective of `result.json` is that of the files, and lies at the pooled optimum.
fn check_against_pooled(out: &Path, job: &Job, metric_error_max: Option<f64>) {
    let (sites, metric) = (sites(out, job), npy(&out.join("metric.npy")));
    let reported = result(out)["objective"].as_f64().unwrap();
    let settings = settings(job);
    let above = above(&sites, &settings);
    let computed = naive_objective(&sites, &metric, &settings) + above;
    let most = match settings.precision {
        Precision::Exact => 1e-9,
        // Shares of all pairs are of rounded ones.
        Precision::Rounded => 1e-3,
    };
    assert!(
        relative(reported, computed) <= most,
        "result.json says {reported}, its files say {computed}"
    );
    let pooled = pooled_optimum(&sites, &settings);
    let error = match settings.precision {
        Precision::Exact => relative(reported, pooled.objective),
        // What the found metric's own objective is, exactly.
        Precision::Rounded => relative(computed - above, pooled.objective),
    };
    println!(
        "objective {reported}, pooled {} (relative {error:.1e})",
        pooled.objective
    );
    assert!(
        error <= 1e-5,
        "federated {reported}, pooled {}",
        pooled.objective
    );
    let (own, wanted) = (
        metric.dot(&metric.t()),
        pooled.matrix.dot(&pooled.matrix.t()),
    );
    let error = norm(&(&own - &wanted)) / norm(&wanted);
    println!("relative error of M: {error:.1e}");
    if let Some(wanted) = metric_error_max {
        assert!(error <= wanted, "M differs by {error}, wanted {wanted}");
    }
}

#[test]
fn the_demonstration_converges_and_leaves_the_documented_files_and_nothing_else() {
    let home = Home::new();
    let ran = simulate(&home, &[]).must_succeed();
    assert!(ran.stdout.contains("converged"), "{}", ran.stdout);
    assert!(ran.stdout.contains("report.html"), "{}", ran.stdout);
    let truth = "Without weight are 6 of 6 irrelevant features";
    assert!(
        ran.stderr
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .contains(truth),
        "{}",
        ran.stderr
    );
    assert_eq!(home.left(), ["out"]);
    assert_eq!(home.left_in_temp(), [] as [&str; 0]);
    assert_eq!(home.processes(), [] as [&str; 0]);
    let out = home.join("out");
    assert_eq!(names(&out), RESULT_FILES);
    assert_eq!(
        names(&out.join("sites")),
        ["east", "north", "south", "west"]
    );
    for site in names(&out.join("sites")) {
        assert_eq!(names(&out.join("sites").join(site)), SITE_FILES);
    }

    let job = Job::parse(DEMO_JOB).unwrap();
    let result = result(&out);
    for key in RESULT_KEYS {
        assert!(result.get(key).is_some(), "result.json has no {key}");
    }
    assert_eq!(result["status"], "converged");
    assert_eq!(result["job"], "demo");
    assert!(result["notes"].to_string().contains(truth));
    for feature in result["features"].as_array().unwrap() {
        let name = feature["name"].as_str().unwrap();
        assert!(
            !name.starts_with("irrelevant_") || feature["norm"] == 0.0,
            "{name}"
        );
    }
    let metric = npy(&out.join("metric.npy"));
    check_sites(&out, &result, &job, &sites(&out, &job), &metric);
    check_features(&result, &metric, &out);
    let rounds = fs::read_to_string(out.join("rounds.csv")).unwrap();
    let mut rounds = rounds.lines();
    assert_eq!(
        rounds.next().unwrap(),
        "round,objective,left,residual,primal_residual,dual_residual,penalty,metric_norm,dual_norm,seconds"
    );
    assert_eq!(rounds.count() as u64, result["rounds"].as_u64().unwrap());
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.find(truth).unwrap() < report.rfind(">How well it does").unwrap());
    for elsewhere in ["src=\"http", "href=\"http", "<script", "@import", "url("] {
        assert!(
            !report.contains(elsewhere),
            "the report needs {elsewhere:?}"
        );
    }
    // Along what changes the objective little, rounded sums leave a metric some thousandths from the least.
    check_against_pooled(&out, &job, Some(1e-2));
}

/// Of dissimilar, then of similar pairs: those that s >= b, at the site's best b, calls dissimilar, and similar.
fn pair_table(site: &Site, metric: &Array2<f64>) -> Value {
    let projected = site.matrix.dot(metric);
    let mut told = Vec::new();
    for i in 0..site.classes.len() {
        for j in 0..i {
            let label = match site.classes[i] == site.classes[j] {
                true => 1.0,
                false => -1.0,
            };
            told.push((label, projected.row(i).dot(&projected.row(j))));
        }
    }
    let threshold = best_threshold(&told);
    let mut table = [[0_u64; 2]; 2];
    for (label, similarity) in told {
        table[usize::from(label > 0.0)][usize::from(similarity >= threshold)] += 1;
    }
    serde_json::json!(table)
}

/// Of one site a result says how much it sent; all else stays in the site's own file, and adds up to what the result says of
/// all.
fn check_sites(out: &Path, result: &Value, job: &Job, sites: &[Site], metric: &Array2<f64>) {
    let entries = result["sites"].as_array().unwrap();
    assert_eq!(entries.len(), sites.len());
    let (mut patients, mut wrong, mut all) = (0, 0, 0);
    for ((entry, name), site) in entries.iter().zip(&job.sites).zip(sites) {
        assert_eq!(entry["name"], name.as_str());
        let told: Vec<&String> = entry.as_object().unwrap().keys().collect();
        assert_eq!(
            told,
            ["bytes_received", "bytes_sent", "messages", "name", "trees"]
        );
        let own = fs::read(out.join("sites").join(name.as_str()).join("figures.json")).unwrap();
        let own: Value = serde_json::from_slice(&own).unwrap();
        assert_eq!(own["patients"], site.classes.len());
        let page = out.join("sites").join(name.as_str()).join("report.html");
        let page = fs::read_to_string(page).unwrap();
        let first = format!("on this site's {} patients, by the", site.classes.len());
        assert!(page.contains(&first), "{page}");
        let counted = own["evaluation"].as_array().unwrap();
        let pairs = counted.iter().find(|one| one["rule"] == "pairs").unwrap();
        let truth = pair_table(site, metric);
        assert_eq!(pairs["confusion"], truth, "{name}");
        let count = |row: usize, place: usize| truth[row][place].as_u64().unwrap();
        patients += site.classes.len();
        wrong += count(0, 1) + count(1, 0);
        all += count(0, 0) + count(0, 1) + count(1, 0) + count(1, 1);
        assert!(entry["bytes_sent"].as_u64().unwrap() > 0);
        assert!(entry["bytes_received"].as_u64().unwrap() > 0);
    }
    assert_eq!(result["patients"], patients);
    let pooled = result["evaluation"].as_array().unwrap();
    let pairs = pooled.iter().find(|one| one["rule"] == "pairs").unwrap();
    // Pairs of each kind are published in tens, rounded up, and so are wrong ones.
    let published = pairs["patients"].as_u64().unwrap();
    assert!((all..all + 20).contains(&published), "{published} of {all}");
    assert_eq!(published % 10, 0);
    let told = (1.0 - pairs["accuracy"].as_f64().unwrap()) * published as f64;
    assert!((told - wrong as f64).abs() < 10.0, "{told} of {wrong}");
}

/// Row k of W is the feature that `result.json` and `features.csv` have in place k.
fn check_features(result: &Value, metric: &Array2<f64>, out: &Path) {
    let features = result["features"].as_array().unwrap();
    let table = fs::read_to_string(out.join("features.csv")).unwrap();
    assert_eq!(features.len(), metric.nrows());
    assert_eq!(table.lines().count(), 1 + metric.nrows());
    for ((entry, row), line) in features
        .iter()
        .zip(metric.rows())
        .zip(table.lines().skip(1))
    {
        let norm = row.dot(&row).sqrt();
        assert!((entry["norm"].as_f64().unwrap() - norm).abs() <= 1e-12);
        assert_eq!(entry["selected"], norm > 0.0);
        assert_eq!(line.split(',').nth(1).unwrap(), entry["name"]);
    }
    let names: Vec<&str> = features
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "first_1");
    assert!(names.contains(&"grade=low"), "{names:?}");
}

#[test]
fn equal_seeds_give_equal_bytes_on_any_number_of_threads_and_another_seed_others() {
    let home = Home::with_patients(PATIENTS);
    home.write("job.toml", DEMO_JOB);
    let run = |out: &str, seed: &str, threads: &str| {
        let mut command = home.command(&coordinator());
        command.args(["simulate", "job.toml", "--data", "data"]);
        command.args(["--out", out, "--seed", seed]);
        command.env("RAYON_NUM_THREADS", threads);
        ran(&mut command).must_succeed();
        fs::read(home.join(out).join("metric.npy")).unwrap()
    };
    let one = run("one", "7", "1");
    assert!(one == run("two", "7", "2"), "two threads, other bytes");
    assert!(one == run("again", "7", "2"), "the same seed, other bytes");
    assert!(one != run("other", "8", "2"), "the seed does not matter");
}

#[test]
fn the_federation_finds_the_metric_of_the_pooled_patients() {
    let home = Home::with_patients(PATIENTS);
    let text = demo_job(&["tolerance = 1e-10", "round_limit = 500"], "");
    let text = format!("precision = \"exact\"\n{text}");
    home.write("job.toml", &text);
    simulate(&home, &["job.toml", "--data", "data"]).must_succeed();
    let out = home.join("out");
    assert_eq!(result(&out)["status"], "converged");
    check_against_pooled(&out, &Job::parse(&text).unwrap(), Some(1e-3));
}

#[test]
fn four_real_hospitals_converge_under_the_policy_that_admits_the_smallest() {
    let Some(data) = real_data("heart_disease") else {
        return;
    };
    let home = Home::new();
    let sample = whole_job("heart-disease.toml");
    let policy = fs::read_to_string(root().join("deploy/policies/heart-disease.toml")).unwrap();
    home.write("policy.toml", &format!("exact_sums = true\n{policy}"));
    let data = data.to_string_lossy().into_owned();
    for (keys, rounds_max) in [
        ("", 9),
        ("tolerance = 1e-12\n", 20),
        (
            "threshold = 1.0\ncentring = \"pooled\"\ntolerance = 1e-12\n",
            20,
        ),
    ] {
        let tight = keys.contains("tolerance");
        let precision = if tight { "precision = \"exact\"\n" } else { "" };
        let text = sample.replace("[unpsl]\n", &format!("[unpsl]\n{keys}"));
        let text = format!("{precision}{text}");
        home.write("job.toml", &text);
        let arguments = [
            "job.toml",
            "--data",
            &data,
            "--policy",
            "policy.toml",
            "--force",
        ];
        let ran = simulate(&home, &arguments).must_succeed();
        assert!(
            ran.stderr.contains("class_patients_min"),
            "a rule was lowered without a word:\n{}",
            ran.stderr
        );
        let out = home.join("out");
        let result = result(&out);
        assert_eq!(result["status"], "converged");
        let rounds = result["rounds"].as_u64().unwrap();
        assert!(rounds <= rounds_max, "{keys}: {rounds} rounds");
        let certificate = result["certificate"].as_f64().unwrap();
        assert!(certificate < 1e-3, "{keys}: {certificate}");
        check_against_pooled(&out, &Job::parse(&text).unwrap(), tight.then_some(1e-3));
    }
}

#[test]
fn four_real_hospitals_are_refused_under_the_default_policy() {
    let Some(data) = real_data("heart_disease") else {
        return;
    };
    let home = Home::new();
    let job = root().join("deploy/jobs/heart-disease.toml");
    let [job, data] = [&job, &data].map(|path| path.to_string_lossy().into_owned());
    simulate(&home, &[&job, "--data", &data]).must_fail(
        REFUSED,
        &["KDR-POLICY", "class_patients_min", "switzerland"],
    );
    assert_eq!(home.left(), [] as [&str; 0]);
    assert_eq!(home.left_in_temp(), [] as [&str; 0]);
}

/// The choice can be followed from the table alone: the smallest log loss; of equals the highest accuracy, then the form that the job
/// names first, the larger lambda_1, the smaller rank, the more neighbours. The table has four digits of what is compared.
#[test]
fn a_federation_chooses_by_counts_that_cover_every_patient_and_sends_what_the_policy_explains() {
    let home = Home::with_patients(PATIENTS);
    let keys = [
        "lambda_sparsity = [0.004, 0.015, 0.03]",
        "form = [\"inner_product\", \"distance\"]",
        "rank = [2, 5]",
        "neighbours = [1, 5, 9]",
        "folds = 3",
        "starts = 2",
    ];
    home.write("job.toml", &demo_job(&keys, ""));
    home.write("policy.toml", "cell_min = 1\n");
    let arguments = ["job.toml", "--data", "data", "--policy", "policy.toml"];
    simulate(&home, &arguments).must_succeed();
    let result = result(&home.join("out"));
    assert_eq!(result["status"], "converged");
    let rows = result["selection"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3 * 2 * 3);
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    for row in rows {
        assert_eq!(number(row, "right") + number(row, "wrong"), 350.0, "{row}");
    }
    let best = rows
        .iter()
        .max_by(|one, other| {
            let by = |key: &str| number(one, key).total_cmp(&number(other, key));
            let loss = by("log_loss").reverse();
            let is_first = |row: &Value| row["form"] == "inner_product";
            loss.then(by("right"))
                .then(is_first(one).cmp(&is_first(other)))
                .then(by("lambda_sparsity"))
                .then(by("rank").reverse())
                .then(by("neighbours"))
        })
        .unwrap();
    let chosen: Vec<&Value> = rows.iter().filter(|row| row["chosen"] == true).collect();
    assert_eq!(chosen, [best]);
    let metric = npy(&home.join("out").join("metric.npy"));
    assert_eq!(metric.ncols() as f64, number(best, "rank"));
    let distance = &result["evaluation"][0];
    assert_eq!(distance["neighbours"], best["neighbours"]);

    let notes = result["notes"].to_string();
    assert!(
        notes.contains("; the best of "),
        "what the other form had: {notes}"
    );

    // 2 forms x 2 ranks x 3 folds x 3 lambdas are fitted side by side, and 2 x 2 x 3 metrics judged at once.
    let journal = home
        .join("out")
        .join("sites")
        .join("north")
        .join("journal.jsonl");
    let journal = fs::read_to_string(journal).unwrap();
    let sent = |kind: &str| journal.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(sent("\"validation\""), 1);
    let exchanges = sent("\"derivatives\"");
    let rounds = result["rounds"].as_u64().unwrap() as usize;
    assert!(
        exchanges > rounds && exchanges <= 9 + 2 * (rounds + 3),
        "{exchanges}"
    );
}
