//! An honest coordinator in this process, with real sites: what it asks must never be refused.

use kindred_tests::deployment::{certify, site_config};
use kindred_tests::federation::{NOW, RUN, converse, worker};
use kindred_tests::programs::Home;
use kindred_tests::studies::Opened;
use ndarray::{Array2, s};
use protocol::job::Job;
use protocol::message::{Request, unpsl};
use protocol::name::SiteName;
use protocol::progress::Ending;
use std::collections::BTreeMap;

/// A run that is over.
pub(crate) struct Played {
    pub(crate) ending: Ending,
    /// The largest mean of ||W'x||^2 over a site's patients, under every metric that was asked about.
    pub(crate) similarity: f64,
}

/// Plays `job` with the tables `data/SITE.csv` in `home`; `rules` stand in every site's policy.
pub(crate) fn play(home: &Home, job: &str, rules: &str) -> Played {
    let parsed = Job::parse(job).unwrap();
    certify(home);
    let mut workers = BTreeMap::new();
    for site in &parsed.sites {
        let config = site_config(site.as_str(), 1, &format!("site-{site}")) + rules;
        workers.insert(site.clone(), worker(&config, home, NOW));
    }
    let study = Opened::of(job, home, &mut workers);
    let mut metrics: Vec<(SiteName, Array2<f64>)> = Vec::new();
    let ending = converse(&study, study.job(job), &mut workers, |exchange| {
        let seen = asked(exchange.request);
        metrics.extend(
            seen.into_iter()
                .map(|metric| (exchange.site.clone(), metric)),
        );
    });
    Played {
        ending,
        similarity: metrics
            .iter()
            .map(|(site, metric)| similarity(home, site, metric))
            .fold(0.0, f64::max),
    }
}

fn asked(request: &Request) -> Vec<Array2<f64>> {
    let Request::Unpsl(request) = request else {
        return Vec::new();
    };
    match request {
        unpsl::Request::Differentiate(asked) => asked.metrics.as_ref().clone(),
        unpsl::Request::Round(round) => vec![round.consensus.as_ref().clone()],
        unpsl::Request::Validate(validating) => validating.models.as_ref().clone(),
        unpsl::Request::Finish(finishing) => {
            let folds = finishing.folds.iter().cloned();
            folds
                .chain([finishing.consensus.as_ref().clone()])
                .collect()
        }
    }
}

/// From the patients as the site keeps them for itself.
fn similarity(home: &Home, site: &SiteName, metric: &Array2<f64>) -> f64 {
    let folder = home.join(&format!("sites/{site}/runs/{RUN}"));
    let bytes = std::fs::read(folder.join("matrix.npy")).unwrap_or_default();
    let Some(patients) = kindred_tests::results::matrix(&bytes) else {
        return f64::NAN;
    };
    let projected = patients.dot(&metric.slice(s![..patients.ncols(), ..]));
    projected.iter().map(|entry| entry * entry).sum::<f64>() / patients.nrows() as f64
}
