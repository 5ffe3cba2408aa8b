//! What a comparison leaves to its operator.

use super::message::FamilyCounts;
use super::settings::Family;
use crate::exchange::Course;
use crate::method::room::{MethodModel, Placing};

/// How well each family predicts held-out patients.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Patients of all sites.
    pub patients: u64,
    /// Neighbours that predicted a patient.
    pub neighbours: u32,
    /// Folds of each site's patients.
    pub folds: u32,
    /// In the job's order; none before the sites have answered.
    pub families: Vec<Compared>,
    /// Families that the job names and that were not learnt, each with the reason.
    pub left_out: Vec<(Family, String)>,
}

/// One family, over all sites that released it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Their sums.
    pub counts: FamilyCounts,
    /// Those sites.
    pub sites: u32,
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Course::default()
    }

    fn judges(&self) -> Option<u32> {
        None
    }

    fn is_learnt(&self, _: bool) -> bool {
        !self.families.is_empty()
    }

    fn publish(&mut self, largest: u64) {
        for compared in &mut self.families {
            compared.counts.counts.round_figures(largest);
            privacy::publish(compared.counts.content().into());
        }
    }

    fn placing(&self) -> Option<&dyn Placing> {
        None
    }
}
