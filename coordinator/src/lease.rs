//! Who leads, of several coordinators that share a database. The others stand by: their ports are closed, so that whoever dials
//! goes on to the one that leads.

use crate::config::StoreConfig;
use crate::folder::Folder;
use crate::store::{DatabaseError, Lease, Session, Store, StoreError, Taken};
use service::postgres::{ConnectError, Server};
use service::status::Health;
use service::supervisor;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{self, JoinError};

/// Between two tries to take the lease.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Why a coordinator does nothing at present.
const OTHER_LEADS: &str = "another coordinator leads";

/// The store, and how its loss is noticed.
pub struct Held {
    /// The store.
    pub store: Store,
    /// Why the lease is lost, once it is; none where nobody else can have it.
    lost: Option<watch::Receiver<Option<String>>>,
}

impl Held {
    /// Parts the store from the notice of its loss.
    pub fn parted(self) -> (Store, impl Future<Output = DatabaseError>) {
        let lost = self.lost;
        let noticed = async move {
            let Some(mut lost) = lost else {
                return std::future::pending().await;
            };
            let why = lost.wait_for(Option::is_some).await;
            let why = why.ok().and_then(|why| why.clone());
            match why {
                Some(why) => DatabaseError::Lost(why),
                // The store was closed in good order.
                None => std::future::pending().await,
            }
        };
        (self.store, noticed)
    }
}

/// Opens the store, once no other coordinator leads on it.
///
/// # Errors
/// [`StoreError`].
pub async fn hold(
    config: &StoreConfig,
    folder: &Folder,
    health: &Health,
) -> Result<Held, StoreError> {
    let server = match config {
        StoreConfig::Sqlite => {
            let store = Store::open(&folder.store())?;
            return Ok(Held { store, lost: None });
        }
        StoreConfig::Postgres(server) => server,
    };
    let file = folder.store();
    if file.exists() {
        let file = file.display();
        tracing::warn!(%file, "the runs in this file are not in the database, and are not shown");
    }
    let lease = stand_by(server, health).await?;
    let lost = Some(lease.ended());
    let store = blocking(move || Store::lead(lease)).await??;
    tracing::info!(%server, "this coordinator leads");
    supervisor::status("leads");
    health.is_well();
    Ok(Held { store, lost })
}

/// Takes the lease for as long as a command needs it.
///
/// # Errors
/// [`StoreError::Led`] where a coordinator has it.
pub fn take(server: &Server) -> Result<Lease, StoreError> {
    match Session::connect(server)?.try_lead()? {
        Taken::Leads(lease) => Ok(lease),
        Taken::Waits(_) => Err(StoreError::Led),
    }
}

/// Waits for the lease, for as long as another has it or the database is away.
async fn stand_by(server: &Server, health: &Health) -> Result<Lease, StoreError> {
    let (mut session, mut said) = (None, String::new());
    loop {
        let (own, known) = (server.clone(), session.take());
        let tried = blocking(move || match known {
            Some(session) => Session::try_lead(session),
            None => Session::connect(&own).and_then(Session::try_lead),
        });
        let reason = match tried.await? {
            Ok(Taken::Leads(lease)) => return Ok(lease),
            Ok(Taken::Waits(waiting)) => {
                session = Some(waiting);
                OTHER_LEADS.to_owned()
            }
            Err(
                error @ (DatabaseError::Lost(_) | DatabaseError::Connect(ConnectError::Away(_))),
            ) => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        if said != reason {
            tracing::info!(%server, reason, "this coordinator stands by");
            let stands = format!("stands by: {reason}");
            health.is_hindered(stands.as_str());
            supervisor::status(&stands);
            supervisor::ready();
            said = reason;
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// Carries out what waits for the database, on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DatabaseError> {
    let gone = |error: JoinError| DatabaseError::Thread(error.into());
    task::spawn_blocking(work).await.map_err(gone)
}
