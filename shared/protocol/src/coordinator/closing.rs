//! How a step of a run closes: when it is ripe, what is stored, and what comes after.

use super::forest::ForestWork;
use super::unpsl::UnpslWork;
use super::{Action, Connection, Exchange, Record, Run, SiteState, Stage, Standing, Turn, Work};
use crate::job::Method;
use crate::limits::TEXT_LENGTH_MAX;
use crate::message::{Answer, ToSite};
use crate::progress::Ending;
use crate::time::Timestamp;

impl Run {
    /// Closes what is ripe: the joining, or the open exchange.
    pub(super) fn settle(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        match &self.stage {
            Stage::Joining { deadline } => {
                let up = self.sites.iter().filter(|site| site.is_up()).count();
                if up == self.sites.len() || (now >= *deadline && up >= self.job.sites_min) {
                    self.advance(now, actions);
                } else if now >= *deadline {
                    let missing = self.names(|site| !site.is_up());
                    self.too_few(
                        up,
                        &missing,
                        "did not join before the deadline",
                        now,
                        actions,
                    );
                } else {
                    actions.push(Action::Report(self.progress(now)));
                }
            }
            Stage::Asking(exchange) => {
                let places = || self.sites.iter().zip(&exchange.answers);
                let waiting = |(site, answer): (&SiteState, &Option<Answer>)| {
                    answer.is_none() && self.waited_for(site, exchange, now)
                };
                let answered = exchange.answers.iter().flatten().count();
                if places().any(waiting) {
                    actions.push(Action::Report(self.progress(now)));
                } else if answered >= self.sites_needed() {
                    self.advance(now, actions);
                } else {
                    let silent = places().filter(|(site, answer)| {
                        answer.is_none() && site.standing != Standing::Absent
                    });
                    let missing: Vec<String> =
                        silent.map(|(site, _)| site.name.to_string()).collect();
                    self.too_few(answered, &missing, "did not answer in time", now, actions);
                }
            }
            Stage::Ended(_) => {}
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

    /// Answers without which an exchange fails the run. A finished model is not thrown away because
    /// a site was lost while it was judged.
    fn sites_needed(&self) -> usize {
        if self.work.finishing() {
            0
        } else {
            self.job.sites_min
        }
    }

    fn too_few(
        &mut self,
        found: usize,
        missing: &[String],
        what: &str,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) {
        let text = format!(
            "{} of {} sites are there, wanted at least {} (sites_min); {} {what}. \
             Start or mend these sites and submit the job again.",
            found,
            self.sites.len(),
            self.job.sites_min,
            missing.join(", "),
        );
        self.end(
            Ending::Failed {
                code: "KDR-SITES".to_owned(),
                text,
            },
            now,
            actions,
        );
    }

    /// Closes the open step, stores it, and asks the next.
    fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let joining = matches!(self.stage, Stage::Joining { .. });
        let (exchange, answers) = match &mut self.stage {
            Stage::Asking(exchange) => (exchange.number, std::mem::take(&mut exchange.answers)),
            _ => (0, vec![None; self.sites.len()]),
        };
        let members = self
            .sites
            .iter()
            .zip(&answers)
            .map(|(site, answer)| match site.standing {
                Standing::Awaited | Standing::Away => site.is_up(),
                Standing::Member => answer.is_some() || site.is_up(),
                Standing::Absent => false,
            });
        let record = Record {
            at: now,
            exchange,
            members: members.collect(),
            answers,
        };
        actions.push(Action::Store(record.clone()));
        let turn = self.close(record);
        match turn {
            Turn::End(ending) => self.end(ending, now, actions),
            Turn::Ask => {
                for index in self.member_indices() {
                    if joining {
                        actions.push(self.begin(index));
                    }
                    actions.push(self.send(index, exchange + 1, self.work.request(index)));
                }
                actions.push(Action::Report(self.progress(now)));
            }
        }
    }

    /// Applies one record: the only way in which a run moves on, live or replayed.
    pub(super) fn close(&mut self, record: Record) -> Turn {
        self.last = record.at;
        let failed = self.failures(&record.answers);
        let rounds = self.work.in_rounds();
        let took_part = rounds || self.work.finishing();
        for (index, site) in self.sites.iter_mut().enumerate() {
            let answer = record.answers.get(index).and_then(Option::as_ref);
            let member = record.members.get(index).copied().unwrap_or(false);
            let silent = record.exchange > 0 && answer.is_none();
            if rounds && silent && site.standing != Standing::Absent {
                site.rounds_missed += 1;
            }
            site.standing = match site.standing {
                Standing::Absent => Standing::Absent,
                // Silent before the rounds, a site has given no moments: it is out.
                Standing::Member if silent && !took_part => Standing::Absent,
                _ if member => Standing::Member,
                _ if took_part => Standing::Away,
                _ => Standing::Absent,
            };
            if let Some(Answer::Described(description)) = answer {
                site.patients = description.patients;
            }
        }
        let turn = match failed {
            Some(ending) => Turn::End(ending),
            None => self.take_turn(record.exchange, record.answers),
        };
        match &turn {
            Turn::End(ending) => self.stage = Stage::Ended(ending.clone()),
            Turn::Ask => {
                self.stage = Stage::Asking(Exchange {
                    number: record.exchange + 1,
                    deadline: record.at.after(self.job.deadlines.exchange),
                    answers: vec![None; self.sites.len()],
                });
            }
        }
        turn
    }

    fn take_turn(&mut self, exchange: u32, answers: Vec<Option<Answer>>) -> Turn {
        let members: Vec<bool> = self
            .sites
            .iter()
            .map(|site| site.standing == Standing::Member)
            .collect();
        let closed = match &mut self.work {
            Work::Agreeing if exchange == 0 => Ok(Turn::Ask),
            Work::Agreeing => {
                self.work = match &self.job.method {
                    Method::Unpsl(settings) => {
                        let work = UnpslWork::new(&self.job, settings.clone(), self.seed);
                        Work::Unpsl(Box::new(work))
                    }
                    Method::Forest(settings) => {
                        let work = ForestWork::new(&self.job, settings.clone(), answers);
                        Work::Forest(Box::new(work))
                    }
                };
                Ok(Turn::Ask)
            }
            Work::Unpsl(work) => {
                let seconds = self.last.since(self.began).as_secs_f64();
                work.close(answers, &members, seconds, &mut self.notes)
            }
            Work::Forest(work) => work.close(&self.job, answers, &members, &mut self.notes),
        };
        closed.unwrap_or_else(|failure| {
            Turn::End(Ending::Failed {
                code: failure.code,
                text: failure.text,
            })
        })
    }

    /// Every site's problem, refusal or failure in one message.
    fn failures(&self, answers: &[Option<Answer>]) -> Option<Ending> {
        let mut code = None;
        let mut lines = Vec::new();
        for (site, answer) in self.sites.iter().zip(answers) {
            let mut say = |which: &str, text: String| {
                code.get_or_insert_with(|| which.to_owned());
                lines.push(format!("{}: {text}", site.name));
            };
            match answer {
                Some(Answer::Unfit(problems)) => {
                    for problem in problems {
                        let place = if problem.column.is_empty() {
                            String::new()
                        } else {
                            format!("column {}: ", problem.column)
                        };
                        let text =
                            format!("{place}found {}, wanted {}", problem.found, problem.wanted);
                        say("KDR-COHORT", text);
                    }
                }
                Some(Answer::Refused(refusal)) => {
                    say(
                        "KDR-POLICY",
                        format!("refused by {}: {}", refusal.rule, refusal.text),
                    );
                }
                Some(Answer::Failed(failure)) => say(&failure.code, failure.text.clone()),
                _ => {}
            }
        }
        code.map(|code| Ending::Failed {
            code,
            text: lines.join("\n"),
        })
    }

    pub(super) fn end(&mut self, ending: Ending, now: Timestamp, actions: &mut Vec<Action>) {
        self.last = now;
        self.stage = Stage::Ended(ending.clone());
        let sentence = match &ending {
            Ending::Failed { code, .. } => format!("the run failed: {code}"),
            other => other.status().to_owned(),
        };
        let sentence: String = sentence.chars().take(TEXT_LENGTH_MAX).collect();
        for site in self.sites.iter().filter(|site| site.is_up()) {
            let message = ToSite::End {
                run: self.id.clone(),
                ending: sentence.clone(),
            };
            actions.push(Action::Send {
                site: site.name.clone(),
                message,
            });
        }
        actions.push(Action::Report(self.progress(now)));
        actions.push(Action::End(ending));
    }
}
