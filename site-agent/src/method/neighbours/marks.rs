//! What the patients of a group have of the features.

use protocol::message::cluster::Mark;
use similarity::cohort::{Column, MISSING_LEVEL, Values};

/// One of a number and one of each level of a category, column after column. Who has no value counts as the mean of the others, and where
/// fewer than `least` have one, nothing is released: neither a value of few nor how many have none.
pub(in crate::method) fn marks(columns: &[Column], members: &[usize], least: u64) -> Vec<Mark> {
    let of_column = |column| of_column(column, members, least);
    columns.iter().flat_map(of_column).collect()
}

fn of_column(column: &Column, members: &[usize], least: u64) -> Vec<Mark> {
    let patients = members.len() as u64;
    let told = |present: usize, sum: f64, squares: f64| match present as u64 >= least {
        true => {
            let share = patients as f64 / present as f64;
            Mark {
                patients,
                sum: share * sum,
                squares: share * squares,
            }
        }
        false => Mark::default(),
    };
    match &column.values {
        Values::Numeric(values) => {
            let present = members.iter().map(|row| values[*row]);
            let present: Vec<f64> = present.filter(|value| !value.is_nan()).collect();
            let squares = present.iter().map(|value| value * value).sum();
            vec![told(present.len(), present.iter().sum(), squares)]
        }
        Values::Categorical { codes, levels } => {
            let present = members.iter().map(|row| codes[*row]);
            let present: Vec<u32> = present.filter(|code| *code != MISSING_LEVEL).collect();
            let of_level = |level: usize| {
                let count = present
                    .iter()
                    .filter(|code| **code as usize == level)
                    .count();
                told(present.len(), count as f64, count as f64)
            };
            (0..levels.len()).map(of_level).collect()
        }
    }
}
