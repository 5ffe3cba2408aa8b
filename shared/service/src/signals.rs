//! What a person or a supervisor can say to a running program.

use std::io;
use tokio::io::AsyncReadExt;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// End in good order.
    Stop,
    /// Read configuration, policy and certificates again.
    Reload,
}

/// Listens from the moment it is made, so that no early Ctrl-C is lost.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hangup: Signal,
    /// Whether the end of standard input says stop.
    until_stdin_closes: bool,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn listen(until_stdin_closes: bool) -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            hangup: signal(SignalKind::hangup())?,
            until_stdin_closes,
        })
    }

    /// Waits for what is said next.
    pub async fn next(&mut self) -> Heard {
        let until_stdin_closes = self.until_stdin_closes;
        let closed = async {
            match until_stdin_closes {
                true => stdin_closed().await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closed => Heard::Stop,
            heard = self.signalled() => heard,
        }
    }

    #[cfg(unix)]
    async fn signalled(&mut self) -> Heard {
        tokio::select! {
            _ = self.interrupt.recv() => Heard::Stop,
            _ = self.terminate.recv() => Heard::Stop,
            _ = self.hangup.recv() => Heard::Reload,
        }
    }

    #[cfg(not(unix))]
    async fn signalled(&mut self) -> Heard {
        let _ = tokio::signal::ctrl_c().await;
        Heard::Stop
    }
}

async fn stdin_closed() {
    let mut rest = [0_u8; 64];
    let mut input = tokio::io::stdin();
    while input.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
}
