//! By whose word the values of a source are judged, and whether a job's word agrees with it.
//!
//! What leaves a site is of a cohort that no job can narrow: the site's dictionary (`range`, `levels`,
//! `missing` and `complete` of `[columns.<name>]`) decides which values count, and a job whose own
//! declarations differ is refused before a value is looked at. What the site does not declare, it takes from
//! its data by a rule that no job moves: a level is what at least `cell_min` patients hold, so is a missing
//! code of the job, and there is no range.

use super::misfit::Structure;
use super::value::Mismatch;
use crate::config::{ColumnMapping, DeclaredRange};
use protocol::cohort::{Feature, FeatureKind, Impute, Transform, age, is_plausible};
use protocol::limits::AGE_MAX;
use std::collections::BTreeSet;

/// By whose word values are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terms {
    /// The job's: nothing leaves.
    Job,
    /// The site's; of what it does not declare, what at least `cell_min` patients share.
    Site { cell_min: u64 },
}

impl Terms {
    /// What fewer patients share than these counts for nothing.
    pub(super) fn cell_min(self) -> u64 {
        match self {
            Self::Job => 1,
            Self::Site { cell_min } => cell_min,
        }
    }
}

/// Lengths that differ by rounding of a conversion are equal.
const ROUNDING: f64 = 1e-9;

/// What a job takes for granted of a column against what the site declares of it.
pub(super) struct Agreement<'a> {
    pub(super) feature: &'a Feature,
    pub(super) mapping: &'a ColumnMapping,
    /// Whether the job counts the values on a grid.
    pub(super) gridded: bool,
}

impl Agreement<'_> {
    /// Every difference. Only declarations are compared.
    pub(super) fn mismatches(&self, conversion: (f64, f64)) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        match &self.feature.kind {
            FeatureKind::Numeric {
                range, transform, ..
            } => {
                let needed = self.gridded || *transform == Transform::Log;
                mismatches.extend(self.numbers(*range, *transform, needed, conversion));
            }
            FeatureKind::Age { at } => mismatches.extend(self.ages(at)),
            FeatureKind::Ordinal { levels } if self.gridded => {
                mismatches.extend(self.order(levels));
            }
            FeatureKind::Categorical { .. }
            | FeatureKind::Ordinal { .. }
            | FeatureKind::Binary { .. } => {}
        }
        if self.feature.impute == Impute::Refuse && !self.mapping.complete {
            mismatches.push(Mismatch::of(
                Structure::Complete,
                "a job that refuses missing values",
                "complete = true in site.toml, where the site has none",
            ));
        }
        mismatches
    }

    fn numbers(
        &self,
        asked: Option<(f64, f64)>,
        transform: Transform,
        needed: bool,
        (factor, offset): (f64, f64),
    ) -> Option<Mismatch> {
        let (low, high) = match &self.mapping.range {
            Some(DeclaredRange::Numbers { low, high }) => (*low, *high),
            Some(DeclaredRange::Days { .. }) => {
                let wanted = "a range of numbers, as the job reads the column";
                return Some(Mismatch::of(
                    Structure::Type,
                    "a range of days in site.toml",
                    wanted,
                ));
            }
            None if needed => return Some(undeclared(asked)),
            None => return None,
        };
        let ends = [low * factor + offset, high * factor + offset];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        if transform == Transform::Log && low < 0.0 {
            let found = format!("a range from {low} in site.toml");
            let wanted = "0 or more, for the job takes the logarithm";
            return Some(Mismatch::of(Structure::Range, &found, wanted));
        }
        let (least, most) = asked?;
        let slack = ROUNDING * (most - least);
        (low < least - slack || high > most + slack).then(|| {
            let unit = self.feature.kind.unit();
            let found = format!("the job's range from {least} to {most} {unit}");
            let wanted = format!("one that contains the site's own, {low} to {high} {unit}");
            let (found, wanted) = (found.trim_end(), wanted.trim_end());
            Mismatch::of(Structure::Range, found, wanted)
        })
    }

    /// Neighbouring levels are joined before they are counted for the coordinator. In two orders, a level that
    /// few patients hold would be joined to two others, and their counts would tell its own.
    fn order(&self, asked: &[String]) -> Option<Mismatch> {
        let declared: BTreeSet<&String> = self.mapping.levels.as_ref()?.values().collect();
        let asked: Vec<&String> = asked.iter().filter(|one| declared.contains(one)).collect();
        let own: Vec<&String> = self.mapping.order.iter().collect();
        (declared.len() > 2 && asked != own).then(|| {
            let found = format!("the job's order {asked:?}");
            let wanted = match own.is_empty() {
                true => "order = [lowest, ..., highest] in site.toml, and the same in the job"
                    .to_owned(),
                false => format!("the site's own, {own:?}"),
            };
            Mismatch::of(Structure::Order, &found, &wanted)
        })
    }

    fn ages(&self, at: &str) -> Option<Mismatch> {
        let (first, last) = match &self.mapping.range {
            Some(DeclaredRange::Days { first, last }) => (*first, *last),
            Some(DeclaredRange::Numbers { .. }) => {
                let wanted = "a range of days, as the job reads the column";
                let found = "a range of numbers in site.toml";
                return Some(Mismatch::of(Structure::Type, found, wanted));
            }
            None if self.gridded => return Some(undeclared(None)),
            None => return None,
        };
        let at = super::field::date_of_text(at.as_bytes(), "YYYY-MM-DD")?;
        let plausible = |day| is_plausible(age(at, day));
        (!plausible(first) || !plausible(last)).then(|| {
            let found = format!("ages on {at}");
            let wanted =
                format!("ages from 0 to {AGE_MAX} of a patient born from {first} to {last}, as site.toml has it");
            Mismatch::of(Structure::Range, &found, &wanted)
        })
    }
}

fn undeclared(asked: Option<(f64, f64)>) -> Mismatch {
    let within = asked.map(|(least, most)| format!(" within the job's, {least} to {most}"));
    let wanted = format!(
        "one{}, because values are counted on a grid or their logarithm is taken",
        within.unwrap_or_default()
    );
    Mismatch::of(Structure::Undeclared, "no range in site.toml", &wanted)
}
