use super::*;
use crate::cohort::{Column, Outcome};
use ndarray::Array1;
use ndarray::{Axis, array, concatenate};

fn features() -> Vec<Feature> {
    let levels = ["a", "b", "c"].map(String::from).to_vec();
    vec![
        Feature {
            name: "age".into(),
            kind: FeatureKind::Numeric,
            treatment: Treatment::default(),
        },
        Feature {
            name: "same".into(),
            kind: FeatureKind::Numeric,
            treatment: Treatment::default(),
        },
        Feature {
            name: "cp".into(),
            kind: FeatureKind::Categorical { levels },
            treatment: Treatment::default(),
        },
    ]
}

fn cohort(ages: Array1<f64>, codes: Array1<u32>) -> Cohort {
    let patients = ages.len();
    let levels = ["a", "b", "c"].map(String::from).to_vec();
    let column = |name: &str, values| Column {
        name: name.into(),
        values,
    };
    let columns = vec![
        column("age", Values::Numeric(ages)),
        column("same", Values::Numeric(Array1::from_elem(patients, 0.1))),
        column("cp", Values::Categorical { codes, levels }),
    ];
    Cohort::new(columns, Outcome::Numeric(Array1::zeros(patients))).unwrap()
}

fn two_sites() -> (Vec<Cohort>, Standardisation) {
    let north = cohort(
        array![1.0, 2.0, f64::NAN, 5.0],
        array![0, 1, 1, MISSING_LEVEL],
    );
    let south = cohort(array![-3.0, f64::NAN, 9.0], array![1, 0, 0]);
    let mut moments = ColumnMoments::of_cohort(&north).unwrap();
    for (mine, other) in moments
        .iter_mut()
        .zip(ColumnMoments::of_cohort(&south).unwrap())
    {
        mine.merge(&other).unwrap();
    }
    (
        vec![north, south],
        Standardisation::from_moments(&features(), &moments, &[]).unwrap(),
    )
}

#[test]
fn stacked_sites_have_mean_zero_and_variance_one() {
    let (sites, standardisation) = two_sites();
    let parts: Vec<_> = sites
        .iter()
        .map(|site| standardisation.apply(site).unwrap())
        .collect();
    let stacked = concatenate(Axis(0), &[parts[0].view(), parts[1].view()]).unwrap();
    for column in stacked.columns() {
        assert!(column.mean().unwrap().abs() < 1e-15);
        assert!((column.std(0.0) - 1.0).abs() < 1e-14);
    }
}

#[test]
fn missing_numbers_become_zero_and_missing_levels_the_mode() {
    let (sites, standardisation) = two_sites();
    let north = standardisation.apply(&sites[0]).unwrap();
    assert_eq!(north[[2, 0]], 0.0);
    // levels a and b are equally frequent: the first wins
    assert_eq!(
        north.row(3).slice(ndarray::s![1..]),
        north.row(0).slice(ndarray::s![1..])
    );
    assert_eq!(
        standardisation.shares_missing(),
        [2.0 / 7.0, 0.0, 1.0 / 7.0]
    );
}

#[test]
fn constant_rows_are_dropped_and_named() {
    let (_, standardisation) = two_sites();
    let names: Vec<_> = standardisation.rows().iter().map(MatrixRow::name).collect();
    assert_eq!(names, ["age", "cp=a", "cp=b"]);
    assert_eq!(standardisation.dropped(), ["same", "cp=c"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (sites, standardisation) = two_sites();
    let scaling = Scaling {
        mean: 0.0,
        scale: 0.0,
        imputed: 0.0,
    };
    let refused = MatrixRow::new("age".into(), 0, Transform::Identity, scaling);
    assert!(matches!(
        refused,
        Err(StandardiseError::Unusable { field: "scale", .. })
    ));
    let scaling = Scaling {
        scale: 1.0,
        ..scaling
    };
    for (column, transform) in [
        (9, Transform::Identity),
        (2, Transform::Identity),
        (2, Transform::Level(3)),
    ] {
        let row = MatrixRow::new("age".into(), column, transform, scaling).unwrap();
        let strange = Standardisation::from_rows(vec![row], vec![], vec![]).unwrap();
        assert!(strange.apply(&sites[0]).is_err());
    }
    assert!(
        standardisation
            .apply(&Cohort::new(vec![], Outcome::Numeric(array![])).unwrap())
            .is_err()
    );
    let constant = [ColumnMoments::Numeric {
        count: 3,
        sum: 0.3,
        sum_squares: 0.03,
        missing: 0,
    }];
    let refused = Standardisation::from_moments(&features()[..1], &constant, &[]);
    assert_eq!(refused, Err(StandardiseError::NothingVaries { dropped: 1 }));
}
