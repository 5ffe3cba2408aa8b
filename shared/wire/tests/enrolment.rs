//! A party makes its key, and gets its certificate by a token, over TLS that the token's fingerprint pins.

#![allow(clippy::unwrap_used)] // functions that tests share

mod support;

use protocol::failure::Code;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};
use support::{Port, authority, coordinator};
use tokio::sync::oneshot;
use wire::certificates::Validity;
use wire::certificates::{Role, invite, issue, revoke};
use wire::enrolment::{EnrolError, Signing, Token, enrol, renew, serve};
use wire::{Address, ClientTls, ConnectionError, Dial, Incoming, ServerTls, attend, listen};

/// A port that signs, by the authority of a coordinator's port.
struct Desk {
    port: Port,
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Desk {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        authority(folder.path());
        let files = coordinator(folder.path());
        let list = folder.path().join("authority/revoked.pem");
        let tls = ServerTls::load_revoking(&files, &list).unwrap();
        let port = Port::open_tls(folder, tls).await;
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let tls = ServerTls::load_enrolling(&files, &port.path()).unwrap();
        let signing = Signing {
            folder: port.path(),
            days: 5,
        };
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(serve(listener, tls, signing, async {
            let _ = stopped.await;
        }));
        Self {
            port,
            address,
            _stop: stop,
        }
    }

    fn invite(&self, folder: &Path, role: &Role, name: &str, until: SystemTime) -> Token {
        let address = |address: SocketAddr| Address::new(&address.to_string()).unwrap();
        let places = (address(self.port.address), address(self.address));
        invite(folder, role, name, places, until).unwrap()
    }

    fn token(&self, role: &Role, name: &str) -> Token {
        self.invite(&self.port.path(), role, name, soon())
    }
}

fn soon() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

fn code(error: &EnrolError) -> Code {
    match error {
        EnrolError::Connection { source } => source.code(),
        other => panic!("found {other}, wanted a refusal"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_enrols_attends_and_renews_and_its_key_stays_with_it() {
    let mut desk = Desk::open().await;
    let home = tempfile::tempdir().unwrap();
    let token = desk.token(&Role::Site, "north");
    let token = Token::parse(&token.to_string()).unwrap();
    let files = enrol(&token, home.path(), None).await.unwrap();
    assert!(wire::private::check_key(&files.key).is_ok());
    assert!(!desk.port.path().join("site-north/key.pem").exists());
    // A stream that ends before the coordinator has read its hello brings nobody.
    let attended = attend(&desk.port.dial_with(&files), "0.1.0").await.unwrap();
    let came = desk.port.comes().await;
    let Incoming::Site { name, .. } = came else {
        panic!("found {came:?}, wanted a site");
    };
    assert_eq!(name.as_str(), "north");
    drop(attended);

    let (before, key) = (
        wire::fingerprint(&files).unwrap(),
        std::fs::read(&files.key).unwrap(),
    );
    let old = std::fs::read(&files.certificate).unwrap();
    let dial = Dial {
        address: token.enrolment.clone(),
        tls: ClientTls::load(&files).unwrap(),
        proxy: None,
    };
    renew(&dial, &files).await.unwrap();
    assert_ne!(old, std::fs::read(&files.certificate).unwrap());
    assert_eq!(key, std::fs::read(&files.key).unwrap());
    assert_eq!(before, wire::fingerprint(&files).unwrap());
    attend(&desk.port.dial_with(&files), "0.1.0").await.unwrap();
    // A second enrolment writes over nothing.
    let again = enrol(&token, home.path(), None).await.unwrap_err();
    assert!(matches!(again, EnrolError::Certificate(_)), "{again}");

    // Whoever is revoked renews no more, and both of its certificates are refused.
    revoke(&desk.port.path(), &Role::Site, "north").unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let refused = renew(&dial, &files).await.unwrap_err();
    assert_eq!(code(&refused), Code::Revoked);
    for certificate in [old, std::fs::read(&files.certificate).unwrap()] {
        std::fs::write(&files.certificate, certificate).unwrap();
        let refused = attend(&desk.port.dial_with(&files), "0.1.0")
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::Revoked);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_an_expired_and_an_unknown_token_are_refused_and_guesses_are_few() {
    let desk = Desk::open().await;
    let home = tempfile::tempdir().unwrap();
    let token = desk.token(&Role::Operator, "lab");
    enrol(&token, &home.path().join("lab"), None).await.unwrap();
    let used = enrol(&token, &home.path().join("thief"), None).await;
    let used = used.unwrap_err();
    assert_eq!(code(&used), Code::Enrolment);
    assert!(used.to_string().contains("used already"), "{used}");
    assert!(!home.path().join("thief/certificate.pem").exists());

    let past = SystemTime::now() - Duration::from_secs(1);
    let late = desk.invite(&desk.port.path(), &Role::Site, "late", past);
    let late = enrol(&late, &home.path().join("late"), None)
        .await
        .unwrap_err();
    assert!(late.to_string().contains("expired"), "{late}");

    // The right authority, and a secret of another word.
    let word = desk.token(&Role::Site, "south").to_string();
    let (known, _) = word.rsplit_once('/').unwrap();
    let guess = Token::parse(&format!("{known}/{}", "0".repeat(32))).unwrap();
    let folder = home.path().join("guess");
    let refused = enrol(&guess, &folder, None).await.unwrap_err();
    assert!(refused.to_string().contains("has not given"), "{refused}");
    let mut codes = Vec::new();
    for _ in 0..20 {
        codes.push(code(&enrol(&guess, &folder, None).await.unwrap_err()));
    }
    assert!(codes.starts_with(&[Code::Enrolment; 10]), "{codes:?}");
    assert_eq!(codes.last(), Some(&Code::Busy));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_authority_is_never_sent_the_secret() {
    let (desk, other) = (Desk::open().await, Desk::open().await);
    let home = tempfile::tempdir().unwrap();
    // A token of one authority, and the port of another between.
    let token = other.invite(&desk.port.path(), &Role::Site, "north", soon());
    let refused = enrol(&token, home.path(), None).await.unwrap_err();
    assert_eq!(code(&refused), Code::Authority);
    // The secret was not used up.
    let word = token.to_string();
    let wrong = format!("/{}/", other.address.port());
    let right = format!("/{}/", desk.address.port());
    let token = Token::parse(&word.replacen(&wrong, &right, 1)).unwrap();
    enrol(&token, home.path(), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_two_ports_do_not_stand_in_for_each_other() {
    let desk = Desk::open().await;
    let home = tempfile::tempdir().unwrap();
    // The port of sites and operators lets in nobody without a certificate.
    let word = desk.token(&Role::Site, "north").to_string();
    let enrolling = format!("/{}/", desk.address.port());
    let attending = format!("/{}/", desk.port.address.port());
    let token = Token::parse(&word.replacen(&enrolling, &attending, 1)).unwrap();
    let refused = enrol(&token, home.path(), None).await.unwrap_err();
    assert!(
        matches!(refused, EnrolError::Connection { .. }),
        "{refused}"
    );
    // The port that signs hears no site.
    let files = issue(&desk.port.path(), &Role::Site, "south", Validity::days(1)).unwrap();
    let dial = Dial {
        address: Address::new(&desk.address.to_string()).unwrap(),
        tls: ClientTls::load(&files).unwrap(),
        proxy: None,
    };
    let refused = attend(&dial, "0.1.0").await.unwrap_err();
    assert!(matches!(refused, ConnectionError::Refused(_)), "{refused}");
}
