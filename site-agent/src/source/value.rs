//! From a field to a value, in the job's unit and levels.

use super::field::{Field, date_of_text};
use super::level::Levels;
use super::misfit::Structure;
use super::missing::Missing;
use super::problem::Fault;
use super::terms::Terms;
use crate::config::{ColumnMapping, DateFormat, DecimalMark, DeclaredRange, SourceConfig};
use protocol::cohort::{Feature, FeatureKind, Transform, age, is_plausible};
use protocol::limits::AGE_MAX;
use time::Date;

/// How a field of a column is read.
#[derive(Clone)]
pub(super) enum Kind {
    Number(NumberKind),
    Level(Levels),
    Age {
        at: Date,
        format: DateFormat,
        /// Days outside are missing.
        range: Option<(Date, Date)>,
        judged: Judged,
    },
}

#[derive(Clone)]
pub(super) struct NumberKind {
    pub(super) decimal: DecimalMark,
    factor: f64,
    offset: f64,
    /// The site's own range, in the site's unit.
    pub(super) declared: Option<(f64, f64)>,
    /// The job's range, in the job's unit.
    pub(super) asked: Option<(f64, f64)>,
    judged: Judged,
    negative_allowed: bool,
}

/// What a value is that is beyond the job's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Missing,
    Value,
}

/// A field, read.
pub(super) struct Read {
    pub(super) value: Option<f64>,
    pub(super) remark: Option<Fault>,
}

impl Read {
    pub(super) fn missing() -> Self {
        Self {
            value: None,
            remark: None,
        }
    }

    /// A value outside of the range by which it is judged.
    fn implausible() -> Self {
        Self {
            value: None,
            remark: Some(Fault::Implausible),
        }
    }
}

impl Kind {
    /// For `feature` as `source` and `mapping` declare its column.
    ///
    /// # Errors
    /// Levels of the site that do not lead to the job's.
    pub(super) fn new(
        feature: &Feature,
        source: &SourceConfig,
        mapping: &ColumnMapping,
        terms: Terms,
        (factor, offset): (f64, f64),
    ) -> Result<Self, Mismatch> {
        let judged = match terms {
            Terms::Job => Judged::Missing,
            Terms::Site { .. } => Judged::Value,
        };
        let codes = mapping.levels.as_ref();
        Ok(match &feature.kind {
            FeatureKind::Numeric {
                range, transform, ..
            } => Self::Number(NumberKind {
                decimal: source.decimal,
                factor,
                offset,
                declared: match mapping.range {
                    Some(DeclaredRange::Numbers { low, high }) => Some((low, high)),
                    _ => None,
                },
                asked: *range,
                judged,
                negative_allowed: *transform == Transform::None,
            }),
            FeatureKind::Categorical { levels } | FeatureKind::Ordinal { levels } => {
                Self::Level(Levels::new(levels, codes)?)
            }
            FeatureKind::Binary { positive, negative } => {
                Self::Level(Levels::new(&[negative.clone(), positive.clone()], codes)?)
            }
            FeatureKind::Age { at } => Self::Age {
                at: date_of_text(at.as_bytes(), "YYYY-MM-DD").ok_or_else(|| {
                    let found = "a job whose `at` is no day";
                    Mismatch::of(Structure::Type, found, "YYYY-MM-DD")
                })?,
                format: mapping
                    .date_format
                    .clone()
                    .unwrap_or_else(|| source.date_format.clone()),
                range: match mapping.range {
                    Some(DeclaredRange::Days { first, last }) => Some((first, last)),
                    _ => None,
                },
                judged,
            },
        })
    }

    /// The value in the job's unit, or its level's code; none where it is missing.
    #[inline]
    pub(super) fn read(&self, field: Field<'_>, missing: &Missing) -> Result<Read, Fault> {
        match self {
            Self::Number(kind) => kind.read(field, missing),
            Self::Level(levels) => {
                if missing.is_field(&field, DecimalMark::Point) {
                    return Ok(Read::missing());
                }
                let code = levels.code(field);
                let code = code.ok_or_else(|| Fault::UnlistedLevel(field.shape()))?;
                Ok(Read {
                    value: Some(f64::from(code)),
                    remark: None,
                })
            }
            Self::Age {
                at,
                format,
                range,
                judged,
            } => {
                let born = field.date(format).map_err(Fault::NotDate)?;
                if range.is_some_and(|(first, last)| born < first || born > last) {
                    return Ok(Read::implausible());
                }
                let age = age(*at, born);
                let beyond = !is_plausible(age);
                if beyond && *judged == Judged::Missing {
                    return Ok(Read::implausible());
                }
                Ok(Read {
                    value: Some(age.clamp(0.0, AGE_MAX)),
                    remark: beyond.then_some(Fault::BeyondJob),
                })
            }
        }
    }

    /// What is wrong with `field` where it means no missing value.
    pub(super) fn fault(&self, field: &Field<'_>) -> Option<Fault> {
        let nothing = Missing::new(std::iter::empty(), DecimalMark::Point);
        self.read(*field, &nothing).err()
    }
}

impl NumberKind {
    fn converted(&self, number: f64) -> f64 {
        number * self.factor + self.offset
    }

    /// A number in the job's unit, in the job's range.
    fn nearest(&self, number: f64) -> f64 {
        let nearest = |(low, high): (f64, f64)| number.clamp(low, high);
        self.asked.map_or(number, nearest)
    }

    /// What is read of a number of which there is nothing to note.
    #[inline]
    pub(super) fn value(&self, number: f64) -> f64 {
        self.nearest(self.converted(number))
    }

    /// The number of a field, in the job's unit.
    #[inline]
    pub(super) fn read(&self, field: Field<'_>, missing: &Missing) -> Result<Read, Fault> {
        let number = field.number(self.decimal).map_err(Fault::NotNumber)?;
        if missing.is_number(number) {
            return Ok(Read::missing());
        }
        let outside = |(low, high): (f64, f64), number: f64| number < low || number > high;
        if self.declared.is_some_and(|range| outside(range, number)) {
            return Ok(Read::implausible());
        }
        let number = self.converted(number);
        let beyond = self.asked.is_some_and(|range| outside(range, number));
        if !number.is_finite() || (beyond && self.judged == Judged::Missing) {
            return Ok(Read::implausible());
        }
        if number < 0.0 && !self.negative_allowed {
            return Err(Fault::Negative);
        }
        // Within its own range, a site's value is beyond the job's by rounding only.
        let remark = beyond && self.declared.is_none();
        Ok(Read {
            value: Some(self.nearest(number)),
            remark: remark.then_some(Fault::BeyondJob),
        })
    }
}

/// A declaration of the site that does not lead to the job's.
pub(super) struct Mismatch {
    pub(super) structure: Structure,
    pub(super) found: String,
    pub(super) wanted: String,
}

impl Mismatch {
    pub(super) fn of(structure: Structure, found: &str, wanted: &str) -> Self {
        Self {
            structure,
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        }
    }
}

/// The features in a unit of which a source declares none, each with that unit: a number in another unit would pass as
/// one in this.
#[must_use]
pub fn undeclared_units(source: &SourceConfig, features: &[Feature]) -> Vec<String> {
    let declares = |name: &str| {
        source
            .columns
            .get(name)
            .is_some_and(|one| one.unit.is_some())
    };
    let undeclared = features.iter().filter_map(|feature| match &feature.kind {
        FeatureKind::Numeric { unit, .. } if !unit.is_empty() && !declares(&feature.name) => {
            Some(format!("{} ({unit})", feature.name))
        }
        FeatureKind::Numeric { .. }
        | FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Binary { .. }
        | FeatureKind::Age { .. } => None,
    });
    undeclared.collect()
}

/// Factor and offset from the site's unit to the job's; none needed but of numbers.
pub(super) fn conversion_of(
    feature: &Feature,
    mapping: &ColumnMapping,
    mismatches: &mut Vec<Mismatch>,
) -> (f64, f64) {
    let FeatureKind::Numeric { unit, .. } = &feature.kind else {
        return (1.0, 0.0);
    };
    conversion(unit, mapping).unwrap_or_else(|mismatch| {
        mismatches.push(mismatch);
        (1.0, 0.0)
    })
}

/// Factor and offset from the site's unit to the job's.
fn conversion(unit: &str, mapping: &ColumnMapping) -> Result<(f64, f64), Mismatch> {
    let Some(found) = mapping.unit.as_deref() else {
        return Ok((1.0, 0.0));
    };
    if found == unit {
        return Ok((1.0, 0.0));
    }
    let mismatch =
        |wanted: &str| Mismatch::of(Structure::Unit, &format!("the unit {found:?}"), wanted);
    match mapping.conversions.iter().find(|way| way.to == unit) {
        Some(way) => Ok((way.factor, way.offset)),
        None if unit.is_empty() => Err(mismatch("no unit, as the job declares none")),
        None => Err(mismatch(&format!(
            "the unit {unit:?}, or a conversion to it in site.toml"
        ))),
    }
}
