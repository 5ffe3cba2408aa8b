//! Real sockets, real TLS: who may come in, who may not, and what they are told.

#![allow(clippy::unwrap_used)] // functions that tests share

mod support;

use ndarray::Array2;
use privacy::Covered;
use privacy::sums::Words;
use protocol::failure::{Code, Failure};
use protocol::message::{Answer, Closed, ToSite, Waiting};
use protocol::name::{OperatorName, SiteName};
use protocol::progress::{Course, Ending, Progress, Times};
use protocol::run::Record;
use protocol::study::{Approval, HospitalState, Standing, StudyName, StudyState};
use protocol::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::{Port, authority, begin, contributed, contribution, party, round, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use wire::certificates::{Role, Validity, issue};
use wire::{
    Address, ConnectionError, Incoming, OperatorCall, OperatorClient, Proxy, SendError,
    SiteReceiver, SiteSender, attend,
};

const DAY: Duration = Duration::from_secs(86_400);

async fn site(port: &mut Port) -> (SiteSender, SiteReceiver) {
    match port.comes().await {
        Incoming::Site {
            name,
            version,
            sender,
            receiver,
        } => {
            assert_eq!(name.as_str(), "north");
            assert_eq!(version, "0.1.0");
            (sender, receiver)
        }
        other => panic!("found {other:?}, wanted a site"),
    }
}

fn code<T: std::fmt::Debug>(outcome: Result<T, ConnectionError>) -> Code {
    outcome.unwrap_err().code()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_attends_and_matrices_go_both_ways() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let (to_coordinator, mut from_coordinator) = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, mut from_site) = site(&mut port).await;

    let matrix = Array2::from_shape_fn((700, 300), |(i, j)| i as f64 - 0.5 * j as f64);
    let begins = begin(matrix.dim());
    for message in [begins.clone(), round(matrix.clone())] {
        to_site.send(message.clone()).unwrap();
        assert!(from_coordinator.next().await.unwrap() == message);
    }
    to_coordinator
        .send(contribution(matrix.clone()))
        .await
        .unwrap();
    let found = from_site.next().await.unwrap().unwrap();
    assert!(contributed(found, matrix.dim()) == matrix);

    let traffic = to_site.traffic();
    let ToSite::Begin(begun) = begins else {
        panic!("a run begins");
    };
    let entries = (700 * 300 * 8 + begun.job.len()) as u64;
    // A word has twice the bytes of a number.
    let words = (700 * 300 * 16) as u64;
    assert!((words..words + 4096).contains(&traffic.bytes_sent));
    assert!((entries..entries + 4096).contains(&traffic.bytes_received));
    assert_eq!(traffic.bytes_sent, from_coordinator.bytes_sent());
    assert_eq!(traffic.bytes_received, from_coordinator.bytes_received());

    drop(to_coordinator);
    assert!(from_site.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_site_that_is_closed_hears_why() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let (_sender, mut receiver) = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, _from_site) = site(&mut port).await;
    let failure = Failure::new(Code::Replaced, "another connection took this one's place");
    to_site.close(failure.clone());
    assert_eq!(
        receiver.next().await.unwrap_err(),
        ConnectionError::Refused(failure)
    );
}

#[tokio::test]
async fn roles_are_kept_apart() {
    let port = Port::open().await;
    let operator = port.dial(Role::Operator, "lab");
    assert_eq!(code(attend(&operator, "0.1.0").await), Code::Role);
    let site = port.dial(Role::Site, "north");
    let client = OperatorClient::connect(&site).await.unwrap();
    assert_eq!(
        code(client.submit("name = 1", 1, "token").await),
        Code::Role
    );
    assert_eq!(code(client.list().await), Code::Role);
    assert_eq!(code(client.cancel(&run()).await), Code::Role);
}

#[tokio::test]
async fn an_operator_submits_watches_and_is_told_why_not() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Operator, "lab");
    let client = OperatorClient::connect(&dial).await.unwrap();
    let state = |round, ending| Progress {
        run: run(),
        job: "heart-disease".to_owned(),
        method: "unpsl".to_owned(),
        operator: Some(OperatorName::new("lab").unwrap()),
        times: Times::default(),
        ahead: None,
        phase: "rounds".to_owned(),
        course: Course {
            round,
            round_limit: 10,
            ..Course::default()
        },
        sites_connected: 3,
        sites: 3,
        waiting_for: Vec::new(),
        away: Vec::new(),
        waiting_since: None,
        notes: 0,
        ending,
    };
    let (progress, watched) = watch::channel(state(1, None));
    let program = tokio::spawn(async move {
        while let Some(Incoming::Operator { operator, call }) = port.incoming.recv().await {
            assert_eq!(operator.as_str(), "lab");
            match call {
                OperatorCall::Submit {
                    job,
                    seed,
                    warrant,
                    reply,
                } => {
                    let asked = (job.as_str(), seed, warrant.token.as_str());
                    assert_eq!(asked, ("job", 7, "token"));
                    reply.send(Ok(run())).unwrap();
                }
                OperatorCall::Watch { reply, .. } => reply.send(Ok(watched.clone())).unwrap(),
                OperatorCall::Cancel { reply, .. } => {
                    let failure = Failure::new(Code::Running, "the run has ended – ü");
                    reply.send(Err(failure)).unwrap();
                }
                OperatorCall::Remove { run: named, reply } => {
                    assert_eq!(named, run());
                    reply.send(Ok(())).unwrap();
                }
                OperatorCall::List { reply } => {
                    reply
                        .send(Ok(vec![state(2, None), state(1, None)]))
                        .unwrap();
                }
                OperatorCall::ListStudies { reply } => {
                    reply.send(Ok(vec![study()])).unwrap();
                }
                OperatorCall::CloseStudy { study: name, reply } => {
                    assert_eq!(name, study().name);
                    reply.send(Ok(())).unwrap();
                }
                // No answer: as if the program went down.
                OperatorCall::FetchResult { .. } => {}
            }
        }
    });
    assert_eq!(client.submit("job", 7, "token").await.unwrap(), run());
    assert_eq!(client.list().await.unwrap().len(), 2);
    assert_eq!(client.studies().await.unwrap(), [study()]);
    client.close_study(&study().name).await.unwrap();
    client.remove(&run()).await.unwrap();
    let refused = client.cancel(&run()).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.to_string().as_str()),
        (Code::Running, "the run has ended – ü")
    );
    assert_eq!(code(client.result(&run()).await), Code::Stopping);
    let mut receiver = client.watch(&run()).await.unwrap();
    assert_eq!(receiver.next().await.unwrap().unwrap().course.round, 1);
    progress.send_replace(state(2, Some(Ending::Converged)));
    assert_eq!(
        receiver.next().await.unwrap().unwrap().ending,
        Some(Ending::Converged)
    );
    assert_eq!(receiver.next().await.unwrap(), None);
    program.abort();
}

#[tokio::test]
async fn certificates_out_of_time_or_of_another_authority_are_refused_on_either_side() {
    let port = Port::open().await;
    let past = Validity {
        from: std::time::SystemTime::now() - 2 * DAY,
        until: std::time::SystemTime::now() - DAY,
    };
    let expired = issue(&port.path(), &Role::Site, "east", past).unwrap();
    // Nothing but an alert comes back.
    let error = attend(&port.dial_with(&expired), "0.1.0")
        .await
        .unwrap_err();
    let own = "this party's certificate is not valid now: ask";
    assert!(error.to_string().starts_with(own), "{error}");

    let elsewhere = tempfile::tempdir().unwrap();
    authority(elsewhere.path());
    let mut foreign = party(elsewhere.path(), Role::Site, "north");
    // The site distrusts the coordinator.
    assert_eq!(
        attend(&port.dial_with(&foreign), "0.1.0")
            .await
            .unwrap_err(),
        ConnectionError::ForeignAuthority {
            whose: "the coordinator's"
        }
    );
    // The coordinator distrusts the site.
    foreign.authority = party(&port.path(), Role::Site, "west").authority;
    assert_eq!(
        attend(&port.dial_with(&foreign), "0.1.0")
            .await
            .unwrap_err(),
        ConnectionError::ForeignAuthority {
            whose: "this party's"
        }
    );

    let folder = tempfile::tempdir().unwrap();
    authority(folder.path());
    let role = Role::Coordinator {
        hosts: vec!["127.0.0.1".to_owned()],
    };
    let stale = issue(folder.path(), &role, "main", past).unwrap();
    let port = Port::open_with(folder, &stale).await;
    let error = attend(&port.dial(Role::Site, "north"), "0.1.0")
        .await
        .unwrap_err();
    let dated = "the coordinator's certificate is not valid now (it ended 20";
    assert!(error.to_string().starts_with(dated), "{error}");
}

#[tokio::test]
async fn a_host_or_role_that_the_certificate_does_not_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    authority(folder.path());
    let role = Role::Coordinator {
        hosts: vec!["other.example.org".to_owned()],
    };
    let files = party(folder.path(), role, "main");
    let port = Port::open_with(folder, &files).await;
    assert_eq!(
        code(attend(&port.dial(Role::Site, "north"), "0.1.0").await),
        Code::Host
    );
}

#[tokio::test]
async fn a_port_that_speaks_something_else_is_named() {
    let port = Port::open().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut dial = port.dial(Role::Site, "north");
    let address = listener.local_addr().unwrap().to_string();
    dial.address = Address::new(&address).unwrap();
    let other = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 64];
        stream.read_exact(&mut hello).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        stream
    });
    let error = attend(&dial, "0.1.0").await.unwrap_err().to_string();
    let wanted = format!("{address} does not speak TLS: is this the coordinator's port?");
    assert!(error.contains(&wanted), "{error}");
    drop(other.await);
}

#[tokio::test]
async fn nobody_at_the_address_is_told_as_such() {
    let port = Port::open().await;
    let mut dial = port.dial(Role::Site, "north");
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    dial.address = Address::new(&free.to_string()).unwrap();
    let error = attend(&dial, "0.1.0").await.unwrap_err();
    assert_eq!(error.code(), Code::Unreachable);
    assert!(error.to_string().contains(&free.to_string()));
}

#[tokio::test]
async fn plaintext_and_tls_1_2_are_refused() {
    let port = Port::open().await;
    let mut plain = TcpStream::connect(port.address).await.unwrap();
    plain
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    // A TLS alert record at most, never HTTP/2 settings.
    assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");

    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let old = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let stream = TcpStream::connect(port.address).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(old));
    let error = connector
        .connect(name, stream)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
}

/// A proxy that opens one tunnel for whoever knows the password, where there is one.
async fn proxy(authorization: Option<&'static str>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::new(&listener.local_addr().unwrap().to_string()).unwrap();
    tokio::spawn(async move {
        while let Ok((mut caller, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(caller.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let target = head
                .strip_prefix("CONNECT ")
                .unwrap()
                .split(' ')
                .next()
                .unwrap();
            let allowed = authorization.is_none_or(|wanted| head.contains(wanted));
            if !allowed {
                let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
                caller.write_all(refusal).await.unwrap();
                continue;
            }
            let mut server = TcpStream::connect(target).await.unwrap();
            caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_proxy_is_passed_with_and_without_a_password() {
    let mut port = Port::open().await;
    let mut dial = port.dial(Role::Site, "north");
    dial.proxy = Some(Proxy::open(proxy(None).await));
    let attended = attend(&dial, "0.1.0").await.unwrap();
    drop(site(&mut port).await);
    drop(attended);

    // RFC 7617, section 2.
    let guarded = proxy(Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")).await;
    dial.proxy = Some(Proxy::with_password(
        guarded.clone(),
        "Aladdin",
        "open sesame",
    ));
    let attended = attend(&dial, "0.1.0").await.unwrap();
    drop(site(&mut port).await);
    drop(attended);
    dial.proxy = Some(Proxy::with_password(guarded, "Aladdin", "wrong"));
    let error = attend(&dial, "0.1.0").await.unwrap_err();
    assert_eq!(error.code(), Code::Proxy);
    assert!(!format!("{error} {error:?} {dial:?}").contains("wrong"));
}

/// A relay that stops to forward, both connections open, once it is told.
async fn relay(target: std::net::SocketAddr) -> (Address, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::new(&listener.local_addr().unwrap().to_string()).unwrap();
    let (freeze, frozen) = watch::channel(false);
    tokio::spawn(async move {
        let (mut caller, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(target).await.unwrap();
        let mut frozen = frozen;
        let until_frozen = async move { frozen.wait_for(|frozen| *frozen).await.is_ok() };
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut caller, &mut server) => return,
            _ = until_frozen => {}
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop((caller, server));
    });
    (address, freeze)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_peer_is_noticed_by_both_sides_in_under_five_seconds() {
    let mut port = Port::open().await;
    let mut dial = port.dial(Role::Site, "north");
    let (address, freeze) = relay(port.address).await;
    dial.address = address;
    let (_to_coordinator, mut from_coordinator) = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, mut from_site) = site(&mut port).await;
    // An idle connection lives on beyond the limit of silence.
    let idle = tokio::time::timeout(Duration::from_millis(5_500), from_site.next()).await;
    assert!(idle.is_err(), "an idle connection was lost");

    freeze.send_replace(true);
    let frozen_at = Instant::now();
    // The coordinator is busy writing, and blocks: 80 MB do not fit any buffer on the way.
    let consensus = Array2::zeros((10_000, 1_000));
    to_site.send(round(consensus)).unwrap();
    let (at_coordinator, at_site) = tokio::join!(
        async { (from_site.next().await, frozen_at.elapsed()) },
        async { (from_coordinator.next().await, frozen_at.elapsed()) },
    );
    for (code, elapsed) in [
        (code(at_coordinator.0), at_coordinator.1),
        (code(at_site.0), at_site.1),
    ] {
        assert_eq!(code, Code::Disconnected);
        assert!(
            elapsed < Duration::from_secs(5),
            "noticed after {elapsed:?}"
        );
    }
}

#[tokio::test]
async fn a_site_that_takes_nothing_is_dropped_once_its_queue_is_full() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let _attended = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, _from_site) = site(&mut port).await;
    let consensus = Array2::zeros((2_000, 1_000));
    let ask = round(consensus);
    // On one thread nothing is sent between two calls that do not wait.
    let sent = (0..100)
        .map(|_| to_site.send(ask.clone()))
        .take_while(Result::is_ok)
        .count();
    assert_eq!(sent, protocol::limits::OUTBOX_MAX);
    assert!(matches!(
        to_site.send(ask),
        Err(SendError::Overflow | SendError::Closed)
    ));
}

/// Of as many exchanges as closed in a long run none is made before the stream can take it, and what is sent after them comes after
/// them.
#[tokio::test]
async fn a_site_that_comes_back_hears_all_that_closed_as_it_takes_it() {
    const CLOSED: u32 = 40;
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let (_sender, mut receiver) = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, _from_site) = site(&mut port).await;
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let closed = (0..CLOSED).map(move |exchange| {
        counted.fetch_add(1, Ordering::Relaxed);
        let words = Words::received(vec![u128::MAX; 1 << 16]);
        let answer = Answer::Covered(Covered {
            kind: "derivatives",
            words,
            tag: None,
        });
        Arc::new(Closed {
            run: run(),
            record: Record {
                at: Timestamp(0),
                exchange,
                answers: vec![Some(answer); 2],
                signatures: vec![Vec::new(); 2],
            },
            total: None,
        })
    });
    to_site.send_closed(closed).unwrap();
    to_site.send(round(Array2::zeros((2, 2)))).unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 0);
    // 80 MB do not fit any buffer on the way.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let early = made.load(Ordering::Relaxed);
    assert!(early < CLOSED, "{early} were made before the site took one");
    for exchange in 0..CLOSED {
        let ToSite::Closed(closed) = receiver.next().await.unwrap() else {
            panic!("wanted exchange {exchange}");
        };
        assert_eq!(closed.record.exchange, exchange);
    }
    assert!(matches!(receiver.next().await.unwrap(), ToSite::Ask(_)));
}

#[tokio::test]
async fn a_coordinator_that_stops_tells_its_sites_and_returns() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let (_sender, mut receiver) = attend(&dial, "0.1.0").await.unwrap();
    let (_to_site, _from_site) = site(&mut port).await;
    port.stop.send(()).unwrap();
    assert_eq!(code(receiver.next().await), Code::Stopping);
    let ended = tokio::time::timeout(Duration::from_secs(4), port.serving).await;
    ended.unwrap().unwrap().unwrap();
    assert_eq!(code(attend(&dial, "0.1.0").await), Code::Unreachable);
}

#[tokio::test]
async fn certificates_are_never_written_over_and_keys_are_secret() {
    let port = Port::open().await;
    let north = party(&port.path(), Role::Site, "north");
    let before = std::fs::read(&north.certificate).unwrap();
    assert!(issue(&port.path(), &Role::Site, "north", Validity::days(1)).is_err());
    assert!(wire::certificates::init(&port.path(), Validity::days(1)).is_err());
    party(&port.path(), Role::Site, "south");
    assert_eq!(std::fs::read(&north.certificate).unwrap(), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&north.key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(issue(&port.path(), &Role::Site, "../up", Validity::days(1)).is_err());
}

/// A study that one of two hospitals has approved.
fn study() -> StudyState {
    let hospital = |name: &str, approval| HospitalState {
        name: SiteName::new(name).unwrap(),
        connected: true,
        approval,
    };
    let approval = Approval {
        study: "heart".to_owned(),
        digest: "a".repeat(64),
        commitment: "b".repeat(64),
        patients_at_most: 120,
        approved: Timestamp(3),
    };
    StudyState {
        name: StudyName::new("heart").unwrap(),
        title: "Who is alike?".to_owned(),
        digest: "a".repeat(64),
        until: time::macros::date!(2027 - 12 - 31),
        run: run(),
        proposed: Timestamp(2),
        standing: Standing::Proposed,
        hospitals: vec![hospital("north", Some(approval)), hospital("south", None)],
        waiting: vec![Waiting {
            run: run(),
            away: vec![SiteName::new("south").unwrap()],
            since: Some(Timestamp(4)),
        }],
    }
}
