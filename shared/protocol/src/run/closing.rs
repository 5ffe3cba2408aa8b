//! How a step of a run closes: when it is ripe, what is stored, and what comes after.

use super::exchange::Summed;
use super::{Action, Connection, Exchange, Record, Run, SiteState, Standing, Step, Work};
use crate::exchange::{Answers, Closed, Silence, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::limits::{SILENT_ROUNDS_MAX, TEXT_LENGTH_MAX};
use crate::message::{self, Answer, ToSite};
use crate::method::Beginning;
use crate::name::SiteName;
use crate::progress::Ending;
use crate::stage::agreeing::Agreeing;
use crate::sums;
use crate::time::Timestamp;
use privacy::sums::{Total, WORD_BYTES, Words};
use privacy::{Contributions, Disclosure};
use similarity::numeric::seed::Seed;
use std::sync::Arc;

impl Run {
    /// Closes what is ripe: the joining, or the open exchange.
    pub(super) fn settle(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        match &self.step {
            Step::Joining { deadline } => {
                let up = self.sites.iter().filter(|site| site.is_up()).count();
                if up == self.sites.len() || (now >= *deadline && up >= self.job.sites_min) {
                    self.advance(now, actions);
                } else if now >= *deadline {
                    let missing = self.names(|site| !site.is_up());
                    self.too_few(up, &missing, None, now, actions);
                } else {
                    actions.push(Action::Report(self.progress(now)));
                }
            }
            Step::Asking(exchange) => {
                let unheard = |index: &usize| !exchange.has_heard(*index);
                let waiting = |index: usize| self.waited_for(&self.sites[index], exchange, now);
                let answered = exchange.answers.iter().flatten().count();
                if (0..self.sites.len()).filter(unheard).any(waiting) {
                    actions.push(Action::Report(self.progress(now)));
                } else if answered >= self.sites_needed() && self.can_go_on(exchange) {
                    self.advance(now, actions);
                } else {
                    let asked = |index: &usize| match self.sites[*index].standing {
                        Standing::Member | Standing::Away | Standing::Awaited => true,
                        Standing::Absent | Standing::Suspended => false,
                    };
                    let silent = (0..self.sites.len()).filter(unheard).filter(asked);
                    let missing: Vec<String> = silent
                        .map(|index| self.sites[index].name.to_string())
                        .collect();
                    let faults = exchange.faults.clone();
                    self.keep_faults(&faults);
                    let fault = faults.into_iter().flatten().next();
                    self.too_few(answered, &missing, fault, now, actions);
                }
            }
            Step::Ended(_) => {}
        }
    }

    /// A member is waited for until the exchange's deadline, or until it has been gone too long.
    fn waited_for(&self, site: &SiteState, exchange: &Exchange, now: Timestamp) -> bool {
        let here = match site.connection {
            Connection::Up => true,
            Connection::DownSince(since) => now < since.after(self.job.deadlines.rejoin),
        };
        site.standing == Standing::Member && here && now < exchange.deadline
    }

    /// Where sums are told, an exchange closes with all who were asked, or is asked again of those who are left: they must be
    /// enough.
    fn can_go_on(&self, exchange: &Exchange) -> bool {
        if !self.tells_sums() || self.is_complete(&exchange.answers) {
            return true;
        }
        let left = self.next_members(exchange).into_iter();
        left.filter(|member| *member).count() >= self.sites_needed()
    }

    /// Whether all who were asked have answered, or need not: keys are not summed.
    fn is_complete(&self, answers: &[Option<Answer>]) -> bool {
        let all = self.sites.iter().zip(answers);
        matches!(self.work, Work::Introducing(_))
            || all
                .into_iter()
                .all(|(site, answer)| site.standing != Standing::Member || answer.is_some())
    }

    /// Answers without which an exchange fails the run. A finished model is not thrown away because
    /// a site was lost while it was judged.
    fn sites_needed(&self) -> usize {
        match self.work.asking().silence() {
            Silence::Out | Silence::Away => self.job.sites_min,
            Silence::Excused => 0,
        }
    }

    /// Fails the run, by the first of the faults that left too few sites where there is one.
    fn too_few(
        &mut self,
        found: usize,
        missing: &[String],
        fault: Option<Failure>,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) {
        let what = match self.step {
            Step::Joining { .. } => "did not join before the deadline",
            Step::Asking(_) | Step::Ended(_) => "did not answer in time",
        };
        let mut lines = self.suspensions();
        let silent = match missing {
            [] => String::new(),
            missing => format!(" {} {what}.", missing.join(", ")),
        };
        lines.push(format!(
            "{} of {} sites are taking part, wanted at least {} (sites_min).{silent} Start or repair the \
             others and submit the job again.",
            found,
            self.sites.len(),
            self.job.sites_min,
        ));
        let ending = Ending::Failed(Failure {
            code: fault.map_or(Code::Sites, |fault| fault.code),
            text: shortened(&lines.join("\n")),
        });
        self.end(ending, now, actions);
    }

    /// A line for each site that is asked no more.
    fn suspensions(&self) -> Vec<String> {
        let told = |site: &SiteState| Some(format!("{}: {}", site.name, site.fault.as_ref()?.text));
        self.sites.iter().filter_map(told).collect()
    }

    fn keep_faults(&mut self, faults: &[Option<Failure>]) {
        for (site, fault) in self.sites.iter_mut().zip(faults) {
            if let Some(fault) = fault {
                site.fault.get_or_insert_with(|| fault.clone());
                site.standing = Standing::Suspended;
            }
        }
    }

    /// Closes the open step, stores it, and asks the next.
    fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let joining = matches!(self.step, Step::Joining { .. });
        let closed = match &mut self.step {
            Step::Asking(exchange) => std::mem::replace(exchange, Exchange::open(0, now, 0)),
            _ => Exchange::open(0, now, self.sites.len()),
        };
        let exchange = closed.number;
        let mut record = Record {
            at: now,
            exchange,
            members: self.next_members(&closed),
            answers: closed.answers,
            signatures: closed.signatures,
            faults: closed.faults,
        };
        if !joining && self.tells_sums() && !self.is_complete(&record.answers) {
            record.answers.fill(None);
            record.signatures.fill(Vec::new());
        }
        // One copy for the store and all who hear it. Later it is in the store alone.
        let closed = message::Closed::new(self.id.clone(), record.clone());
        let closed = Arc::new(closed);
        actions.push(Action::Store(Arc::clone(&closed)));
        let told = self.tells_sums().then_some(closed);
        for (site, fault) in self.sites.iter().zip(&record.faults) {
            if let Some(fault) = fault {
                let ending = format!("{}: {}", parted(fault), fault.text);
                actions.push(self.let_go(site, &ending));
            }
        }
        let turn = self.close(record, None);
        match turn {
            Turn::Done(ending) => {
                if told.is_some() {
                    self.tell_all_what_closed(told.as_ref(), joining, actions);
                }
                self.end(ending, now, actions);
            }
            Turn::Ask => {
                self.tell_all_what_closed(told.as_ref(), joining, actions);
                for index in self.member_indices() {
                    let request = self.work.asking().ask(index);
                    actions.extend(self.ask(index, exchange + 1, request));
                }
                actions.push(Action::Report(self.progress(now)));
            }
        }
    }

    /// Who is there hears that the run begins, and where sums are told, what closed: also who is not asked at present, and may be
    /// later.
    fn tell_all_what_closed(
        &self,
        closed: Option<&Arc<message::Closed>>,
        joining: bool,
        actions: &mut Vec<Action>,
    ) {
        for (index, site) in self.sites.iter().enumerate() {
            let hears = match site.standing {
                Standing::Member => true,
                Standing::Away => site.is_up(),
                Standing::Awaited | Standing::Absent | Standing::Suspended => false,
            };
            if !hears {
                continue;
            }
            if joining {
                actions.push(self.begin(index));
            }
            if let Some(closed) = closed {
                actions.push(Action::Send {
                    site: site.name.clone(),
                    message: ToSite::Closed(Arc::clone(closed)),
                });
            }
        }
    }

    /// Whether each site is asked in the exchange after `closed`.
    fn next_members(&self, closed: &Exchange) -> Vec<bool> {
        let in_rounds = self.work.asking().silence() == Silence::Away;
        let is_asked = |(index, site): (usize, &SiteState)| match site.standing {
            _ if closed.faults[index].is_some() => false,
            Standing::Awaited => site.is_up(),
            Standing::Away => site.is_up() && !site.is_quiet,
            Standing::Member if closed.answers[index].is_some() => true,
            Standing::Member if self.tells_sums() => false,
            Standing::Member => {
                site.is_up() && !(in_rounds && site.silent + 1 >= SILENT_ROUNDS_MAX)
            }
            Standing::Absent | Standing::Suspended => false,
        };
        self.sites.iter().enumerate().map(is_asked).collect()
    }

    /// Applies one record: the only way in which a run moves on, live or replayed. `total` is the sum of its answers where
    /// digests stand for them.
    pub(super) fn close(&mut self, record: Record, total: Option<&Total>) -> Turn<Ending> {
        self.last = record.at;
        let is_void =
            record.exchange > 0 && self.tells_sums() && !self.is_complete(&record.answers);
        let failed = self.failures(&record.answers);
        let silence = self.work.asking().silence();
        let rounds = silence == Silence::Away;
        self.keep_faults(&record.faults);
        for (index, site) in self.sites.iter_mut().enumerate() {
            let answer = record.answers.get(index).and_then(Option::as_ref);
            let member = record.members.get(index).copied().unwrap_or(false);
            let silent = match is_void {
                true => site.standing == Standing::Member && !member,
                false => record.exchange > 0 && answer.is_none(),
            };
            if rounds && silent && site.standing != Standing::Absent {
                site.rounds_missed += 1;
            }
            if rounds && site.standing == Standing::Member {
                site.silent = if silent { site.silent + 1 } else { 0 };
                site.is_quiet = site.silent >= SILENT_ROUNDS_MAX || (silent && is_void);
            }
            site.standing = match site.standing {
                Standing::Absent => Standing::Absent,
                Standing::Suspended => Standing::Suspended,
                // Silent before the rounds, a site has given no moments: it is out.
                Standing::Member if silent && silence == Silence::Out => Standing::Absent,
                _ if member => Standing::Member,
                _ => match silence {
                    Silence::Away | Silence::Excused => Standing::Away,
                    Silence::Out => Standing::Absent,
                },
            };
            match answer {
                Some(Answer::Described(description)) => site.patients = description.patients,
                Some(Answer::Introduced(introduction)) => {
                    self.introductions[index] = Some(introduction.clone());
                }
                Some(Answer::Encapsulated(told)) => {
                    self.encapsulations[index] = Some(told.clone());
                }
                _ => {}
            }
        }
        let turn = match failed {
            Some(ending) => Turn::Done(ending),
            None if is_void && self.enough_are_left() => {
                self.void += 1;
                Turn::Ask
            }
            None => self.take_turn(record.exchange, record.answers, total),
        };
        let turn = match turn {
            Turn::Done(ending) => Turn::Done(ending),
            Turn::Ask => {
                self.open_next(record.exchange + 1, record.at);
                Turn::Ask
            }
        };
        if let Turn::Done(ending) = &turn {
            self.step = Step::Ended(ending.clone());
        }
        turn
    }

    fn open_next(&mut self, number: u32, at: Timestamp) {
        let deadline = at.after(self.job.deadlines.exchange);
        let mut next = Exchange::open(number, deadline, self.sites.len());
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

    /// Where sums are told every site hears every answer, but for more bytes of them than the job says.
    fn is_too_much_to_hear(&self, words: usize) -> bool {
        let bytes = (self.member_indices().len() * words * WORD_BYTES) as u64;
        self.tells_sums() && bytes > self.job.answers_bytes_max
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
        if self.work.asking().reminds() && !self.tells_sums() {
            let asked = (0..self.sites.len()).map(|site| self.work.asking().ask(site));
            self.reminders.push((exchange, asked.collect()));
        }
        let heard_as_total = answers.iter().flatten().any(Answer::is_of_a_total);
        self.totals += u32::from(heard_as_total);
        let sum = match self.summed(&answers, total) {
            Ok(sum) => sum,
            Err(failure) => return Turn::Done(Ending::Failed(failure)),
        };
        let told: Vec<bool> = answers.iter().map(Option::is_some).collect();
        let members = self.roster();
        let sites: Vec<SiteName> = self.job.sites.clone();
        let mut closed = Closed {
            answers: match self.job.contributions {
                Contributions::Own => answers,
                Contributions::Sums => in_the_clear(answers),
            },
            sum,
            told: &told,
            void: std::mem::take(&mut self.void),
            members: &members,
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
                Ok(Turn::Done(descriptions)) => {
                    self.patients = descriptions.pooled.as_ref().map_or(0, |all| all.patients);
                    self.counted = closed.answered();
                    let beginning = Beginning {
                        cohort: self.job.cohort.clone(),
                        seed: Seed(self.seed),
                        descriptions,
                    };
                    self.work = Work::Method(self.job.method.begin(&beginning));
                    Ok(Turn::Ask)
                }
                Ok(Turn::Ask) => Ok(Turn::Ask),
                Err(failure) => Err(failure),
            },
            Work::Method(stages) => stages.close(&mut closed),
        };
        turn.unwrap_or_else(|failure| Turn::Done(Ending::Failed(failure)))
    }

    /// Whether enough are left to be asked again. A finished model is not thrown away where they are not.
    fn enough_are_left(&self) -> bool {
        self.member_indices().len() >= self.job.sites_min.max(1)
    }

    /// The sum of what the sites told, judged as what one site with all their patients would tell; none where nothing is
    /// summed.
    fn summed(
        &self,
        answers: &[Option<Answer>],
        total: Option<&Total>,
    ) -> Result<Option<Answer>, Failure> {
        let asking = self.work.asking();
        let told = || answers.iter().flatten();
        let Some(blank) = asking.blank().filter(|_| told().next().is_some()) else {
            return Ok(None);
        };
        if !self.tells_sums() {
            let adds_up = told().all(Answer::adds_up);
            return adds_up.then(|| sums::sum(told(), blank)).transpose();
        }
        let sum = match total {
            Some(total) => sums::read(&total.words(), blank)?,
            None => sums::sum(told(), blank)?,
        };
        let patients = match &sum {
            Answer::Moments(moments) => moments.summary.patients,
            Answer::Prepared(Some(moments)) => moments.patients,
            _ => self.patients,
        };
        asking.judge(0, patients, &sum).map_err(|fault| Failure {
            text: format!("the sum over the sites: {}", fault.text),
            ..fault
        })?;
        Ok(Some(sum))
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

/// What sites tell in the clear also where sums are told: trees, and that they are ready.
fn in_the_clear(answers: Answers) -> Answers {
    use Answer::{Covered, Digest, Encapsulated, Introduced};
    let hidden = |answer: &Answer| matches!(answer, Covered(_) | Digest(_));
    let keys = |answer: &Answer| matches!(answer, Introduced(_) | Encapsulated(_));
    let clear = |answer: &Answer| !hidden(answer) && !keys(answer);
    answers
        .into_iter()
        .map(|answer| answer.filter(clear))
        .collect()
}

/// What became of a site that is asked no more: by its own word, or for what it should not have said.
pub(super) fn parted(fault: &Failure) -> &'static str {
    match fault.code {
        Code::Cohort | Code::Policy => "left out",
        _ => "suspended",
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
