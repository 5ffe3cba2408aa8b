//! How a policy says no.

/// A policy's no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {text}")]
pub struct Refusal {
    /// The rule, as site.toml names it; several, separated by `, `, where several say no.
    pub rule: String,
    /// What was asked and what the rule allows.
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(rule: &str, text: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            text: text.into(),
        }
    }

    /// A brake has ended the run.
    pub(crate) fn shut() -> Self {
        Self::new(
            "steepness",
            "the question's metric or regression is so steep that it would reveal single patients; nothing more of this run leaves. \
             If one feature nearly separates the outcomes, set a ridge or exclude the feature",
        )
    }

    /// All as one, or none.
    pub(crate) fn all(refusals: &[Self]) -> Option<Self> {
        let join = |part: fn(&Self) -> &str, separator| {
            let parts: Vec<&str> = refusals.iter().map(part).collect();
            parts.join(separator)
        };
        (!refusals.is_empty()).then(|| Self {
            rule: join(|refusal| &refusal.rule, ", "),
            text: join(|refusal| &refusal.text, "; "),
        })
    }
}
