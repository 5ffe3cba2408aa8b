//! The job that looks for groups of patients, written from that of the run that patients are compared by.

use super::settings::ClusterSettings;
use crate::job::Job;
use crate::method::Method;
pub use crate::method::neighbours::asking::AskError;
use crate::method::neighbours::asking::derived;

/// The text of a job that looks for groups among the patients of the job `learned`.
///
/// # Errors
/// [`AskError`].
pub fn text(learned: &Job, asked: &ClusterSettings) -> Result<String, AskError> {
    let table = format!(
        "run = \"{}\"\n{}coordinates = {}\nclusters_min = {}\nclusters_max = {}\nsamples = {}\nstability_min = {:?}\n",
        asked.run,
        asked.by.line(),
        asked.coordinates,
        asked.clusters_min,
        asked.clusters_max,
        asked.samples,
        asked.stability_min
    );
    derived(learned, &Method::Cluster(asked.clone()), &table)
}
