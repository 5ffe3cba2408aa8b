//! A table of patients: a CSV file named on the command line, or made patients where none is named.

use similarity::cohort::{Cohort, Column, MISSING_LEVEL, Outcome, Values};
use similarity::numeric::seed::Seed;
use similarity::synthetic::{CohortSettings, cohorts};
use std::collections::BTreeSet;
use std::error::Error;

/// The patients of the file that the first argument names: a header, then values between commas. The last column is the class,
/// and an empty cell is missing.
pub(crate) fn cohort() -> Result<Cohort, Box<dyn Error>> {
    let Some(path) = std::env::args().nth(1) else {
        let settings = CohortSettings {
            patients: vec![400],
            base_features: 3,
            irrelevant_features: 3,
            ..CohortSettings::default()
        };
        return Ok(cohorts(&settings, Seed(1))?.remove(0));
    };
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    read(&text).map_err(|problem| format!("{path}: {problem}").into())
}

fn read(text: &str) -> Result<Cohort, String> {
    let mut rows = text.lines().map(|row| row.split(',').map(str::trim));
    let mut names: Vec<&str> = rows.next().into_iter().flatten().collect();
    let (wanted, class) = (names.len(), names.pop().unwrap_or_default());
    let mut cells = vec![Vec::new(); wanted];
    for (number, row) in (2..).zip(rows) {
        let found = row.clone().count();
        if found != wanted {
            return Err(format!(
                "row {number}: found {found} values, wanted {wanted}"
            ));
        }
        cells
            .iter_mut()
            .zip(row)
            .for_each(|(column, cell)| column.push(cell));
    }
    let (codes, levels) = levelled(&cells.pop().unwrap_or_default());
    let missing = codes.iter().filter(|code| **code == MISSING_LEVEL).count();
    if levels.len() < 2 || missing > 0 {
        let found = format!("{} classes and {missing} empty cells", levels.len());
        return Err(format!("column {class}: found {found}, wanted 2 and none"));
    }
    let column = |(name, cells): (&&str, &Vec<&str>)| Column {
        name: (*name).to_owned(),
        values: values(cells),
    };
    let columns = names.iter().zip(&cells).map(column).collect();
    let codes = codes.into();
    Cohort::new(columns, Outcome::Classes { codes, levels }).map_err(|error| error.to_string())
}

/// Numbers where every cell is one.
fn values(cells: &[&str]) -> Values {
    let number = |cell: &&str| match cell.is_empty() {
        true => Some(f64::NAN),
        false => cell.parse().ok().filter(|number: &f64| number.is_finite()),
    };
    let numbers: Option<Vec<f64>> = cells.iter().map(number).collect();
    let (codes, levels) = levelled(cells);
    let codes = codes.into();
    numbers.map_or(Values::Categorical { codes, levels }, |numbers| {
        Values::Numeric(numbers.into())
    })
}

/// The levels, sorted, and the place of each cell among them.
fn levelled(cells: &[&str]) -> (Vec<u32>, Vec<String>) {
    let levels: BTreeSet<&str> = cells.iter().copied().collect();
    let levels: Vec<&str> = levels.into_iter().filter(|cell| !cell.is_empty()).collect();
    let place = |cell: &&str| levels.binary_search(cell);
    let code = |cell: &&str| place(cell).map_or(MISSING_LEVEL, |place| place as u32);
    let codes = cells.iter().map(code).collect();
    (codes, levels.into_iter().map(str::to_owned).collect())
}
