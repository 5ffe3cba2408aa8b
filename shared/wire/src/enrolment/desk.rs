//! The port at which certificates are signed. The authority's key is where it runs.

use super::REQUEST_BYTES_MAX;
use crate::connection::port::Caller;
use crate::connection::status;
use crate::generated as pb;
use crate::generated::enrolment_server::{Enrolment, EnrolmentServer};
use crate::identity::certificates::{self, Certified, RequestError};
use crate::identity::tls::ServerTls;
use crate::server::{self, ServeError};
use protocol::failure::{Code, Failure};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tonic::service::interceptor::InterceptedService;
use tonic::{Code as Grpc, Request, Response, Status};

/// Requests of one network in a minute; a secret of 128 bits is not guessed by so many.
const REQUESTS_A_MINUTE: u32 = 20;
/// Networks that are counted in a minute; further ones have to wait.
const NETWORKS_MAX: usize = 4_096;

/// What certificates are signed by, and for how long they are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// The folder of `certificates init`.
    pub folder: PathBuf,
    /// Days until a certificate ends.
    pub days: u32,
}

/// Signs requests of invited parties and of those with a certificate, until `stop` is ready. `tls` is
/// [`ServerTls::load_enrolling`]'s.
///
/// # Errors
/// [`ServeError`] where the port fails.
pub async fn serve(
    listener: TcpListener,
    tls: ServerTls,
    signing: Signing,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let desk = EnrolmentServer::new(Desk {
        signing: Arc::new(signing),
        minute: Mutex::new(Minute::new()),
    })
    .max_decoding_message_size(2 * REQUEST_BYTES_MAX);
    let desk = InterceptedService::new(desk, |request: Request<()>| {
        status::check_version(&request)?;
        Ok(request)
    });
    let router = server::builder().add_service(desk);
    server::serve_until(router, listener, tls, watch::Sender::new(false), stop).await
}

struct Desk {
    signing: Arc<Signing>,
    /// Held while a request is judged, so that one is at a time.
    minute: Mutex<Minute>,
}

/// Who has asked how often since it began.
struct Minute {
    began: Instant,
    asked: BTreeMap<IpAddr, u32>,
}

#[tonic::async_trait]
impl Enrolment for Desk {
    async fn enrol(
        &self,
        request: Request<pb::EnrolRequest>,
    ) -> Result<Response<pb::Certified>, Status> {
        let caller = caller(&request)?;
        let pb::EnrolRequest { secret, request } = request.into_inner();
        let sign = move |signing: &Signing| {
            certificates::enrol(&signing.folder, &secret, &request, signing.days)
        };
        self.answer(&caller, sign).await
    }

    async fn renew(
        &self,
        request: Request<pb::RenewRequest>,
    ) -> Result<Response<pb::Certified>, Status> {
        let caller = caller(&request)?;
        let Some(shown) = caller.certificate.clone() else {
            return Err(status::wrong_role(None, "site"));
        };
        let pb::RenewRequest { request } = request.into_inner();
        let sign = move |signing: &Signing| {
            certificates::renew_shown(&signing.folder, &shown, &request, signing.days)
        };
        self.answer(&caller, sign).await
    }
}

impl Desk {
    async fn answer(
        &self,
        caller: &Caller,
        sign: impl FnOnce(&Signing) -> Result<Certified, RequestError> + Send + 'static,
    ) -> Result<Response<pb::Certified>, Status> {
        let mut minute = self.minute.lock().await;
        minute.enter(caller.address)?;
        let signing = Arc::clone(&self.signing);
        let signed = tokio::task::spawn_blocking(move || sign(&signing)).await;
        match signed.map_err(|_| status::unavailable())? {
            Ok(Certified {
                certificate,
                authority,
                party,
            }) => {
                tracing::info!(%party, "signed a certificate");
                Ok(Response::new(pb::Certified {
                    certificate,
                    authority,
                }))
            }
            Err(error) => Err(refused(caller, &error)),
        }
    }
}

impl Minute {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            asked: BTreeMap::new(),
        }
    }

    /// Counts a request, or refuses it.
    fn enter(&mut self, address: IpAddr) -> Result<(), Status> {
        if self.began.elapsed() >= Duration::from_secs(60) {
            *self = Self::new();
        }
        let network = network(address);
        let is_full = self.asked.len() >= NETWORKS_MAX && !self.asked.contains_key(&network);
        let asked = self.asked.entry(network).or_default();
        *asked = asked.saturating_add(1);
        if is_full || *asked > REQUESTS_A_MINUTE {
            let text =
                "too many requests for certificates from this network: try again in a minute";
            let failure = Failure::new(Code::Busy, text);
            return Err(status::status(Grpc::ResourceExhausted, &failure));
        }
        Ok(())
    }
}

/// An address, or the network of 64 bits that one holder of IPv6 addresses mostly has.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>();
    caller.cloned().ok_or_else(status::unavailable)
}

fn refused(caller: &Caller, error: &RequestError) -> Status {
    let address = caller.address;
    let failure = match error {
        RequestError::Files(error) => {
            tracing::error!(%error, "the authority cannot sign");
            let text = "the authority cannot sign at present; the coordinator's log says more";
            Failure::new(Code::Internal, text)
        }
        refusal => {
            tracing::warn!(%address, %refusal, "refused a request for a certificate");
            Failure::new(Code::Enrolment, refusal.to_string())
        }
    };
    status::status(Grpc::FailedPrecondition, &failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_asks_too_often_waits_and_no_other_does() {
        let mut minute = Minute::new();
        let one = |text: &str| -> IpAddr { text.parse().unwrap() };
        for _ in 0..REQUESTS_A_MINUTE {
            minute.enter(one("2001:db8::1")).unwrap();
        }
        let refused = minute.enter(one("2001:db8::ffff")).unwrap_err();
        assert_eq!(status::failure(&refused).unwrap().code, Code::Busy);
        minute.enter(one("2001:db8:0:1::1")).unwrap();
        minute.enter(one("192.0.2.1")).unwrap();
        for place in 0..NETWORKS_MAX {
            let _ = minute.enter(IpAddr::from((place as u32 + 1).to_be_bytes()));
        }
        assert!(minute.enter(one("198.51.100.1")).is_err());
        assert!(minute.enter(one("192.0.2.1")).is_ok());
        minute.began -= Duration::from_secs(60);
        assert!(minute.enter(one("2001:db8::1")).is_ok());
    }
}
