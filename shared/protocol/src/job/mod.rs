//! The job: what a researcher asks of the sites, as one TOML text that every party parses alike.

mod read;

use crate::cohort::{CohortSpecification, Grids, Judgements};
use crate::exchange::Asking;
use crate::method::Method;
use crate::name::SiteName;
use crate::stage::agreeing::Agreeing;
use crate::study::{Study, StudyOutcome};
use privacy::sums::{WORD_BYTES, Words, shape};
use privacy::{Content, Disclosure, JobFacts, Permission};
use similarity::numeric::precision::Precision;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A job, parsed. Its text travels; its types do not.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The text that it was parsed from.
    pub text: String,
    /// Its name, also of the default output folder.
    pub name: String,
    /// The sites, in the order of every list of this run.
    pub sites: Vec<SiteName>,
    /// Bytes of all sites' answers to one question: every site receives them all.
    pub answers_bytes_max: u64,
    /// The seed where the submission names none.
    pub seed: u64,
    /// Which patients, and what of them.
    pub cohort: Arc<CohortSpecification>,
    /// Pairs of them that physicians have judged, where the study has such.
    pub judgements: Option<Judgements>,
    /// How patients are compared.
    pub method: Method,
    /// How finely the sites say what they add to a sum.
    pub precision: Precision,
    /// The study that it is of; none of a job that has its sites, its outcome and its features in itself, which no site answers.
    pub study: Option<Arc<Study>>,
}

/// The largest answer of a kind that is summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Largest {
    /// Words of its numbers.
    pub words: usize,
    /// How many numbers of which kind.
    pub shape: String,
    /// What a site must permit, or its gate lets none of them leave.
    pub permissions: BTreeSet<Permission>,
}

impl Largest {
    /// Bytes of its words.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.words * WORD_BYTES) as u64
    }
}

impl Job {
    /// The job on one cohort, whichever sites it names.
    #[must_use]
    pub fn alone(self, site: SiteName) -> Self {
        Self {
            sites: vec![site],
            method: self.method.alone(),
            ..self
        }
    }

    /// Whether a run of it opens its study: it is the study's card.
    #[must_use]
    pub fn opens_study(&self) -> bool {
        matches!(self.method, Method::Card(_))
    }

    /// Its outcome as its study names it; none of a job without a study.
    #[must_use]
    pub fn study_outcome(&self) -> Option<&StudyOutcome> {
        let mut outcomes = self.study.as_ref()?.outcomes.iter();
        outcomes.find(|one| one.specification == self.cohort.outcome)
    }

    /// Whether it is of one cohort, in one process: nobody is introduced there, and nothing is covered.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.sites.len() == 1
    }

    /// What the sites count on grids.
    #[must_use]
    pub fn grids(&self) -> Grids {
        self.method.grids(&self.cohort)
    }

    /// The largest answer of each kind that is summed, as the words of its numbers leave.
    #[must_use]
    pub fn largest_summed(&self) -> BTreeMap<&'static str, Largest> {
        let described = Agreeing::new(Arc::clone(&self.cohort)).blank();
        let blanks = described
            .into_iter()
            .chain(self.method.largest(&self.cohort));
        let mut all: BTreeMap<_, Largest> = BTreeMap::new();
        for mut blank in blanks {
            let words = Words::wanted(&mut blank);
            let shape = shape(&mut blank);
            let content = blank.content();
            let permissions = content.iter().filter_map(Content::permission).collect();
            let known = all.get(blank.kind());
            if known.is_none_or(|known| known.words < words) {
                all.insert(
                    blank.kind(),
                    Largest {
                        words,
                        shape,
                        permissions,
                    },
                );
            }
        }
        all
    }

    /// The facts of this job, submitted by `operator`, that a site's policy judges.
    #[must_use]
    pub fn facts(&self, operator: &str) -> JobFacts {
        let needs = self.method.needs();
        let mut permissions = needs.permissions;
        if self.precision == Precision::Exact {
            permissions.insert(Permission::ExactSums);
        }
        let counts_for = self.study.as_ref().filter(|_| !self.opens_study());
        JobFacts {
            operator: operator.to_owned(),
            method: (!self.opens_study()).then(|| self.method.name().to_owned()),
            limits: counts_for.map(|study| study.limits),
            sites: self.sites.len() as u64,
            permissions,
            round_limit: needs.rounds,
            folds: needs.folds,
            validation: needs.validation,
            queries: needs.queries,
        }
    }
}
