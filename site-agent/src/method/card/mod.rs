//! What a site tells of the card of a study: counts of its patients, and sums of their numbers, all of it for a sum over sites.

pub(crate) mod explain;

use crate::run::stop::Stop;
use crate::source::{Enrolled, KnownOutcome};
use protocol::cohort::{Feature, FeatureKind, OutcomeKind};
use protocol::failure::Code;
use protocol::limits::AGE_MAX;
use protocol::message::Answer;
use protocol::message::card::{self as message, Counts, FeatureCounts, GroupCounts, Request, Sums};
use protocol::method::card::settings::{CardSettings, counted};
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::{Column, MISSING_LEVEL, Outcome, Values};

/// The patients of a study, and the groups that they are in.
pub(super) struct Tabulator {
    settings: CardSettings,
    columns: Vec<Column>,
    outcomes: Vec<KnownOutcome>,
    /// The rows of the patients of each group.
    groups: Vec<Vec<usize>>,
    /// The part of each patient.
    parts: Vec<usize>,
    /// How many are in which of the study and those that it renews.
    lots: Vec<u64>,
}

/// A job whose study nobody has read.
pub(super) fn without_study() -> Stop {
    Stop::failed(Code::Cohort, "the patients of the study were not read")
}

impl Tabulator {
    pub(super) fn new(settings: CardSettings, enrolled: Enrolled) -> Self {
        let Enrolled {
            columns,
            outcomes,
            lots,
        } = enrolled;
        let of_columns = columns.first().map_or(0, |column| column.values.patients());
        let mut states = vec![vec![0; outcomes.len()]; of_columns];
        let mut groups = vec![Vec::new(); settings.places().len()];
        groups[0] = (0..of_columns).collect();
        for (place, known) in outcomes.iter().enumerate() {
            let own = settings.groups_of(place);
            let kind = &settings.outcomes[place].specification.kind;
            for (row, group) in known.rows.iter().zip(groups_of(known, kind)) {
                states[*row][place] = group + 1;
                groups[own.start + group].push(*row);
            }
        }
        let parts = states.iter().map(|states| settings.part(states));
        let lots = lots.unwrap_or_else(|| {
            // Without the site's studies all patients are of this one alone.
            let mut lots = vec![0; settings.counts_of_lots()];
            let sizes = outcomes.iter().map(|known| known.rows.len());
            let sizes = std::iter::once(of_columns).chain(sizes);
            for (own, size) in lots.chunks_mut(settings.lots().max(1)).zip(sizes) {
                own[0] = size as u64;
            }
            lots
        });
        Self {
            lots,
            parts: parts.collect(),
            columns,
            outcomes,
            groups,
            settings,
        }
    }

    pub(super) fn answer(&self, request: &Request) -> Result<Answer, Stop> {
        Ok(Answer::Card(match request {
            Request::Compare => message::Answer::Lots(self.lots.clone()),
            Request::Count => message::Answer::Counts(self.counts()),
            Request::Sum(places) => message::Answer::Sums(self.sums(places)?),
        }))
    }

    fn counts(&self) -> Counts {
        let group = |rows: &Vec<usize>| GroupCounts {
            patients: rows.len() as u64,
            features: self
                .settings
                .features
                .iter()
                .zip(&self.columns)
                .map(|(feature, column)| counts_of(feature, &column.values, rows))
                .collect(),
        };
        let mut parts = vec![0; self.settings.parts()];
        self.parts.iter().for_each(|part| parts[*part] += 1);
        Counts {
            groups: self.groups.iter().map(group).collect(),
            parts,
        }
    }

    fn sums(&self, places: &[u32]) -> Result<Sums, Stop> {
        let features = self.settings.features.len().max(1);
        let of_place = |place: &u32| {
            let (group, feature) = (*place as usize / features, *place as usize % features);
            let column = self.columns.get(feature).zip(self.groups.get(group));
            let (column, rows) = column.ok_or_else(Stop::other_method)?;
            let Values::Numeric(values) = column.values.select(rows) else {
                return Err(Stop::other_method());
            };
            let (low, high) = range(&self.settings.features[feature]);
            sums_of(values.mapv(|value| value.clamp(low, high)))
        };
        let of_outcome =
            |(known, own): (&KnownOutcome, &protocol::study::StudyOutcome)| match &known.outcome {
                Outcome::Classes { .. } => Ok(Vec::new()),
                Outcome::Numeric(values) => Ok(sums_of(values.clone())?.to_vec()),
                Outcome::Survival { time, .. } => {
                    let horizon = own.specification.kind.horizon();
                    let [time, _] = sums_of(time.mapv(|time| time.min(horizon)))?;
                    Ok(vec![time])
                }
            };
        let outcomes = self.outcomes.iter().zip(&self.settings.outcomes);
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

/// The range to which a number is clipped.
fn range(feature: &Feature) -> (f64, f64) {
    match &feature.kind {
        FeatureKind::Numeric {
            range: Some(range), ..
        } => *range,
        FeatureKind::Age { .. } => (0.0, AGE_MAX),
        FeatureKind::Numeric { range: None, .. }
        | FeatureKind::Categorical { .. }
        | FeatureKind::Ordinal { .. }
        | FeatureKind::Binary { .. } => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The sum and the sum of squares of the values present.
fn sums_of(values: ndarray::Array1<f64>) -> Result<[f64; 2], Stop> {
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
