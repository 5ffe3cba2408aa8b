//! A run, the site's present cohort, and the comparison between them: what every question about cases starts from.

use super::CasesError;
use super::left::{self, Left};
use super::record::{FOREST, Learned, LearnedMetric, LearnedRegression, PERSONAL, RECORD, Record};
use super::shown::short;
use super::spreads;
use super::survival::Presentation;
use crate::cli::{By, Where};
use crate::config::SourceConfig;
use crate::source::{self, Patients, Queries};
use ndarray::Array1;
use protocol::cohort::Value;
use protocol::job::Job;
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, Standardisation, Treatment};
use similarity::cohort::{Cohort, Column, MISSING_LEVEL, Values, take_logarithms};
use similarity::compare::{
    CompareError, Comparison, Gower, Measure, Metric, Placed, Proximity, Weighted,
};
use similarity::learn::forest::Forest;
use similarity::learn::regression::hazards::TimeScale;
use similarity::learn::regression::{CoxDetails, Fit, Ridge, Settings, fit, rows};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// What cases are looked for in.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) job: Job,
    /// As the source has it, for people to read.
    pub(super) columns: Vec<Column>,
    /// As the job compares it.
    pub(super) cohort: Cohort,
    pub(super) patients: Patients,
    pub(super) comparison: Comparison,
    pub(super) placed: Placed,
    /// The regression that weighs, where one does.
    pub(super) fit: Option<Weighing>,
    /// The outcome, and when its survival is given.
    pub(super) presentation: Presentation,
    /// The run's regression, where it makes the risk of any patient and what compares is a regression.
    pub(super) common: Option<LearnedRegression>,
    /// What is to be known before the answer is believed.
    pub(super) remarks: Vec<String>,
    /// Of the cohort, as a record has it.
    pub(super) digest: String,
    /// How a new patient's file is read.
    source: SourceConfig,
    /// What all patients have of each feature, in words, once it was asked for.
    all: OnceLock<Vec<String>>,
}

/// A regression that weighs.
#[derive(Clone)]
pub(super) struct Weighing {
    pub(super) fit: Fit,
    /// Of Cox, whether hazards are proportional, and its concordance.
    pub(super) cox: Option<CoxDetails>,
}

/// Patients whose cases are wanted.
pub(super) struct Asked {
    /// Their names.
    pub(super) names: Vec<String>,
    /// As the source has them.
    pub(super) columns: Vec<Column>,
    pub(super) placed: Placed,
    /// Each one's own row in the cohort, where it is there.
    pub(super) own: Vec<Option<usize>>,
}

impl Setting {
    /// Reads the run's record and the site's cohort, and makes the comparison.
    pub(super) fn open(place: &Where) -> Result<Self, CasesError> {
        let Left {
            folder,
            record,
            job,
            columns,
            cohort,
            patients,
            source,
            digest,
            is_same,
            mut remarks,
        } = Left::open(&place.of)?;
        let Compared {
            comparison,
            fit,
            remarks: said,
        } = compared(place, &record, &folder, &job, &cohort)?;
        remarks.extend(said);
        let placed = match is_same {
            true => comparison.place_cohort(cohort.columns())?,
            false => comparison.place(cohort.columns())?,
        };
        if !is_same && matches!(comparison, Comparison::Proximity(_)) {
            remarks.push(
                "which patients each of the forest's trees has seen is not known of this cohort: how unusual a patient is may be \
                 misjudged"
                    .to_owned(),
            );
        }
        Ok(Self {
            placed,
            presentation: Presentation::new(&job.cohort.outcome, cohort.outcome()),
            common: common(record.learned, place.by),
            job,
            columns,
            cohort,
            patients,
            comparison,
            fit,
            remarks,
            digest,
            source,
            all: OnceLock::new(),
        })
    }

    /// What all patients have of each feature, in words.
    pub(super) fn all(&self) -> &[String] {
        self.all.get_or_init(|| {
            let everybody: Vec<usize> = (0..self.patients.len()).collect();
            let features = self.job.cohort.features.iter().zip(&self.columns);
            features
                .map(|(feature, column)| spreads::in_words(feature, &column.values, &everybody))
                .collect()
        })
    }

    /// The patients of the cohort with these identifiers, or at these places from 1 where the source names none.
    pub(super) fn rows(&self, ids: &[String]) -> Result<Vec<usize>, CasesError> {
        let row = |id: &String| {
            let row = self.patients.place(id);
            row.ok_or_else(|| CasesError::NoPatient {
                patients: self.patients.len(),
                named: self.patients.are_named(),
            })
        };
        ids.iter().map(row).collect()
    }

    /// Every patient's row by its name.
    pub(super) fn places(&self) -> HashMap<String, usize> {
        (0..self.patients.len())
            .map(|row| (self.patients.name(row), row))
            .collect()
    }

    /// Patients of the cohort.
    pub(super) fn known(&self, rows: &[usize]) -> Result<Asked, CasesError> {
        Ok(Asked {
            names: rows.iter().map(|row| self.patients.name(*row)).collect(),
            columns: self
                .columns
                .iter()
                .map(|column| chosen_of(column, rows))
                .collect(),
            placed: self.placed.select(rows),
            own: rows.iter().map(|row| Some(*row)).collect(),
        })
    }

    /// Patients of a file with the columns of the site's source. Whoever has the identifier of a patient of the cohort is
    /// that patient.
    pub(super) fn read(&self, file: &Path) -> Result<Asked, CasesError> {
        let source = self.source.with_file(file);
        let read = source::read_queries(&source, &self.job);
        let Queries { columns, patients } = read.map_err(CasesError::Data)?;
        let mut compared = columns.clone();
        take_logarithms(&mut compared, &self.job.cohort.logarithms())?;
        let both_named = patients.are_named() && self.patients.are_named();
        let places = match both_named {
            true => self.places(),
            false => HashMap::new(),
        };
        let own = |row: usize| places.get(&patients.name(row)).copied();
        Ok(Asked {
            names: (0..patients.len()).map(|row| patients.name(row)).collect(),
            own: (0..patients.len()).map(own).collect(),
            placed: self.comparison.place(&compared)?,
            columns,
        })
    }
}

impl Setting {
    /// A patient who is in no file, by a value of each of the job's features. `own` is its row in the cohort, where it is there.
    pub(super) fn described(
        &self,
        name: &str,
        values: &[Value],
        own: Option<usize>,
    ) -> Result<Asked, CasesError> {
        let features = self.job.cohort.features.iter().zip(values);
        let columns = self.columns.iter().zip(features);
        let columns: Vec<Column> = columns
            .map(|(column, (feature, value))| Column {
                name: column.name.clone(),
                values: one_value(feature, &column.values, *value),
            })
            .collect();
        let mut compared = columns.clone();
        take_logarithms(&mut compared, &self.job.cohort.logarithms())?;
        Ok(Asked {
            names: vec![name.to_owned()],
            placed: self.comparison.place(&compared)?,
            columns,
            own: vec![own],
        })
    }

    /// What a patient of the cohort has in each feature.
    pub(super) fn values(&self, row: usize) -> Vec<Value> {
        let features = self.job.cohort.features.iter().zip(&self.columns);
        let of = |(feature, column): (&protocol::cohort::Feature, &Column)| {
            value_of(feature, &column.values, row)
        };
        features.map(of).collect()
    }
}

/// A column of one patient, of the same kind as that of the cohort.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places of levels
fn one_value(feature: &protocol::cohort::Feature, known: &Values, value: Value) -> Values {
    let number = match value {
        Value::Missing => f64::NAN,
        Value::Number(number) => number,
        Value::Level(place) => place as f64,
    };
    match known {
        Values::Numeric(_) => Values::Numeric(Array1::from_elem(1, number)),
        Values::Categorical { levels, .. } => {
            let named = feature.kind.categories().unwrap_or(levels);
            let name = (!number.is_nan())
                .then(|| named.get(number as usize))
                .flatten();
            let code = name.and_then(|name| levels.iter().position(|level| level == name));
            let code = code.and_then(|code| u32::try_from(code).ok());
            Values::Categorical {
                codes: Array1::from_elem(1, code.unwrap_or(MISSING_LEVEL)),
                levels: levels.clone(),
            }
        }
    }
}

fn value_of(feature: &protocol::cohort::Feature, known: &Values, row: usize) -> Value {
    match known {
        Values::Numeric(values) if values[row].is_nan() => Value::Missing,
        Values::Numeric(values) => Value::Number(values[row]),
        Values::Categorical { codes, levels } => {
            let level = levels.get(codes[row] as usize);
            let named = feature.kind.categories().unwrap_or(levels);
            let place = level.and_then(|level| named.iter().position(|one| one == level));
            place.map_or(Value::Missing, Value::Level)
        }
    }
}

/// Of a run whose hospitals have one baseline, its regression.
fn common(learned: Learned, by: By) -> Option<LearnedRegression> {
    match (learned, by) {
        (Learned::Regression(known), By::Run | By::Regression) => {
            Some(known).filter(|known| known.common().is_some())
        }
        (Learned::Regression(_) | Learned::Metric(_) | Learned::Forest(_), _) => None,
    }
}

fn chosen_of(column: &Column, rows: &[usize]) -> Column {
    Column {
        name: column.name.clone(),
        values: column.values.select(rows),
    }
}

/// A comparison, the regression that weighs it where one does, and what is to be known of it.
struct Compared {
    comparison: Comparison,
    fit: Option<Weighing>,
    remarks: Vec<String>,
}

fn compared(
    place: &Where,
    record: &Record,
    folder: &Path,
    job: &Job,
    cohort: &Cohort,
) -> Result<Compared, CasesError> {
    let names: Vec<String> = cohort
        .columns()
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let mut remarks = Vec::new();
    let mut plain = |measure| -> Result<Comparison, CasesError> {
        let standardisation = standardisation(record, job, cohort, &mut remarks)?;
        Ok(Comparison::Metric(Metric::plain(
            &names,
            standardisation,
            measure,
        )))
    };
    let mut fitted = None;
    let comparison = match place.by {
        By::Run => learned(record, folder, &names)?,
        By::Personal => {
            let own = left::read_record(folder, PERSONAL);
            let own = own.map_err(|error| match folder.join(PERSONAL).is_file() {
                true => error,
                false => CasesError::NoPersonal,
            })?;
            learned(&own, folder, &names)?
        }
        By::Euclidean => plain(Measure::Euclidean)?,
        By::Manhattan => plain(Measure::Manhattan)?,
        By::Cosine => plain(Measure::Cosine)?,
        By::Mahalanobis => {
            let standardisation = standardisation(record, job, cohort, &mut remarks)?;
            let made = Metric::mahalanobis(&names, standardisation, cohort.columns());
            Comparison::Metric(made?)
        }
        By::Gower => Comparison::Gower(Gower::of_columns(cohort.columns())),
        By::Regression => {
            let (weighted, weighing) = weighed(place, record, job, cohort, &mut remarks)?;
            fitted = Some(weighing);
            Comparison::Weighted(weighted)
        }
        By::Anchored => {
            let weighted = match (&record.learned, place.ridge) {
                (Learned::Regression(known), None) => known.weighted()?,
                (Learned::Regression(_) | Learned::Metric(_) | Learned::Forest(_), _) => {
                    let own = weighed(place, record, job, cohort, &mut remarks)?;
                    fitted = Some(own.1);
                    own.0
                }
            };
            Comparison::Weighted(weighted.anchored())
        }
    };
    Ok(Compared {
        comparison,
        fit: fitted,
        remarks,
    })
}

/// A regression of this cohort, by the chosen ridge where the caller states none. A missing value is imputed with what the run
/// took; of a run that has no such, patients with a missing value are excluded.
fn weighed(
    place: &Where,
    record: &Record,
    job: &Job,
    cohort: &Cohort,
    remarks: &mut Vec<String>,
) -> Result<(Weighted, Weighing), CasesError> {
    let terms = match &record.learned {
        Learned::Metric(metric) => {
            let features = job.cohort.standardised_columns();
            Some(rows::terms(&features, &recorded(metric)?))
        }
        Learned::Regression(known) => Some(known.terms()),
        Learned::Forest(_) => None,
    };
    let settings = Settings {
        ridge: place.ridge.map_or(Ridge::Chosen, Ridge::Stated),
        terms,
        ..Settings::default()
    };
    let found = fit(cohort, &settings)?;
    remarks.extend(found.remarks());
    if settings.ridge == Ridge::Chosen {
        remarks.push(format!(
            "the ridge of the regression, {}, was chosen from the data by restricted likelihood",
            short(found.ridge)
        ));
    }
    if found.left_out > 0 {
        remarks.push(format!(
            "the regression uses the {} patients without a missing value; {} were excluded",
            found.patients, found.left_out
        ));
    }
    let weighted = Weighted::new(&found)?;
    let cox = found.cox(cohort, &settings, TimeScale::KaplanMeier)?;
    Ok((weighted, Weighing { fit: found, cox }))
}

pub(super) fn learned(
    record: &Record,
    folder: &Path,
    names: &[String],
) -> Result<Comparison, CasesError> {
    let fault = |file: &str, why: String| CasesError::Record {
        path: folder.join(file),
        why,
    };
    match &record.learned {
        Learned::Metric(metric) => {
            let matrix = metric.matrix();
            let matrix =
                matrix.ok_or_else(|| fault(RECORD, "rows of unequal length".to_owned()))?;
            let made = Metric::learned(names, recorded(metric)?, matrix, metric.measure());
            Ok(Comparison::Metric(made?))
        }
        Learned::Regression(known) => Ok(Comparison::Weighted(known.weighted()?)),
        Learned::Forest(known) => {
            let bytes = fs::read(folder.join(FOREST));
            let bytes = bytes.map_err(|error| fault(FOREST, error.to_string()))?;
            let forest = Forest::from_bytes(&bytes);
            let forest = forest.map_err(|error| fault(FOREST, error.to_string()))?;
            Ok(Comparison::Proximity(Proximity::new(
                forest,
                known.bags(record.patients),
            )?))
        }
    }
}

fn recorded(metric: &LearnedMetric) -> Result<Standardisation, CasesError> {
    Ok(metric
        .standardisation()
        .map_err(CompareError::Standardise)?)
}

/// The run's standardisation; of a run that has none, that of the cohort by its own means and standard deviations.
fn standardisation(
    record: &Record,
    job: &Job,
    cohort: &Cohort,
    remarks: &mut Vec<String>,
) -> Result<Standardisation, CasesError> {
    match &record.learned {
        Learned::Metric(metric) => recorded(metric),
        Learned::Forest(_) | Learned::Regression(_) => {
            let features: Vec<Feature> = job
                .cohort
                .standardised_columns()
                .into_iter()
                .map(|feature| Feature {
                    treatment: Treatment::default(),
                    ..feature
                })
                .collect();
            let moments = ColumnMoments::of_cohort(cohort)?;
            let made = Standardisation::from_moments(&features, &moments, &[]);
            remarks.push(
                "the run has no standardisation: columns are standardised by this cohort's own means and standard deviations"
                    .to_owned(),
            );
            Ok(made.map_err(CompareError::Standardise)?)
        }
    }
}
