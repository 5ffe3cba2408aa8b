//! How often the 95 % interval of a share told by groups holds the share counted one by one, over 20 draws of noise.
//!
//! `cargo bench -p similarity --bench alike`: made-up patients; the four heart disease hospitals, Parkinson's and GBSG2 where the data folder
//! (`KINDRED_DATA`, or ../shared/data beside the workspace) is present; breast cancer (the copy of scikit-learn) where
//! `KINDRED_BREAST_CANCER` names the file, and other tables, numbers with a class of 0 or 1 last and a header, where `KINDRED_TABLES` lists them.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/alike.rs"]
#[allow(dead_code, unreachable_pub)]
mod alike;
#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use alike::Hospital;
use alike::{dealt, made_up, trial};
use federation::{Part, standardise};
use hospitals::{breast_cancer, data_folder, gbsg2, heart, parkinsons};
use ndarray::Array2;
use similarity::learn::unpsl::Labels;
use similarity::uses::microaggregation::Closeness;
use std::path::Path;

const DRAWS: u64 = 20;

fn main() {
    let mut sets: Vec<(String, Vec<Hospital>)> = Vec::new();
    if let Some(folder) = data_folder() {
        sets.push(("four heart hospitals".to_owned(), of_parts(heart(&folder))));
        sets.push(("parkinsons".to_owned(), of_parts(parkinsons(&folder))));
        sets.push(("GBSG2, recurrence".to_owned(), of_parts(gbsg2(&folder))));
    } else {
        println!("no data folder: made-up patients alone");
    }
    if let Some(parts) = breast_cancer() {
        sets.push(("breast cancer".to_owned(), of_parts(parts)));
    }
    for path in std::env::var("KINDRED_TABLES")
        .unwrap_or_default()
        .split(':')
    {
        if !path.is_empty() {
            sets.push((path.to_owned(), table(Path::new(path))));
        }
    }
    let made = made_up().into_iter();
    sets.extend(made.map(|(name, hospitals)| (name.to_owned(), hospitals)));
    println!(
        "set | closeness | % of pairs | answers | held % | near 0 and 1 held % | off, with noise | off, without | width | pairs within %"
    );
    for (name, hospitals) in &sets {
        for closeness in [
            Closeness::Euclidean,
            Closeness::Manhattan,
            Closeness::InnerProduct,
        ] {
            for row in trial(hospitals, closeness, DRAWS) {
                let percent = |(part, whole): (usize, usize)| match whole {
                    0 => "-".to_owned(),
                    _ => format!("{:.1}", 100.0 * part as f64 / whole as f64),
                };
                println!(
                    "{name} | {closeness:?} | {} | {} | {} | {} | {:.3} | {:.3} | {:.3} | {:.1}",
                    row.percent,
                    row.answers,
                    percent((row.held, row.answers)),
                    percent(row.edge),
                    row.off[0],
                    row.off[1],
                    row.width,
                    100.0 * row.pairs,
                );
            }
        }
    }
}

fn of_parts(parts: Vec<Part>) -> Vec<Hospital> {
    let hospital = |part: Part| match part.labels {
        Labels::Classes(classes) => Hospital {
            patients: part.patients,
            classes: classes.to_vec(),
        },
        Labels::Pairs(_) | Labels::Judged(_) | Labels::Both { .. } => panic!("no classes"),
    };
    parts.into_iter().map(hospital).collect()
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(row).collect()
}

fn table(path: &Path) -> Vec<Hospital> {
    let rows = rows(path);
    let width = rows[0].len() - 1;
    let number = |(row, column): (usize, usize)| rows[row][column].parse().unwrap();
    let patients = standardise(Array2::from_shape_fn((rows.len(), width), number));
    let classes: Vec<u32> = rows
        .iter()
        .map(|row| row[width].parse::<f64>().unwrap() as u32)
        .collect();
    dealt(&patients, &classes, 4)
}
