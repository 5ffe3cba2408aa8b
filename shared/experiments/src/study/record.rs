//! `study.csv`: what every split gave. A study that is run again reads it and does what is missing.

use std::path::{Path, PathBuf};

use similarity::numeric::seed::Seed;

use super::predicting::METHODS;
use super::{Scores, Setting};
use crate::ExperimentError;
use crate::output::write_files;

const FILE: &str = "study.csv";
/// The columns before those of the methods.
const KEYS: [&str; 6] = ["data", "outcome", "patients", "features", "seed", "split"];

/// The lines of the file.
pub(crate) struct Record {
    folder: PathBuf,
    seed: Seed,
    lines: Vec<(Vec<String>, Scores)>,
}

impl Record {
    /// Of the folder's file, where there is one.
    pub(crate) fn open(folder: &Path, seed: Seed) -> Result<Self, ExperimentError> {
        let path = folder.join(FILE);
        let mut record = Self {
            folder: folder.to_owned(),
            seed,
            lines: Vec::new(),
        };
        if !path.exists() {
            return Ok(record);
        }
        let fault = |source: csv::Error| ExperimentError::Data {
            path: path.clone(),
            source,
        };
        let mut reader = csv::Reader::from_path(&path).map_err(fault)?;
        let header = reader.headers().map_err(fault)?.clone();
        for column in KEYS.iter().chain(&METHODS) {
            if !header.iter().any(|found| found == *column) {
                return Err(ExperimentError::Column {
                    path: path.clone(),
                    column: (*column).to_owned(),
                });
            }
        }
        for (index, line) in reader.records().enumerate() {
            let line = line.map_err(fault)?;
            let mut scores = Scores::default();
            for (place, score) in scores.iter_mut().enumerate() {
                let column = KEYS.len() + place;
                *score = line[column].parse().map_err(|_| ExperimentError::Value {
                    path: path.clone(),
                    row: index + 1,
                    column: header[column].to_owned(),
                    wanted: "a number",
                })?;
            }
            let keys = line.iter().take(KEYS.len()).map(str::to_owned).collect();
            record.lines.push((keys, scores));
        }
        Ok(record)
    }

    fn keys(&self, setting: &Setting, repeat: u64) -> Vec<String> {
        vec![
            setting.name.to_owned(),
            setting.kind.name().to_owned(),
            setting.size[0].to_string(),
            setting.size[1].to_string(),
            self.seed.0.to_string(),
            repeat.to_string(),
        ]
    }

    pub(crate) fn of(&self, setting: &Setting, repeat: u64) -> Option<Scores> {
        let keys = self.keys(setting, repeat);
        let found = self.lines.iter().find(|(known, _)| *known == keys);
        found.map(|(_, scores)| *scores)
    }

    /// Of all splits that were judged, up to so many.
    pub(crate) fn all(&self, setting: &Setting, repeats: u64) -> Vec<Scores> {
        (0..repeats)
            .filter_map(|repeat| self.of(setting, repeat))
            .collect()
    }

    pub(crate) fn add(&mut self, setting: &Setting, repeat: u64, scores: Scores) {
        let keys = self.keys(setting, repeat);
        self.lines.push((keys, scores));
    }

    pub(crate) fn write(&self) -> Result<(), ExperimentError> {
        let in_memory = "text in memory can be written";
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer
            .write_record(KEYS.iter().chain(&METHODS))
            .expect(in_memory);
        for (keys, scores) in &self.lines {
            let cells = keys
                .iter()
                .cloned()
                .chain(scores.map(|score| score.to_string()));
            writer.write_record(cells).expect(in_memory);
        }
        let bytes = writer.into_inner().expect(in_memory);
        let text = String::from_utf8_lossy(&bytes);
        write_files(&self.folder, &[(FILE, &text)])
    }
}
