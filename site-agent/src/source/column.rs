//! Reads one feature of every patient, in the job's unit and levels.

#[cfg(test)]
mod tests;

use super::asked::{AskedCodes, Holder};
use super::field::Field;
use super::found::FoundValues;
use super::frozen::fields::Span;
use super::intake::{Numbers, Pass};
use super::misfit::Cause;
use super::missing::Missing;
use super::problem::{CohortProblem, Fault, Faults};
use super::terms::{Agreement, Terms};
use super::value::{Kind, Mismatch, Read, conversion_of};
use crate::config::{ColumnMapping, DecimalMark, SourceConfig};
use ndarray::Array1;
use protocol::cohort::{Feature, FeatureKind, Impute};
use protocol::limits::AGE_MAX;
use similarity::cohort::{Column, MISSING_LEVEL, Values};

/// One feature while it is being read.
#[derive(Clone)]
pub(super) struct ColumnReader {
    feature: Feature,
    /// The source's name of the column.
    source_column: String,
    kind: Kind,
    missing: Missing,
    /// Whether a missing value is a fault.
    complete: bool,
    cell_min: u64,
    asked: AskedCodes,
    /// Of a column whose levels the site does not declare, where the site's word counts.
    found: Option<FoundValues>,
    faults: Faults,
    /// What differs from the job's word, and changes nothing.
    remarks: Faults,
    values: Unfinished,
    pass: Pass,
}

#[derive(Clone)]
enum Unfinished {
    Numbers(Vec<f64>),
    Codes(Vec<u32>),
}

impl ColumnReader {
    /// Prepares to read `feature` as `source` declares its column; `gridded` where the job counts it on
    /// a grid.
    ///
    /// # Errors
    /// Every declaration of the site that does not lead to the job's.
    pub(super) fn new(
        feature: &Feature,
        source: &SourceConfig,
        terms: Terms,
        gridded: bool,
    ) -> Result<Self, Vec<Mismatch>> {
        let plain = ColumnMapping::default();
        let mapping = source.columns.get(&feature.name).unwrap_or(&plain);
        let mut mismatches = Vec::new();
        let conversion = conversion_of(feature, mapping, &mut mismatches);
        let kind = Kind::new(feature, source, mapping, terms, conversion);
        let agreement = Agreement {
            feature,
            mapping,
            gridded,
        };
        if let Terms::Site { .. } = terms {
            mismatches.extend(agreement.mismatches(conversion));
        }
        let kind = match kind {
            Ok(kind) if mismatches.is_empty() => kind,
            Ok(_) => return Err(mismatches),
            Err(mismatch) => {
                mismatches.push(mismatch);
                return Err(mismatches);
            }
        };
        let decimal = source.decimal;
        let declared = source.missing.iter().chain(&mapping.missing);
        let (own, asked, cell_min, complete) = match terms {
            Terms::Job => (
                Missing::new(declared.chain(&feature.missing), decimal),
                AskedCodes::new(std::iter::empty(), decimal, 1),
                1,
                feature.impute == Impute::Refuse,
            ),
            Terms::Site { cell_min } => {
                let own = Missing::new(declared, decimal);
                let more = feature.missing.iter();
                let more = more.filter(|code| {
                    !own.is_field(&Field::Text(code.as_bytes()), DecimalMark::Point)
                });
                let asked = AskedCodes::new(more, decimal, cell_min);
                (own, asked, cell_min, mapping.complete)
            }
        };
        let undeclared = matches!(kind, Kind::Level(_)) && mapping.levels.is_none();
        Ok(Self {
            source_column: mapping
                .column
                .clone()
                .unwrap_or_else(|| feature.name.clone()),
            feature: feature.clone(),
            kind,
            missing: own,
            complete,
            cell_min,
            asked,
            found: (undeclared && terms != Terms::Job).then(|| FoundValues::new(cell_min)),
            faults: Faults::default(),
            remarks: Faults::default(),
            values: match feature.kind {
                FeatureKind::Categorical { .. } => Unfinished::Codes(Vec::new()),
                _ => Unfinished::Numbers(Vec::new()),
            },
            pass: Pass::Only,
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
        if let Some(value) = self.plain(field) {
            return self.values.push(Some(value));
        }
        let patient = match self.pass {
            Pass::Only => Some(self.values.len()),
            Pass::First => None,
            Pass::Second => return self.values.push(self.settled(&field)),
        };
        let holder = Holder { patient, row };
        let read = if self.missing.is_text(&field) {
            Ok(Read::missing())
        } else {
            self.kind.read(field, &self.missing)
        };
        let is_missing = read.as_ref().is_ok_and(|read| read.value.is_none());
        if let Ok(Read {
            value: None,
            remark,
        }) = &read
            && self.complete
        {
            self.faults.add(remark.unwrap_or(Fault::Missing), row);
        }
        let code = if is_missing {
            None
        } else {
            self.asked.find(&field)
        };
        let value = match read {
            Ok(Read { value, remark }) => {
                // Of a column that is to be complete it is a fault already.
                if let Some(remark) = remark.filter(|_| value.is_some() || !self.complete) {
                    self.remarks.add(remark, row);
                }
                value
            }
            // Whether it is a fault is decided when all is read.
            Err(Fault::UnlistedLevel(_)) if self.found.is_some() => {
                if let (Some(found), None) = (&mut self.found, code) {
                    found.unlisted(&field, row);
                }
                None
            }
            Err(fault) => {
                if code.is_none() {
                    self.faults.add(fault, row);
                }
                None
            }
        };
        if let (Some(found), Some(_)) = (&mut self.found, value) {
            found.listed(&field, holder);
        }
        if let Some(code) = code {
            // An unlisted level that few patients hold is missing anyway.
            let fault = (value.is_none() && self.found.is_none())
                .then(|| self.kind.fault(&field))
                .flatten();
            self.asked.note(code, holder, fault);
        }
        self.values.push(value);
    }

    /// The value of a field, by what was decided when all patients were read before.
    fn settled(&self, field: &Field<'_>) -> Option<f64> {
        let found = self.found.as_ref();
        let is_missing = self.missing.is_text(field) || self.asked.means_missing(field);
        if is_missing || found.is_some_and(|found| found.is_rare(field)) {
            return None;
        }
        let read = self.kind.read(*field, &self.missing);
        read.ok().and_then(|read| read.value)
    }

    /// The value of a number of which there is nothing to note, and that is read in next to no time.
    fn plain(&self, field: Field<'_>) -> Option<f64> {
        let Kind::Number(kind) = &self.kind else {
            return None;
        };
        let field = Field::Number(field.short_number(kind.decimal)?);
        match kind.read(field, &self.missing) {
            Ok(Read {
                value,
                remark: None,
            }) if self.asked.find(&field).is_none() => value,
            Ok(_) | Err(_) => None,
        }
    }

    /// Takes the numbers of as many patients; false, and none of them, where there is anything to note of one.
    pub(super) fn take_all(&mut self, numbers: &Numbers<'_>) -> bool {
        let span = Span::of(numbers.values, numbers.places.is_some());
        let takes_all = span.is_some_and(|span| self.takes_all(span));
        let (Kind::Number(kind), Unfinished::Numbers(values)) = (&self.kind, &mut self.values)
        else {
            return false;
        };
        if takes_all {
            let value = |place: usize| kind.value(numbers.values[place]);
            match numbers.places {
                None => values.extend((0..numbers.values.len()).map(value)),
                Some(places) => {
                    values.extend(places.iter().map(|place| place.map_or(f64::NAN, value)));
                }
            }
        }
        takes_all
    }

    /// Whether there is nothing to note of any number within a span. What is said of ranges holds between two numbers of which it
    /// holds, and no single number between them means missing.
    pub(super) fn takes_all(&self, span: Span) -> bool {
        let Span { least, most, .. } = span;
        let has_numbers = least <= most;
        let is_plain = |number| self.plain(Field::Number(number)).is_some();
        let is_coded =
            || self.missing.has_within(least, most) || self.asked.has_within(least, most);
        let takes_numbers = || is_plain(least) && is_plain(most) && !is_coded();
        (!has_numbers || takes_numbers()) && !(span.has_null && self.complete)
    }

    /// Makes room for so many more patients.
    pub(super) fn reserve(&mut self, patients: usize) {
        self.values.reserve(patients);
    }

    /// Makes room for so many patients in all, where there is room: the source may say more than it has.
    pub(super) fn expect(&mut self, patients: usize) {
        self.values.expect(patients);
    }

    /// Decides what can only be decided once all patients are read.
    pub(super) fn settle(&mut self) {
        let settled = self.asked.settle();
        for patient in settled.missing {
            self.values.forget(patient);
        }
        for (fault, row) in settled.faults {
            self.faults.add(fault, row);
        }
        for row in settled.ignored {
            self.remarks.add(Fault::RareCode, row);
        }
        let Some(found) = &mut self.found else {
            return;
        };
        let settled = found.settle();
        self.faults.extend(settled.unlisted);
        for patient in settled.rare_patients {
            self.values.forget(patient);
        }
        for row in settled.rare_rows {
            self.remarks.add(Fault::RareLevel, row);
        }
    }

    /// What was wrong, said of `source` whose rows are called `word`.
    pub(super) fn problems(&self, source: &str, word: &'static str) -> Vec<CohortProblem> {
        self.problems_of(&self.faults, source, word)
    }

    /// What differs from the job's word and changes nothing.
    pub(super) fn remarks(&self, source: &str, word: &'static str) -> Vec<CohortProblem> {
        self.problems_of(&self.remarks, source, word)
    }

    fn problems_of(&self, faults: &Faults, source: &str, word: &'static str) -> Vec<CohortProblem> {
        let problem = |(fault, rows)| {
            let column = Some(self.source_column.as_str());
            CohortProblem::of_column(
                source,
                &self.feature.name,
                column,
                Cause::Values,
                "",
                &self.wanted(fault),
            )
            .in_rows(fault, rows)
        };
        faults.rows(word).map(problem).collect()
    }

    /// Has the next patients read in a pass.
    pub(super) fn begin(&mut self, pass: Pass) {
        self.pass = pass;
    }

    /// The column of the patients who were read since it was taken before.
    pub(super) fn take(&mut self) -> Column {
        let values = match (&mut self.values, &self.feature.kind) {
            (Unfinished::Codes(codes), FeatureKind::Categorical { levels }) => {
                Values::Categorical {
                    codes: Array1::from_vec(std::mem::take(codes)),
                    levels: levels.clone(),
                }
            }
            (Unfinished::Codes(codes), _) => {
                let codes = std::mem::take(codes).into_iter();
                Values::Numeric(codes.map(f64::from).collect())
            }
            (Unfinished::Numbers(numbers), _) => {
                let mut numbers = std::mem::take(numbers);
                numbers.shrink_to_fit();
                Values::Numeric(Array1::from_vec(numbers))
            }
        };
        Column {
            name: self.feature.name.clone(),
            values,
        }
    }

    fn wanted(&self, fault: Fault) -> String {
        match (fault, &self.kind) {
            (Fault::Missing, _) => "a value, for the column is to be complete".to_owned(),
            (Fault::Negative, _) => "0 or more, for its logarithm is taken".to_owned(),
            (Fault::RareCode, _) => format!(
                "a code in missing of site.toml, or at least {} patients; it is read as a value",
                self.cell_min
            ),
            (Fault::RareLevel, _) => format!(
                "levels in site.toml, or at least {} patients; it counts as missing",
                self.cell_min
            ),
            (_, Kind::Level(levels)) => levels.wanted(),
            (_, Kind::Age { format, range, .. }) => match (fault, range) {
                (Fault::Implausible, Some((first, last))) => {
                    format!("a day from {first} to {last}{}", self.treated())
                }
                (Fault::Implausible, None) => {
                    format!("an age from 0 to {AGE_MAX} years{}", self.treated())
                }
                (Fault::BeyondJob, _) => {
                    format!(
                        "an age from 0 to {AGE_MAX} years; site.toml has no range, so the nearer end counts"
                    )
                }
                _ => format!("a date as {}", format.as_str()),
            },
            (Fault::Implausible, Kind::Number(kind)) => {
                let (low, high) = kind.declared.or(kind.asked).unwrap_or_default();
                format!("{low} to {high}{}{}", self.unit(" "), self.treated())
            }
            (Fault::BeyondJob, Kind::Number(kind)) => {
                let (low, high) = kind.asked.unwrap_or_default();
                format!(
                    "{low} to {high}{}; site.toml has no range, so the nearer end counts",
                    self.unit(" ")
                )
            }
            (_, Kind::Number(kind)) => match kind.decimal {
                DecimalMark::Point => format!("a number{}", self.unit(" in ")),
                DecimalMark::Comma => format!("a number{} with a decimal comma", self.unit(" in ")),
            },
        }
    }

    /// What becomes of a value outside of its range.
    fn treated(&self) -> &'static str {
        match self.complete {
            true => "",
            false => "; it counts as missing",
        }
    }

    fn unit(&self, before: &str) -> String {
        match &self.feature.kind {
            FeatureKind::Numeric { unit, .. } if !unit.is_empty() => format!("{before}{unit}"),
            _ => String::new(),
        }
    }
}

impl Unfinished {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Codes(codes) => codes.len(),
        }
    }

    fn reserve(&mut self, patients: usize) {
        match self {
            Self::Numbers(numbers) => numbers.reserve(patients),
            Self::Codes(codes) => codes.reserve(patients),
        }
    }

    fn expect(&mut self, patients: usize) {
        // Without the room it grows as patients come.
        let _ = match self {
            Self::Numbers(numbers) => numbers.try_reserve_exact(patients),
            Self::Codes(codes) => codes.try_reserve_exact(patients),
        };
    }

    #[inline]
    fn push(&mut self, value: Option<f64>) {
        match self {
            Self::Numbers(numbers) => numbers.push(value.unwrap_or(f64::NAN)),
            // Codes are counts of levels, exact in both types.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Self::Codes(codes) => {
                codes.push(value.map_or(MISSING_LEVEL, |code| code as u32));
            }
        }
    }

    fn forget(&mut self, patient: usize) {
        match self {
            Self::Numbers(numbers) => numbers[patient] = f64::NAN,
            Self::Codes(codes) => codes[patient] = MISSING_LEVEL,
        }
    }
}
