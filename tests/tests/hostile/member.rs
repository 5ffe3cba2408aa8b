//! A member that lies or is silent: it speaks the protocol to a real coordinator.

use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::programs::Ran;
use ndarray::Array2;
use privacy::{Notice, Released, RightCounts};
use protocol::assessment::{Assessment, EvaluationCounts};
use protocol::cohort::FeatureKind;
use protocol::job::Job;
use protocol::message::unpsl::{self, Centre, Contribution, Derivatives};
use protocol::message::{
    Answer, ColumnHistogram, ColumnMoments, Description, PairCounts, Reply, Request, SiteMoments,
    Summary, ToCoordinator, ToSite,
};
use similarity::learn::unpsl::{SiteDerivatives, ThresholdDerivatives};
use std::time::Duration;
use tokio::runtime::Runtime;
use wire::Dial;

/// Patients of every member of this file, half of them ill.
const PATIENTS: u64 = 60;
/// Between two attempts to attend.
const DIAL_EVERY: Duration = Duration::from_millis(50);

/// What a member says instead of the truth; none is silence.
pub(crate) type Lie = fn(&Request, Answer) -> Option<Answer>;

/// A member of a federation that is no program of ours: it attends with a site's certificate, tells a
/// quadratic as if it were its patients, and lies as it is told to. It leaves when it is dropped.
pub(crate) struct Member {
    _runtime: Runtime,
}

/// Whatever it says counts as cleared: a liar has no rules.
struct Uncleared(Answer);

impl Notice<Answer> for Uncleared {
    fn into_message(self) -> Answer {
        self.0
    }
}

impl Member {
    /// Attends as `site` at the port of a deployment, again and again.
    pub(crate) fn attend(deployment: &Deployment, site: &str, lie: Lie) -> Self {
        let dial = deployment.dial(&format!("site-{site}"));
        let known = SITES.iter().position(|known| *known == site);
        let number = known.unwrap_or(SITES.len());
        let runtime = Runtime::new().unwrap();
        runtime.spawn(async move {
            loop {
                converse(&dial, number, lie).await;
                tokio::time::sleep(DIAL_EVERY).await;
            }
        });
        Self { _runtime: runtime }
    }
}

/// Answers what is asked until the stream ends.
async fn converse(dial: &Dial, number: usize, lie: Lie) {
    let Ok((sender, mut receiver)) = wire::attend(dial, "1.0.0").await else {
        return;
    };
    let mut job = None;
    while let Ok(message) = receiver.next().await {
        match message {
            ToSite::Begin(begin) => job = Job::parse(&begin.job).ok(),
            ToSite::Ask(ask) => {
                let Some(job) = &job else { continue };
                let Some(answer) = lie(&ask.request, truth(number, job, &ask.request)) else {
                    continue;
                };
                let reply = ToCoordinator::Reply(Reply {
                    signature: Vec::new(),
                    run: ask.run,
                    exchange: ask.exchange,
                    journal: None,
                    answer: wire::seal(Released::notice(Uncleared(answer))),
                });
                if sender.send(reply).await.is_err() {
                    return;
                }
            }
            ToSite::End { .. } => job = None,
            ToSite::Closed(_) | ToSite::Proposed(_) => {}
        }
    }
}

/// What a member with 60 patients answers whose smooth part is a quadratic around a matrix of its own.
fn truth(number: usize, job: &Job, request: &Request) -> Answer {
    match request {
        Request::Describe => Answer::Described(Description {
            patients: PATIENTS,
            classes: vec![PATIENTS / 2; 2],
            validates: 1,
        }),
        Request::Moments => Answer::Moments(SiteMoments {
            between: Vec::new(),
            columns: job
                .cohort
                .features
                .iter()
                .map(|one| moments(&one.kind))
                .collect(),
            summary: Summary {
                patients: PATIENTS,
                pairs: PairCounts {
                    similar: 870,
                    dissimilar: 900,
                },
            },
        }),
        Request::Quantiles => {
            let histogram = |cells: u32| ColumnHistogram {
                ends: vec![cells / 2, cells],
                counts: vec![PATIENTS / 2; 2],
            };
            let grids = job.grids();
            let cells = grids.all().map(|grid| grid.cells());
            Answer::Quantiles(cells.map(histogram).collect())
        }
        Request::Prepare(_) => Answer::Prepared(None),
        Request::Correlate(_) => Answer::Correlated,
        Request::Unpsl(request) => learnt(number, request),
        Request::Introduce | Request::Encapsulate => {
            panic!("the jobs of this file tell the sites' own numbers")
        }
        Request::Forest(_)
        | Request::Regression(_)
        | Request::Neighbours(_)
        | Request::Cluster(_)
        | Request::Compare(_)
        | Request::Card(_) => {
            panic!("the jobs of this file learn a metric")
        }
    }
}

/// The rounds and what comes after them.
fn learnt(number: usize, request: &unpsl::Request) -> Answer {
    const CURVATURE: f64 = 0.5;
    let target = |(rows, columns): (usize, usize)| {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            ((row * 7 + column * 3 + number * 5) % 11) as f64 / 11.0 - 0.5
        })
    };
    match request {
        unpsl::Request::Round(round) => {
            let target = target(round.consensus.dim());
            let away = &*round.consensus - &target;
            Answer::Unpsl(unpsl::Answer::Contribution(Contribution {
                matrix: match &round.centre {
                    Centre::Told(centre) => {
                        (&target * CURVATURE + centre * round.penalty) / (CURVATURE + round.penalty)
                    }
                    _ => round.consensus.as_ref().clone(),
                },
                objective: CURVATURE / 2.0 * (&away * &away).sum(),
                iterations: 1,
                products: None,
            }))
        }
        unpsl::Request::Differentiate(asked) => {
            let one = |metric: &Array2<f64>| {
                let target = target(metric.dim());
                let away = metric.dot(&metric.t()) - target.dot(&target.t());
                let rows = metric.nrows();
                Derivatives::fold(&SiteDerivatives {
                    objective: CURVATURE / 2.0 * (&away * &away).sum(),
                    gradient: away * CURVATURE,
                    curvature: Array2::eye(rows) * CURVATURE.sqrt(),
                    slope: None,
                    threshold: ThresholdDerivatives::default(),
                })
            };
            let told = asked.metrics.iter().map(one).collect();
            Answer::Unpsl(unpsl::Answer::Derivatives(told))
        }
        unpsl::Request::Validate(validating) => {
            let counts = RightCounts {
                right: 40,
                wrong: 20,
            };
            let own = vec![Some(counts); validating.neighbours.len()];
            let all = vec![own; validating.candidates()];
            Answer::Unpsl(unpsl::Answer::Validated(all))
        }
        unpsl::Request::Finish(_) => Answer::Assessed(Assessment {
            objective: Some(1.0),
            evaluation: vec![EvaluationCounts {
                rule: "distance".to_owned(),
                neighbours: 5,
                confusion: Some(vec![vec![20, 10], vec![10, 20]]),
                scores: None,
                rounded_to: 10,
            }],
            ..Assessment::default()
        }),
    }
}

/// Half of the patients at 0 and half at 1, or spread over the levels.
fn moments(kind: &FeatureKind) -> ColumnMoments {
    match kind {
        FeatureKind::Categorical { levels } => {
            let each = PATIENTS / levels.len() as u64;
            let mut counts = vec![each; levels.len()];
            counts[0] += PATIENTS - each * levels.len() as u64;
            ColumnMoments::Categorical { counts, missing: 0 }
        }
        _ => ColumnMoments::Numeric {
            count: PATIENTS,
            sum: 30.0,
            sum_squares: 30.0,
            missing: 0,
        },
    }
}

/// A job for members of this file.
pub(crate) fn job(unpsl: &str) -> String {
    format!(
        "name = \"attacked\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\", \"west\"]\n\
         [aggregation]\ncontributions = \"own\"\n[outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
         [[features]]\nname = \"x\"\nkind = \"numeric\"\n[[features]]\nname = \"y2\"\nkind = \"numeric\"\n\
         range = [0, 1]\nstandardise = \"robust\"\n\
         [unpsl]\nrank = 1\nlambda_sparsity = 0.001\nround_limit = 10\ntolerance_relative = 1e-12\n\
         tolerance_absolute = 1e-14\n{unpsl}\n"
    )
}

/// Three members tell the truth, the last site lies.
fn members(deployment: &Deployment, lie: Lie) -> Vec<Member> {
    let attend = |site: &&str| match *site {
        "west" => Member::attend(deployment, site, lie),
        site => Member::attend(deployment, site, |_, truth| Some(truth)),
    };
    SITES.iter().map(attend).collect()
}

/// An operator submits `job` and waits.
fn attack(deployment: &Deployment, job: &str, lie: Lie) -> Ran {
    let _members = members(deployment, lie);
    deployment.home.write("attacked.toml", job);
    let out = deployment.home.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let ran = deployment.job(&["submit", "attacked.toml", "--wait", "--out", "out"]);
    println!("{:?}: {}{}", ran.code, ran.stdout, ran.stderr);
    ran
}

/// The run ended, and names the last site with `why`.
#[track_caller]
fn must_name_the_liar(attacked: Ran, why: &str) {
    attacked.must_fail(6, &["KDR-PROTOCOL", "west: ", why]);
}

/// The coordinator answers, also after it was started again.
#[track_caller]
fn must_live(deployment: &mut Deployment) {
    deployment.job(&["list"]).must_succeed();
    deployment.kill_coordinator();
    deployment.start_coordinator();
    deployment.job(&["list"]).must_succeed();
}

pub(crate) fn in_a_round(answer: Answer, change: impl FnOnce(&mut Contribution)) -> Option<Answer> {
    match answer {
        Answer::Unpsl(unpsl::Answer::Contribution(mut contribution)) => {
            change(&mut contribution);
            Some(Answer::Unpsl(unpsl::Answer::Contribution(contribution)))
        }
        other => Some(other),
    }
}

fn of_a_metric(answer: Answer, change: impl FnOnce(&mut Derivatives)) -> Option<Answer> {
    match answer {
        Answer::Unpsl(unpsl::Answer::Derivatives(mut told)) => {
            told.first_mut().map(change);
            Some(Answer::Unpsl(unpsl::Answer::Derivatives(told)))
        }
        other => Some(other),
    }
}

#[test]
fn a_member_that_answers_with_the_largest_number_ends_the_run_by_name_and_the_coordinator_lives() {
    let mut deployment = Deployment::alone();
    let huge: Lie = |_, answer| in_a_round(answer, |own| own.matrix.fill(1e308));
    let attacked = attack(&deployment, &job("consensus = \"admm\""), huge);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "number");
}

#[test]
fn a_member_that_has_more_patients_than_there_are_ends_the_run_by_name() {
    let mut deployment = Deployment::alone();
    let many: Lie = |_, answer| match answer {
        Answer::Moments(mut moments) => {
            moments.summary.patients = u64::MAX;
            moments.summary.pairs.similar = u64::MAX;
            Some(Answer::Moments(moments))
        }
        other => Some(other),
    };
    let attacked = attack(&deployment, &job(""), many);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "patients");
}

#[test]
fn a_member_whose_tables_hold_more_than_its_patients_does_not_end_the_operators_program() {
    let mut deployment = Deployment::alone();
    let many: Lie = |_, answer| match answer {
        Answer::Assessed(mut assessment) => {
            assessment.evaluation[0].confusion = Some(vec![vec![u64::MAX; 2]; 2]);
            Some(Answer::Assessed(assessment))
        }
        other => Some(other),
    };
    let attacked = attack(&deployment, &job(""), many);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "patients");
}

#[test]
fn a_member_that_pings_and_never_answers_is_waited_for_by_name_until_somebody_cancels() {
    let mut deployment = Deployment::alone();
    let silent: Lie = |request, answer| match request {
        request if request.rounds() > 0 => None,
        _ => Some(answer),
    };
    let _members = members(&deployment, silent);
    let run = deployment.submit(&job("consensus = \"admm\"\nvalidation = \"none\""), &[]);
    let mut watch = deployment.watch(&run);
    let waits = watch.until("the silence is named", |run| run.waiting_for == ["west"]);
    assert!(waits.away.is_empty() && waits.ending.is_none(), "{waits:?}");
    must_live(&mut deployment);
    deployment.job(&["cancel", run.as_str()]).must_succeed();
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert!(listed.contains("cancelled"), "{listed}");
}

#[test]
fn a_member_that_answers_another_question_ends_the_run_by_name() {
    let mut deployment = Deployment::alone();
    let other: Lie = |request, answer| match request {
        request if request.rounds() > 0 => Some(Answer::Correlated),
        _ => Some(answer),
    };
    let attacked = attack(&deployment, &job(""), other);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "derivatives");
}

#[test]
fn a_member_that_contributes_another_shape_ends_the_run_by_name() {
    let mut deployment = Deployment::alone();
    let large: Lie = |_, answer| in_a_round(answer, |own| own.matrix = Array2::ones((50, 7)));
    let attacked = attack(&deployment, &job("consensus = \"admm\""), large);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "50 x 7");
}

#[test]
fn a_member_whose_derivatives_no_patients_have_ends_the_run_by_name() {
    let lies: [(Lie, &str); 3] = [
        (
            |_, answer| of_a_metric(answer, |own| own.triangles = Array2::ones((2, 7))),
            "another shape",
        ),
        (
            |_, answer| of_a_metric(answer, |own| own.triangles.row_mut(1).fill(-1.0)),
            "a curvature below 0",
        ),
        (
            |_, answer| of_a_metric(answer, |own| own.objective = -1.0),
            "an objective below 0",
        ),
    ];
    for (lie, said) in lies {
        let mut deployment = Deployment::alone();
        let attacked = attack(&deployment, &job(""), lie);
        must_live(&mut deployment);
        must_name_the_liar(attacked, said);
    }
}

#[test]
fn a_member_whose_sums_no_patients_have_ends_the_run_by_name() {
    let mut deployment = Deployment::alone();
    let absurd: Lie = |_, answer| match answer {
        Answer::Moments(mut moments) => {
            moments.columns[0] = ColumnMoments::Numeric {
                count: PATIENTS,
                sum: 1e12,
                sum_squares: 1.0,
                missing: 0,
            };
            Some(Answer::Moments(moments))
        }
        other => Some(other),
    };
    let attacked = attack(&deployment, &job(""), absurd);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "sum");
}

#[test]
fn a_member_whose_columns_are_fewer_than_the_jobs_ends_the_run_by_name() {
    let mut deployment = Deployment::alone();
    let fewer: Lie = |_, answer| match answer {
        Answer::Moments(mut moments) => {
            moments.columns.truncate(1);
            Some(Answer::Moments(moments))
        }
        other => Some(other),
    };
    let attacked = attack(&deployment, &job(""), fewer);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "1 feature");
}

#[test]
fn a_member_that_steps_farther_than_its_objective_can_have_fallen_ends_the_run_by_name() {
    let mut deployment = Deployment::alone();
    let far: Lie = |_, answer| in_a_round(answer, |own| own.matrix.fill(1e6));
    let attacked = attack(&deployment, &job("consensus = \"admm\""), far);
    must_live(&mut deployment);
    must_name_the_liar(attacked, "farther");
}
