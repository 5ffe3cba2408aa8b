//! A way to the coordinator that can be broken, and that leads to whichever of several coordinators listens.

#![allow(clippy::unwrap_used)] // what fails here is the machine

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A way to the coordinator that can be broken.
pub struct Relay {
    /// Where it listens, on loopback.
    pub port: u16,
    line: Arc<Line>,
}

struct Line {
    /// Where coordinators may listen. The first that does is called.
    targets: Mutex<Vec<u16>>,
    /// Whether nothing passes, though no side hears that the line is gone.
    is_silent: AtomicBool,
    /// Milliseconds that each part waits.
    delay: AtomicU64,
    ends: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// One at this port to the first of these that listens.
    pub fn to(port: u16, targets: &[u16]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let line = Arc::new(Line {
            targets: Mutex::new(targets.to_vec()),
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

    /// Calls others from now on.
    pub fn turn_to(&self, targets: &[u16]) {
        *self.line.targets.lock().unwrap() = targets.to_vec();
    }

    /// Ends every connection at once.
    pub fn cut(&self) {
        for end in self.line.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// Lets nothing pass, or all again.
    pub fn be_silent(&self, is_silent: bool) {
        self.line.is_silent.store(is_silent, Ordering::Relaxed);
    }

    /// Has each part wait.
    pub fn delay(&self, milliseconds: u64) {
        self.line.delay.store(milliseconds, Ordering::Relaxed);
    }
}

impl Line {
    fn join(self: &Arc<Self>, caller: TcpStream) {
        let targets = self.targets.lock().unwrap().clone();
        let call = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        let Some(called) = targets.into_iter().find_map(call) else {
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
