//! Survival of groups, by the product-limit estimate (Kaplan and Meier 1958).

use ndarray::Array1;

/// A point of a survival curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Survival {
    /// When.
    pub time: f64,
    /// The share without an event after it.
    pub share: f64,
}

/// S(t) = product over event times u <= t of 1 - d_u / n_u, of the patients `members`: from 1 at time 0, a point for each
/// event time, and one where the last patient is lost from sight.
#[must_use]
pub fn kaplan_meier(
    time: &Array1<f64>,
    event: &Array1<bool>,
    members: impl Iterator<Item = usize>,
) -> Vec<Survival> {
    let mut seen: Vec<(f64, bool)> = members.map(|row| (time[row], event[row])).collect();
    seen.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut share = 1.0;
    let mut curve = vec![Survival { time: 0.0, share }];
    let mut at_risk = seen.len();
    for same in seen.chunk_by(|one, other| one.0 == other.0) {
        let events = same.iter().filter(|(_, event)| *event).count();
        if events > 0 {
            share *= 1.0 - events as f64 / at_risk as f64;
            let time = same[0].0;
            curve.push(Survival { time, share });
        }
        at_risk -= same.len();
    }
    match (seen.last(), curve.last()) {
        (Some((time, _)), Some(last)) if *time > last.time => {
            let time = *time;
            curve.push(Survival { time, share });
        }
        _ => {}
    }
    curve
}

/// The time that is lost up to `horizon`: the area above a curve of [`kaplan_meier`], which is the horizon less the restricted mean
/// survival time (Irwin 1949). After its last point a curve stays where it is.
#[must_use]
pub fn time_lost(curve: &[Survival], horizon: f64) -> f64 {
    let ends = curve.iter().skip(1).map(|next| next.time.min(horizon));
    let steps = curve.iter().zip(ends.chain([horizon]));
    let lost = steps.map(|(from, end)| (1.0 - from.share) * (end - from.time).max(0.0));
    lost.sum()
}

/// Patients in groups of nearly equal size by rising risk; those without one are in none.
#[must_use]
pub fn groups_by_risk(risk: &[f64], groups: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..risk.len()).filter(|row| !risk[*row].is_nan()).collect();
    order.sort_by(|one, other| risk[*one].total_cmp(&risk[*other]).then(one.cmp(other)));
    let groups = groups.max(1);
    let border = |group: usize| order.len() * group / groups;
    (0..groups)
        .map(|group| order[border(group)..border(group + 1)].to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remission under 6-mercaptopurine (Freireich et al. 1963).
    fn classic_trial() -> Vec<Survival> {
        let time = [
            6.0, 6.0, 6.0, 6.0, 7.0, 9.0, 10.0, 10.0, 11.0, 13.0, 16.0, 17.0, 19.0, 20.0, 22.0,
            23.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ];
        let censored = [3, 5, 7, 8, 11, 12, 13, 16, 17, 18, 19, 20];
        let event: Array1<bool> = (0..21).map(|row| !censored.contains(&row)).collect();
        kaplan_meier(&Array1::from(time.to_vec()), &event, 0..21)
    }

    /// lifelines 0.30.3: the horizon less `restricted_mean_survival_time` of the curve, before its first event, on an event, between two,
    /// and beyond its last patient.
    #[test]
    fn the_time_lost_of_the_classic_trial_is_that_of_another_program() {
        let known = [
            (5.0, 0.0),
            (10.0, 0.722_689_075_630_254_9),
            (23.0, 5.090_756_302_521_015),
            (30.0, 8.953_501_400_560_231),
            (60.0, 25.508_123_249_299_73),
        ];
        for (horizon, wanted) in known {
            let found = time_lost(&classic_trial(), horizon);
            assert!((found - wanted).abs() < 1e-10, "{horizon}: {found}");
        }
        assert_eq!(time_lost(&classic_trial(), 0.0), 0.0);
    }

    /// With the estimates that every textbook prints.
    #[test]
    fn the_curve_of_the_classic_trial_is_the_one_in_the_textbooks() {
        let curve = classic_trial();
        let wanted = [
            (0.0, 1.0),
            (6.0, 0.857),
            (7.0, 0.807),
            (10.0, 0.753),
            (13.0, 0.690),
            (16.0, 0.627),
            (22.0, 0.538),
            (23.0, 0.448),
            (35.0, 0.448),
        ];
        assert_eq!(curve.len(), wanted.len());
        for (found, (time, share)) in curve.iter().zip(wanted) {
            assert!((found.time - time).abs() < 1e-12);
            assert!((found.share - share).abs() < 5e-4, "{found:?}");
        }
    }

    #[test]
    fn groups_rise_by_risk_and_leave_out_who_has_none() {
        let risk = [0.3, f64::NAN, 0.1, 0.9, 0.2, 0.8, 0.5];
        let groups = groups_by_risk(&risk, 3);
        assert_eq!(groups, [vec![2, 4], vec![0, 6], vec![5, 3]]);
        assert!(kaplan_meier(&Array1::zeros(0), &Array1::from_elem(0, true), 0..0).len() == 1);
    }
}
