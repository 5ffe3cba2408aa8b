//! What a site does in a run of forests: grows its trees, releases them, judges a forest.

mod at_site;
pub(crate) mod explain;
pub mod results;

// By this name the list of methods knows it.
pub(super) use self::Grower as Own;
use super::scores::assessed;
use super::{Secret, SiteRun};
use crate::cases::record::{Learned, LearnedForest, Record};
use crate::run::stop::Stop;
use ndarray::ArrayView1;
use privacy::Rules;
use protocol::assessment::{Assessment, FeatureImportance};
use protocol::failure::Code;
use protocol::message::forest::{Growing, Judging, NodeKind, NodeTable, Request, TreeTable, Trees};
use protocol::message::{Answer, forest as message};
use protocol::method::forest::assembly::assemble;
use protocol::method::forest::settings::{ForestSettings, Proximity};
use protocol::study;
use results::ForestResults;
use similarity::cohort::Outcome;
use similarity::compare::proximity::kernel::Training;
use similarity::judge::predicted::Predicted;
use similarity::learn::forest::edges::PooledEdges;
use similarity::learn::forest::federated::SiteForest;
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::trees::table;
use similarity::learn::forest::tuning::{Tuned, tune};
use similarity::learn::forest::{ClassWeights, EventTimes, Grown, TerminalNodes, grow, importance};
use similarity::numeric::seed::Seed;
use similarity::uses::nearest::{nearest, nearest_by, nearest_of_matrix, nearest_out_of_bag};
use similarity::uses::outlier;
use std::sync::Arc;

/// Patients whose proximities other than the plain one are held as a matrix; of more only the neighbours are kept.
const MATRIX_PATIENTS_MAX: usize = 10_000;

/// Forests at one site.
pub(super) struct Grower {
    settings: ForestSettings,
    /// Patients of every node of a tree that leaves, at least.
    patients_min: u32,
    /// What draws the bags of trees that leave, so that nobody else can tell which patients are in which bag.
    secret: Secret,
    /// The site's share of the common forest, once it has grown.
    share: Option<Share>,
}

/// The site's share of a common forest.
struct Share {
    growing: Arc<Growing>,
    grown: Grown,
    tables: Vec<TreeTable>,
}

/// One job's forests on one cohort.
struct Forests<'c> {
    site: &'c SiteRun,
    settings: &'c ForestSettings,
}

impl Grower {
    /// Whose released trees follow `rules`.
    pub(super) fn new(settings: ForestSettings, rules: &Rules, secret: Secret) -> Self {
        let patients_min = rules.terminal_node_min.max(rules.cell_min);
        Self {
            settings,
            patients_min: u32::try_from(patients_min).unwrap_or(u32::MAX),
            secret,
            share: None,
        }
    }

    pub(super) fn answer(&mut self, site: &SiteRun, request: &Request) -> Result<Answer, Stop> {
        let forests = Forests {
            site,
            settings: &self.settings,
        };
        match request {
            Request::GrowOwn => forests.grow_own(),
            Request::Grow(growing) => {
                // Other cut points get other bags; who submits the same job again gets the same forest.
                let (own_text, _) = study::split(&site.job.text);
                let bags = Seed((self.secret)(&asked(own_text, site.seed, growing)));
                let share = forests.grow(growing, bags, self.patients_min)?;
                Ok(self.share.insert(share).answer())
            }
            Request::Judge(judging) => {
                let grown = self.in_common(site, judging)?;
                forests.judged(&grown, None)
            }
        }
    }

    /// The common forest, and which of all its trees are held to have seen each patient of this cohort.
    pub(super) fn in_common(&self, site: &SiteRun, judging: &Judging) -> Result<Grown, Stop> {
        let share = self.share.as_ref().ok_or_else(Stop::early)?;
        share.within(site, judging)
    }
}

/// What a site is asked to grow, in bytes.
fn asked(job: &str, seed: Seed, growing: &Growing) -> Vec<u8> {
    let Growing {
        trees,
        edges,
        event_times,
        class_weights,
    } = growing;
    let mut bytes = Vec::new();
    let mut put = |values: &[u8]| {
        bytes.extend((values.len() as u64).to_be_bytes());
        bytes.extend(values);
    };
    put(job.as_bytes());
    put(&seed.0.to_be_bytes());
    put(&trees.to_be_bytes());
    for list in edges.iter().chain([event_times, class_weights]) {
        let values: Vec<u8> = list.iter().flat_map(|value| value.to_be_bytes()).collect();
        put(&values);
    }
    bytes
}

impl Forests<'_> {
    /// A forest of this cohort alone, judged; it stays here.
    fn grow_own(&self) -> Result<Answer, Stop> {
        let cohort = &self.site.cohort.cohort;
        let mut settings = self.settings.growing(cohort.outcome(), self.settings.trees);
        let mut tuned = None;
        if self.settings.node_size.is_none() {
            let found = tune(cohort, &settings, self.site.seed).map_err(fault)?;
            settings = found.applied_to(settings);
            tuned = Some(found);
        }
        let grown = grow(cohort, &settings, self.site.seed).map_err(fault)?;
        self.judged(&grown, tuned.as_ref())
    }

    /// The site's share of the common forest, as tables of counts that no rule has seen yet.
    fn grow(&self, growing: &Arc<Growing>, bags: Seed, patients_min: u32) -> Result<Share, Stop> {
        let cohort = &self.site.cohort.cohort;
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
            return Err(Stop::failed(Code::Forest, text));
        }
        let settings = settings.federated(edges.clone(), patients_min);
        let grown = grow(cohort, &settings, bags).map_err(fault)?;
        // The gate judges the counts; that no threshold is a patient's value is judged here.
        SiteForest::new(grown.forest.clone(), &edges, patients_min).map_err(fault)?;
        let tables = table::tables(&grown, cohort).map_err(fault)?;
        Ok(Share {
            growing: Arc::clone(growing),
            grown,
            tables,
        })
    }

    /// Judges a forest by this cohort: each patient by the trees where it is out of bag.
    fn judged(&self, grown: &Grown, tuned: Option<&Tuned>) -> Result<Answer, Stop> {
        let cohort = &self.site.cohort.cohort;
        let outcome = cohort.outcome();
        let nodes = grown.forest.apply(cohort.columns()).map_err(fault)?;
        let prediction = grown.predict_out_of_bag(cohort.columns()).map_err(fault)?;
        let predicted = Predicted::of_forest(&prediction);
        let compared = self.compared(grown, &nodes)?;
        let neighbours = self.settings.neighbours as usize;
        let horizon = self.site.job.cohort.outcome.kind.horizon();
        let unseen = nearest_out_of_bag(&nodes, &grown.in_bag, neighbours).map_err(fault)?;
        let by_neighbours = Predicted::of_neighbours(&unseen, outcome, horizon);
        let importance = match self.settings.importance {
            true => {
                to_message(&importance::permutation(grown, cohort, self.site.seed).map_err(fault)?)
            }
            false => Vec::new(),
        };
        let classes = match outcome {
            Outcome::Classes { codes, .. } => codes.to_vec(),
            Outcome::Numeric(_) | Outcome::Survival { .. } => vec![0; cohort.patients()],
        };
        let outliers = outlier::outlier_measure(&nodes, &classes).map_err(fault)?;
        let shares = shares_of(&prediction);
        let results = ForestResults {
            record: Record::new(
                &self.site.job,
                &self.site.cohort,
                Learned::Forest(LearnedForest::new(&grown.in_bag)),
            ),
            forest: &grown.forest,
            nodes: &nodes,
            predicted: &predicted,
            shares: &shares,
            nearest: &compared.nearest,
            outliers: &outliers,
            proximity: compared.matrix.as_ref(),
            kernel: self.settings.proximity.kernel(),
            in_bag: &grown.in_bag,
            tuned,
            outcome,
            specification: &self.site.job.cohort.outcome,
            patients: &self.site.cohort.patients,
            seed: self.site.seed,
        };
        results::write(&results, &self.site.folder)
            .map_err(|error| Stop::failed(Code::Results, error.to_string()))?;
        let rules = [
            ("forest", 0, &predicted),
            (
                Proximity::JUDGED.name(),
                self.settings.neighbours,
                &by_neighbours,
            ),
        ];
        Ok(Answer::Assessed(Assessment {
            importance,
            ..assessed(&rules, outcome, &shares)
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
        let kernel = self.settings.proximity.kernel();
        let training = Training {
            forest: &grown.forest,
            in_bag: &grown.in_bag,
            nodes,
        };
        if nodes.patients() > MATRIX_PATIENTS_MAX {
            return Ok(Compared {
                nearest: nearest_by(kernel, training, neighbours).map_err(fault)?,
                matrix: None,
            });
        }
        let matrix = kernel.square(training).map_err(fault)?;
        Ok(Compared {
            nearest: nearest_of_matrix(&matrix, neighbours),
            matrix: Some(matrix),
        })
    }
}

impl Share {
    /// The forest of these trees and those of all other sites.
    fn within(&self, site: &SiteRun, judging: &Judging) -> Result<Grown, Stop> {
        let all = &judging.trees.trees;
        let first = judging.first_tree as usize;
        let own = all.iter().skip(first).take(self.tables.len());
        let told = own
            .zip(&self.tables)
            .filter(|(told, own)| same_splits(told, own));
        if told.count() != self.tables.len() {
            let text = "the common forest does not hold the trees that this site gave";
            return Err(Stop::failed(Code::Forest, text));
        }
        let Growing {
            event_times,
            class_weights,
            ..
        } = self.growing.as_ref();
        let cohort = &site.job.cohort;
        let forest = assemble(cohort, event_times, class_weights, all).map_err(fault)?;
        let in_bag = self.grown.in_bag.within_evenly(first, all.len());
        let in_bag = in_bag.ok_or_else(|| {
            Stop::failed(
                Code::Forest,
                "the bags of the site's trees do not fit the common forest",
            )
        })?;
        Ok(Grown { forest, in_bag })
    }

    /// What is to be released of it.
    fn answer(&self) -> Answer {
        Answer::Forest(message::Answer::Grown(Trees {
            features: u32::try_from(self.growing.edges.len()).unwrap_or(u32::MAX),
            trees: self.tables.clone(),
        }))
    }
}

struct Compared {
    nearest: Vec<similarity::uses::nearest::Nearest>,
    matrix: Option<ndarray::Array2<f64>>,
}

/// Whether two trees part patients alike; a release rule may have changed the counts at their ends.
fn same_splits(told: &TreeTable, own: &TreeTable) -> bool {
    let alike = |(told, own): (&NodeTable, &NodeTable)| {
        let same = match (&told.kind, &own.kind) {
            (NodeKind::Terminal(_), NodeKind::Terminal(_)) => true,
            (told, own) => told == own,
        };
        same && told.patients == own.patients
    };
    told.nodes().len() == own.nodes().len() && told.nodes().iter().zip(own.nodes()).all(alike)
}

/// The shares of the classes that trees which have not seen a patient give; nothing of another outcome.
fn shares_of(prediction: &Prediction) -> Vec<Vec<f64>> {
    let of = |row: ArrayView1<'_, f64>| match row.sum().is_nan() {
        true => Vec::new(),
        false => row.to_vec(),
    };
    match prediction {
        Prediction::Classes(shares) => shares.outer_iter().map(of).collect(),
        Prediction::Numeric(_) | Prediction::CumulativeHazard(_) => Vec::new(),
    }
}

/// None unless every feature has a mean and a standard error: they need two trees with patients out of
/// bag.
fn to_message(importance: &importance::Importance) -> Vec<FeatureImportance> {
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
    Stop::numeric(Code::Forest, error)
}
