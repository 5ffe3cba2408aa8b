//! What a job wants done with the values of its features, as the mathematics takes it.

use super::{
    CohortSpecification, Feature, FeatureKind, Impute, OutcomeKind, Standardise, Transform,
};
use crate::limits::{AGE_MAX, WORDS_MAX};
use similarity::cohort::quantile::{Grid, Quartiles};
use similarity::cohort::{logarithm, standardise};

/// Cells of every grid of numbers: a quantile is known to a 4096th of the declared range.
const CELLS: u32 = 4096;

/// A column that the sites count on a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GriddedColumn {
    /// Its place among the features, from 0.
    pub column: usize,
    /// The grid on which every site counts its values, after their transform. It follows from the
    /// job alone, so that no site can be asked for the same values on another.
    pub grid: Grid,
    /// True where the values are the numbers of levels: then their median is one too.
    whole: bool,
}

impl GriddedColumn {
    /// The pooled quartiles as all sites use them: a median of levels is the nearest level, and a
    /// spread below one cell is none.
    #[must_use]
    pub fn resolved(&self, quartiles: Quartiles) -> Quartiles {
        let Quartiles {
            lower,
            median,
            upper,
        } = quartiles;
        let median = if self.whole { median.round() } else { median };
        if upper - lower < self.grid.cell_width() {
            return Quartiles {
                lower: median,
                median,
                upper: median,
            };
        }
        Quartiles {
            lower,
            median,
            upper,
        }
    }
}

/// What the sites of a run count on grids, in the order in which they tell it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grids {
    /// Columns, in the features' order.
    pub columns: Vec<GriddedColumn>,
    /// The times of events; none unless the method asks for them.
    pub events: Option<Grid>,
}

impl Grids {
    /// Every grid, that of the events last.
    pub fn all(&self) -> impl Iterator<Item = Grid> {
        self.columns.iter().map(|one| one.grid).chain(self.events)
    }

    /// These columns of them, by their places, and the events.
    #[must_use]
    pub fn chosen(&self, columns: &[u32]) -> Self {
        let columns = columns.iter();
        let chosen = columns.filter_map(|place| self.columns.get(*place as usize));
        Self {
            columns: chosen.copied().collect(),
            events: self.events,
        }
    }

    /// Those of the two that are more, of which the counts go into one answer.
    #[must_use]
    pub(crate) fn or_more(self, other: Self) -> Self {
        let fits = other.cells() <= 2 * WORDS_MAX as u64;
        match fits && other.cells() > self.cells() {
            true => other,
            false => self,
        }
    }

    /// Cells of all of them.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.all().map(|grid| u64::from(grid.cells())).sum()
    }

    /// Whether nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.events.is_none()
    }
}

impl CohortSpecification {
    /// The columns that the sites' cohorts have, as standardisation wants them.
    #[must_use]
    pub fn standardised_columns(&self) -> Vec<standardise::Feature> {
        self.features.iter().map(Feature::standardised).collect()
    }

    /// Which features' values are replaced by their logarithms, one mark per feature.
    #[must_use]
    pub fn logarithms(&self) -> Vec<bool> {
        self.features.iter().map(Feature::is_logarithm).collect()
    }

    /// The columns whose pooled quartiles the standardisation needs.
    pub(crate) fn grids_of_quartiles(&self) -> Vec<GriddedColumn> {
        self.gridded(|feature| feature.standardised().needs_quartiles())
    }

    /// The same, and the columns whose splines have pooled knots.
    pub(crate) fn grids_of_quantiles(&self) -> Vec<GriddedColumn> {
        self.gridded(|feature| {
            let feature = feature.standardised();
            feature.needs_quartiles() || feature.curved().is_some()
        })
    }

    /// Every number.
    pub(crate) fn grids_of_numbers(&self) -> Vec<GriddedColumn> {
        self.gridded(|_| true)
    }

    /// The grid on which event times up to the horizon are counted; none unless the outcome is a survival time that has one.
    pub(crate) fn grid_of_events(&self) -> Option<Grid> {
        match &self.outcome.kind {
            OutcomeKind::Survival { horizon, .. } => Grid::new(0.0, (*horizon)?, CELLS).ok(),
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } | OutcomeKind::Numeric => {
                None
            }
        }
    }

    fn gridded(&self, is_wanted: impl Fn(&Feature) -> bool) -> Vec<GriddedColumn> {
        let features = self.features.iter().enumerate();
        features
            .filter(|(_, feature)| is_wanted(feature))
            .filter_map(|(column, feature)| feature.kind.gridded(column))
            .collect()
    }
}

impl Feature {
    /// Whether its values are replaced by their logarithms.
    #[must_use]
    pub fn is_logarithm(&self) -> bool {
        matches!(
            self.kind,
            FeatureKind::Numeric {
                transform: Transform::Log,
                ..
            }
        )
    }

    fn standardised(&self) -> standardise::Feature {
        let robust = matches!(
            self.kind,
            FeatureKind::Numeric {
                standardise: Standardise::Robust,
                ..
            }
        );
        standardise::Feature {
            name: self.name.clone(),
            kind: match self.kind.categories() {
                Some(levels) => standardise::FeatureKind::Categorical {
                    levels: levels.to_vec(),
                },
                None => standardise::FeatureKind::Numeric,
            },
            treatment: standardise::Treatment {
                impute: match self.impute {
                    Impute::Mean | Impute::Refuse => standardise::Impute::Mean,
                    Impute::Median => standardise::Impute::Median,
                    Impute::Indicator => standardise::Impute::Indicator,
                },
                scale: if robust {
                    standardise::Scale::Robust
                } else {
                    standardise::Scale::Moments
                },
                spline: self.spline,
            },
        }
    }
}

impl FeatureKind {
    /// The grid of a column of this kind; none where its values have no declared ends.
    pub(crate) fn gridded(&self, column: usize) -> Option<GriddedColumn> {
        // One cell a level, with the level in its middle.
        let levels = |levels: u32| Grid::new(-0.5, f64::from(levels) - 0.5, levels).ok();
        let (grid, whole) = match self {
            Self::Numeric {
                range, transform, ..
            } => {
                let (low, high) = (*range)?;
                let grid = match transform {
                    Transform::None => Grid::new(low, high, CELLS),
                    Transform::Log => Grid::new(logarithm(low), logarithm(high), CELLS),
                };
                (grid.ok(), false)
            }
            Self::Ordinal { levels: all } => (levels(u32::try_from(all.len()).ok()?), true),
            Self::Binary { .. } => (levels(2), true),
            Self::Age { .. } => (Grid::new(0.0, AGE_MAX, CELLS).ok(), false),
            Self::Categorical { .. } => (None, false),
        };
        grid.map(|grid| GriddedColumn {
            column,
            grid,
            whole,
        })
    }
}
