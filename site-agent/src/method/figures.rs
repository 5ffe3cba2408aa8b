//! Figures of single patients, which stay at the site.

use protocol::cohort::OutcomeSpecification;
use report::{File, Known, SurvivalCurve, SurvivalPoint, against, survival};
use similarity::cohort::Outcome;
use similarity::judge::predicted::Predicted;
use similarity::judge::survival::{KaplanMeier, groups_by_risk};
use std::io;

/// Groups of predicted risk.
const GROUPS: [&str; 3] = ["lowest risk", "middle", "highest risk"];

/// A curve as it is drawn.
pub(crate) fn survival_curve(name: String, curve: &KaplanMeier) -> SurvivalCurve {
    let points = curve.points().iter().map(|point| SurvivalPoint {
        time: point.time,
        share: point.share,
        low: point.low,
        high: point.high,
    });
    SurvivalCurve {
        name,
        points: points.collect(),
        censored: curve.censored(),
        known: Known::Patients(curve.followed().collect()),
    }
}

/// Survival by predicted risk, or what was observed against what was predicted; none where classes are predicted.
pub(super) fn figure(
    outcome: &Outcome,
    specification: &OutcomeSpecification,
    predicted: &Predicted,
) -> Option<File> {
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
                let curve = KaplanMeier::of(time, event, members.iter().copied());
                survival_curve(name, &curve)
            };
            let curves: Vec<SurvivalCurve> = GROUPS.iter().zip(&groups).map(curve).collect();
            ("survival.svg", survival(&curves, specification, ""))
        }
    };
    let (name, svg) = drawn;
    let bytes = svg.map(String::into_bytes).map_err(io::Error::other);
    Some(File::bytes(name, bytes))
}
