//! Patients in folds, each held out once.

use ndarray::Array1;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::SelectionError;
use crate::numeric::seed::Seed;

/// Every patient of a cohort in exactly one fold, every class spread evenly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    /// The fold of each patient.
    fold_of: Vec<usize>,
    count: usize,
}

/// Rows of a cohort, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Patients to learn from.
    pub training: Vec<usize>,
    /// Patients to be classified.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Those to be classified who are marked.
    #[must_use]
    pub fn held_out_of(&self, marked: &[bool]) -> Vec<usize> {
        let own = self.held_out.iter().copied();
        own.filter(|patient| marked[*patient]).collect()
    }
}

/// Each two of so many folds, the smaller number first.
pub fn two_folds(folds: u32) -> impl Iterator<Item = [u32; 2]> {
    (0..folds).flat_map(|other| (0..other).map(move |one| [one, other]))
}

/// The patients of each class, in an order that is drawn.
fn shuffled(classes: &Array1<u32>, mut stream: ChaCha8Rng, mut of_class: impl FnMut(&[usize])) {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|patient| classes[*patient]);
    for members in order.chunk_by_mut(|a, b| classes[*a] == classes[*b]) {
        members.shuffle(&mut stream);
        of_class(members);
    }
}

/// One patient in `count`, rounded up, drawn from the stream "judged" of `seed`; all where `count` is at most 1.
#[must_use]
pub fn one_in(patients: usize, count: usize, seed: Seed) -> Vec<bool> {
    let mut drawn = vec![count <= 1; patients];
    if count > 1 {
        let mut order: Vec<usize> = (0..patients).collect();
        let stream = &mut seed.stream("judged", 0);
        let (first, _) = order.partial_shuffle(stream, patients.div_ceil(count));
        first.iter().for_each(|patient| drawn[*patient] = true);
    }
    drawn
}

/// The marked patients but up to `step` - 1 of each class, drawn from the stream "counted" of `seed`: of each class a multiple of `step`.
#[must_use]
pub fn in_steps(
    classes: &Array1<u32>,
    step: usize,
    seed: Seed,
    mut marked: Vec<bool>,
) -> Vec<bool> {
    shuffled(classes, seed.stream("counted", 0), |members| {
        let counted = members.iter().copied().filter(|patient| marked[*patient]);
        let counted: Vec<usize> = counted.collect();
        for patient in &counted[..counted.len() % step] {
            marked[*patient] = false;
        }
    });
    marked
}

impl Folds {
    /// Deals the patients of each class, in an order drawn from the stream "folds" of `seed`, to `count`
    /// folds in turn: sizes differ by at most one, in a class and in all.
    ///
    /// # Errors
    /// [`SelectionError::FoldCount`] and [`SelectionError::FewPatients`].
    pub fn stratified(
        classes: &Array1<u32>,
        count: usize,
        seed: Seed,
    ) -> Result<Self, SelectionError> {
        let mut found = usize::MAX;
        let folds = Self::dealt(classes, count, seed, |members| found = found.min(members))?;
        found = if classes.is_empty() { 0 } else { found };
        match found < count {
            true => Err(SelectionError::FewPatients {
                found,
                wanted: count,
            }),
            false => Ok(folds),
        }
    }

    /// The same folds, where a class may have fewer patients than there are folds.
    ///
    /// # Errors
    /// [`SelectionError::FoldCount`].
    pub fn spread(classes: &Array1<u32>, count: usize, seed: Seed) -> Result<Self, SelectionError> {
        Self::dealt(classes, count, seed, |_| ())
    }

    fn dealt(
        classes: &Array1<u32>,
        count: usize,
        seed: Seed,
        mut of_class: impl FnMut(usize),
    ) -> Result<Self, SelectionError> {
        if count < 2 {
            return Err(SelectionError::FoldCount { found: count });
        }
        let mut fold_of = vec![0; classes.len()];
        let mut next = 0;
        shuffled(classes, seed.stream("folds", 0), |members| {
            of_class(members.len());
            for patient in members {
                fold_of[*patient] = next;
                next = (next + 1) % count;
            }
        });
        Ok(Self { fold_of, count })
    }

    /// Folds of rows from these folds of groups: every row goes where its group is, so that rows of one
    /// group are never on both sides. `group_of` holds a group, an index into these folds, for each row.
    ///
    /// # Panics
    /// Where a group is none of these folds'.
    #[must_use]
    pub fn of_members(&self, group_of: &[usize]) -> Self {
        Self {
            fold_of: group_of.iter().map(|group| self.fold_of[*group]).collect(),
            count: self.count,
        }
    }

    /// The fold of each patient, from 0.
    #[must_use]
    pub fn of_each(&self) -> &[usize] {
        &self.fold_of
    }

    /// Number of folds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows of all folds but these.
    #[must_use]
    pub fn without(&self, left_out: &[u32]) -> Vec<usize> {
        let is_left = |patient: &usize| {
            left_out
                .iter()
                .all(|fold| *fold as usize != self.fold_of[*patient])
        };
        (0..self.fold_of.len()).filter(is_left).collect()
    }

    /// The rows to learn from and the rows to classify, with `fold` (from 0) held out.
    #[must_use]
    pub fn split(&self, fold: usize) -> Split {
        let (held_out, training) = (0..self.fold_of.len()).partition(|p| self.fold_of[*p] == fold);
        Split { training, held_out }
    }
}
