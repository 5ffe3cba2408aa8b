//! Whether the rounds ended at a W of too low a rank, which is stationary and no optimum: one question about the derivatives there says so,
//! and where the rounds go on.

use super::super::message::{Answer, Derivatives, Differentiating, Part, Request};
use super::super::possible::{Possible, asked_rows};
use crate::checks::unexpected;
use crate::exchange::Closed;
use crate::failure::Failure;
use crate::message;
use ndarray::Array2;
use similarity::learn::unpsl::{Form, SiteDerivatives, WayOut, missing_axis, way_out};
use std::sync::Arc;

/// A fall of the objective, as a share of itself, for which the rounds go on.
pub(super) const WORTH: f64 = 1e-4;

/// The questions at the ends of the rounds.
#[derive(Debug, Clone)]
pub(super) struct Check {
    possible: Possible,
    form: Form,
    features: usize,
    lambda_sparsity: f64,
    /// Set while the question is open.
    open: Option<Differentiating>,
}

/// What the answer of all sites says of the metric.
pub(super) struct Checked {
    /// The smooth part of the objective there.
    pub(super) smooth: f64,
    /// Where the objective is lower.
    pub(super) way_out: Option<WayOut>,
}

impl Check {
    pub(super) fn new(
        possible: Possible,
        form: Form,
        features: usize,
        lambda_sparsity: f64,
    ) -> Self {
        Self {
            possible,
            form,
            features,
            lambda_sparsity,
            open: None,
        }
    }

    /// Whether the metric lacks a direction.
    pub(super) fn is_wanted(&self, metric: &Array2<f64>) -> bool {
        missing_axis(metric, self.features).is_some()
    }

    /// Opens the question.
    pub(super) fn begin(&mut self, metric: &Arc<Array2<f64>>) {
        self.open = Some(Differentiating {
            metrics: Arc::new(vec![metric.as_ref().clone()]),
            parts: vec![Part::whole(self.form)],
            rows: Arc::new(vec![None]),
        });
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn ask(&self) -> Option<message::Request> {
        let asked = self.open.clone()?;
        Some(message::Request::Unpsl(Request::Differentiate(asked)))
    }

    pub(super) fn blank(&self) -> Option<message::Answer> {
        let blanks = Derivatives::blanks(self.open.as_ref()?, self.features);
        Some(message::Answer::Unpsl(Answer::Derivatives(blanks)))
    }

    pub(super) fn judge(&self, answer: &message::Answer) -> Option<Result<(), Failure>> {
        Some(self.possible.judge(answer, self.open.as_ref()?))
    }

    /// Takes the answers to the open question.
    pub(super) fn close(
        &mut self,
        closed: &mut Closed<'_>,
        metric: &Array2<f64>,
    ) -> Result<Checked, Failure> {
        let answer = self.summed(closed)?;
        Ok(Checked {
            smooth: answer.objective,
            way_out: way_out(metric, &answer, self.lambda_sparsity, self.form),
        })
    }

    /// The sum over the sites.
    fn summed(&mut self, closed: &mut Closed<'_>) -> Result<SiteDerivatives, Failure> {
        match (self.open.take(), closed.take_sum()?) {
            (Some(asked), message::Answer::Unpsl(Answer::Derivatives(sum))) if sum.len() == 1 => {
                Ok(sum[0].unfold(asked_rows(&asked, 0, self.features)))
            }
            (_, other) => Err(unexpected(&other, "derivatives")),
        }
    }
}
