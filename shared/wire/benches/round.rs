//! What a round costs on its way: 3 sites on loopback, mutual TLS, a matrix down and a matrix up
//! per site, no arithmetic; then the same covered by masks, added and read at the coordinator, in turns with the other. Prints
//! seconds per round.
//!
//! `cargo bench -p wire`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that prints a table"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use ndarray::Array2;
use privacy::sums::{Masks, PAIR_BYTES, Words};
use privacy::{Covering, Gate};
use protocol::message::unpsl::Contribution;
use protocol::message::{Answer, Ask, Reply, Request, ToCoordinator, ToSite, unpsl};
use std::sync::Arc;
use std::time::Instant;
use support::{Port, contributed, contribution, gate, reply};
use tokio::sync::mpsc;
use wire::certificates::Role;
use wire::{Incoming, Sealed, SiteSender, attend, seal};

const SITES: [&str; 3] = ["north", "south", "east"];
/// The penalty of a question says how it is to be answered.
const PLAIN: f64 = 1.0;
const COVERED: f64 = 2.0;
/// Rows and columns, rounds to warm up, rounds to measure.
const CASES: [(usize, usize, usize, usize); 2] = [(1_000, 10, 50, 500), (20_000, 50, 5, 40)];

#[tokio::main]
async fn main() {
    let mut port = Port::open().await;
    for name in SITES {
        let dial = port.dial(Role::Site, name);
        tokio::spawn(async move {
            let (sender, mut receiver) = attend(&dial, "bench").await.unwrap();
            let mut gate = gate();
            let place = SITES.iter().position(|site| *site == name).unwrap();
            loop {
                let round = match receiver.next().await {
                    Ok(ToSite::Ask(Ask {
                        request: Request::Unpsl(unpsl::Request::Round(round)),
                        ..
                    })) => round,
                    Ok(_) => continue,
                    Err(error) => return println!("{name}: {error}"),
                };
                let matrix = Arc::unwrap_or_clone(round.consensus);
                let answer = match round.penalty == COVERED {
                    true => covered(&mut gate, matrix, place),
                    false => contribution(matrix),
                };
                sender.send(answer).await.unwrap();
            }
        });
    }
    let (answers, mut answered) = mpsc::channel(SITES.len());
    let mut sites = Vec::new();
    for _ in SITES {
        let Some(Incoming::Site {
            sender,
            mut receiver,
            ..
        }) = port.incoming.recv().await
        else {
            panic!("wanted a site");
        };
        let answers = answers.clone();
        tokio::spawn(async move {
            while let Ok(Some(message)) = receiver.next().await {
                answers.send(message).await.unwrap();
            }
        });
        // What a run's answers are at most follows from its job.
        let (rows, columns, ..) = CASES[1];
        sender.send(support::begin((rows, columns))).unwrap();
        sites.push(sender);
    }
    drop(answers);
    println!(
        "entries           median s   mean s    fastest   slowest   (3 sites, {} rounds of each)",
        CASES[0].3
    );
    for (rows, columns, warm, rounds) in CASES {
        let matrix =
            Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as f64 / 7.0);
        let mut seconds = [Vec::new(), Vec::new()];
        for _ in 0..warm + rounds {
            for (seconds, penalty) in seconds.iter_mut().zip([PLAIN, COVERED]) {
                seconds.push(round(&sites, &mut answered, &matrix, penalty).await);
            }
        }
        for (seconds, kind) in seconds.iter_mut().zip(["", "covered"]) {
            let mut seconds = seconds.split_off(warm);
            seconds.sort_by(f64::total_cmp);
            let mean = seconds.iter().sum::<f64>() / rounds as f64;
            let (fastest, slowest) = (seconds[0], seconds[rounds - 1]);
            let median = seconds[rounds / 2];
            let entries = rows * columns;
            println!(
                "{entries:<9} {kind:<7} {median:<10.5} {mean:<9.5} {fastest:<9.5} {slowest:<9.5}"
            );
        }
    }
}

/// What the site at this place says of a matrix under masks that it shares with the other two.
fn covered(gate: &mut Gate, matrix: Array2<f64>, place: usize) -> ToCoordinator<Sealed> {
    let pair = |other: usize| (other != place).then(|| [(place + other) as u8; PAIR_BYTES]);
    let masks = Masks::new(place, (0..SITES.len()).map(pair).collect(), None);
    let covering = Covering {
        tagged: false,
        heard: "",
        masks: &masks,
        run: "run",
        exchange: 1,
    };
    let released = gate.release_covered(blank(matrix), &covering).unwrap();
    reply(seal(released))
}

fn blank(matrix: Array2<f64>) -> Answer {
    Answer::Unpsl(unpsl::Answer::Contribution(Contribution {
        matrix,
        objective: 0.5,
        iterations: 0,
        products: None,
    }))
}

/// One matrix to every site and one from every site, or their sum.
async fn round(
    sites: &[SiteSender],
    answered: &mut mpsc::Receiver<ToCoordinator<Answer>>,
    matrix: &Array2<f64>,
    penalty: f64,
) -> f64 {
    let begun = Instant::now();
    for site in sites {
        site.send(support::round_with(matrix.clone(), penalty))
            .unwrap();
    }
    let mut sum: Option<Words> = None;
    for _ in sites {
        match answered.recv().await.unwrap() {
            ToCoordinator::Reply(Reply {
                answer: Answer::Covered(own),
                ..
            }) => match &mut sum {
                Some(sum) => sum.add(&own.words).unwrap(),
                None => sum = Some(own.words),
            },
            found => assert_eq!(contributed(found, matrix.dim()).dim(), matrix.dim()),
        }
    }
    if let Some(sum) = sum {
        let mut read = blank(Array2::zeros(matrix.dim()));
        sum.read_into(&mut read).unwrap();
        let Answer::Unpsl(unpsl::Answer::Contribution(read)) = read else {
            panic!("wanted a contribution");
        };
        assert!((read.matrix[[0, 1]] - 3.0 * matrix[[0, 1]]).abs() < 1e-12);
    }
    begun.elapsed().as_secs_f64()
}
