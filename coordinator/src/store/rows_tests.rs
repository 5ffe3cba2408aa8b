//! The rows of every table against a golden copy, `rows.sql`: what a store writes, and what it reads of the same rows. Where one of
//! these fails, stores of earlier releases are read differently, or earlier releases read those of this one differently.

use super::*;
use protocol::message::{ColumnHistogram, Encapsulations, Introduction};
use protocol::opening::Opening;
use protocol::study::{Approval, SignedApproval};

const GOLDEN: &str = include_str!("rows.sql");
const TABLES: [&str; 7] = [
    "runs",
    "records",
    "answers",
    "ended",
    "journals",
    "studies",
    "approvals",
];

fn run(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

fn warrant(token: &str) -> Warrant {
    Warrant {
        token: token.to_owned(),
        chain: vec![vec![0x30, 0x00], vec![0x30, 0x01]],
        scheme: 0x0403,
        signature: vec![7, 8, 9],
    }
}

fn submitted(name: &str) -> Submission {
    Submission {
        warrant: warrant("its token"),
        began: Some(Timestamp(1_700_000_000_250)),
        seed: u64::MAX,
        ..submission(name, "researcher", 1_700_000_000_000)
    }
}

fn result(name: &str) -> RunResult {
    RunResult {
        version: "0.2.0".to_owned(),
        ..converged(name)
    }
}

fn records() -> [Record; 2] {
    let record = |exchange, answers, signatures| Record {
        exchange,
        at: Timestamp(1_700_000_001_000 + u64::from(exchange)),
        answers,
        signatures,
    };
    let digest = Some(Answer::Digest([7; 32]));
    [
        record(1, vec![digest, None], vec![vec![5; 64], Vec::new()]),
        record(2, vec![None, None], vec![Vec::new(), vec![6; 64]]),
    ]
}

fn study() -> Study {
    let (_, draft) = of_job(&Job::parse(JOB).unwrap(), "a", &[]).unwrap();
    Study::parse(&pinned(&draft, |party| Some(nobody(party))).unwrap()).unwrap()
}

fn approved() -> SignedApproval {
    SignedApproval {
        approval: Approval {
            study: "a".to_owned(),
            digest: "ab".repeat(32),
            commitment: "cd".repeat(32),
            patients_at_most: 130,
            approved: Timestamp(1_700_000_002_000),
        },
        word: warrant(""),
    }
}

fn opening() -> Opening {
    let introduction = |of: u8| Introduction {
        agreement: vec![of; 32],
        encapsulation: vec![of + 1; 1_184],
        signing: vec![of + 2; 32],
        patients_at_most: 120,
        chain: vec![vec![0x30, 0x00]],
        scheme: 0x0403,
        signature: vec![of; 3],
    };
    let encapsulations = |ciphertexts, common| Encapsulations {
        ciphertexts,
        common,
    };
    Opening {
        run: run("opened"),
        digest: "ef".repeat(32),
        introductions: vec![introduction(1), introduction(4)],
        encapsulations: vec![
            encapsulations(
                vec![Vec::new(), vec![8; 1_088]],
                vec![Vec::new(), vec![9; 32]],
            ),
            encapsulations(vec![Vec::new(); 2], vec![Vec::new(); 2]),
        ],
        left_out: vec![0, 2],
        counts: vec![vec![ColumnHistogram {
            ends: vec![3, 64],
            counts: vec![20, 30],
        }]],
    }
}

fn heads() -> BTreeMap<SiteName, JournalHead> {
    let head = |entries, digit: &str| JournalHead {
        entries,
        hash: digit.repeat(64),
    };
    let of = |name: &str| SiteName::new(name).unwrap();
    BTreeMap::from([(of("north"), head(40, "a")), (of("south"), head(7, "b"))])
}

/// Every row, as SQL that inserts it.
fn rows(store: &Path) -> String {
    let connection = Connection::open(store).unwrap();
    let mut sql = String::new();
    for table in TABLES {
        let listed = format!("SELECT name FROM pragma_table_info('{table}')");
        let mut columns = connection.prepare(&listed).unwrap();
        let columns = columns
            .query_map((), |row| row.get::<_, String>(0))
            .unwrap();
        let columns: Vec<String> = columns.collect::<Result<_, _>>().unwrap();
        let quoted = columns.iter().map(|name| format!("quote({name})"));
        let values = quoted.collect::<Vec<_>>().join(" || ',\n' || ");
        let listed = format!("SELECT {values} FROM {table} ORDER BY rowid");
        let mut found = connection.prepare(&listed).unwrap();
        let found = found.query_map((), |row| row.get::<_, String>(0)).unwrap();
        for row in found {
            let (columns, values) = (columns.join(", "), row.unwrap().replace("X'", "x'"));
            sql.push_str(&format!(
                "INSERT INTO {table} ({columns}) VALUES (\n{values});\n"
            ));
        }
    }
    sql
}

#[test]
fn a_store_writes_the_rows_that_it_always_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    for name in ["opened", "going"] {
        store.submit(&submitted(name)).unwrap();
        store
            .begin(&run(name), Timestamp(1_700_000_000_250))
            .unwrap();
    }
    for record in records() {
        store.keep(&run("going"), &record).unwrap();
    }
    store
        .end(result("opened"), Timestamp(1_700_000_003_000))
        .unwrap();
    store.keep_journals(&heads()).unwrap();
    let study = study();
    let at = Timestamp(1_700_000_000_000);
    store.propose(&study, &run("opened"), at).unwrap();
    let site = SiteName::new("north").unwrap();
    store.approve(&site, &approved()).unwrap();
    store.open_study(&study.name, &opening()).unwrap();
    let found = rows(&path);
    assert!(found == GOLDEN, "found other rows:\n{found}");
}

#[test]
fn a_store_reads_the_rows_that_it_always_wrote() {
    for home in Home::all() {
        drop(home.store());
        home.spoil(GOLDEN);
        let store = home.store();
        let unfinished = store.unfinished().unwrap();
        let found: Vec<_> = unfinished.iter().map(|one| &one.submission).collect();
        assert_eq!(found, [&Ok(submitted("going"))]);
        assert_eq!(store.records(&run("going")).unwrap(), records());
        let ended = store.result(&run("opened"), &own("researcher")).unwrap();
        let times = protocol::progress::Times {
            submitted: Some(Timestamp(1_700_000_000_000)),
            began: Some(Timestamp(1_700_000_000_250)),
            ended: Some(Timestamp(1_700_000_003_000)),
        };
        let wanted = RunResult {
            operator: OperatorName::new("researcher").ok(),
            times,
            ..result("opened")
        };
        let summary = store.summary(&run("opened"), &Reach::All).unwrap().unwrap();
        assert_eq!(summary.ending, Some(Ending::Converged));
        assert_eq!((summary.times, summary.course.round), (times, 1));
        assert_eq!(ended, Some(wanted));
        assert_eq!(store.journals().unwrap(), heads());
        let known = store.studies().unwrap().pop().unwrap();
        assert_eq!(known.study, study());
        assert_eq!((known.run, known.closed), (run("opened"), false));
        assert_eq!(known.proposed, Timestamp(1_700_000_000_000));
        assert_eq!(known.opening, Some(opening()));
        let site = SiteName::new("north").unwrap();
        assert_eq!(known.approvals, BTreeMap::from([(site, approved())]));
    }
}
