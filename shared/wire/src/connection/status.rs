//! Failures on their way: a gRPC status that carries a stable code and a sentence.

use crate::error::WireError;
use crate::identity::Identity;
use crate::visible;
use protocol::failure::{Code, Failure};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code as Grpc, Request, Status};

/// Version of the protocol that this crate speaks: the package `kindred.federation.v1`.
pub const PROTOCOL_VERSION: u32 = 3;

/// The metadata that carries the stable code.
const CODE_KEY: &str = "kindred-code";
/// The metadata that carries the time, in seconds since 1970.
const CLOCK_KEY: &str = "kindred-clock";
/// The metadata that carries the version of the protocol.
const VERSION_KEY: &str = "kindred-protocol";

/// A failure as a status.
pub(crate) fn status(grpc: Grpc, failure: &Failure) -> Status {
    let mut metadata = MetadataMap::new();
    let code = MetadataValue::from_static(failure.code.name());
    metadata.insert(CODE_KEY, code);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs();
    metadata.insert(CLOCK_KEY, MetadataValue::from(seconds));
    let text = crate::encoding::values::shortened(failure.text.clone());
    Status::with_metadata(grpc, text, metadata)
}

/// When whoever made a status made it, by their own clock.
pub(crate) fn clock(status: &Status) -> Option<SystemTime> {
    let seconds = status.metadata().get(CLOCK_KEY)?.to_str().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds.parse().ok()?))
}

/// The failure that a status carries, if a peer of ours made it. Of a code that this version does not know, the text
/// is kept.
pub(crate) fn failure(status: &Status) -> Option<Failure> {
    let code = status.metadata().get(CODE_KEY)?.to_str().ok()?;
    let text = visible::lines(status.message().to_owned());
    let code = Code::named(code).unwrap_or(Code::Protocol);
    Some(Failure::new(code, text))
}

/// A caller's request is not one.
pub(crate) fn protocol_violation(error: &WireError) -> Status {
    let failure = Failure::new(Code::Protocol, error.to_string());
    status(Grpc::InvalidArgument, &failure)
}

/// A job that the caller has not signed.
pub(crate) fn unsigned() -> Status {
    let text = "the job is not signed by the operator who submits it";
    let failure = Failure::new(Code::Signature, text);
    status(Grpc::PermissionDenied, &failure)
}

pub(crate) fn stopping() -> Failure {
    Failure::new(
        Code::Stopping,
        "the coordinator is stopping: connect again once it is back",
    )
}

pub(crate) fn slow() -> Failure {
    Failure::new(
        Code::Slow,
        "too many messages waited for this connection: connect again",
    )
}

pub(crate) fn replaced() -> Failure {
    Failure::new(Code::Replaced, "the site has opened another stream")
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
    Err(status(Grpc::FailedPrecondition, &failure))
}

fn version_failure(found: &str) -> Failure {
    let text = format!(
        "found version {found} of the protocol, wanted version {PROTOCOL_VERSION}: \
         run the same release of Kindred on both sides"
    );
    Failure::new(Code::Version, text)
}

/// The certificate is not of the role that a service is for.
pub(crate) fn wrong_role(found: Option<&Identity>, wanted: &str) -> Status {
    let found = found.map_or_else(|| "no identity".to_owned(), Identity::uri);
    let article = if wanted.starts_with('o') { "an" } else { "a" };
    let text = format!(
        "found {found} in the certificate, wanted kindred://{wanted}/ and a name: \
         use a certificate that was issued to {article} {wanted}"
    );
    status(Grpc::PermissionDenied, &Failure::new(Code::Role, text))
}

/// A program that is gone cannot answer.
pub(crate) fn unavailable() -> Status {
    status(Grpc::Unavailable, &stopping())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_comes_back_and_one_of_an_unknown_code_keeps_its_text() {
        let sent = Failure::new(Code::Busy, "too many runs wait: come back later");
        let mut status = status(Grpc::FailedPrecondition, &sent);
        assert_eq!(failure(&status), Some(sent));
        let other = MetadataValue::from_static("KDR-TOMORROW");
        status.metadata_mut().insert(CODE_KEY, other);
        let text = "too many runs wait: come back later";
        assert_eq!(failure(&status), Some(Failure::new(Code::Protocol, text)));
        status.metadata_mut().remove(CODE_KEY);
        assert_eq!(failure(&status), None);
    }
}
