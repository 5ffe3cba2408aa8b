//! How well predictions hold, as every method counts it: what is right beside what is right without learning, curves, tables.

use crate::figures::FigureError;
use crate::plots::{self, Curve};
use crate::tables::{self, Bar, figure};
use crate::verdict::Verdict;
use crate::words::{self, of_hundred, sites_in_words};
use maud::{Markup, html};
use protocol::assessment::{ErrorMeasure, PAIRS_RULE, in_few_bins};
use protocol::cohort::with_unit;
use protocol::job::Job;
use protocol::result::RunResult;
use protocol::scores::{self, Judged, PooledErrors, PooledTable, Scores};

/// How a method names its rules, and what it says of their counts.
pub(crate) struct Wording {
    /// The heading of the chapter.
    pub(crate) heading: &'static str,
    /// What is counted.
    pub(crate) note: Option<String>,
    /// A rule of so many neighbours.
    pub(crate) rule: fn(&str, u32) -> String,
    /// Which patients are counted, in a few words: in sample, out of bag, or held out.
    pub(crate) on: &'static str,
    /// The same, as the result has them.
    pub(crate) judged: Judged,
}

/// A share that is right by some rule.
pub(crate) struct Right {
    pub(crate) by: String,
    pub(crate) share: f64,
    /// Off by at most this, because counts are rounded.
    pub(crate) within: f64,
}

/// What is right by the rules named in `order`, after what `before` it, beside what always naming the most frequent class is.
pub(crate) fn at_a_glance(
    result: &RunResult,
    wording: &Wording,
    before: Vec<Right>,
    order: &[&str],
) -> Markup {
    let mut all = before;
    all.extend(rights(result, wording, order));
    let pooled = scores::pooled_tables(result, wording.judged);
    let tables: Vec<&PooledTable> = listed(&pooled, order).collect();
    let majority = tables
        .first()
        .and_then(|table| table.counts.confusion.as_ref());
    all.extend(
        majority
            .and_then(|table| scores::majority(table))
            .map(|share| Right {
                by: "majority class".to_owned(),
                share,
                within: 0.0,
            }),
    );
    let bar = |right: &Right| Bar {
        label: right.by.clone(),
        length: right.share,
        value: of_hundred(right.share),
        flag: None,
    };
    let bars: Vec<Bar> = all.iter().map(bar).collect();
    let within = all.iter().map(|right| right.within).fold(0.0, f64::max);
    let caption = match within > 0.0 {
        true => format!(
            "Accuracy. Error counts are published in tens, so it is off by at most {:.1} percentage points.",
            100.0 * within
        ),
        false => "Accuracy.".to_owned(),
    };
    match all.len() {
        0 | 1 => Markup::default(),
        _ => tables::shares("How often it is right", &bars, &caption),
    }
}

/// The pooled tables of the rules named in `order`.
fn listed<'t>(
    pooled: &'t [PooledTable],
    order: &'t [&str],
) -> impl Iterator<Item = &'t PooledTable> {
    let known = |rule: &&str| pooled.iter().find(|table| table.counts.rule == **rule);
    order.iter().filter_map(known)
}

/// What is right by the rules named in `order`.
pub(crate) fn rights(result: &RunResult, wording: &Wording, order: &[&str]) -> Vec<Right> {
    let pooled = scores::pooled_tables(result, wording.judged);
    let right = |scores: Scores| {
        let rule = (wording.rule)(&scores.rule, scores.neighbours);
        Some(Right {
            by: format!("{rule} ({})", wording.on),
            share: scores.accuracy?,
            within: scores.within,
        })
    };
    let scores = listed(&pooled, order).filter_map(PooledTable::scores);
    scores.filter_map(right).collect()
}

/// Curves and tables of classes.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn evaluation(
    result: &RunResult,
    job: &Job,
    wording: &Wording,
) -> Result<Markup, FigureError> {
    let judged = wording.judged;
    let pooled = scores::pooled_tables(result, judged);
    let curves = curves(&pooled, wording)?;
    let classes = job.cohort.outcome.classes();
    let second = classes.last().map_or("", String::as_str);
    let calibration = calibration(&pooled, wording, second)?;
    Ok(html! {
        @if result.pooled.assessment.as_ref().is_some_and(|all| !judged.tables(all).is_empty()) {
            h2 { (wording.heading) }
            @if let Some(note) = &wording.note { p.note { (note) } }
            (figures(&pooled, wording))
            (confusions(&pooled, job, wording))
            (figure(
                "Receiver operating characteristic",
                &curves,
                &format!(
                    "Share of patients whose score is above a border, for every border: upwards of those {second} (sensitivity), \
                     to the right of all others (1 - specificity). Guessing lies on the diagonal."
                ),
            ))
            (figure(
                "Calibration",
                &calibration,
                &format!(
                    "Patients of all sites in bins of the score: the mean score, and the share {second}. On the diagonal the \
                     score is the risk. Error counts are published in tens, so small bins are rough."
                ),
            ))
        }
    })
}

/// The figures of every rule that has a bound for one of them, as `result.json` has them.
fn figures(pooled: &[PooledTable], wording: &Wording) -> Markup {
    let scores: Vec<Scores> = pooled.iter().filter_map(PooledTable::scores).collect();
    let bounded = scores.iter().filter(|one| {
        let bounds = [one.auc_within, one.balanced_within, one.brier_within];
        bounds.iter().any(Option::is_some)
    });
    let bounded: Vec<&Scores> = bounded.collect();
    let most = |within: fn(&Scores) -> Option<f64>| {
        let all = bounded.iter().filter_map(|one| within(one));
        all.fold(0.0, f64::max)
    };
    let [area, balanced, brier] = [
        most(|one| one.auc_within),
        most(|one| one.balanced_within),
        most(|one| one.brier_within),
    ];
    let cell = |figure: Option<f64>| figure.map_or_else(String::new, |one| format!("{one:.3}"));
    let of_area = |one: &Scores| match (one.auc, one.auc_interval) {
        (Some(area), Some([low, high])) => format!("{area:.3} ({low:.3} to {high:.3})"),
        (area, _) => cell(area),
    };
    html! {
        @if !bounded.is_empty() {
            table.wide {
                caption {
                    "Figures of exact sums"
                    @if area.max(balanced).max(brier) > 0.0 {
                        ", rounded so that one patient is at most half a step. AUC is off by at most " (format!("{area:.3}"))
                        ", balanced accuracy by " (format!("{balanced:.3}")) ", Brier score by " (format!("{brier:.4}")) "."
                    } @else { "." }
                }
                thead { tr {
                    th scope="col" { "by" } th scope="col" { "AUC (95 % CI)" }
                    th scope="col" { "balanced accuracy" } th scope="col" { "Brier score" }
                } }
                tbody {
                    @for one in &bounded {
                        tr {
                            th scope="row" { ((wording.rule)(&one.rule, one.neighbours)) }
                            td data-label="AUC (95 % CI)" { (of_area(one)) }
                            td data-label="balanced accuracy" { (cell(one.balanced_accuracy)) }
                            td data-label="Brier score" { (cell(one.brier)) }
                        }
                    }
                }
            }
        }
    }
}

/// The curve of every rule that has a score.
fn curves(pooled: &[PooledTable], wording: &Wording) -> Result<String, FigureError> {
    let curve = |table: &PooledTable| {
        let counts = &table.counts;
        let points = scores::roc(counts.scores.as_deref()?)?;
        let rule = (wording.rule)(&counts.rule, counts.neighbours);
        Some(Curve {
            name: match table.scores()?.auc {
                Some(area) => format!("{rule}: area {area:.2}"),
                None => rule,
            },
            points: points
                .iter()
                .map(|point| (point.false_positive, point.true_positive))
                .collect(),
        })
    };
    let curves: Vec<Curve> = pooled.iter().filter_map(curve).collect();
    plots::shares("1 - specificity", "sensitivity", &curves)
}

/// Of the first rule that has a score: the share of the class that it is of, in every bin.
fn calibration(
    pooled: &[PooledTable],
    wording: &Wording,
    second: &str,
) -> Result<String, FigureError> {
    let mut told = pooled.iter().map(|table| &table.counts);
    let Some(counts) = told.find(|counts| counts.scores.is_some()) else {
        return Ok(String::new());
    };
    let few = counts.scores.as_deref().map(in_few_bins);
    let Some([others, own]) = few.as_deref() else {
        return Ok(String::new());
    };
    let bins = others.iter().zip(own).enumerate();
    let own_bins = own.len();
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    let points = bins.filter_map(|(bin, (others, own))| {
        let all = others + own;
        let score = counts.score_of_bin(bin, own_bins);
        (all > 0).then(|| (score, *own as f64 / all as f64))
    });
    let curve = Curve {
        name: (wording.rule)(&counts.rule, counts.neighbours),
        points: points.collect(),
    };
    plots::shares("score", &format!("share {second}"), &[curve])
}

/// Levels of ink above none that the page's style has.
const SHADES: u64 = 9;

/// The pooled table of each rule as a picture: rows are true classes, columns predicted ones, the darker the more of the row.
fn confusions(pooled: &[PooledTable], job: &Job, wording: &Wording) -> Markup {
    let ours = pooled.iter().filter_map(|table| {
        let counts = &table.counts;
        let classes = match counts.rule.as_str() {
            PAIRS_RULE => vec!["dissimilar".to_owned(), "similar".to_owned()],
            _ => job.cohort.outcome.classes(),
        };
        let cells = counts.confusion.as_ref()?;
        (cells.len() == classes.len()).then_some((counts, cells, table.sites, classes))
    });
    html! {
        @for (counts, cells, sites, classes) in ours {
            table.confusion {
                caption {
                    ((wording.rule)(&counts.rule, counts.neighbours)) ", " (sites_in_words(sites as usize))
                    ": true class by row, predicted by column"
                }
                thead { tr { td {} @for class in &classes { th scope="col" { (class) } } } }
                tbody {
                    @for (class, row) in classes.iter().zip(cells) {
                        tr {
                            th scope="row" { (class) }
                            @for count in row {
                                td data-shade=(shade(*count, row)) { (count) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A level of the page's style: light enough for the figure on it to be read.
fn shade(count: u64, row: &[u64]) -> u64 {
    let sum: u64 = row.iter().sum();
    count.saturating_mul(SHADES) / sum.max(1)
}

/// Errors over all sites.
pub(crate) fn errors(
    result: &RunResult,
    job: &Job,
    note: &str,
    rule: fn(&str, u32) -> String,
) -> Markup {
    let errors = scores::pooled_errors(result);
    let row = |errors: &PooledErrors| {
        html! {
            tr {
                th scope="row" { (rule(&errors.rule, errors.neighbours)) }
                td data-label="error" { (measure(errors.measure, job)) } td data-label="counted" { (errors.total) }
                td data-label="value" { (words::error(errors.value())) }
            }
        }
    };
    html! {
        @if !errors.is_empty() {
            h2 { "Errors" }
            p.note { (note) }
            table.wide {
                thead {
                    tr {
                        th scope="col" { "rule" } th scope="col" { "error" }
                        th scope="col" { "patients or pairs" } th scope="col" { "value" }
                    }
                }
                tbody { @for errors in &errors { (row(errors)) } }
            }
        }
    }
}

fn measure(measure: ErrorMeasure, job: &Job) -> String {
    match measure {
        ErrorMeasure::Misclassified => "share misclassified".to_owned(),
        ErrorMeasure::Squared => {
            with_unit("mean squared error", &job.cohort.outcome.squared_unit())
        }
        ErrorMeasure::Discordant => "1 - C".to_owned(),
    }
}

/// A rule of a run whose figures lead.
pub(crate) struct Leading<'l> {
    pub(crate) judged: Judged,
    pub(crate) rule: &'l str,
    /// The rule that it is compared with, and its name.
    pub(crate) other: Option<(&'l str, &'l str)>,
    /// As those of a [`Verdict`].
    pub(crate) on: &'l str,
    pub(crate) concludes: bool,
}

/// The figures of a rule in sentences, compared with another one or with chance.
pub(crate) fn leading(result: &RunResult, job: &Job, leading: &Leading<'_>) -> Vec<String> {
    let pooled = scores::pooled_tables(result, leading.judged);
    let of = |rule: &str| pooled.iter().find(|table| table.counts.rule == rule);
    let verdict = of(leading.rule).map(|table| Verdict {
        outcome: &job.cohort.outcome,
        table,
        other: leading
            .other
            .and_then(|(rule, name)| Some((name, of(rule)?))),
        on: leading.on,
        concludes: leading.concludes,
    });
    verdict.map_or_else(Vec::new, |one| one.sentences())
}
