//! Sorting the patients of one node by the code of one feature.
//!
//! A large node writes its codes into a two-level bitmap and reads the set bits back in order, which
//! costs a few nanoseconds a patient whatever the number of codes; a small node sorts keys.

use crate::learn::forest::grow::Member;

/// Up to this many patients keys are sorted; above, the bitmap is used.
const KEYS_MAX: usize = 40;
const END: u32 = u32::MAX;

/// The patients of one node in the order of one feature, and the buffers that sort them.
#[derive(Default)]
pub(crate) struct Order {
    /// Present patients in rising order of code.
    pub(crate) present: Vec<Ordered>,
    /// Positions in the node of patients whose value is missing.
    pub(crate) missing: Vec<u32>,
    words: Vec<u64>,
    summary: Vec<u64>,
    /// First position of a code whose bit is set.
    first: Vec<u32>,
    /// The next position with the same code.
    next: Vec<u32>,
    keys: Vec<u64>,
}

/// One patient of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordered {
    pub(crate) code: u32,
    /// Position among the node's members.
    pub(crate) position: u32,
}

impl Order {
    /// Sorts `members` by `codes`; codes of `missing_code` go to `missing`.
    pub(crate) fn sort(&mut self, members: &[Member], codes: &[u32], missing_code: u32) {
        self.present.clear();
        self.missing.clear();
        if members.len() <= KEYS_MAX {
            self.sort_keys(members, codes, missing_code);
        } else {
            self.sort_bitmap(members, codes, missing_code);
        }
    }

    fn sort_keys(&mut self, members: &[Member], codes: &[u32], missing_code: u32) {
        self.keys.clear();
        for (position, member) in members.iter().enumerate() {
            let code = codes[member.patient as usize];
            if code == missing_code {
                self.missing.push(position as u32);
            } else {
                self.keys.push(u64::from(code) << 32 | position as u64);
            }
        }
        self.keys.sort_unstable();
        self.present.extend(self.keys.iter().map(|&key| Ordered {
            code: (key >> 32) as u32,
            position: key as u32,
        }));
    }

    fn sort_bitmap(&mut self, members: &[Member], codes: &[u32], missing_code: u32) {
        let words = (missing_code as usize).div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
            self.summary.resize(words.div_ceil(64), 0);
            self.first.resize(words * 64, END);
        }
        self.next.clear();
        for (position, member) in members.iter().enumerate() {
            let code = codes[member.patient as usize];
            if code == missing_code {
                self.missing.push(position as u32);
                self.next.push(END);
                continue;
            }
            let word = code as usize / 64;
            let bit = 1_u64 << (code % 64);
            let repeated = self.words[word] & bit != 0;
            self.next.push(if repeated {
                self.first[code as usize]
            } else {
                END
            });
            self.words[word] |= bit;
            self.summary[word / 64] |= 1 << (word % 64);
            self.first[code as usize] = position as u32;
        }
        self.read_bitmap(words.div_ceil(64));
    }

    /// Reads the set bits in order and clears them.
    fn read_bitmap(&mut self, summaries: usize) {
        for block in 0..summaries {
            let mut summary = std::mem::take(&mut self.summary[block]);
            while summary != 0 {
                let word = block * 64 + summary.trailing_zeros() as usize;
                summary &= summary - 1;
                let mut bits = std::mem::take(&mut self.words[word]);
                while bits != 0 {
                    let code = (word * 64) as u32 + bits.trailing_zeros();
                    bits &= bits - 1;
                    let mut position = self.first[code as usize];
                    while position != END {
                        self.present.push(Ordered { code, position });
                        position = self.next[position as usize];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use rand::RngExt;

    #[test]
    fn keys_and_bitmap_give_every_patient_once_in_order_of_code() {
        let mut stream = Seed(5).stream("order", 0);
        let mut order = Order::default();
        for (patients, distinct) in [(1, 1), (30, 7), (41, 3), (500, 20), (5000, 4000), (9000, 5)] {
            let codes: Vec<u32> = (0..patients)
                .map(|_| stream.random_range(0..=distinct))
                .collect();
            let members: Vec<Member> = (0..patients as u32)
                .map(|patient| Member { patient, count: 1 })
                .collect();
            order.sort(&members, &codes, distinct);
            assert_eq!(order.present.len() + order.missing.len(), patients);
            assert!(
                order
                    .present
                    .windows(2)
                    .all(|pair| pair[0].code <= pair[1].code)
            );
            assert!(
                order
                    .present
                    .iter()
                    .all(|found| codes[found.position as usize] == found.code)
            );
            assert!(
                order
                    .missing
                    .iter()
                    .all(|&position| codes[position as usize] == distinct)
            );
            let mut seen: Vec<u32> = order
                .present
                .iter()
                .map(|found| found.position)
                .chain(order.missing.clone())
                .collect();
            seen.sort_unstable();
            assert!(
                seen.iter()
                    .enumerate()
                    .all(|(place, &position)| place == position as usize)
            );
        }
    }
}
