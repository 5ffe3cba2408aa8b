//! Promise: what comes from outside never stops a program. The entry functions of `tests/fuzz`, on a
//! stable compiler: thousands of changed inputs from a fixed seed, each read or refused by a typed error.

use bytes::Bytes;
use coordinator::config::{CoordinatorConfig, OperatorConfig};
use kindred_tests::samples::SITE;
use kindred_tests::workspace::{files, root, text};
use protocol::document::DocumentErrors;
use protocol::job::Job;
use protocol::message::forest::{
    self, Judging, NodeKind, NodeRule, NodeTable, Side, TerminalTable, TreeTable, Trees,
};
use protocol::message::{Ask, Request, ToSite};
use protocol::method::forest::assembly::assemble;
use protocol::name::RunId;
use protocol::study::{Study, by_nobody};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::cohort::{Column, MISSING_LEVEL, Values};
use site_agent::config::{SiteConfig, policy};
use site_agent::source::read_cohort;
use std::path::Path;
use std::sync::Arc;
use wire::{WireError, decode_progress, decode_result, decode_to_coordinator, decode_to_site};

/// What tends to matter to one of the readers.
const FRAGMENTS: [&[u8]; 16] = [
    b",",
    b"\"",
    b"\"\"\"",
    b"\n",
    b"\r\n",
    b";",
    b"[[",
    b"]",
    b"=",
    b"'",
    b"1e999",
    b"NaN",
    b"-0",
    b"\0",
    b"\xff\xff\xff\xff\x0f",
    b"\x80",
];

/// So many inputs, or `KINDRED_FUZZ` times as many.
pub(crate) fn times(usual: u32) -> u32 {
    let more = std::env::var("KINDRED_FUZZ").ok();
    usual * more.and_then(|more| more.parse().ok()).unwrap_or(1)
}

/// One to five small changes of `bytes`: a piece put in, taken out, copied or cut off, or bits turned.
pub(crate) fn changed(bytes: &[u8], random: &mut impl Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..12)).min(bytes.len());
        match random.random_range(0..6) {
            0 => {
                let fragment = FRAGMENTS[random.random_range(0..FRAGMENTS.len())];
                bytes.splice(at..at, fragment.iter().copied());
            }
            1 => drop(bytes.drain(at..end)),
            2 => bytes.truncate(at),
            3 => {
                let piece = bytes[at..end].to_vec();
                let to = random.random_range(0..=bytes.len());
                bytes.splice(to..to, piece);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            _ => bytes.push(random.random()),
        }
    }
    bytes
}

/// The golden frames of one message, and the message's name.
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) frames: Vec<Bytes>,
}

pub(crate) fn golden() -> Vec<Golden> {
    let paths = files("shared/wire/tests/golden", &["hex"]);
    assert!(paths.len() >= 20, "found only {paths:?}");
    paths
        .iter()
        .map(|path| Golden {
            name: name(path),
            frames: text(path).lines().map(frame).collect(),
        })
        .collect()
}

fn name(path: &Path) -> String {
    path.file_stem()
        .expect("a file's name")
        .to_string_lossy()
        .into_owned()
}

fn frame(line: &str) -> Bytes {
    let digits = line
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).expect("digits"));
    digits
        .map(|pair| u8::from_str_radix(pair, 16).expect("a byte"))
        .collect()
}

/// The frames as a record: one run of bytes, each frame after its length in groups of seven bits.
pub(crate) fn record(frames: &[Bytes]) -> Vec<u8> {
    let mut record = Vec::new();
    for frame in frames {
        let mut length = frame.len();
        while length > 0x7f {
            record.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        record.push(length as u8);
        record.extend_from_slice(frame);
    }
    record
}

/// A golden message whose frames are changed, repeated, dropped or exchanged, or mixed with another's.
fn changed_frames(golden: &[Golden], random: &mut impl Rng) -> Vec<Bytes> {
    let one = &golden[random.random_range(0..golden.len())];
    let mut frames = one.frames.clone();
    let at = random.random_range(0..frames.len());
    match random.random_range(0..8) {
        0 => drop(frames.remove(at)),
        1 => frames.push(frames[at].clone()),
        2 => frames.swap(0, at),
        3 => frames.extend(golden[random.random_range(0..golden.len())].frames.clone()),
        _ => frames[at] = changed(&frames[at], random).into(),
    }
    frames
}

/// How many inputs were read and how many refused.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) read: u32,
    pub(crate) refused: u32,
}

impl Counts {
    /// Counts what a reader of frames made of its input, and returns its kind of error.
    fn frames<T>(&mut self, result: Result<T, WireError>) {
        match result {
            Ok(_) => self.read += 1,
            Err(error) => {
                assert!(error.to_string().len() < 2_000, "{error}");
                self.refused += 1;
            }
        }
    }

    /// Counts what a reader of TOML made of its input: every refusal has a reason at a line of it.
    fn document<T>(&mut self, input: &str, result: Result<T, DocumentErrors>) {
        match result {
            Ok(_) => self.read += 1,
            Err(errors) => {
                let lines = input.split('\n').count();
                assert!(
                    !errors.errors().is_empty(),
                    "refused without a reason: {input}"
                );
                for error in errors.errors() {
                    assert!(
                        (1..=lines).contains(&error.line),
                        "line {} of {lines}: {input}",
                        error.line
                    );
                    assert!(!error.text.is_empty(), "{input}");
                }
                self.refused += 1;
            }
        }
    }

    /// Changes that always do the same to an input would show nothing.
    #[track_caller]
    pub(crate) fn expect_both(&self) {
        assert!(self.read > 20 && self.refused > 500, "{self:?}");
    }
}

#[test]
fn unchanged_frames_are_read_by_one_of_the_decoders() {
    for Golden { name, frames } in golden() {
        let read = [
            decode_to_site(&frames).is_ok(),
            decode_to_coordinator(&frames).is_ok(),
            decode_progress(&frames[0]).is_ok(),
            decode_result(&record(&frames)).is_ok(),
        ];
        assert!(read.contains(&true), "{name}");
    }
}

#[test]
fn no_changed_frame_stops_a_decoder() {
    let golden = golden();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut to_site, mut to_coordinator) = (Counts::default(), Counts::default());
    let (mut records, mut results) = (Counts::default(), Counts::default());
    for _ in 0..times(20_000) {
        let frames = changed_frames(&golden, &mut random);
        to_site.frames(decode_to_site(&frames));
        to_coordinator.frames(decode_to_coordinator(&frames));
        frames
            .iter()
            .for_each(|frame| records.frames(decode_progress(frame)));
        let record = record(&frames);
        results.frames(decode_result(&record));
        records.frames(wire::decode_answer(&record));
    }
    to_site.expect_both();
    to_coordinator.expect_both();
    records.expect_both();
    results.expect_both();
}

/// A forest of numbers as it travels to be judged.
fn judged() -> Vec<Bytes> {
    let terminal = |patients, mean| NodeTable {
        patients,
        kind: NodeKind::Terminal(TerminalTable::Mean(mean)),
    };
    let split = |patients, feature, left, rule| NodeTable {
        patients,
        kind: NodeKind::Split {
            feature,
            rule,
            missing: Side::Right,
            left,
        },
    };
    let tree = vec![
        split(60, 0, 1, NodeRule::AtMost(70.5)),
        split(40, 1, 3, NodeRule::Levels(vec![2])),
        terminal(20, 3.5),
        terminal(25, -1.25),
        split(15, 2, 5, NodeRule::Present),
        terminal(8, 0.0),
        terminal(7, 12.0),
    ];
    let trees = Trees {
        features: 3,
        trees: vec![TreeTable::new(tree, 3).expect("a tree"); 3],
    };
    wire::encode_to_site(ToSite::Ask(Ask {
        run: RunId::new("run").expect("a name"),
        exchange: 4,
        request: Request::Forest(forest::Request::Judge(Judging {
            first_tree: 1,
            trees: Arc::new(trees),
        })),
    }))
}

/// What is read as trees can be put together and asked of patients, or is refused by a typed error.
#[test]
fn no_changed_forest_stops_who_judges_it() {
    let job = JOB
        .replace("'unpsl'", "'forest'")
        .replace("kind = 'binary'\npositive = ['1']", "kind = 'numeric'")
        .replace("[unpsl]\nrank = 1", "[forest]");
    let job = Job::parse(&job).unwrap_or_else(|errors| panic!("{errors}"));
    let columns = [
        Column {
            name: "weight".to_owned(),
            values: Values::Numeric(vec![f64::NAN, 70.5, -1e300].into()),
        },
        Column {
            name: "sex".to_owned(),
            values: Values::Categorical {
                codes: vec![MISSING_LEVEL, 0, 1].into(),
                levels: vec!["F".to_owned(), "M".to_owned()],
            },
        },
        Column {
            name: "born".to_owned(),
            values: Values::Numeric(vec![1.0, f64::NAN, 3.0].into()),
        },
    ];
    let whole = judged();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut wire, mut forests) = (Counts::default(), 0);
    for _ in 0..times(20_000) {
        let mut frames = whole.clone();
        let at = random.random_range(0..frames.len());
        frames[at] = changed(&frames[at], &mut random).into();
        let read = decode_to_site(&frames);
        if let Ok(ToSite::Ask(Ask {
            request: Request::Forest(forest::Request::Judge(judging)),
            ..
        })) = &read
            && let Ok(forest) = assemble(&job.cohort, &[], &[], &judging.trees.trees)
        {
            forests += 1;
            assert!(forest.predict(&columns).is_ok());
        }
        wire.frames(read);
    }
    wire.expect_both();
    assert!(forests > 20, "{forests}");
}

#[test]
fn no_changed_job_or_policy_stops_its_parser() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut jobs, mut policies) = (Counts::default(), Counts::default());
    for path in files("deploy/jobs", &["toml"]) {
        let is_study = path.to_string_lossy().ends_with(".study.toml");
        let good = text(&path);
        let good = match is_study {
            true => by_nobody(&good),
            false => wire::jobs::with_draft(&root().join(&path), good).unwrap(),
        };
        for _ in 0..times(1_500) {
            let input = changed(good.as_bytes(), &mut random);
            let input = String::from_utf8_lossy(&input);
            match is_study {
                true => jobs.document(&input, Study::parse(&input)),
                false => jobs.document(&input, Job::parse(&input)),
            }
        }
    }
    for path in files("deploy/policies", &["toml"]) {
        let good = text(path);
        for _ in 0..times(1_000) {
            let input = changed(good.as_bytes(), &mut random);
            let input = String::from_utf8_lossy(&input);
            policies.document(&input, policy::parse(&input));
        }
    }
    jobs.expect_both();
    policies.expect_both();
}

#[test]
fn no_changed_configuration_stops_its_parser() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let (mut sites, mut others) = (Counts::default(), Counts::default());
    for path in files("deploy/config", &["toml"]) {
        let good = text(&path);
        for _ in 0..times(1_500) {
            let input = changed(good.as_bytes(), &mut random);
            let input = String::from_utf8_lossy(&input);
            match name(&path).as_str() {
                "coordinator" => {
                    others.document(&input, CoordinatorConfig::parse(&input, Path::new("")))
                }
                "operator" => others.document(&input, OperatorConfig::parse(&input, Path::new(""))),
                _ => sites.document(&input, SiteConfig::parse(&input, Path::new(""))),
            }
        }
    }
    sites.expect_both();
    others.expect_both();
}

pub(crate) const JOB: &str = "name = 'fuzz'\nmethod = 'unpsl'\nsites = ['north', 'south']\n\
    [outcome]\ncolumn = 'num'\nkind = 'binary'\npositive = ['1']\n\
    [[features]]\nname = 'weight'\nkind = 'numeric'\n\
    [[features]]\nname = 'sex'\nkind = 'categorical'\nlevels = ['F', 'M']\n\
    [[features]]\nname = 'born'\nkind = 'age'\nat = '2020-01-01'\n\
    [unpsl]\nrank = 1\n";

#[test]
fn no_changed_csv_file_stops_the_reader_and_none_of_its_values_is_told() {
    let mut good = "id,weight,sex,born,num\n".to_owned();
    for row in 0..12 {
        good += &format!(
            "secret{row},7{row}.3125,{},19{row:02}-02-28,{}\n",
            ["F", "M"][row % 2],
            row % 2
        );
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let site = SiteConfig::parse(SITE, folder.path()).expect("a whole configuration");
    let job = Job::parse(JOB).expect("a whole job");
    let header = good.find('\n').expect("a header") + 1;
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut counts = Counts::default();
    for round in 0..times(2_000) {
        // Names of columns may be told, so half of the files keep their header whole.
        let kept = if round % 2 == 0 { header } else { 0 };
        let rest = changed(&good.as_bytes()[kept..], &mut random);
        let input = [&good.as_bytes()[..kept], &rest].concat();
        std::fs::write(folder.path().join("patients.csv"), input).expect("a temporary file");
        match read_cohort(&site.source, &job) {
            Ok(_) => counts.read += 1,
            Err(problems) => {
                assert!(!problems.problems().is_empty());
                let told = problems.to_string();
                if kept > 0 {
                    assert!(
                        !told.contains("secret") && !told.contains(".3125"),
                        "{told}"
                    );
                }
                counts.refused += 1;
            }
        }
    }
    counts.expect_both();
}
