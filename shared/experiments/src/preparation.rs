//! From published values to standardised features, fitted on training patients alone.

use ndarray::{Array1, Array2, Axis};

/// Floor and ceiling of the leukaemia intensities (Dudoit, Fridlyand and Speed 2002).
const INTENSITY_MIN: f64 = 100.0;
const INTENSITY_MAX: f64 = 16_000.0;
/// A gene is kept where max / min and max - min over the training patients are above these.
const RATIO_MIN: f64 = 5.0;
const DIFFERENCE_MIN: f64 = 500.0;
/// A feature is constant where its deviation is this small beside its largest value.
const CONSTANT_RATIO: f64 = 1e-12;

/// Mean and deviation of every feature, from training patients; constant features become 0.
pub(crate) struct Standardiser {
    mean: Array1<f64>,
    scale: Array1<f64>,
}

impl Standardiser {
    pub(crate) fn fit(training: &Array2<f64>) -> Self {
        let count = training.nrows().max(1) as f64;
        let mean = training.sum_axis(Axis(0)) / count;
        let scale = training
            .columns()
            .into_iter()
            .zip(&mean)
            .map(|(column, mean)| {
                let square = |value: &f64| (value - mean) * (value - mean);
                let deviation = (column.iter().map(square).sum::<f64>() / count).sqrt();
                let largest = column
                    .iter()
                    .fold(0.0, |top: f64, value| top.max(value.abs()));
                match deviation > CONSTANT_RATIO * largest {
                    true => 1.0 / deviation,
                    false => 0.0,
                }
            })
            .collect();
        Self { mean, scale }
    }

    pub(crate) fn apply(&self, values: &Array2<f64>) -> Array2<f64> {
        (values - &self.mean) * &self.scale
    }
}

/// log10 of every intensity (all positive), then every array (row) to mean 0 and deviation 1.
pub(crate) fn logarithm_by_array(values: &Array2<f64>) -> Array2<f64> {
    let mut logarithms = values.mapv(f64::log10);
    for mut array in logarithms.rows_mut() {
        let mean = array.mean().unwrap_or(0.0);
        let deviation = array.std(0.0);
        array.mapv_inplace(|value| (value - mean) / deviation);
    }
    logarithms
}

/// Intensities between floor and ceiling.
pub(crate) fn threshold(values: &Array2<f64>) -> Array2<f64> {
    values.mapv(|value| value.clamp(INTENSITY_MIN, INTENSITY_MAX))
}

/// Genes that vary enough among thresholded training patients.
pub(crate) fn varying(training: &Array2<f64>) -> Vec<usize> {
    let varies = |gene: &usize| {
        let column = training.column(*gene);
        let least = column.iter().copied().fold(f64::INFINITY, f64::min);
        let most = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most / least > RATIO_MIN && most - least > DIFFERENCE_MIN
    };
    (0..training.ncols()).filter(varies).collect()
}
