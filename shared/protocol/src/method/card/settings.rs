//! What the card of a study counts: it has no settings, for everything follows from the study.

use super::coordinator::Card;
use super::judging;
use crate::cohort::{CohortSpecification, Grids};
use crate::cohort::{Feature, FeatureKind, OutcomeKind, OutcomeSpecification};
use crate::document::Section;
use crate::failure::Failure;
use crate::limits::{CARD_COUNTS_MAX, PARTS_MAX};
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::study::{Parts, StudyName, StudyOutcome};
use similarity::numeric::precision::Precision;

/// The outcomes and features of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct CardSettings {
    /// The outcomes.
    pub outcomes: Vec<StudyOutcome>,
    /// The features.
    pub features: Vec<Feature>,
    /// Earlier studies that have patients in common with it.
    pub renews: Vec<StudyName>,
    /// What is counted on grids of the patients with each outcome; none of a card that opens no study.
    pub grids: Vec<Grids>,
}

/// A group of patients on the card: all, or those of a group of one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// All patients of the study.
    Everyone,
    /// Those in a group of an outcome, both by number.
    Group {
        /// The outcome.
        outcome: usize,
        /// The group.
        group: usize,
    },
}

impl CardSettings {
    /// The columns and codings of the outcomes.
    pub(crate) fn specifications(&self) -> impl Iterator<Item = &OutcomeSpecification> {
        self.outcomes.iter().map(|outcome| &outcome.specification)
    }

    /// The groups of patients, in the order in which they are counted.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut places = vec![Place::Everyone];
        for (outcome, own) in self.outcomes.iter().enumerate() {
            let groups = 0..own.specification.kind.groups().len();
            places.extend(groups.map(|group| Place::Group { outcome, group }));
        }
        places
    }

    /// Where the groups of an outcome are among all groups.
    #[must_use]
    pub fn groups_of(&self, outcome: usize) -> std::ops::Range<usize> {
        let sizes = self
            .outcomes
            .iter()
            .map(|one| one.specification.kind.groups().len());
        let start = 1 + sizes.clone().take(outcome).sum::<usize>();
        let own = sizes.skip(outcome).take(1).sum::<usize>();
        start..start + own
    }

    /// The states of each outcome: absent, or one of its groups.
    fn states(&self) -> impl Iterator<Item = usize> {
        self.outcomes
            .iter()
            .map(|one| one.specification.kind.groups().len() + 1)
    }

    /// Combinations of the states of all outcomes.
    #[must_use]
    pub fn parts(&self) -> usize {
        let mut states = self.states();
        states
            .try_fold(1_usize, usize::checked_mul)
            .unwrap_or(usize::MAX)
    }

    /// The part of a patient whose outcomes have these states: 0 if there is none, else the group's number from 1.
    #[must_use]
    pub fn part(&self, states: &[usize]) -> usize {
        let places = self.states().zip(states);
        places.fold(0, |part, (states, state)| part * states + state)
    }

    /// The states of the outcomes of a part.
    pub(crate) fn states_of(&self, part: usize) -> Vec<usize> {
        let sizes: Vec<usize> = self.states().collect();
        let mut rest = part;
        let mut states: Vec<usize> = sizes
            .iter()
            .rev()
            .map(|size| {
                let state = rest % size;
                rest /= size;
                state
            })
            .collect();
        states.reverse();
        states
    }

    /// Patterns of who has which outcome, one at least; none where there is one outcome, which everybody has.
    #[must_use]
    pub fn patterns(&self) -> usize {
        match self.outcomes.len() {
            0 | 1 => 0,
            outcomes => (1 << outcomes) - 1,
        }
    }

    /// The pattern of a part: the bits of the outcomes that its patients have, of which the lowest stands for the first.
    #[must_use]
    pub fn pattern(&self, part: usize) -> u32 {
        let states = self.states_of(part).into_iter().rev();
        states.fold(0, |pattern, state| pattern << 1 | u32::from(state > 0))
    }

    /// Into how many lots the study and those that it renews part the patients of them: by who is in which, one at least. The lot
    /// with number n is of whoever is in the study where the lowest bit of n + 1 is set, and in the earlier ones by the other bits.
    #[must_use]
    pub fn lots(&self) -> usize {
        match self.renews.len() {
            0 => 0,
            earlier => (1 << (earlier + 1)) - 1,
        }
    }

    /// Counts of lots: of all patients, then of those with each outcome.
    #[must_use]
    pub fn counts_of_lots(&self) -> usize {
        self.lots() * (1 + self.outcomes.len())
    }

    /// Sums over the patients of one outcome: of a survival time the time at risk, of a number itself and its square.
    #[must_use]
    pub fn sums_of(kind: &OutcomeKind) -> usize {
        match kind {
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => 0,
            OutcomeKind::Numeric => 2,
            OutcomeKind::Survival { .. } => 1,
        }
    }

    /// Counts of all groups.
    fn counts(&self) -> usize {
        let of_group = self.features.iter().map(|one| counted(&one.kind) + 1);
        let of_group = of_group.sum::<usize>() + 1;
        self.places().len().saturating_mul(of_group)
    }
}

impl MethodSettings for CardSettings {
    type Stages = Card;
    const IS_OF_ALL: bool = true;

    fn asking() -> Option<Asker> {
        None
    }

    /// The table may be absent.
    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        root.table_or_nothing("card", |_| ());
        let Some(study) = at.study else {
            let wanted = "study = \"NAME.study.toml\", for a card is of a study";
            root.problem("method", "\"card\" without a study", wanted);
            return None;
        };
        Some(Self {
            outcomes: study.outcomes.clone(),
            features: study.features.clone(),
            renews: study.renews.clone(),
            grids: study.outcomes.iter().map(|one| study.grids(one)).collect(),
        })
    }

    /// Counts are whole, and sums are asked for once.
    fn precisely(self, _: Precision) -> Self {
        self
    }

    /// No run takes anything from the card of one cohort.
    fn alone(self) -> Self {
        Self {
            grids: Vec::new(),
            ..self
        }
    }

    fn divides(&self) -> Parts {
        Parts::default()
    }

    fn grids_of_all(_: &CohortSpecification, _: bool) -> Grids {
        Grids::default()
    }

    fn grids(&self, _: &CohortSpecification) -> Grids {
        Grids::default()
    }

    fn largest(&self, _: &CohortSpecification) -> Vec<Answer> {
        judging::largest(self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    fn begin(&self, _: &Beginning) -> Result<Card, Failure> {
        Ok(Card::new(self))
    }
}

/// The levels that are counted of a feature; none of a number.
#[must_use]
pub fn levels(kind: &FeatureKind) -> Option<Vec<&str>> {
    match kind {
        FeatureKind::Categorical { levels } | FeatureKind::Ordinal { levels } => {
            Some(levels.iter().map(String::as_str).collect())
        }
        FeatureKind::Binary { positive, negative } => Some(vec![negative, positive]),
        FeatureKind::Numeric { .. } | FeatureKind::Age { .. } => None,
    }
}

/// Counts of a feature beside the missing ones: one a level; of a number, whoever has one.
#[must_use]
pub fn counted(kind: &FeatureKind) -> usize {
    levels(kind).map_or(1, |levels| levels.len())
}

/// Reports a study whose card would be too large.
pub(crate) fn check(root: &Section<'_, '_>, outcomes: &[StudyOutcome], features: &[Feature]) {
    let settings = CardSettings {
        outcomes: outcomes.to_vec(),
        features: features.to_vec(),
        renews: Vec::new(),
        grids: Vec::new(),
    };
    let parts = settings.parts();
    if parts > PARTS_MAX {
        let found = match parts {
            usize::MAX => "too many combinations of their groups".to_owned(),
            parts => format!("{parts} combinations of their groups"),
        };
        let wanted = format!(
            "at most {PARTS_MAX}, where an outcome may also be absent: fewer outcomes or classes"
        );
        root.problem("outcomes", &found, &wanted);
    }
    let counts = settings.counts();
    if counts > CARD_COUNTS_MAX {
        let found = format!("{counts} counts of levels by groups");
        let wanted = format!("at most {CARD_COUNTS_MAX}: fewer levels, features or classes");
        root.problem("features", &found, &wanted);
    }
}
