//! The certificates of an authority, as whoever keeps it looks at them.

use serde::{Serialize, Serializer};
use service::expiry::Left;
use std::fmt;
use std::time::SystemTime;
use time::OffsetDateTime;
use wire::certificates::Issued;
use wire::enrolment::Token;

/// A token, as whoever keeps the authority hands it on.
#[derive(Debug, Serialize)]
pub struct Invited {
    #[serde(serialize_with = "in_words")]
    token: Token,
    party: String,
    /// The last second, in seconds since 1970.
    expires: u64,
}

impl Invited {
    /// Of a token.
    #[must_use]
    pub fn of(token: &Token) -> Self {
        let since = token.until.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            token: token.clone(),
            party: token.identity.to_string(),
            expires: since.unwrap_or_default().as_secs(),
        }
    }
}

impl fmt::Display for Invited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.token.fmt(formatter)
    }
}

/// As it is printed; what a log shows of a token has no secret.
fn in_words<S: Serializer>(token: &Token, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(token)
}

/// All of them, by party.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct IssuedCertificates(Vec<One>);

#[derive(Debug, Serialize)]
struct One {
    party: String,
    /// The last day, UTC.
    valid_until: String,
    /// Whole days; none of one that has ended or was revoked.
    days_left: Option<u64>,
    status: &'static str,
}

impl IssuedCertificates {
    /// As they are at that moment.
    #[must_use]
    pub fn new(issued: &[Issued], now: SystemTime) -> Self {
        let one = |issued: &Issued| {
            let (status, days_left) = match Left::of(issued.until, now) {
                _ if issued.is_revoked => ("revoked", None),
                Left::Enough(days) => ("valid", Some(days)),
                Left::Few(days) => ("ends soon", Some(days)),
                Left::Nothing => ("ended", None),
            };
            One {
                party: issued.party.clone(),
                valid_until: OffsetDateTime::from(issued.until).date().to_string(),
                days_left,
                status,
            }
        };
        Self(issued.iter().map(one).collect())
    }
}

impl fmt::Display for IssuedCertificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.0.iter().map(|one| one.party.len());
        let width = lengths.max().unwrap_or_default().max("PARTY".len());
        write!(
            formatter,
            "{:<width$}  VALID UNTIL  DAYS LEFT  STATUS",
            "PARTY"
        )?;
        for one in &self.0 {
            let days = one
                .days_left
                .map_or("-".to_owned(), |days| days.to_string());
            let (party, until, status) = (&one.party, &one.valid_until, one.status);
            write!(
                formatter,
                "\n{party:<width$}  {until:<11}  {days:>9}  {status}"
            )?;
        }
        Ok(())
    }
}
