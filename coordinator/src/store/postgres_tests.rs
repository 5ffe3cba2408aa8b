//! What only PostgreSQL has: a lease, and databases that cannot hold the store.

use super::tests::{Home, JOB, submission, taken};
use super::*;
use protocol::study::Study;
use service::postgres::{ConnectError, Server};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn one_leads_and_whoever_has_lost_the_lease_writes_nothing_more() {
    let Some(home) = Home::postgres("") else {
        return;
    };
    let Home::Postgres(server, cluster) = &home else {
        panic!("PostgreSQL");
    };
    let lease = taken(server);
    let ended = lease.ended();
    let other = Session::connect(server).unwrap();
    let Taken::Waits(other) = other.try_lead().unwrap() else {
        panic!("two lead");
    };
    assert_eq!(other.leader().unwrap().as_deref(), Some("127.0.0.1"));
    let store = Store::lead(lease).unwrap();
    assert_eq!(other.version().unwrap(), SCHEMA_VERSION);
    store.submit(&submission("a1", "a", 1)).unwrap();
    // In the middle of what is being written.
    let transaction = store.database.begin().unwrap();
    let sql = "UPDATE runs SET began = 7";
    transaction.execute(sql, &[]).unwrap();
    cluster.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted",
    );
    assert!(matches!(transaction.commit(), Err(DatabaseError::Lost(_))));
    let refused = store.submit(&submission("a2", "a", 2));
    let lost = |error: &StoreError| matches!(error, StoreError::Database(DatabaseError::Lost(_)));
    assert!(refused.is_err_and(|error| lost(&error)));
    assert!(ended.borrow().is_some());
    let lease = led_soon(other);
    let found = Store::lead(lease).unwrap().unfinished().unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.run.as_str(), one.submission.as_ref().unwrap().began))
        .collect();
    assert_eq!(found, [("a1", None)]);
}

/// The lease for `waiting`: a backend that is ended says so before it lets
/// go of its locks.
fn led_soon(mut waiting: Session) -> Lease {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match waiting.try_lead().unwrap() {
            Taken::Leads(lease) => return lease,
            Taken::Waits(session) => waiting = session,
        }
        assert!(Instant::now() < deadline, "nobody leads");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_committed_is_on_the_disk_and_a_dead_machine_is_noticed() {
    let Some(home) = Home::postgres("") else {
        return;
    };
    // Whatever the database's own settings are.
    let Home::Postgres(server, cluster) = &home else {
        panic!("PostgreSQL");
    };
    for setting in ["synchronous_commit = off", "statement_timeout = 1"] {
        cluster.execute(&format!("ALTER DATABASE {} SET {setting}", server.database));
    }
    let store = home.store();
    for (sql, wanted) in [
        ("SELECT current_setting('synchronous_commit')", "on"),
        ("SELECT current_setting('statement_timeout')", "0"),
        ("SELECT current_setting('tcp_keepalives_idle')", "5"),
        ("SELECT current_setting('tcp_keepalives_interval')", "2"),
        ("SELECT current_setting('tcp_keepalives_count')", "3"),
        ("SELECT current_setting('tcp_user_timeout')", "10000"),
    ] {
        let found: String = store
            .database
            .row(sql, &[])
            .unwrap()
            .unwrap()
            .take(0)
            .unwrap();
        assert_eq!(found, wanted, "{sql}");
    }
}

#[test]
fn a_database_that_cannot_hold_the_store_is_refused_by_what_is_wrong() {
    let latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    let Some(Home::Postgres(latin, cluster)) = Home::postgres(latin) else {
        return;
    };
    let opened = |server: &Server| Store::lead(taken(server)).err().unwrap();
    let error = opened(&latin);
    let of_encoding = |found: &str| found == "LATIN1";
    assert!(
        matches!(&error, StoreError::Database(DatabaseError::Encoding(found)) if of_encoding(found))
    );
    let Some(Home::Postgres(server, _)) = Home::postgres("") else {
        panic!("PostgreSQL has gone");
    };
    cluster.execute("CREATE ROLE guest LOGIN PASSWORD 'secret'");
    let guest = Server {
        user: "guest".to_owned(),
        ..server.clone()
    };
    let error = opened(&guest);
    assert!(matches!(
        &error,
        StoreError::Database(DatabaseError::NoRight(_))
    ));
    let nobody = Server {
        user: "nobody".to_owned(),
        ..server.clone()
    };
    let refused = Session::connect(&nobody).err().unwrap();
    assert!(matches!(
        refused,
        DatabaseError::Connect(ConnectError::Refused(_))
    ));
    let elsewhere = Server { port: 1, ..server };
    let away = Session::connect(&elsewhere).err().unwrap();
    assert!(matches!(
        away,
        DatabaseError::Connect(ConnectError::Away(_))
    ));
}

/// PostgreSQL has no text with a zero in it, and a failure of PostgreSQL ends the coordinator.
#[test]
fn no_job_and_no_study_has_a_zero_in_its_text() {
    for text in ["# \0\n", "title = \"\0\"\n", "\0"] {
        assert!(Job::parse(&format!("{text}{JOB}")).is_err(), "{text:?}");
        let error = Study::parse(text).err().map(|error| error.to_string());
        assert!(
            error.is_some_and(|error| error.contains("no valid TOML")),
            "{text:?}"
        );
    }
}
