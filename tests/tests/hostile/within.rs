//! Whoever reads exact sums of what is within hospitals: pairs of patients, and means about which each hospital centres its patients.
//!
//! Such sums are of squares of whole numbers. All members and the coordinator know about how many patients each hospital has, to ten, and
//! how many all have together. So few whole numbers fit, and among them are those of each hospital.

use ndarray::{Array1, Array2, s};
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::learn::unpsl::{
    Labels, PAIRS_STEP, PairCounts, Pairs, Settings, SiteObjective, Threshold, Totals, summarise,
};
use similarity::numeric::axes::Axes;
use similarity::numeric::linear_algebra::gram;
use similarity::numeric::offsets::Offsets;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::collections::BTreeMap;

/// Patients of each of three hospitals, and those of them who have a level, or are of a class.
type Hospitals = [[u64; 2]; 3];

const THRESHOLDS: [Threshold; 3] = [
    Threshold::Site,
    Threshold::Common(0.3),
    Threshold::Fixed(1.0),
];

const LEVELS: [&str; 2] = ["no", "yes"];

const SOME: [Hospitals; 3] = [
    [[103, 40], [94, 36], [123, 71]],
    [[103, 41], [94, 38], [123, 49]],
    [[48, 15], [37, 12], [62, 30]],
];

/// How many hospitals fit, and within which bounds the first one's patients of the class then are.
#[derive(Debug, PartialEq)]
struct Fits {
    count: usize,
    first: [u64; 2],
}

/// All hospitals whose numbers of patients are known to ten, and that `fit`.
fn search(hospitals: Hospitals, mut fit: impl FnMut(&Hospitals) -> bool) -> Fits {
    let totals = |hospitals: &[[u64; 2]]| -> [u64; 2] {
        [0, 1].map(|place| hospitals.iter().map(|own| own[place]).sum())
    };
    let all = totals(&hospitals);
    let sizes = |[patients, _]: [u64; 2]| {
        let most = patients.next_multiple_of(10);
        most - 9..=most
    };
    let [first, second, third] = hospitals.map(sizes);
    let mut fits = Fits {
        count: 0,
        first: [u64::MAX, 0],
    };
    for n in first {
        for m in second.clone() {
            let Some(rest) = all[0]
                .checked_sub(n + m)
                .filter(|rest| third.contains(rest))
            else {
                continue;
            };
            for of_n in 10..n - 9 {
                for of_m in 10..m - 9 {
                    let Some(of_rest) = all[1].checked_sub(of_n + of_m) else {
                        continue;
                    };
                    if of_rest < 10 || of_rest + 10 > rest {
                        continue;
                    }
                    if fit(&[[n, of_n], [m, of_m], [rest, of_rest]]) {
                        fits.count += 1;
                        let [low, high] = fits.first;
                        fits.first = [low.min(of_n), high.max(of_n)];
                    }
                }
            }
        }
    }
    fits
}

fn cohort([patients, with]: [u64; 2]) -> Cohort {
    let codes: Vec<u32> = (0..patients)
        .map(|patient| u32::from(patient < with))
        .collect();
    let column = Column {
        name: "smoker".to_owned(),
        values: Values::Categorical {
            codes: codes.into(),
            levels: LEVELS.map(str::to_owned).to_vec(),
        },
    };
    Cohort::new(
        vec![column],
        Outcome::Numeric(Array1::zeros(patients as usize)),
    )
    .unwrap()
}

/// What all hospitals say of the spread between them of one level.
fn spread(hospitals: Hospitals, precision: Precision) -> (f64, f64) {
    let features = [Feature {
        name: "smoker".to_owned(),
        kind: FeatureKind::Categorical {
            levels: LEVELS.map(str::to_owned).to_vec(),
        },
        treatment: Treatment::default(),
    }];
    let all = hospitals
        .iter()
        .fold([0, 0], |all, own| [all[0] + own[0], all[1] + own[1]]);
    let moments = [ColumnMoments::Categorical {
        counts: vec![all[0] - all[1], all[1]],
        missing: 0,
    }];
    let standardisation = Standardisation::from_moments(&features, &moments, &[]).unwrap();
    let own = hospitals.map(|own| {
        standardisation
            .between(&features, &cohort(own), precision)
            .unwrap()[1]
    });
    let share = all[1] as f64 / all[0] as f64;
    (own.iter().sum(), share * (1.0 - share))
}

/// The spread of one level, as whoever receives the sum can work it out for hospitals of its own.
fn fits_spread(hospitals: Hospitals, precision: Precision) -> Fits {
    let (found, variance) = spread(hospitals, precision);
    let error = match precision {
        Precision::Exact => 1e-9,
        Precision::Rounded => 3.0 * 0.25 / variance,
    };
    let all = hospitals
        .iter()
        .fold([0, 0], |all, own| [all[0] + own[0], all[1] + own[1]]);
    let share = all[1] as f64 / all[0] as f64;
    search(hospitals, |own| {
        let of = |[patients, with]: [u64; 2]| {
            let patients = patients as f64;
            (with as f64 - share * patients).powi(2) / patients / variance
        };
        let sum: f64 = own.iter().map(|own| of(*own)).sum();
        (sum - found).abs() <= error
    })
}

#[test]
fn exact_means_of_hospitals_read_how_many_patients_of_each_have_a_level() {
    for hospitals in SOME {
        let [exact, rounded] =
            [Precision::Exact, Precision::Rounded].map(|own| fits_spread(hospitals, own));
        println!("{hospitals:?}: exact {exact:?}, rounded {rounded:?}");
        assert!(exact.count <= 2, "{exact:?}");
        assert!(rounded.count > 1_000, "{rounded:?}");
        assert!(rounded.first[1] - rounded.first[0] >= 10, "{rounded:?}");
    }
}

fn labels([patients, with]: [u64; 2]) -> Labels {
    let codes = (0..patients).map(|patient| u32::from(patient < with));
    Labels::Classes(Array1::from_iter(codes))
}

/// Pairs of one class, and of two, within a hospital.
fn pairs([patients, with]: [u64; 2]) -> [u64; 2] {
    let of = |patients: u64| patients * (patients - 1) / 2;
    let dissimilar = with * (patients - with);
    [of(patients) - dissimilar, dissimilar]
}

fn totals(hospitals: Hospitals, precision: Precision) -> Totals {
    let own = hospitals.map(|own| {
        let labels = labels(own);
        summarise(&labels, Pairs::All, Seed(1)).released(&labels, precision)
    });
    Totals::of(&own)
}

/// What rounding adds to the pairs of three hospitals at most.
const PAIRS_ERROR: u64 = 3 * (PAIRS_STEP - 1);

fn fits_pairs(hospitals: Hospitals, precision: Precision) -> Fits {
    let found = totals(hospitals, precision).pairs;
    let error = match precision {
        Precision::Exact => 0,
        Precision::Rounded => PAIRS_ERROR,
    };
    search(hospitals, |own| is_near(found, own, error))
}

/// Whether hospitals have as many pairs as were `found`, or by so many fewer.
fn is_near(found: PairCounts, own: &Hospitals, error: u64) -> bool {
    let [similar, dissimilar] = own
        .iter()
        .map(|own| pairs(*own))
        .fold([0, 0], |all, own| [all[0] + own[0], all[1] + own[1]]);
    let is_near = |found: u64, own: u64| found >= own && found - own <= error;
    is_near(found.similar, similar) && is_near(found.dissimilar, dissimilar)
}

#[test]
fn exact_pairs_of_classes_read_the_classes_of_each_hospital() {
    for hospitals in SOME {
        let [exact, rounded] =
            [Precision::Exact, Precision::Rounded].map(|own| fits_pairs(hospitals, own));
        println!("{hospitals:?}: exact {exact:?}, rounded {rounded:?}");
        assert!(exact.count <= 8, "{exact:?}");
        assert!(rounded.count > 300, "{rounded:?}");
        assert!(rounded.first[1] - rounded.first[0] >= 8, "{rounded:?}");
    }
}

/// A hospital's objective of two features, and a W = 0 of the travelling shape.
fn learner(
    own: [u64; 2],
    threshold: Threshold,
    precision: Precision,
) -> (SiteObjective, Array2<f64>) {
    let totals = totals(SOME[0], Precision::Rounded);
    let patients = Array2::from_shape_fn((own[0] as usize, 2), |(row, column)| {
        ((row * 7 + column * 3) % 5) as f64 - 2.0
    });
    let settings = Settings {
        threshold,
        precision,
        rank: 1,
        ..Settings::default()
    };
    let objective = SiteObjective::new(
        &patients.view(),
        &labels(own),
        &settings,
        &totals,
        Seed(1),
        None,
    );
    let rows = settings.matrix_rows(2);
    let mut metric = Array2::zeros((rows, 1));
    if rows > 2 {
        metric[[2, 0]] = 0.3;
    }
    (objective.unwrap(), metric)
}

/// A round of the paper begins at a W about which a question was asked as well: the two objectives are one sum, taken twice. Where the
/// round's is exact, their difference is the hospitals' own loss at W = 0, but for the rounding of the question.
#[test]
fn no_round_reads_the_pairs_of_classes_by_the_question_at_its_metric() {
    for threshold in THRESHOLDS {
        let hospitals = SOME[0];
        let [rounded, exact] = [Precision::Rounded, Precision::Exact]
            .map(|precision| fits_round(hospitals, threshold, precision));
        println!("{threshold:?}: rounded {rounded:?}, exact {exact:?}");
        let without = fits_pairs(hospitals, Precision::Rounded);
        assert_eq!(rounded, without, "{threshold:?}");
        assert!(exact.count <= without.count / 10, "{threshold:?}");
    }
}

/// Hospitals that fit the pair counts, and the objective of a round of such a precision less that of the question at the same W.
fn fits_round(hospitals: Hospitals, threshold: Threshold, precision: Precision) -> Fits {
    let question = |own, metric: [f64; 2]| {
        let (objective, mut at) = learner(own, threshold, Precision::Rounded);
        at[[0, 0]] = metric[0];
        at[[1, 0]] = metric[1];
        let asked = objective.derivatives(&at, None).unwrap().objective;
        (asked, at)
    };
    let found = totals(hospitals, Precision::Rounded).pairs;
    let differences: Vec<f64> = [[0.04, -0.02], [0.01, 0.03], [-0.05, 0.02], [0.03, 0.03]]
        .map(|metric| {
            let own = hospitals.map(|own| {
                let (asked, at) = question(own, metric);
                let (objective, _) = learner(own, threshold, precision);
                let round = objective.solve(&at, &at, 1.0, 1e-3, 5).unwrap();
                round.objective_at_consensus - asked
            });
            own.iter().sum()
        })
        .to_vec();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let error = differences.iter().map(|one| (one - mean).abs());
    let error = error.fold(0.0, f64::max);
    // A round that says no more than the question makes no equation.
    let says_more = differences.iter().any(|one| one.abs() > 1e-12);
    let mut at_zero = BTreeMap::new();
    let mut loss_of = |own: [u64; 2]| -> f64 {
        *at_zero.entry(own).or_insert_with(|| {
            let (objective, zero) = learner(own, threshold, Precision::Exact);
            objective.value(&zero).unwrap()
        })
    };
    let (all, _) = question(hospitals[0], [0.0; 2]);
    search(hospitals, |own| {
        let losses = own.map(&mut loss_of);
        is_near(found, own, PAIRS_ERROR)
            && (!says_more || (losses.iter().sum::<f64>() - 3.0 * all - mean).abs() <= error)
    })
}

/// The objective at W = 0 is one of pairs alone, and was known to a pair.
#[test]
fn no_question_reads_the_pairs_of_classes_at_a_metric_of_zero() {
    for threshold in THRESHOLDS {
        let [found, other] = [
            [[103, 40], [94, 36], [123, 71]],
            [[103, 41], [94, 37], [123, 69]],
        ]
        .map(|hospitals: Hospitals| {
            let at_zero = hospitals.map(|own| {
                let (objective, metric) = learner(own, threshold, Precision::Rounded);
                let told = objective.derivatives(&metric, None).unwrap();
                [told.objective, told.threshold.first]
            });
            at_zero
                .iter()
                .fold([0.0, 0.0], |all, own| [all[0] + own[0], all[1] + own[1]])
        });
        assert_eq!(found, other, "{threshold:?}");
    }
}

/// Each site rounds along the axes of its own patients. A sum of multiples of three such steps is one of few tables of three hospitals. From
/// offsets that nobody else knows it is none, or any.
#[test]
fn no_sum_of_one_question_reads_how_many_patients_of_each_have_a_level() {
    let hospitals: Hospitals = [[48, 15], [37, 12], [62, 30]];
    let totals = Totals::of(&hospitals.map(|own| {
        let labels = thirds(own[0]);
        summarise(&labels, Pairs::All, Seed(1)).released(&labels, Precision::Rounded)
    }));
    let curvatures = |precision, is_hidden: bool| -> f64 {
        let own = hospitals.map(|own| {
            let settings = Settings {
                precision,
                rank: 1,
                ..Settings::default()
            };
            let patients = of_level(own, hospitals);
            let labels = thirds(own[0]);
            let secret = is_hidden.then_some(Seed(own[0]));
            let patients = patients.view();
            let own = SiteObjective::new(&patients, &labels, &settings, &totals, Seed(1), secret);
            let at = Array2::from_elem((1, 1), 0.1);
            own.unwrap().derivatives(&at, None).unwrap().curvature[[0, 0]]
        });
        own.iter().sum()
    };
    let exact = curvatures(Precision::Exact, false);
    let [in_multiples, sent] =
        [false, true].map(|is_hidden| curvatures(Precision::Rounded, is_hidden));
    // Half of what one patient adds, as everybody can work it out of a hospital's size and share.
    let step = |own: [u64; 2]| {
        let pairs = (own[0] * (own[0] - 1) / 2) as f64 / totals.pairs.total() as f64;
        let patients = of_level(own, hospitals);
        let spread = patients.column(0).dot(&patients.column(0)) / own[0] as f64;
        0.5 * pairs / 2.0 / own[0] as f64 * spread
    };
    let steps: f64 = hospitals.map(step).iter().sum();
    for found in [in_multiples, sent] {
        assert!((found - exact).abs() <= steps / 2.0);
    }
    let truth = hospitals.map(|own| own[1]);
    // Offsets are within a sixteenth of a step.
    let [attacked, left, fits, all] = [
        (in_multiples, 1e-14),
        (sent, 1e-14),
        (sent, steps / 16.0),
        (sent, steps / 2.0),
    ]
    .map(|(sum, error)| tables_of(sum, error, hospitals, step));
    println!(
        "multiples: {attacked:?}; hidden: {left:?}, {} of {}",
        fits.len(),
        all.len()
    );
    assert_eq!(attacked, [truth]);
    assert!(!left.contains(&truth) && fits.contains(&truth));
    assert!(fits.len() > 500 && fits.len() * 50 > all.len() * 49);
}

/// A vector and its opposite are axes alike, and another processor finds the other. Along it the offset counts the other way, so that the
/// mean of the two sums has none: it is one of multiples again.
#[test]
fn no_sum_along_opposite_axes_takes_the_offsets_away() {
    let hospitals: Hospitals = [[48, 15], [37, 12], [62, 30]];
    let step = 2.0 * Precision::Rounded.error();
    let width =
        |patients: &Array2<f64>| (gram(&patients.view())[[0, 0]] / patients.nrows() as f64).sqrt();
    let mean = |axes: fn(f64, f64) -> Axes| -> f64 {
        let own = hospitals.map(|own| {
            let patients = of_level(own, hospitals);
            // Where all who have the level, and they alone, are of the class.
            let gradient = patients.column(0).slice(s![..own[1] as usize]).sum() / 2.0;
            let said = [1.0, -1.0].map(|sign| {
                let axes = axes(sign, width(&patients));
                let offsets = Offsets::of(Seed(own[0]), patients.iter(), "");
                let along = axes.forward[[0, 0]] * gradient;
                axes.back[[0, 0]] * offsets.at("", [].iter()).nearest(along, step)
            });
            (said[0] + said[1]) / 2.0
        });
        own.iter().sum()
    };
    let as_found = mean(|sign, width| Axes {
        forward: Array2::from_elem((1, 1), sign / width),
        back: Array2::from_elem((1, 1), sign * width),
    });
    let now = mean(|sign, width| {
        let variance = Array1::from_elem(1, width * width);
        Axes::along(&Array2::from_elem((1, 1), sign), &variance)
    });
    let step = |own: [u64; 2]| step * width(&of_level(own, hospitals));
    let [read, left] = [as_found, now].map(|sum| tables_of(sum, 1e-13, hospitals, step));
    println!("as found: {read:?}; now: {left:?}");
    let truth = hospitals.map(|own| own[1]);
    assert_eq!(read, [truth]);
    assert!(!left.contains(&truth));
}

/// Every third patient is of one class.
fn thirds(patients: u64) -> Labels {
    Labels::Classes(Array1::from_iter(
        (0..patients).map(|patient| u32::from(patient % 3 == 0)),
    ))
}

/// One level of patients of one hospital, about its mean and by the standard deviation of all.
fn of_level([patients, with]: [u64; 2], hospitals: Hospitals) -> Array2<f64> {
    let [all, of_all] =
        [0, 1].map(|place| hospitals.iter().map(|own| own[place]).sum::<u64>() as f64);
    let scale = (of_all / all * (1.0 - of_all / all)).sqrt();
    let mean = with as f64 / patients as f64;
    Array2::from_shape_fn((patients as usize, 1), |(row, _)| {
        (f64::from((row as u64) < with) - mean) / scale
    })
}

/// How many patients of each hospital may have the level, where the sum of multiples of their steps is known.
fn tables_of(
    sum: f64,
    error: f64,
    hospitals: Hospitals,
    step: impl Fn([u64; 2]) -> f64,
) -> Vec<[u64; 3]> {
    let all: u64 = hospitals.iter().map(|own| own[1]).sum();
    let sizes = hospitals.map(|own| own[0]);
    let mut found = Vec::new();
    for first in 5..sizes[0] - 4 {
        for second in 5..sizes[1] - 4 {
            let Some(third) = all.checked_sub(first + second) else {
                continue;
            };
            if third < 5 || third + 5 > sizes[2] {
                continue;
            }
            let own = [first, second, third];
            let steps = [0, 1, 2].map(|place| step([sizes[place], own[place]]));
            if is_sum(sum, error, steps) {
                found.push(own);
            }
        }
    }
    found
}

/// Whether multiples of three steps add up to a sum.
fn is_sum(sum: f64, error: f64, steps: [f64; 3]) -> bool {
    let most = steps.map(|step| (sum / step) as u64);
    (0..=most[0]).any(|first| {
        let rest = sum - first as f64 * steps[0];
        (0..=most[1]).any(|second| {
            let rest = rest - second as f64 * steps[1];
            let off = rest - (rest / steps[2]).round().max(0.0) * steps[2];
            off.abs() <= error
        })
    })
}
