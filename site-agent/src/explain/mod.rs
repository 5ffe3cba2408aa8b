//! What a job would make this site send, before anyone agrees to it.

mod covered;
pub mod kinds;
mod table;

use crate::method;
use kinds::MessageKind;
use privacy::{Limits, Policy, Refusal, Rules};
use protocol::job::Job;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use table::{paragraph, table};

/// What is said where no rule is lowered.
const NOTHING_LOWERED: &str = "Nothing is lowered: no rule protects less than its default does.";

/// The rules of a policy that protect less than their defaults.
#[derive(Debug, Serialize)]
pub struct Lowered {
    lowered: Vec<String>,
}

impl Lowered {
    /// Of a policy.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        Self {
            lowered: policy.lowered(),
        }
    }

    /// What is to be said where there is none.
    #[must_use]
    pub fn remark(&self) -> Option<&'static str> {
        self.lowered.is_empty().then_some(NOTHING_LOWERED)
    }
}

impl fmt::Display for Lowered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lowered.join("\n"))
    }
}

/// Every kind of message that a job would make this site send, and what the policy says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    job: String,
    asked_by: String,
    /// Every rule that refuses the job before its cohort is read; empty where none does.
    pub refusals: Vec<Refusal>,
    /// The kinds of message, in the order of a run.
    pub messages: Vec<MessageKind>,
    rules: Rules,
    lowered: Vec<String>,
    closing: [(&'static str, String); 3],
}

impl Explanation {
    /// Explains `job`, submitted by `operator`, where runs have `used` so much of the limits of its study.
    #[must_use]
    pub fn new(policy: &Policy, job: &Job, operator: &str, used: &Limits) -> Self {
        let told = covered::explained(method::explained(policy.rules(), job), policy.rules(), job);
        Self {
            closing: [
                ("Closed by a rule", closed(policy.rules())),
                ("Held by a brake only", told.brake),
                ("Not closed", told.open),
            ],
            job: job.name.clone(),
            asked_by: format!("the operator {operator:?}"),
            refusals: policy.refusals(&job.facts(operator), used),
            messages: told.messages,
            rules: policy.rules().clone(),
            lowered: policy.lowered(),
        }
    }

    /// Explains `job`, whoever of the listed operators submits it.
    #[must_use]
    pub fn for_any_operator(policy: &Policy, job: &Job, used: &Limits) -> Self {
        let mut explanation = Self::new(policy, job, "", used);
        let operators = &policy.rules().operators;
        if *operators != privacy::Allowed::nothing() {
            explanation
                .refusals
                .retain(|refusal| refusal.rule != "operators");
        }
        explanation.asked_by = format!("any operator allowed here ({operators})");
        explanation
    }

    /// Bytes over a whole run at most, without framing.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sent = self
            .messages
            .iter()
            .filter(|message| message.kind != "refusal");
        sent.map(|message| message.bytes * message.times).sum()
    }
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let refusals: Vec<String> = self.refusals.iter().map(ToString::to_string).collect();
        let closing: BTreeMap<&str, &String> = self
            .closing
            .iter()
            .map(|(heading, text)| (*heading, text))
            .collect();
        let said = serde_json::json!({
            "job": self.job,
            "asked_by": self.asked_by,
            "admitted": refusals.is_empty(),
            "refusals": refusals,
            "conditions": conditions(&self.rules),
            "lowered": self.lowered,
            "messages": self.messages,
            "bytes": self.bytes(),
            "limits": closing,
        });
        said.serialize(serializer)
    }
}

/// What rules close.
fn closed(rules: &Rules) -> String {
    let least = rules.cell_min.max(1);
    let small = match least {
        1 => "Counts leave as they are, for cell_min is 1.".to_owned(),
        least => format!(
            "What is sent as a count of 1 to {} patients leaves rounded or not at all.",
            least - 1
        ),
    };
    format!(
        "Rows and identifiers have no message. {small} A site answers only what this job asks, and gives one answer to a \
         question. It answers jobs of {} sites or more, over the patients that its study has frozen, and no more than the limits of the \
         study.",
        rules.sites_min,
    )
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "Job {:?}, submitted by {}.\n",
            self.job, self.asked_by
        )?;
        if self.refusals.is_empty() {
            writeln!(
                formatter,
                "The policy admits it. Once the cohort has been read, it must still pass:"
            )?;
        } else {
            writeln!(formatter, "The policy refuses it, before anything is read:")?;
            for refusal in &self.refusals {
                writeln!(formatter, "  {refusal}")?;
            }
            writeln!(
                formatter,
                "\nWere these rules changed, the cohort would still have to pass:"
            )?;
        }
        for condition in conditions(&self.rules) {
            writeln!(formatter, "  {condition}")?;
        }
        if self.lowered.is_empty() {
            writeln!(formatter, "\n{NOTHING_LOWERED}")?;
        } else {
            writeln!(formatter, "\nRules that protect less than the defaults do:")?;
            for sentence in &self.lowered {
                writeln!(formatter, "  {sentence}")?;
            }
        }
        writeln!(formatter, "\nMessages that this site would send:\n")?;
        formatter.write_str(&table(&self.messages))?;
        writeln!(formatter, "\nWhat each can tell in the worst case:\n")?;
        for message in &self.messages {
            formatter.write_str(&paragraph(message.kind, &message.worst))?;
        }
        writeln!(
            formatter,
            "\nIn all at most {} bytes over the run, and a few hundred bytes of framing a message. \
             Constant features\nmake matrices smaller. No patient, no row and no identifier is \
             among them.\n",
            report::grouped(self.bytes())
        )?;
        for (heading, text) in &self.closing {
            formatter.write_str(&paragraph(heading, text))?;
        }
        Ok(())
    }
}

fn conditions(rules: &Rules) -> [String; 2] {
    [
        format!(
            "patients_min: at least {} patients",
            rules.patients_min.max(rules.cell_min)
        ),
        format!(
            "class_patients_min: at least {} patients in each outcome class, or with an event",
            rules.class_patients_min
        ),
    ]
}
