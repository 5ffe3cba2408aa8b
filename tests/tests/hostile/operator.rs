//! An operator who only writes jobs.
