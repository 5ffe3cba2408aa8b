//! What a run that asks who is alike asks, stage by stage: how far the sites' patients are from each other, from which the radii
//! follow, and who is within them.

use super::judging;
use super::message::{Alike, Answer, OctaveGrid, Request};
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
use crate::method::room::MethodStages;
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
                grouped: 0,
                radii: Vec::new(),
                everybody: Alike::default(),
                alike: Vec::new(),
                features: Vec::new(),
            },
            settings: settings.clone(),
            cohort: Arc::clone(&beginning.cohort),
        }
    }

    /// Whether the distances are not known yet, from which the radii follow.
    fn measures(&self) -> bool {
        self.model.radii.is_empty()
    }
}

/// Where each share of the pairs is reached: within a cell as if its pairs were even.
#[allow(clippy::cast_precision_loss)] // as fine as the cells
fn radii(counts: &[u64]) -> Result<Vec<f64>, Failure> {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        let text = "found no group of patients at any site, wanted one at least";
        return Err(Failure::new(Code::Sites, text));
    }
    let radius = |share: &u32| {
        let wanted = all as f64 * f64::from(*share) / 100.0;
        let mut before = 0.0;
        for (cell, count) in counts.iter().enumerate() {
            let count = *count as f64;
            if count > 0.0 && before + count >= wanted {
                let end = OctaveGrid::end(cell);
                let begin = cell.checked_sub(1).map_or(end, OctaveGrid::end);
                return begin + (end - begin) * (wanted - before) / count;
            }
            before += count;
        }
        OctaveGrid::end(counts.len() - 1)
    };
    Ok(SHARES.iter().map(radius).collect())
}

impl MethodStages for Neighbours {
    type Settings = NeighboursSettings;
    type Model = Model;

    fn settings(&self) -> &NeighboursSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        self
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match closed.take_sum()? {
            message::Answer::Neighbours(Answer::Distances(told)) if self.measures() => {
                self.model.grouped = told.groups.patients;
                self.model.radii = radii(&told.pairs)?;
                Ok(Turn::Ask)
            }
            message::Answer::Neighbours(Answer::Found(told)) if !self.measures() => {
                self.model.everybody = told.everybody;
                self.model.alike = told.alike;
                self.model.features = told.features;
                Ok(Turn::Done(Ending::Completed))
            }
            other => Err(unexpected(&other, "what was asked")),
        }
    }

    fn model(&self) -> Model {
        self.model.clone()
    }

    /// No moments are pooled.
    fn missing(&self) -> &[MissingShare] {
        &[]
    }

    /// There is no last word of each site.
    fn assessment(&self) -> Option<&Assessment> {
        None
    }
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
            false => judging::alike(&self.settings, &self.cohort, answer, patients),
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(message::Answer::Neighbours(match self.measures() {
            true => judging::no_distances(),
            false => judging::nobody(&self.settings, &self.cohort),
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
    fn radii_lie_where_the_shares_are_reached_within_their_cells() {
        let mut counts = vec![0; OctaveGrid::cells()];
        for (distance, pairs) in [(1.0, 5), (2.0, 5), (3.0, 9), (4.0, 81)] {
            counts[OctaveGrid::cell(distance)] += pairs;
        }
        let place = |distance, part: f64| {
            let cell = OctaveGrid::cell(distance);
            let begin = OctaveGrid::end(cell - 1);
            begin + (OctaveGrid::end(cell) - begin) * part
        };
        let wanted = vec![place(1.0, 1.0), place(2.0, 1.0), place(4.0, 1.0 / 81.0)];
        assert_eq!(radii(&counts).ok(), Some(wanted));
        assert!(radii(&vec![0; OctaveGrid::cells()]).is_err());
    }
}
