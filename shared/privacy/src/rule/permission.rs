//! What leaves only where a site says so in as many words, beyond the usual messages.

use super::refusal::Refusal;

/// Something that a job may ask for and a site has to permit. Nothing is permitted until it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// That the d x d second moments of the patients are learnt: rounds of UnPSL tell them, and
    /// `correlation = "pooled"` sends them.
    SecondMoments,
    /// That sums over pairs of patients within this site are released, as rounds of UnPSL are. They are no sums over patients: they depend on
    /// which patients are together at a site, and tables of three sites were read from them.
    PairSums,
    /// That the trees of a forest leave (`scope = "federated"`).
    Forests,
    /// That others receive how many of the patients are similar to a patient of theirs, with their outcomes.
    Neighbours,
    /// That sums of scores and other derivatives are exact, not in steps of a fraction of one patient.
    ExactSums,
    /// That sums over groups of the patients are released, from which the clusters follow that all sites share.
    Clusters,
}

impl Permission {
    /// Every permission, in the order in which they are named. What is missing here, no site can grant.
    pub const ALL: [Self; 6] = [
        Self::SecondMoments,
        Self::PairSums,
        Self::ExactSums,
        Self::Forests,
        Self::Neighbours,
        Self::Clusters,
    ];

    /// The key in site.toml that grants it, and the rule that refuses without.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SecondMoments => "second_moments",
            Self::PairSums => "pair_sums",
            Self::ExactSums => "exact_sums",
            Self::Forests => "forests",
            Self::Neighbours => "neighbours",
            Self::Clusters => "clusters",
        }
    }

    /// The no to a job that asks for it, of a site that does not grant it.
    pub(crate) fn not_granted(self) -> Refusal {
        let asked = match self {
            Self::SecondMoments => {
                "the job's messages tell the second moments of the patients (rounds of UnPSL do)"
            }
            Self::PairSums => {
                "the job asks for sums over pairs of patients within each site, from which tables of a site were read (rounds of UnPSL)"
            }
            Self::ExactSums => {
                "the job asks for exact sums (precision = \"exact\", or consensus = \"admm\")"
            }
            Self::Forests => {
                "the job asks for the trees of a forest grown on the patients (scope = \"federated\")"
            }
            Self::Neighbours => {
                "the job asks how many patients are similar to patients of others, and for their outcomes"
            }
            Self::Clusters => {
                "the job asks for sums over groups of the patients, to find shared clusters"
            }
        };
        let text = format!("{asked}, which the site does not allow");
        Refusal::new(self.name(), text)
    }

    /// The no to a message that needs it, where the job did not ask for it.
    pub(crate) fn not_asked(self) -> Refusal {
        let what = match self {
            Self::SecondMoments => "second moments",
            Self::PairSums => "sums over pairs of patients",
            Self::ExactSums => "exact sums",
            Self::Forests => "trees",
            Self::Neighbours => "counts of similar patients",
            Self::Clusters => "sums over groups of patients",
        };
        let text = format!("{what} were not asked for when the job was admitted");
        Refusal::new(self.name(), text)
    }
}
