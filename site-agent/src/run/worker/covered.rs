//! What the worker answers: the question that follows from the run, covered.

use super::{Admitted, Current, Outcome, refused};
use crate::books::identity::{Question, RunDigest};
use crate::books::ledger::{Answered, Ledger};
use crate::config::SiteConfig;
use crate::run::figures;
use crate::run::stop::{Halt, Stop};
use crate::run::summing::Summing;
use privacy::{Cost, Covering, Disclosure, Released};
use protocol::failure::{Code, Refusal};
use protocol::message::{Answer, Ask, Closed, Request};
use protocol::replica::Next;
use protocol::time::Timestamp;

impl Current {
    /// Answers the question that follows from the run, and no other. What adds up is covered; it is in the ledger before it is
    /// released.
    pub(super) fn answer(&mut self, ledger: &mut Ledger, ask: &Ask) -> Outcome {
        let next = self.judge(ask)?;
        let (Some(summing), Some(admitted)) = (&self.summing, &mut self.admitted) else {
            return Err(Stop::early().into());
        };
        admitted.gate.still_open().map_err(refused)?;
        let request = &ask.request;
        let question = self.digest.question(ask.exchange, request);
        let known = ledger.answered(&self.digest, &question).cloned();
        if known.is_none() && ledger.is_covered(&self.digest, ask.exchange) {
            let text = "another question of the same exchange was answered before, and masks are used once";
            let refusal = Refusal {
                rule: "same_answer".to_owned(),
                text: text.to_owned(),
            };
            return Err(Stop::Refused(refusal).into());
        }
        let prepared = admitted.computation.rows().is_some();
        if request.builds_on_preparation() && !prepared {
            return Err(Stop::early().into());
        }
        let answer = match admitted.answer_braked(request) {
            Ok(answer) => answer,
            Err((stop, is_shut)) => {
                if is_shut {
                    ledger.shut(&self.digest)?;
                }
                return Err(stop.into());
            }
        };
        let leaving = (ledger, &self.digest, question, known);
        let Some(blank) = &next.blank else {
            return admitted.release(answer, None, leaving);
        };
        let heard = summing.follower().heard();
        let covering = summing.covering(&next, &heard)?;
        if let Answer::Assessed(assessment) = &answer {
            let folder = admitted.computation.folder();
            if let Err(error) = figures::write(
                folder,
                admitted.computation.job(),
                &admitted.description,
                assessment,
            ) {
                return Err(Stop::failed(Code::Results, error.to_string()).into());
            }
        }
        let answer = answer.in_shape_of(blank, admitted.description.patients);
        admitted.release(answer, Some(&covering), leaving)
    }

    /// What is open, where the question is the one that follows from the run.
    fn judge(&self, ask: &Ask) -> Result<Next, Stop> {
        match (&self.job, &self.summing) {
            (Err(stop), _) => Err(stop.clone()),
            (Ok(_), None) => Err(Stop::early()),
            (Ok(_), Some(summing)) => summing.judge(ask, &self.digest),
        }
    }

    /// Admits the cohort at the first question about it.
    fn take_part(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
        ask: &Ask,
        now: Timestamp,
    ) -> Result<(), Halt> {
        self.judge(ask)?;
        match self.admitted {
            Some(_) => Ok(()),
            None => self.admit(config, ledger, now),
        }
    }

    /// The site says no, or by which keys it is known, and nothing of its cohort.
    pub(super) fn introduce(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
        ask: &Ask,
        now: Timestamp,
    ) -> Outcome {
        self.take_part(config, ledger, ask, now)?;
        let introduction = match (&self.summing, &self.admitted) {
            (Some(summing), Some(own)) => summing.introduce(config, own.patients_at_most),
            (Some(_) | None, _) => Err(Stop::early()),
        };
        Ok(wire::seal(Released::notice(introduction?)))
    }

    /// The site says no, or who its patients are.
    pub(super) fn describe(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
        ask: &Ask,
        now: Timestamp,
    ) -> Outcome {
        self.take_part(config, ledger, ask, now)?;
        self.answer(ledger, ask)
    }

    /// Whether another process of this site has answered the question at which a cohort is admitted, so that this one has yet to read
    /// the cohort.
    pub(super) fn admitted_elsewhere(&self, closed: &Closed) -> bool {
        let Some(follower) = self.summing.as_ref().map(Summing::follower) else {
            return false;
        };
        let own = closed.record.answers.get(follower.own);
        let asked = follower.asked();
        self.admitted.is_none()
            && matches!(asked, Some(Request::Introduce | Request::Describe))
            && matches!(own, Some(Some(answer)) if !answer.is_reason())
    }

    /// A secret for each later site, which covers what is said later. Nothing of the cohort is in it.
    pub(super) fn encapsulate(&mut self, config: &SiteConfig, ask: &Ask) -> Outcome {
        self.judge(ask)?;
        let summing = self.summing.as_mut().ok_or_else(Stop::early)?;
        let encapsulated = summing.encapsulate(&config.folder)?;
        Ok(wire::seal(Released::notice(encapsulated)))
    }
}

impl Admitted {
    /// Releases an answer, covered where it adds up. What is known left before, and must be the same.
    fn release(
        &mut self,
        mut answer: Answer,
        covering: Option<&Covering<'_>>,
        (ledger, run, question, known): (&mut Ledger, &RunDigest, Question, Option<Answered>),
    ) -> Outcome {
        let (kind, cost) = (answer.kind(), Cost::of(&answer.content()));
        let Some(known) = known else {
            let released = match covering {
                Some(covering) => self.gate.release_covered(answer, covering),
                None => self.gate.release(answer),
            };
            let sealed = wire::seal(released.map_err(refused)?);
            let answered = Answered::new(kind, cost, sealed.digest());
            let answered = match covering {
                Some(covering) => answered.covered(covering.exchange),
                None => answered,
            };
            ledger.answer(run, question, answered)?;
            return Ok(sealed);
        };
        let same = |answer: &Answer| wire::digest_of(answer) == known.digest;
        let released = match covering {
            Some(covering) => self.gate.repeat_covered(answer, covering, same),
            None => self.gate.repeat(answer, same),
        };
        Ok(wire::seal(released.map_err(refused)?))
    }
}
