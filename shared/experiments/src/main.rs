//! `kindred-experiments`: the papers' tables and figures, one command each.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use kindred_experiments::{
    DataSet, ExperimentError, Figure, Function, Kind, Method, Sheet, StudySettings, Table1Settings,
    Table2Settings, figure_2, figure_3, study, table_1, table_2, write_files,
};
use similarity::numeric::seed::Seed;

/// The experiments of the UnPSL paper (Huai et al. 2018), and of a study of random forest kernels, in one process on public data.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Classification of Parkinson's, colon and leukaemia by nearest neighbours, UnPSL and baselines.
    #[command(name = "table-1")]
    Table1 {
        #[command(flatten)]
        data: Data,
        /// Write table-1.md and table-1.csv here, too.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// One data set alone.
        #[arg(long)]
        only: Option<Only>,
        /// Random splits of Parkinson's, of each kind.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        repeats: u64,
        /// Leave out the first so many colon samples only.
        #[arg(long, value_name = "SAMPLES", value_parser = positive)]
        left_out: Option<usize>,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        random: Random,
    },
    /// Pairs of synthetic patients, similar or not, by UnPSL and baselines.
    #[command(name = "table-2")]
    Table2 {
        /// Write table-2.md and table-2.csv here, too.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// One d alone: 20, 40 or 60 in the paper.
        #[arg(long, value_name = "D", value_parser = positive)]
        only: Option<usize>,
        /// Data sets of each d.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        repeats: u64,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        random: Random,
    },
    /// Primal residual of Algorithm 1 on Parkinson's: figure-2.svg and figure-2.csv.
    #[command(name = "figure-2")]
    Figure2(FigureArguments),
    /// Distance of federated runs to the pooled one: figure-3.svg and figure-3.csv.
    #[command(name = "figure-3")]
    Figure3(FigureArguments),
    /// Random forest kernels (Feng and Baumgartner 2020): forest, its kernel, Laplace's and ours, beside the paper's means.
    ///
    /// Writes study.csv after every few data sets, and goes on where it was cut off; at the end study.md and a figure of boxes for each
    /// function.
    Study(StudyArguments),
}

#[derive(Args)]
struct StudyArguments {
    /// Write tables and figures here, and read what an earlier study left.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Folder with california_housing.csv.gz, gbsg2.csv and iris.csv: real data, too.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// One function alone; as-printed ones are not among the usual five.
    #[arg(long, value_name = "NAME", value_parser = function)]
    only: Option<Function>,
    /// One kind of outcome alone: number, class or survival.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    outcome: Option<Kind>,
    /// One size alone, as PATIENTSxFEATURES, of at least 20 features.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<[usize; 2]>,
    /// Data sets of each setting.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: u64,
    #[command(flatten)]
    random: Random,
}

#[derive(Args)]
struct FigureArguments {
    #[command(flatten)]
    data: Data,
    /// Write the figure and its numbers here.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    random: Random,
}

#[derive(Args)]
struct Data {
    /// Folder with parkinsons.csv, colon.csv, leukemia_train.csv.gz and leukemia_test.csv.gz.
    #[arg(long = "data", value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args)]
struct Rows {
    /// One row alone: UnPSL, Euclidean, ...
    #[arg(long, value_name = "NAME", value_parser = method)]
    method: Option<Method>,
}

impl Rows {
    fn methods(&self) -> Vec<Method> {
        self.method
            .map_or_else(|| Method::ALL.to_vec(), |method| vec![method])
    }
}

#[derive(Args)]
struct Random {
    /// Of splits, folds, starts and drawn pairs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Only {
    Parkinsons,
    Colon,
    Leukaemia,
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "wanted a whole number from 1".to_owned())
}

fn function(text: &str) -> Result<Function, String> {
    let mut all = Function::ALL.into_iter();
    let found = all.find(|function| function.name().eq_ignore_ascii_case(text));
    let names = Function::ALL.map(Function::name).join(", ");
    found.ok_or_else(|| format!("wanted one of {names}"))
}

fn kind(text: &str) -> Result<Kind, String> {
    let mut all = Kind::ALL.into_iter();
    let found = all.find(|kind| kind.name() == text);
    found.ok_or_else(|| "wanted number, class or survival".to_owned())
}

/// At least 20 of each: functions use the features up to the 20th, and a quarter of the patients are held out.
fn size(text: &str) -> Result<[usize; 2], String> {
    let found = text.split_once('x').and_then(|(patients, features)| {
        let numbers = [patients.parse().ok()?, features.parse().ok()?];
        (numbers[0] >= 100 && numbers[1] >= 20).then_some(numbers)
    });
    found.ok_or_else(|| "wanted PATIENTSxFEATURES, at least 100x20, as in 800x20".to_owned())
}

fn method(text: &str) -> Result<Method, String> {
    let mut all = Method::ALL.into_iter();
    let found = all.find(|method| method.name().eq_ignore_ascii_case(text));
    let names = Method::ALL.map(Method::name).join(", ");
    found.ok_or_else(|| format!("wanted one of {names}"))
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(source) = cause {
                eprintln!("  because: {source}");
                cause = source.source();
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: Command) -> Result<(), ExperimentError> {
    match command {
        Command::Table1 {
            data,
            out,
            only,
            repeats,
            left_out,
            rows,
            random,
        } => {
            let usual = Table1Settings::default();
            let settings = Table1Settings {
                data_sets: only.map_or(usual.data_sets, |only| vec![only.into()]),
                repeats,
                left_out: left_out.unwrap_or(usual.left_out),
                methods: rows.methods(),
                seed: Seed(random.seed),
            };
            show(
                &table_1(&data.folder, &settings)?,
                "table-1",
                out.as_deref(),
            )
        }
        Command::Table2 {
            out,
            only,
            repeats,
            rows,
            random,
        } => {
            let usual = Table2Settings::default();
            let settings = Table2Settings {
                base_features: only.map_or(usual.base_features, |only| vec![only]),
                repeats,
                methods: rows.methods(),
                seed: Seed(random.seed),
            };
            show(&table_2(&settings)?, "table-2", out.as_deref())
        }
        Command::Study(given) => {
            let usual = StudySettings::default();
            let settings = StudySettings {
                functions: given.only.map_or(usual.functions, |only| vec![only]),
                kinds: given.outcome.map_or(usual.kinds, |kind| vec![kind]),
                sizes: given.size.map_or(usual.sizes, |size| vec![size]),
                data: given.data,
                repeats: given.repeats,
                seed: Seed(given.random.seed),
            };
            print(&study(&settings, &given.out)?)
        }
        Command::Figure2(given) => {
            let figure = figure_2(&given.data.folder, Seed(given.random.seed))?;
            write_figure(&figure, "figure-2", &given.out)
        }
        Command::Figure3(given) => {
            let figure = figure_3(&given.data.folder, Seed(given.random.seed))?;
            write_figure(&figure, "figure-3", &given.out)
        }
    }
}

impl From<Only> for DataSet {
    fn from(only: Only) -> Self {
        match only {
            Only::Parkinsons => Self::Parkinsons,
            Only::Colon => Self::Colon,
            Only::Leukaemia => Self::Leukaemia,
        }
    }
}

fn write_figure(figure: &Figure, name: &str, folder: &Path) -> Result<(), ExperimentError> {
    let csv = Sheet::csv(std::slice::from_ref(&figure.numbers));
    let (drawing, table) = (format!("{name}.svg"), format!("{name}.csv"));
    write_files(folder, &[(&drawing, &figure.svg), (&table, &csv)])?;
    eprintln!("wrote {}", folder.join(drawing).display());
    Ok(())
}

/// Markdown on standard output, and both files where a folder is named.
fn show(sheets: &[Sheet], name: &str, out: Option<&Path>) -> Result<(), ExperimentError> {
    if let Some(folder) = out {
        let csv = Sheet::csv(sheets);
        let (page, table) = (format!("{name}.md"), format!("{name}.csv"));
        write_files(folder, &[(&page, &markdown(sheets)), (&table, &csv)])?;
    }
    print(sheets)
}

fn markdown(sheets: &[Sheet]) -> String {
    let texts: Vec<String> = sheets.iter().map(Sheet::markdown).collect();
    texts.join("\n")
}

fn print(sheets: &[Sheet]) -> Result<(), ExperimentError> {
    let path = PathBuf::from("standard output");
    std::io::stdout()
        .write_all(markdown(sheets).as_bytes())
        .map_err(|source| ExperimentError::Write { path, source })
}
