//! A coordinator that has a run begun again when a hospital's patients have changed, to read the new ones by the difference of
//! two answers under the same masks. It fails: the keys of a run are for one cohort.

use crate::masks::Court;
use kindred_tests::deployment::site_config;
use kindred_tests::federation::{self, NOW};
use privacy::{Covered, Disclosure};
use protocol::message::{Answer, Request, ToSite};
use protocol::name::SiteName;
use std::fs;
use std::path::Path;

/// Patients whom the hospital has on the next day.
const NEW_PATIENTS: usize = 30;

/// What south was told until it gave its moments, with the words of its first two covered answers.
struct Overheard {
    court: Court,
    messages: Vec<ToSite>,
    descriptions: Vec<u128>,
    moments: Vec<u128>,
}

fn south() -> SiteName {
    SiteName::new("south").unwrap()
}

fn words(answer: &Answer) -> Option<Vec<u128>> {
    match answer {
        Answer::Covered(Covered { words, .. }) => Some(words.as_slice().to_vec()),
        _ => None,
    }
}

/// Listens to a run until south has given its moments.
fn overhear(before: impl FnOnce(&Path)) -> Overheard {
    let mut court = Court::open();
    before(court.home.path());
    let (mut messages, mut over) = (Vec::new(), false);
    let said = court.play(|site, message| {
        if over {
            return Vec::new();
        }
        if *site == south() {
            messages.push(message.clone());
            over = matches!(&message, ToSite::Ask(ask) if ask.request == Request::Moments);
        }
        vec![message]
    });
    let mut covered = said.iter().filter(|said| said.site == south());
    let mut next = || {
        covered
            .by_ref()
            .find_map(|said| words(&said.answer))
            .unwrap()
    };
    let (descriptions, moments) = (next(), next());
    Overheard {
        court,
        messages,
        descriptions,
        moments,
    }
}

impl Overheard {
    /// The same run to the same hospital on the next day, with more patients: all that it says now.
    fn again(&mut self) -> Vec<Answer> {
        drop(self.court.workers.remove(&south()));
        let path = self.court.home.join("data/south.csv");
        let text = fs::read_to_string(&path).unwrap();
        let rows: Vec<&str> = text.lines().skip(1).take(NEW_PATIENTS).collect();
        let new = rows.iter().enumerate().map(|(place, row)| {
            let (_, values) = row.split_once(',').unwrap();
            format!("new_{place},{values}\n")
        });
        let grown = text.clone() + &new.collect::<String>();
        assert!(text.ends_with('\n') && text.starts_with("patient,"));
        fs::write(&path, grown).unwrap();
        let config = site_config("south", 1, "site-south");
        let worker = federation::worker(&config, &self.court.home, NOW);
        self.court.workers.insert(south(), worker);
        let told = std::mem::take(&mut self.messages);
        let told = told
            .into_iter()
            .filter_map(|message| self.court.tell(&south(), message));
        told.map(|(_, reply)| reply.answer).collect()
    }

    /// What the coordinator reads of the new patients: how many numbers of the second answers differ from the first by what a
    /// sum over few patients may be. Masks that differ make all of them of 128 bits.
    fn read(&self, answers: &[Answer]) -> usize {
        let second: Vec<Vec<u128>> = answers.iter().filter_map(words).collect();
        let first = [&self.descriptions, &self.moments];
        let pairs = first.into_iter().zip(&second);
        let differences = pairs.flat_map(|(first, second)| first.iter().zip(second));
        let small = differences.filter(|(first, second)| {
            let difference = second.wrapping_sub(**first);
            difference.min(difference.wrapping_neg()) < 1 << 100
        });
        small.count()
    }
}

fn refusals(answers: &[Answer]) -> Vec<&str> {
    let refused = answers.iter().map(|answer| match answer {
        Answer::Refused(refusal) => refusal.rule.as_str(),
        other => other.kind(),
    });
    refused.collect()
}

#[test]
fn a_run_that_comes_back_with_other_patients_is_refused() {
    let mut heard = overhear(|_| ());
    let answers = heard.again();
    println!("{:?}", refusals(&answers));
    assert_eq!(heard.read(&answers), 0);
    assert!(refusals(&answers).iter().all(|rule| *rule == "same_cohort"));
}

/// Somebody puts the hospital's folder back as it was before the run.
#[test]
fn a_folder_that_is_put_back_covers_other_patients_by_other_masks() {
    let kept = tempfile::tempdir().unwrap();
    let copied = kept.path().to_owned();
    let mut heard = overhear(|home| copy(&home.join("sites/south"), &copied));
    let folder = heard.court.home.join("sites/south");
    drop(heard.court.workers.remove(&south()));
    fs::remove_dir_all(&folder).unwrap();
    copy(kept.path(), &folder);
    let answers = heard.again();
    println!("{:?}", refusals(&answers));
    assert_eq!(heard.read(&answers), 0);
    assert!(answers.iter().filter_map(words).next().is_none());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}
