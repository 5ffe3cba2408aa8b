//! What a study asks of this site, as a page for whoever approves it.

use super::Approved;
use super::approve::ADVICE;
use crate::config::SiteConfig;
use crate::source::{self, Freezing};
use protocol::study::{Approval, Study};
use protocol::time::Timestamp;
use serde::{Serialize, Serializer};
use std::fmt;

/// How a study stands that was proposed.
const WAITS: &str = "waits for approval";

/// A study, before it is approved.
pub struct Review<'r> {
    /// The study.
    pub study: &'r Study,
    /// The site.
    pub config: &'r SiteConfig,
    /// The site's approval of it, where it has given one.
    pub approved: Option<&'r Approved>,
}

/// The studies of a site.
pub struct Listing {
    /// The day of the list.
    pub now: Timestamp,
    /// Those that it has approved.
    pub approved: Vec<Approved>,
    /// Those that wait for its approval.
    pub waiting: Vec<Study>,
}

/// An approval that was given.
#[derive(Serialize)]
pub struct GivenApproval<'a> {
    study: &'a str,
    digest: &'a str,
    patients_at_most: u64,
    commitment: &'a str,
}

impl<'a> GivenApproval<'a> {
    /// What its people see of it.
    #[must_use]
    pub fn of(approval: &'a Approval) -> Self {
        Self {
            study: &approval.study,
            digest: &approval.digest,
            patients_at_most: approval.patients_at_most,
            commitment: &approval.commitment,
        }
    }
}

impl fmt::Display for GivenApproval<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "approved {}: at most {} patients, commitment sha256:{}",
            self.study, self.patients_at_most, self.commitment
        )
    }
}

impl Serialize for Review<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let study = self.study;
        let hospitals: Vec<String> = study.roster().iter().map(ToString::to_string).collect();
        let operators = study.operators.iter();
        let operators: Vec<String> = operators.map(|one| one.name.to_string()).collect();
        let said = serde_json::json!({
            "study": study.name.as_str(),
            "title": study.title,
            "digest": study.digest(),
            "until": study.until.to_string(),
            "hospitals": hospitals,
            "operators": operators,
            "methods": study.methods,
            "approved": self.approved.is_some(),
            "differs": self.differs(),
            "text": self.to_string(),
        });
        said.serialize(serializer)
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let approved = self.approved.iter().map(|one| {
            let approval = &one.signed.approval;
            serde_json::json!({
                "study": one.study.name.as_str(),
                "status": one.standing(self.now),
                "digest": approval.digest,
                "patients_at_most": approval.patients_at_most,
                "notes": one.left_out_here(),
            })
        });
        let waiting = self.waiting.iter().map(|study| {
            serde_json::json!({
                "study": study.name.as_str(),
                "status": WAITS,
                "digest": study.digest(),
                "patients_at_most": null,
                "notes": [],
            })
        });
        serializer.collect_seq(approved.chain(waiting))
    }
}

impl fmt::Display for Review<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            study,
            config,
            approved,
        } = self;
        writeln!(out, "{}: {}\n{}\n", study.name, study.title, study.purpose)?;
        for sentence in approved.iter().flat_map(|one| one.left_out_here()) {
            writeln!(out, "{sentence}")?;
        }
        self.worst(out)?;
        writeln!(
            out,
            "\nIt ends after {}. Nothing is answered later.",
            study.until
        )?;
        writeln!(out, "\nHospitals. Every run asks all of them:")?;
        for hospital in &study.hospitals {
            let own = match hospital.name == config.site {
                true => ", this site",
                false => "",
            };
            writeln!(out, "  {} {}{own}", hospital.name, hospital.certificate)?;
        }
        writeln!(out, "Operators, who may submit jobs:")?;
        for operator in &study.operators {
            writeln!(out, "  {} {}", operator.name, operator.certificate)?;
        }
        writeln!(out, "Outcomes:")?;
        for outcome in &study.outcomes {
            let column = &outcome.specification.column;
            writeln!(
                out,
                "  {} (column {column:?}): {}",
                outcome.name, outcome.specification.label
            )?;
        }
        writeln!(out, "Features, {}:", study.features.len())?;
        for feature in &study.features {
            writeln!(out, "  {}: {}", feature.name, feature.label_with_unit())?;
        }
        let undeclared = source::undeclared_units(&config.source, &study.features);
        if !undeclared.is_empty() {
            writeln!(
                out,
                "No unit in site.toml for {}: declare it, or approve with --confirm-units if the numbers are in these units.",
                undeclared.join(", ")
            )?;
        }
        let differs = self.differs();
        if !differs.is_empty() {
            let differs = differs.join("\n  ");
            writeln!(out, "It does not fit this site:\n  {differs}\n{ADVICE}")?;
        }
        write!(out, "Digest of this text: sha256:{}", study.digest())
    }
}

impl Review<'_> {
    /// What site.toml declares otherwise, with both sides of each.
    fn differs(&self) -> Vec<String> {
        let cell_min = self.config.policy.rules().cell_min;
        let freezing = Freezing::of_study(&self.config.source, self.study, cell_min);
        let problems = freezing.declared();
        problems.iter().map(ToString::to_string).collect()
    }

    /// The most that could leave, then what this site's policy says about it.
    fn worst(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { study, config, .. } = self;
        let (limits, rules) = (study.limits, config.policy.rules());
        writeln!(out, "The most that can leave, if you approve:")?;
        writeln!(
            out,
            "  up to {} runs with {} rounds in all, of any of the methods below, and questions about {} patients of others or centres of \
             groups, by {} metrics.",
            limits.runs, limits.rounds, limits.queries, limits.metrics_for_groups
        )?;
        writeln!(
            out,
            "  where groups of similar patients are counted: each patient's outcome with noise, outcome_epsilon = {} for each metric and outcome.",
            study.outcome_epsilon
        )?;
        if study.outcome_epsilon > rules.outcome_epsilon_max {
            writeln!(
                out,
                "  outcome_epsilon is {}: this site's policy refuses it, for outcome_epsilon_max is {}.",
                study.outcome_epsilon, rules.outcome_epsilon_max
            )?;
        }
        for one in limits.beyond(&rules.ceilings) {
            writeln!(
                out,
                "  {} is {}: this site's policy refuses it, for {} is {}.",
                one.key, one.asked, one.ceiling, one.most
            )?;
        }
        if !study.renews.is_empty() {
            let names: Vec<&str> = study.renews.iter().map(|name| name.as_str()).collect();
            writeln!(
                out,
                "It shares patients with {names:?}: its card first counts the patients of one of them alone, over all hospitals."
            )?;
        }
        let counted = study.outcomes.iter();
        let counted = counted.map(|one| study.grids(one).columns.len()).max();
        if let Some(numbers) = counted.filter(|numbers| *numbers > 0) {
            writeln!(
                out,
                "When it opens, this site counts its patients with each outcome by {numbers} features on grids, in groups of {} (cell_min), \
                 masked. Runs take medians, knots and cut points from the sum.",
                rules.cell_min.max(1)
            )?;
        }
        if let Some(judgements) = &study.judgements {
            writeln!(
                out,
                "It learns from pairs of patients that physicians have judged ({}): approving copies the file that [pairs] of site.toml \
                 names. The pairs never leave.",
                judgements.label
            )?;
        }
        writeln!(out, "Methods:")?;
        for method in &study.methods {
            let allowed = match rules.methods.allows(method) {
                true => "this site's policy allows it",
                false => "this site's policy refuses it",
            };
            writeln!(out, "  {method}: {allowed}")?;
        }
        writeln!(
            out,
            "What each job makes leave, message by message: kindred-site-agent policy explain JOB.toml\n\
             Approving copies the patients who have an outcome into this site's folder. Runs read the copy alone."
        )
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for one in &self.approved {
            let state = one.standing(self.now);
            let approval = &one.signed.approval;
            lines.push(format!(
                "{}  {state}  at most {} patients  sha256:{}",
                one.study.name, approval.patients_at_most, approval.digest
            ));
            let left_out = one.left_out_here().into_iter();
            lines.extend(left_out.map(|sentence| format!("  {sentence}")));
        }
        for study in &self.waiting {
            let (name, digest) = (&study.name, study.digest());
            lines.push(format!("{name}  {WAITS}  sha256:{digest}"));
        }
        if lines.is_empty() {
            lines.push("this site has approved no study, and none was proposed to it".to_owned());
        }
        out.write_str(&lines.join("\n"))
    }
}
