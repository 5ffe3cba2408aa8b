//! What sites tell of each other's sums: keys, covered words, and exchanges that closed.

use crate::encoding::blocks::{self, BLOCK_BYTES};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::sealed::sha256_of;
use crate::encoding::values::{at_most, run_id};
use crate::encoding::{decode_answer, encode_answer};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::to_site::signed;
use privacy::Covered;
use privacy::sums::{Tag, Total, TotalWord, WORD_BYTES, Words};
use protocol::limits::{KEY_BYTES_MAX, SIGNATURE_BYTES_MAX, SITES_MAX, WORDS_MAX};
use protocol::message::{Answer, Closed, Encapsulations, Introduction, summed_kind};
use protocol::run::Record;
use protocol::time::Timestamp;
use std::sync::Arc;

pub(crate) fn introduction_to_proto(introduction: Introduction) -> pb::Introduction {
    pb::Introduction {
        agreement: introduction.agreement,
        encapsulation: introduction.encapsulation,
        patients_at_most: introduction.patients_at_most,
        signing: introduction.signing,
        chain: introduction.chain,
        scheme: introduction.scheme.into(),
        signature: introduction.signature,
    }
}

pub(crate) fn introduction(found: pb::Introduction) -> Result<Introduction, WireError> {
    for key in [&found.agreement, &found.signing, &found.encapsulation] {
        at_most("bytes of a key", key.len(), KEY_BYTES_MAX)?;
    }
    let scheme = signed(&found.chain, found.scheme, &found.signature)?;
    Ok(Introduction {
        agreement: found.agreement,
        encapsulation: found.encapsulation,
        patients_at_most: found.patients_at_most,
        signing: found.signing,
        chain: found.chain,
        scheme,
        signature: found.signature,
    })
}

pub(crate) fn encapsulations_to_proto(told: Encapsulations) -> pb::Encapsulations {
    let Encapsulations {
        ciphertexts,
        common,
    } = told;
    pb::Encapsulations {
        ciphertexts,
        common,
    }
}

pub(crate) fn encapsulations(found: pb::Encapsulations) -> Result<Encapsulations, WireError> {
    let pb::Encapsulations {
        ciphertexts,
        common,
    } = found;
    for all in [&ciphertexts, &common] {
        at_most("ciphertexts", all.len(), SITES_MAX)?;
        for one in all {
            at_most("bytes of a ciphertext", one.len(), KEY_BYTES_MAX)?;
        }
    }
    Ok(Encapsulations {
        ciphertexts,
        common,
    })
}

/// Words that are made bytes at once: those of a block.
const PIECE_WORDS: usize = BLOCK_BYTES / WORD_BYTES;

impl Travels for Covered {
    type Header = pb::Covered;

    fn cut(self) -> (pb::Covered, OutgoingParts) {
        let Self { kind, words, tag } = self;
        let count = words.as_slice().len();
        let pieces = (0..count.div_ceil(PIECE_WORDS)).map(move |piece| {
            let piece = words.as_slice().chunks(PIECE_WORDS).nth(piece);
            let bytes = piece.into_iter().flatten().map(|word| word.to_le_bytes());
            bytes.collect::<Vec<_>>().into_flattened()
        });
        let (blocks, parts) = blocks::cut_pieces(count * WORD_BYTES, pieces);
        let header = pb::Covered {
            kind: kind.to_owned(),
            words: count as u64,
            blocks,
            tag: tag.map_or(Vec::new(), tag_to_proto),
        };
        (header, parts)
    }

    fn declared(header: &pb::Covered) -> Result<Declared, WireError> {
        let words = usize::try_from(header.words).unwrap_or(usize::MAX);
        at_most("words", words, WORDS_MAX)?;
        Ok(blocks::declared(header.blocks))
    }

    fn join(header: pb::Covered, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let bytes = blocks::join(parts, header.words * WORD_BYTES as u64)?;
        let words = bytes.as_chunks().0.iter();
        let kind = summed_kind(&header.kind).ok_or_else(|| WireError::Unexpected {
            found: "words of another kind of message".to_owned(),
            wanted: "a kind that adds up".to_owned(),
        })?;
        Ok(Self {
            kind,
            words: Words::received(words.map(|word| u128::from_le_bytes(*word)).collect()),
            tag: (!header.tag.is_empty())
                .then(|| tag(&header.tag))
                .transpose()?,
        })
    }
}

fn tag_to_proto(tag: Tag) -> Vec<u8> {
    tag.number().to_le_bytes().to_vec()
}

fn tag(found: &[u8]) -> Result<Tag, WireError> {
    Ok(Tag::received(u128::from_le_bytes(fixed("a tag", found)?)))
}

/// The answer that a digest stands for, in its place.
pub(crate) fn digest(found: &pb::Digest) -> Result<[u8; 32], WireError> {
    fixed("a digest", &found.sha256)
}

fn fixed<const N: usize>(field: &str, found: &[u8]) -> Result<[u8; N], WireError> {
    found.try_into().map_err(|_| WireError::Unexpected {
        found: format!("{} bytes for {field}", found.len()),
        wanted: format!("{N}"),
    })
}

/// Bytes of one word of a total: two halves, and what they carry.
const TOTAL_BYTES: usize = 18;

fn total_bytes(total: &Total) -> Vec<u8> {
    let word = |word: &TotalWord| {
        let mut bytes = [0; TOTAL_BYTES];
        let (halves, carries) = bytes.split_at_mut(TOTAL_BYTES - word.carries.len());
        let low = halves.as_chunks_mut().0.iter_mut().zip(word.halves);
        low.for_each(|(bytes, half)| *bytes = half.to_le_bytes());
        carries.copy_from_slice(&word.carries);
        bytes
    };
    let words = total.as_slice().iter().map(word);
    words.collect::<Vec<_>>().into_flattened()
}

fn total(bytes: &[u8], sum_of_tags: &[u8]) -> Result<Option<Total>, WireError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let word = |word: &[u8; TOTAL_BYTES]| {
        let (halves, carries) = word.as_chunks();
        TotalWord {
            halves: [0, 1].map(|half: usize| u64::from_le_bytes(halves[half])),
            carries: [carries[0], carries[1]],
        }
    };
    let words = bytes.as_chunks().0.iter().map(word).collect();
    Ok(Some(Total::received(words, tag(sum_of_tags)?)))
}

/// What sites hear of an exchange that closed: where its answers stand by their sum, the digests that stand for them. It travels as the
/// exchange itself would; made once, no answer is hashed again for each site that receives it.
#[must_use]
pub fn as_heard(mut closed: Closed) -> Closed {
    if closed.total.is_some() {
        for answer in closed.record.answers.iter_mut().flatten() {
            if let Answer::Covered(_) = answer {
                *answer = Answer::Digest(sha256_of(answer));
            }
        }
    }
    closed
}

/// Cuts what many sites hear, of which each is sent one answer after the other.
pub(crate) fn cut_shared(closed: Arc<Closed>) -> (pb::Closed, OutgoingParts) {
    let closed = match closed.total {
        Some(_) => Arc::new(as_heard(Arc::unwrap_or_clone(closed))),
        None => closed,
    };
    let record = &closed.record;
    let encoded = |answer: &Option<Answer>| answer.as_ref().map(encode_answer).unwrap_or_default();
    let mut signatures = record.signatures.iter();
    let sites = record.answers.iter().map(|answer| pb::ClosedSite {
        answer: encoded(answer).len() as u64,
        signature: signatures.next().cloned().unwrap_or_default(),
    });
    let sites: Vec<pb::ClosedSite> = sites.collect();
    let of_total = closed.total.as_ref().map(total_bytes).unwrap_or_default();
    let of_answers: u64 = sites.iter().map(|site| site.answer).sum();
    let bytes = usize::try_from(of_answers).unwrap_or(usize::MAX) + of_total.len();
    let header = |blocks| pb::Closed {
        run: closed.run.as_str().to_owned(),
        exchange: record.exchange,
        at: record.at.0,
        sites,
        blocks,
        total_words: closed
            .total
            .as_ref()
            .map_or(0, |total| total.as_slice().len() as u64),
        total_tag: closed
            .total
            .as_ref()
            .map_or(Vec::new(), |total| tag_to_proto(total.tag())),
    };
    let owner = Arc::clone(&closed);
    let answers = (0..record.answers.len()).map(move |site| encoded(&owner.record.answers[site]));
    let pieces = answers.chain(std::iter::once(of_total));
    let (blocks, parts) = blocks::cut_pieces(bytes, pieces);
    (header(blocks), parts)
}

impl Travels for Closed {
    type Header = pb::Closed;

    fn cut(self) -> (pb::Closed, OutgoingParts) {
        cut_shared(Arc::new(self))
    }

    fn declared(header: &pb::Closed) -> Result<Declared, WireError> {
        at_most("sites", header.sites.len(), SITES_MAX)?;
        let words = usize::try_from(header.total_words).unwrap_or(usize::MAX);
        at_most("words", words, WORDS_MAX)?;
        Ok(blocks::declared(header.blocks))
    }

    fn join(header: pb::Closed, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let lengths = header.sites.iter().map(|site| site.answer);
        let of_total = header.total_words.saturating_mul(TOTAL_BYTES as u64);
        let wanted = lengths.fold(of_total, u64::saturating_add);
        let bytes = blocks::join(parts, wanted)?;
        let mut rest = bytes.as_slice();
        let sites = header.sites.len();
        let mut record = Record {
            at: Timestamp(header.at),
            exchange: header.exchange,
            answers: Vec::with_capacity(sites),
            signatures: Vec::with_capacity(sites),
        };
        for site in header.sites {
            at_most("a signature", site.signature.len(), SIGNATURE_BYTES_MAX)?;
            // No longer than all together, which are there.
            let (own, others) = rest.split_at(usize::try_from(site.answer).unwrap_or(usize::MAX));
            rest = others;
            let answer = (!own.is_empty()).then(|| decode_answer(own)).transpose()?;
            record.answers.push(answer);
            record.signatures.push(site.signature);
        }
        Ok(Self {
            run: run_id(&header.run)?,
            record,
            total: total(rest, &header.total_tag)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode_to_site;
    use protocol::message::ToSite;

    /// What many sites hear is made as it is sent, and no block ends where an answer does.
    #[test]
    fn answers_of_many_blocks_come_as_they_closed() {
        let answer = |words: u128| {
            Some(Answer::Covered(Covered {
                kind: summed_kind("moments").unwrap(),
                words: Words::received((0..words).collect()),
                tag: None,
            }))
        };
        let record = Record {
            at: Timestamp(1),
            exchange: 3,
            answers: vec![answer(10_000), None, answer(3), answer(9_000)],
            signatures: vec![vec![1; 64], Vec::new(), vec![2; 64], vec![3; 64]],
        };
        let closed = Arc::new(Closed::new(run_id("abc").unwrap(), record));
        let (header, parts) = cut_shared(Arc::clone(&closed));
        let bytes: u64 = header.sites.iter().map(|site| site.answer).sum();
        assert_eq!(u64::from(header.blocks), bytes.div_ceil(64 << 10));
        assert!(header.blocks > 4 && parts.count() > 1);
        let frames = encode_to_site(ToSite::Closed(Arc::clone(&closed)));
        let found = crate::decode_to_site(&frames).unwrap();
        assert_eq!(found, ToSite::Closed(closed));
    }

    #[test]
    fn what_is_heard_travels_as_what_closed() {
        let answer = |word: u128| {
            Answer::Covered(Covered {
                kind: summed_kind("moments").unwrap(),
                words: Words::received(vec![word, 7]),
                tag: Some(Tag::received(word)),
            })
        };
        let record = Record {
            at: Timestamp(9),
            exchange: 4,
            answers: vec![Some(answer(5)), None, Some(answer(6))],
            signatures: vec![vec![8; 64], Vec::new(), vec![9; 64]],
        };
        let closed = Closed::new(run_id("00000000000000000000000000000001").unwrap(), record);
        let heard = as_heard(closed.clone());
        let stand_in = |answer: &Answer| matches!(answer, Answer::Digest(_));
        assert!(closed.total.is_some() && heard.total == closed.total);
        assert!(heard.record.answers.iter().flatten().all(stand_in));
        let bytes = |closed: Closed| encode_to_site(ToSite::Closed(Arc::new(closed)));
        assert_eq!(bytes(heard.clone()), bytes(closed));
        assert_eq!(as_heard(heard.clone()), heard);
    }
}
