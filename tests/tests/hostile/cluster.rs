//! Whoever hears the sums of all steps of a search for groups, and takes two steps after each other apart. Of sites that move their
//! patients one by one the difference is a patient; of those that we have it is a small group, of ten patients or more.

use crate::neighbours::Counting;
use kindred_tests::federation::RUN;
use kindred_tests::programs::Home;
use ndarray::{Array1, Array2, ArrayView1, s};
use privacy::Rules;
use protocol::job::Job;
use protocol::message::cluster::{
    Answer as Told, Divided, Dividing, NearestSums, Request as Asked, Spread, nearest, parted,
};
use protocol::message::{Answer, Request};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use similarity::numeric::seed::Seed;
use similarity::uses::clusters::common::Division;
use site_agent::config::SourceConfig;
use site_agent::method::Computation;
use site_agent::source::read_cohort;
use std::fmt::Write as _;
use std::sync::Arc;

const SITES: [&str; 3] = ["north", "south", "east"];
const PATIENTS: usize = 90;
/// Patients of a small group at least, by the rules of every site here.
const LEAST: u64 = 10;
/// Searches that are taken apart.
const SEARCHES: u64 = 200;
const STEPS_MAX: usize = 40;

/// Where the patients are, and their outcomes, which are tossed.
struct Hospitals {
    home: Home,
    sites: Vec<(Array2<f64>, Vec<u32>)>,
}

fn hospitals() -> Hospitals {
    let home = Home::new();
    let mut draw = ChaCha8Rng::seed_from_u64(12);
    let mut sites = Vec::new();
    for site in SITES {
        let own = Array2::from_shape_fn((PATIENTS, 2), |_| {
            (draw.random_range(0.0..10.0_f64) * 1e6).round() / 1e6
        });
        let tossed: Vec<u32> = (0..PATIENTS).map(|_| draw.random_range(0..2)).collect();
        let mut table = "patient,class,x,y\n".to_owned();
        for (patient, class) in tossed.iter().enumerate() {
            let _ = writeln!(
                table,
                "p{patient},{class},{},{}",
                own[[patient, 0]],
                own[[patient, 1]]
            );
        }
        home.write(&format!("data/{site}.csv"), &table);
        for run in ["learned", "other"] {
            let path = format!("sites/{site}/runs/{run}/comparison.json");
            home.write(&path, &record(run));
        }
        sites.push((own, tossed));
    }
    Hospitals { home, sites }
}

/// What a run has left: a metric under which a patient's place is its record.
fn record(run: &str) -> String {
    let row = |(column, name): (usize, &str)| json!({"name": name, "column": column, "transform": "value", "mean": 0.0, "scale": 1.0, "imputed": 0.0});
    let rows: Vec<_> = ["x", "y"].into_iter().enumerate().map(row).collect();
    let weight = if run == "other" { 2.0 } else { 1.0 };
    json!({
        "job": job("learned", 2), "patients": PATIENTS, "cohort": "",
        "learned": {"metric": {
            "rows": rows, "dropped": [], "rule": "distance", "metric": [[weight, 0.0], [0.0, 1.0]],
        }},
    })
    .to_string()
}

fn job(run: &str, coordinates: u32) -> String {
    let feature = |name| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
    let features = ["x", "y"].map(feature).concat();
    format!(
        "name = 'search'\nmethod = 'cluster'\nsites = {SITES:?}\n\
         [outcome]\ncolumn = 'class'\nkind = 'binary'\npositive = ['1']\nnegative = ['0']\n{features}\
         [cluster]\nrun = '{run}'\ncoordinates = {coordinates}\n"
    )
}

/// A site that answers about small groups.
fn computation(hospitals: &Hospitals, site: &str) -> Computation {
    let job = Job::parse(&job("learned", 2)).unwrap();
    let path = hospitals.home.join(&format!("data/{site}.csv"));
    let source = SourceConfig::of_file(&path, Some("patient".to_owned()));
    let cohort = read_cohort(&source, &job).unwrap();
    let folder = hospitals.home.join(&format!("sites/{site}/runs/looks"));
    let made = Computation::new(
        job,
        Seed(1),
        cohort,
        folder,
        &Rules::default(),
        Box::new(|_: &[u8]| 7),
    );
    made.unwrap_or_else(|stop| panic!("{stop:?}"))
}

fn dividing(centres: &Array2<f64>) -> Dividing {
    Dividing {
        divisions: vec![Divided {
            sample: 0,
            clusters: u32::try_from(centres.nrows()).unwrap(),
        }],
        centres: centres.clone(),
    }
}

/// The sum over the sites of what they tell of one division.
fn told(sites: &mut [Computation], centres: &Array2<f64>) -> NearestSums {
    let asked = Request::Cluster(Asked::Step(Arc::new(dividing(centres))));
    let mut sum: Option<NearestSums> = None;
    for site in sites {
        let Ok(Answer::Cluster(Told::Sums(own))) = site.answer(&asked) else {
            panic!("no sums");
        };
        match &mut sum {
            None => sum = Some(own),
            Some(sum) => {
                sum.sums += &own.sums;
                let both = sum.patients.iter_mut().zip(&own.patients);
                both.for_each(|(sum, own)| *sum += own);
            }
        }
    }
    sum.unwrap()
}

/// The same, as sites would tell it that move their patients one by one.
fn one_by_one(hospitals: &Hospitals, centres: &Array2<f64>) -> NearestSums {
    let mut told = NearestSums {
        patients: vec![0; centres.nrows()],
        sums: Array2::zeros(centres.dim()),
    };
    for (vectors, _) in &hospitals.sites {
        for row in vectors.outer_iter() {
            let cluster = nearest(row, centres.view()).0;
            told.patients[cluster] += 1;
            told.sums.row_mut(cluster).scaled_add(1.0, &row);
        }
    }
    told
}

/// What a cluster has gained or lost from one step to the next: patients, and their mean.
fn differences(before: &NearestSums, after: &NearestSums) -> Vec<(u64, Array1<f64>)> {
    let mut found = Vec::new();
    for row in 0..before.patients.len() {
        let moved = before.patients[row].abs_diff(after.patients[row]);
        if moved > 0 {
            let gap = &after.sums.row(row) - &before.sums.row(row);
            let sign = if after.patients[row] > before.patients[row] {
                1.0
            } else {
                -1.0
            };
            found.push((moved, gap.mapv(|one| sign * one / moved as f64)));
        }
    }
    found
}

/// All differences of honest searches: nobody chooses a centre.
fn taken_apart(
    mut told: impl FnMut(&Array2<f64>) -> NearestSums,
    spread: &Spread,
) -> Vec<(u64, Array1<f64>)> {
    let mut found = Vec::new();
    for search in 0..SEARCHES {
        let clusters = 2 + usize::try_from(search % 7).unwrap();
        let mut stream = Seed(search).stream("attack", 0);
        let mut division = Division::new(spread.start(clusters, &mut stream));
        let mut before: Option<NearestSums> = None;
        for _ in 0..STEPS_MAX {
            let sums = told(&division.centres);
            division.step(&sums.patients, sums.sums.view());
            if let Some(before) = &before {
                found.extend(differences(before, &sums));
            }
            before = Some(sums);
            if division.is_settled {
                break;
            }
        }
    }
    found
}

fn apart(one: ArrayView1<'_, f64>, other: ArrayView1<'_, f64>) -> f64 {
    (&one - &other).mapv(|gap| gap * gap).sum().sqrt()
}

#[test]
fn two_steps_after_each_other_tell_patients_who_move_one_by_one_and_small_groups_where_these_move()
{
    let hospitals = hospitals();
    let patients: Vec<Array1<f64>> = hospitals
        .sites
        .iter()
        .flat_map(|(vectors, _)| {
            vectors
                .outer_iter()
                .map(|row| row.to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let from_patients = |point: &Array1<f64>| {
        let all = patients.iter().map(|one| apart(one.view(), point.view()));
        all.fold(f64::INFINITY, f64::min)
    };
    let mut sites = SITES.map(|site| computation(&hospitals, site));
    let mut spread: Option<Spread> = None;
    for site in &mut sites {
        let Ok(Answer::Cluster(Told::Spread(own))) = site.answer(&Request::Cluster(Asked::Measure))
        else {
            panic!("no spread");
        };
        match &mut spread {
            None => spread = Some(own),
            Some(sum) => {
                sum.patients += own.patients;
                sum.sums
                    .iter_mut()
                    .zip(&own.sums)
                    .for_each(|(a, b)| *a += b);
                sum.products += &own.products;
            }
        }
    }
    let spread = spread.unwrap();

    let naive = taken_apart(|centres| one_by_one(&hospitals, centres), &spread);
    let mut read: Vec<usize> = naive
        .iter()
        .filter(|(moved, _)| *moved == 1)
        .filter_map(|(_, point)| {
            patients
                .iter()
                .position(|one| apart(one.view(), point.view()) < 1e-9)
        })
        .collect();
    read.sort_unstable();
    read.dedup();
    println!(
        "one by one: {} differences, {} of {} patients read to the last digit",
        naive.len(),
        read.len(),
        patients.len()
    );
    assert!(
        read.len() > patients.len() / 2,
        "the attack does not bite: {}",
        read.len()
    );

    let ours = taken_apart(|centres| told(&mut sites, centres), &spread);
    let mut means: Vec<(u64, Array1<f64>)> = Vec::new();
    for (vectors, _) in &hospitals.sites {
        for members in parted(vectors.view(), 10) {
            let rows = vectors.select(ndarray::Axis(0), &members);
            means.push((
                members.len() as u64,
                rows.mean_axis(ndarray::Axis(0)).unwrap(),
            ));
        }
    }
    let is_group = |(moved, point): &&(u64, Array1<f64>)| {
        means
            .iter()
            .any(|(size, mean)| size == moved && apart(mean.view(), point.view()) < 1e-9)
    };
    let groups = ours.iter().filter(is_group).count();
    let nearest = ours
        .iter()
        .map(|(_, point)| from_patients(point))
        .fold(f64::INFINITY, f64::min);
    println!(
        "by small groups: {} differences, {groups} of them one small group; the nearest patient is {nearest:.4} away",
        ours.len()
    );
    assert!(ours.len() > 100 && groups > 10);
    assert!(means.iter().all(|(size, _)| *size >= LEAST));
    assert!(nearest > 1e-3);
}

/// Every sum of every question is over whole small groups, also of a sample, and a feature that few have is not told.
#[test]
fn whatever_is_asked_no_count_is_below_the_rule() {
    let hospitals = hospitals();
    let mut sites = SITES.map(|site| computation(&hospitals, site));
    let mut draw = ChaCha8Rng::seed_from_u64(3);
    let mut counts = 0;
    for round in 0..300_u32 {
        let clusters = draw.random_range(2..=8_usize);
        let centres = Array2::from_shape_fn((2 * clusters, 2), |_| draw.random_range(-2.0..12.0));
        let width = u32::try_from(clusters).unwrap();
        let divided = |sample| Divided {
            sample,
            clusters: width,
        };
        let asked = Arc::new(Dividing {
            divisions: vec![divided(0), divided(round % 21)],
            centres: centres.clone(),
        });
        let half = centres.slice(s![..clusters, ..]).to_owned();
        let marking = protocol::message::cluster::Marking {
            fared: vec![protocol::message::neighbours::Alike::default(); clusters],
            centres: half,
        };
        for site in &mut sites {
            for request in [
                Asked::Step(Arc::clone(&asked)),
                Asked::Compare(Arc::clone(&asked)),
                Asked::Mark(Arc::new(marking.clone())),
            ] {
                let Ok(Answer::Cluster(answer)) = site.answer(&Request::Cluster(request)) else {
                    panic!("no answer");
                };
                let told: Vec<u64> = match answer {
                    Told::Sums(told) => told.patients,
                    Told::Agreement(told) => {
                        let fared = told.fared.iter().map(|one| one.count());
                        fared.chain(told.tables).collect()
                    }
                    Told::Marks(told) => {
                        let features = told.iter().flat_map(|one| &one.features);
                        features.map(|one| one.patients).collect()
                    }
                    Told::Spread(told) => vec![told.patients],
                };
                counts += told.len();
                assert!(told.iter().all(|count| *count == 0 || *count >= LEAST));
            }
        }
    }
    println!("{counts} counts, none of 1 to 9");
    assert!(counts > 10_000);
}

#[test]
fn the_site_counts_the_centres_by_itself_and_makes_groups_by_one_run() {
    let hospitals = hospitals();
    let text = job("learned", 2);
    let mut site = Counting::open(&hospitals.home, "clusters", &text);
    // 2 + 3 + .. + 8 centres, of a thousand.
    for seed in 0..28 {
        assert_eq!(site.refused(RUN, &text, seed), None, "{seed}");
    }
    let limit = Some("queries".to_owned());
    assert_eq!(site.refused("another-name", &text, 28), limit);
    // A run that was counted goes on.
    assert_eq!(site.refused(RUN, &text, 5), None);
    let other = site.refused(RUN, &job("other", 2), 50);
    assert!(other.is_some_and(|rule| rule.contains("metrics_for_groups")));
    let hospitals = self::hospitals();
    let mut fresh = Counting::open(&hospitals.home, "clusters", &text);
    let told = fresh.refused(RUN, &job("learned", 3), 1);
    assert_eq!(told.as_deref(), Some("run"));
    let told = fresh.refused(RUN, &job("unknown", 2), 1);
    assert_eq!(told.as_deref(), Some("run"));
}
