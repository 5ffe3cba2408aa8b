//! Breiman's outlier measure: how little a patient is alike to the others of its class.
//!
//! Patients above 60 are ill, but for one of 45. By the forest's terminal nodes, nobody of the class is alike to this patient:
//!
//! ```
//! use ndarray::Array1;
//! use similarity::cohort::{Cohort, Column, Outcome, Values};
//! use similarity::learn::forest::{Settings, grow};
//! use similarity::numeric::seed::Seed;
//! use similarity::uses::outlier::outlier_measure;
//!
//! let classes: Vec<u32> = (0..40).map(|patient| u32::from(patient >= 20 || patient == 4)).collect();
//! let ages = Values::Numeric(Array1::range(41.0, 81.0, 1.0));
//! let levels = vec!["healthy".to_owned(), "ill".to_owned()];
//! let outcome = Outcome::Classes { codes: classes.iter().copied().collect(), levels };
//! let cohort = Cohort::new(vec![Column { name: "age".to_owned(), values: ages }], outcome)?;
//!
//! let settings = Settings { trees: 100, ..Settings::for_outcome(cohort.outcome()) };
//! let grown = grow(&cohort, &settings, Seed(1))?;
//! let measure = outlier_measure(&grown.forest.apply(cohort.columns())?, &classes)?;
//! let farthest = (0..40).max_by(|one, other| measure[*one].total_cmp(&measure[*other]));
//! assert!(farthest == Some(4) && measure[4] > 10.0, "{measure}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use ndarray::Array1;

use crate::compare::proximity::kernel::KernelError;
use crate::learn::forest::trees::terminal::TerminalNodes;
use crate::uses::nearest::each_row;

/// Breiman's outlier measure of every training patient, n. With P the proximity over all trees, the raw
/// measure is n / sum over the patient's own class (itself included) of P^2; from it the median of the
/// class is taken, and the rest is divided by the class's median absolute deviation. A class whose
/// deviation is 0 is left undivided. Above 10 is Breiman's rule of thumb for an outlier.
///
/// `classes` gives one class per patient; all equal for an outcome without classes.
///
/// # Errors
/// [`KernelError`] where `classes` has another length than the patients, or with too many trees.
pub fn outlier_measure(
    training: &TerminalNodes,
    classes: &[u32],
) -> Result<Array1<f64>, KernelError> {
    if classes.len() != training.patients() {
        return Err(KernelError::Patients {
            found: classes.len(),
            wanted: training.patients(),
        });
    }
    let trees = training.trees() as f64;
    let raw = each_row(training, training, |row, shared| {
        // Whole numbers: exact whatever the order.
        let squares: u64 = shared
            .touched
            .iter()
            .filter(|&&other| classes[other as usize] == classes[row])
            .map(|&other| u64::from(shared.counts[other as usize]).pow(2))
            .sum();
        classes.len() as f64 * trees * trees / squares as f64
    })?;
    let mut measure = Array1::from(raw);
    let mut of_class: Vec<u32> = classes.to_vec();
    of_class.sort_unstable();
    of_class.dedup();
    for class in of_class {
        let members: Vec<usize> = (0..classes.len())
            .filter(|&row| classes[row] == class)
            .collect();
        let centre = median(members.iter().map(|&row| measure[row]).collect());
        let spread = median(
            members
                .iter()
                .map(|&row| (measure[row] - centre).abs())
                .collect(),
        );
        let divisor = if spread > 0.0 { spread } else { 1.0 };
        members
            .iter()
            .for_each(|&row| measure[row] = (measure[row] - centre) / divisor);
    }
    Ok(measure)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}
