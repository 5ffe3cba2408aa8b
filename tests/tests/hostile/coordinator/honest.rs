//! An honest coordinator in this process, with real sites: what it asks must never be refused.

use super::RUN;
use kindred_tests::deployment::site_config;
use kindred_tests::programs::Home;
use ndarray::{Array2, s};
use protocol::coordinator::{Action, Event, Run};
use protocol::job::Job;
use protocol::message::{Answer, Request, ToSite, Warrant};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::Ending;
use protocol::time::Timestamp;
use site_agent::config::SiteConfig;
use site_agent::worker::Worker;
use std::collections::BTreeMap;

/// A run that is over.
pub(crate) struct Played {
    pub(crate) ending: Ending,
    /// The largest mean of ||W'x||^2 over a site's patients, under every metric that was asked about or came back.
    pub(crate) similarity: f64,
}

/// Plays `job` with the tables `data/SITE.csv` in `home`; `rules` stand in every site's policy.
pub(crate) fn play(home: &Home, job: &str, rules: &str) -> Played {
    let now = Timestamp(1_000);
    let parsed = Job::parse(job).unwrap();
    let mut workers: BTreeMap<SiteName, Worker> = BTreeMap::new();
    for site in &parsed.sites {
        let text = site_config(site.as_str(), 1, site.as_str()) + rules;
        let config = SiteConfig::parse(&text, home.path()).unwrap();
        std::fs::create_dir_all(&config.folder).unwrap();
        workers.insert(site.clone(), Worker::open(config, now).unwrap());
    }
    let id = RunId::new(RUN).unwrap();
    let operator = OperatorName::new("researcher").unwrap();
    let mut run = Run::new(id, parsed, 5, Warrant::default(), now);
    let mut metrics: Vec<(SiteName, Array2<f64>)> = Vec::new();
    let mut events: Vec<Event> = workers.keys().cloned().map(Event::Connected).collect();
    while run.ending().is_none() {
        assert!(!events.is_empty(), "the run stands still");
        let (next, actions) = run.step(now, events.remove(0));
        run = next;
        for action in actions {
            let Action::Send { site, message } = action else {
                continue;
            };
            let worker = workers.get_mut(&site).unwrap();
            match message {
                ToSite::Begin(begin) => worker.begin(begin, Ok(operator.clone())),
                ToSite::Ask {
                    run,
                    exchange,
                    request,
                } => {
                    let own = asked(&request);
                    metrics.extend(own.into_iter().map(|metric| (site.clone(), metric)));
                    let answer = worker.answer(&run, exchange, request, now);
                    let answer = answer.unwrap().unwrap().into_value();
                    if let Answer::Contribution(own) = &answer {
                        metrics.push((site.clone(), own.matrix.clone()));
                    }
                    events.push(Event::Answered {
                        site,
                        exchange,
                        answer,
                    });
                }
                ToSite::End { .. } => {}
            }
        }
    }
    Played {
        ending: run.ending().unwrap().clone(),
        similarity: metrics
            .iter()
            .map(|(site, metric)| similarity(home, site, metric))
            .fold(0.0, f64::max),
    }
}

fn asked(request: &Request) -> Vec<Array2<f64>> {
    match request {
        Request::Round(round) => vec![round.consensus.clone()],
        Request::Validate { models, .. } => models.clone(),
        Request::Finish { consensus, .. } => vec![consensus.clone()],
        _ => Vec::new(),
    }
}

/// From the patients as the site keeps them for itself.
fn similarity(home: &Home, site: &SiteName, metric: &Array2<f64>) -> f64 {
    let folder = home.join(&format!("sites/{site}/runs/{RUN}"));
    let Ok(patients) = ndarray_npy::read_npy::<_, Array2<f64>>(folder.join("matrix.npy")) else {
        return f64::NAN;
    };
    let projected = patients.dot(&metric.slice(s![..patients.ncols(), ..]));
    projected.iter().map(|entry| entry * entry).sum::<f64>() / patients.nrows() as f64
}
