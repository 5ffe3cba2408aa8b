//! How a step of a run closes: when it is ripe, what is stored, and what comes after.

use super::exchange::Summed;
use super::{Action, Exchange, Record, Run, SiteState, Step, Work};
use crate::exchange::{Answers, Closed, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::limits::TEXT_LENGTH_MAX;
use crate::message::Description;
use crate::message::{self, Answer, ToSite};
use crate::method::Beginning;
use crate::name::SiteName;
use crate::progress::Ending;
use crate::stage::agreeing::Agreeing;
use crate::sums;
use crate::time::Timestamp;
use privacy::Disclosure;
use privacy::sums::{Total, WORD_BYTES, Words};
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// Patients of the hospitals of a study, each rounded up to ten.
#[derive(Debug, Clone, Copy)]
struct ApprovedPatients {
    all: u64,
    /// Of the hospital that has most.
    largest: u64,
}

impl Run {
    /// Closes what is ripe: the joining once all are connected, the open exchange once all have answered, or all who are
    /// connected where one of them says that it cannot take part.
    pub(super) fn settle(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let is_ripe = match &self.step {
            Step::Joining { .. } => self.sites.iter().all(SiteState::is_up),
            Step::Asking(open) if open.answers.iter().flatten().any(Answer::is_reason) => {
                !self.awaited(open).any(SiteState::is_up)
            }
            Step::Asking(open) => self.awaited(open).next().is_none(),
            Step::Ended(_) => return,
        };
        match is_ripe {
            true => self.advance(now, actions),
            false => actions.push(Action::Report(self.progress(now))),
        }
    }

    /// Closes the open step, stores it, and asks the next.
    fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let joining = matches!(self.step, Step::Joining { .. });
        let closed = match &mut self.step {
            Step::Asking(exchange) => std::mem::replace(exchange, Exchange::open(0, now, 0)),
            Step::Joining { .. } | Step::Ended(_) => Exchange::open(0, now, self.sites.len()),
        };
        if let Some(ending) = self.failures(&closed.answers) {
            self.end(ending, now, actions);
            return;
        }
        let exchange = closed.number;
        let record = Record {
            at: now,
            exchange,
            answers: closed.answers,
            signatures: closed.signatures,
        };
        // One copy for the store and all who hear it. Later it is in the store alone.
        let closed = message::Closed::new(self.id.clone(), record.clone());
        let closed = Arc::new(closed);
        actions.push(Action::Store(Arc::clone(&closed)));
        let turn = self.close(record, None);
        self.send_closed(&closed, joining, actions);
        match turn {
            Turn::Done(ending) => self.end(ending, now, actions),
            Turn::Ask => {
                for index in 0..self.sites.len() {
                    let request = self.work.asking().ask(index);
                    actions.extend(self.ask(index, exchange + 1, request));
                }
                actions.push(Action::Report(self.progress(now)));
            }
        }
    }

    /// All sites learn that the run begins, and what closed. A site that is away learns it when it comes back.
    fn send_closed(&self, closed: &Arc<message::Closed>, joining: bool, actions: &mut Vec<Action>) {
        for (index, site) in self.sites.iter().enumerate() {
            if joining {
                actions.push(self.begin(index));
            }
            actions.push(Action::Send {
                site: site.name.clone(),
                message: ToSite::Closed(Arc::clone(closed)),
            });
        }
    }

    /// Applies one record: the only way in which a run moves on, live or replayed. `total` is the sum of its answers where
    /// digests stand for them.
    pub(super) fn close(&mut self, record: Record, total: Option<&Total>) -> Turn<Ending> {
        self.last = record.at;
        for (index, answer) in record.answers.iter().enumerate() {
            match answer {
                Some(Answer::Introduced(introduction)) => {
                    self.introductions[index] = Some(introduction.clone());
                }
                Some(Answer::Encapsulated(told)) => {
                    self.encapsulations[index] = Some(told.clone());
                }
                Some(_) | None => {}
            }
        }
        let turn = self.take_turn(record.exchange, record.answers, total);
        match &turn {
            Turn::Done(ending) => self.step = Step::Ended(ending.clone()),
            Turn::Ask => self.open_next(record.exchange + 1, record.at),
        }
        turn
    }

    fn open_next(&mut self, number: u32, at: Timestamp) {
        let mut next = Exchange::open(number, at, self.sites.len());
        next.summed = self.work.asking().blank().map(|mut blank| {
            let words = Words::wanted(&mut blank);
            let kind = blank.kind();
            let tagged = self.is_too_much_to_hear(words);
            Summed {
                kind,
                words,
                tagged,
            }
        });
        self.step = Step::Asking(next);
    }

    /// Every site receives every answer, up to the bytes of them that the job says.
    fn is_too_much_to_hear(&self, words: usize) -> bool {
        let bytes = (self.sites.len() * words * WORD_BYTES) as u64;
        bytes > self.job.answers_bytes_max
    }

    fn take_turn(
        &mut self,
        exchange: u32,
        answers: Answers,
        total: Option<&Total>,
    ) -> Turn<Ending> {
        // The joining is no exchange: nothing was asked.
        if exchange == 0 {
            return Turn::Ask;
        }
        let heard_as_total = answers.iter().flatten().any(Answer::is_of_a_total);
        self.totals += u32::from(heard_as_total);
        let sum = match self.summed(&answers, total) {
            Ok(sum) => sum,
            Err(failure) => return Turn::Done(Ending::Failed(failure)),
        };
        let sites: Vec<SiteName> = self.job.sites.clone();
        let mut closed = Closed {
            answers,
            sum,
            sites: &sites,
            seconds: self.last.since(self.began).as_secs_f64(),
            notes: &mut self.notes,
        };
        let turn = match &mut self.work {
            Work::Introducing(introducing) => introducing.close(&mut closed).map(|turn| {
                if let Turn::Done(()) = turn {
                    self.work = Work::Agreeing(Agreeing::new(Arc::clone(&self.job.cohort)));
                }
                Turn::Ask
            }),
            Work::Agreeing(agreeing) => match agreeing.close(&mut closed) {
                Ok(Turn::Done(description)) => self.begin_method(description),
                Ok(Turn::Ask) => Ok(Turn::Ask),
                Err(failure) => Err(failure),
            },
            Work::Method(stages) => stages.close(&mut closed),
        };
        turn.unwrap_or_else(|failure| Turn::Done(Ending::Failed(failure)))
    }

    /// The patients are known: the method begins.
    fn begin_method(&mut self, description: Description) -> Result<Turn<Ending>, Failure> {
        self.patients = description.patients;
        self.classes.clone_from(&description.classes);
        let approved = self.approved();
        if approved.is_some_and(|approved| description.patients > approved.all) {
            let text = "found more patients than the hospitals have approved";
            return Err(Failure::new(Code::Sum, format!("{text}{}", self.audits())));
        }
        let beginning = Beginning {
            cohort: self.job.cohort.clone(),
            seed: Seed(self.seed),
            sites: self.job.sites.len(),
            largest: approved.map_or(0, |approved| approved.largest),
            description,
            counts: Arc::clone(&self.counts),
        };
        self.work = Work::Method(self.job.method.begin(&beginning)?);
        Ok(Turn::Ask)
    }

    /// The numbers of patients that the hospitals have approved; none before they have answered.
    fn approved(&self) -> Option<ApprovedPatients> {
        let known = self
            .introductions
            .iter()
            .map(|one| Some(one.as_ref()?.patients_at_most));
        let known: Vec<u64> = known.collect::<Option<_>>()?;
        Some(ApprovedPatients {
            all: known.iter().fold(0, |sum, own| sum.saturating_add(*own)),
            largest: known.into_iter().max()?,
        })
    }

    /// Patients of the hospital that has most, rounded up to ten: at most all.
    pub(super) fn largest(&self) -> u64 {
        self.approved()
            .map_or(self.patients, |approved| approved.largest)
    }

    /// The sum of the sites' answers, judged as that of one site with all their patients; none where nothing is
    /// summed. Of one site alone it is that site's answer.
    fn summed(
        &self,
        answers: &[Option<Answer>],
        total: Option<&Total>,
    ) -> Result<Option<Answer>, Failure> {
        let asking = self.work.asking();
        let Some(blank) = asking.blank() else {
            return Ok(None);
        };
        let told = answers.iter().flatten();
        let sum = match total {
            Some(total) => sums::read(&total.words(), blank)?,
            None => sums::sum(told, blank, self.patients)?,
        };
        let patients = match &sum {
            Answer::Moments(moments) => moments.summary.patients,
            Answer::Prepared(Some(moments)) => moments.patients,
            _ => self.patients,
        };
        asking.judge(0, patients, &sum).map_err(|fault| Failure {
            code: match self.job.is_alone() {
                true => fault.code,
                false => Code::Sum,
            },
            text: format!("the sum over the sites: {}{}", fault.text, self.audits()),
        })?;
        Ok(Some(sum))
    }

    /// What the hospitals of a study do about a sum that cannot be: whose answers do not follow has no proof.
    fn audits(&self) -> String {
        self.job.study.as_ref().map_or(String::new(), |study| {
            format!(
                ". The run is void: it counts as none, but for its rounds. Each hospital proves its answers: kindred-site-agent study audit {}",
                study.name.as_str()
            )
        })
    }

    /// Every site's problem, refusal or failure in one message.
    fn failures(&self, answers: &[Option<Answer>]) -> Option<Ending> {
        let mut first = None;
        let mut lines = Vec::new();
        for (site, answer) in self.sites.iter().zip(answers) {
            for reason in answer.iter().flat_map(Answer::reasons) {
                first.get_or_insert(reason.code);
                lines.push(format!("{}: {}", site.name, reason.text));
            }
        }
        let text = shortened(&lines.join("\n"));
        first.map(|code| Ending::Failed(Failure { code, text }))
    }

    pub(super) fn end(&mut self, ending: Ending, now: Timestamp, actions: &mut Vec<Action>) {
        self.last = now;
        self.step = Step::Ended(ending.clone());
        let sentence = match &ending {
            Ending::Failed(failure) => format!("the run failed: {}", failure.code),
            other => other.status().to_owned(),
        };
        for site in self.sites.iter().filter(|site| site.is_up()) {
            actions.push(self.let_go(site, &sentence));
        }
        actions.push(Action::Report(self.progress(now)));
        actions.push(Action::End(ending));
    }

    fn let_go(&self, site: &SiteState, ending: &str) -> Action {
        let message = ToSite::End {
            run: self.id.clone(),
            ending: shortened(ending),
        };
        Action::Send {
            site: site.name.clone(),
            message,
        }
    }
}

/// What a site wrote goes into one line of a log and of a report.
pub(super) fn shortened(text: &str) -> String {
    let plain = |letter: char| match letter {
        '\n' => letter,
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    text.chars().map(plain).take(TEXT_LENGTH_MAX).collect()
}
