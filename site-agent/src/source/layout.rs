//! Which columns of a source are needed, and where they are.

use super::intake::Intake;
use super::misfit::Structure;
use super::value::Mismatch;
use std::collections::{HashMap, HashSet};

/// Positions of the job's columns among the source's.
pub(super) struct Layout {
    pub(super) patient: Option<usize>,
    pub(super) outcome: usize,
    pub(super) event: usize,
    pub(super) columns: Vec<usize>,
    pub(super) surveyed: Vec<Option<usize>>,
}

impl Layout {
    /// The columns at these places alone.
    pub(super) fn of_columns(columns: Vec<usize>) -> Self {
        Self {
            patient: None,
            outcome: 0,
            event: 0,
            columns,
            surveyed: Vec::new(),
        }
    }

    /// The places of all that is read, some of them twice.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let who = self.patient.into_iter().chain([self.outcome, self.event]);
        let surveyed = self.surveyed.iter().flatten().copied();
        who.chain(self.columns.iter().copied()).chain(surveyed)
    }
}

/// Which of a source's columns are needed.
pub(super) enum NeededColumns {
    /// All: the site names no patients, and knows them by their rows.
    All,
    /// These.
    Named(HashSet<String>),
}

impl NeededColumns {
    /// The names; none where all are needed.
    pub(super) fn into_names(self) -> Option<HashSet<String>> {
        match self {
            Self::All => None,
            Self::Named(names) => Some(names),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(name),
        }
    }

    /// True where a column that cannot be read is a problem.
    pub(super) fn must_have(&self, name: &str, intake: &Intake) -> bool {
        match self {
            Self::All => intake.reads(name),
            Self::Named(names) => names.contains(name),
        }
    }
}

/// Where a name stands, and whether it does so twice.
#[derive(Clone, Copy)]
pub(super) struct NamePlace {
    first: usize,
    repeated: bool,
}

/// The places of all names.
pub(super) fn places(names: &[String]) -> HashMap<&str, NamePlace> {
    let mut places: HashMap<&str, NamePlace> = HashMap::with_capacity(names.len());
    for (first, name) in names.iter().enumerate() {
        let place = NamePlace {
            first,
            repeated: false,
        };
        places
            .entry(name)
            .and_modify(|known| known.repeated = true)
            .or_insert(place);
    }
    places
}

/// The place of one name.
///
/// # Errors
/// A name that is absent, or there twice.
pub(super) fn position(places: &HashMap<&str, NamePlace>, wanted: &str) -> Result<usize, Mismatch> {
    match places.get(wanted) {
        Some(place) if !place.repeated => Ok(place.first),
        Some(_) => Err(Mismatch::of(Structure::Repeated, "two such columns", "one")),
        None => {
            let wanted = "a column of this name";
            Err(Mismatch::of(Structure::Absent, "no such column", wanted))
        }
    }
}
