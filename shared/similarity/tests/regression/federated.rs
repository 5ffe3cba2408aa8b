//! Sums of several sites, added, give the fit of all their patients.

use crate::sample::*;
use ndarray::{Array1, Array2};
use similarity::cohort::{Cohort, Outcome};
use similarity::learn::regression::cox::FollowUp;
use similarity::learn::regression::glm::Family;
use similarity::learn::regression::newton::{Maximum, Newton, Wanted};
use similarity::learn::regression::sums::{ColumnSums, Products, Scaling, Sums};
use similarity::learn::regression::terms::Terms;
use similarity::learn::regression::{Fit, FitParts, Model, Settings, Ties, fit};
use similarity::numeric::precision::Precision;

/// Three sites of 120, 80 and 40 patients.
fn sites(cohort: &Cohort) -> Vec<Cohort> {
    let ends = [(0, 120), (120, 200), (200, 240)];
    let rows = |(begin, end): (usize, usize)| (begin..end).collect::<Vec<_>>();
    ends.map(|site| cohort.select(&rows(site))).into()
}

/// What a coordinator does that sees sums alone. The sites' designs come with it.
fn scaled(sites: &[Cohort], terms: &Terms, intercept: bool) -> (Scaling, Vec<Array2<f64>>) {
    let matrices: Vec<Array2<f64>> = sites
        .iter()
        .map(|site| terms.matrix(site.columns()).unwrap())
        .collect();
    let mut sums = ColumnSums::of(&matrices[0].view());
    matrices[1..]
        .iter()
        .for_each(|matrix| sums.merge(&ColumnSums::of(&matrix.view())));
    let means = sums.means();
    let mut products = Products::of(&matrices[0].view(), &means);
    let others = matrices[1..]
        .iter()
        .map(|matrix| Products::of(&matrix.view(), &means));
    others.for_each(|other| products.merge(&other));
    let scaling = Scaling::new(terms, means, &products);
    let designs = matrices
        .iter()
        .map(|matrix| scaling.apply(&matrix.view(), intercept));
    let designs = designs.collect();
    (scaling, designs)
}

fn joined(model: Model, terms: Terms, scaling: Scaling, maximum: Maximum) -> Fit {
    Fit::assemble(FitParts {
        model,
        terms,
        scaling,
        ridge: 0.0,
        maximum,
        null_log_likelihood: 0.0,
        events: 0,
        left_out: 0,
    })
}

fn same(federated: &Fit, pooled: &Fit) {
    for (found, wanted) in federated.estimates(0.95).iter().zip(pooled.estimates(0.95)) {
        assert!((found.value - wanted.value).abs() <= 1e-10 * wanted.value.abs());
        let error = wanted.standard_error;
        assert!((found.standard_error - error).abs() <= 1e-10 * error);
    }
    assert!((federated.log_likelihood - pooled.log_likelihood).abs() < 1e-9);
}

#[test]
fn linear_and_logistic_regression_from_three_sites_are_those_of_all_patients() {
    let cohort_of = [
        (cohort(score), Family::Linear, Model::Linear),
        (cohort(ill), Family::Logistic, Model::Logistic),
    ];
    for (cohort, family, model) in cohort_of {
        let outcomes: Vec<Array1<f64>> = sites(&cohort)
            .iter()
            .map(|site| match site.outcome() {
                Outcome::Numeric(values) => values.clone(),
                Outcome::Classes { codes, .. } => codes.mapv(f64::from),
                Outcome::Survival { .. } => unreachable!(),
            })
            .collect();
        let sites = sites(&cohort);
        let terms = Terms::of_columns(cohort.columns(), &[1; 5]).unwrap();
        let (scaling, designs) = scaled(&sites, &terms, true);
        let mut newton = Newton::new(scaling.penalty(0.0, model), Precision::Exact);
        while newton.wanted() != Wanted::Nothing {
            let mut total = Sums::zero(newton.asked().len());
            for (design, outcome) in designs.iter().zip(&outcomes) {
                total.merge(&family.sums(&design.view(), outcome, newton.asked()));
            }
            newton.learn_value(total.log_likelihood, total.gradient);
            newton.learn_information(total.information);
        }
        let found = joined(model, terms, scaling, newton.maximum(240));
        same(&found, &fit(&cohort, &Settings::default()).unwrap());
    }
}

/// The risk sets of each site, and those of all patients as one stratum.
fn strata_of(cohort: &Cohort) -> (Vec<FollowUp>, FollowUp) {
    let of = |cohort: &Cohort| match cohort.outcome() {
        Outcome::Survival { time, event } => FollowUp::until(time, event, 900.0),
        Outcome::Numeric(_) | Outcome::Classes { .. } => unreachable!(),
    };
    (sites(cohort).iter().map(of).collect(), of(cohort))
}

#[test]
fn the_sums_of_a_stratum_are_the_log_likelihood_and_its_derivatives() {
    let cohort = cohort(days);
    let terms = Terms::of_columns(cohort.columns(), &[1; 5]).unwrap();
    let (_, designs) = scaled(&sites(&cohort), &terms, false);
    let (follow_ups, _) = strata_of(&cohort);
    for ties in [Ties::Efron, Ties::Breslow] {
        let (follow_up, design) = (&follow_ups[1], designs[1].view());
        let at: Array1<f64> = (0..design.ncols())
            .map(|column| 0.2 - 0.1 * column as f64)
            .collect();
        let sums = |at: &Array1<f64>| follow_up.sums(&design, at, ties);
        let here = sums(&at);
        for column in 0..at.len() {
            let moved = |by: f64| {
                let mut at = at.clone();
                at[column] += by;
                sums(&at)
            };
            let (up, down) = (moved(1e-5), moved(-1e-5));
            let slope = (up.log_likelihood - down.log_likelihood) / 2e-5;
            assert!((slope - here.gradient[column]).abs() < 1e-5);
            let bend = (&up.gradient - &down.gradient) / -2e-5;
            for (bend, own) in bend.iter().zip(here.information.column(column)) {
                assert!((bend - own).abs() < 1e-4, "{bend} {own}");
            }
        }
    }
}

#[test]
fn columns_times_time_are_beside_the_columns_themselves() {
    let cohort = cohort(days);
    let terms = Terms::of_columns(cohort.columns(), &[1; 5]).unwrap();
    let (_, designs) = scaled(&sites(&cohort), &terms, false);
    let (follow_up, design) = (&strata_of(&cohort).0[0], designs[0].view());
    let (size, at) = (design.ncols(), Array1::zeros(design.ncols()));
    let plain = follow_up.sums(&design, &at, Ties::Efron);
    // Of a scale that is 2 at all times both halves are the same, but for the 2.
    let scale = vec![2.0; follow_up.times().len()];
    let with_time = follow_up.sums_with_time(&design, &at, Ties::Efron, &scale);
    assert_eq!((with_time.patients, with_time.events), (120, plain.events));
    for row in 0..2 * size {
        let factor = |place: usize| if place < size { 1.0 } else { 2.0 };
        let gradient = factor(row) * plain.gradient[row % size];
        assert!((with_time.gradient[row] - gradient).abs() < 1e-9);
        for column in 0..2 * size {
            let own = plain.information[(row % size, column % size)];
            let away = with_time.information[(row, column)] - factor(row) * factor(column) * own;
            assert!(away.abs() < 1e-9);
        }
    }
}

/// The maximum of three strata is no other's: at it their scores add up to nothing, and the score of one stratum of all does not.
#[test]
fn cox_regression_of_three_strata_is_not_that_of_one() {
    let cohort = cohort(days);
    let (follow_ups, pooled) = strata_of(&cohort);
    let terms = Terms::of_columns(cohort.columns(), &[1; 5]).unwrap();
    let (scaling, designs) = scaled(&sites(&cohort), &terms, false);
    let model = Model::Cox(Ties::Efron);
    let mut newton = Newton::new(scaling.penalty(0.0, model), Precision::Exact);
    while newton.wanted() != Wanted::Nothing {
        let mut total = Sums::zero(newton.asked().len());
        for (design, follow_up) in designs.iter().zip(&follow_ups) {
            total.merge(&follow_up.sums(&design.view(), newton.asked(), Ties::Efron));
        }
        newton.learn_value(total.log_likelihood, total.gradient);
        newton.learn_information(total.information);
    }
    let found = newton.maximum(240);
    let score = |one: &FollowUp, design: &Array2<f64>| {
        one.sums(&design.view(), &found.at, Ties::Efron).gradient
    };
    let own = designs.iter().zip(&follow_ups);
    let own = own.map(|(design, one)| score(one, design));
    let own = own.reduce(|sum, one| sum + one).unwrap();
    assert!(own.iter().all(|slope| slope.abs() < 1e-8), "{own}");
    let matrix = terms.matrix(cohort.columns()).unwrap();
    let whole = score(&pooled, &scaling.apply(&matrix.view(), false));
    assert!(whole.iter().any(|slope| slope.abs() > 0.1), "{whole}");
}
