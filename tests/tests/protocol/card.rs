//! Promise: a run for the card of a study holds under loss, delay, repetition, reordering and restart, and every site works out by
//! itself of which numbers sums are asked.
//!
//! The oracle knows what the sites pretend, and so which questions follow from their sum.

use crate::world::{self, CALM, Played, World};
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::card::{
    Answer as Told, Counts, FeatureCounts, GroupCounts, Request as Asked, Sums,
};
use protocol::message::{Answer, ColumnHistogram, Request};
use protocol::method::Model;
use protocol::method::card::model::{Moments, OutcomeSummary};
use protocol::progress::Ending;
use protocol::run::Record;
use protocol::study::Study;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;

/// Sites with two groups of patients, of whom two a group have no age, and one a site has a rare number.
struct Card {
    closed: usize,
    /// Records before patients are counted: introduced, encapsulated, described, parted by outcome, and compared with an earlier study.
    before: usize,
}

/// As [`Card`], but at each site one patient has no outcome of the second kind.
struct Apart;

/// As [`Card`], but each site has one patient who is not in the study that is renewed.
struct Few;

#[test]
fn a_run_for_a_card_survives_loss_delay_repetition_and_restart() {
    let endings = world::survives::<Card>(0..80, |random| job(random.random_range(3..=6)));
    let completed = endings.iter().filter(|one| **one == Ending::Completed);
    let completed = completed.count();
    assert!(completed > 40, "only {completed} of 80 runs completed");
}

#[test]
fn a_disturbed_run_leaves_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Card>(1000..1020, |_| job(3));
}

#[test]
fn a_run_for_the_card_of_a_renewed_study_compares_it_first() {
    let endings = world::survives::<Card>(2000..2030, |random| renewed(random.random_range(3..=6)));
    let completed = endings.iter().filter(|one| **one == Ending::Completed);
    let completed = completed.count();
    assert!(completed > 15, "only {completed} of 30 runs completed");
    world::storms_leave_the_bits_of_calms::<Card>(3000..3010, |_| renewed(3));
    world::every_planted_fault_is_caught::<Card>(&renewed(3));
}

#[test]
fn a_study_that_differs_in_few_patients_from_one_that_it_renews_tells_no_count_of_them() {
    let mut world = World::<Few>::new(1, CALM, &renewed(4));
    let complaint = world.drive().expect("a failure");
    assert!(complaint.contains(Code::Outcome.name()), "{complaint}");
    let wanted = "fewer than 20 patients over all hospitals are in this study and not in \"heart\"";
    assert!(complaint.contains(wanted), "{complaint}");
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Card>(&job(3));
}

#[test]
fn a_refusal_ends_the_run_and_names_the_site() {
    world::a_refusal_ends_the_run_by_name::<Card>(&job(3));
}

#[test]
fn the_table_is_the_sum_of_what_the_sites_told() {
    let mut world = World::<Card>::new(1, CALM, &job(4));
    assert_eq!(world.drive(), None);
    let Some(Model::Card(model)) = world.result().model else {
        panic!("no card");
    };
    let table = model.table.expect("a table");
    let patients: u64 = (0..4).map(Card::patients).sum();
    assert_eq!(table.groups[0].patients, patients);
    assert_eq!(table.groups[1].patients, patients / 2);
    let [age, rare, sex] = table.groups[0].features.as_slice() else {
        panic!("other features");
    };
    // Of 16 patients without an age.
    assert_eq!(age.missing, 20);
    let Some(Moments { mean, deviation }) = age.moments else {
        panic!("no mean age");
    };
    let present = (patients - 16) as f64;
    assert!((mean - 50.0).abs() < 1e-12, "{mean}");
    let wanted = (100.0 * present / (present - 1.0)).sqrt();
    assert!((deviation - wanted).abs() < 1e-9, "{deviation}");
    // Four have the rare number: no mean of it.
    assert_eq!(
        (rare.moments, rare.missing),
        (None, (patients - 4).next_multiple_of(10))
    );
    assert_eq!(table.steps[2], 1);
    assert_eq!(sex.levels, [Some(patients / 2); 2]);
    assert_eq!(table.left_out, 0);
    assert_eq!(
        table.outcomes,
        [
            OutcomeSummary::Classes,
            OutcomeSummary::Time(10.0 * patients as f64)
        ]
    );
}

#[test]
fn few_patients_by_whom_outcomes_differ_are_left_out_of_everything() {
    let mut world = World::<Apart>::new(1, CALM, &job(4));
    assert_eq!(world.drive(), None);
    let Some(Model::Card(model)) = world.result().model else {
        panic!("no card");
    };
    let table = model.table.expect("a table");
    let patients: u64 = (0..4).map(Card::patients).sum();
    assert_eq!(table.groups[0].patients, patients - 4);
    // Of four patients.
    assert_eq!(table.left_out, 10);
    world::storms_leave_the_bits_of_calms::<Apart>(1100..1110, |_| job(3));
    let endings = world::survives::<Apart>(4000..4010, |_| job(4));
    assert!(endings.contains(&Ending::Completed));
}

impl Played for Card {
    fn new(job: &Job) -> Self {
        let study = job.study.as_ref().expect("a study");
        Self {
            closed: 0,
            before: 5 + study.renews.len(),
        }
    }

    fn patients(site: usize) -> u64 {
        80 + 40 * site as u64
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        told(Self::patients(site), request, 0)
    }

    fn is_contribution(answer: &Answer) -> bool {
        match answer {
            Answer::Covered(covered) => {
                covered.kind.starts_with("card") || covered.kind == "quantiles"
            }
            answer => matches!(answer, Answer::Card(_) | Answer::Quantiles(_)),
        }
    }

    fn recomputed(answer: &mut Answer, _: &mut ChaCha8Rng) {
        match answer {
            Answer::Card(Told::Parts(counts) | Told::Lots(counts)) => counts[0] += 1,
            Answer::Card(Told::Counts(counts)) => counts.parts[0] += 1,
            Answer::Card(Told::Sums(sums)) => sums.features[0][0] += 1.0,
            Answer::Quantiles(histograms) => histograms[0].counts[0] += 1,
            _ => {}
        }
    }

    fn sent(&mut self, site: usize, _: u32, request: &Request) -> Option<String> {
        match request {
            Request::Card(Asked::Part) => (self.closed != 4)
                .then(|| format!("site {site} parts patients after {} records", self.closed)),
            Request::Card(Asked::Compare(left_out)) => {
                (self.closed != 5 || self.before != 6 || !left_out.is_empty())
                    .then(|| format!("site {site} compares after {} records", self.closed))
            }
            Request::Card(Asked::Count(left_out)) => (self.closed != self.before
                || !left_out.is_empty())
            .then(|| format!("site {site} counts after {} records", self.closed)),
            // Age and sex of those with each outcome: the rare number is not counted.
            Request::Card(Asked::Histograms {
                outcome,
                columns,
                left_out,
            }) => (self.closed != self.before + 1 + *outcome as usize
                || **columns != [0, 2]
                || !left_out.is_empty())
            .then(|| format!("site {site} counts {columns:?} of outcome {outcome}")),
            // The age of all five groups: of the rare number nobody asks.
            Request::Card(Asked::Sum { places, left_out }) => (self.closed != self.before + 3
                || **places != [0, 3, 6, 9, 12]
                || !left_out.is_empty())
            .then(|| {
                let closed = self.closed;
                format!("site {site} sums {places:?} after {closed} records")
            }),
            _ => None,
        }
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        self.closed = record.exchange as usize + 1;
        None
    }
}

impl Played for Few {
    fn new(_: &Job) -> Self {
        Self
    }

    fn patients(site: usize) -> u64 {
        Card::patients(site)
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        let all = Card::patients(site);
        match request {
            Request::Card(Asked::Compare(_)) => Answer::Card(Told::Lots([1, 0, all - 1].repeat(3))),
            request => told(all, request, 0),
        }
    }

    fn is_contribution(answer: &Answer) -> bool {
        Card::is_contribution(answer)
    }

    fn recomputed(_: &mut Answer, _: &mut ChaCha8Rng) {}

    fn sent(&mut self, _: usize, _: u32, request: &Request) -> Option<String> {
        let is_more = matches!(request, Request::Card(Asked::Count(_) | Asked::Sum { .. }));
        is_more.then(|| "counts of a study that few patients tell from another".to_owned())
    }

    fn stored(&mut self, _: &Record) -> Option<String> {
        None
    }
}

impl Played for Apart {
    fn new(_: &Job) -> Self {
        Self
    }

    fn patients(site: usize) -> u64 {
        Card::patients(site)
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        told(Card::patients(site), request, 1)
    }

    fn is_contribution(answer: &Answer) -> bool {
        Card::is_contribution(answer)
    }

    fn recomputed(answer: &mut Answer, random: &mut ChaCha8Rng) {
        Card::recomputed(answer, random);
    }

    fn sent(&mut self, _: usize, _: u32, request: &Request) -> Option<String> {
        let left_out = match request {
            Request::Card(
                Asked::Compare(left_out)
                | Asked::Count(left_out)
                | Asked::Histograms { left_out, .. }
                | Asked::Sum { left_out, .. },
            ) => left_out,
            _ => return None,
        };
        (**left_out != [1]).then(|| format!("asked without {left_out:?}, wanted without [1]"))
    }

    fn stored(&mut self, _: &Record) -> Option<String> {
        None
    }
}

/// What a site of so many patients tells, of whom some have a disease and no follow-up.
fn told(patients: u64, request: &Request, apart: u64) -> Answer {
    let Request::Card(request) = request else {
        panic!("a run for a card asks {request:?}");
    };
    let half = patients / 2;
    // Those who are apart are left out of all that is asked later.
    let out = match request {
        Asked::Count(left_out)
        | Asked::Histograms { left_out, .. }
        | Asked::Sum { left_out, .. }
            if left_out.contains(&1) =>
        {
            apart
        }
        _ => 0,
    };
    if let Asked::Histograms { .. } = request {
        let without = 4;
        let mut ages = vec![0; 4_096];
        ages[1_706] = patients - out - without;
        let of_cells = |counts: Vec<u64>| ColumnHistogram {
            ends: (1..).take(counts.len()).collect(),
            counts,
        };
        let sexes = vec![half - out, half];
        return Answer::Quantiles(vec![of_cells(ages), of_cells(sexes)]);
    }
    let group = |patients: u64, without: u64, rare: u64, odd: u64| GroupCounts {
        patients,
        features: vec![
            FeatureCounts {
                levels: vec![patients - without],
                missing: without,
            },
            FeatureCounts {
                levels: vec![rare],
                missing: patients - rare,
            },
            FeatureCounts {
                levels: vec![(patients - odd) / 2, (patients + odd) / 2],
                missing: 0,
            },
        ],
    };
    Answer::Card(match request {
        // Half of the patients are new.
        Asked::Part => Told::Parts(vec![apart, 0, patients - apart]),
        Asked::Compare(_) => Told::Lots([half, 0, patients - half].repeat(3)),
        Asked::Count(_) => Told::Counts(Counts {
            groups: vec![
                group(patients - out, 4, 1, out),
                group(half, 2, 0, 0),
                group(half - out, 2, 1, out),
                group(half, 2, 0, 0),
                group(half - apart, 2, 1, apart),
            ],
            // Nobody lacks the first outcome; the events are the negative, but for those who have no second.
            parts: vec![0, 0, 0, 0, half, 0, apart - out, 0, half - apart],
        }),
        Asked::Histograms { .. } => panic!("answered above"),
        Asked::Sum { places, .. } => {
            let present = |place: &u32| match place / 3 {
                0 => patients - 4 - out,
                2 | 4 => half - 2 - out,
                _ => half - 2,
            };
            let sums = places.iter().map(|place| {
                let present = present(place) as f64;
                [50.0 * present, 2_600.0 * present]
            });
            Told::Sums(Sums {
                features: sums.collect(),
                outcomes: vec![Vec::new(), vec![10.0 * patients as f64]],
            })
        }
    })
}

/// The same, of a study that renews another.
fn renewed(sites: usize) -> String {
    job(sites).replacen("purpose = ", "renews = [\"heart\"]\npurpose = ", 1)
}

fn job(sites: usize) -> String {
    let certificate = |digit: usize| format!("sha256:{}", digit.to_string().repeat(64));
    let mut study = format!(
        "name = \"world\"\ntitle = \"World\"\npurpose = \"A test\"\nuntil = \"2099-12-31\"\nmethods = [\"unpsl\", \"forest\"]\n\
         common_forests = true\n\
         limits = {{ runs = 1, rounds = 1, queries = 0 }}\noperators = [{{ name = \"lab\", certificate = \"{}\" }}]\n",
        certificate(9)
    );
    for site in 0..sites {
        let _ = write!(
            study,
            "[[hospitals]]\nname = \"site-{site}\"\ncertificate = \"{}\"\n",
            certificate(site)
        );
    }
    study += "[[outcomes]]\nname = \"disease\"\nlabel = \"Disease\"\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
              [[outcomes]]\nname = \"death\"\nlabel = \"Death\"\ncolumn = \"days\"\nkind = \"survival\"\nevent = \"died\"\n\
              [[features]]\nname = \"age\"\nkind = \"numeric\"\nrange = [0, 120]\n\
              [[features]]\nname = \"rare\"\nkind = \"numeric\"\nrange = [0, 10]\n\
              [[features]]\nname = \"sex\"\nkind = \"binary\"\n";
    let study = Study::parse(&study).unwrap_or_else(|errors| panic!("{errors}"));
    study.join("name = \"world\"\nmethod = \"card\"\nstudy = \"world\"\n")
}
