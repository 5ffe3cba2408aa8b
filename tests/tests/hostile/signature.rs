//! A coordinator that asks in an operator's name: it holds a coordinator's certificate, speaks the protocol to a
//! real agent, and says that somebody whom the site allows has asked for its job.

use kindred_tests::deployment::{Deployment, SITES, issue, site_config};
use kindred_tests::samples::DEMO_JOB as JOB;
use protocol::message::{Answer, Ask, Begin, Closed, Request, ToCoordinator, ToSite, Warrant};
use protocol::name::{OperatorName, RunId};
use protocol::run::Record;
use protocol::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use wire::certificates::{Role, Validity};
use wire::{Incoming, ServerTls, Signer};

/// What the real agent of north answers to `begin` and the first question, put by a coordinator of the test.
fn answer(deployment: &Deployment, begin: Begin) -> Answer {
    let tls = ServerTls::load(&deployment.credentials("coordinator-centre")).unwrap();
    let port = deployment.port();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async move {
        let listener = wire::listen(([127, 0, 0, 1], port).into()).unwrap();
        let (callers, mut incoming) = mpsc::channel(4);
        tokio::spawn(wire::serve(listener, tls, callers, std::future::pending()));
        let conversation = async {
            loop {
                let Some(Incoming::Site {
                    sender,
                    mut receiver,
                    ..
                }) = incoming.recv().await
                else {
                    panic!("nobody came");
                };
                let run = begin.run.clone();
                sender.send(ToSite::Begin(begin.clone())).unwrap();
                // All have joined.
                let sites = SITES.len();
                let record = Record {
                    at: Timestamp(1),
                    exchange: 0,
                    answers: vec![None; sites],
                    signatures: vec![Vec::new(); sites],
                };
                let closed = Closed {
                    run: run.clone(),
                    record,
                    total: None,
                };
                sender.send(ToSite::Closed(Arc::new(closed))).unwrap();
                let ask = Ask {
                    run,
                    exchange: 1,
                    request: Request::Introduce,
                };
                sender.send(ToSite::Ask(ask)).unwrap();
                if let Ok(Some(ToCoordinator::Reply(reply))) = receiver.next().await {
                    return reply.answer;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), conversation)
            .await
            .expect("an answer")
    })
}

fn begin(operator: &str, job: &str, warrant: Warrant) -> Begin {
    let operator = OperatorName::new(operator).unwrap();
    Begin {
        run: wire::run_id(&operator, &warrant.token).unwrap(),
        job: job.to_owned(),
        seed: 1,
        warrant,
        opening: None,
    }
}

#[test]
fn a_coordinator_cannot_ask_in_the_name_of_an_operator_who_has_not_signed() {
    let mut deployment = Deployment::prepare();
    let sign = |party: &str| {
        let signer = Signer::load(&deployment.credentials(party)).unwrap();
        signer.sign(JOB, 1, "monday").unwrap()
    };
    let signed = sign("operator-researcher");
    let own = sign("coordinator-centre");
    deployment.start_agent("north");

    let honest = answer(&deployment, begin("researcher", JOB, signed.clone()));
    assert!(matches!(honest, Answer::Introduced(_)), "{honest:?}");

    // An authority of the coordinator's own that calls somebody the same name.
    let elsewhere = deployment.home.join("elsewhere");
    wire::certificates::init(&elsewhere, Validity::days(1)).unwrap();
    let files =
        wire::certificates::issue(&elsewhere, &Role::Operator, "researcher", Validity::days(1))
            .unwrap();
    let foreign = Signer::load(&files).unwrap().sign(JOB, 1, "monday");
    let other_job = JOB.replace("rank = ", "rank = 1");
    assert_ne!(other_job, JOB);
    let mut another_run = begin("researcher", JOB, signed.clone());
    another_run.run = RunId::new("0123456789ab").unwrap();
    let lies = [
        begin("researcher", JOB, Warrant::default()),
        begin("researcher", JOB, own),
        begin("researcher", JOB, foreign.unwrap()),
        begin("researcher", &other_job, signed),
        another_run,
    ];
    for lie in lies {
        match answer(&deployment, lie) {
            Answer::Refused(refusal) => assert_eq!(refusal.rule, "operators", "{}", refusal.text),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_operator_whose_certificate_is_revoked_asks_for_nothing_more_at_a_site_that_has_the_list() {
    let mut deployment = Deployment::prepare();
    // A list of somebody else's certificate first, so that there is one.
    issue(&deployment.home, &["issue", "--operator", "former"]);
    issue(&deployment.home, &["revoke", "--operator", "former"]);
    let list = "revoked = \"certificates/authority/revoked.pem\"\n\n[source]";
    let config = site_config("north", deployment.port(), "site-north").replace("[source]", list);
    deployment.home.write("north.toml", &config);
    deployment.start_agent("north");
    let signer = Signer::load(&deployment.credentials("operator-researcher")).unwrap();
    let ask = |token: &str| {
        let signed = signer.sign(JOB, 1, token).unwrap();
        answer(&deployment, begin("researcher", JOB, signed))
    };
    let before = ask("monday");
    assert!(matches!(before, Answer::Introduced(_)), "{before:?}");
    issue(&deployment.home, &["revoke", "--operator", "researcher"]);
    match ask("tuesday") {
        Answer::Refused(refusal) => assert_eq!(refusal.rule, "operators", "{}", refusal.text),
        other => panic!("{other:?}"),
    }
}
