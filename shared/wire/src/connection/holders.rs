//! Open connections by who holds them: few of one identity, none of a revoked certificate.

use crate::connection::fault::Fault;
use crate::connection::transport::CONNECTIONS_PER_IDENTITY_MAX;
use crate::identity::Serial;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The open connections of one port.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    revoked: BTreeSet<Serial>,
    /// By number, so the oldest first.
    open: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    holder: String,
    serial: Serial,
    cut: oneshot::Sender<Fault>,
}

/// An open connection's place, which is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    holders: Arc<Holders>,
}

impl Holders {
    /// A place for a connection; the second value is ready once the connection has to end. None where the certificate
    /// was revoked.
    pub(crate) fn enter(
        self: &Arc<Self>,
        holder: String,
        serial: Serial,
    ) -> Option<(Place, oneshot::Receiver<Fault>)> {
        let mut state = self.lock();
        if state.revoked.contains(&serial) {
            return None;
        }
        let own: Vec<u64> = state
            .open
            .iter()
            .filter(|(_, connection)| connection.holder == holder)
            .map(|(number, _)| *number)
            .collect();
        if own.len() >= CONNECTIONS_PER_IDENTITY_MAX {
            state.cut(own[0], Fault::Crowded);
        }
        let (cut, ends) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        let connection = Connection {
            holder,
            serial,
            cut,
        };
        state.open.insert(number, connection);
        let holders = Arc::clone(self);
        Some((Place { number, holders }, ends))
    }

    /// Ends every connection of these certificates, now and in future.
    pub(crate) fn revoke(&self, serials: BTreeSet<Serial>) {
        let mut state = self.lock();
        let gone: Vec<u64> = state
            .open
            .iter()
            .filter(|(_, connection)| serials.contains(&connection.serial))
            .map(|(number, _)| *number)
            .collect();
        for number in gone {
            state.cut(number, Fault::Revoked);
        }
        state.revoked = serials;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn cut(&mut self, number: u64, fault: Fault) {
        if let Some(connection) = self.open.remove(&number) {
            tracing::warn!(holder = connection.holder, %fault, "ended a connection");
            // Nobody listens where the connection has ended by itself.
            let _ = connection.cut.send(fault);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.holders.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_an_identity_ends_where_it_has_too_many() {
        let holders = Arc::new(Holders::default());
        let enter = |holder: &str| holders.enter(holder.to_owned(), vec![1]).unwrap();
        let mut places: Vec<_> = (0..=CONNECTIONS_PER_IDENTITY_MAX)
            .map(|_| enter("site/north"))
            .collect();
        let mut other = enter("site/south");
        assert!(matches!(places[0].1.try_recv(), Ok(Fault::Crowded)));
        assert!(places[1].1.try_recv().is_err() && other.1.try_recv().is_err());
        assert_eq!(holders.lock().open.len(), CONNECTIONS_PER_IDENTITY_MAX + 1);
        drop((places, other));
        assert!(holders.lock().open.is_empty());
    }

    #[test]
    fn a_revoked_certificate_ends_and_does_not_come_back() {
        let holders = Arc::new(Holders::default());
        let mut one = holders.enter("site/north".to_owned(), vec![1]).unwrap();
        let mut other = holders.enter("site/north".to_owned(), vec![2]).unwrap();
        holders.revoke(BTreeSet::from([vec![1]]));
        assert!(matches!(one.1.try_recv(), Ok(Fault::Revoked)));
        assert!(other.1.try_recv().is_err());
        assert!(holders.enter("site/north".to_owned(), vec![1]).is_none());
        assert!(holders.enter("site/north".to_owned(), vec![2]).is_some());
    }
}
