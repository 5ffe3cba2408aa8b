//! What is to be known of the hazards of a survival time: whether effects change with time, the baseline, and risks.

use super::columns::is_binary;
use super::{SIGNIFICANT, label};
use crate::outcome::{rate_in_words, units_of};
use crate::words::{self, listed, of_hundred, probability};
use maud::{Markup, html};
use protocol::job::Job;
use protocol::method::regression::model::{
    Coefficient, Family, Model, Risk, Ties, risk_of_reference,
};

/// What to do where effects change with time.
const TO_DO: &str =
    "An earlier horizon has less of that; a forest does not assume proportional hazards.";

/// Times by which the risk is given: the study's, else the last.
fn times(job: &Job) -> Vec<f64> {
    match job.cohort.outcome.kind.horizons() {
        [] => vec![job.cohort.outcome.kind.horizon()],
        named => named.to_vec(),
    }
}

/// The risk of an event by each of these times, of a patient whose numbers are means and whose levels are the first, by the baseline that is
/// published; nothing without one.
pub(super) fn risks(job: &Job, model: &Model) -> Vec<(f64, Risk)> {
    let is_level = |one: &Coefficient| is_binary(job, &one.name);
    let known = model.coefficients.iter().filter(|one| !is_level(one));
    let predictor: f64 = known.map(|one| one.value * one.reference).sum();
    let by = |time| Some((time, risk_of_reference(&model.baseline, predictor, time)?));
    times(job).into_iter().filter_map(by).collect()
}

/// The risks, each in a row.
fn risk_table(job: &Job, model: &Model) -> Markup {
    let outcome = &job.cohort.outcome;
    let risks = risks(job, model);
    let by = format!("by ({})", outcome.unit_in_words());
    let has_intervals = risks.iter().any(|(_, risk)| risk.interval.is_some());
    html! {
        @if !risks.is_empty() {
            h2 { "Risk by time" }
            table {
                thead { tr {
                    th scope="col" { (by) } th scope="col" { (outcome.event_label()) }
                    @if has_intervals { th scope="col" { "95 % CI" } }
                } }
                @for (time, risk) in &risks {
                    tr {
                        td data-label=(by) { (words::figure(*time)) } td data-label="risk" { (of_hundred(risk.value)) }
                        @if has_intervals {
                            td data-label="95 % CI" {
                                @match risk.interval {
                                    Some([low, high]) => { (of_hundred(low)) " to " (of_hundred(high)) }
                                    None => "unknown",
                                }
                            }
                        }
                    }
                }
            }
            p.note {
                "Of a patient whose numbers are the means of all patients and whose levels are the first. "
                @if has_intervals {
                    "Intervals hold whatever the hazard does within a cell; they are narrowest at the end of a step of the table below. "
                } @else {
                    "It has no interval: coverage is known of fits that converged, without a ridge and a selection, alone. "
                }
                "Each hospital's predictions.csv has the risk of its own patients."
            }
        }
    }
}

/// The features whose effect changes with time, as people read them.
fn changing(job: &Job, model: &Model) -> Vec<String> {
    let changing = model.changing(SIGNIFICANT).into_iter();
    changing.map(|(feature, _)| label(job, feature)).collect()
}

/// The first sentence goes on where hazards are not proportional.
pub(super) fn lead(job: &Job, model: &Model) -> Markup {
    let changing = changing(job, model);
    html! {
        @if !changing.is_empty() {
            " Hazards are not proportional: the effect of " b { (listed(&changing)) } " changes with time, so one ratio is a mean over the \
             follow-up. " (TO_DO)
        }
    }
}

/// Of a survival time which regression it is, and whether effects change with time.
pub(super) fn chapter(job: &Job, model: &Model) -> Markup {
    let ties = match model.family {
        Family::Linear | Family::Logistic => return Markup::default(),
        Family::Exponential { .. } => return common_baseline(job, model),
        Family::Cox(Ties::Efron) => "Efron's approximation",
        Family::Cox(Ties::Breslow) => "Breslow's approximation",
    };
    html! {
        (proportionality(job, model))
        p.note {
            "This Cox regression is stratified by hospital: each hospital has its own baseline hazard and risk sets, by exact times. "
            "Ties are taken by " (ties) ". Hazard ratios, log-likelihood, AIC and tests are of this model. No baseline hazard leaves a "
            "hospital."
        }
    }
}

/// The baseline hazard that all hospitals have in common.
fn common_baseline(job: &Job, model: &Model) -> Markup {
    let outcome = &job.cohort.outcome;
    let hazards = model.baseline.iter().map(|step| step.hazard);
    let units = units_of(hazards.fold(1.0, f64::min));
    let [from, until] = ["from", "until"].map(|end| format!("{end} ({})", outcome.unit_in_words()));
    let rate = rate_in_words(outcome, units);
    html! {
        (risk_table(job, model))
        (proportionality(job, model))
        @if !model.baseline.is_empty() {
            h2 { "Baseline hazard" }
            table {
                thead { tr { th scope="col" { (from) } th scope="col" { (until) } th scope="col" { (rate) } } }
                @for step in &model.baseline {
                    tr {
                        td data-label=(from) { (words::figure(step.from)) } td data-label=(until) { (words::figure(step.until)) }
                        td data-label=(rate) { (words::figure(units * step.hazard)) }
                    }
                }
            }
            p.note {
                "Of a patient whose number of every feature is 0 and whose level is the first. Cells of time with fewer than 20 events \
                 are shown joined."
            }
        }
        p.note {
            "This regression has one baseline hazard for all hospitals, constant in equal cells of time up to the horizon. It is an \
             approximation of a Cox regression without strata. Hazard ratios, log-likelihood, AIC and tests are of this model; its log-likelihood \
             and AIC do not compare with those of a Cox regression."
        }
    }
}

/// Whether effects change with time.
fn proportionality(job: &Job, model: &Model) -> Markup {
    let changing = changing(job, model);
    html! {
        @if !model.proportionality.is_empty() {
            h2 { "Do effects change with time?" }
            p {
                @if changing.is_empty() {
                    "There is no sign that the effect of any feature changes with time (Holm's correction over the features)."
                } @else {
                    "The effect of " b { (listed(&changing)) } " changes with time (Holm's correction over the features): one ratio for \
                     all of the follow-up is a mean over it. " (TO_DO)
                }
            }
            p.note {
                "Score tests of an effect that changes linearly with time, "
                @match model.family {
                    Family::Exponential { .. } => "from cell to cell.",
                    Family::Linear | Family::Logistic | Family::Cox(_) => "within hospitals.",
                }
            }
            table {
                thead {
                    tr {
                        th scope="col" { "feature" } th scope="col" { "chi-squared" } th scope="col" { "degrees" }
                        th scope="col" { "p" }
                    }
                }
                @for test in &model.proportionality {
                    tr {
                        th scope="row" {
                            @match &test.term {
                                Some(feature) => (label(job, feature)),
                                None => "all together",
                            }
                        }
                        td data-label="chi-squared" { (format!("{:.3}", test.chi_squared)) }
                        td data-label="degrees" { (test.degrees) } td data-label="p" { (probability(test.p)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::method::regression::model::{HazardStep, ProportionalityTest};

    const JOB: &str = "name = 'a'\nmethod = 'regression'\nsites = ['north', 'south', 'east']\n[outcome]\ncolumn = 'days'\n\
        kind = 'survival'\nevent = 'e'\nunit = 'days'\nhorizon = 400\nhorizons = [100, 400]\n\
        [[features]]\nname = 'age'\nlabel = 'Age'\nkind = 'numeric'\n[[features]]\nname = 'treated'\nkind = 'binary'\n\
        positive = 'yes'\nnegative = 'no'\n[regression]\nbaseline = 'common'\n";

    fn model() -> Model {
        let coefficient = |name: &str, value, reference| Coefficient {
            name: name.to_owned(),
            value,
            step: 1.0,
            reference,
            sureness: None,
            weight: None,
        };
        let step = |from, until, hazard, cumulative| HazardStep {
            from,
            until,
            hazard,
            cumulative,
        };
        Model {
            family: Family::Exponential { cells: 2 },
            patients: 600,
            events: 120,
            log_likelihood: -700.5,
            null_log_likelihood: -750.25,
            aic: 1405.0,
            residual_deviation: None,
            coefficients: vec![
                coefficient("age", 0.02, 50.0),
                coefficient("treated", -0.5, 0.4),
            ],
            features: Vec::new(),
            remarks: Vec::new(),
            converged: true,
            steps: 4,
            evaluations: 5,
            evaluations_max: 12,
            proportionality: Vec::new(),
            baseline: vec![
                step(0.0, 200.0, 1e-3, Some([0.4, 0.7])),
                step(200.0, 400.0, 5e-4, Some([0.6, 1.2])),
            ],
            splines: Vec::new(),
            imputed: Vec::new(),
            selection: None,
        }
    }

    fn tests(chances: [f64; 2]) -> Vec<ProportionalityTest> {
        let of = |(term, p): (&str, f64)| ProportionalityTest {
            term: Some(term.to_owned()),
            chi_squared: 4.0,
            degrees: 1,
            p,
        };
        ["age", "treated"]
            .into_iter()
            .zip(chances)
            .map(of)
            .collect()
    }

    /// Two tests: a p of 0.03 is 0.06 by Holm's correction, where the other is no smaller.
    #[test]
    fn the_first_sentence_names_the_features_whose_effect_changes_with_time() {
        let job = Job::parse(JOB).unwrap();
        let mut model = model();
        let said = |model: &Model| lead(&job, model).into_string();
        model.proportionality = tests([0.01, 0.4]);
        assert!(
            said(&model).contains("Hazards are not proportional: the effect of <b>Age</b> changes")
        );
        model.proportionality = tests([0.03, 0.4]);
        assert_eq!(said(&model), "");
        assert!(
            proportionality(&job, &model)
                .into_string()
                .contains("There is no sign")
        );
    }

    /// A log hazard of 0.02 x 50 = 1 more than the baseline's; who is not treated is the reference.
    #[test]
    fn a_risk_is_of_the_mean_of_numbers_and_the_first_level() {
        let job = Job::parse(JOB).unwrap();
        let found = risks(&job, &model());
        let wanted = [100.0 * 1e-3, 200.0 * 1e-3 + 200.0 * 5e-4];
        for ((_, found), hazard) in found.iter().zip(wanted) {
            let wanted = 1.0 - (-hazard * 1.0_f64.exp()).exp();
            assert!((found.value - wanted).abs() < 1e-12, "{found:?} {wanted}");
        }
        // From the beginning of a step to its end, and at its end alone.
        for ((_, found), wanted) in found.iter().zip([[0.0, 0.7], [0.6, 1.2]]) {
            let ends = found.interval.unwrap();
            for (found, hazard) in ends.iter().zip(wanted) {
                assert!((found - (1.0 - f64::exp(-hazard))).abs() < 1e-12);
            }
        }
        assert_eq!(found.len(), 2);
        let without = Model {
            baseline: Vec::new(),
            ..model()
        };
        assert!(risks(&job, &without).is_empty());
    }
}
