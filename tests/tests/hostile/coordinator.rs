//! A coordinator that lies: it speaks the protocol to a real site, and asks what it should not.

mod books;
mod comparisons;
mod folds;
mod honest;
mod rows;
mod sequences;
mod site;
mod steps;
mod trees;

use kindred_tests::federation::RUN;
use kindred_tests::programs::Home;
use ndarray::{Array1, Array2, s};
use protocol::failure::Code;
use protocol::message::unpsl::{
    self as message, Centre, Differentiating, DualStep, Form, Part, Validating,
};
use protocol::message::{Answer, Request, SecondMoments, forest};
use site::{
    FEATURES, PATIENTS, Site, finish, gradient, is_told, look, preparation, refused_by, round_with,
    said, table, unpsl,
};
use std::sync::Arc;

/// Rules of a site that opens everything: its lists and switches, and no number.
const OPEN: &str = "";

#[track_caller]
fn assert_refused(answer: &Answer, rule: &str) {
    assert_eq!(refused_by(answer), Some(rule), "{}", said(answer));
}

/// A coordinator chooses W so that its loss is a step at w'x = 0, turns w, and reads patients from the jumps of the gradient.
/// (Against a site without a brake this told whole rows of 65 of the 80 patients.)
#[test]
fn rows_of_patients_do_not_come_from_jumps_of_the_gradient() {
    let told_by = |steep: f64| {
        let mut site = Site::open(&table(PATIENTS, 1), OPEN);
        site.begin(RUN, &unpsl("round_limit = 400"), 5);
        let told = site.tell();
        site.prepare(&told);
        let pairs = told.summary.pairs.total();
        let look_at = |metric: &Array2<f64>| {
            let told = gradient(&site.ask(look(metric)), metric)?;
            Some(told * pairs as f64)
        };
        let (rows, answered) = rows::recover(look_at, 400, steep);
        let after = site.ask(look(&rows::view(0.0, 1.0)));
        // What the site keeps for itself, from another run that is honest.
        site.begin("another", &unpsl("round_limit = 40"), 6);
        let told = site.tell();
        site.prepare(&told);
        site.ask(finish(rows::view(0.0, 1.0), 5));
        let whole = rows::told(&rows, &site.truth());
        println!("steepness {steep:.0e}: {answered} rounds tell {whole} of {PATIENTS} rows");
        (whole, answered, after)
    };
    let (whole, answered, after) = told_by(1e7);
    assert_eq!((whole, answered), (0, 0));
    // The refusal is an answer too: it was the last of that run.
    assert_refused(&after, "similarity_max");
    // As steep as the site allows.
    let (whole, answered, _) = told_by(9.0);
    assert_eq!((whole, answered), (0, 400));
}

/// The same against three sites at once, of which the coordinator sees the sum of the gradients alone, and whose owners have
/// taken the brake away. Sums do not help against who chooses W: this attack must bite, or its failure elsewhere would prove nothing.
#[test]
fn jumps_of_the_sum_tell_rows_of_all_sites_where_nobody_checks_the_question() {
    const ROUNDS: u32 = 1_500;
    let unbraked = format!(
        "similarity_max = 1e300\nrounds_per_cohort_max = {}\n",
        2 * ROUNDS
    );
    let mut pairs = Vec::new();
    let mut sites: Vec<Site> = (1..=3)
        .map(|seed| {
            let mut site = Site::open(&table(PATIENTS, seed), &unbraked);
            site.begin(RUN, &unpsl(&format!("round_limit = {ROUNDS}")), 5);
            let told = site.tell();
            site.prepare(&told);
            pairs.push(told.summary.pairs.total() as f64);
            site
        })
        .collect();
    let look_at = |metric: &Array2<f64>| {
        let of_one = |(site, pairs): (&mut Site, &f64)| {
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

/// As above, but the consensus is flat and the centre is what draws the local update to where the coordinator wants to look.
#[test]
fn a_steep_centre_draws_no_local_update_out() {
    let mut site = Site::open(&table(PATIENTS, 1), OPEN);
    site.begin(RUN, &unpsl("round_limit = 400\nconsensus = \"admm\""), 5);
    let told = site.tell();
    site.prepare(&told);
    let drawn = site.ask(round_with(&rows::view(0.0, 1.0), |round| {
        round.centre = Centre::Told(rows::view(0.3, 1e7));
        round.penalty = 1e3;
        round.tolerance = 1e-9;
    }));
    assert_refused(&drawn, "similarity_max");
    let again = round_with(&rows::view(0.0, 1.0), |round| {
        round.centre = Centre::Told(rows::view(0.0, 1.0));
    });
    assert_refused(&site.ask(again), "similarity_max");
}

/// A run that a brake has shut stays shut, and is one of the runs that the cohort may serve.
#[test]
fn a_run_that_a_brake_has_shut_stays_shut_and_has_cost_a_run() {
    let mut site = Site::open(&table(PATIENTS, 1), "runs_per_cohort_max = 1\n");
    site.begin(RUN, &unpsl("round_limit = 40"), 5);
    let told = site.tell();
    site.prepare(&told);
    site.ask(look(&rows::view(0.0, 1e7)));
    for _ in 0..2 {
        assert_refused(&site.ask(Request::Describe), "similarity_max");
        site.restart();
        site.begin(RUN, &unpsl("round_limit = 40"), 5);
    }
    assert_refused(&site.ask(Request::Describe), "similarity_max");
    site.begin(RUN, &unpsl("round_limit = 40"), 6);
    assert_refused(&site.ask(Request::Describe), "runs_per_cohort_max");
}

/// A coordinator asks on and on, and has the site describe and prepare itself again in between.
#[test]
fn rounds_are_counted_by_what_they_ask() {
    let mut site = Site::open(&table(PATIENTS, 2), OPEN);
    // And three that certify the metric.
    let job = unpsl("round_limit = 37");
    site.begin(RUN, &job, 5);
    let told = site.tell();
    site.prepare(&told);
    let mut answered = 0;
    for round in 0..240 {
        let metric = rows::view(f64::from(round) / 100.0, 1.0);
        if round % 30 == 0 {
            site.restart();
            site.begin(RUN, &job, 5);
            site.ask_in(1, Request::Describe);
            site.ask_in(3, preparation(&told));
        }
        let answer = site.ask_in(10 + round, look(&metric));
        answered += usize::from(is_told(&answer));
        if answered == 40 && round > 40 {
            assert_refused(&answer, "rounds_per_cohort_max");
        }
    }
    println!(
        "{answered} of 240 rounds under a limit of 40, {} in the ledger",
        site.rounds()
    );
    assert_eq!((answered, site.rounds()), (40, 40));
}

/// A coordinator asks again what was answered.
#[test]
fn a_question_that_is_asked_again_gets_the_same_bytes_and_costs_nothing() {
    let mut site = Site::open(&table(PATIENTS, 2), OPEN);
    let job = unpsl("round_limit = 3");
    site.begin(RUN, &job, 5);
    let told = site.tell();
    site.prepare(&told);
    let metric = rows::view(0.5, 1.0);
    let first = wire::encode_answer(&site.ask_in(4, look(&metric)));
    for turn in 0..12 {
        if turn % 4 == 3 {
            site.restart();
            // The same run under another name is the same run.
            site.begin(["a", "b", "c"][turn / 4], &job, 5);
            site.ask_in(1, Request::Describe);
            site.ask_in(3, preparation(&told));
        }
        assert_eq!(wire::encode_answer(&site.ask_in(4, look(&metric))), first);
    }
    assert_eq!(site.rounds(), 1);
}

/// The patients of a cohort stay, and their values change: the same question would tell the difference.
#[test]
fn a_question_gets_no_second_answer_when_the_patients_values_have_changed() {
    let mut site = Site::open(&table(PATIENTS, 2), OPEN);
    let job = unpsl("round_limit = 3");
    site.begin(RUN, &job, 5);
    site.tell();
    site.home().write("data/north.csv", &table(PATIENTS, 3));
    site.restart();
    site.begin(RUN, &job, 5);
    // The table has other classes too, so that they must be admitted; the moments are not told again.
    site.ask_in(1, Request::Describe);
    assert_refused(&site.ask_in(2, Request::Moments), "same_answer");
}

/// A coordinator gives other jobs the name of a run that was admitted.
#[test]
fn another_job_under_the_name_of_a_run_is_another_run() {
    let mut site = Site::open(&table(PATIENTS, 3), "runs_per_cohort_max = 1\n");
    let mut admitted = 0;
    for job in 0..8 {
        site.begin(RUN, &unpsl(&format!("round_limit = {}", 40 + job)), 5);
        let answer = site.ask(Request::Describe);
        admitted += usize::from(matches!(answer, Answer::Described(_)));
        site.ask(Request::Moments);
    }
    println!("{admitted} of 8 jobs where one run is allowed");
    assert_eq!(admitted, 1);
}

/// Runs that end before they have told anything but the cohort's size do not use a hospital's budget up.
#[test]
fn a_run_that_told_nothing_costs_no_run_but_a_description() {
    let rules = "runs_per_cohort_max = 1\ndescriptions_per_day_max = 20\n";
    let mut site = Site::open(&table(PATIENTS, 3), rules);
    for seed in 0..20 {
        site.begin(RUN, &unpsl("rank = 8"), seed);
        let answer = site.ask(Request::Describe);
        assert!(matches!(answer, Answer::Described(_)), "{}", said(&answer));
    }
    site.begin(RUN, &unpsl("rank = 8"), 20);
    assert_refused(&site.ask(Request::Describe), "descriptions_per_day_max");
    site.restart();
    site.begin(RUN, &unpsl("rank = 8"), 21);
    assert_refused(&site.ask(Request::Describe), "descriptions_per_day_max");
    // Another operator has descriptions of its own, which this one cannot use up.
    site.begin_by("colleague", RUN, &unpsl("rank = 8"), 21);
    assert!(matches!(site.ask(Request::Describe), Answer::Described(_)));
    // One that was described on this day may be described again, and the next day has descriptions of its own.
    site.begin(RUN, &unpsl("rank = 8"), 7);
    assert!(matches!(site.ask(Request::Describe), Answer::Described(_)));
    site.now.0 += 24 * 60 * 60 * 1_000;
    site.begin(RUN, &unpsl("rank = 8"), 21);
    site.tell();
}

/// A coordinator has a run finished again and again, each time with a metric of its choice.
#[test]
fn a_run_is_finished_once() {
    let mut site = Site::open(&table(PATIENTS, 4), OPEN);
    site.begin(RUN, &unpsl("round_limit = 40"), 5);
    let told = site.tell();
    site.prepare(&told);
    let finished = (0..120).filter(|turn| {
        let answer = site.ask(finish(rows::view(f64::from(*turn) / 50.0, 1.0), 5));
        matches!(answer, Answer::Assessed(_))
    });
    let finished = finished.count();
    println!("{finished} of 120 finishing questions answered");
    assert_eq!(finished, 1);
    assert_refused(&site.ask(Request::Moments), "once_a_run");
    let mut other = told;
    other.summary.pairs.similar += 1;
    assert_refused(&site.ask(preparation(&other)), "once_a_run");
}

/// A coordinator asks what the job does not.
#[test]
fn what_the_job_does_not_ask_is_not_answered() {
    let mut site = Site::open(&table(PATIENTS, 5), OPEN);
    site.begin(RUN, &unpsl("rank = 8"), 5);
    let told = site.tell();
    let metric = rows::view(0.5, 1.0);
    assert_refused(&site.ask(look(&metric)), "question");
    assert_refused(&site.ask(Request::Quantiles), "question");
    site.prepare(&told);
    let round = |change: &dyn Fn(&mut message::Round)| round_with(&metric, change);
    let of = |fold| Part {
        form: Form::InnerProduct,
        fold,
    };
    let other = Part::whole(Form::Distance);
    let differentiate = |metrics: &[&Array2<f64>], folds: &[Option<u32>]| {
        Request::Unpsl(message::Request::Differentiate(Differentiating {
            metrics: Arc::new(metrics.iter().copied().cloned().collect()),
            parts: folds.iter().map(|fold| of(*fold)).collect(),
            rows: Arc::new(vec![None; metrics.len()]),
        }))
    };
    // A metric of so few rows is asked about as a whole.
    let of_rows = |rows: Vec<usize>| {
        Request::Unpsl(message::Request::Differentiate(Differentiating {
            metrics: Arc::new(vec![metric.clone()]),
            parts: vec![of(None)],
            rows: Arc::new(vec![Some(rows)]),
        }))
    };
    let second_moments = SecondMoments {
        patients: 80,
        sums: Array1::zeros(FEATURES),
        products: 80.0 * Array2::<f64>::eye(FEATURES),
    };
    let unasked = [
        look(&Array2::eye(FEATURES)),
        look(&Array2::ones((FEATURES, 7))),
        look(&Array2::ones((FEATURES + 1, 8))),
        look(&Array2::from_elem((FEATURES, 8), f64::NAN)),
        // Centres are those of another consensus.
        round(&|round| round.centre = Centre::Told(Array2::ones((1, 8)))),
        round(&|round| round.centre = Centre::Told(metric.clone())),
        round(&|round| round.centre = Centre::Dual(DualStep::ZERO)),
        differentiate(&[], &[]),
        differentiate(&[&metric], &[]),
        differentiate(&[&metric], &[Some(0)]),
        differentiate(&[&metric, &Array2::ones((FEATURES, 7))], &[None, None]),
        of_rows(vec![]),
        of_rows(vec![0, 1]),
        round(&|round| round.penalty = 0.0),
        round(&|round| round.penalty = -1.0),
        round(&|round| round.penalty = f64::NAN),
        round(&|round| round.penalty = 1e300),
        round(&|round| round.tolerance = 1.0),
        round(&|round| round.tolerance = 0.0),
        round(&|round| round.part.fold = Some(0)),
        // The job names one form.
        round(&|round| round.part = other),
        Request::Correlate(Arc::new(second_moments)),
        Request::Unpsl(message::Request::Validate(Validating {
            models: Arc::new(vec![metric.clone(); 5]),
            folds: 5,
            neighbours: vec![5],
        })),
        finish(metric.clone(), 6),
        Request::Forest(forest::Request::GrowOwn),
        trees::grow(&[0.0]),
    ];
    for request in unasked {
        let words = format!("{request:?}");
        let answer = site.ask(request);
        assert_eq!(
            refused_by(&answer),
            Some("question"),
            "{words}: {}",
            said(&answer)
        );
    }
    assert_eq!(site.rounds(), 0);
    assert!(is_told(&site.ask(look(&metric))));
}

/// W = eps I at two thresholds: the loss is then linear in the pairs, and the difference of two gradients is X'X.
/// That is what rounds of UnPSL tell (it was exact to 1.5e-5); so a rule of that name must allow them.
#[test]
fn second_moments_need_their_rule_also_where_rounds_tell_them() {
    let job = unpsl("threshold = \"common\"\ncentring = \"pooled\"\nlambda_correlation = 0");
    let mut closed = Site::open(&table(PATIENTS, 6), "second_moments = false\n");
    closed.begin(RUN, &job, 5);
    assert_refused(&closed.ask(Request::Describe), "second_moments");
    let mut site = Site::open(&table(PATIENTS, 6), OPEN);
    site.begin(RUN, &job, 5);
    let told = site.tell();
    site.prepare(&told);
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
            None => panic!("{}", said(&answer)),
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

/// A job of a single site: what is pooled is then that site's own.
#[test]
fn a_job_of_too_few_sites_is_refused() {
    let mut site = Site::open(&table(PATIENTS, 8), OPEN);
    let one = unpsl("rank = 8").replace(", \"south\", \"east\"", "");
    site.begin(RUN, &one, 5);
    assert_refused(&site.ask(Request::Describe), "sites_min");
}

/// A site whose results cannot be written says so in a sentence without its paths.
#[test]
fn a_failure_tells_no_path() {
    let mut site = Site::open(&table(PATIENTS, 9), OPEN);
    site.begin(RUN, &unpsl("rank = 8"), 5);
    let told = site.tell();
    site.prepare(&told);
    site.home()
        .write("sites/north/runs", "a file where a folder should be");
    let answer = site.ask(finish(rows::view(0.0, 1.0), 5));
    let Answer::Failed(failure) = &answer else {
        panic!("{}", said(&answer));
    };
    assert_eq!(failure.code, Code::Results);
    let path = site.home().path().display().to_string();
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
