//! Columns that are constant, nearly constant, collinear or rare among a site's patients make no derivative that no patients
//! have.

#![allow(clippy::unwrap_used)]

use ndarray::{Array1, Array2};
use proptest::prelude::*;
use rand_distr::{Distribution, StandardNormal};
use similarity::learn::unpsl::accelerated::{Knowledge, Search, SearchSettings, search_sites};
use similarity::learn::unpsl::{
    Form, Labels, Pairs, Settings, SiteDerivatives, SiteObjective, Threshold, Totals, start,
    summarise,
};
use similarity::numeric::seed::Seed;

const FEATURES: usize = 8;
/// Which columns are the same for all patients, but for rounding.
const CONSTANT: [usize; 2] = [2, 4];

/// Two plain columns; one constant, one nearly so; the rarest finding at a site without anybody who has it; the same of one
/// patient; a column that is another's multiple, and one that is the sum of two.
fn patients(count: usize, index: u64) -> Array2<f64> {
    let mut stream = Seed(index).stream("odd", 0);
    let constant: f64 = stream.random_range(-30.0..30.0);
    let has = stream.random_range(0..count);
    let offset: f64 = stream.random_range(-5.0..5.0);
    let mut x = Array2::zeros((count, FEATURES));
    for (patient, mut row) in x.rows_mut().into_iter().enumerate() {
        let mut normal = || -> f64 { StandardNormal.sample(&mut stream) };
        let (one, other, little) = (normal(), normal() + offset, normal());
        let rare = if patient == has { 17.291_6 } else { -0.057_831 };
        let all = [
            one,
            other,
            constant,
            constant + 1e-9 * little,
            -0.057_831,
            rare,
            0.7 * other,
            one + other,
        ];
        row.assign(&Array1::from(all.to_vec()));
    }
    x
}

fn site(x: &Array2<f64>, settings: &Settings) -> SiteObjective {
    let codes = (0..x.nrows()).map(|patient| (patient * patient % 7 % 3).min(1) as u32);
    let labels = Labels::Classes(codes.collect());
    let totals = Totals::of(&[summarise(&labels, settings.pairs, Seed(3))]);
    SiteObjective::new(&x.view(), &labels, settings, &totals, Seed(3), None).unwrap()
}

fn every_choice() -> Vec<Settings> {
    let mut all = Vec::new();
    for form in [Form::InnerProduct, Form::Distance] {
        for threshold in [
            Threshold::Site,
            Threshold::Fixed(1.0),
            Threshold::Common(1.0),
        ] {
            for pairs in [Pairs::All, Pairs::PerPatient(5)] {
                all.push(Settings {
                    rank: 3,
                    form,
                    threshold,
                    pairs,
                    ..Settings::default()
                });
            }
        }
    }
    all
}

fn assert_possible(found: &SiteDerivatives) {
    let told = found.gradient.iter().chain(&found.curvature);
    assert!(told.chain([&found.objective]).all(|one| one.is_finite()));
    assert!(found.objective >= 0.0 && found.threshold.second >= 0.0);
    let curvature = &found.curvature;
    let diagonal = curvature.diag();
    let least = diagonal.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least >= 0.0, "a curvature of {least:e}");
    let largest = diagonal.iter().copied().fold(0.0, f64::max);
    for ((one, other), entry) in curvature.indexed_iter() {
        let bound = diagonal[one] * diagonal[other];
        assert!(entry * entry <= bound * (1.0 + 1e-6) + 1e-24 * largest * largest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_curvature_is_below_zero(count in 3..260_usize, index in 0..10_000_u64, size in 0.0..3.0_f64) {
        let x = patients(count, index);
        for settings in every_choice() {
            let site = site(&x, &settings);
            let metric = start(&settings, FEATURES, Seed(index), 1) * size;
            let whole = site.derivatives(&metric, None).unwrap();
            assert_possible(&whole);
            assert_possible(&site.derivatives(&metric, Some(&[1, 2, 4, 5])).unwrap());
            if settings.form == Form::Distance {
                let largest = whole.curvature.diag().iter().copied().fold(0.0, f64::max);
                for column in CONSTANT {
                    prop_assert!(whole.curvature[[column, column]] <= 1e-24 * largest);
                }
            }
        }
    }
}

#[test]
fn a_search_over_such_columns_ends_at_a_finite_metric() {
    for (index, form) in [(1, Form::InnerProduct), (2, Form::Distance)] {
        let settings = Settings {
            rank: 3,
            form,
            ..Settings::default()
        };
        let sites: Vec<SiteObjective> = (0..3)
            .map(|own| site(&patients(100, 10 * index + own), &settings))
            .collect();
        let own = SearchSettings {
            lambda_sparsity: 1e-3,
            form,
            tolerance: 1e-6,
            tolerance_residual: 1e-3,
        };
        let search = Search::new(own, start(&settings, FEATURES, Seed(index), 0), FEATURES);
        let mut known = Knowledge::new();
        let mut converged = false;
        let observe = &mut |_: &Search, step: &similarity::learn::unpsl::accelerated::Step| {
            converged |= step.converged;
        };
        let found = search_sites(&sites, search, &mut known, 60, observe).unwrap();
        assert!(converged, "{form:?}");
        assert!(found.best().iter().all(|entry| entry.is_finite()));
    }
}
