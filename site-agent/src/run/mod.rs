//! What the agent does in a run: attends the coordinator, or plays a job on its own cohort.

pub mod answers;
pub mod audit;
pub mod driver;
mod figures;
mod follower;
pub mod listed;
pub mod local;
pub mod orders;
mod page;
pub mod retention;
mod seen;
pub mod stop;
mod summing;
pub mod worker;
