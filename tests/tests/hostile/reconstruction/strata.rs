//! A hospital with an unmodified agent and made-up patients against a Cox regression: it puts many events before and on a day on which
//! one patient of the others has an event, so that whatever is counted by time is counted for that patient alone. It hears every sum, takes
//! off what its own patients add, and looks for the others' rows. The same against one baseline for all hospitals, whose cells of time it would
//! cut around that patient if it could.

use super::normal;
use ndarray::{Array1, Array2, ArrayView1, s};
use protocol::job::Job;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::learn::regression::Ties;
use similarity::learn::regression::cox::FollowUp;
use similarity::learn::regression::exponential::{Cells, Exposure, ends};
use similarity::learn::regression::newton::{Newton, Wanted};
use similarity::learn::regression::sums::Sums;
use similarity::numeric::precision::Precision;

const FEATURES: usize = 5;
const HORIZON: f64 = 1_000.0;
/// Cells of a common baseline.
const CELLS: u32 = 8;
/// Days that one run is about, and made-up events of each.
const DAYS: usize = 14;
const MADE_UP: usize = 200;
/// A row is recovered where a number of the sums is so near, as a share of its size.
const RECOVERED: f64 = 0.1;

/// Patients of a hospital.
struct Hospital {
    rows: Array2<f64>,
    time: Array1<f64>,
    event: Array1<bool>,
}

impl Hospital {
    /// Patients of whom no two have an event at one time.
    fn honest(count: usize, draw: &mut ChaCha8Rng) -> Self {
        let rows = Array2::from_shape_simple_fn((count, FEATURES), || normal(draw));
        let time = rows.outer_iter().map(|row| {
            let hazard = f64::exp(0.6 * row[0] - 0.4 * row[1]);
            let chance: f64 = draw.random_range(1e-6..1.0);
            (-700.0 * chance.ln() / hazard).min(HORIZON)
        });
        let time: Array1<f64> = time.collect();
        let event = time.iter().map(|time| *time < HORIZON);
        let event = event.collect();
        Self { rows, time, event }
    }

    /// Events a hair before, and on, each of these times.
    fn made_up(times: &[f64], draw: &mut ChaCha8Rng) -> Self {
        let all: Vec<f64> = times
            .iter()
            .flat_map(|time| [time - 1e-9, *time])
            .flat_map(|time| std::iter::repeat_n(time, MADE_UP / 2))
            .collect();
        Self {
            rows: Array2::from_shape_simple_fn((all.len(), FEATURES), || normal(draw)),
            event: Array1::from_elem(all.len(), true),
            time: Array1::from(all),
        }
    }

    fn exposed(&self, cells: &[u32]) -> Exposure {
        Exposure::new((&self.time, &self.event), HORIZON, CELLS, cells)
    }

    /// By the cells of a common baseline, or where there are none by its own risk sets.
    fn sums(&self, at: &Array1<f64>, cells: &[u32]) -> Sums {
        if !cells.is_empty() {
            return self.exposed(cells).sums(&self.rows.view(), at);
        }
        let follow_up = FollowUp::until(&self.time, &self.event, HORIZON);
        follow_up.sums(&self.rows.view(), at, Ties::Efron)
    }

    /// The test of proportional hazards, which leaves as well.
    fn with_time(&self, at: &Array1<f64>, cells: &[u32]) -> Sums {
        if !cells.is_empty() {
            return self.exposed(cells).sums_with_time(&self.rows.view(), at);
        }
        let follow_up = FollowUp::until(&self.time, &self.event, HORIZON);
        let scale: Vec<f64> = follow_up.times().iter().map(|t| t / HORIZON).collect();
        follow_up.sums_with_time(&self.rows.view(), at, Ties::Efron, &scale)
    }

    /// Events and time at risk of every cell.
    fn counted(&self) -> Sums {
        let all: Vec<u32> = (0..CELLS).collect();
        let nothing = Array2::zeros((self.time.len(), 0));
        self.exposed(&all)
            .sums(&nothing.view(), &Array1::zeros(CELLS as usize))
    }
}

fn pooled(hospitals: &[&Hospital], of: impl Fn(&Hospital) -> Sums) -> Sums {
    let mut all = of(hospitals[0]);
    let others = hospitals[1..].iter();
    others.for_each(|one| all.merge(&of(one)));
    all
}

/// What is left of a sum without the own part; of a cell the mean of whoever is at risk there.
fn others(all: &Sums, own: &Sums, cells: usize) -> Vec<Array1<f64>> {
    let gradient = &all.gradient - &own.gradient;
    let mut information = &all.information - &own.information;
    for cell in 0..cells {
        let size = information[(cell, cell)];
        information.row_mut(cell).mapv_inplace(|one| one / size);
    }
    let slopes = gradient.slice(s![cells..]);
    let parts = slopes.exact_chunks(FEATURES).into_iter();
    let parts = parts.map(|part| part.to_owned()).collect::<Vec<_>>();
    let columns = information.slice(s![.., cells..]);
    let rows = columns.exact_chunks((1, FEATURES)).into_iter();
    let rows = rows.map(|row| row.iter().copied().collect());
    parts.into_iter().chain(rows).collect()
}

/// Vectors of one run: of every question until the fit converges, and of the test after it.
fn heard(honest: [&Hospital; 2], liar: &Hospital, is_common: bool) -> Vec<Array1<f64>> {
    let all = [honest[0], honest[1], liar];
    let (mut cells, mut begin) = (Vec::new(), Array1::zeros(FEATURES));
    if is_common {
        let counted = Cells::of(&pooled(&all, Hospital::counted));
        cells = counted.with_event();
        let hazards = counted.without_columns().0.into_iter();
        begin = hazards.chain([0.0; FEATURES]).collect();
    }
    let mut newton = Newton::from(Array1::zeros(begin.len()), Precision::Exact, begin);
    let mut heard = Vec::new();
    while newton.wanted() != Wanted::Nothing {
        let at = newton.asked().clone();
        let sum = pooled(&all, |one| one.sums(&at, &cells));
        heard.extend(others(&sum, &liar.sums(&at, &cells), cells.len()));
        newton.learn_value(sum.log_likelihood, sum.gradient);
        if newton.wanted() == Wanted::Information {
            newton.learn_information(sum.information);
        }
    }
    let at = newton.maximum(0).at;
    let sum = pooled(&all, |one| one.with_time(&at, &cells));
    heard.extend(others(&sum, &liar.with_time(&at, &cells), cells.len()));
    heard
}

/// Patients with an event whose row one of these vectors is.
fn recovered(vectors: &[Array1<f64>], honest: [&Hospital; 2]) -> usize {
    let size = |one: ArrayView1<'_, f64>| one.dot(&one).sqrt();
    let is_told = |row: ArrayView1<'_, f64>| {
        let far = |vector: &Array1<f64>| size((vector - &row).view());
        vectors
            .iter()
            .any(|vector| far(vector) < RECOVERED * size(row))
    };
    let of = |one: &Hospital| {
        let rows = one.rows.outer_iter().zip(&one.event);
        rows.filter(|(row, event)| **event && is_told(*row)).count()
    };
    honest.into_iter().map(of).sum()
}

#[test]
fn made_up_events_single_out_nobody_of_a_stratified_cox_regression() {
    single_out_nobody(false);
}

#[test]
fn made_up_events_single_out_nobody_by_a_common_baseline_and_make_no_cell_smaller() {
    single_out_nobody(true);
    // What the others add to a cell is the same, whatever is made up.
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    let [one, other] = [150, 90].map(|count| Hospital::honest(count, &mut draw));
    let alone = Cells::of(&pooled(&[&one, &other], Hospital::counted));
    let liar = Hospital::made_up(&[130.0, 130.5, 131.0], &mut draw);
    let all = Cells::of(&pooled(&[&one, &other, &liar], Hospital::counted));
    let own = Cells::of(&liar.counted());
    assert_eq!(own.events.iter().sum::<u64>(), 3 * MADE_UP as u64);
    for cell in 0..CELLS as usize {
        assert_eq!(all.events[cell] - own.events[cell], alone.events[cell]);
        let followed = all.followed[cell] - own.followed[cell];
        assert!((followed - alone.followed[cell]).abs() < 1e-6);
        // Everybody who is still followed: no cell has fewer than 20 of them.
        assert!(followed > 20.0 * HORIZON / f64::from(CELLS));
    }
}

/// Two runs differ by what happened between an end of one grid and an end of the other. By grids of any number of cells that is a count
/// of few events; grids of which one contains the other leave its cells alone.
#[test]
fn grids_of_cells_leave_no_short_time_between_their_ends() {
    let patients = Hospital::honest(1_000, &mut ChaCha8Rng::seed_from_u64(13));
    let between = |grids: &[u32]| -> Vec<usize> {
        let mut all: Vec<f64> = grids
            .iter()
            .flat_map(|cells| ends(HORIZON, *cells))
            .collect();
        all.push(0.0);
        all.sort_by(f64::total_cmp);
        all.dedup_by(|one, other| (*one - *other).abs() < 1e-9);
        let count = |pair: &[f64]| {
            let both = patients.time.iter().zip(&patients.event);
            both.filter(|(time, event)| **event && **time > pair[0] && **time <= pair[1])
                .count()
        };
        all.windows(2).map(count).collect()
    };
    let any: Vec<u32> = (1..=20).collect();
    let few = between(&any)
        .into_iter()
        .filter(|events| (1..10).contains(events));
    let few = few.count();
    println!("{few} times with fewer than ten events lie between the ends of 20 grids");
    assert!(few > 50);
    let is_accepted = |cells: &u32| {
        Job::parse_for_one(&format!(
            "name = 'a'\nmethod = 'regression'\nsites = ['north']\n[outcome]\ncolumn = 'days'\nkind = 'survival'\nevent = 'seen'\n\
             event_values = ['1']\nhorizon = 1000\n[[features]]\nname = 'age'\nkind = 'numeric'\n\
             [regression]\nbaseline = 'common'\ncells = {cells}\n"
        ))
        .is_ok()
    };
    let accepted: Vec<u32> = any.into_iter().filter(is_accepted).collect();
    assert_eq!(accepted, [1, 2, 4, 8, 16]);
    let left = between(&accepted);
    assert_eq!(left.len(), 16);
    assert!(left.iter().all(|events| *events >= 10), "{left:?}");
}

fn single_out_nobody(is_common: bool) {
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    let [one, other] = [150, 90].map(|count| Hospital::honest(count, &mut draw));
    let honest = [&one, &other];
    let wanted: Vec<f64> = honest
        .iter()
        .flat_map(|one| one.time.iter().zip(&one.event))
        .filter(|(_, event)| **event)
        .map(|(time, _)| *time)
        .collect();
    let events = wanted.len();
    let mut told = Vec::new();
    for days in wanted.chunks(DAYS) {
        let liar = Hospital::made_up(days, &mut draw);
        told.push(heard(honest, &liar, is_common));
    }
    // Whatever two runs differ by is looked at as well.
    let pairs = told.windows(2).flat_map(|two| two[0].iter().zip(&two[1]));
    let apart: Vec<Array1<f64>> = pairs.map(|(one, other)| one - other).collect();
    let runs = told.len();
    let vectors: Vec<Array1<f64>> = told.into_iter().flatten().collect();
    let found = recovered(&vectors, honest) + recovered(&apart, honest);
    println!(
        "{runs} runs, {} vectors, {events} events: {found} rows",
        vectors.len()
    );
    assert_eq!(found, 0);
}

/// Cells with an event that have fewer than 20 patients on average, by their time alone and by the patients of whom a hospital can say at
/// most 10.
fn refused(all: &[&Hospital]) -> [bool; 2] {
    let cells: Vec<u32> = (0..CELLS).collect();
    let sum = pooled(all, Hospital::counted);
    let length = HORIZON / f64::from(CELLS);
    let mut counted = vec![0; cells.len()];
    for one in all {
        let own = one.exposed(&cells).counted(10);
        counted
            .iter_mut()
            .zip(own)
            .for_each(|(all, own)| *all += own);
    }
    [
        Cells::of(&sum)
            .followed
            .iter()
            .any(|time| *time < 20.0 * length),
        counted.iter().any(|count| *count < 20),
    ]
}

/// The liar fills the last cell, in which one patient of the others is left: by the time in it, the cell is full.
#[test]
fn a_cell_that_one_hospital_fills_is_not_read() {
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    let [mut one, mut other] = [150, 90].map(|count| Hospital::honest(count, &mut draw));
    let before = HORIZON * (1.0 - 1.0 / f64::from(CELLS));
    // Both end their follow-up there, but for one patient.
    for hospital in [&mut one, &mut other] {
        let ends = hospital.time.iter_mut().zip(hospital.event.iter_mut());
        for (time, event) in ends.filter(|(time, _)| **time > before) {
            (*time, *event) = (before, false);
        }
    }
    (one.time[0], one.event[0]) = (0.99 * HORIZON, true);
    let honest = [&one, &other];
    assert_eq!(refused(&honest), [true, true]);
    let liar = Hospital::made_up(&[0.999 * HORIZON; 2], &mut draw);
    let told = heard(honest, &liar, true);
    let found = recovered(&told, honest);
    println!("{} vectors, {found} row", told.len());
    // What the sum of the cell tells is the patient's row, for which time alone has no rule.
    assert_eq!(found, 1);
    assert_eq!(refused(&[&one, &other, &liar]), [false, true]);
    // Nor does a cell hide few of the others where the hospital's patients are real: whoever has most takes its own off.
    let large = Hospital::honest(400, &mut draw);
    assert_eq!(refused(&[&one, &other, &large]), [false, true]);
    // Hospitals that each have some there are read together.
    let honest = [150, 90].map(|count| Hospital::honest(count, &mut draw));
    assert_eq!(refused(&[&honest[0], &honest[1], &large]), [false, false]);
}

/// The search knows a row where a sum is of one event: as a sum by time would be, which the made-up events cut.
#[test]
fn a_sum_over_one_event_is_a_row() {
    let mut draw = ChaCha8Rng::seed_from_u64(11);
    let [one, other] = [150, 90].map(|count| Hospital::honest(count, &mut draw));
    let honest = [&one, &other];
    let told = honest.iter().flat_map(|one| {
        let with_event = one.rows.outer_iter().zip(&one.event);
        with_event
            .filter(|(_, event)| **event)
            .map(|(row, _)| row.to_owned())
    });
    let told: Vec<Array1<f64>> = told.collect();
    assert_eq!(recovered(&told, honest), told.len());
}
