//! The dual of one site, where it stays at the site.

use crate::numeric::portable::inner_product;
use ndarray::Array2;
use std::collections::VecDeque;

/// Rounds that a step mixes at most.
pub const MIXED_MAX: usize = 6;

/// How every site moves its dual before it answers: (4.23) with over-relaxation, of the last round or of a mixture of the last rounds, and a
/// penalty that may have grown before the consensus was shrunk and after it.
#[derive(Debug, Clone, PartialEq)]
pub struct DualStep {
    /// How often the duals have moved since they were 0; 0 where they are.
    pub moves: u32,
    /// The penalty's factor before this move.
    pub before: f64,
    /// The penalty's factor after it.
    pub after: f64,
    /// What the last rounds weigh in the mixture, the oldest first, at most [`MIXED_MAX`]; the last alone counts where there are none.
    pub weights: Vec<f64>,
}

impl DualStep {
    /// The duals are 0.
    pub const ZERO: Self = Self {
        moves: 0,
        before: 1.0,
        after: 1.0,
        weights: Vec::new(),
    };
}

/// Inner products of a site's dual and its update D_p = W_p - W. Their sums over the sites say all that the residuals want.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UpdateProducts {
    /// ||D_p||^2.
    pub update: f64,
    /// <U_p, D_p>.
    pub cross: f64,
    /// ||U_p||^2, of the dual that the update was found with.
    pub dual: f64,
}

/// The scaled dual U_p, and what moves it. It follows from what was broadcast and from the site's own answers, so that a
/// site that starts again finds it by answering the same questions.
#[derive(Debug, Clone)]
pub struct SiteDual {
    relaxation: f64,
    moves: u32,
    dual: Array2<f64>,
    /// The last consensus that was answered, and the answer W_p.
    last: Option<(Array2<f64>, Array2<f64>)>,
    /// What the last rounds under this penalty came to, W_p + U_p over-relaxed, the oldest first.
    past: VecDeque<Array2<f64>>,
}

impl SiteDual {
    /// A dual of 0.
    #[must_use]
    pub fn new(relaxation: f64) -> Self {
        Self {
            relaxation,
            moves: 0,
            dual: Array2::zeros((0, 0)),
            last: None,
            past: VecDeque::new(),
        }
    }

    /// Moves the dual to where `step` has it, and gives the centre W - U_p. Asked twice it is moved once. A site that has not
    /// answered the question before begins at 0: whoever asks begins anew then as well.
    pub fn centre(&mut self, consensus: &Array2<f64>, step: &DualStep) -> Array2<f64> {
        let fits = self.dual.dim() == consensus.dim();
        let is_next = fits && self.moves.checked_add(1) == Some(step.moves);
        let is_same = fits && step.moves > 0 && self.moves == step.moves;
        match self.last.take() {
            Some((previous, answer)) if is_next => {
                let relaxed = answer * self.relaxation + previous * (1.0 - self.relaxation);
                self.move_by(&relaxed, consensus, step);
            }
            last if is_same => self.last = last,
            _ => {
                self.dual = Array2::zeros(consensus.raw_dim());
                self.past.clear();
            }
        }
        self.moves = step.moves;
        consensus - &self.dual
    }

    fn move_by(&mut self, relaxed: &Array2<f64>, consensus: &Array2<f64>, step: &DualStep) {
        if step.before != 1.0 {
            self.past.clear();
        }
        self.past.push_back(relaxed + &(&self.dual / step.before));
        while self.past.len() > MIXED_MAX {
            self.past.pop_front();
        }
        // From the last backwards: more weights than rounds come from nobody who keeps to the protocol.
        let last = [1.0];
        let weights: &[f64] = match step.weights.is_empty() {
            true => &last,
            false => &step.weights,
        };
        self.dual = -consensus;
        for (weight, past) in weights.iter().rev().zip(self.past.iter().rev()) {
            self.dual.scaled_add(*weight, past);
        }
        if step.after != 1.0 {
            self.past.clear();
            self.dual /= step.after;
        }
    }

    /// Keeps the answer W_p to the question at `consensus`, by which the dual moves next, and gives what else is released of it.
    pub fn answered(&mut self, consensus: &Array2<f64>, answer: &Array2<f64>) -> UpdateProducts {
        let update = answer - consensus;
        let product = |a: &Array2<f64>, b: &Array2<f64>| inner_product(&a.view(), &b.view());
        let products = UpdateProducts {
            update: product(&update, &update),
            cross: product(&self.dual, &update),
            dual: product(&self.dual, &self.dual),
        };
        self.last = Some((consensus.clone(), answer.clone()));
        products
    }
}
