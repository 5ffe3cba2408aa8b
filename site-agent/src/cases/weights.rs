//! The regression that weights a distance, as it is reported.

use super::setting::Weighing;
use super::shown::{four, short, table};
use serde::Serialize;

/// A regression, for machines.
#[derive(Debug, Serialize)]
pub(super) struct Regression {
    patients: u64,
    log_likelihood: f64,
    coefficients: Vec<Coefficient>,
    /// Of Cox, on the patients of the fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    concordance: Option<f64>,
    /// Of Cox, by the transform 1 - Kaplan-Meier.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proportional_hazards: Vec<HazardTest>,
}

#[derive(Debug, Serialize)]
struct HazardTest {
    /// None of all together.
    feature: Option<String>,
    chi_squared: f64,
    degrees: usize,
    p: f64,
}

#[derive(Debug, Serialize)]
struct Coefficient {
    column: String,
    coefficient: f64,
    standard_error: f64,
    low: f64,
    high: f64,
    p: f64,
}

impl Regression {
    /// Of the regression that weighs.
    pub(super) fn of(weighing: &Weighing) -> Self {
        let Weighing { fit, cox } = weighing;
        let estimates = fit.estimates(0.95).into_iter();
        let tests = cox.iter().flat_map(|cox| &cox.proportionality);
        Self {
            patients: fit.patients,
            log_likelihood: fit.log_likelihood,
            coefficients: estimates
                .map(|one| Coefficient {
                    column: one.name,
                    coefficient: one.value,
                    standard_error: one.standard_error,
                    low: one.low,
                    high: one.high,
                    p: one.p,
                })
                .collect(),
            concordance: cox.as_ref().map(|cox| cox.concordance),
            proportional_hazards: tests
                .map(|test| HazardTest {
                    feature: test.term.clone(),
                    chi_squared: test.chi_squared,
                    degrees: test.degrees,
                    p: test.p,
                })
                .collect(),
        }
    }
}

/// The coefficients, and what is to be known of a Cox regression, as tables.
pub(super) fn text(weighing: &Weighing) -> String {
    let header = [
        "weighed by",
        "coefficient",
        "standard error",
        "95 % from",
        "to",
        "p",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for one in weighing.fit.estimates(0.95) {
        rows.push(vec![
            one.name,
            short(one.value),
            short(one.standard_error),
            short(one.low),
            short(one.high),
            short(one.p),
        ]);
    }
    let mut text = table(&rows, &[0]) + "\n";
    if let Some(cox) = &weighing.cox {
        let header = ["proportional hazards", "chi-squared", "degrees", "p"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for test in &cox.proportionality {
            rows.push(vec![
                test.term.clone().unwrap_or_else(|| "all".to_owned()),
                short(test.chi_squared),
                test.degrees.to_string(),
                short(test.p),
            ]);
        }
        text.push_str(&table(&rows, &[0]));
        text.push_str(&format!(
            "A small p says that the feature's effect changes with time. Concordance: {}.\n\n",
            four(cox.concordance)
        ));
    }
    text
}
