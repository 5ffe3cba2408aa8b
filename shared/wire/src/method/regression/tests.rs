//! Regressions on their way: against Google's protobuf (tests/golden), and what must be refused.

use crate::generated as pb;
use crate::tests::{ask, left, requests_are_golden, result_is_golden};
use ndarray::array;
use prost::Message;
use protocol::cohort::Value;
use protocol::message::Request;
use protocol::message::regression::{self};
use protocol::method::Model;
use protocol::method::regression::model::{
    self, Coefficient, Criterion, Family, FeatureTest, HazardStep, ProportionalityTest, Removed,
    Selection, Spline, Stopped, Sureness, Ties,
};
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

fn point() -> regression::Evaluating {
    regression::Evaluating {
        design: Arc::new(regression::Design {
            cells: Vec::new(),
            rows: vec![0, 2],
            fold: None,
        }),
        at: Arc::new(vec![0.5, -0.25]),
    }
}

/// The same with the cells of a common baseline.
fn point_of_cells() -> regression::Evaluating {
    regression::Evaluating {
        design: Arc::new(regression::Design {
            cells: vec![0, 3],
            ..(*point().design).clone()
        }),
        at: Arc::new(vec![-7.5, -8.0, 0.5, -0.25]),
    }
}

fn step() -> HazardStep {
    HazardStep {
        from: 0.0,
        until: 500.0,
        hazard: 0.0625,
        cumulative: Some([0.25, 0.75]),
    }
}

fn finishing() -> regression::Finishing {
    regression::Finishing {
        point: point(),
        weights: None,
        common: None,
    }
}

fn weighing() -> regression::Finishing {
    regression::Finishing {
        weights: Some(Arc::new(vec![0.375, -0.125])),
        common: Some(Arc::new(regression::CommonBaseline {
            steps: vec![step()],
            coefficients: vec![0.5, -0.25],
            references: vec![53.5, 0.0],
            covariance: array![[0.5, 0.25], [0.25, 0.75]],
            sureness: vec![regression::Sureness {
                bounds: [0.375, 0.5],
                variance: 0.125,
                with: vec![0.0, -0.5],
            }],
        })),
        ..finishing()
    }
}

fn model() -> model::Model {
    model::Model {
        family: Family::Cox(Ties::Efron),
        patients: 600,
        events: 120,
        log_likelihood: -700.5,
        null_log_likelihood: -750.25,
        aic: 1405.0,
        residual_deviation: None,
        coefficients: vec![
            Coefficient {
                name: "age".to_owned(),
                value: 0.5,
                weight: Some(0.375),
                step: 9.0,
                reference: 53.5,
                sureness: Some(Sureness {
                    standard_error: 0.25,
                    low: 0.125,
                    high: 0.875,
                    p: 0.0625,
                }),
            },
            Coefficient {
                name: "fbs=1".to_owned(),
                value: 0.0,
                weight: None,
                step: 1.0,
                reference: 0.0,
                sureness: None,
            },
        ],
        features: vec![FeatureTest {
            feature: "age".to_owned(),
            chi_squared: 4.0,
            degrees: 1,
            p: 0.0625,
        }],
        remarks: vec!["fbs=1 is constant".to_owned()],
        converged: true,
        steps: 4,
        evaluations: 5,
        evaluations_max: 14,
        proportionality: vec![ProportionalityTest {
            term: None,
            chi_squared: 1.5,
            degrees: 1,
            p: 0.25,
        }],
        splines: vec![Spline {
            feature: "age".to_owned(),
            knots: vec![40.0, 55.0, 70.5],
        }],
        imputed: vec![Value::Number(54.5), Value::Level(2)],
        selection: Some(Selection {
            criterion: Criterion::Wald { p: 0.0625 },
            removed: vec![Removed {
                feature: "cp".to_owned(),
                degrees: 3,
                value: 0.75,
            }],
            fits: 2,
            stopped: Some(Stopped::Evaluations),
        }),
        baseline: Vec::new(),
    }
}

fn model_of_cells() -> model::Model {
    model::Model {
        family: Family::Exponential { cells: 2 },
        baseline: vec![step()],
        ..model()
    }
}

fn result(model: model::Model) -> RunResult {
    left(Ending::Completed, Model::Regression(model))
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let requests = [
        ("evaluate", regression::Request::Evaluate(point())),
        (
            "evaluate_cells",
            regression::Request::Evaluate(point_of_cells()),
        ),
        ("test", regression::Request::Test(point())),
        (
            "finish_regression",
            regression::Request::Finish(finishing()),
        ),
        ("finish_weighing", regression::Request::Finish(weighing())),
    ];
    let requests = requests.map(|(name, request)| (name, ask(Request::Regression(request))));
    requests_are_golden(requests.into());
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("regression", &result(model()));
    result_is_golden("regression_common", &result(model_of_cells()));
}

#[test]
fn what_no_regression_says_is_refused_with_what_was_wrong() {
    let of = |change: fn(&mut pb::RegressionPoint)| {
        let mut asked = pb::RegressionPoint {
            rows: vec![0, 2],
            at: vec![0.5, -0.25],
            fold: None,
            cells: Vec::new(),
            weights: Vec::new(),
            common: None,
        };
        change(&mut asked);
        let request = pb::RegressionRequest {
            request: Some(pb::regression_request::Request::Evaluate(asked)),
        };
        let ask = pb::Ask {
            run: "run".to_owned(),
            exchange: 3,
            request: Some(pb::ask::Request::Regression(request)),
        };
        let frame = pb::ToSiteFrame {
            frame: Some(pb::to_site_frame::Frame::Message(pb::ToSite {
                message: Some(pb::to_site::Message::Ask(ask)),
            })),
        };
        let decoded = crate::decode_to_site(&[frame.encode_to_vec().into()]);
        decoded
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(of(|_| ()), "");
    assert!(of(|asked| asked.at[0] = f64::NAN).contains("NaN"));
    assert!(of(|asked| asked.rows = vec![1; 2_001]).contains("rows"));
    assert!(of(|asked| asked.cells = vec![1; 17]).contains("cells"));
    assert!(of(|asked| asked.weights = vec![1.0]).contains("weights"));
    let spoilt = |change: fn(&mut model::Model)| {
        let mut model = model();
        change(&mut model);
        let left = crate::decode_result(&crate::encode_result(&result(model)));
        left.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(spoilt(|_| ()), "");
    let steps = |model: &mut model::Model| {
        *model = model_of_cells();
        model.baseline[0].hazard = f64::NAN;
    };
    assert!(spoilt(steps).contains("hazard"));
    assert!(spoilt(|model| model.aic = f64::NAN).contains("Akaike"));
    assert!(spoilt(|model| model.coefficients[0].value = f64::INFINITY).contains("coefficient"));
}
