//! Files of results. A table is two of them: its rows as CSV, and what its columns are, as W3C's CSV on the Web has it
//! (www.w3.org/TR/tabular-metadata).

use protocol::cohort::{CohortSpecification, Feature, OutcomeSpecification};
use protocol::method::card::settings::levels;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Added to the name of a table, it names the file of its columns, where readers look for it.
const SIDECAR: &str = "-metadata.json";
/// At the beginning of a line a reader of CSV on the Web takes it for that of a remark, so it is quoted.
const REMARK: u8 = b'#';

/// A file of results: its name, and what it holds or why there is nothing.
#[derive(Debug)]
pub struct File {
    name: &'static str,
    content: io::Result<Content>,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    Table(Box<CsvTable>),
}

impl File {
    /// A file that no table is.
    #[must_use]
    pub fn bytes(name: &'static str, bytes: io::Result<Vec<u8>>) -> Self {
        let content = bytes.map(Content::Bytes);
        Self { name, content }
    }

    /// A table.
    #[must_use]
    pub fn table(name: &'static str, table: io::Result<CsvTable>) -> Self {
        let content = table.map(|table| Content::Table(Box::new(table)));
        Self { name, content }
    }

    /// What is written: the names, and the bytes or why there are none.
    #[must_use]
    pub fn parts(self) -> Vec<(String, io::Result<Vec<u8>>)> {
        let Self { name, content } = self;
        match content {
            Ok(Content::Bytes(bytes)) => vec![(name.to_owned(), Ok(bytes))],
            Ok(Content::Table(table)) => match table.parts(name) {
                Ok(parts) => parts.map(|(name, bytes)| (name, Ok(bytes))).into(),
                Err(error) => vec![(name.to_owned(), Err(error))],
            },
            Err(error) => vec![(name.to_owned(), Err(error))],
        }
    }
}

/// What the numbers of a table are about.
#[derive(Debug, Clone, Copy)]
pub enum About<'c> {
    /// The course of the computation.
    Course,
    /// An outcome.
    Outcome(&'c OutcomeSpecification),
    /// An outcome, and the features that rows or columns are named after.
    Cohort(&'c CohortSpecification),
    /// Outcomes and features of a study.
    Study(&'c [(&'c str, &'c OutcomeSpecification)], &'c [Feature]),
}

/// Rows without a heading, for parts of a large table are made side by side.
#[derive(Debug)]
pub struct CsvRows(csv::Writer<Vec<u8>>);

impl CsvRows {
    /// No row.
    #[must_use]
    pub fn none() -> Self {
        let mut writer = csv::WriterBuilder::new();
        writer.has_headers(false).comment(Some(REMARK));
        Self(writer.from_writer(Vec::new()))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Where it has other cells than the one before.
    pub fn row<C: AsRef<[u8]>>(&mut self, cells: impl IntoIterator<Item = C>) -> io::Result<()> {
        Ok(self.0.write_record(cells)?)
    }

    /// As a file has them.
    ///
    /// # Errors
    /// None but for those of memory.
    pub fn into_bytes(self) -> io::Result<Vec<u8>> {
        self.0.into_inner().map_err(io::Error::other)
    }
}

/// A table in the making.
#[derive(Debug)]
pub struct CsvTable {
    rows: CsvRows,
    said: Map<String, Value>,
}

impl CsvTable {
    /// A table of these columns without a row, and what a row is.
    ///
    /// # Errors
    /// None but for columns that no CSV can have.
    pub fn new(title: &str, about: About<'_>, columns: &[Column]) -> io::Result<Self> {
        let mut rows = CsvRows::none();
        rows.row(columns.iter().map(|column| &column.name))?;
        let columns: Vec<Value> = columns.iter().map(Column::said).collect();
        let mut said = Map::new();
        said.insert("@context".to_owned(), json!("http://www.w3.org/ns/csvw"));
        said.insert("dc:title".to_owned(), json!(title));
        said.insert("tableSchema".to_owned(), json!({ "columns": columns }));
        let measured = about.measured();
        if !measured.is_empty() {
            said.insert("schema:variableMeasured".to_owned(), json!(measured));
        }
        Ok(Self { rows, said })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Where it has other cells than there are columns.
    pub fn row<C: AsRef<[u8]>>(&mut self, cells: impl IntoIterator<Item = C>) -> io::Result<()> {
        self.rows.row(cells)
    }

    /// Adds a row whose cells are the fields of an entry.
    ///
    /// # Errors
    /// Where it has other cells than there are columns.
    pub fn entry(&mut self, entry: impl Serialize) -> io::Result<()> {
        Ok(self.rows.0.serialize(entry)?)
    }

    /// Both files of a table of this name.
    ///
    /// # Errors
    /// None but for those of memory.
    pub fn parts(mut self, name: &str) -> io::Result<[(String, Vec<u8>); 2]> {
        self.said.insert("url".to_owned(), json!(name));
        let rows = self.rows.into_bytes()?;
        let mut said = serde_json::to_vec_pretty(&self.said)?;
        said.push(b'\n');
        Ok([(name.to_owned(), rows), (format!("{name}{SIDECAR}"), said)])
    }
}

impl CsvTable {
    /// Both files of a table at a path that somebody names.
    ///
    /// # Errors
    /// None but for those of memory.
    pub fn parts_at(self, path: &Path) -> io::Result<[(PathBuf, Vec<u8>); 2]> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let [(_, rows), (sidecar, said)] = self.parts(&name)?;
        Ok([
            (path.to_owned(), rows),
            (path.with_file_name(sidecar), said),
        ])
    }
}

/// A column: its heading, what its cells are, and what it says.
#[derive(Debug)]
pub struct Column {
    name: String,
    datatype: &'static str,
    description: String,
    unit: String,
    /// Texts that stand for a number that is not given, besides the empty one.
    withheld: Vec<String>,
    levels: Vec<Value>,
}

impl Column {
    /// Texts.
    pub fn text(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of("string", name, description)
    }

    /// Whole numbers.
    pub fn whole(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of("integer", name, description)
    }

    /// Numbers, each to the last bit of a double.
    pub fn number(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of("double", name, description)
    }

    /// Yes or no.
    pub fn truth(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of("boolean", name, description)
    }

    /// The patient of a row.
    #[must_use]
    pub fn patient() -> Self {
        Self::text(
            "patient",
            "identifier of the source, otherwise the place from 1",
        )
    }

    fn of(datatype: &'static str, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            datatype,
            description: description.into(),
            unit: String::new(),
            withheld: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// The same in a unit; none where that is empty.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        unit.clone_into(&mut self.unit);
        self
    }

    /// The same, in which this text stands for a number that is not given.
    #[must_use]
    pub fn withheld(mut self, text: String) -> Self {
        self.withheld.push(text);
        self
    }

    /// The same with the label of each value.
    #[must_use]
    pub fn levels<'l>(
        mut self,
        levels: impl IntoIterator<Item = (impl ToString, &'l str)>,
    ) -> Self {
        let levels = levels.into_iter();
        self.levels = levels
            .map(|(value, label)| level(&value.to_string(), label))
            .collect();
        self
    }

    fn said(&self) -> Value {
        let mut said = Map::new();
        said.insert("titles".to_owned(), json!(self.name));
        said.insert("datatype".to_owned(), json!(self.datatype));
        said.insert("dc:description".to_owned(), json!(self.description));
        if !self.withheld.is_empty() {
            let mut missing = vec![String::new()];
            missing.extend(self.withheld.iter().cloned());
            said.insert("null".to_owned(), json!(missing));
        }
        with_unit_and_levels(said, &self.unit, &self.levels)
    }
}

impl About<'_> {
    fn measured(self) -> Vec<Value> {
        match self {
            Self::Course => Vec::new(),
            Self::Outcome(own) => vec![outcome(&own.column, own)],
            Self::Cohort(own) => [outcome(&own.outcome.column, &own.outcome)]
                .into_iter()
                .chain(own.features.iter().map(feature))
                .collect(),
            Self::Study(outcomes, features) => outcomes
                .iter()
                .map(|(name, own)| outcome(name, own))
                .chain(features.iter().map(feature))
                .collect(),
        }
    }
}

fn outcome(name: &str, own: &OutcomeSpecification) -> Value {
    let groups = own.kind.groups();
    let labelled = groups
        .iter()
        .map(|group| level(group, own.group_label(group)));
    let levels: Vec<Value> = labelled.collect();
    measured(name, &own.label, own.unit_in_words(), &levels)
}

fn feature(own: &Feature) -> Value {
    let values = levels(&own.kind).unwrap_or_default();
    let labelled = values
        .iter()
        .map(|value| level(value, own.level_label(value)));
    let levels: Vec<Value> = labelled.collect();
    measured(&own.name, &own.label, own.unit(), &levels)
}

/// What is measured, in the words of schema.org.
fn measured(name: &str, label: &str, unit: &str, levels: &[Value]) -> Value {
    let mut said = Map::new();
    said.insert("schema:propertyID".to_owned(), json!(name));
    said.insert("schema:name".to_owned(), json!(label));
    with_unit_and_levels(said, unit, levels)
}

fn level(value: &str, label: &str) -> Value {
    json!({ "schema:value": value, "schema:name": label })
}

fn with_unit_and_levels(mut said: Map<String, Value>, unit: &str, levels: &[Value]) -> Value {
    if !unit.is_empty() {
        said.insert("schema:unitText".to_owned(), json!(unit));
    }
    if !levels.is_empty() {
        said.insert("schema:valueReference".to_owned(), json!(levels));
    }
    Value::Object(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> CsvTable {
        let columns = [
            Column::patient(),
            Column::number("time (d)", "time").unit("d"),
            Column::whole("count", "counted").withheld("few".to_owned()),
        ];
        CsvTable::new("A table", About::Course, &columns).unwrap()
    }

    #[test]
    fn a_patient_whose_name_looks_like_a_remark_stays_a_row() {
        let mut table = table();
        table.row(["#7", "1.5", "few"]).unwrap();
        let [(name, rows), _] = table.parts("t.csv").unwrap();
        assert_eq!(name, "t.csv");
        assert_eq!(rows, b"patient,time (d),count\n\"#7\",1.5,few\n");
    }

    #[test]
    fn the_sidecar_says_what_each_column_is() {
        let [_, (name, said)] = table().parts("t.csv").unwrap();
        assert_eq!(name, "t.csv-metadata.json");
        let said: Value = serde_json::from_slice(&said).unwrap();
        let columns = &said["tableSchema"]["columns"];
        assert_eq!(said["url"], "t.csv");
        assert_eq!(columns[0]["datatype"], "string");
        assert_eq!(columns[1]["schema:unitText"], "d");
        assert_eq!(columns[2]["null"], json!(["", "few"]));
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        assert!(table().row(["7", "1.5"]).is_err());
    }
}
