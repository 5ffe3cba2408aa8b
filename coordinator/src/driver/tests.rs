//! The driver takes up whatever the store holds.

use super::*;
use crate::store::Submission;
use protocol::job::Job;
use protocol::message::{Answer, Warrant};
use protocol::name::OperatorName;
use protocol::opening::Opening;
use protocol::run::Record;
use protocol::study::{Study, nobody, of_job, pinned};
use protocol::time::Timestamp;
use tokio::sync::oneshot;
use wire::OperatorCall;

const JOB: &str = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n[outcome]\ncolumn = \"y\"\n\
    kind = \"binary\"\npositive = [\"1\"]\n[[features]]\nname = \"x\"\nkind = \"numeric\"\n[unpsl]\n";

/// The study of the job, and the job as one of it.
fn parted() -> (Study, Job) {
    let (own, draft) = of_job(&Job::parse(JOB).unwrap(), "a", &[]).unwrap();
    let text = pinned(&draft, |party| Some(nobody(party))).unwrap();
    let study = Study::parse(&text).unwrap();
    let job = Job::parse(&study.join(&own)).unwrap();
    (study, job)
}

fn submission(run: &str, at: u64) -> Submission {
    Submission {
        run: RunId::new(run).unwrap(),
        operator: OperatorName::new("a").unwrap(),
        job: parted().1,
        seed: 1,
        warrant: Warrant::default(),
        submitted: Timestamp(at),
        began: None,
    }
}

async fn list(calls: &mpsc::Sender<Incoming>) -> Vec<Progress> {
    let (reply, answer) = oneshot::channel();
    let caller = Incoming::Operator {
        operator: OperatorName::new("a").unwrap(),
        call: OperatorCall::List { reply },
    };
    calls.send(caller).await.unwrap();
    answer.await.unwrap().unwrap()
}

#[tokio::test]
async fn runs_that_cannot_be_gone_on_with_fail_with_a_reason_and_the_next_begins() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let mut store = Store::open(&path).unwrap();
    let study = parted().0;
    let card = RunId::new("card").unwrap();
    store.propose(&study, &card, Timestamp(0)).unwrap();
    let opening = Opening {
        run: card,
        digest: "0".repeat(64),
        introductions: Vec::new(),
        encapsulations: Vec::new(),
        left_out: Vec::new(),
        counts: Vec::new(),
    };
    store.open_study(&study.name, &opening).unwrap();
    for (number, run) in ["job", "answer", "exchange", "good"].iter().enumerate() {
        store.submit(&submission(run, number as u64)).unwrap();
    }
    // One whose answer is no answer, and one whose exchange 5 came first.
    for (run, exchange) in [("answer", 0), ("exchange", 5)] {
        let run = RunId::new(run).unwrap();
        store.begin(&run, Timestamp(9)).unwrap();
        let record = Record {
            signatures: vec![Vec::new(); 1],
            at: Timestamp(10),
            exchange,
            answers: vec![Some(Answer::Correlated)],
        };
        store.keep(&run, &record).unwrap();
    }
    drop(store);
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch(
            "UPDATE runs SET job = 'rank = 3' WHERE id = 'job';
             UPDATE answers SET answer = x'00ff' WHERE run = 'answer'",
        )
        .unwrap();
    drop(other);
    let store = Store::open(&path).unwrap();
    let (calls, incoming) = mpsc::channel(4);
    wire::certificates::init(home.path(), wire::certificates::Validity::days(1)).unwrap();
    let warrants = Warrants::load(&home.path().join("authority/certificate.pem")).unwrap();
    let keeping = Keeping {
        store,
        audit: Audit::none(),
        retain: None,
        administrators: BTreeSet::new(),
    };
    let driving = tokio::spawn(drive(
        keeping,
        warrants,
        incoming.into(),
        Seen::default(),
        std::future::pending(),
    ));
    let ended = |run: &Progress| run.ending.is_some();
    let mut listed = list(&calls).await;
    for _ in 0..500 {
        if listed.iter().filter(|run| ended(run)).count() == 3 && listed[0].phase != "queued" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        listed = list(&calls).await;
    }
    let told = |run: &Progress| match &run.ending {
        Some(Ending::Failed(failure)) => failure.code.to_string(),
        other => format!("{} {other:?}", run.phase),
    };
    let told: Vec<String> = listed.iter().map(told).collect();
    let wanted = [
        "waiting for sites None",
        "KDR-STORE",
        "KDR-STORE",
        "KDR-JOB",
    ];
    assert_eq!(told, wanted);
    drop(calls);
    driving.await.unwrap().unwrap();
}
