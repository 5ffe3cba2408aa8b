//! A coordinator that lies in a run whose answers are too large for all to hear, so that every site hears their sum alone. What the sum
//! is follows from the sites' tags: another one is refused before anything that follows from it is answered.

use crate::masks::{Court, honest, rule_in};
use kindred_tests::deployment::PATIENTS;
use kindred_tests::samples::DEMO_JOB;
use ndarray::Array2;
use privacy::Disclosure;
use privacy::sums::{Tag, Total, TotalWord};
use protocol::job::Job;
use protocol::message::{Answer, Closed, ToSite};
use protocol::method::Model;
use protocol::progress::Ending;
use protocol::replica::Replica;
use std::sync::Arc;

/// Of no exchange all answers are heard.
fn court() -> Court {
    Court::of(PATIENTS, &job())
}

fn job() -> String {
    let table = "[aggregation]\nanswers_megabytes_max = 0\n\n[outcome]";
    DEMO_JOB.replacen("[outcome]", table, 1)
}

/// Changes the total of the first exchange of a kind.
fn on_total(
    message: ToSite,
    kind: &str,
    change: impl FnOnce(&mut Vec<TotalWord>, &mut Tag),
) -> Option<Vec<ToSite>> {
    let ToSite::Closed(mut closed) = message else {
        return None;
    };
    let is_it = |answer: &Answer| answer.kind() == kind;
    if !closed.record.answers.iter().flatten().any(is_it) {
        return None;
    }
    let total = closed.total.as_ref().unwrap();
    let (mut words, mut tag) = (total.as_slice().to_vec(), total.tag());
    change(&mut words, &mut tag);
    Arc::make_mut(&mut closed).total = Some(Total::received(words, tag));
    Some(vec![ToSite::Closed(closed)])
}

#[test]
fn sites_that_hear_sums_alone_learn_the_metric_of_those_that_hear_every_answer() {
    let metric = |mut court: Court| {
        let said = court.play(honest);
        assert_eq!(court.run.ending(), Some(&Ending::Converged));
        let result = court.run.result("");
        let Some(Model::Unpsl(model)) = result.model else {
            panic!("no metric");
        };
        let tags = said.iter().filter(|said| match &said.answer {
            Answer::Covered(covered) => covered.tag.is_some(),
            _ => false,
        });
        (model.metric.unwrap(), result.pooled.totals, tags.count())
    };
    let (whole, none, no_tags) = metric(Court::of(PATIENTS, DEMO_JOB));
    let (sums, totals, tags) = metric(court());
    assert_eq!((none, no_tags), (0, 0));
    assert!(
        totals > 5 && tags == 4 * totals as usize,
        "{totals}, {tags}"
    );
    // Sites of other keys round from other offsets.
    let [whole, sums] = [whole, sums].map(|metric| metric.dot(&metric.t()));
    let norm = |matrix: &Array2<f64>| matrix.iter().map(|one| one * one).sum::<f64>().sqrt();
    let apart = norm(&(&whole - &sums)) / norm(&whole);
    assert!(apart < 0.01, "another metric: {apart}");
}

/// The attack, against a site that believes what it hears: the sum of derivatives that the coordinator names leads to a metric that no
/// patients have, which the site would then be asked about. Against a site that judges the tags it gets no further answer.
#[test]
fn a_sum_of_the_coordinators_choosing_would_choose_the_next_metric_and_is_refused() {
    let (court, mut chosen) = (court(), None);
    let job = Job::parse(&court.begin.job).unwrap();
    // Keys are of no use to whoever knows the sums.
    let mut believer = Replica::new(&court.begin, job, 1, None);
    let rule = rule_in(court, |message| {
        let lie = on_total(message.clone(), "derivatives", |words, _| {
            let place = words.len() - 2;
            words[place].halves[1] = words[place].halves[1].wrapping_add(1 << 8);
        });
        let (ToSite::Closed(truth), None) = (&message, &chosen) else {
            return None;
        };
        if let Some([ToSite::Closed(told)]) = lie.as_deref() {
            let mut misled = believer.clone();
            let followed = [misled.follow(told), believer.follow(truth)];
            assert_eq!(followed, [Ok(true), Ok(true)]);
            chosen = Some(misled.asked() != believer.asked());
            return lie;
        }
        believer.follow(truth).unwrap();
        None
    });
    assert_eq!(chosen, Some(true), "the attack chooses nothing");
    assert_eq!(rule, "total");
}

/// Two sites that were told different things are asked different questions, by whoever knows a member's secrets: of others nothing, so that
/// the sum is one hospital's. What they answer adds up to nothing that can be read.
#[test]
fn what_sites_say_that_were_told_different_things_adds_up_to_nothing() {
    for text in [job(), DEMO_JOB.to_owned()] {
        let mut court = Court::of(PATIENTS, &text);
        let mut told = false;
        court.play(|site, message| match message {
            ToSite::Closed(mut closed) if site.as_str() == "south" && !told => {
                if closed.record.exchange == 1 {
                    // Nobody signs when an exchange closed, and no question follows from it.
                    Arc::make_mut(&mut closed).record.at.0 += 1;
                    told = true;
                }
                vec![ToSite::Closed(closed)]
            }
            message => vec![message],
        });
        assert!(told);
        let Some(Ending::Failed(failure)) = court.run.ending() else {
            panic!("a sum could be read");
        };
        assert!(
            failure.text.contains("the sum over the sites"),
            "{}",
            failure.text
        );
    }
}

#[test]
fn no_other_total_is_believed() {
    type Change = fn(&mut Vec<TotalWord>, &mut Tag);
    let changes: [Change; 6] = [
        |words, _| words[0].halves[0] ^= 1,
        |words, _| words[3].carries[1] ^= 1,
        |words, _| words.swap(0, 1),
        |words, _| words.fill(TotalWord::default()),
        |_, tag| *tag = Tag::received(tag.number() ^ 1),
        // Nothing of anybody, with the tag of nothing.
        |words, tag| {
            words.fill(TotalWord::default());
            *tag = Tag::received(0);
        },
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let kind = ["moments", "derivatives"][place % 2];
        let rule = rule_in(court(), |message| on_total(message, kind, change));
        assert_eq!(rule, "total");
    }
    let rule = rule_in(court(), |message| {
        on_total(message, "moments", |words, _| words.truncate(2))
    });
    assert_eq!(rule, "total");
}

#[test]
fn a_total_of_another_exchange_and_digests_without_a_total_are_refused() {
    let mut earlier = None;
    let rule = rule_in(court(), |message| {
        let ToSite::Closed(closed) = &message else {
            return None;
        };
        let is_round = |answer: &Answer| answer.kind() == "derivatives";
        if !closed.record.answers.iter().flatten().any(is_round) {
            return None;
        }
        let Some(old) = earlier.clone() else {
            earlier.clone_from(&closed.total);
            return None;
        };
        let mut closed = Closed::clone(closed);
        closed.total = Some(old);
        Some(vec![ToSite::Closed(Arc::new(closed))])
    });
    assert_eq!(rule, "total");
    let rule = rule_in(court(), |message| {
        let ToSite::Closed(closed) = &message else {
            return None;
        };
        let travelled = wire::decode_to_site(&wire::encode_to_site(message.clone())).unwrap();
        let (Some(_), ToSite::Closed(travelled)) = (&closed.total, travelled) else {
            return None;
        };
        let digests = travelled.record.answers.iter().flatten();
        assert!(
            digests
                .into_iter()
                .all(|one| matches!(one, Answer::Digest(_)))
        );
        let mut bare = Closed::clone(&travelled);
        bare.total = None;
        Some(vec![ToSite::Closed(Arc::new(bare))])
    });
    assert_eq!(rule, "question");
}
