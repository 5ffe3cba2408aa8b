//! Counts in tens.
//!
//! A rule that withholds small counts of errors and lets large ones go withholds the more, the better a model is, and what
//! is left is no fair sample. Hence one rule for all of them, whatever they are: running totals over the wrong ones, class
//! by class, are published as the nearest multiple of `step`, and a cell is what two of them differ by; the last cell of a
//! class is what is left of its patients, whose number is known. A running total is off by half a step at most; a class of
//! which fewer are right is all wrong, so that the wrong ones of two classes are off by less than a step. No count of 1 to
//! `step - 1` is published.
//!
//! The grid is the same in every run. Where it starts by the run's seed, the same count under ten seeds is the count itself.
//! Totals run from the cells that are most wrong, in a confusion table and in bins of a score alike, so that the two have
//! the same count once.

/// The grid of published counts.
#[derive(Clone, Copy)]
pub(crate) struct Border {
    step: u64,
}

impl Border {
    /// The grid of multiples of `step`.
    pub(crate) fn new(step: u64) -> Self {
        Self { step: step.max(1) }
    }

    /// Between two counts that can be published.
    pub(crate) fn step(self) -> u64 {
        self.step
    }

    /// What is published of a sum that may hold halves, as discordant pairs do.
    #[allow(clippy::cast_precision_loss)] // steps are small
    pub(crate) fn rounded_sum(self, total: f64) -> f64 {
        let step = self.step as f64;
        ((total + (self.step / 2) as f64) / step).floor() * step
    }

    /// Rounds a table of patients by true class (row) and predicted class (column): the wrong ones row by row, and as right
    /// what is left of each row.
    pub(crate) fn round_confusion(self, table: &mut [Vec<u64>]) {
        let mut before = 0;
        for (class, row) in table.iter_mut().enumerate() {
            let wrong = (0..row.len()).filter(|place| *place != class);
            let order: Vec<usize> = wrong.chain([class]).collect();
            let own = row.iter().sum::<u64>() - row.get(class).copied().unwrap_or(0);
            self.round(row, &order, before);
            before += own;
        }
    }

    /// Rounds patients of two classes (rows) by rising bins of the second's score. Of the first the highest are most wrong,
    /// and those above the middle are all wrong, as the table of classes has them before the second class.
    pub(crate) fn round_scores(self, table: &mut [Vec<u64>]) {
        let [first, second] = table else {
            return;
        };
        let rising: Vec<usize> = (0..second.len()).collect();
        let falling: Vec<usize> = (0..first.len()).rev().collect();
        let above: u64 = first[first.len().div_ceil(2)..].iter().sum();
        self.round(first, &falling, 0);
        self.round(second, &rising, above);
    }

    /// Rounds the cells in this order, behind `before` patients, the last as what is left. Their sum stays.
    fn round(self, cells: &mut [u64], order: &[usize], before: u64) {
        let mut left: u64 = cells.iter().sum();
        let Some((last, all_others)) = order.split_last() else {
            return;
        };
        let (mut total, mut published) = (before, self.rounded(before));
        for place in all_others {
            total += cells[*place];
            let now = self.rounded(total);
            cells[*place] = (now - published).min(left);
            left -= cells[*place];
            published = now;
        }
        cells[*last] = left;
    }

    /// What is published of a running total.
    pub(crate) fn rounded(self, total: u64) -> u64 {
        total.saturating_add(self.step / 2) / self.step * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 10;

    /// Every running total in this order of a row is off by at most half a step.
    fn is_near(published: &[Vec<u64>], truth: &[Vec<u64>], order: fn(usize, usize) -> Vec<usize>) {
        for (class, (published, truth)) in published.iter().zip(truth).enumerate() {
            assert_eq!(published.iter().sum::<u64>(), truth.iter().sum::<u64>());
            let order = order(class, truth.len());
            let mut before = [0; 2];
            for place in &order[..order.len() - 1] {
                before = [before[0] + published[*place], before[1] + truth[*place]];
                assert_eq!(before[0] % STEP, 0);
                // A class begins where another ends, which is off by half a step as well.
                assert!(before[0].abs_diff(before[1]) < STEP);
            }
        }
    }

    fn wrong(table: &[Vec<u64>]) -> u64 {
        let rows = table.iter().enumerate();
        rows.map(|(class, row)| row.iter().sum::<u64>() - row[class])
            .sum()
    }

    #[test]
    fn running_totals_are_published_as_the_nearest_ten() {
        let confusion = [vec![57, 3, 4], vec![0, 40, 9], vec![1, 2, 31]];
        let wrong_first = |class: usize, cells: usize| {
            let wrong = (0..cells).filter(|place| *place != class);
            wrong.chain([class]).collect()
        };
        let mut published = confusion.to_vec();
        Border::new(STEP).round_confusion(&mut published);
        is_near(&published, &confusion, wrong_first);
        // 19 are wrong; a sum of errors says the same.
        assert_eq!(wrong(&confusion), 19);
        assert_eq!(wrong(&published), 20);
        assert!((Border::new(STEP).rounded_sum(19.0) - 20.0).abs() < 1e-12);
        let scores = [vec![40, 1, 1, 14, 0, 3], vec![3, 0, 14, 1, 1, 40]];
        let worst_first = |class: usize, cells: usize| match class {
            0 => (0..cells).rev().collect(),
            _ => (0..cells).collect(),
        };
        let mut published = scores.to_vec();
        Border::new(STEP).round_scores(&mut published);
        is_near(&published, &scores, worst_first);
    }

    #[test]
    fn of_two_classes_the_wrong_ones_are_off_by_less_than_a_step_however_bad_a_model_is() {
        for case in 0..14_641_u64 {
            let [first, second, third, fourth] =
                [case % 11, case / 11 % 11, case / 121 % 11, case / 1_331];
            let truth = vec![vec![first, 3 * second], vec![3 * third, fourth]];
            let mut published = truth.clone();
            Border::new(STEP).round_confusion(&mut published);
            let off = wrong(&published).abs_diff(wrong(&truth));
            assert!(off < STEP, "{truth:?}");
            let rights = [first, fourth].into_iter().min().unwrap_or(0);
            assert!(rights < 5 || off <= STEP / 2, "{truth:?}");
        }
    }

    #[test]
    fn a_table_and_the_bins_that_it_follows_from_have_the_same_count_once() {
        let border = Border::new(STEP);
        let mut scores = vec![vec![30, 8, 4, 3], vec![2, 5, 9, 33]];
        let mut confusion = vec![vec![38, 7], vec![7, 42]];
        border.round_scores(&mut scores);
        border.round_confusion(&mut confusion);
        assert_eq!(confusion[0][1], scores[0][2] + scores[0][3]);
        assert_eq!(confusion[1][0], scores[1][0] + scores[1][1]);
    }

    #[test]
    fn no_more_are_published_as_wrong_than_there_are_and_a_step_of_one_changes_none() {
        let mut small = vec![vec![0, 17], vec![0, 40]];
        Border::new(STEP).round_confusion(&mut small);
        assert_eq!(small, [vec![0, 17], vec![0, 40]]);
        let exact = vec![vec![3, 1], vec![2, 5]];
        let mut published = exact.clone();
        Border::new(1).round_confusion(&mut published);
        assert_eq!(published, exact);
        assert!((Border::new(STEP).rounded_sum(14.5) - 10.0).abs() < 1e-12);
        assert!((Border::new(STEP).rounded_sum(15.0) - 20.0).abs() < 1e-12);
    }
}
