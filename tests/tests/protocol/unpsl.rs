//! Promise: a run of UnPSL holds under loss, delay, repetition, reordering and restart.
//!
//! The oracle replays each stored record by naive arithmetic, on what the sites computed before it was covered, and compares what
//! the coordinator then broadcasts. Faults that
//! it has caught beside those that the world plants, each planted once by hand in the code:
//!
//! | planted fault | caught by |
//! | --- | --- |
//! | a dual is not rescaled with the penalty | the centre that a site goes by differs from the naive dual |
//! | the mean is over another number of sites | the broadcast consensus differs from the naive mean |
//! | the safeguard changes the penalty between a local update and its consensus | the same |
//! | a lie is stored | the record's answer is not what the site computed |

use crate::world::{self, CALM, Faults, Liar, Played, World, drawn_from};
use ndarray::{Array2, Axis};
use privacy::HeldOutVotes;
use privacy::sums::Words;
use protocol::assessment::Assessment;
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::limits::PATIENCE;
use protocol::message::unpsl::{self, Centre, Contribution, Derivatives, Round};
use protocol::message::{Answer, ColumnMoments, PairCounts, Request, SiteMoments, Summary};
use protocol::method::unpsl::settings::{ConsensusMethod, sums_each};
use protocol::method::{Method, Model};
use protocol::progress::Ending;
use protocol::run::Record;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use similarity::learn::unpsl::{SiteDerivatives, ThresholdDerivatives};
use std::cell::Cell;

const FEATURES: usize = 4;
const RANK: usize = 2;
/// Features of wide data, and the rows of them that one question is about at most.
const WIDE: usize = 440;
const ACTIVE: usize = 400;
const CURVATURE: f64 = 0.5;
const SPARSITY: f64 = 0.05;

/// Sites whose smooth part is a/2 ||V - T_p||^2, so that (4.21) has a closed form; and (4.22) and (4.23) by naive arithmetic.
pub(crate) struct Quadratics {
    relaxation: f64,
    /// Whether the arithmetic is that of plain ADMM without mixtures of rounds, which the oracle knows.
    plain: bool,
    consensus: Option<Array2<f64>>,
    /// rho U_p, which a change of the penalty leaves alone.
    duals: Vec<Array2<f64>>,
    relaxed: Vec<Array2<f64>>,
    penalty: f64,
    round: Option<u32>,
    /// Norms of the consensus and of the mean of rho U_p, one a round.
    norms: Vec<[f64; 2]>,
}

#[test]
fn the_protocol_survives_loss_delay_repetition_reordering_and_restart() {
    let endings = world::survives::<Quadratics>(0..120, random_job);
    let learnt = |ending: &&Ending| matches!(ending, Ending::Converged | Ending::RoundLimit);
    let learnt = endings.iter().filter(learnt).count();
    assert!(learnt > 30, "only {learnt} of 120 runs learnt a metric");
}

#[test]
fn a_disturbed_run_ends_with_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Quadratics>(1000..1024, random_job);
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Quadratics>(&job("admm", 3, 40, 1.5, 1e-6));
}

#[test]
fn the_consensus_of_quadratics_is_their_closed_form() {
    let text = job("admm", 3, 200, 1.5, 1e-8);
    is_the_closed_form(&text);
    is_the_closed_form(&text.replace("mixed_rounds = 0", "mixed_rounds = 5"));
}

fn is_the_closed_form(text: &str) {
    let mut world = World::<Quadratics>::new(7, CALM, text);
    assert_eq!(world.drive(), None);
    assert_eq!(world.ending, Some(Ending::Converged));
    let Some(Model::Unpsl(model)) = world.result().model else {
        panic!("a run of UnPSL");
    };
    let wanted = closed_form();
    let found = model.metric.unwrap();
    let apart = (&found - &wanted).mapv(f64::abs);
    let error = apart.fold(0.0, |a: f64, b| a.max(*b));
    assert!(error < 1e-6, "found {found}, wanted {wanted}");
}

/// The optimum of three sites.
fn closed_form() -> Array2<f64> {
    let sum = (0..3).map(target).reduce(|sum, one| sum + one).unwrap();
    let mut optimum = sum / 3.0;
    shrink(&mut optimum, SPARSITY / (3.0 * CURVATURE));
    optimum
}

/// (4.19) of three sites.
fn objective(metric: &Array2<f64>) -> f64 {
    let rows: f64 = metric
        .rows()
        .into_iter()
        .map(|row| row.dot(&row).sqrt())
        .sum();
    let smooth = |site| norm(&(metric - &target(site))).powi(2) * CURVATURE / 2.0;
    SPARSITY * rows + (0..3).map(smooth).sum::<f64>()
}

/// After so many questions of at most nine the search for their optimum is over.
const OVER: u32 = 5;

/// Their derivatives are of another objective than their updates: wherever the questions lead, ADMM finds the optimum of the updates.
#[test]
fn questions_lead_plain_admm_but_not_the_papers_letter_and_sixty_rounds_are_enough() {
    let letter = job("admm", 3, 60, 1.0, 1e-8) + "validation = \"none\"\n";
    let led = letter.replace("mixed_rounds = 0", "mixed_rounds = 5");
    let led = led.replace("penalty = 0.1\n", "");
    for (text, questions, penalty) in [(led, OVER as usize, 4.0 * 0.045 / 3.0), (letter, 0, 0.1)] {
        let mut world = World::<Quadratics>::new(5, CALM, &text);
        assert_eq!(world.drive(), None);
        let Some(Model::Unpsl(model)) = world.result().model else {
            panic!("a run of UnPSL");
        };
        let derived =
            |answer: &Answer| matches!(answer, Answer::Unpsl(unpsl::Answer::Derivatives(_)));
        let exchanges = world.uncovered();
        let asked = exchanges
            .iter()
            .filter(|record| record.answers.iter().flatten().any(derived));
        assert_eq!(asked.count(), questions);
        let first = model.rounds.iter().position(|row| row.penalty.is_some());
        assert_eq!(first, Some(questions));
        let found = model.rounds[questions].penalty.unwrap();
        assert!((found - penalty).abs() < 1e-12, "{found}");
        assert!(model.rounds.len() <= 60);
        let gap = objective(&model.metric.unwrap()) / objective(&closed_form()) - 1.0;
        assert!(gap < 1e-4, "{questions} questions: {gap:e}");
    }
}

/// A limit that the questions use up ends the run with the best metric that they were asked at.
#[test]
fn the_questions_that_lead_are_rounds_of_the_limit() {
    for limit in 1..=OVER + 2 {
        let text = job("admm", 3, limit, 1.0, 1e-8).replace("mixed_rounds = 0", "mixed_rounds = 5")
            + "validation = \"none\"\n";
        let mut world = World::<Quadratics>::new(5, CALM, &text);
        assert_eq!(world.drive(), None);
        assert_eq!(world.ending, Some(Ending::RoundLimit));
        let Some(Model::Unpsl(model)) = world.result().model else {
            panic!("a run of UnPSL");
        };
        assert_eq!(model.rounds.len(), limit as usize);
        let of_admm = model.rounds.iter().filter(|row| row.penalty.is_some());
        assert_eq!(of_admm.count(), limit.saturating_sub(OVER) as usize);
    }
}

/// The coordinator knows no site's dual, and moves their mean by (4.23) all the same: it is the mean of the naive ones.
#[test]
fn the_mean_dual_and_the_consensus_are_told_by_their_norms_in_every_round() {
    for (seed, sites) in [(1, 2), (2, 3), (3, 5)] {
        let text = job("admm", sites, 30, 1.5, 1e-12);
        let mut world = World::<Quadratics>::new(seed, CALM, &text);
        assert_eq!(world.drive(), None);
        let Some(Model::Unpsl(model)) = world.result().model else {
            panic!("a run of UnPSL");
        };
        let rows = &model.rounds;
        let naive = &world.oracle.norms;
        assert!(rows.len() == naive.len() && rows.len() > 10);
        for ((row, next), [metric, duals]) in rows.iter().zip(&rows[1..]).zip(naive) {
            // rho U_p is what a change of the penalty leaves alone.
            let found = [
                row.metric_norm.unwrap(),
                row.dual_norm.unwrap() * next.penalty.unwrap(),
            ];
            for (found, wanted) in found.into_iter().zip([*metric, *duals]) {
                let apart = (found - wanted).abs();
                assert!(apart <= 1e-9 * wanted.max(1e-3), "{found}, wanted {wanted}");
            }
        }
        assert!(
            naive
                .iter()
                .all(|[metric, duals]| *metric > 0.1 && *duals > 1e-3)
        );
    }
}

/// Each is a lie whatever the question: what is not covered, of another kind, or of another length.
const LIES: [fn(&Answer) -> Answer; 4] = [
    |answer| match answer {
        Answer::Correlated => Answer::Quantiles(Vec::new()),
        _ => Answer::Correlated,
    },
    |_| contribution(Array2::ones((FEATURES, RANK)), 1.0),
    |answer| match answer {
        Answer::Covered(covered) => {
            let mut covered = covered.clone();
            covered.kind = if covered.kind == "moments" {
                "description"
            } else {
                "moments"
            };
            Answer::Covered(covered)
        }
        _ => Answer::Correlated,
    },
    |answer| match answer {
        Answer::Covered(covered) => {
            let mut covered = covered.clone();
            covered.words = Words::received(covered.words.as_slice()[1..].to_vec());
            Answer::Covered(covered)
        }
        _ => Answer::Quantiles(Vec::new()),
    },
];

#[test]
fn a_member_that_lies_ends_the_run_by_name() {
    let mut failed = 0;
    for seed in 2000..2120 {
        let mut random = drawn_from(seed);
        let faults = Faults::drawn(&mut random, [20, 3, 3]);
        let text = random_job(&mut random);
        let mut world = World::<Quadratics>::new(seed, faults, &text);
        let sites = Job::parse(&text).unwrap().sites.len();
        let site = random.random_range(0..sites);
        world.liar = Some(Liar {
            site,
            from: random.random_range(2..8),
            lie: LIES[random.random_range(0..LIES.len())],
        });
        assert_eq!(world.drive(), None, "seed {seed}");
        // Where the run was over before, nobody lied.
        if let Some(Ending::Failed(Failure { text, .. })) = &world.ending {
            let named = format!("site-{site}: ");
            assert!(text.starts_with(&named), "seed {seed}: {text}");
            failed += 1;
        }
    }
    assert!(failed > 75, "only {failed} runs failed for a lie");
}

/// Numbers that no patients have, by what they are added to: of one site nobody can tell.
const NUMBERS: [fn(&Answer) -> Answer; 4] = [
    |answer| match answer {
        Answer::Moments(SiteMoments { columns, summary }) => Answer::Moments(SiteMoments {
            columns: columns.clone(),
            summary: Summary {
                patients: 7,
                ..*summary
            },
        }),
        answer => answer.clone(),
    },
    |answer| match answer {
        Answer::Moments(SiteMoments { summary, .. }) => {
            let column = ColumnMoments::Numeric {
                count: 60,
                sum: 1e20,
                sum_squares: 1.0,
                missing: 0,
            };
            Answer::Moments(SiteMoments {
                columns: vec![column; FEATURES],
                summary: *summary,
            })
        }
        answer => answer.clone(),
    },
    |answer| match answer {
        Answer::Unpsl(unpsl::Answer::Contribution(own)) => {
            Answer::Unpsl(unpsl::Answer::Contribution(Contribution {
                objective: -1e9,
                ..own.clone()
            }))
        }
        Answer::Unpsl(unpsl::Answer::Derivatives(told)) => {
            let mut told = told.clone();
            told.iter_mut().for_each(|own| own.triangles[[1, 0]] = -1e6);
            Answer::Unpsl(unpsl::Answer::Derivatives(told))
        }
        answer => answer.clone(),
    },
    |answer| match answer {
        Answer::Unpsl(unpsl::Answer::Validated(told)) => {
            let told = vec![validated(1 << 40, 1, told[0].len()); told.len()];
            Answer::Unpsl(unpsl::Answer::Validated(told))
        }
        Answer::Moments(moments) => {
            let mut moments = moments.clone();
            moments.summary.pairs.similar = 1 << 40;
            Answer::Moments(moments)
        }
        answer => answer.clone(),
    },
];

#[test]
fn a_sum_that_no_patients_have_ends_the_run() {
    for (seed, lie) in (0..).zip(NUMBERS.iter().cycle().take(24)) {
        let consensus = ["admm", "accelerated"][seed / 4 % 2];
        let text = job(consensus, 3, 20, 1.5, 1e-6);
        let mut world = World::<Quadratics>::new(seed as u64, Faults::lossy(1), &text);
        world.miscounts = Some(Liar {
            site: seed % 3,
            from: 1,
            lie: *lie,
        });
        assert_eq!(world.drive(), None, "seed {seed}");
        match &world.ending {
            Some(Ending::Failed(Failure { text, .. })) => {
                assert!(text.starts_with("the sum over the sites: "), "{text}");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}

/// What a hospital does to its derivatives.
type Change = fn(&mut Derivatives);

/// What a hospital adds to the sums of derivatives, and what the run then says.
const DERIVATIVES: [(Change, &str); 8] = [
    (
        |own| own.objective += 1e4,
        "an objective that no patients have",
    ),
    (|own| own.objective -= 1e4, "an objective below 0"),
    (|own| own.threshold[0] -= 1e4, "a slope in the threshold"),
    (|own| own.threshold[1] += 1e4, "a slope in the threshold"),
    (|own| own.triangles[[1, 0]] -= 1e4, "a curvature below 0"),
    (|own| own.triangles[[1, 0]] += 1e4, "a curvature that no"),
    (|own| own.triangles[[1, 1]] += 1e4, "a curvature that no"),
    (|own| own.triangles[[0, 1]] += 1e4, "a gradient that no"),
];

#[test]
fn derivatives_that_no_patients_have_end_the_run_and_make_it_void() {
    for (lie, (_, says)) in DERIVATIVES.iter().enumerate() {
        WHICH.set(lie);
        let text = job("accelerated", 3, 20, 1.5, 1e-6);
        let mut world = World::<Quadratics>::new(9, CALM, &text);
        world.miscounts = Some(Liar {
            site: 1,
            from: 0,
            lie: |answer| match answer {
                Answer::Unpsl(unpsl::Answer::Derivatives(told)) => {
                    let mut told = told.clone();
                    told.iter_mut().for_each(DERIVATIVES[WHICH.get()].0);
                    Answer::Unpsl(unpsl::Answer::Derivatives(told))
                }
                answer => answer.clone(),
            },
        });
        assert_eq!(world.drive(), None);
        let Some(Ending::Failed(failure)) = &world.ending else {
            panic!("{says}: {:?}", world.ending);
        };
        assert_eq!(failure.code, Code::Sum, "{}", failure.text);
        assert!(failure.text.contains(says), "{}", failure.text);
    }
}

thread_local! {
    /// The lie under way: the world takes a function that knows nothing else.
    static WHICH: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn a_refusal_ends_the_run_and_names_the_site() {
    let text = job("accelerated", 3, 6, 1.5, 1e-8);
    world::a_refusal_ends_the_run_by_name::<Quadratics>(&text);
}

#[test]
fn a_silent_member_is_waited_for_by_name_for_as_long_as_it_takes() {
    for (seed, consensus) in [(1, "admm"), (2, "accelerated"), (3, "admm")] {
        let text = job(consensus, 3, 12, 1.5, 1e-14);
        let mut world = World::<Quadratics>::new(seed, CALM, &text);
        world.mute = Some(1);
        let (now, progress, is_stalled) = world.waits();
        assert_eq!(world.ending, None, "seed {seed}");
        assert_eq!(progress.waiting_for, ["site-1"], "seed {seed}");
        assert!(progress.away.is_empty() && !is_stalled(now));
        assert!(is_stalled(now.after(PATIENCE)));
        // It is asked again when it starts again.
        world.mute = None;
        world.start_again(1);
        assert_eq!(world.drive(), None, "seed {seed}");
        let learnt = matches!(world.ending, Some(Ending::RoundLimit | Ending::Converged));
        assert!(learnt, "seed {seed}: {:?}", world.ending);
    }
}

#[test]
fn a_run_whose_site_is_away_for_an_hour_leaves_the_bits_of_the_undisturbed_one() {
    for (seed, consensus) in [(1, "admm"), (2, "accelerated")] {
        let text = job(consensus, 3, 12, 1.5, 1e-14);
        world::an_hour_away_leaves_the_bits::<Quadratics>(seed, &text);
    }
}

impl Played for Quadratics {
    fn new(job: &Job) -> Self {
        let Method::Unpsl(settings) = &job.method else {
            panic!("a job of UnPSL");
        };
        let one_fit = settings.selection.is_none() && settings.starts == 1;
        let zeros = vec![Array2::zeros((FEATURES, RANK)); job.sites.len()];
        Self {
            relaxation: settings.relaxation,
            plain: settings.consensus == ConsensusMethod::Admm
                && one_fit
                && settings.mixed_rounds == 0,
            consensus: None,
            duals: zeros.clone(),
            relaxed: zeros,
            penalty: 0.0,
            round: None,
            norms: Vec::new(),
        }
    }

    fn patients(_: usize) -> u64 {
        60
    }

    /// So few that quadratics are possible sums of losses: each pair weighs much.
    fn pairs(_: u64) -> PairCounts {
        PairCounts {
            similar: 1,
            dissimilar: 1,
        }
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        let Request::Unpsl(request) = request else {
            panic!("a run of UnPSL asks {request:?}");
        };
        match request {
            unpsl::Request::Round(round) => {
                let Centre::Sent(centre) = &round.centre else {
                    // By its own dual, whatever its objective: where it was.
                    return contribution(round.consensus.as_ref().clone(), 1.0);
                };
                let matrix = (target(site) * CURVATURE + centre * round.penalty)
                    / (CURVATURE + round.penalty);
                let away = &*round.consensus - &target(site);
                contribution(matrix, CURVATURE / 2.0 * (&away * &away).sum())
            }
            unpsl::Request::Differentiate(asked) => {
                let asked = asked.metrics.iter().zip(asked.rows.iter());
                let told = asked.map(|(metric, rows)| match rows {
                    None => derivatives(site, metric),
                    Some(rows) => of_rows(site, metric, rows),
                });
                Answer::Unpsl(unpsl::Answer::Derivatives(told.collect()))
            }
            unpsl::Request::Validate(validating) => {
                let tables = sums_each(&validating.neighbours, validating.folds, validating.nested);
                let all = vec![validated(40, 20, tables); validating.candidates()];
                Answer::Unpsl(unpsl::Answer::Validated(all))
            }
            unpsl::Request::Finish(_) => Answer::Assessed(Assessment {
                objective: Some(1.0),
                ..Assessment::default()
            }),
        }
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(
            answer,
            Answer::Unpsl(unpsl::Answer::Contribution(_) | unpsl::Answer::Derivatives(_))
        )
    }

    fn recomputed(answer: &mut Answer, draw: &mut ChaCha8Rng) {
        match answer {
            Answer::Unpsl(unpsl::Answer::Contribution(contribution)) => {
                contribution.matrix += draw.random_range(0.0..1.0);
            }
            Answer::Unpsl(unpsl::Answer::Derivatives(told)) => {
                told.iter_mut()
                    .for_each(|own| own.triangles += draw.random_range(0.0..1.0));
            }
            _ => {}
        }
    }

    /// What is broadcast must be the naive consensus.
    fn sent(&mut self, _: usize, exchange: u32, request: &Request) -> Option<String> {
        let Request::Unpsl(unpsl::Request::Round(round)) = request else {
            return None;
        };
        if !self.plain {
            return None;
        }
        if self.consensus.is_none() {
            self.consensus = Some(round.consensus.as_ref().clone());
            self.relaxed.fill(round.consensus.as_ref().clone());
        }
        self.round = Some(exchange);
        self.penalty = round.penalty;
        self.judge(round)
            .map(|what| format!("exchange {exchange}: {what}"))
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        if self.round != Some(record.exchange) {
            return None;
        }
        let said = self.other_centres(record);
        self.replay(record);
        said
    }
}

impl Quadratics {
    fn judge(&self, round: &Round) -> Option<String> {
        let consensus = self.consensus.as_ref()?;
        is_far(consensus, &round.consensus)
            .then(|| "another consensus than the naive mean".to_owned())
    }

    /// A site that was drawn elsewhere than to the naive centre W - U_p, by what its update says.
    fn other_centres(&self, record: &Record) -> Option<String> {
        let consensus = self.consensus.as_ref()?;
        let mut told = record.answers.iter().zip(&self.duals).enumerate();
        told.find_map(|(site, (answer, dual))| {
            let Some(Answer::Unpsl(unpsl::Answer::Contribution(own))) = answer else {
                return None;
            };
            let drawn = &own.matrix * (CURVATURE + self.penalty) - target(site) * CURVATURE;
            let centre = drawn / self.penalty;
            let wanted = consensus - &(dual / self.penalty);
            is_far(&centre, &wanted).then(|| format!("site {site} has another centre"))
        })
    }

    /// (4.22) and (4.23) in plain loops.
    fn replay(&mut self, record: &Record) {
        let Some(previous) = self.consensus.clone() else {
            return;
        };
        let sites = self.duals.len();
        for (relaxed, answer) in self.relaxed.iter_mut().zip(&record.answers) {
            if let Some(Answer::Unpsl(unpsl::Answer::Contribution(own))) = answer {
                *relaxed = &own.matrix * self.relaxation + &previous * (1.0 - self.relaxation);
            }
        }
        let mut mean = Array2::<f64>::zeros((FEATURES, RANK));
        for (relaxed, dual) in self.relaxed.iter().zip(&self.duals) {
            mean = mean + relaxed + &(dual / self.penalty);
        }
        mean /= sites as f64;
        shrink(&mut mean, SPARSITY / (self.penalty * sites as f64));
        for (relaxed, dual) in self.relaxed.iter().zip(&mut self.duals) {
            let step = (relaxed - &mean) * self.penalty;
            *dual += &step;
        }
        let duals = self
            .duals
            .iter()
            .fold(Array2::zeros(mean.raw_dim()), |sum, dual| sum + dual);
        self.norms
            .push([norm(&mean), norm(&(duals / sites as f64))]);
        self.consensus = Some(mean);
    }
}

fn is_far(a: &Array2<f64>, b: &Array2<f64>) -> bool {
    (a - b).iter().any(|difference| difference.abs() > 1e-9)
}

fn norm(matrix: &Array2<f64>) -> f64 {
    matrix.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn contribution(matrix: Array2<f64>, objective: f64) -> Answer {
    Answer::Unpsl(unpsl::Answer::Contribution(Contribution {
        matrix,
        objective,
        iterations: 1,
        products: None,
    }))
}

fn validated(right: u64, wrong: u64, tables: usize) -> Vec<Option<HeldOutVotes>> {
    let votes = HeldOutVotes {
        right,
        wrong,
        log_loss: wrong as f64,
    };
    vec![Some(votes); tables]
}

/// Of a/2 ||M - S_p||^2 with S_p = T_p T_p', whose second derivative is a Kronecker product as it is.
fn derivatives(site: usize, metric: &Array2<f64>) -> Derivatives {
    let wanted = target(site).dot(&target(site).t());
    let away = metric.dot(&metric.t()) - wanted;
    Derivatives::fold(&SiteDerivatives {
        objective: CURVATURE / 2.0 * (&away * &away).sum(),
        gradient: away * CURVATURE,
        curvature: Array2::eye(FEATURES) * CURVATURE.sqrt(),
        slope: None,
        threshold: ThresholdDerivatives::default(),
    })
}

/// The same of wide data, whose target is 0 but for [`FEATURES`] rows: so much of it as is asked for.
fn of_rows(site: usize, metric: &Array2<f64>, rows: &[usize]) -> Derivatives {
    let mut wanted = Array2::zeros(metric.raw_dim());
    for (row, values) in target(site).rows().into_iter().enumerate() {
        wanted.row_mut(WIDE / FEATURES * row).assign(&values);
    }
    let away = (metric.dot(&metric.t()) - wanted.dot(&wanted.t())) * CURVATURE;
    let diagonal = || away.diag().to_owned().insert_axis(Axis(1));
    Derivatives::fold(&SiteDerivatives {
        objective: (&away * &away).sum() / (2.0 * CURVATURE),
        gradient: away.select(Axis(0), rows).select(Axis(1), rows),
        curvature: Array2::eye(rows.len()) * CURVATURE.sqrt(),
        slope: Some(match rows {
            [] => diagonal(),
            _ => away.dot(metric),
        }),
        threshold: ThresholdDerivatives::default(),
    })
}

/// Wide data is asked about by active rows: the metric is that of the rows that are not 0, and no question has two
/// triangles of all rows.
#[test]
fn wide_data_is_learned_from_some_rows_at_a_time() {
    for choice in [false, true] {
        let mut text = job("accelerated", 3, 40, 1.5, 1e-8);
        let features: String = (FEATURES..WIDE)
            .map(|feature| format!("[[features]]\nname = \"x{feature}\"\nkind = \"numeric\"\n"))
            .collect();
        text = text.replace("[unpsl]", &format!("{features}[unpsl]"));
        if choice {
            let (one, several) = ("lambda_sparsity = 0.05", "lambda_sparsity = [0.05, 0.1]");
            text = text.replace(one, several) + "folds = 2\nneighbours = [1]\n";
        }
        let mut world = World::<Quadratics>::new(11, CALM, &text);
        assert_eq!(world.drive(), None);
        assert_eq!(world.ending, Some(Ending::Converged));
        let Some(Model::Unpsl(model)) = world.result().model else {
            panic!("a run of UnPSL");
        };
        let metric = model.metric.unwrap();
        let selected: Vec<usize> = (0..WIDE)
            .filter(|row| metric.row(*row).iter().any(|entry| *entry != 0.0))
            .collect();
        let told: Vec<usize> = (0..FEATURES).map(|row| WIDE / FEATURES * row).collect();
        assert_eq!(selected, told);
        if !choice {
            let objective = model.rounds.last().unwrap().objective.unwrap();
            let least = narrow_objective();
            let gap = (objective / least - 1.0).abs();
            assert!(gap < 1e-5, "{objective} {least}");
        }
        let mut widest = 0;
        for record in world.uncovered() {
            for answer in record.answers.iter().flatten() {
                if let Answer::Unpsl(unpsl::Answer::Derivatives(told)) = answer {
                    widest = told
                        .iter()
                        .fold(widest, |most, own| most.max(own.triangles.ncols()));
                }
            }
        }
        assert!(
            (1..=Derivatives::triangle(ACTIVE)).contains(&widest),
            "{widest}"
        );
    }
}

/// The least objective of the same targets without the rows that are 0.
fn narrow_objective() -> f64 {
    let mut world = World::<Quadratics>::new(11, CALM, &job("accelerated", 3, 40, 1.5, 1e-8));
    assert_eq!(world.drive(), None);
    let Some(Model::Unpsl(model)) = world.result().model else {
        panic!("a run of UnPSL");
    };
    model.rounds.last().unwrap().objective.unwrap()
}

fn target(site: usize) -> Array2<f64> {
    let mut random = drawn_from(90 + site as u64);
    Array2::from_shape_fn((FEATURES, RANK), |_| random.random_range(-1.0..1.0))
}

fn shrink(matrix: &mut Array2<f64>, threshold: f64) {
    for mut row in matrix.rows_mut() {
        let norm = row.dot(&row).sqrt();
        row *= if norm > threshold {
            1.0 - threshold / norm
        } else {
            0.0
        };
    }
}

fn random_job(random: &mut ChaCha8Rng) -> String {
    let consensus = ["admm", "admm", "accelerated"][random.random_range(0..3)];
    let sites = random.random_range(2..=5);
    // Every restart replays all rounds, and those of the accelerated consensus cost more.
    let rounds_max = if consensus == "admm" { 60 } else { 10 };
    let rounds = random.random_range(1..=rounds_max);
    let relaxation = [1.0, 1.3, 1.5, 1.8][random.random_range(0..4)];
    let tolerance = [1e-2, 1e-4, 1e-8][random.random_range(0..3)];
    let mut text = job(consensus, sites, rounds, relaxation, tolerance);
    if random.random_range(0..2) == 0 {
        text = text.replace("mixed_rounds = 0", "mixed_rounds = 5");
    }
    // Without two folds of three a choice nests.
    let folds = random.random_range(2..=3);
    match random.random_range(0..4) {
        0 => text.push_str("validation = \"none\"\n"),
        1 => text.push_str(&format!("validation = {folds}\n")),
        _ => {}
    }
    match random.random_range(0..6) {
        0 => text.push_str("starts = 2\n"),
        1 => {
            let (one, several) = ("lambda_sparsity = 0.05", "lambda_sparsity = [0.02, 0.05]");
            text = text.replace(one, several);
            text.push_str(&format!("folds = {folds}\nneighbours = [1, 3]\n"));
            if random.random_range(0..2) == 0 {
                text.push_str("form = [\"distance\", \"inner_product\"]\n");
            }
        }
        _ => {}
    }
    if random.random_range(0..2) == 0 {
        return text;
    }
    // Half of the features need quartiles, and so the run one more exchange.
    (0..FEATURES / 2).fold(text, |text, feature| {
        let plain = format!("name = \"x{feature}\"\nkind = \"numeric\"\n");
        let robust = format!("{plain}range = [-4, 4]\nstandardise = \"robust\"\n");
        text.replace(&plain, &robust)
    })
}

fn job(consensus: &str, sites: usize, rounds: u32, relaxation: f64, tolerance: f64) -> String {
    let names: Vec<String> = (0..sites).map(|site| format!("\"site-{site}\"")).collect();
    let features: String = (0..FEATURES)
        .map(|feature| format!("[[features]]\nname = \"x{feature}\"\nkind = \"numeric\"\n"))
        .collect();
    format!(
        "name = \"world\"\nmethod = \"unpsl\"\nprecision = \"exact\"\nsites = [{}]\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n{features}\
         [unpsl]\nthreshold = 50\nrank = {RANK}\nlambda_sparsity = {SPARSITY}\nround_limit = {rounds}\n\
         relaxation = {relaxation}\nmixed_rounds = 0\ntolerance_relative = {tolerance}\n\
         tolerance_absolute = 1e-9\npenalty = 0.1\nconsensus = \"{consensus}\"\n",
        names.join(", ")
    )
}
