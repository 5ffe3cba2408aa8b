//! What the other hospitals say: how many of their patients are similar, and how they fared. It is asked as the study's operator asks, by a
//! button, because it uses up a query of the study and sends where the run places the patient.

use super::acts::{Act, To};
use super::runs;
use super::shelf::Question;
use super::{AtDesk, By, Desk};
use crate::cases::left::LeftRun;
use crate::cli::By as Distance;
use crate::config::SiteConfig;
use crate::run::driver::now;
use crate::studies;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use protocol::cohort::Value;
use protocol::job::Job;
use protocol::method::asking::{self, Taken};
use protocol::method::neighbours::settings::By as Placing;
use protocol::name::RunId;
use protocol::progress::Ending;
use protocol::result::RunResult;
use report::AskedAbout;
use service::pages::{Fault, Form, Visitor, problem, random, see, token};
use std::sync::Arc;
use tokio::runtime::Handle;
use wire::{ClientTls, ConnectionError, CredentialFiles, Dial, OperatorClient};

/// The method that asks.
const METHOD: &str = "neighbours";
/// The limit that it uses up.
const LIMIT: &str = "queries";
/// What the answer calls a patient who has no identifier.
const PATIENT: &str = "described here";

/// What became of the question.
#[derive(Clone)]
pub(super) enum Elsewhere {
    /// It is under way, by this run once there is one.
    Asked(Option<RunId>),
    /// What they say, as part of a page.
    Answered(Arc<String>),
    /// Why they say nothing.
    Failed(String),
}

/// Whether and how a distance of this page compares elsewhere.
fn placing(by: Distance, run: &LeftRun) -> Option<Placing> {
    match by {
        Distance::Run => Some(Placing::Run),
        Distance::Anchored => run.is_regression.then_some(Placing::Anchored),
        Distance::Personal
        | Distance::Regression
        | Distance::Euclidean
        | Distance::Manhattan
        | Distance::Cosine
        | Distance::Mahalanobis
        | Distance::Gower => None,
    }
}

/// Why the others cannot be asked; else how many queries are left here.
fn allowed(config: &SiteConfig, question: &Question, run: &LeftRun) -> Result<u64, String> {
    let Some(study) = &run.job.study else {
        return Err("The run is of no study, so no other hospital takes part.".to_owned());
    };
    if config.pages.operator.is_none() {
        return Err("The others are asked as an operator of the study: [pages.operator] of site.toml names a certificate and key.".to_owned());
    }
    if !study.methods.iter().any(|method| method == METHOD) {
        return Err(
            "The study does not allow to ask which patients are similar elsewhere.".to_owned(),
        );
    }
    if placing(question.by, run).is_none() {
        return Err("The others can compare by what the run learned alone. Ask about this patient by the run.".to_owned());
    }
    let left = studies::budgets(config, Some(study.name.as_str()), now());
    let left = left.map_err(|error| report::with_causes(&error))?;
    match left.first().and_then(|budget| budget.left(LIMIT)) {
        Some(0) | None => Err("No query of the study is left.".to_owned()),
        Some(left) => Ok(left),
    }
}

/// The part of an answer that is about the other hospitals.
pub(super) fn section(
    desk: &Desk,
    visitor: &Visitor,
    (id, question): (&str, &Question),
    run: &LeftRun,
) -> Markup {
    let asked = match &question.elsewhere {
        Some(Elsewhere::Answered(found)) => html! { (PreEscaped(found.as_str())) },
        Some(Elsewhere::Asked(of)) => html! {
            p {
                "The other hospitals are asked"
                @if let Some(of) = of { ", by run " (of) }
                ". The answer comes once all of them have answered. "
                a href=(format!("/answer/{id}/elsewhere")) { "Look again" }
            }
        },
        Some(Elsewhere::Failed(why)) => {
            html! { (problem(why)) (offer(desk, visitor, (id, question), run)) }
        }
        None => offer(desk, visitor, (id, question), run),
    };
    html! { section id="elsewhere" { h2 { "At the other hospitals" } (asked) } }
}

fn offer(
    desk: &Desk,
    visitor: &Visitor,
    (id, question): (&str, &Question),
    run: &LeftRun,
) -> Markup {
    let left = desk.open().map_err(|error| report::with_causes(&error));
    match left.and_then(|config| allowed(&config, question, run)) {
        Err(why) => html! { p { (why) } },
        Ok(left) => html! {
            p {
                "How many of their patients are similar, and how did they fare? The question costs 1 query of the study; " (left)
                " are left at this hospital. It sends numbers that say where the run places this patient. The coordinator and the "
                "other hospitals see them, but no name."
            }
            form.screen method="post" action=(format!("/answer/{id}/elsewhere")) {
                (token(visitor))
                button type="submit" { "Ask the other hospitals" }
            }
        },
    }
}

/// Leads to what they say by now: a link from a page to a part of itself would load nothing.
pub(super) async fn look(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(id): Path<String>,
) -> Response {
    let known = desk.question(&visitor, &id);
    desk.door.made(&visitor, known.map(|_| see(&here(&id))))
}

/// The part of an answer that is about them.
fn here(id: &str) -> String {
    format!("/answer/{id}#elsewhere")
}

/// Asks the other hospitals.
pub(super) async fn ask(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(id): Path<String>,
    Extension(_): Extension<Form>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let question = desk.question(visitor, &id)?;
        let here = here(&id);
        if let Some(Elsewhere::Asked(_) | Elsewhere::Answered(_)) = question.elsewhere {
            return Ok(see(&here));
        }
        let config = desk.open()?;
        let run = runs::known(desk, &question.run)?;
        allowed(&config, &question, &run).map_err(Fault::input)?;
        let values = desk.bedside(&run, question.by)?.values(&question.who)?;
        let asking = Asking {
            dial: dial(&config)?,
            by: placing(question.by, &run).unwrap_or_default(),
            run: run.run,
            name: question.who.known.unwrap_or_else(|| PATIENT.to_owned()),
            values,
        };
        desk.did(visitor, Act::AskedOthers, To::Run(&question.run))?;
        desk.note(&id, Elsewhere::Asked(None));
        let desk = Arc::clone(desk);
        Handle::current().spawn(async move {
            let found = asking.ask(&desk, &id).await;
            desk.note(&id, found.unwrap_or_else(Elsewhere::Failed));
        });
        Ok(see(&here))
    })
    .await
}

impl Desk {
    /// Notes what became of a question that is still kept.
    fn note(&self, id: &str, elsewhere: Elsewhere) {
        if let Some(question) = self.questions().get(id) {
            question.elsewhere = Some(elsewhere);
        }
    }
}

/// A question to the others.
struct Asking {
    dial: Dial,
    run: RunId,
    by: Placing,
    values: Vec<Value>,
    /// It stays here.
    name: String,
}

impl Asking {
    /// Submits a job that asks, waits for its end, and gives what it found.
    async fn ask(self, desk: &Desk, id: &str) -> Result<Elsewhere, String> {
        let said = |error: ConnectionError| {
            format!("{}: {}", error.code().name(), report::with_causes(&error))
        };
        let client = OperatorClient::connect(&self.dial).await.map_err(said)?;
        let learned = client.result(&self.run).await.map_err(said)?;
        let (text, seed) = self.job(&learned)?;
        let token = random().map_err(|error| error.to_string())?;
        let run = client.submit(&text, seed, &token).await.map_err(said)?;
        desk.note(id, Elsewhere::Asked(Some(run.clone())));
        let mut progress = client.watch(&run).await.map_err(said)?;
        while progress.next().await.map_err(said)?.is_some() {}
        let result = client.result(&run).await.map_err(said)?;
        if let Ending::Failed(failure) = &result.ending {
            return Err(format!("{}: {}", failure.code, failure.text));
        }
        let values = [self.values];
        let of = AskedAbout {
            names: &[self.name],
            values: &values,
        };
        let found = report::alike(&result, of).map_err(|error| report::with_causes(&error))?;
        let found =
            found.ok_or_else(|| format!("Run {run} says nothing about similar patients."))?;
        Ok(Elsewhere::Answered(Arc::new(found.into_string())))
    }

    /// The job, and its seed.
    fn job(&self, learned: &RunResult) -> Result<(String, u64), String> {
        let job = Job::parse(&learned.job).map_err(|problems| problems.to_string())?;
        let model = learned
            .model
            .as_ref()
            .ok_or("The run has left nothing to compare by.")?;
        let queries = self
            .by
            .place(model, &job.cohort, std::slice::from_ref(&self.values));
        let queries = queries.map_err(|error| report::with_causes(&error))?;
        let named = Placing::ALL.iter().filter(|(_, by)| *by == self.by);
        let settings: Vec<(String, String)> = named
            .map(|(name, _)| ("by".to_owned(), format!("{name:?}")))
            .collect();
        let text = asking::text(
            (&self.run, &job),
            METHOD,
            &Taken::Queries(queries),
            &settings,
        );
        Ok((text.map_err(|error| report::with_causes(&error))?, job.seed))
    }
}

/// How the operator reaches the coordinator, by the site's own way out.
fn dial(config: &SiteConfig) -> Result<Dial, Fault> {
    let operator = config.pages.operator.as_ref();
    let operator =
        operator.ok_or_else(|| Fault::input("[pages.operator] of site.toml names nobody."))?;
    let files = CredentialFiles {
        certificate: operator.certificate.clone(),
        key: operator.key.clone(),
        authority: config.tls.authority.clone(),
    };
    Ok(Dial {
        tls: ClientTls::load(&files)?,
        ..config.dial()?
    })
}

/// The card of a study that has opened by one of these runs, as part of a page; none before.
pub(super) fn card(config: &SiteConfig, runs: &[String]) -> Result<Option<Markup>, String> {
    let Some(run) = runs.last().and_then(|run| RunId::new(run).ok()) else {
        return Ok(None);
    };
    if config.pages.operator.is_none() {
        return Err("The study's card is fetched as an operator of the study: [pages.operator] of site.toml names a certificate and key.".to_owned());
    }
    let dial = dial(config).map_err(|fault| fault.text)?;
    let fetched = Handle::current()
        .block_on(async { OperatorClient::connect(&dial).await?.result(&run).await });
    let result = fetched.map_err(|error: ConnectionError| report::with_causes(&error))?;
    report::found(&result).map_err(|error| report::with_causes(&error))
}
