//! The objective of a site against its definition, pair by pair, and against finite differences.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};
use proptest::prelude::*;
use rand_distr::{Distribution, StandardNormal};
use similarity::learn::unpsl::{
    Correlation, CorrelationScope, Form, JudgedPairs, Labels, Loss, ObjectiveError, PairCounts,
    PairWeights, Pairs, SecondMoments, Settings, SettingsError, SharedPatients, SiteObjective,
    SiteWeights, Threshold, Totals, start, summarise,
};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

fn normal(rows: usize, columns: usize, index: u64) -> Array2<f64> {
    let mut stream = Seed(42).stream("test", index);
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut stream))
}

/// Correlated patients whose mean is not 0, as at a site standardised by pooled moments.
fn patients(count: usize, features: usize) -> Array2<f64> {
    let mixed = normal(count, features, 0).dot(&normal(features, features, 1));
    mixed / (features as f64).sqrt() + 0.3
}

fn classes(count: usize) -> Labels {
    Labels::Classes(
        (0..count)
            .map(|patient| (patient * patient % 7 % 3) as u32)
            .collect(),
    )
}

fn pair_labels(count: usize) -> Labels {
    let label = |(i, j): (usize, usize)| ((i * j + i + j) % 3) as i8 - 1;
    Labels::pairs(Array2::from_shape_fn((count, count), label)).unwrap()
}

fn totals(labels: &Labels, pairs: Pairs) -> Totals {
    // two more sites, so that the site is a part of something
    let own = summarise(labels, pairs, Seed(3));
    let mut more = own;
    more.pairs.similar += 1000;
    more.pairs.dissimilar += 200;
    more.patients += 50;
    Totals::of(&[own, more, more])
}

/// The objective by its definition: a loop over pairs, and numpy-like correlations.
fn by_definition(x: &Array2<f64>, labels: &Labels, settings: &Settings, w: &Array2<f64>) -> f64 {
    let features = x.ncols();
    let metric = w.slice(s![..features, ..]);
    let b = match settings.threshold {
        Threshold::Fixed(b) => b,
        Threshold::Common(_) => w[[features, 0]],
        Threshold::Site => panic!("a site's own threshold has tests of its own"),
    };
    let totals = totals(labels, Pairs::All);
    let all = totals.pairs.total() as f64;
    let weight = |label: i8| match settings.pair_weights {
        PairWeights::Equal => 1.0,
        PairWeights::Balanced if label > 0 => all / 2.0 / totals.pairs.similar as f64,
        PairWeights::Balanced => all / 2.0 / totals.pairs.dissimilar as f64,
    };
    let projected = x.dot(&metric);
    let (mut loss, mut mine) = (0.0, 0.0);
    for i in 0..x.nrows() {
        for j in i + 1..x.nrows() {
            let label = labels.of_pair(i, j);
            if label != 0 {
                let away = &projected.row(i) - &projected.row(j);
                let z = f64::from(label)
                    * match settings.form {
                        Form::InnerProduct => projected.row(i).dot(&projected.row(j)) - b,
                        Form::Distance => b - away.dot(&away),
                    };
                loss += weight(label) * (-z).exp().ln_1p();
                mine += weight(label);
            }
        }
    }
    let mut correlation = 0.0;
    for k in 0..features {
        for l in 0..features {
            correlation += metric.row(k).dot(&metric.row(l)) * pearson(x, k, l).powi(2);
        }
    }
    let share = match settings.site_weights {
        SiteWeights::Pairs => mine / all,
        SiteWeights::Patients => x.nrows() as f64 / totals.patients as f64,
        SiteWeights::Equal => 1.0 / 3.0,
    };
    let (a, c) = match settings.loss {
        Loss::Sum => (1.0, 1.0),
        Loss::Mean => (share / mine, share),
    };
    a * loss + c * settings.lambda_correlation * correlation
}

fn pearson(x: &Array2<f64>, k: usize, l: usize) -> f64 {
    let centred = |k: usize| &x.column(k) - x.column(k).mean().unwrap();
    let (a, b): (Array1<f64>, Array1<f64>) = (centred(k), centred(l));
    a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt()
}

fn every_choice() -> Vec<Settings> {
    let usual = Settings {
        rank: 3,
        lambda_correlation: 0.05,
        ..Settings::paper()
    };
    vec![
        usual,
        Settings {
            loss: Loss::Sum,
            ..usual
        },
        Settings {
            pair_weights: PairWeights::Balanced,
            ..usual
        },
        Settings {
            site_weights: SiteWeights::Patients,
            ..usual
        },
        Settings {
            site_weights: SiteWeights::Equal,
            threshold: Threshold::Fixed(-0.4),
            ..usual
        },
        Settings {
            threshold: Threshold::Common(0.7),
            pair_weights: PairWeights::Balanced,
            ..usual
        },
        Settings {
            form: Form::Distance,
            threshold: Threshold::Common(0.7),
            pair_weights: PairWeights::Balanced,
            ..usual
        },
    ]
}

#[test]
fn it_equals_its_definition_pair_by_pair() {
    // more patients than one block of S, so that blocks above the diagonal are met
    let x = patients(421, 5);
    for labels in [classes(421), pair_labels(421)] {
        for settings in every_choice() {
            let w = start(&settings, 5, Seed(4), 0) * 2.0;
            let totals = totals(&labels, Pairs::All);
            let site =
                SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None).unwrap();
            let (found, wanted) = (
                site.value(&w).unwrap(),
                by_definition(&x, &labels, &settings, &w),
            );
            assert!(
                (found / wanted - 1.0).abs() < 1e-12,
                "{found} {wanted} for {settings:?}"
            );
        }
    }
}

fn assert_gradient(site: &SiteObjective, w: &Array2<f64>) {
    let mut gradient = Array2::ones(w.raw_dim());
    let value = site.value_and_gradient(w, &mut gradient).unwrap();
    assert!((value / site.value(w).unwrap() - 1.0).abs() < 1e-13);
    for index in 0..4 {
        let mut direction = normal(w.nrows(), w.ncols(), 10 + index);
        if let Threshold::Common(_) = site.settings().threshold {
            // the row of the threshold has one number; the others are not variables
            direction.slice_mut(s![site.features().., 1..]).fill(0.0);
        }
        let norm = |m: &Array2<f64>| m.iter().map(|v| v * v).sum::<f64>().sqrt();
        direction *= norm(w) / norm(&direction);
        let at = |step: f64| site.value(&(w + &(&direction * step))).unwrap();
        let h = 1e-3;
        // fourth-order central difference
        let wanted = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let found = (&gradient * &direction).sum();
        let scale = value.abs() + wanted.abs();
        assert!(
            (found - wanted).abs() < 1e-8 * scale,
            "{found} {wanted} {:?}",
            site.settings()
        );
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let x = patients(211, 6);
    for labels in [classes(211), pair_labels(211)] {
        for pairs in [Pairs::All, Pairs::PerPatient(7)] {
            for settings in every_choice() {
                let settings = Settings { pairs, ..settings };
                let totals = totals(&labels, pairs);
                let site =
                    SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None)
                        .unwrap();
                assert_gradient(&site, &start(&settings, 6, Seed(4), 0));
            }
        }
    }
}

#[test]
fn wide_data_have_the_gradient_and_the_objective_of_the_dense_form() {
    // 400 features are more than 2 x 9^2: the correlation is never formed
    let x = patients(9, 400);
    let labels = classes(9);
    let settings = Settings {
        rank: 3,
        lambda_correlation: 0.05,
        ..Settings::paper()
    };
    let w = start(&settings, 400, Seed(4), 0) * 3.0;
    let site = SiteObjective::new(
        &x.view(),
        &labels,
        &settings,
        &totals(&labels, Pairs::All),
        Seed(3),
        None,
    )
    .unwrap();
    assert_gradient(&site, &w);
    let wanted = by_definition(&x, &labels, &settings, &w);
    assert!((site.value(&w).unwrap() / wanted - 1.0).abs() < 1e-12);
}

fn squared_correlations(x: &Array2<f64>) -> Array2<f64> {
    Array2::from_shape_fn((x.ncols(), x.ncols()), |(k, l)| pearson(x, k, l).powi(2))
}

#[test]
fn every_way_of_solving_the_shifted_system_solves_it() {
    // dense; Woodbury (8 patients make 36 products); conjugate gradients (70 make 2,485)
    for (count, features) in [(40, 30), (8, 150), (70, 4_200)] {
        let x = patients_cheap(count, features);
        let correlation = Correlation::of_matrix(&x.view());
        let right = normal(features, 3, 5);
        let solution = correlation.shifted_solver(0.7, 0.2).unwrap().solve(&right);
        let mut image = Array2::zeros(right.raw_dim());
        correlation.multiply_into(&solution.view(), &mut image);
        let residual = image * 0.7 + &solution * 0.2 - &right;
        let norm = |m: &Array2<f64>| m.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!(
            norm(&residual) < 1e-10 * norm(&right),
            "{count} x {features}"
        );
        if features < 200 {
            let direct = squared_correlations(&x).dot(&solution) * 0.7 + &solution * 0.2;
            assert!(norm(&(direct - &right)) < 1e-9 * norm(&right));
            let form = correlation.quadratic_form(&solution.view());
            let wanted = (&solution * &squared_correlations(&x).dot(&solution)).sum();
            assert!((form / wanted - 1.0).abs() < 1e-11);
        }
    }
    let correlation = Correlation::of_matrix(&patients(5, 4).view());
    assert!(correlation.shifted_solver(0.7, 0.0).is_err());
}

#[test]
fn a_correlation_that_is_never_formed_multiplies_as_its_entries_say() {
    // 110 patients make three strips of T, 4,200 features many blocks
    let x = patients_cheap(110, 4_200);
    let correlation = Correlation::of_matrix(&x.view());
    let used = [0, 255, 256, 1_700, 4_199];
    let mut w: Array2<f64> = Array2::zeros((4_200, 2));
    for (row, values) in used.iter().zip(normal(used.len(), 2, 11).rows()) {
        w.row_mut(*row).assign(&values);
    }
    let image_of = |k: usize| {
        let term = |l: usize| &w.row(l) * pearson(&x, k, l).powi(2);
        used.iter()
            .fold(Array1::zeros(2), |sum: Array1<f64>, l| sum + term(*l))
    };
    let mut image = Array2::zeros((4_200, 2));
    correlation.multiply_into(&w.view(), &mut image);
    for k in [0, 1, 255, 257, 3_000, 4_199] {
        let difference = &image.row(k) - &image_of(k);
        assert!(difference.iter().all(|d| d.abs() < 1e-13), "row {k}");
    }
    let wanted: f64 = used.iter().map(|k| w.row(*k).dot(&image_of(*k))).sum();
    assert!((correlation.quadratic_form(&w.view()) / wanted - 1.0).abs() < 1e-12);
}

/// Patients with two groups of correlated features, made without a d x d product.
fn patients_cheap(count: usize, features: usize) -> Array2<f64> {
    let shared = normal(count, 2, 8);
    let mut x = normal(count, features, 9);
    for (feature, mut column) in x.columns_mut().into_iter().enumerate() {
        column += &shared.column(feature % 2);
    }
    x
}

#[test]
fn pooled_correlations_come_from_the_sites_second_moments() {
    let x = patients(60, 5);
    let (north, south) = x.view().split_at(Axis(0), 23);
    let mut moments = SecondMoments::of_patients(&SharedPatients::copied(&north));
    moments
        .merge(&SecondMoments::of_patients(&SharedPatients::copied(&south)))
        .unwrap();
    let pooled = Correlation::of_second_moments(&moments).unwrap();
    let mut found = Array2::zeros((5, 5));
    pooled.multiply_into(&Array2::eye(5).view(), &mut found);
    let wanted = squared_correlations(&x);
    assert!(
        (found - wanted)
            .iter()
            .all(|difference| difference.abs() < 1e-12)
    );
}

#[test]
fn with_pooled_correlations_sites_add_up_to_one_site_of_the_paper() {
    // (3.8) counts the correlation term once, however many sites there are
    let x = patients(60, 5);
    let pooled = Arc::new(Correlation::of_matrix(&x.view()));
    for loss in [Loss::Sum, Loss::Mean] {
        let scope = CorrelationScope::Pooled;
        let settings = Settings {
            rank: 2,
            lambda_correlation: 1.0,
            correlation: scope,
            loss,
            ..Settings::paper()
        };
        let w = start(&settings, 5, Seed(4), 0) * 1e-150; // every loss is softplus(+-1)
        let site = |range: std::ops::Range<usize>, totals: &Totals| {
            let labels = classes(range.len());
            let part = x.slice(s![range, ..]);
            SiteObjective::with_pooled_correlation(
                &part,
                &labels,
                &settings,
                totals,
                Seed(3),
                None,
                Arc::clone(&pooled),
            )
            .unwrap()
        };
        let summaries = [23, 37].map(|count| summarise(&classes(count), Pairs::All, Seed(3)));
        let totals = Totals::of(&summaries);
        let sites = [site(0..23, &totals), site(23..60, &totals)];
        let large = &w * 1e150;
        let whole: f64 = sites.iter().map(|site| site.value(&large).unwrap()).sum();
        let without = Settings {
            lambda_correlation: 0.0,
            ..settings
        };
        let losses: f64 = [0..23, 23..60]
            .into_iter()
            .map(|range| {
                let labels = classes(range.len());
                let part = x.slice(s![range, ..]);
                let site =
                    SiteObjective::new(&part, &labels, &without, &totals, Seed(3), None).unwrap();
                site.value(&large).unwrap()
            })
            .sum();
        let once = pooled.quadratic_form(&large.view());
        assert!(((whole - losses) / once - 1.0).abs() < 1e-12);
    }
}

#[test]
fn drawn_pairs_are_that_many_a_patient_and_all_of_them_are_all() {
    let labels = classes(50);
    let few = summarise(&labels, Pairs::PerPatient(4), Seed(3));
    assert!((100..=200).contains(&few.pairs.total()), "{few:?}");
    let every = summarise(&labels, Pairs::PerPatient(49), Seed(3));
    assert_eq!(every, summarise(&labels, Pairs::All, Seed(3)));
    let x = patients(50, 4);
    let w = start(
        &Settings {
            rank: 3,
            ..Settings::paper()
        },
        4,
        Seed(4),
        0,
    );
    let value = |pairs: Pairs| {
        let settings = Settings {
            rank: 3,
            pairs,
            ..Settings::paper()
        };
        let totals = totals(&labels, pairs);
        SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None)
            .unwrap()
            .value(&w)
            .unwrap()
    };
    assert!((value(Pairs::PerPatient(49)) / value(Pairs::All) - 1.0).abs() < 1e-13);
    // Of pairs that are stated those within groups count.
    let stated = |(i, j): (usize, usize)| i8::from(i.abs_diff(j) == 40);
    let stated = Labels::pairs(Array2::from_shape_fn((50, 50), stated)).unwrap();
    let found = summarise(&stated, Pairs::PerPatient(7), Seed(3)).pairs;
    assert!(found.total() < 10 && found.dissimilar == 0, "{found:?}");
    assert_eq!(
        summarise(&stated, Pairs::PerPatient(25), Seed(3))
            .pairs
            .similar,
        10
    );
}

#[test]
fn bits_are_equal_on_one_and_two_threads() {
    let run = |threads: usize, pairs: Pairs, x: ArrayView2<f64>| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let labels = classes(x.nrows());
            let settings = Settings {
                rank: 4,
                pairs,
                lambda_correlation: 0.01,
                ..Settings::paper()
            };
            let totals = totals(&labels, pairs);
            let site = SiteObjective::new(&x, &labels, &settings, &totals, Seed(3), None).unwrap();
            let w = start(&settings, x.ncols(), Seed(4), 0);
            let answer = site.solve(&w, &w, 0.1, 1e-6, 8).unwrap();
            assert!(answer.iterations > 2);
            answer.matrix.mapv(f64::to_bits)
        })
    };
    let (tall, wide) = (patients(1100, 70), patients_cheap(20, 3000));
    for (pairs, x) in [
        (Pairs::All, &tall),
        (Pairs::PerPatient(5), &tall),
        (Pairs::All, &wide),
    ] {
        assert_eq!(run(1, pairs, x.view()), run(2, pairs, x.view()));
    }
}

#[test]
fn the_first_evaluation_is_the_objective_at_the_consensus() {
    let (x, labels) = (patients(90, 6), classes(90));
    let settings = Settings {
        rank: 3,
        ..Settings::paper()
    };
    let totals = totals(&labels, Pairs::All);
    let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None).unwrap();
    let w = start(&settings, 6, Seed(4), 0);
    let centre = &w * 0.5;
    let answer = site.solve(&w, &centre, 1e3, 1e-8, 100).unwrap();
    assert_eq!(answer.objective_at_consensus, site.value(&w).unwrap());
    // the subproblem's gradient vanishes at the answer
    let mut gradient = Array2::zeros(w.raw_dim());
    site.value_and_gradient(&answer.matrix, &mut gradient)
        .unwrap();
    gradient.scaled_add(1e3, &(&answer.matrix - &centre));
    assert!(gradient.iter().all(|value| value.abs() < 1e-5));
}

#[test]
fn similarities_too_large_for_numbers_cost_infinitely_much() {
    let (x, labels) = (patients(20, 3), classes(20));
    let settings = Settings {
        rank: 3,
        lambda_correlation: 0.0,
        ..Settings::paper()
    };
    let totals = totals(&labels, Pairs::All);
    let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None).unwrap();
    let w = start(&settings, 3, Seed(4), 0);
    assert_eq!(site.value(&(&w * 1e200)).unwrap(), f64::INFINITY);
    assert!(site.value(&(&w * 1e30)).unwrap().is_finite());
}

#[test]
fn a_site_without_similar_pairs_takes_part_and_says_so() {
    let x = patients(2, 4);
    let labels = Labels::Classes(Array1::from_vec(vec![0, 1]));
    let settings = Settings {
        rank: 2,
        pair_weights: PairWeights::Balanced,
        ..Settings::paper()
    };
    let totals = totals(&labels, Pairs::All);
    let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None).unwrap();
    let pairs = PairCounts {
        similar: 0,
        dissimilar: 1,
    };
    assert_eq!(site.summary().pairs, pairs);
    assert_gradient(&site, &start(&settings, 4, Seed(4), 0));
    let alone = Totals::of(&[site.summary()]);
    let refused = SiteObjective::new(&x.view(), &labels, &settings, &alone, Seed(3), None);
    let missing = "similar";
    assert_eq!(refused.unwrap_err(), ObjectiveError::OneKind { missing });
}

#[test]
fn a_site_without_dissimilar_pairs_takes_part_and_says_so() {
    let x = patients(30, 4);
    let labels = Labels::Classes(Array1::zeros(30));
    let settings = Settings {
        rank: 2,
        pair_weights: PairWeights::Balanced,
        ..Settings::paper()
    };
    let totals = totals(&labels, Pairs::All);
    let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None).unwrap();
    assert_eq!(
        site.summary().pairs,
        PairCounts {
            similar: 435,
            dissimilar: 0
        }
    );
    assert_gradient(&site, &start(&settings, 4, Seed(4), 0));
    // all sites of one class: balanced weights have no meaning, equal ones do
    let alone = Totals::of(&[site.summary()]);
    let refused = SiteObjective::new(&x.view(), &labels, &settings, &alone, Seed(3), None);
    assert_eq!(
        refused.unwrap_err(),
        ObjectiveError::OneKind {
            missing: "dissimilar"
        }
    );
    let equal = Settings {
        pair_weights: PairWeights::Equal,
        ..settings
    };
    assert!(SiteObjective::new(&x.view(), &labels, &equal, &alone, Seed(3), None).is_ok());
}

/// A fold may take all pairs of a small site, of those that a physician has judged.
#[test]
fn patients_without_a_pair_add_nothing() {
    let x = patients(12, 4);
    let totals = totals(&classes(30), Pairs::All);
    for threshold in [
        Threshold::Site,
        Threshold::Fixed(1.0),
        Threshold::Common(0.5),
    ] {
        for site_weights in [
            SiteWeights::Pairs,
            SiteWeights::Patients,
            SiteWeights::Equal,
        ] {
            let settings = Settings {
                rank: 2,
                precision: Precision::Rounded,
                threshold,
                site_weights,
                ..Settings::default()
            };
            let none = Labels::Judged(JudgedPairs::new(12, []).unwrap());
            let objective =
                SiteObjective::new(&x.view(), &none, &settings, &totals, Seed(3), None).unwrap();
            let rows = settings.matrix_rows(4);
            let metric = |scale: f64| Array2::from_elem((rows, 2), scale);
            let [one, other] = [0.3, 0.7].map(|scale| {
                let own = objective.derivatives(&metric(scale), None).unwrap();
                assert_eq!(own.gradient, Array2::<f64>::zeros((4, 4)));
                assert_eq!(own.curvature, Array2::<f64>::zeros((4, 4)));
                own
            });
            match threshold {
                // What all sites have at W = 0 is a constant, or follows their common threshold.
                Threshold::Common(_) => assert!(one.objective.is_finite()),
                Threshold::Site | Threshold::Fixed(_) => assert_eq!(one.objective, other.objective),
            }
        }
    }
}

#[test]
fn bad_input_is_named() {
    let x = patients(30, 4);
    let labels = classes(30);
    let usual = Settings {
        rank: 2,
        ..Settings::paper()
    };
    let totals = totals(&labels, Pairs::All);
    let refused = |x: &Array2<f64>, labels: &Labels, settings: &Settings, totals: &Totals| {
        SiteObjective::new(&x.view(), labels, settings, totals, Seed(3), None).unwrap_err()
    };
    for value in [f64::NAN, f64::INFINITY] {
        let mut strange = x.clone();
        strange[[7, 2]] = value;
        let error = refused(&strange, &labels, &usual, &totals);
        assert_eq!(error, ObjectiveError::NotFinite { column: 2 });
    }
    let alone = |patients: usize| Totals {
        patients: patients as u64,
        sites: 1,
        ..Totals::default()
    };
    let one = refused(&patients(1, 4), &classes(1), &usual, &alone(1));
    assert_eq!(one, ObjectiveError::NoPairs { patients: 1 });
    let nobody = refused(&patients(0, 4), &classes(0), &usual, &alone(0));
    assert_eq!(nobody, ObjectiveError::NoPairs { patients: 0 });
    let drawn = Settings {
        pairs: Pairs::PerPatient(3),
        ..usual
    };
    let one = refused(&patients(1, 4), &classes(1), &drawn, &alone(1));
    assert_eq!(one, ObjectiveError::NoPairs { patients: 1 });
    let labels_short = refused(&x, &classes(29), &usual, &totals);
    assert_eq!(
        labels_short,
        ObjectiveError::LabelsMismatch {
            found: 29,
            wanted: 30
        }
    );
    let small = refused(&x, &labels, &usual, &Totals::default());
    assert!(matches!(small, ObjectiveError::Totals { .. }));
    for rank in [0, 5] {
        let error = refused(&x, &labels, &Settings { rank, ..usual }, &totals);
        let wanted = SettingsError::Rank {
            found: rank,
            features: 4,
        };
        assert_eq!(error, ObjectiveError::Settings(wanted));
    }
    let strange = [
        Settings {
            lambda_sparsity: -1.0,
            ..usual
        },
        Settings {
            lambda_correlation: -1.0,
            ..usual
        },
        Settings {
            lambda_sparsity: f64::NAN,
            ..usual
        },
        Settings {
            threshold: Threshold::Fixed(f64::INFINITY),
            ..usual
        },
        Settings {
            pairs: Pairs::PerPatient(0),
            ..usual
        },
        Settings {
            pairs: Pairs::PerPatient(501),
            ..usual
        },
    ];
    for settings in strange {
        let error = refused(&x, &labels, &settings, &totals);
        assert!(matches!(error, ObjectiveError::Settings(_)), "{settings:?}");
    }
    let site = SiteObjective::new(&x.view(), &labels, &usual, &totals, Seed(3), None).unwrap();
    // Of any rank that its features can have, and of no other.
    assert!(site.value(&Array2::zeros((4, 3))).is_ok());
    let wrong = site.value(&Array2::zeros((4, 5))).unwrap_err();
    assert!(matches!(
        wrong,
        ObjectiveError::Shape {
            found_columns: 5,
            columns: 2,
            ..
        }
    ));
    let pooled = Settings {
        correlation: CorrelationScope::Pooled,
        ..usual
    };
    let error = refused(&x, &labels, &pooled, &totals);
    assert_eq!(
        error,
        ObjectiveError::CorrelationMismatch {
            found: 0,
            wanted: 4
        }
    );
}

#[test]
fn labels_that_are_none_are_refused() {
    let asymmetric = Array2::from_shape_vec((2, 2), vec![0, 1, -1, 0]).unwrap();
    assert!(Labels::pairs(asymmetric).is_err());
    assert!(Labels::pairs(Array2::from_elem((2, 2), 2)).is_err());
    assert!(Labels::pairs(Array2::zeros((2, 3))).is_err());
}

#[test]
fn a_feature_constant_at_a_site_has_no_correlation_there() {
    let mut x = patients(30, 4);
    x.column_mut(1).fill(0.37);
    let correlation = Correlation::of_matrix(&x.view());
    let mut found = Array2::zeros((4, 4));
    correlation.multiply_into(&Array2::eye(4).view(), &mut found);
    assert!(
        found
            .row(1)
            .iter()
            .chain(found.column(1))
            .all(|value| *value == 0.0)
    );
    assert!((found[[2, 2]] - 1.0).abs() < 1e-14);
}

/// An orthogonal matrix: a product of two Householder reflections.
fn orthogonal(size: usize, index: u64) -> Array2<f64> {
    let reflection = |index: u64| {
        let v = normal(size, 1, index);
        let square = (&v * &v).sum();
        Array2::eye(size) - v.dot(&v.t()) * (2.0 / square)
    };
    reflection(index).dot(&reflection(index + 1000))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rotation_of_the_columns_changes_nothing_but_the_gradients_columns(index in 100..900_u64) {
        let (x, labels) = (patients(40, 5), classes(40));
        let settings = Settings { rank: 3, lambda_correlation: 0.1, ..Settings::paper() };
        let totals = totals(&labels, Pairs::All);
        let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(3), None).unwrap();
        let w = start(&settings, 5, Seed(index), 0) * 2.0;
        let q = orthogonal(3, index);
        let mut gradients = [Array2::zeros((5, 3)), Array2::zeros((5, 3))];
        let value = site.value_and_gradient(&w, &mut gradients[0]).unwrap();
        let rotated = site.value_and_gradient(&w.dot(&q), &mut gradients[1]).unwrap();
        prop_assert!((value / rotated - 1.0).abs() < 1e-12);
        let difference = gradients[0].dot(&q) - &gradients[1];
        prop_assert!(difference.iter().all(|d| d.abs() < 1e-12));
    }

    #[test]
    fn the_order_of_patients_does_not_matter(shift in 1..39_usize) {
        let (x, codes) = (patients(40, 5), (0..40_u32).map(|p| p % 3).collect::<Array1<u32>>());
        let settings = Settings { rank: 3, ..Settings::paper() };
        let value = |x: ArrayView2<f64>, codes: Array1<u32>| {
            let labels = Labels::Classes(codes);
            let totals = totals(&labels, Pairs::All);
            let site = SiteObjective::new(&x, &labels, &settings, &totals, Seed(3), None).unwrap();
            site.value(&start(&settings, 5, Seed(4), 0)).unwrap()
        };
        let (head, tail) = x.view().split_at(Axis(0), shift);
        let moved = concatenate(Axis(0), &[tail, head]).unwrap();
        let (first, last) = codes.view().split_at(Axis(0), shift);
        let moved_codes = concatenate(Axis(0), &[last, first]).unwrap();
        prop_assert!((value(x.view(), codes.clone()) / value(moved.view(), moved_codes) - 1.0).abs() < 1e-13);
    }
}

#[test]
fn labels_of_some_patients_make_the_objective_of_these_alone() {
    let (x, labels, rows) = (patients(30, 4), pair_labels(30), [3, 4, 9, 17, 20, 28]);
    let (own, among) = (x.select(Axis(0), &rows), labels.among(&rows));
    let stated = |(i, j): (usize, usize)| labels.of_pair(rows[i], rows[j]);
    let stated = Labels::pairs(Array2::from_shape_fn((6, 6), stated)).unwrap();
    let settings = Settings {
        rank: 2,
        ..Settings::default()
    };
    let w = start(&settings, 4, Seed(5), 0);
    let value = |labels: &Labels| {
        let totals = totals(labels, Pairs::All);
        let site =
            SiteObjective::new(&own.view(), labels, &settings, &totals, Seed(3), None).unwrap();
        site.value(&w).unwrap()
    };
    assert_eq!(value(&among), value(&stated));
}
