//! A hospital that adds numbers which no patients have: to derivatives of a metric, to moments, and to what a study counts when it opens.
//! The sum shows them, and nothing is used of it.

use crate::masks::{Court, Sites, honest};
use crate::steering::{liar, must_be_void};
use kindred_tests::deployment::{SITES, site_config};
use kindred_tests::samples::DEMO_JOB;
use privacy::sums::Words;
use protocol::message::card::{Answer as CardAnswer, Request as CardRequest, Sums};
use protocol::message::unpsl::{Answer as Told, Derivatives, Request as Question};
use protocol::message::{Answer, ColumnMoments, PairCounts, Request, SiteMoments, Summary};

const PATIENTS: &str = "north=60,south=60,east=60,west=60";

/// A run in which west adds what `lie` makes of a question, once.
#[track_caller]
fn must_void(mut court: Court, mut lie: impl FnMut(&Request) -> Option<Answer> + 'static) {
    let mut told = false;
    liar(&mut court, move |request, _| {
        let mut added = lie(request).filter(|_| !told)?;
        told = true;
        Some(Words::of(&mut added).unwrap())
    });
    court.play(honest);
    println!("{:?}", court.run.ending());
    must_be_void(&court);
}

/// Adds to the derivatives at the first metric that is not 0.
fn on_derivatives(change: fn(&mut Derivatives)) -> impl FnMut(&Request) -> Option<Answer> {
    move |request| {
        let Request::Unpsl(Question::Differentiate(asked)) = request else {
            return None;
        };
        let metric = &asked.metrics[0];
        if metric.iter().all(|entry| *entry == 0.0) {
            return None;
        }
        let mut blanks = Derivatives::blanks(asked, metric.nrows());
        change(&mut blanks[0]);
        Some(Answer::Unpsl(Told::Derivatives(blanks)))
    }
}

/// Before, the run went on by each of them, until a question was too steep for everybody.
#[test]
fn derivatives_that_no_patients_have_make_a_run_void() {
    let lies: [fn(&mut Derivatives); 4] = [
        |own| own.triangles[[0, 1]] = 10.0,
        |own| own.triangles[[1, 0]] = 1e3,
        |own| own.triangles[[1, 1]] = 1e3,
        |own| own.objective = 1e4,
    ];
    for lie in lies {
        must_void(Court::of(PATIENTS, DEMO_JOB), on_derivatives(lie));
    }
}

/// A job whose first number has a range.
fn ranged() -> String {
    let range = "kind = \"numeric\"\nrange = [-100, 100]";
    DEMO_JOB.replacen("kind = \"numeric\"", range, 1)
}

/// Sites that declare the same ranges.
fn sites() -> Sites {
    let mut sites = Sites::of(PATIENTS);
    for site in SITES {
        let config = site_config(site, 1, &format!("site-{site}"));
        sites.configure(site, &config.replace("[-1000, 1000]", "[-100, 100]"));
    }
    sites
}

/// A mean of 10,000 within -100 to 100 scales every patient to nothing. Before, the run converged.
#[test]
fn moments_beyond_the_range_of_a_feature_make_a_run_void() {
    must_void(sites().open(&ranged()), |request| {
        let Request::Moments = request else {
            return None;
        };
        let numeric = |place: usize| ColumnMoments::Numeric {
            count: 0,
            sum: if place == 0 { 2.4e6 } else { 0.0 },
            sum_squares: if place == 0 { 1e12 } else { 0.0 },
            missing: 0,
        };
        let levels = ColumnMoments::Categorical {
            counts: vec![0; 3],
            missing: 0,
        };
        let columns: Vec<_> = (0..30).map(numeric).chain([levels]).collect();
        let pairs = PairCounts {
            similar: 0,
            dissimilar: 0,
        };
        Some(Answer::Moments(SiteMoments {
            columns,
            summary: Summary { patients: 0, pairs },
        }))
    });
}

/// Before, the card was complete, with a deviation of 2,000 within -100 to 100.
#[test]
fn squares_beyond_the_range_of_a_feature_open_no_study() {
    must_void(sites().opening(&ranged()), |request| {
        let Request::Card(CardRequest::Sum { places, .. }) = request else {
            return None;
        };
        let mut features = vec![[0.0; 2]; places.len()];
        features[0][1] = 1e9;
        let outcomes = vec![Vec::new()];
        Some(Answer::Card(CardAnswer::Sums(Sums { features, outcomes })))
    });
}

/// Why no hospital takes its own part off a sum before it judges it. North would refuse what is left where it is below 0, and west, who lies,
/// reads south's part off the refusals of thirty runs. Of the whole sum a refusal says no more than the sum itself, which west receives.
#[test]
fn refusals_by_what_is_left_of_a_sum_would_read_one_hospital() {
    let (north, south) = (23.75, 37.245_117_3);
    let refused = |lie: f64, own: f64| north + south + lie - own < 0.0;
    let read = |own: f64| {
        let (mut low, mut high) = (-100.0, 0.0);
        for _ in 0..30 {
            let middle = (low + high) / 2.0;
            match refused(middle, own) {
                true => low = middle,
                false => high = middle,
            }
        }
        -high
    };
    assert!((read(north) - south).abs() < 1e-6, "{}", read(north));
    // Of the whole sum it reads what it has: that of both.
    assert!((read(0.0) - (north + south)).abs() < 1e-6, "{}", read(0.0));
}
