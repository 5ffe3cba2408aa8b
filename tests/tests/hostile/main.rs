//! Promise: what a hostile coordinator, operator, member or stranger tries, fails. Every attack was carried out
//! first on programs that let it succeed; each says in its first line who tries what.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test panics, and says what it found

mod areas;
mod books;
mod cluster;
mod coordinator;
mod curves;
mod gentle;
mod histograms;
mod impossible;
mod jobs;
mod judged;
mod labels;
mod masks;
mod member;
mod neighbours;
mod operator;
mod pads;
mod parts;
mod places;
mod questions;
mod raw;
mod reconstruction;
mod renewals;
mod signature;
mod soak;
mod steering;
mod stranger;
mod studies;
mod tables;
mod totals;
mod within;
