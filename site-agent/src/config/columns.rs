//! `[columns.<name>]`: how this site's columns read in the job's terms. No two hospitals code alike.

use super::source::{DateFormat, date_format};
use protocol::document::Section;
use std::collections::BTreeMap;

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
    /// From the source's codes to the job's levels. Where it is given, other codes are problems.
    pub levels: Option<BTreeMap<String, String>>,
    /// Values that mean missing in this column, beside the empty field.
    pub missing: Vec<String>,
    /// How dates are written in this column; none means the source's format.
    pub date_format: Option<DateFormat>,
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
    let levels = section.table("levels", |levels| {
        Some(levels.entries::<String>().into_iter().collect())
    });
    ColumnMapping {
        column,
        unit,
        conversions,
        levels,
        missing: section.or("missing", Vec::new()),
        date_format: date_format(section),
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
