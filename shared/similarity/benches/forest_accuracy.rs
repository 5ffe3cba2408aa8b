//! Errors of forests beside those of their peers on the same patients, with the noise of the difference.
//!
//! `cargo bench -p similarity --bench forest_accuracy -- [FOLDER]`
//!
//! It writes the data sets to FOLDER (where absent, under the target folder) and says where;
//! `peers/forest_accuracy.py` and `peers/forest_accuracy.R` add their predictions; run once more, it
//! grows our forests by the rule of nodes of either peer and prints the errors, judged by one measure.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ndarray::{Array1, Array2, ArrayView1};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::{FeaturesPerSplit, Settings, grow};
use similarity::numeric::seed::Seed;

const REPEATS: u64 = 40;
const TEST_PATIENTS: usize = 1_000;
const TREES: usize = 200;
/// Between three classes, of Friedman's function with noise.
const CLASS_BOUNDS: [f64; 2] = [12.0, 17.0];

#[derive(Clone, Copy)]
enum Peer {
    Scikit,
    Ranger,
}

impl Peer {
    const ALL: [Self; 2] = [Self::Scikit, Self::Ranger];

    fn name(self) -> &'static str {
        match self {
            Self::Scikit => "scikit",
            Self::Ranger => "ranger",
        }
    }

    /// The peer's rule of nodes. It is the same but for ranger's survival trees, whose terminal nodes
    /// have 3 patients counted with multiplicity, and ours 3 different ones.
    fn rule(self, kind: Kind) -> NodeRule {
        let (node_size, terminal_min) = match (self, kind) {
            (_, Kind::Classification) => (1, 1),
            (Self::Scikit, Kind::Regression) => (1, 5),
            (Self::Scikit, Kind::Survival | Kind::Censored) => (1, 3),
            (Self::Ranger, Kind::Regression) => (5, 1),
            (Self::Ranger, Kind::Survival | Kind::Censored) => (3, 3),
        };
        NodeRule {
            node_size,
            terminal_min,
        }
    }
}

#[derive(Clone, Copy)]
struct NodeRule {
    node_size: u32,
    terminal_min: u32,
}

#[derive(Clone, Copy)]
enum Kind {
    Classification,
    Regression,
    Survival,
    /// Survival of many patients, few events, and features of yes and no.
    Censored,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::Classification,
        Self::Regression,
        Self::Survival,
        Self::Censored,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Regression => "regression",
            Self::Survival => "survival",
            Self::Censored => "censored",
        }
    }

    fn training_patients(self) -> usize {
        match self {
            Self::Classification | Self::Regression | Self::Survival => 500,
            Self::Censored => 1_096,
        }
    }

    fn features(self) -> usize {
        match self {
            Self::Classification | Self::Regression | Self::Survival => 10,
            Self::Censored => 39,
        }
    }

    fn measure(self) -> &'static str {
        match self {
            Self::Classification => "misclassified",
            Self::Regression => "mean squared error",
            Self::Survival | Self::Censored => "1 - C",
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"))
        .unwrap_or_else(|| concat!(env!("CARGO_TARGET_TMPDIR"), "/forest_accuracy").to_owned());
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    println!("data sets in {}", folder.display());
    println!("{TEST_PATIENTS} patients to judge, {TREES} trees, {REPEATS} data sets of each kind");
    for kind in Kind::ALL {
        let sets: Vec<Set> = (0..REPEATS)
            .map(|repeat| Set::write(kind, repeat, folder))
            .collect::<Result<_, _>>()?;
        let mut by_default = Vec::new();
        for (repeat, set) in (0..REPEATS).zip(&sets) {
            let found = set.predict(set.rule_by_default(), repeat)?;
            by_default.push(error(set.test.outcome(), &found));
        }
        println!(
            "{}, {}, n = {}, p = {}; ours by our own rule of nodes {:.4}",
            kind.name(),
            kind.measure(),
            kind.training_patients(),
            kind.features(),
            mean(&by_default)
        );
        for peer in Peer::ALL {
            let name = peer.name();
            let path = |repeat: u64| folder.join(format!("{name}.{}.{repeat}.csv", kind.name()));
            if !path(0).exists() {
                println!("  {name}: has not written its predictions yet");
                continue;
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (repeat, set) in (0..REPEATS).zip(&sets) {
                let outcome = set.test.outcome();
                ours.push(error(outcome, &set.predict(peer.rule(kind), repeat)?));
                theirs.push(error(outcome, &predictions(&path(repeat))?));
            }
            println!("  {}", compared(name, &ours, &theirs));
        }
    }
    Ok(())
}

/// The means of our errors and of a peer's, and of ours less theirs on the same patients with its standard error.
fn compared(peer: &str, ours: &[f64], theirs: &[f64]) -> String {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    let (middle, count) = (mean(&differences), differences.len() as f64);
    let square: f64 = differences.iter().map(|one| (one - middle).powi(2)).sum();
    let standard_error = (square / (count - 1.0) / count).sqrt();
    format!(
        "ours {:.4}, {peer} {:.4}; difference {middle:+.4}, standard error {standard_error:.4} ({:+.1} of them)",
        mean(ours),
        mean(theirs),
        middle / standard_error
    )
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

struct Set {
    training: Cohort,
    test: Cohort,
}

impl Set {
    /// Makes a data set and writes both parts for the peers.
    fn write(kind: Kind, repeat: u64, folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let made = Self {
            training: cohort(kind, repeat, "training", kind.training_patients())?,
            test: cohort(kind, repeat, "test", TEST_PATIENTS)?,
        };
        for (part, cohort) in [("training", &made.training), ("test", &made.test)] {
            let path = folder.join(format!("{}.{repeat}.{part}.csv", kind.name()));
            fs::write(path, table(cohort)?)?;
        }
        Ok(made)
    }

    fn rule_by_default(&self) -> NodeRule {
        let settings = Settings::for_outcome(self.training.outcome());
        NodeRule {
            node_size: settings.node_size,
            terminal_min: settings.terminal_min,
        }
    }

    /// What our forest predicts of the test patients: a class's code, a mean, or a risk.
    fn predict(&self, rule: NodeRule, repeat: u64) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
        let settings = Settings {
            trees: TREES,
            features_per_split: FeaturesPerSplit::SquareRoot,
            node_size: rule.node_size,
            terminal_min: rule.terminal_min,
            ..Settings::for_outcome(self.training.outcome())
        };
        let grown = grow(&self.training, &settings, Seed(repeat))?;
        Ok(match grown.forest.predict(self.test.columns())? {
            Prediction::Numeric(means) => means.to_vec(),
            Prediction::Classes(shares) => shares.outer_iter().map(largest).collect(),
            Prediction::CumulativeHazard(hazards) => {
                hazards.outer_iter().map(|hazard| hazard.sum()).collect()
            }
        })
    }
}

fn largest(shares: ArrayView1<f64>) -> f64 {
    let best = (0..shares.len()).fold(0, |best, class| {
        if shares[class] > shares[best] {
            class
        } else {
            best
        }
    });
    best as f64
}

/// Friedman's first function of uniform features: its value with noise, the class that it lies in, or
/// the logarithm of an exponential time's rate, censored by another time.
fn cohort(
    kind: Kind,
    repeat: u64,
    part: &str,
    patients: usize,
) -> Result<Cohort, Box<dyn std::error::Error>> {
    let mut stream = Seed(repeat).stream(&format!("{} {part}", kind.name()), 0);
    let shape = (patients, kind.features());
    let x = Array2::from_shape_simple_fn(shape, || stream.random::<f64>());
    if matches!(kind, Kind::Censored) {
        return censored(x, &mut stream);
    }
    let signal = |row: ArrayView1<f64>| {
        10.0 * (std::f64::consts::PI * row[0] * row[1]).sin()
            + 20.0 * (row[2] - 0.5).powi(2)
            + 10.0 * row[3]
            + 5.0 * row[4]
    };
    let signals: Array1<f64> = x.outer_iter().map(signal).collect();
    let mut noisy = || {
        signals.mapv(|signal| {
            let noise: f64 = StandardNormal.sample(&mut stream);
            signal + noise
        })
    };
    let outcome = match kind {
        Kind::Regression => Outcome::Numeric(noisy()),
        Kind::Classification => Outcome::Classes {
            codes: noisy().mapv(|value| CLASS_BOUNDS.iter().map(|b| u32::from(value > *b)).sum()),
            levels: ["0", "1", "2"].map(str::to_owned).to_vec(),
        },
        Kind::Survival | Kind::Censored => {
            let mut waited = |rate: f64| -> f64 {
                let time: f64 = Exp1.sample(&mut stream);
                time / rate
            };
            let both: Vec<[f64; 2]> = signals
                .iter()
                .map(|signal| [waited((0.25 * (signal - 14.4)).exp()), waited(0.5)])
                .collect();
            Outcome::Survival {
                time: both.iter().map(|[event, end]| event.min(*end)).collect(),
                event: both.iter().map(|[event, end]| event <= end).collect(),
            }
        }
    };
    Ok(Cohort::new(columns(&x), outcome)?)
}

fn columns(x: &Array2<f64>) -> Vec<Column> {
    let columns = x.columns().into_iter().enumerate();
    columns
        .map(|(number, values)| Column {
            name: format!("x{number}"),
            values: Values::Numeric(values.to_owned()),
        })
        .collect()
}

/// One patient of seven has an event: feature k is yes for 5 to 50 % of the patients, every fifth of them changes the
/// logarithm of an exponential time's rate, and follow-up ends between 0 and 1,500 days.
fn censored(
    mut x: Array2<f64>,
    stream: &mut ChaCha8Rng,
) -> Result<Cohort, Box<dyn std::error::Error>> {
    const EFFECTS: [f64; 8] = [0.9, -0.8, 0.7, 0.6, -0.6, 0.5, 0.5, -0.4];
    const RATE: f64 = 0.19;
    const DAYS: f64 = 1_500.0;
    let last = (x.ncols() - 1) as f64;
    for (feature, mut values) in x.columns_mut().into_iter().enumerate() {
        let share = 0.05 + 0.45 * feature as f64 / last;
        values.mapv_inplace(|drawn| f64::from(u8::from(drawn < share)));
    }
    let (mut times, mut events) = (Vec::new(), Vec::new());
    for row in x.outer_iter() {
        let effects = EFFECTS.iter().zip(row.iter().skip(3).step_by(5));
        let effect: f64 = effects.map(|(effect, value)| effect * value).sum();
        let drawn: f64 = Exp1.sample(stream);
        let (event, end) = (drawn / (RATE * effect.exp()), stream.random::<f64>());
        times.push((event.min(end) * DAYS).ceil());
        events.push(event <= end);
    }
    let outcome = Outcome::Survival {
        time: times.into(),
        event: events.into(),
    };
    Ok(Cohort::new(columns(&x), outcome)?)
}

/// CSV: the features, then `y`, or `time` and `event`.
fn table(cohort: &Cohort) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for column in cohort.columns() {
        write!(text, "{},", column.name)?;
    }
    text += match cohort.outcome() {
        Outcome::Survival { .. } => "time,event\n",
        _ => "y\n",
    };
    for patient in 0..cohort.patients() {
        for column in cohort.columns() {
            if let Values::Numeric(values) = &column.values {
                write!(text, "{},", values[patient])?;
            }
        }
        match cohort.outcome() {
            Outcome::Numeric(values) => writeln!(text, "{}", values[patient])?,
            Outcome::Classes { codes, .. } => writeln!(text, "{}", codes[patient])?,
            Outcome::Survival { time, event } => {
                writeln!(text, "{},{}", time[patient], u8::from(event[patient]))?;
            }
        }
    }
    Ok(text)
}

/// One number a line: a class's code, a mean, or a risk.
fn predictions(path: &Path) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let text = fs::read_to_string(path)?;
    let found: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
    if found.len() != TEST_PATIENTS {
        let found = found.len();
        return Err(format!("{} has {found} lines", path.display()).into());
    }
    Ok(found)
}

/// The same rule for all programs; survival by comparing every pair.
fn error(outcome: &Outcome, found: &[f64]) -> f64 {
    match outcome {
        Outcome::Numeric(wanted) => {
            let squares = wanted.iter().zip(found).map(|(a, b)| (a - b).powi(2));
            mean(&squares.collect::<Vec<_>>())
        }
        Outcome::Classes { codes, .. } => {
            let wrong = codes.iter().zip(found).map(|(code, found)| {
                let right = (f64::from(*code) - found).abs() < 0.5;
                f64::from(u8::from(!right))
            });
            mean(&wrong.collect::<Vec<_>>())
        }
        Outcome::Survival { time, event } => {
            let (mut pairs, mut discordant) = (0.0, 0.0);
            for early in (0..time.len()).filter(|early| event[*early]) {
                for late in (0..time.len()).filter(|late| time[*late] > time[early]) {
                    pairs += 1.0;
                    discordant += match found[early].total_cmp(&found[late]) {
                        std::cmp::Ordering::Less => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Greater => 0.0,
                    };
                }
            }
            discordant / pairs
        }
    }
}
