//! Grows a forest on a table of patients, and prints who is alike by its terminal nodes:
//! `cargo run --example proximities [FILE.csv]`.

#![allow(clippy::print_stdout)] // what the example shows

mod table;

use similarity::cohort::Outcome;
use similarity::learn::forest::{Settings, grow};
use similarity::numeric::seed::Seed;
use similarity::uses::nearest::nearest_out_of_bag;
use std::error::Error;

/// Patients who are shown.
const SHOWN: usize = 5;
/// Similar patients of each.
const NEAREST: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let cohort = table::cohort()?;
    let Outcome::Classes { codes, levels } = cohort.outcome() else {
        return Err("found another outcome, wanted classes".into());
    };
    let grown = grow(&cohort, &Settings::for_outcome(cohort.outcome()), Seed(1))?;
    let nodes = grown.forest.apply(cohort.columns())?;
    // Only trees count that have seen neither of two patients.
    let nearest = nearest_out_of_bag(&nodes, &grown.in_bag, NEAREST)?;

    println!(
        "{} patients, {} trees",
        cohort.patients(),
        grown.forest.trees().len()
    );
    let class = |patient: usize| &levels[codes[patient] as usize];
    for (patient, found) in nearest.iter().enumerate().take(SHOWN) {
        println!("patient {patient} ({})", class(patient));
        for near in &found.neighbours {
            let other = near.patient as usize;
            println!(
                "  proximity {:.2}: patient {other} ({})",
                near.proximity,
                class(other)
            );
        }
    }

    let pairs = nearest.iter().enumerate().flat_map(|(patient, found)| {
        let others = found.neighbours.iter();
        others.map(move |near| codes[patient] == codes[near.patient as usize])
    });
    let (same, all) = pairs.fold((0, 0), |(same, all), is_same| {
        (same + i32::from(is_same), all + 1)
    });
    println!(
        "of the {NEAREST} nearest, {:.0} % have the patient's class",
        100.0 * f64::from(same) / f64::from(all)
    );
    Ok(())
}
