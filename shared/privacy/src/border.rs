//! Counts on a grid that starts anywhere.
//!
//! A rule that withholds small counts of errors and lets large ones go withholds the more, the better a model is, and what
//! is left is no fair sample. Hence one rule for all of them, whatever they are: running totals over the wrong ones, class
//! by class, are published in multiples of `step`, as
//!
//! ```text
//! step * floor((total + start) / step),    start in 0 .. step
//! ```
//!
//! and a cell is what two of them differ by; the last cell of a class is what is left of its patients, whose number is
//! known. Over evenly spread starts the mean of what is published is what is true;
//! every running total is off by less than `step`, and so are the wrong ones of all; and no count of 1 to `step - 1` is
//! published. The start is the run's: publishing again reveals nothing more. Totals run from the
//! cells that are most wrong, in a confusion table and in bins of a score alike, so that the two tell the same count once.

/// The grid of one run.
#[derive(Clone, Copy)]
pub(crate) struct Border {
    start: u64,
    step: u64,
}

impl Border {
    /// The grid of multiples of `step` that starts where `start` says.
    pub(crate) fn new(start: u64, step: u64) -> Self {
        let step = step.max(1);
        Self {
            start: start % step,
            step,
        }
    }

    /// Between two counts that can be published.
    pub(crate) fn step(self) -> u64 {
        self.step
    }

    /// What is published of a sum that may hold halves, as discordant pairs do.
    #[allow(clippy::cast_precision_loss)] // steps are small, and counts exact below 2^53
    pub(crate) fn told_of_sum(self, total: f64) -> f64 {
        let step = self.step as f64;
        ((total + self.start as f64) / step).floor() * step
    }

    /// Tells a table of patients by true class (row) and predicted class (column): the wrong ones row by row, and as right
    /// what is left of each row.
    pub(crate) fn tell_confusion(self, table: &mut [Vec<u64>]) {
        let mut before = 0;
        for (class, row) in table.iter_mut().enumerate() {
            let wrong = (0..row.len()).filter(|place| *place != class);
            let order: Vec<usize> = wrong.chain([class]).collect();
            let own = row.iter().sum::<u64>() - row.get(class).copied().unwrap_or(0);
            self.tell(row, &order, before);
            before += own;
        }
    }

    /// Tells patients of two classes (rows) by rising bins of the second's score. Of the first the highest are most wrong,
    /// and those above the middle are all wrong, as the table of classes has them before the second class.
    pub(crate) fn tell_scores(self, table: &mut [Vec<u64>]) {
        let [first, second] = table else {
            return;
        };
        let rising: Vec<usize> = (0..second.len()).collect();
        let falling: Vec<usize> = (0..first.len()).rev().collect();
        let above: u64 = first[first.len().div_ceil(2)..].iter().sum();
        self.tell(first, &falling, 0);
        self.tell(second, &rising, above);
    }

    /// Tells the cells in this order, behind `before` patients, the last as what is left. Their sum stays.
    fn tell(self, cells: &mut [u64], order: &[usize], before: u64) {
        let mut left: u64 = cells.iter().sum();
        let Some((last, all_others)) = order.split_last() else {
            return;
        };
        let (mut total, mut told) = (before, self.rounded(before));
        for place in all_others {
            total += cells[*place];
            let now = self.rounded(total);
            cells[*place] = (now - told).min(left);
            left -= cells[*place];
            told = now;
        }
        cells[*last] = left;
    }

    /// What is published of a running total.
    pub(crate) fn rounded(self, total: u64) -> u64 {
        total.saturating_add(self.start) / self.step * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 10;

    fn times(table: &[Vec<u64>], factor: u64) -> Vec<Vec<u64>> {
        let row = |row: &Vec<u64>| row.iter().map(|cell| cell * factor).collect();
        table.iter().map(row).collect()
    }

    /// The sum over all starts of what is published; every running total in this order of a row is off by less than a step.
    fn summed(
        table: &[Vec<u64>],
        tell: fn(Border, &mut [Vec<u64>]),
        order: fn(usize, usize) -> Vec<usize>,
    ) -> Vec<Vec<u64>> {
        let mut sums = times(table, 0);
        for start in 0..STEP {
            let mut told = table.to_vec();
            tell(Border::new(start + 70, STEP), &mut told);
            for (class, (told, truth)) in told.iter().zip(table).enumerate() {
                assert_eq!(told.iter().sum::<u64>(), truth.iter().sum::<u64>());
                let order = order(class, truth.len());
                for end in 1..order.len() {
                    let running =
                        |row: &[u64]| -> u64 { order[..end].iter().map(|place| row[*place]).sum() };
                    assert!(running(told).abs_diff(running(truth)) < STEP);
                    assert_eq!(running(told) % STEP, 0);
                }
                for (sum, told) in sums[class].iter_mut().zip(told) {
                    *sum += told;
                }
            }
        }
        sums
    }

    fn wrong(table: &[Vec<u64>]) -> u64 {
        let rows = table.iter().enumerate();
        rows.map(|(class, row)| row.iter().sum::<u64>() - row[class])
            .sum()
    }

    #[test]
    fn over_all_starts_the_mean_of_what_is_told_is_what_is_true() {
        let confusion = [vec![57, 3, 4], vec![0, 40, 9], vec![1, 2, 31]];
        let wrong_first = |class: usize, cells: usize| {
            let wrong = (0..cells).filter(|place| *place != class);
            wrong.chain([class]).collect()
        };
        let tell: fn(Border, &mut [Vec<u64>]) = |border, table| border.tell_confusion(table);
        assert_eq!(
            summed(&confusion, tell, wrong_first),
            times(&confusion, STEP)
        );
        for start in 0..STEP {
            let mut told = confusion.to_vec();
            Border::new(start, STEP).tell_confusion(&mut told);
            assert!(wrong(&told).abs_diff(wrong(&confusion)) < STEP);
            // The same as a sum of errors tells.
            let sum = Border::new(start, STEP).told_of_sum(19.0);
            assert!((wrong(&told) as f64 - sum).abs() < 1e-12);
        }
        let scores = [vec![40, 1, 1, 14, 0, 3], vec![3, 0, 14, 1, 1, 40]];
        let worst_first = |class: usize, cells: usize| match class {
            0 => (0..cells).rev().collect(),
            _ => (0..cells).collect(),
        };
        let tell: fn(Border, &mut [Vec<u64>]) = |border, table| border.tell_scores(table);
        assert_eq!(summed(&scores, tell, worst_first), times(&scores, STEP));
    }

    #[test]
    fn a_table_and_the_bins_that_it_follows_from_tell_the_same_count_once() {
        for start in 0..STEP {
            let border = Border::new(start, STEP);
            let mut scores = vec![vec![30, 8, 4, 3], vec![2, 5, 9, 33]];
            let mut confusion = vec![vec![38, 7], vec![7, 42]];
            border.tell_scores(&mut scores);
            border.tell_confusion(&mut confusion);
            assert_eq!(confusion[0][1], scores[0][2] + scores[0][3]);
            assert_eq!(confusion[1][0], scores[1][0] + scores[1][1]);
        }
    }

    #[test]
    fn no_more_are_told_wrong_than_there_are_and_a_step_of_one_tells_all() {
        let mut small = vec![vec![0, 12], vec![0, 40]];
        Border::new(9, STEP).tell_confusion(&mut small);
        assert_eq!(small, [vec![0, 12], vec![0, 40]]);
        let exact = vec![vec![3, 1], vec![2, 5]];
        let mut told = exact.clone();
        Border::new(77, 1).tell_confusion(&mut told);
        assert_eq!(told, exact);
        assert!((Border::new(4, STEP).told_of_sum(15.5) - 10.0).abs() < 1e-12);
        assert!((Border::new(5, STEP).told_of_sum(15.5) - 20.0).abs() < 1e-12);
    }
}
