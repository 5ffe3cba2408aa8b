//! What stands between a party and the coordinator is said by name.

#![allow(clippy::unwrap_used)] // functions that tests share

mod support;

use protocol::failure::Code;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use support::{Port, authority, party};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use wire::certificates::{AUTHORITY_NAME, Role, Validity, issue};
use wire::{Address, Dial, attend, probe, shown_authority};

/// A port that opens TLS by an authority of its own, as the firewall of a hospital does.
async fn firewall() -> SocketAddr {
    let mut own = CertificateParams::default();
    own.distinguished_name
        .push(DnType::CommonName, "Hospital Firewall CA");
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = Issuer::new(own, KeyPair::generate().unwrap());
    let key = KeyPair::generate().unwrap();
    let shown = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let shown = shown.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![shown.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_opens_tls_on_the_way_is_named() {
    let port = Port::open().await;
    let dial = port.dial(Role::Site, "north");
    let through = Dial {
        address: Address::new(&firewall().await.to_string()).unwrap(),
        ..dial.clone()
    };
    let refused = attend(&through, "0.1.0").await.unwrap_err();
    assert_eq!(refused.code(), Code::Authority);
    let name = shown_authority(&through).await.unwrap();
    assert!(name.contains("Hospital Firewall CA"), "{name}");
    let name = shown_authority(&dial).await.unwrap();
    assert!(name.contains(AUTHORITY_NAME), "{name}");
    let nobody = Dial {
        address: Address::new("127.0.0.1:1").unwrap(),
        ..dial
    };
    assert_eq!(shown_authority(&nobody).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_for_other_hosts_says_which() {
    let folder = tempfile::tempdir().unwrap();
    authority(folder.path());
    let hosts = vec!["coordinator.example".to_owned(), "10.1.2.3".to_owned()];
    let role = Role::Coordinator { hosts };
    let files = issue(folder.path(), &role, "main", Validity::days(1)).unwrap();
    let port = Port::open_with(folder, &files).await;
    let refused = attend(&port.dial(Role::Site, "north"), "0.1.0")
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Host);
    let text = refused.to_string();
    assert!(
        text.contains("is for coordinator.example, 10.1.2.3 and not for 127.0.0.1"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_coordinator_says_what_its_clock_shows() {
    let port = Port::open().await;
    let files = party(&port.path(), Role::Site, "north");
    let before = SystemTime::now() - Duration::from_secs(1);
    let clock = probe(&port.dial_with(&files)).await.unwrap().unwrap();
    assert!(clock >= before && clock <= SystemTime::now(), "{clock:?}");
}
