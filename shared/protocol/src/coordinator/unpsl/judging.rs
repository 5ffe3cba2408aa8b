//! What a site may answer in a run of UnPSL.

use super::{Step, UnpslWork};
use crate::coordinator::judging::{
    ROUNDING, count, ensure, fault, histogram, length, numbers, pairs_of, table, unexpected, within,
};
use crate::job::{FeatureKind, Job};
use crate::limits::AGE_MAX;
use crate::message::{
    Answer, ColumnMoments, EvaluationCounts, Failure, Finished, PairCounts, SecondMoments, Summary,
};
use crate::scores::PAIRS_RULE;
use similarity::unpsl::{CorrelationScope, Pairs};

impl UnpslWork {
    /// Judges the answer of one site, which has `patients`, to the open exchange.
    pub(in crate::coordinator) fn judge(
        &self,
        job: &Job,
        site: usize,
        patients: u64,
        answer: &Answer,
    ) -> Result<(), Failure> {
        match (self.step, answer) {
            (Step::Moments, Answer::Moments { columns, summary }) => {
                self.judge_summary(summary, patients)?;
                length("features", columns.len(), job.features.len())?;
                let mut columns = job.features.iter().zip(columns);
                columns.try_for_each(|(feature, found)| moments(&feature.kind, found, patients))
            }
            (Step::Quantiles, Answer::Quantiles(found)) => {
                length("histograms", found.len(), self.gridded.len())?;
                let mut columns = self.gridded.iter().zip(found);
                columns.try_for_each(|(column, found)| histogram(found, column.grid, patients))
            }
            (Step::Prepare, Answer::Prepared { second_moments }) => {
                self.judge_second_moments(second_moments.as_ref(), patients)
            }
            (Step::Correlate, Answer::Correlated) => Ok(()),
            (Step::Rounds, Answer::Contribution(own)) => match &self.fit {
                Some(fit) => fit.judge(site, own),
                None => Ok(()),
            },
            (Step::Validate, Answer::Validated(counts)) => {
                let wanted = self
                    .choosing
                    .as_ref()
                    .map_or(0, |choice| choice.neighbours());
                length("validation counts", counts.len(), wanted)?;
                let mut told = counts.iter().flatten();
                told.try_for_each(|found| within([&found.right, &found.wrong], patients))
            }
            (Step::Finish, Answer::Finished(found)) => finished(job, found, patients),
            (Step::Moments, other) => Err(unexpected(other, "moments")),
            (Step::Quantiles, other) => Err(unexpected(other, "quantiles")),
            (Step::Prepare, other) => Err(unexpected(other, "to hear that the site is prepared")),
            (Step::Correlate, other) => Err(unexpected(other, "to hear that it has correlated")),
            (Step::Rounds, other) => Err(unexpected(other, "a contribution")),
            (Step::Validate, other) => Err(unexpected(other, "validation counts")),
            (Step::Finish, other) => Err(unexpected(other, "the last word on the model")),
        }
    }

    fn judge_summary(&self, summary: &Summary, patients: u64) -> Result<(), Failure> {
        let Summary {
            patients: told,
            pairs: PairCounts {
                similar,
                dissimilar,
            },
        } = *summary;
        ensure(
            told == patients,
            "another number of patients than before",
            "the patients that the site described",
        )?;
        count(similar)?;
        count(dissimilar)?;
        let most = match self.settings.objective.pairs {
            Pairs::All => patients.saturating_mul(patients - patients.min(1)) / 2,
            Pairs::PerPatient(partners) => patients.saturating_mul(partners as u64),
        };
        ensure(
            similar + dissimilar <= most,
            "more pairs than its patients make",
            "pairs of its patients",
        )
    }

    fn judge_second_moments(
        &self,
        found: Option<&SecondMoments>,
        patients: u64,
    ) -> Result<(), Failure> {
        let asked = self.settings.objective.correlation == CorrelationScope::Pooled;
        let Some(found) = found.filter(|_| asked) else {
            let is_asked = |asked| {
                if asked {
                    "second moments"
                } else {
                    "no second moments"
                }
            };
            return ensure(found.is_some() == asked, is_asked(!asked), is_asked(asked));
        };
        let wanted = self
            .prepared
            .as_ref()
            .map_or(0, |known| known.standardisation.rows().len());
        length("sums of features", found.sums.len(), wanted)?;
        length("rows of second moments", found.products.nrows(), wanted)?;
        length("columns of second moments", found.products.ncols(), wanted)?;
        ensure(
            found.patients == patients,
            "second moments of another number of patients",
            "those of the patients that the site described",
        )?;
        numbers(&found.sums)?;
        numbers(&found.products)?;
        // Cauchy and Schwarz: sums of squares bound all else.
        #[allow(clippy::cast_precision_loss)] // at most 2^40
        let count = patients as f64;
        let squares = found.products.diag();
        let within =
            |product: f64, bound: f64| product * product <= bound * (1.0 + ROUNDING) + ROUNDING;
        let sums = found.sums.iter().zip(&squares);
        let products = found.products.indexed_iter();
        let holds = squares.iter().all(|square| *square >= 0.0)
            && sums
                .clone()
                .all(|(sum, square)| within(*sum, count * square))
            && products
                .map(|((row, column), product)| within(*product, squares[row] * squares[column]))
                .fold(true, |all, one| all & one);
        ensure(
            holds,
            "second moments that no patients have",
            "sums over its patients",
        )
    }
}

/// Moments of one feature: counts of all patients, and sums that such values can have.
fn moments(kind: &FeatureKind, found: &ColumnMoments, patients: u64) -> Result<(), Failure> {
    match (kind, found) {
        (FeatureKind::Categorical { levels }, ColumnMoments::Categorical { counts, missing }) => {
            length("levels", counts.len(), levels.len())?;
            whole(counts.iter().chain([missing]), patients)
        }
        (
            FeatureKind::Numeric { .. }
            | FeatureKind::Ordinal { .. }
            | FeatureKind::Binary { .. }
            | FeatureKind::Age { .. },
            ColumnMoments::Numeric {
                count,
                sum,
                sum_squares,
                missing,
            },
        ) => {
            whole([count, missing], patients)?;
            numbers([sum, sum_squares])?;
            let largest = match kind {
                FeatureKind::Ordinal { levels } => Some(levels.len().saturating_sub(1) as f64),
                FeatureKind::Binary { .. } => Some(1.0),
                FeatureKind::Age { .. } => Some(AGE_MAX),
                FeatureKind::Numeric { .. } | FeatureKind::Categorical { .. } => None,
            };
            #[allow(clippy::cast_precision_loss)] // at most 2^40
            let count = *count as f64;
            let slack = 1.0 + ROUNDING;
            // Cauchy and Schwarz; and codes and ages lie between 0 and their largest.
            let is_possible = *sum_squares >= 0.0
                && sum * sum <= count * sum_squares * slack + ROUNDING
                && largest.is_none_or(|largest| {
                    (-ROUNDING..=count * largest * slack + ROUNDING).contains(sum)
                        && *sum_squares <= count * largest * largest * slack + ROUNDING
                });
            ensure(
                is_possible,
                "a sum that no patients have",
                "sums over its patients",
            )
        }
        (_, ColumnMoments::Numeric { .. } | ColumnMoments::Categorical { .. }) => Err(fault(
            "moments of another kind of feature",
            "those of the job's",
        )),
    }
}

/// Counts that add up to the patients.
fn whole<'c>(
    counts: impl IntoIterator<Item = &'c u64> + Clone,
    patients: u64,
) -> Result<(), Failure> {
    within(counts.clone(), patients)?;
    ensure(
        counts.into_iter().sum::<u64>() == patients,
        "counts of fewer patients than the site has",
        "counts that add up to them",
    )
}

fn finished(job: &Job, found: &Finished, patients: u64) -> Result<(), Failure> {
    numbers([&found.objective])?;
    ensure(
        found.objective >= -ROUNDING,
        "an objective below 0",
        "a sum of losses",
    )?;
    let classes = job.outcome.kind.classes().len();
    for EvaluationCounts {
        rule, confusion, ..
    } in &found.evaluation
    {
        let (shape, most) = match rule.as_str() {
            PAIRS_RULE => ((2, 2), pairs_of(patients)),
            "distance" | "inner_product" => ((classes, classes), patients),
            _ => {
                return Err(fault(
                    "an evaluation by an unknown rule",
                    "a rule of neighbours or pairs",
                ));
            }
        };
        if let Some(found) = confusion {
            table(found, shape, most)?;
            found.iter().flatten().try_for_each(|cell| count(*cell))?;
        }
    }
    Ok(())
}
