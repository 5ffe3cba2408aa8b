//! One split of a data set: standardised patients to learn from, and others to be classified.

use ndarray::{Array1, Array2, Axis};
use rand::seq::SliceRandom;
use similarity::learn::unpsl::selection::{Classified, Folds, SelectionError};
use similarity::numeric::linear_algebra::{LinearAlgebraError, product, symmetric_eigen};
use similarity::numeric::seed::Seed;

use crate::preparation::{Standardiser, logarithm_by_array, threshold, varying};
use crate::sources::Patients;

/// Folds of every choice inside the training patients, fewer where a class has fewer subjects.
pub(crate) const FOLDS: usize = 5;
/// Training rows of a random split of Parkinson's, as in the paper.
pub(crate) const PARKINSONS_TRAINING: usize = 98;
/// Eigenvalues below this share of the largest are rounding.
const RANK_RATIO: f64 = 1e-10;

/// Training and test patients, standardised by the training ones.
pub(crate) struct Task {
    /// n x d.
    pub(crate) training: Array2<f64>,
    pub(crate) classes: Array1<u32>,
    /// The subject of each training row; folds keep a subject's rows together.
    subjects: Vec<usize>,
    pub(crate) test: Array2<f64>,
    pub(crate) truth: Array1<u32>,
}

impl Task {
    pub(crate) fn classified(&self) -> Classified<'_> {
        Classified {
            patients: self.training.view(),
            classes: &self.classes,
        }
    }

    /// Folds of the training patients, stratified by class, whole subjects each.
    pub(crate) fn folds(&self, seed: Seed) -> Result<Folds, SelectionError> {
        let mut subjects: Vec<usize> = self.subjects.clone();
        subjects.sort_unstable();
        subjects.dedup();
        let place = |subject: &usize| subjects.binary_search(subject).unwrap_or(0);
        let group_of: Vec<usize> = self.subjects.iter().map(place).collect();
        let mut classes = Array1::zeros(subjects.len());
        for (group, class) in group_of.iter().zip(&self.classes) {
            classes[*group] = *class;
        }
        let positive = classes.iter().filter(|class| **class == 1).count();
        let smallest = positive.min(classes.len() - positive);
        let count = FOLDS.min(smallest);
        Ok(Folds::stratified(&classes, count, seed)?.of_members(&group_of))
    }

    /// The same patients in the row space of the training ones, n x rank. Distances between two training
    /// patients stay, and to one test patient all change by the same amount: neighbours stay, too.
    pub(crate) fn in_row_space(&self) -> Result<Self, LinearAlgebraError> {
        let x = &self.training;
        let eigen = symmetric_eigen(&product(&x.view(), &x.t()))?;
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let kept: Vec<usize> = (0..x.nrows())
            .filter(|place| eigen.values[*place] > RANK_RATIO * largest)
            .collect();
        let mut basis = product(&x.t(), &eigen.vectors.select(Axis(1), &kept).view());
        for (mut column, place) in basis.columns_mut().into_iter().zip(&kept) {
            column /= eigen.values[*place].sqrt();
        }
        let reduced = |patients: &Array2<f64>| product(&patients.view(), &basis.view());
        Ok(self.with_patients(reduced(x), reduced(&self.test)))
    }

    /// The same task over other features.
    pub(crate) fn with_patients(&self, training: Array2<f64>, test: Array2<f64>) -> Self {
        Self {
            training,
            classes: self.classes.clone(),
            subjects: self.subjects.clone(),
            test,
            truth: self.truth.clone(),
        }
    }

    fn of_rows(patients: &Patients, training: &[usize], test: &[usize]) -> Self {
        let rows = |rows: &[usize]| patients.values.select(Axis(0), rows);
        let standardiser = Standardiser::fit(&rows(training));
        Self {
            training: standardiser.apply(&rows(training)),
            classes: patients.classes.select(Axis(0), training),
            subjects: training.iter().map(|row| patients.subjects[*row]).collect(),
            test: standardiser.apply(&rows(test)),
            truth: patients.classes.select(Axis(0), test),
        }
    }
}

/// The paper's split of Parkinson's: 98 rows drawn at random, all others tested. Rows of one person lie
/// on both sides, and in several folds.
pub(crate) fn by_row(patients: &Patients, seed: Seed) -> Task {
    let mut rows: Vec<usize> = (0..patients.classes.len()).collect();
    rows.shuffle(&mut seed.stream("split", 0));
    let count = PARKINSONS_TRAINING.min(rows.len() / 2);
    let (training, test) = rows.split_at_mut(count);
    training.sort_unstable();
    test.sort_unstable();
    let mut task = Task::of_rows(patients, training, test);
    task.subjects = (0..count).collect();
    task
}

/// Half of the subjects of each class, drawn at random; all rows of the others are tested.
pub(crate) fn by_subject(patients: &Patients, seed: Seed) -> Result<Task, SelectionError> {
    let count = patients.subjects.iter().max().map_or(0, |last| last + 1);
    let mut classes = Array1::zeros(count);
    for (subject, class) in patients.subjects.iter().zip(&patients.classes) {
        classes[*subject] = *class;
    }
    let halves = Folds::stratified(&classes, 2, seed)?.of_members(&patients.subjects);
    let split = halves.split(1);
    Ok(Task::of_rows(patients, &split.training, &split.held_out))
}

/// Colon: log10, each array standardised; one row is tested.
pub(crate) fn leaving_out(patients: &Patients, row: usize) -> Task {
    let training: Vec<usize> = (0..patients.classes.len()).filter(|r| *r != row).collect();
    Task::of_rows(patients, &training, &[row])
}

/// The colon arrays, each by itself, so before any split.
pub(crate) fn colon_arrays(patients: Patients) -> Patients {
    Patients {
        values: logarithm_by_array(&patients.values),
        ..patients
    }
}

/// Leukaemia: floor and ceiling, genes that vary among the training patients, log10, each array
/// standardised (Dudoit, Fridlyand and Speed 2002), then each gene.
pub(crate) fn leukaemia_task([training, test]: &[Patients; 2]) -> Task {
    let floored = threshold(&training.values);
    let genes = varying(&floored);
    let prepared = |values: &Array2<f64>| logarithm_by_array(&values.select(Axis(1), &genes));
    let (known, asked) = (prepared(&floored), prepared(&threshold(&test.values)));
    let standardiser = Standardiser::fit(&known);
    Task {
        training: standardiser.apply(&known),
        classes: training.classes.clone(),
        subjects: (0..training.classes.len()).collect(),
        test: standardiser.apply(&asked),
        truth: test.classes.clone(),
    }
}
