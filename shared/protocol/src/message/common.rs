//! The questions that every run asks, whatever its method.

use super::{CORRELATED, DESCRIPTION, ENCAPSULATIONS, INTRODUCTION, MOMENTS, PREPARED, SPREAD};
use crate::method::regression::message::Evaluating;
use crate::method::room::Question;
use ndarray::Array2;

/// A question of every run, without what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Common {
    Introduce,
    Encapsulate,
    Describe,
    Moments,
    Spread,
    Prepare,
    Correlate,
}

impl Question for Common {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Introduce => INTRODUCTION,
            Self::Encapsulate => ENCAPSULATIONS,
            Self::Describe => DESCRIPTION,
            Self::Moments => MOMENTS,
            Self::Spread => SPREAD,
            Self::Prepare => PREPARED,
            Self::Correlate => CORRELATED,
        }
    }

    fn rounds(&self) -> u64 {
        0
    }

    fn builds_on_preparation(&self) -> bool {
        *self == Self::Correlate
    }

    fn leaves_state(&self) -> bool {
        match self {
            Self::Introduce | Self::Prepare | Self::Correlate => true,
            Self::Encapsulate | Self::Describe | Self::Moments | Self::Spread => false,
        }
    }

    fn points(&self) -> Vec<&Evaluating> {
        Vec::new()
    }

    fn metrics(&self) -> Vec<&Array2<f64>> {
        Vec::new()
    }
}
