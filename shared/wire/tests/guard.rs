//! What the port does with callers who hold a certificate and no longer should, or who take more than their share.

#![allow(clippy::unwrap_used)] // functions that tests share

mod support;

use ndarray::Array2;
use protocol::failure::Code;
use std::time::{Duration, Instant, SystemTime};
use support::{Port, authority, begin, contributed, contribution, coordinator, party, round};
use wire::certificates::{Role, Validity, issue, renew, revoke};
use wire::{
    CredentialFiles, Incoming, Remedy, ServerTls, Signer, SiteReceiver, SiteSender, WarrantError,
    Warrants,
};
use wire::{attend, run_id};

async fn site(port: &mut Port) -> (SiteSender, SiteReceiver) {
    match port.comes().await {
        Incoming::Site {
            sender, receiver, ..
        } => (sender, receiver),
        other => panic!("found {other:?}, wanted a site"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_when_the_certificate_of_its_site_does() {
    let mut port = Port::open().await;
    let now = SystemTime::now();
    let validity = Validity {
        from: now - Duration::from_secs(60),
        until: now + Duration::from_secs(3),
    };
    let files = issue(&port.path(), &Role::Site, "north", validity).unwrap();
    let (_sender, mut from_coordinator) = attend(&port.dial_with(&files), "0.1.0").await.unwrap();
    let (_to_site, mut from_site) = site(&mut port).await;
    let began = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(10), from_site.next()).await;
    let error = ended.expect("the stream lived on").unwrap_err();
    let elapsed = began.elapsed();
    assert!(error.to_string().contains("past its time"), "{error}");
    assert!(elapsed > Duration::from_secs(1) && elapsed < Duration::from_secs(8));
    assert!(from_coordinator.next().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_when_the_certificate_of_the_coordinator_does() {
    let folder = tempfile::tempdir().unwrap();
    authority(folder.path());
    let now = SystemTime::now();
    let validity = Validity {
        from: now - Duration::from_secs(60),
        until: now + Duration::from_secs(3),
    };
    let hosts = vec!["127.0.0.1".to_owned()];
    let files = issue(
        folder.path(),
        &Role::Coordinator { hosts },
        "main",
        validity,
    )
    .unwrap();
    let mut port = Port::open_with(folder, &files).await;
    let dial = port.dial(Role::Site, "north");
    let (_sender, mut from_coordinator) = attend(&dial, "0.1.0").await.unwrap();
    let _attending = site(&mut port).await;
    let ended = tokio::time::timeout(Duration::from_secs(10), from_coordinator.next()).await;
    let error = ended.expect("the stream lived on").unwrap_err();
    assert!(error.to_string().contains("past its time"), "{error}");
    let again = attend(&dial, "0.1.0").await.unwrap_err();
    assert_eq!(
        (again.code(), again.remedy()),
        (Code::Expired, Remedy::Person)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_certificate_ends_its_stream_and_opens_no_other_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    authority(folder.path());
    let files = coordinator(folder.path());
    party(folder.path(), Role::Operator, "gone");
    let list = revoke(folder.path(), &Role::Operator, "gone").unwrap();
    let tls = ServerTls::load_revoking(&files, &list).unwrap();
    let mut port = Port::open_tls(folder, tls).await;
    let (north, south) = (
        port.dial(Role::Site, "north"),
        port.dial(Role::Site, "south"),
    );
    let (_keeps, mut to_north) = attend(&north, "0.1.0").await.unwrap();
    let (_north, mut from_north) = site(&mut port).await;
    let (_keeps, _to_south) = attend(&south, "0.1.0").await.unwrap();
    let (_south, mut from_south) = site(&mut port).await;

    assert_eq!(revoke(&port.path(), &Role::Site, "north").unwrap(), list);
    let ended = tokio::time::timeout(Duration::from_secs(4), from_north.next()).await;
    let error = ended.expect("the stream lived on").unwrap_err();
    assert!(error.to_string().contains("revoked"), "{error}");
    assert!(to_north.next().await.is_err());
    let again = attend(&north, "0.1.0").await.unwrap_err();
    assert_eq!(
        (again.code(), again.remedy()),
        (Code::Revoked, Remedy::Later)
    );
    // Nobody else is touched, and the name can have another certificate.
    let other = tokio::time::timeout(Duration::from_millis(200), from_south.next()).await;
    assert!(other.is_err());
    attend(&port.dial(Role::Site, "north"), "0.1.0")
        .await
        .unwrap();
    // The first one stays on the list.
    assert!(revoke(&port.path(), &Role::Site, "nobody").is_err());
    let both = std::fs::read_to_string(&list).unwrap();
    assert!(both.contains("X509 CRL"));
}

/// The files of a party as they are now, in a folder of their own, as a thief has them.
fn stolen(files: &CredentialFiles, name: &str) -> CredentialFiles {
    let home = files.certificate.parent().unwrap();
    let folder = home.with_file_name(name);
    wire::private::folder(&folder).unwrap();
    let copy = CredentialFiles::in_folder(&folder);
    for (from, to) in [
        (&files.certificate, &copy.certificate),
        (&files.key, &copy.key),
        (&files.authority, &copy.authority),
    ] {
        std::fs::copy(from, to).unwrap();
    }
    copy
}

/// Whoever stole a key has a certificate of an earlier time, and perhaps an earlier key of the same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_party_is_revoked_with_all_of_its_keys_and_certificates() {
    const JOB: &str = "name = \"heart-disease\"\n";
    let folder = tempfile::tempdir().unwrap();
    authority(folder.path());
    let files = coordinator(folder.path());
    let list = folder.path().join("authority/revoked.pem");
    let tls = ServerTls::load_revoking(&files, &list).unwrap();
    let mut port = Port::open_tls(folder, tls).await;
    let home = port.path();
    let mut stolen_files = Vec::new();
    for (role, name) in [(Role::Site, "site-north"), (Role::Operator, "operator-lab")] {
        let holder = name.split_once('-').unwrap().1;
        party(&home, role.clone(), holder);
        // Its folder is handed over as a whole, and a second key is made for the same name.
        let elsewhere = home.join(format!("first-{name}"));
        std::fs::rename(home.join(name), &elsewhere).unwrap();
        stolen_files.push(CredentialFiles::in_folder(&elsewhere));
        let second = party(&home, role.clone(), holder);
        stolen_files.push(stolen(&second, &format!("second-{name}")));
        let before = std::fs::read(&second.certificate).unwrap();
        renew(&home, &role, holder, Validity::days(1)).unwrap();
        assert_ne!(before, std::fs::read(&second.certificate).unwrap());
    }
    let gone = tempfile::tempdir().unwrap();
    for files in &mut stolen_files {
        let folder = files.certificate.parent().unwrap();
        let out = gone.path().join(folder.file_name().unwrap());
        std::fs::rename(folder, &out).unwrap();
        *files = CredentialFiles::in_folder(&out);
    }
    let [first, second, by_first, by_second] = &stolen_files[..] else {
        unreachable!()
    };
    let (_keeps, mut to_old) = attend(&port.dial_with(second), "0.1.0").await.unwrap();
    let (_north, mut from_old) = site(&mut port).await;
    let lab = protocol::name::OperatorName::new("lab").unwrap();
    let run = run_id(&lab, "monday").unwrap();
    let sign = |files| Signer::load(files).unwrap().sign(JOB, 7, "monday").unwrap();
    let warrants = [sign(by_first), sign(by_second)];
    // As a hospital reads the list, for each run.
    let judged = |warrant| {
        let at_site = Warrants::load_revoking(&files.authority, &list).unwrap();
        at_site.operator(&run, JOB, 7, warrant)
    };
    for warrant in &warrants {
        judged(warrant).unwrap();
    }

    let began = Instant::now();
    for (role, name) in [(Role::Site, "north"), (Role::Operator, "lab")] {
        assert_eq!(revoke(&home, &role, name).unwrap(), list);
        assert!(revoke(&home, &role, name).is_err());
    }
    // The open stream ends, and no other opens.
    let ended = tokio::time::timeout(Duration::from_secs(5), from_old.next()).await;
    let error = ended.expect("the stream lived on").unwrap_err();
    assert!(error.to_string().contains("revoked"), "{error}");
    assert!(to_old.next().await.is_err());
    for files in [first, second] {
        let again = attend(&port.dial_with(files), "0.1.0").await.unwrap_err();
        assert_eq!(again.code(), Code::Revoked);
    }
    for warrant in &warrants {
        let refused = judged(warrant).unwrap_err();
        assert!(matches!(refused, WarrantError::Certificate(_)), "{refused}");
    }
    assert!(began.elapsed() < Duration::from_secs(5));
    // A new key of the name is let in.
    let dial = port.dial(Role::Site, "north");
    attend(&dial, "0.1.0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_kept_once_where_it_was_asked_and_dropped_where_it_was_not() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let (to_coordinator, _from_coordinator) = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, mut from_site) = site(&mut port).await;
    let matrix = Array2::from_elem((700, 300), 0.5);
    // Two before the question, one to it, and one too many.
    for _ in 0..2 {
        to_coordinator
            .send(contribution(matrix.clone()))
            .await
            .unwrap();
    }
    let early = tokio::time::timeout(Duration::from_millis(500), from_site.next()).await;
    assert!(early.is_err(), "an answer that nobody asked for was kept");
    to_site.send(begin(matrix.dim())).unwrap();
    to_site.send(round(matrix.clone())).unwrap();
    for _ in 0..2 {
        to_coordinator
            .send(contribution(matrix.clone()))
            .await
            .unwrap();
    }
    let found = from_site.next().await.unwrap().unwrap();
    assert!(contributed(found, matrix.dim()) == matrix);
    let late = tokio::time::timeout(Duration::from_millis(500), from_site.next()).await;
    assert!(late.is_err(), "an answer was kept twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_longer_than_its_question_can_need_ends_the_stream() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let (to_coordinator, mut from_coordinator) = attend(&dial, "0.1.0").await.unwrap();
    let (to_site, mut from_site) = site(&mut port).await;
    to_site.send(begin((10, 10))).unwrap();
    to_site.send(round(Array2::zeros((10, 10)))).unwrap();
    let matrix = Array2::zeros((700, 300));
    to_coordinator.send(contribution(matrix)).await.unwrap();
    let error = from_site.next().await.unwrap_err();
    assert_eq!(error.code(), Code::Protocol);
    let told = loop {
        if let Err(error) = from_coordinator.next().await {
            break error;
        }
    };
    assert_eq!(
        (told.code(), told.remedy()),
        (Code::Protocol, Remedy::Later)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_streams_of_a_site_take_the_place_of_the_oldest() {
    let mut port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let mut streams = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..4 {
        streams.push(attend(&dial, "0.1.0").await.unwrap());
        kept.push(site(&mut port).await);
    }
    for (_, receiver) in &mut streams[..2] {
        assert_eq!(receiver.next().await.unwrap_err().code(), Code::Replaced);
    }
    for (_, receiver) in &mut streams[2..] {
        let open = tokio::time::timeout(Duration::from_millis(100), receiver.next()).await;
        assert!(open.is_err());
    }
    // The program's own ends of them are over too, whatever the site does with its half.
    for (_, receiver) in &mut kept[..2] {
        let ended = tokio::time::timeout(Duration::from_secs(2), receiver.next()).await;
        assert!(
            ended.is_ok(),
            "a stream that was closed is still listened to"
        );
    }
}
