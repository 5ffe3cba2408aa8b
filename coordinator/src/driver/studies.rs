//! Studies at the coordinator: who has approved them, and what is taken of them.

use super::calls::Done;
use super::{Driver, Shown, locked};
use crate::store::{KeptStudy, Reach, Store, StoreError};
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::limits::{CLOSED_STUDIES_MAX, PROPOSED_PER_OPERATOR_MAX};
use protocol::message::{ToSite, Waiting, Warrant};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::opening::Opening;
use protocol::run::Event;
use protocol::study::{HospitalState, SignedApproval, Standing, Study, StudyName, StudyState};
use protocol::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wire::Reply;

/// Sites are not sent more often which others a run waits for.
const WAITS_EVERY: Duration = Duration::from_secs(1);

/// All studies, by name.
#[derive(Debug, Default)]
pub(super) struct Studies(BTreeMap<StudyName, KeptStudy>);

impl Studies {
    pub(super) fn new(all: Vec<KeptStudy>) -> Self {
        let named = all.into_iter().map(|one| (one.study.name.clone(), one));
        Self(named.collect())
    }

    pub(super) fn keep(&mut self, study: KeptStudy) {
        self.0.insert(study.study.name.clone(), study);
    }

    /// Notes how a study opened.
    pub(super) fn open(&mut self, job: &Job, opening: Opening) {
        let study = job.study.as_ref().map(|study| &study.name);
        if let Some(known) = study.and_then(|name| self.0.get_mut(name)) {
            known.opening = Some(opening);
        }
    }

    /// Whether nothing but the presence of its sites keeps a job from beginning: a study opens once all have approved it.
    pub(super) fn may_begin(&self, job: &Job) -> bool {
        let study = job.study.as_ref().filter(|_| job.opens_study());
        study.is_none_or(|study| {
            let known = self.0.get(&study.name);
            known.is_some_and(|known| known.awaits().next().is_none())
        })
    }

    /// The texts of the studies that wait for this site's approval.
    pub(super) fn proposals(&self, site: &SiteName, now: Timestamp) -> Vec<String> {
        let waits = |one: &&KeptStudy| {
            !one.closed && !one.study.is_over(now) && one.awaits().any(|name| name == site)
        };
        let waiting = self.0.values().filter(waits);
        waiting.map(|one| one.study.text.clone()).collect()
    }

    /// A study of these.
    pub(super) fn own(&self, whose: &Reach, name: &StudyName) -> Option<&Study> {
        let known = self.0.get(name).filter(|one| one.is_of(whose));
        known.map(|one| &one.study)
    }

    /// The hospitals of these studies.
    pub(super) fn hospitals_of(&self, whose: &Reach) -> BTreeSet<SiteName> {
        let own = self.0.values().filter(|one| one.is_of(whose));
        own.flat_map(|one| one.study.roster()).collect()
    }

    /// Whether a job is of a study that is closed.
    fn has_closed(&self, job: &Job) -> bool {
        let known = job.study.as_ref().and_then(|study| self.0.get(&study.name));
        known.is_some_and(|known| known.closed)
    }

    /// The digests of the closed studies that name the site, the newest ones where they are many. Those whose last day is over have
    /// ended by themselves.
    fn closed(&self, site: &SiteName, now: Timestamp) -> Vec<String> {
        let is_meant = |one: &&KeptStudy| {
            one.closed && !one.study.is_over(now) && one.study.roster().contains(site)
        };
        let mut closed: Vec<&KeptStudy> = self.0.values().filter(is_meant).collect();
        closed.sort_by_key(|one| std::cmp::Reverse(one.proposed));
        closed.truncate(CLOSED_STUDIES_MAX);
        closed.into_iter().map(|one| one.study.digest()).collect()
    }

    /// Whether a site's approval is of a study that names it, and is signed by the certificate that the study names; false
    /// where it is known.
    fn is_news(&self, site: &SiteName, found: &SignedApproval) -> Result<bool, String> {
        let name = &found.approval.study;
        let name = StudyName::new(name).map_err(|error| error.to_string())?;
        let known = self.0.get(&name).ok_or("no such study was proposed")?;
        if found.approval.digest != known.study.digest() {
            return Err("the study of this name has another text".to_owned());
        }
        if known.closed {
            return Err("the study is closed".to_owned());
        }
        let hospitals = known.study.hospitals.iter();
        let own = hospitals.into_iter().find(|one| one.name == *site);
        let own = own.ok_or("the study does not name this site")?;
        if !wire::has_approved(&own.certificate, found) {
            return Err("it is not signed by the certificate that the study names".to_owned());
        }
        match known.approvals.get(site) {
            Some(earlier) if earlier.approval != found.approval => {
                Err("this site has approved the study before, with other patients".to_owned())
            }
            Some(_) => Ok(false),
            None => Ok(true),
        }
    }
}

impl KeptStudy {
    /// The hospitals that have yet to approve it.
    fn awaits(&self) -> impl Iterator<Item = &SiteName> {
        let names = self.study.hospitals.iter().map(|one| &one.name);
        names.filter(|name| !self.approvals.contains_key(*name))
    }

    fn is_of(&self, whose: &Reach) -> bool {
        let mut operators = self.study.operators.iter();
        operators.any(|one| whose.has(&one.name))
    }
}

impl Shown {
    /// Who it waits for; none where all are connected. At its start a run takes in one connected hospital after the other.
    pub(super) fn waiting(&self, is_connected: impl Fn(&SiteName) -> bool) -> Option<Waiting> {
        let progress = self.progress.borrow();
        let away = |site: &&SiteName| {
            progress.away.iter().any(|away| away == site.as_str()) && !is_connected(site)
        };
        let away: Vec<SiteName> = self.sites.iter().filter(away).cloned().collect();
        let waits = progress.ending.is_none() && !away.is_empty();
        waits.then(|| Waiting {
            run: progress.run.clone(),
            away,
            since: progress.waiting_since,
        })
    }
}

impl Driver {
    /// Tells a site of the studies that are closed, and sends it the texts of those that wait for its approval.
    pub(super) fn offer(&self, site: &SiteName) {
        self.send_closed_studies(site);
        for text in self.studies.proposals(site, self.clock.now()) {
            self.send_of_studies(site, ToSite::Proposed(text));
        }
    }

    fn send_closed_studies(&self, site: &SiteName) {
        let closed = self.studies.closed(site, self.clock.now());
        if !closed.is_empty() {
            self.send_of_studies(site, ToSite::ClosedStudies(closed));
        }
    }

    fn send_of_studies(&self, site: &SiteName, message: ToSite) {
        if let Some(connected) = self.sites.get(site)
            && let Err(error) = connected.sender.send(message)
        {
            tracing::warn!(%site, %error, "what there is of studies was not sent");
        }
    }

    /// A study was proposed: all its hospitals that are here hear of it.
    pub(super) fn proposed(&mut self, study: KeptStudy) {
        let sites = study.study.roster();
        self.studies.keep(study);
        sites.iter().for_each(|site| self.offer(site));
    }

    /// A site says that it has approved a study.
    pub(super) fn hear_approval(&self, site: SiteName, approved: SignedApproval) {
        let study = approved.approval.study.clone();
        match self.studies.is_news(&site, &approved) {
            Ok(false) => return,
            Ok(true) => {}
            Err(reason) => {
                tracing::warn!(%site, study, reason, "an approval is not taken");
                return self.send_closed_studies(&site);
            }
        }
        let (store, done) = (Arc::clone(&self.store), self.done.clone());
        tokio::task::spawn_blocking(move || {
            let kept = locked(&store).approve(&site, &approved);
            let told = match kept {
                Ok(()) => Done::Approved { site, approved },
                Err(error) => Done::Broken(error),
            };
            // Nobody is left to hear where the driver has stopped.
            let _ = done.blocking_send(told);
        });
    }

    /// An approval is on the disk.
    pub(super) fn approved(&mut self, site: SiteName, approved: SignedApproval) {
        let name = StudyName::new(&approved.approval.study).ok();
        let Some(known) = name.and_then(|name| self.studies.0.get_mut(&name)) else {
            return;
        };
        let study = known.study.name.as_str();
        tracing::info!(%site, study, "a hospital has approved a study");
        known.approvals.insert(site, approved);
    }

    /// These studies, the newest first.
    pub(super) fn list_studies(&self, whose: &Reach) -> Vec<StudyState> {
        let own = self.studies.0.values().filter(|one| one.is_of(whose));
        let mut states: Vec<StudyState> = own.map(|one| self.state(one)).collect();
        states.sort_by_key(|one| std::cmp::Reverse(one.proposed));
        states
    }

    fn state(&self, kept: &KeptStudy) -> StudyState {
        let study = &kept.study;
        let standing = match &kept.opening {
            _ if kept.closed => Standing::Closed,
            _ if study.is_over(self.clock.now()) => Standing::Over,
            Some(_) => Standing::Open,
            None if !self.shown.contains_key(&kept.run) => Standing::Failed,
            None if kept.awaits().next().is_some() => Standing::Proposed,
            None => Standing::Opening,
        };
        let hospital = |name: SiteName| HospitalState {
            connected: self.sites.contains_key(&name),
            approval: kept.approvals.get(&name).map(|one| one.approval.clone()),
            name,
        };
        StudyState {
            name: study.name.clone(),
            title: study.title.clone(),
            digest: study.digest(),
            until: study.until,
            run: kept.run.clone(),
            proposed: kept.proposed,
            standing,
            hospitals: study.roster().into_iter().map(hospital).collect(),
            waiting: self.waiting(&study.name),
        }
    }

    /// The runs of a study that wait for hospitals that are not connected.
    fn waiting(&self, study: &StudyName) -> Vec<Waiting> {
        let shown = self.shown.values();
        let own = shown.filter(|one| one.study.as_ref() == Some(study));
        let waiting = |one: &Shown| one.waiting(|site| self.sites.contains_key(site));
        own.filter_map(waiting).collect()
    }

    /// Tells the sites that are here which others their runs wait for, where that is news. Many sites that come at once are one message.
    pub(super) fn send_waits(&mut self) {
        let now = self.clock.now();
        let is_soon = |sent: Timestamp| now.since(sent) < WAITS_EVERY;
        if !self.waits_are_due || self.waits_sent.is_some_and(is_soon) {
            return;
        }
        (self.waits_are_due, self.waits_sent) = (false, Some(now));
        let sites = &self.sites;
        let mut news = Vec::new();
        for shown in self.shown.values_mut() {
            let waiting = shown.waiting(|site| sites.contains_key(site));
            if let Some(waiting) = waiting.as_ref().filter(|_| waiting != shown.waiting) {
                let here = shown
                    .sites
                    .iter()
                    .filter(|site| !waiting.away.contains(*site));
                news.extend(here.map(|site| (site.clone(), waiting.clone())));
            }
            shown.waiting = waiting;
        }
        for (site, waiting) in news {
            self.send_of_studies(&site, ToSite::Waiting(waiting));
        }
    }

    /// Ends a study: no job of it is taken any more, and its runs end, also those that wait.
    pub(super) fn close_study(&mut self, whose: &Reach, name: &StudyName, reply: Reply<()>) {
        let own = self.studies.0.get_mut(name);
        let Some(own) = own.filter(|one| one.is_of(whose)) else {
            let text = format!(
                "found no study {:?}; `study list` shows yours",
                name.as_str()
            );
            let _ = reply.send(Err(Failure::new(Code::Study, text)));
            return;
        };
        own.closed = true;
        let (store, done, name) = (Arc::clone(&self.store), self.done.clone(), name.clone());
        tokio::task::spawn_blocking(move || {
            let closed = locked(&store).close_study(&name);
            let told = match closed {
                Ok(()) => Done::StudyClosed { study: name, reply },
                Err(error) => Done::Broken(error),
            };
            let _ = done.blocking_send(told);
        });
    }

    /// That a study is closed is on the disk: its hospitals hear of it.
    pub(super) fn study_closed(&mut self, name: &StudyName) {
        let sites = self.studies.0.get(name).map(|one| one.study.roster());
        for site in sites.into_iter().flatten() {
            self.send_closed_studies(&site);
        }
        self.end_runs_of_closed();
    }

    /// Cancels the runs of closed studies.
    pub(super) fn end_runs_of_closed(&mut self) {
        let active = self.active.as_mut();
        if let Some(course) = active.filter(|course| self.studies.has_closed(course.job())) {
            course.cancel(None);
            self.feed(Event::Tick);
        }
        for submission in self.queue.take(|one| self.studies.has_closed(&one.job)) {
            self.end(submission, None);
        }
    }
}

/// Whether a job is taken: its study is open, or it opens that. Gives a study that is proposed by it.
pub(super) fn take(
    job: &Job,
    (run, operator): (&RunId, &OperatorName),
    warrant: &Warrant,
    at: Timestamp,
    store: &Store,
) -> Result<Result<Option<KeptStudy>, Failure>, StoreError> {
    let Some(study) = &job.study else {
        let text = "found a job of no study, wanted one of a study that its hospitals have approved: `study propose` proposes one, \
             and `simulate` makes one of the job";
        return Ok(Err(Failure::new(Code::Study, text)));
    };
    let known = store.study(&study.name)?;
    let judged = judge(job, study, known.as_ref(), warrant, at);
    if let Err(text) = judged {
        return Ok(Err(Failure::new(Code::Study, text)));
    }
    if !job.opens_study() {
        return Ok(Ok(None));
    }
    if let Some(known) = known {
        let ended = store.has_ended(&known.run)?;
        if !ended || known.opening.is_some() {
            let text = format!(
                "the study {:?} was proposed already, by run {}; `study show` says where it stands",
                study.name.as_str(),
                known.run
            );
            return Ok(Err(Failure::new(Code::Study, text)));
        }
        return Ok(Ok(Some(KeptStudy {
            run: run.clone(),
            ..known
        })));
    }
    // Hospitals keep so many texts in all: one operator's leave room for those of others.
    let proposed = store.proposed_by(operator)?;
    if proposed >= PROPOSED_PER_OPERATOR_MAX {
        let text = format!(
            "{proposed} studies that you have proposed are not open yet; `study close` ends one, `study list` shows them"
        );
        return Ok(Err(Failure::new(Code::Study, text)));
    }
    Ok(Ok(Some(KeptStudy {
        study: Study::clone(study),
        run: run.clone(),
        proposed: at,
        closed: false,
        opening: None,
        approvals: BTreeMap::new(),
    })))
}

/// Why a job of this study is not taken.
fn judge(
    job: &Job,
    study: &Study,
    known: Option<&KeptStudy>,
    warrant: &Warrant,
    at: Timestamp,
) -> Result<(), String> {
    let name = study.name.as_str();
    let signer = warrant.chain.first();
    let signer = signer.map(|certificate| wire::fingerprint_of_der(certificate));
    let mut operators = study.operators.iter();
    if !operators.any(|one| Some(&one.certificate) == signer.as_ref()) {
        return Err(format!(
            "found a job by another certificate, wanted one of the operators of the study {name:?}"
        ));
    }
    if study.is_over(at) {
        return Err(format!("the study {name:?} ended on {}", study.until));
    }
    let Some(known) = known else {
        return match job.opens_study() {
            true => Ok(()),
            false => Err(format!(
                "found no study {name:?}; `study propose` proposes it to its hospitals"
            )),
        };
    };
    let (found, wanted) = (study.digest(), known.study.digest());
    if found != wanted {
        return Err(format!(
            "found a study {name:?} with the digest {found}, wanted the one that was proposed, {wanted}, or another name"
        ));
    }
    if known.closed {
        return Err(format!("the study {name:?} is closed"));
    }
    if job.opens_study() || known.opening.is_some() {
        return Ok(());
    }
    let waits: Vec<&str> = known.awaits().map(SiteName::as_str).collect();
    Err(match waits.is_empty() {
        false => format!(
            "the study {name:?} is not open: it waits for the approval of {}",
            waits.join(", ")
        ),
        true => format!("the study {name:?} is not open: its card is not ready"),
    })
}
