//! Sites of the attacks: tables, jobs, and what a site computes where nobody judges the question.

use kindred_tests::federation::RUN;
use kindred_tests::programs::Home;
use kindred_tests::results::npy;
use ndarray::Array2;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::unpsl::{self as message, Differentiating, Finishing, Form, Part};
use protocol::message::{Answer, ColumnMoments, Preparing, Request, SiteMoments, Summary, Totals};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::numeric::seed::Seed;
use site_agent::config::SourceConfig;
use site_agent::method::Computation;
use site_agent::run::stop::Stop;
use site_agent::source::read_cohort;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Patients of the table, unless a test says otherwise.
pub(crate) const PATIENTS: usize = 80;
/// Their features.
pub(crate) const FEATURES: usize = 12;

/// One site without a gate: it answers whatever it is asked, and in the clear.
pub(crate) struct Bare {
    _home: Home,
    folder: PathBuf,
    computation: Computation,
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

/// A job of UnPSL on that table, with more keys of `[unpsl]`, by exact sums: they tell most.
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
        "name = \"lie\"\nmethod = \"unpsl\"\nprecision = \"exact\"\nsites = [\"north\", \"south\", \"east\"]\n\
         [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\n{features}\
         [unpsl]\n{threshold}{validation}{keys}\n"
    )
}

impl Bare {
    /// A site on `table`, in a run of `job`; `secret` says what the site alone knows.
    pub(crate) fn open(table: &str, job: &str, secret: u64) -> Self {
        Self::of_run(table, job, 5, secret)
    }

    /// The same in a run of this seed, which everybody knows.
    pub(crate) fn of_run(table: &str, job: &str, seed: u64, secret: u64) -> Self {
        let home = Home::new();
        let path = home.write("data/north.csv", table);
        let job = Job::parse(job).unwrap();
        let source = SourceConfig::of_file(&path, Some("patient".to_owned()));
        let cohort = read_cohort(&source, &job).unwrap();
        let folder = home.join("runs").join(RUN);
        let (rules, secret) = (Rules::default(), Box::new(move |_: &[u8]| secret));
        let made = Computation::new(job, Seed(seed), cohort, folder.clone(), &rules, secret);
        Self {
            _home: home,
            folder,
            computation: made.unwrap_or_else(|stop| panic!("{stop:?}")),
        }
    }

    pub(crate) fn ask(&mut self, request: Request) -> Answer {
        let answer = self.computation.answer(&request);
        answer.unwrap_or_else(|stop| panic!("{stop:?}"))
    }

    /// Prepares with the site's own moments, as if two more sites had none; gives them.
    pub(crate) fn prepared(&mut self) -> Told {
        let Answer::Moments(SiteMoments {
            columns, summary, ..
        }) = self.ask(Request::Moments)
        else {
            panic!("no moments");
        };
        let told = Told {
            moments: columns,
            summary,
        };
        self.ask(preparation(&told));
        told
    }

    /// Prepares with these moments, and gives the answer or why there is none.
    pub(crate) fn prepared_by(&mut self, told: &Told) -> Result<Answer, Stop> {
        self.answered(&preparation(told))
    }

    /// An answer, or why there is none.
    pub(crate) fn answered(&mut self, request: &Request) -> Result<Answer, Stop> {
        self.computation.answer(request)
    }

    /// The standardised patients, as the site keeps them for itself once a run is finished.
    pub(crate) fn truth(&self) -> Array2<f64> {
        npy(&self.folder.join("matrix.npy"))
    }
}

fn preparation(told: &Told) -> Request {
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
    look_at(metric, Part::whole(Form::InnerProduct))
}

/// The same among some of the patients.
pub(crate) fn look_at(metric: &Array2<f64>, part: Part) -> Request {
    Request::Unpsl(message::Request::Differentiate(Differentiating {
        metrics: Arc::new(vec![metric.clone()]),
        parts: vec![part],
        rows: Arc::new(vec![None]),
    }))
}

/// The last question of a run, about `consensus`.
pub(crate) fn finish(consensus: Array2<f64>, neighbours: u32) -> Request {
    Request::Unpsl(message::Request::Finish(Finishing {
        consensus: Arc::new(consensus),
        form: Form::InnerProduct,
        neighbours,
        folds: Arc::default(),
        judges: 0,
        chosen: Arc::default(),
    }))
}

/// The gradient in W that derivatives at `metric` tell; none of another answer.
pub(crate) fn gradient(answer: &Answer, metric: &Array2<f64>) -> Option<Array2<f64>> {
    let Answer::Unpsl(message::Answer::Derivatives(told)) = answer else {
        return None;
    };
    let own = told[0].unfold(FEATURES);
    Some(own.gradient.dot(&metric.slice(ndarray::s![..FEATURES, ..])) * 2.0)
}
