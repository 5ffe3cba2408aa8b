//! Survival trees: the shared grid of event times, the log-rank statistic, Nelson-Aalen hazards.

use crate::learn::forest::grow::Member;
use crate::learn::forest::grow::criterion::{Criterion, DISTINCT, WeightedScore};
use crate::learn::forest::settings::{EventTimes, GrowError};
use crate::learn::forest::trees::tree::TerminalValues;

/// Follow-up on the grid.
pub(crate) struct GridFollowUp {
    /// The grid, rising.
    pub(crate) times: Vec<f64>,
    pub(crate) patients: Vec<GridPatient>,
}

/// One patient's follow-up on the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridPatient {
    /// At risk at the first so many grid times.
    pub(crate) at_risk: u32,
    /// An event at the last of them.
    pub(crate) event: bool,
}

/// Puts times and events on the grid that `choice` asks for.
pub(crate) fn on_grid(
    time: &[f64],
    event: &[bool],
    choice: &EventTimes,
) -> Result<GridFollowUp, GrowError> {
    let times = match choice {
        EventTimes::Given(times) => times.clone(),
        EventTimes::Observed { at_most } => thinned(observed(time, event), *at_most),
    };
    let usable = times
        .iter()
        .enumerate()
        .filter(|&(place, &at)| at.is_finite() && (place == 0 || times[place - 1] < at))
        .count();
    if !event.contains(&true) {
        return Err(GrowError::NoEvents);
    }
    if usable != times.len() || usable == 0 || usable > usize::from(u16::MAX) {
        return Err(GrowError::EventTimes {
            found: usable,
            wanted: times.len(),
        });
    }
    let patients = time
        .iter()
        .zip(event)
        .map(|(&at, &event)| {
            let before = times.partition_point(|&grid| grid < at);
            if event && before < times.len() {
                GridPatient {
                    at_risk: before as u32 + 1,
                    event: true,
                }
            } else {
                let at_risk = times.partition_point(|&grid| grid <= at) as u32;
                GridPatient {
                    at_risk,
                    event: false,
                }
            }
        })
        .collect();
    Ok(GridFollowUp { times, patients })
}

fn observed(time: &[f64], event: &[bool]) -> Vec<f64> {
    let mut times: Vec<f64> = time
        .iter()
        .zip(event)
        .filter(|&(_, &event)| event)
        .map(|(&at, _)| at)
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    times
}

fn thinned(times: Vec<f64>, at_most: usize) -> Vec<f64> {
    if times.len() <= at_most {
        return times;
    }
    (1..=at_most)
        .map(|step| times[step * times.len() / at_most - 1])
        .collect()
}

/// The two-sample log-rank statistic U^2 / V, in O(log G) a patient moved.
///
/// U = sum over the left side of c (delta - Lambda(r)), with c the in-bag count, Lambda the node's
/// Nelson-Aalen hazard and r the number of event times at risk. V = sum over event times of
/// d (Y - d) / (Y - 1) (Y_l / Y)(1 - Y_l / Y), the hypergeometric variance (Klein and Moeschberger 2003,
/// eq. 7.3.3). With a = d (Y - d) / ((Y - 1) Y), b = a / Y and their sums A(r), B(r) up to r, moving a
/// patient left changes V by c A(r) - c^2 B(r) - 2 c S(r), where S(r) = sum over t <= r of b Y_l is
/// kept by a Fenwick tree over r.
#[derive(Clone)]
pub(crate) struct LogRank<'a> {
    patients: &'a [GridPatient],
    grid: usize,
    local: Vec<Local>,
    /// A and B by number of the node's event times at risk.
    cumulative: Vec<Cumulative>,
    fenwick: Vec<FenwickSum>,
    numerator: f64,
    variance: f64,
    left_count: f64,
    deaths: Vec<f64>,
    leaving: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Local {
    /// Number of the node's own event times at risk.
    at_risk: u32,
    count: f64,
    /// c (delta - Lambda).
    score: f64,
}

#[derive(Clone, Copy, Default)]
struct Cumulative {
    hazard: f64,
    a: f64,
    b: f64,
}

#[derive(Clone, Copy, Default)]
struct FenwickSum {
    count: f64,
    count_b: f64,
}

impl<'a> LogRank<'a> {
    pub(crate) fn new(follow_up: &'a GridFollowUp) -> Self {
        Self {
            patients: &follow_up.patients,
            grid: follow_up.times.len(),
            local: Vec::new(),
            cumulative: Vec::new(),
            fenwick: Vec::new(),
            numerator: 0.0,
            variance: 0.0,
            left_count: 0.0,
            deaths: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Deaths at every grid time and, by number of grid times at risk, the patients leaving there.
    /// Returns the count of all members.
    fn tally(&mut self, members: &[Member]) -> f64 {
        self.deaths.clear();
        self.deaths.resize(self.grid, 0.0);
        self.leaving.clear();
        self.leaving.resize(self.grid + 1, 0.0);
        let mut total = 0.0;
        for member in members {
            let patient = self.patients[member.patient as usize];
            let count = f64::from(member.count);
            total += count;
            self.leaving[patient.at_risk as usize] += count;
            if patient.event {
                self.deaths[patient.at_risk as usize - 1] += count;
            }
        }
        total
    }

    /// Sums up to the patient's number of event times, from a Fenwick tree indexed from 1.
    #[inline]
    fn below(&self, at_risk: u32) -> FenwickSum {
        let mut sum = FenwickSum::default();
        let mut index = at_risk as usize;
        while index > 0 {
            sum.count += self.fenwick[index].count;
            sum.count_b += self.fenwick[index].count_b;
            index &= index - 1;
        }
        sum
    }
}

impl Criterion for LogRank<'_> {
    fn open(&mut self, members: &[Member]) -> bool {
        let mut at_risk = self.tally(members);
        self.cumulative.clear();
        let mut sums = Cumulative::default();
        self.cumulative.push(sums);
        // `leaving` becomes the map from grid times at risk to the node's own event times at risk.
        for time in 0..self.grid {
            at_risk -= self.leaving[time];
            self.leaving[time] = self.cumulative.len() as f64 - 1.0;
            let deaths = self.deaths[time];
            if deaths > 0.0 {
                sums.hazard += deaths / at_risk;
                if at_risk > 1.0 {
                    let a = deaths * (at_risk - deaths) / ((at_risk - 1.0) * at_risk);
                    sums.a += a;
                    sums.b += a / at_risk;
                }
                self.cumulative.push(sums);
            }
        }
        self.leaving[self.grid] = self.cumulative.len() as f64 - 1.0;
        self.local.clear();
        for member in members {
            let patient = self.patients[member.patient as usize];
            let at_risk = self.leaving[patient.at_risk as usize] as u32;
            let count = f64::from(member.count);
            let event = f64::from(u8::from(patient.event));
            let score = count * (event - self.cumulative[at_risk as usize].hazard);
            self.local.push(Local {
                at_risk,
                count,
                score,
            });
        }
        sums.a > 0.0
    }

    fn clear(&mut self) {
        self.fenwick.clear();
        self.fenwick
            .resize(self.cumulative.len(), FenwickSum::default());
        self.numerator = 0.0;
        self.variance = 0.0;
        self.left_count = 0.0;
    }

    #[inline]
    fn add(&mut self, position: usize) {
        let Local {
            at_risk,
            count,
            score,
        } = self.local[position];
        self.numerator += score;
        let Cumulative { a, b, .. } = self.cumulative[at_risk as usize];
        let below = self.below(at_risk);
        let s = below.count_b + b * (self.left_count - below.count);
        self.variance += count * (a - count * b - 2.0 * s);
        if at_risk > 0 {
            self.left_count += count;
            let mut index = at_risk as usize;
            while index < self.fenwick.len() {
                self.fenwick[index].count += count;
                self.fenwick[index].count_b += count * b;
                index += index & index.wrapping_neg();
            }
        }
    }

    fn exceeds(&self, best: f64) -> bool {
        self.gain() > best * DISTINCT
    }

    /// Where the variance vanishes the two sides are never at risk together: no gain.
    fn gain(&self) -> f64 {
        if self.variance > 1e-12 {
            self.numerator * self.numerator / self.variance
        } else {
            f64::NEG_INFINITY
        }
    }

    fn orderings(&self) -> usize {
        1
    }

    fn score(&self, _ordering: usize, position: usize) -> WeightedScore {
        let member = self.local[position];
        WeightedScore {
            weight: member.count,
            weighted: member.score,
        }
    }

    fn close(&mut self, members: &[Member], values: &mut TerminalValues) {
        let mut at_risk = self.tally(members);
        if let TerminalValues::Survival {
            starts,
            times,
            steps,
        } = values
        {
            for time in 0..self.grid {
                at_risk -= self.leaving[time];
                if self.deaths[time] > 0.0 {
                    times.push(time as u16);
                    steps.push(self.deaths[time] / at_risk);
                }
            }
            starts.push(times.len() as u32);
        }
    }

    fn no_values(&self) -> TerminalValues {
        TerminalValues::Survival {
            starts: vec![0],
            times: Vec::new(),
            steps: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use rand::RngExt;

    /// The textbook sum over event times.
    fn log_rank_by_definition(time: &[f64], event: &[bool], count: &[u32], left: &[bool]) -> f64 {
        let (mut numerator, mut variance) = (0.0, 0.0);
        for at in observed(time, event) {
            let (mut y, mut y_left, mut d, mut d_left) = (0.0, 0.0, 0.0, 0.0);
            for patient in 0..time.len() {
                let c = f64::from(count[patient]);
                let side = f64::from(u8::from(left[patient]));
                if time[patient] >= at {
                    y += c;
                    y_left += c * side;
                }
                if time[patient] == at && event[patient] {
                    d += c;
                    d_left += c * side;
                }
            }
            numerator += d_left - d * y_left / y;
            if y > 1.0 {
                variance += d * (y - d) / (y - 1.0) * (y_left / y) * (1.0 - y_left / y);
            }
        }
        numerator * numerator / variance
    }

    #[test]
    fn every_cut_has_the_log_rank_statistic_of_the_definition() {
        let mut stream = Seed(1).stream("log-rank", 0);
        for patients in [5_usize, 20, 60] {
            let time: Vec<f64> = (0..patients)
                .map(|_| f64::from(stream.random_range(1..30_u32)))
                .collect();
            let event: Vec<bool> = (0..patients)
                .map(|_| stream.random_range(0..3_u32) > 0)
                .collect();
            let count: Vec<u32> = (0..patients).map(|_| stream.random_range(1..4)).collect();
            let follow_up = on_grid(&time, &event, &EventTimes::Observed { at_most: 150 }).unwrap();
            let members: Vec<Member> = count
                .iter()
                .enumerate()
                .map(|(patient, &count)| Member {
                    patient: patient as u32,
                    count,
                })
                .collect();
            let mut criterion = LogRank::new(&follow_up);
            assert!(criterion.open(&members));
            criterion.clear();
            let mut left = vec![false; patients];
            for position in 0..patients - 1 {
                criterion.add(position);
                left[position] = true;
                let wanted = log_rank_by_definition(&time, &event, &count, &left);
                if wanted.is_finite() {
                    assert!((criterion.gain() - wanted).abs() < 1e-9 * wanted.max(1.0));
                }
            }
        }
    }

    #[test]
    fn a_coarse_grid_moves_events_up_and_censoring_down() {
        let choice = EventTimes::Given(vec![2.0, 4.0]);
        let found = on_grid(
            &[1.0, 2.0, 3.0, 3.0, 1.0, 9.0, 9.0],
            &[true, true, true, false, false, true, false],
            &choice,
        )
        .unwrap();
        let pairs: Vec<(u32, bool)> = found
            .patients
            .iter()
            .map(|patient| (patient.at_risk, patient.event))
            .collect();
        let wanted = [
            (1, true),
            (1, true),
            (2, true),
            (1, false),
            (0, false),
            (2, false),
            (2, false),
        ];
        assert_eq!(pairs, wanted);
    }

    #[test]
    fn thinning_keeps_the_last_time_and_the_number_asked_for() {
        let times: Vec<f64> = (1..=1000).map(f64::from).collect();
        let grid = thinned(times, 150);
        assert_eq!(grid.len(), 150);
        assert_eq!(grid[149], 1000.0);
        assert!(grid.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
