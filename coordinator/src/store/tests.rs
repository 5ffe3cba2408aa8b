//! What the store holds is read back, and what cannot be read ends nothing.

use super::*;
use protocol::failure::{Code, Failure};
use protocol::limits::RESULTS_PER_OPERATOR_MAX;
use protocol::message::{Answer, JournalHead};
use protocol::method::Model;
use protocol::method::unpsl::model::{self, RoundRow};
use protocol::name::SiteName;
use protocol::study::{Study, nobody, of_job, pinned};
use rusqlite::Connection;
use service::postgres::{DatabaseTls, Server};
use service::secret::Password;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

#[path = "../../../tests/support/cluster.rs"]
mod cluster;
#[path = "rows_tests.rs"]
mod rows;

use cluster::Cluster;

pub(super) const JOB: &str = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n[outcome]\ncolumn = \"y\"\n\
    kind = \"binary\"\npositive = [\"1\"]\n[[features]]\nname = \"x\"\nkind = \"numeric\"\n[unpsl]\n";

/// A store of either kind.
pub(super) enum Home {
    Sqlite(tempfile::TempDir),
    Postgres(Server, Arc<Cluster>),
}

/// The cluster that these tests share: the last one that holds it stops it.
static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
static DATABASES: AtomicU32 = AtomicU32::new(0);

fn cluster() -> Arc<Cluster> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cluster) = shared.upgrade() {
        return cluster;
    }
    let cluster = Arc::new(Cluster::start());
    *shared = Arc::downgrade(&cluster);
    cluster
}

impl Home {
    fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(super) fn postgres(options: &str) -> Option<Self> {
        if !Cluster::is_there() {
            return None;
        }
        let cluster = cluster();
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let database = format!("store_{number}");
        cluster.execute(&format!("CREATE DATABASE {database} {options}"));
        let server = Server {
            host: "127.0.0.1".to_owned(),
            port: cluster.port,
            database,
            user: cluster::OWNER.to_owned(),
            password: Some(Password::File(cluster.path("password").into())),
            tls: DatabaseTls::Disabled,
        };
        Some(Self::Postgres(server, cluster))
    }

    /// One of each kind.
    fn all() -> impl Iterator<Item = Self> {
        [Self::sqlite()].into_iter().chain(Self::postgres(""))
    }

    pub(super) fn store(&self) -> Store {
        match self {
            Self::Sqlite(folder) => Store::open(&folder.path().join("store")).unwrap(),
            Self::Postgres(server, _) => Store::lead(taken(server)).unwrap(),
        }
    }

    /// Another program's hand on the store.
    fn spoil(&self, sql: &str) {
        match self {
            Self::Sqlite(folder) => {
                let connection = Connection::open(folder.path().join("store")).unwrap();
                connection.execute_batch(sql).unwrap();
            }
            Self::Postgres(server, cluster) => {
                let sql = sql.replace("x'", "'\\x");
                let sql = format!("SET search_path = kindred; {sql}");
                cluster.execute_in(&server.database, &sql);
            }
        }
    }
}

/// The lease, once a session that has gone has let go of it.
pub(super) fn taken(server: &Server) -> Lease {
    for _ in 0..500 {
        match Session::connect(server).unwrap().try_lead().unwrap() {
            Taken::Leads(lease) => return lease,
            Taken::Waits(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    panic!("the lease is not let go of");
}

fn own(operator: &str) -> Reach {
    Reach::Own(OperatorName::new(operator).unwrap())
}

pub(super) fn submission(run: &str, operator: &str, at: u64) -> Submission {
    Submission {
        run: RunId::new(run).unwrap(),
        operator: OperatorName::new(operator).unwrap(),
        job: Job::parse(JOB).unwrap(),
        seed: 7,
        warrant: Warrant::default(),
        submitted: Timestamp(at),
        began: None,
    }
}

fn converged(run: &str) -> RunResult {
    let failure = Failure::new(Code::Internal, "");
    let failed = failed_result(RunId::new(run).unwrap(), JOB.to_owned(), 7, failure);
    RunResult {
        ending: Ending::Converged,
        model: Some(Model::Unpsl(model::Model {
            certificate: None,
            rounds: vec![RoundRow {
                round: 1,
                objective: Some(0.5),
                left: None,
                residual: None,
                primal_residual: Some(0.1),
                dual_residual: Some(0.1),
                penalty: Some(1.0),
                metric_norm: None,
                dual_norm: None,
                seconds: 1.0,
            }],
            objective: None,
            selection: Vec::new(),
            folds: 0,
            judges: 0,
            nested: false,
            features: Vec::new(),
            dropped: Vec::new(),
            metric: None,
        })),
        ..failed
    }
}

fn names(listed: &[Listed]) -> Vec<String> {
    let name = |one: &Listed| one.run.as_ref().map_or("-".to_owned(), ToString::to_string);
    listed.iter().map(name).collect()
}

#[test]
fn a_list_shows_the_runs_of_one_operator_the_newest_first() {
    for home in Home::all() {
        let mut store = home.store();
        for (run, operator, at) in [("a1", "a", 1), ("b1", "b", 2), ("a2", "a", 3)] {
            store.submit(&submission(run, operator, at)).unwrap();
        }
        store.end(converged("a1"), Timestamp(99)).unwrap();
        let listed = store.list(&own("a")).unwrap();
        assert_eq!(names(&listed), ["a2", "a1"]);
        assert_eq!((listed[0].ended, listed[1].ended), (false, true));
        let summary = listed[1].summary.as_ref().unwrap();
        assert_eq!((summary.course.round, summary.course.objective), (1, None));
        assert_eq!(
            store.result(&RunId::new("a1").unwrap(), &own("b")).unwrap(),
            None
        );
        assert!(
            store
                .result(&RunId::new("a1").unwrap(), &own("a"))
                .unwrap()
                .is_some()
        );
    }
}

#[test]
fn a_result_that_cannot_be_read_back_is_kept_as_a_failure() {
    for home in Home::all() {
        let mut store = home.store();
        store.submit(&submission("a1", "a", 1)).unwrap();
        let mut result = converged("a1");
        let Some(Model::Unpsl(model)) = &mut result.model else {
            panic!("the result is one of UnPSL");
        };
        model.rounds[0].dual_residual = Some(f64::INFINITY);
        model.objective = Some(f64::NAN);
        let ending = store.end(result, Timestamp(99)).unwrap();
        assert!(matches!(&ending, Ending::Failed(failure) if failure.code == Code::Result));
        let kept = store
            .result(&RunId::new("a1").unwrap(), &own("a"))
            .unwrap()
            .unwrap();
        assert_eq!(kept.ending, ending);
    }
}

#[test]
fn a_spoilt_row_is_listed_as_such_and_hides_no_other() {
    for home in Home::all() {
        let mut store = home.store();
        for run in ["a1", "a2", "a3"] {
            store.submit(&submission(run, "a", 1)).unwrap();
            store.end(converged(run), Timestamp(99)).unwrap();
        }
        home.spoil("UPDATE ended SET summary = x'ff00' WHERE run = 'a2'; UPDATE runs SET id = 'A 3' WHERE id = 'a3'");
        let listed = store.list(&own("a")).unwrap();
        assert_eq!(names(&listed), ["-", "a2", "a1"]);
        let read: Vec<bool> = listed.iter().map(|one| one.summary.is_some()).collect();
        assert_eq!(read, [false, false, true]);
        assert!(
            store
                .summary(&RunId::new("a2").unwrap(), &own("a"))
                .is_err()
        );
    }
}

#[test]
fn what_has_not_ended_is_found_again_with_what_is_wrong_with_it() {
    for home in Home::all() {
        let store = home.store();
        for run in ["a1", "a2", "a3"] {
            store.submit(&submission(run, "a", 1)).unwrap();
        }
        store
            .begin(&RunId::new("a1").unwrap(), Timestamp(9))
            .unwrap();
        home.spoil(
            "UPDATE runs SET job = 'rank = 3' WHERE id = 'a2'; UPDATE runs SET warrant = x'ff' WHERE id = 'a3'; \
             INSERT INTO runs (id, operator, job, seed, submitted) VALUES ('No Name', 'a', '', 1, 1)",
        );
        let found = store.unfinished().unwrap();
        let read: Vec<(String, bool)> = found
            .iter()
            .map(|one| (one.run.to_string(), one.submission.is_ok()))
            .collect();
        let wanted = [("a1", true), ("a2", false), ("a3", false)];
        assert_eq!(read, wanted.map(|(run, is_read)| (run.to_owned(), is_read)));
        let began = found[0].submission.as_ref().unwrap().began;
        assert_eq!(
            (began, store.latest().unwrap()),
            (Some(Timestamp(9)), Timestamp(9))
        );
    }
}

#[test]
fn records_come_back_with_their_answers() {
    for home in Home::all() {
        let mut store = home.store();
        let run = RunId::new("a1").unwrap();
        store.submit(&submission("a1", "a", 1)).unwrap();
        let record = Record {
            signatures: vec![vec![7; 64], Vec::new(), Vec::new()],
            at: Timestamp(5),
            exchange: 0,
            answers: vec![Some(Answer::Digest([7; 32])), None, None],
        };
        store.keep(&run, &record).unwrap();
        assert_eq!(store.records(&run).unwrap(), [record]);
        home.spoil("UPDATE answers SET answer = x'00ff' WHERE site = 0");
        assert!(matches!(store.records(&run), Err(StoreError::Decode(_))));
    }
}

#[test]
fn the_oldest_results_of_an_operator_are_dropped_and_nobody_elses() {
    for home in Home::all() {
        let mut store = home.store();
        store.submit(&submission("b1", "b", 0)).unwrap();
        store.end(converged("b1"), Timestamp(99)).unwrap();
        let runs = RESULTS_PER_OPERATOR_MAX + 3;
        for number in 0..runs {
            let run = format!("a{number:03}");
            store.submit(&submission(&run, "a", number as u64)).unwrap();
            store.end(converged(&run), Timestamp(99)).unwrap();
        }
        let listed = names(&store.list(&own("a")).unwrap());
        assert_eq!(listed.len(), RESULTS_PER_OPERATOR_MAX);
        assert_eq!(listed.last().map(String::as_str), Some("a003"));
        assert_eq!(names(&store.list(&own("b")).unwrap()), ["b1"]);
        assert_eq!(
            store.known(&RunId::new("a000").unwrap(), JOB, 7).unwrap(),
            Known::New
        );
    }
}

#[test]
fn a_store_of_the_first_version_is_brought_up_to_date_with_its_unreadable_result() {
    let home = Home::sqlite();
    let good: String = wire::encode_result(&converged("good"))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    home.spoil(&format!(
        "{} INSERT INTO runs (id, operator, job, seed, submitted, result) VALUES
         ('good', 'a', 'job', 7, 1, x'{good}'), ('bad', 'a', 'job', 7, 2, x'0102'), ('open', 'a', 'job', 7, 3, NULL)",
        schema::FIRST
    ));
    let store = home.store();
    let listed = store.list(&own("a")).unwrap();
    assert_eq!(names(&listed), ["open", "bad", "good"]);
    let state: Vec<(bool, bool)> = listed
        .iter()
        .map(|one| (one.ended, one.summary.is_some()))
        .collect();
    assert_eq!(state, [(false, false), (true, false), (true, true)]);
    drop(store);
    home.store();
}

#[test]
fn results_older_than_they_are_kept_go_and_cards_of_studies_stay() {
    for home in Home::all() {
        let mut store = home.store();
        for (run, at) in [
            ("old", 1_000),
            ("card", 2_000),
            ("new", 9_000),
            ("going", 10),
        ] {
            store.submit(&submission(run, "a", 1)).unwrap();
            if run != "going" {
                store.end(converged(run), Timestamp(at)).unwrap();
            }
        }
        home.spoil("INSERT INTO studies VALUES ('s', '', 'card', 1, 0, NULL)");
        let keep = Duration::from_millis(5_000);
        assert_eq!(store.drop_ended(Timestamp(6_000), keep).unwrap(), 0);
        assert_eq!(store.drop_ended(Timestamp(6_001), keep).unwrap(), 1);
        assert_eq!(store.drop_ended(Timestamp(6_001), keep).unwrap(), 0);
        let mut left = names(&store.list(&own("a")).unwrap());
        left.sort();
        assert_eq!(left, ["card", "going", "new"]);
    }
}

#[test]
fn a_run_is_removed_by_its_operator_once_it_has_ended_unless_it_opened_a_study() {
    for home in Home::all() {
        let mut store = home.store();
        for run in ["card", "done", "going"] {
            store.submit(&submission(run, "a", 1)).unwrap();
        }
        for run in ["card", "done"] {
            store.end(converged(run), Timestamp(2)).unwrap();
        }
        home.spoil("INSERT INTO studies VALUES ('s', '', 'card', 1, 0, NULL)");
        let run = |name: &str| RunId::new(name).unwrap();
        assert_eq!(store.remove(&run("done"), &own("b")).unwrap(), None);
        assert_eq!(store.remove(&run("going"), &own("a")).unwrap(), None);
        assert_eq!(store.remove(&run("card"), &own("a")).unwrap(), Some(false));
        assert_eq!(store.remove(&run("done"), &own("a")).unwrap(), Some(true));
        assert_eq!(store.remove(&run("done"), &own("a")).unwrap(), None);
        assert!(store.result(&run("card"), &own("a")).unwrap().is_some());
    }
}

#[test]
fn tables_of_a_later_version_are_refused_and_left_as_they_are() {
    for home in Home::all() {
        drop(home.store());
        let (later, opened) = match &home {
            Home::Sqlite(folder) => {
                home.spoil("PRAGMA user_version = 99");
                (
                    "PRAGMA user_version",
                    Store::open(&folder.path().join("store")),
                )
            }
            Home::Postgres(server, _) => {
                home.spoil("UPDATE version SET version = 99");
                ("SELECT version FROM version", Store::lead(taken(server)))
            }
        };
        let error = opened.err().unwrap();
        assert!(matches!(error, StoreError::Later { found: 99 }), "{later}");
    }
}

#[test]
fn studies_come_back_with_what_was_approved_and_how_they_opened() {
    for home in Home::all() {
        let store = home.store();
        let (text_of_job, draft) = of_job(&Job::parse(JOB).unwrap(), "a", &[]).unwrap();
        let text = pinned(&draft, |party| Some(nobody(party))).unwrap();
        let study = Study::parse(&text).unwrap();
        let run = |name: &str| RunId::new(name).unwrap();
        for name in ["first", "second"] {
            store.propose(&study, &run(name), Timestamp(3)).unwrap();
        }
        let known = store.study(&study.name).unwrap().unwrap();
        assert_eq!((known.run, known.proposed), (run("second"), Timestamp(3)));
        assert!(!known.closed && known.opening.is_none());
        store.close_study(&study.name).unwrap();
        let studies = store.studies().unwrap();
        assert_eq!(studies.len(), 1);
        assert!(studies[0].closed && studies[0].study.text == study.text);
        // A job of the study, and one of none.
        let mut submitted = submission("a1", "a", 1);
        submitted.job = Job::parse(&study.join(&text_of_job)).unwrap();
        store.submit(&submitted).unwrap();
        store.submit(&submission("a2", "a", 1)).unwrap();
        for (whose, wanted) in [(own("a"), 1), (own("b"), 0), (Reach::All, 1)] {
            assert_eq!(store.runs_of(&study, &whose).unwrap().len(), wanted);
        }
    }
}

#[test]
fn journals_are_kept_in_the_place_of_earlier_ones() {
    for home in Home::all() {
        let mut store = home.store();
        let site = SiteName::new("north").unwrap();
        for entries in [1, u64::MAX] {
            let hash = "0".repeat(64);
            let heads = BTreeMap::from([(site.clone(), JournalHead { entries, hash })]);
            store.keep_journals(&heads).unwrap();
            assert_eq!(store.journals().unwrap(), heads);
        }
    }
}
