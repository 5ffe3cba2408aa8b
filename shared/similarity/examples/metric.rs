//! Learns by which features the patients of a table are similar, and prints those with weight:
//! `cargo run --example metric [FILE.csv]`.

#![allow(clippy::print_stdout)] // what the example shows

mod table;

use ndarray::Axis;
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
use similarity::cohort::{Cohort, Outcome, Values};
use similarity::learn::unpsl::accelerated::{
    Knowledge, RelativeSparsity, Search, SearchSettings, search_sites,
};
use similarity::learn::unpsl::{Labels, Settings, SiteObjective, Totals, start, summarise};
use similarity::numeric::seed::Seed;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let cohort = table::cohort()?;
    let Outcome::Classes { codes, .. } = cohort.outcome() else {
        return Err("found another outcome, wanted classes".into());
    };
    let standardisation = standardisation(&cohort)?;
    let (patients, rows) = (standardisation.apply(&cohort)?, standardisation.rows());

    let (labels, seed) = (Labels::Classes(codes.clone()), Seed(1));
    let settings = Settings {
        rank: rows.len().min(8),
        ..Settings::default()
    };
    let totals = Totals::of(&[summarise(&labels, settings.pairs, seed)]);
    let site = SiteObjective::new(&patients.view(), &labels, &settings, &totals, seed, None)?;

    let wanted = SearchSettings {
        lambda_sparsity: settings.lambda_sparsity,
        form: settings.form,
        tolerance: 2e-7,
        tolerance_residual: 1e-3,
    };
    let search = Search::new(wanted, start(&settings, rows.len(), seed, 0), rows.len());
    let search = search.relative(RelativeSparsity::USUAL);
    let mut rounds = 0;
    let found = search_sites(&[site], search, &mut Knowledge::new(), 60, &mut |_, _| {
        rounds += 1
    })?;

    let lengths = found.best().map_axis(Axis(1), |row| row.dot(&row).sqrt());
    let mut weights: Vec<_> = rows.iter().zip(&lengths).collect();
    weights.retain(|(_, weight)| **weight > 0.0);
    weights.sort_by(|one, other| other.1.total_cmp(one.1));
    println!("{} patients, {rounds} rounds", cohort.patients());
    println!("{} of {} features have weight:", weights.len(), rows.len());
    for (row, weight) in weights {
        println!("{weight:6.3} {}", row.name());
    }
    Ok(())
}

/// Every column to mean 0 and variance 1, a level as a column of its own.
fn standardisation(cohort: &Cohort) -> Result<Standardisation, Box<dyn Error>> {
    let feature = |column: &similarity::cohort::Column| Feature {
        name: column.name.clone(),
        kind: match &column.values {
            Values::Numeric(_) => FeatureKind::Numeric,
            Values::Categorical { levels, .. } => FeatureKind::Categorical {
                levels: levels.clone(),
            },
        },
        treatment: Treatment::default(),
    };
    let features: Vec<Feature> = cohort.columns().iter().map(feature).collect();
    let moments = ColumnMoments::of_cohort(cohort)?;
    Ok(Standardisation::from_moments(&features, &moments, &[])?)
}
