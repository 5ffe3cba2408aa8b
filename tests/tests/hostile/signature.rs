//! A coordinator that asks in an operator's name: it holds a coordinator's certificate, speaks the protocol to a
//! real agent, and says that somebody whom the site allows has asked for its job.

use kindred_tests::deployment::{Deployment, SITES, issue, site_config};
use kindred_tests::programs::{coordinator, site_agent};
use kindred_tests::samples::DEMO_JOB;
use kindred_tests::studies::{STUDY, of_study};
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

/// The job that opens a study, which north has approved.
fn card(deployment: &Deployment) -> String {
    let home = &deployment.home;
    home.write("draft.toml", &of_study(DEMO_JOB).draft);
    let folder = ["--certificates", "certificates", "--out", "study.toml"];
    let draft = [&["study", "draft", "draft.toml"][..], &folder].concat();
    home.run(&coordinator(), &draft).must_succeed();
    let approve = ["study", "approve", "--config", "north.toml", "study.toml"];
    home.run(&site_agent(), &approve).must_succeed();
    wire::jobs::study(&home.join("study.toml")).unwrap().card()
}

#[test]
fn a_coordinator_cannot_ask_in_the_name_of_an_operator_who_has_not_signed() {
    let mut deployment = Deployment::prepare();
    let job = card(&deployment);
    let job = job.as_str();
    let sign = |party: &str| {
        let signer = Signer::load(&deployment.credentials(party)).unwrap();
        signer.sign(job, 1, "monday").unwrap()
    };
    let signed = sign("operator-researcher");
    let own = sign("coordinator-centre");
    deployment.start_agent("north");

    let honest = answer(&deployment, begin("researcher", job, signed.clone()));
    assert!(matches!(honest, Answer::Introduced(_)), "{honest:?}");

    // An authority of the coordinator's own that calls somebody the same name.
    let elsewhere = deployment.home.join("elsewhere");
    wire::certificates::init(&elsewhere, Validity::days(1)).unwrap();
    let files =
        wire::certificates::issue(&elsewhere, &Role::Operator, "researcher", Validity::days(1))
            .unwrap();
    let foreign = Signer::load(&files).unwrap().sign(job, 1, "monday");
    let named = |name: &str| format!("name = {name:?}\nstudy");
    let other_job = job.replacen(&named(STUDY), &named("other"), 1);
    assert_ne!(other_job, job);
    let mut another_run = begin("researcher", job, signed.clone());
    another_run.run = RunId::new("0123456789ab").unwrap();
    let lies = [
        begin("researcher", job, Warrant::default()),
        begin("researcher", job, own),
        begin("researcher", job, foreign.unwrap()),
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
    let job = card(&deployment);
    deployment.start_agent("north");
    let signer = Signer::load(&deployment.credentials("operator-researcher")).unwrap();
    let ask = |token: &str| {
        let signed = signer.sign(&job, 1, token).unwrap();
        answer(&deployment, begin("researcher", &job, signed))
    };
    let before = ask("monday");
    assert!(matches!(before, Answer::Introduced(_)), "{before:?}");
    issue(&deployment.home, &["revoke", "--operator", "researcher"]);
    match ask("tuesday") {
        Answer::Refused(refusal) => assert_eq!(refusal.rule, "operators", "{}", refusal.text),
        other => panic!("{other:?}"),
    }
}
