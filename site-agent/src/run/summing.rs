//! A site's side of a run of sums: it follows the run by itself, answers only what follows from it, and covers what it says.

use crate::books::identity::RunDigest;
use crate::config::SiteConfig;
use crate::method::Secret;
use crate::run::stop::Stop;
use privacy::Covering;
use privacy::sums::Masks;
use protocol::failure::{Code, Refusal};
use protocol::job::Job;
use protocol::message::{Answer, Ask, Begin, Introduction, Request};
use protocol::name::SiteName;
use protocol::replica::{Next, Replica};
use protocol::run::Record;
use std::collections::BTreeSet;
use wire::{KeyError, SEED_BYTES, Said, Sealed, Signer, SiteKeys};

/// Digits of a digest that a refusal names.
const DIGITS: usize = 16;

/// A run of sums at this site.
pub(super) struct Summing {
    digest: String,
    replica: Replica,
    sites: Vec<SiteName>,
    own: usize,
    keys: SiteKeys,
    /// What the site shares with the others, once all have introduced themselves.
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
        digest: &RunDigest,
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
            digest: digest.to_string(),
            replica: Replica::new(begin, job.clone(), own),
            sites: job.sites.clone(),
            own,
            keys,
            masks: None,
            answered: BTreeSet::new(),
            broken: None,
        })
    }

    /// What the site tells of its keys.
    pub(super) fn introduce(&self, config: &SiteConfig) -> Result<Introduction, Stop> {
        let signer = Signer::load(&config.tls);
        let signer = signer.map_err(|error| Stop::failed(Code::Internal, error.to_string()))?;
        let introduction = self.keys.introduce(&signer, &self.digest);
        introduction.map_err(|error| Stop::failed(Code::Internal, error.to_string()))
    }

    /// Takes an exchange that closed, and judges that it is what the sites have said. Gives what this process has to do again of
    /// it, where another one answered: to be ready for what comes.
    pub(super) fn follow(&mut self, record: &Record, config: &SiteConfig) -> Option<Request> {
        if self.broken.is_some() || record.exchange < self.replica.awaited() {
            return None;
        }
        match self.followed(record, config) {
            Ok(again) => again,
            Err(refusal) => {
                tracing::error!(rule = refusal.rule, "{}", refusal.text);
                self.broken = Some(refusal);
                None
            }
        }
    }

    fn followed(
        &mut self,
        record: &Record,
        config: &SiteConfig,
    ) -> Result<Option<Request>, Refusal> {
        let exchange = record.exchange;
        let asked = self.replica.next().and_then(|next| next.request);
        let introduces = matches!(asked, Some(Request::Introduce));
        if introduces {
            self.judge_introductions(record, config)?;
        } else {
            self.judge_signatures(record)?;
        }
        let closed = self.replica.follow(record);
        closed.map_err(|error| question(exchange, &error.to_string()))?;
        if introduces {
            let introductions = self.replica.introductions();
            let masks = self
                .keys
                .masks(&self.digest, &self.sites, self.own, introductions);
            self.masks = Some(masks.map_err(|error| keys(&error))?);
        }
        let is_new = !self.answered.contains(&exchange) && record.answers[self.own].is_some();
        Ok(asked.filter(|asked| is_new && asked.leaves_state()))
    }

    /// Every introduction is of the site that it stands for, and the own one is the own.
    fn judge_introductions(&self, record: &Record, config: &SiteConfig) -> Result<(), Refusal> {
        let warrants = config.warrants().map_err(|error| {
            tracing::error!(%error, "nobody's keys can be judged");
            refusal(
                "keys",
                "the site cannot judge the keys of others; its log says why",
            )
        })?;
        for (place, answer) in record.answers.iter().enumerate() {
            let (Some(Answer::Introduced(introduction)), Some(site)) =
                (answer, self.sites.get(place))
            else {
                continue;
            };
            let judged = warrants.introduced(&self.digest, site, introduction);
            judged.map_err(|error| keys(&error))?;
            if place == self.own {
                let own = self.introduce(config).map_err(|_| own_keys())?;
                let same =
                    own.agreement == introduction.agreement && own.signing == introduction.signing;
                same.then_some(()).ok_or_else(own_keys)?;
            }
        }
        Ok(())
    }

    /// Every answer is signed by the site that it stands for, as one to this exchange with this roster.
    fn judge_signatures(&self, record: &Record) -> Result<(), Refusal> {
        let roster = self.replica.roster();
        let introductions = self.replica.introductions();
        for (place, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            let digest = wire::digest_of(answer);
            let said = Said {
                run: &self.digest,
                exchange: record.exchange,
                roster: &roster,
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

    /// Whether a question is the one that follows from the run.
    pub(super) fn judge(&self, ask: &Ask, digest: &RunDigest) -> Result<Next, Stop> {
        if let Some(refusal) = &self.broken {
            return Err(Stop::Refused(refusal.clone()));
        }
        let next = self.replica.next();
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

    /// What an answer is covered with.
    ///
    /// # Errors
    /// [`Stop::Refused`] before the others are known.
    pub(super) fn covering<'c>(&'c self, next: &'c Next) -> Result<Covering<'c>, Stop> {
        let masks = self.masks.as_ref();
        Ok(Covering {
            masks: masks.ok_or_else(|| refused("keys", "the other sites are not known yet"))?,
            roster: &next.roster,
            run: &self.digest,
            exchange: next.exchange,
        })
    }

    /// The site's word for an answer, which this process has then given.
    pub(super) fn sign(&mut self, exchange: u32, answer: &Sealed) -> Vec<u8> {
        self.answered.insert(exchange);
        self.keys.sign(&Said {
            run: &self.digest,
            exchange,
            roster: &self.replica.roster(),
            answer: &answer.digest(),
        })
    }
}

fn refusal(rule: &str, text: &str) -> Refusal {
    Refusal {
        rule: rule.to_owned(),
        text: text.to_owned(),
    }
}

fn refused(rule: &str, text: &str) -> Stop {
    Stop::Refused(refusal(rule, text))
}

fn keys(error: &KeyError) -> Refusal {
    refusal("keys", &error.to_string())
}

fn own_keys() -> Refusal {
    refusal(
        "keys",
        "the coordinator passed on other keys as this site's own",
    )
}

/// The coordinator asked, or told, what does not follow from the run.
fn question(exchange: u32, text: &str) -> Refusal {
    let text = format!("exchange {exchange} is not what follows from the run: {text}");
    refusal("question", &text)
}
