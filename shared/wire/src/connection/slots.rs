//! Callers whose handshake is not done: few at a time, fewer of one address. Where all slots are taken, who has been
//! silent longest makes room, so that silence keeps nobody out.

use crate::connection::transport::{HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The slots of one port.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// By number, so the oldest first.
    callers: BTreeMap<u64, Caller>,
}

#[derive(Debug)]
struct Caller {
    network: IpAddr,
    has_spoken: bool,
    /// Dropped where the caller has to make room.
    _stays: oneshot::Sender<()>,
}

/// A caller's slot, which is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u64,
    slots: Arc<Slots>,
}

impl Slots {
    /// A slot for a caller; the second value is ready once the caller has to make room for another.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> (Slot, oneshot::Receiver<()>) {
        let network = network(address);
        let mut state = self.lock();
        let of_network = |caller: &&Caller| caller.network == network;
        if state.callers.values().filter(of_network).count() >= HANDSHAKES_PER_ADDRESS_MAX {
            state.make_room(|caller| caller.network == network);
        } else if state.callers.len() >= HANDSHAKES_MAX {
            state.make_room(|_| true);
        }
        let (stays, makes_room) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        let caller = Caller {
            network,
            has_spoken: false,
            _stays: stays,
        };
        state.callers.insert(number, caller);
        let slots = Arc::clone(self);
        (Slot { number, slots }, makes_room)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets go of the oldest caller among `candidates`, of a silent one if there is any.
    fn make_room(&mut self, candidates: impl Fn(&Caller) -> bool) {
        let oldest = |is_silent: bool| {
            self.callers
                .iter()
                .find(|(_, caller)| candidates(caller) && (!is_silent || !caller.has_spoken))
                .map(|(number, _)| *number)
        };
        if let Some(number) = oldest(true).or_else(|| oldest(false)) {
            self.callers.remove(&number);
        }
    }
}

impl Slot {
    /// Notes that the caller has sent its first byte.
    pub(crate) fn spoke(&self) {
        if let Some(caller) = self.slots.lock().callers.get_mut(&self.number) {
            caller.has_spoken = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().callers.remove(&self.number);
    }
}

/// What counts as one address: of IPv6 the 64 bits that one subscriber has.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => address.into(),
            None => {
                let bits = address.to_bits() >> 64 << 64;
                Ipv6Addr::from_bits(bits).into()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn the_silent_make_room_before_those_who_spoke_and_the_oldest_first() {
        let slots = Arc::new(Slots::default());
        let mut callers: Vec<_> = (0..HANDSHAKES_PER_ADDRESS_MAX)
            .map(|_| slots.enter(address(1)))
            .collect();
        callers[0].0.spoke();
        let is_gone = |caller: &mut (Slot, oneshot::Receiver<()>)| {
            caller
                .1
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Closed)
        };
        let next = slots.enter(address(1));
        let gone: Vec<bool> = callers.iter_mut().map(is_gone).collect();
        assert_eq!(gone.iter().filter(|gone| **gone).count(), 1);
        assert!(gone[1]);
        // Another address has room.
        let mut other = slots.enter(address(2));
        assert!(!is_gone(&mut other));
        assert_eq!(slots.lock().callers.len(), HANDSHAKES_PER_ADDRESS_MAX + 1);
        drop((callers, next, other));
        assert!(slots.lock().callers.is_empty());
    }

    #[test]
    fn all_addresses_together_have_a_limit() {
        let slots = Arc::new(Slots::default());
        let callers: Vec<_> = (0..=255)
            .flat_map(|last| [address(last), Ipv4Addr::new(198, 51, 100, last).into()])
            .map(|address| slots.enter(address))
            .collect();
        assert_eq!(slots.lock().callers.len(), HANDSHAKES_MAX);
        drop(callers);
    }

    #[test]
    fn one_subscriber_of_ipv6_is_one_address() {
        let same = ["2001:db8::1", "2001:db8::ffff:1:2"].map(|text| network(text.parse().unwrap()));
        assert_eq!(same[0], same[1]);
        assert_ne!(same[0], network("2001:db8:0:1::1".parse().unwrap()));
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), address(1));
    }
}
