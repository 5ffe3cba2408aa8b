//! The methods on their way, each a file of its own.
//!
//! # To add a method
//!
//! A file of `proto/` holds its requests, its answers and what a run of it leaves; a file here says how each travels ([`Travels`]). The
//! list of `protocol` does the rest; nothing else in this crate names a method. A list of a kind of its own is one line of
//! `encoding::parts`.

pub(crate) mod card;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod forest;
pub(crate) mod neighbours;
pub(crate) mod regression;
pub(crate) mod unpsl;

use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{present, sentence, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::answer::Answer as Answered;
use crate::generated::ask::Request as Asked;
use crate::generated::run_result::Model as Left;
use crate::message::{covered, failure};
use privacy::sums::{Summand, Words};
use privacy::{Covered, Disclosure};
use protocol::failure::{Code, Failure};
use protocol::message::{Answer, Encapsulations, Preparing, Request, SecondMoments};
use protocol::method::{self, Model};
use std::sync::Arc;

macro_rules! registry {
    ($($Name:ident $room:ident,)*) => {
        impl Travels for Request {
            type Header = Asked;

            fn cut(self) -> (Asked, OutgoingParts) {
                match self {
                    Self::Introduce => (Asked::Introduce(pb::Introduce {}), OutgoingParts::none()),
                    Self::Encapsulate => (
                        Asked::Encapsulate(pb::Encapsulate {}),
                        OutgoingParts::none(),
                    ),
                    Self::Describe => (Asked::Describe(pb::Describe {}), OutgoingParts::none()),
                    Self::Moments => (Asked::Moments(pb::AskMoments {}), OutgoingParts::none()),
                    Self::Spread(preparing) => preparing.cut_as(Asked::Spread),
                    Self::Prepare(preparing) => preparing.cut_as(Asked::Prepare),
                    Self::Correlate(second_moments) => second_moments.cut_as(|header| {
                        let second_moments = Some(header);
                        Asked::Correlate(pb::Correlate { second_moments })
                    }),
                    $(Self::$Name(request) => request.cut_as(Asked::$Name),)*
                }
            }

            fn declared(header: &Asked) -> Result<Declared, WireError> {
                match header {
                    Asked::Introduce(_)
                    | Asked::Encapsulate(_)
                    | Asked::Describe(_)
                    | Asked::Moments(_) => Ok(Declared::default()),
                    Asked::Spread(prepare) | Asked::Prepare(prepare) => Arc::<Preparing>::declared(prepare),
                    Asked::Correlate(correlate) => {
                        let header = present("second moments", correlate.second_moments.as_ref())?;
                        Arc::<SecondMoments>::declared(header)
                    }
                    $(Asked::$Name(request) => <method::$room::message::Request as Travels>::declared(request),)*
                }
            }

            fn join(header: Asked, parts: &mut IncomingParts) -> Result<Self, WireError> {
                Ok(match header {
                    Asked::Introduce(_) => Self::Introduce,
                    Asked::Encapsulate(_) => Self::Encapsulate,
                    Asked::Describe(_) => Self::Describe,
                    Asked::Moments(_) => Self::Moments,
                    Asked::Spread(prepare) => Self::Spread(Travels::join(prepare, parts)?),
                    Asked::Prepare(prepare) => Self::Prepare(Travels::join(prepare, parts)?),
                    Asked::Correlate(correlate) => {
                        let header = present("second moments", correlate.second_moments)?;
                        summed("patients of second moments", header.patients)?;
                        Self::Correlate(Travels::join(header, parts)?)
                    }
                    $(Asked::$Name(request) => Self::$Name(Travels::join(request, parts)?),)*
                })
            }
        }

        impl Travels for Answer {
            type Header = pb::Answer;

            fn cut(self) -> (pb::Answer, OutgoingParts) {
                let alone = |answer| (answer, OutgoingParts::none());
                let (answer, parts) = match self {
                    Self::Introduced(introduction) => alone(Answered::Introduced(
                        covered::introduction_to_proto(introduction),
                    )),
                    Self::Encapsulated(Encapsulations {
                        ciphertexts,
                        common,
                    }) => alone(Answered::Encapsulated(pb::Encapsulations {
                        ciphertexts,
                        common,
                    })),
                    Self::Digest(digest) => alone(Answered::Digest(pb::Digest {
                        sha256: digest.to_vec(),
                    })),
                    Self::Covered(covered) => covered.cut_as(Answered::Covered),
                    Self::Unfit(problems) => alone(Answered::Unfit(failure::problems_to_proto(problems))),
                    Self::Refused(refusal) => alone(Answered::Refused(failure::refusal_to_proto(refusal))),
                    Self::Failed(found) => alone(Answered::Failed(failure::failure_to_proto(found))),
                    summed @ (Self::Described(_)
                    | Self::Moments(_)
                    | Self::Quantiles(_)
                    | Self::Spread(_)
                    | Self::Prepared(Some(_))
                    | Self::Assessed(_)) => as_words(summed),
                    Self::Prepared(None) => alone(Answered::Prepared(pb::Prepared {})),
                    Self::Correlated => alone(Answered::Correlated(pb::Correlated {})),
                    $(Self::$Name(answer) => $room::answer(answer),)*
                };
                let answer = Some(answer);
                (pb::Answer { answer }, parts)
            }

            fn declared(header: &pb::Answer) -> Result<Declared, WireError> {
                match present("answer", header.answer.as_ref())? {
                    Answered::Covered(covered) => Covered::declared(covered),
                    Answered::Introduced(_)
                    | Answered::Encapsulated(_)
                    | Answered::Digest(_)
                    | Answered::Unfit(_)
                    | Answered::Refused(_)
                    | Answered::Failed(_)
                    | Answered::Prepared(_)
                    | Answered::Correlated(_) => Ok(Declared::default()),
                    Answered::Trees(trees) => <method::forest::message::Answer as Travels>::declared(trees),
                }
            }

            fn join(header: pb::Answer, parts: &mut IncomingParts) -> Result<Self, WireError> {
                Ok(match present("answer", header.answer)? {
                    Answered::Introduced(found) => Self::Introduced(covered::introduction(found)?),
                    Answered::Encapsulated(found) => Self::Encapsulated(covered::encapsulations(found)?),
                    Answered::Digest(found) => Self::Digest(covered::digest(&found)?),
                    Answered::Covered(found) => Self::Covered(Travels::join(found, parts)?),
                    Answered::Unfit(unfit) => Self::Unfit(failure::problems(unfit)?),
                    Answered::Refused(refusal) => Self::Refused(failure::refusal(refusal)?),
                    Answered::Failed(found) => Self::Failed(failure::failure(found, sentence)?),
                    Answered::Prepared(_) => Self::Prepared(None),
                    Answered::Correlated(_) => Self::Correlated,
                    Answered::Trees(trees) => Self::Forest(Travels::join(trees, parts)?),
                })
            }
        }

        impl Travels for Model {
            type Header = Left;

            fn cut(self) -> (Left, OutgoingParts) {
                match self {
                    $(Self::$Name(model) => model.cut_as(Left::$Name),)*
                }
            }

            fn declared(header: &Left) -> Result<Declared, WireError> {
                match header {
                    $(Left::$Name(model) => <method::$room::model::Model as Travels>::declared(model),)*
                }
            }

            fn join(header: Left, parts: &mut IncomingParts) -> Result<Self, WireError> {
                Ok(match header {
                    $(Left::$Name(model) => Self::$Name(Travels::join(model, parts)?),)*
                })
            }
        }
    };
}

protocol::methods!(registry);

/// What adds up travels as the words of its numbers: from a site of several covered, and otherwise not at all.
fn as_words(mut answer: impl Summand + Disclosure) -> (Answered, OutgoingParts) {
    match Words::of(&mut answer) {
        Ok(words) => {
            let kind = answer.kind();
            let tag = None;
            Covered { kind, words, tag }.cut_as(Answered::Covered)
        }
        Err(error) => {
            let failure = Failure::new(Code::Numbers, error.to_string());
            let failed = Answered::Failed(failure::failure_to_proto(failure));
            (failed, OutgoingParts::none())
        }
    }
}

/// A list as long as another.
fn same(what: &str, found: usize, wanted: usize) -> Result<(), WireError> {
    match found == wanted {
        true => Ok(()),
        false => Err(WireError::Unexpected {
            found: format!("{found} {what}"),
            wanted: wanted.to_string(),
        }),
    }
}
