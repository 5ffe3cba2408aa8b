//! Promise: several coordinators share a PostgreSQL, and one of them leads. Whoever leads no more writes nothing and ends; another goes
//! on to the same bits; and nobody finds two that serve.

use crate::hindered::{METRIC, SEED, metric, opened};
use crate::service::asked;
use crate::studies::at_site;
use kindred_tests::cluster::Cluster;
use kindred_tests::deployment::{Deployment, SITES, WAITS, free_port, issue};
use kindred_tests::exit::{ELSEWHERE, LOST, USAGE};
use kindred_tests::programs::{PATIENCE, Process, Ran, Signal, coordinator, until};
use kindred_tests::relay::Relay;
use protocol::name::RunId;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

const STANDS_BY: &str = "this coordinator stands by";
const NAMES: [&str; 2] = ["first", "second"];
/// Ends the connection of whoever leads.
const CUT: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted";

/// Two coordinators with one database, behind one address.
struct Pair {
    deployment: Deployment,
    cluster: Cluster,
    /// Where each listens.
    ports: [u16; 2],
    /// Where each says how it does.
    status: [u16; 2],
    started: u32,
    relay: Relay,
}

impl Pair {
    /// Certificates, a database with TLS and configurations; none where there is no PostgreSQL. Nobody runs yet.
    fn prepare() -> Option<Self> {
        if !Cluster::is_there() {
            return None;
        }
        let deployment = Deployment::prepare();
        let home = &deployment.home;
        issue(
            home,
            &["issue", "--coordinator", "db", "--hosts", "localhost"],
        );
        let of_database = |file: &str| {
            let path = format!("certificates/coordinator-db/{file}.pem");
            fs::read_to_string(home.join(&path)).unwrap()
        };
        let cluster = Cluster::with_tls(&of_database("certificate"), &of_database("key"));
        cluster.execute("CREATE ROLE kindred LOGIN PASSWORD 'word'");
        cluster.execute("CREATE DATABASE kindred OWNER kindred");
        let password = home.write("database-password", "word\n");
        fs::set_permissions(password, Permissions::from_mode(0o600)).unwrap();
        let [ports, status] = [(); 2].map(|()| [(); 2].map(|()| free_port()));
        let known = fs::read_to_string(home.join("coordinator.toml")).unwrap();
        let listen = format!(":{}\"", deployment.port());
        for (at, name) in NAMES.into_iter().enumerate() {
            let own = known
                .replace(&listen, &format!(":{}\"", ports[at]))
                .replace("folder = \"coordinator\"", &format!("folder = \"{name}\""));
            let store = format!(
                "[store]\nkind = \"postgres\"\nhost = \"localhost\"\nport = {}\ndatabase = \"kindred\"\nuser = \"kindred\"\n\
                 password_file = \"database-password\"\nca = \"certificates/coordinator-db/ca.pem\"\n\
                 [status]\nlisten = \"127.0.0.1:{}\"\n",
                cluster.port, status[at]
            );
            home.write(&format!("{name}.toml"), &format!("{own}\n{store}"));
        }
        let relay = Relay::to(deployment.port(), &ports);
        Some(Self {
            deployment,
            cluster,
            ports,
            status,
            started: 0,
            relay,
        })
    }

    /// Starts a coordinator, with a log of its own.
    fn start(&mut self, at: usize) -> Process {
        self.started += 1;
        let name = format!("{}-{}", NAMES[at], self.started);
        let config = format!("{}.toml", NAMES[at]);
        let arguments = ["serve", "--config", &config];
        self.deployment
            .home
            .start(&name, &coordinator(), &arguments)
    }

    /// One that leads, one that stands by, and hospitals with an open study.
    fn open(mut self) -> (Self, Process, Process) {
        let mut first = self.start(0);
        first.wait_for(WAITS);
        let mut second = self.start(1);
        second.wait_for(STANDS_BY);
        for site in SITES {
            self.deployment.start_agent(site);
        }
        self.deployment = opened(self.deployment);
        (self, first, second)
    }

    /// What a run learns undisturbed, and one of the same job in the middle of its rounds, which are slow.
    fn in_rounds(&self) -> (Vec<u8>, RunId) {
        let undisturbed = self.deployment.submit(METRIC, &SEED);
        let wanted = metric(&self.deployment, &undisturbed);
        self.relay.delay(40);
        let again = [&SEED[..], &["--token", "again"]].concat();
        let run = self.deployment.submit(METRIC, &again);
        self.deployment.watch(&run).until_round(3);
        (wanted, run)
    }

    fn health(&self, at: usize) -> String {
        asked(self.status[at], "/health")
    }

    /// A command of a coordinator's own machine.
    fn run(&self, at: usize, words: &[&str]) -> Ran {
        let config = format!("{}.toml", NAMES[at]);
        let all = [words, &["--config", &config]].concat();
        self.deployment.home.run(&coordinator(), &all)
    }

    fn must_be_closed(&self, at: usize) {
        let called = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports[at]));
        assert!(called.is_err(), "one that stands by listens");
    }
}

#[test]
fn a_leader_that_is_killed_in_a_run_hands_it_to_the_other_and_back_with_the_same_bits() {
    let Some(pair) = Pair::prepare() else { return };
    let (mut pair, first, mut second) = pair.open();
    let waiting = pair.health(1);
    assert!(
        waiting.contains("503") && waiting.contains("stands by: another coordinator leads"),
        "{waiting}"
    );
    pair.must_be_closed(1);
    let (wanted, run) = pair.in_rounds();
    first.kill();
    second.wait_for(WAITS);
    second.wait_for("a run goes on");
    assert!(pair.health(1).contains("200 OK"));
    let seen = pair.deployment.watch(&run).until_round(8);
    // The old leader is back, and leads only where the other has gone.
    let mut again = pair.start(0);
    again.wait_for(STANDS_BY);
    assert!(pair.health(0).contains("another coordinator leads"));
    pair.must_be_closed(0);
    second.kill();
    again.wait_for(WAITS);
    pair.deployment
        .watch(&run)
        .until_round(seen.course.round + 1);
    pair.relay.delay(0);
    assert!(metric(&pair.deployment, &run) == wanted, "other bits");
    for site in SITES {
        at_site(&pair.deployment, site, &["audit", "demo"]).must_succeed();
    }
}

#[test]
fn a_database_that_stops_ends_the_leader_and_the_run_goes_on_once_it_is_back() {
    let Some(pair) = Pair::prepare() else { return };
    let (mut pair, mut first, mut second) = pair.open();
    let (wanted, run) = pair.in_rounds();
    pair.cluster.stop();
    assert_eq!(first.wait(), Some(LOST));
    assert!(first.log().contains("with it the lease"), "{}", first.log());
    // As a supervisor does.
    let mut again = pair.start(0);
    for (at, process) in [&mut again, &mut second].into_iter().enumerate() {
        process.wait_for("a database that cannot be reached");
        assert!(pair.health(at).contains("503"));
        pair.must_be_closed(at);
    }
    pair.cluster.go_on();
    pair.relay.delay(0);
    let leads = |process: &Process| process.log().contains(WAITS);
    until("one to lead", PATIENCE, || {
        (leads(&again) || leads(&second)).then_some(())
    });
    assert!(metric(&pair.deployment, &run) == wanted, "other bits");
    assert!(again.ended().is_none() && second.ended().is_none());
    assert!(leads(&again) != leads(&second), "both serve");
}

#[test]
fn of_two_that_start_at_once_one_serves_and_the_other_obeys_while_it_waits() {
    let Some(mut pair) = Pair::prepare() else {
        return;
    };
    for _ in 0..4 {
        let mut both = [pair.start(0), pair.start(1)];
        let is = |process: &Process, text: &str| process.log().contains(text);
        until("one to lead and one to wait", PATIENCE, || {
            let of = |text: &str| both.iter().filter(|one| is(one, text)).count();
            assert!(of(WAITS) < 2, "both serve");
            (of(WAITS) == 1 && of(STANDS_BY) == 1).then_some(())
        });
        // Whoever waits ends first: the other goes on, and lets go of the lease when it ends.
        both.sort_by_key(|one| is(one, WAITS));
        for process in &mut both {
            process.signal(Signal::Hangup);
            process.wait_for("are read again when they change");
            process.signal(Signal::Terminate);
            assert_eq!(process.wait(), Some(0));
            assert!(is(process, "stopping, as asked"));
        }
        assert!(!is(&both[0], WAITS), "it led after all");
    }
}

#[test]
fn systemd_hears_who_stands_by_and_who_leads() {
    let Some(mut pair) = Pair::prepare() else {
        return;
    };
    let mut first = pair.start(0);
    first.wait_for(WAITS);
    let home = &pair.deployment.home;
    let path = home.join("notified");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let until_heard = |wanted: &str| {
        let mut state = [0; 256];
        loop {
            let length = socket.recv(&mut state).expect("systemd hears something");
            if String::from_utf8_lossy(&state[..length]).contains(wanted) {
                return;
            }
        }
    };
    let log = fs::File::create(home.join("notifying.log")).unwrap();
    let mut second = home
        .command(&coordinator())
        .args(["serve", "--config", "second.toml"])
        .env("NOTIFY_SOCKET", &path)
        .stderr(log)
        .spawn()
        .unwrap();
    until_heard("STATUS=stands by: another coordinator leads");
    until_heard("READY=1");
    first.kill();
    until_heard("STATUS=leads");
    until_heard("READY=1");
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn a_leader_whose_connection_is_cut_ends_and_the_other_goes_on_to_the_same_bits() {
    let Some(pair) = Pair::prepare() else { return };
    let (pair, mut first, mut second) = pair.open();
    let (wanted, run) = pair.in_rounds();
    pair.cluster.execute(CUT);
    assert_eq!(first.wait(), Some(LOST));
    assert!(first.log().contains("with it the lease"), "{}", first.log());
    second.wait_for("a run goes on");
    pair.relay.delay(0);
    assert!(metric(&pair.deployment, &run) == wanted, "other bits");
    // One that does nothing notices as well.
    pair.cluster.execute(CUT);
    assert_eq!(second.wait(), Some(LOST));
}

#[test]
fn commands_say_what_is_in_the_database_and_what_is_not() {
    let Some(pair) = Pair::prepare() else { return };
    let looked = pair.run(0, &["doctor"]);
    let unmade = "database kindred at localhost:";
    let made = "TLS, tables are made at the first start; no coordinator leads";
    assert!(looked.stdout.contains(unmade) && looked.stdout.contains(made));
    let (mut pair, first, second) = pair.open();
    let (wanted, run) = pair.in_rounds();
    let doctor = |at: usize| pair.run(at, &["doctor"]).must_succeed().stdout;
    for at in [0, 1] {
        let found = doctor(at);
        assert!(
            found.contains("; the coordinator at 127.0.0.1 leads"),
            "{found}"
        );
    }
    assert!(doctor(1).contains("is closed while another coordinator leads"));
    let not_here = "the runs are in the database kindred at localhost:";
    pair.run(0, &["backup", "--out", "copy"])
        .must_fail(ELSEWHERE, &[not_here, "pg_dump"]);
    let dump = pair.cluster.dump("kindred");
    pair.relay.delay(0);
    first.kill();
    let mut second = second;
    second.wait_for(WAITS);
    pair.run(0, &["restore", "copy"])
        .must_fail(USAGE, &["a coordinator that leads on the database"]);
    second.kill();
    pair.deployment
        .home
        .run(
            &coordinator(),
            &[
                "restore",
                "copy",
                "--latest",
                "--config",
                "coordinator.toml",
            ],
        )
        .must_fail(USAGE, &["whose runs are in a database"]);
    pair.cluster.restore("kindred", "kindred", &dump);
    let restored = pair.run(0, &["restore", "copy"]).must_succeed();
    assert!(restored.stderr.contains(run.as_str()) && restored.stderr.contains("submit it again"));
    let mut first = pair.start(0);
    first.wait_for(WAITS);
    let shown = pair.deployment.job(&["show", run.as_str()]).must_succeed();
    assert!(shown.stdout.contains("KDR-STOPPED"), "{}", shown.stdout);
    let after = [&SEED[..], &["--token", "after"]].concat();
    let after = pair.deployment.submit(METRIC, &after);
    assert!(metric(&pair.deployment, &after) == wanted, "other bits");
    let config = fs::read_to_string(pair.deployment.home.join("first.toml")).unwrap();
    let mistyped = config.replace("database = ", "databse = ");
    let mistyped = mistyped.replace("port = ", "port = 0 #");
    pair.deployment.home.write("mistyped.toml", &mistyped);
    let words = ["serve", "--config", "mistyped.toml"];
    pair.deployment
        .home
        .run(&coordinator(), &words)
        .must_fail(USAGE, &["did you mean \"database\"", "store.port: found 0"]);
    let refused = config.replace("user = \"kindred\"", "user = \"nobody\"");
    pair.deployment.home.write("refused.toml", &refused);
    let looked = pair
        .deployment
        .home
        .run(&coordinator(), &["doctor", "--config", "refused.toml"]);
    let found = looked.must_fail(1, &[]).stdout;
    assert!(found.contains("PROBLEM  database"), "{found}");
}
