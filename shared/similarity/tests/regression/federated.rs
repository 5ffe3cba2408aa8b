//! Sums of several sites, added, give the fit of all their patients.

use crate::sample::*;
use ndarray::{Array1, Array2};
use similarity::cohort::{Cohort, Outcome};
use similarity::learn::regression::cox::{FollowUp, RiskSets};
use similarity::learn::regression::glm::Family;
use similarity::learn::regression::newton::{Maximum, Newton, Wanted};
use similarity::learn::regression::sums::{ColumnSums, Products, Scaling, Sums};
use similarity::learn::regression::terms::Terms;
use similarity::learn::regression::{Fit, FitParts, Model, Settings, Ties, fit};

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
        let mut newton = Newton::new(scaling.penalty(0.0, model));
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

#[test]
fn cox_regression_by_risk_sets_of_three_sites_is_that_of_all_patients_on_the_same_grid() {
    let cohort = cohort(days);
    let grid: Vec<f64> = (1..=45).map(|step| f64::from(step) * 20.0).collect();
    let follow_ups: Vec<FollowUp> = sites(&cohort)
        .iter()
        .map(|site| match site.outcome() {
            Outcome::Survival { time, event } => FollowUp::on_grid(time, event, &grid),
            _ => unreachable!(),
        })
        .collect();
    for ties in [Ties::Efron, Ties::Breslow] {
        let sites = sites(&cohort);
        let terms = Terms::of_columns(cohort.columns(), &[1; 5]).unwrap();
        let (scaling, designs) = scaled(&sites, &terms, false);
        let model = Model::Cox(ties);
        let mut newton = Newton::new(scaling.penalty(0.0, model));
        let sets = |at: &Array1<f64>| {
            let of_site = |site: usize| RiskSets::of(&follow_ups[site], &designs[site].view(), at);
            let mut total = of_site(0);
            (1..3).for_each(|site| total.merge(&of_site(site)));
            total
        };
        let first = sets(newton.asked());
        while newton.wanted() != Wanted::Nothing {
            let at = newton.asked().clone();
            let told = sets(&at).terms(&first, &at, ties);
            newton.learn_value(told.log_likelihood, told.gradient(|_| 1.0));
            if newton.wanted() == Wanted::Information {
                let products = (0..3)
                    .map(|site| {
                        follow_ups[site].products(&designs[site].view(), &at, &told.weights)
                    })
                    .reduce(|sum, own| sum + own);
                newton.learn_information(told.information(&products.unwrap(), |_| 1.0));
            }
        }
        let found = joined(model, terms, scaling, newton.maximum(240));
        let settings = Settings {
            ties,
            grid: grid.clone(),
            ..Settings::default()
        };
        let pooled = fit(&cohort, &settings).unwrap();
        same(&found, &pooled);
        // These patients' days are multiples of 20, so that the grid changes nothing.
        let exact = Settings {
            ties,
            ..Settings::default()
        };
        same(&pooled, &fit(&cohort, &exact).unwrap());
    }
}

#[test]
fn counts_of_sites_on_one_grid_add_up() {
    let cohort = cohort(days);
    let grid = [100.0, 300.0, 900.0];
    let counts = |cohort: &Cohort| match cohort.outcome() {
        Outcome::Survival { time, event } => {
            FollowUp::on_grid(time, event, &grid).counts(time, false)
        }
        _ => unreachable!(),
    };
    let mut sum = counts(&sites(&cohort)[0]);
    sites(&cohort)[1..]
        .iter()
        .for_each(|site| sum.merge(&counts(site)));
    assert_eq!(sum, counts(&cohort));
    assert_eq!(sum.at_risk[0], 240);
    assert_eq!(sum.ending.iter().sum::<u64>(), 240);
}
