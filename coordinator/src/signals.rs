//! The ways in which a person or a supervisor says stop.

use std::io;
use tokio::io::AsyncReadExt;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the moment it is made, so that no early Ctrl-C is lost.
pub struct StopSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl StopSignals {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {},
            _ = self.terminate.recv() => {},
        }
        #[cfg(not(unix))]
        {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

/// Waits until standard input closes.
pub async fn stdin_closed() {
    let mut rest = [0_u8; 64];
    let mut input = tokio::io::stdin();
    while input.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
}
