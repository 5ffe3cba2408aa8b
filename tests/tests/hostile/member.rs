//! A member that lies or is silent: it speaks the protocol to a real coordinator. It has a site's certificate, and no key that the
//! certificate has signed for, so that it can lie about what it says first, or say nothing. What a member with keys of its own
//! may say is in `masks.rs`.

use kindred_tests::deployment::Deployment;
use kindred_tests::exit::{GOING, RUN};
use kindred_tests::programs::{Home, PATIENCE, Ran, coordinator, until};
use kindred_tests::samples::DEMO_JOB;
use kindred_tests::studies::{OfStudy, STUDY, of_study};
use privacy::{Notice, Released};
use protocol::message::{Answer, Introduction, Reply, Request, ToCoordinator, ToSite};
use std::time::Duration;
use tokio::runtime::Runtime;
use wire::Dial;

/// Between two attempts to attend.
const DIAL_EVERY: Duration = Duration::from_millis(50);

/// What a member says to a question; none is silence.
pub(crate) type Lie = fn(&Request) -> Option<Answer>;

/// A member of a federation that is no program of ours: it attends with a site's certificate and says what it is told to. It
/// leaves when it is dropped.
pub(crate) struct Member {
    _runtime: Runtime,
}

/// Whatever it says counts as cleared: a liar has no rules.
struct Uncleared(Answer);

impl Notice<Answer> for Uncleared {
    fn into_message(self) -> Answer {
        self.0
    }
}

impl Member {
    /// Attends as `site` at the port of a deployment, again and again.
    pub(crate) fn attend(deployment: &Deployment, site: &str, lie: Lie) -> Self {
        let dial = deployment.dial(&format!("site-{site}"));
        let runtime = Runtime::new().unwrap();
        runtime.spawn(async move {
            loop {
                converse(&dial, lie).await;
                tokio::time::sleep(DIAL_EVERY).await;
            }
        });
        Self { _runtime: runtime }
    }
}

/// Answers what is asked until the stream ends.
async fn converse(dial: &Dial, lie: Lie) {
    let Ok((sender, mut receiver)) = wire::attend(dial, "1.0.0").await else {
        return;
    };
    while let Ok(message) = receiver.next().await {
        let ToSite::Ask(ask) = message else { continue };
        let Some(answer) = lie(&ask.request) else {
            continue;
        };
        let reply = ToCoordinator::Reply(Reply {
            signature: Vec::new(),
            run: ask.run,
            exchange: ask.exchange,
            journal: None,
            answer: wire::seal(Released::notice(Uncleared(answer))),
        });
        if sender.send(reply).await.is_err() {
            return;
        }
    }
}

/// A job for members of this file, about patients of the demonstration.
pub(crate) fn job(unpsl: &str) -> String {
    format!(
        "name = \"attacked\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\", \"west\"]\n\
         [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"positive\"]\nnegative = [\"negative\"]\n\
         [[features]]\nname = \"first_1\"\nkind = \"numeric\"\n[[features]]\nname = \"first_2\"\nkind = \"numeric\"\n\
         range = [-1000, 1000]\nstandardise = \"robust\"\n\
         [unpsl]\nrank = 1\nlambda_sparsity = 0.001\nround_limit = 10\ntolerance_relative = 1e-12\n\
         tolerance_absolute = 1e-14\n{unpsl}\n"
    )
}

/// Three members say nothing, the last site lies.
fn members(deployment: &Deployment, lie: Lie) -> Vec<Member> {
    let attend = |site: &str| match site {
        "west" => Member::attend(deployment, site, lie),
        site => Member::attend(deployment, site, |_| None),
    };
    ["north", "south", "east", "west"].map(attend).into()
}

/// An operator submits a job of a study that all have opened, and waits.
fn attack(lie: Lie) -> (Deployment, Ran) {
    let deployment = Deployment::deserted(&job(""));
    let _members = members(&deployment, lie);
    let of_study = deployment.of_study(&job(""));
    deployment.home.write("attacked.toml", &of_study);
    let ran = deployment.job(&["submit", "attacked.toml", "--wait", "--out", "out"]);
    println!("{:?}: {}{}", ran.code, ran.stdout, ran.stderr);
    (deployment, ran)
}

/// All have approved a study, which opens by a run to which the last site lies.
fn attack_at_opening(lie: Lie) -> (Deployment, Ran) {
    let mut deployment = Deployment::start();
    deployment.kill_agent("north");
    let OfStudy { draft, .. } = of_study(&job(""));
    deployment.propose(STUDY, &draft);
    let show = ["study", "show", STUDY, "--config", "operator.toml"];
    until("all others to approve", PATIENCE, || {
        let shown = deployment.home.run(&coordinator(), &show).must_succeed();
        let wanted = "waiting for the approval of north\n";
        shown.stdout.contains(wanted).then_some(())
    });
    deployment.kill_agent("west");
    let _member = Member::attend(&deployment, "west", lie);
    deployment.start_agent("north");
    let card = ["study", "card", STUDY, "--config", "operator.toml"];
    let card = [&card[..], &["--out", "out"]].concat();
    let ran = until("the card", PATIENCE, || {
        let ran = deployment.home.run(&coordinator(), &card);
        (ran.code != Some(GOING)).then_some(ran)
    });
    println!("{:?}: {}{}", ran.code, ran.stdout, ran.stderr);
    (deployment, ran)
}

/// The coordinator answers, also after it was started again.
#[track_caller]
fn must_live(deployment: &mut Deployment) {
    deployment.job(&["list"]).must_succeed();
    deployment.kill_coordinator();
    deployment.start_coordinator();
    deployment.job(&["list"]).must_succeed();
}

fn keys(agreement: usize) -> Answer {
    Answer::Introduced(Introduction {
        agreement: vec![7; agreement],
        encapsulation: vec![7; 1_184],
        signing: vec![7; 32],
        patients_at_most: 20,
        chain: vec![vec![7; 300]],
        scheme: 0x0403,
        signature: vec![7; 64],
    })
}

#[test]
fn a_member_that_answers_another_question_or_by_no_keys_of_its_own_ends_the_run_by_name() {
    type Attack = fn(Lie) -> (Deployment, Ran);
    let lies: [(Attack, Lie, &str); 4] = [
        (attack, |_| Some(Answer::Correlated), "is not signed"),
        (
            attack_at_opening,
            |_| Some(Answer::Correlated),
            "introduction",
        ),
        (attack_at_opening, |_| Some(keys(31)), "not vouched for"),
        (attack_at_opening, |_| Some(keys(32)), "not vouched for"),
    ];
    for (attack, lie, said) in lies {
        let (mut deployment, attacked) = attack(lie);
        must_live(&mut deployment);
        attacked.must_fail(6, &["west: ", said]);
    }
}

#[test]
fn a_member_that_pings_and_never_answers_is_waited_for_by_name_until_somebody_cancels() {
    let mut deployment = Deployment::deserted(&job(""));
    let _members = members(&deployment, |_| None);
    let run = deployment.submit(&job(""), &[]);
    let mut watch = deployment.watch(&run);
    let waits = watch.until("the silence is named", |run| {
        run.waiting_for.len() == 4 && run.away.is_empty()
    });
    assert!(waits.ending.is_none(), "{waits:?}");
    must_live(&mut deployment);
    deployment.job(&["cancel", run.as_str()]).must_succeed();
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert!(listed.contains("cancelled"), "{listed}");
}

/// A hospital that makes up patients makes a sum of many of a sum of few. As many coefficients as these allow would tell those few.
#[test]
fn patients_that_one_hospital_may_have_made_up_lift_no_number_of_coefficients() {
    let (head, _) = DEMO_JOB.split_once("[unpsl]").unwrap();
    let head = head.replace("method = \"unpsl\"", "method = \"regression\"");
    for (patients, is_enough) in [
        ("north=115,south=115,east=115,west=115", true),
        ("north=20,south=20,east=20,west=400", false),
    ] {
        let home = Home::with_patients(patients);
        home.write("job.toml", &format!("{head}[regression]\nridge = 5\n"));
        home.write("policy.toml", "class_patients_min = 1\n");
        let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
        let policy = ["--policy", "policy.toml"];
        let ran = home.run(&coordinator(), &[&arguments[..], &policy].concat());
        match is_enough {
            true => ran.must_succeed(),
            false => ran.must_fail(
                RUN,
                &["coefficients and 4", "without those of the largest site"],
            ),
        };
    }
}
