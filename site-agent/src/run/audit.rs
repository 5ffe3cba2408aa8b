//! Works a run out again from the site's own copy: whether every question was the one that follows, whoever asked it.

use super::summing::{Keyed, Summing};
use crate::books::chain::ChainError;
use crate::books::transcript::{self, Transcript};
use crate::books::{journal, ledger};
use crate::config::SiteConfig;
use protocol::job::Job;
use protocol::message::Request;
use protocol::name::RunId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::{fmt, io};

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Audit {
    run: String,
    exchanges: u32,
    answers: u32,
    /// Exchanges of which the sum alone was heard.
    totals: u32,
    /// Digest of all that was heard.
    digest: String,
    /// Exchanges by kind.
    kinds: BTreeMap<&'static str, u32>,
}

/// A run that is not what it should be, or that cannot be worked out.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Neither the journal nor a copy knows it.
    #[error(
        "found no entry of run {run} in the journal and no copy of it, wanted a run that this site took part in"
    )]
    Unknown {
        /// The run.
        run: String,
    },
    /// There is no copy, or it cannot be read.
    #[error("the copy of run {run} cannot be read; a site keeps one of each run of sums")]
    Copy {
        /// The run.
        run: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its job cannot be read by this version.
    #[error("the job of run {run} cannot be read here: {text}")]
    Job {
        /// The run.
        run: String,
        /// Why.
        text: String,
    },
    /// Something in it does not follow from what came before.
    #[error("run {run}, exchange {exchange}: {text}")]
    Other {
        /// The run.
        run: String,
        /// The exchange.
        exchange: u32,
        /// What does not fit.
        text: String,
    },
}

/// The copy of a run. One that is gone of a run that was is another matter than a run that never was.
fn read(config: &SiteConfig, run: &RunId, never_was: bool) -> Result<Transcript, AuditError> {
    transcript::read(&config.folder, run).map_err(|source| {
        let is_absent = source.kind() == io::ErrorKind::NotFound;
        let run = run.to_string();
        match is_absent && never_was {
            true => AuditError::Unknown { run },
            false => AuditError::Copy { run, source },
        }
    })
}

/// Works out the run `run` again.
///
/// # Errors
/// [`AuditError`] names the first exchange that is not what follows.
pub fn audit(config: &SiteConfig, run: &RunId) -> Result<Audit, AuditError> {
    let books = |error: ChainError| AuditError::Other {
        run: run.to_string(),
        exchange: 0,
        text: format!("the site's books cannot be trusted: {error}"),
    };
    let told = journal::digests(&config.folder, run.as_str()).map_err(books)?;
    let copy = read(config, run, told.is_empty())?;
    let version = copy.of_another_version();
    let Transcript {
        digest,
        begin,
        closed,
        recorded_by: _,
    } = copy;
    let job = Job::parse(&begin.job).map_err(|errors| AuditError::Job {
        run: run.to_string(),
        text: errors.to_string(),
    })?;
    let secret = ledger::secret(&config.folder, "keys").map_err(books)?;
    let keyed = Keyed::read(&config.folder, &begin, &job, &digest);
    let summing =
        keyed.and_then(|keyed| Summing::new(&begin, &job, &digest, &config.site, &secret, keyed));
    let mut summing = summing.map_err(|stop| AuditError::Job {
        run: run.to_string(),
        text: stop.to_string(),
    })?;
    let own = summing.follower().own;
    let mut audit = Audit {
        run: run.to_string(),
        exchanges: 0,
        answers: 0,
        totals: 0,
        digest: String::new(),
        kinds: BTreeMap::new(),
    };
    for one in &closed {
        let exchange = one.record.exchange;
        let other = |text: String| AuditError::Other {
            run: run.to_string(),
            exchange,
            text: match &version {
                Some(version) => format!("{version} ({text})"),
                None => text,
            },
        };
        let asked = summing.follower().asked();
        let followed = summing.followed(one, config);
        followed.map_err(|refusal| other(refusal.text))?;
        audit.totals += u32::from(one.total.is_some());
        if exchange > 0 {
            audit.exchanges += 1;
            let kind = asked
                .as_ref()
                .map_or("no question to this site", Request::answer_kind);
            *audit.kinds.entry(kind).or_default() += 1;
        }
        let Some(answer) = &one.record.answers[own] else {
            continue;
        };
        if !told.contains(&(exchange, wire::digest_of(answer))) {
            let text = "what stands there as this site's answer is not in its journal";
            return Err(other(text.to_owned()));
        }
        audit.answers += 1;
    }
    audit.digest = summing.follower().heard();
    Ok(audit)
}

impl fmt::Display for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        write!(
            formatter,
            "run {}: {} exchanges ({}), each the one that follows from the job and from what the sites answered, each answer \
             signed by its site; {} answers of this site, all in its journal.",
            self.run,
            self.exchanges,
            kinds.join(", "),
            self.answers,
        )?;
        if self.totals > 0 {
            write!(
                formatter,
                " Of {} exchanges the sum alone was heard, proved by the sites' tags.",
                self.totals
            )?;
        }
        write!(
            formatter,
            " Digest of all that the sites said: {}",
            self.digest
        )
    }
}
