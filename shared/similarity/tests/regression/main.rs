//! Promise: regressions are those of R and statsmodels, also when they are put together from the sums of several sites,
//! and say what is wrong with a cohort that has no regression.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod bad_input;
mod federated;
mod oracles;
mod sample;
