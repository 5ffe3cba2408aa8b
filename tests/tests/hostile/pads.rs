//! A coordinator that has a run begun again when a hospital's patients have changed, to read the new ones by the difference of
//! two answers under the same masks. It fails: a run is answered from the frozen patients, and the keys of a study are for these.

use crate::masks::Court;
use kindred_tests::deployment::site_config;
use kindred_tests::federation::{self, NOW};
use kindred_tests::samples::DEMO_JOB;
use kindred_tests::studies::{Proposed, STUDY};
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
fn overhear() -> Overheard {
    let mut court = Court::open();
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
    /// The hospital has more patients on the next day.
    fn grow(&mut self) {
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
    }

    /// The same run to the same hospital: all that it says now.
    fn again(&mut self) -> Vec<Answer> {
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
    /// sum over few patients may be, and not by nothing. Masks that differ make all of them of 128 bits.
    fn read(&self, answers: &[Answer]) -> usize {
        let second: Vec<Vec<u128>> = answers.iter().filter_map(words).collect();
        let first = [&self.descriptions, &self.moments];
        let pairs = first.into_iter().zip(&second);
        let differences = pairs.flat_map(|(first, second)| first.iter().zip(second));
        let small = differences.filter(|(first, second)| {
            let difference = second.wrapping_sub(**first);
            (1..1 << 100).contains(&difference.min(difference.wrapping_neg()))
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
fn a_run_that_comes_back_where_there_are_other_patients_hears_the_same_words() {
    let mut heard = overhear();
    heard.grow();
    let answers = heard.again();
    let words: Vec<_> = answers.iter().filter_map(words).collect();
    assert_eq!(words, [heard.descriptions.clone(), heard.moments.clone()]);
    assert_eq!(heard.read(&answers), 0);
}

/// Somebody puts the hospital's folder back as it was in the middle of the study, or before, and has the study approved once more.
#[test]
fn a_folder_that_is_put_back_covers_other_patients_by_no_masks_of_before() {
    let mut heard = overhear();
    let folder = heard.court.home.join("sites/south");
    let kept = tempfile::tempdir().unwrap();
    copy(&folder, kept.path());
    heard.grow();
    fs::remove_dir_all(&folder).unwrap();
    copy(kept.path(), &folder);
    fs::remove_dir_all(folder.join("studies")).unwrap();
    let study = Proposed::of(DEMO_JOB, &heard.court.home);
    study.approve(&heard.court.home, "south").unwrap();
    let answers = heard.again();
    println!("{:?}", refusals(&answers));
    assert_eq!(heard.read(&answers), 0);
    assert!(answers.iter().filter_map(words).next().is_none());
    assert!(refusals(&answers).iter().all(|rule| *rule == "study"));
}

/// The same, who keeps how the study opened too: the keys are those of the patients of before.
#[test]
fn keys_of_an_opening_are_for_the_patients_that_the_hospital_had_frozen() {
    let mut heard = overhear();
    heard.grow();
    let studies = heard.court.home.join("sites/south/studies");
    let kept = tempfile::tempdir().unwrap();
    copy(&studies, kept.path());
    fs::remove_dir_all(&studies).unwrap();
    let study = Proposed::of(DEMO_JOB, &heard.court.home);
    study.approve(&heard.court.home, "south").unwrap();
    let openings = format!("{STUDY}/openings");
    copy(&kept.path().join(&openings), &studies.join(&openings));
    let answers = heard.again();
    println!("{:?}", refusals(&answers));
    assert_eq!(heard.read(&answers), 0);
    assert!(refusals(&answers).iter().all(|rule| *rule == "same_cohort"));
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
