//! What sums of several studies tell together: whether few hospitals are left when rosters are added and subtracted.

use protocol::name::SiteName;
use std::collections::BTreeSet;

/// Rosters that are judged together, at most: minors of so many rows of zeros and ones, and products of two of them, fit 128 bits.
const ROSTERS_MAX: usize = 36;
/// Sets of hospitals that are looked at, at most.
const SETS_MAX: usize = 1 << 16;

/// The hospitals of a study.
pub(super) type Roster = BTreeSet<SiteName>;

/// Too many studies share patients to be judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// Hospitals whose sums could be worked out, and by which studies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exposed {
    /// The hospitals: their sum alone is left.
    pub(super) hospitals: BTreeSet<SiteName>,
    /// Places of the earlier rosters that it takes beside the new one.
    pub(super) by: Vec<usize>,
}

/// The smallest sets of fewer than `least` hospitals whose sums a study of the roster `new` tells, together with `earlier` ones over some
/// of the same patients. Hospitals in `known` agreed to be read, and do not count.
pub(super) fn exposed(
    new: &Roster,
    earlier: &[Roster],
    least: usize,
    known: &Roster,
) -> Result<Vec<Exposed>, TooMany> {
    let all: BTreeSet<&SiteName> = earlier.iter().flatten().chain(new).collect();
    let columns: Vec<&SiteName> = all
        .into_iter()
        .filter(|one| !known.contains(*one))
        .collect();
    let row = |roster: &Roster| -> Vec<bool> {
        columns.iter().map(|name| roster.contains(*name)).collect()
    };
    let (new, earlier): (_, Vec<_>) = (row(new), earlier.iter().map(row).collect());
    let distinct: BTreeSet<&Vec<bool>> = earlier.iter().collect();
    if distinct.len() >= ROSTERS_MAX {
        return Err(TooMany);
    }
    let mut found: Vec<BTreeSet<usize>> = Vec::new();
    let mut looked = 0;
    for size in 1..least.min(columns.len() + 1) {
        let mut set: Vec<usize> = (0..size).collect();
        loop {
            looked += 1;
            if looked > SETS_MAX {
                return Err(TooMany);
            }
            let own: BTreeSet<usize> = set.iter().copied().collect();
            let is_smallest = !found.iter().any(|smaller| smaller.is_subset(&own));
            if is_smallest && isolates(&new, &distinct, &own) {
                found.push(own);
            }
            if !advance(&mut set, columns.len()) {
                break;
            }
        }
    }
    let named = found.into_iter().map(|own| Exposed {
        by: needed(&new, &earlier, &own),
        hospitals: own
            .into_iter()
            .map(|place| columns[place].clone())
            .collect(),
    });
    Ok(named.collect())
}

/// The next set of as many places below `end`; false after the last.
fn advance(set: &mut [usize], end: usize) -> bool {
    let size = set.len();
    let Some(place) = (0..size)
        .rev()
        .find(|place| set[*place] < end - size + *place)
    else {
        return false;
    };
    set[place] += 1;
    for later in place + 1..size {
        set[later] = set[later - 1] + 1;
    }
    true
}

/// Whether the new roster, with multiples of earlier ones, leaves somebody of `own` and nobody else.
fn isolates(new: &[bool], earlier: &BTreeSet<&Vec<bool>>, own: &BTreeSet<usize>) -> bool {
    let without = |row: &[bool]| -> Vec<bool> {
        let others = row
            .iter()
            .enumerate()
            .filter(|(place, _)| !own.contains(place));
        others.map(|(_, is_in)| *is_in).collect()
    };
    let (whole, outside): (Vec<Vec<bool>>, Vec<Vec<bool>>) = (earlier.iter())
        .map(|row| ((*row).clone(), without(row)))
        .unzip();
    let and = |rows: &[Vec<bool>], more: Vec<bool>| rank(&[rows, &[more]].concat());
    let (of_outside, of_whole) = (rank(&outside), rank(&whole));
    let cancels = and(&outside, without(new)) == of_outside;
    let is_new = and(&whole, new.to_vec()) > of_whole;
    cancels && (is_new || of_whole > of_outside)
}

/// Places of earlier rosters without which the set would not be left, as few as leaving them out one by one finds.
fn needed(new: &[bool], earlier: &[Vec<bool>], own: &BTreeSet<usize>) -> Vec<usize> {
    let mut needed: Vec<usize> = (0..earlier.len()).collect();
    for place in 0..earlier.len() {
        let fewer: Vec<usize> = needed.iter().copied().filter(|one| *one != place).collect();
        let rows = fewer.iter().map(|one| &earlier[*one]).collect();
        if isolates(new, &rows, own) {
            needed = fewer;
        }
    }
    needed
}

/// The rank of rows of zeros and ones, by elimination without fractions (Bareiss): every number on the way is a minor.
fn rank(rows: &[Vec<bool>]) -> usize {
    let mut rows: Vec<Vec<i128>> = rows
        .iter()
        .map(|row| row.iter().map(|is_in| i128::from(*is_in)).collect())
        .collect();
    let columns = rows.first().map_or(0, Vec::len);
    let (mut rank, mut before) = (0, 1);
    for column in 0..columns {
        let Some(pivot) = (rank..rows.len()).find(|row| rows[*row][column] != 0) else {
            continue;
        };
        rows.swap(rank, pivot);
        let (done, rest) = rows.split_at_mut(rank + 1);
        let pivot = &done[rank];
        for row in rest {
            let factor = row[column];
            for (own, of_pivot) in row.iter_mut().zip(pivot) {
                *own = (*own * pivot[column] - factor * of_pivot) / before;
            }
        }
        before = pivot[column];
        rank += 1;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(letters: &str) -> Roster {
        let name = |letter: char| SiteName::new(&letter.to_string()).unwrap();
        letters.chars().map(name).collect()
    }

    fn in_words(
        new: &str,
        earlier: &[&str],
        least: usize,
        known: &str,
    ) -> Vec<(String, Vec<usize>)> {
        let earlier: Vec<Roster> = earlier.iter().map(|one| roster(one)).collect();
        let found = exposed(&roster(new), &earlier, least, &roster(known)).unwrap();
        let one = |one: Exposed| {
            let names: Vec<&str> = one.hospitals.iter().map(|name| name.as_str()).collect();
            (names.concat(), one.by)
        };
        found.into_iter().map(one).collect()
    }

    #[test]
    fn the_difference_of_two_rosters_tells_whoever_is_left() {
        assert_eq!(
            in_words("abc", &["abcd"], 3, ""),
            [("d".to_owned(), vec![0])]
        );
        assert_eq!(
            in_words("abcde", &["abc"], 3, ""),
            [("de".to_owned(), vec![0])]
        );
        // Each learns the other's.
        assert_eq!(
            in_words("abcd", &["abce"], 3, ""),
            [("de".to_owned(), vec![0])]
        );
        assert_eq!(in_words("ade", &["abc"], 3, ""), []);
        assert_eq!(in_words("abc", &["abc"], 3, ""), []);
        assert_eq!(in_words("abc", &[], 3, ""), []);
        assert_eq!(in_words("abcd", &["abce"], 2, ""), []);
    }

    #[test]
    fn three_rosters_of_which_no_two_tell_anything_tell_one_hospital() {
        // abc + ade - bcde is twice a.
        assert_eq!(in_words("abc", &["ade"], 3, ""), []);
        let all = |by: Vec<usize>| ["a", "bc", "de"].map(|one| (one.to_owned(), by.clone()));
        assert_eq!(in_words("bcde", &["abc", "ade"], 3, ""), all(vec![0, 1]));
        // A fourth one that has nothing to do with it is not named.
        assert_eq!(
            in_words("bcde", &["abc", "fgh", "ade"], 3, ""),
            all(vec![0, 2])
        );
        // A fraction of a roster.
        assert_eq!(in_words("abc", &["abd", "acd", "bcd"], 2, "").len(), 4);
    }

    #[test]
    fn whoever_is_known_counts_no_more_and_may_leave_too_few() {
        assert_eq!(in_words("abc", &["abcd"], 3, "d"), []);
        assert_eq!(
            in_words("abcd", &["abce"], 3, "d"),
            [("e".to_owned(), vec![0])]
        );
        assert_eq!(in_words("abcd", &["abce"], 3, "de"), []);
        // Once d may be read, a study of three hospitals is one of two.
        assert_eq!(in_words("abd", &["abcd"], 3, "d").len(), 2);
        // Exposed by earlier studies already, and by the new one again.
        assert_eq!(
            in_words("abcd", &["abcd", "abc"], 3, ""),
            [("d".to_owned(), vec![1])]
        );
        assert_eq!(in_words("efg", &["abcd", "abc"], 3, ""), []);
    }

    #[test]
    fn ranks_are_exact() {
        // The incidence of 7 points and 7 lines: its determinant is 24.
        let fano = ["abc", "ade", "afg", "bdf", "beg", "cdg", "cef"];
        let rows: Vec<Vec<bool>> = fano
            .iter()
            .map(|line| {
                "abcdefg"
                    .chars()
                    .map(|point| line.contains(point))
                    .collect()
            })
            .collect();
        assert_eq!(rank(&rows), 7);
        assert_eq!(rank(&rows[..5]), 5);
        let sum: Vec<Vec<bool>> = ["ab", "cd", "abcd", "ac", "bd"]
            .iter()
            .map(|row| "abcd".chars().map(|one| row.contains(one)).collect())
            .collect();
        assert_eq!(rank(&sum), 3);
        assert_eq!(rank(&[]), 0);
    }

    #[test]
    fn more_than_can_be_judged_is_said_and_not_passed() {
        let name = |place: usize| SiteName::new(&format!("s{place}")).unwrap();
        let one = |place: usize| -> Roster { [name(0), name(place + 1), name(place + 2)].into() };
        let earlier: Vec<Roster> = (0..ROSTERS_MAX).map(one).collect();
        assert_eq!(exposed(&one(90), &earlier, 3, &Roster::new()), Err(TooMany));
        let many: Roster = (0..256).map(name).collect();
        assert_eq!(exposed(&many, &[], 256, &Roster::new()), Err(TooMany));
    }
}
