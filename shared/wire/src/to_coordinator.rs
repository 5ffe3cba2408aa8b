//! Messages from site to coordinator, and answers as the coordinator stores them.

use crate::assembly::{Frames, Header};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::answer::Answer as Answered;
use crate::generated::to_coordinator::Message;
use crate::parts::{
    Declared, IncomingParts, OutgoingParts, declared_second_moments, second_moments_to_proto, shape,
};
use crate::trees::{declared_nodes, judged, judged_to_proto, trees, trees_to_proto};
use crate::values::{
    at_most, evaluations, evaluations_to_proto, finite, label, present, run_id, sentence,
    shortened, summary, summary_to_proto,
};
use privacy::Released;
use protocol::limits::{CANDIDATES_MAX, CLASSES_MAX, PROBLEMS_MAX};
use protocol::message::{
    Answer, Contribution, Description, Failure, Finished, JournalHead, Problem, Refusal,
    RightCounts, ToCoordinator,
};
use std::sync::Arc;

/// Digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// Cuts a message into frames. Only what a release rule has cleared has a way through here.
pub(crate) fn frames(message: ToCoordinator<Released<Answer>>) -> Frames<pb::ToCoordinatorFrame> {
    frames_of_any(match message {
        ToCoordinator::Hello { version } => ToCoordinator::Hello { version },
        ToCoordinator::Reply {
            run,
            exchange,
            answer,
            journal,
        } => ToCoordinator::Reply {
            run,
            exchange,
            answer: answer.into_value(),
            journal,
        },
    })
}

/// Cuts an answer that the coordinator holds into frames for its store.
pub(crate) fn answer_frames(answer: Answer) -> Frames<pb::AnswerFrame> {
    let (answer, parts) = answer_to_proto(answer);
    Frames::new(answer, parts)
}

/// As [`frames`], whatever the answer: for this crate's own tests and for them alone.
pub(crate) fn frames_of_any(message: ToCoordinator<Answer>) -> Frames<pb::ToCoordinatorFrame> {
    let (message, parts) = match message {
        ToCoordinator::Hello { version } => {
            (Message::Hello(pb::Hello { version }), OutgoingParts::none())
        }
        ToCoordinator::Reply {
            run,
            exchange,
            answer,
            journal,
        } => {
            let (answer, parts) = answer_to_proto(answer);
            let run = run.as_str().to_owned();
            let reply = pb::Reply {
                run,
                exchange,
                answer: Some(answer),
                journal: journal.map(journal_to_proto),
            };
            (Message::Reply(reply), parts)
        }
    };
    Frames::new(
        pb::ToCoordinator {
            message: Some(message),
        },
        parts,
    )
}

impl Header for pb::ToCoordinator {
    type Message = ToCoordinator<Answer>;

    fn answers(&self) -> Option<(&str, u32)> {
        match &self.message {
            Some(Message::Reply(reply)) => Some((&reply.run, reply.exchange)),
            Some(Message::Hello(_)) | None => None,
        }
    }

    fn declared(&self) -> Result<Declared, WireError> {
        match &self.message {
            Some(Message::Reply(reply)) => present("answer", reply.answer.as_ref())?.declared(),
            Some(Message::Hello(_)) | None => Ok(Declared::default()),
        }
    }

    fn complete(self, parts: IncomingParts) -> Result<Self::Message, WireError> {
        Ok(match present("message to the coordinator", self.message)? {
            Message::Hello(hello) => ToCoordinator::Hello {
                version: label("an agent's version", hello.version)?,
            },
            Message::Reply(reply) => ToCoordinator::Reply {
                run: run_id(&reply.run)?,
                exchange: reply.exchange,
                answer: present("answer", reply.answer)?.complete(parts)?,
                journal: reply.journal.map(journal).transpose()?,
            },
        })
    }
}

fn journal_to_proto(head: JournalHead) -> pb::JournalHead {
    let JournalHead { entries, hash } = head;
    pb::JournalHead { entries, hash }
}

fn journal(head: pb::JournalHead) -> Result<JournalHead, WireError> {
    let pb::JournalHead { entries, hash } = head;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hash.len() != HASH_DIGITS || !hash.bytes().all(is_digit) {
        return Err(WireError::Unexpected {
            found: "another text as the hash of a journal".to_owned(),
            wanted: format!("{HASH_DIGITS} hexadecimal digits"),
        });
    }
    Ok(JournalHead { entries, hash })
}

impl Header for pb::Answer {
    type Message = Answer;

    fn declared(&self) -> Result<Declared, WireError> {
        Ok(match present("answer", self.answer.as_ref())? {
            Answered::Moments(moments) => Declared {
                columns: moments.columns,
                ..Declared::default()
            },
            Answered::Quantiles(quantiles) => Declared {
                histograms: quantiles.histograms,
                ..Declared::default()
            },
            Answered::Prepared(prepared) => match &prepared.second_moments {
                Some(second_moments) => declared_second_moments(second_moments)?,
                None => Declared::default(),
            },
            Answered::Contribution(contribution) => {
                let matrix = present("contribution", contribution.matrix)?;
                Declared::matrices([matrix].into_iter().chain(contribution.gradient))
            }
            Answered::Grown(grown) => Declared {
                nodes: declared_nodes(present("trees", grown.trees.as_ref())?)?,
                ..Declared::default()
            },
            Answered::Judged(judged) => Declared::matrices(judged.importance),
            _ => Declared::default(),
        })
    }

    fn complete(self, mut parts: IncomingParts) -> Result<Answer, WireError> {
        Ok(match present("answer", self.answer)? {
            Answered::Described(description) => {
                at_most("classes", description.classes.len(), CLASSES_MAX)?;
                let (patients, classes) = (description.patients, description.classes);
                Answer::Described(Description { patients, classes })
            }
            Answered::Unfit(unfit) => Answer::Unfit(problems(unfit)?),
            Answered::Refused(refusal) => Answer::Refused(Refusal {
                rule: sentence("a rule's name", refusal.rule)?,
                text: sentence("a refusal", refusal.text)?,
            }),
            Answered::Failed(failure) => Answer::Failed(Failure {
                code: label("a code", failure.code)?,
                text: sentence("a failure", failure.text)?,
            }),
            Answered::Moments(moments) => Answer::Moments {
                columns: parts.take_columns(),
                summary: summary(moments.summary)?,
            },
            Answered::Quantiles(_) => Answer::Quantiles(parts.take_histograms()),
            Answered::Prepared(prepared) => Answer::Prepared {
                second_moments: match prepared.second_moments {
                    Some(header) => Some(parts.take_second_moments(&header)?),
                    None => None,
                },
            },
            Answered::Correlated(_) => Answer::Correlated,
            Answered::Contribution(contribution) => Answer::Contribution(Contribution {
                matrix: parts.take_matrix()?,
                objective: finite("an objective", contribution.objective)?,
                iterations: contribution.iterations,
                gradient: match contribution.gradient {
                    Some(_) => Some(parts.take_matrix()?),
                    None => None,
                },
            }),
            Answered::Validated(validated) => Answer::Validated(validation(validated)?),
            Answered::Finished(finished) => Answer::Finished(Finished {
                objective: finite("an objective", finished.objective)?,
                evaluation: evaluations(finished.evaluation)?,
            }),
            Answered::Grown(grown) => {
                let declared = present("trees", grown.trees)?;
                Answer::Grown(trees(&declared, parts.take_nodes())?)
            }
            Answered::Judged(header) => {
                let importance = match header.importance {
                    Some(_) => Some(parts.take_matrix()?),
                    None => None,
                };
                Answer::Judged(judged(header, importance.as_ref())?)
            }
        })
    }
}

fn answer_to_proto(answer: Answer) -> (pb::Answer, OutgoingParts) {
    let mut parts = OutgoingParts::none();
    let answer = match answer {
        Answer::Described(Description { patients, classes }) => {
            Answered::Described(pb::Description { patients, classes })
        }
        Answer::Unfit(problems) => Answered::Unfit(problems_to_proto(problems)),
        Answer::Refused(Refusal { rule, text }) => Answered::Refused(pb::Refusal {
            rule: shortened(rule),
            text: shortened(text),
        }),
        Answer::Failed(Failure { code, text }) => Answered::Failed(pb::Failure {
            code,
            text: shortened(text),
        }),
        Answer::Moments { columns, summary } => {
            let count = u32::try_from(columns.len()).unwrap_or(u32::MAX);
            parts = OutgoingParts::columns(columns);
            let summary = Some(summary_to_proto(summary));
            Answered::Moments(pb::Moments {
                columns: count,
                summary,
            })
        }
        Answer::Quantiles(histograms) => {
            let count = u32::try_from(histograms.len()).unwrap_or(u32::MAX);
            parts = OutgoingParts::histograms(histograms);
            Answered::Quantiles(pb::Quantiles { histograms: count })
        }
        Answer::Prepared {
            second_moments: None,
        } => Answered::Prepared(pb::Prepared {
            second_moments: None,
        }),
        Answer::Prepared {
            second_moments: Some(second_moments),
        } => {
            let (header, cut) = second_moments_to_proto(second_moments);
            parts = cut;
            Answered::Prepared(pb::Prepared {
                second_moments: Some(header),
            })
        }
        Answer::Correlated => Answered::Correlated(pb::Correlated {}),
        Answer::Contribution(Contribution {
            matrix,
            objective,
            iterations,
            gradient,
        }) => {
            let declared = Some(shape(&matrix));
            let declared_gradient = gradient.as_ref().map(shape);
            parts = OutgoingParts::matrices([matrix].into_iter().chain(gradient).collect());
            Answered::Contribution(pb::Contribution {
                matrix: declared,
                objective,
                iterations,
                gradient: declared_gradient,
            })
        }
        Answer::Validated(counts) => Answered::Validated(validation_to_proto(counts)),
        Answer::Finished(Finished {
            objective,
            evaluation,
        }) => {
            let evaluation = evaluations_to_proto(evaluation);
            Answered::Finished(pb::Finished {
                objective,
                evaluation,
            })
        }
        Answer::Grown(trees) => {
            let declared = Some(trees_to_proto(&trees));
            parts = OutgoingParts::trees(Arc::new(trees));
            Answered::Grown(pb::Grown { trees: declared })
        }
        Answer::Judged(judged) => {
            let (header, importance) = judged_to_proto(judged);
            parts = OutgoingParts::none().with_matrix(importance);
            Answered::Judged(header)
        }
    };
    (
        pb::Answer {
            answer: Some(answer),
        },
        parts,
    )
}

fn validation_to_proto(counts: Vec<Option<RightCounts>>) -> pb::Validated {
    let one = |counts: Option<RightCounts>| pb::ValidationCounts {
        counts: counts.map(|RightCounts { right, wrong }| pb::RightCounts { right, wrong }),
    };
    pb::Validated {
        counts: counts.into_iter().map(one).collect(),
    }
}

fn validation(validated: pb::Validated) -> Result<Vec<Option<RightCounts>>, WireError> {
    at_most("validation counts", validated.counts.len(), CANDIDATES_MAX)?;
    let one = |one: pb::ValidationCounts| {
        one.counts
            .map(|pb::RightCounts { right, wrong }| RightCounts { right, wrong })
    };
    Ok(validated.counts.into_iter().map(one).collect())
}

fn problems_to_proto(problems: Vec<Problem>) -> pb::Unfit {
    let one = |problem: Problem| pb::Problem {
        column: shortened(problem.column),
        found: shortened(problem.found),
        wanted: shortened(problem.wanted),
    };
    pb::Unfit {
        problems: problems.into_iter().take(PROBLEMS_MAX).map(one).collect(),
    }
}

fn problems(unfit: pb::Unfit) -> Result<Vec<Problem>, WireError> {
    at_most("problems", unfit.problems.len(), PROBLEMS_MAX)?;
    let one = |problem: pb::Problem| {
        Ok(Problem {
            column: sentence("a problem's column", problem.column)?,
            found: sentence("a problem", problem.found)?,
            wanted: sentence("a problem", problem.wanted)?,
        })
    };
    unfit.problems.into_iter().map(one).collect()
}
