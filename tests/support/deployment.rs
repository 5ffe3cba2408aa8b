//! The deployed form on one machine: a coordinator, site agents and an operator, each with a
//! certificate that the command line issued.

use crate::programs::{Home, PATIENCE, Process, Ran, coordinator, site_agent, until};
use crate::studies::{OfStudy, STUDY, of_study, patients};
use protocol::name::RunId;
use protocol::progress::Progress;
use protocol::study::named;
use site_agent::books::ledger::KEY_NAME;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::Runtime;
use wire::{Address, ClientTls, CredentialFiles, Dial, OperatorClient, private};

/// The sites of the demonstration.
pub const SITES: [&str; 4] = ["north", "south", "east", "west"];
/// Their patients: few, so that a round takes milliseconds.
pub const PATIENTS: &str = "north=130,south=90,east=70,west=60";
/// What the test itself submits and watches with.
const OPERATOR: &str = "researcher";

/// A coordinator, agents, and an operator.
pub struct Deployment {
    port: u16,
    coordinator: Option<Process>,
    agents: BTreeMap<&'static str, Process>,
    /// Where all of it lies. It goes last: programs of a test that fails show their logs.
    pub home: Home,
}

impl Deployment {
    /// Certificates, configurations and patients; nothing runs yet.
    pub fn prepare() -> Self {
        let home = Home::with_patients(PATIENTS);
        let port = free_port();
        issue(&home, &["init"]);
        issue(
            &home,
            &[
                "issue",
                "--coordinator",
                "centre",
                "--hosts",
                "127.0.0.1,localhost",
            ],
        );
        issue(&home, &["issue", "--operator", OPERATOR]);
        let tls = tls_of("coordinator-centre");
        home.write(
            "coordinator.toml",
            &format!("listen = \"127.0.0.1:{port}\"\nfolder = \"coordinator\"\n\n{tls}"),
        );
        home.write(
            "operator.toml",
            &operator_config(port, &format!("operator-{OPERATOR}")),
        );
        for site in SITES {
            issue(&home, &["issue", "--site", site]);
            home.write(
                &format!("{site}.toml"),
                &site_config(site, port, &format!("site-{site}")),
            );
            keep_key(&home, site);
        }
        Self {
            home,
            port,
            coordinator: None,
            agents: BTreeMap::new(),
        }
    }

    /// Gives all parties new certificates for the keys that they have.
    pub fn renew(&self) {
        issue(&self.home, &["renew", "--coordinator", "centre"]);
        issue(&self.home, &["renew", "--operator", OPERATOR]);
        for site in SITES {
            issue(&self.home, &["renew", "--site", site]);
        }
    }

    /// A deployment whose coordinator alone runs.
    pub fn alone() -> Self {
        let mut deployment = Self::prepare();
        deployment.start_coordinator();
        deployment
    }

    /// A deployment whose coordinator and agents all run.
    pub fn start() -> Self {
        let mut deployment = Self::alone();
        for site in SITES {
            deployment.start_agent(site);
        }
        deployment
    }

    /// A deployment whose coordinator alone runs, once all have opened the study of a job's patients: its runs wait.
    pub fn deserted(job: &str) -> Self {
        let mut deployment = Self::start();
        deployment.of_study(job);
        deployment.desert();
        deployment
    }

    /// All agents are killed.
    pub fn desert(&mut self) {
        std::mem::take(&mut self.agents)
            .into_values()
            .for_each(Process::kill);
    }

    /// A job that has everything in itself, as one of the study of its patients; one that names a study, as it is. Where there is no
    /// such study yet, all agents, who must run, approve and open it.
    pub fn of_study(&self, job: &str) -> String {
        if named(job).is_some() {
            return job.to_owned();
        }
        let OfStudy { own, draft } = of_study(job);
        let file = study_file(STUDY);
        match std::fs::read_to_string(self.home.join(&file)) {
            Ok(known) => assert_eq!(patients(&known), patients(&draft), "other patients"),
            Err(_) => self.open_study(STUDY, &draft),
        }
        let word = |word: &str| format!("study = {word:?}");
        own.replacen(&word(STUDY), &word(&file), 1)
    }

    /// Has all hospitals of a study, whose agents run, approve and open it. Its file is `NAME.study.toml`.
    pub fn open_study(&self, name: &str, draft: &str) {
        self.propose(name, draft);
        let open = format!("{name}: open\n");
        until("the study to open", PATIENCE, || {
            let shown = self.study(&["show", name]);
            shown.starts_with(&open).then_some(())
        });
    }

    /// Proposes a study, and approves it at every hospital.
    pub fn propose(&self, name: &str, draft: &str) {
        let file = study_file(name);
        self.home.write("draft.toml", draft);
        let certificates = ["--certificates", "certificates", "--out", &file];
        let drafting = [&["study", "draft", "draft.toml"][..], &certificates].concat();
        self.home.run(&coordinator(), &drafting).must_succeed();
        self.study(&["propose", &file]);
        let known = wire::jobs::study(&self.home.join(&file)).expect("the study");
        for site in known.roster() {
            let config = format!("{site}.toml");
            let approving = [
                "study",
                "approve",
                "--confirm-units",
                "--config",
                &config,
                &file,
            ];
            self.home.run(&site_agent(), &approving).must_succeed();
        }
    }

    /// `kindred-coordinator study ... --config operator.toml`; what it says.
    fn study(&self, arguments: &[&str]) -> String {
        let all = [&["study"], arguments, &["--config", "operator.toml"]].concat();
        self.home.run(&coordinator(), &all).must_succeed().stdout
    }

    /// The port that the coordinator listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the coordinator, and waits until it listens.
    pub fn start_coordinator(&mut self) {
        let arguments = ["serve", "--config", "coordinator.toml"];
        let before = self.coordinator_log().matches(WAITS).count();
        let mut process = self.home.start("coordinator", &coordinator(), &arguments);
        until("the coordinator to listen", PATIENCE, || {
            assert!(process.ended().is_none(), "{}", process.log());
            (process.log().matches(WAITS).count() > before).then_some(())
        });
        self.coordinator = Some(process);
    }

    /// Starts the agent of a site.
    pub fn start_agent(&mut self, site: &'static str) {
        let config = format!("{site}.toml");
        let process = self
            .home
            .start(site, &site_agent(), &["serve", "--config", &config]);
        self.agents.insert(site, process);
    }

    /// Kills the coordinator.
    pub fn kill_coordinator(&mut self) {
        self.coordinator.take().expect("it runs").kill();
    }

    /// Kills the agent of a site.
    pub fn kill_agent(&mut self, site: &str) {
        self.agents.remove(site).expect("it runs").kill();
    }

    /// The agent of a site, which runs.
    pub fn agent(&mut self, site: &str) -> &mut Process {
        self.agents.get_mut(site).expect("it runs")
    }

    /// Memory that the coordinator holds.
    pub fn coordinator_bytes(&self) -> u64 {
        self.running().resident_bytes()
    }

    /// The coordinator, which runs, to be looked at.
    pub fn running(&self) -> &Process {
        self.coordinator.as_ref().expect("it runs")
    }

    /// The coordinator, which runs.
    pub fn coordinator(&mut self) -> &mut Process {
        self.coordinator.as_mut().expect("it runs")
    }

    /// The address that the coordinator listens on.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The certificate, key and authority that were issued to `party`, as `site-north`.
    pub fn credentials(&self, party: &str) -> CredentialFiles {
        CredentialFiles::in_folder(&self.home.join("certificates").join(party))
    }

    /// How `party` reaches the coordinator.
    pub fn dial(&self, party: &str) -> Dial {
        Dial {
            address: Address::new(&self.address().to_string()).expect("an address"),
            tls: ClientTls::load(&self.credentials(party)).expect("certificates"),
            proxy: None,
        }
    }

    /// What every coordinator of this deployment has written.
    pub fn coordinator_log(&self) -> String {
        std::fs::read_to_string(self.home.join("coordinator.log")).unwrap_or_default()
    }

    /// `kindred-coordinator job ... --config operator.toml`.
    pub fn job(&self, arguments: &[&str]) -> Ran {
        self.job_by("operator.toml", arguments)
    }

    /// `kindred-coordinator job ... --config rival.toml`, once there is a rival.
    pub fn job_by_rival(&self, arguments: &[&str]) -> Ran {
        self.job_by("rival.toml", arguments)
    }

    fn job_by(&self, config: &str, arguments: &[&str]) -> Ran {
        let all = [&["job"], arguments, &["--config", config]].concat();
        self.home.run(&coordinator(), &all)
    }

    /// A second operator, with a certificate and a configuration of the name `rival`.
    pub fn admit_rival(&self) {
        issue(&self.home, &["issue", "--operator", "rival"]);
        let config = operator_config(self.port, "operator-rival");
        self.home.write("rival.toml", &config);
    }

    /// Submits a job by the command line, as one of the study of its patients; gives the run.
    pub fn submit(&self, job: &str, more: &[&str]) -> RunId {
        self.home.write("job.toml", &self.of_study(job));
        let mut arguments = vec!["submit", "job.toml"];
        arguments.extend(more);
        let ran = self.job(&arguments).must_succeed();
        RunId::new(ran.stdout.trim()).expect("a run's id")
    }

    /// Watches `run` as an operator does.
    pub fn watch(&self, run: &RunId) -> Watch {
        let dial = self.dial(&format!("operator-{OPERATOR}"));
        let runtime = Runtime::new().expect("a runtime");
        let progress = runtime
            .block_on(async { OperatorClient::connect(&dial).await?.watch(run).await })
            .expect("the run can be watched");
        Watch { runtime, progress }
    }
}

/// What the coordinator says once it listens.
pub const WAITS: &str = "the coordinator waits for sites and operators";

/// The progress of a run.
pub struct Watch {
    runtime: Runtime,
    progress: wire::ProgressReceiver,
}

impl Watch {
    /// Waits for a state that `wanted` accepts.
    #[track_caller]
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Progress) -> bool) -> Progress {
        self.within(PATIENCE, what, wanted)
    }

    /// As `until`, for no longer than `patience`.
    #[track_caller]
    pub fn within(
        &mut self,
        patience: Duration,
        what: &str,
        wanted: impl Fn(&Progress) -> bool,
    ) -> Progress {
        let mut last = None;
        let found = self.runtime.block_on(async {
            tokio::time::timeout(patience, async {
                while let Some(progress) = self.progress.next().await.expect("progress") {
                    if wanted(&progress) {
                        return Some(progress);
                    }
                    last = Some(progress);
                }
                None
            })
            .await
        });
        match found {
            Ok(Some(progress)) => progress,
            Ok(None) => panic!("the run ended before {what}: {last:?}"),
            Err(_) => panic!("waited in vain for {what}: {last:?}"),
        }
    }

    /// Waits until `round` rounds are closed.
    #[track_caller]
    pub fn until_round(&mut self, round: u32) -> Progress {
        let what = format!("round {round}");
        self.until(&what, |progress| {
            progress.course.round >= round && progress.ending.is_none()
        })
    }
}

fn study_file(name: &str) -> String {
    format!("{name}.study.toml")
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// `[tls]` with the credentials of `party` in the folder `certificates`.
pub fn tls_of(party: &str) -> String {
    format!(
        "[tls]\nca = \"certificates/{party}/ca.pem\"\n\
         certificate = \"certificates/{party}/certificate.pem\"\n\
         key = \"certificates/{party}/key.pem\"\n"
    )
}

/// An operator's configuration, with the credentials of `party`.
pub fn operator_config(port: u16, party: &str) -> String {
    format!("coordinator = \"127.0.0.1:{port}\"\n\n{}", tls_of(party))
}

/// Gives a site a key that is the same in every run of the tests: its samples and its noise are too, so a test that
/// passes once passes always.
fn keep_key(home: &Home, site: &str) {
    let folder = home.join(&format!("sites/{site}"));
    let name: Vec<u8> = site.bytes().cycle().take(32).collect();
    private::folder(&folder).expect("the folder of a site");
    private::write(&folder.join(KEY_NAME), &name).expect("the key of a site");
}

/// A site's configuration, with the credentials of `party`; everything may be asked.
pub fn site_config(site: &str, port: u16, party: &str) -> String {
    format!(
        "site = \"{site}\"\ncoordinator = \"127.0.0.1:{port}\"\nfolder = \"sites/{site}\"\n\n{}\n\
         [source]\nkind = \"csv\"\npath = \"data/{site}.csv\"\npatient = \"patient\"\n\n{}\
         [policy]\noperators = [\"*\"]\nmethods = [\"unpsl\", \"forest\", \"regression\", \"neighbours\", \"cluster\", \"compare\"]\nforests = true\nneighbours = true\nclusters = true\nsecond_moments = true\npair_sums = true\nexact_sums = true\n",
        tls_of(party),
        ranges()
    )
}

/// The dictionary of synthetic patients: ranges of all numbers, which jobs of federated forests need.
fn ranges() -> String {
    let families = [("first", 8), ("second", 8), ("mixed", 8), ("irrelevant", 6)];
    let mut tables = String::new();
    for (family, count) in families {
        for number in 1..=count {
            let _ = writeln!(
                tables,
                "[columns.{family}_{number}]\nrange = [-1000, 1000]\n"
            );
        }
    }
    tables
}

/// `kindred-coordinator certificates ... --folder certificates`.
pub fn issue(home: &Home, arguments: &[&str]) {
    let mut all = vec!["certificates"];
    all.extend(arguments);
    all.extend(["--folder", "certificates"]);
    home.run(&coordinator(), &all).must_succeed();
}

/// Gives each of the sites its credentials, issued once for all homes of this process.
pub fn certify(home: &Home) {
    static ISSUED: LazyLock<Home> = LazyLock::new(|| {
        let home = Home::new();
        issue(&home, &["init"]);
        for site in SITES {
            issue(&home, &["issue", "--site", site]);
        }
        home
    });
    for site in SITES {
        let folder = format!("certificates/site-{site}");
        std::fs::create_dir_all(home.join(&folder)).expect("a folder of credentials");
        for file in ["ca.pem", "certificate.pem", "key.pem"] {
            let path = format!("{folder}/{file}");
            std::fs::copy(ISSUED.join(&path), home.join(&path)).expect("credentials");
        }
    }
}
