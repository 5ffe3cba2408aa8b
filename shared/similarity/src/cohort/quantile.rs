//! Pooled quantiles from counts on a shared grid, without any patient's value.
//!
//! All sites count their values in the cells of one grid over the declared range. A site then joins
//! neighbouring cells until every group holds the minimum that may be released: unlike suppression
//! this loses no patient, and the borders are the grid's, never a patient's value. Within a group
//! the patients are taken to lie evenly (the grouped-data quantile of descriptive statistics); so a
//! pooled quantile's rank is wrong by at most the patients of the groups that it falls into.

use ndarray::ArrayView1;

/// Equal cells from `low` to `high`, which all sites share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    low: f64,
    high: f64,
    cells: u32,
}

/// One site's values on the grid.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    grid: Grid,
    groups: Vec<Group>,
}

/// Neighbouring cells: from the end of the group before (or 0) up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The cell after the last of the group.
    pub end: u32,
    /// Values in it.
    pub count: u64,
}

/// The middle of a column and its spread, for robust standardisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values lies below.
    pub lower: f64,
    /// Half of the values lies below.
    pub median: f64,
    /// Three quarters of the values lie below.
    pub upper: f64,
}

/// Numbers that make no grid or histogram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantileError {
    /// The grid has no extent.
    #[error("found a grid without extent, wanted finite ends, low below high, and a cell or more")]
    Grid,
    /// The groups do not tile the grid.
    #[error("found groups that do not tile a grid of {cells} cells in order")]
    Groups {
        /// Cells of the grid.
        cells: u32,
    },
    /// Fewer values than may be released.
    #[error("found fewer than {wanted} values, which may not be released")]
    TooFew {
        /// The minimum.
        wanted: u64,
    },
    /// Histograms of several grids.
    #[error("found histograms of several grids, wanted one")]
    Grids,
}

impl Grid {
    /// `cells` equal cells from `low` to `high`.
    ///
    /// # Errors
    /// [`QuantileError::Grid`].
    pub fn new(low: f64, high: f64, cells: u32) -> Result<Self, QuantileError> {
        if (high - low).is_finite() && low < high && cells > 0 {
            Ok(Self { low, high, cells })
        } else {
            Err(QuantileError::Grid)
        }
    }

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Width of one cell: nothing finer is known of a quantile.
    #[must_use]
    pub fn cell_width(&self) -> f64 {
        (self.high - self.low) / f64::from(self.cells)
    }

    /// The border before cell `index`; of index `cells`, the grid's end.
    #[must_use]
    pub fn border(&self, index: u32) -> f64 {
        self.edge(f64::from(index))
    }

    /// The value at the start of cell `index`; of index `cells`, the grid's end.
    fn edge(&self, index: f64) -> f64 {
        self.low + (self.high - self.low) * (index / f64::from(self.cells))
    }

    /// The cell of `value`; values outside of the grid count in its first and last cell.
    #[must_use]
    pub fn cell(&self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        let cell = (share * f64::from(self.cells)).floor();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
        let cell = cell.clamp(0.0, f64::from(self.cells - 1)) as usize;
        cell
    }
}

/// How many of the values that are not missing (NaN) lie in each cell of a grid.
#[must_use]
pub fn counts(values: ArrayView1<'_, f64>, grid: Grid) -> Vec<u64> {
    let mut counts = vec![0; grid.cells as usize];
    for value in values.iter().filter(|value| !value.is_nan()) {
        counts[grid.cell(*value)] += 1;
    }
    counts
}

impl Histogram {
    /// Counts the values that are not missing (NaN), in groups of at least `minimum`.
    ///
    /// # Errors
    /// [`QuantileError::TooFew`] where all values together are fewer.
    pub fn of(
        values: ArrayView1<'_, f64>,
        grid: Grid,
        minimum: u64,
    ) -> Result<Self, QuantileError> {
        let counts = counts(values, grid);
        let minimum = minimum.max(1);
        let mut groups: Vec<Group> = Vec::new();
        let mut count = 0;
        for (end, cell) in (1_u32..).zip(counts) {
            count += cell;
            if count >= minimum {
                groups.push(Group { end, count });
                count = 0;
            }
        }
        // What is left is too few for a group of its own.
        let last = groups
            .last_mut()
            .ok_or(QuantileError::TooFew { wanted: minimum })?;
        last.count += count;
        last.end = grid.cells;
        Ok(Self { grid, groups })
    }

    /// A histogram from plain numbers, as they come over the wire.
    ///
    /// # Errors
    /// [`QuantileError::Groups`] where the groups do not tile the grid.
    pub fn from_groups(grid: Grid, groups: Vec<Group>) -> Result<Self, QuantileError> {
        let starts = std::iter::once(0).chain(groups.iter().map(|group| group.end));
        let ascend = starts.zip(&groups).all(|(start, group)| start < group.end);
        let ends = groups.last().is_some_and(|last| last.end == grid.cells);
        if ascend && ends {
            Ok(Self { grid, groups })
        } else {
            Err(QuantileError::Groups { cells: grid.cells })
        }
    }

    /// The groups, from low to high.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Adds the patients to `density`, one entry a cell, spread evenly within each group.
    fn spread(&self, density: &mut [f64]) {
        let mut start = 0;
        for group in &self.groups {
            #[allow(clippy::cast_precision_loss)] // counts of patients
            let each = group.count as f64 / f64::from(group.end - start);
            for cell in &mut density[start as usize..group.end as usize] {
                *cell += each;
            }
            start = group.end;
        }
    }
}

impl std::fmt::Debug for Histogram {
    /// The grid only: a site's counts do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Histogram")
            .field("grid", &self.grid)
            .finish_non_exhaustive()
    }
}

/// The values of all sites together, as far as their histograms tell them.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    grid: Grid,
    /// Patients of each cell.
    density: Vec<f64>,
}

impl Pooled {
    /// The sum of histograms; none where there is none.
    ///
    /// # Errors
    /// [`QuantileError::Grids`] where the sites' grids differ.
    pub fn of(sites: &[Histogram]) -> Result<Option<Self>, QuantileError> {
        let Some(first) = sites.first() else {
            return Ok(None);
        };
        if sites.iter().any(|site| site.grid != first.grid) {
            return Err(QuantileError::Grids);
        }
        let mut density = vec![0.0; first.grid.cells as usize];
        for site in sites {
            site.spread(&mut density);
        }
        Ok(Some(Self {
            grid: first.grid,
            density,
        }))
    }

    /// Their grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The value below which `share` of the patients lie: the inverse of the piecewise linear
    /// cumulative count. None of nobody.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total: f64 = self.density.iter().sum();
        let wanted = share * total;
        let mut below = 0.0;
        for (start, count) in (0_u32..).zip(&self.density) {
            if *count > 0.0 && below + count >= wanted {
                let place = f64::from(start) + (wanted - below) / count;
                return Some(self.grid.edge(place));
            }
            below += count;
        }
        None
    }

    /// The quartiles; none of nobody.
    #[must_use]
    pub fn quartiles(&self) -> Option<Quartiles> {
        Some(Quartiles {
            lower: self.quantile(0.25)?,
            median: self.quantile(0.5)?,
            upper: self.quantile(0.75)?,
        })
    }

    /// About the mean and the standard deviation of what becomes of the values: every patient counts with the middle of
    /// the cell.
    #[must_use]
    pub fn moments(&self, of: impl Fn(f64) -> f64) -> (f64, f64) {
        let cells = || {
            let cells = (0_u32..).zip(&self.density);
            cells.map(|(cell, count)| (of(self.grid.edge(f64::from(cell) + 0.5)), *count))
        };
        let total: f64 = self.density.iter().sum();
        let mean = cells().map(|(value, count)| value * count).sum::<f64>() / total;
        let squares = cells().map(|(value, count)| (value - mean) * (value - mean) * count);
        (mean, (squares.sum::<f64>() / total).sqrt())
    }
}

/// Quartiles of all sites' values together; none where no site has a value.
///
/// # Errors
/// [`QuantileError::Grids`] where the sites' grids differ.
pub fn pooled_quartiles(sites: &[Histogram]) -> Result<Option<Quartiles>, QuantileError> {
    Ok(Pooled::of(sites)?.and_then(|pooled| pooled.quartiles()))
}

impl Quartiles {
    /// The standard deviation of a normal distribution with this interquartile range: the range
    /// over 1.349, twice the normal distribution's upper quartile.
    #[must_use]
    pub fn scale(&self) -> f64 {
        const NORMAL_RANGE: f64 = 1.348_979_500_392_163_4;
        (self.upper - self.lower) / NORMAL_RANGE
    }
}
