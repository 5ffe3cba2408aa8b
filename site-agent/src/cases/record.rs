//! What a run leaves at its site so that patients can be compared by it later: the job, and what was learned.
//!
//! It holds no patient's value but, of a run whose sites are centred by themselves, the site's own means.

use crate::source::SiteCohort;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ndarray::Array2;
use protocol::job::Job;
use protocol::method::unpsl::settings::UnpslSettings;
use serde::{Deserialize, Serialize};
use similarity::cohort::standardise::{
    MatrixRow, Scaling, Standardisation, StandardiseError, Transform,
};
use similarity::compare::proximity::kernel::OutOfBag;
use similarity::compare::{CompareError, Measure, Weighted};
use similarity::learn::forest::InBag;
use similarity::learn::regression::absolute::{CommonBaseline, Sureness};
use similarity::learn::regression::exponential::HazardStep;
use similarity::learn::regression::terms::{Term, TermKind, Terms};
use similarity::learn::unpsl::Form;
use similarity::uses::neighbours::NeighbourRule;
use std::io;

/// The file of a run's folder.
pub(crate) const RECORD: &str = "comparison.json";
/// The same of the site's own metric, beside it.
pub(crate) const PERSONAL: &str = "personal.json";
/// A forest's own file beside it.
pub(crate) const FOREST: &str = "forest.bin";

/// What a run compares by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The job's text.
    pub job: String,
    /// Patients of the run's cohort.
    pub patients: usize,
    /// A digest of all that the run read of them.
    pub cohort: String,
    /// What was learned.
    pub learned: Learned,
}

/// What was learned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Learned {
    /// A metric of standardised vectors.
    Metric(LearnedMetric),
    /// A forest, in `forest.bin`.
    Forest(LearnedForest),
    /// The weights of a regression.
    Regression(LearnedRegression),
}

/// A regression as a distance is weighed by it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnedRegression {
    terms: Vec<RecordedTerm>,
    /// One a column of the terms, in its own unit.
    coefficients: Vec<f64>,
    /// Of a baseline that all hospitals have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    common: Option<RecordedBaseline>,
}

/// What makes the risk of any patient; see [`CommonBaseline`].
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecordedBaseline {
    steps: Vec<RecordedStep>,
    coefficients: Vec<f64>,
    references: Vec<f64>,
    /// Row by row.
    covariance: Vec<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecordedStep {
    from: f64,
    until: f64,
    hazard: f64,
    bounds: [f64; 2],
    variance: f64,
    with: Vec<f64>,
}

/// One feature of a regression.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecordedTerm {
    name: String,
    values: RecordedValues,
    /// Whether one more column is 1 where the value is missing.
    indicator: bool,
}

/// What becomes of the values of a feature.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordedValues {
    Numeric { imputed: f64, knots: Vec<f64> },
    Categorical { levels: Vec<String>, imputed: u32 },
}

impl LearnedRegression {
    /// Of these terms, with a coefficient for each of their columns.
    pub(crate) fn new(
        terms: &Terms,
        coefficients: Vec<f64>,
        common: Option<&CommonBaseline>,
    ) -> Self {
        let recorded = |term: &Term| RecordedTerm {
            name: term.name.clone(),
            values: match &term.kind {
                TermKind::Numeric { imputed, knots } => RecordedValues::Numeric {
                    imputed: *imputed,
                    knots: knots.clone(),
                },
                TermKind::Categorical { levels, imputed } => RecordedValues::Categorical {
                    levels: levels.clone(),
                    imputed: *imputed,
                },
            },
            indicator: term.indicator,
        };
        Self {
            terms: terms.terms().iter().map(recorded).collect(),
            coefficients,
            common: common.and_then(RecordedBaseline::of),
        }
    }

    /// What makes the risk of any patient, where all hospitals have one baseline.
    pub(super) fn common(&self) -> Option<CommonBaseline> {
        self.common.as_ref()?.made()
    }

    /// The distance that it weighs.
    pub(super) fn weighted(&self) -> Result<Weighted, CompareError> {
        Weighted::of(self.terms(), self.coefficients.clone())
    }

    /// Its terms.
    pub(super) fn terms(&self) -> Terms {
        let term = |recorded: &RecordedTerm| Term {
            name: recorded.name.clone(),
            kind: match &recorded.values {
                RecordedValues::Numeric { imputed, knots } => TermKind::Numeric {
                    imputed: *imputed,
                    knots: knots.clone(),
                },
                RecordedValues::Categorical { levels, imputed } => TermKind::Categorical {
                    levels: levels.clone(),
                    imputed: *imputed,
                },
            },
            indicator: recorded.indicator,
        };
        Terms::new(self.terms.iter().map(term).collect())
    }
}

/// What is known of a forest beside its trees.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnedForest {
    trees: usize,
    /// Which trees have not seen each patient of the run: words of 64 bits in order of their bytes, in base 64.
    out_of_bag: String,
}

impl RecordedBaseline {
    /// None where nobody knows how often its intervals hold.
    fn of(common: &CommonBaseline) -> Option<Self> {
        let step = |(one, sure): (&HazardStep, &Sureness)| RecordedStep {
            from: one.from,
            until: one.until,
            hazard: one.hazard,
            bounds: sure.bounds,
            variance: sure.variance,
            with: sure.with.clone(),
        };
        let steps = common.steps.iter().zip(&common.sureness);
        (!common.sureness.is_empty()).then(|| Self {
            steps: steps.map(step).collect(),
            coefficients: common.coefficients.clone(),
            references: common.references.clone(),
            covariance: common.covariance.iter().copied().collect(),
        })
    }

    /// None where shapes do not fit.
    fn made(&self) -> Option<CommonBaseline> {
        let columns = self.coefficients.len();
        let sureness = |one: &RecordedStep| Sureness {
            bounds: one.bounds,
            variance: one.variance,
            with: one.with.clone(),
        };
        let step = |one: &RecordedStep| HazardStep {
            from: one.from,
            until: one.until,
            hazard: one.hazard,
            cumulative: Some(sureness(one).interval()),
        };
        let fits = |numbers: &Vec<f64>| numbers.len() == columns;
        let all_fit = fits(&self.references) && self.steps.iter().all(|one| fits(&one.with));
        let covariance = Array2::from_shape_vec((columns, columns), self.covariance.clone());
        Some(CommonBaseline {
            covariance: covariance.ok().filter(|_| all_fit)?,
            steps: self.steps.iter().map(step).collect(),
            sureness: self.steps.iter().map(sureness).collect(),
            coefficients: self.coefficients.clone(),
            references: self.references.clone(),
        })
    }
}

impl LearnedForest {
    /// Of the bags of the site's patients.
    pub(crate) fn new(in_bag: &InBag) -> Self {
        let bags = OutOfBag::new(in_bag);
        let bytes = bags.words().iter().map(|word| word.to_le_bytes());
        Self {
            trees: in_bag.trees(),
            out_of_bag: STANDARD.encode(bytes.collect::<Vec<_>>().into_flattened()),
        }
    }

    /// The bags of so many patients; none where they are of others.
    pub(super) fn bags(&self, patients: usize) -> Option<OutOfBag> {
        let bytes = STANDARD.decode(&self.out_of_bag).ok()?;
        let (words, rest) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let bags = OutOfBag::from_words(words, patients, self.trees);
        bags.filter(|_| rest.is_empty())
    }
}

/// A metric and how its vectors are made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnedMetric {
    /// How each of the d rows is made.
    pub rows: Vec<Row>,
    /// Names of rows that do not vary and have no weight.
    pub dropped: Vec<String>,
    /// W, d x m, row by row.
    pub metric: Vec<Vec<f64>>,
    /// `distance` or `inner_product`: what makes a neighbour.
    pub rule: Rule,
    /// The same of what the pair loss looks at; absent, the job's.
    #[serde(default)]
    pub form: Option<Rule>,
    /// Neighbours of the k-NN evaluation; absent, the job's.
    #[serde(default)]
    pub neighbours: Option<u32>,
}

/// What W was learned and judged with, as it was chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    /// What makes a neighbour.
    pub(crate) rule: NeighbourRule,
    /// What the pair loss looks at.
    pub(crate) form: Form,
    /// Neighbours of the k-NN evaluation.
    pub(crate) neighbours: u32,
}

/// What makes a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A small learned distance.
    Distance,
    /// A large inner product.
    InnerProduct,
}

/// One row of a metric: (t(value) - mean) / scale.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    name: String,
    column: usize,
    transform: Taken,
    mean: f64,
    scale: f64,
    imputed: f64,
    /// Of a spline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    knots: Vec<f64>,
}

/// What of a value a row takes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Taken {
    Value,
    Missing,
    Level(u32),
    Curve(u32),
}

impl Record {
    /// Of a run at this site.
    pub(crate) fn new(job: &Job, own: &SiteCohort, learned: Learned) -> Self {
        Self {
            job: job.text.clone(),
            patients: own.cohort.patients(),
            cohort: own.digest(),
            learned,
        }
    }

    /// As a file has it.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }
}

impl LearnedMetric {
    /// Of a standardisation and a metric W with at least as many rows.
    pub(crate) fn new(
        standardisation: &Standardisation,
        metric: &Array2<f64>,
        chosen: Chosen,
    ) -> Self {
        let rows = standardisation.rows().iter().map(|row| {
            let scaling = row.scaling();
            Row {
                name: row.name().to_owned(),
                column: row.column(),
                transform: match row.transform() {
                    Transform::Identity => Taken::Value,
                    Transform::Missing => Taken::Missing,
                    Transform::Level(level) => Taken::Level(level),
                    Transform::Curve(part) => Taken::Curve(part),
                },
                knots: row.knots().to_vec(),
                mean: scaling.mean,
                scale: scaling.scale,
                imputed: scaling.imputed,
            }
        });
        let features = standardisation.rows().len();
        let metric = metric.outer_iter().take(features);
        Self {
            rows: rows.collect(),
            dropped: standardisation.dropped().to_vec(),
            metric: metric.map(|row| row.to_vec()).collect(),
            rule: match chosen.rule {
                NeighbourRule::InnerProduct => Rule::InnerProduct,
                NeighbourRule::Distance => Rule::Distance,
            },
            form: Some(match chosen.form {
                Form::InnerProduct => Rule::InnerProduct,
                Form::Distance => Rule::Distance,
            }),
            neighbours: Some(chosen.neighbours),
        }
    }

    /// What W was learned and judged with; of an older record partly the job's.
    pub(super) fn chosen(&self, settings: &UnpslSettings) -> Chosen {
        Chosen {
            rule: match self.rule {
                Rule::Distance => NeighbourRule::Distance,
                Rule::InnerProduct => NeighbourRule::InnerProduct,
            },
            form: match self.form {
                None => settings.objective.form,
                Some(Rule::Distance) => Form::Distance,
                Some(Rule::InnerProduct) => Form::InnerProduct,
            },
            neighbours: self.neighbours.unwrap_or(settings.neighbours),
        }
    }

    /// The standardisation of the run.
    pub(super) fn standardisation(&self) -> Result<Standardisation, StandardiseError> {
        let row = |row: &Row| {
            let transform = match row.transform {
                Taken::Value => Transform::Identity,
                Taken::Missing => Transform::Missing,
                Taken::Level(level) => Transform::Level(level),
                Taken::Curve(part) => Transform::Curve(part),
            };
            let scaling = Scaling {
                mean: row.mean,
                scale: row.scale,
                imputed: row.imputed,
            };
            let made = MatrixRow::new(row.name.clone(), row.column, transform, scaling)?;
            Ok::<_, StandardiseError>(made.with_knots(row.knots.clone()))
        };
        let rows = self.rows.iter().map(row).collect::<Result<_, _>>()?;
        Standardisation::from_rows(rows, self.dropped.clone(), Vec::new())
    }

    /// What is taken of two vectors.
    pub(super) fn measure(&self) -> Measure {
        match self.rule {
            Rule::Distance => Measure::Euclidean,
            Rule::InnerProduct => Measure::InnerProduct,
        }
    }

    /// W, d x m; none where its rows are of unequal length.
    pub(super) fn matrix(&self) -> Option<Array2<f64>> {
        let width = self.metric.first().map_or(0, Vec::len);
        let entries = self.metric.iter().flatten().copied().collect();
        Array2::from_shape_vec((self.metric.len(), width), entries).ok()
    }
}
