//! Queries to a real PostgreSQL, in its good and its bad hours.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "../../tests/support/cluster.rs"]
mod cluster;
mod sources;

use cluster::Cluster;
use site_agent::source::read_cohort;
use sources::{JOB, bits, categorical, config, job, numbers, read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The cluster that the tests of this file share: starting one takes a second, and the last test
/// that holds it stops it.
static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

struct Server {
    cluster: Cluster,
    certificate: String,
}

fn server() -> Arc<Server> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = signed.cert.pem();
    let cluster = Cluster::with_tls(&certificate, &signed.signing_key.serialize_pem());
    let server = Arc::new(Server {
        cluster,
        certificate,
    });
    *shared = Arc::downgrade(&server);
    server
}

const PATIENTS: &str = "DROP TABLE IF EXISTS patients;
CREATE TABLE patients (id uuid, age smallint, chol numeric(8,3), sex text, born date, grade varchar,
    smoker boolean, num integer, note json);
INSERT INTO patients VALUES
('00000000-0000-0000-0000-00000000000a', 63, 233.125, 'M', '1960-02-29', 'low', true, 0, '{}'),
('00000000-0000-0000-0000-00000000000b', NULL, 0, 'F', '1950-07-01', 'high', false, 2, '{}'),
('00000000-0000-0000-0000-00000000000c', 41, 0.002, 'M', NULL, 'mid', NULL, 1, '{}'),
('00000000-0000-0000-0000-00000000000d', 50, 180, 'M', '1970-01-01', 'mid', true, NULL, '{}');";

fn source(server: &Server, query: &str) -> String {
    source_with(server, query, "tls = 'disabled'", "127.0.0.1")
}

fn source_with(server: &Server, query: &str, tls: &str, host: &str) -> String {
    let cluster = &server.cluster;
    let password = cluster.path("password");
    format!(
        "kind = 'postgres'\nhost = '{host}'\nport = {}\ndatabase = 'postgres'\nuser = 'reader'\n\
         password_file = '{password}'\nstatement_timeout_seconds = 2\n{tls}\n{query}\n",
        cluster.port
    )
}

fn problems(source: &str) -> String {
    let config = config(Path::new("/"), source, "");
    read(&config, &job(JOB))
        .expect_err("the query does not fit")
        .to_string()
}

#[test]
fn every_kind_of_column_is_read_over_tls_with_a_checked_certificate() {
    let server = server();
    let Server {
        cluster,
        certificate,
    } = &*server;
    let table = PATIENTS.replace("patients", "typed");
    cluster.execute(&table);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), certificate).unwrap();
    let query = "query = 'SELECT * FROM typed ORDER BY id'\npatient = 'id'";
    let good = source_with(&server, query, "ca = 'ca.pem'", "localhost");
    let read_it = |source: &str| read(&config(folder.path(), source, ""), &job(JOB));
    let read = read_it(&good).unwrap();
    assert_eq!(read.left_out, 1);
    assert_eq!(read.patients.id(1), "0000000000000000000000000000000b");
    let nan = f64::NAN;
    assert_eq!(numbers(&read.cohort, "age"), bits(&[63.0, nan, 41.0]));
    assert_eq!(numbers(&read.cohort, "chol"), bits(&[233.125, nan, 0.002]));
    assert_eq!(categorical(&read.cohort, "sex"), [1, 0, 1]);
    assert_eq!(numbers(&read.cohort, "grade"), bits(&[0.0, 2.0, 1.0]));
    assert_eq!(numbers(&read.cohort, "smoker"), bits(&[1.0, 0.0, nan]));
    assert_eq!(
        numbers(&read.cohort, "born")[0],
        (21_915.0_f64 / 365.2425).to_bits()
    );
    // Another authority than the server's.
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.pem"), other.cert.pem()).unwrap();
    let refused = read_it(&good).unwrap_err().to_string();
    assert!(
        refused.contains("cannot be reached or refuses the login"),
        "{refused}"
    );
}

#[test]
fn reading_works_from_within_an_asynchronous_program() {
    let server = server();
    server
        .cluster
        .execute(&PATIENTS.replace("patients", "within"));
    let config = config(
        Path::new("/"),
        &source(&server, "query = 'SELECT * FROM within'"),
        "",
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let read = async { tokio::task::spawn_blocking(move || read(&config, &job(JOB))).await };
    assert_eq!(
        runtime.block_on(read).unwrap().unwrap().cohort.patients(),
        3
    );
}

#[test]
fn a_query_that_does_not_fit_says_why_and_never_a_value() {
    let server = server();
    server.cluster.execute(&PATIENTS.replace("patients", "bad"));
    let of = |query: &str| problems(&source(&server, &format!("query = \"{query}\"")));
    let none = of("SELECT * FROM bad WHERE false");
    assert!(
        none.contains("found no patient, wanted at least one"),
        "{none}"
    );
    let unknown = of("SELECT * FROM nowhere");
    assert!(
        unknown.contains("relation \"nowhere\" does not exist"),
        "{unknown}"
    );
    let writes = of("INSERT INTO bad (num) VALUES (1) RETURNING *");
    assert!(writes.contains("a query that writes"), "{writes}");
    let slow = of("SELECT bad.*, pg_sleep(30)::text AS slept FROM bad");
    assert!(
        slow.contains("longer than statement_timeout_seconds"),
        "{slow}"
    );
    let secret = of("SELECT bad.*, ('Meier' || id)::integer AS broken FROM bad");
    assert!(secret.contains("SQLSTATE 22P02"), "{secret}");
    assert!(!secret.contains("Meier"), "{secret}");
    let json = of("SELECT id, note AS age, chol, sex, born, grade, smoker, num FROM bad");
    assert!(
        json.contains("column \"age\": found a column of the type json"),
        "{json}"
    );
    let wrong =
        source(&server, "query = 'SELECT 1'").replace("database = 'postgres'", "database = 'no'");
    assert!(problems(&wrong).contains("database \"no\" does not exist"));
}

#[test]
fn a_schema_that_changed_since_the_last_run_names_the_column() {
    let server = server();
    let cluster = &server.cluster;
    cluster.execute(&PATIENTS.replace("patients", "changing"));
    let config = config(
        Path::new("/"),
        &source(&server, "query = 'SELECT * FROM changing'"),
        "",
    );
    assert!(read(&config, &job(JOB)).is_ok());
    cluster.execute(
        "ALTER TABLE changing RENAME COLUMN chol TO cholesterol;
         ALTER TABLE changing ALTER COLUMN age TYPE text USING 'old';",
    );
    let changed = read(&config, &job(JOB)).unwrap_err().to_string();
    assert!(
        changed.contains("column \"chol\": found no such column"),
        "{changed}"
    );
    assert!(
        changed.contains("column \"age\", rows 1, 2, 3: found text of 3 characters"),
        "{changed}"
    );
}

#[test]
fn a_database_that_dies_half_way_leaves_nothing_half_read() {
    let server = server();
    let cluster = &server.cluster;
    let query = "query = \"SELECT 40 AS age, 200 AS chol, 'F' AS sex, DATE '1960-01-01' AS born, \
                 'low' AS grade, 1 AS smoker, n % 2 AS num FROM generate_series(1, 3000000) AS n\"";
    let config = config(Path::new("/"), &source(&server, query), "");
    let job = job(JOB);
    let died = std::thread::scope(|scope| {
        let reading = scope.spawn(|| read_cohort(&config, &job));
        while !reading.is_finished() {
            cluster.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE application_name = 'kindred-site-agent' AND query LIKE '%3000000%'
                 AND now() - query_start > interval '100 ms' AND pid <> pg_backend_pid()",
            );
        }
        reading.join().unwrap()
    });
    let died = died.expect_err("the backend was killed");
    let text = died.to_string();
    assert!(
        text.contains("a database that went away before the last row"),
        "{text}"
    );
}

#[test]
fn the_omop_template_gives_one_row_a_patient() {
    let server = server();
    let cluster = &server.cluster;
    cluster.execute(
        "CREATE SCHEMA cdm; SET search_path = cdm;
         CREATE TABLE person (person_id bigint, gender_concept_id int, year_of_birth int,
             month_of_birth int, day_of_birth int);
         CREATE TABLE measurement (measurement_id bigint, person_id bigint,
             measurement_concept_id int, measurement_date date, value_as_number numeric,
             unit_concept_id int);
         CREATE TABLE condition_occurrence (person_id bigint, condition_concept_id int,
             condition_start_date date);
         INSERT INTO person VALUES (1, 8507, 1950, 3, 2), (2, 8532, 1960, NULL, NULL),
             (3, 0, 1970, 1, 1);
         INSERT INTO measurement VALUES
             (1, 1, 3027114, '2019-01-01', 180, 8840), (2, 1, 3027114, '2019-06-01', 195.5, 8840),
             (3, 1, 3027114, '2019-06-01', 190, 8840), -- entered later on the same day: this one
             (4, 1, 3027114, '2020-01-01', 500, 8840), -- on the index date: too late
             (5, 1, 3027114, '2019-09-01', 5.1, 8753), -- in mmol/l: not this unit
             (6, 1, 3004249, '2017-01-01', 120, 8876), -- before the window
             (7, 2, 3004249, '2019-12-31', 140, 8876), (8, 2, 3027114, '2019-12-31', NULL, 8840);
         INSERT INTO condition_occurrence VALUES (1, 201826, '2019-01-01'),
             (1, 201826, '2019-02-01'), (2, 317576, '2018-06-01'), (2, 201826, '2020-01-01'),
             (3, 317576, '2010-01-01');",
    );
    let template = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../deploy/omop/one-row-a-patient.sql"
    );
    let query = format!(
        "query_file = '{template}'\npatient = 'person_id'\n\
         parameters = {{ schema = 'cdm', index_date = '2020-01-01', history_days = '730' }}"
    );
    let omop = "name = 'omop'\nmethod = 'unpsl'\nsites = ['north', 'other']\n\
        [outcome]\ncolumn = 'coronary_disease'\nkind = 'binary'\npositive = ['1']\n\
        [[features]]\nname = 'cholesterol'\nkind = 'numeric'\nunit = 'mg/dl'\n\
        [[features]]\nname = 'systolic'\nkind = 'numeric'\n\
        [[features]]\nname = 'diabetes'\nkind = 'binary'\n\
        [[features]]\nname = 'sex'\nkind = 'categorical'\nlevels = ['female', 'male']\n\
        [[features]]\nname = 'born'\nkind = 'age'\nat = '2020-01-01'\n\
        [unpsl]\nrank = 1\n";
    let read = read(
        &config(Path::new("/"), &source(&server, &query), ""),
        &job(omop),
    )
    .unwrap();
    let nan = f64::NAN;
    assert_eq!(
        (0..3).map(|at| read.patients.id(at)).collect::<String>(),
        "123"
    );
    assert_eq!(
        numbers(&read.cohort, "cholesterol"),
        bits(&[190.0, nan, nan])
    );
    assert_eq!(numbers(&read.cohort, "systolic"), bits(&[nan, 140.0, nan]));
    assert_eq!(numbers(&read.cohort, "diabetes"), bits(&[1.0, 0.0, 0.0]));
    assert_eq!(categorical(&read.cohort, "sex"), [1, 0, u32::MAX]);
    match read.cohort.outcome() {
        similarity::cohort::Outcome::Classes { codes, .. } => assert_eq!(codes.to_vec(), [0, 1, 0]),
        _ => panic!("a binary outcome has classes"),
    }
    let missing = source(&server, &query.replace("schema = 'cdm', ", ""));
    assert!(problems(&missing).contains("no value of a parameter of the query file (schema)"));
    let injected = source(&server, &query.replace("'cdm'", "\"cdm;'\""));
    assert!(problems(&injected).contains("a character that is not allowed (schema)"));
}

#[test]
fn rows_stand_for_patients_where_none_are_named_whatever_a_job_reads() {
    let server = server();
    server
        .cluster
        .execute(&PATIENTS.replace("patients", "rows_of"));
    let query = "query = 'SELECT * FROM rows_of ORDER BY id'";
    let config = config(Path::new("/"), &source(&server, query), "");
    let identifiers = |features: &[&str]| {
        let feature = |name: &&str| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
        let features: String = features.iter().map(feature).collect();
        let text = format!(
            "name = 'rows'\nmethod = 'forest'\nsites = ['north', 'other']\n[outcome]\ncolumn = 'chol'\n\
             kind = 'numeric'\n{features}[forest]\n"
        );
        sources::identifiers(&config, &job(&text))
    };
    let first = identifiers(&["age", "smoker"]);
    assert_eq!(first.len(), 4);
    assert_eq!(first, identifiers(&["smoker"]));
    // Of the fourth patient only the sex is another, which no job reads.
    server
        .cluster
        .execute("UPDATE rows_of SET sex = 'F' WHERE chol = 180");
    let changed = identifiers(&["smoker"]);
    assert_eq!(&changed[..3], &first[..3]);
    assert_ne!(changed[3], first[3]);
}
