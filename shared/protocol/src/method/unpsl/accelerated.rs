//! Rounds of the accelerated consensus: every site tells its objective and its derivatives at one metric, and only their
//! sums are used. The last exchange is one round by the letter of the paper, as a certificate.

use super::message::{
    Answer, Centre, Contribution, Derivatives, Differentiating, Part, Request, Round,
};
use super::model::RoundRow;
use super::possible::{Possible, asked_rows};
use super::settings::UnpslSettings;
use crate::checks::{ensure, numbers, unexpected};
use crate::exchange::{Closed, Course, Turn, count};
use crate::failure::{Code, Failure};
use crate::limits::LOCAL_TOLERANCES;
use crate::message;
use crate::progress::Ending;
use crate::stage::preparing::Prepared;
use ndarray::{Array2, s};
use similarity::learn::unpsl::accelerated::{Knowledge, Search, SearchSettings, Step};
use similarity::learn::unpsl::{Form, SiteDerivatives};
use similarity::numeric::portable::norm;
use similarity::numeric::prox::shrink_rows;
use std::sync::Arc;

/// By how much a round of (4.21) to (4.23) may move the metric, beside its norm.
const CERTIFICATE: f64 = 1e-3;
/// Where it moves it by more, the search goes on for this share of what was left before.
const STRICTER: f64 = 0.01;
/// The penalties of all sites together, beside the largest curvature along the last steps.
const PENALTY_FACTOR: f64 = 2.0;

/// The search under way, or over.
#[derive(Debug, Clone)]
pub(super) struct Accelerated {
    settings: SearchSettings,
    search: Search,
    known: Knowledge,
    features: usize,
    possible: Possible,
    /// The metric of the open exchange.
    asked: Differentiating,
    rows: Vec<RoundRow>,
    /// Rounds at most.
    round_limit: u32,
    /// Set while the certificate is asked for: the penalty of one site.
    certifying: Option<f64>,
    certificates: u32,
    certificate: Option<f64>,
    /// The result has a note that the objective rose.
    noted: bool,
}

impl Accelerated {
    /// Certificates of one search at most.
    pub(super) const CERTIFICATES_MAX: u32 = 3;

    pub(super) fn start(settings: &UnpslSettings, start: Array2<f64>, prepared: &Prepared) -> Self {
        let features = settings.objective.features(&start);
        let own = SearchSettings {
            lambda_sparsity: settings.objective.lambda_sparsity,
            form: settings.objective.form,
            tolerance: settings.tolerance,
            tolerance_residual: CERTIFICATE,
        };
        let search = Search::new(own, start, features);
        let search = match settings.relative_lambda() {
            Some(relative) => search.relative(relative).bounded(),
            None => search,
        };
        let known = settings.knowledge(prepared);
        Self {
            settings: own,
            asked: question(&search, &known, own.form),
            search,
            known,
            features,
            possible: Possible::of(settings, prepared),
            rows: Vec::new(),
            round_limit: settings.round_limit,
            certifying: None,
            certificates: 0,
            certificate: None,
            noted: false,
        }
    }

    /// The best W.
    pub(super) fn metric(&self) -> &Array2<f64> {
        self.search.best()
    }

    /// lambda_1, or the last one that was tried.
    pub(super) fn lambda_sparsity(&self) -> f64 {
        self.search.lambda_sparsity()
    }

    pub(super) fn sparsity_term(&self) -> f64 {
        self.search.sparsity_term(self.metric())
    }

    pub(super) fn rows(&self) -> &[RoundRow] {
        &self.rows
    }

    pub(super) fn objective(&self) -> Option<f64> {
        self.search.objective()
    }

    /// By how much a round of (4.21) to (4.23) moves the metric, beside its norm.
    pub(super) fn certificate(&self) -> Option<f64> {
        self.certificate
    }

    pub(super) fn course(&self, round_limit: u32) -> Course {
        Course {
            round: count(self.rows.len()),
            round_limit,
            objective: self.objective(),
            left: self.rows.last().and_then(|row| row.left),
            ..Course::default()
        }
    }

    pub(super) fn ask(&self) -> message::Request {
        message::Request::Unpsl(match self.certifying {
            None => Request::Differentiate(self.asked.clone()),
            Some(penalty) => Request::Round(Round {
                consensus: Arc::new(self.metric().clone()),
                centre: Centre::Gradient,
                penalty,
                tolerance: *LOCAL_TOLERANCES.start(),
                part: Part::whole(self.settings.form),
            }),
        })
    }

    /// The derivatives that the exchange asks for; none where it asks for the certificate.
    pub(super) fn differentiating(&self) -> Option<&Differentiating> {
        self.certifying.is_none().then_some(&self.asked)
    }

    pub(super) fn blank(&self) -> message::Answer {
        let answer = match self.certifying {
            None => Answer::Derivatives(Derivatives::blanks(&self.asked, self.features)),
            Some(_) => Answer::Contribution(Contribution::blank(self.metric().dim(), None)),
        };
        message::Answer::Unpsl(answer)
    }

    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        if self.certifying.is_none() {
            return self.possible.judge(answer, &self.asked);
        }
        let message::Answer::Unpsl(Answer::Contribution(own)) = answer else {
            return Err(unexpected(answer, "a contribution"));
        };
        let shape = self.metric().dim();
        ensure(
            own.matrix.dim() == shape,
            "a contribution of another shape",
            "the metric's",
        )?;
        numbers(&own.matrix)?;
        numbers([&own.objective])
    }

    /// Takes the answers of a closed exchange.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match self.certifying.take() {
            Some(penalty) => self.certify(penalty, closed),
            None => self.go_on(closed),
        }
    }

    fn go_on(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        if self.learn(closed)? {
            return Ok(self.begin_certificate(closed.count()));
        }
        Ok(match count(self.rows.len()) >= self.round_limit {
            true => Turn::Done(Ending::RoundLimit),
            false => Turn::Ask,
        })
    }

    /// Takes the answers to a question; whether nothing is left.
    pub(super) fn learn(&mut self, closed: &mut Closed<'_>) -> Result<bool, Failure> {
        let answer = self.summed(closed)?;
        let round = count(self.rows.len()) + 1;
        let mut row = RoundRow::new(round, closed.seconds);
        let mut is_over = false;
        // Where the answer says no more than which rows to ask about: that of W = 0, which has no row.
        row.objective = Some(answer.objective + self.search.sparsity_term(self.search.question()));
        if let Some(step) = self.search.learn(&mut self.known, answer) {
            self.check_finite(&step)?;
            row.objective = Some(step.objective);
            row.left = Some(step.left);
            row.residual = Some(step.residual);
            if step.rose && !self.noted {
                self.noted = true;
                closed.notes.push(format!(
                    "The objective rose in round {round}; the search went back to the best metric and took shorter steps."
                ));
            }
            is_over = step.converged;
        }
        self.rows.push(row);
        self.asked = question(&self.search, &self.known, self.settings.form);
        Ok(is_over)
    }

    /// What sums of derivatives are held to.
    pub(super) fn possible(&self) -> &Possible {
        &self.possible
    }

    /// Where the search asks next.
    pub(super) fn question(&self) -> &Array2<f64> {
        self.search.question()
    }

    /// The sum over the sites.
    fn summed(&self, closed: &mut Closed<'_>) -> Result<SiteDerivatives, Failure> {
        match closed.take_sum()? {
            message::Answer::Unpsl(Answer::Derivatives(sum)) if sum.len() == 1 => {
                Ok(sum[0].unfold(asked_rows(&self.asked, 0, self.features)))
            }
            other => Err(unexpected(&other, "derivatives")),
        }
    }

    /// What is not finite can neither be sent nor stored.
    fn check_finite(&self, step: &Step) -> Result<(), Failure> {
        let told = [step.objective, step.left, step.residual];
        let metrics = self.search.question().iter().chain(self.metric());
        if told.iter().chain(metrics).all(|number| number.is_finite()) {
            return Ok(());
        }
        let text = "the optimisation diverged";
        Err(Failure::new(Code::Numbers, text))
    }

    fn begin_certificate(&mut self, sites: u32) -> Turn<Ending> {
        let is_empty = self.metric().iter().all(|entry| *entry == 0.0);
        if is_empty || self.certificates == Self::CERTIFICATES_MAX {
            return Turn::Done(Ending::Converged);
        }
        self.certificates += 1;
        self.certifying = Some(PENALTY_FACTOR * self.search.curvature() / f64::from(sites.max(1)));
        Turn::Ask
    }

    /// (4.22) on the sums of W_p and U_p, where sum_p U_p = -grad F / penalty.
    fn certify(&mut self, penalty: f64, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let Some(gradient) = self.search.gradient(&self.known) else {
            let text = "the metric is certified before its gradient is known";
            return Err(Failure::new(Code::Internal, text));
        };
        let sum = match closed.take_sum()? {
            message::Answer::Unpsl(Answer::Contribution(sum)) => sum.matrix,
            other => return Err(unexpected(&other, "a contribution")),
        };
        let sites = f64::from(closed.count());
        let mut mean = (gradient * (-1.0 / penalty) + sum) / sites;
        let threshold = self.search.lambda_sparsity() / (penalty * sites);
        shrink_rows(&mut mean.slice_mut(s![..self.features, ..]), threshold);
        let metric = self.metric();
        let moved = norm(&(&mean - metric).view()) / norm(&metric.view());
        if !moved.is_finite() {
            return Err(Failure::new(
                Code::Numbers,
                "the certificate is not a finite number",
            ));
        }
        self.certificate = Some(moved);
        if moved <= CERTIFICATE || count(self.rows.len()) >= self.round_limit {
            return Ok(Turn::Done(Ending::Converged));
        }
        closed.notes.push(format!(
            "A round of consensus ADMM moved the metric by {moved:.1e} of its norm, so the search went on."
        ));
        self.search.demand(STRICTER);
        self.asked = question(&self.search, &self.known, self.settings.form);
        Ok(Turn::Ask)
    }
}

/// What a search asks next.
fn question(search: &Search, known: &Knowledge, form: Form) -> Differentiating {
    Differentiating {
        metrics: Arc::new(vec![search.question().clone()]),
        parts: vec![Part::whole(form)],
        rows: Arc::new(vec![search.rows(known).map(<[usize]>::to_vec)]),
    }
}
