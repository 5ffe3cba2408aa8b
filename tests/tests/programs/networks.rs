//! Promise: lines that are cut, fall silent or are slow, a coordinator that has moved, and a proxy on the way change no bit of a run.

use crate::hindered::{in_rounds, metric, opened};
use kindred_tests::deployment::{Deployment, SITES, free_port};
use kindred_tests::exit::CONNECTION;
use kindred_tests::programs::{PATIENCE, until};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A line that is silent is noticed by then.
const NOTICED: Duration = Duration::from_secs(12);

/// A way to the coordinator that can be broken.
struct Relay {
    port: u16,
    line: Arc<Line>,
}

struct Line {
    /// Where the coordinator listens.
    target: AtomicU16,
    /// Whether nothing passes, though no side hears that the line is gone.
    is_silent: AtomicBool,
    /// Milliseconds that each part waits.
    delay: AtomicU64,
    ends: Mutex<Vec<TcpStream>>,
}

impl Relay {
    fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::new(Line {
            target: AtomicU16::new(target),
            is_silent: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            ends: Mutex::new(Vec::new()),
        });
        let own = Arc::clone(&line);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                own.join(caller);
            }
        });
        Self { port, line }
    }

    /// Ends every connection at once.
    fn cut(&self) {
        for end in self.line.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn be_silent(&self, is_silent: bool) {
        self.line.is_silent.store(is_silent, Ordering::Relaxed);
    }

    fn delay(&self, milliseconds: u64) {
        self.line.delay.store(milliseconds, Ordering::Relaxed);
    }
}

impl Line {
    fn join(self: &Arc<Self>, caller: TcpStream) {
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, self.target.load(Ordering::Relaxed)));
        let Ok(called) = TcpStream::connect(target) else {
            return;
        };
        let again = |stream: &TcpStream| stream.try_clone().unwrap();
        let both = [again(&caller), again(&called)];
        self.ends.lock().unwrap().extend(both);
        let ways = [(again(&caller), again(&called)), (called, caller)];
        for (from, to) in ways {
            let line = Arc::clone(self);
            thread::spawn(move || line.pass(from, to));
        }
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16_384];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            thread::sleep(Duration::from_millis(self.delay.load(Ordering::Relaxed)));
            while self.is_silent.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(20));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Four hospitals of an open study, whose lines and the operator's go through a relay.
fn behind_a_relay() -> (Deployment, Relay) {
    let mut deployment = Deployment::alone();
    let port = deployment.port();
    let relay = Relay::to(port);
    for party in SITES.into_iter().chain(["operator"]) {
        let file = format!("{party}.toml");
        let text = fs::read_to_string(deployment.home.join(&file)).unwrap();
        let (direct, around) = (format!(":{port}\""), format!(":{}\"", relay.port));
        assert!(text.contains(&direct), "{text}");
        deployment
            .home
            .write(&file, &text.replace(&direct, &around));
    }
    SITES.iter().for_each(|site| deployment.start_agent(site));
    (opened(deployment), relay)
}

#[test]
fn lines_that_are_cut_fall_silent_or_are_slow_change_no_bit_of_a_run() {
    let (deployment, relay) = behind_a_relay();
    let (wanted, run) = in_rounds(&deployment);
    let mut watch = deployment.watch(&run);
    relay.cut();
    watch.until("the sites to be back", |run| {
        run.sites_connected == 4 && run.course.round > 20
    });
    let silent = Instant::now();
    relay.be_silent(true);
    watch.within(NOTICED, "the silence is noticed", |run| {
        run.sites_connected == 0
    });
    println!("noticed after {:.1} s", silent.elapsed().as_secs_f64());
    relay.be_silent(false);
    relay.delay(15);
    let slow = watch.until("the sites to be back", |run| run.sites_connected == 4);
    watch.until_round(slow.course.round + 3);
    relay.delay(0);
    assert!(metric(&deployment, &run) == wanted, "other bits");
}

#[test]
fn a_coordinator_that_has_moved_is_found_again_behind_the_same_name() {
    let (mut deployment, relay) = behind_a_relay();
    let (wanted, run) = in_rounds(&deployment);
    deployment.kill_coordinator();
    let (before, now) = (deployment.port(), free_port());
    let text = fs::read_to_string(deployment.home.join("coordinator.toml")).unwrap();
    let moved = text.replace(&format!(":{before}\""), &format!(":{now}\""));
    assert_ne!(moved, text);
    deployment.home.write("coordinator.toml", &moved);
    fs::rename(
        deployment.home.join("coordinator"),
        deployment.home.join("moved"),
    )
    .unwrap();
    let moved = moved.replace("folder = \"coordinator\"", "folder = \"moved\"");
    deployment.home.write("coordinator.toml", &moved);
    deployment.start_coordinator();
    relay.line.target.store(now, Ordering::Relaxed);
    assert!(metric(&deployment, &run) == wanted, "other bits");
}

#[test]
fn a_hospital_and_an_operator_reach_their_coordinator_through_tinyproxy() {
    let is_there = Command::new("tinyproxy")
        .arg("-v")
        .stdout(Stdio::null())
        .status();
    if is_there.is_err() {
        println!("skipped: found no tinyproxy; Debian's package is tinyproxy");
        return;
    }
    let mut deployment = Deployment::alone();
    let (port, log) = (free_port(), deployment.home.join("tinyproxy.log"));
    let log = log.display();
    let settings = format!(
        "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nLogFile \"{log}\"\nLogLevel Connect\nTimeout 600\n"
    );
    deployment.home.write("tinyproxy.conf", &settings);
    let mut proxy = Command::new("tinyproxy")
        .args(["-d", "-c"])
        .arg(deployment.home.join("tinyproxy.conf"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("tinyproxy to listen", PATIENCE, || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
    });
    let text = fs::read_to_string(deployment.home.join("north.toml")).unwrap();
    let around = format!("[proxy]\naddress = \"127.0.0.1:{port}\"\n\n[source]");
    deployment
        .home
        .write("north.toml", &text.replace("[source]", &around));
    SITES.iter().for_each(|site| deployment.start_agent(site));
    let deployment = opened(deployment);
    let (wanted, run) = in_rounds(&deployment);
    assert!(metric(&deployment, &run) == wanted, "other bits");
    let said = fs::read_to_string(deployment.home.join("tinyproxy.log")).unwrap();
    let wanted = format!("CONNECT 127.0.0.1:{}", deployment.port());
    assert!(said.contains(&wanted), "{said}");
    // An operator goes the same way, and has no other.
    let calls = |said: &str| said.matches(&wanted).count();
    let text = fs::read_to_string(deployment.home.join("operator.toml")).unwrap();
    let around = format!("{text}\n[proxy]\naddress = \"127.0.0.1:{port}\"\n");
    deployment.home.write("operator.toml", &around);
    deployment.job(&["list"]).must_succeed();
    let after = fs::read_to_string(deployment.home.join("tinyproxy.log")).unwrap();
    assert_eq!(calls(&after), calls(&said) + 1, "{after}");
    let nobody = around.replace(&port.to_string(), &free_port().to_string());
    deployment.home.write("operator.toml", &nobody);
    deployment.job(&["list"]).must_fail(CONNECTION, &["proxy"]);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}
