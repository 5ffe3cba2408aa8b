//! The study's real patients and houses (section 5): California's houses, the breast cancer of GBSG2, and Fisher's irises.

use std::path::Path;

use ndarray::Array1;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::numeric::seed::Seed;

use super::setting::{Kind, Split, median, two_classes};
use crate::ExperimentError;
use crate::sources::Table;

/// Houses of a repeat, and those of them to learn from.
pub(crate) const HOUSES: usize = 2000;
const HOUSES_TRAINING: usize = 1500;
/// Patients of GBSG2 to learn from.
const GBSG2_TRAINING: usize = 500;

/// A data set, read once.
pub(crate) struct Real(Cohort);

impl Real {
    /// California's blocks of houses with all values, and the median value of each. Of a class: above the median or not.
    pub(crate) fn houses(folder: &Path, kind: Kind) -> Result<Self, ExperimentError> {
        let table = Table::read(folder, "california_housing.csv.gz")?;
        let numbers = [
            "longitude",
            "latitude",
            "housing_median_age",
            "total_rooms",
            "total_bedrooms",
            "population",
            "households",
            "median_income",
        ];
        let near = ["<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND"];
        let mut columns = of_numbers(&table, &numbers)?;
        columns.push(of_levels(&table, "ocean_proximity", &near)?);
        let value = table.numbers("median_house_value")?;
        let outcome = match kind {
            Kind::Class => {
                let middle = median(&value);
                two_classes(value.mapv(|value| u32::from(value > middle)))
            }
            Kind::Number | Kind::Survival => Outcome::Numeric(value),
        };
        let cohort = Cohort::new(columns, outcome).expect("columns of one table");
        Ok(Self(cohort.select(&cohort.complete())))
    }

    /// The patients of the German Breast Cancer Study Group 2: days to recurrence or death.
    pub(crate) fn gbsg2(folder: &Path) -> Result<Self, ExperimentError> {
        let table = Table::read(folder, "gbsg2.csv")?;
        let mut columns = of_numbers(&table, &["age", "tsize", "pnodes", "progrec", "estrec"])?;
        columns.push(of_levels(&table, "horTh", &["no", "yes"])?);
        columns.push(of_levels(&table, "menostat", &["Pre", "Post"])?);
        columns.push(of_levels(&table, "tgrade", &["I", "II", "III"])?);
        let time = table.numbers("time")?;
        let place = table.place("time")?;
        if let Some(row) = time.iter().position(|time| time.is_nan() || *time <= 0.0) {
            return Err(table.fault(row, place, "a time above 0"));
        }
        let event = table.codes("cens", &["0", "1"])?;
        let event = event.mapv(|code| code == 1);
        let outcome = Outcome::Survival { time, event };
        Ok(Self(
            Cohort::new(columns, outcome).expect("columns of one table"),
        ))
    }

    /// Irises in the order of the file, which is that of their species.
    pub(crate) fn irises(folder: &Path) -> Result<Cohort, ExperimentError> {
        let table = Table::read(folder, "iris.csv")?;
        let measured = ["sepal_length", "sepal_width", "petal_length", "petal_width"];
        let columns = of_numbers(&table, &measured)?;
        let levels = ["setosa", "versicolor", "virginica"];
        let codes = table.codes("species", &levels)?;
        let levels = levels.map(str::to_owned).to_vec();
        let outcome = Outcome::Classes { codes, levels };
        Ok(Cohort::new(columns, outcome).expect("columns of one table"))
    }

    /// Random rows; of two classes as many of each.
    pub(crate) fn split(&self, seed: Seed, repeat: u64) -> Split {
        let cohort = &self.0;
        let mut stream = seed.stream("study, real", repeat);
        match cohort.outcome() {
            Outcome::Survival { .. } => Split::of(cohort, GBSG2_TRAINING, &mut stream),
            Outcome::Numeric(_) => {
                let drawn = Split::of(cohort, HOUSES, &mut stream).training;
                Split::of(&drawn, HOUSES_TRAINING, &mut stream)
            }
            Outcome::Classes { codes, .. } => {
                let (one, other): (Vec<usize>, Vec<usize>) =
                    (0..cohort.patients()).partition(|row| codes[*row] == 1);
                let mut half = |rows: &[usize]| Split::drawn(rows, HOUSES / 2, &mut stream);
                let rows = [half(&one), half(&other)].concat();
                Split::of(&cohort.select(&rows), HOUSES_TRAINING, &mut stream)
            }
        }
    }

    /// Of one split, and features.
    pub(crate) fn size(&self) -> [usize; 2] {
        let patients = match self.0.outcome() {
            Outcome::Survival { .. } => self.0.patients(),
            Outcome::Numeric(_) | Outcome::Classes { .. } => HOUSES.min(self.0.patients()),
        };
        [patients, self.0.columns().len()]
    }
}

fn of_numbers(table: &Table, names: &[&str]) -> Result<Vec<Column>, ExperimentError> {
    let of_one = |name: &&str| {
        let values: Array1<f64> = table.numbers(name)?;
        Ok(Column {
            name: (*name).to_owned(),
            values: Values::Numeric(values),
        })
    };
    names.iter().map(of_one).collect()
}

fn of_levels(table: &Table, name: &str, levels: &[&str]) -> Result<Column, ExperimentError> {
    Ok(Column {
        name: name.to_owned(),
        values: Values::Categorical {
            codes: table.codes(name, levels)?,
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        },
    })
}
