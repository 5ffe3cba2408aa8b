//! What a site, or all together, may say of held-out patients.

use super::message::{Answer, FamilyCounts};
use super::settings::{CompareSettings, Family};
use crate::assessment::{
    ErrorMeasure, EvaluationCounts, Gains, RuleErrors, SUMMED_BINS, score_bins,
};
use crate::checks::{ensure, errors, evaluation, length, unexpected};
use crate::cohort::CohortSpecification;
use crate::cohort::OutcomeKind;
use crate::failure::Failure;
use crate::message;
use crate::stage::preparing;
use privacy::ErrorSums;

/// Nobody, of the shape of an answer.
pub fn nobody(settings: &CompareSettings, kind: &OutcomeKind) -> Vec<FamilyCounts> {
    let classes = kind.classes().len();
    let one = |family: &Family| {
        let neighbours = match family.is_model() {
            true => 0,
            false => settings.neighbours,
        };
        let bins = match family.is_model() {
            true => SUMMED_BINS,
            false => score_bins(neighbours),
        };
        let is_compared = *family != Family::Euclidean;
        let confusion = (classes > 0).then(|| vec![vec![0; classes]; classes]);
        let scores = (classes == 2).then(|| vec![vec![0; bins]; classes]);
        FamilyCounts {
            family: *family,
            measure: ErrorMeasure::of(kind),
            counts: EvaluationCounts {
                loss: (classes > 0).then_some(0.0),
                gains: Gains::blank(is_compared, classes),
                ..EvaluationCounts::new(family.name(), neighbours, confusion, scores)
            },
            errors: (classes == 0).then_some(ErrorSums {
                total: 0,
                error: 0.0,
            }),
        }
    };
    settings.families.iter().map(one).collect()
}

/// Judges an answer.
pub(super) fn answer(
    settings: &CompareSettings,
    kind: &OutcomeKind,
    found: &message::Answer,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Compare(Answer::Judged(families)) = found else {
        return Err(unexpected(
            found,
            "how well held-out patients are predicted",
        ));
    };
    let wanted = nobody(settings, kind);
    length("families", families.len(), wanted.len())?;
    let mut both = families.iter().zip(&wanted);
    both.try_for_each(|(found, wanted)| family(found, wanted, kind, patients))
}

fn family(
    found: &FamilyCounts,
    wanted: &FamilyCounts,
    kind: &OutcomeKind,
    patients: u64,
) -> Result<(), Failure> {
    let same = found.family == wanted.family && found.counts.rule == wanted.counts.rule;
    ensure(same, "another family", "the families in the job's order")?;
    let classes = kind.classes().len();
    ensure(
        classes > 0 || (found.counts.confusion.is_none() && found.counts.scores.is_none()),
        "a table",
        "none without classes",
    )?;
    evaluation(&found.counts, classes, patients)?;
    let own = RuleErrors {
        rule: String::new(),
        neighbours: 0,
        measure: found.measure,
        sums: found.errors,
    };
    errors(&own, wanted.measure, patients)?;
    ensure(
        (found.errors.is_none() || classes == 0)
            && wanted.counts.gains.has_those_of(&found.counts.gains),
        "sums of another outcome, or of another family",
        "those of the job",
    )
}

/// Nothing, in the shape of the largest answers: its own, and those of the methods that it is made of.
pub(super) fn largest(
    settings: &CompareSettings,
    cohort: &CohortSpecification,
) -> Vec<message::Answer> {
    let own = Answer::Judged(nobody(settings, &cohort.outcome.kind));
    let mut all = preparing::largest(settings, cohort);
    if settings.learns_metrics() {
        all.extend(
            settings
                .unpsl
                .largest_derivatives(cohort, u64::from(settings.folds)),
        );
    }
    if settings.fits_regressions() {
        all.extend(settings.regression.largest_sums(cohort));
    }
    all.push(message::Answer::Compare(own));
    all
}
