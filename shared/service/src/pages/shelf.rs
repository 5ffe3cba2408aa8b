//! What is remembered between two requests: who is visiting, and what a program keeps for them. It is in memory alone, has a bound, and ends.

use crate::chain::hexadecimal;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Visitors who are known at once; of more the one who was away longest is forgotten.
const SESSIONS_MAX: usize = 1_000;
/// A visitor who was away so long is forgotten.
const SESSION_ENDS: Duration = Duration::from_secs(12 * 3_600);

/// Sixteen bytes that nobody can guess, hexadecimal.
///
/// # Errors
/// Where the system has none.
pub fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hexadecimal(&bytes))
}

/// Whether two secrets are the same, in a time that says nothing about where they differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differences == 0
}

/// Things under random names: of more than a bound the one that was used longest ago goes, and what nobody uses ends.
pub struct Shelf<T> {
    things: HashMap<String, (Instant, T)>,
    most: usize,
    ends: Duration,
}

impl<T> Shelf<T> {
    /// An empty one: of so many things at most, each of which ends when nobody has used it for so long.
    #[must_use]
    pub fn new(most: usize, ends: Duration) -> Self {
        Self {
            things: HashMap::new(),
            most,
            ends,
        }
    }

    /// Keeps a thing; gives its name.
    ///
    /// # Errors
    /// Where there is nothing random.
    pub fn keep(&mut self, thing: T) -> io::Result<String> {
        self.forget();
        while self.things.len() >= self.most {
            let used = |(name, (used, _)): (&String, &(Instant, T))| (*used, name.clone());
            let Some((_, oldest)) = self.things.iter().map(used).min() else {
                break;
            };
            self.things.remove(&oldest);
        }
        let name = random()?;
        self.things.insert(name.clone(), (Instant::now(), thing));
        Ok(name)
    }

    /// The thing of this name, which is used now.
    pub fn get(&mut self, name: &str) -> Option<&mut T> {
        self.forget();
        let (used, thing) = self.things.get_mut(name)?;
        *used = Instant::now();
        Some(thing)
    }

    fn forget(&mut self) {
        let ends = self.ends;
        self.things.retain(|_, (used, _)| used.elapsed() < ends);
    }
}

/// Somebody's browser.
pub(super) struct Session {
    /// What each of its forms carries.
    pub(super) token: String,
    /// The user, as the proxy names them.
    pub(super) user: Option<String>,
}

/// All browsers that are known.
pub(super) fn sessions() -> Shelf<Session> {
    Shelf::new(SESSIONS_MAX, SESSION_ENDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shelf_has_a_bound_and_what_nobody_uses_ends() {
        let mut shelf = Shelf::new(2, Duration::from_secs(60));
        let first = shelf.keep(1).unwrap();
        let second = shelf.keep(2).unwrap();
        assert_eq!(shelf.get(&first), Some(&mut 1));
        let third = shelf.keep(3).unwrap();
        // The second was used longest ago.
        assert_eq!(shelf.get(&second), None);
        assert_eq!((shelf.get(&first), second.len()), (Some(&mut 1), 32));
        shelf.ends = Duration::ZERO;
        assert_eq!(shelf.get(&third), None);
        assert!(shelf.things.is_empty());
    }

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_same("abc", "abc") && !is_same("abc", "abd"));
        assert!(!is_same("abc", "ab") && !is_same("", "a"));
    }
}
