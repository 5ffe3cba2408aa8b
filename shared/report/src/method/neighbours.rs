//! What a run that asks who is alike leaves: the answer as a table, and as a page.

use super::room::{Reported, usual_title};
use super::{Chapters, File};
use crate::alike::{AlikeElsewhere, HOW};
use crate::figures::FigureError;
use crate::files::Learnt;
use crate::tables;
use maud::{Markup, html};
use protocol::job::Job;
use protocol::method::neighbours::model::Model;
use protocol::method::neighbours::settings::NeighboursSettings;
use protocol::result::RunResult;
use std::io;

impl Reported for Model {
    type Settings = NeighboursSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        _: &NeighboursSettings,
    ) -> Result<Chapters, FigureError> {
        Ok(chapters(result, job, self))
    }

    fn files(&self, result: &RunResult, job: &Job) -> Vec<File> {
        files(result, job, self)
    }

    fn learnt(&self) -> Learnt<'_> {
        Learnt::default()
    }

    fn truth(&self) -> Option<String> {
        None
    }

    fn alike(&self, result: &RunResult, job: &Job, names: &[String]) -> Option<AlikeElsewhere> {
        Some(answer(result, job, self, names))
    }

    fn groups(&self, _: &RunResult, _: &Job) -> Option<String> {
        None
    }
}

/// The answer, of patients of these names.
fn answer(result: &RunResult, job: &Job, model: &Model, names: &[String]) -> AlikeElsewhere {
    let sites = result.sites_that_took_part();
    let said = (names, result.notes.as_slice());
    AlikeElsewhere::new(result.run.as_str(), model, job, sites, said)
}

/// `alike.csv` and `alike.json`, in which patients are numbered as they were asked about.
fn files(result: &RunResult, job: &Job, model: &Model) -> Vec<File> {
    let answer = answer(result, job, model, &[]);
    let json = || -> io::Result<Vec<u8>> { Ok((answer.json()? + "\n").into_bytes()) };
    vec![("alike.csv", answer.csv()), ("alike.json", json())]
}

fn chapters(result: &RunResult, job: &Job, model: &Model) -> Chapters {
    let answer = answer(result, job, model, &[]);
    Chapters {
        answer: sentences(&answer),
        glance: table(&answer),
        features: Markup::default(),
        sites: tables::sites(result),
        quality: Markup::default(),
        course: html! {
            h2 { "How it went" }
            p { "Patients were compared by run " (model.run) ". " (format!("{:.1}", result.seconds)) " seconds." }
        },
    }
}

fn sentences(answer: &AlikeElsewhere) -> Markup {
    let sentences = answer.sentences();
    html! {
        @if sentences.is_empty() { p.lead { "Nobody was counted: the run ended before." } }
        @for (place, sentence) in sentences.iter().enumerate() {
            p class=[(place == 0).then_some("lead")] { (sentence) }
        }
    }
}

fn table(answer: &AlikeElsewhere) -> Markup {
    let (head, rows) = answer.table();
    html! {
        h2 { "Similar patients" }
        table {
            caption { (HOW) }
            thead { tr { @for name in &head { th scope="col" { (name) } } } }
            tbody {
                @for row in &rows {
                    tr { @for (name, cell) in head.iter().zip(row) { td data-label=(name) { (cell) } } }
                }
            }
        }
    }
}
