//! Sums over sites of which no single term can be read.
//!
//! A site writes what adds up as [`Words`]: whole numbers modulo 2^128, so that sums are exact and do not depend on the
//! order of the sites. It then covers them with [`Masks`], streams that it shares with every other site and
//! that cancel in the sum over all of them. Each word by itself is evenly distributed over all words.
//!
//! Source: Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017, without the
//! shares of keys: a sum that a site is missing from is asked for anew, under other masks.

mod masks;
mod total;
mod words;

pub use masks::{Masks, PAIR_BYTES};
pub use total::{Tag, Total, TotalWord};
pub use words::{Number, NumberError, Summand, WORD_BYTES, Words, shape};
