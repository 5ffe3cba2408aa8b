//! Messages from site to coordinator, and answers as the coordinator stores them.

use crate::encoding::frame::{Content, Frame, frame};
use crate::encoding::parts::{Declared, IncomingParts, Travels};
use crate::encoding::raw::{SealedMessage, SealedReply, ToCoordinatorContent, ToCoordinatorFrame};
use crate::encoding::sealed::Sealed;
use crate::encoding::values::{at_most, label, malformed, present, run_id};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::to_coordinator::Message;
use crate::message::study::{approved, approved_to_proto};
use prost::Message as _;
use protocol::limits::SIGNATURE_BYTES_MAX;
use protocol::message::{Answer, JournalHead, Reply, ToCoordinator};

/// Digits of a SHA-256.
const HASH_DIGITS: usize = 64;

frame!(
    AnswerFrame,
    answer_frame,
    Answer,
    "a frame of a stored answer"
);

/// The frames of a message, in order. An answer is in them as it was sealed: its header within the reply, each part
/// within a frame of its own.
pub(crate) fn frames(message: ToCoordinator<Sealed>) -> std::vec::IntoIter<ToCoordinatorFrame> {
    let (message, parts) = match message {
        ToCoordinator::Hello { version } => {
            let message = Some(Message::Hello(pb::Hello { version }));
            (pb::ToCoordinator { message }.encode_to_vec(), Vec::new())
        }
        ToCoordinator::Approved(approved) => {
            let message = Some(Message::Approved(approved_to_proto(approved)));
            (pb::ToCoordinator { message }.encode_to_vec(), Vec::new())
        }
        ToCoordinator::Reply(reply) => {
            let head = reply.journal.map(journal_to_proto);
            let sealed = SealedReply {
                run: reply.run.as_str().to_owned(),
                exchange: reply.exchange,
                answer: Some(reply.answer.header().clone()),
                journal: head.map(|head| head.encode_to_vec().into()),
                signature: reply.signature.into(),
            };
            let reply_message = SealedMessage {
                reply: Some(sealed),
            };
            (reply_message.encode_to_vec(), reply.answer.parts().to_vec())
        }
    };
    let content = std::iter::once(ToCoordinatorContent::Message(message.into()))
        .chain(parts.into_iter().map(ToCoordinatorContent::Part));
    let frames = content.map(|content| ToCoordinatorFrame {
        frame: Some(content),
    });
    frames.collect::<Vec<_>>().into_iter()
}

impl Frame for ToCoordinatorFrame {
    type Header = pb::ToCoordinator;
    type Message = ToCoordinator<Answer>;
    const NAME: &'static str = "a frame to the coordinator";

    fn unpack(self) -> Result<Content<pb::ToCoordinator>, WireError> {
        let not_one = |error| malformed(Self::NAME, &error);
        match present(Self::NAME, self.frame)? {
            ToCoordinatorContent::Message(bytes) => pb::ToCoordinator::decode(bytes)
                .map(Content::Header)
                .map_err(not_one),
            ToCoordinatorContent::Part(bytes) => {
                let part = pb::Part::decode(bytes).map_err(not_one)?.part;
                present(Self::NAME, part).map(Content::Part)
            }
        }
    }

    fn answers(header: &pb::ToCoordinator) -> Option<(&str, u32)> {
        match &header.message {
            Some(Message::Reply(reply)) => Some((&reply.run, reply.exchange)),
            Some(Message::Hello(_) | Message::Approved(_)) | None => None,
        }
    }

    fn declared(header: &pb::ToCoordinator) -> Result<Declared, WireError> {
        match present("message to the coordinator", header.message.as_ref())? {
            Message::Hello(_) | Message::Approved(_) => Ok(Declared::default()),
            Message::Reply(reply) => Answer::declared(present("answer", reply.answer.as_ref())?),
        }
    }

    fn join(
        header: pb::ToCoordinator,
        parts: &mut IncomingParts,
    ) -> Result<ToCoordinator<Answer>, WireError> {
        Ok(
            match present("message to the coordinator", header.message)? {
                Message::Hello(hello) => ToCoordinator::Hello {
                    version: label("an agent's version", hello.version)?,
                },
                Message::Approved(found) => ToCoordinator::Approved(approved(found)?),
                Message::Reply(reply) => ToCoordinator::Reply(Reply {
                    run: run_id(&reply.run)?,
                    exchange: reply.exchange,
                    answer: Answer::join(present("answer", reply.answer)?, parts)?,
                    journal: reply.journal.map(journal).transpose()?,
                    signature: {
                        at_most("a signature", reply.signature.len(), SIGNATURE_BYTES_MAX)?;
                        reply.signature
                    },
                }),
            },
        )
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
