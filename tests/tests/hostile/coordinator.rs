//! A coordinator that lies: what it could read if it might choose its questions, which sites work out by themselves; and what its
//! sites do where its runs are honest.

mod books;
mod honest;
mod parts;
mod rows;
mod site;

use kindred_tests::deployment::{certify, site_config};
use kindred_tests::federation::{NOW, begin_and_ask, converse, worker};
use kindred_tests::programs::Home;
use kindred_tests::studies::{Opened, Proposed, of_study};
use ndarray::{Array2, s};
use privacy::Rules;
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::unpsl::{self as message, Differentiating, Form, Part};
use protocol::message::{Answer, Begin, Request};
use protocol::name::SiteName;
use protocol::progress::Ending;
use site::{Bare, FEATURES, PATIENTS, finish, gradient, look, table, unpsl};
use site_agent::run::stop::Stop;
use site_agent::run::worker::Worker;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sites of every job here.
const SITES: [&str; 3] = ["north", "south", "east"];

/// Three sites, each with a table of its own; `rules` stand in every policy.
fn hospitals(rules: &str) -> (Home, BTreeMap<SiteName, Worker>) {
    let home = Home::new();
    certify(&home);
    let mut workers = BTreeMap::new();
    for (seed, site) in (1..).zip(SITES) {
        home.write(&format!("data/{site}.csv"), &table(PATIENTS, seed));
        let config = site_config(site, 1, &format!("site-{site}")) + rules;
        workers.insert(SiteName::new(site).unwrap(), worker(&config, &home, NOW));
    }
    (home, workers)
}

/// A site says the same when it is prepared again, and nothing of another preparation: by then it has let its columns go.
#[test]
fn a_site_is_prepared_once() {
    let mut site = Bare::open(&table(PATIENTS, 1), &unpsl(""), 7);
    let mut told = site.prepared();
    let first = site.prepared_by(&told).unwrap();
    assert!(matches!(first, Answer::Prepared(_)));
    assert!(site.prepared_by(&told).unwrap() == first, "another answer");
    let metric = Array2::from_elem((FEATURES, 1), 0.1);
    let before = site.ask(look(&metric));
    assert!(site.prepared_by(&told).unwrap() == first, "another answer");
    assert!(site.ask(look(&metric)) == before, "other derivatives");
    told.summary.patients += 1;
    for stop in [
        site.prepared_by(&told).err(),
        site.answered(&Request::Moments).err(),
    ] {
        let Some(Stop::Failed(failure)) = stop else {
            panic!("{stop:?}");
        };
        assert_eq!(failure.code, Code::State);
    }
}

/// A coordinator chooses W so that its loss is a step at w'x = 0, turns w, and reads patients from the jumps of the gradient, of three
/// sites that judge no question, of which it sees the sum of the gradients alone. Sums do not help against who chooses W: this attack must bite, or its failure elsewhere would prove nothing.
#[test]
fn jumps_of_the_sum_tell_rows_of_all_sites_where_nobody_checks_the_question() {
    const ROUNDS: u32 = 1_500;
    let mut pairs = Vec::new();
    let mut sites: Vec<Bare> = (1..=3)
        .map(|seed| {
            let mut site = Bare::open(&table(PATIENTS, seed), &unpsl(""), 7);
            let told = site.prepared();
            pairs.push(told.summary.pairs.total() as f64);
            site
        })
        .collect();
    let look_at = |metric: &Array2<f64>| {
        let of_one = |(site, pairs): (&mut Bare, &f64)| {
            let told = gradient(&site.ask(look(metric)), metric)?;
            Some(told * *pairs)
        };
        let told: Option<Vec<_>> = sites.iter_mut().zip(&pairs).map(of_one).collect();
        told?.into_iter().reduce(|sum, own| sum + own)
    };
    let (rows, answered) = rows::recover(look_at, ROUNDS, 1e7);
    let mut whole = 0;
    for site in &mut sites {
        site.ask(finish(rows::view(0.0, 1.0), 5));
        whole += rows::told(&rows, &site.truth());
    }
    println!(
        "{answered} rounds of sums tell {whole} of {} rows",
        3 * PATIENTS
    );
    assert_eq!(answered, ROUNDS);
    assert!(whole > PATIENTS, "only {whole} rows");
}

/// W = eps I at two thresholds: the loss is then linear in the pairs, and the difference of two gradients is X'X.
/// That is what rounds of UnPSL tell (it was exact to 1.5e-5); so a rule of that name must allow them.
#[test]
fn second_moments_need_their_rule_also_where_rounds_tell_them() {
    let job = unpsl("threshold = \"common\"\ncentring = \"pooled\"\nlambda_correlation = 0");
    let needed = Job::parse(&job).unwrap().facts("researcher").permissions;
    assert!(needed.contains(&privacy::Permission::SecondMoments));
    let mut site = Bare::open(&table(PATIENTS, 6), &job, 7);
    let told = site.prepared();
    let scale = told.summary.pairs.total() as f64 / 1e-4;
    let mut at = |threshold: f64| {
        let mut metric = Array2::zeros((FEATURES + 1, rows::RANK));
        for column in 0..rows::RANK {
            metric[[column, column]] = 1e-4;
        }
        metric[[FEATURES, 0]] = threshold;
        let answer = site.ask(look(&metric));
        match gradient(&answer, &metric) {
            Some(gradient) => gradient.mapv(|x| x * scale),
            None => panic!("{answer:?}"),
        }
    };
    let share = |threshold: f64| 1.0 / (1.0 + (-threshold).exp());
    // Own moments alone are pooled here, so that the patients' sums are 0.
    let told = (at(1.0) - at(0.0)) / (share(1.0) - share(0.0));
    site.ask(finish(
        Array2::from_elem((FEATURES + 1, rows::RANK), 0.1),
        5,
    ));
    let truth = site.truth();
    let products = truth.t().dot(&truth);
    let apart = &told - &products.slice(s![.., ..rows::RANK]);
    let error = apart.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    println!("X'X of {PATIENTS} patients to {error:.1e}, where second_moments allows it");
    assert!(error < 5e-3, "the rule's name would promise too much");
}

/// Else whoever knows the seed knows who is in a fold, and the difference of two folds' sums is of known patients.
#[test]
fn the_folds_of_a_site_follow_from_what_it_alone_knows() {
    let metric = rows::view(0.5, 1.0);
    let job = unpsl("validation = 5");
    let told = |secret: u64| {
        let mut site = Bare::open(&table(PATIENTS, 7), &job, secret);
        site.prepared();
        let without = |fold| {
            Request::Unpsl(message::Request::Differentiate(Differentiating {
                metrics: Arc::new(vec![metric.clone()]),
                parts: vec![Part::without(Form::InnerProduct, fold)],
                rows: Arc::new(vec![None]),
            }))
        };
        (0..5)
            .map(|fold| site.ask(without(fold)))
            .collect::<Vec<Answer>>()
    };
    assert_eq!(told(7), told(7));
    assert_ne!(told(7)[0], told(8)[0]);
}

/// A coordinator that chooses the hospitals of a job, or has keys agreed on for a single run, gets no answer.
#[test]
fn a_job_of_no_study_and_keys_of_a_single_run_are_refused_by_name() {
    let (home, mut workers) = hospitals("");
    let text = unpsl("round_limit = 2");
    let study = Opened::of(&text, &home, &mut workers);
    let begin = |run: &str| study.begin(run, &study.job(&text), 5);
    let of_none = |run: &str| Begin {
        job: text.clone(),
        ..begin(run)
    };
    let of_no_opening = |begin: Begin| Begin {
        opening: None,
        ..begin
    };
    let attempts = [
        (of_none("job"), Request::Describe, "study"),
        (of_no_opening(of_none("keys")), Request::Introduce, "study"),
        (of_no_opening(begin("again")), Request::Introduce, "study"),
        (begin("other-keys"), Request::Introduce, "question"),
    ];
    let north = workers.get_mut(&SiteName::new("north").unwrap()).unwrap();
    for (begin, request, rule) in attempts {
        let told = begin_and_ask(north, begin, SITES.len(), request);
        match told {
            Answer::Refused(refusal) => assert_eq!(refusal.rule, rule, "{}", refusal.text),
            other => panic!("{rule}: {other:?}"),
        }
    }
}

/// A coordinator gives other jobs the name of a run that was admitted.
#[test]
fn another_job_under_the_name_of_a_run_is_another_run() {
    let (home, mut workers) = hospitals("runs_max = 1\n");
    let runs = format!("runs = {}", Rules::default().ceilings.runs);
    let draft = of_study(&unpsl("")).draft;
    assert!(draft.contains(&runs), "{draft}");
    let study = Proposed::draft(&draft.replace(&runs, "runs = 1"), &home);
    let study = study.open(&home, &mut workers);
    let mut admitted = 0;
    for job in 0..4 {
        let job = study.job(&unpsl(&format!("round_limit = {}", 2 + job)));
        match converse(&study, job, &mut workers, |_| ()) {
            Ending::Failed(failure) => {
                assert!(failure.text.contains("runs is 1"), "{failure:?}");
            }
            _ => admitted += 1,
        }
    }
    println!("{admitted} of 4 jobs where one run is allowed");
    assert_eq!(admitted, 1);
}

/// A site whose results cannot be written says so in a sentence without its paths.
#[test]
fn a_failure_tells_no_path() {
    let (home, mut workers) = hospitals("");
    home.write("sites/north/runs", "a file where a folder should be");
    let text = unpsl("round_limit = 2");
    let study = Opened::of(&text, &home, &mut workers);
    let job = study.job(&text);
    let Ending::Failed(failure) = converse(&study, job, &mut workers, |_| ()) else {
        panic!("results that cannot be written");
    };
    assert_eq!(failure.code, Code::Results);
    assert!(failure.text.starts_with("north: "), "{}", failure.text);
    let path = home.path().display().to_string();
    assert!(
        !failure.text.contains(&path) && !failure.text.contains('/'),
        "{}",
        failure.text
    );
}

/// What an honest coordinator asks is far from the brake, and every site answers it.
#[test]
fn an_honest_run_is_never_refused() {
    for keys in [
        "rank = 2",
        "rank = 12\nlambda_sparsity = 0",
        "loss = \"sum\"\nlambda_sparsity = 20\nround_limit = 40",
        "consensus = \"admm\"\nround_limit = 30",
        "rank = [2, 8]\nlambda_sparsity = [0.001, 0.01]\nneighbours = [3, 5]\nfolds = 3",
        "correlation = \"pooled\"\nthreshold = \"common\"",
    ] {
        let home = Home::new();
        for (place, site) in ["north", "south", "east"].iter().enumerate() {
            let patients = table(PATIENTS + 20 * place, 10 + place as u64);
            home.write(&format!("data/{site}.csv"), &patients);
        }
        let played = honest::play(&home, &unpsl(keys), "cell_min = 1\n");
        println!(
            "{keys:?}: {:?}, mean similarity at most {:.1}",
            played.ending, played.similarity
        );
        assert!(
            matches!(played.ending.status(), "converged" | "round_limit"),
            "{:?}",
            played.ending
        );
        assert!(played.similarity < 90.0);
    }
}
