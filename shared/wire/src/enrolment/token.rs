//! The token by which a party gets its certificate once.

use crate::connection::dial::Address;
use crate::identity::Identity;
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a token begins with: its version.
const VERSION: &str = "kindred1";
/// Bytes of a secret.
const SECRET_BYTES: usize = 16;

/// Known to the token's party alone.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; SECRET_BYTES]);

/// All that a party needs to enrol, as one word.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The party that the certificate will name.
    pub identity: Identity,
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// Where certificates are signed.
    pub enrolment: Address,
    /// Until when it is good, by the authority's clock.
    pub until: SystemTime,
    /// SHA-256 of the authority's certificate.
    pub(crate) authority: [u8; 32],
    /// What the authority knows the caller by.
    pub(crate) secret: Secret,
}

/// A text that is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "found a token without {wanted}, wanted the whole word that `certificates invite` printed, from {VERSION}/ to its end"
)]
pub struct TokenError {
    /// The part that is missing or wrong.
    pub wanted: &'static str,
}

impl Secret {
    /// A new one; none where the system has no random numbers.
    pub(crate) fn new() -> Option<Self> {
        let mut bytes = [0; SECRET_BYTES];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// SHA-256, which the authority keeps.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

impl Token {
    /// Parses a token.
    ///
    /// # Errors
    /// [`TokenError`] says what is missing, never what was found.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let missing = |wanted| TokenError { wanted };
        let parts: Vec<&str> = text.trim().split('/').collect();
        let [
            version,
            role,
            name,
            coordinator,
            port,
            until,
            authority,
            secret,
        ] = parts[..]
        else {
            return Err(missing("its eight parts"));
        };
        if version != VERSION {
            return Err(missing("the version of this program"));
        }
        let identity = Identity::named(role, name).map_err(|_| missing("a role and a name"))?;
        let coordinator = Address::new(coordinator).map_err(|_| missing("an address"))?;
        let port: u16 = port.parse().map_err(|_| missing("a port"))?;
        let seconds: u32 = until.parse().map_err(|_| missing("an end"))?;
        Ok(Self {
            identity,
            enrolment: coordinator.with_port(port),
            coordinator,
            until: UNIX_EPOCH + Duration::from_secs(seconds.into()),
            authority: digits(authority).ok_or_else(|| missing("the authority's fingerprint"))?,
            secret: Secret(digits(secret).ok_or_else(|| missing("its secret"))?),
        })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.duration_since(UNIX_EPOCH).unwrap_or_default();
        write!(
            formatter,
            "{VERSION}/{}/{}/{}/{}/{}/{}",
            self.identity,
            self.coordinator,
            self.enrolment.port(),
            until.as_secs(),
            hexadecimal(&self.authority),
            hexadecimal(&self.secret.0)
        )
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Token({})", self.identity)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// So many bytes of hexadecimal digits.
fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|one| one.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, place) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(place..place + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token {
            identity: Identity::named("site", "north").unwrap(),
            coordinator: Address::new("[::1]:7443").unwrap(),
            enrolment: Address::new("[::1]:7444").unwrap(),
            until: UNIX_EPOCH + Duration::from_secs(1_800_000_000),
            authority: [0xab; 32],
            secret: Secret([7; SECRET_BYTES]),
        }
    }

    #[test]
    fn a_token_is_one_word_that_reads_back() {
        let text = token().to_string();
        assert!(text.starts_with("kindred1/site/north/[::1]:7443/7444/1800000000/abab"));
        assert_eq!(Token::parse(&format!(" {text}\n")), Ok(token()));
        assert!(!text.contains(char::is_whitespace));
    }

    /// A copied token loses its end more often than anything else.
    #[test]
    fn what_is_missing_is_said_and_the_secret_is_in_no_message() {
        let text = token().to_string();
        for length in 0..text.len() {
            let error = Token::parse(&text[..length]).unwrap_err().to_string();
            assert!(!error.contains("0707"), "{error}");
        }
        let wrong = [
            ("kindred1", "kindred9", "version"),
            ("site", "guest", "role"),
            ("7444", "74444", "port"),
            ("abab", "xyab", "fingerprint"),
        ];
        for (from, to, wanted) in wrong {
            let error = Token::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.wanted.contains(wanted), "{error}");
        }
        assert!(!format!("{:?} {:?}", token(), token().secret).contains("07"));
    }
}
