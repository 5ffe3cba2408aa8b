//! Small cohorts for the tests.

use ndarray::{Array1, Array2};
use rand::RngExt;
use serde_json::Value;
use similarity::cohort::{Cohort, Column, MISSING_LEVEL, Outcome, Values};
use similarity::learn::forest::{
    FeaturesPerSplit, Forest, Grown, Sampling, Settings, TerminalNodes, grow,
};
use similarity::numeric::seed::Seed;

pub(crate) fn numeric(name: &str, values: &[f64]) -> Column {
    Column {
        name: name.into(),
        values: Values::Numeric(Array1::from(values.to_vec())),
    }
}

pub(crate) fn categorical(name: &str, codes: &[u32], levels: &[&str]) -> Column {
    Column {
        name: name.into(),
        values: Values::Categorical {
            codes: Array1::from(codes.to_vec()),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        },
    }
}

pub(crate) fn numbers(values: &[f64]) -> Outcome {
    Outcome::Numeric(Array1::from(values.to_vec()))
}

pub(crate) fn classes(codes: &[u32], count: usize) -> Outcome {
    let levels = (0..count).map(|class| format!("class {class}")).collect();
    Outcome::Classes {
        codes: Array1::from(codes.to_vec()),
        levels,
    }
}

pub(crate) fn survival(time: &[f64], event: &[bool]) -> Outcome {
    Outcome::Survival {
        time: Array1::from(time.to_vec()),
        event: Array1::from(event.to_vec()),
    }
}

pub(crate) fn cohort(columns: Vec<Column>, outcome: Outcome) -> Cohort {
    Cohort::new(columns, outcome).unwrap()
}

/// One tree of everybody that sees all features and splits far down.
pub(crate) fn one_full_tree(outcome: &Outcome) -> Settings {
    Settings {
        trees: 1,
        features_per_split: FeaturesPerSplit::All,
        sampling: Sampling::Whole,
        node_size: 1,
        terminal_min: match outcome {
            Outcome::Survival { .. } => 3,
            Outcome::Classes { .. } | Outcome::Numeric(_) => 1,
        },
        ..Settings::for_outcome(outcome)
    }
}

pub(crate) fn grown(cohort: &Cohort, settings: &Settings) -> Grown {
    grow(cohort, settings, Seed(11)).unwrap()
}

/// Mixed columns with missing values, and an outcome of each kind.
pub(crate) struct Mixed {
    pub(crate) columns: Vec<Column>,
    pub(crate) outcomes: [Outcome; 4],
}

pub(crate) fn mixed(patients: usize, seed: u64) -> Mixed {
    let mut stream = Seed(seed).stream("mixed", 0);
    let mut uniform = || Array1::from_shape_fn(patients, |_| stream.random::<f64>());
    let (mut a, b, noise, late, drop) = (uniform(), uniform(), uniform(), uniform(), uniform());
    let score = &a * 3.0 + &b.mapv(|b| (b * 5.0).floor()) + &noise * 0.5;
    a.iter_mut()
        .zip(&drop)
        .filter(|(_, drop)| **drop < 0.1)
        .for_each(|(a, _)| *a = f64::NAN);
    let codes: Vec<u32> = b
        .iter()
        .zip(&drop)
        .map(|(b, &drop)| {
            if drop > 0.93 {
                MISSING_LEVEL
            } else {
                (b * 5.0) as u32
            }
        })
        .collect();
    let columns = vec![
        Column {
            name: "a".into(),
            values: Values::Numeric(a),
        },
        categorical("group", &codes, &["v", "w", "x", "y", "z"]),
        numeric("noise", &late.to_vec()),
    ];
    let class = |count: f64| -> Vec<u32> {
        score
            .iter()
            .map(|score| (score / 8.0 * count).min(count - 1.0) as u32)
            .collect()
    };
    let time: Vec<f64> = score
        .iter()
        .zip(&late)
        .map(|(score, late)| ((8.5 - score) * 10.0 * (0.3 + late)).ceil())
        .collect();
    let event: Vec<bool> = late.iter().map(|&late| late < 0.7).collect();
    let outcomes = [
        Outcome::Numeric(score.clone()),
        classes(&class(2.0), 2),
        classes(&class(3.0), 3),
        survival(&time, &event),
    ];
    Mixed { columns, outcomes }
}

pub(crate) fn reference() -> Value {
    serde_json::from_str(include_str!("../reference/forest.json")).unwrap()
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_f64().unwrap())
        .collect()
}

pub(crate) fn codes(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_u64().unwrap() as u32)
        .collect()
}

/// A JSON list of columns.
pub(crate) fn columns(value: &Value) -> Vec<Column> {
    let list = value.as_array().unwrap().iter().enumerate();
    list.map(|(place, values)| numeric(&format!("x{place}"), &floats(values)))
        .collect()
}

pub(crate) fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(floats).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| {
        rows[row][column]
    })
}

pub(crate) fn nodes(value: &Value) -> TerminalNodes {
    TerminalNodes::new(matrix(value).mapv(|node| node as u32).view())
}

/// Terminal nodes numbered by first appearance.
pub(crate) fn canonical(nodes: &[u32]) -> Vec<u32> {
    let mut seen: Vec<u32> = Vec::new();
    nodes
        .iter()
        .map(|node| {
            let known = seen.iter().position(|other| other == node);
            known.unwrap_or_else(|| {
                seen.push(*node);
                seen.len() - 1
            }) as u32
        })
        .collect()
}

pub(crate) fn levels(forest: &Forest) -> Vec<usize> {
    use similarity::learn::forest::FeatureKind;
    let count = |kind: &FeatureKind| match kind {
        FeatureKind::Numeric => 0,
        FeatureKind::Categorical { levels } => levels.len(),
    };
    forest
        .schema()
        .features
        .iter()
        .map(|feature| count(&feature.kind))
        .collect()
}

/// Runs work on this many threads.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
        .install(work)
}

/// These patients, in this order, with repeats.
pub(crate) fn select(cohort: &Cohort, patients: &[usize]) -> Cohort {
    use ndarray::Axis;
    let columns = cohort.columns().iter().map(|column| {
        let values = match &column.values {
            Values::Numeric(values) => Values::Numeric(values.select(Axis(0), patients)),
            Values::Categorical { codes, levels } => Values::Categorical {
                codes: codes.select(Axis(0), patients),
                levels: levels.clone(),
            },
        };
        Column {
            name: column.name.clone(),
            values,
        }
    });
    let outcome = match cohort.outcome() {
        Outcome::Numeric(values) => Outcome::Numeric(values.select(Axis(0), patients)),
        Outcome::Classes { codes, levels } => Outcome::Classes {
            codes: codes.select(Axis(0), patients),
            levels: levels.clone(),
        },
        Outcome::Survival { time, event } => Outcome::Survival {
            time: time.select(Axis(0), patients),
            event: event.select(Axis(0), patients),
        },
    };
    Cohort::new(columns.collect(), outcome).unwrap()
}
