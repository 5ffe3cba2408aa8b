//! A metric of a site's own: what it solves, when it helps, and that it is not praised where it does not.

#![allow(clippy::unwrap_used)]

use ndarray::{Array1, Array2};
use rand_distr::{Distribution, StandardNormal};
use similarity::learn::unpsl::personal::{Judged, PENALTIES, Personal, Way, personalise, sample};
use similarity::learn::unpsl::selection::{Classified, Search, SelectionError};
use similarity::learn::unpsl::{
    Form, Labels, PooledLimits, Settings, SiteObjective, Threshold, Totals, summarise,
};
use similarity::numeric::portable::norm;
use similarity::numeric::seed::Seed;

const FEATURES: usize = 12;

/// Two classes that one feature tells apart, and others not at all.
fn patients(count: usize, telling: usize, seed: u64) -> (Array2<f64>, Array1<u32>) {
    let mut stream = Seed(seed).stream("test", 0);
    let mut x =
        Array2::from_shape_simple_fn((count, FEATURES), || StandardNormal.sample(&mut stream));
    let classes: Array1<u32> = (0..count as u32).map(|patient| patient % 2).collect();
    for (mut row, class) in x.rows_mut().into_iter().zip(&classes) {
        row[telling] += 1.3 * (2.0 * f64::from(*class) - 1.0);
    }
    for mut column in x.columns_mut() {
        let (mean, deviation) = (column.mean().unwrap(), column.std(0.0));
        column.mapv_inplace(|value| (value - mean) / deviation);
    }
    (x, classes)
}

/// A metric that weighs one feature, and a little of all others.
fn common(telling: usize) -> Array2<f64> {
    Array2::from_shape_fn((FEATURES, 2), |(row, column)| {
        let own = if row == telling { 1.0 } else { 0.05 };
        if column == row % 2 { own } else { 0.0 }
    })
}

fn search(form: Form, threshold: Threshold) -> Search {
    let settings = Settings {
        form,
        threshold,
        ..Settings::paper()
    };
    Search {
        limits: PooledLimits {
            tolerance: 1e-3,
            iterations: 200,
        },
        ..Search::new(settings, Seed(5))
    }
}

fn found(x: &Array2<f64>, classes: &Array1<u32>, from: &Array2<f64>, search: &Search) -> Personal {
    let patients = Classified {
        patients: x.view(),
        classes,
    };
    personalise(&patients, from, search, 5, 9).unwrap()
}

#[test]
fn it_solves_the_local_update_from_the_consensus_without_a_dual() {
    let (x, classes) = patients(120, 3, 1);
    let from = common(0);
    for form in [Form::InnerProduct, Form::Distance] {
        let search = search(form, Threshold::Site);
        let personal = found(&x, &classes, &from, &search);
        assert!(PENALTIES.contains(&personal.penalty));
        let settings = Settings {
            rank: 2,
            ..search.settings
        };
        let labels = Labels::Classes(classes.clone());
        let totals = Totals::of(&[summarise(&labels, settings.pairs, search.seed)]);
        let own =
            SiteObjective::new(&x.view(), &labels, &settings, &totals, search.seed, None).unwrap();
        let mut gradient = Array2::zeros(from.raw_dim());
        own.value_and_gradient(&personal.metric, &mut gradient)
            .unwrap();
        gradient.scaled_add(personal.penalty, &(&personal.metric - &from));
        let size = personal.penalty * norm(&personal.metric.view());
        assert!(norm(&gradient.view()) < 1e-3 * size, "{form:?}");
    }
}

#[test]
fn a_site_that_differs_gains_and_its_own_feature_comes_first() {
    let (x, classes) = patients(220, 3, 2);
    for threshold in [
        Threshold::Site,
        Threshold::Fixed(1.0),
        Threshold::Common(1.0),
    ] {
        let search = search(Form::Distance, threshold);
        let personal = found(&x, &classes, &common(0), &search);
        assert!(personal.is_better(), "{threshold:?}: {:?}", personal.gain());
        let length = |row: usize| norm(&personal.metric.slice(ndarray::s![row..=row, ..]));
        assert!(
            (0..FEATURES).all(|row| row == 3 || length(row) < length(3)),
            "{threshold:?}"
        );
    }
}

#[test]
fn a_site_like_all_others_is_not_told_of_a_gain() {
    // A normal number is beyond one standard error in one of six draws.
    let search = search(Form::Distance, Threshold::Site);
    let right = common(0).mapv(|entry: f64| entry.floor());
    let praised = (0..12)
        .filter(|seed| {
            let (x, classes) = patients(90, 0, 100 + seed);
            found(&x, &classes, &right, &search).is_better()
        })
        .count();
    assert!(praised <= 4, "{praised} of 12");
}

#[test]
fn all_four_ways_are_judged_by_every_patient() {
    let (x, classes) = patients(100, 0, 3);
    let personal = found(
        &x,
        &classes,
        &common(0),
        &search(Form::InnerProduct, Threshold::Site),
    );
    let ways = [Way::Plain, Way::Alone, Way::Common, Way::Personal];
    assert_eq!(
        personal
            .judged
            .iter()
            .map(|one| one.way)
            .collect::<Vec<_>>(),
        ways
    );
    for judged in &personal.judged {
        let counts = judged.counts();
        assert_eq!(counts.right + counts.wrong, 100);
        // A coin would be right for 50; one feature tells the classes apart.
        assert!(counts.right > 60, "{:?}: {}", judged.way, counts.right);
    }
}

#[test]
fn patients_are_drawn_once_each_and_all_where_they_are_few() {
    assert_eq!(sample(5, 10, Seed(1)), [0, 1, 2, 3, 4]);
    let drawn = sample(1_000, 200, Seed(1));
    assert_eq!(drawn.len(), 200);
    assert!(drawn.is_sorted_by(|a, b| a < b) && drawn[199] < 1_000);
    assert_eq!(drawn, sample(1_000, 200, Seed(1)));
    assert_ne!(drawn, sample(1_000, 200, Seed(2)));
}

#[test]
fn a_gain_has_the_standard_error_of_paired_differences() {
    let judged = |right: [bool; 8]| Judged {
        way: Way::Plain,
        right: right.to_vec(),
    };
    let one = judged([true, true, true, true, true, false, false, false]);
    let other = judged([true, true, false, false, false, true, false, false]);
    // Differences 0 0 1 1 1 -1 0 0: numpy.mean 0.25, numpy.std 0.6614378277661477, over sqrt(8) 0.23385358667337133.
    let gain = one.gain(&other);
    assert!((gain.difference - 0.25).abs() < 1e-15);
    assert!((gain.standard_error - 0.233_853_586_673_371_33).abs() < 1e-15);
}

#[test]
fn a_class_of_few_patients_and_an_empty_consensus_are_said_or_survived() {
    let (x, _) = patients(40, 0, 4);
    let few: Array1<u32> = (0..40).map(|patient| u32::from(patient < 3)).collect();
    let patients_of = |classes| Classified {
        patients: x.view(),
        classes,
    };
    let search = search(Form::InnerProduct, Threshold::Site);
    let refused = personalise(&patients_of(&few), &common(0), &search, 5, 9);
    assert!(matches!(
        refused.unwrap_err(),
        SelectionError::FewPatients {
            found: 3,
            wanted: 5
        }
    ));
    // W = 0 is stationary: nothing moves away from it, and it classifies nobody.
    let classes: Array1<u32> = (0..40).map(|patient| patient % 2).collect();
    let empty = Array2::zeros((FEATURES, 2));
    let personal = personalise(&patients_of(&classes), &empty, &search, 5, 9).unwrap();
    assert!(personal.metric.iter().all(|entry| *entry == 0.0));
    assert_eq!(personal.of(Way::Personal).counts().right, 0);
    assert!(!personal.is_better());
}
