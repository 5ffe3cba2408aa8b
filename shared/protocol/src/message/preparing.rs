//! What sites prepare their patients with.

use super::{ColumnMoments, Curve, Quartiles, Totals};

/// What a site standardises with.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparing {
    /// Pooled moments of every feature, in the job's order.
    pub moments: Vec<ColumnMoments>,
    /// Pooled quartiles of every column that needs them, in the job's order.
    pub quartiles: Vec<Quartiles>,
    /// The splines of every column that has one, in the job's order.
    pub curves: Vec<Curve>,
    /// Of each row that varies the share of its variance within the sites, where sites are centred by themselves.
    pub within: Option<Vec<f64>>,
    /// Sums over all sites, that weights are taken from.
    pub totals: Totals,
}
