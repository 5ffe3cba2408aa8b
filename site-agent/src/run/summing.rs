//! A site's side of a run of sums: it follows the run by itself, answers only what follows from it, and covers what it says.

use super::follower::{Follower, keys, question, refusal};
use crate::books::identity::RunDigest;
use crate::books::transcript;
use crate::config::SiteConfig;
use crate::method::Secret;
use crate::run::stop::Stop;
use privacy::Covering;
use privacy::sums::{Masks, Total};
use protocol::failure::{Code, Refusal};
use protocol::job::Job;
use protocol::message::{Answer, Ask, Begin, Closed, Encapsulations, Introduction, Request};
use protocol::name::SiteName;
use protocol::replica::Next;
use protocol::run::Record;
use std::collections::BTreeSet;
use wire::{Acquaintance, SEED_BYTES, Said, Sealed, Signer, SiteKeys};

/// Digits of a digest that a refusal names.
const DIGITS: usize = 16;

/// A run of sums at this site.
pub(super) struct Summing {
    follower: Follower,
    keys: SiteKeys,
    /// What the site shares with the others, once all have encapsulated their secrets.
    masks: Option<Masks>,
    /// Exchanges that this process has answered.
    answered: BTreeSet<u32>,
    /// Why nothing more of this run leaves.
    broken: Option<Refusal>,
}

impl Summing {
    /// Makes ready to follow a run. The keys follow from a secret of the site and from the run: a site that starts again has
    /// them again.
    pub(super) fn new(
        begin: &Begin,
        job: &Job,
        digest: &str,
        site: &SiteName,
        secret: &Secret,
    ) -> Result<Self, Stop> {
        let own = job.sites.iter().position(|name| name == site);
        let own = own.ok_or_else(|| refused("sites", "the job does not name this site"))?;
        let mut seed = [0; SEED_BYTES];
        for (place, part) in seed.chunks_mut(8).enumerate() {
            let text = format!("{place}/{digest}");
            part.copy_from_slice(&secret(text.as_bytes()).to_be_bytes());
        }
        let keys = SiteKeys::from_seed(&seed)
            .map_err(|error| Stop::failed(Code::Internal, error.to_string()))?;
        Ok(Self {
            follower: Follower::new(begin, job, digest.to_string(), own),
            keys,
            masks: None,
            answered: BTreeSet::new(),
            broken: None,
        })
    }

    /// The run, by the site's own copy of the coordinator's machine.
    pub(super) fn follower(&self) -> &Follower {
        &self.follower
    }

    /// What the site tells of its keys.
    pub(super) fn introduce(&self, config: &SiteConfig) -> Result<Introduction, Stop> {
        let signer = Signer::load(&config.tls);
        let signer = signer.map_err(|error| Stop::failed(Code::Internal, error.to_string()))?;
        let introduction = self.keys.introduce(&signer, &self.follower.digest);
        introduction.map_err(|error| Stop::failed(Code::Internal, error.to_string()))
    }

    /// The secrets that it shares with later sites.
    pub(super) fn encapsulate(&self) -> Result<Encapsulations, Stop> {
        let told = self.keys.encapsulate(&self.acquaintance());
        told.map_err(|error| Stop::Refused(keys(&error)))
    }

    fn acquaintance(&self) -> Acquaintance<'_> {
        let follower = &self.follower;
        Acquaintance {
            run: &follower.digest,
            sites: &follower.sites,
            own: follower.own,
            introductions: follower.introductions(),
            encapsulations: follower.encapsulations(),
        }
    }

    /// Takes an exchange that closed, and judges that it is what the sites have said. Gives what this process has to do again of
    /// it, where another one answered: to be ready for what comes.
    pub(super) fn follow(&mut self, closed: &Closed, config: &SiteConfig) -> Option<Request> {
        let record = &closed.record;
        if self.broken.is_some() || record.exchange < self.follower.awaited() {
            return None;
        }
        match self.followed(closed, config) {
            Ok(again) => {
                // Without it the run goes on; only nobody can work it out again here.
                if let Err(error) = transcript::add(&config.folder, closed) {
                    tracing::error!(%error, "the copy of what closed could not be written");
                }
                again
            }
            Err(refusal) => {
                tracing::error!(rule = refusal.rule, "{}", refusal.text);
                self.broken = Some(refusal);
                None
            }
        }
    }

    /// As [`Summing::follow`], of a run that is worked out again.
    pub(super) fn followed(
        &mut self,
        closed: &Closed,
        config: &SiteConfig,
    ) -> Result<Option<Request>, Refusal> {
        let record = &closed.record;
        let asked = self.follower.asked();
        if matches!(asked, Some(Request::Introduce)) {
            self.judge_own(record)?;
        }
        if let Some(total) = &closed.total {
            self.judge_total(record.exchange, total)?;
        }
        self.follower.follow(closed, config)?;
        if matches!(asked, Some(Request::Encapsulate)) {
            let masks = self.keys.masks(&self.acquaintance());
            self.masks = Some(masks.map_err(|error| keys(&error))?);
        }
        let own = &record.answers[self.follower.own];
        let is_new = !self.answered.contains(&record.exchange) && own.is_some();
        Ok(asked.filter(|asked| is_new && asked.leaves_state()))
    }

    /// A total is the sum of what the sites have covered, no more and no less: their tags say so.
    fn judge_total(&self, exchange: u32, total: &Total) -> Result<(), Refusal> {
        let (next, heard) = (self.follower.next(), self.follower.heard());
        let proves = next.as_ref().is_some_and(|next| {
            let (Some(blank), Ok(covering)) = (&next.blank, self.covering(next, &heard)) else {
                return false;
            };
            next.exchange == exchange && covering.proves(blank.kind_name(), total)
        });
        proves.then_some(()).ok_or_else(|| {
            let text = format!(
                "the coordinator passed on a sum of exchange {exchange} that is not the sum of what the sites answered"
            );
            refusal("total", &text)
        })
    }

    /// The own keys are the own.
    fn judge_own(&self, record: &Record) -> Result<(), Refusal> {
        let Some(Some(Answer::Introduced(found))) = record.answers.get(self.follower.own) else {
            return Ok(());
        };
        self.keys.are_of(found).then_some(()).ok_or_else(|| {
            refusal(
                "keys",
                "the coordinator passed on other keys as this site's own",
            )
        })
    }

    /// Whether a question is the one that follows from the run.
    pub(super) fn judge(&self, ask: &Ask, digest: &RunDigest) -> Result<Next, Stop> {
        if let Some(refusal) = &self.broken {
            return Err(Stop::Refused(refusal.clone()));
        }
        let next = self.follower.next();
        let next = next.ok_or_else(|| Stop::Refused(question(ask.exchange, "nothing is open")))?;
        let wanted = next
            .request
            .as_ref()
            .filter(|_| next.exchange == ask.exchange);
        if wanted == Some(&ask.request) {
            return Ok(next);
        }
        let digits = |exchange, request: &Request| {
            let question = digest.question(exchange, request).to_string();
            question.chars().take(DIGITS).collect::<String>()
        };
        let found = digits(ask.exchange, &ask.request);
        let wanted = match &next.request {
            Some(request) => digits(next.exchange, request),
            None => "no question to this site".to_owned(),
        };
        let text = format!(
            "found {found} ({}) in exchange {}, wanted {wanted} in exchange {}",
            ask.request.answer_kind(),
            ask.exchange,
            next.exchange
        );
        Err(Stop::Refused(question(ask.exchange, &text)))
    }

    /// What an answer is covered with, where `heard` is the digest of all that closed before it.
    ///
    /// # Errors
    /// [`Stop::Refused`] before the others are known.
    pub(super) fn covering<'c>(
        &'c self,
        next: &'c Next,
        heard: &'c str,
    ) -> Result<Covering<'c>, Stop> {
        let masks = self.masks.as_ref();
        Ok(Covering {
            masks: masks.ok_or_else(|| refused("keys", "the other sites are not known yet"))?,
            run: &self.follower.digest,
            heard,
            exchange: next.exchange,
            tagged: next.tagged,
        })
    }

    /// The site's word for an answer, which this process has then given.
    pub(super) fn sign(&mut self, exchange: u32, answer: &Sealed) -> Vec<u8> {
        self.answered.insert(exchange);
        self.keys.sign(&Said {
            run: &self.follower.digest,
            exchange,
            answer: &answer.digest(),
        })
    }
}

fn refused(rule: &str, text: &str) -> Stop {
    Stop::Refused(refusal(rule, text))
}
