//! Numbers of each kind, as a message has them.

use privacy::sums::{Number, Summand};

/// They add up each by itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Numbers {
    pub(crate) counts: Vec<u64>,
    pub(crate) reals: Vec<f64>,
    pub(crate) measures: Vec<f64>,
}

impl Summand for Numbers {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        self.counts
            .iter_mut()
            .for_each(|one| visit(Number::Count(one)));
        self.reals
            .iter_mut()
            .for_each(|one| visit(Number::Real(one)));
        self.measures
            .iter_mut()
            .for_each(|one| visit(Number::Measure(one)));
    }
}
