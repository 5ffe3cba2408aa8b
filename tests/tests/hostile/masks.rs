//! A coordinator that lies in a run of sums, to real workers of four sites: metrics of its own choosing, words changed or left
//! out on the way, keys swapped, a site said to be late, exchanges asked twice. Each is refused with its rule, and nothing is sent.

use kindred_tests::deployment::{PATIENTS, SITES, issue, site_config};
use kindred_tests::federation::{self, NOW, RUN};
use kindred_tests::programs::Home;
use kindred_tests::samples::DEMO_JOB;
use kindred_tests::studies::{Opened, Proposed};
use ndarray::Array2;
use privacy::sums::Words;
use privacy::{Covered, Disclosure};
use protocol::message::{Answer, Ask, Begin, Reply, Request, ToCoordinator, ToSite, unpsl};
use protocol::name::{OperatorName, SiteName};
use protocol::progress::Ending;
use protocol::run::{Action, Event, Record, Run};
use site_agent::run::worker::Worker;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::Warrants;

const SEED: u64 = 5;

/// Four sites that have approved nothing yet.
pub(crate) struct Sites {
    pub(crate) home: Home,
    workers: BTreeMap<SiteName, Worker>,
}

impl Sites {
    /// With so many patients each.
    pub(crate) fn of(patients: &str) -> Self {
        let home = Home::with_patients(patients);
        issue(&home, &["init"]);
        let mut sites = Self {
            home,
            workers: BTreeMap::new(),
        };
        for site in SITES {
            issue(&sites.home, &["issue", "--site", site]);
            sites.configure(site, &site_config(site, 1, &format!("site-{site}")));
        }
        sites
    }

    /// A site has this configuration from now on.
    pub(crate) fn configure(&mut self, site: &str, config: &str) {
        let name = SiteName::new(site).unwrap();
        drop(self.workers.remove(&name));
        let worker = federation::worker(config, &self.home, NOW);
        self.workers.insert(name, worker);
    }

    /// A run of a job, once all have approved and opened the study of its patients.
    pub(crate) fn open(mut self, text: &str) -> Court {
        let study = Opened::of(text, &self.home, &mut self.workers);
        let job = study.job(text);
        let begin = study.begin(RUN, &job, SEED);
        let keyed = study.opening().digest.clone();
        Court::new(self, study.run(RUN, job, SEED), &begin, keyed)
    }

    /// The run that opens the study of a job's patients, once all have approved it.
    pub(crate) fn opening(self, text: &str) -> Court {
        let study = Proposed::of(text, &self.home);
        for site in SITES {
            study.approve(&self.home, site).unwrap();
        }
        let begin = study.begin();
        let keyed = wire::run_digest(&begin, "researcher");
        Court::new(self, study.run(), &begin, keyed)
    }
}

/// What a site makes of what it says to a question before it leaves.
pub(crate) type Forge = Box<dyn FnMut(&SiteName, &Request, &mut Reply<Answer>)>;
/// The same, of one message alone.
type Forgery = fn(&SiteName, &mut Reply<Answer>);

/// A conversation of an honest coordinator with the sites, of which each message to one of them can be changed.
pub(crate) struct Court {
    pub(crate) run: Run,
    pub(crate) begin: Begin,
    /// The digest of the run.
    pub(crate) digest: String,
    /// That of the run by which the study opened.
    pub(crate) keyed: String,
    pub(crate) workers: BTreeMap<SiteName, Worker>,
    events: Vec<Event>,
    /// What a site changes of what it says before it leaves.
    pub(crate) forge: Forge,
    pub(crate) home: Home,
}

/// What a site has said.
pub(crate) struct Said {
    pub(crate) site: SiteName,
    request: Request,
    pub(crate) answer: Answer,
}

impl Court {
    pub(crate) fn open() -> Self {
        Self::of(PATIENTS, DEMO_JOB)
    }

    /// A job on so many patients at each site.
    pub(crate) fn of(patients: &str, text: &str) -> Self {
        Sites::of(patients).open(text)
    }

    fn new(Sites { home, workers }: Sites, run: Run, begin: &Begin, keyed: String) -> Self {
        Self {
            run,
            digest: wire::run_digest(begin, "researcher"),
            begin: begin.clone(),
            keyed,
            events: workers.keys().cloned().map(Event::Connected).collect(),
            workers,
            forge: Box::new(|_, _, _| ()),
            home,
        }
    }

    /// Plays until `lie` has made something of a message to a site, or to the end; gives all that the sites said.
    pub(crate) fn play(
        &mut self,
        mut lie: impl FnMut(&SiteName, ToSite) -> Vec<ToSite>,
    ) -> Vec<Said> {
        let warrants = Warrants::load(&self.home.join("certificates/site-north/ca.pem")).unwrap();
        let digest = self.digest.clone();
        let mut said = Vec::new();
        while self.run.ending().is_none() && !self.events.is_empty() {
            let event = warrants.proven(&digest, &self.run, self.events.remove(0));
            let (next, actions) = self.run.clone().step(NOW, event);
            self.run = next;
            for action in actions {
                let Action::Send { site, message } = action else {
                    continue;
                };
                for message in lie(&site, message) {
                    let Some((request, mut reply)) = self.tell(&site, message) else {
                        continue;
                    };
                    (self.forge)(&site, &request, &mut reply);
                    said.push(Said {
                        site: site.clone(),
                        request,
                        answer: reply.answer.clone(),
                    });
                    self.events.push(Event::Answered {
                        site: site.clone(),
                        exchange: reply.exchange,
                        answer: reply.answer,
                        signature: reply.signature,
                    });
                }
            }
        }
        said
    }

    /// What a site answers to one message, as it travels.
    pub(crate) fn tell(
        &mut self,
        site: &SiteName,
        message: ToSite,
    ) -> Option<(Request, Reply<Answer>)> {
        let worker = self.workers.get_mut(site).unwrap();
        let frames = wire::encode_to_site(message);
        match wire::decode_to_site(&frames).unwrap() {
            ToSite::Begin(begin) => {
                worker.begin(begin, Ok(OperatorName::new("researcher").unwrap()));
                None
            }
            ToSite::Closed(closed) => {
                worker.follow(&closed, NOW).unwrap();
                None
            }
            ToSite::Ask(ask) => {
                let reply = worker.answer(&ask, NOW).unwrap().unwrap();
                let sent = wire::encode_to_coordinator(ToCoordinator::Reply(reply));
                match wire::decode_to_coordinator(&sent).unwrap() {
                    ToCoordinator::Reply(reply) => Some((ask.request, reply)),
                    ToCoordinator::Hello { .. } | ToCoordinator::Approved(_) => None,
                }
            }
            ToSite::End { .. }
            | ToSite::Proposed(_)
            | ToSite::ClosedStudies(_)
            | ToSite::Waiting(_) => None,
        }
    }
}

/// A member whose words are not its own is parted with, by name and alone: what the others hear of is signed by all, and the
/// run goes on at them.
#[test]
fn a_site_whose_word_does_not_hold_is_suspended_alone() {
    let forgeries: [(Forgery, &str); 4] = [
        (
            |site, reply| {
                if site.as_str() == "west" && matches!(reply.answer, Answer::Covered(_)) {
                    reply.signature[7] ^= 1;
                }
            },
            "is not signed by the keys of west",
        ),
        (
            |site, reply| {
                if site.as_str() == "west" && matches!(reply.answer, Answer::Covered(_)) {
                    reply.signature.clear();
                }
            },
            "is not signed by the keys of west",
        ),
        (
            |site, reply| {
                if let Answer::Covered(covered) = &mut reply.answer
                    && site.as_str() == "west"
                    && covered.kind == "derivatives"
                {
                    let mut words = covered.words.as_slice().to_vec();
                    words[0] = words[0].wrapping_add(1);
                    covered.words = Words::received(words);
                }
            },
            "is not signed by the keys of west",
        ),
        (
            |site, reply| {
                if let Answer::Introduced(introduction) = &mut reply.answer
                    && site.as_str() == "west"
                {
                    introduction.signing = vec![7; 32];
                }
            },
            "the keys of west are not vouched for",
        ),
    ];
    for (forge, wanted) in forgeries {
        let mut court = match wanted.contains("vouched") {
            true => opening(),
            false => Court::open(),
        };
        court.forge = Box::new(move |site, _, reply| forge(site, reply));
        let said = court.play(honest);
        let Some(Ending::Failed(failure)) = court.run.ending() else {
            panic!("{wanted}: {:?}", court.run.ending());
        };
        assert!(failure.text.starts_with("west: "), "{}", failure.text);
        assert!(failure.text.contains(wanted), "{}", failure.text);
        let others = said.iter().filter(|said| said.site.as_str() != "west");
        let refused: Vec<_> = others.filter_map(|said| refused_by(&said.answer)).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

pub(crate) fn honest(_: &SiteName, message: ToSite) -> Vec<ToSite> {
    vec![message]
}

fn refused_by(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Refused(refusal) => Some(&refusal.rule),
        _ => None,
    }
}

/// The run that opens the study of the demonstration.
fn opening() -> Court {
    Sites::of(PATIENTS).opening(DEMO_JOB)
}

#[track_caller]
fn rule_at_opening(lie: impl FnMut(ToSite) -> Option<Vec<ToSite>>) -> String {
    rule_in(opening(), lie)
}

#[track_caller]
fn rule_against(lie: impl FnMut(ToSite) -> Option<Vec<ToSite>>) -> String {
    rule_in(Court::open(), lie)
}

/// Lies to one site of a court as `lie` does, and gives the rule by which it refuses.
#[track_caller]
pub(crate) fn rule_in(
    mut court: Court,
    mut lie: impl FnMut(ToSite) -> Option<Vec<ToSite>>,
) -> String {
    let victim = SiteName::new("south").unwrap();
    let mut has_lied = false;
    let said = court.play(|site, message| {
        if *site != victim {
            return vec![message];
        }
        match lie(message.clone()) {
            Some(messages) => {
                has_lied = true;
                messages
            }
            None => vec![message],
        }
    });
    assert!(has_lied, "nobody lied");
    let refused = said.iter().filter(|said| said.site == victim);
    let rules: Vec<&str> = refused
        .filter_map(|said| refused_by(&said.answer))
        .collect();
    let Some(first) = rules.first() else {
        panic!("the victim refused nothing");
    };
    let place = said
        .iter()
        .position(|said| refused_by(&said.answer).is_some());
    let after = said[place.unwrap()..]
        .iter()
        .filter(|said| said.site == victim);
    assert!(
        after
            .into_iter()
            .all(|said| refused_by(&said.answer).is_some()),
        "the victim told something after it had been lied to"
    );
    (*first).to_owned()
}

#[test]
fn an_honest_coordinator_reads_nothing_of_one_site_and_learns_the_metric_all_the_same() {
    let mut court = Court::open();
    let said = court.play(honest);
    assert_eq!(court.run.ending(), Some(&Ending::Converged));
    for Said {
        site,
        request,
        answer,
    } in &said
    {
        let is_closed = matches!(
            answer,
            Answer::Covered(_)
                | Answer::Introduced(_)
                | Answer::Encapsulated(_)
                | Answer::Digest(_)
                | Answer::Prepared(None)
        );
        assert!(is_closed, "{site} told {} to {request:?}", answer.kind());
    }
    let result = court.run.result("");
    assert_eq!((result.patients(), result.sites_that_took_part()), (350, 4));
    assert!(result.pooled.assessment.is_some());
}

#[test]
fn a_metric_of_the_coordinators_choosing_is_refused() {
    let rule = rule_against(|message| match message {
        ToSite::Ask(Ask {
            run,
            exchange,
            request: Request::Unpsl(unpsl::Request::Differentiate(mut asked)),
        }) => {
            let mut metrics: Vec<Array2<f64>> = asked.metrics.as_ref().clone();
            metrics[0][[0, 0]] += 1e-12;
            asked.metrics = metrics.into();
            let request = Request::Unpsl(unpsl::Request::Differentiate(asked));
            Some(vec![ToSite::Ask(Ask {
                run,
                exchange,
                request,
            })])
        }
        _ => None,
    });
    assert_eq!(rule, "question");
}

/// Changes the first record that has covered words of a kind.
fn on_record(message: ToSite, kind: &str, change: impl FnOnce(&mut Record)) -> Option<Vec<ToSite>> {
    let ToSite::Closed(mut closed) = message else {
        return None;
    };
    let is_it = |answer: &Answer| answer.kind() == kind;
    closed.record.answers.iter().flatten().any(is_it).then(|| {
        change(&mut Arc::make_mut(&mut closed).record);
        vec![ToSite::Closed(closed)]
    })
}

#[test]
fn a_bundle_with_one_word_changed_is_refused() {
    let rule = rule_against(|message| {
        on_record(message, "derivatives", |record| {
            let Some(Answer::Covered(Covered { kind, words, tag })) = &record.answers[0] else {
                panic!("words");
            };
            let mut changed = words.as_slice().to_vec();
            changed[0] = changed[0].wrapping_add(1);
            record.answers[0] = Some(Answer::Covered(Covered {
                kind,
                words: Words::received(changed),
                tag: *tag,
            }));
        })
    });
    assert_eq!(rule, "signature");
}

#[test]
fn an_answer_of_another_exchange_is_refused_in_a_bundle() {
    let mut earlier: Option<Record> = None;
    let rule = rule_against(|message| {
        let ToSite::Closed(closed) = &message else {
            return None;
        };
        let is_round = |answer: &Answer| answer.kind() == "derivatives";
        let rounds = closed.record.answers.iter().flatten().any(is_round);
        let Some(old) = earlier.clone().filter(|_| rounds) else {
            if rounds {
                earlier = Some(closed.record.clone());
            }
            return None;
        };
        on_record(message, "derivatives", |record| {
            record.answers[0].clone_from(&old.answers[0]);
            record.signatures[0].clone_from(&old.signatures[0]);
        })
    });
    assert_eq!(rule, "signature");
}

#[test]
fn an_answer_that_is_left_out_of_a_bundle_leads_to_no_second_sum() {
    let rule = rule_against(|message| {
        on_record(message, "moments", |record| {
            record.answers[0] = None;
            record.signatures[0] = Vec::new();
        })
    });
    assert_eq!(rule, "question");
}

#[test]
fn swapped_foreign_and_own_keys_are_refused() {
    let swapped = rule_at_opening(|message| {
        on_record(message, "introduction", |record| record.answers.swap(0, 2))
    });
    assert_eq!(swapped, "keys");
    // Keys that another authority's certificate vouches for.
    let (_home, foreign) = {
        let mut court = opening();
        let mut known = None;
        court.play(|_, message| {
            if let ToSite::Closed(closed) = &message
                && known.is_none()
                && closed.record.exchange == 1
            {
                known = closed.record.answers[0].clone();
            }
            match known {
                Some(_) => Vec::new(),
                None => vec![message],
            }
        });
        (court.home, known)
    };
    let others = rule_at_opening(|message| {
        on_record(message, "introduction", |record| {
            record.answers[0].clone_from(&foreign);
        })
    });
    assert_eq!(others, "keys");
    // A key of the coordinator's, beside the site's own word for another.
    let between = rule_at_opening(|message| {
        on_record(message, "introduction", |record| {
            if let Some(Answer::Introduced(introduction)) = &mut record.answers[3] {
                introduction.agreement = vec![9; 32];
            }
        })
    });
    assert_eq!(between, "keys");
}

/// The secrets that sites encapsulate for each other travel by the coordinator, which can read none and change none: another
/// ciphertext, one left out, or one for another site.
#[test]
fn secrets_that_their_site_has_not_signed_are_refused() {
    type Change = fn(&mut Vec<Vec<u8>>);
    let changes: [Change; 3] = [
        |told| told[3][500] ^= 1,
        |told| told[3].clear(),
        |told| told.swap(2, 3),
    ];
    for change in changes {
        let rule = rule_at_opening(|message| {
            on_record(message, "encapsulations", |record| {
                if let Some(Answer::Encapsulated(found)) = &mut record.answers[0] {
                    change(&mut found.ciphertexts);
                }
            })
        });
        assert_eq!(rule, "signature");
    }
}

/// The reason of a site that does not believe what it heard is heard, and not taken for a forgery.
#[test]
fn a_site_that_follows_no_more_is_heard_with_its_reason() {
    let mut court = opening();
    court.play(|site, message| {
        let is_south = site.as_str() == "south";
        let told = message.clone();
        let swapped =
            is_south.then(|| on_record(told, "introduction", |record| record.answers.swap(0, 2)));
        swapped.flatten().unwrap_or(vec![message])
    });
    let Some(Ending::Failed(failure)) = court.run.ending() else {
        panic!("a site that refuses");
    };
    assert!(failure.text.contains("south: "), "{}", failure.text);
    assert!(failure.text.contains("the keys of"), "{}", failure.text);
    assert!(!failure.text.contains("is not signed"), "{}", failure.text);
}

/// The answers to a question, from one of which a site that answered is left out: a sum over the others would tell it.
#[test]
fn a_site_that_is_said_to_be_late_leads_to_no_second_sum() {
    for late in 0..4 {
        let rule = rule_against(|message| {
            on_record(message, "derivatives", |record| {
                record.answers[late] = None;
                record.signatures[late] = Vec::new();
            })
        });
        assert_eq!(rule, "question", "without site {late}");
    }
    // Nobody has answered, it says, and asks the same again.
    let rule = rule_against(|message| {
        on_record(message, "derivatives", |record| {
            record.answers.fill(None);
            record.signatures.fill(Vec::new());
        })
    });
    assert_eq!(rule, "question");
}

#[test]
fn an_exchange_that_is_asked_again_or_before_its_time_is_refused() {
    for shift in [-1_i64, 1] {
        let rule = rule_against(|message| match message {
            ToSite::Ask(mut ask) if matches!(ask.request, Request::Unpsl(_)) => {
                let exchange = i64::from(ask.exchange) + shift;
                ask.exchange = u32::try_from(exchange).unwrap();
                Some(vec![ToSite::Ask(ask)])
            }
            _ => None,
        });
        assert_eq!(rule, "question", "shifted by {shift}");
    }
}

#[test]
fn a_site_that_starts_again_gives_the_same_words_or_none() {
    let victim = SiteName::new("south").unwrap();
    let mut court = Court::open();
    let (mut history, mut last) = (Vec::new(), None);
    let mut rounds = 0;
    court.play(|site, message| {
        if *site == victim {
            history.push(message.clone());
        }
        if let ToSite::Ask(ask) = &message
            && *site == victim
            && matches!(ask.request, Request::Unpsl(_))
        {
            rounds += 1;
            last = Some(ask.clone());
        }
        match rounds {
            0..=2 => vec![message],
            _ => Vec::new(),
        }
    });
    let ask = last.unwrap();
    let (_, before) = court.tell(&victim, ToSite::Ask(ask.clone())).unwrap();
    assert!(matches!(before.answer, Answer::Covered(_)));
    // Another process of the same site, which hears what closed and is asked again.
    drop(court.workers.remove(&victim));
    let config = site_config("south", 1, "site-south");
    let worker = federation::worker(&config, &court.home, NOW);
    court.workers.insert(victim.clone(), worker);
    for message in history {
        if !matches!(message, ToSite::Ask(_)) {
            court.tell(&victim, message);
        }
    }
    let (_, after) = court.tell(&victim, ToSite::Ask(ask)).unwrap();
    assert_eq!(before, after_with_its_own_journal(&before, after));
}

/// What a site says again stands in its journal again.
fn after_with_its_own_journal(before: &Reply<Answer>, after: Reply<Answer>) -> Reply<Answer> {
    Reply {
        journal: before.journal.clone(),
        ..after
    }
}
