//! What a site tells of the card of a study: counts of its patients, and sums of their numbers, all of it for a sum over sites.

mod at_site;
pub(crate) mod explain;

// By this name the list of methods knows it.
pub(super) use self::Tabulator as Own;
use crate::method::{events_on, on_grid};
use crate::run::stop::Stop;
use crate::source::{Block, Enrolled, KnownOutcome};
use ndarray::Array1;
use privacy::sums::Words;
use protocol::cohort::{Feature, FeatureKind, GriddedColumn, OutcomeKind};
use protocol::failure::Code;
use protocol::message::card::{self as message, Counts, FeatureCounts, GroupCounts, Request, Sums};
use protocol::message::{Answer, ColumnHistogram};
use protocol::method::card::settings::{CardSettings, counted};
use rayon::prelude::*;
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::{Column, MISSING_LEVEL, Outcome, Values, take_logarithms};

/// The patients of a study.
pub(super) struct Tabulator {
    settings: CardSettings,
    enrolled: Enrolled,
}

/// Some of them, and the groups that they are in.
struct Tabulated<'t> {
    settings: &'t CardSettings,
    block: Block,
    /// The rows of the patients of each group who are in a sum.
    groups: Vec<Vec<usize>>,
    /// The part of each patient.
    parts: Vec<usize>,
    /// The pattern of each patient: who has which outcome.
    patterns: Vec<u32>,
    /// Whether each is in a sum.
    is_kept: Vec<bool>,
}

/// A job whose study nobody has read.
fn without_study() -> Stop {
    Stop::failed(Code::Cohort, "the patients of the study were not read")
}

impl Tabulator {
    pub(super) fn new(settings: CardSettings, enrolled: Enrolled) -> Self {
        Self { settings, enrolled }
    }

    pub(super) fn answer(&self, request: &Request) -> Result<Answer, Stop> {
        let features = self.settings.features.len().max(1);
        match request {
            Request::Histograms {
                outcome,
                columns,
                left_out,
            } => {
                let outcome = *outcome as usize;
                let grids = self.settings.grids.get(outcome);
                let grids = grids.ok_or_else(Stop::other_method)?.chosen(columns);
                let is_wanted =
                    |place| (grids.columns.iter()).any(|one: &GriddedColumn| one.column == place);
                self.added(&is_wanted, left_out, &|block| {
                    Ok(Answer::Quantiles(block.histograms(outcome, columns)?))
                })
            }
            Request::Part => self.added(&|_| false, &[], &|block| {
                Ok(Answer::Card(message::Answer::Parts(block.by_pattern())))
            }),
            Request::Compare(left_out) => match &self.enrolled.lots {
                Some(lots) => {
                    let lots = lots.without(left_out);
                    Ok(Answer::Card(message::Answer::Lots(lots)))
                }
                None => self.added(&|_| false, left_out, &|block| {
                    Ok(Answer::Card(message::Answer::Lots(block.lots())))
                }),
            },
            Request::Count(left_out) => self.added(&|_| true, left_out, &|block| {
                Ok(Answer::Card(message::Answer::Counts(block.counts()?)))
            }),
            Request::Sum { places, left_out } => {
                let is_wanted =
                    |place| (places.iter()).any(|one| *one as usize % features == place);
                self.added(&is_wanted, left_out, &|block| {
                    Ok(Answer::Card(message::Answer::Sums(block.sums(places)?)))
                })
            }
        }
    }

    /// What all blocks of patients come to without those who are excluded, of the features that are wanted. They add up as the answers
    /// of sites do, to the same bits in whatever order they come.
    fn added(
        &self,
        is_wanted: &dyn Fn(usize) -> bool,
        left_out: &[u32],
        of_block: &dyn Fn(&Tabulated<'_>) -> Result<Answer, Stop>,
    ) -> Result<Answer, Stop> {
        let no_sum = |error| Stop::numeric(Code::Numbers, error);
        let mut all: Option<(Answer, Words)> = None;
        let read = self.enrolled.in_blocks(is_wanted, &mut |block| {
            let mut own = of_block(&Tabulated::new(&self.settings, block, left_out))?;
            let words = Words::of(&mut own).map_err(no_sum)?;
            match &mut all {
                None => all = Some((own, words)),
                Some((_, sum)) => sum.add(&words).map_err(no_sum)?,
            }
            Ok(())
        });
        match read {
            Ok(taken) => taken?,
            Err(problems) => {
                tracing::error!(%problems, "the patients of the study cannot be read");
                return Err(without_study());
            }
        }
        let (mut answer, words) = all.ok_or_else(without_study)?;
        words.read_into(&mut answer).map_err(no_sum)?;
        Ok(answer)
    }
}

impl<'t> Tabulated<'t> {
    /// Without those whose pattern is excluded.
    fn new(settings: &'t CardSettings, block: Block, left_out: &[u32]) -> Self {
        let (patients, outcomes) = (block.patients, block.outcomes.len());
        let of_outcomes: Vec<Vec<usize>> = (block.outcomes.iter().zip(&settings.outcomes))
            .map(|(known, own)| groups_of(known, &own.specification.kind))
            .collect();
        let mut states = vec![0; patients * outcomes];
        for (place, (known, own)) in block.outcomes.iter().zip(&of_outcomes).enumerate() {
            for (row, group) in known.rows.iter().zip(own) {
                states[row * outcomes + place] = group + 1;
            }
        }
        let parts = states.chunks(outcomes.max(1));
        let parts: Vec<usize> = parts.map(|states| settings.part(states)).collect();
        let patterns: Vec<u32> = parts.iter().map(|part| settings.pattern(*part)).collect();
        let is_kept = |pattern| !left_out.contains(pattern);
        let is_kept: Vec<bool> = patterns.iter().map(is_kept).collect();
        let mut groups = vec![Vec::new(); settings.places().len()];
        groups[0] = (0..patients).filter(|row| is_kept[*row]).collect();
        for (place, (known, own)) in block.outcomes.iter().zip(&of_outcomes).enumerate() {
            let first = settings.groups_of(place).start;
            let kept = known.rows.iter().zip(own);
            for (row, group) in kept.filter(|(row, _)| is_kept[**row]) {
                groups[first + group].push(*row);
            }
        }
        Self {
            settings,
            block,
            groups,
            parts,
            patterns,
            is_kept,
        }
    }

    /// The places, among those who have an outcome, of the patients who are not excluded.
    fn kept(&self, known: &KnownOutcome) -> Vec<usize> {
        let places = 0..known.rows.len();
        places
            .filter(|place| self.is_kept[known.rows[*place]])
            .collect()
    }

    fn column(&self, place: usize) -> Result<&Column, Stop> {
        let column = self.block.columns.get(place).and_then(Option::as_ref);
        column.ok_or_else(Stop::other_method)
    }

    fn by_pattern(&self) -> Vec<u64> {
        let mut counts = vec![0; self.settings.patterns()];
        for pattern in &self.patterns {
            if let Some(count) = counts.get_mut((*pattern as usize).wrapping_sub(1)) {
                *count += 1;
            }
        }
        counts
    }

    /// Without the site's studies all patients are of this one alone.
    fn lots(&self) -> Vec<u64> {
        let mut lots = vec![0; self.settings.counts_of_lots()];
        let known = self.block.outcomes.iter();
        let known = known.map(|known| self.kept(known).len());
        let cohorts = std::iter::once(self.groups[0].len()).chain(known);
        for (own, patients) in lots.chunks_mut(self.settings.lots().max(1)).zip(cohorts) {
            own[0] = patients as u64;
        }
        lots
    }

    fn counts(&self) -> Result<Counts, Stop> {
        let group = |rows: &Vec<usize>| {
            let features = self.settings.features.par_iter().enumerate();
            let features = features.map(|(place, feature)| {
                let column = self.column(place)?;
                Ok(counts_of(feature, &column.values, rows))
            });
            Ok(GroupCounts {
                patients: rows.len() as u64,
                features: features.collect::<Result<_, Stop>>()?,
            })
        };
        let mut parts = vec![0; self.settings.parts()];
        for row in &self.groups[0] {
            parts[self.parts[*row]] += 1;
        }
        Ok(Counts {
            groups: self.groups.iter().map(group).collect::<Result<_, Stop>>()?,
            parts,
        })
    }

    /// Of the patients with an outcome, as its runs have them.
    fn histograms(&self, outcome: usize, columns: &[u32]) -> Result<Vec<ColumnHistogram>, Stop> {
        let known = self.block.outcomes.get(outcome);
        let known = known.zip(self.settings.grids.get(outcome));
        let (known, grids) = known.ok_or_else(Stop::other_method)?;
        let grids = grids.chosen(columns);
        let places = self.kept(known);
        let rows: Vec<usize> = places.iter().map(|place| known.rows[*place]).collect();
        let of_column = |one: &GriddedColumn| {
            let Column { name, values } = self.column(one.column)?;
            let mut column = Column {
                name: name.clone(),
                values: values.select(&rows),
            };
            let marked = [self.settings.features[one.column].is_logarithm()];
            take_logarithms(std::slice::from_mut(&mut column), &marked)
                .map_err(Stop::below_zero)?;
            on_grid(&column.values, one.grid)
        };
        let events = |grid| Ok(events_on(grid, &known.outcome.select(&places)));
        let numbers = grids.columns.iter().map(of_column);
        numbers.chain(grids.events.map(events)).collect()
    }

    fn sums(&self, places: &[u32]) -> Result<Sums, Stop> {
        let features = self.settings.features.len().max(1);
        let of_place = |place: &u32| {
            let (group, feature) = (*place as usize / features, *place as usize % features);
            let rows = self.groups.get(group).ok_or_else(Stop::other_method)?;
            match &self.column(feature)?.values {
                Values::Numeric(values) => sums_of(rows.iter().map(|row| values[*row]).collect()),
                Values::Categorical { .. } => Err(Stop::other_method()),
            }
        };
        let of_outcome = |(known, own): (&KnownOutcome, &protocol::study::StudyOutcome)| {
            let kept = |values: &Array1<f64>| -> Array1<f64> {
                let places = self.kept(known).into_iter();
                places.map(|place| values[place]).collect()
            };
            match &known.outcome {
                Outcome::Classes { .. } => Ok(Vec::new()),
                Outcome::Numeric(values) => Ok(sums_of(kept(values))?.to_vec()),
                Outcome::Survival { time, .. } => {
                    let horizon = own.specification.kind.horizon();
                    let [time, _] = sums_of(kept(time).mapv(|time| time.min(horizon)))?;
                    Ok(vec![time])
                }
            }
        };
        let outcomes = self.block.outcomes.iter().zip(&self.settings.outcomes);
        Ok(Sums {
            features: (places.par_iter().map(of_place)).collect::<Result<_, Stop>>()?,
            outcomes: outcomes.map(of_outcome).collect::<Result<_, Stop>>()?,
        })
    }
}

/// The group of each patient who has the outcome.
fn groups_of(known: &KnownOutcome, kind: &OutcomeKind) -> Vec<usize> {
    match &known.outcome {
        Outcome::Classes { codes, .. } => codes.iter().map(|code| *code as usize).collect(),
        Outcome::Numeric(values) => vec![0; values.len()],
        Outcome::Survival { time, event } => {
            let horizon = kind.horizon();
            let seen = time.iter().zip(event);
            seen.map(|(time, event)| usize::from(!(*event && *time <= horizon)))
                .collect()
        }
    }
}

/// Patients at each level and without a value.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // places of levels
fn counts_of(feature: &Feature, values: &Values, rows: &[usize]) -> FeatureCounts {
    let mut levels = vec![0; counted(&feature.kind)];
    let mut missing = 0;
    for row in rows {
        let level = match (values, &feature.kind) {
            (Values::Categorical { codes, .. }, _) => {
                (codes[*row] != MISSING_LEVEL).then(|| codes[*row] as usize)
            }
            (Values::Numeric(values), FeatureKind::Ordinal { .. } | FeatureKind::Binary { .. }) => {
                (!values[*row].is_nan()).then(|| values[*row] as usize)
            }
            (
                Values::Numeric(values),
                FeatureKind::Numeric { .. }
                | FeatureKind::Age { .. }
                | FeatureKind::Categorical { .. },
            ) => (!values[*row].is_nan()).then_some(0),
        };
        match level.and_then(|level| levels.get_mut(level)) {
            Some(count) => *count += 1,
            None => missing += 1,
        }
    }
    FeatureCounts { levels, missing }
}

/// The sum and the sum of squares of the values present.
fn sums_of(values: Array1<f64>) -> Result<[f64; 2], Stop> {
    let column = Column {
        name: String::new(),
        values: Values::Numeric(values),
    };
    match ColumnMoments::of_column(&column) {
        Ok(ColumnMoments::Numeric {
            sum, sum_squares, ..
        }) => Ok([sum, sum_squares]),
        Ok(ColumnMoments::Categorical { .. }) => Err(Stop::other_method()),
        Err(error) => Err(Stop::numeric(Code::Numbers, error)),
    }
}
