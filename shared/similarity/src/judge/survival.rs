//! Survival of groups, by the product-limit estimate (Kaplan and Meier 1958).

use ndarray::Array1;

/// The normal number that 97.5 % are below.
const NORMAL: f64 = 1.959_963_984_540_054;
/// The chance on either side of an interval.
const SIDE: f64 = 0.025;
/// Times at which a curve is given, at most.
const TIMES_MAX: i32 = 3;
/// The share of patients who are followed at least so long as a curve is given.
const FOLLOWED: f64 = 0.1;

/// A point of a survival curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Survival {
    /// When.
    pub time: f64,
    /// The share without an event after it.
    pub share: f64,
    /// The lower end of its interval of 95 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// When a curve first reaches one half, with an interval of 95 %; none of what it never reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The median.
    pub time: Option<f64>,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A curve, and the patients that it is of.
#[derive(Clone, PartialEq)]
pub struct KaplanMeier {
    points: Vec<Survival>,
    /// When each patient was last seen, and whether by an event, rising.
    seen: Vec<(f64, bool)>,
}

impl KaplanMeier {
    /// S(t) = product over event times u <= t of 1 - d_u / n_u, of the patients `members`: from 1 at time 0, a point for each event time,
    /// and one where the last patient is lost from sight. Intervals are of log(-log S) with Greenwood's variance (Kalbfleisch and
    /// Prentice 1980). A curve at 0 has none: its upper end is that of the point before.
    #[must_use]
    pub fn of(
        time: &Array1<f64>,
        event: &Array1<bool>,
        members: impl Iterator<Item = usize>,
    ) -> Self {
        let mut seen: Vec<(f64, bool)> = members.map(|row| (time[row], event[row])).collect();
        seen.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut last = Survival {
            time: 0.0,
            share: 1.0,
            low: 1.0,
            high: 1.0,
        };
        let mut points = vec![last];
        let (mut at_risk, mut greenwood) = (seen.len(), 0.0);
        for same in seen.chunk_by(|one, other| one.0 == other.0) {
            let events = same.iter().filter(|(_, event)| *event).count();
            if events > 0 {
                let (d, n) = (events as f64, at_risk as f64);
                last.time = same[0].0;
                last.share *= 1.0 - d / n;
                greenwood += d / (n * (n - d));
                (last.low, last.high) = log_log(last.share, greenwood, last.high);
                points.push(last);
            }
            at_risk -= same.len();
        }
        match seen.last() {
            Some((time, _)) if *time > last.time => points.push(Survival {
                time: *time,
                ..last
            }),
            _ => {}
        }
        Self { points, seen }
    }

    /// The points, by rising time.
    #[must_use]
    pub fn points(&self) -> &[Survival] {
        &self.points
    }

    /// Patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        self.seen.len()
    }

    /// Patients with an event.
    #[must_use]
    pub fn events(&self) -> usize {
        self.seen.iter().filter(|(_, event)| *event).count()
    }

    /// When each patient was last seen, rising.
    pub fn followed(&self) -> impl Iterator<Item = f64> {
        self.seen.iter().map(|(time, _)| *time)
    }

    /// Patients who are followed up to `time` without an event before it.
    #[must_use]
    pub fn at_risk(&self, time: f64) -> usize {
        self.seen.len() - self.seen.partition_point(|(seen, _)| *seen < time)
    }

    /// The curve at a time; none where nobody is followed so long, unless nobody is left. Before the first event the lower end is
    /// that of Clopper and Pearson for those who are followed so long.
    #[must_use]
    pub fn at(&self, time: f64) -> Option<Survival> {
        let known = self.points.partition_point(|point| point.time <= time);
        let point = self.points[known.checked_sub(1)?];
        let at_risk = self.at_risk(time);
        if at_risk == 0 && point.share > 0.0 {
            return None;
        }
        Some(match point.share < 1.0 {
            true => Survival { time, ..point },
            false => Survival {
                time,
                low: libm::pow(SIDE, 1.0 / at_risk as f64),
                ..point
            },
        })
    }

    /// The median, with the interval of Brookmeyer and Crowley (1982): where the ends of the curve's intervals first reach one half.
    #[must_use]
    pub fn median(&self) -> Median {
        let first = |of: fn(&Survival) -> f64| {
            let reached = self.points.iter().find(|point| of(point) <= 0.5);
            reached.map(|point| point.time)
        };
        Median {
            time: first(|point| point.share),
            low: first(|point| point.low),
            high: first(|point| point.high),
        }
    }

    /// When patients were censored, and the curve there.
    #[must_use]
    pub fn censored(&self) -> Vec<(f64, f64)> {
        let censored = self.seen.iter().filter(|(_, event)| !event);
        let share = |time: f64| {
            let known = self.points.partition_point(|point| point.time <= time);
            known
                .checked_sub(1)
                .map_or(1.0, |last| self.points[last].share)
        };
        censored.map(|(time, _)| (*time, share(*time))).collect()
    }
}

impl std::fmt::Debug for KaplanMeier {
    /// Nothing: a curve shows patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("KaplanMeier")
            .finish_non_exhaustive()
    }
}

/// The ends of an interval of log(-log S).
fn log_log(share: f64, greenwood: f64, before: f64) -> (f64, f64) {
    if share <= 0.0 {
        return (0.0, before);
    }
    let half = NORMAL * greenwood.sqrt() / libm::log(share).abs();
    (
        libm::pow(share, libm::exp(half)),
        libm::pow(share, libm::exp(-half)),
    )
}

/// Round times at which curves are shown: at most three equal steps, up to the horizon or to where a tenth of the patients are followed.
#[must_use]
pub fn round_times(time: &Array1<f64>, horizon: f64) -> Vec<f64> {
    let mut followed = time.to_vec();
    followed.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place
    let place = ((1.0 - FOLLOWED) * followed.len() as f64) as usize;
    let end = followed.get(place).map_or(0.0, |time| time.min(horizon));
    let most = end / f64::from(TIMES_MAX);
    if most <= 0.0 {
        return Vec::new();
    }
    #[allow(clippy::cast_possible_truncation)] // an exponent of ten
    let ten = 10_f64.powi(libm::log10(most).floor() as i32);
    let steps = [5.0, 4.0, 3.0, 2.0].map(|step| step * ten);
    let step = steps.into_iter().find(|step| *step <= most).unwrap_or(ten);
    (1..=TIMES_MAX)
        .map(|count| step * f64::from(count))
        .collect()
}

/// The time that is lost up to `horizon`: the area above the points of a [`KaplanMeier`], which is the horizon less the restricted mean
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
    fn classic_trial() -> KaplanMeier {
        let time = [
            6.0, 6.0, 6.0, 6.0, 7.0, 9.0, 10.0, 10.0, 11.0, 13.0, 16.0, 17.0, 19.0, 20.0, 22.0,
            23.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ];
        let censored = [3, 5, 7, 8, 11, 12, 13, 16, 17, 18, 19, 20];
        let event: Array1<bool> = (0..21).map(|row| !censored.contains(&row)).collect();
        KaplanMeier::of(&Array1::from(time.to_vec()), &event, 0..21)
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
            let found = time_lost(classic_trial().points(), horizon);
            assert!((found - wanted).abs() < 1e-10, "{horizon}: {found}");
        }
        assert_eq!(time_lost(classic_trial().points(), 0.0), 0.0);
    }

    /// With the estimates that every textbook prints.
    #[test]
    fn the_curve_of_the_classic_trial_is_the_one_in_the_textbooks() {
        let trial = classic_trial();
        let curve = trial.points();
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
        let nobody = KaplanMeier::of(&Array1::zeros(0), &Array1::from_elem(0, true), 0..0);
        assert_eq!((nobody.points().len(), nobody.at(1.0)), (1, None));
    }
}
