//! What sites tell of each other's sums: keys, covered words, and exchanges that closed.

use crate::encoding::blocks;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, run_id, sentence};
use crate::encoding::{decode_answer, encode_answer};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::failure::{failure, failure_to_proto};
use crate::message::to_site::signed;
use privacy::Covered;
use privacy::sums::{WORD_BYTES, Words};
use protocol::limits::{KEY_BYTES_MAX, SIGNATURE_BYTES_MAX, SITES_MAX, WORDS_MAX};
use protocol::message::{Closed, Encapsulations, Introduction, summed_kind};
use protocol::run::Record;
use protocol::time::Timestamp;

pub(crate) fn introduction_to_proto(introduction: Introduction) -> pb::Introduction {
    pb::Introduction {
        agreement: introduction.agreement,
        encapsulation: introduction.encapsulation,
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
        signing: found.signing,
        chain: found.chain,
        scheme,
        signature: found.signature,
    })
}

pub(crate) fn encapsulations(found: pb::Encapsulations) -> Result<Encapsulations, WireError> {
    let pb::Encapsulations { ciphertexts } = found;
    at_most("ciphertexts", ciphertexts.len(), SITES_MAX)?;
    for ciphertext in &ciphertexts {
        at_most("bytes of a ciphertext", ciphertext.len(), KEY_BYTES_MAX)?;
    }
    Ok(Encapsulations { ciphertexts })
}

impl Travels for Covered {
    type Header = pb::Covered;

    fn cut(self) -> (pb::Covered, OutgoingParts) {
        let words = self.words.as_slice();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (blocks, parts) = blocks::cut(&bytes);
        let header = pb::Covered {
            kind: self.kind.to_owned(),
            words: words.len() as u64,
            blocks,
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
        })
    }
}

impl Travels for Closed {
    type Header = pb::Closed;

    fn cut(self) -> (pb::Closed, OutgoingParts) {
        let Record {
            at,
            exchange,
            answers,
            signatures,
            faults,
            members,
        } = self.record;
        let mut bytes = Vec::new();
        let mut sites = Vec::with_capacity(answers.len());
        for (place, answer) in answers.iter().enumerate() {
            let answer = answer.as_ref().map(encode_answer).unwrap_or_default();
            bytes.extend_from_slice(&answer);
            let fault = faults.get(place).cloned().flatten();
            sites.push(pb::ClosedSite {
                member: members.get(place).copied().unwrap_or(false),
                answer: answer.len() as u64,
                signature: signatures.get(place).cloned().unwrap_or_default(),
                fault: fault.map(failure_to_proto),
            });
        }
        let (blocks, parts) = blocks::cut(&bytes);
        let header = pb::Closed {
            run: self.run.as_str().to_owned(),
            exchange,
            at: at.0,
            sites,
            blocks,
        };
        (header, parts)
    }

    fn declared(header: &pb::Closed) -> Result<Declared, WireError> {
        at_most("sites", header.sites.len(), SITES_MAX)?;
        Ok(blocks::declared(header.blocks))
    }

    fn join(header: pb::Closed, parts: &mut IncomingParts) -> Result<Self, WireError> {
        let lengths = header.sites.iter().map(|site| site.answer);
        let wanted = lengths.fold(0_u64, u64::saturating_add);
        let bytes = blocks::join(parts, wanted)?;
        let mut rest = bytes.as_slice();
        let sites = header.sites.len();
        let mut record = Record {
            at: Timestamp(header.at),
            exchange: header.exchange,
            answers: Vec::with_capacity(sites),
            signatures: Vec::with_capacity(sites),
            faults: Vec::with_capacity(sites),
            members: Vec::with_capacity(sites),
        };
        for site in header.sites {
            at_most("a signature", site.signature.len(), SIGNATURE_BYTES_MAX)?;
            // No longer than all together, which are there.
            let (own, others) = rest.split_at(usize::try_from(site.answer).unwrap_or(usize::MAX));
            rest = others;
            let answer = (!own.is_empty()).then(|| decode_answer(own)).transpose()?;
            record.answers.push(answer);
            record.signatures.push(site.signature);
            let fault = site.fault.map(|fault| failure(fault, sentence));
            record.faults.push(fault.transpose()?);
            record.members.push(site.member);
        }
        Ok(Self {
            run: run_id(&header.run)?,
            record,
        })
    }
}
