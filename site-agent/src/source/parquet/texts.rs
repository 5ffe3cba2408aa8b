//! The first rows of a Parquet file as text, for a look at a table of which nobody has said how it reads.

use super::arrow_schema::{Hint, hints};
use super::cells::ColumnCells;
use super::kind::Kind;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;

/// A column as a CSV file would have it.
pub(in crate::source) struct TextColumn {
    pub(in crate::source) name: String,
    /// Of a type that is not read its name.
    pub(in crate::source) values: Result<Vec<String>, &'static str>,
}

/// At most `rows_max` rows of all columns; none where the file is no whole Parquet file.
pub(in crate::source) fn texts(file: File, rows_max: usize) -> Option<Vec<TextColumn>> {
    let file = SerializedFileReader::new(file).ok()?;
    let hints = hints(&file)?;
    let schema = file.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields().iter().enumerate();
    let columns = fields.map(|(index, field)| {
        let hint = hints.get(index).copied().unwrap_or(Hint::None);
        let values = match Kind::of(field, hint) {
            Err(kind) => Err(kind),
            Ok(kind) => {
                let mut leaves = 0..schema.num_columns();
                let leaf = leaves.find(|leaf| schema.get_column_root_idx(*leaf) == index)?;
                Ok(column(&file, (leaf, kind), rows_max)?)
            }
        };
        let name = field.name().to_owned();
        Some(TextColumn { name, values })
    });
    columns.collect()
}

fn column(
    file: &SerializedFileReader<File>,
    (leaf, kind): (usize, Kind),
    rows_max: usize,
) -> Option<Vec<String>> {
    let mut values = Vec::new();
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index).ok()?;
        let rows = usize::try_from(group.metadata().num_rows()).ok()?;
        let count = rows.min(rows_max - values.len());
        let cells = ColumnCells::new(&*group, leaf, kind)?.read(count)?;
        let text = |row| String::from_utf8(cells.field(row).to_text()).ok();
        for row in 0..count {
            values.push(text(row)?);
        }
    }
    Some(values)
}
