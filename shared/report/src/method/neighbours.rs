//! What a run that asks who is alike leaves: the answer as a table, and as a page.

use super::room::{Reported, usual_title};
use super::{Chapters, Said};
use crate::alike::{AlikeElsewhere, AskedAbout, HOW};
use crate::csvw::File;
use crate::figures::FigureError;
use crate::files::{Learnt, json};
use crate::tables;
use maud::{Markup, PreEscaped, html};
use protocol::job::Job;
use protocol::method::neighbours::model::Model;
use protocol::method::neighbours::settings::NeighboursSettings;
use protocol::result::RunResult;
use serde::Serialize;

impl Reported for Model {
    type Settings = NeighboursSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn answer(&self, result: &RunResult, job: &Job, _: &NeighboursSettings) -> Markup {
        sentences(&answer(result, job, self, AskedAbout::default()))
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        _: &NeighboursSettings,
    ) -> Result<Chapters, FigureError> {
        let answer = answer(result, job, self, AskedAbout::default());
        Ok(Chapters {
            glance: picture(&answer)?,
            features: profiles(&answer),
            sites: tables::sites(result),
            quality: Markup::default(),
            course: html! {
                h2 { "How it went" }
                p { "Patients were compared by run " (self.run) ". " (format!("{:.1}", result.seconds)) " seconds." }
            },
        })
    }

    fn files(&self, result: &RunResult, job: &Job) -> Vec<File> {
        files(result, job, self)
    }

    fn learnt(&self) -> Learnt<'_> {
        Learnt::default()
    }

    fn model<'r>(
        &'r self,
        result: &'r RunResult,
        job: &'r Job,
        _: &'r NeighboursSettings,
    ) -> Option<impl Serialize> {
        Some(answer(result, job, self, AskedAbout::default()))
    }

    fn said(
        &self,
        result: &RunResult,
        job: &Job,
        _: &NeighboursSettings,
        of: AskedAbout<'_>,
    ) -> Option<Said> {
        let answer = answer(result, job, self, of);
        Some(Said::Answer(super::Answer {
            text: answer.text(),
            json: answer.json(),
            csv: answer.csv(&job.cohort.outcome),
        }))
    }
}

/// What a run found about these patients, as chapters of another page.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn of_patients(
    result: &RunResult,
    job: &Job,
    model: &Model,
    of: AskedAbout<'_>,
) -> Result<Markup, FigureError> {
    let answer = answer(result, job, model, of);
    Ok(html! { (sentences(&answer)) (picture(&answer)?) (profiles(&answer)) })
}

/// The answer, of these patients.
fn answer(result: &RunResult, job: &Job, model: &Model, of: AskedAbout<'_>) -> AlikeElsewhere {
    let sites = result.sites_that_took_part();
    let said = (of, result.notes.as_slice());
    AlikeElsewhere::new(result.run.as_str(), model, job, sites, said)
}

/// `alike.csv` and `alike.json`, in which patients are numbered as they were asked about.
fn files(result: &RunResult, job: &Job, model: &Model) -> Vec<File> {
    let answer = answer(result, job, model, AskedAbout::default());
    vec![
        File::table("alike.csv", answer.csv(&job.cohort.outcome)),
        File::bytes("alike.json", json(&answer)),
    ]
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

fn picture(answer: &AlikeElsewhere) -> Result<Markup, FigureError> {
    let pictures = answer.pictures()?;
    Ok(html! {
        h2 { "How similar patients fared" }
        @for svg in pictures.iter().filter(|svg| !svg.is_empty()) { figure { (PreEscaped(tables::described(svg, "How similar patients fared"))) } }
        p { "A line a patient and a distance, with the number of similar patients; the vertical line is all patients. " (HOW) }
    })
}

fn profiles(answer: &AlikeElsewhere) -> Markup {
    html! {
        @for (patient, rows) in answer.profiles() {
            @if !rows.is_empty() {
                @let is_known = rows.iter().any(|[_, own, _]| !own.is_empty());
                h2 { "Patients similar to patient " (patient) }
                table {
                    thead {
                        tr {
                            th scope="col" { "feature" }
                            @if is_known { th scope="col" { "patient " (patient) } }
                            th scope="col" { "similar patients" }
                        }
                    }
                    tbody {
                        @for [name, own, similar] in rows {
                            tr {
                                td data-label="feature" { (name) }
                                @if is_known { td data-label="patient" { (own) } }
                                td data-label="similar patients" { (similar) }
                            }
                        }
                    }
                }
            }
        }
    }
}
