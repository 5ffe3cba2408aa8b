//! Carries out what `protocol::coordinator` decides. One run at a time; the others wait in order.

use crate::store::{Store, StoreError, Submission};
use protocol::coordinator::{Action, Event, Run};
use protocol::job::Job;
use protocol::limits::QUEUE_MAX;
use protocol::message::{Answer, Failure, ToCoordinator, Warrant};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::{Ending, Progress, RunResult};
use protocol::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use wire::{Incoming, OperatorCall, SiteReceiver, SiteSender, Traffic};

/// The coordinator's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Messages of sites that wait for the driver.
const INBOX_MAX: usize = 64;
/// The driver looks at the clock at least this often.
const TICK_MAX: Duration = Duration::from_secs(1);

struct Driver {
    store: Store,
    sites: BTreeMap<SiteName, Connected>,
    /// Bytes of connections that are gone.
    past: BTreeMap<SiteName, Traffic>,
    connections: u64,
    heard: mpsc::Sender<Heard>,
    queue: VecDeque<Submission>,
    active: Option<Active>,
    progress: BTreeMap<RunId, watch::Sender<Progress>>,
}

struct Connected {
    /// Tells this connection from an earlier one of the same site.
    number: u64,
    sender: SiteSender,
}

struct Active {
    run: Run,
    /// Bytes of every site before the run.
    before: BTreeMap<SiteName, Traffic>,
}

/// What a site said, or that its stream ended.
struct Heard {
    site: SiteName,
    connection: u64,
    message: Option<ToCoordinator<Answer>>,
}

/// Serves runs until `stop` is ready. A run that is active then goes on from its last stored
/// exchange when the coordinator is started again.
///
/// # Errors
/// [`StoreError`]: what cannot be stored must not be sent.
pub async fn drive(
    store: Store,
    mut incoming: mpsc::Receiver<Incoming>,
    stop: impl Future<Output = ()>,
) -> Result<(), StoreError> {
    let (heard, mut inbox) = mpsc::channel(INBOX_MAX);
    let mut driver = Driver::resume(store, heard)?;
    let mut stop = std::pin::pin!(stop);
    loop {
        driver.begin_next()?;
        let deadline = driver.next_tick();
        tokio::select! {
            () = &mut stop => return Ok(()),
            caller = incoming.recv() => match caller {
                Some(Incoming::Site { name, version, sender, receiver }) => {
                    driver.site_came(name, &version, sender, receiver)?;
                }
                Some(Incoming::Operator { operator, call }) => driver.call(&operator, call)?,
                None => return Ok(()),
            },
            Some(heard) = inbox.recv() => driver.hear(heard)?,
            () = tokio::time::sleep(deadline) => driver.step(Event::Tick)?,
        }
    }
}

impl Driver {
    /// Takes up what the store holds: the run that was active goes on, the others stay queued.
    fn resume(store: Store, heard: mpsc::Sender<Heard>) -> Result<Self, StoreError> {
        let mut driver = Self {
            sites: BTreeMap::new(),
            past: BTreeMap::new(),
            connections: 0,
            heard,
            queue: VecDeque::new(),
            active: None,
            progress: BTreeMap::new(),
            store,
        };
        for submission in driver
            .store
            .submissions()?
            .into_iter()
            .filter(|known| !known.ended)
        {
            let Ok(job) = Job::parse(&submission.job) else {
                continue;
            };
            let Some(began) = submission.began else {
                driver.enqueue(submission, job);
                continue;
            };
            let Submission {
                run, seed, warrant, ..
            } = submission;
            let records = driver.store.records(&run)?;
            tracing::info!(%run, exchanges = records.len(), "a run goes on");
            let resumed = Run::new(run.clone(), job, seed, warrant, began).resume(records, now());
            driver
                .progress
                .insert(run, watch::Sender::new(resumed.progress(now())));
            driver.active = Some(Active {
                run: resumed,
                before: BTreeMap::new(),
            });
        }
        Ok(driver)
    }

    fn enqueue(&mut self, submission: Submission, job: Job) {
        let Submission {
            run,
            seed,
            warrant,
            submitted,
            ..
        } = submission.clone();
        let mut progress = Run::new(run.clone(), job, seed, warrant, submitted).progress(now());
        "queued".clone_into(&mut progress.phase);
        self.progress.insert(run, watch::Sender::new(progress));
        self.queue.push_back(submission);
    }

    fn begin_next(&mut self) -> Result<(), StoreError> {
        if self.active.is_some() {
            return Ok(());
        }
        let Some(Submission {
            run,
            operator,
            job,
            seed,
            warrant,
            ..
        }) = self.queue.pop_front()
        else {
            return Ok(());
        };
        let Ok(job) = Job::parse(&job) else {
            return Ok(());
        };
        let began = now();
        self.store.begin(&run, began)?;
        tracing::info!(%run, %operator, "a run begins");
        let before = self
            .sites
            .keys()
            .map(|site| (site.clone(), self.traffic(site)))
            .collect();
        let run = Run::new(run, job, seed, warrant, began);
        self.active = Some(Active { run, before });
        for site in self.sites.keys().cloned().collect::<Vec<_>>() {
            self.step(Event::Connected(site))?;
        }
        self.step(Event::Tick)
    }

    fn next_tick(&self) -> Duration {
        let deadline = self
            .active
            .as_ref()
            .and_then(|active| active.run.next_deadline());
        deadline.map_or(TICK_MAX, |at| at.since(now()).min(TICK_MAX))
    }

    fn site_came(
        &mut self,
        site: SiteName,
        version: &str,
        sender: SiteSender,
        mut receiver: SiteReceiver,
    ) -> Result<(), StoreError> {
        self.connections += 1;
        let number = self.connections;
        tracing::info!(%site, version, "a site joined");
        if let Some(old) = self.sites.remove(&site) {
            self.add_past(&site, old.sender.traffic());
            old.sender.close(failure(
                "KDR-REPLACED",
                "the site has opened another stream",
            ));
        }
        self.sites
            .insert(site.clone(), Connected { number, sender });
        let heard = self.heard.clone();
        let name = site.clone();
        tokio::spawn(async move {
            loop {
                let message = match receiver.next().await {
                    Ok(message) => message,
                    Err(error) => {
                        tracing::warn!(site = %name, %error, "lost a site");
                        None
                    }
                };
                let over = message.is_none();
                let said = Heard {
                    site: name.clone(),
                    connection: number,
                    message,
                };
                if heard.send(said).await.is_err() || over {
                    return;
                }
            }
        });
        self.step(Event::Connected(site))
    }

    fn hear(&mut self, heard: Heard) -> Result<(), StoreError> {
        let Heard {
            site,
            connection,
            message,
        } = heard;
        let current = self
            .sites
            .get(&site)
            .is_some_and(|known| known.number == connection);
        match message {
            Some(ToCoordinator::Reply {
                run,
                exchange,
                answer,
            }) if current => {
                if self
                    .active
                    .as_ref()
                    .is_some_and(|active| *active.run.id() == run)
                {
                    self.step(Event::Answered {
                        site,
                        exchange,
                        answer,
                    })?;
                }
                Ok(())
            }
            None if current => {
                if let Some(gone) = self.sites.remove(&site) {
                    self.add_past(&site, gone.sender.traffic());
                }
                self.step(Event::Disconnected(site))
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, event: Event) -> Result<(), StoreError> {
        let Some(Active { run, before }) = self.active.take() else {
            return Ok(());
        };
        let (run, actions) = run.step(now(), event);
        let mut ended = false;
        for action in actions {
            match action {
                Action::Store(record) => self.store.keep(run.id(), &record)?,
                Action::Send { site, message } => {
                    if let Some(connected) = self.sites.get(&site)
                        && let Err(error) = connected.sender.send(message)
                    {
                        tracing::warn!(%site, %error, "a message was not sent");
                    }
                }
                Action::Report(progress) => {
                    if let Some(watched) = self.progress.get(run.id()) {
                        watched.send_if_modified(|shown| {
                            // A wait that only grows shorter is no news.
                            let news = !same_but_for_time(shown, &progress);
                            *shown = progress;
                            news
                        });
                    }
                }
                Action::End(ending) => {
                    tracing::info!(run = %run.id(), status = ending.status(), "a run ended");
                    let mut result = run.result(VERSION);
                    self.add_traffic(&mut result, &before);
                    self.store.end(run.id(), &result)?;
                    ended = true;
                }
            }
        }
        if !ended {
            self.active = Some(Active { run, before });
        }
        Ok(())
    }

    fn call(&mut self, operator: &OperatorName, call: OperatorCall) -> Result<(), StoreError> {
        match call {
            OperatorCall::Submit {
                job,
                seed,
                warrant,
                reply,
            } => {
                let _ = reply.send(self.submit(operator, job, seed, warrant)?);
            }
            OperatorCall::Watch { run, reply } => {
                let found = match self.progress.get(&run) {
                    Some(watched) => Some(watched.subscribe()),
                    None => self.store.result(&run)?.map(|result| ended_watch(&result)),
                };
                let _ = reply.send(found.ok_or_else(|| unknown(&run)));
            }
            OperatorCall::Cancel { run, reply } => {
                let _ = reply.send(self.cancel(&run)?);
            }
            OperatorCall::FetchResult { run, reply } => {
                let found = match self.store.result(&run)? {
                    Some(result) => Ok(result),
                    None if self.progress.contains_key(&run) => Err(failure(
                        "KDR-RUNNING",
                        "the run has not ended; watch it until it has",
                    )),
                    None => Err(unknown(&run)),
                };
                let _ = reply.send(found);
            }
            OperatorCall::List { reply } => {
                let _ = reply.send(Ok(self.list()?));
            }
        }
        Ok(())
    }

    /// The same job with the same token is the same run, however often it is submitted.
    fn submit(
        &mut self,
        operator: &OperatorName,
        job: String,
        seed: u64,
        warrant: Warrant,
    ) -> Result<Result<RunId, Failure>, StoreError> {
        let parsed = match Job::parse(&job) {
            Ok(parsed) => parsed,
            Err(errors) => return Ok(Err(failure("KDR-JOB", &errors.to_string()))),
        };
        let Ok(run) = wire::run_id(operator, &warrant.token) else {
            return Ok(Err(failure("KDR-JOB", "the token makes no run id")));
        };
        if let Some(known) = self
            .store
            .submissions()?
            .into_iter()
            .find(|submission| submission.run == run)
        {
            let same = known.job == job && known.seed == seed;
            let text = "this token stands for another job or seed; use a new token";
            return Ok(if same {
                Ok(run)
            } else {
                Err(failure("KDR-TOKEN", text))
            });
        }
        if self.queue.len() >= QUEUE_MAX {
            let text = format!("{QUEUE_MAX} runs are waiting already; try again later");
            return Ok(Err(failure("KDR-BUSY", &text)));
        }
        let submission = Submission {
            run: run.clone(),
            operator: operator.to_string(),
            job,
            seed,
            warrant,
            submitted: now(),
            began: None,
            ended: false,
        };
        self.store.submit(&submission)?;
        self.enqueue(submission, parsed);
        Ok(Ok(run))
    }

    fn cancel(&mut self, run: &RunId) -> Result<Result<(), Failure>, StoreError> {
        if self
            .active
            .as_ref()
            .is_some_and(|active| active.run.id() == run)
        {
            self.step(Event::Cancelled)?;
            return Ok(Ok(()));
        }
        let Some(place) = self.queue.iter().position(|queued| queued.run == *run) else {
            return Ok(Err(unknown(run)));
        };
        if let Some(Submission {
            run,
            job,
            seed,
            warrant,
            submitted,
            ..
        }) = self.queue.remove(place)
            && let Ok(job) = Job::parse(&job)
        {
            let queued = Run::new(run, job, seed, warrant, submitted);
            let waiting = self.active.replace(Active {
                run: queued,
                before: BTreeMap::new(),
            });
            self.step(Event::Cancelled)?;
            self.active = waiting;
        }
        Ok(Ok(()))
    }

    fn list(&self) -> Result<Vec<Progress>, StoreError> {
        let mut runs = Vec::new();
        for submission in self.store.submissions()?.into_iter().rev() {
            match self.progress.get(&submission.run) {
                Some(watched) => runs.push(watched.borrow().clone()),
                None => runs.extend(
                    self.store
                        .result(&submission.run)?
                        .map(|result| ended_progress(&result)),
                ),
            }
        }
        Ok(runs)
    }

    /// Bytes of a site over all its connections.
    fn traffic(&self, site: &SiteName) -> Traffic {
        let past = self.past.get(site).copied().unwrap_or_default();
        let present = self
            .sites
            .get(site)
            .map(|known| known.sender.traffic())
            .unwrap_or_default();
        Traffic {
            bytes_sent: past.bytes_sent + present.bytes_sent,
            bytes_received: past.bytes_received + present.bytes_received,
        }
    }

    fn add_past(&mut self, site: &SiteName, traffic: Traffic) {
        let past = self.past.entry(site.clone()).or_default();
        past.bytes_sent += traffic.bytes_sent;
        past.bytes_received += traffic.bytes_received;
    }

    fn add_traffic(&self, result: &mut RunResult, before: &BTreeMap<SiteName, Traffic>) {
        for entry in &mut result.sites {
            let Ok(site) = SiteName::new(&entry.name) else {
                continue;
            };
            let (all, before) = (
                self.traffic(&site),
                before.get(&site).copied().unwrap_or_default(),
            );
            entry.bytes_sent = all.bytes_sent.saturating_sub(before.bytes_sent);
            entry.bytes_received = all.bytes_received.saturating_sub(before.bytes_received);
        }
    }
}

fn same_but_for_time(one: &Progress, other: &Progress) -> bool {
    let mut one = one.clone();
    one.deadline_seconds = other.deadline_seconds;
    one == *other
}

fn ended_progress(result: &RunResult) -> Progress {
    let last = result.rounds.last();
    Progress {
        run: result.run.clone(),
        phase: "ended".to_owned(),
        round: u32::try_from(result.rounds.len()).unwrap_or(u32::MAX),
        round_limit: 0,
        objective: result.objective,
        primal_residual: last.map(|row| row.primal_residual),
        dual_residual: last.map(|row| row.dual_residual),
        sites_connected: 0,
        sites: u32::try_from(result.sites.len()).unwrap_or(u32::MAX),
        waiting_for: Vec::new(),
        deadline_seconds: 0.0,
        ending: Some(result.ending.clone()),
    }
}

fn ended_watch(result: &RunResult) -> watch::Receiver<Progress> {
    watch::Sender::new(ended_progress(result)).subscribe()
}

fn unknown(run: &RunId) -> Failure {
    failure(
        "KDR-RUN",
        &format!("found no run {run}; `job list` shows all runs"),
    )
}

fn failure(code: &str, text: &str) -> Failure {
    Failure {
        code: code.to_owned(),
        text: text.to_owned(),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// True where an ending is a result that an operator can use.
#[must_use]
pub fn is_result(ending: &Ending) -> bool {
    matches!(
        ending,
        Ending::Converged | Ending::Completed | Ending::RoundLimit
    )
}
