//! Tables as Markdown and CSV, and files that appear whole or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::ExperimentError;

/// One table: cells by row under their header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows.
    pub title: String,
    /// What was done, one line each.
    pub notes: Vec<String>,
    /// Names of the columns.
    pub header: Vec<String>,
    /// As many cells as the header has.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Markdown: heading, table, notes.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = self.header.iter().map(|_| "---".to_owned()).collect();
        let mut text = format!("## {}\n\n{}{}", self.title, line(&self.header), line(&rule));
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text.push('\n');
        for note in &self.notes {
            text.push_str(&format!("* {note}\n"));
        }
        text
    }

    /// CSV of several tables with one header, each row led by its table's title.
    #[must_use]
    pub fn csv(sheets: &[Self]) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let in_memory = "text in memory can be written";
        if let Some(first) = sheets.first() {
            let names = first.header.iter().map(String::as_str);
            let line = std::iter::once("table").chain(names);
            writer.write_record(line).expect(in_memory);
        }
        for sheet in sheets {
            for row in &sheet.rows {
                let cells = row.iter().map(String::as_str);
                let line = std::iter::once(sheet.title.as_str()).chain(cells);
                writer.write_record(line).expect(in_memory);
            }
        }
        let bytes = writer.into_inner().expect(in_memory);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Writes each (name, text) into `folder`, which is made if it is missing: beside first, then renamed.
///
/// # Errors
/// [`ExperimentError::Write`].
pub fn write_files(folder: &Path, files: &[(&str, &str)]) -> Result<(), ExperimentError> {
    fs::create_dir_all(folder).map_err(|source| ExperimentError::Write {
        path: folder.to_owned(),
        source,
    })?;
    for (name, text) in files {
        let path = folder.join(name);
        let fault = |source| ExperimentError::Write {
            path: path.clone(),
            source,
        };
        let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;
        beside.write_all(text.as_bytes()).map_err(fault)?;
        let file = beside.persist(&path).map_err(|error| fault(error.error))?;
        readable(&file).map_err(fault)?;
    }
    Ok(())
}

/// A temporary file is its owner's alone; a result is for all to read.
#[cfg(unix)]
fn readable(file: &fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &fs::File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_and_csv() {
        let sheet = Sheet {
            title: "Colon".into(),
            notes: vec!["one omitted".into()],
            header: vec!["method".into(), "accuracy".into()],
            rows: vec![vec!["Cosine, or none".into(), "0.5".into()]],
        };
        let markdown = "## Colon\n\n| method | accuracy |\n| --- | --- |\n| Cosine, or none | 0.5 |\n\n\
                        * one omitted\n";
        assert_eq!(sheet.markdown(), markdown);
        let csv = "table,method,accuracy\nColon,\"Cosine, or none\",0.5\n";
        assert_eq!(Sheet::csv(&[sheet]), csv);
    }
}
