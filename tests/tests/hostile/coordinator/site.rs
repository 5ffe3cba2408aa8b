//! A real site for a coordinator that lies: its worker, gate, ledger and journal on a table of patients.

use kindred_tests::deployment::site_config;
use kindred_tests::federation;
use kindred_tests::programs::Home;
use kindred_tests::results::npy;
use ndarray::Array2;
use protocol::message::unpsl::{
    self as message, Centre, Differentiating, Finishing, Form, Part, Round,
};
use protocol::message::{Answer, ColumnMoments, Preparing, Request, SiteMoments, Summary, Totals};
use protocol::name::RunId;
use protocol::time::Timestamp;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use site_agent::run::worker::Worker;
use std::fmt::Write as _;
use std::sync::Arc;

/// Patients of the table, unless a test says otherwise.
pub(crate) const PATIENTS: usize = 80;
/// Their features.
pub(crate) const FEATURES: usize = 12;

/// One site.
pub(crate) struct Site {
    home: Home,
    policy: String,
    worker: Option<Worker>,
    run: RunId,
    exchange: u32,
    pub(crate) now: Timestamp,
}

/// What a site told of itself before the rounds.
pub(crate) struct Told {
    pub(crate) moments: Vec<ColumnMoments>,
    pub(crate) summary: Summary,
}

/// A table of patients of two classes with features of unequal scale.
pub(crate) fn table(patients: usize, seed: u64) -> String {
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let mut text = "patient,class,value".to_owned();
    for feature in 1..=FEATURES {
        let _ = write!(text, ",f{feature}");
    }
    for patient in 0..patients {
        let features: Vec<f64> = (0..FEATURES)
            .map(|_| 8.0 * (draw.random::<f64>() + draw.random::<f64>() - 1.0))
            .collect();
        let class = usize::from(features[0] + features[2] + draw.random::<f64>() > 0.5);
        let value = 100.0 + 10.0 * features[1] + draw.random::<f64>();
        let _ = write!(text, "\np{patient},{class},{value:.3}");
        for value in features {
            let _ = write!(text, ",{value:.4}");
        }
    }
    text + "\n"
}

/// A job of UnPSL on that table, with more keys of `[unpsl]`.
pub(crate) fn unpsl(keys: &str) -> String {
    let features: String = (1..=FEATURES)
        .map(|feature| format!("[[features]]\nname = \"f{feature}\"\nkind = \"numeric\"\n"))
        .collect();
    // The paper's, unless the job says another.
    let threshold = match keys.contains("threshold") {
        true => "",
        false => "threshold = 1.0\ncentring = \"pooled\"\n",
    };
    // Nobody is held out, unless the job says otherwise.
    let validation = match keys.contains("validation") {
        true => "",
        false => "validation = \"none\"\n",
    };
    format!(
        "name = \"lie\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
         [aggregation]\ncontributions = \"own\"\n[outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\n{features}\
         [unpsl]\n{threshold}{validation}{keys}\n"
    )
}

impl Site {
    /// A site on `table`, whose policy opens everything but for `rules`.
    pub(crate) fn open(table: &str, rules: &str) -> Self {
        let home = Home::new();
        home.write("data/north.csv", table);
        let mut policy = site_config("north", 1, "north");
        for permission in ["second_moments", "forests"] {
            if rules.contains(permission) {
                policy = policy.replace(&format!("{permission} = true\n"), "");
            }
        }
        let policy = policy + rules + "[columns.f2]\nrange = [-8, 8]\n";
        let mut site = Self {
            home,
            policy,
            worker: None,
            run: RunId::new("000000000000").unwrap(),
            exchange: 0,
            now: Timestamp(1_700_000_000_000),
        };
        site.restart();
        site
    }

    /// Stops the agent, if it runs, and starts it on the same folder.
    pub(crate) fn restart(&mut self) {
        self.worker = None;
        self.worker = Some(federation::worker(&self.policy, &self.home, self.now));
    }

    /// Stops the agent.
    pub(crate) fn stop(&mut self) {
        self.worker = None;
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> &str {
        &self.policy
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// What the ledger has of rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.entries("ledger.jsonl", "\"rounds\":1")
    }

    /// Says that a run of the researcher begins.
    pub(crate) fn begin(&mut self, run: &str, job: &str, seed: u64) {
        self.begin_by("researcher", run, job, seed);
    }

    /// Says that a run begins whose job `operator` signed.
    pub(crate) fn begin_by(&mut self, operator: &str, run: &str, job: &str, seed: u64) {
        self.run = RunId::new(run).unwrap();
        self.exchange = 0;
        federation::begin_by(self.worker.as_mut().unwrap(), operator, run, job, seed);
    }

    /// Asks in the next exchange.
    pub(crate) fn ask(&mut self, request: Request) -> Answer {
        self.exchange += 1;
        self.ask_in(self.exchange, request)
    }

    /// Asks in an exchange of the coordinator's choice.
    pub(crate) fn ask_in(&mut self, exchange: u32, request: Request) -> Answer {
        let worker = self.worker.as_mut().unwrap();
        federation::ask(worker, self.run.as_str(), exchange, request, self.now)
    }

    /// Describe and moments, as every run of UnPSL begins.
    pub(crate) fn tell(&mut self) -> Told {
        match self.ask(Request::Describe) {
            Answer::Described(_) => {}
            other => panic!("{}", said(&other)),
        }
        match self.ask(Request::Moments) {
            Answer::Moments(SiteMoments {
                columns, summary, ..
            }) => Told {
                moments: columns,
                summary,
            },
            other => panic!("{}", said(&other)),
        }
    }

    /// Prepares with the site's own moments, as if two more sites had none.
    pub(crate) fn prepare(&mut self, told: &Told) {
        let answer = self.ask(preparation(told));
        assert!(matches!(answer, Answer::Prepared(_)), "{}", said(&answer));
    }

    /// The standardised patients, as the site keeps them for itself once a run is finished.
    pub(crate) fn truth(&self) -> Array2<f64> {
        let folder = self.home.join("sites/north/runs").join(self.run.as_str());
        npy(&folder.join("matrix.npy"))
    }

    /// Entries of a book in the site's folder that hold `text`.
    pub(crate) fn entries(&self, book: &str, text: &str) -> usize {
        let book = std::fs::read_to_string(self.home.join("sites/north").join(book)).unwrap();
        book.lines().filter(|line| line.contains(text)).count()
    }
}

pub(crate) fn preparation(told: &Told) -> Request {
    Request::Prepare(Arc::new(Preparing {
        moments: told.moments.clone(),
        quartiles: Vec::new(),
        curves: Vec::new(),
        within: None,
        totals: Totals {
            patients: told.summary.patients,
            pairs: told.summary.pairs,
            sites: 3,
        },
    }))
}

/// The derivatives at a metric.
pub(crate) fn look(metric: &Array2<f64>) -> Request {
    Request::Unpsl(message::Request::Differentiate(Differentiating {
        metrics: Arc::new(vec![metric.clone()]),
        parts: vec![Part::whole(Form::InnerProduct)],
        rows: Arc::new(vec![None]),
    }))
}

/// A round by the site's own dual, with a change.
pub(crate) fn round_with(metric: &Array2<f64>, change: impl FnOnce(&mut Round)) -> Request {
    let mut round = Round {
        consensus: Arc::new(metric.clone()),
        centre: Centre::Gradient,
        penalty: 1e12,
        tolerance: 1e-4,
        part: Part::whole(Form::InnerProduct),
    };
    change(&mut round);
    Request::Unpsl(message::Request::Round(round))
}

/// The last question of a run, about `consensus`.
pub(crate) fn finish(consensus: Array2<f64>, neighbours: u32) -> Request {
    Request::Unpsl(message::Request::Finish(Finishing {
        consensus: Arc::new(consensus),
        form: Form::InnerProduct,
        neighbours,
        folds: Arc::default(),
    }))
}

/// Whether it tells derivatives.
pub(crate) fn is_told(answer: &Answer) -> bool {
    matches!(answer, Answer::Unpsl(message::Answer::Derivatives(_)))
}

/// The gradient in W that derivatives at `metric` tell; none of another answer.
pub(crate) fn gradient(answer: &Answer, metric: &Array2<f64>) -> Option<Array2<f64>> {
    let Answer::Unpsl(message::Answer::Derivatives(told)) = answer else {
        return None;
    };
    let own = told[0].unfold(FEATURES);
    Some(own.gradient.dot(&metric.slice(ndarray::s![..FEATURES, ..])) * 2.0)
}

/// An answer in words.
pub(crate) fn said(answer: &Answer) -> String {
    match answer {
        Answer::Refused(refusal) => format!("refused by {}: {}", refusal.rule, refusal.text),
        Answer::Failed(failure) => format!("failed: {} {}", failure.code, failure.text),
        Answer::Unfit(problems) => format!("{problems:?}"),
        other => format!("{other:?}"),
    }
}

/// The rule that refused; none where the site answered.
pub(crate) fn refused_by(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Refused(refusal) => Some(&refusal.rule),
        _ => None,
    }
}
