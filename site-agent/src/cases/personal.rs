//! `personal`: the run's metric, moved towards the site's own patients, and whether that serves them better.

use super::left::Left;
use super::record::{Learned, LearnedMetric, PERSONAL, Record};
use super::shown::{four, table};
use super::{CasesError, printed};
use crate::cli;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use protocol::cohort::CohortSpecification;
use protocol::method::Method;
use protocol::method::unpsl::settings::UnpslSettings;
use report::{About, Column, CsvTable, Part, Shares};
use serde::Serialize;
use similarity::cohort::Outcome;
use similarity::cohort::standardise::Standardisation;
use similarity::learn::unpsl::personal::{Judged, Personal, Way, personalise, sample};
use similarity::learn::unpsl::selection::{Classified, Search};
use similarity::learn::unpsl::{Pairs, PooledLimits, Settings};
use similarity::numeric::portable::dot;
use similarity::numeric::seed::Seed;
use std::io;

/// The page beside the run's other results.
const PAGE: &str = "personal.html";
/// Features that a table has.
const LISTED_MAX: usize = 12;
/// Standard errors from which a gain is more than chance.
const SURE: f64 = 2.0;
/// Patients that are learned from and judged at most: so many say what a metric of a few dozen features can be.
const PATIENTS_MAX: usize = 2_000;
/// Patients, all pairs of which are learned from.
const ALL_PAIRS_MAX: usize = 400;
/// Partners of a patient in the pairs of whoever is learned from, at most.
const PARTNERS_MAX: usize = 100;
/// The metric of the site's data alone needs no last digit: it is only judged.
const ALONE: PooledLimits = PooledLimits {
    tolerance: 1e-3,
    iterations: 300,
};

/// What is reported.
#[derive(Debug, Serialize)]
struct Answer {
    patients: usize,
    neighbours: u32,
    folds: u32,
    remarks: Vec<String>,
    /// The answer in a sentence.
    sentence: String,
    /// rho of (4.21).
    penalty: f64,
    /// How much more often the personal metric is right than the common one.
    gain: f64,
    standard_error: f64,
    /// Whether the gain is more than its standard error.
    is_better: bool,
    ways: Vec<OneWay>,
    features: Vec<OneFeature>,
    /// Where the metric was written.
    file: String,
}

#[derive(Debug, Serialize)]
struct OneWay {
    way: &'static str,
    right: u64,
    wrong: u64,
    accuracy: Option<f64>,
}

/// How much a feature counts: the length of its row.
#[derive(Debug, Serialize)]
struct OneFeature {
    feature: String,
    common: f64,
    personal: f64,
}

/// Learns and judges the metric, keeps it beside what the run left, and gives what is to be printed.
///
/// # Errors
/// [`CasesError`].
pub fn personal(arguments: &cli::Personal) -> Result<String, CasesError> {
    let left = Left::open(&arguments.of)?;
    let Method::Unpsl(settings) = &left.job.method else {
        return Err(CasesError::NoMetric("is of another method"));
    };
    let Learned::Metric(metric) = &left.record.learned else {
        return Err(CasesError::NoMetric("left none"));
    };
    let common = metric.matrix().filter(|matrix| !matrix.is_empty());
    let common = common.ok_or(CasesError::NoMetric("left none that can be read"))?;
    if common.iter().all(|entry| *entry == 0.0) {
        return Err(CasesError::NoMetric("found an empty one"));
    }
    let Outcome::Classes { codes, levels } = left.cohort.outcome() else {
        return Err(CasesError::NoMetric("has no classes"));
    };
    let standardisation = metric.standardisation()?;
    let rows = sample(codes.len(), PATIENTS_MAX, Seed(arguments.seed));
    let matrix = standardisation.apply(&left.cohort)?.select(Axis(0), &rows);
    let codes = &codes.select(Axis(0), &rows);
    let classified = Classified {
        patients: matrix.view(),
        classes: codes,
    };
    let neighbours = arguments.k.unwrap_or(metric.chosen(settings).neighbours);
    let most = codes.len() - codes.len().div_ceil(arguments.folds as usize);
    if neighbours as usize > most {
        return Err(CasesError::TooMany {
            found: neighbours as usize,
            most,
        });
    }
    let search = search(settings, metric, codes.len(), Seed(arguments.seed));
    let found = personalise(
        &classified,
        &common,
        &search,
        arguments.folds as usize,
        neighbours as usize,
    )?;
    let record = record(&left, &standardisation, metric, settings, &found);
    let file = keep(&left, PERSONAL, record.to_bytes())?;
    let mut remarks = left.remarks.clone();
    remarks.extend(said(&found, codes, left.cohort.patients()));
    let answer = Answer {
        patients: codes.len(),
        neighbours,
        folds: arguments.folds,
        remarks,
        sentence: sentence(&found),
        penalty: found.penalty,
        gain: found.gain().difference,
        standard_error: found.gain().standard_error,
        is_better: found.is_better(),
        ways: ways(&found, codes, levels.len()),
        features: features(&left.job.cohort, &standardisation, &common, &found.metric),
        file,
    };
    keep(&left, PAGE, Ok(page(&left.job.name, &answer).into_bytes()))?;
    let csv = || csv(&answer);
    printed(&arguments.output, &answer, csv, || text(&answer))
}

fn search(settings: &UnpslSettings, metric: &LearnedMetric, patients: usize, seed: Seed) -> Search {
    let chosen = metric.chosen(settings);
    Search {
        settings: Settings {
            form: chosen.form,
            pairs: match settings.objective.pairs {
                Pairs::All if patients <= ALL_PAIRS_MAX => Pairs::All,
                Pairs::All => Pairs::PerPatient(PARTNERS_MAX),
                Pairs::PerPatient(partners) => Pairs::PerPatient(partners.min(PARTNERS_MAX)),
            },
            ..settings.objective
        },
        rule: chosen.rule,
        limits: ALONE,
        seed,
    }
}

/// The metric, to compare by.
fn record(
    left: &Left,
    standardisation: &Standardisation,
    metric: &LearnedMetric,
    settings: &UnpslSettings,
    found: &Personal,
) -> Record {
    let own = LearnedMetric::new(standardisation, &found.metric, metric.chosen(settings));
    Record {
        learned: Learned::Metric(own),
        ..left.record.clone()
    }
}

/// Writes a file beside what the run left.
fn keep(left: &Left, name: &str, bytes: io::Result<Vec<u8>>) -> Result<String, CasesError> {
    let path = left.folder.join(name);
    let written = bytes.and_then(|bytes| wire::private::replace(&path, &bytes));
    written.map_err(|source| CasesError::Write {
        path: path.clone(),
        source,
    })?;
    Ok(path.display().to_string())
}

fn sentence(found: &Personal) -> String {
    let accuracy = |way| {
        let accuracy = found.of(way).counts().accuracy();
        accuracy.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
    };
    let gain = found.gain();
    let (difference, error) = (100.0 * gain.difference, 100.0 * gain.standard_error);
    let (own, common) = (accuracy(Way::Personal), accuracy(Way::Common));
    let beside = format!(
        "accuracy {own} on held-out patients, compared with {common} (difference {difference:+.1} percentage points, standard \
         error {error:.1})"
    );
    if gain.difference > SURE * gain.standard_error {
        return format!(
            "A metric of this site's own serves its patients better than the common one: {beside}. Use `--by personal`."
        );
    }
    match found.is_better() {
        true => format!(
            "A metric of this site's own may serve its patients slightly better than the common one: {beside}. Use \
             `--by personal`."
        ),
        false => format!(
            "The common metric serves this site's patients as well as one of their own: that has {beside}. Keep the common one."
        ),
    }
}

/// What is to be known beside: of how many, and whether learning has served at all.
fn said(found: &Personal, codes: &Array1<u32>, patients: usize) -> Vec<String> {
    let mut said = Vec::new();
    if codes.len() < patients {
        said.push(format!(
            "learned from and judged by {} of the {patients} patients, drawn by the seed",
            codes.len()
        ));
    }
    let best = match found.is_better() {
        true => Way::Personal,
        false => Way::Common,
    };
    let largest = (0..=codes.iter().copied().max().unwrap_or(0))
        .max_by_key(|class| codes.iter().filter(|code| *code == class).count());
    let majority = Judged {
        way: Way::Plain,
        right: codes.iter().map(|code| Some(*code) == largest).collect(),
    };
    for (other, name) in [
        (&majority, "the majority class"),
        (found.of(Way::Plain), "Euclidean distance"),
    ] {
        let gain = found.of(best).gain(other);
        if gain.difference <= gain.standard_error {
            said.push(format!(
                "no metric is more accurate than {name} by more than the standard error: a learned one adds little for these \
                 patients"
            ));
        }
    }
    said
}

/// All ways, and before them what is right for whoever takes everybody for the largest class.
fn ways(found: &Personal, codes: &Array1<u32>, classes: usize) -> Vec<OneWay> {
    let one = |judged: &Judged| {
        let counts = judged.counts();
        OneWay {
            way: match judged.way {
                Way::Plain => "Euclidean distance",
                Way::Alone => "own data alone",
                Way::Common => "common metric",
                Way::Personal => "personal metric",
            },
            right: counts.right,
            wrong: counts.wrong,
            accuracy: counts.accuracy(),
        }
    };
    let of_class = |class| codes.iter().filter(|code| **code as usize == class).count() as u64;
    let largest = (0..classes).map(of_class).max().unwrap_or(0);
    let all = codes.len() as u64;
    let majority = OneWay {
        way: "largest class",
        right: largest,
        wrong: all - largest,
        accuracy: Some(largest as f64 / all as f64),
    };
    let judged = found.judged.iter().map(one);
    std::iter::once(majority).chain(judged).collect()
}

/// The features, those first that count most in either.
fn features(
    cohort: &CohortSpecification,
    standardisation: &Standardisation,
    common: &Array2<f64>,
    personal: &Array2<f64>,
) -> Vec<OneFeature> {
    let length = |row: ArrayView1<'_, f64>| dot(&row, &row).sqrt();
    let rows = standardisation.rows().iter();
    let both = common.outer_iter().zip(personal.outer_iter());
    let one = |(row, (common, personal)): (&similarity::cohort::standardise::MatrixRow, _)| {
        let (common, personal): (ArrayView1<'_, f64>, ArrayView1<'_, f64>) = (common, personal);
        OneFeature {
            feature: cohort.label_of_row(row.name()),
            common: length(common),
            personal: length(personal),
        }
    };
    let mut features: Vec<OneFeature> = rows.zip(both).map(one).collect();
    let weight = |one: &OneFeature| one.common.max(one.personal);
    features.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    features
}

/// The same as a page.
fn page(job: &str, answer: &Answer) -> String {
    let mut sentences = vec![answer.sentence.clone(), judged(answer)];
    let remarks = answer.remarks.iter();
    sentences.extend(remarks.map(|remark| report::as_sentence(remark)));
    let way = |one: &OneWay| {
        let share = one.accuracy.unwrap_or(0.0);
        (one.way.to_owned(), share, four(share))
    };
    let longest = answer.features.iter().map(|one| one.personal);
    let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
    let feature = |one: &OneFeature| {
        let beside = format!("{} ({})", four(one.personal), four(one.common));
        (one.feature.clone(), one.personal / longest, beside)
    };
    let parts = [
        Shares {
            title: "How often each is right",
            bars: answer.ways.iter().map(way).collect(),
            caption: "Held-out patients whose class most of their nearest have.".to_owned(),
        },
        Shares {
            title: "What counts for this site",
            bars: answer.features.iter().map(feature).collect(),
            caption: "How much each feature weighs in the personal metric, and in brackets in the common one.".to_owned(),
        },
    ];
    report::sheet(
        &format!("{job}: a metric of this site's own"),
        &sentences,
        &parts.map(Part::Shares),
    )
}

/// How the figures came about.
fn judged(answer: &Answer) -> String {
    format!(
        "Every patient is classified by the {} nearest in the {} other parts of {}, under what was learned from those; the common metric, \
         and with it the personal one, has seen them all in the run.",
        answer.neighbours,
        answer.folds - 1,
        answer.folds
    )
}

fn text(answer: &Answer) -> String {
    let mut text = format!("{}\n\n", answer.sentence);
    let header = ["by", "right", "of", "accuracy"]
        .map(str::to_owned)
        .to_vec();
    let line = |one: &OneWay| {
        vec![
            one.way.to_owned(),
            one.right.to_string(),
            (one.right + one.wrong).to_string(),
            one.accuracy.map_or_else(|| "-".to_owned(), four),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(header)
        .chain(answer.ways.iter().map(line))
        .collect();
    text.push_str(&table(&rows, &[0]));
    let header = ["feature", "common", "personal"]
        .map(str::to_owned)
        .to_vec();
    let listed = answer.features.iter().take(LISTED_MAX);
    let line = |one: &OneFeature| vec![one.feature.clone(), four(one.common), four(one.personal)];
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(listed.map(line)).collect();
    text.push_str(&format!("\n{}", table(&rows, &[0])));
    let unlisted = answer.features.len().saturating_sub(LISTED_MAX);
    if unlisted > 0 {
        text.push_str(&format!("and {unlisted} that count less\n"));
    }
    text.push_str(&format!("\nnote: {}\n", judged(answer)));
    for remark in &answer.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    text.push_str(&format!("personal metric: {}", answer.file));
    text
}

fn csv(answer: &Answer) -> io::Result<CsvTable> {
    let columns = [
        Column::text("feature", "feature, feature=level or feature=missing"),
        Column::number("common", "its weight in the common metric"),
        Column::number("personal", "its weight in the site's own"),
    ];
    let title = "Weights of both metrics: a row per feature";
    let mut table = CsvTable::new(title, About::Course, &columns)?;
    for one in &answer.features {
        table.row([
            one.feature.clone(),
            one.common.to_string(),
            one.personal.to_string(),
        ])?;
    }
    Ok(table)
}
