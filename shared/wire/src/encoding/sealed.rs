//! Released answers, encoded once: what the journal hashes is what leaves.

use crate::encoding::encode_to_site;
use crate::encoding::parts::Travels;
use crate::generated::Part;
use crate::message::study::encode_opening;
use bytes::Bytes;
use privacy::{Disclosure, Released};
use prost::Message;
use protocol::message::{Answer, Closed, ToSite};
use protocol::opening::Opening;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// An answer that a release rule has cleared, as the bytes that leave. A site sends nothing else of its patients, and
/// [`seal`] alone makes one. A copy shares the bytes.
#[derive(Clone)]
pub struct Sealed {
    kind: &'static str,
    shape: String,
    /// The encoded `Answer`.
    header: Bytes,
    /// Each encoded `Part`, in order.
    parts: Arc<[Bytes]>,
}

/// Encodes an answer that a release rule has cleared.
#[must_use]
pub fn seal(answer: Released<Answer>) -> Sealed {
    encoded(answer.into_value())
}

/// What [`Sealed::digest`] is of an answer, so that one that was sealed before is recognised. A digest that stands for
/// an answer is that answer's.
#[must_use]
pub fn digest_of(answer: &Answer) -> String {
    digits(&sha256_of(answer))
}

/// As [`digest_of`], in bytes.
pub(crate) fn sha256_of(answer: &Answer) -> [u8; 32] {
    if let Answer::Digest(digest) = answer {
        return *digest;
    }
    let (header, parts) = answer.clone().cut();
    let parts = parts.map(|part| Part { part: Some(part) }.encode_to_vec());
    sha256(std::iter::once(header.encode_to_vec()).chain(parts))
}

/// What [`Sealed::bytes`] is of an answer that came: as many as the site's journal says.
#[must_use]
pub fn bytes_of(answer: &Answer) -> u64 {
    let (header, parts) = answer.clone().cut();
    let parts = parts.map(|part| Part { part: Some(part) }.encoded_len());
    (header.encoded_len() + parts.sum::<usize>()) as u64
}

impl Sealed {
    /// The kind of message, in one word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Its shape in words.
    #[must_use]
    pub fn shape(&self) -> &str {
        &self.shape
    }

    /// The bytes in order: of the header, then of each part, each as a frame holds them.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.header)
            .chain(self.parts.iter())
            .map(Bytes::as_ref)
    }

    /// How many they are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunks().map(|chunk| chunk.len() as u64).sum()
    }

    /// SHA-256 over them, 64 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        digits(&sha256(self.chunks()))
    }

    pub(crate) fn header(&self) -> &Bytes {
        &self.header
    }

    pub(crate) fn parts(&self) -> &[Bytes] {
        &self.parts
    }
}

/// A digest of the exchanges that closed, one after the other: the same for all who heard the same.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    hash: [u8; 32],
}

impl Heard {
    /// Nothing has closed yet, but for how the study opened, where the run is of one.
    #[must_use]
    pub fn after(opening: Option<&Opening>) -> Self {
        let bytes = opening.map(encode_opening);
        let hash = bytes.map(|bytes| Sha256::digest(bytes).into());
        Self {
            hash: hash.unwrap_or_default(),
        }
    }

    /// Adds an exchange that closed.
    pub fn add(&mut self, closed: &Closed) {
        let mut hash = Sha256::new();
        hash.update(self.hash);
        for frame in encode_to_site(ToSite::Closed(Arc::new(closed.clone()))) {
            hash.update(frame);
        }
        self.hash = hash.finalize().into();
    }

    /// 64 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        digits(&self.hash)
    }
}

fn encoded(mut answer: Answer) -> Sealed {
    let (kind, shape) = (answer.kind(), answer.shape());
    let (header, parts) = answer.cut();
    Sealed {
        kind,
        shape,
        header: header.encode_to_vec().into(),
        parts: parts
            .map(|part| Bytes::from(Part { part: Some(part) }.encode_to_vec()))
            .collect(),
    }
}

fn sha256<C: AsRef<[u8]>>(chunks: impl Iterator<Item = C>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for chunk in chunks {
        hash.update(chunk);
    }
    hash.finalize().into()
}

fn digits(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Sealed {
    /// The kind only: cleared for the coordinator is not cleared for a log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Sealed").field(&self.kind).finish()
    }
}

/// As [`seal`], whatever the answer: for this crate's own tests.
#[cfg(test)]
pub(crate) fn seal_any(answer: Answer) -> Sealed {
    encoded(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::encode_to_coordinator;
    use crate::encoding::raw::{SealedMessage, ToCoordinatorContent, ToCoordinatorFrame};
    use crate::tests::{golden, run};
    use ndarray::Array2;
    use protocol::failure::{Code, Failure};
    use protocol::message::unpsl::{Contribution, Derivatives};
    use protocol::message::{Reply, ToCoordinator, unpsl};

    fn samples() -> Vec<Answer> {
        let matrix = Array2::from_shape_fn((300, 400), |(i, j)| (i * 400 + j) as f64);
        let derivatives = Derivatives {
            objective: 0.5,
            threshold: [0.0; 2],
            triangles: matrix.t().to_owned(),
            slope: None,
        };
        let contribution = Contribution {
            matrix,
            objective: 0.5,
            iterations: 3,
            products: None,
        };
        vec![
            Answer::Correlated,
            Answer::Unpsl(unpsl::Answer::Contribution(contribution)),
            Answer::Unpsl(unpsl::Answer::Derivatives(vec![derivatives])),
        ]
    }

    fn frames(answer: Sealed) -> Vec<Bytes> {
        encode_to_coordinator(ToCoordinator::Reply(Reply {
            signature: Vec::new(),
            run: run(),
            exchange: 7,
            journal: None,
            answer,
        }))
    }

    #[test]
    fn what_leaves_is_what_was_sealed_byte_for_byte() {
        for answer in samples() {
            let sealed = seal_any(answer);
            let found = frames(sealed.clone()).into_iter().map(|frame| {
                match ToCoordinatorFrame::decode(frame).unwrap().frame.unwrap() {
                    ToCoordinatorContent::Part(part) => part,
                    ToCoordinatorContent::Message(message) => {
                        let message = SealedMessage::decode(message).unwrap();
                        message.reply.unwrap().answer.unwrap()
                    }
                }
            });
            let found: Vec<Bytes> = found.collect();
            let chunks: Vec<&[u8]> = sealed.chunks().collect();
            assert_eq!(found, chunks);
            let bytes: usize = found.iter().map(Bytes::len).sum();
            assert_eq!(sealed.bytes(), bytes as u64);
            assert_eq!(sealed.digest(), digits(&sha256(found.iter())));
            // Nothing is encoded a second time, and nothing is copied.
            assert_eq!(frames(sealed.clone()), frames(sealed.clone()));
            let copy = sealed.clone();
            assert_eq!(sealed.header.as_ptr(), copy.header.as_ptr());
            assert!(Arc::ptr_eq(&sealed.parts, &copy.parts));
        }
    }

    #[test]
    fn an_answer_is_known_again_by_its_digest() {
        let digests: Vec<String> = samples().iter().map(digest_of).collect();
        for (answer, digest) in samples().into_iter().zip(&digests) {
            let bytes = bytes_of(&answer);
            let sealed = seal_any(answer);
            assert_eq!((sealed.digest(), sealed.bytes()), (digest.clone(), bytes));
        }
        assert_ne!(digests[0], digests[1]);
        // The header of an answer that is no more than a kind: field 8, empty.
        let empty = digits(&sha256(std::iter::once([0x42, 0x00])));
        assert_eq!(digests[0], empty);
        let whole = golden("correlated");
        assert!(whole[0].ends_with(&[0x42, 0x00]));
    }

    #[test]
    fn a_sealed_answer_says_what_it_is_and_shows_nothing_else() {
        let failure = Failure::new(Code::Results, "the disk is full");
        let sealed = seal(Released::notice(failure));
        assert_eq!((sealed.kind(), sealed.shape()), ("failure", "1 text"));
        assert_eq!(format!("{sealed:?}"), "Sealed(\"failure\")");
    }
}
