//! Exit codes of the programs, as deploy/codes.md has them.

/// A command line, a job, a configuration or a key file cannot be used.
pub const USAGE: i32 = 2;
/// A site's data does not fit the job.
pub const DATA: i32 = 3;
/// A site's policy refuses the job.
pub const REFUSED: i32 = 4;
/// The other side cannot be reached, or does not accept the certificate.
pub const CONNECTION: i32 = 5;
/// The run failed.
pub const RUN: i32 = 6;
/// The journal or the ledger is not what was written.
pub const JOURNAL: i32 = 7;
/// The run has not ended yet.
pub const GOING: i32 = 8;
/// The run has ended already.
pub const ENDED: i32 = 9;
/// The database failed, and with it the lease is lost.
pub const LOST: i32 = 10;
/// The folder was copied, the runs are in a database.
pub const ELSEWHERE: i32 = 11;
/// Nobody reads the output any more.
pub const UNREAD: i32 = 141;
