//! An operator who asks who is alike, ten thousand times, to find a patient, or one value of a patient whom they know. Against sites
//! that count their patients one by one both succeed; against those that we have, the same questions find where groups are.

use kindred_tests::deployment::{certify, tls_of};
use kindred_tests::federation::{NOW, RUN, worker};
use kindred_tests::programs::Home;
use kindred_tests::studies::Opened;
use ndarray::Array2;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::neighbours::{Alike, Answer as Told, OctaveGrid, Request as Asked, parted};
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
use std::sync::Arc;

const SITES: [&str; 3] = ["north", "south", "east"];
const PATIENTS: usize = 60;
/// Queries of one job at most.
const AT_ONCE: usize = 200;
/// Halvings of a line.
const HALVINGS: usize = 45;
/// Points from which one centre is found.
const POINTS: usize = 6;

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
    let weight = if run == "other" { 2.0 } else { 1.0 };
    json!({
        "job": job("learned", &[vec![0.0; 3]]), "patients": PATIENTS, "cohort": "",
        "learned": {"metric": {
            "rows": rows, "dropped": [], "rule": "distance",
            "metric": [[weight, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
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
    /// The sum over the sites of what they answer to one question of a job.
    fn sum<T>(
        &self,
        queries: &[Vec<f64>],
        asked: &Asked,
        mut add: impl FnMut(&mut Option<T>, Told),
    ) -> T {
        let mut sum = None;
        for site in SITES {
            let job = Job::parse(&job("learned", queries)).unwrap();
            let path = self.home.join(&format!("data/{site}.csv"));
            let source = SourceConfig::of_file(&path, Some("patient".to_owned()));
            let cohort = read_cohort(&source, &job, &mut |_| ()).unwrap();
            let folder = self.home.join(&format!("sites/{site}/runs/asks"));
            let secret = Box::new(|_: &[u8]| 7);
            let rules = Rules::default();
            let made = Computation::new(job, Seed(1), cohort, folder, &rules, secret);
            let mut site = made.unwrap_or_else(|stop| panic!("{stop:?}"));
            match site.answer(&Request::Neighbours(asked.clone())) {
                Ok(Answer::Neighbours(told)) => add(&mut sum, told),
                other => panic!("{other:?}"),
            }
        }
        sum.unwrap()
    }

    /// The nearest of the radii that a run takes.
    fn radius(&self) -> f64 {
        let counts = self.sum(&[vec![0.0; 3]], &Asked::Measure, |sum, told| {
            let Told::Distances(own) = told else { panic!() };
            let sum: &mut Vec<u64> = sum.get_or_insert_with(|| vec![0; own.len()]);
            sum.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
        });
        let all: u64 = counts.iter().sum();
        let mut so_far = 0;
        let cell = counts.iter().position(|count| {
            so_far += count;
            100 * so_far >= 5 * all
        });
        OctaveGrid::end(cell.unwrap())
    }

    /// Who is alike to each query, as the sites tell it.
    fn by_groups(&self, queries: &[Vec<f64>], radius: f64) -> Vec<[u64; 2]> {
        let asked = Asked::Count(Arc::new(vec![radius; 3]));
        let sum = self.sum(queries, &asked, |sum, told| {
            let Told::Alike(own) = told else { panic!() };
            let own: Vec<[u64; 2]> = own
                .iter()
                .step_by(3)
                .map(|one: &Alike| [one.classes[0], one.classes[1]])
                .collect();
            let sum: &mut Vec<[u64; 2]> = sum.get_or_insert_with(|| vec![[0; 2]; own.len()]);
            for (sum, one) in sum.iter_mut().zip(own) {
                *sum = [sum[0] + one[0], sum[1] + one[1]];
            }
        });
        assert!(
            sum.iter()
                .flatten()
                .all(|count| *count == 0 || *count >= 10)
        );
        sum
    }

    /// The same, as sites would tell it that count patients one by one.
    fn one_by_one(&self, queries: &[Vec<f64>], radius: f64) -> Vec<[u64; 2]> {
        let count = |query: &Vec<f64>| {
            let mut counts = [0; 2];
            for (place, class) in self.patients() {
                counts[class as usize] += u64::from(apart(&place, query) <= radius);
            }
            counts
        };
        queries.iter().map(count).collect()
    }

    fn patients(&self) -> impl Iterator<Item = (Vec<f64>, u32)> {
        let sites = self.vectors.iter().zip(&self.classes);
        sites.flat_map(|(vectors, classes)| {
            let rows = vectors.outer_iter().map(|row| row.to_vec());
            rows.zip(classes.iter().copied())
        })
    }

    /// The means of the groups of all sites, and their class.
    fn centres(&self) -> Vec<(Vec<f64>, u32)> {
        let mut centres = Vec::new();
        for (vectors, classes) in self.vectors.iter().zip(&self.classes) {
            for members in parted(vectors.view(), classes, 10) {
                let mean = |column| {
                    let values = members.iter().map(|row| vectors[[*row, column]]);
                    values.sum::<f64>() / members.len() as f64
                };
                centres.push((vec![mean(0), mean(1), mean(2)], classes[members[0]]));
            }
        }
        centres
    }
}

fn apart(one: &[f64], other: &[f64]) -> f64 {
    let squares = one.iter().zip(other).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
}

fn nearest(places: impl Iterator<Item = Vec<f64>>, point: &[f64]) -> f64 {
    places
        .map(|place| apart(&place, point))
        .fold(f64::INFINITY, f64::min)
}

/// Lines from far away into the patients, six beside each other for each of some directions: where on each somebody is first
/// alike. Ten thousand questions at most, each the next halving of all lines.
fn first_crossings(answer: impl Fn(&[Vec<f64>]) -> Vec<[u64; 2]>) -> (Vec<Points>, usize) {
    let mut draw = ChaCha8Rng::seed_from_u64(5);
    let mut lines: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for _ in 0..AT_ONCE / POINTS {
        let way: Vec<f64> = (0..3).map(|_| draw.random_range(-1.0..1.0)).collect();
        let length = apart(&way, &[0.0; 3]);
        let aim: Vec<f64> = (0..3).map(|_| draw.random_range(3.0..7.0)).collect();
        for _ in 0..POINTS {
            let aim: Vec<f64> = aim
                .iter()
                .map(|x| x + draw.random_range(-0.2..0.2))
                .collect();
            let out = (0..3).map(|k| aim[k] + 30.0 * way[k] / length).collect();
            lines.push((out, aim));
        }
    }
    let mut ends = vec![(0.0, 1.0); lines.len()];
    let at = |(out, aim): &(Vec<f64>, Vec<f64>), share: f64| -> Vec<f64> {
        out.iter()
            .zip(aim)
            .map(|(a, b)| a + share * (b - a))
            .collect()
    };
    let mut asked = 0;
    for _ in 0..HALVINGS {
        let halves = ends.iter().map(|(far, near)| 0.5 * (far + near));
        let points: Vec<Vec<f64>> = lines.iter().zip(halves).map(|(l, s)| at(l, s)).collect();
        asked += points.len();
        for (end, counts) in ends.iter_mut().zip(answer(&points)) {
            let half = 0.5 * (end.0 + end.1);
            match counts[0] + counts[1] > 0 {
                true => end.1 = half,
                false => end.0 = half,
            }
        }
    }
    let points: Vec<Vec<f64>> = lines.iter().zip(&ends).map(|(l, e)| at(l, e.1)).collect();
    (points.chunks(POINTS).map(<[_]>::to_vec).collect(), asked)
}

/// The centre of the sphere that points lie on; none where they lie on none, as where two patients were met.
fn centre(points: &[Vec<f64>]) -> Option<Vec<f64>> {
    // |p|^2 = 2 c'p + (R^2 - |c|^2), around the first point, by least squares.
    let origin = &points[0];
    let mut normal = Array2::<f64>::zeros((4, 5));
    let rows: Vec<[f64; 5]> = points
        .iter()
        .map(|point| {
            let p: Vec<f64> = point.iter().zip(origin).map(|(a, b)| a - b).collect();
            let square = p.iter().map(|x| x * x).sum::<f64>();
            [2.0 * p[0], 2.0 * p[1], 2.0 * p[2], 1.0, square]
        })
        .collect();
    for row in &rows {
        for i in 0..4 {
            for j in 0..5 {
                normal[[i, j]] += row[i] * row[j];
            }
        }
    }
    for pivot in 0..4 {
        let best = (pivot..4).max_by(|a, b| {
            normal[[*a, pivot]]
                .abs()
                .total_cmp(&normal[[*b, pivot]].abs())
        })?;
        for column in 0..5 {
            normal.swap([pivot, column], [best, column]);
        }
        for row in 0..4 {
            if row != pivot {
                let factor = normal[[row, pivot]] / normal[[pivot, pivot]];
                for column in 0..5 {
                    let taken = factor * normal[[pivot, column]];
                    normal[[row, column]] -= taken;
                }
            }
        }
    }
    let found: Vec<f64> = (0..4)
        .map(|row| normal[[row, 4]] / normal[[row, row]])
        .collect();
    let off = |row: &[f64; 5]| (0..4).map(|k| row[k] * found[k]).sum::<f64>() - row[4];
    let worst = rows.iter().map(|row| off(row).abs()).fold(0.0, f64::max);
    let centre = found.iter().zip(origin).map(|(c, o)| c + o);
    (worst < 1e-9).then(|| centre.take(3).collect())
}

#[test]
fn ten_thousand_questions_find_patients_who_are_counted_one_by_one_and_groups_where_these_are_counted()
 {
    let hospitals = hospitals();
    let radius = hospitals.radius();
    let naive = |queries: &[Vec<f64>]| hospitals.one_by_one(queries, radius);
    let (crossings, asked) = first_crossings(naive);
    let found: Vec<Vec<f64>> = crossings
        .iter()
        .filter_map(|points| centre(points))
        .collect();
    let patients = || hospitals.patients().map(|(place, _)| place);
    let hits = found
        .iter()
        .filter(|place| nearest(patients(), place) < 1e-4);
    let hits = hits.count();
    println!(
        "one by one: {asked} questions, {} centres, {hits} of them patients",
        found.len()
    );
    assert!(
        asked <= 10_000 && hits >= 10,
        "the attack does not bite: {hits}"
    );

    let ours = |queries: &[Vec<f64>]| hospitals.by_groups(queries, radius);
    let (crossings, asked) = first_crossings(ours);
    let found: Vec<Vec<f64>> = crossings
        .iter()
        .filter_map(|points| centre(points))
        .collect();
    let centres = || hospitals.centres().into_iter().map(|(place, _)| place);
    let mut distances: Vec<f64> = found
        .iter()
        .map(|place| nearest(patients(), place))
        .collect();
    distances.sort_by(f64::total_cmp);
    let groups = found
        .iter()
        .filter(|place| nearest(centres(), place) < 1e-4);
    println!(
        "by groups: {asked} questions, {} centres, {} of them means of ten patients or more; the nearest patient is {:.3} away, {:.3} in the middle",
        found.len(),
        groups.count(),
        distances[0],
        distances[distances.len() / 2],
    );
    // What is found is where groups are, and nothing else: the mean of ten patients is none of them.
    assert!(found.len() >= 10);
    for place in &found {
        assert!(
            nearest(centres(), place) < 1e-4,
            "{place:?} is no group's mean"
        );
    }
    assert!(distances[0] > 0.01);
}

#[test]
fn two_questions_a_hair_apart_tell_the_outcome_of_a_known_patient_who_is_counted_and_nothing_where_groups_are()
 {
    let hospitals = hospitals();
    let radius = hospitals.radius();
    // So that the known patient, and nobody else, is within one of the two and not within the other.
    let pairs: Vec<Vec<f64>> = hospitals
        .patients()
        .flat_map(|(place, _)| {
            [1e-7, -1e-7].map(|hair| vec![place[0] + radius + hair, place[1], place[2]])
        })
        .collect();
    let told = |answers: &[[u64; 2]]| -> Vec<Option<u32>> {
        let pairs = answers.chunks(2);
        let differ = |pair: &[[u64; 2]]| match (pair[1][0] > pair[0][0], pair[1][1] > pair[0][1]) {
            (true, false) => Some(0),
            (false, true) => Some(1),
            _ => None,
        };
        pairs.map(differ).collect()
    };
    let truth: Vec<u32> = hospitals.patients().map(|(_, class)| class).collect();
    let rightly = |told: &[Option<u32>]| {
        let both = told.iter().zip(&truth);
        both.filter(|(told, class)| **told == Some(**class)).count()
    };
    let naive = told(&hospitals.one_by_one(&pairs, radius));
    assert_eq!(rightly(&naive), truth.len(), "the attack does not bite");
    let mut answers = Vec::new();
    for batch in pairs.chunks(AT_ONCE) {
        answers.extend(hospitals.by_groups(batch, radius));
    }
    let ours = told(&answers);
    let said = ours.iter().flatten().count();
    // Whoever has found every group and its class guesses by the nearest mean.
    let centres = hospitals.centres();
    let guess = |place: &[f64]| {
        let by = |a: &&(Vec<f64>, u32), b: &&(Vec<f64>, u32)| {
            apart(&a.0, place).total_cmp(&apart(&b.0, place))
        };
        centres.iter().min_by(by).map(|(_, class)| *class)
    };
    let guesses: Vec<Option<u32>> = hospitals.patients().map(|(p, _)| guess(&p)).collect();
    let right = rightly(&guesses);
    println!(
        "one by one: {} of {} outcomes; by groups: {said}; guessed by the nearest group's mean: {right}",
        rightly(&naive),
        truth.len()
    );
    assert!(said <= 2, "{said} outcomes were told");
    // A toss is right for half. The own outcome is a tenth of a group, which the guess cannot but profit by.
    assert!(
        right * 100 < truth.len() * 75,
        "{right} outcomes were guessed"
    );
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
