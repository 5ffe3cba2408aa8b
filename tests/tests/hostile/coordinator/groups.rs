//! One honest question in many runs, where pairs are drawn: were they others in each run, every run would be a sum over other pairs, and so
//! another equation in the patients' values.

use crate::coordinator::site::{Bare, FEATURES, PATIENTS, finish, look, table, unpsl};
use ndarray::{Array1, Array2, Axis, s};
use protocol::job::Job;
use protocol::message::unpsl as message;
use protocol::message::{Answer, Totals};
use protocol::method::Method;
use similarity::learn::unpsl::{Labels, Settings, SiteObjective, summarise};
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

/// Runs of the same question.
const RUNS: u64 = 24;
/// The feature that nobody knows.
const SECRET: usize = 6;
/// How near a value is read, in standard deviations.
const NEAR: f64 = 0.1;

/// An operator who knows all else of everybody, and asks about a metric that suits the patients.
struct Operator {
    settings: Settings,
    metric: Array2<f64>,
    /// The standardised patients.
    truth: Array2<f64>,
    labels: Labels,
}

fn job() -> String {
    let text = unpsl("pairs = 2\nlambda_correlation = 0");
    text.replace("precision = \"exact\"\n", "")
}

impl Operator {
    fn new(table: &str) -> Self {
        let Method::Unpsl(settings) = Job::parse(&job()).unwrap().method else {
            panic!("another method");
        };
        let mut metric = Array2::zeros((FEATURES, 1));
        (metric[[0, 0]], metric[[2, 0]]) = (0.4, 0.4);
        let mut site = Bare::open(table, &job(), 7);
        site.prepared();
        site.ask(finish(metric.clone(), 5));
        let class = |row: &str| u32::from(row.split(',').nth(1) == Some("1"));
        Self {
            settings: settings.objective,
            metric,
            truth: site.truth(),
            labels: Labels::Classes(table.lines().skip(1).map(class).collect()),
        }
    }

    /// What a run says of the products of the secret feature with all others, and of its pairs.
    fn told(&self, table: &str, (seed, secret): (u64, u64)) -> (Array1<f64>, Totals) {
        let mut site = Bare::of_run(table, &job(), seed, secret);
        let summary = site.prepared().summary;
        let totals = Totals {
            patients: summary.patients,
            pairs: summary.pairs,
            sites: 3,
        };
        let Answer::Unpsl(message::Answer::Derivatives(told)) = site.ask(look(&self.metric)) else {
            panic!("no derivatives");
        };
        (
            told[0].unfold(FEATURES).gradient.row(SECRET).to_owned(),
            totals,
        )
    }

    /// What the value of each patient adds to that, one a row, if the groups followed from this number.
    fn equations(&self, groups: u64, mut totals: Totals) -> Array2<f64> {
        let settings = Settings {
            precision: Precision::Exact,
            rank: 1,
            ..self.settings
        };
        // A guess of the groups that is wrong may have more.
        let own = summarise(&self.labels, settings.pairs, Seed(groups)).pairs;
        totals.pairs.similar = totals.pairs.similar.max(own.similar);
        totals.pairs.dissimilar = totals.pairs.dissimilar.max(own.dissimilar);
        let mut added = Array2::zeros((PATIENTS, FEATURES));
        for (patient, mut added) in added.rows_mut().into_iter().enumerate() {
            let mut patients = self.truth.clone();
            patients.column_mut(SECRET).fill(0.0);
            patients[[patient, SECRET]] = 1.0;
            let own = SiteObjective::new(
                &patients.view(),
                &self.labels,
                &settings,
                &totals,
                Seed(groups),
                None,
            );
            let own = own.unwrap().derivatives(&self.metric, None).unwrap();
            added.assign(&own.gradient.row(SECRET));
        }
        // Its own square is no equation.
        added.column_mut(SECRET).fill(0.0);
        added
    }

    /// How many of the patients' values are read from what runs say, each of which has this seed and this secret of the site, if groups
    /// followed from the first.
    fn reads(&self, table: &str, runs: impl Iterator<Item = (u64, u64)>) -> usize {
        let mut normal: Array2<f64> = Array2::eye(PATIENTS) * 1e-6;
        let mut right = Array1::zeros(PATIENTS);
        for (seed, secret) in runs {
            let (mut told, totals) = self.told(table, (seed, secret));
            told[SECRET] = 0.0;
            let equations = self.equations(seed, totals);
            normal += &equations.dot(&equations.t());
            right += &equations.dot(&told);
        }
        let solved = Cholesky::factor(&normal).unwrap();
        let found = solved.solve(&right.insert_axis(Axis(1)));
        let apart = &found.slice(s![.., 0]) - &self.truth.column(SECRET);
        apart.iter().filter(|apart| apart.abs() < NEAR).count()
    }
}

#[test]
fn runs_of_one_question_are_one_equation_whatever_their_seeds() {
    let table = table(PATIENTS, 3);
    let operator = Operator::new(&table);
    // The attack must bite where groups follow from what everybody knows, or its failure elsewhere would prove nothing.
    let before = operator.reads(&table, (0..RUNS).map(|run| (run, run)));
    let after = operator.reads(&table, (0..RUNS).map(|run| (run, 7)));
    println!(
        "{RUNS} runs tell {before} of {PATIENTS} values where groups follow from the seeds, {after} where they do not"
    );
    assert!(before > PATIENTS * 9 / 10, "only {before}");
    assert!(after < PATIENTS / 4, "{after} values");
    let first = operator.told(&table, (0, 7));
    for run in 1..RUNS {
        assert!(operator.told(&table, (run, 7)) == first, "run {run}");
    }
}
