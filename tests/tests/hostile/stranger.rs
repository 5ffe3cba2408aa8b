//! A stranger at the port, a network that breaks, and a second holder of a certificate.
//!
//! Attacks are functions that take an address or credentials, go on for a bounded time, and reach no other machine.

use super::raw::{ATTEND, CHUNK_BYTES, Raw, chunk, contribution, hello};
use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::programs::{PATIENCE, coordinator, site_agent, until};
use kindred_tests::results::result;
use kindred_tests::samples::{DEMO_JOB, demo_job};
use ndarray::Array2;
use protocol::failure::{Code, Failure};
use protocol::message::unpsl::{self, Finishing, Form};
use protocol::message::{Ask, Begin, Request, ToSite, Warrant};
use protocol::name::RunId;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use wire::{CredentialFiles, Dial, Incoming, OperatorCall, ServerTls, SiteSender};

/// What happens to a caller's handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Breakage {
    /// The line is closed in good order.
    Closed,
    /// The line is reset.
    Reset,
    /// A proxy answers in HTTP.
    Http,
    /// Bytes that are no TLS.
    Garbage,
}

pub(crate) const BREAKAGES: [Breakage; 4] = [
    Breakage::Closed,
    Breakage::Reset,
    Breakage::Http,
    Breakage::Garbage,
];

/// Stands where the coordinator was, and breaks one handshake in each way.
pub(crate) fn break_handshakes(address: SocketAddr) -> JoinHandle<()> {
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for breakage in BREAKAGES {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            match breakage {
                // What was not read is why the system resets the line.
                Breakage::Reset => {
                    stream.peek(&mut head).unwrap();
                }
                Breakage::Closed => drop(stream.read(&mut head)),
                Breakage::Http => {
                    let _ = stream.read(&mut head);
                    let _ =
                        stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\nno coordinator here\n");
                }
                Breakage::Garbage => {
                    let _ = stream.read(&mut head);
                    let _ = stream.write_all(&[0x16; 4096]);
                }
            }
        }
    })
}

/// Connections that never say a word.
pub(crate) fn idle_connections(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count)
        .map_while(|_| TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok())
        .collect()
}

/// One certificate opens `count` streams on one connection, each with a hello; gives how many the server refused.
pub(crate) async fn many_streams(
    address: SocketAddr,
    files: &CredentialFiles,
    count: usize,
) -> (Raw, usize) {
    let mut raw = Raw::connect(address, files).await.unwrap();
    let mut opened = 0;
    for _ in 0..count {
        let Ok(stream) = raw.open(ATTEND).await else {
            break;
        };
        if raw.send(stream, &hello("0.1.0")).await.is_ok() {
            opened += 1;
        }
    }
    (raw, opened)
}

/// One certificate sends the `bytes` of an answer to a run that nobody knows; gives how many were taken.
pub(crate) async fn reply_to_no_run(
    address: SocketAddr,
    files: &CredentialFiles,
    bytes: usize,
) -> (Raw, usize) {
    let mut raw = Raw::connect(address, files).await.unwrap();
    let stream = raw.open(ATTEND).await.unwrap();
    let mut taken = 0;
    let rows = u32::try_from(bytes / (2 * 8 * 1024)).unwrap();
    let chunks = u32::try_from(bytes / (2 * CHUNK_BYTES)).unwrap();
    let _ = raw.send(stream, &hello("0.1.0")).await;
    let _ = raw
        .send(stream, &contribution("no-such-run", 1, rows))
        .await;
    for matrix in 0..2 {
        for number in 0..chunks {
            // The last one is kept back: a message that is never whole.
            let is_last = (matrix, number) == (1, chunks - 1);
            let values = u32::try_from(CHUNK_BYTES / 8).unwrap();
            let part = chunk(matrix, number * values);
            if is_last || raw.send(stream, &part).await.is_err() {
                return (raw, taken);
            }
            taken += CHUNK_BYTES;
        }
    }
    (raw, taken)
}

/// What a hospital does that keeps no rule.
#[derive(Debug, Clone, Copy)]
enum Misdeed {
    /// Greets as often as it is let.
    Flood,
    /// Says what is no message.
    Babble,
    /// Greets, and reads nothing.
    Deafness,
}

/// Messages of a flood: a hundred times what the coordinator lets pass.
const FLOOD: usize = 100_000;

impl Misdeed {
    const ALL: [Self; 3] = [Self::Flood, Self::Babble, Self::Deafness];

    /// Does it with the certificate of `files`; gives how many messages were taken.
    async fn commit(self, address: SocketAddr, files: &CredentialFiles) -> (Raw, usize) {
        let mut raw = Raw::connect(address, files).await.unwrap();
        let stream = raw.open(ATTEND).await.unwrap();
        raw.send(stream, &hello("0.2.0")).await.unwrap();
        let message = match self {
            Self::Flood => hello("0.2.0"),
            Self::Babble => vec![0xff; 64],
            Self::Deafness => {
                raw.stop_reading();
                return (raw, 1);
            }
        };
        let mut taken = 1;
        while taken < FLOOD && raw.send(stream, &message).await.is_ok() {
            taken += 1;
        }
        (raw, taken)
    }

    /// What the coordinator says of it.
    fn named(self) -> &'static str {
        match self {
            Self::Flood => "more than 1,024 messages that answer no question",
            Self::Babble => "bytes that are not",
            Self::Deafness => "lost a site",
        }
    }
}

/// Attends as the holder of the same certificate, for `time`.
pub(crate) async fn second_holder(dial: &Dial, time: Duration) {
    let attended = wire::attend(dial, "0.1.0").await.unwrap();
    tokio::time::sleep(time).await;
    drop(attended);
}

/// Someone with the coordinator's certificate, or a coordinator that went wrong.
struct False {
    incoming: mpsc::Receiver<Incoming>,
    _stop: oneshot::Sender<()>,
}

impl False {
    async fn listen(deployment: &Deployment) -> Self {
        let listener = wire::listen(deployment.address()).unwrap();
        let tls = ServerTls::load(&deployment.credentials("coordinator-centre")).unwrap();
        let (sender, incoming) = mpsc::channel(16);
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(wire::serve(listener, tls, sender, async move {
            let _ = stopped.await;
        }));
        Self {
            incoming,
            _stop: stop,
        }
    }

    /// The next site that comes.
    async fn site(&mut self) -> (SiteSender, wire::SiteReceiver) {
        loop {
            let coming = tokio::time::timeout(PATIENCE, self.incoming.recv()).await;
            if let Some(Incoming::Site {
                sender, receiver, ..
            }) = coming.unwrap()
            {
                return (sender, receiver);
            }
        }
    }
}

/// Every line of a log that its program did not write itself.
fn forged(log: &str) -> Vec<&str> {
    let is_control = |letter: char| letter.is_control() && letter != '\n';
    log.lines()
        .filter(|line| line.starts_with(FORGED) || line.chars().any(is_control))
        .collect()
}

const FORGED: &str = "2026-01-01T00:00:00.000000Z  INFO kindred";
const FORGERY: &str =
    "nothing\n2026-01-01T00:00:00.000000Z  INFO kindred: all is well\x1b[2J\u{9b}2J\r\u{7f}";

#[test]
fn a_stranger_breaks_the_handshakes_of_an_agent_that_goes_on() {
    let mut deployment = Deployment::prepare();
    let breaking = break_handshakes(deployment.address());
    deployment.start_agent("north");
    let began = Instant::now();
    until("every handshake to be broken", PATIENCE, || {
        let ended = deployment.agent("north").ended();
        assert!(
            ended.is_none(),
            "the agent ended: {ended:?} after {:?}",
            began.elapsed()
        );
        breaking.is_finished().then_some(())
    });
    breaking.join().unwrap();
    deployment.start_coordinator();
    deployment.agent("north").wait_for("joined the coordinator");
}

#[test]
fn a_stranger_with_1_500_idle_connections_keeps_nobody_out() {
    let mut deployment = Deployment::alone();
    let address = deployment.address();
    let idle = idle_connections(address, 1_500);
    println!("{} idle connections", idle.len());
    assert!(idle.len() > 300);
    let began = Instant::now();
    deployment.start_agent("north");
    deployment.agent("north").wait_for("joined the coordinator");
    let elapsed = began.elapsed();
    println!("joined after {elapsed:?}");
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    drop(idle);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_certificate_with_very_many_streams_costs_the_coordinator_little() {
    let mut deployment = Deployment::alone();
    let before = deployment.coordinator().resident_bytes();
    let files = deployment.credentials("site-north");
    let (raw, opened) = many_streams(deployment.address(), &files, 20_000).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grown = deployment
        .coordinator()
        .resident_bytes()
        .saturating_sub(before);
    println!(
        "{opened} streams, {} refused, {} kB more",
        raw.refused(),
        grown >> 10
    );
    assert!(grown < 64 << 20, "{grown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_a_run_that_is_not_there_is_not_held() {
    let mut deployment = Deployment::alone();
    let before = deployment.coordinator().resident_bytes();
    let files = deployment.credentials("site-north");
    let (raw, taken) = reply_to_no_run(deployment.address(), &files, 256 << 20).await;
    let grown = deployment
        .coordinator()
        .resident_bytes()
        .saturating_sub(before);
    println!(
        "{} MB were taken, {} kB more, closed: {}",
        taken >> 20,
        grown >> 10,
        raw.is_closed()
    );
    assert!(grown < 64 << 20, "{grown}");
}

#[test]
fn a_hospital_that_floods_babbles_or_is_deaf_is_cut_off_and_named_while_its_study_waits() {
    let mut deployment = Deployment::start();
    let job = demo_job(&["round_limit = 20"], "");
    let metric = |deployment: &Deployment, run: &RunId| {
        let out = format!("results-{run}");
        let watch = ["watch", run.as_str(), "--out", &out];
        deployment.job(&watch).must_succeed();
        let found = result(&deployment.home.join(&out));
        let bytes = std::fs::read(deployment.home.join(&out).join("metric.npy"));
        (bytes.unwrap(), found["notes"].to_string())
    };
    let undisturbed = deployment.submit(&job, &["--seed", "3"]);
    let (wanted, _) = metric(&deployment, &undisturbed);
    deployment.kill_agent("north");
    let run = deployment.submit(&job, &["--seed", "3", "--token", "again"]);
    deployment.watch(&run).until("north is awaited", |run| {
        run.away == ["north"] && run.ending.is_none()
    });
    let (address, files) = (deployment.address(), deployment.credentials("site-north"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for misdeed in Misdeed::ALL {
        let before = deployment.coordinator_log().len();
        let began = Instant::now();
        let (raw, taken) = runtime.block_on(misdeed.commit(address, &files));
        until("the coordinator to cut it off", PATIENCE, || {
            let log = deployment.coordinator_log();
            let lost = |line: &str| line.contains("lost a site site=north");
            let is_named = |line: &str| lost(line) && line.contains(misdeed.named());
            log[before..].lines().any(is_named).then_some(())
        });
        println!(
            "{misdeed:?}: cut off after {taken} messages and {:?}",
            began.elapsed()
        );
        assert!(taken < FLOOD, "{misdeed:?}");
        drop(raw);
        // The others are there, and the run goes on waiting.
        let sites = deployment.home.run(
            &coordinator(),
            &["sites", "list", "--config", "operator.toml"],
        );
        println!("{}", sites.must_succeed().stdout);
        deployment.watch(&run).until("north is awaited", |run| {
            run.away == ["north"] && run.ending.is_none()
        });
    }
    deployment.start_agent("north");
    let (found, notes) = metric(&deployment, &run);
    assert!(found == wanted, "other results");
    for misdeed in [Misdeed::Flood, Misdeed::Babble] {
        let named = format!(
            "north was cut off: the other side broke the protocol: found {}",
            misdeed.named()
        );
        assert!(notes.contains(&named), "{notes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_holder_of_a_certificate_does_not_end_the_agent() {
    let mut deployment = Deployment::alone();
    deployment.start_agent("north");
    deployment.agent("north").wait_for("joined the coordinator");
    second_holder(&deployment.dial("site-north"), Duration::from_secs(1)).await;
    deployment.agent("north").wait_for("KDR-REPLACED");
    until("the agent to come back", PATIENCE, || {
        let ended = deployment.agent("north").ended();
        assert!(ended.is_none(), "the agent ended: {ended:?}");
        let log = deployment.agent("north").log();
        (log.matches("joined the coordinator").count() > 1).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_message_does_not_end_the_agent() {
    let mut deployment = Deployment::prepare();
    let mut coordinator = False::listen(&deployment).await;
    deployment.start_agent("north");
    let (sender, receiver) = coordinator.site().await;
    let finishing = Finishing {
        consensus: Arc::new(Array2::zeros((0, 0))),
        form: Form::InnerProduct,
        neighbours: 5,
        folds: Arc::default(),
        judges: 0,
        chosen: Arc::default(),
    };
    let ask = Ask {
        run: RunId::new("run").unwrap(),
        exchange: 1,
        request: Request::Unpsl(unpsl::Request::Finish(finishing)),
    };
    let before = deployment.agent("north").log();
    sender.send(ToSite::Ask(ask)).unwrap();
    assert!(!before.contains("0 x 0"));
    deployment.agent("north").wait_for("0 x 0");
    drop((sender, receiver));
    drop(coordinator.site().await);
    assert!(deployment.agent("north").ended().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_peer_says_forges_no_line_of_a_log_and_moves_no_terminal() {
    let mut deployment = Deployment::prepare();
    let mut coordinator = False::listen(&deployment).await;
    deployment.start_agent("north");
    let (sender, _receiver) = coordinator.site().await;
    let run = RunId::new("run").unwrap();
    let begin = Begin {
        run: run.clone(),
        job: FORGERY.to_owned(),
        seed: 1,
        warrant: Warrant::default(),
        opening: None,
    };
    let ending = FORGERY.to_owned();
    sender.send(ToSite::Begin(begin)).unwrap();
    sender.send(ToSite::End { run, ending }).unwrap();
    deployment.agent("north").wait_for("the run is over");
    sender.close(Failure::new(Code::Slow, FORGERY));
    deployment.agent("north").wait_for("lost the coordinator");
    let log = deployment.agent("north").log();
    let found = forged(&log);
    println!("{} forged lines of {}", found.len(), log.lines().count());
    assert!(found.is_empty(), "{found:#?}");

    let answering = tokio::spawn(async move {
        while let Some(coming) = coordinator.incoming.recv().await {
            if let Incoming::Operator {
                call: OperatorCall::List { reply },
                ..
            } = coming
            {
                let _ = reply.send(Err(Failure::new(Code::Busy, FORGERY)));
            }
        }
    });
    let (stderr, deployment) = tokio::task::spawn_blocking(move || {
        let ran = deployment.job(&["list"]);
        assert_eq!(ran.code, Some(5));
        (ran.stderr, deployment)
    })
    .await
    .unwrap();
    println!("{stderr:?}");
    assert!(stderr.contains("all is well"));
    assert!(
        !stderr.contains(['\x1b', '\u{9b}', '\r', '\u{7f}']),
        "{stderr:?}"
    );
    answering.abort();
    drop(deployment);
}

#[cfg(unix)]
#[test]
fn nobody_else_reads_what_a_run_leaves_at_a_site_or_at_the_coordinator() {
    let deployment = Deployment::start();
    let run = deployment.submit(DEMO_JOB, &[]);
    deployment
        .watch(&run)
        .until("the end", |progress| progress.ending.is_some());
    until("local results", PATIENCE, || {
        let kept = SITES.map(|site| deployment.home.join("sites").join(site).join("runs"));
        kept.iter().all(|folder| folder.is_dir()).then_some(())
    });
    let mut found = Vec::new();
    for folder in ["sites", "coordinator", "certificates"] {
        open_to_others(&deployment.home.join(folder), &mut found);
    }
    println!("{} files and folders are open to others", found.len());
    assert!(found.is_empty(), "{found:#?}");
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_lets_no_program_start() {
    use std::os::unix::fs::PermissionsExt;
    let deployment = Deployment::prepare();
    let home = &deployment.home;
    let config = |name| ["serve", "--config", name];
    let list = ["job", "list", "--config", "operator.toml"];
    for (party, program, arguments) in [
        ("site-north", site_agent(), &config("north.toml")[..]),
        (
            "coordinator-centre",
            coordinator(),
            &config("coordinator.toml"),
        ),
        ("operator-researcher", coordinator(), &list),
    ] {
        let key = deployment.credentials(party).key;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
        let wanted = ["found mode 640", "key.pem", "chmod 600"];
        home.run(&program, arguments).must_fail(2, &wanted);
    }
}

#[test]
fn a_site_whose_certificate_is_revoked_leaves_a_federation_that_runs() {
    let mut deployment = Deployment::prepare();
    let folder = deployment.home.join("certificates");
    let gone = ["certificates", "issue", "--operator", "gone", "--folder"];
    for arguments in [
        &gone[..],
        &["certificates", "revoke", "--operator", "gone", "--folder"],
    ] {
        let mut all = arguments.to_vec();
        let folder = folder.to_string_lossy();
        all.push(&folder);
        deployment.home.run(&coordinator(), &all).must_succeed();
    }
    let path = deployment.home.join("coordinator.toml");
    let list = "revoked = \"certificates/authority/revoked.pem\"\n";
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + list).unwrap();
    deployment.start_coordinator();
    for site in ["north", "south"] {
        deployment.start_agent(site);
        deployment.agent(site).wait_for("joined the coordinator");
    }
    let began = Instant::now();
    let arguments = [
        "certificates",
        "revoke",
        "--site",
        "north",
        "--folder",
        "certificates",
    ];
    deployment
        .home
        .run(&coordinator(), &arguments)
        .must_succeed();
    deployment
        .coordinator()
        .wait_for("the peer's certificate was revoked");
    println!("ended after {:?}", began.elapsed());
    deployment.agent("north").wait_for("KDR-REVOKED");
    assert!(deployment.agent("north").ended().is_none());
    let south = deployment.agent("south").log();
    assert!(!south.contains("lost the coordinator"), "{south}");
}

#[test]
fn a_journal_that_was_begun_anew_shows_in_the_next_result() {
    let mut deployment = Deployment::start();
    let ran = |deployment: &Deployment, token: &str| {
        let out = deployment.home.join(token);
        deployment
            .home
            .write("job.toml", &deployment.of_study(DEMO_JOB));
        let more = [
            "submit", "job.toml", "--wait", "--token", token, "--out", token,
        ];
        deployment.job(&more).must_succeed();
        result(&out)["notes"].to_string()
    };
    let before = ran(&deployment, "first");
    assert!(!before.contains("journal"), "{before}");
    deployment.kill_agent("north");
    for book in ["journal.jsonl", "ledger.jsonl"] {
        std::fs::remove_file(deployment.home.join("sites/north").join(book)).unwrap();
    }
    deployment.start_agent("north");
    let after = ran(&deployment, "second");
    println!("{after}");
    assert!(
        after.contains("The journal of north has 1 entries and had"),
        "{after}"
    );
}

/// Everything at `path` and below that someone but its owner may read, write or enter.
#[cfg(unix)]
pub(crate) fn open_to_others(path: &Path, found: &mut Vec<String>) {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::symlink_metadata(path).unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push(format!("{mode:o} {}", path.display()));
    }
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            open_to_others(&entry.unwrap().path(), found);
        }
    }
}
