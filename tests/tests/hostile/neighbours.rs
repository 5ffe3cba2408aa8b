//! An operator who asks who is alike, thousands of times, to learn the outcome of a patient whom they know. The operator knows more than
//! any does: the groups and the places of all patients, and the outcomes of all but one. Against sums without noise the last outcome
//! follows; against those that we have it is guessed, no more often than `outcome_epsilon` lets it be.

use kindred_tests::deployment::{certify, tls_of};
use kindred_tests::federation::{NOW, RUN, worker};
use kindred_tests::programs::Home;
use kindred_tests::studies::Opened;
use ndarray::Array2;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::neighbours::{Answer as Told, Closeness, Group, Request as Asked, parted};
use protocol::message::{Answer, Request};
use protocol::name::SiteName;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use similarity::numeric::seed::Seed;
use site_agent::config::SourceConfig;
use site_agent::method::Computation;
use site_agent::run::worker::Worker;
use site_agent::source::read_cohort;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const SITES: [&str; 3] = ["north", "south", "east"];
const PATIENTS: usize = 60;
/// Queries of one job at most.
const AT_ONCE: usize = 200;

/// Sites' keys with which the attack is carried out.
const KEYS: u64 = 8;

type Points = Vec<Vec<f64>>;

/// Where the patients are, and their outcomes, which are tossed: nothing but the patients themselves tells of them.
struct Hospitals {
    home: Home,
    /// One list a site.
    vectors: Vec<Array2<f64>>,
    classes: Vec<Vec<u32>>,
}

fn hospitals() -> Hospitals {
    let home = Home::new();
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    let (mut vectors, mut classes) = (Vec::new(), Vec::new());
    for site in SITES {
        let own = Array2::from_shape_fn((PATIENTS, 3), |_| {
            (draw.random_range(0.0..10.0_f64) * 1e6).round() / 1e6
        });
        let tossed: Vec<u32> = (0..PATIENTS).map(|_| draw.random_range(0..2)).collect();
        let mut table = "patient,class,x,y,z\n".to_owned();
        for (patient, class) in tossed.iter().enumerate() {
            let [x, y, z] = [0, 1, 2].map(|column| own[[patient, column]]);
            let _ = writeln!(table, "p{patient},{class},{x},{y},{z}");
        }
        home.write(&format!("data/{site}.csv"), &table);
        for run in ["learned", "other"] {
            home.write(
                &format!("sites/{site}/runs/{run}/comparison.json"),
                &record(run),
            );
        }
        vectors.push(own);
        classes.push(tossed);
    }
    Hospitals {
        home,
        vectors,
        classes,
    }
}

/// What a run has left: a metric under which a patient's place is its record.
fn record(run: &str) -> String {
    let row = |(column, name): (usize, &str)| json!({"name": name, "column": column, "transform": "value", "mean": 0.0, "scale": 1.0, "imputed": 0.0});
    let rows: Vec<_> = ["x", "y", "z"].into_iter().enumerate().map(row).collect();
    json!({
        "job": job("learned", &[vec![0.0; 3]]), "patients": PATIENTS, "cohort": "",
        "learned": {"metric": {
            "rows": rows, "dropped": [], "rule": "distance",
            "metric": [[weight(run), 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        }},
    })
    .to_string()
}

fn job(run: &str, queries: &[Vec<f64>]) -> String {
    let feature = |name| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
    let features = ["x", "y", "z"].map(feature).concat();
    format!(
        "name = 'search'\nmethod = 'neighbours'\nsites = {SITES:?}\n\
         [outcome]\ncolumn = 'class'\nkind = 'binary'\npositive = ['1']\nnegative = ['0']\n{features}\
         [neighbours]\nrun = '{run}'\nqueries = {queries:?}\n"
    )
}

impl Hospitals {
    /// The patients of the second class within a radius of each query, as the sites tell it: in the sum over all of them.
    fn by_groups(&self, (run, key): (&str, u64), queries: &[Vec<f64>], radius: f64) -> Vec<f64> {
        let mut sums = vec![0.0; queries.len()];
        for (place, site) in SITES.into_iter().enumerate() {
            let job = Job::parse(&job(run, queries)).unwrap();
            let path = self.home.join(&format!("data/{site}.csv"));
            let source = SourceConfig::of_file(&path, Some("patient".to_owned()));
            let cohort = read_cohort(&source, &job).unwrap();
            let folder = self.home.join(&format!("sites/{site}/runs/asks"));
            // A key of the site's own.
            let secret = Box::new(move |bytes: &[u8]| {
                let mut hasher = DefaultHasher::new();
                (key, place, bytes).hash(&mut hasher);
                hasher.finish()
            });
            let rules = Rules::default();
            let made = Computation::new(job, Seed(1), cohort, folder, &rules, secret);
            let mut site = made.unwrap_or_else(|stop| panic!("{stop:?}"));
            let asked = Asked::Count(Arc::new(vec![radius; 3]));
            let Ok(Answer::Neighbours(Told::Found(told))) =
                site.answer(&Request::Neighbours(asked))
            else {
                panic!("no answer");
            };
            let own = told.alike.iter().step_by(3);
            let pairs = sums.iter_mut().zip(own);
            pairs.for_each(|(sum, one)| *sum += one.classes[1].sum);
        }
        sums
    }

    /// The groups of all sites by a run: each with its members, counted over all sites.
    fn groups(&self, run: &str) -> Vec<(Group, Vec<usize>)> {
        let mut groups = Vec::new();
        for (place, vectors) in self.vectors.iter().enumerate() {
            let mut placed = vectors.clone();
            placed.column_mut(0).mapv_inplace(|x| weight(run) * x);
            for members in parted(placed.view(), 10) {
                let group = Group::of(placed.view(), &members);
                let all = members.into_iter().map(|row| place * PATIENTS + row);
                groups.push((group, all.collect()));
            }
        }
        groups
    }

    fn classes(&self) -> Vec<u32> {
        self.classes.concat()
    }

    /// The places of all patients by a run.
    fn places(&self, run: &str) -> Points {
        let rows = self.vectors.iter().flat_map(|one| one.outer_iter());
        rows.map(|row| vec![weight(run) * row[0], row[1], row[2]])
            .collect()
    }

    /// Each group's number of patients of the second class, with its noise, solved from thousands of answers.
    fn solved(&self, run: &str, key: u64) -> Vec<f64> {
        let groups = self.groups(run);
        let mut draw = ChaCha8Rng::seed_from_u64(5);
        // Beside the known patients, a hair apart, and further away.
        let mut queries = Points::new();
        for hair in [1e-7, 0.5, 1.0, 2.0] {
            for place in self.places(run) {
                for _ in 0..2 {
                    let near = place
                        .iter()
                        .map(|x| x + hair * draw.random_range(-1.0..1.0));
                    queries.push(near.collect());
                }
            }
        }
        let size = groups.len();
        let mut normal = Array2::<f64>::zeros((size, size + 1));
        for (batch, radius) in queries
            .chunks(AT_ONCE)
            .zip([2.0, 3.0, 4.0].into_iter().cycle())
        {
            for (query, sum) in batch.iter().zip(self.by_groups((run, key), batch, radius)) {
                let within = |(group, _): &(Group, Vec<usize>)| {
                    group.within(query, radius, Closeness::Euclidean)
                };
                let row: Vec<f64> = groups.iter().map(within).chain([sum]).collect();
                for i in 0..size {
                    for j in 0..=size {
                        normal[[i, j]] += row[i] * row[j];
                    }
                }
            }
        }
        solve(normal)
    }
}

fn weight(run: &str) -> f64 {
    if run == "other" { 2.0 } else { 1.0 }
}

/// Of a positive definite matrix, with what it is to give behind it.
pub(crate) fn solve(mut rows: Array2<f64>) -> Vec<f64> {
    let size = rows.nrows();
    for pivot in 0..size {
        for row in 0..size {
            if row != pivot {
                let factor = rows[[row, pivot]] / rows[[pivot, pivot]];
                for column in pivot..=size {
                    let taken = factor * rows[[pivot, column]];
                    rows[[row, column]] -= taken;
                }
            }
        }
    }
    (0..size)
        .map(|row| rows[[row, size]] / rows[[row, row]])
        .collect()
}

/// How much likelier each patient's outcome is the second class, in logarithms, to whoever knows all others and this number of each group.
fn evidence(groups: &[(Group, Vec<usize>)], told: &[f64], classes: &[u32]) -> Vec<f64> {
    let mut evidence = vec![0.0; classes.len()];
    for ((_, members), told) in groups.iter().zip(told) {
        let all: u32 = members.iter().map(|one| classes[*one]).sum();
        for one in members {
            let left = told - f64::from(all - classes[*one]);
            evidence[*one] += left.abs() - (left - 1.0).abs();
        }
    }
    evidence
}

/// Outcomes that are guessed right, where the likelier one is guessed.
fn right(evidence: &[f64], classes: &[u32]) -> usize {
    let both = evidence.iter().zip(classes);
    both.filter(|(evidence, class)| (**evidence > 0.0) == (**class == 1))
        .count()
}

/// Three standard errors above the share of guesses that a proof allows, over so many groups whose patients share one noise.
pub(crate) fn allowed(epsilon: f64, groups: usize) -> f64 {
    let share = epsilon.exp() / (1.0 + epsilon.exp());
    share + 3.0 * (share * (1.0 - share) / groups as f64).sqrt()
}

#[test]
fn whoever_solves_thousands_of_answers_and_knows_nine_of_ten_guesses_the_tenth_no_oftener_than_the_proof_allows()
 {
    let hospitals = hospitals();
    let (classes, groups) = (hospitals.classes(), hospitals.groups("learned"));
    // Without noise the last outcome follows.
    let exact = |(_, members): &(Group, Vec<usize>)| {
        f64::from(members.iter().map(|one| classes[*one]).sum::<u32>())
    };
    let naive: Vec<f64> = groups.iter().map(exact).collect();
    let known = right(&evidence(&groups, &naive, &classes), &classes);
    assert_eq!(known, classes.len(), "the attack does not bite");

    let others = hospitals.groups("other");
    let (mut by_one, mut by_two, mut noisy) = (0, 0, 0);
    for key in 0..KEYS {
        let solved = hospitals.solved("learned", key);
        for (told, exact) in solved.iter().zip(&naive) {
            // All that thousands of answers hold of a group is this whole number, the same in all of them.
            assert!((told - told.round()).abs() < 1e-3, "{told} was not solved");
            noisy += usize::from((told - exact).abs() > 0.5);
        }
        let one = evidence(&groups, &solved, &classes);
        by_one += right(&one, &classes);
        // Another metric makes other groups, and epsilon adds up.
        let other = evidence(&others, &hospitals.solved("other", key), &classes);
        let both: Vec<f64> = one.iter().zip(other).map(|(a, b)| a + b).collect();
        by_two += right(&both, &classes);
    }
    let made = groups.len() * KEYS as usize;
    let all = (classes.len() * KEYS as usize) as f64;
    let [by_one, by_two] = [by_one, by_two].map(|right| right as f64 / all);
    println!(
        "without noise {known} of {} outcomes guessed; by one metric {by_one:.3}, by two {by_two:.3}",
        classes.len()
    );
    println!(
        "allowed {:.3} and {:.3}; {noisy} of {made} groups with noise",
        allowed(1.0, made),
        allowed(2.0, made)
    );
    assert!(by_one <= allowed(1.0, made) && by_two <= allowed(2.0, made));
    // So much the answers do tell, or nobody would ask: a toss is right for half.
    assert!(by_one > 0.6 && noisy * 3 > made);
}

#[test]
fn two_questions_a_hair_apart_around_a_known_patient_differ_by_nothing_that_tells_of_them() {
    let hospitals = hospitals();
    let radius = 2.0;
    let places = hospitals.places("learned");
    let beside = |hair: f64| -> Points {
        let near = places
            .iter()
            .map(|one| vec![one[0] + radius + hair, one[1], one[2]]);
        near.collect()
    };
    let classes = hospitals.classes();
    let hair = 1e-7;
    let ask = |queries: &Points| -> Vec<f64> {
        let batches = queries.chunks(AT_ONCE);
        batches
            .flat_map(|one| hospitals.by_groups(("learned", 0), one, radius))
            .collect()
    };
    let (outside, inside) = (ask(&beside(hair)), ask(&beside(-hair)));
    // Counted one by one, the known patient is all of the difference.
    let count = |query: &[f64]| -> u32 {
        let near = places.iter().zip(&classes);
        let near = near.filter(|(place, _)| apart(place, query) <= radius);
        near.map(|(_, class)| class).sum()
    };
    let naive = beside(-hair).into_iter().zip(beside(hair)).zip(&classes);
    let naive = naive.filter(|((near, far), class)| count(near) - count(far) == **class);
    assert_eq!(naive.count(), classes.len(), "the attack does not bite");
    for (far, near) in outside.iter().zip(&inside) {
        assert!((near - far).abs() < 1e-4, "a step of {}", near - far);
    }
}

fn apart(one: &[f64], other: &[f64]) -> f64 {
    let squares = one.iter().zip(other).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
}

/// A site with its own books, which it counts by, that permits such questions, and a study that it has opened with two others.
pub(crate) struct Counting {
    study: Opened,
    site: Worker,
}

impl Counting {
    /// The study is of the patients that a job is about.
    pub(crate) fn open(home: &Home, permission: &str, job: &str) -> Self {
        certify(home);
        let one = |site: &str| {
            let name = SiteName::new(site).unwrap();
            (name, worker(&config(site, permission), home, NOW))
        };
        let mut workers: BTreeMap<_, _> = SITES.into_iter().map(one).collect();
        let study = Opened::of(job, home, &mut workers);
        let site = workers.remove(&SiteName::new(SITES[0]).unwrap()).unwrap();
        Self { study, site }
    }

    /// Another process of the site.
    pub(crate) fn again(self, home: &Home, permission: &str) -> Self {
        let Self { study, site } = self;
        drop(site);
        let site = worker(&config(SITES[0], permission), home, NOW);
        Self { study, site }
    }

    /// The rule by which a job is refused; none where the site takes part.
    pub(crate) fn refused(&mut self, run: &str, job: &str, seed: u64) -> Option<String> {
        let job = self.study.job(job);
        match self.study.describe(&mut self.site, run, &job, seed) {
            Answer::Refused(refusal) => Some(refusal.rule),
            Answer::Covered(_) => None,
            other => panic!("{other:?}"),
        }
    }
}

fn config(site: &str, permission: &str) -> String {
    format!(
        "site = '{site}'\ncoordinator = 'localhost:7443'\nfolder = 'sites/{site}'\n{}\
         [source]\nkind = 'csv'\npath = 'data/{site}.csv'\npatient = 'patient'\n\
         [policy]\n{permission} = true\noperators = ['*']\nmethods = ['*']\n",
        tls_of(&format!("site-{site}"))
    )
}

#[test]
fn the_site_counts_the_questions_by_itself_whatever_the_runs_are_called() {
    let hospitals = hospitals();
    let queries: Vec<Vec<f64>> = (0..AT_ONCE).map(|k| vec![k as f64, 0.0, 1.0]).collect();
    let text = job("learned", &queries);
    let mut site = Counting::open(&hospitals.home, "neighbours", &text);
    // Five runs of 200: a thousand in all. Heard again, a run is not another one.
    for seed in [1, 2, 3, 3, 4, 5] {
        assert_eq!(site.refused(RUN, &text, seed), None, "{seed}");
    }
    let one = job("learned", &queries[..1]);
    let limit = Some("queries".to_owned());
    assert_eq!(site.refused(RUN, &one, 6), limit);
    assert_eq!(site.refused("another-name", &one, 7), limit);
    let mut site = site.again(&hospitals.home, "neighbours");
    assert_eq!(site.refused(RUN, &one, 8), limit);
    // A run that was counted goes on.
    assert_eq!(site.refused(RUN, &text, 5), None);
}

#[test]
fn groups_by_another_run_are_not_made_and_no_file_is_read_that_is_no_runs() {
    let hospitals = hospitals();
    let query = [vec![1.0, 2.0, 3.0]];
    let mut site = Counting::open(&hospitals.home, "neighbours", &job("learned", &query));
    assert_eq!(site.refused(RUN, &job("learned", &query), 1), None);
    let other = site.refused(RUN, &job("other", &query), 2);
    assert_eq!(other.as_deref(), Some("metrics_for_groups"));
    // The same groups by another name are the same.
    let runs = hospitals.home.join("sites/north/runs");
    std::fs::create_dir_all(runs.join("copy")).unwrap();
    let file = "comparison.json";
    std::fs::copy(
        runs.join("learned").join(file),
        runs.join("copy").join(file),
    )
    .unwrap();
    assert_eq!(site.refused(RUN, &job("copy", &query), 3), None);
    // Another record under the name that was asked by is another.
    hospitals
        .home
        .write("sites/north/runs/learned/comparison.json", &record("other"));
    let changed = site.refused(RUN, &job("learned", &query), 4);
    assert_eq!(changed.as_deref(), Some("metrics_for_groups"));
    for unknown in ["unknown", "learned-2"] {
        let told = site.refused(RUN, &job(unknown, &query), 5);
        assert_eq!(told.as_deref(), Some("run"), "{unknown}");
    }
    for path in ["../learned", "/etc", "a/b", ""] {
        let text = job("learned", &query).replace("run = 'learned'", &format!("run = '{path}'"));
        assert!(Job::parse(&text).is_err(), "{path}");
    }
    let wide = job("copy", &[vec![1.0; 4]]);
    assert_eq!(site.refused(RUN, &wide, 6).as_deref(), Some("run"));
}
