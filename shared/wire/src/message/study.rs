//! What is said of studies: approvals, how they opened, and where they stand.

use crate::encoding::values::{at_most, each, malformed, present, run_id, sentence};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::covered::{encapsulations, encapsulations_to_proto};
use crate::message::covered::{introduction, introduction_to_proto};
use crate::message::moments::{histogram, histogram_to_proto};
use crate::message::to_site::{warrant, warrant_to_proto};
use prost::Message as _;
use protocol::limits::{FEATURES_MAX, OUTCOMES_MAX, PARTS_MAX, SITES_MAX};
use protocol::message::{ColumnHistogram, Waiting};
use protocol::name::SiteName;
use protocol::opening::Opening;
use protocol::study::{Approval, HospitalState, SignedApproval, Standing, StudyName, StudyState};
use protocol::time::Timestamp;
use time::Date;
use time::macros::format_description;

/// Runs of a study that wait, at most.
const WAITING_MAX: usize = 1_000;
/// Digits of a SHA-256.
const DIGITS: usize = 64;

pub(crate) fn approved_to_proto(approved: SignedApproval) -> pb::Approved {
    let word = Some(warrant_to_proto(approved.word));
    pb::Approved {
        word,
        ..approval_to_proto(approved.approval)
    }
}

fn approval_to_proto(approval: Approval) -> pb::Approved {
    pb::Approved {
        study: approval.study,
        digest: approval.digest,
        commitment: approval.commitment,
        patients_at_most: approval.patients_at_most,
        approved: approval.approved.0,
        word: None,
    }
}

pub(crate) fn approved(mut found: pb::Approved) -> Result<SignedApproval, WireError> {
    let word = present("a signature", found.word.take())?;
    Ok(SignedApproval {
        word: warrant(word)?,
        approval: approval(found)?,
    })
}

fn approval(found: pb::Approved) -> Result<Approval, WireError> {
    Ok(Approval {
        study: study_name(&found.study)?.to_string(),
        digest: digest("the digest of a study", found.digest)?,
        commitment: digest("a commitment", found.commitment)?,
        patients_at_most: found.patients_at_most,
        approved: Timestamp(found.approved),
    })
}

/// The name of a study.
pub(crate) fn study_name(found: &str) -> Result<StudyName, WireError> {
    StudyName::new(found).map_err(|source| WireError::Name {
        field: "a study",
        source,
    })
}

pub(crate) fn digest(field: &'static str, found: String) -> Result<String, WireError> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match found.len() == DIGITS && found.bytes().all(is_digit) {
        true => Ok(found),
        false => Err(WireError::Unexpected {
            found: format!("another text as {field}"),
            wanted: format!("{DIGITS} hexadecimal digits"),
        }),
    }
}

/// An approval as one record, for the coordinator's store.
#[must_use]
pub fn encode_approved(found: &SignedApproval) -> Vec<u8> {
    approved_to_proto(found.clone()).encode_to_vec()
}

/// The approval of a record.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_approved(record: &[u8]) -> Result<SignedApproval, WireError> {
    let found = pb::Approved::decode(record).map_err(|error| malformed("an approval", &error))?;
    approved(found)
}

/// An opening as one record, for whoever keeps it.
#[must_use]
pub fn encode_opening(opening: &Opening) -> Vec<u8> {
    let Opening {
        run,
        digest,
        introductions,
        encapsulations,
        left_out,
        counts,
    } = opening.clone();
    let of_outcome = |own: Vec<ColumnHistogram>| pb::HistogramsChunk {
        histograms: own.iter().map(histogram_to_proto).collect(),
    };
    let found = pb::Opening {
        run: run.as_str().to_owned(),
        digest,
        introductions: introductions
            .into_iter()
            .map(introduction_to_proto)
            .collect(),
        encapsulations: encapsulations
            .into_iter()
            .map(encapsulations_to_proto)
            .collect(),
        left_out,
        counts: counts.into_iter().map(of_outcome).collect(),
    };
    found.encode_to_vec()
}

/// The opening of a record.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_opening(record: &[u8]) -> Result<Opening, WireError> {
    let found = pb::Opening::decode(record).map_err(|error| malformed("an opening", &error))?;
    at_most("introductions", found.introductions.len(), SITES_MAX)?;
    at_most("secrets", found.encapsulations.len(), SITES_MAX)?;
    at_most("patterns of patients", found.left_out.len(), PARTS_MAX)?;
    at_most("outcomes", found.counts.len(), OUTCOMES_MAX)?;
    let of_outcome = |own: pb::HistogramsChunk| {
        at_most("histograms", own.histograms.len(), FEATURES_MAX + 1)?;
        each(own.histograms, histogram)
    };
    let introductions = found.introductions.into_iter().map(introduction);
    let secrets = found.encapsulations.into_iter().map(encapsulations);
    Ok(Opening {
        run: run_id(&found.run)?,
        digest: digest("the digest of a run", found.digest)?,
        introductions: introductions.collect::<Result<_, _>>()?,
        encapsulations: secrets.collect::<Result<_, _>>()?,
        left_out: found.left_out,
        counts: each(found.counts, of_outcome)?,
    })
}

pub(crate) fn state_to_proto(state: StudyState) -> pb::StudyState {
    let hospital = |one: HospitalState| pb::HospitalState {
        name: one.name.to_string(),
        connected: one.connected,
        approval: one.approval.map(approval_to_proto),
    };
    pb::StudyState {
        name: state.name.to_string(),
        title: state.title,
        digest: state.digest,
        until: state.until.to_string(),
        run: state.run.as_str().to_owned(),
        proposed: state.proposed.0,
        standing: state.standing.name().to_owned(),
        hospitals: state.hospitals.into_iter().map(hospital).collect(),
        waiting: state.waiting.into_iter().map(waiting_to_proto).collect(),
    }
}

pub(crate) fn waiting_to_proto(waiting: Waiting) -> pb::Waiting {
    let away = waiting.away.iter().map(SiteName::to_string);
    pb::Waiting {
        run: waiting.run.as_str().to_owned(),
        away: away.collect(),
        since: waiting.since.map(|at| at.0),
    }
}

pub(crate) fn waiting(found: pb::Waiting) -> Result<Waiting, WireError> {
    at_most("names of sites", found.away.len(), SITES_MAX)?;
    let away = found.away.iter().map(|name| hospital_name(name));
    Ok(Waiting {
        run: run_id(&found.run)?,
        away: away.collect::<Result<_, _>>()?,
        since: found.since.map(Timestamp),
    })
}

fn hospital_name(name: &str) -> Result<SiteName, WireError> {
    SiteName::new(name).map_err(|source| WireError::Name {
        field: "a hospital",
        source,
    })
}

pub(crate) fn state(found: pb::StudyState) -> Result<StudyState, WireError> {
    at_most("hospitals", found.hospitals.len(), SITES_MAX)?;
    let until = Date::parse(&found.until, format_description!("[year]-[month]-[day]"));
    let mut standings = Standing::ALL.into_iter();
    let standing = standings.find(|one| one.name() == found.standing);
    let hospital = |one: pb::HospitalState| {
        Ok::<_, WireError>(HospitalState {
            name: hospital_name(&one.name)?,
            connected: one.connected,
            approval: one.approval.map(approval).transpose()?,
        })
    };
    let hospitals = found.hospitals.into_iter().map(hospital);
    at_most("runs that wait", found.waiting.len(), WAITING_MAX)?;
    let waits = found.waiting.into_iter().map(waiting);
    Ok(StudyState {
        name: study_name(&found.name)?,
        title: sentence("the title of a study", found.title)?,
        digest: digest("the digest of a study", found.digest)?,
        until: until.map_err(|_| WireError::Unexpected {
            found: "another text as the last day of a study".to_owned(),
            wanted: "YYYY-MM-DD".to_owned(),
        })?,
        run: run_id(&found.run)?,
        proposed: Timestamp(found.proposed),
        standing: standing.ok_or_else(|| WireError::Unexpected {
            found: "another word for where a study stands".to_owned(),
            wanted: Standing::ALL.map(Standing::name).join(", "),
        })?,
        hospitals: hospitals.collect::<Result<_, _>>()?,
        waiting: waits.collect::<Result<_, _>>()?,
    })
}
