//! Promise: the interval of a share told by groups holds the share counted one by one, in 93 % of answers or more on every set, at every radius.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "support/alike.rs"]
#[allow(dead_code, unreachable_pub)]
mod alike;

use similarity::uses::microaggregation::Closeness;

#[test]
fn intervals_of_shares_hold_what_is_counted_one_by_one_on_made_up_patients() {
    for (name, hospitals) in alike::made_up() {
        for row in alike::trial(&hospitals, Closeness::Euclidean, 20) {
            let (held, answers) = (row.held, row.answers);
            println!(
                "{name}, {} %: {held} of {answers}, off by {:.3}",
                row.percent, row.off[0]
            );
            assert!(
                100 * held >= 93 * answers,
                "{name}, {} %: {held} of {answers}",
                row.percent
            );
            // Where many are alike, nobody hears 0 % of what many have.
            assert_eq!(row.zeros, 0, "{name}");
            // The radius is about that of the pairs of patients: it is known from groups.
            let percent = f64::from(row.percent);
            assert!(
                (100.0 * row.pairs - percent).abs() < 0.5 * percent,
                "{name}: {}",
                row.pairs
            );
        }
    }
}
