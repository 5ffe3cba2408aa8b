//! A run of sums as one of its sites follows it, with what the sites have signed.

use crate::config::SiteConfig;
use protocol::failure::Refusal;
use protocol::job::Job;
use protocol::message::{Answer, Begin, Closed, Encapsulations, Introduction, Request};
use protocol::name::SiteName;
use protocol::opening::Opening;
use protocol::replica::{Next, Replica};
use protocol::run::Record;
use protocol::study::CertificateFingerprint;
use wire::{KeyError, Said};

/// The run, by the site's own copy of the coordinator's machine.
pub(super) struct Follower {
    pub(super) digest: String,
    pub(super) sites: Vec<SiteName>,
    pub(super) own: usize,
    replica: Replica,
    /// The certificates of the sites.
    pinned: Vec<CertificateFingerprint>,
    /// Digest of all that was heard.
    heard: wire::Heard,
}

impl Follower {
    /// `opening` is that of the job's study, where it has opened.
    pub(super) fn new(
        begin: &Begin,
        job: &Job,
        digest: String,
        own: usize,
        opening: Option<&Opening>,
    ) -> Self {
        Self {
            digest,
            sites: job.sites.clone(),
            own,
            replica: Replica::new(begin, job.clone(), own, opening),
            pinned: pinned(job),
            heard: wire::Heard::after(opening),
        }
    }

    /// The exchange that a record must be of to be news.
    pub(super) fn awaited(&self) -> u32 {
        self.replica.awaited()
    }

    /// Whether the run ended because a sum was not one of patients.
    pub(super) fn is_void(&self) -> bool {
        self.replica.is_void()
    }

    /// What is asked next.
    pub(super) fn next(&self) -> Option<Next> {
        self.replica.next()
    }

    /// What this site is asked next.
    pub(super) fn asked(&self) -> Option<Request> {
        self.replica.asked()
    }

    /// The keys of each site.
    pub(super) fn introductions(&self) -> &[Option<Introduction>] {
        self.replica.introductions()
    }

    /// What each has sent to the later ones alone.
    pub(super) fn encapsulations(&self) -> &[Option<Encapsulations>] {
        self.replica.encapsulations()
    }

    /// What later runs of the study begin with, once all sites have exchanged their keys.
    pub(super) fn opening(&self) -> Option<Opening> {
        self.replica.opening(&self.digest)
    }

    /// The digest of all that the sites said, as this one heard it.
    pub(super) fn heard(&self) -> String {
        self.heard.digest()
    }

    /// Takes the exchange that closed, and judges that it is what the sites have said.
    pub(super) fn follow(&mut self, closed: &Closed, config: &SiteConfig) -> Result<(), Refusal> {
        let record = &closed.record;
        match self.asked() {
            Some(Request::Introduce) => self.judge_introductions(record, config)?,
            _ => self.judge_signatures(record)?,
        }
        let followed = self.replica.follow(closed);
        followed.map_err(|error| question(record.exchange, &error.to_string()))?;
        self.heard.add(closed);
        Ok(())
    }

    /// Every introduction is of the site that it stands for.
    fn judge_introductions(&self, record: &Record, config: &SiteConfig) -> Result<(), Refusal> {
        let warrants = config.warrants().map_err(|error| {
            tracing::error!(%error, "nobody's keys can be judged");
            refusal(
                "keys",
                "the site cannot judge the keys of others; its log says why",
            )
        })?;
        for (place, (site, answer)) in self.sites.iter().zip(&record.answers).enumerate() {
            if let Some(Answer::Introduced(introduction)) = answer {
                let judged = warrants.introduced(&self.digest, site, introduction);
                judged.map_err(|error| keys(&error))?;
                judge_pinned(site, introduction, self.pinned.get(place))?;
            }
        }
        Ok(())
    }

    /// Every answer is signed by the site that it stands for, as one to this exchange.
    fn judge_signatures(&self, record: &Record) -> Result<(), Refusal> {
        let introductions = self.replica.introductions();
        for (place, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            let digest = wire::digest_of(answer);
            let said = Said {
                run: &self.digest,
                exchange: record.exchange,
                answer: &digest,
            };
            let signature = record.signatures.get(place).map_or(&[][..], Vec::as_slice);
            let introduction = introductions.get(place).and_then(Option::as_ref);
            if !introduction.is_some_and(|known| said.is_signed(known, signature)) {
                let site = self.sites.get(place).map_or("", SiteName::as_str);
                let text = format!(
                    "the coordinator passed on an answer to exchange {} that {site} has not signed",
                    record.exchange
                );
                return Err(refusal("signature", &text));
            }
        }
        Ok(())
    }
}

/// The certificates of the hospitals of the job's study.
fn pinned(job: &Job) -> Vec<CertificateFingerprint> {
    let hospitals = job.study.iter().flat_map(|study| &study.hospitals);
    hospitals.map(|one| one.certificate.clone()).collect()
}

/// A site of a study shows the certificate that the study names.
fn judge_pinned(
    site: &SiteName,
    introduction: &Introduction,
    pinned: Option<&CertificateFingerprint>,
) -> Result<(), Refusal> {
    let Some(pinned) = pinned else { return Ok(()) };
    let found = introduction.chain.first();
    let found = found.map(|certificate| wire::fingerprint_of_der(certificate));
    match found {
        Some(found) if found == *pinned => Ok(()),
        Some(found) => Err(refusal(
            "study",
            &format!("found the certificate {found} of {site}, wanted the study's, {pinned}"),
        )),
        None => Err(refusal("study", &format!("found no certificate of {site}"))),
    }
}

pub(super) fn refusal(rule: &str, text: &str) -> Refusal {
    Refusal {
        rule: rule.to_owned(),
        text: text.to_owned(),
    }
}

pub(super) fn keys(error: &KeyError) -> Refusal {
    refusal("keys", &error.to_string())
}

/// The coordinator asked, or sent, what does not follow from the run.
pub(super) fn question(exchange: u32, text: &str) -> Refusal {
    let text = format!("exchange {exchange} is not what follows from the run: {text}");
    refusal("question", &text)
}
