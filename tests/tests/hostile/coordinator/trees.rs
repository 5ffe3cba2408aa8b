//! A coordinator that has forests grown and judged as it likes.

use super::site::{PATIENTS, Site, refused_by, said, table};
use super::{OPEN, RUN};
use protocol::message::forest::{
    self as message, Growing, Judging, NodeKind, TerminalTable, Trees,
};
use protocol::message::{Answer, Request};
use std::sync::Arc;

/// A job of a forest of one feature.
pub(crate) fn forest() -> String {
    "name = \"trees\"\nmethod = \"forest\"\nsites = [\"north\", \"south\", \"east\"]\n\
     [aggregation]\ncontributions = \"own\"\n[outcome]\ncolumn = \"value\"\nkind = \"numeric\"\n\
     [[features]]\nname = \"f2\"\nkind = \"numeric\"\nrange = [-8, 8]\n\
     [forest]\ntrees = 60\nscope = \"federated\"\n"
        .to_owned()
}

pub(crate) fn grow(cuts: &[f64]) -> Request {
    grow_with(cuts, |_| {})
}

fn grow_with(cuts: &[f64], change: impl FnOnce(&mut Growing)) -> Request {
    let mut growing = Growing {
        trees: 20,
        edges: vec![cuts.to_vec()],
        event_times: Vec::new(),
        class_weights: Vec::new(),
    };
    change(&mut growing);
    Request::Forest(message::Request::Grow(Arc::new(growing)))
}

/// To judge a forest whose first trees are the site's.
pub(crate) fn judge(trees: Trees) -> Request {
    Request::Forest(message::Request::Judge(Judging {
        first_tree: 0,
        trees: Arc::new(trees),
    }))
}

/// Describes, counts and grows at one cut in a run of that seed.
pub(crate) fn grown(site: &mut Site, seed: u64, cut: f64) -> Answer {
    site.begin(RUN, &forest(), seed);
    site.ask_in(1, Request::Describe);
    site.ask_in(2, Request::Quantiles);
    site.ask_in(3, grow(&[cut]))
}

#[track_caller]
pub(crate) fn trees(answer: Answer) -> Trees {
    match answer {
        Answer::Forest(message::Answer::Grown(trees)) => trees,
        other => panic!("{}", said(&other)),
    }
}

/// Patients and mean of the two leaves; none where the tree has no split.
fn leaves(trees: &Trees, tree: usize) -> Option<[(u32, f64); 2]> {
    let leaf = |node: usize| match &trees.trees[tree].nodes().get(node)?.kind {
        NodeKind::Terminal(TerminalTable::Mean(mean)) => {
            Some((trees.trees[tree].nodes()[node].patients, *mean))
        }
        _ => None,
    };
    Some([leaf(1)?, leaf(2)?])
}

/// The outcome of the one patient between two cuts, from trees of the same bag.
fn between(one: [(u32, f64); 2], two: [(u32, f64); 2]) -> Option<f64> {
    if two[0].0 != one[0].0 + 1 || two[1].0 + 1 != one[1].0 {
        return None;
    }
    let all = PATIENTS as f64;
    let sum = |left: f64, leaves: [(u32, f64); 2]| left * leaves[0].1 + (all - left) * leaves[1].1;
    for left in 1..PATIENTS {
        for times in 1..8 {
            let (left, times) = (left as f64, f64::from(times));
            if (sum(left, one) - sum(left + times, two)).abs() < 1e-8 {
                return Some(((left + times) * two[0].1 - left * one[0].1) / times);
            }
        }
    }
    None
}

/// A coordinator has the same bags grown with cut points on both sides of a patient. (Against a site whose bags followed
/// from the run's seed alone, and which grew again when it was told to describe itself again, this told 6 of 6 outcomes.)
#[test]
fn two_forests_do_not_part_on_a_single_patient() {
    let text = table(PATIENTS, 7);
    let mut values: Vec<(f64, f64)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[4].parse().unwrap(), fields[2].parse().unwrap())
        })
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut site = Site::open(&text, OPEN);
    // Cuts of three digits, as honest ones are, with one patient between them.
    let pairs: Vec<(f64, f64, f64)> = values
        .windows(3)
        .filter_map(|three| {
            let cut = |a: f64, b: f64| {
                let cut = ((a + b) / 2.0 * 100.0).round() / 100.0;
                (cut > a && cut < b && cut.abs() < 10.0).then_some(cut)
            };
            Some((
                cut(three[0].0, three[1].0)?,
                cut(three[1].0, three[2].0)?,
                three[1].1,
            ))
        })
        .filter(|(low, ..)| low.abs() < 3.0)
        .take(6)
        .collect();
    assert_eq!(pairs.len(), 6);
    let mut right = 0;
    for (seed, (low, high, value)) in (0..).zip(pairs) {
        let one = trees(grown(&mut site, seed, low));
        // In the same run: refused, whatever is said before.
        let again = grown(&mut site, seed, high);
        assert_eq!(
            refused_by(&again),
            Some("rounds_per_cohort_max"),
            "{}",
            said(&again)
        );
        site.restart();
        let again = grown(&mut site, seed, high);
        assert!(refused_by(&again).is_some(), "{}", said(&again));
        // In another run: other bags.
        let two = trees(grown(&mut site, 100 + seed, high));
        let found = (0..20).find_map(|tree| between(leaves(&one, tree)?, leaves(&two, tree)?));
        right += usize::from(found.is_some_and(|found| (found - value).abs() < 1e-3));
    }
    println!("two forests tell the outcome of {right} of 6 single patients");
    assert_eq!(right, 0);
}

/// A coordinator cuts where no honest one does, or asks for more trees than the job has.
#[test]
fn cut_points_beside_those_of_the_job_are_refused() {
    let mut site = Site::open(&table(PATIENTS, 7), OPEN);
    site.begin(RUN, &forest(), 5);
    site.ask(Request::Describe);
    let early = site.ask(grow(&[0.0]));
    assert_eq!(refused_by(&early), Some("question"), "{}", said(&early));
    site.ask(Request::Quantiles);
    let many: Vec<f64> = (0..32).map(|cut| f64::from(cut) / 10.0).collect();
    for cuts in [
        &[0.1234][..],
        &[9.0],
        &[1.0, 1.0],
        &[2.0, 1.0],
        &[f64::NAN],
        &many,
    ] {
        let answer = site.ask(grow(cuts));
        assert_eq!(
            refused_by(&answer),
            Some("question"),
            "{cuts:?}: {}",
            said(&answer)
        );
    }
    let others: [fn(&mut Growing); 4] = [
        |growing| growing.trees = 61,
        |growing| growing.edges = Vec::new(),
        |growing| growing.event_times = vec![1.0],
        |growing| growing.class_weights = vec![1.0],
    ];
    for change in others {
        let answer = site.ask(grow_with(&[0.0], change));
        assert_eq!(refused_by(&answer), Some("question"), "{}", said(&answer));
    }
    trees(site.ask(grow(&many[..31])));
}

/// A coordinator has the site describe itself again, and judges another forest. (It had as many judgements as it liked.)
#[test]
fn a_forest_is_judged_once() {
    let mut site = Site::open(&table(PATIENTS, 7), OPEN);
    let own = trees(grown(&mut site, 5, 0.0));
    let mut more = own.clone();
    more.trees.extend(own.trees.iter().take(5).cloned());
    let first = site.ask_in(4, judge(own.clone()));
    assert!(matches!(first, Answer::Assessed(_)), "{}", said(&first));
    let mut judged = 1;
    for exchange in 5..8 {
        site.ask_in(1, Request::Describe);
        let answer = site.ask_in(exchange, judge(more.clone()));
        judged += usize::from(matches!(answer, Answer::Assessed(_)));
        site.restart();
        trees(grown(&mut site, 5, 0.0));
    }
    println!("{judged} judgements in one run");
    assert_eq!(judged, 1);
    assert_eq!(
        wire::encode_answer(&site.ask_in(4, judge(own))),
        wire::encode_answer(&first)
    );
}
