//! What a study would cost from 3 to 3,000 hospitals, and from 1,000 to 100,000,000 patients in each: `cargo bench -p kindred-tests
//! --bench scale`. No network and no federation: it measures the parts on this machine, encodes the messages, and multiplies.
//!
//! A study has at most 256 hospitals today; what stands in the lines above that says what would break.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement speaks by it"
)]

use kindred_tests::deployment::certify;
use kindred_tests::draws::Draws;
use kindred_tests::needs::{coordinator_bytes, secrets_bytes};
use kindred_tests::programs::Home;
use ndarray::{Array1, Array2};
use privacy::Covered;
use privacy::sums::{Masks, PAIR_BYTES, Tag, Total, TotalWord, Words};
use protocol::message::{Answer, Closed, Introduction, Record, ToSite};
use protocol::name::RunId;
use protocol::time::Timestamp;
use similarity::learn::regression::glm::Family;
use similarity::learn::unpsl::{Labels, Pairs, Settings, SiteObjective, Totals, summarise};
use similarity::numeric::seed::Seed;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use wire::certificates::CredentialFiles;
use wire::{RunSecrets, Said, Signer, SiteKeys};

const HOSPITALS: [u64; 4] = [3, 30, 300, 3_000];
const PATIENTS: [u64; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const FEATURES: usize = 30;
/// Numbers of a regression's answer: the log-likelihood, its gradient and its information, with an intercept.
const NUMBERS: usize = 1 + (FEATURES + 1) + (FEATURES + 1) * (FEATURES + 2) / 2;
/// Patients of which the sums are measured; the cost of more is in proportion.
const MEASURED: usize = 100_000;
const RANK: usize = 5;
const PARTNERS: usize = 20;
/// Bytes of a number as words travel.
const WORD_BYTES: u64 = 16;
/// A feature of a patient: as it was read, and standardised.
const FEATURE_BYTES: u64 = 2 * size_of::<f64>() as u64;
/// A hospital's line, and a coordinator's.
const LINE: f64 = 100e6 / 8.0;
const COORDINATORS_LINE: f64 = 1e9 / 8.0;

/// Seconds that parts take on this machine.
struct Parts {
    /// To cover one number for one other hospital.
    cover: f64,
    /// To add one number of one hospital at the coordinator.
    add: f64,
    /// To check the signature of one hospital for one answer.
    check: f64,
    /// A regression's sums, and an objective of UnPSL with its gradient, of one patient.
    regression: f64,
    unpsl: f64,
}

fn main() {
    let (introduction, check) = signatures();
    let parts = Parts {
        cover: cover(),
        add: add(),
        check,
        regression: regression(),
        unpsl: unpsl(),
    };
    println!(
        "{FEATURES} features; a regression's answer has {NUMBERS} numbers. Measured, in microseconds: {:.4} to cover a number for one \
         hospital, {:.4} to add one, {:.1} to check a signature, {:.3} a patient's part of a regression's sums, {:.3} of UnPSL's (rank {RANK}, \
         {PARTNERS} partners).\n",
        1e6 * parts.cover,
        1e6 * parts.add,
        1e6 * parts.check,
        1e6 * parts.regression,
        1e6 * parts.unpsl,
    );
    println!(
        "| hospitals | opening: sent by the coordinator | seconds on its line | exchange: messages | received by a hospital | sent by the \
         coordinator | seconds on its line | seconds of a hospital | of the coordinator | memory of the coordinator |"
    );
    println!("|{}", " --- |".repeat(10));
    for hospitals in HOSPITALS {
        by_hospitals(hospitals, introduction, &parts);
    }
    println!("\n| patients | regression, s | UnPSL, s | memory of the hospital |");
    println!("|{}", " --- |".repeat(4));
    for patients in PATIENTS {
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let count = patients as f64;
        println!(
            "| {patients} | {:.3} | {:.3} | {} |",
            count * parts.regression,
            count * parts.unpsl,
            bytes(patients * FEATURES as u64 * FEATURE_BYTES)
        );
    }
}

/// One line: what so many hospitals cost.
#[allow(clippy::cast_precision_loss)] // bytes and hospitals are far below 2^52
fn by_hospitals(hospitals: u64, introduction: u64, parts: &Parts) {
    let answer = NUMBERS as u64 * WORD_BYTES;
    // Every hospital receives all introductions, and all secrets, of which it can read its own.
    let opening = hospitals * (hospitals * introduction + secrets_bytes(hospitals));
    let (closed, encoding) = closed(hospitals);
    let sent = hospitals * closed;
    let (count, numbers) = (hospitals as f64, NUMBERS as f64);
    let of_hospital =
        count * (numbers * parts.cover + parts.check) + (closed + answer) as f64 / LINE;
    let of_coordinator = count * numbers * parts.add + encoding;
    println!(
        "| {hospitals} | {} | {:.1} | {} | {} | {} | {:.2} | {of_hospital:.2} | {of_coordinator:.3} | {} |",
        bytes(opening),
        opening as f64 / COORDINATORS_LINE,
        3 * hospitals,
        bytes(closed),
        bytes(sent),
        sent as f64 / COORDINATORS_LINE,
        bytes(coordinator_bytes(hospitals, answer)),
    );
}

/// The bytes of an exchange that closed, as every hospital receives it: the sum, and a digest and a signature of each; and the seconds to
/// encode it.
fn closed(hospitals: u64) -> (u64, f64) {
    let hospitals = usize::try_from(hospitals).unwrap();
    let word = TotalWord::default();
    let record = Record {
        at: Timestamp(1_700_000_000_000),
        exchange: 7,
        answers: vec![Some(Answer::Digest([6; 32])); hospitals],
        signatures: vec![vec![8; 64]; hospitals],
    };
    let closed = Closed {
        run: RunId::new("0123456789abcdef").unwrap(),
        record,
        total: Some(Total::received(vec![word; NUMBERS], Tag::received(9))),
    };
    let message = ToSite::Closed(Arc::new(closed));
    let began = Instant::now();
    let frames = wire::encode_to_site(message);
    let seconds = began.elapsed().as_secs_f64();
    (frames.iter().map(|frame| frame.len() as u64).sum(), seconds)
}

fn cover() -> f64 {
    const OTHERS: u8 = 31;
    let pairs = (0..=OTHERS).map(|other| (other != 0).then_some([other; PAIR_BYTES]));
    let masks = Masks::new(0, pairs.collect(), None);
    let mut words = Words::received(vec![1; NUMBERS]);
    let mut round = 0_u64;
    let seconds = fastest(|| {
        round += 1;
        assert!(masks.cover(&round.to_be_bytes(), &mut words));
    });
    seconds / per(NUMBERS) / f64::from(OTHERS)
}

fn add() -> f64 {
    const SITES: usize = 32;
    let one = Covered {
        kind: "numbers",
        words: Words::received(vec![1; NUMBERS]),
        tag: Some(Tag::received(9)),
    };
    let all = vec![one; SITES];
    let seconds = fastest(|| {
        black_box(Total::of(all.iter())).unwrap().unwrap();
    });
    seconds / per(NUMBERS * SITES)
}

/// The bytes by which a hospital introduces itself, and the seconds to check its word for an answer.
fn signatures() -> (u64, f64) {
    let home = Home::new();
    certify(&home);
    let credential = |name: &str| home.join(&format!("certificates/site-north/{name}.pem"));
    let signer = Signer::load(&CredentialFiles {
        authority: credential("ca"),
        certificate: credential("certificate"),
        key: credential("key"),
    });
    let keys = SiteKeys::new("run", &[7; 32], RunSecrets::draw([8; 32]).unwrap()).unwrap();
    let introduction = keys.introduce(&signer.unwrap(), "run", 100).unwrap();
    let said = Said {
        run: "run",
        exchange: 1,
        answer: "answer",
    };
    let signature = keys.sign(&said);
    let seconds = fastest(|| assert!(said.is_signed(&introduction, &signature)));
    (length(&introduction), seconds)
}

fn length(introduction: &Introduction) -> u64 {
    let chain = introduction.chain.iter().map(Vec::len).sum::<usize>();
    let keys = [
        &introduction.agreement,
        &introduction.encapsulation,
        &introduction.signing,
        &introduction.signature,
    ];
    (chain + keys.iter().map(|key| key.len()).sum::<usize>()) as u64
}

fn regression() -> f64 {
    let design = patients(FEATURES + 1);
    let outcome = Array1::from_shape_fn(MEASURED, |patient| f64::from(patient % 2 == 0));
    let at = Array1::from_elem(FEATURES + 1, 0.01);
    let sums = || {
        black_box(Family::Logistic.sums(&design.view(), &outcome, &at));
    };
    fastest(sums) / per(MEASURED)
}

fn unpsl() -> f64 {
    let x = patients(FEATURES);
    let w = Array2::from_shape_fn((FEATURES, RANK), |(row, column)| {
        f64::from(row % RANK == column) / per(FEATURES)
    });
    let codes = (0..MEASURED).map(|patient| u32::from(patient % 2 == 0));
    let labels = Labels::Classes(codes.collect());
    let settings = Settings {
        rank: RANK,
        pairs: Pairs::PerPatient(PARTNERS),
        ..Settings::default()
    };
    let totals = Totals::of(&[summarise(&labels, settings.pairs, Seed(1))]);
    let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(1), None).unwrap();
    let derivatives = || {
        black_box(site.derivatives(&w, None).unwrap());
    };
    fastest(derivatives) / per(MEASURED)
}

/// Made-up patients, of which no two are equal.
fn patients(columns: usize) -> Array2<f64> {
    let mut draws = Draws(1);
    Array2::from_shape_simple_fn((MEASURED, columns), || draws.normal())
}

/// The fewest seconds of several.
fn fastest(mut step: impl FnMut()) -> f64 {
    let sample = |_| {
        let began = Instant::now();
        step();
        began.elapsed().as_secs_f64()
    };
    (0..5).map(sample).fold(f64::INFINITY, f64::min)
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^52
fn per(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss)] // for a number that is printed
fn bytes(count: u64) -> String {
    let count = count as f64;
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.iter().find(|(unit, _)| count >= *unit);
    unit.map_or(format!("{count} B"), |(unit, name)| {
        format!("{:.1} {name}", count / unit)
    })
}
