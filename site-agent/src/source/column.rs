//! Reads one feature of every patient, in the job's unit and levels.

use super::field::{Field, date_of_text, number_of_text};
use super::level::Levels;
use super::problem::{CohortProblem, Fault, Faults};
use crate::config::{ColumnMapping, DateFormat, DecimalMark, SourceConfig};
use ndarray::Array1;
use protocol::job::{Feature, FeatureKind, Impute, Transform};
use similarity::cohort::{Column, MISSING_LEVEL, Values};
use time::Date;

/// Days of a year on average over a cycle of the Gregorian calendar.
const DAYS_OF_YEAR: f64 = 365.2425;
/// A plausible age in years.
const AGE_MAX: f64 = 150.0;

/// One feature while it is being read.
pub(super) struct ColumnReader {
    feature: Feature,
    /// The source's name of the column.
    source_column: String,
    kind: Kind,
    missing: Missing,
    faults: Faults,
    values: Unfinished,
}

enum Kind {
    Number {
        decimal: DecimalMark,
        factor: f64,
        offset: f64,
        range: Option<(f64, f64)>,
        negative_allowed: bool,
    },
    Level(Levels),
    Age {
        at: Date,
        format: DateFormat,
    },
}

enum Unfinished {
    Numbers(Vec<f64>),
    Codes(Vec<u32>),
}

/// Values that mean missing, beside the empty field.
pub(super) struct Missing {
    texts: Vec<Vec<u8>>,
    numbers: Vec<f64>,
}

impl Missing {
    /// From the job's, the source's and the column's lists. A number among them is compared as a
    /// number, so that `0` also means `0.0`.
    pub(super) fn new<'t>(tokens: impl Iterator<Item = &'t String>, decimal: DecimalMark) -> Self {
        let texts: Vec<Vec<u8>> = tokens.map(|token| token.trim().into()).collect();
        let number = |text: &Vec<u8>| {
            let point = number_of_text(text, DecimalMark::Point).ok();
            point.or_else(|| number_of_text(text, decimal).ok())
        };
        let numbers = texts.iter().filter_map(number).collect();
        Self { texts, numbers }
    }

    /// True where `field` means missing; of numbers only their text is looked at.
    pub(super) fn is_text(&self, field: &Field<'_>) -> bool {
        match field {
            Field::Text(text) => {
                let text = text.trim_ascii();
                text.is_empty() || self.texts.iter().any(|token| token == text)
            }
            Field::Number(number) => number.is_nan(),
            _ => field.is_empty(),
        }
    }

    /// True where `number`, as the source has it, means missing.
    pub(super) fn is_number(&self, number: f64) -> bool {
        self.numbers.contains(&number)
    }

    /// True where `field` means missing, by its text or by its number.
    pub(super) fn is_field(&self, field: &Field<'_>, decimal: DecimalMark) -> bool {
        self.is_text(field)
            || (!self.numbers.is_empty()
                && field
                    .number(decimal)
                    .is_ok_and(|number| self.is_number(number)))
    }
}

impl ColumnReader {
    /// Prepares to read `feature` as `source` declares its column.
    ///
    /// # Errors
    /// Units or levels of the site that do not lead to the job's.
    pub(super) fn new(
        feature: &Feature,
        source: &SourceConfig,
        mapping: &ColumnMapping,
    ) -> Result<Self, Mismatch> {
        let decimal = source.decimal;
        let kind = match &feature.kind {
            FeatureKind::Numeric {
                unit,
                range,
                transform,
                ..
            } => {
                let (factor, offset) = conversion(unit, mapping)?;
                Kind::Number {
                    decimal,
                    factor,
                    offset,
                    range: *range,
                    negative_allowed: *transform == Transform::None,
                }
            }
            FeatureKind::Categorical { levels } | FeatureKind::Ordinal { levels } => {
                Kind::Level(Levels::new(levels, mapping.levels.as_ref())?)
            }
            FeatureKind::Binary { positive, negative } => {
                let levels = [negative.clone(), positive.clone()];
                Kind::Level(Levels::new(&levels, mapping.levels.as_ref())?)
            }
            FeatureKind::Age { at } => Kind::Age {
                at: date_of_text(at.as_bytes(), "YYYY-MM-DD")
                    .ok_or_else(|| Mismatch::new("a job whose `at` is no day", "YYYY-MM-DD"))?,
                format: mapping
                    .date_format
                    .clone()
                    .unwrap_or_else(|| source.date_format.clone()),
            },
        };
        let tokens = feature.missing.iter();
        let tokens = tokens.chain(&source.missing).chain(&mapping.missing);
        let values = match feature.kind {
            FeatureKind::Categorical { .. } => Unfinished::Codes(Vec::new()),
            _ => Unfinished::Numbers(Vec::new()),
        };
        Ok(Self {
            source_column: mapping
                .column
                .clone()
                .unwrap_or_else(|| feature.name.clone()),
            feature: feature.clone(),
            kind,
            missing: Missing::new(tokens, decimal),
            faults: Faults::default(),
            values,
        })
    }

    /// The source's name of the column.
    pub(super) fn source_column(&self) -> &str {
        &self.source_column
    }

    /// The job's name of the column.
    pub(super) fn name(&self) -> &str {
        &self.feature.name
    }

    /// Reads the field of one patient. A fault is noted, and a missing value takes its place.
    pub(super) fn read(&mut self, row: u64, field: Field<'_>) {
        let read = if self.missing.is_text(&field) {
            Ok(None)
        } else {
            self.kind.read(field, &self.missing)
        };
        let value = read.unwrap_or_else(|fault| {
            self.faults.add(fault, row);
            None
        });
        if value.is_none() && self.feature.impute == Impute::Refuse && read.is_ok() {
            self.faults.add(Fault::Missing, row);
        }
        match &mut self.values {
            Unfinished::Numbers(numbers) => numbers.push(value.unwrap_or(f64::NAN)),
            // Codes are counts of levels, exact in both types.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Unfinished::Codes(codes) => {
                codes.push(value.map_or(MISSING_LEVEL, |code| code as u32));
            }
        }
    }

    /// What was wrong, told of `source` whose rows are called `word`.
    pub(super) fn problems(&self, source: &str, word: &'static str) -> Vec<CohortProblem> {
        let problem = |(fault, rows)| {
            let column = Some(self.source_column.as_str());
            CohortProblem::of_column(source, &self.feature.name, column, "", &self.wanted(fault))
                .in_rows(fault, rows)
        };
        self.faults.rows(word).map(problem).collect()
    }

    /// The column, complete.
    pub(super) fn finish(self) -> Column {
        let values = match (self.values, self.feature.kind) {
            (Unfinished::Codes(codes), FeatureKind::Categorical { levels }) => {
                Values::Categorical {
                    codes: Array1::from_vec(codes),
                    levels,
                }
            }
            (Unfinished::Codes(codes), _) => {
                Values::Numeric(codes.into_iter().map(f64::from).collect())
            }
            (Unfinished::Numbers(mut numbers), _) => {
                numbers.shrink_to_fit();
                Values::Numeric(Array1::from_vec(numbers))
            }
        };
        Column {
            name: self.feature.name,
            values,
        }
    }

    fn wanted(&self, fault: Fault) -> String {
        match (fault, &self.kind) {
            (Fault::Missing, _) => "a value, for the job refuses missing ones".to_owned(),
            (Fault::Negative, _) => "0 or more, for its logarithm is taken".to_owned(),
            (_, Kind::Level(levels)) => levels.wanted(),
            (_, Kind::Age { format, .. }) => match fault {
                Fault::Implausible => format!("an age from 0 to {AGE_MAX} years"),
                _ => format!("a date as {}", format.as_str()),
            },
            (Fault::Implausible, Kind::Number { range, .. }) => {
                let (low, high) = range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                format!("{low} to {high}{}", self.unit(" "))
            }
            (_, Kind::Number { decimal, .. }) => match decimal {
                DecimalMark::Point => format!("a number{}", self.unit(" in ")),
                DecimalMark::Comma => format!("a number{} with a decimal comma", self.unit(" in ")),
            },
        }
    }

    fn unit(&self, before: &str) -> String {
        match &self.feature.kind {
            FeatureKind::Numeric { unit, .. } if !unit.is_empty() => format!("{before}{unit}"),
            _ => String::new(),
        }
    }
}

impl Kind {
    /// The value in the job's unit, or its level's code; none where it is missing.
    fn read(&self, field: Field<'_>, missing: &Missing) -> Result<Option<f64>, Fault> {
        match self {
            Self::Number {
                decimal,
                factor,
                offset,
                range,
                negative_allowed,
            } => {
                let number = field.number(*decimal).map_err(Fault::NotNumber)?;
                if missing.is_number(number) {
                    return Ok(None);
                }
                let number = number * factor + offset;
                if !number.is_finite()
                    || range.is_some_and(|(low, high)| number < low || number > high)
                {
                    return Err(Fault::Implausible);
                }
                if number < 0.0 && !negative_allowed {
                    return Err(Fault::Negative);
                }
                Ok(Some(number))
            }
            Self::Level(levels) => {
                if missing.is_field(&field, DecimalMark::Point) {
                    return Ok(None);
                }
                let code = levels.code(field);
                let code = code.ok_or_else(|| Fault::UnlistedLevel(field.shape()))?;
                Ok(Some(f64::from(code)))
            }
            Self::Age { at, format } => {
                let born = field.date(format).map_err(Fault::NotDate)?;
                let days = at.to_julian_day() - born.to_julian_day();
                let age = f64::from(days) / DAYS_OF_YEAR;
                if !(0.0..=AGE_MAX).contains(&age) {
                    return Err(Fault::Implausible);
                }
                Ok(Some(age))
            }
        }
    }
}

/// A declaration of the site that does not lead to the job's.
pub(super) struct Mismatch {
    pub(super) found: String,
    pub(super) wanted: String,
}

impl Mismatch {
    pub(super) fn new(found: &str, wanted: &str) -> Self {
        Self {
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        }
    }
}

/// Factor and offset from the site's unit to the job's.
fn conversion(unit: &str, mapping: &ColumnMapping) -> Result<(f64, f64), Mismatch> {
    let Some(found) = mapping.unit.as_deref() else {
        return Ok((1.0, 0.0));
    };
    if found == unit {
        return Ok((1.0, 0.0));
    }
    match mapping.conversions.iter().find(|way| way.to == unit) {
        Some(way) => Ok((way.factor, way.offset)),
        None if unit.is_empty() => Err(Mismatch::new(
            &format!("the unit {found:?}"),
            "no unit, as the job declares none",
        )),
        None => Err(Mismatch::new(
            &format!("the unit {found:?}"),
            &format!("the unit {unit:?}, or a conversion to it in site.toml"),
        )),
    }
}
