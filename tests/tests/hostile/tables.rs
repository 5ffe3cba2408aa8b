//! An operator who writes jobs for somebody who reads sums: UnPSL's are over pairs of patients within hospitals. With pooled means and a
//! threshold of the job they are linear in how many pairs have which two rows of levels, and are of one class or of two. So 32 jobs over two
//! features of two levels give the sum over hospitals of t t', where t counts a hospital's patients by their levels. Its three terms follow
//! from it up to one angle. Whole numbers, and sizes to ten, fit at one angle only.

use kindred_tests::samples::demo_job;
use ndarray::{Array1, Array2, Axis, s};
use privacy::Permission;
use protocol::job::Job;
use similarity::learn::unpsl::accelerated::{Knowledge, Search, SearchSettings, sum};
use similarity::learn::unpsl::{
    Centring, Labels, Pairs, Settings, SiteObjective, Threshold, Totals, start, summarise,
};
use similarity::numeric::linear_algebra::{Cholesky, symmetric_eigen};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

/// Rows of two features of two levels.
const CELLS: usize = 4;
/// Pairs of such rows, in either order.
const UNKNOWN: usize = CELLS * (CELLS + 1) / 2;
/// b of the operator's jobs.
const THRESHOLDS: [f64; 8] = [1.0, -1.0, 3.0, 0.0, -2.0, 2.0, -3.0, 5.0];
/// lambda_1 of these.
const PENALTIES: [f64; 4] = [1e-4, 1e-3, 4e-3, 1.6e-2];
/// What each rounded sum may be off by, and a product before anything is heard, in pairs.
const ROUNDED: f64 = 0.2;
const PRODUCT: f64 = 200.0;
/// Angles that are tried.
const ANGLES: u32 = 4_000;

/// Patients of one hospital, by class and by the levels of both features.
type Table = [[u32; CELLS]; 2];

/// Patients of three hospitals by their levels, as they are or as they were found.
type ByLevels = Array2<f64>;

const HOSPITALS: [[Table; 3]; 3] = [
    [
        [[3, 2, 12, 10], [6, 4, 11, 4]],
        [[4, 3, 4, 9], [3, 13, 4, 23]],
        [[5, 15, 4, 12], [11, 5, 18, 5]],
    ],
    [
        [[9, 14, 6, 11], [4, 12, 3, 9]],
        [[17, 5, 8, 3], [12, 9, 4, 2]],
        [[6, 6, 13, 10], [14, 3, 15, 22]],
    ],
    [
        [[22, 9, 31, 14], [11, 24, 8, 29]],
        [[15, 35, 12, 20], [9, 18, 27, 7]],
        [[28, 13, 16, 33], [19, 21, 10, 12]],
    ],
];

fn by_levels(hospitals: &[Table; 3]) -> ByLevels {
    Array2::from_shape_fn((3, CELLS), |(hospital, cell)| {
        f64::from(
            hospitals[hospital]
                .iter()
                .map(|class| class[cell])
                .sum::<u32>(),
        )
    })
}

/// The rows of levels, standardised by all patients: everybody knows the counts of all.
fn rows(all: &Array1<f64>) -> Array2<f64> {
    let mut rows =
        Array2::from_shape_fn((CELLS, 2), |(cell, feature)| (cell >> feature & 1) as f64);
    for mut column in rows.columns_mut() {
        let share = column.dot(all) / all.sum();
        column.mapv_inplace(|level| (level - share) / (share * (1.0 - share)).sqrt());
    }
    rows
}

/// What the coordinator and every member hear.
struct Heard {
    threshold: f64,
    metric: Array2<f64>,
    gradient: Array2<f64>,
    /// So many times as long as usual were the steps of a site. Nobody hears it; whoever attacks is taken to find out.
    steps: f64,
}

fn sites(hospitals: &[Table; 3], threshold: f64, precision: Precision) -> Vec<SiteObjective> {
    let settings = Settings {
        rank: 2,
        lambda_correlation: 0.0,
        centring: Centring::Pooled,
        threshold: Threshold::Fixed(threshold),
        precision,
        ..Settings::default()
    };
    let of_cell = rows(&by_levels(hospitals).sum_axis(Axis(0)));
    let patients = hospitals.map(|table| {
        let of = |class: usize| {
            (0..CELLS).flat_map(move |cell| (0..table[class][cell]).map(move |_| (class, cell)))
        };
        let listed: Vec<(usize, usize)> = (0..2).flat_map(of).collect();
        let matrix = Array2::from_shape_fn((listed.len(), 2), |(row, feature)| {
            of_cell[[listed[row].1, feature]]
        });
        let classes = listed.iter().map(|(class, _)| *class as u32).collect();
        (matrix, Labels::Classes(classes))
    });
    let totals = Totals::of(
        &patients
            .each_ref()
            .map(|(_, labels)| summarise(labels, Pairs::All, Seed(1)).released(labels, precision)),
    );
    let own = (1..).map(Seed).zip(&patients);
    own.map(|(secret, (matrix, labels))| {
        let matrix = matrix.view();
        SiteObjective::new(&matrix, labels, &settings, &totals, Seed(1), Some(secret)).unwrap()
    })
    .collect()
}

/// What they hear in as many runs over the same patients as there are penalties.
fn heard(sites: &[SiteObjective], threshold: f64) -> Vec<Heard> {
    let settings = sites[0].settings();
    let mut heard = Vec::new();
    for (seed, penalty) in (0..).zip(&PENALTIES) {
        let search = SearchSettings {
            lambda_sparsity: *penalty,
            form: settings.form,
            tolerance: 2e-7,
            tolerance_residual: 1e-3,
        };
        let mut search = Search::new(search, start(settings, 2, Seed(seed), 0), 2);
        let mut known = Knowledge::new();
        for _ in 0..20 {
            let question = search.question().clone();
            let answers = sites
                .iter()
                .map(|site| site.derivatives(&question, None).unwrap());
            let answer = sum(answers).unwrap();
            let steps = sites.iter().map(|site| site.fit_at(&question).steps());
            heard.push(Heard {
                threshold,
                steps: steps.fold(1.0, f64::max),
                metric: question,
                gradient: answer.gradient.clone(),
            });
            if search
                .learn(&mut known, answer)
                .is_some_and(|step| step.converged)
            {
                break;
            }
        }
    }
    heard
}

/// A linear equation in how many pairs have which two rows: first of all pairs (the sum of t t'), then of those of one class less those of
/// two.
struct Equation {
    factors: [f64; 2 * UNKNOWN],
    sum: f64,
}

/// The places of the sum of t t' on and above its diagonal.
fn places() -> impl Iterator<Item = (usize, usize)> {
    (0..CELLS).flat_map(|row| (row..CELLS).map(move |column| (row, column)))
}

/// What the sums of one question say, if all hospitals together have `all` patients by levels and so many pairs.
fn equations(heard: &Heard, rows: &Array2<f64>, all: &Array1<f64>, pairs: f64) -> Vec<Equation> {
    let projected = rows.dot(&heard.metric);
    let similarity = projected.dot(&projected.t());
    // The derivative of the loss of a pair of one class, and of two, by its similarity.
    let by_similarity = |at: f64| {
        let share = |margin: f64| 1.0 / (1.0 + margin.exp());
        [-share(at - heard.threshold), share(heard.threshold - at)]
    };
    let entry = |(row, column): (usize, usize)| {
        let mut equation = Equation {
            factors: [0.0; 2 * UNKNOWN],
            sum: heard.gradient[[row, column]] * pairs,
        };
        for (place, (one, other)) in places().enumerate() {
            let of_pair = (rows[[one, row]] * rows[[other, column]]
                + rows[[one, column]] * rows[[other, row]])
                / 2.0;
            let [same, apart] = by_similarity(similarity[[one, other]]);
            // A diagonal entry counts every pair of one row twice, and every patient with itself.
            let half = if one == other { 0.5 } else { 1.0 };
            equation.factors[place] = half * of_pair * (same + apart) / 2.0;
            equation.factors[UNKNOWN + place] = half * of_pair * (same - apart) / 2.0;
            if one == other {
                equation.sum += half * of_pair * same * all[one];
            }
        }
        // The less finely it is known the less it counts.
        equation
            .factors
            .iter_mut()
            .for_each(|factor| *factor /= heard.steps);
        equation.sum /= heard.steps;
        equation
    };
    [(0, 0), (0, 1), (1, 1)].map(entry).into()
}

/// The sum of t t' over hospitals that fits all equations best, and is near that of hospitals that are alike.
fn products(equations: &[Equation], guess: &Array2<f64>) -> Array2<f64> {
    let mut normal = Array2::eye(2 * UNKNOWN) * (ROUNDED / PRODUCT).powi(2);
    let mut right = Array1::zeros(2 * UNKNOWN);
    for (place, (row, column)) in places().enumerate() {
        right[place] = normal[[place, place]] * guess[[row, column]];
    }
    for equation in equations {
        let factors = Array1::from(equation.factors.to_vec());
        right.scaled_add(equation.sum, &factors);
        for (mut row, factor) in normal.rows_mut().into_iter().zip(&equation.factors) {
            row.scaled_add(*factor, &factors);
        }
    }
    let right = right.insert_axis(Axis(1));
    let solved = Cholesky::factor(&normal).unwrap().solve(&right);
    let mut products = Array2::zeros((CELLS, CELLS));
    for (place, (row, column)) in places().enumerate() {
        products[[row, column]] = solved[[place, 0]];
        products[[column, row]] = solved[[place, 0]];
    }
    products
}

/// Directions that are perpendicular to each other, and the first of which is `along`.
fn basis(along: &Array1<f64>) -> Array2<f64> {
    let mut basis = Array2::<f64>::zeros((3, 3));
    basis.column_mut(0).assign(along);
    for place in 0..3 {
        let mut own = basis.column(place).to_owned();
        if place > 0 {
            // The axis that the earlier directions are farthest from.
            let reach = |axis: usize| {
                basis
                    .slice(s![axis, ..place])
                    .mapv(|entry| entry * entry)
                    .sum()
            };
            let axis = (0..3)
                .min_by(|one, other| reach(*one).total_cmp(&reach(*other)))
                .unwrap();
            own[axis] = 1.0;
            for earlier in 0..place {
                let earlier = basis.column(earlier).to_owned();
                let share = own.dot(&earlier);
                own.scaled_add(-share, &earlier);
            }
        }
        let length = own.dot(&own).sqrt();
        basis.column_mut(place).assign(&(own / length));
    }
    basis
}

/// The three hospitals whose products these are, and who together have `all` patients: the likeliest by whole numbers, none below 0, and
/// by each hospital's patients, known to ten.
fn read(products: &Array2<f64>, all: &Array1<f64>, sizes: &[f64; 3]) -> ByLevels {
    let eigen = symmetric_eigen(products).unwrap();
    let roots = eigen
        .values
        .slice(s![CELLS - 3..])
        .mapv(|value| value.max(0.0).sqrt());
    let vectors = eigen.vectors.slice(s![.., CELLS - 3..]);
    let factor = &vectors * &roots;
    // factor times this is `all`, as t times (1, 1, 1) is.
    let along = vectors.t().dot(all) / &roots;
    let [from, to] = [Array1::ones(3), along].map(|along| basis(&along));
    let mut best = (f64::INFINITY, Array2::zeros((3, CELLS)));
    for step in 0..2 * ANGLES {
        let (sine, cosine) =
            (f64::from(step) * std::f64::consts::TAU / f64::from(ANGLES)).sin_cos();
        let side = if step < ANGLES { 1.0 } else { -1.0 };
        let mut turn = Array2::eye(3);
        turn.slice_mut(s![1.., 1..]).assign(&ndarray::array![
            [cosine, -sine * side],
            [sine, cosine * side]
        ]);
        let found = factor.dot(&to.dot(&turn).dot(&from.t())).t().to_owned();
        let below: f64 = found.iter().map(|count| count.min(0.0).powi(2)).sum();
        let apart: f64 = found
            .iter()
            .map(|count| (count - count.round()).powi(2))
            .sum();
        let sizes = found.rows().into_iter().zip(sizes);
        let sizes: f64 = sizes.map(|(row, size)| (row.sum() - size).powi(2)).sum();
        let cost = 4.0 * below + 5.0 * apart + sizes / 9.0;
        if cost < best.0 {
            best = (cost, found);
        }
    }
    best.1
}

/// Counts of patients by levels that an attack reads, of 12: by the sums of the runs, and by guessing that all hospitals are alike.
fn attacked(hospitals: &[Table; 3], precision: Precision) -> [usize; 2] {
    let truth = by_levels(hospitals);
    let all = truth.sum_axis(Axis(0));
    let sizes = known_sizes(&truth);
    let guess = Array2::from_shape_fn((3, CELLS), |(hospital, cell)| {
        sizes[hospital] * all[cell] / all.sum()
    });
    let rows = rows(&all);
    let mut known = Vec::new();
    for threshold in THRESHOLDS {
        let sites = sites(hospitals, threshold, precision);
        let pairs = sites.iter().map(|site| site.summary().pairs.total());
        let pairs = pairs.sum::<u64>() as f64;
        let heard = heard(&sites, threshold);
        known.extend(
            heard
                .iter()
                .flat_map(|one| equations(one, &rows, &all, pairs)),
        );
    }
    let products = products(&known, &guess.t().dot(&guess));
    let error = (&products - &truth.t().dot(&truth)).mapv(f64::abs);
    let found = read(&products, &all, &sizes);
    let [read, guessed] = [&found, &guess].map(|found| {
        let pairs = found.iter().zip(&truth);
        pairs.filter(|(found, own)| found.round() == **own).count()
    });
    println!(
        "{precision:?}: {} sums, products within {:.2}, {read} of 12 counts (guessing: {guessed})",
        known.len(),
        error.iter().fold(0.0_f64, |most, one| most.max(*one)),
    );
    [read, guessed]
}

/// What each hospital says of its size: patients, rounded up to ten.
fn known_sizes(truth: &ByLevels) -> [f64; 3] {
    [0, 1, 2].map(|hospital| (truth.row(hospital).sum() / 10.0).ceil() * 10.0 - 4.5)
}

/// A job as the attack needs it, over the features of the demonstration.
fn job(threshold: f64) -> Job {
    let threshold = format!("threshold = {threshold:.1}");
    Job::parse(&demo_job(&["centring = \"pooled\"", &threshold], "")).unwrap()
}

/// A site has to allow it by name, beyond second moments.
#[test]
fn sums_of_pairs_within_hospitals_read_how_many_patients_of_each_have_which_levels() {
    for threshold in THRESHOLDS {
        let needed = job(threshold).facts("researcher").permissions;
        assert!(needed.contains(&Permission::PairSums));
    }
    // Two of three sets of hospitals were read by rounded sums, as long as steps were the same for any metric.
    for (precision, wanted) in [(Precision::Exact, 36..=36), (Precision::Rounded, 0..=12)] {
        let [read, guessed] = HOSPITALS
            .each_ref()
            .map(|hospitals| attacked(hospitals, precision))
            .iter()
            .fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]]);
        assert!(
            wanted.contains(&read) && guessed <= 1,
            "{read} of 36, {guessed} by guessing"
        );
    }
}
