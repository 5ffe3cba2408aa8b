//! What the tests of the promises share: where the workspace is, processes that never outlive a test, a deployment on one
//! machine, and a federation in one process. The promises themselves are under `tests/`, one file a promise.

#![allow(clippy::print_stdout)] // what a test skips, and the logs of one that fails, show among its own output

pub mod chromium;
pub mod cluster;
pub mod deployment;
pub mod draws;
pub mod exit;
pub mod federation;
pub mod needs;
pub mod processors;
pub mod programs;
pub mod readers;
pub mod relay;
pub mod results;
pub mod samples;
pub mod studies;
pub mod visitor;
pub mod workspace;
