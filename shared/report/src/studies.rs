//! Studies as lists and as JSON, for people and for machines.

use crate::listing::aligned;
use crate::words::{minute, moment};
use protocol::message::Waiting;
use protocol::name::SiteName;
use protocol::study::{HospitalState, StudyState};
use serde::Serialize;
use std::fmt::Write as _;

/// The studies as a table, with its heading.
#[must_use]
pub fn studies_table(studies: &[StudyState]) -> String {
    let mut rows = vec![["STUDY", "STATUS", "APPROVED", "UNTIL", "CARD"].map(str::to_owned)];
    rows.extend(studies.iter().map(|study| {
        let approved = study.hospitals.len() - study.awaited().count();
        [
            study.name.to_string(),
            study.standing.name().to_owned(),
            format!("{approved} of {}", study.hospitals.len()),
            study.until.to_string(),
            study.run.to_string(),
        ]
    }));
    aligned(&rows)
}

/// Where one study stands: the answer first, then its hospitals.
#[must_use]
pub fn study_text(study: &StudyState) -> String {
    let waiting: Vec<&str> = study.awaited().map(|one| one.name.as_str()).collect();
    let mut text = format!("{}: {}", study.name, study.standing.name());
    if !waiting.is_empty() {
        let _ = write!(text, ", waiting for the approval of {}", waiting.join(", "));
    }
    for one in &study.waiting {
        let _ = write!(text, "\n{}", waiting_text(one));
    }
    let _ = write!(
        text,
        "\n{}\nuntil {}, card by run {}, digest sha256:{}\n\n",
        study.title, study.until, study.run, study.digest
    );
    let mut rows = vec![["HOSPITAL", "APPROVED (UTC)", "PATIENTS", "CONNECTED"].map(str::to_owned)];
    rows.extend(study.hospitals.iter().map(row));
    text + &aligned(&rows)
}

/// A run that waits: for which hospital, and since when.
#[must_use]
pub fn waiting_text(waiting: &Waiting) -> String {
    let since = waiting.since.and_then(minute);
    let since = since.map_or(String::new(), |since| format!(", since {since} (UTC)"));
    let away: Vec<&str> = waiting.away.iter().map(SiteName::as_str).collect();
    let away = away.join(", ");
    format!("run {} waits for {away}, not connected{since}", waiting.run)
}

fn row(hospital: &HospitalState) -> [String; 4] {
    let approval = hospital.approval.as_ref();
    let approved = approval.and_then(|one| minute(one.approved));
    let patients = approval.map(|one| format!("at most {}", one.patients_at_most));
    let connected = match hospital.connected {
        true => "yes",
        false => "no",
    };
    [
        hospital.name.to_string(),
        approved.unwrap_or_else(|| "not yet".to_owned()),
        patients.unwrap_or_else(|| "-".to_owned()),
        connected.to_owned(),
    ]
}

#[derive(Serialize)]
struct Entry<'s> {
    study: &'s str,
    title: &'s str,
    digest: &'s str,
    status: &'s str,
    until: String,
    run: &'s str,
    proposed: Option<String>,
    hospitals: Vec<Hospital<'s>>,
    waiting: Vec<Waits<'s>>,
}

#[derive(Serialize)]
struct Waits<'s> {
    run: &'s str,
    away: Vec<&'s str>,
    since: Option<String>,
}

#[derive(Serialize)]
struct Hospital<'s> {
    name: &'s str,
    connected: bool,
    approved: Option<String>,
    patients_at_most: Option<u64>,
    commitment: Option<&'s str>,
}

/// The studies as a JSON array.
///
/// # Errors
/// Where JSON cannot be made.
pub fn studies_json(studies: &[StudyState]) -> Result<String, serde_json::Error> {
    let entries: Vec<Entry<'_>> = studies.iter().map(entry).collect();
    serde_json::to_string_pretty(&entries)
}

/// One study as a JSON object.
///
/// # Errors
/// Where JSON cannot be made.
pub fn study_json(study: &StudyState) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&entry(study))
}

fn entry(study: &StudyState) -> Entry<'_> {
    Entry {
        study: study.name.as_str(),
        title: &study.title,
        digest: &study.digest,
        status: study.standing.name(),
        until: study.until.to_string(),
        run: study.run.as_str(),
        proposed: moment(study.proposed),
        hospitals: study.hospitals.iter().map(hospital).collect(),
        waiting: study.waiting.iter().map(waits).collect(),
    }
}

fn waits(one: &Waiting) -> Waits<'_> {
    Waits {
        run: one.run.as_str(),
        away: one.away.iter().map(SiteName::as_str).collect(),
        since: one.since.and_then(moment),
    }
}

fn hospital(one: &HospitalState) -> Hospital<'_> {
    let approval = one.approval.as_ref();
    Hospital {
        name: one.name.as_str(),
        connected: one.connected,
        approved: approval.and_then(|approval| moment(approval.approved)),
        patients_at_most: approval.map(|approval| approval.patients_at_most),
        commitment: approval.map(|approval| approval.commitment.as_str()),
    }
}
