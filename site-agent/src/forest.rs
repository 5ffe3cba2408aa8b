//! What a site does in a run of forests: grows its trees, releases them, judges a forest.

use crate::computation::Stop;
use crate::results::forest::{self as files, ForestResults};
use crate::source::SiteCohort;
use protocol::forest::assemble;
use protocol::job::{ForestSettings, Job, Proximity};
use protocol::message::{
    Answer, ErrorMeasure, ErrorSums, EvaluationCounts, FeatureImportance, Growing, Judged, Judging,
    NodeKind, RuleErrors, TreeTable, Trees,
};
use similarity::cohort::Outcome;
use similarity::forest::edges::PooledEdges;
use similarity::forest::federated::SiteForest;
use similarity::forest::judge::Predicted;
use similarity::forest::kernel::Training;
use similarity::forest::neighbours::{nearest, nearest_of_matrix};
use similarity::forest::{
    ClassWeights, EventTimes, Grown, TerminalNodes, grow, importance, outlier, table,
};
use similarity::seed::Seed;
use std::path::Path;

/// Patients whose proximities other than the plain one are computed; they need all pairs at once.
const MATRIX_PATIENTS_MAX: usize = 10_000;

/// How the trees of a common forest leave: from a seed that only the site knows, so that nobody else
/// can tell which patients are in which bag, and with no smaller node.
#[derive(Debug, Clone, Copy)]
pub struct TreeRelease {
    /// The seed of the bags.
    pub seed: Seed,
    /// Patients of every node at least.
    pub patients_min: u32,
}

/// One job's forests on one cohort.
pub(crate) struct Forests<'c> {
    pub(crate) job: &'c Job,
    pub(crate) settings: &'c ForestSettings,
    pub(crate) seed: Seed,
    pub(crate) cohort: &'c SiteCohort,
    /// Where patient-level results go.
    pub(crate) folder: &'c Path,
}

/// The site's share of a common forest.
pub(crate) struct Share {
    growing: Growing,
    grown: Grown,
    tables: Vec<TreeTable>,
}

impl Forests<'_> {
    /// A forest of this cohort alone, judged; it stays here.
    pub(crate) fn grow_own(&self) -> Result<Answer, Stop> {
        let cohort = &self.cohort.cohort;
        let settings = self.settings.growing(cohort.outcome(), self.settings.trees);
        let grown = grow(cohort, &settings, self.seed).map_err(fault)?;
        self.judged(&grown)
    }

    /// The site's share of the common forest, as tables of counts that no rule has seen yet.
    pub(crate) fn grow(&self, growing: Growing, release: TreeRelease) -> Result<Share, Stop> {
        let cohort = &self.cohort.cohort;
        let edges = PooledEdges::new(growing.edges.clone()).map_err(fault)?;
        let mut settings = self.settings.growing(cohort.outcome(), growing.trees);
        if matches!(cohort.outcome(), Outcome::Classes { .. }) {
            settings.class_weights = ClassWeights::Given(growing.class_weights.clone());
        }
        if matches!(cohort.outcome(), Outcome::Survival { .. }) {
            settings.event_times = EventTimes::Given(growing.event_times.clone());
        }
        if edges.features() != cohort.columns().len() {
            let (found, wanted) = (edges.features(), cohort.columns().len());
            let text = format!("found cut points of {found} features, wanted {wanted}");
            return Err(Stop::failed("KDR-FOREST", text));
        }
        let settings = settings.federated(edges.clone(), release.patients_min);
        let grown = grow(cohort, &settings, release.seed).map_err(fault)?;
        // The gate judges the counts; that no threshold is a patient's value is judged here.
        SiteForest::new(grown.forest.clone(), &edges, release.patients_min).map_err(fault)?;
        let tables = table::tables(&grown, cohort).map_err(fault)?;
        Ok(Share {
            growing,
            grown,
            tables,
        })
    }

    /// Judges the common forest by this cohort: each patient by the own trees where it is out of bag and
    /// by all trees of other sites.
    pub(crate) fn judge(&self, share: &Share, judging: &Judging) -> Result<Answer, Stop> {
        let all = &judging.trees.trees;
        let first = judging.first_tree as usize;
        let own = all.iter().skip(first).take(share.tables.len());
        let told = own
            .zip(&share.tables)
            .filter(|(told, own)| same_splits(told, own));
        if told.count() != share.tables.len() {
            let text = "the common forest does not hold the trees that this site gave";
            return Err(Stop::failed("KDR-FOREST", text.to_owned()));
        }
        let Growing {
            event_times,
            class_weights,
            ..
        } = &share.growing;
        let forest = assemble(self.job, event_times, class_weights, all).map_err(fault)?;
        let in_bag = share.grown.in_bag.within(first, all.len());
        let in_bag = in_bag.ok_or_else(Stop::early)?;
        self.judged(&Grown { forest, in_bag })
    }

    fn judged(&self, grown: &Grown) -> Result<Answer, Stop> {
        let cohort = &self.cohort.cohort;
        let outcome = cohort.outcome();
        let nodes = grown.forest.apply(cohort.columns()).map_err(fault)?;
        let prediction = grown.predict_out_of_bag(cohort.columns()).map_err(fault)?;
        let predicted = Predicted::of_forest(&prediction);
        let compared = self.compared(grown, &nodes)?;
        let by_neighbours = Predicted::of_neighbours(&compared.nearest, outcome);
        let importance = match self.settings.importance {
            true => told(&importance::permutation(grown, cohort, self.seed).map_err(fault)?),
            false => Vec::new(),
        };
        let classes = match outcome {
            Outcome::Classes { codes, .. } => codes.to_vec(),
            Outcome::Numeric(_) | Outcome::Survival { .. } => vec![0; cohort.patients()],
        };
        let outliers = outlier::outlier_measure(&nodes, &classes).map_err(fault)?;
        let results = ForestResults {
            forest: &grown.forest,
            nodes: &nodes,
            predicted: &predicted,
            nearest: &compared.nearest,
            outliers: &outliers,
            proximity: compared.matrix.as_ref(),
            kernel: self.settings.proximity.kernel(),
            in_bag: &grown.in_bag,
            outcome,
            patients: &self.cohort.patients,
            seed: self.seed,
        };
        files::write(&results, self.folder)
            .map_err(|error| Stop::failed("KDR-RESULTS", error.to_string()))?;
        let rules = [
            ("forest", 0, &predicted),
            (
                self.settings.proximity.name(),
                self.settings.neighbours,
                &by_neighbours,
            ),
        ];
        Ok(Answer::Judged(Judged {
            errors: rules.map(|rule| errors(rule, outcome)).to_vec(),
            evaluation: rules
                .iter()
                .filter_map(|(rule, neighbours, predicted)| {
                    Some(EvaluationCounts {
                        rule: (*rule).to_owned(),
                        neighbours: *neighbours,
                        confusion: Some(predicted.confusion(outcome)?),
                    })
                })
                .collect(),
            importance,
        }))
    }

    fn compared(&self, grown: &Grown, nodes: &TerminalNodes) -> Result<Compared, Stop> {
        let neighbours = self.settings.neighbours as usize;
        if self.settings.proximity == Proximity::Proximity {
            return Ok(Compared {
                nearest: nearest(nodes, neighbours).map_err(fault)?,
                matrix: None,
            });
        }
        if nodes.patients() > MATRIX_PATIENTS_MAX {
            let text = format!(
                "the site has more than the {MATRIX_PATIENTS_MAX} patients whose proximity {:?} is \
                 computed; submit the job with proximity = \"proximity\"",
                self.settings.proximity.name()
            );
            return Err(Stop::failed("KDR-FOREST", text));
        }
        let matrix = self.settings.proximity.kernel().square(Training {
            forest: &grown.forest,
            in_bag: &grown.in_bag,
            nodes,
        });
        let matrix = matrix.map_err(fault)?;
        Ok(Compared {
            nearest: nearest_of_matrix(&matrix, neighbours),
            matrix: Some(matrix),
        })
    }
}

impl Share {
    /// What is to be released of it.
    pub(crate) fn answer(&self) -> Answer {
        Answer::Grown(Trees {
            features: u32::try_from(self.growing.edges.len()).unwrap_or(u32::MAX),
            trees: self.tables.clone(),
        })
    }
}

struct Compared {
    nearest: Vec<similarity::forest::neighbours::Nearest>,
    matrix: Option<ndarray::Array2<f64>>,
}

/// Whether two trees part patients alike; a release rule may have changed the counts at their ends.
fn same_splits(told: &TreeTable, own: &TreeTable) -> bool {
    let alike = |(told, own): (&protocol::message::NodeTable, &protocol::message::NodeTable)| {
        let same = match (&told.kind, &own.kind) {
            (NodeKind::Terminal(_), NodeKind::Terminal(_)) => true,
            (told, own) => told == own,
        };
        same && told.patients == own.patients
    };
    told.nodes().len() == own.nodes().len() && told.nodes().iter().zip(own.nodes()).all(alike)
}

fn errors((rule, neighbours, predicted): (&str, u32, &Predicted), outcome: &Outcome) -> RuleErrors {
    let similarity::forest::judge::ErrorSums { total, error } = predicted.errors(outcome);
    RuleErrors {
        rule: rule.to_owned(),
        neighbours,
        measure: match outcome {
            Outcome::Classes { .. } => ErrorMeasure::Misclassified,
            Outcome::Numeric(_) => ErrorMeasure::Squared,
            Outcome::Survival { .. } => ErrorMeasure::Discordant,
        },
        sums: Some(ErrorSums { total, error }),
    }
}

/// None unless every feature has a mean and a standard error: they need two trees with patients out of
/// bag.
fn told(importance: &importance::Importance) -> Vec<FeatureImportance> {
    let means = importance.mean.iter().zip(&importance.standard_error);
    let told: Vec<FeatureImportance> = means
        .map(|(mean, standard_error)| FeatureImportance {
            mean: *mean,
            standard_error: *standard_error,
        })
        .collect();
    let known = |one: &FeatureImportance| one.mean.is_finite() && one.standard_error.is_finite();
    if told.iter().all(known) {
        told
    } else {
        Vec::new()
    }
}

fn fault(error: impl std::error::Error) -> Stop {
    Stop::failed("KDR-FOREST", error.to_string())
}
