//! Survival of patients who are known by groups alone: by the life table (Cutler and Ederer 1958) from counts on a grid of times, with noise in them.
//!
//! Of N patients, each interval of the grid has d events and c censored. With n patients at its beginning and q = d / (n - c/2), survival
//! is the product of 1 - q. Its interval has the variance
//!
//! ```text
//! S (1 - S) / N* + noise
//! ```
//!
//! where N* is the number of patients that without censoring have Greenwood's variance (1926), and the noise is that of the cells by their
//! derivatives. It is of the score test, as those of shares ([`Counted::share`]). Nobody knows when in an interval patients were
//! censored. If all were at its beginning, q is d / (n - c), and if at its end, d / n; the truth lies between. So the lower end is that of the
//! former, and the upper end that of the latter. Each end is then at least as far out as both need to fall, and values are averaged
//! where noise lets them rise (isotonic regression). `tests/curves.rs` measures coverage.

use super::cases::Interval;
use super::estimates::{Counted, NORMAL, Noised, score};
use crate::judge::survival::Median;

/// Patients of an interval who are not censored in it, at least.
const AT_RISK_MIN: f64 = 20.0;
/// Standard deviations of the noise in their number that they are, at least.
const NOISE_MAX: f64 = 4.0;

/// Survival of a group at the times of a grid, as far as enough patients are followed.
#[derive(Debug, Clone, PartialEq)]
pub struct GridCurve {
    /// By rising time.
    pub points: Vec<GridPoint>,
}

/// Survival at a time of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridPoint {
    /// When.
    pub time: f64,
    /// The share without an event until then, at 95 %.
    pub share: Interval,
    /// Patients who are followed up to it without an event; its ends are of the noise.
    pub at_risk: Interval,
}

/// Cells of a grid that ends at so many times: of each interval the events and the censored, and who is followed beyond.
#[must_use]
pub fn cells(times: usize) -> usize {
    2 * times + 1
}

/// The cell of a patient who is last seen at `time`. An event at an end of an interval is in it, and a patient who was censored there is
/// followed beyond.
#[must_use]
pub fn cell(times: &[f64], time: f64, event: bool) -> usize {
    let interval = match event {
        true => times.partition_point(|end| *end < time),
        false => times.partition_point(|end| *end <= time),
    };
    2 * interval + usize::from(!event && interval < times.len())
}

/// An interval of the grid.
#[derive(Clone, Copy)]
struct Step {
    /// Patients at risk, with noise.
    exposed: f64,
    /// q, from 0 to 1.
    hazard: f64,
}

/// How much of an interval its censored count for as at risk.
#[derive(Clone, Copy)]
struct Exposure(f64);

impl Counted {
    /// The curve at these times, from the [`cells`] of their grid.
    #[must_use]
    pub fn curve(self, times: &[f64], cells: &[Noised]) -> GridCurve {
        let at_risk = self.at_risk(cells);
        let enough = |place: &usize| {
            let noise = of_cells(cells, |cell| Exposure(0.0).of(*place, cell));
            let left = at_risk[*place] - cells[2 * place + 1].sum;
            left >= AT_RISK_MIN.max(NOISE_MAX * noise.sqrt())
        };
        let told: Vec<usize> = (0..times.len()).take_while(enough).collect();
        let through = |exposure| self.traced(cells, told.len(), Exposure(exposure));
        let (last, middle, first) = (through(1.0), through(0.5), through(0.0));
        let mut most = self.patients;
        let point = |place: usize| {
            let noise = of_cells(cells, |cell| f64::from(u8::from(cell < 2 * (place + 1))));
            let (own, half) = (at_risk[place + 1], NORMAL * noise.sqrt());
            most = own.clamp(0.0, most);
            GridPoint {
                time: times[place],
                share: Interval {
                    value: middle[place].value,
                    // Noise may let fewer than none be censored.
                    low: first[place].low.min(last[place].low),
                    high: last[place].high.max(first[place].high),
                },
                at_risk: Interval {
                    value: most,
                    low: (own - half).clamp(0.0, most),
                    high: (own + half).clamp(most, self.patients),
                },
            }
        };
        let mut points = told.into_iter().map(point).collect::<Vec<_>>();
        falling(&mut points);
        GridCurve { points }
    }

    /// Patients at the beginning of each interval, and behind the last, with noise.
    fn at_risk(self, cells: &[Noised]) -> Vec<f64> {
        let mut left = self.patients;
        let gone = cells.chunks_exact(2).map(|own| own[0].sum + own[1].sum);
        let after = gone.map(|gone| {
            left -= gone;
            left
        });
        std::iter::once(self.patients).chain(after).collect()
    }

    /// The shares at the ends of so many intervals, where the censored of each count so long.
    fn traced(self, cells: &[Noised], intervals: usize, exposure: Exposure) -> Vec<Interval> {
        let at_risk = self.at_risk(cells);
        let mut steps: Vec<Step> = Vec::new();
        let mut share = 1.0;
        let mut one = |place: usize| {
            let [events, censored] = [cells[2 * place].sum, cells[2 * place + 1].sum];
            let exposed = at_risk[place] - (1.0 - exposure.0) * censored;
            let exposed = exposed.max(AT_RISK_MIN);
            let hazard = (events / exposed).clamp(0.0, 1.0);
            steps.push(Step { exposed, hazard });
            share *= 1.0 - events / exposed;
            let n = self.uncensored(&steps);
            let noise = of_cells(cells, |cell| exposure.change(&steps, cell));
            score(share, n, noise + self.unsure(0.25) / (n * n))
        };
        (0..intervals).map(&mut one).collect()
    }

    /// N*: 1/S - 1 over Greenwood's sum.
    fn uncensored(self, steps: &[Step]) -> f64 {
        let (mut alive, mut weights, mut sum) = (1.0, 0.0, 0.0);
        let mut left = self.patients;
        for step in steps {
            // Patients that without censoring leave as many exposed.
            left = (step.exposed / alive).min(left);
            // At least as if one patient had an event: else noise decides which interval counts.
            let hazard = step.hazard.clamp(1.0 / step.exposed, 0.99);
            let weight = hazard / ((1.0 - hazard) * alive);
            weights += weight;
            sum += weight / left;
            alive *= 1.0 - hazard;
        }
        weights / sum
    }
}

impl Exposure {
    /// How many fewer are exposed in an interval for each patient of a cell.
    fn of(self, interval: usize, cell: usize) -> f64 {
        match cell.checked_sub(2 * interval) {
            None => 1.0,
            Some(1) => 1.0 - self.0,
            Some(_) => 0.0,
        }
    }

    /// How much survival falls for each patient of a cell.
    fn change(self, steps: &[Step], cell: usize) -> f64 {
        let own = steps.iter().enumerate().map(|(place, step)| {
            let others = steps
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let others: f64 = others.map(|(_, step)| 1.0 - step.hazard).product();
            let events = f64::from(u8::from(cell == 2 * place));
            others * (events + step.hazard * self.of(place, cell)) / step.exposed
        });
        own.sum()
    }
}

/// The variance of the noise in a sum of cells, each times what `of` says. Together cells are as many as there are patients, so their noise adds up to none.
fn of_cells(cells: &[Noised], of: impl Fn(usize) -> f64) -> f64 {
    let all = cells.len() as f64;
    let (mut squares, mut sum, mut variance) = (0.0, 0.0, 0.0);
    for (place, cell) in cells.iter().enumerate() {
        let times = of(place);
        squares += times * times;
        sum += times;
        variance += cell.variance;
    }
    variance / (all - 1.0) * (squares - sum * sum / all)
}

/// Lets values fall, each as the mean of those that rose, and ends by going out.
fn falling(points: &mut [GridPoint]) {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for point in points.iter() {
        let mut block = (point.share.value, 1);
        while let Some((before, size)) =
            blocks.pop_if(|last| last.0 / last.1 as f64 <= block.0 / block.1 as f64)
        {
            block = (block.0 + before, block.1 + size);
        }
        blocks.push(block);
    }
    let values = blocks
        .into_iter()
        .flat_map(|(sum, size)| std::iter::repeat_n(sum / size as f64, size));
    let (mut low, mut high) = (1.0_f64, 0.0_f64);
    for (point, value) in points.iter_mut().zip(values) {
        low = low.min(point.share.low);
        (point.share.value, point.share.low) = (value, low);
    }
    for point in points.iter_mut().rev() {
        high = high.max(point.share.high);
        point.share.high = high;
    }
}

impl GridCurve {
    /// When the line through the points first reaches one half. Its ends are times of the grid.
    #[must_use]
    pub fn median(&self) -> Median {
        let reached =
            |of: fn(&Interval) -> f64| self.points.iter().position(|point| of(&point.share) <= 0.5);
        let before = |place: usize| {
            let point = place.checked_sub(1).map(|place| self.points[place]);
            point.map_or((0.0, 1.0), |point| (point.time, point.share.value))
        };
        let crossed = |place: usize| {
            let ((from, above), point) = (before(place), self.points[place]);
            from + (point.time - from) * (above - 0.5) / (above - point.share.value)
        };
        Median {
            time: reached(|share| share.value).map(crossed),
            low: reached(|share| share.low).map(|place| before(place).0),
            high: reached(|share| share.high).map(|place| self.points[place].time),
        }
    }
}
