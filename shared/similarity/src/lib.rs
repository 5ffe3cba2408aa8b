//! The mathematics of Kindred: no I/O, no clock, no hidden randomness.
//!
//! A method *learns* (`learn`) what *compares* patients (`compare`); everything after it *uses* a comparison (`uses`) and is
//! *judged* alike (`judge`). Everything here is a function of its arguments. Randomness comes from named streams of one
//! [`numeric::seed::Seed`]; threads (rayon) never change a result, because reductions keep index order.
//!
//! To begin with, each of these pages has an example that runs: [`learn::unpsl`], [`learn::forest`], [`learn::regression`],
//! [`learn::kernel::ridge`], [`uses::cases`], [`uses::matching`], [`uses::clusters::medoids`] and [`uses::outlier`]. Whole programs are
//! `cargo run --example metric`, `proximities` and `federation`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod cohort;
pub mod compare;
pub mod judge;
pub mod learn;
pub mod numeric;
pub mod synthetic;
pub mod uses;
