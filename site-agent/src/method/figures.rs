//! Figures of single patients, which stay at the site.

use ndarray::Array1;
use protocol::cohort::OutcomeSpecification;
use report::{Curve, against, survival};
use similarity::cohort::Outcome;
use similarity::judge::predicted::Predicted;
use similarity::judge::survival::{groups_by_risk, kaplan_meier};
use std::io;

/// Groups of predicted risk.
const GROUPS: [&str; 3] = ["lowest risk", "middle", "highest risk"];

/// Survival of the patients `rows`, by Kaplan and Meier.
pub(crate) fn survival_curve(
    name: String,
    (time, event): (&Array1<f64>, &Array1<bool>),
    rows: &[usize],
) -> Curve {
    let points = kaplan_meier(time, event, rows.iter().copied());
    let points = points.iter().map(|point| (point.time, point.share));
    Curve {
        name,
        points: points.collect(),
    }
}

/// Survival by predicted risk, or what was observed against what was predicted; none where classes are predicted.
pub(super) fn figure(
    outcome: &Outcome,
    specification: &OutcomeSpecification,
    predicted: &Predicted,
) -> Option<(&'static str, io::Result<Vec<u8>>)> {
    let drawn = match outcome {
        Outcome::Classes { .. } => return None,
        Outcome::Numeric(observed) => {
            let both = predicted.values().iter().zip(observed);
            let known = both.filter(|(predicted, _)| !predicted.is_nan());
            let points: Vec<(f64, f64)> = known.map(|(one, other)| (*one, *other)).collect();
            (
                "predicted.svg",
                against(&points, &specification.label_with_unit()),
            )
        }
        Outcome::Survival { time, event } => {
            let groups = groups_by_risk(predicted.values(), GROUPS.len());
            let curve = |(name, members): (&&str, &Vec<usize>)| {
                let name = format!("{name}: {} patients", members.len());
                survival_curve(name, (time, event), members)
            };
            let curves: Vec<Curve> = GROUPS.iter().zip(&groups).map(curve).collect();
            ("survival.svg", survival(&curves, specification, ""))
        }
    };
    let (name, svg) = drawn;
    Some((name, svg.map(String::into_bytes).map_err(io::Error::other)))
}
