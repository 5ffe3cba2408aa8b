//! Promises of the programs: each test starts them, or a site's worker on files that a program made, in a folder of its own.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test panics, and says what it found

mod alike_elsewhere;
mod backups;
mod bedside;
mod browser;
mod by_forest;
mod card;
mod cells;
mod clusters_elsewhere;
mod command_line;
mod compare;
mod curves;
mod end_to_end;
mod enrolment;
mod examples;
mod few_events;
mod first_steps;
mod forest_end_to_end;
mod forest_quality;
mod forest_worker;
mod from_python;
mod held_out;
mod hindered;
mod honest_scores;
mod hospital_desk;
mod imputed;
mod judged_pairs;
mod local;
mod networks;
mod operator_pages;
mod owners;
mod rare_columns;
mod recovery;
mod regression;
mod report_pages;
mod ridges;
mod service;
mod speaking;
mod stored;
mod studies;
mod sums;
mod survival_elsewhere;
mod treatments;
mod validation;
mod what_left;
