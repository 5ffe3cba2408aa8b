//! Whoever reads exact sums of what is within hospitals: pairs of patients, and means about which each hospital centres its patients.
//!
//! Such sums are of squares of whole numbers. All members and the coordinator know about how many patients each hospital has, to ten, and
//! how many all have together. So few whole numbers fit, and among them are those of each hospital.

use ndarray::Array1;
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::learn::unpsl::{
    Labels, PAIRS_STEP, Pairs, Settings, SiteObjective, Totals, summarise,
};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

/// Patients of each of three hospitals, and those of them who have a level, or are of a class.
type Hospitals = [[u64; 2]; 3];

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
fn search(hospitals: Hospitals, fit: impl Fn(&Hospitals) -> bool) -> Fits {
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

fn fits_pairs(hospitals: Hospitals, precision: Precision) -> Fits {
    let found = totals(hospitals, precision).pairs;
    let error = match precision {
        Precision::Exact => 0,
        Precision::Rounded => 3 * (PAIRS_STEP - 1),
    };
    search(hospitals, |own| {
        let [similar, dissimilar] = own
            .iter()
            .map(|own| pairs(*own))
            .fold([0, 0], |all, own| [all[0] + own[0], all[1] + own[1]]);
        let is_near = |found: u64, own: u64| found >= own && found - own <= error;
        is_near(found.similar, similar) && is_near(found.dissimilar, dissimilar)
    })
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

/// The objective at W = 0 is one of pairs alone, and was known to a pair.
#[test]
fn no_question_reads_the_pairs_of_classes_at_a_metric_of_zero() {
    let thresholds = [
        similarity::learn::unpsl::Threshold::Site,
        similarity::learn::unpsl::Threshold::Common(0.3),
        similarity::learn::unpsl::Threshold::Fixed(1.0),
    ];
    for threshold in thresholds {
        let [found, other] = [
            [[103, 40], [94, 36], [123, 71]],
            [[103, 41], [94, 37], [123, 69]],
        ]
        .map(|hospitals: Hospitals| {
            let totals = totals(SOME[0], Precision::Rounded);
            let at_zero = hospitals.map(|own| {
                let patients =
                    ndarray::Array2::from_shape_fn((own[0] as usize, 2), |(row, column)| {
                        ((row * 7 + column * 3) % 5) as f64 - 2.0
                    });
                let settings = Settings {
                    threshold,
                    precision: Precision::Rounded,
                    rank: 1,
                    ..Settings::default()
                };
                let objective =
                    SiteObjective::new(&patients.view(), &labels(own), &settings, &totals, Seed(1));
                let rows = settings.matrix_rows(2);
                let mut metric = ndarray::Array2::zeros((rows, 1));
                if rows > 2 {
                    metric[[2, 0]] = 0.3;
                }
                let told = objective.unwrap().derivatives(&metric, None).unwrap();
                [told.objective, told.threshold.first]
            });
            at_zero
                .iter()
                .fold([0.0, 0.0], |all, own| [all[0] + own[0], all[1] + own[1]])
        });
        assert_eq!(found, other, "{threshold:?}");
    }
}
