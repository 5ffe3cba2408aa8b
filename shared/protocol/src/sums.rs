//! What of an answer adds up over the sites, number by number, and what the sum over them comes to.
//!
//! A stage says by a *blank* what it wants summed: an answer of the right shape with nothing in it. Sites bring theirs into
//! that shape before it is covered; the coordinator, and every site that checks it, reads the sum of the words back into
//! it. Of one site alone, whose answers are not covered, the same words are made, so that the bits of a sum are the same.

use crate::assessment::{Assessment, EvaluationCounts, FeatureImportance, Gains, RuleErrors};
use crate::failure::{Code, Failure};
use crate::message::{
    Answer, ColumnHistogram, ColumnMoments, Description, SecondMoments, SiteMoments,
};
use ndarray::Array2;
use privacy::sums::{Number, NumberError, Summand, Words};

type Visit<'v> = dyn FnMut(Number<'_>) + 'v;

/// The sum of the answers, in the shape of `blank`; what is not covered is of one site alone, which has `patients`.
///
/// # Errors
/// A failure by [`Code::Protocol`] where they answered something else.
pub(crate) fn sum<'a>(
    answers: impl Iterator<Item = &'a Answer>,
    blank: Answer,
    patients: u64,
) -> Result<Answer, Failure> {
    let mut sum: Option<Words> = None;
    for answer in answers {
        let own = match answer {
            Answer::Covered(covered) => covered.words.clone(),
            answer => {
                let mut own = answer.clone().in_shape_of(&blank, patients);
                Words::of(&mut own).map_err(fault)?
            }
        };
        match &mut sum {
            None => sum = Some(own),
            Some(sum) => sum.add(&own).map_err(fault)?,
        }
    }
    let sum = sum.ok_or_else(|| Failure::new(Code::Protocol, "nothing was summed"))?;
    read(&sum, blank)
}

/// The words of a sum in the shape of `blank`.
///
/// # Errors
/// As [`sum`].
pub(crate) fn read(sum: &Words, mut blank: Answer) -> Result<Answer, Failure> {
    sum.read_into(&mut blank).map_err(fault)?;
    Ok(match blank {
        Answer::Quantiles(cells) => {
            let groups = cells.into_iter().map(ColumnHistogram::by_groups);
            Answer::Quantiles(groups.collect())
        }
        sum => sum,
    })
}

fn fault(error: NumberError) -> Failure {
    Failure::new(Code::Protocol, format!("a sum: {error}"))
}

impl Answer {
    /// The answer of a site with `patients` in the shape of `blank`, so that it adds up with those of others: tables of a rule that
    /// judged nobody as zeros, means as sums over patients.
    #[must_use]
    pub fn in_shape_of(self, blank: &Self, patients: u64) -> Self {
        match (self, blank) {
            (Self::Assessed(own), Self::Assessed(wanted)) => {
                Self::Assessed(own.in_shape_of(wanted, patients))
            }
            (own, _) => own,
        }
    }
}

impl Summand for Description {
    fn numbers(&mut self, visit: &mut Visit<'_>) {
        visit(Number::Count(&mut self.patients));
        counts(&mut self.classes, visit);
        visit(Number::Count(&mut self.learns));
        visit(Number::Count(&mut self.validates));
        visit(Number::Count(&mut self.judges));
    }
}

impl Summand for ColumnHistogram {
    fn numbers(&mut self, visit: &mut Visit<'_>) {
        counts(&mut self.counts, visit);
    }
}

/// What adds up of second moments.
pub(crate) fn second_moments(moments: &mut SecondMoments, visit: &mut Visit<'_>) {
    visit(Number::Count(&mut moments.patients));
    moments
        .sums
        .iter_mut()
        .for_each(|sum| visit(Number::Real(sum)));
    lower_triangle(&mut moments.products, visit);
}

impl Summand for SiteMoments {
    fn numbers(&mut self, visit: &mut Visit<'_>) {
        let Self { columns, summary } = self;
        visit(Number::Count(&mut summary.patients));
        visit(Number::Count(&mut summary.pairs.similar));
        visit(Number::Count(&mut summary.pairs.dissimilar));
        for column in columns {
            match column {
                ColumnMoments::Numeric {
                    count,
                    sum,
                    sum_squares,
                    missing,
                } => {
                    visit(Number::Count(count));
                    visit(Number::Count(missing));
                    visit(Number::Measure(sum));
                    visit(Number::Measure(sum_squares));
                }
                ColumnMoments::Categorical {
                    counts: levels,
                    missing,
                } => {
                    counts(levels, visit);
                    visit(Number::Count(missing));
                }
            }
        }
    }
}

impl Summand for Assessment {
    fn numbers(&mut self, visit: &mut Visit<'_>) {
        let Self {
            objective,
            evaluation,
            validation,
            errors,
            importance,
        } = self;
        objective
            .iter_mut()
            .for_each(|one| visit(Number::Real(one)));
        for table in evaluation.iter_mut().chain(validation) {
            table.numbers(visit);
        }
        for sums in errors.iter_mut().filter_map(|errors| errors.sums.as_mut()) {
            visit(Number::Count(&mut sums.total));
            visit(Number::Measure(&mut sums.error));
        }
        for one in importance {
            visit(Number::Measure(&mut one.mean));
            visit(Number::Measure(&mut one.standard_error));
        }
    }
}

impl SiteMoments {
    /// Nothing, of the kinds of `columns`.
    pub(crate) fn blank(columns: Vec<ColumnMoments>) -> Self {
        Self {
            columns,
            summary: crate::message::Summary {
                patients: 0,
                pairs: crate::message::PairCounts {
                    similar: 0,
                    dissimilar: 0,
                },
            },
        }
    }
}

impl ColumnHistogram {
    /// A group for each cell of a grid, all empty.
    pub(crate) fn blank(cells: u32) -> Self {
        Self {
            ends: (1..=cells).collect(),
            counts: vec![0; cells as usize],
        }
    }

    /// The same without its empty groups.
    pub(crate) fn by_groups(self) -> Self {
        let cells = self.ends.last().copied().unwrap_or(0);
        let filled = self
            .ends
            .iter()
            .zip(&self.counts)
            .filter(|(_, count)| **count > 0);
        let (mut ends, counts): (Vec<u32>, Vec<u64>) =
            filled.map(|(end, count)| (*end, *count)).unzip();
        if let Some(last) = ends.last_mut() {
            *last = cells;
        }
        Self { ends, counts }
    }
}

impl std::fmt::Debug for ColumnHistogram {
    /// Its size only: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ColumnHistogram")
            .field("groups", &self.counts.len())
            .finish_non_exhaustive()
    }
}

impl Assessment {
    fn in_shape_of(mut self, blank: &Self, patients: u64) -> Self {
        let evaluation = in_shape_of(&mut self.evaluation, &blank.evaluation);
        let validation = in_shape_of(&mut self.validation, &blank.validation);
        let errors = |wanted: &RuleErrors| {
            let own = self.errors.iter().find(|own| own.rule == wanted.rule);
            RuleErrors {
                sums: own.and_then(|own| own.sums).or(wanted.sums),
                ..wanted.clone()
            }
        };
        let errors = blank.errors.iter().map(errors).collect();
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let patients = patients as f64;
        let weighted = |own: &FeatureImportance| FeatureImportance {
            mean: own.mean * patients,
            standard_error: (own.standard_error * patients).powi(2),
        };
        let importance = match self.importance.len() == blank.importance.len() {
            true => self.importance.iter().map(weighted).collect(),
            false => blank.importance.clone(),
        };
        Self {
            objective: blank.objective.and(self.objective.or(Some(0.0))),
            evaluation,
            validation,
            errors,
            importance,
        }
    }

    /// Sums over all sites as means over their `patients`, where they are released as means.
    pub(crate) fn of_sum(mut self, patients: u64) -> Self {
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let patients = patients.max(1) as f64;
        for one in &mut self.importance {
            one.mean /= patients;
            one.standard_error = one.standard_error.max(0.0).sqrt() / patients;
        }
        self
    }
}

/// The tables of the wanted rules, as zeros where there are none of that shape.
fn in_shape_of(own: &mut [EvaluationCounts], wanted: &[EvaluationCounts]) -> Vec<EvaluationCounts> {
    let told = |wanted: &EvaluationCounts| {
        let is_same = |own: &&mut EvaluationCounts| own.rule == wanted.rule;
        let mut told = wanted.clone();
        if let Some(own) = own.iter_mut().find(is_same) {
            told.loss = wanted.loss.and(own.loss.or(wanted.loss));
            told.gains = own.gains.in_shape_of(wanted.gains);
            let tables = [
                (&mut told.confusion, own.confusion.take()),
                (&mut told.scores, own.scores.take()),
            ];
            for (told, own) in tables {
                if let (Some(told), Some(own)) = (told.as_mut(), own)
                    && is_alike(told, &own)
                {
                    *told = own;
                }
            }
        }
        told
    };
    wanted.iter().map(told).collect()
}

impl Gains {
    /// Those that are wanted; of nobody where there are none.
    fn in_shape_of(self, wanted: Self) -> Self {
        let of = |own: Option<[f64; 5]>, wanted: Option<[f64; 5]>| wanted.and(own.or(wanted));
        Self {
            areas: of(self.areas, wanted.areas),
            errors: of(self.errors, wanted.errors),
        }
    }
}

fn is_alike(one: &[Vec<u64>], other: &[Vec<u64>]) -> bool {
    let mut rows = one.iter().zip(other);
    one.len() == other.len() && rows.all(|(one, other)| one.len() == other.len())
}

fn counts(counts: &mut [u64], visit: &mut Visit<'_>) {
    counts
        .iter_mut()
        .for_each(|count| visit(Number::Count(count)));
}

/// The entries of a symmetric matrix on and below its diagonal; those above follow.
pub(crate) fn lower_triangle(matrix: &mut Array2<f64>, visit: &mut Visit<'_>) {
    for row in 0..matrix.nrows() {
        for column in 0..=row.min(matrix.ncols().saturating_sub(1)) {
            visit(Number::Real(&mut matrix[[row, column]]));
            matrix[[column, row]] = matrix[[row, column]];
        }
    }
}
