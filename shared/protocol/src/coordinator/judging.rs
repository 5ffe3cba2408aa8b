//! Whether an answer is one to the question that was asked, and one that patients can give. What is not is never
//! stored: the site is suspended, and the run goes on where enough are left.
//!
//! A judgement sees shapes, counts and sums; its sentence names no number of a site.

use super::{Record, ReplayError, Run, Stage, Work, failure};
use crate::job::{Job, OutcomeKind};
use crate::limits::{COUNT_MAX, MAGNITUDE_MAX};
use crate::message::{Answer, ColumnHistogram, Description, Failure, Problem, Refusal};
use privacy::Disclosure;
use similarity::quantile::Grid;

/// Rounding that a sum may be off by, relative.
pub(super) const ROUNDING: f64 = 1e-6;

impl Run {
    /// Judges the answer of one site to the open exchange.
    pub(super) fn judge(&self, site: usize, answer: &Answer) -> Result<(), Failure> {
        let patients = self.sites[site].patients;
        match (&self.work, answer) {
            // What a site says before it has said who its patients are ends the run, all at once.
            (Work::Agreeing, Answer::Unfit(_) | Answer::Refused(_)) => Ok(()),
            (Work::Agreeing, Answer::Failed(failure)) => code(failure),
            (Work::Agreeing, Answer::Described(found)) => description(&self.job, found),
            (Work::Agreeing, other) => Err(unexpected(other, "a description")),
            (_, Answer::Unfit(problems)) => Err(failure(
                "KDR-COHORT",
                problems.first().map_or_else(String::new, misfit),
            )),
            (_, Answer::Refused(found)) => Err(failure("KDR-POLICY", refusal(found))),
            (_, Answer::Failed(found)) => code(found).and_then(|()| Err(found.clone())),
            (Work::Unpsl(work), answer) => work.judge(&self.job, site, patients, answer),
            (Work::Forest(work), answer) => work.judge(&self.job, site, patients, answer),
        }
    }

    /// Checks that a stored record is one that this run closes next.
    pub(super) fn check(&self, record: &Record) -> Result<(), ReplayError> {
        let misfit = |reason: String| ReplayError {
            exchange: record.exchange,
            reason,
        };
        let number = match &self.stage {
            Stage::Joining { .. } => 0,
            Stage::Asking(exchange) => exchange.number,
            Stage::Ended(_) => return Err(misfit("the run had ended".to_owned())),
        };
        if record.exchange != number {
            return Err(misfit(format!("wanted exchange {number}")));
        }
        let sites = self.sites.len();
        let places = [
            record.answers.len(),
            record.faults.len(),
            record.members.len(),
        ];
        if places.iter().any(|places| *places != sites) {
            return Err(misfit(format!("wanted places for {sites} sites")));
        }
        for (site, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            self.judge(site, answer)
                .map_err(|fault| misfit(format!("{}: {}", self.sites[site].name, fault.text)))?;
        }
        Ok(())
    }
}

pub(super) fn misfit(problem: &Problem) -> String {
    let place = if problem.column.is_empty() {
        String::new()
    } else {
        format!("column {}: ", problem.column)
    };
    format!("{place}found {}, wanted {}", problem.found, problem.wanted)
}

pub(super) fn refusal(refusal: &Refusal) -> String {
    format!("refused by {}: {}", refusal.rule, refusal.text)
}

/// An answer to another question.
pub(super) fn unexpected(found: &Answer, wanted: &str) -> Failure {
    fault(found.kind(), wanted)
}

pub(super) fn fault(found: &str, wanted: &str) -> Failure {
    failure("KDR-PROTOCOL", format!("found {found}, wanted {wanted}"))
}

/// A list of `found` items where there should be `wanted`.
pub(super) fn length(what: &str, found: usize, wanted: usize) -> Result<(), Failure> {
    ensure(
        found == wanted,
        &format!("{found} {what}"),
        &format!("{wanted} {what}"),
    )
}

pub(super) fn ensure(holds: bool, found: &str, wanted: &str) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(fault(found, wanted))
    }
}

/// A failure's code decides a program's exit code, and stands in logs.
fn code(failure: &Failure) -> Result<(), Failure> {
    let letter = |letter: char| letter.is_ascii_uppercase() || letter == '-';
    let named = failure.code.strip_prefix("KDR-");
    let is_code = named.is_some_and(|name| !name.is_empty() && name.chars().all(letter));
    ensure(is_code, "a failure without a code", "KDR- and a word")
}

fn description(job: &Job, found: &Description) -> Result<(), Failure> {
    let Description { patients, classes } = found;
    count(*patients)?;
    ensure(*patients > 0, "no patients", "some")?;
    let wanted = match &job.outcome.kind {
        OutcomeKind::Survival { .. } => 2,
        kind => kind.classes().len(),
    };
    if !classes.is_empty() {
        length("classes", classes.len(), wanted)?;
    }
    within(classes, *patients)
}

/// Counts of parts of the patients: together they are no more than all.
pub(super) fn within<'c>(
    counts: impl IntoIterator<Item = &'c u64>,
    patients: u64,
) -> Result<(), Failure> {
    let sum = counts
        .into_iter()
        .try_fold(0_u64, |sum, count| sum.checked_add(*count));
    ensure(
        sum.is_some_and(|sum| sum <= patients),
        "counts of more patients than the site has",
        "counts of its patients",
    )
}

/// A count of patients or of pairs.
pub(super) fn count(found: u64) -> Result<(), Failure> {
    let wanted = format!("at most {COUNT_MAX} patients or pairs");
    ensure(found <= COUNT_MAX, "a count of too many patients", &wanted)
}

/// Pairs of patients at most.
pub(super) fn pairs_of(patients: u64) -> u64 {
    patients.saturating_mul(patients)
}

/// A table of `rows` x `columns` counts, together at most `most`.
pub(super) fn table(
    table: &[Vec<u64>],
    (rows, columns): (usize, usize),
    most: u64,
) -> Result<(), Failure> {
    let fits = table.len() == rows && table.iter().all(|row| row.len() == columns);
    let wanted = format!("{rows} x {columns}");
    ensure(fits, "a table of another shape", &wanted)?;
    within(table.iter().flatten(), most)
}

/// Numbers with which the coordinator can compute.
pub(super) fn numbers<'n>(numbers: impl IntoIterator<Item = &'n f64>) -> Result<(), Failure> {
    // Without a branch for each number. NaN is within no bounds.
    let usable = numbers
        .into_iter()
        .fold(true, |all, number| all & (number.abs() <= MAGNITUDE_MAX));
    let wanted = format!("numbers of at most {MAGNITUDE_MAX:e}");
    ensure(usable, "a number beyond all bounds", &wanted)
}

/// A histogram on `grid` of some of the patients: groups that tile it, or none at all.
pub(super) fn histogram(
    histogram: &ColumnHistogram,
    grid: Grid,
    patients: u64,
) -> Result<(), Failure> {
    let ColumnHistogram { ends, counts } = histogram;
    if ends.is_empty() && counts.is_empty() {
        return Ok(());
    }
    let tiles = ends.len() == counts.len()
        && ends[0] > 0
        && ends.is_sorted_by(|one, next| one < next)
        && ends.last() == Some(&grid.cells());
    ensure(tiles, "groups of a histogram", "groups that tile the grid")?;
    let filled = counts.iter().all(|count| *count > 0);
    ensure(
        filled,
        "an empty group of a histogram",
        "groups of patients",
    )?;
    within(counts, patients)
}
