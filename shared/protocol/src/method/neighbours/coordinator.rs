//! What a run that asks who is alike asks, stage by stage: how far the sites' patients are from each other, from which the radii
//! follow, and who is within them.

use super::judging;
use super::message::{Answer, OctaveGrid, Request};
use super::model::Model;
use super::settings::{NeighboursSettings, SHARES};
use crate::assessment::Assessment;
use crate::checks::unexpected;
use crate::cohort::CohortSpecification;
use crate::cohort::MissingShare;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::{Code, Failure};
use crate::message;
use crate::method::Beginning;
use crate::progress::Ending;
use std::sync::Arc;

/// A question about neighbours under way.
#[derive(Debug, Clone)]
pub(crate) struct Neighbours {
    settings: NeighboursSettings,
    cohort: Arc<CohortSpecification>,
    /// Without radii until the distances are known.
    model: Model,
}

impl Neighbours {
    /// A run that begins.
    pub(crate) fn new(settings: &NeighboursSettings, beginning: &Beginning) -> Self {
        Self {
            model: Model {
                run: settings.run.to_string(),
                patients: beginning.description.patients,
                radii: Vec::new(),
                alike: Vec::new(),
            },
            settings: settings.clone(),
            cohort: Arc::clone(&beginning.cohort),
        }
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &NeighboursSettings {
        &self.settings
    }

    /// What is asked at present.
    pub(crate) fn asking(&self) -> &dyn Asking {
        self
    }

    /// No moments are pooled.
    pub(crate) fn missing(&self) -> &[MissingShare] {
        &[]
    }

    /// There is no last word of each site.
    pub(crate) fn assessment(&self) -> Option<&Assessment> {
        None
    }

    /// Takes the answers of a closed exchange.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match closed.take_sum()? {
            message::Answer::Neighbours(Answer::Distances(counts)) if self.measures() => {
                self.model.radii = radii(&counts)?;
                Ok(Turn::Ask)
            }
            message::Answer::Neighbours(Answer::Alike(alike)) if !self.measures() => {
                self.model.alike = alike;
                Ok(Turn::Done(Ending::Completed))
            }
            other => Err(unexpected(&other, "what was asked")),
        }
    }

    /// Whether the distances are not known yet, from which the radii follow.
    fn measures(&self) -> bool {
        self.model.radii.is_empty()
    }

    /// What the run leaves, as it stands.
    pub(crate) fn model(&self) -> Model {
        self.model.clone()
    }
}

/// The end of the cell in which each share of the pairs is reached.
fn radii(counts: &[u64]) -> Result<Vec<f64>, Failure> {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        let text = "found no two groups of patients at any site, wanted two at one site at least";
        return Err(Failure::new(Code::Sites, text));
    }
    let radius = |share: &u32| {
        let wanted = (all.saturating_mul(u64::from(*share))).div_ceil(100);
        let mut so_far = 0;
        let reaches = |count: &u64| {
            so_far += count;
            so_far >= wanted
        };
        let cell = counts.iter().position(reaches);
        OctaveGrid::end(cell.unwrap_or(counts.len() - 1))
    };
    Ok(SHARES.iter().map(radius).collect())
}

impl Asking for Neighbours {
    fn phase(&self) -> &'static str {
        match self.measures() {
            true => "measuring distances",
            false => "counting similar patients",
        }
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Neighbours(match self.measures() {
            true => Request::Measure,
            false => Request::Count(Arc::new(self.model.radii.clone())),
        }))
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        match self.measures() {
            true => judging::distances(answer, patients),
            false => {
                let kind = &self.cohort.outcome.kind;
                judging::alike(&self.settings, kind, answer, patients)
            }
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(message::Answer::Neighbours(match self.measures() {
            true => Answer::Distances(vec![0; OctaveGrid::cells()]),
            false => judging::nobody(&self.settings, &self.cohort.outcome.kind),
        }))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radii_are_the_ends_of_the_cells_in_which_the_shares_are_reached() {
        let mut counts = vec![0; OctaveGrid::cells()];
        for (distance, pairs) in [(1.0, 5), (2.0, 5), (3.0, 9), (4.0, 81)] {
            counts[OctaveGrid::cell(distance)] += pairs;
        }
        let ends = [1.0, 2.0, 4.0].map(|distance| OctaveGrid::end(OctaveGrid::cell(distance)));
        assert_eq!(radii(&counts).ok(), Some(ends.to_vec()));
        assert!(radii(&vec![0; OctaveGrid::cells()]).is_err());
    }
}
