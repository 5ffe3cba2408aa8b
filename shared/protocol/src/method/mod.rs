//! The methods, each a folder of its own.
//!
//! # To add a method
//!
//! A line of the list, and a folder here that holds its `settings` (a table of the job), its `message`s, the `coordinator`'s stages, and
//! the `model` that it leaves. What each says of itself is in `room`; nothing else in this crate names a method.

pub mod asking;
pub mod card;
pub mod cluster;
pub mod compare;
pub mod forest;
mod list;
pub mod neighbours;
pub mod regression;
pub(crate) mod room;
mod terms;
pub mod unpsl;

use crate::assessment::Assessment;
use crate::cohort::{CohortSpecification, Grids, MissingShare, Value};
use crate::document::Section;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::Failure;
use crate::message::Answer;
use crate::progress::Ending;
use crate::study::Parts;
use asking::Asker;
use room::{MethodModel, MethodSettings, MethodStages, Reading};
use similarity::numeric::precision::Precision;
pub(crate) use terms::{Beginning, drawn_in_words, judges_in_words, placed};
pub use terms::{Needs, Unplaced};

macro_rules! registry {
    ($($Name:ident $room:ident,)*) => {
        /// How patients are compared, with the settings of the job.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant)] // a run holds one job
        pub enum Method {
            $(#[doc = concat!("As `method = \"", stringify!($room), "\"`.")] $Name($room::Settings),)*
        }

        /// What a run has learnt.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant)] // a run leaves one
        pub enum Model {
            $(#[doc = concat!("Of `", stringify!($room), "`.")] $Name($room::Model),)*
        }

        /// A method under way, at the coordinator.
        #[derive(Debug, Clone)]
        pub(crate) enum Stages {
            $($Name(Box<$room::Stages>),)*
        }

        /// A method, before its settings are read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Named {
            $($Name,)*
        }

        impl Method {
            /// The names of all methods, as job files and policies spell them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($room)),*];

            /// The method's name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$Name(_) => stringify!($room),)* }
            }

            /// What the method of a name takes of the ended run that it asks by; none of a method that asks by none, or of another word.
            #[must_use]
            pub fn asker(name: &str) -> Option<Asker> {
                match name {
                    $(stringify!($room) => <$room::Settings as MethodSettings>::asking(),)*
                    _ => None,
                }
            }

            /// Reads the table of a method.
            pub(crate) fn read(named: Named, root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
                match named { $(Named::$Name => MethodSettings::read(root, at).map(Self::$Name),)* }
            }

            /// The method on sums that are known so finely.
            #[must_use]
            pub(crate) fn precisely(self, precision: Precision) -> Self {
                match self { $(Self::$Name(settings) => Self::$Name(settings.precisely(precision)),)* }
            }

            /// The method on one cohort alone.
            #[must_use]
            pub(crate) fn alone(self) -> Self {
                match self { $(Self::$Name(settings) => Self::$Name(settings.alone()),)* }
            }

            /// What the sites of a study with methods of these names count on grids: what is needed most, which is of use to all.
            pub(crate) fn grids_of_all(
                names: &[String],
                cohort: &CohortSpecification,
                common_forests: bool,
            ) -> Grids {
                let is_named = |name: &str| names.iter().any(|one| one == name);
                let mut most = Grids::default();
                $(if is_named(stringify!($room)) {
                    most = most.or_more(<$room::Settings as MethodSettings>::grids_of_all(cohort, common_forests));
                })*
                most
            }

            /// Into which parts it divides the patients of each site.
            pub(crate) fn divides(&self) -> Parts {
                match self { $(Self::$Name(settings) => settings.divides(),)* }
            }

            /// What it takes of what the sites count on grids.
            pub(crate) fn grids(&self, cohort: &CohortSpecification) -> Grids {
                match self { $(Self::$Name(settings) => settings.grids(cohort),)* }
            }

            /// Nothing, in the shape of the largest answers that it has summed.
            pub(crate) fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
                match self { $(Self::$Name(settings) => settings.largest(cohort),)* }
            }

            /// What it needs of a site's policy.
            #[must_use]
            pub fn needs(&self) -> Needs {
                match self { $(Self::$Name(settings) => settings.needs(),)* }
            }

            /// Begins at the coordinator.
            pub(crate) fn begin(&self, beginning: &Beginning) -> Result<Stages, Failure> {
                Ok(match self { $(Self::$Name(settings) => Stages::$Name(Box::new(settings.begin(beginning)?)),)* })
            }
        }

        impl Named {
            /// Reads the key `method`.
            pub(crate) fn read(root: &mut Section<'_, '_>) -> Option<Self> {
                if !root.has("method") {
                    root.required::<String>("method");
                }
                let named = root.choice("method", &[$((stringify!($room), Self::$Name)),*]);
                if named.is_none() {
                    // Which method's table belongs here is not known.
                    root.pass_over(Method::NAMES);
                }
                named
            }

            /// Whether it is of all outcomes and features of a study, and so allowed by each.
            pub(crate) fn is_of_all(self) -> bool {
                match self { $(Self::$Name => $room::Settings::IS_OF_ALL,)* }
            }
        }

        impl Model {
            fn of_method(&self) -> &dyn MethodModel {
                match self { $(Self::$Name(model) => model,)* }
            }

            /// Withholds of what is the sum over the sites what the default rules demand of one. No hospital has more than `largest`
            /// patients.
            pub(crate) fn publish(&mut self, largest: u64) {
                match self { $(Self::$Name(model) => MethodModel::publish(model, largest),)* }
            }
        }

        impl Stages {
            /// What is asked at present.
            pub(crate) fn asking(&self) -> &dyn Asking {
                match self { $(Self::$Name(method) => method.asking(),)* }
            }

            /// Takes the answers of a closed exchange.
            pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
                match self { $(Self::$Name(method) => method.close(closed),)* }
            }

            /// The method, with what was chosen.
            pub(crate) fn method(&self) -> Method {
                match self { $(Self::$Name(method) => Method::$Name(method.settings().clone()),)* }
            }

            /// What the run leaves, as it stands.
            pub(crate) fn model(&self) -> Model {
                match self { $(Self::$Name(method) => Model::$Name(method.model()),)* }
            }

            /// What all patients together miss of the features, as far as the method pools moments.
            pub(crate) fn missing(&self) -> &[MissingShare] {
                match self { $(Self::$Name(method) => method.missing(),)* }
            }

            /// The last word on the model, as a sum over the sites; none before it is there.
            pub(crate) fn assessment(&self) -> Option<&Assessment> {
                match self { $(Self::$Name(method) => method.assessment(),)* }
            }
        }
    };
}

crate::methods!(registry);

impl Model {
    /// How far its rounds came.
    #[must_use]
    pub fn course(&self) -> Course {
        self.of_method().course()
    }

    /// Sites whose held-out patients judge it; none where those of all sites do.
    pub(crate) fn judges(&self) -> Option<u32> {
        self.of_method().judges()
    }

    /// Whether anything was learnt, where sites have `assessed` it or not.
    pub(crate) fn is_learnt(&self, assessed: bool) -> bool {
        self.of_method().is_learnt(assessed)
    }

    /// By how many numbers it places a patient of `cohort`.
    ///
    /// # Errors
    /// [`Unplaced::Nothing`].
    pub fn coordinates(&self, cohort: &CohortSpecification) -> Result<usize, Unplaced> {
        let placing = self.of_method().placing();
        let coordinates = placing.map_or(0, |placing| placing.coordinates(cohort));
        (coordinates > 0)
            .then_some(coordinates)
            .ok_or(Unplaced::Nothing)
    }

    /// Where it places patients of elsewhere, who have these values in the features of `cohort`.
    ///
    /// # Errors
    /// [`Unplaced`].
    pub fn place(
        &self,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced> {
        let placing = self.of_method().placing();
        match placing.filter(|_| self.is_learnt(false)) {
            Some(placing) => placing.place(cohort, patients),
            None => Err(Unplaced::Nothing),
        }
    }
}
