//! Failures on their way: a gRPC status that carries a stable code and a sentence.

use crate::error::WireError;
use crate::identity::Identity;
use crate::visible;
use protocol::message::Failure;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Request, Status};

/// Version of the protocol that this crate speaks: the package `kindred.federation.v1`.
pub const PROTOCOL_VERSION: u32 = 1;

/// The peer's bytes are not a message of this protocol.
pub(crate) const CODE_PROTOCOL: &str = "KDR-PROTOCOL";
/// The certificate's role may not do this.
pub(crate) const CODE_ROLE: &str = "KDR-ROLE";
/// The two sides speak different versions.
pub(crate) const CODE_VERSION: &str = "KDR-VERSION";
/// The coordinator is going down, or its program is gone.
pub(crate) const CODE_STOPPING: &str = "KDR-STOPPING";
/// The same certificate has opened another stream, which took this one's place.
pub(crate) const CODE_REPLACED: &str = "KDR-REPLACED";
/// The connection takes messages too slowly.
pub(crate) const CODE_SLOW: &str = "KDR-SLOW";

/// The metadata that carries the stable code.
const CODE_KEY: &str = "kindred-code";
/// The metadata that carries the version of the protocol.
const VERSION_KEY: &str = "kindred-protocol";

/// A failure as a status.
pub(crate) fn status(grpc: Code, failure: &Failure) -> Status {
    let mut metadata = MetadataMap::new();
    if let Ok(code) = MetadataValue::try_from(failure.code.as_str()) {
        metadata.insert(CODE_KEY, code);
    }
    let text = crate::values::shortened(failure.text.clone());
    Status::with_metadata(grpc, text, metadata)
}

/// The failure that a status carries, if a peer of ours made it.
pub(crate) fn failure(status: &Status) -> Option<Failure> {
    let code = status.metadata().get(CODE_KEY)?.to_str().ok()?;
    Some(Failure {
        code: visible::line(code.to_owned()),
        text: visible::lines(status.message().to_owned()),
    })
}

/// A caller's request is not one.
pub(crate) fn protocol_violation(error: &WireError) -> Status {
    let failure = Failure {
        code: CODE_PROTOCOL.to_owned(),
        text: error.to_string(),
    };
    status(Code::InvalidArgument, &failure)
}

/// A job that the caller has not signed.
pub(crate) fn unsigned() -> Status {
    let text = "the job is not signed by the operator who submits it";
    let failure = Failure {
        code: "KDR-SIGNATURE".to_owned(),
        text: text.to_owned(),
    };
    status(Code::PermissionDenied, &failure)
}

pub(crate) fn stopping() -> Failure {
    Failure {
        code: CODE_STOPPING.to_owned(),
        text: "the coordinator is stopping: connect again once it is back".to_owned(),
    }
}

pub(crate) fn slow() -> Failure {
    Failure {
        code: CODE_SLOW.to_owned(),
        text: "too many messages waited for this connection: connect again".to_owned(),
    }
}

pub(crate) fn replaced() -> Failure {
    Failure {
        code: CODE_REPLACED.to_owned(),
        text: "the site has opened another stream".to_owned(),
    }
}

/// The other side offers no such service: it is of another version.
pub(crate) fn unknown_service() -> Failure {
    version_failure("another one")
}

/// Says on a call which version of the protocol is spoken.
pub(crate) fn with_version<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert(VERSION_KEY, MetadataValue::from(PROTOCOL_VERSION));
    request
}

/// Refuses a call that speaks another version.
pub(crate) fn check_version(request: &Request<()>) -> Result<(), Status> {
    let found = request
        .metadata()
        .get(VERSION_KEY)
        .and_then(|value| value.to_str().ok());
    if found == Some(PROTOCOL_VERSION.to_string().as_str()) {
        return Ok(());
    }
    let failure = version_failure(found.unwrap_or("none"));
    Err(status(Code::FailedPrecondition, &failure))
}

fn version_failure(found: &str) -> Failure {
    Failure {
        code: CODE_VERSION.to_owned(),
        text: format!(
            "found version {found} of the protocol, wanted version {PROTOCOL_VERSION}: \
             run the same release of Kindred on both sides"
        ),
    }
}

/// The certificate is not of the role that a service is for.
pub(crate) fn wrong_role(found: Option<&Identity>, wanted: &str) -> Status {
    let found = found.map_or_else(|| "no identity".to_owned(), Identity::uri);
    let text = format!(
        "found {found} in the certificate, wanted kindred://{wanted}/ and a name: \
         use a certificate that was issued to a {wanted}"
    );
    status(
        Code::PermissionDenied,
        &Failure {
            code: CODE_ROLE.to_owned(),
            text,
        },
    )
}
