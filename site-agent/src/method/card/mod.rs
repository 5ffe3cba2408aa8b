//! What a site tells of the card of a study: counts of its patients, and sums of their numbers, all of it for a sum over sites.

mod adding;
mod at_site;
pub(crate) mod explain;

// By this name the list of methods knows it.
pub(super) use self::Tabulator as Own;
use crate::method::{events_on, on_grid};
use crate::run::stop::Stop;
use crate::source::{Block, Enrolled, KnownOutcome};
use ndarray::Array1;
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
    /// The rows of the patients of each group.
    groups: Vec<Vec<usize>>,
    /// The part of each patient.
    parts: Vec<usize>,
    /// The pattern of each patient: who has which outcome.
    patterns: Vec<u32>,
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
        Ok(Answer::Card(match request {
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
                let histograms = self.added(
                    &is_wanted,
                    &|block| block.histograms(outcome, columns, left_out),
                    adding::histograms,
                )?;
                return Ok(Answer::Quantiles(histograms));
            }
            Request::Part => {
                let of_block = |block: &Tabulated<'_>| Ok(block.by_pattern());
                message::Answer::Parts(self.added(&|_| false, &of_block, adding::counts)?)
            }
            Request::Compare(left_out) => message::Answer::Lots(match &self.enrolled.lots {
                Some(lots) => lots.without(left_out),
                None => {
                    let of_block = |block: &Tabulated<'_>| Ok(block.lots(left_out));
                    self.added(&|_| false, &of_block, adding::counts)?
                }
            }),
            Request::Count(left_out) => {
                let of_block = |block: &Tabulated<'_>| block.counts(left_out);
                message::Answer::Counts(self.added(&|_| true, &of_block, adding::groups)?)
            }
            Request::Sum { places, left_out } => {
                let is_wanted =
                    |place| (places.iter()).any(|one| *one as usize % features == place);
                let of_block = |block: &Tabulated<'_>| block.sums(places, left_out);
                message::Answer::Sums(self.added(&is_wanted, &of_block, adding::sums)?)
            }
        }))
    }

    /// What all blocks of patients come to, of the features that are wanted.
    fn added<T>(
        &self,
        is_wanted: &dyn Fn(usize) -> bool,
        of_block: &dyn Fn(&Tabulated<'_>) -> Result<T, Stop>,
        add: fn(&mut T, T),
    ) -> Result<T, Stop> {
        let mut all = None;
        let read = self.enrolled.in_blocks(is_wanted, &mut |block| {
            let own = of_block(&Tabulated::new(&self.settings, block))?;
            match &mut all {
                None => all = Some(own),
                Some(all) => add(all, own),
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
        all.ok_or_else(without_study)
    }
}

impl<'t> Tabulated<'t> {
    fn new(settings: &'t CardSettings, block: Block) -> Self {
        let patients = block.patients;
        let mut states = vec![vec![0; block.outcomes.len()]; patients];
        let mut groups = vec![Vec::new(); settings.places().len()];
        groups[0] = (0..patients).collect();
        for (place, known) in block.outcomes.iter().enumerate() {
            let own = settings.groups_of(place);
            let kind = &settings.outcomes[place].specification.kind;
            for (row, group) in known.rows.iter().zip(groups_of(known, kind)) {
                states[*row][place] = group + 1;
                groups[own.start + group].push(*row);
            }
        }
        let parts = states.iter().map(|states| settings.part(states));
        let parts: Vec<usize> = parts.collect();
        Self {
            patterns: parts.iter().map(|part| settings.pattern(*part)).collect(),
            parts,
            block,
            groups,
            settings,
        }
    }

    /// Of these patients those who are not excluded.
    fn kept(&self, rows: &[usize], left_out: &[u32]) -> Vec<usize> {
        let is_kept = |row: &usize| !left_out.contains(&self.patterns[*row]);
        rows.iter().copied().filter(is_kept).collect()
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

    fn lots(&self, left_out: &[u32]) -> Vec<u64> {
        // Without the site's studies all patients are of this one alone.
        let mut lots = vec![0; self.settings.counts_of_lots()];
        let all = std::iter::once(&self.groups[0]);
        let cohorts = all.chain(self.block.outcomes.iter().map(|known| &known.rows));
        for (own, rows) in lots.chunks_mut(self.settings.lots().max(1)).zip(cohorts) {
            own[0] = self.kept(rows, left_out).len() as u64;
        }
        lots
    }

    fn counts(&self, left_out: &[u32]) -> Result<Counts, Stop> {
        let group = |rows: &Vec<usize>| {
            let rows = self.kept(rows, left_out);
            let features = self.settings.features.par_iter().enumerate();
            let features = features.map(|(place, feature)| {
                let column = self.column(place)?;
                Ok(counts_of(feature, &column.values, &rows))
            });
            Ok(GroupCounts {
                patients: rows.len() as u64,
                features: features.collect::<Result<_, Stop>>()?,
            })
        };
        let mut parts = vec![0; self.settings.parts()];
        for row in self.kept(&self.groups[0], left_out) {
            parts[self.parts[row]] += 1;
        }
        Ok(Counts {
            groups: self.groups.iter().map(group).collect::<Result<_, Stop>>()?,
            parts,
        })
    }

    /// Of the patients with an outcome, as its runs have them.
    fn histograms(
        &self,
        outcome: usize,
        columns: &[u32],
        left_out: &[u32],
    ) -> Result<Vec<ColumnHistogram>, Stop> {
        let known = self.block.outcomes.get(outcome);
        let known = known.zip(self.settings.grids.get(outcome));
        let (known, grids) = known.ok_or_else(Stop::other_method)?;
        let grids = grids.chosen(columns);
        let rows = self.kept(&known.rows, left_out);
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
        let is_kept = |row: &usize| !left_out.contains(&self.patterns[*row]);
        let places = (0..known.rows.len()).filter(|place| is_kept(&known.rows[*place]));
        let places: Vec<usize> = places.collect();
        let events = |grid| Ok(events_on(grid, &known.outcome.select(&places)));
        let numbers = grids.columns.iter().map(of_column);
        numbers.chain(grids.events.map(events)).collect()
    }

    fn sums(&self, places: &[u32], left_out: &[u32]) -> Result<Sums, Stop> {
        let features = self.settings.features.len().max(1);
        let of_place = |place: &u32| {
            let (group, feature) = (*place as usize / features, *place as usize % features);
            let rows = self.groups.get(group).ok_or_else(Stop::other_method)?;
            let rows = self.kept(rows, left_out);
            let Values::Numeric(values) = self.column(feature)?.values.select(&rows) else {
                return Err(Stop::other_method());
            };
            sums_of(values)
        };
        let of_outcome = |(known, own): (&KnownOutcome, &protocol::study::StudyOutcome)| {
            let kept = |values: &Array1<f64>| -> Array1<f64> {
                let values = values.iter().zip(&known.rows);
                let kept = values.filter(|(_, row)| !left_out.contains(&self.patterns[**row]));
                kept.map(|(value, _)| *value).collect()
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
            features: places.iter().map(of_place).collect::<Result<_, Stop>>()?,
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
