//! One honest question in many runs: of other parts of the patients in each, every run would be another equation in the patients' values.

use crate::coordinator::site::{Bare, FEATURES, PATIENTS, finish, look_at, table, unpsl};
use ndarray::{Array1, Array2, Axis, s};
use protocol::job::Job;
use protocol::message::unpsl::{self as message, Form, Part};
use protocol::message::{Answer, Totals};
use protocol::method::Method;
use protocol::study::{Study, by_nobody, of_job};
use similarity::learn::unpsl::selection::Folds;
use similarity::learn::unpsl::{Labels, Pairs, Settings, SharedPatients, SiteObjective, summarise};
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

/// Runs of the same question.
const RUNS: u64 = 24;
/// What the site alone knows.
const SECRET_NUMBER: u64 = 7;
/// The feature that nobody knows.
const SECRET: usize = 6;
/// How near a value is read, in standard deviations.
const NEAR: f64 = 0.1;

/// An operator who knows all else of everybody, and asks about a metric that suits the patients.
struct Operator {
    table: String,
    settings: Settings,
    metric: Array2<f64>,
    /// The standardised patients.
    truth: Array2<f64>,
    classes: Array1<u32>,
}

/// What parts the patients in a run.
#[derive(Clone, Copy)]
enum By {
    /// Groups, in which each patient has so many partners.
    Partners(usize),
    /// So many folds, of which this one is left out.
    Folds(u32, u32),
}

/// A run: its seed, and what the site alone knows.
#[derive(Clone, Copy)]
struct Run {
    by: By,
    seed: u64,
    secret: u64,
}

/// A run of the site.
fn own(by: By) -> Run {
    Run {
        by,
        seed: 0,
        secret: SECRET_NUMBER,
    }
}

impl By {
    fn job(self) -> String {
        let keys = match self {
            Self::Partners(partners) => format!("pairs = {partners}"),
            Self::Folds(folds, _) => format!("validation = {folds}"),
        };
        let text = unpsl(&format!("{keys}\nlambda_correlation = 0"));
        text.replace("precision = \"exact\"\n", "")
    }

    fn part(self) -> Part {
        match self {
            Self::Partners(_) => Part::whole(Form::InnerProduct),
            Self::Folds(_, fold) => Part::without(Form::InnerProduct, fold),
        }
    }

    fn pairs(self) -> Pairs {
        match self {
            Self::Partners(partners) => Pairs::PerPatient(partners),
            Self::Folds(..) => Pairs::All,
        }
    }
}

impl Operator {
    fn new() -> Self {
        let table = table(PATIENTS, 3);
        let job = By::Partners(2).job();
        let Method::Unpsl(settings) = Job::parse(&job).unwrap().method else {
            panic!("another method");
        };
        let mut metric = Array2::zeros((FEATURES, 1));
        (metric[[0, 0]], metric[[2, 0]]) = (0.4, 0.4);
        let mut site = Bare::open(&table, &job, SECRET_NUMBER);
        site.prepared();
        site.ask(finish(metric.clone(), 5));
        let class = |row: &str| u32::from(row.split(',').nth(1) == Some("1"));
        Self {
            settings: Settings {
                precision: Precision::Exact,
                rank: 1,
                ..settings.objective
            },
            metric,
            truth: site.truth(),
            classes: table.lines().skip(1).map(class).collect(),
            table,
        }
    }

    /// What a run says of the products of the secret feature with all others, and of its pairs.
    fn answers(&self, run: Run) -> (Array1<f64>, Totals) {
        let mut site = Bare::of_run(&self.table, &run.by.job(), run.seed, run.secret);
        let summary = site.prepared().summary;
        let totals = Totals {
            patients: summary.patients,
            pairs: summary.pairs,
            sites: 3,
        };
        let question = look_at(&self.metric, run.by.part());
        let Answer::Unpsl(message::Answer::Derivatives(own)) = site.ask(question) else {
            panic!("no derivatives");
        };
        let own = own[0].unfold(FEATURES);
        (own.gradient.row(SECRET).to_owned(), totals)
    }

    /// What the value of each patient adds to that, one a row, if the parts followed from this number.
    fn equations(&self, by: By, number: u64, mut totals: Totals) -> Array2<f64> {
        let number = Seed(number);
        let rows = match by {
            By::Partners(_) => (0..PATIENTS).collect(),
            By::Folds(folds, fold) => {
                let folds = Folds::stratified(&self.classes, folds as usize, number).unwrap();
                folds.without(&[fold])
            }
        };
        let settings = Settings {
            pairs: by.pairs(),
            ..self.settings
        };
        let labels = Labels::Classes(self.classes.clone());
        let whole = summarise(&labels, settings.pairs, number);
        // A guess of the groups that is wrong may have more.
        totals.pairs.similar = totals.pairs.similar.max(whole.pairs.similar);
        totals.pairs.dissimilar = totals.pairs.dissimilar.max(whole.pairs.dissimilar);
        let mut added = Array2::zeros((PATIENTS, FEATURES));
        for patient in &rows {
            let mut patients = self.truth.clone();
            patients.column_mut(SECRET).fill(0.0);
            patients[[*patient, SECRET]] = 1.0;
            let own = SiteObjective::of_part(
                SharedPatients::copied(&patients.view()).some(&rows),
                &labels.among(&rows),
                &settings,
                (&totals, &whole),
                (number, None),
                None,
            );
            let own = own.unwrap().derivatives(&self.metric, None).unwrap();
            added.row_mut(*patient).assign(&own.gradient.row(SECRET));
        }
        // Its own square is no equation.
        added.column_mut(SECRET).fill(0.0);
        added
    }

    /// How many of the patients' values are read from these runs, if parts followed from the number that is with each.
    fn reads(&self, runs: impl Iterator<Item = (Run, u64)>) -> usize {
        let mut normal: Array2<f64> = Array2::eye(PATIENTS) * 1e-6;
        let mut right = Array1::zeros(PATIENTS);
        for (run, number) in runs {
            let (mut answer, totals) = self.answers(run);
            answer[SECRET] = 0.0;
            let equations = self.equations(run.by, number, totals);
            normal += &equations.dot(&equations.t());
            right += &equations.dot(&answer);
        }
        let solved = Cholesky::factor(&normal).unwrap();
        let found = solved.solve(&right.insert_axis(Axis(1)));
        let apart = &found.slice(s![.., 0]) - &self.truth.column(SECRET);
        apart.iter().filter(|apart| apart.abs() < NEAR).count()
    }

    /// The same of runs of the site, where its number is known.
    fn reads_where_known(&self, runs: impl Iterator<Item = By>) -> usize {
        self.reads(runs.map(|by| (own(by), SECRET_NUMBER)))
    }
}

#[test]
fn runs_of_one_question_are_one_equation_whatever_their_seeds() {
    let operator = Operator::new();
    let run = |seed, secret| Run {
        by: By::Partners(2),
        seed,
        secret,
    };
    // The attack must bite where groups follow from what everybody knows, or its failure elsewhere would prove nothing.
    let before = operator.reads((0..RUNS).map(|seed| (run(seed, seed), seed)));
    let after = operator.reads((0..RUNS).map(|seed| (run(seed, SECRET_NUMBER), seed)));
    println!(
        "{RUNS} runs tell {before} of {PATIENTS} values where groups follow from the seeds, {after} where they do not"
    );
    assert!(before > PATIENTS * 9 / 10, "only {before}");
    assert!(after < PATIENTS / 4, "{after} values");
    let first = operator.answers(run(0, SECRET_NUMBER));
    for seed in 1..RUNS {
        let again = operator.answers(run(seed, SECRET_NUMBER));
        assert!(again == first, "run {seed}");
    }
}

/// Each number of partners parts the patients into other groups. Nobody knows the site's number, but sums of the features that an operator
/// knows say much of who is with whom.
#[test]
fn numbers_of_partners_are_equations_once_the_groups_are_known() {
    let operator = Operator::new();
    // From 40 partners on, all patients are one group.
    let any = operator.reads_where_known((1..=40).map(By::Partners));
    let one = operator.reads_where_known([2].into_iter().map(By::Partners));
    println!(
        "where groups are known, all numbers of partners tell {any} of {PATIENTS} values, one of them {one}"
    );
    assert!(any > PATIENTS / 2, "only {any}");
    assert!(one < PATIENTS / 4, "{one} values");
}

/// The same of folds.
#[test]
fn numbers_of_folds_are_equations_once_the_folds_are_known() {
    let operator = Operator::new();
    let of = |folds: u32| (0..folds).map(move |fold| By::Folds(folds, fold));
    // Eight folds of ten patients each, as rules ask for.
    let any = operator.reads_where_known((2..=8).flat_map(of));
    let one = operator.reads_where_known(of(5));
    println!(
        "where folds are known, all numbers of folds tell {any} of {PATIENTS} values, one of them {one}"
    );
    assert!(any > 2 * one, "{any} and {one}");
    assert!(one < PATIENTS / 4, "{one} values");
}

/// So a study has one number of each. Coordinator and hospitals read a job with its study, and refuse it before anything is summed.
#[test]
fn a_job_with_other_parts_than_its_study_is_refused() {
    let keys = |pairs: &str, folds: u32| format!("pairs = {pairs}\nvalidation = {folds}");
    let of_study = |keys: &str| {
        let job = Job::parse(&unpsl(keys)).unwrap();
        let (own, study) = of_job(&job, "operator", &[]).unwrap();
        (own, Study::parse(&by_nobody(&study)).unwrap())
    };
    let (own, study) = of_study(&keys("3", 4));
    assert_eq!((study.folds, study.partners), (4, Some(3)));
    let with = |study: &Study, pairs: &str, folds: u32| {
        let job = own.replace(&keys("3", 4), &keys(pairs, folds));
        Job::parse(&study.join(&job)).map_err(|errors| errors.to_string())
    };
    assert!(with(&study, "3", 4).is_ok());
    // All pairs are no drawn ones.
    assert!(with(&study, "\"all\"", 4).is_ok());
    let refused = with(&study, "4", 5).unwrap_err();
    for wanted in [
        "folds: found 5, wanted 4, the folds of the study \"lie\"",
        "pairs: found 4, wanted 3 or \"all\", the pairs of the study \"lie\"",
    ] {
        assert!(refused.contains(wanted), "{refused}");
    }
    // A job that names none has the study's.
    let job = own.replace(&keys("3", 4), "pairs = 3");
    let Method::Unpsl(settings) = Job::parse(&study.join(&job)).unwrap().method else {
        panic!("another method");
    };
    assert_eq!(settings.folds(), Some(4));
    // A study whose text has no parts: five folds, and all pairs.
    let (_, usual) = of_study("rank = 2");
    assert!(with(&usual, "\"all\"", 5).is_ok());
    for (pairs, folds) in [("3", 5), ("\"all\"", 4)] {
        assert!(with(&usual, pairs, folds).is_err());
    }
}
