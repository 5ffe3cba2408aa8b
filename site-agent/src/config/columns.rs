//! `[columns.<name>]`: how this site's columns read in the job's terms. No two hospitals code alike.

use super::source::{DateFormat, date_format};
use protocol::document::{FromValue, Section};
use std::collections::BTreeMap;
use time::Date;
use time::macros::format_description;
use toml_span::value::Value;

/// In a table of levels, the code that stands for every other.
pub const EVERY_OTHER: &str = "*";

/// How one column of the source becomes one feature, or the outcome, of a job.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ColumnMapping {
    /// The column's name in the source; none means the job's own name.
    pub column: Option<String>,
    /// The unit of the source; none means the job's.
    pub unit: Option<String>,
    /// From the source's unit to units that jobs may ask for.
    pub conversions: Vec<Conversion>,
    /// From the source's codes to the job's levels. Where it is given, other codes are problems, unless
    /// [`EVERY_OTHER`] has a level.
    pub levels: Option<BTreeMap<String, String>>,
    /// The levels from lowest to highest, as a list of levels has them; empty where nothing is said of it.
    pub order: Vec<String>,
    /// The values that the column may have, in the source's unit; others are problems.
    pub range: Option<DeclaredRange>,
    /// Values that mean missing in this column, beside the empty field.
    pub missing: Vec<String>,
    /// Whether no patient lacks a value; a missing one is a problem then.
    pub complete: bool,
    /// How dates are written in this column; none means the source's format.
    pub date_format: Option<DateFormat>,
}

/// The values that a column may have, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DeclaredRange {
    /// Numbers in the source's unit; an end may be infinite.
    Numbers {
        /// The least.
        low: f64,
        /// The greatest.
        high: f64,
    },
    /// Days.
    Days {
        /// The first.
        first: Date,
        /// The last.
        last: Date,
    },
}

/// `levels` as a file has them: a list of codes that are the job's levels, or a table from codes to levels.
struct DeclaredLevels {
    codes: BTreeMap<String, String>,
    order: Vec<String>,
}

/// `value * factor + offset` is the value in the unit `to`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Conversion {
    /// The unit that a job asks for.
    pub to: String,
    /// Not 0.
    pub factor: f64,
    /// In the unit `to`.
    pub offset: f64,
}

/// Reads the table `columns`, where it is present.
pub(super) fn read(root: &mut Section<'_, '_>) -> BTreeMap<String, ColumnMapping> {
    root.table("columns", |section| {
        let columns = section.named_tables(|name, column| Some((name.to_owned(), mapping(column))));
        Some(columns.into_iter().collect())
    })
    .unwrap_or_default()
}

fn mapping(section: &mut Section<'_, '_>) -> ColumnMapping {
    let column = section.optional("column");
    let unit: Option<String> = section.optional("unit");
    let conversions = section.tables("convert", conversion);
    if unit.is_none() && !conversions.is_empty() {
        section.problem("unit", "no key", "the unit that convert starts from");
    }
    if let Some(question) = section.optional::<String>("open") {
        let found = format!("an open question: {question}");
        section.problem(
            "open",
            &found,
            "its answer in this table, and no line `open`",
        );
    }
    let levels: Option<DeclaredLevels> = section.optional("levels");
    let (codes, listed) = match levels {
        Some(DeclaredLevels { codes, order }) => (Some(codes), order),
        None => (None, Vec::new()),
    };
    ColumnMapping {
        column,
        unit,
        conversions,
        levels: codes,
        order: section.or("order", listed),
        range: section.optional("range"),
        missing: section.or("missing", Vec::new()),
        complete: section.or("complete", false),
        date_format: date_format(section),
    }
}

impl FromValue for DeclaredLevels {
    const WANTED: &'static str = "a list of levels, one at least, or a table from codes to levels";

    fn from_value(value: &Value<'_>) -> Option<Self> {
        if value.as_array().is_some() {
            let order = Vec::<String>::from_value(value)?;
            if order.is_empty() {
                return None;
            }
            let same = |level: &String| (level.clone(), level.clone());
            return Some(Self {
                codes: order.iter().map(same).collect(),
                order,
            });
        }
        let entries = value.as_table()?.iter();
        let entry = |(code, level): (&toml_span::value::Key<'_>, &Value<'_>)| {
            Some((code.name.to_string(), String::from_value(level)?))
        };
        let codes: BTreeMap<String, String> = entries.map(entry).collect::<Option<_>>()?;
        (!codes.is_empty()).then_some(Self {
            codes,
            order: Vec::new(),
        })
    }
}

impl FromValue for DeclaredRange {
    const WANTED: &'static str = "[lowest, highest], of numbers or of days as YYYY-MM-DD";

    fn from_value(value: &Value<'_>) -> Option<Self> {
        if let Some(days) = Vec::<String>::from_value(value) {
            let format = format_description!("[year]-[month]-[day]");
            let [first, last] = days.as_slice() else {
                return None;
            };
            let day = |text: &str| Date::parse(text, &format).ok();
            let (first, last) = (day(first)?, day(last)?);
            return (first <= last).then_some(Self::Days { first, last });
        }
        let ends = Vec::<f64>::from_value(value)?;
        match ends.as_slice() {
            [low, high] if low <= high => Some(Self::Numbers {
                low: *low,
                high: *high,
            }),
            _ => None,
        }
    }
}

fn conversion(section: &mut Section<'_, '_>) -> Option<Conversion> {
    let to = section.required("to");
    if !section.has("factor") {
        section.required::<f64>("factor");
    }
    let factor = section.number("factor", 1.0, "a number other than 0", |x| x != 0.0);
    let offset = section.number("offset", 0.0, "a number", |_| true);
    Some(Conversion {
        to: to?,
        factor,
        offset,
    })
}
