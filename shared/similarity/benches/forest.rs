//! Times forests, proximities and neighbours, and prints a table.
//!
//! `cargo bench -p similarity --bench forest -- [FOLDER [train|proximity|neighbours|unseen|large]...]` writes each
//! data set to FOLDER (where absent, under the target folder), where the scripts in `peers/` read the same numbers. Set `RAYON_NUM_THREADS` to the
//! threads that the peers get.

use std::fs;
use std::path::Path;
use std::time::Instant;

use ndarray::Array1;
use rand::RngExt;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::compare::proximity::kernel::{Kernel, OutOfBag, Training};
use similarity::compare::{Comparison, Proximity};
use similarity::judge::error::{Measure, prediction_error};
use similarity::learn::forest::{FeaturesPerSplit, Grown, Sampling, Settings, grow};
use similarity::numeric::seed::Seed;
use similarity::uses::nearest::nearest;
use similarity::uses::prediction::{KernelOf, PredictionError};

/// One data set: Friedman's first function of uniform features, with noise.
struct Shape {
    name: &'static str,
    patients: usize,
    features: usize,
    repeats: usize,
}

const TRAINING: [Shape; 2] = [
    Shape {
        name: "2000x20",
        patients: 2_000,
        features: 20,
        repeats: 3,
    },
    Shape {
        name: "10000x50",
        patients: 10_000,
        features: 50,
        repeats: 1,
    },
];
const LARGE: Shape = Shape {
    name: "100000x50",
    patients: 100_000,
    features: 50,
    repeats: 1,
};
const NEIGHBOURS: Shape = Shape {
    name: "200000x20",
    patients: 200_000,
    features: 20,
    repeats: 1,
};
const UNSEEN: Shape = Shape {
    name: "5000x20",
    patients: 5_000,
    features: 20,
    repeats: 1,
};
const TEST_PATIENTS: usize = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let beside = concat!(env!("CARGO_TARGET_TMPDIR"), "/forest").to_owned();
    let folder = Path::new(arguments.first().unwrap_or(&beside));
    fs::create_dir_all(folder)?;
    let asked = |part: &str| arguments.len() <= 1 || arguments.iter().any(|word| word == part);
    let mut table = format!("data sets in {}\n", folder.display());
    table += "work                          seconds  processor   note\n";
    if asked("train") {
        for shape in &TRAINING {
            table += &train(shape, folder)?;
        }
    }
    if asked("large") {
        table += &train(&LARGE, folder)?;
    }
    if asked("proximity") {
        table += &proximity(folder)?;
    }
    if asked("neighbours") {
        table += &neighbours()?;
    }
    if asked("unseen") {
        table += &unseen()?;
    }
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    {
        print!("{table}");
    }
    Ok(())
}

fn cohort(
    shape: &Shape,
    part: &str,
    patients: usize,
) -> Result<Cohort, Box<dyn std::error::Error>> {
    let mut stream = Seed(1).stream(&format!("{} {part}", shape.name), 0);
    let features: Vec<Array1<f64>> = (0..shape.features)
        .map(|_| Array1::from_shape_fn(patients, |_| stream.random::<f64>()))
        .collect();
    let outcome = Array1::from_shape_fn(patients, |patient| {
        let x = |feature: usize| features[feature][patient];
        let noise = (0..12).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0;
        10.0 * (std::f64::consts::PI * x(0) * x(1)).sin()
            + 20.0 * (x(2) - 0.5).powi(2)
            + 10.0 * x(3)
            + 5.0 * x(4)
            + noise
    });
    let columns = features
        .into_iter()
        .enumerate()
        .map(|(number, values)| Column {
            name: format!("x{number}"),
            values: Values::Numeric(values),
        })
        .collect();
    Ok(Cohort::new(columns, Outcome::Numeric(outcome))?)
}

/// Columns one after the other, the outcome last, as little-endian f64.
fn write(cohort: &Cohort, path: &Path) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let outcome = match cohort.outcome() {
        Outcome::Numeric(outcome) => Some(outcome),
        _ => None,
    };
    let columns = cohort
        .columns()
        .iter()
        .filter_map(|column| match &column.values {
            Values::Numeric(values) => Some(values),
            Values::Categorical { .. } => None,
        });
    for values in columns.chain(outcome) {
        values
            .iter()
            .for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    fs::write(path, bytes)
}

/// What a piece of work took.
struct Taken {
    /// By the clock on the wall, s.
    wall: f64,
    /// By all threads together, s; what to compare on a machine shared with others.
    processor: f64,
}

/// The median run of several, by the wall.
fn timed<T>(repeats: usize, mut work: impl FnMut() -> T) -> (Taken, T) {
    let mut taken = Vec::new();
    loop {
        let (start, before) = (Instant::now(), processor_seconds());
        let answer = work();
        let wall = start.elapsed().as_secs_f64();
        taken.push(Taken {
            wall,
            processor: processor_seconds() - before,
        });
        if taken.len() == repeats {
            taken.sort_by(|a, b| a.wall.total_cmp(&b.wall));
            return (taken.swap_remove(repeats / 2), answer);
        }
    }
}

/// User and system time of this process so far, s; NaN where the system does not tell.
fn processor_seconds() -> f64 {
    // Fields 14 and 15 of proc(5), in hundredths; the name before them may hold spaces.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Option<f64> = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<f64>().ok())
        .sum();
    ticks.map_or(f64::NAN, |ticks| ticks / 100.0)
}

fn line(name: &str, taken: &Taken, note: &str) -> String {
    format!(
        "{name:<28} {:>8.3}  {:>9.2}   {note}\n",
        taken.wall, taken.processor
    )
}

fn train(shape: &Shape, folder: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let training = cohort(shape, "training", shape.patients)?;
    let test = cohort(shape, "test", TEST_PATIENTS)?;
    write(
        &training,
        &folder.join(format!("{}.training.f64", shape.name)),
    )?;
    write(&test, &folder.join(format!("{}.test.f64", shape.name)))?;
    let mut lines = String::new();
    // ranger's rule and scikit-learn's differ: nodes of 5 copies, and single patients.
    for node_size in [5, 1] {
        let settings = Settings {
            node_size,
            ..Settings::for_outcome(training.outcome())
        };
        let (taken, grown) = timed(shape.repeats, || grow(&training, &settings, Seed(1)));
        let prediction = grown?.forest.predict(test.columns())?;
        let error = prediction_error(&prediction, test.outcome()).map(|error| error.measure);
        let Some(Measure::Numeric { mean_squared }) = error else {
            return Err("no error".into());
        };
        let name = format!("train {} node {node_size}", shape.name);
        lines += &line(&name, &taken, &format!("test MSE {mean_squared:.4}"));
    }
    Ok(lines)
}

fn grown(shape: &Shape, trees: usize) -> Result<(Cohort, Grown), Box<dyn std::error::Error>> {
    let training = cohort(shape, "training", shape.patients)?;
    let settings = Settings {
        trees,
        features_per_split: FeaturesPerSplit::SquareRoot,
        sampling: Sampling::Bootstrap,
        ..Settings::for_outcome(training.outcome())
    };
    let grown = grow(&training, &settings, Seed(1))?;
    Ok((training, grown))
}

/// Writes the terminal nodes too, tree by tree as little-endian u32, so that a peer works on the same.
fn proximity(folder: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let (training, grown) = grown(&TRAINING[1], 500)?;
    let nodes = grown.forest.apply(training.columns())?;
    let of_trees = (0..nodes.trees()).flat_map(|tree| nodes.of_tree(tree));
    let bytes: Vec<u8> = of_trees.flat_map(|node| node.to_le_bytes()).collect();
    fs::write(folder.join("10000x50.terminals.u32"), bytes)?;
    let source = Training {
        forest: &grown.forest,
        in_bag: &grown.in_bag,
        nodes: &nodes,
    };
    let mut lines = String::new();
    for (name, kernel) in [
        ("proximity", Kernel::Proximity),
        ("RF-GAP", Kernel::Gap),
        ("KeRF", Kernel::Kerf),
        ("out-of-bag", Kernel::OutOfBag),
    ] {
        let (taken, matrix) = timed(3, || kernel.square(source));
        let name = format!("{name} n=10000 T=500");
        lines += &line(&name, &taken, &format!("corner {:.4}", matrix?[(0, 0)]));
    }
    Ok(lines)
}

fn neighbours() -> Result<String, Box<dyn std::error::Error>> {
    let (training, grown) = grown(&NEIGHBOURS, 500)?;
    let (applied, nodes) = timed(1, || grown.forest.apply(training.columns()));
    let nodes = nodes?;
    let (taken, found) = timed(1, || nearest(&nodes, 10));
    let listed: usize = found?.iter().map(|nearest| nearest.neighbours.len()).sum();
    let note = format!("{listed} neighbours");
    Ok(line("apply n=200000 T=500", &applied, "") + &line("top-10 n=200000 T=500", &taken, &note))
}

/// Kernels of 5,000 patients with 500 of them and with 4,000, by the trees that have not seen each: in blocks, as predictions ask for
/// them.
fn unseen() -> Result<String, Box<dyn std::error::Error>> {
    let (training, grown) = grown(&UNSEEN, 500)?;
    let bags = Some(OutOfBag::new(&grown.in_bag));
    let comparison = Comparison::Proximity(Proximity::new(grown.forest, bags)?);
    let placed = comparison.place_cohort(training.columns())?;
    let mut lines = String::new();
    for (known, block) in [(500, 1_024), (4_000, 256)] {
        let columns = placed.select(&(0..known).collect::<Vec<usize>>());
        let blocks = (0..UNSEEN.patients).step_by(block);
        let blocks: Vec<_> = blocks
            .map(|first| {
                let rows = first..UNSEEN.patients.min(first + block);
                placed.select(&rows.collect::<Vec<usize>>())
            })
            .collect();
        for (name, kernel) in [
            ("proximity", Kernel::Proximity),
            ("KeRF", Kernel::Kerf),
            ("path", Kernel::Path),
        ] {
            if kernel == Kernel::Path && known > 500 {
                continue;
            }
            let of = KernelOf::new(&comparison, kernel)?;
            let (taken, sum) = timed(if kernel == Kernel::Path { 1 } else { 3 }, || {
                let with = of.with(&columns)?;
                let sums = blocks.iter().map(|rows| Ok(with.raw(rows)?.sum()));
                sums.sum::<Result<f64, PredictionError>>()
            });
            let name = format!("{name} 5000 with {known}");
            lines += &line(&name, &taken, &format!("sum {:.6}", sum?));
        }
    }
    Ok(lines)
}
