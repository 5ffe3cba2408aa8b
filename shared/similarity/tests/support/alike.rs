//! How near a share told by groups is to the share counted one by one, and how often the interval holds it.

use ndarray::{Array1, Array2, ArrayView1, Axis};
use rand::RngExt;
use rand::seq::SliceRandom as _;
use similarity::numeric::seed::Seed;
use similarity::uses::estimates::{Counted, Noised};
use similarity::uses::hidden::Hidden;
use similarity::uses::microaggregation::{Closeness, Group, OctaveGrid, parted};

/// Patients of a group at least.
const SIZE: usize = 10;
/// Of fewer nothing is said.
const FEW: f64 = 20.0;
/// New patients, taken out of the cohort before it is grouped.
const QUERIES: usize = 150;
const EPSILON: f64 = 1.0;
/// The nearest so many of a hundred pairs.
pub const PERCENTS: [u32; 3] = [5, 10, 20];

/// Where the patients of a hospital are, and their classes, 0 or 1.
pub struct Hospital {
    pub patients: Array2<f64>,
    pub classes: Vec<u32>,
}

/// What one radius of one closeness came to.
pub struct Row {
    /// The nearest so many of a hundred pairs.
    pub percent: u32,
    /// Answers, over all draws of noise.
    pub answers: usize,
    /// Those with the exact share in their interval.
    pub held: usize,
    /// Of those whose exact share is at most 3 % or at least 97 %.
    pub edge: (usize, usize),
    /// Those of 0.5 % or less where the share is over 2 %.
    pub zeros: usize,
    /// Mean size of the error, with noise and without.
    pub off: [f64; 2],
    /// Mean width of the interval.
    pub width: f64,
    /// Share of the pairs of patients within hospitals that are within the radius.
    pub pairs: f64,
}

pub fn distance(closeness: Closeness, a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    let both = a.iter().zip(b);
    match closeness {
        Closeness::Euclidean => both.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        Closeness::Manhattan => both.map(|(a, b)| (a - b).abs()).sum(),
        Closeness::InnerProduct => -both.map(|(a, b)| a * b).sum::<f64>(),
    }
}

/// A group with its patients of the second class, as they are told in each draw of noise, and as they are.
struct Told {
    group: Group,
    events: Vec<Noised>,
    exact: f64,
}

/// Every radius of these hospitals, over so many draws of noise.
pub fn trial(hospitals: &[Hospital], closeness: Closeness, draws: u64) -> Vec<Row> {
    let all: usize = hospitals.iter().map(|one| one.classes.len()).sum();
    let share = (QUERIES as f64 / all as f64).min(0.2);
    let mut stream = Seed(3).stream("queries", 0);
    let (mut queries, mut kept) = (Vec::new(), Vec::new());
    for one in hospitals {
        let is_new: Vec<bool> = one
            .classes
            .iter()
            .map(|_| stream.random::<f64>() < share)
            .collect();
        let rows = |new| {
            (0..is_new.len())
                .filter(|row| is_new[*row] == new)
                .collect::<Vec<_>>()
        };
        queries.extend(
            rows(true)
                .into_iter()
                .map(|row| one.patients.row(row).to_owned()),
        );
        let rows = rows(false);
        let classes: Vec<u32> = rows.iter().map(|row| one.classes[*row]).collect();
        kept.push((one.patients.select(Axis(0), &rows), classes));
    }
    queries.truncate(QUERIES);
    let groups = told(&kept, draws);
    let radii = radii(&kept, closeness);
    let of =
        |(percent, radius): (u32, f64)| row((percent, radius), &kept, &groups, &queries, closeness);
    PERCENTS.into_iter().zip(radii).map(of).collect()
}

fn told(kept: &[(Array2<f64>, Vec<u32>)], draws: u64) -> Vec<Told> {
    let mut groups = Vec::new();
    for (vectors, classes) in kept {
        for members in parted(vectors.view(), SIZE) {
            let events = members
                .iter()
                .map(|row| f64::from(classes[*row]))
                .sum::<f64>();
            let counts = [members.len() as f64 - events, events];
            let number = groups.len() as u64;
            let noised = |draw: u64| {
                let mut key = [0; 32];
                key[..8].copy_from_slice(&draw.to_le_bytes());
                key[8..16].copy_from_slice(&number.to_le_bytes());
                Hidden::by(key).classes(&counts, EPSILON)[1]
            };
            groups.push(Told {
                group: Group::of(vectors.view(), &members),
                events: (0..draws).map(noised).collect(),
                exact: events,
            });
        }
    }
    groups
}

/// As a run takes them, from groups alone.
pub fn radii(kept: &[(Array2<f64>, Vec<u32>)], closeness: Closeness) -> [f64; 3] {
    let mut counts = vec![0; OctaveGrid::cells()];
    for (vectors, _) in kept {
        let groups: Vec<Group> = parted(vectors.view(), SIZE)
            .iter()
            .map(|members| Group::of(vectors.view(), members))
            .collect();
        for (place, one) in groups.iter().enumerate() {
            let own = one.patients;
            Group::spread(
                own * (own - 1) / 2,
                &one.apart_within(closeness),
                &mut counts,
            );
            for other in &groups[..place] {
                Group::spread(
                    own * other.patients,
                    &one.apart(other, closeness),
                    &mut counts,
                );
            }
        }
    }
    let all: u64 = counts.iter().sum();
    PERCENTS.map(|percent| {
        let mut so_far = 0;
        let reaches = |count: &u64| {
            so_far += count;
            100 * so_far >= all * u64::from(percent)
        };
        OctaveGrid::end(counts.iter().position(reaches).unwrap())
    })
}

fn row(
    (percent, radius): (u32, f64),
    kept: &[(Array2<f64>, Vec<u32>)],
    groups: &[Told],
    queries: &[Array1<f64>],
    closeness: Closeness,
) -> Row {
    let mut row = Row {
        percent,
        answers: 0,
        held: 0,
        edge: (0, 0),
        zeros: 0,
        off: [0.0; 2],
        width: 0.0,
        pairs: within_pairs(kept, radius, closeness),
    };
    for query in queries {
        let near = |row: ArrayView1<'_, f64>| distance(closeness, row, query.view()) <= radius;
        let (mut alike, mut events) = (0_u32, 0_u32);
        for (vectors, classes) in kept {
            for (one, class) in vectors.outer_iter().zip(classes) {
                let is_near = u32::from(near(one));
                alike += is_near;
                events += is_near * class;
            }
        }
        let shares: Vec<f64> = groups
            .iter()
            .map(|told| {
                told.group
                    .within(query.as_slice().unwrap(), radius, closeness)
            })
            .collect();
        let both = || groups.iter().zip(&shares);
        let counted = Counted {
            patients: both().map(|(told, w)| w * told.group.patients as f64).sum(),
            border: both()
                .map(|(told, w)| w * (1.0 - w) * told.group.patients as f64)
                .sum(),
        };
        if alike == 0 || counted.patients < FEW {
            continue;
        }
        let truth = f64::from(events) / f64::from(alike);
        let exact: f64 = both().map(|(told, w)| w * told.exact).sum();
        for draw in 0..groups[0].events.len() {
            let mut sum = Noised::default();
            both().for_each(|(told, w)| sum.add(*w, told.events[draw]));
            let found = counted.share(sum);
            let holds = found.low - 1e-9 <= truth && truth <= found.high + 1e-9;
            row.answers += 1;
            row.held += usize::from(holds);
            if !(0.03..=0.97).contains(&truth) {
                row.edge = (row.edge.0 + usize::from(holds), row.edge.1 + 1);
            }
            row.zeros += usize::from(found.high < 0.005 && truth > 0.02);
            row.off[0] += (found.value - truth).abs();
            row.off[1] += (exact / counted.patients - truth).abs();
            row.width += found.high - found.low;
        }
    }
    let answers = row.answers.max(1) as f64;
    row.off = row.off.map(|off| off / answers);
    row.width /= answers;
    row
}

/// Of at most 400 patients of each hospital.
fn within_pairs(kept: &[(Array2<f64>, Vec<u32>)], radius: f64, closeness: Closeness) -> f64 {
    let (mut within, mut all) = (0_u32, 0_u32);
    for (vectors, _) in kept {
        let rows = vectors.nrows().min(400);
        for one in 0..rows {
            for other in 0..one {
                let apart = distance(closeness, vectors.row(one), vectors.row(other));
                within += u32::from(apart <= radius);
                all += 1;
            }
        }
    }
    f64::from(within) / f64::from(all.max(1))
}

/// A patient's place and outcome, from what is drawn for it and by chance.
type Made<'m> = dyn Fn(&[f64], f64) -> (Vec<f64>, bool) + 'm;

/// Made-up patients of shapes that are hard to group: name and hospitals.
pub fn made_up() -> Vec<(&'static str, Vec<Hospital>)> {
    let mut stream = Seed(8).stream("made up", 0);
    let mut normal = move || (0..12).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0;
    let mut set = |sizes: &[usize], columns: usize, of: &Made<'_>| {
        let hospital = |size: &usize| {
            let mut rows = Vec::new();
            let mut classes = Vec::new();
            for _ in 0..*size {
                let drawn: Vec<f64> = (0..columns).map(|_| normal()).collect();
                let (row, event) = of(&drawn, normal());
                rows.push(row);
                classes.push(u32::from(event));
            }
            let width = rows[0].len();
            Hospital {
                patients: Array2::from_shape_vec((*size, width), rows.concat()).unwrap(),
                classes,
            }
        };
        sizes.iter().map(hospital).collect::<Vec<Hospital>>()
    };
    vec![
        (
            "rare outcome",
            set(&[900, 800, 700, 600], 6, &|x, e| {
                (x.to_vec(), x[0] + 0.8 * x[1] + e > 3.6)
            }),
        ),
        (
            "tiny sites",
            set(&[34; 12], 4, &|x, e| (x.to_vec(), x[0] + 0.7 * e > 0.0)),
        ),
        (
            "collinear",
            set(&[500, 400, 300, 300], 2, &|x, e| {
                let row = (0..10).map(|k| x[usize::from(k > 7)] + 0.02 * f64::from(k) * x[0]);
                (row.collect(), x[0] + 0.3 * e > 0.3)
            }),
        ),
        (
            "long tails",
            set(&[500, 400, 300, 300], 5, &|x, e| {
                (x.iter().map(|x| x * x * x).collect(), x[0] + e > 0.0)
            }),
        ),
        (
            "sharp border",
            set(&[400, 300, 300, 200], 3, &|x, _| (x.to_vec(), x[0] > 0.0)),
        ),
    ]
}

/// Patients in a random order, in so many hospitals.
pub fn dealt(patients: &Array2<f64>, classes: &[u32], hospitals: usize) -> Vec<Hospital> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.shuffle(&mut Seed(3).stream("split", 0));
    let size = order.len().div_ceil(hospitals);
    let part = |rows: &[usize]| Hospital {
        patients: patients.select(Axis(0), rows),
        classes: rows.iter().map(|row| classes[*row]).collect(),
    };
    order.chunks(size).map(part).collect()
}
