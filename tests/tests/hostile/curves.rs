//! An operator who looks for clusters, again and again, to learn whether a patient whom they know had an event by the horizon, and when. The
//! operator knows more than any does: the groups and the places of all patients, and the outcomes of all but one. Without noise the last
//! outcome follows; with it, it is guessed, no more often than `outcome_epsilon` lets it be. A member who subtracts its own part has no more.

use crate::neighbours::{allowed, solve};
use kindred_tests::programs::Home;
use ndarray::{Array2, Axis};
use privacy::Rules;
use protocol::job::Job;
use protocol::message::cluster::{
    Answer as Told, Divided, Dividing, Request as Asked, nearest, parted,
};
use protocol::message::{Answer, Request};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use similarity::numeric::seed::Seed;
use similarity::uses::curves::{cell, cells};
use site_agent::config::SourceConfig;
use site_agent::method::Computation;
use site_agent::source::read_cohort;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const SITES: [&str; 3] = ["north", "south", "east"];
const PATIENTS: usize = 60;
/// Sites' keys with which the attack is carried out.
const KEYS: u64 = 12;
/// The grid of the outcome: what the study lists.
const HORIZONS: [f64; 3] = [100.0, 300.0, 500.0];
/// Divisions that are asked about, of two clusters each.
const DIVISIONS: usize = 600;
const EPSILON: f64 = 1.0;
/// Models of the risk that an operator submits.
const MODELS: usize = 40;

/// Where the patients are, and the cells of their outcomes: half have an event by the last horizon, at any time; all others are censored or
/// followed beyond.
struct Hospitals {
    home: Home,
    vectors: Vec<Array2<f64>>,
    outcomes: Vec<usize>,
}

/// The patients of a hospital: where they are, and how many of ten have an event.
#[derive(Clone, Copy)]
struct Population {
    from: f64,
    until: f64,
    events: u32,
}

/// Half of the patients have an event, and hospitals do not differ.
const ALIKE: Population = Population {
    from: 0.0,
    until: 10.0,
    events: 5,
};

fn hospitals() -> Hospitals {
    hospitals_of([ALIKE; SITES.len()])
}

fn hospitals_of(populations: [Population; SITES.len()]) -> Hospitals {
    let home = Home::new();
    let mut draw = ChaCha8Rng::seed_from_u64(21);
    let (mut vectors, mut outcomes) = (Vec::new(), Vec::new());
    for (site, population) in SITES.into_iter().zip(populations) {
        let own = Array2::from_shape_fn((PATIENTS, 2), |_| {
            let place: f64 = draw.random_range(population.from..population.until);
            (place * 1e6).round() / 1e6
        });
        let mut table = "patient,days,event,x,y\n".to_owned();
        for (patient, row) in own.outer_iter().enumerate() {
            let event = i32::from(draw.random_range(0..10) < population.events);
            let most = if event == 1 { 500 } else { 900 };
            let days = draw.random_range(1..=most);
            outcomes.push(cell(&HORIZONS, f64::from(days), event == 1));
            let _ = writeln!(table, "p{patient},{days},{event},{},{}", row[0], row[1]);
        }
        home.write(&format!("data/{site}.csv"), &table);
        for run in ["learned", "other"] {
            let path = format!("sites/{site}/runs/{run}/comparison.json");
            home.write(&path, &record(run));
        }
        for model in 0..MODELS {
            let path = format!("sites/{site}/runs/{}/comparison.json", risk(model));
            home.write(&path, &regression(model));
        }
        vectors.push(own);
    }
    Hospitals {
        home,
        vectors,
        outcomes,
    }
}

fn weight(run: &str) -> f64 {
    if run == "other" { 2.0 } else { 1.0 }
}

/// What a run has left: a metric that weighs the first feature.
fn record(run: &str) -> String {
    let row = |(column, name): (usize, &str)| json!({"name": name, "column": column, "transform": "value", "mean": 0.0, "scale": 1.0, "imputed": 0.0});
    let rows: Vec<_> = ["x", "y"].into_iter().enumerate().map(row).collect();
    json!({
        "job": job("learned"), "patients": PATIENTS, "cohort": "",
        "learned": {"metric": {
            "rows": rows, "dropped": [], "rule": "distance", "metric": [[weight(run), 0.0], [0.0, 1.0]],
        }},
    })
    .to_string()
}

/// The run of a model of the risk.
fn risk(model: usize) -> String {
    format!("risk-{model}")
}

/// What each feature adds to the risk of a model: models point everywhere.
fn coefficients(model: usize) -> [f64; 2] {
    let angle = std::f64::consts::PI * model as f64 / MODELS as f64;
    [angle.cos(), angle.sin()]
}

/// What such a run has left.
fn regression(model: usize) -> String {
    let terms = ["x", "y"].map(|name| json!({"name": name, "values": {"numeric": {"imputed": 0.0, "knots": []}}, "indicator": false}));
    json!({
        "job": job("learned"), "patients": PATIENTS, "cohort": "",
        "learned": {"regression": {"terms": terms, "coefficients": coefficients(model)}},
    })
    .to_string()
}

fn job(run: &str) -> String {
    let by = match run.starts_with("risk-") {
        true => "coordinates = 1\nby = 'risk'\n",
        false => "coordinates = 2\n",
    };
    let feature = |name| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
    let features = ["x", "y"].map(feature).concat();
    format!(
        "name = 'search'\nmethod = 'cluster'\nsites = {SITES:?}\n\
         [outcome]\ncolumn = 'days'\nkind = 'survival'\nevent = 'event'\nhorizons = {HORIZONS:?}\n{features}\
         [cluster]\nrun = '{run}'\n{by}"
    )
}

/// A small group: the site that it is at, its mean, and its patients, counted over all sites.
struct Small {
    site: usize,
    mean: Vec<f64>,
    members: Vec<usize>,
}

impl Hospitals {
    fn smalls(&self, run: &str) -> Vec<Small> {
        self.smalls_by(&|vectors| {
            let mut placed = vectors.clone();
            placed.column_mut(0).mapv_inplace(|x| weight(run) * x);
            placed
        })
    }

    /// By the risk of a model.
    fn smalls_of_risk(&self, model: usize) -> Vec<Small> {
        let coefficients = Array2::from_shape_vec((2, 1), coefficients(model).to_vec()).unwrap();
        self.smalls_by(&|vectors| vectors.dot(&coefficients))
    }

    fn smalls_by(&self, place: &dyn Fn(&Array2<f64>) -> Array2<f64>) -> Vec<Small> {
        let mut smalls = Vec::new();
        for (site, vectors) in self.vectors.iter().enumerate() {
            let placed = place(vectors);
            for members in parted(placed.view(), 10) {
                let mean = placed.select(Axis(0), &members).mean_axis(Axis(0)).unwrap();
                let all = members.into_iter().map(|row| site * PATIENTS + row);
                smalls.push(Small {
                    site,
                    mean: mean.to_vec(),
                    members: all.collect(),
                });
            }
        }
        smalls
    }

    /// The cells of each cluster of all divisions, as one site tells them.
    fn told(&self, (run, key): (&str, u64), site: usize, asked: &Arc<Dividing>) -> Vec<Vec<f64>> {
        let job = Job::parse(&job(run)).unwrap();
        let path = self.home.join(&format!("data/{}.csv", SITES[site]));
        let source = SourceConfig::of_file(&path, Some("patient".to_owned()));
        let cohort = read_cohort(&source, &job).unwrap();
        let folder = self.home.join(&format!("sites/{}/runs/asks", SITES[site]));
        // A key of the site's own.
        let secret = Box::new(move |bytes: &[u8]| {
            let mut hasher = DefaultHasher::new();
            (key, site, bytes).hash(&mut hasher);
            hasher.finish()
        });
        let rules = Rules::default();
        let made = Computation::new(job, Seed(1), cohort, folder, &rules, secret);
        let mut site = made.unwrap_or_else(|stop| panic!("{stop:?}"));
        let asked = Request::Cluster(Asked::Compare(Arc::clone(asked)));
        let Ok(Answer::Cluster(Told::Agreement(told))) = site.answer(&asked) else {
            panic!("no agreement");
        };
        let cells = told.fared.iter();
        cells
            .map(|one| one.classes.iter().map(|cell| cell.sum).collect())
            .collect()
    }

    /// The noisy cells of each small group of these sites, solved from the sums over them of all divisions.
    fn solved(&self, (run, key): (&str, u64), sites: &[usize]) -> Vec<Vec<f64>> {
        let smalls = self.smalls(run);
        let smalls: Vec<&Small> = smalls
            .iter()
            .filter(|one| sites.contains(&one.site))
            .collect();
        let mut draw = ChaCha8Rng::seed_from_u64(3);
        let centres = Array2::from_shape_fn((2 * DIVISIONS, 2), |_| draw.random_range(0.0..10.0));
        let two = Divided {
            sample: 0,
            clusters: 2,
        };
        let asked = Arc::new(Dividing {
            divisions: vec![two; DIVISIONS],
            centres,
        });
        let mut sums = vec![vec![0.0; cells(HORIZONS.len())]; 2 * DIVISIONS];
        for site in sites {
            for (sum, own) in sums.iter_mut().zip(self.told((run, key), *site, &asked)) {
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
        }
        let size = smalls.len();
        let mut solved = vec![Vec::new(); size];
        for cell in 0..cells(HORIZONS.len()) {
            let column: Vec<f64> = sums.iter().map(|sum| sum[cell]).collect();
            let mut normal = Array2::<f64>::zeros((size, size + 1));
            for (_, rows) in asked.rows() {
                let own = asked.centres.slice(ndarray::s![rows.clone(), ..]);
                for (cluster, row) in rows.enumerate() {
                    let is_in = |one: &&Small| {
                        let mean = ndarray::ArrayView1::from(&one.mean);
                        f64::from(u8::from(nearest(mean, own).0 == cluster))
                    };
                    let line: Vec<f64> = smalls.iter().map(is_in).chain([column[row]]).collect();
                    for i in 0..size {
                        for j in 0..=size {
                            normal[[i, j]] += line[i] * line[j];
                        }
                    }
                }
            }
            let all = solved.iter_mut().zip(solve(normal));
            all.for_each(|(cells, one): (&mut Vec<f64>, f64)| cells.push(one));
        }
        solved
    }

    /// The cells of small groups as they are.
    fn exact(&self, smalls: &[&Small]) -> Vec<Vec<f64>> {
        let of = |one: &&Small| {
            let mut counts = vec![0.0; cells(HORIZONS.len())];
            for member in &one.members {
                counts[self.outcomes[*member]] += 1.0;
            }
            counts
        };
        smalls.iter().map(of).collect()
    }

    /// How likely each outcome of each patient is to whoever knows all others of the group and these cells, in logarithms.
    fn evidence(&self, smalls: &[&Small], told: &[Vec<f64>], evidence: &mut [Vec<f64>]) {
        for ((one, told), exact) in smalls.iter().zip(told).zip(self.exact(smalls)) {
            for member in &one.members {
                for (outcome, sum) in evidence[*member].iter_mut().enumerate() {
                    let mut left: Vec<f64> = told.iter().zip(&exact).map(|(a, b)| a - b).collect();
                    left[self.outcomes[*member]] += 1.0;
                    left[outcome] -= 1.0;
                    *sum += likely(&left);
                }
            }
        }
    }

    /// Events by the last horizon, and cells, that are guessed right of the patients of these groups.
    fn right(&self, smalls: &[&Small], evidence: &[Vec<f64>]) -> [usize; 2] {
        let mut right = [0, 0];
        for member in smalls.iter().flat_map(|one| &one.members) {
            let most = evidence[*member]
                .iter()
                .copied()
                .fold(f64::NEG_INFINITY, f64::max);
            let chance: Vec<f64> = evidence[*member]
                .iter()
                .map(|one| (one - most).exp())
                .collect();
            let is_event = |cell: usize| cell.is_multiple_of(2) && cell < 2 * HORIZONS.len();
            let share = |of_events: bool| {
                let own = (0..chance.len()).filter(|cell| is_event(*cell) == of_events);
                let own: Vec<f64> = own.map(|cell| chance[cell]).collect();
                own.iter().sum::<f64>() / own.len() as f64
            };
            let event = share(true) > share(false);
            right[0] += usize::from(event == is_event(self.outcomes[*member]));
            let likeliest = (0..chance.len()).max_by(|a, b| chance[*a].total_cmp(&chance[*b]));
            right[1] += usize::from(likeliest == Some(self.outcomes[*member]));
        }
        right
    }
}

/// The thirds of these small groups by their risk, as the sites cut them: the question, and who is in each.
fn thirds(smalls: &[Small]) -> (Arc<Dividing>, Vec<Vec<&Small>>) {
    let mut places: Vec<f64> = smalls.iter().map(|one| one.mean[0]).collect();
    places.sort_by(f64::total_cmp);
    let cut =
        |part: usize| (places[part * places.len() / 3 - 1] + places[part * places.len() / 3]) / 2.0;
    let (low, high) = (cut(1), cut(2));
    let half = (high - low) / 2.0;
    let asked = Dividing {
        divisions: vec![Divided {
            sample: 0,
            clusters: 3,
        }],
        centres: Array2::from_shape_vec((3, 1), vec![low - half, low + half, high + half]).unwrap(),
    };
    let within = |third: usize| {
        let is_in = move |one: &&Small| {
            usize::from(one.mean[0] > low) + usize::from(one.mean[0] > high) == third
        };
        smalls.iter().filter(is_in).collect()
    };
    (Arc::new(asked), (0..3).map(within).collect())
}

impl Hospitals {
    /// The cells of each third that these sites tell together.
    fn told_of_thirds(
        &self,
        (model, key): (usize, u64),
        sites: &[usize],
        asked: &Arc<Dividing>,
    ) -> Vec<Vec<f64>> {
        let run = risk(model);
        let mut sums = vec![vec![0.0; cells(HORIZONS.len())]; 3];
        for site in sites {
            for (sum, own) in sums.iter_mut().zip(self.told((&run, key), *site, asked)) {
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
        }
        sums
    }
}

/// How likely what is left of a sum of so many groups is as their noise, in logarithms: many draws together are nearly normal.
fn likely_of_many(left: &[f64], groups: usize) -> f64 {
    let alpha = (-EPSILON / 2.0).exp();
    let variance = groups as f64 * 2.0 * alpha / (1.0 - alpha).powi(2);
    let mean = left.iter().sum::<f64>() / left.len() as f64;
    let squares: f64 = left.iter().map(|one| (one - mean).powi(2)).sum();
    -squares / (2.0 * variance)
}

/// How likely what is left of the cells is as noise, in logarithms: of each cell a whole number z with P(z) ~ exp(-epsilon |z| / 2), less the
/// mean over the cells, which nobody knows.
fn likely(left: &[f64]) -> f64 {
    let all = (-80..=80).map(|first| {
        let shift = f64::from(first) - left[0];
        let far: f64 = left.iter().map(|one| (one + shift).abs()).sum();
        (-EPSILON / 2.0 * far).exp()
    });
    all.sum::<f64>().ln()
}

#[test]
fn whoever_solves_all_divisions_and_knows_all_others_guesses_an_event_no_oftener_than_the_proof_allows()
 {
    let hospitals = hospitals();
    let all = hospitals.outcomes.len();
    let nothing = || vec![vec![0.0; cells(HORIZONS.len())]; all];
    let smalls = hospitals.smalls("learned");
    let (learned, others) = (&smalls, &hospitals.smalls("other"));
    let [learned, others] = [learned, others].map(|all| all.iter().collect::<Vec<&Small>>());
    // Without noise what the others leave is the patient.
    let naive = hospitals.exact(&learned);
    let known = learned.iter().zip(&naive).flat_map(|(one, counts)| {
        let outcomes = &hospitals.outcomes;
        one.members.iter().filter(move |member| {
            let others = one.members.iter().filter(|other| other != member);
            let mut left = counts.clone();
            others.for_each(|other| left[outcomes[*other]] -= 1.0);
            left.iter().position(|one| *one > 0.5) == Some(outcomes[**member])
        })
    });
    assert_eq!(known.count(), all, "the attack does not bite");

    let sites: Vec<usize> = (0..SITES.len()).collect();
    // A member subtracts its own part, and has the sum over the others.
    let rest: Vec<&Small> = smalls.iter().filter(|one| one.site > 0).collect();
    let patients = rest.iter().map(|one| one.members.len()).sum::<usize>();
    let (mut by_one, mut by_two, mut by_member, mut cells) = (0, 0, 0, 0);
    for key in 0..KEYS {
        let told = hospitals.solved(("learned", key), &sites);
        let asked_again = hospitals.solved(("learned", key), &sites);
        let same = told.iter().flatten().zip(asked_again.iter().flatten());
        assert!(
            same.into_iter()
                .all(|(one, other)| (one - other).abs() < 1e-6)
        );
        let mut evidence = nothing();
        hospitals.evidence(&learned, &told, &mut evidence);
        let [events, own] = hospitals.right(&learned, &evidence);
        by_one += events;
        cells += own;
        // Another metric makes other groups, and epsilon adds up.
        let told = hospitals.solved(("other", key), &sites);
        hospitals.evidence(&others, &told, &mut evidence);
        by_two += hospitals.right(&others, &evidence)[0];
        let mut evidence = nothing();
        let told = hospitals.solved(("learned", key), &sites[1..]);
        hospitals.evidence(&rest, &told, &mut evidence);
        by_member += hospitals.right(&rest, &evidence)[0];
    }
    let share = |right: usize, patients: usize| right as f64 / (patients * KEYS as usize) as f64;
    let (by_one, by_two) = (share(by_one, all), share(by_two, all));
    let (by_member, cells) = (share(by_member, patients), share(cells, all));
    let made = learned.len() * KEYS as usize;
    println!(
        "without noise {all} of {all} outcomes; events guessed right by one metric {by_one:.3}, by two {by_two:.3}, by a member {by_member:.3}; \
         intervals {cells:.3}"
    );
    let bounds = [allowed(EPSILON, made), allowed(2.0 * EPSILON, made)];
    println!("allowed {:.3} and {:.3}", bounds[0], bounds[1]);
    assert!(by_one <= bounds[0] && by_two <= bounds[1]);
    assert!(by_member <= allowed(EPSILON, rest.len() * KEYS as usize));
    // So much the answers do reveal, or nobody would ask: a toss is right for half.
    assert!(by_one > 0.52);
}

/// The grid is what the study lists: no job of the study has another outcome, and cells are counted by it alone.
#[test]
fn cells_follow_from_the_horizons_and_no_count_of_a_group_is_below_the_rule() {
    let hospitals = hospitals();
    let mut draw = ChaCha8Rng::seed_from_u64(4);
    let centres = Array2::from_shape_fn((2 * DIVISIONS, 2), |_| draw.random_range(-2.0..12.0));
    let two = Divided {
        sample: 0,
        clusters: 2,
    };
    let asked = Arc::new(Dividing {
        divisions: vec![two; DIVISIONS],
        centres,
    });
    for site in 0..SITES.len() {
        for told in hospitals.told(("learned", 1), site, &asked) {
            assert_eq!(told.len(), cells(HORIZONS.len()));
            // The cells of a cluster add up to its patients, who are none or ten and more.
            let patients: f64 = told.iter().sum();
            assert!(
                patients.abs() < 1e-6 || patients > 10.0 - 1e-6,
                "{patients}"
            );
        }
    }
}

/// An operator submits model after model, and solves the thirds of all together. Each model makes other groups, so epsilon adds up over them:
/// a hospital allows one (`metrics_for_groups_max`).
#[test]
fn thirds_of_the_risk_by_many_models_tell_of_an_event_little_more_than_a_toss() {
    let hospitals = hospitals();
    let all = hospitals.outcomes.len();
    let sites: Vec<usize> = (0..SITES.len()).collect();
    let nothing = || vec![vec![0.0; cells(HORIZONS.len())]; all];
    let counts = [1, 5, MODELS];
    let (mut right, mut known) = ([0; 3], 0);
    for key in 0..KEYS {
        let (mut evidence, mut naive) = (nothing(), nothing());
        for model in 0..MODELS {
            let smalls = hospitals.smalls_of_risk(model);
            let (asked, thirds) = thirds(&smalls);
            let told = hospitals.told_of_thirds((model, key), &sites, &asked);
            for (third, told) in thirds.iter().zip(&told) {
                let patients = third.iter().map(|one| one.members.len()).sum::<usize>();
                assert!(
                    (told.iter().sum::<f64>() - patients as f64).abs() < 1e-6,
                    "another third"
                );
                let exact = hospitals.exact(third).into_iter();
                let exact =
                    exact.reduce(|sum, one| sum.iter().zip(one).map(|(a, b)| a + b).collect());
                let left: Vec<f64> = told
                    .iter()
                    .zip(exact.unwrap())
                    .map(|(a, b)| a - b)
                    .collect();
                for member in third.iter().flat_map(|one| &one.members) {
                    for outcome in 0..left.len() {
                        let moved = |left: &[f64]| {
                            let mut left = left.to_vec();
                            left[hospitals.outcomes[*member]] += 1.0;
                            left[outcome] -= 1.0;
                            left
                        };
                        evidence[*member][outcome] += likely_of_many(&moved(&left), third.len());
                        naive[*member][outcome] +=
                            likely_of_many(&moved(&vec![0.0; left.len()]), 1);
                    }
                }
            }
            if let Some(place) = counts.iter().position(|count| *count == model + 1) {
                let everybody: Vec<&Small> = smalls.iter().collect();
                right[place] += hospitals.right(&everybody, &evidence)[0];
                known += hospitals.right(&everybody, &naive)[0];
            }
        }
    }
    assert_eq!(known, all * 3 * KEYS as usize, "the attack does not bite");
    let share = right.map(|right| right as f64 / (all * KEYS as usize) as f64);
    println!(
        "events guessed right from thirds of {counts:?} models: {share:.3?}; without noise all"
    );
    assert!(share[0] <= allowed(EPSILON, all * KEYS as usize));
    // One model is what hospitals allow.
    assert!(share[0] < 0.6 && share[1] < 0.65, "{share:?}");
}

/// Hospitals of patients unlike each other's, of whom one invents its own far away: then a third is another hospital, and nothing but noise
/// is between. What it reads is how that hospital's patients fared together, and of no patient more than the proof allows.
#[test]
fn a_hospital_of_invented_patients_reads_the_events_of_another_with_the_noise_of_its_groups() {
    let of = |from: f64, events: u32| Population {
        from,
        until: from + 4.0,
        events,
    };
    let hospitals = hospitals_of([of(40.0, 5), of(0.0, 2), of(20.0, 8)]);
    let smalls = hospitals.smalls_of_risk(0);
    let (asked, thirds) = thirds(&smalls);
    assert!(
        thirds[0].iter().all(|one| one.site == 1),
        "the attack does not bite"
    );
    let share = |cells: &[f64]| {
        let events: f64 = cells[..2 * HORIZONS.len()].iter().step_by(2).sum();
        events / PATIENTS as f64
    };
    let sum = |all: Vec<Vec<f64>>| {
        let add = |sum: Vec<f64>, one: Vec<f64>| sum.iter().zip(one).map(|(a, b)| a + b).collect();
        all.into_iter().reduce(add).unwrap()
    };
    let truth = share(&sum(hospitals.exact(&thirds[0])));
    let both: Vec<&Small> = smalls.iter().filter(|one| one.site > 0).collect();
    // Whoever guesses takes the sum over both others, which every member has.
    let guess = share(&sum(hospitals.exact(&both))) / 2.0;
    let read = |key: u64| {
        // Nobody of the liar's own is in this third.
        let told = hospitals.told_of_thirds((0, key), &[1, 2], &asked);
        (share(&told[0]) - truth).powi(2)
    };
    let keys = 4 * KEYS;
    let error = ((0..keys).map(read).sum::<f64>() / keys as f64).sqrt();
    let groups = thirds[0].len();
    println!(
        "of {PATIENTS} patients of another hospital in {groups} groups {truth:.2} have an event; read with an error of {error:.3}, guessed {guess:.2}"
    );
    // So much noise lies between: six draws of three cells.
    assert!(error > 0.05, "{error}");
}
