//! What a round costs on its way: 3 sites on loopback, mutual TLS, a matrix down and a matrix up
//! per site, no arithmetic. Prints seconds per round; see performance in the documentation.
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
use protocol::message::{Answer, Ask, Request, ToCoordinator, ToSite, unpsl};
use std::sync::Arc;
use std::time::Instant;
use support::{Port, contributed, contribution, gate};
use tokio::sync::mpsc;
use wire::certificates::Role;
use wire::{Incoming, SiteSender, attend};

const SITES: [&str; 3] = ["north", "south", "east"];
/// Rows and columns, rounds to warm up, rounds to measure.
const CASES: [(usize, usize, usize, usize); 2] = [(1_000, 10, 50, 500), (31_250, 32, 5, 40)];

#[tokio::main]
async fn main() {
    let mut port = Port::open().await;
    for name in SITES {
        let dial = port.dial(Role::Site, name);
        tokio::spawn(async move {
            let (sender, mut receiver) = attend(&dial, "bench").await.unwrap();
            let mut gate = gate();
            while let Ok(ToSite::Ask(Ask {
                request: Request::Unpsl(unpsl::Request::Round(round)),
                ..
            })) = receiver.next().await
            {
                let matrix = Arc::unwrap_or_clone(round.consensus);
                sender.send(contribution(&mut gate, matrix)).await.unwrap();
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
        sites.push(sender);
    }
    println!(
        "entries   median s   mean s    fastest   slowest   (3 sites, {} rounds)",
        CASES[0].3
    );
    for (rows, columns, warm, rounds) in CASES {
        let matrix =
            Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as f64 / 7.0);
        let mut seconds = Vec::new();
        for _ in 0..warm + rounds {
            seconds.push(round(&sites, &mut answered, &matrix).await);
        }
        let mut seconds = seconds.split_off(warm);
        seconds.sort_by(f64::total_cmp);
        let mean = seconds.iter().sum::<f64>() / rounds as f64;
        let (fastest, slowest) = (seconds[0], seconds[rounds - 1]);
        let median = seconds[rounds / 2];
        let entries = rows * columns;
        println!("{entries:<9} {median:<10.5} {mean:<9.5} {fastest:<9.5} {slowest:<9.5}");
    }
}

/// One matrix to every site and one from every site.
async fn round(
    sites: &[SiteSender],
    answered: &mut mpsc::Receiver<ToCoordinator<Answer>>,
    matrix: &Array2<f64>,
) -> f64 {
    let begun = Instant::now();
    for site in sites {
        site.send(support::round(matrix.clone())).unwrap();
    }
    for _ in sites {
        let found = answered.recv().await.unwrap();
        assert_eq!(contributed(found).dim(), matrix.dim());
    }
    begun.elapsed().as_secs_f64()
}
