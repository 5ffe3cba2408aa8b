//! The forms of the bedside: a patient of the hospital, another one, and a changed value.

use super::acts::{Act, To};
use super::fields::{self, Filled};
use super::runs::{self, Forms};
use super::shelf::Question;
use super::{AtDesk, By, Desk};
use crate::cases::CasesError;
use crate::cases::bedside::Who;
use crate::cases::left::LeftRun;
use crate::cli::By as Distance;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use service::pages::{Fault, Form, Visitor, see};

/// A patient of the hospital, by its identifier.
pub(super) async fn find(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
    Extension(form): Extension<Form>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let run = runs::known(desk, &run)?;
        let who = Who {
            known: Some(form.get("patient").to_owned()),
            values: None,
        };
        let again = |problem: String| {
            let forms = Forms {
                problem: Some(problem),
                ..Forms::sent(&form)
            };
            Ok(runs::forms(desk, visitor, &run, &forms))
        };
        match runs::chosen(form.get("by"), form.get("k")) {
            Err(problem) => again(problem),
            Ok((by, k)) => keep(desk, visitor, (&run, by, k), who)?.or_else(again),
        }
    })
    .await
}

/// A patient who is described in a form.
pub(super) async fn new(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
    Extension(form): Extension<Form>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let run = runs::known(desk, &run)?;
        let features = &run.job.cohort.features;
        let Filled {
            texts,
            problems,
            values,
        } = fields::read(features, &form, None);
        let chosen = runs::chosen(form.get("by"), form.get("k"));
        let mut again = Forms {
            problem: chosen.as_ref().err().cloned(),
            texts,
            problems,
            ..Forms::sent(&form)
        };
        let (Some(values), Ok((by, k))) = (values, chosen) else {
            return Ok(runs::forms(desk, visitor, &run, &again));
        };
        if again.texts.iter().all(String::is_empty) {
            again.problem =
                Some("At least one value is needed: of this patient nothing is known.".to_owned());
            return Ok(runs::forms(desk, visitor, &run, &again));
        }
        let who = Who {
            known: None,
            values: Some(values),
        };
        match keep(desk, visitor, (&run, by, k), who)? {
            Ok(page) => Ok(page),
            Err(problem) => {
                again.problem = Some(problem);
                Ok(runs::forms(desk, visitor, &run, &again))
            }
        }
    })
    .await
}

/// Keeps a question that has an answer, and leads there; else what is wrong with it.
fn keep(
    desk: &Desk,
    visitor: &Visitor,
    (run, by, k): (&LeftRun, Distance, usize),
    who: Who,
) -> Result<Result<Response, String>, Fault> {
    let bedside = desk.bedside(run, by)?;
    match bedside.check(&who, k) {
        Ok(()) => {}
        Err(error @ (CasesError::NoPatient { .. } | CasesError::TooMany { .. })) => {
            return Ok(Err(report::as_sentence(&error.to_string())));
        }
        Err(error) => return Err(error.into()),
    }
    desk.did(visitor, Act::Searched, To::Run(run.run.as_str()))?;
    let question = Question {
        session: visitor.session.clone(),
        run: run.run.to_string(),
        by,
        k,
        who,
        before: None,
        elsewhere: None,
    };
    let id = desk.questions().keep(question)?;
    Ok(Ok(see(&format!("/answer/{id}"))))
}

/// The same patient with other values.
pub(super) async fn what_if(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(id): Path<String>,
    Extension(form): Extension<Form>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let question = desk.question(visitor, &id)?;
        let run = runs::known(desk, &question.run)?;
        let bedside = desk.bedside(&run, question.by)?;
        let known = bedside.values(&question.who)?;
        let filled = fields::read(&run.job.cohort.features, &form, Some(&known));
        let Some(values) = filled.values.clone() else {
            return super::answer::page(desk, visitor, (&id, &question), Some(&filled));
        };
        if values == known {
            return Err(Fault::input(
                "No value was changed, so nothing else changes. Go back, and change one.",
            ));
        }
        let changed = Question {
            who: Who {
                known: question.who.known.clone(),
                values: Some(values),
            },
            before: Some(question.before.unwrap_or(question.who)),
            elsewhere: None,
            ..question
        };
        let id = desk.questions().keep(changed)?;
        // Not to the part of the page that the form was sent from.
        Ok(see(&format!("/answer/{id}#top")))
    })
    .await
}

impl Desk {
    /// The question of this name, if it is of this visitor.
    pub(super) fn question(&self, visitor: &Visitor, id: &str) -> Result<Question, Fault> {
        let mut questions = self.questions();
        let found = questions
            .get(id)
            .filter(|one| one.session == visitor.session);
        found.cloned().ok_or_else(|| {
            Fault::absent("This answer is no longer kept. Answers are kept in memory for half an hour. Please ask again.")
        })
    }
}
