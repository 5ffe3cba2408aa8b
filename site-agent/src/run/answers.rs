//! Works out again what this site has answered in every run of a study, and holds it against what it has signed.

use super::driver::{now, signed_by};
use super::worker::Worker;
use super::worker::again::Again;
use crate::books::transcript::{self, Transcript};
use crate::books::{journal, ledger};
use crate::config::SiteConfig;
use crate::studies::{self, Approved, StudyError};
use protocol::job::Job;
use protocol::time::Timestamp;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wire::{Signer, private};

/// Where a run is worked out again, in the site's folder.
const SCRATCH: &str = "audit";

/// What came of a study's runs.
#[derive(Debug, Serialize)]
pub struct StudyAudit {
    study: String,
    /// SHA-256 of the study's text.
    digest: String,
    /// The site's commitment to its patients.
    commitment: String,
    site: String,
    /// When, in milliseconds since the Unix epoch.
    audited: u64,
    runs: Vec<RunAudit>,
}

/// What came of one run.
#[derive(Debug, Serialize)]
pub struct RunAudit {
    run: String,
    /// Exchanges that closed.
    exchanges: u32,
    /// Answers of this site that are as they were signed.
    answers: u32,
    /// The first thing that is not; none where all is verified.
    differs: Option<Difference>,
}

/// Something that is not what this site has signed.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The exchange; none where the run cannot be worked out at all.
    exchange: Option<u32>,
    /// What was found.
    text: String,
}

/// The result with the site's word for it.
#[derive(Serialize)]
struct Signed<'s> {
    /// The JSON that is signed, as it stands here.
    audit: &'s str,
    /// Certificates from the site's to the authority's, base64.
    chain: Vec<String>,
    scheme: u16,
    signature: String,
}

/// Works out again all answers of this site in the runs of a study.
///
/// # Errors
/// [`StudyError`] where the site has no such study, or its books are not what was written.
pub fn audit(config: &SiteConfig, name: &str) -> Result<StudyAudit, StudyError> {
    let known = studies::all(&config.folder, &config.site)?;
    let own = studies::present(&known, name)?;
    let failed = |source| StudyError::Write {
        path: config.folder.join(SCRATCH).display().to_string(),
        source,
    };
    let digest = &own.signed.approval.digest;
    let mut copies = copies(config, digest).map_err(failed)?;
    let mut expected = ledger::runs(&config.folder, digest)?;
    expected.extend(own.openings().map_err(failed)?);
    for run in expected {
        let absent = || Err("there is no copy of it any more".to_owned());
        copies.entry(run).or_insert_with(absent);
    }
    let scratch = Scratch::make(config, own, &copies).map_err(failed)?;
    let mut worker = Worker::open(scratch.config.clone(), now())?;
    let mut read: Vec<_> = copies.into_iter().collect();
    // A run may build on what an earlier one has left.
    let at = |copy: &Result<Transcript, String>| {
        let first = copy.as_ref().ok().and_then(|copy| copy.closed.first());
        first.map(|closed| closed.record.at)
    };
    read.sort_by_key(|(_, copy)| at(copy));
    let mut runs = Vec::new();
    for (run, copy) in read {
        let told = journal::digests(&config.folder, &run)?;
        runs.push(match copy {
            Ok(copy) => again(&mut worker, &scratch.config, copy, &told),
            Err(text) => RunAudit {
                run,
                exchanges: 0,
                answers: 0,
                differs: Some(Difference {
                    exchange: None,
                    text,
                }),
            },
        });
    }
    Ok(StudyAudit {
        study: own.study.name.to_string(),
        digest: digest.clone(),
        commitment: own.signed.approval.commitment.clone(),
        site: config.site.to_string(),
        audited: now().0,
        runs,
    })
}

/// The copies of a study's runs, by their names. One that cannot be read may be of the study.
fn copies(
    config: &SiteConfig,
    study: &str,
) -> io::Result<BTreeMap<String, Result<Transcript, String>>> {
    let mut found = BTreeMap::new();
    for run in transcript::runs(&config.folder)? {
        let copy = transcript::read(&config.folder, &run);
        let copy = copy.map_err(|error| format!("its copy cannot be read: {error}"));
        let is_other = copy.as_ref().is_ok_and(|copy| {
            let job = Job::parse(&copy.begin.job).ok();
            let digest = job.and_then(|job| job.study.map(|study| study.digest()));
            digest.is_some_and(|digest| digest != study)
                || protocol::study::split(&copy.begin.job).1.is_none()
        });
        if !is_other {
            found.insert(run.to_string(), copy);
        }
    }
    Ok(found)
}

/// One run, by a worker that has answered nothing of it.
fn again(
    worker: &mut Worker,
    config: &SiteConfig,
    copy: Transcript,
    told: &BTreeSet<(u32, String)>,
) -> RunAudit {
    let mut audit = RunAudit {
        run: copy.begin.run.to_string(),
        exchanges: 0,
        answers: 0,
        differs: None,
    };
    let version = copy.of_another_version();
    let differs = follow(worker, config, copy, told, &mut audit);
    audit.differs = differs.err().map(|found| Difference {
        text: version.map_or_else(
            || found.text.clone(),
            |version| format!("{version} ({})", found.text),
        ),
        ..found
    });
    audit
}

fn follow(
    worker: &mut Worker,
    config: &SiteConfig,
    copy: Transcript,
    told: &BTreeSet<(u32, String)>,
    audit: &mut RunAudit,
) -> Result<(), Difference> {
    let Transcript {
        digest,
        begin,
        closed,
        recorded_by: _,
    } = copy;
    let operator = signed_by(&begin, config);
    worker.begin(begin, operator);
    if let Some(stop) = worker.stopped() {
        return Err(Difference::at(None, stop));
    }
    if worker.run_digest() != Some(digest) {
        let text = "how it began is not what this site has heard";
        return Err(Difference::at(None, text));
    }
    let mut last = Timestamp(0);
    for one in &closed {
        let (exchange, at) = (one.record.exchange, one.record.at);
        let own = worker.place().and_then(|own| one.record.answers.get(own));
        let signed = own.and_then(Option::as_ref).map(wire::digest_of);
        if let Some(found) = said(worker, at, exchange)? {
            let is_signed = signed.as_ref() == Some(&found.digest);
            hold(&found, told, is_signed)?;
            audit.answers += 1;
        } else if let Some(signed) = signed
            && !told.contains(&(exchange, signed))
        {
            let text = "what stands there as this site's answer is not in its journal";
            return Err(Difference::at(Some(exchange), text));
        }
        let followed = worker.follow(one, at);
        followed.map_err(|error| Difference::at(Some(exchange), error))?;
        if let Some(stop) = worker.stopped() {
            return Err(Difference::at(Some(exchange), stop));
        }
        audit.exchanges += u32::from(exchange > 0);
        last = at;
    }
    // The run may have ended before its last question closed.
    let next = closed.last().map_or(0, |one| one.record.exchange) + 1;
    let left: Vec<&(u32, String)> = told.iter().filter(|(one, _)| *one >= next).collect();
    if let Some((exchange, _)) = left.iter().find(|(one, _)| *one > next) {
        let text = format!("its copy ends with exchange {}", next - 1);
        return Err(Difference::at(Some(*exchange), text));
    }
    if !left.is_empty()
        && let Some(found) = said(worker, last, next)?
    {
        hold(&found, told, true)?;
        audit.answers += 1;
    }
    Ok(())
}

/// What this site says in the exchange, where it is the next.
fn said(worker: &mut Worker, at: Timestamp, exchange: u32) -> Result<Option<Again>, Difference> {
    let found = worker.say_again(at);
    let found = found.map_err(|error| Difference::at(Some(exchange), error))?;
    Ok(found.filter(|found| found.exchange == exchange))
}

/// What is worked out is what this site has signed, as its journal has it.
fn hold(found: &Again, told: &BTreeSet<(u32, String)>, is_signed: bool) -> Result<(), Difference> {
    if is_signed && told.contains(&(found.exchange, found.digest.clone())) {
        return Ok(());
    }
    let text = match &found.stop {
        Some(stop) => format!("there is no answer now: {stop}"),
        None => "the answer that follows is not the one that this site has signed".to_owned(),
    };
    Err(Difference::at(Some(found.exchange), text))
}

impl Difference {
    fn at(exchange: Option<u32>, text: impl ToString) -> Self {
        let text = text.to_string();
        Self { exchange, text }
    }
}

/// A folder in which a worker works out runs again: the site's keys and studies, and what other runs have left. Nothing of the site's own
/// is written.
struct Scratch {
    config: SiteConfig,
    folder: PathBuf,
}

impl Scratch {
    fn make(
        config: &SiteConfig,
        own: &Approved,
        copies: &BTreeMap<String, Result<Transcript, String>>,
    ) -> io::Result<Self> {
        let (from, folder) = (&config.folder, config.folder.join(SCRATCH));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        private::folder(&folder)?;
        let scratch = Self {
            config: SiteConfig {
                folder: folder.clone(),
                ..config.clone()
            },
            folder,
        };
        let to = &scratch.folder;
        fs::hard_link(from.join(ledger::KEY_NAME), to.join(ledger::KEY_NAME))?;
        // A closed study is audited as it was when it was open.
        let closed = own.closed_mark();
        for part in ["keys", "studies", "runs"] {
            let is_left_out = |path: &Path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                path == closed || part == "runs" && copies.contains_key(name.as_ref())
            };
            link(&from.join(part), &to.join(part), &is_left_out)?;
        }
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The files of a folder under other names. Whoever writes one writes it beside, and renames.
fn link(from: &Path, to: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    private::folder(to)?;
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let (Some(name), false) = (path.file_name(), is_left_out(&path)) else {
            continue;
        };
        match path.is_dir() {
            true => link(&path, &to.join(name), is_left_out)?,
            false => fs::hard_link(&path, to.join(name))?,
        }
    }
    Ok(())
}

impl StudyAudit {
    /// Whether every answer is what this site has signed.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.runs.iter().all(|run| run.differs.is_none())
    }

    /// Writes the result, signed by the site's certificate.
    ///
    /// # Errors
    /// [`StudyError`] where the key cannot sign, or the file cannot be written.
    pub fn write(&self, config: &SiteConfig, path: &Path) -> Result<(), StudyError> {
        let failed = |source| StudyError::Write {
            path: path.display().to_string(),
            source,
        };
        let audit = serde_json::to_string(self).map_err(|error| failed(error.into()))?;
        let word = Signer::load(&config.tls)?.vouch(audit.as_bytes())?;
        let signed = Signed {
            audit: &audit,
            chain: word
                .chain
                .iter()
                .map(|one| studies::to_base64(one))
                .collect(),
            scheme: word.scheme,
            signature: studies::to_base64(&word.signature),
        };
        let bytes = serde_json::to_vec_pretty(&signed).map_err(|error| failed(error.into()))?;
        private::replace(path, &bytes).map_err(failed)
    }
}

impl fmt::Display for StudyAudit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self
            .runs
            .iter()
            .map(|run| run.run.len())
            .max()
            .unwrap_or(0)
            .max(3);
        write!(out, "{:<widest$}  EXCHANGES  ANSWERS  RESULT", "RUN")?;
        for run in &self.runs {
            let result = match &run.differs {
                None => "verified".to_owned(),
                Some(Difference {
                    exchange: None,
                    text,
                }) => text.clone(),
                Some(Difference {
                    exchange: Some(exchange),
                    text,
                }) => {
                    format!("exchange {exchange}: {text}")
                }
            };
            let RunAudit {
                run,
                exchanges,
                answers,
                ..
            } = run;
            write!(
                out,
                "\n{run:<widest$}  {exchanges:>9}  {answers:>7}  {result}"
            )?;
        }
        let all = match self.is_verified() {
            true => {
                "every answer of this site is the one that follows from its frozen patients, and that it has signed"
            }
            false => "not every answer is verified",
        };
        write!(out, "\n{}: {} runs, {all}", self.study, self.runs.len())
    }
}
