//! How much of a study's limits its runs have used.

use super::{Approved, RULE};
use crate::books::ledger::Used;
use privacy::{JobFacts, Refusal, Rules};
use protocol::job::Job;
use protocol::study::Study;
use protocol::time::Timestamp;
use serde::Serialize;
use std::fmt;

/// A limit of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Its key in the study's text.
    pub limit: &'static str,
    /// What the text says.
    pub allowed: u64,
    /// What runs have used of it at this site.
    pub used: u64,
    /// What is left.
    pub left: u64,
}

/// What is left of a study at this site.
#[derive(Debug, Serialize)]
pub struct Budget {
    study: String,
    status: String,
    /// The last day of its runs.
    until: String,
    limits: [Limit; 3],
    own_rules: OwnRules,
}

/// What this site's policy allows of one set of patients.
#[derive(Debug, Serialize)]
struct OwnRules {
    runs_per_cohort_max: u64,
    rounds_per_cohort_max: u64,
    queries_per_cohort_max: u64,
}

fn limits(study: &Study, used: &Used) -> [Limit; 3] {
    let limits = study.limits;
    [
        ("runs", limits.runs, used.runs),
        ("rounds", limits.rounds, used.rounds),
        ("queries", limits.queries, used.queries),
    ]
    .map(|(limit, allowed, used)| Limit {
        limit,
        allowed,
        used,
        left: allowed.saturating_sub(used),
    })
}

impl Budget {
    /// Of a study that the site has approved.
    #[must_use]
    pub fn new(approved: &Approved, used: &Used, rules: &Rules, now: Timestamp) -> Self {
        Self {
            study: approved.study.name.to_string(),
            status: approved.standing(now),
            until: approved.study.until.to_string(),
            limits: limits(&approved.study, used),
            own_rules: OwnRules {
                runs_per_cohort_max: rules.runs_per_cohort_max,
                rounds_per_cohort_max: rules.rounds_per_cohort_max,
                queries_per_cohort_max: rules.queries_per_cohort_max,
            },
        }
    }
}

/// Holds a job to what is left of its study, by what other runs have `used`: a run, the rounds and the queries that it may need at
/// most. A validation that the job does not insist on takes no more than is left of the first half of the rounds.
///
/// # Errors
/// A [`Refusal`] that names every limit which the job goes beyond.
pub fn judge(job: &Job, used: &Used, facts: &mut JobFacts) -> Result<(), Refusal> {
    let Some(study) = job.study.as_ref().filter(|_| !job.opens_study()) else {
        return Ok(());
    };
    let asked = [1, facts.round_limit, facts.queries];
    let limits = limits(study, used);
    let beyond = limits
        .iter()
        .zip(asked)
        .filter(|(limit, asked)| *asked > limit.left);
    let lines: Vec<String> = beyond
        .map(|(limit, asked)| {
            let Limit {
                limit,
                allowed,
                used,
                ..
            } = limit;
            format!("{limit} is {allowed}, of which {used} are used, and the job asks for {asked}")
        })
        .collect();
    let [_, rounds, _] = &limits;
    facts.validation = facts.validation.filter(|validation| {
        let all = rounds.used.saturating_add(facts.round_limit);
        all.saturating_add(validation.rounds) <= rounds.allowed / 2
    });
    match lines.is_empty() {
        true => Ok(()),
        false => Err(Refusal {
            rule: RULE.to_owned(),
            text: format!(
                "limits of the study {:?}: {}",
                study.name.as_str(),
                lines.join("; ")
            ),
        }),
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}: {}, last day {}",
            self.study, self.status, self.until
        )?;
        writeln!(
            out,
            "  {:<8}{:>10}{:>10}{:>10}",
            "LIMIT", "ALLOWED", "USED", "LEFT"
        )?;
        for one in &self.limits {
            let Limit {
                limit,
                allowed,
                used,
                left,
            } = one;
            writeln!(out, "  {limit:<8}{allowed:>10}{used:>10}{left:>10}")?;
        }
        let own = &self.own_rules;
        write!(
            out,
            "  This site's own rules allow {} runs, {} rounds and {} queries over one set of patients.",
            own.runs_per_cohort_max, own.rounds_per_cohort_max, own.queries_per_cohort_max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::study::{by_nobody, of_job};

    fn job() -> Job {
        let text = "name = \"demo\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
            [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"yes\"]\n\
            [[features]]\nname = \"age\"\nkind = \"numeric\"\n[unpsl]\nround_limit = 30\n";
        let (own, study) = of_job(&Job::parse(text).unwrap(), "lab").unwrap();
        let limits = "limits = { runs = 1000, rounds = 1000000, queries = 1000000 }";
        assert!(study.contains(limits));
        let study = study.replace(limits, "limits = { runs = 3, rounds = 100, queries = 0 }");
        let study = Study::parse(&by_nobody(&study)).unwrap();
        Job::parse(&study.join(&own)).unwrap()
    }

    #[test]
    fn a_job_takes_what_is_left_of_its_study_and_no_more() {
        let job = job();
        let said = |runs, rounds| {
            let used = Used {
                runs,
                rounds,
                queries: 0,
            };
            let judged = judge(&job, &used, &mut job.facts("lab"));
            judged
                .err()
                .map_or_else(String::new, |refusal| refusal.text)
        };
        assert_eq!(said(2, 67), "");
        assert_eq!(
            said(3, 67),
            "limits of the study \"demo\": runs is 3, of which 3 are used, and the job asks for 1"
        );
        assert_eq!(
            said(4, 68),
            "limits of the study \"demo\": runs is 3, of which 4 are used, and the job asks for 1; rounds is 100, of which 68 are \
             used, and the job asks for 33"
        );
    }

    #[test]
    fn a_validation_that_is_not_insisted_on_leaves_half_of_the_rounds_to_others() {
        let job = job();
        let mut facts = job.facts("lab");
        let validation = facts.validation;
        assert!(validation.is_some_and(|one| one.rounds > 20));
        judge(&job, &Used::default(), &mut facts).unwrap();
        assert_eq!(facts.validation, None);
        facts.round_limit = 1;
        facts.validation = validation.map(|one| privacy::ValidationFacts { rounds: 49, ..one });
        let wanted = facts.validation;
        judge(&job, &Used::default(), &mut facts).unwrap();
        assert_eq!(facts.validation, wanted);
    }
}
