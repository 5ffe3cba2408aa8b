//! What masks cost a site: words made of numbers, covered for a roster, added and read back. Prints a table.
//!
//! `cargo bench -p privacy`
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use privacy::Covered;
use privacy::sums::{Masks, Number, PAIR_BYTES, Summand, Total, Words};
use std::hint::black_box;
use std::time::Instant;

/// Sites and numbers: a large matrix among three, the four hospitals, fifty sites of 100 features, and wide data (20,000 x 16).
const CASES: [(usize, usize); 5] = [
    (3, 1_000_000),
    (4, 1_000),
    (50, 10_000),
    (50, 10_100),
    (4, 320_000),
];

struct Numbers(Vec<f64>);

impl Summand for Numbers {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        self.0.iter_mut().for_each(|one| visit(Number::Real(one)));
    }
}

fn main() {
    println!(
        "{:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}",
        "sites", "numbers", "words", "cover", "add all", "read", "tag", "prove"
    );
    println!(
        "milliseconds, one thread; words, cover and tag at each site, prove at each that hears the sum alone, the others wherever it is read"
    );
    for (sites, count) in CASES {
        let pair = |other: usize| (other != 0).then_some([other as u8; PAIR_BYTES]);
        let masks = Masks::new(0, (0..sites).map(pair).collect(), Some([255; PAIR_BYTES]));
        let mut numbers = Numbers(
            (0..count)
                .map(|place| place as f64 / 1_024.0 - 300.0)
                .collect(),
        );
        let [
            mut made,
            mut covered,
            mut added,
            mut read,
            mut tagged,
            mut proved,
        ] = [f64::INFINITY; 6];
        for round in 0..5_u8 {
            let began = Instant::now();
            let Ok(mut words) = Words::of(&mut numbers) else {
                return println!("a number does not fit");
            };
            made = made.min(began.elapsed().as_secs_f64());
            let began = Instant::now();
            assert!(masks.cover(&[round], &mut words));
            covered = covered.min(began.elapsed().as_secs_f64());
            let began = Instant::now();
            let tag = masks.tag(&[round], &words);
            tagged = tagged.min(began.elapsed().as_secs_f64());
            let own = Covered {
                kind: "numbers",
                words: words.clone(),
                tag,
            };
            let Ok(Some(total)) = Total::of([&own].into_iter()) else {
                return println!("no tag");
            };
            let began = Instant::now();
            black_box(masks.proves(&[round], &total));
            proved = proved.min(began.elapsed().as_secs_f64());
            let others: Vec<Words> = vec![words.clone(); sites - 1];
            let began = Instant::now();
            for other in &others {
                assert!(words.add(other).is_ok());
            }
            added = added.min(began.elapsed().as_secs_f64());
            let began = Instant::now();
            assert!(black_box(&words).read_into(&mut numbers).is_ok());
            read = read.min(began.elapsed().as_secs_f64());
            numbers.0.fill(1.0);
        }
        let cells = [made, covered, added, read, tagged, proved]
            .map(|seconds| format!("{:9.2}", seconds * 1e3));
        println!("{sites:>5}  {count:>9}  {}", cells.join("  "));
    }
}
