//! How well it goes with patients who were held out, beside their nearest and no information.

use super::super::CasesError;
use super::super::shown::IntervalEntry;
use protocol::cohort::OutcomeSpecification;
use serde::Serialize;
use similarity::cohort::Outcome;
use similarity::judge::figures::{Figures, gain};
use similarity::judge::paired::Difference;
use similarity::uses::cases::{Interval, wilson};
use similarity::uses::prediction::{Forecast, HeldOut, PredictionError, Rule};

/// A p below which a difference is more than chance.
const CHANCE: f64 = 0.05;

/// How well it goes, for machines and people.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Judged {
    /// Patients who were held out of the fit in turn.
    judged: usize,
    /// Whether the distance has seen their outcomes: then none of them was held out.
    pub(super) seen: bool,
    folds: usize,
    /// k.
    neighbours: usize,
    pub(super) rules: Vec<OneRule>,
    /// By how much the prediction is better than the others; above 0 is better.
    pub(super) gains: Vec<OneGain>,
    /// Of numbers the share of outcomes within their interval of 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) coverage: Option<IntervalEntry>,
    #[serde(skip)]
    pub(super) sentence: String,
}

/// A rule and its figures.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OneRule {
    pub(super) rule: String,
    #[serde(flatten)]
    pub(super) figures: FiguresEntry,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum FiguresEntry {
    Classes {
        right: usize,
        patients: usize,
        accuracy: IntervalEntry,
        balanced_accuracy: IntervalEntry,
        #[serde(skip_serializing_if = "Option::is_none")]
        auc: Option<IntervalEntry>,
        brier: IntervalEntry,
    },
    Numbers {
        patients: usize,
        mean_squared_error: IntervalEntry,
        explained: IntervalEntry,
    },
    Times {
        pairs: u64,
        concordance: IntervalEntry,
    },
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct OneGain {
    pub(super) over: String,
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) p: f64,
}

impl Judged {
    pub(super) fn of(
        held: &HeldOut,
        (folds, neighbours): (usize, usize),
        (outcome, seen): (&OutcomeSpecification, bool),
    ) -> Result<Self, CasesError> {
        let near = format!("the {neighbours} nearest");
        let nothing = match &held.outcome {
            Outcome::Classes { .. } => "majority class",
            Outcome::Numeric(_) => "the mean",
            Outcome::Survival { .. } => "no information",
        };
        let named = [
            ("prediction".to_owned(), &held.by_kernel),
            (near, &held.by_neighbours),
            (nothing.to_owned(), &held.by_nothing),
        ];
        let figures = |rule: &Rule| {
            let beside = &held.by_nothing.predicted;
            let found = Figures::of(&rule.predicted, rule.shares.as_ref(), beside, &held.outcome);
            // Nobody can be judged where no two can be compared.
            found.ok_or(CasesError::Predict(PredictionError::AllAlike))
        };
        let found: Vec<Figures> = named
            .iter()
            .map(|(_, rule)| figures(rule))
            .collect::<Result<_, _>>()?;
        let gains: Vec<Option<Difference>> = named[1..]
            .iter()
            .map(|(_, rule)| gain(&rule.predicted, &held.by_kernel.predicted, &held.outcome))
            .collect();
        let told = named[1..].iter().zip(&gains);
        let told = told.filter_map(|((over, _), gain)| {
            gain.map(|gain| OneGain {
                over: over.clone(),
                value: gain.value,
                low: gain.low,
                high: gain.high,
                p: gain.p,
            })
        });
        Ok(Self {
            judged: held.rows.len(),
            seen,
            folds,
            neighbours,
            gains: told.collect(),
            coverage: coverage(held).map(IntervalEntry::from),
            sentence: sentence(&found, &gains, neighbours, (&outcome.label, on(seen))),
            rules: rules(named.map(|(rule, _)| rule), &found),
        })
    }

    /// How the figures came about.
    pub(super) fn said(&self, judged: usize, patients: usize) -> String {
        let others = self.folds - 1;
        let folds = self.folds;
        let chosen = "width and penalty are chosen without its own part too";
        match judged < patients {
            true => format!(
                "each of {judged} of the {patients} patients, drawn by the seed, is predicted by all but its own of {folds} parts of them; {chosen}"
            ),
            false => format!(
                "every patient is predicted by the other {others} of {folds} parts; {chosen}"
            ),
        }
    }
}

/// Who says the same of all orders nobody: it has no AUC.
fn rules(names: [String; 3], found: &[Figures]) -> Vec<OneRule> {
    let told = names.into_iter().zip(found).map(|(rule, figures)| OneRule {
        rule,
        figures: FiguresEntry::from(figures),
    });
    let mut told: Vec<OneRule> = told.collect();
    if let Some(OneRule {
        figures: FiguresEntry::Classes { auc, .. },
        ..
    }) = told.last_mut()
    {
        *auc = None;
    }
    told
}

/// Outcomes within their intervals.
fn coverage(held: &HeldOut) -> Option<Interval> {
    let (Forecast::Numbers(numbers), Outcome::Numeric(values)) = (&held.forecast, &held.outcome)
    else {
        return None;
    };
    let known = numbers
        .iter()
        .zip(values)
        .filter(|(one, _)| !one.mean.is_nan());
    let within = known
        .clone()
        .filter(|(one, value)| (one.low..=one.high).contains(value))
        .count();
    Some(wilson(within, known.count()))
}

/// Which patients the figures are of.
pub(super) fn on(seen: bool) -> &'static str {
    match seen {
        true => "in sample",
        false => "on held-out patients",
    }
}

/// The answer.
fn sentence(
    found: &[Figures],
    gains: &[Option<Difference>],
    neighbours: usize,
    (label, on): (&str, &str),
) -> String {
    let of_hundred = |share: f64| format!("{:.0}", 100.0 * share);
    let ends = |one: Interval| format!("{} to {}", of_hundred(one.low), of_hundred(one.high));
    let first = found[0].first();
    let [near, nothing] = [&found[1], &found[2]].map(|figures| of_hundred(figures.first().value));
    let start = match &found[0] {
        Figures::Classes { .. } => format!(
            "predicts {label} with accuracy {} % ({}) {on}; the {neighbours} nearest: {near} %; majority class: {nothing} %",
            of_hundred(first.value),
            ends(first)
        ),
        Figures::Numbers { .. } => format!(
            "explains {} % of the variance of {label} {on} ({}); the {neighbours} nearest: {near} %; the mean: {nothing} %",
            of_hundred(first.value),
            ends(first)
        ),
        Figures::Times { .. } => format!(
            "orders patients by {label} with concordance {} % ({}) {on}; the {neighbours} nearest: {near} %; no information: \
             {nothing} %",
            of_hundred(first.value),
            ends(first)
        ),
    };
    let [over_near, over_nothing] = [gains[0], gains[1]];
    let is_sure =
        |gain: Option<Difference>| gain.is_some_and(|gain| gain.value > 0.0 && gain.p < CHANCE);
    let auc = match &found[0] {
        Figures::Classes { auc, .. } => auc.filter(|auc| auc.low > 0.5),
        Figures::Numbers { .. } | Figures::Times { .. } => None,
    };
    let capital = |text: &str| text[..1].to_uppercase() + &text[1..];
    match (is_sure(over_nothing), auc) {
        (true, _) if is_sure(over_near) => format!("{}.", capital(&start)),
        (true, _) => match over_near.is_some_and(|gain| gain.value < 0.0 && gain.p < CHANCE) {
            true => format!("{}: the nearest predict better.", capital(&start)),
            false => format!(
                "{}; compared with the nearest it gains nothing beyond chance.",
                capital(&start)
            ),
        },
        (false, Some(auc)) => format!(
            "Ranks patients, but does not classify them beyond chance: it {start}; AUC {} % ({}).",
            of_hundred(auc.value),
            ends(auc)
        ),
        (false, None) => format!("Does not help beyond chance: it {start}."),
    }
}

impl From<&Figures> for FiguresEntry {
    fn from(figures: &Figures) -> Self {
        match figures {
            Figures::Classes {
                right,
                patients,
                accuracy,
                balanced,
                auc,
                brier,
            } => Self::Classes {
                right: *right,
                patients: *patients,
                accuracy: (*accuracy).into(),
                balanced_accuracy: (*balanced).into(),
                auc: auc.map(IntervalEntry::from),
                brier: (*brier).into(),
            },
            Figures::Numbers {
                patients,
                mean_squared,
                explained,
            } => Self::Numbers {
                patients: *patients,
                mean_squared_error: (*mean_squared).into(),
                explained: (*explained).into(),
            },
            Figures::Times { pairs, concordance } => Self::Times {
                pairs: *pairs,
                concordance: (*concordance).into(),
            },
        }
    }
}
