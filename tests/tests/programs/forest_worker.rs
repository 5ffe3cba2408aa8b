//! Promise: a site's trees are its own. Started again, it grows the same ones; a site with another key
//! draws other bags, so that the coordinator, which knows the run's seed, cannot tell who was in which;
//! and it neither grows a second time in a run nor judges a forest without its own trees. No error that it states is of
//! trees that have seen the outcome.

use kindred_tests::deployment::site_config;
use kindred_tests::federation::{self, NOW, RUN};
use kindred_tests::programs::Home;
use kindred_tests::samples::demo_of_forests;
use protocol::assessment::Assessment;
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::forest::{self, Growing, Judging, Trees};
use protocol::message::{Answer, Request};
use site_agent::run::worker::Worker;
use std::sync::Arc;

fn job() -> String {
    let demo = demo_of_forests(10_000);
    let middle = &demo[demo.find("[outcome]").unwrap()..];
    format!(
        "name = \"trees\"\nmethod = \"forest\"\nsites = [\"north\"]\n[aggregation]\ncontributions = \"own\"\n{middle}[forest]\n\
         trees = 20\nscope = \"federated\"\n"
    )
}

fn worker(home: &Home, folder: &str) -> Worker {
    let text = (site_config("north", 1, "north") + "sites_min = 1\n")
        .replace("sites/north", &format!("sites/{folder}"));
    let mut worker = federation::worker(&text, home, NOW);
    federation::begin(&mut worker, RUN, &job(), 5);
    worker
}

fn ask(worker: &mut Worker, exchange: u32, request: Request) -> Answer {
    federation::ask(worker, RUN, exchange, request, NOW)
}

fn grow() -> Request {
    let features = Job::parse(&job()).unwrap().cohort.features.len();
    let mut edges = vec![vec![0.0, 1.0, 10.0, 100.0]; features];
    edges[features - 1] = Vec::new();
    Request::Forest(forest::Request::Grow(Arc::new(Growing {
        trees: 20,
        edges,
        event_times: Vec::new(),
        class_weights: vec![1.0, 1.0],
    })))
}

fn grown(worker: &mut Worker) -> Trees {
    let described = ask(worker, 1, Request::Describe);
    assert!(matches!(described, Answer::Described(_)), "{described:?}");
    let counted = ask(worker, 2, Request::Quantiles);
    assert!(matches!(counted, Answer::Quantiles(_)), "{counted:?}");
    match ask(worker, 3, grow()) {
        Answer::Forest(forest::Answer::Grown(trees)) => trees,
        Answer::Failed(failure) => panic!("{}", failure.text),
        other => panic!("{other:?}"),
    }
}

fn home() -> Home {
    Home::with_patients("north=150")
}

#[test]
fn a_site_that_is_started_again_grows_the_same_trees_and_one_with_another_key_others() {
    let home = home();
    let trees = grown(&mut worker(&home, "north"));
    assert_eq!(trees.trees.len(), 20);
    assert!(
        grown(&mut worker(&home, "north")) == trees,
        "other trees after a restart"
    );
    assert!(
        grown(&mut worker(&home, "elsewhere")) != trees,
        "another key, the same bags"
    );
}

#[test]
fn a_site_grows_once_and_judges_once_what_holds_its_trees() {
    let home = home();
    let mut worker = worker(&home, "north");
    let own = grown(&mut worker);
    let again = ask(&mut worker, 4, grow());
    match again {
        Answer::Refused(refusal) => assert_eq!(refusal.rule, "rounds_per_cohort_max"),
        other => panic!("{other:?}"),
    }
    let mut fewer = own.clone();
    fewer.trees.pop();
    let mut moved = own.clone();
    moved.trees.rotate_left(1);
    let judge = |trees: Trees| {
        Request::Forest(forest::Request::Judge(Judging {
            first_tree: 0,
            trees: Arc::new(trees),
        }))
    };
    for foreign in [fewer, moved] {
        match ask(&mut worker, 5, judge(foreign)) {
            Answer::Failed(failure) => assert_eq!(failure.code, Code::Forest),
            other => panic!("{other:?}"),
        }
    }
    let judged = ask(&mut worker, 6, judge(own.clone()));
    assert!(matches!(judged, Answer::Assessed(_)), "{judged:?}");
    let twice = ask(&mut worker, 7, judge(own));
    assert!(matches!(twice, Answer::Refused(_)), "{twice:?}");
}

/// Patients whose outcome is the toss of a coin, and what a forest of their own makes of it.
fn tossed(job_of_forest: &str) -> Assessment {
    let home = home();
    let mut table = "patient,outcome,a,b,c\n".to_owned();
    // A linear congruence of full period, whose upper bits are tossed.
    let mut state = 1_u64;
    let mut toss = |sides: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % sides
    };
    for patient in 0..200 {
        let row = [toss(2), toss(1_000), toss(1_000), toss(1_000)].map(|value| value.to_string());
        table += &format!("{patient},{}\n", row.join(","));
    }
    home.write("data/tossed.csv", &table);
    let features = ["a", "b", "c"].map(|name| {
        format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\nrange = [0, 1000]\n")
    });
    let job = format!(
        "name = \"coin\"\nmethod = \"forest\"\nsites = [\"north\"]\n[aggregation]\ncontributions = \"own\"\n[outcome]\ncolumn = \"outcome\"\nkind = \"binary\"\n\
         positive = [\"1\"]\n{}[forest]\ntrees = 100\nimportance = false\n{job_of_forest}\n",
        features.join("")
    );
    let text = (site_config("north", 1, "north") + "sites_min = 1\n")
        .replace("data/north.csv", "data/tossed.csv");
    let mut worker = federation::worker(&text, &home, NOW);
    federation::begin(&mut worker, RUN, &job, 5);
    let described = ask(&mut worker, 1, Request::Describe);
    assert!(matches!(described, Answer::Described(_)), "{described:?}");
    match ask(&mut worker, 2, Request::Forest(forest::Request::GrowOwn)) {
        Answer::Assessed(assessment) => assessment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn neighbours_by_whatever_proximity_state_no_error_that_has_seen_the_outcome() {
    for proximity in ["proximity", "kerf", "depth", "path", "gap", "out-of-bag"] {
        let found = tossed(&format!("proximity = \"{proximity}\"\nnode_size = 1"));
        assert_eq!(found.errors.len(), 2);
        for error in &found.errors {
            let sums = error.sums.as_ref().expect("sums");
            let share = sums.error / sums.total as f64;
            // Of 200 tosses, four standard deviations from one half.
            assert!(
                (share - 0.5).abs() < 0.15,
                "{proximity}, {}: {share}",
                error.rule
            );
        }
        assert_eq!(found.errors[1].rule, "out-of-bag");
    }
}
