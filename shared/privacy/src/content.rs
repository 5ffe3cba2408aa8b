//! What a message carries of a cohort, in parts that rules judge one by one. Each part says by itself what it costs and
//! which permission it needs.

use crate::rule::Permission;

/// One part of what a message carries of a cohort. A message is a list of them; a notice (a refusal, a problem, a mere
/// "ready") is an empty one.
pub enum Content<'message> {
    /// The cohort's size and the sizes of its classes.
    Cohort {
        /// Patients.
        patients: u64,
        /// Patients of each class; empty where the message tells none.
        classes: &'message [u64],
    },
    /// Moments of features, each over the whole cohort.
    Columns {
        /// Patients of the cohort.
        patients: u64,
        /// One per feature.
        columns: Vec<Column<'message>>,
    },
    /// Histograms of features, each over the values present in the whole cohort.
    Histograms(Vec<Histogram<'message>>),
    /// Second moments X'X (d x d) of the patients.
    SecondMoments,
    /// Tables of patients by what is predicted of them; a rule sets to none what it withholds.
    Tables(Vec<Table<'message>>),
    /// Held-out patients that were classified right and wrong; a rule sets to none what it withholds. They count as a
    /// round: without a limit a model made for the purpose could be asked about again and again.
    HeldOut(Vec<&'message mut Option<HeldOutVotes>>),
    /// How far predictions of the whole cohort are off.
    Errors(Vec<Errors<'message>>),
    /// The trees of a forest, by their terminal nodes.
    Nodes(Vec<TerminalNode<'message>>),
    /// One round's local update of a model, fitted to the whole cohort.
    LocalUpdate,
    /// The same, where what is fitted are pairs of patients within the site.
    PairSums,
    /// Sums over groups of patients that the site has made once for all, whatever their outcomes: each by the share of it that lies within a
    /// radius, as its mean and variances tell it, and with noise in the outcomes. A budget of its own counts the questions.
    Groups {
        /// Groups.
        groups: u64,
        /// Patients in them.
        patients: u64,
    },
    /// What is released of clusters of such groups: each count is of a whole number of them.
    Clusters(Vec<u64>),
    /// Patients by group and level, and sums over them.
    Tabulated,
    /// What a gate has covered; it leaves by the gate that covered it, and by no other.
    Covered,
}

/// What a message costs of the budgets of its run, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// It tells nothing of a cohort but its size, or another budget counts it.
    Nothing,
    /// It makes the run one that has released something. Once a run.
    Message,
    /// The same, and it is so many rounds: one for each model that it is released of.
    Rounds(u64),
}

/// The moments of one feature.
pub enum Column<'message> {
    /// Sums over the values present.
    Numeric {
        /// Values present.
        count: &'message mut u64,
        /// Their sum.
        sum: &'message mut f64,
        /// The sum of their squares.
        sum_squares: &'message mut f64,
        /// Values missing.
        missing: &'message mut u64,
    },
    /// A table of patients by level.
    Categorical {
        /// Patients at each level.
        counts: &'message mut [u64],
        /// Values missing.
        missing: &'message mut u64,
    },
}

/// A histogram of one feature: group i reaches from where the one before ends up to `ends[i]`.
pub struct Histogram<'message> {
    /// Where each group ends, ascending.
    pub ends: &'message mut Vec<u32>,
    /// Values in each.
    pub counts: &'message mut Vec<u64>,
}

/// The patients of one terminal node of a tree, by outcome.
pub enum TerminalNode<'message> {
    /// Patients of each class.
    Classes {
        /// Patients of the node.
        patients: u64,
        /// One count per class.
        counts: &'message mut [u64],
    },
    /// The mean outcome of the node's patients.
    Mean {
        /// Patients of the node.
        patients: u64,
    },
    /// Events and time at risk by groups of neighbouring event times.
    Survival {
        /// Patients of the node.
        patients: u64,
        /// Where each group ends, rising.
        ends: &'message mut Vec<u32>,
        /// Events in each.
        events: &'message mut Vec<u64>,
        /// Time at risk in each, summed over patients.
        exposures: &'message mut Vec<f64>,
    },
}

/// What one rule of prediction says of the whole cohort.
pub struct Table<'message> {
    /// Patients by true (row) and predicted class (column), square; none where withheld.
    pub confusion: &'message mut Option<Vec<Vec<u64>>>,
    /// Patients of each class (row) by bins of a score; none where withheld, or where nothing has a score.
    pub scores: &'message mut Option<Vec<Vec<u64>>>,
    /// The wrong ones are released in multiples of this; 1 where they are exact.
    pub rounded_to: &'message mut u64,
    /// Patients who are judged, or pairs of them.
    pub judged: u64,
    /// Sums by which it is better than another rule; none where withheld.
    pub gains: [&'message mut Option<[f64; 5]>; 2],
}

/// How neighbours' votes serve held-out patients.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct HeldOutVotes {
    /// Patients whose class the majority names.
    pub right: u64,
    /// All others.
    pub wrong: u64,
    /// The sum over all of them of the log loss of the neighbours' smoothed shares.
    pub log_loss: f64,
}

/// How far a model's predictions of the cohort are off, as sums that add up over sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorSums {
    /// Patients with a prediction; for survival times comparable pairs of them.
    pub total: u64,
    /// Patients misclassified, the sum of squared errors, or discordant pairs.
    pub error: f64,
}

/// Error sums as a rule sees them; it sets to none what it withholds.
pub enum Errors<'message> {
    /// Both are counts: of patients, or of pairs of them.
    Counted(&'message mut Option<ErrorSums>),
    /// A sum of squares over `total` patients.
    Summed(&'message mut Option<ErrorSums>),
}

impl Content<'_> {
    /// What this part costs by itself.
    #[must_use]
    pub fn cost(&self) -> Cost {
        match self {
            Self::Cohort { .. } | Self::Groups { .. } | Self::Clusters(_) => Cost::Nothing,
            Self::Columns { .. }
            | Self::Histograms(_)
            | Self::SecondMoments
            | Self::Tables(_)
            | Self::Errors(_)
            | Self::Tabulated
            | Self::Covered => Cost::Message,
            Self::HeldOut(_) | Self::Nodes(_) | Self::LocalUpdate | Self::PairSums => {
                Cost::Rounds(1)
            }
        }
    }

    /// What the site must permit and the job must have asked for, where the usual rules are not enough.
    #[must_use]
    pub fn permission(&self) -> Option<Permission> {
        match self {
            Self::SecondMoments | Self::LocalUpdate => Some(Permission::SecondMoments),
            Self::PairSums => Some(Permission::PairSums),
            Self::Nodes(_) => Some(Permission::Forests),
            Self::Groups { .. } => Some(Permission::Neighbours),
            Self::Clusters(_) => Some(Permission::Clusters),
            Self::Cohort { .. }
            | Self::Columns { .. }
            | Self::Histograms(_)
            | Self::Tables(_)
            | Self::HeldOut(_)
            | Self::Errors(_)
            | Self::Tabulated
            | Self::Covered => None,
        }
    }
}

impl Cost {
    /// What a message of these parts costs: the rounds of all of them, else the most that any of them costs.
    #[must_use]
    pub fn of(contents: &[Content<'_>]) -> Self {
        let costs = contents.iter().map(Content::cost);
        costs.fold(Self::Nothing, |sum, cost| match (sum, cost) {
            (Self::Rounds(one), Self::Rounds(other)) => Self::Rounds(one.saturating_add(other)),
            (one, other) => one.max(other),
        })
    }

    /// The rounds among it.
    #[must_use]
    pub fn rounds(self) -> u64 {
        match self {
            Self::Nothing | Self::Message => 0,
            Self::Rounds(rounds) => rounds,
        }
    }
}

impl std::fmt::Debug for HeldOutVotes {
    /// Nothing of the cohort.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HeldOutVotes")
            .finish_non_exhaustive()
    }
}
