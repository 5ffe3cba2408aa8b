//! The brake: how steep a question may be. A metric or a regression that parts patients by a step jumps at single ones, and whoever
//! moves the step past them reads them one by one.

/// What `||W'x||^2` of a patient may be in the mean; honest metrics have at most about 50.
const SIMILARITY_MAX: f64 = 100.0;
/// The same, a column of W: the common start of all sites has about 1 per column, and a metric of many columns is not steeper for it.
const SIMILARITY_A_COLUMN: f64 = 4.0;
/// The mean squared linear predictor at most. Honest regressions of an area under the curve of 0.95 have about 5.
const PREDICTOR_MAX: f64 = 9.0;

/// How steep a question is for the patients of one site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steepness {
    /// A metric: the mean of `||W'x||^2` over the patients, and the columns of W.
    Metric {
        /// The mean.
        similarity: f64,
        /// Columns.
        columns: usize,
    },
    /// A regression: the mean squared linear predictor of the patients, less `centre`, which a constant alone would predict.
    Predictor {
        /// The mean.
        squares: f64,
        /// What a constant predicts: a rare outcome alone puts it far from 0.
        centre: f64,
    },
}

impl Steepness {
    /// The brake on metrics, in words.
    #[must_use]
    pub fn of_metrics() -> String {
        format!(
            "A metric that parts patients by a step: a mean of ||W'x||^2 above {SIMILARITY_MAX}, or {SIMILARITY_A_COLUMN} per \
             column, shuts the run. The brake blurs single patients and proves nothing."
        )
    }

    /// The brake on regressions, in words.
    #[must_use]
    pub fn of_regressions() -> String {
        format!(
            "A regression that parts patients by a step: a mean squared linear predictor above {PREDICTOR_MAX} (more where the \
             outcome is rare) shuts the run. The brake blurs single patients and proves nothing."
        )
    }

    /// Whether it is so steep for the patients of all sites that it may be too steep for those of one: above two thirds of the brake.
    #[must_use]
    pub fn is_close(self) -> bool {
        match self {
            Self::Metric {
                similarity,
                columns,
            } => Self::Metric {
                similarity: 1.5 * similarity,
                columns,
            },
            Self::Predictor { squares, centre } => Self::Predictor {
                squares: 1.5 * squares,
                centre,
            },
        }
        .is_too_much()
    }

    /// Whether it is too steep to be answered. What is no number is.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // columns are few
    pub fn is_too_much(self) -> bool {
        let (found, most) = match self {
            Self::Metric {
                similarity,
                columns,
            } => (
                similarity,
                SIMILARITY_MAX.max(SIMILARITY_A_COLUMN * columns as f64),
            ),
            Self::Predictor { squares, centre } => (squares, PREDICTOR_MAX + centre * centre),
        };
        found.is_nan() || most.is_nan() || found > most
    }
}
