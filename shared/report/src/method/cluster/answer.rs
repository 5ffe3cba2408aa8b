//! The groups in numbers, as pages and files tell them.

use crate::outcome::{event_by, rate_in_words, units_of, with_event};
use crate::words::figure;
use protocol::cohort::{Feature, FeatureKind, OutcomeSpecification};
use protocol::job::Job;
use protocol::method::Method;
use protocol::method::cluster::model::{
    GridCurve, GridPoint, Interval, Mark, Model, Outlook, Tried,
};
use protocol::method::neighbours::model::variance;
use protocol::result::RunResult;
use serde::Serialize;

/// A difference of so many standard deviations is one (Cohen's small effect).
const DIFFERENCE_MIN: f64 = 0.2;
/// Marks that a sentence tells.
const MARKS_SHOWN: usize = 3;

/// Thirds of the predicted risk.
const THIRDS: [&str; 3] = ["lowest risk", "middle risk", "highest risk"];

/// What people read for the group of a job at this place.
#[must_use]
pub fn group_name(job: &Job, place: usize) -> String {
    match THIRDS.get(place) {
        Some(name) if is_of_thirds(job) => (*name).to_owned(),
        _ => format!("cluster {}", place + 1),
    }
}

fn is_of_thirds(job: &Job) -> bool {
    matches!(&job.method, Method::Cluster(settings) if settings.is_of_thirds())
}

/// What a run found.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    run: String,
    pub(super) compared_by: String,
    pub(super) sites: usize,
    /// Of all sites.
    pub(super) patients: u64,
    /// Of them those in a group of their site.
    pub(super) grouped: u64,
    outcome: String,
    /// Whether the outcomes of the groups differ beyond chance; none where nothing is shown.
    pub(super) outcomes_differ: Option<bool>,
    pub(super) tried: Vec<OneTried>,
    /// Whether the groups are thirds of the predicted risk.
    #[serde(skip)]
    pub(super) is_of_thirds: bool,
    /// None where nothing is shown.
    pub(super) groups: Vec<Group>,
    /// One row a group, as the run places patients.
    centres: Vec<Vec<f64>>,
}

/// A number of groups.
#[derive(Debug, Serialize)]
pub(super) struct OneTried {
    pub(super) groups: usize,
    /// None where a group is empty, or all patients fared alike.
    pub(super) bias: Option<f64>,
    bias_share: Option<f64>,
    /// How often permuted outcomes gain as much over fewer; none where it is not stable.
    pub(super) chance: Option<f64>,
    pub(super) stability: Vec<f64>,
    /// Of the least stable.
    pub(super) least: f64,
    pub(super) stable: bool,
    pub(super) shown: bool,
}

/// A group.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    pub(super) group: usize,
    /// What people read.
    pub(super) name: String,
    pub(super) patients: u64,
    pub(super) share: f64,
    /// Sites that have it.
    pub(super) sites: u64,
    stability: f64,
    fared: Vec<Fared>,
    /// None of another outcome than a survival time with horizons, and of too few patients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) survival: Option<Curve>,
    pub(super) marks: Vec<OneMark>,
}

/// How the patients of a group fared, with an interval of 95 %.
#[derive(Debug, Serialize)]
struct Fared {
    what: String,
    value: f64,
    /// None where it has no end.
    low: Option<f64>,
    high: Option<f64>,
    #[serde(skip)]
    is_share: bool,
}

/// Survival of a group, with intervals of 95 %.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    pub(super) points: Vec<CurvePoint>,
    /// None where the curve does not reach one half.
    median: Option<f64>,
    /// Times of the grid; none where the curve does not show it.
    median_low: Option<f64>,
    median_high: Option<f64>,
}

/// Survival at a horizon, and who is followed beyond it: rounded, with the ends that 95 % of the noise is within.
#[derive(Debug, Serialize)]
pub(super) struct CurvePoint {
    pub(super) time: f64,
    /// Without an event.
    pub(super) share: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) at_risk: u64,
    pub(super) at_risk_low: u64,
    pub(super) at_risk_high: u64,
}

impl Curve {
    /// None without a point.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // patients are far below 2^52
    pub(super) fn of(curve: &GridCurve) -> Option<Self> {
        let whole = |patients: f64| patients.round().max(0.0) as u64;
        let point = |point: &GridPoint| CurvePoint {
            time: point.time,
            share: point.share.value,
            low: point.share.low,
            high: point.share.high,
            at_risk: whole(point.at_risk.value),
            at_risk_low: whole(point.at_risk.low),
            at_risk_high: whole(point.at_risk.high),
        };
        let median = curve.median();
        (!curve.points.is_empty()).then(|| Self {
            points: curve.points.iter().map(point).collect(),
            median: median.time,
            median_low: median.low,
            median_high: median.high,
        })
    }

    /// When half have an event, as far as that is known.
    pub(super) fn median_in_words(&self, outcome: &OutcomeSpecification) -> String {
        let unit = outcome.unit_in_words();
        let value = self.median.map_or("not reached".to_owned(), |time| {
            format!("about {} {unit}", figure(time))
        });
        match (self.median_low, self.median_high) {
            (Some(low), Some(high)) => format!("{value} ({} to {})", figure(low), figure(high)),
            (Some(low), None) => format!("{value} (from {})", figure(low)),
            (None, _) => value,
        }
    }
}

impl CurvePoint {
    /// The share with an event by then.
    pub(super) fn with_event(&self) -> String {
        let [share, low, high] = [self.share, self.high, self.low].map(|one| 100.0 * (1.0 - one));
        format!("{share:.0} % ({low:.0} to {high:.0} %)")
    }

    /// The number at risk, and how far off noise may be.
    pub(super) fn at_risk_in_words(&self) -> String {
        let off = (self.at_risk_high - self.at_risk).max(self.at_risk - self.at_risk_low);
        match off {
            0 => self.at_risk.to_string(),
            off => format!("{}\u{b1}{off}", self.at_risk),
        }
    }
}

/// What patients have of a feature.
#[derive(Debug, Serialize)]
pub(super) struct OneMark {
    pub(super) feature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) level: Option<String>,
    unit: String,
    /// Patients of the group that it is of.
    pub(super) patients: u64,
    /// The mean; of a logarithm the geometric one.
    pub(super) inside: f64,
    /// The standard deviation, of a logarithm as it is.
    pub(super) deviation: f64,
    /// The mean of all others.
    pub(super) outside: f64,
    /// Of the means, in standard deviations.
    pub(super) difference: f64,
    #[serde(skip)]
    pub(super) name: String,
    #[serde(skip)]
    is_share: bool,
}

impl Answer {
    pub(super) fn new(result: &RunResult, job: &Job, model: &Model) -> Self {
        let kind = &job.cohort.outcome.kind;
        let chances = model.chances(kind);
        let tried = |(place, one): (usize, &Tried)| OneTried {
            groups: one.clusters(),
            bias: one.bias.map(|bias| bias.value),
            bias_share: one.bias.and_then(|bias| bias.share),
            chance: chances[place],
            least: one.stability.iter().copied().fold(1.0, f64::min),
            stability: one.stability.clone(),
            stable: one.is_stable,
            shown: model.shown.is_some_and(|shown| shown as usize == place),
        };
        Self {
            run: result.run.to_string(),
            compared_by: model.run.clone(),
            sites: result.sites_that_took_part(),
            patients: model.patients,
            grouped: model.grouped,
            outcome: job.cohort.outcome.label.clone(),
            outcomes_differ: model.outcomes_differ(kind),
            tried: model.tried.iter().enumerate().map(tried).collect(),
            is_of_thirds: is_of_thirds(job),
            groups: model
                .shown()
                .map(|shown| groups(job, model, shown))
                .unwrap_or_default(),
            centres: model.centres.outer_iter().map(|row| row.to_vec()).collect(),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn groups(job: &Job, model: &Model, shown: &Tried) -> Vec<Group> {
    let outcome = &job.cohort.outcome;
    let kind = &outcome.kind;
    let outlooks = (0..shown.clusters()).filter_map(|place| shown.outlook(place, kind));
    let rates = outlooks.filter_map(|outlook| match outlook {
        Outlook::Rate(rate) => Some(rate.value),
        Outlook::Classes(_) | Outlook::Mean(_) | Outlook::Survival(_) => None,
    });
    // One number of units for all, so that rates can be compared.
    let units = units_of(rates.fold(1.0, f64::min));
    let all: u64 = shown.fared.iter().map(|one| one.count()).sum();
    let one = |place: usize| {
        let patients = shown.fared[place].count();
        let outlook = shown.outlook(place, kind);
        Group {
            group: place + 1,
            name: group_name(job, place),
            patients,
            share: patients as f64 / all.max(1) as f64,
            sites: model.marks.get(place).map_or(0, |one| one.sites),
            stability: shown.stability[place],
            survival: match &outlook {
                Some(Outlook::Survival(curve)) => Curve::of(curve),
                Some(Outlook::Classes(_) | Outlook::Mean(_) | Outlook::Rate(_)) | None => None,
            },
            fared: outlook
                .map(|outlook| fared(&outlook, outcome, units))
                .unwrap_or_default(),
            marks: marks(job, model, place),
        }
    };
    (0..shown.clusters()).map(one).collect()
}

fn fared(outlook: &Outlook, outcome: &OutcomeSpecification, units: f64) -> Vec<Fared> {
    let end = |end: f64| end.is_finite().then_some(end);
    let one = |what: String, found: &Interval, is_share, units: f64| Fared {
        what,
        value: units * found.value,
        low: end(units * found.low),
        high: end(units * found.high),
        is_share,
    };
    match outlook {
        Outlook::Classes(shares) => {
            let both = outcome.classes().into_iter().zip(shares);
            both.map(|(class, share)| one(class, share, true, 1.0))
                .collect()
        }
        Outlook::Mean(mean) => {
            let what = format!("mean {}", outcome.label_with_unit());
            vec![one(what, mean, false, 1.0)]
        }
        Outlook::Survival(curve) => {
            let last = curve.points.last().map(|last| {
                let what = event_by(outcome, last.time);
                one(what, &with_event(last.share), true, 1.0)
            });
            last.into_iter().collect()
        }
        Outlook::Rate(rate) => vec![one(rate_in_words(outcome, units), rate, false, units)],
    }
}

/// Of a feature: its level, what people read, and whether numbers are shares.
pub(crate) struct Row<'f> {
    pub(crate) feature: &'f Feature,
    pub(crate) level: Option<&'f str>,
    pub(crate) is_share: bool,
    is_log: bool,
}

impl Row<'_> {
    /// What people read: with its unit, or its level.
    pub(crate) fn name(&self) -> String {
        let feature = self.feature;
        match (self.level, &feature.kind) {
            (Some(level), _) => format!("{}: {}", feature.label, feature.level_label(level)),
            (None, FeatureKind::Binary { positive, .. }) => match feature.level_label(positive) {
                "yes" => feature.label.clone(),
                label => format!("{}: {label}", feature.label),
            },
            (None, _) => feature.label_with_scale(),
        }
    }

    /// A mean, as the job's values are: of logarithms the mean of what they are of.
    pub(crate) fn meant(&self, mean: f64) -> f64 {
        match self.is_log {
            true => mean.exp(),
            false => self.feature.on_its_scale(mean),
        }
    }
}

/// One of each number, and one of each level of a category, in the order in which sites tell them.
pub(crate) fn rows(job: &Job) -> Vec<Row<'_>> {
    let features = job.cohort.features.iter().zip(job.cohort.logarithms());
    features
        .flat_map(|(feature, is_log)| rows_of(feature, is_log))
        .collect()
}

fn rows_of(feature: &Feature, is_log: bool) -> Vec<Row<'_>> {
    let row = |level, is_share| Row {
        feature,
        level,
        is_share,
        is_log,
    };
    match &feature.kind {
        FeatureKind::Categorical { levels } => levels
            .iter()
            .map(|level| row(Some(level.as_str()), true))
            .collect(),
        FeatureKind::Binary { .. } => vec![row(None, true)],
        FeatureKind::Numeric { .. } | FeatureKind::Ordinal { .. } | FeatureKind::Age { .. } => {
            vec![row(None, false)]
        }
    }
}

fn marks(job: &Job, model: &Model, place: usize) -> Vec<OneMark> {
    let Some(own) = model.marks.get(place) else {
        return Vec::new();
    };
    let others = |row: usize| {
        let others = model
            .marks
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != place);
        let marks = others.filter_map(|(_, one)| one.features.get(row));
        marks.fold(Mark::default(), |sum, one| Mark {
            patients: sum.patients + one.patients,
            sum: sum.sum + one.sum,
            squares: sum.squares + one.squares,
        })
    };
    let one = |(place, row): (usize, Row<'_>)| {
        let inside = moments(own.features.get(place)?)?;
        let outside = moments(&others(place))?;
        let spread = f64::midpoint(inside.1, outside.1).sqrt();
        let told = |mean: f64| row.meant(mean);
        let feature = row.feature;
        Some(OneMark {
            feature: feature.name.clone(),
            level: row.level.map(str::to_owned),
            unit: feature.unit().to_owned(),
            patients: own.features[place].patients,
            inside: told(inside.0),
            deviation: feature.step_of_scale() * inside.1.sqrt(),
            outside: told(outside.0),
            difference: match spread > 0.0 {
                true => (inside.0 - outside.0) / spread,
                false => 0.0,
            },
            name: row.name(),
            is_share: row.is_share,
        })
    };
    rows(job).into_iter().enumerate().filter_map(one).collect()
}

/// The mean and the variance; none of nobody.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn moments(mark: &Mark) -> Option<(f64, f64)> {
    let patients = mark.patients as f64;
    let variance = variance(patients, mark.sum, mark.squares);
    (mark.patients > 0).then_some((mark.sum / patients, variance))
}

impl OneMark {
    /// A mean of it, or a share of patients.
    pub(super) fn in_words(&self, mean: f64) -> String {
        match self.is_share {
            true => format!("{:.0} %", 100.0 * mean),
            false => figure(mean),
        }
    }
}

impl Group {
    /// What differs most, the largest difference first.
    pub(super) fn largest(&self, most: usize) -> Vec<&OneMark> {
        let mut marks: Vec<&OneMark> = self
            .marks
            .iter()
            .filter(|one| one.difference.abs() >= DIFFERENCE_MIN)
            .collect();
        marks.sort_by(|one, other| other.difference.abs().total_cmp(&one.difference.abs()));
        marks.truncate(most);
        marks
    }

    /// How its patients fared, of two classes the second.
    pub(super) fn fared_text(&self) -> String {
        let first = usize::from(self.fared.len() == 2);
        let told = |one: &Fared, value: f64| match one.is_share {
            true => format!("{:.0}", 100.0 * value),
            false => figure(value),
        };
        let text = |one: &Fared| {
            let value = told(one, one.value);
            let ends = match (one.low, one.high) {
                (Some(low), Some(high)) => format!(" ({} to {})", told(one, low), told(one, high)),
                _ => String::new(),
            };
            match one.is_share {
                true => format!("{value} % {}{ends}", one.what),
                false => format!("{}: {value}{ends}", one.what),
            }
        };
        let all: Vec<String> = self.fared.iter().skip(first).map(text).collect();
        match all.is_empty() {
            true => "too few to say how they fared".to_owned(),
            false => all.join(", "),
        }
    }

    /// The group in a sentence.
    pub(super) fn sentence(&self, sites: usize) -> String {
        let mark = |one: &OneMark| {
            format!(
                "{} {} (others {})",
                one.name,
                one.in_words(one.inside),
                one.in_words(one.outside)
            )
        };
        let marks: Vec<String> = self.largest(MARKS_SHOWN).into_iter().map(mark).collect();
        let marks = match marks.is_empty() {
            true => String::new(),
            false => format!("; {}", marks.join(", ")),
        };
        format!(
            "{}: {} patients, at {} of {sites} sites; {}{marks}.",
            capital(&self.name),
            self.patients,
            self.sites,
            self.fared_text()
        )
    }
}

/// With a capital letter.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
