//! What an operator sees of a run: against Google's protobuf (tests/golden), and what must be refused.

use crate::encoding::{decode_progress, decode_result, encode_progress};
use crate::message::tests::assessments;
use crate::tests::{golden, result_is_golden, run};
use protocol::cohort::MissingShare;
use protocol::failure::{Code, Failure};
use protocol::name::OperatorName;
use protocol::progress::{Course, Ending, Progress, Times};
use protocol::result::{MessageTotal, PooledFigures, RunResult, SiteResult};
use protocol::time::Timestamp;

fn times() -> Times {
    Times {
        submitted: Some(Timestamp(1_700_000_000_000)),
        began: Some(Timestamp(1_700_000_000_250)),
        ended: Some(Timestamp(1_700_000_001_750)),
    }
}

#[test]
fn progress_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let progress = Progress {
        run: run(),
        job: "heart-disease".to_owned(),
        method: "unpsl".to_owned(),
        operator: None,
        times: Times {
            ended: None,
            ..times()
        },
        ahead: Some(2),
        phase: "rounds".to_owned(),
        course: Course {
            round: 4,
            round_limit: 100,
            objective: Some(0.5),
            left: Some(0.125),
            primal_residual: Some(0.25),
            dual_residual: None,
        },
        sites_connected: 2,
        sites: 3,
        waiting_for: vec!["west".to_owned()],
        away: vec!["west".to_owned()],
        waiting_since: Some(Timestamp(1_700_000_000_000)),
        notes: 2,
        ending: Some(Ending::Failed(Failure::new(
            Code::Sites,
            "too few sites: wanted 3",
        ))),
    };
    assert_eq!(encode_progress(&progress), golden("progress")[0]);
    assert_eq!(decode_progress(&golden("progress")[0]).unwrap(), progress);
}

fn site(name: &str) -> SiteResult {
    SiteResult {
        name: name.to_owned(),
        bytes_sent: 1000,
        bytes_received: 2000,
        messages: vec![MessageTotal {
            kind: "moments".to_owned(),
            count: 1,
            bytes: 700,
        }],
    }
}

/// A run that ended before its method began, but for what the sites said.
fn result() -> RunResult {
    let [_, judged] = assessments();
    RunResult {
        pooled: PooledFigures {
            patients: 1_200,
            classes: vec![700, 500],
            missing: vec![MissingShare {
                feature: "chol".to_owned(),
                share: 0.25,
            }],
            heard: "06".to_owned(),
            totals: 2,
            assessment: Some(judged),
        },
        run: run(),
        job: "name".to_owned(),
        seed: 1,
        version: "0.1.0".to_owned(),
        operator: Some(OperatorName::new("lab").unwrap()),
        ending: Ending::Cancelled,
        times: times(),
        seconds: 1.5,
        sites: ["north", "east", "south", "west"].map(site).to_vec(),
        model: None,
        notes: vec!["south came late".to_owned()],
    }
}

#[test]
fn what_any_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("result", &result());
}

#[test]
fn a_result_that_is_none_is_refused_with_what_was_wrong() {
    let refused = |change: fn(&mut RunResult), wanted: &str| {
        let mut changed = result();
        change(&mut changed);
        let record = crate::encode_result(&changed);
        let error = decode_result(&record).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}, wanted {wanted}");
    };
    refused(|result| result.seconds = f64::NAN, "the duration");
    refused(|result| result.notes = vec![String::new(); 1_001], "notes");
    refused(
        |result| result.sites = vec![result.sites[1].clone(); 257],
        "sites",
    );
    refused(
        |result| result.sites[1].messages[0].bytes = u64::MAX,
        "bytes of a site's messages",
    );
    refused(
        |result| {
            let assessment = result.pooled.assessment.as_mut().unwrap();
            assessment.evaluation[0].scores = Some(vec![vec![0; 101]; 2]);
        },
        "bins of a score",
    );
    refused(
        |result| result.pooled.patients = u64::MAX,
        "patients of all sites",
    );
    refused(|result| result.pooled.classes = vec![1; 101], "classes");
    refused(
        |result| result.pooled.missing[0].share = f64::NAN,
        "the missing share",
    );
}

#[test]
fn an_importance_that_does_not_come_is_refused() {
    let frames = golden("result");
    let others = frames.iter().enumerate().filter(|(place, _)| *place != 1);
    let record: Vec<u8> = others
        .flat_map(|(_, frame)| {
            let mut framed = Vec::new();
            prost::encode_length_delimiter(frame.len(), &mut framed).unwrap();
            framed.extend_from_slice(frame);
            framed
        })
        .collect();
    assert!(decode_result(&record).is_err());
}
