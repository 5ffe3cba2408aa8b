//! Kernels against their definitions, and the faults of other programs as regressions.

use ndarray::{Array1, Array2, Axis, array};
use proptest::prelude::*;
use similarity::compare::proximity::kernel::{
    Definiteness, Kernel, KernelError, Training, distance, mean_edges, squared_distance,
};
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::{InBag, TerminalNodes};
use similarity::numeric::seed::Seed;
use similarity::uses::nearest::{
    nearest, nearest_by, nearest_of_matrix, nearest_of_new, nearest_out_of_bag, proximity_sums,
};
use similarity::uses::outlier::outlier_measure;
use similarity::uses::scaling::classical_scaling;

use crate::definitions::case;
use crate::sample::*;

const ALL: [Kernel; 6] = [
    Kernel::Proximity,
    Kernel::OutOfBag,
    Kernel::Gap,
    Kernel::Kerf,
    Kernel::Depth { omega: 0.7 },
    Kernel::Path,
];

fn equal(found: &Array2<f64>, wanted: &Array2<f64>) -> bool {
    found.dim() == wanted.dim()
        && found
            .iter()
            .zip(wanted)
            .all(|(a, b)| (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-12)
}

#[test]
fn nearest_out_of_bag_are_those_of_the_out_of_bag_matrix() {
    for outcome in 0..4 {
        let case = case(50, 7, outcome, 20);
        let training = case.training();
        let matrix = Kernel::OutOfBag.square(training).unwrap();
        for k in [0, 1, 5, 60] {
            let found = nearest_out_of_bag(training.nodes, training.in_bag, k).unwrap();
            assert_eq!(found, nearest_of_matrix(&matrix, k), "k = {k}");
        }
        let fewer = InBag::nobody(49, training.in_bag.trees());
        assert!(matches!(
            nearest_out_of_bag(training.nodes, &fewer, 5),
            Err(KernelError::Patients {
                found: 49,
                wanted: 50
            })
        ));
    }
}

/// 3,000 patients are more than one stretch of rows.
#[test]
fn neighbours_by_any_kernel_are_those_of_its_matrix_which_is_never_whole() {
    let case = case(3_000, 5, 0, 12);
    let training = case.training();
    for kernel in ALL {
        let matrix = kernel.square(training).unwrap();
        let found = nearest_by(kernel, training, 5).unwrap();
        assert_eq!(found, nearest_of_matrix(&matrix, 5), "{kernel:?}");
    }
}

#[test]
fn every_kernel_follows_its_definition_among_training_patients_and_for_new_ones() {
    for outcome in 0..4 {
        let case = case(50, 7, outcome, 20);
        for kernel in ALL {
            let square = kernel.square(case.training()).unwrap();
            assert!(
                equal(&square, &case.by_definition(kernel, &case.nodes, true)),
                "{kernel:?}"
            );
            let new = kernel.rectangular(case.training(), &case.new).unwrap();
            assert!(
                equal(&new, &case.by_definition(kernel, &case.new, false)),
                "{kernel:?}"
            );
        }
    }
}

#[test]
fn kernels_are_bit_equal_on_one_and_two_threads() {
    let case = case(150, 20, 0, 3);
    let bits = |matrix: Array2<f64>| matrix.mapv(f64::to_bits);
    for kernel in ALL {
        let on = |threads| on_threads(threads, || bits(kernel.square(case.training()).unwrap()));
        assert_eq!(on(1), on(2));
    }
    let scaled = |threads| {
        on_threads(threads, || {
            bits(
                classical_scaling(&case.nodes, 2, Seed(1))
                    .unwrap()
                    .coordinates,
            )
        })
    };
    assert_eq!(scaled(1), scaled(2));
    let near = |threads| on_threads(threads, || nearest(&case.nodes, 5).unwrap());
    assert_eq!(near(1), near(2));
}

/// The smallest eigenvalue, by power iteration on s I - K.
fn smallest_eigenvalue(kernel: &Array2<f64>) -> f64 {
    let shift = kernel.map_axis(Axis(1), |row| {
        row.iter().map(|value| value.abs()).sum::<f64>()
    });
    let shift = shift.iter().copied().fold(0.0, f64::max);
    let mut vector = Array1::from_shape_fn(kernel.nrows(), |row| (row as f64 * 1.7).sin());
    let mut value = 0.0;
    for _ in 0..3000 {
        let next = &vector * shift - kernel.dot(&vector);
        value = next.dot(&next).sqrt();
        vector = next / value;
    }
    shift - value
}

#[test]
fn kernels_called_positive_semidefinite_have_no_negative_eigenvalue() {
    for seed in [1, 2] {
        let case = case(40, 3, 0, seed);
        for kernel in ALL {
            if kernel.definiteness() == Definiteness::PositiveSemidefinite {
                assert!(smallest_eigenvalue(&kernel.square(case.training()).unwrap()) > -1e-6);
            }
        }
    }
}

#[test]
fn the_out_of_bag_proximity_is_not_positive_semidefinite_and_says_so() {
    let case = case(60, 9, 0, 1);
    let matrix = Kernel::OutOfBag
        .square(case.training())
        .unwrap()
        .mapv(|value| if value.is_nan() { 0.0 } else { value });
    assert!(smallest_eigenvalue(&matrix) < -1e-3);
    assert_eq!(Kernel::OutOfBag.definiteness(), Definiteness::Indefinite);
    assert_eq!(Kernel::Gap.definiteness(), Definiteness::Indefinite);
}

#[test]
fn the_weighted_vote_of_gap_is_the_out_of_bag_prediction() {
    for outcome in 0..3 {
        let case = case(120, 30, outcome, 7);
        let weights = Kernel::Gap.square(case.training()).unwrap();
        assert!(weights.diag().iter().all(|&own| own == 0.0));
        assert!(
            weights
                .sum_axis(Axis(1))
                .iter()
                .all(|sum| (sum - 1.0).abs() < 1e-12)
        );
        let prediction = case
            .grown
            .predict_out_of_bag(case.cohort.columns())
            .unwrap();
        let new = Kernel::Gap.rectangular(case.training(), &case.new).unwrap();
        let of_new = case.grown.forest.predict(&mixed(9, 8).columns).unwrap();
        match case.cohort.outcome() {
            similarity::cohort::Outcome::Numeric(y) => {
                let Prediction::Numeric(wanted) = prediction else {
                    panic!("not numeric")
                };
                assert!(
                    (weights.dot(y) - wanted)
                        .iter()
                        .all(|gap| gap.abs() < 1e-12)
                );
                let Prediction::Numeric(wanted) = of_new else {
                    panic!("not numeric")
                };
                assert!((new.dot(y) - wanted).iter().all(|gap| gap.abs() < 1e-12));
            }
            similarity::cohort::Outcome::Classes { codes, levels } => {
                let indicator =
                    Array2::from_shape_fn((codes.len(), levels.len()), |(row, class)| {
                        f64::from(codes[row] as usize == class)
                    });
                let Prediction::Classes(wanted) = prediction else {
                    panic!("not classes")
                };
                assert!(
                    (weights.dot(&indicator) - wanted)
                        .iter()
                        .all(|gap| gap.abs() < 1e-12)
                );
                let Prediction::Classes(wanted) = of_new else {
                    panic!("not classes")
                };
                assert!(
                    (new.dot(&indicator) - wanted)
                        .iter()
                        .all(|gap| gap.abs() < 1e-12)
                );
            }
            similarity::cohort::Outcome::Survival { .. } => unreachable!(),
        }
    }
}

/// CaseBasedReasoning scales by the largest proximity of the query: a pair at 0.49 came out at distance 0.
#[test]
fn distances_do_not_depend_on_who_else_is_asked_about() {
    let proximity = array![[0.49, 0.1], [0.2, 0.3]];
    assert_eq!(distance(&proximity)[(0, 0)], 0.51_f64.sqrt());
    assert_eq!(squared_distance(&proximity)[(0, 0)], 0.51);
    let case = case(60, 15, 0, 30);
    let all = distance(
        &Kernel::Proximity
            .rectangular(case.training(), &case.new)
            .unwrap(),
    );
    for row in 0..case.new.patients() {
        let alone = case.new.select(&[row]);
        let one = distance(
            &Kernel::Proximity
                .rectangular(case.training(), &alone)
                .unwrap(),
        );
        assert_eq!(one.row(0), all.row(row));
    }
}

/// CaseBasedReasoning keeps the last tree for each pair of terminal nodes and drops the exponential.
#[test]
fn the_depth_distance_averages_over_all_trees() {
    let case = case(40, 11, 1, 5);
    let edges = mean_edges(case.training(), &case.nodes).unwrap();
    let wanted = Array2::from_shape_fn(edges.dim(), |(i, j)| {
        let of_tree = |tree: usize| {
            let here = case.way(tree, case.nodes.of_tree(tree)[i]);
            let there = case.way(tree, case.nodes.of_tree(tree)[j]);
            let common = here.iter().zip(&there).filter(|(a, b)| a == b).count();
            (here.len() + there.len() - 2 * common) as f64
        };
        (0..11).map(of_tree).sum::<f64>() / 11.0
    });
    assert!(equal(&edges, &wanted));
    // A tiny decay linearises the kernel: (1 - k) / omega is the mean number of edges.
    let omega = 1e-6;
    let kernel = Kernel::Depth { omega }.square(case.training()).unwrap();
    let slope = kernel.mapv(|value| (1.0 - value) / omega);
    assert!((slope - wanted).iter().all(|gap| gap.abs() < 1e-3));
}

#[test]
fn a_decay_of_zero_makes_all_alike_and_a_large_one_gives_the_proximity() {
    let case = case(40, 6, 0, 2);
    let flat = Kernel::Depth { omega: 0.0 }
        .square(case.training())
        .unwrap();
    assert!(flat.iter().all(|&value| value == 1.0));
    let steep = Kernel::Depth { omega: 700.0 }
        .square(case.training())
        .unwrap();
    assert!(equal(
        &steep,
        &Kernel::Proximity.square(case.training()).unwrap()
    ));
    for omega in [-0.1, f64::NAN, f64::INFINITY] {
        let refused = Kernel::Depth { omega }.square(case.training());
        assert!(matches!(refused, Err(KernelError::Omega { .. })));
    }
}

#[test]
fn pairs_never_out_of_bag_together_are_missing() {
    let case = case(30, 2, 0, 4);
    let matrix = Kernel::OutOfBag.square(case.training()).unwrap();
    for ((i, j), value) in matrix.indexed_iter() {
        let both = (0..2).any(|tree| {
            let counts = case.grown.in_bag.of_tree(tree);
            counts[i] == 0 && counts[j] == 0
        });
        assert_eq!(value.is_nan(), !both);
    }
    assert!(matrix.iter().any(|value| value.is_nan()));
}

#[test]
fn neighbours_and_sums_are_those_of_the_matrix() {
    let case = case(80, 13, 1, 9);
    let matrix = Kernel::Proximity
        .rectangular(case.training(), &case.new)
        .unwrap();
    for (row, found) in nearest_of_new(&case.nodes, &case.new, 6)
        .unwrap()
        .iter()
        .enumerate()
    {
        let mut order: Vec<usize> = (0..80)
            .filter(|&other| matrix[(row, other)] > 0.0)
            .collect();
        order.sort_by(|&a, &b| {
            matrix[(row, b)]
                .total_cmp(&matrix[(row, a)])
                .then(a.cmp(&b))
        });
        assert_eq!(found.neighbours.len(), order.len().min(6));
        for (neighbour, &wanted) in found.neighbours.iter().zip(&order) {
            assert_eq!(neighbour.patient as usize, wanted);
            assert_eq!(neighbour.proximity, matrix[(row, wanted)]);
        }
    }
    let groups: Vec<u32> = (0..80).map(|patient| patient % 3).collect();
    let sums = proximity_sums(&case.nodes, &case.new, &groups, 3).unwrap();
    for ((row, group), sum) in sums.indexed_iter() {
        let wanted: f64 = (0..80)
            .filter(|other| other % 3 == group)
            .map(|j| matrix[(row, j)])
            .sum();
        assert!((sum - wanted).abs() < 1e-12);
    }
    assert!(
        nearest(&case.nodes, 0)
            .unwrap()
            .iter()
            .all(|none| none.neighbours.is_empty())
    );
}

#[test]
fn a_stranger_among_alike_patients_is_the_outlier() {
    // Patients 0 to 8 share nodes in most trees, patient 9 is alone in all.
    let nodes = Array2::from_shape_fn((10, 8), |(patient, tree)| match patient {
        9 => 7,
        _ => u32::from((patient + tree) % 4 == 0),
    });
    let measure = outlier_measure(&TerminalNodes::new(nodes.view()), &[0; 10]).unwrap();
    assert!((0..9).all(|patient| measure[patient] < 1.0) && measure[9] > 5.0);
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let (case, other) = (case(20, 4, 0, 1), case(20, 5, 0, 1));
    let mixed_up = Training {
        nodes: &other.nodes,
        ..case.training()
    };
    assert_eq!(
        Kernel::Proximity.square(mixed_up),
        Err(KernelError::Trees {
            found: 5,
            wanted: 4
        })
    );
    let few = InBag::nobody(19, 4);
    let mixed_up = Training {
        in_bag: &few,
        ..case.training()
    };
    assert_eq!(
        Kernel::Gap.square(mixed_up),
        Err(KernelError::Patients {
            found: 19,
            wanted: 20
        })
    );
    let strange = TerminalNodes::new(Array2::from_elem((20, 4), 9999).view());
    let mixed_up = Training {
        nodes: &strange,
        ..case.training()
    };
    assert_eq!(
        Kernel::Path.square(mixed_up),
        Err(KernelError::Nodes { tree: 0 })
    );
    assert!(matches!(
        nearest_of_new(&case.nodes, &other.nodes, 1),
        Err(KernelError::Trees { .. })
    ));
    assert!(matches!(
        proximity_sums(&case.nodes, &case.nodes, &[3; 20], 3),
        Err(KernelError::Patients {
            found: 0,
            wanted: 20
        })
    ));
    assert!(outlier_measure(&case.nodes, &[0; 3]).is_err());
}

#[test]
fn a_matrix_beyond_the_limit_is_refused_before_it_is_made() {
    let case = case(20, 1, 0, 1);
    let many = TerminalNodes::new(Array2::from_elem((30_001, 1), case.nodes.of_tree(0)[0]).view());
    let in_bag = InBag::nobody(30_001, 1);
    let training = Training {
        forest: &case.grown.forest,
        in_bag: &in_bag,
        nodes: &many,
    };
    assert_eq!(
        Kernel::Proximity.square(training),
        Err(KernelError::TooLarge {
            rows: 30_001,
            columns: 30_001
        })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn symmetric_kernels_lie_in_range_with_unit_diagonal_and_move_with_their_patients(
        patients in 2_usize..40, trees in 1_usize..8, outcome in 0_usize..4, seed in 0_u64..50,
    ) {
        let case = case(patients.max(12), trees, outcome, seed);
        let order: Vec<usize> = (0..case.nodes.patients()).rev().collect();
        let moved_nodes = case.nodes.select(&order);
        for kernel in [Kernel::Proximity, Kernel::Depth { omega: 0.3 }, Kernel::Path, Kernel::Kerf] {
            let matrix = kernel.square(case.training()).unwrap();
            prop_assert!(matrix == matrix.t());
            prop_assert!(matrix.iter().all(|value| (0.0..=1.0).contains(value)));
            if kernel != Kernel::Kerf {
                prop_assert!(matrix.diag().iter().all(|&value| value == 1.0));
            }
            let moved = Training { nodes: &moved_nodes, ..case.training() };
            let moved = kernel.square(moved).unwrap();
            let wanted = matrix.select(Axis(0), &order).select(Axis(1), &order);
            prop_assert_eq!(moved, wanted);
        }
        let kerf = Kernel::Kerf.square(case.training()).unwrap();
        prop_assert!(kerf.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
        let out = Kernel::OutOfBag.square(case.training()).unwrap();
        prop_assert!(equal(&out, &out.t().to_owned()));
        prop_assert!(out.iter().all(|value| value.is_nan() || (0.0..=1.0).contains(value)));
        prop_assert!(out.diag().iter().all(|value| value.is_nan() || *value == 1.0));
    }
}
