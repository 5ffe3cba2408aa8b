//! Parkinson's in 3 parts and the four heart disease hospitals, standardised, where the data are present.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, Axis, s};
use rand::seq::SliceRandom as _;
use similarity::learn::unpsl::Labels;
use similarity::numeric::seed::Seed;

use super::federation::{Part, standardise};

/// `KINDRED_DATA`, or ../shared/data beside the workspace.
pub fn data_folder() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder =
        std::env::var_os("KINDRED_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    folder.join("parkinsons.csv").is_file().then_some(folder)
}

/// The cells of a file without its header.
fn cells(path: PathBuf) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(row).collect()
}

/// 195 recordings in a random order, in 3 parts.
pub fn parkinsons(folder: &Path) -> Vec<Part> {
    let mut rows = cells(folder.join("parkinsons.csv"));
    rows.shuffle(&mut Seed(3).stream("split", 0));
    let status = 17;
    let features = (1..24)
        .filter(|column| *column != status)
        .collect::<Vec<_>>();
    let number = |(row, column): (usize, usize)| rows[row][features[column]].parse().unwrap();
    let patients = standardise(Array2::from_shape_fn((rows.len(), features.len()), number));
    let classes: Vec<u32> = rows
        .iter()
        .map(|row| row[status].parse().unwrap())
        .collect();
    split(&patients, &classes, &[65, 65, 65])
}

/// scikit-learn's copy of the breast cancer data in 3 random parts, where `KINDRED_BREAST_CANCER` names the file.
pub fn breast_cancer() -> Option<Vec<Part>> {
    let mut rows = cells(PathBuf::from(std::env::var_os("KINDRED_BREAST_CANCER")?));
    rows.shuffle(&mut Seed(3).stream("split", 0));
    let number = |(row, column): (usize, usize)| rows[row][column].parse().unwrap();
    let patients = standardise(Array2::from_shape_fn((rows.len(), 30), number));
    let classes: Vec<u32> = rows.iter().map(|row| row[30].parse().unwrap()).collect();
    let third = rows.len() / 3;
    let sizes = [third, third, rows.len() - 2 * third];
    Some(split(&patients, &classes, &sizes))
}

/// Four hospitals of very unequal size and case mix; a zero of chol or trestbps is missing.
pub fn heart(folder: &Path) -> Vec<Part> {
    let files = ["cleveland", "hungarian", "switzerland", "va"];
    let hospitals = files.map(|name| cells(folder.join(format!("heart_disease/{name}.csv"))));
    let sizes: Vec<usize> = hospitals.iter().map(Vec::len).collect();
    let mut rows = hospitals.concat();
    for row in &mut rows {
        for column in [3, 4] {
            if row[column].parse() == Ok(0.0) {
                row[column].clear();
            }
        }
    }
    let mut columns: Vec<Array1<f64>> = Vec::new();
    for column in [0, 3, 4, 7, 9, 11] {
        let present: Vec<f64> = rows
            .iter()
            .filter_map(|row| row[column].parse().ok())
            .collect();
        let mean = present.iter().sum::<f64>() / present.len() as f64;
        columns.push(
            rows.iter()
                .map(|row| row[column].parse().unwrap_or(mean))
                .collect(),
        );
    }
    for (column, one_hot) in [
        (1, false),
        (5, false),
        (8, false),
        (2, true),
        (6, true),
        (10, true),
        (12, true),
    ] {
        let levels: BTreeSet<&str> = rows
            .iter()
            .map(|row| row[column].as_str())
            .filter(|cell| !cell.is_empty())
            .collect();
        let count = |level: &str| rows.iter().filter(|row| row[column] == level).count();
        let mode = levels
            .iter()
            .copied()
            .max_by_key(|level| count(level))
            .unwrap();
        for level in levels.iter().skip(usize::from(!one_hot)) {
            let is_level = |row: &Vec<String>| {
                let cell = if row[column].is_empty() {
                    mode
                } else {
                    &row[column]
                };
                f64::from(u8::from(cell == *level))
            };
            columns.push(rows.iter().map(is_level).collect());
        }
    }
    let views: Vec<_> = columns.iter().map(|column| column.view()).collect();
    let patients = standardise(ndarray::stack(Axis(1), &views).unwrap());
    let classes: Vec<u32> = rows.iter().map(|row| u32::from(row[13] != "0")).collect();
    split(&patients, &classes, &sizes)
}

/// 686 patients in four random parts: whether the cancer came back while they were followed.
pub fn gbsg2(folder: &Path) -> Vec<Part> {
    let mut rows = cells(folder.join("gbsg2.csv"));
    rows.shuffle(&mut Seed(3).stream("split", 0));
    let number = |row: &Vec<String>, column: usize| row[column].parse::<f64>().unwrap();
    let flag = |holds: bool| f64::from(u8::from(holds));
    let features = |row: &Vec<String>| {
        [
            flag(row[2] == "yes"),
            number(row, 3),
            flag(row[4] == "Post"),
            number(row, 5),
            row[6].len() as f64,
            number(row, 7).ln_1p(),
            number(row, 8).ln_1p(),
            number(row, 9).ln_1p(),
        ]
    };
    let features = rows.iter().flat_map(features).collect();
    let patients = standardise(Array2::from_shape_vec((rows.len(), 8), features).unwrap());
    let classes: Vec<u32> = rows.iter().map(|row| row[1].parse().unwrap()).collect();
    split(&patients, &classes, &[172, 172, 172, 170])
}

fn split(patients: &Array2<f64>, classes: &[u32], sizes: &[usize]) -> Vec<Part> {
    let mut first = 0;
    sizes
        .iter()
        .map(|size| {
            let range = first..first + size;
            first += size;
            Part {
                patients: patients.slice(s![range.clone(), ..]).to_owned(),
                labels: Labels::Classes(classes[range].iter().copied().collect()),
            }
        })
        .collect()
}

/// 62 samples of 2,000 genes at 2 sites: logarithms of intensities, as Alon et al. publish them.
pub fn colon(folder: &Path) -> Vec<Part> {
    let mut rows = cells(folder.join("colon.csv"));
    rows.shuffle(&mut Seed(3).stream("split", 0));
    let genes = rows[0].len() - 2;
    let value = |(row, gene): (usize, usize)| rows[row][gene + 2].parse::<f64>().unwrap();
    let logarithm = |place| value(place).max(1.0).ln();
    let patients = standardise(Array2::from_shape_fn((rows.len(), genes), logarithm));
    let class = |row: &Vec<String>| u32::from(row[1] != rows[0][1]);
    let classes: Vec<u32> = rows.iter().map(class).collect();
    split(&patients, &classes, &[31, 31])
}

/// All 72 samples at 2 sites, with the genes that floor 100, ceiling 16,000 and the filter of Dudoit, Fridlyand and Speed
/// (2002) leave.
pub fn leukaemia(folder: &Path) -> Vec<Part> {
    let read = |name: &str| {
        let file = fs::File::open(folder.join(name)).unwrap();
        let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).unwrap();
        let row = |line: &str| line.split(',').map(str::to_owned).collect();
        text.lines().skip(1).map(row).collect::<Vec<Vec<String>>>()
    };
    let mut rows = read("leukemia_train.csv.gz");
    rows.extend(read("leukemia_test.csv.gz"));
    rows.shuffle(&mut Seed(3).stream("split", 0));
    let genes = rows[0].len() - 2;
    let intensity = |row: &Vec<String>, gene: usize| {
        let value: f64 = row[gene + 2].parse().unwrap();
        value.clamp(100.0, 16_000.0)
    };
    let varies = |gene: &usize| {
        let values = rows.iter().map(|row| intensity(row, *gene));
        let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        high / low > 5.0 && high - low > 500.0
    };
    let kept: Vec<usize> = (0..genes).filter(varies).collect();
    let value = |(row, gene): (usize, usize)| intensity(&rows[row], kept[gene]).log10();
    let patients = standardise(Array2::from_shape_fn((rows.len(), kept.len()), value));
    let class = |row: &Vec<String>| u32::from(row[1] != rows[0][1]);
    let classes: Vec<u32> = rows.iter().map(class).collect();
    split(&patients, &classes, &[36, 36])
}
