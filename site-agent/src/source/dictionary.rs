//! A site's dictionary as text: the tables `[columns.<name>]` with `range`, `levels`, `missing` and
//! `complete`, to be reviewed and pasted into site.toml.

use crate::config::{ColumnMapping, DeclaredRange, EVERY_OTHER};
use protocol::cohort::Transform;
use protocol::cohort::{Feature, FeatureKind, Impute, OutcomeKind, OutcomeSpecification};
use protocol::job::Job;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::Path;
use time::{Date, Duration};

/// Days of 150 years, the greatest plausible age.
const AGE_DAYS_MAX: i64 = 54_786;

/// Above the tables in a file.
const HEAD: &str = "\
# The dictionary of this site, made of its data. Look at every line marked `review`; then put the tables
# into site.toml, each in place of the one of the same name.

";

/// What a site declares of its columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dictionary {
    columns: BTreeMap<String, Entry>,
}

/// One column, with what its people should look at.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Entry {
    pub(super) mapping: ColumnMapping,
    pub(super) review: Vec<String>,
    /// What somebody has to answer before the file can be used.
    pub(super) open: Option<String>,
}

impl Dictionary {
    /// What `job` takes for granted, or its study, for a site that agrees with all of it.
    #[must_use]
    pub fn of_job(job: &Job) -> Self {
        let mut dictionary = Self::default();
        let study = job.study.as_deref();
        let features = study.map_or(&job.cohort.features, |study| &study.features);
        for feature in features {
            dictionary.add(&feature.name, of_feature(feature));
        }
        match study {
            None => dictionary.add_outcome(&job.cohort.outcome),
            Some(study) => {
                let outcomes = study.outcomes.iter();
                outcomes.for_each(|one| dictionary.add_outcome(&one.specification));
            }
        }
        dictionary
    }

    fn add_outcome(&mut self, outcome: &OutcomeSpecification) {
        let column = &outcome.column;
        let mut add = |name: &str, mapping| {
            let missing = outcome.missing.clone();
            self.add(name, ColumnMapping { missing, ..mapping });
        };
        match &outcome.kind {
            OutcomeKind::Binary { positive, negative } => add(column, classes(positive, negative)),
            OutcomeKind::Categorical { levels } => add(column, listed(levels)),
            OutcomeKind::Numeric => add(column, ColumnMapping::default()),
            OutcomeKind::Survival {
                event,
                event_values,
                ..
            } => {
                add(column, ColumnMapping::default());
                add(event, classes(event_values, &[]));
            }
        }
    }

    fn add(&mut self, name: &str, mapping: ColumnMapping) {
        let entry = Entry {
            mapping,
            ..Entry::default()
        };
        self.put(name, entry);
    }

    pub(super) fn put(&mut self, name: &str, entry: Entry) {
        self.columns.insert(name.to_owned(), entry);
    }

    /// Puts what is known of a column besides before what its values say.
    pub(super) fn join(&mut self, name: &str, entry: Entry) {
        let Entry { review, open, .. } = &entry;
        match self.columns.get_mut(name) {
            Some(surveyed) => {
                surveyed.review.splice(0..0, review.clone());
                surveyed.open.clone_from(open);
            }
            None => self.put(name, entry),
        }
    }

    /// The questions that are left.
    pub(super) fn open(&self) -> impl Iterator<Item = String> + '_ {
        self.columns.values().filter_map(|entry| entry.open.clone())
    }

    /// Writes it into a file that only its owner may read: beside, then renamed.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        write!(file, "{HEAD}{self}")?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    /// What its people should look at, one sentence each.
    pub fn review(&self) -> impl Iterator<Item = String> + '_ {
        let columns = self.columns.iter();
        columns.flat_map(|(name, entry)| {
            let review = entry.review.iter();
            review.map(move |sentence| format!("{name}: {sentence}"))
        })
    }
}

impl Serialize for Dictionary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns: Vec<&String> = self.columns.keys().collect();
        let review: Vec<String> = self.review().collect();
        let (text, open) = (self.to_string(), self.open().collect::<Vec<String>>());
        let said =
            serde_json::json!({"columns": columns, "text": text, "review": review, "open": open});
        said.serialize(serializer)
    }
}

fn of_feature(feature: &Feature) -> ColumnMapping {
    let mapping = match &feature.kind {
        FeatureKind::Numeric {
            range, transform, ..
        } => {
            // A logarithm is taken of 0 and more.
            let range = match (range, transform) {
                (None, Transform::Log) => Some((0.0, f64::INFINITY)),
                (range, _) => *range,
            };
            ColumnMapping {
                range: range.map(|(low, high)| DeclaredRange::Numbers { low, high }),
                ..ColumnMapping::default()
            }
        }
        FeatureKind::Categorical { levels } | FeatureKind::Ordinal { levels } => listed(levels),
        FeatureKind::Binary { positive, negative } => listed(&[negative.clone(), positive.clone()]),
        FeatureKind::Age { at } => ColumnMapping {
            range: lifetimes(at),
            ..ColumnMapping::default()
        },
    };
    ColumnMapping {
        missing: feature.missing.clone(),
        complete: feature.impute == Impute::Refuse,
        ..mapping
    }
}

/// Days on which patients of a plausible age on the day `at` may have been born.
fn lifetimes(at: &str) -> Option<DeclaredRange> {
    let last = super::field::date_of_text(at.as_bytes(), "YYYY-MM-DD")?;
    let first = last
        .checked_sub(Duration::days(AGE_DAYS_MAX))
        .unwrap_or(Date::MIN);
    Some(DeclaredRange::Days { first, last })
}

fn listed(levels: &[String]) -> ColumnMapping {
    let same = |level: &String| (level.clone(), level.clone());
    ColumnMapping {
        levels: Some(levels.iter().map(same).collect()),
        order: levels.to_vec(),
        ..ColumnMapping::default()
    }
}

/// Two classes, each of several codes; where `negative` has none, of every other.
fn classes(positive: &[String], negative: &[String]) -> ColumnMapping {
    let mut levels = BTreeMap::new();
    for all in [positive, negative] {
        let Some(first) = all.first() else {
            continue;
        };
        levels.extend(all.iter().map(|code| (code.clone(), first.clone())));
    }
    if negative.is_empty() {
        levels.insert(EVERY_OTHER.to_owned(), EVERY_OTHER.to_owned());
    }
    ColumnMapping {
        levels: Some(levels),
        ..ColumnMapping::default()
    }
}

impl fmt::Display for Dictionary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, entry) in &self.columns {
            let Entry {
                mapping,
                review,
                open,
            } = entry;
            let lines = lines(mapping);
            if lines.is_empty() && review.is_empty() && open.is_none() {
                continue;
            }
            writeln!(formatter, "[columns.{}]", quoted(name))?;
            for sentence in review {
                writeln!(formatter, "# review: {sentence}")?;
            }
            if let Some(question) = open {
                writeln!(formatter, "open = {}", quoted(question))?;
            }
            writeln!(formatter, "{lines}")?;
        }
        Ok(())
    }
}

/// The keys of one column.
fn lines(mapping: &ColumnMapping) -> String {
    let mut lines = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(lines, "{key} = {value}");
    };
    if let Some(column) = &mapping.column {
        line("column", quoted(column));
    }
    if let Some(unit) = &mapping.unit {
        line("unit", quoted(unit));
    }
    if !mapping.conversions.is_empty() {
        let ways = mapping.conversions.iter().map(|way| {
            let to = quoted(&way.to);
            format!(
                "{{ to = {to}, factor = {:?}, offset = {:?} }}",
                way.factor, way.offset
            )
        });
        line(
            "convert",
            format!("[{}]", ways.collect::<Vec<_>>().join(", ")),
        );
    }
    match &mapping.range {
        Some(DeclaredRange::Numbers { low, high }) => line("range", format!("[{low:?}, {high:?}]")),
        Some(DeclaredRange::Days { first, last }) => {
            line("range", format!("[\"{first}\", \"{last}\"]"));
        }
        None => {}
    }
    if let Some(levels) = &mapping.levels {
        let is_list = levels.iter().all(|(code, level)| code == level)
            && mapping.order.len() == levels.len()
            && !levels.contains_key(EVERY_OTHER);
        if is_list {
            line("levels", list(mapping.order.iter()));
        } else {
            line("levels", table(levels));
            if !mapping.order.is_empty() {
                line("order", list(mapping.order.iter()));
            }
        }
    }
    if !mapping.missing.is_empty() {
        line("missing", list(mapping.missing.iter()));
    }
    if mapping.complete {
        line("complete", "true".to_owned());
    }
    if let Some(format) = &mapping.date_format {
        line("date_format", quoted(format.as_str()));
    }
    lines
}

fn table(levels: &BTreeMap<String, String>) -> String {
    let entries = levels
        .iter()
        .map(|(code, level)| format!("{} = {}", quoted(code), quoted(level)));
    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
}

pub(super) fn list<'t>(texts: impl Iterator<Item = &'t String>) -> String {
    let texts: Vec<String> = texts.map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A TOML string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
