//! `[cluster]`: by which run patients are compared, and how groups of them are looked for.

use super::coordinator::Cluster;
use super::judging;
use super::thirds::CUTS;
use crate::cohort::{CohortSpecification, Feature, Grids};
use crate::document::{Section, narrow};
use crate::failure::Failure;
use crate::limits::{CLUSTER_COORDINATES_MAX, CLUSTER_SAMPLES_MAX, CLUSTERS_MAX};
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::neighbours::settings::{self, By};
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::name::RunId;
use crate::study::Parts;
use privacy::Permission;
use similarity::numeric::precision::Precision;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Starts of the search for each number of clusters; the best counts.
pub const STARTS: usize = 8;
/// Starts in each sample that stability is measured by.
pub const SAMPLE_STARTS: usize = 4;
/// Steps at most; a search that is not over then is taken as it stands.
pub const STEPS_MAX: u32 = 40;

/// Thirds of the predicted risk.
const THIRDS: u32 = 3;

/// How clusters are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterSettings {
    /// The run that the sites compare by, each by what it has kept of it.
    pub run: RunId,
    /// How.
    pub by: By,
    /// Numbers by which that run, or its anchor, places a patient.
    pub coordinates: u32,
    /// Fewest clusters that are tried.
    pub clusters_min: u32,
    /// Most clusters that are tried.
    pub clusters_max: u32,
    /// Samples that stability is measured by.
    pub samples: u32,
    /// What a stable cluster has.
    pub stability_min: f64,
}

impl ClusterSettings {
    /// By a run that places patients by so many numbers; the rest as usual.
    #[must_use]
    pub fn by(run: RunId, coordinates: u32) -> Self {
        Self {
            run,
            by: By::Run,
            coordinates,
            clusters_min: 2,
            clusters_max: CLUSTERS_MAX as u32,
            samples: 20,
            stability_min: 0.6,
        }
    }

    /// Reads the table `cluster`.
    fn table(section: &mut Section<'_, '_>) -> Option<Self> {
        let run = settings::earlier_run(section);
        if !section.has("coordinates") {
            section.required::<u64>("coordinates");
        }
        let coordinates = section.count("coordinates", 1, 1..=CLUSTER_COORDINATES_MAX as u64);
        let by = By::read(section);
        let usual = Self::by(run?, narrow(coordinates));
        if by == By::Risk {
            return Some(Self::thirds(section, usual));
        }
        let clusters = 2..=CLUSTERS_MAX as u64;
        let clusters_max = section.count("clusters_max", *clusters.end(), clusters);
        let clusters_min = section.count("clusters_min", 2, 2..=clusters_max);
        let samples = 10..=CLUSTER_SAMPLES_MAX as u64;
        Some(Self {
            by,
            clusters_min: narrow(clusters_min),
            clusters_max: narrow(clusters_max),
            samples: narrow(section.count("samples", u64::from(usual.samples), samples)),
            stability_min: section.number(
                "stability_min",
                usual.stability_min,
                "a number above 0, at most 1",
                |one| one > 0.0 && one <= 1.0,
            ),
            ..usual
        })
    }

    /// Thirds of the predicted risk: nothing else of them is chosen.
    fn thirds(section: &mut Section<'_, '_>, usual: Self) -> Self {
        for key in ["clusters_min", "clusters_max", "samples", "stability_min"] {
            if section.has(key) {
                let _: f64 = section.or(key, 0.0);
                section.problem(key, "it", "none: by the risk patients are in thirds");
            }
        }
        Self {
            by: By::Risk,
            clusters_min: THIRDS,
            clusters_max: THIRDS,
            samples: 0,
            ..usual
        }
    }

    /// Whether patients are in thirds of the predicted risk.
    #[must_use]
    pub fn is_of_thirds(&self) -> bool {
        self.by == By::Risk
    }

    /// Numbers of clusters that are tried.
    #[must_use]
    pub fn tried(&self) -> RangeInclusive<usize> {
        self.clusters_min as usize..=self.clusters_max as usize
    }

    /// Clusters of one division for each number that is tried.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.tried().sum()
    }

    /// Clusters of all divisions that one question is about, at most.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        match self.by {
            By::Run | By::Anchored => {
                self.clusters() * (STARTS + SAMPLE_STARTS * self.samples as usize)
            }
            By::Risk => 2 * CUTS,
        }
    }
}

impl MethodSettings for ClusterSettings {
    type Stages = Cluster;
    const IS_OF_ALL: bool = false;

    fn asking() -> Option<Asker> {
        Some(Asker::Coordinates)
    }

    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        settings::check(root, at.outcome);
        root.required_table("cluster", Self::table)
    }

    /// Groups are summed whole.
    fn precisely(self, _: Precision) -> Self {
        self
    }

    fn alone(self) -> Self {
        self
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

    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        judging::largest(self, cohort)
    }

    /// Every centre is a place of which it is asked who is near.
    fn needs(&self) -> Needs {
        Needs {
            permissions: BTreeSet::from([Permission::Clusters]),
            queries: self.clusters() as u64,
            ..Needs::nothing()
        }
    }

    fn begin(&self, beginning: &Beginning) -> Result<Cluster, Failure> {
        Ok(Cluster::new(self, beginning))
    }
}

/// What is released of the features of a cluster: one of each number, one of each level of a category.
#[must_use]
pub fn measured(cohort: &CohortSpecification) -> usize {
    let of_feature = |one: &Feature| one.kind.categories().map_or(1, <[String]>::len);
    cohort.features.iter().map(of_feature).sum()
}
