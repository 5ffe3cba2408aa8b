//! What a run that asks who is alike leaves to its operator.

pub use super::message::Alike;
use super::settings::SHARES;
use crate::cohort::OutcomeKind;
use crate::cohort::{CohortSpecification, Value};
use crate::exchange::Course;
use crate::method::Unplaced;
use crate::method::room::MethodModel;
pub use similarity::uses::cases::Interval;
use similarity::uses::cases::{mean_of_sums, rate, wilson};

/// Who is alike at the sites, and how they fared.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The run that patients were compared by.
    pub run: String,
    /// Patients of all sites who were looked through.
    pub patients: u64,
    /// The radius of each of [`SHARES`]; none before they are known.
    pub radii: Vec<f64>,
    /// One a radius of each query; none before they are counted.
    pub alike: Vec<Alike>,
}

/// How patients fared.
#[derive(Debug, Clone, PartialEq)]
pub enum Outlook {
    /// The share of each class, with Wilson's interval.
    Classes(Vec<Interval>),
    /// The mean of a number, with Student's interval.
    Mean(Interval),
    /// Events in a unit of time that patients were followed, with an exact interval (Garwood 1936).
    Rate(Interval),
}

impl Model {
    /// What is known of each query, by radius.
    pub fn queries(&self) -> impl Iterator<Item = &[Alike]> {
        self.alike.chunks(SHARES.len())
    }
}

impl Alike {
    /// How they fared, of an outcome of this kind; none of nobody.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // counts of patients are far below 2^32 x 2^32
    pub fn outlook(&self, kind: &OutcomeKind) -> Option<Outlook> {
        let patients = self.patients();
        if patients == 0 {
            return None;
        }
        let share = |class: &u64| wilson(*class as usize, patients as usize);
        match (kind, self.sums.as_slice()) {
            (OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. }, _) => {
                Some(Outlook::Classes(self.classes.iter().map(share).collect()))
            }
            (OutcomeKind::Numeric, [sum, squares]) => {
                Some(Outlook::Mean(mean_of_sums(patients, *sum, *squares)))
            }
            (OutcomeKind::Survival { .. }, [time]) if *time > 0.0 => {
                let events = self.classes.get(1).copied()?;
                Some(Outlook::Rate(rate(events, *time)))
            }
            _ => None,
        }
    }
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Course::default()
    }

    fn is_learnt(&self, _: bool) -> bool {
        !self.alike.is_empty()
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn coordinates(&self, _: &CohortSpecification) -> usize {
        0
    }

    fn place(&self, _: &CohortSpecification, _: &[Vec<Value>]) -> Result<Vec<Vec<f64>>, Unplaced> {
        Err(Unplaced::Nothing)
    }
}
