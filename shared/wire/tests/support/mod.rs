//! A coordinator's port on loopback, with its certificates.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test program uses its own part"
)]

use ndarray::Array2;
use privacy::SoFar;
use privacy::{
    Allowed, CohortFacts, Gate, JobFacts, Limits, Notice, Permission, Policy, Released, Rules,
};
use protocol::message::unpsl::{Centre, Contribution, Form, Part, Round};
use protocol::message::{
    Answer, Ask, Begin, Reply, Request, ToCoordinator, ToSite, Warrant, unpsl,
};
use protocol::name::RunId;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wire::certificates::{Role, Validity, init, issue};
use wire::{
    Address, ClientTls, CredentialFiles, Dial, Incoming, Sealed, ServeError, ServerTls, listen,
    seal, serve,
};

pub(crate) struct Port {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) incoming: mpsc::Receiver<Incoming>,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) serving: JoinHandle<Result<(), ServeError>>,
}

pub(crate) fn authority(folder: &Path) {
    init(folder, Validity::days(1)).unwrap();
}

pub(crate) fn party(folder: &Path, role: Role, name: &str) -> CredentialFiles {
    issue(folder, &role, name, Validity::days(1)).unwrap()
}

pub(crate) fn coordinator(folder: &Path) -> CredentialFiles {
    let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    party(folder, Role::Coordinator { hosts }, "main")
}

impl Port {
    pub(crate) async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        authority(folder.path());
        let files = coordinator(folder.path());
        Self::open_with(folder, &files).await
    }

    pub(crate) async fn open_with(folder: TempDir, files: &CredentialFiles) -> Self {
        Self::open_tls(folder, ServerTls::load(files).unwrap()).await
    }

    pub(crate) async fn open_tls(folder: TempDir, tls: ServerTls) -> Self {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, incoming) = mpsc::channel(16);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve(listener, tls, sender, async move {
            let _ = stopped.await;
        }));
        Self {
            folder,
            address,
            incoming,
            stop,
            serving,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Who comes next, within seconds.
    pub(crate) async fn comes(&mut self) -> Incoming {
        let coming = tokio::time::timeout(Duration::from_secs(30), self.incoming.recv()).await;
        coming.unwrap().unwrap()
    }

    pub(crate) fn dial(&self, role: Role, name: &str) -> Dial {
        self.dial_with(&party(self.folder.path(), role, name))
    }

    pub(crate) fn dial_with(&self, files: &CredentialFiles) -> Dial {
        Dial {
            address: Address::new(&self.address.to_string()).unwrap(),
            tls: ClientTls::load(files).unwrap(),
            proxy: None,
        }
    }
}

/// The gate of a site that allows everything.
pub(crate) fn gate() -> Gate {
    let rules = Rules {
        operators: Allowed::Everything,
        methods: Allowed::Everything,
        permissions: BTreeSet::from([Permission::SecondMoments, Permission::PairSums]),
        ceilings: Limits {
            rounds: 1_000_000,
            ..Rules::default().ceilings
        },
        ..Rules::default()
    };
    let job = JobFacts {
        operator: "east".to_owned(),
        method: Some("unpsl".to_owned()),
        limits: None,
        sites: 3,
        permissions: BTreeSet::from([Permission::SecondMoments, Permission::PairSums]),
        round_limit: 1_000_000,
        folds: 1,
        validation: None,
        queries: 0,
    };
    let cohort = CohortFacts {
        judged: None,
        patients: 100,
        classes: vec![50, 50],
        so_far: SoFar::default(),
    };
    Policy::new(rules)
        .unwrap()
        .admit(&job, &Limits::default())
        .unwrap()
        .cohort(&cohort)
        .unwrap()
}

/// An answer that no rule has cleared, as no site of a run sends it.
struct Uncleared(Answer);

impl Notice<Answer> for Uncleared {
    fn into_message(self) -> Answer {
        self.0
    }
}

pub(crate) fn contribution(matrix: Array2<f64>) -> ToCoordinator<Sealed> {
    let contribution = Contribution {
        matrix,
        objective: 0.5,
        iterations: 1,
        products: None,
    };
    let answer = Answer::Unpsl(unpsl::Answer::Contribution(contribution));
    reply(seal(Released::notice(Uncleared(answer))))
}

/// The answer to [`round`].
pub(crate) fn reply(answer: Sealed) -> ToCoordinator<Sealed> {
    ToCoordinator::Reply(Reply {
        signature: Vec::new(),
        run: run(),
        exchange: 1,
        journal: None,
        answer,
    })
}

/// The beginning of a run whose sites sum metrics of so many rows and columns.
pub(crate) fn begin((rows, rank): (usize, usize)) -> ToSite {
    let levels: Vec<String> = (0..rows).map(|level| level.to_string()).collect();
    let job = format!(
        "name = 'job'\nmethod = 'unpsl'\nsites = ['north', 'south', 'east']\n\
         [outcome]\ncolumn = 'y'\nkind = 'binary'\npositive = ['1']\n\
         [[features]]\nname = 'x'\nkind = 'categorical'\nlevels = {levels:?}\n[unpsl]\nrank = {rank}\n"
    );
    ToSite::Begin(Begin {
        run: run(),
        job,
        seed: 1,
        warrant: Warrant::default(),
        opening: None,
    })
}

/// A question with one large matrix, which a contribution of the same shape answers.
pub(crate) fn round(consensus: Array2<f64>) -> ToSite {
    round_with(consensus, 1.0)
}

/// The same with this penalty.
pub(crate) fn round_with(consensus: Array2<f64>, penalty: f64) -> ToSite {
    let round = Round {
        consensus: consensus.into(),
        centre: Centre::Sent(Array2::zeros((1, 1))),
        penalty,
        tolerance: 1e-6,
        part: Part::whole(Form::InnerProduct),
    };
    ToSite::Ask(Ask {
        run: run(),
        exchange: 1,
        request: Request::Unpsl(unpsl::Request::Round(round)),
    })
}

/// The matrix of a contribution of this shape, which travels as words.
pub(crate) fn contributed(message: ToCoordinator<Answer>, shape: (usize, usize)) -> Array2<f64> {
    let ToCoordinator::Reply(Reply {
        answer: Answer::Covered(covered),
        ..
    }) = message
    else {
        panic!("found {message:?}, wanted words");
    };
    let mut found = unpsl::Answer::Contribution(Contribution::blank(shape, None));
    covered.words.read_into(&mut found).unwrap();
    match found {
        unpsl::Answer::Contribution(found) => found.matrix,
        unpsl::Answer::Derivatives(_) | unpsl::Answer::Validated(_) => unreachable!(),
    }
}

pub(crate) fn run() -> RunId {
    RunId::new("run-1").unwrap()
}
