//! Promise: landmarks that are all patients say what the whole kernel says; a forest's kernel of who is out of bag everywhere is that of a
//! new patient; what is no kernel is lifted or refused; and held-out figures are those of the definitions.

use ndarray::{Array1, Array2, Axis, s};
use rand_distr::{Distribution, StandardNormal};
use similarity::cohort::{Cohort as Patients, Column, Outcome, Values};
use similarity::compare::laplace::{Norm, laplace};
use similarity::compare::proximity::kernel::{Kernel, OutOfBag};
use similarity::compare::{Comparison, Gower, Placed, Proximity};
use similarity::judge::figures::{Figures, gain};
use similarity::judge::predicted::Predicted;
use similarity::learn::forest::{Grown, InBag, Settings, grow};
use similarity::learn::kernel::gaussian::Gaussian;
use similarity::learn::kernel::landmarks::{LandmarkGaussian, Landmarks, fit_logistic};
use similarity::learn::kernel::logistic::Logistic;
use similarity::numeric::seed::Seed;
use similarity::uses::prediction::{
    Basis, Cohort, EXACT_PATIENTS_MAX, Fitted, Forecast, KernelOf, LANDMARKS, Learner, Machine,
    PredictionError, held_out,
};

/// Four numbers a patient, and a score that two of them make, with noise.
fn patients(count: usize, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut stream = Seed(seed).stream("patients", 0);
    let x = Array2::from_shape_simple_fn((count, 4), || StandardNormal.sample(&mut stream));
    let x: Array2<f64> = x;
    let noise: Array1<f64> = (0..count)
        .map(|_| StandardNormal.sample(&mut stream))
        .collect();
    let y = x.map_axis(Axis(1), |row| row[0].sin() * 2.0 + row[1]) + noise * 0.3;
    (x, y)
}

fn columns(x: &Array2<f64>) -> Vec<Column> {
    let column = |(place, values): (usize, ndarray::ArrayView1<'_, f64>)| Column {
        name: format!("feature {place}"),
        values: Values::Numeric(values.to_owned()),
    };
    x.columns().into_iter().enumerate().map(column).collect()
}

fn grown(x: &Array2<f64>, y: &Array1<f64>) -> Grown {
    let outcome = Outcome::Numeric(y.clone());
    let cohort = Patients::new(columns(x), outcome).unwrap();
    let settings = Settings {
        trees: 60,
        ..Settings::for_outcome(cohort.outcome())
    };
    grow(&cohort, &settings, Seed(4)).unwrap()
}

#[test]
fn landmarks_that_are_everybody_say_what_the_whole_kernel_says() {
    let (x, y) = patients(90, 1);
    let (known, new) = x.view().split_at(Axis(0), 70);
    let y = y.slice(ndarray::s![..70]).to_owned();
    let kernel = laplace(known, known, Norm::L2, 2.0).unwrap();
    let cross = laplace(new, known, Norm::L2, 2.0).unwrap();
    let landmarks = Landmarks::new(&kernel).unwrap();
    let embedded = landmarks.embed(&kernel);
    let own = Array1::ones(20);
    let exact = Gaussian::fit(&kernel, &y, 0.2).unwrap();
    let found = LandmarkGaussian::fit(&landmarks, &embedded.view(), &y, 0.2).unwrap();
    let both = exact.predict(&cross, &own, 0.95).into_iter();
    for (exact, found) in both.zip(found.predict(&cross, &own, 0.95)) {
        for (exact, found) in [
            (exact.mean, found.mean),
            (exact.low, found.low),
            (exact.high, found.high),
        ] {
            assert!((exact - found).abs() < 1e-7, "{exact} {found}");
        }
    }
    let positive = y.mapv(|value| value > 0.3);
    let exact = Logistic::fit(&kernel, &positive, 0.5).unwrap();
    let found = fit_logistic(&landmarks, &embedded.view(), &positive, 0.5).unwrap();
    let both = exact.predict(&cross);
    for (exact, found) in both.iter().zip(&found.predict(&cross)) {
        assert!((exact - found).abs() < 1e-6, "{exact} {found}");
    }
}

#[test]
fn who_is_out_of_bag_everywhere_is_compared_as_a_new_patient_and_others_by_fewer_trees() {
    let (x, y) = patients(80, 2);
    let grown = grown(&x, &y);
    let trees = grown.forest.trees().len();
    let nodes = grown.forest.apply(&columns(&x)).unwrap();
    let comparison = Comparison::Proximity(Proximity::new(grown.forest.clone(), None).unwrap());
    let placed = |bags| Placed::Nodes {
        nodes: nodes.clone(),
        bags,
    };
    let (new, nobody) = (
        placed(None),
        placed(Some(OutOfBag::new(&InBag::nobody(80, trees)))),
    );
    let own = placed(Some(OutOfBag::new(&grown.in_bag)));
    for kernel in [
        Kernel::Proximity,
        Kernel::Kerf,
        Kernel::Depth { omega: 1.0 },
        Kernel::Path,
    ] {
        let of = KernelOf::new(&comparison, kernel).unwrap();
        let all = of.raw(&new, &new).unwrap();
        let same = of.raw(&nobody, &new).unwrap();
        assert!(
            all.iter().zip(&same).all(|(a, b)| (a - b).abs() < 1e-12),
            "{kernel:?}"
        );
        let fewer = of.raw(&own, &new).unwrap();
        assert!(
            fewer.iter().zip(&all).any(|(a, b)| (a - b).abs() > 1e-3),
            "{kernel:?}"
        );
        assert!(
            fewer
                .iter()
                .all(|value| (0.0..=1.0 + 1e-12).contains(value))
        );
    }
    for kernel in [Kernel::OutOfBag, Kernel::Gap] {
        let refused = KernelOf::new(&comparison, kernel).unwrap_err();
        assert!(matches!(refused, PredictionError::Indefinite));
        assert!(
            refused
                .to_string()
                .contains("proximity, path, depth or kerf")
        );
    }
}

/// The same bits, whichever blocks they are asked for in; of proximity and KeRF those of the definition, tree by tree.
#[test]
fn a_kernel_that_is_ready_for_any_block_of_patients_gives_the_bits_of_one_that_is_not() {
    let (x, y) = patients(90, 3);
    let grown = grown(&x, &y);
    let nodes = grown.forest.apply(&columns(&x)).unwrap();
    let bags = OutOfBag::new(&grown.in_bag);
    let comparison = Proximity::new(grown.forest.clone(), Some(bags)).unwrap();
    let comparison = Comparison::Proximity(comparison);
    let all = comparison.place_cohort(&columns(&x)).unwrap();
    let known = Placed::Nodes {
        nodes: nodes.clone(),
        bags: None,
    };
    for kernel in [
        Kernel::Proximity,
        Kernel::Kerf,
        Kernel::Depth { omega: 0.7 },
        Kernel::Path,
    ] {
        let of = KernelOf::new(&comparison, kernel).unwrap();
        let with = of.with(&known).unwrap();
        for asked in [&all, &known] {
            let whole = of.raw(asked, &known).unwrap();
            for block in [0..40, 40..41, 41..90] {
                let rows: Vec<usize> = block.clone().collect();
                let found = with.raw(&asked.select(&rows)).unwrap();
                assert_eq!(found, whole.slice(s![block, ..]), "{kernel:?}");
            }
        }
        let of_bucket: fn(usize) -> f64 = match kernel {
            Kernel::Proximity => |_| 1.0,
            Kernel::Kerf => |patients| 1.0 / patients as f64,
            _ => continue,
        };
        let found = with.raw(&all).unwrap();
        for ((one, other), found) in found.indexed_iter() {
            let unseen = (0..nodes.trees()).filter(|tree| grown.in_bag.of_tree(*tree)[one] == 0);
            let unseen: Vec<&[u32]> = unseen.map(|tree| nodes.of_tree(tree)).collect();
            let shared = unseen.iter().filter(|ends| ends[one] == ends[other]);
            let together = |ends: &&&[u32]| ends.iter().filter(|end| **end == ends[one]).count();
            let sum = shared.fold(0.0, |sum, ends| sum + of_bucket(together(&ends)));
            assert_eq!(*found, sum / unseen.len() as f64, "{kernel:?}");
        }
    }
}

#[test]
fn a_held_out_patient_of_a_forest_gains_nothing_from_trees_that_have_seen_it() {
    // Nothing can be predicted: trees that have seen a patient would say otherwise.
    let (x, _) = patients(200, 3);
    let (_, noise) = patients(200, 4);
    let grown = grown(&x, &noise);
    let comparison = Proximity::new(grown.forest.clone(), Some(OutOfBag::new(&grown.in_bag)));
    let comparison = Comparison::Proximity(comparison.unwrap());
    let outcome = Outcome::Numeric(noise);
    for is_known in [true, false] {
        let placed = match is_known {
            true => comparison.place_cohort(&columns(&x)).unwrap(),
            false => comparison.place(&columns(&x)).unwrap(),
        };
        let cohort = Cohort {
            placed: &placed,
            outcome: &outcome,
        };
        let of = KernelOf::new(&comparison, Kernel::Proximity).unwrap();
        let held = held_out(&of, &cohort, Learner::Ridge, (5, 5), Seed(1)).unwrap();
        let beside = &held.by_nothing.predicted;
        let found = Figures::of(&held.by_kernel.predicted, None, beside, &held.outcome).unwrap();
        let explained = found.first().value;
        assert_eq!(explained < 0.05, is_known, "{explained}");
    }
}

#[test]
fn a_distance_of_patients_with_missing_values_is_lifted_and_its_intervals_know_of_it() {
    let (mut x, y) = patients(300, 5);
    let mut stream = Seed(6).stream("missing", 0);
    x.mapv_inplace(|value| {
        let drawn: f64 = StandardNormal.sample(&mut stream);
        if drawn > 2.0 { f64::NAN } else { value }
    });
    let comparison = Comparison::Gower(Gower::of_columns(&columns(&x)));
    let placed = comparison.place(&columns(&x)).unwrap();
    let outcome = Outcome::Numeric(y);
    let cohort = Cohort {
        placed: &placed,
        outcome: &outcome,
    };
    let of = KernelOf::new(&comparison, Kernel::Proximity).unwrap();
    let everybody: Vec<usize> = (0..300).collect();
    let machine = Machine::learn(&of, &cohort, &everybody, Learner::Ridge, Seed(1)).unwrap();
    assert!(machine.lifted > 0.0 && matches!(machine.fitted, Fitted::Number(_)));
    let held = held_out(&of, &cohort, Learner::Ridge, (5, 5), Seed(1)).unwrap();
    let (Forecast::Numbers(numbers), Outcome::Numeric(values)) = (&held.forecast, &held.outcome)
    else {
        panic!("numbers");
    };
    let within = numbers.iter().zip(values);
    let within = within.filter(|(one, value)| (one.low..=one.high).contains(value));
    let within = within.count();
    println!(
        "{within} of 300 within intervals of 95 %, lifted by {}",
        machine.lifted
    );
    assert!((270..=300).contains(&within), "{within}");
}

#[test]
fn of_many_patients_landmarks_stand_for_all_and_predict_nearly_as_well() {
    let (x, y) = patients(EXACT_PATIENTS_MAX + 500, 7);
    let comparison = Comparison::Gower(Gower::of_columns(&columns(&x)));
    let placed = comparison.place(&columns(&x)).unwrap();
    let outcome = Outcome::Numeric(y.clone());
    let cohort = Cohort {
        placed: &placed,
        outcome: &outcome,
    };
    let of = KernelOf::new(&comparison, Kernel::Proximity).unwrap();
    let rows: Vec<usize> = (0..EXACT_PATIENTS_MAX + 400).collect();
    let last: Vec<usize> = (EXACT_PATIENTS_MAX + 400..EXACT_PATIENTS_MAX + 500).collect();
    let error = |rows: &[usize]| {
        let machine = Machine::learn(&of, &cohort, rows, Learner::Ridge, Seed(1)).unwrap();
        let found = machine
            .forecast(&of, &placed.select(&last))
            .unwrap()
            .values();
        let squares = found
            .iter()
            .zip(&last)
            .map(|(one, row)| (one - y[*row]).powi(2));
        (machine, squares.sum::<f64>() / 100.0)
    };
    let (many, by_landmarks) = error(&rows);
    let (few, exact) = error(&rows[..1000]);
    assert_eq!(
        (many.basis, many.supports.len()),
        (Basis::Landmarks, LANDMARKS)
    );
    assert_eq!((few.basis, few.supports.len()), (Basis::Everybody, 1000));
    println!("mean squared error {by_landmarks} by landmarks of many, {exact} of 1000");
    assert!(by_landmarks < 1.1 * exact && by_landmarks < 0.2);
}

#[test]
fn figures_are_those_of_their_definitions() {
    let outcome = Outcome::Classes {
        codes: ndarray::array![0, 0, 0, 1, 1],
        levels: vec!["no".to_owned(), "yes".to_owned()],
    };
    let chances = ndarray::array![[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.4, 0.6], [0.2, 0.8]];
    let predicted = Predicted::of_values(vec![0.0, 0.0, 1.0, 1.0, 1.0]);
    let nothing = Predicted::of_values(vec![0.0; 5]);
    let found = Figures::of(&predicted, Some(&chances), &nothing, &outcome);
    let Some(Figures::Classes {
        right,
        balanced,
        auc,
        brier,
        ..
    }) = found
    else {
        panic!("classes");
    };
    assert_eq!(right, 4);
    assert!((balanced.value - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
    // Of six pairs of one patient of each class five are in order.
    assert!((auc.unwrap().value - 5.0 / 6.0).abs() < 1e-12);
    let squares = (0.01 + 0.16 + 0.49 + 0.16 + 0.04) / 5.0;
    assert!((brier.value - squares).abs() < 1e-12);
    assert!((gain(&nothing, &predicted, &outcome).unwrap().value - 0.2).abs() < 1e-12);
    let outcome = Outcome::Numeric(ndarray::array![1.0, 2.0, 3.0]);
    let mean = Predicted::of_values(vec![2.0; 3]);
    let close = Predicted::of_values(vec![1.5, 2.0, 3.0]);
    let found = Figures::of(&close, None, &mean, &outcome).unwrap().first();
    assert!((found.value - (1.0 - 0.25 / 2.0)).abs() < 1e-12);
}
