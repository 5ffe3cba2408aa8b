//! The card of a study on its way: against Google's protobuf (tests/golden), and what must be refused.

use crate::tests::{ask, left, requests_are_golden, result_is_golden};
use protocol::message::Request;
use protocol::message::card::{self};
use protocol::method::Model;
use protocol::method::card::model::{self, Entry, Group, Moments, OutcomeSummary, Table};
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

fn result(mean: f64) -> RunResult {
    let number = Entry {
        levels: Vec::new(),
        missing: 20,
        moments: Some(Moments {
            mean,
            deviation: 9.5,
        }),
    };
    let levels = Entry {
        levels: vec![Some(10), None, Some(290)],
        missing: 0,
        moments: None,
    };
    let group = Group {
        patients: 303,
        features: vec![number, levels],
    };
    let table = Table {
        groups: vec![group.clone(), group],
        steps: vec![10, 10],
        outcomes: vec![
            OutcomeSummary::Classes,
            OutcomeSummary::Number(Moments {
                mean: -1.5,
                deviation: 2.25,
            }),
            OutcomeSummary::Time(1_250.5),
        ],
        left_out: 10,
    };
    let table = Some(table);
    left(Ending::Completed, Model::Card(model::Model { table }))
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let (places, left_out) = (Arc::new(vec![0, 2, 300]), Arc::new(vec![1, 300]));
    let requests = [
        ("part_card", card::Request::Part),
        (
            "compare_card",
            card::Request::Compare(Arc::clone(&left_out)),
        ),
        ("count_card", card::Request::Count(Arc::clone(&left_out))),
        (
            "histograms_card",
            card::Request::Histograms {
                outcome: 1,
                columns: Arc::clone(&places),
                left_out: Arc::clone(&left_out),
            },
        ),
        ("sum_card", card::Request::Sum { places, left_out }),
    ];
    let requests = requests.map(|(name, request)| (name, ask(Request::Card(request))));
    requests_are_golden(requests.into());
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("card", &result(54.5));
    let nothing = Model::Card(model::Model { table: None });
    result_is_golden("card_without", &left(Ending::Completed, nothing));
}

#[test]
fn what_nobody_can_have_left_is_refused_with_what_was_wrong() {
    let refused = |result: &RunResult| {
        let left = crate::decode_result(&crate::encode_result(result));
        left.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(refused(&result(54.5)), "");
    assert!(refused(&result(f64::NAN)).contains("a mean"));
    let mut many = result(54.5);
    if let Some(Model::Card(model::Model { table: Some(table) })) = &mut many.model {
        table.outcomes = vec![OutcomeSummary::Classes; 21];
    }
    assert!(refused(&many).contains("outcomes"));
}
