//! A site's side of a run of sums: it follows the run by itself, answers only what follows from it, and covers what it says.

use super::follower::{Follower, keys, question, refusal};
use crate::books::chain::ChainError;
use crate::books::identity::RunDigest;
use crate::books::{secrets, transcript};
use crate::config::SiteConfig;
use crate::method::Secret;
use crate::run::stop::{Halt, Stop};
use crate::studies::{self, opened};
use privacy::Covering;
use privacy::sums::{Masks, Total};
use protocol::failure::{Code, Refusal};
use protocol::job::Job;
use protocol::message::{Answer, Ask, Begin, Closed, Encapsulations, Introduction, Request};
use protocol::name::SiteName;
use protocol::opening::Opening;
use protocol::replica::Next;
use protocol::run::Record;
use std::collections::BTreeSet;
use std::path::Path;
use wire::{Acquaintance, KeyError, RunSecrets, Said, Sealed, Signer, SiteKeys};

/// Digits of a digest that a refusal names.
const DIGITS: usize = 16;

/// A run of sums at this site.
pub(super) struct Summing {
    follower: Follower,
    /// Numbers that this site alone can tell, from its own key and the run.
    own: [u8; 32],
    /// The digest that the keys follow from: this run's, or that of the run by which its study opened.
    keyed: String,
    /// The site's keys, once its cohort is known.
    keys: Option<SiteKeys>,
    /// What the site shares with the others, once all have encapsulated their secrets.
    masks: Option<Masks>,
    /// Exchanges that this process has answered.
    answered: BTreeSet<u32>,
    /// Whether the study opens by this run, and nobody has taken how.
    opens: bool,
    /// Who is in no sum of the study, as it has opened.
    left_out: Vec<u32>,
    /// Why nothing more of this run leaves.
    broken: Option<Stop>,
}

impl Summing {
    /// Makes ready to follow a run. The keys follow from a secret of the site, from the run or that by which its study opened, and
    /// from what was drawn for that and is `kept`: a site that starts again has them again.
    pub(super) fn new(
        begin: &Begin,
        job: &Job,
        digest: &str,
        site: &SiteName,
        secret: &Secret,
        keyed: Keyed,
    ) -> Result<Self, Stop> {
        let own = job.sites.iter().position(|name| name == site);
        let own = own.ok_or_else(|| refused("sites", "the job does not name this site"))?;
        let Keyed { opening, kept } = keyed;
        let keyed = match &opening {
            Some(opening) => opening.digest.clone(),
            None => digest.to_owned(),
        };
        let mut number = [0; 32];
        for (place, part) in number.chunks_mut(8).enumerate() {
            let text = format!("{place}/{keyed}");
            part.copy_from_slice(&secret(text.as_bytes()).to_be_bytes());
        }
        let keys = kept.map(|kept| SiteKeys::new(&keyed, &number, kept));
        let mut summing = Self {
            follower: Follower::new(begin, job, digest.to_owned(), own, opening.as_ref()),
            own: number,
            keyed,
            keys: keys.transpose().map_err(|error| unusable(&error))?,
            masks: None,
            answered: BTreeSet::new(),
            opens: false,
            left_out: opening
                .as_ref()
                .map_or_else(Vec::new, |opening| opening.left_out.clone()),
            broken: None,
        };
        if opening.is_some() {
            let keys = summing.keys.as_ref().ok_or_else(lost)?;
            let masks = keys.masks(&summing.acquaintance());
            summing.masks = Some(masks.map_err(|error| unusable(&error))?);
        }
        Ok(summing)
    }

    /// How the study opens by this run: once, when all sites have exchanged their keys.
    pub(super) fn take_opening(&mut self) -> Option<Opening> {
        let opens = std::mem::take(&mut self.opens);
        opens.then(|| self.follower.opening()).flatten()
    }

    /// Who is in no sum of the study, as it has opened: patterns of who has which outcome.
    pub(super) fn left_out(&self) -> &[u32] {
        &self.left_out
    }

    /// Holds the run to one cohort: its keys are for it, and with other patients the same masks would cover other numbers.
    /// Where there are no keys yet, they are drawn, and kept in `folder` before anything leaves.
    ///
    /// # Errors
    /// [`Halt`] where they cannot be kept, or are for other patients.
    pub(super) fn settle(&mut self, cohort: [u8; 32], folder: &Path) -> Result<(), Halt> {
        if let Some(keys) = &self.keys {
            let is_same = *keys.secrets().cohort() == cohort;
            let text = "the patients, or their values, are not those that this run began with";
            let settled = is_same.then_some(());
            return Ok(settled.ok_or_else(|| refused("same_cohort", text))?);
        }
        let drawn = RunSecrets::draw(cohort);
        let keys = drawn.and_then(|drawn| SiteKeys::new(&self.keyed, &self.own, drawn));
        let keys = keys.map_err(|error| unusable(&error))?;
        secrets::write(folder, &self.keyed, keys.secrets())?;
        self.keys = Some(keys);
        Ok(())
    }

    /// Nothing more of this run leaves.
    pub(super) fn give_up(&mut self, stop: Stop) {
        self.broken.get_or_insert(stop);
    }

    /// Why nothing more of this run leaves, where that is so.
    pub(super) fn broken(&self) -> Option<&Stop> {
        self.broken.as_ref()
    }

    /// The site's keys, once its cohort is known.
    fn keys(&self) -> Result<&SiteKeys, Stop> {
        self.keys.as_ref().ok_or_else(Stop::early)
    }

    /// The run, by the site's own copy of the coordinator's machine.
    pub(super) fn follower(&self) -> &Follower {
        &self.follower
    }

    /// What the site tells of its keys, and of its patients of the study, rounded up to ten.
    pub(super) fn introduce(
        &self,
        config: &SiteConfig,
        patients_at_most: u64,
    ) -> Result<Introduction, Stop> {
        let signer = Signer::load(&config.tls);
        let signer = signer.map_err(|error| Stop::failed(Code::Internal, error.to_string()))?;
        let keys = self.keys()?;
        let introduction = keys.introduce(&signer, &self.follower.digest, patients_at_most);
        introduction.map_err(|error| unusable(&error))
    }

    /// The secrets that it shares with later sites, once they are kept in `folder`.
    ///
    /// # Errors
    /// [`Halt`] where they cannot be kept, or are for other patients.
    pub(super) fn encapsulate(&mut self, folder: &Path) -> Result<Encapsulations, Halt> {
        let mut own = self.keys.take().ok_or_else(Stop::early)?;
        let told = own.encapsulate(&self.acquaintance());
        let kept = secrets::write(folder, &self.keyed, own.secrets());
        self.keys = Some(own);
        kept?;
        Ok(told.map_err(|error| Stop::Refused(keys(&error)))?)
    }

    fn acquaintance(&self) -> Acquaintance<'_> {
        let follower = &self.follower;
        Acquaintance {
            run: &self.keyed,
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
                self.give_up(Stop::Refused(refusal));
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
        if let (Some(Request::Encapsulate), Some(own)) = (&asked, &self.keys) {
            let masks = own.masks(&self.acquaintance());
            self.masks = Some(masks.map_err(|error| keys(&error))?);
            self.opens = true;
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
        match &self.keys {
            Some(own) if own.are_of(found) => Ok(()),
            Some(_) => {
                let text = "the coordinator passed on other keys as this site's own";
                Err(refusal("keys", text))
            }
            None => Err(refusal(
                "keys",
                "this site has no keys of this run any more",
            )),
        }
    }

    /// Whether a question is the one that follows from the run.
    pub(super) fn judge(&self, ask: &Ask, digest: &RunDigest) -> Result<Next, Stop> {
        if let Some(stop) = &self.broken {
            return Err(stop.clone());
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

    /// The site's word for an answer, which this process has then given; empty before the site has keys.
    pub(super) fn sign(&mut self, exchange: u32, answer: &Sealed) -> Vec<u8> {
        self.answered.insert(exchange);
        let signed = self.keys.as_ref().map(|own| {
            own.sign(&Said {
                run: &self.follower.digest,
                exchange,
                answer: &answer.digest(),
            })
        });
        signed.unwrap_or_default()
    }
}

/// What the keys of a run follow from, beside the site's own secret.
pub(super) struct Keyed {
    /// How the job's study opened; none where the run opens it.
    pub(super) opening: Option<Opening>,
    /// What was drawn and kept.
    pub(super) kept: Option<RunSecrets>,
}

impl Keyed {
    /// What this site keeps for a run with this digest.
    pub(super) fn read(
        folder: &Path,
        begin: &Begin,
        job: &Job,
        digest: &str,
    ) -> Result<Self, Stop> {
        let broken = |error: ChainError| Stop::failed(Code::Internal, error.to_string());
        let Some(study) = &job.study else {
            return Err(refused("study", studies::OF_NO_STUDY));
        };
        let opening = match &begin.opening {
            Some(run) => {
                let found = opened::read(folder, &study.name, run).map_err(broken)?;
                let found = found.filter(|opening| opening.is_of(job.sites.len()));
                Some(found.ok_or_else(lost)?)
            }
            None if job.opens_study() => None,
            None => {
                let text =
                    "found a job of a study that has not opened, wanted one of an open study";
                return Err(refused("study", text));
            }
        };
        let keyed = opening.as_ref().map_or(digest, |opening| &opening.digest);
        let kept = secrets::read(folder, keyed).map_err(broken)?;
        Ok(Self { opening, kept })
    }
}

/// The study opened without this site, or before its folder was put back.
fn lost() -> Stop {
    let text = "this site has no keys of the study's opening; wanted the folder that it had when the study opened";
    refused("study", text)
}

fn unusable(error: &KeyError) -> Stop {
    Stop::failed(Code::Internal, error.to_string())
}

fn refused(rule: &str, text: &str) -> Stop {
    Stop::Refused(refusal(rule, text))
}
