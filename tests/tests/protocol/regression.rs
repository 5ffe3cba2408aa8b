//! Promise: a run of regression holds under loss, delay, repetition, reordering and restart, and finds what one fit of all
//! patients who took part finds.
//!
//! The sites have patients of their own: every feature is 1 or -1, as often the one as the other, so that the common moments of the
//! world are theirs. The oracle fits the patients of all sites of the last closed exchange at once.

use crate::world::{self, CALM, CELLS, Liar, Played, World};
use ndarray::{Array1, Array2, Axis, concatenate, s};
use privacy::ErrorSums;
use protocol::assessment::{Assessment, ErrorMeasure, EvaluationCounts, RuleErrors};
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::regression::{Answer as Own, Evaluating, Finishing, Request as Asked, Sums};
use protocol::message::{Answer, PairCounts, Request, SecondMoments};
use protocol::method::{Method, Model};
use protocol::progress::Ending;
use protocol::run::Record;
use protocol::study::{Study, by_nobody, of_job};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use similarity::learn::regression::cox::FollowUp;
use similarity::learn::regression::exponential::Exposure;
use similarity::learn::regression::glm::Family;
use similarity::learn::regression::newton::{Newton, Wanted};
use similarity::learn::regression::{Model as Kind, Ties};
use similarity::learn::unpsl::SharedPatients;
use similarity::numeric::precision::Precision;

const FEATURES: usize = 3;
/// Steps of the world's grid of events, each of one unit of time.
const HORIZON: f64 = CELLS as f64;
/// Of a common baseline: up to here enough are followed.
const SOON: f64 = 800.0;

/// The patients of a site, n x 3.
fn patients(site: usize) -> Array2<f64> {
    let count = Regressions::patients(site) as usize;
    Array2::from_shape_fn((count, FEATURES), |(row, feature)| {
        match (row >> feature) & 1 == 1 {
            true => 1.0,
            false => -1.0,
        }
    })
}

/// A number of 0 to 1 that follows from site and patient.
fn odd(site: usize, row: usize) -> f64 {
    let mixed = (row * 7_919 + site * 104_729 + 13) * 2_654_435_761 % 1_000_003;
    mixed as f64 / 1_000_003.0
}

fn classes(site: usize) -> Array1<f64> {
    let x = patients(site);
    let ill = |(row, x): (usize, ndarray::ArrayView1<'_, f64>)| {
        let eta = 0.8 * x[0] - 0.5 * x[2] + 0.2;
        f64::from(u8::from(odd(site, row) < 1.0 / (1.0 + f64::exp(-eta))))
    };
    x.outer_iter().enumerate().map(ill).collect()
}

/// The risk sets of a site.
fn follow_up(site: usize) -> FollowUp {
    let (time, event) = followed(site);
    FollowUp::until(&time, &event, HORIZON)
}

/// Its patients in the cells of a common baseline; none where each site has its own.
fn exposed(site: usize, point: &Evaluating) -> Option<Exposure> {
    let cells = &point.design.cells;
    let (time, event) = followed(site);
    (!cells.is_empty()).then(|| Exposure::new((&time, &event), SOON, 8, cells))
}

/// Times and events.
fn followed(site: usize) -> (Array1<f64>, Array1<bool>) {
    let x = patients(site);
    let time = x.outer_iter().enumerate().map(|(row, x)| {
        let hazard = (0.5 * x[0] - 0.4 * x[1]).exp();
        (-900.0 * odd(site, row).max(1e-6).ln() / hazard).min(HORIZON)
    });
    let time: Array1<f64> = time.collect();
    let event = (0..time.len()).map(|row| odd(site, row + 5_000) < 0.7);
    let event = event.collect();
    (time, event)
}

/// Ones first where there is a constant.
fn design(site: usize, point: &Evaluating) -> Array2<f64> {
    let rows: Vec<usize> = point.design.rows.iter().map(|row| *row as usize).collect();
    let chosen = patients(site).select(Axis(1), &rows);
    match has_classes(point) {
        true => {
            let ones = Array2::ones((chosen.nrows(), 1));
            concatenate![Axis(1), ones, chosen]
        }
        false => chosen,
    }
}

/// Sites with patients; and what each exchange must have held.
struct Regressions {
    /// Who took part in the last exchange that asked for sums.
    last: Vec<bool>,
    /// What was asked in it.
    point: Option<Evaluating>,
    method: Method,
}

impl Played for Regressions {
    fn new(job: &Job) -> Self {
        Self {
            last: Vec::new(),
            point: None,
            method: job.method.clone(),
        }
    }

    fn patients(site: usize) -> u64 {
        48 + 8 * site as u64
    }

    fn pairs(_: u64) -> PairCounts {
        PairCounts {
            similar: 0,
            dissimilar: 0,
        }
    }

    fn second_moments(site: usize) -> Option<SecondMoments> {
        Some(SecondMoments::of_patients(&SharedPatients::copied(
            &patients(site).view(),
        )))
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        let Request::Regression(request) = request else {
            panic!("a question of regression");
        };
        match request {
            Asked::Evaluate(point) => Answer::Regression(evaluated(site, point)),
            Asked::Test(point) => {
                let (at, follow_up) = (Array1::from(point.at.to_vec()), follow_up(site));
                let scale: Vec<f64> = follow_up.times().iter().map(|t| t / HORIZON).collect();
                let design = design(site, point);
                let sums = match exposed(site, point) {
                    Some(exposure) => exposure.sums_with_time(&design.view(), &at),
                    None => follow_up.sums_with_time(&design.view(), &at, Ties::Efron, &scale),
                };
                Answer::Regression(Own::Proportionality(sums))
            }
            Asked::Finish(finishing) => Answer::Assessed(judged(site, &finishing.point)),
        }
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(answer, Answer::Regression(_))
    }

    fn recomputed(answer: &mut Answer, draw: &mut ChaCha8Rng) {
        if let Answer::Regression(Own::Likelihood(sums)) = answer {
            sums.gradient[0] += draw.random::<f64>();
        }
    }

    fn sent(&mut self, _: usize, _: u32, request: &Request) -> Option<String> {
        match request {
            Request::Regression(Asked::Evaluate(point)) => self.point = Some(point.clone()),
            Request::Regression(Asked::Finish(Finishing { point, .. })) => {
                let found = Array1::from(point.at.to_vec());
                let wanted = self.wanted(point)?;
                let away = (&found - &wanted)
                    .mapv(f64::abs)
                    .fold(0.0, |a, b| f64::max(a, *b));
                return (away > 1e-9).then(|| format!("{found} fitted, wanted {wanted}"));
            }
            _ => {}
        }
        None
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        let kind = |answer: &Answer| matches!(answer, Answer::Regression(Own::Likelihood(_)));
        let told: Vec<bool> = record
            .answers
            .iter()
            .map(|answer| answer.as_ref().is_some_and(kind))
            .collect();
        if told.contains(&true) {
            self.last = told;
        }
        None
    }
}

impl Regressions {
    /// The fit of all patients of the sites that took part.
    fn wanted(&self, point: &Evaluating) -> Option<Array1<f64>> {
        let sites: Vec<usize> = (0..self.last.len())
            .filter(|site| self.last[*site])
            .collect();
        let Method::Regression(settings) = &self.method else {
            return None;
        };
        let penalty = Array1::from_shape_fn(point.at.len(), |column| {
            let before = point.at.len() - point.design.rows.len();
            if column < before {
                0.0
            } else {
                settings.ridge.first()
            }
        });
        // From somewhere near: hazards of 1 are far from any.
        let cells = point.design.cells.len();
        let begin = (0..point.at.len()).map(|place| if place < cells { -7.0 } else { 0.0 });
        let mut newton = Newton::from(penalty, Precision::Exact, begin.collect());
        while newton.wanted() != Wanted::Nothing {
            let point = Evaluating {
                at: newton.asked().to_vec().into(),
                ..point.clone()
            };
            let mut all = Sums::zero(point.at.len());
            for site in &sites {
                match evaluated(*site, &point) {
                    Own::Likelihood(own) => all.merge(&own),
                    Own::Cells { .. } | Own::Proportionality(_) => panic!("an evaluation"),
                }
            }
            newton.learn_value(all.log_likelihood, all.gradient);
            if newton.wanted() == Wanted::Information {
                newton.learn_information(all.information);
            }
        }
        Some(newton.maximum(0).at)
    }
}

fn evaluated(site: usize, point: &Evaluating) -> Own {
    let at = Array1::from(point.at.to_vec());
    let design = design(site, point);
    let design = design.view();
    if let Some(exposure) = exposed(site, point)
        && point.design.counts_cells()
    {
        return Own::Cells {
            sums: exposure.sums(&design, &at),
            counted: exposure.counted(10),
        };
    }
    Own::Likelihood(match has_classes(point) {
        true => Family::Logistic.sums(&design, &classes(site), &at),
        false => match exposed(site, point) {
            Some(exposure) => exposure.sums(&design, &at),
            None => follow_up(site).sums(&design, &at, Ties::Efron),
        },
    })
}

/// A regression of classes has a constant, one of survival times has none, or a hazard a cell.
fn has_classes(point: &Evaluating) -> bool {
    point.at.len() > point.design.cells.len() + point.design.rows.len()
}

fn judged(site: usize, point: &Evaluating) -> Assessment {
    let count = Regressions::patients(site);
    let has_classes = has_classes(point);
    let measure = match has_classes {
        true => ErrorMeasure::Misclassified,
        false => ErrorMeasure::Discordant,
    };
    let rules = [("regression", 0), ("weighted", 5)];
    Assessment {
        errors: rules
            .map(|(rule, neighbours)| RuleErrors {
                rule: rule.to_owned(),
                neighbours,
                measure,
                sums: Some(ErrorSums {
                    total: count,
                    error: 10.0,
                }),
            })
            .to_vec(),
        evaluation: match has_classes {
            false => Vec::new(),
            true => rules
                .map(|(rule, neighbours)| {
                    let confusion = vec![vec![count / 2, 0], vec![0, count / 2]];
                    let scores = (neighbours == 0).then(|| vec![vec![1; 10]; 2]);
                    EvaluationCounts::new(rule, neighbours, Some(confusion), scores)
                })
                .to_vec(),
        },
        ..Assessment::default()
    }
}

/// What a job of the world is about.
struct Wish {
    survival: bool,
    /// One baseline hazard for all sites.
    common: bool,
    sites: usize,
    selection: &'static str,
}

fn job(wanted: &Wish) -> String {
    let names: Vec<String> = (0..wanted.sites)
        .map(|site| format!("\"site-{site}\""))
        .collect();
    let outcome = match wanted.survival {
        true => format!(
            "column = \"t\"\nkind = \"survival\"\nevent = \"e\"\nevent_values = [\"1\"]\nhorizon = {}\n",
            if wanted.common { SOON } else { HORIZON },
        ),
        false => "column = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n".to_owned(),
    };
    let features: String = (0..FEATURES)
        .map(|feature| format!("[[features]]\nname = \"f{feature}\"\nkind = \"numeric\"\n"))
        .collect();
    format!(
        "name = \"regression\"\nmethod = \"regression\"\nprecision = \"exact\"\nsites = [{}]\n[outcome]\n{outcome}{features}\
         [regression]\nround_limit = {}\nselection = \"{}\"\nbaseline = \"{}\"\n",
        names.join(", "),
        if wanted.selection == "none" { 12 } else { 40 },
        wanted.selection,
        if wanted.common { "common" } else { "hospital" },
    )
}

fn drawn(random: &mut ChaCha8Rng) -> String {
    let survival = random.random();
    let sites = random.random_range(4..7);
    job(&Wish {
        survival,
        common: random.random(),
        sites,
        selection: ["none", "none", "aic", "wald"][random.random_range(0..4)],
    })
}

#[test]
fn a_run_of_regression_survives_loss_delay_repetition_and_restart_and_fits_all_who_took_part() {
    let endings = world::survives::<Regressions>(0..100, drawn);
    let completed = endings
        .iter()
        .filter(|one| **one == Ending::Converged)
        .count();
    assert!(completed > 30, "only {completed} of 100 runs converged");
}

#[test]
fn a_disturbed_run_leaves_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Regressions>(1000..1024, drawn);
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Regressions>(&job(&Wish {
        survival: false,
        common: false,
        sites: 3,
        selection: "none",
    }));
}

/// Of one site nothing can be judged but how many numbers it tells; whose numbers make a sum that cannot be, nobody knows.
#[test]
fn sums_that_no_patients_have_end_the_run() {
    let text = job(&Wish {
        survival: false,
        common: false,
        sites: 3,
        selection: "none",
    });
    let of_sum = |what: &str| (format!("the sum over the sites: found {what}"), Code::Sum);
    let lies: [(Lie, (String, Code)); 7] = [
        (|sums| sums.patients += 1, of_sum("more patients")),
        (|sums| sums.events += 1_000, of_sum("more events")),
        (
            |sums| sums.log_likelihood += 1e4,
            of_sum("a log-likelihood above 0"),
        ),
        (
            |sums| sums.log_likelihood -= 1e4 * sums.gradient[0].abs(),
            of_sum("a log-likelihood that does not fit"),
        ),
        (|sums| sums.gradient[1] += 1e6, of_sum("a gradient")),
        (
            |sums| sums.information[(1, 1)] -= 1e6,
            of_sum("information"),
        ),
        (
            |sums| sums.gradient = sums.gradient.slice(s![..1]).to_owned(),
            ("site-1: ".to_owned(), Code::Protocol),
        ),
    ];
    let (own, study) = of_job(&Job::parse(&text).unwrap(), "researcher", &[]).unwrap();
    let of_study = Study::parse(&by_nobody(&study)).unwrap().join(&own);
    let all = lies.iter().map(|lie| (lie, &text));
    for ((lie, (named, code)), text) in all.chain([(&lies[0], &of_study)]) {
        let mut world = World::<Regressions>::new(1, CALM, text);
        WHICH.set(*lie);
        world.miscounts = Some(Liar {
            site: 1,
            from: 1,
            lie: |answer| {
                let mut answer = answer.clone();
                if let Answer::Regression(Own::Likelihood(sums)) = &mut answer {
                    WHICH.get()(sums);
                }
                answer
            },
        });
        assert_eq!(world.drive(), None);
        match world.ending {
            Some(Ending::Failed(failure)) => {
                assert_eq!(failure.code, *code, "{failure:?}");
                assert!(failure.text.starts_with(named), "{}", failure.text);
                // Where there are commitments, whoever lied cannot prove its answers.
                let asks = failure.text.contains("kindred-site-agent study audit ");
                assert_eq!(asks, *text == of_study, "{}", failure.text);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What the hospitals have approved, in tens, is known before anything is summed.
#[test]
fn a_run_with_more_patients_than_hospitals_have_approved_is_void() {
    let text = job(&Wish {
        survival: false,
        common: false,
        sites: 3,
        selection: "none",
    });
    let (own, study) = of_job(&Job::parse(&text).unwrap(), "researcher", &[]).unwrap();
    let of_study = Study::parse(&by_nobody(&study)).unwrap().join(&own);
    // The sites have 48, 56 and 64 patients: 168 in all.
    for (approved, is_void) in [(48, false), (47, true)] {
        let world = World::<Regressions>::new(1, CALM, &of_study);
        let mut world = world.opened(&[50, approved, 70]);
        // A run that fails where nobody lies is a complaint of the world.
        assert_eq!(world.drive().is_some(), is_void);
        let ending = world.ending.clone().expect("an ending");
        match (&ending, is_void) {
            (Ending::Failed(failure), true) => {
                assert_eq!(failure.code, Code::Sum, "{failure:?}");
                let wanted =
                    "found more patients than the hospitals have approved. The run is void";
                assert!(failure.text.starts_with(wanted), "{}", failure.text);
                assert!(failure.text.contains("kindred-site-agent study audit "));
                assert_eq!(world.records().len(), 2);
            }
            (_, is_void) => assert!(!is_void && world.records().len() > 4, "{ending:?}"),
        }
    }
}

type Lie = fn(&mut Sums);
thread_local! {
    /// The lie under way: the world takes a function that knows nothing else.
    static WHICH: std::cell::Cell<Lie> = const { std::cell::Cell::new(|_| ()) };
}

#[test]
fn what_a_run_leaves_is_a_fit_with_its_errors_and_a_test_of_proportional_hazards() {
    for (survival, common) in [(false, false), (true, false), (true, true)] {
        let text = job(&Wish {
            survival,
            common,
            sites: 3,
            selection: "none",
        });
        let mut world = World::<Regressions>::new(5, CALM, &text);
        assert_eq!(world.drive(), None);
        assert_eq!(world.ending, Some(Ending::Converged));
        let Some(Model::Regression(model)) = world.result().model else {
            panic!("a regression");
        };
        let wanted = match (survival, common) {
            (true, true) => Kind::Exponential { cells: 8 },
            (true, false) => Kind::Cox(Ties::Efron),
            (false, _) => Kind::Logistic,
        };
        assert_eq!(model.baseline.is_empty(), !common);
        assert_eq!((model.family, model.patients), (wanted, 48 + 56 + 64));
        assert_eq!(model.coefficients.len(), FEATURES + usize::from(!survival));
        assert!(model.coefficients.iter().all(|one| one.sureness.is_some()));
        assert_eq!(
            model.proportionality.len(),
            if survival { FEATURES + 1 } else { 0 }
        );
    }
}

/// The second feature says nothing of the classes, and nothing of the sums that a site is asked for says so by itself.
#[test]
fn a_feature_that_says_nothing_leaves_by_either_criterion() {
    for selection in ["aic", "wald"] {
        let text = job(&Wish {
            survival: false,
            common: false,
            sites: 3,
            selection,
        });
        let mut world = World::<Regressions>::new(5, CALM, &text);
        assert_eq!(world.drive(), None);
        assert_eq!(world.ending, Some(Ending::Converged));
        let Some(Model::Regression(model)) = world.result().model else {
            panic!("a regression");
        };
        let told = model.selection.expect("a selection");
        let removed: Vec<&str> = told.removed.iter().map(|one| &*one.feature).collect();
        assert!(removed.contains(&"f1"), "{removed:?}");
        assert_eq!(model.coefficients.len(), 1 + FEATURES - removed.len());
        assert!(told.stopped.is_none() && told.fits > 1);
    }
}
