//! Synthetic patients after section 5.2 of the UnPSL paper (Huai et al. 2018).
//!
//! X^1 and X^2 are independent normal, X^3 = 0.5 (X^1 + X^2) + epsilon repeats what they say, and
//! W = diag(w^2) W^1 uses the first two blocks alone. Everything follows from a seed.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use ndarray::{Array1, Array2, Axis, concatenate, s};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, StandardNormal, Uniform};

use crate::cohort::{Cohort, Column, MISSING_LEVEL, Outcome, Values};
use crate::learn::unpsl::Labels;
use crate::numeric::seed::Seed;

/// Mean of every entry of epsilon.
const EPSILON_MEAN: f64 = -0.1;
/// Variance of every entry of epsilon.
const EPSILON_VARIANCE: f64 = 0.1;
/// Half the width of the uniform entries of W^1.
const METRIC_HALF_WIDTH: f64 = 0.5;
/// Cuts of the categorical feature's latent number.
const LEVEL_CUTS: [f64; 2] = [-0.5, 0.7];
/// Levels of the categorical feature.
const LEVELS: [&str; 3] = ["low", "middle", "high"];

/// The paper's data: patients, the metric that made their labels, and a label for every pair.
#[derive(Debug, Clone)]
pub struct LabelledPairs {
    /// X, n x 3d.
    pub patients: Array2<f64>,
    /// W, 3d x 3d; its last d rows are 0.
    pub metric: Array2<f64>,
    /// y_ij = +1 where s_ij >= 1, else -1.
    pub labels: Labels,
}

/// Section 5.2: `patients` patients with 3 x `base_features` features and a label for every pair.
#[must_use]
pub fn labelled_pairs(patients: usize, base_features: usize, seed: Seed) -> LabelledPairs {
    let blocks = correlated_blocks(patients, base_features, &mut seed.stream("patients", 0));
    let features = 3 * base_features;
    let metric = relevant_metric(features, features, base_features, seed);
    let projected = blocks.dot(&metric);
    let similarities = projected.dot(&projected.t());
    let signs = similarities.mapv(|s| if s >= 1.0 { 1_i8 } else { -1 });
    // the product is symmetric up to rounding only
    let symmetric = Array2::from_shape_fn(signs.raw_dim(), |(i, j)| signs[[i.min(j), i.max(j)]]);
    let labels = Labels::pairs(symmetric).expect("a square of +1 and -1, made symmetric");
    LabelledPairs {
        patients: blocks,
        metric,
        labels,
    }
}

/// Patients of several sites, for a demonstration.
#[derive(Debug, Clone, PartialEq)]
pub struct CohortSettings {
    /// Patients of each site.
    pub patients: Vec<usize>,
    /// d: columns of X^1, of X^2 and of X^3.
    pub base_features: usize,
    /// Further columns that say nothing of the class.
    pub irrelevant_features: usize,
    /// What happens to the patients.
    pub outcome: SyntheticOutcome,
    /// Classes; at least 2.
    pub classes: u32,
    /// Standard deviation of each site's own offset of every feature, in standard deviations.
    pub site_offset: f64,
    /// Share of patients whose class is drawn at random instead, from 0 to 1.
    pub class_noise: f64,
    /// Share of values that are missing, from 0 to 1.
    pub missing: f64,
}

impl Default for CohortSettings {
    /// Four unequal sites, 24 correlated and 6 irrelevant features, two classes, 2 % missing.
    fn default() -> Self {
        Self {
            patients: vec![240, 160, 120, 80],
            base_features: 8,
            irrelevant_features: 6,
            outcome: SyntheticOutcome::Classes,
            classes: 2,
            site_offset: 0.2,
            class_noise: 0.05,
            missing: 0.02,
        }
    }
}

/// What happens to synthetic patients. The features of a seed are the same whichever is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticOutcome {
    /// A class.
    Classes,
    /// 50 + 10 (first_1 + 0.7 second_1 + |first_2|) and normal noise of deviation 5.
    Number,
    /// Days to an event of hazard exp(first_1 + 0.7 second_1) / 365, censored uniformly within 1 to 1,000.
    Survival,
}

/// Settings that make no cohort.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is out of range, wanted {wanted}")]
pub struct CohortSettingsError {
    setting: &'static str,
    wanted: &'static str,
}

/// One cohort a site: features after section 5.2, irrelevant ones, one categorical feature, and a class.
///
/// A patient's class is the column of W' x that is largest under one W for all sites, so patients of
/// one class point the same way under M = W W'. Columns are `first_*` (X^1), `second_*` (X^2), `mixed_*`
/// (X^3), `irrelevant_*`, each in a unit of its own, and `grade`, whose levels follow the first patient
/// factor roughly.
///
/// # Errors
/// [`CohortSettingsError`], naming the setting.
pub fn cohorts(settings: &CohortSettings, seed: Seed) -> Result<Vec<Cohort>, CohortSettingsError> {
    check(settings)?;
    let base = settings.base_features;
    let classes = settings.classes as usize;
    let metric = relevant_metric(3 * base, classes, base, seed);
    let units = units(settings, seed);
    let site = |(index, &patients): (usize, &usize)| {
        let mut stream = seed.stream("site", index as u64);
        let mut known = correlated_blocks(patients, base, &mut stream);
        let offsets = Array1::from_shape_fn(known.ncols(), |_| {
            settings.site_offset * normal(&mut stream)
        });
        known += &offsets;
        let codes = classify(&known.dot(&metric), settings, &mut stream);
        let noise = Array2::from_shape_fn((patients, settings.irrelevant_features), |_| {
            normal(&mut stream)
        });
        let grades = grades(&known, settings.missing, &mut stream);
        let all = concatenate(Axis(1), &[known.view(), noise.view()]).expect("equal rows");
        let mut columns: Vec<Column> = all
            .columns()
            .into_iter()
            .zip(&units)
            .map(|(values, unit)| {
                let value = |x: &f64| {
                    let missing = stream.random::<f64>() < settings.missing;
                    if missing {
                        f64::NAN
                    } else {
                        unit.mean + unit.scale * x
                    }
                };
                let values = values.iter().map(value).collect();
                Column {
                    name: unit.name.clone(),
                    values: Values::Numeric(values),
                }
            })
            .collect();
        columns.push(grades);
        let outcome = match settings.outcome {
            SyntheticOutcome::Classes => Outcome::Classes {
                codes,
                levels: class_names(settings.classes),
            },
            SyntheticOutcome::Number => {
                number(&known, base, &mut seed.stream("number", index as u64))
            }
            SyntheticOutcome::Survival => {
                survival(&known, base, &mut seed.stream("survival", index as u64))
            }
        };
        Cohort::new(columns, outcome).expect("all columns are of one length")
    };
    Ok(settings.patients.iter().enumerate().map(site).collect())
}

fn number(known: &Array2<f64>, base: usize, stream: &mut ChaCha8Rng) -> Outcome {
    let second = 1.min(base - 1);
    let value = |row: ndarray::ArrayView1<'_, f64>| {
        let known = row[0] + 0.7 * row[base] + row[second].abs();
        50.0 + 10.0 * known + 5.0 * normal(stream)
    };
    Outcome::Numeric(known.rows().into_iter().map(value).collect())
}

fn survival(known: &Array2<f64>, base: usize, stream: &mut ChaCha8Rng) -> Outcome {
    let (mut time, mut event) = (Vec::new(), Vec::new());
    for row in known.rows() {
        let hazard = libm::exp(row[0] + 0.7 * row[base]) / 365.0;
        let until_event = -libm::log(1.0 - stream.random::<f64>()) / hazard;
        let censored: f64 = stream.random_range(1.0..1_000.0);
        time.push(until_event.min(censored).max(0.5));
        event.push(until_event <= censored);
    }
    Outcome::Survival {
        time: Array1::from(time),
        event: Array1::from(event),
    }
}

fn check(settings: &CohortSettings) -> Result<(), CohortSettingsError> {
    let share = |value: f64| (0.0..=1.0).contains(&value);
    let ranges = [
        ("patients", "at least one site, each with a patient", {
            !settings.patients.is_empty() && !settings.patients.contains(&0)
        }),
        ("base_features", "at least 1", settings.base_features > 0),
        ("classes", "at least 2", settings.classes > 1),
        (
            "site_offset",
            "a finite number",
            settings.site_offset.is_finite(),
        ),
        (
            "class_noise",
            "a share from 0 to 1",
            share(settings.class_noise),
        ),
        ("missing", "a share from 0 to 1", share(settings.missing)),
    ];
    match ranges.iter().find(|(_, _, holds)| !holds) {
        Some(&(setting, wanted, _)) => Err(CohortSettingsError { setting, wanted }),
        None => Ok(()),
    }
}

fn normal(stream: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(stream)
}

/// [X^1, X^2, X^3], n x 3d.
fn correlated_blocks(patients: usize, base: usize, stream: &mut ChaCha8Rng) -> Array2<f64> {
    let mut blocks = Array2::zeros((patients, 3 * base));
    let epsilon = Normal::new(EPSILON_MEAN, EPSILON_VARIANCE.sqrt()).expect("a positive deviation");
    for mut patient in blocks.rows_mut() {
        patient
            .slice_mut(s![..2 * base])
            .mapv_inplace(|_| normal(stream));
        for feature in 0..base {
            let sum = patient[feature] + patient[base + feature];
            patient[2 * base + feature] = 0.5 * sum + epsilon.sample(stream);
        }
    }
    blocks
}

/// W = diag(w^2) W^1: uniform rows for the first two blocks, zero rows for the third.
fn relevant_metric(features: usize, columns: usize, base: usize, seed: Seed) -> Array2<f64> {
    let mut stream = seed.stream("metric", 0);
    let entry = Uniform::new(-METRIC_HALF_WIDTH, METRIC_HALF_WIDTH).expect("an interval");
    let mut metric = Array2::zeros((features, columns));
    metric
        .slice_mut(s![..2 * base, ..])
        .mapv_inplace(|_| entry.sample(&mut stream));
    metric
}

/// Codes of the largest projection, a share of them drawn at random instead.
fn classify(
    projected: &Array2<f64>,
    settings: &CohortSettings,
    stream: &mut ChaCha8Rng,
) -> Array1<u32> {
    let largest = |row: ndarray::ArrayView1<f64>| {
        let first = (0, f64::NEG_INFINITY);
        let pick = |best: (u32, f64), (class, &value): (usize, &f64)| {
            if value > best.1 {
                (class as u32, value)
            } else {
                best
            }
        };
        row.iter().enumerate().fold(first, pick).0
    };
    projected
        .rows()
        .into_iter()
        .map(|row| {
            let drawn = stream.random_range(0..settings.classes);
            if stream.random::<f64>() < settings.class_noise {
                drawn
            } else {
                largest(row)
            }
        })
        .collect()
}

/// Name, mean and scale of a numeric column.
struct Unit {
    name: String,
    mean: f64,
    scale: f64,
}

fn units(settings: &CohortSettings, seed: Seed) -> Vec<Unit> {
    let base = settings.base_features;
    let groups = [
        ("first", base),
        ("second", base),
        ("mixed", base),
        ("irrelevant", settings.irrelevant_features),
    ];
    let mut stream = seed.stream("units", 0);
    let mut units = Vec::new();
    for (group, count) in groups {
        for number in 1..=count {
            let scale = libm::exp10(stream.random_range(-1.0..2.0));
            let mean = scale * stream.random_range(0.0..8.0);
            units.push(Unit {
                name: format!("{group}_{number}"),
                mean,
                scale,
            });
        }
    }
    units
}

fn grades(known: &Array2<f64>, missing: f64, stream: &mut ChaCha8Rng) -> Column {
    let code = |x: &f64| {
        let latent = x + 0.5 * normal(stream);
        let level = LEVEL_CUTS.iter().filter(|cut| latent > **cut).count() as u32;
        if stream.random::<f64>() < missing {
            MISSING_LEVEL
        } else {
            level
        }
    };
    let codes = known.column(0).iter().map(code).collect();
    let levels = LEVELS.map(String::from).to_vec();
    Column {
        name: "grade".to_owned(),
        values: Values::Categorical { codes, levels },
    }
}

fn class_names(classes: u32) -> Vec<String> {
    if classes == 2 {
        return ["negative", "positive"].map(String::from).to_vec();
    }
    (1..=classes)
        .map(|class| format!("class_{class}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_block_repeats_the_first_two_and_has_no_weight() {
        let made = labelled_pairs(4000, 3, Seed(1));
        assert_eq!(made.patients.dim(), (4000, 9));
        assert!(
            made.metric
                .slice(s![6.., ..])
                .iter()
                .all(|value| *value == 0.0)
        );
        assert!(made.metric.iter().all(|value| value.abs() <= 0.5));
        let epsilon = &made.patients.slice(s![.., 6..])
            - &((&made.patients.slice(s![.., ..3]) + &made.patients.slice(s![.., 3..6])) * 0.5);
        assert!((epsilon.mean().unwrap() + 0.1).abs() < 0.01);
        assert!((epsilon.var(0.0) - 0.1).abs() < 0.005);
        // the paper's d = 20: nearly half of the pairs are similar
        let counts = labelled_pairs(400, 20, Seed(1)).labels.count();
        let share = counts.similar as f64 / counts.total() as f64;
        assert!(
            (0.45..0.5).contains(&share),
            "{share} of the pairs are similar"
        );
    }

    #[test]
    fn sites_have_their_size_their_missing_values_and_both_classes() {
        let settings = CohortSettings {
            missing: 0.1,
            ..CohortSettings::default()
        };
        let sites = cohorts(&settings, Seed(7)).unwrap();
        let sizes: Vec<_> = sites.iter().map(Cohort::patients).collect();
        assert_eq!(sizes, settings.patients);
        for site in &sites {
            assert_eq!(site.columns().len(), 3 * 8 + 6 + 1);
            let missing: usize = site
                .columns()
                .iter()
                .map(|column| column.values.missing())
                .sum();
            let share = missing as f64 / (31 * site.patients()) as f64;
            assert!((share - 0.1).abs() < 0.03, "{share} missing");
            let Outcome::Classes { codes, .. } = site.outcome() else {
                panic!("classes")
            };
            let positive = codes.iter().filter(|code| **code == 1).count();
            assert!(positive > site.patients() / 5 && positive < site.patients() * 4 / 5);
        }
    }

    #[test]
    fn equal_seeds_make_equal_patients() {
        let values = |seed| {
            let sites = cohorts(&CohortSettings::default(), seed).unwrap();
            let Values::Numeric(values) = &sites[2].columns()[3].values else {
                panic!("numeric")
            };
            values.mapv(f64::to_bits)
        };
        assert_eq!(values(Seed(3)), values(Seed(3)));
        assert_ne!(values(Seed(3)), values(Seed(4)));
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let refused = |settings: CohortSettings| cohorts(&settings, Seed(1)).unwrap_err().setting;
        let usual = CohortSettings::default;
        assert_eq!(
            refused(CohortSettings {
                classes: 1,
                ..usual()
            }),
            "classes"
        );
        assert_eq!(
            refused(CohortSettings {
                patients: vec![],
                ..usual()
            }),
            "patients"
        );
        assert_eq!(
            refused(CohortSettings {
                missing: f64::NAN,
                ..usual()
            }),
            "missing"
        );
        assert_eq!(
            refused(CohortSettings {
                base_features: 0,
                ..usual()
            }),
            "base_features"
        );
    }
}
