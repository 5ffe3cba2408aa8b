//! Messages from coordinator to site.

use crate::encoding::frame::frame;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, present, run_id, sentence, shortened, text};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::to_site::Message;
use crate::message::covered::cut_shared;
use crate::message::study::{digest, waiting, waiting_to_proto};
use protocol::limits::{
    CERTIFICATE_BYTES_MAX, CHAIN_MAX, CLOSED_STUDIES_MAX, JOB_LENGTH_MAX, NAME_LENGTH_MAX,
    SIGNATURE_BYTES_MAX, STUDY_LENGTH_MAX,
};
use protocol::message::{Ask, Begin, Closed, Request, ToSite, Warrant};
use std::sync::Arc;

frame!(ToSiteFrame, to_site_frame, ToSite, "a frame to a site");

impl Travels for ToSite {
    type Header = pb::ToSite;

    fn cut(self) -> (pb::ToSite, OutgoingParts) {
        let (message, parts) = match self {
            Self::Begin(begin) => (Message::Begin(begin_to_proto(begin)), OutgoingParts::none()),
            Self::Ask(ask) => ask.cut_as(Message::Ask),
            Self::Proposed(study) => {
                let proposed = Message::Proposed(pb::Proposed { study });
                (proposed, OutgoingParts::none())
            }
            Self::ClosedStudies(digests) => {
                let closed = Message::ClosedStudies(pb::ClosedStudies { digests });
                (closed, OutgoingParts::none())
            }
            Self::Waiting(own) => (
                Message::Waiting(waiting_to_proto(own)),
                OutgoingParts::none(),
            ),
            Self::Closed(closed) => {
                let (closed, parts) = cut_shared(closed);
                (Message::Closed(closed), parts)
            }
            Self::End { run, ending } => {
                let end = pb::End {
                    run: run.as_str().to_owned(),
                    ending: shortened(ending),
                };
                (Message::End(end), OutgoingParts::none())
            }
        };
        let message = Some(message);
        (pb::ToSite { message }, parts)
    }

    fn declared(header: &pb::ToSite) -> Result<Declared, WireError> {
        match present("message to a site", header.message.as_ref())? {
            Message::Begin(_)
            | Message::End(_)
            | Message::Proposed(_)
            | Message::ClosedStudies(_)
            | Message::Waiting(_) => Ok(Declared::default()),
            Message::Ask(ask) => Ask::declared(ask),
            Message::Closed(closed) => Closed::declared(closed),
        }
    }

    fn join(header: pb::ToSite, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("message to a site", header.message)? {
            Message::Begin(found) => Self::Begin(begin(found)?),
            Message::Ask(ask) => Self::Ask(Ask::join(ask, parts)?),
            Message::Proposed(found) => {
                Self::Proposed(text("a study's text", found.study, STUDY_LENGTH_MAX)?)
            }
            Message::ClosedStudies(found) => {
                at_most("closed studies", found.digests.len(), CLOSED_STUDIES_MAX)?;
                let digests = found.digests.into_iter();
                let digests = digests.map(|one| digest("the digest of a study", one));
                Self::ClosedStudies(digests.collect::<Result<_, _>>()?)
            }
            Message::Waiting(found) => Self::Waiting(waiting(found)?),
            Message::Closed(closed) => Self::Closed(Arc::new(Closed::join(closed, parts)?)),
            Message::End(end) => Self::End {
                run: run_id(&end.run)?,
                ending: sentence("an ending", end.ending)?,
            },
        })
    }
}

impl Travels for Ask {
    type Header = pb::Ask;

    fn cut(self) -> (pb::Ask, OutgoingParts) {
        let (request, parts) = self.request.cut();
        let header = pb::Ask {
            run: self.run.as_str().to_owned(),
            exchange: self.exchange,
            request: Some(request),
        };
        (header, parts)
    }

    fn declared(header: &pb::Ask) -> Result<Declared, WireError> {
        Request::declared(present("request", header.request.as_ref())?)
    }

    fn join(header: pb::Ask, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            run: run_id(&header.run)?,
            exchange: header.exchange,
            request: Request::join(present("request", header.request)?, parts)?,
        })
    }
}

fn begin_to_proto(begin: Begin) -> pb::Begin {
    pb::Begin {
        run: begin.run.as_str().to_owned(),
        job: begin.job,
        seed: begin.seed,
        warrant: Some(warrant_to_proto(begin.warrant)),
        opening: begin.opening.map(|run| run.as_str().to_owned()),
    }
}

fn begin(begin: pb::Begin) -> Result<Begin, WireError> {
    Ok(Begin {
        run: run_id(&begin.run)?,
        job: text("a job's text", begin.job, JOB_LENGTH_MAX)?,
        seed: begin.seed,
        warrant: warrant(present("a warrant", begin.warrant)?)?,
        opening: begin.opening.as_deref().map(run_id).transpose()?,
    })
}

pub(crate) fn warrant_to_proto(warrant: Warrant) -> pb::Warrant {
    pb::Warrant {
        token: warrant.token,
        chain: warrant.chain,
        scheme: warrant.scheme.into(),
        signature: warrant.signature,
    }
}

/// Judges the size of a certificate's signature; gives its scheme.
pub(crate) fn signed(chain: &[Vec<u8>], scheme: u32, signature: &[u8]) -> Result<u16, WireError> {
    at_most("certificates", chain.len(), CHAIN_MAX)?;
    for certificate in chain {
        at_most("a certificate", certificate.len(), CERTIFICATE_BYTES_MAX)?;
    }
    at_most("a signature", signature.len(), SIGNATURE_BYTES_MAX)?;
    u16::try_from(scheme).map_err(|_| WireError::TooLarge {
        field: "a signature's scheme",
        found: scheme.into(),
        limit: u16::MAX.into(),
    })
}

/// An operator's word for a job.
pub(crate) fn warrant(found: pb::Warrant) -> Result<Warrant, WireError> {
    let scheme = signed(&found.chain, found.scheme, &found.signature)?;
    Ok(Warrant {
        token: text("a token", found.token, NAME_LENGTH_MAX)?,
        chain: found.chain,
        scheme,
        signature: found.signature,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_to_site, encode_to_site};
    use protocol::limits::SITES_MAX;
    use protocol::message::Waiting;
    use protocol::name::{RunId, SiteName};
    use protocol::time::Timestamp;

    #[test]
    fn a_run_waits_for_named_hospitals_and_not_for_too_many() {
        let of = |count: usize| {
            ToSite::Waiting(Waiting {
                run: RunId::new("kd-000000000007").unwrap(),
                away: vec![SiteName::new("north").unwrap(); count],
                since: Some(Timestamp(3)),
            })
        };
        assert_eq!(decode_to_site(&encode_to_site(of(2))).unwrap(), of(2));
        assert!(decode_to_site(&encode_to_site(of(SITES_MAX + 1))).is_err());
    }

    #[test]
    fn closed_studies_are_known_by_digests_and_are_not_too_many() {
        let own = "a".repeat(64);
        let sent = ToSite::ClosedStudies(vec![own.clone(), "0".repeat(64)]);
        let frames = encode_to_site(sent.clone());
        assert_eq!(decode_to_site(&frames).unwrap(), sent);
        for digests in [
            vec!["A".repeat(64)],
            vec![String::new()],
            vec![own; CLOSED_STUDIES_MAX + 1],
        ] {
            let frames = encode_to_site(ToSite::ClosedStudies(digests));
            assert!(decode_to_site(&frames).is_err());
        }
    }
}
