//! The paper's figures: boxes of every method by function and outcome, and the kernels of Fisher's irises.

use std::path::Path;

use ndarray::Array2;
use similarity::cohort::Outcome;
use similarity::compare::laplace::{Norm, laplace};
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::learn::forest::{Settings, grow};
use similarity::numeric::seed::Seed;

use super::Setting;
use super::predicting::{METHODS, features};
use super::real::Real;
use super::record::Record;
use super::setting::Kind;
use crate::ExperimentError;
use crate::drawing::{Boxes, Cells, boxes as draw_boxes, cells};

/// Widths of Laplace's kernel beside the forest's.
const SIGMAS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// A figure for each function or data set: above the measures, below how far the forest's kernel is from the forest.
pub(crate) fn boxes(
    settings: &[Setting],
    repeats: u64,
    record: &Record,
) -> Result<Vec<(String, String)>, ExperimentError> {
    let mut names: Vec<&str> = settings.iter().map(|setting| setting.name).collect();
    let mut seen = Vec::new();
    names.retain(|name| {
        let new = !seen.contains(name);
        seen.push(*name);
        new
    });
    let mut files = Vec::new();
    for name in names {
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            let of_kind = settings
                .iter()
                .filter(|one| one.name == name && one.kind == kind);
            let all: Vec<_> = of_kind.map(|one| (one, record.all(one, repeats))).collect();
            let all: Vec<_> = all
                .into_iter()
                .filter(|(_, splits)| !splits.is_empty())
                .collect();
            if all.is_empty() {
                continue;
            }
            let groups: Vec<String> = all
                .iter()
                .map(|(one, _)| format!("{} x {}", one.size[0], one.size[1]))
                .collect();
            let column = |of: &dyn Fn(&super::Scores) -> f64| -> Vec<Vec<f64>> {
                all.iter()
                    .map(|(_, splits)| splits.iter().map(of).collect())
                    .collect()
            };
            above.push(Boxes {
                title: format!("{name}: {}", kind.measure()),
                groups: groups.clone(),
                series: METHODS
                    .iter()
                    .enumerate()
                    .map(|(place, method)| (*method, column(&|scores| scores[place])))
                    .collect(),
                line: None,
            });
            below.push(Boxes {
                title: "forest's kernel less forest".to_owned(),
                groups,
                series: vec![("difference", column(&|scores| scores[1] - scores[0]))],
                line: Some(0.0),
            });
        }
        if !above.is_empty() {
            let file = name.to_lowercase().replace(' ', "-");
            files.push((format!("{file}.svg"), draw_boxes(&[above, below])?));
        }
    }
    Ok(files)
}

/// Figure 1: the kernel of a forest of the irises, and Laplace's of several widths with the Mantel statistic of the two.
pub(crate) fn irises(folder: &Path, seed: Seed) -> Result<String, ExperimentError> {
    let cohort = Real::irises(folder)?;
    let species = match cohort.outcome() {
        Outcome::Classes { levels, .. } => levels.join(", "),
        Outcome::Numeric(_) | Outcome::Survival { .. } => String::new(),
    };
    let grown = grow(&cohort, &Settings::for_outcome(cohort.outcome()), seed)?;
    let nodes = grown.forest.apply(cohort.columns())?;
    let training = Training {
        forest: &grown.forest,
        in_bag: &grown.in_bag,
        nodes: &nodes,
    };
    let forest = Kernel::Proximity.square(training)?;
    let x = features(&cohort);
    let mut panels = vec![Cells {
        title: format!("forest ({species})"),
        values: forest.clone(),
    }];
    for sigma in SIGMAS {
        let values = laplace(x.view(), x.view(), Norm::L1, sigma)?;
        panels.push(Cells {
            title: format!(
                "Laplace, sigma {sigma}, Mantel {:.2}",
                mantel(&forest, &values)
            ),
            values,
        });
    }
    cells(&panels, 3)
}

/// Correlation of the entries below the diagonals.
pub(crate) fn mantel(one: &Array2<f64>, other: &Array2<f64>) -> f64 {
    let below = |matrix: &Array2<f64>| -> Vec<f64> {
        let entries = matrix
            .indexed_iter()
            .filter(|((row, column), _)| row > column);
        entries.map(|(_, value)| *value).collect()
    };
    let (one, other) = (below(one), below(other));
    let n = one.len() as f64;
    let (mean, of_other) = (one.iter().sum::<f64>() / n, other.iter().sum::<f64>() / n);
    let mut sums = [0.0; 3];
    for (a, b) in one.iter().zip(&other) {
        let (a, b) = (a - mean, b - of_other);
        sums[0] += a * b;
        sums[1] += a * a;
        sums[2] += b * b;
    }
    sums[0] / (sums[1] * sums[2]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_mantel_statistic_is_the_correlation_of_the_lower_triangles() {
        let one = array![[1.0, 9.0, 9.0], [0.2, 1.0, 9.0], [0.5, 0.1, 1.0]];
        let other = array![[1.0, 0.0, 0.0], [0.4, 1.0, 0.0], [0.3, 0.3, 1.0]];
        // scipy.stats.pearsonr([0.2, 0.5, 0.1], [0.4, 0.3, 0.3])
        assert!((mantel(&one, &other) - -0.277_350_098).abs() < 1e-8);
        assert!((mantel(&one, &one) - 1.0).abs() < 1e-12);
    }
}
