//! The methods, each a folder of its own, and the one place that names them all.
//!
//! # To add a method
//!
//! A folder beside `unpsl`, `forest`, `regression`, `neighbours`, `cluster`, `compare` and `card` holds its `settings` (a table of the job), its `message`s, the
//! `coordinator`'s stages, and the `model` that it leaves. Each `match` below then lacks an arm, and so do
//! those of [`Request`](crate::message::Request) and [`Answer`](crate::message::Answer); nothing else in this crate names a method.

pub mod card;
pub mod cluster;
pub mod compare;
pub mod forest;
mod named;
pub mod neighbours;
pub mod regression;
mod terms;
pub mod unpsl;

use crate::assessment::Assessment;
use crate::cohort::{
    self, CohortSpecification, Feature, Grids, Judgements, MissingShare, OutcomeSpecification,
    Value,
};
use crate::document::Section;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::Failure;
use crate::progress::Ending;
use crate::study::Study;
use card::settings::CardSettings;
use cluster::settings::ClusterSettings;
use compare::settings::CompareSettings;
use forest::settings::{ForestScope, ForestSettings};
pub(crate) use named::Named;
use neighbours::settings::NeighboursSettings;
use privacy::Permission;
use regression::settings::RegressionSettings;
use similarity::compare::proximity::places;
use similarity::numeric::precision::Precision;
use std::collections::BTreeSet;
use terms::Placing;
pub(crate) use terms::{Beginning, judges_in_words};
pub use terms::{Needs, Unplaced};
use unpsl::settings::UnpslSettings;

/// How patients are compared, with the settings of the job.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // a run holds one job
pub enum Method {
    /// Distributed UnPSL.
    Unpsl(UnpslSettings),
    /// Forests, at the sites or one of all.
    Forest(ForestSettings),
    /// Linear, logistic or Cox regression of all patients.
    Regression(RegressionSettings),
    /// Who is alike at the sites, by what an earlier run has learned.
    Neighbours(NeighboursSettings),
    /// Groups of patients that the sites have in common, by what an earlier run has learned.
    Cluster(ClusterSettings),
    /// Which similarity suits the patients.
    Compare(Box<CompareSettings>),
    /// Who the patients of a study are.
    Card(CardSettings),
}

/// What a run has learnt.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// A metric.
    Unpsl(unpsl::model::Model),
    /// A forest.
    Forest(forest::model::Model),
    /// A regression.
    Regression(Box<regression::model::Model>),
    /// Who is alike, and how they fared.
    Neighbours(neighbours::model::Model),
    /// Groups of patients.
    Cluster(cluster::model::Model),
    /// How well each similarity predicts.
    Compare(compare::model::Model),
    /// Who the patients of a study are.
    Card(card::model::Model),
}

/// A method under way, at the coordinator.
#[derive(Debug, Clone)]
pub(crate) enum Stages {
    Unpsl(Box<unpsl::coordinator::Unpsl>),
    Forest(Box<forest::coordinator::Forest>),
    Regression(Box<regression::coordinator::Regression>),
    Neighbours(Box<neighbours::coordinator::Neighbours>),
    Cluster(Box<cluster::coordinator::Cluster>),
    Compare(Box<compare::coordinator::Compare>),
    Card(Box<card::coordinator::Card>),
}

impl Method {
    /// The names of all methods, as job files and policies spell them.
    pub const NAMES: [&'static str; 7] = {
        let all = Named::ALL;
        let mut names = [""; 7];
        let mut place = 0;
        while place < all.len() {
            names[place] = all[place].name();
            place += 1;
        }
        names
    };

    /// The method's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let named = match self {
            Self::Unpsl(_) => Named::Unpsl,
            Self::Forest(_) => Named::Forest,
            Self::Regression(_) => Named::Regression,
            Self::Neighbours(_) => Named::Neighbours,
            Self::Cluster(_) => Named::Cluster,
            Self::Compare(_) => Named::Compare,
            Self::Card(_) => Named::Card,
        };
        named.name()
    }

    /// Reads the table of a method.
    pub(crate) fn read(
        named: Named,
        root: &mut Section<'_, '_>,
        (outcome, features): (Option<&OutcomeSpecification>, &[Feature]),
        (sites, study): (usize, Option<&Study>),
        judgements: Option<&Judgements>,
    ) -> Option<Self> {
        let (name, count) = (named.name(), features.len());
        let method = match named {
            Named::Unpsl => root
                .required_table(name, |section| Some(UnpslSettings::read(section)))
                .map(Self::Unpsl),
            Named::Forest => {
                let read = |section: &mut Section<'_, '_>| {
                    Some(forest::settings::read(section, count, sites))
                };
                root.required_table(name, read).map(Self::Forest)
            }
            Named::Regression => root
                .required_table(name, |section| Some(RegressionSettings::read(section)))
                .map(Self::Regression),
            Named::Neighbours => root
                .required_table(name, NeighboursSettings::read)
                .map(Self::Neighbours),
            Named::Cluster => root
                .required_table(name, ClusterSettings::read)
                .map(Self::Cluster),
            Named::Compare => CompareSettings::read(root, outcome, count, sites)
                .map(|settings| Self::Compare(Box::new(settings))),
            Named::Card => CardSettings::read(root, study).map(Self::Card),
        };
        match (&method, outcome) {
            (Some(Self::Unpsl(settings)), Some(outcome)) => {
                cohort::lines_alone(root, features);
                unpsl::settings::check(root, outcome);
                unpsl::settings::check_rank(root, settings, features);
                unpsl::supervision::check(root, settings, judgements.is_some());
            }
            (Some(Self::Forest(settings)), Some(outcome)) => {
                cohort::lines_alone(root, features);
                forest::settings::check(root, settings, outcome, features);
            }
            (Some(Self::Regression(settings)), Some(outcome)) => {
                regression::settings::check(root, settings, outcome);
            }
            (Some(Self::Compare(settings)), Some(outcome)) => {
                cohort::lines_alone(root, features);
                compare::settings::check(root, settings, outcome, features, sites);
            }
            (Some(Self::Neighbours(_) | Self::Cluster(_)), Some(outcome)) => {
                if let Some(wanted) = neighbours::settings::without_end(outcome) {
                    root.problem(
                        "outcome",
                        &format!("{:?} without it", outcome.column),
                        wanted,
                    );
                }
            }
            (Some(Self::Card(_)) | None, _) | (_, None) => {}
        }
        method
    }

    /// The method on sums that are known so finely.
    #[must_use]
    pub(crate) fn precisely(mut self, precision: Precision) -> Self {
        match &mut self {
            Self::Regression(settings) => settings.precision = precision,
            Self::Unpsl(settings) => settings.objective.precision = precision,
            Self::Compare(settings) => {
                settings.regression.precision = precision;
                settings.unpsl.objective.precision = precision;
            }
            // Counts and trees are whole.
            Self::Forest(_) | Self::Neighbours(_) | Self::Cluster(_) | Self::Card(_) => {}
        }
        self
    }

    /// The method on one cohort alone.
    #[must_use]
    pub(crate) fn alone(self) -> Self {
        match self {
            Self::Unpsl(settings) => Self::Unpsl(settings.alone()),
            Self::Forest(settings) => Self::Forest(ForestSettings {
                scope: ForestScope::Local,
                ..settings
            }),
            Self::Regression(settings) => Self::Regression(settings.alone()),
            Self::Neighbours(settings) => Self::Neighbours(settings),
            Self::Cluster(settings) => Self::Cluster(settings),
            Self::Compare(settings) => Self::Compare(Box::new(settings.alone())),
            Self::Card(settings) => Self::Card(settings),
        }
    }

    /// What the sites count on grids.
    pub(crate) fn grids(&self, cohort: &CohortSpecification) -> Grids {
        match self {
            Self::Unpsl(_) => Grids {
                columns: cohort.grids_of_quartiles(),
                events: None,
            },
            Self::Forest(settings) => settings.grids(cohort),
            Self::Regression(settings) => settings.grids(cohort),
            Self::Neighbours(_) | Self::Cluster(_) | Self::Card(_) => Grids::default(),
            Self::Compare(settings) => settings.grids(cohort),
        }
    }

    /// What it asks of a site's policy.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let nothing = Needs {
            permissions: BTreeSet::new(),
            rounds: 0,
            folds: 1,
            validation: None,
            queries: 0,
        };
        match self {
            Self::Unpsl(settings) => {
                let (folds, validation) = settings.parts();
                Needs {
                    permissions: settings.permissions(),
                    rounds: settings.rounds(),
                    folds,
                    validation,
                    ..nothing
                }
            }
            // What Newton's method needs at coefficients of 0 follows from second moments.
            Self::Regression(settings) => Needs {
                permissions: BTreeSet::from([Permission::SecondMoments]),
                rounds: settings.rounds(),
                ..nothing
            },
            // Trees that leave are a round; a forest that stays asks for none.
            Self::Forest(settings) => match settings.scope {
                ForestScope::Local => nothing,
                ForestScope::Federated => Needs {
                    permissions: BTreeSet::from([Permission::Forests]),
                    rounds: 1,
                    ..nothing
                },
            },
            Self::Neighbours(settings) => Needs {
                permissions: BTreeSet::from([Permission::Neighbours]),
                queries: settings.queries.len() as u64,
                ..nothing
            },
            // Every centre is a place of which it is asked who is near.
            Self::Cluster(settings) => Needs {
                permissions: BTreeSet::from([Permission::Clusters]),
                queries: settings.clusters() as u64,
                ..nothing
            },
            // What is learnt needs what it needs by itself.
            Self::Compare(settings) => Needs {
                permissions: settings.permissions(),
                rounds: settings.rounds(),
                validation: settings.validation(),
                ..nothing
            },
            Self::Card(_) => nothing,
        }
    }

    /// Begins at the coordinator.
    pub(crate) fn begin(&self, beginning: &Beginning) -> Stages {
        match self {
            Self::Unpsl(settings) => {
                let method = unpsl::coordinator::Unpsl::new(settings, beginning);
                Stages::Unpsl(Box::new(method))
            }
            Self::Forest(settings) => {
                let method = forest::coordinator::Forest::new(settings, beginning);
                Stages::Forest(Box::new(method))
            }
            Self::Regression(settings) => {
                let method = regression::coordinator::Regression::new(settings, beginning);
                Stages::Regression(Box::new(method))
            }
            Self::Neighbours(settings) => {
                let method = neighbours::coordinator::Neighbours::new(settings, beginning);
                Stages::Neighbours(Box::new(method))
            }
            Self::Cluster(settings) => {
                let method = cluster::coordinator::Cluster::new(settings, beginning);
                Stages::Cluster(Box::new(method))
            }
            Self::Compare(settings) => {
                let method = compare::coordinator::Compare::new(settings, beginning);
                Stages::Compare(Box::new(method))
            }
            Self::Card(settings) => Stages::Card(Box::new(card::coordinator::Card::new(settings))),
        }
    }
}

impl Model {
    /// How far its rounds came.
    #[must_use]
    pub fn course(&self) -> Course {
        match self {
            Self::Unpsl(model) => model.course(),
            Self::Forest(_) | Self::Card(_) => Course::default(),
            Self::Regression(model) => model.course(),
            Self::Neighbours(model) => model.course(),
            Self::Cluster(model) => model.course(),
            Self::Compare(model) => model.course(),
        }
    }

    /// Whether anything was learnt, where sites have `assessed` it or not.
    pub(crate) fn is_learnt(&self, assessed: bool) -> bool {
        match self {
            Self::Unpsl(model) => !model.rounds.is_empty(),
            Self::Forest(model) => model.forest.is_some() || assessed,
            Self::Regression(model) => !model.coefficients.is_empty(),
            Self::Neighbours(model) => !model.alike.is_empty(),
            Self::Cluster(model) => !model.tried.is_empty(),
            Self::Compare(model) => !model.families.is_empty(),
            Self::Card(model) => model.table.is_some(),
        }
    }

    /// Withholds of what is the sum over the sites what the default rules demand of one.
    pub(crate) fn publish(&mut self, start: u64) {
        match self {
            Self::Compare(model) => model.publish(start),
            Self::Unpsl(_)
            | Self::Forest(_)
            | Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Card(_) => {}
        }
    }
}

impl Model {
    /// By how many numbers it places a patient of `cohort`.
    ///
    /// # Errors
    /// [`Unplaced::Nothing`].
    pub fn coordinates(&self, cohort: &CohortSpecification) -> Result<usize, Unplaced> {
        let coordinates = match self {
            Self::Unpsl(model) => model.metric.as_ref().map_or(0, |metric| metric.ncols()),
            Self::Regression(model) if !model.coefficients.is_empty() => cohort.features.len(),
            Self::Forest(model) if model.forest.is_some() => {
                places::coordinates(cohort.features.len())
            }
            Self::Regression(_)
            | Self::Forest(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => 0,
        };
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
        if !self.is_learnt(false) {
            return Err(Unplaced::Nothing);
        }
        let place: Box<Placing<'_>> = match self {
            Self::Unpsl(model) => Box::new(|patient| unpsl::placing::place(model, cohort, patient)),
            // A curve is told by its knots, and patients of elsewhere are placed by straight lines alone.
            Self::Regression(model) if model.splines.is_empty() => {
                Box::new(|patient| regression::placing::place(model, cohort, patient))
            }
            Self::Forest(model) => {
                let common = model.forest.as_ref().ok_or(Unplaced::Nothing)?;
                let placer = forest::placing::Placer::new(common, cohort);
                let placer = placer.map_err(|_| Unplaced::Nothing)?;
                Box::new(move |patient| placer.place(patient))
            }
            Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => return Err(Unplaced::Nothing),
        };
        terms::placed(patients, &*place)
    }
}

impl Stages {
    /// What is asked at present.
    pub(crate) fn asking(&self) -> &dyn Asking {
        match self {
            Self::Unpsl(method) => method.asking(),
            Self::Forest(method) => method.asking(),
            Self::Regression(method) => method.asking(),
            Self::Neighbours(method) => method.as_ref(),
            Self::Cluster(method) => method.as_ref(),
            Self::Compare(method) => method.asking(),
            Self::Card(method) => method.as_ref(),
        }
    }

    /// Takes the answers of a closed exchange.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match self {
            Self::Unpsl(method) => method.close(closed),
            Self::Forest(method) => method.close(closed),
            Self::Regression(method) => method.close(closed),
            Self::Neighbours(method) => method.close(closed),
            Self::Cluster(method) => method.close(closed),
            Self::Compare(method) => method.close(closed),
            Self::Card(method) => method.close(closed),
        }
    }

    /// The method, with what was chosen.
    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Unpsl(method) => Method::Unpsl(method.settings().clone()),
            Self::Forest(method) => Method::Forest(method.settings().clone()),
            Self::Regression(method) => Method::Regression(method.settings().clone()),
            Self::Neighbours(method) => Method::Neighbours(method.settings().clone()),
            Self::Cluster(method) => Method::Cluster(method.settings().clone()),
            Self::Compare(method) => Method::Compare(Box::new(method.settings().clone())),
            Self::Card(method) => Method::Card(method.settings().clone()),
        }
    }

    /// What the run leaves, as it stands.
    pub(crate) fn model(&self) -> Model {
        match self {
            Self::Unpsl(method) => Model::Unpsl(method.model()),
            Self::Forest(method) => Model::Forest(method.model()),
            Self::Regression(method) => Model::Regression(Box::new(method.model())),
            Self::Neighbours(method) => Model::Neighbours(method.model()),
            Self::Cluster(method) => Model::Cluster(method.model()),
            Self::Compare(method) => Model::Compare(method.model()),
            Self::Card(method) => Model::Card(method.model()),
        }
    }

    /// What all patients together miss of the features, as far as the method pools moments.
    pub(crate) fn missing(&self) -> &[MissingShare] {
        match self {
            Self::Unpsl(method) => method.missing(),
            Self::Forest(_) | Self::Neighbours(_) | Self::Cluster(_) | Self::Card(_) => &[],
            Self::Regression(method) => method.missing(),
            Self::Compare(method) => method.missing(),
        }
    }

    /// The last word on the model, as a sum over the sites; none before it is there.
    pub(crate) fn assessment(&self) -> Option<&Assessment> {
        match self {
            Self::Unpsl(method) => method.assessment(),
            Self::Forest(method) => method.assessment(),
            Self::Regression(method) => method.assessment(),
            Self::Neighbours(_) | Self::Cluster(_) | Self::Compare(_) | Self::Card(_) => None,
        }
    }
}
