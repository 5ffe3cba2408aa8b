//! What a run that asks who is alike leaves to its operator.

use super::message::Counted;
pub use super::message::{Alike, Mean};
use super::settings::{ALIKE_MIN, SHARES};
use crate::cohort::OutcomeKind;
use crate::exchange::Course;
use crate::method::room::{MethodModel, Placing};
pub use similarity::uses::cases::Interval;
pub use similarity::uses::curves::{GridCurve, GridPoint};
pub use similarity::uses::estimates::variance;

/// Who is alike at the sites, and how they fared.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The run that patients were compared by.
    pub run: String,
    /// Patients of all sites.
    pub patients: u64,
    /// Of them those in groups, who were looked through.
    pub grouped: u64,
    /// The radius of each of [`SHARES`]; none before they are known.
    pub radii: Vec<f64>,
    /// All who were looked through.
    pub everybody: Alike,
    /// One a radius of each query; none before they are counted.
    pub alike: Vec<Alike>,
    /// What those within the radius at [`super::settings::DESCRIBED`] are like, of each query after the other.
    pub features: Vec<Mean>,
}

/// How patients fared, with intervals of 95 %.
#[derive(Debug, Clone, PartialEq)]
pub enum Outlook {
    /// The share of each class.
    Classes(Vec<Interval>),
    /// The mean of a number.
    Mean(Interval),
    /// Events in a unit of time that patients were followed, of an outcome without horizons.
    Rate(Interval),
    /// Survival at the outcome's horizons, as far as enough are followed.
    Survival(GridCurve),
}

impl Model {
    /// What is known of each query: by radius, and of its features.
    pub fn queries(&self) -> impl Iterator<Item = (&[Alike], &[Mean])> {
        let queries = self.alike.len() / SHARES.len();
        let features = self.features.len() / queries.max(1);
        let of_query = move |(place, alike)| {
            let means = self.features.get(place * features..(place + 1) * features);
            (alike, means.unwrap_or_default())
        };
        self.alike.chunks(SHARES.len()).enumerate().map(of_query)
    }
}

impl Mean {
    /// The mean; none of fewer than [`ALIKE_MIN`].
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        (self.patients >= ALIKE_MIN).then(|| self.sum / self.patients)
    }
}

impl Alike {
    /// How they fared, of an outcome of this kind; `everybody` says how much outcomes vary. None of fewer than [`ALIKE_MIN`].
    #[must_use]
    pub fn outlook(&self, everybody: &Self, kind: &OutcomeKind) -> Option<Outlook> {
        if self.patients < ALIKE_MIN {
            return None;
        }
        let counted = Counted {
            patients: self.patients,
            border: self.border,
        };
        let all = everybody.patients.max(1.0);
        match (kind, self.sums.as_slice()) {
            (OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. }, _) => {
                let shares = self.classes.iter().map(|class| counted.share(*class));
                Some(Outlook::Classes(shares.collect()))
            }
            (OutcomeKind::Numeric, [sum, squares]) => {
                let [of_all, squares_of_all] = everybody.sums.as_slice() else {
                    return None;
                };
                let usual = variance(all, of_all.sum, squares_of_all.sum);
                Some(Outlook::Mean(counted.mean(*sum, *squares, usual)))
            }
            (OutcomeKind::Survival { horizons, .. }, []) => {
                Some(Outlook::Survival(counted.curve(horizons, &self.classes)))
            }
            (OutcomeKind::Survival { .. }, [time]) => {
                let events = self.classes.get(1)?;
                let usual = everybody.classes.get(1)?.sum / all;
                let usual = usual.clamp(0.0, 1.0);
                Some(Outlook::Rate(counted.rate(*events, *time, usual)))
            }
            (OutcomeKind::Numeric | OutcomeKind::Survival { .. }, _) => None,
        }
    }
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Course::default()
    }

    fn judges(&self) -> Option<u32> {
        None
    }

    fn is_learnt(&self, _: bool) -> bool {
        !self.alike.is_empty()
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn placing(&self) -> Option<&dyn Placing> {
        None
    }
}
