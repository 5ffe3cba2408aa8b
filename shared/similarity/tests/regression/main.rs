//! Promise: regressions are those of R and statsmodels, also when they are put together from the sums of several sites,
//! and say what is wrong with a cohort that has no regression.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and why a test is skipped

mod absolute;
mod bad_input;
mod exponential;
mod federated;
mod oracles;
mod ridges;
mod sample;
