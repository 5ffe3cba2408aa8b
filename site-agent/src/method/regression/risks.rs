//! The risk of an event by a time of each patient of the site, by the run's coefficients. It stays there.

use ndarray::Array1;
use protocol::cohort::OutcomeSpecification;
use protocol::method::regression::message::Evaluating;
use protocol::method::regression::settings::Baseline;
use similarity::cohort::Outcome;
use similarity::judge::survival::round_times;
use similarity::learn::regression::exponential::ends;

/// The risks of all patients by a time.
pub(super) struct Risks {
    pub(super) time: f64,
    pub(super) risks: Vec<f64>,
}

/// The risks by the study's horizons, else by round times up to which patients are followed: by the baseline that all hospitals have in
/// common, or by the site's own (Breslow's). Nothing of another outcome.
pub(super) fn risks(
    (outcome, specification): (&Outcome, &OutcomeSpecification),
    predictors: &Array1<f64>,
    (baseline, point): (Baseline, &Evaluating),
) -> Vec<Risks> {
    let Outcome::Survival { time, event } = outcome else {
        return Vec::new();
    };
    let kind = &specification.kind;
    let times = match kind.horizons() {
        [] => round_times(time, kind.horizon()),
        named => named.to_vec(),
    };
    let last = time.iter().copied().fold(0.0, f64::max);
    let by = |by: f64| {
        let hazard = match baseline {
            Baseline::Common { cells } => common((cells, kind.horizon()), point, by),
            Baseline::Hospital { .. } => own((time, event), predictors, by),
        };
        Risks {
            time: by,
            risks: predictors
                .iter()
                .map(|one| -libm::expm1(-hazard * libm::exp(*one)))
                .collect(),
        }
    };
    times
        .into_iter()
        .filter(|time| *time <= last)
        .map(by)
        .collect()
}

/// The cumulative hazard of a patient whose predictor is 0, constant in each of the cells of the point.
fn common((cells, horizon): (u32, f64), point: &Evaluating, by: f64) -> f64 {
    let ends = ends(horizon, cells);
    let of_cell = |(cell, log_hazard): (&u32, &f64)| {
        let cell = *cell as usize;
        let begin = cell.checked_sub(1).map_or(0.0, |before| ends[before]);
        libm::exp(*log_hazard) * (ends[cell].min(by) - begin).max(0.0)
    };
    point
        .design
        .cells
        .iter()
        .zip(point.at.iter())
        .map(of_cell)
        .sum()
}

/// The same by Breslow's estimate among the site's own patients.
fn own((time, event): (&Array1<f64>, &Array1<bool>), predictors: &Array1<f64>, by: f64) -> f64 {
    let mut order: Vec<usize> = (0..time.len()).collect();
    order.sort_by(|one, other| time[*other].total_cmp(&time[*one]));
    let (mut at_risk, mut hazard) = (0.0, 0.0);
    for same in order.chunk_by(|one, other| time[*one] == time[*other]) {
        at_risk += same
            .iter()
            .map(|row| libm::exp(predictors[*row]))
            .sum::<f64>();
        let events = same.iter().filter(|row| event[**row]).count();
        if time[same[0]] <= by {
            hazard += events as f64 / at_risk;
        }
    }
    hazard
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::method::regression::message::Design;
    use similarity::learn::regression::Ties;
    use std::sync::Arc;

    fn specification(horizons: Vec<f64>) -> OutcomeSpecification {
        OutcomeSpecification {
            label: "Death".to_owned(),
            unit: "days".to_owned(),
            level_labels: Default::default(),
            column: "days".to_owned(),
            kind: protocol::cohort::OutcomeKind::Survival {
                event: "died".to_owned(),
                event_values: Vec::new(),
                horizon: Some(4.0),
                horizons,
            },
            range: None,
            missing: Vec::new(),
        }
    }

    fn outcome() -> Outcome {
        Outcome::Survival {
            time: Array1::from(vec![1.0, 2.0, 2.0, 4.0]),
            event: Array1::from(vec![true, true, false, false]),
        }
    }

    fn point(cells: Vec<u32>, at: Vec<f64>) -> Evaluating {
        Evaluating {
            design: Arc::new(Design {
                cells,
                rows: Vec::new(),
                fold: None,
            }),
            at: Arc::new(at),
        }
    }

    /// Four patients of predictor 0: hazards of 1/4 and 1/3. With one of hazard 2: 1/5 and 1/4.
    #[test]
    fn by_the_sites_own_baseline_risks_are_those_of_the_definition() {
        let (outcome, specification) = (outcome(), specification(vec![1.0, 3.0]));
        let baseline = Baseline::Hospital { ties: Ties::Efron };
        let nothing = point(Vec::new(), Vec::new());
        let zeros = Array1::zeros(4);
        let found = risks((&outcome, &specification), &zeros, (baseline, &nothing));
        let wanted = [1.0 / 4.0, 1.0 / 4.0 + 1.0 / 3.0].map(|hazard: f64| 1.0 - (-hazard).exp());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.risks.iter().all(|risk| (risk - wanted).abs() < 1e-12));
        }
        let double = Array1::from(vec![0.0, 0.0, 2.0_f64.ln(), 0.0]);
        let found = risks((&outcome, &specification), &double, (baseline, &nothing));
        let hazard: f64 = 1.0 / 5.0 + 1.0 / 4.0;
        assert!((found[1].risks[2] - (1.0 - (-2.0 * hazard).exp())).abs() < 1e-12);
    }

    /// Cells of 2 with hazards of 0.1, and of the second none.
    #[test]
    fn by_a_common_baseline_hazards_last_as_long_as_their_cells() {
        let (outcome, specification) = (outcome(), specification(vec![1.0, 4.0]));
        let baseline = Baseline::Common { cells: 2 };
        let point = point(vec![0], vec![0.1_f64.ln()]);
        let found = risks(
            (&outcome, &specification),
            &Array1::zeros(4),
            (baseline, &point),
        );
        for (found, wanted) in found.iter().zip([0.1_f64, 0.2]) {
            assert!((found.risks[0] - (1.0 - (-wanted).exp())).abs() < 1e-12);
        }
    }
}
