//! Whoever hears the mean of the places by a common forest of the patients of a small group, knows the forest, and looks for ten patients
//! whose places have that mean. Of places of many numbers they are found, of as many as places have they are not.

use ndarray::{Array1, Array2, Axis, concatenate};
use protocol::message::cluster::parted;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::compare::proximity::places::{Places, coordinates};
use similarity::learn::forest::edges::{PooledEdges, SiteHistogram};
use similarity::learn::forest::federated::merged;
use similarity::learn::forest::{Forest, Settings, grow};
use similarity::numeric::seed::Seed;

const FEATURES: usize = 2;
const SITES: u64 = 3;
const PATIENTS: usize = 200;
const TREES: usize = 100;
/// Patients of a small group at least, by the usual rules.
const LEAST: usize = 10;
/// Searches for the patients of a group, and passes of each over all of them.
const STARTS: usize = 4;
const PASSES: usize = 30;
/// Patients who are guessed before the first pass, of whom the fitting ones are taken.
const GUESSES: usize = 1000;
/// Small groups that are attacked.
const GROUPS: usize = 6;
/// Times that patients are drawn beside those who are found.
const DRAWN: usize = 50;

/// What the attacker knows: the forest, and its cut points.
struct Known {
    forest: Forest,
    places: Places,
    edges: Vec<Vec<f64>>,
    /// Whether the mean of the squares is known beside the mean, as to who asks often enough who is alike.
    squares: bool,
}

/// A patient as a forest tells patients apart: between which cut points each feature is.
type Cells = [usize; FEATURES];

impl Known {
    fn cells(&self, row: &[f64]) -> Cells {
        std::array::from_fn(|place| self.edges[place].partition_point(|edge| *edge < row[place]))
    }

    /// The places of patients in these cells.
    fn of(&self, patients: &[Cells]) -> Array2<f64> {
        let column = |place: usize| {
            let edges = &self.edges[place];
            let value = |cells: &Cells| edges.get(cells[place]).copied().unwrap_or(f64::MAX);
            let values = patients.iter().map(value).collect();
            numeric(place, values)
        };
        let columns: Vec<Column> = (0..FEATURES).map(column).collect();
        let places = self.places.of(&self.forest.apply(&columns).unwrap());
        match self.squares {
            true => concatenate![Axis(1), places, places.mapv(|one| one * one)],
            false => places,
        }
    }
}

fn numeric(place: usize, values: Array1<f64>) -> Column {
    Column {
        name: format!("x{place}"),
        values: Values::Numeric(values),
    }
}

/// Hospitals, whose patients have features as likely anywhere, and a class that two of them tell.
fn hospitals() -> Vec<Cohort> {
    let hospital = |site: u64| {
        let mut draw = ChaCha8Rng::seed_from_u64(site);
        let rows = Array2::from_shape_simple_fn((PATIENTS, FEATURES), || draw.random::<f64>());
        let class = |row: ndarray::ArrayView1<'_, f64>| {
            u32::from(row[0] + row[1] * row[1] + draw.random::<f64>() > 1.3)
        };
        let codes: Array1<u32> = rows.outer_iter().map(class).collect();
        let columns = rows.axis_iter(Axis(1)).enumerate();
        let columns = columns.map(|(place, values)| numeric(place, values.to_owned()));
        let levels = ["negative", "positive"].map(str::to_owned).to_vec();
        Cohort::new(columns.collect(), Outcome::Classes { codes, levels }).unwrap()
    };
    (0..SITES).map(hospital).collect()
}

fn values(cohort: &Cohort, place: usize) -> &Array1<f64> {
    match &cohort.columns()[place].values {
        Values::Numeric(values) => values,
        Values::Categorical { .. } => panic!("no number"),
    }
}

fn known(hospitals: &[Cohort], coordinates: usize, squares: bool) -> Known {
    let histogram = |place: usize| {
        let of_site = |cohort: &Cohort| {
            SiteHistogram::new(values(cohort, place).view(), 20, LEAST as u64).unwrap()
        };
        hospitals.iter().map(of_site).collect()
    };
    let histograms: Vec<Vec<SiteHistogram>> = (0..FEATURES).map(histogram).collect();
    let edges = PooledEdges::pooled(&histograms, 31).unwrap();
    let grown = hospitals.iter().zip(0..).map(|(cohort, site)| {
        let settings = Settings {
            trees: TREES,
            ..Settings::for_outcome(cohort.outcome())
        };
        let settings = settings.federated(edges.clone(), LEAST as u32);
        grow(cohort, &settings, Seed(site)).unwrap().forest
    });
    let forest = merged(grown.collect()).unwrap();
    Known {
        places: Places::with_coordinates(&forest, coordinates),
        forest,
        squares,
        edges: (0..FEATURES)
            .map(|place| edges.of(place).to_vec())
            .collect(),
    }
}

/// The likeliest patients, that many, whose places have this mean: the best of several searches, each of which changes one feature of one
/// patient at a time.
fn searched(
    known: &Known,
    mean: &Array1<f64>,
    patients: usize,
    draw: &mut ChaCha8Rng,
) -> Vec<Cells> {
    let mut best = (f64::INFINITY, Vec::new());
    for _ in 0..STARTS {
        let guess =
            |_| std::array::from_fn(|place| draw.random_range(0..=known.edges[place].len()));
        let guesses: Vec<Cells> = (0..GUESSES).map(guess).collect();
        let of_guesses = known.of(&guesses);
        let goal = mean * patients as f64;
        let mut sum = Array1::<f64>::zeros(mean.len());
        let mut found: Vec<Cells> = Vec::new();
        for left in (1..=patients).rev() {
            // Of those left, each has an equal part of what is missing.
            let wanted = (&goal - &sum) / left as f64;
            let far = |row: usize| apart(&of_guesses.row(row).to_owned(), &wanted);
            let nearest = (0..GUESSES)
                .min_by(|a, b| far(*a).total_cmp(&far(*b)))
                .unwrap();
            found.push(guesses[nearest]);
            sum += &of_guesses.row(nearest);
        }
        for _ in 0..PASSES {
            let mut order: Vec<usize> = (0..patients).collect();
            order.shuffle(draw);
            let mut is_moved = false;
            for one in order {
                let others = &sum - &known.of(&found[one..=one]).row(0);
                let mut choices = vec![found[one]];
                for place in 0..FEATURES {
                    choices.extend((0..=known.edges[place].len()).map(|cell| {
                        let mut other = found[one];
                        other[place] = cell;
                        other
                    }));
                }
                let of_choices = known.of(&choices);
                let far = |row: usize| apart(&(&others + &of_choices.row(row)), &goal);
                let nearest = (0..choices.len())
                    .min_by(|a, b| far(*a).total_cmp(&far(*b)))
                    .unwrap();
                let chosen = match far(nearest) < far(0) - 1e-12 {
                    true => nearest,
                    false => 0,
                };
                is_moved |= chosen > 0;
                found[one] = choices[chosen];
                sum = &others + &of_choices.row(chosen);
            }
            if !is_moved {
                break;
            }
        }
        let all = known.of(&found);
        let left = apart(&all.sum_axis(Axis(0)), &goal);
        if left < best.0 {
            best = (left, found);
        }
    }
    println!("left: {:.5}", best.0);
    best.1
}

fn apart(one: &Array1<f64>, other: &Array1<f64>) -> f64 {
    (one - other).mapv(|gap| gap * gap).sum().sqrt()
}

/// How many cells the most different feature of two patients is apart.
fn steps(one: &Cells, other: &Cells) -> usize {
    let gaps = one.iter().zip(other).map(|(a, b)| a.abs_diff(*b));
    gaps.max().unwrap_or(0)
}

/// Of each patient the most different feature of the nearest that was found, in cells.
fn errors(truth: &[Cells], found: &[Cells]) -> Vec<usize> {
    let nearest = |one: &Cells| found.iter().map(|other| steps(one, other)).min();
    truth.iter().filter_map(nearest).collect()
}

/// Numbers of a place by which the attack succeeds.
const MANY: usize = 32;

/// How patients who are placed are grouped.
type Grouped = fn(&Array2<f64>, &Cohort) -> Vec<Vec<usize>>;

/// As sites group them.
fn near_each_other(places: &Array2<f64>, _: &Cohort) -> Vec<Vec<usize>> {
    parted(places.view(), LEAST)
}

/// Of one class each, so that groups reach far: there is more to find in them.
fn of_one_class(places: &Array2<f64>, cohort: &Cohort) -> Vec<Vec<usize>> {
    let Outcome::Classes { codes, .. } = cohort.outcome() else {
        panic!("no classes");
    };
    let of_class = |class: u32| {
        let rows: Vec<usize> = (0..codes.len())
            .filter(|row| codes[*row] == class)
            .collect();
        let own = parted(places.select(Axis(0), &rows).view(), LEAST);
        let members = |group: Vec<usize>| group.into_iter().map(|one| rows[one]).collect();
        own.into_iter().map(members).collect::<Vec<Vec<usize>>>()
    };
    (0..2).flat_map(of_class).collect()
}

/// Of each patient in a small group of the north how far the nearest is of ten who are found for its group; and how far that of ten who are
/// drawn with the mean and the deviation of the group's features, which is no secret (`marks`).
fn read(
    hospitals: &[Cohort],
    coordinates: usize,
    squares: bool,
    grouped: Grouped,
) -> (Vec<usize>, Vec<usize>) {
    let known = known(hospitals, coordinates, squares);
    let north = &hospitals[0];
    let cells = |row: usize| {
        let own = (0..FEATURES).map(|place| values(north, place)[row]);
        known.cells(&own.collect::<Vec<f64>>())
    };
    let cells: Vec<Cells> = (0..PATIENTS).map(cells).collect();
    let places = known.of(&cells);
    let mut draw = ChaCha8Rng::seed_from_u64(9);
    let (mut found, mut drawn) = (Vec::new(), Vec::new());
    let groups = grouped(&places, north);
    for members in groups.into_iter().take(GROUPS) {
        let mean = places.select(Axis(0), &members).mean_axis(Axis(0)).unwrap();
        let truth: Vec<Cells> = members.iter().map(|row| cells[*row]).collect();
        let searched = searched(&known, &mean, members.len(), &mut draw);
        found.extend(errors(&truth, &searched));
        for _ in 0..DRAWN {
            let guesses = (0..members.len()).map(|_| {
                let mut guess = [0.0; FEATURES];
                for (place, guess) in guess.iter_mut().enumerate() {
                    let own = values(north, place).select(Axis(0), &members);
                    // Uniform numbers of variance 1.
                    let uniform = 12.0_f64.sqrt() * (draw.random::<f64>() - 0.5);
                    *guess = own.mean().unwrap() + own.std(0.0) * uniform;
                }
                known.cells(&guess)
            });
            drawn.extend(errors(&truth, &guesses.collect::<Vec<Cells>>()));
        }
    }
    (found, drawn)
}

#[test]
fn the_mean_of_ten_places_tells_ten_patients_where_places_have_many_numbers_and_none_where_few() {
    let hospitals = hospitals();
    // Of a hundred patients, those in the very cells of one who is found, and those in or beside them.
    let share = |all: &[usize], cells: usize| {
        let near = all.iter().filter(|one| **one <= cells).count();
        100 * near / all.len()
    };
    let told = |numbers: usize, squares: bool, grouped: Grouped| {
        let (found, drawn) = read(&hospitals, numbers, squares, grouped);
        let shares = [&found, &drawn].map(|all| [share(all, 0), share(all, 1)]);
        println!(
            "{numbers} numbers, squares {squares}: found {:?}, drawn {:?}",
            shares[0], shares[1]
        );
        shares
    };
    let [found, drawn] = told(MANY, false, of_one_class);
    assert!(found[0] >= 2 * drawn[0] && found[1] >= drawn[1] + 20);
    // Of as many as places have, what is found is no nearer than what is drawn; nor where their squares are known beside them.
    for squares in [false, true] {
        let [found, drawn] = told(coordinates(FEATURES), squares, near_each_other);
        assert!(found[0] <= drawn[0] + 8 && found[1] <= drawn[1] + 8);
    }
}
