//! Three hospitals learn one metric, and only masked numbers leave each: `cargo run --example federation`.
//!
//! `protocol::run` asks the same questions. It also sums the counts, and checks, limits and stores every answer.

#![allow(clippy::print_stdout)] // what the example shows

use ndarray::Axis;
use privacy::sums::{Masks, Number, PAIR_BYTES, Summand, Words};
use similarity::learn::unpsl::accelerated::{Knowledge, Search, SearchSettings};
use similarity::learn::unpsl::{Labels, PooledLimits, Settings, SiteDerivatives, SiteObjective};
use similarity::learn::unpsl::{Totals, minimise_pooled, start, summarise};
use similarity::numeric::seed::Seed;
use std::error::Error;

/// What a site answers at one metric, as numbers that add up.
struct Answer(SiteDerivatives);

impl Summand for Answer {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        visit(Number::Real(&mut self.0.objective));
        let matrices = self.0.gradient.iter_mut().chain(&mut self.0.curvature);
        matrices.for_each(|number| visit(Number::Real(number)));
    }
}

/// Masks what leaves a site by what it shares with each of the others. A real run makes that by key exchange.
fn masked(own: usize, round: u8, answer: &mut Answer) -> Result<Words, Box<dyn Error>> {
    let pair = |other| (other != own).then_some([(own + other) as u8; PAIR_BYTES]);
    let masks = Masks::new(own, (0..3).map(pair).collect(), None);
    let mut words = Words::of(answer)?;
    assert!(masks.cover(&[round], &mut words));
    let first = words.as_slice()[0];
    println!("round {round}: site {own} sends {first:032x}..");
    Ok(words)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (settings, seed) = (Settings::paper(), Seed(1));
    let made = similarity::synthetic::labelled_pairs(240, 3, seed); // 9 features
    let rows = [0, 80, 160].map(|first| (first..first + 80).collect::<Vec<usize>>());
    let labels = rows.each_ref().map(|own| made.labels.among(own));
    let count = |own: &Labels| summarise(own, settings.pairs, seed);
    let totals = Totals::of(&labels.each_ref().map(count));
    let sites = rows.iter().zip(&labels).map(|(rows, labels)| {
        let patients = made.patients.select(Axis(0), rows);
        SiteObjective::new(&patients.view(), labels, &settings, &totals, seed, None)
    });
    let sites: Vec<SiteObjective> = sites.collect::<Result<_, _>>()?;

    let wanted = SearchSettings {
        lambda_sparsity: settings.lambda_sparsity,
        form: settings.form,
        tolerance: 1e-10,
        tolerance_residual: 1e-5,
    };
    let begin = start(&settings, 9, seed, 0);
    let (mut search, mut known) = (Search::new(wanted, begin.clone(), 9), Knowledge::new());
    for round in 1..=60 {
        let answer = |site: &SiteObjective| site.derivatives(search.question(), None).map(Answer);
        let mut total = answer(&sites[0])?;
        let mut sum = masked(0, round, &mut total)?;
        sum.add(&masked(1, round, &mut answer(&sites[1])?)?)?;
        sum.add(&masked(2, round, &mut answer(&sites[2])?)?)?;
        sum.read_into(&mut total)?; // sets every number
        let step = search.learn(&mut known, total.0);
        if step.is_some_and(|step| step.converged) {
            break;
        }
    }

    let limits = PooledLimits {
        tolerance: 1e-8,
        iterations: 50_000,
    };
    let pooled = minimise_pooled(&sites, begin, limits)?.matrix;
    let [one, other] = [search.best(), &pooled].map(|w| w.dot(&w.t()));
    let apart = (&one - &other).mapv(f64::abs).sum() / other.mapv(f64::abs).sum();
    println!("masked sums and pooled tables give metrics that differ by {apart:.0e} of their size");
    Ok(())
}
