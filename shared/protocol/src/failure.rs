//! What goes wrong, by name: the one table of codes, and what a site says in place of an answer.

use std::fmt;

/// Makes the codes, their names and their meanings of one table.
macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// What went wrong, for programs and for whoever searches a manual.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// Every code, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name, which never changes.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it means, in one sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }
        }
    };
}

codes! {
    // Why a run failed.
    Cohort "KDR-COHORT" "The data of a site does not fit the job.",
    Policy "KDR-POLICY" "The policy of a site refuses the job or a question.",
    Sites "KDR-SITES" "No site has what the run asks for.",
    Outcome "KDR-OUTCOME" "The method cannot use an outcome of this kind.",
    Pairs "KDR-PAIRS" "There are no similar or no dissimilar pairs of patients to learn from.",
    Standardise "KDR-STANDARDISE" "The features cannot be standardised.",
    Settings "KDR-SETTINGS" "The settings do not fit the features that are left after standardisation.",
    Folds "KDR-FOLDS" "A site has too few patients for the folds of the cross-validation.",
    Selection "KDR-SELECTION" "Cross-validation can choose none of the candidates.",
    Unpsl "KDR-UNPSL" "The arithmetic of UnPSL failed.",
    Contribution "KDR-CONTRIBUTION" "A site's local update cannot be used.",
    Forest "KDR-FOREST" "A forest cannot be grown or judged.",
    Numbers "KDR-NUMBERS" "The computation diverged beyond finite numbers.",
    State "KDR-STATE" "A site was started again and has lost the run.",
    Results "KDR-RESULTS" "A site cannot write its local results.",
    Local "KDR-LOCAL" "A job on one cohort alone cannot be finished.",
    Sum "KDR-SUM" "The sum over the sites is impossible for patients: one site sent false numbers.",
    Protocol "KDR-PROTOCOL" "The protocol does not allow this message here.",
    // Why a call was refused.
    Job "KDR-JOB" "The job cannot be read.",
    Signature "KDR-SIGNATURE" "The job is not signed by the operator who submits it.",
    Token "KDR-TOKEN" "The token stands for another job or seed.",
    Run "KDR-RUN" "There is no such run of this operator.",
    Running "KDR-RUNNING" "The run has not ended yet.",
    Ended "KDR-ENDED" "The run has ended already.",
    Study "KDR-STUDY" "The study does not take the job.",
    Busy "KDR-BUSY" "Too many calls, or too many runs, wait already.",
    Role "KDR-ROLE" "The role in the certificate does not allow the call.",
    Version "KDR-VERSION" "The two sides speak different versions of the protocol.",
    Enrolment "KDR-ENROLMENT" "The token, or the request for a certificate, is refused.",
    // Why a connection ended, or never began.
    Unreachable "KDR-UNREACHABLE" "The coordinator cannot be reached.",
    Proxy "KDR-PROXY" "The proxy does not let the connection through.",
    Tls "KDR-TLS" "No secure connection can be made.",
    Authority "KDR-AUTHORITY" "A certificate is of another authority.",
    Host "KDR-HOST" "The certificate is of another host.",
    Expired "KDR-EXPIRED" "A certificate has expired, or is not valid yet.",
    Revoked "KDR-REVOKED" "A certificate was revoked.",
    Replaced "KDR-REPLACED" "The same certificate has opened another connection.",
    Slow "KDR-SLOW" "The connection takes messages too slowly.",
    Disconnected "KDR-DISCONNECTED" "The connection was lost.",
    Stopping "KDR-STOPPING" "The coordinator is stopping.",
    // What broke at the coordinator.
    Stopped "KDR-STOPPED" "The coordinator stopped before the run had ended.",
    Store "KDR-STORE" "The coordinator's store cannot be read or written.",
    Result "KDR-RESULT" "The result of a run cannot be stored.",
    Internal "KDR-INTERNAL" "The coordinator could not go on with a run; its log says more.",
}

/// Why something could not be done: a code, and a sentence on what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub code: Code,
    /// What happened and what to do, without any patient's value.
    pub text: String,
}

/// A policy's no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule, as site.toml names it.
    pub rule: String,
    /// What was asked and what the rule allows.
    pub text: String,
}

/// Something in a cohort that does not fit the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The column, or empty where the problem is the file's.
    pub column: String,
    /// What was found, never a patient's value.
    pub found: String,
    /// What was wanted.
    pub wanted: String,
}

impl Code {
    /// The code of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Failure {
    /// A failure of this code.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

impl From<privacy::Refusal> for Refusal {
    fn from(refusal: privacy::Refusal) -> Self {
        let privacy::Refusal { rule, text } = refusal;
        Self { rule, text }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "refused by {}: {}", self.rule, self.text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.column.is_empty() {
            write!(formatter, "column {}: ", self.column)?;
        }
        write!(formatter, "found {}, wanted {}", self.found, self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_no_other_is() {
        for code in Code::ALL {
            assert_eq!(Code::named(code.name()), Some(*code));
        }
        let names: std::collections::BTreeSet<_> =
            Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert_eq!(Code::named("KDR-"), None);
    }
}
